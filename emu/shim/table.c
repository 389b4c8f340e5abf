// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Table of the application's descriptors that are device files, and of the library's private ones. An entry is valid
 * only while the descriptor refers to the same inode: the library cannot see a close by an inline system call. A child
 * of vfork() shares our memory but not our descriptors, so the table does not change when it closes or duplicates one;
 * a child with its own memory has its own copy of the table (hooks_fork.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define FDS           65536
#define PRIVATE_FIRST 512 /* if possible: above the numbers of select(), and of most calls of dup2() */

static struct shim_file *files[FDS];
static struct {
	ino_t inode; /* 0: not private */
	dev_t dev;
} private_fds[FDS];
static int highest = -1; /* in both tables */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t reconnecting = PTHREAD_MUTEX_INITIALIZER;

void shim_table_lock(void)
{
	pthread_mutex_lock(&lock);
}

void shim_table_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void shim_table_child(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&reconnecting, NULL);
}

static void note_highest(int fd)
{
	if (fd > highest)
		highest = fd;
}

/* Private descriptors */

/* Does the number still refer to our descriptor? */
static bool private_same(int fd)
{
	struct stat st;

	return private_fds[fd].inode && !shim_fstat(fd, &st) && st.st_ino == private_fds[fd].inode &&
	       st.st_dev == private_fds[fd].dev;
}

bool shim_private(int fd)
{
	return fd >= 0 && fd <= highest && private_same(fd) && shim_own_process();
}

int shim_private_add(int fd)
{
	int to = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, PRIVATE_FIRST);
	struct stat st;

	if (to >= 0) {
		REAL(close)(fd);
		fd = to;
	}
	if (fd >= 0 && fd < FDS && !shim_fstat(fd, &st)) {
		pthread_mutex_lock(&lock);
		private_fds[fd].inode = st.st_ino;
		private_fds[fd].dev = st.st_dev;
		note_highest(fd);
		pthread_mutex_unlock(&lock);
	}
	return fd;
}

void shim_private_close(int fd)
{
	bool same = fd >= FDS;

	if (fd >= 0 && fd < FDS) {
		pthread_mutex_lock(&lock);
		same = private_same(fd);
		private_fds[fd].inode = 0;
		pthread_mutex_unlock(&lock);
	}
	if (same)
		REAL(close)(fd);
}

/* Replaces descriptor @fd of the file by @to. -EBUSY: the file does not have it, or a request is in progress on it. */
static int file_move(struct shim_file *f, int fd, int to)
{
	int i;

	if (f->kick == fd) {
		f->kick = to;
		return 0;
	}
	for (i = 0; i < SHIM_RPCS; i++) {
		if (f->rpc[i] != fd || f->busy & 1u << i)
			continue;
		f->rpc[i] = to;
		return 0;
	}
	return -EBUSY;
}

/* -EBUSY: the descriptor is in use outside of this table and share.c, or has a request in progress for a long time. */
int shim_private_move(int fd)
{
	int to, i, err = -EBUSY;

	to = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, PRIVATE_FIRST);
	if (to < 0)
		return -errno;
	shim_rpc_lock();
	pthread_mutex_lock(&lock);
	for (i = 0; i <= highest; i++) {
		if (files[i] && !file_move(files[i], fd, to))
			err = 0; /* a file may have several numbers in the table */
	}
	if (err)
		err = shim_share_move(fd, to);
	if (!err && to < FDS) {
		private_fds[to] = private_fds[fd];
		note_highest(to);
	}
	if (!err)
		private_fds[fd].inode = 0;
	pthread_mutex_unlock(&lock);
	shim_rpc_unlock();
	REAL(close)(err ? to : fd);
	return err;
}

int shim_private_next(unsigned int first, unsigned int last)
{
	unsigned int fd;

	for (fd = first; fd <= last && (int)fd <= highest; fd++) {
		if (shim_private((int)fd))
			return (int)fd;
	}
	return -1;
}

/* The application's descriptors */

/* The entry of @fd, also a channel. */
static struct shim_file *table_entry(int fd)
{
	return fd >= 0 && fd < FDS ? __atomic_load_n(&files[fd], __ATOMIC_ACQUIRE) : NULL;
}

static bool table_same(int fd, const struct shim_file *f)
{
	struct stat st;

	return !shim_fstat(fd, &st) && st.st_ino == f->inode && st.st_dev == f->dev;
}

void shim_file_add(int fd, struct shim_file *f)
{
	struct shim_file *stale;
	struct stat st;

	if (fd < 0 || fd >= FDS || !shim_own_process() || shim_fstat(fd, &st))
		return;
	f->inode = st.st_ino;
	f->dev = st.st_dev;
	pthread_mutex_lock(&lock);
	f->refs++;
	note_highest(fd);
	stale = files[fd]; /* closed by an inline system call */
	__atomic_store_n(&files[fd], f, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	shim_file_put(stale);
}

void shim_file_dup(int from, int to)
{
	struct shim_file *f = table_entry(from);

	if (f && to >= 0 && table_same(from, f))
		shim_file_add(to, f);
}

/*
 * Reports to the daemon that the last descriptor of a channel is closed, which it cannot detect: it has both ends open.
 */
static void channel_end(struct shim_file *f)
{
	uint64_t inode = f->inode;

	if (f->parent && f->pid == getpid() && f->parent->pid == f->pid)
		shim_call(f->parent, UV_CLOSED, 0, &inode, sizeof(inode), -1, NULL, NULL, NULL);
}

static void file_end(struct shim_file *f)
{
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i <= highest; i++) {
		if (files[i] && files[i]->parent == f)
			files[i]->parent = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (f->shared) {
		shim_poll_unwatch(f->shared);
		munmap(f->shared, UV_SHARED_SIZE);
	}
	if (f->kick >= 0)
		shim_private_close(f->kick);
	for (i = 0; i < SHIM_RPCS; i++)
		shim_private_close(f->rpc[i]);
}

void shim_file_put(struct shim_file *f)
{
	int cancel;
	bool last;

	if (!f)
		return;
	pthread_mutex_lock(&lock);
	last = !--f->refs;
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (f->kind == SHIM_CHANNEL)
		channel_end(f);
	else
		file_end(f);
	pthread_setcancelstate(cancel, NULL);
	free(f);
}

struct shim_file *shim_file_get(int fd)
{
	struct shim_file *f = table_entry(fd);

	if (!f)
		return NULL;
	pthread_mutex_lock(&lock);
	f = files[fd];
	if (f && f->kind == SHIM_CHANNEL)
		f = NULL;
	if (f)
		f->refs++;
	pthread_mutex_unlock(&lock);
	if (!f || table_same(fd, f))
		return f;
	shim_file_put(f);
	return NULL;
}

bool shim_channel(int fd)
{
	struct shim_file *f = table_entry(fd);
	bool channel;

	if (!f)
		return false;
	pthread_mutex_lock(&lock);
	f = files[fd];
	channel = f && f->kind == SHIM_CHANNEL && table_same(fd, f);
	pthread_mutex_unlock(&lock);
	return channel;
}

void shim_file_forget(int fd)
{
	struct shim_file *f;

	if (!table_entry(fd) || !shim_own_process())
		return;
	pthread_mutex_lock(&lock);
	f = files[fd];
	__atomic_store_n(&files[fd], NULL, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	shim_file_put(f);
}

void shim_file_forget_range(unsigned int first, unsigned int last)
{
	unsigned int fd;

	for (fd = first; fd <= last && (int)fd <= highest; fd++)
		shim_file_forget((int)fd);
}

int shim_file_connect(struct shim_file *f)
{
	int fds[2], rpc, old[SHIM_RPCS], i, err = 0;
	struct uv_opened opened = { 0 };

	if (__atomic_load_n(&f->pid, __ATOMIC_ACQUIRE) == getpid())
		return 0;
	if (!shim_own_process())
		return -EBADF;
	memset(old, 0xff, sizeof(old)); /* -1 */
	pthread_mutex_lock(&reconnecting);
	if (f->pid != getpid())
		err = shim_connect(f->kind, f->unit, f->cookie, fds, &rpc, &opened);
	if (!err && opened.copy) { /* the daemon has no permission for this process either */
		err = shim_copy_start(f->kind, f->unit, f->cookie);
		if (err)
			shim_private_close(rpc);
	}
	if (!err && f->pid != getpid()) {
		memcpy(old, f->rpc, sizeof(old));
		memset(f->rpc, 0xff, sizeof(f->rpc));
		f->rpc[0] = rpc;
		f->busy = 0; /* the bits were of requests of the parent's threads */
		__atomic_store_n(&f->pid, getpid(), __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&reconnecting);
	for (i = 0; i < SHIM_RPCS; i++)
		shim_private_close(old[i]);
	return err;
}

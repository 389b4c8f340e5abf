// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The application's descriptors that are device files, and our own. A number is believed only while its inode agrees: who
 * closes by a raw system call goes unseen. A child of vfork shares our memory but not our descriptors, so what it closes
 * or duplicates is not noted; only fork runs the handler that makes the child owner of its copy of the table.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define FDS           65536
#define PRIVATE_FIRST 512 /* where there is room: beyond what select() and careless dup2() use */

static struct shim_file *files[FDS];
static unsigned char private[FDS / 8];
static int highest = -1; /* of both */
static pid_t owner;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
	shim_rpc_lock();
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
	shim_rpc_unlock();
}

static void in_child(void)
{
	owner = getpid();
	after_fork();
	shim_share_in_child();
}

__attribute__((constructor)) static void start(void)
{
	owner = getpid();
	pthread_atfork(before_fork, after_fork, in_child);
}

static bool ours(void)
{
	return !owner || getpid() == owner;
}

static void note_highest(int fd)
{
	if (fd > highest)
		highest = fd;
}

/* Our own descriptors */

bool shim_private(int fd)
{
	return fd >= 0 && fd <= highest && private[fd / 8] & 1 << fd % 8 && ours();
}

int shim_private_add(int fd)
{
	int to = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, PRIVATE_FIRST);

	if (to >= 0) {
		REAL(close)(fd);
		fd = to;
	}
	if (fd >= 0 && fd < FDS) {
		pthread_mutex_lock(&lock);
		private[fd / 8] |= (unsigned char)(1 << fd % 8);
		note_highest(fd);
		pthread_mutex_unlock(&lock);
	}
	return fd;
}

void shim_private_close(int fd)
{
	if (fd >= 0 && fd < FDS) {
		pthread_mutex_lock(&lock);
		private[fd / 8] &= (unsigned char)~(1 << fd % 8);
		pthread_mutex_unlock(&lock);
	}
	REAL(close)(fd);
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

/* The application's */

/* Whatever is entered for @fd, a channel too. */
static struct shim_file *entry(int fd)
{
	return fd >= 0 && fd < FDS ? __atomic_load_n(&files[fd], __ATOMIC_ACQUIRE) : NULL;
}

static bool same(int fd, const struct shim_file *f)
{
	struct stat st;

	return !REAL(fstat)(fd, &st) && st.st_ino == f->inode && st.st_dev == f->dev;
}

void shim_file_add(int fd, struct shim_file *f)
{
	struct stat st;

	if (fd < 0 || fd >= FDS || !ours() || REAL(fstat)(fd, &st))
		return;
	f->inode = st.st_ino;
	f->dev = st.st_dev;
	pthread_mutex_lock(&lock);
	f->refs++;
	note_highest(fd);
	__atomic_store_n(&files[fd], f, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

void shim_file_dup(int from, int to)
{
	struct shim_file *f = entry(from);

	if (f && to >= 0 && same(from, f))
		shim_file_add(to, f);
}

/* The daemon holds both ends of a channel and cannot see that nobody reads it any more. */
static void channel_end(struct shim_file *f)
{
	uint64_t inode = f->inode;

	if (f->parent && f->pid == getpid() && f->parent->pid == f->pid)
		shim_call(f->parent->rpc, UV_CLOSED, 0, &inode, sizeof(inode), -1, NULL, NULL, NULL);
}

static void file_end(struct shim_file *f)
{
	int i;

	for (i = 0; i <= highest; i++) {
		if (files[i] && files[i]->parent == f)
			files[i]->parent = NULL;
	}
	if (f->shared) {
		shim_poll_unwatch(f->shared);
		munmap(f->shared, UV_SHARED_SIZE);
	}
	if (f->kick >= 0)
		shim_private_close(f->kick);
	shim_private_close(f->rpc);
}

void shim_file_put(struct shim_file *f)
{
	bool last;

	if (!f)
		return;
	pthread_mutex_lock(&lock);
	last = !--f->refs;
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	if (f->kind == SHIM_CHANNEL)
		channel_end(f);
	else
		file_end(f);
	free(f);
}

struct shim_file *shim_file_get(int fd)
{
	struct shim_file *f = entry(fd);

	if (!f)
		return NULL;
	pthread_mutex_lock(&lock);
	f = files[fd];
	if (f && f->kind == SHIM_CHANNEL)
		f = NULL;
	if (f)
		f->refs++;
	pthread_mutex_unlock(&lock);
	if (!f || same(fd, f))
		return f;
	shim_file_put(f);
	return NULL;
}

bool shim_channel(int fd)
{
	struct shim_file *f = entry(fd);
	bool channel;

	if (!f)
		return false;
	pthread_mutex_lock(&lock);
	f = files[fd];
	channel = f && f->kind == SHIM_CHANNEL && same(fd, f);
	pthread_mutex_unlock(&lock);
	return channel;
}

void shim_file_forget(int fd)
{
	struct shim_file *f;

	if (!entry(fd) || !ours())
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

int shim_file_rpc(struct shim_file *f)
{
	int fds[2], rpc, err;

	if (f->pid == getpid())
		return f->rpc;
	err = shim_connect(f->kind, f->unit, f->cookie, fds, &rpc, NULL);
	if (err)
		return err;
	shim_private_close(f->rpc);
	f->rpc = rpc;
	f->pid = getpid();
	return rpc;
}

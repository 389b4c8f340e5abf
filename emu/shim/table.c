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

#define CHUNK         65536u                /* numbers */
#define CHUNKS        (0x80000000u / CHUNK) /* for all numbers: fs.nr_open is the limit of RLIMIT_NOFILE */
#define PRIVATE_FIRST 512 /* a power of 2; if possible: above the numbers of select(), and of most calls of dup2() */

/* A descriptor number of the process. */
struct slot {
	struct shim_file *file;
	ino_t inode; /* of a private descriptor; 0: it is none */
	dev_t dev;
};

static struct slot low[CHUNK];
static struct slot *chunks[CHUNKS] = { low }; /* NULL: none of its numbers has been used */
static unsigned int end;                      /* no number from here on has been used */
static struct shim_lock lock, reconnecting;
static __thread unsigned int held; /* references of this thread's calls */

void shim_table_lock(void)
{
	shim_lock(&lock);
}

void shim_table_unlock(void)
{
	shim_unlock(&lock);
}

/* NULL: it has not been used. */
static struct slot *slot_get(int fd)
{
	struct slot *chunk = fd < 0 ? NULL : __atomic_load_n(&chunks[(unsigned int)fd / CHUNK], __ATOMIC_ACQUIRE);

	return chunk ? &chunk[(unsigned int)fd % CHUNK] : NULL;
}

/* The first number from @fd on that has been used, or -1. */
static int slot_next(unsigned int fd)
{
	while (fd < end && !slot_get((int)fd))
		fd = (fd / CHUNK + 1) * CHUNK;
	return fd < end ? (int)fd : -1;
}

/* With the lock. NULL: out of memory. */
static struct slot *slot_use(int fd)
{
	struct slot *chunk = chunks[(unsigned int)fd / CHUNK];

	if (!chunk) {
		chunk = mmap(NULL, sizeof(low), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			     0);
		if (chunk == MAP_FAILED)
			return NULL;
		__atomic_store_n(&chunks[(unsigned int)fd / CHUNK], chunk, __ATOMIC_RELEASE);
	}
	if ((unsigned int)fd >= end)
		end = (unsigned int)fd + 1;
	return &chunk[(unsigned int)fd % CHUNK];
}

bool shim_table_used(void)
{
	return end;
}

/* Private descriptors */

bool shim_private_same(int fd)
{
	const struct slot *s = slot_get(fd);
	struct stat st;

	return s && s->inode && !shim_fstat(fd, &st) && st.st_ino == s->inode && st.st_dev == s->dev;
}

bool shim_private(int fd)
{
	return shim_private_same(fd) && shim_own_process();
}

/* Duplicates it to a large number. RLIMIT_NOFILE may permit none from PRIVATE_FIRST on, or there is none left. */
static int private_dup(int fd)
{
	int first, to = -1;

	for (first = PRIVATE_FIRST; first > STDERR_FILENO && to < 0; first /= 2)
		to = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, first);
	return to;
}

int shim_private_add(int fd)
{
	int to = private_dup(fd);
	struct slot *s = NULL;
	struct stat st;

	if (to >= 0) {
		REAL(close)(fd);
		fd = to;
	}
	if (fd < 0)
		return fd;
	shim_lock(&lock);
	if (!shim_fstat(fd, &st))
		s = slot_use(fd);
	if (s) {
		s->inode = st.st_ino;
		s->dev = st.st_dev;
	}
	shim_unlock(&lock);
	if (s)
		return fd;
	REAL(close)(fd);
	return -ENOMEM;
}

void shim_private_close(int fd)
{
	struct slot *s = slot_get(fd);
	bool same = false;

	if (s) {
		shim_lock(&lock);
		same = shim_private_same(fd);
		s->inode = 0;
		shim_unlock(&lock);
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
	struct slot *from, *s;
	int to, i, err;

	to = private_dup(fd);
	if (to < 0)
		return -errno;
	if (!shim_share_lock()) { /* before the other locks, as in a registration */
		REAL(close)(to);
		return -EBUSY;
	}
	shim_rpc_lock();
	shim_lock(&lock);
	from = slot_get(fd);
	s = slot_use(to);
	err = s ? -EBUSY : -ENOMEM;
	for (i = slot_next(0); s && i >= 0; i = slot_next((unsigned int)i + 1)) {
		if (slot_get(i)->file && !file_move(slot_get(i)->file, fd, to))
			err = 0; /* a file may have several numbers in the table */
	}
	if (err == -EBUSY)
		err = shim_share_move(fd, to);
	if (!err) {
		s->inode = from->inode;
		s->dev = from->dev;
		from->inode = 0;
	}
	shim_unlock(&lock);
	shim_rpc_unlock();
	shim_share_unlock();
	REAL(close)(err ? to : fd);
	return err;
}

int shim_private_next(unsigned int first, unsigned int last)
{
	int fd;

	for (fd = slot_next(first); fd >= 0 && (unsigned int)fd <= last; fd = slot_next((unsigned int)fd + 1)) {
		if (shim_private(fd))
			return fd;
	}
	return -1;
}

/* The application's descriptors */

/* The entry of @fd, also a channel. */
static struct shim_file *table_entry(int fd)
{
	struct slot *s = slot_get(fd);

	return s ? __atomic_load_n(&s->file, __ATOMIC_ACQUIRE) : NULL;
}

static bool table_same(int fd, const struct shim_file *f)
{
	struct stat st;

	return !shim_fstat(fd, &st) && st.st_ino == f->inode && st.st_dev == f->dev;
}

/* The file that the descriptor refers to, with the lock; also a channel. */
static struct shim_file *table_file(int fd)
{
	struct shim_file *f = table_entry(fd);

	return f && table_same(fd, f) ? f : NULL;
}

/* For a call of this thread, with the lock. */
static void file_take(struct shim_file *f)
{
	f->refs++;
	held++;
}

/* Drops a reference, with the lock. True: it was the last one, and the caller ends the file. */
static bool file_drop_ref(struct shim_file *f)
{
	if (--f->refs)
		return false;
	/*
	 * The table had all references to a channel, so file_end() of its file has not run, or has cleared the pointer.
	 */
	if (f->parent && f->parent->refs)
		file_take(f->parent);
	else
		f->parent = NULL;
	return true;
}

/*
 * Reports to the daemon that the last descriptor of a channel is closed, which it cannot detect: it has both ends open.
 */
static void channel_end(struct shim_file *f)
{
	uint64_t inode = f->inode;

	if (f->parent && f->pid == getpid() && f->parent->pid == f->pid)
		shim_call(f->parent, &(struct shim_request){ .op = UV_CLOSED, .in = &inode, .in_len = sizeof(inode) });
	shim_file_put(f->parent);
}

static void file_end(struct shim_file *f)
{
	int i;

	shim_lock(&lock);
	for (i = slot_next(0); i >= 0; i = slot_next((unsigned int)i + 1)) {
		if (slot_get(i)->file && slot_get(i)->file->parent == f)
			slot_get(i)->file->parent = NULL;
	}
	shim_unlock(&lock);
	if (f->shared) {
		shim_poll_unwatch(f->shared);
		munmap(f->shared, UV_SHARED_SIZE);
	}
	if (f->kick >= 0)
		shim_private_close(f->kick);
	for (i = 0; i < SHIM_RPCS; i++)
		shim_private_close(f->rpc[i]);
}

/* Ends a file without references. */
static void table_end(struct shim_file *f)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (f->kind == SHIM_CHANNEL)
		channel_end(f);
	else
		file_end(f);
	pthread_setcancelstate(cancel, NULL);
	free(f);
}

void shim_file_put(struct shim_file *f)
{
	bool last;

	if (!f)
		return;
	shim_lock(&lock);
	held--;
	last = file_drop_ref(f);
	shim_unlock(&lock);
	if (last)
		table_end(f);
}

/* Replaces the file of a number, with the lock. Returns the previous one, if that was its last reference. */
static struct shim_file *slot_set(struct slot *s, struct shim_file *f)
{
	struct shim_file *old = s->file;

	__atomic_store_n(&s->file, f, __ATOMIC_RELEASE);
	return old && file_drop_ref(old) ? old : NULL;
}

/* Enters @f, or the file of number @from if @f is NULL, as number @fd. */
static int table_add(int fd, struct shim_file *f, int from)
{
	struct shim_file *stale = NULL; /* closed by an inline system call */
	struct slot *s = NULL;
	struct stat st;

	if (fd < 0 || !shim_own_process() || shim_fstat(fd, &st))
		return 0;
	shim_lock(&lock);
	if (!f)
		f = table_file(from);
	if (f)
		s = slot_use(fd);
	if (s) {
		f->inode = st.st_ino;
		f->dev = st.st_dev;
		f->refs++;
		stale = slot_set(s, f);
	}
	shim_unlock(&lock);
	if (stale)
		table_end(stale);
	return f && !s ? -ENOMEM : 0;
}

int shim_file_add(int fd, struct shim_file *f)
{
	return table_add(fd, f, -1);
}

void shim_file_dup(int from, int to)
{
	if (table_entry(from))
		(void)table_add(to, NULL, from);
}

struct shim_file *shim_file_get_entry(int fd)
{
	struct shim_file *f = table_entry(fd);

	if (!f)
		return NULL;
	shim_lock(&lock);
	f = table_entry(fd);
	if (f && f->kind == SHIM_CHANNEL)
		f = NULL;
	if (f)
		file_take(f);
	shim_unlock(&lock);
	return f;
}

struct shim_file *shim_file_verify(struct shim_file *f, int fd)
{
	if (!f || table_same(fd, f))
		return f;
	shim_file_put(f);
	return NULL;
}

struct shim_file *shim_file_get(int fd)
{
	return shim_file_verify(shim_file_get_entry(fd), fd);
}

bool shim_event_exceeds(int fd, size_t len)
{
	struct shim_file *f = table_entry(fd);
	bool exceeds;

	if (!f)
		return false;
	shim_lock(&lock);
	f = table_entry(fd);
	exceeds = f && f->kind == SHIM_CHANNEL && f->event_size > len && table_same(fd, f);
	shim_unlock(&lock);
	return exceeds;
}

bool shim_channel(int fd)
{
	return shim_event_exceeds(fd, 0);
}

void shim_file_forget(int fd)
{
	struct shim_file *f;

	if (!table_entry(fd) || !shim_own_process())
		return;
	shim_lock(&lock);
	f = slot_set(slot_get(fd), NULL);
	shim_unlock(&lock);
	if (f)
		table_end(f);
}

void shim_file_forget_range(unsigned int first, unsigned int last)
{
	int fd;

	for (fd = slot_next(first); fd >= 0 && (unsigned int)fd <= last; fd = slot_next((unsigned int)fd + 1))
		shim_file_forget(fd);
}

/* The calls of other threads do not go on in the child, nor do they release their references. */
void shim_table_child(void)
{
	int i;

	lock = reconnecting = (struct shim_lock){ 0 };
	if (held) /* a handler of a signal forks: the interrupted call may go on */
		return;
	for (i = slot_next(0); i >= 0; i = slot_next((unsigned int)i + 1))
		if (slot_get(i)->file)
			slot_get(i)->file->refs = 0;
	for (i = slot_next(0); i >= 0; i = slot_next((unsigned int)i + 1))
		if (slot_get(i)->file)
			slot_get(i)->file->refs++;
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
	shim_lock(&reconnecting);
	if (f->pid != getpid())
		err = shim_connect(f->kind, f->unit, f->cookie, fds, &rpc, &opened);
	if (!err && opened.copy) { /* the daemon has no permission for this process either */
		err = shim_copy_start(f->kind, f->unit, f->cookie);
		if (err)
			shim_private_close(rpc);
	}
	if (!err && f->pid == getpid()) { /* a handler of a signal has done it meanwhile */
		shim_private_close(rpc);
	} else if (!err) {
		memcpy(old, f->rpc, sizeof(old));
		memset(f->rpc, 0xff, sizeof(f->rpc));
		f->rpc[0] = rpc;
		f->busy = 0; /* the bits were of requests of the parent's threads */
		__atomic_store_n(&f->pid, getpid(), __ATOMIC_RELEASE);
	}
	shim_unlock(&reconnecting);
	for (i = 0; i < SHIM_RPCS; i++)
		shim_private_close(old[i]);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Descriptors passed by clients (SCM_RIGHTS). A client can make close() block without limit: a file on FUSE or NFS
 * waits for its file system, a TCP socket with SO_LINGER for its peer, and a local socket for everything in its queue.
 * The kernel also closes descriptors that recvmsg() truncates, in the context of the receiver. So nothing is
 * truncated, and detached threads close everything except eventfds, pipes and files in memory. They also unmap large
 * memory.
 *
 * A client process occupies only a few threads; its further descriptors wait for these, without delaying those of
 * others.
 */
#include "emu/lib/passed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emu/lib/list.h"
#include "emu/lib/rights.h"
#include "emu/lib/thread.h"

#define SIGNALS 64  /* completions that are reaped together */
#define NOWAIT  0x8 /* RWF_NOWAIT, as a plain number for sparse */

/* See fits(). */
#define MESSAGE_MOST (PASSED_MAX + 16) /* a message's own descriptors, and more than the process makes for it */
#define FITS_MOST    1024              /* messages after which the table is looked at again */
#define FITS_LEAST   32                /* below, reserving each time costs less */

static int fits_again; /* messages until then; negative: each of them is received with the reserve */

static struct {
	aio_context_t ctx;
	int file; /* -1: no AIO */
	u32 completions;
} signaller = { .file = -1 };

struct job {
	struct list link;
	int fd; /* -1: memory to be unmapped */
	void *at;
	size_t len;
};

/* A client process with descriptors to be closed. */
struct owner {
	struct list link;
	struct list ready; /* in closer.ready while it has jobs and may use another thread */
	struct list jobs;
	pid_t pid;
	u32 busy, waiting; /* threads; jobs */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct list owners, ready;
	u32 threads, idle;
	struct passed_stats stats;
} closer = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.owners = { &closer.owners, &closer.owners },
	.ready = { &closer.ready, &closer.ready },
};

static struct owner *owner_find(pid_t pid)
{
	struct owner *o;

	list_for_each (o, &closer.owners, link)
		if (o->pid == pid)
			return o;
	return NULL;
}

static struct owner *owner_get(pid_t pid)
{
	struct owner *o = owner_find(pid);

	if (o)
		return o;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->pid = pid;
	list_init(&o->ready);
	list_init(&o->jobs);
	list_add(&closer.owners, &o->link);
	return o;
}

/* Adds or removes the owner on the list of those with work for a thread. */
static void owner_update(struct owner *o)
{
	list_del(&o->ready);
	if (o->waiting && o->busy < PASSED_THREADS_OWNER) {
		list_add(&closer.ready, &o->ready);
	} else if (!o->waiting && !o->busy) {
		list_del(&o->link);
		free(o);
	}
}

static struct job *owner_take_job(struct owner *o)
{
	struct job *j = list_first(&o->jobs, struct job, link);

	list_del(&j->link);
	o->waiting--;
	o->busy++;
	owner_update(o);
	return j;
}

static void *closer_thread(void *arg);

/* Wakes an idle thread, or starts one. */
static void thread_wake(void)
{
	if (closer.idle)
		pthread_cond_signal(&closer.work);
	else if (closer.threads < PASSED_THREADS && !thread_detached(closer_thread, NULL))
		closer.threads++;
}

/* One thread remains when there is no work. A thread that may block starts another one for the remaining work. */
static void *closer_thread(void *arg)
{
	struct owner *o;
	struct job *j;

	pthread_mutex_lock(&closer.lock);
	for (;;) {
		while (list_empty(&closer.ready) && !closer.idle) {
			closer.idle++;
			pthread_cond_wait(&closer.work, &closer.lock);
			closer.idle--;
		}
		if (list_empty(&closer.ready))
			break;
		o = list_first(&closer.ready, struct owner, ready);
		j = owner_take_job(o);
		if (!list_empty(&closer.ready))
			thread_wake();
		pthread_mutex_unlock(&closer.lock);
		if (j->fd >= 0)
			close(j->fd);
		else
			munmap(j->at, j->len);
		free(j);
		pthread_mutex_lock(&closer.lock);
		closer.stats.closed++;
		closer.stats.waiting--;
		o->busy--;
		owner_update(o);
	}
	closer.threads--;
	pthread_mutex_unlock(&closer.lock);
	return NULL;
}

/* Called with the lock held. Without a thread the job waits for the next idle one. */
static void job_add(struct owner *o, struct job *j)
{
	list_add(&o->jobs, &j->link);
	o->waiting++;
	closer.stats.waiting++;
	if (o->busy + o->waiting > PASSED_THREADS_OWNER || closer.threads == PASSED_THREADS)
		closer.stats.delayed++;
	owner_update(o);
	if (!list_empty(&closer.ready))
		thread_wake();
}

static void job_by_thread(const struct job *what, pid_t pid)
{
	struct job *j = malloc(sizeof(*j));
	struct owner *o;

	if (!j)
		return; /* out of memory: the descriptor stays open, which blocks nothing */
	*j = *what;
	list_init(&j->link);
	pthread_mutex_lock(&closer.lock);
	o = owner_get(pid);
	if (o)
		job_add(o, j);
	else
		free(j);
	pthread_mutex_unlock(&closer.lock);
}

static void close_by_thread(int fd, pid_t owner)
{
	job_by_thread(&(struct job){ .fd = fd }, owner);
}

void passed_unmap(void *at, size_t len, pid_t owner)
{
	if (len < PASSED_UNMAP_LARGE)
		munmap(at, len);
	else
		job_by_thread(&(struct job){ .fd = -1, .at = at, .len = len }, owner);
}

enum passed_kind passed_kind(int fd)
{
	char path[32], name[32];
	ssize_t n;

	if (fcntl(fd, F_GET_SEALS) >= 0)
		return PASSED_MEMORY; /* only files in memory have seals */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0)
		return PASSED_OTHER;
	name[n] = 0;
	if (!strcmp(name, "anon_inode:[eventfd]"))
		return PASSED_EVENTFD;
	if (!strncmp(name, "pipe:[", 6))
		return PASSED_PIPE;
	return strncmp(name, "socket:[", 8) ? PASSED_OTHER : PASSED_SOCKET;
}

/*
 * Any process that shares an eventfd may fill its counter and clear O_NONBLOCK, also between poll() and write(), which
 * then waits until one reads. The completion of an AIO request (IOCB_FLAG_RESFD) adds 1 without waiting, and a read of
 * an empty file in memory completes within io_submit().
 */
int passed_signal_init(void)
{
	int file = memfd_create("signal", MFD_CLOEXEC), err;

	if (file < 0)
		return -errno;
	if (syscall(SYS_io_setup, SIGNALS, &signaller.ctx)) {
		err = -errno;
		close(file);
		return err;
	}
	signaller.file = file;
	return 0;
}

static void signals_reap(void)
{
	struct io_event done[SIGNALS];
	struct timespec none = { 0 };
	long n = syscall(SYS_io_getevents, signaller.ctx, 0, SIGNALS, done, &none);

	signaller.completions -= n > 0 ? min((u32)n, signaller.completions) : 0;
}

/* False: the kernel refuses the request. */
static bool signal_by_aio(int fd)
{
	struct iocb request = { .aio_lio_opcode = IOCB_CMD_PREAD,
				.aio_fildes = (u32)signaller.file,
				.aio_flags = IOCB_FLAG_RESFD,
				.aio_resfd = (u32)fd };
	struct iocb *list = &request;

	if (signaller.completions == SIGNALS)
		signals_reap();
	if (syscall(SYS_io_submit, signaller.ctx, 1, &list) != 1)
		return false;
	signaller.completions++;
	return true;
}

void passed_signal(int fd)
{
	u64 one = 1;

	if (signaller.file >= 0 && signal_by_aio(fd))
		return;
	if (poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 0) == 1 && write(fd, &one, sizeof(one)) < 0)
		return; /* no longer an eventfd */
}

/*
 * Any process that shares it may have taken the counter since it was found readable, and have cleared O_NONBLOCK: then
 * read() waits. Linux before 5.8 has only that.
 */
int passed_take(int fd, u64 *n)
{
	struct iovec iov = { n, sizeof(*n) };
	ssize_t got = preadv2(fd, &iov, 1, -1, NOWAIT);

	if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
		got = read(fd, n, sizeof(*n));
	if (got < 0)
		return -errno;
	return got == sizeof(*n) ? 0 : -EINVAL;
}

void passed_close(int fd, pid_t owner)
{
	enum passed_kind kind;

	if (fd < 0)
		return;
	kind = passed_kind(fd);
	if (kind == PASSED_OTHER || kind == PASSED_SOCKET)
		close_by_thread(fd, owner);
	else
		close(fd);
}

void passed_close_socket(int sock, pid_t owner)
{
	shutdown(sock, SHUT_RDWR); /* the peer gets the end of the connection immediately, and cannot queue any more */
	close_by_thread(sock, owner);
}

bool passed_refused(pid_t owner)
{
	struct owner *o;
	bool refused;

	pthread_mutex_lock(&closer.lock);
	o = owner_find(owner);
	refused = o && o->waiting > PASSED_OWNER_MOST;
	pthread_mutex_unlock(&closer.lock);
	return refused;
}

pid_t passed_owner(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) ? 0 : cred.pid;
}

u64 passed_socket(int fd)
{
	u64 cookie;
	socklen_t len = sizeof(cookie);

	return fd < 0 || getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) ? 0 : cookie;
}

void passed_reserve(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_max < 4 * PASSED_MAX)
		return;
	r.rlim_cur = min(r.rlim_cur, r.rlim_max - PASSED_MAX);
	setrlimit(RLIMIT_NOFILE, &r);
	fits_again = 0;
}

void passed_reserve_begin(struct rlimit *before)
{
	static rlim_t hard; /* as it was the last time: one call does then */
	struct rlimit most = { hard, hard };

	if (!hard || prlimit(0, RLIMIT_NOFILE, &most, before))
		getrlimit(RLIMIT_NOFILE, before);
	else if (before->rlim_max == hard)
		return;
	hard = before->rlim_max;
	most = (struct rlimit){ hard, hard };
	setrlimit(RLIMIT_NOFILE, &most);
}

void passed_reserve_end(const struct rlimit *before)
{
	setrlimit(RLIMIT_NOFILE, before);
}

/* The size of the process's table of descriptors; UINT64_MAX: unknown. */
static u64 table_size(void)
{
	char status[4096];
	const char *line = NULL;
	ssize_t n;
	int fd;

	fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return UINT64_MAX;
	n = read(fd, status, sizeof(status) - 1);
	close(fd);
	if (n > 0) {
		status[n] = 0;
		line = strstr(status, "\nFDSize:");
	}
	return line ? strtoull(line + strlen("\nFDSize:"), NULL, 10) : UINT64_MAX;
}

/*
 * Whether the descriptors of a message fit below the soft limit, which most processes are far from. The kernel enlarges
 * the table for larger numbers, and never reduces it: so all descriptors are below its size, and it need not be read
 * again until as many messages, connections and threads have come as can fill the rest.
 */
static bool fits(void)
{
	struct rlimit r;
	u64 size;

	if (!fits_again) {
		size = table_size();
		if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur <= size)
			r.rlim_cur = size;
		fits_again = (int)min((r.rlim_cur - size) / MESSAGE_MOST, (u64)FITS_MOST);
		if (fits_again < FITS_LEAST)
			fits_again = -FITS_LEAST;
	}
	if (fits_again < 0) {
		fits_again++;
		return false;
	}
	fits_again--;
	return true;
}

void passed_opened(void)
{
	if (fits_again > 0)
		fits_again--;
}

ssize_t passed_recv(int sock, const struct iovec *iov, int *fds, u32 max, u32 *nfds)
{
	RIGHTS_CONTROL(control, PASSED_MAX);
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int all[PASSED_MAX], err;
	struct rlimit limit;
	bool reserve = !fits();
	ssize_t got;
	u32 n, i;

	*nfds = 0;
	if (reserve)
		passed_reserve_begin(&limit);
	got = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	err = errno;
	if (reserve)
		passed_reserve_end(&limit);
	if (got < 0) {
		errno = err;
		return -1;
	}
	n = rights_get(&msg, all, PASSED_MAX);
	for (i = 0; i < n && i < max; i++)
		fds[i] = all[i];
	*nfds = i;
	for (; i < n; i++)
		passed_close(all[i], passed_owner(sock));
	return got;
}

ssize_t passed_recv_none(int sock, const struct iovec *iov)
{
	u32 nfds;
	int fd;
	ssize_t got = passed_recv(sock, iov, &fd, 1, &nfds);

	if (!nfds)
		return got;
	passed_close(fd, passed_owner(sock));
	errno = EBADMSG;
	return -1;
}

void passed_stats(struct passed_stats *st)
{
	pthread_mutex_lock(&closer.lock);
	*st = closer.stats;
	pthread_mutex_unlock(&closer.lock);
}

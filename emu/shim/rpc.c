// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests to the daemon (emu/host/proto.h). */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "emu/lib/rights.h"
#include "emu/shim/shim.h"

/*
 * A connection carries one request at a time. The response may be late: a registration waits for memory behind a
 * userfaultfd or a network file system. So a request does not wait long for those of other threads: the file gets
 * another connection.
 */
#define IDLE_WAIT_NS 1000000   /* ns to wait for a connection of the file */
#define CALLS_END_NS 100000000 /* ns to wait for the requests of all other threads before a fork */

static struct shim_lock lock; /* protects the busy flags of all files, and the counts */
static uint32_t changes;      /* of these */
static unsigned int waiters;  /* threads that wait for one */
static unsigned int calls;    /* requests in progress on connections of files */
static unsigned int quiet;    /* threads that wait for these requests; no request begins meanwhile */

static unsigned long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec;
}

/* With the lock, which it releases meanwhile. False: it is @until, a time of now_ns(). 0: no limit. */
static bool change_wait(unsigned long long until)
{
	struct timespec t = { .tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000) };
	uint32_t seen = changes;

	if (until && now_ns() >= until)
		return false;
	waiters++;
	shim_unlock(&lock);
	shim_futex_wait(&changes, seen, until ? &t : NULL);
	shim_lock(&lock);
	waiters--;
	return true;
}

/* With the lock. */
static void change_signal(void)
{
	changes++;
	if (waiters)
		shim_futex_wake(&changes, INT_MAX);
}

void shim_rpc_lock(void)
{
	unsigned long long until = now_ns() + CALLS_END_NS;

	shim_lock(&lock);
	quiet++;
	while (calls && change_wait(until))
		;
	quiet--;
	change_signal();
}

void shim_rpc_unlock(void)
{
	shim_unlock(&lock);
}

void shim_rpc_child(void)
{
	lock = (struct shim_lock){ 0 };
	calls = quiet = waiters = 0;
}

static int send_request(int rpc, const struct uv_request *req, const void *in, size_t len, int fd)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)req, sizeof(*req) }, { (void *)(uintptr_t)in, len } };
	RIGHTS_CONTROL(control, 1) = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n;

	rights_put(&msg, control, &fd, fd >= 0);
	do {
		n = sendmsg(rpc, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	return errno == EBADF && fd >= 0 ? -EBADF : -EIO;
}

static int receive_answer(int rpc, void *out, size_t *out_len, int *fds)
{
	struct uv_answer a = { .result = -EIO };
	struct iovec iov[2] = { { &a, sizeof(a) }, { out, out_len ? *out_len : 0 } };
	RIGHTS_CONTROL(control, 2);
	struct msghdr msg = {
		.msg_iov = iov, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof(control)
	};
	unsigned int got;
	ssize_t n;

	do {
		n = recvmsg(rpc, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < (ssize_t)sizeof(a))
		return -EIO; /* the daemon has closed */
	if (out_len)
		*out_len = (size_t)n - sizeof(a);
	fds[0] = fds[1] = -1;
	got = rights_get(&msg, fds, 2);
	if (got >= a.fds)
		return a.result;
	/* The kernel passes fewer when the program has no number left for them (MSG_CTRUNC). */
	while (got) {
		REAL(close)(fds[--got]);
		fds[got] = -1;
	}
	return -EMFILE;
}

static int rpc_exchange(int rpc, const struct shim_request *r, int *fds)
{
	struct uv_request req = { .op = r->op, .arg = r->arg };
	int err, saved = errno;

	/* The number may mean another file if the program has closed our descriptor by an inline system call. */
	err = shim_private(rpc) ? send_request(rpc, &req, r->in, r->in_len, r->in_fd ? *r->in_fd : -1) : -EIO;
	if (!err)
		err = receive_answer(rpc, r->out, r->out_len, fds);
	errno = saved;
	return err;
}

int shim_call_on(int rpc, const struct shim_request *req)
{
	int fds[2] = { -1, -1 }, result = rpc_exchange(rpc, req, fds);

	if (req->fd)
		*req->fd = fds[0];
	else if (fds[0] >= 0)
		REAL(close)(fds[0]);
	return result;
}

int shim_connect(enum uv_kind kind, unsigned int unit, uint64_t attach, int fds[2], int *rpc, struct uv_opened *opened)
{
	struct uv_open o = { .kind = kind, .unit = unit, .attach = attach };
	struct uv_opened got;
	size_t len = sizeof(got);
	struct shim_request req = { .op = UV_OPEN, .in = &o, .in_len = sizeof(o), .out = &got, .out_len = &len };
	int fd = shim_reach(), err;

	if (fd < 0)
		return fd;
	snprintf(o.host, sizeof(o.host), "%s", getenv("MUSLIN_HOST"));
	if (kind == UV_UVERBS && !attach) /* permits process_vm_readv() by the daemon under Yama */
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	fds[0] = fds[1] = -1;
	err = rpc_exchange(fd, &req, fds);
	if (!err && len < sizeof(got))
		err = -EIO;
	if (err < 0) {
		shim_private_close(fd);
		return err;
	}
	if (opened)
		*opened = got;
	*rpc = fd;
	return 0;
}

/* Finds a connection of the file without a request, or returns -1. */
static int rpc_idle(const struct shim_file *f)
{
	int i;

	for (i = 0; i < SHIM_RPCS && f->rpc[i] >= 0; i++)
		if (!(f->busy & 1u << i))
			return quiet ? -1 : i;
	return -1;
}

/* Adds a connection if there is room. If this fails, the caller waits for an existing one. */
static void rpc_add(struct shim_file *f)
{
	int fds[2], fd, i;

	if (f->rpc[SHIM_RPCS - 1] >= 0)
		return;
	shim_unlock(&lock);
	if (shim_connect(f->kind, f->unit, f->cookie, fds, &fd, NULL))
		fd = -1;
	shim_lock(&lock);
	for (i = 0; i < SHIM_RPCS && f->rpc[i] >= 0;)
		i++;
	if (i < SHIM_RPCS)
		f->rpc[i] = fd;
	else if (fd >= 0)
		shim_private_close(fd);
}

/* Reserves a connection of the file for a request. */
static int rpc_take(struct shim_file *f)
{
	unsigned long long until = now_ns() + IDLE_WAIT_NS;
	bool tried = false;
	int i;

	shim_lock(&lock);
	while ((i = rpc_idle(f)) < 0) {
		if (tried || quiet) {
			change_wait(0);
		} else if (!change_wait(until)) {
			tried = true;
			rpc_add(f);
		}
	}
	f->busy |= 1u << i;
	calls++;
	shim_unlock(&lock);
	return i;
}

static void rpc_release(struct shim_file *f, int i)
{
	shim_lock(&lock);
	f->busy &= ~(1u << i);
	calls--;
	change_signal();
	shim_unlock(&lock);
}

/* Disables thread cancellation, which would leave the connection busy and a response on it for the next request. */
int shim_call(struct shim_file *f, const struct shim_request *req)
{
	int i, cancel, result;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	result = shim_file_connect(f);
	if (!result) {
		i = rpc_take(f);
		result = shim_call_on(f->rpc[i], req);
		rpc_release(f, i);
	}
	pthread_setcancelstate(cancel, NULL);
	return result;
}

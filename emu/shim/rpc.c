// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests to the daemon. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/lib/rights.h"
#include "emu/shim/shim.h"

/* One request at a time in a process: they are rare, and a connection has one answer for each. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void shim_rpc_lock(void)
{
	pthread_mutex_lock(&lock);
}

void shim_rpc_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void shim_rpc_child(void)
{
	pthread_mutex_init(&lock, NULL);
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
	ssize_t n;

	do {
		n = recvmsg(rpc, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < (ssize_t)sizeof(a))
		return -EIO; /* the daemon has closed */
	if (out_len)
		*out_len = (size_t)n - sizeof(a);
	fds[0] = fds[1] = -1;
	rights_get(&msg, fds, 2);
	return a.result;
}

/* Not to be cancelled: the lock would stay, and an answer be left for the next request. */
static int rpc_call(int rpc, const struct uv_request *req, const void *in, size_t in_len, int in_fd, void *out,
		    size_t *out_len, int *fds)
{
	int err, cancel, saved = errno;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	shim_rpc_lock();
	/* a program that closes descriptors that it has not opened, by system calls of its own, may have another file there */
	err = shim_private(rpc) ? send_request(rpc, req, in, in_len, in_fd) : -EIO;
	if (!err)
		err = receive_answer(rpc, out, out_len, fds);
	shim_rpc_unlock();
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return err;
}

int shim_call(int rpc, enum uv_op op, unsigned int arg, const void *in, size_t in_len, int in_fd, void *out,
	      size_t *out_len, int *fd)
{
	struct uv_request req = { .op = op, .arg = arg };
	int fds[2] = { -1, -1 }, result = rpc_call(rpc, &req, in, in_len, in_fd, out, out_len, fds);

	if (fd)
		*fd = fds[0];
	else if (fds[0] >= 0)
		REAL(close)(fds[0]);
	return result;
}

static int reach_daemon(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = REAL(socket)(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", getenv("MUSLIN_SOCKET"));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		err = -errno;
		REAL(close)(fd);
		return err;
	}
	return shim_private_add(fd);
}

int shim_connect(enum uv_kind kind, unsigned int unit, uint64_t attach, int fds[2], int *rpc, struct uv_opened *opened)
{
	struct uv_request req = { .op = UV_OPEN };
	struct uv_open o = { .kind = kind, .unit = unit, .attach = attach };
	struct uv_opened got;
	size_t len = sizeof(got);
	int fd = reach_daemon(), err;

	if (fd < 0)
		return fd;
	snprintf(o.host, sizeof(o.host), "%s", getenv("MUSLIN_HOST"));
	if (kind == UV_UVERBS && !attach) /* permits process_vm_readv() by the daemon under Yama */
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	fds[0] = fds[1] = -1;
	err = rpc_call(fd, &req, &o, sizeof(o), -1, &got, &len, fds);
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

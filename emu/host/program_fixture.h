/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For the tests of emu/host: programs, as the server of a desk sees them: by the requests of their connections. */
#ifndef MUSLIN_HOST_PROGRAM_FIXTURE_H
#define MUSLIN_HOST_PROGRAM_FIXTURE_H

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "emu/host/fixture.h"
#include "emu/lib/passed.h"

/* What a program has: a connection, and its end of the pair. */
struct program {
	struct desk *desk;
	int rpc, fd;
	u8 answer[UV_MESSAGE_MAX];
};

/* A connection to the server of the test @pid. */
static inline int program_connect(pid_t pid)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	snprintf(sa.sun_path, sizeof(sa.sun_path), DESK_SOCKET, (int)pid);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		abort();
	return fd;
}

/* Sends a request, and does not wait for the response. */
static inline void program_request(int rpc, u32 op, u32 arg, const void *data, size_t len)
{
	struct uv_request req = { op, arg };
	struct iovec iov[2] = { { &req, sizeof(req) }, { (void *)(uintptr_t)data, len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (sendmsg(rpc, &msg, 0) < 0)
		abort();
}

static inline void program_request_open(int rpc, u32 kind, u32 unit)
{
	struct uv_open o = { .kind = kind, .unit = unit, .host = "t" };

	program_request(rpc, UV_OPEN, 0, &o, sizeof(o));
}

/* The result of a request; -EINPROGRESS: there is none yet. */
static inline int program_result(struct program *p)
{
	struct iovec iov = { p->answer, sizeof(p->answer) };
	struct uv_answer a;
	int fds[2];
	u32 n;

	if (passed_recv(p->rpc, &iov, fds, 2, &n) < (ssize_t)sizeof(a))
		return -EINPROGRESS;
	memcpy(&a, p->answer, sizeof(a));
	if (n)
		p->fd = fds[0];
	if (n > 1)
		close(fds[1]);
	return a.result;
}

/* The result of the last request, or -ETIMEDOUT. */
static inline int program_wait(struct program *p)
{
	u32 i;
	int result;

	for (i = 0; i < 10000; i++) {
		result = program_result(p);
		if (result != -EINPROGRESS)
			return result;
		desk_run(p->desk, 1);
	}
	return -ETIMEDOUT;
}

static inline int program_call(struct program *p, u32 op, u32 arg, const void *data, size_t len)
{
	program_request(p->rpc, op, arg, data, len);
	return program_wait(p);
}

static inline void program_open(struct program *p, struct desk *d, u32 kind, u32 unit)
{
	p->desk = d;
	p->fd = -1;
	p->rpc = program_connect(getpid());
	program_request_open(p->rpc, kind, unit);
	if (program_wait(p) || p->fd < 0)
		abort();
}

static inline void program_close(struct program *p)
{
	close(p->fd);
	close(p->rpc);
	desk_run(p->desk, NSEC_PER_MSEC);
}

#endif

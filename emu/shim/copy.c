// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies between program memory and a memfd, by a thread of the program, for a daemon without permission for
 * process_vm_readv(2). pread() and pwrite() return EFAULT for an invalid address.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/shim/shim.h"

struct copier {
	int sock, memfd;
};

static int32_t copy_serve(int memfd, const struct uv_copy *c)
{
	off_t off = 0;
	uint32_t i;

	for (i = 0; i < c->n && i < UV_COPY_SEGS; i++) {
		void *addr = (void *)(uintptr_t)c->seg[i].addr;
		size_t len = c->seg[i].len;
		ssize_t n = c->write ? pread(memfd, addr, len, off) : pwrite(memfd, addr, len, off);

		if (n != (ssize_t)len)
			return -EFAULT;
		off += n;
	}
	return 0;
}

static void *copy_thread(void *arg)
{
	struct copier c = *(struct copier *)arg;
	struct uv_copy *req = malloc(sizeof(*req));
	ssize_t n = 1;
	int32_t result;

	free(arg);
	while (req && n > 0) {
		n = recv(c.sock, req, sizeof(*req), 0);
		if (n < 0 && errno == EINTR) {
			n = 1;
			continue;
		}
		if (n <= 0)
			break;
		result = copy_serve(c.memfd, req);
		n = send(c.sock, &result, sizeof(result), MSG_NOSIGNAL);
	}
	free(req);
	shim_private_close(c.sock);
	shim_private_close(c.memfd);
	return NULL;
}

int shim_thread_start(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t t = 0;
	int err;

	if (!REAL(pthread_create)) /* in an older libc it is in libpthread, which libibverbs has loaded */
		return -ENOSYS;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all,
		    &old); /* for the new thread: signal handlers of the application must not run in it */
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = REAL(pthread_create)(&t, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return -err;
}

int shim_copy_start(enum uv_kind kind, unsigned int unit, uint64_t cookie)
{
	struct copier *c = malloc(sizeof(*c));
	int fds[2], err;

	if (!c)
		return -ENOMEM;
	err = shim_connect(kind, unit, cookie, fds, &c->sock, NULL);
	if (err) {
		free(c);
		return err;
	}
	err = shim_call_on(c->sock, &(struct shim_request){ .op = UV_COPY, .fd = &c->memfd });
	if (!err && c->memfd < 0)
		err = -EIO;
	if (err) {
		shim_private_close(c->sock);
		free(c);
		return err;
	}
	c->memfd = shim_private_add(c->memfd);
	err = c->memfd < 0 ? c->memfd : shim_thread_start(copy_thread, c);
	if (err) {
		shim_private_close(c->sock);
		shim_private_close(c->memfd);
		free(c);
	}
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests: passing descriptors, and one whose close() takes long. */
#ifndef MUSLIN_LIB_PASSED_FIXTURE_H
#define MUSLIN_LIB_PASSED_FIXTURE_H

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/passed.h"
#include "emu/lib/rights.h"

#define LINGER 60 /* seconds */

/* A TCP connection whose peer does not read and never acknowledges the FIN: close() waits for LINGER seconds. */
static inline int slow_socket(int *peer)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct linger linger = { 1, LINGER };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd, size = 4096;
	socklen_t len = sizeof(sa);
	static char bytes[65536];

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&sa, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&sa, &len) || connect(fd, (struct sockaddr *)&sa, len))
		exit(1);
	*peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

/* Passes @n descriptors with one byte. */
static inline bool pass(int sock, const int *fds, u32 n)
{
	RIGHTS_CONTROL(control, PASSED_MAX) = { 0 };
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	rights_put(&msg, control, fds, n);
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == 1;
}

#endif

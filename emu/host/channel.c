// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The pair of sockets that stands for a file of the kernel from which a program reads or awaits events. */
#include "emu/host/channel.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * poll() reports a socket as writable while its buffer has room, even if the peer accepts no more. The kernel's files
 * never are.
 */
static void app_fill(int app)
{
	static const char bytes[1024];
	int least = 1; /* the kernel has a minimum */

	setsockopt(app, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
	while (send(app, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
}

int uv_channel_create(int *daemon, int *app)
{
	int ends[2];

	/* As from the kernel's file, a read returns one event. A write fails without SIGPIPE, which streams have. */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	app_fill(ends[1]);
	shutdown(ends[0], SHUT_RD);
	*daemon = ends[0];
	*app = ends[1];
	return 0;
}

/* A socket that is closed with bytes unread gives its peer ECONNRESET, before the events that are left. */
void uv_channel_close(int daemon)
{
	char bytes[1024];

	while (recv(daemon, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	close(daemon);
}

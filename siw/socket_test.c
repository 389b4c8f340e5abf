// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sockets of streams fill the table of descriptors, and a client passes the maximum number with a message. */
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/lib/passed_fixture.h"
#include "emu/lib/row.h"
#include "siw/siw_internal.h"

#define LIMIT 9500 /* soft limit of descriptors: far from those of a process that has just begun */

/* A connection within the process, of which one end is a stream's socket, and stays open: its descriptor. */
static int connection(int listener, const struct hca_iw_addr *at, bool accepted)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(at->port) };
	struct hca_iw_addr from = { .ip = at->ip };
	int own, peer;

	if (accepted) {
		peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (peer < 0 || connect(peer, (struct sockaddr *)&sa, sizeof(sa)))
			return -1;
		own = siw_socket_accept(listener);
	} else {
		own = siw_socket_connect(&from, at);
		if (own < 0 || poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, -1) < 0)
			return -1;
		peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	}
	siw_socket_reset(peer);
	return own;
}

/* Exits with 0 if no descriptor of the message is truncated. */
static void fill(bool accepted)
{
	struct hca_iw_addr at = { .ip = ip_addr_v4(INADDR_LOOPBACK) };
	int s[2], fds[PASSED_MAX] = { 0 }, listener = siw_socket_listen(&at), last = 0;
	struct rlimit limit;
	char c;
	const struct iovec iov = { &c, 1 };
	u32 nfds;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = LIMIT;
	if (listener < 0 || setrlimit(RLIMIT_NOFILE, &limit) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s))
		_exit(2);
	siw_socket_names(listener, &at, NULL);
	if (!pass(s[1], fds, 0) || passed_recv(s[0], &iov, fds, PASSED_MAX, &nfds) != 1)
		_exit(2);
	while (last >= 0 && last < LIMIT - PASSED_MAX / 2)
		last = connection(listener, &at, accepted);
	if (last < 0 || !pass(s[1], fds, PASSED_MAX) || passed_recv(s[0], &iov, fds, PASSED_MAX, &nfds) != 1)
		_exit(2);
	_exit(nfds != PASSED_MAX);
}

static bool room_after(bool accepted)
{
	struct rlimit limit;
	int status = -1;
	pid_t pid;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < LIMIT + PASSED_MAX)
		return true;
	pid = fork(); /* the kernel never reduces the table */
	if (!pid)
		fill(accepted);
	return waitpid(pid, &status, 0) == pid && !status;
}

int main(void)
{
	row(500, "a message after many accepted connections", room_after(true));
	row(501, "a message after many that were connected", room_after(false));
	return rows_end();
}

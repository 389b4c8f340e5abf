// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Non-blocking TCP sockets of iWARP streams: listen, connect, accept, socket options, MULPDU (RFC 5044, size
 * considerations).
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "emu/lib/passed.h"
#include "siw/siw_internal.h"

#define SNDBUF_LOCAL (256 << 10) /* the kernel doubles it */

static void addr_of(struct hca_iw_addr *to, const union ip_sockaddr *a)
{
	memset(to, 0, sizeof(*to));
	if (ip_sockaddr_get(&a->sa, &to->ip, &to->port) && a->sa.sa_family == AF_INET6)
		to->scope = a->in6.sin6_scope_id;
}

void siw_socket_names(int fd, struct hca_iw_addr *local, struct hca_iw_addr *remote)
{
	union ip_sockaddr a = { .sa.sa_family = AF_UNSPEC };
	socklen_t len = sizeof(a);

	if (!getsockname(fd, &a.sa, &len))
		addr_of(local, &a);
	len = sizeof(a);
	if (remote && !getpeername(fd, &a.sa, &len))
		addr_of(remote, &a);
}

/* Best effort: unsupported socket options are ignored. */
static void tune(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static int open_bound(const struct hca_iw_addr *addr, bool listen)
{
	union ip_sockaddr a;
	socklen_t len = ip_sockaddr_set(&a.sa, &addr->ip, addr->port, addr->scope);
	int fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, err;

	if (fd < 0)
		return -errno;
	passed_opened();
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a.sa.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (!listen && !addr->port) /* connections to different peers may share a port */
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	if (!bind(fd, &a.sa, len))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int siw_socket_listen(const struct hca_iw_addr *addr)
{
	int fd = open_bound(addr, true), err;

	if (fd < 0 || !listen(fd, SIW_BACKLOG))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int siw_socket_connect(struct hca_iw_addr *src, const struct hca_iw_addr *dst)
{
	union ip_sockaddr a;
	socklen_t len = ip_sockaddr_set(&a.sa, &dst->ip, dst->port, dst->scope);
	int fd = open_bound(src, false), err;

	if (fd < 0)
		return fd;
	tune(fd);
	if (!connect(fd, &a.sa, len) || errno == EINPROGRESS) {
		siw_socket_names(fd, src, NULL);
		return fd;
	}
	err = -errno;
	close(fd);
	return err;
}

int siw_socket_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -errno;
	passed_opened();
	tune(fd);
	return fd;
}

u32 siw_socket_segment(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int bytes = SNDBUF_LOCAL;

	/* not the MSS of TCP_INFO: the receive window, which is small at first, limits it */
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) || info.tcpi_pmtu < 2 * SIW_SEGMENT - 1)
		return SIW_SEGMENT;
	/*
	 * TCP's autotuning would choose a send buffer larger than the processor's cache, which slows a stream within
	 * the machine.
	 */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return SIW_SEGMENT_MAX;
}

void siw_socket_reset(int fd)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

ssize_t siw_socket_send(int fd, struct iovec *iov, u32 n)
{
	const struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t took;

	do
		took = sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (took < 0 && errno == EINTR);
	return took < 0 ? -errno : took;
}

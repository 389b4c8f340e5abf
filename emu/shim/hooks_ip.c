// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Socket calls with IP addresses. */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "emu/shim/shim.h"

/* glibc declares these with a union of pointers for the address. */
#define ADDR(a) ((a).__sockaddr__)

static bool is_unbound(int fd)
{
	struct sockaddr_storage st;
	socklen_t len = sizeof(st);

	if (REAL(getsockname)(fd, (struct sockaddr *)&st, &len))
		return false;
	if (st.ss_family == AF_INET)
		return ((struct sockaddr_in *)&st)->sin_addr.s_addr == INADDR_ANY &&
		       !((struct sockaddr_in *)&st)->sin_port;
	return st.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&((struct sockaddr_in6 *)&st)->sin6_addr) &&
	       !((struct sockaddr_in6 *)&st)->sin6_port;
}

/* Binds an unbound socket to this host's address, so that the peer does not see 127.0.0.1. */
static void bind_own(int fd, sa_family_t family, bool v4)
{
	struct sockaddr_storage own;
	int on = 1;

	if (!is_unbound(fd) || !(shim_addr_own(&own, family, v4) || shim_addr_own(&own, family, !v4)))
		return;
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	REAL(bind)
	(fd, (struct sockaddr *)&own, family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
}

int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	struct sockaddr_storage to;
	struct in6_addr a;
	int saved = errno;

	if (shim_netlink(fd))
		return 0;
	if (!shim_addr_out(&to, ADDR(addr), len) && !shim_bind_localhost(&to, ADDR(addr), len))
		return REAL(connect)(fd, ADDR(addr), len);
	a = shim_addr_v6(ADDR(addr));
	bind_own(fd, to.ss_family, IN6_IS_ADDR_V4MAPPED(&a));
	errno = saved;
	return REAL(connect)(fd, (struct sockaddr *)&to, len);
}

/*
 * Sends a message; an IPv4 datagram of a socket without a bound address gets this host's source address (IP_PKTINFO).
 */
static ssize_t send_from_own(int fd, const struct msghdr *msg, int flags)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control = { 0 };
	struct sockaddr_storage own, bound;
	socklen_t len = sizeof(bound);
	struct in_pktinfo info = { 0 };
	struct msghdr m = *msg;

	if (msg->msg_controllen || REAL(getsockname)(fd, (struct sockaddr *)&bound, &len) ||
	    bound.ss_family != AF_INET || ((struct sockaddr_in *)&bound)->sin_addr.s_addr != INADDR_ANY ||
	    !shim_addr_own(&own, AF_INET, true))
		return REAL(sendmsg)(fd, msg, flags);
	info.ipi_spec_dst = ((struct sockaddr_in *)&own)->sin_addr;
	control.hdr.cmsg_level = IPPROTO_IP;
	control.hdr.cmsg_type = IP_PKTINFO;
	control.hdr.cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(&control.hdr), &info, sizeof(info));
	m.msg_control = &control;
	m.msg_controllen = sizeof(control);
	return REAL(sendmsg)(fd, &m, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct sockaddr_storage to;
	struct msghdr m;

	if (msg && shim_netlink(fd))
		return shim_netlink_send(fd, msg);
	if (!msg || !shim_addr_out(&to, msg->msg_name, msg->msg_namelen))
		return REAL(sendmsg)(fd, msg, flags);
	m = *msg;
	m.msg_name = &to;
	return send_from_own(fd, &m, flags);
}

ssize_t sendto(int fd, const void *buf, size_t n, int flags, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	struct iovec iov = { (void *)(uintptr_t)buf, n };
	struct sockaddr_storage to;
	struct msghdr m = { .msg_name = &to, .msg_namelen = len, .msg_iov = &iov, .msg_iovlen = 1 };

	if (shim_netlink(fd)) {
		m.msg_name = (void *)(uintptr_t)ADDR(addr);
		return shim_netlink_send(fd, &m);
	}
	if (!shim_addr_out(&to, ADDR(addr), len))
		return REAL(sendto)(fd, buf, n, flags, ADDR(addr), len);
	return send_from_own(fd, &m, flags);
}

ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	return sendto(fd, buf, n, flags, (struct sockaddr *)NULL, 0);
}

ssize_t recvfrom(int fd, void *buf, size_t n, int flags, __SOCKADDR_ARG addr, socklen_t *len)
{
	socklen_t room = ADDR(addr) && len ? *len : 0;
	ssize_t got;

	do
		got = REAL(recvfrom)(fd, buf, n, flags, ADDR(addr), len);
	while (shim_netlink_more(fd, got));
	if (got < 0 || !ADDR(addr) || !len)
		return got;
	if (shim_netlink(fd)) {
		*len = room;
		shim_netlink_name(fd, ADDR(addr), len, false);
	} else {
		shim_addr_in(ADDR(addr), *len);
	}
	return got;
}

/*
 * What recvfrom() is in programs that are compiled with _FORTIFY_SOURCE, where the compiler does not know that @n fits.
 */
ssize_t __recvfrom_chk(int fd, void *restrict buf, size_t n, size_t room, int flags, __SOCKADDR_ARG addr,
		       socklen_t *restrict len);
ssize_t __recvfrom_chk(int fd, void *restrict buf, size_t n, size_t room, int flags, __SOCKADDR_ARG addr,
		       socklen_t *restrict len)
{
	return n <= room ? recvfrom(fd, buf, n, flags, addr, len)
			 : REAL(__recvfrom_chk)(fd, buf, n, room, flags, addr, len);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	socklen_t room = msg ? msg->msg_namelen : 0;
	ssize_t got;

	do
		got = REAL(recvmsg)(fd, msg, flags);
	while (shim_netlink_more(fd, got));
	if (got >= 0 && msg->msg_name && shim_netlink(fd)) {
		msg->msg_namelen = room;
		shim_netlink_name(fd, msg->msg_name, &msg->msg_namelen, false);
	} else if (got >= 0 && msg->msg_name)
		shim_addr_in(msg->msg_name, msg->msg_namelen);
	return got;
}

#define NAMES(name, own)                                                    \
	int name(int fd, __SOCKADDR_ARG addr, socklen_t *len)               \
	{                                                                   \
		int got;                                                    \
                                                                            \
		if (shim_netlink(fd) && ADDR(addr) && len)                  \
			return shim_netlink_name(fd, ADDR(addr), len, own); \
		got = REAL(name)(fd, ADDR(addr), len);                      \
                                                                            \
		if (got >= 0 && ADDR(addr) && len)                          \
			shim_addr_in(ADDR(addr), *len);                     \
		return got;                                                 \
	}
NAMES(getsockname, true)
NAMES(getpeername, false)

int accept4(int fd, __SOCKADDR_ARG addr, socklen_t *len, int flags)
{
	int got = REAL(accept4)(fd, ADDR(addr), len, flags);

	if (got >= 0 && ADDR(addr) && len)
		shim_addr_in(ADDR(addr), *len);
	return got;
}

int accept(int fd, __SOCKADDR_ARG addr, socklen_t *len)
{
	return accept4(fd, addr, len, 0);
}

/* Sends messages to the fabric's hosts, each of which needs its address translated, and to netlink one at a time. */
int sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	struct sockaddr_storage to;
	bool netlink = shim_netlink(fd);
	unsigned int i;
	ssize_t sent;

	for (i = 0; i < n; i++)
		if (netlink || shim_addr_out(&to, msgs[i].msg_hdr.msg_name, msgs[i].msg_hdr.msg_namelen))
			break;
	if (i == n)
		return REAL(sendmmsg)(fd, msgs, n, flags);
	for (i = 0; i < n; i++) {
		sent = sendmsg(fd, &msgs[i].msg_hdr, flags);
		if (sent < 0)
			return i ? (int)i : -1;
		msgs[i].msg_len = (unsigned int)sent;
	}
	return (int)n;
}

int recvmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags, struct timespec *timeout)
{
	socklen_t room = sizeof(struct sockaddr_storage);
	bool netlink = shim_netlink(fd);
	unsigned int j;
	int got, i;

	for (j = 0; netlink && j < n; j++)
		if (msgs[j].msg_hdr.msg_name && msgs[j].msg_hdr.msg_namelen < room)
			room = msgs[j].msg_hdr.msg_namelen;
	do
		got = REAL(recvmmsg)(fd, msgs, n, flags, timeout);
	while (shim_netlink_more(fd, got));
	for (i = 0; i < got; i++) {
		struct msghdr *m = &msgs[i].msg_hdr;

		if (m->msg_name && netlink) {
			m->msg_namelen = room;
			shim_netlink_name(fd, m->msg_name, &m->msg_namelen, false);
		} else if (m->msg_name) {
			shim_addr_in(m->msg_name, m->msg_namelen);
		}
	}
	return got;
}

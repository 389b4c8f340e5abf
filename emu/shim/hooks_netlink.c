// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sockets of NETLINK_RDMA, by which rdma-core and rdma(8) request devices, and of NETLINK_ROUTE, by which ip(8) and
 * libraries request interfaces, addresses and routes: the daemon responds (emu/host/netlink.c). The descriptor is one
 * end of a pair of local sockets, so that the kernel implements poll() and receiving; sent messages are written to the
 * daemon, and addresses are translated to those of netlink. A host without network interfaces of its own uses the
 * machine's, and the machine's NETLINK_ROUTE.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/shim/shim.h"

int socket(int domain, int type, int protocol)
{
	int flags = (type & SOCK_CLOEXEC ? O_CLOEXEC : 0) | (type & SOCK_NONBLOCK ? O_NONBLOCK : 0), fd;
	struct shim_file *f;

	if (domain != AF_NETLINK || !shim_active() ||
	    !(protocol == NETLINK_RDMA || (protocol == NETLINK_ROUTE && shim_has_netdevs())))
		return REAL(socket)(domain, type, protocol);
	fd = shim_open(UV_NETLINK, (unsigned int)protocol, flags);
	f = shim_file_get(fd);
	if (f)
		f->netlink.port = (unsigned int)getpid();
	shim_file_put(f);
	return fd;
}

bool shim_netlink(int fd)
{
	struct shim_file *f = shim_file_get(fd);
	bool netlink = f && f->kind == UV_NETLINK;

	shim_file_put(f);
	return netlink;
}

/* Multicast groups have no events. A program may choose its port ID, as libnl does. */
int shim_netlink_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct shim_file *f = shim_file_get(fd);
	struct sockaddr_nl nl;
	int err = 0;

	if (!addr || len < sizeof(nl)) {
		err = EINVAL;
	} else if (f) {
		memcpy(&nl, addr, sizeof(nl));
		f->netlink.groups = nl.nl_groups;
		f->netlink.port = nl.nl_pid ? nl.nl_pid : f->netlink.port;
		err = nl.nl_family == AF_NETLINK ? 0 : EINVAL;
	}
	shim_file_put(f);
	errno = err ? err : errno;
	return err ? -1 : 0;
}

static struct sockaddr_nl netlink_name(const struct shim_file *f)
{
	return (struct sockaddr_nl){ .nl_family = AF_NETLINK,
				     .nl_pid = f->netlink.port,
				     .nl_groups = f->netlink.groups };
}

int shim_netlink_name(int fd, struct sockaddr *addr, socklen_t *len, bool own)
{
	struct sockaddr_nl nl = { .nl_family = AF_NETLINK };
	struct shim_file *f = shim_file_get(fd);

	if (f && own)
		nl = netlink_name(f);
	shim_file_put(f);
	memcpy(addr, &nl, *len < sizeof(nl) ? *len : sizeof(nl));
	*len = sizeof(nl);
	return 0;
}

static ssize_t netlink_send(struct shim_file *f, const struct msghdr *msg)
{
	const struct sockaddr_nl own = netlink_name(f);
	size_t len = sizeof(own), i;
	ssize_t n;
	char *buf;

	for (i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	buf = malloc(len);
	if (!buf) {
		errno = ENOMEM;
		return -1;
	}
	memcpy(buf, &own, sizeof(own));
	for (len = sizeof(own), i = 0; i < msg->msg_iovlen; len += msg->msg_iov[i++].iov_len)
		memcpy(buf + len, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
	n = shim_write(f, buf, len);
	free(buf);
	return n < 0 ? n : n - (ssize_t)sizeof(own);
}

ssize_t shim_netlink_send(int fd, const struct msghdr *msg)
{
	struct shim_file *f = shim_file_get(fd);
	ssize_t n = f ? netlink_send(f, msg) : -1;

	errno = f ? errno : EBADF;
	shim_file_put(f);
	return n;
}

/* Options of netlink have no effect: they only select additional attributes of responses, and events. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return level == SOL_NETLINK && shim_netlink(fd) ? 0 : REAL(setsockopt)(fd, level, name, value, len);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct shim_file *f = level == SOL_NETLINK || level == SOL_SOCKET ? shim_file_get(fd) : NULL;
	int got = -1;

	if (f && f->kind == UV_NETLINK)
		got = level == SOL_NETLINK  ? 0
		      : name == SO_DOMAIN   ? AF_NETLINK
		      : name == SO_TYPE     ? SOCK_RAW
		      : name == SO_PROTOCOL ? (int)f->unit
					    : -1;
	shim_file_put(f);
	if (got < 0 || !value || !len || *len < sizeof(got))
		return REAL(getsockopt)(fd, level, name, value, len);
	memcpy(value, &got, sizeof(got));
	*len = sizeof(got);
	return 0;
}

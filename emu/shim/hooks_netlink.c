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
#include <limits.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define TYPE_MASK 0xf /* of SOCK_*, without flags: the kernel's SOCK_TYPE_MASK */
#define GROUPS    32  /* that have a bit; no event of others comes */

int socket(int domain, int type, int protocol)
{
	int flags = (type & SOCK_CLOEXEC ? O_CLOEXEC : 0) | (type & SOCK_NONBLOCK ? O_NONBLOCK : 0), fd;
	int kind = type & TYPE_MASK;
	struct shim_file *f;

	if (domain != AF_NETLINK || !shim_active() || (kind != SOCK_RAW && kind != SOCK_DGRAM) ||
	    !(protocol == NETLINK_RDMA || (protocol == NETLINK_ROUTE && shim_has_netdevs())))
		return REAL(socket)(domain, type, protocol);
	fd = shim_open(UV_NETLINK, (unsigned int)protocol, flags);
	f = shim_file_get(fd);
	if (f)
		f->netlink.type = kind;
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

/* The daemon sends the events of these groups. 0 or -errno. */
static int groups_set(struct shim_file *f, unsigned int groups)
{
	const struct shim_request req = { .op = UV_IOCTL, .arg = groups };
	int err = groups == f->netlink.groups ? 0 : shim_call(f, &req);

	if (!err)
		f->netlink.groups = groups;
	return err < 0 ? err : 0;
}

/* Gives the socket a number, at the first call that needs it. */
static void number_set(struct shim_file *f, unsigned int number)
{
	if (!f->netlink.port)
		f->netlink.port = number ? number : (unsigned int)getpid();
}

/* A program may choose its number, as libnl does. */
int shim_netlink_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct shim_file *f = shim_file_get(fd);
	struct sockaddr_nl nl;
	int err = 0;

	if (!addr || len < sizeof(nl)) {
		err = -EINVAL;
	} else if (f) {
		memcpy(&nl, addr, sizeof(nl));
		if (nl.nl_family == AF_NETLINK && (!f->netlink.port || nl.nl_pid == f->netlink.port))
			err = groups_set(f, nl.nl_groups);
		else
			err = -EINVAL;
		if (!err)
			number_set(f, nl.nl_pid);
	}
	shim_file_put(f);
	errno = err ? -err : errno;
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

static ssize_t netlink_send(struct shim_file *f, int fd, const struct msghdr *msg)
{
	const struct sockaddr_nl *to = msg->msg_name;
	struct sockaddr_nl own;
	size_t len = sizeof(own), i;
	ssize_t n;
	char *buf;

	if (to && msg->msg_namelen >= sizeof(*to) && to->nl_pid) { /* not to the kernel */
		errno = ECONNREFUSED;
		return -1;
	}
	number_set(f, 0);
	own = netlink_name(f);
	for (i = 0; i < msg->msg_iovlen && len <= UV_MESSAGE_MAX; i++)
		len += msg->msg_iov[i].iov_len < UV_MESSAGE_MAX ? msg->msg_iov[i].iov_len : UV_MESSAGE_MAX;
	if (len > UV_MESSAGE_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	buf = malloc(len);
	if (!buf) {
		errno = ENOMEM;
		return -1;
	}
	memcpy(buf, &own, sizeof(own));
	for (len = sizeof(own), i = 0; i < msg->msg_iovlen; len += msg->msg_iov[i++].iov_len)
		memcpy(buf + len, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
	n = shim_write(f, fd, buf, len);
	free(buf);
	return n < 0 ? n : n - (ssize_t)sizeof(own);
}

ssize_t shim_netlink_send(int fd, const struct msghdr *msg)
{
	struct shim_file *f = shim_file_get(fd);
	ssize_t n = f ? netlink_send(f, fd, msg) : -1;

	errno = f ? errno : EBADF;
	shim_file_put(f);
	return n;
}

bool shim_netlink_more(int fd, ssize_t got)
{
	int err = errno;
	struct shim_file *f = got >= 0 || err == EAGAIN ? shim_file_get(fd) : NULL;
	bool netlink = f && f->kind == UV_NETLINK, more = netlink && got < 0 && f->netlink.received;

	if (netlink)
		f->netlink.received = got >= 0;
	if (more)
		more = !shim_call(f, &(struct shim_request){ .op = UV_IOCTL, .arg = f->netlink.groups });
	shim_file_put(f);
	errno = err;
	return more;
}

/* An option of netlink: membership in a group. Others only choose what else the answers hold. 0 or -errno. */
static int option_set(struct shim_file *f, int name, const void *value, socklen_t len)
{
	unsigned int group, bit;

	if (name != NETLINK_ADD_MEMBERSHIP && name != NETLINK_DROP_MEMBERSHIP)
		return name > 0 && name <= NETLINK_GET_STRICT_CHK ? 0 : -ENOPROTOOPT;
	if (!value || len < sizeof(group))
		return -EINVAL;
	memcpy(&group, value, sizeof(group));
	if (!group)
		return -EINVAL;
	bit = group <= GROUPS ? 1u << (group - 1) : 0;
	return groups_set(f, name == NETLINK_ADD_MEMBERSHIP ? f->netlink.groups | bit : f->netlink.groups & ~bit);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct shim_file *f = level == SOL_NETLINK ? shim_file_get(fd) : NULL;
	bool netlink = f && f->kind == UV_NETLINK;
	int err = netlink ? option_set(f, name, value, len) : 0;

	shim_file_put(f);
	if (!netlink)
		return REAL(setsockopt)(fd, level, name, value, len);
	errno = err ? -err : errno;
	return err ? -1 : 0;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct shim_file *f = level == SOL_NETLINK || level == SOL_SOCKET ? shim_file_get(fd) : NULL;
	int got = -1;

	if (f && f->kind == UV_NETLINK)
		got = level == SOL_NETLINK  ? name == NETLINK_LIST_MEMBERSHIPS ? (int)(f->netlink.groups & INT_MAX) : 0
		      : name == SO_DOMAIN   ? AF_NETLINK
		      : name == SO_TYPE     ? f->netlink.type
		      : name == SO_PROTOCOL ? (int)f->unit
					    : -1;
	shim_file_put(f);
	if (got < 0 || !value || !len || *len < sizeof(got))
		return REAL(getsockopt)(fd, level, name, value, len);
	memcpy(value, &got, sizeof(got));
	*len = sizeof(got);
	return 0;
}

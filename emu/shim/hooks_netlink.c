// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sockets of NETLINK_RDMA, by which rdma-core and rdma(8) ask for devices: the daemon answers (emu/host/nldev.c). The descriptor is one
 * end of a pair of local sockets, so that poll() and receiving calls are the kernel's; what is sent goes as a write to the daemon, and
 * addresses are those that a netlink socket has.
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
	if (domain != AF_NETLINK || protocol != NETLINK_RDMA || !shim_active())
		return REAL(socket)(domain, type, protocol);
	return shim_open(UV_NETLINK, 0,
			 (type & SOCK_CLOEXEC ? O_CLOEXEC : 0) | (type & SOCK_NONBLOCK ? O_NONBLOCK : 0));
}

bool shim_netlink(int fd)
{
	struct shim_file *f = shim_file_get(fd);
	bool netlink = f && f->kind == UV_NETLINK;

	shim_file_put(f);
	return netlink;
}

int shim_netlink_name(struct sockaddr *addr, socklen_t *len, bool own)
{
	struct sockaddr_nl nl = { .nl_family = AF_NETLINK, .nl_pid = own ? (unsigned int)getpid() : 0 };

	memcpy(addr, &nl, *len < sizeof(nl) ? *len : sizeof(nl));
	*len = sizeof(nl);
	return 0;
}

ssize_t shim_netlink_send(int fd, const struct msghdr *msg)
{
	struct shim_file *f = shim_file_get(fd);
	size_t len = 0, i;
	ssize_t n = -1;
	char *buf;

	for (i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	buf = malloc(len ? len : 1);
	if (!f || !buf) {
		errno = f ? ENOMEM : EBADF;
		goto out;
	}
	for (len = i = 0; i < msg->msg_iovlen; len += msg->msg_iov[i++].iov_len)
		memcpy(buf + len, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
	n = shim_write(f, buf, len);
out:
	free(buf);
	shim_file_put(f);
	return n;
}

/* Options of netlink only choose what else the answers hold. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return level == SOL_NETLINK && shim_netlink(fd) ? 0 : REAL(setsockopt)(fd, level, name, value, len);
}

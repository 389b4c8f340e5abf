// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * QMP client: sets the carrier of the card (set_link) in QEMU, since vhost-user has no message for it. Responses are
 * ignored.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/lib/passed.h"
#include "emu/virtio/net/vnet_internal.h"

void vnet_monitor_close(struct vnet_monitor *m)
{
	if (!*m->netdev)
		return;
	loop_fd_del(&m->fd);
	passed_close_socket(m->fd.fd, 0);
	*m->netdev = 0;
}

static void monitor_on_readable(struct loop_fd *w, u32 events, struct now now)
{
	struct vnet_monitor *m = container_of(w, struct vnet_monitor, fd);
	char answer[4096];
	const struct iovec iov = { answer, sizeof(answer) };
	ssize_t n = passed_recv_none(w->fd, &iov);

	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		vnet_monitor_close(m);
}

/* Sends without blocking: a line fits in the socket, unless QEMU has stopped reading. */
static void monitor_send(struct vnet_monitor *m, const char *line, int len)
{
	if (send(m->fd.fd, line, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) != len)
		vnet_monitor_close(m);
}

void vnet_monitor_set_link(struct vnet_monitor *m, bool up)
{
	char line[128];
	int n;

	if (!*m->netdev)
		return;
	n = snprintf(line, sizeof(line), "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"%s\", \"up\": %s}}\n",
		     m->netdev, up ? "true" : "false");
	monitor_send(m, line, n);
}

static bool is_name(const char *s)
{
	while (isalnum((unsigned char)*s) || *s == '-' || *s == '_')
		s++;
	return !*s;
}

int vnet_monitor_open(struct vnet_monitor *m, struct loop *loop, int fd, const char *netdev)
{
	static const char hello[] = "{\"execute\": \"qmp_capabilities\"}\n";
	int err = 0;

	vnet_monitor_close(m);
	if (!*netdev || strlen(netdev) >= sizeof(m->netdev) || !is_name(netdev))
		err = -EINVAL;
	m->fd = (struct loop_fd){ .fd = fd, .fn = monitor_on_readable };
	if (!err)
		err = loop_fd_add(loop, &m->fd, EPOLLIN);
	if (err) {
		close(fd);
		return err;
	}
	strcpy(m->netdev, netdev);
	monitor_send(m, hello, sizeof(hello) - 1);
	return 0;
}

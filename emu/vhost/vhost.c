// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The socket of a vhost-user device: connections, and the bytes of messages. */
#include "emu/vhost/vhost.h"
#include "emu/lib/rights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/vhost/internal.h"

static void drop_fds(struct vhost *v)
{
	u32 i;

	for (i = 0; i < v->nfds; i++) {
		if (v->fds[i] >= 0)
			close(v->fds[i]);
	}
	v->nfds = 0;
}

static void disconnect(struct vhost *v)
{
	u32 i;

	if (v->conn.fd < 0)
		return;
	for (i = 0; i < v->ops->queues; i++)
		vhost_queue_reset(&v->q[i]);
	vhost_memory_clear(v);
	v->ops->memory(v->ctx);
	drop_fds(v);
	loop_fd_del(&v->conn);
	close(v->conn.fd);
	v->conn.fd = -1;
	if (v->req_fd >= 0)
		close(v->req_fd);
	v->req_fd = -1;
	v->got = 0;
	v->stats.lost_memory += v->lost;
	v->lost = false;
	v->features = v->protocol = 0;
}

/* Reads on: 1 when something came, 0 when nothing is there, -errno at the end. */
static int read_some(struct vhost *v)
{
	RIGHTS_CONTROL(control, VHOST_FDS_MAX);
	bool head = v->got < sizeof(v->hdr);
	u32 at = head ? v->got : v->got - (u32)sizeof(v->hdr);
	struct iovec iov = { head ? (u8 *)&v->hdr + at : (u8 *)&v->in + at,
			     (head ? sizeof(v->hdr) : v->hdr.size) - at };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	ssize_t n = recvmsg(v->conn.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!n)
		return -EPIPE;
	v->nfds += rights_get(&msg, v->fds + v->nfds, VHOST_FDS_MAX - v->nfds);
	v->got += (u32)n;
	return 1;
}

static int header_ok(const struct vhost *v)
{
	return (v->hdr.flags & VHOST_MSG_VERSION_MASK) == VHOST_MSG_VERSION && v->hdr.size <= sizeof(v->in);
}

static int read_messages(struct vhost *v)
{
	int n;

	do {
		n = read_some(v);
		if (n <= 0)
			return n;
		if (v->got == sizeof(v->hdr) && !header_ok(v))
			return -EBADMSG;
		if (v->got < sizeof(v->hdr) || v->got < sizeof(v->hdr) + v->hdr.size)
			continue;
		memset((u8 *)&v->in + v->hdr.size, 0, sizeof(v->in) - v->hdr.size);
		n = vhost_message(v);
		drop_fds(v);
		v->got = 0;
	} while (n >= 0);
	return n;
}

static const char *circumstance(const struct vhost *v, int err)
{
	if (v->lost)
		return ", and before it its memory";
	return err == -EBADMSG ? ": no vhost-user message" : "";
}

static void on_conn(struct loop_fd *w, u32 events, struct now now)
{
	struct vhost *v = container_of(w, struct vhost, conn);
	int err = read_messages(v);

	if (err < 0) {
		log_at(LOG_INFO, v->path, "the guest has gone%s", circumstance(v, err));
		disconnect(v);
	}
}

static void on_listen(struct loop_fd *w, u32 events, struct now now)
{
	struct vhost *v = container_of(w, struct vhost, listener);
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (v->conn.fd >= 0) {
		log_at(LOG_WARN, v->path, "a second guest is refused");
		close(fd);
		return;
	}
	v->conn.fd = fd;
	v->stats.connections++;
	if (loop_fd_add(v->loop, &v->conn, EPOLLIN)) {
		close(fd);
		v->conn.fd = -1;
	}
}

static int listen_at(struct vhost *v)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	if (strlen(v->path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	memcpy(sa.sun_path, v->path, strlen(v->path) + 1);
	v->listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (v->listener.fd < 0)
		return -errno;
	unlink(v->path);
	if (bind(v->listener.fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(v->listener.fd, 4))
		return -errno;
	return loop_fd_add(v->loop, &v->listener, EPOLLIN);
}

struct vhost *vhost_create(struct loop *loop, const char *path, const struct vhost_ops *ops, void *ctx)
{
	struct vhost *v = calloc(1, sizeof(*v));
	u32 i;
	int err;

	if (!v)
		return NULL;
	v->loop = loop;
	v->ops = ops;
	v->ctx = ctx;
	v->req_fd = v->conn.fd = -1;
	v->conn.fn = on_conn;
	v->listener = (struct loop_fd){ .fd = -1, .fn = on_listen };
	for (i = 0; i < VHOST_QUEUES_MAX; i++)
		vhost_queue_init(v, i);
	err = (size_t)snprintf(v->path, sizeof(v->path), "%s", path) < sizeof(v->path) ? listen_at(v) : -ENAMETOOLONG;
	if (!err) {
		vhost_lost_watch(v);
		return v;
	}
	if (v->listener.fd >= 0)
		close(v->listener.fd);
	free(v);
	errno = -err;
	return NULL;
}

void vhost_destroy(struct vhost *v)
{
	if (!v)
		return;
	disconnect(v);
	vhost_lost_unwatch(v);
	loop_fd_del(&v->listener);
	close(v->listener.fd);
	unlink(v->path);
	free(v);
}

bool vhost_has_feature(const struct vhost *v, u32 bit)
{
	return v->features >> bit & 1;
}

bool vhost_connected(const struct vhost *v)
{
	return v->conn.fd >= 0;
}

const char *vhost_path(const struct vhost *v)
{
	return v->path;
}

void vhost_stats(const struct vhost *v, struct vhost_stats *st)
{
	*st = v->stats;
}

void vhost_queue_stats(const struct vhost *v, u32 queue, struct vhost_queue_stats *st)
{
	*st = v->queue_stats[queue];
}

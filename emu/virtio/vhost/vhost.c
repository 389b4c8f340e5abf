// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The socket of a vhost-user device: connections, and the bytes of messages. */
#include "emu/virtio/vhost/vhost.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "emu/virtio/vhost/vhost_internal.h"

static void drop_fds(struct vhost *v)
{
	u32 i;

	for (i = 0; i < v->nfds; i++)
		passed_close(v->fds[i], v->pid);
	v->nfds = 0;
}

static void vhost_disconnect(struct vhost *v)
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
	passed_close_socket(v->conn.fd, v->pid);
	v->conn.fd = -1;
	passed_close(v->req_fd, v->pid);
	v->req_fd = -1;
	v->got = 0;
	v->stats.lost_memory += v->lost;
	v->lost = false;
	v->features = v->protocol = 0;
}

/* Reads on: 1 when something came, 0 when nothing is there, -errno at the end. */
static int read_some(struct vhost *v)
{
	bool head = v->got < sizeof(v->hdr);
	u32 at = head ? v->got : v->got - (u32)sizeof(v->hdr);
	struct iovec iov = { head ? (u8 *)&v->hdr + at : (u8 *)&v->in + at,
			     (head ? sizeof(v->hdr) : v->hdr.size) - at };
	u32 nfds;
	ssize_t n = passed_recv(v->conn.fd, &iov, v->fds + v->nfds, VHOST_FDS_MAX - v->nfds, &nfds);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	v->nfds += nfds;
	if (!n)
		return -EPIPE;
	if (passed_refused(v->pid))
		return -EMFILE;
	v->got += (u32)n;
	return 1;
}

/* What is left in the socket waits for the loop's next iteration. */
static int read_messages(struct vhost *v)
{
	u32 budget = VHOST_TURN;
	int n = 0;

	while (n >= 0 && budget--) {
		n = read_some(v);
		if (n <= 0)
			return n;
		if (v->got == sizeof(v->hdr) &&
		    ((v->hdr.flags & VHOST_MSG_VERSION_MASK) != VHOST_MSG_VERSION || v->hdr.size > sizeof(v->in)))
			return -EBADMSG;
		if (v->got < sizeof(v->hdr) || v->got < sizeof(v->hdr) + v->hdr.size)
			continue;
		memset((u8 *)&v->in + v->hdr.size, 0, sizeof(v->in) - v->hdr.size);
		n = vhost_message(v);
		drop_fds(v);
		v->got = 0;
	}
	return n;
}

static void end_connection(struct vhost *v, int err)
{
	log_at(LOG_INFO, v->path, "the guest has gone%s",
	       v->lost           ? ", and before it its memory"
	       : err == -EBADMSG ? ": no vhost-user message"
				 : "");
	vhost_disconnect(v);
}

static void on_conn(struct loop_fd *w, u32 events, struct now now)
{
	struct vhost *v = container_of(w, struct vhost, conn);
	int err = read_messages(v);

	if (err < 0)
		end_connection(v, err);
}

/* The front end has closed its socket; messages of it that are still unread change nothing any more. */
static bool conn_hung_up(const struct vhost *v)
{
	struct pollfd p = { .fd = v->conn.fd };

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

static void on_listen(struct loop_fd *w, u32 events, struct now now)
{
	struct vhost *v = container_of(w, struct vhost, listener);
	int fd = accept_next(&v->accept, SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (v->conn.fd >= 0 && conn_hung_up(v))
		end_connection(v, -EPIPE);
	if (v->conn.fd >= 0) {
		v->stats.refused_connections++;
		log_at(LOG_WARN, v->path, "a second guest is refused");
		passed_close_socket(fd, passed_owner(fd));
		return;
	}
	v->conn.fd = fd;
	v->pid = passed_owner(fd);
	if (loop_fd_add(v->loop, &v->conn, EPOLLIN)) {
		passed_close_socket(fd, v->pid);
		v->conn.fd = -1;
	}
}

static int listen_at(struct vhost *v)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	static_assert(sizeof(v->path) == sizeof(sa.sun_path), "it has been found to fit");
	memcpy(sa.sun_path, v->path, strlen(v->path) + 1);
	v->listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (v->listener.fd < 0)
		return -errno;
	unlink(v->path);
	if (bind(v->listener.fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(v->listener.fd, 4))
		return -errno;
	accept_init(&v->accept, v->listener.fd);
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
	v->req_fd = v->conn.fd = v->accept.spare = -1;
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
	accept_fini(&v->accept);
	free(v);
	errno = -err;
	return NULL;
}

void vhost_destroy(struct vhost *v)
{
	if (!v)
		return;
	vhost_disconnect(v);
	vhost_lost_unwatch(v);
	loop_fd_del(&v->listener);
	accept_fini(&v->accept);
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

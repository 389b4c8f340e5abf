// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A vhost-user device: connections of its front end, and reassembly of its messages. */
#include "emu/virtio/vhost/vhost.h"

#include <errno.h>
#include <stdlib.h>

#include "emu/lib/passed.h"
#include "emu/virtio/vhost/vhost_internal.h"

static void drop_fds(struct vhost *v)
{
	u32 i;

	for (i = 0; i < v->nfds; i++)
		passed_close(v->fds[i], v->client.pid);
	v->nfds = 0;
}

static void front_closed(struct client_socket *c)
{
	struct vhost *v = container_of(c, struct vhost, client);
	u32 i;

	for (i = 0; i < v->ops->queues; i++)
		vhost_queue_reset(&v->q[i]);
	vhost_memory_clear(v);
	v->ops->memory(v->ctx);
	drop_fds(v);
	passed_close(v->req_fd, c->pid);
	v->req_fd = -1;
	v->got = 0;
	v->features = v->protocol = 0;
}

/* Reads more: 1: bytes were read, 0: none available, -errno: end of the connection. */
static int read_some(struct vhost *v)
{
	bool head = v->got < sizeof(v->hdr);
	u32 at = head ? v->got : v->got - (u32)sizeof(v->hdr);
	struct iovec iov = { head ? (u8 *)&v->hdr + at : (u8 *)&v->in + at,
			     (head ? sizeof(v->hdr) : v->hdr.size) - at };
	u32 nfds;
	ssize_t n = passed_recv(v->client.conn.fd, &iov, v->fds + v->nfds, VHOST_FDS_MAX - v->nfds, &nfds);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	v->nfds += nfds;
	if (!n)
		return -EPIPE;
	if (passed_refused(v->client.pid))
		return -EMFILE;
	v->got += (u32)n;
	return 1;
}

/* The rest stays in the socket until the loop's next iteration. */
static int front_readable(struct client_socket *c)
{
	struct vhost *v = container_of(c, struct vhost, client);
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

static const struct client_socket_ops front_ops = { .protocol = "vhost-user",
						    .readable = front_readable,
						    .closed = front_closed };

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
	v->req_fd = -1;
	for (i = 0; i < VHOST_QUEUES_MAX; i++)
		vhost_queue_init(v, i);
	err = client_socket_init(&v->client, loop, path, &front_ops);
	if (!err)
		return v;
	free(v);
	errno = -err;
	return NULL;
}

void vhost_destroy(struct vhost *v)
{
	if (!v)
		return;
	client_socket_fini(&v->client);
	free(v);
}

bool vhost_has_feature(const struct vhost *v, u32 bit)
{
	return v->features >> bit & 1;
}

bool vhost_connected(const struct vhost *v)
{
	return client_socket_connected(&v->client);
}

const char *vhost_path(const struct vhost *v)
{
	return v->client.path;
}

void vhost_stats(const struct vhost *v, struct vhost_stats *st)
{
	*st = v->stats;
	st->refused_connections = v->client.refused;
	st->lost_memory = v->client.lost_memory;
}

void vhost_queue_stats(const struct vhost *v, u32 queue, struct vhost_queue_stats *st)
{
	*st = v->queue_stats[queue];
}

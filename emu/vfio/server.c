// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A vfio-user device: connections of its client, reassembly of its messages, resets. */
#include <errno.h>
#include <stdlib.h>

#include "emu/lib/passed.h"
#include "emu/vfio/vfio_internal.h"

const char *vfio_counter_name(enum vfio_counter c)
{
	static const char *const names[] = { VFIO_COUNTERS(COUNTER_NAME) };

	return c < VFIO_CTR_NUM ? names[c] : NULL;
}

u64 vfio_counter(const struct vfio_server *s, enum vfio_counter c)
{
	if (c == VFIO_CTR_LOST_MEMORY)
		return s->client.lost_memory;
	return c == VFIO_CTR_REFUSED ? s->client.refused : s->counters[c];
}

/* Keeps the eventfds: QEMU does not set them again when the guest resets the function itself. */
void vfio_server_reset(struct vfio_server *s)
{
	s->counters[VFIO_CTR_RESETS]++;
	s->ops->reset(s->dev);
	vfio_config_reset(s);
	s->pending = 0;
}

static void drop_fds(struct vfio_server *s)
{
	u32 i;

	for (i = 0; i < s->nfds; i++)
		passed_close(s->fds[i], s->client.pid);
	s->nfds = 0;
}

static void qemu_closed(struct client_socket *c)
{
	struct vfio_server *s = container_of(c, struct vfio_server, client);
	bool negotiated = s->negotiated;
	u32 i;

	for (i = 0; i < s->cfg.vectors; i++)
		vfio_irq_set_fd(s, i, -1);
	vfio_map_clear(s);
	drop_fds(s);
	s->queued = 0;
	s->negotiated = false;
	if (negotiated)
		vfio_server_reset(s);
}

/*
 * Takes the message at @at of the queue: its bytes; 0: it is incomplete, -EBADMSG: its size is none that a message has.
 */
static int message_take(struct vfio_server *s, u32 at)
{
	u32 left = s->queued - at;

	if (left < sizeof(s->hdr))
		return 0;
	memcpy(&s->hdr, s->queue + at, sizeof(s->hdr));
	if (s->hdr.size < sizeof(s->hdr) || s->hdr.size > sizeof(s->queue))
		return -EBADMSG;
	if (left < s->hdr.size)
		return 0;
	memcpy(&s->in, s->queue + at + sizeof(s->hdr), s->hdr.size - sizeof(s->hdr));
	return (int)s->hdr.size;
}

static int messages_handle(struct vfio_server *s)
{
	u32 at = 0, nfds = s->nfds;
	int n, err = 0;

	while (!err && (n = message_take(s, at)) > 0) {
		at += (u32)n;
		s->nfds = at == s->queued ? nfds : 0;
		err = vfio_message(s);
		if (at == s->queued)
			drop_fds(s);
		else
			s->nfds = nfds;
	}
	s->queued -= at;
	memmove(s->queue, s->queue + at, s->queued);
	return err ? err : n;
}

/*
 * How much to read. Descriptors end a read (unix(7)), so they belong to the last message that has begun in it. While an
 * incomplete one has some, nothing behind it is read: those of the next message would be taken for its own.
 */
static u32 queue_room(const struct vfio_server *s)
{
	u32 most = min((u32)sizeof(s->queue) - s->queued, (u32)VFIO_TURN);
	struct vfio_hdr hdr;

	if (!s->nfds)
		return most;
	if (s->queued < sizeof(hdr))
		return (u32)sizeof(hdr) - s->queued;
	memcpy(&hdr, s->queue, sizeof(hdr));
	return min(most, hdr.size - s->queued);
}

/*
 * One read takes many messages: a doorbell is one of 40 bytes. What is left in the socket waits for the loop's next
 * iteration.
 */
static int qemu_readable(struct client_socket *c)
{
	struct vfio_server *s = container_of(c, struct vfio_server, client);
	struct iovec iov = { s->queue + s->queued, queue_room(s) };
	u32 nfds;
	ssize_t n = passed_recv(c->conn.fd, &iov, s->fds + s->nfds, VFIO_FDS_MAX - s->nfds, &nfds);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	s->nfds += nfds;
	if (!n)
		return -EPIPE;
	if (passed_refused(c->pid))
		return -EMFILE;
	s->queued += (u32)n;
	return messages_handle(s);
}

static const struct client_socket_ops qemu_ops = { .protocol = "vfio-user",
						   .readable = qemu_readable,
						   .closed = qemu_closed };

struct vfio_server *vfio_server_create(struct loop *loop, const char *path, const struct vfio_config *cfg,
				       const struct vfio_ops *ops, void *dev)
{
	struct vfio_server *s = calloc(1, sizeof(*s));
	u32 i;
	int err;

	if (!s)
		return NULL;
	s->cfg = *cfg;
	s->ops = ops;
	s->dev = dev;
	list_init(&s->files);
	for (i = 0; i < VFIO_VECTORS_MAX; i++)
		s->vector[i] = -1;
	vfio_config_init(s);
	err = client_socket_init(&s->client, loop, path, &qemu_ops);
	if (!err)
		return s;
	free(s);
	errno = -err;
	return NULL;
}

static void no_reset(void *dev) {}

void vfio_server_destroy(struct vfio_server *s)
{
	static const struct vfio_ops none = { .reset = no_reset };

	if (!s)
		return;
	s->ops = &none;
	client_socket_fini(&s->client);
	free(s);
}

bool vfio_connected(const struct vfio_server *s)
{
	return s->negotiated;
}

const char *vfio_path(const struct vfio_server *s)
{
	return s->client.path;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Messages of the vhost-user protocol, a table by request. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "emu/virtio/vhost/vhost_internal.h"

#define VRING_INDEX 0xffu
#define VRING_NO_FD (1u << 8)

/* Result of a handler: more than 0: that many bytes of v->in are the reply; 0: done; less: rejected. */
typedef int handler(struct vhost *v);

static int take_fd(struct vhost *v, u32 i)
{
	int fd = i < v->nfds ? v->fds[i] : -1;

	if (fd >= 0)
		v->fds[i] = -1;
	return fd;
}

static struct vhost_queue *queue_at(struct vhost *v, u64 index)
{
	return index < v->ops->queues ? &v->q[index] : NULL;
}

static int get_features(struct vhost *v)
{
	v->in.num = v->ops->features | BIT_ULL(VIRTIO_RING_INDIRECT) | BIT_ULL(VIRTIO_VERSION_1) |
		    BIT_ULL(VHOST_F_PROTOCOL);
	return sizeof(v->in.num);
}

static int set_features(struct vhost *v)
{
	v->features = v->in.num;
	return 0;
}

static int nothing(struct vhost *v)
{
	return 0;
}

static int reset_owner(struct vhost *v)
{
	u32 i;

	for (i = 0; i < v->ops->queues; i++)
		vhost_queue_stop(&v->q[i]);
	return 0;
}

static int set_mem_table(struct vhost *v)
{
	int err;

	if (v->hdr.size < 8 || v->in.mem.n > VHOST_REGIONS_MAX ||
	    v->hdr.size < 8 + v->in.mem.n * sizeof(v->in.mem.region[0]))
		return -EINVAL;
	err = vhost_memory_set(v, v->in.mem.region, v->in.mem.n, v->fds, v->nfds);
	vhost_queues_remap(v);
	return err;
}

static int set_vring_num(struct vhost *v)
{
	struct vhost_queue *q = queue_at(v, v->in.state.index);
	u32 num = v->in.state.num;

	if (!q || q->running || !num || num > VHOST_NUM_MAX || (num & (num - 1)))
		return -EINVAL;
	vhost_queue_set_num(q, num);
	return 0;
}

static int set_vring_addr(struct vhost *v)
{
	struct vhost_queue *q = queue_at(v, v->in.addr.index);

	if (!q || !q->num)
		return -EINVAL;
	return vhost_queue_set_addr(q, v->in.addr.desc, v->in.addr.avail, v->in.addr.used);
}

static int set_vring_base(struct vhost *v)
{
	struct vhost_queue *q = queue_at(v, v->in.state.index);

	if (!q || q->running)
		return -EINVAL;
	q->last_avail = (u16)v->in.state.num;
	return 0;
}

/* GET_VRING_BASE stops the queue. */
static int get_vring_base(struct vhost *v)
{
	struct vhost_queue *q = queue_at(v, v->in.state.index);

	if (!q)
		return -EINVAL;
	vhost_queue_stop(q);
	vhost_queue_set_kick(q, -1);
	v->in.state.num = q->last_avail;
	return sizeof(v->in.state);
}

static int vring_fd(struct vhost *v, void (*set)(struct vhost_queue *q, int fd))
{
	struct vhost_queue *q = queue_at(v, v->in.num & VRING_INDEX);
	int fd = v->in.num & VRING_NO_FD ? -1 : take_fd(v, 0);

	/* Only an eventfd is sure not to block; a pipe, a socket or a device might. */
	if (!q || (fd >= 0 && passed_kind(fd) != PASSED_EVENTFD)) {
		passed_close(fd, v->client.pid);
		return -EINVAL;
	}
	if (fd >= 0)
		fcntl(fd, F_SETFL, O_NONBLOCK);
	set(q, fd);
	return 0;
}

static int set_vring_kick(struct vhost *v)
{
	return vring_fd(v, vhost_queue_set_kick);
}

static int set_vring_call(struct vhost *v)
{
	return vring_fd(v, vhost_queue_set_call);
}

/* For some devices QEMU itself provides the config space. */
static u64 protocol_features(const struct vhost *v)
{
	return VHOST_PROTOCOL_FEATURES & ~(v->ops->config ? 0 : BIT_ULL(VHOST_PF_CONFIG));
}

static int get_protocol_features(struct vhost *v)
{
	v->in.num = protocol_features(v);
	return sizeof(v->in.num);
}

static int set_protocol_features(struct vhost *v)
{
	v->protocol = v->in.num & protocol_features(v);
	return 0;
}

static int get_queue_num(struct vhost *v)
{
	v->in.num = v->ops->queues;
	return sizeof(v->in.num);
}

static int set_vring_enable(struct vhost *v)
{
	struct vhost_queue *q = queue_at(v, v->in.state.index);

	if (!q)
		return -EINVAL;
	vhost_queue_enable(q, v->in.state.num & 1);
	return 0;
}

static int set_backend_req_fd(struct vhost *v)
{
	passed_close(v->req_fd, v->client.pid);
	v->req_fd = take_fd(v, 0);
	return 0;
}

/* A size of 0 in the reply means failure. */
static int get_config(struct vhost *v)
{
	u8 config[VHOST_CONFIG_MAX] = { 0 };
	u32 off = v->in.config.offset, size = v->in.config.size;

	if (!v->ops->config)
		return -EOPNOTSUPP;
	if (off > sizeof(config) || size > sizeof(config) - off)
		off = size = 0;
	v->ops->config(v->ctx, config);
	v->in.config.size = size;
	memcpy(v->in.config.data, config + off, size);
	return 12 + (int)size;
}

static int message_reject(struct vhost *v)
{
	return -EOPNOTSUPP;
}

static const struct {
	handler *fn;
	u32 min;
} requests[VHOST_REQUESTS] = {
	[VHOST_GET_FEATURES] = { get_features, 0 },
	[VHOST_SET_FEATURES] = { set_features, 8 },
	[VHOST_SET_OWNER] = { nothing, 0 },
	[VHOST_RESET_OWNER] = { reset_owner, 0 },
	[VHOST_SET_MEM_TABLE] = { set_mem_table, 8 },
	[VHOST_SET_VRING_NUM] = { set_vring_num, 8 },
	[VHOST_SET_VRING_ADDR] = { set_vring_addr, 40 },
	[VHOST_SET_VRING_BASE] = { set_vring_base, 8 },
	[VHOST_GET_VRING_BASE] = { get_vring_base, 8 },
	[VHOST_SET_VRING_KICK] = { set_vring_kick, 8 },
	[VHOST_SET_VRING_CALL] = { set_vring_call, 8 },
	[VHOST_SET_VRING_ERR] = { nothing, 8 },
	[VHOST_GET_PROTOCOL_FEATURES] = { get_protocol_features, 0 },
	[VHOST_SET_PROTOCOL_FEATURES] = { set_protocol_features, 8 },
	[VHOST_GET_QUEUE_NUM] = { get_queue_num, 0 },
	[VHOST_SET_VRING_ENABLE] = { set_vring_enable, 8 },
	[VHOST_SET_BACKEND_REQ_FD] = { set_backend_req_fd, 0 },
	[VHOST_GET_CONFIG] = { get_config, 12 },
	[VHOST_SET_CONFIG] = { message_reject, 12 },
};

/* Cannot block: the peer waits for each reply, so the socket has room. */
static int message_reply(struct vhost *v, u32 size)
{
	struct vhost_hdr hdr = { v->hdr.request, VHOST_MSG_VERSION | VHOST_MSG_REPLY, size };
	struct iovec iov[2] = { { &hdr, sizeof(hdr) }, { &v->in, size } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	return sendmsg(v->client.conn.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(sizeof(hdr) + size) ? 0
													      : -EPIPE;
}

int vhost_message(struct vhost *v)
{
	bool known = v->hdr.request < VHOST_REQUESTS && requests[v->hdr.request].fn;
	int got = -EOPNOTSUPP;

	v->stats.messages++;
	if (known)
		got = v->hdr.size < requests[v->hdr.request].min ? -EINVAL : requests[v->hdr.request].fn(v);
	if (got < 0) {
		v->stats.bad_messages++;
		log_at(LOG_DEBUG, v->client.path, "vhost-user request %u is refused: %d", v->hdr.request, got);
	}
	if (got > 0)
		return message_reply(v, (u32)got);
	if (!(v->hdr.flags & VHOST_MSG_NEED_REPLY) || !(v->protocol & BIT_ULL(VHOST_PF_REPLY_ACK)))
		return 0;
	v->in.num = got ? 1 : 0;
	return message_reply(v, sizeof(v->in.num));
}

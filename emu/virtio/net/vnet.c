// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * virtio-net device (virtio 1.2, 5.1). Each received frame uses one chain, after a header. Frames without a buffer are
 * queued at the station until the guest adds buffers.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/virtio/net/vnet_internal.h"
#include "emu/virtio/vhost/vhost.h"

/* Virtio 1.2, 5.1.3: VIRTIO_NET_F_CSUM, _GUEST_CSUM, _MTU (set by QEMU), _HOST_TSO4, _HOST_TSO6 */
#define FEATURES   (BIT(0) | BIT(GUEST_CSUM) | BIT(3) | BIT(11) | BIT(12))
#define GUEST_CSUM 1
#define TURN       256 /* chains and frames per turn: a chain may be segmented into thousands of frames */

enum {
	RX,
	TX,
	QUEUES
};

struct vnet {
	struct loop *loop;
	struct vhost *vhost;
	struct ether_port *station;
	bool running[QUEUES];
	bool waits;       /* the station has a frame for it */
	bool due[QUEUES]; /* chains were used since the last interrupt */
	struct vnet_out out;
	struct wire_buf *pending; /* frame for which the link's queue was full */
	struct loop_task task;
	struct vnet_monitor monitor;
	u64 counter[VNET_CTR_NUM];
};

const char *vnet_counter_name(enum vnet_counter c)
{
	static const char *const names[] = { VNET_COUNTERS(COUNTER_NAME) };

	return c < VNET_CTR_NUM ? names[c] : "?";
}

u64 vnet_counter(const struct vnet *n, enum vnet_counter c)
{
	return c < VNET_CTR_NUM ? n->counter[c] : 0;
}

/* Interrupts are sent at the end of the loop's iteration: one for many chains. */
static void chain_return(struct vnet *n, u32 queue, u16 head, u32 written)
{
	vhost_push(n->vhost, queue, head, written);
	n->due[queue] = true;
	loop_task_queue(n->loop, &n->task);
}

/* ---- from the guest ---- */

enum sent {
	SENT_ALL,
	LINK_FULL,
	TURN_OVER
};

/* Sends the frames of the last chain. */
static enum sent send_pending(struct vnet *n, u32 *budget)
{
	int err;

	for (;;) {
		if (!*budget)
			return TURN_OVER;
		if (!n->pending) {
			n->pending = vnet_out_next(&n->out);
			n->counter[VNET_CTR_TX] += n->pending != NULL;
		}
		if (!n->pending)
			return SENT_ALL;
		err = ether_port_send(n->station, n->pending);
		if (err == -EAGAIN)
			return LINK_FULL;
		--*budget;
		if (err)
			wire_buf_put(n->pending);
		n->pending = NULL;
	}
}

static void vnet_transmit(struct vnet *n)
{
	enum sent sent = SENT_ALL;
	struct vhost_chain c;
	u32 budget = TURN;

	while (n->running[TX]) {
		sent = send_pending(n, &budget);
		if (sent != SENT_ALL || vhost_pop(n->vhost, TX, &c) <= 0)
			break;
		if (vnet_out_take(&n->out, &c, n->station->mtu))
			n->counter[VNET_CTR_TX_BAD]++;
		chain_return(n, TX, c.head, 0);
		budget -= !!budget;
	}
	if (sent == TURN_OVER)
		loop_task_queue(n->loop, &n->task);
}

static void vnet_on_ready(void *ctx)
{
	vnet_transmit(ctx);
}

/* ---- to the guest ---- */

static int vnet_on_frame(void *ctx, struct wire_buf *frame)
{
	u8 hdr[VNET_HDR] = { [10] = 1 }; /* one buffer */
	struct vnet *n = ctx;
	struct vhost_chain c;
	int got;

	if (!n->running[RX]) {
		n->counter[VNET_CTR_RX_NO_DRIVER]++;
		return 1;
	}
	got = vhost_pop(n->vhost, RX, &c);
	if (!got) {
		n->counter[VNET_CTR_RX_WAITED]++;
		n->waits = true;
		return -EAGAIN;
	}
	if (got < 0) { /* until the driver restarts */
		n->running[RX] = false;
		n->counter[VNET_CTR_RX_NO_DRIVER]++;
		return 1;
	}
	if (c.in_len < sizeof(hdr) + frame->size) {
		n->counter[VNET_CTR_RX_TOO_LONG]++;
		chain_return(n, RX, c.head, 0);
		return 1;
	}
	if (vhost_has_feature(n->vhost, GUEST_CSUM))
		hdr[0] = vnet_in_flags(frame);
	vhost_chain_write(&c, 0, hdr, sizeof(hdr));
	vhost_chain_write(&c, sizeof(hdr), frame->data, frame->size);
	n->counter[VNET_CTR_RX]++;
	chain_return(n, RX, c.head, (u32)sizeof(hdr) + frame->size);
	return 1;
}

static void on_link(void *ctx, bool up)
{
	vnet_monitor_set_link(&((struct vnet *)ctx)->monitor, up);
}

int vnet_set_monitor(struct vnet *n, int fd, const char *netdev)
{
	int err = vnet_monitor_open(&n->monitor, n->loop, fd, netdev);

	if (!err && !n->station->up)
		vnet_monitor_set_link(&n->monitor, false);
	return err;
}

static void vnet_resume(struct vnet *n)
{
	if (!n->waits)
		return;
	n->waits = false;
	n->station->ops->resume(n->station);
}

/* ---- the virtio side ---- */

static void on_kick(void *ctx, u32 queue)
{
	struct vnet *n = ctx;

	if (queue == TX)
		vnet_transmit(n);
	else
		vnet_resume(n);
}

static void vnet_on_task(struct loop_task *t, struct now now)
{
	struct vnet *n = container_of(t, struct vnet, task);
	u32 q;

	vnet_transmit(n);
	for (q = 0; q < QUEUES; q++) {
		if (n->due[q])
			vhost_signal(n->vhost, q);
		n->due[q] = false;
	}
}

static void on_start(void *ctx, u32 queue)
{
	((struct vnet *)ctx)->running[queue] = true;
}

/* Drops the frames queued for a guest that has disconnected. */
static void on_stop(void *ctx, u32 queue)
{
	struct vnet *n = ctx;

	n->running[queue] = n->due[queue] = false;
	if (queue == RX)
		vnet_resume(n);
	if (queue == RX)
		return;
	vnet_out_drop(&n->out);
	wire_buf_put(n->pending);
	n->pending = NULL;
}

static void on_memory(void *ctx) {} /* no pointers to it are kept */

static const struct vhost_ops ops = {
	.queues = QUEUES,
	.features = FEATURES,
	.kick = on_kick,
	.start = on_start,
	.stop = on_stop,
	.memory = on_memory,
};

struct vnet *vnet_create(struct loop *loop, const char *path, struct ether_port *station)
{
	struct vnet *n = calloc(1, sizeof(*n));
	int err;

	if (!n)
		return NULL;
	n->loop = loop;
	n->station = station;
	loop_task_init(&n->task, vnet_on_task);
	n->vhost = vhost_create(loop, path, &ops, n);
	if (!n->vhost) {
		err = errno;
		free(n);
		errno = err;
		return NULL;
	}
	station->nic =
		(struct ether_user){ .ctx = n, .receive = vnet_on_frame, .ready = vnet_on_ready, .link = on_link };
	return n;
}

void vnet_destroy(struct vnet *n)
{
	if (!n)
		return;
	n->station->nic = (struct ether_user){ 0 };
	vnet_monitor_close(&n->monitor);
	vhost_destroy(n->vhost);
	loop_task_cancel(&n->task);
	vnet_out_drop(&n->out);
	wire_buf_put(n->pending);
	free(n);
}

const char *vnet_path(const struct vnet *n)
{
	return vhost_path(n->vhost);
}

bool vnet_in_use(const struct vnet *n)
{
	return vhost_connected(n->vhost);
}

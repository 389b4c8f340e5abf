// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The network card. What comes to the guest goes into one chain behind a header. What the guest has no buffer for waits at the
 * station, until the guest gives one.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/lib/log.h"
#include "emu/vhost/vhost.h"
#include "emu/vnet/internal.h"

/* Virtio 1.2, 5.1.3: VIRTIO_NET_F_CSUM, _GUEST_CSUM, _MTU (QEMU tells it), _HOST_TSO4, _HOST_TSO6 */
#define FEATURES   (BIT(0) | BIT(GUEST_CSUM) | BIT(3) | BIT(11) | BIT(12))
#define GUEST_CSUM 1
#define ROUNDS     256 /* chains before others have their turn */

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
	bool waits;       /* the station keeps a frame */
	bool due[QUEUES]; /* chains were given back since the last interrupt */
	struct vnet_out out;
	struct wire_buf *held; /* the link had no room for it */
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

/* The interrupt comes when the loop's round is over: one for many chains. */
static void give_back(struct vnet *n, u32 queue, u16 head, u32 written)
{
	vhost_push(n->vhost, queue, head, written);
	n->due[queue] = true;
	loop_task_queue(n->loop, &n->task);
}

/* ---- from the guest ---- */

/* False: the link is full. */
static bool send_held(struct vnet *n)
{
	int err;

	for (;;) {
		if (!n->held) {
			n->held = vnet_out_next(&n->out);
			n->counter[VNET_CTR_TX] += n->held != NULL;
		}
		if (!n->held)
			return true;
		err = ether_port_send(n->station, n->held);
		if (err == -EAGAIN)
			return false;
		if (err)
			wire_buf_put(n->held);
		n->held = NULL;
	}
}

static bool send_next(struct vnet *n)
{
	struct vhost_chain c;

	if (vhost_pop(n->vhost, TX, &c) <= 0)
		return false;
	if (vnet_out_take(&n->out, &c, n->station->mtu))
		n->counter[VNET_CTR_TX_BAD]++;
	give_back(n, TX, c.head, 0);
	return true;
}

static void transmit(struct vnet *n)
{
	u32 round = 0;

	while (n->running[TX] && send_held(n)) {
		if (++round > ROUNDS) {
			loop_task_queue(n->loop, &n->task);
			return;
		}
		if (!send_next(n))
			return;
	}
}

static void on_ready(void *ctx)
{
	transmit(ctx);
}

/* ---- to the guest ---- */

static int on_frame(void *ctx, struct wire_buf *frame)
{
	u8 hdr[VNET_HDR] = { [10] = 1 }; /* one buffer */
	struct vnet *n = ctx;
	struct vhost_chain c;
	int got;

	if (!n->running[RX]) {
		n->counter[VNET_CTR_RX_NOBODY]++;
		return 1;
	}
	got = vhost_pop(n->vhost, RX, &c);
	if (!got) {
		n->counter[VNET_CTR_RX_WAITED]++;
		n->waits = true;
		return -EAGAIN;
	}
	if (got < 0) { /* until the driver begins anew */
		n->running[RX] = false;
		n->counter[VNET_CTR_RX_NOBODY]++;
		return 1;
	}
	if (c.in_len < sizeof(hdr) + frame->size) {
		n->counter[VNET_CTR_RX_TOO_LONG]++;
		give_back(n, RX, c.head, 0);
		return 1;
	}
	if (vhost_has_feature(n->vhost, GUEST_CSUM))
		hdr[0] = vnet_in_flags(frame);
	vhost_chain_write(&c, 0, hdr, sizeof(hdr));
	vhost_chain_write(&c, sizeof(hdr), frame->data, frame->size);
	n->counter[VNET_CTR_RX]++;
	give_back(n, RX, c.head, (u32)sizeof(hdr) + frame->size);
	return 1;
}

static void on_link(void *ctx, bool up)
{
	vnet_monitor_tell(&((struct vnet *)ctx)->monitor, up);
}

int vnet_set_monitor(struct vnet *n, int fd, const char *netdev)
{
	int err = vnet_monitor_open(&n->monitor, n->loop, fd, netdev);

	if (!err && !n->station->up)
		vnet_monitor_tell(&n->monitor, false);
	return err;
}

static void resume(struct vnet *n)
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
		transmit(n);
	else
		resume(n);
}

static void on_task(struct loop_task *t, struct now now)
{
	struct vnet *n = container_of(t, struct vnet, task);
	u32 q;

	transmit(n);
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

/* What waits for a guest that has gone is nobody's. */
static void on_stop(void *ctx, u32 queue)
{
	struct vnet *n = ctx;

	n->running[queue] = n->due[queue] = false;
	if (queue == RX)
		resume(n);
	if (queue == RX)
		return;
	vnet_out_drop(&n->out);
	wire_buf_put(n->held);
	n->held = NULL;
}

static void on_memory(void *ctx) {} /* nothing of it is kept */

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
	loop_task_init(&n->task, on_task);
	n->vhost = vhost_create(loop, path, &ops, n);
	if (!n->vhost) {
		err = errno;
		free(n);
		errno = err;
		return NULL;
	}
	station->nic = (struct ether_user){ .ctx = n, .receive = on_frame, .ready = on_ready, .link = on_link };
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
	wire_buf_put(n->held);
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

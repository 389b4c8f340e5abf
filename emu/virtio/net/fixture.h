/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests: a card at a station whose link is the test, and its driver. */
#ifndef MUSLIN_NET_FIXTURE_H
#define MUSLIN_NET_FIXTURE_H

#include "emu/virtio/net/vnet.h"
#include "emu/virtio/vhost/fixture.h"

#define CARD_RX   0
#define CARD_TX   1
#define CARD_HEAD 12
#define CARD_IN   (FRONT_DATA + 0x8000)

struct card {
	struct loop *loop;
	struct ether_port station;
	struct vnet *net;
	struct front f;
	char path[64];
	struct wire_buf *sent; /* the last frame */
	u32 nsent, resumed;
	bool full;
};

static inline int card_send(struct ether_port *port, struct wire_buf *frame)
{
	struct card *c = container_of(port, struct card, station);

	if (c->full)
		return -EAGAIN;
	wire_buf_put(c->sent);
	c->sent = frame;
	c->nsent++;
	return 0;
}

static inline void card_resume(struct ether_port *port)
{
	container_of(port, struct card, station)->resumed++;
}

static inline int card_create(struct card *c)
{
	static const struct ether_ops ops = { .send = card_send, .resume = card_resume };

	memset(c, 0, sizeof(*c));
	c->station = (struct ether_port){ .ops = &ops, .mac = { 2, 0, 0, 0, 0, 1 }, .mtu = 1500, .up = true };
	c->loop = loop_create();
	front_path(c->path, sizeof(c->path));
	c->net = vnet_create(c->loop, c->path, &c->station);
	return c->net ? 0 : -errno;
}

static inline void card_destroy(struct card *c)
{
	vnet_destroy(c->net);
	wire_buf_put(c->sent);
	loop_destroy(c->loop);
}

/* Starts the driver, with empty queues. */
static inline int card_attach(struct card *c)
{
	int err = front_open(&c->f, c->loop, c->path);

	if (!err)
		front_start(&c->f, 2);
	return err;
}

/* The station receives a frame of @len bytes; the result of the card. */
static inline int card_arrive(struct card *c, u32 len)
{
	struct wire_buf *frame = wire_buf_alloc(len);
	int got;

	memset(frame->data, 0x5a, len);
	got = c->station.nic.receive(c->station.nic.ctx, frame);
	wire_buf_put(frame);
	loop_run_idle(c->loop, 0);
	return got;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The interface between an Ethernet station and its link: one struct per station, through which frames pass
 * in both directions. IEEE 802.3. */
#ifndef MUSLIN_PORT_ETHER_PORT_H
#define MUSLIN_PORT_ETHER_PORT_H

#include "emu/packet/packet.h"

struct ether_port;

/* Implemented by the link. */
struct ether_ops {
	/*
	 * Sends a frame of @frame->size bytes without FCS, which must not be modified afterwards. Takes the reference
	 * and returns 0, even if it drops the frame. -EAGAIN: the link's queue is full; the caller keeps the
	 * reference, and users' ready() follows.
	 */
	int (*send)(struct ether_port *port, struct wire_buf *frame);
	/* The station's second user has room again, after it returned -EAGAIN. */
	void (*resume)(struct ether_port *port);
};

/* Implemented by the receiver of frames. */
struct ether_user {
	void *ctx;
	/*
	 * Receives a frame; the user takes its own reference to keep it. 1: taken, 0: not for this user, -EAGAIN: no
	 * room (only the station's last user).
	 */
	int (*receive)(void *ctx, struct wire_buf *frame);
	void (*ready)(void *ctx);         /* the queue has room again; may be NULL */
	void (*link)(void *ctx, bool up); /* may be NULL */
};

struct ether_port {
	const struct ether_ops *ops;
	u8 mac[ETHER_ALEN];
	u32 mtu;  /* of a frame's payload */
	u64 rate; /* of the link, bit/s; 0: no serialization delay */
	bool up;
	char name[64];
	struct ether_user roce, nic; /* called in this order */
};

static inline int ether_port_send(struct ether_port *port, struct wire_buf *frame)
{
	return port->ops->send(port, frame);
}

#endif

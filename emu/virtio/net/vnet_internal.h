/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Declarations shared by the files of the network card. */
#ifndef MUSLIN_NET_VNET_INTERNAL_H
#define MUSLIN_NET_VNET_INTERNAL_H

#include "emu/virtio/net/vnet.h"
#include "emu/virtio/vhost/vhost.h"

#define VNET_HDR 12 /* bytes before a frame in a chain. Virtio 1.2, 5.1.6 */

/* offload.c: the frames of one chain of the driver; zeroed: none */
struct vnet_out {
	struct wire_buf *frame;  /* complete frame */
	struct wire_buf *packet; /* packet to be segmented, with padding after the ethertype; NULL: none */
	u32 l2, head;            /* bytes before the ethertype, and from there to the payload */
	u32 mss, next, mtu;
};

/* 0, or -EPROTO: no frame, too long, or offloads that the card has not offered or that are inconsistent. */
int vnet_out_take(struct vnet_out *o, const struct vhost_chain *c, u32 mtu);
/* The next frame, owned by the caller; NULL: none left. */
struct wire_buf *vnet_out_next(struct vnet_out *o);
void vnet_out_drop(struct vnet_out *o);

/* The header's flags for a received frame: set if its checksums were verified. */
u8 vnet_in_flags(const struct wire_buf *frame);

/* monitor.c; zeroed: no monitor */
struct vnet_monitor {
	struct loop_fd fd;
	char netdev[32]; /* the monitor's name of the card's network end; empty: no monitor */
};

/* Takes @fd also on failure: -EINVAL for an invalid name, or the error of the loop. */
int vnet_monitor_open(struct vnet_monitor *m, struct loop *loop, int fd, const char *netdev);
void vnet_monitor_close(struct vnet_monitor *m);
void vnet_monitor_set_link(struct vnet_monitor *m, bool up);

#endif

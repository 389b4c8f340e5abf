/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the network card share. */
#ifndef MUSLIN_NET_VNET_INTERNAL_H
#define MUSLIN_NET_VNET_INTERNAL_H

#include "emu/virtio/net/vnet.h"
#include "emu/virtio/vhost/vhost.h"

#define VNET_HDR 12 /* bytes before a frame in a chain. Virtio 1.2, 5.1.6 */

/* offload.c: what a chain of the driver holds, frame by frame; zeroed: nothing */
struct vnet_out {
	struct wire_buf *frame;  /* that is whole */
	struct wire_buf *packet; /* that is to be cut, with padding behind the ethertype; NULL */
	u32 l2, head;            /* bytes before the ethertype, and from there to the payload */
	u32 mss, next, mtu;
};

/* 0, or -EPROTO: no frame, too long, or wishes that the card has not offered or that make no sense. */
int vnet_out_take(struct vnet_out *o, const struct vhost_chain *c, u32 mtu);
/* The next one, which is the caller's; NULL: there are no more. */
struct wire_buf *vnet_out_next(struct vnet_out *o);
void vnet_out_drop(struct vnet_out *o);

/* The header's flags for a frame that comes: its checksums have been found right, or nothing is said. */
u8 vnet_in_flags(const struct wire_buf *frame);

/* monitor.c; zeroed: there is none */
struct vnet_monitor {
	struct loop_fd fd;
	char netdev[32]; /* how the monitor calls the card's network end; empty: there is no monitor */
};

/* Takes @fd also when it fails: -EINVAL for a name that is none, or what the loop says. */
int vnet_monitor_open(struct vnet_monitor *m, struct loop *loop, int fd, const char *netdev);
void vnet_monitor_close(struct vnet_monitor *m);
void vnet_monitor_tell(struct vnet_monitor *m, bool up);

#endif

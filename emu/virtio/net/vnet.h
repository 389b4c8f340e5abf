/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A guest's network card: virtio-net over vhost-user, at a station of the simulated Ethernet. Virtio 1.2, 5.1. */
#ifndef MUSLIN_NET_VNET_H
#define MUSLIN_NET_VNET_H

#include "emu/lib/loop.h"
#include "emu/port/ether_port.h"

struct vnet;

/*
 * Listens at @path for a front end, whose card has the station's address. Becomes the station's second user. NULL with
 * errno set. The station must outlive it.
 */
struct vnet *vnet_create(struct loop *loop, const char *path, struct ether_port *station);
void vnet_destroy(struct vnet *n); /* NULL is allowed */
/*
 * @fd is a stream socket to the front end's QMP monitor, in which the card's network end is @netdev: from now on the
 * card's carrier follows the station's link. Takes @fd, also on failure. 0, -EINVAL: invalid name, or -errno.
 */
int vnet_set_monitor(struct vnet *n, int fd, const char *netdev);
const char *vnet_path(const struct vnet *n);
bool vnet_in_use(const struct vnet *n); /* a front end is connected */

#define VNET_COUNTERS(C)                                                    \
	C(RX, "rx_frames")                                                  \
	C(TX, "tx_frames")                                                  \
	C(RX_NO_DRIVER, "rx_no_driver")                                     \
	C(RX_TOO_LONG, "rx_too_long") /* longer than the driver's buffer */ \
	C(RX_WAITED, "rx_waited")     /* no buffer, counted per attempt */  \
	C(TX_BAD, "tx_bad")           /* no frame, too long, or with offloads that \
					 were not offered */
#define VNET_COUNTER_ENUM(name, str) VNET_CTR_##name,
enum vnet_counter {
	VNET_COUNTERS(VNET_COUNTER_ENUM) VNET_CTR_NUM
};
#undef VNET_COUNTER_ENUM
const char *vnet_counter_name(enum vnet_counter c);
u64 vnet_counter(const struct vnet *n, enum vnet_counter c);

#endif

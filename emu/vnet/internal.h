/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the network card share. */
#ifndef MUSLIN_VNET_INTERNAL_H
#define MUSLIN_VNET_INTERNAL_H

#include "emu/vnet/vnet.h"

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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network interfaces that a host has besides lo: IPoIB of its InfiniBand ports, those of its stations on a
 * simulated Ethernet.
 */
#ifndef MUSLIN_HOST_INTERFACE_H
#define MUSLIN_HOST_INTERFACE_H

#include "emu/host/server.h"

#define UV_INTERFACES      32
#define UV_INTERFACE_FIRST 2 /* number of the first one; 1 is lo's. Those of a port stand together. */

struct uv_interface {
	char name[16];
	const struct wire_port *port;
	u32 index, link; /* link: the interface of a VLAN is on; its own index where it is on none */
	u16 vlan;        /* 0: none */
	u32 mtu, type, len;
	u8 addr[IPIF_HW_SIZE], broadcast[IPIF_HW_SIZE];
};

/* @list: UV_INTERFACES. How many there are; none where the device was unplugged. */
u32 uv_interfaces(const struct uv_host *h, struct uv_interface *list);
/* Does the host have interfaces of its own? Those of a port on sockets are the machine's. */
bool uv_interfaces_own(const struct uv_host *h);
bool uv_interface_up(const struct uv_interface *i);

#endif

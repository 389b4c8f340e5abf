/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ARP and neighbour discovery, for hardware addresses of any length. RFC 826, 4861. */
#ifndef MUSLIN_WIRE_NEIGH_H
#define MUSLIN_WIRE_NEIGH_H

#include "emu/wire/ip.h"

#define WIRE_HW_MAX 20

/* A kind of link. */
struct wire_hw {
	u16 type; /* ARP hardware type */
	u8 len;   /* of its addresses */
};

#define WIRE_ARP_MAX     (16 + 2 * WIRE_HW_MAX)
#define WIRE_ARP_REQUEST 1
#define WIRE_ARP_REPLY   2

struct wire_arp {
	u16 op;
	struct ip_addr src, dst;
	const u8 *src_hw, *dst_hw; /* when formatting, dst_hw may be NULL: unknown */
};

/* Formats the packet to @p of WIRE_ARP_MAX bytes; returns its length. */
u32 wire_arp_put(u8 *p, const struct wire_hw *hw, const struct wire_arp *a);
/* False: not ARP for such a link. The hardware addresses point into @p. */
bool wire_arp_get(const u8 *p, u32 len, const struct wire_hw *hw, struct wire_arp *a);

#define WIRE_ND_SOLICIT   135
#define WIRE_ND_ADVERT    136
#define WIRE_ND_SOLICITED 0x40
#define WIRE_ND_OVERRIDE  0x20
#define WIRE_ND_MAX       (IP6_SIZE + 24 + 24)

/* A solicitation or an advertisement. */
struct wire_nd {
	u8 type, flags;
	struct ip_addr src, dst, target;
	const u8 *hw; /* of the sender; NULL: none */
};

/* Formats the packet, with its IPv6 header, to @p of WIRE_ND_MAX bytes; returns the length. */
u32 wire_nd_put(u8 *p, const struct wire_hw *hw, const struct wire_nd *nd);
/* Parses from the IPv6 header on. 1; 0: another packet; -EBADMSG. The hardware address points into @p. */
int wire_nd_get(const u8 *p, u32 len, const struct wire_hw *hw, struct wire_nd *nd);
/* The solicited-node group of @a. RFC 4291, section 2.7.1. */
struct ip_addr wire_nd_group(const struct ip_addr *a);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ethernet frames and their headers. IEEE 802.3, 802.1Q. */
#ifndef MUSLIN_WIRE_ETHER_H
#define MUSLIN_WIRE_ETHER_H

#include "emu/lib/types.h"
#include "emu/wire/field.h"

#define ETHER_ALEN     6
#define ETHER_DST      0
#define ETHER_SRC      6
#define ETHER_TYPE     12
#define ETHER_SIZE     14
#define ETHER_TAG_SIZE 4
#define ETHER_TCI      14 /* of a tagged frame: priority, drop eligible, VLAN */
#define ETHER_MIN      60 /* without the FCS, which is never stored */
#define ETHER_MTU      1500
#define ETHER_MTU_MAX  65000

#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_FLOW 0x8808 /* MAC control: PAUSE, PFC */
#define ETHERTYPE_ROCE 0x8915 /* RoCE v1 */

static inline u16 ether_type(const u8 *frame)
{
	return (u16)wire_load(frame + ETHER_TYPE, 2);
}

static inline bool ether_is_multicast(const u8 *mac)
{
	return mac[0] & 1;
}

static inline bool ether_is_zero(const u8 *mac)
{
	static const u8 none[ETHER_ALEN];

	return memcmp(mac, none, ETHER_ALEN) == 0;
}

/* The header of a frame. */
struct ether_header {
	u8 dst[ETHER_ALEN], src[ETHER_ALEN];
	bool tagged;
	u16 tci;  /* 0 if not tagged */
	u16 type; /* of the payload */
	u32 size; /* of the header */
};

/* False: the frame is too short. */
bool ether_header_get(struct ether_header *h, const u8 *frame, u32 len);
/* Writes the header, with a tag if h->tagged; returns its size, not h->size. */
u32 ether_header_put(const struct ether_header *h, u8 *frame);
/* The MAC address of a multicast IP group (from the last bytes of a mapped IPv4 or an IPv6 address). RFC 1112, 2464. */
void ether_multicast_mac(u8 mac[ETHER_ALEN], const u8 ip[16]);

/* The Layer 2 fields of a packet on Ethernet, or of packets from one of a port's GIDs. */
struct wire_l2 {
	u8 mac[6];  /* of the other station; zero: the link layer resolves the GID. In a GID table: the own station */
	u16 vlan;   /* priority and VLAN, as in a tag (802.1Q, 9.6); 0: untagged */
	u8 version; /* RoCE v1 or v2; 0: the link's default */
};
#define WIRE_VLAN_ID         0x0fff
#define WIRE_VLAN_PRIO_SHIFT 13

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ethernet frames, and the seam between a station and its link: one struct for each station, through which frames pass both
 * ways. IEEE 802.3, 802.1Q.
 */
#ifndef MUSLIN_WIRE_ETHER_H
#define MUSLIN_WIRE_ETHER_H

#include "emu/wire/field.h"
#include "emu/wire/packet.h"

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

/* What is before a frame's payload. */
struct ether_header {
	u8 dst[ETHER_ALEN], src[ETHER_ALEN];
	bool tagged;
	u16 tci;  /* 0 when not tagged */
	u16 type; /* of the payload */
	u32 size; /* of the header */
};

/* False: the frame is too short for one. */
bool ether_header_get(struct ether_header *h, const u8 *frame, u32 len);
/* Writes the header, with a tag where h->tagged; returns its size, which is not h->size. */
u32 ether_header_put(const struct ether_header *h, u8 *frame);
/* The address of a multicast IP group (the last bytes of a mapped IPv4 one, or of an IPv6 one). RFC 1112, 2464. */
void ether_multicast_mac(u8 mac[ETHER_ALEN], const u8 ip[16]);

struct ether_port;

/* Implemented by the link. */
struct ether_ops {
	/*
	 * Sends a frame of @frame->size bytes without FCS, which nobody changes any more. Takes the reference and returns 0, also
	 * where it must be dropped. -EAGAIN: the link's queue is full; the caller keeps it, and users' ready() follows.
	 */
	int (*send)(struct ether_port *port, struct wire_buf *frame);
	/* The station's second user has room again for what it refused. */
	void (*resume)(struct ether_port *port);
};

/* Implemented by whoever takes frames. */
struct ether_user {
	void *ctx;
	/*
	 * A frame has come; it may be kept by a reference of one's own. 1: taken, 0: it is not for this user, -EAGAIN: no room now
	 * (only the station's last user).
	 */
	int (*receive)(void *ctx, struct wire_buf *frame);
	void (*ready)(void *ctx);         /* the queue has room again; may be NULL */
	void (*link)(void *ctx, bool up); /* may be NULL */
};

struct ether_port {
	const struct ether_ops *ops;
	u8 mac[ETHER_ALEN];
	u32 mtu;  /* of a frame's payload */
	u64 rate; /* of the link, bit/s; 0: frames take no time */
	bool up;
	char name[64];
	struct ether_user roce, nic; /* asked in this order */
};

static inline int ether_port_send(struct ether_port *port, struct wire_buf *frame)
{
	return port->ops->send(port, frame);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RoCEv2: InfiniBand's transport in UDP over IPv4 and IPv6. IBTA annex A17.
 *
 * Inside the daemon such a packet has the common form: an LRH of zeroes, a GRH with the fields of the IP header (IPv4
 * addresses as mapped GIDs), BTH. On the wire there is neither LRH nor GRH.
 */
#ifndef MUSLIN_PACKET_ROCE_H
#define MUSLIN_PACKET_ROCE_H

#include "emu/packet/packet.h"
#include "emu/wire/ip.h"

#define WIRE_ROCE_PORT     4791 /* UDP, destination */
#define WIRE_ROCE_TAIL_MAX 7    /* pad and ICRC */
#define WIRE_ROCE_OVERHEAD 80   /* IP, UDP and transport headers with ICRC, within an interface's MTU */
#define WIRE_ROCE_FRAME    (18 + 40 + 8 + WIRE_HDR_MAX + WIRE_MTU_MAX + WIRE_ROCE_TAIL_MAX)

/* Contents of the headers below the BTH. */
struct wire_roce {
	struct wire_gid src, dst; /* mapped for IPv4 */
	u16 sport;
	u16 id; /* IPv4 identification; the packet is never a fragment, and has DF */
	u8 tos, ttl;
	u32 flow; /* IPv6 flow label */
	struct wire_l2 l2;
};

/* RoCE v1 has the GRH on the wire, with its own EtherType. Annex A16. */
static inline bool wire_roce_is_v1(const struct wire_roce *r)
{
	return r->l2.version == 1;
}

static inline bool wire_gid_is_v4(const struct wire_gid *gid)
{
	return !wire_gid_prefix(gid) && wire_gid_guid(gid) >> 32 == 0xffff;
}

static inline u32 wire_gid_v4(const struct wire_gid *gid) /* host order */
{
	return (u32)wire_gid_guid(gid);
}

/* A multicast GID; on Ethernet the GIDs of IPv4 groups are their mapped addresses. */
static inline bool wire_gid_is_group(const struct wire_gid *gid)
{
	return wire_gid_is_multicast(gid) || (wire_gid_is_v4(gid) && wire_gid_v4(gid) >> 28 == 0xe);
}

static inline struct wire_gid wire_gid_from_v4(u32 addr)
{
	return wire_gid_make(0, 0xffff00000000ull | addr);
}

/* Bytes in the UDP datagram: BTH to ICRC. */
static inline u32 wire_roce_len(const struct wire_packet *p)
{
	return p->hdr_len - p->bth_off + ((p->len + 3) & ~3u) + 4;
}

/* Writes pad bytes and ICRC to @tail, the end of the datagram; returns their number. */
u32 wire_roce_tail(const struct wire_packet *p, const struct wire_roce *r, u8 tail[WIRE_ROCE_TAIL_MAX]);
/*
 * Parses the @len bytes of a datagram at @off in @buf to a packet that shares @buf. All checks of an untrusted packet:
 * opcode, header sequence, pad, length, ICRC. A socket does not report the IPv4 identification and DF, which the ICRC
 * covers: a packet whose ICRC is valid for other values than r->id is accepted, too. NULL with errno EBADMSG
 * (malformed), EILSEQ (ICRC) or ENOMEM.
 */
struct wire_packet *wire_roce_parse(struct wire_buf *buf, u32 off, u32 len, const struct wire_roce *r);
/*
 * Parses the headers of a datagram of @len bytes, of which the first @have are at @src, into @p, with its length but
 * without payload. Does not check the ICRC. False: malformed or truncated.
 */
bool wire_roce_peek(struct wire_packet *p, const u8 *src, u32 have, u32 len, const struct wire_roce *r);
/*
 * As wire_roce_parse(), for a datagram in three pieces: headers, payload, and pad with ICRC. The payload is zero-copy.
 */
struct wire_packet *wire_roce_parse_pieces(const u8 *head, u8 *data, const u8 *tail, u32 len,
					   const struct wire_roce *r);
/* EtherType of the first header that wire_roce_put() writes. */
u16 wire_roce_ethertype(const struct wire_roce *r);
/* Bytes from there to the ICRC. */
u32 wire_roce_size(const struct wire_packet *p, const struct wire_roce *r);
/* Writes these bytes to @dst. */
void wire_roce_put(const struct wire_packet *p, const struct wire_roce *r, u8 *dst);
/*
 * Parses the IP and UDP headers, or the GRH, at @src of @len bytes; the caller sets the l2 of @r. Returns the length
 * of the headers, with the datagram's in *body. 0: not RoCE; -EBADMSG: damaged or truncated.
 */
int wire_roce_head(const u8 *src, u32 len, u16 ethertype, struct wire_roce *r, u32 *body);
/* Writes the packet as an Ethernet frame with artificial MAC addresses, for captures. Its length, or -ENOSPC. */
int wire_roce_frame(const struct wire_packet *p, const struct wire_roce *r, u8 *dst, u32 size);
/* Derives @r from the GRH of @p, with a source port by the hash of its flow. */
void wire_roce_from_grh(const struct wire_packet *p, struct wire_roce *r);
/*
 * The 40 bytes that a UD receiver gets before the payload; @len bytes from BTH to ICRC: the IPv4 header in the last
 * 20, or the IPv6 header. For RoCE v1 they are the GRH.
 */
void wire_roce_put_network(const struct wire_roce *r, u32 len, u8 grh[40]);
void wire_roce_put_grh(const struct wire_packet *p, u8 grh[40]);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A packet inside the daemon: header bytes as on the wire, payload in a shared buffer. */
#ifndef MUSLIN_PACKET_H
#define MUSLIN_PACKET_H

#include "emu/lib/list.h"
#include "emu/wire/ether.h"

#define WIRE_HDR_MAX 112 /* LRH 8 + GRH 40 + BTH 12 + the longest extended headers, with slack */
#define WIRE_MTU_MAX 4096

/*
 * Payload memory, shared by the packets that were cut from one message. Filled once (one read of the application's
 * memory), then read-only. data[] holds @size bytes.
 */
struct wire_buf {
	u32 refs;
	u32 size;
	u8 data[];
};

/* Returns a buffer with one reference; NULL without memory. Sizes up to 64 KiB come from a pool. */
struct wire_buf *wire_buf_alloc(u32 size);
static inline struct wire_buf *wire_buf_get(struct wire_buf *b)
{
	b->refs++;
	return b;
}
void wire_buf_put(struct wire_buf *b); /* NULL is harmless */

enum wire_packet_flags {
	WIRE_PKT_BAD_ICRC = 1 << 0, /* a fault damaged bytes that ICRC covers: the receiver's check fails */
	WIRE_PKT_BAD_VCRC = 1 << 1, /* damaged on the link: the next receiver's check fails */
	WIRE_PKT_EBP = 1 << 2,      /* ends with EBP: an upstream port had found it bad */
	/* Zero-copy: the payload is in memory of a program, which may write to it, and unmap it after this turn of the loop. */
	WIRE_PKT_ZCOPY = 1 << 3,
};

/*
 * hdr[] holds, back to back, LRH (when has_lrh), GRH (when grh_off), BTH and the extended transport headers. The CRCs
 * are not stored. The payload is @len bytes at @data, which lie in @buf (NULL: len is 0, or WIRE_PKT_ZCOPY). Pad bytes of the BTH's
 * pad count follow on the wire and are zero; they are not part of @len.
 */
struct wire_packet {
	struct list link; /* owner's queue; unlinked (self-linked) when handed over */
	struct wire_buf *buf;
	const u8 *data;
	u32 len;
	u16 hdr_len;
	u8 has_lrh;
	u8 grh_off; /* offset of the GRH in hdr, 0: none (with LRH it is 8; without LRH see rxe) */
	u8 bth_off; /* offset of the BTH in hdr */
	u8 vl;      /* the VL of the link that it is on now; equals the LRH's */
	u8 flags;
	u8 in_port; /* for the link layer: port of the node at which it arrived */
	struct wire_l2 l2;
	u64 born;   /* ns of the loop clock at which it entered the fabric (packet lifetime, 18.2.5.4) */
	u64 queued; /* ns at which it reached the head of its queue (HOQLife) or entered it */
	u64 tail; /* ps at which its last byte has arrived at the port where it is, on links with rates (fabric/timing.c) */
	u8 hdr[WIRE_HDR_MAX];
};

/* Returns an empty packet (no payload, hdr_len 0); NULL without memory. From a pool. */
struct wire_packet *wire_packet_alloc(void);
/* Drops the packet and its reference to the payload. */
void wire_packet_free(struct wire_packet *p);
/* Gives it a copy of a payload that is borrowed. False: there is no memory. */
bool wire_packet_own(struct wire_packet *p);
/* A copy of any payload, in a buffer that nobody shares and that is no longer than it. False: there is no memory. */
bool wire_packet_unshare(struct wire_packet *p);
/* Cuts the payload to @len bytes, which it has at least, and sets the pad count. */
void wire_packet_truncate(struct wire_packet *p, u32 len);
/*
 * Offsets and lengths of @p, whose headers from @bth on begin at @at of its bytes; @len: from the BTH to the end of what was received, of
 * which @tail are CRCs. False: no opcode, or a length that cannot be.
 */
bool wire_packet_parse_bth(struct wire_packet *p, const void *bth, u32 at, u32 len, u32 tail);
/* A packet with its own copy of the headers and a shared payload; NULL without memory. */
struct wire_packet *wire_packet_clone(const struct wire_packet *p);

/*
 * Bytes on an InfiniBand link from LRH to ICRC inclusive, a multiple of 4 (what LRH PktLen counts, in words, 7.7.5).
 * The VCRC's two bytes come on top.
 */
static inline u32 wire_packet_link_len(const struct wire_packet *p)
{
	return p->hdr_len + ((p->len + 3) & ~3u) + 4;
}

/*
 * Writes the packet's link bytes (LRH ... payload, pad, ICRC, VCRC) to @dst of @size bytes, computing the CRCs
 * (damaged on purpose where flags say so). Returns the length, or -ENOSPC.
 */
int wire_packet_serialize(const struct wire_packet *p, u8 *dst, u32 size);
u16 wire_vcrc(const u8 *data, u32 len); /* of LRH to ICRC */
/*
 * The opposite, with all checks of a packet from outside: lengths, LVer, LNH, PktLen against @len, opcode, header sequence, pad,
 * ICRC and VCRC when @check_crc. Returns a packet that owns a copy; NULL with errno EBADMSG or ENOMEM.
 */
struct wire_packet *wire_packet_parse(const u8 *src, u32 len, bool check_crc);
/*
 * Likewise without the CRCs, of bytes that another process may change meanwhile: @hdr is a copy of the first WIRE_HDR_MAX ones, or of as many
 * as there are. The others are payload, and are read once.
 */
struct wire_packet *wire_packet_parse_shared(const u8 *hdr, const u8 *src, u32 len);
/* Packets and buffers alive now: a leak check for tests. */
u32 wire_packet_live(void);

/* ICRC (7.8.1) over the invariant bytes, and VCRC (7.8.2); @p must have an LRH. */
u32 wire_packet_icrc(const struct wire_packet *p);

#endif

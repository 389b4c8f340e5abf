/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A packet inside the daemon: header bytes as on the wire, payload in a shared buffer. */
#ifndef MUSLIN_PACKET_H
#define MUSLIN_PACKET_H

#include "emu/lib/list.h"
#include "emu/wire/ether.h"
#include "emu/wire/hdr.h"

#define WIRE_HDR_MAX 112 /* LRH 8 + GRH 40 + BTH 12 + the longest extended headers, with slack */
#define WIRE_MTU_MAX 4096
#define WIRE_PACKET_MAX \
	(WIRE_HDR_MAX + WIRE_MTU_MAX + 3 + WIRE_ICRC_LEN + WIRE_VCRC_LEN) /* bytes of a packet on a link */

/*
 * Payload memory, shared by the packets that were segmented from one message. Filled once (one read of the
 * application's memory), then read-only. data[] has @size bytes.
 */
struct wire_buf {
	u32 refs;
	u32 size;
	u8 data[];
};

/* Returns a buffer with one reference; NULL if out of memory. Sizes up to 64 KiB come from a pool. */
struct wire_buf *wire_buf_alloc(u32 size);
static inline struct wire_buf *wire_buf_get(struct wire_buf *b)
{
	b->refs++;
	return b;
}
void wire_buf_put(struct wire_buf *b); /* NULL is allowed */

enum wire_packet_flags {
	WIRE_PKT_BAD_ICRC = 1 << 0, /* a fault corrupted bytes covered by the ICRC: the receiver's check fails */
	WIRE_PKT_BAD_VCRC = 1 << 1, /* corrupted on the link: the next receiver's check fails */
	WIRE_PKT_EBP = 1 << 2,      /* ends with EBP: an upstream port detected an error */
	/*
	 * Zero-copy: the payload is in memory of a program, which may modify it, and unmap it after this iteration of
	 * the loop; or in memory shared with another daemon, until the call that passes the packet returns. Who keeps
	 * such a packet copies its payload: wire_packet_own().
	 */
	WIRE_PKT_ZCOPY = 1 << 3,
	WIRE_PKT_UNCOUNTED = 1 << 4, /* on a link with packet faults, after which the receiving port counts it */
};

/*
 * hdr[] has LRH, GRH (if grh_off), BTH and the extended transport headers, contiguously. Packets of RoCE have an LRH
 * with LIDs 0 and a GRH, from and to which their link converts. CRCs are not stored. The payload is @len bytes at
 * @data, within @buf (NULL: len is 0, or WIRE_PKT_ZCOPY). Pad bytes according to the BTH's pad count follow on the wire
 * and are zero; @len does not include them.
 */
struct wire_packet {
	struct list link; /* on the owner's queue; unlinked (self-linked) when ownership passes */
	struct wire_buf *buf;
	const u8 *data;
	u32 len;
	u16 hdr_len;
	u8 grh_off; /* offset of the GRH in hdr, 0: none */
	u8 bth_off; /* offset of the BTH in hdr */
	u8 vl;      /* the VL of the present link; equals the LRH's */
	u8 flags;
	u8 in_port; /* for the link layer: ingress port of the node */
	struct wire_l2 l2;
	u64 entered; /* ns of the loop's clock at which it entered the present output queue (LifeTimeValue, 18.2.5.4) */
	u64 queued;  /* ns at which it reached the head of that queue (HOQLife), or entered it */
	u64 tail; /* ps at which its last byte has arrived at the present port, on links with rates (fabric/timing.c) */
	u8 hdr[WIRE_HDR_MAX];
};

/* Allocates an empty packet (no payload, hdr_len 0) from a pool; NULL if out of memory. */
struct wire_packet *wire_packet_alloc(void);
/* Frees the packet and its reference to the payload. */
void wire_packet_free(struct wire_packet *p);
/* Replaces a zero-copy payload by a copy. False if out of memory. */
bool wire_packet_own(struct wire_packet *p);
/* Replaces any payload by a copy in an unshared buffer of the same length. False if out of memory. */
bool wire_packet_unshare(struct wire_packet *p);
/* Truncates the payload to @len bytes, at most its length, and sets the pad count. */
void wire_packet_truncate(struct wire_packet *p, u32 len);
/*
 * Sets offsets and lengths of @p, whose headers from @bth on begin at offset @at of its bytes; @len: from the BTH to
 * the end of the received bytes, of which @tail are CRCs. False: reserved opcode, or invalid length.
 */
bool wire_packet_parse_bth(struct wire_packet *p, const void *bth, u32 at, u32 len, u32 tail);
/* A packet with its own copy of the headers and a shared payload; NULL if out of memory. */
struct wire_packet *wire_packet_clone(const struct wire_packet *p);

/*
 * Bytes on an InfiniBand link from LRH to ICRC inclusive, a multiple of 4 (the LRH's PktLen in words, 7.7.5), without
 * the two bytes of VCRC.
 */
static inline u32 wire_packet_link_len(const struct wire_packet *p)
{
	return p->hdr_len + ((p->len + 3) & ~3u) + 4;
}

/*
 * Writes the packet's link bytes (LRH ... payload, pad, ICRC, VCRC) to @dst of @size bytes, with computed CRCs
 * (corrupted if flags say so). Returns the length, or -ENOSPC.
 */
int wire_packet_serialize(const struct wire_packet *p, u8 *dst, u32 size);
/* Writes the first @n of these bytes, at most all. Computes the CRCs only if bytes of them are written. */
void wire_packet_serialize_start(const struct wire_packet *p, u8 *dst, u32 n);
u16 wire_vcrc(const u8 *data, u32 len); /* of LRH to ICRC */
/*
 * Parses link bytes with all checks of an untrusted packet: lengths, LVer, LNH, PktLen against @len, opcode, header
 * sequence, pad, and with @check_crc ICRC and VCRC. Returns a packet with its own copy; NULL with errno EBADMSG or
 * ENOMEM.
 */
struct wire_packet *wire_packet_parse(const u8 *src, u32 len, bool check_crc);
/*
 * The same without CRCs, for bytes that another process may change meanwhile: @hdr is a copy of the first WIRE_HDR_MAX
 * bytes, or of as many as there are. The payload, which is the rest, is not copied: WIRE_PKT_ZCOPY.
 */
struct wire_packet *wire_packet_parse_shared(const u8 *hdr, const u8 *src, u32 len);
/* Number of allocated packets and buffers: a leak check for tests. */
u32 wire_packet_live(void);

/* ICRC (7.8.1) over the invariant bytes. */
u32 wire_packet_icrc(const struct wire_packet *p);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* GIDs, LIDs and P_Keys, and code tables of IBTA rates, sizes and times. */
#ifndef MUSLIN_WIRE_GID_H
#define MUSLIN_WIRE_GID_H

#include "emu/lib/types.h"

#define WIRE_GID_PREFIX_DEFAULT 0xfe80000000000000ull /* link-local, IBTA 4.1.1 */

struct wire_gid {
	u8 raw[16];
};
static_assert(sizeof(struct wire_gid) == 16, "GID size");

static inline u64 wire_gid_half(const struct wire_gid *gid, int half)
{
	__be64 v;

	memcpy(&v, gid->raw + 8 * half, 8);
	return be64_to_cpu(v);
}

static inline u64 wire_gid_prefix(const struct wire_gid *gid)
{
	return wire_gid_half(gid, 0);
}

static inline u64 wire_gid_guid(const struct wire_gid *gid)
{
	return wire_gid_half(gid, 1);
}

static inline struct wire_gid wire_gid_make(u64 prefix, u64 guid)
{
	__be64 p = cpu_to_be64(prefix), g = cpu_to_be64(guid);
	struct wire_gid gid;

	memcpy(gid.raw, &p, 8);
	memcpy(gid.raw + 8, &g, 8);
	return gid;
}

static inline struct wire_gid wire_gid_from_bytes(const void *p)
{
	struct wire_gid gid;

	memcpy(gid.raw, p, sizeof(gid.raw));
	return gid;
}

static inline int wire_gid_cmp(const struct wire_gid *a, const struct wire_gid *b)
{
	return memcmp(a->raw, b->raw, sizeof(a->raw));
}

static inline bool wire_gid_equal(const struct wire_gid *a, const struct wire_gid *b)
{
	return wire_gid_cmp(a, b) == 0;
}

static inline bool wire_gid_is_zero(const struct wire_gid *gid)
{
	return wire_gid_prefix(gid) == 0 && wire_gid_guid(gid) == 0;
}

static inline bool wire_gid_is_multicast(const struct wire_gid *gid)
{
	return gid->raw[0] == 0xff;
}

/* Multicast GID: 0xff, flags (4 bits, bit 0 = transient), scope (4 bits), group. IBTA 4.1.1. */
static inline u8 wire_mgid_scope(const struct wire_gid *gid)
{
	return gid->raw[1] & 0xf;
}

static inline u8 wire_mgid_flags(const struct wire_gid *gid)
{
	return gid->raw[1] >> 4;
}

/* LIDs. IBTA 4.1.3. */
#define WIRE_LID_RESERVED      0x0000
#define WIRE_LID_UNICAST_MIN   0x0001
#define WIRE_LID_UNICAST_MAX   0xbfff
#define WIRE_LID_MULTICAST_MIN 0xc000
#define WIRE_LID_MULTICAST_MAX 0xfffe
#define WIRE_LID_PERMISSIVE    0xffff

static inline bool wire_lid_is_unicast(u16 lid)
{
	return lid >= WIRE_LID_UNICAST_MIN && lid <= WIRE_LID_UNICAST_MAX;
}

static inline bool wire_lid_is_multicast(u16 lid)
{
	return lid >= WIRE_LID_MULTICAST_MIN && lid <= WIRE_LID_MULTICAST_MAX;
}

/* P_Keys. IBTA 10.9.1, 10.9.3: bit 15 is full membership, the low 15 bits must match and not be 0. */
#define WIRE_PKEY_DEFAULT_FULL    0xffff
#define WIRE_PKEY_DEFAULT_LIMITED 0x7fff
#define WIRE_PKEY_FULL            0x8000
#define WIRE_PKEY_BASE            0x7fff

static inline bool wire_pkey_is_valid(u16 pkey)
{
	return (pkey & WIRE_PKEY_BASE) != 0;
}

static inline bool wire_pkey_match(u16 a, u16 b)
{
	return (a & WIRE_PKEY_BASE) == (b & WIRE_PKEY_BASE) && wire_pkey_is_valid(a) && ((a | b) & WIRE_PKEY_FULL);
}

#define WIRE_QP_MULTICAST 0xffffff
#define WIRE_PSN_MASK     0xffffff
#define WIRE_QPN_MASK     0xffffff

/* MTU codes. IBTA 14.2.5.6, NeighborMTU. */
enum wire_mtu {
	WIRE_MTU_256 = 1,
	WIRE_MTU_512 = 2,
	WIRE_MTU_1024 = 3,
	WIRE_MTU_2048 = 4,
	WIRE_MTU_4096 = 5,
};

static inline unsigned int wire_mtu_bytes(u8 code) /* 0 if reserved */
{
	return code >= WIRE_MTU_256 && code <= WIRE_MTU_4096 ? 128u << code : 0;
}

static inline u8 wire_mtu_code(unsigned int bytes) /* largest code that fits in BYTES, 0 if none */
{
	u8 code = WIRE_MTU_4096;

	while (code && wire_mtu_bytes(code) > bytes)
		code--;
	return code;
}

/* Static rate codes of paths, groups and address vectors. IBTA 15.2.5.16, Rate. */
enum wire_rate {
	WIRE_RATE_PORT = 0, /* verbs only: the port's own rate */
	WIRE_RATE_2_5 = 2,
	WIRE_RATE_10 = 3,
	WIRE_RATE_30 = 4,
	WIRE_RATE_5 = 5,
	WIRE_RATE_20 = 6,
	WIRE_RATE_40 = 7,
	WIRE_RATE_60 = 8,
	WIRE_RATE_80 = 9,
	WIRE_RATE_120 = 10,
	WIRE_RATE_14 = 11,
	WIRE_RATE_56 = 12,
	WIRE_RATE_112 = 13,
	WIRE_RATE_168 = 14,
	WIRE_RATE_25 = 15,
	WIRE_RATE_100 = 16,
	WIRE_RATE_200 = 17,
	WIRE_RATE_300 = 18,
	WIRE_RATE_28 = 19,
	WIRE_RATE_50 = 20,
	WIRE_RATE_400 = 21,
	WIRE_RATE_600 = 22,
	WIRE_RATE_800 = 23,
	WIRE_RATE_1200 = 24,
	WIRE_RATE_NUM,
};

/* Signalling rate in Mb/s; 0 if CODE is reserved. The order of the codes is not that of the rates: compare these. */
u32 wire_rate_mbps(u8 code);

/* "2.5", "100" ... in Gb/s, or "?". */
const char *wire_rate_name(u8 code);

/* The lanes of one LinkWidth bit (WIRE_WIDTH_*); 0 unless it is exactly one known bit. */
unsigned int wire_width_lanes(u8 width);

/*
 * Link speeds in one enumeration, slowest first. In PortInfo the first three are in LinkSpeed*, those from FDR on in
 * LinkSpeedExt* and XDR in LinkSpeedExt2* (IBTA 14.2.5.6). FDR10 is Mellanox's: QDR in PortInfo, and a bit of
 * MLNXExtendedPortInfo.
 */
enum wire_speed {
	WIRE_SPEED_NONE,
	WIRE_SPEED_SDR,
	WIRE_SPEED_DDR,
	WIRE_SPEED_QDR,
	WIRE_SPEED_FDR10,
	WIRE_SPEED_FDR,
	WIRE_SPEED_EDR,
	WIRE_SPEED_HDR,
	WIRE_SPEED_NDR,
	WIRE_SPEED_XDR,
	WIRE_SPEED_NUM,
};

const char *wire_speed_name(enum wire_speed speed);
enum wire_speed wire_speed_from_name(const char *name); /* WIRE_SPEED_NONE if unknown; case-insensitive */

/* The speed encoded by LinkSpeedActive and LinkSpeedExtActive, in which XDR is bit 5 (LinkSpeedExt2Active << 5). */
enum wire_speed wire_speed_active(u8 link_speed, u8 link_speed_ext);

/* The rate code of a link of LANES lanes (1, 2, 4, 8, 12) at SPEED; 0 if IBTA has none. */
u8 wire_link_rate(enum wire_speed speed, unsigned int lanes);

/* Data rate of a link in kb/s: without the line coding (8b/10b to QDR, 64b/66b from FDR10 on, the FEC from HDR on). */
u64 wire_link_data_kbps(enum wire_speed speed, unsigned int lanes);

/*
 * 5-bit time codes: 4.096 us * 2^code (ack timeout, packet life, subnet timeout, CM timeouts). The caller must know
 * whether code 0 or codes over 19 mean infinity for its field.
 */
static inline u64 wire_timeout_ns(u8 code)
{
	return 4096ull << (code & 31);
}

/* RNR NAK timer code (5 bits) to nanoseconds. IBTA 9.7.5.2.8. */
u64 wire_rnr_timer_ns(u8 code);

#endif

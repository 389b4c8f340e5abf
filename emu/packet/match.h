/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The packets that a fault applies to: keys of a fault line, parsed by the table of emu/lib/spec.h. */
#ifndef MUSLIN_PACKET_MATCH_H
#define MUSLIN_PACKET_MATCH_H

#include "emu/lib/spec.h"
#include "emu/packet/packet.h"
#include "emu/wire/gid.h"

enum wire_match_field {
	WIRE_MATCH_OPCODE,
	WIRE_MATCH_QPN,
	WIRE_MATCH_PSN,
	WIRE_MATCH_SLID,
	WIRE_MATCH_DLID,
	WIRE_MATCH_SGID,
	WIRE_MATCH_DGID,
	WIRE_MATCH_SL,
	WIRE_MATCH_VL,
	WIRE_MATCH_LEN,
	WIRE_MATCH_CLASS,
	WIRE_MATCH_METHOD,
	WIRE_MATCH_ATTR,
	WIRE_MATCH_MOD,
	WIRE_MATCH_PCAP,
	WIRE_MATCH_FIELDS
};

/* @given has a WIRE_MATCH_* bit for each field to be compared. */
struct wire_match {
	u64 given;
	u64 opcodes[4]; /* bit set; MADs are UD_SEND_ONLY */
	u32 qpn[2], psn[2], slid[2], dlid[2], len[2];
	struct wire_gid sgid, dgid;
	u8 sl, vl, class, method;
	u16 attr;
	u32 mod;
	char pcap[SPEC_TEXT_MAX];
	void *program; /* compiled from pcap */
	u32 reach;     /* it reads no byte of a packet from there on */
};

bool wire_match_parse_opcodes(void *to, const char *value);
bool wire_match_parse_class(void *to, const char *value);
bool wire_match_parse_method(void *to, const char *value);
bool wire_match_parse_attr(void *to, const char *value);
bool wire_match_parse_gid(void *to, const char *value);

#define WIRE_MATCH_OPCODES \
	"names such as RC_SEND_ONLY, ack, read, request, ud, numbers, or several, separated by commas"
#define WIRE_MATCH_CLASSES "a MAD class such as Subn, SubnDR, SA, Perf, ComMgt, or a number"
#define WIRE_MATCH_METHODS "a method such as Get, Set, GetResp, Trap, or a number"
#define WIRE_MATCH_ATTRS   "an attribute's name such as PortInfo or PathRecord, or a number"

/* The keys of struct wire_match, from field @at on. */
#define WIRE_MATCH_WORDS(at, key, name, strct, member, fn, text) \
	[(at) + WIRE_MATCH_##key] =                              \
		SPEC_FIELD(name, SPEC_OTHER, strct, member, .parse = wire_match_parse_##fn, .wants = (text))
#define WIRE_MATCH_NUMBER(at, key, name, type, strct, member, most) \
	[(at) + WIRE_MATCH_##key] = SPEC_FIELD(name, type, strct, member, .max = (most))
#define WIRE_MATCH_SPEC(at, strct, match)                                                                \
	WIRE_MATCH_WORDS(at, OPCODE, "opcode", strct, match.opcodes, opcodes, WIRE_MATCH_OPCODES),       \
		WIRE_MATCH_NUMBER(at, QPN, "qpn", SPEC_RANGE, strct, match.qpn, 0xffffff),               \
		WIRE_MATCH_NUMBER(at, PSN, "psn", SPEC_RANGE, strct, match.psn, 0xffffff),               \
		WIRE_MATCH_NUMBER(at, SLID, "slid", SPEC_RANGE, strct, match.slid, 0xffff),              \
		WIRE_MATCH_NUMBER(at, DLID, "dlid", SPEC_RANGE, strct, match.dlid, 0xffff),              \
		WIRE_MATCH_WORDS(at, SGID, "sgid", strct, match.sgid, gid, "a GID"),                     \
		WIRE_MATCH_WORDS(at, DGID, "dgid", strct, match.dgid, gid, "a GID"),                     \
		WIRE_MATCH_NUMBER(at, SL, "sl", SPEC_U8, strct, match.sl, 15),                           \
		WIRE_MATCH_NUMBER(at, VL, "vl", SPEC_U8, strct, match.vl, 15),                           \
		WIRE_MATCH_NUMBER(at, LEN, "len", SPEC_RANGE, strct, match.len, WIRE_MTU_MAX),           \
		WIRE_MATCH_WORDS(at, CLASS, "class", strct, match.class, class, WIRE_MATCH_CLASSES),     \
		WIRE_MATCH_WORDS(at, METHOD, "method", strct, match.method, method, WIRE_MATCH_METHODS), \
		WIRE_MATCH_WORDS(at, ATTR, "attr", strct, match.attr, attr, WIRE_MATCH_ATTRS),           \
		[(at) + WIRE_MATCH_MOD] = SPEC_FIELD("mod", SPEC_U32, strct, match.mod),                 \
			[(at) + WIRE_MATCH_PCAP] = SPEC_FIELD("pcap", SPEC_TEXT, strct, match.pcap)
#define WIRE_MATCH_KEYS(at) ((BIT_ULL(WIRE_MATCH_FIELDS) - 1) << (at))
/* Those of the LRH, which RoCE packets do not have. */
#define WIRE_MATCH_LRH_KEYS(at)                                                                                  \
	((BIT_ULL(WIRE_MATCH_SLID) | BIT_ULL(WIRE_MATCH_DLID) | BIT_ULL(WIRE_MATCH_SL) | BIT_ULL(WIRE_MATCH_VL)) \
	 << (at))
/* Those of any Ethernet frame. */
#define WIRE_MATCH_FRAME_KEYS(at) ((BIT_ULL(WIRE_MATCH_LEN) | BIT_ULL(WIRE_MATCH_PCAP)) << (at))

/* Prepares for comparison, with @given as read by WIRE_MATCH_SPEC at @at. @frames: pcap= is for Ethernet frames. 0,
 * or -EINVAL and a message about pcap=. */
int wire_match_start(struct wire_match *m, u64 given, u32 at, bool frames, char *err, size_t err_len);
void wire_match_free(struct wire_match *m); /* frees the compiled program */
bool wire_match_test(const struct wire_match *m, const struct wire_packet *p);
/* Compares the fields that are the same for all packets of a flow (addresses, QPN, opcode and length). */
bool wire_match_flow(const struct wire_match *m, const struct wire_packet *p);
/* Compares len= and pcap= with an Ethernet frame, and the other fields with the RoCE packet in it. */
bool wire_match_frame(const struct wire_match *m, const u8 *frame, u32 len);
const u8 *wire_match_mad(const struct wire_packet *p); /* the MAD in the packet; NULL: not a MAD */

#endif

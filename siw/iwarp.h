/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Headers of MPA, DDP and RDMAP in an FPDU (RFC 5044, RFC 5041, RFC 5040). */
#ifndef MUSLIN_SIW_IWARP_H
#define MUSLIN_SIW_IWARP_H

#include "emu/lib/types.h"

#define IWARP_HDR __attribute__((packed))

/* ULPDU length, then the control bytes of DDP and RDMAP. */
struct iwarp_ctrl {
	__be16 len; /* bytes from here to the pad */
	u8 ddp;     /* T 1, L 1, reserved 4, version 2 */
	u8 rdmap;   /* version 2, reserved 2, opcode 4 */
} IWARP_HDR;

struct iwarp_tagged {
	struct iwarp_ctrl c;
	__be32 stag;
	__be64 to;
} IWARP_HDR;
static_assert(sizeof(struct iwarp_tagged) == 16, "tagged header");

struct iwarp_untagged {
	struct iwarp_ctrl c;
	__be32 inv_stag; /* of SEND with invalidate; otherwise reserved */
	__be32 qn, msn, mo;
} IWARP_HDR;
static_assert(sizeof(struct iwarp_untagged) == 20, "untagged header");

struct iwarp_read {
	struct iwarp_untagged u;
	__be32 sink_stag;
	__be64 sink_to;
	__be32 size, source_stag;
	__be64 source_to;
} IWARP_HDR;
static_assert(sizeof(struct iwarp_read) == 48, "read request");

struct iwarp_terminate {
	struct iwarp_untagged u;
	u8 layer_type; /* layer 4, error type 4 */
	u8 code;
	u8 headers; /* bits TERM_*: what follows of the segment in error */
	u8 reserved;
} IWARP_HDR;
static_assert(sizeof(struct iwarp_terminate) == 24, "terminate");

/* HdrCt of a Terminate: length of the DDP segment, DDP header, RDMAP header of a READ request (RFC 5040, 4.8). */
#define TERM_LENGTH 0x80
#define TERM_DDP    0x40
#define TERM_RDMAP  0x20

/* The headers of an FPDU, by the type in its control bytes. */
union iwarp_hdr {
	struct iwarp_ctrl ctrl;
	struct iwarp_tagged tagged;
	struct iwarp_untagged untagged;
	struct iwarp_read read;
	struct iwarp_terminate terminate;
};

static inline union iwarp_hdr *iwarp_hdr(const u8 *p)
{
	return (union iwarp_hdr *)(uintptr_t)p;
}

#define IWARP_LEN_SIZE 2
#define IWARP_CRC_SIZE 4

#define DDP_TAGGED       0x80
#define DDP_LAST         0x40
#define DDP_VERSION      0x01
#define DDP_VERSION_MASK 0x03

#define RDMAP_VERSION      0x40
#define RDMAP_VERSION_MASK 0xc0
#define RDMAP_OPCODE_MASK  0x0f

enum rdmap_opcode {
	RDMAP_WRITE,
	RDMAP_READ_REQUEST,
	RDMAP_READ_RESPONSE,
	RDMAP_SEND,
	RDMAP_SEND_INV,
	RDMAP_SEND_SE,
	RDMAP_SEND_SE_INV,
	RDMAP_TERMINATE,
	RDMAP_OPCODES
};

/* Untagged queues (RFC 5040, 4). */
enum ddp_queue {
	DDP_QN_SEND,
	DDP_QN_READ,
	DDP_QN_TERMINATE,
	DDP_QUEUES
};

/* Layer and type in the first byte, code in the second (RFC 5040, 4.8). */
enum iwarp_error {
	RDMAP_ERR_CATASTROPHIC = 0x0000,
	RDMAP_ERR_STAG = 0x0100,
	RDMAP_ERR_BOUNDS = 0x0101,
	RDMAP_ERR_ACCESS = 0x0102,
	RDMAP_ERR_STAG_STREAM = 0x0103,
	RDMAP_ERR_CANNOT_INVALIDATE = 0x0109,
	RDMAP_ERR_VERSION = 0x0205,
	RDMAP_ERR_OPCODE = 0x0206,
	DDP_ERR_T_STAG = 0x1100,
	DDP_ERR_T_BOUNDS = 0x1101,
	DDP_ERR_T_STAG_STREAM = 0x1102,
	DDP_ERR_T_VERSION = 0x1104,
	DDP_ERR_U_QN = 0x1201,
	DDP_ERR_U_NO_BUFFER = 0x1202,
	DDP_ERR_U_MSN = 0x1203,
	DDP_ERR_U_MO = 0x1204,
	DDP_ERR_U_TOO_LONG = 0x1205,
	DDP_ERR_U_VERSION = 0x1206,
	MPA_ERR_CRC = 0x2002,
	MPA_ERR_LENGTH = 0x2003,
};

/* Pad bytes that make length field and ULPDU a multiple of 4. */
static inline u32 iwarp_pad(u32 ulpdu)
{
	return -(ulpdu + IWARP_LEN_SIZE) & 3;
}

/* Length of the FPDU of a ULPDU of that length. */
static inline u32 iwarp_fpdu_len(u32 ulpdu)
{
	return IWARP_LEN_SIZE + ulpdu + iwarp_pad(ulpdu) + IWARP_CRC_SIZE;
}

#define SIW_MARKER_SIZE 4u

/* Bytes of the marker before an FPDU that starts at byte @pos of the stream; 0: none. */
u32 siw_marker_lead(u64 pos);
/* Bytes of all markers in an FPDU of @len bytes without them. */
u32 siw_marker_bytes(u64 pos, u32 len);
/* Inserts the markers: the FPDU is at @p plus their length before, and at @p with them afterwards. */
void siw_marker_insert(u8 *p, u64 pos, u32 len);
/* Removes the markers: afterwards @p has the @len bytes without them. False: a marker has a wrong pointer. */
bool siw_marker_remove(u8 *p, u64 pos, u32 len);

/* CRC32C of the @len bytes at @p, in wire order; 0 if CRCs are not used. */
__le32 iwarp_crc(const u8 *p, u32 len, bool used);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* MPA connection negotiation: request and reply frames of revision 1 and 2 (RFC 5044, 7.1; RFC 6581). */
#ifndef MUSLIN_SIW_MPA_NEGOTIATE_H
#define MUSLIN_SIW_MPA_NEGOTIATE_H

#include "emu/lib/types.h"

#define MPA_KEY_LEN     16
#define MPA_HEADER_LEN  20
#define MPA_PRIVATE_MAX 512 /* RFC 5044, 7.1.1 */
#define MPA_FRAME_MAX   (MPA_HEADER_LEN + MPA_PRIVATE_MAX)
#define MPA_V2_LEN      4 /* IRD and ORD before the private data of revision 2 */
#define MPA_DEPTH_MAX   0x3fff
#define MPA_DEPTH_NONE \
	MPA_DEPTH_MAX /* the sender does not negotiate IRD or ORD: each side uses its own (RFC 6581, 9.1) */

struct mpa_frame {
	bool reply;
	u8 revision;
	bool markers; /* the sender requests markers in FPDUs that it receives */
	bool crc, reject;
	/* revision 2 */
	bool enhanced, peer_to_peer;
	bool rtr_zero, rtr_write, rtr_read; /* RTR messages that the sender supports */
	u16 ird, ord;
	const u8 *data; /* private data; points into the parsed frame or to memory of the caller */
	u16 data_len;
};

/*
 * Parses the frame at @p. Returns its length; 0: more than @len bytes are needed; -EPROTO: invalid key, revision or
 * length, the caller closes the connection.
 */
int mpa_frame_parse(const u8 *p, u32 len, struct mpa_frame *f);
/* The length in the frame header at @p; more than MPA_FRAME_MAX if it is invalid. */
u32 mpa_frame_length(const u8 *p);
/* Writes @f. Returns its length, or -EMSGSIZE: too much private data. */
int mpa_frame_build(const struct mpa_frame *f, u8 p[MPA_FRAME_MAX]);

/* The negotiated parameters. */
struct mpa_terms {
	bool crc, initiator;
	bool mark_in, mark_out;             /* markers in received and in sent FPDUs */
	u16 ird, ord;                       /* own */
	bool rtr_zero, rtr_write, rtr_read; /* the RTR message that the initiator sends; at most one */
};

enum mpa_result {
	MPA_ACCEPT,
	MPA_REJECT,     /* the reply rejects */
	MPA_MISMATCH,   /* the reply does not fit the request: close */
	MPA_REVISION_1, /* the peer has revision 1 only: retry with it */
};
/* The responder's limits, and whether it requests CRC and markers. */
struct mpa_limits {
	u16 ird, ord;
	bool crc, markers;
};
/* Responder: creates the reply to @req, and the negotiated parameters. */
enum mpa_result mpa_reply_create(const struct mpa_frame *req, const struct mpa_limits *own, struct mpa_frame *reply,
				 struct mpa_terms *terms);
/* Initiator: checks the reply to its @req, and returns the negotiated parameters. */
enum mpa_result mpa_reply_check(const struct mpa_frame *req, const struct mpa_frame *reply, struct mpa_terms *terms);

#endif

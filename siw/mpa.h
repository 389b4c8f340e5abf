/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The frames by which an iWARP connection starts: MPA requests and replies of revision 1 and 2. RFC 5044, RFC 6581. */
#ifndef MUSLIN_SIW_MPA_H
#define MUSLIN_SIW_MPA_H

#include "emu/lib/types.h"

#define MPA_KEY_LEN     16
#define MPA_HEADER_LEN  20
#define MPA_PRIVATE_MAX 512 /* RFC 5044, 7.1.1 */
#define MPA_FRAME_MAX   (MPA_HEADER_LEN + MPA_PRIVATE_MAX)
#define MPA_V2_LEN      4 /* IRD and ORD before the private data of revision 2 */
#define MPA_DEPTH_MAX   0x3fff

struct mpa_frame {
	bool reply;
	u8 revision;
	bool markers; /* the sender wants markers in what it receives */
	bool crc, reject;
	/* revision 2 */
	bool enhanced, peer_to_peer;
	bool rtr_zero, rtr_write, rtr_read; /* ready-to-receive messages that the sender can do */
	u16 ird, ord;
	const u8 *data; /* private data, in what was parsed or is the caller's */
	u16 data_len;
};

/*
 * Reads the frame at the start of @p. Returns its length; 0: more than @len bytes are needed; -EPROTO: this is none (key,
 * revision, length), for which the connection is to be closed.
 */
int mpa_frame_parse(const u8 *p, u32 len, struct mpa_frame *f);
/* The whole length of the frame whose header is at @p, as it says; more than MPA_FRAME_MAX where it is wrong. */
u32 mpa_frame_length(const u8 *p);
/* Writes @f; its length, or -EMSGSIZE: too much private data. */
int mpa_frame_build(const struct mpa_frame *f, u8 p[MPA_FRAME_MAX]);

/* What both sides have agreed on. */
struct mpa_terms {
	bool crc, initiator;
	bool mark_in, mark_out;             /* markers are in what comes, and in what is sent */
	u16 ird, ord;                       /* own */
	bool rtr_zero, rtr_write, rtr_read; /* one of them, or none: what the initiator sends first */
};

enum mpa_verdict {
	MPA_ACCEPT,
	MPA_REJECT,   /* answer with a reply that rejects */
	MPA_MISMATCH, /* the reply does not fit the request: close */
	MPA_OLDER,    /* the peer has revision 1 only: ask once more, by that */
};
/* What a responder can do at most, and likes. */
struct mpa_wants {
	u16 ird, ord;
	bool crc, markers;
};
/* For the responder: may @req be served, and what is to be answered? */
enum mpa_verdict mpa_answer(const struct mpa_frame *req, const struct mpa_wants *own, struct mpa_frame *reply,
			    struct mpa_terms *terms);
/* For the initiator: the reply to its own @req. */
enum mpa_verdict mpa_conclude(const struct mpa_frame *req, const struct mpa_frame *reply, struct mpa_terms *terms);

#endif

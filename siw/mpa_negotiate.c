// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * MPA connection negotiation: building, parsing and matching of MPA request and reply frames (RFC 5044, 7; RFC 6581, 5
 * to 9).
 */
#include <errno.h>

#include "siw/mpa_negotiate.h"

#define FLAG_MARKERS  0x80
#define FLAG_CRC      0x40
#define FLAG_REJECT   0x20
#define FLAG_ENHANCED 0x10 /* revision 2 */

/* Flags in IRD and ORD (RFC 6581, 9). */
#define IRD_PEER_TO_PEER 0x8000
#define IRD_RTR_ZERO     0x4000
#define ORD_RTR_WRITE    0x8000
#define ORD_RTR_READ     0x4000

static const char key_request[] = "MPA ID Req Frame", key_reply[] = "MPA ID Rep Frame";

static u16 get16(const u8 *p)
{
	return (u16)(p[0] << 8 | p[1]);
}

static void put16(u8 *p, u16 v)
{
	p[0] = (u8)(v >> 8);
	p[1] = (u8)v;
}

static bool known_key(const u8 *p, u32 len, bool *reply)
{
	u32 n = len < MPA_KEY_LEN ? len : MPA_KEY_LEN;

	*reply = memcmp(p, key_request, n) != 0;
	return !*reply || !memcmp(p, key_reply, n);
}

u32 mpa_frame_length(const u8 *p)
{
	return MPA_HEADER_LEN + get16(p + 18);
}

static void get_enhanced(struct mpa_frame *f)
{
	u16 ird = get16(f->data), ord = get16(f->data + 2);

	f->peer_to_peer = ird & IRD_PEER_TO_PEER;
	f->rtr_zero = ird & IRD_RTR_ZERO;
	f->rtr_write = ord & ORD_RTR_WRITE;
	f->rtr_read = ord & ORD_RTR_READ;
	f->ird = ird & MPA_DEPTH_MAX;
	f->ord = ord & MPA_DEPTH_MAX;
	f->data += MPA_V2_LEN;
	f->data_len -= MPA_V2_LEN;
}

int mpa_frame_parse(const u8 *p, u32 len, struct mpa_frame *f)
{
	u8 flags;
	int n;

	memset(f, 0, sizeof(*f));
	if (!known_key(p, len, &f->reply)) /* an error is detected at the first byte that differs */
		return -EPROTO;
	if (len < MPA_HEADER_LEN)
		return 0;
	flags = p[16];
	f->revision = p[17];
	f->data_len = get16(p + 18);
	if (!f->revision || f->revision > 2 || f->data_len > MPA_PRIVATE_MAX)
		return -EPROTO;
	f->markers = flags & FLAG_MARKERS;
	f->crc = flags & FLAG_CRC;
	f->reject = flags & FLAG_REJECT;
	f->enhanced = f->revision == 2 && flags & FLAG_ENHANCED;
	if ((f->reject && !f->reply) || (f->enhanced && f->data_len < MPA_V2_LEN))
		return -EPROTO;
	n = MPA_HEADER_LEN + f->data_len;
	if (len < (u32)n)
		return 0;
	f->data = p + MPA_HEADER_LEN;
	if (f->enhanced)
		get_enhanced(f);
	return n;
}

int mpa_frame_build(const struct mpa_frame *f, u8 p[MPA_FRAME_MAX])
{
	u32 extra = f->enhanced ? MPA_V2_LEN : 0;
	u8 *data = p + MPA_HEADER_LEN;

	if (f->data_len + extra > MPA_PRIVATE_MAX)
		return -EMSGSIZE;
	memcpy(p, f->reply ? key_reply : key_request, MPA_KEY_LEN);
	p[16] = (f->markers ? FLAG_MARKERS : 0) | (f->crc ? FLAG_CRC : 0) | (f->reject ? FLAG_REJECT : 0) |
		(f->enhanced ? FLAG_ENHANCED : 0);
	p[17] = f->revision;
	put16(p + 18, (u16)(f->data_len + extra));
	if (extra) {
		put16(data, (u16)((f->ird & MPA_DEPTH_MAX) | (f->peer_to_peer ? IRD_PEER_TO_PEER : 0) |
				  (f->rtr_zero ? IRD_RTR_ZERO : 0)));
		put16(data + 2, (u16)((f->ord & MPA_DEPTH_MAX) | (f->rtr_write ? ORD_RTR_WRITE : 0) |
				      (f->rtr_read ? ORD_RTR_READ : 0)));
		data += extra;
	}
	if (f->data_len)
		memcpy(data, f->data, f->data_len);
	return (int)(MPA_HEADER_LEN + extra + f->data_len);
}

/*
 * Selects one RTR message that both sides support: an empty WRITE has no side effect, an empty SEND increments the MSN.
 */
static bool choose_rtr(const struct mpa_frame *a, const struct mpa_frame *b, struct mpa_terms *terms)
{
	terms->rtr_write = a->rtr_write && b->rtr_write;
	terms->rtr_read = !terms->rtr_write && a->rtr_read && b->rtr_read;
	terms->rtr_zero = !terms->rtr_write && !terms->rtr_read && a->rtr_zero && b->rtr_zero;
	return terms->rtr_write || terms->rtr_read || terms->rtr_zero;
}

enum mpa_result mpa_reply_create(const struct mpa_frame *req, const struct mpa_limits *own, struct mpa_frame *reply,
				 struct mpa_terms *terms)
{
	static const struct mpa_frame all = { .rtr_write = true, .rtr_read = true, .rtr_zero = true };
	bool agreed = !req->peer_to_peer;

	*reply = (struct mpa_frame){
		.reply = true, .revision = req->revision, .enhanced = req->enhanced, .markers = own->markers
	};
	*terms = (struct mpa_terms){ .crc = req->crc || own->crc,
				     .ird = own->ird,
				     .ord = own->ord,
				     .mark_in = own->markers,
				     .mark_out = req->markers };
	reply->crc = terms->crc;
	if (req->enhanced) {
		/* own ORD is limited by the peer's IRD, and the peer's ORD by the own IRD */
		terms->ord = min(own->ord, req->ird);
		terms->ird = min(own->ird, req->ord);
		reply->ird = terms->ird;
		reply->ord = terms->ord;
	}
	if (req->peer_to_peer) {
		agreed = choose_rtr(req, &all, terms);
		reply->peer_to_peer = true;
		reply->rtr_write = terms->rtr_write;
		reply->rtr_read = terms->rtr_read;
		reply->rtr_zero = terms->rtr_zero;
	}
	reply->reject = req->reply || !agreed;
	return reply->reject ? MPA_REJECT : MPA_ACCEPT;
}

enum mpa_result mpa_reply_check(const struct mpa_frame *req, const struct mpa_frame *reply, struct mpa_terms *terms)
{
	*terms = (struct mpa_terms){ .crc = req->crc || reply->crc,
				     .initiator = true,
				     .ird = req->ird,
				     .ord = req->ord,
				     .mark_in = req->markers,
				     .mark_out = reply->markers };
	if (!reply->reply || reply->revision > req->revision)
		return MPA_MISMATCH;
	if (reply->revision < req->revision) /* RFC 6581, 10 */
		return MPA_REVISION_1;
	if (reply->reject)
		return MPA_REJECT;
	if ((req->crc && !reply->crc) || (reply->enhanced && !req->enhanced))
		return MPA_MISMATCH;
	if (!reply->enhanced)
		return req->peer_to_peer ? MPA_MISMATCH : MPA_ACCEPT;
	terms->ord = min(req->ord, reply->ird);
	if (reply->ord != MPA_DEPTH_NONE) {
		if (reply->ord > req->ird) /* insufficient IRD resources (RFC 6581, 9.1) */
			return MPA_MISMATCH;
		terms->ird = reply->ord;
	}
	if (req->peer_to_peer && !choose_rtr(req, reply, terms))
		return MPA_MISMATCH; /* no matching RTR (RFC 6581, 9.2) */
	return MPA_ACCEPT;
}

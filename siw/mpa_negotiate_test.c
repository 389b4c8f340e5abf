// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* MPA negotiation: valid and invalid frames, and the resulting parameters of two sides; a row per rule. */
#include <errno.h>

#include "emu/lib/row.h"
#include "siw/mpa_negotiate.h"

static const u8 request[] = "MPA ID Req Frame\x40\x01\x00\x03"
			    "abc";

static void test_parse(void)
{
	static const struct {
		const char *what;
		u32 at, len;
		u8 value;
		int result;
	} rows[] = {
		{ "a request", 16, 23, 0x40, 23 },
		{ "and more behind it", 16, 24, 0x40, 23 },
		{ "no bytes", 16, 0, 0x40, 0 },
		{ "a byte", 16, 1, 0x40, 0 },
		{ "half a key", 16, 9, 0x40, 0 },
		{ "a header without its length", 16, 19, 0x40, 0 },
		{ "incomplete private data", 16, 22, 0x40, 0 },
		{ "another protocol, told by its first byte", 0, 1, 'G', -EPROTO },
		{ "a wrong key", 15, 23, 'x', -EPROTO },
		{ "revision 0", 17, 23, 0, -EPROTO },
		{ "revision 3", 17, 23, 3, -EPROTO },
		{ "too much private data", 18, 23, 3, -EPROTO },
		{ "a request that rejects", 16, 23, 0x20, -EPROTO },
		{ "revision 1 takes no notice of the later flag", 16, 23, 0x50, 23 },
	};
	struct mpa_frame f;
	u8 bytes[32];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		memcpy(bytes, request, sizeof(request));
		bytes[rows[i].at] = rows[i].value;
		row(1 + (int)i, rows[i].what, mpa_frame_parse(bytes, rows[i].len, &f) == rows[i].result);
	}
	memcpy(bytes, request, sizeof(request));
	bytes[16] = 0x50;
	bytes[17] = 2;
	row(20, "revision 2 without room for IRD and ORD", mpa_frame_parse(bytes, 23, &f) == -EPROTO);
}

static void test_round(void)
{
	struct mpa_frame f = { .revision = 2,
			       .crc = true,
			       .enhanced = true,
			       .peer_to_peer = true,
			       .rtr_write = true,
			       .ird = 16,
			       .ord = 8,
			       .data = (const u8 *)"hello",
			       .data_len = 5 },
			 g;
	u8 bytes[MPA_FRAME_MAX];
	int n = mpa_frame_build(&f, bytes);

	row(30, "revision 2 with private data: length", n == 29 && mpa_frame_parse(bytes, 29, &g) == 29);
	row(31, "revision 2 with private data: members",
	    g.peer_to_peer && g.rtr_write && !g.rtr_read && !g.rtr_zero && g.ird == 16 && g.ord == 8 && g.crc &&
		    g.data_len == 5 && !memcmp(g.data, "hello", 5));
	f.data_len = 509;
	row(32, "more private data than fits", mpa_frame_build(&f, bytes) == -EMSGSIZE);
}

static void test_agree(void)
{
	struct mpa_frame req = { .revision = 2,
				 .enhanced = true,
				 .peer_to_peer = true,
				 .rtr_write = true,
				 .rtr_read = true,
				 .ird = 4,
				 .ord = 100 },
			 reply, old = { .revision = 1 };
	const struct mpa_limits own = { .ird = 16, .ord = 16, .crc = true }, plain = { .ird = 16, .ord = 16 },
				marked = { .ird = 16, .ord = 16, .markers = true };
	struct mpa_terms a, b;

	row(40, "request: accepted", mpa_reply_create(&req, &own, &reply, &b) == MPA_ACCEPT);
	row(41, "request: IRD, ORD, CRC and RTR of both sides",
	    b.ird == 16 && b.ord == 4 && b.crc && b.rtr_write && !b.rtr_read);
	row(42, "reply: the initiator has the same terms",
	    mpa_reply_check(&req, &reply, &a) == MPA_ACCEPT && a.ord == 16 && a.ird == 4 && a.crc && a.rtr_write);
	reply.ord = 5;
	row(43, "reply with an ORD above the initiator's IRD", mpa_reply_check(&req, &reply, &a) == MPA_MISMATCH);
	reply.ird = reply.ord = MPA_DEPTH_NONE;
	row(55, "reply of a peer that does not negotiate IRD and ORD (RFC 6581, 9.1)",
	    mpa_reply_check(&req, &reply, &a) == MPA_ACCEPT && a.ird == 4 && a.ord == 100);
	reply.ird = 16;
	reply.ord = 4;
	reply.rtr_write = false;
	row(44, "reply without RTR", mpa_reply_check(&req, &reply, &a) == MPA_MISMATCH);
	req.ird = req.ord = MPA_DEPTH_NONE;
	row(56, "request of a peer that does not negotiate them: own limits",
	    mpa_reply_create(&req, &own, &reply, &b) == MPA_ACCEPT && b.ird == 16 && b.ord == 16);
	req.ird = 4;
	req.ord = 100;
	req.rtr_write = req.rtr_read = false;
	row(45, "request of peer to peer without RTR",
	    mpa_reply_create(&req, &own, &reply, &b) == MPA_REJECT && reply.reject);
	row(46, "reply that rejects", mpa_reply_check(&req, &reply, &a) == MPA_REJECT);
	row(47, "revision 1: no RTR",
	    mpa_reply_create(&old, &plain, &reply, &b) == MPA_ACCEPT && !b.crc && reply.revision == 1);
	old.markers = true;
	row(48, "request for markers: responder",
	    mpa_reply_create(&old, &plain, &reply, &b) == MPA_ACCEPT && b.mark_out && !b.mark_in && !reply.markers);
	row(52, "request for markers: initiator",
	    mpa_reply_check(&old, &reply, &a) == MPA_ACCEPT && a.mark_in && !a.mark_out);
	old.markers = false;
	row(53, "reply that requests markers: responder",
	    mpa_reply_create(&old, &marked, &reply, &b) == MPA_ACCEPT && b.mark_in && !b.mark_out && reply.markers);
	row(54, "reply that requests markers: initiator",
	    mpa_reply_check(&old, &reply, &a) == MPA_ACCEPT && a.mark_out && !a.mark_in);
	reply = (struct mpa_frame){ .reply = true, .revision = 2 };
	row(49, "reply of a later revision", mpa_reply_check(&old, &reply, &a) == MPA_MISMATCH);
	reply = (struct mpa_frame){ .reply = true, .revision = 1 };
	old.crc = true;
	row(50, "reply without the CRC that was requested", mpa_reply_check(&old, &reply, &a) == MPA_MISMATCH);
	reply.reply = false;
	row(51, "request instead of a reply (a peer that connects to itself)",
	    mpa_reply_check(&old, &reply, &a) == MPA_MISMATCH);
}

/* Each RTR message that an initiator may offer, and the selected one. */
static void test_rtr(void)
{
	static const struct {
		const char *what;
		bool write, read, zero;
		bool w, r, z;
	} rows[] = {
		{ "a WRITE", true, false, false, true, false, false },
		{ "a READ", false, true, false, false, true, false },
		{ "a SEND", false, false, true, false, false, true },
		{ "a WRITE or a SEND", true, false, true, true, false, false },
		{ "a READ or a SEND", false, true, true, false, true, false },
		{ "any", true, true, true, true, false, false },
	};
	const struct mpa_limits own = { .ird = 16, .ord = 16 };
	struct mpa_frame req, reply, old = { .revision = 1, .reply = true };
	struct mpa_terms a, b;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		req = (struct mpa_frame){ .revision = 2, .enhanced = true, .peer_to_peer = true };
		req.rtr_write = rows[i].write;
		req.rtr_read = rows[i].read;
		req.rtr_zero = rows[i].zero;
		row(60 + (int)i, rows[i].what,
		    mpa_reply_create(&req, &own, &reply, &b) == MPA_ACCEPT && b.rtr_write == rows[i].w &&
			    b.rtr_read == rows[i].r && b.rtr_zero == rows[i].z);
		row(70 + (int)i, "reply: the initiator has the same RTR",
		    mpa_reply_check(&req, &reply, &a) == MPA_ACCEPT && a.rtr_write == rows[i].w &&
			    a.rtr_read == rows[i].r && a.rtr_zero == rows[i].z);
	}
	row(80, "reply of revision 1", mpa_reply_check(&req, &old, &a) == MPA_REVISION_1);
	old.reject = true;
	row(81, "reply of revision 1 that rejects", mpa_reply_check(&req, &old, &a) == MPA_REVISION_1);
	reply.reject = true;
	row(82, "reply of revision 2 that rejects", mpa_reply_check(&req, &reply, &a) == MPA_REJECT);
}

int main(void)
{
	test_parse();
	test_rtr();
	test_round();
	test_agree();
	return rows_end();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* RoCEv2 packets of real adapters, and every way in which a datagram can be malformed. */
#include <errno.h>

#include "emu/lib/row.h"
#include "emu/packet/match.h"
#include "emu/packet/roce.h"
#include "emu/wire/ether.h"
#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"

/* A UC SEND that a ConnectX-4 Lx sent to itself, 192.168.0.7, with identification 1144. */
static const u8 uc_send[] = {
	0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10, 0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89,
	0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0x00, 0x00, 0x78, 0xf3, 0x53, 0xf3,
};
/* A CNP of a ConnectX-4 Lx, 10.0.17.1 to 10.0.18.1, source port 0, identification 0x718c. */
static const u8 cnp[] = {
	0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0, 0, 0, 0, 0,    0,    0,    0,
	0,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0, 0, 0x82, 0xfd, 0x00, 0x2a,
};

static struct wire_roce uc_path(void)
{
	return (struct wire_roce){ .src = wire_gid_from_v4(0xc0a80007),
				   .dst = wire_gid_from_v4(0xc0a80007),
				   .sport = 49152,
				   .id = 1144,
				   .tos = 1,
				   .ttl = 64 };
}

/* NULL: rejected, with errno. */
static struct wire_packet *parse(const u8 *bytes, u32 len, const struct wire_roce *r)
{
	struct wire_buf *buf = wire_buf_alloc(max(len, 1u));
	struct wire_packet *p;

	memcpy(buf->data, bytes, len);
	p = wire_roce_parse(buf, 0, len, r);
	wire_buf_put(buf);
	return p;
}

static bool taken(const u8 *bytes, u32 len, const struct wire_roce *r)
{
	struct wire_packet *p = parse(bytes, len, r);

	if (p)
		wire_packet_free(p);
	return p;
}

static void test_vectors(void)
{
	struct wire_roce r = uc_path(), c = { .src = wire_gid_from_v4(0x0a001101),
					      .dst = wire_gid_from_v4(0x0a001201),
					      .id = 0x718c,
					      .tos = 0xc2,
					      .ttl = 64 };
	struct wire_packet *p = parse(uc_send, sizeof(uc_send), &r);
	u8 out[WIRE_ROCE_FRAME];
	int n;

	row(1, "a packet of a real adapter is taken", p && p->len == 18 && p->hdr_len == 60);
	n = p ? wire_roce_frame(p, &r, out, sizeof(out)) : 0;
	row(2, "and is the same again in a frame", n == 14 + 64 && !memcmp(out + 42, uc_send, sizeof(uc_send)));
	row(3, "with the checksum that the adapter gave it", out[24] == 0xb4 && out[25] == 0xd5);
	if (p)
		wire_packet_free(p);
	row(4, "a CNP of a real adapter", taken(cnp, sizeof(cnp), &c));
	r.tos = 0xfc;
	r.ttl = 3;
	row(5, "what routers change does not matter", taken(uc_send, sizeof(uc_send), &r));
}

static void test_identification(void)
{
	static const u16 ids[] = { 0, 1, 0x8000, 0xffff };
	struct wire_roce r = uc_path();
	u8 bytes[sizeof(uc_send)];
	u32 i, wrong = 0;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		r.id = ids[i];
		row(10 + (int)i, "an identification that is not known", taken(uc_send, sizeof(uc_send), &r));
	}
	for (i = 0; i < sizeof(uc_send) * 8; i++) {
		memcpy(bytes, uc_send, sizeof(bytes));
		bytes[i / 8] ^= (u8)BIT(i % 8);
		wrong += i / 8 != 4 && taken(bytes, sizeof(bytes), &r); /* byte 4 is not covered */
	}
	row(15, "no flipped bit passes for one", !wrong);
	r = uc_path();
	r.src = wire_gid_make(1, 2);
	r.dst = wire_gid_make(1, 3);
	row(16, "IPv6 has none", !taken(uc_send, sizeof(uc_send), &r) && errno == EILSEQ);
}

static void test_bad(void)
{
	static const struct {
		const char *what;
		u32 at, len;
		u8 value;
		int err;
	} bad[] = {
		{ "an empty datagram", 0, 0, 0x24, EBADMSG },
		{ "less than a BTH", 0, 11, 0x24, EBADMSG },
		{ "no room for the ICRC", 0, 12, 0x24, EBADMSG },
		{ "not a multiple of 4", 0, 35, 0x24, EBADMSG },
		{ "cut by 4 bytes", 0, 32, 0x24, EILSEQ },
		{ "a reserved opcode", 0, 36, 0x1f, EBADMSG },
		{ "an opcode of RD", 0, 36, 0x44, EBADMSG },
		{ "a transport version", 1, 36, 0x61, EBADMSG },
		{ "an opcode whose headers do not fit", 0, 24, 0x13, EBADMSG },
		{ "an acknowledge with payload", 0, 36, 0x11, EBADMSG },
		{ "another destination QP", 7, 36, 0xd4, EILSEQ },
		{ "another PSN", 11, 36, 0x11, EILSEQ },
		{ "damaged payload", 20, 36, 0, EILSEQ },
		{ "a damaged pad byte", 31, 36, 1, EILSEQ },
		{ "a wrong ICRC", 35, 36, 0, EILSEQ },
	};
	struct wire_roce r = uc_path();
	u8 bytes[sizeof(uc_send)];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		memcpy(bytes, uc_send, sizeof(bytes));
		if (bad[i].len)
			bytes[bad[i].at] = bad[i].value;
		errno = 0;
		row(20 + (int)i, bad[i].what, !taken(bytes, bad[i].len, &r) && errno == bad[i].err);
	}
	r.src = wire_gid_from_v4(0xc0a80008);
	row(40, "another source address (spoofed)", !taken(uc_send, sizeof(uc_send), &r) && errno == EILSEQ);
	r = uc_path();
	r.sport++;
	row(41, "another source port", !taken(uc_send, sizeof(uc_send), &r) && errno == EILSEQ);
}

static void test_ip6(void)
{
	struct wire_roce r = { .src = wire_gid_make(0xfd00000000000000ull, 1),
			       .dst = wire_gid_make(0xfd00000000000000ull, 2),
			       .sport = 0xc000,
			       .ttl = 64,
			       .flow = 5 },
			 back;
	struct wire_roce v4 = uc_path();
	struct wire_packet *p = parse(uc_send, sizeof(uc_send), &v4), *q;
	u8 out[WIRE_ROCE_FRAME], grh[40];
	int n;

	if (!p)
		return;
	n = wire_roce_frame(p, &r, out, sizeof(out));

	q = parse(out + 62, (u32)n - 62, &r);
	row(50, "a packet over IPv6 is parsed", n == 14 + 48 + 36 && q && q->len == 18);
	if (q) {
		wire_roce_from_grh(q, &back);
		row(51, "with its addresses", wire_gid_equal(&back.src, &r.src) && wire_gid_equal(&back.dst, &r.dst));
		wire_packet_free(q);
	}
	row(52, "a frame that has no room", wire_roce_frame(p, &r, out, 40) == -ENOSPC);
	wire_roce_put_grh(p, grh);
	row(53, "a receiver finds the IPv4 header in the second half", grh[0] == 0 && grh[20] == 0x45 && grh[29] == 17);
	wire_packet_free(p);
}

struct selection {
	u64 given;
	struct wire_match match;
};

static bool selects(const char *words, const u8 *frame, u32 len)
{
	static const struct spec_field fields[] = { WIRE_MATCH_SPEC(0, selection, match) };
	struct selection s = { .given = 0 };
	struct spec_words w = { .n = 0 };
	char err[200];
	bool selected;

	if (spec_split(&w, words, err, sizeof(err)) ||
	    spec_words(fields, ARRAY_SIZE(fields), &s, &s.given, &w, 0, err, sizeof(err)) ||
	    wire_match_start(&s.match, s.given, 0, true, err, sizeof(err)))
		return false;
	selected = wire_match_frame(&s.match, frame, len);
	wire_match_free(&s.match);
	return selected;
}

/* Keys of packets select frames by the RoCE packet in them. */
static void test_match(void)
{
	static const struct {
		const char *words;
		bool selected;
	} rows[] = {
		{ "opcode=uc", true },
		{ "opcode=rc", false },
		{ "qpn=211 psn=0xcf1710 len=78 pcap=udp", true },
		{ "qpn=211 psn=0xcf1711", false },
		{ "qpn=211 len=18", false },
		{ "opcode=uc pcap=arp", false },
		{ "sgid=::ffff:192.168.0.7 dgid=::ffff:192.168.0.7", true },
		{ "sgid=::ffff:192.168.0.8", false },
		{ "method=Get", false },
	};
	struct wire_roce r = uc_path();
	struct wire_packet *p = parse(uc_send, sizeof(uc_send), &r);
	struct ether_header h;
	u8 out[WIRE_ROCE_FRAME], tagged[WIRE_ROCE_FRAME];
	u32 i, len;

	if (!p)
		return;
	len = (u32)wire_roce_frame(p, &r, out, sizeof(out));
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		row(70 + (int)i, rows[i].words, selects(rows[i].words, out, len) == rows[i].selected);
	ether_header_get(&h, out, len);
	h.tagged = true;
	h.tci = 5;
	memcpy(tagged + ether_header_put(&h, tagged), out + ETHER_SIZE, len - ETHER_SIZE);
	row(80, "with a tag", selects("opcode=uc qpn=211", tagged, len + ETHER_TAG_SIZE));
	for (i = 0; i < len && !selects("opcode=uc", out, i); i++)
		;
	row(81, "no truncated frame", i == len);
	out[ETHER_SIZE + 22] ^= 1;
	row(82, "no other UDP port", !selects("opcode=uc", out, len));
	r.l2.version = 1;
	len = (u32)wire_roce_frame(p, &r, out, sizeof(out));
	row(83, "RoCE v1", selects("opcode=uc qpn=211", out, len));
	wire_packet_free(p);
}

int main(void)
{
	test_vectors();
	test_identification();
	test_bad();
	test_ip6();
	test_match();
	row(60, "no leak", wire_packet_live() == 0);
	return rows_end();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Segmentation of TCP packets: a row per packet shape, and per header that cannot be segmented. */
#include "emu/lib/row.h"
#include "emu/packet/lso.h"
#include "emu/wire/inet.h"

#define FLAGS (TCP_CWR | TCP_FIN | TCP_PSH | 0x10)
#define SEQ   0xfffff000u
#define ID    0xfffe

static u8 src[512 + 65536];

struct shape {
	int n;
	const char *what;
	bool v6;
	u8 ip_words, tcp_words; /* words of options, or 8-byte units of an extension header */
	u32 len, mss, segments;
};

static const struct shape shapes[] = {
	{ 1, "two segments", false, 0, 0, 2000, 1000, 2 },
	{ 2, "a last one of a byte", false, 0, 0, 2001, 1000, 3 },
	{ 3, "segments of odd sizes", false, 0, 0, 9999, 777, 13 },
	{ 4, "less than a segment", false, 0, 0, 999, 1000, 1 },
	{ 5, "one byte", false, 0, 3, 1, 1988, 1 },
	{ 6, "IPoIB's MTU of 2044, time stamps", false, 0, 3, 65160, 1992, 33 },
	{ 7, "IPoIB's MTU of 4092, time stamps", false, 0, 3, 65483, 4040, 17 },
	{ 8, "IP options", false, 10, 3, 30000, 1400, 22 },
	{ 9, "every option there can be", false, 10, 10, 5000, 100, 50 },
	{ 10, "segments of a byte", false, 0, 0, 300, 1, 300 },
	{ 11, "IPv6", true, 0, 3, 64000, 1972, 33 },
	{ 12, "IPv6 of an odd size", true, 0, 0, 4001, 2001, 2 },
	{ 13, "IPv6 with an extension header", true, 2, 3, 10000, 1900, 6 },
	{ 14, "nothing", false, 0, 0, 0, 1000, 1 },
};

/* Headers as the sender leaves them: lengths and checksums are arbitrary. Returns their length. */
static u32 headers(const struct shape *s, u8 *p)
{
	u32 l4 = s->v6 ? 44 + s->ip_words * 8u : 24 + s->ip_words * 4u, i;

	for (i = 0; i < l4 + 20 + s->tcp_words * 4u; i++)
		p[i] = (u8)(i * 5 + 1);
	wire_store(p, 4, (u32)(s->v6 ? WIRE_INET_IP6 : WIRE_INET_IP4) << 16);
	if (s->v6) {
		p[4] = 0x60;
		p[10] = s->ip_words ? 60 : WIRE_INET_TCP;
		p[44] = s->ip_words ? WIRE_INET_TCP : p[44];
		p[45] = s->ip_words ? s->ip_words - 1 : p[45];
	} else {
		p[4] = (u8)(0x45 + s->ip_words);
		wire_store(p + 8, 2, ID);
		wire_store(p + 10, 2, 0x4000);
		p[13] = WIRE_INET_TCP;
	}
	wire_store(p + l4 + 4, 4, SEQ);
	p[l4 + 12] = (u8)((5 + s->tcp_words) << 4);
	p[l4 + 13] = FLAGS;
	return l4 + 20 + s->tcp_words * 4u;
}

static u8 flags_of(u32 n, bool last)
{
	return (u8)(FLAGS & ~(n ? TCP_CWR : 0) & ~(last ? 0 : TCP_FIN | TCP_PSH));
}

static bool segment_ok(const struct shape *s, const struct wire_buf *b, u32 hdr, u32 n)
{
	u32 l4 = hdr - 20 - s->tcp_words * 4u, off = n * s->mss, part = min(s->len - off, s->mss);
	u32 total = (u32)wire_load(b->data + (s->v6 ? 8 : 6), 2);

	if (b->size != hdr + part || memcmp(b->data + hdr, src + hdr + off, part))
		return false;
	if (total != b->size - (s->v6 ? 44 : 4) || !wire_inet_ok(b->data, b->size))
		return false;
	if (!s->v6 && (wire_load(b->data + 8, 2) != ((ID + n) & 0xffff) || wire_load(b->data + 10, 2) != 0x4000))
		return false;
	if ((u32)wire_load(b->data + l4 + 4, 4) != SEQ + off || b->data[l4 + 13] != flags_of(n, off + part == s->len))
		return false;
	return !memcmp(b->data + l4 + 20, src + l4 + 20, hdr - l4 - 20) && b->data[l4 + 12] == src[l4 + 12];
}

static void test_shapes(void)
{
	u32 i, n, hdr;

	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		const struct shape *s = &shapes[i];
		bool ok;

		hdr = headers(s, src);
		for (n = 0; n < s->len; n++)
			src[hdr + n] = (u8)(n * 7 + n / 251);
		ok = wire_lso_valid(src, hdr);
		for (n = 0; ok && (n * s->mss < s->len || !n); n++) {
			struct wire_buf *b = wire_lso_segment(src, hdr, s->len, s->mss, n);

			ok = segment_ok(s, b, hdr, n);
			wire_buf_put(b);
		}
		row(s->n, s->what, ok && n == s->segments);
	}
}

static const struct {
	int n;
	const char *what;
	bool v6;
	u32 at;
	u8 value;
	int longer; /* more than the length of the headers */
} bads[] = {
	{ 40, "no IP", false, 0, 0x88, 0 },
	{ 41, "version 6 under the ethertype of 4", false, 4, 0x65, 0 },
	{ 42, "an IP header too short", false, 4, 0x43, 0 },
	{ 43, "an IP header beyond the headers", false, 4, 0x4f, 0 },
	{ 44, "UDP", false, 13, WIRE_INET_UDP, 0 },
	{ 45, "a fragment", false, 10, 0x20, 0 },
	{ 46, "a TCP header too short", false, 36, 0x40, 0 },
	{ 47, "a TCP header beyond the headers", false, 36, 0xf0, 0 },
	{ 48, "a byte of payload among the headers", false, 2, 0, 1 },
	{ 49, "a byte too few", false, 2, 0, -1 },
	{ 50, "the encapsulation alone", false, 2, 0, -40 },
	{ 51, "nothing", false, 2, 0, -44 },
	{ 52, "UDP over IPv6", true, 10, WIRE_INET_UDP, 0 },
	{ 53, "a fragment of IPv6", true, 10, 44, 0 },
	{ 54, "an extension header without end", true, 10, 60, 0 },
};

static void test_bads(void)
{
	static const struct shape v4 = { 0 }, v6 = { .v6 = true };
	u32 i, hdr;

	for (i = 0; i < ARRAY_SIZE(bads); i++) {
		hdr = headers(bads[i].v6 ? &v6 : &v4, src);
		src[bads[i].at] = bads[i].value;
		row(bads[i].n, bads[i].what, !wire_lso_valid(src, hdr + (u32)bads[i].longer));
	}
}

int main(void)
{
	test_shapes();
	test_bads();
	row(90, "no buffer is left", wire_packet_live() == 0);
	return rows_end();
}

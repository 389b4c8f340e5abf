// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of serial.c: the standard's sample packet, round trips, and rejected packets. */
#include <errno.h>

#include "emu/lib/row.h"
#include "emu/packet/header.h"

/* An RDMA WRITE ONLY of 14 bytes, with the ICRC of IBTA 7.8, and its VCRC. */
static const u8 sample[] = {
	0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1,
	0xb3, 0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2,
	0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, 0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72,
	0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00, 0x96, 0x25, 0xb7, 0x5a, 0x45, 0xfa,
};

/* Modifications that must be rejected: offset, value, and length. */
static const struct {
	const char *what;
	u32 at, len;
	u8 value;
} bad[] = {
	{ "a wrong LVer", 0, sizeof(sample), 0x71 },
	{ "a raw packet", 1, sizeof(sample), 0x10 },
	{ "PktLen too small", 5, sizeof(sample), 0x0d },
	{ "PktLen too great", 5, sizeof(sample), 0x0f },
	{ "a reserved opcode", 8, sizeof(sample), 0x1f },
	{ "another transport version", 9, sizeof(sample), 0x21 },
	{ "a GRH that is too long for the packet", 1, sizeof(sample), 0x13 },
	{ "an acknowledge with payload", 8, sizeof(sample), 0x11 },
	{ "a damaged payload", 40, sizeof(sample), 0xff },
	{ "a damaged ICRC", 52, sizeof(sample), 0x97 },
	{ "a damaged VCRC", 57, sizeof(sample), 0xfb },
	{ "cut off", 0, sizeof(sample) - 1, 0x70 },
	{ "nothing but an LRH", 0, 8, 0x70 },
	{ "nothing", 0, 0, 0x70 },
};

static void test_sample(void)
{
	struct wire_packet *p = wire_packet_parse(sample, sizeof(sample), true), *c;
	u32 i, same = 0;
	u8 out[256];
	int n;

	row(1, "the sample packet passes both CRCs", p != NULL);
	if (!p)
		return;
	row(2, "its payload without the pad", p->len == 14 && p->data[0] == 0xbb && p->hdr_len == 36);
	row(3, "its ICRC", wire_packet_icrc(p) == 0x5ab72596);
	n = wire_packet_serialize(p, out, sizeof(out));
	row(4, "the same bytes after a round trip", n == sizeof(sample) && !memcmp(out, sample, sizeof(sample)));
	for (i = 0; i <= sizeof(sample); i++) {
		memset(out, 0xee, sizeof(out));
		wire_packet_serialize_start(p, out, i);
		same += !memcmp(out, sample, i) && out[i] == 0xee;
	}
	row(9, "the same bytes up to any length", same == sizeof(sample) + 1);
	row(5, "no room", wire_packet_serialize(p, out, sizeof(sample) - 1) == -ENOSPC);
	wire_lrh_set_vl(wire_packet_lrh(p), 3);
	p->hdr[p->bth_off + 4] = 0x80;
	row(6, "VL and FECN do not count for the ICRC", wire_packet_icrc(p) == 0x5ab72596);
	p->flags = WIRE_PKT_BAD_ICRC;
	n = wire_packet_serialize(p, out, sizeof(out));
	c = wire_packet_parse(out, (u32)n, true);
	row(7, "a damaged ICRC is written damaged", !c && errno == EBADMSG);
	c = wire_packet_parse(out, (u32)n, false);
	row(8, "and taken where it is not looked at", c != NULL);
	if (c)
		wire_packet_free(c);
	wire_packet_free(p);
}

static void test_bad(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		u8 bytes[sizeof(sample)];
		struct wire_packet *p;

		memcpy(bytes, sample, sizeof(sample));
		bytes[bad[i].at] = bad[i].value;
		p = wire_packet_parse(bytes, bad[i].len, true);
		row(20 + (int)i, bad[i].what, !p && errno == EBADMSG);
		if (p)
			wire_packet_free(p);
	}
}

static void test_grh(void)
{
	struct wire_packet *p = wire_packet_alloc(), *c;
	struct wire_grh *grh = wire_packet_at(p, 8);
	u8 out[512];
	u32 icrc;
	int n;

	p->buf = wire_buf_alloc(33);
	memset(p->buf->data, 0x5a, 33);
	p->data = p->buf->data;
	p->len = 33;
	p->grh_off = 8;
	p->bth_off = 48;
	p->hdr_len = 68;
	wire_lrh_fill(wire_packet_lrh(p), 0, 0, WIRE_LNH_GRH, 5, 4, wire_packet_link_len(p) / 4);
	memset(grh, 0, sizeof(*grh));
	wire_grh_set_ver_tc_flow(grh, 1, 2);
	grh->nxthdr = WIRE_GRH_NXTHDR_IBA;
	grh->hoplmt = 64;
	grh->paylen = cpu_to_be16(wire_packet_link_len(p) - 48);
	wire_bth_fill(wire_packet_at(p, 48), 0x64, false, 3, 0xffff, 77, false, 1);
	memset(p->hdr + 60, 0, 8);
	n = wire_packet_serialize(p, out, sizeof(out));
	c = n > 0 ? wire_packet_parse(out, (u32)n, true) : NULL;
	row(40, "a UD packet with a GRH is parsed", c && c->grh_off == 8 && c->bth_off == 48 && c->len == 33);
	icrc = wire_packet_icrc(p);
	wire_grh_set_ver_tc_flow(grh, 9, 8);
	grh->hoplmt = 1;
	row(41, "TClass, FlowLabel and HopLmt do not count for the ICRC", wire_packet_icrc(p) == icrc);
	wire_packet_lrh(p)->dlid = cpu_to_be16(6);
	row(43, "nor does any of the LRH, which routers replace", wire_packet_icrc(p) == icrc);
	grh->dgid.raw[0] ^= 1;
	row(42, "the GIDs do", wire_packet_icrc(p) != icrc);
	if (c)
		wire_packet_free(c);
	wire_packet_free(p);
}

int main(void)
{
	test_sample();
	test_bad();
	test_grh();
	row(50, "no leak", wire_packet_live() == 0);
	return rows_end();
}

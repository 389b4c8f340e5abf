/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The opcode table compared with a separate table of header lengths, and header accessors with known bytes. */
#include "emu/lib/row.h"
#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"

/* IBTA 9.2.1: the length of all headers from the BTH on, by opcode; 0 is reserved. */
static const u8 lengths[256] = {
	[0x00] = 12, [0x01] = 12, [0x02] = 12, [0x03] = 16, [0x04] = 12, [0x05] = 16, [0x06] = 28, [0x07] = 12,
	[0x08] = 12, [0x09] = 16, [0x0a] = 28, [0x0b] = 32, [0x0c] = 28, [0x0d] = 16, [0x0e] = 12, [0x0f] = 16,
	[0x10] = 16, [0x11] = 16, [0x12] = 24, [0x13] = 40, [0x14] = 40, [0x16] = 16, [0x17] = 16, [0x20] = 12,
	[0x21] = 12, [0x22] = 12, [0x23] = 16, [0x24] = 12, [0x25] = 16, [0x26] = 28, [0x27] = 12, [0x28] = 12,
	[0x29] = 16, [0x2a] = 28, [0x2b] = 32, [0x64] = 20, [0x65] = 24, [0x81] = 12, [0xa0] = 16, [0xa1] = 16,
	[0xa2] = 16, [0xa3] = 20, [0xa4] = 16, [0xa5] = 20, [0xa6] = 32, [0xa7] = 16, [0xa8] = 16, [0xa9] = 20,
	[0xaa] = 32, [0xab] = 36, [0xac] = 32, [0xad] = 16, [0xae] = 12, [0xaf] = 16, [0xb0] = 16, [0xb1] = 16,
	[0xb2] = 24, [0xb3] = 44, [0xb4] = 44, [0xb6] = 20, [0xb7] = 20,
};

static void test_table(void)
{
	for (unsigned int op = 0; op < 256; op++) {
		const struct wire_opcode *o = wire_opcode(op);

		row(op, "present", !o == !lengths[op]);
		if (!o)
			continue;
		row(op, "identity", o->op == op && o->transport == (op & 0xe0));
		row(op, "length", o->hdr_len == lengths[op]);
		/* Each header is after the previous one, within the length. */
		unsigned int last = 11;
		for (unsigned int eth = 0; eth < WIRE_ETH_NUM; eth++) {
			row(op, "offset set", !(o->eths >> eth & 1) == !o->offset[eth]);
			if (o->offset[eth]) {
				row(op, "offset order", o->offset[eth] > last && o->offset[eth] < o->hdr_len);
				last = o->offset[eth];
			}
		}
		row(op, "immediate", !(o->flags & WIRE_OPF_IMM) == !o->offset[WIRE_ETH_IMMDT]);
		row(op, "invalidate", !(o->flags & WIRE_OPF_INV) == !o->offset[WIRE_ETH_IETH]);
		row(op, "XRCETH",
		    !(o->transport == WIRE_TP_XRC && o->flags & WIRE_OPF_REQUEST) == !o->offset[WIRE_ETH_XRC]);
		row(op, "ack", !(o->flags & WIRE_OPF_ACK) == !o->offset[WIRE_ETH_AETH]);
		row(op, "request, response or control",
		    !(o->flags & WIRE_OPF_REQUEST) + !(o->flags & WIRE_OPF_RESPONSE) + !(o->flags & WIRE_OPF_CONTROL) ==
			    2);
		row(op, "place", !(o->flags & WIRE_OPF_MIDDLE) == !!(o->flags & (WIRE_OPF_START | WIRE_OPF_END)));
		row(op, "completes",
		    !(o->flags & WIRE_OPF_COMP) ||
			    ((o->flags & WIRE_OPF_END) && (o->flags & (WIRE_OPF_SEND | WIRE_OPF_IMM))));
	}
}

static void test_rows(void)
{
	static const struct {
		u8 op, eth, offset;
		u16 flags;
	} rows[] = {
		{ WIRE_RC_SEND_FIRST, WIRE_ETH_IMMDT, 0, WIRE_OPF_SEND | WIRE_OPF_START | WIRE_OPF_RWQE },
		{ WIRE_RC_SEND_ONLY_IMM, WIRE_ETH_IMMDT, 12, WIRE_OPF_COMP | WIRE_OPF_RWQE },
		{ WIRE_RC_WRITE_ONLY_IMM, WIRE_ETH_IMMDT, 28, WIRE_OPF_WRITE | WIRE_OPF_COMP | WIRE_OPF_RWQE },
		{ WIRE_RC_READ_REQUEST, WIRE_ETH_RETH, 12, WIRE_OPF_READ | WIRE_OPF_REQUEST },
		{ WIRE_RC_ATOMIC_ACK, WIRE_ETH_ATOMIC_ACK, 16, WIRE_OPF_ATOMIC | WIRE_OPF_RESPONSE },
		{ WIRE_RC_CMP_SWAP, WIRE_ETH_ATOMIC, 12, WIRE_OPF_ATOMIC | WIRE_OPF_REQUEST },
		{ WIRE_RC_SEND_ONLY_INV, WIRE_ETH_IETH, 12, WIRE_OPF_SEND | WIRE_OPF_INV | WIRE_OPF_COMP },
		{ WIRE_UD_SEND_ONLY_IMM, WIRE_ETH_IMMDT, 20, WIRE_OPF_SEND | WIRE_OPF_IMM },
		{ WIRE_UD_SEND_ONLY, WIRE_ETH_DETH, 12, WIRE_OPF_SEND | WIRE_OPF_COMP },
		{ WIRE_XRC_SEND_MIDDLE, WIRE_ETH_XRC, 12, WIRE_OPF_SEND | WIRE_OPF_MIDDLE },
		{ WIRE_XRC_WRITE_ONLY_IMM, WIRE_ETH_RETH, 16, WIRE_OPF_WRITE | WIRE_OPF_RWQE },
		{ WIRE_XRC_CMP_SWAP, WIRE_ETH_ATOMIC, 16, WIRE_OPF_ATOMIC | WIRE_OPF_REQUEST },
		{ WIRE_XRC_READ_RESP_ONLY, WIRE_ETH_XRC, 0, WIRE_OPF_READ | WIRE_OPF_RESPONSE },
		{ WIRE_XRC_ACK, WIRE_ETH_AETH, 12, WIRE_OPF_ACK | WIRE_OPF_RESPONSE },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct wire_opcode *o = wire_opcode(rows[i].op);

		row(i, "row offset", o->offset[rows[i].eth] == rows[i].offset);
		row(i, "row flags", (o->flags & rows[i].flags) == rows[i].flags);
	}
	row(0, "name", strcmp(wire_opcode(WIRE_RC_SEND_LAST_INV)->name, "RC_SEND_LAST_INV") == 0);
}

static void test_headers(void)
{
	static const u8 lrh_bytes[8] = { 0x30, 0x52, 0x00, 0x07, 0x00, 0x48, 0x00, 0x09 };
	static const u8 bth_bytes[12] = { 0x04, 0xf0, 0xff, 0xff, 0xc0, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef };
	struct wire_lrh lrh;
	struct wire_bth bth;
	struct wire_grh grh = {};
	struct wire_aeth aeth;
	struct wire_deth deth;

	wire_lrh_fill(&lrh, 3, 5, WIRE_LNH_BTH, 7, 9, 0x48);
	row(0, "lrh bytes", memcmp(&lrh, lrh_bytes, 8) == 0);
	row(1, "lrh", wire_lrh_vl(&lrh) == 3 && wire_lrh_sl(&lrh) == 5 && wire_lrh_lnh(&lrh) == WIRE_LNH_BTH);
	row(2, "lrh", wire_lrh_dlid(&lrh) == 7 && wire_lrh_slid(&lrh) == 9 && wire_lrh_words(&lrh) == 0x48);
	wire_lrh_set_vl(&lrh, 15);
	row(3, "lrh set", lrh.vl_lver == 0xf0 && lrh.sl_lnh == 0x52);

	wire_bth_fill(&bth, 0x04, true, 3, 0xffff, 0x123456, true, 0xabcdef);
	wire_bth_set_migreq(&bth, true);
	wire_bth_set_fecn(&bth);
	wire_bth_set_becn(&bth);
	row(0, "bth bytes", memcmp(&bth, bth_bytes, 12) == 0);
	row(10, "bth",
	    wire_bth_se(&bth) && wire_bth_migreq(&bth) && wire_bth_pad(&bth) == 3 && wire_bth_tver(&bth) == 0);
	row(11, "bth", wire_bth_qpn(&bth) == 0x123456 && wire_bth_psn(&bth) == 0xabcdef && wire_bth_ackreq(&bth));
	row(12, "bth", wire_bth_fecn(&bth) && wire_bth_becn(&bth) && wire_bth_pkey(&bth) == 0xffff);

	wire_grh_set_ver_tc_flow(&grh, 0xa5, 0xfedcb);
	row(0, "grh", wire_grh_ipver(&grh) == 6 && wire_grh_tclass(&grh) == 0xa5 && wire_grh_flow(&grh) == 0xfedcb);
	wire_aeth_fill(&aeth, WIRE_AETH_RNR_NAK | 12, 0x123456);
	row(0, "aeth", wire_aeth_syndrome(&aeth) == 0x2c && wire_aeth_msn(&aeth) == 0x123456);
	row(13, "aeth", wire_aeth_type(0x2c) == WIRE_AETH_RNR_NAK && wire_aeth_value(0x2c) == 12);
	row(14, "aeth", wire_aeth_type(WIRE_AETH_NAK | WIRE_NAK_REMOTE_OP) == WIRE_AETH_NAK);
	wire_deth_fill(&deth, 0x80010000, 1);
	row(0, "deth", wire_deth_qkey(&deth) == 0x80010000 && wire_deth_src_qp(&deth) == 1);
}

static void test_psn(void)
{
	static const struct {
		u32 a, b;
		s32 diff;
	} rows[] = {
		{ 0, 0, 0 },
		{ 1, 0, 1 },
		{ 0, 1, -1 },
		{ 0, 0xffffff, 1 },
		{ 0xffffff, 0, -1 },
		{ 0x7fffff, 0, 0x7fffff },
		{ 0x800000, 0, -0x800000 },
		{ 5, 0xfffffb, 10 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++)
		row(i, "psn diff", wire_psn_diff(rows[i].a, rows[i].b) == rows[i].diff);
	row(0, "psn add", wire_psn_add(0xffffff, 2) == 1);
}

int main(void)
{
	test_table();
	test_rows();
	test_headers();
	test_psn();
	return rows_end();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of attr.c: numbers of each size, truth values and bytes in both directions. */
#include "emu/verbs/attr.h"

#include "emu/lib/row.h"

struct theirs {
	u32 state;
	u8 qkey[4];
	u16 pkey_index;
	u32 notify;
	u8 before;
	struct {
		u8 gid[16];
		u32 dlid;
		u8 grh;
	} dest;
	u8 after;
};

#define T struct theirs
static const struct verbs_field fields[] = {
	VERBS_ATTR(T, state, state),
	VERBS_ATTR(T, pkey_index, pkey_index),
	VERBS_ATTR(T, notify, en_sqd_async_notify),
	VERBS_ATTR(T, dest.gid, av.dgid),
	VERBS_ATTR(T, dest.dlid, av.dlid),
	VERBS_ATTR(T, dest.grh, av.grh),
	VERBS_ATTR(T, qkey, qkey),
};

int main(void)
{
	T in = { .state = 0x103,
		 .qkey = { 1, 2, 3, 4 },
		 .pkey_index = 0xabcd,
		 .notify = 0x100,
		 .before = 7,
		 .after = 8 },
	  out;
	struct hca_qp_attr a;
	u32 i;

	for (i = 0; i < sizeof(in.dest.gid); i++)
		in.dest.gid[i] = (u8)i;
	in.dest.dlid = 0x1c001;
	in.dest.grh = 2;
	memset(&a, 0x55, sizeof(a));
	verbs_fields_in(fields, ARRAY_SIZE(fields), &a, &in);
	row(1, "a number is cut as an assignment would", a.state == 3 && a.av.dlid == 0xc001);
	row(2, "two bytes", a.pkey_index == 0xabcd);
	row(3, "any number but 0 is true", a.en_sqd_async_notify == true && a.av.grh == true);
	row(4, "which is 1", *(u8 *)&a.en_sqd_async_notify == 1 && *(u8 *)&a.av.grh == 1);
	row(5, "bytes", !memcmp(a.av.dgid.raw, in.dest.gid, 16));
	row(6, "no other member changes", a.cur_state == 0x55 && a.av.sl == 0x55 && a.alt_av.dlid == 0x5555);
	memset(&out, 0x66, sizeof(out));
	verbs_fields_out(fields, ARRAY_SIZE(fields), &out, &a);
	row(7, "and back", out.state == 3 && out.pkey_index == 0xabcd && out.dest.dlid == 0xc001 && out.dest.grh == 1);
	row(8, "bytes", !memcmp(out.dest.gid, in.dest.gid, 16) && !memcmp(out.qkey, in.qkey, 4));
	row(9, "no other member changes", out.before == 0x66 && out.after == 0x66);
	return rows_end();
}

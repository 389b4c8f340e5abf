// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Translation of structures by tables of fields. */
#include "emu/verbs/attr.h"

static u32 number_get(const u8 *p, u16 size)
{
	u16 v16;
	u32 v;

	if (size == 1)
		return *p;
	if (size == 2) {
		memcpy(&v16, p, sizeof(v16));
		return v16;
	}
	memcpy(&v, p, sizeof(v));
	return v;
}

static void number_set(u8 *p, u16 size, u32 v)
{
	u8 v8 = (u8)v;
	u16 v16 = (u16)v;

	memcpy(p, size == 1 ? (void *)&v8 : size == 2 ? (void *)&v16 : (void *)&v, size);
}

static void field_copy(u8 *to, u16 to_size, const u8 *from, u16 from_size, bool truth)
{
	u32 v;

	if (to_size > sizeof(u32)) {
		memcpy(to, from, min(to_size, from_size));
		return;
	}
	v = number_get(from, from_size);
	number_set(to, to_size, truth ? !!v : v);
}

void verbs_fields_in(const struct verbs_field *f, u32 n, void *to, const void *from)
{
	for (; n; n--, f++)
		field_copy((u8 *)to + f->ours, f->our_size, (const u8 *)from + f->theirs, f->their_size, f->truth);
}

void verbs_fields_out(const struct verbs_field *f, u32 n, void *to, const void *from)
{
	for (; n; n--, f++)
		field_copy((u8 *)to + f->theirs, f->their_size, (const u8 *)from + f->ours, f->our_size, f->truth);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Translation of structures by tables of fields (see attr.h). */
#include "emu/verbs/attr.h"

#include "emu/wire/field.h"

static void field_copy(u8 *to, u16 to_size, const u8 *from, u16 from_size, bool truth)
{
	u32 v;

	if (to_size > sizeof(u32)) {
		memcpy(to, from, min(to_size, from_size));
		return;
	}
	v = wire_member_load(from, from_size);
	wire_member_store(to, to_size, truth ? !!v : v);
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

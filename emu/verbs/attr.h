/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The translator between canonical structures of emu/hca (struct hca_qp_attr, struct hca_av) and those of a front end,
 * which has a table of fields for each of its structures, for one direction or both. Numbers have 1 to 4 bytes in host
 * order; a wider number is truncated, as in an assignment. Other fields (GIDs, MAC addresses) are bytes of the same
 * size.
 */
#ifndef MUSLIN_VERBS_ATTR_H
#define MUSLIN_VERBS_ATTR_H

#include "emu/hca/hca.h"

struct verbs_field {
	u16 theirs, their_size; /* in the front end's structure */
	u16 ours, our_size;     /* in the canonical one */
	bool truth;             /* the canonical one is a bool: nonzero is true */
};

#define VERBS_MEMBER(type, m) (u16) offsetof(type, m), (u16)sizeof(((type *)0)->m)
/* @their of the front end's @type is @our of the canonical @canon. */
#define VERBS_FIELD(type, their, canon, our)                         \
	{                                                            \
		VERBS_MEMBER(type, their), VERBS_MEMBER(canon, our), \
			_Generic(((canon *)0)->our, bool             \
				 : true, default                     \
				 : false)                            \
	}
#define VERBS_ATTR(type, their, our) VERBS_FIELD(type, their, struct hca_qp_attr, our)

/* Copies the fields of the table; others of @to are unchanged. */
void verbs_fields_in(const struct verbs_field *f, u32 n, void *to, const void *from);
void verbs_fields_out(const struct verbs_field *f, u32 n, void *to, const void *from);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Objects by number: a table that allocates the lowest unused number in cyclic order. */
#ifndef MUSLIN_LIB_TABLE_H
#define MUSLIN_LIB_TABLE_H

#include "emu/lib/types.h"

struct table {
	void **slot;
	u32 cap, used;
	u32 first, last; /* inclusive range of numbers */
	u32 next;        /* start of the search, so that a number is not reused immediately */
};

/* Numbers @first..@last inclusive. Memory grows with use. */
void table_init(struct table *t, u32 first, u32 last);
void table_fini(struct table *t);
/* Enters @obj (not NULL) with a new number. 0, -ENOSPC if full, -ENOMEM. */
int table_add(struct table *t, void *obj, u32 *number);
/* Enters @obj with the number @number. 0, -EINVAL out of range, -EEXIST, -ENOMEM. */
int table_add_at(struct table *t, void *obj, u32 number);
/* The object, or NULL for any unused or out-of-range number. */
static inline void *table_get(const struct table *t, u32 number)
{
	return number - t->first < t->cap && number >= t->first ? t->slot[number - t->first] : NULL;
}
void *table_remove(struct table *t, u32 number); /* the removed object, or NULL */

/* Iterates over the entries; entries may be removed in the body. */
#define table_for_each(t, i, obj)      \
	for (i = 0; i < (t)->cap; i++) \
		if (((obj) = (t)->slot[i]))

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Table of objects by number. */
#include <errno.h>
#include <stdlib.h>

#include "emu/lib/table.h"

void table_init(struct table *t, u32 first, u32 last)
{
	*t = (struct table){ .first = first, .last = last };
}

void table_fini(struct table *t)
{
	free(t->slot);
	t->slot = NULL;
	t->cap = t->used = 0;
}

/* Makes room for index @i; the caller has checked the range. */
static int table_grow(struct table *t, u32 i)
{
	u64 range = (u64)t->last - t->first + 1, cap = t->cap ? t->cap : 16;
	void **slot;

	while (cap <= i)
		cap *= 2;
	cap = min(cap, range);
	slot = realloc(t->slot, cap * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	memset(slot + t->cap, 0, (cap - t->cap) * sizeof(*slot));
	t->slot = slot;
	t->cap = (u32)cap;
	return 0;
}

int table_add_at(struct table *t, void *obj, u32 number)
{
	u32 i = number - t->first;

	if (number < t->first || number > t->last)
		return -EINVAL;
	if (i >= t->cap) {
		int err = table_grow(t, i);

		if (err)
			return err;
	}
	if (t->slot[i])
		return -EEXIST;
	t->slot[i] = obj;
	t->used++;
	return 0;
}

int table_add(struct table *t, void *obj, u32 *number)
{
	u64 range = (u64)t->last - t->first + 1;
	u32 i = t->next;

	if (t->used == range)
		return -ENOSPC;
	if (t->used * 2 >= t->cap && t->cap < range) {
		int err = table_grow(t, t->cap);

		if (err)
			return err;
	}
	for (;; i++) {
		if (i >= t->cap)
			i = 0;
		if (!t->slot[i])
			break;
	}
	t->next = i + 1;
	*number = t->first + i;
	return table_add_at(t, obj, *number);
}

void *table_remove(struct table *t, u32 number)
{
	void *obj = table_get(t, number);

	if (obj) {
		t->slot[number - t->first] = NULL;
		t->used--;
	}
	return obj;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Link numbers of a connection. The peer chooses them, so that memory follows their count, which the topology limits,
 * and not their values.
 */
#include <stdlib.h>

#include "fabric/trunk/trunk_internal.h"

/* The index of the first entry whose number is not lower. */
static u32 number_lower_bound(const struct trunk_conn *c, u32 number)
{
	u32 low = 0, high = c->nlinks;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (c->links[mid].number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct trunk_number *trunk_number_search(const struct trunk_conn *c, u32 number)
{
	u32 i = number_lower_bound(c, number);

	return i < c->nlinks && c->links[i].number == number ? &c->links[i] : NULL;
}

struct trunk_number *trunk_number_add(struct trunk_conn *c, u32 number)
{
	u32 i = number_lower_bound(c, number), n = max(2 * c->nlinks, 1u);
	struct trunk_number *links;

	if (number >= TRUNK_LINKS || (i < c->nlinks && c->links[i].number == number))
		return NULL;
	if (c->nlinks == c->links_max) {
		links = realloc(c->links, n * sizeof(*links));
		if (!links)
			return NULL;
		c->links = links;
		c->links_max = n;
	}
	memmove(c->links + i + 1, c->links + i, (c->nlinks++ - i) * sizeof(*c->links));
	c->links[i] = (struct trunk_number){ .number = number };
	return &c->links[i];
}

void trunk_number_remove(struct trunk_conn *c, u32 number)
{
	u32 i = number_lower_bound(c, number);

	memmove(c->links + i, c->links + i + 1, (--c->nlinks - i) * sizeof(*c->links));
}

u32 trunk_number_next(struct trunk_conn *c)
{
	while (trunk_number_find(c, c->next_number % TRUNK_LINKS))
		c->next_number++;
	return c->next_number++ % TRUNK_LINKS;
}

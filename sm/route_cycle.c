// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Credit loop detection: cycles in the channel dependency graph (Dally and Seitz). A channel is a link in one
 * direction; it depends on the channels to which the next switch may forward its packets. Without a cycle there is no
 * deadlock.
 */
#include <stdlib.h>

#include "sm/sm_internal.h"

#define WORDS 4 /* of 64 ports */

struct sm_deps {
	const struct sm_graph *g;
	u64 (*on)[WORDS];   /* [channel]: edges of the switch at its far end, as offsets from the first */
	u64 (*mask)[WORDS]; /* [switch]: candidates for the current destination */
};

struct sm_deps *sm_deps_create(const struct sm_graph *g)
{
	struct sm_deps *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->g = g;
	d->on = calloc(g->nedges + 1, sizeof(*d->on));
	d->mask = calloc(g->n + 1, sizeof(*d->mask));
	if (d->on && d->mask)
		return d;
	sm_deps_destroy(d);
	return NULL;
}

void sm_deps_destroy(struct sm_deps *d)
{
	if (!d)
		return;
	free(d->on);
	free(d->mask);
	free(d);
}

void sm_deps_add(struct sm_deps *d, const struct sm_route *r, const u8 *active)
{
	const struct sm_graph *g = d->g;
	u32 s, e, i, t;

	memset(d->mask, 0, g->n * sizeof(*d->mask));
	for (s = 0; s < g->n; s++)
		for (e = g->first[s]; e < g->first[s + 1]; e++)
			if (r->cand[e])
				d->mask[s][(e - g->first[s]) / 64] |= BIT_ULL((e - g->first[s]) % 64);
	for (s = 0; s < g->n; s++) {
		if (!active[s])
			continue;
		for (e = g->first[s]; e < g->first[s + 1]; e++) {
			t = g->edge[e].to;
			for (i = 0; r->cand[e] && i < WORDS; i++)
				d->on[e][i] |= d->mask[t][i];
		}
	}
}

/* The next channel on which @e depends, from bit @from of its far end on; SM_NONE: none. */
static u32 next_dep(const struct sm_deps *d, u32 e, u32 from)
{
	u32 first = d->g->first[d->g->edge[e].to], w;
	u64 bits;

	for (w = from / 64; w < WORDS; w++) {
		bits = d->on[e][w];
		if (w == from / 64)
			bits &= ~0ull << (from % 64);
		if (bits)
			return first + w * 64 + (u32)__builtin_ctzll(bits);
	}
	return SM_NONE;
}

/* Iterative depth-first search; a channel that is on the stack already closes a cycle. */
static bool route_cycle_search(const struct sm_deps *d, u32 root, u8 *colour, u32 *stack, u32 *at)
{
	u32 depth = 0, e, n;

	stack[0] = root;
	at[0] = 0;
	colour[root] = 1;
	while (true) {
		e = stack[depth];
		n = at[depth] < WORDS * 64 ? next_dep(d, e, at[depth]) : SM_NONE;
		if (n == SM_NONE) {
			colour[e] = 2;
			if (!depth--)
				return false;
			continue;
		}
		at[depth] = n - d->g->first[d->g->edge[e].to] + 1;
		if (colour[n] == 1)
			return true;
		if (colour[n] == 2)
			continue;
		colour[n] = 1;
		stack[++depth] = n;
		at[depth] = 0;
	}
}

bool sm_deps_cyclic(const struct sm_deps *d)
{
	u32 n = d->g->nedges, e;
	u8 *colour = calloc(n + 1, 1);
	u32 *stack = calloc(n + 1, sizeof(*stack)), *at = calloc(n + 1, sizeof(*at));
	bool cyclic = !colour || !stack || !at; /* out of memory: assume a cycle */

	for (e = 0; !cyclic && e < n; e++)
		cyclic = !colour[e] && route_cycle_search(d, e, colour, stack, at);
	free(colour);
	free(stack);
	free(at);
	return cyclic;
}

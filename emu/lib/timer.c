// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Timers in the order in which they expire: a pairing heap, threaded through the timers themselves. A root expires
 * before its descendants. Melding two trees makes the later root a child of the other; the children of a removed root
 * are melded pairwise and then all together, so that adding takes constant time and removing O(log n), amortised.
 */
#include "emu/lib/timer.h"

static bool before(const struct loop_timer *a, const struct loop_timer *b)
{
	return a->when != b->when ? a->when < b->when : a->serial < b->serial;
}

/* Melds two trees; siblings of the roots are ignored. */
static struct loop_timer *meld(struct loop_timer *a, struct loop_timer *b)
{
	if (!a || !b)
		return a ? a : b;
	if (before(b, a)) {
		struct loop_timer *t = a;

		a = b;
		b = t;
	}
	b->prev = a;
	b->next = a->child;
	if (b->next)
		b->next->prev = b;
	a->child = b;
	return a;
}

static struct loop_timer *meld_siblings(struct loop_timer *t)
{
	struct loop_timer *pairs = NULL, *all = NULL, *next;

	for (; t; t = next) {
		struct loop_timer *pair, *second = t->next;

		next = second ? second->next : NULL;
		pair = meld(t, second);
		pair->next = pairs;
		pairs = pair;
	}
	for (; pairs; pairs = next) {
		next = pairs->next;
		all = meld(all, pairs);
	}
	return all;
}

void timer_heap_add(struct timer_heap *h, struct loop_timer *t)
{
	t->serial = h->serial++;
	t->child = NULL;
	h->first = meld(h->first, t);
}

void timer_heap_del(struct timer_heap *h, struct loop_timer *t)
{
	struct loop_timer *below = meld_siblings(t->child);

	if (t == h->first) {
		h->first = below;
		return;
	}
	if (t->next)
		t->next->prev = t->prev;
	if (t->prev->child == t)
		t->prev->child = t->next;
	else
		t->prev->next = t->next;
	h->first = meld(h->first, below);
}

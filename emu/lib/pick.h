/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which of the things that match is chosen: the nth, every kth, the first n, or one by seeded chance. */
#ifndef MUSLIN_LIB_PICK_H
#define MUSLIN_LIB_PICK_H

#include "emu/lib/rng.h"

#define PICK_LOG 64 /* choices that are remembered by number */

struct pick {
	/* What was asked for; 0: not asked. All that are given must agree. */
	u64 nth, every, first, after, count;
	u32 chance; /* in 2^-32 */
	bool by_chance;
	/* What has come */
	struct rng rng;
	u64 seen, hits;
	u64 digest; /* of every decision in their order, so that two runs can be compared */
	u64 log[PICK_LOG];
};

/* Counts one more match and decides. The same seed and the same matches give the same decisions. */
static inline bool pick_next(struct pick *p)
{
	u64 n = ++p->seen - p->after;
	bool hit = p->seen > p->after && (!p->count || p->hits < p->count);

	hit = hit && (!p->nth || n == p->nth) && (!p->first || n <= p->first) && (!p->every || n % p->every == 0);
	if (p->by_chance)
		hit = (rng_next(&p->rng) >> 32) < p->chance && hit; /* a number for each match, whatever came of it */
	p->digest = (p->digest ^ (p->seen * 2 + hit)) * 0x100000001b3ull;
	if (!hit)
		return false;
	if (p->hits < PICK_LOG)
		p->log[p->hits] = p->seen;
	p->hits++;
	return true;
}

/* Will it never choose again? */
static inline bool pick_over(const struct pick *p)
{
	return (p->count && p->hits >= p->count) || (p->nth && p->seen >= p->after + p->nth) ||
	       (p->first && p->seen >= p->after + p->first);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which of the things that match is chosen: the nth, every kth, the first n, or one by seeded chance. */
#ifndef MUSLIN_FAULT_PICK_H
#define MUSLIN_FAULT_PICK_H

#include "emu/lib/rng.h"
#include "emu/lib/spec.h"

/* Of what passes a place. */
enum pick_dir {
	PICK_BOTH,
	PICK_IN,
	PICK_OUT
};
#define PICK_DIR(strct, dir) \
	SPEC_FIELD("dir", SPEC_NAME, strct, dir, .names = "both|in|out", .wants = "in, out or both")

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

/* Its keys, and that of its seed, from field @at on. */
enum pick_field {
	PICK_NTH,
	PICK_EVERY,
	PICK_FIRST,
	PICK_AFTER,
	PICK_COUNT,
	PICK_PROB,
	PICK_SEED,
	PICK_FIELDS
};
#define PICK_SPEC(at, strct, pick, seed)                                                                   \
	[(at) + PICK_NTH] = SPEC_FIELD("nth", SPEC_U64, strct, pick.nth, .nonzero = true),                 \
		[(at) + PICK_EVERY] = SPEC_FIELD("every", SPEC_U64, strct, pick.every, .nonzero = true),   \
		[(at) + PICK_FIRST] = SPEC_FIELD("first", SPEC_U64, strct, pick.first, .nonzero = true),   \
		[(at) + PICK_AFTER] = SPEC_FIELD("after", SPEC_U64, strct, pick.after),                    \
		[(at) + PICK_COUNT] = SPEC_FIELD("count", SPEC_U64, strct, pick.count, .nonzero = true),   \
		[(at) + PICK_PROB] = SPEC_FIELD("prob", SPEC_CHANCE, strct, pick.chance, .nonzero = true), \
		[(at) + PICK_SEED] = SPEC_FIELD("seed", SPEC_U64, strct, seed)
#define PICK_KEYS(at) ((BIT_ULL(PICK_FIELDS) - 1) << (at))

/*
 * Ready to choose, with @given as read by PICK_SPEC at @at: by @own_seed if the words had one, or by @seed. The generator that
 * it has taken its own seed from is left in *rng, for what else the fault draws. 0, or -EINVAL and a line: it contradicts itself.
 */
static inline int pick_start(struct pick *p, u64 given, u32 at, u64 own_seed, u64 seed, struct rng *rng, char *err,
			     size_t err_len)
{
	const char *other = p->every ? "every" : p->first ? "first" : p->count ? "count" : NULL;

	if (p->nth && other)
		return spec_refuse(err, err_len, "%s: it contradicts nth, which means one match", other);
	p->by_chance = given & BIT_ULL(at + PICK_PROB);
	rng->state = given & BIT_ULL(at + PICK_SEED) ? own_seed : seed;
	p->rng.state = rng_next(rng);
	return 0;
}

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

#endif

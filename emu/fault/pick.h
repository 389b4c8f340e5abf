/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Selection among matches: the nth, every kth, the first n, or each by seeded chance. */
#ifndef MUSLIN_FAULT_PICK_H
#define MUSLIN_FAULT_PICK_H

#include "emu/lib/rng.h"
#include "emu/lib/spec.h"

/* Direction of packets at a place. */
enum pick_dir {
	PICK_BOTH,
	PICK_IN,
	PICK_OUT
};
#define PICK_DIR(strct, dir) \
	SPEC_FIELD("dir", SPEC_NAME, strct, dir, .names = "both|in|out", .wants = "in, out or both")

#define PICK_LOG 64 /* number of selections logged */

struct pick {
	/* Requested conditions; 0: none. All given ones must hold. */
	u64 nth, every, first, after, count;
	u32 chance; /* in 2^-32 */
	bool by_chance;
	/* Counters and state */
	struct rng rng;
	u64 seen, hits;
	u64 digest; /* of all decisions in order, to compare two runs */
	u64 log[PICK_LOG];
};

/* The keys of struct pick, and the seed's, from field @at on. */
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
 * Starts the selection, with @given as read by PICK_SPEC at @at: seeded by @own_seed if given, else by @seed. *rng is
 * the generator that its seed was drawn from, for other random numbers of the fault. 0, or -EINVAL and a message:
 * conditions contradict each other.
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

/* Counts a match and decides. The same seed and matches give the same decisions. */
static inline bool pick_next(struct pick *p)
{
	u64 n = ++p->seen - p->after;
	bool hit = p->seen > p->after && (!p->count || p->hits < p->count);

	hit = hit && (!p->nth || n == p->nth) && (!p->first || n <= p->first) && (!p->every || n % p->every == 0);
	if (p->by_chance)
		hit = (rng_next(&p->rng) >> 32) < p->chance && hit; /* one number per match, even if it is not used */
	p->digest = (p->digest ^ (p->seen * 2 + hit)) * 0x100000001b3ull;
	if (!hit)
		return false;
	if (p->hits < PICK_LOG)
		p->log[p->hits] = p->seen;
	p->hits++;
	return true;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Seeded pseudo-random numbers (splitmix64): all random numbers of a fabric derive from the scenario's seed. */
#ifndef MUSLIN_LIB_RNG_H
#define MUSLIN_LIB_RNG_H

#include "emu/lib/types.h"

struct rng {
	u64 state;
};

static inline u64 rng_next(struct rng *r)
{
	u64 z = r->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

#endif

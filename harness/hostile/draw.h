/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random numbers of the hostile programs, by a linear congruential generator: the same seed repeats an attack. */
#ifndef MUSLIN_HOSTILE_DRAW_H
#define MUSLIN_HOSTILE_DRAW_H

#include <stdint.h>

static uint64_t state; /* the seed, before the first number */

static inline uint32_t draw(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33);
}

#endif

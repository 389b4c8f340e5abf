/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Histogram of times in ns: exact up to 63 ns, then powers of two with 32 steps each; reports the
 * maximum of a step, at most 3 % more. */
#ifndef MUSLIN_SIM_TIMES_H
#define MUSLIN_SIM_TIMES_H

#include "emu/lib/types.h"

#define SIM_BUCKETS (64 + 32 * 40)
struct sim_times {
	u64 n, sum, max;
	u32 bucket[SIM_BUCKETS];
};

void sim_times_add(struct sim_times *t, u64 ns);
/* The lowest time, in ns, that @percent of all do not exceed; 0: empty. */
u64 sim_times_percentile(const struct sim_times *t, double percent);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Histogram of latencies, and its percentiles. */
#include "emu/sim/times.h"

static u32 bucket_of(u64 ns)
{
	u32 exponent;

	if (ns < 64)
		return (u32)ns;
	exponent = 63 - (u32)__builtin_clzll(ns);
	return min(64 + (exponent - 6) * 32 + ((u32)(ns >> (exponent - 5)) & 31), (u32)SIM_BUCKETS - 1);
}

/* The maximum time of a bucket. */
static u64 bucket_end(u32 i)
{
	u32 exponent = (i - 64) / 32 + 6, step = (i - 64) % 32;

	return i < 64 ? i : ((32ull + step + 1) << (exponent - 5)) - 1;
}

void sim_times_add(struct sim_times *t, u64 ns)
{
	t->n++;
	t->sum += ns;
	t->max = max(t->max, ns);
	t->bucket[bucket_of(ns)]++;
}

u64 sim_times_percentile(const struct sim_times *t, double percent)
{
	u64 want = (u64)((double)t->n * percent / 100), seen = 0;
	u32 i;

	want += (double)want < (double)t->n * percent / 100;
	for (i = 0; i < SIM_BUCKETS; i++) {
		seen += t->bucket[i];
		if (seen && seen >= want)
			return min(bucket_end(i), t->max);
	}
	return 0;
}

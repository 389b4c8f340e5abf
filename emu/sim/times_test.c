// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Percentiles of the histogram: nearest rank, and the maximum of its step. */
#include "emu/sim/times.h"

#include <string.h>

#include "emu/lib/row.h"

static struct sim_times t;

static void add(u64 first, u64 last, u64 step)
{
	for (; first <= last; first += step)
		sim_times_add(&t, first);
}

static const struct {
	const char *what;
	u64 first, last, step; /* ns */
	struct {
		double percent;
		u64 ns;
	} expect[4];
} rows[] = {
	{ "one time", 7, 7, 1, { { 0, 7 }, { 50, 7 }, { 99.9, 7 }, { 100, 7 } } },
	{ "1 to 50 ns, each exact", 1, 50, 1, { { 2, 1 }, { 50, 25 }, { 99, 50 }, { 100, 50 } } },
	{ "two times: the rank is not interpolated",
	  10,
	  20,
	  10,
	  { { 50, 10 }, { 50.1, 20 }, { 99, 20 }, { 100, 20 } } },
	/* 100 to 1000: steps of 64 to 127 are 2 ns long, of 512 to 1023 16 ns */
	{ "a step's greatest time", 100, 1000, 100, { { 10, 101 }, { 50, 503 }, { 90, 911 }, { 100, 1000 } } },
	{ "no more than the greatest",
	  1000001,
	  1000001,
	  1,
	  { { 50, 1000001 }, { 99, 1000001 }, { 99.9, 1000001 }, { 100, 1000001 } } },
	{ "an hour",
	  3600000000000,
	  3600000000000,
	  1,
	  { { 1, 3600000000000 }, { 50, 3600000000000 }, { 99, 3600000000000 }, { 100, 3600000000000 } } },
};

int main(void)
{
	u32 i, k;

	row(0, "none was added", sim_times_percentile(&t, 50) == 0);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(&t, 0, sizeof(t));
		add(rows[i].first, rows[i].last, rows[i].step);
		for (k = 0; k < 4; k++)
			row_of(rows[i].what, "percentile",
			       sim_times_percentile(&t, rows[i].expect[k].percent) == rows[i].expect[k].ns);
	}
	memset(&t, 0, sizeof(t));
	add(10, 30, 10);
	row(0, "number, sum and maximum", t.n == 3 && t.sum == 60 && t.max == 30);
	return rows_end();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* DCQCN's reaction point under a clock of the test's own: rows of what happens when, and the rate that follows. */
#include <assert.h>
#include <stdio.h>

#include "rxe/dcqcn.h"

#define LINE   10000000ull /* kb/s */
#define PERIOD 55000ull

enum what {
	CUT,
	SENT
};

struct step {
	u64 at; /* ns */
	enum what what;
	u64 bytes;
	u64 rate; /* kb/s afterwards */
};

#define STEPS 10
static const struct {
	const char *name;
	struct step step[STEPS];
} rows[] = {
	{ "1 without a notification the rate is the link's",
	  { { 1, SENT, 1000, LINE }, { 9999999, SENT, 1 << 30, LINE } } },
	{ "2 the first notification halves it", { { 1, CUT, 0, LINE / 2 } } },
	{ "3 each halves it again while alpha is one",
	  { { 1, CUT, 0, LINE / 2 }, { 2, CUT, 0, LINE / 4 }, { 3, CUT, 0, LINE / 8 } } },
	{ "4 nothing changes before a period is over", { { 1, CUT, 0, LINE / 2 }, { PERIOD, SENT, 1000, LINE / 2 } } },
	{ "5 fast recovery: half of the way each period",
	  { { 0, CUT, 0, 5000000 },
	    { PERIOD, SENT, 0, 7500000 },
	    { 2 * PERIOD, SENT, 0, 8750000 },
	    { 3 * PERIOD, SENT, 0, 9375000 },
	    { 4 * PERIOD, SENT, 0, 9687500 },
	    { 5 * PERIOD, SENT, 0, 9843750 } } },
	{ "6 periods that nobody looked at count", { { 0, CUT, 0, 5000000 }, { 5 * PERIOD, SENT, 0, 9843750 } } },
	{ "7 the target is where the last cut began, not the link's rate",
	  { { 0, CUT, 0, 5000000 }, { 1, CUT, 0, 2500000 }, { 1 + PERIOD, SENT, 0, 3750000 } } },
	{ "8 then the target rises by steps",
	  { { 0, CUT, 0, 5000000 },
	    { 1, CUT, 0, 2500000 },
	    { 1 + 5 * PERIOD, SENT, 0, 4921875 },
	    { 1 + 6 * PERIOD, SENT, 0, (4921875 + 5040000 + 1) / 2 } } },
	{ "9 bytes raise the rate as periods do",
	  { { 0, CUT, 0, 5000000 },
	    { 1, SENT, 9999999, 5000000 },
	    { 2, SENT, 1, 7500000 },
	    { 3, SENT, 20000000, 9375000 } } },
	{ "10 both more than five times: hyper increase",
	  { { 0, CUT, 0, 5000000 },
	    { 1, CUT, 0, 2500000 },
	    { 2, SENT, 50000000, 4921875 },
	    { 1 + 5 * PERIOD, SENT, 0, 4997559 },
	    { 1 + 5 * PERIOD, SENT, 10000000, 5018780 },
	    { 1 + 6 * PERIOD, SENT, 0, 5229390 } } },
	{ "11 a cut begins all of it anew",
	  { { 0, CUT, 0, 5000000 },
	    { 5 * PERIOD, SENT, 0, 9843750 },
	    { 5 * PERIOD, CUT, 0, 5017255 },
	    { 6 * PERIOD, SENT, 0, 7430503 } } },
};

static void test_rows(void)
{
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct dcqcn d;

		dcqcn_init(&d, LINE);
		for (j = 0; j < STEPS && rows[i].step[j].rate; j++) {
			const struct step *s = &rows[i].step[j];

			if (s->what == CUT)
				dcqcn_cut(&d, (struct now){ s->at });
			else
				dcqcn_sent(&d, s->bytes, (struct now){ s->at });
			if (d.rate != s->rate)
				printf("%s: step %u: %llu, not %llu\n", rows[i].name, j, (unsigned long long)d.rate,
				       (unsigned long long)s->rate);
			assert(d.rate == s->rate);
		}
	}
}

/* However many come, something may be sent; and with time all of it again. */
static void test_bounds(void)
{
	struct now now = { 1 };
	struct dcqcn d;
	u32 i;

	dcqcn_init(&d, LINE);
	for (i = 0; i < 1000; i++, now.ns += 1000)
		dcqcn_cut(&d, now);
	assert(d.rate == 10000 && d.alpha <= DCQCN_ONE);
	for (i = 0; i < 20000 && dcqcn_holds(&d); i++, now.ns += PERIOD)
		dcqcn_sent(&d, d.rate * PERIOD / 8000000, now);
	assert(!dcqcn_holds(&d) && d.rate == LINE);
	now.ns += 5000 * PERIOD; /* alpha decays: the next one hardly matters */
	dcqcn_cut(&d, now);
	assert(d.alpha < DCQCN_ONE / 100);
	assert(d.rate > LINE * 99 / 100);
}

/* An hour is no loop of an hour's periods. */
static void test_idle(void)
{
	struct dcqcn d;

	dcqcn_init(&d, LINE);
	dcqcn_cut(&d, (struct now){ 1 });
	dcqcn_sent(&d, 1, (struct now){ 3600ull * NSEC_PER_SEC });
	assert(d.rate == LINE && d.alpha == DCQCN_ONE);
	dcqcn_cut(&d, (struct now){ 7200ull * NSEC_PER_SEC });
	dcqcn_cut(&d, (struct now){ 9999ull * NSEC_PER_SEC });
	assert(d.rate == LINE / 2);
}

/* A link slower than the least rate stays what it is. */
static void test_slow_link(void)
{
	struct dcqcn d;

	dcqcn_init(&d, 5000);
	dcqcn_cut(&d, (struct now){ 1 });
	assert(d.rate == 5000 && !dcqcn_holds(&d));
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_rows();
	test_bounds();
	test_idle();
	test_slow_link();
	printf("dcqcn: %zu rows hold\n", ARRAY_SIZE(rows));
	return 0;
}

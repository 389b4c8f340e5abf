// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* DCQCN reaction point in virtual time: rows of events and the resulting rate. */
#include <assert.h>
#include <stdio.h>

#include "rxe/dcqcn.h"

#define LINE   10000000ull /* kb/s */
#define PERIOD 55000ull
#define MUCH   1000000 /* bytes that take many periods */

enum what {
	NOTE,
	SENT
};

struct step {
	u64 at; /* ns */
	enum what what;
	u64 bytes;
	u64 rate; /* kb/s afterwards */
};

#define STEPS 12
static const struct {
	const char *name;
	u64 rtt;
	struct step step[STEPS];
} rows[] = {
	{ "1 without a notification the rate is the link's",
	  0,
	  { { 1, SENT, 1000, LINE }, { 9999999, SENT, 1 << 30, LINE } } },
	{ "2 the first notification halves it", 0, { { 1, NOTE, 0, LINE / 2 } } },
	{ "3 those that follow at once speak of the same",
	  0,
	  { { 1, NOTE, 0, LINE / 2 }, { 2, NOTE, 0, LINE / 2 }, { PERIOD, NOTE, 0, LINE / 2 } } },
	{ "4 a period later they do not, and halve it again while alpha is one",
	  0,
	  { { 0, NOTE, 0, LINE / 2 },
	    { 0, SENT, MUCH, LINE / 2 },
	    { PERIOD, NOTE, 0, LINE / 4 },
	    { PERIOD + 1, NOTE, 0, LINE / 4 },
	    { 2 * PERIOD, NOTE, 0, LINE / 8 } } },
	{ "5 no increase in that period, nor before the next one is over",
	  0,
	  { { 0, NOTE, 0, LINE / 2 },
	    { 0, SENT, MUCH, LINE / 2 },
	    { PERIOD, SENT, MUCH, LINE / 2 },
	    { 2 * PERIOD - 1, SENT, MUCH, LINE / 2 },
	    { 2 * PERIOD, SENT, MUCH, 7500000 } } },
	{ "6 fast recovery: half of the way each period",
	  0,
	  { { 0, NOTE, 0, 5000000 },
	    { 0, SENT, MUCH, 5000000 },
	    { 2 * PERIOD, SENT, MUCH, 7500000 },
	    { 3 * PERIOD, SENT, MUCH, 8750000 },
	    { 4 * PERIOD, SENT, MUCH, 9375000 },
	    { 5 * PERIOD, SENT, MUCH, 9687500 },
	    { 6 * PERIOD, SENT, MUCH, 9843750 } } },
	{ "7 the target is where the last cut began, not the link's rate",
	  0,
	  { { 0, NOTE, 0, 5000000 },
	    { 0, SENT, MUCH, 5000000 },
	    { PERIOD, NOTE, 0, 2500000 },
	    { 2 * PERIOD, SENT, MUCH, 2500000 },
	    { 3 * PERIOD, SENT, MUCH, 3750000 } } },
	{ "8 then the target rises by steps",
	  0,
	  { { 0, NOTE, 0, 5000000 },
	    { 0, SENT, MUCH, 5000000 },
	    { PERIOD, NOTE, 0, 2500000 },
	    { 5 * PERIOD, SENT, MUCH, 4687500 },
	    { 7 * PERIOD, SENT, MUCH, 4921875 },
	    { 8 * PERIOD, SENT, MUCH, (5002000 + 4921875 + 1) / 2 } } },
	{ "9 bytes raise the rate as periods do",
	  0,
	  { { 0, NOTE, 0, 5000000 },
	    { 1, SENT, 9999999, 5000000 },
	    { 2, SENT, 1, 7500000 },
	    { 3, SENT, 20000000, 9375000 } } },
	{ "10 both more than five times: hyper increase",
	  0,
	  { { 0, NOTE, 0, 5000000 },
	    { 0, SENT, MUCH, 5000000 },
	    { PERIOD, NOTE, 0, 2500000 },
	    { PERIOD, SENT, 50000000, 4921875 },
	    { 5 * PERIOD, SENT, MUCH, 4990235 },
	    { 7 * PERIOD, SENT, MUCH, 4997559 },
	    { 8 * PERIOD, SENT, MUCH, (5002000 + 4997559 + 1) / 2 },
	    { 8 * PERIOD, SENT, 10000000 - 3 * MUCH, (5022000 + 4999780 + 1) / 2 } } },
	{ "11 a cut restarts all of it",
	  0,
	  { { 0, NOTE, 0, 5000000 },
	    { 0, SENT, MUCH, 5000000 },
	    { 4 * PERIOD, SENT, MUCH, 9375000 },
	    { 4 * PERIOD, NOTE, 0, 4742218 },
	    { 5 * PERIOD, SENT, MUCH, 4742218 },
	    { 6 * PERIOD, SENT, MUCH, (9375000 + 4742218 + 1) / 2 } } },
	{ "12 a path's round trip is the period, where it is longer",
	  1000000,
	  { { 0, NOTE, 0, 5000000 },
	    { 0, SENT, MUCH, 5000000 },
	    { 999999, NOTE, 0, 5000000 },
	    { 1000000, SENT, MUCH, 5000000 },
	    { 1999999, SENT, MUCH, 5000000 },
	    { 2000000, SENT, MUCH, 7500000 } } },
	{ "13 without sends for twice the time of the last packet, time does not advance",
	  0,
	  { { 0, NOTE, 0, 5000000 },
	    { 0, SENT, 5000000 * PERIOD / 8000000, 5000000 },
	    { 900 * PERIOD, SENT, 1, 7500000 },
	    { 1800 * PERIOD, SENT, 1, 7500000 } } },
	{ "14 from one packet to the next there are four periods at the most",
	  0,
	  { { 0, NOTE, 0, 5000000 },
	    { 0, SENT, MUCH, 5000000 },
	    { 50 * PERIOD, SENT, 0, 9375000 },
	    { 50 * PERIOD, SENT, 0, 9375000 } } },
};

static void test_rows(void)
{
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct dcqcn d;

		dcqcn_init(&d, LINE, LINE, (struct now){ 0 });
		for (j = 0; j < STEPS && rows[i].step[j].rate; j++) {
			const struct step *s = &rows[i].step[j];

			if (s->what == NOTE)
				dcqcn_notified(&d, rows[i].rtt, (struct now){ s->at });
			else
				dcqcn_sent(&d, s->bytes, rows[i].rtt, (struct now){ s->at });
			if (d.rate != s->rate)
				printf("%s: step %u: %llu, not %llu\n", rows[i].name, j, (unsigned long long)d.rate,
				       (unsigned long long)s->rate);
			assert(d.rate == s->rate);
		}
	}
}

/* Sends the bytes of one period. */
static void send_period(struct dcqcn *d, struct now *now)
{
	dcqcn_sent(d, d->rate * PERIOD / 8000000, 0, *now);
	now->ns += PERIOD;
}

/* However many CNPs arrive, the rate stays above zero, and recovers to the line rate. */
static void test_bounds(void)
{
	struct now now = { 1 };
	struct dcqcn d;
	u32 i;

	dcqcn_init(&d, LINE, LINE, now);
	for (i = 0; i < 1000; i++, send_period(&d, &now))
		dcqcn_notified(&d, 0, now);
	assert(d.rate == 1000 && d.alpha <= DCQCN_ONE);
	for (i = 0; i < 20000 && dcqcn_limits(&d); i++)
		send_period(&d, &now);
	assert(!dcqcn_limits(&d) && d.rate == LINE);
	for (i = 0; i < 5000; i++) /* alpha decays: the next cut is small */
		send_period(&d, &now);
	dcqcn_notified(&d, 0, now);
	assert(d.alpha < DCQCN_ONE / 100);
	assert(d.rate > LINE * 99 / 100);
}

/* An idle hour does not cost the loop an hour's periods. */
static void test_idle(void)
{
	struct dcqcn d;

	dcqcn_init(&d, LINE, LINE, (struct now){ 0 });
	dcqcn_notified(&d, 0, (struct now){ 1 });
	dcqcn_sent(&d, 1, 0, (struct now){ 3600ull * NSEC_PER_SEC });
	assert(d.rate == LINE && d.alpha == DCQCN_ONE);
	dcqcn_notified(&d, 0, (struct now){ 7200ull * NSEC_PER_SEC });
	dcqcn_notified(&d, 0, (struct now){ 9999ull * NSEC_PER_SEC });
	assert(d.rate == LINE / 2);
}

/* The first cut starts at the flow's rate, and a link slower than the minimum rate keeps its rate. */
static void test_slow(void)
{
	struct dcqcn d;

	dcqcn_init(&d, LINE, 3000000, (struct now){ 0 });
	assert(d.rate == 3000000 && dcqcn_limits(&d));
	dcqcn_notified(&d, 0, (struct now){ 1 });
	assert(d.rate == 1500000);
	dcqcn_init(&d, 500, 500, (struct now){ 0 });
	dcqcn_notified(&d, 0, (struct now){ 1 });
	assert(d.rate == 500 && !dcqcn_limits(&d));
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_rows();
	test_bounds();
	test_idle();
	test_slow();
	printf("dcqcn: %zu rows passed\n", ARRAY_SIZE(rows));
	return 0;
}

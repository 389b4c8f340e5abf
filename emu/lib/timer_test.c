// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of timer.c: a heap compared with a sorted array, through many random changes. */
#include "emu/lib/rng.h"
#include "emu/lib/row.h"
#include "emu/lib/timer.h"

#define TIMERS 2000

static struct timer_heap heap;
static struct loop_timer timers[TIMERS];
static bool in[TIMERS];
static struct loop_timer *sorted[TIMERS]; /* the model: by time, with equal times in the order of addition */
static u32 nsorted;

static void add(struct loop_timer *t, u64 when)
{
	u32 i = nsorted++;

	t->when = when;
	timer_heap_add(&heap, t);
	for (; i && sorted[i - 1]->when > when; i--)
		sorted[i] = sorted[i - 1];
	sorted[i] = t;
	in[t - timers] = true;
}

static void del(struct loop_timer *t)
{
	u32 i = 0;

	timer_heap_del(&heap, t);
	while (sorted[i] != t)
		i++;
	memmove(&sorted[i], &sorted[i + 1], (--nsorted - i) * sizeof(sorted[0]));
	in[t - timers] = false;
}

static bool first_is_first(void)
{
	return heap.first == (nsorted ? sorted[0] : NULL);
}

static bool drain(void)
{
	bool same = true;

	while (nsorted && same) {
		same = first_is_first();
		del(sorted[0]);
	}
	return same && !heap.first;
}

static void test_orders(void)
{
	u32 i;

	row(1, "an empty heap has no first", !heap.first);
	for (i = 0; i < TIMERS; i++)
		add(&timers[i], i);
	row(2, "added in the order of time", drain());
	for (i = 0; i < TIMERS; i++)
		add(&timers[i], TIMERS - i);
	row(3, "added against it", drain());
	for (i = 0; i < TIMERS; i++)
		add(&timers[i], 7);
	row(4, "all of the same time", drain());
	for (i = 0; i < TIMERS; i++)
		add(&timers[i], i * 7919u % 50);
	for (i = 0; i < TIMERS; i += 3)
		del(&timers[i]);
	row(5, "equal times, after others are cancelled", drain());
	add(&timers[0], 1);
	add(&timers[1], 0);
	del(&timers[0]);
	row(6, "the last one left", drain());
}

/* Adds, removes anywhere or at the front, and changes times; with @count timers and times up to @range. */
static bool model(u64 seed, u32 count, u32 range)
{
	struct rng rng = { .state = seed };
	bool same = true;
	u32 i;

	for (i = 0; i < 20000 && same; i++) {
		struct loop_timer *t = &timers[rng_next(&rng) % count];
		u64 what = rng_next(&rng) % 8, when = rng_next(&rng) % range;

		if (what < 2 && nsorted)
			del(sorted[0]);
		else if (in[t - timers])
			del(t);
		else
			add(t, when);
		if (what == 7 && !in[t - timers])
			add(t, when);
		same = first_is_first();
	}
	return drain() && same;
}

static void test_model(void)
{
	static const struct {
		u32 count, range;
	} c[] = { { 1, 1 }, { 2, 2 }, { 3, 2 }, { 5, 1000 }, { 40, 8 }, { 300, 1u << 30 }, { TIMERS, 100 } };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(c); i++)
		row(7 + (int)i, "the heap's first is the sorted array's", model(i, c[i].count, c[i].range));
}

int main(void)
{
	test_orders();
	test_model();
	return rows_end();
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Timers in the order of expiry. loop.h sets, cancels and runs them. */
#ifndef MUSLIN_LIB_TIMER_H
#define MUSLIN_LIB_TIMER_H

#include "emu/lib/types.h"

struct loop;

/* A one-shot timer, embedded in its owner. Zeroed memory is a valid idle timer once fn is set. */
struct loop_timer {
	u64 when; /* absolute ns of the loop's clock */
	void (*fn)(struct loop_timer *t, struct now now);
	struct loop *loop; /* NULL if not set */
	/* Private: with equal times the lower serial is first; child is the first child, next and prev are siblings;
	 * prev of the first child is the parent. */
	u64 serial;
	struct loop_timer *child, *next, *prev;
};

/* A heap of timers, without allocation. Zeroed memory is an empty one. */
struct timer_heap {
	struct loop_timer *first; /* the next to expire; NULL: none */
	u64 serial;
};

void timer_heap_add(struct timer_heap *h, struct loop_timer *t); /* @t has its time, and is in no heap */
void timer_heap_del(struct timer_heap *h, struct loop_timer *t); /* @t is in @h */

#endif

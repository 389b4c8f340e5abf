// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * DCQCN's reaction point, as its authors published it (SIGCOMM 2015) after QCN (IEEE 802.1Qau):
 *
 * A notification cuts the rate by half of alpha, and remembers the rate before as the target. Alpha rises with each
 * notification and decays while none comes. A timer and a count of bytes raise the rate: first half of the way back to the
 * target each time (fast recovery); when one of both has done so five times, the target itself rises by a step (additive
 * increase), and by greater and greater ones when both have (hyper increase).
 *
 * The published period of the timer, 55 us, is longer than a round trip, and than the time between two notifications, so that of a
 * rate that is too high it is told before the rate rises again. A simulated link may be a hundred times slower, and packets wait
 * for it much longer. So a period is a round trip here, where that is longer; and what comes in the first one after a cut speaks of
 * what was sent before it, and does not cut once more.
 *
 * Nor may the rate rise when it was only the daemon that did not come to its turn, since then neither has anything else: the
 * periods are counted in a time of the flow's own, which stands still when the flow sends nothing for longer than its rate says.
 */
#include "rxe/dcqcn.h"

#define ALPHA_GAIN   256 /* 1/g */
#define PERIOD_NS    55000ull
#define BYTES        10000000ull
#define FAST_EVENTS  5
#define STEP_KBPS    2000ull /* 40 Mb/s are published, for links of 40 Gb/s; simulated ones are slower */
#define HYPER_KBPS   (10 * STEP_KBPS)
#define LEAST_KBPS   1000ull
#define EVENTS_MOST  4            /* periods from one packet to the next; no more is known of what they would do */
#define FORGOTTEN_NS NSEC_PER_SEC /* a flow that sent nothing for so long begins anew */

void dcqcn_init(struct dcqcn *d, u64 line, u64 rate, struct now now)
{
	rate = min(max(rate, LEAST_KBPS), line);
	*d = (struct dcqcn){ .line = line, .rate = rate, .target = rate, .alpha = DCQCN_ONE, .used = now.ns };
}

static void increase(struct dcqcn *d)
{
	u32 least = min(d->timer_events, d->byte_events), most = max(d->timer_events, d->byte_events);

	if (least > FAST_EVENTS)
		d->target += (least - FAST_EVENTS) * HYPER_KBPS;
	else if (most > FAST_EVENTS)
		d->target += STEP_KBPS;
	d->target = min(d->target, d->line);
	d->rate = (d->target + d->rate + 1) / 2;
}

static u64 period_of(u64 rtt)
{
	return max(PERIOD_NS, rtt);
}

static void period_over(struct dcqcn *d)
{
	if (d->deaf) {
		d->deaf = false;
		return;
	}
	d->alpha -= d->alpha / ALPHA_GAIN;
	if (!dcqcn_holds(d))
		return;
	d->timer_events++;
	increase(d);
}

/* What the timer would have done until now. */
static void advance(struct dcqcn *d, u64 rtt, struct now now)
{
	u64 period = period_of(rtt), passed;
	u32 n;

	if (now.ns >= d->used + FORGOTTEN_NS)
		dcqcn_init(d, d->line, d->line, now);
	passed = min(now.ns - d->used, d->gap);
	d->used = now.ns;
	d->gap -= passed;
	d->clock += passed;
	for (n = 0; n < EVENTS_MOST && d->clock >= d->since + period; n++) {
		d->since += period;
		period_over(d);
	}
	if (n == EVENTS_MOST)
		d->since = d->clock;
}

void dcqcn_notified(struct dcqcn *d, u64 rtt, struct now now)
{
	advance(d, rtt, now);
	if (d->deaf)
		return;
	d->target = d->rate;
	d->rate -= (d->rate * (d->alpha / 2)) / DCQCN_ONE;
	d->rate = max(d->rate, min(LEAST_KBPS, d->line));
	d->alpha = d->alpha - d->alpha / ALPHA_GAIN + DCQCN_ONE / ALPHA_GAIN;
	d->timer_events = d->byte_events = 0;
	d->bytes = 0;
	d->deaf = true;
	d->since = d->clock;
}

void dcqcn_sent(struct dcqcn *d, u64 bytes, u64 rtt, struct now now)
{
	advance(d, rtt, now);
	d->gap = min(d->gap, period_of(rtt)) +
		 2 * bytes * 8000000 / d->rate; /* twice: a timer is always a little late */
	if (!dcqcn_holds(d))
		return;
	for (d->bytes += bytes; d->bytes >= BYTES && dcqcn_holds(d); d->bytes -= BYTES) {
		d->byte_events++;
		increase(d);
	}
}

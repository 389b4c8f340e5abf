// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * DCQCN reaction point, as published (SIGCOMM 2015), after QCN (IEEE 802.1Qau):
 *
 * A CNP reduces the rate by half of alpha, and saves the rate before as the target. Alpha increases with each CNP and
 * decays without them. A timer and a byte counter increase the rate: each of the first five events moves it half of the
 * way back to the target (fast recovery); after five events of one of both, each event increases the target by a step
 * (additive increase), after five of both by growing steps (hyper increase).
 *
 * The published period of the timer, 55 us, is longer than a round trip and than the time between two CNPs, so that a
 * rate that is too high causes a CNP before the rate increases again. A simulated link may be a hundred times slower,
 * with longer queueing delays. So a period is at least a round trip here, and CNPs in the first period after a cut are
 * ignored: they are for packets that were sent before the cut.
 *
 * The rate must not increase only because the daemon was not scheduled. So periods are measured by a clock of the flow,
 * which stops when the flow sends nothing for longer than the bytes sent take at its rate.
 */
#include "rxe/dcqcn.h"

#define ALPHA_GAIN  256 /* 1/g */
#define PERIOD_NS   55000ull
#define BYTES       10000000ull
#define FAST_EVENTS 5
#define STEP_KBPS   2000ull /* published: 40 Mb/s, for links of 40 Gb/s; simulated links are slower */
#define HYPER_KBPS  (10 * STEP_KBPS)
#define MIN_KBPS    1000ull
#define EVENTS_MAX  4            /* missed periods that one update executes at most */
#define IDLE_NS     NSEC_PER_SEC /* a flow that was idle for that long starts again at the link's rate */

void dcqcn_init(struct dcqcn *d, u64 line, u64 rate, struct now now)
{
	rate = min(max(rate, MIN_KBPS), line);
	*d = (struct dcqcn){ .line = line, .rate = rate, .target = rate, .alpha = DCQCN_ONE, .updated = now.ns };
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
	if (d->cut_recently) {
		d->cut_recently = false;
		return;
	}
	d->alpha -= d->alpha / ALPHA_GAIN;
	if (!dcqcn_limits(d))
		return;
	d->timer_events++;
	increase(d);
}

/* Runs the timer events that are due by now. */
static void advance(struct dcqcn *d, u64 rtt, struct now now)
{
	u64 period = period_of(rtt), passed;
	u32 n;

	if (now.ns >= d->updated + IDLE_NS)
		dcqcn_init(d, d->line, d->line, now);
	passed = min(now.ns - d->updated, d->busy_ns);
	d->updated = now.ns;
	d->busy_ns -= passed;
	d->clock += passed;
	for (n = 0; n < EVENTS_MAX && d->clock >= d->since + period; n++) {
		d->since += period;
		period_over(d);
	}
	if (n == EVENTS_MAX)
		d->since = d->clock;
}

void dcqcn_notified(struct dcqcn *d, u64 rtt, struct now now)
{
	advance(d, rtt, now);
	if (d->cut_recently)
		return;
	d->target = d->rate;
	d->rate -= (d->rate * (d->alpha / 2)) / DCQCN_ONE;
	d->rate = max(d->rate, min(MIN_KBPS, d->line));
	d->alpha = d->alpha - d->alpha / ALPHA_GAIN + DCQCN_ONE / ALPHA_GAIN;
	d->timer_events = d->byte_events = 0;
	d->bytes = 0;
	d->cut_recently = true;
	d->since = d->clock;
}

void dcqcn_sent(struct dcqcn *d, u64 bytes, u64 rtt, struct now now)
{
	advance(d, rtt, now);
	d->busy_ns = min(d->busy_ns, period_of(rtt)) + 2 * bytes * 8000000 / d->rate; /* twice: timers fire late */
	if (!dcqcn_limits(d))
		return;
	for (d->bytes += bytes; d->bytes >= BYTES && dcqcn_limits(d); d->bytes -= BYTES) {
		d->byte_events++;
		increase(d);
	}
}

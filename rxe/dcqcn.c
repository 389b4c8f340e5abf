// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * DCQCN's reaction point, as its authors published it (SIGCOMM 2015) after QCN (IEEE 802.1Qau):
 *
 * A notification cuts the rate by half of alpha, and remembers the rate before as the target. Alpha rises with each
 * notification and decays while none comes. A timer and a count of bytes raise the rate: first half of the way back to the
 * target each time (fast recovery); when one of both has done so five times, the target itself rises by a step (additive
 * increase), and by greater and greater ones when both have (hyper increase).
 */
#include "rxe/dcqcn.h"

#define ALPHA_GAIN   256 /* 1/g */
#define PERIOD_NS    55000ull
#define BYTES        10000000ull
#define FAST_EVENTS  5
#define STEP_KBPS    40000ull
#define HYPER_KBPS   (10 * STEP_KBPS)
#define LEAST_KBPS   10000ull
#define FORGOTTEN_NS NSEC_PER_SEC /* a flow that sent nothing for so long begins anew */

void dcqcn_init(struct dcqcn *d, u64 line_kbps)
{
	*d = (struct dcqcn){ .line = line_kbps, .rate = line_kbps, .target = line_kbps, .alpha = DCQCN_ONE };
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

/* What the timers would have done until now. */
static void advance(struct dcqcn *d, struct now now)
{
	while (d->alpha_at <= now.ns) {
		d->alpha -= d->alpha / ALPHA_GAIN;
		d->alpha_at += PERIOD_NS;
	}
	while (d->increase_at <= now.ns && dcqcn_holds(d)) {
		d->timer_events++;
		d->increase_at += PERIOD_NS;
		increase(d);
	}
}

void dcqcn_cut(struct dcqcn *d, struct now now)
{
	if (d->alpha_at && now.ns >= d->alpha_at + FORGOTTEN_NS)
		dcqcn_init(d, d->line);
	else if (d->alpha_at)
		advance(d, now);
	d->target = d->rate;
	d->rate -= (d->rate * (d->alpha / 2)) / DCQCN_ONE;
	d->rate = max(d->rate, min(LEAST_KBPS, d->line));
	d->alpha = d->alpha - d->alpha / ALPHA_GAIN + DCQCN_ONE / ALPHA_GAIN;
	d->timer_events = d->byte_events = 0;
	d->bytes = 0;
	d->alpha_at = d->increase_at = now.ns + PERIOD_NS;
}

void dcqcn_sent(struct dcqcn *d, u64 bytes, struct now now)
{
	if (!dcqcn_holds(d))
		return;
	if (now.ns >= d->alpha_at + FORGOTTEN_NS) {
		dcqcn_init(d, d->line);
		return;
	}
	advance(d, now);
	for (d->bytes += bytes; d->bytes >= BYTES && dcqcn_holds(d); d->bytes -= BYTES) {
		d->byte_events++;
		increase(d);
	}
}

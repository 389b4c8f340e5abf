// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Faults of links of any kind: down, and flap, whose timer alternates down and up. */
#include "emu/fault/fault.h"

#define FLAP_TIME NSEC_PER_SEC

static void fault_link(struct fault *ft, bool up)
{
	ft->set->target->link(ft, up);
}

void fault_down_apply(struct fault *ft)
{
	fault_link(ft, false);
}

void fault_down_undo(struct fault *ft)
{
	fault_link(ft, true);
}

static void flap_timer_set(struct fault *ft)
{
	u64 time = ft->down_now ? ft->down : ft->up;

	loop_timer_set(ft->set->loop, &ft->timer, loop_now(ft->set->loop).ns + (time ? time : FLAP_TIME));
}

void fault_flap_apply(struct fault *ft)
{
	ft->cycles = 1;
	ft->down_now = true;
	fault_link(ft, false);
	flap_timer_set(ft);
}

void fault_flap_undo(struct fault *ft)
{
	if (ft->down_now)
		fault_link(ft, true);
	ft->down_now = false;
}

void fault_flap_step(struct fault *ft)
{
	ft->down_now = !ft->down_now;
	fault_link(ft, !ft->down_now);
	ft->cycles += ft->down_now;
	if (!ft->down_now && ft->times && ft->cycles >= ft->times)
		fault_end(ft);
	else
		flap_timer_set(ft);
}

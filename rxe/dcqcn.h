/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reaction point of DCQCN: how fast a flow may send that congestion notifications come for. */
#ifndef MUSLIN_RXE_DCQCN_H
#define MUSLIN_RXE_DCQCN_H

#include "emu/lib/types.h"

/* Rates are in kb/s, times in ns. */
struct dcqcn {
	u64 line, rate, target;
	u32 alpha;                     /* how congested the path seems, of DCQCN_ONE */
	bool deaf;                     /* a notification may speak of what was sent before the last cut */
	u64 used, gap;                 /* by the loop's clock: up to date; and for how long what was sent takes */
	u64 clock, since;              /* the flow's own time; a period began then */
	u64 bytes;                     /* since the byte counter's last event */
	u32 timer_events, byte_events; /* increases since the last cut */
};
#define DCQCN_ONE (1u << 20)

/* A flow over a link of the rate @line, that has sent at @rate so far. */
void dcqcn_init(struct dcqcn *d, u64 line, u64 rate, struct now now);
/* A notification has come: the rate falls, if it has not just done so. @rtt: the path's round trip; 0: a short one. */
void dcqcn_notified(struct dcqcn *d, u64 rtt, struct now now);
/* @bytes are sent; brings the rate up to date. */
void dcqcn_sent(struct dcqcn *d, u64 bytes, u64 rtt, struct now now);
/* Is the flow held below its link's rate? */
static inline bool dcqcn_holds(const struct dcqcn *d)
{
	return d->rate < d->line;
}

#endif

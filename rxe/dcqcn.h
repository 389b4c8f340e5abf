/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* DCQCN reaction point (SIGCOMM 2015): the rate of a flow that receives congestion notifications (CNP). */
#ifndef MUSLIN_RXE_DCQCN_H
#define MUSLIN_RXE_DCQCN_H

#include "emu/lib/types.h"

/* Rates are in kb/s, times in ns. */
struct dcqcn {
	u64 line, rate, target;
	u32 alpha;            /* estimated congestion of the path, of DCQCN_ONE */
	bool cut_recently;    /* in the period after a cut: CNPs are ignored, they may be for packets sent before it */
	u64 updated, busy_ns; /* loop clock of the last update; transmission time of the bytes sent, at the rate */
	u64 clock, since;     /* clock of the flow, which stops while it is idle; start of the period */
	u64 bytes;            /* since the byte counter's last event */
	u32 timer_events, byte_events; /* increases since the last cut */
};
#define DCQCN_ONE (1u << 20)

/* Initialises a flow over a link of the rate @line, which has been sending at @rate. */
void dcqcn_init(struct dcqcn *d, u64 line, u64 rate, struct now now);
/* A CNP arrived: cuts the rate, except in the period after a cut. @rtt: round trip of the path; 0: short. */
void dcqcn_notified(struct dcqcn *d, u64 rtt, struct now now);
/* @bytes were sent; updates the rate. */
void dcqcn_sent(struct dcqcn *d, u64 bytes, u64 rtt, struct now now);
/* Is the flow limited below its link's rate? */
static inline bool dcqcn_limits(const struct dcqcn *d)
{
	return d->rate < d->line;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reaction point of DCQCN: how fast a flow may send that congestion notifications come for. */
#ifndef MUSLIN_RXE_DCQCN_H
#define MUSLIN_RXE_DCQCN_H

#include "emu/lib/types.h"

/* Rates are in kb/s, times in ns of one clock. */
struct dcqcn {
	u64 line, rate, target;
	u32 alpha; /* how congested the path seems, of DCQCN_ONE */
	u64 alpha_at, increase_at;
	u64 bytes;                     /* since the byte counter's last event */
	u32 timer_events, byte_events; /* increases since the last cut */
};
#define DCQCN_ONE (1u << 20)

/* A flow that sends at the rate of its link. */
void dcqcn_init(struct dcqcn *d, u64 line_kbps);
/* A notification has come: the rate falls. */
void dcqcn_cut(struct dcqcn *d, struct now now);
/* @bytes were sent; brings the rate up to date. */
void dcqcn_sent(struct dcqcn *d, u64 bytes, struct now now);
/* Is the flow held below its link's rate? */
static inline bool dcqcn_holds(const struct dcqcn *d)
{
	return d->rate < d->line;
}

#endif

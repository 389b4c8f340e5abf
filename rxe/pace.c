// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Static rate control (IBTA 9.11.1): packets to a destination slower than the local port are sent at the rate of that
 * destination. Links have no transmission time, so the queue pair adds up the transmission time of each packet on the
 * slower link, and waits when it is ahead by more than a turn of the loop. The rate limit of DCQCN is enforced in the
 * same way.
 */
#include "rxe/rxe_internal.h"

#define AHEAD_NS    20000ull
#define LATE_NS     ((u64)NSEC_PER_MSEC)  /* lateness of a timer that is compensated, at most */
#define LATE_CUT_NS (200 * NSEC_PER_USEC) /* ... under DCQCN: a burst would cause the next CNP */

static void on_timer(struct loop_timer *t, struct now now)
{
	rxe_req_kick(container_of(t, struct rxe_qp, rate.timer));
}

u32 rxe_pace_link(const struct rxe_qp *rq)
{
	const struct wire_port *port = hca_port(rq->qp->hca, rq->qp->attr.port);

	return wire_rate_mbps(wire_link_rate(wire_speed_active(port->attr.speed_active, port->attr.speed_ext_active),
					     wire_width_lanes(port->attr.width_active)));
}

/* kb/s; 0: as fast as the port */
static u64 static_kbps(const struct rxe_qp *rq, u8 static_rate)
{
	u32 rate = static_rate ? wire_rate_mbps(static_rate) : 0;

	return rate && rate < rxe_pace_link(rq) ? rate * 1000ull : 0;
}

static u64 late_ns(const struct rxe_qp *rq)
{
	return rq->rate.dcqcn ? LATE_CUT_NS : LATE_NS;
}

bool rxe_pace_wait(struct rxe_qp *rq)
{
	u64 now = loop_now(rq->rxe->loop).ns;

	if (rq->rate.until + late_ns(rq) < now)
		rq->rate.armed = false;
	if (rq->rate.until <= now + AHEAD_NS)
		return false;
	rq->rate.armed = true;
	rq->rate.timer.fn = on_timer;
	loop_timer_set(rq->rxe->loop, &rq->rate.timer, rq->rate.until);
	return true;
}

void rxe_pace_sent(struct rxe_qp *rq, u8 static_rate, u32 bytes)
{
	u64 kbps = rxe_cc_rate(rq, bytes), limit = static_kbps(rq, static_rate), now;

	if (limit && (!kbps || limit < kbps))
		kbps = limit;
	if (!kbps)
		return;
	now = loop_now(rq->rxe->loop).ns;
	if (rq->rate.until + late_ns(rq) < now || !rq->rate.armed)
		rq->rate.until = max(rq->rate.until, now);
	rq->rate.until += bytes * 8000000ull / kbps;
}

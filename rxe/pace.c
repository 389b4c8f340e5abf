// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Static rate control (9.11.1): towards a destination that is slower than the own port, packets leave at its rate. Links
 * take no time here, so the time that a packet would take on the slower one is counted, and the queue pair waits when it
 * is ahead by more than one turn of the loop is worth. The rate that congestion control allows is kept in the same way.
 */
#include "emu/wire/hdr.h"
#include "rxe/internal.h"

#define AHEAD_NS    20000ull
#define LATE_NS     ((u64)NSEC_PER_MSEC)  /* a timer that comes as late is made up for */
#define LATE_CUT_NS (200 * NSEC_PER_USEC) /* ... after notifications: a burst would bring the next one */

static void on_timer(struct loop_timer *t, struct now now)
{
	rxe_req_kick(container_of(t, struct rxe_qp, pace));
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
	return rq->dcqcn ? LATE_CUT_NS : LATE_NS;
}

bool rxe_pace_wait(struct rxe_qp *rq)
{
	u64 now = loop_now(rq->rxe->loop).ns;

	if (rq->paced_until + late_ns(rq) < now)
		rq->paced = false;
	if (rq->paced_until <= now + AHEAD_NS)
		return false;
	rq->paced = true;
	rq->pace.fn = on_timer;
	loop_timer_set(rq->rxe->loop, &rq->pace, rq->paced_until);
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
	if (rq->paced_until + late_ns(rq) < now || !rq->paced)
		rq->paced_until = max(rq->paced_until, now);
	rq->paced_until += bytes * 8000000ull / kbps;
}

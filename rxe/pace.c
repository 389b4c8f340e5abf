// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Static rate control (9.11.1): towards a destination that is slower than the own port, packets leave at its rate. Links
 * take no time here, so the time that a packet would take on the slower one is counted, and the queue pair waits when it
 * is ahead by more than one turn of the loop is worth.
 */
#include "emu/wire/hdr.h"
#include "rxe/internal.h"

#define AHEAD_NS 20000ull

static void on_timer(struct loop_timer *t, struct now now)
{
	rxe_req_kick(container_of(t, struct rxe_qp, pace));
}

u32 rxe_pace_rate(const struct rxe_qp *rq, u8 static_rate)
{
	const struct wire_port *port = hca_port(rq->qp->hca, rq->qp->attr.port);
	u32 rate = static_rate ? wire_rate_mbps(static_rate) : 0, own;

	if (!rate || !port)
		return 0;
	own = wire_rate_mbps(wire_link_rate(wire_speed_active(port->attr.speed_active, port->attr.speed_ext_active),
					    wire_width_lanes(port->attr.width_active)));
	return rate < own ? rate : 0;
}

bool rxe_pace_wait(struct rxe_qp *rq)
{
	u64 now = loop_now(rq->rxe->loop).ns;

	if (rq->paced_until <= now + AHEAD_NS)
		return false;
	rq->pace.fn = on_timer;
	loop_timer_set(rq->rxe->loop, &rq->pace, rq->paced_until);
	return true;
}

void rxe_pace_sent(struct rxe_qp *rq, u32 mbps, u32 bytes)
{
	if (mbps)
		rq->paced_until = max(rq->paced_until, loop_now(rq->rxe->loop).ns) + bytes * 8000ull / mbps;
}

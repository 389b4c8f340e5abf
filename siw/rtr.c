// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * RTR: an initiator's ready-to-receive message (RFC 6581, 9.2; RFC 5044, 7.1). It may follow the MPA reply at once, but
 * the kernel's siw misses data that arrives before it has finished sending its reply: it then waits forever, and its
 * iw_cm hits a BUG when such a connection is closed. So the first FPDU is delayed, and an empty WRITE is repeated a few
 * times until the peer sends something; a peer that has received the first one ignores the others.
 */
#include "siw/siw_internal.h"

#define RTR_DELAY_NS (2ull * 1000 * 1000)
#define RTR_REPEATS  4 /* each after four times the delay of the one before */

static void rtr_send(struct siw_qp *sq)
{
	if (sq->load_due || (!sq->rtr_wait && (!sq->terms.rtr_write || sq->out_len)))
		return;
	sq->rtr_wait = false;
	siw_send_rtr(sq);
	siw_kick(sq);
}

static void on_timer(struct loop_timer *t, struct now now)
{
	struct siw_qp *sq = container_of(t, struct siw_qp, rtr);
	bool first = sq->rtr_wait;

	rtr_send(sq);
	if (first && !sq->terms.rtr_write)
		return;
	if (sq->rtr_sent++ < RTR_REPEATS)
		loop_timer_set(sq->siw->loop, t, now.ns + (RTR_DELAY_NS << (2 * sq->rtr_sent)));
}

void siw_rtr_start(struct siw_qp *sq)
{
	if (!sq->terms.initiator)
		return;
	sq->rtr_wait = true;
	sq->rtr_sent = 0;
	sq->rtr.fn = on_timer;
	loop_timer_set(sq->siw->loop, &sq->rtr, loop_now(sq->siw->loop).ns + RTR_DELAY_NS);
}

void siw_rtr_flush(struct siw_qp *sq)
{
	if (sq->rtr_wait)
		rtr_send(sq);
	siw_rtr_stop(sq);
}

void siw_rtr_stop(struct siw_qp *sq)
{
	loop_timer_cancel(&sq->rtr);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An initiator's first message. It may follow the reply at once (RFC 5044, 7.1; RFC 6581, 9.2), but the kernel's siw does not see
 * what arrives before its reply has left its hands altogether: it then waits for ever, and its iw_cm comes to a BUG when such
 * a connection ends. So the first FPDU takes a moment; and as long as nothing comes back, an empty WRITE is said a few times
 * more, which changes nothing for a peer that has heard the first one.
 */
#include "siw/internal.h"

#define SETTLE_NS (2ull * 1000 * 1000)
#define AGAIN     4 /* each after four times as long as the one before */

static void say(struct siw_qp *sq)
{
	if (!sq->hold && (!sq->terms.rtr_write || sq->out_len))
		return;
	sq->hold = false;
	siw_send_rtr(sq);
	siw_kick(sq);
}

static void on_timer(struct loop_timer *t, struct now now)
{
	struct siw_qp *sq = container_of(t, struct siw_qp, rtr);
	bool first = sq->hold;

	say(sq);
	if (first && !sq->terms.rtr_write)
		return;
	if (sq->rtr_said++ < AGAIN)
		loop_timer_set(sq->siw->loop, t, now.ns + (SETTLE_NS << (2 * sq->rtr_said)));
}

void siw_rtr_start(struct siw_qp *sq)
{
	if (!sq->terms.initiator)
		return;
	sq->hold = true;
	sq->rtr_said = 0;
	sq->rtr.fn = on_timer;
	loop_timer_set(sq->siw->loop, &sq->rtr, loop_now(sq->siw->loop).ns + SETTLE_NS);
}

void siw_rtr_flush(struct siw_qp *sq)
{
	if (sq->hold)
		say(sq);
	siw_rtr_stop(sq);
}

void siw_rtr_stop(struct siw_qp *sq)
{
	loop_timer_cancel(&sq->rtr);
}

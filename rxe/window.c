// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The window on Ethernet, where there are no credits and packets get lost: it halves with each loss and grows by a packet a
 * round (go-back-n repeats a window for each loss), and a first time-out from measured round trips. Neither changes what the peer
 * sees but the times: retries are counted only when the acknowledge time-out of the queue pair is over (9.7.6.1.3).
 */
#include "rxe/internal.h"

#define WINDOW_FIRST      128u
#define WINDOW_LEAST      16u
#define WINDOW_LEAST_HELD 64u /* where a loss costs one packet */
#define TIMEOUT_LEAST     (2 * NSEC_PER_MSEC)
#define ROUND_TRIPS       8 /* programs that share the processors make some of them long */
#define BACKOFF_MOST      6

void rxe_window_reset(struct rxe_qp *rq)
{
	rq->win = (struct rxe_window){ .on = wire_port_is_ethernet(hca_port(rq->qp->hca, rq->qp->attr.port)),
				       .window = WINDOW_FIRST };
}

u32 rxe_window_size(const struct rxe_qp *rq)
{
	return rq->win.on ? rq->win.window : RXE_WINDOW;
}

bool rxe_window_ackreq(const struct rxe_qp *rq)
{
	u32 out = (u32)wire_psn_diff(rq->psn, rq->una) + 1;

	if (!rq->win.on)
		return !((rq->pkt_next + 1) % RXE_ACK_EVERY);
	return out >= rq->win.window || !((rq->pkt_next + 1) % max(rq->win.window / 4, 1u));
}

void rxe_window_sent(struct rxe_qp *rq, u32 psn)
{
	struct rxe_window *p = &rq->win;

	if (!p->on || p->sampling)
		return;
	p->sampling = true;
	p->sample_psn = psn;
	p->sample_ns = loop_now(rq->rxe->loop).ns;
}

void rxe_window_acked(struct rxe_qp *rq, u32 una, u32 n)
{
	struct rxe_window *p = &rq->win;
	u64 now = loop_now(rq->rxe->loop).ns;

	p->backoff = 0;
	p->gap = false;
	p->began = now;
	if (!p->on)
		return;
	p->credit += n;
	if (p->credit >= p->window) {
		p->credit = 0;
		p->window = min(p->window + max(p->window / 16, 1u), (u32)RXE_WINDOW);
	}
	if (!p->sampling || wire_psn_diff(una, p->sample_psn) <= 0)
		return;
	p->sampling = false;
	p->srtt = p->srtt ? (7 * p->srtt + (now - p->sample_ns)) / 8 : now - p->sample_ns;
}

void rxe_window_lost(struct rxe_qp *rq)
{
	struct rxe_window *p = &rq->win;

	p->sampling = false; /* what is sent again says nothing about round trips */
	p->credit = 0;
	p->window = max(p->window / 2, rq->holds == RXE_HOLDS ? WINDOW_LEAST_HELD : WINDOW_LEAST);
}

u64 rxe_window_timeout(const struct rxe_qp *rq)
{
	u64 whole = wire_timeout_ns(rq->qp->attr.timeout), early;

	if (!rq->win.on || !rq->win.srtt)
		return whole;
	early = max(rq->win.srtt * ROUND_TRIPS, TIMEOUT_LEAST) << min(rq->win.backoff, (u8)BACKOFF_MOST);
	return min(early, whole);
}

void rxe_window_begin(struct rxe_qp *rq)
{
	rq->win.began = loop_now(rq->rxe->loop).ns;
}

bool rxe_window_due(const struct rxe_qp *rq)
{
	const struct rxe_window *p = &rq->win;

	return !p->on || loop_now(rq->rxe->loop).ns - p->began >= wire_timeout_ns(rq->qp->attr.timeout);
}

bool rxe_window_early(struct rxe_qp *rq)
{
	if (rxe_window_due(rq))
		return false;
	rq->win.backoff++;
	return true;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is sent again: all from a packet on (go-back-n), or a lost packet alone where the responder holds what came behind it. */
#include "rxe/request.h"

#define GAP_TRIES 2 /* time-outs after which a READ is asked for with all that follows, and not a part of it */

void rxe_retry_arm(struct rxe_qp *rq)
{
	if (rq->qp->attr.timeout)
		loop_timer_set(rq->rxe->loop, &rq->timer, loop_now(rq->rxe->loop).ns + rxe_window_timeout(rq));
}

void rxe_retry_from(struct rxe_qp *rq, u32 psn)
{
	u32 i;

	rq->hole_due = rq->hole_out = rq->asked = false;
	rq->rd_out = 0;
	for (i = rq->wq_tail; i != rq->wq_head; i++) {
		const struct rxe_wqe *w = rxe_wqe_at(rq, i);

		if (w->state == WQE_POSTED)
			break;
		if (w->npkts && w->state == WQE_SENT && wire_psn_diff(psn, wire_psn_add(w->first_psn, w->npkts)) < 0)
			break;
		rq->rd_out += w->state == WQE_SENT && rxe_wqe_reads(w);
	}
	rq->wq_next = i;
	rq->pkt_next = 0;
	rq->psn = psn;
	if (i != rq->wq_head && rxe_wqe_at(rq, i)->state == WQE_SENT) {
		const struct rxe_wqe *w = rxe_wqe_at(rq, i);

		if (rxe_wqe_reads(w))
			rq->psn = wire_psn_add(w->first_psn, w->got / rxe_req_mtu(rq));
		else
			rq->pkt_next = (u32)wire_psn_diff(psn, w->first_psn);
	}
	rxe_req_kick(rq);
}

struct rxe_wqe *rxe_retry_find(const struct rxe_qp *rq, u32 psn)
{
	u32 i;

	for (i = rq->wq_tail; i != rq->wq_head; i++) {
		struct rxe_wqe *w = rxe_wqe_at(rq, i);
		s32 into = wire_psn_diff(psn, w->first_psn);

		if (w->state == WQE_POSTED)
			break;
		if (w->state == WQE_SENT && into >= 0 && into < (s32)w->npkts)
			return rxe_wqe_reads(w) ? NULL : w;
	}
	return NULL;
}

/*
 * What is lost is sent again: the packet alone, if the responder holds what came behind it or may do so, else all from there on.
 * Whether it does is seen when the packet is acknowledged, alone or with those behind it. What READs miss read.c asks for.
 */
static void resend(struct rxe_qp *rq, u32 psn)
{
	if (!rq->win.on || rq->holds == RXE_HOLDS_NOT || psn != rq->una || rq->psn != rq->max_psn || rq->rd_out ||
	    !rxe_retry_find(rq, psn)) {
		rxe_retry_from(rq, psn);
		return;
	}
	rq->hole = psn;
	rq->hole_due = true;
	rxe_req_kick(rq);
}

void rxe_retry_settle(struct rxe_qp *rq, bool nak)
{
	bool alone = rq->una == wire_psn_add(rq->hole, 1);

	if (!rq->hole_out || wire_psn_diff(rq->una, rq->hole) <= 0)
		return;
	rq->hole_out = false;
	if (!alone)
		rq->holds = RXE_HOLDS;
	else if (rq->holds == RXE_HOLDS_UNKNOWN)
		rq->holds = RXE_HOLDS_NOT;
	if (alone && !nak && rq->una != rq->max_psn)
		rxe_retry_from(rq, rq->una);
}

/* The QP fails, but for one that has another path to try (17.2.8). */
static void give_up(struct rxe_qp *rq, u32 psn)
{
	if (rq->qp->attr.path_mig_state == HCA_MIG_ARMED) {
		rxe_migrate(rq);
		rxe_retry_from(rq, psn);
		return;
	}
	hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_RETRY_EXCEEDED);
	rxe_req_fail(rq, HCA_WC_RETRY_EXC_ERR);
}

static void retry(struct rxe_qp *rq, u32 psn, bool counts)
{
	hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_COMPLETER_RETRY);
	if (counts)
		rxe_window_begin(rq);
	if (counts && !rq->retries) {
		give_up(rq, psn);
		return;
	}
	rq->retries -= counts;
	resend(rq, psn);
}

void rxe_retry(struct rxe_qp *rq, u32 psn)
{
	retry(rq, psn, rxe_window_due(rq));
}

void rxe_req_timer(struct loop_timer *t, struct now now)
{
	struct rxe_qp *rq = container_of(t, struct rxe_qp, timer);

	if (rq->rnr_wait) {
		rq->rnr_wait = false;
		rxe_req_kick(rq);
		return;
	}
	if (rq->una == rq->max_psn)
		return;
	rxe_window_lost(rq);
	rq->win.gap = false;
	if (rxe_window_early(rq)) {
		rxe_retry_arm(rq);
		if (rq->win.backoff <= GAP_TRIES && rxe_read_again(rq))
			return;
		if (rq->holds == RXE_HOLDS && !rq->hole_out)
			resend(rq, rq->una);
		else
			rxe_retry_from(rq, rq->una);
		return;
	}
	hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_LOCAL_ACK_TIMEOUT);
	rxe_retry_arm(rq);
	rq->hole_out = false;
	if (rq->holds == RXE_HOLDS_UNKNOWN)
		rq->holds = RXE_HOLDS_NOT;
	retry(rq, rq->una, true);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requester: retransmission (IBTA 9.7.5.1, 9.7.6.1.3), by go-back-n, or selectively: only the lost packet, if the
 * responder has an out-of-order buffer.
 */
#include "rxe/request.h"

#define PARTIAL_READ_TRIES 2 /* time-outs after which go-back-n follows partial READ retransmission */

void rxe_retry_arm(struct rxe_qp *rq)
{
	if (rq->qp->attr.timeout)
		loop_timer_set(rq->rxe->loop, &rq->req.timer, loop_now(rq->rxe->loop).ns + rxe_cwnd_timeout(rq));
}

void rxe_retry_from(struct rxe_qp *rq, u32 psn)
{
	u32 i;

	rq->req.retransmit_due = rq->req.retransmit_out = rq->req.read_retransmit = false;
	rq->req.rd_out = 0;
	for (i = rq->req.wq.tail; i != rq->req.wq.head; i++) {
		const struct rxe_wqe *w = rxe_wqe_at(rq, i);

		if (w->wr.state == HCA_WQE_POSTED)
			break;
		if (w->npkts && w->wr.state == HCA_WQE_SENT &&
		    wire_psn_diff(psn, wire_psn_add(w->first_psn, w->npkts)) < 0)
			break;
		rq->req.rd_out += w->wr.state == HCA_WQE_SENT && hca_wqe_reads(&w->wr);
	}
	rq->req.next = i;
	rq->req.pkt_next = 0;
	rq->req.psn = psn;
	if (i != rq->req.wq.head && rxe_wqe_at(rq, i)->wr.state == HCA_WQE_SENT) {
		const struct rxe_wqe *w = rxe_wqe_at(rq, i);

		if (hca_wqe_reads(&w->wr))
			rq->req.psn = wire_psn_add(w->first_psn, w->got / rxe_req_mtu(rq));
		else
			rq->req.pkt_next = (u32)wire_psn_diff(psn, w->first_psn);
	}
	rxe_req_kick(rq);
}

struct rxe_wqe *rxe_retransmit_find(const struct rxe_qp *rq, u32 psn)
{
	u32 i;

	for (i = rq->req.wq.tail; i != rq->req.wq.head; i++) {
		struct rxe_wqe *w = rxe_wqe_at(rq, i);
		s32 into = wire_psn_diff(psn, w->first_psn);

		if (w->wr.state == HCA_WQE_POSTED)
			break;
		if (w->wr.state == HCA_WQE_SENT && into >= 0 && into < (s32)w->npkts)
			return hca_wqe_reads(&w->wr) ? NULL : w;
	}
	return NULL;
}

/*
 * Retransmits the lost packet @psn selectively if the responder has or may have an out-of-order buffer, else by
 * go-back-n from @psn on. rxe_retransmit_acked() determines this by the PSN that the next ACK reaches. read.c
 * retransmits READs.
 */
static void retransmit(struct rxe_qp *rq, u32 psn)
{
	if (!rq->req.cwnd.on || rq->req.peer_selective == RXE_SELECTIVE_NO || psn != rq->req.una ||
	    rq->req.psn != rq->req.max_psn || rq->req.rd_out || !rxe_retransmit_find(rq, psn)) {
		rxe_retry_from(rq, psn);
		return;
	}
	rq->req.retransmit_psn = psn;
	rq->req.retransmit_due = true;
	rxe_req_kick(rq);
}

void rxe_retransmit_acked(struct rxe_qp *rq, bool nak)
{
	bool one_acked = rq->req.una == wire_psn_add(rq->req.retransmit_psn, 1);

	if (!rq->req.retransmit_out || wire_psn_diff(rq->req.una, rq->req.retransmit_psn) <= 0)
		return;
	rq->req.retransmit_out = false;
	if (!one_acked)
		rq->req.peer_selective = RXE_SELECTIVE_YES;
	else if (rq->req.peer_selective == RXE_SELECTIVE_UNKNOWN)
		rq->req.peer_selective = RXE_SELECTIVE_NO;
	if (one_acked && !nak && rq->req.una != rq->req.max_psn)
		rxe_retry_from(rq, rq->req.una);
}

/* Fails the QP, or migrates an armed one to its alternate path (17.2.8). */
static void retry_exceeded(struct rxe_qp *rq, u32 psn)
{
	if (rq->qp->attr.path_mig_state == HCA_MIG_ARMED) {
		rxe_migrate(rq);
		rxe_retry_from(rq, psn);
		return;
	}
	hca_qp_count(rq->qp, HCA_CNT_RETRY_EXCEEDED);
	rxe_req_fail(rq, HCA_WC_RETRY_EXC_ERR);
}

static void retry(struct rxe_qp *rq, u32 psn, bool counted)
{
	hca_qp_count(rq->qp, HCA_CNT_COMPLETER_RETRY);
	if (counted)
		rxe_cwnd_timer_begin(rq);
	if (counted && !rq->req.retries) {
		retry_exceeded(rq, psn);
		return;
	}
	rq->req.retries -= counted;
	retransmit(rq, psn);
}

void rxe_retry(struct rxe_qp *rq, u32 psn)
{
	retry(rq, psn, rxe_cwnd_timeout_counts(rq));
}

void rxe_req_timer(struct loop_timer *t, struct now now)
{
	struct rxe_qp *rq = container_of(t, struct rxe_qp, req.timer);

	if (rq->req.rnr_wait) {
		rq->req.rnr_wait = false;
		rxe_req_kick(rq);
		return;
	}
	if (rq->req.una == rq->req.max_psn)
		return;
	if (hca_qp_full(rq->qp) ||
	    rxe_pending(rq, rq->req.load_due)) { /* this side delays the ACK: moves are pending */
		rxe_retry_arm(rq);
		return;
	}
	if (rxe_cwnd_timeout_late(rq, now.ns - t->when)) {
		rxe_retry_arm(rq);
		return;
	}
	rxe_cwnd_lost(rq);
	rq->req.cwnd.loss_handled = false;
	if (rxe_cwnd_timeout_early(rq)) {
		rxe_retry_arm(rq);
		if (rq->req.cwnd.backoff <= PARTIAL_READ_TRIES && rxe_read_retransmit(rq))
			return;
		if (rq->req.peer_selective == RXE_SELECTIVE_YES && !rq->req.retransmit_out)
			retransmit(rq, rq->req.una);
		else
			rxe_retry_from(rq, rq->req.una);
		return;
	}
	hca_qp_count(rq->qp, HCA_CNT_LOCAL_ACK_TIMEOUT);
	rxe_retry_arm(rq);
	rq->req.retransmit_out = false;
	if (rq->req.peer_selective == RXE_SELECTIVE_UNKNOWN)
		rq->req.peer_selective = RXE_SELECTIVE_NO;
	retry(rq, rq->req.una, true);
}

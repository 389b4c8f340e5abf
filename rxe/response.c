// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What comes back to a requester: acknowledgements, NAKs, and the data of READs and atomics (9.7.5.1). */
#include "rxe/request.h"

#define RNR_FOREVER 7
#define PROBE_EVERY 16 /* losses, after which a peer may be one that holds what comes behind a gap */

void rxe_req_progress(struct rxe_qp *rq, u32 una)
{
	if (wire_psn_diff(una, rq->una) <= 0)
		return;
	rxe_window_acked(rq, una, (u32)wire_psn_diff(una, rq->una));
	rq->una = una;
	rq->retries = rq->qp->attr.retry_cnt;
	rq->rnr_retries = rq->qp->attr.rnr_retry;
	if (wire_psn_diff(rq->una, rq->psn) > 0)
		rxe_retry_from(rq, rq->una); /* an ACK for what a retry was about to repeat */
	if (rq->rnr_wait)
		return;
	if (rq->una == rq->max_psn)
		loop_timer_cancel(&rq->timer);
	else
		rxe_retry_arm(rq);
}

/* An acknowledgement of what is behind its response is an implied NAK (9.7.5.1); the next ones of the flight say it again. */
static void response_lost(struct rxe_qp *rq, const struct rxe_wqe *w)
{
	rxe_req_progress(rq, rxe_read_expected(rq, w));
	if (rq->asked || rq->win.gap)
		return;
	rq->win.gap = true;
	rxe_window_lost(rq);
	rxe_retry(rq, rq->una);
}

bool rxe_req_acked(struct rxe_qp *rq, u32 psn)
{
	u32 i;

	for (i = rq->wq_tail; i != rq->wq_head; i++) {
		struct rxe_wqe *w = rxe_wqe_at(rq, i);

		if (w->state == WQE_POSTED ||
		    wire_psn_diff(wire_psn_add(w->first_psn, w->npkts), wire_psn_add(psn, 1)) > 0)
			break;
		if (w->state == WQE_DONE)
			continue;
		if (rxe_wqe_reads(w)) {
			response_lost(rq, w);
			return false;
		}
		w->state = WQE_DONE;
	}
	rxe_req_progress(rq, wire_psn_add(psn, 1));
	rxe_dirty(rq);
	rxe_req_kick(rq);
	return true;
}

static const u8 nak_status[] = {
	[WIRE_NAK_INVALID_REQUEST] = HCA_WC_REM_INV_REQ_ERR,
	[WIRE_NAK_REMOTE_ACCESS] = HCA_WC_REM_ACCESS_ERR,
	[WIRE_NAK_REMOTE_OP] = HCA_WC_REM_OP_ERR,
	[WIRE_NAK_INVALID_RD_REQUEST] = HCA_WC_REM_INV_RD_REQ_ERR,
};

static void on_rnr(struct rxe_qp *rq, u32 psn, u8 code)
{
	hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_RCVD_RNR_ERR);
	if (!rq->rnr_retries) {
		hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_RNR_RETRY_EXCEEDED);
		rxe_req_fail(rq, HCA_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (rq->rnr_retries != RNR_FOREVER)
		rq->rnr_retries--;
	rxe_retry_from(rq, psn);
	rq->rnr_wait = true;
	loop_timer_set(rq->rxe->loop, &rq->timer, loop_now(rq->rxe->loop).ns + wire_rnr_timer_ns(code));
}

static void on_nak(struct rxe_qp *rq, u32 psn, u8 syndrome)
{
	u8 code = wire_aeth_value(syndrome), before = rq->rnr_retries;

	if (psn != rq->una && !rxe_req_acked(rq, wire_psn_add(psn, WIRE_PSN_MASK)))
		return;
	rxe_retry_settle(rq, true);
	if (wire_aeth_type(syndrome) == WIRE_AETH_RNR_NAK) {
		rq->rnr_retries = psn == rq->una ? before : rq->rnr_retries;
		on_rnr(rq, psn, code);
		return;
	}
	if (code == WIRE_NAK_PSN_SEQ) {
		hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_RCVD_SEQ_ERR);
		if (rq->holds == RXE_HOLDS_NOT && !(++rq->gaps % PROBE_EVERY))
			rq->holds = RXE_HOLDS_UNKNOWN; /* two losses in a row look like that */
		rxe_window_lost(rq);
		rxe_retry(rq, psn);
		return;
	}
	if (code < ARRAY_SIZE(nak_status))
		rxe_req_fail(rq, nak_status[code]);
	else
		rxe_req_fail(rq, HCA_WC_BAD_RESP_ERR);
}

static void on_atomic(struct rxe_qp *rq, struct rxe_wqe *w, struct wire_packet *p)
{
	struct wire_atomic_ack_eth *h = rxe_eth(p, WIRE_ETH_ATOMIC_ACK);
	struct wire_buf *buf = wire_buf_alloc(8);
	u64 orig = be64_to_cpu(h->orig);
	int err;

	if (!buf)
		return; /* as if lost */
	memcpy(buf->data, &orig, 8);
	err = rxe_sges_span(rq->qp, w->sge, w->num_sge, 0, 8, HCA_ACCESS_LOCAL_WRITE, buf->data, true, rq);
	rxe_keep(rq->rxe, buf);
	wire_buf_put(buf);
	if (err)
		rxe_req_fail(rq, HCA_WC_LOC_PROT_ERR);
	else
		rxe_read_done(rq, w);
}

static void ghost(const struct rxe_qp *rq)
{
	hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_GHOST);
}

void rxe_req_response(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	u32 psn = wire_bth_psn((struct wire_bth *)(p->hdr + p->bth_off)), expected;
	struct rxe_wqe *w;
	u8 syndrome = WIRE_AETH_ACK;

	if (rq->qp->state < HCA_QPS_RTS || rq->qp->state > HCA_QPS_SQD || !rq->wqes ||
	    wire_psn_diff(psn, rq->una) < 0 || wire_psn_diff(psn, rq->max_psn) >= 0) {
		ghost(rq); /* or a duplicate (9.7.5.1.1) */
		return;
	}
	if (op->flags & WIRE_OPF_ACK)
		syndrome = wire_aeth_syndrome(rxe_eth(p, WIRE_ETH_AETH));
	if (wire_aeth_type(syndrome) != WIRE_AETH_ACK) {
		on_nak(rq, psn, syndrome);
		return;
	}
	if (op->op == WIRE_RC_ACK) {
		if (rxe_req_acked(rq, psn))
			rxe_retry_settle(rq, false);
		return;
	}
	/* A READ or atomic response also acknowledges every earlier request. */
	w = rxe_read_oldest(rq);
	if (!w) {
		ghost(rq);
		return;
	}
	expected = rxe_read_expected(rq, w);
	if (psn != expected) {
		rxe_read_ahead(rq, p, op, psn);
		return;
	}
	if (psn != rq->una && !rxe_req_acked(rq, wire_psn_add(psn, WIRE_PSN_MASK)))
		return;
	if (op->flags & WIRE_OPF_ATOMIC && w->opcode != HCA_WR_RDMA_READ)
		on_atomic(rq, w, p);
	else if (op->flags & WIRE_OPF_READ && w->opcode == HCA_WR_RDMA_READ)
		rxe_read_take(rq, w, p);
	else
		rxe_req_fail(rq, HCA_WC_BAD_RESP_ERR);
}

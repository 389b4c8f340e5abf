// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requester: ACKs, NAKs and the responses to READs and atomics (IBTA 9.7.5.1). */
#include "rxe/request.h"

#define RNR_FOREVER 7
#define PROBE_EVERY 16 /* sequence error NAKs after which selective retransmission is tried again */

void rxe_req_progress(struct rxe_qp *rq, u32 una)
{
	if (wire_psn_diff(una, rq->req.una) <= 0)
		return;
	rxe_cwnd_acked(rq, una, (u32)wire_psn_diff(una, rq->req.una));
	rq->req.una = una;
	rq->req.retries = rq->qp->attr.retry_cnt;
	rq->req.rnr_retries = rq->qp->attr.rnr_retry;
	if (wire_psn_diff(rq->req.una, rq->req.psn) > 0)
		rxe_retry_from(rq, rq->req.una); /* an ACK for packets that go-back-n was about to retransmit */
	if (rq->req.rnr_wait)
		return;
	if (rq->req.una == rq->req.max_psn)
		loop_timer_cancel(&rq->req.timer);
	else
		rxe_retry_arm(rq);
}

/*
 * An ACK for a request after @w is an implied NAK of its response (9.7.5.1); only the first one of a flight is handled.
 */
static void response_lost(struct rxe_qp *rq, const struct rxe_wqe *w, u32 psn)
{
	bool part;

	rxe_req_progress(rq, rxe_read_expected(rq, w));
	part = rq->req.read_retransmit;
	/*
	 * The loss of a retransmitted part of a READ is found by the time-out. Without one, go-back-n follows it: later
	 * requests are not acknowledged again otherwise.
	 */
	if (part && rq->qp->attr.timeout)
		return;
	if (rxe_cwnd_loss_known(rq, psn) && !part)
		return;
	rxe_cwnd_lost(rq);
	rxe_retry(rq, rq->req.una);
}

bool rxe_req_acked(struct rxe_qp *rq, u32 psn)
{
	u32 i;

	for (i = rq->req.wq.tail; i != rq->req.wq.head; i++) {
		struct rxe_wqe *w = rxe_wqe_at(rq, i);

		if (w->wr.state == HCA_WQE_POSTED)
			break;
		if (w->wr.state == HCA_WQE_DONE)
			continue;
		if (hca_wqe_reads(&w->wr) && wire_psn_diff(psn, rxe_read_expected(rq, w)) >= 0) {
			response_lost(rq, w, psn);
			return false;
		}
		if (wire_psn_diff(wire_psn_add(w->first_psn, w->npkts), wire_psn_add(psn, 1)) > 0)
			break;
		w->wr.state = HCA_WQE_DONE;
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

static void rnr_nak_receive(struct rxe_qp *rq, u32 psn, u8 code)
{
	hca_qp_count(rq->qp, HCA_CNT_RCVD_RNR_ERR);
	if (!rq->req.rnr_retries) {
		hca_qp_count(rq->qp, HCA_CNT_RNR_RETRY_EXCEEDED);
		rxe_req_fail(rq, HCA_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (rq->req.rnr_retries != RNR_FOREVER)
		rq->req.rnr_retries--;
	rxe_retry_from(rq, psn);
	rq->req.rnr_wait = true;
	loop_timer_set(rq->rxe->loop, &rq->req.timer, loop_now(rq->rxe->loop).ns + wire_rnr_timer_ns(code));
}

static void nak_receive(struct rxe_qp *rq, u32 psn, u8 syndrome)
{
	u8 code = wire_aeth_value(syndrome);
	bool progress = psn != rq->req.una;

	if (progress && !rxe_req_acked(rq, wire_psn_add(psn, WIRE_PSN_MASK)))
		return;
	rxe_retransmit_acked(rq, true);
	if (wire_aeth_type(syndrome) == WIRE_AETH_RNR_NAK) {
		if (progress || !rq->req.rnr_wait) /* else it is of an earlier flight, whose retry was counted */
			rnr_nak_receive(rq, psn, code);
		return;
	}
	if (code == WIRE_NAK_PSN_SEQ) {
		hca_qp_count(rq->qp, HCA_CNT_RCVD_SEQ_ERR);
		if (rq->req.peer_selective == RXE_SELECTIVE_NO && !(++rq->req.seq_naks % PROBE_EVERY))
			rq->req.peer_selective =
				RXE_SELECTIVE_UNKNOWN; /* two adjacent losses look like a go-back-n peer */
		rxe_cwnd_lost(rq);
		rxe_retry(rq, psn);
		return;
	}
	if (code < ARRAY_SIZE(nak_status))
		rxe_req_fail(rq, nak_status[code]);
	else
		rxe_req_fail(rq, HCA_WC_BAD_RESP_ERR);
}

/*
 * The ACK before the oldest packet again, after a time-out: the responder has received the retransmission, and its
 * memory is late (resp_wait() of responder.c). No retry is counted; the time-out begins anew, and lasts as long as an
 * RNR NAK would have it wait.
 */
static bool late_ack_receive(struct rxe_qp *rq, u32 psn, const struct wire_opcode *op, const struct wire_packet *p)
{
	if (psn != wire_psn_add(rq->req.una, WIRE_PSN_MASK) || rq->req.una == rq->req.max_psn ||
	    (op->op & WIRE_OP_MASK) != WIRE_RC_ACK ||
	    wire_aeth_type(wire_aeth_syndrome(wire_packet_aeth(p))) != WIRE_AETH_ACK || !rq->qp->attr.timeout ||
	    rq->req.rnr_wait || (rq->req.retries == rq->qp->attr.retry_cnt && !rq->req.cwnd.backoff))
		return false;
	rq->req.retries = rq->qp->attr.retry_cnt;
	rxe_cwnd_timer_begin(rq);
	loop_timer_set(rq->rxe->loop, &rq->req.timer,
		       loop_now(rq->rxe->loop).ns + max(rxe_cwnd_timeout(rq), wire_rnr_timer_ns(RXE_LATE_RNR)));
	return true;
}

static void atomic_response_receive(struct rxe_qp *rq, struct rxe_wqe *w, struct wire_packet *p)
{
	struct wire_atomic_ack_eth *h = wire_packet_atomic_ack_eth(p);
	struct wire_buf *buf = wire_buf_alloc(8);
	u64 orig = be64_to_cpu(h->orig);
	int err;

	if (!buf)
		return; /* handled as a lost packet */
	memcpy(buf->data, &orig, 8);
	err = rxe_response_write(rq, w, 0, rxe_bytes_in(buf));
	wire_buf_put(buf);
	if (err) {
		rxe_req_fail(rq, HCA_WC_LOC_PROT_ERR);
		return;
	}
	rxe_read_done(rq, w);
	rxe_read_advance(rq);
}

static void ghost_count(const struct rxe_qp *rq)
{
	hca_qp_count(rq->qp, HCA_CNT_GHOST);
}

void rxe_req_response(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	u32 psn = wire_bth_psn(wire_packet_bth(p)), expected;
	struct rxe_wqe *w;
	u8 syndrome = WIRE_AETH_ACK;
	bool sending = rq->qp->state >= HCA_QPS_RTS && rq->qp->state <= HCA_QPS_SQD && rq->req.wq.wqes;

	if (rq->fail_due || (p->len && hca_qp_full(rq->qp)))
		return; /* handled as a lost packet */
	if (!sending || wire_psn_diff(psn, rq->req.una) < 0 || wire_psn_diff(psn, rq->req.max_psn) >= 0) {
		if (!sending || !late_ack_receive(rq, psn, op, p))
			ghost_count(rq); /* or a duplicate (9.7.5.1) */
		return;
	}
	if (op->flags & WIRE_OPF_ACK)
		syndrome = wire_aeth_syndrome(wire_packet_aeth(p));
	if (wire_aeth_type(syndrome) == WIRE_AETH_RESERVED) {
		hca_qp_count(rq->qp, HCA_CNT_BAD_PACKET);
		return;
	}
	if (wire_aeth_type(syndrome) != WIRE_AETH_ACK) {
		nak_receive(rq, psn, syndrome);
		return;
	}
	if ((op->op & WIRE_OP_MASK) == WIRE_RC_ACK) {
		if (rxe_req_acked(rq, psn))
			rxe_retransmit_acked(rq, false);
		return;
	}
	/* A READ or atomic response also acknowledges every earlier request. */
	w = rxe_read_oldest(rq);
	if (!w) {
		ghost_count(rq);
		return;
	}
	expected = rxe_read_expected(rq, w);
	if (psn != expected) {
		rxe_read_out_of_order(rq, p, op, psn);
		return;
	}
	if (psn != rq->req.una && !rxe_req_acked(rq, wire_psn_add(psn, WIRE_PSN_MASK)))
		return;
	if (op->flags & WIRE_OPF_ATOMIC && w->wr.opcode != HCA_WR_RDMA_READ)
		atomic_response_receive(rq, w, p);
	else if (op->flags & WIRE_OPF_READ && w->wr.opcode == HCA_WR_RDMA_READ)
		rxe_read_response(rq, w, p, op);
	else
		rxe_req_fail(rq, HCA_WC_BAD_RESP_ERR);
}

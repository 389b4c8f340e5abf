// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The responder of connected queue pairs (9.7.4, 9.8.3): sequence, rights, placement, acknowledges. Writes go to the batch;
 * the commit that runs it then gives completions and sends the ACK or NAK, behind READ responses that are owed before.
 */
#include <errno.h>
#include <stdlib.h>

#include "rxe/respond.h"

/* Receive requests */

/* Room for the completion of one more, which waits for the commit. */
static bool reserve_completion(struct rxe_qp *rq)
{
	u32 cap = rq->comps_cap ? rq->comps_cap * 2 : 64;
	struct hca_cqe *comps;

	if (likely(rq->ncomps < rq->comps_cap))
		return true;
	comps = realloc(rq->comps, cap * sizeof(*comps));
	if (!comps)
		return false;
	rq->comps = comps;
	rq->comps_cap = cap;
	return true;
}

/* Without memory it is as if none were posted, for which each service has its answer. */
int rxe_recv_get(struct rxe_qp *rq)
{
	int got;

	if (rq->recv_held)
		return 1;
	if (!reserve_completion(rq))
		return 0;
	got = hca_next_recv(rq->qp, &rq->recv);
	if (got > 0) {
		rq->recv_held = true;
		rq->recv_off = 0;
	} else if (got < 0) {
		struct hca_cqe cqe = { .token = rq->recv.token, .status = HCA_WC_LOC_QP_OP_ERR, .opcode = HCA_WC_RECV };

		hca_recv_done(rq->qp);
		hca_complete_recv(rq->qp, &cqe);
	}
	return got;
}

/* Queues the completion of the held request for the commit. */
void rxe_recv_complete(struct rxe_qp *rq, struct hca_cqe *cqe)
{
	cqe->token = rq->recv.token;
	rq->comps[rq->ncomps++] = *cqe;
	rq->recv_held = false;
	rxe_dirty(rq);
}

/* Sending ACKs and NAKs */

static void send_ack(struct rxe_qp *rq, u8 syndrome, u32 psn)
{
	struct hca_qp *qp = rq->qp;
	struct wire_packet *p = rxe_frame(qp, &qp->attr.av, rxe_pkey(qp, qp->attr.pkey_index), WIRE_RC_ACK,
					  qp->attr.dest_qpn, psn, 0, false, false);

	if (!p)
		return;
	wire_aeth_fill(rxe_eth(p, WIRE_ETH_AETH), syndrome, rq->msn);
	rxe_send(rq->rxe, qp->attr.port, p);
}

/* The QP fails as responder: NAK, event, flush (9.9.3, table 59). */
void rxe_resp_fail(struct rxe_qp *rq, u8 syndrome, int event, u8 recv_status)
{
	if (rq->qp->type == HCA_QPT_RC && !rq->nak)
		rq->nak = syndrome;
	if (rq->recv_held && recv_status) {
		struct hca_cqe cqe = { .status = recv_status, .opcode = HCA_WC_RECV };

		rxe_recv_complete(rq, &cqe);
	}
	rxe_commit(rq->rxe);
	if (rq->nak) { /* it was queued behind responses that will not come now */
		send_ack(rq, rq->nak, rq->epsn);
		rq->nak = 0;
	}
	rxe_qp_error(rq, event);
}

void rxe_resp_fail_access(struct rxe_qp *rq)
{
	rxe_resp_count(rq, HCA_CNT_REMOTE_ACCESS_ERR);
	rxe_resp_fail(rq, RXE_NAK(WIRE_NAK_REMOTE_ACCESS), HCA_EVENT_QP_ACCESS_ERR, HCA_WC_LOC_ACCESS_ERR);
}

void rxe_resp_fail_invalid(struct rxe_qp *rq, u8 recv_status)
{
	rxe_resp_count(rq, HCA_CNT_REMOTE_INV_REQ_ERR);
	rxe_resp_fail(rq, RXE_NAK(WIRE_NAK_INVALID_REQUEST), HCA_EVENT_QP_REQ_ERR, recv_status);
}

/* UC drops the rest of a message that went wrong, and goes on with the next one (9.8.3). */
static void uc_break(struct rxe_qp *rq)
{
	rq->last_op = 0;
	rq->uc_drop = true;
}

/* Placement */

static bool place_recv(struct rxe_qp *rq, struct wire_packet *p)
{
	int err = rxe_sges_span(rq->qp, rq->recv.sge, rq->recv.num_sge, rq->recv_off, p->len, HCA_ACCESS_LOCAL_WRITE,
				(void *)(uintptr_t)p->data, true, rq);

	if (!err) {
		rxe_keep_payload(rq->rxe, p);
		rq->recv_off += p->len;
		return true;
	}
	if (err == HCA_KEY_BOUNDS) { /* longer than what was posted */
		if (rq->qp->type == HCA_QPT_RC) {
			rxe_resp_fail_invalid(rq, HCA_WC_LOC_LEN_ERR);
		} else {
			struct hca_cqe cqe = { .status = HCA_WC_LOC_LEN_ERR, .opcode = HCA_WC_RECV };

			rxe_recv_complete(rq, &cqe);
			uc_break(rq);
		}
		return false;
	}
	rxe_resp_fail(rq, RXE_NAK(WIRE_NAK_REMOTE_OP), HCA_EVENT_QP_FATAL, HCA_WC_LOC_PROT_ERR);
	return false;
}

/* Where the packet has come straight to its place nothing is to be moved. */
static bool in_place(struct rxe_qp *rq, const struct wire_packet *p)
{
	return p->flags & WIRE_PKT_BORROWED &&
	       p->data == rxe_remote_direct(rq, rq->wr_rkey, rq->wr_va, p->len, HCA_ACCESS_REMOTE_WRITE);
}

u32 rxe_resp_place(struct rxe_qp *rq, u32 psn, u32 n, u32 len, u8 **at)
{
	if (rq->last_op != 2 || psn != rq->epsn || rq->wr_left <= len)
		return 0;
	n = min(n, (rq->wr_left - 1) / len);
	*at = rxe_remote_direct(rq, rq->wr_rkey, rq->wr_va, n * len, HCA_ACCESS_REMOTE_WRITE);
	return *at ? n : 0;
}

static bool place_write(struct rxe_qp *rq, struct wire_packet *p)
{
	if (!in_place(rq, p) && rxe_remote_move(rq, rq->wr_rkey, rq->wr_va, p->len, HCA_ACCESS_REMOTE_WRITE,
						(void *)(uintptr_t)p->data, true)) {
		if (rq->qp->type == HCA_QPT_RC)
			rxe_resp_fail_access(rq);
		else
			uc_break(rq);
		return false;
	}
	rxe_keep_payload(rq->rxe, p);
	rq->wr_va += p->len;
	rq->wr_left -= p->len;
	return true;
}

/* Takes a receive request, or answers that there is none. */
static bool need_recv(struct rxe_qp *rq)
{
	int got = rxe_recv_get(rq);

	if (got > 0)
		return true;
	if (got < 0) {
		rxe_resp_fail(rq, RXE_NAK(WIRE_NAK_REMOTE_OP), HCA_EVENT_QP_FATAL, 0);
	} else if (rq->qp->type == HCA_QPT_RC) {
		rxe_resp_count(rq, HCA_CNT_SEND_RNR_ERR);
		rq->nak = WIRE_AETH_RNR_NAK | rq->qp->attr.min_rnr_timer;
		rq->nak_sent = true;
		rxe_dirty(rq);
	} else {
		uc_break(rq);
	}
	return false;
}

static bool write_start(struct rxe_qp *rq, struct wire_packet *p)
{
	const struct wire_reth *h = rxe_eth(p, WIRE_ETH_RETH);

	rq->wr_va = be64_to_cpu(h->va);
	rq->wr_rkey = be32_to_cpu(h->rkey);
	rq->wr_len = rq->wr_left = be32_to_cpu(h->dmalen);
	if (rq->wr_len > 1u << 31) {
		if (rq->qp->type == HCA_QPT_RC)
			rxe_resp_fail_invalid(rq, 0);
		else
			uc_break(rq);
		return false;
	}
	if (!(rq->qp->attr.access & HCA_ACCESS_REMOTE_WRITE) ||
	    rxe_remote_move(rq, rq->wr_rkey, rq->wr_va, rq->wr_len, HCA_ACCESS_REMOTE_WRITE, NULL, true)) {
		if (rq->qp->type == HCA_QPT_RC)
			rxe_resp_fail_access(rq);
		else
			uc_break(rq);
		return false;
	}
	return true;
}

static void deliver(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	const struct wire_lrh *lrh = (struct wire_lrh *)p->hdr;
	struct hca_cqe cqe = {
		.status = HCA_WC_SUCCESS,
		.opcode = op->flags & WIRE_OPF_WRITE ? HCA_WC_RECV_RDMA_WITH_IMM : HCA_WC_RECV,
		.byte_len = op->flags & WIRE_OPF_WRITE ? rq->wr_len : rq->recv_off,
		.src_qp = rq->qp->attr.dest_qpn,
		.slid = wire_lrh_slid(lrh),
		.sl = wire_lrh_sl(lrh),
		.solicited = wire_bth_se((struct wire_bth *)(p->hdr + p->bth_off)),
	};

	if (op->flags & WIRE_OPF_IMM) {
		cqe.flags |= HCA_WC_WITH_IMM;
		cqe.imm = be32_to_cpu(((struct wire_immdt *)rxe_eth(p, WIRE_ETH_IMMDT))->imm);
	}
	if (op->flags & WIRE_OPF_INV) {
		cqe.flags |= HCA_WC_WITH_INVALIDATE;
		cqe.imm = be32_to_cpu(((struct wire_ieth *)rxe_eth(p, WIRE_ETH_IETH))->rkey);
	}
	rxe_resp_count(rq, HCA_CNT_RDMA_RECVS);
	rxe_recv_complete(rq, &cqe);
}

/* Sequence */

/* What the QP's state of a message allows to come next (9.7.4.1.2 and 9.8.3.1). */
static bool in_order(const struct rxe_qp *rq, const struct wire_opcode *op)
{
	u16 kind = op->flags & (WIRE_OPF_SEND | WIRE_OPF_WRITE);

	if (op->flags & WIRE_OPF_START)
		return !rq->last_op;
	return rq->last_op && rq->last_op == (kind & WIRE_OPF_SEND ? 1 : 2);
}

static bool length_valid(const struct rxe_qp *rq, const struct wire_packet *p, const struct wire_opcode *op)
{
	u32 mtu = rxe_resp_mtu(rq);

	if (p->len > mtu)
		return false;
	if (!(op->flags & WIRE_OPF_PAYLOAD))
		return !p->len;
	if (!(op->flags & WIRE_OPF_END))
		return p->len == mtu;
	return op->flags & WIRE_OPF_START || p->len;
}

/* A SEND or WRITE packet that is next in sequence. True: it was taken. */
static bool take(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	if (op->flags & WIRE_OPF_WRITE && op->flags & WIRE_OPF_START && !write_start(rq, p))
		return false;
	if (op->flags & WIRE_OPF_WRITE &&
	    (p->len > rq->wr_left || (op->flags & WIRE_OPF_END && p->len != rq->wr_left))) {
		if (rq->qp->type == HCA_QPT_RC)
			rxe_resp_fail_invalid(rq, 0);
		else
			uc_break(rq);
		return false;
	}
	if (op->flags & WIRE_OPF_RWQE && !need_recv(rq))
		return false;
	if (p->len && !(op->flags & WIRE_OPF_SEND ? place_recv(rq, p) : place_write(rq, p)))
		return false;
	if (op->flags & WIRE_OPF_INV &&
	    hca_key_invalidate(rq->qp, be32_to_cpu(((struct wire_ieth *)rxe_eth(p, WIRE_ETH_IETH))->rkey), true)) {
		rxe_resp_fail_access(rq);
		return false;
	}
	rq->last_op = op->flags & WIRE_OPF_END ? 0 : op->flags & WIRE_OPF_SEND ? 1 : 2;
	if (op->flags & WIRE_OPF_COMP)
		deliver(rq, p, op);
	return true;
}

static void comm_established(struct rxe_qp *rq)
{
	if (rq->qp->state == HCA_QPS_RTR && !rq->comm_est) {
		rq->comm_est = true;
		hca_qp_event(rq->qp, HCA_EVENT_COMM_EST);
	}
}

static void uc_request(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	bool gap = psn != rq->epsn;

	rq->epsn = wire_psn_add(psn, 1);
	if (gap || !in_order(rq, op)) {
		/* The message under way is lost; its receive request serves the next one. */
		rq->last_op = 0;
		rq->recv_off = 0;
		rq->uc_drop = !(op->flags & WIRE_OPF_START);
	}
	if (op->flags & WIRE_OPF_START)
		rq->uc_drop = false;
	if (rq->uc_drop || !length_valid(rq, p, op))
		return;
	comm_established(rq);
	take(rq, p, op);
	rxe_dirty(rq);
}

static void rc_duplicate(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	rxe_resp_count(rq, HCA_CNT_DUPLICATE_REQUEST);
	if (op->flags & (WIRE_OPF_READ | WIRE_OPF_ATOMIC)) {
		rxe_resource_again(rq, p, op, psn);
	} else {
		rq->ack_due = true;
		rxe_dirty(rq);
	}
}

static bool is_ethernet(const struct rxe_qp *rq)
{
	return wire_port_is_ethernet(hca_port(rq->qp->hca, rq->qp->attr.port));
}

/* A gap: the NAK asks for what is missing, once a round, and what has come is held. */
static void rc_ahead(struct rxe_qp *rq, const struct wire_packet *p, u32 psn)
{
	/* what repeats is the next round: its first packet is lost again, or the NAK was */
	if (!rq->nak_sent || (is_ethernet(rq) && wire_psn_diff(psn, rq->ooo_psn) <= 0)) {
		rxe_resp_count(rq, HCA_CNT_OUT_OF_SEQUENCE);
		rq->nak = RXE_NAK(WIRE_NAK_PSN_SEQ);
		rq->nak_sent = true;
		rxe_dirty(rq);
	}
	rq->ooo_psn = psn;
	if (is_ethernet(rq))
		rxe_hold_ahead(rq, p, psn);
}

/* The request whose turn it is. */
static void rc_next(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	const struct wire_bth *bth = (const struct wire_bth *)(p->hdr + p->bth_off);

	/*
	 * The gap is closed. A kernel's rxe takes no second NAK before it has seen an ACK and waits for its time-out instead, so that
	 * is said at once: any packet may be acknowledged (9.7.5.1.1).
	 */
	if (rq->nak_sent && is_ethernet(rq)) {
		rq->ack_due = true;
		rq->nak = 0; /* if it is not sent: they were exchanged */
	}
	rq->nak_sent = false;
	comm_established(rq);
	if (!in_order(rq, op) || !length_valid(rq, p, op)) {
		rxe_resp_fail_invalid(rq, HCA_WC_LOC_QP_OP_ERR);
		return;
	}
	if (op->flags & WIRE_OPF_READ) {
		rxe_resource_read(rq, p, psn);
		return;
	}
	if (op->flags & WIRE_OPF_ATOMIC) {
		rxe_resource_atomic(rq, p, op, psn);
		return;
	}
	if (!take(rq, p, op))
		return;
	rq->epsn = wire_psn_add(psn, 1);
	if (op->flags & WIRE_OPF_END)
		rq->msn = (rq->msn + 1) & 0xffffff;
	if (wire_bth_ackreq(bth))
		rq->ack_due = true;
	rxe_dirty(rq);
}

/* What was held goes on, as far as there is no other gap, which is asked for, too. */
static void rc_held(struct rxe_qp *rq)
{
	struct wire_packet *p;
	u32 psn = rq->epsn;

	while ((p = rxe_hold_take(rq))) {
		rc_next(rq, p, wire_opcode(p->hdr[p->bth_off]), psn);
		wire_packet_free(p);
		if (rq->epsn == psn) { /* refused: it comes again, with all that follows */
			rxe_hold_drop(rq);
			return;
		}
		psn = rq->epsn;
	}
	if (!rq->nheld || rq->nak)
		return;
	rq->nak = RXE_NAK(WIRE_NAK_PSN_SEQ);
	rq->nak_sent = true;
	rxe_dirty(rq);
}

void rxe_resp_request(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	u32 psn = wire_bth_psn((const struct wire_bth *)(p->hdr + p->bth_off));
	s32 diff = wire_psn_diff(psn, rq->epsn);

	if (rq->qp->type == HCA_QPT_UC) {
		uc_request(rq, p, op, psn);
	} else if (diff < 0) {
		rc_duplicate(rq, p, op, psn);
	} else if (diff > 0) {
		rc_ahead(rq, p, psn);
	} else {
		rc_next(rq, p, op, psn);
		if (unlikely(rq->nheld))
			rc_held(rq);
	}
}

void rxe_resp_commit(struct rxe_qp *rq)
{
	u32 i;

	if (rq->dma_failed) {
		rq->dma_failed = false;
		rq->ncomps = 0;
		rq->ack_due = false;
		if (rq->qp->state >= HCA_QPS_RTR && rq->qp->state <= HCA_QPS_SQE) {
			if (rq->qp->type == HCA_QPT_RC)
				send_ack(rq, RXE_NAK(WIRE_NAK_REMOTE_OP), rq->epsn);
			rxe_qp_error(rq, HCA_EVENT_QP_FATAL);
		}
		return;
	}
	for (i = 0; i < rq->ncomps; i++) {
		hca_recv_done(rq->qp);
		hca_complete_recv(rq->qp, &rq->comps[i]);
	}
	rq->ncomps = 0;
	if (rxe_resource_owed(rq))
		return;
	if (rq->ack_due && (!rq->nak || rq->nheld)) /* before a NAK, too, that is for the next gap */
		send_ack(rq, RXE_ACK_NO_CREDITS, wire_psn_add(rq->epsn, WIRE_PSN_MASK));
	if (rq->nak)
		send_ack(rq, rq->nak, rq->epsn);
	rq->nak = 0;
	rq->ack_due = false;
}

void rxe_resp_reset(struct rxe_qp *rq)
{
	rxe_resource_reset(rq);
	rq->ncomps = 0;
	rq->recv_held = rq->nak_sent = rq->ack_due = rq->comm_est = rq->uc_drop = rq->dma_failed = false;
	rq->last_op = rq->nak = 0;
	rq->msn = 0;
	rxe_hold_drop(rq);
}

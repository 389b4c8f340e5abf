// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Responder of RC and UC queue pairs (IBTA 9.7.4, 9.8): checks of sequence, rights and length, execution, ACK and NAK.
 * Payload is added to the batch of writes; the commit that runs the batch then completes receives and sends the ACK or
 * NAK, after the pending responses to READs and atomics before it.
 */
#include <stdlib.h>

#include "rxe/respond.h"

/* Receive requests */

/*
 * Reserves room for one more completion. A receive queue of a QP's own has fewer requests than RXE_COMPS, but a program
 * may post to a shared one without end while its memory is late.
 */
static bool reserve_completion(struct rxe_qp *rq)
{
	u32 cap = rq->resp.comps_cap ? rq->resp.comps_cap * 2 : 64;
	struct hca_cqe *comps;

	if (likely(rq->resp.ncomps < rq->resp.comps_cap))
		return true;
	if (cap > RXE_COMPS)
		return false;
	comps = realloc(rq->resp.comps, cap * sizeof(*comps));
	if (!comps)
		return false;
	rq->resp.comps = comps;
	rq->resp.comps_cap = cap;
	return true;
}

/* Without room for its completion, it is handled as if no receive were posted. */
int rxe_recv_get(struct rxe_qp *rq)
{
	int got;

	if (rq->resp.recv_pulled)
		return 1;
	if (!reserve_completion(rq))
		return 0;
	got = hca_next_recv(rq->qp, &rq->resp.recv);
	if (got > 0) {
		rq->resp.recv_pulled = true;
		rq->resp.recv_off = 0;
	} else if (got < 0) {
		struct hca_cqe cqe = { .status = HCA_WC_LOC_QP_OP_ERR, .opcode = HCA_WC_RECV };

		rxe_recv_complete(rq, &cqe);
	}
	return got;
}

/* Queues the completion of the pulled request for the commit. */
void rxe_recv_complete(struct rxe_qp *rq, struct hca_cqe *cqe)
{
	cqe->token = rq->resp.recv.token;
	cqe->srqn = rq->resp.srqn;
	rq->resp.comps[rq->resp.ncomps++] = *cqe;
	rq->resp.recv_pulled = false;
	rxe_dirty(rq);
}

/* Sending ACKs and NAKs */

static void send_ack(struct rxe_qp *rq, u8 syndrome, u32 psn)
{
	struct hca_qp *qp = rq->qp;
	struct wire_packet *p = rxe_frame(qp, WIRE_RC_ACK, psn, 0);

	if (!p)
		return;
	wire_aeth_fill(wire_packet_aeth(p), syndrome, rq->resp.msn);
	rxe_send(rq->rxe, qp->attr.port, p);
}

/*
 * Moves of client memory are pending, and the peer has to wait without counting a retry: sends an RNR NAK at once.
 *
 * Without RNR retries, of which the peer probably has as many, the NAK would end it. The ACK of the request before is
 * sent instead: a duplicate, which requesters drop (9.7.5.1); that of rxe takes it for an answer to its
 * retransmission.
 */
static void resp_wait(struct rxe_qp *rq, u32 psn)
{
	const struct hca_qp *qp = rq->qp;
	u8 timer = qp->attr.min_rnr_timer;

	if (qp->type == HCA_QPT_RC && qp->state >= HCA_QPS_RTS && !qp->attr.rnr_retry) {
		send_ack(rq, RXE_ACK_NO_CREDITS, wire_psn_add(psn, WIRE_PSN_MASK));
		return;
	}
	rxe_resp_count(rq, HCA_CNT_SEND_RNR_ERR);
	send_ack(rq, WIRE_AETH_RNR_NAK | (timer ? max(timer, (u8)RXE_LATE_RNR) : 0), psn);
}

void rxe_resp_late(struct rxe_qp *rq, u32 psn)
{
	u64 now = loop_now(rq->rxe->loop).ns, delay = wire_timeout_ns(hca_caps(rq->qp->hca)->local_ca_ack_delay);

	if (rq->qp->attr.timeout) /* the peer's is probably the same, set by the same program */
		delay = min(delay, wire_timeout_ns(rq->qp->attr.timeout));
	if (!rq->resp.late_since)
		rq->resp.late_since = now;
	if (now - rq->resp.late_since >= delay)
		resp_wait(rq, psn);
}

/* Execution of SEND and RDMA WRITE */

static bool send_payload_write(struct rxe_qp *rq, struct wire_packet *p)
{
	bool fits = p->len <= HCA_MESSAGE_MAX - rq->resp.recv_off;
	int err = fits ? rxe_recv_write(rq, rq->resp.recv_off, rxe_bytes_of(p)) : HCA_KEY_BOUNDS;

	if (err)
		rxe_resp_fail(rq, err == HCA_KEY_BOUNDS ? RXE_RESP_LENGTH : RXE_RESP_PROTECTION);
	else
		rq->resp.recv_off += p->len;
	return !err;
}

u32 rxe_resp_zcopy(struct rxe_qp *rq, u32 psn, u32 n, u32 len, u8 **at)
{
	if (rq->resp.failing || rq->resp.last_op != RXE_LAST_OP_WRITE || psn != rq->resp.epsn ||
	    rq->resp.wr_left <= len)
		return 0;
	n = min(n, (rq->resp.wr_left - 1) / len);
	*at = rxe_remote_direct(rq, rq->resp.wr_rkey, rq->resp.wr_va, n * len, HCA_ACCESS_REMOTE_WRITE);
	return *at ? n : 0;
}

/* Does not write a payload again that zero-copy receive has written. */
static bool write_payload_write(struct rxe_qp *rq, struct wire_packet *p)
{
	bool zcopy = p->flags & WIRE_PKT_ZCOPY && p->data == rxe_remote_direct(rq, rq->resp.wr_rkey, rq->resp.wr_va,
									       p->len, HCA_ACCESS_REMOTE_WRITE);

	if (!zcopy && rxe_remote_write(rq, rq->resp.wr_rkey, rq->resp.wr_va, rxe_bytes_of(p))) {
		rxe_resp_fail(rq, RXE_RESP_ACCESS);
		return false;
	}
	rq->resp.wr_va += p->len;
	rq->resp.wr_left -= p->len;
	return true;
}

static bool recv_pull(struct rxe_qp *rq)
{
	int got = rxe_recv_get(rq);

	if (got <= 0)
		rxe_resp_fail(rq, got ? RXE_RESP_RECV : RXE_RESP_NO_RECV);
	return got > 0;
}

static bool write_start(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	const struct wire_reth *h = wire_packet_reth(p);

	rq->resp.wr_va = be64_to_cpu(h->va);
	rq->resp.wr_rkey = be32_to_cpu(h->rkey);
	rq->resp.wr_len = rq->resp.wr_left = be32_to_cpu(h->dmalen);
	if (rq->resp.wr_len > HCA_MESSAGE_MAX)
		rxe_resp_fail(rq, RXE_RESP_INVALID);
	else if (!rxe_remote_check(rq, rq->resp.wr_rkey, rq->resp.wr_va, rq->resp.wr_len, HCA_ACCESS_REMOTE_WRITE))
		return true;
	else {
		if (op->flags & WIRE_OPF_RWQE && rxe_is_reliable(rq))
			rxe_recv_get(rq); /* completes with the error (11.6.2) */
		rxe_resp_fail(rq, RXE_RESP_ACCESS);
	}
	return false;
}

static void recv_message_complete(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	const struct wire_lrh *lrh = wire_packet_lrh(p);
	struct hca_cqe cqe = {
		.status = HCA_WC_SUCCESS,
		.opcode = op->flags & WIRE_OPF_WRITE ? HCA_WC_RECV_RDMA_WITH_IMM : HCA_WC_RECV,
		.byte_len = op->flags & WIRE_OPF_WRITE ? rq->resp.wr_len : rq->resp.recv_off,
		.src_qp = rq->qp->attr.dest_qpn,
		.slid = wire_lrh_slid(lrh),
		.sl = wire_lrh_sl(lrh),
		.solicited = wire_bth_se(wire_packet_bth(p)),
	};

	if (op->flags & WIRE_OPF_IMM) {
		cqe.flags |= HCA_WC_WITH_IMM;
		cqe.imm = be32_to_cpu(wire_packet_immdt(p)->imm);
	}
	if (op->flags & WIRE_OPF_INV) {
		cqe.flags |= HCA_WC_WITH_INVALIDATE;
		cqe.imm = be32_to_cpu(wire_packet_ieth(p)->rkey);
	}
	rxe_resp_count(rq, HCA_CNT_RDMA_RECVS);
	rxe_recv_complete(rq, &cqe);
}

/* Sequence */

/* Is the opcode valid after that of the last packet (9.7.4.1, 9.8)? */
static bool opcode_sequence_valid(const struct rxe_qp *rq, const struct wire_opcode *op)
{
	if (op->flags & WIRE_OPF_START)
		return rq->resp.last_op == RXE_LAST_OP_NONE;
	return rq->resp.last_op == (op->flags & WIRE_OPF_SEND ? RXE_LAST_OP_SEND : RXE_LAST_OP_WRITE);
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

/* Is the operation enabled at the QP (9.7.4.1)? If not, it is an invalid request and no access error (11.6.2). */
static bool operation_enabled(const struct rxe_qp *rq, const struct wire_opcode *op)
{
	u32 needed = op->flags & WIRE_OPF_WRITE    ? HCA_ACCESS_REMOTE_WRITE
		     : op->flags & WIRE_OPF_READ   ? HCA_ACCESS_REMOTE_READ
		     : op->flags & WIRE_OPF_ATOMIC ? HCA_ACCESS_REMOTE_ATOMIC
						   : 0;

	return !(needed & ~rq->qp->attr.access);
}

/*
 * XRC: the SRQ that the request names (annex A14): one of the target's domain, and in all packets of a message the
 * same. An invalid XRCETH and a violation of the XRC domain are access errors.
 */
static bool xrc_srq_valid(struct rxe_qp *rq, const struct wire_packet *p, const struct wire_opcode *op)
{
	u32 srqn = wire_xrceth_srqn(wire_packet_xrceth(p));

	if (!(op->flags & WIRE_OPF_START) && srqn != rq->resp.srqn)
		return false;
	if (hca_xrc_srq(rq->qp, srqn))
		return false;
	rq->resp.srqn = srqn;
	return true;
}

/* Executes a SEND or WRITE packet with the expected PSN. False: it failed, and a NAK is due (RC). */
static bool packet_execute(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	if (op->flags & WIRE_OPF_WRITE && op->flags & WIRE_OPF_START && !write_start(rq, p, op))
		return false;
	if (op->flags & WIRE_OPF_WRITE &&
	    (p->len > rq->resp.wr_left || (op->flags & WIRE_OPF_END && p->len != rq->resp.wr_left))) {
		rxe_resp_fail(rq, RXE_RESP_INVALID);
		return false;
	}
	if (op->flags & WIRE_OPF_RWQE && !recv_pull(rq))
		return false;
	if (p->len && !(op->flags & WIRE_OPF_SEND ? send_payload_write(rq, p) : write_payload_write(rq, p)))
		return false;
	if (op->flags & WIRE_OPF_INV) {
		if (hca_key_invalidate(rq->qp, be32_to_cpu(wire_packet_ieth(p)->rkey), true)) {
			rxe_resp_fail(rq, RXE_RESP_INVALIDATE);
			return false;
		}
		rq->wrote = true; /* completes when writes by the key are in memory, also those of other queue pairs */
	}
	rq->resp.last_op = op->flags & WIRE_OPF_END    ? RXE_LAST_OP_NONE
			   : op->flags & WIRE_OPF_SEND ? RXE_LAST_OP_SEND
						       : RXE_LAST_OP_WRITE;
	if (op->flags & WIRE_OPF_WRITE && op->flags & WIRE_OPF_END)
		rxe_resp_count(rq, HCA_CNT_WRITE_REQUESTS);
	if (op->flags & WIRE_OPF_COMP)
		recv_message_complete(rq, p, op);
	return true;
}

static void comm_established(struct rxe_qp *rq)
{
	if (rq->qp->state == HCA_QPS_RTR && !rq->resp.comm_est) {
		rq->resp.comm_est = true;
		hca_qp_event(rq->qp, HCA_EVENT_COMM_EST);
	}
}

static void uc_request(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	bool lost = psn != rq->resp.epsn;

	rq->resp.epsn = wire_psn_add(psn, 1);
	if (lost || !opcode_sequence_valid(rq, op)) {
		/* The message in progress is dropped; its receive request is used for the next message. */
		rq->resp.last_op = RXE_LAST_OP_NONE;
		rq->resp.recv_off = 0;
		rq->resp.uc_drop = !(op->flags & WIRE_OPF_START);
	}
	if (op->flags & WIRE_OPF_START)
		rq->resp.uc_drop = false;
	if (rq->resp.uc_drop)
		return;
	if (!operation_enabled(rq, op) || !length_valid(rq, p, op)) {
		rxe_resp_fail(rq, RXE_RESP_INVALID);
		return;
	}
	comm_established(rq);
	packet_execute(rq, p, op);
	rxe_dirty(rq);
}

static void rc_duplicate(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	rxe_resp_count(rq, HCA_CNT_DUPLICATE_REQUEST);
	if (op->flags & (WIRE_OPF_READ | WIRE_OPF_ATOMIC)) {
		rxe_resource_duplicate(rq, p, op, psn);
	} else {
		if (rxe_writes_late(rq) && wire_psn_diff(psn, rq->resp.cpsn) <= 0)
			rxe_resp_late(rq, rq->resp.cpsn);
		rq->resp.ack_due = true;
		rxe_dirty(rq);
	}
}

/*
 * A packet ahead of a missing PSN: one PSN sequence error NAK per flight; the packet goes to the out-of-order buffer.
 */
static void rc_out_of_order(struct rxe_qp *rq, const struct wire_packet *p, u32 psn)
{
	/* a PSN that repeats starts the next flight: its first packet or the NAK was lost */
	if (!rq->resp.nak_sent ||
	    (!rq->resp.rnr_sent && rxe_is_ethernet(rq) && wire_psn_diff(psn, rq->resp.last_ooo_psn) <= 0)) {
		rxe_resp_count(rq, HCA_CNT_OUT_OF_SEQUENCE);
		rq->resp.nak = RXE_NAK(WIRE_NAK_PSN_SEQ);
		rq->resp.nak_sent = true;
		rxe_dirty(rq);
	}
	rq->resp.last_ooo_psn = psn;
	if (rxe_is_ethernet(rq))
		rxe_ooo_insert(rq, p, psn);
}

/* The packet with the expected PSN. */
static void rc_expected(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	const struct wire_bth *bth = wire_packet_bth(p);

	/*
	 * The missing packet has arrived. The kernel's rxe ignores a second NAK until it has received an ACK, and waits
	 * for its time-out instead. So this packet is acknowledged at once: a responder may acknowledge any packet
	 * (9.7.5.1).
	 */
	if (rq->resp.nak_sent && rxe_is_ethernet(rq)) {
		rq->resp.ack_due = true;
		rq->resp.nak = 0; /* not sent yet: the packets were only reordered */
	}
	rq->resp.nak_sent = rq->resp.rnr_sent = false;
	comm_established(rq);
	/*
	 * Requests before it may wait for pages of the key that it invalidates, and their accesses check the key again.
	 * The NAK follows when they are done, and the requester retransmits it.
	 */
	if (unlikely(op->flags & WIRE_OPF_INV && rq->qp->suspended[0])) {
		rq->resp.nak = RXE_NAK(WIRE_NAK_PSN_SEQ);
		rq->resp.nak_sent = true;
		rxe_dirty(rq);
		return;
	}
	if (!opcode_sequence_valid(rq, op) || !operation_enabled(rq, op) || !length_valid(rq, p, op)) {
		rxe_resp_fail(rq, RXE_RESP_INVALID);
		return;
	}
	if (unlikely(rq->qp->type == HCA_QPT_XRC_TGT) && !xrc_srq_valid(rq, p, op)) {
		rxe_resp_fail(rq, RXE_RESP_ACCESS);
		return;
	}
	if (op->flags & WIRE_OPF_READ) {
		if (rxe_resource_read(rq, p, psn))
			rxe_resp_count(rq, HCA_CNT_READ_REQUESTS);
		return;
	}
	if (op->flags & WIRE_OPF_ATOMIC) {
		if (rxe_resource_atomic(rq, p, op, psn))
			rxe_resp_count(rq, HCA_CNT_ATOMIC_REQUESTS);
		return;
	}
	if (!packet_execute(rq, p, op))
		return;
	rq->resp.epsn = wire_psn_add(psn, 1);
	if (op->flags & WIRE_OPF_END)
		rq->resp.msn = (rq->resp.msn + 1) & 0xffffff;
	if (wire_bth_ackreq(bth))
		rq->resp.ack_due = true;
	rxe_dirty(rq);
}

/* Executes packets of the out-of-order buffer up to the next missing PSN, which is answered by another NAK. */
static void rc_ooo_deliver(struct rxe_qp *rq)
{
	struct wire_packet *p;
	u32 psn = rq->resp.epsn;

	while ((p = rxe_ooo_next(rq))) {
		rc_expected(rq, p, wire_packet_opcode(p), psn);
		wire_packet_free(p);
		if (rq->resp.epsn == psn) { /* RNR or an error: the requester retransmits it and all that follows */
			rxe_ooo_flush(rq);
			return;
		}
		psn = rq->resp.epsn;
	}
	if (!rq->resp.nooo || rq->resp.nak)
		return;
	rq->resp.nak = RXE_NAK(WIRE_NAK_PSN_SEQ);
	rq->resp.nak_sent = true;
	rxe_dirty(rq);
}

void rxe_resp_request(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	u32 psn = wire_bth_psn(wire_packet_bth(p));
	s32 diff = wire_psn_diff(psn, rq->resp.epsn);

	if (unlikely(rq->resp.failing || rq->fail_due))
		return; /* handled as a lost packet */
	if (unlikely(diff >= 0 && hca_qp_overfull(rq->qp))) {
		/* A PSN after cpsn: earlier requests are pending, and will be acknowledged. */
		if (rxe_is_reliable(rq) && psn == rq->resp.cpsn)
			resp_wait(rq, psn);
		return;
	}
	if (rq->qp->type == HCA_QPT_UC) {
		uc_request(rq, p, op, psn);
	} else if (diff < 0) {
		rc_duplicate(rq, p, op, psn);
	} else if (diff > 0) {
		rc_out_of_order(rq, p, psn);
	} else {
		rc_expected(rq, p, op, psn);
		if (unlikely(rq->resp.nooo))
			rc_ooo_deliver(rq);
	}
}

/*
 * A write of the batch has failed, and so its message fails. Messages received before it complete; receives that were
 * pulled after it are flushed with the QP.
 */
static void write_fail(struct rxe_qp *rq)
{
	bool by_recv = rq->resp.failed.kind == RXE_WRITE_RECV;
	u32 i;

	rq->resp.write_failed = rq->resp.ack_due = false;
	if (by_recv && rq->resp.failed.ncomps == rq->resp.ncomps && rq->resp.recv_pulled) {
		struct hca_cqe cqe = { .opcode = HCA_WC_RECV };

		rxe_recv_complete(rq, &cqe);
	}
	for (i = rq->resp.failed.ncomps; i < rq->resp.ncomps; i++)
		rq->resp.comps[i].status =
			by_recv && i == rq->resp.failed.ncomps ? HCA_WC_LOC_PROT_ERR : HCA_WC_WR_FLUSH_ERR;
	rxe_resp_fail_at(rq, RXE_RESP_MEMORY, rq->resp.failed.at);
	rxe_req_kick(rq); /* responses to earlier requests were waiting for this write */
}

/* Pending responses to READs and atomics are sent before an ACK or NAK. */
static void ack_send_due(struct rxe_qp *rq)
{
	if (rxe_resource_pending(rq))
		return;
	rq->resp.cpsn = rq->resp.epsn;
	rq->resp.late_since = 0;
	if (rq->resp.ack_due && (!rq->resp.nak || rq->resp.nooo)) /* also before a NAK for the next missing PSN */
		send_ack(rq, RXE_ACK_NO_CREDITS, wire_psn_add(rq->resp.epsn, WIRE_PSN_MASK));
	if (rq->resp.nak)
		send_ack(rq, rq->resp.nak, rq->resp.failing ? rq->resp.fail_psn : rq->resp.epsn);
	rq->resp.nak = 0;
	rq->resp.ack_due = false;
}

void rxe_resp_complete(struct rxe_qp *rq)
{
	u32 i;

	if (unlikely(rq->resp.write_failed))
		write_fail(rq);
	for (i = 0; i < rq->resp.ncomps; i++) {
		hca_recv_done(rq->qp);
		hca_complete_recv(rq->qp, &rq->resp.comps[i]);
	}
	rq->resp.ncomps = 0;
	if (rq->qp->state >= HCA_QPS_RTR && rq->qp->state <= HCA_QPS_SQE)
		ack_send_due(rq);
}

void rxe_resp_commit(struct rxe_qp *rq)
{
	rxe_resp_complete(rq);
	if (unlikely(rq->resp.failing) && !rxe_resource_pending(rq))
		rxe_qp_error(rq, rq->resp.fail_event);
}

void rxe_resp_srq_destroyed(struct hca_qp *qp, u32 srqn)
{
	struct rxe_qp *rq = qp->transport;
	u32 i;

	for (i = 0; i < rq->resp.ncomps; i++) {
		if (rq->resp.comps[i].srqn == srqn)
			rq->resp.comps[i].srqn = 0;
	}
	if (rq->resp.srqn != srqn)
		return;
	rq->resp.srqn = 0;
	rq->resp.recv_pulled = false;
}

void rxe_resp_reset(struct rxe_qp *rq)
{
	rxe_resource_reset(rq);
	rq->resp.ncomps = 0;
	rq->resp.recv_pulled = rq->resp.nak_sent = rq->resp.rnr_sent = rq->resp.ack_due = rq->resp.comm_est =
		rq->resp.uc_drop = rq->resp.failing = rq->resp.write_failed = false;
	rq->resp.last_op = RXE_LAST_OP_NONE;
	rq->resp.nak = 0;
	rq->resp.msn = rq->resp.srqn = 0;
	rq->resp.late_since = 0;
	rxe_ooo_flush(rq);
}

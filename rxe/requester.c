// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requester: segmentation of send requests into packets (IBTA 9.7.5, 9.8).
 *
 * Of the send queue wq.tail is the oldest request not completed, next the request whose packet pkt_next is sent next,
 * wq.head one past the last one fetched. Retransmission by go-back-n moves next, pkt_next and psn back, but keeps the
 * response bytes that a READ has received. The commit completes requests in order, after their response data has been
 * written to memory.
 */
#include <errno.h>

#include "rxe/request.h"

enum {
	PKT_FIRST,
	PKT_MIDDLE,
	PKT_LAST,
	PKT_ONLY,
	PKT_KINDS
};

/* [request][first, middle, last, only] */
static const u8 send_opcodes[][PKT_KINDS] = {
	[HCA_WR_RDMA_WRITE] = { WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE, WIRE_RC_WRITE_LAST, WIRE_RC_WRITE_ONLY },
	[HCA_WR_RDMA_WRITE_WITH_IMM] = { WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE, WIRE_RC_WRITE_LAST_IMM,
					 WIRE_RC_WRITE_ONLY_IMM },
	[HCA_WR_SEND] = { WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE, WIRE_RC_SEND_LAST, WIRE_RC_SEND_ONLY },
	[HCA_WR_SEND_WITH_IMM] = { WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE, WIRE_RC_SEND_LAST_IMM,
				   WIRE_RC_SEND_ONLY_IMM },
	[HCA_WR_SEND_WITH_INV] = { WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE, WIRE_RC_SEND_LAST_INV,
				   WIRE_RC_SEND_ONLY_INV },
	[HCA_WR_RDMA_READ] = { [PKT_ONLY] = WIRE_RC_READ_REQUEST },
	[HCA_WR_ATOMIC_CMP_AND_SWP] = { [PKT_ONLY] = WIRE_RC_CMP_SWAP },
	[HCA_WR_ATOMIC_FETCH_AND_ADD] = { [PKT_ONLY] = WIRE_RC_FETCH_ADD },
};

static u8 packet_opcode(const struct rxe_wqe *w, u32 off, u32 len)
{
	bool first = !off, last = off + len == w->wr.length;
	int kind = hca_wqe_reads(&w->wr) || (first && last) ? PKT_ONLY
		   : first                                  ? PKT_FIRST
		   : last                                   ? PKT_LAST
							    : PKT_MIDDLE;

	return send_opcodes[w->wr.opcode][kind];
}

/* Loads bytes @off.. of the message into w->chunk. -EINPROGRESS: pending until rxe_req_loading() returns false. */
static int chunk_load(struct rxe_qp *rq, struct rxe_wqe *w, u32 off, u32 len)
{
	u32 size = min(RXE_CHUNK, w->wr.length - off);
	int err;

	if (!len || (w->chunk && off >= w->chunk_off && off + len <= w->chunk_off + w->chunk->size))
		return 0;
	rxe_chunk_put(rq, w->chunk);
	w->chunk = wire_buf_alloc(size);
	w->chunk_off = off;
	if (!w->chunk)
		return -ENOMEM;
	err = rxe_wqe_read(rq, w, off, size, w->chunk->data);
	rq->req.load_first = rq->req.wq.tail + (rxe_wqe_slot(rq, w) - rq->req.wq.tail) % HCA_SQ_WQES;
	rq->req.load_end = rq->req.load_first + 1;
	if (rxe_reads_run(rq, &rq->req.load_due) && !err)
		return -EINPROGRESS;
	rq->req.load_due = 0;
	return w->read_failed ? -EFAULT : err;
}

bool rxe_req_loading(struct rxe_qp *rq)
{
	if (likely(!rq->req.load_due))
		return false;
	if (rxe_pending(rq, rq->req.load_due)) {
		rxe_stall(rq);
		return true;
	}
	rq->req.load_due = 0;
	rxe_wqes_loaded(rq);
	return false;
}

/* @off, @len: the part of the message in RETH. */
static void eths_fill(struct wire_packet *p, const struct rxe_wqe *w, u32 off, u32 len)
{
	const struct wire_opcode *op = wire_packet_opcode(p);

	if (op->eths & BIT(WIRE_ETH_XRC))
		wire_packet_xrceth(p)->srqn = cpu_to_be32(w->remote_srqn & WIRE_QPN_MASK);
	if (op->eths & BIT(WIRE_ETH_RETH)) {
		struct wire_reth *h = wire_packet_reth(p);

		h->va = cpu_to_be64(w->wr.remote_addr + off);
		h->rkey = cpu_to_be32(w->wr.rkey);
		h->dmalen = cpu_to_be32(len);
	}
	if (op->eths & BIT(WIRE_ETH_ATOMIC)) {
		struct wire_atomic_eth *h = wire_packet_atomic_eth(p);
		bool swap = w->wr.opcode == HCA_WR_ATOMIC_CMP_AND_SWP;

		h->va = cpu_to_be64(w->wr.remote_addr);
		h->rkey = cpu_to_be32(w->wr.rkey);
		h->swap_add = cpu_to_be64(swap ? w->wr.swap : w->wr.compare_add);
		h->compare = cpu_to_be64(swap ? w->wr.compare_add : 0);
	}
	if (op->eths & BIT(WIRE_ETH_IMMDT))
		wire_packet_immdt(p)->imm = cpu_to_be32(w->wr.imm);
	if (op->eths & BIT(WIRE_ETH_IETH))
		wire_packet_ieth(p)->rkey = cpu_to_be32(w->wr.imm);
}

static void cursor_next(struct rxe_qp *rq, const struct rxe_wqe *w, u32 pkts)
{
	rq->req.psn = wire_psn_add(rq->req.psn, pkts);
	if (wire_psn_diff(rq->req.psn, rq->req.max_psn) > 0)
		rq->req.max_psn = rq->req.psn;
	rq->req.pkt_next++;
	if (hca_wqe_reads(&w->wr) || rq->req.pkt_next >= w->npkts) {
		rq->req.next++;
		rq->req.pkt_next = 0;
	}
}

/*
 * Builds the packet at @off of the message, with @psn. NULL: out of memory, handled as a lost packet; or w->wr.status
 * is set since the payload cannot be read; or the payload is being fetched (rq->req.load_due).
 */
static struct wire_packet *packet_build(struct rxe_qp *rq, struct rxe_wqe *w, u32 off, u32 psn, bool ackreq)
{
	u32 len = hca_wqe_reads(&w->wr) ? 0 : min(rxe_req_mtu(rq), w->wr.length - off);
	bool last = hca_wqe_reads(&w->wr) || off + len == w->wr.length;
	u32 got = hca_wqe_reads(&w->wr) ? w->got : 0;
	const u8 *direct = len ? rxe_wqe_direct(rq, w, off, len) : NULL;
	struct wire_packet *p;
	int err;

	err = direct ? 0 : chunk_load(rq, w, off, len);
	if (err) {
		w->wr.status = err == -EINPROGRESS ? HCA_WC_SUCCESS : HCA_WC_LOC_PROT_ERR;
		return NULL;
	}
	p = rxe_frame(rq->qp, packet_opcode(w, off, len), psn, len);
	if (!p)
		return NULL;
	if (last && w->wr.flags & HCA_SEND_SOLICITED)
		wire_bth_set_se(wire_packet_bth(p));
	if (ackreq)
		wire_bth_set_ackreq(wire_packet_bth(p));
	eths_fill(p, w, got, w->wr.length - got);
	if (direct)
		rxe_payload_zcopy(p, direct, len);
	else if (len)
		rxe_payload(p, w->chunk, off - w->chunk_off, len);
	return p;
}

static void packet_send(struct rxe_qp *rq, struct wire_packet *p)
{
	const struct hca_qp *qp = rq->qp;

	if (!p)
		return;
	rxe_pace_sent(rq, qp->attr.av.static_rate, p->hdr_len + p->len);
	rxe_send(rq->rxe, qp->attr.port, p);
}

static void wqe_send_packet(struct rxe_qp *rq, struct rxe_wqe *w)
{
	bool reads = hca_wqe_reads(&w->wr), last, ackreq;
	u32 mtu = rxe_req_mtu(rq), off, pkts = 1;
	struct wire_packet *p;

	if (w->wr.state == HCA_WQE_POSTED) { /* first transmission: assign its PSNs */
		w->wr.state = HCA_WQE_SENT;
		w->first_psn = rq->req.psn;
		w->npkts = rxe_packets(w->wr.length, mtu);
	} else {
		w->resent = true;
	}
	off = reads ? 0 : rq->req.pkt_next * mtu;
	last = reads || rq->req.pkt_next + 1 == w->npkts;
	ackreq = rxe_is_reliable(rq) && !reads && (last || rxe_cwnd_ackreq(rq));
	p = packet_build(rq, w, off, rq->req.psn, ackreq);
	if (w->wr.status || rq->req.load_due)
		return;
	if (reads) {
		pkts = w->npkts - w->got / mtu;
		rq->req.rd_out++;
	}
	if (ackreq || reads)
		rxe_cwnd_sent(rq, rq->req.psn);
	cursor_next(rq, w, pkts);
	if (rq->qp->type == HCA_QPT_UC) {
		rq->req.una = rq->req.max_psn;
		if (last) {
			w->wr.state = HCA_WQE_DONE;
			rxe_dirty(rq);
		}
	} else if (!loop_timer_armed(&rq->req.timer)) {
		rxe_cwnd_timer_begin(rq);
		rxe_retry_arm(rq);
	}
	packet_send(rq, p);
}

void rxe_req_retransmit_read(struct rxe_qp *rq, struct rxe_wqe *w, u32 at, u32 n)
{
	u32 off = at * rxe_req_mtu(rq), len = min(n * rxe_req_mtu(rq), w->wr.length - off);
	struct wire_packet *p = rxe_frame(rq->qp, WIRE_RC_READ_REQUEST, wire_psn_add(w->first_psn, at), 0);

	w->resent = true;
	if (p)
		eths_fill(p, w, off, len);
	packet_send(rq, p);
}

/*
 * Selective retransmission: the missing packet only. If its payload cannot be read any more, go-back-n fails the
 * request.
 */
static void retransmit_packet(struct rxe_qp *rq)
{
	struct rxe_wqe *w = rxe_retransmit_find(rq, rq->req.retransmit_psn);
	struct wire_packet *p;

	rq->req.retransmit_due = false;
	if (!w)
		return;
	p = packet_build(rq, w, (u32)wire_psn_diff(rq->req.retransmit_psn, w->first_psn) * rxe_req_mtu(rq),
			 rq->req.retransmit_psn, true);
	if (w->wr.status) {
		rxe_retry_from(rq, rq->req.retransmit_psn);
		return;
	}
	if (rq->req.load_due) {
		rq->req.retransmit_due = true;
		return;
	}
	rq->req.retransmit_out = true;
	packet_send(rq, p);
}

static void local_operation_run(struct rxe_qp *rq, struct rxe_wqe *w)
{
	w->npkts = 0;
	w->first_psn = rq->req.psn;
	hca_sq_run_local(&rq->req.wq, &w->wr);
	if (w->wr.status)
		return;
	rq->wrote = true; /* completes when writes by its key are in memory, also those of other queue pairs */
	rq->req.next++;
	rxe_dirty(rq);
}

/*
 * A fenced request may refer to what the READs before it return: their data are in memory before it begins (10.8.3.3).
 * After a READ whose data cannot be written it does not begin: the commit, which is due, fails the queue pair.
 */
static bool fence_allows(struct rxe_qp *rq)
{
	u32 i;

	if (rq->req.rd_out)
		return false;
	rxe_writes_run(rq->rxe);
	if (unlikely(!rxe_writes_done(rq))) {
		rxe_stall(rq);
		return false;
	}
	for (i = rq->req.wq.tail; i != rq->req.next; i++)
		if (rxe_wqe_at(rq, i)->wr.status)
			return false;
	return true;
}

/* May the next request be sent now: congestion window, READ depth, fence? */
static bool send_allowed(struct rxe_qp *rq, const struct rxe_wqe *w)
{
	s32 out = wire_psn_diff(rq->req.psn, rq->req.una);

	if (!rxe_is_reliable(rq))
		return true;
	if (out >= (s32)rxe_cwnd_size(rq))
		return false;
	if (w->wr.flags & HCA_SEND_FENCE && !rq->req.pkt_next && !fence_allows(rq))
		return false;
	return !hca_wqe_reads(&w->wr) ||
	       (rq->req.rd_out < rq->qp->attr.max_rd_atomic &&
		rxe_packets(w->wr.length, rxe_req_mtu(rq)) + (u32)max(out, 0) <= RXE_PSNS_MAX);
}

/* LOCAL_INV waits for all earlier requests: they may use the key, and be retransmitted (10.6.5). */
static bool local_operation_allowed(struct rxe_qp *rq, const struct rxe_wqe *w)
{
	if (w->wr.opcode == HCA_WR_LOCAL_INV && rq->req.wq.tail != rq->req.next)
		return false;
	return !(w->wr.flags & HCA_SEND_FENCE) || fence_allows(rq);
}

/* In SQD no request begins; those in progress are completed, including retransmissions (10.3.1). */
static bool state_allows_send(const struct rxe_qp *rq)
{
	if (rq->qp->state == HCA_QPS_RTS)
		return true;
	return rq->qp->state == HCA_QPS_SQD &&
	       (rq->req.retransmit_due ||
		(rq->req.next != rq->req.wq.head && rxe_wqe_at(rq, rq->req.next)->wr.state != HCA_WQE_POSTED));
}

bool rxe_req_run(struct rxe_qp *rq)
{
	u32 n;

	for (n = 0; n < RXE_BUDGET; n++) {
		struct rxe_wqe *w;

		if (!state_allows_send(rq))
			return false;
		if (rq->fail_due || rxe_req_loading(rq))
			return false;
		if (rq->req.rnr_wait || rxe_blocked(rq->rxe, rq->qp->attr.port) || rxe_pace_wait(rq))
			return false;
		if (rq->req.retransmit_due) {
			retransmit_packet(rq);
			continue;
		}
		if (rq->req.next == rq->req.wq.head && (!rxe_wqes_pull(rq) || rxe_req_loading(rq)))
			return false;
		w = rxe_wqe_at(rq, rq->req.next);
		if (w->wr.state == HCA_WQE_DONE) {
			/* retransmission skips completed requests: local operations are carried out once */
			rq->req.psn = wire_psn_add(w->first_psn, w->npkts);
			rq->req.next++;
			rq->req.pkt_next = 0;
			rxe_dirty(rq);
			continue;
		}
		if (hca_wqe_reads(&w->wr) && !rq->qp->attr.max_rd_atomic) /* READ depth 0: it can never be sent */
			w->wr.status = HCA_WC_LOC_QP_OP_ERR;
		if (w->wr.status) {
			if (rq->req.wq.tail == rq->req.next)
				rxe_req_fail(rq, w->wr.status);
			else
				rxe_dirty(rq); /* it fails when the earlier requests are completed */
			return false;
		}
		if (!(hca_wqe_local(&w->wr) ? local_operation_allowed(rq, w) : send_allowed(rq, w)))
			return false;
		if (hca_wqe_local(&w->wr))
			local_operation_run(rq, w);
		else
			wqe_send_packet(rq, w);
		if (w->wr.status)
			n--; /* the next iteration fails it */
	}
	return true;
}

void rxe_req_kick(struct rxe_qp *rq)
{
	if (!list_empty(&rq->work))
		return;
	list_add(&rq->rxe->work, &rq->work);
	loop_task_queue(rq->rxe->loop, &rq->rxe->tx_task);
}

void rxe_req_unblock(struct rxe_qp *rq)
{
	list_del(&rq->work);
	rxe_req_kick(rq);
}

void rxe_req_reset(struct rxe_qp *rq)
{
	rq->req.load_due = 0;
	loop_timer_cancel(&rq->req.timer);
	loop_timer_cancel(&rq->rate.timer);
	rq->rate.until = 0;
	rxe_cc_reset(rq);
	hca_sq_reset(&rq->req.wq);
	rq->req.next = rq->req.pkt_next = rq->req.rd_out = 0;
	rq->req.rnr_wait = rq->req.drained = rq->req.sqd = false;
	rq->req.retransmit_due = rq->req.retransmit_out = false;
	rq->req.peer_selective = RXE_SELECTIVE_UNKNOWN;
	rxe_read_reset(rq);
}

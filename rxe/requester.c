// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The requester: cuts requests into packets (9.7.5, 9.8.2).
 *
 * wqes[] is a ring: wq_tail is the oldest request not completed, wq_next the one whose packet pkt_next goes out next,
 * wq_head one past the last pulled. A retry moves wq_next, pkt_next and psn back (go-back-n); what a request has got
 * stays. Completions are given in order, and only by a commit, when the data that they speak of is in place.
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

/* [request][place in the message]; UC's opcodes lie WIRE_TP_UC above. */
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

static u8 opcode_of(const struct rxe_qp *rq, const struct rxe_wqe *w, u32 off, u32 len)
{
	bool first = !off, last = off + len == w->length;
	int kind = rxe_wqe_reads(w) || (first && last) ? PKT_ONLY : first ? PKT_FIRST : last ? PKT_LAST : PKT_MIDDLE;

	return send_opcodes[w->opcode][kind] + (rq->qp->type == HCA_QPT_UC ? WIRE_TP_UC : 0);
}

/* Makes bytes @off.. of the message stand in w->chunk. */
static int chunk_load(struct rxe_qp *rq, struct rxe_wqe *w, u32 off, u32 len)
{
	u32 size = min(RXE_CHUNK, w->length - off);
	int err;

	if (!len || (w->chunk && off >= w->chunk_off && off + len <= w->chunk_off + w->chunk->size))
		return 0;
	wire_buf_put(w->chunk);
	w->chunk = wire_buf_alloc(size);
	w->chunk_off = off;
	if (!w->chunk)
		return -ENOMEM;
	err = rxe_sges_span(rq->qp, w->sge, w->num_sge, off, size, 0, w->chunk->data, false, rq);
	hca_batch_run(rq->rxe->rd);
	if (rq->read_failed) {
		rq->read_failed = false;
		err = -EFAULT;
	}
	return err;
}

/* @off, @len: of the part that is written or read. */
static void eths_fill(struct wire_packet *p, const struct rxe_wqe *w, u32 off, u32 len)
{
	const struct wire_opcode *op = wire_opcode(p->hdr[p->bth_off]);

	if (op->eths & BIT(WIRE_ETH_RETH)) {
		struct wire_reth *h = rxe_eth(p, WIRE_ETH_RETH);

		h->va = cpu_to_be64(w->remote_addr + off);
		h->rkey = cpu_to_be32(w->rkey);
		h->dmalen = cpu_to_be32(len);
	}
	if (op->eths & BIT(WIRE_ETH_ATOMIC)) {
		struct wire_atomic_eth *h = rxe_eth(p, WIRE_ETH_ATOMIC);
		bool swap = w->opcode == HCA_WR_ATOMIC_CMP_AND_SWP;

		h->va = cpu_to_be64(w->remote_addr);
		h->rkey = cpu_to_be32(w->rkey);
		h->swap_add = cpu_to_be64(swap ? w->swap : w->compare_add);
		h->compare = cpu_to_be64(swap ? w->compare_add : 0);
	}
	if (op->eths & BIT(WIRE_ETH_IMMDT))
		((struct wire_immdt *)rxe_eth(p, WIRE_ETH_IMMDT))->imm = cpu_to_be32(w->imm);
	if (op->eths & BIT(WIRE_ETH_IETH))
		((struct wire_ieth *)rxe_eth(p, WIRE_ETH_IETH))->rkey = cpu_to_be32(w->imm);
}

/* Marks the request as sent for the first time: its place in the PSNs is fixed from now on. */
static void wqe_start(struct rxe_qp *rq, struct rxe_wqe *w, u32 mtu)
{
	if (w->state != WQE_POSTED)
		return;
	w->state = WQE_SENT;
	w->first_psn = rq->psn;
	w->npkts = w->length ? (w->length + mtu - 1) / mtu : 1;
}

static void cursor_next(struct rxe_qp *rq, const struct rxe_wqe *w, u32 pkts)
{
	rq->psn = wire_psn_add(rq->psn, pkts);
	if (wire_psn_diff(rq->psn, rq->max_psn) > 0)
		rq->max_psn = rq->psn;
	rq->pkt_next++;
	if (rxe_wqe_reads(w) || rq->pkt_next >= w->npkts) {
		rq->wq_next++;
		rq->pkt_next = 0;
	}
}

/*
 * The packet at @off of the message, with @psn. NULL: there is no memory, which is as if it were lost, or the request has a status now
 * since its payload cannot be read.
 */
static struct wire_packet *make_packet(struct rxe_qp *rq, struct rxe_wqe *w, u32 off, u32 psn, bool ackreq)
{
	const struct hca_qp *qp = rq->qp;
	u32 len = rxe_wqe_reads(w) ? 0 : min(rxe_req_mtu(rq), w->length - off);
	bool last = rxe_wqe_reads(w) || off + len == w->length;
	u32 got = rxe_wqe_reads(w) ? w->got : 0;
	const u8 *direct = len ? rxe_wqe_direct(rq, w, off, len) : NULL;
	struct wire_packet *p;

	if (!direct && chunk_load(rq, w, off, len)) {
		w->status = HCA_WC_LOC_PROT_ERR;
		return NULL;
	}
	p = rxe_frame(rq->qp, &qp->attr.av, rxe_pkey(qp, qp->attr.pkey_index), opcode_of(rq, w, off, len),
		      qp->attr.dest_qpn, psn, len, last && w->flags & HCA_SEND_SOLICITED, ackreq);
	if (!p)
		return NULL;
	eths_fill(p, w, got, w->length - got);
	if (direct)
		rxe_borrow(p, direct, len);
	else if (len)
		rxe_payload(p, w->chunk, off - w->chunk_off, len);
	return p;
}

static void packet_out(struct rxe_qp *rq, struct wire_packet *p)
{
	const struct hca_qp *qp = rq->qp;

	if (!p)
		return;
	rxe_pace_sent(rq, qp->attr.av.static_rate, p->hdr_len + p->len);
	rxe_send(rq->rxe, qp->attr.port, p);
}

static void send_packet(struct rxe_qp *rq, struct rxe_wqe *w)
{
	bool reads = rxe_wqe_reads(w), last, ackreq;
	u32 mtu = rxe_req_mtu(rq), off, pkts = 1;
	struct wire_packet *p;

	wqe_start(rq, w, mtu);
	off = reads ? 0 : rq->pkt_next * mtu;
	last = reads || rq->pkt_next + 1 == w->npkts;
	ackreq = rq->qp->type == HCA_QPT_RC && !reads && (last || rxe_window_ackreq(rq));
	p = make_packet(rq, w, off, rq->psn, ackreq);
	if (w->status)
		return;
	if (reads) {
		pkts = w->npkts - w->got / mtu;
		rq->rd_out++;
	}
	if (ackreq || reads)
		rxe_window_sent(rq, rq->psn);
	cursor_next(rq, w, pkts);
	if (rq->qp->type == HCA_QPT_UC) {
		rq->una = rq->max_psn;
		if (last) {
			w->state = WQE_DONE;
			rxe_dirty(rq);
		}
	} else if (!loop_timer_armed(&rq->timer)) {
		rxe_window_begin(rq);
		rxe_retry_arm(rq);
	}
	packet_out(rq, p);
}

void rxe_req_ask(struct rxe_qp *rq, const struct rxe_wqe *w, u32 at, u32 n)
{
	const struct hca_qp *qp = rq->qp;
	u32 off = at * rxe_req_mtu(rq), len = min(n * rxe_req_mtu(rq), w->length - off);
	struct wire_packet *p = rxe_frame(rq->qp, &qp->attr.av, rxe_pkey(qp, qp->attr.pkey_index), WIRE_RC_READ_REQUEST,
					  qp->attr.dest_qpn, wire_psn_add(w->first_psn, at), 0, false, false);

	if (p)
		eths_fill(p, w, off, len);
	packet_out(rq, p);
}

/* The missing packet alone. A request that cannot be read any more is found out in its turn. */
static void send_hole(struct rxe_qp *rq)
{
	struct rxe_wqe *w = rxe_retry_find(rq, rq->hole);
	struct wire_packet *p;

	rq->hole_due = false;
	if (!w)
		return;
	p = make_packet(rq, w, (u32)wire_psn_diff(rq->hole, w->first_psn) * rxe_req_mtu(rq), rq->hole, true);
	if (w->status) {
		rxe_retry_from(rq, rq->hole);
		return;
	}
	rq->hole_out = true;
	packet_out(rq, p);
}

static void run_local(struct rxe_qp *rq, struct rxe_wqe *w)
{
	int err = 0;

	if (w->opcode == HCA_WR_LOCAL_INV)
		err = hca_key_invalidate(rq->qp, w->local->rkey, false);
	else if (w->opcode == HCA_WR_BIND_MW)
		err = hca_mw_bind(rq->qp, w->local);
	else if (w->opcode == HCA_WR_REG_MR)
		err = hca_mr_fast_reg(rq->qp, w->local);
	w->npkts = 0;
	w->first_psn = rq->psn;
	if (err) {
		w->status = w->opcode == HCA_WR_BIND_MW ? HCA_WC_MW_BIND_ERR : HCA_WC_LOC_QP_OP_ERR;
		return;
	}
	w->state = WQE_DONE;
	rq->wq_next++;
	rxe_dirty(rq);
}

/* May the request at the cursor go out now? */
static bool may_send(const struct rxe_qp *rq, const struct rxe_wqe *w)
{
	if (rq->qp->type != HCA_QPT_RC)
		return true;
	if (wire_psn_diff(rq->psn, rq->una) >= (s32)rxe_window_size(rq))
		return false;
	if (rxe_wqe_reads(w))
		return rq->rd_out < max(rq->qp->attr.max_rd_atomic, (u8)1);
	return !(w->flags & HCA_SEND_FENCE && !rq->pkt_next && rq->rd_out);
}

bool rxe_req_run(struct rxe_qp *rq)
{
	u32 n;

	for (n = 0; n < RXE_BUDGET; n++) {
		bool fresh = !rq->pkt_next && !rq->hole_due;
		struct rxe_wqe *w;

		if (rq->qp->state != HCA_QPS_RTS && !(rq->qp->state == HCA_QPS_SQD && !fresh))
			return false;
		if (rq->rnr_wait || rxe_blocked(rq->rxe, rq->qp->attr.port) || rxe_pace_wait(rq))
			return false;
		if (rq->hole_due) {
			send_hole(rq);
			continue;
		}
		if (rq->wq_next == rq->wq_head && !rxe_wqes_pull(rq))
			return false;
		w = rxe_wqe_at(rq, rq->wq_next);
		if (w->status) {
			if (rq->wq_tail == rq->wq_next)
				rxe_req_fail(rq, w->status);
			else
				rxe_dirty(rq); /* its turn comes when the earlier ones are completed */
			return false;
		}
		if (!may_send(rq, w))
			return false;
		if (rxe_wqe_local(w)) {
			if (w->flags & HCA_SEND_FENCE && rq->rd_out)
				return false;
			run_local(rq, w);
		} else {
			send_packet(rq, w);
		}
		if (w->status)
			n--; /* looked at again, to fail it */
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

void rxe_req_reset(struct rxe_qp *rq)
{
	loop_timer_cancel(&rq->timer);
	loop_timer_cancel(&rq->pace);
	rq->paced_until = 0;
	rxe_cc_reset(rq);
	for (; rq->wqes && rq->wq_tail != rq->wq_head; rq->wq_tail++)
		rxe_wqe_release(rxe_wqe_at(rq, rq->wq_tail));
	rq->wq_tail = rq->wq_next = rq->wq_head = rq->pkt_next = rq->rd_out = 0;
	rq->rnr_wait = rq->drained = rq->sqd = false;
	rq->hole_due = rq->hole_out = false;
	rq->holds = RXE_HOLDS_UNKNOWN;
	rxe_read_reset(rq);
}

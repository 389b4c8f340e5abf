// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The requester: pulls send requests, cuts them into packets, and completes them by what comes back (9.7.5, 9.8.2).
 *
 * wqes[] is a ring: wq_tail is the oldest request not completed, wq_next the one whose packet pkt_next goes out next,
 * wq_head one past the last pulled. A retry moves wq_next, pkt_next and psn back (go-back-n); what a request has got
 * stays. Completions are given in order, and only by a commit, when the data that they speak of is in place.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/wire/inet.h"
#include "emu/wire/lso.h"
#include "rxe/internal.h"

#define PULL_MAX     64
#define RNR_FOREVER  7
#define PROBE_EVERY  16   /* losses, after which a peer may be one that holds what comes behind a gap */
#define DIRECT_LEAST 1024 /* less is copied as fast as it is looked up */

static struct rxe_wqe *wqe_at(const struct rxe_qp *rq, u32 i)
{
	return &rq->wqes[i % RXE_WQES];
}

static bool wqe_reads(const struct rxe_wqe *w)
{
	return w->opcode >= HCA_WR_RDMA_READ && w->opcode <= HCA_WR_ATOMIC_FETCH_AND_ADD;
}

static bool wqe_local(const struct rxe_wqe *w)
{
	return w->opcode == HCA_WR_LOCAL_INV || w->opcode == HCA_WR_BIND_MW || w->opcode >= HCA_WR_REG_MR;
}

static u32 mtu_of(const struct rxe_qp *rq)
{
	const struct wire_port *port = hca_port(rq->qp->hca, rq->qp->attr.port);

	return wire_mtu_bytes(rq->qp->type == HCA_QPT_UD ? port->attr.mtu_active : rq->qp->attr.path_mtu);
}

static void wqe_release(struct rxe_wqe *w)
{
	wire_buf_put(w->chunk);
	w->chunk = NULL;
	free(w->local);
	w->local = NULL;
}

/* Pulling */

static void wqe_fill(struct rxe_wqe *w, const struct hca_send_wr *wr)
{
	w->token = wr->token;
	w->opcode = wr->opcode;
	w->flags = wr->flags;
	w->state = WQE_POSTED;
	w->num_sge = wr->flags & HCA_SEND_INLINE ? 0 : wr->num_sge;
	w->pkey_index = wr->pkey_index;
	w->imm = wr->imm;
	w->rkey = wr->rkey;
	w->remote_addr = wr->remote_addr;
	w->compare_add = wr->compare_add;
	w->swap = wr->swap;
	w->remote_qpn = wr->remote_qpn;
	w->remote_qkey = wr->remote_qkey;
	w->lso_mss = w->lso_hdr = 0;
	w->av = wr->av;
	w->got = w->chunk_off = w->length = 0;
	w->status = HCA_WC_SUCCESS;
	memcpy(w->sge, wr->sge, w->num_sge * sizeof(w->sge[0]));
}

static u32 sges_length(const struct rxe_wqe *w, bool *too_long)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < w->num_sge; i++)
		sum += w->sge[i].length;
	*too_long = sum > 1u << 31; /* the longest message, 9.7.1 */
	return *too_long ? 0 : (u32)sum;
}

/* Bytes @off.. of the message where they are, of one that is long enough for that; NULL: they have to be read. */
static const u8 *payload_direct(struct rxe_qp *rq, const struct rxe_wqe *w, u32 off, u32 len)
{
	if (w->chunk || w->length < DIRECT_LEAST || rq->qp->type == HCA_QPT_UD)
		return NULL;
	return rxe_sges_direct(rq, w->sge, w->num_sge, off, len, 0);
}

/* Takes the first chunk of the payload along, so that many small messages share one batch of reads. */
static void wqe_load(struct rxe_qp *rq, struct rxe_wqe *w, const struct hca_send_wr *wr)
{
	u32 max = rq->qp->type == HCA_QPT_UD ? mtu_of(rq) : ~0u;
	bool too_long = false;

	w->length = wr->flags & HCA_SEND_INLINE ? wr->inline_len : sges_length(w, &too_long);
	if (wqe_reads(w) && w->opcode != HCA_WR_RDMA_READ)
		too_long |= w->length < 8 || (w->remote_addr & 7);
	if (too_long || w->length > max) {
		w->status = HCA_WC_LOC_LEN_ERR;
		return;
	}
	if (wqe_reads(w)) {
		if (w->opcode != HCA_WR_RDMA_READ)
			w->length = 8;
		return;
	}
	if (!w->length ||
	    (!(wr->flags & HCA_SEND_INLINE) && (w->length > RXE_CHUNK || payload_direct(rq, w, 0, w->length))))
		return;
	w->chunk = wire_buf_alloc(w->length);
	if (!w->chunk)
		w->status = HCA_WC_LOC_QP_OP_ERR;
	else if (wr->flags & HCA_SEND_INLINE)
		memcpy(w->chunk->data, wr->inline_data, w->length);
	else if (rxe_sges_span(rq->qp, w->sge, w->num_sge, 0, w->length, 0, w->chunk->data, false, rq))
		w->status = HCA_WC_LOC_PROT_ERR;
}

/* A packet to be cut: the headers, and behind them all of the payload. */
static void wqe_load_lso(struct rxe_qp *rq, struct rxe_wqe *w, const struct hca_send_wr *wr)
{
	bool too_long;

	w->lso_mss = wr->lso_mss;
	w->lso_hdr = wr->lso_hdr_len;
	w->length = sges_length(w, &too_long);
	if (!wire_lso_valid(wr->inline_data, w->lso_hdr))
		w->status = HCA_WC_LOC_QP_OP_ERR;
	else if (too_long || w->length > RXE_CHUNK || w->lso_hdr + min(w->length, (u32)w->lso_mss) > mtu_of(rq))
		w->status = HCA_WC_LOC_LEN_ERR;
	if (w->status)
		return;
	w->chunk = wire_buf_alloc(w->lso_hdr + w->length);
	if (!w->chunk) {
		w->status = HCA_WC_LOC_QP_OP_ERR;
		return;
	}
	memcpy(w->chunk->data, wr->inline_data, w->lso_hdr);
	if (rxe_sges_span(rq->qp, w->sge, w->num_sge, 0, w->length, 0, w->chunk->data + w->lso_hdr, false, rq))
		w->status = HCA_WC_LOC_PROT_ERR;
}

static void wqe_load_local(struct rxe_wqe *w, const struct hca_send_wr *wr)
{
	w->local = malloc(sizeof(*w->local));
	if (w->local)
		*w->local = *wr;
	else
		w->status = HCA_WC_LOC_QP_OP_ERR;
}

static bool pull(struct rxe_qp *rq)
{
	static struct hca_send_wr wr;
	u32 first = rq->wq_head, n, i;

	for (n = 0; n < PULL_MAX && rq->wq_head - rq->wq_tail < RXE_WQES; n++) {
		int got = hca_next_send(rq->qp, &wr);
		struct rxe_wqe *w;

		if (!got)
			break;
		w = wqe_at(rq, rq->wq_head++);
		wqe_fill(w, &wr);
		if (got < 0)
			w->status = HCA_WC_LOC_QP_OP_ERR;
		else if (wqe_local(w))
			wqe_load_local(w, &wr);
		else if (wr.lso_mss)
			wqe_load_lso(rq, w, &wr);
		else
			wqe_load(rq, w, &wr);
		if (w->status)
			hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_WQE_ERR);
	}
	hca_batch_run(rq->rxe->rd);
	if (rq->read_failed) {
		rq->read_failed = false;
		for (i = first; i != rq->wq_head; i++)
			wqe_at(rq, i)->status = HCA_WC_LOC_PROT_ERR;
	}
	return rq->wq_head != first;
}

/* Completing */

static const u8 wc_opcodes[] = {
	[HCA_WR_RDMA_WRITE] = HCA_WC_RDMA_WRITE,
	[HCA_WR_RDMA_WRITE_WITH_IMM] = HCA_WC_RDMA_WRITE,
	[HCA_WR_SEND] = HCA_WC_SEND,
	[HCA_WR_SEND_WITH_IMM] = HCA_WC_SEND,
	[HCA_WR_RDMA_READ] = HCA_WC_RDMA_READ,
	[HCA_WR_ATOMIC_CMP_AND_SWP] = HCA_WC_COMP_SWAP,
	[HCA_WR_ATOMIC_FETCH_AND_ADD] = HCA_WC_FETCH_ADD,
	[HCA_WR_LOCAL_INV] = HCA_WC_LOCAL_INV,
	[HCA_WR_BIND_MW] = HCA_WC_BIND_MW,
	[HCA_WR_SEND_WITH_INV] = HCA_WC_SEND,
	[HCA_WR_REG_MR] = HCA_WC_REG_MR,
	[HCA_WR_NOP] = HCA_WC_SEND,
};

static void wqe_complete(struct rxe_qp *rq, struct rxe_wqe *w, u8 status)
{
	struct hca_cqe cqe = { .token = w->token, .status = status };

	if (w->opcode < ARRAY_SIZE(wc_opcodes))
		cqe.opcode = wc_opcodes[w->opcode];
	if (w->lso_mss)
		cqe.opcode = HCA_WC_LSO;
	if (wqe_reads(w))
		cqe.byte_len = w->length;
	rq->wq_tail++;
	if (status == HCA_WC_SUCCESS)
		hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_RDMA_SENDS);
	else
		hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_SEND_ERR);
	wqe_release(w);
	hca_send_done(rq->qp); /* first: who sees the completion may post to the slot at once */
	if (status != HCA_WC_SUCCESS || rq->qp->sq_sig_all || w->flags & HCA_SEND_SIGNALED)
		hca_complete_send(rq->qp, &cqe);
}

void rxe_req_complete(struct rxe_qp *rq)
{
	bool any = false;

	while (rq->wq_tail != rq->wq_next && wqe_at(rq, rq->wq_tail)->state == WQE_DONE) {
		wqe_complete(rq, wqe_at(rq, rq->wq_tail), HCA_WC_SUCCESS);
		any = true;
	}
	if (rq->sqd && !rq->drained && rq->wq_tail == rq->wq_next && !rq->pkt_next) {
		rq->drained = true;
		if (rq->qp->attr.en_sqd_async_notify)
			hca_qp_event(rq->qp, HCA_EVENT_SQ_DRAINED);
	}
	if (any)
		rxe_req_kick(rq);
}

void rxe_req_flush(struct rxe_qp *rq)
{
	loop_timer_cancel(&rq->timer);
	while (rq->wqes && rq->wq_tail != rq->wq_head) {
		struct rxe_wqe *w = wqe_at(rq, rq->wq_tail);

		wqe_complete(rq, w, w->state == WQE_DONE ? HCA_WC_SUCCESS : HCA_WC_WR_FLUSH_ERR);
	}
	rq->wq_next = rq->wq_head;
	rq->pkt_next = 0;
	rq->rd_out = 0;
	rq->rnr_wait = false;
}

/* The oldest request fails with @status; what follows is flushed (10.8.2 and table 58: RC errs, UC and UD stop sending). */
static void fail(struct rxe_qp *rq, u8 status)
{
	struct hca_qp *qp = rq->qp;

	hca_batch_run(rq->rxe->wr);
	while (rq->wq_tail != rq->wq_head && wqe_at(rq, rq->wq_tail)->state == WQE_DONE)
		wqe_complete(rq, wqe_at(rq, rq->wq_tail), HCA_WC_SUCCESS);
	if (rq->wq_tail != rq->wq_head)
		wqe_complete(rq, wqe_at(rq, rq->wq_tail), status);
	if (qp->type == HCA_QPT_RC)
		rxe_qp_error(rq, -1);
	else {
		rxe_req_flush(rq);
		hca_qp_fail(qp, HCA_QPS_SQE, -1);
	}
}

/* Retrying */

static void timer_start(struct rxe_qp *rq)
{
	if (rq->qp->attr.timeout)
		loop_timer_set(rq->rxe->loop, &rq->timer, loop_now(rq->rxe->loop).ns + rxe_window_timeout(rq));
}

/* Goes on sending from @psn, which lies in an outstanding request or right behind the last one. */
static void rewind_to(struct rxe_qp *rq, u32 psn)
{
	u32 i;

	rq->hole_due = rq->hole_out = false;
	rq->rd_out = 0;
	for (i = rq->wq_tail; i != rq->wq_head; i++) {
		const struct rxe_wqe *w = wqe_at(rq, i);

		if (w->state == WQE_POSTED)
			break;
		if (w->npkts && w->state == WQE_SENT && wire_psn_diff(psn, wire_psn_add(w->first_psn, w->npkts)) < 0)
			break;
		rq->rd_out += w->state == WQE_SENT && wqe_reads(w);
	}
	rq->wq_next = i;
	rq->pkt_next = 0;
	rq->psn = psn;
	if (i != rq->wq_head && wqe_at(rq, i)->state == WQE_SENT) {
		const struct rxe_wqe *w = wqe_at(rq, i);

		if (wqe_reads(w))
			rq->psn = wire_psn_add(w->first_psn, w->got / mtu_of(rq));
		else
			rq->pkt_next = (u32)wire_psn_diff(psn, w->first_psn);
	}
	rxe_req_kick(rq);
}

/* The SEND or WRITE that @psn belongs to, which was sent and is not acknowledged. */
static struct rxe_wqe *sent_wqe(const struct rxe_qp *rq, u32 psn)
{
	u32 i;

	for (i = rq->wq_tail; i != rq->wq_head; i++) {
		struct rxe_wqe *w = wqe_at(rq, i);
		s32 into = wire_psn_diff(psn, w->first_psn);

		if (w->state == WQE_POSTED)
			break;
		if (w->state == WQE_SENT && into >= 0 && into < (s32)w->npkts)
			return wqe_reads(w) ? NULL : w;
	}
	return NULL;
}

/*
 * What is lost is sent again: the packet alone, if the responder holds what came behind it or may do so, else all from there on.
 * Whether it does is seen when the packet is acknowledged, alone or with those behind it. READs are always asked for again.
 */
static void resend(struct rxe_qp *rq, u32 psn)
{
	if (!rq->win.on || rq->holds == RXE_HOLDS_NOT || psn != rq->una || rq->psn != rq->max_psn || rq->rd_out ||
	    !sent_wqe(rq, psn)) {
		rewind_to(rq, psn);
		return;
	}
	rq->hole = psn;
	rq->hole_due = true;
	rxe_req_kick(rq);
}

/* Everything before rq->una is acknowledged, by an ACK or a NAK: what does that tell of a packet that was sent again alone? */
static void hole_settle(struct rxe_qp *rq, bool nak)
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
		rewind_to(rq, rq->una);
}

static void retry(struct rxe_qp *rq, u32 psn)
{
	hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_COMPLETER_RETRY);
	if (!rq->retries && rq->qp->attr.path_mig_state == HCA_MIG_ARMED) { /* 17.2.8: before the QP gives up */
		rxe_migrate(rq);
		rewind_to(rq, psn);
		return;
	}
	if (!rq->retries) {
		hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_RETRY_EXCEEDED);
		fail(rq, HCA_WC_RETRY_EXC_ERR);
		return;
	}
	rq->retries--;
	resend(rq, psn);
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
		timer_start(rq);
		if (rq->holds == RXE_HOLDS && !rq->hole_out)
			resend(rq, rq->una);
		else
			rewind_to(rq, rq->una);
		return;
	}
	hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_LOCAL_ACK_TIMEOUT);
	timer_start(rq);
	rq->hole_out = false;
	if (rq->holds == RXE_HOLDS_UNKNOWN)
		rq->holds = RXE_HOLDS_NOT;
	retry(rq, rq->una);
}

/* Sending */

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
	int kind = wqe_reads(w) || (first && last) ? PKT_ONLY : first ? PKT_FIRST : last ? PKT_LAST : PKT_MIDDLE;

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

static void eths_fill(struct rxe_qp *rq, struct wire_packet *p, const struct rxe_wqe *w, u32 got)
{
	const struct wire_opcode *op = wire_opcode(p->hdr[p->bth_off]);

	if (op->eths & BIT(WIRE_ETH_RETH)) {
		struct wire_reth *h = rxe_eth(p, WIRE_ETH_RETH);

		h->va = cpu_to_be64(w->remote_addr + got);
		h->rkey = cpu_to_be32(w->rkey);
		h->dmalen = cpu_to_be32(w->length - got);
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
	if (wqe_reads(w) || rq->pkt_next >= w->npkts) {
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
	u32 len = wqe_reads(w) ? 0 : min(mtu_of(rq), w->length - off);
	bool last = wqe_reads(w) || off + len == w->length;
	const u8 *direct = len ? payload_direct(rq, w, off, len) : NULL;
	struct wire_packet *p;

	if (!direct && chunk_load(rq, w, off, len)) {
		w->status = HCA_WC_LOC_PROT_ERR;
		return NULL;
	}
	p = rxe_frame(rq->qp, &qp->attr.av, rxe_pkey(qp, qp->attr.pkey_index), opcode_of(rq, w, off, len),
		      qp->attr.dest_qpn, psn, len, last && w->flags & HCA_SEND_SOLICITED, ackreq);
	if (!p)
		return NULL;
	eths_fill(rq, p, w, wqe_reads(w) ? w->got : 0);
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
	bool reads = wqe_reads(w), last, ackreq;
	u32 mtu = mtu_of(rq), off, pkts = 1;
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
		timer_start(rq);
	}
	packet_out(rq, p);
}

/* The missing packet alone. A request that cannot be read any more is found out in its turn. */
static void send_hole(struct rxe_qp *rq)
{
	struct rxe_wqe *w = sent_wqe(rq, rq->hole);
	struct wire_packet *p;

	rq->hole_due = false;
	if (!w)
		return;
	p = make_packet(rq, w, (u32)wire_psn_diff(rq->hole, w->first_psn) * mtu_of(rq), rq->hole, true);
	if (w->status) {
		rewind_to(rq, rq->hole);
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
	if (wqe_reads(w))
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
		if (rq->wq_next == rq->wq_head && !pull(rq))
			return false;
		w = wqe_at(rq, rq->wq_next);
		if (w->status) {
			if (rq->wq_tail == rq->wq_next)
				fail(rq, w->status);
			else
				rxe_dirty(rq); /* its turn comes when the earlier ones are completed */
			return false;
		}
		if (!may_send(rq, w))
			return false;
		if (wqe_local(w)) {
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

/* Responses */

static void progress(struct rxe_qp *rq, u32 una)
{
	if (wire_psn_diff(una, rq->una) <= 0)
		return;
	rxe_window_acked(rq, una, (u32)wire_psn_diff(una, rq->una));
	rq->una = una;
	rq->retries = rq->qp->attr.retry_cnt;
	rq->rnr_retries = rq->qp->attr.rnr_retry;
	if (wire_psn_diff(rq->una, rq->psn) > 0)
		rewind_to(rq, rq->una); /* an ACK for what a retry was about to repeat */
	if (rq->rnr_wait)
		return;
	if (rq->una == rq->max_psn)
		loop_timer_cancel(&rq->timer);
	else
		timer_start(rq);
}

/* Everything up to @psn is acknowledged. False: a READ or atomic below it has no response, and is asked for again. */
static bool ack_to(struct rxe_qp *rq, u32 psn)
{
	u32 i;

	for (i = rq->wq_tail; i != rq->wq_head; i++) {
		struct rxe_wqe *w = wqe_at(rq, i);

		if (w->state == WQE_POSTED ||
		    wire_psn_diff(wire_psn_add(w->first_psn, w->npkts), wire_psn_add(psn, 1)) > 0)
			break;
		if (w->state == WQE_DONE)
			continue;
		if (wqe_reads(w)) {
			progress(rq, wire_psn_add(w->first_psn, w->got / mtu_of(rq)));
			retry(rq, rq->una);
			return false;
		}
		w->state = WQE_DONE;
	}
	progress(rq, wire_psn_add(psn, 1));
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
		fail(rq, HCA_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (rq->rnr_retries != RNR_FOREVER)
		rq->rnr_retries--;
	rewind_to(rq, psn);
	rq->rnr_wait = true;
	loop_timer_set(rq->rxe->loop, &rq->timer, loop_now(rq->rxe->loop).ns + wire_rnr_timer_ns(code));
}

static void on_nak(struct rxe_qp *rq, u32 psn, u8 syndrome)
{
	u8 code = wire_aeth_value(syndrome), before = rq->rnr_retries;

	if (psn != rq->una && !ack_to(rq, wire_psn_add(psn, WIRE_PSN_MASK)))
		return;
	hole_settle(rq, true);
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
		retry(rq, psn);
		return;
	}
	if (code < ARRAY_SIZE(nak_status))
		fail(rq, nak_status[code]);
	else
		fail(rq, HCA_WC_BAD_RESP_ERR);
}

static struct rxe_wqe *oldest_read(struct rxe_qp *rq)
{
	u32 i;

	for (i = rq->wq_tail; i != rq->wq_head; i++) {
		struct rxe_wqe *w = wqe_at(rq, i);

		if (w->state == WQE_POSTED)
			return NULL;
		if (w->state == WQE_SENT && wqe_reads(w))
			return w;
	}
	return NULL;
}

static void read_done(struct rxe_qp *rq, struct rxe_wqe *w)
{
	w->state = WQE_DONE;
	if (rq->rd_out)
		rq->rd_out--;
	progress(rq, wire_psn_add(w->first_psn, w->npkts));
	rxe_dirty(rq);
	rxe_req_kick(rq);
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
	rxe_hold(rq->rxe, buf);
	wire_buf_put(buf);
	if (err)
		fail(rq, HCA_WC_LOC_PROT_ERR);
	else
		read_done(rq, w);
}

u32 rxe_req_place(struct rxe_qp *rq, u32 psn, u32 n, u32 len, u8 **at)
{
	const struct rxe_wqe *w = rq->wqes && rq->qp->state >= HCA_QPS_RTS ? oldest_read(rq) : NULL;

	if (!w || w->opcode != HCA_WR_RDMA_READ || w->length - w->got <= len ||
	    psn != wire_psn_add(w->first_psn, w->got / len) || wire_psn_diff(psn, rq->una) < 0)
		return 0;
	n = min(n, (w->length - w->got - 1) / len);
	*at = rxe_sges_direct(rq, w->sge, w->num_sge, w->got, n * len, HCA_ACCESS_LOCAL_WRITE);
	return *at ? n : 0;
}

static bool in_place(struct rxe_qp *rq, const struct rxe_wqe *w, const struct wire_packet *p)
{
	return p->flags & WIRE_PKT_BORROWED &&
	       p->data == rxe_sges_direct(rq, w->sge, w->num_sge, w->got, p->len, HCA_ACCESS_LOCAL_WRITE);
}

static void on_read(struct rxe_qp *rq, struct rxe_wqe *w, struct wire_packet *p, const struct wire_opcode *op)
{
	u32 left = w->length - w->got, mtu = mtu_of(rq), want = op->flags & WIRE_OPF_END ? left : mtu;

	if (p->len != want || (!(op->flags & WIRE_OPF_END) && left <= mtu) || want > mtu) {
		fail(rq, HCA_WC_BAD_RESP_ERR);
		return;
	}
	if (p->len && !in_place(rq, w, p)) {
		int err = rxe_sges_span(rq->qp, w->sge, w->num_sge, w->got, p->len, HCA_ACCESS_LOCAL_WRITE,
					(void *)(uintptr_t)p->data, true, rq);

		if (err) {
			fail(rq, HCA_WC_LOC_PROT_ERR);
			return;
		}
		rxe_hold_payload(rq->rxe, p);
		rq->rxe->wr_bytes += p->len;
	}
	w->got += p->len;
	if (op->flags & WIRE_OPF_END) {
		read_done(rq, w);
		return;
	}
	progress(rq, wire_psn_add(w->first_psn, w->got / mtu));
	rxe_dirty(rq);
}

void rxe_req_response(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	u32 psn = wire_bth_psn((struct wire_bth *)(p->hdr + p->bth_off)), expected;
	struct rxe_wqe *w;
	u8 syndrome = WIRE_AETH_ACK;

	if (rq->qp->state < HCA_QPS_RTS || rq->qp->state > HCA_QPS_SQD || !rq->wqes)
		return;
	if (wire_psn_diff(psn, rq->una) < 0 || wire_psn_diff(psn, rq->max_psn) >= 0)
		return; /* a ghost or a duplicate (9.7.5.1.1) */
	if (op->flags & WIRE_OPF_ACK)
		syndrome = wire_aeth_syndrome(rxe_eth(p, WIRE_ETH_AETH));
	if (wire_aeth_type(syndrome) != WIRE_AETH_ACK) {
		on_nak(rq, psn, syndrome);
		return;
	}
	if (op->op == WIRE_RC_ACK) {
		if (ack_to(rq, psn))
			hole_settle(rq, false);
		return;
	}
	/* A READ or atomic response also acknowledges every earlier request. */
	w = oldest_read(rq);
	if (!w)
		return;
	expected = wire_psn_add(w->first_psn, w->got / mtu_of(rq));
	if (psn != expected) {
		if (wire_psn_diff(psn, expected) <= 0 || rq->psn != rq->max_psn || rq->win.gap)
			return;
		rq->win.gap = rq->win.on; /* more of the same flight will come */
		rxe_window_lost(rq);
		retry(rq, expected);
		return;
	}
	if (psn != rq->una && !ack_to(rq, wire_psn_add(psn, WIRE_PSN_MASK)))
		return;
	if (op->flags & WIRE_OPF_ATOMIC && w->opcode != HCA_WR_RDMA_READ)
		on_atomic(rq, w, p);
	else if (op->flags & WIRE_OPF_READ && w->opcode == HCA_WR_RDMA_READ)
		on_read(rq, w, p, op);
	else
		fail(rq, HCA_WC_BAD_RESP_ERR);
}

void rxe_req_reset(struct rxe_qp *rq)
{
	loop_timer_cancel(&rq->timer);
	loop_timer_cancel(&rq->pace);
	rq->paced_until = 0;
	rxe_cc_reset(rq);
	for (; rq->wqes && rq->wq_tail != rq->wq_head; rq->wq_tail++)
		wqe_release(wqe_at(rq, rq->wq_tail));
	rq->wq_tail = rq->wq_next = rq->wq_head = rq->pkt_next = rq->rd_out = 0;
	rq->rnr_wait = rq->drained = rq->sqd = false;
	rq->hole_due = rq->hole_out = false;
	rq->holds = RXE_HOLDS_UNKNOWN;
}

/* Datagrams: each request is one packet, or one that is cut, and complete when all of it has left (9.8.4). */

static u32 ud_qkey(const struct hca_qp *qp, u32 qkey)
{
	return qkey & 0x80000000u ? qp->attr.qkey : qkey; /* 10.2.5: a controlled Q_Key is the QP's own */
}

/* The payload of the packet at the cursor; NULL: it is empty, or there is no memory and it is as good as lost. */
static struct wire_buf *ud_payload(const struct rxe_qp *rq, const struct rxe_wqe *w)
{
	if (w->lso_mss)
		return wire_lso_segment(w->chunk->data, w->lso_hdr, w->length, w->lso_mss, rq->pkt_next);
	if (w->chunk && w->flags & HCA_SEND_IP_CSUM)
		wire_inet_fill(w->chunk->data, w->length);
	return w->chunk ? wire_buf_get(w->chunk) : NULL;
}

static void ud_next(struct rxe_qp *rq, struct rxe_wqe *w)
{
	rq->psn = wire_psn_add(rq->psn, 1);
	rq->pkt_next++;
	if (w->lso_mss && rq->pkt_next * w->lso_mss < w->length)
		return;
	w->state = WQE_DONE;
	rq->wq_next++;
	rq->pkt_next = 0;
	rxe_dirty(rq);
}

static void ud_send(struct rxe_qp *rq, struct rxe_wqe *w)
{
	struct hca_qp *qp = rq->qp;
	bool imm = w->opcode == HCA_WR_SEND_WITH_IMM;
	struct wire_buf *buf = ud_payload(rq, w);
	u32 len = buf ? buf->size : 0;
	struct wire_packet *p;

	p = rxe_frame(qp, &w->av, rxe_pkey(qp, qp->attr.pkey_index), imm ? WIRE_UD_SEND_ONLY_IMM : WIRE_UD_SEND_ONLY,
		      w->remote_qpn, rq->psn, len, w->flags & HCA_SEND_SOLICITED, false);
	ud_next(rq, w);
	if (p && len)
		rxe_payload(p, buf, 0, len);
	wire_buf_put(buf);
	if (!p)
		return;
	wire_deth_fill(rxe_eth(p, WIRE_ETH_DETH), ud_qkey(qp, w->remote_qkey), qp->src_qpn);
	if (imm)
		((struct wire_immdt *)rxe_eth(p, WIRE_ETH_IMMDT))->imm = cpu_to_be32(w->imm);
	if (w->remote_qpn == RXE_QPN_MULTICAST)
		rxe_ud_loop_back(rq, p, wire_opcode(p->hdr[p->bth_off]));
	rxe_pace_sent(rq, w->av.static_rate, p->hdr_len + p->len);
	rxe_send(rq->rxe, qp->attr.port, p);
}

bool rxe_ud_run(struct rxe_qp *rq)
{
	u32 n;

	for (n = 0; n < RXE_BUDGET; n++) {
		struct rxe_wqe *w;

		if (rq->qp->state != HCA_QPS_RTS && !(rq->qp->state == HCA_QPS_SQD && rq->pkt_next))
			return false;
		if (rxe_blocked(rq->rxe, rq->qp->attr.port) || rxe_pace_wait(rq))
			return false;
		if (rq->wq_next == rq->wq_head && !pull(rq))
			return false;
		w = wqe_at(rq, rq->wq_next);
		if (w->status) {
			if (rq->wq_tail != rq->wq_next)
				rxe_req_complete(rq);
			fail(rq, w->status);
			return false;
		}
		ud_send(rq, w);
	}
	return true;
}

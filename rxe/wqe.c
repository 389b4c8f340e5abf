// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The send requests of a queue pair: pulled with what they carry, and completed in their order. */
#include <stdlib.h>

#include "emu/wire/lso.h"
#include "rxe/request.h"

#define PULL_MAX     64
#define DIRECT_LEAST 1024 /* less is copied as fast as it is looked up */

void rxe_wqe_release(struct rxe_wqe *w)
{
	wire_buf_put(w->chunk);
	w->chunk = NULL;
	free(w->local);
	w->local = NULL;
}

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

const u8 *rxe_wqe_direct(struct rxe_qp *rq, const struct rxe_wqe *w, u32 off, u32 len)
{
	if (w->chunk || w->length < DIRECT_LEAST || rq->qp->type == HCA_QPT_UD)
		return NULL;
	return rxe_sges_direct(rq, w->sge, w->num_sge, off, len, 0);
}

/* Takes the first chunk of the payload along, so that many small messages share one batch of reads. */
static void wqe_load(struct rxe_qp *rq, struct rxe_wqe *w, const struct hca_send_wr *wr)
{
	u32 max = rq->qp->type == HCA_QPT_UD ? rxe_req_mtu(rq) : ~0u;
	bool too_long = false;

	w->length = wr->flags & HCA_SEND_INLINE ? wr->inline_len : sges_length(w, &too_long);
	if (rxe_wqe_reads(w) && w->opcode != HCA_WR_RDMA_READ)
		too_long |= w->length < 8 || (w->remote_addr & 7);
	if (too_long || w->length > max) {
		w->status = HCA_WC_LOC_LEN_ERR;
		return;
	}
	if (rxe_wqe_reads(w)) {
		if (w->opcode != HCA_WR_RDMA_READ)
			w->length = 8;
		return;
	}
	if (!w->length ||
	    (!(wr->flags & HCA_SEND_INLINE) && (w->length > RXE_CHUNK || rxe_wqe_direct(rq, w, 0, w->length))))
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
	else if (too_long || w->length > RXE_CHUNK || w->lso_hdr + min(w->length, (u32)w->lso_mss) > rxe_req_mtu(rq))
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

bool rxe_wqes_pull(struct rxe_qp *rq)
{
	static struct hca_send_wr wr;
	u32 first = rq->wq_head, n, i;

	for (n = 0; n < PULL_MAX && rq->wq_head - rq->wq_tail < RXE_WQES; n++) {
		int got = hca_next_send(rq->qp, &wr);
		struct rxe_wqe *w;

		if (!got)
			break;
		w = rxe_wqe_at(rq, rq->wq_head++);
		wqe_fill(w, &wr);
		if (got < 0)
			w->status = HCA_WC_LOC_QP_OP_ERR;
		else if (rxe_wqe_local(w))
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
			rxe_wqe_at(rq, i)->status = HCA_WC_LOC_PROT_ERR;
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
	if (rxe_wqe_reads(w))
		cqe.byte_len = w->length;
	rq->wq_tail++;
	if (status == HCA_WC_SUCCESS)
		hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_RDMA_SENDS);
	else
		hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_SEND_ERR);
	rxe_wqe_release(w);
	hca_send_done(rq->qp); /* first: who sees the completion may post to the slot at once */
	if (status != HCA_WC_SUCCESS || rq->qp->sq_sig_all || w->flags & HCA_SEND_SIGNALED)
		hca_complete_send(rq->qp, &cqe);
}

void rxe_req_complete(struct rxe_qp *rq)
{
	bool any = false;

	while (rq->wq_tail != rq->wq_next && rxe_wqe_at(rq, rq->wq_tail)->state == WQE_DONE) {
		wqe_complete(rq, rxe_wqe_at(rq, rq->wq_tail), HCA_WC_SUCCESS);
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
		struct rxe_wqe *w = rxe_wqe_at(rq, rq->wq_tail);

		wqe_complete(rq, w, w->state == WQE_DONE ? HCA_WC_SUCCESS : HCA_WC_WR_FLUSH_ERR);
	}
	rq->wq_next = rq->wq_head;
	rq->pkt_next = 0;
	rq->rd_out = 0;
	rq->rnr_wait = false;
	rxe_read_reset(rq);
}

void rxe_req_fail(struct rxe_qp *rq, u8 status)
{
	struct hca_qp *qp = rq->qp;

	hca_batch_run(rq->rxe->wr);
	while (rq->wq_tail != rq->wq_head && rxe_wqe_at(rq, rq->wq_tail)->state == WQE_DONE)
		wqe_complete(rq, rxe_wqe_at(rq, rq->wq_tail), HCA_WC_SUCCESS);
	if (rq->wq_tail != rq->wq_head)
		wqe_complete(rq, rxe_wqe_at(rq, rq->wq_tail), status);
	if (qp->type == HCA_QPT_RC)
		rxe_qp_error(rq, -1);
	else {
		rxe_req_flush(rq);
		hca_qp_fail(qp, HCA_QPS_SQE, -1);
	}
}

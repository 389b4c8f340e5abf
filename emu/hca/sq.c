// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Send queue (IBTA 10.8): fetches send requests, validates them by transport service and opcode, executes local
 * operations, and completes in order.
 */
#include <stdlib.h>

#include "emu/hca/hca_internal.h"
#include "emu/lib/poison.h"

#define RC    (BIT(HCA_QPT_RC) | BIT(HCA_QPT_XRC_INI))
#define UC    BIT(HCA_QPT_UC)
#define DG    (BIT(HCA_QPT_UD) | BIT(HCA_QPT_SMI) | BIT(HCA_QPT_GSI))
#define IWARP BIT(HCA_QPT_UD + 1) /* RC queue pairs over RDMAP, which has no immediate data and no atomics */

const struct hca_operation hca_operations[HCA_WR_OPCODES] = {
	[HCA_WR_RDMA_WRITE] = { RC | UC | IWARP, HCA_WC_RDMA_WRITE },
	[HCA_WR_RDMA_WRITE_WITH_IMM] = { RC | UC, HCA_WC_RDMA_WRITE },
	[HCA_WR_SEND] = { RC | UC | DG | IWARP, HCA_WC_SEND },
	[HCA_WR_SEND_WITH_IMM] = { RC | UC | DG, HCA_WC_SEND },
	[HCA_WR_RDMA_READ] = { RC | IWARP, HCA_WC_RDMA_READ, .response = true },
	[HCA_WR_ATOMIC_CMP_AND_SWP] = { RC, HCA_WC_COMP_SWAP, .response = true },
	[HCA_WR_ATOMIC_FETCH_AND_ADD] = { RC, HCA_WC_FETCH_ADD, .response = true },
	[HCA_WR_LOCAL_INV] = { RC | UC | IWARP, HCA_WC_LOCAL_INV, .local = true },
	[HCA_WR_BIND_MW] = { RC | UC | IWARP, HCA_WC_BIND_MW, .local = true },
	[HCA_WR_SEND_WITH_INV] = { RC | IWARP, HCA_WC_SEND },
	[HCA_WR_REG_MR] = { RC | UC | IWARP, HCA_WC_REG_MR, .local = true },
	[HCA_WR_NOP] = { RC | UC | DG | IWARP, HCA_WC_SEND, .local = true },
};

static bool send_valid(const struct hca_qp *qp, const struct hca_send_wr *wr)
{
	bool iwarp = hca_iw(qp->hca), dg = DG & BIT(qp->type);
	u32 service = iwarp ? IWARP : BIT(qp->type);

	if (wr->opcode >= HCA_WR_OPCODES || !(hca_operations[wr->opcode].services & service))
		return false;
	if (wr->lso_mss &&
	    (wr->lso_hdr_len > HCA_MAX_INLINE || !dg || wr->opcode != HCA_WR_SEND || wr->flags & HCA_SEND_INLINE))
		return false;
	if (wr->flags & HCA_SEND_INLINE &&
	    (wr->inline_len > qp->max_inline || wr->inline_len > HCA_MAX_INLINE || hca_operations[wr->opcode].response))
		return false;
	if (iwarp && wr->opcode == HCA_WR_RDMA_READ && wr->num_sge > 1) /* one data sink (RFC 5040, 4.4) */
		return false;
	if (qp->type == HCA_QPT_UD && !hca_operations[wr->opcode].local && wr->av.port != qp->attr.port)
		return false;
	return wr->num_sge <= qp->max_send_sge && wr->num_sge <= HCA_MAX_SGE;
}

int hca_next_send(struct hca_qp *qp, struct hca_send_wr *wr)
{
	int n;

	/* The orderly close of iWARP sends what was posted before SQD. */
	if (unlikely(qp->state != HCA_QPS_RTS) && (qp->state != HCA_QPS_SQD || !hca_iw(qp->hca)))
		return 0;
	if (hca_faulty(qp->hca) && hca_fault_stuck(qp))
		return 0;
	n = qp->ops->next_send(qp->fe, wr);
	if (n > 0 && hca_faulty(qp->hca))
		hca_fault_sent(qp, wr);
	if (likely(n == 0 || (n > 0 && send_valid(qp, wr))))
		return n;
	hca_qp_count(qp, HCA_CNT_WQE_ERR);
	return -EINVAL;
}

void hca_send_done(struct hca_qp *qp)
{
	if (qp->ops->send_done)
		qp->ops->send_done(qp->fe);
}

int hca_sq_alloc(struct hca_sq *sq)
{
	if (sq->wqes)
		return 0;
	sq->wqes = calloc(HCA_SQ_WQES, sq->wqe_size);
	if (!sq->wqes)
		return -ENOMEM;
	poison(sq->wqes, (size_t)HCA_SQ_WQES * sq->wqe_size);
	return 0;
}

static void wqe_release(struct hca_sq *sq, struct hca_wqe *w)
{
	if (sq->release)
		sq->release(sq->qp, w);
	free(w->copy);
	poison(w, sq->wqe_size);
}

void hca_sq_reset(struct hca_sq *sq)
{
	for (; sq->tail != sq->head; sq->tail++)
		wqe_release(sq, hca_sq_at(sq, sq->tail));
	sq->tail = sq->head = 0;
}

void hca_sq_free(struct hca_sq *sq)
{
	hca_sq_reset(sq);
	free(sq->wqes);
	sq->wqes = NULL;
}

static void wqe_fill(struct hca_sq *sq, struct hca_wqe *w, const struct hca_send_wr *wr)
{
	bool in = wr->flags & HCA_SEND_INLINE, copy;
	u64 length = in ? wr->inline_len : 0;
	u32 i;

	w->head = in && wr->num_sge ? wr->inline_len : 0;
	w->opcode = wr->opcode;
	w->flags = wr->flags;
	w->lso = wr->lso_mss;
	w->imm = wr->imm;
	w->rkey = wr->rkey;
	w->remote_addr = wr->remote_addr;
	w->compare_add = wr->compare_add;
	w->swap = wr->swap;
	w->num_sge = wr->num_sge;
	for (i = 0; i < w->num_sge; i++) {
		w->sge[i] = wr->sge[i];
		length += wr->sge[i].length;
	}
	w->length = (u32)min(length, (u64)HCA_MESSAGE_MAX);
	copy = hca_wqe_local(w) || (in && sq->keep_inline) || w->head;
	if (length > HCA_MESSAGE_MAX)
		w->status = HCA_WC_LOC_LEN_ERR;
	else if (copy && !(w->copy = malloc(sizeof(*w->copy))))
		w->status = HCA_WC_LOC_QP_OP_ERR;
	else if (copy)
		*w->copy = *wr;
	if (w->status)
		hca_qp_count(sq->qp, HCA_CNT_WQE_ERR);
}

struct hca_wqe *hca_sq_fetch(struct hca_sq *sq, struct hca_send_wr *wr)
{
	struct hca_wqe *w;
	int got;

	if (sq->head - sq->tail == HCA_SQ_WQES)
		return NULL;
	got = hca_next_send(sq->qp, wr);
	if (!got)
		return NULL;
	w = hca_sq_at(sq, sq->head++);
	unpoison(w, sq->wqe_size);
	w->token = wr->token;
	w->state = HCA_WQE_POSTED;
	w->copy = NULL;
	if (likely(got > 0)) {
		w->status = HCA_WC_SUCCESS;
		wqe_fill(sq, w, wr);
	} else {
		w->status = HCA_WC_LOC_QP_OP_ERR;
		w->opcode = wr->opcode < HCA_WR_OPCODES ? wr->opcode : HCA_WR_SEND;
		w->flags = 0;
		w->num_sge = w->length = w->head = w->lso = 0;
	}
	return w;
}

void hca_sq_run_local(struct hca_sq *sq, struct hca_wqe *w)
{
	int err = 0;

	if (w->opcode == HCA_WR_LOCAL_INV)
		err = hca_key_invalidate(sq->qp, w->copy->rkey, false);
	else if (w->opcode == HCA_WR_BIND_MW)
		err = hca_mw_bind(sq->qp, w->copy);
	else if (w->opcode == HCA_WR_REG_MR)
		err = hca_mr_fast_reg(sq->qp, w->copy);
	if (err)
		w->status = w->opcode == HCA_WR_BIND_MW ? HCA_WC_MW_BIND_ERR : HCA_WC_LOC_QP_OP_ERR;
	else
		w->state = HCA_WQE_DONE;
}

/* Completes the oldest request. Its slot is free before the consumer can see the completion. */
static void sq_complete_oldest(struct hca_sq *sq, u8 status)
{
	struct hca_wqe *w = hca_sq_at(sq, sq->tail++);
	struct hca_cqe cqe = {
		.token = w->token,
		.status = status,
		.opcode = w->lso ? HCA_WC_LSO : hca_operations[w->opcode].completion,
		.byte_len = hca_wqe_reads(w) ? w->length : 0,
	};
	u8 opcode = w->opcode;
	bool signaled = status != HCA_WC_SUCCESS || sq->qp->sq_sig_all || w->flags & HCA_SEND_SIGNALED;

	hca_qp_count(sq->qp, status == HCA_WC_SUCCESS ? HCA_CNT_RDMA_SENDS : HCA_CNT_SEND_ERR);
	wqe_release(sq, w);
	hca_send_done(sq->qp);
	if (signaled)
		hca_complete_send(sq->qp, &cqe, opcode);
}

u32 hca_sq_complete(struct hca_sq *sq, u32 end)
{
	u32 n = 0;

	for (; sq->tail != end; n++) {
		const struct hca_wqe *w = hca_sq_at(sq, sq->tail);

		if (w->state != HCA_WQE_DONE || w->status)
			break;
		sq_complete_oldest(sq, HCA_WC_SUCCESS);
	}
	return n;
}

void hca_sq_flush(struct hca_sq *sq, u8 status)
{
	bool failed = false;

	while (sq->tail != sq->head) {
		const struct hca_wqe *w = hca_sq_at(sq, sq->tail);
		u8 s = failed ? HCA_WC_WR_FLUSH_ERR : w->state == HCA_WQE_DONE ? w->status : status;

		failed |= s != HCA_WC_SUCCESS;
		sq_complete_oldest(sq, s);
	}
}

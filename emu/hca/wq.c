// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Work queues (IBTA 10.8): receive requests of the front end, and flush of both queues in error states. */
#include <errno.h>

#include "emu/hca/hca_internal.h"

#define FLUSH_MAX 512 /* work requests of a context flushed per iteration of the loop */

/* The slot of a shared queue is free once its request has been copied: the QPs that share it finish in any order. */
static int next_shared(struct hca_srq *srq, struct hca_recv_wr *wr)
{
	int n = srq->attr.error ? 0 : srq->ops->next_recv(srq->fe, wr);

	if (!n)
		return 0;
	if (srq->ops->recv_done)
		srq->ops->recv_done(srq->fe);
	hca_srq_check_limit(srq);
	return n;
}

int hca_next_recv(struct hca_qp *qp, struct hca_recv_wr *wr)
{
	u32 max_sge = qp->srq ? qp->srq->attr.max_sge : qp->max_recv_sge;
	int n;

	if (unlikely(qp->state < HCA_QPS_RTR || qp->state == HCA_QPS_ERR))
		return 0;
	if (hca_faulty(qp->hca) && !hca_fault_recv(qp))
		return 0;
	n = qp->srq ? next_shared(qp->srq, wr) : qp->ops->next_recv(qp->fe, wr);
	if (unlikely(!n && qp->srq && qp->srq->attr.error))
		hca_qp_fail_later(qp);
	if (likely(n == 0 || (n > 0 && wr->num_sge <= max_sge && wr->num_sge <= HCA_MAX_SGE)))
		return n;
	hca_qp_count(qp, HCA_CNT_WQE_ERR);
	return -EINVAL;
}

void hca_qp_catastrophic(struct hca_ctx *ctx, u32 qpn)
{
	struct hca_qp *qp = hca_qp_get(ctx, qpn);

	if (qp && qp->state != HCA_QPS_RESET && qp->state != HCA_QPS_ERR)
		hca_qp_fail_later(qp);
}

void hca_recv_done(struct hca_qp *qp)
{
	if (!qp->srq && qp->ops->recv_done)
		qp->ops->recv_done(qp->fe);
}

/*
 * A ring in shared memory may be long, and be refilled while it is flushed: FLUSH_MAX limits the requests flushed for
 * a context per iteration of the loop, and the flush continues in the next one.
 */
static bool flush_more(struct hca_qp *qp)
{
	struct hca_ctx *ctx = qp->ctx;
	u64 now = loop_now(ctx->hca->loop).ns;

	if (ctx->flush_turn != now) {
		ctx->flush_turn = now;
		ctx->flushed = 0;
	}
	if (ctx->flushed < FLUSH_MAX)
		return true;
	if (list_empty(&hca_qp_priv(qp)->flushing))
		list_add(&ctx->flushing, &hca_qp_priv(qp)->flushing);
	loop_task_queue(ctx->hca->loop, &ctx->flush_task);
	return false;
}

void hca_ctx_flush_run(struct loop_task *t, struct now now)
{
	struct hca_ctx *ctx = container_of(t, struct hca_ctx, flush_task);
	struct list batch;

	ctx->flushed = 0;
	list_init(&batch);
	list_splice(&batch, &ctx->flushing);
	while (!list_empty(&batch)) {
		struct hca_qp_priv *priv = list_first(&batch, struct hca_qp_priv, flushing);

		list_del(&priv->flushing);
		hca_qp_flush(&priv->qp);
		if (ctx->flushed >= FLUSH_MAX) {
			list_splice(&ctx->flushing, &batch);
			break;
		}
	}
}

static u32 flush_sends(struct hca_qp *qp)
{
	struct hca_send_wr wr;
	u32 n = 0;

	while (flush_more(qp)) {
		struct hca_cqe cqe = { .status = HCA_WC_WR_FLUSH_ERR };

		wr.token = 0;
		wr.opcode = HCA_WR_SEND;
		if (!qp->ops->next_send(qp->fe, &wr))
			break;
		qp->ctx->flushed++;
		cqe.token = wr.token;
		if (wr.opcode < HCA_WR_OPCODES)
			cqe.opcode = hca_operations[wr.opcode].completion;
		hca_send_done(qp);
		hca_complete_send(qp, &cqe, wr.opcode);
		n++;
	}
	return n;
}

/* Receives of an SRQ are not flushed: other QPs use them. */
static u32 flush_recvs(struct hca_qp *qp)
{
	struct hca_recv_wr wr;
	u32 n = 0;

	while (!qp->srq && flush_more(qp)) {
		struct hca_cqe cqe = { .status = HCA_WC_WR_FLUSH_ERR, .opcode = HCA_WC_RECV };

		wr.token = 0;
		if (!qp->ops->next_recv(qp->fe, &wr))
			break;
		qp->ctx->flushed++;
		cqe.token = wr.token;
		hca_recv_done(qp);
		hca_complete_recv(qp, &cqe);
		n++;
	}
	return n;
}

u32 hca_qp_flush(struct hca_qp *qp)
{
	u32 n = 0;

	if (qp->flush_deferred)
		return 0;
	if (qp->state == HCA_QPS_ERR || qp->state == HCA_QPS_SQE)
		n += flush_sends(qp);
	if (qp->state == HCA_QPS_ERR)
		n += flush_recvs(qp);
	return n;
}

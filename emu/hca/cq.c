// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Completion queues (IBTA 10.2.6, 11.6.3): completions to the front end, one flush per burst, and overflow. */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/hca_internal.h"

struct hca_cq *hca_cq_get(struct hca_ctx *ctx, u32 cqn)
{
	struct hca_cq *cq = table_get(&ctx->hca->cqs, cqn);

	return cq && cq->ctx == ctx ? cq : NULL;
}

int hca_cq_create(struct hca_ctx *ctx, const struct hca_cq_ops *ops, void *fe, u32 *cqn)
{
	int err = hca_may_create(ctx, HCA_OBJECT_CQ, ctx->hca->cqs.used, ctx->hca->caps.max_cq);
	struct hca_cq *cq;

	if (err)
		return err;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->ctx = ctx;
	cq->ops = ops;
	cq->fe = fe;
	list_init(&cq->dirty);
	list_init(&cq->overflowed);
	if (table_add(&ctx->hca->cqs, cq, &cq->cqn)) {
		free(cq);
		return -ENOMEM;
	}
	hca_count_internal(ctx, HCA_OBJECT_CQ, 1);
	*cqn = cq->cqn;
	return 0;
}

int hca_cq_destroy(struct hca_ctx *ctx, u32 cqn)
{
	struct hca_cq *cq = hca_cq_get(ctx, cqn);

	if (!cq)
		return -ENOENT;
	if (cq->users)
		return -EBUSY;
	table_remove(&ctx->hca->cqs, cqn);
	hca_count_internal(ctx, HCA_OBJECT_CQ, -1);
	list_del(&cq->dirty);
	list_del(&cq->overflowed);
	free(cq);
	return 0;
}

/* CQ overflow: the event is raised at once; a task fails the QPs, because the transport
 * is processing one of them now. */
static void overflow(struct hca_cq *cq, u8 port)
{
	struct hca *hca = cq->ctx->hca;

	hca_count(hca, port, HCA_CNT_CQ_OVERFLOW);
	if (cq->error)
		return;
	cq->error = true;
	list_add(&hca->overflowed, &cq->overflowed);
	loop_task_queue(hca->loop, &hca->overflow_task);
	hca_ctx_event(cq->ctx, HCA_EVENT_CQ_ERR, cq->cqn, cq->fe);
}

/* False: the CQ has overflowed, now or before. */
static bool cq_complete(struct hca_cq *cq, const struct hca_cqe *cqe)
{
	if (likely(!cq->error && !cq->ops->complete(cq->fe, cqe)))
		return true;
	overflow(cq, cqe->port);
	return false;
}

int hca_cq_complete(struct hca_ctx *ctx, u32 cqn, const struct hca_cqe *cqe)
{
	struct hca_cq *cq = hca_cq_get(ctx, cqn);

	return cq && cq_complete(cq, cqe) ? 0 : -ENOSPC;
}

static bool is_overflowed(const struct hca_cq *cq)
{
	return cq && !list_empty(&cq->overflowed);
}

/*
 * One pass over the queue pairs, however many CQs have overflowed. The flush of a queue pair may overflow others, which
 * queue the task again.
 */
void hca_cq_overflow_run(struct loop_task *t, struct now now)
{
	struct hca *hca = container_of(t, struct hca, overflow_task);
	struct list batch;
	struct hca_qp *qp;
	u32 i;

	list_init(&batch);
	list_splice(&batch, &hca->overflowed);
	table_for_each (&hca->qps, i, qp) {
		bool fails = hca_qp_priv(qp)->cqe_lost || is_overflowed(qp->send_cq) || is_overflowed(qp->recv_cq) ||
			     (qp->srq && is_overflowed(qp->srq->cq));

		hca_qp_priv(qp)->cqe_lost = false;
		if (!fails || qp->state == HCA_QPS_RESET || qp->state == HCA_QPS_ERR)
			continue;
		hca_qp_force_error(qp);
		hca_qp_event(qp, HCA_EVENT_QP_FATAL);
	}
	while (!list_empty(&batch))
		list_del(batch.next);
}

/*
 * Also a queue pair that was created, reset or, of XRC, directed to an SRQ after its CQ has overflowed does not go on
 * without completions.
 */
static void cqe_lose(struct hca_qp *qp)
{
	if (qp->state == HCA_QPS_RESET || qp->state == HCA_QPS_ERR)
		return;
	hca_qp_priv(qp)->cqe_lost = true;
	loop_task_queue(qp->hca->loop, &qp->hca->overflow_task);
}

static void complete(struct hca_cq *cq, struct hca_qp *qp, struct hca_cqe *cqe, enum hca_fault_cqe fate)
{
	struct hca *hca = qp->hca;

	cqe->qpn = qp->qpn;
	cqe->port = qp->attr.port;
	if (unlikely(fate == HCA_FAULT_CQE_LOST))
		return;
	if (unlikely(fate == HCA_FAULT_CQE_OVERRUN)) {
		overflow(cq, cqe->port);
		cqe_lose(qp);
		return;
	}
	if (!cq_complete(cq, cqe)) {
		cqe_lose(qp);
		return;
	}
	if (!list_empty(&cq->dirty))
		return;
	if (list_empty(&hca->dirty))
		loop_task_queue(hca->loop, &hca->flush_task);
	list_add(&hca->dirty, &cq->dirty);
}

void hca_complete_send(struct hca_qp *qp, struct hca_cqe *cqe, u8 opcode)
{
	complete(qp->send_cq, qp, cqe,
		 hca_faulty(qp->hca) ? hca_fault_complete_send(qp, cqe, opcode) : HCA_FAULT_CQE_GOES);
}

void hca_complete_recv(struct hca_qp *qp, struct hca_cqe *cqe)
{
	struct hca_cq *cq = qp->recv_cq;

	if (unlikely(qp->type == HCA_QPT_XRC_TGT)) {
		const struct hca_srq *srq = table_get(&qp->hca->srqs, cqe->srqn);

		if (!srq)
			return; /* it was destroyed */
		cq = srq->cq;
	} else if (qp->srq) {
		cqe->srqn = qp->srq->srqn;
	}
	complete(cq, qp, cqe, hca_faulty(qp->hca) ? hca_fault_complete_recv(qp, cqe) : HCA_FAULT_CQE_GOES);
}

/* A flush may call a user inside the daemon that posts and completes again: each CQ is flushed once, the task flushes
 * completions added meanwhile. */
void hca_flush(struct hca *hca)
{
	struct list now;

	if (list_empty(&hca->dirty))
		return;
	list_init(&now);
	list_splice(&now, &hca->dirty);
	while (!list_empty(&now)) {
		struct hca_cq *cq = list_first(&now, struct hca_cq, dirty);

		list_del(&cq->dirty);
		if (cq->ops->flush)
			cq->ops->flush(cq->fe);
	}
}

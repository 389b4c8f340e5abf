// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Page faults of memory keys (on-demand paging). An access that needs an absent page waits on a list of its side of the
 * queue pair, the requester or the responder, as a move with a copy of the bytes to be written. The front end is told
 * of the first one of each side, and of no other until it has resumed the side. Then the accesses are executed in
 * order, with all checks of their keys, up to the next whose page is absent.
 *
 * A page may be absent for as long as a program of the guest likes. So the bytes that wait are limited by queue pair,
 * and a limit of the context only applies to queue pairs that are suspended.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/hca_internal.h"

#define QP_MOST  (1u << 20)  /* bytes of a queue pair's accesses beyond which its requests wait */
#define QP_DROP  (4u << 20)  /* beyond which requests of its peer are dropped */
#define CTX_MOST (32u << 20) /* of a context's, beyond which both are so for each queue pair that is suspended */

static struct hca_qp_side *side_of(struct hca_qp *qp, bool requester)
{
	return &hca_qp_priv(qp)->side[requester];
}

static void *srq_fe(struct hca_ctx *ctx, u32 srqn)
{
	const struct hca_srq *srq = srqn ? hca_srq_get(ctx, srqn) : NULL;

	return srq ? srq->fe : NULL;
}

static u64 address_of(const struct hca_pending *p)
{
	return p->move->seg[0].addr;
}

/* Tells the front end. 0, or -errno: the access fails. */
static int fault_raise(const struct hca_pending *p)
{
	struct hca_ctx *ctx = p->ctx;
	struct hca_page_fault f = {
		.kind = p->kind,
		.fe = p->qp->fe,
		.srq = srq_fe(ctx, p->srqn),
		.token = p->token,
		.key = p->lkey,
		.va = address_of(p),
		.len = p->move->bytes,
	};

	if (p->kind >= HCA_PAGE_FAULT_READ && p->token > f.va)
		f.len = p->token - f.va;
	return ctx->dma->page_fault ? ctx->dma->page_fault(ctx->dma_ctx, &f) : -EFAULT;
}

static void waiting_add(struct hca_pending *p)
{
	bool requester = hca_page_fault_requester(p->kind);

	p->serial = ++p->ctx->move_serial;
	p->ctx->fault_bytes += hca_pending_bytes(p);
	hca_qp_priv(p->qp)->waiting_bytes += hca_pending_bytes(p);
	list_add(&p->ctx->faults, &p->fault);
	list_add(&side_of(p->qp, requester)->waiting, &p->link);
	p->qp->suspended[requester] = true;
}

static void waiting_remove(struct hca_pending *p)
{
	bool requester = hca_page_fault_requester(p->kind);

	list_del(&p->link);
	p->ctx->fault_bytes -= hca_pending_bytes(p);
	hca_qp_priv(p->qp)->waiting_bytes -= hca_pending_bytes(p);
	list_del(&p->fault);
	p->qp->suspended[requester] = !list_empty(&side_of(p->qp, requester)->waiting);
}

static void waiting_end(struct hca_pending *p, bool failed)
{
	struct hca_move *m = p->move;

	waiting_remove(p);
	hca_pending_finish(p, failed);
	free(m);
}

int hca_page_fault_wait(const struct hca_span *span, enum hca_move_op op, const struct hca_entry *e, u64 compare_add,
			u64 swap)
{
	struct hca_qp *qp = span->qp;
	struct hca_qp_side *side = side_of(qp, hca_page_fault_requester(span->kind));
	struct hca_pending *p = hca_pending_new(qp->ctx, NULL, op, e, 1);
	const struct hca_pd *pd = hca_page_fault_requester(span->kind)           ? qp->pd
				  : span->kind == HCA_PAGE_FAULT_RECV && qp->srq ? qp->srq->pd
										 : hca_qp_pd(qp);
	int err = 0;

	if (!p)
		return -ENOMEM;
	p->move->compare_add = compare_add;
	p->move->swap = swap;
	list_init(&p->fault);
	p->qp = qp;
	p->kind = span->kind;
	p->lkey = span->key;
	p->access = span->access;
	p->token = span->token;
	p->pdn = pd ? pd->pdn : 0;
	p->srqn = span->kind == HCA_PAGE_FAULT_RECV && qp->srq ? qp->srq->srqn : 0;
	if (list_empty(&side->waiting))
		err = fault_raise(p);
	if (err) {
		free(p->move);
		free(p);
		return err;
	}
	if (list_empty(&side->waiting))
		side->raised = true;
	waiting_add(p);
	return 0;
}

/* The spans of the rest of the access, from byte @done on. Returns their number, or an hca_key_error. */
static int access_spans(const struct hca_pending *p, u32 done, struct hca_span *span)
{
	const struct hca_pd *pd = hca_pd_get(p->ctx, p->pdn);
	u64 va = address_of(p) + done;
	u32 len = p->move->bytes - done;

	if (!pd)
		return HCA_KEY_INVALID;
	if (p->kind >= HCA_PAGE_FAULT_READ)
		return hca_key_remote_of(p->qp, pd, p->lkey, va, len, p->access, span);
	return hca_key_of_pd(p->ctx, pd, p->lkey, va, len, p->access, span);
}

/* 0: all pages of the access are present; -EAGAIN: not yet; -EFAULT. */
static int access_check(const struct hca_pending *p)
{
	struct hca_span span[HCA_MAX_SPANS];
	u32 done = 0;
	int n, i;

	while (done < p->move->bytes) {
		n = access_spans(p, done, span);
		if (n <= 0)
			return -EFAULT;
		for (i = 0; i < n; done += span[i++].len) {
			if (span[i].absent)
				return -EAGAIN;
		}
	}
	return 0;
}

static int span_move(const struct hca_move *m, const struct hca_span *span, u8 *local)
{
	const struct hca_dma_ops *dma = span->ctx->dma;
	const struct hca_dma_seg seg = { .addr = span->addr, .len = span->len, .local = local };
	void *mem = span->mem ? span->mem : span->ctx->dma_ctx;
	u64 old;
	int err;

	if (m->op == HCA_MOVE_WRITE)
		return dma->write(mem, &seg, 1);
	if (m->op == HCA_MOVE_READ)
		return dma->read(mem, &seg, 1);
	err = hca_atomic(span, m->op == HCA_MOVE_CMP_SWAP, m->compare_add, m->swap, &old, NULL, NULL, 0);
	memcpy(local, &old, err ? 0 : sizeof(old));
	return err;
}

/* Executes the access. 0, -EFAULT, or -EAGAIN: it needs an absent page. */
static int access_run(const struct hca_pending *p)
{
	struct hca_span span[HCA_MAX_SPANS];
	u32 done = 0;
	int n, i, err = access_check(p);

	while (!err && done < p->move->bytes) {
		n = access_spans(p, done, span);
		for (i = 0; i < n && !err; done += span[i++].len)
			err = span_move(p->move, &span[i], p->move->data + done);
	}
	return err && err != -EAGAIN ? -EFAULT : err;
}

/*
 * Whether anything is to be done: not for a read whose owner has ended, as of a retransmission when the first ACK has
 * arrived, and not for a receive of an SRQ that was destroyed. The request may be gone from the queue, so the front
 * end may not find its pages.
 */
static bool access_wanted(const struct hca_pending *p)
{
	return (p->move->op != HCA_MOVE_READ || p->entry[0].seg.local) && (!p->srqn || srq_fe(p->ctx, p->srqn));
}

/* Executes accesses up to the next page fault. If one fails, all later ones do: its request ends the queue pair. */
static void side_run(struct hca_qp_side *side, bool failed)
{
	while (!list_empty(&side->waiting)) {
		struct hca_pending *p = list_first(&side->waiting, struct hca_pending, link);
		int err = !access_wanted(p) ? 0 : failed ? -EFAULT : access_run(p);

		if (err == -EAGAIN) {
			err = fault_raise(p);
			if (!err) {
				side->raised = true;
				return;
			}
		}
		failed |= err != 0;
		waiting_end(p, err);
	}
}

/* Queue pairs may have waited for these, or for fewer bytes that wait (hca_qp_full()). */
static void waiting_ended(struct hca *hca)
{
	if (hca->transport && hca->transport->moved)
		hca->transport->moved(hca);
}

int hca_page_fault_resume(struct hca_ctx *ctx, u32 qpn, bool requester, bool failed)
{
	struct hca_qp *qp = hca_qp_get(ctx, qpn);
	struct hca_qp_side *side = qp ? side_of(qp, requester) : NULL;

	if (!side || !side->raised)
		return -ENOENT;
	side->raised = false;
	hca_batches_run(); /* entries from before the fault */
	side_run(side, failed && access_wanted(list_first(&side->waiting, struct hca_pending, link)));
	waiting_ended(ctx->hca);
	return 0;
}

void hca_page_faults_forget(struct hca_qp *qp)
{
	bool any = qp->suspended[0] || qp->suspended[1];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(hca_qp_priv(qp)->side); i++) {
		struct hca_qp_side *side = &hca_qp_priv(qp)->side[i];

		side->raised = false;
		while (!list_empty(&side->waiting)) {
			struct hca_pending *p = list_first(&side->waiting, struct hca_pending, link);

			p->entry[0].failed = NULL;
			p->entry[0].seg.local = NULL;
			waiting_end(p, false);
		}
	}
	if (any)
		waiting_ended(qp->hca);
}

bool hca_page_faults_full(const struct hca_qp *qp, bool overfull)
{
	return container_of(qp, const struct hca_qp_priv, qp)->waiting_bytes > (overfull ? QP_DROP : QP_MOST) ||
	       qp->ctx->fault_bytes > CTX_MOST;
}

bool hca_qp_moved(const struct hca_qp *qp, u64 serial)
{
	const struct hca_qp_side *side = container_of(qp, const struct hca_qp_priv, qp)->side;
	u32 i;

	for (i = 0; i < 2; i++) {
		if (!list_empty(&side[i].waiting) &&
		    list_first(&side[i].waiting, struct hca_pending, link)->serial <= serial)
			return false;
	}
	return hca_ctx_moved(qp->ctx, serial);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shared receive queues and their limit event (10.2.9); XRC SRQs (annex A14). */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/hca_internal.h"

struct hca_srq *hca_srq_get(struct hca_ctx *ctx, u32 srqn)
{
	struct hca_srq *srq = table_get(&ctx->hca->srqs, srqn);

	return srq && srq->ctx == ctx ? srq : NULL;
}

int hca_srq_create(struct hca_ctx *ctx, u32 pdn, const struct hca_srq_attr *attr, const struct hca_wq_ops *ops,
		   void *fe, u32 *srqn)
{
	const struct hca_caps *caps = &ctx->hca->caps;
	struct hca_pd *pd = hca_pd_get(ctx, pdn);
	struct hca_xrcd *xrcd = attr->xrcdn ? hca_xrcd_get(ctx, attr->xrcdn) : NULL;
	struct hca_cq *cq = xrcd ? hca_cq_get(ctx, attr->cqn) : NULL;
	struct hca_srq *srq;
	int err;

	if (!pd || !attr->max_wr || attr->max_wr > caps->max_srq_wr || attr->max_sge > caps->max_srq_sge ||
	    attr->limit > attr->max_wr || (attr->xrcdn && !cq))
		return -EINVAL;
	err = hca_may_create(ctx, HCA_OBJECT_SRQ, ctx->hca->srqs.used, caps->max_srq);
	if (err)
		return err;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->ctx = ctx;
	srq->pd = pd;
	srq->ops = ops;
	srq->fe = fe;
	srq->attr = *attr;
	srq->xrcd = xrcd;
	srq->cq = cq;
	if (table_add(&ctx->hca->srqs, srq, &srq->srqn)) {
		free(srq);
		return -ENOMEM;
	}
	hca_count_internal(ctx, HCA_OBJECT_SRQ, 1);
	pd->users++;
	if (xrcd) {
		xrcd->srqs++;
		cq->users++;
	}
	*srqn = srq->srqn;
	return 0;
}

/* The limit event is raised once per arming (10.2.9). */
void hca_srq_check_limit(struct hca_srq *srq)
{
	if (!srq->attr.limit || !srq->posted || srq->posted(srq->fe) >= srq->attr.limit)
		return;
	srq->attr.limit = 0;
	hca_ctx_event(srq->ctx, HCA_EVENT_SRQ_LIMIT_REACHED, srq->srqn, srq->fe);
}

int hca_srq_set_limit(struct hca_ctx *ctx, u32 srqn, u32 limit)
{
	struct hca_srq *srq = hca_srq_get(ctx, srqn);

	if (!srq || limit > srq->attr.max_wr)
		return -EINVAL;
	srq->attr.limit = limit;
	hca_srq_check_limit(srq);
	return 0;
}

int hca_srq_set_max_wr(struct hca_ctx *ctx, u32 srqn, u32 max_wr)
{
	struct hca_srq *srq = hca_srq_get(ctx, srqn);

	if (!srq || max_wr < srq->attr.limit)
		return -EINVAL;
	srq->attr.max_wr = max_wr;
	return 0;
}

int hca_srq_query(struct hca_ctx *ctx, u32 srqn, struct hca_srq_attr *attr)
{
	struct hca_srq *srq = hca_srq_get(ctx, srqn);

	if (!srq)
		return -EINVAL;
	*attr = srq->attr;
	return 0;
}

void hca_srq_set_level(struct hca_ctx *ctx, u32 srqn, u32 (*posted)(void *fe))
{
	struct hca_srq *srq = hca_srq_get(ctx, srqn);

	if (srq)
		srq->posted = posted;
}

void hca_srq_catastrophic(struct hca_ctx *ctx, u32 srqn)
{
	struct hca_srq *srq = hca_srq_get(ctx, srqn);

	if (!srq || srq->attr.error)
		return;
	srq->attr.error = true;
	hca_ctx_event(ctx, HCA_EVENT_SRQ_ERR, srqn, srq->fe);
}

int hca_srq_destroy(struct hca_ctx *ctx, u32 srqn)
{
	struct hca_srq *srq = hca_srq_get(ctx, srqn);

	if (!srq)
		return -ENOENT;
	if (srq->users)
		return -EBUSY;
	if (srq->xrcd) {
		hca_xrc_srq_destroyed(srq);
		srq->xrcd->srqs--;
		srq->cq->users--;
	}
	srq->pd->users--;
	table_remove(&ctx->hca->srqs, srqn);
	hca_count_internal(ctx, HCA_OBJECT_SRQ, -1);
	free(srq);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * XRC domains (IBTA annex A14) of XRC SRQs and XRC target queue pairs. A request names an SRQ, which must be of the
 * target's domain; its receives, CQ and PD apply to that request.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/hca_internal.h"

struct hca_xrcd *hca_xrcd_get(struct hca_ctx *ctx, u32 xrcdn)
{
	struct hca_xrcd *xrcd = table_get(&ctx->hca->xrcds, xrcdn);

	return xrcd && xrcd->ctx == ctx ? xrcd : NULL;
}

bool hca_xrcd_exists(struct hca_ctx *ctx, u32 xrcdn)
{
	return hca_xrcd_get(ctx, xrcdn);
}

int hca_xrcd_alloc(struct hca_ctx *ctx, u32 *xrcdn)
{
	struct hca_xrcd *xrcd = calloc(1, sizeof(*xrcd));

	if (!xrcd)
		return -ENOMEM;
	xrcd->ctx = ctx;
	list_init(&xrcd->targets);
	if (table_add(&ctx->hca->xrcds, xrcd, &xrcd->xrcdn)) {
		free(xrcd);
		return -ENOMEM;
	}
	*xrcdn = xrcd->xrcdn;
	return 0;
}

int hca_xrcd_free(struct hca_ctx *ctx, u32 xrcdn)
{
	struct hca_xrcd *xrcd = hca_xrcd_get(ctx, xrcdn);

	if (!xrcd)
		return -ENOENT;
	if (xrcd->srqs || !list_empty(&xrcd->targets))
		return -EBUSY;
	table_remove(&ctx->hca->xrcds, xrcdn);
	free(xrcd);
	return 0;
}

int hca_xrc_srq(struct hca_qp *qp, u32 srqn)
{
	struct hca_srq *srq = table_get(&qp->hca->srqs, srqn);

	qp->srq = srq && srq->xrcd && srq->xrcd == qp->xrcd ? srq : NULL;
	return qp->srq ? 0 : -EINVAL;
}

void hca_xrc_srq_destroyed(struct hca_srq *srq)
{
	const struct hca_transport *t = srq->ctx->hca->transport;
	struct hca_qp_priv *priv;

	list_for_each (priv, &srq->xrcd->targets, target) {
		if (t && t->srq_destroyed)
			t->srq_destroyed(&priv->qp, srq->srqn);
		if (priv->qp.srq == srq)
			priv->qp.srq = NULL;
	}
}

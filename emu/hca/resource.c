// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Objects of a context for rdma(8): those that the front end does not count itself. */
#include "emu/hca/hca_internal.h"

bool hca_pd_each(const struct hca_ctx *ctx, hca_resource_fn *fn, void *arg)
{
	const struct hca_pd *pd;

	list_for_each (pd, &ctx->pds, link) {
		const struct hca_resource r = { .num = pd->pdn, .pdn = pd->pdn, .users = pd->users };

		if (!fn(arg, &r))
			return false;
	}
	return true;
}

bool hca_mr_each(const struct hca_ctx *ctx, hca_resource_fn *fn, void *arg)
{
	const struct hca_key *k;

	list_for_each (k, &ctx->keys, link) {
		/* relative to the adapter's first key: the number does not disclose the key */
		const struct hca_resource r = { .num = (k->key >> 8) - ctx->hca->keys.first,
						.pdn = k->pd->pdn,
						.len = k->len };

		if (k->kind == HCA_KEY_MR && !fn(arg, &r))
			return false;
	}
	return true;
}

struct hca_resource hca_cq_resource(struct hca_ctx *ctx, u32 cqn)
{
	const struct hca_cq *cq = hca_cq_get(ctx, cqn);

	return (struct hca_resource){ .num = cqn, .users = cq ? cq->users : 0 };
}

struct hca_resource hca_srq_resource(struct hca_ctx *ctx, u32 srqn)
{
	const struct hca_srq *srq = hca_srq_get(ctx, srqn);

	return (struct hca_resource){ .num = srqn, .pdn = srq ? srq->pd->pdn : 0, .users = srq ? srq->users : 0 };
}

u32 hca_qp_srqn(struct hca_ctx *ctx, u32 qpn)
{
	const struct hca_qp *qp = hca_qp_lookup(ctx->hca, qpn);

	return qp && qp->ctx == ctx && qp->srq ? qp->srq->srqn : 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Address handles (IBTA 10.2): address vectors by number, per context. */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/hca_internal.h"

struct hca_ah {
	struct hca_pd *pd;
	struct hca_av av;
};

int hca_ah_create(struct hca_ctx *ctx, u32 pdn, const struct hca_av *av, u32 *ahn)
{
	struct hca_pd *pd = hca_pd_get(ctx, pdn);
	struct hca_ah *ah;
	int err;

	if (hca_iw(ctx->hca))
		return -EOPNOTSUPP; /* iWARP has no datagrams */
	if (!pd || hca_av_check(ctx->hca, av, true))
		return -EINVAL;
	err = hca_may_create(ctx, HCA_OBJECT_AH, ctx->ahs.used, ctx->hca->caps.max_ah);
	if (err)
		return err;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	ah->pd = pd;
	ah->av = *av;
	hca_av_normalize(ctx->hca, &ah->av);
	if (table_add(&ctx->ahs, ah, ahn)) {
		free(ah);
		return -ENOMEM;
	}
	pd->users++;
	return 0;
}

int hca_ah_destroy(struct hca_ctx *ctx, u32 ahn)
{
	struct hca_ah *ah = table_remove(&ctx->ahs, ahn);

	if (!ah)
		return -ENOENT;
	ah->pd->users--;
	free(ah);
	return 0;
}

int hca_ah_av(struct hca_ctx *ctx, u32 qpn, u32 ahn, struct hca_av *av)
{
	const struct hca_qp *qp = table_get(&ctx->hca->qps, qpn);
	const struct hca_ah *ah = table_get(&ctx->ahs, ahn);

	if (unlikely(!qp || !ah || qp->pd != ah->pd))
		return -EINVAL;
	*av = ah->av;
	return 0;
}

void hca_ah_fini(struct hca_ctx *ctx)
{
	struct hca_ah *ah;
	u32 i;

	table_for_each (&ctx->ahs, i, ah) {
		ah->pd->users--;
		free(ah);
	}
	table_fini(&ctx->ahs);
}

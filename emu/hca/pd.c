// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Protection domains (IBTA 10.2.3). */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/hca_internal.h"

struct hca_pd *hca_pd_get(struct hca_ctx *ctx, u32 pdn)
{
	struct hca_pd *pd = table_get(&ctx->hca->pds, pdn);

	return pd && pd->ctx == ctx ? pd : NULL;
}

bool hca_pd_exists(struct hca_ctx *ctx, u32 pdn)
{
	return hca_pd_get(ctx, pdn);
}

int hca_pd_use(struct hca_ctx *ctx, u32 pdn, int by)
{
	struct hca_pd *pd = hca_pd_get(ctx, pdn);

	if (!pd)
		return -EINVAL;
	pd->users += (u32)by;
	return 0;
}

int hca_pd_alloc(struct hca_ctx *ctx, u32 *pdn)
{
	int err = hca_may_create(ctx, HCA_OBJECT_PD, ctx->hca->pds.used, ctx->hca->caps.max_pd);
	struct hca_pd *pd;

	if (err)
		return err;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	pd->ctx = ctx;
	if (table_add(&ctx->hca->pds, pd, &pd->pdn)) {
		free(pd);
		return -ENOMEM;
	}
	list_add(&ctx->pds, &pd->link);
	hca_count_internal(ctx, HCA_OBJECT_PD, 1);
	*pdn = pd->pdn;
	return 0;
}

int hca_pd_free(struct hca_ctx *ctx, u32 pdn)
{
	struct hca_pd *pd = hca_pd_get(ctx, pdn);

	if (!pd)
		return -ENOENT;
	if (pd->users)
		return -EBUSY;
	table_remove(&ctx->hca->pds, pdn);
	hca_count_internal(ctx, HCA_OBJECT_PD, -1);
	list_del(&pd->link);
	free(pd);
	return 0;
}

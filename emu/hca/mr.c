// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory regions: registration by the application's address, and fast registration by work request (10.6.3). */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/hca_internal.h"

#define REMOTE    (HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_ATOMIC)
#define OPTIONAL  0x3ff00000u
#define MAX_PAGES (1u << 20)
#define PAGE      4096u

/* 10.6.3: remote write rights require local write. @more: further rights that this region may have. */
static int check_access(u32 access, u32 more)
{
	const u32 known =
		HCA_ACCESS_LOCAL_WRITE | REMOTE | HCA_ACCESS_MW_BIND | HCA_ACCESS_ZERO_BASED | HCA_ACCESS_HUGETLB;

	if (access & (HCA_ACCESS_FLUSH_GLOBAL | HCA_ACCESS_FLUSH_PERSISTENT))
		return -EOPNOTSUPP;
	if (access & ~(known | more | OPTIONAL))
		return -EINVAL;
	if ((access & (HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_ATOMIC)) && !(access & HCA_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

static bool wraps(u64 start, u64 len)
{
	return len && start + len - 1 < start;
}

/*
 * As in the kernel, where ib_umem_get() refuses a region without a page: one of zero length has the page of its
 * address, and none if that is aligned. siw_umem_get() refuses zero length.
 */
static bool has_page(const struct hca *hca, u64 va, u64 len)
{
	return len || (va % PAGE && !hca_iw(hca));
}

static void be_region(struct hca_key *k, u64 base, u64 len, u32 access, u32 *lkey, u32 *rkey)
{
	k->base = base;
	k->len = len;
	k->access = access | HCA_ACCESS_LOCAL_READ;
	k->valid = true;
	*lkey = k->key;
	*rkey = access & REMOTE ? k->key : 0;
}

int hca_mr_reg(struct hca_ctx *ctx, u32 pdn, u64 va, u64 iova, u64 len, u32 access, u32 *lkey, u32 *rkey)
{
	return hca_mr_reg_of(ctx, NULL, pdn, va, iova, len, access, lkey, rkey);
}

int hca_mr_reg_of(struct hca_ctx *ctx, void *dma, u32 pdn, u64 va, u64 iova, u64 len, u32 access, u32 *lkey, u32 *rkey)
{
	struct hca_pd *pd = hca_pd_get(ctx, pdn);
	u64 base = access & HCA_ACCESS_ZERO_BASED ? 0 : iova;
	int err = check_access(access, ctx->dma->on_demand ? HCA_ACCESS_ON_DEMAND : 0);
	bool whole = access & HCA_ACCESS_ON_DEMAND && !va && !base && len == UINT64_MAX;
	struct hca_key *k;

	if (err)
		return err;
	if (!pd || !has_page(ctx->hca, va, len) || wraps(va, len) || wraps(base, len) ||
	    (len > ctx->hca->caps.max_mr_size && !whole && !ctx->internal))
		return -EINVAL;
	err = hca_key_alloc(ctx, pd, HCA_KEY_MR, &k);
	if (err)
		return err;
	k->va = va;
	k->mem = dma;
	if (dma && ctx->dma->use)
		ctx->dma->use(dma, 1);
	be_region(k, base, len, access, lkey, rkey);
	err = access & HCA_ACCESS_ON_DEMAND ? 0 : hca_mr_check(k);
	if (err == -EINPROGRESS)
		k->valid = false;
	else if (err)
		hca_key_free(k);
	return err;
}

int hca_mr_registered(struct hca_ctx *ctx, u32 lkey)
{
	const struct hca_key *k = hca_key_find(ctx->hca, lkey);

	return k && k->ctx == ctx && k->valid ? 0 : -EFAULT;
}

int hca_mr_prefetch_check(struct hca_ctx *ctx, u32 pdn, u32 lkey, u64 va, u32 len, bool write)
{
	const struct hca_key *k = hca_key_find(ctx->hca, lkey);
	const struct hca_pd *pd = hca_pd_get(ctx, pdn);
	struct hca_span span[HCA_MAX_SPANS];

	if (!pd)
		return -EINVAL;
	if (!k || k->kind != HCA_KEY_MR || !(k->access & HCA_ACCESS_ON_DEMAND))
		return -EFAULT;
	return hca_key_of_pd(ctx, pd, lkey, va, len, write ? HCA_ACCESS_LOCAL_WRITE : HCA_ACCESS_LOCAL_READ, span) < 0
		       ? -EFAULT
		       : 0;
}

int hca_mr_reg_pages(struct hca_ctx *ctx, const struct hca_mr_init *init, u32 *lkey, u32 *rkey)
{
	struct hca_pd *pd = hca_pd_get(ctx, init->pdn);
	u64 base = init->access & HCA_ACCESS_ZERO_BASED ? 0 : init->iova, len = init->len, size;
	int err = check_access(init->access, 0);
	u32 n = init->npages;
	struct hca_key *k;

	if (err)
		return err;
	if (!pd || len > ctx->hca->caps.max_mr_size || wraps(base, len))
		return -EINVAL;
	if (!n || n > MAX_PAGES || init->page_shift < 6 || init->page_shift > 31)
		return -EINVAL;
	size = 1ull << init->page_shift;
	if (len > n * size - (base & (size - 1)))
		return -EINVAL;
	err = hca_key_alloc(ctx, pd, HCA_KEY_MR, &k);
	if (err)
		return err;
	k->pages = malloc(n * sizeof(*k->pages));
	if (!k->pages) {
		hca_key_free(k);
		return -ENOMEM;
	}
	memcpy(k->pages, init->pages, n * sizeof(*k->pages));
	k->npages = n;
	k->page_shift = init->page_shift;
	ctx->mr_pages += n;
	be_region(k, base, len, init->access, lkey, rkey);
	return 0;
}

int hca_mr_alloc(struct hca_ctx *ctx, u32 pdn, u32 max_pages, u32 *lkey)
{
	struct hca_pd *pd = hca_pd_get(ctx, pdn);
	struct hca_key *k;
	int err;

	if (!pd || !max_pages || max_pages > MAX_PAGES)
		return -EINVAL;
	err = hca_key_alloc(ctx, pd, HCA_KEY_MR, &k);
	if (err)
		return err;
	k->fast = true;
	k->max_pages = max_pages;
	ctx->mr_pages += max_pages;
	*lkey = k->key;
	return 0;
}

u64 hca_mr_pages(const struct hca_ctx *ctx)
{
	return ctx->mr_pages;
}

int hca_mr_dereg(struct hca_ctx *ctx, u32 lkey)
{
	struct hca_key *k = hca_key_slot(ctx->hca, lkey);

	/* A fast-registered region is found by its index: the consumer chooses its variant. */
	if (!k || k->kind != HCA_KEY_MR || k->ctx != ctx || (!k->fast && k->key != lkey))
		return -ENOENT;
	if (k->windows)
		return -EBUSY;
	hca_batches_run(); /* deferred writes must not happen after deregistration; see hca_ctx_accesses() */
	hca_key_free(k);
	return 0;
}

/* Copies the page list; keeps the old one if out of memory. */
static int set_pages(struct hca_key *k, const struct hca_send_wr *wr)
{
	u64 size, *pages;

	if (!wr->npages || wr->npages > k->max_pages || wr->page_shift < 6 || wr->page_shift > 31 || !wr->pages)
		return HCA_KEY_BOUNDS;
	size = 1ull << wr->page_shift;
	if (wr->bind_len > wr->npages * size - (wr->bind_addr & (size - 1)))
		return HCA_KEY_BOUNDS;
	if (k->mkey)
		return k->mkey_kind != HCA_MKEY_PAGES || hca_mkey_fill_pages(k, 0, wr->pages, wr->npages)
			       ? HCA_KEY_INVALID
			       : 0;
	pages = malloc(wr->npages * sizeof(*pages));
	if (!pages)
		return HCA_KEY_INVALID;
	memcpy(pages, wr->pages, wr->npages * sizeof(*pages));
	free(k->pages);
	free(k->ranges);
	k->pages = pages;
	k->npages = wr->npages;
	k->ranges = NULL;
	k->nranges = 0;
	return 0;
}

static int set_keys(struct hca_key *k, const struct hca_send_wr *wr)
{
	const struct hca_sge *range = wr->ranges ? wr->ranges : wr->sge;
	u32 n = wr->ranges ? wr->npages : wr->num_sge;
	int err;

	if (k->mkey ? k->mkey_kind != HCA_MKEY_RANGES : !n || n > HCA_MAX_SPANS)
		return HCA_KEY_BOUNDS;
	if (hca_mkey_fill_ranges(k, 0, range, n))
		return HCA_KEY_INVALID;
	err = hca_mkey_check_ranges(k, wr->access);
	if (err)
		return err;
	if (wr->bind_len > k->ranges[n - 1].end)
		return HCA_KEY_BOUNDS;
	if (!k->mkey) {
		free(k->pages);
		k->pages = NULL;
		k->npages = 0;
	}
	return 0;
}

int hca_mr_fast_reg(struct hca_qp *qp, const struct hca_send_wr *wr)
{
	struct hca_key *k = hca_key_slot(qp->hca, wr->reg_key);
	int err;

	if (!k || k->kind != HCA_KEY_MR || !k->fast || (k->valid && (wr->reg_free || !(k->mkey && wr->mw_type_reg))))
		return HCA_KEY_INVALID;
	if (k->pd != qp->pd)
		return HCA_KEY_PD;
	if (!k->mkey && check_access(wr->access, 0))
		return HCA_KEY_ACCESS;
	if (!wr->bind_len || wraps(wr->bind_addr, wr->bind_len))
		return HCA_KEY_BOUNDS;
	err = wr->mw_type_reg ? set_keys(k, wr) : set_pages(k, wr);
	if (err) {
		k->valid = false;
		return err;
	}
	k->key = wr->reg_key;
	k->page_shift = wr->page_shift;
	k->remote_inval = wr->reg_inval;
	k->qpn = k->mkey ? wr->remote_qpn : 0;
	k->base = wr->bind_addr;
	k->len = wr->bind_len;
	k->access = wr->access | (k->mkey ? 0 : HCA_ACCESS_LOCAL_READ);
	k->valid = true;
	return 0;
}

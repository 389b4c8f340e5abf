// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory keys that a front end defines, and keys that consist of ranges of other keys (indirect regions, 10.6.3). */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/hca_internal.h"

#define MAX_PAGES  (1u << 20)
#define MAX_RANGES (1u << 16)
#define MAX_BLOCKS (1u << 18) /* of 1 GiB: the address space of a program */
#define RIGHTS                                                                                               \
	(HCA_ACCESS_LOCAL_READ | HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ | \
	 HCA_ACCESS_REMOTE_ATOMIC)

static struct hca_key *mkey_get(struct hca_ctx *ctx, u32 key)
{
	struct hca_key *k = hca_key_slot(ctx->hca, key);

	return k && k->kind == HCA_KEY_MR && k->ctx == ctx && k->mkey ? k : NULL;
}

/* Allocates all entries when the first is set. */
static int alloc_pages(struct hca_key *k)
{
	if (k->pages)
		return 0;
	k->pages = calloc(k->max_pages, sizeof(*k->pages));
	if (!k->pages)
		return -ENOMEM;
	k->npages = k->max_pages;
	k->ctx->mr_pages += k->max_pages;
	return 0;
}

int hca_mkey_fill_pages(struct hca_key *k, u32 first, const u64 *pages, u32 n)
{
	int err;

	if (first > k->max_pages || n > k->max_pages - first)
		return -EINVAL;
	err = alloc_pages(k);
	if (!err)
		memcpy(k->pages + first, pages, n * sizeof(*pages));
	return err;
}

/*
 * Memory that held more ranges before is kept, and counted, until the key is destroyed. Blocks behind those that are
 * set stay as they are; ranges are deleted.
 */
int hca_mkey_fill_ranges(struct hca_key *k, u32 first, const struct hca_sge *range, u32 n)
{
	u32 room = k->mkey ? k->npages : k->nranges, i;
	struct hca_range *ranges = k->ranges;

	if (!n || first > k->nranges || (k->mkey && (first > k->max_pages || n > k->max_pages - first)))
		return -EINVAL;
	if (first + n > room) {
		ranges = realloc(ranges, (first + n) * sizeof(*ranges));
		if (!ranges)
			return -ENOMEM;
		k->ranges = ranges;
	}
	if (k->mkey && first + n > room) {
		k->ctx->mr_pages += first + n - room;
		k->npages = first + n;
	}
	if (first + n > k->nranges || k->mkey_kind != HCA_MKEY_BLOCKS)
		k->nranges = first + n;
	for (i = 0; i < n; i++)
		ranges[first + i] = (struct hca_range){
			.end = (first + i ? ranges[first + i - 1].end : 0) + range[i].length,
			.sge = range[i],
		};
	return 0;
}

int hca_mkey_check_ranges(const struct hca_key *k, u32 access)
{
	u32 i;

	for (i = 0; i < k->nranges; i++) {
		const struct hca_key *inner = hca_key_find(k->ctx->hca, k->ranges[i].sge.lkey);

		if (!inner || inner->pd != k->pd || inner->kind != HCA_KEY_MR || inner == k)
			return HCA_KEY_INVALID;
		if (!hca_mkey_inner_permits(inner, access))
			return HCA_KEY_ACCESS;
	}
	return 0;
}

/* Whether the key's extent is within its pages or ranges. */
static int check_extent(struct hca_key *k, const struct hca_mkey *m)
{
	u64 size;

	if (m->len && m->base + m->len - 1 < m->base)
		return -EINVAL;
	switch (m->kind) {
	case HCA_MKEY_LINEAR:
		return 0;
	case HCA_MKEY_BLOCKS: /* the keys of the blocks are checked at each access */
		if (m->page_shift < 12 || m->page_shift > 31 || m->len > (u64)k->nranges << m->page_shift ||
		    m->len > ((u64)k->nranges << m->page_shift) - (m->base & (BIT_ULL(m->page_shift) - 1)))
			return -EINVAL;
		return 0;
	case HCA_MKEY_RANGES:
		if (!k->nranges || m->len > k->ranges[k->nranges - 1].end || hca_mkey_check_ranges(k, m->access))
			return -EINVAL;
		return 0;
	default:
		if (m->page_shift < 6 || m->page_shift > 31)
			return -EINVAL;
		size = 1ull << m->page_shift;
		if (m->len > k->max_pages * size || m->len > k->max_pages * size - (m->base & (size - 1)))
			return -EINVAL;
		return alloc_pages(k);
	}
}

static int mkey_define(struct hca_key *k, const struct hca_mkey *m)
{
	struct hca_pd *pd = hca_pd_get(k->ctx, m->pdn), *old = k->pd;
	int err;

	if (!pd || m->access & ~(u32)RIGHTS)
		return -EINVAL;
	k->pd = pd; /* inner keys are checked against the new PD */
	err = m->valid ? check_extent(k, m) : 0;
	if (err) {
		k->pd = old;
		return err;
	}
	old->users--;
	pd->users++;
	k->key = (k->key & ~0xffu) | m->variant;
	k->access = m->access;
	k->base = m->base;
	k->va = m->base;
	k->len = m->len;
	k->page_shift = m->page_shift;
	k->qpn = m->qpn;
	k->remote_inval = m->remote_inval;
	k->valid = m->valid;
	return 0;
}

static u32 entries_max(enum hca_mkey_kind kind)
{
	switch (kind) {
	case HCA_MKEY_PAGES:
		return MAX_PAGES;
	case HCA_MKEY_BLOCKS:
		return MAX_BLOCKS;
	default:
		return MAX_RANGES;
	}
}

int hca_mkey_create(struct hca_ctx *ctx, const struct hca_mkey *m, u32 *key)
{
	struct hca_pd *pd = hca_pd_get(ctx, m->pdn);
	struct hca_key *k;
	int err;

	if (!pd || m->kind > HCA_MKEY_BLOCKS || m->entries > entries_max(m->kind) ||
	    !m->entries != (m->kind == HCA_MKEY_LINEAR))
		return -EINVAL;
	err = hca_key_alloc(ctx, pd, HCA_KEY_MR, &k);
	if (err)
		return err;
	k->mkey = k->fast = true;
	k->mkey_kind = (u8)m->kind;
	k->fixed = m->fixed;
	k->max_pages = m->entries;
	err = mkey_define(k, m);
	if (err)
		hca_key_free(k);
	else
		*key = k->key;
	return err;
}

int hca_mkey_query(struct hca_ctx *ctx, u32 key, struct hca_mkey *m)
{
	const struct hca_key *k = mkey_get(ctx, key);

	if (!k)
		return -EINVAL;
	*m = (struct hca_mkey){
		.kind = k->mkey_kind,
		.entries = k->max_pages,
		.pdn = k->pd->pdn,
		.qpn = k->qpn,
		.variant = (u8)k->key,
		.valid = k->valid,
		.remote_inval = k->remote_inval,
		.fixed = k->fixed,
		.access = k->access,
		.base = k->base,
		.len = k->len,
		.page_shift = k->page_shift,
		.allocated = k->npages,
	};
	return 0;
}

/* Deferred writes are executed first, as in hca_mr_dereg(). */
int hca_mkey_set(struct hca_ctx *ctx, u32 key, const struct hca_mkey *m)
{
	struct hca_key *k = mkey_get(ctx, key);
	struct hca_mkey def = *m;

	if (!k)
		return -EINVAL;
	hca_batches_run();
	def.kind = k->mkey_kind;
	return mkey_define(k, &def);
}

int hca_mkey_set_pages(struct hca_ctx *ctx, u32 key, u32 first, const u64 *pages, u32 n)
{
	struct hca_key *k = mkey_get(ctx, key);

	return k && k->mkey_kind == HCA_MKEY_PAGES ? hca_mkey_fill_pages(k, first, pages, n) : -EINVAL;
}

int hca_mkey_set_ranges(struct hca_ctx *ctx, u32 key, u32 first, const struct hca_sge *range, u32 n)
{
	struct hca_key *k = mkey_get(ctx, key);

	return k && k->mkey_kind >= HCA_MKEY_RANGES ? hca_mkey_fill_ranges(k, first, range, n) : -EINVAL;
}

u64 hca_mkey_extent(struct hca_ctx *ctx, u32 key, u32 first)
{
	const struct hca_key *k = mkey_get(ctx, key);
	u32 n = k && k->mkey_kind == HCA_MKEY_RANGES ? min(first, k->nranges) : 0;

	return n ? k->ranges[n - 1].end : 0;
}

u32 hca_mkey_ranges(struct hca_ctx *ctx, u32 key, struct hca_sge *range, u32 n)
{
	const struct hca_key *k = mkey_get(ctx, key);
	u32 i;

	for (i = 0; k && i < n && i < k->nranges; i++)
		range[i] = k->ranges[i].sge;
	return i;
}

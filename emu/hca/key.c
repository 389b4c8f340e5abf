// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The key space of an HCA and the check of every access by key (10.6).
 *
 * A key is a slot's index in 24 bits and a variant in 8. Slots live as long as the HCA; freed ones are appended to the
 * free list. Each use of a slot takes the next variant, from a seeded start. So a stale key finds a free slot or
 * another variant until its slot has been reused 255 times.
 */
#include <stdlib.h>

#include "emu/hca/hca_internal.h"
#include "emu/lib/poison.h"

void hca_key_space_init(struct hca_key_space *ks, struct rng *rng)
{
	ks->first = 1 + (u32)(rng_next(rng) % 0x7fff00);
	list_init(&ks->free);
}

void hca_key_space_fini(struct hca_key_space *ks)
{
	u32 i;

	for (i = 0; i < ks->made; i++)
		free(ks->slot[i]);
	free(ks->slot);
}

static struct hca_key *make_slot(struct hca *hca)
{
	struct hca_key_space *ks = &hca->keys;
	struct hca_key *k;

	if (ks->made == ks->cap) {
		u32 cap = ks->cap ? 2 * ks->cap : 16;
		struct hca_key **slot = realloc(ks->slot, cap * sizeof(*slot));

		if (!slot)
			return NULL;
		ks->slot = slot;
		ks->cap = cap;
	}
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->key = (ks->first + ks->made) << 8 | (u8)rng_next(&hca->rng);
	list_init(&k->link);
	ks->slot[ks->made++] = k;
	return k;
}

int hca_key_alloc(struct hca_ctx *ctx, struct hca_pd *pd, enum hca_key_kind kind, struct hca_key **out)
{
	const struct hca_caps *caps = &ctx->hca->caps;
	struct hca_key_space *ks = &ctx->hca->keys;
	bool mr = kind == HCA_KEY_MR;
	u32 key, *used = mr ? &ks->mrs : &ks->mws;
	enum hca_object object = mr ? HCA_OBJECT_MR : HCA_OBJECT_MW;
	int err = hca_may_create(ctx, object, *used, mr ? caps->max_mr : caps->max_mw);
	struct hca_key *k;

	if (err)
		return err;
	/* A few slots stay free, so that even a single region changes its index each time. */
	if (ks->made < 16 || list_empty(&ks->free))
		k = make_slot(ctx->hca);
	else
		k = list_first(&ks->free, struct hca_key, link);
	if (!k)
		return -ENOMEM;
	list_del(&k->link);
	UNPOISON_FROM(k, access);
	key = (k->key & ~0xffu) | (u8)(k->key + 1);
	*k = (struct hca_key){ .key = key, .kind = kind, .ctx = ctx, .pd = pd };
	list_add(&ctx->keys, &k->link);
	pd->users++;
	++*used;
	hca_count_internal(ctx, object, 1);
	*out = k;
	return 0;
}

void hca_key_free(struct hca_key *k)
{
	struct hca_key_space *ks = &k->ctx->hca->keys;

	hca_mw_unbind(k);
	if (k->kind == HCA_KEY_MR && !k->valid) /* its memory may be checked now */
		hca_moves_forget_key(k->ctx, k);
	if (k->mem && k->ctx->dma->use)
		k->ctx->dma->use(k->mem, -1);
	k->pd->users--;
	k->ctx->mr_pages -= k->fast && !k->mkey ? k->max_pages : k->npages;
	*(k->kind == HCA_KEY_MR ? &ks->mrs : &ks->mws) -= 1;
	hca_count_internal(k->ctx, k->kind == HCA_KEY_MR ? HCA_OBJECT_MR : HCA_OBJECT_MW, -1);
	k->kind = HCA_KEY_FREE;
	k->valid = false;
	free(k->pages);
	free(k->ranges);
	k->pages = NULL;
	k->ranges = NULL;
	list_del(&k->link);
	list_add(&ks->free, &k->link);
	POISON_FROM(k, access);
}

struct hca_key *hca_key_slot(struct hca *hca, u32 key)
{
	u32 i = (key >> 8) - hca->keys.first;

	return likely(i < hca->keys.made) ? hca->keys.slot[i] : NULL;
}

struct hca_key *hca_key_find(struct hca *hca, u32 key)
{
	struct hca_key *k = hca_key_slot(hca, key);

	return likely(k && k->key == key && k->kind != HCA_KEY_FREE) ? k : NULL;
}

/* Adds nothing to va: va + len may overflow. */
static inline bool in_range(const struct hca_key *k, u64 va, u64 len)
{
	u64 off = va - k->base;

	return va >= k->base && off <= k->len && len <= k->len - off;
}

/* Appends a span, merged with the previous one if adjacent. False if there is no room. */
static bool add_span(struct hca_span *span, int *n, const struct hca_span *add)
{
	struct hca_span *last = span + *n - 1;

	if (*n && last->addr + last->len == add->addr && last->mem == add->mem && last->on_demand == add->on_demand &&
	    last->absent == add->absent) {
		last->len += add->len;
		return true;
	}
	if (*n == HCA_MAX_SPANS)
		return false;
	span[(*n)++] = *add;
	return true;
}

/* Sets those members that spans of present pages have: this is done for each packet. */
static inline void span_set(struct hca_span *span, const struct hca_key *k, u64 addr, u32 len)
{
	span->ctx = k->ctx;
	span->addr = addr;
	span->len = len;
	span->on_demand = k->access & HCA_ACCESS_ON_DEMAND;
	span->mem = k->mem;
	span->absent = false;
}

#define WRITES (HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_ATOMIC | HCA_ACCESS_LOCAL_WRITE)

static int translate_pages(const struct hca_key *k, u64 va, u32 len, u32 access, struct hca_span *span)
{
	u64 size = 1ull << k->page_shift;
	u64 off = (k->base & (size - 1)) + (va - k->base);
	u64 none = !k->mkey ? 0 : access & WRITES ? HCA_PAGE_NO_WRITE : HCA_PAGE_NO_READ;
	u64 bits = k->mkey ? HCA_PAGE_NO_READ | HCA_PAGE_NO_WRITE : 0;
	int n = 0;

	while (len) {
		u64 in = off & (size - 1), part = min(size - in, (u64)len);
		u64 page = k->pages[off >> k->page_shift];
		bool absent = page & none;
		struct hca_span add;

		span_set(&add, k, absent ? va : (page & ~bits) + in, (u32)part);
		add.on_demand = false; /* its absent pages are those of the driver */
		add.absent = absent;
		if (!add_span(span, &n, &add))
			break;
		va += part;
		off += part;
		len -= (u32)part;
	}
	return n;
}

static int translate(const struct hca_key *k, u64 va, u32 len, u32 access, struct hca_span *span);

/* The first range that ends after @off. */
static u32 range_at(const struct hca_key *k, u64 off)
{
	u32 low = 0, high = k->nranges;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (k->ranges[mid].end <= off)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * The part of range @sge, of a key @k, from byte @in on. Looks up the inner key at each access, and checks its rights:
 * both may have changed since they were set.
 */
static int translate_range(const struct hca_key *k, const struct hca_sge *sge, u64 in, u32 len, u32 access,
			   struct hca_span *span)
{
	const struct hca_key *inner = hca_key_find(k->ctx->hca, sge->lkey);
	bool blocks = k->mkey && k->mkey_kind == HCA_MKEY_BLOCKS;

	if (sge->lkey == HCA_RANGE_ABSENT) {
		*span = (struct hca_span){ .ctx = k->ctx, .addr = in, .len = len, .absent = true };
		return 1;
	}
	if (!inner || !inner->valid || inner->kind != HCA_KEY_MR || inner->pd != k->pd ||
	    (inner->ranges && (blocks || !inner->mkey || inner->mkey_kind != HCA_MKEY_BLOCKS)))
		return HCA_KEY_INVALID;
	if (!in_range(inner, sge->addr + in, len))
		return HCA_KEY_BOUNDS;
	if (!hca_mkey_inner_permits(inner, access))
		return HCA_KEY_ACCESS;
	return translate(inner, sge->addr + in, len, access, span);
}

/*
 * Appends the spans of that part. 1; 0: there is no room for all of them, or the inner key has more than fit; or an
 * hca_key_error.
 */
static int add_range(const struct hca_key *k, const struct hca_sge *sge, u64 in, u32 len, u32 access,
		     struct hca_span *span, int *n)
{
	struct hca_span part[HCA_MAX_SPANS];
	int m = translate_range(k, sge, in, len, access, part), j;

	if (m < 0)
		return m;
	for (j = 0; j < m; j++) {
		if (!add_span(span, n, &part[j]))
			return 0;
		len -= part[j].len;
	}
	return !len;
}

static int translate_blocks(const struct hca_key *k, u64 va, u32 len, u32 access, struct hca_span *span)
{
	u64 size = 1ull << k->page_shift, off = (k->base & (size - 1)) + (va - k->base);
	int n = 0;

	while (len && off >> k->page_shift < k->nranges) {
		u64 in = off & (size - 1);
		u32 take = (u32)min(size - in, (u64)len);
		int got = add_range(k, &k->ranges[off >> k->page_shift].sge, in, take, access, span, &n);

		if (got <= 0)
			return got ? got : n;
		off += take;
		len -= take;
	}
	return n ? n : HCA_KEY_BOUNDS;
}

static int translate_keys(const struct hca_key *k, u64 va, u32 len, u32 access, struct hca_span *span)
{
	u64 off = va - k->base;
	u32 i;
	int n = 0;

	for (i = range_at(k, off); i < k->nranges && len; i++) {
		const struct hca_range *r = &k->ranges[i];
		u64 in = off - (r->end - r->sge.length);
		u32 take = (u32)min(r->end - off, (u64)len);
		int got;

		if (!take)
			continue;
		got = add_range(k, &r->sge, in, take, access, span, &n);
		if (got <= 0)
			return got ? got : n;
		off += take;
		len -= take;
	}
	return n ? n : HCA_KEY_BOUNDS; /* the key has fewer ranges now than when its length was set */
}

/* @va and @len are within @k. */
static int translate(const struct hca_key *k, u64 va, u32 len, u32 access, struct hca_span *span)
{
	if (k->kind != HCA_KEY_MR) { /* a window's addresses are those of its region */
		va = va - k->base + k->va;
		k = k->mr;
	}
	if (unlikely(k->pages))
		return translate_pages(k, va, len, access, span);
	if (unlikely(k->ranges))
		return k->mkey && k->mkey_kind == HCA_MKEY_BLOCKS ? translate_blocks(k, va, len, access, span)
								  : translate_keys(k, va, len, access, span);
	span_set(span, k, k->va + (va - k->base), len);
	return 1;
}

int hca_key_of_pd(struct hca_ctx *ctx, const struct hca_pd *pd, u32 lkey, u64 va, u32 len, u32 access,
		  struct hca_span *span)
{
	const struct hca_key *k;

	if (!len)
		return 0;
	k = hca_key_find(ctx->hca, lkey);
	if (unlikely(!k || !k->valid || k->kind != HCA_KEY_MR))
		return HCA_KEY_INVALID;
	if (unlikely(k->pd != pd))
		return k->ctx == ctx ? HCA_KEY_PD : HCA_KEY_INVALID;
	if (unlikely(!in_range(k, va, len)))
		return HCA_KEY_BOUNDS;
	if (unlikely(access & ~k->access))
		return HCA_KEY_ACCESS;
	return translate(k, va, len, access, span);
}

/*
 * Completes the spans of a page fault: they have addresses of the key that the access names. While the side of the
 * queue pair is suspended, accesses to pages that are present wait as well, so that none overtakes another.
 */
static int spans_of(struct hca_qp *qp, enum hca_page_fault_kind kind, const struct hca_sge *by, u32 access,
		    struct hca_span *span, int n)
{
	bool suspended = qp->suspended[hca_page_fault_requester(kind)];
	u64 va = by->addr;
	int i;

	if (unlikely(suspended && n > 0)) {
		span[0] = (struct hca_span){ .ctx = span[0].ctx, .len = by->length, .absent = true };
		n = 1;
	}
	for (i = 0; i < n; va += span[i++].len) {
		if (likely(!span[i].absent))
			continue;
		span[i].addr = va;
		span[i].kind = (u8)kind;
		span[i].key = by->lkey;
		span[i].access = access;
		span[i].token = 0;
		span[i].qp = qp;
	}
	return n;
}

int hca_key_local(struct hca_qp *qp, u32 lkey, u64 va, u32 len, u32 access, struct hca_span *span)
{
	int n = hca_key_of_pd(qp->ctx, qp->pd, lkey, va, len, access, span);

	return spans_of(qp, access & WRITES ? HCA_PAGE_FAULT_RESPONSE : HCA_PAGE_FAULT_SEND,
			&(struct hca_sge){ va, len, lkey }, access, span, n);
}

int hca_key_recv(struct hca_qp *qp, u32 lkey, u64 va, u32 len, u32 access, struct hca_span *span)
{
	int n = hca_key_of_pd(qp->ctx, qp->srq ? qp->srq->pd : hca_qp_pd(qp), lkey, va, len, access, span);

	return spans_of(qp, HCA_PAGE_FAULT_RECV, &(struct hca_sge){ va, len, lkey }, access, span, n);
}

/* Type 1 windows and regions are checked by PD, type 2B windows by PD and QP (10.6.7). */
int hca_key_remote_of(const struct hca_qp *qp, const struct hca_pd *pd, u32 rkey, u64 va, u32 len, u32 access,
		      struct hca_span *span)
{
	const struct hca_key *k;

	if (!len)
		return 0;
	k = hca_key_find(qp->hca, rkey);
	if (unlikely(!k || !k->valid))
		return HCA_KEY_INVALID;
	if (unlikely(k->pd != pd || (k->kind == HCA_KEY_MW2 && k->qp != qp) || (k->qpn && k->qpn != qp->qpn)))
		return HCA_KEY_PD;
	if (unlikely(!in_range(k, va, len)))
		return HCA_KEY_BOUNDS;
	if (unlikely(access & ~k->access))
		return HCA_KEY_ACCESS;
	return translate(k, va, len, access, span);
}

int hca_key_remote(struct hca_qp *qp, u32 rkey, u64 va, u32 len, u32 access, struct hca_span *span)
{
	int n = hca_key_remote_of(qp, hca_qp_pd(qp), rkey, va, len, access, span);

	return spans_of(qp, access & WRITES ? HCA_PAGE_FAULT_WRITE : HCA_PAGE_FAULT_READ,
			&(struct hca_sge){ va, len, rkey }, access, span, n);
}

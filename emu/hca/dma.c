// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Moves to and from application memory in batches.
 *
 * Entries are grouped by context. A change of direction starts new groups, so that a read sees what the writes before
 * it wrote and no buffer is overtaken; within a group entries keep their order. A run hands each group to the context's
 * DMA in as few calls as possible. When one fails, its entries are tried one by one to find whom to blame.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "emu/hca/internal.h"

#define SEGS_PER_CALL 1024 /* UIO_MAXIOV */

struct entry {
	struct hca_dma_seg seg;
	void (*failed)(void *arg);
	void *arg;
};

struct group {
	struct hca_ctx *ctx; /* NULL: forgotten */
	bool write;
	u32 n, cap;
	struct entry *entry;
};

/* Two sets, so that a callback of a run may add entries for the next one. */
struct set {
	struct group *group;
	u32 n, cap; /* groups in use; groups with memory, whose entry arrays are kept */
	u32 first;  /* the first group since the direction changed */
	u32 pending;
	bool write;
};

struct hca_batch {
	struct list link;
	struct set set[2];
	u32 cur;
	bool running;
	u32 serial; /* changes with every run and change of direction */
	struct hca_dma_seg seg[SEGS_PER_CALL];
};

static struct list batches = { &batches, &batches };
static u32 serials;

struct hca_batch *hca_batch_create(void)
{
	struct hca_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	list_add(&batches, &b->link);
	b->serial = ++serials;
	return b;
}

static void set_fini(struct set *s)
{
	u32 i;

	for (i = 0; i < s->cap; i++)
		free(s->group[i].entry);
	free(s->group);
}

void hca_batch_destroy(struct hca_batch *b)
{
	if (!b)
		return;
	list_del(&b->link);
	set_fini(&b->set[0]);
	set_fini(&b->set[1]);
	free(b);
}

u32 hca_batch_pending(const struct hca_batch *b)
{
	return b->set[b->cur].pending;
}

static struct group *new_group(struct set *s, struct hca_ctx *ctx, bool write)
{
	struct group *g;

	if (s->n == s->cap) {
		u32 cap = s->cap ? 2 * s->cap : 8;

		g = realloc(s->group, cap * sizeof(*g));
		if (!g)
			return NULL;
		memset(g + s->cap, 0, (cap - s->cap) * sizeof(*g));
		s->group = g;
		s->cap = cap;
	}
	g = &s->group[s->n++];
	g->ctx = ctx;
	g->write = write;
	g->n = 0;
	return g;
}

/* The context remembers its open group; the serial tells whether that is still so. */
static struct group *open_group(struct hca_batch *b, struct hca_ctx *ctx, bool write)
{
	struct set *s = &b->set[b->cur];
	struct group *g;
	u32 i;

	if (unlikely(s->write != write)) {
		s->write = write;
		s->first = s->n;
		b->serial = ++serials;
	}
	if (likely(ctx->batch == b && ctx->batch_serial == b->serial))
		return &s->group[ctx->batch_group];
	for (i = s->first; i < s->n; i++)
		if (s->group[i].ctx == ctx)
			break;
	g = i < s->n ? &s->group[i] : new_group(s, ctx, write);
	if (g) {
		ctx->batch = b;
		ctx->batch_serial = b->serial;
		ctx->batch_group = i;
	}
	return g;
}

static bool grow(struct group *g)
{
	u32 cap = g->cap ? 2 * g->cap : 64;
	struct entry *e = realloc(g->entry, cap * sizeof(*e));

	if (!e)
		return false;
	g->entry = e;
	g->cap = cap;
	return true;
}

/* Without memory the entry is done at once, behind all that is pending. */
static void add_slowly(struct hca_batch *b, const struct entry *e, struct hca_ctx *ctx, bool write)
{
	int (*op)(void *, const struct hca_dma_seg *, u32) = write ? ctx->dma->write : ctx->dma->read;

	hca_batch_run(b);
	if (op(ctx->dma_ctx, &e->seg, 1) && e->failed)
		e->failed(e->arg);
}

static inline void add(struct hca_batch *b, const struct hca_span *span, void *local, void (*failed)(void *arg),
		       void *arg, bool write)
{
	struct entry e = {
		.seg = { .addr = span->addr, .len = span->len, .local = local },
		.failed = failed,
		.arg = arg,
	};
	struct group *g;

	if (!span->len)
		return;
	g = open_group(b, span->ctx, write);
	if (unlikely(!g || (g->n == g->cap && !grow(g)))) {
		add_slowly(b, &e, span->ctx, write);
		return;
	}
	g->entry[g->n++] = e;
	b->set[b->cur].pending++;
}

void hca_batch_read(struct hca_batch *b, const struct hca_span *span, void *local, void (*failed)(void *arg), void *arg)
{
	add(b, span, local, failed, arg, false);
}

void hca_batch_write(struct hca_batch *b, const struct hca_span *span, const void *local, void (*failed)(void *arg),
		     void *arg)
{
	add(b, span, (void *)(uintptr_t)local, failed, arg, true);
}

/* Moves entries from @i on into @seg, joined where both sides are adjacent; returns the entry after the last taken. */
static u32 gather(const struct group *g, u32 i, struct hca_dma_seg *seg, u32 *nsegs)
{
	u32 n = 0;

	for (; i < g->n; i++) {
		const struct hca_dma_seg *s = &g->entry[i].seg;

		if (n && seg[n - 1].addr + seg[n - 1].len == s->addr &&
		    (u8 *)seg[n - 1].local + seg[n - 1].len == s->local && seg[n - 1].len + s->len >= s->len) {
			seg[n - 1].len += s->len;
			continue;
		}
		if (n == SEGS_PER_CALL)
			break;
		seg[n++] = *s;
	}
	*nsegs = n;
	return i;
}

static void blame(struct group *g, u32 from, u32 to)
{
	u32 i;

	for (i = from; i < to && g->ctx; i++) {
		struct entry e = g->entry[i];
		struct hca_ctx *ctx = g->ctx;

		if ((g->write ? ctx->dma->write : ctx->dma->read)(ctx->dma_ctx, &e.seg, 1) && e.failed)
			e.failed(e.arg);
	}
}

static void run_group(struct hca_batch *b, struct group *g)
{
	u32 i = 0;

	while (i < g->n && g->ctx) {
		struct hca_ctx *ctx = g->ctx;
		u32 nsegs, next = gather(g, i, b->seg, &nsegs);

		if (unlikely((g->write ? ctx->dma->write : ctx->dma->read)(ctx->dma_ctx, b->seg, nsegs)))
			blame(g, i, next);
		i = next;
	}
}

void hca_batch_run(struct hca_batch *b)
{
	struct set *s = &b->set[b->cur];
	u32 i;

	if (!s->n || b->running)
		return;
	b->running = true;
	b->cur ^= 1;
	b->serial = ++serials;
	for (i = 0; i < s->n; i++)
		run_group(b, &s->group[i]);
	s->n = s->first = s->pending = 0;
	b->running = false;
}

static void set_forget(struct set *s, const struct hca_ctx *ctx)
{
	u32 i;

	for (i = 0; i < s->n; i++)
		if (s->group[i].ctx == ctx) {
			s->group[i].ctx = NULL;
			s->pending -= min(s->pending, s->group[i].n);
		}
}

void hca_batch_forget(struct hca_batch *b, const struct hca_ctx *ctx)
{
	set_forget(&b->set[0], ctx);
	set_forget(&b->set[1], ctx);
	b->serial = ++serials;
}

void hca_batches_forget(const struct hca_ctx *ctx)
{
	struct hca_batch *b;

	list_for_each (b, &batches, link)
		hca_batch_forget(b, ctx);
}

u32 hca_dma_iov(const struct hca_dma_seg *seg, u32 n, struct iovec *local, u32 *nlocal, struct iovec *remote,
		u32 *nremote)
{
	u32 i, l = 0, r = 0;

	for (i = 0; i < n && l < SEGS_PER_CALL && r < SEGS_PER_CALL; i++) {
		void *addr = (void *)(uintptr_t)seg[i].addr;

		if (l && (u8 *)local[l - 1].iov_base + local[l - 1].iov_len == seg[i].local)
			local[l - 1].iov_len += seg[i].len;
		else
			local[l++] = (struct iovec){ seg[i].local, seg[i].len };
		if (r && (u8 *)remote[r - 1].iov_base + remote[r - 1].iov_len == addr)
			remote[r - 1].iov_len += seg[i].len;
		else
			remote[r++] = (struct iovec){ addr, seg[i].len };
	}
	*nlocal = l;
	*nremote = r;
	return i;
}

void *hca_span_direct(const struct hca_span *span, bool write)
{
	const struct hca_ctx *ctx = span->ctx;

	return ctx->dma->direct ? ctx->dma->direct(ctx->dma_ctx, span->addr, span->len, write) : NULL;
}

static u64 operate(bool swap, u64 value, u64 compare_add, u64 swap_value)
{
	if (!swap)
		return value + compare_add;
	return value == compare_add ? swap_value : value;
}

/* In memory that both can reach the operation is atomic towards the application's own, too. */
static void atomic_direct(u64 *p, bool swap, u64 compare_add, u64 swap_value, u64 *old)
{
	if (!swap) {
		*old = __atomic_fetch_add(p, compare_add, __ATOMIC_SEQ_CST);
		return;
	}
	*old = compare_add;
	__atomic_compare_exchange_n(p, old, swap_value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

int hca_atomic(const struct hca_span *span, bool swap, u64 compare_add, u64 swap_value, u64 *old)
{
	const struct hca_dma_ops *dma = span->ctx->dma;
	struct hca_dma_seg seg = { .addr = span->addr, .len = 8, .local = old };
	u64 value;
	void *p;

	if (span->len != 8)
		return -EFAULT;
	p = hca_span_direct(span, true);
	if (p && !((uintptr_t)p & 7)) {
		atomic_direct(p, swap, compare_add, swap_value, old);
		return 0;
	}
	if (dma->read(span->ctx->dma_ctx, &seg, 1))
		return -EFAULT;
	value = operate(swap, *old, compare_add, swap_value);
	if (value == *old && swap)
		return 0;
	seg.local = &value;
	return dma->write(span->ctx->dma_ctx, &seg, 1) ? -EFAULT : 0;
}

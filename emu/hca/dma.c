// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Moves to and from application memory in batches.
 *
 * Entries are grouped by context. A change of direction starts new groups, so that a read sees what the writes before
 * it wrote and no buffer is overtaken; within a group entries keep their order. A run hands each group to the
 * context's DMA in as few calls as possible. When a call fails, its entries are retried one by one to find those that
 * fail.
 *
 * Where the DMA would have to wait for the memory (-EAGAIN), the entries become moves, which another thread executes
 * while the loop continues. A move has a serial number in its context until it is done. It owns the local bytes: those
 * to be written are copied when it begins, those that were read are copied to the entries' buffers when it is done, so
 * that packets and queue pairs need not outlive it. The pending bytes of a context are limited (hca_ctx_full()).
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/hca_internal.h"

#define SEGS_PER_CALL 1024         /* UIO_MAXIOV */
#define MOVE_BYTES    (128u << 10) /* per move, unless a single segment is longer */
#define MOVING_MOST   (8u << 20)   /* bytes of pending moves beyond which the requests of their context wait */
#define MOVING_DROP   (32u << 20)  /* beyond which requests of its peers are dropped */

struct group {
	struct hca_ctx *ctx; /* NULL: the context was destroyed */
	void *mem;
	bool write;
	u32 n, cap;
	struct hca_entry *entry;
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
	bool faulted;
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

bool hca_batch_faulted(struct hca_batch *b)
{
	bool faulted = b->faulted;

	b->faulted = false;
	return faulted;
}

static void *span_mem(const struct hca_span *span)
{
	return span->mem ? span->mem : span->ctx->dma_ctx;
}

static struct group *new_group(struct set *s, struct hca_ctx *ctx, void *mem, bool write)
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
	g->mem = mem;
	g->write = write;
	g->n = 0;
	return g;
}

/* The context caches its open group; it is valid while the serial matches. */
static struct group *open_group(struct hca_batch *b, struct hca_ctx *ctx, void *mem, bool write)
{
	struct set *s = &b->set[b->cur];
	struct group *g;
	u32 i;

	if (unlikely(s->write != write)) {
		s->write = write;
		s->first = s->n;
		b->serial = ++serials;
	}
	if (likely(ctx->batch == b && ctx->batch_serial == b->serial && s->group[ctx->batch_group].mem == mem))
		return &s->group[ctx->batch_group];
	for (i = s->first; i < s->n; i++)
		if (s->group[i].ctx == ctx && s->group[i].mem == mem)
			break;
	g = i < s->n ? &s->group[i] : new_group(s, ctx, mem, write);
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
	struct hca_entry *e = realloc(g->entry, cap * sizeof(*e));

	if (!e)
		return false;
	g->entry = e;
	g->cap = cap;
	return true;
}

/* Moves */

struct hca_pending *hca_pending_new(struct hca_ctx *ctx, void *mem, enum hca_move_op op, const struct hca_entry *e,
				    u32 n)
{
	size_t head = sizeof(struct hca_move) + n * sizeof(struct hca_move_seg);
	struct hca_pending *p = malloc(sizeof(*p) + n * sizeof(*e));
	struct hca_move *m;
	u32 i, at, bytes = 0;

	for (i = 0; i < n; i++)
		bytes += e[i].seg.len;
	m = malloc(head + bytes);
	if (!p || !m) {
		free(p);
		free(m);
		return NULL;
	}
	*m = (struct hca_move){ .op = op, .n = n, .bytes = bytes, .data = (u8 *)m + head, .pending = p };
	list_init(&m->link);
	*p = (struct hca_pending){ .ctx = ctx, .move = m, .mem = mem, .n = n };
	list_init(&p->link);
	memcpy(p->entry, e, n * sizeof(*e));
	for (i = 0, at = 0; i < n; at += e[i++].seg.len) {
		m->seg[i] = (struct hca_move_seg){ .addr = e[i].seg.addr,
						   .len = e[i].seg.len,
						   .on_demand = e[i].seg.on_demand };
		if (op == HCA_MOVE_WRITE)
			memcpy(m->data + at, e[i].seg.local, e[i].seg.len);
	}
	return p;
}

/* Bytes that a pending move holds: of many short segments, these are mostly its lists. */
u64 hca_pending_bytes(const struct hca_pending *p)
{
	return sizeof(*p) + sizeof(*p->move) + p->n * (sizeof(p->entry[0]) + sizeof(p->move->seg[0])) + p->move->bytes;
}

void hca_pending_finish(struct hca_pending *p, bool failed)
{
	const struct hca_move *m = p->move;
	bool any = failed;
	u32 i, at = 0;

	for (i = 0; i < p->n; at += m->seg[i++].len) {
		const struct hca_entry *e = &p->entry[i];

		if (failed || m->seg[i].failed) {
			any = true;
			if (e->failed)
				e->failed(e->arg, e->tag);
		} else if (m->op != HCA_MOVE_WRITE && e->seg.local) {
			memcpy(e->seg.local, m->data + at, e->seg.len);
		}
	}
	if (p->key && any)
		hca_key_free(p->key);
	else if (p->key)
		p->key->valid = true;
	free(p);
}

/* Starts the move. 0, -EFAULT, -ENOMEM, -EBUSY: done, @p is freed; -EINPROGRESS: pending. */
static int move_start(struct hca_pending *p)
{
	struct hca_move *m = p->move;
	struct hca_ctx *ctx = p->ctx;
	int err = ctx->dma->start(p->mem, m);
	bool failed;
	u32 i;

	if (err == -EINPROGRESS) {
		p->serial = ++ctx->move_serial;
		ctx->moving += hca_pending_bytes(p);
		list_add(&ctx->moves, &p->link);
		return err;
	}
	failed = err;
	for (i = 0; i < m->n; i++)
		failed |= m->seg[i].failed;
	if (err == -EBUSY)
		free(p);
	else
		hca_pending_finish(p, err);
	free(m);
	return err ? err : failed ? -EFAULT : 0;
}

static void pending_end(struct hca_pending *p, bool failed)
{
	struct hca_ctx *ctx = p->ctx;
	const struct hca_transport *t = ctx->hca->transport;

	list_del(&p->link);
	ctx->moving -= hca_pending_bytes(p);
	__atomic_store_n(&p->move->pending, NULL, __ATOMIC_RELAXED); /* see hca_move_abandoned() */
	hca_pending_finish(p, failed);
	if (t && t->moved)
		t->moved(ctx->hca);
}

void hca_move_done(struct hca_move *m)
{
	if (m->pending)
		pending_end(m->pending, false);
	free(m);
}

void hca_move_abandon(struct hca_move *m)
{
	if (m->pending)
		pending_end(m->pending, true);
}

void hca_moves_forget(struct hca_ctx *ctx)
{
	while (!list_empty(&ctx->moves)) {
		struct hca_pending *p = list_first(&ctx->moves, struct hca_pending, link);

		list_del(&p->link);
		__atomic_store_n(&p->move->pending, NULL, __ATOMIC_RELAXED);
		free(p);
	}
}

void hca_moves_forget_key(struct hca_ctx *ctx, const struct hca_key *k)
{
	struct hca_pending *p;

	list_for_each (p, &ctx->moves, link)
		if (p->key == k)
			p->key = NULL;
}

static void entry_disown(struct hca_entry *e)
{
	e->failed = NULL;
	e->seg.local = NULL;
}

static void pending_disown(struct hca_pending *p, const void *arg)
{
	u32 i;

	for (i = 0; i < p->n; i++) {
		if (p->entry[i].arg == arg)
			entry_disown(&p->entry[i]);
	}
}

static void pending_forget_local(struct hca_pending *p, const u8 *from, u32 len)
{
	u32 i;

	for (i = 0; i < p->n && p->move->op != HCA_MOVE_WRITE; i++) {
		const u8 *at = p->entry[i].seg.local;

		if (at >= from && at < from + len)
			entry_disown(&p->entry[i]);
	}
}

void hca_moves_disown(struct hca_ctx *ctx, const void *arg)
{
	struct hca_pending *p;

	list_for_each (p, &ctx->moves, link)
		pending_disown(p, arg);
	list_for_each (p, &ctx->faults, fault)
		pending_disown(p, arg);
}

void hca_moves_forget_local(struct hca_ctx *ctx, const void *from, u32 len)
{
	struct hca_pending *p;

	list_for_each (p, &ctx->moves, link)
		pending_forget_local(p, from, len);
	list_for_each (p, &ctx->faults, fault)
		pending_forget_local(p, from, len);
}

u64 hca_ctx_moves(const struct hca_ctx *ctx)
{
	return ctx->move_serial;
}

u64 hca_ctx_transfers(const struct hca_ctx *ctx)
{
	const struct hca_pending *p;
	u64 last = 0;

	list_for_each (p, &ctx->moves, link)
		if (!p->check)
			last = p->serial;
	return last;
}

bool hca_ctx_moved(const struct hca_ctx *ctx, u64 serial)
{
	return list_empty(&ctx->moves) || list_first(&ctx->moves, struct hca_pending, link)->serial > serial;
}

bool hca_ctx_full(const struct hca_ctx *ctx)
{
	return ctx->moving > MOVING_MOST;
}

bool hca_ctx_overfull(const struct hca_ctx *ctx)
{
	return ctx->moving > MOVING_DROP;
}

static bool touches(const struct hca_pending *p, const struct hca_key *k)
{
	u32 i;

	for (i = 0; k && i < p->n; i++) {
		const struct hca_dma_seg *s = &p->entry[i].seg;

		if (p->mem == (k->mem ? k->mem : k->ctx->dma_ctx) && s->addr < k->va + k->len &&
		    k->va < s->addr + s->len)
			return true;
	}
	return !k;
}

/* The last pending move of data to the memory of @key, or from there if @reads. */
static u64 last_move(struct hca_ctx *ctx, u32 key, bool reads)
{
	const struct hca_key *k = key ? hca_key_find(ctx->hca, key) : NULL;
	const struct hca_pending *p;
	u64 last = 0;

	if (k && k->kind != HCA_KEY_MR)
		k = k->mr;
	if (k && (k->pages || k->ranges))
		k = NULL; /* a region of other keys: any move may touch it */
	hca_batches_run();
	list_for_each (p, &ctx->moves, link)
		if ((p->move->op != HCA_MOVE_READ || (reads && !p->check)) && touches(p, k))
			last = p->serial;
	return last;
}

u64 hca_ctx_writes(struct hca_ctx *ctx, u32 key)
{
	return last_move(ctx, key, false);
}

u64 hca_ctx_accesses(struct hca_ctx *ctx, u32 key)
{
	return last_move(ctx, key, true);
}

/* Starts one move of up to @n entries from @e on; returns how many entries it has. */
static u32 entries_start(struct hca_ctx *ctx, void *mem, const struct hca_entry *e, u32 n, bool write)
{
	struct hca_pending *p;
	u32 take = 0, bytes = 0, i;

	for (; take < n && take < SEGS_PER_CALL && (!take || bytes + e[take].seg.len <= MOVE_BYTES); take++)
		bytes += e[take].seg.len;
	p = hca_pending_new(ctx, mem, write ? HCA_MOVE_WRITE : HCA_MOVE_READ, e, take);
	if (p)
		move_start(p);
	for (i = 0; i < take && !p; i++)
		if (e[i].failed)
			e[i].failed(e[i].arg, e[i].tag);
	return take;
}

/* Moves a single entry. */
static void entry_move(struct hca_ctx *ctx, void *mem, const struct hca_entry *e, bool write)
{
	int err = (write ? ctx->dma->write : ctx->dma->read)(mem, &e->seg, 1);

	if (err == -EAGAIN)
		entries_start(ctx, mem, e, 1, write);
	else if (err && e->failed)
		e->failed(e->arg, e->tag);
}

int hca_ctx_write(struct hca_ctx *ctx, void *dma, u64 addr, const void *local, u32 len)
{
	const struct hca_entry e = { .seg = { .addr = addr, .len = len, .local = (void *)(uintptr_t)local } };
	int err = ctx->dma->write(dma, &e.seg, 1);
	struct hca_pending *p;

	if (err != -EAGAIN)
		return err;
	p = hca_pending_new(ctx, dma, HCA_MOVE_WRITE, &e, 1);
	return p ? move_start(p) : -ENOMEM;
}

int hca_mr_check(struct hca_key *k)
{
	struct hca_ctx *ctx = k->ctx;
	void *mem = k->mem ? k->mem : ctx->dma_ctx;
	const struct hca_entry e[2] = { { .seg = { .addr = k->va, .len = 1 } },
					{ .seg = { .addr = k->va + k->len - 1, .len = 1 } } };
	struct hca_pending *p;
	int err;

	err = ctx->dma->check ? ctx->dma->check(mem, k->va, k->len, k->access & HCA_ACCESS_LOCAL_WRITE) : 0;
	if (err != -EAGAIN)
		return err;
	p = hca_pending_new(ctx, mem, HCA_MOVE_READ, e, 2);
	if (!p)
		return -ENOMEM;
	err = move_start(p);
	if (err == -EINPROGRESS) {
		p->check = true;
		p->key = k;
	}
	return err;
}

/* Batches */

static inline void batch_add(struct hca_batch *b, const struct hca_span *span, void *local,
			     void (*failed)(void *arg, u64 tag), void *arg, u64 tag, bool write)
{
	struct hca_entry e = {
		.seg = { .addr = span->addr, .len = span->len, .on_demand = span->on_demand, .local = local },
		.failed = failed,
		.arg = arg,
		.tag = tag,
	};
	struct group *g;

	if (!span->len)
		return;
	if (unlikely(span->absent)) {
		if (!hca_page_fault_wait(span, write ? HCA_MOVE_WRITE : HCA_MOVE_READ, &e, 0, 0))
			b->faulted = true;
		else if (failed)
			failed(arg, tag);
		return;
	}
	g = open_group(b, span->ctx, span_mem(span), write);
	if (unlikely(!g || (g->n == g->cap && !grow(g)))) { /* the entry is moved alone, after all pending entries */
		hca_batch_run(b);
		entry_move(span->ctx, span_mem(span), &e, write);
		return;
	}
	g->entry[g->n++] = e;
	b->set[b->cur].pending++;
}

void hca_batch_read(struct hca_batch *b, const struct hca_span *span, void *local, void (*failed)(void *arg, u64 tag),
		    void *arg, u64 tag)
{
	batch_add(b, span, local, failed, arg, tag, false);
}

void hca_batch_write(struct hca_batch *b, const struct hca_span *span, const void *local,
		     void (*failed)(void *arg, u64 tag), void *arg, u64 tag)
{
	batch_add(b, span, (void *)(uintptr_t)local, failed, arg, tag, true);
}

/* Moves entries from @i on into @seg, joined where both sides are adjacent; returns the entry after the last taken. */
static u32 gather(const struct group *g, u32 i, struct hca_dma_seg *seg, u32 *nsegs)
{
	u32 n = 0;

	for (; i < g->n; i++) {
		const struct hca_dma_seg *s = &g->entry[i].seg;

		if (n && seg[n - 1].addr + seg[n - 1].len == s->addr &&
		    (u8 *)seg[n - 1].local + seg[n - 1].len == s->local && seg[n - 1].len + s->len >= s->len &&
		    seg[n - 1].on_demand == s->on_demand) {
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

static void run_group(struct hca_batch *b, struct group *g)
{
	u32 i = 0;

	while (i < g->n && g->ctx) {
		struct hca_ctx *ctx = g->ctx;
		u32 nsegs, next = gather(g, i, b->seg, &nsegs);
		int err = (g->write ? ctx->dma->write : ctx->dma->read)(g->mem, b->seg, nsegs);

		if (unlikely(err == -EAGAIN)) {
			next = i + entries_start(ctx, g->mem, g->entry + i, next - i, g->write);
		} else if (unlikely(err)) { /* one by one, to find those that fail */
			for (; i < next && g->ctx; i++) {
				struct hca_entry e = g->entry[i];

				entry_move(g->ctx, g->mem, &e, g->write);
			}
		}
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

void hca_batches_run(void)
{
	struct hca_batch *b;

	list_for_each (b, &batches, link)
		hca_batch_run(b);
}

void hca_batches_forget(const struct hca_ctx *ctx)
{
	struct hca_batch *b;

	list_for_each (b, &batches, link)
		hca_batch_forget(b, ctx);
}

void *hca_span_direct(const struct hca_span *span, bool write)
{
	const struct hca_ctx *ctx = span->ctx;

	if (!ctx->dma->direct || span->on_demand || span->absent)
		return NULL;
	return ctx->dma->direct(span_mem(span), span->addr, span->len, write);
}

u64 hca_atomic_value(bool swap, u64 value, u64 compare_add, u64 swap_value)
{
	if (!swap)
		return value + compare_add;
	return value == compare_add ? swap_value : value;
}

static int atomic_start(const struct hca_span *span, bool swap, u64 compare_add, u64 swap_value, u64 *old,
			void (*failed)(void *arg, u64 tag), void *arg, u64 tag)
{
	const struct hca_entry e = { .seg = { span->addr, 8, span->on_demand, old }, .arg = arg, .tag = tag };
	struct hca_pending *p =
		hca_pending_new(span->ctx, span_mem(span), swap ? HCA_MOVE_CMP_SWAP : HCA_MOVE_FETCH_ADD, &e, 1);
	int err;

	if (!p)
		return -EFAULT;
	p->move->compare_add = compare_add;
	p->move->swap = swap_value;
	err = move_start(p);
	if (err == -EINPROGRESS)
		p->entry[0].failed = failed;
	return err;
}

int hca_atomic(const struct hca_span *span, bool swap, u64 compare_add, u64 swap_value, u64 *old,
	       void (*failed)(void *arg, u64 tag), void *arg, u64 tag)
{
	const struct hca_dma_ops *dma = span->ctx->dma;
	struct hca_dma_seg seg = { .addr = span->addr, .len = 8, .on_demand = span->on_demand, .local = old };
	u64 value, *p;
	int err;

	if (span->len != 8)
		return -EFAULT;
	if (unlikely(span->absent)) {
		const struct hca_entry e = {
			.seg = { .addr = span->addr, .len = 8, .local = old }, .failed = failed, .arg = arg, .tag = tag
		};

		return hca_page_fault_wait(span, swap ? HCA_MOVE_CMP_SWAP : HCA_MOVE_FETCH_ADD, &e, compare_add,
					   swap_value)
			       ? -EFAULT
			       : -EINPROGRESS;
	}
	p = hca_span_direct(span, true);
	if (p && !((uintptr_t)p & 7)) { /* also atomic against operations of the application itself */
		*old = compare_add;
		if (swap)
			__atomic_compare_exchange_n(p, old, swap_value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		else
			*old = __atomic_fetch_add(p, compare_add, __ATOMIC_SEQ_CST);
		return 0;
	}
	err = dma->read(span_mem(span), &seg, 1);
	if (err == -EAGAIN)
		return atomic_start(span, swap, compare_add, swap_value, old, failed, arg, tag);
	if (err)
		return -EFAULT;
	value = hca_atomic_value(swap, *old, compare_add, swap_value);
	if (value == *old && swap)
		return 0;
	seg.local = &value;
	return dma->write(span_mem(span), &seg, 1) ? -EFAULT : 0;
}

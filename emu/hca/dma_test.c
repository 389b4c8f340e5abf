// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of dma.c: merging, order, error attribution, destroyed contexts, atomics. */
#include "emu/hca/fixture.h"
#include "emu/hca/late_fixture.h"

/* Application memory of 64 KiB at address 0; one page may be missing. */
struct memory {
	u8 byte[65536];
	u32 calls, segs;
	u64 bad; /* first address of 256 missing bytes; ~0: none */
};

static int move(struct memory *m, const struct hca_dma_seg *seg, u32 n, bool write)
{
	u32 i;

	m->calls++;
	m->segs += n;
	for (i = 0; i < n; i++) {
		if (seg[i].addr + seg[i].len > sizeof(m->byte) ||
		    (seg[i].addr < m->bad + 256 && seg[i].addr + seg[i].len > m->bad && m->bad != ~0ull))
			return -EFAULT;
		if (write)
			memcpy(m->byte + seg[i].addr, seg[i].local, seg[i].len);
		else
			memcpy(seg[i].local, m->byte + seg[i].addr, seg[i].len);
	}
	return 0;
}

static int memory_read(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	return move(dma, seg, n, false);
}

static int memory_write(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	return move(dma, seg, n, true);
}

static const struct hca_dma_ops memory_ops = { .read = memory_read, .write = memory_write };

static struct memory mem[2];
static struct fixture f;
static struct hca_ctx *ctx[2];
static struct hca_batch *b;
static u32 failures;
static u64 failed_set;

static void on_failed(void *arg, u64 tag)
{
	failures++;
	failed_set |= 1ull << (uintptr_t)arg;
}

static void wr(u32 c, u64 addr, u32 len, const void *local, u32 id)
{
	hca_batch_write(b, &(struct hca_span){ ctx[c], addr, len, false, NULL }, local, on_failed,
			(void *)(uintptr_t)id, 0);
}

static void rd(u32 c, u64 addr, u32 len, void *local, u32 id)
{
	hca_batch_read(b, &(struct hca_span){ ctx[c], addr, len, false, NULL }, local, on_failed, (void *)(uintptr_t)id,
		       0);
}

static void run(void)
{
	mem[0].calls = mem[1].calls = mem[0].segs = mem[1].segs = 0;
	failures = 0;
	failed_set = 0;
	hca_batch_run(b);
}

static void check_merging(void)
{
	static u8 src[4096], dst[4096];
	u32 i;

	for (i = 0; i < sizeof(src); i++)
		src[i] = (u8)(i * 7);
	for (i = 0; i < 16; i++)
		wr(0, i * 256, 256, src + i * 256, i);
	row(1, "pending", hca_batch_pending(b) == 16);
	run();
	row(2, "adjacent on both sides: one segment", mem[0].calls == 1 && mem[0].segs == 1);
	row(3, "the bytes", !memcmp(mem[0].byte, src, 4096) && hca_batch_pending(b) == 0);
	for (i = 0; i < 16; i++)
		rd(0, i * 256, 256, dst + (15 - i) * 256, i);
	run();
	row(4, "apart on one side: one call", mem[0].calls == 1 && mem[0].segs == 16);
	row(5, "the bytes", !memcmp(dst + 15 * 256, src, 256) && !memcmp(dst, src + 15 * 256, 256));
	for (i = 0; i < 20; i++) {
		wr(0, 1000 + i * 16, 8, src, i);
		wr(1, 1000 + i * 16, 8, src + 8, i);
	}
	run();
	row(6, "one call for a context", mem[0].calls == 1 && mem[1].calls == 1);
	for (i = 0; i < 2500; i++)
		wr(0, i * 16, 8, src, i);
	run();
	row(7, "at most 1024 segments a call", mem[0].calls == 3 && mem[0].segs == 2500);
	wr(0, 0, 0, src, 0);
	row(8, "an empty batch", hca_batch_pending(b) == 0);
}

static void check_order(void)
{
	u8 one[8], two[8], seen[8], later[8];

	memset(one, 1, 8);
	memset(two, 2, 8);
	wr(0, 0, 8, one, 0);
	wr(0, 4, 8, two, 1);
	wr(0, 6, 2, one, 2);
	run();
	row(20, "the later of overlapping writes stays",
	    mem[0].byte[3] == 1 && mem[0].byte[4] == 2 && mem[0].byte[6] == 1 && mem[0].byte[8] == 2);
	wr(0, 100, 8, one, 0);
	rd(0, 100, 8, seen, 1);
	wr(0, 100, 8, two, 2);
	rd(0, 100, 8, later, 3);
	run();
	row(21, "a read sees the write before it", !memcmp(seen, one, 8));
	row(22, "and not the one after it", !memcmp(later, two, 8));
	wr(1, 200, 8, one, 0);
	rd(0, 100, 8, seen, 1);
	wr(1, 200, 8, seen, 2);
	run();
	row(23, "from one context to another through a buffer", !memcmp(mem[1].byte + 200, two, 8));
}

static void add_again(void *arg, u64 tag)
{
	static u8 byte = 77;

	failures++;
	wr(0, 3000, 1, &byte, 5);
	hca_batch_run(b);
}

static void check_blame(void)
{
	static u8 src[64];
	u32 i;

	mem[0].bad = 512;
	memset(src, 9, sizeof(src));
	memset(mem[0].byte, 0, sizeof(mem[0].byte));
	for (i = 0; i < 16; i++)
		wr(0, i * 64, 64, src, i);
	wr(1, 0, 64, src, 20);
	run();
	row(30, "those that touch the missing bytes fail", failures == 4 && failed_set == 0xf00);
	row(31, "the others are executed", mem[0].byte[511] == 9 && mem[0].byte[768] == 9 && mem[1].byte[0] == 9);
	rd(0, 600, 8, src, 1);
	run();
	row(32, "a lone entry", failures == 1);
	hca_batch_write(b, &(struct hca_span){ ctx[0], 600, 8, false, NULL }, src, add_again, NULL, 0);
	run();
	row(33, "a callback may add", failures == 1 && hca_batch_pending(b) == 1);
	run();
	row(34, "for the next run", mem[0].byte[3000] == 77);
	mem[0].bad = ~0ull;
}

static void check_forget(void)
{
	static u8 byte = 55;
	u32 i;

	mem[0].byte[10] = mem[1].byte[10] = 0;
	for (i = 0; i < 3; i++) {
		wr(0, 10, 1, &byte, 0);
		wr(1, 10, 1, &byte, 1);
	}
	hca_batch_forget(b, ctx[0]);
	row(40, "pending", hca_batch_pending(b) == 3);
	run();
	row(41, "forgotten, the other not", mem[0].byte[10] == 0 && mem[1].byte[10] == 55 && !failures);
	wr(1, 11, 1, &byte, 0);
	hca_ctx_destroy(ctx[1]);
	run();
	row(42, "a destroyed context drops its entries", mem[1].byte[11] != 55 && mem[1].calls == 0);
}

static void check_atomics(struct hca_ctx *c, u64 addr, u64 *cell, int n)
{
	struct hca_span span = { c, addr, 8, NULL };
	u64 old;

	*cell = 100;
	row(n, "add", !hca_atomic(&span, false, 5, 0, &old, NULL, NULL, 0) && old == 100 && *cell == 105);
	row(n + 1, "add wraps", !hca_atomic(&span, false, ~0ull, 0, &old, NULL, NULL, 0) && old == 105 && *cell == 104);
	row(n + 2, "swap", !hca_atomic(&span, true, 104, 7, &old, NULL, NULL, 0) && old == 104 && *cell == 7);
	row(n + 3, "no swap", !hca_atomic(&span, true, 104, 9, &old, NULL, NULL, 0) && old == 7 && *cell == 7);
	row(n + 4, "swap with itself", !hca_atomic(&span, true, 7, 7, &old, NULL, NULL, 0) && old == 7 && *cell == 7);
}

static int late_op(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	return -EAGAIN;
}

static int late_check(void *dma, u64 addr, u64 len, bool write)
{
	return -EAGAIN;
}

static void late_done(u32 i)
{
	late_move_end(late_moves[i], &memory_ops, &mem[0]);
}

static const struct hca_dma_ops late_ops = {
	.read = late_op, .write = late_op, .check = late_check, .start = late_start
};

static void check_late(void)
{
	static u8 big[9 << 20];
	u8 src[8], dst[8] = { 0 };
	u32 pd, lkey, rkey, i;
	u64 serial, old;

	ctx[1] = hca_ctx_create(f.hca, &late_ops, &mem[0], NULL, NULL);
	memset(src, 5, 8);
	run();
	wr(1, 40000, 8, src, 1);
	rd(1, 40000, 8, dst, 2);
	run();
	serial = hca_ctx_moves(ctx[1]);
	memset(src, 6, 8); /* was copied */
	row(80, "under way",
	    late_count == 2 && serial == 2 && hca_ctx_transfers(ctx[1]) == 2 && !hca_ctx_moved(ctx[1], 1) &&
		    mem[0].byte[40000] != 5);
	row(81, "the last write", hca_ctx_writes(ctx[1], 0) == 1);
	late_done(0);
	row(82, "the first is done", hca_ctx_moved(ctx[1], 1) && !hca_ctx_moved(ctx[1], 2) && mem[0].byte[40007] == 5);
	late_done(1);
	row(83, "the second, too", hca_ctx_moved(ctx[1], 2) && dst[0] == 5 && dst[7] == 5 && !failures);
	late_count = 0;
	wr(1, 1 << 20, 8, src, 3);
	run();
	late_done(0);
	row(84, "a failure is found late", failures == 1 && failed_set == 1 << 3);
	late_count = 0;
	rd(1, 40000, 8, dst, 4);
	run();
	hca_moves_disown(ctx[1], (void *)4);
	memset(dst, 0, 8);
	late_done(0);
	row(85, "no callback for an abandoned entry", !dst[0] && !failures);
	late_count = 0;
	hca_pd_alloc(ctx[1], &pd);
	row(86, "a region is looked at",
	    hca_mr_reg(ctx[1], pd, 4096, 4096, 4096, 1, &lkey, &rkey) == -EINPROGRESS &&
		    hca_mr_registered(ctx[1], lkey) && !hca_ctx_transfers(ctx[1]));
	late_done(0);
	row(87, "and then it is valid", !hca_mr_registered(ctx[1], lkey) && !hca_mr_dereg(ctx[1], lkey));
	row(88, "one that is not there",
	    hca_mr_reg(ctx[1], pd, 1 << 20, 1 << 20, 4096, 1, &lkey, &rkey) == -EINPROGRESS);
	late_done(1);
	row(89, "is deregistered", hca_mr_registered(ctx[1], lkey) == -EFAULT && hca_mr_dereg(ctx[1], lkey) == -ENOENT);
	late_count = 0;
	hca_mr_reg(ctx[1], pd, 4096, 4096, 4096, 1, &lkey, &rkey);
	hca_mr_dereg(ctx[1], lkey);
	for (i = 0; i < 10000 && !hca_mr_alloc(ctx[1], pd, 1, &rkey) && rkey != lkey; i++)
		hca_mr_dereg(ctx[1], rkey);
	late_done(0);
	row(95, "a region that reuses the key of one deregistered during its check is not valid",
	    rkey == lkey && hca_mr_registered(ctx[1], lkey) && !hca_mr_dereg(ctx[1], lkey));
	late_count = 0;
	hca_mr_reg(ctx[1], pd, 1 << 20, 1 << 20, 4096, 1, &lkey, &rkey);
	hca_mr_dereg(ctx[1], lkey);
	for (i = 0; i < 10000 && !hca_mr_alloc(ctx[1], pd, 1, &rkey) && rkey != lkey; i++)
		hca_mr_dereg(ctx[1], rkey);
	late_done(0);
	row(96, "nor is it freed when that check fails", rkey == lkey && !hca_mr_dereg(ctx[1], lkey));
	late_count = 0;
	memset(mem[0].byte + 48, 0, 8);
	row(90, "an atomic",
	    hca_atomic(&(struct hca_span){ ctx[1], 48, 8, false, NULL }, false, 3, 0, &old, on_failed, NULL, 0) ==
			    -EINPROGRESS &&
		    late_moves[0]->op == HCA_MOVE_FETCH_ADD);
	hca_move_abandon(late_moves[0]);
	row(91, "which is abandoned", failures == 1 && hca_ctx_moved(ctx[1], hca_ctx_moves(ctx[1])));
	free(late_moves[0]);
	late_count = 0;
	row(92, "room", !hca_ctx_full(ctx[1]));
	wr(1, 0, sizeof(big), big, 5);
	run();
	row(93, "and none", hca_ctx_full(ctx[1]));
	hca_ctx_destroy(ctx[1]);
	hca_move_done(late_moves[0]);
	row(94, "a destroyed context leaves its moves", true);
}

static struct list started = { &started, &started };

static int start_any(void *dma, struct hca_move *m)
{
	list_add(&started, &m->link);
	return -EINPROGRESS;
}

/* The limit of pending moves is of the memory that they hold, which for short segments is more than their bytes. */
static void check_short_segments(void)
{
	static const struct hca_dma_ops ops = { .read = late_op, .write = late_op, .start = start_any };
	static const u8 byte = 0;
	u32 i;

	ctx[1] = hca_ctx_create(f.hca, &ops, &mem[0], NULL, NULL);
	for (i = 0; i < 200000 && !hca_ctx_full(ctx[1]); i++) {
		wr(1, i % 30000 * 2, 1, &byte, 1);
		if (i % 1000 == 999)
			run();
	}
	row(97, "segments of a byte leave no room", i < 200000);
	while (!list_empty(&started)) {
		struct hca_move *m = list_first(&started, struct hca_move, link);

		list_del(&m->link);
		late_move_end(m, &memory_ops, &mem[0]);
	}
	row(98, "until they are done", !hca_ctx_full(ctx[1]) && !failures);
	hca_ctx_destroy(ctx[1]);
}

int main(void)
{
	struct hca_span span;
	u64 cell, old;

	mem[0].bad = mem[1].bad = ~0ull;
	fixture_init_dma(&f, &memory_ops, &mem[0]);
	ctx[0] = f.ctx;
	ctx[1] = hca_ctx_create(f.hca, &memory_ops, &mem[1], NULL, NULL);
	b = hca_batch_create();
	check_merging();
	check_order();
	check_blame();
	check_atomics(ctx[0], 64, (u64 *)(void *)(mem[0].byte + 64), 50);
	span = (struct hca_span){ ctx[0], 1 << 20, 8, false, NULL };
	row(55, "missing memory", hca_atomic(&span, false, 1, 0, &old, NULL, NULL, 0) == -EFAULT);
	span.len = 4;
	row(56, "not 8 bytes", hca_atomic(&span, false, 1, 0, &old, NULL, NULL, 0) == -EFAULT);
	check_forget();
	check_late();
	check_short_segments();
	ctx[1] = hca_ctx_create(f.hca, &hca_local_dma, NULL, NULL, NULL);
	check_atomics(ctx[1], (u64)(uintptr_t)&cell, &cell, 60);
	hca_batch_destroy(b);
	fixture_fini(&f);
	return rows_end();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of page_fault.c: absent pages of memory keys, the order of accesses that wait, and their ends. */
#include "emu/hca/fixture.h"

#define PAGE 4096u
#define BASE 0x10000u
#define R    HCA_ACCESS_LOCAL_READ
#define W    HCA_ACCESS_LOCAL_WRITE
#define ALL  (R | W | HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_ATOMIC)

static u8 memory[8 * PAGE] __attribute__((aligned(8)));
static struct hca_page_fault last;
static u32 faults, failures;
static int refuse;

static int move(const struct hca_dma_seg *s, u32 n, bool write)
{
	for (; n; n--, s++) {
		if (s->addr > sizeof(memory) || s->len > sizeof(memory) - s->addr)
			return -EFAULT;
		memcpy(write ? memory + s->addr : s->local, write ? s->local : memory + s->addr, s->len);
	}
	return 0;
}

static int memory_read(void *dma, const struct hca_dma_seg *s, u32 n)
{
	return move(s, n, false);
}

static int memory_write(void *dma, const struct hca_dma_seg *s, u32 n)
{
	return move(s, n, true);
}

static int on_page_fault(void *dma, const struct hca_page_fault *f)
{
	faults += !refuse;
	last = *f;
	return refuse;
}

static const struct hca_dma_ops ops = { .read = memory_read, .write = memory_write, .page_fault = on_page_fault };

static struct fixture f;
static struct hca_soft_wq *wq[2];
static struct hca_soft_cq *cq;
static struct hca_qp *qp, *other;
static struct hca_batch *b;
static u32 key;

static void on_failed(void *arg, u64 tag)
{
	failures++;
}

static void page_set(u32 i, u64 bits)
{
	u64 page = i * PAGE | bits;

	hca_mkey_set_pages(f.ctx, key, i, &page, 1);
}

static bool key_of_pages(void)
{
	struct hca_mkey m = {
		.kind = HCA_MKEY_PAGES, .entries = 4, .pdn = f.pdn, .access = ALL, .base = BASE, .page_shift = 12
	};
	u32 k = 0, i;

	hca_mkey_create(f.ctx, &m, &k);
	m.len = 4 * PAGE;
	m.valid = true;
	hca_mkey_set(f.ctx, k, &m);
	key = (k & ~0xffu) | m.variant;
	for (i = 0; i < 4; i++)
		page_set(i, 0);
	return !hca_mkey_query(f.ctx, key, &m);
}

/* An access of @q, as the transport's. */
static void put(struct hca_qp *q, u64 va, const void *from, u32 len)
{
	const struct hca_sge sge = { va, len, key };
	const struct hca_mem m = { q, &sge, 1, hca_key_remote, HCA_ACCESS_REMOTE_WRITE, .token = va + 2 * len };
	const struct hca_mem_batch mb = { b, on_failed, NULL, 0 };

	hca_mem_write(&m, 0, len, from, &mb);
	hca_batch_run(b);
}

static void get(u64 va, void *to, u32 len)
{
	const struct hca_sge sge = { va, len, key };
	const struct hca_mem m = { qp, &sge, 1, hca_key_local, R, .token = 77 };
	const struct hca_mem_batch mb = { b, on_failed, to, 0 };

	hca_mem_read(&m, 0, len, to, &mb);
	hca_batch_run(b);
}

static bool pending(const struct hca_qp *q)
{
	return !hca_qp_moved(q, hca_ctx_moves(f.ctx));
}

static void start(void)
{
	fixture_init_dma(&f, &ops, NULL);
	hca_soft_cq_create(f.ctx, 16, NULL, NULL, &cq);
	wq[0] = fixture_qp(&f, HCA_QPT_RC, cq, 0);
	wq[1] = fixture_qp(&f, HCA_QPT_RC, cq, 0);
	qp = hca_qp_lookup(f.hca, hca_soft_wq_number(wq[0]));
	other = hca_qp_lookup(f.hca, hca_soft_wq_number(wq[1]));
	b = hca_batch_create();
	row(1, "a key of pages", qp && other && b && key_of_pages());
}

static void spans(void)
{
	struct hca_span s[HCA_MAX_SPANS];
	u32 i;

	for (i = 0; i < 4; i++)
		page_set(i, i == 1 ? HCA_PAGE_NO_WRITE : i == 2 ? HCA_PAGE_NO_READ | HCA_PAGE_NO_WRITE : 0);
	row(2, "pages that are absent for writes are one span",
	    hca_key_local(qp, key, BASE + 4, 4 * PAGE - 4, W, s) == 3 && !s[0].absent && s[0].addr == 4 &&
		    s[1].absent && s[1].addr == BASE + PAGE && s[1].len == 2 * PAGE && !s[2].absent &&
		    s[2].addr == 3 * PAGE);
	row(3, "one of them is present for reads",
	    hca_key_local(qp, key, BASE, 2 * PAGE, R, s) == 1 && !s[0].absent && s[0].len == 2 * PAGE);
	row(4, "an absent one has no address for zero-copy",
	    hca_key_local(qp, key, BASE + PAGE, 8, W, s) == 1 && !hca_span_direct(s, true));
}

static void waits(void)
{
	put(qp, BASE + PAGE, "first", 5);
	row(5, "a write to an absent page",
	    faults == 1 && last.kind == HCA_PAGE_FAULT_WRITE && last.key == key && last.va == BASE + PAGE &&
		    last.len == 10 && !memcmp(memory + PAGE, "\0\0\0\0\0", 5));
	row(6, "keeps the queue pair waiting", pending(qp) && qp->suspended[0] && !qp->suspended[1]);
	row(7, "and no other one", !pending(other) && hca_ctx_moved(f.ctx, hca_ctx_moves(f.ctx)));
	put(other, BASE, "other", 5);
	row(8, "which is served", !memcmp(memory, "other", 5) && faults == 1);
	put(qp, BASE, "later", 5);
	row(9, "a later write of the queue pair to a page that is present waits",
	    !memcmp(memory, "other", 5) && faults == 1);
	row(10, "resumed without the page", !hca_page_fault_resume(f.ctx, qp->qpn, false, false) && faults == 2);
	row(11, "the requester does not wait", hca_page_fault_resume(f.ctx, qp->qpn, true, false) == -ENOENT);
	page_set(1, 0);
	row(12, "resumed",
	    !hca_page_fault_resume(f.ctx, qp->qpn, false, false) && faults == 2 && !pending(qp) &&
		    !memcmp(memory + PAGE, "first", 5) && !memcmp(memory, "later", 5));
	row(13, "twice", hca_page_fault_resume(f.ctx, qp->qpn, false, false) == -ENOENT);
}

static void ends(void)
{
	char to[8] = "?";

	get(BASE + 2 * PAGE, to, 1);
	row(20, "a read of an absent page names its request",
	    faults == 3 && last.kind == HCA_PAGE_FAULT_SEND && last.token == 77 && qp->suspended[1]);
	hca_moves_disown(f.ctx, to);
	page_set(2, 0);
	memory[2 * PAGE] = 'x';
	row(21, "whose buffer is not written after its owner has ended",
	    !hca_page_fault_resume(f.ctx, qp->qpn, true, false) && *to == '?' && !failures);
	page_set(2, HCA_PAGE_NO_READ | HCA_PAGE_NO_WRITE);
	get(BASE + 2 * PAGE, to, 1);
	get(BASE + 3 * PAGE, to + 1, 1);
	hca_moves_disown(f.ctx, to);
	memory[3 * PAGE] = 'y';
	row(27, "such a read has no other page fault, and the next one is executed",
	    faults == 4 && !hca_page_fault_resume(f.ctx, qp->qpn, true, false) && faults == 4 && to[1] == 'y' &&
		    *to == '?' && !pending(qp));
	get(BASE + 2 * PAGE, to, 1);
	get(BASE + 3 * PAGE, to + 2, 1);
	hca_moves_disown(f.ctx, to);
	row(28, "nor does its failure end the next one",
	    !hca_page_fault_resume(f.ctx, qp->qpn, true, true) && to[2] == 'y' && !failures && !pending(qp));
	get(BASE + 2 * PAGE, to, 1);
	get(BASE + PAGE, to + 1, 1);
	row(22, "pages that cannot be set: all that wait fail",
	    !hca_page_fault_resume(f.ctx, qp->qpn, true, true) && failures == 2 && !pending(qp));
	refuse = -EFAULT;
	get(BASE + 2 * PAGE, to, 1);
	row(23, "a page fault that the front end refuses fails", failures == 3 && !qp->suspended[1]);
	refuse = 0;
	put(qp, BASE + 2 * PAGE, "a", 1);
	hca_mkey_set(f.ctx, key, &(struct hca_mkey){ .pdn = f.pdn, .page_shift = 12 });
	row(24, "of a key that is invalid when it is resumed",
	    !hca_page_fault_resume(f.ctx, qp->qpn, false, false) && failures == 4);
	row(26, "another key", key_of_pages());
	page_set(2, HCA_PAGE_NO_READ | HCA_PAGE_NO_WRITE);
	put(qp, BASE + 2 * PAGE, "a", 1);
	row(25, "of a queue pair that is destroyed",
	    pending(qp) && !hca_soft_wq_destroy(wq[0]) && failures == 4 && !f.ctx->moving &&
		    list_empty(&f.ctx->faults));
	qp = other;
}

/* What waits is limited by queue pair: others are served, however much it is. */
static void limits(void)
{
	static u8 from[PAGE];
	struct hca_soft_wq *w = fixture_qp(&f, HCA_QPT_RC, cq, 0);
	struct hca_qp *slow = hca_qp_lookup(f.hca, hca_soft_wq_number(w));
	u32 i, full = 0, overfull = 0;

	for (i = 0; i < 10240; i++) {
		full += hca_qp_full(slow);
		overfull += hca_qp_overfull(slow);
		put(slow, BASE + 2 * PAGE, from, sizeof(from));
	}
	row(32, "a queue pair that waits with many bytes is full, then overfull", full > overfull && overfull > 1000);
	row(33, "no other one is, nor the context", !hca_qp_full(qp) && !hca_ctx_full(f.ctx));
	put(qp, BASE + 2 * PAGE, from, sizeof(from));
	row(34, "until it waits, too, when they have too many together", hca_qp_full(qp) && hca_qp_overfull(qp));
	row(35, "after they have ended",
	    !hca_soft_wq_destroy(w) && !hca_qp_full(qp) && !hca_page_fault_resume(f.ctx, qp->qpn, false, true) &&
		    !f.ctx->fault_bytes);
}

static void atomics(void)
{
	struct hca_span s[HCA_MAX_SPANS];
	u64 value = 40, old = 0;

	memcpy(memory + 2 * PAGE, &value, 8);
	row(30, "an atomic operation on an absent page",
	    hca_key_remote(qp, key, BASE + 2 * PAGE, 8, HCA_ACCESS_REMOTE_ATOMIC, s) == 1 &&
		    hca_atomic(s, false, 2, 0, &old, on_failed, NULL, 0) == -EINPROGRESS);
	page_set(2, 0);
	row(31, "is executed once",
	    !hca_page_fault_resume(f.ctx, qp->qpn, false, false) &&
		    (memcpy(&value, memory + 2 * PAGE, 8), value == 42) && old == 40);
}

/* Ranges of a key of blocks of a key of pages, and what else blocks may name. */
static void blocks(void)
{
	const struct hca_sge set[4] = { { 0, 0, HCA_RANGE_ABSENT }, { BASE, 0, key }, { BASE + PAGE, 0, key } };
	struct hca_mkey m = {
		.kind = HCA_MKEY_BLOCKS, .entries = 4, .pdn = f.pdn, .access = ALL, .page_shift = 12, .variant = 1
	};
	struct hca_sge range = { 0, 4 * PAGE, 0 };
	struct hca_span s[HCA_MAX_SPANS];
	u32 k, outer;

	row(40, "a key of blocks",
	    !hca_mkey_create(f.ctx, &m, &k) && !hca_mkey_set_ranges(f.ctx, k, 0, set, 4) &&
		    (m.valid = true, m.len = 4 * PAGE + 1, hca_mkey_set(f.ctx, k, &m) == -EINVAL));
	m.len--;
	row(41, "as long as its blocks", !hca_mkey_set(f.ctx, k, &m));
	row(42, "an absent one and two others",
	    hca_key_local(qp, k, 8, 3 * PAGE - 8, W, s) == 2 && s[0].absent && s[0].addr == 8 && s[0].len == PAGE - 8 &&
		    !s[1].absent && s[1].addr == 0 && s[1].len == 2 * PAGE);
	page_set(1, HCA_PAGE_NO_WRITE);
	row(43, "whose second page is absent",
	    hca_key_local(qp, k, PAGE, 2 * PAGE, W, s) == 2 && s[1].absent && s[1].addr == 2 * PAGE);
	row(44, "one block is replaced, and those behind it stay",
	    !hca_mkey_set_ranges(f.ctx, k, 0, &set[1], 1) && hca_mkey_ranges(f.ctx, k, &range, 1) == 1 &&
		    range.addr == BASE && hca_key_local(qp, k, 0, 3 * PAGE, R, s) == 2);
	range = (struct hca_sge){ k & ~0xffu, 0, k };
	row(45, "a block of blocks has no memory",
	    !hca_mkey_set_ranges(f.ctx, k, 3, &range, 1) && hca_key_local(qp, k, 3 * PAGE, 1, R, s) == HCA_KEY_INVALID);
	m = (struct hca_mkey){
		.kind = HCA_MKEY_RANGES, .entries = 1, .pdn = f.pdn, .access = ALL, .page_shift = 12, .variant = 1
	};
	range = (struct hca_sge){ PAGE, 2 * PAGE, k };
	row(46, "a window in it",
	    !hca_mkey_create(f.ctx, &m, &outer) && !hca_mkey_set_ranges(f.ctx, outer, 0, &range, 1) &&
		    (m.valid = true, m.len = 2 * PAGE, !hca_mkey_set(f.ctx, outer, &m)));
	row(47, "has its memory, and its page faults by its own address",
	    hca_key_remote(qp, outer, 8, 2 * PAGE - 8, HCA_ACCESS_REMOTE_WRITE, s) == 2 && s[0].addr == 8 &&
		    s[1].absent && s[1].addr == PAGE && s[1].key == outer);
}

int main(void)
{
	start();
	spans();
	waits();
	ends();
	limits();
	atomics();
	blocks();
	hca_batch_destroy(b);
	hca_soft_wq_destroy(wq[1]);
	hca_soft_cq_destroy(cq);
	hca_ctx_destroy(f.ctx);
	fixture_fini(&f);
	return rows_end();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of key.c, mr.c and mw.c: each rule of access by key. */
#include "emu/hca/fixture.h"

#define LR   HCA_ACCESS_LOCAL_READ
#define LW   HCA_ACCESS_LOCAL_WRITE
#define RW   HCA_ACCESS_REMOTE_WRITE
#define RR   HCA_ACCESS_REMOTE_READ
#define RA   HCA_ACCESS_REMOTE_ATOMIC
#define BIND HCA_ACCESS_MW_BIND
#define ZERO HCA_ACCESS_ZERO_BASED

static struct fixture f;
static struct hca_soft_cq *cq;
static struct hca_qp *qp, *other_qp;
static u32 other_pd;

static struct hca_soft_wq *make_qp(struct hca_qp **out)
{
	struct hca_soft_wq *wq = fixture_qp(&f, HCA_QPT_RC, cq, 0);

	*out = hca_qp_lookup(f.hca, hca_soft_wq_number(wq));
	return wq;
}

static const struct {
	int n;
	u64 va, iova, len;
	u32 access;
	int err;
} registrations[] = {
	{ 1, 0x1000, 0x1000, 0x100, LW | RW | RR | RA | BIND, 0 },
	{ 2, 0x1000, 0x1000, 0x100, 0, 0 },
	{ 3, 0x1000, 0x1000, 0x100, RR, 0 },
	{ 4, 0x1000, 0x1000, 0x100, RW, -EINVAL },
	{ 5, 0x1000, 0x1000, 0x100, RA, -EINVAL },
	{ 6, 0x1000, 0x1000, 0x100, LW | 1u << 12, -EINVAL },
	{ 7, 0x1000, 0x1000, 0x100, LW | HCA_ACCESS_RELAXED_ORDERING | 1u << 29, 0 },
	{ 8, 0x1000, 0x1000, 0x100, LW | 1u << 30, -EINVAL },
	{ 9, 0x1000, 0x1000, 0x100, LW | HCA_ACCESS_FLUSH_GLOBAL, -EOPNOTSUPP },
	{ 10, 0x1000, 0x1000, 0, LW, -EINVAL },
	{ 11, ~0ull - 0xff, 0x1000, 0x100, LW, 0 },
	{ 12, ~0ull - 0xfe, 0x1000, 0x100, LW, -EINVAL },
	{ 13, 0x1000, ~0ull - 0xff, 0x100, LW, 0 },
	{ 14, 0x1000, ~0ull - 0xfe, 0x100, LW, -EINVAL },
	{ 15, 0, 0, 1ull << 47, LW, -EINVAL },
	{ 16, 0x1000, 0x1000, 0x100, LW | HCA_ACCESS_ON_DEMAND, -EINVAL },
	{ 18, 0x1010, 0x1010, 0, LW | RW, 0 },
	{ 19, ~0ull, ~0ull, 0, LW, 0 },
};

static void check_registrations(void)
{
	const u64 page = 0x1000;
	const struct hca_mr_init empty = {
		.pdn = f.pdn, .iova = 0x1010, .access = LW, .pages = &page, .npages = 1, .page_shift = 12
	};
	u32 i, lkey, rkey;

	for (i = 0; i < ARRAY_SIZE(registrations); i++) {
		int err = hca_mr_reg(f.ctx, f.pdn, registrations[i].va, registrations[i].iova, registrations[i].len,
				     registrations[i].access, &lkey, &rkey);

		row(registrations[i].n, "registration", err == registrations[i].err);
		if (err)
			continue;
		row(registrations[i].n, "an R_Key for remote rights",
		    rkey == (registrations[i].access & (RW | RR | RA) ? lkey : 0));
		row(registrations[i].n, "deregistration", !hca_mr_dereg(f.ctx, lkey));
		row(registrations[i].n, "once", hca_mr_dereg(f.ctx, lkey) == -ENOENT);
	}
	row(17, "no such PD", hca_mr_reg(f.ctx, 999, 0, 0, 1, LW, &lkey, &rkey) == -EINVAL);
	row(20, "a guest's region of zero length",
	    !hca_mr_reg_pages(f.ctx, &empty, &lkey, &rkey) && !hca_mr_dereg(f.ctx, lkey));
}

/* Regions: 0 all rights at 0x10000..0x10100 seen as 0x50000; 1 local only; 2 at the top of the address space;
 * 3 zero based; 4 of another PD. */
static u32 keys[5];

static const struct {
	int n;
	u32 region;
	bool remote;
	u64 va;
	u32 len, access;
	int want; /* number of spans or error */
	u64 addr;
} accesses[] = {
	{ 30, 0, false, 0x50000, 0x100, LR, 1, 0x10000 },
	{ 31, 0, false, 0x50010, 1, LW, 1, 0x10010 },
	{ 32, 0, false, 0x4ffff, 1, 0, HCA_KEY_BOUNDS, 0 },
	{ 33, 0, false, 0x50000, 0x101, 0, HCA_KEY_BOUNDS, 0 },
	{ 34, 0, false, 0x50100, 1, 0, HCA_KEY_BOUNDS, 0 },
	{ 35, 0, false, 0x500ff, 1, 0, 1, 0x100ff },
	{ 36, 0, false, ~0ull, 2, 0, HCA_KEY_BOUNDS, 0 },
	{ 37, 0, false, 0x50000, ~0u, 0, HCA_KEY_BOUNDS, 0 },
	{ 38, 0, false, 0xdead0000, 0, LW, 0, 0 },
	{ 40, 0, true, 0x50000, 0x100, RW, 1, 0x10000 },
	{ 41, 0, true, 0x50000, 0x100, RR, 1, 0x10000 },
	{ 42, 0, true, 0x50000, 8, RA, 1, 0x10000 },
	{ 43, 0, true, 0xdead0000, 0, RW, 0, 0 },
	{ 44, 1, true, 0x10000, 1, RW, HCA_KEY_ACCESS, 0 },
	{ 45, 1, true, 0x10000, 1, RR, HCA_KEY_ACCESS, 0 },
	{ 46, 1, false, 0x10000, 1, LR, 1, 0x10000 },
	{ 47, 1, false, 0x10000, 1, LW, HCA_KEY_ACCESS, 0 },
	{ 50, 2, true, ~0ull - 0xff, 0x100, RW, 1, ~0ull - 0xff },
	{ 51, 2, true, ~0ull, 1, RW, 1, ~0ull },
	{ 52, 2, true, ~0ull, 2, RW, HCA_KEY_BOUNDS, 0 },
	{ 53, 2, true, 0, 1, RW, HCA_KEY_BOUNDS, 0 },
	{ 60, 3, true, 0, 0x100, RW, 1, 0x10000 },
	{ 61, 3, true, 0x10000, 1, RW, HCA_KEY_BOUNDS, 0 },
	{ 62, 3, false, 0xff, 1, LR, 1, 0x100ff },
	{ 70, 4, true, 0x10000, 1, RW, HCA_KEY_PD, 0 },
	{ 71, 4, false, 0x10000, 1, 0, HCA_KEY_PD, 0 },
};

static void check_accesses(void)
{
	struct hca_span span[HCA_MAX_SPANS] = { 0 };
	u32 rkey, i;

	hca_mr_reg(f.ctx, f.pdn, 0x10000, 0x50000, 0x100, LW | RW | RR | RA, &keys[0], &rkey);
	hca_mr_reg(f.ctx, f.pdn, 0x10000, 0x10000, 0x100, 0, &keys[1], &rkey);
	hca_mr_reg(f.ctx, f.pdn, ~0ull - 0xff, ~0ull - 0xff, 0x100, LW | RW, &keys[2], &rkey);
	hca_mr_reg(f.ctx, f.pdn, 0x10000, 0x10000, 0x100, LW | RW | ZERO, &keys[3], &rkey);
	hca_mr_reg(f.ctx, other_pd, 0x10000, 0x10000, 0x100, LW | RW, &keys[4], &rkey);
	for (i = 0; i < ARRAY_SIZE(accesses); i++) {
		int n = (accesses[i].remote ? hca_key_remote : hca_key_local)(
			qp, keys[accesses[i].region], accesses[i].va, accesses[i].len, accesses[i].access, span);

		row(accesses[i].n, "the result", n == accesses[i].want);
		if (n > 0)
			row(accesses[i].n, "the span",
			    span->addr == accesses[i].addr && span->len == accesses[i].len && span->ctx == f.ctx);
	}
	row(80, "key 0", hca_key_local(qp, 0, 0x10000, 1, 0, span) == HCA_KEY_INVALID);
	row(81, "another variant", hca_key_local(qp, keys[0] ^ 1, 0x50000, 1, 0, span) == HCA_KEY_INVALID);
	row(82, "key of all ones", hca_key_remote(qp, ~0u, 0x50000, 1, RW, span) == HCA_KEY_INVALID);
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		row(83, "deregistration", !hca_mr_dereg(f.ctx, keys[i]));
	row(84, "a stale key", hca_key_remote(qp, keys[0], 0x50000, 1, RW, span) == HCA_KEY_INVALID);
	for (i = 0; i < 1000; i++) {
		hca_mr_reg(f.ctx, f.pdn, 0x10000, 0x10000, 0x100, LW | RW, &keys[1], &rkey);
		if (keys[1] == keys[0])
			break;
		hca_mr_dereg(f.ctx, keys[1]);
	}
	row(85, "a key is not reused soon", i == 1000);
}

static int do_bind(struct hca_qp *by, u32 mw, u32 mr, u64 addr, u64 len, u32 access, u32 new_key)
{
	struct hca_send_wr wr;

	memset(&wr, 0, sizeof(wr));
	wr.opcode = HCA_WR_BIND_MW;
	wr.mw_rkey = mw;
	wr.mr_lkey = mr;
	wr.bind_addr = addr;
	wr.bind_len = len;
	wr.access = access;
	wr.reg_key = new_key;
	return hca_mw_bind(by, &wr);
}

static u32 next_key(u32 key)
{
	return (key & ~0xffu) | (u8)(key + 1);
}

static void check_type1(u32 mr, u32 mr_nobind, u32 mr_readonly, u32 mr_other)
{
	struct hca_span span[HCA_MAX_SPANS];
	u32 mw, k1, k2;

	row(100, "allocation", !hca_mw_alloc(f.ctx, f.pdn, 1, &mw));
	row(101, "unbound: no access", hca_key_remote(qp, mw, 0x10000, 1, RW, span) == HCA_KEY_INVALID);
	k1 = next_key(mw);
	row(102, "a region without the right", do_bind(qp, mw, mr_nobind, 0x10000, 1, RR, k1) == HCA_KEY_ACCESS);
	row(103, "write over a read-only region", do_bind(qp, mw, mr_readonly, 0x10000, 1, RW, k1) == HCA_KEY_ACCESS);
	row(104, "atomics over a read-only region", do_bind(qp, mw, mr_readonly, 0x10000, 1, RA, k1) == HCA_KEY_ACCESS);
	row(105, "a region of another PD", do_bind(qp, mw, mr_other, 0x10000, 1, RR, k1) == HCA_KEY_PD);
	row(106, "past the region", do_bind(qp, mw, mr, 0x10001, 0x100, RW, k1) == HCA_KEY_BOUNDS);
	row(107, "before the region", do_bind(qp, mw, mr, 0xffff, 2, RW, k1) == HCA_KEY_BOUNDS);
	row(108, "wraps", do_bind(qp, mw, mr, 0x10010, ~0ull, RW, k1) == HCA_KEY_BOUNDS);
	row(109, "no such region", do_bind(qp, mw, 0, 0x10000, 1, RW, k1) == HCA_KEY_INVALID);
	row(110, "a local right", do_bind(qp, mw, mr, 0x10000, 1, RW | LW, k1) == HCA_KEY_ACCESS);
	row(111, "the same key", !do_bind(qp, mw, mr, 0x10000, 1, RW, mw));
	row(112, "the low byte of another slot's key",
	    !do_bind(qp, mw, mr, 0x10000, 1, RW, mw + 0x100) && hca_key_remote(qp, mw, 0x10000, 1, RW, span) == 1);
	row(113, "a region as window", do_bind(qp, mr, mr, 0x10000, 1, RW, next_key(mr)) == HCA_KEY_INVALID);
	row(114, "bind", !do_bind(qp, mw, mr, 0x10010, 0x20, RW, k1));
	row(115, "its first byte", hca_key_remote(qp, k1, 0x10010, 0x20, RW, span) == 1 && span->addr == 0x10010);
	row(116, "before it", hca_key_remote(qp, k1, 0x1000f, 1, RW, span) == HCA_KEY_BOUNDS);
	row(117, "past it", hca_key_remote(qp, k1, 0x10030, 1, RW, span) == HCA_KEY_BOUNDS);
	row(118, "a right it lacks", hca_key_remote(qp, k1, 0x10010, 1, RR, span) == HCA_KEY_ACCESS);
	row(119, "through any QP of the PD", hca_key_remote(other_qp, k1, 0x10010, 1, RW, span) == 1);
	row(120, "not for local use", hca_key_local(qp, k1, 0x10010, 1, 0, span) == HCA_KEY_INVALID);
	row(121, "the old key", hca_key_remote(qp, mw, 0x10010, 1, RW, span) == HCA_KEY_INVALID);
	row(122, "the region is busy", hca_mr_dereg(f.ctx, mr) == -EBUSY);
	k2 = next_key(k1);
	row(123, "zero based", do_bind(qp, k1, mr, 0x10000, 0x100, RR | ZERO, k2) == HCA_KEY_ACCESS);
	row(124, "bound anew",
	    !do_bind(qp, k1, mr, 0x10000, 0x100, RR, k2) && hca_key_remote(qp, k2, 0x100ff, 1, RR, span) == 1);
	row(125, "the first binding is invalid", hca_key_remote(qp, k1, 0x10010, 1, RW, span) == HCA_KEY_INVALID);
	row(126, "type 1 is not invalidated", hca_key_invalidate(qp, k2, false) == HCA_KEY_INVALID);
	row(127, "unbound by length 0", !do_bind(qp, k2, 0, 0, 0, 0, k1));
	row(128, "no access", hca_key_remote(qp, k1, 0, 1, RR, span) == HCA_KEY_INVALID);
	row(129, "bound through the next variant",
	    !do_bind(qp, k1, mr, 0x10000, 1, RR, next_key(k1)) &&
		    hca_key_remote(qp, next_key(k1), 0x10000, 1, RR, span) == 1);
	row(130, "freed while bound", !hca_mw_free(f.ctx, k2));
	row(131, "no access", hca_key_remote(qp, next_key(k1), 0x10000, 1, RR, span) == HCA_KEY_INVALID);
	row(132, "freed once", hca_mw_free(f.ctx, k2) == -ENOENT);
}

static void check_type2(u32 mr)
{
	struct hca_span span[HCA_MAX_SPANS];
	struct hca_soft_wq *wq;
	struct hca_qp *third;
	u32 mw, k1, k2;

	hca_mw_alloc(f.ctx, f.pdn, 2, &mw);
	k1 = next_key(mw);
	k2 = next_key(k1);
	row(140, "length 0", do_bind(qp, mw, mr, 0x10000, 0, RW, k1) == HCA_KEY_INVALID);
	row(141, "bind", !do_bind(qp, mw, mr, 0x10000, 0x10, RW | RR, k1));
	row(142, "through its QP", hca_key_remote(qp, k1, 0x10000, 0x10, RW, span) == 1);
	row(143, "through another QP", hca_key_remote(other_qp, k1, 0x10000, 1, RW, span) == HCA_KEY_PD);
	row(144, "bound twice", do_bind(qp, k1, mr, 0x10000, 1, RW, k2) == HCA_KEY_INVALID);
	row(145, "invalidated by another QP", hca_key_invalidate(other_qp, k1, true) == HCA_KEY_PD);
	row(146, "invalidated by the peer", !hca_key_invalidate(qp, k1, true));
	row(147, "no access", hca_key_remote(qp, k1, 0x10000, 1, RW, span) == HCA_KEY_INVALID);
	row(148, "invalidated twice", hca_key_invalidate(qp, k1, false) == HCA_KEY_INVALID);
	row(149, "bound again, zero based",
	    !do_bind(qp, k1, mr, 0x10000, 0x100, RR | ZERO, k2) && hca_key_remote(qp, k2, 0xff, 1, RR, span) == 1 &&
		    span->addr == 0x100ff);
	row(150, "invalidated locally", !hca_key_invalidate(qp, k2, false));
	row(151, "the region is free of it", hca_key_slot(f.hca, mr)->windows == 0);
	row(152, "an ordinary region is not invalidated", hca_key_invalidate(qp, mr, true) == HCA_KEY_INVALID);
	wq = make_qp(&third);
	row(153, "bound to a third QP", !do_bind(third, k2, mr, 0x10000, 1, RR, k1));
	hca_soft_wq_destroy(wq);
	row(154, "is destroyed with its QP",
	    hca_key_slot(f.hca, mr)->windows == 0 && hca_key_remote(qp, k1, 0x10000, 1, RR, span) == HCA_KEY_INVALID);
	row(155, "freed", !hca_mw_free(f.ctx, k1));
}

static int fast_reg(u32 key, const u64 *pages, u32 npages, u64 iova, u64 len, u32 access)
{
	struct hca_send_wr wr;

	memset(&wr, 0, sizeof(wr));
	wr.opcode = HCA_WR_REG_MR;
	wr.reg_key = key;
	wr.pages = pages;
	wr.npages = npages;
	wr.page_shift = 12;
	wr.bind_addr = iova;
	wr.bind_len = len;
	wr.access = access;
	return hca_mr_fast_reg(qp, &wr);
}

static void check_fast_reg(u32 mr)
{
	static const u64 pages[] = { 0x100000, 0x300000, 0x301000 };
	struct hca_span span[HCA_MAX_SPANS];
	struct hca_send_wr wr;
	u32 key, key2;

	row(170, "allocation", !hca_mr_alloc(f.ctx, f.pdn, 3, &key));
	row(171, "unusable at first", hca_key_local(qp, key, 0x800, 1, 0, span) == HCA_KEY_INVALID);
	row(172, "too many pages", fast_reg(key, pages, 4, 0x800, 1, LW) == HCA_KEY_BOUNDS);
	row(173, "longer than its pages", fast_reg(key, pages, 3, 0x800, 0x2801, LW) == HCA_KEY_BOUNDS);
	row(174, "rights", fast_reg(key, pages, 3, 0x800, 1, RW) == HCA_KEY_ACCESS);
	row(175, "an ordinary region", fast_reg(mr, pages, 3, 0x800, 1, LW) == HCA_KEY_INVALID);
	row(176, "registered", !fast_reg(key, pages, 3, 0x800, 0x2800, LW | RW));
	row(177, "two pieces, the adjacent pages as one",
	    hca_key_remote(qp, key, 0x800, 0x2800, RW, span) == 2 && span[0].addr == 0x100800 && span[0].len == 0x800 &&
		    span[1].addr == 0x300000 && span[1].len == 0x2000);
	row(178, "in use", fast_reg(key, pages, 3, 0x800, 1, LW) == HCA_KEY_INVALID);
	key2 = key ^ 0x55;
	row(179, "invalidated", !hca_key_invalidate(qp, key, true));
	row(180, "under a new variant", !fast_reg(key2, pages, 1, 0x1000, 0x1000, LW));
	row(181, "the old key", hca_key_local(qp, key, 0x1000, 1, 0, span) == HCA_KEY_INVALID);
	row(182, "the new key", hca_key_local(qp, key2, 0x1001, 1, LR, span) == 1 && span->addr == 0x100001);
	row(183, "no remote right, no remote invalidation", hca_key_invalidate(qp, key2, true) == HCA_KEY_ACCESS);
	hca_key_invalidate(qp, key2, false);
	memset(&wr, 0, sizeof(wr));
	wr.reg_key = key;
	wr.mw_type_reg = 1;
	wr.num_sge = 2;
	wr.sge[0] = (struct hca_sge){ .addr = 0x10000, .length = 0x10, .lkey = mr };
	wr.sge[1] = (struct hca_sge){ .addr = 0x10080, .length = 0x20, .lkey = mr };
	wr.bind_len = 0x30;
	wr.access = LW | RW;
	row(184, "of other keys", !hca_mr_fast_reg(qp, &wr));
	row(185, "across them",
	    hca_key_remote(qp, key, 8, 0x10, RW, span) == 2 && span[0].addr == 0x10008 && span[0].len == 8 &&
		    span[1].addr == 0x10080 && span[1].len == 8);
	row(186, "the last byte", hca_key_remote(qp, key, 0x2f, 1, RW, span) == 1 && span[0].addr == 0x1009f);
	hca_key_invalidate(qp, key, false);
	row(188, "of a page", !fast_reg(key, pages, 1, 0x1000, 0x1000, LW) && !hca_key_invalidate(qp, key, false));
	wr.num_sge = 1;
	wr.bind_len = 0x10;
	row(189, "and of one other key",
	    !hca_mr_fast_reg(qp, &wr) && hca_key_remote(qp, key, 8, 8, RW, span) == 1 && span[0].addr == 0x10008);
	row(187, "freed by its slot", !hca_mr_dereg(f.ctx, key));
}

/* A memory key of two ranges of @mr, 0x10 and 0x20 bytes. */
static void check_ranges(u32 mr)
{
	const struct hca_sge range[2] = { { .addr = 0x10000, .length = 0x10, .lkey = mr },
					  { .addr = 0x10080, .length = 0x20, .lkey = mr } };
	struct hca_mkey m = { .kind = HCA_MKEY_RANGES,
			      .entries = 4,
			      .pdn = f.pdn,
			      .variant = 7,
			      .access = LR | LW | RW | RA,
			      .len = 0x30 };
	struct hca_span span[HCA_MAX_SPANS];
	u64 pages = hca_mr_pages(f.ctx);
	u32 key = 0;

	row(190, "a memory key", !hca_mkey_create(f.ctx, &m, &key) && !hca_mkey_set_ranges(f.ctx, key, 0, range, 2));
	m.valid = true;
	row(191, "of two ranges",
	    !hca_mkey_set(f.ctx, key, &m) && hca_key_remote(qp, key, 0x18, 8, RA, span) == 1 &&
		    span[0].addr == 0x10088 && span[0].len == 8);
	row(192, "of which one remains", !hca_mkey_set_ranges(f.ctx, key, 0, range, 1));
	row(193, "nothing is in place of the other", hca_key_remote(qp, key, 0x18, 8, RA, span) == HCA_KEY_BOUNDS);
	row(194, "the same length is refused now", hca_mkey_set(f.ctx, key, &m) == -EINVAL);
	row(195, "the memory of both is counted", hca_mr_pages(f.ctx) == pages + 2);
	row(196, "freed", !hca_mr_dereg(f.ctx, key) && hca_mr_pages(f.ctx) == pages);
}

/* A key of a range whose inner key is changed afterwards: each access is checked against the inner key as it is now. */
static void check_inner(void)
{
	const struct hca_mkey as_set = {
		.kind = HCA_MKEY_LINEAR, .pdn = f.pdn, .variant = 3, .valid = true, .access = LR | LW, .len = 0x1000
	};
	struct hca_mkey m = { .kind = HCA_MKEY_RANGES,
			      .entries = 1,
			      .pdn = f.pdn,
			      .variant = 7,
			      .access = LR | LW | RW | RR | RA,
			      .len = 0x10 };
	struct hca_sge range = { .addr = 0x100, .length = 0x10 };
	struct hca_span span[HCA_MAX_SPANS];
	struct hca_mkey inner = as_set;
	u32 key = 0;

	row(200, "an inner key", !hca_mkey_create(f.ctx, &inner, &range.lkey));
	row(201, "and one of its range",
	    !hca_mkey_create(f.ctx, &m, &key) && !hca_mkey_set_ranges(f.ctx, key, 0, &range, 1));
	m.valid = true;
	row(202, "is written", !hca_mkey_set(f.ctx, key, &m) && hca_key_remote(qp, key, 0, 8, RW, span) == 1);
	inner.access = LR;
	row(203, "the inner key loses local write", !hca_mkey_set(f.ctx, range.lkey, &inner));
	row(204, "a remote WRITE is refused", hca_key_remote(qp, key, 0, 8, RW, span) == HCA_KEY_ACCESS);
	row(205, "an atomic", hca_key_remote(qp, key, 0, 8, RA, span) == HCA_KEY_ACCESS);
	row(206, "and a local write", hca_key_local(qp, key, 0, 8, LW, span) == HCA_KEY_ACCESS);
	row(207, "reads are not",
	    hca_key_remote(qp, key, 0, 8, RR, span) == 1 && hca_key_local(qp, key, 0, 8, LR, span) == 1);
	inner.access = LW;
	row(213, "it has local write, and no local read", !hca_mkey_set(f.ctx, range.lkey, &inner));
	row(214, "a remote READ, an atomic and a local read are refused, a remote WRITE is not",
	    hca_key_remote(qp, key, 0, 8, RR, span) == HCA_KEY_ACCESS &&
		    hca_key_remote(qp, key, 0, 8, RA, span) == HCA_KEY_ACCESS &&
		    hca_key_local(qp, key, 0, 8, LR, span) == HCA_KEY_ACCESS &&
		    hca_key_remote(qp, key, 0, 8, RW, span) == 1);
	inner = as_set;
	inner.valid = false;
	row(208, "an invalid inner key",
	    !hca_mkey_set(f.ctx, range.lkey, &inner) && hca_key_remote(qp, key, 0, 8, RR, span) == HCA_KEY_INVALID);
	inner = as_set;
	inner.pdn = other_pd;
	row(209, "one of another PD",
	    !hca_mkey_set(f.ctx, range.lkey, &inner) && hca_key_remote(qp, key, 0, 8, RR, span) == HCA_KEY_INVALID);
	inner = as_set;
	row(210, "as it was", !hca_mkey_set(f.ctx, range.lkey, &inner) && hca_key_remote(qp, key, 0, 8, RW, span) == 1);
	row(211, "destroyed",
	    !hca_mr_dereg(f.ctx, range.lkey) && hca_key_remote(qp, key, 0, 8, RR, span) == HCA_KEY_INVALID);
	row(212, "freed", !hca_mr_dereg(f.ctx, key));
}

int main(void)
{
	u32 mr, nobind, readonly, other, rkey;

	fixture_init(&f);
	hca_soft_cq_create(f.ctx, 16, NULL, NULL, &cq);
	struct hca_soft_wq *a = make_qp(&qp), *b = make_qp(&other_qp);

	hca_pd_alloc(f.ctx, &other_pd);
	check_registrations();
	check_accesses();
	hca_mr_reg(f.ctx, f.pdn, 0x10000, 0x10000, 0x100, LW | BIND, &mr, &rkey);
	hca_mr_reg(f.ctx, f.pdn, 0x10000, 0x10000, 0x100, LW, &nobind, &rkey);
	hca_mr_reg(f.ctx, f.pdn, 0x10000, 0x10000, 0x100, BIND, &readonly, &rkey);
	hca_mr_reg(f.ctx, other_pd, 0x10000, 0x10000, 0x100, LW | BIND, &other, &rkey);
	check_type1(mr, nobind, readonly, other);
	check_type2(mr);
	check_fast_reg(mr);
	check_ranges(mr);
	check_inner();
	hca_soft_wq_destroy(a);
	hca_soft_wq_destroy(b);
	hca_soft_cq_destroy(cq);
	fixture_fini(&f);
	return rows_end();
}

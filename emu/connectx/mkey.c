// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory keys: created by commands, and modified by memory key requests (UMR). A UMR has a control segment, a memory
 * key context with a mask of the fields to set, and entries, inline or in memory: pages, or ranges of other keys (KLM).
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/connectx/connectx_internal.h"

#define PAGE_SHIFT_MIN 12
#define PAGE_MASK      (~((1ull << PAGE_SHIFT_MIN) - 1))
#define PAGE_READ      BIT_ULL(0) /* the page is present for reads, for writes */
#define PAGE_WRITE     BIT_ULL(1)
#define OCTOWORD       16u
#define CHUNK          4096u /* bytes of entries per read */
#define UNIT           4u    /* octowords: drivers fill requests up to a multiple, whatever the key's size */

enum access_mode {
	MODE_PHYSICAL = 0,
	MODE_PAGES = 1,
	MODE_RANGES = 2, /* KLM */
	MODE_BLOCKS = 3, /* KSM */
};

struct umr_seg {
	u8 flags, reserved[3];
	__be16 octowords, offset_low;
	__be64 mask;
	__be32 offset_high;
	u8 reserved2[28];
};
static_assert(sizeof(struct umr_seg) == 48, "a UMR control segment");

#define UMR_AT     16
#define CONTEXT_AT 64
#define ENTRIES_AT 128

#define FLAG_CHECK_QPN      BIT(3)
#define FLAG_OFFSET         BIT(4)
#define FLAG_FAIL_IF_IN_USE BIT(5)
#define FLAG_FAIL_IF_FREE   BIT(6)
#define FLAG_INLINE         BIT(7)

#define MASK_LEN         BIT_ULL(0)
#define MASK_PAGE_SIZE   BIT_ULL(1)
#define MASK_START       BIT_ULL(6)
#define MASK_PD          BIT_ULL(7)
#define MASK_REMOTE_INV  BIT_ULL(8)
#define MASK_KEY         BIT_ULL(13)
#define MASK_QPN         BIT_ULL(14)
#define MASK_LOCAL_READ  BIT_ULL(17)
#define MASK_LOCAL_WRITE BIT_ULL(18)
#define MASK_READ        BIT_ULL(19)
#define MASK_WRITE       BIT_ULL(20)
#define MASK_ATOMIC      BIT_ULL(21)
#define MASK_FREE        BIT_ULL(29)

static u32 access_of(const u8 *mkc)
{
	return (cx_get(mkc, mkc, lr) ? HCA_ACCESS_LOCAL_READ : 0) |
	       (cx_get(mkc, mkc, lw) ? HCA_ACCESS_LOCAL_WRITE : 0) |
	       (cx_get(mkc, mkc, rr) ? HCA_ACCESS_REMOTE_READ : 0) |
	       (cx_get(mkc, mkc, rw) ? HCA_ACCESS_REMOTE_WRITE : 0) |
	       (cx_get(mkc, mkc, a) ? HCA_ACCESS_REMOTE_ATOMIC : 0);
}

static u32 qpn_of(const u8 *mkc)
{
	u32 qpn = (u32)cx_get(mkc, mkc, qpn);

	return qpn == CX_ANY_QPN ? 0 : qpn;
}

static u32 page_shift_of(const u8 *mkc)
{
	return max((u32)cx_get(mkc, mkc, log_page_size), (u32)PAGE_SHIFT_MIN);
}

/* A length of 64 bits means all that the key's @entries are for, or all addresses. */
static u64 len_of(const struct connectx *d, enum hca_mkey_kind kind, u32 entries, const u8 *mkc)
{
	u64 size = BIT_ULL(page_shift_of(mkc));

	if (!cx_get(mkc, mkc, length64))
		return cx_get(mkc, mkc, len);
	switch (kind) {
	case HCA_MKEY_LINEAR:
		return hca_caps(d->cfg.hca)->max_mr_size;
	case HCA_MKEY_RANGES:
		return 0;
	default:
		return entries * size - (cx_get(mkc, mkc, start_addr) & (size - 1));
	}
}

/* Bytes that the ranges of a key may have to be for. */
static u64 extent_of(const u8 *mkc)
{
	return cx_get(mkc, mkc, length64) ? ~0ull : cx_get(mkc, mkc, len);
}

/* ---- entries ---- */

/*
 * Convert @n entries from the adapter's format. ranges_in() returns the number of ranges for a key of @len bytes: an
 * empty one and those after it are padding, and those behind the length what was in the queue before, as the driver
 * fills a request up to a block.
 */
static void pages_in(u64 *page, const u8 *raw, u32 n, bool bits)
{
	u32 i;

	for (i = 0; i < n; i++) {
		u64 entry = wire_load(raw + i * sizeof(u64), sizeof(u64)) | (bits ? 0 : PAGE_READ | PAGE_WRITE);

		page[i] = (entry & PAGE_MASK) | (entry & PAGE_READ ? 0 : HCA_PAGE_NO_READ) |
			  (entry & PAGE_WRITE ? 0 : HCA_PAGE_NO_WRITE);
	}
}

static struct hca_sge range_in(const u8 *raw)
{
	u32 key = (u32)wire_load(raw + 4, 4);

	return (struct hca_sge){ .length = (u32)wire_load(raw, 4),
				 .lkey = key == CX_NULL_MKEY ? HCA_RANGE_ABSENT : key,
				 .addr = wire_load(raw + 8, 8) };
}

static void blocks_in(struct hca_sge *block, const u8 *raw, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		block[i] = range_in(raw + (size_t)i * OCTOWORD);
}

static u32 ranges_in(struct hca_sge *range, const u8 *raw, u32 n, u64 len)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < n && sum < len; i++) {
		range[i] = range_in(raw + (size_t)i * OCTOWORD);
		if (!range[i].length)
			break;
		sum += range[i].length;
	}
	return i;
}

/* Whether @n octowords of entries from @first on are within those of the key, or fill up its last unit. */
static bool entries_fit(const struct hca_mkey *m, u64 first, u64 n)
{
	u64 have = m->kind == HCA_MKEY_PAGES ? m->entries / 2 : m->entries, end = (have + UNIT - 1) / UNIT * UNIT;

	return first <= end && n <= end - first;
}

/* Whether the guest's limit permits the memory for @n entries of the key, some of which it may have. */
static bool entries_left(const struct connectx *d, u32 key, u32 n)
{
	struct hca_mkey m;

	return !hca_mkey_query(d->verbs.ctx, key, &m) && (n <= m.allocated || cx_pages_left(d, n - m.allocated));
}

/*
 * Sets @bytes of entries from number @first on; those beyond the key's size, or its @extent, are padding. Without @bits
 * all pages are present.
 */
static int entries_set(struct connectx *d, u32 key, const struct hca_mkey *m, u32 first, const u8 *raw, u32 bytes,
		       u64 extent, bool bits)
{
	static union {
		u64 page[CHUNK / sizeof(u64)];
		struct hca_sge range[CHUNK / OCTOWORD];
	} e;
	u32 n = bytes / (m->kind == HCA_MKEY_PAGES ? (u32)sizeof(u64) : OCTOWORD);
	u64 before;

	if (first >= m->entries)
		return 0;
	n = min(n, m->entries - first);
	if (!entries_left(d, key, m->kind == HCA_MKEY_PAGES ? m->entries : first + n))
		return -ENOMEM;
	if (m->kind == HCA_MKEY_PAGES) {
		pages_in(e.page, raw, n, bits);
		return hca_mkey_set_pages(d->verbs.ctx, key, first, e.page, n);
	}
	if (m->kind == HCA_MKEY_BLOCKS) {
		blocks_in(e.range, raw, n);
		return hca_mkey_set_ranges(d->verbs.ctx, key, first, e.range, n);
	}
	before = hca_mkey_extent(d->verbs.ctx, key, first);
	n = ranges_in(e.range, raw, n, extent > before ? extent - before : 0);
	return n ? hca_mkey_set_ranges(d->verbs.ctx, key, first, e.range, n) : 0;
}

/* Makes the HCA allocate the key's page list before it becomes valid, within the guest's limit. */
static int mkey_reserve(struct connectx *d, u32 key, const struct hca_mkey *m)
{
	static const u64 none;

	if (m->kind != HCA_MKEY_PAGES)
		return 0;
	return entries_left(d, key, m->entries) ? hca_mkey_set_pages(d->verbs.ctx, key, 0, &none, 0) : -ENOMEM;
}

/* ---- commands ---- */

static int kind_of(const u8 *mkc, struct hca_mkey *m)
{
	u32 octowords = (u32)cx_get(mkc, mkc, translations_octword_size);

	switch (cx_get(mkc, mkc, access_mode_4_2) << 2 | cx_get(mkc, mkc, access_mode_1_0)) {
	case MODE_PHYSICAL:
		m->kind = HCA_MKEY_LINEAR;
		return 0;
	case MODE_PAGES:
		m->kind = HCA_MKEY_PAGES;
		m->entries = octowords > UINT32_MAX / 2 ? octowords : 2 * octowords;
		return 0;
	case MODE_RANGES:
		m->kind = HCA_MKEY_RANGES;
		m->entries = octowords;
		return 0;
	case MODE_BLOCKS:
		m->kind = HCA_MKEY_BLOCKS;
		m->entries = octowords;
		return 0;
	default:
		return -EINVAL;
	}
}

int cx_create_mkey(struct connectx *d, const struct cx_cmd *c)
{
	const u8 *mkc = cx_cptr(c->in, create_mkey_in, memory_key_mkey_entry);
	struct hca_mkey m = {
		.pdn = (u32)cx_get(mkc, mkc, pd),
		.qpn = qpn_of(mkc),
		.variant = (u8)cx_get(mkc, mkc, mkey_7_0),
		.remote_inval = cx_get(mkc, mkc, en_rinval),
		.fixed = !cx_get(mkc, mkc, umr_en),
		.access = access_of(mkc),
		.base = cx_get(mkc, mkc, start_addr),
		.page_shift = page_shift_of(mkc),
	};
	u64 octowords = cx_get(c->in, create_mkey_in, translations_octword_actual_size), bytes;
	u64 extent = cx_get(mkc, mkc, free) ? ~0ull : extent_of(mkc);
	u32 at = CX_AT_create_mkey_in_klm_pas_mtt / 8, done, key, per;
	int err = kind_of(mkc, &m);

	if (err)
		return err;
	if (!hca_pd_exists(d->verbs.ctx, m.pdn))
		return CX_BAD_RES;
	if (m.kind != HCA_MKEY_LINEAR && !entries_fit(&m, 0, octowords))
		return CX_BAD_PARAM;
	bytes = m.kind == HCA_MKEY_LINEAR ? 0 : octowords * OCTOWORD;
	if (bytes > c->in_len - at)
		return CX_BAD_INP_LEN;
	m.len = len_of(d, m.kind, m.entries, mkc);
	err = hca_mkey_create(d->verbs.ctx, &m, &key);
	if (err)
		return err;
	per = m.kind == HCA_MKEY_PAGES ? (u32)sizeof(u64) : OCTOWORD;
	for (done = 0; !err && done < bytes; done += CHUNK)
		err = entries_set(d, key, &m, done / per, c->in + at + done, (u32)min(bytes - done, (u64)CHUNK), extent,
				  cx_get(c->in, create_mkey_in, pg_access));
	if (!err && !cx_get(mkc, mkc, free)) {
		m.valid = true;
		err = mkey_reserve(d, key, &m);
		if (!err)
			err = hca_mkey_set(d->verbs.ctx, key, &m);
	}
	if (err)
		hca_mr_dereg(d->verbs.ctx, key);
	else
		cx_set(c->out, create_mkey_out, mkey_index, key >> 8);
	return err;
}

int cx_destroy_mkey(struct connectx *d, const struct cx_cmd *c)
{
	return hca_mr_dereg(d->verbs.ctx, (u32)cx_get(c->in, destroy_mkey_in, mkey_index) << 8) ? CX_BAD_RES : CX_OK;
}

int cx_query_mkey(struct connectx *d, const struct cx_cmd *c)
{
	static const u8 modes[] = { [HCA_MKEY_LINEAR] = MODE_PHYSICAL,
				    [HCA_MKEY_PAGES] = MODE_PAGES,
				    [HCA_MKEY_RANGES] = MODE_RANGES,
				    [HCA_MKEY_BLOCKS] = MODE_BLOCKS };
	u8 *mkc = cx_ptr(c->out, query_mkey_out, memory_key_mkey_entry);
	u32 at = CX_AT_query_mkey_out_bsf0_klm0_pas_mtt0_1 / 8, i, n;
	u32 key = (u32)cx_get(c->in, query_mkey_in, mkey_index) << 8;
	static struct hca_sge range[CX_REG_ENTRIES];
	struct hca_mkey m;

	if (hca_mkey_query(d->verbs.ctx, key, &m))
		return CX_BAD_RES;
	cx_set(mkc, mkc, free, !m.valid);
	cx_set(mkc, mkc, umr_en, !m.fixed);
	cx_set(mkc, mkc, access_mode_1_0, modes[m.kind]);
	cx_set(mkc, mkc, lr, !!(m.access & HCA_ACCESS_LOCAL_READ));
	cx_set(mkc, mkc, lw, !!(m.access & HCA_ACCESS_LOCAL_WRITE));
	cx_set(mkc, mkc, rr, !!(m.access & HCA_ACCESS_REMOTE_READ));
	cx_set(mkc, mkc, rw, !!(m.access & HCA_ACCESS_REMOTE_WRITE));
	cx_set(mkc, mkc, a, !!(m.access & HCA_ACCESS_REMOTE_ATOMIC));
	cx_set(mkc, mkc, qpn, m.qpn ? m.qpn : CX_ANY_QPN);
	cx_set(mkc, mkc, mkey_7_0, m.variant);
	cx_set(mkc, mkc, en_rinval, m.remote_inval);
	cx_set(mkc, mkc, pd, m.pdn);
	cx_set(mkc, mkc, start_addr, m.base);
	cx_set(mkc, mkc, len, m.len);
	cx_set(mkc, mkc, log_page_size, m.page_shift);
	cx_set(mkc, mkc, translations_octword_size, m.kind == HCA_MKEY_PAGES ? m.entries / 2 : m.entries);
	n = c->out_len > at ? min((c->out_len - at) / OCTOWORD, (u32)ARRAY_SIZE(range)) : 0;
	n = hca_mkey_ranges(d->verbs.ctx, key, range, n);
	for (i = 0; i < n; i++) {
		u8 *r = c->out + at + (size_t)i * OCTOWORD;

		wire_store(r, 4, range[i].length);
		wire_store(r + 4, 4, range[i].lkey == HCA_RANGE_ABSENT ? CX_NULL_MKEY : range[i].lkey);
		wire_store(r + 8, 8, range[i].addr);
	}
	return CX_OK;
}

/* ---- memory key requests ---- */

struct umr {
	u32 key;
	u8 flags;
	u64 mask;
	u64 first; /* entry, in octowords: 48 bits */
	u32 octowords;
	const u8 *mkc;
	const u8 *data; /* inline entries; NULL: in memory */
	u64 addr;
	u32 lkey;
	u32 bytes; /* of entries: no more than there are in the request or in memory */
};

static int umr_parse(const u8 *wqe, u32 len, struct umr *u)
{
	struct umr_seg s;

	*u = (struct umr){ .mkc = wqe + CONTEXT_AT, .key = (u32)wire_load(wqe + 12, 4) };
	if (len < ENTRIES_AT)
		return -EINVAL;
	memcpy(&s, wqe + UMR_AT, sizeof(s));
	u->flags = s.flags;
	u->mask = be64_to_cpu(s.mask);
	u->octowords = be16_to_cpu(s.octowords);
	u->bytes = u->octowords * OCTOWORD;
	if (s.flags & FLAG_OFFSET)
		u->first = (u64)be32_to_cpu(s.offset_high) << 16 | be16_to_cpu(s.offset_low);
	if (s.flags & FLAG_INLINE) {
		u->data = wqe + ENTRIES_AT;
		u->bytes = min(u->bytes, len - ENTRIES_AT);
	} else if (len < ENTRIES_AT + OCTOWORD) {
		u->bytes = 0;
	} else {
		u->bytes = min(u->bytes, (u32)wire_load(wqe + ENTRIES_AT, 4));
		u->lkey = (u32)wire_load(wqe + ENTRIES_AT + 4, 4);
		u->addr = wire_load(wqe + ENTRIES_AT + 8, 8);
	}
	return 0;
}

/* Whatever a request changes of a key of ranges, all of these are checked again. */
u32 cx_umr_bytes(struct connectx *d, const u8 *wqe, u32 len)
{
	struct hca_mkey m;
	struct umr u;

	if (wqe[3] != CX_OP_UMR || umr_parse(wqe, len, &u))
		return 0;
	if (hca_mkey_query(d->verbs.ctx, u.key, &m) || m.kind != HCA_MKEY_RANGES)
		return u.bytes;
	return max(u.bytes, m.entries * OCTOWORD);
}

/*
 * Entries in memory need a key of physical addresses, which only the guest's kernel has. @pdn: its protection domain;
 * 0: any.
 */
static int umr_data_ok(struct connectx *d, const struct umr *u, u32 pdn)
{
	struct hca_mkey m;

	if (u->data || !u->bytes)
		return 0;
	if (hca_mkey_query(d->verbs.ctx, u->lkey, &m) || m.kind != HCA_MKEY_LINEAR || !m.valid ||
	    m.variant != (u8)u->lkey || (pdn && m.pdn != pdn) || !(m.access & HCA_ACCESS_LOCAL_READ))
		return -EINVAL;
	return u->addr >= m.base && u->bytes <= m.len && u->addr - m.base <= m.len - u->bytes ? 0 : -EINVAL;
}

/* Sets the rights that the request sets, and no others. */
static void umr_rights(const struct umr *u, struct hca_mkey *m)
{
	static const struct {
		u64 mask;
		u32 access;
	} rights[] = {
		{ MASK_LOCAL_READ, HCA_ACCESS_LOCAL_READ }, { MASK_LOCAL_WRITE, HCA_ACCESS_LOCAL_WRITE },
		{ MASK_READ, HCA_ACCESS_REMOTE_READ },      { MASK_WRITE, HCA_ACCESS_REMOTE_WRITE },
		{ MASK_ATOMIC, HCA_ACCESS_REMOTE_ATOMIC },
	};
	u32 access = access_of(u->mkc), i;

	for (i = 0; i < ARRAY_SIZE(rights); i++) {
		if (u->mask & rights[i].mask)
			m->access = (m->access & ~rights[i].access) | (access & rights[i].access);
	}
	if (u->mask & MASK_REMOTE_INV)
		m->remote_inval = cx_get(u->mkc, mkc, en_rinval);
}

int cx_umr_decode(struct cx_qp *qp, const u8 *wqe, u32 len, struct hca_send_wr *wr)
{
	struct connectx *d = cx_of(qp->qp.verbs);
	static u8 raw[CX_REG_ENTRIES * OCTOWORD];
	struct hca_mkey m;
	struct umr u;
	void *list;

	cx_count(d, CX_CTR_KEY_REQUESTS);
	if (umr_parse(wqe, len, &u) || hca_mkey_query(d->verbs.ctx, u.key, &m) || m.fixed)
		return -EINVAL;
	if (u.mask & MASK_FREE && cx_get(u.mkc, mkc, free)) {
		/* A type 1 window is unbound whether it is bound or not; the flags are those of type 2. */
		wr->opcode = m.valid || u.flags & (FLAG_FAIL_IF_FREE | FLAG_CHECK_QPN) ? HCA_WR_LOCAL_INV : HCA_WR_NOP;
		wr->rkey = u.key;
		return 1;
	}
	/* Only the kernel may register physical pages. Only the driver's UMR queue pair may change a key partially. */
	if (m.kind == HCA_MKEY_LINEAR || m.kind == HCA_MKEY_BLOCKS || u.mask & MASK_PD ||
	    (m.kind == HCA_MKEY_PAGES && !qp->privileged) || u.first || u.bytes > sizeof(raw) || !u.bytes ||
	    (u.mask & (MASK_LEN | MASK_START | MASK_FREE)) != (MASK_LEN | MASK_START | MASK_FREE) ||
	    !entries_fit(&m, 0, u.octowords) || umr_data_ok(d, &u, m.pdn))
		return -EINVAL;
	if (!u.data && vfio_dma_read(d->vfio, u.addr, raw, u.bytes))
		return -EINVAL;
	list = cx_list_alloc(qp, u.bytes);
	if (!list || mkey_reserve(d, u.key, &m))
		return -EINVAL;
	if (m.kind == HCA_MKEY_PAGES) {
		wr->npages = min(u.bytes / (u32)sizeof(u64), m.entries);
		pages_in(list, u.data ? u.data : raw, wr->npages, true);
		wr->pages = list;
	} else {
		wr->npages = ranges_in(list, u.data ? u.data : raw, min(u.bytes / OCTOWORD, m.entries),
				       cx_get(u.mkc, mkc, len));
		wr->ranges = list;
		wr->mw_type_reg = 1;
		wr->reg_free = u.flags & FLAG_FAIL_IF_IN_USE; /* a type 2 window must not be bound (10.6.7.2) */
		if (!wr->npages)
			return -EINVAL;
	}
	wr->opcode = HCA_WR_REG_MR;
	wr->reg_key = u.mask & MASK_KEY ? (u.key & ~0xffu) | (u8)cx_get(u.mkc, mkc, mkey_7_0) : u.key;
	umr_rights(&u, &m);
	wr->access = m.access;
	wr->reg_inval = m.remote_inval;
	wr->bind_addr = cx_get(u.mkc, mkc, start_addr);
	wr->bind_len = cx_get(u.mkc, mkc, len);
	wr->page_shift = u.mask & MASK_PAGE_SIZE ? page_shift_of(u.mkc) : m.page_shift;
	wr->remote_qpn = u.mask & MASK_QPN ? qpn_of(u.mkc) : m.qpn;
	return 1;
}

/*
 * A request for a key that is not in use need not say how long the key will be: the driver sets its entries by several
 * requests, and its length by the last.
 */
static u64 umr_extent(const struct umr *u, const struct hca_mkey *m)
{
	if (u->mask & MASK_LEN)
		return extent_of(u->mkc);
	return m->valid && m->len ? m->len : ~0ull;
}

static int umr_entries(struct connectx *d, const struct umr *u, const struct hca_mkey *m)
{
	u32 first = (u32)(m->kind == HCA_MKEY_PAGES ? 2 * u->first : u->first);
	u32 per = m->kind == HCA_MKEY_PAGES ? (u32)sizeof(u64) : OCTOWORD, done;
	u8 raw[CHUNK];
	int err = 0;

	for (done = 0; !err && done < u->bytes; done += CHUNK) {
		u32 part = min(u->bytes - done, CHUNK);

		if (!u->data)
			err = vfio_dma_read(d->vfio, u->addr + done, raw, part);
		if (!err)
			err = entries_set(d, u->key, m, first + done / per, u->data ? u->data + done : raw, part,
					  umr_extent(u, m), true);
	}
	return err;
}

static void umr_apply(const struct connectx *d, const struct umr *u, struct hca_mkey *m)
{
	umr_rights(u, m);
	if (u->mask & MASK_LEN)
		m->len = len_of(d, m->kind, m->entries, u->mkc);
	if (u->mask & MASK_PAGE_SIZE)
		m->page_shift = page_shift_of(u->mkc);
	if (u->mask & MASK_START)
		m->base = cx_get(u->mkc, mkc, start_addr);
	if (u->mask & MASK_PD)
		m->pdn = (u32)cx_get(u->mkc, mkc, pd);
	if (u->mask & MASK_KEY)
		m->variant = (u8)cx_get(u->mkc, mkc, mkey_7_0);
	if (u->mask & MASK_QPN)
		m->qpn = qpn_of(u->mkc);
	if (u->mask & MASK_FREE)
		m->valid = !cx_get(u->mkc, mkc, free);
}

static int umr_run(struct connectx *d, const u8 *wqe, u32 len)
{
	struct hca_mkey m;
	struct umr u;
	int err;

	if (umr_parse(wqe, len, &u) || hca_mkey_query(d->verbs.ctx, u.key, &m) || m.fixed || umr_data_ok(d, &u, 0))
		return -EINVAL;
	if ((u.flags & FLAG_FAIL_IF_IN_USE && m.valid) || (u.flags & FLAG_FAIL_IF_FREE && !m.valid))
		return -EINVAL;
	if (!entries_fit(&m, u.first, u.octowords))
		return -EINVAL;
	err = umr_entries(d, &u, &m);
	if (err)
		return err;
	umr_apply(d, &u, &m);
	if (m.valid && mkey_reserve(d, u.key, &m))
		return -ENOMEM;
	return hca_mkey_set(d->verbs.ctx, u.key, &m);
}

u8 cx_umr_run(struct connectx *d, const u8 *wqe, u32 len)
{
	cx_count(d, CX_CTR_KEY_REQUESTS);
	if (wqe[3] != CX_OP_UMR)
		return wqe[3] == CX_OP_NOP ? HCA_WC_SUCCESS : HCA_WC_LOC_QP_OP_ERR;
	if (!umr_run(d, wqe, len))
		return HCA_WC_SUCCESS;
	cx_count(d, CX_CTR_BAD_KEY_REQUESTS);
	return HCA_WC_MW_BIND_ERR;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory key requests: entries behind what the key has, offsets that wrap, the fields that a request sets, rights. */
#include "emu/connectx/frame.h"

#define OCTOWORD 16u
#define GARBAGE  0x40000u /* no key */
#define BASE     0x5000u
#define AT_OLD   (AT_DATA + 0x3000u)
#define AT_NEW   (AT_DATA + 0x4000u)

static u32 umr, a, b, next, sent, got; /* queue pairs in pages 0 to 2; indices of their next requests */

/* Posts a request to queue pair @qpn in page @n. Returns its completion. */
static const u8 *request_post(const struct driver_umr *r, u32 n, u32 qpn, u32 *index)
{
	driver_umr(&d, r, n, qpn, index);
	return driver_poll(&d);
}

static const u8 *request_run(const struct driver_umr *r)
{
	return request_post(r, 0, umr, &next);
}

static bool is_done(const u8 *e)
{
	return e && e[63] >> 4 == 0;
}

static bool is_failed(const u8 *e)
{
	return e && e[63] >> 4 == 13 && e[55] == 0x06;
}

static u32 ranges_key(void)
{
	u32 key;

	memset(d.in, 0, sizeof(d.in));
	row_of("a key", "of ranges", !driver_mkey(&d, 2, false, 0, 0, 4, &key));
	return key;
}

/* The driver's queue pair again, since one whose request has failed is in ERR. */
static bool umr_again(void)
{
	driver_qp_destroy(&d, umr);
	next = 0;
	return !driver_qp(&d, CX_QP_UMR, 0, 0, &umr) && !driver_connect(&d, umr, 0);
}

/* Queue pairs @a and @b, connected, instead of the last ones. */
static bool pair(void)
{
	driver_qp_destroy(&d, a);
	driver_qp_destroy(&d, b);
	sent = got = 0;
	return !driver_qp(&d, CX_QP_RC, 1, 0, &a) && !driver_qp(&d, CX_QP_RC, 2, 0, &b) && !driver_connect(&d, a, b) &&
	       !driver_connect(&d, b, a);
}

/* The driver fills entries up to a block of the queue, and those behind the last one are what was there before. */
static void padding(void)
{
	struct driver_umr r = { .key = ranges_key(),
				.mask = UMR_LEN | UMR_FREE,
				.octowords = 4,
				.len = 8,
				.entry = { { 4, d.lkey, driver_addr(AT_DATA) },
					   { 4, d.lkey, driver_addr(AT_DATA) },
					   { 0x80000000, GARBAGE, 1 },
					   { 7, GARBAGE, 2 } } };
	struct hca_mkey m;

	row(2, "ranges behind the key's length are padding", is_done(request_run(&r)));
	r.mask = 0;
	row(3, "also of a key in use, whose length is not set", is_done(request_run(&r)));
	r = (struct driver_umr){ .key = ranges_key(),
				 .octowords = 2,
				 .entry = { { 4, d.lkey, driver_addr(AT_DATA) },
					    { 4, d.lkey, driver_addr(AT_DATA) } } };
	row(4, "the first of two requests for a key's ranges, without its length", is_done(request_run(&r)));
	r.first = 2;
	r.mask = UMR_LEN | UMR_FREE;
	r.len = 16;
	r.entry[0].bytes = 8;
	r.entry[1].lkey = GARBAGE;
	row(5, "the second has one range, and padding", is_done(request_run(&r)));
	row(6, "the key is valid", !hca_mkey_query(d.dev->verbs.ctx, r.key, &m) && m.valid && m.len == 16);
}

/* By CREATE_MKEY. */
static void padding_of_command(void)
{
	u8 *raw = d.in + CX_AT_create_mkey_in_klm_pas_mtt / 8;
	u32 key;

	memset(d.in, 0, sizeof(d.in));
	driver_data(driver_data(raw, 8, d.lkey, driver_addr(AT_DATA)), 8, GARBAGE, 0);
	row(7, "CREATE_MKEY with a range, and padding", !driver_mkey(&d, 2, true, BASE, 8, 2, &key));
	memset(d.in, 0, sizeof(d.in));
	driver_data(driver_data(raw, 8, d.lkey, driver_addr(AT_DATA)), 8, GARBAGE, 0);
	row(8, "with a range of no key", driver_mkey(&d, 2, true, BASE, 9, 2, &key) == CX_BAD_PARAM);
}

/* Whether a write by the key arrives at @at. */
static bool is_written(u32 key, u32 at)
{
	u8 *s = driver_control(driver_wqe(&d, 1, sent), a, sent, CX_OP_WRITE, 48);

	memset(d.c.mem + AT_OLD, 0, 4096);
	memset(d.c.mem + AT_NEW, 0, 4096);
	memcpy(d.c.mem + AT_DATA, "needle", 7);
	wire_store(s, 8, BASE);
	wire_store(s + 8, 4, key);
	driver_data(s + 16, 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 1, a, ++sent);
	return is_done(driver_poll(&d)) && !memcmp(d.c.mem + at, "needle", 7);
}

/* Offsets are in octowords, of which each has two pages. */
static void offsets(void)
{
	struct driver_umr r = { .octowords = 1 };
	u8 *raw = d.in + CX_AT_create_mkey_in_klm_pas_mtt / 8;

	memset(d.in, 0, sizeof(d.in));
	wire_store(raw, 8, driver_addr(AT_OLD));
	row(10, "a key of pages", !driver_mkey(&d, 1, true, BASE, 4096, 2, &r.key) && is_written(r.key, AT_OLD));
	r.entry[0].lkey = (u32)driver_addr(AT_NEW) | UMR_PRESENT;
	r.entry[0].bytes = (u32)(driver_addr(AT_NEW) >> 32);
	r.first = 1u << 31;
	row(11, "an offset of 4,294,967,296 pages is not one of 0",
	    is_failed(request_run(&r)) && is_written(r.key, AT_OLD) && umr_again());
	r.first = 1ull << 32;
	row(13, "nor one of 4,294,967,296 octowords",
	    is_failed(request_run(&r)) && is_written(r.key, AT_OLD) && umr_again());
	r.first = 0;
	row(12, "that is", is_done(request_run(&r)) && is_written(r.key, AT_NEW));
}

/* Entries behind those of the key are an error, except that drivers fill up a unit of 4 octowords. */
static void beyond(void)
{
	static const struct {
		const char *what;
		u64 first;
		u32 entries, octowords;
		bool fits;
	} cases[] = {
		{ "a unit of a key of an octoword", 0, 1, 4, true },
		{ "an octoword more", 0, 1, 5, false },
		{ "the padding alone", 3, 1, 1, true },
		{ "an octoword after it", 4, 1, 1, false },
		{ "none there", 4, 1, 0, true },
		{ "none behind", 5, 1, 0, false },
		{ "a unit of a key of five", 4, 5, 4, true },
		{ "one that crosses the end", 5, 5, 4, false },
	};
	u32 i, mode;

	for (mode = 1; mode <= 2; mode++) {
		for (i = 0; i < ARRAY_SIZE(cases); i++) {
			struct driver_umr r = { .octowords = cases[i].octowords, .first = cases[i].first };
			u32 entries = mode == 1 ? 2 * cases[i].entries : cases[i].entries;
			const u8 *e;

			memset(d.in, 0, sizeof(d.in));
			driver_mkey(&d, mode, false, BASE, 0, entries, &r.key);
			e = request_run(&r);
			row(80 + (int)i, cases[i].what, cases[i].fits ? is_done(e) : is_failed(e) && umr_again());
		}
	}
	memset(d.in, 0, sizeof(d.in));
	driver_mkey(&d, 1, true, BASE, 0, 2, &i);
	cx_set(d.in, create_mkey_in, translations_octword_actual_size, 5);
	row(90, "more in CREATE_MKEY",
	    driver_command(&d, 0x200, 0, CX_BYTES_create_mkey_in + 5 * OCTOWORD, 16) == CX_BAD_PARAM);
	cx_set(d.in, create_mkey_in, translations_octword_actual_size, 4);
	row(93, "fewer than it says",
	    driver_command(&d, 0x200, 0, CX_BYTES_create_mkey_in + 4 * OCTOWORD - 1, 16) == CX_BAD_INP_LEN &&
		    !driver_command(&d, 0x200, 0, CX_BYTES_create_mkey_in + 4 * OCTOWORD, 16));
}

/* Of a request of another queue pair, which is not the driver's. */
static void beyond_by_program(void)
{
	struct driver_umr r = { .mask = UMR_REGISTER, .octowords = 4, .len = 8, .key = ranges_key() };

	r.entry[0].bytes = 8;
	r.entry[0].lkey = d.lkey;
	r.entry[0].addr = driver_addr(AT_DATA);
	row(91, "a unit", pair() && is_done(request_post(&r, 1, a, &sent)));
	r.octowords = 5;
	row(92, "an octoword more", is_failed(request_post(&r, 1, a, &sent)) && pair());
}

/* A type 2 window is bound with the flag, a type 1 window without it (10.6.7.2). */
static void binding(void)
{
	struct driver_umr r = { .key = ranges_key(),
				.mask = UMR_REGISTER,
				.octowords = 1,
				.len = 8,
				.entry = { { 8, d.lkey, driver_addr(AT_DATA) } } };

	row(36, "two queue pairs", pair());
	row(30, "a window is bound", is_done(request_post(&r, 1, a, &sent)));
	row(31, "and again, since it need not be free", is_done(request_post(&r, 1, a, &sent)));
	r.invalid = true;
	row(32, "it is invalidated", is_done(request_post(&r, 1, a, &sent)));
	r.invalid = false;
	r.flags = UMR_MUST_BE_FREE;
	row(33, "and bound, since it is free", is_done(request_post(&r, 1, a, &sent)));
	row(34, "it is not free any more", is_failed(request_post(&r, 1, a, &sent)));
	r.key = ranges_key();
	r.invalid = true;
	r.flags = 0;
	row(37, "two queue pairs", pair());
	row(35, "one that is free is made free", is_done(request_post(&r, 1, a, &sent)));
	r.flags = UMR_MUST_BE_IN_USE;
	row(38, "unless that is checked", is_failed(request_post(&r, 1, a, &sent)));
}

/* Whether @b may invalidate the key of queue pair @a, its peer. */
static bool is_invalidated(u32 key)
{
	u8 *w = driver_control(driver_wqe(&d, 2, got), b, got, CX_OP_SEND_INVAL, 16);
	struct hca_mkey m;

	wire_store(w - 4, 4, key);
	driver_recv(&d, 1, got, 64, driver_addr(AT_NEW));
	driver_posted(&d, 2, b, ++got);
	while (driver_poll(&d))
		;
	return !hca_mkey_query(d.dev->verbs.ctx, key, &m) && !m.valid;
}

/* A key that CREATE_MKEY did not enable for requests (umr_en). */
static void not_enabled(void)
{
	struct driver_umr r = {
		.mask = UMR_REGISTER, .octowords = 1, .len = 8, .entry = { { 8, d.lkey, driver_addr(AT_OLD) } }
	};
	u8 *mkc = cx_ptr(d.in, create_mkey_in, memory_key_mkey_entry);

	ranges_key();
	cx_set(mkc, mkc, umr_en, 0);
	cx_set(d.in, create_mkey_in, translations_octword_actual_size, 0);
	row(40, "a key without requests", !driver_command(&d, 0x200, 0, CX_BYTES_create_mkey_in, 16));
	r.key = (u32)cx_get(d.out, create_mkey_out, mkey_index) << 8 | 0x5a;
	row(41, "two queue pairs", pair());
	row(42, "is not registered", is_failed(request_post(&r, 1, a, &sent)));
	r.invalid = true;
	row(43, "or freed", is_failed(request_post(&r, 2, b, &got)));
	row(44, "by the driver's queue pair, either", is_failed(request_run(&r)));
}

/* A request changes what its mask has. CREATE_MKEY gave the key all rights, but peers may not invalidate it. */
static void masks(void)
{
	struct driver_umr r = { .key = ranges_key(),
				.mask = UMR_REGISTER,
				.octowords = 1,
				.base = BASE,
				.len = 8,
				.entry = { { 8, d.lkey, driver_addr(AT_OLD) } } };

	row(24, "two queue pairs", pair());
	row(22, "rights that it does not set are kept",
	    is_done(request_post(&r, 1, a, &sent)) && is_written(r.key, AT_OLD));
	r.mask |= UMR_REMOTE_INV;
	r.remote_inval = true;
	row(25, "a key that peers may invalidate", is_done(request_post(&r, 1, a, &sent)) && is_invalidated(r.key));
	r.remote_inval = false;
	row(26, "and that they may not", is_done(request_post(&r, 1, a, &sent)) && !is_invalidated(r.key));
}

enum right {
	NONE,
	LR = 1 << 0,
	LW = 1 << 1,
	RR = 1 << 2,
	RW = 1 << 3,
	A = 1 << 4,
};

/* A key of all memory with these rights alone. */
static u32 rights_key(u32 rights)
{
	u8 *mkc = cx_ptr(d.in, create_mkey_in, memory_key_mkey_entry);
	u32 key;

	memset(d.in, 0, sizeof(d.in));
	driver_mkey(&d, 0, true, 0, 0, 0, &key);
	cx_set(mkc, mkc, lr, !!(rights & LR));
	cx_set(mkc, mkc, lw, !!(rights & LW));
	cx_set(mkc, mkc, rr, !!(rights & RR));
	cx_set(mkc, mkc, rw, !!(rights & RW));
	cx_set(mkc, mkc, a, !!(rights & A));
	row_of("a key", "with some rights", !driver_command(&d, 0x200, 0, CX_BYTES_create_mkey_in, 16));
	return (u32)cx_get(d.out, create_mkey_out, mkey_index) << 8 | 0x5a;
}

/* Posts a request of 8 bytes from queue pair @a. Returns its completion. */
static const u8 *op_run(u8 op, u32 lkey, u32 rkey)
{
	bool send = op == CX_OP_SEND, atomic = op == CX_OP_CMP_SWAP || op == CX_OP_FETCH_ADD;
	u8 *s = driver_control(driver_wqe(&d, 1, sent), a, sent, op, send ? 32 : atomic ? 64 : 48);
	const u8 *e, *done = NULL;

	if (!send) {
		wire_store(s, 8, driver_addr(AT_NEW));
		wire_store(s + 8, 4, rkey);
		s += atomic ? 32 : 16;
	}
	driver_data(s, 8, lkey, driver_addr(AT_DATA));
	driver_posted(&d, 1, a, ++sent);
	while ((e = driver_poll(&d)))
		done = e[63] >> 4 == 0 || e[63] >> 4 == 13 ? e : done;
	return done;
}

#define PROTECTION 0x04
#define ACCESS     0x13
#define OPERATION  0x14

/* Each operation with the one right that it needs, and with all others. */
static void rights(void)
{
	static const struct {
		const char *what;
		u8 op, syndrome;
		u32 local, remote;
	} uses[] = {
		{ "a SEND reads locally", CX_OP_SEND, PROTECTION, LR, NONE },
		{ "a WRITE reads locally", CX_OP_WRITE, PROTECTION, LR, RW },
		{ "a READ writes locally", CX_OP_READ, PROTECTION, LW, RR },
		{ "an atomic writes locally", CX_OP_FETCH_ADD, PROTECTION, LW, A },
		{ "a WRITE writes remotely", CX_OP_WRITE, ACCESS, LR, RW },
		{ "a READ reads remotely", CX_OP_READ, ACCESS, LW, RR },
		{ "an atomic has its own right", CX_OP_CMP_SWAP, ACCESS, LW, A },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(uses); i++) {
		u32 all = LR | LW | RR | RW | A, local = uses[i].local, remote = uses[i].remote;
		bool locally = uses[i].syndrome == PROTECTION;
		const u8 *e;

		row(60 + (int)i, "two queue pairs", pair());
		driver_recv(&d, 2, 0, 64, driver_addr(AT_OLD));
		row(60 + (int)i, uses[i].what, is_done(op_run(uses[i].op, rights_key(local), rights_key(remote))));
		driver_recv(&d, 2, 1, 64, driver_addr(AT_OLD));
		e = op_run(uses[i].op, rights_key(locally ? all & ~local : local),
			   rights_key(locally ? remote : all & ~remote));
		row(60 + (int)i, "and not without the right", e && e[63] >> 4 == 13 && e[55] == uses[i].syndrome);
	}
}

static bool is_local_read(u32 key)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, query_mkey_in, mkey_index, key >> 8);
	return !driver_command(&d, 0x201, 0, 16, CX_BYTES_query_mkey_out) &&
	       cx_get(cx_ptr(d.out, query_mkey_out, memory_key_mkey_entry), mkc, lr);
}

/* By QUERY_MKEY, and set by a request. Receives need local write. */
static void local_read(void)
{
	struct driver_umr r = { .key = rights_key(LW), .mask = UMR_LOCAL_READ };
	const u8 *e;

	row(70, "a key without local read", !is_local_read(r.key));
	r.local_read = true;
	row(71, "gets it by a request", is_done(request_run(&r)) && is_local_read(r.key));
	r.mask = UMR_START;
	r.local_read = false;
	row(72, "and keeps it", is_done(request_run(&r)) && is_local_read(r.key) && pair());
	driver_data(driver_data(d.c.mem + AT_WQ + 2 * 4096, 64, rights_key(LR | RR | RW | A), driver_addr(AT_OLD)), 0,
		    0x100, 0);
	wire_store(d.c.mem + AT_RECORDS + 64 + 2 * 64, 4, 1);
	e = op_run(CX_OP_SEND, d.lkey, 0);
	row(73, "a receive without local write fails", e && e[63] >> 4 == 13 && e[55] == OPERATION);
}

/* Entries of a request in memory, of which a key is for @len bytes from @base on. */
static const u8 *listed(u32 rights, u64 base, u64 len, u32 bytes, u64 addr)
{
	u8 *mkc = cx_ptr(d.in, create_mkey_in, memory_key_mkey_entry);
	struct driver_umr r = { .key = ranges_key(), .memory = true, .octowords = bytes / OCTOWORD };

	rights_key(rights);
	cx_set(mkc, mkc, length64, 0);
	cx_set(mkc, mkc, start_addr, base);
	cx_set(mkc, mkc, len, len);
	row_of("a key", "of the list", !driver_command(&d, 0x200, 0, CX_BYTES_create_mkey_in, 16));
	r.entry[0].bytes = bytes;
	r.entry[0].lkey = (u32)cx_get(d.out, create_mkey_out, mkey_index) << 8 | 0x5a;
	r.entry[0].addr = addr;
	return request_run(&r);
}

/* A request reads its entries by a key, as any SGE. */
static void lists(void)
{
	u64 at = driver_addr(AT_DATA);
	u8 *p = d.c.mem + AT_DATA;

	driver_data(driver_data(p, 8, d.lkey, at), 8, d.lkey, at);
	row(100, "a list", is_done(listed(LR, at, 32, 32, at)));
	row(101, "at the end of its key", is_done(listed(LR, at - 16, 48, 32, at)));
	row(102, "beyond it", is_failed(listed(LR, at - 16, 47, 32, at)) && umr_again());
	row(103, "longer than its key", is_failed(listed(LR, at, 16, 32, at)) && umr_again());
	row(104, "before its key", is_failed(listed(LR, at + 16, 64, 32, at)) && umr_again());
	row(105, "of a key without local read", is_failed(listed(LW, at, 32, 32, at)) && umr_again());
}

/* Has room for @n page addresses left of those that the adapter keeps for a guest. Returns how many it has less. */
static u64 pages_fill(u64 n)
{
	u64 less = CX_PAGES_MAX - d.dev->pages - hca_mr_pages(d.dev->verbs.ctx) - n;

	d.dev->pages += less;
	return less;
}

/* A guest at its limit changes the entries of keys that have memory for them, and gets none for others. */
static void limit(void)
{
	struct driver_umr r = { .octowords = 4, .mask = UMR_REGISTER, .len = 8 };
	u32 pages, others, ranges;
	u64 less;

	memset(d.in, 0, sizeof(d.in));
	row(110, "a key of pages", !driver_mkey(&d, 1, true, BASE, 8, 64, &pages));
	memset(d.in, 0, sizeof(d.in));
	driver_mkey(&d, 1, false, 0, 0, 64, &others);
	cx_set(d.in, create_mkey_in, translations_octword_actual_size, 0);
	row(111, "another, whose pages were never set", !driver_command(&d, 0x200, 0, CX_BYTES_create_mkey_in, 16));
	others = (u32)cx_get(d.out, create_mkey_out, mkey_index) << 8 | 0x5a;
	memset(d.in, 0, sizeof(d.in));
	driver_data(cx_ptr(d.in, create_mkey_in, klm_pas_mtt), 8, d.lkey, driver_addr(AT_DATA));
	row(112, "a key of ranges, of which one is set", !driver_mkey(&d, 2, true, BASE, 8, 4, &ranges) && pair());
	less = pages_fill(16);
	r.key = pages;
	row(113, "pages of the first are set", is_done(request_run(&r)));
	r.key = others;
	row(114, "not those of the second", is_failed(request_run(&r)) && umr_again());
	r.key = ranges;
	r.octowords = 1;
	r.entry[0].bytes = 8;
	r.entry[0].lkey = d.lkey;
	r.entry[0].addr = driver_addr(AT_DATA);
	row(115, "the range of the third", is_done(request_run(&r)));
	d.dev->pages += 16;
	row(116, "however little is left", is_done(request_run(&r)));
	d.dev->pages -= 16 + less;
}

static void modes(void)
{
	u32 key, mode;

	for (mode = 0; mode < 4; mode++) {
		memset(d.in, 0, sizeof(d.in));
		row(21, "the access modes that there are", !driver_mkey(&d, mode, false, 0, 0, mode ? 2 : 0, &key));
		cx_set(cx_ptr(d.in, create_mkey_in, memory_key_mkey_entry), mkc, access_mode_4_2, 1);
		row(27, "those of the adapter's own memory are not",
		    driver_command(&d, 0x200, 0, CX_BYTES_create_mkey_in + 32, 16) == CX_BAD_PARAM);
	}
}

static void start(void)
{
	row(1, "a queue pair for memory key requests, and two others",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_UMR, 0, 0, &umr) && !driver_connect(&d, umr, 0) && pair());
}

PARTS(start, padding, padding_of_command, offsets, beyond, beyond_by_program, modes, masks, binding, rights, local_read,
      lists, limit, not_enabled)

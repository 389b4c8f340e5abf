// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* On-demand paging: events of page faults by access, PAGE_FAULT_RESUME, and what happens if it does not come. */
#include "emu/connectx/frame.h"

#define BASE    0x5000u
#define AT_PAGE (AT_DATA + 0x8000u) /* four pages of the key */
#define LENGTH  0x4000u
#define AT_FROM (AT_DATA + 0x3000u)

static u32 umr, a, b, key, next, sent, got; /* queue pairs in pages 0 to 2; indices of their next requests */

static const u8 *event;

/* Takes the next event. Whether it is a page fault of this subtype and type, for queue @number. */
static bool is_fault(u8 subtype, u8 type, u32 number)
{
	event = driver_event(&d);
	driver_arm_eq(&d);
	return event && event[1] == CX_EVENT_PAGE_FAULT && event[3] == subtype &&
	       wire_load(event + 32 + 24, 4) == ((u64)type << 24 | number);
}

static bool is_wqe_fault(u8 type, u32 number, u32 qpn, u32 index)
{
	return is_fault(0, type, number) && wire_load(event + 32 + 6, 2) == index &&
	       wire_load(event + 32 + 12, 4) == qpn;
}

static bool is_rdma_fault(u8 type, u32 qpn, u64 va, u32 len)
{
	return is_fault(1, type, qpn) && wire_load(event + 32 + 4, 4) == key && wire_load(event + 32 + 12, 4) == len &&
	       wire_load(event + 32 + 16, 8) == va;
}

static int resume(u8 type, u32 number, u32 qpn, bool error)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, page_fault_resume_in, error, error);
	cx_set(d.in, page_fault_resume_in, type, type);
	cx_set(d.in, page_fault_resume_in, wq_number, number);
	cx_set(d.in, page_fault_resume_in, token, qpn);
	return driver_command(&d, 0x204, 0, 16, 16);
}

static bool is_done(const u8 *e)
{
	return e && e[63] >> 4 < 13;
}

/* Sets all four pages, with these bits. */
static bool pages_set(u32 bits)
{
	struct driver_umr r = { .key = key, .octowords = 2 };
	u32 i;

	for (i = 0; i < 4; i += 2) {
		u64 page = driver_addr(AT_PAGE + i * 4096) | bits;

		r.entry[i / 2].bytes = (u32)(page >> 32);
		r.entry[i / 2].lkey = (u32)page;
		r.entry[i / 2].addr = page + 4096;
	}
	driver_umr(&d, &r, 0, umr, &next);
	return is_done(driver_poll(&d));
}

static int key_create(bool pg_access, u32 *k)
{
	u8 *raw = d.in + CX_AT_create_mkey_in_klm_pas_mtt / 8;
	u32 i;

	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, create_mkey_in, pg_access, pg_access);
	for (i = 0; i < 4; i++)
		wire_store(raw + (size_t)i * 8, 8, driver_addr(AT_PAGE + i * 4096));
	return driver_mkey(&d, 1, true, BASE, LENGTH, 4, k);
}

static bool pair(void)
{
	driver_qp_destroy(&d, a);
	driver_qp_destroy(&d, b);
	sent = got = 0;
	while (driver_poll(&d) || driver_event(&d))
		;
	driver_arm_eq(&d);
	return !driver_qp(&d, CX_QP_RC, 1, 0, &a) && !driver_qp(&d, CX_QP_RC, 2, 0, &b) && !driver_connect(&d, a, b) &&
	       !driver_connect(&d, b, a);
}

static int reset(u32 qpn)
{
	memset(d.in, 0, sizeof(d.in));
	return driver_modify(&d, 0x50a, qpn, 0);
}

/* Posts an RDMA request of @a: between @lkey, @local and @rkey, @remote. */
static void rdma_post(u8 op, u32 lkey, u64 local, u32 rkey, u64 remote, u32 len)
{
	u8 *s = driver_control(driver_wqe(&d, 1, sent), a, sent, op, 48);

	wire_store(s, 8, remote);
	wire_store(s + 8, 4, rkey);
	driver_data(s + 16, len, lkey, local);
	driver_posted(&d, 1, a, ++sent);
}

static void text_put(u32 at, const char *text)
{
	memcpy(d.c.mem + at, text, strlen(text));
}

static bool text_is(u32 at, const char *text)
{
	return !memcmp(d.c.mem + at, text, strlen(text));
}

static void start(void)
{
	row(1, "queue pairs, and a key without pages",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_UMR, 0, 0, &umr) && !driver_connect(&d, umr, 0) && pair() &&
		    !key_create(true, &key));
}

static void offered(void)
{
	const u8 *cap = cx_cptr(d.out, query_hca_cap_out, capability);

	memset(d.in, 0, sizeof(d.in));
	row(2, "capabilities for on-demand paging",
	    !driver_command(&d, 0x100, 0, 16, CX_BYTES_query_hca_cap_out) && cx_get(cap, cmd_hca_cap, pg) &&
		    cx_get(cap, cmd_hca_cap, null_mkey) && cx_get(cap, cmd_hca_cap, fixed_buffer_size));
	row(3, "by transport service",
	    !driver_command(&d, 0x100, 2 << 1, 16, CX_BYTES_query_hca_cap_out) &&
		    cx_get(cap, odp_cap, rc_odp_caps) == 0xfc000000 &&
		    cx_get(cap, odp_cap, ud_odp_caps) == 0x84000000 &&
		    cx_get(cap, odp_cap, xrc_odp_caps) == 0xfc000000);
	row(4, "the null memory key",
	    !driver_command(&d, 0x203, 0, 16, 32) &&
		    cx_get(d.out, query_special_contexts_out, null_mkey) == CX_NULL_MKEY);
}

/* An RDMA WRITE to absent pages, and answers to its event. */
static void write_fault(void)
{
	text_put(AT_FROM, "needle");
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM), key, BASE + 0xffc, 6);
	row(10, "an RDMA WRITE to two absent pages", is_rdma_fault(6, b, BASE + 0xffc, 6) && !driver_event(&d));
	row(11, "is not complete", !driver_poll(&d));
	row(12, "PAGE_FAULT_RESUME of no queue pair", resume(6, 0xabc, 0xabc, false) == CX_BAD_RES);
	row(13, "of one without a page fault", resume(6, a, a, false) == CX_BAD_RES_STATE);
	row(14, "of its requester", resume(1, b, b, false) == CX_BAD_RES_STATE);
	row(15, "of another type", resume(4, b, b, false) == CX_BAD_PARAM);
	row(16, "of another queue", resume(6, a, b, false) == CX_BAD_PARAM);
	row(17, "no page is set: another event",
	    !resume(6, b, b, false) && is_rdma_fault(6, b, BASE + 0xffc, 6) && !driver_poll(&d));
	row(18, "nor while they are only present for reads",
	    pages_set(1) && !resume(6, b, b, false) && is_rdma_fault(6, b, BASE + 0xffc, 6) && !driver_poll(&d));
	row(19, "present for writes", pages_set(3) && !text_is(AT_PAGE + 0xffc, "needle") && !driver_poll(&d));
	row(20, "and resumed", !resume(6, b, b, false) && is_done(driver_poll(&d)));
	row(21, "it is in memory", text_is(AT_PAGE + 0xffc, "needle"));
	row(22, "resumed twice", resume(6, b, b, false) == CX_BAD_RES_STATE);
	row(23, "no page fault",
	    (text_put(AT_FROM, "thread"), rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM), key, BASE, 6),
	     is_done(driver_poll(&d)) && !driver_event(&d) && text_is(AT_PAGE, "thread")));
}

/* No access of a side overtakes another one. */
static void order(void)
{
	row(30, "absent pages", pages_set(0));
	text_put(AT_FROM, "first");
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM), key, BASE, 5);
	row(31, "a page fault", is_rdma_fault(6, b, BASE, 5));
	text_put(AT_FROM + 64, "second");
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM + 64), d.lkey, driver_addr(AT_PAGE + 0x100), 6);
	row(32, "a later RDMA WRITE to memory that is present waits",
	    !text_is(AT_PAGE + 0x100, "second") && !driver_poll(&d) && !driver_event(&d));
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM + 64), key, BASE, 6);
	row(33, "one to the absent page has no event of its own", !driver_event(&d) && pages_set(3));
	row(34, "all are executed",
	    !resume(6, b, b, false) && is_done(driver_poll(&d)) && is_done(driver_poll(&d)) &&
		    is_done(driver_poll(&d)) && text_is(AT_PAGE + 0x100, "second"));
	row(35, "in order", text_is(AT_PAGE, "second") && !driver_event(&d));
}

static void read_fault(void)
{
	row(40, "absent pages", pages_set(0));
	text_put(AT_PAGE, "needle");
	rdma_post(CX_OP_READ, d.lkey, driver_addr(AT_FROM), key, BASE, 6);
	row(41, "an RDMA READ", is_rdma_fault(4, b, BASE, 6) && !driver_poll(&d));
	row(42, "of pages that are present for reads",
	    pages_set(1) && !resume(4, b, b, false) && is_done(driver_poll(&d)) && text_is(AT_FROM, "needle"));
	text_put(AT_FROM, "string");
	rdma_post(CX_OP_READ, key, BASE + 0x1000, d.lkey, driver_addr(AT_FROM), 6);
	row(43, "into pages that are not present for writes", is_wqe_fault(3, a, a, sent - 1) && !driver_poll(&d));
	row(44, "which are set",
	    pages_set(3) && !resume(3, a, a, false) && is_done(driver_poll(&d)) && text_is(AT_PAGE + 0x1000, "string"));
}

static void atomic_fault(void)
{
	u8 *s = driver_control(driver_wqe(&d, 1, sent), a, sent, CX_OP_FETCH_ADD, 64);
	u64 value = 40;

	row(45, "absent pages", pages_set(0));
	memcpy(d.c.mem + AT_PAGE, &value, 8);
	wire_store(s, 8, BASE);
	wire_store(s + 8, 4, key);
	wire_store(s + 16, 8, 2);
	driver_data(s + 32, 8, key, BASE + 0x2000);
	driver_posted(&d, 1, a, ++sent);
	row(46, "an atomic operation", is_rdma_fault(6, b, BASE, 8) && !driver_poll(&d) && pages_set(3));
	row(47, "is executed once",
	    !resume(6, b, b, false) && is_done(driver_poll(&d)) && (memcpy(&value, d.c.mem + AT_PAGE, 8), value == 42));
	row(48, "and returns the value before", (memcpy(&value, d.c.mem + AT_PAGE + 0x2000, 8), value == 40));
}

static void send_post(u32 lkey, u64 addr, u32 len)
{
	driver_data(driver_control(driver_wqe(&d, 1, sent), a, sent, CX_OP_SEND, 32), len, lkey, addr);
	driver_posted(&d, 1, a, ++sent);
}

static void recv_post(u32 lkey, u64 addr, u32 len)
{
	driver_recv(&d, 2, got, len, addr);
	wire_store(d.c.mem + AT_WQ + 2 * 4096 + got % (1u << LOG_RQ) * 64 + 4, 4, lkey);
	got++;
}

static void send_fault(void)
{
	row(50, "absent pages", pages_set(0));
	text_put(AT_PAGE, "needle");
	recv_post(key, BASE + 0x1000, 64);
	send_post(key, BASE, 6);
	row(51, "a SEND from absent pages", is_wqe_fault(1, a, a, sent - 1) && !driver_poll(&d));
	row(52, "of pages that are present for reads", pages_set(1) && !resume(1, a, a, false));
	row(53, "to a receive of absent pages", is_wqe_fault(2, b, b, got - 1) && !driver_poll(&d));
	row(54, "which are set",
	    pages_set(3) && !resume(2, b, b, false) && is_done(driver_poll(&d)) && is_done(driver_poll(&d)) &&
		    text_is(AT_PAGE + 0x1000, "needle"));
}

/* Of an SRQ, whose entry the event names, and which has the receives of two queue pairs. */
static void shared_fault(void)
{
	u8 *w = d.c.mem + AT_WQ + 4 * 4096 + 16;
	u32 srqn;

	row(83, "queue pairs", pair() && pages_set(0));
	row(55, "an SRQ", !driver_srq(&d, driver_addr(AT_RECORDS + 64 + 4 * 64), &srqn));
	driver_qp_destroy(&d, b);
	row(56, "a queue pair with it",
	    !driver_qp(&d, CX_QP_RC, 2, srqn, &b) && !driver_connect(&d, b, a) && !reset(a) &&
		    !driver_connect(&d, a, b));
	driver_data(driver_data(w, 64, key, BASE), 0, 0x100, 0);
	wire_store(d.c.mem + AT_RECORDS + 64 + 4 * 64, 4, 1);
	text_put(AT_FROM, "thimble");
	send_post(d.lkey, driver_addr(AT_FROM), 7);
	row(57, "a page fault of its receive", is_wqe_fault(0, srqn, b, 0) && !driver_poll(&d));
	row(58, "a resume that names the queue pair", pages_set(3) && resume(0, b, b, false) == CX_BAD_PARAM);
	row(59, "that names the SRQ",
	    !resume(0, srqn, b, false) && is_done(driver_poll(&d)) && is_done(driver_poll(&d)) &&
		    text_is(AT_PAGE, "thimble"));
}

/* The syndrome of the failed request: that of the completion with an error. */
static u8 syndrome(void)
{
	const u8 *e = driver_poll(&d);

	return e && e[63] >> 4 >= 13 ? e[55] : 0;
}

static void failures(void)
{
	u32 other;

	row(60, "absent pages", pair() && pages_set(0));
	send_post(key, BASE, 6);
	row(61, "a page fault without an answer", is_wqe_fault(1, a, a, 0));
	send_post(key, BASE, 6);
	row(62, "pages that cannot be set: a local protection error", !resume(1, a, a, true) && syndrome() == 0x04);
	row(63, "the later request is flushed, without an event", syndrome() == 0x05 && driver_event(&d) == NULL);
	row(64, "queue pairs", pair());
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM), key, BASE, 6);
	row(65, "of an RDMA WRITE: a remote operation error",
	    is_rdma_fault(6, b, BASE, 6) && !resume(6, b, b, true) && syndrome() == 0x14);
	row(66, "queue pairs, and another key", pair() && !key_create(true, &other));
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM), other, BASE, 6);
	row(67, "a key that is destroyed meanwhile",
	    is_fault(1, 6, b) && !driver_command_on(&d, 0x202, other >> 8) && !resume(6, b, b, false) && syndrome());
	d.dev->eq[d.eqn]->mask &= ~BIT_ULL(CX_EVENT_PAGE_FAULT);
	row(68, "no event queue for page faults: a local protection error",
	    pair() && (send_post(key, BASE, 6), syndrome() == 0x04));
	row(69, "of an RDMA READ: a remote operation error",
	    pair() && (rdma_post(CX_OP_READ, d.lkey, driver_addr(AT_FROM), key, BASE, 6), syndrome() == 0x14));
	d.dev->eq[d.eqn]->mask |= BIT_ULL(CX_EVENT_PAGE_FAULT);
}

/* An RDMA WRITE by a key to absent pages, and behind it a SEND that invalidates the key. */
static void invalidated(void)
{
	struct driver_umr r = { .mask = UMR_REMOTE_INV, .remote_inval = true };
	struct hca_mkey m;
	u32 own = key, i;
	u8 *w;

	row(130, "queue pairs, and a key of absent pages", pair() && !key_create(true, &key) && pages_set(0));
	r.key = key;
	driver_umr(&d, &r, 0, umr, &next);
	row(131, "that a peer may invalidate", is_done(driver_poll(&d)));
	recv_post(d.lkey, driver_addr(AT_FROM), 64);
	text_put(AT_FROM, "window");
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM), key, BASE, 6);
	w = driver_control(driver_wqe(&d, 1, sent), a, sent, CX_OP_SEND_INVAL, 16);
	wire_store(w - 4, 4, key);
	driver_posted(&d, 1, a, ++sent);
	row(132, "an RDMA WRITE, and a SEND with Invalidate", is_rdma_fault(6, b, BASE, 6) && !driver_poll(&d));
	row(133, "the key is invalidated after the RDMA WRITE",
	    pages_set(3) && !hca_mkey_query(d.dev->verbs.ctx, key, &m) && m.valid && !resume(6, b, b, false));
	for (i = 0; i < 3 && is_done(driver_poll(&d)); i++)
		;
	row(134, "both and the receive complete", i == 3 && text_is(AT_PAGE, "window"));
	row(135, "the key is invalid", !hca_mkey_query(d.dev->verbs.ctx, key, &m) && !m.valid);
	key = own;
}

static void endings(void)
{
	struct hca_ctx *ctx = d.dev->verbs.ctx;

	row(70, "queue pairs", pair());
	send_post(key, BASE, 6);
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM), key, BASE, 6);
	row(71, "a queue pair with a page fault is reset", is_wqe_fault(1, a, a, 0) && !reset(a));
	row(72, "and resumed: it is at work no more", !resume(1, a, a, false) && !driver_event(&d) && !driver_poll(&d));
	row(73, "once", resume(1, a, a, false) == CX_BAD_RES_STATE && hca_ctx_moved(ctx, hca_ctx_moves(ctx)));
	row(74, "queue pairs", pair());
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM), key, BASE, 6);
	row(75, "one with a page fault is destroyed", is_rdma_fault(6, b, BASE, 6) && (driver_qp_destroy(&d, b), true));
	row(76, "it cannot be resumed", resume(6, b, b, false) == CX_BAD_RES);
	row(77, "queue pairs", pair());
	send_post(key, BASE, 6);
	row(78, "in the error state its request is flushed",
	    is_wqe_fault(1, a, a, 0) && (memset(d.in, 0, sizeof(d.in)), !driver_modify(&d, 0x507, a, 0)) &&
		    syndrome() == 0x05);
	row(79, "and nothing is left when it is resumed",
	    pages_set(3) && !resume(1, a, a, false) && hca_ctx_moved(ctx, hca_ctx_moves(ctx)) && !driver_poll(&d));
}

/* The driver answers an event from before a reset: it may not have found the request. */
static void stale(void)
{
	row(140, "queue pairs", pair() && pages_set(0));
	send_post(key, BASE, 6);
	row(141, "a queue pair with a page fault is reset", is_wqe_fault(1, a, a, 0) && !reset(a));
	row(142, "and connected", !driver_connect(&d, a, b) && !reset(b) && !driver_connect(&d, b, a));
	sent = got = 0;
	wire_store(d.c.mem + AT_RECORDS + 64 + 1 * 64 + 4, 4, 0);
	wire_store(d.c.mem + AT_RECORDS + 64 + 2 * 64, 4, 0);
	text_put(AT_PAGE, "spool");
	recv_post(d.lkey, driver_addr(AT_FROM), 64);
	send_post(key, BASE, 5);
	row(143, "another page fault has no event yet", !driver_event(&d) && !driver_poll(&d));
	row(144, "the error of the first does not end it", !resume(1, a, a, true) && !driver_poll(&d));
	row(145, "it has its event", is_wqe_fault(1, a, a, 0) && !driver_event(&d));
	row(146, "it is resumed",
	    pages_set(3) && !resume(1, a, a, false) && is_done(driver_poll(&d)) && is_done(driver_poll(&d)) &&
		    text_is(AT_FROM, "spool"));
	row(147, "once", resume(1, a, a, false) == CX_BAD_RES_STATE);
}

/* An XRC SRQ is destroyed while a receive of it waits: the driver does not find it, and does not answer. */
static void srq_destroyed(void)
{
	u8 *ctx = cx_ptr(d.in, create_srq_in, srq_context_entry), *ring = d.c.mem + AT_WQ + 8 * 4096, *w;
	u32 xrcd, srqn, ini, tgt;

	memset(d.in, 0, sizeof(d.in));
	row(150, "an XRC domain",
	    pages_set(0) && (memset(d.in, 0, sizeof(d.in)), !driver_command(&d, 0x80e, 0, 16, 16)));
	xrcd = (u32)cx_get(d.out, alloc_xrcd_out, xrcd);
	memset(ring, 0, 4096);
	cx_set(ctx, srqc, log_srq_size, 2);
	cx_set(ctx, srqc, log_rq_stride, 2);
	cx_set(ctx, srqc, pd, d.pdn);
	cx_set(ctx, srqc, xrcd, xrcd);
	cx_set(ctx, srqc, dbr_addr, driver_addr(AT_RECORDS + 64 + 8 * 64));
	cx_set(ctx, srqc, cqn, d.cqn);
	row(151, "an XRC SRQ",
	    !driver_command(&d, 0x700, 0, driver_page(&d, CX_AT_create_srq_in_pas / 8, AT_WQ + 8 * 4096), 16));
	srqn = (u32)cx_get(d.out, create_srq_out, srqn);
	row(152, "an initiator and a target",
	    !driver_qp(&d, CX_QP_XRC, 9, 0, &ini) && !driver_qp(&d, CX_QP_XRC, 10, xrcd, &tgt) &&
		    !driver_connect(&d, ini, tgt) && !driver_connect(&d, tgt, ini));
	driver_data(driver_data(ring + 16, 16, key, BASE), 0, 0x100, 0);
	wire_store(d.c.mem + AT_RECORDS + 64 + 8 * 64, 4, 1);
	w = d.c.mem + AT_WQ + 9 * 4096;
	wire_store(driver_control(w, ini, 0, CX_OP_SEND, 48), 4, srqn);
	driver_data(w + 32, 7, d.lkey, driver_addr(AT_FROM));
	driver_posted(&d, 9, ini, 1);
	row(153, "a page fault of its receive", is_wqe_fault(0, srqn, tgt, 0) && !driver_poll(&d));
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, destroy_srq_in, srqn, srqn);
	row(154, "it is destroyed: the target goes on",
	    !driver_command(&d, 0x701, 0, 16, 16) && is_done(driver_poll(&d)) && !driver_event(&d));
	row(155, "and has no page fault", resume(0, srqn, tgt, false) == CX_BAD_RES_STATE);
	driver_qp_destroy(&d, tgt);
	driver_qp_destroy(&d, ini);
}

/* More events than the event queue has room for: a page fault waits. */
static void full(void)
{
	u32 i, faults = 0, others = 0;
	const u8 *e;

	row(80, "queue pairs", pair() && pages_set(0));
	send_post(key, BASE, 6);
	for (i = 0; i < 40; i++)
		resume(1, a, a, false);
	while ((e = driver_event(&d))) {
		driver_arm_eq(&d);
		*(e[1] == CX_EVENT_PAGE_FAULT ? &faults : &others) += 1;
	}
	row(81, "those for which there was room, and the last", faults == (1u << LOG_EQ) + 1 && !others);
	row(82, "the request is executed",
	    (recv_post(d.lkey, driver_addr(AT_FROM), 64), pages_set(3)) && !resume(1, a, a, false) &&
		    is_done(driver_poll(&d)));
}

/* A key of equal blocks (KSM), as for a program's whole address space. */
static void blocks(void)
{
	struct driver_umr r = { .octowords = 4 };
	u8 *raw = d.in + CX_AT_create_mkey_in_klm_pas_mtt / 8,
	   *mkc = cx_ptr(d.in, create_mkey_in, memory_key_mkey_entry);
	u32 i, own = key;

	memset(d.in, 0, sizeof(d.in));
	cx_set(mkc, mkc, log_page_size, 30);
	for (i = 0; i < 4; i++)
		driver_data(raw + (size_t)i * 16, 1u << 30, CX_NULL_MKEY, 0);
	row(90, "a key of absent blocks of 1 GiB", !driver_mkey(&d, 3, true, 0, 4ull << 30, 4, &r.key) && pair());
	key = r.key;
	text_put(AT_FROM, "sewing");
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM), key, (2ull << 30) + BASE, 6);
	row(91, "an RDMA WRITE", is_rdma_fault(6, b, (2ull << 30) + BASE, 6));
	for (i = 0; i < 4; i++) {
		r.entry[i].bytes = 1u << 30;
		r.entry[i].lkey = i == 2 ? own : CX_NULL_MKEY;
	}
	driver_umr(&d, &r, 0, umr, &next);
	row(92, "a block is set", is_done(driver_poll(&d)));
	key = own;
	row(93, "whose page is absent", pages_set(0));
	key = r.key;
	row(94, "another event", !resume(6, b, b, false) && is_rdma_fault(6, b, (2ull << 30) + BASE, 6));
	key = own;
	row(95, "the page is set",
	    pages_set(3) && !resume(6, b, b, false) && is_done(driver_poll(&d)) && text_is(AT_PAGE, "sewing"));
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM), r.key, (3ull << 30) - 3, 6);
	row(96, "a block whose key does not reach that far", syndrome() == 0x13);
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, query_mkey_in, mkey_index, r.key >> 8);
	raw = d.out + CX_AT_query_mkey_out_bsf0_klm0_pas_mtt0_1 / 8;
	row(97, "QUERY_MKEY returns the blocks",
	    !driver_command(&d, 0x201, 0, 16, CX_BYTES_query_mkey_out + 32) && wire_load(raw + 4, 4) == CX_NULL_MKEY &&
		    wire_load(raw + 36, 4) == own);
}

/* Without pg_access CREATE_MKEY has no bits for each page: they are present. */
static void present(void)
{
	u32 k;

	row(100, "a key without bits of its pages", pair() && !key_create(false, &k));
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM), k, BASE, 6);
	row(101, "has no page fault", is_done(driver_poll(&d)) && !driver_event(&d));
}

/* The driver's event queue and the adapter end while accesses wait. */
static void queue_destroyed(void)
{
	row(110, "queue pairs", pair() && pages_set(0));
	send_post(key, BASE, 6);
	row(111, "a page fault", is_wqe_fault(1, a, a, 0));
	table_get(&d.dev->verbs.cqs, d.cqn);
	((struct cx_cq *)table_get(&d.dev->verbs.cqs, d.cqn))->eqn = 0;
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, destroy_eq_in, eq_number, d.eqn);
	row(112, "its event queue is destroyed: the access fails",
	    !driver_command(&d, 0x302, 0, 16, 16) && syndrome() == 0x04);
}

static void stopped(void)
{
	row(120, "again",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_UMR, 0, 0, &umr) && (next = 0, pair()) &&
		    !key_create(true, &key));
	send_post(key, BASE, 6);
	rdma_post(CX_OP_WRITE, d.lkey, driver_addr(AT_FROM), key, BASE, 6);
	row(121, "the adapter stops while accesses wait", is_wqe_fault(1, a, a, 0));
	memset(d.in, 0, sizeof(d.in));
	row(122, "nothing is left", !driver_command(&d, 0x103, 0, 16, 16) && !driver_objects(&d));
}

PARTS(start, offered, write_fault, order, read_fault, atomic_fault, send_fault, shared_fault, failures, invalidated,
      endings, stale, srq_destroyed, full, blocks, present, queue_destroyed, stopped)

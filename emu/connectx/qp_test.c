// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests of connected queue pairs and their doorbells, with a driver that does as the kernel's does, and with one
 * that writes invalid requests and records.
 */
#include "emu/connectx/frame.h"

/* Connects queue pairs @a and @b, with queues in pages 0 and 1. */
static void connect_pair(u32 *a, u32 *b)
{
	const u8 *qpc;

	row(30, "two queue pairs", !driver_qp(&d, CX_QP_RC, 0, 0, a) && !driver_qp(&d, CX_QP_RC, 1, 0, b));
	row(31, "connected", !driver_connect(&d, *a, *b) && !driver_connect(&d, *b, *a));
	qpc = driver_qp_context(&d, *a);
	row(32, "QUERY_QP",
	    qpc && cx_get(qpc, qpc, state) == 3 && cx_get(qpc, qpc, remote_qpn) == *b && cx_get(qpc, qpc, rre) &&
		    cx_get(cx_cptr(qpc, qpc, primary_address_path), ads, rlid) == 1);
}

static void send_and_inline_write(u32 a, u32 b)
{
	const u8 *e;
	u8 *w, *s;

	driver_recv(&d, 1, 0, 256, driver_addr(AT_DATA + 4096));
	memcpy(d.c.mem + AT_DATA, "needle", 7);
	driver_arm_eq(&d);
	driver_arm_cq(&d, false);
	w = driver_wqe(&d, 0, 0);
	driver_data(driver_control(w, a, 0, CX_OP_SEND, 32), 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 0, a, 1);
	e = driver_poll(&d);
	row(33, "the receive's completion",
	    e && e[63] >> 4 == 2 && wire_load(e + 44, 4) == 7 && wire_load(e + 57, 3) == b);
	row(34, "its bytes", !memcmp(d.c.mem + AT_DATA + 4096, "needle", 7));
	row(35, "the send's", driver_sent(driver_poll(&d), CX_OP_SEND, a, 0) && !driver_poll(&d));
	e = driver_event(&d);
	row(36, "an event for the armed CQ, with an interrupt",
	    e && e[1] == CX_EVENT_COMP && wire_load(e + 32 + 24, 4) == d.cqn && client_raised(&d.c, 1) == 1);

	w = driver_wqe(&d, 0, 1);
	s = driver_control(w, a, 1, CX_OP_WRITE, 48);
	wire_store(s, 8, driver_addr(AT_DATA + 8192));
	wire_store(s + 8, 4, d.lkey);
	wire_store(s + 16, 4, 1u << 31 | 6);
	memcpy(s + 20, "thread", 6);
	driver_posted(&d, 0, a, 2);
	row(37, "an inline RDMA write",
	    driver_sent(driver_poll(&d), CX_OP_WRITE, a, 1) && !memcmp(d.c.mem + AT_DATA + 8192, "thread", 6));
	row(38, "no event: it is not armed", !driver_event(&d));
}

/*
 * Registers a page by a memory key request of @a, number *index; @b writes to it; the key is invalidated. Returns the
 * key.
 */
static u32 register_page(u32 a, u32 b, u32 *index)
{
	struct driver_umr r = { .mask = UMR_REGISTER | UMR_PAGE_SIZE | UMR_KEY | UMR_WRITE,
				.octowords = 4,
				.base = 0x5000,
				.len = 100,
				.flags = UMR_MUST_BE_FREE,
				.entry = { { (u32)(driver_addr(AT_DATA + 0x3000) >> 32),
					     (u32)driver_addr(AT_DATA + 0x3000) | UMR_PRESENT, 0 } } };
	u32 key, at = *index;
	u8 *s;

	memset(d.in, 0, sizeof(d.in));
	row(39, "a key for registrations", !driver_mkey(&d, 1, false, 0, 0, 2, &key));
	r.key = (key & ~0xffu) | 0x77;
	driver_umr(&d, &r, 0, a, index);
	row(40, "registered", driver_sent(driver_poll(&d), CX_OP_UMR, a, at));
	s = driver_control(driver_wqe(&d, 1, 0), b, 0, CX_OP_WRITE, 48);
	wire_store(s, 8, 0x5000 + 4);
	wire_store(s + 8, 4, r.key);
	driver_data(s + 16, 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 1, b, 1);
	row(41, "the peer writes to it",
	    driver_sent(driver_poll(&d), CX_OP_WRITE, b, 0) && !memcmp(d.c.mem + AT_DATA + 0x3000 + 4, "needle", 7));
	at = *index;
	driver_umr(&d, &(struct driver_umr){ .key = r.key, .mask = UMR_FREE, .invalid = true }, 0, a, index);
	row(42, "invalidated", driver_sent(driver_poll(&d), CX_OP_UMR, a, at));
	return r.key;
}

/* Registers two separate ranges by request *index of @a; @b writes across the gap. */
static void gaps(u32 a, u32 b, u32 *index)
{
	struct driver_umr r = { .mask = UMR_REGISTER | UMR_WRITE,
				.octowords = 4,
				.base = 0x9000,
				.len = 8,
				.flags = UMR_MUST_BE_FREE,
				.entry = { { 4, d.lkey, driver_addr(AT_DATA + 0x5002) },
					   { 4, d.lkey, driver_addr(AT_DATA + 0x5102) },
					   /* left in the queue, behind the ranges */
					   { 0x80000000, 0x40000, 0x209e2143 } } };
	u32 at = *index;
	u8 *s;

	memset(d.in, 0, sizeof(d.in));
	row(46, "a key for pieces", !driver_mkey(&d, 2, false, 0, 0, 4, &r.key));
	driver_umr(&d, &r, 0, a, index);
	row(47, "of ranges of another key", driver_sent(driver_poll(&d), CX_OP_UMR, a, at));
	s = driver_control(driver_wqe(&d, 1, 1), b, 1, CX_OP_WRITE, 48);
	wire_store(s, 8, 0x9000 + 1);
	wire_store(s + 8, 4, r.key);
	driver_data(s + 16, 6, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 1, b, 2);
	row(48, "a write to both",
	    driver_sent(driver_poll(&d), CX_OP_WRITE, b, 1) && !memcmp(d.c.mem + AT_DATA + 0x5003, "nee", 3) &&
		    !memcmp(d.c.mem + AT_DATA + 0x5102, "dle", 3));
}

/* Sends inline bytes and a data segment in one request, as UCX does. */
static void header(u32 b)
{
	u8 *s = driver_control(driver_wqe(&d, 1, 2), b, 2, CX_OP_WRITE, 64);

	memset(d.c.mem + AT_DATA + 0x6000, 0, 16);
	wire_store(s, 8, driver_addr(AT_DATA + 0x6000));
	wire_store(s + 8, 4, d.lkey);
	wire_store(s + 16, 4, 1u << 31 | 3);
	memcpy(s + 20, "two", 3);
	driver_data(s + 32, 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 1, b, 3);
	row(49, "inline bytes, then a data segment",
	    driver_sent(driver_poll(&d), CX_OP_WRITE, b, 2) && !memcmp(d.c.mem + AT_DATA + 0x6000, "twoneedle", 10));
}

/* Posts request number @index, a NOP of @a, without its doorbell. */
static void post_record(u32 a, u32 index)
{
	driver_control(driver_wqe(&d, 0, index), a, index, CX_OP_NOP, 16);
	wire_store(d.c.mem + AT_RECORDS + 64 + 4, 4, index + 1);
}

/* Requests of a queue with a recent doorbell are found by its record, until the loop sleeps. */
static void record_polled(u32 a, u32 *index)
{
	struct loop_poller *p = &d.dev->poller;

	cx_qp_doorbell(d.dev, d.uar, a);
	row(120, "a doorbell without a request", !p->poll(p, loop_now(d.loop)));
	post_record(a, *index);
	row(121, "a request without a doorbell, once",
	    p->poll(p, loop_now(d.loop)) == 1 && !p->poll(p, loop_now(d.loop)));
	loop_run_idle(d.loop, 0);
	row(122, "is executed", driver_sent(driver_poll(&d), CX_OP_NOP, a, (*index)++));
	post_record(a, *index);
	loop_run_idle(d.loop, 0);
	row(123, "not after the loop has slept", !driver_poll(&d));
	driver_posted(&d, 0, a, *index + 1);
	row(124, "before its doorbell", driver_sent(driver_poll(&d), CX_OP_NOP, a, (*index)++));
}

/*
 * A request that the driver copies to the UAR (BlueFlame), in writes of 8 bytes as QEMU's: the first is the doorbell.
 */
static void blueflame(u32 a, u32 index)
{
	u64 bad = driver_counter(&d, "bad_doorbells"), rung = driver_counter(&d, "doorbells");
	u8 *w = driver_wqe(&d, 0, index);
	u64 part;
	u32 i;

	memset(w, 0xff, CX_WQE_BB);
	driver_control(w, a, index, CX_OP_NOP, 16);
	wire_store(d.c.mem + AT_RECORDS + 64 + 4, 4, index + 1);
	for (i = 0; i < CX_WQE_BB; i += sizeof(part)) {
		memcpy(&part, w + i, sizeof(part));
		client_write(&d.c, 0, d.uar * 4096ull + 0x900 + i, part, sizeof(part));
	}
	loop_run_idle(d.loop, 0);
	row(125, "is executed once", driver_sent(driver_poll(&d), CX_OP_NOP, a, index) && !driver_poll(&d));
	row(126, "by one doorbell",
	    driver_counter(&d, "doorbells") == rung + 1 && driver_counter(&d, "bad_doorbells") == bad);
}

/* A WRITE of @b with the invalidated @key fails, and the queue pair enters ERR. */
static void write_by_invalid_key(u32 b, u32 key)
{
	const u8 *e, *qpc;
	u8 *w, *s;

	w = driver_wqe(&d, 1, 3);
	s = driver_control(w, b, 3, CX_OP_WRITE, 48);
	wire_store(s, 8, 0x5000 + 4);
	wire_store(s + 8, 4, key);
	driver_data(s + 16, 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 1, b, 4);
	row(43, "then the peer may not", driver_failed(driver_poll(&d), false, 0x13));
	while ((e = driver_event(&d)))
		row_of("events of the failure", "of the queue pair's",
		       e[1] == CX_EVENT_WQ_ACCESS || e[1] == CX_EVENT_WQ_CATASTROPHIC);
	qpc = driver_qp_context(&d, b);
	row(44, "and its queue pair is in error", qpc && cx_get(qpc, qpc, state) == 6);
	driver_posted(&d, 1, b, 5);
	row(45, "what is posted now is flushed", driver_failed(driver_poll(&d), false, 0x05));
}

static void data(void)
{
	u32 a, b, key, index = 2; /* of the next request of @a */

	row(21, "the driver starts", !driver_start(&d) && connectx_in_use(d.dev));
	connect_pair(&a, &b);
	send_and_inline_write(a, b);
	key = register_page(a, b, &index);
	gaps(a, b, &index);
	header(b);
	record_polled(a, &index);
	blueflame(a, index);
	write_by_invalid_key(b, key);
}

/* Modifies the queue pair to RESET, and to RTS again, with empty queues. */
static bool again(u32 n, u32 qpn, u32 peer)
{
	memset(d.in, 0, sizeof(d.in));
	if (driver_modify(&d, 0x50a, qpn, 0))
		return false;
	memset(d.c.mem + AT_RECORDS + 64 + n * 64, 0, 8);
	return !driver_connect(&d, qpn, peer);
}

static void hostile_queues(void)
{
	struct driver_umr r = { .mask = UMR_REGISTER, .octowords = 1, .len = 100 };
	u64 bad = driver_counter(&d, "bad_doorbells");
	u32 a, b, i;
	u8 *w;

	row(60, "two more",
	    !driver_qp(&d, CX_QP_RC, 5, 0, &a) && !driver_qp(&d, CX_QP_RC, 6, 0, &b) && !driver_connect(&d, a, b) &&
		    !driver_connect(&d, b, a));
	driver_poke64(&d, (d.uar + 1) * 4096ull + 0x800, (u64)a << 8);
	driver_poke64(&d, d.uar * 4096ull + 0x800, 0xabcdef00);
	driver_poke64(&d, d.uar * 4096ull + 0x20, 0xffffff);
	driver_poke(&d, d.uar * 4096ull + 0x40, 31u << 24);
	driver_poke(&d, d.uar * 4096ull + 0x40, d.eqn << 24 | 0x800000);
	client_write(&d.c, 0, d.uar * 4096ull + 0x801, 0, 3);
	row(61, "doorbells of other pages, of no object, unaligned", driver_counter(&d, "bad_doorbells") == bad + 6);
	w = driver_wqe(&d, 5, 0);
	memset(w, 0xff, 1024);
	driver_posted(&d, 5, a, 5);
	row(62, "a request of a kind that is not", driver_failed(driver_poll(&d), false, 0x02));
	while (driver_poll(&d))
		;
	row(63, "its queue pair again", again(5, a, b));
	memset(w, 0, 1024);
	driver_posted(&d, 5, a, 1);
	row(64, "a request of no size", driver_failed(driver_poll(&d), false, 0x02));
	row(65, "again", again(5, a, b));
	driver_posted(&d, 5, a, 0x8000);
	row(66, "more requests than the queue has room for", driver_failed(driver_poll(&d), false, 0x02));
	row(67, "again", again(5, a, b));
	driver_data(driver_control(w, a, 0, CX_OP_SEND, 32), 100, d.lkey ^ 1, driver_addr(AT_DATA));
	driver_posted(&d, 5, a, 1);
	row(68, "a key of another variant", driver_failed(driver_poll(&d), false, 0x04));
	/* A user queue pair must not register physical pages, not even for a key of its own. */
	memset(d.in, 0, sizeof(d.in));
	row(69, "a key", !driver_mkey(&d, 1, false, 0, 0, 2, &r.key));
	row(70, "a program's queue pair", again(5, a, b));
	cx_qp_get(d.dev, a)->privileged = false;
	i = 0;
	driver_umr(&d, &r, 5, a, &i);
	row(71, "may not register physical pages", driver_failed(driver_poll(&d), false, 0x06));
	/* The CQ is not polled from here on. */
	row(72, "again", again(5, a, b));
	while (driver_event(&d))
		;
	driver_arm_eq(&d);
	for (i = 0; i < 40; i++) {
		driver_control(driver_wqe(&d, 5, i), a, i, CX_OP_NOP, 16);
		driver_posted(&d, 5, a, i + 1);
	}
	{
		const u8 *e = driver_event(&d);

		row(73, "a CQ overruns", e && e[1] == CX_EVENT_CQ_ERROR && wire_load(e + 32, 4) == d.cqn);
	}
}

/* The static rate of the address vector that INIT2RTR_QP sets, by the adapter's code. */
static u32 rate_after(u32 qpn, u32 code)
{
	u8 *qpc = cx_ptr(d.in, rst2init_qp_in, qpc), *path = cx_ptr(qpc, qpc, primary_address_path);
	const u8 *now;

	memset(d.in, 0, sizeof(d.in));
	cx_set(path, ads, vhca_port_num, 1);
	cx_set(path, ads, rlid, d.lid);
	cx_set(path, ads, stat_rate, code);
	cx_set(qpc, qpc, mtu, 3);
	cx_set(qpc, qpc, remote_qpn, qpn);
	if (driver_modify(&d, 0x50a, qpn, 0) || driver_modify(&d, 0x502, qpn, 0) || driver_modify(&d, 0x503, qpn, 0))
		return ~0u;
	now = driver_qp_context(&d, qpn);
	return now ? (u32)cx_get(cx_cptr(now, qpc, primary_address_path), ads, stat_rate) : ~0u;
}

static void static_rates(void)
{
	u32 qpn, code, offered;

	row(80, "a queue pair", !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn));
	memset(d.in, 0, sizeof(d.in));
	row(81, "capabilities", !driver_command(&d, 0x100, 0, 16, CX_BYTES_query_hca_cap_out));
	offered = (u32)cx_get(cx_ptr(d.out, query_hca_cap_out, capability), cmd_hca_cap, stat_rate_support);
	row(82, "with static rates", offered == 0xfffe);
	for (code = 0; code < 16; code++)
		row(83, "each of which a queue pair may have", rate_after(qpn, code) == code);
}

PARTS(data, static_rates, hostile_queues)

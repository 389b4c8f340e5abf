// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shared receive queues, and those of XRC (annex A14). */
#include "emu/connectx/frame.h"

static void shared_receive(void)
{
	u8 *w;
	u32 a = 0, b = 0, srqn, set, i;
	const u8 *e;

	memcpy(d.c.mem + AT_DATA, "needle", 7);
	memset(d.c.mem + AT_WQ + 4 * 4096, 0, 4096);
	row(50, "an SRQ", !driver_srq(&d, driver_addr(AT_RECORDS + 64 + 4 * 64), &srqn));
	row(51, "a queue pair with it",
	    !driver_qp(&d, CX_QP_RC, 2, 0, &a) && !driver_qp(&d, CX_QP_RC, 3, srqn, &b) && !driver_connect(&d, a, b) &&
		    !driver_connect(&d, b, a));
	/* Entry 0 is linked to entry 2. */
	for (i = 0; i < 3; i += 2) {
		w = d.c.mem + AT_WQ + 4 * 4096 + i * 64;
		wire_store(w + 2, 2, i + 2);
		driver_data(driver_data(w + 16, 16, d.lkey, driver_addr(AT_DATA + 0x4000 + i * 16)), 0, 0x100, 0);
	}
	wire_store(d.c.mem + AT_RECORDS + 64 + 4 * 64, 4, 2);
	for (i = 0; i < 2; i++)
		driver_data(driver_control(driver_wqe(&d, 2, i), a, i, CX_OP_SEND, 32), 7, d.lkey,
			    driver_addr(AT_DATA));
	driver_posted(&d, 2, a, 2);
	for (i = 0; (e = driver_poll(&d));) {
		if (e[63] >> 4 != 2)
			continue;
		row_of("a shared receive", "by its entry's number",
		       wire_load(e + 32, 4) == srqn && wire_load(e + 60, 2) == 2 * i);
		i++;
	}
	row(52, "two of them", i == 2 && !memcmp(d.c.mem + AT_DATA + 0x4000 + 32, "needle", 7));
	memset(d.in, 0, sizeof(d.in));
	row(55, "a set of counters", !driver_command(&d, 0x771, 0, 16, 16));
	set = (u32)cx_get(d.out, alloc_q_counter_out, counter_set_id);
	memset(d.in, 0, sizeof(d.in));
	cx_set(cx_ptr(d.in, rst2init_qp_in, qpc), qpc, counter_set_id, set);
	row(58, "of the responder", !driver_modify(&d, 0x505, b, BIT(25)));
	memset(d.in, 0, sizeof(d.in));
	driver_data(driver_control(driver_wqe(&d, 2, 2), a, 2, CX_OP_SEND, 32), 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 2, a, 3);
	cx_set(d.in, query_q_counter_in, counter_set_id, set);
	row(56, "counts a send that finds no receive",
	    !driver_command(&d, 0x773, 0, CX_BYTES_query_q_counter_in, CX_BYTES_query_q_counter_out) &&
		    cx_get(d.out, query_q_counter_out, out_of_buffer) > 0);
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, arm_rq_in, srq_number, srqn);
	cx_set(d.in, arm_rq_in, lwm, 2);
	row(53, "its limit", !driver_command(&d, 0x703, 1, 16, 16));
	row(57, "not that of another kind of queue",
	    driver_command(&d, 0x703, 0, 16, 16) == CX_BAD_PARAM &&
		    driver_command(&d, 0x703, 2, 16, 16) == CX_BAD_PARAM);
	cx_set(d.in, destroy_srq_in, srqn, srqn);
	row(54, "in use it stays", driver_command(&d, 0x701, 0, 16, 16) == CX_BAD_RES_STATE);
}

static int xrcd_free(u32 xrcd)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, dealloc_xrcd_in, xrcd, xrcd);
	return driver_command(&d, 0x80f, 0, 16, 16);
}

/* Polls until a completion of a receive, or if @receive is false, of a request; NULL: none. */
static const u8 *xrc_poll(bool receive)
{
	const u8 *e;

	while ((e = driver_poll(&d)))
		if (receive == (e[63] >> 4 == 2))
			return e;
	return NULL;
}

static void xrc(void)
{
	u8 *ctx = cx_ptr(d.in, create_srq_in, srq_context_entry), *ring = d.c.mem + AT_WQ + 8 * 4096, *w;
	u32 xrcd, srqn, ini, tgt;
	const u8 *e;

	memset(d.in, 0, sizeof(d.in));
	row(110, "an XRC domain", !driver_command(&d, 0x80e, 0, 16, 16));
	xrcd = (u32)cx_get(d.out, alloc_xrcd_out, xrcd);
	memset(ring, 0, 4096);
	cx_set(ctx, srqc, log_srq_size, 2);
	cx_set(ctx, srqc, log_rq_stride, 2);
	cx_set(ctx, srqc, pd, d.pdn);
	cx_set(ctx, srqc, xrcd, xrcd);
	cx_set(ctx, srqc, dbr_addr, driver_addr(AT_RECORDS + 64 + 8 * 64));
	row(111, "an XRC SRQ without a CQ is refused",
	    driver_command(&d, 0x700, 0, driver_page(&d, CX_AT_create_srq_in_pas / 8, AT_WQ + 8 * 4096), 16) ==
		    CX_BAD_RES);
	cx_set(ctx, srqc, cqn, d.cqn);
	row(112, "an XRC SRQ",
	    !driver_command(&d, 0x700, 0, driver_page(&d, CX_AT_create_srq_in_pas / 8, AT_WQ + 8 * 4096), 16));
	srqn = (u32)cx_get(d.out, create_srq_out, srqn);
	row(113, "a target without its domain is refused", driver_qp(&d, CX_QP_XRC, 10, xrcd + 1, &tgt) == CX_BAD_RES);
	row(114, "an initiator and a target",
	    !driver_qp(&d, CX_QP_XRC, 9, 0, &ini) && !driver_qp(&d, CX_QP_XRC, 10, xrcd, &tgt) &&
		    !driver_connect(&d, ini, tgt) && !driver_connect(&d, tgt, ini));
	row(115, "the domain is busy", xrcd_free(xrcd) == CX_BAD_RES_STATE);
	driver_data(driver_data(ring + 16, 16, d.lkey, driver_addr(AT_DATA + 0x6000)), 0, 0x100, 0);
	wire_store(d.c.mem + AT_RECORDS + 64 + 8 * 64, 4, 1);
	w = d.c.mem + AT_WQ + 9 * 4096;
	wire_store(driver_control(w, ini, 0, CX_OP_SEND, 48), 4, srqn);
	driver_data(w + 32, 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 9, ini, 1);
	e = xrc_poll(true);
	row(116, "a SEND is received by the SRQ that it names",
	    e && wire_load(e + 32, 4) == srqn && (wire_load(e + 56, 4) & 0xffffff) == tgt &&
		    !memcmp(d.c.mem + AT_DATA + 0x6000, "needle", 7));
	while (driver_poll(&d))
		;
	driver_control(w + 64, ini, 1, CX_OP_SEND, 16);
	driver_posted(&d, 9, ini, 2);
	row(117, "a request that names none fails", driver_failed(xrc_poll(false), false, 0x02));
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, destroy_qp_in, qpn, tgt);
	row(118, "the target ends", !driver_command(&d, 0x501, 0, 16, 16) && xrcd_free(xrcd) == CX_BAD_RES_STATE);
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, destroy_srq_in, srqn, srqn);
	row(119, "and the SRQ, and the domain", !driver_command(&d, 0x701, 0, 16, 16) && !xrcd_free(xrcd));
}

#define RING_AT (AT_WQ + 12 * 4096)
#define RECORD  (AT_RECORDS + 64 + 12 * 64)

/* Posts receive @i of the SRQ in page 12, of 16 bytes. */
static void post_shared(u32 i)
{
	u8 *w = d.c.mem + RING_AT + (size_t)(i & 3) * 64;

	wire_store(w + 2, 2, (i + 1) & 3);
	driver_data(driver_data(w + 16, 16, d.lkey, driver_addr(AT_DATA + 0x8000)), 0, 0x100, 0);
	wire_store(d.c.mem + RECORD, 4, i + 1);
}

static int command_on(u16 op, u16 modifier, u32 number)
{
	memset(d.in, 0, sizeof(d.in));
	wire_store(d.in + 8, 4, number);
	return driver_command(&d, op, modifier, 16, CX_BYTES_query_srq_out);
}

static int rmp_create(u32 type, u32 log_stride, u32 log_size, u32 state, u32 *rmpn)
{
	u8 *rmpc = cx_ptr(d.in, create_rmp_in, ctx), *wq = cx_ptr(rmpc, rmpc, wq);
	int status;

	memset(d.in, 0, sizeof(d.in));
	memset(d.c.mem + RING_AT, 0, 4096);
	cx_set(rmpc, rmpc, state, state);
	cx_set(wq, wq, wq_type, type);
	cx_set(wq, wq, log_wq_stride, log_stride);
	cx_set(wq, wq, log_wq_sz, log_size);
	cx_set(wq, wq, pd, d.pdn);
	cx_set(wq, wq, dbr_addr, driver_addr(RECORD));
	status = driver_command(&d, 0x90c, 0, driver_page(&d, CX_BYTES_create_rmp_in, RING_AT), 16);
	*rmpn = (u32)cx_get(d.out, create_rmp_out, rmpn);
	return status;
}

static int rmp_modify(u32 rmpn, u32 from, u32 to, u32 lwm)
{
	u8 *rmpc = cx_ptr(d.in, modify_rmp_in, ctx);

	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, modify_rmp_in, rmp_state, from);
	cx_set(d.in, modify_rmp_in, rmpn, rmpn);
	cx_set(cx_ptr(d.in, modify_rmp_in, bitmask), rmp_bitmask, lwm, lwm != 0);
	cx_set(rmpc, rmpc, state, to);
	cx_set(cx_ptr(rmpc, rmpc, wq), wq, lwm, lwm);
	return driver_command(&d, 0x90d, 0, CX_BYTES_modify_rmp_in, 16);
}

static bool rmp_has(u32 rmpn, u32 lwm)
{
	const u8 *rmpc = cx_ptr(d.out, query_rmp_out, rmp_context), *wq = cx_cptr(rmpc, rmpc, wq);

	return !command_on(0x90f, 0, rmpn) && cx_get(rmpc, rmpc, state) == 1 && cx_get(wq, wq, lwm) == lwm &&
	       cx_get(wq, wq, log_wq_stride) == 6 && cx_get(wq, wq, log_wq_sz) == 2 && cx_get(wq, wq, pd) == d.pdn &&
	       cx_get(wq, wq, dbr_addr) == driver_addr(RECORD);
}

/* Sends @bytes from the queue pair in page 5, as request @i. */
static void post_send(u32 a, u32 i, u32 bytes)
{
	driver_data(driver_control(driver_wqe(&d, 5, i), a, i, CX_OP_SEND, 32), bytes, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 5, a, i + 1);
}

/* The next completion has this opcode, and this user index or SRQ. */
static bool completes(u8 opcode, u32 index_srqn)
{
	const u8 *e = driver_poll(&d);

	return e && e[63] >> 4 == opcode && wire_load(e + 32, 4) == index_srqn;
}

/* Receive memory pools are SRQs. By its user index, a queue pair's completions are of version 1. */
static void memory_pool(void)
{
	u32 a = 0, b = 0, rmpn = 0, other;

	row(150, "a pool whose entries are no linked list", rmp_create(1, 6, 2, 1, &other) == CX_BAD_PARAM);
	row(151, "or have no room for an SGE", rmp_create(0, 4, 2, 1, &other) == CX_BAD_PARAM);
	row(152, "or are larger than those of any", rmp_create(0, 12, 2, 1, &other) == CX_BAD_PARAM);
	row(153, "or are more", rmp_create(0, 6, 16, 1, &other) == CX_BAD_PARAM);
	row(154, "or that is not ready", rmp_create(0, 6, 2, 0, &other) == CX_BAD_PARAM);
	row(155, "a pool", !rmp_create(0, 6, 2, 1, &rmpn) && rmpn && rmp_has(rmpn, 0));
	row(156, "it is neither an SRQ of the other kinds",
	    command_on(0x701, 0, rmpn) == CX_BAD_RES && command_on(0x702, 0, rmpn) == CX_BAD_RES &&
		    command_on(0x703, 1, rmpn) == CX_BAD_RES && command_on(0x706, 0, rmpn) == CX_BAD_RES &&
		    command_on(0x707, 0, rmpn) == CX_BAD_RES && command_on(0x708, 1, rmpn) == CX_BAD_RES);
	d.user_index = 0x51;
	row(157, "the queue pair that uses it", !driver_qp(&d, CX_QP_RC, 6, rmpn, &b));
	d.user_index = 0x52;
	row(158, "and its peer",
	    !driver_qp(&d, CX_QP_RC, 5, 0, &a) && !driver_connect(&d, a, b) && !driver_connect(&d, b, a));
	post_shared(0);
	post_shared(1);
	row(159, "a limit above the level", !rmp_modify(rmpn, 1, 1, 3));
	row(160, "has its event", driver_event(&d) != NULL && rmp_has(rmpn, 0));
	row(161, "one below it", !rmp_modify(rmpn, 1, 1, 1) && rmp_has(rmpn, 1));
	row(162, "nothing selected, nothing changed", !rmp_modify(rmpn, 1, 1, 0) && rmp_has(rmpn, 1));
	row(163, "its state does not change",
	    rmp_modify(rmpn, 1, 3, 2) == CX_BAD_PARAM && rmp_modify(rmpn, 3, 1, 2) == CX_BAD_PARAM && rmp_has(rmpn, 1));
	row(164, "none of this number", rmp_modify(rmpn + 1, 1, 1, 2) == CX_BAD_RES);
	post_send(a, 0, 7);
	row(165, "a receive has the index of its queue pair", completes(2, 0x51));
	row(166, "a request that of its own", completes(0, 0x52));
	post_send(a, 1, 17);
	row(167, "a receive that fails", completes(14, 0x51));
	row(168, "and the request that did", completes(13, 0x52));
	post_send(a, 2, 7);
	row(169, "and one that is flushed", completes(13, 0x52));
	row(170, "in use it stays", command_on(0x90e, 0, rmpn) == CX_BAD_RES_STATE);
	row(171, "without users it ends",
	    !driver_command_on(&d, 0x501, b) && !command_on(0x90e, 0, rmpn) &&
		    command_on(0x90f, 0, rmpn) == CX_BAD_RES);
	driver_command_on(&d, 0x501, a);
	d.user_index = 0;
}

/* A queue pair with user index 0xffffff has completions of version 0, with the number of the SRQ. */
static void memory_pool_of_version_0(void)
{
	u32 a = 0, b = 0, rmpn = 0;

	row(175, "two queue pairs",
	    !rmp_create(0, 6, 2, 1, &rmpn) && !driver_qp(&d, CX_QP_RC, 6, rmpn, &b) &&
		    !driver_qp(&d, CX_QP_RC, 5, 0, &a) && !driver_connect(&d, a, b) && !driver_connect(&d, b, a));
	post_shared(0);
	post_send(a, 0, 7);
	row(176, "a receive has the number of the pool", completes(2, rmpn));
	row(177, "a request none", completes(0, 0));
	driver_command_on(&d, 0x501, a);
	driver_command_on(&d, 0x501, b);
	row(178, "it ends", !command_on(0x90e, 0, rmpn));
}

static int xrc_srq_create(u32 xrcd, u32 cqn, u32 user_index, u32 *srqn)
{
	u8 *ctx = cx_ptr(d.in, create_xrc_srq_in, xrc_srq_context_entry);
	int status;

	memset(d.in, 0, sizeof(d.in));
	memset(d.c.mem + RING_AT, 0, 4096);
	cx_set(ctx, srqc, log_srq_size, 2);
	cx_set(ctx, srqc, log_rq_stride, 2);
	cx_set(ctx, srqc, pd, d.pdn);
	cx_set(ctx, srqc, xrcd, xrcd);
	cx_set(ctx, srqc, cqn, cqn);
	cx_set(ctx, xrc_srqc, user_index, user_index);
	cx_set(ctx, srqc, dbr_addr, driver_addr(RECORD));
	status = driver_command(&d, 0x705, 0, driver_page(&d, CX_AT_create_xrc_srq_in_pas / 8, RING_AT), 16);
	*srqn = (u32)cx_get(d.out, create_xrc_srq_out, xrc_srqn);
	return status;
}

static int xrc_srq_arm(u32 srqn, u16 modifier, u32 lwm)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, arm_xrc_srq_in, xrc_srqn, srqn);
	cx_set(d.in, arm_xrc_srq_in, lwm, lwm);
	return driver_command(&d, 0x708, modifier, 16, 16);
}

/* One XRC SEND of 7 bytes as request @i of the initiator in page 13. */
static void post_xrc(u32 ini, u32 srqn, u32 i)
{
	u8 *w = d.c.mem + AT_WQ + 13 * 4096 + (size_t)i * 64;

	wire_store(driver_control(w, ini, i, CX_OP_SEND, 48), 4, srqn);
	driver_data(w + 32, 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 13, ini, i + 1);
}

/* A completion of an XRC SRQ has its user index, whatever that of the queue pair is. */
static void xrc_user_index(void)
{
	static const u32 indices[] = { 0x61, CX_NO_INDEX };
	u32 xrcd, srqn = 0, ini = 0, tgt = 0, other, i;
	const u8 *ctx;

	row(180, "an XRC domain", !command_on(0x80e, 0, 0));
	xrcd = (u32)cx_get(d.out, alloc_xrcd_out, xrcd);
	row(181, "an XRC SRQ without it", xrc_srq_create(0, d.cqn, 0x61, &other) == CX_BAD_RES);
	row(182, "or without a CQ", xrc_srq_create(xrcd, CX_ANY_QPN, 0x61, &other) == CX_BAD_RES);
	for (i = 0; i < ARRAY_SIZE(indices); i++) {
		row(183, "an XRC SRQ", !xrc_srq_create(xrcd, d.cqn, indices[i], &srqn));
		ctx = cx_ptr(d.out, query_xrc_srq_out, xrc_srq_context_entry);
		row(184, "its context",
		    !command_on(0x707, 0, srqn) && cx_get(ctx, xrc_srqc, user_index) == indices[i] &&
			    cx_get(ctx, srqc, xrcd) == xrcd && !cx_get(ctx, srqc, state));
		row(185, "it is none of the other kinds",
		    command_on(0x701, 0, srqn) == CX_BAD_RES && command_on(0x90e, 0, srqn) == CX_BAD_RES &&
			    command_on(0x703, 1, srqn) == CX_BAD_RES);
		row(186, "its limit",
		    xrc_srq_arm(srqn, 0, 1) == CX_BAD_PARAM && xrc_srq_arm(srqn, 2, 1) == CX_BAD_PARAM &&
			    xrc_srq_arm(srqn + 1, 1, 1) == CX_BAD_RES && !xrc_srq_arm(srqn, 1, 1));
		d.user_index = 0x62;
		row(187, "an initiator and a target",
		    !driver_qp(&d, CX_QP_XRC, 13, 0, &ini) && !driver_qp(&d, CX_QP_XRC, 14, xrcd, &tgt) &&
			    !driver_connect(&d, ini, tgt) && !driver_connect(&d, tgt, ini));
		post_shared(0);
		post_xrc(ini, srqn, 0);
		row(188, "a receive has the index of the SRQ", completes(2, i ? srqn : indices[i]));
		row(189, "a request that of its queue pair", completes(0, 0x62));
		row(190, "they end",
		    !driver_command_on(&d, 0x501, ini) && !driver_command_on(&d, 0x501, tgt) &&
			    !command_on(0x706, 0, srqn));
	}
	row(191, "and the domain", !xrcd_free(xrcd));
	d.user_index = 0;
}

static void start(void)
{
	row(1, "a driver", !driver_start(&d));
}

PARTS(start, shared_receive, xrc, memory_pool, memory_pool_of_version_0, xrc_user_index)

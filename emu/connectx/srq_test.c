// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shared receive queues, and those of XRC (annex A14). */
#include "emu/connectx/frame.h"

static void shared_receive(void)
{
	u8 *ctx = cx_ptr(d.in, create_srq_in, srq_context_entry), *w;
	u32 a = 0, b = 0, srqn, set, i;
	const u8 *e;

	memcpy(d.c.mem + AT_DATA, "needle", 7);
	memset(d.in, 0, sizeof(d.in));
	memset(d.c.mem + AT_WQ + 4 * 4096, 0, 4096);
	cx_set(ctx, srqc, log_srq_size, 2);
	cx_set(ctx, srqc, log_rq_stride, 2);
	cx_set(ctx, srqc, pd, d.pdn);
	cx_set(ctx, srqc, dbr_addr, driver_addr(AT_RECORDS + 64 + 4 * 64));
	row(50, "an SRQ",
	    !driver_command(&d, 0x700, 0, driver_page(&d, CX_AT_create_srq_in_pas / 8, AT_WQ + 4 * 4096), 16));
	srqn = (u32)cx_get(d.out, create_srq_out, srqn);
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

static void start(void)
{
	row(1, "a driver", !driver_start(&d));
}

PARTS(start, shared_receive, xrc)

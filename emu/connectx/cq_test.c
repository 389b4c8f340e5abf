// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The size and the state of CQs: MODIFY_CQ to another size, errors, what QUERY_CQ reports, moderation of events. */
#include "emu/connectx/frame.h"

#define AT_NEW_CQ (AT_CQ + 0x1000u)
#define ENTRIES   (1u << LOG_CQ)

/* Posts NOP @index of the queue pair in page 0. */
static void post_nop(u32 qpn, u32 index)
{
	driver_control(driver_wqe(&d, 0, index), qpn, index, CX_OP_NOP, 16);
	driver_posted(&d, 0, qpn, index + 1);
}

/* A CQ with @n completions, of a queue pair that is connected to itself. */
static u32 completions(u32 n)
{
	u32 qpn = 0, i;

	row_of("a CQ", "with completions",
	       !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn) && !driver_connect(&d, qpn, qpn));
	for (i = 0; i < n; i++)
		post_nop(qpn, i);
	return qpn;
}

static int resize(u32 log_size)
{
	u8 *ctx = cx_ptr(d.in, modify_cq_in, cq_context);

	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, modify_cq_in, cqn, d.cqn);
	cx_set(ctx, cqc, log_cq_size, log_size);
	return driver_command(&d, 0x403, 1, driver_page(&d, CX_AT_modify_cq_in_pas / 8, AT_NEW_CQ), 16);
}

static u8 opcode_at(u32 at, u32 index)
{
	return d.c.mem[at + index * 64 + 63] >> 4;
}

static void sizes(void)
{
	u32 qpn = completions(3);

	row(1, "fewer entries than completions", resize(1) == CX_BAD_SIZE);
	row(2, "as many as completions and the resize CQE", !resize(2));
	row(3, "it is the last entry of the old one", opcode_at(AT_CQ, 3) == 5);
	post_nop(qpn, 3);
	row(4, "the next completion is in the new one", opcode_at(AT_NEW_CQ, 4 & 3) == 0);
	completions(ENTRIES);
	row(5, "to fewer when it is full", resize(LOG_CQ - 1) == CX_BAD_SIZE);
	row(6, "to more: the old one has no room for the resize CQE", resize(LOG_CQ + 1) == CX_BAD_RES_STATE);
	row(7, "to more than any CQ has", resize(31) == CX_BAD_PARAM);
	completions(1);
	row(8, "to more than its pages have", resize(12) == CX_BAD_PARAM);
}

/* A driver that ignores overruns does not update the consumer index. */
static void sizes_ignoring_overrun(void)
{
	u8 *ctx = cx_ptr(d.in, modify_cq_in, cq_context);
	u32 qpn = completions(0), i;

	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, modify_cq_in, cqn, d.cqn);
	cx_set(d.in, modify_cq_in, modify_field_select_resize_field_select, 1 << 2);
	cx_set(ctx, cqc, oi, 1);
	row(30, "a CQ whose overrun is ignored", !driver_command(&d, 0x403, 0, CX_BYTES_modify_cq_in, 16));
	for (i = 0; i < ENTRIES + 3; i++) {
		post_nop(qpn, i);
		driver_poll(&d);
		wire_store(d.c.mem + AT_RECORDS, 4, 0);
	}
	row(31, "to fewer entries than the completions that it has had", !resize(2));
	row(32, "the resize CQE is in the old one", opcode_at(AT_CQ, 3) == 5);
	post_nop(qpn, i);
	row(33, "the next completion in the new one", opcode_at(AT_NEW_CQ, (i + 1) & 3) == 0);
}

/* Whether QUERY_CQ reports this status and state. */
static bool is_queried(u32 status, u32 st)
{
	const u8 *ctx = cx_ptr(d.out, query_cq_out, cq_context);

	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, query_cq_in, cqn, d.cqn);
	return !driver_command(&d, 0x402, 0, 16, CX_BYTES_query_cq_out) && cx_get(ctx, cqc, status) == status &&
	       cx_get(ctx, cqc, st) == st;
}

static bool is_error(const u8 *e, u8 syndrome)
{
	return e && e[1] == CX_EVENT_CQ_ERROR && wire_load(e + 32, 4) == d.cqn && e[32 + 11] == syndrome;
}

static void states(void)
{
	u32 qpn = completions(ENTRIES);

	row(10, "a CQ that is not armed", is_queried(0, 0xa));
	d.cqe = ENTRIES;
	driver_arm_cq(&d, true);
	row(11, "armed for solicited completions", is_queried(0, 6));
	driver_arm_cq(&d, false);
	row(12, "for the next one", is_queried(0, 9));
	post_nop(qpn, ENTRIES);
	row(13, "one that overruns", is_error(driver_event(&d), 1) && is_queried(9, 9));
	wire_store(d.c.mem + AT_RECORDS, 4, ENTRIES);
	row(14, "is not resized, whatever room it has", resize(LOG_CQ + 1) == CX_BAD_RES_STATE);
	qpn = completions(0);
	((struct cx_cq *)table_get(&d.dev->verbs.cqs, d.cqn))->record = (struct cx_record){ .addr = 1ull << 50 };
	post_nop(qpn, 0);
	row(15, "one whose record is not in memory", is_error(driver_event(&d), 2) && is_queried(0xa, 0xa));
	qpn = completions(0);
	((struct cx_cq *)table_get(&d.dev->verbs.cqs, d.cqn))->buf.page[0] = 1ull << 50;
	post_nop(qpn, 0);
	row(16, "or whose buffer is not", is_error(driver_event(&d), 2) && is_queried(0xa, 0xa));
}

/* What MODIFY_CQ does not know, it does not take for something else. */
static void modifiers(void)
{
	u8 *ctx = cx_ptr(d.in, modify_cq_in, cq_context);
	u32 modifier;

	completions(0);
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, modify_cq_in, cqn, d.cqn);
	cx_set(d.in, modify_cq_in, modify_field_select_resize_field_select, 1 | 1 << 4);
	cx_set(ctx, cqc, cq_period, 7);
	row(20, "a field that MODIFY_CQ does not set",
	    driver_command(&d, 0x403, 0, CX_BYTES_modify_cq_in, 16) == CX_BAD_PARAM);
	cx_set(d.in, modify_cq_in, modify_field_select_resize_field_select, 1);
	for (modifier = 2; modifier < 1u << 16; modifier *= 3)
		row(21, "a modifier that it does not have",
		    driver_command(&d, 0x403, (u16)modifier, CX_BYTES_modify_cq_in, 16) == CX_BAD_PARAM);
	row(22, "change nothing", !((struct cx_cq *)table_get(&d.dev->verbs.cqs, d.cqn))->period);
}

/* A request that completes, with the CQ armed before. Returns its event. */
static const u8 *moderated_nop(u32 a, u32 index)
{
	driver_arm_eq(&d);
	driver_arm_cq(&d, false);
	post_nop(a, index);
	return driver_sent(driver_poll(&d), CX_OP_NOP, a, index) ? driver_event(&d) : NULL;
}

static int modify_cq(u32 select, u32 period, u32 count)
{
	u8 *ctx = cx_ptr(d.in, modify_cq_in, cq_context);

	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, modify_cq_in, cqn, d.cqn);
	cx_set(d.in, modify_cq_in, modify_field_select_resize_field_select, select);
	cx_set(ctx, cqc, cq_period, period);
	cx_set(ctx, cqc, cq_max_count, count);
	return driver_command(&d, 0x403, 0, CX_BYTES_modify_cq_in, 16);
}

static u32 queried_count(void)
{
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, query_cq_in, cqn, d.cqn);
	driver_command(&d, 0x402, 0, 16, CX_BYTES_query_cq_out);
	return (u32)cx_get(cx_ptr(d.out, query_cq_out, cq_context), cqc, cq_max_count);
}

/*
 * Events wait for a count of completions or for the period after the last event. On a busy machine the period may have
 * passed at any row: the tries end when it has not.
 */
static void moderation(void)
{
	u32 a = completions(0), i = 0, tries = 0;

	row(151, "MODIFY_CQ of period and count", !modify_cq(3, 4095, 2));
	row(152, "the first event, a period after the last",
	    (driver_run_for(&d, 5 * NSEC_PER_MSEC), moderated_nop(a, i++) != NULL));
	while (moderated_nop(a, i++) && ++tries < 1000)
		;
	row(153, "one completion has no event yet", tries < 1000);
	driver_run_for(&d, 5 * NSEC_PER_MSEC);
	row(154, "but a period after the last", driver_event(&d) && !driver_event(&d));
	for (tries = 0; tries < 1000 && moderated_nop(a, i++); tries++)
		;
	row(155, "the second one has it by the count", tries < 1000 && moderated_nop(a, i++));
	row(156, "a field that is not selected is kept", !modify_cq(1, 0, 7) && queried_count() == 2);
	row(157, "without a period each completion has an event",
	    moderated_nop(a, i) && moderated_nop(a, i + 1) && moderated_nop(a, i + 2));
}

/* Syndrome and vendor syndrome of a request and of a receive that fails with a status. */
static void errors(void)
{
	static const struct {
		u32 row;
		u8 status, opcode, syndrome, vendor;
	} rows[] = {
		{ 170, HCA_WC_LOC_LEN_ERR, HCA_WC_RECV, 0x01, 0 },
		{ 171, HCA_WC_LOC_QP_OP_ERR, HCA_WC_SEND, 0x02, 0x68 },
		{ 172, HCA_WC_LOC_PROT_ERR, HCA_WC_SEND, 0x04, 0x52 },
		{ 173, HCA_WC_LOC_PROT_ERR, HCA_WC_RECV, 0x04, 0x32 },
		{ 174, HCA_WC_WR_FLUSH_ERR, HCA_WC_SEND, 0x05, 0xf9 },
		{ 175, HCA_WC_WR_FLUSH_ERR, HCA_WC_RECV, 0x05, 0xf9 },
		{ 176, HCA_WC_MW_BIND_ERR, HCA_WC_BIND_MW, 0x06, 0x78 },
		{ 177, HCA_WC_LOC_QP_OP_ERR, HCA_WC_REG_MR, 0x06, 0x78 },
		{ 178, HCA_WC_BAD_RESP_ERR, HCA_WC_RDMA_READ, 0x10, 0 },
		{ 179, HCA_WC_LOC_ACCESS_ERR, HCA_WC_RECV, 0x11, 0 },
		{ 180, HCA_WC_REM_INV_REQ_ERR, HCA_WC_SEND, 0x12, 0x8a },
		{ 181, HCA_WC_REM_ACCESS_ERR, HCA_WC_RDMA_WRITE, 0x13, 0x88 },
		{ 182, HCA_WC_REM_OP_ERR, HCA_WC_SEND, 0x14, 0x89 },
		{ 183, HCA_WC_RETRY_EXC_ERR, HCA_WC_SEND, 0x15, 0x81 },
		{ 184, HCA_WC_RNR_RETRY_EXC_ERR, HCA_WC_SEND, 0x16, 0 },
		{ 185, HCA_WC_REM_ABORT_ERR, HCA_WC_SEND, 0x22, 0 },
		{ 186, HCA_WC_GENERAL_ERR, HCA_WC_SEND, 0x1f, 0 },
		{ 187, 0xff, HCA_WC_SEND, 0x1f, 0 },
	};
	u32 qpn = completions(0), i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct hca_cqe cqe = { .status = rows[i].status, .opcode = rows[i].opcode, .qpn = qpn };
		void *cq = table_get(&d.dev->verbs.cqs, d.cqn);
		const u8 *e;

		row(rows[i].row, "the completion", !cx_cq_ops.complete(container_of(cq, struct cx_cq, cq), &cqe));
		e = driver_poll(&d);
		row(rows[i].row, "has syndrome and vendor syndrome",
		    driver_failed(e, rows[i].opcode >= HCA_WC_RECV, rows[i].syndrome) && e[54] == rows[i].vendor);
	}
}

PARTS(sizes, sizes_ignoring_overrun, states, modifiers, moderation, errors)

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Doorbell records that are not in memory: errors of the queue pair or SRQ, which report them (11.6.3). */
#include "emu/connectx/frame.h"

#define NOWHERE (1ull << 50)

/* As if the driver had created the queue with this record. */
static void record_set(struct cx_record *r, u64 addr)
{
	*r = (struct cx_record){ .addr = addr };
}

static bool has_event(u8 type, u32 number)
{
	const u8 *e = driver_event(&d);

	return e && e[1] == type && wire_load(e + 32 + 24, 4) == number;
}

/* The queue pair is in ERR, and has had the event, once. */
static bool is_broken(u32 qpn)
{
	const u8 *qpc;

	return has_event(CX_EVENT_WQ_CATASTROPHIC, qpn) && !driver_event(&d) && (qpc = driver_qp_context(&d, qpn)) &&
	       cx_get(qpc, qpc, state) == 6;
}

static void send_queues(void)
{
	static const u32 services[] = { CX_QP_RC, CX_QP_UD, CX_QP_SMI, CX_QP_GSI, CX_QP_UMR };
	static const u64 records[] = { NOWHERE, CLIENT_IOVA + CLIENT_MEM - 4, CLIENT_IOVA + AT_RECORDS + 4 };
	u32 i, k, qpn;

	for (i = 0; i < ARRAY_SIZE(services); i++) {
		for (k = 0; k < ARRAY_SIZE(records); k++) {
			row(1, "a queue pair",
			    !driver_start(&d) && !driver_qp(&d, services[i], 0, 0, &qpn) &&
				    !driver_connect(&d, qpn, services[i] == CX_QP_RC ? qpn : 0));
			record_set(&cx_qp_get(d.dev, qpn)->record, records[k]);
			driver_posted(&d, 0, qpn, 1);
			row(2, "a doorbell without a record", is_broken(qpn));
			driver_posted(&d, 0, qpn, 2);
			row(3, "another", !driver_event(&d));
			memset(d.in, 0, sizeof(d.in));
			row(4, "the driver resets it", !driver_modify(&d, 0x50a, qpn, 0) && !driver_event(&d));
		}
	}
}

/* A SEND from @a, whose queues are in page 0. */
static void post_send(u32 a)
{
	driver_data(driver_control(driver_wqe(&d, 0, 0), a, 0, CX_OP_SEND, 32), 7, d.lkey, driver_addr(AT_DATA));
	driver_posted(&d, 0, a, 1);
}

static void receive_queue(void)
{
	u32 a = 0, b = 0;

	row(10, "two queue pairs",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &a) && !driver_qp(&d, CX_QP_RC, 1, 0, &b) &&
		    !driver_connect(&d, a, b) && !driver_connect(&d, b, a));
	driver_recv(&d, 1, 0, 64, driver_addr(AT_DATA + 4096));
	record_set(&cx_qp_get(d.dev, b)->record, NOWHERE);
	post_send(a);
	row(11, "a SEND to a receive queue without a record", is_broken(b));
}

static void shared_receive_queue(void)
{
	u32 a = 0, b = 0, srqn;

	row(20, "a driver", !driver_start(&d));
	row(21, "an SRQ without a record", !driver_srq(&d, NOWHERE, &srqn));
	row(22, "and two queue pairs",
	    !driver_qp(&d, CX_QP_RC, 0, 0, &a) && !driver_qp(&d, CX_QP_RC, 1, srqn, &b) && !driver_connect(&d, a, b) &&
		    !driver_connect(&d, b, a));
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, arm_rq_in, srq_number, srqn);
	cx_set(d.in, arm_rq_in, lwm, 2);
	row(23, "its limit is unknown", !driver_command(&d, 0x703, 1, 16, 16));
	row(24, "which is its error", has_event(CX_EVENT_SRQ_CATASTROPHIC, srqn) && !driver_event(&d));
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, query_srq_in, srqn, srqn);
	row(26, "its state",
	    !driver_command(&d, 0x702, 0, 16, CX_BYTES_query_srq_out) &&
		    cx_get(cx_ptr(d.out, query_srq_out, srq_context_entry), srqc, state) == 1);
	post_send(a);
	row(25, "and one of the queue pair that needs a receive", has_event(CX_EVENT_LAST_WQE, b) && is_broken(b));
}

PARTS(send_queues, receive_queue, shared_receive_queue)

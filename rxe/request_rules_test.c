// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rules of work requests in requester and responder (IBTA volume 1, 9.7, 9.9, 10.8), one row per clause: order of
 * responses, memory that cannot be accessed, RNR, SQD, READ and atomic resources, local operations.
 */
#include "rxe/request.h"
#include "rxe/rules_fixture.h"

/* Order of responses and NAK */

static bool read_then_bad_write(void)
{
	post(HCA_WR_RDMA_READ, 0, 65536, 1);
	post_bad_write(2);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, HCA_WC_REM_ACCESS_ERR) && is_quiet(&a) &&
	       b.events[HCA_EVENT_QP_ACCESS_ERR] == 1 && qp_of(&b)->state == HCA_QPS_ERR &&
	       acks(&b, NAK(WIRE_NAK_REMOTE_ACCESS), PSN + 16) == 1;
}

static bool read_then_long_send(void)
{
	recv_at(b.wq, 0, 63, 7);
	post(HCA_WR_RDMA_READ, 0, 65536, 1);
	post(HCA_WR_SEND, 0, 64, 2);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, HCA_WC_REM_INV_REQ_ERR) && is_next(&b, 7, HCA_WC_LOC_LEN_ERR) &&
	       b.events[HCA_EVENT_QP_REQ_ERR] == 1;
}

static bool read_then_bad_read(void)
{
	struct hca_send_wr wr = request_at(HCA_WR_RDMA_READ, 0, 64, 2);

	wr.rkey ^= 0x5500;
	post(HCA_WR_RDMA_READ, 0, 65536, 1);
	hca_soft_post_send(a.wq, &wr);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, HCA_WC_REM_ACCESS_ERR);
}

static bool atomic_then_bad_write(void)
{
	post(HCA_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 1);
	post_bad_write(2);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, HCA_WC_REM_ACCESS_ERR);
}

static bool read_then_unmapped_write(void)
{
	unmap(&b, SIZE, 4096);
	post(HCA_WR_RDMA_READ, 0, 65536, 1);
	post(HCA_WR_RDMA_WRITE, SIZE, 64, 2);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, HCA_WC_REM_OP_ERR) && b.events[HCA_EVENT_QP_FATAL] == 1;
}

static bool requests_after_a_failed_one(void)
{
	post(HCA_WR_RDMA_READ, 0, 65536, 1);
	post_bad_write(2);
	post(HCA_WR_RDMA_WRITE, 8192, 64, 3);
	memset(b.mem + 8192, 0, 64);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, HCA_WC_REM_ACCESS_ERR) && is_next(&a, 3, HCA_WC_WR_FLUSH_ERR) &&
	       !b.mem[8192 + 1];
}

/* Memory that cannot be accessed */

static bool write_unmapped(void)
{
	unmap(&b, 8192, 4096);
	post(HCA_WR_RDMA_WRITE, 0, 64, 1);
	post(HCA_WR_RDMA_WRITE, 8192, 10000, 2);
	post(HCA_WR_RDMA_WRITE, 4096, 64, 3);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, HCA_WC_REM_OP_ERR) && is_next(&a, 3, HCA_WC_WR_FLUSH_ERR) &&
	       acks(&b, NAK(WIRE_NAK_REMOTE_OP), PSN + 1) == 1 && !hca_counter(a.hca, 1, HCA_CNT_GHOST);
}

static bool recv_unmapped(void)
{
	unmap(&b, 4096, 100);
	recv_at(b.wq, 0, 100, 1);
	recv_at(b.wq, 4096, 100, 2);
	recv_at(b.wq, 8192, 100, 3);
	recv_at(b.wq, 8192, 100, 4);
	post(HCA_WR_SEND, 0, 64, 11);
	post(HCA_WR_SEND, 0, 64, 12);
	post(HCA_WR_SEND, 0, 64, 13);
	run();
	return is_next(&a, 11, 0) && is_next(&a, 12, HCA_WC_REM_OP_ERR) && is_next(&a, 13, HCA_WC_WR_FLUSH_ERR) &&
	       is_next(&b, 1, 0) && is_next(&b, 2, HCA_WC_LOC_PROT_ERR) && is_next(&b, 3, HCA_WC_WR_FLUSH_ERR) &&
	       is_next(&b, 4, HCA_WC_WR_FLUSH_ERR) && is_quiet(&b) && !hca_soft_wq_recvs(b.wq);
}

/* The receive of a message with more packets to follow. */
static bool recv_unmapped_in_part(void)
{
	unmap(&b, 4096, 100);
	recv_at(b.wq, 0, 100000, 1);
	drop_from = drop_to = 5;
	post(HCA_WR_SEND, 0, 50000, 11);
	run();
	return is_next(&a, 11, HCA_WC_REM_OP_ERR) && is_next(&b, 1, HCA_WC_LOC_PROT_ERR) && is_quiet(&b);
}

static bool srq_recv_unmapped(void)
{
	struct hca_soft_wq *srq = shared_queue(HCA_QPT_RC);
	bool ok;

	qp_remake(&a);
	if (move(&a, &b, 5, PSN) || move(&b, &a, 5, PSN))
		return false;
	unmap(&b, 4096, 100);
	recv_at(srq, 0, 100, 1);
	recv_at(srq, 4096, 100, 2);
	recv_at(srq, 8192, 100, 3);
	post(HCA_WR_SEND, 0, 64, 11);
	post(HCA_WR_SEND, 0, 64, 12);
	post(HCA_WR_SEND, 0, 64, 13);
	run();
	ok = is_next(&a, 11, 0) && is_next(&a, 12, HCA_WC_REM_OP_ERR) && is_next(&b, 1, 0) &&
	     is_next(&b, 2, HCA_WC_LOC_PROT_ERR) && is_next(&b, 3, HCA_WC_WR_FLUSH_ERR) && is_quiet(&b) &&
	     b.events[HCA_EVENT_QP_LAST_WQE_REACHED] == 1;
	shared_queue_end(srq, HCA_QPT_RC);
	return ok;
}

static bool read_into_unmapped(void)
{
	unmap(&a, 4096, 100);
	post(HCA_WR_RDMA_READ, 0, 64, 1);
	post(HCA_WR_RDMA_READ, 4096, 64, 2);
	post(HCA_WR_RDMA_READ, 8192, 64, 3);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, HCA_WC_LOC_PROT_ERR) && is_next(&a, 3, HCA_WC_WR_FLUSH_ERR) &&
	       qp_of(&b)->state == HCA_QPS_RTS;
}

static bool atomic_into_unmapped(void)
{
	unmap(&a, 4096, 100);
	post(HCA_WR_ATOMIC_FETCH_AND_ADD, 4096, 8, 1);
	run();
	return is_next(&a, 1, HCA_WC_LOC_PROT_ERR) && qp_of(&b)->state == HCA_QPS_RTS;
}

/* The memory failure is found only when the move ends, while the transmit task is due. */
static bool atomic_on_unmapped(void)
{
	struct hca_send_wr send = request_at(HCA_WR_SEND, 0, 64, 2);

	late_side = &b;
	unmap(&b, 4096, 8);
	post(HCA_WR_ATOMIC_FETCH_AND_ADD, 4096, 8, 1);
	step(0);
	hca_soft_post_send(b.wq, &send);
	late_end();
	run();
	return is_next(&a, 1, HCA_WC_REM_OP_ERR);
}

static bool send_from_unmapped(void)
{
	unmap(&a, 4096, 100);
	recv_at(b.wq, 0, 100, 1);
	recv_at(b.wq, 0, 100, 2);
	post(HCA_WR_SEND, 0, 64, 11);
	post(HCA_WR_SEND, 4096, 64, 12);
	post(HCA_WR_SEND, 0, 64, 13);
	run();
	return is_next(&a, 11, 0) && is_next(&a, 12, HCA_WC_LOC_PROT_ERR) && is_next(&a, 13, HCA_WC_WR_FLUSH_ERR) &&
	       is_next(&b, 1, 0) && is_quiet(&b);
}

static bool read_from_unmapped(void)
{
	unmap(&b, 8192, 4096);
	post(HCA_WR_RDMA_READ, 0, 4096, 1);
	post(HCA_WR_RDMA_READ, 8192, 4096, 2);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, HCA_WC_REM_OP_ERR) &&
	       acks(&b, NAK(WIRE_NAK_REMOTE_OP), PSN + 1) == 1;
}

static bool recv_outside_its_region(void)
{
	recv_at(b.wq, 2 * SIZE - 10, 100, 1);
	post(HCA_WR_SEND, 0, 64, 11);
	run();
	return is_next(&a, 11, HCA_WC_REM_OP_ERR) && is_next(&b, 1, HCA_WC_LOC_PROT_ERR);
}

/* The responder's memory is late, and the requester retransmits; @timeout: of the responder. At @ms the write ends. */
static bool write_into_late(u8 rnr_retry, u8 timeout, u32 ms)
{
	qp_of(&a)->attr.rnr_retry = ((struct rxe_qp *)qp_of(&a)->transport)->req.rnr_retries = rnr_retry;
	qp_of(&b)->attr.rnr_retry = rnr_retry;
	qp_of(&a)->attr.timeout = 8; /* 1 ms */
	qp_of(&b)->attr.timeout = timeout;
	late_side = &b;
	post(HCA_WR_RDMA_WRITE, 0, 64, 1);
	step(0);
	step(ms * 1000);
	late_end();
	run();
	return is_next(&a, 1, 0) && hca_counter(b.hca, 1, HCA_CNT_DUPLICATE_REQUEST);
}

/* @writes: of 9 MB each that wait for the responder's memory, for @ms */
static bool write_beside(u32 writes, u8 rnr_retry, u32 ms)
{
	static u8 from[9 << 20], to[sizeof(from)];

	qp_of(&a)->attr.rnr_retry = ((struct rxe_qp *)qp_of(&a)->transport)->req.rnr_retries = rnr_retry;
	qp_of(&b)->attr.rnr_retry = rnr_retry;
	qp_of(&a)->attr.timeout = 8; /* 1 ms */
	qp_of(&b)->attr.timeout = 14;
	late_side = &b;
	while (writes--)
		hca_ctx_write(b.ctx, &b, (u64)(uintptr_t)to, from, sizeof(from));
	post(HCA_WR_RDMA_WRITE, 0, 64, 1);
	step(0);
	step(ms * 1000);
	late_end();
	run();
	return is_next(&a, 1, 0);
}

static bool full_of_other_moves(void)
{
	return write_beside(1, 3, 3) && !hca_counter(b.hca, 1, HCA_CNT_SEND_RNR_ERR);
}

static bool overfull_of_other_moves(void)
{
	return write_beside(4, 3, 3) && hca_counter(b.hca, 1, HCA_CNT_SEND_RNR_ERR);
}

static bool overfull_without_rnr_retries(void)
{
	return write_beside(4, 0, 3) && !hca_counter(b.hca, 1, HCA_CNT_SEND_RNR_ERR);
}

/* For longer than all retries take. */
static bool overfull_for_long(void)
{
	return write_beside(4, 0, 30);
}

static bool late_within_ack_delay(void)
{
	return write_into_late(0, 14, 3) && !hca_counter(b.hca, 1, HCA_CNT_SEND_RNR_ERR);
}

static bool late_after_ack_delay(void)
{
	return write_into_late(3, 8, 20) && hca_counter(b.hca, 1, HCA_CNT_SEND_RNR_ERR);
}

static bool late_without_rnr_retries(void)
{
	return write_into_late(0, 8, 3) && !hca_counter(b.hca, 1, HCA_CNT_SEND_RNR_ERR);
}

static bool late_for_long(void)
{
	return write_into_late(0, 8, 30) && !hca_counter(b.hca, 1, HCA_CNT_SEND_RNR_ERR) &&
	       hca_counter(b.hca, 1, HCA_CNT_DUPLICATE_REQUEST) < 6;
}

/* RNR */

static bool rnr_counter_reloads(void)
{
	u32 i, n = 0, got = 0;

	qp_of(&a)->attr.rnr_retry = 2;
	recv_at(b.wq, 0, 64, 0);
	for (i = 0; i < 10; i++)
		post(HCA_WR_SEND, 0, 64, i);
	for (i = 0; i < 1000; i++) {
		step(5);
		n += !next(&a).status;
		if (!next(&b).status && ++got)
			recv_at(b.wq, 0, 64, got);
	}
	return n == 10;
}

static bool rnr_counter_ends(void)
{
	post(HCA_WR_SEND, 0, 64, 1);
	run();
	return is_next(&a, 1, HCA_WC_RNR_RETRY_EXC_ERR) && hca_counter(b.hca, 1, HCA_CNT_SEND_RNR_ERR) == 4;
}

/* SQD */

static bool drain(void)
{
	struct hca_qp_attr attr = { .state = HCA_QPS_SQD, .en_sqd_async_notify = true };

	return !hca_qp_modify(a.ctx, a.qpn, &attr, HCA_QP_STATE | HCA_QP_EN_SQD_ASYNC_NOTIFY);
}

static bool sqd_retransmits(void)
{
	drop_opcode = WIRE_RC_ACK;
	post(HCA_WR_RDMA_WRITE, 0, 64, 1);
	step(1);
	if (!drain())
		return false;
	post(HCA_WR_RDMA_WRITE, 0, 64, 2); /* does not start */
	step(1);
	drop_opcode = 0;
	if (a.events[HCA_EVENT_SQ_DRAINED])
		return false;
	run();
	return is_next(&a, 1, 0) && is_quiet(&a) && a.events[HCA_EVENT_SQ_DRAINED] == 1;
}

static bool sqd_not_drained_early(void)
{
	bool early;

	drop_all = true;
	post(HCA_WR_RDMA_WRITE, 0, 64, 1);
	step(1);
	drain();
	step(1500); /* after a time-out the cursor is back at the request */
	early = a.events[HCA_EVENT_SQ_DRAINED];
	drop_all = false;
	run();
	return !early && is_next(&a, 1, 0) && a.events[HCA_EVENT_SQ_DRAINED] == 1;
}

static bool sqd_rnr(void)
{
	post(HCA_WR_SEND, 0, 64, 1);
	step(1);
	drain();
	step(1);
	recv_at(b.wq, 0, 64, 7);
	run();
	return is_next(&a, 1, 0) && is_next(&b, 7, 0) && a.events[HCA_EVENT_SQ_DRAINED] == 1;
}

/* READ and atomic resources */

static bool no_initiator_depth(u8 opcode)
{
	qp_of(&a)->attr.max_rd_atomic = 0;
	post(HCA_WR_RDMA_WRITE, 0, 8, 1);
	post(opcode, 0, 8, 2);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, HCA_WC_LOC_QP_OP_ERR);
}

static bool read_without_initiator_depth(void)
{
	return no_initiator_depth(HCA_WR_RDMA_READ);
}

static bool atomic_without_initiator_depth(void)
{
	return no_initiator_depth(HCA_WR_ATOMIC_CMP_AND_SWP);
}

static bool no_responder_resources(u8 opcode)
{
	qp_of(&b)->attr.max_dest_rd_atomic = 0;
	post(opcode, 0, 8, 1);
	run();
	return is_next(&a, 1, HCA_WC_REM_INV_REQ_ERR) && b.events[HCA_EVENT_QP_REQ_ERR] == 1;
}

static bool read_without_resources(void)
{
	return no_responder_resources(HCA_WR_RDMA_READ);
}

static bool atomic_without_resources(void)
{
	return no_responder_resources(HCA_WR_ATOMIC_FETCH_AND_ADD);
}

/* Local operations */

static bool local_operations_once(void)
{
	struct hca_send_wr wr;
	u32 rkey, lkey, i, ok = 0;

	if (hca_mw_alloc(a.ctx, a.pdn, 2, &rkey) || hca_mr_reg(a.ctx, a.pdn, address(&a, 0), address(&a, 0), 4096,
							       HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND, &lkey, &i))
		return false;
	for (i = 0; i < 3; i++)
		recv_at(b.wq, 0, 64, i);
	drop_from = drop_to = 1;
	post(HCA_WR_SEND, 0, 64, 0);
	wr = (struct hca_send_wr){
		.token = 1,
		.opcode = HCA_WR_BIND_MW,
		.mw_rkey = rkey,
		.mr_lkey = lkey,
		.reg_key = (rkey & ~0xffu) | ((rkey + 1) & 0xff),
		.access = HCA_ACCESS_REMOTE_READ,
		.bind_addr = address(&a, 0),
		.bind_len = 4096,
	};
	hca_soft_post_send(a.wq, &wr);
	post(HCA_WR_SEND, 0, 64, 2);
	wr = (struct hca_send_wr){ .token = 3, .opcode = HCA_WR_LOCAL_INV, .rkey = wr.reg_key };
	hca_soft_post_send(a.wq, &wr);
	post(HCA_WR_SEND, 0, 64, 4);
	run();
	for (i = 0; i < 5; i++)
		ok += is_next(&a, i, 0);
	hca_mw_free(a.ctx, rkey);
	return ok == 5;
}

static bool local_inv_waits(void)
{
	struct hca_send_wr wr = { .token = 2, .opcode = HCA_WR_LOCAL_INV };
	u32 rkey;
	bool early;

	if (hca_mw_alloc(a.ctx, a.pdn, 2, &rkey))
		return false;
	wr.rkey = rkey; /* unbound: it fails when it is executed */
	drop_all = true;
	post(HCA_WR_RDMA_WRITE, 0, 64, 1);
	hca_soft_post_send(a.wq, &wr);
	step(10);
	early = rxe_wqe_at(qp_of(&a)->transport, 1)->wr.state != HCA_WQE_POSTED;
	drop_all = false;
	run();
	hca_mw_free(a.ctx, rkey);
	return !early && is_next(&a, 1, 0) && !is_quiet(&a);
}

/* All requests are posted when the requester runs, as in the chains of iSER and NFS. */
static bool local_operations_decide_on_the_next_request(void)
{
	u64 page = (address(&a, 4096) | 4095) - 4095;
	struct hca_send_wr reg = { .token = 1,
				   .opcode = HCA_WR_REG_MR,
				   .access = HCA_ACCESS_LOCAL_WRITE,
				   .bind_addr = page,
				   .bind_len = 4096,
				   .npages = 1,
				   .page_shift = 12,
				   .pages = &page },
			   inv = { .token = 3, .opcode = HCA_WR_LOCAL_INV }, send = request_at(HCA_WR_SEND, 0, 64, 2);
	u32 key;

	if (hca_mr_alloc(a.ctx, a.pdn, 1, &key))
		return false;
	reg.reg_key = inv.rkey = key;
	send.sge[0] = (struct hca_sge){ page, 64, key };
	recv_at(b.wq, 0, 64, 0);
	recv_at(b.wq, 64, 64, 0);
	hca_soft_post_send(a.wq, &reg);
	hca_soft_post_send(a.wq, &send);
	hca_soft_post_send(a.wq, &inv);
	send.token = 4;
	hca_soft_post_send(a.wq, &send);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, 0) && is_next(&a, 3, 0) && is_next(&a, 4, HCA_WC_LOC_PROT_ERR) &&
	       !memcmp(b.mem, (u8 *)(uintptr_t)page, 64);
}

/* Posts a READ, and a fenced WRITE of its data to 4096 bytes behind them. */
static void post_read_and_fenced_write(void)
{
	struct hca_send_wr wr = request_at(HCA_WR_RDMA_WRITE, 0, 512, 2);

	memset(b.mem, 0x77, 512);
	memset(a.mem, 0x11, 512);
	wr.flags = HCA_SEND_SIGNALED | HCA_SEND_FENCE;
	wr.remote_addr += 4096;
	post(HCA_WR_RDMA_READ, 0, 512, 1);
	hca_soft_post_send(a.wq, &wr);
}

static bool wrote_data_of_the_read(void)
{
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, 0) && !memcmp(b.mem + 4096, b.mem, 512) && b.mem[0] == 0x77;
}

static bool fence_sends_data_of_the_read(void)
{
	post_read_and_fenced_write(); /* both are posted when the requester runs */
	return wrote_data_of_the_read();
}

/* The requester runs between the response and the commit of its data, since it was kicked before the responder. */
static bool fence_before_the_commit(void)
{
	step(1);
	post_read_and_fenced_write();
	loop_run_tasks(loop); /* the READ request; the responder has not run yet */
	rxe_req_kick(qp_of(&a)->transport);
	return wrote_data_of_the_read();
}

/* The memory of the response is late: the fenced request waits for its data. */
static bool fence_waits_for_late_memory(void)
{
	u64 before;

	late_side = &a;
	only_writes_late = true;
	post_read_and_fenced_write();
	step(100);
	before = sent;
	step(100);
	if (!late_count || sent != before || b.mem[4096] || !is_quiet(&a))
		return false;
	late_end();
	return wrote_data_of_the_read();
}

/* The READ fails as its data are written, and the requester runs before the commit: the fenced request is not sent. */
static bool fence_after_a_failed_read(void)
{
	struct hca_send_wr wr = request_at(HCA_WR_RDMA_WRITE, 8192, 512, 2);

	wr.flags = HCA_SEND_SIGNALED | HCA_SEND_FENCE;
	unmap(&a, 0, 512);
	step(1);
	post(HCA_WR_RDMA_READ, 0, 512, 1);
	hca_soft_post_send(a.wq, &wr);
	loop_run_tasks(loop);
	rxe_req_kick(qp_of(&a)->transport);
	run();
	return is_next(&a, 1, HCA_WC_LOC_PROT_ERR) && is_next(&a, 2, HCA_WC_WR_FLUSH_ERR) && !b.mem[8192 + 1];
}

/* The other side has a region of this memory: a fenced READ returns what the READ before it has written there. */
static bool fenced_read(void)
{
	struct hca_send_wr wr = request_at(HCA_WR_RDMA_READ, 4096, 512, 2);
	u32 lkey;

	if (hca_mr_reg(b.ctx, b.pdn, address(&a, 0), address(&a, 0), 4096, 0xf, &lkey, &wr.rkey))
		return false;
	memset(b.mem, 0x77, 512);
	memset(a.mem, 0x11, 8192);
	wr.flags = HCA_SEND_SIGNALED | HCA_SEND_FENCE;
	wr.remote_addr = address(&a, 0);
	post(HCA_WR_RDMA_READ, 0, 512, 1);
	hca_soft_post_send(a.wq, &wr);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, 0) && a.mem[0] == 0x77 && !memcmp(a.mem + 4096, a.mem, 512);
}

/* It may give access to the memory into which a READ is still moved. */
static bool fenced_bind_waits(void)
{
	struct hca_send_wr wr = { .token = 2,
				  .opcode = HCA_WR_BIND_MW,
				  .flags = HCA_SEND_SIGNALED | HCA_SEND_FENCE,
				  .access = HCA_ACCESS_REMOTE_READ,
				  .bind_addr = address(&a, 0),
				  .bind_len = 512 };
	u32 rkey;
	bool early;

	if (hca_mw_alloc(a.ctx, a.pdn, 2, &wr.mw_rkey) ||
	    hca_mr_reg(a.ctx, a.pdn, address(&a, 0), address(&a, 0), 4096, HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND,
		       &wr.mr_lkey, &rkey))
		return false;
	late_side = &a;
	post(HCA_WR_RDMA_READ, 0, 512, 1);
	hca_soft_post_send(a.wq, &wr);
	step(100);
	early = !late_count || rxe_wqe_at(qp_of(&a)->transport, 1)->wr.state != HCA_WQE_POSTED;
	late_end();
	run();
	return !early && is_next(&a, 1, 0) && is_next(&a, 2, 0);
}

/* Binds a window of type 1 to @n bytes of @s's memory (0: unbinds it). */
static struct hca_send_wr bind_at(const struct side *s, u32 rkey, u32 n, u64 token)
{
	struct hca_send_wr wr = { .token = token,
				  .opcode = HCA_WR_BIND_MW,
				  .mw_rkey = rkey,
				  .reg_key = rkey + 1,
				  .access = n ? HCA_ACCESS_REMOTE_WRITE : 0,
				  .bind_addr = n ? address(s, 0) : 0,
				  .bind_len = n };
	u32 i;

	if (n)
		hca_mr_reg(s->ctx, s->pdn, address(s, 0), address(s, 0), n, HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND,
			   &wr.mr_lkey, &i);
	return wr;
}

/* A window of b that is bound; returns its key. */
static u32 window_bind(void)
{
	struct hca_send_wr wr;
	u32 rkey;

	hca_mw_alloc(b.ctx, b.pdn, 1, &rkey);
	wr = bind_at(&b, rkey, 4096, 0);
	hca_soft_post_send(b.wq, &wr);
	run();
	return is_next(&b, 0, 0) ? (rkey & ~0xffu) | (u8)(rkey + 1) : 0;
}

static void write_through(u32 rkey)
{
	struct hca_send_wr wr = request_at(HCA_WR_RDMA_WRITE, 0, 64, 1);

	wr.rkey = rkey;
	hca_soft_post_send(a.wq, &wr);
}

/* The WRITE was received, and not committed: it does not change memory after the window was freed. */
static bool window_freed_before_the_commit(void)
{
	u32 rkey = window_bind();
	u8 before[64];

	write_through(rkey);
	loop_run_tasks(loop);
	if (hca_mw_free(b.ctx, rkey))
		return false;
	memcpy(before, b.mem, sizeof(before));
	run();
	return is_next(&a, 1, 0) && !memcmp(before, b.mem, sizeof(before));
}

/* The WRITE came by one queue pair, and another one unbinds the window. */
static bool unbind_waits_for_late_memory(void)
{
	u32 rkey = window_bind();
	struct hca_send_wr wr = bind_at(&b, rkey, 0, 2);
	struct side other = b;
	bool early, ok;

	qp_make(&other, HCA_QPT_RC);
	if (move(&other, &a, 5, PSN))
		return false;
	late_side = &b;
	write_through(rkey);
	step(100);
	hca_soft_post_send(other.wq, &wr);
	step(100);
	early = !late_count || !is_quiet(&b);
	late_end();
	run();
	ok = !early && is_next(&a, 1, 0) && is_next(&b, 2, 0) && b.mem[1] == a.mem[1];
	hca_soft_wq_destroy(other.wq);
	return ok;
}

/* As unbind_waits_for_late_memory(), of a region that a SEND invalidates; the SEND itself has no payload. */
static bool send_with_inv_waits_for_late_memory(void)
{
	u64 page = (address(&b, 0) | 4095) + 1;
	struct hca_send_wr reg = { .token = 2,
				   .opcode = HCA_WR_REG_MR,
				   .access = HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE,
				   .bind_addr = page,
				   .bind_len = 4096,
				   .npages = 1,
				   .page_shift = 12,
				   .pages = &page },
			   wr = request(HCA_WR_RDMA_WRITE, 64), send = { .token = 3, .opcode = HCA_WR_SEND_WITH_INV };
	struct side other = b, peer = a;
	bool early, ok;

	qp_make(&other, HCA_QPT_RC);
	qp_make(&peer, HCA_QPT_RC);
	if (move(&other, &peer, 5, PSN) || move(&peer, &other, 5, PSN) || hca_mr_alloc(b.ctx, b.pdn, 1, &reg.reg_key))
		return false;
	hca_soft_post_send(b.wq, &reg);
	recv_at(other.wq, 8192, 64, 4);
	run();
	ok = is_next(&b, 2, 0);
	late_side = &b;
	wr.remote_addr = page;
	wr.rkey = send.imm = reg.reg_key;
	hca_soft_post_send(a.wq, &wr);
	step(100);
	hca_soft_post_send(peer.wq, &send);
	step(100);
	early = !late_count || !is_quiet(&b);
	late_end();
	run();
	ok &= !early && is_next(&b, 4, 0) && !memcmp((u8 *)(uintptr_t)page, a.mem, 64);
	hca_soft_wq_destroy(other.wq);
	hca_soft_wq_destroy(peer.wq);
	return ok;
}

/*
 * The memory is deregistered, and written when the response of that may be sent (uv_dereg_mr()), while a READ of it is
 * executed.
 */
static bool read_of_deregistered_memory(void)
{
	u64 until;
	u32 i;

	memset(b.mem, 0x77, 512);
	late_side = &b;
	post(HCA_WR_RDMA_READ, 0, 512, 1);
	step(100);
	until = late_count ? hca_ctx_accesses(b.ctx, b.lkey) : 0;
	if (!late_count || hca_mr_dereg(b.ctx, b.lkey))
		return false;
	if (!hca_ctx_moved(b.ctx, until))
		late_end();
	memset(b.mem, 0xee, 512);
	late_end();
	run();
	for (i = 0; i < 512 && a.mem[i] != 0xee; i++)
		;
	return i == 512;
}

static const struct rule rules[] = {
	{ "9.7.4.1.4 the response to a READ is sent before the NAK of a later WRITE", HCA_QPT_RC, read_then_bad_write },
	{ "9.7.4.1.4 and before the NAK of a later SEND that is too long", HCA_QPT_RC, read_then_long_send },
	{ "9.7.4.1.4 and before the NAK of a later READ", HCA_QPT_RC, read_then_bad_read },
	{ "9.7.4.1.4 the response to an atomic is sent before the NAK of a later WRITE", HCA_QPT_RC,
	  atomic_then_bad_write },
	{ "9.7.4.1.4 and before the NAK of a WRITE to unmapped memory", HCA_QPT_RC, read_then_unmapped_write },
	{ "9.9.3 requests after a failed one are not executed", HCA_QPT_RC, requests_after_a_failed_one },
	{ "9.9.3 the NAK of a WRITE to unmapped memory has its PSN", HCA_QPT_RC, write_unmapped },
	{ "9.9.3 a receive fails, earlier receives complete", HCA_QPT_RC, recv_unmapped },
	{ "9.9.3 a receive that fails in the middle of its message", HCA_QPT_RC, recv_unmapped_in_part },
	{ "10.2.9 receives of a shared queue are returned when one fails", HCA_QPT_RC, srq_recv_unmapped },
	{ "9.9.2 a READ into unmapped memory fails, the peer QP does not", HCA_QPT_RC, read_into_unmapped },
	{ "9.9.2 an atomic into unmapped memory fails", HCA_QPT_RC, atomic_into_unmapped },
	{ "9.9.3 an atomic on unmapped memory has no response", HCA_QPT_RC, atomic_on_unmapped },
	{ "9.9.2 a SEND from unmapped memory fails, the peer QP does not", HCA_QPT_RC, send_from_unmapped },
	{ "9.9.3 a READ of unmapped memory", HCA_QPT_RC, read_from_unmapped },
	{ "9.9.3 a receive outside its region is a protection error, no length error", HCA_QPT_RC,
	  recv_outside_its_region },
	{ "9.7.5.1.3 a duplicate before the ACK delay, of a WRITE whose memory is late: no RNR NAK", HCA_QPT_RC,
	  late_within_ack_delay },
	{ "9.7.5.2.8 a duplicate after it: RNR NAK", HCA_QPT_RC, late_after_ack_delay },
	{ "9.7.5.2.8 not without RNR retries, which it would exceed", HCA_QPT_RC, late_without_rnr_retries },
	{ "9.7.6.1.3 then a repeated ACK counts no retry", HCA_QPT_RC, late_for_long },
	{ "9.7.5.2.8 other late writes of the process, 9 MB: no RNR NAK", HCA_QPT_RC, full_of_other_moves },
	{ "9.7.5.2.8 36 MB: RNR NAK", HCA_QPT_RC, overfull_of_other_moves },
	{ "9.7.5.2.8 36 MB, without RNR retries: none", HCA_QPT_RC, overfull_without_rnr_retries },
	{ "9.7.6.1.3 a repeated ACK then counts no retry", HCA_QPT_RC, overfull_for_long },
	{ "9.7.5.2.8 progress reloads the RNR counter", HCA_QPT_RC, rnr_counter_reloads },
	{ "9.7.5.2.8 RNR retry counter exceeded", HCA_QPT_RC, rnr_counter_ends },
	{ "10.3.1.5 SQD: lost packets are retransmitted", HCA_QPT_RC, sqd_retransmits },
	{ "10.3.1.5 SQD: drained when all requests are acknowledged", HCA_QPT_RC, sqd_not_drained_early },
	{ "10.3.1.5 SQD: drained after an RNR NAK", HCA_QPT_RC, sqd_rnr },
	{ "11.2.5.2 no READ from a QP without initiator depth", HCA_QPT_RC, read_without_initiator_depth },
	{ "11.2.5.2 no atomic either", HCA_QPT_RC, atomic_without_initiator_depth },
	{ "9.7.4.1.2 no READ for a QP without responder resources", HCA_QPT_RC, read_without_resources },
	{ "9.7.4.1.2 no atomic either", HCA_QPT_RC, atomic_without_resources },
	{ "10.6.5 local operations are executed once", HCA_QPT_RC, local_operations_once },
	{ "10.6.5.1 LOCAL_INV is executed after all earlier requests complete", HCA_QPT_RC, local_inv_waits },
	{ "10.8.3 REG_MR and LOCAL_INV are executed before the next request uses the key", HCA_QPT_RC,
	  local_operations_decide_on_the_next_request },
	{ "10.8.3.3 a fenced request sends data of the READ before it", HCA_QPT_RC, fence_sends_data_of_the_read },
	{ "10.8.3.3 also when the data are not committed yet", HCA_QPT_RC, fence_before_the_commit },
	{ "10.8.3.3 and when the memory of the response is late", HCA_QPT_RC, fence_waits_for_late_memory },
	{ "10.8.3.3 and it is not sent if the READ's data cannot be written", HCA_QPT_RC, fence_after_a_failed_read },
	{ "10.8.3.3 a fenced READ begins after the READ before it", HCA_QPT_RC, fenced_read },
	{ "10.8.3.3 a fenced BIND_MW, when the data of the READ are in memory", HCA_QPT_RC, fenced_bind_waits },
	{ "10.6.3 a READ returns no data that were written after the memory was deregistered", HCA_QPT_RC,
	  read_of_deregistered_memory },
	{ "10.6.7 no WRITE through a window changes memory after it was freed", HCA_QPT_RC,
	  window_freed_before_the_commit },
	{ "10.6.7 a window is unbound when the data of WRITEs through it are in memory", HCA_QPT_RC,
	  unbind_waits_for_late_memory },
	{ "10.6.5 SEND with Invalidate completes when the data of WRITEs to the region are in memory", HCA_QPT_RC,
	  send_with_inv_waits_for_late_memory },
};

int main(void)
{
	run_rules(100, rules, ARRAY_SIZE(rules), WIRE_LINK_IB);
	row(900, "no packet or buffer is left", !wire_packet_live());
	return rows_end();
}

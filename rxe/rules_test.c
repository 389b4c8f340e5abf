// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rules of requester and responder (IBTA volume 1, 9.7, 9.8), one row per clause: statuses, NAKs and counters of both
 * sides.
 */
#include "rxe/request.h"
#include "rxe/rxe_fixture.h"

#define PSN 1000

static struct hca_qp *qp_of(const struct side *s)
{
	return hca_qp_lookup(s->hca, s->qpn);
}

static u64 address(const struct side *s, u32 off)
{
	return (u64)(uintptr_t)(s->mem + off);
}

/* @n bytes at @off of both sides' memory. */
static struct hca_send_wr request_at(u8 opcode, u32 off, u32 n, u64 token)
{
	struct hca_send_wr wr = request(opcode, n);

	wr.token = token;
	wr.remote_addr += off;
	wr.sge[0].addr += off;
	return wr;
}

static void post(u8 opcode, u32 off, u32 n, u64 token)
{
	struct hca_send_wr wr = request_at(opcode, off, n, token);

	hca_soft_post_send(a.wq, &wr);
}

static void post_bad_write(u64 token)
{
	struct hca_send_wr wr = request_at(HCA_WR_RDMA_WRITE, 0, 64, token);

	wr.rkey ^= 0x5500;
	hca_soft_post_send(a.wq, &wr);
}

static void recv_at(struct hca_soft_wq *wq, u32 off, u32 n, u64 token)
{
	struct hca_recv_wr wr = { .token = token, .num_sge = 1, .sge = { { address(&b, off), n, b.lkey } } };

	hca_soft_post_recv(wq, &wr);
}

static void unmap(const struct side *s, u32 off, u32 n)
{
	unmapped = address(s, off);
	unmapped_len = n;
}

static void step(u64 us)
{
	loop_run_idle(loop, loop_now(loop).ns + us * NSEC_PER_USEC);
}

/* The next completion of @s has @token and @status. */
static bool is_next(struct side *s, u64 token, u8 status)
{
	struct hca_cqe cqe = next(s);

	return cqe.status == status && cqe.token == token;
}

static bool is_quiet(struct side *s)
{
	return next(s).status == 255;
}

/* Number of ACKs or NAKs with @syndrome and @psn sent by @from. */
static u32 acks(const struct side *from, u8 syndrome, u32 psn)
{
	u32 i, n = 0;

	for (i = 0; i < min(sent, (u64)ARRAY_SIZE(passed)); i++)
		n += passed[i].from == from && passed[i].opcode == WIRE_RC_ACK && passed[i].syndrome == syndrome &&
		     passed[i].psn == psn;
	return n;
}

static u32 opcodes(const struct side *from, u8 opcode)
{
	u32 i, n = 0;

	for (i = 0; i < min(sent, (u64)ARRAY_SIZE(passed)); i++)
		n += passed[i].from == from && passed[i].opcode == opcode;
	return n;
}

#define NAK(code) (WIRE_AETH_NAK | (code))

/* A packet of the queue pair of @s without a work request. */
static struct wire_packet *forge(struct side *s, u8 opcode, u32 psn, u32 len)
{
	const struct hca_qp *qp = qp_of(s);
	struct wire_packet *p =
		rxe_frame(qp_of(s), &qp->attr.av, 0xffff, opcode, qp->attr.dest_qpn, psn, len, false, false);

	if (len) {
		struct wire_buf *buf = wire_buf_alloc(len);

		memset(buf->data, 0x5a, len);
		rxe_payload(p, buf, 0, len);
		wire_buf_put(buf);
	}
	return p;
}

static void forge_ack(struct side *s, u8 syndrome, u32 psn)
{
	struct wire_packet *p = forge(s, WIRE_RC_ACK, psn, 0);

	wire_aeth_fill(wire_packet_aeth(p), syndrome, 0);
	wire_send(&s->port, p);
}

static void forge_read(struct side *s, u32 psn, u32 off, u32 len)
{
	struct wire_packet *p = forge(s, WIRE_RC_READ_REQUEST, psn, 0);

	*(struct wire_reth *)wire_packet_reth(p) = (struct wire_reth){
		.va = cpu_to_be64(address(&b, off)),
		.rkey = cpu_to_be32(b.rkey),
		.dmalen = cpu_to_be32(len),
	};
	wire_send(&s->port, p);
}

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

static bool requests_behind_a_failed_one(void)
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
	struct hca_srq_attr attr = { .max_wr = 8, .max_sge = 1 };
	struct hca_qp_init init = { .type = HCA_QPT_RC,
				    .pdn = b.pdn,
				    .send_cqn = hca_soft_cq_number(b.cq),
				    .recv_cqn = hca_soft_cq_number(b.cq),
				    .max_send_wr = 8,
				    .max_send_sge = 1 };
	struct hca_soft_wq *srq;
	bool ok;

	hca_soft_srq_create(b.ctx, b.pdn, &attr, &srq);
	init.srqn = hca_soft_wq_number(srq);
	hca_soft_wq_destroy(b.wq);
	hca_soft_qp_create(b.ctx, &init, &b.wq);
	b.qpn = hca_soft_wq_number(b.wq);
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
	hca_soft_wq_destroy(b.wq);
	hca_soft_wq_destroy(srq);
	qp_make(&b, HCA_QPT_RC);
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

static bool late_within_ack_delay(void)
{
	return write_into_late(0, 14, 3) && !hca_counter(b.hca, 1, HCA_CNT_SEND_RNR_ERR);
}

static bool late_after_ack_delay(void)
{
	return write_into_late(3, 8, 20) && hca_counter(b.hca, 1, HCA_CNT_SEND_RNR_ERR);
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

static bool fence_sends_what_the_read_brings(void)
{
	struct hca_send_wr wr = request_at(HCA_WR_RDMA_WRITE, 0, 512, 2);

	memset(b.mem, 0x77, 512);
	memset(a.mem, 0x11, 512);
	wr.flags = HCA_SEND_SIGNALED | HCA_SEND_FENCE;
	wr.remote_addr += 4096;
	post(HCA_WR_RDMA_READ, 0, 512, 1); /* both are posted when the requester runs */
	hca_soft_post_send(a.wq, &wr);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, 0) && !memcmp(b.mem + 4096, b.mem, 512) && b.mem[0] == 0x77;
}

/* Duplicates */

static bool duplicate_read_of_a_part(void)
{
	u64 from;

	post(HCA_WR_RDMA_READ, 0, 4 * 4096, 1);
	run();
	from = sent;
	forge_read(&a, PSN + 1, 4096, 2 * 4096);
	run();
	return is_next(&a, 1, 0) && sent == from + 3 && passed[from + 1].opcode == WIRE_RC_READ_RESP_FIRST &&
	       passed[from + 1].psn == PSN + 1 && passed[from + 2].opcode == WIRE_RC_READ_RESP_LAST;
}

static bool duplicate_read_that_is_shorter(void)
{
	u64 from;

	post(HCA_WR_RDMA_READ, 0, 4 * 4096, 1);
	run();
	from = sent;
	forge_read(&a, PSN + 2, 8192, 100);
	run();
	return sent == from + 2 && passed[from + 1].opcode == WIRE_RC_READ_RESP_ONLY && passed[from + 1].len == 100;
}

static bool duplicate_read_that_is_longer(void)
{
	u64 from;

	post(HCA_WR_RDMA_READ, 0, 4096, 1);
	run();
	from = sent;
	forge_read(&a, PSN, 0, 65536);
	run();
	return sent == from + 2 && passed[from + 1].opcode == WIRE_RC_READ_RESP_ONLY && passed[from + 1].len == 4096;
}

static bool duplicate_read_deregistered(void)
{
	post(HCA_WR_RDMA_READ, 0, 4096, 1);
	run();
	hca_mr_dereg(b.ctx, b.lkey);
	forge_read(&a, PSN, 0, 4096);
	run();
	return is_next(&a, 1, 0) && qp_of(&b)->state == HCA_QPS_RTS &&
	       !hca_counter(b.hca, 1, HCA_CNT_REMOTE_ACCESS_ERR);
}

static bool duplicate_atomic(void)
{
	u64 v = 40, now;
	struct hca_send_wr wr = request_at(HCA_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 1);
	struct wire_packet *p;

	memcpy(b.mem, &v, 8);
	wr.compare_add = 2;
	hca_soft_post_send(a.wq, &wr);
	run();
	p = forge(&a, WIRE_RC_FETCH_ADD, PSN, 0);
	*(struct wire_atomic_eth *)wire_packet_atomic_eth(p) = (struct wire_atomic_eth){
		.va = cpu_to_be64(address(&b, 0)), .rkey = cpu_to_be32(b.rkey), .swap_add = cpu_to_be64(2)
	};
	wire_send(&a.port, p);
	run();
	memcpy(&now, b.mem, 8);
	return is_next(&a, 1, 0) && now == 42 && opcodes(&b, WIRE_RC_ATOMIC_ACK) == 2;
}

static bool duplicate_send(void)
{
	recv_at(b.wq, 0, 64, 1);
	recv_at(b.wq, 0, 64, 2);
	post(HCA_WR_SEND, 0, 64, 11);
	run();
	wire_send(&a.port, forge(&a, WIRE_RC_SEND_ONLY, PSN, 64));
	run();
	return is_next(&b, 1, 0) && is_quiet(&b) && acks(&b, 31, PSN) == 2 &&
	       hca_counter(b.hca, 1, HCA_CNT_DUPLICATE_REQUEST) == 1;
}

/* One NAK for a missing PSN, however many packets follow it. */
static bool nak_once(void)
{
	u32 i;

	for (i = 1; i < 6; i++)
		wire_send(&a.port, forge(&a, WIRE_RC_SEND_ONLY, PSN + i, 64));
	run();
	return acks(&b, NAK(WIRE_NAK_PSN_SEQ), PSN) == 1 && hca_counter(b.hca, 1, HCA_CNT_OUT_OF_SEQUENCE) == 1;
}

/* Invalid responses */

static bool ack_within_a_read(void)
{
	drop_from = drop_to = 1;
	post(HCA_WR_RDMA_READ, 0, 4 * 4096, 1);
	step(1);
	forge_ack(&b, 31, PSN + 1);
	run();
	return is_next(&a, 1, 0);
}

static bool reserved_syndrome(void)
{
	drop_opcode = WIRE_RC_ACK;
	post(HCA_WR_RDMA_WRITE, 0, 64, 1);
	step(1);
	drop_opcode = 0;
	forge_ack(&b, WIRE_AETH_RESERVED | WIRE_NAK_REMOTE_ACCESS, PSN);
	run();
	return is_next(&a, 1, 0) && hca_counter(a.hca, 1, HCA_CNT_BAD_PACKET) == 1;
}

static bool reserved_nak(void)
{
	drop_opcode = WIRE_RC_ACK;
	post(HCA_WR_RDMA_WRITE, 0, 64, 1);
	step(1);
	drop_opcode = 0;
	forge_ack(&b, NAK(9), PSN);
	run();
	return is_next(&a, 1, HCA_WC_BAD_RESP_ERR);
}

static bool ghost_ack(void)
{
	forge_ack(&b, 31, PSN);
	forge_ack(&b, NAK(WIRE_NAK_REMOTE_OP), PSN + 5);
	run();
	post(HCA_WR_RDMA_WRITE, 0, 64, 1);
	run();
	return is_next(&a, 1, 0) && hca_counter(a.hca, 1, HCA_CNT_GHOST) == 2;
}

static bool read_response_of_wrong_length(void)
{
	struct wire_packet *p;

	drop_from = drop_to = 1;
	post(HCA_WR_RDMA_READ, 0, 64, 1);
	step(1);
	p = forge(&b, WIRE_RC_READ_RESP_ONLY, PSN, 65);
	wire_aeth_fill(wire_packet_aeth(p), 31, 1);
	wire_send(&b.port, p);
	run();
	return is_next(&a, 1, HCA_WC_BAD_RESP_ERR);
}

/* Invalid requests */

static bool middle_without_first(void)
{
	wire_send(&a.port, forge(&a, WIRE_RC_SEND_MIDDLE, PSN, 4096));
	run();
	return qp_of(&b)->state == HCA_QPS_ERR && acks(&b, NAK(WIRE_NAK_INVALID_REQUEST), PSN) == 1 &&
	       b.events[HCA_EVENT_QP_REQ_ERR] == 1;
}

static bool first_that_is_short(void)
{
	recv_at(b.wq, 0, 8192, 1);
	wire_send(&a.port, forge(&a, WIRE_RC_SEND_FIRST, PSN, 100));
	run();
	return acks(&b, NAK(WIRE_NAK_INVALID_REQUEST), PSN) == 1;
}

static bool write_in_a_send(void)
{
	recv_at(b.wq, 0, 8192, 1);
	wire_send(&a.port, forge(&a, WIRE_RC_SEND_FIRST, PSN, 4096));
	wire_send(&a.port, forge(&a, WIRE_RC_WRITE_LAST, PSN + 1, 100));
	run();
	return is_next(&b, 1, HCA_WC_LOC_QP_OP_ERR) && acks(&b, NAK(WIRE_NAK_INVALID_REQUEST), PSN + 1) == 1;
}

/* UC */

static bool uc_short_receive(void)
{
	u32 i, ok = 0;

	for (i = 0; i < 40; i++) {
		recv_at(b.wq, i * 4096, 100, i);
		memset(a.mem + i * 4096, 1 + (int)i, 4096);
		post(HCA_WR_SEND, i * 4096, 900, i);
	}
	run();
	for (i = 0; i < 40; i++)
		ok += is_next(&b, i, HCA_WC_LOC_LEN_ERR) && (!b.mem[i * 4096] || b.mem[i * 4096] == 1 + i);
	return ok == 40 && qp_of(&b)->state == HCA_QPS_RTS;
}

/* A middle packet with a wrong length: its message is dropped and does not complete. */
static bool uc_wrong_length(void)
{
	recv_at(b.wq, 0, 20000, 1);
	wire_send(&a.port, forge(&a, WIRE_UC_SEND_FIRST, PSN, 4096));
	wire_send(&a.port, forge(&a, WIRE_UC_SEND_MIDDLE, PSN + 1, 100));
	wire_send(&a.port, forge(&a, WIRE_UC_SEND_LAST, PSN + 2, 100));
	run();
	if (!is_quiet(&b))
		return false;
	wire_send(&a.port, forge(&a, WIRE_UC_SEND_ONLY, PSN + 3, 100));
	run();
	return is_next(&b, 1, 0) && is_quiet(&b);
}

static bool uc_missing_psn(void)
{
	recv_at(b.wq, 0, 20000, 1);
	wire_send(&a.port, forge(&a, WIRE_UC_SEND_FIRST, PSN, 4096));
	wire_send(&a.port, forge(&a, WIRE_UC_SEND_LAST, PSN + 2, 100));
	wire_send(&a.port, forge(&a, WIRE_UC_SEND_ONLY, PSN + 3, 100));
	run();
	return next(&b).byte_len == 100 && is_quiet(&b);
}

static bool uc_bad_write(void)
{
	post_bad_write(1);
	post(HCA_WR_RDMA_WRITE, 0, 64, 2);
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, 0) && !memcmp(a.mem, b.mem, 64) && qp_of(&b)->state == HCA_QPS_RTS &&
	       hca_counter(b.hca, 1, HCA_CNT_REMOTE_ACCESS_ERR) == 1;
}

static bool uc_recv_unmapped(void)
{
	unmap(&b, 4096, 100);
	recv_at(b.wq, 0, 100, 1);
	recv_at(b.wq, 4096, 100, 2);
	post(HCA_WR_SEND, 0, 64, 11);
	post(HCA_WR_SEND, 0, 64, 12);
	run();
	return is_next(&a, 11, 0) && is_next(&a, 12, 0) && is_next(&b, 1, 0) && is_next(&b, 2, HCA_WC_LOC_PROT_ERR) &&
	       qp_of(&b)->state == HCA_QPS_ERR && b.events[HCA_EVENT_QP_FATAL] == 1;
}

/* P_Keys */

static bool pkey_violation(void)
{
	qp_of(&a)->attr.pkey_index = 1; /* 0x8001 */
	recv_at(b.wq, 0, 200, 7);
	post(HCA_WR_SEND, 0, 64, 1);
	step(1);
	return is_quiet(&b) && b.port.attr.pkey_violations == 1 && !b.port.attr.qkey_violations &&
	       hca_counter(b.hca, 1, HCA_CNT_PKEY_MISMATCH) == 1;
}

static bool ud_limited_members(void)
{
	a.port.attr.pkey[0] = b.port.attr.pkey[0] = 0x7fff;
	recv_at(b.wq, 0, 200, 7);
	post(HCA_WR_SEND, 0, 64, 1);
	run();
	return is_next(&a, 1, 0) && is_quiet(&b) && b.port.attr.pkey_violations == 1;
}

static bool ud_recv_unmapped(void)
{
	unmap(&b, 4096, 200);
	recv_at(b.wq, 0, 200, 1);
	recv_at(b.wq, 4096, 200, 2);
	recv_at(b.wq, 0, 200, 3);
	post(HCA_WR_SEND, 0, 64, 11);
	post(HCA_WR_SEND, 0, 64, 12);
	run();
	return is_next(&b, 1, 0) && is_next(&b, 2, HCA_WC_LOC_PROT_ERR) && is_next(&b, 3, HCA_WC_WR_FLUSH_ERR);
}

/* Ethernet: out-of-order receive buffer */

static bool read_ooo_with_a_bad_key(void)
{
	struct hca_send_wr wr = request_at(HCA_WR_RDMA_READ, 0, 4 * 4096, 1);

	wr.num_sge = 2;
	wr.sge[0].length = 4096 + 100;
	wr.sge[1] = (struct hca_sge){ address(&a, 65536), 4 * 4096 - 4196, a.lkey ^ 0x5500 };
	drop_from = drop_to = 2; /* the first response: the others are out of order */
	hca_soft_post_send(a.wq, &wr);
	run();
	return is_next(&a, 1, HCA_WC_LOC_PROT_ERR);
}

/* Packets after an RNR NAK are retransmitted with the request: a PSN sequence error NAK would end the RNR wait. */
static bool rnr_before_missing_psn(void)
{
	u32 i;

	for (i = 3; i; i--)
		wire_send(&a.port, forge(&a, WIRE_RC_SEND_ONLY, PSN + i, 64));
	for (i = 0; i < 4; i++)
		wire_send(&a.port, forge(&a, WIRE_RC_SEND_ONLY, PSN + i, 64));
	run();
	return acks(&b, WIRE_AETH_RNR_NAK | 1, PSN) == 1 && acks(&b, NAK(WIRE_NAK_PSN_SEQ), PSN) == 0;
}

struct rule {
	const char *what;
	enum hca_qp_type type;
	bool (*ok)(void);
};

static const struct rule rules[] = {
	{ "9.7.4.1.4 the response to a READ is sent before the NAK of a later WRITE", HCA_QPT_RC, read_then_bad_write },
	{ "9.7.4.1.4 and before the NAK of a later SEND that is too long", HCA_QPT_RC, read_then_long_send },
	{ "9.7.4.1.4 and before the NAK of a later READ", HCA_QPT_RC, read_then_bad_read },
	{ "9.7.4.1.4 the response to an atomic is sent before the NAK of a later WRITE", HCA_QPT_RC,
	  atomic_then_bad_write },
	{ "9.7.4.1.4 and before the NAK of a WRITE to unmapped memory", HCA_QPT_RC, read_then_unmapped_write },
	{ "9.9.3 requests after a failed one are not executed", HCA_QPT_RC, requests_behind_a_failed_one },
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
	{ "10.8.3.3 a fenced request sends data of the READ before it", HCA_QPT_RC, fence_sends_what_the_read_brings },
	{ "9.7.5.1.5 a duplicate READ of a part has a response of its own", HCA_QPT_RC, duplicate_read_of_a_part },
	{ "9.7.5.1.5 a shorter duplicate READ gets a shorter response", HCA_QPT_RC, duplicate_read_that_is_shorter },
	{ "9.7.5.1.5 a longer duplicate READ gets the original length", HCA_QPT_RC, duplicate_read_that_is_longer },
	{ "9.7.5.1.5 a duplicate READ of a deregistered region is ignored", HCA_QPT_RC, duplicate_read_deregistered },
	{ "9.7.5.1.5 a duplicate atomic is replayed", HCA_QPT_RC, duplicate_atomic },
	{ "9.7.5.1.2 a duplicate SEND is acknowledged", HCA_QPT_RC, duplicate_send },
	{ "9.7.5.1.2 a missing PSN gets one NAK", HCA_QPT_RC, nak_once },
	{ "9.7.5.1.1 an ACK within a READ does not replace its response", HCA_QPT_RC, ack_within_a_read },
	{ "9.3.5 a reserved syndrome is dropped", HCA_QPT_RC, reserved_syndrome },
	{ "9.9.2 a reserved NAK code is a bad response", HCA_QPT_RC, reserved_nak },
	{ "9.7.5.1.1 ACKs of what was not sent are ghosts", HCA_QPT_RC, ghost_ack },
	{ "9.9.2 a response of a wrong length", HCA_QPT_RC, read_response_of_wrong_length },
	{ "9.7.4.1.2 a middle packet without a first one", HCA_QPT_RC, middle_without_first },
	{ "9.7.4.1.6 a first packet shorter than the MTU", HCA_QPT_RC, first_that_is_short },
	{ "9.7.4.1.2 the end of a WRITE in a SEND", HCA_QPT_RC, write_in_a_send },
	{ "9.8 UC: a message longer than its receive", HCA_QPT_UC, uc_short_receive },
	{ "9.8 UC: a packet of a wrong length drops its message", HCA_QPT_UC, uc_wrong_length },
	{ "9.8 UC: a missing PSN drops its message, the next message uses the receive", HCA_QPT_UC, uc_missing_psn },
	{ "9.8 UC: a WRITE without access right is dropped", HCA_QPT_UC, uc_bad_write },
	{ "9.9.3 UC: a receive into unmapped memory", HCA_QPT_UC, uc_recv_unmapped },
	{ "10.9.4 RC: another P_Key is a violation", HCA_QPT_RC, pkey_violation },
	{ "10.9.4 UC: it is, too", HCA_QPT_UC, pkey_violation },
	{ "10.9.4 UD: it is, too", HCA_QPT_UD, pkey_violation },
	{ "10.9.3 UD: two limited members do not talk", HCA_QPT_UD, ud_limited_members },
	{ "9.9.3 UD: a receive into unmapped memory", HCA_QPT_UD, ud_recv_unmapped },
};

static const struct rule ethernet_rules[] = {
	{ "9.7.5.1.3 no PSN sequence error NAK after an RNR NAK", HCA_QPT_RC, rnr_before_missing_psn },
	{ "9.9.2 an out-of-order READ response with a bad L_Key", HCA_QPT_RC, read_ooo_with_a_bad_key },
};

static void run_rules(int first, const struct rule *r, u32 n, u8 layer)
{
	link_layer = layer;
	for (; n; n--, r++) {
		start(r->type, 5, PSN);
		row(first++, r->what, r->ok());
		stop();
	}
}

int main(void)
{
	run_rules(100, rules, ARRAY_SIZE(rules), WIRE_LINK_IB);
	run_rules(300, ethernet_rules, ARRAY_SIZE(ethernet_rules), WIRE_LINK_ETHERNET);
	row(900, "no packet or buffer is left", !wire_packet_live());
	return rows_end();
}

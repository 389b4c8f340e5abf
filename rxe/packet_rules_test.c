// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rules of packets in requester and responder (IBTA volume 1, 9.7, 9.8, 10.9), one row per clause: duplicates, missing
 * PSNs, invalid requests and responses, UC, P_Keys, out-of-order reception.
 */
#include "rxe/request.h"
#include "rxe/rules_fixture.h"

static u32 opcodes(const struct side *from, u8 opcode)
{
	u32 i, n = 0;

	for (i = 0; i < min(sent, (u64)ARRAY_SIZE(passed)); i++)
		n += passed[i].from == from && passed[i].opcode == opcode;
	return n;
}

/* A packet of the queue pair of @s without a work request. */
static struct wire_packet *forge(struct side *s, u8 opcode, u32 psn, u32 len)
{
	struct wire_packet *p = rxe_frame(qp_of(s), opcode, psn, len);

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

static int no_credits(struct wire_port *port, struct wire_packet *p)
{
	return -EAGAIN;
}

/* A peer sends duplicates and takes none of the ACKs: their number is limited. */
static bool acks_without_credits(void)
{
	static const struct wire_port_ops blocked = { .send = no_credits };
	const struct rxe *rxe = ((const struct rxe_qp *)qp_of(&b)->transport)->rxe;
	u32 i, waiting;

	recv_at(b.wq, 0, 64, 1);
	recv_at(b.wq, 0, 64, 2);
	post(HCA_WR_SEND, 0, 64, 11);
	run();
	b.port.ops = &blocked;
	for (i = 0; i < RXE_PENDING + 8; i++) {
		wire_send(&a.port, forge(&a, WIRE_RC_SEND_ONLY, PSN, 64));
		step(1);
	}
	waiting = rxe->npending[0];
	b.port.ops = &wire_ops;
	b.port.data.ready(b.port.data.ctx);
	post(HCA_WR_SEND, 0, 64, 12);
	run();
	return waiting == RXE_PENDING && !rxe->npending[0] && is_next(&a, 11, 0) && is_next(&a, 12, 0);
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

static bool ack_of_unsent_psn(void)
{
	forge_ack(&b, 31, PSN);
	forge_ack(&b, NAK(WIRE_NAK_REMOTE_OP), PSN + 5);
	run();
	post(HCA_WR_RDMA_WRITE, 0, 64, 1);
	run();
	return is_next(&a, 1, 0) && hca_counter(a.hca, 1, HCA_CNT_GHOST) == 2;
}

/* A request whose responses are forged: opcode and length of each. */
struct response {
	u8 opcode;
	u32 len;
};

static bool bad_response_to(u8 request, u32 length, const struct response *r)
{
	u32 psn = PSN;

	drop_from = drop_to = 1;
	post(request, 0, length, 1);
	step(1);
	for (; r->opcode; r++) {
		struct wire_packet *p = forge(&b, r->opcode, psn++, r->len);

		if (r->opcode != WIRE_RC_READ_RESP_MIDDLE)
			wire_aeth_fill(wire_packet_aeth(p), 31, 1);
		wire_send(&b.port, p);
	}
	step(1);
	return is_next(&a, 1, HCA_WC_BAD_RESP_ERR) && qp_of(&a)->state == HCA_QPS_ERR;
}

static bool bad_response(u32 length, const struct response *r)
{
	return bad_response_to(HCA_WR_RDMA_READ, length, r);
}

static bool read_response_of_wrong_length(void)
{
	return bad_response(64, (const struct response[]){ { WIRE_RC_READ_RESP_ONLY, 65 }, { 0 } });
}

static bool read_response_that_begins_in_the_middle(void)
{
	return bad_response(2 * 4096, (const struct response[]){ { WIRE_RC_READ_RESP_MIDDLE, 4096 }, { 0 } });
}

static bool read_response_that_begins_with_the_last(void)
{
	return bad_response(2 * 4096, (const struct response[]){ { WIRE_RC_READ_RESP_LAST, 4096 }, { 0 } });
}

static bool read_response_only_of_several(void)
{
	return bad_response(2 * 4096, (const struct response[]){ { WIRE_RC_READ_RESP_ONLY, 4096 }, { 0 } });
}

static bool read_response_first_of_one(void)
{
	return bad_response(4096, (const struct response[]){ { WIRE_RC_READ_RESP_FIRST, 4096 }, { 0 } });
}

static bool read_response_last_of_one(void)
{
	return bad_response(4096, (const struct response[]){ { WIRE_RC_READ_RESP_LAST, 4096 }, { 0 } });
}

static bool read_response_that_begins_twice(void)
{
	return bad_response(3 * 4096, (const struct response[]){ { WIRE_RC_READ_RESP_FIRST, 4096 },
								 { WIRE_RC_READ_RESP_FIRST, 4096 },
								 { 0 } });
}

static bool read_response_that_ends_early(void)
{
	return bad_response(3 * 4096, (const struct response[]){ { WIRE_RC_READ_RESP_FIRST, 4096 },
								 { WIRE_RC_READ_RESP_LAST, 4096 },
								 { 0 } });
}

static bool read_response_that_does_not_end(void)
{
	return bad_response(2 * 4096, (const struct response[]){ { WIRE_RC_READ_RESP_FIRST, 4096 },
								 { WIRE_RC_READ_RESP_MIDDLE, 4096 },
								 { 0 } });
}

static bool read_response_with_a_short_packet(void)
{
	return bad_response(2 * 4096, (const struct response[]){ { WIRE_RC_READ_RESP_FIRST, 100 }, { 0 } });
}

static bool read_response_with_an_empty_last(void)
{
	return bad_response(
		2 * 4096,
		(const struct response[]){ { WIRE_RC_READ_RESP_FIRST, 4096 }, { WIRE_RC_READ_RESP_LAST, 0 }, { 0 } });
}

static bool read_response_to_an_atomic(void)
{
	return bad_response_to(HCA_WR_ATOMIC_FETCH_AND_ADD, 8,
			       (const struct response[]){ { WIRE_RC_READ_RESP_ONLY, 8 }, { 0 } });
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

/* A receive of more than 2^31 bytes, whose message has so many but for 4096. */
static bool message_that_is_too_long(void)
{
	struct hca_recv_wr wr = { .token = 1, .num_sge = 2 };
	u32 *off = &((struct rxe_qp *)qp_of(&b)->transport)->resp.recv_off;

	wr.sge[0] = wr.sge[1] = (struct hca_sge){ address(&b, 0), 0xf0000000, b.lkey };
	hca_soft_post_recv(b.wq, &wr);
	wire_send(&a.port, forge(&a, WIRE_RC_SEND_FIRST, PSN, 4096));
	step(1);
	if (*off != 4096)
		return false;
	*off = HCA_MESSAGE_MAX - 4000;
	wire_send(&a.port, forge(&a, WIRE_RC_SEND_MIDDLE, PSN + 1, 4096));
	run();
	return is_next(&b, 1, HCA_WC_LOC_LEN_ERR) && acks(&b, NAK(WIRE_NAK_INVALID_REQUEST), PSN + 1) == 1;
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

/* The message that follows at once is received from the first byte of the receive on. */
static bool uc_after_wrong_length(void)
{
	struct hca_cqe cqe;

	recv_at(b.wq, 0, 20000, 1);
	b.mem[4096] = 0x55;
	wire_send(&a.port, forge(&a, WIRE_UC_SEND_FIRST, PSN, 4096));
	wire_send(&a.port, forge(&a, WIRE_UC_SEND_MIDDLE, PSN + 1, 100));
	wire_send(&a.port, forge(&a, WIRE_UC_SEND_ONLY, PSN + 2, 100));
	run();
	cqe = next(&b);
	return cqe.token == 1 && !cqe.status && cqe.byte_len == 100 && b.mem[4096] == 0x55 && is_quiet(&b);
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

/* Empty datagrams behind one whose data are late, to a shared queue that is refilled: their number is limited. */
static bool ud_completions_that_wait(void)
{
	struct hca_soft_wq *srq = shared_queue(HCA_QPT_UD);
	u32 i, waiting;
	bool ok;

	if (move(&b, &a, 5, PSN))
		return false;
	late_side = &b;
	for (i = 0; i < RXE_COMPS + 8; i++) {
		recv_at(srq, 0, 200, i);
		post(HCA_WR_SEND, 0, i ? 0 : 64, i);
		step(1);
		next(&a);
	}
	waiting = ((const struct rxe_qp *)qp_of(&b)->transport)->resp.ncomps;
	ok = is_quiet(&b);
	late_end();
	run();
	ok &= is_next(&b, 0, 0) && is_next(&b, 1, 0);
	shared_queue_end(srq, HCA_QPT_UD);
	return ok && waiting == RXE_COMPS && hca_counter(b.hca, 1, HCA_CNT_UD_DROPPED) == 8;
}

/* The responses behind a missing one, more than there are retries, report the same loss. */
static u32 retries_behind_a_loss(void)
{
	struct hca_send_wr wr = request_at(HCA_WR_RDMA_READ, 0, 12 * 4096, 1);
	u32 i;

	drop_all = true; /* also what is retransmitted while these arrive */
	hca_soft_post_send(a.wq, &wr);
	loop_run_idle(loop, loop_now(loop).ns);
	for (i = 1; i <= 8; i++) {
		drop_all = false;
		wire_send(&b.port, forge(&b, WIRE_RC_READ_RESP_MIDDLE, PSN + i, 4096));
		drop_all = true;
		loop_run_idle(loop, loop_now(loop).ns);
	}
	drop_all = false;
	return (u32)hca_counter(a.hca, 1, HCA_CNT_COMPLETER_RETRY);
}

static bool read_flight_behind_a_loss(void)
{
	u32 counted = retries_behind_a_loss();

	run();
	return counted == 1 && is_next(&a, 1, 0);
}

/* The retransmitted READ was lost, too: the responses of the next flight report that. */
static bool read_flight_without_timeout(void)
{
	u32 counted;

	qp_of(&a)->attr.timeout = 0;
	counted = retries_behind_a_loss();
	wire_send(&b.port, forge(&b, WIRE_RC_READ_RESP_MIDDLE, PSN + 1, 4096));
	run();
	return counted == 1 && is_next(&a, 1, 0);
}

static u32 responses_lost;

static int lose_responses(struct wire_port *port, struct wire_packet *p)
{
	u8 opcode = wire_packet_bth(p)->opcode;

	if ((opcode != WIRE_RC_READ_RESP_ONLY && opcode != WIRE_RC_READ_RESP_FIRST) || !responses_lost)
		return wire_send(port, p);
	responses_lost--;
	wire_packet_free(p);
	return 0;
}

static bool without_timeout(void)
{
	bool ok;

	ack_timeout = 0;
	qp_remake(&a);
	qp_remake(&b);
	ok = !move(&a, &b, 5, PSN) && !move(&b, &a, 5, PSN);
	ack_timeout = 8;
	return ok;
}

/* A READ whose response is lost @n times, and WRITEs after it, without a local ACK timeout: only their ACKs tell it. */
static bool responses_lost_before_acks(u32 n, u32 length, u32 writes)
{
	static const struct wire_port_ops ops = { .send = lose_responses, .violation = wire_violation };
	u32 i;

	if (!without_timeout())
		return false;
	b.port.ops = &ops;
	responses_lost = n;
	post(HCA_WR_RDMA_READ, 0, length, 1);
	for (i = 0; i < writes; i++)
		post(HCA_WR_RDMA_WRITE, 65536, 64, 2 + i);
	run();
	b.port.ops = &wire_ops;
	for (i = 0; i <= writes; i++)
		if (!is_next(&a, 1 + i, 0))
			return false;
	return true;
}

static bool response_lost_without_timeout(void)
{
	return responses_lost_before_acks(1, 4096, 1);
}

static bool response_lost_twice_without_timeout(void)
{
	return responses_lost_before_acks(2, 4096, 1);
}

static bool response_lost_before_many_acks(void)
{
	return responses_lost_before_acks(2, 4096, 8);
}

static bool first_response_lost_twice_without_timeout(void)
{
	return responses_lost_before_acks(2, 4 * 4096, 1);
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

/* One burst with the ACK of a SEND and the peer's answer: a program polls them in that order. */
static bool ack_before_answer(void)
{
	struct hca_recv_wr wr = { .token = 2, .num_sge = 1, .sge = { { address(&a, 4096), 64, a.lkey } } };

	hca_soft_post_recv(a.wq, &wr);
	drop_all = true;
	post(HCA_WR_SEND, 0, 64, 1);
	step(1);
	drop_all = false;
	forge_ack(&b, 31, PSN);
	wire_send(&b.port, forge(&b, WIRE_RC_SEND_ONLY, PSN, 64));
	run();
	return is_next(&a, 1, 0) && is_next(&a, 2, 0) && is_quiet(&a);
}

static const struct rule rules[] = {
	{ "9.7.5.1.5 a duplicate READ of a part has a response of its own", HCA_QPT_RC, duplicate_read_of_a_part },
	{ "9.7.5.1.5 a shorter duplicate READ gets a shorter response", HCA_QPT_RC, duplicate_read_that_is_shorter },
	{ "9.7.5.1.5 a longer duplicate READ gets the original length", HCA_QPT_RC, duplicate_read_that_is_longer },
	{ "9.7.5.1.5 a duplicate READ of a deregistered region is ignored", HCA_QPT_RC, duplicate_read_deregistered },
	{ "9.7.5.1.5 a duplicate atomic is replayed", HCA_QPT_RC, duplicate_atomic },
	{ "9.7.5.1.2 a duplicate SEND is acknowledged", HCA_QPT_RC, duplicate_send },
	{ "7.9 ACKs that wait for credits are limited", HCA_QPT_RC, acks_without_credits },
	{ "9.7.5.1.2 a missing PSN gets one NAK", HCA_QPT_RC, nak_once },
	{ "9.7.5.1.1 an ACK within a READ does not replace its response", HCA_QPT_RC, ack_within_a_read },
	{ "9.3.5 a reserved syndrome is dropped", HCA_QPT_RC, reserved_syndrome },
	{ "9.9.2 a reserved NAK code is a bad response", HCA_QPT_RC, reserved_nak },
	{ "9.7.5.1.1 ACKs of what was not sent are ghosts", HCA_QPT_RC, ack_of_unsent_psn },
	{ "9.7.5.1 responses behind a missing one count one retry", HCA_QPT_RC, read_flight_behind_a_loss },
	{ "9.7.5.1 and without a local ACK timeout", HCA_QPT_RC, read_flight_without_timeout },
	{ "9.7.5.1.1 implied NAK without a local ACK timeout", HCA_QPT_RC, response_lost_without_timeout },
	{ "9.7.5.1.1 implied NAK of the retransmitted READ, too", HCA_QPT_RC, response_lost_twice_without_timeout },
	{ "9.7.5.1.1 implied NAKs of one flight count one retry", HCA_QPT_RC, response_lost_before_many_acks },
	{ "9.9.2 a response of a wrong length", HCA_QPT_RC, read_response_of_wrong_length },
	{ "9.9.2 a first response shorter than the MTU", HCA_QPT_RC, read_response_with_a_short_packet },
	{ "9.9.2 a last response without payload", HCA_QPT_RC, read_response_with_an_empty_last },
	{ "9.9.2 a READ response that begins with a middle packet", HCA_QPT_RC,
	  read_response_that_begins_in_the_middle },
	{ "9.9.2 or with the last packet", HCA_QPT_RC, read_response_that_begins_with_the_last },
	{ "9.9.2 only packet of a response of several", HCA_QPT_RC, read_response_only_of_several },
	{ "9.9.2 first packet of a response of one", HCA_QPT_RC, read_response_first_of_one },
	{ "9.9.2 last packet of a response of one", HCA_QPT_RC, read_response_last_of_one },
	{ "9.9.2 a READ response with two first packets", HCA_QPT_RC, read_response_that_begins_twice },
	{ "9.9.2 a last packet where a middle one is due", HCA_QPT_RC, read_response_that_ends_early },
	{ "9.9.2 a middle packet where the last one is due", HCA_QPT_RC, read_response_that_does_not_end },
	{ "9.9.2 a READ response to an atomic", HCA_QPT_RC, read_response_to_an_atomic },
	{ "9.7.4.1.2 a middle packet without a first one", HCA_QPT_RC, middle_without_first },
	{ "9.7.4.1.6 a first packet shorter than the MTU", HCA_QPT_RC, first_that_is_short },
	{ "9.7.4.1.6 a SEND of more than 2^31 bytes", HCA_QPT_RC, message_that_is_too_long },
	{ "9.7.4.1.2 the end of a WRITE in a SEND", HCA_QPT_RC, write_in_a_send },
	{ "an acknowledged SEND completes before the answer that follows", HCA_QPT_RC, ack_before_answer },
	{ "9.8 UC: a message longer than its receive", HCA_QPT_UC, uc_short_receive },
	{ "9.8 UC: a packet of a wrong length drops its message", HCA_QPT_UC, uc_wrong_length },
	{ "9.8 UC: the message after a dropped one", HCA_QPT_UC, uc_after_wrong_length },
	{ "9.8 UC: a missing PSN drops its message, the next message uses the receive", HCA_QPT_UC, uc_missing_psn },
	{ "9.8 UC: a WRITE without access right is dropped", HCA_QPT_UC, uc_bad_write },
	{ "9.9.3 UC: a receive into unmapped memory", HCA_QPT_UC, uc_recv_unmapped },
	{ "10.9.4 RC: another P_Key is a violation", HCA_QPT_RC, pkey_violation },
	{ "10.9.4 UC: it is, too", HCA_QPT_UC, pkey_violation },
	{ "10.9.4 UD: it is, too", HCA_QPT_UD, pkey_violation },
	{ "10.9.3 UD: two limited members do not talk", HCA_QPT_UD, ud_limited_members },
	{ "9.9.3 UD: a receive into unmapped memory", HCA_QPT_UD, ud_recv_unmapped },
	{ "10.7.3 UD: completions that wait for late memory are limited", HCA_QPT_UD, ud_completions_that_wait },
};

static const struct rule ethernet_rules[] = {
	{ "9.7.5.1.3 no PSN sequence error NAK after an RNR NAK", HCA_QPT_RC, rnr_before_missing_psn },
	{ "9.7.5.1.1 implied NAKs without a local ACK timeout", HCA_QPT_RC, response_lost_twice_without_timeout },
	{ "9.7.5.1.1 also of a READ of which a part is retransmitted", HCA_QPT_RC,
	  first_response_lost_twice_without_timeout },
	{ "9.9.2 an out-of-order READ response with a bad L_Key", HCA_QPT_RC, read_ooo_with_a_bad_key },
};

int main(void)
{
	run_rules(200, rules, ARRAY_SIZE(rules), WIRE_LINK_IB);
	run_rules(300, ethernet_rules, ARRAY_SIZE(ethernet_rules), WIRE_LINK_ETHERNET);
	row(900, "no packet or buffer is left", !wire_packet_live());
	return rows_end();
}

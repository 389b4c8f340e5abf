// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two HCAs back to back in virtual time, over a wire that drops, duplicates and reorders chosen packets: a row per
 * rule.
 */
#include "rxe/rxe_fixture.h"

static bool no_memory; /* for the first completions of a receiver */

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_realloc(void *p, size_t size)
{
	return no_memory && size == 64 * sizeof(struct hca_cqe) ? NULL : __real_realloc(p, size);
}

struct transfer {
	const char *what;
	enum hca_qp_type type;
	u8 opcode, mtu;
	u32 len, psn, drop_from, drop_to;
};

static const struct transfer transfers[] = {
	{ "zero-length SEND", HCA_QPT_RC, HCA_WR_SEND, 5, 0, 0, 0, 0 },
	{ "SEND of a byte", HCA_QPT_RC, HCA_WR_SEND, 5, 1, 0, 0, 0 },
	{ "SEND of an MTU", HCA_QPT_RC, HCA_WR_SEND, 1, 256, 0, 0, 0 },
	{ "SEND with immediate of many packets", HCA_QPT_RC, HCA_WR_SEND_WITH_IMM, 1, 5000, 0, 0, 0 },
	{ "PSNs wrap", HCA_QPT_RC, HCA_WR_SEND, 1, 5000, 0xfffff8, 0, 0 },
	{ "WRITE of a MiB", HCA_QPT_RC, HCA_WR_RDMA_WRITE, 5, SIZE, 0xffff80, 0, 0 },
	{ "WRITE with immediate", HCA_QPT_RC, HCA_WR_RDMA_WRITE_WITH_IMM, 3, 100001, 0, 0, 0 },
	{ "READ of a MiB", HCA_QPT_RC, HCA_WR_RDMA_READ, 5, SIZE, 0xffff80, 0, 0 },
	{ "READ of one byte", HCA_QPT_RC, HCA_WR_RDMA_READ, 5, 1, 0, 0, 0 },
	{ "the first packet is lost", HCA_QPT_RC, HCA_WR_SEND, 1, 5000, 0, 1, 1 },
	{ "a middle packet is lost", HCA_QPT_RC, HCA_WR_SEND, 1, 5000, 0xfffffa, 9, 9 },
	{ "the last packet is lost", HCA_QPT_RC, HCA_WR_SEND, 1, 5000, 0, 20, 20 },
	{ "the ACK is lost", HCA_QPT_RC, HCA_WR_SEND, 5, 100, 0, 2, 2 },
	{ "a WRITE loses many packets", HCA_QPT_RC, HCA_WR_RDMA_WRITE, 5, SIZE, 0, 50, 130 },
	{ "a READ request is lost", HCA_QPT_RC, HCA_WR_RDMA_READ, 5, 100000, 0, 1, 1 },
	{ "a READ response is lost", HCA_QPT_RC, HCA_WR_RDMA_READ, 5, 100000, 0, 9, 9 },
	{ "the last READ response is lost", HCA_QPT_RC, HCA_WR_RDMA_READ, 5, 100000, 0, 26, 26 },
	{ "UC send", HCA_QPT_UC, HCA_WR_SEND, 2, 3000, 0, 0, 0 },
	{ "UC write with immediate", HCA_QPT_UC, HCA_WR_RDMA_WRITE_WITH_IMM, 5, 70000, 0xfffffe, 0, 0 },
	{ "UD send", HCA_QPT_UD, HCA_WR_SEND, 5, 2000, 0, 0, 0 },
	{ "UD send with immediate", HCA_QPT_UD, HCA_WR_SEND_WITH_IMM, 5, 0, 0, 0, 0 },
};

static bool takes_recv(const struct transfer *t)
{
	return t->opcode != HCA_WR_RDMA_WRITE && t->opcode != HCA_WR_RDMA_READ;
}

static bool transfer_ok(const struct transfer *t)
{
	u32 grh = t->type == HCA_QPT_UD ? 40 : 0;
	struct hca_send_wr wr = request(t->opcode, t->len);
	struct hca_cqe s, r = { .status = 0 };
	bool same;

	drop_from = t->drop_from;
	drop_to = t->drop_to;
	if (takes_recv(t))
		post_recv(2 * SIZE);
	if (t->opcode == HCA_WR_RDMA_READ) {
		memcpy(b.mem, a.mem, t->len);
		wr.sge[0].addr += SIZE;
		memset(a.mem + SIZE, 0, SIZE);
	}
	hca_soft_post_send(a.wq, &wr);
	run();
	s = next(&a);
	if (takes_recv(t))
		r = next(&b);
	if (t->opcode == HCA_WR_RDMA_READ)
		same = !memcmp(a.mem + SIZE, b.mem, t->len);
	else
		same = !memcmp(a.mem, b.mem + grh, t->len);
	if (takes_recv(t)) {
		bool imm = t->opcode != HCA_WR_SEND;

		if (r.byte_len != t->len + grh || r.token != 7 || !!(r.flags & HCA_WC_WITH_IMM) != imm)
			return false;
		if (imm && r.imm != 0xabcd1234)
			return false;
	}
	return !s.status && !r.status && s.token == 42 && same && next(&a).status == 255 && next(&b).status == 255;
}

static void test_transfers(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(transfers); i++) {
		const struct transfer *t = &transfers[i];

		start(t->type, t->mtu, t->psn);
		row(100 + (int)i, t->what, transfer_ok(t));
		stop();
	}
}

enum wrong {
	NO_RECV,
	SHORT_RECV,
	BAD_RKEY,
	OUT_OF_BOUNDS,
	NO_RIGHT,
	NO_ATOMIC,
	BAD_LKEY,
	DEAD_WIRE,
	UNALIGNED
};

struct violation {
	const char *what;
	enum wrong wrong;
	u8 opcode, requester, responder; /* statuses; responder 255: no completion */
	int event;
};

static const struct violation violations[] = {
	{ "no receive: RNR retry counter exceeded", NO_RECV, HCA_WR_SEND, HCA_WC_RNR_RETRY_EXC_ERR, 255, -1 },
	{ "SEND longer than the receive", SHORT_RECV, HCA_WR_SEND, HCA_WC_REM_INV_REQ_ERR, HCA_WC_LOC_LEN_ERR,
	  HCA_EVENT_QP_REQ_ERR },
	{ "WRITE with an invalid R_Key", BAD_RKEY, HCA_WR_RDMA_WRITE, HCA_WC_REM_ACCESS_ERR, 255,
	  HCA_EVENT_QP_ACCESS_ERR },
	{ "READ with an invalid R_Key", BAD_RKEY, HCA_WR_RDMA_READ, HCA_WC_REM_ACCESS_ERR, 255,
	  HCA_EVENT_QP_ACCESS_ERR },
	{ "WRITE beyond the memory region", OUT_OF_BOUNDS, HCA_WR_RDMA_WRITE, HCA_WC_REM_ACCESS_ERR, 255,
	  HCA_EVENT_QP_ACCESS_ERR },
	{ "WRITE not enabled at the QP", NO_RIGHT, HCA_WR_RDMA_WRITE, HCA_WC_REM_INV_REQ_ERR, 255,
	  HCA_EVENT_QP_REQ_ERR },
	{ "READ not enabled at the QP", NO_RIGHT, HCA_WR_RDMA_READ, HCA_WC_REM_INV_REQ_ERR, 255, HCA_EVENT_QP_REQ_ERR },
	{ "atomic not enabled at the QP", NO_ATOMIC, HCA_WR_ATOMIC_FETCH_AND_ADD, HCA_WC_REM_INV_REQ_ERR, 255,
	  HCA_EVENT_QP_REQ_ERR },
	{ "SEND with an invalid L_Key", BAD_LKEY, HCA_WR_SEND, HCA_WC_LOC_PROT_ERR, 255, -1 },
	{ "no ACK: transport retry counter exceeded", DEAD_WIRE, HCA_WR_SEND, HCA_WC_RETRY_EXC_ERR, 255, -1 },
	{ "unaligned atomic", UNALIGNED, HCA_WR_ATOMIC_FETCH_AND_ADD, HCA_WC_LOC_LEN_ERR, 255, -1 },
};

static bool violation_ok(const struct violation *v)
{
	struct hca_send_wr wr = request(v->opcode, 64);
	struct hca_qp_attr at = { .access = v->wrong == NO_ATOMIC ? HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ
								  : 0 };
	struct hca_cqe s, r;

	if (v->wrong == SHORT_RECV)
		post_recv(63);
	if (v->wrong == BAD_RKEY)
		wr.rkey ^= 1;
	if (v->wrong == OUT_OF_BOUNDS)
		wr.remote_addr += 2 * SIZE - 63;
	if (v->wrong == UNALIGNED)
		wr.remote_addr += 4;
	if ((v->wrong == NO_RIGHT || v->wrong == NO_ATOMIC) && hca_qp_modify(b.ctx, b.qpn, &at, HCA_QP_ACCESS_FLAGS))
		return false;
	if (v->wrong == BAD_LKEY)
		wr.sge[0].lkey ^= 1;
	drop_all = v->wrong == DEAD_WIRE;
	hca_soft_post_send(a.wq, &wr);
	hca_soft_post_send(a.wq, &wr); /* flushed */
	run();
	s = next(&a);
	r = next(&b);
	return s.status == v->requester && next(&a).status == HCA_WC_WR_FLUSH_ERR && r.status == v->responder &&
	       (v->event < 0 || b.events[v->event] == 1);
}

static void test_violations(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(violations); i++) {
		start(HCA_QPT_RC, 5, 1000);
		row(200 + (int)i, violations[i].what, violation_ok(&violations[i]));
		stop();
	}
}

static u64 value(const struct side *s, u32 off)
{
	u64 v;

	memcpy(&v, s->mem + off, 8);
	return v;
}

static void test_atomics(void)
{
	struct hca_send_wr wr;
	u64 v = 40;

	start(HCA_QPT_RC, 5, 0);
	memcpy(b.mem, &v, 8);
	wr = request(HCA_WR_ATOMIC_FETCH_AND_ADD, 8);
	wr.compare_add = 2;
	drop_from = drop_to = 2; /* the response: the retry must not execute the atomic again */
	hca_soft_post_send(a.wq, &wr);
	run();
	row(300, "fetch and add", !next(&a).status && value(&b, 0) == 42 && value(&a, 0) == 40);
	wr.opcode = HCA_WR_ATOMIC_CMP_AND_SWP;
	wr.compare_add = 42;
	wr.swap = 99;
	hca_soft_post_send(a.wq, &wr);
	run();
	row(301, "compare and swap", !next(&a).status && value(&b, 0) == 99 && value(&a, 0) == 42);
	hca_soft_post_send(a.wq, &wr);
	run();
	row(302, "compare and swap of another value", !next(&a).status && value(&b, 0) == 99 && value(&a, 0) == 99);
	stop();
}

static void test_rnr(void)
{
	struct hca_send_wr wr;

	start(HCA_QPT_RC, 5, 0);
	wr = request(HCA_WR_SEND, 100);
	hca_soft_post_send(a.wq, &wr);
	loop_run_idle(loop, loop_now(loop).ns);
	post_recv(100);
	run();
	row(310, "the RNR retry finds a receive posted late", !next(&a).status && !next(&b).status);
	stop();
}

/* Each packet is duplicated, and so are responses: only one RNR NAK of a flight counts. */
static void test_rnr_twice(void)
{
	struct hca_send_wr wr;
	u32 i, n = 0;

	start(HCA_QPT_RC, 5, 0);
	chance.twice = 1024;
	wr = request(HCA_WR_SEND, 100);
	hca_soft_post_send(a.wq, &wr);
	run();
	chance.twice = 0;
	for (i = 0; i < sent; i++)
		n += passed[i].opcode == WIRE_RC_SEND_ONLY;
	row(315, "the first attempt and three retries", n == 4 && next(&a).status == HCA_WC_RNR_RETRY_EXC_ERR);
	stop();
}

/*
 * The receiver's memory is late, with so many bytes on the way there that its own requests wait: unreliable packets are
 * received.
 */
static void test_late(enum hca_qp_type type)
{
	static u8 from[9 << 20], to[sizeof(from)];
	struct hca_send_wr wr;
	u32 i, n = 0;

	start(type, 5, 0);
	late_side = &b;
	hca_ctx_write(b.ctx, &b, (u64)(uintptr_t)to, from, sizeof(from));
	row(316, "its own requests wait", hca_ctx_full(b.ctx));
	wr = request(HCA_WR_SEND, 100);
	for (i = 0; i < 10; i++) {
		post_recv(200);
		hca_soft_post_send(a.wq, &wr);
	}
	run();
	row(317, "no packet is received while its memory is late", next(&b).status == 255);
	late_end();
	run();
	while (!next(&b).status)
		n++;
	row(318, "each message for which there is a receive", n == 10 && !hca_counter(b.hca, 1, HCA_CNT_UD_DROPPED));
	stop();
}

/*
 * A response acknowledges the requests before it, so their receives must have completed. The responder's commit has
 * not run when the response is sent, since it has packets of its own to send in the same turn.
 */
static void test_response_after_send(u8 opcode, u8 response)
{
	struct hca_send_wr wr, own;
	u32 i, n = 0;

	start(HCA_QPT_RC, 5, 0);
	post_recv(100);
	wr = request(HCA_WR_SEND, 100);
	hca_soft_post_send(a.wq, &wr);
	wr = request(opcode, 8);
	hca_soft_post_send(a.wq, &wr);
	own = request(HCA_WR_RDMA_WRITE, 0);
	own.num_sge = 0;
	hca_soft_post_send(b.wq, &own);
	loop_run_tasks(loop);
	for (i = 0; i < sent; i++)
		n += passed[i].from == &b && passed[i].opcode == response;
	row(319, "the receive of the SEND before it completes before the response", n == 1 && !next(&b).status);
	stop();
}

/* Out of memory for completions is handled as if no receive were posted. */
static void test_no_memory(void)
{
	struct hca_send_wr wr;

	start(HCA_QPT_RC, 5, 0);
	wr = request(HCA_WR_SEND, 100);
	post_recv(100);
	no_memory = true;
	hca_soft_post_send(a.wq, &wr);
	loop_run_idle(loop, loop_now(loop).ns);
	no_memory = false;
	row(311, "out of memory: RNR NAK", hca_counter(b.hca, 1, HCA_CNT_SEND_RNR_ERR) == 1);
	run();
	row(312, "the RNR retry succeeds", !next(&a).status && !next(&b).status);
	stop();

	start(HCA_QPT_UD, 5, 0);
	wr = request(HCA_WR_SEND, 100);
	post_recv(200);
	no_memory = true;
	hca_soft_post_send(a.wq, &wr);
	run();
	no_memory = false;
	row(313, "out of memory: a datagram is dropped",
	    next(&b).status == 255 && hca_counter(b.hca, 1, HCA_CNT_UD_DROPPED) == 1);
	hca_soft_post_send(a.wq, &wr);
	run();
	row(314, "the next datagram is received", !next(&b).status);
	stop();
}

/* Each ACK after a lost READ response is an implied NAK, but the response is retransmitted once. */
static void test_lost_response(void)
{
	struct hca_send_wr wr;
	u32 i, ok = 0;

	start(HCA_QPT_RC, 5, 0);
	drop_opcode = WIRE_RC_READ_RESP_ONLY;
	wr = request(HCA_WR_RDMA_READ, 64);
	hca_soft_post_send(a.wq, &wr);
	wr = request(HCA_WR_RDMA_WRITE, 64);
	for (i = 0; i < 10; i++) {
		hca_soft_post_send(a.wq, &wr);
		loop_run_idle(loop, loop_now(loop).ns);
	}
	drop_opcode = 0;
	row(323, "one retransmission of a lost READ response", hca_counter(a.hca, 1, HCA_CNT_COMPLETER_RETRY) == 1);
	run();
	for (i = 0; i <= 10; i++)
		ok += !next(&a).status;
	row(324, "the retransmitted response is received", ok == 11);
	stop();
}

/* Duration of the retries, in ms, with a local ACK timeout of @code, of a QP that was idle for @idle ms. */
static u64 tries_for(u8 link, u8 code, u64 idle)
{
	struct hca_send_wr wr;
	struct rxe_qp *rq;
	u64 from;

	link_layer = link;
	ack_timeout = code;
	start(HCA_QPT_RC, 5, 0);
	rq = hca_qp_lookup(a.hca, a.qpn)->transport;
	rq->req.cwnd.srtt = 10 * NSEC_PER_USEC; /* Ethernet: it retransmits early */
	wr = request(HCA_WR_RDMA_WRITE, 64);
	hca_soft_post_send(a.wq, &wr);
	loop_run_idle(loop, loop_now(loop).ns + idle * NSEC_PER_MSEC);
	next(&a);
	from = loop_now(loop).ns;
	drop_all = true;
	hca_soft_post_send(a.wq, &wr);
	while (next(&a).status != HCA_WC_RETRY_EXC_ERR && loop_now(loop).ns < from + 10 * NSEC_PER_SEC)
		loop_run_idle(loop, loop_now(loop).ns + NSEC_PER_MSEC);
	from = loop_now(loop).ns - from;
	stop();
	link_layer = WIRE_LINK_IB;
	ack_timeout = 8;
	return from / NSEC_PER_MSEC;
}

/* 9.9.2.4.2.1: the local ACK timeout is between one and four times the attribute; three retries. */
static void test_retry_interval(void)
{
	u64 least = 4 * wire_timeout_ns(14) / NSEC_PER_MSEC, ms;

	ms = tries_for(WIRE_LINK_ETHERNET, 14, 1);
	row(325, "each retry takes a local ACK timeout", ms >= least && ms <= 4 * least);
	ms = tries_for(WIRE_LINK_ETHERNET, 14, 5000);
	row(326, "also after an idle time", ms >= least && ms <= 4 * least);
	row(922, "65 us is at least 2 ms on Ethernet", tries_for(WIRE_LINK_ETHERNET, 4, 1) >= 8);
	row(923, "and 65 us on InfiniBand", tries_for(WIRE_LINK_IB, 4, 1) <= 1);
}

/* Ethernet: the timer of the early retransmission runs late, as when the process did not run. Returns packets sent. */
static u64 late_timer(struct rxe_qp *rq)
{
	u64 before = sent;

	loop_timer_set(loop, &rq->req.timer, loop_now(loop).ns - NSEC_PER_MSEC);
	loop_run_idle(loop, loop_now(loop).ns);
	return sent - before;
}

static void test_late_timer(void)
{
	struct hca_send_wr wr;
	struct rxe_qp *rq;

	link_layer = WIRE_LINK_ETHERNET;
	ack_timeout = 14;
	start(HCA_QPT_RC, 5, 0);
	rq = hca_qp_lookup(a.hca, a.qpn)->transport;
	rq->req.cwnd.srtt = 10 * NSEC_PER_USEC;
	drop_all = true;
	wr = request(HCA_WR_RDMA_WRITE, 64);
	hca_soft_post_send(a.wq, &wr);
	loop_run_idle(loop, loop_now(loop).ns);
	row(327, "a time-out that runs late retransmits nothing: the ACK may wait in the socket", !late_timer(rq));
	row(328, "late once more, it retransmits", late_timer(rq) == 1);
	row(329, "a retransmission's time-out may run late, too", !late_timer(rq));
	stop();
	link_layer = WIRE_LINK_IB;
	ack_timeout = 8;
}

/* More payload buffers than the batch of writes can reference. */
static void test_kept(void)
{
	struct rxe_qp *rq;
	u32 i, ok = 0;

	start(HCA_QPT_RC, 5, 0);
	rq = hca_qp_lookup(b.hca, b.qpn)->transport;
	for (i = 0; i <= RXE_WRITE_BUFS; i++) {
		struct wire_buf *buf = wire_buf_alloc(8);

		rq->resp.recv.num_sge = 1;
		rq->resp.recv.sge[0] = (struct hca_sge){ (u64)(uintptr_t)(b.mem + 8 * i), 8, b.lkey };
		memset(buf->data, (int)i, 8);
		ok += !rxe_recv_write(rq, 0, rxe_bytes_in(buf));
		wire_buf_put(buf);
	}
	row(321, "the batch of writes is bounded", ok == RXE_WRITE_BUFS + 1 && rq->rxe->nwrite_bufs < 2);
	rxe_writes_run(rq->rxe);
	for (i = 0, ok = 0; i < 8 * (RXE_WRITE_BUFS + 1); i++)
		ok += b.mem[i] == (u8)(i / 8);
	row(322, "all payload is written", ok == i);
	stop();
}

static void test_many(void)
{
	struct hca_send_wr wr;
	u32 i, ok = 0;

	start(HCA_QPT_RC, 5, 0);
	for (i = 0; i < 200; i++)
		post_recv(64);
	drop_from = 100;
	drop_to = 103;
	wr = request(HCA_WR_SEND, 64);
	for (i = 0; i < 200; i++) {
		wr.token = i;
		hca_soft_post_send(a.wq, &wr);
	}
	run();
	for (i = 0; i < 200; i++) {
		struct hca_cqe s = next(&a);

		ok += !s.status && s.token == i && !next(&b).status;
	}
	row(320, "200 SENDs complete in order after a loss", ok == 200);
	stop();
}

static void test_invalidate(void)
{
	struct hca_send_wr wr;
	u32 rkey;

	start(HCA_QPT_RC, 5, 0);
	hca_mw_alloc(b.ctx, b.pdn, 2, &rkey);
	wr = request(HCA_WR_SEND_WITH_INV, 10);
	wr.imm = rkey; /* not bound: cannot be invalidated */
	post_recv(64);
	hca_soft_post_send(a.wq, &wr);
	run();
	row(330, "SEND with invalidate of an unbound window: an error without a NAK",
	    next(&b).status == HCA_WC_LOC_ACCESS_ERR && next(&a).status == HCA_WC_RETRY_EXC_ERR);
	hca_mw_free(b.ctx, rkey);
	stop();
}

static void test_ud(void)
{
	struct hca_send_wr wr;

	start(HCA_QPT_UD, 5, 0);
	wr = request(HCA_WR_SEND, 100);
	wr.remote_qkey = 0x999;
	post_recv(200);
	hca_soft_post_send(a.wq, &wr);
	run();
	row(340, "a Q_Key mismatch is dropped and counted",
	    !next(&a).status && next(&b).status == 255 && b.port.attr.qkey_violations == 1);
	wr = request(HCA_WR_SEND, 4097);
	hca_soft_post_send(a.wq, &wr);
	run();
	row(341, "a datagram longer than the MTU", next(&a).status == HCA_WC_LOC_LEN_ERR);
	stop();
}

/* A TCP packet's headers over IPv4, with the IPoIB encapsulation. */
static void headers(u8 *p)
{
	static const u8 h[44] = { 8, 0, 0, 0,  0x45, [10] = 0x40, [12] = 64, 6,           [16] = 10,
				  0, 0, 1, 10, 0,    0,           5,         [36] = 0x50, 0x18 };

	memcpy(p, h, sizeof(h));
}

static struct hca_send_wr lso_request(u32 len, u16 mss)
{
	struct hca_send_wr wr = request(HCA_WR_SEND, len);

	wr.lso_mss = mss;
	wr.lso_hdr_len = 44;
	headers(wr.inline_data);
	return wr;
}

static const struct {
	const char *what;
	enum hca_qp_type type;
	u32 len;
	u16 mss, hdr;
	u8 opcode, first, status; /* first byte of the headers */
} lso_errors[] = {
	{ "LSO: headers are not IP", HCA_QPT_UD, 5000, 1000, 44, HCA_WR_SEND, 1, HCA_WC_LOC_QP_OP_ERR },
	{ "LSO: headers are too short", HCA_QPT_UD, 5000, 1000, 40, HCA_WR_SEND, 8, HCA_WC_LOC_QP_OP_ERR },
	{ "LSO with immediate", HCA_QPT_UD, 5000, 1000, 44, HCA_WR_SEND_WITH_IMM, 8, HCA_WC_LOC_QP_OP_ERR },
	{ "LSO on RC", HCA_QPT_RC, 5000, 1000, 44, HCA_WR_SEND, 8, HCA_WC_LOC_QP_OP_ERR },
	{ "LSO: segments exceed the MTU", HCA_QPT_UD, 5000, 4060, 44, HCA_WR_SEND, 8, HCA_WC_LOC_LEN_ERR },
	{ "LSO of more than 64 KiB", HCA_QPT_UD, 65537, 1000, 44, HCA_WR_SEND, 8, HCA_WC_LOC_LEN_ERR },
};

static void test_lso_errors(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lso_errors); i++) {
		struct hca_send_wr wr;

		start(lso_errors[i].type, 5, 0);
		wr = lso_request(lso_errors[i].len, lso_errors[i].mss);
		wr.opcode = lso_errors[i].opcode;
		wr.lso_hdr_len = lso_errors[i].hdr;
		wr.inline_data[0] = lso_errors[i].first;
		hca_soft_post_send(a.wq, &wr);
		run();
		row(360 + (int)i, lso_errors[i].what,
		    next(&a).status == lso_errors[i].status && next(&b).status == 255);
		stop();
	}
}

static void test_lso(void)
{
	struct hca_send_wr wr;
	struct hca_cqe s, r;
	u32 i, ok = 0;

	start(HCA_QPT_UD, 5, 0xfffffe);
	wr = lso_request(40000, 1000);
	for (i = 0; i < 40; i++)
		post_recv(2048);
	hca_soft_post_send(a.wq, &wr);
	run();
	s = next(&a);
	for (i = 0; i < 40; i++) {
		r = next(&b);
		ok += !r.status && r.byte_len == 40 + 44 + 1000 && r.flags == HCA_WC_IP_CSUM_OK;
	}
	row(370, "LSO: forty segments with correct checksums",
	    ok == 40 && !s.status && s.opcode == HCA_WC_LSO && next(&b).status == 255);
	row(371, "LSO: the last segment has the last bytes", !memcmp(b.mem + 84, a.mem + 39000, 1000));
	headers(a.mem);
	a.mem[7] = 144;
	wr = request(HCA_WR_SEND, 148);
	post_recv(2048);
	hca_soft_post_send(a.wq, &wr);
	run();
	row(372, "wrong checksums are not reported as OK", !next(&a).status && next(&b).flags == 0);
	wr.flags = HCA_SEND_IP_CSUM;
	post_recv(2048);
	hca_soft_post_send(a.wq, &wr);
	run();
	row(373, "checksum offload fills them in", !next(&a).status && next(&b).flags == HCA_WC_IP_CSUM_OK);
	stop();
}

static bool done_after(u32 us)
{
	loop_run_idle(loop, loop_now(loop).ns + us * NSEC_PER_USEC);
	return !next(&a).status;
}

/* 1 MiB takes 3.4 ms at 2.5 Gb/s, and nearly no time at the port's own rate (9.11.1). */
static void test_static_rate(void)
{
	struct hca_send_wr wr;

	static_rate = WIRE_RATE_2_5;
	start(HCA_QPT_RC, 5, 0);
	wr = request(HCA_WR_RDMA_WRITE, SIZE);
	hca_soft_post_send(a.wq, &wr);
	row(350, "static rate of 2.5 Gb/s limits a WRITE", !done_after(3000) && done_after(1000));
	wr = request(HCA_WR_RDMA_READ, SIZE);
	wr.sge[0].addr = (u64)(uintptr_t)a.mem;
	hca_soft_post_send(a.wq, &wr);
	row(351, "static rate limits READ responses", !done_after(3000) && done_after(1000));
	stop();
	static_rate = WIRE_RATE_200;
	start(HCA_QPT_RC, 5, 0);
	wr = request(HCA_WR_RDMA_WRITE, SIZE);
	hca_soft_post_send(a.wq, &wr);
	row(352, "a static rate of the port's rate is no limit", done_after(10));
	stop();
	static_rate = 0;
}

/*
 * Automatic path migration (17.2.8): both sides have two LIDs, and the path between the even ones is the alternate. The
 * test can drop packets to the LIDs of the primary path.
 */
static int arm(struct side *s, u16 alt_lid, bool load)
{
	struct hca_qp_attr at = {
		.path_mig_state = HCA_MIG_REARM,
		.alt_av = { .dlid = alt_lid, .port = 1, .src_path_bits = alt_lid & 1 },
		.alt_port = 1,
		.alt_timeout = 8,
	};

	return hca_qp_modify(s->ctx, s->qpn, &at, HCA_QP_PATH_MIG_STATE | (load ? HCA_QP_ALT_PATH : 0));
}

static u8 mig_state(struct side *s)
{
	struct hca_qp_attr at;

	return hca_qp_query(s->ctx, s->qpn, &at) ? 255 : at.path_mig_state;
}

static int migrate(struct side *s)
{
	struct hca_qp_attr at = { .path_mig_state = HCA_MIG_MIGRATED };

	return hca_qp_modify(s->ctx, s->qpn, &at, HCA_QP_PATH_MIG_STATE);
}

static u16 primary_dlid(struct side *s)
{
	struct hca_qp_attr at;

	return hca_qp_query(s->ctx, s->qpn, &at) ? 0 : at.av.dlid;
}

static bool send_one(void)
{
	struct hca_send_wr wr = request(HCA_WR_SEND, 100);

	post_recv(200);
	hca_soft_post_send(a.wq, &wr);
	run();
	return !next(&a).status && !next(&b).status;
}

static void start_apm(void)
{
	start(HCA_QPT_RC, 5, 0);
	a.port.attr.lid = 2; /* and 3 */
	b.port.attr.lid = 4; /* and 5 */
	a.port.attr.lmc = b.port.attr.lmc = 1;
	qp_remake(&a);
	qp_remake(&b);
	if (move(&a, &b, 5, 0) || move(&b, &a, 5, 0))
		exit(1);
}

static void test_migration(void)
{
	start_apm();
	row(360, "no alternate path to rearm", arm(&a, 5, false) == -EINVAL && mig_state(&a) == HCA_MIG_MIGRATED);
	row(361, "REARM without an alternate path of the peer stays REARM",
	    !arm(&a, 5, true) && send_one() && mig_state(&a) == HCA_MIG_REARM);
	row(362, "both sides REARM: traffic arms them",
	    !arm(&b, 3, true) && send_one() && send_one() && mig_state(&a) == HCA_MIG_ARMED &&
		    mig_state(&b) == HCA_MIG_ARMED);
	drop_lids = BIT(2) | BIT(4);
	row(363, "primary path down: the message arrives by the alternate path", send_one());
	row(364, "both sides have migrated and raised PATH_MIG",
	    mig_state(&a) == HCA_MIG_MIGRATED && mig_state(&b) == HCA_MIG_MIGRATED &&
		    a.events[HCA_EVENT_PATH_MIG] == 1 && b.events[HCA_EVENT_PATH_MIG] == 1);
	row(365, "traffic continues on the new path", send_one() && a.events[HCA_EVENT_PATH_MIG] == 1);
	drop_lids = 0;
	row(910, "the old path is the next alternate one",
	    !arm(&a, 4, true) && !arm(&b, 2, true) && send_one() && send_one() && mig_state(&a) == HCA_MIG_ARMED &&
		    mig_state(&b) == HCA_MIG_ARMED && primary_dlid(&a) == 5);
	drop_lids = BIT(3) | BIT(5);
	row(911, "and both sides migrate back",
	    send_one() && primary_dlid(&a) == 4 && primary_dlid(&b) == 2 && a.events[HCA_EVENT_PATH_MIG] == 2 &&
		    b.events[HCA_EVENT_PATH_MIG] == 2 && !b.events[HCA_EVENT_PATH_MIG_ERR]);
	drop_lids = 0;
	row(374, "REARM without a new path: the alternate path stays the one that was loaded",
	    !arm(&a, 0, false) && mig_state(&a) == HCA_MIG_REARM && !arm(&b, 0, false) && send_one() && send_one() &&
		    mig_state(&a) == HCA_MIG_ARMED && !migrate(&a) && primary_dlid(&a) == 4 &&
		    a.events[HCA_EVENT_PATH_MIG] == 3);
	stop();

	start_apm();
	row(368, "REARM, then MIGRATED by the consumer: no migration",
	    !arm(&a, 5, true) && !migrate(&a) && mig_state(&a) == HCA_MIG_MIGRATED && !a.events[HCA_EVENT_PATH_MIG] &&
		    primary_dlid(&a) == 4);
	row(369, "both sides ARMED again",
	    !arm(&a, 5, true) && !arm(&b, 3, true) && send_one() && send_one() && mig_state(&a) == HCA_MIG_ARMED);
	row(920, "ARMED, then MIGRATED by the consumer: to the alternate path, with PATH_MIG",
	    !migrate(&a) && mig_state(&a) == HCA_MIG_MIGRATED && a.events[HCA_EVENT_PATH_MIG] == 1 &&
		    primary_dlid(&a) == 5);
	drop_lids = BIT(2) | BIT(4);
	row(921, "its migration request migrates the peer",
	    send_one() && mig_state(&b) == HCA_MIG_MIGRATED && b.events[HCA_EVENT_PATH_MIG] == 1);
	drop_lids = 0;
	stop();

	start_apm();
	row(366, "an alternate path unknown to the peer",
	    !arm(&a, 5, true) && !arm(&b, 7, true) && send_one() && send_one() && mig_state(&b) == HCA_MIG_ARMED);
	drop_lids = BIT(4);
	row(367, "its migration request is rejected",
	    !send_one() && b.events[HCA_EVENT_PATH_MIG_ERR] == 1 && mig_state(&b) == HCA_MIG_ARMED);
	drop_lids = 0;
	stop();
}

/* A NOP, which a ConnectX has, on a datagram queue pair. */
static void test_nop(void)
{
	struct hca_send_wr wr = { .token = 42, .opcode = HCA_WR_NOP };

	start(HCA_QPT_UD, 5, 0);
	hca_soft_post_send(a.wq, &wr);
	run();
	row(380, "a NOP completes", !next(&a).status);
	row(381, "and sends nothing", !sent);
	stop();
}

static void test_leaks(void)
{
	row(900, "no packet or buffer is left", wire_packet_live() == 0);
}

int main(void)
{
	test_transfers();
	test_violations();
	test_atomics();
	test_rnr();
	test_rnr_twice();
	test_late(HCA_QPT_UD);
	test_late(HCA_QPT_UC);
	test_response_after_send(HCA_WR_RDMA_READ, WIRE_RC_READ_RESP_ONLY);
	test_response_after_send(HCA_WR_ATOMIC_FETCH_AND_ADD, WIRE_RC_ATOMIC_ACK);
	test_no_memory();
	test_many();
	test_lost_response();
	test_retry_interval();
	test_late_timer();
	test_kept();
	test_invalidate();
	test_ud();
	test_lso_errors();
	test_lso();
	test_static_rate();
	test_migration();
	test_nop();
	test_leaks();
	return rows_end();
}

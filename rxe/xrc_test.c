// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rules of XRC (IBTA annex A14), one row each: an initiator at one side, a target with SRQs of its XRC domain at the
 * other.
 */
#include "rxe/rxe_fixture.h"

#define PSN  1000
#define SGES 2

/* Of side b: an SRQ whose receives complete in a CQ of its own. */
struct shared {
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	u32 srqn;
};
static struct shared first, second;

static int shared_make(struct shared *s, u32 pdn, u32 xrcdn)
{
	struct hca_srq_attr attr = { .max_wr = 16, .max_sge = SGES, .xrcdn = xrcdn };
	int err = s->cq ? 0 : hca_soft_cq_create(b.ctx, 64, NULL, NULL, &s->cq);

	attr.cqn = err ? 0 : hca_soft_cq_number(s->cq);
	err = err ? err : hca_soft_srq_create(b.ctx, pdn, &attr, &s->wq);
	s->srqn = err ? 0 : hca_soft_wq_number(s->wq);
	return err;
}

static bool shared_end(struct shared *s)
{
	if (s->wq && hca_soft_wq_destroy(s->wq))
		return false;
	s->wq = NULL;
	return true;
}

static void setup(u8 layer)
{
	link_layer = layer;
	start_of(HCA_QPT_XRC_INI, HCA_QPT_XRC_TGT, 3, PSN);
	first = second = (struct shared){ 0 };
	if (shared_make(&first, b.pdn, b.xrcdn) || shared_make(&second, b.pdn, b.xrcdn))
		exit(1);
}

static void teardown(void)
{
	shared_end(&first);
	shared_end(&second);
	hca_soft_cq_destroy(first.cq);
	hca_soft_cq_destroy(second.cq);
	stop();
}

static void recv_to(const struct shared *s, u32 off, u32 n, u64 token)
{
	struct hca_recv_wr wr = { .token = token,
				  .num_sge = 1,
				  .sge = { { (u64)(uintptr_t)(b.mem + off), n, b.lkey } } };

	hca_soft_post_recv(s->wq, &wr);
}

static struct hca_send_wr request_to(u32 srqn, u8 opcode, u32 n, u64 token)
{
	struct hca_send_wr wr = request(opcode, n);

	wr.remote_srqn = srqn;
	wr.token = token;
	return wr;
}

static void post(u32 srqn, u8 opcode, u32 n, u64 token)
{
	struct hca_send_wr wr = request_to(srqn, opcode, n, token);

	hca_soft_post_send(a.wq, &wr);
}

static struct hca_cqe polled(struct hca_soft_cq *cq)
{
	struct hca_cqe cqe = { .status = 255 };

	hca_soft_cq_poll(cq, &cqe, 1);
	return cqe;
}

static bool sent_is(u64 token, u8 status)
{
	struct hca_cqe cqe = next(&a);

	return cqe.token == token && cqe.status == status;
}

static bool received_is(const struct shared *s, u64 token, u8 status)
{
	struct hca_cqe cqe = polled(s->cq);

	return cqe.token == token && cqe.status == status && cqe.srqn == s->srqn && cqe.qpn == b.qpn;
}

static bool is_quiet(const struct shared *s)
{
	return polled(s->cq).status == 255;
}

static u8 state_of(const struct side *s)
{
	return hca_qp_lookup(s->hca, s->qpn)->state;
}

static u64 counted(const struct side *s, const char *name)
{
	u32 n;

	for (n = 0; hca_counter_name(n); n++)
		if (!strcmp(hca_counter_name(n), name))
			return hca_counter(s->hca, 1, n);
	return ~0ull;
}

static u32 packets(const struct side *from, u8 opcode)
{
	u32 i, n = 0;

	for (i = 0; i < min(sent, (u64)ARRAY_SIZE(passed)); i++)
		n += passed[i].from == from && passed[i].opcode == opcode;
	return n;
}

static bool nakked(u8 code)
{
	u32 i;

	for (i = 0; i < min(sent, (u64)ARRAY_SIZE(passed)); i++)
		if (passed[i].from == &b && passed[i].opcode == WIRE_XRC_ACK &&
		    passed[i].syndrome == (WIRE_AETH_NAK | code))
			return true;
	return false;
}

/* The request, posted with @token, fails with a remote access error (9.9.3), and both queue pairs go to ERR. */
static bool is_refused(u64 token)
{
	return nakked(WIRE_NAK_REMOTE_ACCESS) && sent_is(token, HCA_WC_REM_ACCESS_ERR) && state_of(&b) == HCA_QPS_ERR &&
	       state_of(&a) == HCA_QPS_ERR && b.events[HCA_EVENT_QP_ACCESS_ERR] == 1;
}

/* A packet of the initiator without a work request. */
static struct wire_packet *forge(u8 opcode, u32 psn, u32 srqn, u32 len)
{
	struct hca_qp *qp = hca_qp_lookup(a.hca, a.qpn);
	struct wire_packet *p = rxe_frame(qp, opcode, psn, len);
	struct wire_buf *buf = wire_buf_alloc(len);

	wire_bth_set_ackreq(wire_packet_bth(p));
	wire_packet_xrceth(p)->srqn = cpu_to_be32(srqn);
	memset(buf->data, 0x5a, len);
	rxe_payload(p, buf, 0, len);
	wire_buf_put(buf);
	return p;
}

/* Rules */

static bool two_srqs(void)
{
	recv_to(&second, 4096, 8192, 2);
	recv_to(&first, SIZE, 8192, 1);
	post(first.srqn, HCA_WR_SEND, 5000, 10);
	post(second.srqn, HCA_WR_SEND_WITH_IMM, 100, 11);
	run();
	return sent_is(10, 0) && sent_is(11, 0) && received_is(&first, 1, 0) && received_is(&second, 2, 0) &&
	       is_quiet(&first) && is_quiet(&second) && !memcmp(b.mem + SIZE, a.mem, 5000) &&
	       !memcmp(b.mem + 4096, a.mem, 100) && packets(&a, WIRE_XRC_SEND_FIRST) == 1 &&
	       packets(&a, WIRE_XRC_SEND_MIDDLE) == 3 && packets(&a, WIRE_XRC_SEND_LAST) == 1 &&
	       packets(&a, WIRE_XRC_SEND_ONLY_IMM) == 1 && packets(&b, WIRE_XRC_ACK);
}

static bool every_operation(void)
{
	struct hca_send_wr wr = request_to(first.srqn, HCA_WR_ATOMIC_CMP_AND_SWP, 8, 4);
	u64 value = 5, was;

	recv_to(&first, 8192, 64, 7);
	memcpy(b.mem + SIZE, &value, 8);
	wr.remote_addr += SIZE;
	wr.sge[0].addr += SIZE;
	wr.compare_add = 5;
	wr.swap = 6;
	post(first.srqn, HCA_WR_RDMA_WRITE, 3000, 1);
	post(first.srqn, HCA_WR_RDMA_WRITE_WITH_IMM, 3000, 2);
	post(first.srqn, HCA_WR_RDMA_READ, 3000, 3);
	hca_soft_post_send(a.wq, &wr);
	wr.opcode = HCA_WR_ATOMIC_FETCH_AND_ADD;
	wr.token = 5;
	wr.sge[0].addr += 8;
	hca_soft_post_send(a.wq, &wr);
	run();
	memcpy(&value, b.mem + SIZE, 8);
	memcpy(&was, a.mem + SIZE + 8, 8);
	return sent_is(1, 0) && sent_is(2, 0) && sent_is(3, 0) && sent_is(4, 0) && sent_is(5, 0) &&
	       received_is(&first, 7, 0) && value == 11 && was == 6 && !memcmp(a.mem, b.mem, 3000) &&
	       packets(&b, WIRE_XRC_READ_RESP_FIRST) == 1 && packets(&b, WIRE_XRC_READ_RESP_LAST) == 1 &&
	       packets(&b, WIRE_XRC_ATOMIC_ACK) == 2 && packets(&a, WIRE_XRC_WRITE_LAST_IMM) == 1;
}

static bool no_such_srq(void)
{
	post(first.srqn + 50, HCA_WR_SEND, 10, 1);
	run();
	return is_refused(1) && counted(&b, "resp_remote_access_errors") == 1;
}

static bool read_without_srq(void)
{
	post(0, HCA_WR_RDMA_READ, 10, 1);
	run();
	return is_refused(1);
}

static bool another_domain(void)
{
	struct shared other = { 0 };
	u32 xrcdn;
	bool ok;

	if (hca_xrcd_alloc(b.ctx, &xrcdn) || shared_make(&other, b.pdn, xrcdn))
		return false;
	recv_to(&other, 0, 100, 3);
	post(other.srqn, HCA_WR_SEND, 10, 1);
	run();
	ok = is_refused(1) && is_quiet(&other) && hca_soft_wq_recvs(other.wq) == 1;
	shared_end(&other);
	hca_soft_cq_destroy(other.cq);
	return ok && !hca_xrcd_free(b.ctx, xrcdn);
}

static bool srq_without_domain(void)
{
	struct shared other = { 0 };
	bool ok;

	if (shared_make(&other, b.pdn, 0))
		return false;
	recv_to(&other, 0, 100, 3);
	post(other.srqn, HCA_WR_SEND, 10, 1);
	run();
	ok = is_refused(1) && is_quiet(&other);
	shared_end(&other);
	hca_soft_cq_destroy(other.cq);
	return ok;
}

/* The target is of one PD, the SRQ of another one. */
static bool write_by_pd(bool of_srq)
{
	u64 at = (u64)(uintptr_t)b.mem;
	struct hca_send_wr wr;
	struct shared other = { 0 };
	u32 pdn, lkey, rkey;
	bool ok;

	if (hca_pd_alloc(b.ctx, &pdn) || shared_make(&other, pdn, b.xrcdn) ||
	    hca_mr_reg(b.ctx, pdn, at, at, SIZE, 0xf, &lkey, &rkey))
		return false;
	wr = request_to(other.srqn, HCA_WR_RDMA_WRITE, 100, 1);
	wr.rkey = of_srq ? rkey : b.rkey;
	hca_soft_post_send(a.wq, &wr);
	run();
	ok = of_srq ? sent_is(1, 0) : is_refused(1);
	shared_end(&other);
	hca_soft_cq_destroy(other.cq);
	return ok;
}

static bool key_of_the_srqs_pd(void)
{
	return write_by_pd(true);
}

static bool key_of_the_targets_pd(void)
{
	return write_by_pd(false);
}

static bool empty_srq(void)
{
	recv_to(&second, 0, 100, 2); /* receives of another SRQ are not used */
	post(first.srqn, HCA_WR_SEND, 100, 1);
	loop_run_idle(loop, loop_now(loop).ns + 5 * NSEC_PER_USEC);
	if (next(&a).status != 255 || counted(&a, "rcvd_rnr_err") != 1)
		return false;
	recv_to(&first, 0, 100, 3);
	run();
	return sent_is(1, 0) && received_is(&first, 3, 0) && is_quiet(&second) && hca_soft_wq_recvs(second.wq) == 1;
}

static bool empty_srq_for_good(void)
{
	post(first.srqn, HCA_WR_SEND, 100, 1);
	post(first.srqn, HCA_WR_SEND, 100, 2);
	run();
	return sent_is(1, HCA_WC_RNR_RETRY_EXC_ERR) && sent_is(2, HCA_WC_WR_FLUSH_ERR) && state_of(&a) == HCA_QPS_ERR &&
	       state_of(&b) == HCA_QPS_RTS;
}

static bool srq_goes_within_a_message(void)
{
	recv_to(&first, 0, 8192, 1);
	recv_to(&first, 0, 8192, 2);
	wire_send(&a.port, forge(WIRE_XRC_SEND_FIRST, PSN, first.srqn, 1024));
	run();
	if (!shared_end(&first))
		return false;
	wire_send(&a.port, forge(WIRE_XRC_SEND_MIDDLE, PSN + 1, first.srqn, 1024));
	run();
	return nakked(WIRE_NAK_REMOTE_ACCESS) && state_of(&b) == HCA_QPS_ERR && is_quiet(&first);
}

static bool srq_goes_before_the_commit(void)
{
	recv_to(&first, 0, 8192, 1);
	recv_to(&second, 0, 8192, 2);
	wire_send(&a.port, forge(WIRE_XRC_SEND_ONLY, PSN, first.srqn, 100));
	wire_send(&a.port, forge(WIRE_XRC_SEND_ONLY, PSN + 1, second.srqn, 100));
	if (!shared_end(&first))
		return false;
	run();
	return is_quiet(&first) && received_is(&second, 2, 0) && state_of(&b) == HCA_QPS_RTS;
}

static bool srq_goes_within_a_read(void)
{
	post(first.srqn, HCA_WR_RDMA_READ, SIZE, 1);
	while (packets(&b, WIRE_XRC_READ_RESP_MIDDLE) < 2 && loop_run_tasks(loop))
		;
	if (!packets(&b, WIRE_XRC_READ_RESP_FIRST) || packets(&b, WIRE_XRC_READ_RESP_LAST) || !shared_end(&first))
		return false;
	run();
	return is_refused(1);
}

static bool another_srq_within_a_message(void)
{
	recv_to(&first, 0, 8192, 1);
	recv_to(&second, 0, 8192, 2);
	wire_send(&a.port, forge(WIRE_XRC_SEND_FIRST, PSN, first.srqn, 1024));
	wire_send(&a.port, forge(WIRE_XRC_SEND_LAST, PSN + 1, second.srqn, 1024));
	run();
	return nakked(WIRE_NAK_REMOTE_ACCESS) && received_is(&first, 1, HCA_WC_LOC_ACCESS_ERR) && is_quiet(&second) &&
	       hca_soft_wq_recvs(second.wq) == 1;
}

/* An SRQ with a CQ of one entry, and two requests that complete there. */
static bool full_cq_make(struct shared *other)
{
	if (hca_soft_cq_create(b.ctx, 1, NULL, NULL, &other->cq) || shared_make(other, b.pdn, b.xrcdn))
		return false;
	recv_to(other, 0, 100, 1);
	recv_to(other, 0, 100, 2);
	post(other->srqn, HCA_WR_SEND, 100, 1);
	post(other->srqn, HCA_WR_SEND, 100, 2);
	return true;
}

static bool full_cq_failed(void)
{
	return b.events[HCA_EVENT_CQ_ERR] == 1 && b.events[HCA_EVENT_QP_FATAL] == 1 && state_of(&b) == HCA_QPS_ERR;
}

static void full_cq_end(struct shared *other)
{
	shared_end(other);
	hca_soft_cq_destroy(other->cq);
}

static bool full_cq(void)
{
	struct shared other = { 0 };
	bool ok;

	if (!full_cq_make(&other))
		return false;
	run();
	ok = full_cq_failed() && received_is(&other, 1, 0) && is_quiet(&other);
	full_cq_end(&other);
	return ok;
}

/* The target has named another SRQ since then. */
static bool full_cq_of_an_earlier_srq(void)
{
	struct shared other = { 0 };
	bool ok;

	if (!full_cq_make(&other))
		return false;
	recv_to(&first, 0, 100, 3);
	post(first.srqn, HCA_WR_SEND, 100, 3);
	run();
	ok = full_cq_failed();
	full_cq_end(&other);
	return ok;
}

static bool target_to_error(void)
{
	struct hca_qp_attr attr = { .state = HCA_QPS_ERR };

	recv_to(&first, 0, 8192, 1);
	recv_to(&first, 0, 8192, 2);
	wire_send(&a.port, forge(WIRE_XRC_SEND_FIRST, PSN, first.srqn, 1024));
	run();
	if (hca_qp_modify(b.ctx, b.qpn, &attr, HCA_QP_STATE))
		return false;
	run();
	return received_is(&first, 1, HCA_WC_WR_FLUSH_ERR) && is_quiet(&first) && hca_soft_wq_recvs(first.wq) == 1 &&
	       !b.events[HCA_EVENT_QP_LAST_WQE_REACHED];
}

static bool initiator_to_error(void)
{
	struct hca_qp_attr attr = { .state = HCA_QPS_ERR };

	post(first.srqn, HCA_WR_SEND, 100, 1);
	post(first.srqn, HCA_WR_RDMA_READ, 100, 2);
	drop_all = true;
	loop_run_idle(loop, loop_now(loop).ns + 5 * NSEC_PER_USEC);
	if (hca_qp_modify(a.ctx, a.qpn, &attr, HCA_QP_STATE))
		return false;
	run();
	return sent_is(1, HCA_WC_WR_FLUSH_ERR) && sent_is(2, HCA_WC_WR_FLUSH_ERR);
}

static bool target_in_reset(void)
{
	struct hca_qp_attr attr = { .state = HCA_QPS_RESET };

	recv_to(&first, 0, 8192, 1);
	recv_to(&first, 0, 8192, 2);
	wire_send(&a.port, forge(WIRE_XRC_SEND_FIRST, PSN, first.srqn, 1024));
	run();
	if (hca_qp_modify(b.ctx, b.qpn, &attr, HCA_QP_STATE) || move(&b, &a, 3, PSN))
		return false;
	post(first.srqn, HCA_WR_SEND, 100, 5);
	run();
	return sent_is(5, 0) && received_is(&first, 2, 0) && is_quiet(&first);
}

static bool wrong_direction(void)
{
	struct hca_qp *qp = hca_qp_lookup(b.hca, b.qpn);
	struct wire_packet *p;

	recv_to(&first, 0, 8192, 1);
	p = rxe_frame(qp, WIRE_RC_SEND_ONLY, PSN, 0);
	wire_bth_set_ackreq(wire_packet_bth(p));
	wire_packet_xrceth(p)->srqn = cpu_to_be32(first.srqn);
	wire_send(&b.port, p); /* a request to an initiator */
	qp = hca_qp_lookup(a.hca, a.qpn);
	p = rxe_frame(qp, WIRE_RC_ACK, PSN, 0);
	wire_send(&a.port, p); /* a response to a target */
	p = forge(WIRE_XRC_SEND_ONLY, PSN, first.srqn, 0);
	wire_packet_bth(p)->opcode = WIRE_RC_SEND_ONLY;
	p->hdr_len -= (u8)sizeof(struct wire_xrceth);
	wire_send(&a.port, p); /* RC */
	run();
	return counted(&a, "rx_wrong_qp") == 1 && counted(&b, "rx_wrong_qp") == 2 && is_quiet(&first) &&
	       state_of(&b) == HCA_QPS_RTS;
}

static bool busy(void)
{
	u32 xrcdn = b.xrcdn;

	if (hca_xrcd_free(b.ctx, xrcdn) != -EBUSY || hca_soft_cq_destroy(first.cq) != -EBUSY)
		return false;
	if (!shared_end(&first) || !shared_end(&second) || hca_xrcd_free(b.ctx, xrcdn) != -EBUSY)
		return false;
	hca_soft_wq_destroy(b.wq);
	if (hca_xrcd_free(b.ctx, xrcdn) || hca_xrcd_free(b.ctx, xrcdn) != -ENOENT)
		return false;
	qp_make(&b, HCA_QPT_RC);
	return shared_make(&first, b.pdn, xrcdn) == -EINVAL && hca_xrcd_free(a.ctx, 77) == -ENOENT;
}

static bool creation(void)
{
	u32 cqn = hca_soft_cq_number(first.cq);
	struct hca_qp_init init = { .type = HCA_QPT_XRC_TGT, .pdn = b.pdn, .send_cqn = cqn, .recv_cqn = cqn };
	struct hca_soft_wq *wq;

	if (hca_soft_qp_create(b.ctx, &init, &wq) != -EINVAL)
		return false;
	init.xrcdn = b.xrcdn;
	init.srqn = first.srqn;
	if (hca_soft_qp_create(b.ctx, &init, &wq) != -EINVAL)
		return false;
	init.srqn = 0;
	init.type = HCA_QPT_XRC_INI;
	if (hca_soft_qp_create(b.ctx, &init, &wq) != -EINVAL)
		return false;
	init.type = 7;
	init.xrcdn = 0;
	return hca_soft_qp_create(b.ctx, &init, &wq) == -EINVAL;
}

static int step(struct side *s, u8 to, u32 mask)
{
	struct hca_qp_attr attr = attr_to(s == &a ? &b : &a, 3, PSN);

	attr.state = to;
	return hca_qp_modify(s->ctx, s->qpn, &attr, HCA_QP_STATE | mask);
}

static bool attributes(void)
{
	const u32 init = HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS;
	const u32 rtr = HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RQ_PSN;
	const u32 responder = HCA_QP_MAX_DEST_RD_ATOMIC | HCA_QP_MIN_RNR_TIMER;
	const u32 rts = HCA_QP_TIMEOUT | HCA_QP_SQ_PSN;
	const u32 requester = HCA_QP_RETRY_CNT | HCA_QP_RNR_RETRY | HCA_QP_MAX_QP_RD_ATOMIC;

	if (step(&a, HCA_QPS_RESET, 0) || step(&b, HCA_QPS_RESET, 0) || step(&a, HCA_QPS_INIT, init) ||
	    step(&b, HCA_QPS_INIT, init))
		return false;
	return !step(&a, HCA_QPS_RTR, rtr) && step(&a, HCA_QPS_RTS, rts) == -EINVAL &&
	       !step(&a, HCA_QPS_RTS, rts | requester) && step(&b, HCA_QPS_RTR, rtr) == -EINVAL &&
	       !step(&b, HCA_QPS_RTR, rtr | responder) && !step(&b, HCA_QPS_RTS, rts);
}

static bool losses(void)
{
	u32 i;

	for (i = 0; i < 8; i++)
		recv_to(&first, SIZE + i * 16384, 16384, i);
	chance.rng.state = 3;
	chance.lost = 30;
	for (i = 0; i < 8; i++) {
		struct hca_send_wr wr = request_to(first.srqn, i % 2 ? HCA_WR_SEND : HCA_WR_RDMA_READ, 16384, i);

		wr.sge[0].addr += i % 2 ? 0 : SIZE;
		hca_soft_post_send(a.wq, &wr);
	}
	run();
	chance.lost = 0;
	for (i = 0; i < 8; i++)
		if (!sent_is(i, 0))
			return false;
	for (i = 0; i < 4; i++)
		if (!received_is(&first, i, 0))
			return false;
	return is_quiet(&first) && !memcmp(a.mem, b.mem + SIZE, 16384);
}

static const struct {
	const char *what;
	bool (*ok)(void);
} rules[] = {
	{ "A14 a target receives for several SRQs, each with its own CQ", two_srqs },
	{ "A14 every operation of RC", every_operation },
	{ "A14 an SRQ that does not exist is an access error", no_such_srq },
	{ "A14 for a READ, too", read_without_srq },
	{ "A14 an SRQ of another XRC domain is an access error", another_domain },
	{ "A14 an SRQ without an XRC domain is one", srq_without_domain },
	{ "A14 R_Keys are of the SRQ's PD", key_of_the_srqs_pd },
	{ "A14 R_Keys of the target's PD are not valid", key_of_the_targets_pd },
	{ "9.7.5.2.8 an empty SRQ is an RNR NAK", empty_srq },
	{ "9.7.5.2.8 and the initiator's error when it stays empty", empty_srq_for_good },
	{ "A14 an SRQ is destroyed within a message", srq_goes_within_a_message },
	{ "A14 an SRQ is destroyed before its receive completes", srq_goes_before_the_commit },
	{ "A14 an SRQ is destroyed within a READ", srq_goes_within_a_read },
	{ "A14 a message names one SRQ", another_srq_within_a_message },
	{ "11.6.3 the CQ of an SRQ is full: the target enters ERR", full_cq },
	{ "11.6.3 also when it has named another one since", full_cq_of_an_earlier_srq },
	{ "10.3.1 a target enters ERR: its receive is flushed, others of the SRQ are kept", target_to_error },
	{ "10.3.1 an initiator enters ERR: its requests are flushed", initiator_to_error },
	{ "10.3.1 a target enters RESET and is connected again", target_in_reset },
	{ "9.6.1 requests to an initiator, responses to a target, and RC are dropped", wrong_direction },
	{ "A14 XRC domains and CQs in use stay", busy },
	{ "A14 what a target and an initiator are made of", creation },
	{ "11.2.5 attributes of the half that is not there may be left out", attributes },
	{ "9.7.5.1 lost packets are sent again", losses },
};

int main(void)
{
	static const u8 layers[] = { WIRE_LINK_IB, WIRE_LINK_ETHERNET };
	u32 i, l;

	for (l = 0; l < ARRAY_SIZE(layers); l++) {
		for (i = 0; i < ARRAY_SIZE(rules); i++) {
			setup(layers[l]);
			row((int)(100 + 100 * l + i), rules[i].what, rules[i].ok());
			teardown();
		}
	}
	row(900, "no packet or buffer is left", !wire_packet_live());
	return rows_end();
}

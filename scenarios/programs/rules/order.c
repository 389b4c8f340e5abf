// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Order of requests and completions, flushing, fences, draining, PSNs, and fields of completions. */
#include "rules.h"

#include <errno.h>
#include <string.h>

#define N 8

static void mixed(struct scene *s, unsigned from, unsigned bad, unsigned flags)
{
	static const enum ibv_wr_opcode kinds[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						    IBV_WR_ATOMIC_FETCH_AND_ADD };
	unsigned i;

	for (i = from; i < N; i++) {
		enum ibv_wr_opcode op = i == bad ? (enum ibv_wr_opcode)s->rule->arg2 : kinds[i % 4];
		struct req r = {
			.op = op, .len = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 1500, .id = i, .flags = flags
		};

		if (i == bad)
			r.remote = op == IBV_WR_SEND ? REF_OK : REF_NO_KEY;
		post_ok(s, REQ, r);
	}
}

static void in_order(struct scene *s)
{
	unsigned i;

	for (i = 0; i < s->end[REQ].got_send; i++)
		if (s->end[REQ].swc[i].wr_id != i)
			wrong(s, "send completion %u is of request %llu", i,
			      (unsigned long long)s->end[REQ].swc[i].wr_id);
	for (i = 0; i < s->end[RESP].got_recv; i++)
		if (s->end[RESP].rwc[i].wr_id != i)
			wrong(s, "receive completion %u is of request %llu", i,
			      (unsigned long long)s->end[RESP].rwc[i].wr_id);
}

static void all_good(struct scene *s)
{
	mixed(s, 0, N, 0);
}

/* @arg: the position of the request that fails, @arg2: its operation. */
static void one_bad(struct scene *s)
{
	mixed(s, 0, (unsigned)s->rule->arg, 0);
}

static void one_bad_unsignalled(struct scene *s)
{
	mixed(s, 0, (unsigned)s->rule->arg, UNSIGNALED);
}

static void local_bad(struct scene *s)
{
	unsigned i;

	for (i = 0; i < N; i++)
		post_ok(s, REQ,
			(struct req){ .op = i % 2 && s->rule->type == IBV_QPT_RC ? IBV_WR_RDMA_READ : IBV_WR_SEND,
				      .len = 700,
				      .id = i,
				      .local = i == (unsigned)s->rule->arg ? REF_NO_KEY : REF_OK });
}

static void errors_in_rows(void)
{
	static const enum ibv_wr_opcode bad[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD };
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	unsigned b, at, i, t;

	for (b = 0; b < ARRAY_LEN(bad); b++)
		for (at = 0; at < N; at++) {
			struct rule r = { .clause = "9.7.5.1.2, 9.9.2: requests before the failed one succeed, "
						    "those behind it are flushed, in order",
					  .recvs = 2,
					  .action = one_bad,
					  .arg = at,
					  .arg2 = bad[b],
					  .check = in_order,
					  .state = { AT(ERR), AT(ERR) },
					  .event = { 0, EV(QP_ACCESS_ERR) } };
			unsigned sends = (at > 0) + (at > 4);

			for (i = 0; i < N; i++)
				r.req[i] = i < at ? OK : i == at ? ST(REM_ACCESS_ERR) : FLUSHED;
			for (i = 0; i < 2; i++)
				r.resp[i] = i < sends ? OK : FLUSHED;
			rule_add(r, "RC request %u of 8 is a %s that fails", at, op_name(bad[b]));
			r.action = one_bad_unsignalled;
			r.clause = "10.7.3.1: an unsignalled request has a completion when it fails or is flushed";
			r.check = NULL;
			memset(r.req, 0, sizeof(r.req));
			for (i = at; i < N; i++)
				r.req[i - at] = i == at ? ST(REM_ACCESS_ERR) : FLUSHED;
			if (at % 4 == 2)
				rule_add(r, "RC unsignalled request %u of 8 is a %s that fails", at, op_name(bad[b]));
		}
	for (t = 0; t < 3; t++)
		for (at = 0; at < N; at += 2) { /* if a READ fails, the requests after it may have been received */
			struct rule r = {
				.clause = "10.3.1.6, 10.3.1.7: requests before a local error succeed, those behind it "
					  "are flushed, in order",
				.type = types[t],
				.recvs = N,
				.action = local_bad,
				.arg = at,
				.check = in_order,
				.state = { t ? AT(SQE) : AT(ERR) }
			};

			for (i = 0; i < N; i++)
				r.req[i] = i < at ? OK : i == at ? ST(LOC_PROT_ERR) : FLUSHED;
			for (i = 0; i < at; i += t ? 1 : 2)
				r.resp[t ? i : i / 2] = OK;
			rule_add(r, "%s request %u of 8 has a local error", type_name(types[t]), at);
		}
}

/* Flushing */

static void to_err(struct scene *s)
{
	unsigned i;

	for (i = 0; i < 5; i++)
		post_recvs(s, REQ, 1, (struct recv){ .id = i });
	for (i = 0; i < 4; i++) /* there is no responder */
		post_ok(s, REQ,
			(struct req){ .op = IBV_WR_RDMA_WRITE, .len = 100, .id = i, .flags = i & 1 ? UNSIGNALED : 0 });
	EXPECT(s, !qp_modify(s, REQ, s->end[REQ].qp, IBV_QPS_ERR, &s->rule->knob[REQ], 0));
	EXPECT(s, wait_recv(s, REQ, 5));
	for (i = 0; i < s->end[REQ].got_recv; i++)
		EXPECT(s, s->end[REQ].rwc[i].wr_id == i && s->end[REQ].rwc[i].status == IBV_WC_WR_FLUSH_ERR);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 8, .id = 4 });
}

static void recvs_flushed(struct scene *s)
{
	unsigned i;

	EXPECT(s, !qp_modify(s, RESP, s->end[RESP].qp, IBV_QPS_ERR, &s->rule->knob[RESP], 0));
	EXPECT(s, wait_recv(s, RESP, 4));
	for (i = 0; i < s->end[RESP].got_recv; i++)
		EXPECT(s, s->end[RESP].rwc[i].wr_id == i);
}

static void to_reset(struct scene *s)
{
	struct end *a = &s->end[REQ];

	post_recvs(s, REQ, 3, (struct recv){ 0 });
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 100 });
	post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 100 });
	EXPECT(s, !qp_modify(s, REQ, a->qp, IBV_QPS_RESET, &s->rule->knob[REQ], 0));
	wait_delivered(s);
	EXPECT(s, !a->got_send && !a->got_recv);
	/* no completion of them appears after the next connection */
	qp_connect(s, REQ, a->qp, s->end[RESP].qpn, IBV_QPS_RTS, &s->rule->knob[REQ]);
	qp_connect(s, RESP, s->end[RESP].qp, a->qpn, IBV_QPS_RTS, &s->rule->knob[RESP]);
	post_recvs(s, RESP, 1, (struct recv){ .id = 7 });
	post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 10, .id = 9 });
	EXPECT(s, wait_send(s, REQ, 1) && a->swc[0].wr_id == 9);
	EXPECT(s, wait_recv(s, RESP, 1) && s->end[RESP].rwc[0].wr_id == 7 && s->end[RESP].rwc[0].byte_len == 10);
}

static void reconnect_after_error(struct scene *s)
{
	const struct knobs *k = s->rule->knob;
	int i;

	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 100, .remote = REF_NO_KEY });
	EXPECT(s, wait_send(s, REQ, 1) && wait_event(s, RESP, IBV_EVENT_QP_ACCESS_ERR));
	for (i = 0; i < 2; i++)
		EXPECT(s, !qp_modify(s, i, s->end[i].qp, IBV_QPS_RESET, &k[i], 0));
	for (i = 0; i < 2; i++)
		qp_connect(s, i, s->end[i].qp, s->end[!i].qpn, IBV_QPS_RTS, &k[i]);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 100 });
}

static void sqe_recovers(struct scene *s)
{
	struct ibv_qp *qp = s->end[REQ].qp;

	post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 8, .local = REF_NO_KEY });
	EXPECT(s, wait_state(qp, IBV_QPS_SQE));
	EXPECT(s, !qp_modify(s, REQ, qp, IBV_QPS_RTS, &s->rule->knob[REQ], 0));
	post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 8 });
}

/* SQD */

static int drain(struct scene *s, bool notify)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify };

	return ibv_modify_qp(s->end[REQ].qp, &a, IBV_QP_STATE | (notify ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0));
}

static void drain_idle(struct scene *s)
{
	EXPECT(s, !drain(s, s->rule->arg));
}

static void drain_busy(struct scene *s)
{
	unsigned i;

	for (i = 0; i < 3; i++)
		post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 16384, .id = i });
	EXPECT(s, wait_send(s, REQ, 1));
	EXPECT(s, !drain(s, true));
	EXPECT(s, wait_event(s, REQ, IBV_EVENT_SQ_DRAINED));
	wait_delivered(s);
	i = s->end[REQ].got_send; /* those that had started, and none after the event */
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .id = 3 });
	wait_delivered(s);
	EXPECT(s, s->end[REQ].got_send == i);
	EXPECT(s, !qp_modify(s, REQ, s->end[REQ].qp, IBV_QPS_RTS, &s->rule->knob[REQ], 0));
}

static void drain_reads(struct scene *s)
{
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_READ, .len = 32768 - 64 });
	EXPECT(s, !drain(s, true));
	EXPECT(s, wait_event(s, REQ, IBV_EVENT_SQ_DRAINED));
	EXPECT(s, !qp_modify(s, REQ, s->end[REQ].qp, IBV_QPS_RTS, &s->rule->knob[REQ], 0));
}

static void drain_twice(struct scene *s)
{
	int i;

	for (i = 0; i < 2; i++) {
		s->end[REQ].events = 0;
		EXPECT(s, !drain(s, true));
		EXPECT(s, wait_event(s, REQ, IBV_EVENT_SQ_DRAINED));
		EXPECT(s, !qp_modify(s, REQ, s->end[REQ].qp, IBV_QPS_RTS, &s->rule->knob[REQ], 0));
	}
}

static void drain_answers(struct scene *s)
{
	EXPECT(s, !drain(s, false));
	post_ok(s, RESP, (struct req){ .op = IBV_WR_RDMA_READ, .len = 2000 });
	EXPECT(s, wait_send(s, RESP, 1) && !s->end[RESP].swc[0].status);
}

static void drain_changes_path(struct scene *s)
{
	struct ibv_qp_attr a = { .timeout = 10, .retry_cnt = 3, .rnr_retry = 2, .min_rnr_timer = 9 }, b;
	struct ibv_qp_init_attr init;

	EXPECT(s, !drain(s, true));
	EXPECT(s, wait_event(s, REQ, IBV_EVENT_SQ_DRAINED));
	EXPECT(s, !ibv_modify_qp(s->end[REQ].qp, &a,
				 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER));
	EXPECT(s, !ibv_query_qp(s->end[REQ].qp, &b, IBV_QP_STATE, &init));
	EXPECT(s, b.timeout == 10 && b.retry_cnt == 3 && b.rnr_retry == 2 && b.min_rnr_timer == 9);
	EXPECT(s, b.qp_state == IBV_QPS_SQD && !b.sq_draining);
	EXPECT(s, !qp_modify(s, REQ, s->end[REQ].qp, IBV_QPS_RTS, &s->rule->knob[REQ], 0));
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8 });
}

/* Fences and the order of effects. READs come from the responder's region to INBOX + off of the requester's. */

static void fence_after_read(struct scene *s)
{
	struct end *a = &s->end[REQ], *b = &s->end[RESP];
	enum ibv_wr_opcode op = (enum ibv_wr_opcode)s->rule->arg;

	memset(region(b), 0x77, 16384);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_READ, .len = 16384 });
	post_ok(s, REQ,
		(struct req){ .op = op,
			      .len = 16384,
			      .off = INBOX,
			      .flags = IBV_SEND_FENCE,
			      .raddr = (uintptr_t)region(b) + INBOX });
	EXPECT(s, wait_send(s, REQ, 2));
	if (op == IBV_WR_SEND)
		EXPECT(s, wait_recv(s, RESP, 1));
	EXPECT(s, !memcmp(region(b) + INBOX, region(b), 16384) && region(a)[INBOX] == 0x77);
}

static void write_then_read(struct scene *s)
{
	struct end *a = &s->end[REQ];

	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 9000 });
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_READ, .len = 9000 });
	EXPECT(s, wait_send(s, REQ, 2) && !memcmp(region(a), region(a) + INBOX, 9000));
}

static void write_then_send(struct scene *s)
{
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 9000, .flags = UNSIGNALED });
	post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 1 });
	EXPECT(s, wait_recv(s, RESP, 1) && !memcmp(region(&s->end[REQ]), region(&s->end[RESP]), 9000));
}

static void write_then_atomic(struct scene *s)
{
	uint64_t written, found;

	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8 });
	post_ok(s, REQ, (struct req){ .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .add = 1 });
	EXPECT(s, wait_send(s, REQ, 2));
	memcpy(&written, region(&s->end[REQ]), 8);
	memcpy(&found, region(&s->end[REQ]) + INBOX, 8);
	EXPECT(s, written == found);
}

static void atomic_then_read(struct scene *s)
{
	uint64_t before, after;

	post_ok(s, REQ, (struct req){ .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .add = 5 });
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_READ, .len = 16, .off = 0, .flags = IBV_SEND_FENCE });
	EXPECT(s, wait_send(s, REQ, 2));
	memcpy(&before, region(&s->end[RESP]), 8);
	memcpy(&after, region(&s->end[REQ]) + INBOX, 8);
	EXPECT(s, before == after);
}

static void imm_is_last(struct scene *s)
{
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE_WITH_IMM, .len = 20000 });
	EXPECT(s, wait_recv(s, RESP, 1));
	EXPECT(s, !memcmp(region(&s->end[REQ]), region(&s->end[RESP]), 20000));
}

static void receives_in_order(struct scene *s)
{
	unsigned i;

	for (i = 0; i < N; i++)
		post_ok(s, REQ,
			(struct req){
				.op = i % 2 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, .len = 100 + i, .id = i });
	EXPECT(s, wait_recv(s, RESP, N));
	for (i = 0; i < N; i++)
		EXPECT(s, s->end[RESP].rwc[i].byte_len == 100 + i);
}

static void signal_last(struct scene *s)
{
	unsigned i;

	for (i = 0; i < N; i++)
		post_ok(s, REQ,
			(struct req){
				.op = IBV_WR_RDMA_WRITE, .len = 64, .id = i, .flags = i < N - 1 ? UNSIGNALED : 0 });
	EXPECT(s, wait_send(s, REQ, 1) && s->end[REQ].swc[0].wr_id == N - 1);
}

static void signal_none(struct scene *s)
{
	post_ok(s, REQ, (struct req){ .op = (enum ibv_wr_opcode)s->rule->arg, .len = 8, .flags = UNSIGNALED });
	wait_delivered(s);
	wait_delivered(s);
}

static void slots_come_back(struct scene *s)
{
	unsigned i;

	for (i = 0; i < 200; i++)
		while (post(s, REQ,
			    (struct req){ .op = IBV_WR_RDMA_WRITE,
					  .len = 8,
					  .id = i,
					  .flags = i % 16 < 15 ? UNSIGNALED : 0 }) == ENOMEM)
			wait_delivered(s);
	EXPECT(s, wait_send(s, REQ, 200 / 16));
	s->end[REQ].got_send = 0;
}

/* PSNs: the messages pass the end of the PSN space. */
static void wraps(struct scene *s)
{
	enum ibv_wr_opcode op = (enum ibv_wr_opcode)s->rule->arg;
	unsigned i;

	for (i = 0; i < 4; i++)
		post_ok(s, REQ,
			(struct req){ .op = op, .len = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 3 * MTU, .id = i });
	EXPECT(s, wait_send(s, REQ, 4));
	if (op == IBV_WR_RDMA_WRITE && s->rule->type != IBV_QPT_UC)
		EXPECT(s, !memcmp(region(&s->end[REQ]), region(&s->end[RESP]), 3 * MTU));
	if (op == IBV_WR_RDMA_READ)
		EXPECT(s, !memcmp(region(&s->end[REQ]) + INBOX, region(&s->end[RESP]), 3 * MTU));
}

static void psn_query(struct scene *s)
{
	struct ibv_qp_attr a;
	struct ibv_qp_init_attr init;

	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 3 * MTU });
	EXPECT(s, wait_send(s, REQ, 1));
	EXPECT(s, !ibv_query_qp(s->end[REQ].qp, &a, IBV_QP_SQ_PSN, &init) && a.sq_psn == PSN_DEF + 3);
	EXPECT(s, !ibv_query_qp(s->end[RESP].qp, &a, IBV_QP_RQ_PSN, &init) && a.rq_psn == PSN_DEF + 3);
}

static void many_rnr(struct scene *s)
{
	unsigned i, seen = (unsigned)counter(s, RESP, "send_rnr_err");

	for (i = 0; i < N; i++)
		post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 8, .id = i });
	for (i = 0; i < N && !s->why[0]; i++) {
		while (counter(s, RESP, "send_rnr_err") == seen && !s->end[REQ].got_send && !s->why[0])
			wait_send(s, REQ, 0);
		seen = (unsigned)counter(s, RESP, "send_rnr_err");
		post_recvs(s, RESP, 1, (struct recv){ .id = i });
		EXPECT(s, wait_recv(s, RESP, i + 1));
	}
}

/* Fields of completions */

static void wc_fields(struct scene *s)
{
	const struct rule *r = s->rule;
	const struct ibv_wc *send = &s->end[REQ].swc[0], *recv = &s->end[RESP].rwc[0];
	bool imm = r->send.op == IBV_WR_SEND_WITH_IMM || r->send.op == IBV_WR_RDMA_WRITE_WITH_IMM;

	EXPECT(s, s->end[REQ].got_send == 1);
	EXPECT(s, send->wr_id == r->send.id && send->qp_num == s->end[REQ].qpn);
	EXPECT(s, send->opcode == (enum ibv_wc_opcode)r->arg);
	if (r->send.op == IBV_WR_RDMA_READ || r->send.op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		EXPECT(s, send->byte_len == r->send.len);
	if (!s->end[RESP].got_recv)
		return;
	EXPECT(s, recv->wr_id == r->recv.id && recv->qp_num == s->end[RESP].qpn);
	EXPECT(s, recv->byte_len == r->send.len);
	EXPECT(s, recv->opcode == (r->send.op == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV));
	EXPECT(s, !(recv->wc_flags & IBV_WC_WITH_IMM) == !imm);
	if (imm)
		EXPECT(s, recv->imm_data == htobe32(0x01020304));
}

static void says(void)
{
	static const struct {
		enum ibv_wr_opcode op;
		enum ibv_wc_opcode wc;
		bool recv, uc;
	} kinds[] = {
		{ IBV_WR_SEND, IBV_WC_SEND, true, true },
		{ IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, true, true },
		{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, false, true },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, true, true },
		{ IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, false, false },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, false, false },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, false, false },
	};
	unsigned i, t;

	for (t = 0; t < 2; t++)
		for (i = 0; i < ARRAY_LEN(kinds); i++) {
			struct rule r = { .clause = "11.4.2.1: the fields of a completion",
					  .type = t ? IBV_QPT_UC : IBV_QPT_RC,
					  .send = { .op = kinds[i].op,
						    .len = kinds[i].op >= IBV_WR_ATOMIC_CMP_AND_SWP ? 8 : 1300,
						    .id = 0x1122334455667788ull },
					  .recvs = kinds[i].recv,
					  .recv.id = 0x9900aabbccddee01ull,
					  .req = { OK },
					  .resp = { kinds[i].recv ? OK : 0 },
					  .check = wc_fields,
					  .arg = kinds[i].wc };

			if (!t || kinds[i].uc)
				rule_add(r, "%s completions of a %s have its opcode", t ? "UC" : "RC",
					 op_name(kinds[i].op));
		}
}

static void wrapping(void)
{
	static const struct {
		enum ibv_wr_opcode op;
		bool recv, uc;
	} kinds[] = { { IBV_WR_SEND, true, true },
		      { IBV_WR_RDMA_WRITE, false, true },
		      { IBV_WR_RDMA_READ, false, false },
		      { IBV_WR_ATOMIC_FETCH_AND_ADD, false, false } };
	unsigned i, t;

	for (t = 0; t < 2; t++)
		for (i = 0; i < ARRAY_LEN(kinds); i++) {
			struct rule r = { .clause = "9.7.2: PSNs are modulo 2^24",
					  .type = t ? IBV_QPT_UC : IBV_QPT_RC,
					  .knob = { { .psn = 0xfffffe }, { .psn = 0xffffff } },
					  .recvs = kinds[i].recv ? 4 : 0,
					  .action = wraps,
					  .arg = kinds[i].op,
					  .check = in_order,
					  .req = { OK, OK, OK, OK },
					  .resp = { kinds[i].recv ? OK : 0, OK, OK, OK } };

			if (!t || kinds[i].uc)
				rule_add(r, "%s %ss pass the end of the PSNs", t ? "UC" : "RC", op_name(kinds[i].op));
		}
}

static const struct rule rows[] = {
	{ "RC requests of all kinds complete in their order", "9.5, 10.8.3: completions in order", .recvs = 2,
	  .action = all_good, .check = in_order, .req = { OK, OK, OK, OK, OK, OK, OK, OK }, .resp = { OK, OK } },
	{ "ERR flushes both queues in order, and later posts", "10.3.1.7: flush", .knob[RESP].upto = AT(RESET),
	  .action = to_err, .check = in_order, .req = { FLUSHED, FLUSHED, FLUSHED, FLUSHED, FLUSHED },
	  .state = { AT(ERR) } },
	{ "UC: ERR flushes receives in order", "10.3.1.7: flush", .type = IBV_QPT_UC, .recvs = 4,
	  .action = recvs_flushed, .resp = { FLUSHED, FLUSHED, FLUSHED, FLUSHED }, .state = { 0, AT(ERR) } },
	{ "UD: ERR flushes receives in order", "10.3.1.7: flush", .type = IBV_QPT_UD, .recvs = 4,
	  .action = recvs_flushed, .resp = { FLUSHED, FLUSHED, FLUSHED, FLUSHED }, .state = { 0, AT(ERR) } },
	{ "RC: ERR flushes receives in order", "10.3.1.7: flush", .recvs = 4, .action = recvs_flushed,
	  .resp = { FLUSHED, FLUSHED, FLUSHED, FLUSHED }, .state = { 0, AT(ERR) } },
	{ "RESET discards posted requests without completions", "10.3.1.1: reset removes all work requests",
	  .knob[RESP].upto = AT(RESET), .action = to_reset, .req = { OK }, .resp = { OK },
	  .state = { AT(RTS), AT(RTS) } },
	{ "after an error both sides work again from RESET", "10.3.1.1, 10.3.1.7: from ERR by RESET",
	  .action = reconnect_after_error, .req = { ST(REM_ACCESS_ERR), OK }, .event = { 0, EV(QP_ACCESS_ERR) } },
	{ "UC sends again after SQE", "10.3.1.6: SQE to RTS", .type = IBV_QPT_UC, .recvs = 1, .action = sqe_recovers,
	  .req = { ST(LOC_PROT_ERR), OK }, .resp = { OK } },
	{ "UD sends again after SQE", "10.3.1.6: SQE to RTS", .type = IBV_QPT_UD, .recvs = 1, .action = sqe_recovers,
	  .req = { ST(LOC_PROT_ERR), OK }, .resp = { OK } },
	{ "an idle queue is drained at once", "10.3.1.5: send queue drained event", .action = drain_idle, .arg = 1,
	  .event = { EV(SQ_DRAINED) }, .state = { AT(SQD) } },
	{ "no drained event where none was requested", "10.3.1.5: the event is requested", .action = drain_idle,
	  .state = { AT(SQD) } },
	{ "UC: an idle queue is drained at once", "10.3.1.5: send queue drained event", .type = IBV_QPT_UC,
	  .action = drain_idle, .arg = 1, .event = { EV(SQ_DRAINED) }, .state = { AT(SQD) } },
	{ "UD: an idle queue is drained at once", "10.3.1.5: send queue drained event", .type = IBV_QPT_UD,
	  .action = drain_idle, .arg = 1, .event = { EV(SQ_DRAINED) }, .state = { AT(SQD) } },
	{ "SQD completes requests in progress and keeps the rest until RTS", "10.3.1.5: draining", .action = drain_busy,
	  .check = in_order, .req = { OK, OK, OK, OK }, .event = { EV(SQ_DRAINED) } },
	{ "draining includes a READ in progress", "10.3.1.5: draining", .action = drain_reads, .req = { OK },
	  .event = { EV(SQ_DRAINED) } },
	{ "each draining has one event", "10.3.1.5: send queue drained event", .action = drain_twice,
	  .event = { EV(SQ_DRAINED) } },
	{ "a queue pair in SQD responds to READs", "10.3.1.5: the receive queue works on", .action = drain_answers,
	  .state = { AT(SQD) } },
	{ "attributes of a drained queue pair change in SQD", "10.3.1.5, 11.2.5.2: SQD to SQD",
	  .action = drain_changes_path, .req = { OK }, .event = { EV(SQ_DRAINED) } },
	{ "a fenced SEND waits for the READ before it", "10.8.3.3, work request operation ordering: fence", .recvs = 1,
	  .recv.len = 16384, .action = fence_after_read, .arg = IBV_WR_SEND, .req = { OK, OK }, .resp = { OK } },
	{ "a fenced WRITE waits for the READ before it", "10.8.3.3, work request operation ordering: fence",
	  .action = fence_after_read, .arg = IBV_WR_RDMA_WRITE, .req = { OK, OK } },
	{ "a READ sees the WRITE before it", "10.8.3.3, work request operation ordering: READ after WRITE",
	  .action = write_then_read, .req = { OK, OK } },
	{ "a SEND's receiver sees the WRITE before it", "9.5: WRITE is visible before SEND's completion", .recvs = 1,
	  .action = write_then_send, .req = { OK }, .resp = { OK } },
	{ "an atomic sees the WRITE before it", "10.8.3.3, work request operation ordering: atomic after WRITE",
	  .action = write_then_atomic, .req = { OK, OK } },
	{ "a READ sees the atomic before it", "10.8.3.3, work request operation ordering: READ after atomic",
	  .action = atomic_then_read, .req = { OK, OK } },
	{ "immediate data arrive after all written data", "9.5: WRITE with immediate", .recvs = 1,
	  .action = imm_is_last, .req = { OK }, .resp = { OK } },
	{ "SENDs and WRITEs with immediate take receives in order", "10.8.3: receives are consumed in order",
	  .recvs = N, .action = receives_in_order, .check = in_order, .req = { OK, OK, OK, OK, OK, OK, OK, OK },
	  .resp = { OK, OK, OK, OK, OK, OK, OK, OK } },
	{ "the completion of a signaled request confirms all before it", "10.7.3.1: selective signalling",
	  .action = signal_last, .req = { OK } },
	{ "an unsignalled WRITE has no completion", "10.7.3.1: selective signalling", .action = signal_none,
	  .arg = IBV_WR_RDMA_WRITE },
	{ "an unsignalled READ has no completion", "10.7.3.1: selective signalling", .action = signal_none,
	  .arg = IBV_WR_RDMA_READ },
	{ "an unsignalled fetch and add has no completion", "10.7.3.1: selective signalling", .action = signal_none,
	  .arg = IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "an unsignalled SEND has no completion, its receive has", "10.7.3.1: selective signalling", .recvs = 1,
	  .action = signal_none, .arg = IBV_WR_SEND, .resp = { OK } },
	{ "UD: an unsignalled SEND has no completion, its receive has", "10.7.3.1: selective signalling",
	  .type = IBV_QPT_UD, .recvs = 1, .action = signal_none, .arg = IBV_WR_SEND, .resp = { OK } },
	{ "a queue with all requests signalled ignores the flag", "11.2.5.1: signalling of all requests",
	  .knob[REQ].sig = 1, .action = signal_none, .arg = IBV_WR_RDMA_WRITE, .req = { OK } },
	{ "unsignalled requests give their slots back", "10.7.3.1: slots of unsignalled requests",
	  .action = slots_come_back },
	{ "the PSNs of both queues count packets", "9.7.2, 11.2.5.3: query", .action = psn_query, .req = { OK } },
	{ "RNR retries are counted anew for each message that gets through",
	  "9.7.5.2.8: the counter is reloaded by progress", .knob = { [REQ].rnr_retry = 2, [RESP].min_rnr_timer = 24 },
	  .action = many_rnr, .check = in_order, .req = { OK, OK, OK, OK, OK, OK, OK, OK },
	  .resp = { OK, OK, OK, OK, OK, OK, OK, OK } },
};

void order_rules(void)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		rule_add(rows[i], "%s", rows[i].name);
	errors_in_rows();
	says();
	wrapping();
}

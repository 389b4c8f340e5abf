// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Operations of RC, UC and UD: the data moved, and the response to each error of either side's memory, queue or state.
 */
#include "rules.h"

#include <errno.h>
#include <string.h>

#define SENDS  (1 << IBV_WR_SEND | 1 << IBV_WR_SEND_WITH_IMM)
#define WRITES (1 << IBV_WR_RDMA_WRITE | 1 << IBV_WR_RDMA_WRITE_WITH_IMM)
#define READS  (1 << IBV_WR_RDMA_READ)
#define ATOMIC (1 << IBV_WR_ATOMIC_CMP_AND_SWP | 1 << IBV_WR_ATOMIC_FETCH_AND_ADD)
#define WITH_R (SENDS | 1 << IBV_WR_RDMA_WRITE_WITH_IMM) /* consume a receive */

static const enum ibv_wr_opcode ops[] = {
	IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,      IBV_WR_RDMA_WRITE,           IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
};

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

/* Operations of a service (9.4). */
static unsigned carries(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? SENDS : type == IBV_QPT_UC ? SENDS | WRITES : SENDS | WRITES | READS | ATOMIC;
}

static bool is(enum ibv_wr_opcode op, unsigned set)
{
	return set >> op & 1;
}

static const struct {
	const char *name;
	unsigned len;
} lengths[] = {
	{ "one packet", 512 }, { "whole packets", 3 * MTU }, { "a short last packet", 2 * MTU + 5 }, { "no bytes", 0 }
};

static void moves(void)
{
	unsigned t, o, l;

	for (t = 0; t < 2; t++)
		for (o = 0; o < ARRAY_LEN(ops); o++)
			for (l = 0; l < ARRAY_LEN(lengths); l++) {
				struct rule r = {
					.clause = l == 3 ? "9.7.2: zero length messages" : "9.7.2: segmentation",
					.type = types[t],
					.send = { .op = ops[o], .len = lengths[l].len, .off = 64 },
					.recvs = is(ops[o], WITH_R),
					.req = { OK },
					.resp = { is(ops[o], WITH_R) ? OK : 0 },
				};

				if (!is(ops[o], carries(types[t])) || is(ops[o], ATOMIC))
					continue;
				rule_add(r, "%s %s of %s is placed", type_name(types[t]), op_name(ops[o]),
					 lengths[l].name);
			}
}

static const struct {
	enum ref ref;
	const char *name;
} refs[] = {
	{ REF_NO_KEY, "a key that was never given" },
	{ REF_STALE, "another variant of the key" },
	{ REF_DEREGD, "a deregistered region" },
	{ REF_OTHER_PD, "a region of another PD" },
	{ REF_NO_RIGHT, "a region without the right" },
	{ REF_BELOW, "memory before the region" },
	{ REF_BEYOND, "memory across the region's end" },
	{ REF_OUTSIDE, "memory behind the region" },
	{ REF_WRAPS, "memory across the end of all addresses" },
};

/* Errors of the responder's memory. */
static void remote_errors(void)
{
	unsigned t, o, f;

	for (t = 0; t < 2; t++)
		for (o = 0; o < ARRAY_LEN(ops); o++)
			for (f = 0; f < ARRAY_LEN(refs); f++) {
				bool rc = types[t] == IBV_QPT_RC, recv = is(ops[o], WITH_R);
				struct rule r = {
					.clause = rc ? "9.7.4.1.5: R_Key validation; 9.9.3; 11.6.2: remote and local "
						       "access error"
						     : "9.8, unreliable connection: R_Key validation; a UC responder "
						       "drops the message",
					.type = types[t],
					.send = { .op = ops[o],
						  .len = is(ops[o], ATOMIC) ? 8 : 512,
						  .remote = refs[f].ref },
					.recvs = recv,
					.req = { rc ? ST(REM_ACCESS_ERR) : OK },
					.resp = { rc && recv ? ST(LOC_ACCESS_ERR) : 0 },
					.state = { rc ? AT(ERR) : 0, rc ? AT(ERR) : 0 },
					.event = { 0, rc ? EV(QP_ACCESS_ERR) : 0 },
					.counted = { { RESP, "resp_remote_access_errors", 1 } },
					.data_any = !rc,
				};

				if (!is(ops[o], carries(types[t])) || is(ops[o], SENDS))
					continue;
				rule_add(r, "%s %s names %s of the responder", type_name(types[t]), op_name(ops[o]),
					 refs[f].name);
			}
}

/* The remote operation is not enabled in the responder's queue pair. */
static void not_enabled(void)
{
	static const unsigned others[] = {
		[IBV_WR_RDMA_WRITE] = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		[IBV_WR_RDMA_READ] = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	unsigned t, o;

	for (t = 0; t < 2; t++)
		for (o = 0; o < ARRAY_LEN(ops); o++) {
			bool rc = types[t] == IBV_QPT_RC, recv = is(ops[o], WITH_R);
			struct rule r = {
				.clause =
					rc ? "11.6.2: remote invalid request (operation not supported by this receive "
					     "queue); 9.7.4.1.3"
					   : "9.8, unreliable connection: a UC responder drops what its queue does not "
					     "support",
				.type = types[t],
				.knob[RESP].access = types[t] == IBV_QPT_RC ? others[ops[o]] : ZERO,
				.send = { .op = ops[o], .len = is(ops[o], ATOMIC) ? 8 : 512 },
				.recvs = recv,
				.req = { rc ? ST(REM_INV_REQ_ERR) : OK },
				.resp = { rc && recv ? FLUSHED : 0 },
				.state = { rc ? AT(ERR) : 0, rc ? AT(ERR) : 0 },
				.event = { 0, rc ? EV(QP_REQ_ERR) : 0 },
				.counted = { { RESP, "resp_remote_invalid_request", 1 } },
				.data_any = !rc,
			};

			if (!is(ops[o], carries(types[t])) || is(ops[o], SENDS))
				continue;
			rule_add(r, "%s %s is not enabled at the responder", type_name(types[t]), op_name(ops[o]));
		}
}

/* Errors of the requester's memory. */
static void local_errors(void)
{
	unsigned t, o, f;

	for (t = 0; t < ARRAY_LEN(types); t++)
		for (o = 0; o < ARRAY_LEN(ops); o++)
			for (f = 0; f < ARRAY_LEN(refs); f++) {
				bool rc = types[t] == IBV_QPT_RC, sink = is(ops[o], READS | ATOMIC);
				struct rule r = {
					.clause = rc ? "11.6.2: local protection error; 10.10.2.2: to ERR"
						     : "11.6.2: local protection error; 10.10.2.2: to SQE",
					.type = types[t],
					.send = { .op = ops[o],
						  .len = is(ops[o], ATOMIC) ? 8 : 512,
						  .local = refs[f].ref },
					.recvs = is(ops[o], WITH_R),
					.req = { ST(LOC_PROT_ERR) },
					.state = { rc ? AT(ERR) : AT(SQE) },
					.data_any = is(ops[o], ATOMIC),
				};

				if (!is(ops[o], carries(types[t])) || (!sink && refs[f].ref == REF_NO_RIGHT))
					continue;
				rule_add(r, "%s %s names %s of the requester", type_name(types[t]), op_name(ops[o]),
					 refs[f].name);
			}
}

/* Errors of a receive's memory. */
static void receive_errors(void)
{
	unsigned t, o, f;

	for (t = 0; t < 2; t++)
		for (o = 0; o < ARRAY_LEN(ops); o++)
			for (f = 0; f < ARRAY_LEN(refs); f++) {
				bool rc = types[t] == IBV_QPT_RC, send = is(ops[o], SENDS);
				struct rule r = {
					.clause = send ? "9.7.4.1.7, 9.9.3: local operation error; 11.6.2: remote "
							 "operation error"
						       : "9.7.4.1.7: the receive of a WRITE with immediate names no "
							 "memory",
					.type = types[t],
					.send = { .op = ops[o], .len = 512 },
					.recvs = 1,
					.recv = { .ref = refs[f].ref, .len = 512 },
					.req = { rc && send ? ST(REM_OP_ERR) : OK },
					.resp = { send ? ST(LOC_PROT_ERR) : OK },
					.state = { rc && send ? AT(ERR) : 0, send ? rc ? AT(ERR) : ANY_STATE : 0 },
					.may_event = { 0, send ? EV(QP_FATAL) : 0 },
					.data_any = !rc,
				};

				if (is(ops[o], WITH_R))
					rule_add(r, "%s %s meets a receive with %s", type_name(types[t]),
						 op_name(ops[o]), refs[f].name);
			}
}

static void receive_lengths(void)
{
	static const struct {
		const char *name;
		unsigned len, room, nsge;
		bool fits;
	} cases[] = {
		{ "as long as the message", 700, 700, 0, true },
		{ "in three parts as long as the message", 700, 700, 3, true },
		{ "one byte short", 701, 700, 0, false },
		{ "without a byte", 1, ZERO, 0, false },
		{ "without a byte for an empty message", 0, ZERO, 0, true },
		{ "that the second packet overruns", 2 * MTU, MTU + 8, 0, false },
		{ "that the second packet fills", MTU + 8, MTU + 8, 2, true },
	};
	unsigned t, o, c;

	for (t = 0; t < 2; t++)
		for (o = 0; o < 2; o++)
			for (c = 0; c < ARRAY_LEN(cases); c++) {
				bool rc = types[t] == IBV_QPT_RC, fits = cases[c].fits;
				struct rule r = {
					.clause = "9.7.4.1.6: length validation; 9.9.3; 11.6.2: local length error",
					.type = types[t],
					.send = { .op = ops[o], .len = cases[c].len },
					.recvs = 1,
					.recv = { .len = cases[c].room, .nsge = cases[c].nsge },
					.req = { fits || !rc ? OK : ST(REM_INV_REQ_ERR) },
					.resp = { fits ? OK : ST(LOC_LEN_ERR) },
					.state = { fits || !rc ? 0 : AT(ERR), fits ? 0
									      : rc ? AT(ERR)
										   : ANY_STATE },
					.may_event = { 0, fits ? 0 : EV(QP_REQ_ERR) },
					.counted = { { RESP, "resp_remote_invalid_request", !fits && rc } },
					.data_any = !fits,
				};

				rule_add(r, "%s %s meets a receive %s", type_name(types[t]), op_name(ops[o]),
					 cases[c].name);
			}
}

/* No receive is posted. */
static void uc_next_arrives(struct scene *s)
{
	post_ok(s, REQ, (struct req){ .op = s->rule->send.op, .len = 64 });
	wait_send(s, REQ, 1);
	wait_delivered(s);
	post_recvs(s, RESP, 1, (struct recv){ .id = 5 });
	post_ok(s, REQ, (struct req){ .op = s->rule->send.op, .len = 96 });
	EXPECT(s, wait_recv(s, RESP, 1) && s->end[RESP].rwc[0].byte_len == 96 && s->end[RESP].rwc[0].wr_id == 5);
}

static void late_receive(struct scene *s)
{
	post_ok(s, REQ, (struct req){ .op = s->rule->send.op, .len = 64 });
	while (!counter(s, RESP, "send_rnr_err") && !s->why[0])
		;
	post_recvs(s, RESP, 1, (struct recv){ .id = 5 });
}

static void not_ready(void)
{
	unsigned o, n;

	for (o = 0; o < ARRAY_LEN(ops); o++) {
		struct rule r = {
			.clause = "9.7.5.2.8: RNR NAK; 11.6.2: RNR retry counter exceeded",
			.knob[REQ].rnr_retry = ZERO,
			.send = { .op = ops[o], .len = 64 },
			.req = { ST(RNR_RETRY_EXC_ERR) },
			.state = { AT(ERR) },
			.counted = { { RESP, "send_rnr_err", 1 },
				     { REQ, "rcvd_rnr_err", 1 },
				     { REQ, "retry_rnr_exceeded_err", 1 } },
		};

		if (!is(ops[o], WITH_R)) {
			r.req[0] = OK;
			r.state[0] = 0;
			r.send.len = is(ops[o], ATOMIC) ? 8 : 64;
			r.counted[0].delta = r.counted[1].delta = r.counted[2].delta = 0;
			r.clause = "9.4: the operation consumes no receive";
			rule_add(r, "RC %s needs no receive", op_name(ops[o]));
			continue;
		}
		rule_add(r, "RC %s finds no receive", op_name(ops[o]));
		r.send.len = 0;
		rule_add(r, "RC %s of no bytes finds no receive", op_name(ops[o]));
		r.knob[REQ].rnr_retry = 7;
		r.action = late_receive;
		r.req[0] = r.resp[0] = OK;
		r.state[0] = 0;
		memset(r.counted, 0, sizeof(r.counted));
		r.clause = "9.7.5.2.8: RNR retry 7 is without end";
		rule_add(r, "RC %s waits for a receive as long as it takes", op_name(ops[o]));
		r = (struct rule){
			.clause = "9.8, unreliable connection: without a receive a UC responder drops the message",
			.type = IBV_QPT_UC,
			.send.op = ops[o],
			.action = uc_next_arrives,
			.req = { OK, OK },
			.resp = { OK }
		};
		rule_add(r, "UC %s finds no receive, the next one does", op_name(ops[o]));
	}
	for (n = 1; n < 7; n++) {
		struct rule r = {
			.clause = "9.7.5.2.8: RNR retries are counted exactly",
			.knob[REQ].rnr_retry = n,
			.send = { .op = IBV_WR_SEND, .len = 64 },
			.req = { ST(RNR_RETRY_EXC_ERR) },
			.state = { AT(ERR) },
			.counted = { { RESP, "send_rnr_err", n + 1 }, { REQ, "rcvd_rnr_err", n + 1 } },
		};

		rule_add(r, "RC: RNR retry %u is that many retries", n);
	}
}

/* The responder does not exist. */
static void destroy_responder(struct scene *s)
{
	ibv_destroy_qp(s->end[RESP].qp);
	s->end[RESP].qp = NULL;
	post_ok(s, REQ, s->rule->send);
}

static void absent(void)
{
	static const struct {
		const char *name;
		unsigned upto;
	} where[] = { { "destroyed", 0 }, { "in RESET", AT(RESET) }, { "in INIT", AT(INIT) }, { "in ERR", AT(ERR) } };
	unsigned t, o, w, n;

	for (t = 0; t < ARRAY_LEN(types); t++)
		for (o = 0; o < ARRAY_LEN(ops); o++)
			for (w = 0; w < ARRAY_LEN(where); w++) {
				bool rc = types[t] == IBV_QPT_RC;
				struct rule r = {
					.clause = rc ? "9.6.1.1.1: the packet is dropped; 9.9.2: transport retry "
						       "counter exceeded"
						     : "9.6.1.1.1: the packet is dropped; 9.8: the requester does not "
						       "wait for an "
						       "answer",
					.type = types[t],
					.knob = { [REQ] = { .timeout = 8, .retry = 1 }, [RESP].upto = where[w].upto },
					.send = { .op = ops[o], .len = is(ops[o], ATOMIC) ? 8 : 64 },
					.action = w ? NULL : destroy_responder,
					.req = { rc ? ST(RETRY_EXC_ERR) : OK },
					.state = { rc ? AT(ERR) : 0, w ? 0 : GONE },
					.counted = { { RESP, "rx_wrong_qp", rc ? 2 : 1 },
						     { REQ, "retry_exceeded_err", rc } },
					.data_any = !rc,
				};

				if (is(ops[o], carries(types[t])))
					rule_add(r, "%s %s to a queue pair that is %s", type_name(types[t]),
						 op_name(ops[o]), where[w].name);
			}
	for (n = 0; n < 8; n++) {
		struct rule r = {
			.clause = "9.9.2.1.1: time-outs are counted exactly; 9.7.6.1.3",
			.knob = { [REQ] = { .timeout = 6, .retry = n ? n : ZERO }, [RESP].upto = AT(RESET) },
			.send = { .op = IBV_WR_SEND, .len = 64 },
			.req = { ST(RETRY_EXC_ERR) },
			.state = { AT(ERR) },
			.counted = { { REQ, "local_ack_timeout_err", n + 1 }, { RESP, "rx_wrong_qp", n + 1 } },
		};

		rule_add(r, "RC: retry count %u is that many retries", n);
	}
}

/* Invalid work requests: an immediate error, or a completion with one. */
static void limits(void)
{
	unsigned t, o;

	for (t = 0; t < ARRAY_LEN(types); t++)
		for (o = 0; o < ARRAY_LEN(ops); o++) {
			bool rc = types[t] == IBV_QPT_RC, has = is(ops[o], carries(types[t]));
			struct rule r = {
				.clause = "9.4: operations of each service; 11.4.1.1, 11.6.2",
				.type = types[t],
				.send = { .op = ops[o], .len = is(ops[o], ATOMIC) ? 8 : 64 },
				.req = { ST(LOC_QP_OP_ERR) },
				.state = { rc ? AT(ERR) : AT(SQE) },
				.counted = { { REQ, "req_wqe_errors", 1 } },
			};

			if (!has) {
				rule_add(r, "%s has no %s", type_name(types[t]), op_name(ops[o]));
				continue;
			}
			r.recvs = is(ops[o], WITH_R);
			r.clause = "11.4.1.1: too many scatter/gather entries are an immediate error";
			r.req[0] = r.state[0] = r.counted[0].delta = 0;
			r.err = EINVAL;
			r.send.nsge = 5;
			r.send.len = 80;
			rule_add(r, "%s %s with one entry more than the queue has", type_name(types[t]),
				 op_name(ops[o]));
			if (is(ops[o], SENDS | WRITES)) {
				r.clause = "11.4.1.1: more inline data than agreed are an immediate error";
				r.send.nsge = 0;
				r.send.len = 65;
				r.send.flags = IBV_SEND_INLINE;
				rule_add(r, "%s %s with a byte inline more than agreed", type_name(types[t]),
					 op_name(ops[o]));
			}
			if (types[t] == IBV_QPT_UD)
				continue;
			r.send.flags = 0;
			r.send.nsge = 4;
			r.send.len = is(ops[o], ATOMIC) ? 8 : 1500;
			r.err = 0;
			r.req[0] = OK;
			r.resp[0] = r.recvs ? OK : 0;
			r.clause = "11.4.1.1: the entries of the gather list are one message";
			if (!is(ops[o], ATOMIC))
				rule_add(r, "%s %s in as many parts as the queue has", type_name(types[t]),
					 op_name(ops[o]));
			if (is(ops[o], SENDS | WRITES)) {
				r.clause = "11.4.1.1: inline data needs no L_Key";
				r.send = (struct req){
					.op = ops[o], .len = 64, .flags = IBV_SEND_INLINE, .local = REF_OK
				};
				rule_add(r, "%s %s with as much inline as agreed", type_name(types[t]),
					 op_name(ops[o]));
				r.send.local = REF_STALE;
				rule_add(r, "%s %s inline under a wrong key", type_name(types[t]), op_name(ops[o]));
			}
		}
}

static void too_long(struct scene *s)
{
	struct end *e = &s->end[REQ];
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = { .sg_list = sge,
				  .num_sge = 3,
				  .opcode = s->rule->send.op,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)region(&s->end[RESP]), s->end[RESP].mr->rkey } },
			   *bad;
	unsigned i;

	for (i = 0; i < 3; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)region(e), 1u << 30, e->mr->lkey };
	if (ibv_post_send(e->qp, &wr, &bad))
		e->swc[e->got_send++].status = IBV_WC_LOC_LEN_ERR; /* an immediate error is permitted, too */
}

static void keeps_inline(struct scene *s)
{
	struct end *e = &s->end[REQ];

	post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 64, .flags = IBV_SEND_INLINE });
	memset(region(e), 0x5a, 64);
	EXPECT(s, wait_recv(s, RESP, 1));
	EXPECT(s, !memchr(region(&s->end[RESP]) + INBOX, 0x5a, 8));
}

static void fill_queue(struct scene *s)
{
	unsigned n = 0;
	int err = 0;

	while (n < 4096 && !(err = post(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 8 })))
		n++;
	EXPECT(s, err == ENOMEM);
	EXPECT(s, n >= 32);
	post_recvs(s, RESP, 32, (struct recv){ .len = 64 });
	EXPECT(s, wait_send(s, REQ, 32));
	s->end[REQ].got_send = s->end[RESP].got_recv = 0;
	EXPECT(s, !qp_modify(s, REQ, s->end[REQ].qp, IBV_QPS_RESET, &s->rule->knob[REQ], 0));
	EXPECT(s, !qp_modify(s, RESP, s->end[RESP].qp, IBV_QPS_RESET, &s->rule->knob[RESP], 0));
	drained(s->end[REQ].scq);
	drained(s->end[RESP].rcq);
	s->end[REQ].got_send = s->end[RESP].got_recv = 0;
}

static void fill_recv(struct scene *s)
{
	unsigned n = 0;
	int err = 0;

	while (n < 4096 && !(err = post_recv(s, RESP, (struct recv){ .len = 8 })))
		n++;
	EXPECT(s, err == ENOMEM);
	EXPECT(s, n >= 32);
}

static void list_stops(struct scene *s)
{
	struct end *e = &s->end[REQ];
	struct ibv_sge sge[5];
	struct ibv_send_wr wr[3], *bad = NULL;
	unsigned i;

	for (i = 0; i < 5; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)region(e), 8, e->mr->lkey };
	for (i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){ .wr_id = i,
					      .next = i < 2 ? &wr[i + 1] : NULL,
					      .sg_list = sge,
					      .num_sge = i == 1 ? 5 : 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED };
	EXPECT(s, ibv_post_send(e->qp, wr, &bad) == EINVAL);
	EXPECT(s, bad == &wr[1]);
}

static void recv_list_stops(struct scene *s)
{
	struct end *e = &s->end[RESP];
	struct ibv_sge sge[5];
	struct ibv_recv_wr wr[3], *bad = NULL;
	unsigned i;

	for (i = 0; i < 5; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)region(e) + INBOX, 64, e->mr->lkey };
	for (i = 0; i < 3; i++)
		wr[i] = (struct ibv_recv_wr){
			.wr_id = i, .next = i < 2 ? &wr[i + 1] : NULL, .sg_list = sge, .num_sge = i == 1 ? 5 : 1
		};
	EXPECT(s, ibv_post_recv(e->qp, wr, &bad) == EINVAL);
	EXPECT(s, bad == &wr[1]);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 8 });
}

static void set_target(struct scene *s, uint64_t v)
{
	memcpy(region(&s->end[RESP]), &v, 8);
}

static uint64_t target(struct scene *s)
{
	uint64_t v;

	memcpy(&v, region(&s->end[RESP]), 8);
	return v;
}

static uint64_t fetched(struct scene *s)
{
	uint64_t v;

	memcpy(&v, region(&s->end[REQ]) + INBOX, 8);
	return v;
}

static void swap_equal(struct scene *s)
{
	set_target(s, 77);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_ATOMIC_CMP_AND_SWP, .add = 77, .swap = 1ull << 40 });
	EXPECT(s, wait_send(s, REQ, 1) && fetched(s) == 77 && target(s) == 1ull << 40);
}

static void swap_unequal(struct scene *s)
{
	set_target(s, 78);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_ATOMIC_CMP_AND_SWP, .add = 77, .swap = 1ull << 40 });
	EXPECT(s, wait_send(s, REQ, 1) && fetched(s) == 78 && target(s) == 78);
}

static void add_carries(struct scene *s)
{
	set_target(s, 0xffffffffull);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .add = 1 });
	EXPECT(s, wait_send(s, REQ, 1) && fetched(s) == 0xffffffffull && target(s) == 1ull << 32);
}

static void add_overflows(struct scene *s)
{
	set_target(s, UINT64_MAX);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .add = 3 });
	EXPECT(s, wait_send(s, REQ, 1) && fetched(s) == UINT64_MAX && target(s) == 2);
}

static void add_both_sides(struct scene *s)
{
	unsigned i;

	set_target(s, 0);
	for (i = 0; i < 16; i++)
		post_ok(s, REQ,
			(struct req){ .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .add = 1, .flags = i < 15 ? UNSIGNALED : 0 });
	EXPECT(s, wait_send(s, REQ, 1) && fetched(s) == 15 && target(s) == 16);
}

static const struct rule single_rows[] = {
	{ "inline data is taken when it is posted", "11.4.1.1: the buffer of inline data may be reused at once",
	  .recvs = 1, .action = keeps_inline, .req = { OK }, .resp = { OK } },
	{ "a full send queue refuses with an immediate error", "11.4.1.1: too many work requests posted",
	  .action = fill_queue, .state = { AT(RESET), AT(RESET) } },
	{ "a full receive queue refuses with an immediate error", "11.4.1.2: too many work requests posted",
	  .action = fill_recv },
	{ "a list of sends stops at the first that is wrong, which is named",
	  "11.4.1.1: requests before the wrong one are posted", .recvs = 2, .action = list_stops, .req = { OK },
	  .resp = { OK } },
	{ "a list of receives stops at the first that is wrong, which is named",
	  "11.4.1.2: requests before the wrong one are posted", .action = recv_list_stops, .req = { OK },
	  .resp = { OK } },
	{ "compare and swap swaps where both are equal", "9.4.5: atomic operations", .action = swap_equal,
	  .req = { OK } },
	{ "compare and swap does not change an unequal value", "9.4.5: atomic operations", .action = swap_unequal,
	  .req = { OK } },
	{ "fetch and add carries over 32 bits", "9.4.5: 64 bits", .action = add_carries, .req = { OK } },
	{ "fetch and add wraps at 64 bits", "9.4.5: overflow is ignored", .action = add_overflows, .req = { OK } },
	{ "fetch and adds in a row each see the one before", "9.4.5, 9.5: atomics in order", .action = add_both_sides,
	  .req = { OK } },
	{ "compare and swap at an odd address is refused", "9.4.5: aligned to 8 bytes; 11.4.1.1",
	  .send = { .op = IBV_WR_ATOMIC_CMP_AND_SWP, .remote = REF_UNALIGNED }, .err = EINVAL },
	{ "fetch and add at an odd address is refused", "9.4.5: aligned to 8 bytes; 11.4.1.1",
	  .send = { .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .remote = REF_UNALIGNED }, .err = EINVAL },
	{ "compare and swap into less than 8 bytes is refused", "9.4.5: 8 bytes; 11.4.1.1",
	  .send = { .op = IBV_WR_ATOMIC_CMP_AND_SWP, .len = 4 }, .err = EINVAL },
	{ "fetch and add into less than 8 bytes is refused", "9.4.5: 8 bytes; 11.4.1.1",
	  .send = { .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 4 }, .err = EINVAL },
	{ "a READ with inline data is a local error", "11.4.1.1: a READ has no data to go inline",
	  .send = { .op = IBV_WR_RDMA_READ, .len = 32, .flags = IBV_SEND_INLINE }, .req = { ST(LOC_QP_OP_ERR) },
	  .state = { AT(ERR) } },
	{ "a WRITE without a byte needs no R_Key", "C9-88: no key check of zero length",
	  .send = { .op = IBV_WR_RDMA_WRITE, .remote = REF_NO_KEY }, .req = { OK } },
	{ "a READ without a byte needs no R_Key", "C9-88: no key check of zero length",
	  .send = { .op = IBV_WR_RDMA_READ, .remote = REF_NO_KEY }, .req = { OK } },
	{ "a WRITE with immediate without a byte needs no R_Key", "C9-88: no key check of zero length", .recvs = 1,
	  .send = { .op = IBV_WR_RDMA_WRITE_WITH_IMM, .remote = REF_NO_KEY }, .req = { OK }, .resp = { OK } },
	{ "a WRITE without a byte is refused where WRITEs are not enabled",
	  "9.7.4.1.3, 11.6.2: the operation, not its length, is not supported", .knob[RESP].access = ZERO,
	  .send = { .op = IBV_WR_RDMA_WRITE }, .req = { ST(REM_INV_REQ_ERR) }, .state = { AT(ERR), AT(ERR) },
	  .event = { 0, EV(QP_REQ_ERR) } },
	{ "a READ without a byte is refused where READs are not enabled",
	  "9.7.4.1.3, 11.6.2: the operation, not its length, is not supported", .knob[RESP].access = ZERO,
	  .send = { .op = IBV_WR_RDMA_READ }, .req = { ST(REM_INV_REQ_ERR) }, .state = { AT(ERR), AT(ERR) },
	  .event = { 0, EV(QP_REQ_ERR) } },
	{ "a READ of a responder without resources is an invalid request",
	  "9.7.4.1.3, 11.6.2: insufficient buffering for a new RDMA operation", .knob[RESP].dest_rd_atomic = ZERO,
	  .send = { .op = IBV_WR_RDMA_READ, .len = 64 }, .req = { ST(REM_INV_REQ_ERR) }, .state = { AT(ERR), AT(ERR) },
	  .event = { 0, EV(QP_REQ_ERR) }, .counted = { { RESP, "resp_remote_invalid_request", 1 } } },
	{ "a fetch and add of a responder without resources is an invalid request",
	  "9.7.4.1.3, 11.6.2: insufficient buffering for a new atomic operation", .knob[RESP].dest_rd_atomic = ZERO,
	  .send = { .op = IBV_WR_ATOMIC_FETCH_AND_ADD }, .req = { ST(REM_INV_REQ_ERR) }, .state = { AT(ERR), AT(ERR) },
	  .event = { 0, EV(QP_REQ_ERR) }, .counted = { { RESP, "resp_remote_invalid_request", 1 } } },
	{ "a WRITE needs no resources of the responder", "9.7.4.1.3: of READs and atomics alone",
	  .knob[RESP].dest_rd_atomic = ZERO, .send = { .op = IBV_WR_RDMA_WRITE, .len = 64 }, .req = { OK } },
	{ "a READ of a requester without resources is a local error",
	  "9.4.4, 11.2.5.2: no READ may be outstanding; 11.6.2", .knob[REQ].rd_atomic = ZERO,
	  .send = { .op = IBV_WR_RDMA_READ, .len = 64 }, .req = { ST(LOC_QP_OP_ERR) }, .state = { AT(ERR) } },
	{ "a fetch and add of a requester without resources is a local error",
	  "9.4.4, 11.2.5.2: no atomic may be outstanding; 11.6.2", .knob[REQ].rd_atomic = ZERO,
	  .send = { .op = IBV_WR_ATOMIC_FETCH_AND_ADD }, .req = { ST(LOC_QP_OP_ERR) }, .state = { AT(ERR) } },
};

static void singles(void)
{
	static const enum ibv_wr_opcode bulky[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	unsigned i;

	for (i = 0; i < ARRAY_LEN(single_rows); i++)
		rule_add(single_rows[i], "%s", single_rows[i].name);
	for (i = 0; i < ARRAY_LEN(bulky); i++) {
		struct rule r = { .clause = "9.7.1, 11.6.2: no message is longer than 2^31 bytes",
				  .send.op = bulky[i],
				  .action = too_long,
				  .req = { ST(LOC_LEN_ERR) },
				  .state = { ANY_STATE } };

		rule_add(r, "RC %s of more than 2^31 bytes", op_name(bulky[i]));
	}
}

void requests_rules(void)
{
	moves();
	remote_errors();
	not_enabled();
	local_errors();
	receive_errors();
	receive_lengths();
	not_ready();
	absent();
	limits();
	singles();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * States of a queue pair (10.3.1): every transition of every service, its attributes, and the requests that each state
 * permits.
 */
#include "rules.h"

#include <errno.h>
#include <string.h>

#define STATES (IBV_QPS_ERR + 1)

#define ACC  IBV_QP_ACCESS_FLAGS
#define ALT  IBV_QP_ALT_PATH
#define CUR  IBV_QP_CUR_STATE
#define MIG  IBV_QP_PATH_MIG_STATE
#define RNRT IBV_QP_MIN_RNR_TIMER
#define PKEY IBV_QP_PKEY_INDEX

/*
 * 11.2.5.2, QP state transition properties: transitions that a consumer may request, and the optional attributes of RC,
 * UC and UD.
 */
static const struct {
	unsigned char from, to;
	int optional[3];
} table[] = {
	{ IBV_QPS_RESET, IBV_QPS_RESET, { 0, 0, 0 } },
	{ IBV_QPS_RESET, IBV_QPS_INIT, { 0, 0, 0 } },
	{ IBV_QPS_INIT, IBV_QPS_RESET, { 0, 0, 0 } },
	{ IBV_QPS_INIT, IBV_QPS_ERR, { 0, 0, 0 } },
	{ IBV_QPS_INIT,
	  IBV_QPS_INIT,
	  { PKEY | IBV_QP_PORT | ACC, PKEY | IBV_QP_PORT | ACC, PKEY | IBV_QP_PORT | IBV_QP_QKEY } },
	{ IBV_QPS_INIT, IBV_QPS_RTR, { ALT | ACC | PKEY, ALT | ACC | PKEY, PKEY | IBV_QP_QKEY } },
	{ IBV_QPS_RTR, IBV_QPS_RESET, { 0, 0, 0 } },
	{ IBV_QPS_RTR, IBV_QPS_ERR, { 0, 0, 0 } },
	{ IBV_QPS_RTR, IBV_QPS_RTS, { CUR | ALT | ACC | MIG | RNRT, CUR | ALT | ACC | MIG, CUR | IBV_QP_QKEY } },
	{ IBV_QPS_RTS, IBV_QPS_RESET, { 0, 0, 0 } },
	{ IBV_QPS_RTS, IBV_QPS_ERR, { 0, 0, 0 } },
	{ IBV_QPS_RTS, IBV_QPS_RTS, { CUR | ALT | ACC | MIG | RNRT, CUR | ALT | ACC | MIG, CUR | IBV_QP_QKEY } },
	{ IBV_QPS_RTS,
	  IBV_QPS_SQD,
	  { IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY } },
	{ IBV_QPS_SQD, IBV_QPS_RESET, { 0, 0, 0 } },
	{ IBV_QPS_SQD, IBV_QPS_ERR, { 0, 0, 0 } },
	{ IBV_QPS_SQD, IBV_QPS_RTS, { CUR | ALT | ACC | MIG | RNRT, CUR | ALT | ACC | MIG, CUR | IBV_QP_QKEY } },
	{ IBV_QPS_SQD,
	  IBV_QPS_SQD,
	  { IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
		    IBV_QP_MAX_DEST_RD_ATOMIC | ALT | ACC | PKEY | RNRT | MIG,
	    IBV_QP_AV | ALT | ACC | PKEY | MIG, PKEY | IBV_QP_QKEY } },
	{ IBV_QPS_SQE, IBV_QPS_RESET, { 0, 0, 0 } },
	{ IBV_QPS_SQE, IBV_QPS_ERR, { 0, 0, 0 } },
	{ IBV_QPS_SQE, IBV_QPS_RTS, { 0, CUR | ACC, CUR | IBV_QP_QKEY } },
	{ IBV_QPS_ERR, IBV_QPS_RESET, { 0, 0, 0 } },
	{ IBV_QPS_ERR, IBV_QPS_ERR, { 0, 0, 0 } },
};

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

static const struct {
	int bit;
	const char *name;
} attributes[] = {
	{ IBV_QP_CUR_STATE, "current state" },
	{ IBV_QP_EN_SQD_ASYNC_NOTIFY, "SQD notification" },
	{ IBV_QP_ACCESS_FLAGS, "access flags" },
	{ IBV_QP_PKEY_INDEX, "P_Key index" },
	{ IBV_QP_PORT, "port" },
	{ IBV_QP_QKEY, "Q_Key" },
	{ IBV_QP_AV, "address vector" },
	{ IBV_QP_PATH_MTU, "path MTU" },
	{ IBV_QP_TIMEOUT, "time-out" },
	{ IBV_QP_RETRY_CNT, "retry count" },
	{ IBV_QP_RNR_RETRY, "RNR retry" },
	{ IBV_QP_RQ_PSN, "receive PSN" },
	{ IBV_QP_MAX_QP_RD_ATOMIC, "initiator depth" },
	{ IBV_QP_ALT_PATH, "alternate path" },
	{ IBV_QP_MIN_RNR_TIMER, "RNR NAK timer" },
	{ IBV_QP_SQ_PSN, "send PSN" },
	{ IBV_QP_MAX_DEST_RD_ATOMIC, "responder resources" },
	{ IBV_QP_PATH_MIG_STATE, "migration state" },
	{ IBV_QP_DEST_QPN, "destination QPN" },
};

static int find(unsigned from, unsigned to)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].from == from && table[i].to == to)
			return (int)i;
	return -1;
}

/* Moves the requester's queue pair to @state; SQE by an invalid request. */
static void bring(struct scene *s, unsigned state)
{
	struct end *e = &s->end[REQ];
	const struct knobs *k = &s->rule->knob[REQ];
	struct ibv_wc wc;

	if (state != IBV_QPS_SQE) {
		qp_connect(s, REQ, e->qp, s->end[RESP].qpn, state, k);
		return;
	}
	qp_connect(s, REQ, e->qp, s->end[RESP].qpn, IBV_QPS_RTS, k);
	if (s->rule->type == IBV_QPT_UD)
		e->ah = ah_to(s, REQ, e->pd);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 8, .local = REF_NO_KEY });
	if (!wait_state(e->qp, IBV_QPS_SQE))
		wrong(s, "the state is not SQE");
	while (ibv_poll_cq(e->scq, 1, &wc) > 0)
		;
}

/* Valid values of all attributes. */
static void good(struct scene *s, struct ibv_qp_attr *a, unsigned to)
{
	struct end *e = &s->end[REQ];

	qp_attr(s, REQ, a, &s->rule->knob[REQ], s->end[RESP].qpn);
	a->qp_state = to;
	a->cur_qp_state = state_of(e->qp);
	a->alt_ah_attr = a->ah_attr;
	a->alt_port_num = a->port_num;
	a->path_mig_state = IBV_MIG_MIGRATED;
	a->en_sqd_async_notify = 1;
}

/* @arg: from, to; @arg2: attributes added or, if negative, omitted. */
static void modify(struct scene *s, int mask, bool allowed)
{
	struct ibv_qp *qp = s->end[REQ].qp;
	unsigned from = s->rule->arg >> 8, to = s->rule->arg & 255;
	struct ibv_qp_attr a;
	int err;

	good(s, &a, to);
	err = ibv_modify_qp(qp, &a, mask);
	if (allowed ? err : err != EINVAL)
		wrong(s, "modify: expected %s, got %s", strerror(allowed ? 0 : EINVAL), strerror(err));
	if (state_of(qp) != (allowed ? to : from))
		wrong(s, "state: expected %s, got %s", state_name(allowed ? to : from), state_name(state_of(qp)));
	wait_delivered(s); /* a drained event, if any */
	s->end[REQ].events = s->end[REQ].got_send = 0;
}

static void with_all(struct scene *s)
{
	unsigned from = s->rule->arg >> 8, to = s->rule->arg & 255;

	bring(s, from);
	modify(s, required(s->rule->type, from, to), find(from, to) >= 0);
}

static void without_one(struct scene *s)
{
	unsigned from = s->rule->arg >> 8, to = s->rule->arg & 255;

	bring(s, from);
	modify(s, required(s->rule->type, from, to) & ~(int)s->rule->arg2, false);
}

static void with_one_more(struct scene *s)
{
	unsigned from = s->rule->arg >> 8, to = s->rule->arg & 255;
	int t = s->rule->type == IBV_QPT_RC ? 0 : s->rule->type == IBV_QPT_UC ? 1 : 2, i = find(from, to);

	bring(s, from);
	modify(s, required(s->rule->type, from, to) | (int)s->rule->arg2, table[i].optional[t] & s->rule->arg2);
}

static void transitions(void)
{
	unsigned t, from, to, i;

	for (t = 0; t < 3; t++)
		for (from = 0; from < STATES; from++)
			for (to = 0; to < STATES; to++) {
				struct rule r = { .clause = "10.3.1, 11.2.5.2: transitions",
						  .type = types[t],
						  .knob = { { .upto = AT(RESET) }, { .upto = AT(RESET) } },
						  .action = with_all,
						  .arg = from << 8 | to,
						  .state = { ANY_STATE } };
				int known = find(from, to), need = required(types[t], from, to);

				if (types[t] == IBV_QPT_RC && from == IBV_QPS_SQE)
					r.cannot = "RC has no SQE state (10.3.1.6)";
				rule_add(r, "%s %s to %s is %s", type_name(types[t]), state_name(from), state_name(to),
					 known >= 0 ? "a transition" : "none");
				if (known < 0 || r.cannot)
					continue;
				for (i = 0; i < ARRAY_LEN(attributes); i++) {
					struct rule a = r;

					a.arg2 = attributes[i].bit;
					if (need & attributes[i].bit) {
						a.clause = "11.2.5.2: required attributes";
						a.action = without_one;
						rule_add(a, "%s %s to %s without the %s is refused",
							 type_name(types[t]), state_name(from), state_name(to),
							 attributes[i].name);
						continue;
					}
					a.clause = "11.2.5.2: optional attributes";
					a.action = with_one_more;
					rule_add(a, "%s %s to %s with the %s %s", type_name(types[t]), state_name(from),
						 state_name(to), attributes[i].name,
						 table[known].optional[t] & attributes[i].bit ? "is a transition"
											      : "is refused");
				}
			}
}

/* Values out of range. Each changes one attribute of a modify that is otherwise valid. */

static void a_port0(struct ibv_qp_attr *a)
{
	a->port_num = 0;
}
static void a_port3(struct ibv_qp_attr *a)
{
	a->port_num = 3;
}
static void a_pkey(struct ibv_qp_attr *a)
{
	a->pkey_index = 9999;
}
static void a_access(struct ibv_qp_attr *a)
{
	a->qp_access_flags = 1u << 19;
}
static void a_mtu0(struct ibv_qp_attr *a)
{
	a->path_mtu = 0;
}
static void a_mtu6(struct ibv_qp_attr *a)
{
	a->path_mtu = 6;
}
static void a_mtu_cap(struct ibv_qp_attr *a)
{
	a->path_mtu = IBV_MTU_4096;
}
static void a_multicast(struct ibv_qp_attr *a)
{
	a->ah_attr.dlid = 0xc001;
}
static void a_sl(struct ibv_qp_attr *a)
{
	a->ah_attr.sl = 16;
}
static void a_rate(struct ibv_qp_attr *a)
{
	a->ah_attr.static_rate = 1;
}
static void a_av_port(struct ibv_qp_attr *a)
{
	a->ah_attr.port_num = 3;
}
static void a_path_bits(struct ibv_qp_attr *a)
{
	a->ah_attr.src_path_bits = 128;
}
static void a_sgid(struct ibv_qp_attr *a)
{
	a->ah_attr.is_global = 1;
	a->ah_attr.grh.sgid_index = 200;
}
static void a_dest_rd(struct ibv_qp_attr *a)
{
	a->max_dest_rd_atomic = 255;
}
static void a_rnrt(struct ibv_qp_attr *a)
{
	a->min_rnr_timer = 32;
}
static void a_qpn(struct ibv_qp_attr *a)
{
	a->dest_qp_num = 1u << 24;
}
static void a_timeout(struct ibv_qp_attr *a)
{
	a->timeout = 32;
}
static void a_retry(struct ibv_qp_attr *a)
{
	a->retry_cnt = 8;
}
static void a_rnr(struct ibv_qp_attr *a)
{
	a->rnr_retry = 8;
}
static void a_rd(struct ibv_qp_attr *a)
{
	a->max_rd_atomic = 255;
}
static void a_armed(struct ibv_qp_attr *a)
{
	a->path_mig_state = IBV_MIG_ARMED;
}
static void a_rearm(struct ibv_qp_attr *a)
{
	a->path_mig_state = IBV_MIG_REARM;
}
static void a_alt_port(struct ibv_qp_attr *a)
{
	a->alt_port_num = 0;
}
static void a_alt_pkey(struct ibv_qp_attr *a)
{
	a->alt_pkey_index = 9999;
}
static void a_alt_timeout(struct ibv_qp_attr *a)
{
	a->alt_timeout = 32;
}
static void a_cur(struct ibv_qp_attr *a)
{
	a->cur_qp_state = IBV_QPS_SQD;
}
static void a_state(struct ibv_qp_attr *a)
{
	a->qp_state = 9;
}

static const struct {
	const char *name;
	void (*set)(struct ibv_qp_attr *a);
	unsigned from, to;
	int more;
} values[] = {
	{ "port 0", a_port0, IBV_QPS_RESET, IBV_QPS_INIT, 0 },
	{ "a port that the HCA has not", a_port3, IBV_QPS_RESET, IBV_QPS_INIT, 0 },
	{ "a P_Key index beyond the table", a_pkey, IBV_QPS_RESET, IBV_QPS_INIT, 0 },
	{ "an unknown access right", a_access, IBV_QPS_RESET, IBV_QPS_INIT, 0 },
	{ "MTU code 0", a_mtu0, IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ "MTU code 6", a_mtu6, IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ "an MTU above the port's", a_mtu_cap, IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ "a multicast DLID", a_multicast, IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ "SL 16", a_sl, IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ "a reserved static rate", a_rate, IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ "an address vector on a port that the HCA has not", a_av_port, IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ "path bits above 127", a_path_bits, IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ "a GID index beyond the table", a_sgid, IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ "more responder resources than the HCA has", a_dest_rd, IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ "RNR NAK timer 32", a_rnrt, IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ "a destination QPN above 24 bits", a_qpn, IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ "time-out 32", a_timeout, IBV_QPS_RTR, IBV_QPS_RTS, 0 },
	{ "retry count 8", a_retry, IBV_QPS_RTR, IBV_QPS_RTS, 0 },
	{ "RNR retry 8", a_rnr, IBV_QPS_RTR, IBV_QPS_RTS, 0 },
	{ "more initiator depth than the HCA has", a_rd, IBV_QPS_RTR, IBV_QPS_RTS, 0 },
	{ "migration state ARMED", a_armed, IBV_QPS_RTR, IBV_QPS_RTS, MIG },
	{ "migration state REARM without an alternate path", a_rearm, IBV_QPS_RTR, IBV_QPS_RTS, MIG },
	{ "alternate port 0", a_alt_port, IBV_QPS_RTR, IBV_QPS_RTS, ALT },
	{ "an alternate P_Key index beyond the table", a_alt_pkey, IBV_QPS_RTR, IBV_QPS_RTS, ALT },
	{ "alternate time-out 32", a_alt_timeout, IBV_QPS_RTR, IBV_QPS_RTS, ALT },
	{ "a current state that it is not in", a_cur, IBV_QPS_RTR, IBV_QPS_RTS, CUR },
	{ "an unknown state", a_state, IBV_QPS_RTR, IBV_QPS_RTS, 0 },
};

static void bad_value(struct scene *s)
{
	unsigned i = (unsigned)s->rule->arg2;
	struct ibv_qp *qp = s->end[REQ].qp;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a, before, after;
	int err;

	bring(s, values[i].from);
	good(s, &a, values[i].to);
	values[i].set(&a);
	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	ibv_query_qp(qp, &before, IBV_QP_STATE, &init);
	err = ibv_modify_qp(qp, &a, required(IBV_QPT_RC, values[i].from, values[i].to) | values[i].more);
	if (err != EINVAL)
		wrong(s, "modify: expected %s, got %s", strerror(EINVAL), strerror(err));
	ibv_query_qp(qp, &after, IBV_QP_STATE, &init);
	EXPECT(s, !memcmp(&before, &after, sizeof(before)));
}

static void bad_values(void)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(values); i++) {
		struct rule r = {
			.clause = "11.2.5.2: a value out of range is an immediate error, and nothing is changed",
			.knob = { { .upto = AT(RESET) }, { .upto = AT(RESET) } },
			.action = bad_value,
			.arg2 = i,
			.state = { ANY_STATE }
		};

		rule_add(r, "RC %s to %s with %s is refused", state_name(values[i].from), state_name(values[i].to),
			 values[i].name);
	}
}

/* Posting in each state, and its result. */

static void post_in_state(struct scene *s)
{
	unsigned state = (unsigned)s->rule->arg;
	struct end *e = &s->end[REQ];
	int err;

	qp_connect(s, RESP, s->end[RESP].qp, e->qpn, IBV_QPS_RTS, &s->rule->knob[RESP]);
	post_recvs(s, RESP, 2, (struct recv){ 0 });
	bring(s, state);
	if (s->rule->type == IBV_QPT_UD && !e->ah)
		e->ah = ah_to(s, REQ, e->pd);
	err = post(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 16 });
	if (state <= IBV_QPS_RTR ? !err : err)
		wrong(s, "posting: %s", strerror(err));
	while (state < s->rule->arg2) {
		state = s->rule->arg2 == IBV_QPS_ERR && state > IBV_QPS_RESET ? IBV_QPS_ERR : state + 1;
		EXPECT(s, !qp_modify(s, REQ, e->qp, state, &s->rule->knob[REQ], s->end[RESP].qpn));
	}
	if (s->rule->arg2)
		wait_delivered(s);
	if (state != IBV_QPS_SQD)
		return;
	wait_delivered(s);
	EXPECT(s, !s->end[REQ].got_send && !s->end[RESP].got_recv);
	EXPECT(s, !qp_modify(s, REQ, e->qp, IBV_QPS_RTS, &s->rule->knob[REQ], 0));
}

static void recv_in_state(struct scene *s)
{
	unsigned state = (unsigned)s->rule->arg;
	struct end *e = &s->end[REQ], *peer = &s->end[RESP];

	qp_connect(s, RESP, peer->qp, e->qpn, IBV_QPS_RTS, &s->rule->knob[RESP]);
	if (s->rule->type == IBV_QPT_UD)
		peer->ah = ah_to(s, RESP, peer->pd);
	bring(s, state);
	post_recvs(s, REQ, 1, (struct recv){ .id = 3 });
	if (state == IBV_QPS_INIT)
		EXPECT(s, !qp_modify(s, REQ, e->qp, IBV_QPS_RTR, &s->rule->knob[REQ], peer->qpn));
	if (state != IBV_QPS_ERR)
		post_ok(s, RESP, (struct req){ .op = IBV_WR_SEND, .len = 16 });
	EXPECT(s, wait_recv(s, REQ, 1) && e->rwc[0].wr_id == 3);
	EXPECT(s, e->rwc[0].status == (state == IBV_QPS_ERR ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS));
	if (state != IBV_QPS_ERR)
		EXPECT(s, wait_send(s, RESP, 1) && s->end[RESP].swc[0].status == IBV_WC_SUCCESS);
}

/* 10.8.2: a request whose post has failed is not in the queue. */
static void refused(enum ibv_qp_type type, unsigned state, enum ibv_qp_state later)
{
	struct rule r = { .clause = "10.8.2: a post that fails at once",
			  .type = type,
			  .knob = { { .upto = AT(RESET) }, { .upto = AT(RESET) } },
			  .action = post_in_state,
			  .arg = state,
			  .arg2 = later,
			  .state = { later + 1, AT(RTS) } };

	rule_add(r, "%s a send refused in %s is not %s", type_name(type), state_name(state),
		 later == IBV_QPS_RTS ? "sent in RTS" : "flushed in ERR");
}

static void posting(void)
{
	static const char *const sends[] = { "an immediate error",
					     "an immediate error",
					     "an immediate error",
					     "carried out",
					     "kept until RTS",
					     "flushed",
					     "flushed" };
	unsigned t, state;

	for (t = 0; t < 3; t++)
		for (state = 0; state < STATES; state++) {
			bool flushed = state >= IBV_QPS_SQE, done = state == IBV_QPS_RTS || state == IBV_QPS_SQD;
			struct rule r = {
				.clause = "10.3.1: what each state does with work requests; 10.8.2, C10-96, C10-97.2.1",
				.type = types[t],
				.knob = { { .upto = AT(RESET) }, { .upto = AT(RESET) } },
				.action = post_in_state,
				.arg = state,
				.req = { flushed ? FLUSHED
					 : done  ? OK
						 : 0 },
				.resp = { done ? OK : 0 },
				.state = { state == IBV_QPS_SQD ? AT(RTS) : state + 1, AT(RTS) }
			};

			if (types[t] == IBV_QPT_RC && state == IBV_QPS_SQE)
				r.cannot = "RC has no SQE state (10.3.1.6)";
			rule_add(r, "%s a send posted in %s is %s", type_name(types[t]), state_name(state),
				 sends[state]);
			if (state <= IBV_QPS_RTR) {
				refused(types[t], state, IBV_QPS_RTS);
				refused(types[t], state, IBV_QPS_ERR);
			}
			r.action = recv_in_state;
			r.req[0] = r.resp[0] = 0;
			r.state[0] = state == IBV_QPS_INIT ? AT(RTR) : state + 1;
			r.may_event[0] = EV(COMM_EST);
			if (state == IBV_QPS_RESET)
				r.cannot = "receives go into memory that the provider shares, without a call that "
					   "could refuse";
			rule_add(r, "%s a receive posted in %s is %s", type_name(types[t]), state_name(state),
				 state == IBV_QPS_RESET ? "an immediate error"
				 : state == IBV_QPS_ERR ? "flushed"
							: "used");
		}
}

/* Packets received in each state. */

static void arrive(struct scene *s)
{
	unsigned state = (unsigned)s->rule->arg;
	struct end *e = &s->end[REQ];

	/* the roles are swapped: bring() moves the requester's queue pair, to which the responder's sends */
	qp_connect(s, RESP, s->end[RESP].qp, e->qpn, IBV_QPS_RTS, &s->rule->knob[RESP]);
	if (s->rule->type == IBV_QPT_UD)
		s->end[RESP].ah = ah_to(s, RESP, s->end[RESP].pd);
	bring(s, state);
	post_recvs(s, REQ, 1, (struct recv){ 0 });
	post_ok(s, RESP, (struct req){ .op = IBV_WR_SEND, .len = 16 });
	EXPECT(s, wait_recv(s, REQ, 1) && e->rwc[0].status == IBV_WC_SUCCESS && e->rwc[0].byte_len >= 16);
	EXPECT(s, wait_send(s, RESP, 1) && s->end[RESP].swc[0].status == IBV_WC_SUCCESS);
}

static void arriving(void)
{
	unsigned t, state;

	for (t = 0; t < 3; t++)
		for (state = IBV_QPS_RTR; state <= IBV_QPS_SQE; state++) {
			struct rule r = { .clause = "10.3.1: RTR, RTS, SQD and SQE process what arrives",
					  .type = types[t],
					  .knob = { { .upto = AT(RESET) }, { .upto = AT(RESET) } },
					  .action = arrive,
					  .arg = state,
					  .state = { state + 1, AT(RTS) },
					  .event = { state == IBV_QPS_RTR && types[t] != IBV_QPT_UD ? EV(COMM_EST)
												    : 0 } };

			if (types[t] == IBV_QPT_RC && state == IBV_QPS_SQE)
				r.cannot = "RC has no SQE state (10.3.1.6)";
			rule_add(r, "%s a message that arrives in %s is received", type_name(types[t]),
				 state_name(state));
		}
}

void states_rules(void)
{
	transitions();
	bad_values();
	posting();
	arriving();
}

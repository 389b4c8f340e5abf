// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows of the state table of the active side, IBTA 12.9.6: in each state, each message from a simulated peer. A row
 * has the messages that the manager sends in response, the events, and the next state.
 */
#include "emu/cm/fixture.h"
#include "emu/lib/row.h"

#define REMOTE_ID  0xabcd
#define REMOTE_QPN 0x4711

struct peer {
	struct mad_agent *agent;
	char trace[64]; /* a letter for each message from the manager */
	u8 last[MAD_SIZE];
};

static const struct {
	u16 attr;
	char letter;
} letters[] = {
	{ CM_ATTR_REQ, 'Q' }, { CM_ATTR_MRA, 'M' },      { CM_ATTR_REJ, 'R' },  { CM_ATTR_REP, 'P' },
	{ CM_ATTR_RTU, 'U' }, { CM_ATTR_LAP, 'L' },      { CM_ATTR_DREQ, 'D' }, { CM_ATTR_DREP, 'X' },
	{ CM_ATTR_APR, 'A' }, { CM_ATTR_SIDR_REQ, 'S' },
};

static void peer_receive(void *ctx, const u8 *data, u32 len, const struct mad_addr *from, void *cookie)
{
	struct peer *p = ctx;
	size_t n = strlen(p->trace), i;

	memcpy(p->last, data, sizeof(p->last));
	for (i = 0; i < ARRAY_SIZE(letters); i++)
		if (letters[i].attr == wire_get(data, MAD_ATTR_ID) && n + 1 < sizeof(p->trace))
			p->trace[n] = letters[i].letter;
}

struct bench {
	struct cable c;
	struct side a;
	struct peer peer;
};

static void bench_open(struct bench *b)
{
	struct mad_agent_reg reg = {
		.qpn = MAD_QPN_GSI,
		.mgmt_class = MAD_CLASS_CM,
		.class_version = MAD_CLASS_VERSION_CM,
		.methods = { 1ull << MAD_METHOD_SEND },
		.ctx = &b->peer,
		.recv = peer_receive,
	};

	memset(b, 0, sizeof(*b));
	cable_open(&b->c);
	side_open(&b->a, b->c.loop, b->c.ma, 1);
	b->a.silent = true;
	if (mad_agent_register(b->c.mb, &reg, &b->peer.agent))
		abort();
}

static void bench_close(struct bench *b)
{
	if (b->a.id)
		cm_id_destroy(b->a.id);
	cm_destroy(b->a.cm);
	mad_agent_unregister(b->peer.agent);
	cable_close(&b->c);
}

/* ---- messages of the peer ---- */

enum say {
	SAY_REP,
	SAY_REP_OTHER, /* with another communication ID than before */
	SAY_REJ_REQ,
	SAY_REJ_REP,
	SAY_REJ_OTHER_ID,
	SAY_REJ_TIMEOUT,
	SAY_REJ_STALE,
	SAY_MRA_REQ,
	SAY_MRA_REP,
	SAY_MRA_LAP,
	SAY_RTU,
	SAY_DREQ,
	SAY_DREQ_QPN, /* with a wrong QPN */
	SAY_DREP,
	SAY_LAP,
	SAY_APR,
	SAY_SIDR_REP,
	SAYS
};

static const struct {
	const char *name;
	u16 attr;
	u8 message;
	u16 reason;
} says[SAYS] = {
	[SAY_REP] = { "REP", CM_ATTR_REP, 0, 0 },
	[SAY_REP_OTHER] = { "REP with another communication ID", CM_ATTR_REP, 0, 0 },
	[SAY_REJ_REQ] = { "REJ of REQ", CM_ATTR_REJ, CM_MESSAGE_REQ, CM_REJ_CONSUMER },
	[SAY_REJ_REP] = { "REJ of no message", CM_ATTR_REJ, CM_MESSAGE_OTHER, CM_REJ_CONSUMER },
	[SAY_REJ_OTHER_ID] = { "REJ with another communication ID", CM_ATTR_REJ, CM_MESSAGE_OTHER, CM_REJ_CONSUMER },
	[SAY_REJ_TIMEOUT] = { "REJ 'timeout'", CM_ATTR_REJ, CM_MESSAGE_OTHER, CM_REJ_TIMEOUT },
	[SAY_REJ_STALE] = { "REJ 'stale connection'", CM_ATTR_REJ, CM_MESSAGE_REQ, CM_REJ_STALE_CONN },
	[SAY_MRA_REQ] = { "MRA for REQ", CM_ATTR_MRA, CM_MESSAGE_REQ, 0 },
	[SAY_MRA_REP] = { "MRA for REP", CM_ATTR_MRA, CM_MESSAGE_REP, 0 },
	[SAY_MRA_LAP] = { "MRA for LAP", CM_ATTR_MRA, CM_MESSAGE_LAP, 0 },
	[SAY_RTU] = { "RTU", CM_ATTR_RTU, 0, 0 },
	[SAY_DREQ] = { "DREQ", CM_ATTR_DREQ, 0, 0 },
	[SAY_DREQ_QPN] = { "DREQ with a wrong QPN", CM_ATTR_DREQ, 0, 0 },
	[SAY_DREP] = { "DREP", CM_ATTR_DREP, 0, 0 },
	[SAY_LAP] = { "LAP", CM_ATTR_LAP, 0, 0 },
	[SAY_APR] = { "APR", CM_ATTR_APR, 0, 0 },
	[SAY_SIDR_REP] = { "SIDR_REP", CM_ATTR_SIDR_REP, 0, 0 },
};

static void peer_say(struct bench *b, enum say say)
{
	struct mad_addr to = { .qpn = MAD_QPN_GSI, .qkey = MAD_QKEY_WELL_KNOWN, .lid = 1 };
	bool other = say == SAY_REP_OTHER || say == SAY_REJ_OTHER_ID;
	u8 mad[MAD_SIZE];

	cm_mad_init(mad, says[say].attr, b->a.id->tid);
	wire_set(mad, CM_LOCAL_COMM_ID, other ? REMOTE_ID + 1 : REMOTE_ID);
	wire_set(mad, CM_REMOTE_COMM_ID, b->a.id->local_id);
	switch (says[say].attr) {
	case CM_ATTR_REP:
		wire_set(mad, CM_REP_LOCAL_QPN, REMOTE_QPN);
		wire_set(mad, CM_REP_LOCAL_CA_GUID, 2);
		break;
	case CM_ATTR_REJ:
		cm_mad_rej(mad, other ? REMOTE_ID + 1 : REMOTE_ID, b->a.id->local_id, says[say].message,
			   says[say].reason, 2);
		break;
	case CM_ATTR_MRA:
		wire_set(mad, CM_MRA_MESSAGE, says[say].message);
		wire_set(mad, CM_MRA_SERVICE_TIMEOUT, 20);
		break;
	case CM_ATTR_DREQ:
		wire_set(mad, CM_DREQ_REMOTE_QPN, b->a.qpn + (say == SAY_DREQ_QPN));
		break;
	case CM_ATTR_LAP:
		wire_set(mad, CM_LAP_REMOTE_QPN, b->a.qpn);
		break;
	case CM_ATTR_SIDR_REP:
		wire_set(mad, CM_SIDR_REP_REQUEST_ID, b->a.id->local_id);
		break;
	}
	(void)mad_send(b->peer.agent, mad, MAD_SIZE, &to, 0, 0, NULL);
	cable_run(&b->c, 1);
}

/* ---- entering a state ---- */

static void request_connection(struct bench *b)
{
	struct cm_req req = { .service_id = SERVICE,
			      .path = path_to(&b->c.a, &b->c.b),
			      .port = 1,
			      .pkey = WIRE_PKEY_DEFAULT_FULL,
			      .transport = CM_RC,
			      .qpn = b->a.qpn,
			      .response_timeout = 18,
			      .max_retries = 3 };

	if (cm_send_req(b->a.id, &req))
		abort();
}

static void request_service(struct bench *b)
{
	struct cm_sidr_req req = { .service_id = SERVICE,
				   .path = path_to(&b->c.a, &b->c.b),
				   .port = 1,
				   .pkey = WIRE_PKEY_DEFAULT_FULL,
				   .response_timeout = 18,
				   .max_retries = 3 };

	if (cm_send_sidr_req(b->a.id, &req))
		abort();
}

/* The states of the active side, each with the event that leads to it from the previous one. */
static void bench_enter(struct bench *b, enum cm_state state)
{
	b->a.id = cm_id_create(b->a.cm, side_event, &b->a);
	if (state == CM_ST_SIDR_REQ_SENT)
		request_service(b);
	else
		request_connection(b);
	cable_run(&b->c, 1);
	if (state == CM_ST_SIDR_REQ_SENT || state == CM_ST_REQ_SENT)
		return;
	if (state == CM_ST_MRA_REQ_RCVD) {
		peer_say(b, SAY_MRA_REQ);
		return;
	}
	peer_say(b, SAY_REP);
	if (state == CM_ST_REP_RCVD)
		return;
	if (state == CM_ST_MRA_REP_SENT) {
		peer_say(b, SAY_REP);
		return;
	}
	(void)cm_send_rtu(b->a.id, NULL, 0);
	if (state == CM_ST_ESTABLISHED)
		return;
	if (state == CM_ST_DREQ_RCVD) {
		peer_say(b, SAY_DREQ);
		return;
	}
	(void)cm_send_dreq(b->a.id, NULL, 0);
	cable_run(&b->c, 1);
	if (state == CM_ST_TIMEWAIT)
		peer_say(b, SAY_DREP);
}

/* Enters the state with no messages pending and an empty trace. */
static void bench_start(struct bench *b, enum cm_state state)
{
	bench_enter(b, state);
	cable_run(&b->c, 1);
	memset(b->peer.trace, 0, sizeof(b->peer.trace));
	memset(b->a.trace, 0, sizeof(b->a.trace));
}

/* ---- the rows ---- */

static const enum cm_state states[] = {
	CM_ST_REQ_SENT,  CM_ST_MRA_REQ_RCVD, CM_ST_REP_RCVD, CM_ST_MRA_REP_SENT,  CM_ST_ESTABLISHED,
	CM_ST_DREQ_SENT, CM_ST_DREQ_RCVD,    CM_ST_TIMEWAIT, CM_ST_SIDR_REQ_SENT,
};

/* Combinations without a row are discarded: no response, no event, no change of state. */
static const struct expected {
	enum cm_state state;
	enum say say;
	const char *answers, *events;
	enum cm_state after;
} table[] = {
	{ CM_ST_REQ_SENT, SAY_REP, "", "P", CM_ST_REP_RCVD },
	{ CM_ST_REQ_SENT, SAY_REP_OTHER, "", "P", CM_ST_REP_RCVD }, /* the first response determines the peer's ID */
	{ CM_ST_REQ_SENT, SAY_REJ_REQ, "", "R", CM_ST_IDLE },
	{ CM_ST_REQ_SENT, SAY_REJ_REP, "", "R", CM_ST_IDLE },
	{ CM_ST_REQ_SENT, SAY_REJ_OTHER_ID, "", "R", CM_ST_IDLE },
	{ CM_ST_REQ_SENT, SAY_REJ_STALE, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_REQ_SENT, SAY_MRA_REQ, "", "", CM_ST_MRA_REQ_RCVD },
	{ CM_ST_MRA_REQ_RCVD, SAY_REP, "", "P", CM_ST_REP_RCVD },
	{ CM_ST_MRA_REQ_RCVD, SAY_REP_OTHER, "", "P", CM_ST_REP_RCVD },
	{ CM_ST_MRA_REQ_RCVD, SAY_REJ_REQ, "", "R", CM_ST_IDLE },
	{ CM_ST_MRA_REQ_RCVD, SAY_REJ_REP, "", "R", CM_ST_IDLE },
	{ CM_ST_MRA_REQ_RCVD, SAY_REJ_OTHER_ID, "", "R", CM_ST_IDLE },
	{ CM_ST_MRA_REQ_RCVD, SAY_REJ_STALE, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_REP_RCVD, SAY_REP, "M", "", CM_ST_MRA_REP_SENT },
	{ CM_ST_REP_RCVD, SAY_REP_OTHER, "R", "", CM_ST_REP_RCVD },
	{ CM_ST_REP_RCVD, SAY_REJ_REQ, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_REP_RCVD, SAY_REJ_REP, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_REP_RCVD, SAY_REJ_TIMEOUT, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_REP_RCVD, SAY_REJ_STALE, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_MRA_REP_SENT, SAY_REP, "M", "", CM_ST_MRA_REP_SENT },
	{ CM_ST_MRA_REP_SENT, SAY_REP_OTHER, "R", "", CM_ST_MRA_REP_SENT },
	{ CM_ST_MRA_REP_SENT, SAY_REJ_REQ, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_MRA_REP_SENT, SAY_REJ_REP, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_MRA_REP_SENT, SAY_REJ_TIMEOUT, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_MRA_REP_SENT, SAY_REJ_STALE, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_ESTABLISHED, SAY_REP, "U", "", CM_ST_ESTABLISHED },
	{ CM_ST_ESTABLISHED, SAY_REP_OTHER, "R", "", CM_ST_ESTABLISHED },
	{ CM_ST_ESTABLISHED, SAY_REJ_REQ, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_ESTABLISHED, SAY_REJ_REP, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_ESTABLISHED, SAY_REJ_TIMEOUT, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_ESTABLISHED, SAY_REJ_STALE, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_ESTABLISHED, SAY_DREQ, "", "D", CM_ST_DREQ_RCVD },
	{ CM_ST_ESTABLISHED, SAY_LAP, "A", "", CM_ST_ESTABLISHED }, /* rejected: the passive side proposes no path */
	{ CM_ST_DREQ_SENT, SAY_REP_OTHER, "R", "", CM_ST_DREQ_SENT },
	{ CM_ST_DREQ_SENT, SAY_REJ_REQ, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_DREQ_SENT, SAY_REJ_REP, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_DREQ_SENT, SAY_REJ_TIMEOUT, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_DREQ_SENT, SAY_REJ_STALE, "", "R", CM_ST_TIMEWAIT },
	{ CM_ST_DREQ_SENT, SAY_DREQ, "", "D", CM_ST_DREQ_RCVD },
	{ CM_ST_DREQ_SENT, SAY_DREP, "", "X", CM_ST_TIMEWAIT },
	{ CM_ST_DREQ_RCVD, SAY_REP_OTHER, "R", "", CM_ST_DREQ_RCVD },
	{ CM_ST_DREQ_RCVD, SAY_DREP, "", "X", CM_ST_TIMEWAIT },
	{ CM_ST_TIMEWAIT, SAY_REP_OTHER, "R", "", CM_ST_TIMEWAIT },
	{ CM_ST_TIMEWAIT, SAY_DREQ, "X", "", CM_ST_TIMEWAIT },
	{ CM_ST_TIMEWAIT, SAY_DREQ_QPN, "X", "", CM_ST_TIMEWAIT },
	{ CM_ST_SIDR_REQ_SENT, SAY_SIDR_REP, "", "s", CM_ST_IDLE },
};

static const struct expected *expected_of(enum cm_state state, enum say say)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].state == state && table[i].say == say)
			return &table[i];
	return NULL;
}

static void one_row(enum cm_state state, enum say say)
{
	const struct expected *e = expected_of(state, say), discarded = { state, say, "", "", state };
	char name[96];
	struct bench b;
	bool ok;

	snprintf(name, sizeof(name), "%s in %s (12.9.6)", says[say].name, cm_state_name(state));
	bench_open(&b);
	bench_start(&b, state);
	ok = b.a.id->state == state;
	if (!ok)
		printf("%s: not entered, but %s\n", name, cm_state_name(b.a.id->state));
	peer_say(&b, say);
	e = e ? e : &discarded;
	if (strcmp(b.peer.trace, e->answers) || strcmp(b.a.trace, e->events) || b.a.id->state != e->after) {
		printf("%s: expected responses '%s', events '%s', %s; got '%s', '%s', %s\n", name, e->answers,
		       e->events, cm_state_name(e->after), b.peer.trace, b.a.trace, cm_state_name(b.a.id->state));
		ok = false;
	}
	row(0, name, ok);
	bench_close(&b);
}

/* ---- retransmissions and timeouts ---- */

static bool request_ends(struct bench *b)
{
	bench_enter(b, CM_ST_REQ_SENT);
	cable_run(&b->c, 60000);
	return !strcmp(b->peer.trace, "QQQQR") && !strcmp(b->a.trace, "q") &&
	       wire_get(b->peer.last, CM_REJ_REASON) == CM_REJ_TIMEOUT;
}

static bool request_waits_for_mra(struct bench *b)
{
	bench_start(b, CM_ST_MRA_REQ_RCVD); /* 4.3 s, and the response time of 1.1 s */
	cable_run(&b->c, 5000);
	return !*b->peer.trace && b->a.id->state == CM_ST_MRA_REQ_RCVD;
}

static bool disconnect_ends(struct bench *b)
{
	bench_start(b, CM_ST_DREQ_SENT);
	cable_run(&b->c, 60000);
	return !strcmp(b->peer.trace, "DDD") && !strcmp(b->a.trace, "ex") && b->a.id->state == CM_ST_IDLE;
}

static bool service_request_ends(struct bench *b)
{
	bench_enter(b, CM_ST_SIDR_REQ_SENT);
	cable_run(&b->c, 60000);
	return !strcmp(b->peer.trace, "SSSS") && !strcmp(b->a.trace, "i");
}

static bool retries_are_the_same(struct bench *b)
{
	u8 first[MAD_SIZE];

	bench_enter(b, CM_ST_REQ_SENT);
	memcpy(first, b->peer.last, sizeof(first));
	cable_run(&b->c, 2000);
	return !strcmp(b->peer.trace, "QQ") && !memcmp(first, b->peer.last, sizeof(first));
}

static const struct {
	const char *name;
	bool (*run)(struct bench *b);
} others[] = {
	{ "REQ is sent 1 + Max CM Retries times, then REJ 'timeout' (12.9.8.5)", request_ends },
	{ "an MRA delays a REQ by its service timeout (12.6.6)", request_waits_for_mra },
	{ "DREQ is sent 1 + Max CM Retries times, then timewait (12.9.8.5)", disconnect_ends },
	{ "SIDR_REQ is sent 1 + Max CM Retries times (12.11.3)", service_request_ends },
	{ "a REQ that is sent again is the same, TID and all (12.9.8.5)", retries_are_the_same },
};

int main(void)
{
	struct bench b;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(states); i++)
		for (k = 0; k < SAYS; k++)
			one_row(states[i], (enum say)k);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		bench_open(&b);
		row(0, others[i].name, others[i].run(&b));
		bench_close(&b);
	}
	return rows_end();
}

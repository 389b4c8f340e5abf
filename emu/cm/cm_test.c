// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows of the communication manager: exchanges between two of them with messages lost, rejected, repeated, and with
 * peers that have restarted or are gone. A trace has a letter per event: Q request, P REP, U RTU, R REJ, D DREQ, X
 * DREP, x end of timewait, S SIDR request, s its response; q p e i: no response to REQ, REP, DREQ, SIDR_REQ.
 */
#include "emu/cm/fixture.h"
#include "emu/lib/row.h"

/* ---- lost messages ---- */

struct loss {
	u16 attr;
	u32 times;
};

static struct loss loss_a, loss_b;

static bool lose(struct loss *l, const struct wire_packet *p)
{
	if (!l->times || wire_get(mad_of(p), MAD_ATTR_ID) != l->attr)
		return false;
	l->times--;
	return true;
}

static bool drop_a(struct end *e, const struct wire_packet *p)
{
	return lose(&loss_a, p);
}

static bool drop_b(struct end *e, const struct wire_packet *p)
{
	return lose(&loss_b, p);
}

static void pair_lose(struct pair *p, const struct loss *a, const struct loss *b)
{
	loss_a = *a;
	loss_b = *b;
	p->c.a.drop = drop_a;
	p->c.b.drop = drop_b;
}

static const struct connect_row {
	const char *name;
	struct loss a, b;
	const char *trace_a, *trace_b;  /* after connect and 10 s, and after A's disconnect and 10 s more */
	enum cm_state state_a, state_b; /* before the disconnect */
	u16 reason;
	enum answer answer;
} connects[] = {
	{ "plain", { 0 }, { 0 }, "PXx", "QUDx", CM_ST_ESTABLISHED, CM_ST_ESTABLISHED },
	{ "REQ lost once", { CM_ATTR_REQ, 1 }, { 0 }, "PXx", "QUDx", CM_ST_ESTABLISHED, CM_ST_ESTABLISHED },
	{ "REQ lost thrice", { CM_ATTR_REQ, 3 }, { 0 }, "PXx", "QUDx", CM_ST_ESTABLISHED, CM_ST_ESTABLISHED },
	{ "every REQ lost", { CM_ATTR_REQ, 9 }, { 0 }, "q", "", CM_ST_IDLE, CM_ST_IDLE },
	{ "REP lost once", { 0 }, { CM_ATTR_REP, 1 }, "PXx", "QUDx", CM_ST_ESTABLISHED, CM_ST_ESTABLISHED },
	{ "every REP lost", { 0 }, { CM_ATTR_REP, 99 }, "q", "QR", CM_ST_IDLE, CM_ST_IDLE, CM_REJ_TIMEOUT },
	{ "RTU lost once", { CM_ATTR_RTU, 1 }, { 0 }, "PXx", "QUDx", CM_ST_ESTABLISHED, CM_ST_ESTABLISHED },
	{ "RTU lost twice", { CM_ATTR_RTU, 2 }, { 0 }, "PXx", "QUDx", CM_ST_ESTABLISHED, CM_ST_ESTABLISHED },
	{ "every RTU lost", { CM_ATTR_RTU, 99 }, { 0 }, "PRx", "Qpx", CM_ST_IDLE, CM_ST_IDLE, CM_REJ_TIMEOUT },
	{ "DREQ lost once", { CM_ATTR_DREQ, 1 }, { 0 }, "PXx", "QUDx", CM_ST_ESTABLISHED, CM_ST_ESTABLISHED },
	{ "every DREQ lost", { CM_ATTR_DREQ, 99 }, { 0 }, "Pex", "QU", CM_ST_ESTABLISHED, CM_ST_ESTABLISHED },
	{ "DREP lost once", { 0 }, { CM_ATTR_DREP, 1 }, "PXx", "QUDx", CM_ST_ESTABLISHED, CM_ST_ESTABLISHED },
	{ "rejected", { 0 }, { 0 }, "R", "Q", CM_ST_IDLE, CM_ST_IDLE, CM_REJ_CONSUMER, ANSWER_REJECT },
	{ "REJ lost once",
	  { 0 },
	  { CM_ATTR_REJ, 1 },
	  "R",
	  "QQ",
	  CM_ST_IDLE,
	  CM_ST_IDLE,
	  CM_REJ_CONSUMER,
	  ANSWER_REJECT },
	{ "no resources", { 0 }, { 0 }, "R", "Q", CM_ST_IDLE, CM_ST_IDLE, CM_REJ_NO_RESOURCES, ANSWER_REFUSE },
	{ "no response", { 0 }, { 0 }, "", "Q", CM_ST_MRA_REQ_RCVD, CM_ST_MRA_REQ_SENT, 0, ANSWER_NEVER },
};

static enum cm_state state_of(const struct side *s)
{
	return s->id ? s->id->state : CM_ST_IDLE;
}

static bool one_connect(const struct connect_row *r)
{
	struct pair p;
	bool ok;

	pair_open(&p);
	pair_lose(&p, &r->a, &r->b);
	p.b.answer = r->answer;
	pair_connect(&p);
	cable_run(&p.c, 3000);
	ok = state_of(&p.a) == r->state_a && state_of(&p.b) == r->state_b;
	if (!ok)
		printf("%s: states %s, %s\n", r->name, cm_state_name(state_of(&p.a)), cm_state_name(state_of(&p.b)));
	if (state_of(&p.a) == CM_ST_ESTABLISHED)
		ok &= cm_send_dreq(p.a.id, NULL, 0) == 0;
	cable_run(&p.c, 10000);
	if (strcmp(p.a.trace, r->trace_a) || strcmp(p.b.trace, r->trace_b)) {
		printf("%s: traces %s, %s\n", r->name, p.a.trace, p.b.trace);
		ok = false;
	}
	if (r->reason && p.a.reason != r->reason && p.b.reason != r->reason) {
		printf("%s: reasons %u, %u\n", r->name, p.a.reason, p.b.reason);
		ok = false;
	}
	pair_close(&p);
	return ok;
}

/* ---- attributes from the messages ---- */

static bool attributes(struct pair *p)
{
	struct cm_qp a, b;
	bool ok;

	pair_connect(p);
	cable_run(&p->c, 100);
	ok = !cm_id_qp(p->a.id, true, &a) && !cm_id_qp(p->b.id, true, &b);
	ok &= a.remote_qpn == p->b.qpn && b.remote_qpn == p->a.qpn;
	ok &= a.rq_psn == 0x111111 && b.sq_psn == 0x111111 && a.sq_psn == 0x222222 && b.rq_psn == 0x222222;
	/* each side may have as many outstanding READs as the other has responder resources */
	ok &= a.initiator_depth == 3 && a.responder_resources == 4 && b.initiator_depth == 4 &&
	      b.responder_resources == 3;
	ok &= b.retry_count == 6 && b.rnr_retry == 7 && a.rnr_retry == 5;
	ok &= b.path.dlid == 1 && b.path.slid == 2 && b.path.mtu == WIRE_MTU_2048 && b.path.pkey == 0xffff;
	return ok && wire_gid_equal(&b.path.dgid, &p->c.a.port.attr.gid[0]);
}

static bool private_data(struct pair *p)
{
	p->b.answer = ANSWER_REJECT;
	pair_connect(p);
	cable_run(&p->c, 100);
	return p->a.data_len == CM_REJ_PRIVATE_DATA_LEN && memcmp(p->a.data, "no", 3) == 0;
}

static u32 with_grh, without_grh;

static bool count_grh(struct end *e, const struct wire_packet *p)
{
	*(p->grh_off ? &with_grh : &without_grh) += 1;
	return false;
}

/* The path of a REQ with hop limit 1 has a GRH at both ends. */
static bool hop_limit_of_1(struct pair *p)
{
	struct cm_req req = req_of(p);

	with_grh = without_grh = 0;
	p->c.a.drop = p->c.b.drop = count_grh;
	req.path.hop_limit = 1;
	p->a.id = cm_id_create(p->a.cm, side_event, &p->a);
	cm_send_req(p->a.id, &req);
	cable_run(&p->c, 100);
	return with_grh >= 3 && !without_grh;
}

/* ---- requests rejected immediately ---- */

static bool wrong_arguments(struct pair *p)
{
	u8 data[256] = { 0 };
	struct cm_req req;
	struct cm_listener *l;
	bool ok;

	p->a.id = cm_id_create(p->a.cm, side_event, &p->a);
	req = req_of(p);
	req.data = data;
	req.data_len = CM_REQ_PRIVATE_DATA_LEN + 1;
	ok = cm_send_req(p->a.id, &req) == -EINVAL;
	req.data_len = CM_REQ_PRIVATE_DATA_LEN;
	req.port = 2;
	ok &= cm_send_req(p->a.id, &req) == -ENODEV;
	req.port = 1;
	req.path.mtu = 6;
	ok &= cm_send_req(p->a.id, &req) == -EINVAL;
	ok &= cm_send_rtu(p->a.id, NULL, 0) == -EINVAL && cm_send_dreq(p->a.id, NULL, 0) == -EINVAL &&
	      cm_send_drep(p->a.id, NULL, 0) == -EINVAL && cm_send_rej(p->a.id, 28, NULL, 0) == -EINVAL &&
	      cm_send_rep(p->a.id, &(struct cm_rep){ 0 }) == -EINVAL && cm_established(p->a.id) == -EINVAL;
	ok &= cm_listen(p->a.cm, 0x1234, 0xff00, side_request, &p->a, &l) == -EINVAL;
	req = req_of(p);
	return ok && cm_send_req(p->a.id, &req) == 0 && cm_send_req(p->a.id, &req) == -EINVAL;
}

#define LISTENERS 3000 /* several in each list of the index */

static int listener_asked(void *ctx, struct cm_id *id, const struct cm_event *ev)
{
	++*(u32 *)ctx;
	return -ENOENT;
}

/* A request is offered to the listeners of its service ID first, and then to those of ranges. */
static bool many_listeners(struct pair *p)
{
	static struct cm_listener *l[LISTENERS], *range, *second;
	static u32 asked[LISTENERS], ranges, seconds;
	struct cm_id *id = cm_id_create(p->b.cm, NULL, NULL);
	u32 i, others = 0;
	bool ok;

	ok = !cm_listen(p->b.cm, 0, 0, listener_asked, &ranges, &range);
	for (i = 0; i < LISTENERS; i++)
		ok &= !cm_listen(p->b.cm, SERVICE + 1 + i, ~0ull, listener_asked, &asked[i], &l[i]);
	ok &= !cm_listen(p->b.cm, SERVICE + 7, ~0ull, listener_asked, &seconds, &second);
	ok &= cm_offer(id, SERVICE + 7, NULL) == -ENOENT && asked[6] == 1 && seconds == 1 && ranges == 1;
	for (i = 0; i < LISTENERS; i++)
		others += i == 6 ? 0 : asked[i];
	ok &= !others;
	for (i = 0; i < LISTENERS; i++)
		cm_unlisten(l[i]);
	cm_unlisten(second);
	ok &= cm_offer(id, SERVICE + 7, NULL) == -ENOENT && asked[6] == 1 && seconds == 1 && ranges == 2;
	cm_unlisten(range);
	cm_id_destroy(id);
	return ok;
}

static bool no_listener(struct pair *p)
{
	struct cm_req req;

	req = req_of(p);
	req.service_id = SERVICE + 1;
	p->a.id = cm_id_create(p->a.cm, side_event, &p->a);
	cm_send_req(p->a.id, &req);
	cable_run(&p->c, 100);
	return p->a.reason == CM_REJ_INVALID_SERVICE_ID && !strcmp(p->b.trace, "");
}

static bool wrong_transport(struct pair *p)
{
	struct cm_req req;

	req = req_of(p);
	req.transport = (enum cm_transport)CM_TRANSPORT_RD;
	p->a.id = cm_id_create(p->a.cm, side_event, &p->a);
	cm_send_req(p->a.id, &req);
	cable_run(&p->c, 100);
	return p->a.reason == CM_REJ_INVALID_TRANSPORT;
}

/* 12.6.7.2: the primary path ends at no port of B; the REJ has the acceptable address. */
static bool wrong_path(struct pair *p, struct cm_req *req, u16 reason)
{
	p->a.id = cm_id_create(p->a.cm, side_event, &p->a);
	cm_send_req(p->a.id, req);
	cable_run(&p->c, 100);
	return p->a.reason == reason && !strcmp(p->b.trace, "");
}

static bool wrong_gid(struct pair *p)
{
	struct cm_req req = req_of(p);

	req.path.dgid.raw[15] ^= 0x80;
	return wrong_path(p, &req, CM_REJ_INVALID_GID);
}

static bool wrong_lid(struct pair *p)
{
	struct cm_req req = req_of(p);

	p->c.b.port.attr.lid = 7; /* changed since the path was resolved */
	return wrong_path(p, &req, CM_REJ_INVALID_LID);
}

/* ---- peers that are slow, have restarted, or are gone ---- */

static bool takes_its_time(struct pair *p)
{
	struct cm_rep rep;
	bool ok;

	p->b.answer = ANSWER_NEVER; /* without the MRA for its duplicate the REQ would fail after 2 s */
	pair_connect(p);
	cable_run(&p->c, 4000);
	ok = p->a.id->state == CM_ST_MRA_REQ_RCVD && cm_counter(p->a.cm, CM_CTR_RETRIES) == 1;
	rep = rep_of(&p->b);
	ok &= cm_send_rep(p->b.id, &rep) == 0;
	cable_run(&p->c, 100);
	return ok && p->a.id->state == CM_ST_ESTABLISHED && p->b.id->state == CM_ST_ESTABLISHED;
}

/* A restarts and reuses its QP, which B still considers connected. 12.9.8.3.1. */
static bool stale_connection(struct pair *p)
{
	bool ok;

	pair_connect(p);
	cable_run(&p->c, 100);
	cm_destroy(p->a.cm);
	p->a.cm = cm_create(p->c.loop, 1, 15, 99);
	cm_port_add(p->a.cm, 1, p->c.ma);
	memset(p->a.trace, 0, sizeof(p->a.trace));
	pair_connect(p);
	cable_run(&p->c, 100);
	ok = p->a.reason == CM_REJ_STALE_CONN && cm_counter(p->b.cm, CM_CTR_STALE) == 1;
	/* A rejects B's DREQ for the unknown connection */
	ok &= !strcmp(p->b.trace, "QUX");
	cable_run(&p->c, 5000);
	ok &= p->a.id->state == CM_ST_IDLE;
	cm_id_destroy(p->a.id);
	pair_connect(p);
	cable_run(&p->c, 100);
	return ok && p->a.id->state == CM_ST_ESTABLISHED;
}

/* A gives up while B's program has not answered, and tries again with the same QP: B has no connection with it. */
static bool again_after_rej(struct pair *p)
{
	bool ok;

	p->b.answer = ANSWER_NEVER;
	pair_connect(p);
	cable_run(&p->c, 100);
	cm_id_destroy(p->a.id);
	p->a.id = NULL;
	cable_run(&p->c, 100);
	ok = !strcmp(p->b.trace, "QR") && p->b.id->state == CM_ST_IDLE;
	p->b.answer = ANSWER_ACCEPT;
	pair_connect(p);
	cable_run(&p->c, 100);
	return ok && p->a.id->state == CM_ST_ESTABLISHED && cm_counter(p->b.cm, CM_CTR_STALE) == 0;
}

static bool destroyed_in(enum cm_state state, const char *trace_b)
{
	struct pair p;
	bool ok;

	pair_open(&p);
	p.a.silent = state == CM_ST_REP_RCVD;
	p.b.answer = state == CM_ST_REQ_SENT ? ANSWER_NEVER : ANSWER_ACCEPT;
	pair_connect(&p);
	if (state == CM_ST_REQ_SENT)
		loop_run_idle(p.c.loop, loop_now(p.c.loop).ns + 1);
	else
		cable_run(&p.c, 100);
	ok = p.a.id->state == state;
	cm_id_destroy(p.a.id);
	p.a.id = NULL;
	cable_run(&p.c, 10000);
	ok &= !strcmp(p.b.trace, trace_b) && p.a.cm->ids.used == 0;
	if (!ok)
		printf("destroyed in %s: B saw %s\n", cm_state_name(state), p.b.trace);
	pair_close(&p);
	return ok;
}

static bool both_disconnect(struct pair *p)
{
	bool ok;

	pair_connect(p);
	cable_run(&p->c, 100);
	ok = !cm_send_dreq(p->a.id, NULL, 0) && !cm_send_dreq(p->b.id, NULL, 0);
	cable_run(&p->c, 5000);
	return ok && p->a.id->state == CM_ST_IDLE && p->b.id->state == CM_ST_IDLE;
}

static bool established_by_data(struct pair *p)
{
	p->a.silent = true;
	pair_connect(p);
	cable_run(&p->c, 100);
	return cm_established(p->b.id) == 0 && cm_established(p->b.id) == -EISCONN && !strcmp(p->b.trace, "QU");
}

/* ---- messages of others, or late ---- */

static void send_rej(struct pair *p, u32 local_id, u8 message, u16 reason)
{
	u8 mad[MAD_SIZE];

	cm_mad_init(mad, CM_ATTR_REJ, 1);
	cm_mad_rej(mad, local_id, p->a.id->local_id, message, reason, 2);
	wire_set(mad, CM_REJ_INFO_LEN, 0);
	mad_send(p->b.cm->port[0].agent, mad, MAD_SIZE, &TO_LID(p->c.a.port.attr.lid), 0, 0, NULL);
	cable_run(&p->c, 10);
}

/* A REJ of another communication ID of the peer does not end this one. 12.9.8.3. */
static bool rej_of_another(struct pair *p)
{
	u64 before;

	pair_connect(p);
	cable_run(&p->c, 100);
	before = cm_counter(p->a.cm, CM_CTR_UNEXPECTED);
	send_rej(p, p->b.id->local_id + 1, CM_MESSAGE_OTHER, CM_REJ_CONSUMER);
	if (p->a.id->state != CM_ST_ESTABLISHED || cm_counter(p->a.cm, CM_CTR_UNEXPECTED) != before + 1)
		return false;
	send_rej(p, p->b.id->local_id, CM_MESSAGE_OTHER, CM_REJ_CONSUMER);
	return p->a.id->state == CM_ST_TIMEWAIT && !strcmp(p->a.trace, "PR");
}

static struct cm_id *peer_new(struct cm *cm, u64 ca_guid, u32 remote_id, u32 qpn)
{
	struct cm_id *id = cm_id_new(cm);

	id->remote_ca_guid = ca_guid;
	id->remote_id = remote_id;
	id->qp.remote_qpn = qpn;
	cm_peer_known(id);
	return id;
}

/* A duplicate of a REQ is found by its communication ID although an older connection had the same QP. */
static bool duplicate_before_stale(struct pair *p)
{
	struct cm *cm = p->b.cm;
	struct cm_id *old = peer_new(cm, 1, 5, 7), *new = peer_new(cm, 1, 6, 7);
	bool ok = cm_peer_find(cm, 1, 6, 7) == new &&cm_peer_find(cm, 1, 5, 7) == old &&cm_peer_find(cm, 1, 8, 7) &&
		  !cm_peer_find(cm, 2, 6, 7);

	cm_id_free(old);
	ok &= !cm_peer_find(cm, 1, 5, 8) && cm_peer_find(cm, 1, 8, 7) == new;
	cm_peer_forget(new);
	ok &= !cm_peer_find(cm, 1, 6, 7);
	cm_id_free(new);
	return ok;
}

/* The lists do not become longer with the number of connections. */
static bool many_peers(struct pair *p)
{
	const u32 n = 50000;
	struct cm *cm = p->b.cm;
	u32 i, longest = 0, len;
	struct list *l;
	bool ok = true;

	for (i = 0; i < n; i++)
		peer_new(cm, i % 3, i, n - i);
	for (i = 0; i < 2 * cm->npeers; i++) {
		for (len = 0, l = cm->peers[i].next; l != &cm->peers[i]; l = l->next)
			len++;
		longest = max(longest, len);
	}
	for (i = 0; i < n; i++)
		ok &= cm_peer_find(cm, i % 3, i, 0)->remote_id == i &&
		      cm_peer_find(cm, i % 3, n, n - i)->remote_id == i;
	return ok && longest < 20;
}

/* ---- service ID resolution ---- */

static const struct sidr_row {
	const char *name;
	enum answer answer;
	u64 service;
	struct loss a, b;
	const char *trace_a, *trace_b;
} sidrs[] = {
	{ "SIDR", ANSWER_ACCEPT, SERVICE, { 0 }, { 0 }, "s", "S" },
	{ "SIDR, request lost", ANSWER_ACCEPT, SERVICE, { CM_ATTR_SIDR_REQ, 1 }, { 0 }, "s", "S" },
	{ "SIDR, response lost", ANSWER_ACCEPT, SERVICE, { 0 }, { CM_ATTR_SIDR_REP, 1 }, "s", "SS" },
	{ "SIDR, no such service", ANSWER_ACCEPT, SERVICE + 1, { 0 }, { 0 }, "s", "" },
	{ "SIDR, refused", ANSWER_REFUSE, SERVICE, { 0 }, { 0 }, "s", "S" },
	{ "SIDR, no response", ANSWER_NEVER, SERVICE, { 0 }, { 0 }, "i", "S" },
};

static bool one_sidr(const struct sidr_row *r)
{
	struct cm_sidr_req req;
	struct pair p;
	bool ok;

	pair_open(&p);
	pair_lose(&p, &r->a, &r->b);
	p.b.answer = r->answer;
	p.a.id = cm_id_create(p.a.cm, side_event, &p.a);
	req = (struct cm_sidr_req){ .service_id = r->service,
				    .path = path_to(&p.c.a, &p.c.b),
				    .port = 1,
				    .pkey = 0xffff,
				    .response_timeout = 16,
				    .max_retries = 3 };
	ok = cm_send_sidr_req(p.a.id, &req) == 0;
	cable_run(&p.c, 5000);
	ok &= !strcmp(p.a.trace, r->trace_a) && !strcmp(p.b.trace, r->trace_b);
	if (!ok)
		printf("%s: traces %s, %s\n", r->name, p.a.trace, p.b.trace);
	pair_close(&p);
	return ok;
}

/* ---- alternate paths ---- */

/* Both ends have two LIDs. A sends the LAP unless the row says B. */
static const struct lap_row {
	const char *name;
	u8 slid, dlid, sl;
	bool by_b, silent;
	struct loss a, b;
	const char *trace_a, *trace_b; /* without the events of the connection */
	u16 status;
} laps[] = {
	{ "LAP", 1, 1, 0, false, false, { 0 }, { 0 }, "A", "L", CM_APR_OK },
	{ "LAP lost twice", 1, 1, 0, false, false, { CM_ATTR_LAP, 2 }, { 0 }, "A", "L", CM_APR_OK },
	{ "APR lost twice", 1, 1, 0, false, false, { 0 }, { CM_ATTR_APR, 2 }, "A", "L", CM_APR_OK },
	{ "no APR", 1, 1, 0, false, true, { 0 }, { 0 }, "l", "L", 0xff },
	{ "LAP refused by the owner", 1, 1, 3, false, false, { 0 }, { 0 }, "A", "L", CM_APR_INVALID_SL },
	{ "LAP with the path that is in use", 0, 0, 0, false, false, { 0 }, { 0 }, "A", "", CM_APR_IS_CURRENT },
	{ "LAP with an unassigned LID", 1, 6, 0, false, false, { 0 }, { 0 }, "A", "", CM_APR_INVALID_LID },
	{ "LAP by the passive side", 1, 1, 0, true, false, { 0 }, { 0 }, "", "", 0xff },
};

static bool one_lap(const struct lap_row *r)
{
	struct cm_alternate alt = { .port = 1 };
	struct pair p;
	int err;
	bool ok;

	pair_open(&p);
	p.c.a.port.attr.lid = 8;
	p.c.b.port.attr.lid = 16;
	p.c.a.port.attr.lmc = p.c.b.port.attr.lmc = 1;
	ok = !pair_connect(&p);
	cable_run(&p.c, 3000);
	pair_lose(&p, &r->a, &r->b);
	p.b.silent = r->silent;
	p.a.reason = 0xff;
	alt.path = path_to(&p.c.a, &p.c.b);
	alt.path.slid += r->slid;
	alt.path.dlid += r->dlid;
	alt.path.sl = r->sl;
	err = cm_send_lap(r->by_b ? p.b.id : p.a.id, &alt);
	ok &= err == (r->by_b ? -EINVAL : 0);
	cable_run(&p.c, 10000);
	ok &= !strcmp(p.a.trace + 1, r->trace_a) && !strcmp(p.b.trace + 2, r->trace_b) && p.a.reason == r->status &&
	      p.a.id->state == CM_ST_ESTABLISHED && p.b.id->state == CM_ST_ESTABLISHED;
	if (!ok)
		printf("%s: traces %s, %s, status %u\n", r->name, p.a.trace, p.b.trace, p.a.reason);
	p.b.silent = false;
	pair_close(&p);
	return ok;
}

static const struct {
	const char *name;
	bool (*run)(struct pair *p);
} others[] = {
	{ "attributes of the queue pair", attributes },
	{ "private data", private_data },
	{ "a path with hop limit 1 has a GRH", hop_limit_of_1 },
	{ "wrong arguments and states", wrong_arguments },
	{ "no listener", no_listener },
	{ "thousands of listeners", many_listeners },
	{ "wrong transport", wrong_transport },
	{ "a GID that is not the port's", wrong_gid },
	{ "a LID that is not the port's", wrong_lid },
	{ "the peer takes its time", takes_its_time },
	{ "stale connection", stale_connection },
	{ "a REQ with the QP of an earlier one that was rejected by its sender", again_after_rej },
	{ "both disconnect", both_disconnect },
	{ "established by data", established_by_data },
	{ "REJ of another conversation", rej_of_another },
	{ "duplicate of a REQ with the QP of an older connection", duplicate_before_stale },
	{ "the index with many connections", many_peers },
};

int main(void)
{
	struct pair p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(connects); i++)
		row(0, connects[i].name, one_connect(&connects[i]));
	for (i = 0; i < ARRAY_SIZE(sidrs); i++)
		row(0, sidrs[i].name, one_sidr(&sidrs[i]));
	for (i = 0; i < ARRAY_SIZE(laps); i++)
		row(0, laps[i].name, one_lap(&laps[i]));
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		pair_open(&p);
		row(0, others[i].name, others[i].run(&p));
		pair_close(&p);
	}
	row(0, "destroyed after REQ", destroyed_in(CM_ST_REQ_SENT, "QR"));
	row(0, "destroyed after REP", destroyed_in(CM_ST_REP_RCVD, "QR"));
	row(0, "destroyed when connected", destroyed_in(CM_ST_ESTABLISHED, "QUDx"));
	return rows_end();
}

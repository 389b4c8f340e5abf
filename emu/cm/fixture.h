/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests: two communication managers at the ends of a cable, whose users record events and respond. */
#ifndef MUSLIN_CM_FIXTURE_H
#define MUSLIN_CM_FIXTURE_H

#include "emu/cm/cm_internal.h"
#include "emu/mad/fixture.h"

#define SERVICE 0x1234

enum answer {
	ANSWER_ACCEPT,
	ANSWER_REJECT, /* by REJ with private data */
	ANSWER_REFUSE, /* the listener returns -ENOMEM */
	ANSWER_NEVER,
};

struct side {
	struct cm *cm;
	struct cm_id *id;
	enum answer answer;
	bool silent; /* does not respond to REP and DREQ */
	char trace[64];
	u16 reason;
	u8 data[256], data_len;
	struct cm_listener *listener;
	u32 qpn;
};

static void note(struct side *s, enum cm_event_type type)
{
	static const char letters[] = "QqPpURDeXxSsiLAl";
	size_t n = strlen(s->trace);

	static_assert(sizeof(letters) - 1 == CM_EVENTS, "one letter for each event");
	if (n + 1 < sizeof(s->trace))
		s->trace[n] = letters[type];
}

static struct cm_rep rep_of(const struct side *s)
{
	return (struct cm_rep){ .qpn = s->qpn,
				.psn = 0x222222,
				.responder_resources = 3,
				.initiator_depth = 4,
				.rnr_retry_count = 5,
				.data = (const u8 *)"rep",
				.data_len = 3 };
}

static void side_event(void *ctx, struct cm_id *id, const struct cm_event *ev)
{
	struct side *s = ctx;

	note(s, ev->type);
	s->reason = ev->type == CM_EVENT_REJ ? ev->reason : s->reason;
	s->data_len = ev->data_len;
	if (ev->data_len)
		memcpy(s->data, ev->data, ev->data_len);
	if (ev->type == CM_EVENT_REP && !s->silent)
		(void)cm_send_rtu(id, NULL, 0);
	if (ev->type == CM_EVENT_APR)
		s->reason = ev->reason;
	if (ev->type == CM_EVENT_LAP && !s->silent)
		(void)cm_send_apr(id, ev->alternate->path.sl == 3 ? CM_APR_INVALID_SL : CM_APR_OK);
	if (ev->type == CM_EVENT_DREQ && !s->silent)
		(void)cm_send_drep(id, NULL, 0);
}

static int side_request(void *ctx, struct cm_id *id, const struct cm_event *ev)
{
	struct side *s = ctx;
	struct cm_rep rep = rep_of(s);
	struct cm_sidr_rep sidr = { .status = s->answer == ANSWER_ACCEPT ? CM_SIDR_OK : CM_SIDR_NO_QP,
				    .qpn = s->qpn,
				    .qkey = 0x77 };

	note(s, ev->type);
	if (s->answer == ANSWER_REFUSE)
		return -ENOMEM;
	if (s->id)
		cm_id_destroy(s->id);
	s->id = id;
	cm_id_own(id, side_event, s);
	if (ev->type == CM_EVENT_SIDR_REQ && s->answer != ANSWER_NEVER)
		return cm_send_sidr_rep(id, &sidr);
	if (s->answer == ANSWER_ACCEPT)
		return cm_send_rep(id, &rep);
	if (s->answer == ANSWER_REJECT)
		return cm_send_rej(id, CM_REJ_CONSUMER, (const u8 *)"no", 2);
	return 0;
}

struct pair {
	struct cable c;
	struct side a, b;
};

static void side_open(struct side *s, struct loop *loop, struct mad_port *mp, u64 guid)
{
	s->cm = cm_create(loop, guid, 15, guid);
	cm_port_add(s->cm, 1, mp);
	s->qpn = 0x100 + (u32)guid;
}

static inline void pair_open(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	cable_open(&p->c);
	side_open(&p->a, p->c.loop, p->c.ma, 1);
	side_open(&p->b, p->c.loop, p->c.mb, 2);
	cm_listen(p->b.cm, SERVICE, ~0ull, side_request, &p->b, &p->b.listener);
}

static inline void pair_close(struct pair *p)
{
	if (p->a.id)
		cm_id_destroy(p->a.id);
	if (p->b.id)
		cm_id_destroy(p->b.id);
	cm_unlisten(p->b.listener);
	cm_destroy(p->a.cm);
	cm_destroy(p->b.cm);
	cable_close(&p->c);
}

static struct sa_path path_to(const struct end *from, const struct end *to)
{
	return (struct sa_path){ .dgid = to->port.attr.gid[0],
				 .sgid = from->port.attr.gid[0],
				 .dlid = to->port.attr.lid,
				 .slid = from->port.attr.lid,
				 .reversible = true,
				 .pkey = WIRE_PKEY_DEFAULT_FULL,
				 .mtu = WIRE_MTU_2048,
				 .rate = WIRE_RATE_100,
				 .packet_life = 14 };
}

static struct cm_req req_of(const struct pair *p)
{
	return (struct cm_req){ .service_id = SERVICE,
				.path = path_to(&p->c.a, &p->c.b),
				.port = 1,
				.pkey = WIRE_PKEY_DEFAULT_FULL,
				.transport = CM_RC,
				.qpn = p->a.qpn,
				.psn = 0x111111,
				.responder_resources = 7,
				.initiator_depth = 8,
				.retry_count = 6,
				.rnr_retry_count = 7,
				.response_timeout = 16,
				.max_retries = 3,
				.data = (const u8 *)"req",
				.data_len = 3 };
}

static inline int pair_connect(struct pair *p)
{
	struct cm_req req = req_of(p);

	p->a.id = cm_id_create(p->a.cm, side_event, &p->a);
	return cm_send_req(p->a.id, &req);
}

#endif

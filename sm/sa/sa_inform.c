// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Event forwarding (IBTA 13.4.8.3, 13.4.11, 15.2.5.12): InformInfo subscriptions and reports. */
#include <stdlib.h>

#include "sm/sa/sa_internal.h"

#define SUBSCRIBERS_MAX 65536
#define REPORTS_MAX     4096 /* outstanding; further ones are dropped */
#define REPORT_MS       1000
#define REPORT_RETRIES  3

struct subscriber {
	struct list link; /* sm.subscribers */
	struct mad_addr addr;
	u64 port_guid;
	u16 number;
	u8 info[INFORMINFO_SIZE];
};

struct report {
	struct list link; /* sm.reports */
};

/* ---- subscriptions ---- */

/* Finds the subscription of the same subscriber for the same notices. */
static struct subscriber *sa_inform_find(const struct sa_call *c)
{
	struct subscriber *s;
	u8 a[INFORMINFO_SIZE], b[INFORMINFO_SIZE];

	memcpy(a, c->query, sizeof(a));
	wire_set(a, INFORMINFO_SUBSCRIBE, 1);
	wire_set(a, INFORMINFO_QPN, 0);
	list_for_each (s, &c->sm->subscribers, link) {
		memcpy(b, s->info, sizeof(b));
		wire_set(b, INFORMINFO_QPN, 0);
		if (s->addr.lid == c->from->lid && s->addr.qpn == c->from->qpn && !memcmp(a, b, sizeof(a)))
			return s;
	}
	return NULL;
}

static void sa_inform_drop(struct sm *sm, struct subscriber *s)
{
	list_del(&s->link);
	sm->nsubscribers--;
	free(s);
}

static void sa_inform_subscribe(struct sa_call *c)
{
	struct sm *sm = c->sm;
	struct subscriber *s = sm->nsubscribers < SUBSCRIBERS_MAX ? calloc(1, sizeof(*s)) : NULL;

	if (!s) {
		c->status = SA_STATUS_NO_RESOURCES;
		return;
	}
	s->addr = *c->from;
	s->port_guid = c->requester ? c->requester->guid : 0;
	s->number = (u16)++sm->service_id;
	memcpy(s->info, c->query, sizeof(s->info));
	list_add(&sm->subscribers, &s->link);
	sm->nsubscribers++;
}

/* The GID, or else the range of LIDs, that the subscription names must be valid. */
static bool sa_inform_range_valid(const struct sa_call *c)
{
	u16 begin = wire_get(c->query, INFORMINFO_LID_BEGIN), end = wire_get(c->query, INFORMINFO_LID_END);
	struct wire_gid gid = wire_gid_from_bytes(wire_cbytes(c->query, INFORMINFO_GID));

	if (!wire_gid_is_zero(&gid))
		return true;
	return begin == INFORMINFO_ALL_LIDS || begin <= end;
}

void sm_sa_inform_set(struct sa_call *c)
{
	u8 op = wire_get(c->query, INFORMINFO_SUBSCRIBE), rec[INFORMINFO_SIZE];
	struct subscriber *s = sa_inform_find(c);

	memcpy(rec, c->query, sizeof(rec));
	if (op > 1 || wire_get(c->query, INFORMINFO_IS_GENERIC) > 1 || (op && !sa_inform_range_valid(c)) || (!op && !s))
		c->status = SA_STATUS_REQ_INVALID;
	else if (op && !s)
		sa_inform_subscribe(c);
	else if (!op)
		sa_inform_drop(c->sm, s);
	sm_sa_emit(c, rec);
}

static const struct sa_field fields[] = {
	{ INFORMINFOREC_COMP_SUBSCRIBER_GID, 0, INFORMINFOREC_SUBSCRIBER_GID },
	{ INFORMINFOREC_COMP_ENUM, 0, INFORMINFOREC_ENUM },
	{ INFORMINFOREC_COMP_GID, INFORMINFOREC_INFORM_INFO, INFORMINFO_GID },
	{ INFORMINFOREC_COMP_LID_BEGIN, INFORMINFOREC_INFORM_INFO, INFORMINFO_LID_BEGIN },
	{ INFORMINFOREC_COMP_LID_END, INFORMINFOREC_INFORM_INFO, INFORMINFO_LID_END },
	{ INFORMINFOREC_COMP_IS_GENERIC, INFORMINFOREC_INFORM_INFO, INFORMINFO_IS_GENERIC },
	{ INFORMINFOREC_COMP_SUBSCRIBE, INFORMINFOREC_INFORM_INFO, INFORMINFO_SUBSCRIBE },
	{ INFORMINFOREC_COMP_TYPE, INFORMINFOREC_INFORM_INFO, INFORMINFO_TYPE },
	{ INFORMINFOREC_COMP_TRAP_NUMBER, INFORMINFOREC_INFORM_INFO, INFORMINFO_TRAP_NUMBER },
	{ INFORMINFOREC_COMP_QPN, INFORMINFOREC_INFORM_INFO, INFORMINFO_QPN },
	{ INFORMINFOREC_COMP_RESP_TIME, INFORMINFOREC_INFORM_INFO, INFORMINFO_RESP_TIME },
	{ INFORMINFOREC_COMP_PRODUCER_TYPE, INFORMINFOREC_INFORM_INFO, INFORMINFO_PRODUCER_TYPE },
};

void sm_sa_inform_record(struct sa_call *c)
{
	struct subscriber *s;
	u8 rec[INFORMINFOREC_SIZE];
	struct wire_gid gid;

	list_for_each (s, &c->sm->subscribers, link) {
		if (!c->trusted && s->addr.lid != c->from->lid)
			continue;
		memset(rec, 0, sizeof(rec));
		gid = wire_gid_make(c->sm->cfg.subnet_prefix, s->port_guid);
		wire_copy_in(rec, INFORMINFOREC_SUBSCRIBER_GID, gid.raw);
		wire_set(rec, INFORMINFOREC_ENUM, s->number);
		memcpy(rec + INFORMINFOREC_INFORM_INFO, s->info, INFORMINFO_SIZE);
		if (sm_sa_match(c, rec, fields, ARRAY_SIZE(fields)) && !sm_sa_emit(c, rec))
			return;
	}
}

/* ---- reports ---- */

/* 13.4.8.3: each field of the subscription is a wildcard or a value to match. */
static bool sa_inform_wants(const struct subscriber *s, const u8 *notice)
{
	struct wire_gid gid = wire_gid_from_bytes(wire_cbytes(s->info, INFORMINFO_GID));
	struct wire_gid issuer = wire_gid_from_bytes(wire_cbytes(notice, NOTICE_ISSUER_GID));
	u16 lid = wire_get(notice, NOTICE_ISSUER_LID), begin = wire_get(s->info, INFORMINFO_LID_BEGIN);
	u16 type = wire_get(s->info, INFORMINFO_TYPE), trap = wire_get(s->info, INFORMINFO_TRAP_NUMBER);
	u32 producer = (u32)wire_get(s->info, INFORMINFO_PRODUCER_TYPE);

	if (!wire_gid_is_zero(&gid)) {
		if (!wire_gid_equal(&gid, &issuer))
			return false;
	} else if (begin != INFORMINFO_ALL_LIDS && (lid < begin || lid > wire_get(s->info, INFORMINFO_LID_END))) {
		return false;
	}
	return wire_get(s->info, INFORMINFO_IS_GENERIC) == wire_get(notice, NOTICE_IS_GENERIC) &&
	       (type == INFORMINFO_ALL_TYPES || type == wire_get(notice, NOTICE_TYPE)) &&
	       (trap == INFORMINFO_ALL_TRAPS || trap == wire_get(notice, NOTICE_TRAP_NUMBER)) &&
	       (producer == INFORMINFO_ALL_PRODUCERS || producer == wire_get(notice, NOTICE_PRODUCER_TYPE));
}

static void report_free(struct sm *sm, struct report *r)
{
	list_del(&r->link);
	sm->nreports--;
	free(r);
}

bool sm_inform_report_sent(struct sm *sm, void *cookie)
{
	struct report *r;

	list_for_each (r, &sm->reports, link)
		if (r == cookie) {
			report_free(sm, r);
			return true;
		}
	return false;
}

static void sa_inform_send(struct sm *sm, const struct subscriber *s, const u8 *notice)
{
	struct report *r = sm->nreports < REPORTS_MAX ? calloc(1, sizeof(*r)) : NULL;
	u8 mad[MAD_SIZE] = { 0 };

	if (!r)
		return;
	wire_set(mad, MAD_BASE_VERSION, MAD_BASE_VERSION_1);
	wire_set(mad, MAD_CLASS, MAD_CLASS_SUBN_ADM);
	wire_set(mad, MAD_CLASS_VERSION, MAD_CLASS_VERSION_SA);
	wire_set(mad, MAD_METHOD, MAD_METHOD_REPORT);
	wire_set(mad, MAD_TID, ++sm->tid & 0xffffffff);
	wire_set(mad, MAD_ATTR_ID, SA_ATTR_NOTICE);
	memcpy(mad + SA_DATA, notice, NOTICE_SIZE);
	list_add(&sm->reports, &r->link);
	sm->nreports++;
	if (sm->ops->send(sm->transport, mad, MAD_SIZE, &s->addr, REPORT_MS, REPORT_RETRIES, r))
		report_free(sm, r);
}

/* Does the subscriber share a partition with the port, or, if that is NULL, with the group (13.4.11, o13-17.1.1)? */
static bool sa_inform_permits(const struct sm *sm, const struct subscriber *s, const struct sm_port *port,
			      const struct sm_group *group)
{
	const struct sm_port *own = sm_port_by_guid(sm, s->port_guid);

	if (!own)
		return false;
	return port ? own == port || sm_pkey_common(own, port) : sm_pkey_has(own, group->pkey);
}

void sm_inform_report(struct sm *sm, const u8 *notice, const struct sm_port *port, const struct sm_group *group)
{
	struct subscriber *s;

	if (!sm_is_master(sm))
		return;
	list_for_each (s, &sm->subscribers, link)
		if (sa_inform_wants(s, notice) && sa_inform_permits(sm, s, port, group))
			sa_inform_send(sm, s, notice);
}

/* ---- destroy ---- */

void sm_inform_drop_all(struct sm *sm)
{
	struct subscriber *s, *tmp;

	list_for_each_safe (s, tmp, &sm->subscribers, link)
		sa_inform_drop(sm, s);
}

void sm_inform_fini(struct sm *sm)
{
	sm_inform_drop_all(sm);
	while (!list_empty(&sm->reports))
		report_free(sm, list_first(&sm->reports, struct report, link));
}

void sm_inform_forget_port(struct sm *sm, struct sm_port *p)
{
	struct subscriber *s, *tmp;

	list_for_each_safe (s, tmp, &sm->subscribers, link)
		if (s->port_guid == p->guid)
			sa_inform_drop(sm, s);
}

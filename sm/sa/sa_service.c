// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ServiceRecord (IBTA 15.2.5.14): services that ports advertise, each until its lease expires. */
#include <stdlib.h>

#include "sm/sa/sa_internal.h"

#define SERVICES_MAX 65536

struct service {
	struct list link; /* sm.services */
	u64 expires;      /* ns of the loop's clock; ~0: never */
	u16 lid;          /* of the port that registered it */
	u8 rec[SERVICEREC_SIZE];
};

static const struct sa_field fields[] = {
	{ SERVICEREC_COMP_ID, 0, SERVICEREC_ID },     { SERVICEREC_COMP_GID, 0, SERVICEREC_GID },
	{ SERVICEREC_COMP_PKEY, 0, SERVICEREC_PKEY }, { SERVICEREC_COMP_LEASE, 0, SERVICEREC_LEASE },
	{ SERVICEREC_COMP_KEY, 0, SERVICEREC_KEY },   { SERVICEREC_COMP_NAME, 0, SERVICEREC_NAME },
};

/* The data fields have a bit for each element. */
static bool data_match(const struct sa_call *c, const u8 *rec)
{
	static const struct {
		u8 comp, n, width;
		u16 bit;
	} parts[] = {
		{ SERVICEREC_COMP_DATA8_0, 16, 8, 896 },
		{ SERVICEREC_COMP_DATA16_0, 8, 16, 1024 },
		{ SERVICEREC_COMP_DATA32_0, 4, 32, 1152 },
		{ SERVICEREC_COMP_DATA64_0, 2, 64, 1280 },
	};
	struct wire_field f;
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		for (k = 0; k < parts[i].n; k++) {
			f = WIRE_FIELD((u16)(parts[i].bit + k * parts[i].width), parts[i].width);
			if (sm_sa_comp(c, parts[i].comp + k) && wire_get(rec, f) != wire_get(c->query, f))
				return false;
		}
	return true;
}

static struct service *sa_service_find(const struct sm *sm, const u8 *rec)
{
	struct service *s;

	list_for_each (s, &sm->services, link)
		if (wire_get(s->rec, SERVICEREC_ID) == wire_get(rec, SERVICEREC_ID) &&
		    wire_get(s->rec, SERVICEREC_PKEY) == wire_get(rec, SERVICEREC_PKEY) &&
		    !memcmp(wire_cbytes(s->rec, SERVICEREC_GID), wire_cbytes(rec, SERVICEREC_GID), 16))
			return s;
	return NULL;
}

static void sa_service_drop(struct sm *sm, struct service *s)
{
	list_del(&s->link);
	sm->nservices--;
	free(s);
}

/* ---- leases ---- */

static void sa_service_arm(struct sm *sm)
{
	u64 first = ~0ull;
	struct service *s;

	list_for_each (s, &sm->services, link)
		first = min(first, s->expires);
	if (first == ~0ull)
		loop_timer_cancel(&sm->lease);
	else
		loop_timer_set(sm->loop, &sm->lease, first);
}

static void sa_service_expire(struct loop_timer *t, struct now now)
{
	struct sm *sm = container_of(t, struct sm, lease);
	struct service *s, *tmp;

	list_for_each_safe (s, tmp, &sm->services, link)
		if (s->expires <= now.ns)
			sa_service_drop(sm, s);
	sa_service_arm(sm);
}

/* The ServiceKey is disclosed only to its owner and to trusted requesters (15.2.5.14.1). */
static bool sa_service_emit(struct sa_call *c, const struct service *s)
{
	u8 rec[SERVICEREC_SIZE];

	memcpy(rec, s->rec, sizeof(rec));
	if (!c->trusted)
		memset(wire_bytes(rec, SERVICEREC_KEY), 0, SERVICEREC_KEY.width / 8);
	return sm_sa_emit(c, rec);
}

/* ---- requests ---- */

/* The lease of a record is the remaining time (15.2.5.14). */
void sm_sa_service_get(struct sa_call *c)
{
	u64 now = loop_now(c->sm->loop).ns;
	struct service *s;
	u16 pkey;

	list_for_each (s, &c->sm->services, link) {
		pkey = wire_get(s->rec, SERVICEREC_PKEY);
		if (!c->trusted && pkey && !(c->requester && sm_pkey_has(c->requester, pkey)))
			continue;
		if (s->expires != ~0ull)
			wire_set(s->rec, SERVICEREC_LEASE, s->expires > now ? (s->expires - now) / NSEC_PER_SEC : 0);
		if (sm_sa_match(c, s->rec, fields, ARRAY_SIZE(fields)) && data_match(c, s->rec) &&
		    !sa_service_emit(c, s))
			return;
	}
}

static bool same_key(const struct service *s, const u8 *rec)
{
	return !memcmp(wire_cbytes(s->rec, SERVICEREC_KEY), wire_cbytes(rec, SERVICEREC_KEY), 16);
}

static bool sa_service_valid(struct sa_call *c)
{
	u64 need = SA_COMP(SERVICEREC_COMP_ID) | SA_COMP(SERVICEREC_COMP_GID);
	u16 pkey = sm_sa_comp(c, SERVICEREC_COMP_PKEY) ? wire_get(c->query, SERVICEREC_PKEY) : 0;

	if ((c->comp & need) != need)
		c->status = SA_STATUS_INSUFFICIENT_COMPONENTS;
	else if (pkey && !c->trusted && !(c->requester && sm_pkey_has(c->requester, pkey)))
		c->status = SA_STATUS_REQ_INVALID;
	return !c->status;
}

void sm_sa_service_set(struct sa_call *c)
{
	struct sm *sm = c->sm;
	u8 rec[SERVICEREC_SIZE];
	struct service *s;
	u32 lease;

	if (!sa_service_valid(c))
		return;
	memcpy(rec, c->query, sizeof(rec));
	if (!sm_sa_comp(c, SERVICEREC_COMP_PKEY))
		wire_set(rec, SERVICEREC_PKEY, 0);
	if (!sm_sa_comp(c, SERVICEREC_COMP_LEASE))
		wire_set(rec, SERVICEREC_LEASE, SERVICEREC_LEASE_FOREVER);
	s = sa_service_find(sm, rec);
	if (s && s->lid != c->from->lid && !same_key(s, rec)) {
		c->status = SA_STATUS_REQ_INVALID; /* registered by another port, without its key */
		return;
	}
	if (!s) {
		s = sm->nservices < SERVICES_MAX ? calloc(1, sizeof(*s)) : NULL;
		if (!s) {
			c->status = SA_STATUS_NO_RESOURCES;
			return;
		}
		list_add(&sm->services, &s->link);
		sm->nservices++;
	}
	s->lid = c->from->lid;
	memcpy(s->rec, rec, sizeof(rec));
	lease = wire_get(rec, SERVICEREC_LEASE);
	s->expires = lease == SERVICEREC_LEASE_FOREVER ? ~0ull : loop_now(sm->loop).ns + lease * NSEC_PER_SEC;
	sa_service_emit(c, s);
	sa_service_arm(sm);
}

/* Deletes the first record that matches all given components, of which there must be one. */
void sm_sa_service_delete(struct sa_call *c)
{
	struct service *s;

	if (!c->comp) {
		c->status = SA_STATUS_INSUFFICIENT_COMPONENTS;
		return;
	}
	list_for_each (s, &c->sm->services, link) {
		if (!sm_sa_match(c, s->rec, fields, ARRAY_SIZE(fields)) || !data_match(c, s->rec))
			continue;
		if (!c->trusted && s->lid != c->from->lid && !same_key(s, c->query)) {
			c->status = SA_STATUS_REQ_INVALID;
			return;
		}
		sa_service_emit(c, s);
		sa_service_drop(c->sm, s);
		sa_service_arm(c->sm);
		return; /* none: the response has no record */
	}
}

void sm_service_init(struct sm *sm)
{
	list_init(&sm->services);
	sm->lease.fn = sa_service_expire;
}

void sm_service_fini(struct sm *sm)
{
	struct service *s, *tmp;

	loop_timer_cancel(&sm->lease);
	list_for_each_safe (s, tmp, &sm->services, link)
		sa_service_drop(sm, s);
}

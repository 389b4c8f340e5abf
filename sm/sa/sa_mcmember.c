// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * MCMemberRecord (IBTA 15.2.5.17): join, leave and query of multicast groups. A join that creates its group must
 * specify its attributes; a join of an existing group must match them.
 */
#include "sm/sa/sa_internal.h"

#define SIGNATURE_SA 0xa01b
#define CREATE_COMP                                                                              \
	(SA_COMP(MCMEMBER_COMP_QKEY) | SA_COMP(MCMEMBER_COMP_PKEY) | SA_COMP(MCMEMBER_COMP_SL) | \
	 SA_COMP(MCMEMBER_COMP_FLOW_LABEL) | SA_COMP(MCMEMBER_COMP_TCLASS))
#define JOIN_COMP (SA_COMP(MCMEMBER_COMP_MGID) | SA_COMP(MCMEMBER_COMP_PORT_GID) | SA_COMP(MCMEMBER_COMP_JOIN_STATE))

static const struct sa_field fields[] = {
	{ MCMEMBER_COMP_MGID, 0, MCMEMBER_MGID },
	{ MCMEMBER_COMP_PORT_GID, 0, MCMEMBER_PORT_GID },
	{ MCMEMBER_COMP_PROXY_JOIN, 0, MCMEMBER_PROXY_JOIN },
	/* from here on: components of a join that must match the group */
	{ MCMEMBER_COMP_QKEY, 0, MCMEMBER_QKEY },
	{ MCMEMBER_COMP_MLID, 0, MCMEMBER_MLID },
	{ MCMEMBER_COMP_TCLASS, 0, MCMEMBER_TCLASS },
	{ MCMEMBER_COMP_SL, 0, MCMEMBER_SL },
	{ MCMEMBER_COMP_FLOW_LABEL, 0, MCMEMBER_FLOW_LABEL },
	{ MCMEMBER_COMP_HOP_LIMIT, 0, MCMEMBER_HOP_LIMIT },
	{ MCMEMBER_COMP_SCOPE, 0, MCMEMBER_SCOPE },
};
#define AGREED 3 /* index of the first of them */

/* A component with a selector, in values that can be compared. */
static const struct selected {
	u8 sel_comp, comp;
	struct wire_field sel, value;
	u32 (*rank)(u8 code);
} selected[] = {
	{ MCMEMBER_COMP_MTU_SELECTOR, MCMEMBER_COMP_MTU, MCMEMBER_MTU_SELECTOR, MCMEMBER_MTU, NULL },
	{ MCMEMBER_COMP_RATE_SELECTOR, MCMEMBER_COMP_RATE, MCMEMBER_RATE_SELECTOR, MCMEMBER_RATE, wire_rate_mbps },
	{ MCMEMBER_COMP_LIFE_SELECTOR, MCMEMBER_COMP_LIFE, MCMEMBER_LIFE_SELECTOR, MCMEMBER_LIFE, NULL },
};

static u32 sa_mcmember_rank(const struct selected *s, u8 code)
{
	return s->rank ? s->rank(code) : code;
}

static bool selectors_match(const struct sa_call *c, const u8 *rec)
{
	const struct selected *s;
	u32 i, have, want;
	u8 sel;

	for (i = 0; i < ARRAY_SIZE(selected); i++) {
		s = &selected[i];
		if (!sm_sa_comp(c, s->sel_comp) || !sm_sa_comp(c, s->comp))
			continue;
		sel = wire_get(c->query, s->sel);
		have = sa_mcmember_rank(s, wire_get(rec, s->value));
		want = sa_mcmember_rank(s, wire_get(c->query, s->value));
		if ((sel == SA_SELECT_GREATER && have <= want) || (sel == SA_SELECT_LESS && have >= want) ||
		    (sel == SA_SELECT_EXACTLY && have != want))
			return false; /* selector 3: the largest available */
	}
	return true;
}

static void put_group(const struct sm_group *g, u8 *r)
{
	memset(r, 0, MCMEMBER_SIZE);
	wire_copy_in(r, MCMEMBER_MGID, g->mgid.raw);
	wire_set(r, MCMEMBER_QKEY, g->qkey);
	wire_set(r, MCMEMBER_MLID, g->mlid);
	wire_set(r, MCMEMBER_MTU_SELECTOR, SA_SELECT_EXACTLY);
	wire_set(r, MCMEMBER_MTU, g->mtu);
	wire_set(r, MCMEMBER_TCLASS, g->tclass);
	wire_set(r, MCMEMBER_PKEY, g->pkey);
	wire_set(r, MCMEMBER_RATE_SELECTOR, SA_SELECT_EXACTLY);
	wire_set(r, MCMEMBER_RATE, g->rate);
	wire_set(r, MCMEMBER_LIFE_SELECTOR, SA_SELECT_EXACTLY);
	wire_set(r, MCMEMBER_LIFE, g->life);
	wire_set(r, MCMEMBER_SL, g->sl);
	wire_set(r, MCMEMBER_FLOW_LABEL, g->flow);
	wire_set(r, MCMEMBER_HOP_LIMIT, g->hop_limit);
	wire_set(r, MCMEMBER_SCOPE, g->scope);
}

static void put_member(const struct sa_call *c, const struct sm_group *g, const struct sm_member *m, u8 *r)
{
	struct wire_gid gid = wire_gid_make(c->sm->cfg.subnet_prefix, m->port->guid);

	put_group(g, r);
	wire_copy_in(r, MCMEMBER_PORT_GID, gid.raw);
	wire_set(r, MCMEMBER_JOIN_STATE, m->join_state);
	wire_set(r, MCMEMBER_PROXY_JOIN, m->proxy);
}

/* ---- queries ---- */

static bool is_match(const struct sa_call *c, const u8 *rec)
{
	if (sm_sa_comp(c, MCMEMBER_COMP_PKEY) &&
	    (wire_get(rec, MCMEMBER_PKEY) ^ wire_get(c->query, MCMEMBER_PKEY)) & WIRE_PKEY_BASE)
		return false;
	if (sm_sa_comp(c, MCMEMBER_COMP_JOIN_STATE) &&
	    !(wire_get(rec, MCMEMBER_JOIN_STATE) & wire_get(c->query, MCMEMBER_JOIN_STATE)))
		return false;
	return selectors_match(c, rec) && sm_sa_match(c, rec, fields, ARRAY_SIZE(fields));
}

/* Emits a record for each member to a requester with the SM_Key; else one for the group, without members (15.4.1.2). */
static bool emit_group(struct sa_call *c, const struct sm_group *g)
{
	const struct sm_member *m;
	u8 rec[MCMEMBER_SIZE];

	if (!c->trusted || list_empty(&g->members)) {
		put_group(g, rec);
		return !is_match(c, rec) || sm_sa_emit(c, rec);
	}
	list_for_each (m, &g->members, link) {
		put_member(c, g, m, rec);
		if (is_match(c, rec) && !sm_sa_emit(c, rec))
			return false;
	}
	return true;
}

/* Every port may query its own membership. */
static bool emit_own(struct sa_call *c, const struct sm_group *g)
{
	const struct sm_member *m = c->requester ? sm_group_member(g, c->requester) : NULL;
	u8 rec[MCMEMBER_SIZE];

	if (!m)
		return true;
	put_member(c, g, m, rec);
	return !is_match(c, rec) || sm_sa_emit(c, rec);
}

void sm_sa_mcmember_get(struct sa_call *c)
{
	bool one = c->method == MAD_METHOD_GET, own = !c->trusted && sm_sa_comp(c, MCMEMBER_COMP_PORT_GID);
	struct sm_group *g;
	u8 rec[MCMEMBER_SIZE];

	list_for_each (g, &c->sm->groups, link) {
		if (!c->trusted && !(c->requester && sm_pkey_has(c->requester, g->pkey)))
			continue;
		if (one && !sm_sa_comp(c, MCMEMBER_COMP_PORT_GID)) { /* the query is for the group, with any members */
			put_group(g, rec);
			if (is_match(c, rec) && !sm_sa_emit(c, rec))
				return;
		} else if (!(own ? emit_own(c, g) : emit_group(c, g))) {
			return;
		}
	}
}

/* ---- join ---- */

/*
 * The port that joins: the requester's, or another that shares a partition with it (a proxy join). A port that has
 * joined by itself can be changed by itself only (15.2.5.17, ProxyJoin).
 */
static struct sm_port *sa_mcmember_subject(struct sa_call *c)
{
	struct wire_gid gid = wire_gid_from_bytes(wire_cbytes(c->query, MCMEMBER_PORT_GID));
	struct sm_port *p = sm_port_by_guid(c->sm, wire_gid_guid(&gid));

	if (!p || !p->lid ||
	    (wire_gid_prefix(&gid) != c->sm->cfg.subnet_prefix && wire_gid_prefix(&gid) != WIRE_GID_PREFIX_DEFAULT)) {
		c->status = SA_STATUS_INVALID_GID;
		return NULL;
	}
	if (p != c->requester && !sm_sa_may_see(c, p)) {
		c->status = SA_STATUS_REQ_INVALID;
		return NULL;
	}
	return p;
}

static bool can_take_part(struct sa_call *c, const struct sm_group *g, const struct sm_port *p)
{
	u8 rec[MCMEMBER_SIZE];

	put_group(g, rec);
	if (!sm_pkey_has(p, g->pkey) || sm_port_mtu(p) < g->mtu ||
	    wire_rate_mbps(sm_port_rate(p)) < wire_rate_mbps(g->rate) ||
	    !sm_sa_match(c, rec, fields + AGREED, ARRAY_SIZE(fields) - AGREED) || !selectors_match(c, rec) ||
	    (sm_sa_comp(c, MCMEMBER_COMP_PKEY) && (wire_get(c->query, MCMEMBER_PKEY) ^ g->pkey) & WIRE_PKEY_BASE)) {
		c->status = SA_STATUS_REQ_INVALID;
		return false;
	}
	return true;
}

/* The value of a new group: the requested one, within the limits of the creator's port. 0: not supported. */
static u8 sa_mcmember_choose(const struct sa_call *c, const struct selected *s, u8 most, u8 lowest)
{
	u8 want = wire_get(c->query, s->value);

	if (!sm_sa_comp(c, s->sel_comp) || !sm_sa_comp(c, s->comp))
		return most;
	switch (wire_get(c->query, s->sel)) {
	case SA_SELECT_GREATER:
		return sa_mcmember_rank(s, most) > sa_mcmember_rank(s, want) ? most : 0;
	case SA_SELECT_LESS:
		return sa_mcmember_rank(s, lowest) < sa_mcmember_rank(s, want)
			       ? (sa_mcmember_rank(s, most) < sa_mcmember_rank(s, want) ? most : lowest)
			       : 0;
	case SA_SELECT_EXACTLY:
		return sa_mcmember_rank(s, want) && sa_mcmember_rank(s, want) <= sa_mcmember_rank(s, most) ? want : 0;
	default:
		return most;
	}
}

/* The packet lifetime of a new group. A code over SA_LIFE_MAX: none meets the request. */
static u8 choose_life(const struct sa_call *c)
{
	u8 want = wire_get(c->query, MCMEMBER_LIFE), own = c->sm->cfg.packet_life;

	if (!sm_sa_comp(c, MCMEMBER_COMP_LIFE_SELECTOR) || !sm_sa_comp(c, MCMEMBER_COMP_LIFE))
		return own;
	switch (wire_get(c->query, MCMEMBER_LIFE_SELECTOR)) {
	case SA_SELECT_GREATER:
		return want >= own ? want + 1 : own;
	case SA_SELECT_LESS:
		return want <= own ? (u8)(want - 1) : own;
	case SA_SELECT_EXACTLY:
		return want;
	default:
		return own;
	}
}

/*
 * 4.1.1: of the flags only "transient" is checked; reserved scopes are permitted, as in OpenSM. The SA's own range
 * cannot be requested (15.2.5.17.2).
 */
static bool good_mgid(const struct wire_gid *g)
{
	if (wire_load(g->raw + 2, 2) == SIGNATURE_SA && wire_mgid_scope(g) == MGID_SCOPE_LINK)
		return false;
	return wire_gid_is_multicast(g) && wire_mgid_flags(g) <= 1;
}

/* An MGID of the SA's own range: transient, and unused. */
static struct wire_gid own_mgid(struct sm *sm, u8 scope)
{
	struct wire_gid g = { { 0xff, (u8)(0x10 | (scope ? scope : MGID_SCOPE_LINK)), 0xa0, 0x1b } };

	do {
		wire_store(g.raw + 8, 8, rng_next(&sm->rng));
	} while (sm_group_find(sm, &g));
	return g;
}

static struct sm_group *sa_mcmember_create(struct sa_call *c, struct wire_gid mgid, const struct sm_port *p)
{
	u8 scope = sm_sa_comp(c, MCMEMBER_COMP_SCOPE) ? wire_get(c->query, MCMEMBER_SCOPE) : 0;
	u8 mtu = sa_mcmember_choose(c, &selected[0], sm_port_mtu(p), WIRE_MTU_256);
	u8 rate = sa_mcmember_choose(c, &selected[1], sm_port_rate(p), WIRE_RATE_2_5);
	u8 life = choose_life(c);
	u16 pkey = wire_get(c->query, MCMEMBER_PKEY);
	struct sm_group *g;

	if ((c->comp & CREATE_COMP) != CREATE_COMP) {
		c->status = SA_STATUS_INSUFFICIENT_COMPONENTS;
		return NULL;
	}
	if (!(wire_get(c->query, MCMEMBER_JOIN_STATE) & JOIN_CREATES) ||
	    !(wire_gid_is_zero(&mgid) || good_mgid(&mgid)) || !mtu || !rate || life > SA_LIFE_MAX ||
	    !sm_pkey_has(p, pkey)) {
		c->status = SA_STATUS_REQ_INVALID;
		return NULL;
	}
	if (wire_gid_is_zero(&mgid))
		mgid = own_mgid(c->sm, scope);
	g = sm_group_create(c->sm, &mgid);
	if (!g) {
		c->status = SA_STATUS_NO_RESOURCES;
		return NULL;
	}
	g->qkey = wire_get(c->query, MCMEMBER_QKEY);
	g->pkey = pkey | WIRE_PKEY_FULL;
	g->mtu = mtu;
	g->rate = rate;
	g->life = life;
	g->sl = wire_get(c->query, MCMEMBER_SL);
	g->tclass = wire_get(c->query, MCMEMBER_TCLASS);
	g->flow = wire_get(c->query, MCMEMBER_FLOW_LABEL);
	g->hop_limit = sm_sa_comp(c, MCMEMBER_COMP_HOP_LIMIT) ? wire_get(c->query, MCMEMBER_HOP_LIMIT) : 0;
	g->scope = wire_mgid_scope(&mgid);
	sm_trap_group(c->sm, TRAP_MCAST_CREATED, g);
	return g;
}

static bool may_change(const struct sa_call *c, const struct sm_member *m)
{
	return m->proxy || m->port == c->requester || c->trusted;
}

void sm_sa_mcmember_join(struct sa_call *c)
{
	struct wire_gid mgid = wire_gid_from_bytes(wire_cbytes(c->query, MCMEMBER_MGID));
	u8 state = wire_get(c->query, MCMEMBER_JOIN_STATE), rec[MCMEMBER_SIZE];
	struct sm_member *m = NULL;
	struct sm_group *g;
	struct sm_port *p;
	bool proxy;

	if ((c->comp & JOIN_COMP) != JOIN_COMP || !state) {
		c->status =
			(c->comp & JOIN_COMP) == JOIN_COMP ? SA_STATUS_REQ_INVALID : SA_STATUS_INSUFFICIENT_COMPONENTS;
		return;
	}
	p = sa_mcmember_subject(c);
	if (!p)
		return;
	g = sm_group_find(c->sm, &mgid);
	if (!g && !(state & JOIN_CREATES))
		c->status = SA_STATUS_REQ_INVALID;
	else if (!g)
		g = sa_mcmember_create(c, mgid, p);
	else if (!can_take_part(c, g, p))
		g = NULL;
	if (!g)
		return;
	m = sm_group_member(g, p);
	if (m && !may_change(c, m)) {
		c->status = SA_STATUS_REQ_INVALID;
		return;
	}
	proxy = p != c->requester && (!m || m->proxy);
	m = sm_group_join(c->sm, g, p, state);
	if (!m) {
		c->status = SA_STATUS_NO_RESOURCES;
		sm_group_reap(c->sm, g);
		return;
	}
	m->proxy = proxy;
	put_member(c, g, m, rec);
	sm_sa_emit(c, rec);
	if (g->dirty || (s32)(g->computed - c->sm->mcast_set) > 0)
		c->wait = g;
	if (g->dirty)
		sm_sweep_mcast(c->sm);
}

void sm_sa_mcmember_leave(struct sa_call *c)
{
	struct wire_gid mgid = wire_gid_from_bytes(wire_cbytes(c->query, MCMEMBER_MGID));
	u8 state = wire_get(c->query, MCMEMBER_JOIN_STATE), rec[MCMEMBER_SIZE];
	struct sm_group *g = sm_group_find(c->sm, &mgid);
	struct sm_member *m;
	struct sm_port *p;

	if ((c->comp & JOIN_COMP) != JOIN_COMP) {
		c->status = SA_STATUS_INSUFFICIENT_COMPONENTS;
		return;
	}
	p = sa_mcmember_subject(c);
	m = g && p ? sm_group_member(g, p) : NULL;
	if (!m || !state || (m->join_state & state) != state || !may_change(c, m)) {
		if (!c->status)
			c->status = SA_STATUS_REQ_INVALID;
		return;
	}
	put_member(c, g, m, rec);
	wire_set(rec, MCMEMBER_JOIN_STATE, m->join_state & ~state);
	sm_sa_emit(c, rec);
	sm_group_leave(c->sm, g, m, state);
	sm_group_reap(c->sm, g);
	sm_sweep_mcast(c->sm);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * PathRecord and MultiPathRecord (IBTA 15.2.5.16). A path follows the forwarding tables from switch to switch, and the
 * narrowest link on it gives MTU and rate.
 */
#include "sm/sa/sa_internal.h"

#define HOPS_MAX  64
#define PATHS_MAX 127        /* of a pair: the largest NumbPath */
#define PAIRS_MAX (1u << 18) /* evaluated for one request, each in both directions: more would delay all others */

/* The requested values of either attribute. A value is valid if its bool is set. */
struct want {
	bool mtu, rate, life, pkey, sl, reversible;
	u8 mtu_sel, mtu_code, rate_sel, rate_code, life_sel, life_code;
	u16 pkey_value, slid, dlid;
	u8 sl_value, tclass, numb_path;
	u64 service_id;
	u32 flow;
};

struct path {
	const struct sm_port *src, *dst;
	u16 slid, dlid, pkey;
	u8 mtu, rate, life, sl;
	bool reversible;
};

/* ---- path through the switches ---- */

static void sa_path_narrow(struct path *p, const struct sm_port *port)
{
	u8 mtu = wire_get(port->info, PORTINFO_NEIGHBOR_MTU), rate = sm_port_rate(port);

	if (mtu)
		p->mtu = min(p->mtu, mtu);
	if (wire_rate_mbps(rate) < wire_rate_mbps(p->rate))
		p->rate = rate;
}

static bool sa_path_walk(const struct sm_port *from, const struct sm_port *to, u16 lid, struct path *p)
{
	const struct sm_port *at = from;
	u32 hops;
	u8 out;

	if (!sm_node_is_switch(from->node)) {
		sa_path_narrow(p, from);
		if (from == to)
			return true;
		at = from->peer;
	}
	for (hops = 0; at && hops < HOPS_MAX; hops++) {
		if (at == to)
			return true;
		if (!sm_node_is_switch(at->node))
			return false;
		if (at->node == to->node)
			return true; /* the switch's own port */
		out = sm_route_port(at->node, lid);
		if (!out || out > at->node->nports)
			return false;
		at = &at->node->ports[out];
		sa_path_narrow(p, at);
		at = at->peer;
	}
	return false;
}

/* ---- does the path meet the request? ---- */

/*
 * A request for an exact or smaller value is met by a path that supports more; the record then has the requested value.
 */
static bool sa_path_fit(u8 sel, u8 want, u8 *have, u32 want_value, u32 have_value)
{
	switch (sel) {
	case SA_SELECT_GREATER:
		return have_value > want_value;
	case SA_SELECT_EXACTLY:
		if (have_value < want_value)
			return false;
		*have = want;
		return true;
	default:
		return true;
	}
}

/* The largest code that is slower than @rate; 0: none. */
static u8 slower_rate(u8 rate)
{
	u8 best = 0, code;

	for (code = WIRE_RATE_2_5; code < WIRE_RATE_NUM; code++)
		if (wire_rate_mbps(code) && wire_rate_mbps(code) < wire_rate_mbps(rate) &&
		    (!best || wire_rate_mbps(code) > wire_rate_mbps(best)))
			best = code;
	return best;
}

static bool fit_mtu(const struct want *w, struct path *p)
{
	if (!w->mtu)
		return true;
	if (w->mtu_sel == SA_SELECT_LESS) {
		if (w->mtu_code <= WIRE_MTU_256)
			return false;
		p->mtu = min(p->mtu, (u8)(w->mtu_code - 1));
		return true;
	}
	return sa_path_fit(w->mtu_sel, w->mtu_code, &p->mtu, w->mtu_code, p->mtu);
}

static bool fit_rate(const struct want *w, struct path *p)
{
	u8 below;

	if (!w->rate)
		return true;
	if (w->rate_sel == SA_SELECT_LESS) {
		below = slower_rate(w->rate_code);
		if (!below)
			return false;
		if (wire_rate_mbps(below) < wire_rate_mbps(p->rate))
			p->rate = below;
		return true;
	}
	return sa_path_fit(w->rate_sel, w->rate_code, &p->rate, wire_rate_mbps(w->rate_code), wire_rate_mbps(p->rate));
}

/* A lifetime longer than the path's own is acceptable, a shorter one is not available. */
static bool fit_life(const struct want *w, struct path *p)
{
	if (!w->life)
		return true;
	switch (w->life_sel) {
	case SA_SELECT_GREATER:
		if (w->life_code == SA_LIFE_MAX)
			return false;
		p->life = max(p->life, (u8)(w->life_code + 1));
		return true;
	case SA_SELECT_LESS:
		return p->life < w->life_code;
	case SA_SELECT_EXACTLY:
		if (p->life > w->life_code)
			return false;
		p->life = w->life_code;
		return true;
	default:
		return true;
	}
}

static bool fit_pkey(const struct sa_call *c, const struct want *w, struct path *p)
{
	const struct sm_partition *part;

	p->pkey = w->pkey ? (sm_pkey_match(p->src, p->dst, w->pkey_value) ? w->pkey_value : 0)
			  : sm_pkey_common(p->src, p->dst);
	if (p->src == p->dst && !p->pkey && p->src->npkeys && !w->pkey)
		p->pkey = p->src->pkeys[0];
	if (!p->pkey)
		return false;
	part = sm_partitions_find(c->sm->parts, p->pkey);
	p->sl = w->sl ? w->sl_value : part ? part->flags.sl : 0;
	return true;
}

static bool sa_path_find(const struct sa_call *c, const struct want *w, struct path *p)
{
	struct path back;

	p->mtu = WIRE_MTU_4096;
	p->rate = sm_port_rate(p->src);
	p->life = c->sm->cfg.packet_life;
	if (!fit_pkey(c, w, p) || !sa_path_walk(p->src, p->dst, p->dlid, p))
		return false;
	back = *p;
	p->reversible = sa_path_walk(p->dst, p->src, p->slid, &back);
	if (w->reversible && !p->reversible)
		return false;
	p->mtu = min(p->mtu, min(sm_port_mtu(p->src), sm_port_mtu(p->dst)));
	return fit_mtu(w, p) && fit_rate(w, p) && fit_life(w, p);
}

static void sa_path_put(const struct sa_call *c, const struct want *w, const struct path *p, u8 *r)
{
	struct wire_gid sgid = wire_gid_make(c->sm->cfg.subnet_prefix, p->src->guid);
	struct wire_gid dgid = wire_gid_make(c->sm->cfg.subnet_prefix, p->dst->guid);

	memset(r, 0, PATHREC_SIZE);
	wire_set(r, PATHREC_SERVICE_ID, w->service_id);
	wire_copy_in(r, PATHREC_DGID, dgid.raw);
	wire_copy_in(r, PATHREC_SGID, sgid.raw);
	wire_set(r, PATHREC_DLID, p->dlid);
	wire_set(r, PATHREC_SLID, p->slid);
	wire_set(r, PATHREC_FLOW_LABEL, w->flow);
	wire_set(r, PATHREC_TCLASS, w->tclass);
	wire_set(r, PATHREC_REVERSIBLE, p->reversible);
	wire_set(r, PATHREC_NUM_PATH, 1);
	wire_set(r, PATHREC_PKEY, p->pkey);
	wire_set(r, PATHREC_SL, p->sl);
	wire_sa_path_limits(r, p->mtu, p->rate, p->life);
}

/* ---- pairs of ports ---- */

/* Counts one more pair. False: too many. */
static bool take_pair(struct sa_call *c)
{
	if (c->pairs++ >= PAIRS_MAX)
		c->status = SA_STATUS_NO_RESOURCES;
	return !c->status;
}

/*
 * Paths of one pair differ in LIDs: the nth has the nth LID of both ends, of an end with fewer LIDs one of these. An
 * end whose LID is requested has that LID in all paths. Returns the number of paths.
 */
static u32 sa_path_pair(struct sa_call *c, const struct want *w, const struct sm_port *src, const struct sm_port *dst,
			u32 max)
{
	u32 n = max(w->slid ? 1 : BIT(src->lmc), w->dlid ? 1 : BIT(dst->lmc)), i, found = 0;
	u8 rec[PATHREC_SIZE];
	struct path p;

	for (i = 0; i < n && found < max && take_pair(c); i++) {
		p = (struct path){ .src = src,
				   .dst = dst,
				   .slid = w->slid ? w->slid : (u16)(src->lid + i % BIT(src->lmc)),
				   .dlid = w->dlid ? w->dlid : (u16)(dst->lid + i % BIT(dst->lmc)) };
		if (!sa_path_find(c, w, &p))
			continue;
		sa_path_put(c, w, &p, rec);
		if (!sm_sa_emit(c, rec))
			return max;
		found++;
	}
	return found;
}

static bool sa_path_usable(const struct sa_call *c, const struct sm_port *p)
{
	return p && p->guid && p->lid && p->has_info && sm_sa_may_see(c, p);
}

/* Link-local and site-local prefixes mean this subnet, whatever their other bits are: there are no routers (4.1.1). */
static bool is_local(const struct sa_call *c, const struct wire_gid *gid)
{
	return wire_gid_prefix(gid) == c->sm->cfg.subnet_prefix || (gid->raw[0] == 0xfe && gid->raw[1] & 0x80);
}

/* The port with the GID in field @f of the request. NULL: there is none, and the status is set. */
static const struct sm_port *port_by_gid(struct sa_call *c, struct wire_field f)
{
	struct wire_gid gid = wire_gid_from_bytes(wire_cbytes(c->query, f));
	const struct sm_port *p = is_local(c, &gid) ? sm_port_by_guid(c->sm, wire_gid_guid(&gid)) : NULL;

	if (!p)
		c->status = SA_STATUS_INVALID_GID;
	return p;
}

/* One end: the requested port, or NULL for any. False: the requested port does not exist. */
static bool named_end(struct sa_call *c, bool by_gid, struct wire_field gid_field, bool by_lid,
		      struct wire_field lid_field, const struct sm_port **end)
{
	const struct sm_port *lid_port = by_lid ? sm_port_by_lid(c->sm, wire_get(c->query, lid_field)) : NULL;

	*end = by_gid ? port_by_gid(c, gid_field) : NULL;
	if (by_gid && !*end)
		return false;
	if (by_lid) {
		if (!lid_port || (*end && *end != lid_port))
			return false;
		*end = lid_port;
	}
	return true;
}

static void to_all(struct sa_call *c, const struct want *w, const struct sm_port *src, const struct sm_port *dst)
{
	struct sm_node *n;
	u32 i;

	if (dst) {
		if (sa_path_usable(c, dst))
			sa_path_pair(c, w, src, dst, w->numb_path);
		return;
	}
	list_for_each (n, &c->sm->nodes, link)
		for (i = 0; i <= n->nports && !c->status; i++)
			if (n->ports[i].guid && take_pair(c) && sa_path_usable(c, &n->ports[i]))
				sa_path_pair(c, w, src, &n->ports[i], w->numb_path);
}

/* Components that PathRecord and MultiPathRecord, R, have in common. */
#define WANT(R)                                                                          \
	.mtu = sm_sa_comp(c, R##_COMP_MTU_SELECTOR) && sm_sa_comp(c, R##_COMP_MTU),      \
	.rate = sm_sa_comp(c, R##_COMP_RATE_SELECTOR) && sm_sa_comp(c, R##_COMP_RATE),   \
	.life = sm_sa_comp(c, R##_COMP_LIFE_SELECTOR) && sm_sa_comp(c, R##_COMP_LIFE),   \
	.pkey = sm_sa_comp(c, R##_COMP_PKEY), .sl = sm_sa_comp(c, R##_COMP_SL),          \
	.reversible = sm_sa_comp(c, R##_COMP_REVERSIBLE) && wire_get(q, R##_REVERSIBLE), \
	.mtu_sel = wire_get(q, R##_MTU_SELECTOR), .mtu_code = wire_get(q, R##_MTU),      \
	.rate_sel = wire_get(q, R##_RATE_SELECTOR), .rate_code = wire_get(q, R##_RATE),  \
	.life_sel = wire_get(q, R##_LIFE_SELECTOR), .life_code = wire_get(q, R##_LIFE),  \
	.pkey_value = wire_get(q, R##_PKEY), .sl_value = wire_get(q, R##_SL),            \
	.numb_path = (sm_sa_comp(c, R##_COMP_NUM_PATH) ? wire_get(q, R##_NUM_PATH) : 0) ?: PATHS_MAX

/* A selector with a reserved code is an invalid request (15.4.4); the value is ignored if the largest is requested. */
static bool want_valid(struct sa_call *c, const struct want *w)
{
	bool mtu = !w->mtu || w->mtu_sel == SA_SELECT_LARGEST || wire_mtu_bytes(w->mtu_code);
	bool rate = !w->rate || w->rate_sel == SA_SELECT_LARGEST || wire_rate_mbps(w->rate_code);

	if (!mtu || !rate)
		c->status = SA_STATUS_REQ_INVALID;
	return mtu && rate;
}

static struct want want_of(const struct sa_call *c)
{
	const u8 *q = c->query;
	struct want w = {
		WANT(PATHREC),
		.slid = sm_sa_comp(c, PATHREC_COMP_SLID) ? wire_get(q, PATHREC_SLID) : 0,
		.dlid = sm_sa_comp(c, PATHREC_COMP_DLID) ? wire_get(q, PATHREC_DLID) : 0,
		.tclass = sm_sa_comp(c, PATHREC_COMP_TCLASS) ? wire_get(q, PATHREC_TCLASS) : 0,
		.flow = sm_sa_comp(c, PATHREC_COMP_FLOW_LABEL) ? wire_get(q, PATHREC_FLOW_LABEL) : 0,
		.service_id = wire_get(q, PATHREC_SERVICE_ID),
	};

	if (c->method == MAD_METHOD_GET)
		w.numb_path = 1;
	return w;
}

/* The path to a multicast group has the attributes of the group. */
static void group_path(struct sa_call *c, const struct wire_gid *mgid, const struct sm_port *src)
{
	const struct sm_group *g = sm_group_find(c->sm, mgid);
	struct wire_gid sgid;
	u8 r[PATHREC_SIZE] = { 0 };

	if (!g || !src || !sa_path_usable(c, src) || !sm_pkey_has(src, g->pkey) ||
	    (sm_sa_comp(c, PATHREC_COMP_PKEY) && (wire_get(c->query, PATHREC_PKEY) ^ g->pkey) & WIRE_PKEY_BASE))
		return;
	sgid = wire_gid_make(c->sm->cfg.subnet_prefix, src->guid);
	wire_copy_in(r, PATHREC_DGID, mgid->raw);
	wire_copy_in(r, PATHREC_SGID, sgid.raw);
	wire_set(r, PATHREC_DLID, g->mlid);
	wire_set(r, PATHREC_SLID, src->lid);
	wire_set(r, PATHREC_FLOW_LABEL, g->flow);
	wire_set(r, PATHREC_HOP_LIMIT, g->hop_limit);
	wire_set(r, PATHREC_TCLASS, g->tclass);
	wire_set(r, PATHREC_NUM_PATH, 1);
	wire_set(r, PATHREC_PKEY, g->pkey);
	wire_set(r, PATHREC_SL, g->sl);
	wire_sa_path_limits(r, g->mtu, g->rate, g->life);
	sm_sa_emit(c, r);
}

/* Multicast destinations by GID, or only by MLID in the LID field. */
static bool is_group(const struct sa_call *c, struct wire_gid *mgid)
{
	const struct sm_group *g;

	*mgid = wire_gid_from_bytes(wire_cbytes(c->query, PATHREC_DGID));
	if (sm_sa_comp(c, PATHREC_COMP_DGID))
		return wire_gid_is_multicast(mgid);
	g = sm_sa_comp(c, PATHREC_COMP_DLID) ? sm_group_by_mlid(c->sm, wire_get(c->query, PATHREC_DLID)) : NULL;
	if (g)
		*mgid = g->mgid;
	return g;
}

void sm_sa_path_record(struct sa_call *c)
{
	struct want w = want_of(c);
	const struct sm_port *src, *dst = NULL;
	struct wire_gid mgid;
	struct sm_node *n;
	bool group = is_group(c, &mgid);
	u32 i;

	if (!want_valid(c, &w) || !named_end(c, sm_sa_comp(c, PATHREC_COMP_SGID), PATHREC_SGID,
					     sm_sa_comp(c, PATHREC_COMP_SLID), PATHREC_SLID, &src))
		return;
	if (group) {
		group_path(c, &mgid, src ? src : c->requester);
		return;
	}
	if (!named_end(c, sm_sa_comp(c, PATHREC_COMP_DGID), PATHREC_DGID, sm_sa_comp(c, PATHREC_COMP_DLID),
		       PATHREC_DLID, &dst))
		return;
	if (src) {
		if (sa_path_usable(c, src))
			to_all(c, &w, src, dst);
		return;
	}
	list_for_each (n, &c->sm->nodes, link)
		for (i = 0; i <= n->nports && !c->status; i++)
			if (sa_path_usable(c, &n->ports[i]))
				to_all(c, &w, &n->ports[i], dst);
}

/* ---- MultiPathRecord ---- */

static const struct sm_port *multi_end(struct sa_call *c, u32 i)
{
	const struct sm_port *p = port_by_gid(c, MULTIPATHREC_GID(i));

	return sa_path_usable(c, p) ? p : NULL;
}

void sm_sa_multi_path_record(struct sa_call *c)
{
	u32 ns = (u32)wire_get(c->query, MULTIPATHREC_SGID_COUNT),
	    nd = (u32)wire_get(c->query, MULTIPATHREC_DGID_COUNT);
	const u8 *q = c->query;
	struct want w = { WANT(MULTIPATHREC) };
	const struct sm_port *src, *dst;
	u32 s, d, left = w.numb_path;

	sm_sa_size(c, PATHREC_SIZE);
	if (!want_valid(c, &w))
		return;
	if (!sm_sa_comp(c, MULTIPATHREC_COMP_SGID_COUNT) || !sm_sa_comp(c, MULTIPATHREC_COMP_DGID_COUNT) || !ns ||
	    !nd) {
		c->status = SA_STATUS_INSUFFICIENT_COMPONENTS;
		return;
	}
	if (MULTIPATHREC_HDR_SIZE + (ns + nd) * sizeof(struct wire_gid) > c->query_len) {
		c->status = SA_STATUS_REQ_INVALID;
		return;
	}
	for (s = 0; s < ns && left && !c->status; s++) {
		src = multi_end(c, s);
		for (d = 0; d < nd && src && left && !c->status; d++) {
			dst = multi_end(c, ns + d);
			if (dst)
				left -= min(sa_path_pair(c, &w, src, dst, left), left);
		}
	}
}

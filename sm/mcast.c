// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Multicast groups and members (IBTA 10.5, 15.2.5.17): create, join, leave, delete, and the groups of the partitions.
 */
#include <stdlib.h>

#include "sm/sm_internal.h"

#define IPOIB_QKEY       0x0b1b
#define IPOIB_MTU        WIRE_MTU_2048
#define IPOIB_RATE       WIRE_RATE_10
#define GROUP_LIFE       0x12
#define JOIN_MEMBER_MASK 0xf

struct sm_group *sm_group_find(const struct sm *sm, const struct wire_gid *mgid)
{
	struct sm_group *g;

	list_for_each (g, &sm->groups, link)
		if (wire_gid_equal(&g->mgid, mgid))
			return g;
	return NULL;
}

struct sm_group *sm_group_by_mlid(const struct sm *sm, u16 mlid)
{
	return wire_lid_is_multicast(mlid) && mlid - WIRE_LID_MULTICAST_MIN < SM_MLIDS_MAX
		       ? sm->by_mlid[mlid - WIRE_LID_MULTICAST_MIN]
		       : NULL;
}

/* The lowest free MLID, for short tables, among those that every switch can forward. */
static u32 free_index(const struct sm *sm)
{
	u32 cap = SM_MLIDS_MAX, own, i;
	struct sm_node *n;

	list_for_each (n, &sm->nodes, link) {
		own = sm_node_is_switch(n) ? wire_get(n->swinfo, SWITCHINFO_MFT_CAP) : 0;
		if (own && own < cap)
			cap = own;
	}
	for (i = 0; i < cap && sm->by_mlid[i]; i++)
		;
	return i < cap ? i : SM_NONE;
}

struct sm_group *sm_group_create(struct sm *sm, const struct wire_gid *mgid)
{
	struct sm_group *g;
	u32 at = free_index(sm);

	if (at == SM_NONE)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	list_init(&g->members);
	g->mgid = *mgid;
	g->mlid = (u16)(WIRE_LID_MULTICAST_MIN + at);
	g->dirty = true;
	sm->by_mlid[at] = g;
	sm->mlid_top = max(sm->mlid_top, at + 1);
	sm->st.groups++;
	list_add(&sm->groups, &g->link);
	return g;
}

/* The next update of the MFTs clears entries without a group. */
static void group_destroy(struct sm *sm, struct sm_group *g)
{
	struct sm_member *m, *tmp;

	list_for_each_safe (m, tmp, &g->members, link) {
		m->port->groups--;
		free(m);
	}
	sm->by_mlid[g->mlid - WIRE_LID_MULTICAST_MIN] = NULL;
	sm->mcast_group_deleted = true;
	sm->st.groups--;
	list_del(&g->link);
	free(g);
}

struct sm_member *sm_group_member(const struct sm_group *g, const struct sm_port *p)
{
	struct sm_member *m;

	list_for_each (m, &g->members, link)
		if (m->port == p)
			return m;
	return NULL;
}

struct sm_member *sm_group_join(struct sm *sm, struct sm_group *g, struct sm_port *p, u8 join_state)
{
	struct sm_member *m = sm_group_member(g, p);

	if (!m) {
		m = p->groups < SM_PORT_GROUPS ? calloc(1, sizeof(*m)) : NULL;
		if (!m)
			return NULL;
		p->groups++;
		m->port = p;
		list_add(&g->members, &m->link);
	}
	g->dirty |= (m->join_state | join_state) != m->join_state;
	m->join_state |= join_state & JOIN_MEMBER_MASK;
	return m;
}

void sm_group_leave(struct sm *sm, struct sm_group *g, struct sm_member *m, u8 join_state)
{
	m->join_state &= ~join_state & JOIN_MEMBER_MASK;
	g->dirty = true;
	if (m->join_state)
		return;
	list_del(&m->link);
	m->port->groups--;
	free(m);
}

void sm_group_reap(struct sm *sm, struct sm_group *g)
{
	struct sm_member *m;

	if (g->well_known)
		return;
	list_for_each (m, &g->members, link)
		if (m->join_state & JOIN_CREATES)
			return;
	sm_trap_group(sm, TRAP_MCAST_DELETED, g);
	group_destroy(sm, g);
}

void sm_mcast_forget_port(struct sm *sm, struct sm_port *p)
{
	struct sm_group *g, *tmp;
	struct sm_member *m;

	list_for_each_safe (g, tmp, &sm->groups, link) {
		m = sm_group_member(g, p);
		if (!m)
			continue;
		sm_group_leave(sm, g, m, JOIN_MEMBER_MASK);
		sm_group_reap(sm, g);
	}
}

/* ---- groups of the partitions ---- */

static void well_known(struct sm *sm, const struct sm_partition *part, const struct wire_gid *mgid,
		       const struct sm_group_flags *f)
{
	struct sm_group *g = sm_group_find(sm, mgid);

	if (g) {
		g->well_known = true;
		return;
	}
	g = sm_group_create(sm, mgid);
	if (!g) {
		sm_log(sm, LOG_WARN, "partition %s: no free multicast LID", part->name);
		return;
	}
	g->well_known = true;
	g->pkey = part->pkey | WIRE_PKEY_FULL;
	g->qkey = f->qkey ? f->qkey : IPOIB_QKEY;
	g->mtu = f->mtu_set ? f->mtu : IPOIB_MTU;
	g->rate = f->rate_set ? f->rate : IPOIB_RATE;
	g->sl = f->sl_set ? f->sl : 0;
	g->tclass = f->tclass;
	g->flow = f->flow;
	g->life = GROUP_LIFE;
	g->scope = wire_mgid_scope(mgid);
}

/* The broadcast group of IPoIB is ff1S:401b:PKEY::ffff:ffff (RFC 4391, 4). */
void sm_mcast_init(struct sm *sm)
{
	const struct sm_partition *part;
	struct wire_gid mgid;
	u32 scopes, i;
	u64 prefix;

	for (part = sm->parts->part; part < sm->parts->part + sm->parts->n; part++) {
		scopes = part->flags.scopes ? part->flags.scopes : BIT(MGID_SCOPE_LINK);
		for (i = 0; part->ipoib && i < 16; i++) {
			prefix = 0xff10401b00000000ull | (u64)i << 48 | (u64)(part->pkey | WIRE_PKEY_FULL) << 16;
			mgid = wire_gid_make(prefix, 0xffffffff);
			if (scopes & BIT(i))
				well_known(sm, part, &mgid, &part->flags);
		}
		for (i = 0; i < part->ngroups; i++)
			well_known(sm, part, &part->groups[i].mgid, &part->groups[i].flags);
	}
}

void sm_mcast_resign(struct sm *sm)
{
	struct sm_group *g, *tmp;

	list_for_each_safe (g, tmp, &sm->groups, link)
		group_destroy(sm, g);
}

void sm_mcast_fini(struct sm *sm)
{
	sm_mcast_resign(sm);
	sm->mlid_top = 0;
}

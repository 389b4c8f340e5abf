// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Multicast spanning trees (IBTA 14.2.5.12): for each group a tree of shortest paths from the switch with the smallest
 * sum of distances to the hosts to the switches of the members; groups use different paths of equal length.
 */
#include <stdlib.h>

#include "sm/sm_internal.h"

#define POSITIONS_MAX 16

/* Work space, reused for all groups. */
struct tree {
	struct sm_route r; /* from the root */
	u8 *in;            /* [n] part of this group's tree */
};

static u32 mcast_route_positions(const struct sm_node *n)
{
	return min((u32)n->nports / MFT_PORTS_PER_POSITION + 1, (u32)POSITIONS_MAX);
}

/* ---- tables ---- */

static void mcast_route_clear(struct sm *sm, u32 index)
{
	struct sm_node *n;

	list_for_each (n, &sm->nodes, link)
		if (index < n->mft_len)
			memset(n->mft + index * mcast_route_positions(n), 0,
			       mcast_route_positions(n) * sizeof(*n->mft));
}

static void mcast_route_put(struct sm_node *n, u32 index, u8 port)
{
	u32 pos = port / MFT_PORTS_PER_POSITION;

	if (pos < mcast_route_positions(n) && index < n->mft_len)
		n->mft[index * mcast_route_positions(n) + pos] |= 1 << port % MFT_PORTS_PER_POSITION;
}

/* ---- one tree ---- */

/* The edge from @s towards the root; which one of several depends on the group. */
static u32 mcast_route_parent(const struct sm_route *r, u32 s, u32 index)
{
	const struct sm_graph *g = r->g;
	u32 e, n = 0, want;

	for (e = g->first[s]; e < g->first[s + 1]; e++)
		n += r->dist[g->edge[e].to] + 1 == r->dist[s];
	want = n ? index % n : 0;
	for (e = g->first[s]; e < g->first[s + 1]; e++)
		if (r->dist[g->edge[e].to] + 1 == r->dist[s] && !want--)
			return e;
	return SM_NONE;
}

/* Adds the switches of members to the tree, and the ports of receiving members to the port mask. */
static void add_members(struct tree *t, const struct sm_group *g, u32 index)
{
	struct sm_member *m;
	struct sm_port *at;

	list_for_each (m, &g->members, link) {
		at = sm_port_switch(m->port);
		if (!at || at->node->sw == SM_NONE)
			continue;
		t->in[at->node->sw] = 1;
		if (m->join_state & (JOIN_FULL | JOIN_NON))
			mcast_route_put(at->node, index, at->num);
	}
}

/* Connects each switch to its parent, the farthest first, down to the root of the members. */
static void connect_tree(struct tree *t, u32 index)
{
	const struct sm_graph *g = t->r.g;
	u32 i, s, e, left = 0;

	for (i = 0; i < t->r.reached; i++)
		left += t->in[t->r.order[i]];
	for (i = t->r.reached; i-- > 1 && left > 1;) {
		s = t->r.order[i];
		if (!t->in[s])
			continue;
		e = mcast_route_parent(&t->r, s, index);
		if (e == SM_NONE)
			continue;
		mcast_route_put(g->node[s], index, g->edge[e].port);
		mcast_route_put(g->node[g->edge[e].to], index, g->edge[e].to_port);
		left -= t->in[g->edge[e].to];
		t->in[g->edge[e].to] = 1;
	}
}

static void route_group(struct sm *sm, struct tree *t, struct sm_group *g)
{
	u32 index = g->mlid - WIRE_LID_MULTICAST_MIN;

	mcast_route_clear(sm, index);
	g->dirty = false;
	g->computed = sm->mcast_computed;
	if (list_empty(&g->members) || !sm->graph.n)
		return;
	memset(t->in, 0, sm->graph.n);
	add_members(t, g, index);
	connect_tree(t, index);
}

/* ---- all groups ---- */

static int tree_init(struct tree *t, struct sm_graph *g)
{
	u32 s, root = 0;

	t->in = calloc(g->n + 1, 1);
	if (!t->in || sm_route_init(&t->r, g))
		return -1;
	for (s = 1; s < g->n; s++)
		if (g->far[s] < g->far[root])
			root = s;
	if (g->n)
		sm_route_bfs(&t->r, root);
	return 0;
}

static bool resize_all(struct sm *sm)
{
	u32 mlids = (sm->mlid_top + MFT_PER_BLOCK - 1) / MFT_PER_BLOCK * MFT_PER_BLOCK;
	struct sm_node *n;

	list_for_each (n, &sm->nodes, link) {
		size_t size = mcast_route_positions(n) * sizeof(*n->mft), old = n->mft_len * size, len = mlids * size;

		if (!sm_node_is_switch(n) || n->mft_len >= mlids)
			continue;
		if (!sm_route_grow(&n->mft, old, len, 0) || !sm_route_grow(&n->mft_set, old, len, 0))
			return false;
		n->mft_len = mlids;
	}
	return true;
}

void sm_mcast_route(struct sm *sm, bool all)
{
	struct tree t = { .in = NULL };
	struct sm_group *g;
	u32 i;

	sm->want_mcast = false;
	sm->mcast_computed++;
	if (!resize_all(sm) || tree_init(&t, &sm->graph)) {
		sm_log(sm, LOG_ERROR, "no memory for multicast trees");
		sm->errors++;
		goto out;
	}
	for (i = 0; sm->mcast_group_deleted && i < sm->mlid_top; i++)
		if (!sm->by_mlid[i])
			mcast_route_clear(sm, i);
	sm->mcast_group_deleted = false;
	list_for_each (g, &sm->groups, link)
		if (all || g->dirty)
			route_group(sm, &t, g);
out:
	sm_route_fini(&t.r);
	free(t.in);
}

/* ---- Set(MulticastForwardingTable) ---- */

static void on_mft(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	if (mad && !sm_smp_status(mad))
		return;
	smp->node->mft_unknown = true;
	sm_sweep_error(sm, smp, "the multicast table is not set");
}

static void push_block(struct sm *sm, struct sm_node *n, u32 block, u32 pos)
{
	u32 np = mcast_route_positions(n), i, at;
	struct sm_smp *smp;
	bool same = !n->mft_unknown;

	for (i = 0; same && i < MFT_PER_BLOCK; i++) {
		at = (block * MFT_PER_BLOCK + i) * np + pos;
		same = n->mft[at] == n->mft_set[at];
	}
	if (same)
		return;
	smp = sm_smp_new(sm, n, SMP_ATTR_MFT, pos << MFT_POSITION_SHIFT | block, on_mft);
	if (!smp)
		return;
	smp->method = MAD_METHOD_SET;
	for (i = 0; i < MFT_PER_BLOCK; i++) {
		at = (block * MFT_PER_BLOCK + i) * np + pos;
		wire_set(smp->data, MFT_PORT_MASK(i), n->mft[at]);
		n->mft_set[at] = n->mft[at];
	}
	sm_smp_queue(sm, smp);
}

void sm_mcast_push(struct sm *sm, struct sm_port *p)
{
	struct sm_node *n = p->node;
	u32 block, pos;

	if (p->num || !sm_node_is_switch(n) || !wire_get(n->swinfo, SWITCHINFO_MFT_CAP))
		return;
	for (block = 0; block < n->mft_len / MFT_PER_BLOCK; block++)
		for (pos = 0; pos < mcast_route_positions(n); pos++)
			push_block(sm, n, block, pos);
	n->mft_unknown = false;
}

void sm_mcast_pushed(struct sm *sm)
{
	sm->mcast_set = sm->mcast_computed;
	sm->cfg.sa->flush(sm);
}

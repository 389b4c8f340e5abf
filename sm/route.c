// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Linear forwarding tables (IBTA 14.2.5.10): a routing engine computes the candidate links towards each destination
 * switch; this file selects one of them for each LID so that the load of all-to-all traffic is balanced: flows are
 * accumulated from the farthest switches towards the destination. On two and three level fat trees the paths are those
 * of a fat-tree routing.
 */
#include <errno.h>
#include <stdlib.h>

#include "sm/sm_internal.h"

int sm_route_init(struct sm_route *r, struct sm_graph *g)
{
	r->g = g;
	r->dist = calloc(g->n + 1, sizeof(*r->dist));
	r->tmp = calloc(g->n + 1, sizeof(*r->tmp));
	r->cand = calloc(g->nedges + 1, 1);
	r->order = calloc(g->n + 1, sizeof(*r->order));
	r->queue = calloc(g->n + 1, sizeof(*r->queue));
	r->reached = 0;
	if (r->dist && r->tmp && r->cand && r->order && r->queue)
		return 0;
	sm_route_fini(r);
	return -ENOMEM;
}

void sm_route_fini(struct sm_route *r)
{
	free(r->dist);
	free(r->tmp);
	free(r->cand);
	free(r->order);
	free(r->queue);
	memset(r, 0, sizeof(*r));
}

void sm_route_bfs(struct sm_route *r, u32 to)
{
	const struct sm_graph *g = r->g;
	u32 head = 0, tail = 0, s, t, e;

	memset(r->dist, 0xff, g->n * sizeof(*r->dist));
	r->dist[to] = 0;
	r->order[tail++] = to;
	while (head < tail) {
		s = r->order[head++];
		for (e = g->first[s]; e < g->first[s + 1]; e++) {
			t = g->edge[e].to;
			if (r->dist[t] == 0xffff) {
				r->dist[t] = r->dist[s] + 1;
				r->order[tail++] = t;
			}
		}
	}
	r->reached = tail;
}

/* ---- selection ---- */

struct fill {
	struct sm_route r;
	u64 *load; /* [nedges] */
	u32 *flow; /* [switch * batch + i]: hosts whose traffic to the ith LID passes the switch */
	u32 batch;
	u8 *active;
};

/* Assigns the flow of @s to the ith LID to the least loaded of the @n candidates. */
static void route_choose(struct fill *f, u32 s, const u32 *cand, u32 n, const struct sm_dest *d, u32 nlids, u8 *lft)
{
	const struct sm_edge *edge = f->r.g->edge;
	u32 *flow = f->flow + (size_t)s * f->batch;
	u32 i, k, best, fl;

	for (i = 0; i < nlids; i++) {
		best = cand[0];
		for (k = 1; k < n; k++)
			if (f->load[cand[k]] < f->load[best])
				best = cand[k];
		fl = flow[i] + f->r.g->hosts[s];
		lft[d[i].lid] = edge[best].port;
		f->load[best] += fl;
		f->flow[(size_t)edge[best].to * f->batch + i] += fl;
		f->active[s] |= fl != 0;
	}
}

/* Fills the entries for all LIDs of one switch, in the farthest switches first. */
static void fill_dest(struct fill *f, const struct sm_dest *d, u32 nlids, u8 **lft)
{
	const struct sm_graph *g = f->r.g;
	u32 cand[256], n, i, s, e, to = d->sw;

	memset(f->flow, 0, (size_t)g->n * f->batch * sizeof(*f->flow));
	memset(f->active, 0, g->n);
	for (i = f->r.reached; i-- > 0;) {
		s = f->r.order[i];
		if (s == to)
			continue;
		for (e = g->first[s], n = 0; e < g->first[s + 1]; e++)
			if (f->r.cand[e])
				cand[n++] = e;
		if (n)
			route_choose(f, s, cand, n, d, nlids, lft[s]);
	}
	for (i = 0; i < nlids; i++)
		lft[to][d[i].lid] = d[i].port;
}

static u32 same_switch(const struct sm_dest *d, u32 n)
{
	u32 i;

	for (i = 1; i < n && d[i].sw == d[0].sw; i++)
		;
	return i;
}

int sm_route_fill(struct sm_graph *g, const struct sm_engine *e, const struct sm_dest *dests, u32 ndests, u8 **lft,
		  struct sm_deps *deps)
{
	struct fill f = { .batch = 1 };
	u32 i, n, s, to;
	int err = e->setup ? e->setup(g) : 0;

	if (err)
		return err;
	for (i = 0; i < ndests; i += n) {
		n = same_switch(dests + i, ndests - i);
		f.batch = max(f.batch, n);
	}
	err = sm_route_init(&f.r, g);
	f.load = calloc(g->nedges + 1, sizeof(*f.load));
	f.flow = calloc((size_t)(g->n + 1) * f.batch, sizeof(*f.flow));
	f.active = calloc(g->n + 1, 1);
	if (!f.load || !f.flow || !f.active)
		err = -ENOMEM;
	if (!err)
		memset(g->far, 0, g->n * sizeof(*g->far));
	for (i = 0; !err && i < ndests; i += n) {
		n = same_switch(dests + i, ndests - i);
		to = dests[i].sw;
		e->prepare(&f.r, to);
		fill_dest(&f, dests + i, n, lft);
		for (s = 0; s < g->n; s++)
			g->far[s] += (u64)f.r.dist[s] * g->hosts[to];
		if (deps && g->hosts[to])
			sm_deps_add(deps, &f.r, f.active);
	}
	sm_route_fini(&f.r);
	free(f.load);
	free(f.flow);
	free(f.active);
	return err;
}

/* ---- forwarding tables of the subnet ---- */

static int by_switch(const void *a, const void *b)
{
	const struct sm_dest *x = a, *y = b;

	if (x->sw != y->sw)
		return x->sw < y->sw ? -1 : 1;
	return x->lid < y->lid ? -1 : x->lid > y->lid;
}

/* Lists every LID with its switch and the output port there. */
static u32 route_destinations(struct sm *sm, struct sm_dest *d)
{
	struct sm_port *p, *at;
	u32 lid, n = 0;

	for (lid = 1; lid <= sm->max_lid; lid++) {
		p = sm->by_lid[lid];
		at = p ? sm_port_switch(p) : NULL;
		if (at && at->node->sw != SM_NONE)
			d[n++] = (struct sm_dest){ at->node->sw, (u16)lid, at->num };
	}
	qsort(d, n, sizeof(*d), by_switch);
	return n;
}

bool sm_route_grow(void *table, size_t old, size_t len, u8 fill)
{
	void **t = table;
	u8 *more = realloc(*t, len);

	if (!more)
		return false;
	*t = more;
	memset(more + old, fill, len - old);
	return true;
}

static u8 **route_tables(struct sm *sm)
{
	u8 **lft = calloc(sm->graph.n + 1, sizeof(*lft));
	u32 i, len = sm->lft_len;

	for (i = 0; lft && i < sm->graph.n; i++) {
		struct sm_node *n = sm->graph.node[i];

		if (n->lft_len < len) {
			if (!sm_route_grow(&n->lft, n->lft_len, len, LFT_PORT_NONE) ||
			    !sm_route_grow(&n->lft_set, n->lft_len, len, SM_LFT_UNKNOWN)) {
				free(lft);
				return NULL;
			}
			n->lft_len = len;
		}
		lft[i] = n->lft;
		memset(lft[i], LFT_PORT_NONE, n->lft_len);
	}
	return lft;
}

static int route_run(struct sm *sm, const struct sm_dest *d, u32 n, u8 **lft)
{
	struct sm_deps *deps = NULL;
	bool automatic = !strcmp(sm->cfg.routing, "auto");
	int err;

	sm->engine = strcmp(sm->cfg.routing, "updn") ? &sm_route_minhop : &sm_route_updn;
	if (automatic)
		deps = sm_deps_create(&sm->graph);
	err = sm_route_fill(&sm->graph, sm->engine, d, n, lft, deps);
	if (!err && automatic && (!deps || sm_deps_cyclic(deps))) {
		sm->engine = &sm_route_updn;
		err = sm_route_fill(&sm->graph, sm->engine, d, n, lft, NULL);
	}
	sm_deps_destroy(deps);
	return !err && sm->lfts ? sm_lfts_apply(sm, sm->lfts, lft) : err;
}

void sm_route_all(struct sm *sm)
{
	struct sm_dest *d = malloc((sm->max_lid + 1u) * sizeof(*d));
	u8 **lft = NULL;

	sm->lft_len = (sm->max_lid / LFT_PER_BLOCK + 1u) * LFT_PER_BLOCK;
	if (d && !sm_graph_build(sm, &sm->graph))
		lft = route_tables(sm);
	if (!lft || route_run(sm, d, route_destinations(sm, d), lft)) {
		sm_log(sm, LOG_ERROR, "no memory for forwarding tables");
		sm->errors++;
	}
	sm->st.routing = sm->lfts ? "file" : sm->engine ? sm->engine->name : "none";
	free(lft);
	free(d);
}

u8 sm_route_port(const struct sm_node *sw, u16 lid)
{
	return lid < sw->lft_len ? sw->lft[lid] : LFT_PORT_NONE;
}

/* ---- Set(LinearForwardingTable) ---- */

void sm_route_reset(struct sm_node *n)
{
	if (n->lft_set)
		memset(n->lft_set, SM_LFT_UNKNOWN, n->lft_len);
	n->mft_unknown = true;
}

static void on_lft(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	u8 *set = smp->node->lft_set + smp->arg * LFT_PER_BLOCK;

	if (mad && !sm_smp_status(mad))
		return;
	memset(set, SM_LFT_UNKNOWN, LFT_PER_BLOCK);
	sm_sweep_error(sm, smp, "the forwarding table is not set");
}

static void push_block(struct sm *sm, struct sm_node *n, u32 block)
{
	u8 *want = n->lft + block * LFT_PER_BLOCK, *set = n->lft_set + block * LFT_PER_BLOCK;
	struct sm_smp *smp;

	if (!memcmp(want, set, LFT_PER_BLOCK))
		return;
	smp = sm_smp_new(sm, n, SMP_ATTR_LFT, block, on_lft);
	if (!smp)
		return;
	smp->method = MAD_METHOD_SET;
	smp->arg = block;
	memcpy(smp->data, want, LFT_PER_BLOCK);
	memcpy(set, want, LFT_PER_BLOCK);
	sm_smp_queue(sm, smp);
}

/* Sends one block to every switch before the next block, so that all switches progress. */
bool sm_route_push(struct sm *sm)
{
	struct sm_node *n = sm->it_node;

	if (&n->link == &sm->nodes) {
		if (++sm->it_block >= sm->lft_len / LFT_PER_BLOCK)
			return false;
		sm->it_node = list_first(&sm->nodes, struct sm_node, link);
		return true;
	}
	if (n->sw != SM_NONE && sm->it_block < n->lft_len / LFT_PER_BLOCK)
		push_block(sm, n, sm->it_block);
	sm->it_node = list_entry(n->link.next, struct sm_node, link);
	return true;
}

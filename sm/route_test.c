// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of routing on graphs drawn by hand: everything is reached by the fewest hops, evenly, and without a circle. */
#include <stdio.h>
#include <stdlib.h>

#include "sm/internal.h"

#define SWITCHES_MAX 64

static u32 passed, failed;

static void row(const char *name, const char *what, bool ok)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("FAIL %s: %s\n", name, what);
}

/* ---- graphs ---- */

struct draw {
	u32 n, nedges;
	struct sm_edge edge[2 * SWITCHES_MAX * 8];
	u8 ports[SWITCHES_MAX];
	u32 hosts[SWITCHES_MAX];
};

static void cable(struct draw *d, u32 a, u32 b)
{
	u8 pa = ++d->ports[a], pb = ++d->ports[b];

	d->edge[d->nedges++] = (struct sm_edge){ a, b, pa, pb };
	d->edge[d->nedges++] = (struct sm_edge){ b, a, pb, pa };
}

static void ring(struct draw *d)
{
	u32 i;

	d->n = 6;
	for (i = 0; i < d->n; i++) {
		cable(d, i, (i + 1) % d->n);
		d->hosts[i] = 2;
	}
}

static void torus(struct draw *d)
{
	u32 x, y;

	d->n = 16;
	for (y = 0; y < 4; y++)
		for (x = 0; x < 4; x++) {
			cable(d, y * 4 + x, y * 4 + (x + 1) % 4);
			cable(d, y * 4 + x, (y + 1) % 4 * 4 + x);
			d->hosts[y * 4 + x] = 1;
		}
}

/* Four leafs with four hosts each under four spines. */
static void two_levels(struct draw *d)
{
	u32 i, j;

	d->n = 8;
	for (i = 0; i < 4; i++) {
		d->hosts[i] = 4;
		for (j = 4; j < 8; j++)
			cable(d, i, j);
	}
}

static void line(struct draw *d)
{
	u32 i;

	d->n = 5;
	for (i = 0; i + 1 < d->n; i++)
		cable(d, i, i + 1);
	d->hosts[0] = d->hosts[4] = 3;
}

static int by_from(const void *a, const void *b)
{
	const struct sm_edge *x = a, *y = b;

	return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->port < y->port ? -1 : x->port > y->port;
}

static void build(struct sm_graph *g, struct draw *d)
{
	qsort(d->edge, d->nedges, sizeof(d->edge[0]), by_from);
	memset(g, 0, sizeof(*g));
	sm_graph_alloc(g, d->n, d->nedges);
	memcpy(g->edge, d->edge, d->nedges * sizeof(d->edge[0]));
	memcpy(g->hosts, d->hosts, d->n * sizeof(d->hosts[0]));
	sm_graph_index(g);
}

/* ---- what is wanted of a routing ---- */

static u32 next_hop(const struct sm_graph *g, u32 sw, u8 port)
{
	u32 e;

	for (e = g->first[sw]; e < g->first[sw + 1]; e++)
		if (g->edge[e].port == port)
			return e;
	return SM_NONE;
}

struct tables {
	struct sm_graph g;
	struct sm_dest dest[256];
	u32 ndests;
	u8 *lft[SWITCHES_MAX], lids[SWITCHES_MAX][512];
};

/* A LID for each host, and one for the switch itself. */
static void name_all(struct tables *t)
{
	u32 s, h;
	u16 lid = 1;

	for (s = 0; s < t->g.n; s++) {
		t->lft[s] = t->lids[s];
		memset(t->lids[s], 255, sizeof(t->lids[s]));
		for (h = 0; h <= t->g.hosts[s]; h++)
			t->dest[t->ndests++] = (struct sm_dest){ .sw = s, .lid = lid++, .port = (u8)(h ? 100 + h : 0) };
	}
}

/* Does every switch reach every LID, in @most more hops than the shortest way? */
static bool reached(struct tables *t, u32 most)
{
	struct sm_route r;
	u32 d, s, at, e, hops;
	bool ok = !sm_route_init(&r, &t->g);

	for (d = 0; ok && d < t->ndests; d++) {
		sm_route_bfs(&r, t->dest[d].sw);
		for (s = 0; s < t->g.n; s++) {
			for (at = s, hops = 0; at != t->dest[d].sw && hops < 64; hops++) {
				e = next_hop(&t->g, at, t->lft[at][t->dest[d].lid]);
				if (e == SM_NONE)
					break;
				at = t->g.edge[e].to;
			}
			ok &= at == t->dest[d].sw && hops <= r.dist[s] + most;
		}
	}
	sm_route_fini(&r);
	return ok;
}

/* The number of flows over the busiest and the idlest link from the first level, in hundredths of the mean. */
static bool balanced(struct tables *t)
{
	u32 load[1024] = { 0 }, s, d, e, h, least = ~0u, most = 0;

	for (d = 0; d < t->ndests; d++)
		for (s = 0; s < t->g.n; s++)
			for (h = 0; h < t->g.hosts[s] && t->dest[d].port; h++) {
				e = next_hop(&t->g, s, t->lft[s][t->dest[d].lid]);
				if (e != SM_NONE)
					load[e]++;
			}
	for (e = 0; e < t->g.nedges; e++) {
		if (!t->g.hosts[t->g.edge[e].from])
			continue;
		least = min(least, load[e]);
		most = max(most, load[e]);
	}
	return most - least <= most / 4;
}

static const struct graph_row {
	const char *name;
	void (*draw)(struct draw *d);
	const struct sm_engine *engine;
	u32 more_hops;
	bool cyclic, balanced;
} rows[] = {
	{ "ring, min-hop", ring, &sm_route_minhop, 0, true, false },
	{ "ring, up/down", ring, &sm_route_updn, 64, false, false },
	{ "torus, min-hop", torus, &sm_route_minhop, 0, true, false },
	{ "torus, up/down", torus, &sm_route_updn, 64, false, false },
	{ "two levels, min-hop", two_levels, &sm_route_minhop, 0, false, true },
	{ "two levels, up/down", two_levels, &sm_route_updn, 2, false, true },
	{ "line, min-hop", line, &sm_route_minhop, 0, false, false },
	{ "line, up/down", line, &sm_route_updn, 0, false, false },
};

static void one(const struct graph_row *r)
{
	static struct tables t;
	struct sm_deps *deps;
	struct draw d = { 0 };

	memset(&t, 0, sizeof(t));
	r->draw(&d);
	build(&t.g, &d);
	name_all(&t);
	deps = sm_deps_create(&t.g);
	row(r->name, "tables", sm_route_fill(&t.g, r->engine, t.dest, t.ndests, t.lft, deps) == 0);
	row(r->name, "reached", reached(&t, r->more_hops));
	row(r->name, r->cyclic ? "a circle" : "no circle", sm_deps_cyclic(deps) == r->cyclic);
	if (r->balanced)
		row(r->name, "balanced", balanced(&t));
	sm_deps_destroy(deps);
	sm_graph_fini(&t.g);
}

int main(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		one(&rows[i]);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Routing of drawn graphs: shortest paths to all hosts, balanced loads, no credit loops. */
#include <stdlib.h>

#include "emu/lib/row.h"
#include "sm/sm_internal.h"

#define N_MAX    64
#define LID_MAX  512
#define PORT_MAX 64

/* A graph under construction: links by adjacency, hosts on switches. */
struct drawing {
	u32 n, hosts[N_MAX], nlinks;
	struct {
		u32 a, b;
	} link[256];
};

static void link_up(struct drawing *d, u32 a, u32 b)
{
	d->link[d->nlinks].a = a;
	d->link[d->nlinks++].b = b;
}

static void ring(struct drawing *d, u32 n)
{
	u32 i;

	d->n = n;
	for (i = 0; i < n; i++) {
		d->hosts[i] = 2;
		link_up(d, i, (i + 1) % n);
	}
}

static void ring6(struct drawing *d)
{
	ring(d, 6);
}

static void ring7(struct drawing *d)
{
	ring(d, 7);
}

/* Switches 0 - 3 are leafs, 4 and 5 spines. */
static void clos(struct drawing *d)
{
	u32 i;

	d->n = 6;
	for (i = 0; i < 4; i++) {
		d->hosts[i] = 4;
		link_up(d, i, 4);
		link_up(d, i, 5);
	}
}

static void mesh4x4(struct drawing *d)
{
	u32 x, y;

	d->n = 16;
	for (y = 0; y < 4; y++)
		for (x = 0; x < 4; x++) {
			d->hosts[y * 4 + x] = 1;
			if (x < 3)
				link_up(d, y * 4 + x, y * 4 + x + 1);
			if (y < 3)
				link_up(d, y * 4 + x, y * 4 + x + 4);
		}
}

static void torus4x4(struct drawing *d)
{
	u32 i;

	mesh4x4(d);
	for (i = 0; i < 4; i++) {
		link_up(d, i * 4 + 3, i * 4);
		link_up(d, 12 + i, i);
	}
}

/* Two switches with three cables between them. */
static void trunk(struct drawing *d)
{
	d->n = 2;
	d->hosts[0] = d->hosts[1] = 6;
	link_up(d, 0, 1);
	link_up(d, 0, 1);
	link_up(d, 0, 1);
}

/* Ports: 1 - 8 have the hosts, the following ones the links in the order of drawing. */
struct built {
	struct sm_graph g;
	struct sm_dest dest[LID_MAX];
	u32 ndest;
	u8 *lft[N_MAX];
	u32 next[N_MAX][PORT_MAX]; /* [switch][port]: the other end; SM_NONE */
};

static int by_from(const void *a, const void *b)
{
	const struct sm_edge *x = a, *y = b;

	return x->from != y->from ? (x->from < y->from ? -1 : 1) : (int)x->port - (int)y->port;
}

static void build(struct built *b, const struct drawing *d)
{
	u8 port[N_MAX];
	u32 i, k, lid = 1;

	memset(b, 0, sizeof(*b));
	memset(b->next, 0xff, sizeof(b->next));
	memset(port, 8, sizeof(port));
	if (sm_graph_alloc(&b->g, d->n, d->nlinks * 2))
		exit(1);
	for (i = 0; i < d->nlinks; i++) {
		u32 x = d->link[i].a, y = d->link[i].b;

		port[x]++;
		port[y]++;
		b->g.edge[2 * i] = (struct sm_edge){ x, y, port[x], port[y] };
		b->g.edge[2 * i + 1] = (struct sm_edge){ y, x, port[y], port[x] };
		b->next[x][port[x]] = y;
		b->next[y][port[y]] = x;
	}
	qsort(b->g.edge, b->g.nedges, sizeof(*b->g.edge), by_from);
	sm_graph_index(&b->g);
	for (i = 0; i < d->n; i++) {
		b->g.hosts[i] = d->hosts[i];
		b->lft[i] = malloc(LID_MAX);
		memset(b->lft[i], LFT_PORT_NONE, LID_MAX);
		for (k = 0; k <= d->hosts[i]; k++)
			b->dest[b->ndest++] = (struct sm_dest){ i, (u16)lid++, (u8)k };
	}
}

static void destroy(struct built *b)
{
	u32 i;

	for (i = 0; i < b->g.n; i++)
		free(b->lft[i]);
	sm_graph_fini(&b->g);
}

/* Hops from @s to the destination; SM_NONE: the tables do not reach it. */
static u32 walk(const struct built *b, u32 s, const struct sm_dest *d)
{
	u32 hops;

	for (hops = 0; hops <= b->g.n; hops++) {
		if (s == d->sw)
			return b->lft[s][d->lid] == d->port ? hops : SM_NONE;
		if (b->lft[s][d->lid] >= PORT_MAX)
			return SM_NONE;
		s = b->next[s][b->lft[s][d->lid]];
		if (s == SM_NONE)
			return SM_NONE;
	}
	return SM_NONE;
}

static bool all_reached(const struct built *b, bool shortest)
{
	struct sm_route r;
	u32 i, s, hops;
	bool ok = true;

	if (sm_route_init(&r, (struct sm_graph *)&b->g))
		exit(1);
	for (i = 0; i < b->ndest; i++) {
		sm_route_bfs(&r, b->dest[i].sw);
		for (s = 0; s < b->g.n; s++) {
			hops = walk(b, s, &b->dest[i]);
			ok &= hops != SM_NONE && (!shortest || hops == r.dist[s]);
		}
	}
	sm_route_fini(&r);
	return ok;
}

/* Does a cycle exist in the channel dependencies of the tables themselves, rather than of the candidates? */
static bool tables_cyclic(const struct built *b)
{
	static bool dep[512][512], seen[512];
	u32 n = b->g.nedges, e, f, i, k, changed;

	memset(dep, 0, sizeof(dep));
	for (i = 0; i < b->ndest; i++) {
		if (!b->dest[i].port)
			continue; /* management traffic may use illegal paths */
		for (e = 0; e < n; e++)
			for (f = b->g.first[b->g.edge[e].to]; f < b->g.first[b->g.edge[e].to + 1]; f++)
				if (b->lft[b->g.edge[e].from][b->dest[i].lid] == b->g.edge[e].port &&
				    b->lft[b->g.edge[f].from][b->dest[i].lid] == b->g.edge[f].port)
					dep[e][f] = true;
	}
	/* remove channels without dependencies until nothing changes */
	memset(seen, 0, sizeof(seen));
	do {
		changed = 0;
		for (e = 0; e < n; e++) {
			for (k = 0, f = 0; f < n; f++)
				k += dep[e][f] && !seen[f];
			if (!seen[e] && !k) {
				seen[e] = true;
				changed++;
			}
		}
	} while (changed);
	for (e = 0; e < n && seen[e]; e++)
		;
	return e < n;
}

/* Difference between the host LIDs of the most and the least used link out of @s. */
static u32 imbalance(const struct built *b, u32 s)
{
	u32 use[PORT_MAX] = { 0 }, i, lo = SM_NONE, hi = 0;

	for (i = 0; i < b->ndest; i++)
		if (b->dest[i].sw != s && b->dest[i].port && b->lft[s][b->dest[i].lid] < PORT_MAX)
			use[b->lft[s][b->dest[i].lid]]++;
	for (i = b->g.first[s]; i < b->g.first[s + 1]; i++) {
		lo = min(lo, use[b->g.edge[i].port]);
		hi = max(hi, use[b->g.edge[i].port]);
	}
	return hi - lo;
}

static const struct {
	const char *name;
	void (*draw)(struct drawing *d);
	bool loop;     /* min-hop has a credit loop */
	u32 imbalance; /* limit for the links of switch 0 under min-hop */
} rows[] = {
	{ "ring of 6", ring6, true, 2 }, { "ring of 7", ring7, true, 2 }, { "leafs and spines", clos, false, 1 },
	{ "torus", torus4x4, true, 4 },  { "mesh", mesh4x4, true, 3 },    { "three cables", trunk, false, 0 },
};

static void test(u32 row)
{
	struct drawing d = { 0 };
	struct sm_deps *deps;
	struct built b;

	rows[row].draw(&d);
	build(&b, &d);
	deps = sm_deps_create(&b.g);
	row_of(rows[row].name, "min-hop fails", !sm_route_fill(&b.g, &sm_route_minhop, b.dest, b.ndest, b.lft, deps));
	row_of(rows[row].name, "min-hop: not reached, or by more hops than needed", all_reached(&b, true));
	row_of(rows[row].name, "min-hop: the load is not even", imbalance(&b, 0) <= rows[row].imbalance);
	row_of(rows[row].name, "min-hop: cyclic dependencies are detected", sm_deps_cyclic(deps) == rows[row].loop);
	sm_deps_destroy(deps);
	destroy(&b);

	build(&b, &d);
	deps = sm_deps_create(&b.g);
	row_of(rows[row].name, "up/down fails", !sm_route_fill(&b.g, &sm_route_updn, b.dest, b.ndest, b.lft, deps));
	row_of(rows[row].name, "up/down: not reached", all_reached(&b, false));
	row_of(rows[row].name, "up/down: the tables have a loop", !tables_cyclic(&b));
	row_of(rows[row].name, "up/down: a loop is possible", !sm_deps_cyclic(deps));
	sm_deps_destroy(deps);
	destroy(&b);
}

/* A ring under min-hop has a credit loop in its tables: tables_cyclic() can fail. */
static void test_ring_loops(void)
{
	struct drawing d = { 0 };
	struct built b;

	ring6(&d);
	build(&b, &d);
	row_of("ring", "min-hop fails", !sm_route_fill(&b.g, &sm_route_minhop, b.dest, b.ndest, b.lft, NULL));
	row_of("ring", "min-hop's tables have no loop", tables_cyclic(&b));
	destroy(&b);
}

int main(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		test(i);
	test_ring_loops();
	return rows_end();
}

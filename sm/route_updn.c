// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Up/down routing: a path goes up towards the roots, then down, never up again, which excludes credit loops in any
 * topology.
 *
 * Ranks count from the roots; within a rank the switch with the lower number is the upper one, so that every link has
 * an upper end. A switch with a down-only path to the destination uses it, so that a path that has gone down can
 * continue down. The others go up. Where neither is possible (from one root to another) the path of fewest hops is
 * used, down and up: only management traffic goes there, and the switches after it all have legal paths.
 */
#include <errno.h>
#include <stdlib.h>

#include "sm/sm_internal.h"

#define FAR     0xffff
#define ILLEGAL 0x4000 /* added to the distance of switches without a legal path */

static bool route_updn_upper(const struct sm_graph *g, u32 a, u32 b)
{
	return g->rank[a] != g->rank[b] ? g->rank[a] < g->rank[b] : a < b;
}

/* Computes distances from all switches with 0 in @dist, in place. */
static void route_updn_spread(const struct sm_graph *g, u16 *dist, u32 *queue)
{
	u32 head = 0, tail = 0, s, e;

	for (s = 0; s < g->n; s++)
		if (!dist[s])
			queue[tail++] = s;
	while (head < tail) {
		s = queue[head++];
		for (e = g->first[s]; e < g->first[s + 1]; e++)
			if (dist[g->edge[e].to] == FAR) {
				dist[g->edge[e].to] = dist[s] + 1;
				queue[tail++] = g->edge[e].to;
			}
	}
}

/* The centre of the graph (minimum eccentricity): the root where every switch has hosts (rings, meshes). */
static u32 route_updn_centre(const struct sm_graph *g, u16 *dist, u32 *queue)
{
	u32 s, t, best = 0, worst, best_worst = FAR + 1;

	/* a few hundred starting points are a sufficient sample of a large graph */
	for (s = 0; s < g->n; s += max(g->n / 256, 1u)) {
		for (t = 0; t < g->n; t++)
			dist[t] = t == s ? 0 : FAR;
		route_updn_spread(g, dist, queue);
		for (t = worst = 0; t < g->n; t++)
			worst = max(worst, dist[t] == FAR ? 0u : dist[t]);
		if (worst < best_worst) {
			best_worst = worst;
			best = s;
		}
	}
	return best;
}

/* The roots are the switches farthest from any host. */
static int route_updn_setup(struct sm_graph *g)
{
	u16 *dist = calloc(g->n + 1, sizeof(*dist));
	u32 *queue = calloc(g->n + 1, sizeof(*queue)), s, high = 0, root;

	if (dist && queue && g->n) {
		for (s = 0; s < g->n; s++)
			dist[s] = g->hosts[s] ? 0 : FAR;
		route_updn_spread(g, dist, queue);
		for (s = 0; s < g->n; s++)
			high = max(high, dist[s] == FAR ? 0u : dist[s]);
		root = high ? SM_NONE : route_updn_centre(g, g->rank, queue);
		for (s = 0; s < g->n; s++)
			g->rank[s] = (high ? dist[s] == high : s == root) ? 0 : FAR;
		route_updn_spread(g, g->rank, queue);
	}
	free(dist);
	free(queue);
	return dist && queue ? 0 : -ENOMEM;
}

/* Distances of switches with a down-only path to @to: breadth first from it, upwards. */
static u32 down_paths(struct sm_route *r, u32 to)
{
	const struct sm_graph *g = r->g;
	u32 head = 0, tail = 0, s, t, e;

	for (s = 0; s < g->n; s++)
		r->dist[s] = FAR;
	r->dist[to] = 0;
	r->queue[tail++] = to;
	while (head < tail) {
		s = r->queue[head++];
		for (e = g->first[s]; e < g->first[s + 1]; e++) {
			t = g->edge[e].to;
			if (r->dist[t] == FAR && route_updn_upper(g, t, s)) {
				r->dist[t] = r->dist[s] + 1;
				r->queue[tail++] = t;
			}
		}
	}
	return tail;
}

/*
 * Distances of the others by an upper neighbour, nearest first. dist counts hops, so buckets are lists by distance; the
 * queue already has the first switches by ascending distance and is merged with the new ones.
 */
static u32 up_paths(struct sm_route *r, u32 n)
{
	const struct sm_graph *g = r->g;
	u16 *down = r->tmp;
	u32 i, s, t, e, d, more = n;
	bool again = true;

	memcpy(down, r->dist, g->n * sizeof(*down));
	for (d = 0; again; d++) {
		again = false;
		for (i = 0; i < more; i++) {
			s = r->queue[i];
			again |= r->dist[s] > d;
			if (r->dist[s] != d)
				continue;
			for (e = g->first[s]; e < g->first[s + 1]; e++) {
				t = g->edge[e].to;
				if (r->dist[t] != FAR || !route_updn_upper(g, s, t))
					continue;
				r->dist[t] = (u16)(d + 1);
				r->queue[more++] = t;
				again = true;
			}
		}
	}
	return more;
}

/* Distances of the rest, by hops from any reached switch. */
static u32 illegal_paths(struct sm_route *r, u32 n)
{
	const struct sm_graph *g = r->g;
	u32 i, e, t;

	for (i = 0; i < n; i++)
		for (e = g->first[r->queue[i]]; e < g->first[r->queue[i] + 1]; e++) {
			t = g->edge[e].to;
			if (r->dist[t] != FAR)
				continue;
			r->dist[t] = (u16)((r->dist[r->queue[i]] | ILLEGAL) + 1);
			r->queue[n++] = t;
		}
	return n;
}

static int by_dist(const void *a, const void *b, void *ctx)
{
	const struct sm_route *r = ctx;
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	if (r->dist[x] != r->dist[y])
		return r->dist[x] < r->dist[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

static bool route_updn_candidate(const struct sm_route *r, const struct sm_edge *e)
{
	u16 from = r->dist[e->from], to = r->dist[e->to];

	if (from == FAR || to == FAR)
		return false;
	if (r->tmp[e->from] != FAR)
		return r->tmp[e->to] != FAR && route_updn_upper(r->g, e->from, e->to) && from == to + 1;
	if (from & ILLEGAL)
		return (to & ILLEGAL) ? from == to + 1 : true;
	return route_updn_upper(r->g, e->to, e->from) && from == to + 1;
}

static void route_updn_prepare(struct sm_route *r, u32 to)
{
	const struct sm_graph *g = r->g;
	u32 e;

	r->reached = illegal_paths(r, up_paths(r, down_paths(r, to)));
	memcpy(r->order, r->queue, r->reached * sizeof(*r->order));
	qsort_r(r->order, r->reached, sizeof(*r->order), by_dist, r);
	for (e = 0; e < g->nedges; e++)
		r->cand[e] = route_updn_candidate(r, &g->edge[e]);
}

const struct sm_engine sm_route_updn = { "updn", route_updn_setup, route_updn_prepare };

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Min-hop routing engine: every neighbour that is one hop closer to the destination is a candidate. */
#include "sm/sm_internal.h"

static void route_minhop_prepare(struct sm_route *r, u32 to)
{
	const struct sm_graph *g = r->g;
	u32 e;

	sm_route_bfs(r, to);
	for (e = 0; e < g->nedges; e++)
		r->cand[e] = r->dist[g->edge[e].from] == r->dist[g->edge[e].to] + 1;
}

const struct sm_engine sm_route_minhop = { "minhop", .prepare = route_minhop_prepare };

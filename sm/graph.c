// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Graph of the switches for routing: nodes, edges, CA ports per switch. */
#include <errno.h>
#include <stdlib.h>

#include "sm/sm_internal.h"

int sm_graph_alloc(struct sm_graph *g, u32 n, u32 nedges)
{
	sm_graph_fini(g);
	g->n = n;
	g->nedges = nedges;
	g->node = calloc(n + 1, sizeof(*g->node));
	g->edge = calloc(nedges + 1, sizeof(*g->edge));
	g->first = calloc(n + 2, sizeof(*g->first));
	g->hosts = calloc(n + 1, sizeof(*g->hosts));
	g->rank = calloc(n + 1, sizeof(*g->rank));
	g->far = calloc(n + 1, sizeof(*g->far));
	if (g->node && g->edge && g->first && g->hosts && g->rank && g->far)
		return 0;
	sm_graph_fini(g);
	return -ENOMEM;
}

void sm_graph_fini(struct sm_graph *g)
{
	free(g->node);
	free(g->edge);
	free(g->first);
	free(g->hosts);
	free(g->rank);
	free(g->far);
	memset(g, 0, sizeof(*g));
}

void sm_graph_index(struct sm_graph *g)
{
	u32 i, s = 0;

	for (i = 0; i < g->nedges; i++)
		while (s <= g->edge[i].from)
			g->first[s++] = i;
	while (s <= g->n)
		g->first[s++] = g->nedges;
}

/* Is it an inter-switch link? The peer is a port of a switch, and not the port itself. */
static bool is_edge(const struct sm_port *p)
{
	return p->num && p->peer && p->peer != p && p->peer->num && sm_node_is_switch(p->peer->node) &&
	       p->peer->node != p->node && p->has_info && p->peer->has_info;
}

static void fill_switch(struct sm_graph *g, struct sm_node *node, u32 *e)
{
	struct sm_port *p;
	u32 i;

	g->node[node->sw] = node;
	for (i = 1; i <= node->nports; i++) {
		p = &node->ports[i];
		if (is_edge(p))
			g->edge[(*e)++] = (struct sm_edge){ node->sw, p->peer->node->sw, p->num, p->peer->num };
		else if (p->peer && !sm_node_is_switch(p->peer->node))
			g->hosts[node->sw]++;
	}
}

int sm_graph_build(struct sm *sm, struct sm_graph *g)
{
	struct sm_node *node;
	u32 n = 0, nedges = 0, e = 0, i;

	list_for_each (node, &sm->nodes, link) {
		node->sw = sm_node_is_switch(node) ? n++ : SM_NONE;
		for (i = 1; node->sw != SM_NONE && i <= node->nports; i++)
			nedges += is_edge(&node->ports[i]);
	}
	if (sm_graph_alloc(g, n, nedges))
		return -ENOMEM;
	list_for_each (node, &sm->nodes, link)
		if (node->sw != SM_NONE)
			fill_switch(g, node, &e);
	sm_graph_index(g);
	return 0;
}

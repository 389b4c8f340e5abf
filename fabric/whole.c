// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The topology of all daemons of a fabric: finds nodes and ports that other daemons have. */
#include <errno.h>
#include <stdio.h>

#include "emu/lib/spec.h"
#include "fabric/fabric_internal.h"

void fabric_set_whole(struct fabric *f, const struct fabric_topology *whole, u32 shard)
{
	f->whole = whole;
	f->shard = shard;
}

static bool whole_has_guid(const struct fabric_topology_node *n, u64 guid)
{
	u32 i;

	if (n->guid == guid)
		return true;
	for (i = 1; n->type == NODE_TYPE_CA && i <= n->nports; i++)
		if (fabric_topology_port_guid(n, i) == guid)
			return true;
	return false;
}

const struct fabric_topology_node *fabric_whole_find(const struct fabric *f, const char *name)
{
	u64 guid = fabric_node_guid_of(name);
	u32 i;

	for (i = 0; f->whole && i < f->whole->nnodes; i++)
		if (!strcmp(f->whole->nodes[i].name, name))
			return &f->whole->nodes[i];
	for (i = 0; f->whole && guid && i < f->whole->nnodes; i++)
		if (whole_has_guid(&f->whole->nodes[i], guid))
			return &f->whole->nodes[i];
	return NULL;
}

void fabric_set_cables(struct fabric *f, const struct fabric_cable_ops *ops, void *ctx)
{
	f->cables = ops;
	f->cables_ctx = ctx;
}

static void whole_end(const struct fabric *f, const struct fabric_topology_node *n, u8 num, struct fabric_end *end)
{
	struct fabric_node *here = n->shard == f->shard ? fabric_node_find(f, n->name) : NULL;

	*end = (struct fabric_end){ .node = n, .num = num, .port = here ? &here->ports[num] : NULL };
}

/* The cable at "h1" or "leaf1:5": that end and the other one. */
static int whole_cable(const struct fabric *f, const char *place, struct fabric_end end[2], char *err, size_t err_len)
{
	const struct fabric_topology_node *n = fabric_whole_find(f, place);
	const struct fabric_topology_port *p;
	const char *colon = strrchr(place, ':');
	char name[FABRIC_NAME_MAX + 1];
	u64 num = n && n->type == NODE_TYPE_CA && n->nports == 1;

	if (!n && colon && (size_t)(colon - place) < sizeof(name)) {
		snprintf(name, sizeof(name), "%.*s", (int)(colon - place), place);
		n = fabric_whole_find(f, name);
		if (n && (!spec_number(colon + 1, 255, &num) || !num || num > n->nports))
			return spec_refuse(err, err_len, "%.80s: the ports of %s are 1 to %u", place, n->name,
					   n->nports);
	}
	if (!n)
		return spec_refuse(err, err_len, "%.80s: there is no such node", place);
	if (!num)
		return spec_refuse(err, err_len, "%.80s: which port? Use %s:1 to %s:%u", place, n->name, n->name,
				   n->nports);
	p = &n->ports[num];
	if (p->peer == FABRIC_NO_PEER)
		return spec_refuse(err, err_len, "%.80s: it has no cable", place);
	whole_end(f, n, (u8)num, &end[0]);
	whole_end(f, &f->whole->nodes[p->peer], p->peer_port, &end[1]);
	return 0;
}

int fabric_whole_cables(const struct fabric *f, const char *a, const char *b, struct fabric_end end[4], char *err,
			size_t err_len)
{
	if (!f->whole)
		return -ENOENT;
	return whole_cable(f, a, &end[0], err, err_len) ?: whole_cable(f, b, &end[2], err, err_len);
}

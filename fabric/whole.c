// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The topology of all daemons of a fabric: finds nodes and ports that other daemons have. */
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

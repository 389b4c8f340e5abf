// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shards: a topology that is split into the parts of several daemons, with a trunk for each cable between two parts. */
#include <errno.h>
#include <stdlib.h>

#include "emu/wire/smp.h"
#include "fabric/build.h"

/* The shard of most of a switch's neighbours; if several, by turns. -1: no neighbour has one yet. */
static int shard_of_neighbours(const struct fabric_topology *t, u32 node, const int *shard, u32 count, u32 turn)
{
	const struct fabric_topology_node *n = &t->nodes[node];
	u32 votes[FABRIC_SHARDS_MAX] = { 0 }, most = 0, i, p;
	int best = -1;

	for (p = 1; p <= n->nports; p++)
		if (n->ports[p].peer != FABRIC_NO_PEER && shard[n->ports[p].peer] >= 0)
			most = max(most, ++votes[shard[n->ports[p].peer]]);
	for (i = 0; most && i < count && best < 0; i++)
		if (votes[(turn + i) % count] == most)
			best = (int)((turn + i) % count);
	return best;
}

static bool shard_is_leaf(const struct fabric_topology *t, const struct fabric_topology_node *n)
{
	u32 p;

	for (p = 1; n->type == NODE_TYPE_SWITCH && p <= n->nports; p++)
		if (n->ports[p].peer != FABRIC_NO_PEER && t->nodes[n->ports[p].peer].type == NODE_TYPE_CA)
			return true;
	return false;
}

/*
 * Leafs, which are switches with hosts, are split evenly in the order of the topology; a host is in the shard of the
 * leaf of its first port. Other switches follow level by level, to the shard of most of their neighbours. Hosts without
 * the fabric are in shard 0.
 */
static u32 shards_assign(const struct fabric_topology *t, u32 count, int *shard)
{
	u32 i, p, leafs = 0, leaf = 0, turn = 0, changed;
	int *next = calloc(t->nnodes, sizeof(*next));

	for (i = 0; i < t->nnodes; i++) {
		shard[i] = -1;
		leafs += shard_is_leaf(t, &t->nodes[i]);
	}
	for (i = 0; i < t->nnodes; i++) {
		const struct fabric_topology_node *n = &t->nodes[i];

		if (!shard_is_leaf(t, n))
			continue;
		shard[i] = (int)((u64)leaf++ * count / leafs);
		for (p = 1; p <= n->nports; p++)
			if (n->ports[p].peer != FABRIC_NO_PEER && t->nodes[n->ports[p].peer].type == NODE_TYPE_CA &&
			    shard[n->ports[p].peer] < 0)
				shard[n->ports[p].peer] = shard[i];
	}
	do {
		for (i = changed = 0; next && i < t->nnodes; i++) {
			next[i] = shard[i] < 0 ? shard_of_neighbours(t, i, shard, count, turn) : -1;
			turn += next[i] >= 0;
		}
		for (i = 0; next && i < t->nnodes; i++)
			if (next[i] >= 0) {
				shard[i] = next[i];
				changed++;
			}
	} while (changed);
	for (i = 0; i < t->nnodes; i++)
		shard[i] = max(shard[i], 0);
	free(next);
	return leafs;
}

static int shard_add_trunk(struct fabric_topology *t, u32 node, u8 port, const int *shard,
			   const struct fabric_shard *at)
{
	const struct fabric_topology_port *p = &t->nodes[node].ports[port];
	const struct fabric_topology_node *peer = &t->nodes[p->peer];
	struct fabric_topology_trunk *tt = fabric_build_append(&t->trunks, &t->ntrunks, sizeof(*tt));
	u32 to = (u32)shard[p->peer];

	if (!tt)
		return -ENOMEM;
	tt->node = node;
	tt->port = port;
	tt->listen = to > at->index; /* that of the higher number, which starts later, connects */
	tt->peer_guid = peer->guid;
	tt->peer_port = p->peer_port;
	tt->peer_type = peer->type;
	memcpy(tt->peer_name, peer->name, sizeof(tt->peer_name));
	tt->address = at->address(at->ctx, tt->listen ? at->index : to);
	return tt->address ? 0 : -ENOMEM;
}

/* Removes the nodes of other shards. */
static int shard_compact(struct fabric_topology *t, const int *shard, int index)
{
	u32 *at = calloc(t->nnodes, sizeof(*at)), i, p, n = 0;

	if (!at)
		return -ENOMEM;
	for (i = 0; i < t->nnodes; i++) {
		struct fabric_topology_node *node = &t->nodes[i];

		at[i] = n;
		if (shard[i] == index) {
			t->nodes[n++] = *node;
			continue;
		}
		free(node->id);
		free(node->ports);
		free(node->ip);
		free(node->binding);
	}
	t->nnodes = n;
	for (i = 0; i < n; i++)
		for (p = 1; p <= t->nodes[i].nports; p++)
			if (t->nodes[i].ports[p].peer != FABRIC_NO_PEER)
				t->nodes[i].ports[p].peer = at[t->nodes[i].ports[p].peer];
	for (i = 0; i < t->ntrunks; i++)
		t->trunks[i].node = at[t->trunks[i].node];
	free(at);
	return 0;
}

int fabric_topology_shard(struct fabric_topology *t, const struct fabric_shard *at, char *err, size_t err_len)
{
	int *shard = calloc(t->nnodes, sizeof(*shard)), rc = 0;
	u32 i, p, leafs = shard ? shards_assign(t, at->count, shard) : 0;

	if (!shard || t->ether || t->ntrunks || leafs < at->count) {
		snprintf(err, err_len, "%s",
			 !shard       ? "out of memory"
			 : t->ether   ? "a topology with Ethernet switches cannot be split into shards"
			 : t->ntrunks ? "a topology with trunks of its own cannot be split into shards"
				      : "there are fewer leaf switches, which are those with hosts, than shards");
		free(shard);
		return -EINVAL;
	}
	for (i = 0; i < t->nnodes && !rc; i++)
		for (p = 1; p <= t->nodes[i].nports && !rc; p++) {
			struct fabric_topology_port *port = &t->nodes[i].ports[p];

			if (shard[i] != (int)at->index || port->peer == FABRIC_NO_PEER ||
			    shard[port->peer] == (int)at->index)
				continue;
			rc = shard_add_trunk(t, i, (u8)p, shard, at);
			port->peer = FABRIC_NO_PEER;
		}
	rc = rc ? rc : shard_compact(t, shard, (int)at->index);
	if (rc)
		snprintf(err, err_len, "out of memory");
	free(shard);
	return rc;
}

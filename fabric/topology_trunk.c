// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Trunks of a topology: parser of their lines, and trunks of a topology that is split into shards, which are daemons of
 * one subnet.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/un.h>

#include "emu/wire/smp.h"
#include "fabric/build.h"

#define TRUNK_LINE "expected trunk NODE:PORT to|listen ADDRESS [peer GUID[:PORT]] [key FILE] [tls on|off]"

/* Adds the ports that trunks name to those of the switch's shape. */
static int trunk_grow(struct fabric_build *b, struct fabric_topology_node *n, u32 port)
{
	struct fabric_topology_port *more;
	u32 p;

	if (n->type != NODE_TYPE_SWITCH || port > FABRIC_SWITCH_PORTS_MAX)
		return fabric_build_error(b, "\"%.60s\" has ports 1 to %u, not %u", n->name, n->nports, port);
	more = realloc(n->ports, (port + 1) * sizeof(*more));
	if (!more)
		return fabric_build_error(b, "out of memory");
	n->ports = more;
	for (p = n->nports + 1u; p <= port; p++)
		more[p] = (struct fabric_topology_port){ .peer = FABRIC_NO_PEER };
	n->nports = (u8)port;
	return 0;
}

static int trunk_place(struct fabric_build *b, const char *word, struct fabric_topology_trunk *tt)
{
	char name[FABRIC_NAME_MAX + 8], *colon, *end;
	struct fabric_topology_node *n;
	unsigned long port;
	s64 node;
	u32 i;
	int err;

	snprintf(name, sizeof(name), "%s", word);
	colon = strrchr(name, ':');
	if (!colon)
		return fabric_build_error(b, TRUNK_LINE);
	*colon = 0;
	port = strtoul(colon + 1, &end, 10);
	node = fabric_build_find_name(b, name);
	if (node < 0)
		return fabric_build_error(b, "there is no node \"%.60s\"", name);
	n = &b->t->nodes[node];
	if (end == colon + 1 || *end || !port || port > FABRIC_SWITCH_PORTS_MAX || n->binding)
		return fabric_build_error(b, "\"%.60s\" has no port \"%.20s\"", name, colon + 1);
	err = port > n->nports ? trunk_grow(b, n, (u32)port) : 0;
	if (err)
		return err;
	for (i = 0; i < b->t->ntrunks; i++)
		if (b->t->trunks[i].node == node && b->t->trunks[i].port == port)
			return fabric_build_error(b, "%.60s:%lu has a trunk already", name, port);
	if (n->ports[port].peer != FABRIC_NO_PEER)
		return fabric_build_error(b, "port %lu of \"%.60s\" is wired already (line %u)", port, name,
					  n->ports[port].line);
	n->ports[port].lanes = b->lanes;
	n->ports[port].speed = b->speed;
	tt->node = (u32)node;
	tt->port = (u8)port;
	return 0;
}

/* Parses "0x0002c90400000010:5", or only the GUID. */
static bool trunk_peer(const char *word, struct fabric_topology_trunk *tt)
{
	unsigned long port = 0;
	char *end;

	tt->peer_guid = strtoull(word, &end, 16);
	if (*end == ':')
		port = strtoul(end + 1, &end, 10);
	tt->peer_port = (u8)port;
	return tt->peer_guid && !*end && port <= FABRIC_SWITCH_PORTS_MAX;
}

/* Is the address local? A peer on another machine needs a key. */
static bool trunk_is_local(const char *address)
{
	return address[0] == '/' || !strncmp(address, "127.", 4) || !strncmp(address, "[::1]:", 6);
}

static int trunk_check(struct fabric_build *b, const struct fabric_topology_trunk *tt)
{
	const char *colon = strrchr(tt->address, ':');

	if (tt->address[0] == '/' ? strlen(tt->address) >= sizeof(((struct sockaddr_un *)0)->sun_path)
				  : !colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return fabric_build_error(
			b, "\"%.60s\": an address of a trunk is the path of a socket (/...), or like 192.0.2.7:4000",
			tt->address);
	if (tt->tls && (!tt->key || tt->address[0] == '/'))
		return fabric_build_error(b, "tls on: it needs an address of TCP and: key FILE");
	if (tt->key || trunk_is_local(tt->address))
		return 0;
	return fabric_build_error(b, "a trunk at \"%.60s\", which is not of this machine, needs: key FILE",
				  tt->address);
}

static int trunk_options(struct fabric_build *b, struct fabric_line *l, struct fabric_topology_trunk *tt)
{
	char word[256], value[256], tls[4] = "";

	while (fabric_line_word(l, word, sizeof(word)) && word[0] != '#') {
		if (!fabric_line_word(l, value, sizeof(value)))
			return fabric_build_error(b, TRUNK_LINE);
		if (!strcmp(word, "key") && !tt->key) {
			tt->key = strdup(value);
			if (!tt->key)
				return fabric_build_error(b, "out of memory");
		} else if (!strcmp(word, "tls") && !tls[0] && (!strcmp(value, "on") || !strcmp(value, "off"))) {
			memcpy(tls, value, strlen(value) + 1);
		} else if (strcmp(word, "peer") || !trunk_peer(value, tt)) {
			return fabric_build_error(b, TRUNK_LINE);
		}
	}
	tt->tls = tls[0] ? !strcmp(tls, "on") : tt->key && !trunk_is_local(tt->address);
	return 0;
}

int fabric_build_trunk(struct fabric_build *b, struct fabric_line *l)
{
	char place[FABRIC_NAME_MAX + 8], how[8], address[160];
	struct fabric_topology_trunk found = { .node = 0 }, *tt;
	int err;

	if (!fabric_line_word(l, place, sizeof(place)) || !fabric_line_word(l, how, sizeof(how)) ||
	    !fabric_line_word(l, address, sizeof(address)) || (strcmp(how, "to") && strcmp(how, "listen")))
		return fabric_build_error(b, TRUNK_LINE);
	err = trunk_place(b, place, &found);
	if (err)
		return err;
	tt = fabric_build_append(&b->t->trunks, &b->t->ntrunks, sizeof(*tt));
	if (!tt)
		return fabric_build_error(b, "out of memory");
	*tt = found;
	tt->listen = !strcmp(how, "listen");
	tt->address = strdup(address);
	if (!tt->address)
		return fabric_build_error(b, "out of memory");
	err = trunk_options(b, l, tt);
	return err ? err : trunk_check(b, tt);
}

/* Shards */

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

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shards: a topology that is split into the parts of several daemons, with a trunk for each cable between two parts. */
#include <arpa/inet.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>

#include "emu/lib/host_port.h"
#include "emu/wire/smp.h"
#include "fabric/build.h"

#define SHARD_LINE "expected shard NAME [listen ADDRESS] [key FILE] [tls on|off] [sm] nodes PATTERN..."

/* Lines */

s64 fabric_topology_shard_find(const struct fabric_topology *t, const char *name)
{
	u32 i;

	for (i = 0; i < t->nshards; i++)
		if (!strcmp(t->shards[i].name, name))
			return i;
	return -1;
}

static int shard_manager(struct fabric_build *b, struct fabric_topology_shard *shard)
{
	u32 i;

	for (i = 0; i < b->t->nshards; i++)
		if (b->t->shards[i].manager)
			return fabric_build_error(b, "shard \"%.60s\" has the subnet manager already (line %u)",
						  b->t->shards[i].name, b->t->shards[i].line);
	shard->manager = true;
	return 0;
}

/* The words between name and patterns. */
static int shard_options(struct fabric_build *b, struct fabric_line *l, struct fabric_topology_shard *shard)
{
	struct fabric_build_trust trust = { .key = NULL };
	char word[256];
	int err = 0;

	while (err >= 0 && fabric_line_word(l, word, sizeof(word)) && strcmp(word, "nodes") != 0) {
		err = fabric_build_trust(b, SHARD_LINE, word, l, &trust);
		if (err)
			continue;
		if (!strcmp(word, "sm"))
			err = shard_manager(b, shard);
		else if (strcmp(word, "listen") != 0 || shard->address || !fabric_line_word(l, word, sizeof(word)))
			err = fabric_build_error(b, SHARD_LINE);
		else if (!(shard->address = strdup(word)))
			err = fabric_build_error(b, "out of memory");
	}
	if (err >= 0 && shard->address && shard->address[0] == '*')
		err = fabric_build_error(b, "\"%.60s\": the other shards need an address or a name to connect to",
					 shard->address);
	else if (err >= 0 && shard->address)
		err = fabric_build_address(b, shard->address, &trust);
	else if (err >= 0 && (trust.key || trust.tls_given))
		err = fabric_build_error(b, "key and tls are of connections to this shard: they need listen ADDRESS");
	shard->key = trust.key;
	shard->tls = trust.tls;
	return min(err, 0);
}

int fabric_build_shard(struct fabric_build *b, struct fabric_line *l)
{
	struct fabric_topology_shard *shard;
	struct fabric_build_pattern *p;
	char word[FABRIC_NAME_MAX];
	u32 n = b->npatterns;
	int err;

	if (!fabric_line_word(l, word, sizeof(word)) || word[0] == '#')
		return fabric_build_error(b, SHARD_LINE);
	if (fabric_topology_shard_find(b->t, word) >= 0)
		return fabric_build_error(b, "there is a shard \"%.60s\" already (line %u)", word,
					  b->t->shards[fabric_topology_shard_find(b->t, word)].line);
	if (b->t->nshards == FABRIC_SHARD_LINES_MAX)
		return fabric_build_error(b, "more than %u shards", FABRIC_SHARD_LINES_MAX);
	shard = fabric_build_append(&b->t->shards, &b->t->nshards, sizeof(*shard));
	if (!shard)
		return fabric_build_error(b, "out of memory");
	memcpy(shard->name, word, sizeof(word));
	shard->line = b->line;
	err = shard_options(b, l, shard);
	while (!err && fabric_line_word(l, word, sizeof(word)) && word[0] != '#') {
		p = fabric_build_append(&b->patterns, &b->npatterns, sizeof(*p));
		if (!p)
			return fabric_build_error(b, "out of memory");
		p->line = b->line;
		p->shard = b->t->nshards - 1;
		memcpy(p->name, word, sizeof(word));
	}
	return err || b->npatterns > n ? err : fabric_build_error(b, SHARD_LINE);
}

static int pattern_apply(struct fabric_build *b, const struct fabric_build_pattern *pattern, bool *placed)
{
	struct fabric_topology *t = b->t;
	u32 i, n = 0;

	for (i = 0; i < t->nnodes; i++) {
		struct fabric_topology_node *node = &t->nodes[i];

		if (fnmatch(pattern->name, node->name, 0) != 0)
			continue;
		n++;
		if (placed[i] && node->shard != pattern->shard)
			return fabric_build_error(b, "\"%.60s\" is in shard \"%.60s\" already (line %u)", node->name,
						  t->shards[node->shard].name, t->shards[node->shard].line);
		placed[i] = true;
		node->shard = pattern->shard;
	}
	return n ? 0 : fabric_build_error(b, "there is no node \"%.60s\"", pattern->name);
}

/* The other daemon can connect to that of the earlier line. */
static int shard_check_cables(struct fabric_build *b, const struct fabric_topology_node *n)
{
	const struct fabric_topology_shard *shard = &b->t->shards[n->shard];
	u32 p;

	for (p = 1; p <= n->nports; p++) {
		const struct fabric_topology_node *peer =
			n->ports[p].peer == FABRIC_NO_PEER ? n : &b->t->nodes[n->ports[p].peer];

		if (peer->shard <= n->shard || shard->address)
			continue;
		b->line = shard->line;
		return fabric_build_error(b,
					  "shard \"%.60s\" needs listen ADDRESS: \"%.60s\" of the later shard "
					  "\"%.60s\" is cabled to its \"%.60s\"",
					  shard->name, peer->name, b->t->shards[peer->shard].name, n->name);
	}
	return 0;
}

int fabric_build_shards(struct fabric_build *b)
{
	struct fabric_topology *t = b->t;
	bool *placed = calloc(t->nnodes, sizeof(*placed)), manager = false;
	int err = placed ? 0 : fabric_build_error(b, "out of memory");
	u32 i;

	for (i = 0; i < b->npatterns && !err; i++) {
		b->line = b->patterns[i].line;
		err = pattern_apply(b, &b->patterns[i], placed);
	}
	for (i = 0; i < t->nnodes && t->nshards && !err; i++) {
		b->line = t->nodes[i].line;
		if (!placed[i])
			err = fabric_build_error(b, "\"%.60s\" is in no shard", t->nodes[i].name);
	}
	for (i = 0; i < t->nnodes && t->nshards && !err; i++)
		err = shard_check_cables(b, &t->nodes[i]);
	for (i = 0; i < t->nshards; i++)
		manager |= t->shards[i].manager;
	if (t->nshards && !manager)
		t->shards[0].manager = true;
	free(placed);
	return err;
}

/* Shards of one machine, without lines */

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

/* Splitting */

struct shard_split {
	int *shard; /* of each node */
	u32 index;
	/* Sets address, key and TLS of a trunk to shard @to. 0 or -ENOMEM. */
	int (*carrier)(const struct shard_split *split, struct fabric_topology_trunk *tt, u32 to);
	const struct fabric_shard *at;   /* of shards without lines */
	const struct fabric_topology *t; /* of shards with lines */
};

static int shard_add_trunk(struct fabric_topology *t, u32 node, u8 port, const struct shard_split *split)
{
	const struct fabric_topology_port *p = &t->nodes[node].ports[port];
	const struct fabric_topology_node *peer = &t->nodes[p->peer];
	struct fabric_topology_trunk *tt = fabric_build_append(&t->trunks, &t->ntrunks, sizeof(*tt));
	u32 to = (u32)split->shard[p->peer];

	if (!tt)
		return -ENOMEM;
	tt->node = node;
	tt->port = port;
	tt->listen = to > split->index; /* that of the higher number, which starts later, connects */
	tt->peer_guid = peer->guid;
	tt->peer_port = p->peer_port;
	tt->peer_type = peer->type;
	memcpy(tt->peer_name, peer->name, sizeof(tt->peer_name));
	return split->carrier(split, tt, to);
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

/* Reduces @t to the nodes of one shard. */
static int shard_split(struct fabric_topology *t, const struct shard_split *split)
{
	u32 i, p;
	int rc;

	for (i = 0; i < t->nnodes; i++)
		for (p = 1; p <= t->nodes[i].nports; p++) {
			struct fabric_topology_port *port = &t->nodes[i].ports[p];

			if (split->shard[i] != (int)split->index || port->peer == FABRIC_NO_PEER ||
			    split->shard[port->peer] == (int)split->index)
				continue;
			rc = shard_add_trunk(t, i, (u8)p, split);
			if (rc)
				return rc;
			port->peer = FABRIC_NO_PEER;
		}
	return shard_compact(t, split->shard, (int)split->index);
}

/* A reason for which @t cannot be split; NULL: it can be. */
static const char *shard_obstacle(const struct fabric_topology *t)
{
	return t->ether     ? "a topology with Ethernet switches cannot be split into shards"
	       : t->ntrunks ? "a topology with trunks of its own cannot be split into shards"
			    : NULL;
}

static int carrier_of_machine(const struct shard_split *split, struct fabric_topology_trunk *tt, u32 to)
{
	tt->address = split->at->address(split->at->ctx, tt->listen ? split->index : to);
	return tt->address ? 0 : -ENOMEM;
}

int fabric_topology_assign(struct fabric_topology *t, u32 count)
{
	int *shard = calloc(t->nnodes, sizeof(*shard));
	u32 i;

	if (!shard)
		return -ENOMEM;
	shards_assign(t, count, shard);
	for (i = 0; i < t->nnodes; i++)
		t->nodes[i].shard = (u32)shard[i];
	free(shard);
	return 0;
}

int fabric_topology_shard(struct fabric_topology *t, const struct fabric_shard *at, char *err, size_t err_len)
{
	struct shard_split split = { .shard = calloc(t->nnodes, sizeof(*split.shard)),
				     .index = at->index,
				     .carrier = carrier_of_machine,
				     .at = at };
	u32 leafs = split.shard ? shards_assign(t, at->count, split.shard) : 0;
	const char *why = !split.shard ? "out of memory" : shard_obstacle(t);
	int rc;

	if (!why && leafs < at->count) {
		snprintf(err, err_len,
			 "a topology with fewer leaf switches (%u), which are those with hosts, than shards cannot be "
			 "split into shards",
			 leafs);
		free(split.shard);
		return -EINVAL;
	}
	rc = why ? -EINVAL : shard_split(t, &split);
	if (rc)
		snprintf(err, err_len, "%s", why ?: "out of memory");
	free(split.shard);
	return rc;
}

/* Is the host part of "HOST:PORT" a name, which resolves to an address that may not be of the listener's machine? */
static bool address_is_name(const char *address)
{
	struct in6_addr any;
	char host[HOST_MAX];

	return address[0] != '/' && host_port_split(address, host, sizeof(host)) &&
	       inet_pton(AF_INET, host, &any) != 1 && inet_pton(AF_INET6, host, &any) != 1;
}

/* The trunk has address, key and TLS of the line of the shard that listens; where that is a name, on all addresses. */
int fabric_topology_carrier(const struct fabric_topology *t, u32 own, u32 to, struct fabric_topology_trunk *tt,
			    char *err, size_t err_len)
{
	const struct fabric_topology_shard *listener = &t->shards[min(own, to)];
	const char *address = listener->address;

	tt->listen = own < to;
	if (!address) {
		snprintf(err, err_len,
			 "shard \"%.60s\" needs listen ADDRESS in the topology: it gets a cable to the later shard "
			 "\"%.60s\"",
			 listener->name, t->shards[max(own, to)].name);
		return -EINVAL;
	}
	if (!tt->listen || !address_is_name(address))
		tt->address = strdup(address);
	else if (asprintf(&tt->address, "*%s", strrchr(address, ':')) < 0)
		tt->address = NULL;
	tt->key = listener->key ? strdup(listener->key) : NULL;
	tt->tls = listener->tls;
	if (tt->address && (tt->key || !listener->key))
		return 0;
	snprintf(err, err_len, "out of memory");
	return -ENOMEM;
}

static int carrier_of_line(const struct shard_split *split, struct fabric_topology_trunk *tt, u32 to)
{
	char err[300];

	return fabric_topology_carrier(split->t, split->index, to, tt, err, sizeof(err));
}

int fabric_topology_join(struct fabric_topology *t, const char *name, char *err, size_t err_len)
{
	struct shard_split split = { .shard = calloc(t->nnodes, sizeof(*split.shard)),
				     .carrier = carrier_of_line,
				     .t = t };
	const char *why = !split.shard ? "out of memory" : !t->nshards ? "the topology has no lines with shard" : NULL;
	s64 index = fabric_topology_shard_find(t, name);
	int rc = -EINVAL;
	u32 i;

	why = why ?: shard_obstacle(t);
	if (!why && index >= 0) {
		for (i = 0; i < t->nnodes; i++)
			split.shard[i] = (int)t->nodes[i].shard;
		split.index = (u32)index;
		rc = shard_split(t, &split);
		why = "out of memory";
	}
	if (rc && why)
		snprintf(err, err_len, "%s", why);
	else if (rc)
		snprintf(err, err_len, "the topology has no shard \"%.60s\"; its first one is \"%.60s\"", name,
			 t->shards[0].name);
	free(split.shard);
	return rc;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Topologies that trunks connect, as one topology: the two ends of each trunk become a cable. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/lib/host_port.h"
#include "fabric/build.h"

struct merge {
	struct fabric_topology *t; /* of all nodes */
	const char *const *file;
	u32 *origin; /* of each trunk: the topology */
	char *err;
	size_t err_len;
};

static int merge_error(struct merge *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int merge_error(struct merge *m, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(m->err, m->err_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Nodes */

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct fabric_topology_node *const *)a)->name,
		      (*(struct fabric_topology_node *const *)b)->name);
}

static int by_guid(const void *a, const void *b)
{
	u64 x = (*(struct fabric_topology_node *const *)a)->guid, y = (*(struct fabric_topology_node *const *)b)->guid;

	return x < y ? -1 : x > y;
}

static int merge_check_unique(struct merge *m)
{
	static int (*const compare[])(const void *a, const void *b) = { by_name, by_guid };
	struct fabric_topology *t = m->t;
	struct fabric_topology_node **n = calloc(t->nnodes, sizeof(struct fabric_topology_node *));
	int err = n ? 0 : merge_error(m, "out of memory");
	u32 i, k;

	for (i = 0; i < t->nnodes && n; i++)
		n[i] = &t->nodes[i];
	for (k = 0; k < ARRAY_SIZE(compare) && !err; k++) {
		qsort(n, t->nnodes, sizeof(struct fabric_topology_node *), compare[k]);
		for (i = 1; i < t->nnodes && !err; i++)
			if (!compare[k](&n[i - 1], &n[i]))
				err = merge_error(m,
						  "\"%.60s\" and \"%.60s\" of two topologies have the same %s: number "
						  "their nodes from another \"first\"",
						  n[i - 1]->name, n[i]->name, k ? "GUID" : "name");
	}
	free(n);
	return err;
}

static int merge_nodes(struct merge *m, struct fabric_topology *from)
{
	struct fabric_topology *t = m->t;
	u32 base = t->nnodes, i, p;

	for (i = 0; i < from->nnodes; i++) {
		struct fabric_topology_node *n = fabric_build_append(&t->nodes, &t->nnodes, sizeof(*n));

		if (!n)
			return merge_error(m, "out of memory");
		*n = from->nodes[i];
		from->nodes[i].id = from->nodes[i].binding = NULL;
		from->nodes[i].ports = NULL;
		from->nodes[i].ip = NULL;
		for (p = 1; p <= n->nports; p++)
			if (n->ports[p].peer != FABRIC_NO_PEER)
				n->ports[p].peer += base;
	}
	for (i = 0; i < from->ntrunks; i++) {
		struct fabric_topology_trunk *tt = fabric_build_append(&t->trunks, &t->ntrunks, sizeof(*tt));

		if (!tt)
			return merge_error(m, "out of memory");
		*tt = from->trunks[i];
		tt->node += base;
		from->trunks[i].address = from->trunks[i].key = NULL;
	}
	return 0;
}

static int merge_one(struct merge *m, struct fabric_topology *from, u32 index)
{
	struct fabric_topology *t = m->t;
	u32 first = t->ntrunks, i;

	if (t->ether || from->ether)
		return merge_error(m, "%s: topologies with Ethernet switches cannot be merged", m->file[index]);
	if (t->mtu != from->mtu || t->vl_cap != from->vl_cap || t->propagation_ps != from->propagation_ps ||
	    t->switch_ps != from->switch_ps)
		return merge_error(m, "%s: mtu, vls, propagation or switch-latency differ from those of %s",
				   m->file[index], m->file[0]);
	for (i = 0; i < from->ntrunks; i++)
		m->origin[first + i] = index;
	return merge_nodes(m, from);
}

/* Trunks */

/* The host part of HOST:PORT is any address, or a name, which may be that of any. */
static bool host_is_open(const char *host)
{
	struct in6_addr a;

	if (inet_pton(AF_INET6, host, &a) == 1)
		return !strcmp(host, "::");
	return inet_pton(AF_INET, host, &a) != 1 || !strcmp(host, "0.0.0.0");
}

/* Does who connects to @to reach who listens at @at? */
static bool addresses_meet(const char *to, const char *at)
{
	char host[HOST_MAX], listener[HOST_MAX];
	const char *a, *b;

	if (!strcmp(to, at))
		return true;
	if (to[0] == '/' || at[0] == '/')
		return false;
	a = host_port_split(to, host, sizeof(host));
	b = host_port_split(at, listener, sizeof(listener));
	return a && b && !strcmp(a, b) && (host_is_open(host) || host_is_open(listener));
}

static bool trunk_accepts(const struct fabric_topology *t, const struct fabric_topology_trunk *tt,
			  const struct fabric_topology_trunk *peer)
{
	return (!tt->peer_guid || tt->peer_guid == t->nodes[peer->node].guid) &&
	       (!tt->peer_port || tt->peer_port == peer->port);
}

/* The end that listens for trunk @i: as in a daemon that with the lowest GUID and port number. -1: none. */
static s64 merge_find_end(const struct merge *m, u32 i)
{
	const struct fabric_topology *t = m->t;
	const struct fabric_topology_trunk *to = &t->trunks[i];
	s64 best = -1;
	u32 k;

	for (k = 0; k < t->ntrunks; k++) {
		const struct fabric_topology_trunk *at = &t->trunks[k], *found = best < 0 ? NULL : &t->trunks[best];
		u64 guid = t->nodes[at->node].guid;

		if (!at->listen || m->origin[k] == m->origin[i] || !addresses_meet(to->address, at->address) ||
		    t->nodes[at->node].ports[at->port].peer != FABRIC_NO_PEER || !trunk_accepts(t, to, at) ||
		    !trunk_accepts(t, at, to))
			continue;
		if (!found || guid < t->nodes[found->node].guid ||
		    (guid == t->nodes[found->node].guid && at->port < found->port))
			best = k;
	}
	return best;
}

static void merge_connect(struct fabric_topology *t, const struct fabric_topology_trunk *a,
			  const struct fabric_topology_trunk *b)
{
	struct fabric_topology_port *p = &t->nodes[a->node].ports[a->port], *q = &t->nodes[b->node].ports[b->port];

	p->peer = b->node;
	p->peer_port = b->port;
	p->line = a->line;
	q->peer = a->node;
	q->peer_port = a->port;
	q->line = b->line;
}

/* Connects the trunks that name their peer, or the others. */
static void merge_cables(struct merge *m, bool named)
{
	struct fabric_topology *t = m->t;
	u32 i;

	for (i = 0; i < t->ntrunks; i++) {
		const struct fabric_topology_trunk *tt = &t->trunks[i];
		s64 end = tt->listen || named != (tt->peer_guid != 0) ? -1 : merge_find_end(m, i);

		if (end >= 0)
			merge_connect(t, tt, &t->trunks[end]);
	}
}

static int merge_trunks(struct merge *m)
{
	struct fabric_topology *t = m->t;
	u32 i;

	merge_cables(m, true);
	merge_cables(m, false);
	for (i = 0; i < t->ntrunks; i++) {
		const struct fabric_topology_trunk *tt = &t->trunks[i];

		if (t->nodes[tt->node].ports[tt->port].peer == FABRIC_NO_PEER)
			return merge_error(
				m,
				"%s:%u: no trunk of the other given topologies is the other end of %.60s:%u, "
				"which %s %.100s",
				m->file[m->origin[i]], tt->line, t->nodes[tt->node].name, tt->port,
				tt->listen ? "listens at" : "connects to", tt->address);
	}
	for (i = 0; i < t->ntrunks; i++) {
		free(t->trunks[i].address);
		free(t->trunks[i].key);
	}
	free(t->trunks);
	t->trunks = NULL;
	t->ntrunks = 0;
	return 0;
}

int fabric_topology_merge(struct fabric_topology *const *t, const char *const *file, u32 n, char *err, size_t err_len)
{
	struct merge m = { .t = t[0], .file = file, .err = err, .err_len = err_len };
	u32 i, trunks = 0;
	int rc;

	for (i = 0; i < n; i++)
		trunks += t[i]->ntrunks;
	m.origin = calloc(trunks + 1u, sizeof(*m.origin));
	rc = m.origin ? 0 : merge_error(&m, "out of memory");
	for (i = 1; i < n && !rc; i++)
		rc = merge_one(&m, t[i], i);
	rc = rc ? rc : merge_check_unique(&m);
	rc = rc ? rc : merge_trunks(&m);
	free(m.origin);
	return rc;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Trunks of the daemon, and shards: several daemons that share a topology, connected by trunks. With --shards they are
 * started together on one machine, with --join each by itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "emu/daemon/daemon.h"
#include "emu/wire/smp.h"

#define TRUNKS_WAIT (3 * NSEC_PER_SEC) /* of the manager for the other daemons */
#define TRUNKS_LOOK (5 * NSEC_PER_MSEC)

int daemon_shard_rundir(struct rundir *r, const char *name, u32 shard, char *err, size_t err_len)
{
	char text[2 * RUNDIR_NAME_MAX];

	snprintf(text, sizeof(text), shard ? "%.60s.%u" : "%.60s", name, shard);
	return rundir_open(r, text, err, err_len);
}

/* The address at which a shard listens. NULL if out of memory. */
static char *shard_address(void *ctx, u32 shard)
{
	const struct daemon *d = ctx;
	char path[RUNDIR_PATH_MAX], err[256];
	struct rundir r;

	if (daemon_shard_rundir(&r, d->opt.name, shard, err, sizeof(err)))
		return NULL;
	return strdup(rundir_path(&r, RUNDIR_TRUNK, path));
}

int daemon_shard_topology(struct daemon *d, struct fabric_topology *topo, char *err, size_t err_len)
{
	struct fabric_shard at = { .index = d->opt.shard, .count = d->opt.shards, .address = shard_address, .ctx = d };

	return d->opt.join ? fabric_topology_join(topo, d->opt.join, err, err_len)
			   : fabric_topology_shard(topo, &at, err, err_len);
}

/* Trunks of swap faults. As of the topology's, that of the higher number connects. */

static int shard_carrier(struct daemon *d, struct fabric_topology_trunk *tt, u32 to, char *err, size_t err_len)
{
	if (d->opt.join)
		return fabric_topology_carrier(d->whole, (u32)fabric_topology_shard_find(d->whole, d->opt.join), to, tt,
					       err, err_len);
	tt->listen = to > d->opt.shard;
	tt->address = shard_address(d, tt->listen ? d->opt.shard : to);
	if (tt->address)
		return 0;
	snprintf(err, err_len, "out of memory");
	return -ENOMEM;
}

static int shard_cable_add(void *ctx, struct fabric_remote *r, const struct fabric_end *own,
			   const struct fabric_end *peer, char *err, size_t err_len)
{
	struct daemon *d = ctx;
	struct fabric_topology_trunk tt = { .peer_guid = peer->node->guid, .peer_port = peer->num };
	int rc = shard_carrier(d, &tt, peer->node->shard, err, err_len);

	if (!rc)
		rc = trunk_set_add(d->trunks, r, own->node->guid, &tt, err, err_len);
	free(tt.address);
	free(tt.key);
	return rc;
}

static void shard_cable_remove(void *ctx, struct fabric_remote *r)
{
	trunk_set_remove(((struct daemon *)ctx)->trunks, r);
}

static void shard_cable_suspend(void *ctx, struct fabric_remote *r, bool suspended)
{
	trunk_set_suspend(((struct daemon *)ctx)->trunks, r, suspended);
}

static const struct fabric_cable_ops shard_cable_ops = { .add = shard_cable_add,
							 .remove = shard_cable_remove,
							 .suspend = shard_cable_suspend };

int daemon_shard_whole(struct daemon *d)
{
	u32 own = d->opt.shard;

	if (!d->whole)
		return 0;
	if (d->opt.join)
		own = (u32)fabric_topology_shard_find(d->whole, d->opt.join);
	else if (fabric_topology_assign(d->whole, d->opt.shards))
		return -ENOMEM;
	fabric_set_whole(d->fabric, d->whole, own);
	if (d->trunks)
		fabric_set_cables(d->fabric, &shard_cable_ops, d);
	return 0;
}

/* Whether a shard has a node with that name. */
static bool shard_holds(const struct fabric_topology *t, const char *name)
{
	u32 i;

	for (i = 0; i < t->nnodes; i++)
		if (!strcmp(t->nodes[i].name, name))
			return true;
	return false;
}

/* Whether port 1 of a host on the fabric has a cable that is not disabled. A topology of shards has no trunks. */
static bool shard_host_linked(const struct fabric_topology *t, const struct fabric_topology_node *n)
{
	const struct fabric_topology_port *p = &n->ports[1];

	return n->type == NODE_TYPE_CA && !n->binding && p->peer != FABRIC_NO_PEER && !p->disabled &&
	       !t->nodes[p->peer].ports[p->peer_port].disabled;
}

/* The first one of the first shard that has one. */
static const struct fabric_topology_node *shard_linked_host(const struct daemon *d)
{
	const struct fabric_topology_node *first = NULL, *n;
	u32 i;

	for (i = 0; d->whole && i < d->whole->nnodes; i++) {
		n = &d->whole->nodes[i];
		if (shard_host_linked(d->whole, n) && (!first || n->shard < first->shard))
			first = n;
	}
	return first;
}

const char *daemon_shard_linked_host(const struct daemon *d)
{
	const struct fabric_topology_node *n = shard_linked_host(d);

	return n ? n->name : NULL;
}

const char *daemon_shard_manager_elsewhere(const struct daemon *d)
{
	u32 i;

	for (i = 0; d->opt.join && i < d->whole->nshards; i++)
		if (d->whole->shards[i].manager && strcmp(d->whole->shards[i].name, d->opt.join) != 0)
			return d->whole->shards[i].name;
	return NULL;
}

bool daemon_shard_has_manager(const struct daemon *d)
{
	const struct fabric_topology_node *linked;
	bool here;

	if (d->opt.join)
		return !daemon_shard_manager_elsewhere(d);
	if (!d->whole)
		return !d->opt.shard;
	if (!d->opt.sm_host) {
		linked = shard_linked_host(d);
		return d->opt.shard == (linked ? linked->shard : 0);
	}
	here = fabric_node_find(d->fabric, d->opt.sm_host) != NULL;
	if (d->opt.shard || here)
		return here;
	return !shard_holds(d->whole, d->opt.sm_host); /* no shard has it: the first one reports the error */
}

bool daemon_shard_is_node(const struct daemon *d, const char *name)
{
	return d->whole && shard_holds(d->whole, name);
}

int daemon_shard_write(const struct daemon *d)
{
	char path[RUNDIR_PATH_MAX];
	int fd, ok;

	if (d->opt.shards < 2 || d->opt.shard)
		return 0;
	fd = open(rundir_path(&d->run, RUNDIR_SHARDS, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ok = fd >= 0 && dprintf(fd, "%u\n", d->opt.shards) > 0;
	if (fd >= 0)
		close(fd);
	return ok ? 0 : -1;
}

bool daemon_shard_leaves_others(const struct daemon *d)
{
	struct rundir r;
	char err[256];
	u32 i;

	for (i = 1; !d->opt.shard && i < d->opt.shards; i++)
		if (!daemon_shard_rundir(&r, d->opt.name, i, err, sizeof(err)) && rundir_daemon(&r))
			return true;
	return false;
}

/* Waits while trunks come up, and for TRUNKS_WAIT more. */
static void on_manager_start(struct loop_timer *t, struct now now)
{
	struct daemon *d = container_of(t, struct daemon, manager_start);
	u32 down = d->opt.shards && d->trunks ? trunk_set_links_down(d->trunks) : 0;

	if (down < d->trunks_down) { /* fewer than ever: one that flaps does not prolong it */
		d->trunks_down = down;
		d->trunks_since = now.ns;
	}
	if (down && now.ns - d->trunks_since < TRUNKS_WAIT)
		loop_timer_set(d->loop, t, now.ns + TRUNKS_LOOK);
	else
		daemon_manager_start(d);
}

void daemon_shard_start_manager(struct daemon *d)
{
	d->manager_start.fn = on_manager_start;
	d->trunks_down = ~0u;
	on_manager_start(&d->manager_start, loop_now(d->loop));
}

bool daemon_shard_has_tcp(const struct daemon *d)
{
	u32 i;

	for (i = 0; d->whole && i < d->whole->nshards; i++)
		if (d->whole->shards[i].address && d->whole->shards[i].address[0] != '/')
			return true;
	return false;
}

json_t *daemon_trunks_json(const struct daemon *d, const char *only)
{
	json_t *all = json_array(), *o;
	struct trunk_info info;
	u32 i, k;

	for (i = 0; d->trunks && trunk_info(d->trunks, i, &info); i++) {
		const char *name = fabric_node_name(fabric_port_node(info.port));

		if (only && strcmp(only, name))
			continue;
		o = json_pack("{s:s, s:i, s:s, s:b, s:b, s:b, s:s, s:i}", "node", name, "port", (int)info.num,
			      "address", info.address, "listens", info.listens, "connected", info.connected, "tls",
			      info.tls, "peer", fabric_node_name(info.peer), "peer_port", (int)info.peer_port);
		for (k = 0; o && k < TRUNK_CTR_NUM; k++)
			json_object_set_new(
				o, trunk_counter_name((enum trunk_counter)k),
				json_integer((json_int_t)trunk_counter(d->trunks, i, (enum trunk_counter)k)));
		json_array_append_new(all, o);
	}
	return all;
}

json_t *daemon_trunks_refused_json(const struct daemon *d)
{
	json_t *o = json_object();
	u32 k, i, n = d->trunks ? fabric_remote_count(d->fabric) : 0;

	for (k = TRUNK_CTR_REFUSED_HELLO; n && k <= TRUNK_CTR_REFUSED_BUSY; k++) {
		u64 sum = trunk_set_counter(d->trunks, (enum trunk_counter)k);

		for (i = 0; i < n; i++)
			sum += trunk_counter(d->trunks, i, (enum trunk_counter)k);
		json_object_set_new(o, trunk_counter_name((enum trunk_counter)k), json_integer((json_int_t)sum));
	}
	return o;
}

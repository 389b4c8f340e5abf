// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The daemon's simulated Ethernet: creation from the topology, and lookups for commands. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"

struct daemon_ether {
	struct eth *net;
	struct ether_station *station;
	u32 nstations;
};

static int add_station(struct daemon *d, const struct fabric_ether *t, u32 i)
{
	struct ether_station *s = &d->ether->station[i];
	const struct fabric_node *n;
	char name[ETH_NAME_MAX];
	int err;

	s->cfg = t->station[i];
	n = s->cfg.node == ~0u ? NULL : fabric_node(d->fabric, s->cfg.node);
	/* The card of a host that is also on the fabric needs another name than its adapter. */
	snprintf(name, sizeof(name), "%.50s%s", s->cfg.name, n && !fabric_node_binding(n) ? "-eth" : "");
	s->end = eth_station_add(eth_switch_at(d->ether->net, s->cfg.sw), name, s->cfg.mac, &s->cfg.link);
	d->ether->nstations++;
	if (!s->end)
		return -errno;
	if (s->cfg.kind != FABRIC_ETHER_TAP)
		return 0;
	s->tap = eth_tap_open(d->loop, s->cfg.device, eth_station_port(s->end));
	if (s->tap)
		return 0;
	err = errno;
	snprintf(d->failure, sizeof(d->failure), "station %s: TAP interface %s: %s%s", s->cfg.name, s->cfg.device,
		 strerror(err),
		 err == EPERM || err == EACCES ? "; creating it needs CAP_NET_ADMIN"
		 : err == ENOENT               ? "; there is no /dev/net/tun"
					       : "");
	return -err;
}

struct ether_station *daemon_ether_station(const struct daemon *d, const struct fabric_node *n)
{
	u32 i;

	for (i = 0; d->ether && i < d->ether->nstations; i++)
		if (d->ether->station[i].cfg.node != ~0u && fabric_node(d->fabric, d->ether->station[i].cfg.node) == n)
			return &d->ether->station[i];
	return NULL;
}

/* The end of a host that is a station, and not on the fabric, by any name of its node; NULL: there is none. */
static struct eth_end *station_named(void *ctx, const char *name)
{
	const struct daemon *d = ctx;
	const struct fabric_node *n = fabric_node_find(d->fabric, name);
	const struct ether_station *s = n && fabric_node_binding(n) ? daemon_ether_station(d, n) : NULL;

	return s ? s->end : NULL;
}

int daemon_ether_create(struct daemon *d, const struct fabric_topology *topo)
{
	const struct fabric_ether *t = topo->ether;
	struct daemon_ether *de;
	int err = 0;
	u32 i;

	if (!t)
		return 0;
	de = d->ether = calloc(1, sizeof(*de));
	if (!de)
		return -ENOMEM;
	de->net = eth_create(d->loop, d->opt.seed);
	de->station = calloc(t->nstations + 1, sizeof(*de->station));
	if (!de->net || !de->station)
		return -ENOMEM;
	eth_set_names(de->net, station_named, d);
	for (i = 0; i < t->nsw && !err; i++)
		err = eth_switch_add(de->net, t->sw[i].name, t->sw[i].age_ns) ? 0 : -ENOMEM;
	for (i = 0; i < t->ncables && !err; i++)
		err = eth_cable_add(eth_switch_at(de->net, t->cable[i].a), eth_switch_at(de->net, t->cable[i].b),
				    &t->cable[i].link);
	for (i = 0; i < t->nstations && !err; i++)
		err = add_station(d, t, i);
	return err;
}

void daemon_ether_destroy(struct daemon *d)
{
	u32 i;

	if (!d->ether)
		return;
	for (i = 0; i < d->ether->nstations; i++)
		eth_tap_close(d->ether->station[i].tap);
	eth_destroy(d->ether->net);
	free(d->ether->station);
	free(d->ether);
	d->ether = NULL;
}

const struct fabric_node *daemon_ether_card_host(const struct daemon *d, const struct eth_end *end)
{
	const struct fabric_node *n;
	u32 i;

	for (i = 0; i < d->ether->nstations; i++) {
		const struct ether_station *s = &d->ether->station[i];

		n = s->cfg.node == ~0u ? NULL : fabric_node(d->fabric, s->cfg.node);
		if (s->end == end)
			return n && !fabric_node_binding(n) ? n : NULL;
	}
	return NULL;
}

u32 daemon_ether_stations(const struct daemon *d)
{
	return d->ether ? d->ether->nstations : 0;
}

const struct eth_end *daemon_ether_station_end(const struct daemon *d, u32 i)
{
	return d->ether->station[i].end;
}

struct eth *daemon_ether_net(const struct daemon *d)
{
	return d->ether ? d->ether->net : NULL;
}

struct eth_end *daemon_ether_place(const struct daemon *d, const char *place, bool *all)
{
	*all = d->ether && eth_switch_find(d->ether->net, place);
	return d->ether ? eth_find(d->ether->net, place) : NULL;
}

bool daemon_ether_has(const struct daemon *d, const char *name)
{
	bool all;
	const struct eth_end *end = daemon_ether_place(d, name, &all);

	return end && !strcmp(eth_end_name(end), name);
}

bool daemon_ether_no_port(const struct daemon *d, const char *place, char *err, size_t err_len)
{
	const char *colon = strrchr(place, ':');
	const struct eth_switch *sw;
	char name[ETH_NAME_MAX];
	bool all;

	if (!colon || (size_t)(colon - place) >= sizeof(name) || daemon_ether_place(d, place, &all))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(colon - place), place);
	if (!daemon_ether_place(d, name, &all))
		return false;
	sw = eth_switch_find(d->ether->net, name);
	snprintf(err, err_len, "%.80s: the ports of %s are 1 to %u", place, name, sw ? eth_switch_ports(sw) : 1);
	return true;
}

static json_t *end_json(const struct eth_end *end, bool counters)
{
	const struct eth_end *peer = eth_end_peer(end);
	json_t *o = json_object(), *c;
	u32 i;

	json_object_set_new(o, "name", json_string(eth_end_name(end)));
	json_object_set_new(o, "num", json_integer(eth_end_num(end)));
	json_object_set_new(o, "state", json_string(eth_end_up(end) ? "up" : "down"));
	json_object_set_new(o, "peer", json_string(eth_end_name(peer)));
	json_object_set_new(o, "peer_port", json_integer(eth_end_num(peer)));
	if (!counters)
		return o;
	c = json_object();
	for (i = 0; i < ETH_CTR_NUM; i++)
		json_object_set_new(c, eth_counter_name((enum eth_counter)i),
				    json_integer((json_int_t)eth_end_counter(end, (enum eth_counter)i)));
	json_object_set_new(o, "counters", c);
	return o;
}

/* All ports, or that of @station. NULL: none. */
static json_t *switch_json(struct eth_switch *sw, const char *station, bool counters)
{
	json_t *ports = json_array();
	u32 k;

	for (k = 1; k <= eth_switch_ports(sw); k++) {
		const struct eth_end *end = eth_switch_port(sw, k);

		if (!station || !strcmp(eth_end_name(eth_end_peer(end)), station))
			json_array_append_new(ports, end_json(end, counters));
	}
	if (!station || json_array_size(ports))
		return json_pack("{s:s, s:o}", "name", eth_switch_name(sw), "ports", ports);
	json_decref(ports);
	return NULL;
}

json_t *daemon_ether_json(const struct daemon *d, const char *only, bool counters)
{
	const struct eth_switch *one;
	json_t *switches, *stations;
	u32 i;

	if (!d->ether)
		return json_null();
	switches = json_array();
	stations = json_array();
	one = only ? eth_switch_find(d->ether->net, only) : NULL;
	for (i = 0; i < eth_switch_count(d->ether->net); i++) {
		struct eth_switch *sw = eth_switch_at(d->ether->net, i);
		json_t *o = one && sw != one ? NULL : switch_json(sw, one ? NULL : only, counters);

		if (o)
			json_array_append_new(switches, o);
	}
	for (i = 0; i < d->ether->nstations; i++) {
		const struct eth_end *end = d->ether->station[i].end;

		if (!only || !strcmp(eth_end_name(end), only))
			json_array_append_new(stations, end_json(end, counters));
	}
	return json_pack("{s:o, s:o}", "switches", switches, "stations", stations);
}

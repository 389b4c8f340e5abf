// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests of the control socket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"
#include "emu/daemon/manager_fault.h"
#include "emu/lib/log.h"
#include "emu/wire/smp.h"
#include "rxe/roce/roce.h"

#define COUNTERS_NODES_MAX 1000

static const char *text_of(const json_t *req, const char *key)
{
	return json_string_value(json_object_get(req, key));
}

/* Where a node of another daemon is. With --shards that is not up, since commands ask all. False: there is none. */
static bool other_daemon_text(const struct daemon *d, const char *name, char *text, size_t len)
{
	const struct fabric_topology_node *n = fabric_whole_find(d->fabric, name);
	struct rundir r;
	char err[200];

	if (!n || fabric_node_find(d->fabric, n->name))
		return false;
	if (d->opt.join)
		snprintf(text, len, ", but shard \"%.60s\" has, whose daemon has commands of its own",
			 d->whole->shards[n->shard].name);
	else if (!daemon_shard_rundir(&r, d->opt.name, n->shard, err, sizeof(err)))
		snprintf(text, len, ", but daemon %s has, which is not up", r.name);
	return true;
}

void daemon_like_text(const struct daemon *d, const char *name, bool host, char *text, size_t len)
{
	const char *like[4];
	u32 n = daemon_names_like(d, name, host, like, ARRAY_SIZE(like)), i;
	size_t at = 0;

	*text = 0;
	if (other_daemon_text(d, name, text, len))
		return;
	for (i = 0; i < n && at < len; i++)
		at += (size_t)snprintf(text + at, len - at, "%s%s", i ? ", " : ", but ", like[i]);
}

static json_t *unknown_node(struct daemon *d, struct ctl_client *c, const char *name, bool host)
{
	const struct fabric_node *match[4];
	u32 n = fabric_node_matches(d->fabric, name, match, ARRAY_SIZE(match)), i;
	char text[4 * (FABRIC_NAME_MAX + 24)] = "";
	size_t at = 0;

	for (i = 0; n > 1 && i < min(n, (u32)ARRAY_SIZE(match)); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s0x%016llx", i ? ", " : "",
				       (unsigned long long)fabric_node_guid(match[i]));
	if (n > 1)
		return ctl_error(c, "%u nodes of fabric %s have the name \"%.64s\": use the GUID, %s%s", n, d->run.name,
				 name, text, n > ARRAY_SIZE(match) ? ", ..." : "");
	daemon_like_text(d, name, host, text, sizeof(text));
	return ctl_error(c, "fabric %s has no %s \"%.64s\"%s; `muslin show` lists all", d->run.name,
			 host ? "host" : "node", name, text);
}

struct fabric_node *daemon_place(struct daemon *d, struct ctl_client *c, const char *place, u32 *num)
{
	const char *port;
	struct fabric_node *n = fabric_place_find(d->fabric, place, &port);
	char name[FABRIC_NAME_MAX + 1], err[200], *end;

	*num = 0;
	if (!n && daemon_ether_no_port(d, place, err, sizeof(err))) {
		ctl_error(c, "%s", err);
		return NULL;
	}
	if (!n) {
		snprintf(name, sizeof(name), "%.*s", (int)(port ? port - 1 - place : FABRIC_NAME_MAX), place);
		unknown_node(d, c, name, false);
		return NULL;
	}
	if (!port)
		return n;
	*num = (u32)strtoul(port, &end, 10);
	if (*port && !*end && *num && fabric_node_port(n, *num))
		return n;
	ctl_error(c, "%s has no port \"%.20s\": they are 1 to %u", fabric_node_name(n), port, fabric_node_ports(n));
	return NULL;
}

/* "counters": true, or "few" to omit those of large fabrics. */
static bool wants_counters(const struct daemon *d, const json_t *req, const char *only)
{
	const char *when = text_of(req, "counters");

	if (when && !strcmp(when, "few"))
		return only || fabric_node_count(d->fabric) <= COUNTERS_NODES_MAX;
	return json_is_true(json_object_get(req, "counters"));
}

static json_t *cmd_show(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;
	const char *name = text_of(req, "node");
	const struct fabric_node *n;
	char *text;
	json_t *o;

	n = name ? fabric_node_find(d->fabric, name) : NULL;
	if (name && !n && !daemon_ether_has(d, name))
		return unknown_node(d, c, name, false);
	if (n)
		name = fabric_node_name(n);
	if (!json_is_true(json_object_get(req, "topology")))
		return daemon_show(d, name, wants_counters(d, req, name));
	text = daemon_topology_text(d);
	o = text ? json_string(text) : NULL;
	free(text);
	return o ?: ctl_error(c, "out of memory");
}

/* Whether the node of the place, or the embedded SM, is in this daemon: commands find the daemon of a place by it. */
static json_t *cmd_has(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;
	const char *place = text_of(req, "place"), *port;

	if (!place)
		return ctl_error(c, "missing place");
	return json_boolean(fabric_place_find(d->fabric, place, &port) ||
			    (!strcmp(place, MANAGER_FAULT_PLACE) && daemon_shard_has_manager(d) &&
			     !daemon_shard_is_node(d, place))); /* as in one daemon, a node of that name comes first */
}

/* `muslin top`: for each cabled port the name, state, and counters sent and received, in words and packets. */
static json_t *cmd_rates(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	return daemon_show_rates(arg);
}

static json_t *cmd_status(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	return daemon_show_status(arg);
}

/* The host that the request names, created at its first use; NULL with *error. */
static struct host *host_of(struct daemon *d, struct ctl_client *c, const json_t *req, json_t **error)
{
	const char *name = text_of(req, "name");
	struct fabric_node *n = name ? fabric_node_find(d->fabric, name) : NULL;
	bool ca = n && fabric_node_type(n) == NODE_TYPE_CA;
	struct host *h = ca ? daemon_host_of(d, n) : NULL;

	if (!name)
		*error = ctl_error(c, "missing host");
	else if (!ca)
		*error = unknown_node(d, c, name, true);
	else if (!h)
		*error = ctl_error(c, "%s", d->failure);
	return h;
}

/* `muslin run`: creates the host. */
static json_t *cmd_host(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;
	json_t *error = NULL;
	struct host *h = host_of(d, c, req, &error);
	int err;

	if (!h)
		return error;
	if (!h->uv.hca)
		return ctl_error(c, "host %s has only a network card, for a guest: `muslin vm %s`", h->uv.name,
				 h->uv.name);
	err = uv_sysfs_refresh(&h->uv, uv_server_tree(d->server));
	if (err)
		return ctl_error(c, "the tree of host %s cannot be written: %s", h->uv.name, strerror(-err));
	return json_pack("{s:s, s:o}", "name", h->uv.name, "ips", daemon_show_ips(h->node));
}

/*
 * `muslin vm`: creates the host's devices for a guest. With a QMP socket and the name "netdev" of the card's network
 * end, the card's carrier follows the link.
 */
static json_t *cmd_vm(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;
	json_t *error = NULL;
	struct host *h = host_of(d, c, req, &error);
	int err;

	if (!h)
		return error;
	err = daemon_guest_create(d, h);
	if (err == -EOPNOTSUPP)
		return ctl_error(
			c,
			"host %s: a guest cannot have its adapter, which is iWARP, since the guests' driver is for "
			"InfiniBand and RoCE; use `muslin run %s`, or a guest on a host of these",
			h->uv.name, h->uv.name);
	if (err)
		return ctl_error(c, "host %s: no device for a guest: %s", h->uv.name, strerror(-err));
	if (daemon_guest_present(h))
		return ctl_error(c, "host %s has a guest already", h->uv.name);
	if (*fd >= 0 && text_of(req, "netdev") && daemon_guest_monitor(h, *fd, text_of(req, "netdev")))
		*fd = -1;
	return daemon_guest_json(h);
}

static json_t *cmd_link(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	struct daemon *d = arg;
	const char *place = text_of(req, "place"), *state = text_of(req, "state");
	struct fabric_node *n;
	struct eth_end *end;
	u32 num = 0;
	int err;
	bool all;

	if (!place || !state || (strcmp(state, "up") && strcmp(state, "down")))
		return ctl_error(c, "a link needs a \"place\" and a \"state\", up or down");
	end = daemon_ether_place(d, place, &all);
	n = end ? NULL : daemon_place(d, c, place, &num);
	if (!n && !end)
		return NULL;
	if (end) {
		if (all)
			return ctl_error(c, "which port of %s? Use %s:1, or another one", place, place);
		eth_end_set_up(end, !strcmp(state, "up"));
		log_at(LOG_INFO, place, "the link is set %s", state);
		return json_true();
	}
	if (!num && fabric_node_type(n) == NODE_TYPE_CA && fabric_node_ports(n) == 1)
		num = 1;
	if (!num)
		return ctl_error(c, "which port of %s? Use %s:1 to %s:%u", place, place, place, fabric_node_ports(n));
	err = fabric_node_binding(n) ? daemon_host_set_link(d, n, !strcmp(state, "up"))
	      : strcmp(state, "up")  ? fabric_link_unplug(fabric_node_port(n, num))
				     : fabric_link_plug(fabric_node_port(n, num));
	if (err == -ENOLINK)
		return ctl_error(c, "port %u of %s has no cable", num, fabric_node_name(n));
	if (err)
		return ctl_error(c, "%s: %s", place, strerror(-err));
	log_at(LOG_INFO, fabric_node_name(n), "the link of port %u is set %s", num, state);
	return json_true();
}

/* The default RoCE mode of a host's port (configfs default_roce_mode). */
static json_t *cmd_mode(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	const char *name = text_of(req, "name"), *mode = text_of(req, "mode");
	json_t *error = NULL;
	struct host *h = host_of(arg, c, req, &error);
	int err;

	if (!h)
		return error;
	if (!h->roce)
		return ctl_error(c, "host %s has no RoCE port, whose mode this would be", h->uv.name);
	if (mode && strcmp(mode, "v1") && strcmp(mode, "v2"))
		return ctl_error(c, "a mode is v1 or v2, not \"%s\"", mode);
	err = mode ? roce_port_set_version(h->roce, strcmp(mode, "v1") ? 2 : 1) : 0;
	if (err == -EPERM)
		return ctl_error(c, "%s: its guest configures addresses and RoCE mode", name);
	if (err)
		return ctl_error(c, "%s: a port on UDP sockets has RoCE v2 only", name);
	return json_string(roce_port_wire(h->roce)->attr.roce_version == 1 ? "v1" : "v2");
}

static json_t *cmd_partitions(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	char err[512];

	return daemon_manager_partitions(arg, text_of(req, "file"), err, sizeof(err)) ? ctl_error(c, "%s", err)
										      : json_true();
}

const struct ctl_command daemon_commands[] = {
	{ "show", cmd_show },
	{ "has", cmd_has },
	{ "rates", cmd_rates },
	{ "status", cmd_status },
	{ "host", cmd_host },
	{ "link", cmd_link },
	{ "mode", cmd_mode },
	{ "trace", daemon_trace_command },
	{ "untrace", daemon_untrace_command },
	{ "fault", daemon_fault_command },
	{ "timeline", daemon_timeline_command },
	{ "vm", cmd_vm },
	{ "partitions", cmd_partitions },
	{ NULL, NULL },
};

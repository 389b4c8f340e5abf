// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The embedded subnet manager: its port, configuration and status. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"
#include "emu/lib/log.h"
#include "emu/smhost/sm_mad.h"
#include "emu/wire/smp.h"
#include "sm/partition.h"

static bool on_fabric(const struct fabric_node *n)
{
	return fabric_node_type(n) == NODE_TYPE_CA && !fabric_node_binding(n);
}

bool daemon_manager_needed(const struct daemon *d)
{
	u32 i, bound = 0;

	for (i = 0; i < fabric_node_count(d->fabric); i++)
		bound += fabric_node_binding(fabric_node(d->fabric, i)) != NULL;
	return bound != fabric_node_count(d->fabric);
}

/* Whether the port of a subnet manager on @n, its first one, has a cable that is not disabled. */
static bool manager_has_link(const struct fabric_node *n)
{
	struct fabric_port_info info;

	fabric_port_info(fabric_node_port(n, 1), &info);
	return info.peer && !info.disabled;
}

/* The first host whose port has a link, else the first one on the fabric. NULL if there is none. */
static struct host *manager_default_host(struct daemon *d)
{
	struct fabric_node *first = NULL, *n;
	u32 i;

	for (i = 0; i < fabric_node_count(d->fabric); i++) {
		n = fabric_node(d->fabric, i);
		if (on_fabric(n) && manager_has_link(n))
			return daemon_host_of(d, n);
		if (on_fabric(n) && !first)
			first = n;
	}
	return first ? daemon_host_of(d, first) : NULL;
}

/* The host of --sm-host. NULL with a message in @err. */
static struct host *manager_named_host(struct daemon *d, char *err, size_t err_len)
{
	struct host *h = daemon_host_get(d, d->opt.sm_host), *other = manager_default_host(d);
	const char *linked;

	if (!h || !on_fabric(h->node)) {
		snprintf(err, err_len, "--sm-host: the fabric has no host \"%s\" with an InfiniBand port",
			 d->opt.sm_host);
		return NULL;
	}
	/* The subnet of the other hosts would never be up. */
	linked = manager_has_link(other->node) ? other->uv.name : daemon_shard_linked_host(d);
	if (!manager_has_link(h->node) && linked) {
		snprintf(err, err_len,
			 "--sm-host: port 1 of host \"%s\" has no cable, or a disabled one, so that a subnet manager "
			 "there reaches no node; use another host, such as \"%s\"",
			 h->uv.name, linked);
		return NULL;
	}
	return h;
}

/* The host of --sm-host, or the default. NULL with a message in @err. */
static struct host *manager_host(struct daemon *d, char *err, size_t err_len)
{
	struct host *h = d->opt.sm_host ? manager_named_host(d, err, err_len) : manager_default_host(d);

	if (!h && !d->opt.sm_host)
		snprintf(err, err_len, "the fabric has no host on which a subnet manager could run; use --no-sm");
	return h;
}

/* Records events of the subnet manager in the timeline. */
static void manager_on_event(void *ctx, enum sm_event event)
{
	struct daemon *d = ctx;
	struct sm_status st;
	char line[100];

	if (!d->manager || event == SM_EVENT_STAGE) /* during creation or destruction */
		return;
	sm_status(sm_mad_manager(d->manager), &st);
	if (event == SM_EVENT_STATE)
		snprintf(line, sizeof(line), "manager: %s", wire_sm_state_name(st.state));
	else
		snprintf(line, sizeof(line), "manager: %s, %u %s, %u SMPs in %.1f ms",
			 event == SM_EVENT_SUBNET_UP ? "subnet up" : "a sweep with errors", st.nodes,
			 plural(st.nodes, "node", "nodes"), st.sweep_smps, (double)st.sweep_ns / 1e6);
	daemon_timeline_note(d, "sm", line);
}

struct sm_config daemon_manager_config(const struct daemon *d)
{
	return (struct sm_config){
		.routing = d->opt.routing,
		.sweep_ms = d->opt.sweep * 1000,
		.lmc = d->opt.lmc,
		.packet_life = d->opt.packet_life,
		.lfts = d->lfts,
		.lfts_file = d->opt.lfts,
		.qos = d->opt.qos,
		.seed = d->opt.seed,
		.priority = d->opt.priority,
		.subnet_prefix = d->opt.subnet_prefix,
		.partitions = d->partitions,
		.partitions_file = d->opt.partitions,
	};
}

int daemon_manager_create(struct daemon *d, char *err, size_t err_len)
{
	struct host *h = manager_host(d, err, err_len);
	struct sm_config cfg;

	if (!h)
		return -ENOENT;
	if (d->opt.partitions && !d->partitions) {
		d->partitions = sm_file_read(d->opt.partitions, d->opt.partitions_place, err, err_len);
		if (!d->partitions)
			return -EINVAL;
	}
	if (d->opt.lfts && !d->lfts) {
		d->lfts = sm_file_read(d->opt.lfts, NULL, err, err_len);
		if (!d->lfts)
			return -EINVAL;
	}
	cfg = daemon_manager_config(d);
	cfg.event = manager_on_event;
	cfg.ctx = d;
	d->manager = sm_mad_create(d->loop, h->uv.mad[0], &cfg, err, err_len);
	if (!d->manager)
		return -EINVAL;
	daemon_manager_watch(d);
	return 0;
}

void daemon_manager_start(struct daemon *d)
{
	int err = sm_mad_start(d->manager);

	if (err)
		log_at(LOG_ERROR, "", "the embedded subnet manager cannot start on %s: %s",
		       mad_port_wire(sm_mad_port(d->manager))->name,
		       err == -EBUSY ? "another one has registered for its MADs there" : strerror(-err));
}

int daemon_manager_partitions(struct daemon *d, const char *path, char *err, size_t err_len)
{
	char *text;
	int got;

	path = path ? path : d->opt.partitions;
	if (!d->manager || !path) {
		snprintf(err, err_len,
			 d->manager ? "fabric %s was started without partitions, so that there is no file to load "
				      "again: use `muslin partitions FILE`"
				    : "fabric %s has no embedded subnet manager that could load partitions: it was "
				      "started with --no-sm, or a fault has stopped it",
			 d->run.name);
		return -ENOENT;
	}
	text = sm_file_read(path, NULL, err, err_len);
	if (!text)
		return -EINVAL;
	got = sm_set_partitions(sm_mad_manager(d->manager), text, path, err, err_len);
	if (got) {
		free(text);
		return got;
	}
	free(d->partitions); /* used again when the manager restarts after a fault */
	d->partitions = text;
	return 0;
}

json_t *daemon_manager_json(const struct daemon *d)
{
	struct sm_status st;

	if (!d->manager)
		return json_null();
	sm_status(sm_mad_manager(d->manager), &st);
	return json_pack("{s:s, s:s, s:i, s:b, s:b, s:s, s:i, s:i, s:f, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, "
			 "s:I, s:I, s:I, "
			 "s:I, s:I}",
			 "host", mad_port_wire(sm_mad_port(d->manager))->name, "state", wire_sm_state_name(st.state),
			 "priority", st.priority, "up", st.subnet_up, "sweeping", st.sweeping, "routing", st.routing,
			 "heavy_sweeps", (int)st.heavy_sweeps, "light_sweeps", (int)st.light_sweeps, "sweep_seconds",
			 (double)st.sweep_ns / (double)NSEC_PER_SEC, "sweep_smps", (int)st.sweep_smps, "sweep_errors",
			 (int)st.sweep_errors, "nodes", (int)st.nodes, "groups", (int)st.groups, "services",
			 (int)st.services, "subscribers", (int)st.subscribers, "sa_requests",
			 (json_int_t)st.sa_requests, "sa_errors", (json_int_t)st.sa_errors, "sa_key_errors",
			 (json_int_t)st.sa_key_errors, "sa_deferred_dropped", (json_int_t)st.sa_deferred_dropped,
			 "traps", (json_int_t)st.traps, "bad_traps", (json_int_t)st.bad_traps, "traps_coalesced",
			 (json_int_t)st.traps_coalesced, "sminfo_refused", (json_int_t)st.sminfo_refused);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The faults that are armed, under the numbers by which commands name them. */
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon.h"
#include "emu/hca/fault.h"
#include "emu/lib/log.h"
#include "emu/manager_fault.h"
#include "fabric/fault.h"
#include "rxe/roce.h"

#define FAULTS_MAX 10000

struct fault {
	struct list link;
	u32 id;
	struct fabric_fault *fabric; /* one of these, or of an adapter that is unplugged two */
	struct host *unplugged;
	struct hca_fault *hca;
	struct manager_fault *manager;
	struct eth_fault *ether;
	struct roce_fault *roce;
	u64 armed; /* loop clock, ns */
	char text[];
};

static double seconds(const struct daemon *d, u64 ns)
{
	return (double)(ns - d->started) / (double)NSEC_PER_SEC;
}

static struct fabric_fault_info info_of(const struct fault *ft)
{
	struct fabric_fault_info info = { .applied = false };

	if (ft->hca) {
		info.pick = hca_fault_pick(ft->hca);
	} else if (ft->fabric) {
		fabric_fault_info(ft->fabric, &info);
	} else if (ft->ether) {
		info.pick = eth_fault_pick(ft->ether);
		info.held = eth_fault_held(ft->ether);
	} else if (ft->roce) {
		info.pick = roce_fault_pick(ft->roce);
		info.held = roce_fault_held(ft->roce);
	} else {
		info.pick = manager_fault_pick(ft->manager);
		info.applied = manager_fault_applied(ft->manager);
	}
	return info;
}

static json_t *fault_json(const struct daemon *d, const struct fault *ft)
{
	struct fabric_fault_info info = info_of(ft);
	json_t *o = json_object(), *fired = json_array();
	char digest[20];
	u64 i;

	for (i = 0; i < min(info.pick->hits, (u64)PICK_LOG); i++)
		json_array_append_new(fired, json_integer((json_int_t)info.pick->log[i]));
	snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)info.pick->digest);
	json_object_set_new(o, "id", json_integer(ft->id));
	json_object_set_new(o, "fault", json_string(ft->text));
	json_object_set_new(o, "armed", json_real(seconds(d, ft->armed)));
	json_object_set_new(o, "matches", json_integer((json_int_t)info.pick->seen));
	json_object_set_new(o, "hits", json_integer((json_int_t)info.pick->hits));
	json_object_set_new(o, "fired", fired); /* numbers of the matches, the first of them */
	json_object_set_new(o, "digest", json_string(digest));
	json_object_set_new(o, "applied", json_boolean(info.applied));
	json_object_set_new(o, "held", json_integer(info.held));
	return o;
}

/* The host at which an HCA's fault is; NULL and the error said. */
static struct host *host_at(struct daemon *d, const char *place, char *err, size_t err_len)
{
	struct host *h = daemon_host_get(d, place);

	if (h && !h->uv.hca) {
		snprintf(err, err_len, "%.64s: the host has no adapter", place);
		return NULL;
	}
	if (!h)
		snprintf(err, err_len, "%.64s: %s", place,
			 fabric_node_find(d->fabric, place) ? "this fault needs a host as its place"
							    : "there is no such node");
	return h;
}

/* The adapter is pulled out of its host: with its cables, and under all programs that use it. */
static int unplug(struct daemon *d, struct fault *ft, struct host *h, const char *text, char *err, size_t err_len)
{
	char line[FABRIC_NAME_MAX + 8];
	const struct fault *other;

	list_for_each (other, &d->faults, link)
		if (other->unplugged == h) {
			snprintf(err, err_len, "unplug: it contradicts fault %u, by which it is gone already",
				 other->id);
			return -1;
		}
	ft->hca = hca_fault_add(h->uv.hca, text, d->opt.seed, err, err_len);
	if (!ft->hca)
		return -1;
	ft->unplugged = h;
	if (!fabric_node_binding(h->node)) {
		snprintf(line, sizeof(line), "%s down", h->uv.name);
		ft->fabric = fabric_fault_add(d->fabric, line, err, err_len); /* NULL: it has no cable */
	}
	rdma_host_unplug(h->rdma);
	uv_server_unplug(d->server, &h->uv, true);
	return 0;
}

/* The RoCE port on sockets that @place names; NULL: it is none. */
static struct roce_port *roce_at(struct daemon *d, const char *place)
{
	const struct fabric_node *n = fabric_node_find(d->fabric, place);
	const struct host *h = n && fabric_node_binding(n) ? daemon_host_get(d, place) : NULL;

	return h && !h->station ? h->roce : NULL;
}

/* By its first two words a fault is one of the subnet manager, of Ethernet, of a RoCE port, of the fabric or of a host's HCA. 0, or negative with the error said. */
static int arm(struct daemon *d, struct fault *ft, const char *text, char *err, size_t err_len)
{
	char place[FABRIC_NAME_MAX] = "", action[32] = "", more[300];
	struct roce_port *rp;
	struct host *h;
	int at = 0;
	bool all;

	sscanf(text, "%63s %n%31s", place, &at, action);
	if (*action && manager_fault_concerns(d, place, action)) {
		ft->manager = manager_fault_add(d, text, d->opt.seed + d->fault_id, err, err_len);
		return ft->manager ? 0 : -1;
	}
	if (daemon_ether_place(d, place, &all) && eth_fault_action(action)) {
		ft->ether = eth_fault_add(daemon_ether_net(d), text, err, err_len);
		return ft->ether ? 0 : -1;
	}
	if (roce_fault_action(action) && (rp = roce_at(d, place))) {
		ft->roce = roce_fault_add(rp, text + at, d->opt.seed + d->fault_id, err, err_len);
		return ft->roce ? 0 : -1;
	}
	if (!*action || fabric_fault_action(action)) {
		ft->fabric = fabric_fault_add(d->fabric, text, err, err_len);
		return ft->fabric ? 0 : -1;
	}
	if (!hca_fault_action(action)) {
		fabric_fault_actions(more, sizeof(more) / 2);
		hca_fault_actions(more + sizeof(more) / 2, sizeof(more) / 2);
		snprintf(err, err_len,
			 "%s: there is no such fault; of packets, links and nodes there are: %.140s; of an HCA: %.140s",
			 action, more, more + sizeof(more) / 2);
		return -1;
	}
	h = host_at(d, place, err, err_len);
	if (h && !strcmp(action, HCA_FAULT_UNPLUG))
		return unplug(d, ft, h, text + at, err, err_len);
	ft->hca = h ? hca_fault_add(h->uv.hca, text + at, d->opt.seed + d->fault_id, err, err_len) : NULL;
	return ft->hca ? 0 : -1;
}

static void note(struct daemon *d, const struct fault *ft, const char *what, const char *text)
{
	char line[120];

	snprintf(line, sizeof(line), "%u %s %.90s", ft->id, what, text);
	daemon_timeline_note(d, FABRIC_EVENT_FAULT, line);
}

void daemon_fault_ended(struct daemon *d, const struct manager_fault *ended)
{
	const struct fault *ft;

	list_for_each (ft, &d->faults, link)
		if (ft->manager == ended)
			note(d, ft, "ends", "");
}

u32 daemon_fault_number(const struct daemon *d, const struct fabric_fault *fault)
{
	const struct fault *ft;

	list_for_each (ft, &d->faults, link)
		if (ft->fabric == fault)
			return ft->id;
	return d->fault_id + 1; /* it is being armed */
}

static json_t *cmd_add(struct daemon *d, struct ctl_client *c, const char *text)
{
	size_t len = strlen(text) + 1;
	struct fault *ft;
	char err[512];

	if (d->nfaults >= FAULTS_MAX)
		return ctl_error(c, "%d faults are armed: clear some", FAULTS_MAX);
	ft = calloc(1, sizeof(*ft) + len);
	if (!ft)
		return ctl_error(c, "out of memory");
	if (arm(d, ft, text, err, sizeof(err))) {
		free(ft);
		return ctl_error(c, "%s", err);
	}
	memcpy(ft->text, text, len);
	ft->id = ++d->fault_id;
	ft->armed = loop_now(d->loop).ns;
	list_add(&d->faults, &ft->link);
	d->nfaults++;
	log_at(LOG_INFO, "fault", "%u armed: %s", ft->id, text);
	note(d, ft, "armed:", text);
	if (ft->manager || ft->hca)
		note(d, ft, "begins", "");
	return fault_json(d, ft);
}

static void take_away(struct daemon *d, struct fault *ft)
{
	struct fabric_fault_info info = info_of(ft);

	log_at(LOG_INFO, "fault", "%u cleared after %llu hits of %llu matches", ft->id,
	       (unsigned long long)info.pick->hits, (unsigned long long)info.pick->seen);
	note(d, ft, "cleared", "");
	if (ft->fabric)
		fabric_fault_remove(ft->fabric);
	if (ft->hca)
		hca_fault_remove(ft->hca);
	if (ft->manager)
		manager_fault_remove(ft->manager);
	if (ft->ether)
		eth_fault_remove(ft->ether);
	if (ft->roce)
		roce_fault_remove(ft->roce);
	if (ft->unplugged)
		uv_server_unplug(d->server, &ft->unplugged->uv, false);
	list_del(&ft->link);
	free(ft);
	d->nfaults--;
}

/* The faults as they were: of one number, at one place (or at its ports), or all. */
static json_t *cmd_clear(struct daemon *d, struct ctl_client *c, u32 id, const char *place)
{
	json_t *gone = json_array();
	struct fault *ft, *tmp;
	size_t len = place ? strlen(place) : 0;

	list_for_each_safe (ft, tmp, &d->faults, link) {
		if (id && ft->id != id)
			continue;
		if (place && (strncmp(ft->text, place, len) || !strchr(" :", ft->text[len])))
			continue;
		json_array_append_new(gone, fault_json(d, ft));
		take_away(d, ft);
	}
	if (!id || json_array_size(gone))
		return gone;
	json_decref(gone);
	return ctl_error(c, "there is no fault %u; `muslin fault list` names those that are armed", id);
}

json_t *daemon_faults_json(struct daemon *d)
{
	json_t *all = json_array();
	struct fault *ft;

	list_for_each (ft, &d->faults, link)
		json_array_append_new(all, fault_json(d, ft));
	return all;
}

json_t *daemon_fault_command(void *arg, struct ctl_client *c, const json_t *req, int *fd)
{
	const char *op = json_string_value(json_object_get(req, "op")) ?: "";
	const char *text = json_string_value(json_object_get(req, "fault"));
	const char *place = json_string_value(json_object_get(req, "place"));
	json_int_t id = json_integer_value(json_object_get(req, "id"));

	if (!strcmp(op, "list"))
		return daemon_faults_json(arg);
	if (!strcmp(op, "clear") && id >= 0 && id <= UINT32_MAX)
		return cmd_clear(arg, c, (u32)id, place);
	if (!strcmp(op, "add") && text)
		return cmd_add(arg, c, text);
	return ctl_error(c, "a fault command has an \"op\": add with a \"fault\", list, or clear");
}

void daemon_faults_destroy(struct daemon *d)
{
	while (!list_empty(&d->faults))
		take_away(d, list_first(&d->faults, struct fault, link));
}

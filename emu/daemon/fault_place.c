// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Places of faults: the targets, and the fault set of a target at a place. */
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"
#include "emu/daemon/manager_fault.h"
#include "emu/hca/hca_fault.h"
#include "fabric/fault.h"
#include "rxe/roce/roce.h"
#include "siw/siw.h"

bool daemon_place_is_all(const char *place)
{
	return !strcmp(place, FAULT_PLACE_ALL);
}

bool daemon_place_exists(struct daemon *d, const char *place)
{
	const char *colon = strrchr(place, ':'), *port;
	char name[FABRIC_NAME_MAX] = "";
	bool all;

	if (colon && (size_t)(colon - place) < sizeof(name))
		snprintf(name, sizeof(name), "%.*s", (int)(colon - place), place);
	return fabric_place_find(d->fabric, place, &port) || daemon_ether_place(d, place, &all) ||
	       daemon_ether_place(d, name, &all);
}

struct host *daemon_fault_host(struct daemon *d, const char *place, char *err, size_t err_len)
{
	struct host *h = daemon_host_get(d, place);

	if (!h)
		snprintf(err, err_len, "%.64s: %s", place,
			 daemon_place_is_all(place) || daemon_place_exists(d, place)
				 ? "this fault needs a host as its place"
				 : "there is no such node");
	return h;
}

/* Functions that return the fault set of a target at a place; NULL: not a place of the target. */

/* The host at the place (its node, or port 1) if it is not on the fabric; else NULL. */
static struct host *bound_host_at(struct daemon *d, const char *place)
{
	const struct fabric_node *n = fabric_node_find(d->fabric, place);
	size_t len = strlen(place);
	char name[FABRIC_NAME_MAX];

	if (!n && len > 2 && len - 2 < sizeof(name) && !strcmp(place + len - 2, ":1")) {
		snprintf(name, sizeof(name), "%.*s", (int)(len - 2), place);
		n = fabric_node_find(d->fabric, name);
	}
	return n && fabric_node_binding(n) ? daemon_host_get(d, fabric_node_name(n)) : NULL;
}

static struct fault_set *second_managers_at(struct daemon *d, const char *place)
{
	return bound_host_at(d, place) || !daemon_host_get(d, place) ? NULL : &d->second_managers;
}

static struct fault_set *ether_at(struct daemon *d, const char *place)
{
	struct eth *net = daemon_ether_net(d);
	bool all;

	return net && (daemon_place_is_all(place) || daemon_ether_place(d, place, &all)) ? eth_faults(net) : NULL;
}

/* The fault set of a RoCE port on sockets. */
static struct fault_set *roce_at(struct daemon *d, const char *place)
{
	const struct host *h = bound_host_at(d, place);

	return h && !h->station && h->roce ? roce_port_faults(h->roce) : NULL;
}

static struct fault_set *iwarp_at(struct daemon *d, const char *place)
{
	const struct host *h = bound_host_at(d, place);

	return h && h->siw ? siw_faults(h->uv.hca) : NULL;
}

static struct fault_set *fabric_at(struct daemon *d, const char *place)
{
	if (daemon_place_is_all(place))
		return daemon_manager_needed(d) ? fabric_faults(d->fabric) : NULL;
	return bound_host_at(d, place) || ether_at(d, place) || daemon_ether_no_port(d, place, NULL, 0)
		       ? NULL
		       : fabric_faults(d->fabric);
}

static struct fault_set *hca_at(struct daemon *d, const char *place)
{
	struct host *h = daemon_host_get(d, place);

	return h && h->uv.hca ? hca_faults(h->uv.hca) : NULL;
}

static struct fault_set *firmware_at(struct daemon *d, const char *place)
{
	struct host *h = daemon_host_get(d, place);

	return h && daemon_guest_infiniband(h) ? &h->firmware : NULL;
}

/* The targets in the order in which those that have the action resolve the place. */
static const struct {
	const struct fault_target *target;
	struct fault_set *(*at)(struct daemon *d, const char *place);
} targets[] = {
	{ &second_manager_target, second_managers_at },
	{ &eth_fault_target, ether_at },
	{ &roce_fault_target, roce_at },
	{ &siw_fault_target, iwarp_at },
	{ &fabric_fault_target, fabric_at },
	{ &hca_fault_target, hca_at },
	{ &connectx_fault_target, firmware_at },
};

/* In the order in which their faults are listed. */
const struct daemon_link_kind daemon_link_kinds[DAEMON_LINK_KINDS] = {
	{ &fabric_fault_target, "InfiniBand links" },
	{ &eth_fault_target, "Ethernet links" },
	{ &roce_fault_target, "RoCE hosts on UDP" },
	{ &siw_fault_target, "iWARP hosts" },
};

struct fault_set *daemon_fault_links(struct daemon *d, const struct fault_target *target, u32 i)
{
	const struct host *h = i ? d->hosts[i - 1] : NULL;

	if (target == &fabric_fault_target)
		return i ? NULL : fabric_at(d, FAULT_PLACE_ALL);
	if (target == &eth_fault_target)
		return i ? NULL : ether_at(d, FAULT_PLACE_ALL);
	if (target == &roce_fault_target)
		return h && h->roce && !h->station ? roce_port_faults(h->roce) : NULL;
	return h && h->siw ? siw_faults(h->uv.hca) : NULL;
}

static bool any_links(struct daemon *d, const struct fault_target *target)
{
	u32 i = 0;

	if (target != &roce_fault_target && target != &siw_fault_target)
		return false;
	while (i <= fabric_node_count(d->fabric) && !daemon_fault_links(d, target, i))
		i++;
	return i <= fabric_node_count(d->fabric);
}

/* Appends those of @names, separated by blanks, that @list does not have yet: it begins and ends with a blank. */
static void names_add(char *list, size_t size, char *names)
{
	char word[64], *name, *save;

	for (name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
		snprintf(word, sizeof(word), " %s ", name);
		if (!strstr(list, word))
			snprintf(list + strlen(list), size - strlen(list), "%s", word + 1);
	}
}

void daemon_fault_refuse(struct daemon *d, const char *place, const char *action, char *err, size_t err_len)
{
	char names[200], list[400] = " ";
	u32 i;

	if (fault_kind(&hca_fault_target, action) || fault_kind(&second_manager_target, action) ||
	    fault_kind(&connectx_fault_target, action)) {
		if (daemon_fault_host(d, place, err, err_len))
			snprintf(err, err_len, "%.64s: the host has no %s", place,
				 fault_kind(&hca_fault_target, action) ? "adapter" : "InfiniBand port");
		return;
	}
	if (daemon_ether_no_port(d, place, err, err_len))
		return;
	if (!daemon_place_is_all(place) && !daemon_place_exists(d, place)) {
		snprintf(err, err_len, "%.64s: there is no such node", place);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(targets); i++)
		if (targets[i].at(d, place) || (daemon_place_is_all(place) && any_links(d, targets[i].target))) {
			fault_names(targets[i].target, names, sizeof(names));
			names_add(list, sizeof(list), names);
		}
	list[strlen(list) - 1] = 0;
	snprintf(err, err_len, "%s: there is no such fault at %.64s; there are:%s", action, place, list);
}

struct fault_set *daemon_fault_set(struct daemon *d, const char *place, const char *action, char *err, size_t err_len)
{
	struct fault_set *set = NULL;
	u32 i;

	if (!strcmp(place, MANAGER_FAULT_PLACE) && !fabric_node_find(d->fabric, place))
		set = &d->manager_faults;
	else if (!*action)
		set = fabric_faults(d->fabric);
	for (i = 0; i < ARRAY_SIZE(targets) && !set; i++)
		if (fault_kind(targets[i].target, action))
			set = targets[i].at(d, place);
	if (!set)
		daemon_fault_refuse(d, place, action, err, err_len);
	return set;
}

const struct fabric_node *daemon_place_node(struct daemon *d, const char *place, u32 *port)
{
	const char *num;
	const struct fabric_node *n = fabric_place_find(d->fabric, place, &num);

	*port = num ? (u32)strtoul(num, NULL, 10) : 0;
	return n;
}

bool daemon_place_is_unknown(struct daemon *d, const char *place)
{
	return !daemon_place_is_all(place) && strcmp(place, MANAGER_FAULT_PLACE) != 0 &&
	       !daemon_place_exists(d, place) && !fabric_node_matches(d->fabric, place, NULL, 0);
}

json_t *daemon_place_refuse(struct daemon *d, struct ctl_client *c, const char *place)
{
	char name[FABRIC_NAME_MAX], like[4 * (FABRIC_NAME_MAX + 8)];
	size_t len = strcspn(place, ":");

	snprintf(name, sizeof(name), "%.*s", (int)min(len, sizeof(name) - 1), place);
	daemon_like_text(d, name, false, like, sizeof(like));
	return ctl_error(c, "%.64s: there is no such node%s; `muslin show` lists all", place, like);
}

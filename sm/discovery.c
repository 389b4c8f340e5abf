// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Discovery (IBTA 14.4.2): breadth-first search by directed-route SMPs from the own port, with parallel requests.
 *
 * New links are stored in sm_port.found beside .peer, so that subnet administration answers from the last complete
 * topology meanwhile; discovery_commit() replaces it.
 */
#include "sm/sm_internal.h"

static void fetch_port(struct sm *sm, struct sm_port *p);
static void on_node_info(struct sm *sm, struct sm_smp *smp, const u8 *mad);

static void on_node_desc(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	struct sm_node *n = smp->node;

	if (!mad || sm_smp_status(mad)) {
		sm_sweep_error(sm, smp, "no NodeDescription");
		return;
	}
	memcpy(n->desc, mad + SMP_DATA, NODEDESC_SIZE);
	n->has_desc = true;
	n->desc_stale = false;
}

/* Ports through which an SMP can be forwarded: external ports of a switch, and the own port. */
static bool leads_on(const struct sm *sm, const struct sm_port *p)
{
	u8 state = sm_port_state(p);

	return !p->found && state >= PORT_STATE_INIT && state <= PORT_STATE_ACTIVE &&
	       (sm_node_is_switch(p->node) ? p->num != 0 : p == sm->self);
}

static void on_port_info(struct sm *sm, struct sm_smp *got, const u8 *mad)
{
	struct sm_port *p = got->port;
	struct sm_smp *smp;

	if (!mad || sm_smp_status(mad)) {
		p->has_info = false;
		sm_sweep_error(sm, got, "no PortInfo");
		return;
	}
	memcpy(p->info, mad + SMP_DATA, PORTINFO_SIZE);
	p->has_info = true;
	if (!leads_on(sm, p) || p->node->hops >= SMP_HOPS_MAX)
		return;
	smp = sm_smp_new(sm, p->node, SMP_ATTR_NODE_INFO, 0, on_node_info);
	if (!smp)
		return;
	smp->hop = p->num;
	smp->port = p;
	sm_smp_queue(sm, smp);
}

static void fetch_port(struct sm *sm, struct sm_port *p)
{
	struct sm_smp *smp;

	p->seen = sm->sweep;
	smp = sm_smp_new(sm, p->node, SMP_ATTR_PORT_INFO, p->num, on_port_info);
	if (!smp)
		return;
	smp->port = p;
	sm_smp_queue(sm, smp);
}

static void on_switch_info_set(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	if (!mad || sm_smp_status(mad))
		sm_sweep_error(sm, smp, "PortStateChange is not cleared");
}

/* PortStateChange is cleared before the ports are read, so that later changes set it again. */
static void clear_change(struct sm *sm, struct sm_node *n)
{
	struct sm_smp *smp = sm_smp_new(sm, n, SMP_ATTR_SWITCH_INFO, 0, on_switch_info_set);

	if (!smp)
		return;
	smp->method = MAD_METHOD_SET;
	memcpy(smp->data, n->swinfo, SWITCHINFO_SIZE);
	wire_set(smp->data, SWITCHINFO_PORT_STATE_CHANGE, 1);
	sm_smp_queue(sm, smp);
}

static void on_switch_info(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	struct sm_node *n = smp->node;
	u32 i;

	if (!mad || sm_smp_status(mad)) {
		sm_sweep_error(sm, smp, "no SwitchInfo");
		return;
	}
	/* A switch without its tables was rebooted. */
	if (wire_get(mad + SMP_DATA, SWITCHINFO_LFT_TOP) != wire_get(n->swinfo, SWITCHINFO_LFT_TOP))
		sm_route_reset(n);
	memcpy(n->swinfo, mad + SMP_DATA, SWITCHINFO_SIZE);
	if (wire_get(n->swinfo, SWITCHINFO_PORT_STATE_CHANGE))
		clear_change(sm, n);
	for (i = 0; i <= n->nports; i++)
		fetch_port(sm, &n->ports[i]);
}

/* Looks up the node of @info, or adds it. */
static struct sm_node *node_of(struct sm *sm, const u8 *info)
{
	struct sm_node *n = sm_node_find(sm, wire_get(info, NODEINFO_NODE_GUID));

	if (n && n->seen != sm->sweep &&
	    (n->type != wire_get(info, NODEINFO_NODE_TYPE) || n->nports != wire_get(info, NODEINFO_NUM_PORTS))) {
		sm_node_remove(sm, n); /* another device with the same GUID */
		n = NULL;
	}
	if (!n) {
		n = sm_node_add(sm, info);
		sm->changed = true;
	}
	return n;
}

static void connect_ports(struct sm *sm, struct sm_port *a, struct sm_port *b)
{
	if (a->found && a->found != b)
		sm_log(sm, LOG_WARN, "%s port %u has two peers: is a GUID duplicate?", sm_node_name(a->node), a->num);
	if (a->found)
		a->found->found = NULL;
	if (b->found)
		b->found->found = NULL;
	a->found = b;
	b->found = a;
}

/* First response of the node in this sweep: its path becomes the directed route to the node. */
static void discovery_add_path(struct sm *sm, struct sm_node *n, const struct sm_smp *got, const u8 *info)
{
	struct sm_smp *smp;

	n->seen = sm->sweep;
	memcpy(n->info, info, NODEINFO_SIZE);
	if (got->node) {
		memcpy(n->path, got->node->path, SMP_PATH_SIZE);
		n->hops = got->node->hops + 1;
		n->path[n->hops] = got->hop;
	} else {
		n->hops = 0;
	}
	if (!n->has_desc || n->desc_stale) {
		smp = sm_smp_new(sm, n, SMP_ATTR_NODE_DESC, 0, on_node_desc);
		if (smp)
			sm_smp_queue(sm, smp);
	}
	if (!sm_node_is_switch(n))
		return;
	smp = sm_smp_new(sm, n, SMP_ATTR_SWITCH_INFO, 0, on_switch_info);
	if (smp)
		sm_smp_queue(sm, smp);
}

static void on_node_info(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	const u8 *info = mad ? mad + SMP_DATA : NULL;
	struct sm_node *n;
	struct sm_port *p;
	u32 local;

	if (!mad || sm_smp_status(mad)) {
		sm_sweep_error(sm, smp, "no NodeInfo");
		return;
	}
	local = wire_get(info, NODEINFO_LOCAL_PORT);
	n = local <= wire_get(info, NODEINFO_NUM_PORTS) ? node_of(sm, info) : NULL;
	if (!n || local > n->nports) {
		sm_sweep_error(sm, smp, "NodeInfo is invalid");
		return;
	}
	if (n->seen != sm->sweep)
		discovery_add_path(sm, n, smp, info);
	p = &n->ports[local];
	if (smp->port)
		connect_ports(sm, smp->port, p);
	if (sm_node_is_switch(n)) {
		sm_port_set_guid(sm, &n->ports[0], wire_get(info, NODEINFO_PORT_GUID));
		if (!smp->node)
			sm->self = &n->ports[0];
		return;
	}
	sm_port_set_guid(sm, p, wire_get(info, NODEINFO_PORT_GUID));
	if (!smp->node)
		sm->self = p;
	if (p->seen != sm->sweep)
		fetch_port(sm, p);
}

/* ---- end of discovery ---- */

static void commit_port(struct sm *sm, struct sm_port *p)
{
	if (p->peer != p->found)
		sm->changed = true;
	p->peer = p->found;
	p->found = NULL;
	if (p->seen == sm->sweep)
		return;
	p->has_info = false;
	if (p->trap64_sent)
		sm_port_leave(sm, p);
}

static void discovery_commit(struct sm *sm)
{
	void (*done)(struct sm * sm) = sm->discovered;
	struct sm_node *n, *tmp;
	u32 i;

	list_for_each (n, &sm->nodes, link)
		for (i = 0; i <= n->nports; i++)
			commit_port(sm, &n->ports[i]);
	list_for_each_safe (n, tmp, &sm->nodes, link)
		if (n->seen != sm->sweep)
			sm_node_remove(sm, n);
	done(sm);
}

void sm_discovery_start(struct sm *sm, void (*done)(struct sm *sm))
{
	struct sm_smp *smp;
	struct sm_node *n;
	u32 i;

	sm->sweep++;
	list_for_each (n, &sm->nodes, link)
		for (i = 0; i <= n->nports; i++)
			n->ports[i].found = NULL;
	sm->discovered = done;
	smp = sm_smp_new(sm, NULL, SMP_ATTR_NODE_INFO, 0, on_node_info);
	if (smp)
		sm_smp_queue(sm, smp);
	sm_smp_phase(sm, NULL, discovery_commit);
}

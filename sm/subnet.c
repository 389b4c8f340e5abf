// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The discovered subnet: nodes and ports, lookup by GUID and by LID; MTU and rate of a port. */
#include <stdio.h>
#include <stdlib.h>

#include "sm/sm_internal.h"

static u32 hash_of(u64 guid)
{
	return (u32)((guid * 0x9e3779b97f4a7c15ull) >> 32);
}

struct sm_node *sm_node_find(const struct sm *sm, u64 guid)
{
	struct sm_node *n = sm->nhash ? sm->hash[hash_of(guid) & (sm->nhash - 1)] : NULL;

	while (n && n->guid != guid)
		n = n->hash_next;
	return n;
}

static bool grow_hash(struct sm *sm)
{
	u32 cap = sm->nhash ? sm->nhash * 2 : 256, h;
	struct sm_node **hash, *n;

	if (sm->nnodes < sm->nhash)
		return true;
	hash = calloc(cap, sizeof(*hash));
	if (!hash)
		return sm->nhash != 0;
	list_for_each (n, &sm->nodes, link) {
		h = hash_of(n->guid) & (cap - 1);
		n->hash_next = hash[h];
		hash[h] = n;
	}
	free(sm->hash);
	sm->hash = hash;
	sm->nhash = cap;
	return true;
}

struct sm_node *sm_node_add(struct sm *sm, const u8 *info)
{
	u32 nports = wire_get(info, NODEINFO_NUM_PORTS), h, i;
	struct sm_node *n;

	if (!grow_hash(sm))
		return NULL;
	n = calloc(1, sizeof(*n));
	if (n)
		n->ports = calloc(nports + 1, sizeof(*n->ports));
	if (!n || !n->ports) {
		free(n);
		return NULL;
	}
	n->guid = wire_get(info, NODEINFO_NODE_GUID);
	n->type = wire_get(info, NODEINFO_NODE_TYPE);
	n->nports = (u8)nports;
	n->sw = SM_NONE;
	n->mft_unknown = true;
	memcpy(n->info, info, NODEINFO_SIZE);
	for (i = 0; i <= nports; i++) {
		n->ports[i].node = n;
		n->ports[i].num = (u8)i;
	}
	h = hash_of(n->guid) & (sm->nhash - 1);
	n->hash_next = sm->hash[h];
	sm->hash[h] = n;
	list_add(&sm->nodes, &n->link);
	sm->nnodes++;
	return n;
}

/* ---- port GUIDs: open addressing; a removal rebuilds the table ---- */

static void guid_put(struct sm *sm, struct sm_port *p)
{
	u32 h = hash_of(p->guid) & (sm->guid_cap - 1);

	while (sm->guid_hash[h])
		h = (h + 1) & (sm->guid_cap - 1);
	sm->guid_hash[h] = p;
	sm->guid_used++;
}

static void guid_rebuild(struct sm *sm)
{
	struct sm_node *n;
	u32 i;

	memset(sm->guid_hash, 0, sm->guid_cap * sizeof(*sm->guid_hash));
	sm->guid_used = 0;
	list_for_each (n, &sm->nodes, link)
		for (i = 0; i <= n->nports; i++)
			if (n->ports[i].guid)
				guid_put(sm, &n->ports[i]);
}

static bool guid_grow(struct sm *sm)
{
	u32 cap = sm->guid_cap ? sm->guid_cap * 2 : 256;
	struct sm_port **h;

	if (sm->guid_used * 2 < sm->guid_cap)
		return true;
	h = calloc(cap, sizeof(*h));
	if (!h)
		return false;
	free(sm->guid_hash);
	sm->guid_hash = h;
	sm->guid_cap = cap;
	guid_rebuild(sm);
	return true;
}

struct sm_port *sm_port_by_guid(const struct sm *sm, u64 guid)
{
	u32 h;

	if (!sm->guid_cap || !guid)
		return NULL;
	h = hash_of(guid) & (sm->guid_cap - 1);
	while (sm->guid_hash[h] && sm->guid_hash[h]->guid != guid)
		h = (h + 1) & (sm->guid_cap - 1);
	return sm->guid_hash[h];
}

void sm_port_set_guid(struct sm *sm, struct sm_port *p, u64 guid)
{
	if (p->guid == guid)
		return;
	if (p->guid) { /* it is another port now */
		sm_port_leave(sm, p);
		p->guid = 0;
		guid_rebuild(sm);
	}
	if (guid && !sm_port_by_guid(sm, guid) && guid_grow(sm)) {
		p->guid = guid;
		guid_put(sm, p);
	}
}

void sm_port_leave(struct sm *sm, struct sm_port *p)
{
	sm->changed = true;
	if (p->guid) {
		sm->cfg.sa->forget_port(sm, p); /* before the report: the port has left the subnet */
		if (p->trap64_sent)
			sm_trap_port(sm, TRAP_GID_OUT_OF_SERVICE, p);
		sm_mcast_forget_port(sm, p);
	}
	p->trap64_sent = false;
	sm_lid_release(sm, p);
}

struct sm_port *sm_port_by_lid(const struct sm *sm, u32 lid)
{
	return lid < SM_LIDS ? sm->by_lid[lid] : NULL;
}

const char *sm_node_name(const struct sm_node *n)
{
	static char buf[NODEDESC_SIZE + 32];
	u32 i;

	for (i = 0; i < NODEDESC_SIZE && n->desc[i]; i++)
		buf[i] = n->desc[i] < ' ' ? '?' : (char)n->desc[i];
	snprintf(buf + i, sizeof(buf) - i, "%s0x%016llx", i ? " " : "", (unsigned long long)n->guid);
	return buf;
}

struct sm_port *sm_port_switch(const struct sm_port *p)
{
	if (sm_node_is_switch(p->node))
		return &p->node->ports[0];
	return p->peer && sm_node_is_switch(p->peer->node) ? p->peer : NULL;
}

u8 sm_port_mtu(const struct sm_port *p)
{
	bool own = sm_node_is_switch(p->node) && !p->num;
	u8 mtu = own ? wire_get(p->info, PORTINFO_MTU_CAP) : wire_get(p->info, PORTINFO_NEIGHBOR_MTU);

	return wire_mtu_bytes(mtu) ? mtu : WIRE_MTU_256;
}

u8 sm_port_rate(const struct sm_port *p)
{
	unsigned int lanes = wire_width_lanes(wire_get(p->info, PORTINFO_WIDTH_ACTIVE));
	u8 ext = wire_get(p->info, PORTINFO_SPEED_EXT_ACTIVE);
	u8 ext2 = (u8)(wire_get(p->info, PORTINFO_SPEED_EXT2_ACTIVE) << LINK_SPEED_EXT2_SHIFT);
	enum wire_speed speed = wire_speed_active(wire_get(p->info, PORTINFO_SPEED_ACTIVE), ext | ext2);
	u8 rate = wire_link_rate(speed, lanes);

	return rate ? rate : WIRE_RATE_2_5;
}

void sm_subnet_invalidate(struct sm *sm)
{
	struct sm_node *n;
	u32 i;

	list_for_each (n, &sm->nodes, link) {
		sm_route_reset(n);
		for (i = 0; i <= n->nports; i++) {
			n->ports[i].pkeys_sent = 0;
			n->ports[i].qos_sent = false;
		}
	}
}

/* ---- removal of nodes ---- */

static void node_free(struct sm_node *n)
{
	u32 i;

	for (i = 0; i <= n->nports; i++)
		free(n->ports[i].pkeys);
	free(n->ports);
	free(n->lft);
	free(n->lft_set);
	free(n->mft);
	free(n->mft_set);
	free(n);
}

void sm_node_remove(struct sm *sm, struct sm_node *n)
{
	struct sm_node **at = &sm->hash[hash_of(n->guid) & (sm->nhash - 1)];
	struct sm_port *p;

	for (p = n->ports; p <= &n->ports[n->nports]; p++) {
		if (p->peer && p->peer->peer == p)
			p->peer->peer = NULL;
		if (p->found && p->found->found == p)
			p->found->found = NULL;
		sm_port_leave(sm, p);
		if (sm->self == p)
			sm->self = NULL;
	}
	sm_sminfo_forget_node(sm, n);
	while (*at != n)
		at = &(*at)->hash_next;
	*at = n->hash_next;
	list_del(&n->link);
	sm->nnodes--;
	guid_rebuild(sm);
	node_free(n);
}

void sm_subnet_fini(struct sm *sm)
{
	struct sm_node *n, *tmp;

	list_for_each_safe (n, tmp, &sm->nodes, link) {
		list_del(&n->link);
		node_free(n);
	}
	free(sm->hash);
	free(sm->guid_hash);
	sm->hash = NULL;
	sm->guid_hash = NULL;
	sm->nhash = sm->guid_cap = sm->nnodes = 0;
	sm->self = NULL;
}

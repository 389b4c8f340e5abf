// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Nodes and ports as other rooms see them: accessors, counters and events. */
#include "fabric/fabric_internal.h"

const char *fabric_counter_name(enum fabric_counter c)
{
	static const char *const names[] = { FABRIC_COUNTERS(COUNTER_NAME) };

	return c < FABRIC_CTR_NUM ? names[c] : "?";
}

u32 fabric_node_count(const struct fabric *f)
{
	return f->nnodes;
}

struct fabric_node *fabric_node(const struct fabric *f, u32 index)
{
	return index < f->nnodes ? &f->nodes[index] : NULL;
}

struct fabric_node *fabric_node_find(const struct fabric *f, const char *name)
{
	u32 i;

	for (i = 0; i < f->nnodes; i++)
		if (!strcmp(f->nodes[i].name, name))
			return &f->nodes[i];
	return NULL;
}

struct fabric_port *fabric_node_port(const struct fabric_node *n, u32 num)
{
	if (n->only)
		return num == n->only->num ? n->only : NULL;
	return num <= n->nports && (num || n->sw) ? &n->ports[num] : NULL;
}

const char *fabric_node_name(const struct fabric_node *n)
{
	return n->name;
}

void fabric_node_desc(const struct fabric_node *n, char desc[65])
{
	memcpy(desc, n->desc, NODEDESC_SIZE);
	desc[NODEDESC_SIZE] = 0;
}

u8 fabric_node_type(const struct fabric_node *n)
{
	return n->type;
}

u8 fabric_node_ports(const struct fabric_node *n)
{
	return n->nports;
}

u64 fabric_node_guid(const struct fabric_node *n)
{
	return n->guid;
}

u64 fabric_node_sysguid(const struct fabric_node *n)
{
	return n->sysguid;
}

const char *fabric_node_binding(const struct fabric_node *n)
{
	return n->binding;
}

void fabric_node_bind(struct fabric_node *n, u64 guid, const struct fabric_ip *ip)
{
	n->guid = n->sysguid = guid;
	n->ports[1].guid = guid;
	n->ports[1].ca->ip = *ip;
}

u32 fabric_node_vendor(const struct fabric_node *n)
{
	return n->vendid;
}

u16 fabric_node_device(const struct fabric_node *n)
{
	return n->devid;
}

void fabric_port_info(const struct fabric_port *p, struct fabric_port_info *info)
{
	const struct fabric_port *self = p->node->sw ? &p->node->ports[0] : p;
	const struct wire_portinfo *pi = p->info;
	bool up = pi->phys_state == PHYS_STATE_LINK_UP;

	*info = (struct fabric_port_info){
		.num = p->num,
		.guid = self->guid,
		.lid = self->info->lid,
		.sm_lid = self->info->sm_lid,
		.lmc = self->info->lmc,
		.state = pi->state,
		.phys_state = pi->phys_state,
		.lanes = up ? (u8)wire_width_lanes(pi->width_active) : 0,
		.speed = up ? wire_speed_active(pi->speed_active, pi->speed_ext_active) : WIRE_SPEED_NONE,
		.mtu_cap = pi->mtu_cap,
		.mtu = pi->mtu_active,
		.cap_mask = self->info->cap_mask,
		.unplugged = p->unplugged || p->pulled || (p->peer && p->peer->pulled),
		.peer = p->peer ? p->peer->node : NULL,
		.peer_port = p->peer ? p->peer->num : 0,
		.trunk = p->peer && p->peer->remote,
	};
}

const struct fabric_node *fabric_port_node(const struct fabric_port *p)
{
	return p->node;
}

void fabric_watch(struct fabric *f, void (*fn)(void *ctx, const struct fabric_event *ev), void *ctx)
{
	f->watch = fn;
	f->watch_ctx = ctx;
}

u64 fabric_port_counter(const struct fabric_port *p, enum fabric_counter c)
{
	if (c >= FABRIC_CTR_NUM)
		return 0;
	return p->ctr[c] + (c == FABRIC_CTR_XMIT_WAIT ? fabric_arb_wait_ticks(p) : 0);
}

struct wire_port *fabric_ca_port(const struct fabric_node *n, u32 num)
{
	return !n->sw && num && num <= n->nports ? &n->ports[num].ca->wire : NULL;
}

const struct fabric_ip *fabric_ca_ip(const struct fabric_node *n, u32 num)
{
	return !n->sw && num && num <= n->nports ? &n->ports[num].ca->ip : NULL;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Nodes and ports: accessors for other modules, counters and events. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

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

u64 fabric_node_guid_of(const char *name)
{
	bool hex = !strncasecmp(name, "0x", 2), id = (*name == 'H' || *name == 'S' || *name == 'R') && name[1] == '-';
	size_t len = strlen(name + 2 * (hex || id));

	if ((!hex && !id) || !len || len > 16 || strspn(name + 2, "0123456789abcdefABCDEF") != len)
		return 0;
	return strtoull(name + 2, NULL, 16);
}

static bool node_has_guid(const struct fabric_node *n, u64 guid)
{
	u32 i;

	if (n->guid == guid)
		return true;
	for (i = 1; !n->sw && i <= n->nports; i++)
		if (n->ports[i].guid == guid)
			return true;
	return false;
}

/*
 * Ways to identify a node, in this order: its name, its GUID or that of a port, its description, the first word of
 * that.
 */
enum node_by {
	NODE_BY_NAME,
	NODE_BY_GUID,
	NODE_BY_DESC,
	NODE_BY_WORD,
	NODE_BY_NUM
};

static bool node_is(const struct fabric_node *n, enum node_by by, const char *name, size_t len, u64 guid)
{
	switch (by) {
	case NODE_BY_NAME:
		return !strcmp(n->name, name);
	case NODE_BY_GUID:
		return guid && node_has_guid(n, guid);
	case NODE_BY_DESC:
		return len <= NODEDESC_SIZE && !strncmp(n->desc, name, NODEDESC_SIZE);
	default:
		return len < NODEDESC_SIZE && !strncmp(n->desc, name, len) && n->desc[len] == ' ';
	}
}

struct fabric_node *fabric_node_find(const struct fabric *f, const char *name)
{
	u64 guid = fabric_node_guid_of(name);
	size_t len = strlen(name);
	enum node_by by;
	u32 i;

	for (by = NODE_BY_NAME; len && by < NODE_BY_NUM; by++) {
		struct fabric_node *found = NULL;

		for (i = 0; i < f->nnodes; i++) {
			if (!node_is(&f->nodes[i], by, name, len, guid))
				continue;
			if (found)
				return NULL;
			found = &f->nodes[i];
			if (by <= NODE_BY_GUID)
				return found; /* these are unique */
		}
		if (found)
			return found;
	}
	return NULL;
}

u32 fabric_node_matches(const struct fabric *f, const char *name, const struct fabric_node **match, u32 max)
{
	size_t len = strlen(name);
	u32 i, n = 0;

	for (i = 0; len && i < f->nnodes; i++) {
		if (!node_is(&f->nodes[i], NODE_BY_DESC, name, len, 0) &&
		    !node_is(&f->nodes[i], NODE_BY_WORD, name, len, 0))
			continue;
		if (n < max)
			match[n] = &f->nodes[i];
		n++;
	}
	return n;
}

struct fabric_node *fabric_place_find(const struct fabric *f, const char *place, const char **port)
{
	struct fabric_node *n = fabric_node_find(f, place);
	const char *colon = strrchr(place, ':');
	char name[NODEDESC_SIZE + 1];

	*port = NULL;
	if (n || !colon || (size_t)(colon - place) >= sizeof(name))
		return n;
	snprintf(name, sizeof(name), "%.*s", (int)(colon - place), place);
	*port = colon + 1;
	return fabric_node_find(f, name);
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

bool fabric_node_enhanced_port0(const struct fabric_node *n)
{
	return n->enhanced_port0;
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
		.speed = !up                ? WIRE_SPEED_NONE
			 : pi->fdr10_active ? WIRE_SPEED_FDR10
					    : wire_speed_active(pi->speed_active, pi->speed_ext_active),
		.mtu_cap = pi->mtu_cap,
		.mtu = pi->mtu_active,
		.cap_mask = self->info->cap_mask,
		.unplugged = p->unplugged || p->pulled || (p->peer && p->peer->pulled),
		.disabled = pi->phys_state == PHYS_STATE_DISABLED ||
			    (p->peer && p->peer->info->phys_state == PHYS_STATE_DISABLED),
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

u64 fabric_events(const struct fabric *f)
{
	return f->timing.events;
}

u64 *fabric_vl_counter(struct fabric_port *p, u32 vl, enum fabric_vl_counter c)
{
	if (c == FABRIC_VL_WAIT)
		return p->vls ? &p->vls->xmit_wait[vl] : NULL;
	return c == FABRIC_VL_PKTS ? &p->vl_rx[vl].pkts : &p->vl_rx[vl].words;
}

u64 fabric_port_vl_counter(struct fabric_port *p, u8 vl, enum fabric_vl_counter c)
{
	const u64 *counter = vl < 15 ? fabric_vl_counter(p, vl, c) : NULL;

	return counter ? *counter : 0;
}

void fabric_port_reset(struct fabric_port *p)
{
	struct wire_portinfo *info = p->info;

	p->down_default = PHYS_STATE_POLLING;
	p->oper_vls = p->node->f->vl_cap;
	p->nvls = wire_vl_count(p->oper_vls);
	p->vl_high_limit = 0;
	p->hoq_life = 31;
	p->vl_stall_count = 7;
	p->enforce_in = p->enforce_out = p->filter_in = p->filter_out = 0;
	p->phy_err_thr = p->phy_errors = p->overrun_thr = p->mc_trap_suppress = p->led = p->init_type = 0;
	p->mkey = p->lease_end = 0;
	p->mkey_protect = 0;
	p->mkey_lease = 0;
	p->prefix = WIRE_GID_PREFIX_DEFAULT;
	free(p->arb);
	free(p->sl2vl);
	free(p->pkeys);
	p->arb = NULL;
	p->sl2vl = NULL;
	p->pkeys = NULL;
	info->lid = info->sm_lid = 0;
	info->lmc = info->sm_sl = 0;
	info->mtu_active = info->mtu_cap;
	fabric_link_enable_all(info);
	info->subnet_timeout = 18;
	info->pkey_violations = info->qkey_violations = info->mkey_violations = 0;
	memset(p->ctr, 0, sizeof(p->ctr));
	memset(p->ctr_base, 0, sizeof(p->ctr_base));
	memset(p->vl_rx, 0, sizeof(p->vl_rx));
	if (p->vls)
		memset(p->vls->xmit_wait, 0, sizeof(p->vls->xmit_wait));
	if (p->ca)
		fabric_ca_reset(p);
}

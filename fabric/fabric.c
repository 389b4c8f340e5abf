// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A fabric: built from a topology, looked at by commands, taken down. */
#include <errno.h>
#include <stdlib.h>

#include "fabric/internal.h"

const char *fabric_counter_name(enum fabric_counter c)
{
	static const char *const names[] = { FABRIC_COUNTERS(COUNTER_NAME) };

	return c < FABRIC_CTR_NUM ? names[c] : "?";
}

static void port_speeds(struct fabric_port *p, const struct fabric_topology_port *tp)
{
	static const u8 width[13] = {
		[1] = 1, [2] = LINK_WIDTH_2X, [4] = LINK_WIDTH_4X, [8] = LINK_WIDTH_8X, [12] = LINK_WIDTH_12X
	};

	p->lanes_cap = tp->lanes ? tp->lanes : 4;
	p->speed_cap = tp->speed ? min(tp->speed, (u8)WIRE_SPEED_NDR) : WIRE_SPEED_HDR;
	p->width_enabled = width[p->lanes_cap] | LINK_WIDTH_1X;
	p->speed_enabled = (1 << min(p->speed_cap, (u8)3)) - 1;
	p->speed_ext_enabled =
		p->speed_cap > WIRE_SPEED_QDR ? (1 << (p->speed_cap - WIRE_SPEED_QDR)) - 1 : LINK_SPEED_EXT_DISABLE;
}

static void port_init(struct fabric_port *p, const struct fabric_topology *t, const struct fabric_topology_port *tp)
{
	list_init(&p->kick);
	list_init(&p->wait);
	list_init(&p->down);
	p->state = PORT_STATE_DOWN;
	p->phys = PHYS_STATE_POLLING;
	p->down_default = PHYS_STATE_POLLING;
	p->mtu = t->mtu;
	p->oper_vls = t->vl_cap;
	p->nvls = wire_vl_count(t->vl_cap);
	p->hoq_life = 31;
	p->vl_stall_count = 7;
	p->subnet_timeout = 18;
	p->prefix = WIRE_GID_PREFIX_DEFAULT;
	p->cap_mask = PORT_CAP_TRAP | PORT_CAP_SL_MAP | PORT_CAP_SYS_IMAGE_GUID | PORT_CAP_EXT_SPEEDS |
		      PORT_CAP_LED_INFO | PORT_CAP_CLIENT_REREGISTER | PORT_CAP_CAP_MASK_NOTICE |
		      PORT_CAP_OTHER_LOCAL_CHANGES | PORT_CAP_CAP_MASK2;
	port_speeds(p, tp);
}

static int node_switch(struct fabric_node *n)
{
	n->sw = calloc(1, sizeof(*n->sw));
	if (!n->sw)
		return -ENOMEM;
	n->sw->positions = n->nports / MFT_PORTS_PER_POSITION + 1;
	n->sw->life_time = 18;
	n->ports[0].state = PORT_STATE_ACTIVE;
	n->ports[0].phys = PHYS_STATE_LINK_UP;
	n->ports[0].guid = n->guid;
	n->ports[0].lanes = n->ports[0].lanes_cap;
	n->ports[0].speed = n->ports[0].speed_cap;
	return 0;
}

static int node_init(struct fabric_node *n, const struct fabric_topology *t, const struct fabric_topology_node *tn)
{
	u32 i;
	int err = 0;

	n->type = tn->type;
	n->nports = tn->nports;
	n->guid = tn->guid;
	n->sysguid = tn->sysguid;
	n->vendid = tn->vendid;
	n->devid = tn->devid;
	list_init(&n->traps);
	if (tn->binding) {
		n->binding = strdup(tn->binding);
		if (!n->binding)
			return -ENOMEM;
	}
	memcpy(n->name, tn->name, sizeof(n->name));
	memcpy(n->desc, tn->name, min(strlen(tn->name), sizeof(n->desc)));
	for (i = 0; i <= n->nports && !err; i++) {
		struct fabric_port *p = &n->ports[i];

		p->node = n;
		p->num = i;
		port_init(p, t, &tn->ports[i]);
		if (n->type == NODE_TYPE_SWITCH || !i)
			continue;
		p->guid = tn->ports[i].guid ? tn->ports[i].guid : tn->guid + i;
		err = fabric_ca_init(p, t, tn);
	}
	return err ? err : n->type == NODE_TYPE_SWITCH ? node_switch(n) : 0;
}

static void wire(struct fabric *f, const struct fabric_topology *t)
{
	u32 i, p;

	for (i = 0; i < f->nnodes; i++)
		for (p = 1; p <= f->nodes[i].nports; p++) {
			const struct fabric_topology_port *tp = &t->nodes[i].ports[p];

			if (tp->peer != FABRIC_NO_PEER)
				f->nodes[i].ports[p].peer = &f->nodes[tp->peer].ports[tp->peer_port];
		}
	for (i = 0; i < f->nnodes; i++)
		for (p = 1; p <= f->nodes[i].nports; p++) {
			fabric_link_update(&f->nodes[i].ports[p]);
			fabric_ca_sync(&f->nodes[i].ports[p]);
		}
}

static int build(struct fabric *f, const struct fabric_topology *t)
{
	u32 i, nports = 0;
	int err = 0;

	for (i = 0; i < t->nnodes; i++)
		nports += t->nodes[i].nports + 1u;
	f->nodes = calloc(t->nnodes, sizeof(*f->nodes));
	f->port_pool = calloc(nports, sizeof(*f->port_pool));
	if (!f->nodes || !f->port_pool)
		return -ENOMEM;
	for (i = 0, nports = 0; i < t->nnodes && !err; i++) {
		struct fabric_node *n = &f->nodes[i];

		n->f = f;
		n->index = i;
		n->ports = &f->port_pool[nports];
		nports += t->nodes[i].nports + 1u;
		f->nnodes++;
		err = node_init(n, t, &t->nodes[i]);
	}
	if (!err)
		wire(f, t);
	return err;
}

struct fabric *fabric_create(struct loop *loop, const struct fabric_topology *topo, u64 seed)
{
	struct fabric *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->loop = loop;
	f->now = loop_now(loop);
	f->rng.state = f->seed = seed;
	f->mtu_cap = topo->mtu;
	f->vl_cap = topo->vl_cap;
	list_init(&f->kicked);
	list_init(&f->waiting);
	list_init(&f->downs);
	list_init(&f->faults);
	list_init(&f->faults_due);
	loop_task_init(&f->fault_task, fabric_fault_run);
	loop_task_init(&f->task, fabric_relay_run);
	f->timer.fn = fabric_arb_timer;
	if (build(f, topo)) {
		fabric_destroy(f);
		errno = ENOMEM;
		return NULL;
	}
	return f;
}

/* What waits gives back the credits of other ports, so nothing of any port is gone yet. */
static void flush_all(struct fabric *f)
{
	u32 i, p;

	for (i = 0; i < f->nnodes; i++)
		for (p = 0; p <= f->nodes[i].nports && f->nodes[i].ports; p++)
			if (f->nodes[i].ports[p].vls)
				fabric_arb_flush(&f->nodes[i].ports[p], FABRIC_CTR_XMIT_INACTIVE);
}

static void port_fini(struct fabric_port *p)
{
	fabric_capture_forget(p);
	fabric_ca_fini(p);
	free(p->vls);
	free(p->arb);
	free(p->sl2vl);
	free(p->pkeys);
}

void fabric_destroy(struct fabric *f)
{
	u32 i, p;

	if (!f)
		return;
	f->closing = true;
	fabric_fault_fini(f);
	for (i = 0; i < f->nnodes; i++)
		fabric_trap_fini(&f->nodes[i]);
	flush_all(f);
	while (f->flight_n) {
		wire_packet_free(f->flight[f->flight_head].p);
		f->flight_head = (f->flight_head + 1) & (f->flight_cap - 1);
		f->flight_n--;
	}
	for (i = 0; i < f->nnodes; i++) {
		struct fabric_node *n = &f->nodes[i];

		for (p = 0; p <= n->nports; p++)
			if (n->ports[p].node)
				port_fini(&n->ports[p]);
		free(n->binding);
		if (n->sw) {
			free(n->sw->lft);
			free(n->sw->mft);
			free(n->sw);
		}
	}
	loop_task_cancel(&f->task);
	loop_timer_cancel(&f->timer);
	free(f->flight);
	free(f->nodes);
	free(f->port_pool);
	free(f);
}

struct loop *fabric_loop(const struct fabric *f)
{
	return f->loop;
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

	*info = (struct fabric_port_info){
		.num = p->num,
		.guid = self->guid,
		.lid = self->lid,
		.sm_lid = self->sm_lid,
		.lmc = self->lmc,
		.state = p->state,
		.phys_state = p->phys,
		.lanes = p->lanes,
		.speed = (enum wire_speed)p->speed,
		.mtu_cap = p->ca ? p->ca->wire.attr.mtu_cap : p->node->f->mtu_cap,
		.mtu = p->mtu,
		.cap_mask = self->cap_mask,
		.unplugged = p->unplugged || p->pulled || (p->peer && p->peer->pulled),
		.peer = p->peer ? p->peer->node : NULL,
		.peer_port = p->peer ? p->peer->num : 0,
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

void fabric_tell(struct fabric *f, enum fabric_event_type type, const struct fabric_port *p,
		 const struct fabric_fault *ft, const char *text)
{
	struct fabric_event ev = { .type = type, .port = p, .fault = ft, .text = text };

	if (f->watch && !f->closing)
		f->watch(f->watch_ctx, &ev);
}

u64 fabric_port_counter(const struct fabric_port *p, enum fabric_counter c)
{
	if (c >= FABRIC_CTR_NUM)
		return 0;
	return p->ctr[c] + (c == FABRIC_CTR_XMIT_WAIT ? fabric_arb_waited(p) : 0);
}

struct wire_port *fabric_ca_port(const struct fabric_node *n, u32 num)
{
	return !n->sw && num && num <= n->nports ? &n->ports[num].ca->wire : NULL;
}

const struct fabric_ip *fabric_ca_ip(const struct fabric_node *n, u32 num)
{
	return !n->sw && num && num <= n->nports ? &n->ports[num].ca->ip : NULL;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The fabric object: creation from a topology, and destruction. */
#include <errno.h>
#include <stdlib.h>

#include "fabric/fabric_internal.h"
#include "fabric/fault.h"

/* Port 0 of a switch is always up. */
static void port_init(struct fabric_port *p, const struct fabric_topology *t, const struct fabric_topology_port *tp)
{
	struct wire_portinfo *info = p->info;
	u8 lanes = tp->lanes ? tp->lanes : 4;
	u8 speed = tp->speed ? tp->speed : WIRE_SPEED_HDR;

	info->state = p->num ? PORT_STATE_DOWN : PORT_STATE_ACTIVE;
	info->phys_state = !p->num ? PHYS_STATE_LINK_UP : tp->disabled ? PHYS_STATE_DISABLED : PHYS_STATE_POLLING;
	info->mtu_cap = t->mtu;
	info->cap_mask = PORT_CAP_TRAP | PORT_CAP_SL_MAP | PORT_CAP_SYS_IMAGE_GUID | PORT_CAP_EXT_SPEEDS |
			 PORT_CAP_LED_INFO | PORT_CAP_CLIENT_REREGISTER | PORT_CAP_CAP_MASK_NOTICE |
			 PORT_CAP_OTHER_LOCAL_CHANGES | PORT_CAP_CAP_MASK2;
	info->width_supported = fabric_link_width(lanes) | LINK_WIDTH_1X;
	fabric_link_set_supported(p, speed);
	fabric_port_reset(p);
	p->node->f->xdr |= speed == WIRE_SPEED_XDR;
	if (t->keep_lids && wire_lid_is_unicast(tp->lid)) {
		info->lid = tp->lid;
		info->lmc = tp->lmc;
	}
	fabric_link_set_active(info, p->num ? 4 : lanes, p->num ? WIRE_SPEED_SDR : speed);
}

/* A CA has no port 0; its number is used for loopback. */
static int node_port_init(struct fabric_node *n, u8 num, const struct fabric_topology *t,
			  const struct fabric_topology_node *tn)
{
	const struct fabric_topology_port *tp = &tn->ports[num];
	struct fabric_port *p = &n->ports[num];

	p->node = n;
	p->num = num;
	list_init(&p->kick);
	list_init(&p->wait);
	list_init(&p->down);
	if (n->sw) {
		p->info = &n->sw->info[num];
		if (!num)
			p->guid = n->guid;
	} else if (num) {
		p->guid = fabric_topology_port_guid(tn, num);
		if (fabric_ca_init(p, t, tn))
			return -ENOMEM;
	} else {
		return 0;
	}
	port_init(p, t, tp);
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
	n->enhanced_port0 = tn->enhanced_port0;
	list_init(&n->traps);
	if (tn->binding) {
		n->binding = strdup(tn->binding);
		if (!n->binding)
			return -ENOMEM;
	}
	memcpy(n->name, tn->name, sizeof(n->name));
	memcpy(n->desc, tn->desc, sizeof(n->desc));
	if (n->type == NODE_TYPE_SWITCH) {
		n->sw = calloc(1, sizeof(*n->sw));
		if (!n->sw)
			return -ENOMEM;
		n->sw->positions = n->nports / MFT_PORTS_PER_POSITION + 1;
		n->sw->life_time = SWITCH_LIFE_TIME;
		n->sw->info = calloc(n->nports + 1u, sizeof(*n->sw->info));
		if (!n->sw->info)
			return -ENOMEM;
	}
	for (i = 0; i <= n->nports && !err; i++)
		err = node_port_init(n, (u8)i, t, tn);
	return err;
}

static int fabric_build(struct fabric *f, const struct fabric_topology *t)
{
	u32 i, p, nports = 0;
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
		n->ports = &f->port_pool[nports];
		nports += t->nodes[i].nports + 1u;
		f->nnodes++;
		err = node_init(n, t, &t->nodes[i]);
	}
	for (i = 0; i < f->nnodes && !err; i++)
		for (p = 1; p <= f->nodes[i].nports; p++) {
			const struct fabric_topology_port *tp = &t->nodes[i].ports[p];

			f->nodes[i].ports[p].delay_ps =
				tp->delay_ps == FABRIC_DELAY_DEFAULT ? t->propagation_ps : tp->delay_ps;
			if (tp->peer != FABRIC_NO_PEER)
				f->nodes[i].ports[p].peer = &f->nodes[tp->peer].ports[tp->peer_port];
		}
	if (!err)
		err = fabric_remote_init(f, t);
	if (!err)
		fabric_direct_init(f);
	for (i = 0; i < f->nnodes && !err; i++)
		for (p = 1; p <= f->nodes[i].nports; p++)
			fabric_link_update(&f->nodes[i].ports[p]);
	return err;
}

struct fabric *fabric_create(struct loop *loop, const struct fabric_topology *topo, u64 seed)
{
	struct fabric *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->loop = loop;
	f->rng.state = seed;
	f->mtu_cap = topo->mtu;
	f->vl_cap = topo->vl_cap;
	list_init(&f->kicked);
	list_init(&f->waiting);
	list_init(&f->downs);
	list_init(&f->direct);
	list_init(&f->extra);
	fault_set_init(&f->faults, &fabric_fault_target, loop, f, seed + 1);
	loop_task_init(&f->task, fabric_receive_run);
	f->timer.fn = fabric_arb_timer;
	f->timing.timer.fn = fabric_receive_events;
	fabric_timing_init(f, topo);
	if (fabric_build(f, topo)) {
		fabric_destroy(f);
		errno = ENOMEM;
		return NULL;
	}
	return f;
}

static void node_fini(struct fabric_node *n)
{
	u32 p;

	for (p = 0; p <= n->nports; p++) {
		struct fabric_port *port = &n->ports[p];

		fabric_capture_forget(port);
		fabric_ca_fini(port);
		free(port->vls);
		free(port->arb);
		free(port->sl2vl);
		free(port->pkeys);
	}
	free(n->binding);
	if (!n->sw)
		return;
	free(n->sw->lft);
	free(n->sw->mft);
	free(n->sw->info);
	free(n->sw);
}

void fabric_destroy(struct fabric *f)
{
	struct fabric_flight fl;
	u32 i, p;

	if (!f)
		return;
	f->closing = true;
	fault_set_fini(&f->faults);
	for (i = 0; i < f->nnodes; i++)
		fabric_trap_fini(&f->nodes[i]);
	/* Queued packets return credits to other ports: flush all queues before any port is freed. */
	for (i = 0; i < f->nnodes; i++)
		for (p = 0; p <= f->nodes[i].nports; p++)
			if (f->nodes[i].ports[p].vls)
				fabric_arb_flush(&f->nodes[i].ports[p], FABRIC_CTR_XMIT_INACTIVE);
	fabric_timing_fini(f);
	while (fabric_flight_pop(&f->released, &fl) || fabric_flight_pop(&f->flight, &fl))
		wire_packet_free(fl.p);
	for (i = 0; i < f->nnodes; i++)
		node_fini(&f->nodes[i]);
	loop_task_cancel(&f->task);
	loop_timer_cancel(&f->timer);
	free(f->flight.ring);
	free(f->released.ring);
	free(f->nodes);
	free(f->port_pool);
	fabric_remote_fini(f);
	free(f);
}

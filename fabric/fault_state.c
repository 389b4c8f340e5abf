// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* State faults of links and nodes: degrade, starve, swap and kill; and link down. */
#include <stdlib.h>

#include "fabric/fault_internal.h"

void fault_set_link(struct fault *base, bool up)
{
	struct fabric_fault *ft = fabric_fault(base);
	struct fabric_port *p;

	fault_for_each_port (ft, p) {
		p->pulled += up ? -1u : 1u;
		if (up)
			fabric_link_update(p);
		else
			fabric_link_disconnect(p);
	}
}

void fault_retrain(struct fabric_port *p)
{
	fabric_link_disconnect(p);
	fabric_link_update(p);
}

/* degrade: limits width and speed at both ends of the cable, and the MTU of this port. */
static void degrade_apply(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	struct fabric_port *p;

	fault_for_each_port (ft, p) {
		p->lanes_limit = ft->lanes;
		p->speed_limit = ft->speed;
		p->info->mtu_cap = ft->mtu ? min(ft->mtu, ft->f->mtu_cap) : ft->f->mtu_cap;
		p->info->mtu_active = min(p->info->mtu_active, p->info->mtu_cap);
		fault_retrain(p);
	}
}

static void degrade_undo(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	struct fabric_port *p;

	fault_for_each_port (ft, p) {
		p->lanes_limit = p->speed_limit = 0;
		p->info->mtu_cap = ft->f->mtu_cap;
		fault_retrain(p);
	}
}

static int degrade_check(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);

	if (!ft->lanes && !ft->speed && !ft->mtu)
		return spec_refuse(err, err_len, "degrade: it needs lanes=, speed=, mtu= or several");
	return 0;
}

/* starve: excludes VLs from arbitration. */
static void starve_apply(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	struct fabric_port *p;

	fault_for_each_port (ft, p)
		p->starved |= BIT(ft->lane);
}

static void starve_undo(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	struct fabric_port *p;

	fault_for_each_port (ft, p) {
		p->starved &= (u16)~BIT(ft->lane);
		fabric_flight_kick(p);
	}
}

static int starve_check(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);
	u32 lanes = wire_vl_count(ft->f->vl_cap);

	if (ft->lane < lanes)
		return 0;
	return spec_refuse(err, err_len, "lane=%u: ports have %u data lane%s", ft->lane, lanes, lanes > 1 ? "s" : "");
}

/* swap: exchanges the peers of two ports. */
static void swap_apply(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	struct fabric_port *a = ft->port, *b = ft->other, *pa = a->peer, *pb = b->peer;

	if (pa == b)
		return;
	fabric_link_disconnect(a);
	fabric_link_disconnect(b);
	a->peer = pb;
	b->peer = pa;
	if (pa)
		pa->peer = b;
	if (pb)
		pb->peer = a;
	fault_rewire(ft->f);
	fabric_link_update(a);
	fabric_link_update(b);
}

static int swap_check(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);

	if (fault_one_port(base, err, err_len))
		return -EINVAL;
	ft->other = fault_find_port(ft->f, ft->with, err, err_len);
	if (!ft->other)
		return -EINVAL;
	if (ft->other == ft->port || !ft->other->peer)
		return spec_refuse(err, err_len, "with=%s: %s", ft->with,
				   ft->other->peer ? "the same port" : "it has no cable");
	if (ft->other->peer->remote || (ft->port->peer && ft->port->peer->remote))
		return spec_refuse(err, err_len,
				   "swap: a trunk, whose other end is in another daemon, cannot be swapped");
	return 0;
}

/* kill: resets a node to its power-on state. */
static void kill_apply(struct fault *base)
{
	struct fabric_node *n = fabric_fault(base)->node;
	struct fabric_port *p;

	fault_set_link(base, false);
	for (p = &n->ports[n->sw ? 0 : 1]; p <= &n->ports[n->nports]; p++) {
		p->info->lid = p->info->sm_lid = 0;
		p->info->lmc = p->info->sm_sl = 0;
		p->mkey = 0;
		p->mkey_protect = 0;
		p->lease_end = 0;
		free(p->arb);
		free(p->sl2vl);
		free(p->pkeys);
		p->arb = NULL;
		p->sl2vl = NULL;
		p->pkeys = NULL;
		p->enforce_in = p->enforce_out = p->filter_in = p->filter_out = 0;
	}
	if (!n->sw)
		return;
	free(n->sw->lft);
	free(n->sw->mft);
	n->sw->lft = NULL;
	n->sw->mft = NULL;
	n->sw->lft_len = n->sw->mft_len = 0;
	n->sw->lft_top = n->sw->mft_top = 0;
}

#define LASTS BIT_ULL(FAULT_FOR)
const struct fault_kind fault_state_kinds[] = {
	{ FAULT_KIND_DOWN(0) },
	{ FAULT_KIND_FLAP(0) },
	{ .name = "degrade",
	  .apply = degrade_apply,
	  .undo = degrade_undo,
	  .prepare = degrade_check,
	  .allowed = LASTS | BIT_ULL(FAULT_LANES) | BIT_ULL(FAULT_SPEED) | BIT_ULL(FAULT_MTU) },
	{ .name = "starve",
	  .apply = starve_apply,
	  .undo = starve_undo,
	  .prepare = starve_check,
	  .required = BIT_ULL(FAULT_LANE),
	  .allowed = LASTS },
	{ .name = "swap",
	  .apply = swap_apply,
	  .undo = swap_apply,
	  .prepare = swap_check,
	  .required = BIT_ULL(FAULT_WITH),
	  .allowed = LASTS },
	{ .name = "kill", .apply = kill_apply, .undo = fault_down_undo, .prepare = fault_whole_node, .allowed = LASTS },
	{ .name = NULL },
};

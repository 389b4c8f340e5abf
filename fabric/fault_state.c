// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* State faults of links and nodes: degrade, starve, swap and kill; and link down. */
#include <stdio.h>
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

/*
 * swap: exchanges the peers of two ports. If the four ends of the cables are in several daemons, each of these has a
 * fault that does so with the ends that it has: the trunks of the topology are suspended, and others are added.
 */
#define SWAP_PEER(i) ((i) ^ 1) /* the other end of the cable */
#define SWAP_NEW(i)  ((i) ^ 3) /* after the swap */

static void swap_suspend(const struct fabric_fault *ft, struct fabric_remote *r, bool suspended)
{
	ft->f->cables->suspend(ft->f->cables_ctx, r, suspended);
}

/* Moves the ends that this daemon has from the trunks @from to those of @to; NULL: the cable is within the daemon. */
static void swap_across(struct fabric_fault *ft, struct fabric_remote *const from[4], struct fabric_remote *const to[4],
			bool swapped)
{
	struct fabric_port *p;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ft->end); i++) {
		if (from[i])
			swap_suspend(ft, from[i], true);
		else if (ft->end[i].port)
			fabric_link_disconnect(ft->end[i].port);
	}
	for (i = 0; i < ARRAY_SIZE(ft->end); i++) {
		p = ft->end[i].port;
		if (!p)
			continue;
		p->swapped = swapped;
		p->peer = to[i] ? &to[i]->port : ft->end[swapped ? SWAP_NEW(i) : SWAP_PEER(i)].port;
	}
	fault_rewire(ft->f);
	for (i = 0; i < ARRAY_SIZE(ft->end); i++) {
		if (to[i])
			swap_suspend(ft, to[i], false);
		else if (ft->end[i].port)
			fabric_link_update(ft->end[i].port);
	}
}

/* Removes the trunks that were added for it. */
static void swap_remove_trunks(struct fabric_fault *ft)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ft->now); i++) {
		if (!ft->now[i])
			continue;
		ft->f->cables->remove(ft->f->cables_ctx, ft->now[i]);
		fabric_remote_give_back(ft->now[i]);
		ft->now[i] = NULL;
	}
}

static bool swap_is_swapped(const struct fabric_port *p)
{
	return p && (p->swapped || (p->peer && p->peer->swapped));
}

static void swap_here(struct fabric_fault *ft, bool swapped)
{
	struct fabric_port *a = ft->port, *b = ft->other, *pa = a->peer, *pb = b->peer;

	fabric_link_disconnect(a);
	fabric_link_disconnect(b);
	a->peer = pb;
	b->peer = pa;
	if (pa)
		pa->peer = b;
	if (pb)
		pb->peer = a;
	a->swapped = b->swapped = swapped;
	fault_rewire(ft->f);
	fabric_link_update(a);
	fabric_link_update(b);
}

static void swap_apply(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);

	if (ft->across) {
		swap_across(ft, ft->first, ft->now, true);
		return;
	}
	/* One that a packet has triggered comes after others, perhaps. */
	ft->swaps = ft->port->peer != ft->other && !swap_is_swapped(ft->port) && !swap_is_swapped(ft->other);
	if (ft->swaps)
		swap_here(ft, true);
}

static void swap_undo(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);

	if (ft->across) {
		swap_across(ft, ft->now, ft->first, false);
		swap_remove_trunks(ft);
	} else if (ft->swaps) {
		swap_here(ft, false);
	}
}

void fabric_swap_end(struct fabric *f, const struct fabric_remote *r)
{
	struct fault *base;
	u32 i;

	list_for_each (base, &f->faults.faults, link) {
		const struct fabric_fault *ft = fabric_fault(base);

		for (i = 0; i < ARRAY_SIZE(ft->end); i++)
			if (ft->across && base->applied && (ft->first[i] == r || ft->now[i] == r)) {
				fault_end(base);
				return;
			}
	}
}

/* The trunks to the new peers of the ports that this daemon has. */
static int swap_add_trunks(struct fabric_fault *ft, char *err, size_t err_len)
{
	const struct fabric_cable_ops *ops = ft->f->cables;
	int rc = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ft->end) && !rc; i++) {
		const struct fabric_end *own = &ft->end[i], *peer = &ft->end[SWAP_NEW(i)];

		if (!own->port || peer->port)
			continue;
		ft->now[i] = fabric_remote_take(own->port, peer);
		if (!ft->now[i])
			rc = spec_refuse(err, err_len, "out of memory");
		else if (ops->add(ft->f->cables_ctx, ft->now[i], own, peer, err, err_len)) {
			fabric_remote_give_back(ft->now[i]);
			ft->now[i] = NULL;
			rc = -EINVAL;
		}
	}
	if (rc)
		swap_remove_trunks(ft);
	return rc;
}

static int swap_across_check(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);
	u32 i;

	if (!ft->f->cables)
		return spec_refuse(err, err_len,
				   "swap: one of the cables leads to another daemon, and this one has no trunk");
	if (fault_sees_packets(base))
		return spec_refuse(err, err_len,
				   "swap: the cables are of several daemons, so that it begins at once, and takes no "
				   "keys of packets");
	for (i = 2; i < 4; i++)
		if (ft->end[0].node == ft->end[i].node && ft->end[0].num == ft->end[i].num)
			return spec_refuse(err, err_len, "with=%s: %s", ft->with,
					   i == 2 ? "the same port" : "the other end of the same cable");
	for (i = 0; i < ARRAY_SIZE(ft->end); i++) {
		const struct fabric_port *p = ft->end[i].port, *q = ft->end[SWAP_PEER(i)].port;

		if (p && (swap_is_swapped(p) || (q ? p->peer != q : !p->peer || !p->peer->remote)))
			return spec_refuse(err, err_len, "swap: the cable of %s:%u is swapped already", p->node->name,
					   p->num);
		ft->first[i] = p && !q ? p->peer->remote : NULL;
	}
	ft->across = true;
	return swap_add_trunks(ft, err, err_len);
}

/* Whether the cables are of several daemons. False with a line in @err: the other one is unknown to these. */
static bool swap_is_across(struct fabric_fault *ft, char *err, size_t err_len)
{
	char place[FABRIC_NAME_MAX + 8];
	u32 i, here = 0;

	snprintf(place, sizeof(place), "%s:%u", ft->node->name, ft->port->num);
	if (fabric_whole_cables(ft->f, place, ft->with, ft->end, err, err_len))
		return false;
	for (i = 0; i < ARRAY_SIZE(ft->end); i++)
		here += ft->end[i].port != NULL;
	return here < ARRAY_SIZE(ft->end);
}

static int swap_check(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);
	const struct fabric_port *a, *b;
	char here[200]; /* without the nodes of other daemons */

	if (fault_one_port(base, err, err_len))
		return -EINVAL;
	if (swap_is_across(ft, err, err_len))
		return swap_across_check(base, err, err_len);
	ft->other = fault_find_port(ft->f, ft->with, ft->f->whole ? here : err, ft->f->whole ? sizeof(here) : err_len);
	if (!ft->other)
		return -EINVAL;
	a = ft->port;
	b = ft->other;
	if (a == b || !b->peer)
		return spec_refuse(err, err_len, "with=%s: %s", ft->with,
				   b->peer ? "the same port" : "it has no cable");
	if (swap_is_swapped(a) || swap_is_swapped(b))
		return spec_refuse(err, err_len, "swap: one of the cables is swapped already");
	if (b->peer->remote || (a->peer && a->peer->remote))
		return spec_refuse(err, err_len,
				   "swap: of a trunk to another daemon this one does not know what is there; with "
				   "lines \"shard\" in the topology (muslin up --join), or --shards, it does");
	return 0;
}

/* kill: resets a node to its power-on state. */
static void kill_apply(struct fault *base)
{
	struct fabric_node *n = fabric_fault(base)->node;
	struct fabric_port *p;

	fault_set_link(base, false);
	for (p = &n->ports[n->sw ? 0 : 1]; p <= &n->ports[n->nports]; p++)
		fabric_port_reset(p);
	if (!n->sw)
		return;
	free(n->sw->lft);
	free(n->sw->mft);
	n->sw->lft = NULL;
	n->sw->mft = NULL;
	n->sw->lft_len = n->sw->mft_len = 0;
	n->sw->lft_top = n->sw->mft_top = 0;
	n->sw->life_time = SWITCH_LIFE_TIME;
	n->sw->default_port = n->sw->mc_primary = n->sw->mc_not_primary = n->sw->state_change = 0;
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
	  .undo = swap_undo,
	  .prepare = swap_check,
	  .required = BIT_ULL(FAULT_WITH),
	  .allowed = LASTS },
	{ .name = "kill", .apply = kill_apply, .undo = fault_down_undo, .prepare = fault_whole_node, .allowed = LASTS },
	{ .name = NULL },
};

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Faults of links and nodes, and when faults of links, nodes and tables begin and end. They begin when they are armed
 * or, where keys of packets are given, when such a packet comes by; they end with for=, or when they are cleared.
 * Nothing is altered in the midst of a packet's way: a task does it.
 */
#include <stdlib.h>

#include "fabric/tap.h"

#define FLAP_TIME (1 * NSEC_PER_SEC)

/* Calls @fn for each port of the place that has a cable. */
static void each_cable(struct fabric_fault *ft, void (*fn)(struct fabric_fault *ft, struct fabric_port *p))
{
	u32 first = ft->node ? ft->node->index : 0, last = ft->node ? first : ft->f->nnodes - 1, i, k;

	if (ft->port) {
		fn(ft, ft->port);
		return;
	}
	for (i = first; i <= last; i++)
		for (k = 1; k <= ft->f->nodes[i].nports; k++)
			if (ft->f->nodes[i].ports[k].peer)
				fn(ft, &ft->f->nodes[i].ports[k]);
}

static void pull(struct fabric_fault *ft, struct fabric_port *p)
{
	p->pulled++;
	fabric_link_lose(p);
}

static void put_back(struct fabric_fault *ft, struct fabric_port *p)
{
	p->pulled--;
	fabric_link_update(p);
}

static void down_apply(struct fabric_fault *ft)
{
	each_cable(ft, pull);
}

static void down_undo(struct fabric_fault *ft)
{
	each_cable(ft, put_back);
}

/* Down, up, down ...: the timer goes on with it. */
static void flap_apply(struct fabric_fault *ft)
{
	ft->cycles = 1;
	ft->down_now = true;
	each_cable(ft, pull);
	loop_timer_set(ft->f->loop, &ft->timer, loop_now(ft->f->loop).ns + (ft->s.down ?: FLAP_TIME));
}

static void flap_undo(struct fabric_fault *ft)
{
	if (ft->down_now)
		each_cable(ft, put_back);
	ft->down_now = false;
}

static void flap_step(struct fabric_fault *ft, u64 now)
{
	ft->down_now = !ft->down_now;
	each_cable(ft, ft->down_now ? pull : put_back);
	ft->cycles += ft->down_now;
	if (!ft->down_now && ft->s.times && ft->cycles >= ft->s.times)
		ft->applied = false;
	else
		loop_timer_set(ft->f->loop, &ft->timer, now + ((ft->down_now ? ft->s.down : ft->s.up) ?: FLAP_TIME));
}

void fault_retrain(struct fabric_port *p)
{
	fabric_link_lose(p);
	fabric_link_update(p);
}

/* Of a cable both ends are limited, but for the MTU, which is the port's own. */
static void limit(struct fabric_fault *ft, struct fabric_port *p)
{
	p->lanes_limit = ft->s.lanes;
	p->speed_limit = ft->s.speed;
	p->mtu_limit = ft->s.mtu;
	fault_retrain(p);
}

static void unlimit(struct fabric_fault *ft, struct fabric_port *p)
{
	p->lanes_limit = p->speed_limit = p->mtu_limit = 0;
	fault_retrain(p);
}

static void degrade_apply(struct fabric_fault *ft)
{
	each_cable(ft, limit);
}

static void degrade_undo(struct fabric_fault *ft)
{
	each_cable(ft, unlimit);
}

static int degrade_check(struct fabric_fault *ft, char *err, size_t err_len)
{
	if (!ft->s.lanes && !ft->s.speed && !ft->s.mtu)
		return spec_refuse(err, err_len, "degrade: it needs lanes=, speed=, mtu= or several");
	return 0;
}

/* As an arbitration table without the lane would do, which no subnet manager writes. */
static void starve(struct fabric_fault *ft, struct fabric_port *p)
{
	p->starved |= BIT(ft->s.lane);
}

static void feed(struct fabric_fault *ft, struct fabric_port *p)
{
	p->starved &= (u16)~BIT(ft->s.lane);
	fabric_arb_kick(p);
}

static void starve_apply(struct fabric_fault *ft)
{
	each_cable(ft, starve);
}

static void starve_undo(struct fabric_fault *ft)
{
	each_cable(ft, feed);
}

static int starve_check(struct fabric_fault *ft, char *err, size_t err_len)
{
	u32 lanes = wire_vl_count(ft->f->vl_cap);

	if (ft->s.lane < lanes)
		return 0;
	return spec_refuse(err, err_len, "lane=%u: ports have %u data lane%s", ft->s.lane, lanes, lanes > 1 ? "s" : "");
}

/* Two cables change places at these ends. */
static void swap_apply(struct fabric_fault *ft)
{
	struct fabric_port *a = ft->port, *b = ft->other, *pa = a->peer, *pb = b->peer;

	if (pa == b)
		return;
	fabric_link_lose(a);
	fabric_link_lose(b);
	a->peer = pb;
	b->peer = pa;
	if (pa)
		pa->peer = b;
	if (pb)
		pb->peer = a;
	fault_taps_rewire(ft->f);
	fabric_link_update(a);
	fabric_link_update(b);
}

int fault_one_port(struct fabric_fault *ft, char *err, size_t err_len)
{
	if (!ft->port && ft->node && !ft->node->sw && ft->node->nports == 1)
		ft->port = &ft->node->ports[1];
	if (!ft->port)
		return spec_refuse(err, err_len, "%s: it needs one port as its place", ft->action->name);
	return 0;
}

static int swap_check(struct fabric_fault *ft, char *err, size_t err_len)
{
	if (fault_one_port(ft, err, err_len))
		return -EINVAL;
	ft->other = fault_find_port(ft->f, ft->s.with, err, err_len);
	if (!ft->other)
		return -EINVAL;
	if (ft->other == ft->port || !ft->other->peer)
		return spec_refuse(err, err_len, "with=%s: %s", ft->s.with,
				   ft->other->peer ? "the same port" : "it has no cable");
	return 0;
}

/* What a node knows after a reboot: nothing of its subnet. */
static void port_forget(struct fabric_port *p)
{
	p->lid = p->sm_lid = 0;
	p->lmc = p->sm_sl = 0;
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
	fabric_ca_sync(p);
}

static void forget(struct fabric_node *n)
{
	u32 i;

	for (i = 0; i <= n->nports; i++)
		port_forget(&n->ports[i]);
	if (!n->sw)
		return;
	free(n->sw->lft);
	free(n->sw->mft);
	n->sw->lft = NULL;
	n->sw->mft = NULL;
	n->sw->lft_len = n->sw->mft_len = 0;
	n->sw->lft_top = n->sw->mft_top = 0;
}

static void kill_apply(struct fabric_fault *ft)
{
	each_cable(ft, pull);
	forget(ft->node);
}

int fault_whole_node(struct fabric_fault *ft, char *err, size_t err_len)
{
	if (!ft->node || ft->port)
		return spec_refuse(err, err_len, "%s: it needs a node as its place", ft->action->name);
	return 0;
}

/* When */

static void apply(struct fabric_fault *ft)
{
	if (ft->applied)
		return;
	ft->applied = true;
	fabric_tell(ft->f, FABRIC_EVENT_FAULT, NULL, ft, "begins");
	ft->action->apply(ft);
	if (ft->s.lasts)
		loop_timer_set(ft->f->loop, &ft->timer, loop_now(ft->f->loop).ns + ft->s.lasts);
}

void fault_state_timer(struct loop_timer *timer, struct now now)
{
	struct fabric_fault *ft = container_of(timer, struct fabric_fault, timer);

	ft->f->now = now;
	if (ft->action->apply == flap_apply) {
		flap_step(ft, now.ns);
		return;
	}
	ft->applied = false;
	fabric_tell(ft->f, FABRIC_EVENT_FAULT, NULL, ft, "ends");
	ft->action->undo(ft);
}

void fault_state_trigger(struct fabric_fault *ft)
{
	if (!ft->packets) {
		pick_next(&ft->s.pick);
		apply(ft);
		return;
	}
	if (!list_empty(&ft->due))
		return;
	list_add(&ft->f->faults_due, &ft->due);
	loop_task_queue(ft->f->loop, &ft->f->fault_task);
}

void fabric_fault_run(struct loop_task *t, struct now now)
{
	struct fabric *f = container_of(t, struct fabric, fault_task);

	f->now = now;
	while (!list_empty(&f->faults_due)) {
		struct fabric_fault *ft = list_first(&f->faults_due, struct fabric_fault, due);

		list_del(&ft->due);
		apply(ft);
	}
}

#define LASTS BIT_ULL(FAULT_FOR)
const struct fault_action fault_state_actions[] = {
	{ .name = "down", .apply = down_apply, .undo = down_undo, .allowed = LASTS },
	{ .name = "flap",
	  .apply = flap_apply,
	  .undo = flap_undo,
	  .allowed = BIT_ULL(FAULT_UP) | BIT_ULL(FAULT_DOWN) | BIT_ULL(FAULT_TIMES) },
	{ .name = "degrade",
	  .apply = degrade_apply,
	  .undo = degrade_undo,
	  .check = degrade_check,
	  .allowed = LASTS | BIT_ULL(FAULT_LANES) | BIT_ULL(FAULT_SPEED) | BIT_ULL(FAULT_MTU) },
	{ .name = "starve",
	  .apply = starve_apply,
	  .undo = starve_undo,
	  .check = starve_check,
	  .required = BIT_ULL(FAULT_LANE),
	  .allowed = LASTS },
	{ .name = "swap",
	  .apply = swap_apply,
	  .undo = swap_apply,
	  .check = swap_check,
	  .required = BIT_ULL(FAULT_WITH),
	  .allowed = LASTS },
	{ .name = "kill", .apply = kill_apply, .undo = down_undo, .check = fault_whole_node, .allowed = LASTS },
	{ .name = NULL },
};

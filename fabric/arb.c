// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Output queues of a switch port: virtual lane arbitration (IBTA 7.6.9), and the timers that discard what has stood
 * too long (18.2.5.4). A VL that is in neither table is served last, round robin, so that a port works before a
 * subnet manager has filled the tables.
 */
#include <errno.h>
#include <stdlib.h>

#include "fabric/internal.h"

#define HIGH_LIMIT_UNIT   4096 /* bytes for each unit of LimitOfHighPriority */
#define HIGH_UNLIMITED    255
#define XMIT_WAIT_TICK_NS 64

int fabric_arb_vls(struct fabric_port *p)
{
	u32 i;

	if (p->vls)
		return 0;
	p->vls = calloc(1, sizeof(*p->vls));
	if (!p->vls)
		return -ENOMEM;
	for (i = 0; i < 16; i++)
		list_init(&p->vls->q[i]);
	return 0;
}

/* What waits and does not move counts as well. */
u64 fabric_arb_waited(const struct fabric_port *out)
{
	const struct fabric_vls *v = out->vls;

	if (!v || !v->active)
		return 0;
	return (loop_now(out->node->f->loop).ns - v->wait_since) / XMIT_WAIT_TICK_NS;
}

void fabric_arb_account(struct fabric_port *out)
{
	u64 ticks = fabric_arb_waited(out);

	if (!ticks)
		return;
	out->ctr[FABRIC_CTR_XMIT_WAIT] += ticks;
	out->vls->wait_since += ticks * XMIT_WAIT_TICK_NS;
}

void fabric_arb_kick(struct fabric_port *out)
{
	struct fabric *f = out->node->f;

	if (!((out->vls && out->vls->active) || (out->ca && out->ca->want_ready)) || !list_empty(&out->kick))
		return;
	list_add(&f->kicked, &out->kick);
	loop_task_queue(f->loop, &f->task);
}

/* When the head of @vl's queue is to be discarded; ~0: never. */
static u64 deadline(const struct fabric_port *out, u8 vl)
{
	const struct wire_packet *p = list_first(&out->vls->q[vl], struct wire_packet, link);
	u8 life = out->node->sw ? out->node->sw->life_time : 31;
	u64 when = ~0ull;

	if (out->hoq_life <= FABRIC_NO_LIMIT)
		when = p->queued + wire_timeout_ns(out->hoq_life);
	if (life <= FABRIC_NO_LIMIT)
		when = min(when, p->born + wire_timeout_ns(life));
	return when;
}

static void timer_at(struct fabric *f, u64 when)
{
	if (when != ~0ull && (!loop_timer_armed(&f->timer) || f->timer.when > when))
		loop_timer_set(f->loop, &f->timer, when);
}

void fabric_arb_queue(struct fabric_port *out, struct wire_packet *p, u8 vl, struct now now)
{
	struct fabric_vls *v;

	if (fabric_arb_vls(out)) {
		fabric_count(out, FABRIC_CTR_XMIT_DISCARDS);
		fabric_relay_drop(&out->node->ports[p->in_port], p);
		return;
	}
	v = out->vls;
	if (v->stalled & BIT(vl)) {
		if (now.ns < v->stall_until[vl]) {
			fabric_count(out, FABRIC_CTR_XMIT_DISCARDS);
			fabric_count(out, FABRIC_CTR_XMIT_HOQ);
			fabric_relay_drop(&out->node->ports[p->in_port], p);
			return;
		}
		v->stalled &= ~BIT(vl);
		v->hoq_drops[vl] = 0;
	}
	p->born = p->queued = now.ns;
	if (!v->active) {
		v->wait_since = now.ns;
		list_add(&out->node->f->waiting, &out->wait);
	}
	list_add(&v->q[vl], &p->link);
	v->queued[vl]++;
	if (!(v->active & BIT(vl))) {
		v->active |= BIT(vl);
		timer_at(out->node->f, deadline(out, vl));
	}
}

/* Takes the head of a queue. */
static struct wire_packet *dequeue(struct fabric_port *out, u8 vl, u64 now)
{
	struct fabric_vls *v = out->vls;
	struct wire_packet *p = list_first(&v->q[vl], struct wire_packet, link);
	u64 wait = (now - v->wait_since) / XMIT_WAIT_TICK_NS;

	list_del(&p->link);
	v->queued[vl]--;
	out->ctr[FABRIC_CTR_XMIT_WAIT] += wait;
	v->xmit_wait[vl] += wait;
	v->wait_since = now;
	if (list_empty(&v->q[vl])) {
		v->active &= ~BIT(vl);
		if (!v->active)
			list_del(&out->wait);
	} else {
		list_first(&v->q[vl], struct wire_packet, link)->queued = now;
	}
	return p;
}

static void drop_head(struct fabric_port *out, u8 vl, u64 now, enum fabric_counter why)
{
	struct wire_packet *p = dequeue(out, vl, now);

	fabric_count(out, FABRIC_CTR_XMIT_DISCARDS);
	fabric_count(out, why);
	fabric_relay_drop(&out->node->ports[p->in_port], p);
}

void fabric_arb_flush(struct fabric_port *out, enum fabric_counter why)
{
	u64 now = loop_now(out->node->f->loop).ns;
	u8 vl;

	for (vl = 0; out->vls && vl < 16; vl++)
		while (out->vls->active & BIT(vl))
			drop_head(out, vl, now, why);
}

static void transmit(struct fabric_port *out, u8 vl)
{
	struct fabric *f = out->node->f;
	struct wire_packet *p = dequeue(out, vl, f->now.ns);
	struct fabric_port *in = &out->node->ports[p->in_port];
	u8 in_vl = p->vl;

	out->vls->hoq_drops[vl] = 0;
	fabric_flight_push(f, fabric_relay_transmit(out, p, vl), p, 0);
	if (in->num)
		fabric_relay_release(in, in_vl, p);
}

/* VLs whose head could go now. */
static u16 eligible(const struct fabric_port *out)
{
	u16 mask = 0, active = out->vls->active;
	u8 vl;

	for (vl = 0; vl < 15; vl++)
		if ((active & BIT(vl)) &&
		    fabric_credit(out, vl, list_first(&out->vls->q[vl], struct wire_packet, link)))
			mask |= BIT(vl);
	return mask;
}

static u32 head_units(const struct fabric_port *out, u8 vl)
{
	return (wire_packet_link_len(list_first(&out->vls->q[vl], struct wire_packet, link)) + 63) / 64;
}

/* Weighted round robin over one table. The VL, or -1. */
static int table_pick(struct fabric_port *out, u8 prio, u16 mask)
{
	const struct fabric_vlarb *arb = out->arb;
	struct fabric_vls *v = out->vls;
	u32 i;

	for (i = 0; i <= FABRIC_VLARB_ENTRIES; i++) {
		u8 at = v->turn[prio], vl = arb->vl[prio][at];

		if (v->weight[prio] > 0 && arb->weight[prio][at] && (mask & BIT(vl))) {
			v->weight[prio] -= (s32)head_units(out, vl);
			return vl;
		}
		v->turn[prio] = (at + 1) % FABRIC_VLARB_ENTRIES;
		v->weight[prio] = arb->weight[prio][v->turn[prio]];
	}
	return -1;
}

static int round_robin(struct fabric_port *out, u16 mask)
{
	u32 i;

	for (i = 1; i <= 16; i++) {
		u8 vl = (out->vls->rr + i) % 16;

		if (mask & BIT(vl)) {
			out->vls->rr = vl;
			return vl;
		}
	}
	return -1;
}

/* High priority first, until LimitOfHighPriority bytes have gone while low priority waited. */
static int pick(struct fabric_port *out, u16 mask)
{
	struct fabric_vls *v = out->vls;
	int vl;

	if (!out->arb)
		return round_robin(out, mask);
	if (v->high_left > 0 || out->vl_high_limit == HIGH_UNLIMITED) {
		vl = table_pick(out, 1, mask);
		if (vl >= 0) {
			v->high_left -= (s32)head_units(out, (u8)vl) * 64;
			return vl;
		}
	}
	vl = table_pick(out, 0, mask);
	v->high_left = out->vl_high_limit ? out->vl_high_limit * HIGH_LIMIT_UNIT : 1;
	if (vl < 0)
		vl = table_pick(out, 1, mask);
	return vl >= 0 ? vl : round_robin(out, mask);
}

/* What a CA's users wait for: room for what they were refused, and to be offered what they refused. */
static void ca_ready(struct fabric_ca *ca)
{
	struct wire_port *w = &ca->wire;

	fabric_ca_run_held(ca->port);
	if (!ca->want_ready)
		return;
	ca->want_ready = false;
	if (w->data.ready)
		w->data.ready(w->data.ctx);
	if (w->mad.ready)
		w->mad.ready(w->mad.ctx);
}

void fabric_arb_run(struct fabric_port *out)
{
	u16 mask;
	int vl;

	while (out->vls && out->vls->active && out->peer && (mask = eligible(out))) {
		vl = pick(out, mask);
		if (vl < 0)
			break;
		transmit(out, (u8)vl);
	}
	if (out->ca)
		ca_ready(out->ca);
}

/* Discards what is due at one output, and lets a VL stall that has discarded VLStallCount times in a row. */
static void expire(struct fabric_port *out, u64 now)
{
	struct fabric_vls *v = out->vls;
	u8 vl;

	for (vl = 0; vl < 15; vl++)
		while ((v->active & BIT(vl)) && deadline(out, vl) <= now) {
			const struct wire_packet *p = list_first(&v->q[vl], struct wire_packet, link);
			bool hoq =
				out->hoq_life <= FABRIC_NO_LIMIT && p->queued + wire_timeout_ns(out->hoq_life) <= now;

			drop_head(out, vl, now, hoq ? FABRIC_CTR_XMIT_HOQ : FABRIC_CTR_XMIT_LIFETIME);
			if (hoq && out->vl_stall_count && ++v->hoq_drops[vl] >= out->vl_stall_count) {
				v->stalled |= BIT(vl);
				v->stall_until[vl] = now + 8 * wire_timeout_ns(out->hoq_life);
				while (v->active & BIT(vl))
					drop_head(out, vl, now, FABRIC_CTR_XMIT_HOQ);
			}
		}
}

void fabric_arb_timer(struct loop_timer *t, struct now now)
{
	struct fabric *f = container_of(t, struct fabric, timer);
	struct fabric_port *p, *tmp;
	u64 next = ~0ull;
	u8 vl;

	f->now = now;
	list_for_each_safe (p, tmp, &f->waiting, wait) {
		expire(p, now.ns);
		for (vl = 0; vl < 15; vl++)
			if (p->vls->active & BIT(vl))
				next = min(next, deadline(p, vl));
	}
	timer_at(f, next);
}

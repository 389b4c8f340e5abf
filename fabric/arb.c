// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Output queues of a port: VL arbitration (IBTA 7.6.9), and packet lifetime, head-of-queue lifetime and VL stall
 * (18.2.5.4). VLs in neither arbitration table are served last, round robin, so that a port forwards before a subnet
 * manager has written the tables.
 */
#include <stdlib.h>

#include "fabric/fabric_internal.h"

#define HIGH_LIMIT_UNIT   4096 /* bytes for each unit of LimitOfHighPriority */
#define HIGH_UNLIMITED    255
#define XMIT_WAIT_TICK_NS 64

/* Start of the wait of a port with data that transmits none; the time of a transmission does not count. */
static u64 wait_since(const struct fabric_port *out)
{
	return max(out->vls->wait_since, out->busy_until / 1000);
}

/* Allocated when a port first has to queue or to wait; NULL: out of memory. */
static struct fabric_vls *port_vls(struct fabric_port *out)
{
	struct fabric_vls *v = out->vls;
	u32 i;

	if (v)
		return v;
	v = out->vls = calloc(1, sizeof(*v));
	for (i = 0; v && i < 16; i++)
		list_init(&v->q[i]);
	return v;
}

/* Includes the wait that has not ended. */
u64 fabric_arb_wait_ticks(const struct fabric_port *out)
{
	u64 now = loop_now(out->node->f->loop).ns;

	if (!out->vls || !(out->vls->active | out->vls->blocked) || now <= wait_since(out))
		return 0;
	return (now - wait_since(out)) / XMIT_WAIT_TICK_NS;
}

void fabric_arb_update_wait(struct fabric_port *out)
{
	u64 ticks = fabric_arb_wait_ticks(out);

	if (!ticks)
		return;
	out->ctr[FABRIC_CTR_XMIT_WAIT] += ticks;
	out->vls->wait_since = wait_since(out) + ticks * XMIT_WAIT_TICK_NS;
}

void fabric_arb_block(struct fabric_port *out, u8 vl)
{
	struct fabric_vls *v = port_vls(out);

	if (!v)
		return;
	if (!(v->active | v->blocked))
		v->wait_since = loop_now(out->node->f->loop).ns;
	v->blocked |= BIT(vl);
}

/* The users of a CA port send again, or have sent, on @vls. */
void fabric_arb_unblock(struct fabric_port *out, u16 vls)
{
	struct fabric_vls *v = out->vls;
	u64 ticks;
	u8 vl;

	if (likely(!v || !v->blocked))
		return;
	ticks = fabric_arb_wait_ticks(out);
	fabric_arb_update_wait(out);
	for (vl = 0; vl < 15; vl++)
		if (v->blocked & vls & BIT(vl))
			v->xmit_wait[vl] += ticks;
	v->blocked &= ~vls;
}

/* Time at which the head of @vl's queue is discarded (HOQLife, LifeTimeValue); ~0: never. */
static u64 vl_head_deadline(const struct fabric_port *out, u8 vl)
{
	const struct wire_packet *p = list_first(&out->vls->q[vl], struct wire_packet, link);
	u8 life = out->node->sw ? out->node->sw->life_time : 31;
	u64 when = ~0ull;

	if (out->hoq_life <= FABRIC_NO_LIMIT)
		when = p->queued + wire_timeout_ns(out->hoq_life);
	if (life <= FABRIC_NO_LIMIT)
		when = min(when, p->entered + wire_timeout_ns(life));
	return when;
}

static void timer_at(struct fabric *f, u64 when)
{
	if (when != ~0ull && (!loop_timer_armed(&f->timer) || f->timer.when > when))
		loop_timer_set(f->loop, &f->timer, when);
}

void fabric_arb_queue(struct fabric_port *out, struct wire_packet *p, u8 vl)
{
	u64 now = loop_now(out->node->f->loop).ns;
	struct fabric_vls *v = port_vls(out);

	if (!v || !wire_packet_own(p)) {
		fabric_count(out, FABRIC_CTR_XMIT_DISCARDS);
		fabric_flight_drop(&out->node->ports[p->in_port], p);
		return;
	}
	if (v->stalled & BIT(vl)) {
		if (now < v->stall_until[vl]) {
			fabric_count_discard(out, FABRIC_CTR_XMIT_HOQ);
			fabric_flight_drop(&out->node->ports[p->in_port], p);
			return;
		}
		v->stalled &= ~BIT(vl);
		v->hoq_drops[vl] = 0;
	}
	p->entered = p->queued = now;
	if (!v->active) {
		if (!v->blocked)
			v->wait_since = now;
		list_add(&out->node->f->waiting, &out->wait);
	}
	list_add(&v->q[vl], &p->link);
	v->queued[vl]++;
	if (!(v->active & BIT(vl))) {
		v->active |= BIT(vl);
		timer_at(out->node->f, vl_head_deadline(out, vl));
	}
}

static struct wire_packet *vl_dequeue(struct fabric_port *out, u8 vl, u64 now)
{
	struct fabric_vls *v = out->vls;
	struct wire_packet *p = list_first(&v->q[vl], struct wire_packet, link);
	u64 wait = now > wait_since(out) ? (now - wait_since(out)) / XMIT_WAIT_TICK_NS : 0;

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

static void vl_drop_head(struct fabric_port *out, u8 vl, u64 now, enum fabric_counter why)
{
	struct wire_packet *p = vl_dequeue(out, vl, now);

	fabric_count_discard(out, why);
	fabric_flight_drop(&out->node->ports[p->in_port], p);
}

void fabric_arb_flush(struct fabric_port *out, enum fabric_counter why)
{
	u64 now = loop_now(out->node->f->loop).ns;
	u8 vl;

	fabric_arb_unblock(out, 0xffff);
	for (vl = 0; out->vls && vl < 16; vl++)
		while (out->vls->active & BIT(vl))
			vl_drop_head(out, vl, now, why);
}

/* VLs whose head packet has credits. */
static u16 arb_eligible_vls(const struct fabric_port *out)
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

/* Weighted round robin over one arbitration table. Returns the VL, or -1. IBTA 7.6.9.2. */
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

/* High-priority table first, until LimitOfHighPriority bytes were sent while low priority waited. */
static int arb_pick(struct fabric_port *out, u16 mask)
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

void fabric_arb_run(struct fabric_port *out)
{
	struct fabric *f = out->node->f;
	u16 mask;

	while (out->vls && out->vls->active && out->peer && !fabric_timed_busy(out) && (mask = arb_eligible_vls(out))) {
		int vl = arb_pick(out, mask);
		struct wire_packet *p;
		struct fabric_port *in;

		if (vl < 0)
			break;
		p = vl_dequeue(out, (u8)vl, loop_now(f->loop).ns);
		in = &out->node->ports[p->in_port];
		out->vls->hoq_drops[vl] = 0;
		fabric_transmit(out, p, (u8)vl, in->num ? in : NULL);
	}
}

/*
 * Discards expired packets of one output; VLStallCount consecutive HOQ discards put the VL into VLStalled. IBTA
 * 18.2.5.4.
 */
static void arb_expire(struct fabric_port *out, u64 now)
{
	struct fabric_vls *v = out->vls;
	u8 vl;

	for (vl = 0; vl < 15; vl++)
		while ((v->active & BIT(vl)) && vl_head_deadline(out, vl) <= now) {
			const struct wire_packet *p = list_first(&v->q[vl], struct wire_packet, link);
			bool hoq =
				out->hoq_life <= FABRIC_NO_LIMIT && p->queued + wire_timeout_ns(out->hoq_life) <= now;

			vl_drop_head(out, vl, now, hoq ? FABRIC_CTR_XMIT_HOQ : FABRIC_CTR_XMIT_LIFETIME);
			if (hoq && out->vl_stall_count && ++v->hoq_drops[vl] >= out->vl_stall_count) {
				v->stalled |= BIT(vl);
				v->stall_until[vl] = now + 8 * wire_timeout_ns(out->hoq_life);
				while (v->active & BIT(vl))
					vl_drop_head(out, vl, now, FABRIC_CTR_XMIT_HOQ);
			}
		}
}

void fabric_arb_timer(struct loop_timer *t, struct now now)
{
	struct fabric *f = container_of(t, struct fabric, timer);
	struct fabric_port *p, *tmp;
	u64 next = ~0ull;
	u8 vl;

	list_for_each_safe (p, tmp, &f->waiting, wait) {
		arb_expire(p, now.ns);
		for (vl = 0; vl < 15; vl++)
			if (p->vls->active & BIT(vl))
				next = min(next, vl_head_deadline(p, vl));
	}
	timer_at(f, next);
}

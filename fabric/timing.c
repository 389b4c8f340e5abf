// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Links with rates and delays in time ("rates enforced" of a topology; muslin-sim).
 *
 * A port transmits one packet at a time, for as long as its bytes take at the data rate of the link. Switches cut
 * through: the head of a packet reaches the output the switch's latency after it has arrived, and the tail leaves no
 * earlier than its arrival plus that latency. A CA receives the packet when its tail has arrived. A packet holds its
 * credits of the input buffer until its tail has left; the return of credits takes no time.
 *
 * Times are in ps, since a header of 26 bytes takes less than a nanosecond at NDR. Times are computed from the due time
 * of the event that causes them, not from the time at which the loop handles it: a daemon that runs late leaves no idle
 * time between packets. For the same reason CAs of a daemon pass packets to their ports ahead of time; in a simulation
 * there is no lateness, and they do not.
 */
#include <stdlib.h>

#include "fabric/fabric_internal.h"

#define PS_PER_NS  1000
#define VCRC_SIZE  2
#define RATE_SHIFT 8             /* fractional bits of a byte's time */
#define AHEAD_PS   2000000000ull /* 2 ms */
#define EVENTS_MAX (4u << 20)

/* ps */
static u64 timing_now(const struct fabric *f)
{
	return f->timing.running ? f->timing.now : loop_now(f->loop).ns * PS_PER_NS;
}

bool fabric_timing_busy(const struct fabric_port *out)
{
	u64 ahead = out->ca ? out->node->f->timing.ahead_ps : 0;

	return out->busy_until > timing_now(out->node->f) + ahead;
}

/* ps per byte, with RATE_SHIFT fractional bits. */
static u64 byte_time(struct fabric_port *out)
{
	const struct wire_portinfo *i = out->info;
	u32 key = (u32)i->width_active << 24 | (u32)i->speed_active << 16 | (u32)i->speed_ext_active << 8 |
		  i->fdr10_active;
	enum wire_speed speed;
	u64 kbps;

	if (out->rate_of == key)
		return out->byte_time;
	speed = i->fdr10_active ? WIRE_SPEED_FDR10 : wire_speed_active(i->speed_active, i->speed_ext_active);
	kbps = wire_link_data_kbps(speed, wire_width_lanes(i->width_active));
	out->rate_of = key;
	out->byte_time = kbps ? (8000000000ull << RATE_SHIFT) / kbps : 0;
	return out->byte_time;
}

/* ---- events: a 4-ary heap, by time and then in the order of creation ---- */

#define CACHE_LINE 64
#define HEAP_LEAD  3 /* unused keys before the heap align the children of a key, 4 * i + 1 and on, to a cache line */

static bool before(const struct fabric_due_key *a, const struct fabric_due_key *b)
{
	return a->when != b->when ? a->when < b->when : (s32)(a->serial - b->serial) < 0;
}

/* @from: not before that time, in ns. */
static void timing_arm(struct fabric *f, u64 from)
{
	struct fabric_timing *t = &f->timing;
	u64 when = t->n ? max((t->heap[0].when + PS_PER_NS - 1) / PS_PER_NS, from) : 0;

	if (t->n && (!loop_timer_armed(&t->timer) || t->timer.when > when))
		loop_timer_set(f->loop, &t->timer, when);
}

static bool timing_grow(struct fabric_timing *t)
{
	u32 cap = t->cap ? 2 * t->cap : 1024;
	struct fabric_due *due = realloc(t->due, cap * sizeof(*due));
	struct fabric_due_key *keys;

	if (!due)
		return false;
	t->due = due;
	keys = aligned_alloc(CACHE_LINE, (cap + 4) * sizeof(*keys));
	if (!keys)
		return false;
	if (t->n)
		memcpy(keys + HEAP_LEAD, t->heap, t->n * sizeof(*keys));
	free(t->keys);
	t->keys = keys;
	t->heap = keys + HEAP_LEAD;
	t->cap = cap;
	return true;
}

static bool timing_push(struct fabric *f, u64 when, struct fabric_due e)
{
	struct fabric_timing *t = &f->timing;
	struct fabric_due_key key = { .when = when, .serial = t->serial };
	u32 i = t->n, up;

	if (t->n == t->cap && !timing_grow(t))
		return false;
	if (t->free) {
		key.slot = t->free - 1;
		t->free = t->due[key.slot].next_free;
	} else {
		key.slot = t->slots++;
	}
	t->due[key.slot] = e;
	t->serial++;
	t->n++;
	for (; i && before(&key, &t->heap[up = (i - 1) / 4]); i = up)
		t->heap[i] = t->heap[up];
	t->heap[i] = key;
	if (!i && !t->running)
		timing_arm(f, 0);
	return true;
}

bool fabric_timing_pop(struct fabric *f, u64 now_ns, struct fabric_due *e)
{
	struct fabric_timing *t = &f->timing;
	struct fabric_due_key last;
	u32 i = 0, child, least, k, slot;

	if (!t->n || t->heap[0].when > now_ns * PS_PER_NS)
		return false;
	t->running = true;
	t->now = t->heap[0].when;
	t->events++;
	slot = t->heap[0].slot;
	*e = t->due[slot];
	t->due[slot].next_free = t->free;
	t->free = slot + 1;
	last = t->heap[--t->n];
	while ((child = 4 * i + 1) < t->n) {
		for (least = child, k = child + 1; k < child + 4 && k < t->n; k++)
			if (before(&t->heap[k], &t->heap[least]))
				least = k;
		if (!before(&t->heap[least], &last))
			break;
		t->heap[i] = t->heap[least];
		i = least;
	}
	if (t->n)
		t->heap[i] = last;
	return true;
}

void fabric_timing_done(struct fabric *f)
{
	f->timing.running = false;
	f->timing.now = 0;
	timing_arm(f, loop_now(f->loop).ns + 1); /* after the budget is spent, other tasks run first */
}

/* ---- transmission ---- */

void fabric_timing_transmit(struct fabric_port *out, struct wire_packet *p, u8 vl, struct fabric_port *in)
{
	struct fabric *f = out->node->f;
	u8 in_vl = p->vl;
	u32 blocks = fabric_blocks(p);
	u64 start = max(timing_now(f), out->busy_until), end, arrives;
	struct fabric_port *to = fabric_flight_transmit(out, p, vl);

	end = start + ((wire_packet_link_len(p) + VCRC_SIZE) * byte_time(out) >> RATE_SHIFT);
	if (in)
		end = max(end, p->tail + f->timing.switch_ps);
	out->busy_ps += end - start;
	out->busy_until = end;
	p->tail = end + out->delay_ps;
	arrives = to->node->sw ? start + out->delay_ps + f->timing.switch_ps : p->tail;
	if (vl == WIRE_VL_MGMT && to->node->sw) /* the SMI needs the whole packet */
		arrives = p->tail + f->timing.switch_ps;
	if (!timing_push(f, end, (struct fabric_due){ .port = out, .in = in, .vl = in_vl, .blocks = (u16)blocks }) &&
	    in)
		fabric_flight_release(in, in_vl, blocks); /* out of memory */
	if (!timing_push(f, arrives, (struct fabric_due){ .port = to, .p = p }))
		fabric_flight_drop(to, p);
}

bool fabric_timing_full(const struct fabric_port *out)
{
	const struct fabric *f = out->node->f;

	return unlikely(f->timing.on) && (out->busy_until > timing_now(f) + 10 * AHEAD_PS || f->timing.n >= EVENTS_MAX);
}

void fabric_timing_init(struct fabric *f, const struct fabric_topology *t)
{
	f->timing.switch_ps = t->switch_ps;
	f->timing.on = t->timed;
	f->timing.ahead_ps = loop_is_virtual(f->loop) ? 0 : AHEAD_PS;
}

void fabric_timing_fini(struct fabric *f)
{
	struct fabric_timing *t = &f->timing;
	u32 i;

	loop_timer_cancel(&t->timer);
	for (i = 0; i < t->n; i++)
		if (t->due[t->heap[i].slot].p)
			wire_packet_free(t->due[t->heap[i].slot].p);
	free(t->keys);
	free(t->due);
	memset(t, 0, sizeof(*t));
}

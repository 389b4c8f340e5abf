// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packet faults: the hooks of a point and their cache by flow, held packets, and the kinds common to all targets:
 * drop, duplicate, delay, reorder, corrupt, rate and stall.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/fault/fault.h"

#define HELD_MAX          65536 /* packets held per hook; further ones are dropped */
#define HITS_NOTIFIED_MAX 32    /* notified hits per fault */
#define REORDER_TIME      NSEC_PER_MSEC
#define FLOWS             64 /* a power of two */
#define CANDIDATES        15

/* A flow (packets that differ in PSN and payload only) and the hooks that may match it. */
struct fault_flow {
	u64 key[2];
	bool valid, many; /* many: more than fit */
	u8 n;
	u16 hook[CANDIDATES];
};

/* A packet that is held. */
struct fault_held {
	struct list link;
	void *packet;
	u64 when;  /* ns: time of release */
	u64 after; /* reorder: release after this many packets have passed */
};

static const struct fault_packet_ops *hook_ops(const struct fault_hook *h)
{
	return h->fault->set->target->packets;
}

u64 fault_now(const struct fault_hook *h)
{
	return loop_now(h->fault->set->loop).ns;
}

/* Holding and releasing */

static void hook_forward(struct fault_hook *h, void *packet)
{
	hook_ops(h)->forward(h, packet, h->fault->number);
}

static struct fault_held *hook_first(const struct fault_hook *h)
{
	return list_empty(&h->held) ? NULL : list_first(&h->held, struct fault_held, link);
}

/* The first held packet, which is held no more. */
static void *hook_take_first(struct fault_hook *h)
{
	struct fault_held *q = hook_first(h);
	void *packet = q->packet;

	list_del(&q->link);
	free(q);
	h->nheld--;
	if (hook_ops(h)->release)
		hook_ops(h)->release(h, packet);
	return packet;
}

static void hook_release_first(struct fault_hook *h)
{
	hook_forward(h, hook_take_first(h));
}

static void hook_on_timer(struct loop_timer *timer, struct now now)
{
	struct fault_hook *h = container_of(timer, struct fault_hook, timer);

	while (hook_first(h) && hook_first(h)->when <= now.ns)
		hook_release_first(h);
	if (hook_first(h) && hook_first(h)->when != FAULT_NEVER)
		loop_timer_set(h->fault->set->loop, timer, hook_first(h)->when);
}

enum fault_verdict fault_discard(struct fault_hook *h, void *packet)
{
	hook_ops(h)->drop(h, packet);
	return FAULT_TAKEN;
}

enum fault_verdict fault_hold(struct fault_hook *h, void *packet, u64 when)
{
	const struct fault_packet_ops *ops = hook_ops(h);
	struct fault_held *q = h->nheld < HELD_MAX ? malloc(sizeof(*q)) : NULL;

	if (!q || (ops->hold && !ops->hold(h, packet, when))) {
		free(q);
		return fault_discard(h, packet);
	}
	q->packet = packet;
	q->when = when;
	q->after = h->passed + max(h->fault->depth, 1u);
	list_add(&h->held, &q->link);
	h->nheld++;
	if (when != FAULT_NEVER && !loop_timer_armed(&h->timer))
		loop_timer_set(h->fault->set->loop, &h->timer, when);
	return FAULT_TAKEN;
}

/* Hooks of a point */

static void point_changed(struct fault_point *pt)
{
	if (pt->flow)
		memset(pt->flow, 0, FLOWS * sizeof(*pt->flow));
	if (pt->n)
		return;
	free(pt->hook);
	free(pt->flow);
	*pt = (struct fault_point){ .n = 0 };
}

int fault_attach(struct fault *ft, struct fault_point *pt, void *at)
{
	struct fault_hook *h = calloc(1, sizeof(*h)), **hooks;

	hooks = h ? realloc(pt->hook, (pt->n + 1) * sizeof(struct fault_hook *)) : NULL;
	if (hooks)
		pt->hook = hooks;
	if (hooks && ft->set->target->packets->flow && !pt->flow)
		pt->flow = calloc(FLOWS, sizeof(*pt->flow));
	if (!hooks || (ft->set->target->packets->flow && !pt->flow)) {
		free(h);
		point_changed(pt);
		return -ENOMEM;
	}
	h->fault = ft;
	h->point = pt;
	h->at = at;
	h->timer.fn = hook_on_timer;
	list_init(&h->held);
	list_add(&ft->hooks, &h->link);
	pt->hook[pt->n++] = h;
	point_changed(pt);
	return 0;
}

void fault_detach(struct fault *ft)
{
	while (!list_empty(&ft->hooks)) {
		struct fault_hook *h = list_first(&ft->hooks, struct fault_hook, link);
		struct fault_point *pt = h->point;
		u32 i = 0;

		while (hook_first(h))
			hook_release_first(h);
		loop_timer_cancel(&h->timer);
		while (pt->hook[i] != h)
			i++;
		pt->n--;
		memmove(&pt->hook[i], &pt->hook[i + 1], (pt->n - i) * sizeof(struct fault_hook *));
		point_changed(pt);
		list_del(&h->link);
		free(h);
	}
}

void fault_lose_held(struct fault_point *pt)
{
	u32 i;

	for (i = 0; i < pt->n; i++) {
		struct fault_hook *h = pt->hook[i];

		while (hook_first(h))
			fault_discard(h, hook_take_first(h));
		h->busy_until = 0;
		loop_timer_cancel(&h->timer);
	}
}

static void flow_fill(struct fault_flow *f, const struct fault_point *pt, const void *packet)
{
	u32 i;

	f->valid = true;
	f->many = false;
	f->n = 0;
	for (i = 0; i < pt->n && !f->many; i++) {
		const struct fault_hook *h = pt->hook[i];

		if (!h->fault->kind->all_packets && !hook_ops(h)->may_match(h->fault, packet))
			continue;
		if (f->n == CANDIDATES)
			f->many = true;
		else
			f->hook[f->n++] = (u16)i;
	}
}

/* The packet's flow with its candidate hooks: faults that cannot match the flow are skipped. */
static const struct fault_flow *flow_lookup(struct fault_point *pt, const void *packet)
{
	struct fault_flow *f;
	u64 key[2];

	hook_ops(pt->hook[0])->flow(packet, key);
	f = &pt->flow[((key[0] ^ key[1] * 0x9e3779b97f4a7c15ull) * 0x9e3779b97f4a7c15ull) >> 58];
	static_assert(FLOWS == 1 << (64 - 58), "the hash is the index");
	if (likely(f->valid && f->key[0] == key[0] && f->key[1] == key[1]))
		return f;
	f->key[0] = key[0];
	f->key[1] = key[1];
	flow_fill(f, pt, packet);
	return f;
}

/*
 * Runs a hook, unless the packet has passed it: its fault is not one after @after. False: the fault has dropped or held
 * the packet. Triggers a state fault.
 */
static bool hook_run(struct fault_hook *h, void *packet, u32 after)
{
	struct fault *ft = h->fault;

	if (ft->number <= after)
		return true;
	if (ft->kind->packet)
		return ft->kind->packet(h, packet) == FAULT_PASS;
	if (hook_ops(h)->match(ft, packet))
		fault_match(ft);
	return true;
}

bool fault_pass(struct fault_point *pt, void *packet, u32 after)
{
	const struct fault_flow *f = pt->n && pt->flow ? flow_lookup(pt, packet) : NULL;
	u32 i;

	if (!f || f->many) {
		for (i = 0; i < pt->n; i++)
			if (!hook_run(pt->hook[i], packet, after))
				return false;
		return true;
	}
	for (i = 0; i < f->n; i++)
		if (!hook_run(pt->hook[f->hook[i]], packet, after))
			return false;
	return true;
}

/* The kinds */

bool fault_hit(struct fault_hook *h, const void *packet)
{
	struct fault *ft = h->fault;

	if (!hook_ops(h)->match(ft, packet) || !pick_next(&ft->pick))
		return false;
	if (hook_ops(h)->hit)
		hook_ops(h)->hit(h);
	if (ft->pick.hits <= HITS_NOTIFIED_MAX && ft->set->notify)
		ft->set->notify(ft->set->notify_ctx, ft, "fired");
	return true;
}

enum fault_verdict fault_drop(struct fault_hook *h, void *packet)
{
	return fault_hit(h, packet) ? fault_discard(h, packet) : FAULT_PASS;
}

enum fault_verdict fault_duplicate(struct fault_hook *h, void *packet)
{
	u32 copies = h->fault->copies ? h->fault->copies : 1;
	void *copy;

	if (!fault_hit(h, packet))
		return FAULT_PASS;
	while (copies-- && (copy = hook_ops(h)->clone(h, packet)))
		hook_forward(h, copy);
	return FAULT_PASS;
}

u64 fault_delay_time(struct fault *ft)
{
	return ft->time + (ft->jitter ? rng_next(&ft->rng) % ft->jitter : 0);
}

/* Delayed packets keep their order. */
enum fault_verdict fault_delay(struct fault_hook *h, void *packet)
{
	struct fault *ft = h->fault;

	if (!fault_hit(h, packet))
		return FAULT_PASS;
	h->busy_until = max(h->busy_until, fault_now(h) + fault_delay_time(ft));
	return fault_hold(h, packet, h->busy_until);
}

/* Holds a packet until depth= others have passed; the timer releases the remaining ones. */
enum fault_verdict fault_reorder(struct fault_hook *h, void *packet)
{
	bool queues = hook_ops(h)->queues;

	if (fault_hit(h, packet))
		return fault_hold(h, packet, fault_now(h) + (h->fault->time ? h->fault->time : REORDER_TIME));
	h->passed++;
	if (!hook_first(h) || hook_first(h)->after > h->passed)
		return FAULT_PASS;
	if (!queues)
		hook_forward(h, packet);
	while (hook_first(h) && hook_first(h)->after <= h->passed)
		hook_release_first(h);
	return queues ? FAULT_PASS : FAULT_TAKEN;
}

/* Flips one bit. */
enum fault_verdict fault_corrupt(struct fault_hook *h, void *packet)
{
	struct fault *ft = h->fault;
	u32 from = 0, len = 0, at;
	u8 *bytes;
	u64 n;

	if (!fault_hit(h, packet))
		return FAULT_PASS;
	bytes = hook_ops(h)->bytes(h, packet, &from, &len);
	if (bytes) {
		n = rng_next(&ft->rng);
		at = fault_given(ft, FAULT_OFFSET) ? ft->offset : from + (u32)(n >> 8) % max(len - from, 1u);
		if (at < len)
			bytes[at] ^= (u8)(1 << (n & 7));
	}
	return hook_ops(h)->corrupted(h, packet);
}

enum fault_verdict fault_rate(struct fault_hook *h, void *packet)
{
	u64 bits = hook_ops(h)->size(packet) * 8ull;

	if (!fault_hit(h, packet))
		return FAULT_PASS;
	h->busy_until = max(h->busy_until, fault_now(h)) + bits * NSEC_PER_SEC / h->fault->rate;
	return fault_hold(h, packet, h->busy_until);
}

/* Holds the first hit and all later matching packets. */
enum fault_verdict fault_stall(struct fault_hook *h, void *packet)
{
	struct fault *ft = h->fault;

	if (h->nheld ? !hook_ops(h)->match(ft, packet) : !fault_hit(h, packet))
		return FAULT_PASS;
	if (!h->nheld)
		h->busy_until = ft->lasts ? fault_now(h) + ft->lasts : FAULT_NEVER;
	return fault_hold(h, packet, h->busy_until);
}

int fault_check_delay(struct fault *ft, char *err, size_t err_len)
{
	if (!ft->time && !ft->jitter)
		return spec_refuse(err, err_len, "delay: it needs time=, jitter= or both");
	return 0;
}

int fault_check_corrupt(struct fault *ft, char *err, size_t err_len)
{
	if (ft->silent && ft->what >= FAULT_ICRC)
		return spec_refuse(err, err_len, "silent: a damaged CRC is always detected: the receiver checks it");
	return 0;
}

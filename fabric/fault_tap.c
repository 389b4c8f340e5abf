// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where faults look at packets: taps at ports, in the order in which their faults were armed. */
#include <errno.h>
#include <stdlib.h>

#include "fabric/tap.h"

static void taps_free(struct fabric_port *in)
{
	free(in->taps);
	in->taps = NULL;
}

static int tap_add(struct fabric_fault *ft, struct fabric_port *in)
{
	u32 n = in->taps ? in->taps->n : 0;
	struct fabric_taps *ts = realloc(in->taps, sizeof(*ts) + (n + 1) * sizeof(struct fabric_tap *));
	struct fabric_tap *t;

	if (!ts)
		return -ENOMEM;
	ts->n = n;
	memset(ts->flow, 0, sizeof(ts->flow));
	in->taps = ts;
	t = calloc(1, sizeof(*t));
	if (!t) {
		if (!n)
			taps_free(in);
		return -ENOMEM;
	}
	t->fault = ft;
	t->in = in;
	t->timer.fn = fault_tap_timer;
	list_init(&t->held);
	list_add(&ft->taps, &t->link);
	ts->tap[ts->n++] = t;
	return 0;
}

static void tap_del(struct fabric_tap *t)
{
	struct fabric_taps *ts = t->in->taps;
	u32 i;

	fault_tap_release(t);
	for (i = 0; ts->tap[i] != t; i++)
		;
	ts->n--;
	memmove(&ts->tap[i], &ts->tap[i + 1], (ts->n - i) * sizeof(struct fabric_tap *));
	memset(ts->flow, 0, sizeof(ts->flow));
	if (!ts->n)
		taps_free(t->in);
	list_del(&t->link);
	free(t);
}

void fault_taps_detach(struct fabric_fault *ft)
{
	while (!list_empty(&ft->taps))
		tap_del(list_first(&ft->taps, struct fabric_tap, link));
}

/* One tap at the end of each direction; of a cable between two of the place's own ports each end has its own. */
static int attach_port(struct fabric_fault *ft, struct fabric_port *p)
{
	bool inner = !ft->node || (!ft->port && p->peer && p->peer->node == ft->node);
	int err = 0;

	if (!p->peer)
		return 0;
	if (ft->s.dir != PICK_OUT || inner)
		err = tap_add(ft, p);
	if (!err && ft->s.dir != PICK_IN && !inner)
		err = tap_add(ft, p->peer);
	return err;
}

int fault_taps_attach(struct fabric_fault *ft)
{
	u32 first = ft->node ? ft->node->index : 0, last = ft->node ? first : ft->f->nnodes - 1, i, k;
	int err = 0;

	if (ft->port)
		return attach_port(ft, ft->port);
	for (i = first; i <= last && !err; i++)
		for (k = 1; k <= ft->f->nodes[i].nports && !err; k++)
			err = attach_port(ft, &ft->f->nodes[i].ports[k]);
	return err;
}

void fault_taps_rewire(struct fabric *f)
{
	struct fabric_fault *ft;

	list_for_each (ft, &f->faults, link)
		if (!list_empty(&ft->taps)) {
			fault_taps_detach(ft);
			fault_taps_attach(ft);
		}
}

static void flow_learn(struct fault_flow *f, const struct fabric_taps *ts, const struct wire_packet *p)
{
	u32 i;

	f->valid = true;
	f->many = false;
	f->n = 0;
	for (i = 0; i < ts->n && !f->many; i++) {
		const struct fabric_fault *ft = ts->tap[i]->fault;

		if (!ft->action->all_packets && !wire_match_flow(&ft->s.match, p))
			continue;
		if (f->n == FAULT_CANDIDATES)
			f->many = true;
		else
			f->tap[f->n++] = (u16)i;
	}
}

/* What is known of the packet's flow; a fault that does not concern it costs its packets nothing. */
static const struct fault_flow *flow_of(struct fabric_taps *ts, const struct wire_packet *p)
{
	const struct wire_lrh *lrh = fabric_lrh(p);
	const struct wire_bth *bth = fabric_bth(p);
	u64 a = (u64)wire_bth_qpn(bth) << 40 | (u64)wire_lrh_slid(lrh) << 24 | (u64)wire_lrh_dlid(lrh) << 8 |
		bth->opcode;
	u64 b = (u64)p->len << 16 | (u64)wire_lrh_sl(lrh) << 8 | p->vl;
	struct fault_flow *f = &ts->flow[((a ^ b * 0x9e3779b97f4a7c15ull) * 0x9e3779b97f4a7c15ull) >> 58];

	static_assert(FAULT_FLOWS == 1 << (64 - 58), "the hash gives the place");
	if (likely(f->valid && f->key[0] == a && f->key[1] == b))
		return f;
	f->key[0] = a;
	f->key[1] = b;
	flow_learn(f, ts, p);
	return f;
}

/* False: it has the packet. */
static bool look(struct fabric_tap *t, struct wire_packet *p, u32 next)
{
	struct fabric_fault *ft = t->fault;

	if (ft->action->packet)
		return ft->action->packet(t, p, next) == FAULT_PASS;
	if (wire_match_test(&ft->s.match, p) && pick_next(&ft->s.pick))
		fault_state_trigger(ft);
	return true;
}

bool fabric_fault_pass(struct fabric_port *in, struct wire_packet *p, u32 first)
{
	struct fabric_taps *ts = in->taps;
	const struct fault_flow *f = flow_of(ts, p);
	u32 i;

	if (f->many) {
		for (i = first; i < ts->n; i++)
			if (!look(ts->tap[i], p, i + 1))
				return false;
		return true;
	}
	for (i = 0; i < f->n; i++)
		if (f->tap[i] >= first && !look(ts->tap[f->tap[i]], p, f->tap[i] + 1u))
			return false;
	return true;
}

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

/* What no tap wants to see passes after one look. */
static void sum_opcodes(struct fabric_taps *ts)
{
	u32 i, k;

	memset(ts->opcodes, 0, sizeof(ts->opcodes));
	for (i = 0; i < ts->n; i++) {
		const struct fabric_fault *ft = ts->tap[i]->fault;
		bool every = !(ft->s.match.given & BIT_ULL(FAULT_OPCODE)) || ft->action->all_packets;

		for (k = 0; k < ARRAY_SIZE(ts->opcodes); k++)
			ts->opcodes[k] |= every ? ~0ull : ft->s.match.opcodes[k];
	}
}

static int tap_add(struct fabric_fault *ft, struct fabric_port *in)
{
	u32 n = in->taps ? in->taps->n : 0;
	struct fabric_taps *ts = realloc(in->taps, sizeof(*ts) + (n + 1) * sizeof(struct fabric_tap *));
	struct fabric_tap *t;

	if (!ts)
		return -ENOMEM;
	ts->n = n;
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
	sum_opcodes(ts);
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
	if (ts->n)
		sum_opcodes(ts);
	else
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
	if (ft->s.dir != FAULT_OUT || inner)
		err = tap_add(ft, p);
	if (!err && ft->s.dir != FAULT_IN && !inner)
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

bool fabric_fault_pass(struct fabric_port *in, struct wire_packet *p, u32 first)
{
	const struct fabric_taps *ts = in->taps;
	u8 op = fabric_bth(p)->opcode;
	u32 i;

	if (!(ts->opcodes[op / 64] & BIT_ULL(op % 64)))
		return true;
	for (i = first; i < ts->n; i++) {
		struct fabric_tap *t = ts->tap[i];

		if (t->fault->action->packet) {
			if (t->fault->action->packet(t, p, i + 1) == FAULT_TAKEN)
				return false;
		} else if (fault_match_test(&t->fault->s.match, p) && pick_next(&t->fault->s.pick)) {
			fault_state_trigger(t->fault);
		}
	}
	return true;
}

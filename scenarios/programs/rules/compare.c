// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Compares the results of a rule with what it expects: completions, states, events, counters and memory. */
#include "rules.h"

#include <string.h>

static const char *const side_names[] = { "requester", "responder" };

/* Expected memory of each side. */
static uint8_t image[2][MEMORY];

static void compare_list(struct scene *s, const char *side, const unsigned char *want, const struct ibv_wc *wc,
			 unsigned got)
{
	unsigned i;

	for (i = 0; i < LISTED && want[i]; i++)
		if (i >= got)
			wrong(s, "%s completion %u: expected %s, got none", side, i, ibv_wc_status_str(want[i] - 1));
		else if (wc[i].status != want[i] - 1u)
			wrong(s, "%s completion %u: expected %s, got %s", side, i, ibv_wc_status_str(want[i] - 1),
			      ibv_wc_status_str(wc[i].status));
	for (; i < got; i++)
		wrong(s, "%s completion %u: expected none, got %s of request %llu", side, i,
		      ibv_wc_status_str(wc[i].status), (unsigned long long)wc[i].wr_id);
}

void compare_states(struct scene *s)
{
	int i;

	for (i = 0; i < 2; i++) {
		unsigned want = s->rule->state[i];
		unsigned upto = s->rule->knob[i].upto;

		if (want == ANY_STATE || want == GONE || !s->end[i].qp)
			continue;
		want = want ? want - 1 : upto ? upto - 1 : IBV_QPS_RTS;
		if (!wait_state(s->end[i].qp, want))
			wrong(s, "state of the %s: expected %s, got %s", side_names[i], state_name(want),
			      state_name(state_of(s->end[i].qp)));
	}
}

static void compare_events(struct scene *s)
{
	unsigned i, j;

	for (i = 0; i < 2; i++) {
		const struct end *e = &s->end[i];
		unsigned want = s->rule->event[i], may = s->rule->may_event[i], n = 0;

		for (j = 0; j < e->events; j++) {
			if (want && e->ev[j].event_type == want - 1)
				n++;
			else if (!may || e->ev[j].event_type != may - 1)
				wrong(s, "event at the %s: expected %s, got %s", side_names[i],
				      want ? ibv_event_type_str(want - 1) : "none",
				      ibv_event_type_str(e->ev[j].event_type));
		}
		if (want && n != 1)
			wrong(s, "event at the %s: expected %s, got it %u times", side_names[i],
			      ibv_event_type_str(want - 1), n);
	}
}

/* Computes the expected memory of both sides after the request of the rule. */
static void foresee(const struct rule *r)
{
	uint8_t *a = image[REQ] + MARGIN, *b = image[RESP] + MARGIN;
	uint64_t v;

	switch (r->send.op) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		memcpy(b + r->send.off, a + r->send.off, r->send.len);
		break;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		if (r->resp[0] == OK)
			memcpy(b + INBOX + (r->recv.id % 8) * SLOT, a + r->send.off, r->send.len);
		break;
	case IBV_WR_RDMA_READ:
		memcpy(a + INBOX + r->send.off, b + r->send.off, r->send.len);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		memcpy(a + INBOX + r->send.off, b + r->send.off, 8);
		memcpy(&v, b + r->send.off, 8);
		v += r->send.add;
		memcpy(b + r->send.off, &v, 8);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		memcpy(a + INBOX + r->send.off, b + r->send.off, 8);
		memcpy(&v, b + r->send.off, 8);
		if (v == r->send.add)
			memcpy(b + r->send.off, &r->send.swap, 8);
		break;
	default:
		break;
	}
}

static void compare_memory(struct scene *s)
{
	unsigned i, j;

	if (s->rule->action || s->rule->data_any || s->rule->type == IBV_QPT_UD)
		return;
	if (s->rule->req[0] == OK && !s->rule->err)
		foresee(s->rule);
	for (i = 0; i < 2; i++)
		for (j = 0; j < MEMORY; j++)
			if (s->end[i].mem[j] != image[i][j]) {
				wrong(s, "memory of the %s differs at byte %d of the region", side_names[i],
				      (int)j - (int)MARGIN);
				break;
			}
}

static void compare_counters(struct scene *s, const unsigned long *before)
{
	unsigned i;

	for (i = 0; i < COUNTED && s->rule->counted[i].name; i++) {
		const struct counted *c = &s->rule->counted[i];
		unsigned long is = counter(s, c->side, c->name) - before[i];

		if (is != c->delta)
			wrong(s, "counter %s: expected %u more, got %lu", c->name, c->delta, is);
	}
}

void compare_begin(struct scene *s)
{
	memcpy(image[REQ], s->end[REQ].mem, MEMORY);
	memcpy(image[RESP], s->end[RESP].mem, MEMORY);
}

void compare(struct scene *s, const unsigned long *before)
{
	compare_list(s, "send", s->rule->req, s->end[REQ].swc, s->end[REQ].got_send);
	compare_list(s, "receive", s->rule->resp, s->end[RESP].rwc, s->end[RESP].got_recv);
	compare_events(s);
	compare_counters(s, before);
	compare_memory(s);
}

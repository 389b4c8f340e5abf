// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SMP transactions: send queue, limit of outstanding SMPs, and phases that end after all responses. */
#include <stdlib.h>

#include "sm/sm_internal.h"

u16 sm_smp_status(const u8 *mad)
{
	u16 status = wire_get(mad, MAD_STATUS);

	return wire_get(mad, MAD_CLASS) == MAD_CLASS_SUBN_DIRECTED ? status & 0x7fff : status;
}

struct sm_smp *sm_smp_new(struct sm *sm, struct sm_node *node, u16 attr, u32 mod,
			  void (*fn)(struct sm *sm, struct sm_smp *smp, const u8 *mad))
{
	struct sm_smp *smp;

	if (list_empty(&sm->smp_free)) {
		smp = malloc(sizeof(*smp));
		if (!smp) {
			sm->errors++;
			return NULL;
		}
	} else {
		smp = list_first(&sm->smp_free, struct sm_smp, link);
		list_del(&smp->link);
	}
	memset(smp, 0, sizeof(*smp));
	list_init(&smp->link);
	smp->node = node;
	smp->method = MAD_METHOD_GET;
	smp->attr = attr;
	smp->mod = mod;
	smp->fn = fn;
	return smp;
}

static void smp_recycle(struct sm *sm, struct sm_smp *smp)
{
	list_del(&smp->link);
	list_add(&sm->smp_free, &smp->link);
}

/* PortInfo of a CA port is set through that port (14.2.5.6); the node may have been discovered through another one. */
static u8 path_to(const struct sm *sm, const struct sm_smp *smp, u8 *path)
{
	const struct sm_port *p = smp->port;
	bool by_port = smp->method == MAD_METHOD_SET && p && p != sm->self && !sm_node_is_switch(p->node) && p->peer &&
		       p->peer->node->hops < SMP_HOPS_MAX;
	const struct sm_node *n = by_port ? p->peer->node : smp->node;
	u8 hops = n ? n->hops : 0, last = by_port ? p->peer->num : smp->hop;

	if (n)
		memcpy(path, n->path, hops + 1u);
	if (last)
		path[++hops] = last;
	return hops;
}

static int smp_transmit(struct sm *sm, struct sm_smp *smp)
{
	struct mad_addr to = { .lid = smp->lid ? smp->lid : WIRE_LID_PERMISSIVE };
	u8 mad[MAD_SIZE] = { 0 };

	wire_set(mad, MAD_BASE_VERSION, MAD_BASE_VERSION_1);
	wire_set(mad, MAD_CLASS, smp->lid ? MAD_CLASS_SUBN_LID : MAD_CLASS_SUBN_DIRECTED);
	wire_set(mad, MAD_CLASS_VERSION, MAD_CLASS_VERSION_SUBN);
	wire_set(mad, MAD_METHOD, smp->method);
	wire_set(mad, MAD_TID, ++sm->tid & 0xffffffff);
	wire_set(mad, MAD_ATTR_ID, smp->attr);
	wire_set(mad, MAD_ATTR_MOD, smp->mod);
	wire_set(mad, SMP_MKEY, sm->cfg.mkey);
	if (smp->method == MAD_METHOD_SET)
		memcpy(mad + SMP_DATA, smp->data, SMP_DATA_SIZE);
	if (!smp->lid) {
		wire_set(mad, SMP_DR_SLID, WIRE_LID_PERMISSIVE);
		wire_set(mad, SMP_DR_DLID, WIRE_LID_PERMISSIVE);
		wire_set(mad, SMP_HOP_CNT, path_to(sm, smp, mad + SMP_INITIAL_PATH));
	}
	sm->st.smps++;
	return sm->ops->send(sm->transport, mad, MAD_SIZE, &to, sm->cfg.timeout_ms, sm->cfg.retries, smp);
}

/* Lets the phase queue more SMPs; false: there are none to send. */
static bool smp_refill(struct sm *sm)
{
	while (list_empty(&sm->smp_queue)) {
		if (!sm->next)
			return false;
		if (!sm->next(sm))
			sm->next = NULL;
	}
	return true;
}

static void fill_window(struct sm *sm)
{
	struct sm_smp *smp;

	while (sm->outstanding < sm->cfg.window && smp_refill(sm)) {
		smp = list_first(&sm->smp_queue, struct sm_smp, link);
		list_del(&smp->link);
		list_add(&sm->smp_sent, &smp->link);
		sm->outstanding++;
		if (smp_transmit(sm, smp) < 0) {
			sm->outstanding--;
			smp->fn(sm, smp, NULL);
			smp_recycle(sm, smp);
		}
	}
}

/* Sends SMPs up to the limit of outstanding ones; ends the phase after the last response. */
static void smp_pump(struct loop_task *t, struct now now)
{
	struct sm *sm = container_of(t, struct sm, pump);
	void (*done)(struct sm * sm);

	if (!sm->running)
		return;
	fill_window(sm);
	if (sm->outstanding || !list_empty(&sm->smp_queue) || sm->next)
		return;
	done = sm->phase_done;
	sm->phase_done = NULL;
	if (done)
		done(sm);
}

void sm_smp_queue(struct sm *sm, struct sm_smp *smp)
{
	list_add(&sm->smp_queue, &smp->link);
	loop_task_queue(sm->loop, &sm->pump);
}

void sm_smp_rewind(struct sm *sm)
{
	sm->it_node = list_first(&sm->nodes, struct sm_node, link);
	sm->it_block = 0;
}

bool sm_smp_each_node(struct sm *sm, void (*fn)(struct sm *sm, struct sm_port *p))
{
	struct sm_node *n = sm->it_node;
	u32 i;

	if (&n->link == &sm->nodes)
		return false;
	for (i = 0; i <= n->nports; i++)
		fn(sm, &n->ports[i]);
	sm->it_node = list_entry(n->link.next, struct sm_node, link);
	return true;
}

void sm_smp_phase(struct sm *sm, bool (*next)(struct sm *sm), void (*done)(struct sm *sm))
{
	sm_smp_rewind(sm);
	sm->next = next;
	sm->phase_done = done;
	loop_task_queue(sm->loop, &sm->pump);
}

static bool visit_next(struct sm *sm)
{
	return sm_smp_each_node(sm, sm->visit);
}

void sm_smp_visit(struct sm *sm, void (*fn)(struct sm *sm, struct sm_port *p), void (*done)(struct sm *sm))
{
	sm->visit = fn;
	sm_smp_phase(sm, visit_next, done);
}

void sm_smp_answer(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	sm->outstanding--;
	smp->fn(sm, smp, mad);
	smp_recycle(sm, smp);
	loop_task_queue(sm->loop, &sm->pump);
}

void sm_smp_send_plain(struct sm *sm, const u8 *mad, const struct mad_addr *to)
{
	/* No response is expected; a failed send counts as a lost packet. */
	(void)sm->ops->send(sm->transport, mad, MAD_SIZE, to, 0, 0, NULL);
}

static void smp_ignore(struct sm *sm, struct sm_smp *smp, const u8 *mad) {}

/* Outstanding SMPs complete without a callback. */
void sm_smp_forget(struct sm *sm)
{
	struct sm_smp *smp, *tmp;

	list_for_each (smp, &sm->smp_sent, link)
		smp->fn = smp_ignore;
	list_for_each_safe (smp, tmp, &sm->smp_queue, link)
		smp_recycle(sm, smp);
	sm->next = NULL;
	sm->phase_done = NULL;
}

void sm_smp_init(struct sm *sm)
{
	list_init(&sm->smp_queue);
	list_init(&sm->smp_sent);
	list_init(&sm->smp_free);
	loop_task_init(&sm->pump, smp_pump);
}

static void free_list(struct list *l)
{
	struct sm_smp *smp, *tmp;

	list_for_each_safe (smp, tmp, l, link) {
		list_del(&smp->link);
		free(smp);
	}
}

void sm_smp_fini(struct sm *sm)
{
	free_list(&sm->smp_queue);
	free_list(&sm->smp_sent);
	free_list(&sm->smp_free);
	sm->outstanding = 0;
	sm->next = NULL;
	sm->phase_done = NULL;
	loop_task_cancel(&sm->pump);
}

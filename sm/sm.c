// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Subnet manager: creation, destruction, and dispatch of received MADs (IBTA 14). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sm/sm_internal.h"

static void sm_defaults(struct sm_config *c)
{
	c->name = c->name ? c->name : "sm";
	c->sm_key = c->sm_key ? c->sm_key : 1;
	c->sa_key = c->sa_key ? c->sa_key : 1;
	c->subnet_prefix = c->subnet_prefix ? c->subnet_prefix : WIRE_GID_PREFIX_DEFAULT;
	c->routing = c->routing ? c->routing : "auto";
	c->sweep_ms = c->sweep_ms ? c->sweep_ms : 10000;
	c->poll_ms = c->poll_ms ? c->poll_ms : 1000;
	c->timeout_ms = c->timeout_ms ? c->timeout_ms : 200;
	c->retries = c->retries ? c->retries : 3;
	c->window = c->window ? c->window : 256;
	c->packet_life = c->packet_life ? c->packet_life : 18;
}

/* Replaces the name of the routing engine by a static string. */
static bool sm_valid(struct sm_config *c, char *err, size_t err_len)
{
	static const char *const engines[] = { "auto", "minhop", "updn" };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(engines) && strcmp(c->routing, engines[i]); i++)
		;
	if (i < ARRAY_SIZE(engines))
		c->routing = engines[i];
	if (i == ARRAY_SIZE(engines))
		snprintf(err, err_len, "routing is auto, minhop or updn, not '%s'", c->routing);
	else if (c->priority > 15)
		snprintf(err, err_len, "the priority is 0 to 15, not %u", c->priority);
	else if (c->lmc > 7)
		snprintf(err, err_len, "the LMC is 0 to 7, not %u", c->lmc);
	else if (c->packet_life > 31)
		snprintf(err, err_len, "the code of a packet's life time is 1 to 31, not %u", c->packet_life);
	else
		return true;
	return false;
}

struct sm *sm_create(struct loop *loop, const struct sm_transport_ops *ops, void *transport,
		     const struct sm_config *config, char *err, size_t err_len)
{
	struct sm_config c = *config;
	struct sm *sm;

	sm_defaults(&c);
	if (!sm_valid(&c, err, err_len))
		return NULL;
	sm = calloc(1, sizeof(*sm));
	if (!sm) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	sm->parts = sm_partitions_parse(c.partitions, c.partitions_file, err, err_len);
	if (sm->parts && c.lfts)
		sm->lfts = sm_lfts_parse(c.lfts, c.lfts_file, err, err_len);
	if (!sm->parts || (c.lfts && !sm->lfts)) {
		sm_partitions_destroy(sm->parts);
		free(sm);
		return NULL;
	}
	snprintf(sm->name, sizeof(sm->name), "%s", c.name);
	c.name = sm->name;
	c.partitions = c.partitions_file = c.lfts = c.lfts_file = NULL;
	sm->cfg = c;
	sm->loop = loop;
	sm->ops = ops;
	sm->transport = transport;
	sm->rng.state = c.seed;
	sm->st.routing = "none";
	list_init(&sm->nodes);
	list_init(&sm->groups);
	sm_smp_init(sm);
	sm_sweep_init(sm);
	sm_sminfo_init(sm);
	sm->cfg.sa->init(sm);
	return sm;
}

void sm_start(struct sm *sm)
{
	if (sm->running)
		return;
	sm->running = true;
	sm->ops->set_is_sm(sm->transport, true);
	sm_set_state(sm, SM_STATE_DISCOVERING);
	sm_sweep_request(sm);
}

void sm_stop(struct sm *sm)
{
	if (!sm->running)
		return;
	sm->running = false;
	sm->ops->set_is_sm(sm->transport, false);
	sm_sweep_fini(sm);
	sm_smp_forget(sm);
	sm_set_state(sm, SM_STATE_NOT_ACTIVE);
	sm_sminfo_stop(sm);
}

void sm_destroy(struct sm *sm)
{
	if (!sm)
		return;
	sm->cfg.event = NULL;
	sm_stop(sm);
	sm_smp_fini(sm);
	sm->cfg.sa->fini(sm);
	sm_mcast_fini(sm);
	sm_graph_fini(&sm->graph);
	sm_subnet_fini(sm);
	sm_partitions_destroy(sm->parts);
	sm_partitions_destroy(sm->next_parts);
	sm_lfts_destroy(sm->lfts);
	free(sm);
}

int sm_set_partitions(struct sm *sm, const char *text, const char *file, char *err, size_t err_len)
{
	struct sm_partitions *ps = sm_partitions_parse(text, file, err, err_len);

	if (!ps)
		return -EINVAL;
	sm_partitions_destroy(sm->next_parts);
	sm->next_parts = ps;
	sm_sweep(sm);
	return 0;
}

void sm_sweep(struct sm *sm)
{
	if (sm->running)
		sm_sweep_request(sm);
}

void sm_link_trained(struct sm *sm)
{
	if (sm_is_master(sm))
		sm_sweep_for_trap(sm);
}

void sm_status(const struct sm *sm, struct sm_status *st)
{
	*st = sm->st;
	st->state = sm->state;
	st->priority = sm->cfg.priority;
	st->guid = sm->ops->port_guid(sm->transport);
	st->lid = sm->self ? sm->self->lid : 0;
	st->master_lid = sm->state == SM_STATE_MASTER ? st->lid : sm->master_lid;
	st->subscribers = sm->nsubscribers;
	st->services = sm->nservices;
	st->partitions = sm->parts->n;
	st->sweeping |= sm->want_heavy && (sm->state == SM_STATE_MASTER || sm->state == SM_STATE_DISCOVERING);
}

/* ---- received MADs ---- */

static void receive_smp(struct sm *sm, const u8 *mad, const struct mad_addr *from)
{
	u8 method = wire_get(mad, MAD_METHOD);
	u16 attr = wire_get(mad, MAD_ATTR_ID);

	if (wire_get(mad, MAD_CLASS_VERSION) != MAD_CLASS_VERSION_SUBN)
		return;
	if (attr == SMP_ATTR_SM_INFO && (method == MAD_METHOD_GET || method == MAD_METHOD_SET))
		sm_sminfo_receive(sm, mad, from);
	else if (attr == SMP_ATTR_NOTICE && method == MAD_METHOD_TRAP && wire_get(mad, MAD_CLASS) == MAD_CLASS_SUBN_LID)
		sm_trap_receive(sm, mad, from);
}

void sm_receive(struct sm *sm, const u8 *data, u32 len, const struct mad_addr *from, void *cookie)
{
	if (len < MAD_HDR_SIZE)
		return;
	if (wire_mad_is_smp_class(wire_mad_get_class(data))) {
		if (len != MAD_SIZE)
			return;
		if (cookie)
			sm_smp_answer(sm, cookie, data);
		else if (sm->running && !wire_mad_is_response(wire_mad_get_method(data)))
			receive_smp(sm, data, from);
	} else if (wire_mad_get_class(data) == MAD_CLASS_SUBN_ADM) {
		if (cookie)
			sm->cfg.sa->report_sent(sm, cookie);
		else if (sm->running && !wire_mad_is_response(wire_mad_get_method(data)))
			sm->cfg.sa->receive(sm, data, len, from);
	}
}

void sm_sent(struct sm *sm, int status, void *cookie)
{
	if (!cookie)
		return;
	if (!sm->cfg.sa->report_sent(sm, cookie))
		sm_smp_answer(sm, cookie, NULL);
}

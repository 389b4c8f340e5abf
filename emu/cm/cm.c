// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Communication manager: ports, communication IDs and listeners. IBTA 12. */
#include <errno.h>
#include <stdlib.h>

#include "emu/cm/cm_internal.h"
#include "emu/lib/log.h"

#define IDS_MAX (1u << 20)

const char *cm_state_name(enum cm_state s)
{
#define NAME(name) #name,
	static const char *const names[] = { CM_STATES(NAME) };
#undef NAME
	static_assert(ARRAY_SIZE(names) == CM_ST_NUM, "one name for each state");

	return names[s];
}

const char *cm_counter_name(enum cm_counter c)
{
	static const char *const names[] = { CM_COUNTERS(COUNTER_NAME) };

	return names[c];
}

u64 cm_counter(const struct cm *cm, enum cm_counter c)
{
	return cm->counter[c];
}

u32 cm_psn(struct cm *cm)
{
	return (u32)rng_next(&cm->rng) & WIRE_PSN_MASK;
}

struct cm *cm_create(struct loop *loop, u64 ca_guid, u8 ack_delay, u64 seed)
{
	struct cm *cm = calloc(1, sizeof(*cm));
	u32 i;

	if (!cm || cm_peers_init(cm)) {
		free(cm);
		return NULL;
	}
	cm->loop = loop;
	cm->ca_guid = ca_guid;
	cm->ack_delay = ack_delay;
	cm->rng.state = seed;
	cm->id_salt = (u32)rng_next(&cm->rng);
	table_init(&cm->ids, 1, IDS_MAX);
	list_init(&cm->ranges);
	for (i = 0; i < CM_SERVICES; i++)
		list_init(&cm->services[i]);
	return cm;
}

void cm_destroy(struct cm *cm)
{
	struct cm_id *id;
	u32 i;

	if (!cm)
		return;
	table_for_each (&cm->ids, i, id)
		cm_id_free(id);
	table_fini(&cm->ids);
	free(cm->peers);
	for (i = 0; i < cm->nports; i++)
		mad_agent_unregister(cm->port[i].agent);
	free(cm);
}

static void port_receive(void *ctx, const u8 *data, u32 len, const struct mad_addr *from, void *cookie)
{
	struct cm_port *p = ctx;

	cm_count(p->cm, RECEIVED);
	if (len < MAD_SIZE)
		cm_count(p->cm, MALFORMED);
	else
		cm_receive(p, data, from);
}

int cm_port_add(struct cm *cm, u8 num, struct mad_port *mp)
{
	struct cm_port *p = &cm->port[cm->nports];
	struct mad_agent_reg reg = {
		.qpn = MAD_QPN_GSI,
		.mgmt_class = MAD_CLASS_CM,
		.class_version = MAD_CLASS_VERSION_CM,
		.methods = { 1ull << MAD_METHOD_SEND },
		.ctx = p,
		.recv = port_receive,
	};
	int err;

	if (cm->nports == CM_PORTS)
		return -ENOMEM;
	*p = (struct cm_port){ .cm = cm, .num = num, .mp = mp };
	err = mad_agent_register(mp, &reg, &p->agent);
	if (!err)
		cm->nports++;
	return err;
}

/* ---- conversations ---- */

/* The random part prevents a restarted host from reusing IDs that its peers still have. */
struct cm_id *cm_id_find(const struct cm *cm, u32 local_id)
{
	return table_get(&cm->ids, local_id ^ cm->id_salt);
}

static void cm_on_timer(struct loop_timer *t, struct now now);

struct cm_id *cm_id_new(struct cm *cm)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->cm = cm;
	id->timer.fn = cm_on_timer;
	list_init(&id->by_id);
	list_init(&id->by_qpn);
	if (table_add(&cm->ids, id, &id->slot)) {
		free(id);
		return NULL;
	}
	id->local_id = id->slot ^ cm->id_salt;
	return id;
}

void cm_id_free(struct cm_id *id)
{
	loop_timer_cancel(&id->timer);
	cm_peer_forget(id);
	table_remove(&id->cm->ids, id->slot);
	free(id);
}

struct cm_id *cm_id_create(struct cm *cm, cm_event_fn *fn, void *ctx)
{
	struct cm_id *id = cm_id_new(cm);

	if (id)
		cm_id_own(id, fn, ctx);
	return id;
}

void cm_id_own(struct cm_id *id, cm_event_fn *fn, void *ctx)
{
	id->fn = fn;
	id->ctx = ctx;
}

void cm_id_notify(struct cm_id *id, const struct cm_event *ev)
{
	if (id->fn)
		id->fn(id->ctx, id, ev);
}

void cm_id_enter(struct cm_id *id, enum cm_state state)
{
	log_at(LOG_DEBUG, "cm", "%08x: %s -> %s", id->local_id, cm_state_name(id->state), cm_state_name(state));
	id->state = state;
}

/* 12.9.8.4: twice the packet lifetime and the peer's delay, so that no packet of the connection is in flight. */
void cm_id_timewait(struct cm_id *id)
{
	u64 ns = wire_timeout_ns(id->qp.local_ack_timeout);

	cm_answered(id);
	cm_id_enter(id, CM_ST_TIMEWAIT);
	loop_timer_set(id->cm->loop, &id->timer, loop_now(id->cm->loop).ns + ns);
}

static void cm_on_timer(struct loop_timer *t, struct now now)
{
	struct cm_id *id = container_of(t, struct cm_id, timer);
	bool owned = id->fn;

	if (id->state != CM_ST_TIMEWAIT) {
		cm_timed_out(id);
		return;
	}
	cm_id_enter(id, CM_ST_IDLE);
	cm_peer_forget(id);
	if (owned)
		cm_id_notify(id, &(struct cm_event){ .type = CM_EVENT_TIMEWAIT_EXIT });
	else
		cm_id_free(id);
}

/* ---- listeners ---- */

static struct list *listeners_of(struct cm *cm, u64 service_id)
{
	return &cm->services[(service_id * 0x9e3779b97f4a7c15ull) >> 32 & (CM_SERVICES - 1)];
}

int cm_listen(struct cm *cm, u64 service_id, u64 mask, cm_request_fn *fn, void *ctx, struct cm_listener **listener)
{
	struct cm_listener *l;

	if (service_id & ~mask)
		return -EINVAL;
	l = malloc(sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct cm_listener){ .service_id = service_id, .mask = mask, .fn = fn, .ctx = ctx };
	list_add(~mask ? &cm->ranges : listeners_of(cm, service_id), &l->link);
	*listener = l;
	return 0;
}

void cm_unlisten(struct cm_listener *l)
{
	list_del(&l->link);
	free(l);
}

static int listeners_offer(struct list *listeners, struct cm_id *id, u64 service_id, const struct cm_event *ev)
{
	struct cm_listener *l, *tmp;
	int err;

	list_for_each_safe (l, tmp, listeners, link) {
		if ((service_id & l->mask) != l->service_id)
			continue;
		err = l->fn(l->ctx, id, ev);
		if (err != -ENOENT)
			return err;
	}
	return -ENOENT;
}

int cm_offer(struct cm_id *id, u64 service_id, const struct cm_event *ev)
{
	int err = listeners_offer(listeners_of(id->cm, service_id), id, service_id, ev);

	return err == -ENOENT ? listeners_offer(&id->cm->ranges, id, service_id, ev) : err;
}

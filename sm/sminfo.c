// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which of several subnet managers is master: SMInfo, priorities, polling and handover. IBTA 14.4.1. */
#include <stdlib.h>

#include "sm/internal.h"

#define POLL_MISSES 3

void sm_sminfo_fill(const struct sm *sm, u8 *info)
{
	memset(info, 0, SMINFO_SIZE);
	wire_set(info, SMINFO_GUID, sm->ops->port_guid(sm->transport));
	wire_set(info, SMINFO_SM_KEY, sm->cfg.sm_key);
	wire_set(info, SMINFO_ACT_COUNT, sm->act_count);
	wire_set(info, SMINFO_PRIORITY, sm->cfg.priority);
	wire_set(info, SMINFO_STATE, sm->state);
}

/* Does (priority, GUID) of the other one win? The lower GUID does, where priorities are equal. */
static bool wins(const struct sm *sm, u8 priority, u64 guid)
{
	if (priority != sm->cfg.priority)
		return priority > sm->cfg.priority;
	return guid < sm->ops->port_guid(sm->transport);
}

void sm_set_state(struct sm *sm, u8 state)
{
	if (sm->state == state)
		return;
	sm_log(sm, LOG_INFO, "%s -> %s", wire_sm_state_name(sm->state), wire_sm_state_name(state));
	sm->state = state;
	if (state != SM_STATE_MASTER) {
		loop_timer_cancel(&sm->timer);
		sm->st.subnet_up = false;
	}
	if (state != SM_STATE_STANDBY)
		loop_timer_cancel(&sm->poll);
	if (state == SM_STATE_MASTER) {
		sm->reregister = true;
		sm->master_lid = 0;
		sm_subnet_unknown(sm);
	}
	if (sm->cfg.event)
		sm->cfg.event(sm->cfg.ctx, SM_EVENT_STATE);
}

/* ---- the others ---- */

const struct sm_other *sm_sminfo_other(const struct sm *sm, const struct sm_port *p)
{
	u32 i;

	for (i = 0; i < sm->nothers; i++)
		if (sm->others[i].port == p)
			return &sm->others[i];
	return NULL;
}

static void remember(struct sm *sm, struct sm_port *p, const u8 *info)
{
	struct sm_other *o;

	if (sm->nothers == sm->others_cap) {
		o = realloc(sm->others, (sm->others_cap * 2 + 4) * sizeof(*o));
		if (!o)
			return;
		sm->others = o;
		sm->others_cap = sm->others_cap * 2 + 4;
	}
	o = &sm->others[sm->nothers++];
	o->port = p;
	o->guid = wire_get(info, SMINFO_GUID);
	o->lid = p->lid ? p->lid : (u16)wire_get(p->info, PORTINFO_LID);
	o->priority = wire_get(info, SMINFO_PRIORITY);
	o->state = wire_get(info, SMINFO_STATE);
	o->act_count = wire_get(info, SMINFO_ACT_COUNT);
}

/* One that does not answer has just gone, or comes: traps and sweeps tell. */
static void on_survey(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	u64 key;

	if (!mad || sm_smp_status(mad) || sm->cfg.alone)
		return;
	key = wire_get(mad + SMP_DATA, SMINFO_SM_KEY);
	if (key && key != sm->cfg.sm_key)
		sm_log(sm, LOG_WARN, "the SM at %s has another SM_Key and is ignored", sm_node_name(smp->node));
	else
		remember(sm, smp->port, mad + SMP_DATA);
}

static bool survey_next(struct sm *sm)
{
	struct sm_node *n = sm->it_node;
	struct sm_smp *smp;
	struct sm_port *p;
	u32 i;

	if (&n->link == &sm->nodes)
		return false;
	for (i = 0; i <= n->nports; i++) {
		p = &n->ports[i];
		if (!p->guid || !p->has_info || p == sm->self || !(wire_get(p->info, PORTINFO_CAP_MASK) & PORT_CAP_SM))
			continue;
		smp = sm_smp_new(sm, n, SMP_ATTR_SM_INFO, 0, on_survey);
		if (!smp)
			continue;
		smp->port = p;
		sm_smp_queue(sm, smp);
	}
	sm->it_node = list_entry(n->link.next, struct sm_node, link);
	return true;
}

void sm_sminfo_survey(struct sm *sm, void (*done)(struct sm *sm))
{
	sm->nothers = 0;
	sm->it_node = list_first(&sm->nodes, struct sm_node, link);
	sm_smp_phase(sm, survey_next, done);
}

/* ---- standby: is the master still there? ---- */

static void arm_poll(struct sm *sm)
{
	loop_timer_set(sm->loop, &sm->poll, loop_now(sm->loop).ns + sm->cfg.poll_ms * NSEC_PER_MSEC);
}

static void rediscover(struct sm *sm)
{
	sm_set_state(sm, SM_STATE_DISCOVERING);
	sm_sweep_request(sm);
}

static void on_poll(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	const u8 *info = mad ? mad + SMP_DATA : NULL;

	sm->poll_out = false;
	if (sm->state != SM_STATE_STANDBY)
		return;
	if (!mad || sm_smp_status(mad)) {
		if (++sm->poll_misses >= POLL_MISSES) {
			sm_log(sm, LOG_WARN, "the master at LID %u does not answer", sm->master_lid);
			rediscover(sm);
			return;
		}
	} else if (wire_get(info, SMINFO_GUID) != sm->master_guid ||
		   (wire_get(info, SMINFO_STATE) != SM_STATE_MASTER &&
		    !wins(sm, wire_get(info, SMINFO_PRIORITY), sm->master_guid))) {
		rediscover(sm);
		return;
	} else if (wire_get(info, SMINFO_STATE) != SM_STATE_MASTER && ++sm->poll_misses >= POLL_MISSES) {
		rediscover(sm); /* it should have become master by now */
		return;
	} else if (wire_get(info, SMINFO_STATE) == SM_STATE_MASTER) {
		sm->poll_misses = 0;
	}
	arm_poll(sm);
}

static void poll_timer(struct loop_timer *t, struct now now)
{
	struct sm *sm = container_of(t, struct sm, poll);
	struct sm_port *p = sm_port_by_guid(sm, sm->master_guid);
	struct sm_smp *smp;

	if (sm->state != SM_STATE_STANDBY || sm->poll_out)
		return;
	if (!p && !sm->master_lid) { /* nobody to ask */
		rediscover(sm);
		return;
	}
	smp = sm_smp_new(sm, p ? p->node : NULL, SMP_ATTR_SM_INFO, 0, on_poll);
	if (!smp) {
		arm_poll(sm);
		return;
	}
	smp->lid = sm->master_lid;
	sm->poll_out = true;
	sm_smp_queue(sm, smp);
}

static void stand_by(struct sm *sm, u64 guid, u16 lid)
{
	sm->master_guid = guid;
	sm->master_lid = lid;
	sm->poll_misses = 0;
	sm_set_state(sm, SM_STATE_STANDBY);
	arm_poll(sm);
}

/* ---- handover ---- */

static void on_set(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	if (!mad || sm_smp_status(mad))
		sm_log(sm, LOG_WARN, "SMInfo(%s) was not accepted", wire_sminfo_mod_name(smp->mod));
}

/*
 * The other one has accepted, or not. In 14.4.1 ACKNOWLEDGE ends a master; OpenSM sends none, and stands by again while it
 * finds another master. So the response counts, and ACKNOWLEDGE finds a standby. Who refused is not asked again before
 * the next sweep is over.
 */
static void on_handover(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	sm->handing_over = false;
	if (sm->state != SM_STATE_MASTER)
		return;
	if (mad && !sm_smp_status(mad)) {
		stand_by(sm, sm->handover_to, sm->handover_lid);
		return;
	}
	sm_log(sm, LOG_WARN, "the handover was not accepted");
	sm->refused_by = sm->handover_to;
	sm_sweep_request(sm);
}

static void send_set(struct sm *sm, struct sm_node *node, u16 lid, u32 mod, u8 state,
		     void (*fn)(struct sm *sm, struct sm_smp *smp, const u8 *mad))
{
	struct sm_smp *smp = sm_smp_new(sm, node, SMP_ATTR_SM_INFO, mod, fn);

	if (!smp)
		return;
	smp->method = MAD_METHOD_SET;
	smp->lid = lid;
	sm_sminfo_fill(sm, smp->data);
	wire_set(smp->data, SMINFO_STATE, state);
	sm_smp_queue(sm, smp);
}

static const struct sm_other *strongest(const struct sm *sm, u32 states)
{
	const struct sm_other *best = NULL, *o;
	u32 i;

	for (i = 0; i < sm->nothers; i++) {
		o = &sm->others[i];
		if (!(states & BIT(o->state)))
			continue;
		if (!best || o->priority > best->priority || (o->priority == best->priority && o->guid < best->guid))
			best = o;
	}
	return best;
}

static void hand_over_to(struct sm *sm, const struct sm_other *o)
{
	if (sm->handing_over)
		return;
	sm->handing_over = true;
	sm->handover_to = o->guid;
	sm->handover_lid = o->lid;
	sm_log(sm, LOG_INFO, "handover to the SM at %s", sm_node_name(o->port->node));
	send_set(sm, o->port->node, 0, SMINFO_MOD_HANDOVER, sm->state, on_handover);
}

bool sm_sminfo_judge(struct sm *sm)
{
	const struct sm_other *o;

	if (sm->state == SM_STATE_DISCOVERING) {
		o = strongest(sm, BIT(SM_STATE_MASTER));
		if (!o) {
			o = strongest(sm, BIT(SM_STATE_DISCOVERING) | BIT(SM_STATE_STANDBY));
			if (o && !wins(sm, o->priority, o->guid))
				o = NULL;
		}
		if (o)
			stand_by(sm, o->guid, o->lid);
		else
			sm_set_state(sm, SM_STATE_MASTER);
	} else if (sm->state == SM_STATE_MASTER) {
		o = strongest(sm, BIT(SM_STATE_MASTER) | BIT(SM_STATE_STANDBY));
		if (o && wins(sm, o->priority, o->guid) && o->guid != sm->refused_by)
			hand_over_to(sm, o);
		sm->refused_by = 0;
	}
	return sm->state == SM_STATE_MASTER && !sm->handing_over;
}

/* ---- what others ask and set ---- */

struct set_ctx {
	const u8 *info;
	const struct mad_addr *from;
	bool directed;
};

static void take_over(struct sm *sm, const struct set_ctx *c)
{
	struct sm_port *p = sm_port_by_guid(sm, wire_get(c->info, SMINFO_GUID));
	bool by_lid = !c->directed && c->from->lid && c->from->lid < SM_LIDS;

	/* It is a standby that acknowledges, IBTA 14.4.1; OpenSM takes it from no other. */
	if (by_lid || p)
		send_set(sm, by_lid ? NULL : p->node, by_lid ? c->from->lid : 0, SMINFO_MOD_ACKNOWLEDGE,
			 SM_STATE_STANDBY, on_set);
	sm_sweep_request(sm);
}

static void hand_over(struct sm *sm, const struct set_ctx *c)
{
	u64 guid = wire_get(c->info, SMINFO_GUID);
	struct sm_port *p = sm_port_by_guid(sm, guid);

	stand_by(sm, guid, p ? p->lid : 0);
}

static void sleep_now(struct sm *sm, const struct set_ctx *c)
{
	loop_timer_cancel(&sm->poll);
}

static void wake(struct sm *sm, const struct set_ctx *c)
{
	arm_poll(sm);
}

static void discover(struct sm *sm, const struct set_ctx *c)
{
	sm_sweep_request(sm);
}

/* SubnSet(SMInfo) by state; what is not here is refused. The state changes first. */
static const struct {
	u8 state, mod, next;
	void (*action)(struct sm *sm, const struct set_ctx *c);
} transitions[] = {
	{ SM_STATE_STANDBY, SMINFO_MOD_HANDOVER, SM_STATE_MASTER, take_over },
	{ SM_STATE_MASTER, SMINFO_MOD_HANDOVER, SM_STATE_MASTER, take_over },
	{ SM_STATE_MASTER, SMINFO_MOD_ACKNOWLEDGE, SM_STATE_STANDBY, hand_over },
	{ SM_STATE_STANDBY, SMINFO_MOD_ACKNOWLEDGE, SM_STATE_STANDBY, hand_over },
	{ SM_STATE_STANDBY, SMINFO_MOD_DISABLE, SM_STATE_NOT_ACTIVE, sleep_now },
	{ SM_STATE_NOT_ACTIVE, SMINFO_MOD_STANDBY, SM_STATE_STANDBY, wake },
	{ SM_STATE_STANDBY, SMINFO_MOD_DISCOVER, SM_STATE_DISCOVERING, discover },
};

static int find_transition(const struct sm *sm, u32 mod)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(transitions); i++)
		if (transitions[i].state == sm->state && transitions[i].mod == mod)
			return (int)i;
	return -1;
}

void sm_sminfo_receive(struct sm *sm, const u8 *mad, const struct mad_addr *from)
{
	bool set = wire_get(mad, MAD_METHOD) == MAD_METHOD_SET;
	struct set_ctx c = { .info = mad + SMP_DATA,
			     .from = from,
			     .directed = wire_get(mad, MAD_CLASS) == MAD_CLASS_SUBN_DIRECTED };
	int row = set && !sm->cfg.alone ? find_transition(sm, wire_get(mad, MAD_ATTR_MOD)) : -1;
	u16 status = set && row < 0 ? MAD_STATUS_BAD_VALUE : 0;
	u8 resp[MAD_SIZE];

	memcpy(resp, mad, MAD_SIZE);
	wire_set(resp, MAD_METHOD, MAD_METHOD_GET_RESP);
	wire_set(resp, MAD_STATUS, status | (c.directed ? 0x8000 : 0));
	memset(resp + SMP_DATA, 0, SMP_DATA_SIZE);
	sm_sminfo_fill(sm, resp + SMP_DATA);
	sm_smp_send_plain(sm, resp, from);
	if (row < 0)
		return;
	sm_log(sm, LOG_INFO, "%s from SM 0x%016llx", wire_sminfo_mod_name(transitions[row].mod),
	       (unsigned long long)wire_get(c.info, SMINFO_GUID));
	sm_set_state(sm, transitions[row].next);
	transitions[row].action(sm, &c);
}

void sm_sminfo_init(struct sm *sm)
{
	sm->poll.fn = poll_timer;
}

void sm_sminfo_stop(struct sm *sm)
{
	loop_timer_cancel(&sm->poll);
	free(sm->others);
	sm->others = NULL;
	sm->nothers = sm->others_cap = 0;
	sm->poll_out = false;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SM state machine (IBTA 14.4.1): SMInfo, master election by priority and GUID, polling and handover. */
#include <stdlib.h>

#include "sm/sm_internal.h"

#define POLL_MISSES 3

/*
 * By 14.2.5.13 an SM discloses its SM_Key to a master only. OpenSM ignores an SM that does not disclose it, and does
 * not authenticate its own Get(SMInfo), so that any sender of SMPs can read the key.
 */
void sm_sminfo_fill(const struct sm *sm, u8 *info)
{
	memset(info, 0, SMINFO_SIZE);
	wire_set(info, SMINFO_GUID, sm->ops->port_guid(sm->transport));
	wire_set(info, SMINFO_SM_KEY, sm->cfg.sm_key);
	wire_set(info, SMINFO_ACT_COUNT, sm->act_count);
	wire_set(info, SMINFO_PRIORITY, sm->cfg.priority);
	wire_set(info, SMINFO_STATE, sm->state);
}

/* Does the other SM precede this one? Higher priority, then lower GUID. */
static bool sminfo_precedes(const struct sm *sm, u8 priority, u64 guid)
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
	if (sm->state == SM_STATE_MASTER) {
		sm->cfg.sa->resign(sm);
		sm_mcast_resign(sm);
	}
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
		sm_subnet_invalidate(sm);
	}
	if (sm->cfg.event)
		sm->cfg.event(sm->cfg.ctx, SM_EVENT_STATE);
}

/* ---- other subnet managers ---- */

static void sminfo_store_other(struct sm *sm, struct sm_port *p, const u8 *info)
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

void sm_sminfo_forget_node(struct sm *sm, const struct sm_node *n)
{
	u32 i;

	for (i = 0; i < sm->nothers; i++)
		if (sm->others[i].port && sm->others[i].port->node == n)
			sm->others[i].port = NULL;
}

/* An SM without a response has left or is starting: traps and sweeps follow. */
static void on_survey(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	u64 key;

	if (!mad || sm_smp_status(mad) || sm->cfg.alone)
		return;
	key = wire_get(mad + SMP_DATA, SMINFO_SM_KEY);
	if (key && key != sm->cfg.sm_key)
		sm_log(sm, LOG_WARN, "the SM at %s has a different SM_Key and is ignored", sm_node_name(smp->node));
	else
		sminfo_store_other(sm, smp->port, mad + SMP_DATA);
}

static void survey_port(struct sm *sm, struct sm_port *p)
{
	struct sm_smp *smp;

	if (!p->guid || !p->has_info || p == sm->self || !(wire_get(p->info, PORTINFO_CAP_MASK) & PORT_CAP_SM))
		return;
	smp = sm_smp_new(sm, p->node, SMP_ATTR_SM_INFO, 0, on_survey);
	if (!smp)
		return;
	smp->port = p;
	sm_smp_queue(sm, smp);
}

void sm_sminfo_survey(struct sm *sm, void (*done)(struct sm *sm))
{
	sm->nothers = 0;
	sm_smp_visit(sm, survey_port, done);
}

/* ---- standby: polling the master ---- */

static void arm_poll(struct sm *sm)
{
	loop_timer_set(sm->loop, &sm->poll, loop_now(sm->loop).ns + sm->cfg.poll_ms * NSEC_PER_MSEC);
}

static void sminfo_to_discovering_now(struct sm *sm)
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
			sm_log(sm, LOG_WARN, "the master at LID %u does not respond", sm->master_lid);
			sminfo_to_discovering_now(sm);
			return;
		}
	} else if (wire_get(info, SMINFO_GUID) != sm->master_guid ||
		   (wire_get(info, SMINFO_STATE) != SM_STATE_MASTER &&
		    !sminfo_precedes(sm, wire_get(info, SMINFO_PRIORITY), sm->master_guid))) {
		sminfo_to_discovering_now(sm);
		return;
	} else if (wire_get(info, SMINFO_STATE) != SM_STATE_MASTER && ++sm->poll_misses >= POLL_MISSES) {
		sminfo_to_discovering_now(sm); /* it has not become master within POLL_MISSES polls */
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
	if (!p && !sm->master_lid) { /* no master to poll */
		sminfo_to_discovering_now(sm);
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
 * Response to HANDOVER. By 14.4.1 ACKNOWLEDGE moves a master to standby; OpenSM sends none, and stays standby while it
 * discovers another master. So the response moves this SM to standby, and a later ACKNOWLEDGE finds it in that state.
 * An SM that rejected the handover gets no other one before the end of the next sweep.
 */
static void on_handover(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	sm->handing_over = false;
	if (sm->state != SM_STATE_MASTER)
		return;
	if (mad && !sm_smp_status(mad)) {
		stand_by(sm, sm->handover_to, sm->handover_lid);
		sm->ack_due = true;
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
	sm->ack_due = false;
	sm->handover_to = o->guid;
	sm->handover_lid = o->lid;
	sm_log(sm, LOG_INFO, "handover to the SM at %s", sm_node_name(o->port->node));
	send_set(sm, o->port->node, 0, SMINFO_MOD_HANDOVER, sm->state, on_handover);
}

bool sm_sminfo_elect(struct sm *sm)
{
	const struct sm_other *o;

	if (sm->state == SM_STATE_DISCOVERING) {
		o = strongest(sm, BIT(SM_STATE_MASTER));
		if (!o) {
			o = strongest(sm, BIT(SM_STATE_DISCOVERING) | BIT(SM_STATE_STANDBY));
			if (o && !sminfo_precedes(sm, o->priority, o->guid))
				o = NULL;
		}
		if (o)
			stand_by(sm, o->guid, o->lid);
		else
			sm_set_state(sm, SM_STATE_MASTER);
	} else if (sm->state == SM_STATE_MASTER) {
		o = strongest(sm, BIT(SM_STATE_MASTER) | BIT(SM_STATE_STANDBY));
		if (o && sminfo_precedes(sm, o->priority, o->guid) && o->guid != sm->refused_by)
			hand_over_to(sm, o);
		sm->refused_by = 0;
	}
	return sm->state == SM_STATE_MASTER && !sm->handing_over;
}

/* ---- Get(SMInfo), Set(SMInfo) received ---- */

struct set_ctx {
	const u8 *info;
	const struct mad_addr *from;
	bool directed, authentic; /* authentic: it has the SM_Key */
};

/* Is it the SM of the pending handover? */
static bool is_successor(const struct sm *sm, const struct set_ctx *c)
{
	return wire_get(c->info, SMINFO_GUID) == sm->handover_to &&
	       (c->directed || !sm->handover_lid || c->from->lid == sm->handover_lid);
}

static bool has_key(const struct sm *sm, const struct set_ctx *c)
{
	return c->authentic;
}

/* OpenSM does not disclose its SM_Key to a standby, not even in a handover. */
static bool of_master(const struct sm *sm, const struct set_ctx *c)
{
	return c->authentic ||
	       (!wire_get(c->info, SMINFO_SM_KEY) && wire_get(c->info, SMINFO_GUID) == sm->master_guid &&
		(c->directed || !sm->master_lid || c->from->lid == sm->master_lid));
}

static bool handover_pending(const struct sm *sm, const struct set_ctx *c)
{
	return c->authentic && sm->handing_over && is_successor(sm, c);
}

static bool ack_due(const struct sm *sm, const struct set_ctx *c)
{
	return c->authentic && sm->ack_due && is_successor(sm, c);
}

static void take_over(struct sm *sm, const struct set_ctx *c)
{
	struct sm_port *p = sm_port_by_guid(sm, wire_get(c->info, SMINFO_GUID));
	bool by_lid = !c->directed && c->from->lid && c->from->lid < SM_LIDS;

	/* Only a standby sends ACKNOWLEDGE (IBTA 14.4.1); OpenSM accepts it from no other state. */
	if (by_lid || p)
		send_set(sm, by_lid ? NULL : p->node, by_lid ? c->from->lid : 0, SMINFO_MOD_ACKNOWLEDGE,
			 SM_STATE_STANDBY, on_set);
	sm_sweep_request(sm);
}

static void hand_over(struct sm *sm, const struct set_ctx *c)
{
	stand_by(sm, sm->handover_to, sm->handover_lid);
	sm->ack_due = false;
}

static void sleep_now(struct sm *sm, const struct set_ctx *c)
{
	loop_timer_cancel(&sm->poll);
}

static void sminfo_to_standby(struct sm *sm, const struct set_ctx *c)
{
	arm_poll(sm);
}

static void sminfo_to_discovering(struct sm *sm, const struct set_ctx *c)
{
	sm_sweep_request(sm);
}

/*
 * SubnSet(SMInfo) by state and AttributeModifier (14.4.1); other combinations are rejected. The state changes before
 * the response. A master accepts ACKNOWLEDGE only as the reply to its own HANDOVER.
 */
static const struct {
	u8 state, mod, next;
	void (*action)(struct sm *sm, const struct set_ctx *c);
	bool (*allowed)(const struct sm *sm, const struct set_ctx *c);
} transitions[] = {
	{ SM_STATE_STANDBY, SMINFO_MOD_HANDOVER, SM_STATE_MASTER, take_over, of_master },
	{ SM_STATE_MASTER, SMINFO_MOD_HANDOVER, SM_STATE_MASTER, take_over, has_key },
	{ SM_STATE_MASTER, SMINFO_MOD_ACKNOWLEDGE, SM_STATE_STANDBY, hand_over, handover_pending },
	{ SM_STATE_STANDBY, SMINFO_MOD_ACKNOWLEDGE, SM_STATE_STANDBY, hand_over, ack_due },
	{ SM_STATE_STANDBY, SMINFO_MOD_DISABLE, SM_STATE_NOT_ACTIVE, sleep_now, has_key },
	{ SM_STATE_NOT_ACTIVE, SMINFO_MOD_STANDBY, SM_STATE_STANDBY, sminfo_to_standby, has_key },
	{ SM_STATE_STANDBY, SMINFO_MOD_DISCOVER, SM_STATE_DISCOVERING, sminfo_to_discovering, has_key },
};

static int find_transition(const struct sm *sm, u32 mod, const struct set_ctx *c)
{
	u32 i;

	if (sm->cfg.alone)
		return -1;
	for (i = 0; i < ARRAY_SIZE(transitions); i++)
		if (transitions[i].state == sm->state && transitions[i].mod == mod)
			return transitions[i].allowed(sm, c) ? (int)i : -1;
	return -1;
}

void sm_sminfo_receive(struct sm *sm, const u8 *mad, const struct mad_addr *from)
{
	bool set = wire_get(mad, MAD_METHOD) == MAD_METHOD_SET;
	struct set_ctx c = { .info = mad + SMP_DATA,
			     .from = from,
			     .directed = wire_get(mad, MAD_CLASS) == MAD_CLASS_SUBN_DIRECTED,
			     .authentic = wire_get(mad + SMP_DATA, SMINFO_SM_KEY) == sm->cfg.sm_key };
	int row = set ? find_transition(sm, wire_get(mad, MAD_ATTR_MOD), &c) : -1;
	u16 status = set && row < 0 ? MAD_STATUS_BAD_VALUE : 0;
	u8 resp[MAD_SIZE];

	memcpy(resp, mad, MAD_SIZE);
	wire_set(resp, MAD_METHOD, MAD_METHOD_GET_RESP);
	wire_set(resp, MAD_STATUS, status | (c.directed ? 0x8000 : 0));
	memset(resp + SMP_DATA, 0, SMP_DATA_SIZE);
	sm_sminfo_fill(sm, resp + SMP_DATA);
	sm_smp_send_plain(sm, resp, from);
	sm->st.sminfo_refused += set && row < 0;
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

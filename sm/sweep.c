// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sweeps (IBTA 14.4.6). A heavy sweep discovers the subnet, queries the other subnet managers, and as master recomputes
 * the configuration and sets the differences. A light sweep only reads PortStateChange of the switches. One follows at
 * once when switches have got the LID of this SM: a change after their ports were read has caused no trap.
 */
#include "sm/sm_internal.h"

#define RETRY_MIN_MS   500
#define TRAP_SWEEPS    8 /* traps that start a sweep without delay */
#define TRAP_PERIOD_NS NSEC_PER_SEC

const char *sm_stage_name(enum sm_stage stage)
{
#define STAGE_NAME(stage, name) name,
	static const char *const names[] = { SM_STAGE_LIST(STAGE_NAME) };
#undef STAGE_NAME

	return stage < SM_STAGES ? names[stage] : "?";
}

void sm_sweep_stage(struct sm *sm, enum sm_stage stage)
{
	sm->st.stage = stage;
	if (sm->cfg.event)
		sm->cfg.event(sm->cfg.ctx, SM_EVENT_STAGE);
}

static void sweep_arm(struct sm *sm, u32 ms)
{
	loop_timer_set(sm->loop, &sm->timer, loop_now(sm->loop).ns + ms * NSEC_PER_MSEC);
}

void sm_sweep_error(struct sm *sm, const struct sm_smp *smp, const char *what)
{
	if (sm->errors++ < 10)
		sm_log(sm, LOG_WARN, "%s at %s%s, port %u: %s", wire_smp_attr_name(smp->attr),
		       smp->hop ? "the peer of " : "", smp->node ? sm_node_name(smp->node) : "the own port",
		       smp->hop ? smp->hop : smp->mod & 0xff, what);
}

/* Starts the next pending activity; called whenever one ends. */
static void sweep_idle(struct sm *sm)
{
	sm->phase = SM_IDLE;
	sm->st.sweeping = false;
	loop_task_queue(sm->loop, &sm->kick);
	if (sm->state != SM_STATE_MASTER)
		loop_timer_cancel(&sm->timer);
	else if (sm->errors)
		sweep_arm(sm, sm->retry_wait);
	else
		sweep_arm(sm, sm->look_soon ? 0 : sm->cfg.sweep_ms);
}

static void sweep_count(struct sm *sm)
{
	struct sm_status *st = &sm->st;
	struct sm_node *n;
	u32 i;

	st->nodes = st->switches = st->cas = st->ports_active = 0;
	list_for_each (n, &sm->nodes, link) {
		st->nodes++;
		st->switches += sm_node_is_switch(n);
		st->cas += n->type == NODE_TYPE_CA;
		for (i = 0; i <= n->nports; i++)
			st->ports_active += n->ports[i].has_info && n->ports[i].peer &&
					    sm_port_state(&n->ports[i]) == PORT_STATE_ACTIVE;
	}
}

/* Sends trap 64 reports for new ports. */
static void sweep_announce(struct sm *sm)
{
	struct sm_node *n;
	struct sm_port *p;
	u32 i;

	list_for_each (n, &sm->nodes, link)
		for (i = 0; i <= n->nports; i++) {
			p = &n->ports[i];
			if (!p->guid || !p->lid || p->trap64_sent)
				continue;
			p->trap64_sent = true;
			sm_trap_port(sm, TRAP_GID_IN_SERVICE, p);
		}
}

static void sweep_backoff(struct sm *sm)
{
	if (!sm->errors)
		sm->retry_wait = RETRY_MIN_MS;
	else
		sm->retry_wait = min(sm->retry_wait * 2, sm->cfg.sweep_ms);
}

static void sweep_finish(struct sm *sm)
{
	struct sm_status *st = &sm->st;

	st->sweep_ns = loop_now(sm->loop).ns - sm->sweep_start;
	st->sweep_smps = (u32)(st->smps - sm->smps_start);
	st->sweep_errors = sm->errors;
	st->heavy_sweeps++;
	st->subnet_up = !sm->errors && sm_is_master(sm);
	sm->act_count++;
	sm->reregister = false;
	sweep_count(sm);
	sweep_announce(sm);
	sweep_backoff(sm);
	sm_log(sm, LOG_INFO, "%s: %u %s (%u %s), %u active %s, %s, %u SMPs in %.3f s%s",
	       sm->errors ? "sweep with errors" : "SUBNET UP", st->nodes, plural(st->nodes, "node", "nodes"),
	       st->switches, plural(st->switches, "switch", "switches"), st->ports_active,
	       plural(st->ports_active, "port", "ports"), st->routing, st->sweep_smps, (double)st->sweep_ns / 1e9,
	       sm->changed ? "" : ", no changes");
	sm_mcast_pushed(sm);
	sweep_idle(sm);
	if (sm->cfg.event)
		sm->cfg.event(sm->cfg.ctx, sm->errors ? SM_EVENT_SWEEP : SM_EVENT_SUBNET_UP);
}

static void sweep_surveyed(struct sm *sm)
{
	if (!sm->self || !sm->self->has_info) {
		sm_log(sm, LOG_WARN, "no response from the own port");
		sm->errors++;
	} else if (!sm_sminfo_elect(sm)) {
		sweep_idle(sm);
		return;
	}
	if (!sm->self || !sm->self->has_info) {
		sweep_backoff(sm);
		sweep_idle(sm);
		sweep_arm(sm, sm->retry_wait);
		return;
	}
	sm_sweep_stage(sm, SM_STAGE_ROUTES);
	sm_lid_assign(sm);
	sm_pkey_assign(sm);
	sm_mcast_init(sm);
	sm_route_all(sm);
	sm_mcast_route(sm, true);
	sm_bringup_start(sm, sweep_finish);
}

static void sweep_discovered(struct sm *sm)
{
	sm_sminfo_survey(sm, sweep_surveyed);
}

static void sweep_heavy(struct sm *sm)
{
	sm->phase = SM_HEAVY;
	sm->want_heavy = false;
	sm->st.sweeping = true;
	sm->changed = false;
	sm->errors = 0;
	sm->sweep_start = loop_now(sm->loop).ns;
	sm->smps_start = sm->st.smps;
	loop_timer_cancel(&sm->timer);
	sm_sweep_stage(sm, SM_STAGE_DISCOVERY);
	sm_discovery_start(sm, sweep_discovered);
}

/* ---- light sweep ---- */

static void on_light(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	if (!mad || sm_smp_status(mad) || wire_get(mad + SMP_DATA, SWITCHINFO_PORT_STATE_CHANGE))
		sm->want_heavy = true;
}

/* PortInfo of the own port shows the settings of another SM. */
static void on_light_port(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	if (!mad || sm_smp_status(mad) || wire_get(mad + SMP_DATA, PORTINFO_STATE) != sm_port_state(smp->port) ||
	    wire_get(mad + SMP_DATA, PORTINFO_LID) != smp->port->lid ||
	    wire_get(mad + SMP_DATA, PORTINFO_SM_LID) != smp->port->lid)
		sm->want_heavy = true;
}

static void light_query(struct sm *sm, struct sm_port *p)
{
	struct sm_smp *smp;

	if (p->num || !sm_node_is_switch(p->node))
		return;
	smp = sm_smp_new(sm, p->node, SMP_ATTR_SWITCH_INFO, 0, on_light);
	if (smp)
		sm_smp_queue(sm, smp);
}

static void light_surveyed(struct sm *sm)
{
	sm_sminfo_elect(sm);
	sweep_idle(sm);
}

static void light_done(struct sm *sm)
{
	sm->st.light_sweeps++;
	sm->act_count++;
	if (sm->want_heavy)
		sweep_idle(sm);
	else
		sm_sminfo_survey(sm, light_surveyed);
}

static void sweep_light(struct sm *sm)
{
	struct sm_smp *smp;

	if (!sm->self) {
		sweep_heavy(sm);
		return;
	}
	sm->phase = SM_LIGHT;
	sm->look_soon = false;
	smp = sm_smp_new(sm, sm->self->node, SMP_ATTR_PORT_INFO, sm->self->num, on_light_port);
	if (smp) {
		smp->port = sm->self;
		sm_smp_queue(sm, smp);
	}
	sm_smp_visit(sm, light_query, light_done);
}

/* ---- multicast trees between sweeps ---- */

static void mcast_done(struct sm *sm)
{
	sm_mcast_pushed(sm);
	sweep_idle(sm);
}

void sm_sweep_mcast(struct sm *sm)
{
	sm->want_mcast = true;
	loop_task_queue(sm->loop, &sm->kick);
}

void sm_sweep_request(struct sm *sm)
{
	sm->want_heavy = true;
	loop_task_queue(sm->loop, &sm->kick);
}

/* Token bucket; traps that arrive while a sweep is pending take no token. */
void sm_sweep_for_trap(struct sm *sm)
{
	u64 now = loop_now(sm->loop).ns, burst = (TRAP_SWEEPS - 1) * TRAP_PERIOD_NS;

	if (sm->want_heavy || loop_timer_armed(&sm->trap_timer)) {
		sm->st.traps_coalesced++;
		return;
	}
	if (sm->trap_credit_at > now + burst) {
		loop_timer_set(sm->loop, &sm->trap_timer, sm->trap_credit_at - burst);
		return;
	}
	sm->trap_credit_at = max(sm->trap_credit_at, now) + TRAP_PERIOD_NS;
	sm_sweep_request(sm);
}

static void on_trap_timer(struct loop_timer *t, struct now now)
{
	sm_sweep_for_trap(container_of(t, struct sm, trap_timer));
}

/* ---- triggers ---- */

static void sweep_kick(struct loop_task *t, struct now now)
{
	struct sm *sm = container_of(t, struct sm, kick);

	if (!sm->running || sm->phase != SM_IDLE || sm->handing_over)
		return;
	if (sm->want_heavy && (sm->state == SM_STATE_MASTER || sm->state == SM_STATE_DISCOVERING)) {
		sweep_heavy(sm);
	} else if (sm->want_mcast && sm->state == SM_STATE_MASTER) {
		sm->phase = SM_MCAST;
		sm_mcast_route(sm, false);
		sm_smp_visit(sm, sm_mcast_push, mcast_done);
	}
}

static void sweep_on_timer(struct loop_timer *t, struct now now)
{
	struct sm *sm = container_of(t, struct sm, timer);

	if (!sm->running || sm->phase != SM_IDLE || sm->handing_over)
		return;
	if (sm->errors || sm->state == SM_STATE_DISCOVERING)
		sweep_heavy(sm);
	else if (sm->state == SM_STATE_MASTER)
		sweep_light(sm);
}

void sm_sweep_init(struct sm *sm)
{
	loop_task_init(&sm->kick, sweep_kick);
	sm->timer.fn = sweep_on_timer;
	sm->trap_timer.fn = on_trap_timer;
	sm->retry_wait = RETRY_MIN_MS;
}

void sm_sweep_fini(struct sm *sm)
{
	loop_task_cancel(&sm->kick);
	loop_timer_cancel(&sm->timer);
	loop_timer_cancel(&sm->trap_timer);
	sm->phase = SM_IDLE;
	sm->want_heavy = sm->want_mcast = false;
}

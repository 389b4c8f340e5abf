// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Subnet configuration (IBTA 14.4.4, 7.2.7): sets P_Key, VL and forwarding tables and PortInfo (ports to Armed); after
 * all responses it sets the ports to Active.
 */
#include "sm/sm_internal.h"

#define HOQ_LIFE        0x12 /* 1 s */
#define HOQ_LIFE_LEAF   0x10 /* 268 ms at a CA port: limits the head-of-line blocking by a CA that does not receive */
#define PACKET_LIFE     0x12
#define STALL_COUNT     7
#define SUBNET_TIMEOUT  18
#define ERROR_THRESHOLD 8

/* ---- PortInfo ---- */

static void want_end(const struct sm *sm, const struct sm_port *p, u8 *d)
{
	wire_set(d, PORTINFO_MKEY, sm->cfg.mkey);
	wire_set(d, PORTINFO_GID_PREFIX, sm->cfg.subnet_prefix);
	wire_set(d, PORTINFO_LID, p->lid);
	wire_set(d, PORTINFO_SM_LID, sm->self->lid);
	wire_set(d, PORTINFO_SM_SL, 0);
	wire_set(d, PORTINFO_LMC, p->lmc);
	wire_set(d, PORTINFO_MKEY_LEASE, 0);
	wire_set(d, PORTINFO_MKEY_PROTECT, 0);
	wire_set(d, PORTINFO_SUBNET_TIMEOUT, SUBNET_TIMEOUT);
	wire_set(d, PORTINFO_CLIENT_REREGISTER,
		 (sm->reregister || !p->trap64_sent) &&
			 (wire_get(p->info, PORTINFO_CAP_MASK) & PORT_CAP_CLIENT_REREGISTER));
}

static void want_link(const struct sm *sm, const struct sm_port *p, u8 *d)
{
	bool leaf = !sm_node_is_switch(p->peer->node), sw = sm_node_is_switch(p->node);
	bool enforce = sm_pkey_enforced_at(sm, p);
	u8 mtu = wire_get(p->info, PORTINFO_MTU_CAP), peer_mtu = wire_get(p->peer->info, PORTINFO_MTU_CAP);

	wire_set(d, PORTINFO_NEIGHBOR_MTU, p->peer->has_info ? min(mtu, peer_mtu) : mtu);
	wire_set(d, PORTINFO_OPER_VLS, sm_qos_oper_vls(p));
	wire_set(d, PORTINFO_LOCAL_PHY_ERRORS, ERROR_THRESHOLD);
	wire_set(d, PORTINFO_OVERRUN_ERRORS, ERROR_THRESHOLD);
	if (sm->cfg.qos)
		wire_set(d, PORTINFO_VL_HIGH_LIMIT, 0);
	if (!sw)
		return;
	wire_set(d, PORTINFO_HOQ_LIFE, sm->cfg.hoq_life ? sm->cfg.hoq_life : leaf ? HOQ_LIFE_LEAF : HOQ_LIFE);
	wire_set(d, PORTINFO_VL_STALL_COUNT, STALL_COUNT);
	wire_set(d, PORTINFO_PART_ENFORCE_IN, enforce);
	wire_set(d, PORTINFO_PART_ENFORCE_OUT, enforce);
}

/* Sets the fields whose value means "no change" in a Set. */
static void leave_alone(u8 *d)
{
	wire_set(d, PORTINFO_STATE, PORT_STATE_NOP);
	wire_set(d, PORTINFO_PHYS_STATE, PHYS_STATE_NOP);
	wire_set(d, PORTINFO_WIDTH_ENABLED, 0);
	wire_set(d, PORTINFO_SPEED_ENABLED, 0);
	wire_set(d, PORTINFO_SPEED_EXT_ENABLED, 0);
	wire_set(d, PORTINFO_LINK_DOWN_DEFAULT, 0);
}

static void on_port_set(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	if (!mad) {
		sm_sweep_error(sm, smp, "PortInfo is not set");
		return;
	}
	if (sm_smp_status(mad))
		sm_sweep_error(sm, smp, "PortInfo is refused");
	memcpy(smp->port->info, mad + SMP_DATA, PORTINFO_SIZE);
	smp->port->has_info = true;
}

static bool bringup_differs(const u8 *have, const u8 *want)
{
	u8 a[PORTINFO_SIZE], b[PORTINFO_SIZE];

	memcpy(a, have, sizeof(a));
	memcpy(b, want, sizeof(b));
	leave_alone(a);
	leave_alone(b);
	return memcmp(a, b, sizeof(a)) != 0;
}

static bool has_link(const struct sm_port *p)
{
	return p->peer && p->has_info && sm_port_state(p) >= PORT_STATE_INIT && sm_port_state(p) <= PORT_STATE_ACTIVE;
}

static void set_port(struct sm *sm, struct sm_port *p, u8 state, const u8 *want)
{
	struct sm_smp *smp = sm_smp_new(sm, p->node, SMP_ATTR_PORT_INFO, p->num, on_port_set);

	if (!smp)
		return;
	smp->method = MAD_METHOD_SET;
	smp->port = p;
	memcpy(smp->data, want, PORTINFO_SIZE);
	leave_alone(smp->data);
	wire_set(smp->data, PORTINFO_STATE, state);
	sm_smp_queue(sm, smp);
}

static void configure_port(struct sm *sm, struct sm_port *p)
{
	bool end = sm_port_is_end(p), external = !sm_node_is_switch(p->node) || p->num, arm;
	u8 want[PORTINFO_SIZE];

	if (!p->has_info || (end && !p->lid) || (external && !has_link(p)))
		return;
	memcpy(want, p->info, sizeof(want));
	if (end)
		want_end(sm, p, want);
	if (end && !external && wire_get(p->info, PORTINFO_SM_LID) != sm->self->lid)
		sm->look_soon = true;
	if (external)
		want_link(sm, p, want);
	arm = external && sm_port_state(p) == PORT_STATE_INIT;
	if (arm || bringup_differs(p->info, want))
		set_port(sm, p, arm ? PORT_STATE_ARMED : PORT_STATE_NOP, want);
}

static void activate_port(struct sm *sm, struct sm_port *p)
{
	u8 want[PORTINFO_SIZE];

	if ((sm_node_is_switch(p->node) && !p->num) || !has_link(p) || sm_port_state(p) != PORT_STATE_ARMED)
		return;
	memcpy(want, p->info, sizeof(want));
	wire_set(want, PORTINFO_CLIENT_REREGISTER, 0); /* set once only */
	set_port(sm, p, PORT_STATE_ACTIVE, want);
}

/* ---- SwitchInfo ---- */

static void on_switch_set(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	if (!mad || sm_smp_status(mad))
		sm_sweep_error(sm, smp, "SwitchInfo is not set");
	else
		memcpy(smp->node->swinfo, mad + SMP_DATA, SWITCHINFO_SIZE);
}

static void configure_switch(struct sm *sm, struct sm_port *p)
{
	struct sm_node *n = p->node;
	u8 want[SWITCHINFO_SIZE];
	struct sm_smp *smp;

	if (!sm_node_is_switch(n) || p->num)
		return;
	memcpy(want, n->swinfo, sizeof(want));
	wire_set(want, SWITCHINFO_LFT_TOP, sm->max_lid);
	wire_set(want, SWITCHINFO_LIFE_TIME, sm->cfg.hoq_life ? sm->cfg.hoq_life : PACKET_LIFE);
	wire_set(want, SWITCHINFO_PORT_STATE_CHANGE, 0);
	wire_set(n->swinfo, SWITCHINFO_PORT_STATE_CHANGE, 0);
	if (!memcmp(want, n->swinfo, sizeof(want)))
		return;
	smp = sm_smp_new(sm, n, SMP_ATTR_SWITCH_INFO, 0, on_switch_set);
	if (!smp)
		return;
	smp->method = MAD_METHOD_SET;
	memcpy(smp->data, want, sizeof(want));
	sm_smp_queue(sm, smp);
}

/* ---- the phases ---- */

/* Each step visits the ports of all nodes, or has a function of its own. */
static const struct {
	void (*visit)(struct sm *sm, struct sm_port *p);
	bool (*next)(struct sm *sm);
	enum sm_stage stage;
} steps[] = {
	{ .visit = configure_switch, .stage = SM_STAGE_SWITCHES },
	{ .visit = sm_pkey_push, .stage = SM_STAGE_SWITCHES },
	{ .visit = sm_qos_push, .stage = SM_STAGE_SWITCHES },
	{ .next = sm_route_push, .stage = SM_STAGE_LFTS },
	{ .visit = sm_mcast_push, .stage = SM_STAGE_MFTS },
	{ .visit = configure_port, .stage = SM_STAGE_PORTS },
};

static bool bringup_push(struct sm *sm)
{
	while (!(steps[sm->step].next ? steps[sm->step].next(sm) : sm_smp_each_node(sm, steps[sm->step].visit))) {
		if (++sm->step == ARRAY_SIZE(steps))
			return false;
		if (steps[sm->step].stage != steps[sm->step - 1].stage)
			sm_sweep_stage(sm, steps[sm->step].stage);
		sm_smp_rewind(sm);
	}
	return true;
}

static void bringup_configured(struct sm *sm)
{
	sm_sweep_stage(sm, SM_STAGE_ACTIVATION);
	sm_smp_visit(sm, activate_port, sm->brought_up);
}

void sm_bringup_start(struct sm *sm, void (*done)(struct sm *sm))
{
	sm->brought_up = done;
	sm->step = 0;
	sm_sweep_stage(sm, steps[0].stage);
	sm_smp_phase(sm, bringup_push, bringup_configured);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* PortInfo: what a port says of itself, and what a subnet manager may change. IBTA 14.2.5.6. */
#include "fabric/internal.h"

static const u8 width_bits[13] = {
	[1] = LINK_WIDTH_1X, [2] = LINK_WIDTH_2X, [4] = LINK_WIDTH_4X, [8] = LINK_WIDTH_8X, [12] = LINK_WIDTH_12X
};

static u8 width_supported(const struct fabric_port *p)
{
	return width_bits[p->lanes_cap] | LINK_WIDTH_1X;
}

static u8 speed_supported(const struct fabric_port *p)
{
	return (1 << min(p->speed_cap, (u8)WIRE_SPEED_QDR)) - 1;
}

static u8 ext_supported(const struct fabric_port *p)
{
	return p->speed_cap > WIRE_SPEED_QDR ? (1 << (p->speed_cap - WIRE_SPEED_QDR)) - 1 : 0;
}

static void get_speeds(const struct fabric_port *p, u8 *d)
{
	bool up = p->speed != WIRE_SPEED_NONE;

	wire_set(d, PORTINFO_WIDTH_ENABLED, p->width_enabled);
	wire_set(d, PORTINFO_WIDTH_SUPPORTED, width_supported(p));
	wire_set(d, PORTINFO_WIDTH_ACTIVE, up ? width_bits[p->lanes] : LINK_WIDTH_4X);
	wire_set(d, PORTINFO_SPEED_SUPPORTED, speed_supported(p));
	wire_set(d, PORTINFO_SPEED_ENABLED, p->speed_enabled);
	wire_set(d, PORTINFO_SPEED_ACTIVE, up ? 1 << (min(p->speed, (u8)WIRE_SPEED_QDR) - 1) : LINK_SPEED_SDR);
	wire_set(d, PORTINFO_SPEED_EXT_SUPPORTED, ext_supported(p));
	wire_set(d, PORTINFO_SPEED_EXT_ENABLED, ext_supported(p) ? p->speed_ext_enabled : 0);
	wire_set(d, PORTINFO_SPEED_EXT_ACTIVE, p->speed > WIRE_SPEED_QDR ? 1 << (p->speed - WIRE_SPEED_FDR) : 0);
}

/* What belongs to the node's management port: a CA's own, or port 0 of a switch. */
static void get_own(const struct fabric_sma *s, const struct fabric_port *p, u8 *d)
{
	bool hide = p->mkey_protect != MKEY_PROTECT_NONE && !s->mkey_ok;

	wire_set(d, PORTINFO_MKEY, hide ? 0 : p->mkey);
	wire_set(d, PORTINFO_GID_PREFIX, p->prefix);
	wire_set(d, PORTINFO_LID, p->lid);
	wire_set(d, PORTINFO_SM_LID, p->sm_lid);
	wire_set(d, PORTINFO_CAP_MASK, p->cap_mask);
	wire_set(d, PORTINFO_CAP_MASK2,
		 PORT_CAP2_SET_NODE_DESC | PORT_CAP2_LINK_WIDTH_2X | PORT_CAP2_LINK_SPEED_HDR |
			 PORT_CAP2_LINK_SPEED_NDR);
	wire_set(d, PORTINFO_MKEY_LEASE, p->mkey_lease);
	wire_set(d, PORTINFO_MKEY_PROTECT, p->mkey_protect);
	wire_set(d, PORTINFO_LMC, p->lmc);
	wire_set(d, PORTINFO_SM_SL, p->sm_sl);
	wire_set(d, PORTINFO_MKEY_VIOLATIONS, p->mkey_viol);
	wire_set(d, PORTINFO_GUID_CAP, p->ca ? p->ca->wire.attr.gids : 1);
	wire_set(d, PORTINFO_SUBNET_TIMEOUT, p->subnet_timeout);
	wire_set(d, PORTINFO_RESP_TIME, 16);
	wire_set(d, PORTINFO_MC_PKEY_TRAP_SUPPRESS, p->mc_trap_suppress);
	wire_set(d, PORTINFO_INIT_TYPE, p->init_type);
}

static void get(const struct fabric_sma *s, const struct fabric_port *p)
{
	const struct fabric *f = s->n->f;
	u8 *d = s->data;

	memset(d, 0, SMP_DATA_SIZE);
	if (!s->n->sw || !p->num)
		get_own(s, p, d);
	get_speeds(p, d);
	wire_set(d, PORTINFO_LOCAL_PORT, s->in->num);
	wire_set(d, PORTINFO_STATE, list_empty(&p->down) ? p->state : PORT_STATE_DOWN);
	wire_set(d, PORTINFO_PHYS_STATE, list_empty(&p->down) ? p->phys : p->down_phys);
	wire_set(d, PORTINFO_LINK_DOWN_DEFAULT, p->down_default);
	wire_set(d, PORTINFO_NEIGHBOR_MTU, p->mtu);
	wire_set(d, PORTINFO_MTU_CAP, p->mtu_limit ? min(p->mtu_limit, f->mtu_cap) : f->mtu_cap);
	wire_set(d, PORTINFO_VL_CAP, f->vl_cap);
	wire_set(d, PORTINFO_OPER_VLS, p->oper_vls);
	wire_set(d, PORTINFO_VL_HIGH_LIMIT, p->vl_high_limit);
	wire_set(d, PORTINFO_VL_ARB_HIGH_CAP, FABRIC_VLARB_ENTRIES);
	wire_set(d, PORTINFO_VL_ARB_LOW_CAP, FABRIC_VLARB_ENTRIES);
	wire_set(d, PORTINFO_HOQ_LIFE, p->hoq_life);
	wire_set(d, PORTINFO_VL_STALL_COUNT, p->vl_stall_count);
	wire_set(d, PORTINFO_PART_ENFORCE_IN, p->enforce_in);
	wire_set(d, PORTINFO_PART_ENFORCE_OUT, p->enforce_out);
	wire_set(d, PORTINFO_FILTER_RAW_IN, p->filter_in);
	wire_set(d, PORTINFO_FILTER_RAW_OUT, p->filter_out);
	wire_set(d, PORTINFO_PKEY_VIOLATIONS, p->pkey_viol);
	wire_set(d, PORTINFO_QKEY_VIOLATIONS, p->qkey_viol);
	wire_set(d, PORTINFO_LOCAL_PHY_ERRORS, p->phy_err_thr);
	wire_set(d, PORTINFO_OVERRUN_ERRORS, p->overrun_thr);
	wire_set(d, PORTINFO_MAX_CREDIT_HINT, FABRIC_VL_BLOCKS);
}

/*
 * May the port go from its state to @want? IBTA 14.2.5.6: Down always, Armed from Initialize (again from Armed),
 * Active from Armed (again from Active).
 */
static bool state_legal(const struct fabric_port *p, u8 want, u8 phys)
{
	static const u8 from[PORT_STATE_ACTIVE + 1] = {
		[PORT_STATE_NOP] = 0xff,
		[PORT_STATE_DOWN] = 0xff,
		[PORT_STATE_ARMED] = BIT(PORT_STATE_INIT) | BIT(PORT_STATE_ARMED),
		[PORT_STATE_ACTIVE] = BIT(PORT_STATE_ARMED) | BIT(PORT_STATE_ACTIVE),
	};

	if (want > PORT_STATE_ACTIVE || !(from[want] & BIT(p->state)))
		return false;
	if (phys != PHYS_STATE_NOP && want != PORT_STATE_DOWN && want != PORT_STATE_NOP)
		return false; /* a physical state goes with Down or no change: C14-34 */
	return phys <= PHYS_STATE_DISABLED;
}

/* Enabled: 0 leaves it, @all means all supported; otherwise a subset of what is supported. False: bad value. */
static bool set_enabled(u8 *enabled, u8 want, u8 supported, u8 all, bool *changed)
{
	if (!want)
		return true;
	if (want == all)
		want = supported;
	else if (want & ~supported)
		return false;
	*changed |= *enabled != want;
	*enabled = want;
	return true;
}

static bool set_speeds(struct fabric_port *p, const u8 *d, u16 *flags, bool ext_valid)
{
	bool width = false, speed = false, ok;
	u8 ext = wire_get(d, PORTINFO_SPEED_EXT_ENABLED);

	ok = set_enabled(&p->width_enabled, wire_get(d, PORTINFO_WIDTH_ENABLED), width_supported(p),
			 LINK_WIDTH_ALL_SUPPORTED, &width);
	ok &= set_enabled(&p->speed_enabled, wire_get(d, PORTINFO_SPEED_ENABLED), speed_supported(p),
			  LINK_SPEED_ALL_SUPPORTED, &speed);
	if (ext_valid && ext == LINK_SPEED_EXT_DISABLE) {
		speed |= p->speed_ext_enabled != ext;
		p->speed_ext_enabled = ext;
	} else if (ext_valid && ext_supported(p)) {
		ok &= set_enabled(&p->speed_ext_enabled, ext, ext_supported(p), LINK_SPEED_EXT_ALL_SUPPORTED, &speed);
	}
	*flags |= (width ? NOTICE_144_LINK_WIDTH_ENABLED : 0) | (speed ? NOTICE_144_LINK_SPEED_ENABLED : 0);
	return ok;
}

static void set_prefix(struct fabric_port *p, u64 prefix)
{
	struct wire_port_attr *a = p->ca ? &p->ca->wire.attr : NULL;
	u32 i;

	if (p->prefix == prefix)
		return;
	p->prefix = prefix;
	for (i = 0; a && i < a->gids; i++)
		if (wire_gid_guid(&a->gid[i]))
			a->gid[i] = wire_gid_make(prefix, wire_gid_guid(&a->gid[i]));
	if (a)
		fabric_ca_event(p, WIRE_PORT_GID_CHANGE);
}

static bool set_lids(struct fabric_port *p, const u8 *d)
{
	u16 lid = wire_get(d, PORTINFO_LID), sm_lid = wire_get(d, PORTINFO_SM_LID);
	u8 lmc = p->ca ? wire_get(d, PORTINFO_LMC) : 0, sm_sl = wire_get(d, PORTINFO_SM_SL);
	bool lid_ok = wire_lid_is_unicast(lid) && lid + BIT(lmc) - 1 <= WIRE_LID_UNICAST_MAX,
	     sm_ok = wire_lid_is_unicast(sm_lid);
	bool lid_new = lid_ok && (lid != p->lid || lmc != p->lmc);
	bool sm_new = sm_ok && (sm_lid != p->sm_lid || sm_sl != p->sm_sl);

	if (lid_ok) {
		p->lid = lid;
		p->lmc = lmc;
	}
	if (sm_ok) {
		p->sm_lid = sm_lid;
		p->sm_sl = sm_sl;
	}
	fabric_ca_sync(p);
	if (p->ca && lid_new)
		fabric_ca_event(p, WIRE_PORT_LID_CHANGE);
	if (p->ca && sm_new)
		fabric_ca_event(p, WIRE_PORT_SM_CHANGE);
	return lid_ok && sm_ok;
}

static bool set_own(struct fabric_port *p, const u8 *d)
{
	bool ok;

	p->mkey = wire_get(d, PORTINFO_MKEY);
	p->mkey_lease = wire_get(d, PORTINFO_MKEY_LEASE);
	p->mkey_protect = wire_get(d, PORTINFO_MKEY_PROTECT);
	p->subnet_timeout = wire_get(d, PORTINFO_SUBNET_TIMEOUT);
	p->mc_trap_suppress = wire_get(d, PORTINFO_MC_PKEY_TRAP_SUPPRESS);
	p->init_type = wire_get(d, PORTINFO_INIT_TYPE);
	if (!wire_get(d, PORTINFO_MKEY_VIOLATIONS))
		p->mkey_viol = 0;
	set_prefix(p, wire_get(d, PORTINFO_GID_PREFIX));
	ok = set_lids(p, d);
	if (p->ca && wire_get(d, PORTINFO_CLIENT_REREGISTER))
		fabric_ca_event(p, WIRE_PORT_CLIENT_REREGISTER);
	return ok;
}

static bool set_link(struct fabric_port *p, const u8 *d)
{
	u8 mtu = wire_get(d, PORTINFO_NEIGHBOR_MTU), vls = wire_get(d, PORTINFO_OPER_VLS);
	bool ok = true;

	if (wire_mtu_bytes(mtu) && mtu <= p->node->f->mtu_cap)
		p->mtu = mtu;
	else if (mtu)
		ok = false;
	if (vls && vls <= p->node->f->vl_cap) {
		p->oper_vls = vls;
		p->nvls = wire_vl_count(vls);
	} else if (vls) {
		ok = false;
	}
	if (wire_get(d, PORTINFO_LINK_DOWN_DEFAULT))
		p->down_default = wire_get(d, PORTINFO_LINK_DOWN_DEFAULT) == PHYS_STATE_SLEEP ? PHYS_STATE_SLEEP
											      : PHYS_STATE_POLLING;
	p->vl_high_limit = wire_get(d, PORTINFO_VL_HIGH_LIMIT);
	p->hoq_life = wire_get(d, PORTINFO_HOQ_LIFE);
	p->vl_stall_count = wire_get(d, PORTINFO_VL_STALL_COUNT);
	p->enforce_in = wire_get(d, PORTINFO_PART_ENFORCE_IN);
	p->enforce_out = wire_get(d, PORTINFO_PART_ENFORCE_OUT);
	p->filter_in = wire_get(d, PORTINFO_FILTER_RAW_IN);
	p->filter_out = wire_get(d, PORTINFO_FILTER_RAW_OUT);
	p->phy_err_thr = wire_get(d, PORTINFO_LOCAL_PHY_ERRORS);
	p->overrun_thr = wire_get(d, PORTINFO_OVERRUN_ERRORS);
	if (!wire_get(d, PORTINFO_PKEY_VIOLATIONS))
		p->pkey_viol = 0;
	if (!wire_get(d, PORTINFO_QKEY_VIOLATIONS))
		p->qkey_viol = 0;
	return ok;
}

/* Down makes the link train again; Disabled and Sleep end it until told otherwise. */
static void set_down(struct fabric_port *p, u8 phys)
{
	fabric_link_lose(p);
	p->phys = phys;
	if (phys == PHYS_STATE_POLLING && p->peer && p->peer->phys == PHYS_STATE_SLEEP)
		p->peer->phys = PHYS_STATE_POLLING; /* polling wakes a sleeper: 5.6.4 */
	fabric_link_update(p);
}

void fabric_sma_run_downs(struct fabric *f)
{
	while (!list_empty(&f->downs)) {
		struct fabric_port *p = list_first(&f->downs, struct fabric_port, down);

		list_del(&p->down);
		set_down(p, p->down_phys);
	}
}

/* The answer may have to take the very link that goes down, so that waits until all packets have arrived. */
static void set_state(struct fabric_port *p, u8 state, u8 phys)
{
	if (state == PORT_STATE_DOWN || phys != PHYS_STATE_NOP) {
		p->down_phys = phys == PHYS_STATE_NOP ? p->down_default : phys;
		if (list_empty(&p->down))
			list_add(&p->node->f->downs, &p->down);
		loop_task_queue(p->node->f->loop, &p->node->f->task);
	} else if (state != PORT_STATE_NOP && state != p->state) {
		fabric_link_state(p, state);
	}
}

static u16 set(struct fabric_sma *s, struct fabric_port *p)
{
	u8 state = wire_get(s->data, PORTINFO_STATE), phys = wire_get(s->data, PORTINFO_PHYS_STATE);
	bool external = !s->n->sw || p->num, ok = true;

	if (external && !state_legal(p, state, phys))
		return MAD_STATUS_BAD_VALUE;
	if (external)
		ok = set_speeds(p, s->data, &s->trap_flags, true);
	s->trap |= s->trap_flags != 0;
	ok &= set_link(p, s->data);
	if (!s->n->sw || !p->num)
		ok &= set_own(p, s->data);
	if (external)
		set_state(p, state, phys);
	fabric_ca_sync(p);
	return ok ? 0 : MAD_STATUS_BAD_VALUE;
}

u16 fabric_sma_port_info(struct fabric_sma *s)
{
	struct fabric_port *p = fabric_sma_port(s, s->mod & PORTINFO_MOD_PORT_MASK);
	u16 status = 0;

	if (!p || (!s->n->sw && s->set && p != s->self))
		return MAD_STATUS_BAD_VALUE;
	if (s->set)
		status = set(s, p);
	get(s, p);
	return status;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SMA: PortInfo (IBTA 14.2.5.6), and MLNXExtendedPortInfo. */
#include "fabric/fabric_internal.h"

/* The port of an attribute modifier: 0 is the CA's own port, or port 0 of a switch. */
struct fabric_port *fabric_sma_port(struct fabric_sma *s, u32 num)
{
	if (!s->n->sw && !num)
		return s->in;
	return num <= s->n->nports ? &s->n->ports[num] : NULL;
}

/* Fields of the management port: the CA's own, or port 0 of a switch. */
static void get_own(const struct fabric_sma *s, const struct fabric_port *p, u8 *d)
{
	bool hide = p->mkey_protect != MKEY_PROTECT_NONE && !s->mkey_ok;

	wire_set(d, PORTINFO_MKEY, hide ? 0 : p->mkey);
	wire_set(d, PORTINFO_GID_PREFIX, p->prefix);
	wire_set(d, PORTINFO_LID, p->info->lid);
	wire_set(d, PORTINFO_SM_LID, p->info->sm_lid);
	wire_set(d, PORTINFO_CAP_MASK, p->info->cap_mask);
	wire_set(d, PORTINFO_CAP_MASK2,
		 PORT_CAP2_SET_NODE_DESC | PORT_CAP2_LINK_WIDTH_2X | PORT_CAP2_LINK_SPEED_HDR |
			 PORT_CAP2_LINK_SPEED_NDR |
			 (p->node->f->xdr ? PORT_CAP2_EXT_SPEEDS2 | PORT_CAP2_LINK_SPEED_XDR : 0));
	wire_set(d, PORTINFO_MKEY_LEASE, p->mkey_lease);
	wire_set(d, PORTINFO_MKEY_PROTECT, p->mkey_protect);
	wire_set(d, PORTINFO_LMC, p->info->lmc);
	wire_set(d, PORTINFO_SM_SL, p->info->sm_sl);
	wire_set(d, PORTINFO_MKEY_VIOLATIONS, p->info->mkey_violations);
	wire_set(d, PORTINFO_GUID_CAP, p->ca ? p->ca->wire.attr.gids : 1);
	wire_set(d, PORTINFO_SUBNET_TIMEOUT, p->info->subnet_timeout);
	wire_set(d, PORTINFO_RESP_TIME, 16);
	wire_set(d, PORTINFO_MC_PKEY_TRAP_SUPPRESS, p->mc_trap_suppress);
	wire_set(d, PORTINFO_INIT_TYPE, p->init_type);
}

#define EXT_BITS (BIT(LINK_SPEED_EXT2_SHIFT) - 1) /* of LinkSpeedExt; LinkSpeedExt2 is above them */

static void sma_port_get_ext_speeds(const struct wire_portinfo *info, u8 *d)
{
	bool off = info->speed_ext_enabled == LINK_SPEED_EXT_DISABLE;

	wire_set(d, PORTINFO_SPEED_EXT_SUPPORTED, info->speed_ext_supported & EXT_BITS);
	wire_set(d, PORTINFO_SPEED_EXT_ENABLED, info->speed_ext_supported ? info->speed_ext_enabled & EXT_BITS : 0);
	wire_set(d, PORTINFO_SPEED_EXT_ACTIVE, info->speed_ext_active & EXT_BITS);
	wire_set(d, PORTINFO_SPEED_EXT2_SUPPORTED, info->speed_ext_supported >> LINK_SPEED_EXT2_SHIFT);
	wire_set(d, PORTINFO_SPEED_EXT2_ENABLED, off ? 0 : info->speed_ext_enabled >> LINK_SPEED_EXT2_SHIFT);
	wire_set(d, PORTINFO_SPEED_EXT2_ACTIVE, info->speed_ext_active >> LINK_SPEED_EXT2_SHIFT);
}

static void sma_port_get(const struct fabric_sma *s, const struct fabric_port *p)
{
	const struct wire_portinfo *info = p->info;
	u8 *d = s->data;

	memset(d, 0, SMP_DATA_SIZE);
	if (!s->n->sw || !p->num)
		get_own(s, p, d);
	wire_set(d, PORTINFO_WIDTH_ENABLED, info->width_enabled);
	wire_set(d, PORTINFO_WIDTH_SUPPORTED, info->width_supported);
	wire_set(d, PORTINFO_WIDTH_ACTIVE, info->width_active);
	wire_set(d, PORTINFO_SPEED_SUPPORTED, info->speed_supported);
	wire_set(d, PORTINFO_SPEED_ENABLED, info->speed_enabled);
	wire_set(d, PORTINFO_SPEED_ACTIVE, info->speed_active);
	sma_port_get_ext_speeds(info, d);
	wire_set(d, PORTINFO_LOCAL_PORT, s->in->num);
	wire_set(d, PORTINFO_STATE, list_empty(&p->down) ? info->state : PORT_STATE_DOWN);
	wire_set(d, PORTINFO_PHYS_STATE, list_empty(&p->down) ? info->phys_state : p->down_phys);
	wire_set(d, PORTINFO_LINK_DOWN_DEFAULT, p->down_default);
	wire_set(d, PORTINFO_NEIGHBOR_MTU, info->mtu_active);
	wire_set(d, PORTINFO_MTU_CAP, info->mtu_cap);
	wire_set(d, PORTINFO_VL_CAP, s->n->f->vl_cap);
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
	wire_set(d, PORTINFO_PKEY_VIOLATIONS, info->pkey_violations);
	wire_set(d, PORTINFO_QKEY_VIOLATIONS, info->qkey_violations);
	wire_set(d, PORTINFO_LOCAL_PHY_ERRORS, p->phy_err_thr);
	wire_set(d, PORTINFO_OVERRUN_ERRORS, p->overrun_thr);
	wire_set(d, PORTINFO_MAX_CREDIT_HINT, FABRIC_VL_BLOCKS);
}

/*
 * May the port go from its state to @want? IBTA 14.2.5.6: Down always, Armed from Initialize (again from Armed), Active
 * from Armed (again from Active).
 */
static bool state_legal(const struct fabric_port *p, u8 want, u8 phys)
{
	static const u8 from[PORT_STATE_ACTIVE + 1] = {
		[PORT_STATE_NOP] = 0xff,
		[PORT_STATE_DOWN] = 0xff,
		[PORT_STATE_ARMED] = BIT(PORT_STATE_INIT) | BIT(PORT_STATE_ARMED),
		[PORT_STATE_ACTIVE] = BIT(PORT_STATE_ARMED) | BIT(PORT_STATE_ACTIVE),
	};

	if (want > PORT_STATE_ACTIVE || !(from[want] & BIT(p->info->state)))
		return false;
	if (phys != PHYS_STATE_NOP && want != PORT_STATE_DOWN && want != PORT_STATE_NOP)
		return false; /* a physical state requires Down or no change (C14-34) */
	return phys <= PHYS_STATE_DISABLED;
}

/* *Enabled fields: 0 is no change, @all is all supported; else a subset of the supported ones. False: invalid. */
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

/*
 * LinkSpeedExtEnabled and LinkSpeedExt2Enabled: 0 for "no change" and all ones for "all supported"; 30 in the first
 * disables the extended speeds.
 */
static bool set_ext_speeds(struct fabric_port *p, const u8 *d, bool *changed)
{
	u8 ext = wire_get(d, PORTINFO_SPEED_EXT_ENABLED), ext2 = wire_get(d, PORTINFO_SPEED_EXT2_ENABLED);
	u8 supported = p->info->speed_ext_supported, *enabled = &p->info->speed_ext_enabled;
	u8 low = *enabled & EXT_BITS, high = *enabled >> LINK_SPEED_EXT2_SHIFT, old = *enabled;
	bool ok, ignored = false;

	if (!supported && ext != LINK_SPEED_EXT_DISABLE)
		return true;
	if (ext == LINK_SPEED_EXT_DISABLE) {
		*enabled = ext;
		*changed |= old != *enabled;
		return true;
	}
	if (old == LINK_SPEED_EXT_DISABLE)
		low = high = 0;
	ok = set_enabled(&low, ext, supported & EXT_BITS, LINK_SPEED_EXT_ALL_SUPPORTED, &ignored);
	ok &= set_enabled(&high, ext2, supported >> LINK_SPEED_EXT2_SHIFT, 7, &ignored);
	if (low || high)
		*enabled = (u8)(low | high << LINK_SPEED_EXT2_SHIFT);
	*changed |= old != *enabled;
	return ok;
}

static bool set_speeds(struct fabric_port *p, const u8 *d, u16 *flags)
{
	bool width = false, speed = false, ok;

	ok = set_enabled(&p->info->width_enabled, wire_get(d, PORTINFO_WIDTH_ENABLED), p->info->width_supported,
			 LINK_WIDTH_ALL_SUPPORTED, &width);
	ok &= set_enabled(&p->info->speed_enabled, wire_get(d, PORTINFO_SPEED_ENABLED), p->info->speed_supported,
			  LINK_SPEED_ALL_SUPPORTED, &speed);
	ok &= set_ext_speeds(p, d, &speed);
	*flags |= (width ? NOTICE_144_LINK_WIDTH_ENABLED : 0) | (speed ? NOTICE_144_LINK_SPEED_ENABLED : 0);
	return ok;
}

static bool set_lids(struct fabric_port *p, const u8 *d)
{
	u16 lid = wire_get(d, PORTINFO_LID), sm_lid = wire_get(d, PORTINFO_SM_LID);
	u8 lmc = p->ca ? wire_get(d, PORTINFO_LMC) : 0, sm_sl = wire_get(d, PORTINFO_SM_SL);
	bool lid_ok = wire_lid_is_unicast(lid) && lid + BIT(lmc) - 1 <= WIRE_LID_UNICAST_MAX,
	     sm_ok = wire_lid_is_unicast(sm_lid);
	bool lid_new = lid_ok && (lid != p->info->lid || lmc != p->info->lmc);
	bool sm_new = sm_ok && (sm_lid != p->info->sm_lid || sm_sl != p->info->sm_sl);

	if (lid_ok) {
		p->info->lid = lid;
		p->info->lmc = lmc;
	}
	if (sm_ok) {
		p->info->sm_lid = sm_lid;
		p->info->sm_sl = sm_sl;
	}
	if (p->ca && lid_new)
		fabric_ca_event(p, WIRE_PORT_LID_CHANGE);
	if (p->ca && sm_new)
		fabric_ca_event(p, WIRE_PORT_SM_CHANGE);
	return lid_ok && sm_ok;
}

static bool set_own(struct fabric_port *p, const u8 *d)
{
	struct wire_port_attr *a = p->ca ? &p->ca->wire.attr : NULL;
	u64 prefix = wire_get(d, PORTINFO_GID_PREFIX);
	u32 i;
	bool ok;

	p->mkey = wire_get(d, PORTINFO_MKEY);
	p->mkey_lease = wire_get(d, PORTINFO_MKEY_LEASE);
	p->mkey_protect = wire_get(d, PORTINFO_MKEY_PROTECT);
	p->info->subnet_timeout = wire_get(d, PORTINFO_SUBNET_TIMEOUT);
	p->mc_trap_suppress = wire_get(d, PORTINFO_MC_PKEY_TRAP_SUPPRESS);
	p->init_type = wire_get(d, PORTINFO_INIT_TYPE);
	if (!wire_get(d, PORTINFO_MKEY_VIOLATIONS))
		p->info->mkey_violations = 0;
	if (p->prefix != prefix) {
		p->prefix = prefix;
		for (i = 0; a && i < a->gids; i++)
			if (wire_gid_guid(&a->gid[i]))
				a->gid[i] = wire_gid_make(prefix, wire_gid_guid(&a->gid[i]));
		if (a)
			fabric_ca_event(p, WIRE_PORT_GID_CHANGE);
	}
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
		p->info->mtu_active = min(mtu, p->info->mtu_cap);
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
		p->info->pkey_violations = 0;
	if (!wire_get(d, PORTINFO_QKEY_VIOLATIONS))
		p->info->qkey_violations = 0;
	return ok;
}

/* PortState Down retrains the link; PortPhysicalState Disabled and Sleep take it down until Polling is set. */
void fabric_sma_run_downs(struct fabric *f)
{
	while (!list_empty(&f->downs)) {
		struct fabric_port *p = list_first(&f->downs, struct fabric_port, down);
		u8 phys = p->down_phys;

		list_del(&p->down);
		fabric_link_disconnect(p);
		p->info->phys_state = phys;
		if (phys == PHYS_STATE_POLLING)
			fabric_link_wake(p->peer);
		fabric_link_update(p);
	}
}

/* The response may need this link, so the state change waits until all packets in flight have arrived. */
static void set_state(struct fabric_port *p, u8 state, u8 phys)
{
	if (state == PORT_STATE_DOWN || phys != PHYS_STATE_NOP) {
		p->down_phys = phys == PHYS_STATE_NOP ? p->down_default : phys;
		if (list_empty(&p->down))
			list_add(&p->node->f->downs, &p->down);
		loop_task_queue(p->node->f->loop, &p->node->f->task);
	} else if (state != PORT_STATE_NOP && state != p->info->state) {
		fabric_link_state(p, state);
	}
}

static u16 sma_port_set(struct fabric_sma *s, struct fabric_port *p)
{
	u8 state = wire_get(s->data, PORTINFO_STATE), phys = wire_get(s->data, PORTINFO_PHYS_STATE);
	bool external = !s->n->sw || p->num, ok = true;

	if (external && !state_legal(p, state, phys))
		return MAD_STATUS_BAD_VALUE;
	if (external)
		ok = set_speeds(p, s->data, &s->trap_flags);
	s->trap |= s->trap_flags != 0;
	ok &= set_link(p, s->data);
	if (!s->n->sw || !p->num)
		ok &= set_own(p, s->data);
	if (external)
		set_state(p, state, phys);
	return ok ? 0 : MAD_STATUS_BAD_VALUE;
}

u16 fabric_sma_port_info(struct fabric_sma *s)
{
	struct fabric_port *p = fabric_sma_port(s, s->mod & PORTINFO_MOD_PORT_MASK);
	u16 status = 0;

	if (!p || (!s->n->sw && s->set && p != s->self))
		return MAD_STATUS_BAD_VALUE;
	if (s->set)
		status = sma_port_set(s, p);
	sma_port_get(s, p);
	return status;
}

/* MLNXExtendedPortInfo: FDR10. The attribute modifier is the port. */
u16 fabric_sma_mlnx_ext_port_info(struct fabric_sma *s)
{
	struct fabric_port *p = fabric_sma_port(s, s->mod & PORTINFO_MOD_PORT_MASK);
	u8 *d = s->data, want = wire_get(d, MLNXEXTPORT_SPEED_ENABLED);
	u16 status = 0;

	if (!fabric_is_mlnx(s->n))
		return MAD_STATUS_BAD_METHOD_ATTR;
	if (!p)
		return MAD_STATUS_BAD_VALUE;
	if (s->set && want & ~p->info->fdr10_supported)
		status = MAD_STATUS_BAD_VALUE;
	else if (s->set)
		p->info->fdr10_enabled = want;
	memset(d, 0, SMP_DATA_SIZE);
	wire_set(d, MLNXEXTPORT_SPEED_SUPPORTED, p->info->fdr10_supported);
	wire_set(d, MLNXEXTPORT_SPEED_ENABLED, p->info->fdr10_enabled);
	wire_set(d, MLNXEXTPORT_SPEED_ACTIVE, p->info->fdr10_active);
	return status;
}

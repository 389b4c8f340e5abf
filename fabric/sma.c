// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Subnet management agent of a node (IBTA 14): versions, methods, the M_Key, and the attributes of a node. */
#include "fabric/fabric_internal.h"

static u16 node_desc(struct fabric_sma *s)
{
	if (s->set && memcmp(s->n->desc, s->data, NODEDESC_SIZE)) {
		memcpy(s->n->desc, s->data, NODEDESC_SIZE);
		s->trap = true;
		s->trap_flags = NOTICE_144_NODE_DESC;
	}
	memcpy(s->data, s->n->desc, NODEDESC_SIZE);
	return 0;
}

static u16 node_info(struct fabric_sma *s)
{
	const struct fabric_node *n = s->n;
	u8 *d = s->data;

	memset(d, 0, SMP_DATA_SIZE);
	wire_set(d, NODEINFO_BASE_VERSION, 1);
	wire_set(d, NODEINFO_CLASS_VERSION, 1);
	wire_set(d, NODEINFO_NODE_TYPE, n->type);
	wire_set(d, NODEINFO_NUM_PORTS, n->nports);
	wire_set(d, NODEINFO_SYSTEM_GUID, n->sysguid);
	wire_set(d, NODEINFO_NODE_GUID, n->guid);
	wire_set(d, NODEINFO_PORT_GUID, n->sw ? n->guid : s->in->guid);
	wire_set(d, NODEINFO_PARTITION_CAP, n->sw ? FABRIC_PKEYS : WIRE_PORT_PKEYS);
	wire_set(d, NODEINFO_DEVICE_ID, n->devid);
	wire_set(d, NODEINFO_REVISION, 1);
	wire_set(d, NODEINFO_LOCAL_PORT, s->in->num);
	wire_set(d, NODEINFO_VENDOR_ID, n->vendid);
	return 0;
}

static u16 switch_info(struct fabric_sma *s)
{
	struct fabric_switch *sw = s->n->sw;
	u8 *d = s->data;
	u16 status = 0;

	if (!sw)
		return MAD_STATUS_BAD_METHOD_ATTR;
	if (s->set) {
		if (wire_get(d, SWITCHINFO_LFT_TOP) >= FABRIC_LFT_LIDS)
			status = MAD_STATUS_BAD_VALUE;
		else
			sw->lft_top = wire_get(d, SWITCHINFO_LFT_TOP);
		sw->default_port = wire_get(d, SWITCHINFO_DEFAULT_PORT);
		sw->mc_primary = wire_get(d, SWITCHINFO_DEFAULT_MC_PRIMARY);
		sw->mc_not_primary = wire_get(d, SWITCHINFO_DEFAULT_MC_NOT_PRIMARY);
		sw->life_time = wire_get(d, SWITCHINFO_LIFE_TIME);
		sw->mft_top = wire_get(d, SWITCHINFO_MFT_TOP);
		if (wire_get(d, SWITCHINFO_PORT_STATE_CHANGE))
			sw->state_change = 0;
	}
	memset(d, 0, SMP_DATA_SIZE);
	wire_set(d, SWITCHINFO_LFT_CAP, FABRIC_LFT_LIDS);
	wire_set(d, SWITCHINFO_MFT_CAP, FABRIC_MFT_LIDS);
	wire_set(d, SWITCHINFO_LFT_TOP, sw->lft_top);
	wire_set(d, SWITCHINFO_DEFAULT_PORT, sw->default_port);
	wire_set(d, SWITCHINFO_DEFAULT_MC_PRIMARY, sw->mc_primary);
	wire_set(d, SWITCHINFO_DEFAULT_MC_NOT_PRIMARY, sw->mc_not_primary);
	wire_set(d, SWITCHINFO_LIFE_TIME, sw->life_time);
	wire_set(d, SWITCHINFO_PORT_STATE_CHANGE, sw->state_change);
	wire_set(d, SWITCHINFO_PART_ENFORCE_CAP, FABRIC_PKEYS);
	wire_set(d, SWITCHINFO_INBOUND_ENFORCE_CAP, 1);
	wire_set(d, SWITCHINFO_OUTBOUND_ENFORCE_CAP, 1);
	wire_set(d, SWITCHINFO_FILTER_RAW_IN_CAP, 1);
	wire_set(d, SWITCHINFO_FILTER_RAW_OUT_CAP, 1);
	wire_set(d, SWITCHINFO_ENHANCED_PORT0, s->n->enhanced_port0);
	wire_set(d, SWITCHINFO_MFT_TOP, sw->mft_top);
	return status;
}

static u16 led_info(struct fabric_sma *s)
{
	struct fabric_port *p = fabric_sma_port(s, s->n->sw ? s->mod & 0xff : s->in->num);

	if (!p)
		return MAD_STATUS_BAD_VALUE;
	if (s->set)
		p->led = wire_get(s->data, LEDINFO_MASK);
	memset(s->data, 0, SMP_DATA_SIZE);
	wire_set(s->data, LEDINFO_MASK, p->led);
	return 0;
}

/* Returns a pending trap, or none. */
static u16 sma_notice(struct fabric_sma *s)
{
	memset(s->data, 0, SMP_DATA_SIZE);
	wire_set(s->data, NOTICE_IS_GENERIC, 1);
	wire_set(s->data, NOTICE_TYPE, NOTICE_TYPE_EMPTY);
	return 0;
}

static const struct {
	u16 attr;
	bool get, set;
	u16 (*fn)(struct fabric_sma *s);
} attrs[] = {
	{ SMP_ATTR_NODE_DESC, true, true, node_desc },
	{ SMP_ATTR_NODE_INFO, true, false, node_info },
	{ SMP_ATTR_SWITCH_INFO, true, true, switch_info },
	{ SMP_ATTR_GUID_INFO, true, true, fabric_sma_guid_info },
	{ SMP_ATTR_PORT_INFO, true, true, fabric_sma_port_info },
	{ SMP_ATTR_PKEY_TABLE, true, true, fabric_sma_pkey_table },
	{ SMP_ATTR_SL_TO_VL, true, true, fabric_sma_sl2vl },
	{ SMP_ATTR_VL_ARB, true, true, fabric_sma_vlarb },
	{ SMP_ATTR_LFT, true, true, fabric_sma_lft },
	{ SMP_ATTR_MFT, true, true, fabric_sma_mft },
	{ SMP_ATTR_LED_INFO, true, true, led_info },
	{ SMP_ATTR_NOTICE, true, false, sma_notice },
	{ SMP_ATTR_MLNX_EXT_PORT_INFO, true, true, fabric_sma_mlnx_ext_port_info },
};

static u16 sma_dispatch(struct fabric_sma *s, u16 attr)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		if (attrs[i].attr != attr)
			continue;
		if (s->set ? !attrs[i].set : !attrs[i].get)
			return MAD_STATUS_BAD_METHOD_ATTR;
		return attrs[i].fn(s);
	}
	return MAD_STATUS_BAD_METHOD_ATTR;
}

/*
 * M_Key check (IBTA 14.2.4). False: no response. A matching M_Key stops the lease timer; a mismatch starts it, and its
 * expiry clears M_KeyProtectBits, so that a new subnet manager may read the M_Key.
 */
static bool sma_check_mkey(struct fabric_sma *s, u16 slid)
{
	struct fabric_port *p = s->self;
	u64 now = loop_now(s->n->f->loop).ns;

	if (p->lease_end && now >= p->lease_end) {
		p->mkey_protect = 0;
		p->lease_end = 0;
	}
	s->mkey_ok = !p->mkey || wire_get(s->mad, SMP_MKEY) == p->mkey;
	if (s->mkey_ok) {
		p->lease_end = 0;
		return true;
	}
	if (!s->set && p->mkey_protect < MKEY_PROTECT_GET)
		return true;
	if (p->info->mkey_violations != 0xffff)
		p->info->mkey_violations++;
	if (!p->lease_end && p->mkey_lease && p->mkey_protect != MKEY_PROTECT_GET_NVRAM)
		p->lease_end = now + p->mkey_lease * NSEC_PER_SEC;
	fabric_trap_mkey(p, s->mad, slid);
	return false;
}

bool fabric_sma_trap_repress(struct fabric_node *n, u8 *mad, u16 slid)
{
	u64 tid = wire_get(mad, MAD_TID);
	struct fabric_sma s = { .n = n, .self = fabric_trap_sender(n, tid), .mad = mad, .set = true };

	if (!s.self)
		return false;
	if (sma_check_mkey(&s, slid))
		fabric_trap_end(n, tid);
	return true;
}

bool fabric_sma_request(struct fabric_port *self, struct fabric_port *in, u8 *mad, u16 slid, bool ignore_mkey)
{
	u8 method = wire_get(mad, MAD_METHOD);
	struct fabric_sma s = { .n = self->node,
				.in = in->num || !self->ca ? in : self,
				.self = self,
				.mad = mad,
				.data = mad + SMP_DATA,
				.set = method == MAD_METHOD_SET,
				.mkey_ok = ignore_mkey,
				.mod = (u32)wire_get(mad, MAD_ATTR_MOD) };
	bool directed = wire_get(mad, MAD_CLASS) == MAD_CLASS_SUBN_DIRECTED;
	u16 status;

	if (wire_get(mad, MAD_BASE_VERSION) != MAD_BASE_VERSION_1 ||
	    wire_get(mad, MAD_CLASS_VERSION) != MAD_CLASS_VERSION_SUBN)
		status = MAD_STATUS_BAD_VERSION;
	else if (method != MAD_METHOD_GET && method != MAD_METHOD_SET)
		status = MAD_STATUS_BAD_METHOD;
	else if (!ignore_mkey && !sma_check_mkey(&s, slid))
		return false;
	else
		status = sma_dispatch(&s, wire_get(mad, MAD_ATTR_ID));
	wire_set(mad, MAD_BASE_VERSION, MAD_BASE_VERSION_1);
	wire_set(mad, MAD_METHOD, method == MAD_METHOD_SET ? MAD_METHOD_GET_RESP : method | MAD_METHOD_RESP);
	wire_set(mad, MAD_STATUS, status | (directed ? 0x8000 : 0));
	if (s.trap)
		fabric_trap_local_changes(self, s.trap_flags);
	return true;
}

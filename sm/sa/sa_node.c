// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Records of nodes, ports and links (IBTA 15.2.5): built for every candidate and compared with the request. */
#include "sm/sa/sa_internal.h"

#define NODE(f) WIRE_AT(NODEREC_NODE_INFO, NODEINFO_##f)
#define PORT(f) WIRE_AT(PORTINFOREC_PORT_INFO, PORTINFO_##f)

/* Iterates over end ports: all, or the one with the requested LID. */
static void each_end(struct sa_call *c, bool by_lid, u16 lid, bool (*fn)(struct sa_call *c, struct sm_port *p))
{
	struct sm *sm = c->sm;
	struct sm_port *p;
	struct sm_node *n;
	u32 i;

	if (by_lid) {
		p = sm_port_by_lid(sm, lid);
		if (p && sm_sa_may_see(c, p))
			fn(c, p);
		return;
	}
	list_for_each (n, &sm->nodes, link)
		for (i = 0; i <= n->nports; i++) {
			p = &n->ports[i];
			if (p->guid && p->lid && sm_sa_may_see(c, p) && !fn(c, p))
				return;
		}
}

/* ---- NodeRecord ---- */

static const struct sa_field node_fields[] = {
	{ NODEREC_COMP_BASE_VERSION, NODEREC_NODE_INFO, NODEINFO_BASE_VERSION },
	{ NODEREC_COMP_CLASS_VERSION, NODEREC_NODE_INFO, NODEINFO_CLASS_VERSION },
	{ NODEREC_COMP_NODE_TYPE, NODEREC_NODE_INFO, NODEINFO_NODE_TYPE },
	{ NODEREC_COMP_NUM_PORTS, NODEREC_NODE_INFO, NODEINFO_NUM_PORTS },
	{ NODEREC_COMP_SYSTEM_GUID, NODEREC_NODE_INFO, NODEINFO_SYSTEM_GUID },
	{ NODEREC_COMP_NODE_GUID, NODEREC_NODE_INFO, NODEINFO_NODE_GUID },
	{ NODEREC_COMP_PORT_GUID, NODEREC_NODE_INFO, NODEINFO_PORT_GUID },
	{ NODEREC_COMP_PARTITION_CAP, NODEREC_NODE_INFO, NODEINFO_PARTITION_CAP },
	{ NODEREC_COMP_DEVICE_ID, NODEREC_NODE_INFO, NODEINFO_DEVICE_ID },
	{ NODEREC_COMP_REVISION, NODEREC_NODE_INFO, NODEINFO_REVISION },
	{ NODEREC_COMP_LOCAL_PORT, NODEREC_NODE_INFO, NODEINFO_LOCAL_PORT },
	{ NODEREC_COMP_VENDOR_ID, NODEREC_NODE_INFO, NODEINFO_VENDOR_ID },
	{ NODEREC_COMP_NODE_DESC, NODEREC_NODE_DESC, NODEDESC_STRING },
};

static bool emit_node(struct sa_call *c, struct sm_port *p)
{
	u8 rec[NODEREC_SIZE] = { 0 };

	wire_set(rec, NODEREC_LID, p->lid);
	memcpy(rec + NODEREC_NODE_INFO, p->node->info, NODEINFO_SIZE);
	wire_set(rec, NODE(PORT_GUID), p->guid);
	wire_set(rec, NODE(LOCAL_PORT), p->num);
	memcpy(rec + NODEREC_NODE_DESC, p->node->desc, NODEDESC_SIZE);
	return !sm_sa_match(c, rec, node_fields, ARRAY_SIZE(node_fields)) || sm_sa_emit(c, rec);
}

void sm_sa_node_record(struct sa_call *c)
{
	each_end(c, sm_sa_comp(c, NODEREC_COMP_LID), wire_get(c->query, NODEREC_LID), emit_node);
}

/* ---- PortInfoRecord ---- */

#define MATCH_CAP_MASK (1u << 31) /* attribute modifier: the mask requests bits that are set, 15.2.5.3 */

static const struct sa_field port_fields[] = {
	{ PORTINFOREC_COMP_PORT, 0, PORTINFOREC_PORT },
	{ PORTINFOREC_COMP_MKEY, PORTINFOREC_PORT_INFO, PORTINFO_MKEY },
	{ PORTINFOREC_COMP_GID_PREFIX, PORTINFOREC_PORT_INFO, PORTINFO_GID_PREFIX },
	{ PORTINFOREC_COMP_BASE_LID, PORTINFOREC_PORT_INFO, PORTINFO_LID },
	{ PORTINFOREC_COMP_SM_LID, PORTINFOREC_PORT_INFO, PORTINFO_SM_LID },
	{ PORTINFOREC_COMP_DIAG_CODE, PORTINFOREC_PORT_INFO, PORTINFO_DIAG_CODE },
	{ PORTINFOREC_COMP_MKEY_LEASE, PORTINFOREC_PORT_INFO, PORTINFO_MKEY_LEASE },
	{ PORTINFOREC_COMP_LOCAL_PORT, PORTINFOREC_PORT_INFO, PORTINFO_LOCAL_PORT },
	{ PORTINFOREC_COMP_WIDTH_ENABLED, PORTINFOREC_PORT_INFO, PORTINFO_WIDTH_ENABLED },
	{ PORTINFOREC_COMP_WIDTH_SUPPORTED, PORTINFOREC_PORT_INFO, PORTINFO_WIDTH_SUPPORTED },
	{ PORTINFOREC_COMP_WIDTH_ACTIVE, PORTINFOREC_PORT_INFO, PORTINFO_WIDTH_ACTIVE },
	{ PORTINFOREC_COMP_SPEED_SUPPORTED, PORTINFOREC_PORT_INFO, PORTINFO_SPEED_SUPPORTED },
	{ PORTINFOREC_COMP_STATE, PORTINFOREC_PORT_INFO, PORTINFO_STATE },
	{ PORTINFOREC_COMP_PHYS_STATE, PORTINFOREC_PORT_INFO, PORTINFO_PHYS_STATE },
	{ PORTINFOREC_COMP_LINK_DOWN_DEFAULT, PORTINFOREC_PORT_INFO, PORTINFO_LINK_DOWN_DEFAULT },
	{ PORTINFOREC_COMP_MKEY_PROTECT, PORTINFOREC_PORT_INFO, PORTINFO_MKEY_PROTECT },
	{ PORTINFOREC_COMP_LMC, PORTINFOREC_PORT_INFO, PORTINFO_LMC },
	{ PORTINFOREC_COMP_SPEED_ACTIVE, PORTINFOREC_PORT_INFO, PORTINFO_SPEED_ACTIVE },
	{ PORTINFOREC_COMP_SPEED_ENABLED, PORTINFOREC_PORT_INFO, PORTINFO_SPEED_ENABLED },
	{ PORTINFOREC_COMP_NEIGHBOR_MTU, PORTINFOREC_PORT_INFO, PORTINFO_NEIGHBOR_MTU },
	{ PORTINFOREC_COMP_SM_SL, PORTINFOREC_PORT_INFO, PORTINFO_SM_SL },
	{ PORTINFOREC_COMP_VL_CAP, PORTINFOREC_PORT_INFO, PORTINFO_VL_CAP },
	{ PORTINFOREC_COMP_INIT_TYPE, PORTINFOREC_PORT_INFO, PORTINFO_INIT_TYPE },
	{ PORTINFOREC_COMP_VL_HIGH_LIMIT, PORTINFOREC_PORT_INFO, PORTINFO_VL_HIGH_LIMIT },
	{ PORTINFOREC_COMP_VL_ARB_HIGH_CAP, PORTINFOREC_PORT_INFO, PORTINFO_VL_ARB_HIGH_CAP },
	{ PORTINFOREC_COMP_VL_ARB_LOW_CAP, PORTINFOREC_PORT_INFO, PORTINFO_VL_ARB_LOW_CAP },
	{ PORTINFOREC_COMP_INIT_TYPE_REPLY, PORTINFOREC_PORT_INFO, PORTINFO_INIT_TYPE_REPLY },
	{ PORTINFOREC_COMP_MTU_CAP, PORTINFOREC_PORT_INFO, PORTINFO_MTU_CAP },
	{ PORTINFOREC_COMP_VL_STALL_COUNT, PORTINFOREC_PORT_INFO, PORTINFO_VL_STALL_COUNT },
	{ PORTINFOREC_COMP_HOQ_LIFE, PORTINFOREC_PORT_INFO, PORTINFO_HOQ_LIFE },
	{ PORTINFOREC_COMP_OPER_VLS, PORTINFOREC_PORT_INFO, PORTINFO_OPER_VLS },
	{ PORTINFOREC_COMP_PART_ENFORCE_IN, PORTINFOREC_PORT_INFO, PORTINFO_PART_ENFORCE_IN },
	{ PORTINFOREC_COMP_PART_ENFORCE_OUT, PORTINFOREC_PORT_INFO, PORTINFO_PART_ENFORCE_OUT },
	{ PORTINFOREC_COMP_FILTER_RAW_IN, PORTINFOREC_PORT_INFO, PORTINFO_FILTER_RAW_IN },
	{ PORTINFOREC_COMP_FILTER_RAW_OUT, PORTINFOREC_PORT_INFO, PORTINFO_FILTER_RAW_OUT },
	{ PORTINFOREC_COMP_MKEY_VIOLATIONS, PORTINFOREC_PORT_INFO, PORTINFO_MKEY_VIOLATIONS },
	{ PORTINFOREC_COMP_PKEY_VIOLATIONS, PORTINFOREC_PORT_INFO, PORTINFO_PKEY_VIOLATIONS },
	{ PORTINFOREC_COMP_QKEY_VIOLATIONS, PORTINFOREC_PORT_INFO, PORTINFO_QKEY_VIOLATIONS },
	{ PORTINFOREC_COMP_GUID_CAP, PORTINFOREC_PORT_INFO, PORTINFO_GUID_CAP },
	{ PORTINFOREC_COMP_CLIENT_REREGISTER, PORTINFOREC_PORT_INFO, PORTINFO_CLIENT_REREGISTER },
	{ PORTINFOREC_COMP_SUBNET_TIMEOUT, PORTINFOREC_PORT_INFO, PORTINFO_SUBNET_TIMEOUT },
	{ PORTINFOREC_COMP_RESP_TIME, PORTINFOREC_PORT_INFO, PORTINFO_RESP_TIME },
	{ PORTINFOREC_COMP_LOCAL_PHY_ERRORS, PORTINFOREC_PORT_INFO, PORTINFO_LOCAL_PHY_ERRORS },
	{ PORTINFOREC_COMP_OVERRUN_ERRORS, PORTINFOREC_PORT_INFO, PORTINFO_OVERRUN_ERRORS },
	{ PORTINFOREC_COMP_MAX_CREDIT_HINT, PORTINFOREC_PORT_INFO, PORTINFO_MAX_CREDIT_HINT },
	{ PORTINFOREC_COMP_LINK_ROUND_TRIP, PORTINFOREC_PORT_INFO, PORTINFO_LINK_ROUND_TRIP },
	{ PORTINFOREC_COMP_CAP_MASK2, PORTINFOREC_PORT_INFO, PORTINFO_CAP_MASK2 },
	{ PORTINFOREC_COMP_SPEED_EXT_ACTIVE, PORTINFOREC_PORT_INFO, PORTINFO_SPEED_EXT_ACTIVE },
	{ PORTINFOREC_COMP_SPEED_EXT_SUPPORTED, PORTINFOREC_PORT_INFO, PORTINFO_SPEED_EXT_SUPPORTED },
	{ PORTINFOREC_COMP_SPEED_EXT_ENABLED, PORTINFOREC_PORT_INFO, PORTINFO_SPEED_EXT_ENABLED },
};

static bool caps_match(const struct sa_call *c, const u8 *rec)
{
	u32 have = wire_get(rec, PORT(CAP_MASK)), want = wire_get(c->query, PORT(CAP_MASK));

	if (!sm_sa_comp(c, PORTINFOREC_COMP_CAP_MASK))
		return true;
	return wire_get(c->mad, MAD_ATTR_MOD) & MATCH_CAP_MASK ? (have & want) == want : have == want;
}

static bool emit_one_port(struct sa_call *c, const struct sm_port *p, u16 lid)
{
	u8 rec[PORTINFOREC_SIZE] = { 0 };

	if (!p->has_info)
		return true;
	wire_set(rec, PORTINFOREC_END_PORT_LID, lid);
	wire_set(rec, PORTINFOREC_PORT, p->num);
	memcpy(rec + PORTINFOREC_PORT_INFO, p->info, PORTINFO_SIZE);
	if (!c->trusted)
		wire_set(rec, PORT(MKEY), 0);
	return !caps_match(c, rec) || !sm_sa_match(c, rec, port_fields, ARRAY_SIZE(port_fields)) || sm_sa_emit(c, rec);
}

/* All ports of a switch have its LID. */
static bool emit_port(struct sa_call *c, struct sm_port *p)
{
	u32 i;

	if (!sm_node_is_switch(p->node))
		return emit_one_port(c, p, p->lid);
	for (i = 0; i <= p->node->nports; i++)
		if (!emit_one_port(c, &p->node->ports[i], p->lid))
			return false;
	return true;
}

void sm_sa_port_info_record(struct sa_call *c)
{
	each_end(c, sm_sa_comp(c, PORTINFOREC_COMP_LID), wire_get(c->query, PORTINFOREC_END_PORT_LID), emit_port);
}

/* ---- SwitchInfoRecord ---- */

#define SWITCH(f)                                                                 \
	{                                                                         \
		SWITCHINFOREC_COMP_##f, SWITCHINFOREC_SWITCH_INFO, SWITCHINFO_##f \
	}
static const struct sa_field switch_fields[] = {
	SWITCH(LFT_CAP),
	SWITCH(RFT_CAP),
	SWITCH(MFT_CAP),
	SWITCH(LFT_TOP),
	SWITCH(DEFAULT_PORT),
	SWITCH(DEFAULT_MC_PRIMARY),
	SWITCH(DEFAULT_MC_NOT_PRIMARY),
	SWITCH(LIFE_TIME),
	SWITCH(PORT_STATE_CHANGE),
	SWITCH(LIDS_PER_PORT),
	SWITCH(PART_ENFORCE_CAP),
	SWITCH(INBOUND_ENFORCE_CAP),
	SWITCH(OUTBOUND_ENFORCE_CAP),
	SWITCH(FILTER_RAW_IN_CAP),
	SWITCH(FILTER_RAW_OUT_CAP),
	SWITCH(ENHANCED_PORT0),
};

static bool emit_switch(struct sa_call *c, struct sm_port *p)
{
	u8 rec[SWITCHINFOREC_SIZE] = { 0 };

	if (!sm_node_is_switch(p->node))
		return true;
	wire_set(rec, SWITCHINFOREC_LID, p->lid);
	memcpy(rec + SWITCHINFOREC_SWITCH_INFO, p->node->swinfo, SWITCHINFO_SIZE);
	return !sm_sa_match(c, rec, switch_fields, ARRAY_SIZE(switch_fields)) || sm_sa_emit(c, rec);
}

void sm_sa_switch_info_record(struct sa_call *c)
{
	each_end(c, sm_sa_comp(c, SWITCHINFOREC_COMP_LID), wire_get(c->query, SWITCHINFOREC_LID), emit_switch);
}

/* ---- LinkRecord ---- */

static const struct sa_field link_fields[] = {
	{ LINKREC_COMP_FROM_PORT, 0, LINKREC_FROM_PORT },
	{ LINKREC_COMP_TO_PORT, 0, LINKREC_TO_PORT },
	{ LINKREC_COMP_TO_LID, 0, LINKREC_TO_LID },
};

static u16 lid_of(const struct sm_port *p)
{
	return sm_node_is_switch(p->node) ? p->node->ports[0].lid : p->lid;
}

static bool emit_link(struct sa_call *c, const struct sm_port *p)
{
	u8 rec[LINKREC_SIZE] = { 0 };

	if (!p->peer || !sm_sa_may_see(c, p->peer))
		return true;
	wire_set(rec, LINKREC_FROM_LID, lid_of(p));
	wire_set(rec, LINKREC_FROM_PORT, p->num);
	wire_set(rec, LINKREC_TO_PORT, p->peer->num);
	wire_set(rec, LINKREC_TO_LID, lid_of(p->peer));
	return !sm_sa_match(c, rec, link_fields, ARRAY_SIZE(link_fields)) || sm_sa_emit(c, rec);
}

static bool emit_links(struct sa_call *c, struct sm_port *p)
{
	u32 i;

	if (!sm_node_is_switch(p->node))
		return emit_link(c, p);
	for (i = 1; i <= p->node->nports; i++)
		if (!emit_link(c, &p->node->ports[i]))
			return false;
	return true;
}

void sm_sa_link_record(struct sa_call *c)
{
	each_end(c, sm_sa_comp(c, LINKREC_COMP_FROM_LID), wire_get(c->query, LINKREC_FROM_LID), emit_links);
}

/* ---- SMInfoRecord ---- */

static const struct sa_field sm_fields[] = {
	{ SMINFOREC_COMP_LID, 0, SMINFOREC_LID },
	{ SMINFOREC_COMP_GUID, SMINFOREC_SM_INFO, SMINFO_GUID },
	{ SMINFOREC_COMP_SM_KEY, SMINFOREC_SM_INFO, SMINFO_SM_KEY },
	{ SMINFOREC_COMP_ACT_COUNT, SMINFOREC_SM_INFO, SMINFO_ACT_COUNT },
	{ SMINFOREC_COMP_PRIORITY, SMINFOREC_SM_INFO, SMINFO_PRIORITY },
	{ SMINFOREC_COMP_STATE, SMINFOREC_SM_INFO, SMINFO_STATE },
};

/* The SM_Key is zero in answers to requests without it (15.4.1.2). */
static void emit_sm(struct sa_call *c, u8 *rec)
{
	if (!c->trusted)
		wire_set(rec, WIRE_AT(SMINFOREC_SM_INFO, SMINFO_SM_KEY), 0);
	if (sm_sa_match(c, rec, sm_fields, ARRAY_SIZE(sm_fields)))
		sm_sa_emit(c, rec);
}

void sm_sa_sm_info_record(struct sa_call *c)
{
	const struct sm_other *o;
	u8 rec[SMINFOREC_SIZE] = { 0 };
	u32 i;

	wire_set(rec, SMINFOREC_LID, c->sm->self ? c->sm->self->lid : 0);
	sm_sminfo_fill(c->sm, rec + SMINFOREC_SM_INFO);
	emit_sm(c, rec);
	for (i = 0; i < c->sm->nothers; i++) {
		o = &c->sm->others[i];
		if (!o->port || !sm_sa_may_see(c, o->port))
			continue;
		memset(rec, 0, sizeof(rec));
		wire_set(rec, SMINFOREC_LID, o->port->lid);
		wire_set(rec, WIRE_AT(SMINFOREC_SM_INFO, SMINFO_GUID), o->guid);
		wire_set(rec, WIRE_AT(SMINFOREC_SM_INFO, SMINFO_ACT_COUNT), o->act_count);
		wire_set(rec, WIRE_AT(SMINFOREC_SM_INFO, SMINFO_PRIORITY), o->priority);
		wire_set(rec, WIRE_AT(SMINFOREC_SM_INFO, SMINFO_STATE), o->state);
		emit_sm(c, rec);
	}
}

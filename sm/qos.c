// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* QoS (IBTA 7.6.6, 7.6.9): operational VLs, SL-to-VL mapping and VL arbitration tables. */
#include "sm/sm_internal.h"

#define HIGH_WEIGHT 4  /* of each VL in the high-priority table, in 64 bytes */
#define LOW_WEIGHT  64 /* of each VL in the low-priority table */

static u8 vl_cap(const struct sm_port *p)
{
	u8 cap = wire_get(p->info, PORTINFO_VL_CAP);

	return wire_vl_count(cap) ? cap : 1;
}

/* Operational VLs: the minimum of both ends. */
u8 sm_qos_oper_vls(const struct sm_port *p)
{
	return p->peer && p->peer->has_info ? min(vl_cap(p), vl_cap(p->peer)) : vl_cap(p);
}

void sm_qos_sl2vl(const struct sm *sm, const struct sm_port *out, u8 *table)
{
	u8 vls = wire_vl_count(sm_qos_oper_vls(out)), sl;

	memset(table, 0, SLTOVL_SIZE);
	for (sl = 0; sl < 16; sl++)
		wire_set(table, SLTOVL_VL(sl), sl % vls);
}

/*
 * Both arbitration tables serve every VL; they fit into the first blocks. The other blocks are set to weight 0, too:
 * another manager may have used them.
 */
void sm_qos_vlarb(const struct sm *sm, const struct sm_port *p, u8 block, u8 *table)
{
	u8 vls = wire_vl_count(sm_qos_oper_vls(p)), i;
	bool high = block == VLARB_HIGH_LO;

	memset(table, 0, VLARB_SIZE);
	if (!sm->cfg.qos || (block != VLARB_LOW_LO && !high))
		return;
	for (i = 0; i < vls; i++) {
		wire_set(table, VLARB_VL(i), i);
		wire_set(table, VLARB_WEIGHT(i), high ? HIGH_WEIGHT : LOW_WEIGHT);
	}
}

/* ---- Set(SLtoVLMappingTable), Set(VLArbitrationTable) ---- */

static void on_table(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	if (mad && !sm_smp_status(mad))
		return;
	smp->port->qos_sent = false;
	sm_sweep_error(sm, smp, "a VL table is not set");
}

static struct sm_smp *set_table(struct sm *sm, struct sm_port *p, u16 attr, u32 mod)
{
	struct sm_smp *smp = sm_smp_new(sm, p->node, attr, mod, on_table);

	if (!smp)
		return NULL;
	smp->method = MAD_METHOD_SET;
	smp->port = p;
	return smp;
}

static void push_sl2vl(struct sm *sm, struct sm_port *p)
{
	u32 inputs = sm_node_is_switch(p->node) ? p->node->nports + 1u : 1, i;
	struct sm_smp *smp;

	for (i = 0; i < inputs; i++) {
		smp = set_table(sm, p, SMP_ATTR_SL_TO_VL, sm_node_is_switch(p->node) ? i << 8 | p->num : 0);
		if (!smp)
			return;
		sm_qos_sl2vl(sm, p, smp->data);
		sm_smp_queue(sm, smp);
	}
}

static void push_vlarb(struct sm *sm, struct sm_port *p)
{
	static const struct {
		u8 block, begin; /* entries before the block */
		struct wire_field cap;
	} blocks[] = {
		{ VLARB_LOW_LO, 0, PORTINFO_VL_ARB_LOW_CAP },
		{ VLARB_LOW_HI, VLARB_PER_BLOCK, PORTINFO_VL_ARB_LOW_CAP },
		{ VLARB_HIGH_LO, 0, PORTINFO_VL_ARB_HIGH_CAP },
		{ VLARB_HIGH_HI, VLARB_PER_BLOCK, PORTINFO_VL_ARB_HIGH_CAP },
	};
	struct sm_smp *smp;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(blocks); i++) {
		if (wire_get(p->info, blocks[i].cap) <= blocks[i].begin)
			continue;
		smp = set_table(sm, p, SMP_ATTR_VL_ARB,
				(u32)blocks[i].block << 16 | (sm_node_is_switch(p->node) ? p->num : 0));
		if (!smp)
			return;
		sm_qos_vlarb(sm, p, blocks[i].block, smp->data);
		sm_smp_queue(sm, smp);
	}
}

void sm_qos_push(struct sm *sm, struct sm_port *p)
{
	if (!sm->cfg.qos || (sm_node_is_switch(p->node) && !p->num) || !p->has_info || !p->peer)
		return;
	if (p->qos_sent && sm_port_state(p) != PORT_STATE_INIT)
		return;
	p->qos_sent = true;
	if (wire_vl_count(vl_cap(p)) > 1 &&
	    (sm_node_is_switch(p->node) || wire_get(p->info, PORTINFO_CAP_MASK) & PORT_CAP_SL_MAP))
		push_sl2vl(sm, p);
	push_vlarb(sm, p);
}

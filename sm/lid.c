// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* LID assignment (IBTA 14.4.3): ports keep valid LIDs; new ports, and duplicates, get the lowest free range. */
#include "sm/sm_internal.h"

static u8 lmc_of(const struct sm *sm, const struct sm_port *p)
{
	return sm_node_is_switch(p->node) ? 0 : sm->cfg.lmc;
}

static bool is_free(const struct sm *sm, u32 lid, u8 lmc)
{
	u32 i;

	if (!lid || lid % BIT(lmc) || lid + BIT(lmc) > SM_LIDS)
		return false;
	for (i = 0; i < BIT(lmc); i++)
		if (sm->by_lid[lid + i])
			return false;
	return true;
}

static void lid_reserve(struct sm *sm, struct sm_port *p, u32 lid, u8 lmc)
{
	u32 i;

	p->lid = (u16)lid;
	p->lmc = lmc;
	for (i = 0; i < BIT(lmc); i++)
		sm->by_lid[lid + i] = p;
}

void sm_lid_release(struct sm *sm, struct sm_port *p)
{
	u32 i;

	for (i = 0; p->lid && i < BIT(p->lmc); i++)
		if (sm->by_lid[p->lid + i] == p)
			sm->by_lid[p->lid + i] = NULL;
	p->lid = 0;
}

static void lid_keep(struct sm *sm, struct sm_port *p)
{
	u32 lid = wire_get(p->info, PORTINFO_LID);
	u8 lmc = lmc_of(sm, p);

	if (p->lid)
		return;
	if (is_free(sm, lid, lmc))
		lid_reserve(sm, p, lid, lmc);
	else if (lid && wire_lid_is_unicast((u16)lid))
		sm_log(sm, LOG_INFO, "%s had LID %u, which another port uses", sm_node_name(p->node), lid);
}

static u32 lid_assign(struct sm *sm, struct sm_port *p, u32 from)
{
	u8 lmc = lmc_of(sm, p);
	u32 lid;

	if (p->lid)
		return from;
	for (lid = (from + BIT(lmc) - 1) & ~(BIT(lmc) - 1); lid + BIT(lmc) <= SM_LIDS; lid += BIT(lmc))
		if (is_free(sm, lid, lmc)) {
			lid_reserve(sm, p, lid, lmc);
			return lid + BIT(lmc);
		}
	sm_log(sm, LOG_ERROR, "%s: no free LID", sm_node_name(p->node));
	sm->errors++;
	return from;
}

/* Iterates over the end ports that are present: they keep their LIDs, or, with @next, get one from *next on. */
static void each_end(struct sm *sm, u32 *next)
{
	struct sm_node *n;
	u32 i;

	list_for_each (n, &sm->nodes, link)
		for (i = 0; i <= n->nports; i++) {
			if (!n->ports[i].guid || !n->ports[i].has_info)
				continue;
			if (next)
				*next = lid_assign(sm, &n->ports[i], *next);
			else
				lid_keep(sm, &n->ports[i]);
		}
}

void sm_lid_assign(struct sm *sm)
{
	u32 lid;

	each_end(sm, NULL);
	if (sm->self)
		lid_assign(sm, sm->self, 1);
	each_end(sm, &(u32){ 1 });
	for (lid = SM_LIDS - 1; lid && !sm->by_lid[lid]; lid--)
		;
	sm->max_lid = (u16)lid;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Partition configuration (IBTA 10.9, 14.2.5.7, 18.2.4.2): P_Key tables of end ports, and of the switch ports that they
 * are attached to, for P_Key enforcement.
 */
#include <stdlib.h>

#include "sm/sm_internal.h"

/* ---- membership ---- */

static bool is_whom(const struct sm *sm, const struct sm_port *p, u8 whom)
{
	switch (whom) {
	case SM_WHOM_ALL:
		return true;
	case SM_WHOM_CAS:
		return p->node->type == NODE_TYPE_CA;
	case SM_WHOM_SWITCHES:
		return sm_node_is_switch(p->node);
	case SM_WHOM_ROUTERS:
		return p->node->type == NODE_TYPE_ROUTER;
	case SM_WHOM_SELF:
		return p == sm->self;
	default:
		return false; /* virtual ports are not supported */
	}
}

/* The last entry that matches a port decides, by GUID or by keyword. */
static u8 pkey_membership(const struct sm *sm, const struct sm_partition *part, const struct sm_port *p)
{
	const struct sm_partition_member *m;
	u8 is = 0;
	u32 i;

	for (i = 0; i < part->nmembers; i++) {
		m = &part->members[i];
		if (m->whom == SM_WHOM_GUID ? m->guid == p->guid : is_whom(sm, p, m->whom))
			is = m->membership;
	}
	if (part == &sm->parts->part[0] && p == sm->self)
		is |= SM_MEMBER_FULL; /* the SM communicates with all ports */
	return is;
}

/* Not enforced if there is only the default partition, with all ports as full members. */
static bool pkey_enforced(const struct sm *sm)
{
	const struct sm_partition *part = &sm->parts->part[0];
	const struct sm_partition_member *last = part->members + part->nmembers - 1;

	return sm->parts->n > 1 || last->whom != SM_WHOM_ALL || last->membership != SM_MEMBER_FULL;
}

struct keys {
	u16 key[SM_PKEYS_MAX];
	u16 n;
};

static void pkey_add(struct keys *k, u16 key, bool front)
{
	if (k->n == SM_PKEYS_MAX)
		return;
	if (front)
		memmove(k->key + 1, k->key, k->n * sizeof(*k->key));
	k->key[front ? 0 : k->n] = key;
	k->n++;
}

/* The default partition has index 0 unless the configuration assigns it to another one. */
static void pkey_collect(const struct sm *sm, const struct sm_port *p, struct keys *k)
{
	const struct sm_partition *part;
	u32 i;
	u8 is;

	k->n = 0;
	for (i = 0; i < sm->parts->n; i++) {
		part = &sm->parts->part[i];
		is = pkey_membership(sm, part, p);
		if (is & SM_MEMBER_LIMITED)
			pkey_add(k, part->pkey, part->index0);
		if (is & SM_MEMBER_FULL)
			pkey_add(k, part->pkey | WIRE_PKEY_FULL, part->index0);
	}
}

static u32 pkey_capacity(const struct sm_port *p)
{
	return max((u32)wire_get(p->node->info, NODEINFO_PARTITION_CAP), 1u);
}

static bool same_partition(u16 a, u16 b)
{
	return (a & WIRE_PKEY_BASE) == (b & WIRE_PKEY_BASE);
}

/*
 * Assigns to each wanted P_Key the index of that P_Key in @have, or, without @exact, of a P_Key of the same partition.
 */
static void pkey_keep_indexes(const struct sm_port *have, struct keys *want, struct keys *k, bool exact)
{
	u32 i, at;

	for (i = 0; i < want->n; i++)
		for (at = 0; want->key[i] && at < have->npkeys; at++) {
			if (k->key[at] || !same_partition(have->pkeys[at], want->key[i]) ||
			    (exact && have->pkeys[at] != want->key[i]))
				continue;
			k->key[at] = want->key[i];
			want->key[i] = 0;
		}
}

/*
 * Queue pairs refer to P_Keys by index, so a P_Key keeps its index. A removed P_Key leaves a free index for a new one.
 * Index 0 always belongs to the first partition.
 */
static void pkey_assign_indexes(const struct sm_port *p, struct keys *k)
{
	struct keys want = *k;
	u32 i, at = 0;

	if (!p->npkeys || !k->n || !same_partition(p->pkeys[0], k->key[0]))
		return;
	memset(k, 0, sizeof(*k));
	pkey_keep_indexes(p, &want, k, true);
	pkey_keep_indexes(p, &want, k, false);
	for (i = 0; i < want.n; i++) {
		while (want.key[i] && k->key[at])
			at++;
		if (want.key[i])
			k->key[at] = want.key[i];
	}
	for (i = 0; i < SM_PKEYS_MAX; i++)
		if (k->key[i])
			k->n = (u16)(i + 1);
}

static void pkey_assign(struct sm *sm, struct sm_port *p)
{
	struct keys k;
	u16 *keys;

	pkey_collect(sm, p, &k);
	pkey_assign_indexes(p, &k);
	if (k.n > pkey_capacity(p)) {
		sm_log(sm, LOG_WARN, "%s port %u has a table of %u P_Keys, %u are required", sm_node_name(p->node),
		       p->num, pkey_capacity(p), k.n);
		k.n = (u16)pkey_capacity(p);
	}
	if (p->pkeys && k.n == p->npkeys && !memcmp(p->pkeys, k.key, k.n * sizeof(*k.key)))
		return;
	keys = calloc(k.n + 1u, sizeof(*keys));
	if (!keys) {
		sm->errors++;
		return;
	}
	memcpy(keys, k.key, k.n * sizeof(*keys));
	free(p->pkeys);
	p->pkeys = keys;
	p->npkeys = k.n;
	p->pkeys_sent = 0;
	if (p->peer)
		p->peer->pkeys_sent = 0;
}

/* Removes members from multicast groups of partitions that they have left. */
static void pkey_leave_groups(struct sm *sm)
{
	struct sm_group *g, *tmp;
	struct sm_member *m, *next;

	list_for_each_safe (g, tmp, &sm->groups, link) {
		list_for_each_safe (m, next, &g->members, link)
			if (!sm_pkey_has(m->port, g->pkey))
				sm_group_leave(sm, g, m, m->join_state);
		sm_group_reap(sm, g);
	}
}

static bool node_has_port(const struct sm_node *n, u64 guid)
{
	u32 i;

	for (i = 0; i <= n->nports; i++)
		if (n->ports[i].guid == guid)
			return true;
	return false;
}

/* Warns of members by the GUID of a node instead of a port's, which adds no port. */
static void pkey_check_members(struct sm *sm)
{
	const struct sm_partition *part;
	const struct sm_node *n;
	u32 i, k;

	for (i = 0; i < sm->parts->n; i++) {
		part = &sm->parts->part[i];
		for (k = 0; k < part->nmembers; k++) {
			n = part->members[k].whom == SM_WHOM_GUID ? sm_node_find(sm, part->members[k].guid) : NULL;
			if (n && !node_has_port(n, n->guid))
				sm_log(sm, LOG_WARN,
				       "partition %s: %s is no port but a node: use the GUIDs of its ports", part->name,
				       sm_node_name(n));
		}
	}
	sm->parts_checked = true;
}

void sm_pkey_assign(struct sm *sm)
{
	bool others = sm->next_parts;
	struct sm_group *g;
	struct sm_node *n;
	u32 i;

	if (others) {
		sm_partitions_destroy(sm->parts);
		sm->parts = sm->next_parts;
		sm->next_parts = NULL;
		sm->parts_checked = false;
		list_for_each (g, &sm->groups, link)
			g->well_known = false; /* the new partitions set it again */
		sm_mcast_init(sm);
		sm_log(sm, LOG_INFO, "%u %s", sm->parts->n, plural(sm->parts->n, "partition", "partitions"));
	}
	list_for_each (n, &sm->nodes, link)
		for (i = 0; i <= n->nports; i++)
			if (n->ports[i].guid)
				pkey_assign(sm, &n->ports[i]);
	if (others)
		pkey_leave_groups(sm);
	if (!sm->parts_checked)
		pkey_check_members(sm);
}

/* ---- queries ---- */

bool sm_pkey_has(const struct sm_port *p, u16 pkey)
{
	u32 i;

	for (i = 0; i < p->npkeys; i++)
		if (same_partition(p->pkeys[i], pkey))
			return true;
	return false;
}

static bool pkey_full(const struct sm_port *p, u16 pkey)
{
	u32 i;

	for (i = 0; i < p->npkeys; i++)
		if (p->pkeys[i] == (pkey | WIRE_PKEY_FULL))
			return true;
	return false;
}

bool sm_pkey_match(const struct sm_port *a, const struct sm_port *b, u16 pkey)
{
	return sm_pkey_has(a, pkey) && sm_pkey_has(b, pkey) && (pkey_full(a, pkey) || pkey_full(b, pkey));
}

u16 sm_pkey_common(const struct sm_port *a, const struct sm_port *b)
{
	u32 i;

	for (i = 0; i < a->npkeys; i++)
		if (sm_pkey_match(a, b, a->pkeys[i]))
			return pkey_full(a, a->pkeys[i]) && pkey_full(b, a->pkeys[i]) ? a->pkeys[i] | WIRE_PKEY_FULL
										      : a->pkeys[i];
	return 0;
}

/* ---- Set(P_KeyTable) ---- */

static void on_pkeys(struct sm *sm, struct sm_smp *smp, const u8 *mad)
{
	if (mad && !sm_smp_status(mad))
		return;
	smp->port->pkeys_sent = 0;
	sm_sweep_error(sm, smp, "the P_Key table is not set");
}

/* Writes the whole table once, which removes entries of another SM. */
static void push_table(struct sm *sm, struct sm_port *p, const struct sm_port *of, u32 cap)
{
	u32 blocks = min((cap + PKEYTABLE_PER_BLOCK - 1) / PKEYTABLE_PER_BLOCK, 255u), block, i, at;
	u32 num = sm_node_is_switch(p->node) ? p->num : 0;
	struct sm_smp *smp;

	if (p->pkeys_sent >= blocks && sm_port_state(p) != PORT_STATE_INIT)
		return;
	p->pkeys_sent = (u8)blocks;
	for (block = 0; block < blocks; block++) {
		smp = sm_smp_new(sm, p->node, SMP_ATTR_PKEY_TABLE, num << 16 | block, on_pkeys);
		if (!smp)
			continue;
		smp->method = MAD_METHOD_SET;
		smp->port = p;
		for (i = 0; i < PKEYTABLE_PER_BLOCK; i++) {
			at = block * PKEYTABLE_PER_BLOCK + i;
			wire_set(smp->data, PKEYTABLE_PKEY(i), at < of->npkeys ? of->pkeys[at] : 0);
		}
		sm_smp_queue(sm, smp);
	}
}

static u32 enforce_cap(const struct sm_node *n)
{
	return wire_get(n->swinfo, SWITCHINFO_PART_ENFORCE_CAP);
}

/* Its table must have room for all P_Keys of the attached port: the switch would drop packets with the others. */
bool sm_pkey_enforced_at(const struct sm *sm, const struct sm_port *p)
{
	const struct sm_port *peer = p->peer;

	return sm_node_is_switch(p->node) && p->num && peer && !sm_node_is_switch(peer->node) && peer->pkeys &&
	       pkey_enforced(sm) && enforce_cap(p->node) >= peer->npkeys;
}

void sm_pkey_push(struct sm *sm, struct sm_port *p)
{
	if (!p->has_info)
		return;
	if (sm_port_is_end(p)) {
		if (p->pkeys && p->lid)
			push_table(sm, p, p, pkey_capacity(p));
		return;
	}
	if (sm_pkey_enforced_at(sm, p))
		push_table(sm, p, p->peer, min(enforce_cap(p->node), pkey_capacity(p->peer)));
}

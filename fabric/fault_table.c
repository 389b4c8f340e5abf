// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Table faults: wrong LFT, MFT, P_Key, GUID and LID entries, until the fault is cleared or the subnet manager rewrites
 * them.
 */
#include "fabric/fault_internal.h"

static int whole_switch(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);

	if (fault_whole_node(base, err, err_len))
		return -EINVAL;
	if (!ft->node->sw)
		return spec_refuse(err, err_len, "%s: %s is not a switch", base->kind->name, ft->node->name);
	return 0;
}

static int port_exists(const struct fabric_fault *ft, char *err, size_t err_len)
{
	if (ft->num > ft->node->nports)
		return spec_refuse(err, err_len, "port=%u: the ports of %s are 0 to %u", ft->num, ft->node->name,
				   ft->node->nports);
	return 0;
}

static u8 *lft_entry(struct fabric_fault *ft)
{
	return ft->lid < ft->node->sw->lft_len ? &ft->node->sw->lft[ft->lid] : NULL;
}

static u8 lft_wrong(const struct fabric_fault *ft)
{
	return ft->off ? LFT_PORT_NONE : (u8)ft->num;
}

static void lft_apply(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	u8 *e = lft_entry(ft);

	if (!e)
		return;
	ft->old = *e;
	*e = lft_wrong(ft);
}

static void lft_undo(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	u8 *e = lft_entry(ft);

	if (e && *e == lft_wrong(ft))
		*e = (u8)ft->old;
}

static int lft_check(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);
	bool port = fault_given(base, FAULT_PORT);

	if (whole_switch(base, err, err_len) || port_exists(ft, err, err_len))
		return -EINVAL;
	if (port == ft->off)
		return spec_refuse(err, err_len, "lft: it needs either port= or off");
	if (!ft->lid || !lft_entry(ft))
		return spec_refuse(err, err_len, "lid=%u: %s has no such entry", ft->lid, ft->node->name);
	return 0;
}

static u16 *mft_entry(struct fabric_fault *ft)
{
	const struct fabric_switch *sw = ft->node->sw;
	u32 lid = ft->lid - WIRE_LID_MULTICAST_MIN;

	if (ft->lid < WIRE_LID_MULTICAST_MIN || lid >= sw->mft_len)
		return NULL;
	return &sw->mft[lid * sw->positions + ft->num / 16];
}

static void mft_apply(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	u16 *e = mft_entry(ft);

	if (!e)
		return;
	ft->old = *e;
	if (ft->off)
		*e &= ~BIT(ft->num % 16);
	else
		*e |= BIT(ft->num % 16);
}

static void mft_undo(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	u16 *e = mft_entry(ft), bit = BIT(ft->num % 16);

	if (e)
		*e = (*e & ~bit) | (ft->old & bit);
}

static int mft_check(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);

	if (whole_switch(base, err, err_len) || port_exists(ft, err, err_len))
		return -EINVAL;
	if (!mft_entry(ft))
		return spec_refuse(err, err_len, "lid=%u: %s has no such entry", ft->lid, ft->node->name);
	return 0;
}

/* guid: the node reports the GUIDs of another one. Its links retrain, so that the subnet manager sweeps. */
static void guid_set(struct fabric_node *n, u64 node, u64 port)
{
	struct fabric_port *own = &n->ports[n->sw ? 0 : 1];
	u32 i;

	n->guid = node;
	own->guid = port;
	if (own->ca) {
		own->ca->wire.attr.gid[0] = wire_gid_make(own->prefix, port);
		fabric_ca_event(own, WIRE_PORT_GID_CHANGE);
	}
	for (i = 1; i <= n->nports; i++)
		if (n->ports[i].peer)
			fault_retrain(&n->ports[i]);
}

static void guid_apply(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	const struct fabric_topology_node *whole = ft->like_whole;
	const struct fabric_node *like = ft->like;

	ft->old = ft->node->guid;
	ft->old_port_guid = ft->node->ports[ft->node->sw ? 0 : 1].guid;
	if (like)
		guid_set(ft->node, like->guid, like->ports[like->sw ? 0 : 1].guid);
	else
		guid_set(ft->node, whole->guid, fabric_topology_port_guid(whole, ft->node->sw ? 0 : 1));
}

static void guid_undo(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);

	guid_set(ft->node, ft->old, ft->old_port_guid);
}

static int guid_check(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);
	u8 type;

	if (fault_whole_node(base, err, err_len))
		return -EINVAL;
	ft->like = fabric_node_find(ft->f, ft->with);
	ft->like_whole = ft->like ? NULL : fabric_whole_find(ft->f, ft->with);
	if (!ft->like && !ft->like_whole)
		return spec_refuse(err, err_len, "with=%s: there is no such node", ft->with);
	if (ft->like == ft->node)
		return spec_refuse(err, err_len, "with=%s: the same node", ft->with);
	type = ft->like ? ft->like->type : ft->like_whole->type;
	if ((type == NODE_TYPE_SWITCH) != (ft->node->sw != NULL))
		return spec_refuse(err, err_len, "with=%s: one is a switch, the other is not", ft->with);
	return 0;
}

static void lid_set(struct fabric_port *p, u16 lid)
{
	p->info->lid = lid;
	if (p->ca)
		fabric_ca_event(p, WIRE_PORT_LID_CHANGE);
}

static void lid_apply(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	struct fabric_port *p = fabric_self(ft->port);

	ft->old = p->info->lid;
	lid_set(p, (u16)ft->lid);
}

static void lid_undo(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);
	struct fabric_port *p = fabric_self(ft->port);

	if (p->info->lid == ft->lid)
		lid_set(p, (u16)ft->old);
}

static int lid_check(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);

	if (ft->node && ft->node->sw && !ft->port)
		ft->port = &ft->node->ports[1];
	if (!ft->lid || ft->lid >= WIRE_LID_MULTICAST_MIN)
		return spec_refuse(err, err_len, "lid=%u: not a unicast LID", ft->lid);
	return fault_one_port(base, err, err_len);
}

static u16 *pkey_entry(struct fabric_fault *ft)
{
	u32 n;

	return &fabric_relay_pkeys(ft->port, &n)[ft->index];
}

static void pkey_apply(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);

	ft->old = *pkey_entry(ft);
	*pkey_entry(ft) = (u16)ft->pkey;
	fabric_ca_event(ft->port, WIRE_PORT_PKEY_CHANGE);
}

static void pkey_undo(struct fault *base)
{
	struct fabric_fault *ft = fabric_fault(base);

	if (*pkey_entry(ft) != ft->pkey)
		return;
	*pkey_entry(ft) = (u16)ft->old;
	fabric_ca_event(ft->port, WIRE_PORT_PKEY_CHANGE);
}

static int pkey_check(struct fault *base, char *err, size_t err_len)
{
	struct fabric_fault *ft = fabric_fault(base);

	if (fault_one_port(base, err, err_len))
		return -EINVAL;
	if (!ft->port->ca)
		return spec_refuse(err, err_len, "pkey: %s is a switch", ft->node->name);
	return 0;
}

#define LASTS BIT_ULL(FAULT_FOR)
const struct fault_kind fault_table_kinds[] = {
	{ .name = "lft",
	  .apply = lft_apply,
	  .undo = lft_undo,
	  .prepare = lft_check,
	  .required = BIT_ULL(FAULT_LID),
	  .allowed = LASTS | BIT_ULL(FAULT_PORT) | BIT_ULL(FAULT_OFF) },
	{ .name = "mft",
	  .apply = mft_apply,
	  .undo = mft_undo,
	  .prepare = mft_check,
	  .required = BIT_ULL(FAULT_LID) | BIT_ULL(FAULT_PORT),
	  .allowed = LASTS | BIT_ULL(FAULT_OFF) },
	{ .name = "guid",
	  .apply = guid_apply,
	  .undo = guid_undo,
	  .prepare = guid_check,
	  .required = BIT_ULL(FAULT_WITH),
	  .allowed = LASTS },
	{ .name = "lid",
	  .apply = lid_apply,
	  .undo = lid_undo,
	  .prepare = lid_check,
	  .required = BIT_ULL(FAULT_LID),
	  .allowed = LASTS },
	{ .name = "pkey",
	  .apply = pkey_apply,
	  .undo = pkey_undo,
	  .prepare = pkey_check,
	  .required = BIT_ULL(FAULT_INDEX) | BIT_ULL(FAULT_PKEY),
	  .allowed = LASTS },
	{ .name = NULL },
};

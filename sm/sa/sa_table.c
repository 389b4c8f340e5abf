// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Records of tables (IBTA 15.2.5): GUIDInfo, P_Keys, forwarding, VLs. They are read from the manager's copies, so a
 * query sends no SMP.
 */
#include "sm/sa/sa_internal.h"

/* Iterates over the ports of each node, or those of the requested LID; stops when @fn returns false. */
static void each_port(struct sa_call *c, bool by_lid, u16 lid,
		      bool (*fn)(struct sa_call *c, struct sm_port *p, u16 lid))
{
	struct sm *sm = c->sm;
	const struct sm_port *one = by_lid ? sm_port_by_lid(sm, lid) : NULL, *end;
	struct sm_node *n;
	struct sm_port *p;
	u32 i;

	list_for_each (n, &sm->nodes, link) {
		if (by_lid && (!one || one->node != n))
			continue;
		for (i = 0; i <= n->nports; i++) {
			p = &n->ports[i];
			end = sm_node_is_switch(n) ? &n->ports[0] : p;
			if (!p->has_info || !end->lid || !sm_sa_may_see(c, end) ||
			    (one && !sm_node_is_switch(n) && one != p))
				continue;
			if (!fn(c, p, end->lid))
				return;
		}
	}
}

/* ---- GUIDInfoRecord ---- */

#define GUID(n)                                                                       \
	{                                                                             \
		GUIDINFOREC_COMP_GUID0 + (n), GUIDINFOREC_GUID_INFO, GUIDINFO_GUID(n) \
	}
static const struct sa_field guid_fields[] = {
	{ GUIDINFOREC_COMP_BLOCK, 0, GUIDINFOREC_BLOCK },
	GUID(0),
	GUID(1),
	GUID(2),
	GUID(3),
	GUID(4),
	GUID(5),
	GUID(6),
	GUID(7),
};

/* A block for each 8 GUIDs of GUIDCap. As with OpenSM, the manager assigns no other GUID than entry 0. */
static bool emit_guids(struct sa_call *c, struct sm_port *p, u16 lid)
{
	u8 rec[GUIDINFOREC_SIZE] = { 0 };
	u32 at;

	for (at = 0; p->guid && at < wire_get(p->info, PORTINFO_GUID_CAP); at += GUIDINFO_PER_BLOCK) {
		wire_set(rec, GUIDINFOREC_LID, lid);
		wire_set(rec, GUIDINFOREC_BLOCK, at / GUIDINFO_PER_BLOCK);
		wire_set(rec, WIRE_AT(GUIDINFOREC_GUID_INFO, GUIDINFO_GUID(0)), at ? 0 : p->guid);
		if (sm_sa_match(c, rec, guid_fields, ARRAY_SIZE(guid_fields)) && !sm_sa_emit(c, rec))
			return false;
	}
	return true;
}

void sm_sa_guid_info_record(struct sa_call *c)
{
	each_port(c, sm_sa_comp(c, GUIDINFOREC_COMP_LID), wire_get(c->query, GUIDINFOREC_LID), emit_guids);
}

/* ---- P_KeyTableRecord ---- */

/*
 * Port numbers identify the ports of a switch; a CA's port is identified by its LID, and the port number of a request
 * is ignored.
 */
static u32 sa_table_nfields(const struct sm_port *p, u32 without_port, u32 with_port)
{
	return sm_node_is_switch(p->node) ? with_port : without_port;
}

static const struct sa_field pkey_fields[] = {
	{ PKEYREC_COMP_BLOCK, 0, PKEYREC_BLOCK },
	{ PKEYREC_COMP_PORT, 0, PKEYREC_PORT },
};

static bool emit_pkeys(struct sa_call *c, struct sm_port *p, u16 lid)
{
	const struct sm_port *of = p->guid ? p : sm_pkey_enforced_at(c->sm, p) ? p->peer : NULL;
	u8 rec[PKEYREC_SIZE];
	u32 at, i;

	for (at = 0; of && at < of->npkeys; at += PKEYTABLE_PER_BLOCK) {
		memset(rec, 0, sizeof(rec));
		wire_set(rec, PKEYREC_LID, lid);
		wire_set(rec, PKEYREC_BLOCK, at / PKEYTABLE_PER_BLOCK);
		wire_set(rec, PKEYREC_PORT, p->num);
		for (i = 0; i < PKEYTABLE_PER_BLOCK && at + i < of->npkeys; i++)
			wire_set(rec, WIRE_AT(PKEYREC_TABLE, PKEYTABLE_PKEY(i)), of->pkeys[at + i]);
		if (sm_sa_match(c, rec, pkey_fields, sa_table_nfields(p, 1, 2)) && !sm_sa_emit(c, rec))
			return false;
	}
	return true;
}

void sm_sa_pkey_record(struct sa_call *c)
{
	if (c->trusted)
		each_port(c, sm_sa_comp(c, PKEYREC_COMP_LID), wire_get(c->query, PKEYREC_LID), emit_pkeys);
	else
		c->status = SA_STATUS_DENIED; /* for trusted requesters only (15.4.1.2) */
}

/* ---- forwarding tables ---- */

static const struct sa_field lft_fields[] = { { LFTREC_COMP_BLOCK, 0, LFTREC_BLOCK } };

static bool emit_lft(struct sa_call *c, struct sm_port *p, u16 lid)
{
	const struct sm_node *n = p->node;
	u8 rec[LFTREC_SIZE] = { 0 };
	u32 block;

	if (!sm_node_is_switch(n) || p->num)
		return true;
	wire_set(rec, LFTREC_LID, lid);
	for (block = 0; block < min(n->lft_len, c->sm->lft_len) / LFT_PER_BLOCK; block++) {
		wire_set(rec, LFTREC_BLOCK, block);
		memcpy(rec + LFTREC_TABLE, n->lft + block * LFT_PER_BLOCK, LFT_PER_BLOCK);
		if (sm_sa_match(c, rec, lft_fields, ARRAY_SIZE(lft_fields)) && !sm_sa_emit(c, rec))
			return false;
	}
	return true;
}

void sm_sa_lft_record(struct sa_call *c)
{
	each_port(c, sm_sa_comp(c, LFTREC_COMP_LID), wire_get(c->query, LFTREC_LID), emit_lft);
}

static const struct sa_field mft_fields[] = {
	{ MFTREC_COMP_POSITION, 0, MFTREC_POSITION },
	{ MFTREC_COMP_BLOCK, 0, MFTREC_BLOCK },
};

static bool emit_mft(struct sa_call *c, struct sm_port *p, u16 lid)
{
	const struct sm_node *n = p->node;
	u32 width = (n->nports + MFT_PORTS_PER_POSITION) / MFT_PORTS_PER_POSITION, block, position, i;
	u8 rec[MFTREC_SIZE] = { 0 };

	if (!sm_node_is_switch(n) || p->num)
		return true;
	wire_set(rec, MFTREC_LID, lid);
	for (block = 0; block < n->mft_len / MFT_PER_BLOCK; block++)
		for (position = 0; position <= n->nports / (u32)MFT_PORTS_PER_POSITION; position++) {
			wire_set(rec, MFTREC_POSITION, position);
			wire_set(rec, MFTREC_BLOCK, block);
			for (i = 0; i < MFT_PER_BLOCK; i++)
				wire_set(rec, WIRE_AT(MFTREC_TABLE, MFT_PORT_MASK(i)),
					 n->mft[(block * MFT_PER_BLOCK + i) * width + position]);
			if (sm_sa_match(c, rec, mft_fields, ARRAY_SIZE(mft_fields)) && !sm_sa_emit(c, rec))
				return false;
		}
	return true;
}

void sm_sa_mft_record(struct sa_call *c)
{
	each_port(c, sm_sa_comp(c, MFTREC_COMP_LID), wire_get(c->query, MFTREC_LID), emit_mft);
}

/* ---- virtual lanes ---- */

static const struct sa_field sl2vl_fields[] = {
	{ SLTOVLREC_COMP_IN_PORT, 0, SLTOVLREC_IN_PORT },
	{ SLTOVLREC_COMP_OUT_PORT, 0, SLTOVLREC_OUT_PORT },
};

static bool emit_sl2vl(struct sa_call *c, struct sm_port *p, u16 lid)
{
	bool sw = sm_node_is_switch(p->node);
	u8 rec[SLTOVLREC_SIZE] = { 0 };
	u32 in;

	wire_set(rec, SLTOVLREC_LID, lid);
	wire_set(rec, SLTOVLREC_OUT_PORT, sw ? p->num : 0);
	if (!sw || p->num)
		sm_qos_sl2vl(c->sm, p, rec + SLTOVLREC_TABLE);
	for (in = 0; in <= (sw ? p->node->nports : 0u); in++) {
		wire_set(rec, SLTOVLREC_IN_PORT, in);
		if (sm_sa_match(c, rec, sl2vl_fields, sa_table_nfields(p, 0, 2)) && !sm_sa_emit(c, rec))
			return false;
	}
	return true;
}

void sm_sa_sl2vl_record(struct sa_call *c)
{
	each_port(c, sm_sa_comp(c, SLTOVLREC_COMP_LID), wire_get(c->query, SLTOVLREC_LID), emit_sl2vl);
}

static const struct sa_field vlarb_fields[] = {
	{ VLARBREC_COMP_BLOCK, 0, VLARBREC_BLOCK },
	{ VLARBREC_COMP_OUT_PORT, 0, VLARBREC_OUT_PORT },
};

static bool emit_vlarb(struct sa_call *c, struct sm_port *p, u16 lid)
{
	u8 rec[VLARBREC_SIZE], block;

	for (block = VLARB_LOW_LO; block <= VLARB_HIGH_HI; block++) {
		memset(rec, 0, sizeof(rec));
		wire_set(rec, VLARBREC_LID, lid);
		wire_set(rec, VLARBREC_OUT_PORT, p->num);
		wire_set(rec, VLARBREC_BLOCK, block);
		if (!sm_node_is_switch(p->node) || p->num)
			sm_qos_vlarb(c->sm, p, block, rec + VLARBREC_TABLE);
		if (sm_sa_match(c, rec, vlarb_fields, sa_table_nfields(p, 1, 2)) && !sm_sa_emit(c, rec))
			return false;
	}
	return true;
}

void sm_sa_vlarb_record(struct sa_call *c)
{
	each_port(c, sm_sa_comp(c, VLARBREC_COMP_LID), wire_get(c->query, VLARBREC_LID), emit_vlarb);
}

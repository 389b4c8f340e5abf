// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SMA: forwarding, P_Key, GUID, SL-to-VL and VL arbitration table attributes. IBTA 14.2.5.5 - 14.2.5.12. */
#include <errno.h>
#include <stdlib.h>

#include "fabric/fabric_internal.h"

/* Grows *@table, a forwarding table of *@len LIDs of @size bytes each, to @want LIDs; new bytes are @fill. */
static int table_grow(void *table, u32 *len, u32 want, size_t size, u8 fill)
{
	void **t = table;
	u8 *more;

	if (want <= *len)
		return 0;
	more = realloc(*t, want * size);
	if (!more)
		return -ENOMEM;
	memset(more + *len * size, fill, (want - *len) * size);
	*t = more;
	*len = want;
	return 0;
}

u16 fabric_sma_lft(struct fabric_sma *s)
{
	struct fabric_switch *sw = s->n->sw;
	u32 at = s->mod * LFT_PER_BLOCK;

	if (!sw)
		return MAD_STATUS_BAD_METHOD_ATTR;
	if (s->mod > LFT_BLOCK_MAX)
		return MAD_STATUS_BAD_VALUE;
	if (s->set) {
		if (table_grow(&sw->lft, &sw->lft_len, at + LFT_PER_BLOCK, sizeof(*sw->lft), LFT_PORT_NONE))
			return MAD_STATUS_BUSY;
		memcpy(sw->lft + at, s->data, LFT_SIZE);
		if (!s->mod)
			sw->lft[0] = LFT_PORT_NONE; /* LID 0 is reserved */
	}
	if (at < sw->lft_len)
		memcpy(s->data, sw->lft + at, LFT_SIZE);
	else
		memset(s->data, LFT_PORT_NONE, LFT_SIZE);
	return 0;
}

u16 fabric_sma_mft(struct fabric_sma *s)
{
	struct fabric_switch *sw = s->n->sw;
	u32 block = s->mod & MFT_BLOCK_MASK, pos = s->mod >> MFT_POSITION_SHIFT, i, lid;

	if (!sw)
		return MAD_STATUS_BAD_METHOD_ATTR;
	if (block >= FABRIC_MFT_LIDS / MFT_PER_BLOCK || pos >= sw->positions)
		return MAD_STATUS_BAD_VALUE;
	if (s->set &&
	    table_grow(&sw->mft, &sw->mft_len, (block + 1) * MFT_PER_BLOCK, sw->positions * sizeof(*sw->mft), 0))
		return MAD_STATUS_BUSY;
	for (i = 0; i < MFT_PER_BLOCK; i++) {
		lid = block * MFT_PER_BLOCK + i;
		if (s->set)
			sw->mft[lid * sw->positions + pos] = wire_get(s->data, MFT_PORT_MASK(i));
		wire_set(s->data, MFT_PORT_MASK(i), lid < sw->mft_len ? sw->mft[lid * sw->positions + pos] : 0);
	}
	return 0;
}

static u16 pkeys_set(struct fabric_port *p, u32 block, const u8 *d)
{
	bool changed = false;
	u16 *keys, key;
	u32 n, i;

	if (!p->ca && !p->pkeys) {
		p->pkeys = calloc(FABRIC_PKEYS, sizeof(*p->pkeys));
		if (!p->pkeys)
			return MAD_STATUS_BUSY;
	}
	keys = fabric_relay_pkeys(p, &n);
	for (i = 0; i < PKEYTABLE_PER_BLOCK; i++) {
		key = wire_get(d, PKEYTABLE_PKEY(i));
		changed |= keys[block * PKEYTABLE_PER_BLOCK + i] != key;
		keys[block * PKEYTABLE_PER_BLOCK + i] = key;
	}
	if (p->ca && changed)
		fabric_ca_event(p, WIRE_PORT_PKEY_CHANGE);
	return 0;
}

u16 fabric_sma_pkey_table(struct fabric_sma *s)
{
	struct fabric_port *p = fabric_sma_port(s, s->n->sw ? s->mod >> 16 : s->self->num);
	u32 block = s->mod & 0xffff, n, i;
	u16 status = 0;
	const u16 *keys;

	if (!p || block >= (p->ca ? WIRE_PORT_PKEYS : FABRIC_PKEYS) / PKEYTABLE_PER_BLOCK)
		return MAD_STATUS_BAD_VALUE;
	if (s->set)
		status = pkeys_set(p, block, s->data);
	keys = fabric_relay_pkeys(p, &n);
	for (i = 0; i < PKEYTABLE_PER_BLOCK; i++) {
		u32 at = block * PKEYTABLE_PER_BLOCK + i;

		wire_set(s->data, PKEYTABLE_PKEY(i), at < n ? keys[at] : 0);
	}
	return status;
}

u16 fabric_sma_guid_info(struct fabric_sma *s)
{
	struct fabric_port *p = s->self;
	u32 cap = p->ca ? p->ca->wire.attr.gids : 1, i;
	bool changed = false;

	if (s->mod * GUIDINFO_PER_BLOCK >= cap || s->mod > 31)
		return MAD_STATUS_BAD_VALUE;
	for (i = 0; i < GUIDINFO_PER_BLOCK; i++) {
		u32 at = s->mod * GUIDINFO_PER_BLOCK + i;
		u64 guid = wire_get(s->data, GUIDINFO_GUID(i));

		if (s->set && at && p->ca && guid != wire_gid_guid(&p->ca->wire.attr.gid[at])) { /* 0 is read-only */
			p->ca->wire.attr.gid[at] = guid ? wire_gid_make(p->prefix, guid) : (struct wire_gid){ { 0 } };
			changed = true;
		}
		guid = !at ? p->guid : p->ca && at < cap ? wire_gid_guid(&p->ca->wire.attr.gid[at]) : 0;
		wire_set(s->data, GUIDINFO_GUID(i), guid);
	}
	if (changed)
		fabric_ca_event(p, WIRE_PORT_GID_CHANGE);
	return 0;
}

/* Allocates the SL-to-VL table by input port, with the current mapping. */
static int sl2vl_alloc(struct fabric_port *out)
{
	u32 inputs = out->node->sw ? out->node->nports + 1u : 1, i, sl;

	if (out->sl2vl)
		return 0;
	out->sl2vl = calloc(inputs, sizeof(*out->sl2vl));
	if (!out->sl2vl)
		return -ENOMEM;
	for (i = 0; i < inputs; i++)
		for (sl = 0; sl < WIRE_SL_NUM; sl++)
			wire_set(out->sl2vl[i], SLTOVL_VL(sl), sl % out->nvls);
	return 0;
}

u16 fabric_sma_sl2vl(struct fabric_sma *s)
{
	struct fabric_port *in = s->n->sw ? fabric_sma_port(s, s->mod >> 8 & 0xff) : s->self;
	struct fabric_port *out = s->n->sw ? fabric_sma_port(s, s->mod & 0xff) : s->self;
	u8 sl;

	if (!in || !out || s->mod >> 16)
		return MAD_STATUS_BAD_VALUE;
	if (s->set) {
		if (sl2vl_alloc(out))
			return MAD_STATUS_BUSY;
		memcpy(out->sl2vl[s->n->sw ? in->num : 0], s->data, SLTOVL_SIZE);
	}
	memset(s->data, 0, SMP_DATA_SIZE);
	for (sl = 0; sl < WIRE_SL_NUM; sl++)
		wire_set(s->data, SLTOVL_VL(sl), fabric_flight_vl(in, out, sl));
	return 0;
}

u16 fabric_sma_vlarb(struct fabric_sma *s)
{
	struct fabric_port *p = fabric_sma_port(s, s->n->sw ? s->mod & 0xff : s->self->num);
	u32 block = s->mod >> 16, prio, at, i;

	if (!p || block < VLARB_LOW_LO || block > VLARB_HIGH_HI)
		return MAD_STATUS_BAD_VALUE;
	prio = block >= VLARB_HIGH_LO;
	at = (block - 1) % 2 * VLARB_PER_BLOCK;
	if (s->set && !p->arb) {
		p->arb = calloc(1, sizeof(*p->arb));
		if (!p->arb)
			return MAD_STATUS_BUSY;
	}
	for (i = 0; i < VLARB_PER_BLOCK; i++) {
		if (s->set) {
			p->arb->vl[prio][at + i] = wire_get(s->data, VLARB_VL(i));
			p->arb->weight[prio][at + i] = wire_get(s->data, VLARB_WEIGHT(i));
		}
		wire_set(s->data, VLARB_VL(i), p->arb ? p->arb->vl[prio][at + i] : 0);
		wire_set(s->data, VLARB_WEIGHT(i), p->arb ? p->arb->weight[prio][at + i] : 0);
	}
	return 0;
}

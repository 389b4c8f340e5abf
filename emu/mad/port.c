// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* QP0 and QP1 of a CA port: conversion between packets and MADs. */
#include <errno.h>
#include <stdlib.h>

#include "emu/mad/mad_internal.h"
#include "emu/packet/header.h"
#include "emu/wire/smp.h"

#define TID_HIGH_FIRST 0x40000000u /* a raw user of the same QP numbers its agents from 1 */

const char *mad_counter_name(enum mad_counter c)
{
	static const char *const names[] = { MAD_COUNTERS(COUNTER_NAME) };

	return c < MAD_CTR_NUM ? names[c] : "?";
}

u64 mad_port_counter(const struct mad_port *mp, enum mad_counter c)
{
	return c < MAD_CTR_NUM ? mp->counter[c] : 0;
}

struct wire_port *mad_port_wire(const struct mad_port *mp)
{
	return mp->wire;
}

/* ---- send ---- */

/* SMPs that start with a directed route have the permissive SLID (14.2.1.1),
 * and so have those of a port without LID. */
static u16 source_lid(const struct wire_port *w, u8 qpn, const u8 *mad, const struct mad_addr *to)
{
	if (qpn == MAD_QPN_SMI && wire_mad_get_class(mad) == MAD_CLASS_SUBN_DIRECTED && to->lid == WIRE_LID_PERMISSIVE)
		return WIRE_LID_PERMISSIVE;
	if (!w->attr.lid)
		return WIRE_LID_PERMISSIVE;
	return w->attr.lid | (to->path_bits & (BIT(w->attr.lmc) - 1));
}

static void put_grh(struct wire_packet *p, const struct wire_port *w, const struct mad_addr *to)
{
	struct wire_grh *grh;

	p->grh_off = sizeof(struct wire_lrh);
	grh = wire_packet_grh(p);
	wire_grh_set_ver_tc_flow(grh, to->traffic_class, to->flow_label);
	grh->paylen = cpu_to_be16(sizeof(struct wire_bth) + sizeof(struct wire_deth) + MAD_SIZE + WIRE_ICRC_LEN);
	grh->nxthdr = WIRE_GRH_NXTHDR_IBA;
	grh->hoplmt = to->hop_limit;
	grh->sgid = w->attr.gid[to->gid_index];
	grh->dgid = to->gid;
}

static u32 remote_qkey(u8 qpn, const struct mad_addr *to)
{
	if (qpn == MAD_QPN_SMI)
		return 0;
	/* A Q_Key with its top bit set selects the Q_Key of the sending QP (10.2.5). */
	return (to->qkey & 0x80000000u) || (to->qpn == MAD_QPN_GSI && !to->qkey) ? MAD_QKEY_WELL_KNOWN : to->qkey;
}

static struct wire_packet *port_build(struct mad_port *mp, u8 qpn, const u8 *mad, const struct mad_addr *to, u16 pkey)
{
	struct wire_packet *p = wire_packet_alloc();
	struct wire_buf *buf = wire_buf_alloc(MAD_SIZE);
	u8 sl = qpn == MAD_QPN_SMI ? 0 : to->sl & 0xf;

	if (!p || !buf) {
		if (p)
			wire_packet_free(p);
		wire_buf_put(buf);
		return NULL;
	}
	memcpy(buf->data, mad, MAD_SIZE);
	p->buf = buf;
	p->data = buf->data;
	p->len = MAD_SIZE;
	p->hdr_len = 8;
	if (to->grh) {
		put_grh(p, mp->wire, to);
		p->hdr_len += sizeof(struct wire_grh);
	}
	if (wire_port_is_ethernet(mp->wire))
		p->l2 = wire_port_l2(mp->wire, to->gid_index, sl, to->l2.mac);
	p->bth_off = p->hdr_len;
	wire_bth_fill(wire_packet_bth(p), WIRE_UD_SEND_ONLY, false, 0, pkey, to->qpn, false, mp->psn[qpn]);
	mp->psn[qpn] = wire_psn_add(mp->psn[qpn], 1);
	wire_deth_fill(wire_packet_deth(p), remote_qkey(qpn, to), qpn);
	p->hdr_len += sizeof(struct wire_bth) + sizeof(struct wire_deth);
	p->vl = qpn == MAD_QPN_SMI ? WIRE_VL_MGMT : 0;
	wire_lrh_fill(wire_packet_lrh(p), p->vl, sl, to->grh ? WIRE_LNH_GRH : WIRE_LNH_BTH, to->lid,
		      source_lid(mp->wire, qpn, mad, to), wire_packet_link_len(p) / 4);
	return p;
}

int mad_port_xmit(struct mad_port *mp, u8 qpn, const u8 *mad, const struct mad_addr *to)
{
	const struct wire_port_attr *attr = &mp->wire->attr;
	u16 pkey = WIRE_PKEY_DEFAULT_FULL;
	struct wire_packet *p;

	if (qpn == MAD_QPN_GSI) {
		if (to->pkey_index >= WIRE_PORT_PKEYS || !wire_pkey_is_valid(attr->pkey[to->pkey_index]))
			return -EINVAL;
		pkey = attr->pkey[to->pkey_index];
	}
	if (to->grh && to->gid_index >= WIRE_PORT_GIDS)
		return -EINVAL;
	if (mp->tx_len[qpn] >= MAD_TX_MAX) {
		mp->counter[MAD_CTR_TX_DROPPED]++;
		return 0;
	}
	p = port_build(mp, qpn, mad, to, pkey);
	if (!p)
		return -ENOMEM;
	mp->counter[MAD_CTR_SENT]++;
	mp->tx_len[qpn]++;
	list_add(&mp->tx[qpn], &p->link);
	loop_task_queue(mp->loop, &mp->pump);
	return 0;
}

void mad_port_set_raw(struct mad_port *mp, u8 qpn, const struct mad_raw *raw)
{
	if (qpn <= MAD_QPN_GSI)
		mp->raw[qpn] = raw ? *raw : (struct mad_raw){ 0 };
}

/*
 * A kernel does the first step of a directed route before it posts, for an HCA without SMI in its firmware; the
 * fabric's adapters do it themselves: 14.2.2.2, 14.2.2.4.
 */
static void undo_step(u8 *mad)
{
	u8 ptr = wire_get(mad, SMP_HOP_PTR), cnt = wire_get(mad, SMP_HOP_CNT);

	if (wire_get(mad, MAD_CLASS) != MAD_CLASS_SUBN_DIRECTED || !cnt)
		return;
	if (!wire_get(mad, SMP_D) && ptr == 1)
		wire_set(mad, SMP_HOP_PTR, 0);
	else if (wire_get(mad, SMP_D) && ptr == cnt)
		wire_set(mad, SMP_HOP_PTR, cnt + 1);
}

int mad_port_send_raw(struct mad_port *mp, u8 qpn, u8 *mad, const struct mad_addr *to)
{
	if (qpn > MAD_QPN_GSI)
		return -EINVAL;
	if (!qpn)
		undo_step(mad);
	return mad_port_xmit(mp, qpn, mad, to);
}

void mad_port_grh(const struct mad_port *mp, const struct mad_addr *from, struct wire_grh *grh)
{
	memset(grh, 0, sizeof(*grh));
	wire_grh_set_ver_tc_flow(grh, from->traffic_class, from->flow_label);
	grh->paylen = cpu_to_be16(MAD_PACKET);
	grh->nxthdr = WIRE_GRH_NXTHDR_IBA;
	grh->hoplmt = from->hop_limit;
	grh->sgid = from->gid;
	grh->dgid = mp->wire->attr.gid[from->gid_index % WIRE_PORT_GIDS];
}

static void pump_qp(struct mad_port *mp, u8 qpn)
{
	struct list *tx = &mp->tx[qpn];
	struct wire_packet *p;

	while (!list_empty(tx)) {
		p = list_first(tx, struct wire_packet, link);
		list_del(&p->link);
		if (wire_port_send(mp->wire, p) == -EAGAIN) {
			list_add(tx->next, &p->link); /* back to the head of the queue */
			return;
		}
		mp->tx_len[qpn]--;
	}
}

/*
 * Packets are sent from this task, not in mad_send(), so that a link with immediate delivery does not call an agent in
 * the middle of its send. The same holds for sent().
 */
static void port_pump(struct loop_task *t, struct now now)
{
	struct mad_port *mp = container_of(t, struct mad_port, pump);
	struct list done;

	pump_qp(mp, MAD_QPN_SMI);
	pump_qp(mp, MAD_QPN_GSI);
	list_init(&done);
	if (mp->tx_len[MAD_QPN_GSI] < MAD_TX_MAX / 2)
		list_splice(&done, &mp->more);
	while (!list_empty(&done))
		rmpp_send_more(list_first(&done, struct mad_req, done));
	list_splice(&done, &mp->done);
	while (!list_empty(&done))
		mad_req_end(list_first(&done, struct mad_req, done), 0);
}

/* ---- receive ---- */

/* The table may have the same GID for each RoCE version, and for several VLANs. */
static u8 gid_index(const struct wire_port_attr *attr, const struct wire_gid *gid, const struct wire_l2 *l2)
{
	u8 i;

	for (i = 0; i < WIRE_PORT_GIDS; i++)
		if (wire_gid_equal(&attr->gid[i], gid) && (attr->gid_l2[i].version == 1) == (l2->version == 1) &&
		    attr->gid_l2[i].vlan == (l2->vlan & WIRE_VLAN_ID))
			return i;
	return 0;
}

static void get_addr(const struct mad_port *mp, const struct wire_packet *p, struct mad_addr *a)
{
	const struct wire_lrh *lrh = wire_packet_lrh(p);
	const struct wire_deth *deth = wire_packet_deth(p);
	const struct wire_grh *grh = wire_packet_grh(p);

	memset(a, 0, sizeof(*a));
	a->qpn = wire_deth_src_qp(deth);
	a->qkey = wire_deth_qkey(deth);
	a->lid = wire_lrh_slid(lrh);
	a->sl = wire_lrh_sl(lrh);
	if (wire_lid_is_unicast(wire_lrh_dlid(lrh)))
		a->path_bits = wire_lrh_dlid(lrh) & (BIT(mp->wire->attr.lmc) - 1);
	if (!p->grh_off)
		return;
	a->grh = true;
	a->gid = grh->sgid;
	a->gid_index = gid_index(&mp->wire->attr, &grh->dgid, &p->l2);
	a->l2 = p->l2;
	a->hop_limit = 0xff; /* for the response, as reported by the kernel */
	a->traffic_class = wire_grh_tclass(grh);
	a->flow_label = wire_grh_flow(grh);
}

static void port_violation(struct mad_port *mp, const struct wire_packet *p, bool qkey, u32 key)
{
	struct wire_port_violation v = wire_port_violation_of(p, qkey, key);

	mp->counter[qkey ? MAD_CTR_QKEY_BAD : MAD_CTR_PKEY_BAD]++;
	if (mp->wire->ops->violation)
		mp->wire->ops->violation(mp->wire, &v);
}

/* Checks the keys of a packet to QP1: any P_Key of the port's table (10.9.8), and the well-known Q_Key. */
static bool check_keys(struct mad_port *mp, const struct wire_packet *p, struct mad_addr *from)
{
	u16 pkey = wire_bth_pkey(wire_packet_bth(p));
	int index = wire_port_pkey_match(mp->wire, pkey);

	if (index < 0) {
		port_violation(mp, p, false, pkey);
		return false;
	}
	from->pkey_index = index;
	if (from->qkey != MAD_QKEY_WELL_KNOWN) {
		port_violation(mp, p, true, from->qkey);
		return false;
	}
	return true;
}

/* Whether the MAD is allowed on this QP. CM responds to ClassPortInfo with methods other than Send. */
static bool check_mad(u8 qpn, const u8 *mad)
{
	if (wire_get(mad, MAD_BASE_VERSION) != MAD_BASE_VERSION_1)
		return false;
	if (wire_mad_is_smp_class(wire_mad_get_class(mad)) != (qpn == MAD_QPN_SMI))
		return false;
	return wire_mad_get_class(mad) != MAD_CLASS_CM || wire_get(mad, MAD_ATTR_ID) == MAD_ATTR_CLASS_PORT_INFO ||
	       wire_get(mad, MAD_METHOD) == MAD_METHOD_SEND;
}

static void mad_take(struct mad_port *mp, const struct wire_packet *p)
{
	const struct wire_bth *bth = wire_packet_bth(p);
	u32 qpn = wire_bth_qpn(bth);
	struct mad_addr from;

	if (bth->opcode != WIRE_UD_SEND_ONLY || qpn > MAD_QPN_GSI || p->len != MAD_SIZE ||
	    p->hdr_len < p->bth_off + sizeof(*bth) + sizeof(struct wire_deth)) {
		mp->counter[MAD_CTR_MALFORMED]++;
		return;
	}
	if ((qpn == MAD_QPN_SMI) != (p->vl == WIRE_VL_MGMT)) { /* Ethernet has no VL15 and no QP0: A16.4.1 */
		mp->counter[MAD_CTR_MALFORMED]++;
		return;
	}
	get_addr(mp, p, &from);
	if (qpn == MAD_QPN_GSI && !check_keys(mp, p, &from))
		return;
	if (!check_mad(qpn, p->data)) {
		mp->counter[MAD_CTR_MALFORMED]++;
		return;
	}
	mp->counter[MAD_CTR_RECEIVED]++;
	mad_agent_receive(mp, qpn, p->data, &from);
}

static int port_receive(void *ctx, struct wire_packet *p)
{
	mad_take(ctx, p);
	wire_packet_free(p);
	return 0;
}

static void port_ready(void *ctx)
{
	struct mad_port *mp = ctx;

	if (mp->tx_len[0] || mp->tx_len[1] || !list_empty(&mp->more))
		loop_task_queue(mp->loop, &mp->pump);
}

static void port_event(void *ctx, enum wire_port_event event)
{
	struct mad_port *mp = ctx;
	struct mad_watch *w, *tmp;

	list_for_each_safe (w, tmp, &mp->watches, link)
		w->fn(w, event);
}

void mad_port_watch(struct mad_port *mp, struct mad_watch *w)
{
	list_add(&mp->watches, &w->link);
}

void mad_port_unwatch(struct mad_watch *w)
{
	list_del(&w->link);
}

/* ---- creation and destruction ---- */

struct mad_port *mad_port_create(struct loop *loop, struct wire_port *port)
{
	struct mad_port *mp = calloc(1, sizeof(*mp));

	if (!mp)
		return NULL;
	mp->loop = loop;
	mp->wire = port;
	mp->last_tid_high = TID_HIGH_FIRST;
	list_init(&mp->agents);
	list_init(&mp->tx[0]);
	list_init(&mp->tx[1]);
	list_init(&mp->done);
	list_init(&mp->more);
	list_init(&mp->watches);
	loop_task_init(&mp->pump, port_pump);
	port->mad =
		(struct wire_port_user){ .ctx = mp, .receive = port_receive, .ready = port_ready, .event = port_event };
	return mp;
}

void mad_port_destroy(struct mad_port *mp)
{
	struct wire_packet *p, *tmp;
	int i;

	if (!mp)
		return;
	while (!list_empty(&mp->agents))
		mad_agent_unregister(list_first(&mp->agents, struct mad_agent, link));
	loop_task_cancel(&mp->pump);
	for (i = 0; i < 2; i++)
		list_for_each_safe (p, tmp, &mp->tx[i], link) {
			list_del(&p->link);
			wire_packet_free(p);
		}
	while (!list_empty(&mp->watches))
		list_del(mp->watches.next);
	memset(&mp->wire->mad, 0, sizeof(mp->wire->mad));
	free(mp);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ports of channel adapters: the seam to the transport and the MAD layer, and what they refuse for now. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/internal.h"

enum {
	USER_DATA,
	USER_MAD
};

static struct fabric_ca *to_ca(struct wire_port *w)
{
	return container_of(w, struct fabric_ca, wire);
}

static bool own_lid(const struct fabric_port *p, u16 lid)
{
	return p->lid && lid >= p->lid && lid < p->lid + BIT(p->lmc);
}

/* Ports that are not there stand for the CA's inside: a packet that does not leave the CA flies to port 0. */
static void send_inside(struct fabric_port *p, struct wire_packet *pkt, u8 vl)
{
	pkt->vl = vl;
	wire_lrh_set_vl(fabric_lrh(pkt), vl);
	pkt->in_port = p->num;
	if (vl != WIRE_VL_MGMT)
		p->rx_blocks[vl] += fabric_blocks(pkt);
	fabric_flight_push(p->node->f, &p->node->ports[0], pkt, 0);
}

static int send_vl15(struct fabric_port *p, struct wire_packet *pkt)
{
	u16 dlid = wire_lrh_dlid(fabric_lrh(pkt));

	if (dlid == WIRE_LID_PERMISSIVE || own_lid(p, dlid))
		send_inside(p, pkt, WIRE_VL_MGMT);
	else
		fabric_relay_send_vl15(p, pkt);
	return 0;
}

static int ca_discard(struct fabric_port *p, struct wire_packet *pkt, enum fabric_counter why)
{
	fabric_count(p, FABRIC_CTR_XMIT_DISCARDS);
	fabric_count(p, why);
	wire_packet_free(pkt);
	return 0;
}

static int ca_send(struct wire_port *w, struct wire_packet *pkt)
{
	struct fabric_ca *ca = to_ca(w);
	struct fabric_port *p = ca->port;
	u8 vl;

	if (wire_bth_qpn(fabric_bth(pkt)) == MAD_QPN_SMI)
		return send_vl15(p, pkt);
	vl = fabric_relay_vl(p, p, wire_lrh_sl(fabric_lrh(pkt)));
	if (unlikely(p->state != PORT_STATE_ACTIVE || vl >= p->nvls))
		return ca_discard(p, pkt, vl >= p->nvls ? FABRIC_CTR_RCV_VL_MAPPING : FABRIC_CTR_XMIT_INACTIVE);
	if (unlikely(pkt->len > wire_mtu_bytes(p->mtu)))
		return ca_discard(p, pkt, FABRIC_CTR_XMIT_NEIGHBOR_MTU);
	if (own_lid(p, wire_lrh_dlid(fabric_lrh(pkt)))) {
		if (p->rx_blocks[vl] + fabric_blocks(pkt) > FABRIC_VL_BLOCKS) {
			ca->want_ready = true;
			return -EAGAIN;
		}
		send_inside(p, pkt, vl);
		return 0;
	}
	if ((p->vls && (p->vls->active & BIT(vl))) || !fabric_credit(p, vl, pkt)) {
		ca->want_ready = true;
		return -EAGAIN;
	}
	fabric_flight_push(p->node->f, fabric_relay_transmit(p, pkt, vl), pkt, 0);
	return 0;
}

static void ca_set_cap(struct wire_port *w, u32 set, u32 clear)
{
	struct fabric_port *p = to_ca(w)->port;
	u32 mask = (p->cap_mask & ~clear) | set;

	if (mask == p->cap_mask)
		return;
	if ((mask ^ p->cap_mask) & PORT_CAP_SM)
		fabric_tell(p->node->f, FABRIC_EVENT_SM, p, NULL, mask & PORT_CAP_SM ? "opened" : "closed");
	p->cap_mask = mask;
	fabric_ca_sync(p);
	fabric_trap_local_changes(p, 0);
}

static void ca_violation(struct wire_port *w, const struct wire_port_violation *v)
{
	struct fabric_port *p = to_ca(w)->port;
	u16 *count = v->qkey ? &p->qkey_viol : &p->pkey_viol;

	if (*count != 0xffff)
		++*count;
	fabric_ca_sync(p);
	fabric_trap_key(p, v);
}

static const struct wire_port_ops ops = { .send = ca_send, .set_cap = ca_set_cap, .violation = ca_violation };

static void ca_resume(struct wire_port *w)
{
	struct fabric_port *p = to_ca(w)->port;
	struct fabric *f = p->node->f;

	if (!list_empty(&p->kick))
		return;
	list_add(&f->kicked, &p->kick);
	loop_task_queue(f->loop, &f->task);
}

/* Offers a packet to a user. False: refused, nothing has changed. */
static bool offer(struct fabric_port *p, u32 user, struct wire_packet *pkt)
{
	const struct wire_port_user *u = user == USER_DATA ? &p->ca->wire.data : &p->ca->wire.mad;
	u32 blocks = fabric_blocks(pkt);
	u8 vl = pkt->vl;

	if (u->receive) {
		if (u->receive(u->ctx, pkt) == -EAGAIN)
			return false;
	} else {
		if (user == USER_MAD)
			fabric_count(p, vl == WIRE_VL_MGMT ? FABRIC_CTR_VL15_DROPPED : FABRIC_CTR_QP1_DROPPED);
		wire_packet_free(pkt);
	}
	if (vl != WIRE_VL_MGMT) {
		p->rx_blocks[vl] -= min(blocks, p->rx_blocks[vl]);
		if (p->peer)
			fabric_arb_kick(p->peer);
		fabric_arb_kick(p);
	}
	return true;
}

static void deliver(struct fabric_port *p, u32 user, struct wire_packet *pkt)
{
	struct fabric_hold *h = &p->ca->hold[user];

	if (!h->n && offer(p, user, pkt))
		return;
	if (pkt->vl == WIRE_VL_MGMT && h->n >= FABRIC_HOLD_SMPS) {
		fabric_count(p, FABRIC_CTR_VL15_DROPPED);
		wire_packet_free(pkt);
		return;
	}
	list_add(&h->q, &pkt->link);
	h->n++;
}

void fabric_ca_run_held(struct fabric_port *p)
{
	u32 user;

	for (user = USER_DATA; user <= USER_MAD; user++) {
		struct fabric_hold *h = &p->ca->hold[user];
		u32 left = h->n;

		while (left--) {
			struct wire_packet *pkt = list_first(&h->q, struct wire_packet, link);

			list_del(&pkt->link);
			if (!offer(p, user, pkt)) {
				list_add(h->q.next, &pkt->link); /* before the first: back to the head */
				break;
			}
			h->n--;
		}
	}
}

void fabric_ca_deliver_mad(struct fabric_port *p, struct wire_packet *pkt, bool charged)
{
	if (!charged && pkt->vl != WIRE_VL_MGMT)
		p->rx_blocks[pkt->vl] += fabric_blocks(pkt);
	deliver(p, USER_MAD, pkt);
}

void fabric_ca_receive(struct fabric_port *p, struct wire_packet *pkt, bool charged)
{
	u16 dlid = wire_lrh_dlid(fabric_lrh(pkt));
	u32 qpn = pkt->bth_off + sizeof(struct wire_bth) <= pkt->hdr_len ? wire_bth_qpn(fabric_bth(pkt)) : ~0u;

	if (unlikely(pkt->vl == WIRE_VL_MGMT)) {
		fabric_mgmt_receive(p, p, pkt, false);
		return;
	}
	if (unlikely(!own_lid(p, dlid) && !wire_lid_is_multicast(dlid) && dlid != WIRE_LID_PERMISSIVE)) {
		fabric_count(p, FABRIC_CTR_RCV_ERRORS);
		fabric_relay_drop(p, pkt);
		return;
	}
	if (unlikely(qpn <= MAD_QPN_GSI || qpn == ~0u)) {
		fabric_mgmt_receive(p, p, pkt, charged);
		return;
	}
	deliver(p, USER_DATA, pkt);
}

void fabric_ca_event(struct fabric_port *p, enum wire_port_event e)
{
	struct wire_port *w = &p->ca->wire;

	if (p->node->f->closing)
		return;
	if (w->data.event)
		w->data.event(w->data.ctx, e);
	if (w->mad.event)
		w->mad.event(w->mad.ctx, e);
}

static void sync_speed(struct wire_port_attr *a, const struct fabric_port *p)
{
	static const u8 speed[WIRE_SPEED_NUM] = { [WIRE_SPEED_SDR] = 1, [WIRE_SPEED_DDR] = 2, [WIRE_SPEED_QDR] = 4 };
	static const u8 ext[WIRE_SPEED_NUM] = {
		[WIRE_SPEED_FDR] = 1, [WIRE_SPEED_EDR] = 2, [WIRE_SPEED_HDR] = 4, [WIRE_SPEED_NDR] = 8
	};
	u8 i;

	a->speed_supported = a->speed_ext_supported = 0;
	for (i = WIRE_SPEED_SDR; i <= p->speed_cap; i++) {
		a->speed_supported |= speed[i];
		a->speed_ext_supported |= ext[i];
	}
	a->speed_enabled = p->speed_enabled;
	a->speed_ext_enabled = p->speed_ext_enabled;
	a->speed_ext_active = ext[p->speed];
	a->speed_active = ext[p->speed] ? LINK_SPEED_QDR : p->speed ? speed[p->speed] : LINK_SPEED_SDR;
}

void fabric_ca_sync(struct fabric_port *p)
{
	static const u8 width[13] = { [1] = LINK_WIDTH_1X,
				      [2] = LINK_WIDTH_2X,
				      [4] = LINK_WIDTH_4X,
				      [8] = LINK_WIDTH_8X,
				      [12] = LINK_WIDTH_12X };
	struct wire_port_attr *a;

	if (!p->ca)
		return;
	a = &p->ca->wire.attr;
	a->state = p->state;
	a->phys_state = p->phys;
	a->lid = p->lid;
	a->lmc = p->lmc;
	a->sm_lid = p->sm_lid;
	a->sm_sl = p->sm_sl;
	a->mtu_cap = p->mtu_limit ? min(p->mtu_limit, p->node->f->mtu_cap) : p->node->f->mtu_cap;
	a->mtu_active = min(p->mtu, a->mtu_cap);
	a->width_supported = width[p->lanes_cap] | LINK_WIDTH_1X;
	a->width_enabled = p->width_enabled;
	a->width_active = p->lanes ? width[p->lanes] : LINK_WIDTH_4X;
	sync_speed(a, p);
	a->cap_mask = p->cap_mask;
	a->subnet_timeout = p->subnet_timeout;
	a->init_type_reply = 0;
	a->pkey_violations = p->pkey_viol;
	a->qkey_violations = p->qkey_viol;
	a->mkey_violations = p->mkey_viol;
	if (p->sl2vl || p->nvls) {
		u8 sl;

		for (sl = 0; sl < 16; sl++)
			a->sl2vl[sl] = fabric_relay_vl(p, p, sl);
	}
}

int fabric_ca_init(struct fabric_port *p, const struct fabric_topology *t, const struct fabric_topology_node *n)
{
	struct fabric_ca *ca = calloc(1, sizeof(*ca));
	struct wire_port *w;

	if (!ca)
		return -ENOMEM;
	p->ca = ca;
	ca->port = p;
	ca->ip = n->ip[p->num];
	list_init(&ca->hold[0].q);
	list_init(&ca->hold[1].q);
	w = &ca->wire;
	w->ops = &ops;
	w->resume = ca_resume;
	w->node_guid = n->guid;
	w->port_guid = p->guid;
	w->num = p->num;
	snprintf(w->name, sizeof(w->name), "%s", n->name);
	w->attr.link_layer = WIRE_LINK_IB;
	w->attr.mtu_cap = t->mtu;
	w->attr.max_vl = t->vl_cap;
	w->attr.pkeys = WIRE_PORT_PKEYS;
	w->attr.pkey[0] = WIRE_PKEY_DEFAULT_FULL;
	w->attr.gids = WIRE_PORT_GIDS;
	w->attr.gid[0] = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, p->guid);
	return 0;
}

void fabric_ca_fini(struct fabric_port *p)
{
	u32 user;

	if (!p->ca)
		return;
	for (user = 0; user < 2; user++)
		while (!list_empty(&p->ca->hold[user].q)) {
			struct wire_packet *pkt = list_first(&p->ca->hold[user].q, struct wire_packet, link);

			list_del(&pkt->link);
			wire_packet_free(pkt);
		}
	free(p->ca);
}

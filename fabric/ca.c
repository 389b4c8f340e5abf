// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Link layer of a CA port: wire_port operations for transport and MAD layer, loopback, and the receive backlog. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/fabric_internal.h"

enum {
	USER_DATA,
	USER_MAD
};

static struct fabric_ca *to_ca(struct wire_port *w)
{
	return container_of(w, struct fabric_ca, wire);
}

static int ca_discard(struct fabric_port *p, struct wire_packet *pkt, enum fabric_counter why)
{
	fabric_count_discard(p, why);
	wire_packet_free(pkt);
	return 0;
}

int fabric_ca_send(struct wire_port *w, struct wire_packet *pkt)
{
	struct fabric_ca *ca = to_ca(w);
	struct fabric_port *p = ca->port;
	u16 dlid = wire_lrh_dlid(wire_packet_lrh(pkt));
	bool self = fabric_has_lid(p, dlid), full, credit = true;
	u8 vl;

	/*
	 * Only the SMI sends on VL15 (9.2.3.2). A datagram of another QP to QP0 is sent on its SL's VL; the receiver
	 * discards it.
	 */
	if (pkt->vl == WIRE_VL_MGMT) {
		if (dlid == WIRE_LID_PERMISSIVE || self)
			fabric_flight_loopback(p, pkt, WIRE_VL_MGMT);
		else
			fabric_mad_vl15(p, pkt);
		return 0;
	}
	vl = fabric_flight_vl(p, p, wire_lrh_sl(wire_packet_lrh(pkt)));
	if (unlikely(p->info->state != PORT_STATE_ACTIVE || vl >= p->nvls))
		return ca_discard(p, pkt, vl >= p->nvls ? FABRIC_CTR_RCV_VL_MAPPING : FABRIC_CTR_XMIT_INACTIVE);
	if (unlikely(pkt->len > wire_mtu_bytes(p->info->mtu_active)))
		return ca_discard(p, pkt, FABRIC_CTR_XMIT_NEIGHBOR_MTU);
	if (self) {
		full = p->rx_blocks[vl] + fabric_blocks(pkt) > FABRIC_VL_BLOCKS;
	} else {
		credit = fabric_credit(p, vl, pkt);
		full = (p->vls && (p->vls->active & BIT(vl))) || !credit || fabric_timed_busy(p);
	}
	if (full) {
		ca->want_ready = true;
		if (!credit)
			fabric_arb_block(p, vl);
		return -EAGAIN;
	}
	if (self) {
		fabric_flight_loopback(p, pkt, vl);
		return 0;
	}
	fabric_arb_unblock(p, BIT(vl));
	fabric_transmit(p, pkt, vl, NULL);
	return 0;
}

void fabric_ca_set_cap(struct wire_port *w, u32 set, u32 clear)
{
	struct fabric_port *p = to_ca(w)->port;
	u32 mask = (p->info->cap_mask & ~clear) | set;

	if (mask == p->info->cap_mask)
		return;
	if ((mask ^ p->info->cap_mask) & PORT_CAP_SM)
		fabric_notify(p->node->f, FABRIC_EVENT_SM, p, mask & PORT_CAP_SM ? "opened" : "closed");
	p->info->cap_mask = mask;
	fabric_trap_local_changes(p, 0);
}

void fabric_ca_violation(struct wire_port *w, const struct wire_port_violation *v)
{
	fabric_trap_key(to_ca(w)->port, v);
}

static const struct wire_port_ops ops = { .send = fabric_ca_send,
					  .set_cap = fabric_ca_set_cap,
					  .violation = fabric_ca_violation };

static void ca_resume(struct wire_port *w)
{
	struct fabric_port *p = to_ca(w)->port;
	struct fabric *f = p->node->f;

	if (!list_empty(&p->kick))
		return;
	list_add(&f->kicked, &p->kick);
	loop_task_queue(f->loop, &f->task);
}

/* Passes a packet to a user. False: the user returned -EAGAIN; the packet keeps its credits. */
static bool ca_offer(struct fabric_port *p, u32 user, struct wire_packet *pkt)
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
	fabric_flight_release(p, vl, blocks);
	return true;
}

static void ca_deliver(struct fabric_port *p, u32 user, struct wire_packet *pkt)
{
	struct fabric_rx_backlog *h = &p->ca->backlog[user];

	if (!h->n && ca_offer(p, user, pkt))
		return;
	if (!wire_packet_own(pkt)) {
		fabric_flight_drop(p, pkt);
		return;
	}
	if (pkt->vl == WIRE_VL_MGMT && h->n >= FABRIC_RX_BACKLOG_SMPS) {
		fabric_count(p, FABRIC_CTR_VL15_DROPPED);
		wire_packet_free(pkt);
		return;
	}
	list_add(&h->q, &pkt->link);
	h->n++;
}

/* Resumes a CA: delivers its receive backlog, and signals its users that sends may be retried. */
void fabric_ca_ready(struct fabric_port *p)
{
	struct fabric_ca *ca = p->ca;
	struct wire_port *w = &ca->wire;
	u32 user;

	for (user = USER_DATA; user <= USER_MAD; user++) {
		struct fabric_rx_backlog *h = &ca->backlog[user];
		u32 left = h->n;

		while (left--) {
			struct wire_packet *pkt = list_first(&h->q, struct wire_packet, link);

			list_del(&pkt->link);
			if (!ca_offer(p, user, pkt)) {
				list_add(h->q.next, &pkt->link); /* back to the head of the queue */
				break;
			}
			h->n--;
		}
	}
	if (!ca->want_ready)
		return;
	ca->want_ready = false;
	fabric_arb_unblock(p, 0xffff);
	if (w->data.ready)
		w->data.ready(w->data.ctx);
	if (w->mad.ready)
		w->mad.ready(w->mad.ctx);
}

void fabric_ca_deliver_data(struct fabric_port *p, struct wire_packet *pkt)
{
	ca_deliver(p, USER_DATA, pkt);
}

void fabric_ca_deliver_mad(struct fabric_port *p, struct wire_packet *pkt, bool credits_held)
{
	if (!credits_held && pkt->vl != WIRE_VL_MGMT)
		p->rx_blocks[pkt->vl] += fabric_blocks(pkt);
	ca_deliver(p, USER_MAD, pkt);
}

void fabric_ca_event(struct fabric_port *p, enum wire_port_event e)
{
	struct wire_port *w = &p->ca->wire;

	if (p->node->f->closing)
		return;
	wire_port_event(w, e);
}

int fabric_ca_init(struct fabric_port *p, const struct fabric_topology *t, const struct fabric_topology_node *n)
{
	struct fabric_ca *ca = calloc(1, sizeof(*ca));
	struct wire_port *w;

	if (!ca)
		return -ENOMEM;
	p->ca = ca;
	p->info = &ca->wire.attr.info;
	ca->port = p;
	list_init(&ca->direct);
	ca->ip = n->ip[p->num];
	list_init(&ca->backlog[0].q);
	list_init(&ca->backlog[1].q);
	w = &ca->wire;
	w->ops = &ops;
	w->resume = ca_resume;
	w->node_guid = n->guid;
	w->port_guid = p->guid;
	w->num = p->num;
	snprintf(w->name, sizeof(w->name), "%s", n->name);
	w->attr.link_layer = WIRE_LINK_IB;
	w->attr.max_vl = t->vl_cap;
	w->attr.pkeys = WIRE_PORT_PKEYS;
	w->attr.gids = WIRE_PORT_GIDS;
	return 0;
}

void fabric_ca_reset(struct fabric_port *p)
{
	struct wire_port_attr *a = &p->ca->wire.attr;

	memset(a->pkey, 0, sizeof(a->pkey));
	memset(a->gid, 0, sizeof(a->gid));
	a->pkey[0] = WIRE_PKEY_DEFAULT_FULL;
	a->gid[0] = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, p->guid);
	a->init_type_reply = 0;
	fabric_ca_event(p, WIRE_PORT_PKEY_CHANGE);
	fabric_ca_event(p, WIRE_PORT_GID_CHANGE);
}

void fabric_ca_fini(struct fabric_port *p)
{
	u32 user;

	if (!p->ca)
		return;
	list_del(&p->ca->direct);
	for (user = 0; user < 2; user++)
		while (!list_empty(&p->ca->backlog[user].q)) {
			struct wire_packet *pkt = list_first(&p->ca->backlog[user].q, struct wire_packet, link);

			list_del(&pkt->link);
			wire_packet_free(pkt);
		}
	free(p->ca);
}

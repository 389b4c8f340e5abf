// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Management datagrams that arrive at a node: who answers them, and how answers and traps leave. */
#include <errno.h>
#include <stdlib.h>

#include "emu/wire/opcode.h"
#include "fabric/internal.h"

u8 *fabric_mad_data(struct wire_packet *p)
{
	struct wire_buf *own;

	if (p->len != MAD_SIZE || fabric_bth(p)->opcode != WIRE_UD_SEND_ONLY ||
	    p->bth_off + sizeof(struct wire_bth) + sizeof(struct wire_deth) > p->hdr_len)
		return NULL;
	if (p->buf->refs > 1) {
		own = wire_buf_alloc(MAD_SIZE);
		if (!own)
			return NULL;
		memcpy(own->data, p->data, MAD_SIZE);
		wire_buf_put(p->buf);
		p->buf = own;
		p->data = own->data;
	}
	return p->buf->data + (p->data - p->buf->data);
}

static struct wire_deth *deth(const struct wire_packet *p)
{
	return (struct wire_deth *)(p->hdr + p->bth_off + sizeof(struct wire_bth));
}

struct wire_packet *fabric_mgmt_packet(u16 slid, u16 dlid, u8 sl, u32 qpn)
{
	struct wire_packet *p = wire_packet_alloc();
	struct wire_buf *b = p ? wire_buf_alloc(MAD_SIZE) : NULL;

	if (!b) {
		if (p)
			wire_packet_free(p);
		return NULL;
	}
	memset(b->data, 0, MAD_SIZE);
	p->buf = b;
	p->data = b->data;
	p->len = MAD_SIZE;
	p->has_lrh = 1;
	p->bth_off = sizeof(struct wire_lrh);
	p->hdr_len = p->bth_off + sizeof(struct wire_bth) + sizeof(struct wire_deth);
	p->vl = qpn == MAD_QPN_SMI ? WIRE_VL_MGMT : 0;
	wire_lrh_fill(fabric_lrh(p), p->vl, sl, WIRE_LNH_BTH, dlid, slid, wire_packet_link_len(p) / 4);
	wire_bth_fill(fabric_bth(p), WIRE_UD_SEND_ONLY, false, 0, WIRE_PKEY_DEFAULT_FULL, qpn, false, 0);
	wire_deth_fill(deth(p), qpn == MAD_QPN_SMI ? 0 : MAD_QKEY_WELL_KNOWN, qpn);
	return p;
}

/* To the CA itself: by way of its port 0, so that nothing is delivered inside the caller's call. */
static void send_inside(struct fabric_port *p, struct wire_packet *pkt)
{
	pkt->in_port = p->num;
	if (pkt->vl != WIRE_VL_MGMT)
		p->rx_blocks[pkt->vl] += fabric_blocks(pkt);
	fabric_flight_push(p->node->f, &p->node->ports[0], pkt, 0);
}

static void send_gmp(struct fabric_port *p, struct wire_packet *pkt)
{
	u8 vl = fabric_relay_vl(p, p, wire_lrh_sl(fabric_lrh(pkt)));

	if (p->state != PORT_STATE_ACTIVE || vl >= p->nvls) {
		fabric_count(p, FABRIC_CTR_XMIT_DISCARDS);
		wire_packet_free(pkt);
	} else if ((p->vls && (p->vls->active & BIT(vl))) || !fabric_credit(p, vl, pkt)) {
		pkt->in_port = 0;
		fabric_arb_queue(p, pkt, vl, p->node->f->now);
	} else {
		fabric_flight_push(p->node->f, fabric_relay_transmit(p, pkt, vl), pkt, 0);
	}
}

void fabric_mgmt_send(struct fabric_port *p, struct wire_packet *pkt)
{
	u16 dlid = wire_lrh_dlid(fabric_lrh(pkt));

	if (p->node->sw) {
		pkt->in_port = 0;
		fabric_relay_route(p->node, &p->node->ports[0], pkt);
	} else if (p->lid && dlid >= p->lid && dlid < p->lid + BIT(p->lmc)) {
		send_inside(p, pkt);
	} else if (pkt->vl == WIRE_VL_MGMT) {
		fabric_relay_send_vl15(p, pkt);
	} else {
		send_gmp(p, pkt);
	}
}

/* Turns the packet round: what was the source is the destination. */
static void turn(struct fabric_port *self, struct wire_packet *p)
{
	struct wire_lrh *lrh = fabric_lrh(p);
	u16 slid = wire_lrh_slid(lrh);
	bool permissive = wire_lrh_dlid(lrh) == WIRE_LID_PERMISSIVE;
	u32 src_qp = wire_deth_src_qp(deth(p)), dst_qp = wire_bth_qpn(fabric_bth(p));

	lrh->slid = permissive || wire_lid_is_multicast(wire_lrh_dlid(lrh))
			    ? cpu_to_be16(permissive ? WIRE_LID_PERMISSIVE : self->lid)
			    : lrh->dlid;
	lrh->dlid = cpu_to_be16(slid);
	fabric_bth(p)->ecn_qpn = cpu_to_be32(src_qp);
	wire_deth_fill(deth(p), dst_qp == MAD_QPN_SMI ? 0 : MAD_QKEY_WELL_KNOWN, dst_qp);
	if (p->grh_off) {
		struct wire_grh *grh = (struct wire_grh *)(p->hdr + p->grh_off);
		struct wire_gid gid = grh->sgid;

		grh->sgid = grh->dgid;
		grh->dgid = gid;
		grh->hoplmt = 255;
	}
	list_init(&p->link);
	p->flags = 0;
}

static void respond(struct fabric_port *self, struct fabric_port *in, struct wire_packet *p, const u8 *mad)
{
	bool directed = wire_get(mad, MAD_CLASS) == MAD_CLASS_SUBN_DIRECTED;

	turn(self, p);
	if (directed && wire_get(mad, SMP_DR_DLID) == WIRE_LID_PERMISSIVE)
		fabric_smi_step(self->node, in, p);
	else
		fabric_mgmt_send(self, p);
}

static void drop(struct fabric_port *in, struct wire_packet *p, bool charged)
{
	if (charged)
		fabric_relay_drop(in, p);
	else
		wire_packet_free(p);
}

/* SMInfo belongs to a subnet manager, where there is one. */
static bool for_sm(const struct fabric_port *self, const u8 *mad)
{
	u8 method = wire_get(mad, MAD_METHOD);

	if (method != MAD_METHOD_GET && method != MAD_METHOD_SET)
		return method != MAD_METHOD_TRAP_REPRESS;
	return wire_get(mad, MAD_ATTR_ID) == SMP_ATTR_SM_INFO && self->ca && (self->cap_mask & PORT_CAP_SM);
}

void fabric_smp_deliver(struct fabric_port *self, struct fabric_port *in, struct wire_packet *p, u8 *mad)
{
	u8 method = wire_get(mad, MAD_METHOD);

	if (for_sm(self, mad)) {
		if (self->ca)
			fabric_ca_deliver_mad(self, p, false);
		else
			wire_packet_free(p);
	} else if (method == MAD_METHOD_TRAP_REPRESS) {
		/* Managers on the host send traps of their own. */
		if (!fabric_trap_repress(self->node, mad) && self->ca)
			fabric_ca_deliver_mad(self, p, false);
		else
			wire_packet_free(p);
	} else if (fabric_sma_request(self, in, mad, wire_lrh_slid(fabric_lrh(p)))) {
		respond(self, in, p, mad);
	} else {
		wire_packet_free(p);
	}
}

int fabric_ca_mad(const struct fabric_node *n, u32 num, u8 *mad)
{
	struct fabric_port *p = fabric_node_port(n, num);
	u8 class = (u8)wire_get(mad, MAD_CLASS);

	if (!p || !p->ca || wire_mad_is_response((u8)wire_get(mad, MAD_METHOD)))
		return 0;
	if (class == MAD_CLASS_PERF)
		return fabric_pma_request(p, mad);
	if (!wire_mad_is_smp_class(class) || for_sm(p, mad) || wire_get(mad, MAD_METHOD) == MAD_METHOD_TRAP_REPRESS)
		return 0;
	return fabric_sma_request(fabric_self(p), p, mad, p->lid);
}

static void receive_smp(struct fabric_port *self, struct fabric_port *in, struct wire_packet *p, bool charged)
{
	u8 *mad = p->vl == WIRE_VL_MGMT ? fabric_mad_data(p) : NULL; /* SMPs on other VLs are discarded: 9.9 */
	u8 class = mad ? wire_get(mad, MAD_CLASS) : 0;

	if (class == MAD_CLASS_SUBN_DIRECTED)
		fabric_smi_step(self->node, in, p);
	else if (class == MAD_CLASS_SUBN_LID)
		fabric_smp_deliver(self, in, p, mad);
	else
		drop(in, p, charged);
}

/* A request of a class that nobody on a switch serves. */
static bool unsupported(u8 *mad)
{
	u8 method = wire_get(mad, MAD_METHOD);

	if (method != MAD_METHOD_GET && method != MAD_METHOD_SET)
		return false;
	wire_set(mad, MAD_METHOD, MAD_METHOD_GET_RESP);
	wire_set(mad, MAD_STATUS, MAD_STATUS_BAD_VERSION);
	return true;
}

static void receive_gmp(struct fabric_port *self, struct fabric_port *in, struct wire_packet *p, bool charged)
{
	u8 *mad = p->vl != WIRE_VL_MGMT ? fabric_mad_data(p) : NULL;
	bool request = mad && !wire_mad_is_response((u8)wire_get(mad, MAD_METHOD)), answer = false;

	if (mad && request && wire_get(mad, MAD_CLASS) == MAD_CLASS_PERF)
		answer = fabric_pma_request(self, mad);
	else if (self->ca) {
		fabric_ca_deliver_mad(self, p, charged);
		return;
	} else if (request) {
		answer = unsupported(mad);
	}
	if (!answer) {
		drop(in, p, charged);
		return;
	}
	if (charged)
		fabric_relay_release(in, p->vl, p);
	respond(self, in, p, mad);
}

void fabric_mgmt_receive(struct fabric_port *p, struct fabric_port *in, struct wire_packet *pkt, bool charged)
{
	u32 qpn;

	if (pkt->flags & WIRE_PKT_BAD_ICRC) {
		fabric_count(p, FABRIC_CTR_RCV_ERRORS);
		drop(in, pkt, charged);
		return;
	}
	if (pkt->bth_off + sizeof(struct wire_bth) > pkt->hdr_len || wire_lrh_lnh(fabric_lrh(pkt)) < WIRE_LNH_BTH) {
		drop(in, pkt, charged);
		return;
	}
	qpn = wire_bth_qpn(fabric_bth(pkt));
	if (qpn == MAD_QPN_SMI)
		receive_smp(p, in, pkt, charged);
	else if (qpn == MAD_QPN_GSI || p->ca)
		receive_gmp(p, in, pkt, charged);
	else
		drop(in, pkt, charged);
}

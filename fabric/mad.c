// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* MADs sent by agents of a node (IBTA 13.5): packets, injection into the fabric, and transmission on VL15. */
#include "emu/wire/opcode.h"
#include "fabric/fabric_internal.h"

u8 *fabric_mad_data(struct wire_packet *p)
{
	struct wire_buf *own;

	if (p->len != MAD_SIZE || wire_packet_bth(p)->opcode != WIRE_UD_SEND_ONLY ||
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

struct wire_packet *fabric_mad_packet(u16 slid, u16 dlid, u8 sl, u32 qpn)
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
	p->bth_off = sizeof(struct wire_lrh);
	p->hdr_len = p->bth_off + sizeof(struct wire_bth) + sizeof(struct wire_deth);
	p->vl = qpn == MAD_QPN_SMI ? WIRE_VL_MGMT : 0;
	wire_lrh_fill(wire_packet_lrh(p), p->vl, sl, WIRE_LNH_BTH, dlid, slid, wire_packet_link_len(p) / 4);
	wire_bth_fill(wire_packet_bth(p), WIRE_UD_SEND_ONLY, false, 0, WIRE_PKEY_DEFAULT_FULL, qpn, false, 0);
	wire_deth_fill(wire_packet_deth(p), qpn == MAD_QPN_SMI ? 0 : MAD_QKEY_WELL_KNOWN, qpn);
	return p;
}

void fabric_mad_vl15(struct fabric_port *out, struct wire_packet *p)
{
	if (!out->peer || out->info->state < PORT_STATE_INIT) {
		fabric_count_discard(out, FABRIC_CTR_XMIT_INACTIVE);
		wire_packet_free(p);
	} else if (fabric_timing_full(out)) {
		fabric_count_discard(out, FABRIC_CTR_VL15_DROPPED);
		wire_packet_free(p);
	} else {
		fabric_transmit(out, p, WIRE_VL_MGMT, NULL);
	}
}

void fabric_mad_send(struct fabric_port *p, struct wire_packet *pkt)
{
	u8 vl = fabric_flight_vl(p, p, wire_lrh_sl(wire_packet_lrh(pkt)));

	if (p->node->sw) {
		pkt->in_port = 0;
		fabric_flight_push(p->node->f, &p->node->ports[0], pkt); /* the switch forwards it */
	} else if (fabric_has_lid(p, wire_lrh_dlid(wire_packet_lrh(pkt)))) {
		fabric_flight_loopback(p, pkt, pkt->vl);
	} else if (pkt->vl == WIRE_VL_MGMT) {
		fabric_mad_vl15(p, pkt);
	} else if (p->info->state != PORT_STATE_ACTIVE || vl >= p->nvls) {
		fabric_count(p, FABRIC_CTR_XMIT_DISCARDS);
		wire_packet_free(pkt);
	} else if ((p->vls && (p->vls->active & BIT(vl))) || !fabric_credit(p, vl, pkt) || fabric_timed_busy(p)) {
		pkt->in_port = 0;
		fabric_arb_queue(p, pkt, vl);
	} else {
		fabric_transmit(p, pkt, vl, NULL);
	}
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packet headers LRH, GRH and BTH (IBTA 7.7, 8.3, 9.2), and the send queue of a port: backpressure when it has no
 * credits.
 */
#include "rxe/rxe_internal.h"

#define HOP_LIMIT_DEFAULT 64

static u16 qp_pkey(const struct hca_qp *qp)
{
	const struct wire_port *port = hca_port(qp->hca, qp->attr.port);

	return port && qp->attr.pkey_index < WIRE_PORT_PKEYS ? port->attr.pkey[qp->attr.pkey_index] : 0;
}

static void grh_fill(struct wire_grh *grh, const struct hca_av *av, const struct wire_port *port, u32 paylen)
{
	wire_grh_set_ver_tc_flow(grh, av->traffic_class, av->flow_label);
	grh->paylen = cpu_to_be16((u16)paylen);
	grh->nxthdr = WIRE_GRH_NXTHDR_IBA;
	grh->hoplmt = av->hop_limit ? av->hop_limit : HOP_LIMIT_DEFAULT;
	grh->sgid = port->attr.gid[av->sgid_index % WIRE_PORT_GIDS];
	grh->dgid = av->dgid;
}

struct wire_packet *rxe_frame_to(struct hca_qp *qp, const struct hca_av *av, u32 dqpn, u8 opcode, u32 psn, u32 len)
{
	const struct wire_port *port = hca_port(qp->hca, qp->attr.port);
	const struct wire_opcode *op = wire_opcode(opcode);
	u32 pad = -len & 3, words;
	struct wire_packet *p = wire_packet_alloc();

	if (!p)
		return NULL;
	p->grh_off = av->grh ? 8 : 0;
	p->bth_off = av->grh ? 48 : 8;
	p->hdr_len = p->bth_off + op->hdr_len;
	words = (p->hdr_len + len + pad + WIRE_ICRC_LEN) / 4;
	wire_lrh_fill(wire_packet_lrh(p), 0, av->sl, av->grh ? WIRE_LNH_GRH : WIRE_LNH_BTH, av->dlid,
		      port->attr.lid | (av->src_path_bits & ((1u << port->attr.lmc) - 1)), words);
	if (av->grh)
		grh_fill(wire_packet_grh(p), av, port, words * 4 - 48);
	if (wire_port_is_ethernet(port))
		p->l2 = wire_port_l2(port, av->sgid_index, av->sl, av->dmac);
	wire_bth_fill(wire_packet_bth(p), opcode, false, (u8)pad, qp_pkey(qp), dqpn, false, psn);
	return p;
}

struct wire_packet *rxe_frame(struct hca_qp *qp, u8 opcode, u32 psn, u32 len)
{
	struct wire_packet *p;

	if (opcode != WIRE_CNP)
		opcode = (opcode & WIRE_OP_MASK) | rxe_transport_of(qp);
	p = rxe_frame_to(qp, &qp->attr.av, qp->attr.dest_qpn, opcode, psn, len);
	if (!p)
		return NULL;
	wire_bth_set_migreq(wire_packet_bth(p), qp->attr.path_mig_state == HCA_MIG_MIGRATED);
	rxe_cc_set_ect(qp->transport, p);
	return p;
}

void rxe_payload(struct wire_packet *p, struct wire_buf *buf, u32 off, u32 len)
{
	if (!len)
		return;
	p->buf = wire_buf_get(buf);
	p->data = buf->data + off;
	p->len = len;
}

/*
 * Zero-copy send. If the program writes to its memory while the ICRC is computed, the receiver drops the packet and the
 * requester retransmits it. Before the completion it is undefined which data is sent (IBTA 10.8.3).
 */
void rxe_payload_zcopy(struct wire_packet *p, const u8 *data, u32 len)
{
	p->data = data;
	p->len = len;
	p->flags |= WIRE_PKT_ZCOPY;
}

bool rxe_blocked(const struct rxe *rxe, u8 port)
{
	return !list_empty(&rxe->pending[port - 1]);
}

bool rxe_send(struct rxe *rxe, u8 port, struct wire_packet *p)
{
	struct wire_port *wp = hca_port(rxe->hca, port);

	hca_count(rxe->hca, port, HCA_CNT_SENT_PKTS);
	if (!rxe_blocked(rxe, port) && wire_port_send(wp, p) == 0)
		return true;
	/*
	 * A peer that sends requests and returns no credits makes ACKs wait: those beyond the limit are lost packets.
	 */
	if (rxe->npending[port - 1] < RXE_PENDING && wire_packet_own(p)) {
		list_add(&rxe->pending[port - 1], &p->link);
		rxe->npending[port - 1]++;
	} else {
		wire_packet_free(p);
	}
	return false;
}

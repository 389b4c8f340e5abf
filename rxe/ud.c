// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * UD receive and multicast (IBTA 9.8, 10.5): one packet per message, P_Key and Q_Key checks, the GRH in the first 40
 * bytes.
 */
#include <errno.h>

#include "emu/packet/roce.h"
#include "emu/wire/inet.h"
#include "rxe/respond.h"

#define GRH_LEN 40

struct delivery {
	struct wire_packet *p;
	const struct wire_opcode *op;
	const struct hca_qp *from; /* the sender, if it is a queue pair of this HCA: it receives no copy */
};

/* Writes GRH (if any) and payload to the pulled receive request. */
static int ud_payload_write(struct rxe_qp *rq, struct wire_packet *p)
{
	int err = 0;

	if (p->grh_off) {
		struct wire_buf *grh = wire_buf_alloc(GRH_LEN);

		if (!grh)
			return -ENOMEM;
		if (rxe_is_ethernet(rq))
			wire_roce_put_grh(p, grh->data);
		else
			memcpy(grh->data, p->hdr + p->grh_off, GRH_LEN);
		err = rxe_recv_write(rq, 0, rxe_bytes_in(grh));
		wire_buf_put(grh);
	}
	if (!err && p->len)
		err = rxe_recv_write(rq, GRH_LEN, rxe_bytes_of(p));
	return err;
}

static void ud_deliver(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	const struct wire_lrh *lrh = wire_packet_lrh(p);
	const struct wire_bth *bth = wire_packet_bth(p);
	const struct wire_deth *deth = wire_packet_deth(p);
	struct wire_port *port = hca_port(rq->qp->hca, rq->qp->attr.port);
	int pkey = wire_port_pkey_match(port, wire_bth_pkey(bth));
	struct hca_cqe cqe = {
		.opcode = HCA_WC_RECV,
		.byte_len = p->len + GRH_LEN,
		.src_qp = wire_deth_src_qp(deth),
		.slid = wire_lrh_slid(lrh),
		.sl = wire_lrh_sl(lrh),
		.dlid_path_bits = wire_lrh_dlid(lrh) & ((1u << port->attr.lmc) - 1),
		.pkey_index = pkey < 0 ? 0 : (u16)pkey,
		.flags = p->grh_off ? HCA_WC_GRH : 0,
		.solicited = wire_bth_se(bth),
	};
	int got, err;

	got = hca_qp_overfull(rq->qp) ? 0 : rxe_recv_get(rq);
	if (got <= 0) {
		rxe_resp_fail(rq, got ? RXE_RESP_RECV : RXE_RESP_NO_RECV);
		return;
	}
	err = ud_payload_write(rq, p);
	if (err) {
		rxe_resp_fail(rq, err == HCA_KEY_BOUNDS ? RXE_RESP_LENGTH : RXE_RESP_PROTECTION);
		return;
	}
	if (rq->qp->rx_csum && wire_inet_ok(p->data, p->len))
		cqe.flags |= HCA_WC_IP_CSUM_OK;
	if (op->flags & WIRE_OPF_IMM) {
		cqe.flags |= HCA_WC_WITH_IMM;
		cqe.imm = be32_to_cpu(wire_packet_immdt(p)->imm);
	}
	rxe_recv_complete(rq, &cqe);
}

static bool qp_receives_ud(const struct hca_qp *qp)
{
	return qp->type == HCA_QPT_UD && qp->state >= HCA_QPS_RTR && qp->state <= HCA_QPS_SQE;
}

static bool member_accepts(const struct hca_qp *qp, struct wire_packet *p)
{
	return qp_receives_ud(qp) && rxe_pkey_matches(qp, p, qp->attr.port, qp->attr.pkey_index) &&
	       rxe_qkey_matches(qp, p);
}

static void deliver_member(struct hca_qp *qp, void *arg)
{
	struct delivery *d = arg;

	if (qp != d->from && member_accepts(qp, d->p))
		ud_deliver(qp->transport, d->p, d->op);
}

static void deliver_group(struct hca *hca, u8 port, struct delivery *d)
{
	struct wire_gid mgid = wire_packet_grh(d->p)->dgid;

	hca_mcast_for_each(hca, port, &mgid, wire_lrh_dlid(wire_packet_lrh(d->p)), deliver_member, d);
}

void rxe_ud_loop_back(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	struct delivery d = { .p = p, .op = op, .from = rq->qp };

	if (rxe_destination_valid(hca_port(rq->rxe->hca, rq->qp->attr.port), p))
		deliver_group(rq->rxe->hca, rq->qp->attr.port, &d);
}

void rxe_ud_receive(struct rxe *rxe, u8 port, struct wire_packet *p, const struct wire_opcode *op)
{
	const struct wire_bth *bth = wire_packet_bth(p);
	struct delivery d = { .p = p, .op = op };
	struct hca_qp *qp;

	if (wire_bth_qpn(bth) == RXE_QPN_MULTICAST) {
		deliver_group(rxe->hca, port, &d);
		return;
	}
	qp = hca_qp_lookup(rxe->hca, wire_bth_qpn(bth));
	if (!qp || !qp_receives_ud(qp) || qp->attr.port != port) {
		hca_count(rxe->hca, port, HCA_CNT_WRONG_QP);
		return;
	}
	if (rxe_pkey_accepts(qp, p, port, qp->attr.pkey_index) && rxe_qkey_accepts(qp, p, port))
		ud_deliver(qp->transport, p, op);
}

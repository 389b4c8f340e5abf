// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Unreliable datagrams and multicast (9.8.4, 10.5): one packet a message, checked by Q_Key, the GRH kept for the receiver. */
#include <errno.h>

#include "emu/wire/inet.h"
#include "emu/wire/roce.h"
#include "rxe/internal.h"

#define GRH_LEN 40

struct delivery {
	struct wire_packet *p;
	const struct wire_opcode *op;
	const struct hca_qp *from; /* who sent it, if it is a queue pair of this HCA: it gets no copy */
};

static void violation(struct rxe *rxe, u8 port, const struct wire_packet *p, u32 key, u32 sqp, u32 dqp)
{
	struct wire_port *wp = hca_port(rxe->hca, port);
	const struct wire_lrh *lrh = (const struct wire_lrh *)p->hdr;
	struct wire_port_violation v = {
		.qkey = true,
		.key = key,
		.sl = wire_lrh_sl(lrh),
		.slid = wire_lrh_slid(lrh),
		.dlid = wire_lrh_dlid(lrh),
		.sqp = sqp,
		.dqp = dqp,
	};

	hca_count(rxe->hca, port, HCA_CNT_QKEY_MISMATCH);
	if (p->grh_off) {
		const struct wire_grh *grh = (const struct wire_grh *)(p->hdr + p->grh_off);

		v.sgid = grh->sgid;
		v.dgid = grh->dgid;
	}
	wp->ops->violation(wp, &v);
}

static u16 pkey_index(const struct wire_port *port, u16 pkey)
{
	u16 i;

	for (i = 0; i < port->attr.pkeys; i++) {
		if (wire_pkey_match(port->attr.pkey[i], pkey))
			return i;
	}
	return 0;
}

static bool is_ethernet(const struct rxe_qp *rq)
{
	return hca_port(rq->qp->hca, rq->qp->attr.port)->attr.link_layer == WIRE_LINK_ETHERNET;
}

/* Places GRH (where there is one) and payload into the held request. */
static int place(struct rxe_qp *rq, struct wire_packet *p)
{
	struct rxe *rxe = rq->rxe;
	int err = 0;

	if (p->grh_off) {
		struct wire_buf *grh = wire_buf_alloc(GRH_LEN);

		if (!grh)
			return -ENOMEM;
		if (is_ethernet(rq))
			wire_roce_put_grh(p, grh->data);
		else
			memcpy(grh->data, p->hdr + p->grh_off, GRH_LEN);
		err = rxe_sges_span(rq->qp, rq->recv.sge, rq->recv.num_sge, 0, GRH_LEN, HCA_ACCESS_LOCAL_WRITE,
				    grh->data, true, rq);
		rxe_keep(rxe, grh);
		wire_buf_put(grh);
	}
	if (!err && p->len)
		err = rxe_sges_span(rq->qp, rq->recv.sge, rq->recv.num_sge, GRH_LEN, p->len, HCA_ACCESS_LOCAL_WRITE,
				    (void *)(uintptr_t)p->data, true, rq);
	rxe_keep_payload(rxe, p);
	return err;
}

static void deliver(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	const struct wire_lrh *lrh = (struct wire_lrh *)p->hdr;
	const struct wire_bth *bth = (struct wire_bth *)(p->hdr + p->bth_off);
	const struct wire_deth *deth = rxe_eth(p, WIRE_ETH_DETH);
	struct wire_port *port = hca_port(rq->qp->hca, rq->qp->attr.port);
	struct hca_cqe cqe = {
		.opcode = HCA_WC_RECV,
		.byte_len = p->len + GRH_LEN,
		.src_qp = wire_deth_src_qp(deth),
		.slid = wire_lrh_slid(lrh),
		.sl = wire_lrh_sl(lrh),
		.dlid_path_bits = wire_lrh_dlid(lrh) & ((1u << port->attr.lmc) - 1),
		.pkey_index = pkey_index(port, wire_bth_pkey(bth)),
		.flags = p->grh_off ? HCA_WC_GRH : 0,
		.solicited = wire_bth_se(bth),
	};
	int err;

	if (rxe_recv_get(rq) <= 0) { /* nothing posted: a datagram is dropped silently */
		hca_count(rq->qp->hca, port->num, HCA_CNT_UD_DROPPED);
		return;
	}
	err = place(rq, p);
	if (err == HCA_KEY_BOUNDS)
		cqe.status = HCA_WC_LOC_LEN_ERR;
	else if (err)
		cqe.status = HCA_WC_LOC_PROT_ERR;
	if (rq->qp->rx_csum && wire_inet_ok(p->data, p->len))
		cqe.flags |= HCA_WC_IP_CSUM_OK;
	if (op->flags & WIRE_OPF_IMM) {
		cqe.flags |= HCA_WC_WITH_IMM;
		cqe.imm = be32_to_cpu(((struct wire_immdt *)rxe_eth(p, WIRE_ETH_IMMDT))->imm);
	}
	rxe_recv_complete(rq, &cqe);
}

static bool receives(const struct hca_qp *qp)
{
	return qp->type == HCA_QPT_UD && qp->state >= HCA_QPS_RTR && qp->state <= HCA_QPS_SQE;
}

static bool member_accepts(const struct hca_qp *qp, struct wire_packet *p)
{
	const struct wire_bth *bth = (struct wire_bth *)(p->hdr + p->bth_off);

	return receives(qp) && wire_pkey_match(rxe_pkey(qp, qp->attr.pkey_index), wire_bth_pkey(bth)) &&
	       wire_deth_qkey(rxe_eth(p, WIRE_ETH_DETH)) == qp->attr.qkey;
}

static void deliver_member(struct hca_qp *qp, void *arg)
{
	struct delivery *d = arg;

	if (qp != d->from && member_accepts(qp, d->p))
		deliver(qp->transport, d->p, d->op);
}

static void deliver_group(struct hca *hca, u8 port, struct delivery *d)
{
	const struct wire_grh *grh = (const struct wire_grh *)(d->p->hdr + d->p->grh_off);
	struct wire_gid mgid;

	if (!d->p->grh_off)
		return;
	mgid = grh->dgid;
	hca_mcast_for_each(hca, port, &mgid, wire_lrh_dlid((struct wire_lrh *)d->p->hdr), deliver_member, d);
}

void rxe_ud_loop_back(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op)
{
	struct delivery d = { .p = p, .op = op, .from = rq->qp };

	deliver_group(rq->rxe->hca, rq->qp->attr.port, &d);
}

void rxe_ud_receive(struct rxe *rxe, u8 port, struct wire_packet *p, const struct wire_opcode *op)
{
	const struct wire_bth *bth = (struct wire_bth *)(p->hdr + p->bth_off);
	const struct wire_deth *deth = rxe_eth(p, WIRE_ETH_DETH);
	struct delivery d = { .p = p, .op = op };
	struct hca_qp *qp;

	if (wire_bth_qpn(bth) == RXE_QPN_MULTICAST) {
		deliver_group(rxe->hca, port, &d);
		return;
	}
	qp = hca_qp_lookup(rxe->hca, wire_bth_qpn(bth));
	if (!qp || !receives(qp) || qp->attr.port != port) {
		hca_count(rxe->hca, port, HCA_CNT_WRONG_QP);
		return;
	}
	if (wire_deth_qkey(deth) != qp->attr.qkey) {
		violation(rxe, port, p, wire_deth_qkey(deth), wire_deth_src_qp(deth), qp->qpn);
		return;
	}
	deliver(qp->transport, p, op);
}

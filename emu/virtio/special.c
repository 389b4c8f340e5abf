// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * QP0 and QP1 of a guest: the MAD layer is in its kernel, so these queue pairs transfer single MADs between its rings
 * and the port. MADs for agents in the daemon are dispatched to them.
 */
#include <errno.h>

#include "emu/packet/roce.h"
#include "emu/virtio/virtio_internal.h"
#include "emu/wire/hdr.h"
#include "emu/wire/mad.h"

#define GRH_LEN 40

static void special_finish(struct verbs_cq *cq, const struct vd_qp *qp, struct hca_cqe *cqe)
{
	cqe->qpn = qp->qp.limits.type == HCA_QPT_SMI ? 0 : 1;
	cqe->port = qp->port;
	vd_cq_ops.complete(cq, cqe);
}

static u8 send_one(struct vd_qp *qp, const struct hca_send_wr *wr)
{
	struct vdev *d = vd_of(qp->qp.verbs);
	struct mad_port *mp = d->cfg.mad[qp->port - 1];
	struct mad_addr to = {
		.qpn = wr->remote_qpn,
		.qkey = wr->remote_qkey,
		.lid = wr->av.dlid,
		.pkey_index = wr->pkey_index,
		.sl = wr->av.sl,
		.path_bits = wr->av.src_path_bits,
		.grh = wr->av.grh,
		.hop_limit = wr->av.hop_limit,
		.traffic_class = wr->av.traffic_class,
		.gid_index = wr->av.sgid_index,
		.flow_label = wr->av.flow_label,
		.gid = wr->av.dgid,
	};
	u8 mad[MAD_SIZE];

	memcpy(to.l2.mac, wr->av.dmac, sizeof(to.l2.mac));
	if (hca_sge_copy(&vd_dma, d, wr->sge, wr->num_sge, 0, mad, sizeof(mad), false))
		return HCA_WC_LOC_PROT_ERR;
	vd_count(d, VDEV_CTR_MADS_OUT);
	return mad_port_send_raw(mp, qp->qp.limits.type == HCA_QPT_SMI ? 0 : 1, mad, &to) ? HCA_WC_LOC_QP_OP_ERR
											  : HCA_WC_SUCCESS;
}

void vd_special_doorbell(struct vd_qp *qp)
{
	static struct hca_send_wr wr;
	u32 n = VDEV_MADS_TURN;
	int got = 0;

	while (n-- && qp->state >= HCA_QPS_RTS && (got = vd_send_pull(qp, &wr))) {
		struct hca_cqe cqe = { .token = wr.token, .opcode = HCA_WC_SEND };

		if (qp->state != HCA_QPS_RTS)
			cqe.status = HCA_WC_WR_FLUSH_ERR;
		else
			cqe.status = got < 0 ? HCA_WC_LOC_QP_OP_ERR : send_one(qp, &wr);
		verbs_ring_release(&qp->sq.ring);
		if (cqe.status || qp->sig_all || wr.flags & HCA_SEND_SIGNALED)
			special_finish(qp->qp.send_cq, qp, &cqe);
	}
	vd_cq_ops.flush(qp->qp.send_cq);
	qp->more = n == ~0u && got;
	if (qp->more)
		vd_resume_later(vd_of(qp->qp.verbs));
}

static void flush_recvs(struct vd_qp *qp)
{
	struct hca_recv_wr wr;
	u32 n = qp->rq.ring.mask + 1;

	while (n-- && vd_recv_pull(qp, &wr)) {
		struct hca_cqe cqe = { .token = wr.token, .opcode = HCA_WC_RECV, .status = HCA_WC_WR_FLUSH_ERR };

		verbs_ring_release(&qp->rq.ring);
		special_finish(qp->qp.recv_cq, qp, &cqe);
	}
	vd_cq_ops.flush(qp->qp.recv_cq);
}

static void ip_fill(const struct wire_port *w, u8 *dst, const struct mad_addr *from)
{
	struct wire_roce r = {
		.src = from->gid,
		.dst = w->attr.gid[from->gid_index % WIRE_PORT_GIDS],
		.tos = from->traffic_class,
		.ttl = from->hop_limit,
		.flow = from->flow_label,
	};

	wire_roce_put_network(&r, MAD_PACKET, dst);
}

/* A MAD for which the daemon has no agent. */
static void special_receive(void *ctx, const u8 *mad, const struct mad_addr *from)
{
	struct vd_qp *qp = ctx;
	struct vdev *d = vd_of(qp->qp.verbs);
	const struct wire_port *w = mad_port_wire(d->cfg.mad[qp->port - 1]);
	union {
		struct wire_grh grh;
		u8 bytes[GRH_LEN];
	} net;
	struct hca_recv_wr wr;
	struct hca_cqe cqe = {
		.opcode = HCA_WC_RECV,
		.byte_len = GRH_LEN + MAD_SIZE,
		.src_qp = from->qpn,
		.slid = wire_port_is_ethernet(w) ? from->l2.vlan : from->lid,
		.sl = from->sl,
		.dlid_path_bits = from->path_bits,
		.pkey_index = from->pkey_index,
		.flags = from->grh ? HCA_WC_GRH : 0,
	};
	int got;

	if (qp->state < HCA_QPS_RTR || qp->state == HCA_QPS_ERR || !(got = vd_recv_pull(qp, &wr))) {
		vd_count(d, VDEV_CTR_MADS_DROPPED);
		return;
	}
	if (wire_port_is_ethernet(w) && from->l2.version != 1)
		ip_fill(w, net.bytes, from);
	else
		mad_port_grh(d->cfg.mad[qp->port - 1], from, &net.grh);
	cqe.token = wr.token;
	if (got < 0 || (from->grh && hca_sge_copy(&vd_dma, d, wr.sge, wr.num_sge, 0, &net, GRH_LEN, true)) ||
	    hca_sge_copy(&vd_dma, d, wr.sge, wr.num_sge, GRH_LEN, (void *)(uintptr_t)mad, MAD_SIZE, true))
		cqe.status = HCA_WC_LOC_PROT_ERR;
	verbs_ring_release(&qp->rq.ring);
	vd_count(d, VDEV_CTR_MADS_IN);
	special_finish(qp->qp.recv_cq, qp, &cqe);
	vd_cq_ops.flush(qp->qp.recv_cq);
}

static int special_create(struct verbs_qp *base, u8 port)
{
	struct vdev *d = vd_of(base->verbs);
	struct vd_qp *qp = vd_qp_of(base);
	u32 n = base->limits.type == HCA_QPT_SMI ? 0 : 1;
	struct mad_raw raw = { .ctx = qp, .recv = special_receive };

	if (!port || port > d->cfg.nports)
		return -EINVAL;
	if (d->special[port - 1][n])
		return -EBUSY;
	qp->port = port;
	qp->state = HCA_QPS_RESET;
	base->qpn = n;
	d->special[port - 1][n] = qp;
	mad_port_set_raw(d->cfg.mad[port - 1], (u8)n, &raw);
	return 0;
}

void vd_special_destroy(struct verbs_qp *base)
{
	struct vdev *d = vd_of(base->verbs);
	u8 port = vd_qp_of(base)->port;

	mad_port_set_raw(d->cfg.mad[port - 1], (u8)base->qpn, NULL);
	d->special[port - 1][base->qpn] = NULL;
}

static int special_modify(struct verbs_qp *base, const struct hca_qp_attr *a, u32 mask)
{
	struct vd_qp *qp = vd_qp_of(base);

	if ((mask & HCA_QP_STATE && a->state > HCA_QPS_ERR) ||
	    (mask & HCA_QP_PKEY_INDEX && a->pkey_index >= MUSLIN_PKEYS))
		return -EINVAL;
	if (mask & HCA_QP_QKEY)
		qp->qkey = a->qkey;
	if (mask & HCA_QP_PKEY_INDEX)
		qp->pkey_index = a->pkey_index;
	if (!(mask & HCA_QP_STATE))
		return 0;
	qp->state = a->state;
	if (qp->state == HCA_QPS_RESET) {
		verbs_ring_reset(&qp->sq.ring);
		verbs_ring_reset(&qp->rq.ring);
	}
	if (qp->state >= HCA_QPS_RTS)
		vd_special_doorbell(qp);
	if (qp->state == HCA_QPS_ERR)
		flush_recvs(qp);
	return 0;
}

static void special_query(const struct verbs_qp *base, struct hca_qp_attr *a)
{
	const struct vd_qp *qp = container_of(base, const struct vd_qp, qp);

	*a = (struct hca_qp_attr){
		.state = qp->state,
		.cur_state = qp->state,
		.qkey = qp->qkey,
		.pkey_index = qp->pkey_index,
		.port = qp->port,
	};
}

const struct verbs_special_ops vd_special_ops = {
	.create = special_create,
	.destroy = vd_special_destroy,
	.modify = special_modify,
	.query = special_query,
};

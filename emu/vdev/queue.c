// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Work requests out of a guest's rings, and completions into them. */
#include <errno.h>
#include <stdlib.h>

#include "emu/vdev/internal.h"

static_assert(sizeof(struct muslin_wr_ud) <= sizeof(struct rxe_av), "an address vector stands in place of rxe's");
static_assert(sizeof(struct muslin_wr_reg) <= sizeof(((struct rxe_send_wr *)0)->wr), "a registration fits the union");

void vd_av_in(struct hca_av *av, const struct muslin_av *a)
{
	*av = (struct hca_av){
		.dlid = a->dlid,
		.sl = a->sl & 0xf,
		.src_path_bits = a->path_bits,
		.static_rate = a->static_rate,
		.port = a->port,
		.grh = a->grh,
		.sgid_index = a->sgid_index,
		.hop_limit = a->hop_limit,
		.traffic_class = a->traffic_class,
		.flow_label = a->flow_label & 0xfffff,
	};
	memcpy(av->dmac, a->dmac, sizeof(av->dmac));
	memcpy(av->dgid.raw, a->dgid, sizeof(av->dgid.raw));
}

void vd_av_out(struct muslin_av *a, const struct hca_av *av)
{
	*a = (struct muslin_av){
		.dlid = av->dlid,
		.sl = av->sl,
		.path_bits = av->src_path_bits,
		.static_rate = av->static_rate,
		.port = av->port,
		.grh = av->grh,
		.sgid_index = av->sgid_index,
		.hop_limit = av->hop_limit,
		.traffic_class = av->traffic_class,
		.flow_label = av->flow_label,
	};
	memcpy(a->dmac, av->dmac, sizeof(a->dmac));
	memcpy(a->dgid, av->dgid.raw, sizeof(a->dgid));
}

/* A datagram's: by its handle, or in the request itself. */
static int decode_av(struct vd_qp *qp, const struct rxe_send_wr *wr, struct hca_send_wr *out)
{
	struct muslin_wr_ud ud;

	if (!qp->kernel || wr->wr.ud.ah_num)
		return hca_ah_av(qp->d->ctx, qp->qpn, wr->wr.ud.ah_num, &out->av) ? -EINVAL : 1;
	memcpy(&ud, &wr->wr.ud.av, sizeof(ud));
	vd_av_in(&out->av, &ud.av);
	return ud.av.sgid_index < MUSLIN_GIDS && out->pkey_index < MUSLIN_PKEYS ? 1 : -EINVAL;
}

/* A packet to be cut: a send, the headers of whose payload stand behind the SGEs. */
static int decode_lso(struct vd_qp *qp, const struct rxe_send_wqe *w, struct hca_send_wr *out)
{
	struct rxe_send_wqe send = *w;
	struct muslin_wr_ud ud;
	int got;

	memcpy(&ud, &w->wr.wr.ud.av, sizeof(ud));
	send.wr.opcode = HCA_WR_SEND;
	send.wr.send_flags &= ~(u32)HCA_SEND_INLINE;
	got = wqe_send(out, &send, w->dma.sge, &qp->limits);
	if (got < 0 || !qp->lso || !ud.mss || ud.hdr_len > MUSLIN_LSO_HEADER)
		return -EINVAL;
	out->lso_mss = ud.mss;
	out->lso_hdr_len = ud.hdr_len;
	memcpy(out->inline_data, &w->dma.sge[out->num_sge], ud.hdr_len);
	return 1;
}

/* The page list is the guest's until the request ends; the engine gets a copy that lives as long as the slot. */
static int decode_reg(struct vd_qp *qp, u32 slot, const struct rxe_send_wqe *w, struct hca_send_wr *out)
{
	struct muslin_wr_reg reg;
	const void *list;

	wqe_head(out, w);
	out->opcode = HCA_WR_REG_MR;
	if (!qp->kernel || !qp->reg)
		return -EINVAL;
	memcpy(&reg, &w->wr.wr, sizeof(reg));
	if (!reg.npages || reg.npages > MUSLIN_REG_PAGES)
		return -EINVAL;
	list = vhost_memory(qp->d->vhost, reg.list, reg.npages * sizeof(u64));
	if (!qp->reg[slot])
		qp->reg[slot] = malloc(MUSLIN_REG_PAGES * sizeof(u64));
	if (!list || !qp->reg[slot])
		return -EINVAL;
	memcpy(qp->reg[slot], list, reg.npages * sizeof(u64));
	out->reg_key = reg.key;
	out->access = reg.access;
	out->bind_addr = reg.iova;
	out->bind_len = reg.length;
	out->pages = qp->reg[slot];
	out->npages = reg.npages;
	out->page_shift = reg.page_shift;
	return 1;
}

static int decode_send(struct vd_qp *qp, u32 slot, const struct rxe_send_wqe *w, struct hca_send_wr *out)
{
	bool connected = qp->limits.type == HCA_QPT_RC || qp->limits.type == HCA_QPT_UC;
	int got;

	if (w->wr.opcode == HCA_WR_REG_MR)
		return decode_reg(qp, slot, w, out);
	got = w->wr.opcode == IB_UVERBS_WR_TSO ? decode_lso(qp, w, out)
					       : wqe_send(out, w, w->dma.inline_data, &qp->limits);
	if (got < 0 || connected)
		return got;
	out->flags |= w->wr.send_flags & HCA_SEND_IP_CSUM;
	return decode_av(qp, &w->wr, out);
}

/* Room for the largest entry, whatever the ring's entries are: what is not there is never read, by the checked counts. */
static union {
	struct rxe_send_wqe send;
	struct rxe_recv_wqe recv;
	u8 bytes[VDEV_ELEM_MAX];
} entry;

int vd_send_pull(struct vd_qp *qp, struct hca_send_wr *wr)
{
	u32 slot = qp->sq.next;
	int got;

	if (!vd_ring_pull(&qp->sq, &entry, sizeof(entry)))
		return 0;
	got = decode_send(qp, slot, &entry.send, wr);
	if (got < 0)
		vd_count(qp->d, VDEV_CTR_BAD_WQES);
	return got;
}

static int decode_recv(struct vdev *d, struct hca_recv_wr *out, u32 max_sge)
{
	int got = wqe_recv(out, &entry.recv, entry.recv.dma.sge, max_sge);

	if (got < 0)
		vd_count(d, VDEV_CTR_BAD_WQES);
	return got;
}

int vd_recv_pull(struct vd_qp *qp, struct hca_recv_wr *wr)
{
	return vd_ring_pull(&qp->rq, &entry, sizeof(entry)) ? decode_recv(qp->d, wr, qp->max_recv_sge) : 0;
}

static int next_send(void *fe, struct hca_send_wr *wr)
{
	return vd_send_pull(fe, wr);
}

static void send_done(void *fe)
{
	vd_ring_done(&((struct vd_qp *)fe)->sq);
}

static int next_recv(void *fe, struct hca_recv_wr *wr)
{
	return vd_recv_pull(fe, wr);
}

static void recv_done(void *fe)
{
	vd_ring_done(&((struct vd_qp *)fe)->rq);
}

static void reset(void *fe)
{
	struct vd_qp *qp = fe;

	vd_ring_reset(&qp->sq);
	vd_ring_reset(&qp->rq);
}

const struct hca_wq_ops vd_qp_wq_ops = {
	.next_send = next_send,
	.send_done = send_done,
	.next_recv = next_recv,
	.recv_done = recv_done,
	.reset = reset,
};

static int srq_next_recv(void *fe, struct hca_recv_wr *wr)
{
	struct vd_srq *srq = fe;

	return vd_ring_pull(&srq->ring, &entry, sizeof(entry)) ? decode_recv(srq->d, wr, srq->max_sge) : 0;
}

static void srq_recv_done(void *fe)
{
	vd_ring_done(&((struct vd_srq *)fe)->ring);
}

u32 vd_srq_posted(void *fe)
{
	return vd_ring_posted(&((struct vd_srq *)fe)->ring);
}

const struct hca_wq_ops vd_srq_wq_ops = { .next_recv = srq_next_recv, .recv_done = srq_recv_done };

/* Completions */

static int complete(void *fe, const struct hca_cqe *cqe)
{
	struct vd_cq *cq = fe;
	struct ib_uverbs_wc wc = wqe_completion(cqe);

	if (cq->kernel)
		wc.wc_flags = cqe->flags;

	if (vd_ring_put(&cq->ring, &wc, sizeof(wc)))
		return -ENOSPC;
	cq->wake = true;
	cq->wake_solicited |= cqe->solicited || cqe->status != HCA_WC_SUCCESS;
	return 0;
}

/* The ring's index is seen before the arming is read: the driver does the opposite. */
static void flush(void *fe)
{
	struct vd_cq *cq = fe;
	u32 *arm, want;

	if (!cq->d->shared || !cq->wake)
		return;
	arm = &cq->d->shared->arm[cq->handle];
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	want = __atomic_load_n(arm, __ATOMIC_ACQUIRE);
	if (want == MUSLIN_ARM_NEXT || (want == MUSLIN_ARM_SOLICITED && cq->wake_solicited)) {
		__atomic_store_n(arm, MUSLIN_ARM_NONE, __ATOMIC_RELEASE);
		vd_comp_raise(cq);
	}
	cq->wake = cq->wake_solicited = false;
}

const struct hca_cq_ops vd_cq_ops = { .complete = complete, .flush = flush };

void vd_qp_free(struct vd_qp *qp)
{
	u32 i;

	for (i = 0; qp->reg && i <= qp->sq.mask; i++)
		free(qp->reg[i]);
	free(qp->reg);
	vd_ring_destroy(&qp->sq);
	vd_ring_destroy(&qp->rq);
	free(qp);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Work requests out of a guest's rings, and completions into them. */
#include <errno.h>
#include <stdlib.h>

#include "emu/vdev/internal.h"

static_assert(sizeof(struct muslin_av) <= sizeof(struct rxe_av), "an address vector stands in place of rxe's");
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
	memcpy(a->dgid, av->dgid.raw, sizeof(a->dgid));
}

static int sges_copy(struct hca_sge *dst, u16 *num, const struct rxe_sge *src, u32 n, u32 max)
{
	u32 i;

	*num = 0;
	if (n > max || n > HCA_MAX_SGE)
		return -EINVAL;
	for (i = 0; i < n; i++)
		dst[i] = (struct hca_sge){ .addr = src[i].addr, .length = src[i].length, .lkey = src[i].lkey };
	*num = (u16)n;
	return 1;
}

static int decode_ud(struct vd_qp *qp, const struct rxe_send_wr *wr, struct hca_send_wr *out)
{
	struct muslin_av av;

	out->remote_qpn = wr->wr.ud.remote_qpn & 0xffffff;
	out->remote_qkey = wr->wr.ud.remote_qkey;
	out->pkey_index = wr->wr.ud.pkey_index;
	if (!qp->kernel || wr->wr.ud.ah_num)
		return hca_ah_av(qp->d->ctx, qp->qpn, wr->wr.ud.ah_num, &out->av) ? -EINVAL : 1;
	memcpy(&av, &wr->wr.ud.av, sizeof(av));
	vd_av_in(&out->av, &av);
	return av.sgid_index < MUSLIN_GIDS && out->pkey_index < MUSLIN_PKEYS ? 1 : -EINVAL;
}

/* The page list is the guest's until the request ends; the engine gets a copy that lives as long as the slot. */
static int decode_reg(struct vd_qp *qp, u32 slot, const struct rxe_send_wr *wr, struct hca_send_wr *out)
{
	struct muslin_wr_reg reg;
	const void *list;

	if (!qp->kernel || !qp->reg)
		return -EINVAL;
	memcpy(&reg, &wr->wr, sizeof(reg));
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

static void decode_kind(const struct rxe_send_wr *wr, struct hca_send_wr *out)
{
	switch (out->opcode) {
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_RDMA_WRITE_WITH_IMM:
	case HCA_WR_RDMA_READ:
		out->remote_addr = wr->wr.rdma.remote_addr;
		out->rkey = wr->wr.rdma.rkey;
		break;
	case HCA_WR_ATOMIC_CMP_AND_SWP:
	case HCA_WR_ATOMIC_FETCH_AND_ADD:
		out->remote_addr = wr->wr.atomic.remote_addr;
		out->rkey = wr->wr.atomic.rkey;
		out->compare_add = wr->wr.atomic.compare_add;
		out->swap = wr->wr.atomic.swap;
		break;
	case HCA_WR_BIND_MW:
		out->bind_addr = wr->wr.mw.addr;
		out->bind_len = wr->wr.mw.length;
		out->mr_lkey = wr->wr.mw.mr_lkey;
		out->mw_rkey = wr->wr.mw.mw_rkey;
		out->reg_key = wr->wr.mw.rkey;
		out->access = wr->wr.mw.access;
		break;
	case HCA_WR_LOCAL_INV:
		out->rkey = wr->ex.invalidate_rkey;
		break;
	default:
		break;
	}
}

static int decode_send(struct vd_qp *qp, u32 slot, const struct rxe_send_wqe *w, struct hca_send_wr *out)
{
	bool imm = w->wr.opcode == HCA_WR_SEND_WITH_IMM || w->wr.opcode == HCA_WR_RDMA_WRITE_WITH_IMM;
	u32 len = w->dma.length, op = w->wr.opcode;

	memset(out, 0, offsetof(struct hca_send_wr, sge));
	out->token = w->wr.wr_id;
	if (op > HCA_WR_SEND_WITH_INV && op != HCA_WR_REG_MR)
		return -EINVAL;
	out->opcode = (u8)op;
	out->flags = w->wr.send_flags & (HCA_SEND_FENCE | HCA_SEND_SIGNALED | HCA_SEND_SOLICITED | HCA_SEND_INLINE);
	out->imm = imm ? be32_to_cpu(w->wr.ex.imm_data) : w->wr.ex.invalidate_rkey;
	if (op == HCA_WR_REG_MR)
		return decode_reg(qp, slot, &w->wr, out);
	if (qp->type == HCA_QPT_RC || qp->type == HCA_QPT_UC)
		decode_kind(&w->wr, out);
	else if (decode_ud(qp, &w->wr, out) < 0)
		return -EINVAL;
	if (!(out->flags & HCA_SEND_INLINE))
		return sges_copy(out->sge, &out->num_sge, w->dma.sge, w->dma.num_sge, qp->max_send_sge);
	if (len > qp->max_inline || len > HCA_MAX_INLINE)
		return -EINVAL;
	out->inline_len = len;
	memcpy(out->inline_data, w->dma.inline_data, len);
	return 1;
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
	int got;

	out->token = entry.recv.wr_id;
	got = sges_copy(out->sge, &out->num_sge, entry.recv.dma.sge, entry.recv.dma.num_sge, max_sge);
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
	struct ib_uverbs_wc wc = {
		.wr_id = cqe->token,
		.status = cqe->status,
		.opcode = cqe->opcode,
		.vendor_err = cqe->vendor_err,
		.byte_len = cqe->byte_len,
		.qp_num = cqe->qpn,
		.src_qp = cqe->src_qp,
		.wc_flags = cqe->flags,
		.pkey_index = cqe->pkey_index,
		.slid = cqe->slid,
		.sl = cqe->sl,
		.dlid_path_bits = cqe->dlid_path_bits,
		.port_num = cqe->port,
	};

	if (cqe->flags & HCA_WC_WITH_IMM)
		wc.ex.imm_data = cpu_to_be32(cqe->imm);
	else
		wc.ex.invalidate_rkey = cqe->imm;
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

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Work queues of a guest: send and receive work requests, and completions. */
#include <errno.h>
#include <stdlib.h>

#include "emu/virtio/virtio_internal.h"

static_assert(sizeof(struct muslin_wr_ud) <= sizeof(struct rxe_av), "an address vector replaces the one of rxe");
static_assert(sizeof(struct muslin_wr_reg) <= sizeof(((struct rxe_send_wr *)0)->wr), "a registration fits the union");

/* The address vector of a datagram: by its handle, or in the request itself. */
static int decode_av(struct vd_qp *qp, const struct rxe_send_wr *wr, struct hca_send_wr *out)
{
	struct muslin_wr_ud ud;

	if (!qp->kernel || wr->wr.ud.ah_num)
		return hca_ah_av(qp->qp.verbs->ctx, qp->qp.qpn, wr->wr.ud.ah_num, &out->av) ? -EINVAL : 1;
	memcpy(&ud, &wr->wr.ud.av, sizeof(ud));
	vd_av_in(&out->av, &ud.av);
	out->av.sl &= 0xf; /* the engine checks those of handles only */
	out->av.flow_label &= 0xfffff;
	return ud.av.sgid_index < MUSLIN_GIDS && out->pkey_index < MUSLIN_PKEYS ? 1 : -EINVAL;
}

/* LSO: a send whose headers follow the SGEs at @data. */
static int decode_lso(struct vd_qp *qp, const struct rxe_send_wqe *w, const struct rxe_sge *data,
		      struct hca_send_wr *out)
{
	struct rxe_send_wqe send = *w;
	struct muslin_wr_ud ud;
	int got;

	memcpy(&ud, &w->wr.wr.ud.av, sizeof(ud));
	send.wr.opcode = HCA_WR_SEND;
	send.wr.send_flags &= ~(u32)HCA_SEND_INLINE;
	got = wqe_send(out, &send, data, &qp->qp.limits);
	if (got < 0 || !qp->lso || !ud.mss || ud.hdr_len > MUSLIN_LSO_HEADER)
		return -EINVAL;
	out->lso_mss = ud.mss;
	out->lso_hdr_len = ud.hdr_len;
	memcpy(out->inline_data, &data[out->num_sge], ud.hdr_len);
	return 1;
}

/* The guest may change the page list until the request completes: the engine gets a copy
 * that lives as long as the slot. */
static int decode_reg(struct vd_qp *qp, u32 slot, const struct rxe_send_wqe *w, struct hca_send_wr *out)
{
	struct vdev *d = vd_of(qp->qp.verbs);
	struct muslin_wr_reg reg;
	const void *list;

	wqe_head(out, w);
	out->opcode = HCA_WR_REG_MR;
	if (!qp->kernel || !qp->reg)
		return -EINVAL;
	memcpy(&reg, &w->wr.wr, sizeof(reg));
	if (!reg.npages || reg.npages > MUSLIN_REG_PAGES)
		return -EINVAL;
	list = vhost_memory(d->vhost, reg.list, reg.npages * sizeof(u64));
	if (!qp->reg[slot] && vd_pages_left(d, MUSLIN_REG_PAGES)) {
		qp->reg[slot] = malloc(MUSLIN_REG_PAGES * sizeof(u64));
		d->pages += qp->reg[slot] ? MUSLIN_REG_PAGES : 0;
	}
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

/* @entry is guest memory: its head is copied, and each SGE or byte after it is read once. */
static int decode_send(struct vd_qp *qp, u32 slot, const struct rxe_send_wqe *entry, struct hca_send_wr *out)
{
	const struct rxe_send_wqe w = *(const volatile struct rxe_send_wqe *)entry;
	bool connected = qp->qp.limits.type == HCA_QPT_RC || qp->qp.limits.type == HCA_QPT_UC;
	int got;

	if (w.wr.opcode == HCA_WR_REG_MR)
		return decode_reg(qp, slot, &w, out);
	got = w.wr.opcode == IB_UVERBS_WR_TSO ? decode_lso(qp, &w, entry->dma.sge, out)
					      : wqe_send(out, &w, entry->dma.inline_data, &qp->qp.limits);
	if (got < 0 || connected)
		return got;
	out->flags |= w.wr.send_flags & HCA_SEND_IP_CSUM;
	return decode_av(qp, &w.wr, out);
}

/* The ring of a queue is not in memory any more: nobody would learn that its requests are not executed. */
static bool ring_lost(const struct vd_ring *r)
{
	return r->npages && !verbs_ring_mapped(&r->ring);
}

static int count_bad(struct vdev *d, int got)
{
	if (got < 0)
		vd_count(d, VDEV_CTR_BAD_WQES);
	return got;
}

static int send_pull(void *fe, struct hca_send_wr *wr)
{
	struct vd_qp *qp = fe;
	u32 slot = qp->sq.ring.next;
	const struct rxe_send_wqe *entry = verbs_ring_pull(&qp->sq.ring);

	if (entry)
		return count_bad(vd_of(qp->qp.verbs), decode_send(qp, slot, entry, wr));
	if (ring_lost(&qp->sq))
		verbs_qp_catastrophic(&qp->qp);
	return 0;
}

static int recv_pull(void *fe, struct hca_recv_wr *wr)
{
	struct vd_qp *qp = fe;

	if (ring_lost(&qp->rq))
		verbs_qp_catastrophic(&qp->qp);
	return count_bad(vd_of(qp->qp.verbs), wqe_next_recv(&qp->rq.ring, wr, qp->qp.max_recv_sge));
}

static void send_done(void *fe)
{
	verbs_ring_release(&((struct vd_qp *)fe)->sq.ring);
}

static void recv_done(void *fe)
{
	verbs_ring_release(&((struct vd_qp *)fe)->rq.ring);
}

static void queue_refused(void *fe)
{
	verbs_ring_reset(&((struct vd_qp *)fe)->sq.ring);
}

static void queue_reset(void *fe)
{
	queue_refused(fe);
	verbs_ring_reset(&((struct vd_qp *)fe)->rq.ring);
}

const struct hca_wq_ops vd_qp_wq_ops = {
	.next_send = send_pull,
	.send_done = send_done,
	.next_recv = recv_pull,
	.recv_done = recv_done,
	.reset = queue_reset,
	.refused = queue_refused,
};

static bool srq_lost(const struct vd_srq *srq)
{
	if (!ring_lost(&srq->ring))
		return false;
	hca_srq_catastrophic(srq->srq.verbs->ctx, srq->srq.srqn);
	return true;
}

static int srq_next_recv(void *fe, struct hca_recv_wr *wr)
{
	struct vd_srq *srq = fe;

	if (srq_lost(srq))
		return 0;
	return count_bad(vd_of(srq->srq.verbs), wqe_next_recv(&srq->ring.ring, wr, srq->srq.max_sge));
}

static void srq_recv_done(void *fe)
{
	verbs_ring_release(&((struct vd_srq *)fe)->ring.ring);
}

u32 vd_srq_posted(void *fe)
{
	const struct vd_srq *srq = fe;

	return srq_lost(srq) ? UINT32_MAX : verbs_ring_posted(&srq->ring.ring); /* as if the limit is not reached */
}

const struct hca_wq_ops vd_srq_wq_ops = { .next_recv = srq_next_recv, .recv_done = srq_recv_done };

/* Completions */

static int queue_complete(void *fe, const struct hca_cqe *cqe)
{
	struct vd_cq *cq = fe;
	struct ib_uverbs_wc wc = wqe_completion(cqe);

	if (cq->kernel)
		wc.wc_flags = cqe->flags;
	if (verbs_ring_put(&cq->ring.ring, &wc, sizeof(wc)))
		return -ENOSPC;
	verbs_cq_completed(&cq->cq, cqe);
	return 0;
}

static void queue_flush(void *fe)
{
	struct vd_cq *cq = fe;
	struct vdev *d = vd_of(cq->cq.verbs);

	if (!d->shared || !cq->cq.wake)
		return;
	if (verbs_cq_wants_event(&cq->cq, &d->shared->arm[cq->cq.handle]))
		vd_comp_raise(cq);
	cq->cq.wake = cq->cq.wake_solicited = false;
}

const struct hca_cq_ops vd_cq_ops = { .complete = queue_complete, .flush = queue_flush };

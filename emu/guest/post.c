// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Work requests of kernel users, in the format of rxe's user ABI, which users' libraries write themselves. */
#include <linux/log2.h>

#include "emu/guest/muslin.h"

static bool ring_full(const struct mu_ring *r, u32 at)
{
	/* the daemon has read the entries that it freed */
	return ((at + 1) & r->mask) == (smp_load_acquire(&r->buf->consumer_index) & r->mask);
}

static int put_sges(struct rxe_dma_info *dma, const struct ib_sge *sge, int n)
{
	u32 len = 0;
	int i;

	for (i = 0; i < n; i++) {
		dma->sge[i] = (struct rxe_sge){ .addr = sge[i].addr, .length = sge[i].length, .lkey = sge[i].lkey };
		len += sge[i].length;
	}
	dma->num_sge = n;
	dma->length = len;
	return 0;
}

static int put_inline(struct rxe_dma_info *dma, const struct ib_sge *sge, int n, u32 room)
{
	u32 len = 0;
	int i;

	for (i = 0; i < n; i++) {
		if (sge[i].length > room - len)
			return -EINVAL;
		memcpy(dma->inline_data + len, (void *)(uintptr_t)sge[i].addr, sge[i].length);
		len += sge[i].length;
	}
	dma->num_sge = 0;
	dma->length = len;
	return 0;
}

static void put_ud(struct rxe_send_wr *w, const struct ib_send_wr *wr)
{
	const struct ib_ud_wr *ud = ud_wr(wr);
	struct muslin_wr_ud mine = { .av = to_mu_ah(ud->ah)->av };

	if (wr->opcode == IB_WR_LSO) {
		mine.mss = ud->mss;
		mine.hdr_len = ud->hlen;
	}
	w->wr.ud.remote_qpn = ud->remote_qpn;
	w->wr.ud.remote_qkey = ud->remote_qkey;
	w->wr.ud.pkey_index = ud->pkey_index;
	w->wr.ud.ah_num = 0;
	BUILD_BUG_ON(sizeof(mine) > sizeof(w->wr.ud.av));
	memcpy(&w->wr.ud.av, &mine, sizeof(mine));
}

/* The headers of a packet to be segmented follow the SGEs. */
static int put_lso(struct mu_qp *qp, struct rxe_send_wqe *e, const struct ib_send_wr *wr)
{
	const struct ib_ud_wr *ud = ud_wr(wr);

	if (!qp->lso || ud->hlen <= 0 || ud->hlen > MUSLIN_LSO_HEADER || ud->mss <= 0 || ud->mss > U16_MAX ||
	    wr->send_flags & IB_SEND_INLINE)
		return -EINVAL;
	memcpy(&e->dma.sge[wr->num_sge], ud->header, ud->hlen);
	return 0;
}

static void put_reg(struct rxe_send_wr *w, const struct ib_send_wr *wr)
{
	const struct ib_reg_wr *rw = reg_wr(wr);
	const struct mu_mr *mr = to_mu_mr(rw->mr);
	struct muslin_wr_reg reg = {
		.iova = rw->mr->iova,
		.length = rw->mr->length,
		.list = virt_to_phys(mr->list),
		.npages = mr->npages,
		.page_shift = ilog2(rw->mr->page_size),
		.key = rw->key,
		.access = rw->access,
	};

	BUILD_BUG_ON(sizeof(reg) > sizeof(w->wr));
	memcpy(&w->wr, &reg, sizeof(reg));
}

static int put_kind(struct rxe_send_wr *w, const struct ib_send_wr *wr, enum ib_qp_type type)
{
	if (type != IB_QPT_RC && type != IB_QPT_UC) {
		if (wr->opcode != IB_WR_SEND && wr->opcode != IB_WR_SEND_WITH_IMM && wr->opcode != IB_WR_LSO)
			return -EINVAL;
		put_ud(w, wr);
		return 0;
	}
	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		break;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		w->wr.rdma.remote_addr = rdma_wr(wr)->remote_addr;
		w->wr.rdma.rkey = rdma_wr(wr)->rkey;
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		w->wr.atomic.remote_addr = atomic_wr(wr)->remote_addr;
		w->wr.atomic.compare_add = atomic_wr(wr)->compare_add;
		w->wr.atomic.swap = atomic_wr(wr)->swap;
		w->wr.atomic.rkey = atomic_wr(wr)->rkey;
		break;
	case IB_WR_REG_MR:
		put_reg(w, wr);
		break;
	default:
		return -EINVAL;
	}
	return 0;
}

static int put_send(struct mu_qp *qp, struct rxe_send_wqe *e, const struct ib_send_wr *wr)
{
	int err;

	if (wr->num_sge > qp->cap.max_send_sge)
		return -EINVAL;
	memset(e, 0, sizeof(*e));
	e->wr.wr_id = wr->wr_id;
	e->wr.opcode = wr->opcode;
	e->wr.send_flags = wr->send_flags;
	if (wr->opcode == IB_WR_SEND_WITH_IMM || wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
		e->wr.ex.imm_data = wr->ex.imm_data;
	else
		e->wr.ex.invalidate_rkey = wr->ex.invalidate_rkey;
	err = put_kind(&e->wr, wr, qp->ib.qp_type);
	if (err)
		return err;
	if (wr->opcode == IB_WR_REG_MR || wr->opcode == IB_WR_LOCAL_INV)
		return 0;
	if (wr->opcode == IB_WR_LSO) {
		err = put_lso(qp, e, wr);
		if (err)
			return err;
	}
	if (wr->send_flags & IB_SEND_INLINE)
		return put_inline(&e->dma, wr->sg_list, wr->num_sge, qp->cap.max_inline_data);
	return put_sges(&e->dma, wr->sg_list, wr->num_sge);
}

/*
 * 10.8.2: before RTS a post fails. The library has put the requests into the ring already, from which the device drops
 * them at the doorbell; it has done so when it answers a query, so that a later post of the thread is not dropped, too.
 * In a change to RTS the device is there before the driver knows: then the post waits for it, and succeeds.
 */
static int post_user_early(struct mu_qp *qp)
{
	struct muslin_object in = { .number = qp->handle };
	struct mu_dev *dev = to_mu_dev(qp->ib.device);
	struct muslin_qp_answer out;
	bool ready;

	mutex_lock(&qp->modify);
	ready = qp->state >= IB_QPS_RTS;
	mu_doorbell(dev, qp->handle);
	if (!ready)
		mu_command(dev, MUSLIN_QP_QUERY, &in, sizeof(in), &out, sizeof(out));
	mutex_unlock(&qp->modify);
	return ready ? 0 : -EINVAL;
}

/* A user's call only rings the doorbell. */
int mu_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct mu_qp *qp = to_mu_qp(ibqp);
	struct mu_ring *r = qp->sq;
	unsigned long flags;
	int err = 0;
	u32 at;

	if (READ_ONCE(qp->state) < IB_QPS_RTS) {
		err = qp->user ? post_user_early(qp) : -EINVAL;
		if (err)
			*bad = wr;
		return err;
	}
	if (qp->user) {
		mu_doorbell(to_mu_dev(ibqp->device), qp->handle);
		return 0;
	}
	spin_lock_irqsave(&qp->sq_lock, flags);
	at = r->buf->producer_index & r->mask;
	for (; wr; wr = wr->next) {
		err = ring_full(r, at) ? -ENOMEM : put_send(qp, mu_ring_at(r, at), wr);
		if (err) {
			*bad = wr;
			break;
		}
		at = (at + 1) & r->mask;
	}
	smp_store_release(&r->buf->producer_index, at); /* after the entries were written */
	spin_unlock_irqrestore(&qp->sq_lock, flags);
	mu_doorbell(to_mu_dev(ibqp->device), qp->handle);
	return err;
}

static int put_recvs(struct mu_ring *r, const struct ib_recv_wr *wr, u32 max_sge, const struct ib_recv_wr **bad)
{
	u32 at = r->buf->producer_index & r->mask;
	int err = 0;

	for (; wr; wr = wr->next) {
		struct rxe_recv_wqe *e = mu_ring_at(r, at);

		if (wr->num_sge > max_sge)
			err = -EINVAL;
		else if (ring_full(r, at))
			err = -ENOMEM;
		if (err) {
			*bad = wr;
			break;
		}
		memset(e, 0, sizeof(*e));
		e->wr_id = wr->wr_id;
		put_sges(&e->dma, wr->sg_list, wr->num_sge);
		at = (at + 1) & r->mask;
	}
	smp_store_release(&r->buf->producer_index, at); /* after the entries were written */
	return err;
}

int mu_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct mu_qp *qp = to_mu_qp(ibqp);
	unsigned long flags;
	int err;

	if (!qp->rq || qp->user || READ_ONCE(qp->state) < IB_QPS_INIT) {
		*bad = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&qp->rq_lock, flags);
	err = put_recvs(qp->rq, wr, qp->cap.max_recv_sge, bad);
	spin_unlock_irqrestore(&qp->rq_lock, flags);
	if (READ_ONCE(to_mu_dev(ibqp->device)->lost))
		schedule_work(&to_mu_dev(ibqp->device)->flush);
	return err;
}

int mu_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct mu_srq *srq = to_mu_srq(ibsrq);
	unsigned long flags;
	int err;

	spin_lock_irqsave(&srq->lock, flags);
	err = put_recvs(srq->ring, wr, srq->max_sge, bad);
	spin_unlock_irqrestore(&srq->lock, flags);
	return err;
}

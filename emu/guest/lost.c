// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A lost device: its daemon has died or been replaced, or the connection broke, and all of its objects are gone. The
 * objects of the kernel and of users still exist, and their users wait for completions: posted requests complete with
 * WR_FLUSH_ERR (10.3.1.7: as in the Error state), and destroy commands succeed. Meanwhile the driver is unbound from
 * the device and bound again, so that it registers with the present daemon; users see one device removed and another
 * one added.
 */
#include <linux/slab.h>

#include "emu/guest/muslin.h"

struct restart {
	struct work_struct work;
	struct virtio_device *vdev; /* with a reference: the driver's structure is freed on the way */
};

/* RTS: the MAD layer modifies its QP to it after a failed request. */
static bool can_become(u8 state)
{
	return state == IB_QPS_ERR || state == IB_QPS_RESET || state == IB_QPS_RTS;
}

int mu_lost_answer(u32 op, const void *in)
{
	const struct muslin_qp_modify *modify = in;

	switch (op) {
	case MUSLIN_PD_FREE:
	case MUSLIN_CQ_DESTROY:
	case MUSLIN_QP_DESTROY:
	case MUSLIN_SRQ_DESTROY:
	case MUSLIN_AH_DESTROY:
	case MUSLIN_MR_FREE:
	case MUSLIN_MW_FREE:
	case MUSLIN_MCAST_DETACH:
	case MUSLIN_GID_DEL:
	case MUSLIN_SET_CAP:
		return 0;
	case MUSLIN_QP_MODIFY:
		return modify->mask & IB_QP_STATE && can_become(modify->attr.state) ? 0 : -EIO;
	default:
		return -EIO;
	}
}

/* Flushing */

static bool put(struct mu_cq *cq, const struct ib_uverbs_wc *wc)
{
	struct mu_ring *r;
	unsigned long flags;
	bool room;
	u32 at;

	spin_lock_irqsave(&cq->lock, flags);
	r = cq->ring;
	at = r->buf->producer_index & r->mask;
	/* The program has read the entries before the index that it wrote. */
	room = ((at + 1) & r->mask) != (smp_load_acquire(&r->buf->consumer_index) & r->mask);
	if (room) {
		memcpy(mu_ring_at(r, at), wc, sizeof(*wc));
		/* The entry is written before the program sees its index. */
		smp_store_release(&r->buf->producer_index, (at + 1) & r->mask);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return room;
}

static u64 id_at(const struct mu_ring *r, u32 at, bool send)
{
	return send ? ((struct rxe_send_wqe *)mu_ring_at(r, at))->wr.wr_id
		    : ((struct rxe_recv_wqe *)mu_ring_at(r, at))->wr_id;
}

/*
 * The connection manager takes a flushed datagram for one that it cancelled itself, and does not report the disconnect
 * that rpcrdma waits for: datagrams of managers complete with another error.
 */
static enum ib_wc_status status_of(const struct mu_qp *qp, bool send)
{
	return send && qp->ib.qp_type <= IB_QPT_GSI ? IB_WC_GENERAL_ERR : IB_WC_WR_FLUSH_ERR;
}

static void flush_ring(struct mu_qp *qp, struct mu_ring *r, struct mu_cq *cq, bool send)
{
	u32 at = r->buf->consumer_index & r->mask;
	u32 end = smp_load_acquire(&r->buf->producer_index) & r->mask; /* the entries are read after it */
	struct ib_uverbs_wc wc = {
		.status = status_of(qp, send),
		.opcode = send ? IB_WC_SEND : IB_WC_RECV,
		.qp_num = qp->ib.qp_num,
		.port_num = qp->ib.port,
	};

	for (; at != end; at = (at + 1) & r->mask) {
		wc.wr_id = id_at(r, at, send);
		if (!put(cq, &wc))
			break; /* the CQ is full: 11.6.3.1 */
	}
	smp_store_release(&r->buf->consumer_index, at); /* the entries were read before it */
}

static void wake(struct mu_dev *dev, struct mu_cq *cq)
{
	if (xchg(&dev->shared->arm[cq->handle], MUSLIN_ARM_NONE) != MUSLIN_ARM_NONE && cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

/* Users of shared receive queues wait for this event: 11.6.3.4. */
static void raise_last_wqe(struct mu_qp *qp)
{
	struct ib_event ev = { .device = qp->ib.device, .event = IB_EVENT_QP_LAST_WQE_REACHED, .element.qp = &qp->ib };

	if (qp->last_wqe)
		return;
	qp->last_wqe = true;
	if (qp->ib.event_handler)
		qp->ib.event_handler(&ev, qp->ib.qp_context);
}

static void flush_qp(struct mu_dev *dev, struct mu_qp *qp)
{
	struct mu_cq *scq = to_mu_cq(qp->ib.send_cq), *rcq = to_mu_cq(qp->ib.recv_cq);

	WRITE_ONCE(qp->state, IB_QPS_ERR);
	flush_ring(qp, qp->sq, scq, true);
	if (qp->rq)
		flush_ring(qp, qp->rq, rcq, false);
	wake(dev, scq);
	if (rcq != scq)
		wake(dev, rcq);
	if (qp->ib.srq)
		raise_last_wqe(qp);
}

void mu_lost_flush(struct work_struct *work)
{
	struct mu_dev *dev = container_of(work, struct mu_dev, flush);
	unsigned long handle;
	struct mu_qp *qp;

	xa_for_each(&dev->qps, handle, qp)
	{
		qp = mu_qp_find(dev, handle);
		if (!qp)
			continue;
		flush_qp(dev, qp);
		mu_ref_put(&qp->ref);
	}
}

/* Unbinding and binding */

static void restart(struct work_struct *work)
{
	struct restart *r = container_of(work, struct restart, work);
	int err = device_reprobe(&r->vdev->dev);

	if (err < 0)
		dev_err(&r->vdev->dev, "cannot probe the device again: %d\n", err);
	put_device(&r->vdev->dev);
	kfree(r);
}

void mu_lost(struct mu_dev *dev)
{
	WRITE_ONCE(dev->lost, true);
	schedule_work(&dev->flush);
}

void mu_lost_restart(struct mu_dev *dev)
{
	struct restart *r = kzalloc(sizeof(*r), GFP_ATOMIC);

	mu_lost(dev);
	if (!r)
		return;
	dev_warn(&dev->vdev->dev,
		 "the daemon has restarted, or QEMU has stopped for a while: probing the device again\n");
	r->vdev = dev->vdev;
	get_device(&r->vdev->dev);
	INIT_WORK(&r->work, restart);
	queue_work(mu_queue, &r->work);
}

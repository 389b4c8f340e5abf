// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The driver's completion queues: creation, resizing, polling and arming. */
#include <linux/if_vlan.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "emu/guest/compat.h"
#include "emu/guest/muslin.h"

#define ENTRY sizeof(struct ib_uverbs_wc)

static int command_ring(struct mu_dev *dev, u32 op, struct mu_cq *cq, struct mu_ring *ring, u32 *handle)
{
	struct muslin_cq_create in = {
		.handle = cq->handle,
		.vector = cq->ib.comp_vector % MUSLIN_VECTORS,
		.flags = cq->user ? 0 : MUSLIN_CQ_KERNEL,
	};
	struct muslin_number out = {};
	u64 *list = mu_ring_describe(ring, &in.ring);
	int err;

	if (!list)
		return -ENOMEM;
	err = mu_command(dev, op, &in, sizeof(in), &out, handle ? sizeof(out) : sizeof(out.a));
	kfree(list);
	if (!err && handle)
		*handle = out.number;
	return err;
}

static int cq_share(struct mu_ring *ring, struct ib_udata *udata)
{
	struct mu_ucontext *uctx = rdma_udata_to_drv_context(udata, struct mu_ucontext, ib);
	struct rxe_create_cq_resp resp = {};
	int err;

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	err = mu_ring_share(ring, &uctx->ib, &resp.mi);
	return err ? err : ib_copy_to_udata(udata, &resp, sizeof(resp));
}

static void cq_leave(struct mu_dev *dev, struct mu_cq *cq)
{
	mu_object(dev, MUSLIN_CQ_DESTROY, cq->handle, 0, NULL, NULL);
	xa_erase_irq(&dev->cqs, cq->handle);
	mu_ref_end(&cq->ref);
}

static int create_cq(MU_CREATE_CQ_ARGS)
{
	struct mu_dev *dev = to_mu_dev(ibcq->device);
	struct ib_udata *user = MU_CREATE_CQ_UDATA;
	struct mu_cq *cq = to_mu_cq(ibcq);
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > dev->hello.max_cqe)
		return -EINVAL;
	mu_ref_init(&cq->ref);
	spin_lock_init(&cq->lock);
	mutex_init(&cq->resize);
	cq->ib.comp_vector = attr->comp_vector;
	cq->user = user;
	cq->ring = mu_ring_create(ENTRY, attr->cqe);
	if (!cq->ring)
		return -ENOMEM;
	err = command_ring(dev, MUSLIN_CQ_CREATE, cq, cq->ring, &cq->handle);
	if (err)
		goto free_ring;
	WRITE_ONCE(dev->shared->arm[cq->handle], MUSLIN_ARM_NONE);
	ibcq->cqe = cq->ring->mask;
	err = xa_err(xa_store_irq(&dev->cqs, cq->handle, cq, GFP_KERNEL));
	if (!err && user)
		err = cq_share(cq->ring, user);
	if (err)
		goto leave;
	return 0;

leave:
	cq_leave(dev, cq);
free_ring:
	mu_ring_destroy(cq->ring);
	return err;
}

int mu_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct mu_cq *cq = to_mu_cq(ibcq);

	cq_leave(to_mu_dev(ibcq->device), cq);
	mu_ring_destroy(cq->ring);
	return 0;
}

static void replace_ring(struct mu_cq *cq, struct mu_ring *ring)
{
	struct mu_ring *old = cq->ring;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->ring = ring;
	spin_unlock_irqrestore(&cq->lock, flags);
	cq->ib.cqe = ring->mask;
	mu_ring_destroy(old);
}

/* For a user CQ: the library maps the new ring, to which the daemon has moved unpolled completions. */
static int resize_cq(MU_RESIZE_CQ_ARGS)
{
	struct mu_dev *dev = to_mu_dev(ibcq->device);
	struct mu_cq *cq = to_mu_cq(ibcq);
	struct mu_ring *ring;
	int err;

	if (!udata)
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe > dev->hello.max_cqe)
		return -EINVAL;
	ring = mu_ring_create(ENTRY, cqe);
	if (!ring)
		return -ENOMEM;
	err = cq_share(ring, udata);
	if (err) {
		mu_ring_destroy(ring);
		return err;
	}
	mutex_lock(&cq->resize);
	err = command_ring(dev, MUSLIN_CQ_RESIZE, cq, ring, NULL);
	if (err)
		mu_ring_destroy(ring);
	else
		replace_ring(cq, ring);
	mutex_unlock(&cq->resize);
	return err;
}

const struct ib_device_ops mu_cq_ops = { .create_cq = create_cq, .MU_RESIZE_CQ_OP = resize_cq };

static enum ib_wc_opcode opcode_of(u32 opcode)
{
	return opcode == MUSLIN_WC_REG_MR ? IB_WC_REG_MR : opcode; /* others are equal in the user ABI */
}

static struct ib_qp *qp_of(struct mu_dev *dev, const struct ib_uverbs_wc *wc)
{
	struct mu_qp *qp;

	if (wc->qp_num <= 1)
		qp = wc->port_num >= 1 && wc->port_num <= MUSLIN_PORTS_MAX ? dev->special[wc->port_num - 1][wc->qp_num]
									   : NULL;
	else
		qp = xa_load(&dev->qpns, wc->qp_num);
	return qp ? &qp->ib : NULL;
}

/* On Ethernet there is no LID. */
static void convert_tag(struct ib_wc *to, u16 tag)
{
	to->slid = 0;
	if (!tag)
		return;
	to->vlan_id = tag & VLAN_VID_MASK;
	to->wc_flags |= IB_WC_WITH_VLAN;
}

static void convert(struct ib_wc *to, const struct ib_uverbs_wc *from, struct ib_qp *qp)
{
	to->wr_id = from->wr_id;
	to->status = from->status;
	to->opcode = opcode_of(from->opcode);
	to->vendor_err = from->vendor_err;
	to->byte_len = from->byte_len;
	to->qp = qp;
	if (from->wc_flags & IB_WC_WITH_IMM)
		to->ex.imm_data = from->ex.imm_data;
	else
		to->ex.invalidate_rkey = from->ex.invalidate_rkey;
	to->src_qp = from->src_qp;
	to->slid = from->slid;
	to->wc_flags = from->wc_flags;
	to->pkey_index = from->pkey_index;
	to->sl = from->sl;
	to->dlid_path_bits = from->dlid_path_bits;
	to->port_num = from->port_num;
	if (qp->qp_type == IB_QPT_GSI && rdma_protocol_roce(qp->device, qp->port))
		convert_tag(to, from->slid);
}

int mu_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	struct mu_dev *dev = to_mu_dev(ibcq->device);
	struct mu_cq *cq = to_mu_cq(ibcq);
	struct mu_ring *r = cq->ring;
	unsigned long flags;
	u32 at, end;
	int got = 0;

	spin_lock_irqsave(&cq->lock, flags);
	at = r->buf->consumer_index & r->mask;
	end = smp_load_acquire(&r->buf->producer_index) & r->mask; /* the entries are read after it */
	for (; got < n && at != end; at = (at + 1) & r->mask) {
		const struct ib_uverbs_wc *e = mu_ring_at(r, at);
		struct ib_qp *qp = qp_of(dev, e);

		if (qp)
			convert(&wc[got++], e, qp);
	}
	smp_store_release(&r->buf->consumer_index, at); /* the entries were read before it */
	spin_unlock_irqrestore(&cq->lock, flags);
	return got;
}

/* Arms before the ring is read; the daemon writes the ring before it reads the arming. */
int mu_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct mu_dev *dev = to_mu_dev(ibcq->device);
	struct mu_cq *cq = to_mu_cq(ibcq);
	const struct rxe_queue_buf *buf;
	u32 *arm = &dev->shared->arm[cq->handle];

	if ((flags & IB_CQ_SOLICITED_MASK) == IB_CQ_NEXT_COMP)
		WRITE_ONCE(*arm, MUSLIN_ARM_NEXT);
	else
		cmpxchg(arm, MUSLIN_ARM_NONE, MUSLIN_ARM_SOLICITED);
	smp_mb(); /* pairs with the fence before the daemon reads the arming */
	if (!(flags & IB_CQ_REPORT_MISSED_EVENTS))
		return 0;
	buf = cq->ring->buf; /* of a kernel CQ, which is not resized */
	return (READ_ONCE(buf->producer_index) - READ_ONCE(buf->consumer_index)) & cq->ring->mask ? 1 : 0;
}

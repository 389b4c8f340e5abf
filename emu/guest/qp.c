// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The driver's queue pairs: creation, attributes, destruction. */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "emu/guest/muslin.h"

static int check_init(const struct mu_dev *dev, const struct ib_qp_init_attr *init)
{
	const struct muslin_hello_answer *h = &dev->hello;

	if (init->create_flags & ~IB_QP_CREATE_IPOIB_UD_LSO || init->qp_type > IB_QPT_UD)
		return -EOPNOTSUPP;
	if (init->create_flags && (init->qp_type != IB_QPT_UD || !(h->features & MUSLIN_FEATURE_UD_LSO)))
		return -EINVAL;
	if (init->cap.max_send_wr > h->max_qp_wr || init->cap.max_send_sge > h->max_sge ||
	    init->cap.max_inline_data > h->max_inline)
		return -EINVAL;
	if (!init->srq && (init->cap.max_recv_wr > h->max_qp_wr || init->cap.max_recv_sge > h->max_sge))
		return -EINVAL;
	if (init->qp_type <= IB_QPT_GSI && (init->port_num < 1 || init->port_num > h->ports))
		return -EINVAL;
	return 0;
}

/* Inline data may use the room of all SGEs, as in the rxe library. */
static u32 inline_room(const struct mu_dev *dev, const struct ib_qp_cap *cap)
{
	u32 sges = cap->max_send_sge * sizeof(struct rxe_sge);

	return max(cap->max_inline_data, min(dev->hello.max_inline, sges));
}

static int make_rings(struct mu_qp *qp, bool srq)
{
	size_t sges = qp->cap.max_send_sge * sizeof(struct rxe_sge) + (qp->lso ? MUSLIN_LSO_HEADER : 0);
	size_t room = max_t(size_t, qp->cap.max_inline_data, sges);

	qp->sq = mu_ring_create(sizeof(struct rxe_send_wqe) + room, qp->cap.max_send_wr);
	if (!qp->sq)
		return -ENOMEM;
	if (srq)
		return 0;
	qp->rq = mu_ring_create(sizeof(struct rxe_recv_wqe) + qp->cap.max_recv_sge * sizeof(struct rxe_sge),
				qp->cap.max_recv_wr);
	return qp->rq ? 0 : -ENOMEM;
}

static int command_create(struct mu_dev *dev, struct mu_qp *qp, struct ib_qp_init_attr *init, struct muslin_number *out)
{
	struct muslin_qp_create in = {
		.type = init->qp_type,
		.flags = (init->sq_sig_type == IB_SIGNAL_ALL_WR ? MUSLIN_QP_SIG_ALL : 0) |
			 (qp->user ? 0 : MUSLIN_QP_KERNEL) | (qp->lso ? MUSLIN_QP_LSO : 0),
		.pdn = to_mu_pd(qp->ib.pd)->pdn,
		.send_cq = to_mu_cq(init->send_cq)->handle,
		.recv_cq = to_mu_cq(init->recv_cq)->handle,
		.srq = init->srq ? to_mu_srq(init->srq)->handle : 0,
		.port = init->port_num,
		.max_send_wr = qp->cap.max_send_wr,
		.max_recv_wr = qp->cap.max_recv_wr,
		.max_send_sge = qp->cap.max_send_sge,
		.max_recv_sge = qp->cap.max_recv_sge,
		.max_inline = qp->cap.max_inline_data,
	};
	u64 *sq = mu_ring_describe(qp->sq, &in.sq), *rq = qp->rq ? mu_ring_describe(qp->rq, &in.rq) : NULL;
	int err = -ENOMEM;

	if (sq && (rq || !qp->rq))
		err = mu_command(dev, MUSLIN_QP_CREATE, &in, sizeof(in), out, sizeof(*out));
	kfree(sq);
	kfree(rq);
	return err;
}

static bool special(const struct mu_qp *qp)
{
	return qp->ib.qp_type <= IB_QPT_GSI;
}

static int enter(struct mu_dev *dev, struct mu_qp *qp)
{
	int err = xa_err(xa_store_irq(&dev->qps, qp->handle, qp, GFP_KERNEL));

	if (err)
		return err;
	if (special(qp))
		dev->special[qp->ib.port - 1][qp->ib.qp_num] = qp;
	else if (!qp->user)
		err = xa_err(xa_store_irq(&dev->qpns, qp->ib.qp_num, qp, GFP_KERNEL));
	if (err)
		xa_erase_irq(&dev->qps, qp->handle);
	return err;
}

/* Polls do not find the number from here on; a poll in progress ends first. */
static void qp_leave(struct mu_dev *dev, struct mu_qp *qp)
{
	xa_erase_irq(&dev->qps, qp->handle);
	if (special(qp))
		dev->special[qp->ib.port - 1][qp->ib.qp_num] = NULL;
	else if (!qp->user)
		xa_erase_irq(&dev->qpns, qp->ib.qp_num);
	if (!qp->user) {
		spin_lock_irq(&to_mu_cq(qp->ib.send_cq)->lock);
		spin_unlock_irq(&to_mu_cq(qp->ib.send_cq)->lock);
		spin_lock_irq(&to_mu_cq(qp->ib.recv_cq)->lock);
		spin_unlock_irq(&to_mu_cq(qp->ib.recv_cq)->lock);
	}
	mu_ref_end(&qp->ref);
}

static int qp_share(struct mu_qp *qp, struct ib_udata *udata)
{
	struct mu_ucontext *uctx = rdma_udata_to_drv_context(udata, struct mu_ucontext, ib);
	struct rxe_create_qp_resp resp = {};
	int err;

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	err = mu_ring_share(qp->sq, &uctx->ib, &resp.sq_mi);
	if (!err && qp->rq)
		err = mu_ring_share(qp->rq, &uctx->ib, &resp.rq_mi);
	return err ? err : ib_copy_to_udata(udata, &resp, sizeof(resp));
}

int mu_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct mu_dev *dev = to_mu_dev(ibqp->device);
	struct mu_qp *qp = to_mu_qp(ibqp);
	struct muslin_number out = {};
	int err = check_init(dev, init);

	if (err)
		return err;
	mu_ref_init(&qp->ref);
	mutex_init(&qp->modify);
	spin_lock_init(&qp->sq_lock);
	spin_lock_init(&qp->rq_lock);
	qp->user = udata;
	qp->lso = init->create_flags & IB_QP_CREATE_IPOIB_UD_LSO;
	qp->cap = init->cap;
	qp->sig_type = init->sq_sig_type;
	if (qp->user)
		qp->cap.max_inline_data = inline_room(dev, &qp->cap);
	if (init->srq)
		qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
	err = qp->user && qp->lso ? -EINVAL : make_rings(qp, init->srq);
	if (!err)
		err = command_create(dev, qp, init, &out);
	if (err)
		goto free_rings;
	qp->handle = out.number;
	ibqp->qp_num = out.arg;
	ibqp->port = init->port_num;
	init->cap = qp->cap;
	err = enter(dev, qp);
	if (err)
		goto destroy;
	if (udata) {
		err = qp_share(qp, udata);
		if (err)
			goto leave;
	}
	return 0;

leave:
	qp_leave(dev, qp);
destroy:
	mu_object(dev, MUSLIN_QP_DESTROY, qp->handle, 0, NULL, NULL);
free_rings:
	mu_ring_destroy(qp->sq);
	mu_ring_destroy(qp->rq);
	return err;
}

/* Attributes: offsets in the ABI's structures and in ib_verbs.h. */
struct attr_place {
	u16 ours, theirs;
	u8 ours_size, theirs_size;
};

#define ATTR(our, their)                                                                                    \
	{                                                                                                   \
		.ours = offsetof(struct muslin_qp_attr, our), .theirs = offsetof(struct ib_qp_attr, their), \
		.ours_size = sizeof_field(struct muslin_qp_attr, our),                                      \
		.theirs_size = sizeof_field(struct ib_qp_attr, their),                                      \
	}

static const struct attr_place attr_places[] = {
	ATTR(state, qp_state),
	ATTR(cur_state, cur_qp_state),
	ATTR(path_mtu, path_mtu),
	ATTR(path_mig_state, path_mig_state),
	ATTR(qkey, qkey),
	ATTR(rq_psn, rq_psn),
	ATTR(sq_psn, sq_psn),
	ATTR(dest_qpn, dest_qp_num),
	ATTR(access, qp_access_flags),
	ATTR(pkey_index, pkey_index),
	ATTR(alt_pkey_index, alt_pkey_index),
	ATTR(en_sqd_async_notify, en_sqd_async_notify),
	ATTR(sq_draining, sq_draining),
	ATTR(max_rd_atomic, max_rd_atomic),
	ATTR(max_dest_rd_atomic, max_dest_rd_atomic),
	ATTR(min_rnr_timer, min_rnr_timer),
	ATTR(port, port_num),
	ATTR(timeout, timeout),
	ATTR(retry_cnt, retry_cnt),
	ATTR(rnr_retry, rnr_retry),
	ATTR(alt_port, alt_port_num),
	ATTR(alt_timeout, alt_timeout),
};

static u32 attr_get(const void *from, u8 size)
{
	return size == 1 ? *(const u8 *)from : size == 2 ? *(const u16 *)from : *(const u32 *)from;
}

static void attr_set(void *to, u8 size, u32 value)
{
	if (size == 1)
		*(u8 *)to = value;
	else if (size == 2)
		*(u16 *)to = value;
	else
		*(u32 *)to = value;
}

static void attrs_to_device(struct muslin_qp_attr *m, const struct ib_qp_attr *a)
{
	const struct attr_place *p;

	for (p = attr_places; p < attr_places + ARRAY_SIZE(attr_places); p++)
		attr_set((u8 *)m + p->ours, p->ours_size, attr_get((const u8 *)a + p->theirs, p->theirs_size));
}

static void attrs_from_device(struct ib_qp_attr *a, const struct muslin_qp_attr *m)
{
	const struct attr_place *p;

	for (p = attr_places; p < attr_places + ARRAY_SIZE(attr_places); p++)
		attr_set((u8 *)a + p->theirs, p->theirs_size, attr_get((const u8 *)m + p->ours, p->ours_size));
}

int mu_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *a, int mask, struct ib_udata *udata)
{
	struct mu_qp *qp = to_mu_qp(ibqp);
	struct muslin_qp_modify in = { .handle = qp->handle, .mask = mask };
	struct muslin_answer out;
	int err;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	attrs_to_device(&in.attr, a);
	if (mask & IB_QP_AV)
		mu_av_fill(&in.attr.av, &a->ah_attr);
	if (mask & IB_QP_ALT_PATH)
		mu_av_fill(&in.attr.alt_av, &a->alt_ah_attr);
	mutex_lock(&qp->modify);
	err = mu_command(to_mu_dev(ibqp->device), MUSLIN_QP_MODIFY, &in, sizeof(in), &out, sizeof(out));
	if (!err && mask & IB_QP_STATE)
		WRITE_ONCE(qp->state, a->qp_state);
	mutex_unlock(&qp->modify);
	return err;
}

int mu_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *a, int mask, struct ib_qp_init_attr *init)
{
	struct mu_qp *qp = to_mu_qp(ibqp);
	struct muslin_object in = { .number = qp->handle };
	struct muslin_qp_answer out;
	const struct muslin_qp_attr *m = &out.attr;
	int err = mu_command(to_mu_dev(ibqp->device), MUSLIN_QP_QUERY, &in, sizeof(in), &out, sizeof(out));

	if (err)
		return err;
	*a = (struct ib_qp_attr){ .cap = qp->cap };
	attrs_from_device(a, &out.attr);
	a->cap.max_send_wr = qp->sq->mask; /* capacity of the rings */
	a->cap.max_recv_wr = qp->rq ? qp->rq->mask : 0;
	mu_av_read(&a->ah_attr, &m->av, ibqp->device);
	mu_av_read(&a->alt_ah_attr, &m->alt_av, ibqp->device);
	init->cap = a->cap;
	init->sq_sig_type = qp->sig_type;
	return 0;
}

int mu_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct mu_dev *dev = to_mu_dev(ibqp->device);
	struct mu_qp *qp = to_mu_qp(ibqp);
	int err = mu_object(dev, MUSLIN_QP_DESTROY, qp->handle, 0, NULL, NULL);

	if (err == -EBUSY)
		return err; /* attached to multicast groups */
	qp_leave(dev, qp);
	mu_ring_destroy(qp->sq);
	mu_ring_destroy(qp->rq);
	return 0;
}

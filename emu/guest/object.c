// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The driver's protection domains, address handles, multicast attachments and shared receive queues. */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "emu/guest/muslin.h"

void mu_ref_init(struct mu_ref *ref)
{
	refcount_set(&ref->refs, 1);
	init_completion(&ref->released);
}

void mu_ref_put(struct mu_ref *ref)
{
	if (refcount_dec_and_test(&ref->refs))
		complete(&ref->released);
}

void mu_ref_end(struct mu_ref *ref)
{
	mu_ref_put(ref);
	wait_for_completion(&ref->released);
}

int mu_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return mu_object(to_mu_dev(pd->device), MUSLIN_PD_ALLOC, 0, 0, &to_mu_pd(pd)->pdn, NULL);
}

int mu_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return mu_object(to_mu_dev(pd->device), MUSLIN_PD_FREE, to_mu_pd(pd)->pdn, 0, NULL, NULL);
}

void mu_av_fill(struct muslin_av *av, const struct rdma_ah_attr *attr)
{
	*av = (struct muslin_av){
		.dlid = rdma_ah_get_dlid(attr),
		.sl = rdma_ah_get_sl(attr),
		.path_bits = rdma_ah_get_path_bits(attr),
		.static_rate = rdma_ah_get_static_rate(attr),
		.port = rdma_ah_get_port_num(attr),
	};
	if (rdma_ah_get_ah_flags(attr) & IB_AH_GRH) {
		const struct ib_global_route *grh = rdma_ah_read_grh(attr);

		av->grh = 1;
		av->sgid_index = grh->sgid_index;
		av->hop_limit = grh->hop_limit;
		av->traffic_class = grh->traffic_class;
		av->flow_label = grh->flow_label;
		memcpy(av->dgid, grh->dgid.raw, sizeof(av->dgid));
	}
	if (attr->type == RDMA_AH_ATTR_TYPE_ROCE)
		memcpy(av->dmac, attr->roce.dmac, sizeof(av->dmac));
}

void mu_av_read(struct rdma_ah_attr *attr, const struct muslin_av *av, struct ib_device *dev)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = rdma_ah_find_type(dev, av->port ? av->port : 1);
	if (attr->type == RDMA_AH_ATTR_TYPE_ROCE)
		memcpy(attr->roce.dmac, av->dmac, sizeof(av->dmac));
	rdma_ah_set_dlid(attr, av->dlid);
	rdma_ah_set_sl(attr, av->sl);
	rdma_ah_set_path_bits(attr, av->path_bits);
	rdma_ah_set_static_rate(attr, av->static_rate);
	rdma_ah_set_port_num(attr, av->port);
	if (av->grh) {
		rdma_ah_set_grh(attr, NULL, av->flow_label, av->sgid_index, av->hop_limit, av->traffic_class);
		rdma_ah_set_dgid_raw(attr, (void *)av->dgid);
	}
}

int mu_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	mu_av_read(attr, &to_mu_ah(ah)->av, ah->device);
	return 0;
}

/* Each request of a kernel user contains the address vector: this call may not sleep. */
int mu_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	mu_av_fill(&to_mu_ah(ah)->av, init->ah_attr);
	return 0;
}

int mu_create_user_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct mu_ah *ah = to_mu_ah(ibah);
	struct muslin_ah_create in = { .pdn = to_mu_pd(ibah->pd)->pdn };
	struct muslin_number out = {};
	struct rxe_create_ah_resp resp = {};
	int err;

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	mu_av_fill(&in.av, init->ah_attr);
	err = mu_command(to_mu_dev(ibah->device), MUSLIN_AH_CREATE, &in, sizeof(in), &out, sizeof(out));
	if (err)
		return err;
	ah->av = in.av;
	ah->number = resp.ah_num = out.number;
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (err)
		mu_object(to_mu_dev(ibah->device), MUSLIN_AH_DESTROY, ah->number, 0, NULL, NULL);
	return err;
}

int mu_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct mu_ah *ah = to_mu_ah(ibah);

	if (ah->number)
		mu_object(to_mu_dev(ibah->device), MUSLIN_AH_DESTROY, ah->number, 0, NULL, NULL);
	return 0;
}

static int mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid, u32 op)
{
	struct muslin_mcast in = { .handle = to_mu_qp(qp)->handle, .mlid = lid };
	struct muslin_answer out;

	memcpy(in.mgid, gid->raw, sizeof(in.mgid));
	return mu_command(to_mu_dev(qp->device), op, &in, sizeof(in), &out, sizeof(out));
}

int mu_attach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	return mcast(qp, gid, lid, MUSLIN_MCAST_ATTACH);
}

int mu_detach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	return mcast(qp, gid, lid, MUSLIN_MCAST_DETACH);
}

/* Shared receive queues */

static int srq_enter(struct mu_dev *dev, struct mu_srq *srq, u32 limit, u32 *number)
{
	struct muslin_srq_create in = {
		.pdn = to_mu_pd(srq->ib.pd)->pdn,
		.max_wr = srq->max_wr,
		.max_sge = srq->max_sge,
		.limit = limit,
	};
	struct muslin_number out = {};
	u64 *list = mu_ring_describe(srq->ring, &in.ring);
	int err;

	if (!list)
		return -ENOMEM;
	err = mu_command(dev, MUSLIN_SRQ_CREATE, &in, sizeof(in), &out, sizeof(out));
	kfree(list);
	if (err)
		return err;
	srq->handle = out.number;
	*number = out.arg;
	err = xa_err(xa_store_irq(&dev->srqs, srq->handle, srq, GFP_KERNEL));
	if (err)
		mu_object(dev, MUSLIN_SRQ_DESTROY, srq->handle, 0, NULL, NULL);
	return err;
}

static void srq_leave(struct mu_dev *dev, struct mu_srq *srq)
{
	mu_object(dev, MUSLIN_SRQ_DESTROY, srq->handle, 0, NULL, NULL);
	xa_erase_irq(&dev->srqs, srq->handle);
	mu_ref_end(&srq->ref);
}

static int srq_share(struct mu_srq *srq, u32 number, struct ib_udata *udata)
{
	struct ib_ucontext *uctx = rdma_udata_to_drv_context(udata, struct mu_ucontext, ib)
					   ? &rdma_udata_to_drv_context(udata, struct mu_ucontext, ib)->ib
					   : NULL;
	struct rxe_create_srq_resp resp = { .srq_num = number };
	int err;

	if (!uctx || udata->outlen < sizeof(resp))
		return -EINVAL;
	err = mu_ring_share(srq->ring, uctx, &resp.mi);
	return err ? err : ib_copy_to_udata(udata, &resp, sizeof(resp));
}

int mu_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct mu_dev *dev = to_mu_dev(ibsrq->device);
	struct mu_srq *srq = to_mu_srq(ibsrq);
	u32 number;
	int err;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > dev->hello.max_srq_wr ||
	    init->attr.max_sge > dev->hello.max_srq_sge)
		return -EINVAL;
	mu_ref_init(&srq->ref);
	spin_lock_init(&srq->lock);
	mutex_init(&srq->resize);
	srq->max_wr = init->attr.max_wr;
	srq->max_sge = max(init->attr.max_sge, 1u);
	srq->ring = mu_ring_create(sizeof(struct rxe_recv_wqe) + srq->max_sge * sizeof(struct rxe_sge), srq->max_wr);
	if (!srq->ring)
		return -ENOMEM;
	err = srq_enter(dev, srq, init->attr.srq_limit, &number);
	if (err)
		goto free_ring;
	srq->max_wr = min(srq->ring->mask, dev->hello.max_srq_wr);
	init->attr.max_wr = srq->max_wr;
	init->attr.max_sge = srq->max_sge;
	if (udata) {
		err = srq_share(srq, number, udata);
		if (err)
			goto leave;
	}
	return 0;

leave:
	srq_leave(dev, srq);
free_ring:
	mu_ring_destroy(srq->ring);
	return err;
}

/* For a user SRQ: the library maps the new ring, to which the daemon has moved posted entries. */
static int srq_resize(struct mu_srq *srq, u32 max_wr, struct ib_udata *udata)
{
	struct mu_dev *dev = to_mu_dev(srq->ib.device);
	struct mu_ucontext *uctx = rdma_udata_to_drv_context(udata, struct mu_ucontext, ib);
	struct muslin_srq_create in = { .handle = srq->handle };
	struct mu_ring *ring;
	struct rxe_modify_srq_cmd cmd;
	struct muslin_answer out;
	struct mminfo mi = {};
	u64 *list = NULL;
	int err = -ENOMEM;

	if (!max_wr || max_wr > dev->hello.max_srq_wr)
		return -EINVAL;
	if (udata->inlen < sizeof(cmd) || ib_copy_from_udata(&cmd, udata, sizeof(cmd)))
		return -EINVAL;
	ring = mu_ring_create(sizeof(struct rxe_recv_wqe) + srq->max_sge * sizeof(struct rxe_sge), max_wr);
	if (ring)
		list = mu_ring_describe(ring, &in.ring);
	if (!list)
		goto free_ring;
	err = mu_ring_share(ring, &uctx->ib, &mi);
	if (!err && copy_to_user(u64_to_user_ptr(cmd.mmap_info_addr), &mi, sizeof(mi)))
		err = -EFAULT;
	if (err)
		goto free_ring;
	mutex_lock(&srq->resize);
	err = mu_command(dev, MUSLIN_SRQ_RESIZE, &in, sizeof(in), &out, sizeof(out));
	if (!err) {
		swap(srq->ring, ring);
		srq->max_wr = min(srq->ring->mask, dev->hello.max_srq_wr);
	}
	mutex_unlock(&srq->resize);
free_ring:
	kfree(list);
	mu_ring_destroy(ring);
	return err;
}

int mu_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	int err = 0;

	/* Checked first: the program maps the new ring only if the whole call succeeds. */
	if (mask & IB_SRQ_MAX_WR && mask & IB_SRQ_LIMIT && attr->srq_limit > attr->max_wr)
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR)
		err = udata ? srq_resize(to_mu_srq(ibsrq), attr->max_wr, udata) : -EOPNOTSUPP;
	if (err || !(mask & IB_SRQ_LIMIT))
		return err;
	return mu_object(to_mu_dev(ibsrq->device), MUSLIN_SRQ_SET_LIMIT, to_mu_srq(ibsrq)->handle, attr->srq_limit,
			 NULL, NULL);
}

int mu_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct mu_srq *srq = to_mu_srq(ibsrq);

	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	return mu_object(to_mu_dev(ibsrq->device), MUSLIN_SRQ_QUERY, srq->handle, 0, &attr->srq_limit, NULL);
}

int mu_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct mu_srq *srq = to_mu_srq(ibsrq);

	srq_leave(to_mu_dev(ibsrq->device), srq);
	mu_ring_destroy(srq->ring);
	return 0;
}

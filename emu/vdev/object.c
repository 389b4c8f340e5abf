// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Commands on the objects that have rings: completion queues, queue pairs, shared receive queues. */
#include <errno.h>
#include <stdlib.h>

#include "emu/vdev/command.h"

static u32 recv_elem(u32 sges)
{
	return (u32)(sizeof(struct rxe_recv_wqe) + sges * sizeof(struct rxe_sge));
}

int vd_cq_create(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_cq_create *cmd = in;
	struct muslin_number *a = out;
	struct vd_cq *cq;
	int err;

	if (cmd->vector >= MUSLIN_VECTORS)
		return -EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->d = d;
	cq->vector = cmd->vector;
	cq->kernel = cmd->flags & MUSLIN_CQ_KERNEL;
	list_init(&cq->due);
	err = vd_ring_create(d, &cq->ring, &cmd->ring, sizeof(struct ib_uverbs_wc));
	if (!err && table_add(&d->cqs, cq, &cq->handle))
		err = -ENOMEM;
	if (err)
		goto free_cq;
	err = hca_cq_create(d->ctx, &vd_cq_ops, cq, &cq->cqn);
	if (err)
		goto drop_handle;
	a->number = cq->handle;
	return 0;

drop_handle:
	table_remove(&d->cqs, cq->handle);
free_cq:
	vd_ring_destroy(&cq->ring);
	free(cq);
	return err;
}

/* What has not been polled moves to the new ring. */
int vd_cq_resize(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_cq_create *cmd = in;
	struct vd_cq *cq = table_get(&d->cqs, cmd->handle);
	struct vd_ring ring = { 0 };
	int err;

	if (!cq)
		return -EINVAL;
	err = vd_ring_create(d, &ring, &cmd->ring, sizeof(struct ib_uverbs_wc));
	if (err)
		return err;
	if (!vd_ring_move(&cq->ring, &ring, sizeof(struct ib_uverbs_wc))) {
		vd_ring_destroy(&ring);
		return -EINVAL;
	}
	vd_ring_destroy(&cq->ring);
	cq->ring = ring;
	return 0;
}

int vd_cq_destroy(struct vdev *d, const void *in, u32 len, void *out)
{
	struct vd_cq *cq = table_get(&d->cqs, ((const struct muslin_object *)in)->number);
	int err;

	if (!cq)
		return -EINVAL;
	if (cq->specials)
		return -EBUSY;
	err = hca_cq_destroy(d->ctx, cq->cqn);
	if (err)
		return err;
	table_remove(&d->cqs, cq->handle);
	list_del(&cq->due);
	vd_ring_destroy(&cq->ring);
	free(cq);
	return 0;
}

static int qp_limits(const struct vdev *d, const struct muslin_qp_create *cmd)
{
	const struct hca_caps *caps = hca_caps(d->cfg.hca);

	if (cmd->type > HCA_QPT_UD || cmd->max_send_wr > caps->max_qp_wr || cmd->max_recv_wr > caps->max_qp_wr ||
	    cmd->max_send_sge > caps->max_sge || cmd->max_recv_sge > caps->max_sge ||
	    cmd->max_inline > caps->max_inline)
		return -EINVAL;
	if (cmd->flags & MUSLIN_QP_LSO && (cmd->type != HCA_QPT_UD || !(cmd->flags & MUSLIN_QP_KERNEL)))
		return -EINVAL;
	return cmd->type <= HCA_QPT_GSI && (cmd->srq || !(cmd->flags & MUSLIN_QP_KERNEL)) ? -EINVAL : 0;
}

static int qp_rings(struct vdev *d, struct vd_qp *qp, const struct muslin_qp_create *cmd)
{
	u32 lso = qp->lso ? MUSLIN_LSO_HEADER : 0;
	u32 room = max(cmd->max_inline, cmd->max_send_sge * (u32)sizeof(struct rxe_sge) + lso);
	int err = vd_ring_create(d, &qp->sq, &cmd->sq, (u32)sizeof(struct rxe_send_wqe) + room);

	if (!err && !cmd->srq)
		err = vd_ring_create(d, &qp->rq, &cmd->rq, recv_elem(cmd->max_recv_sge));
	if (err || !qp->kernel || qp->limits.type == HCA_QPT_UD || qp->limits.type <= HCA_QPT_GSI)
		return err;
	qp->reg = calloc(qp->sq.mask + 1, sizeof(*qp->reg));
	return qp->reg ? 0 : -ENOMEM;
}

static int qp_enter(struct vdev *d, struct vd_qp *qp, const struct muslin_qp_create *cmd)
{
	const struct vd_srq *srq = cmd->srq ? table_get(&d->srqs, cmd->srq) : NULL;
	struct hca_qp_init init = {
		.type = cmd->type,
		.pdn = cmd->pdn,
		.send_cqn = qp->send_cq->cqn,
		.recv_cqn = qp->recv_cq->cqn,
		.srqn = srq ? srq->srqn : 0,
		.max_send_wr = cmd->max_send_wr,
		.max_recv_wr = srq ? 0 : cmd->max_recv_wr,
		.max_send_sge = cmd->max_send_sge,
		.max_recv_sge = srq ? 0 : cmd->max_recv_sge,
		.max_inline = cmd->max_inline,
		.sq_sig_all = qp->sig_all,
		.rx_csum = cmd->type == HCA_QPT_UD,
		.port = 1,
	};

	if (cmd->srq && !srq)
		return -EINVAL;
	if (qp->limits.type > HCA_QPT_GSI)
		return hca_qp_create(d->ctx, &init, &vd_qp_wq_ops, qp, &qp->qpn);
	return vd_special_create(d, qp, cmd->port <= 0xff ? (u8)cmd->port : 0);
}

static struct vd_qp *qp_alloc(struct vdev *d, const struct muslin_qp_create *cmd)
{
	struct vd_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->d = d;
	qp->limits =
		(struct wqe_limits){ .type = cmd->type, .max_sge = cmd->max_send_sge, .max_inline = cmd->max_inline };
	qp->max_recv_sge = cmd->max_recv_sge;
	qp->kernel = cmd->flags & MUSLIN_QP_KERNEL;
	qp->sig_all = cmd->flags & MUSLIN_QP_SIG_ALL;
	qp->lso = cmd->flags & MUSLIN_QP_LSO;
	qp->send_cq = table_get(&d->cqs, cmd->send_cq);
	qp->recv_cq = table_get(&d->cqs, cmd->recv_cq);
	return qp;
}

int vd_qp_create(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_qp_create *cmd = in;
	struct muslin_number *a = out;
	struct vd_qp *qp;
	int err = qp_limits(d, cmd);

	if (err)
		return err;
	qp = qp_alloc(d, cmd);
	if (!qp)
		return -ENOMEM;
	err = qp->send_cq && qp->recv_cq ? qp_rings(d, qp, cmd) : -EINVAL;
	if (!err && table_add(&d->qps, qp, &qp->handle))
		err = -ENOMEM;
	if (err)
		goto free_qp;
	err = qp_enter(d, qp, cmd);
	if (err)
		goto drop_handle;
	if (qp->limits.type <= HCA_QPT_GSI) {
		qp->send_cq->specials++;
		qp->recv_cq->specials++;
	}
	a->number = qp->handle;
	a->arg = qp->qpn;
	return 0;

drop_handle:
	table_remove(&d->qps, qp->handle);
free_qp:
	vd_qp_free(qp);
	return err;
}

int vd_qp_modify(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_qp_modify *cmd = in;
	const struct muslin_qp_attr *m = &cmd->attr;
	struct vd_qp *qp = table_get(&d->qps, cmd->handle);
	struct hca_qp_attr a = {
		.state = m->state,
		.cur_state = m->cur_state,
		.path_mtu = m->path_mtu,
		.path_mig_state = m->path_mig_state,
		.qkey = m->qkey,
		.rq_psn = m->rq_psn,
		.sq_psn = m->sq_psn,
		.dest_qpn = m->dest_qpn,
		.access = m->access,
		.pkey_index = m->pkey_index,
		.alt_pkey_index = m->alt_pkey_index,
		.en_sqd_async_notify = m->en_sqd_async_notify,
		.max_rd_atomic = m->max_rd_atomic,
		.max_dest_rd_atomic = m->max_dest_rd_atomic,
		.min_rnr_timer = m->min_rnr_timer,
		.port = m->port,
		.timeout = m->timeout,
		.retry_cnt = m->retry_cnt,
		.rnr_retry = m->rnr_retry,
		.alt_port = m->alt_port,
		.alt_timeout = m->alt_timeout,
	};

	if (!qp)
		return -EINVAL;
	vd_av_in(&a.av, &m->av);
	vd_av_in(&a.alt_av, &m->alt_av);
	if (qp->limits.type <= HCA_QPT_GSI)
		return vd_special_modify(qp, &a, cmd->mask);
	return hca_qp_modify(d->ctx, qp->qpn, &a, cmd->mask);
}

int vd_qp_query(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct vd_qp *qp = table_get(&d->qps, ((const struct muslin_object *)in)->number);
	struct muslin_qp_attr *m = &((struct muslin_qp_answer *)out)->attr;
	struct hca_qp_attr a = { 0 };
	int err = 0;

	if (!qp)
		return -EINVAL;
	if (qp->limits.type <= HCA_QPT_GSI)
		vd_special_query(qp, &a);
	else
		err = hca_qp_query(d->ctx, qp->qpn, &a);
	if (err)
		return err;
	*m = (struct muslin_qp_attr){
		.state = a.state,
		.cur_state = a.cur_state,
		.path_mtu = a.path_mtu,
		.path_mig_state = a.path_mig_state,
		.qkey = a.qkey,
		.rq_psn = a.rq_psn,
		.sq_psn = a.sq_psn,
		.dest_qpn = a.dest_qpn,
		.access = a.access,
		.pkey_index = a.pkey_index,
		.alt_pkey_index = a.alt_pkey_index,
		.en_sqd_async_notify = a.en_sqd_async_notify,
		.sq_draining = a.sq_draining,
		.max_rd_atomic = a.max_rd_atomic,
		.max_dest_rd_atomic = a.max_dest_rd_atomic,
		.min_rnr_timer = a.min_rnr_timer,
		.port = a.port,
		.timeout = a.timeout,
		.retry_cnt = a.retry_cnt,
		.rnr_retry = a.rnr_retry,
		.alt_port = a.alt_port,
		.alt_timeout = a.alt_timeout,
	};
	vd_av_out(&m->av, &a.av);
	vd_av_out(&m->alt_av, &a.alt_av);
	return 0;
}

int vd_qp_destroy(struct vdev *d, const void *in, u32 len, void *out)
{
	struct vd_qp *qp = table_get(&d->qps, ((const struct muslin_object *)in)->number);
	int err;

	if (!qp)
		return -EINVAL;
	if (qp->limits.type <= HCA_QPT_GSI) {
		vd_special_destroy(qp);
		qp->send_cq->specials--;
		qp->recv_cq->specials--;
	} else {
		err = hca_qp_destroy(d->ctx, qp->qpn);
		if (err)
			return err;
	}
	table_remove(&d->qps, qp->handle);
	vd_qp_free(qp);
	return 0;
}

int vd_srq_create(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_srq_create *cmd = in;
	struct hca_srq_attr attr = { .max_wr = cmd->max_wr, .max_sge = cmd->max_sge, .limit = cmd->limit };
	struct muslin_number *a = out;
	struct vd_srq *srq;
	int err;

	if (cmd->max_wr > hca_caps(d->cfg.hca)->max_srq_wr || cmd->max_sge > HCA_MAX_SGE)
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->d = d;
	srq->max_sge = cmd->max_sge;
	err = vd_ring_create(d, &srq->ring, &cmd->ring, recv_elem(cmd->max_sge));
	if (!err && table_add(&d->srqs, srq, &srq->handle))
		err = -ENOMEM;
	if (err)
		goto free_srq;
	err = hca_srq_create(d->ctx, cmd->pdn, &attr, &vd_srq_wq_ops, srq, &srq->srqn);
	if (err)
		goto drop_handle;
	hca_srq_set_level(d->ctx, srq->srqn, vd_srq_posted);
	a->number = srq->handle;
	a->arg = srq->srqn;
	return 0;

drop_handle:
	table_remove(&d->srqs, srq->handle);
free_srq:
	vd_ring_destroy(&srq->ring);
	free(srq);
	return err;
}

/* The limit stays; what is posted moves. */
int vd_srq_resize(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_srq_create *cmd = in;
	struct vd_srq *srq = table_get(&d->srqs, cmd->handle);
	struct vd_ring ring = { 0 };
	int err;

	if (!srq)
		return -EINVAL;
	err = vd_ring_create(d, &ring, &cmd->ring, recv_elem(srq->max_sge));
	if (err)
		return err;
	if (ring.mask > hca_caps(d->cfg.hca)->max_srq_wr * 2 || !vd_ring_move_posted(&srq->ring, &ring)) {
		vd_ring_destroy(&ring);
		return -EINVAL;
	}
	vd_ring_destroy(&srq->ring);
	srq->ring = ring;
	return 0;
}

int vd_srq_set_limit(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_object *cmd = in;
	const struct vd_srq *srq = table_get(&d->srqs, cmd->number);

	return srq ? hca_srq_set_limit(d->ctx, srq->srqn, cmd->arg) : -EINVAL;
}

int vd_srq_query(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct vd_srq *srq = table_get(&d->srqs, ((const struct muslin_object *)in)->number);
	struct hca_srq_attr attr;
	int err = srq ? hca_srq_query(d->ctx, srq->srqn, &attr) : -EINVAL;

	if (!err)
		((struct muslin_number *)out)->number = attr.limit;
	return err;
}

int vd_srq_destroy(struct vdev *d, const void *in, u32 len, void *out)
{
	struct vd_srq *srq = table_get(&d->srqs, ((const struct muslin_object *)in)->number);
	int err = srq ? hca_srq_destroy(d->ctx, srq->srqn) : -EINVAL;

	if (err)
		return err;
	table_remove(&d->srqs, srq->handle);
	vd_ring_destroy(&srq->ring);
	free(srq);
	return 0;
}

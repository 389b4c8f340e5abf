// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The guest driver's commands on objects with rings: CQs, QPs and SRQs. */
#include <errno.h>
#include <stdlib.h>

#include "emu/virtio/command.h"

#define CQ_ENTRY ((u32)sizeof(struct ib_uverbs_wc))

static_assert((int)MUSLIN_ARM_NEXT == VERBS_ARM_NEXT && (int)MUSLIN_ARM_SOLICITED == VERBS_ARM_SOLICITED,
	      "arming of CQs");

static u32 recv_elem(u32 sges)
{
	return (u32)(sizeof(struct rxe_recv_wqe) + sges * sizeof(struct rxe_sge));
}

/* ---- completion queues ---- */

static int cq_init(struct verbs_cq *base, u32 entries, const void *arg)
{
	struct vd_cq *cq = container_of(base, struct vd_cq, cq);
	const struct muslin_cq_create *cmd = arg;

	cq->vector = cmd->vector;
	cq->kernel = cmd->flags & MUSLIN_CQ_KERNEL;
	list_init(&cq->due);
	vd_events_init(&cq->event, 1);
	return vd_ring_create(vd_of(base->verbs), &cq->ring, &cmd->ring, CQ_ENTRY);
}

static void cq_fini(struct verbs_cq *base)
{
	struct vd_cq *cq = container_of(base, struct vd_cq, cq);

	list_del(&cq->due);
	vd_events_forget(&cq->event, 1);
	vd_ring_destroy(&cq->ring);
}

/* The driver rounds a number of entries up to a ring of this many slots, one of which is always empty. */
static u32 cq_entries(const struct muslin_cq_create *cmd)
{
	return cmd->ring.slots / 2;
}

int vd_cq_create(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_cq_create *cmd = in;
	struct verbs_cq *cq;
	int err = -EINVAL;

	if (cmd->vector < MUSLIN_VECTORS)
		err = verbs_cq_create(&d->verbs, cq_entries(cmd), cmd, &cq);
	if (!err)
		((struct muslin_number *)out)->number = cq->handle;
	return err;
}

/* The ring to which entries are about to move, up to all that it has room for. */
static int ring_resize(struct vdev *d, struct vd_ring *r, const struct muslin_ring *desc, u32 min_elem)
{
	int err = vd_ring_create(d, r, desc, min_elem);

	if (!err)
		d->bytes += verbs_ring_bytes(desc->slots, desc->log2_elem);
	return err;
}

/* Unpolled completions move to the new ring. */
int vd_cq_resize(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_cq_create *cmd = in;
	struct vd_cq *cq = table_get(&d->verbs.cqs, cmd->handle);
	struct vd_ring ring = { 0 };
	int err = cq ? verbs_cq_check(&d->verbs, cq_entries(cmd)) : -EINVAL;

	if (!err)
		err = ring_resize(d, &ring, &cmd->ring, CQ_ENTRY);
	if (err)
		return err;
	if (!verbs_ring_move_put(&ring.ring, &cq->ring.ring, CQ_ENTRY)) {
		vd_ring_destroy(&ring);
		return -EINVAL;
	}
	vd_ring_destroy(&cq->ring);
	cq->ring = ring;
	return 0;
}

int vd_cq_destroy(struct vdev *d, const void *in, u32 len, void *out)
{
	struct verbs_cq *cq;
	int err = verbs_cq_destroy(&d->verbs, ((const struct muslin_object *)in)->number, &cq);

	if (!err)
		verbs_cq_free(cq);
	return err;
}

/* ---- queue pairs ---- */

static int qp_init(struct verbs_qp *base, const struct hca_qp_init *init, bool srq, const void *arg)
{
	struct vd_qp *qp = vd_qp_of(base);
	struct vdev *d = vd_of(base->verbs);
	const struct muslin_qp_create *cmd = arg;
	u32 sges;
	int err;

	vd_events_init(qp->event, VD_QP_EVENTS);
	qp->kernel = cmd->flags & MUSLIN_QP_KERNEL;
	qp->lso = cmd->flags & MUSLIN_QP_LSO;
	sges = init->max_send_sge * (u32)sizeof(struct rxe_sge) + (qp->lso ? MUSLIN_LSO_HEADER : 0);
	err = vd_ring_create(d, &qp->sq, &cmd->sq, (u32)sizeof(struct rxe_send_wqe) + max(init->max_inline, sges));
	if (!err && !srq)
		err = vd_ring_create(d, &qp->rq, &cmd->rq, recv_elem(init->max_recv_sge));
	if (err || !qp->kernel || (init->type != HCA_QPT_RC && init->type != HCA_QPT_UC))
		return err;
	qp->reg = calloc(qp->sq.ring.mask + 1, sizeof(*qp->reg));
	return qp->reg ? 0 : -ENOMEM;
}

static void qp_fini(struct verbs_qp *base)
{
	struct vd_qp *qp = vd_qp_of(base);
	u32 i;

	for (i = 0; qp->reg && i <= qp->sq.ring.mask; i++) {
		vd_of(base->verbs)->pages -= qp->reg[i] ? MUSLIN_REG_PAGES : 0;
		free(qp->reg[i]);
	}
	free(qp->reg);
	vd_events_forget(qp->event, VD_QP_EVENTS);
	vd_ring_destroy(&qp->sq);
	vd_ring_destroy(&qp->rq);
}

int vd_qp_create(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_qp_create *cmd = in;
	struct verbs_qp_queues queues = { cmd->send_cq, cmd->recv_cq, cmd->srq, cmd->srq };
	bool special = cmd->type <= HCA_QPT_GSI, kernel = cmd->flags & MUSLIN_QP_KERNEL;
	struct hca_qp_init init = {
		.type = cmd->type,
		.pdn = cmd->pdn,
		.max_send_wr = cmd->max_send_wr,
		.max_recv_wr = cmd->max_recv_wr,
		.max_send_sge = cmd->max_send_sge,
		.max_recv_sge = cmd->max_recv_sge,
		.max_inline = cmd->max_inline,
		.sq_sig_all = cmd->flags & MUSLIN_QP_SIG_ALL,
		.rx_csum = cmd->type == HCA_QPT_UD,
		.port = special ? (cmd->port <= 0xff ? (u8)cmd->port : 0) : 1,
	};
	struct muslin_number *a = out;
	struct verbs_qp *qp;
	int err;

	/* Only for kernel users. */
	if ((special && !kernel) || (cmd->flags & MUSLIN_QP_LSO && (cmd->type != HCA_QPT_UD || !kernel)))
		return -EINVAL;
	err = verbs_qp_create(&d->verbs, &queues, &init, cmd, &qp);
	if (err)
		return err;
	a->number = qp->handle;
	a->arg = qp->qpn;
	return 0;
}

int vd_qp_modify(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_qp_modify *cmd = in;
	struct hca_qp_attr a;
	struct verbs_qp *qp;

	vd_attr_in(&a, &cmd->attr);
	if (cmd->mask & HCA_QP_STATE && (verbs_state_ends(a.state) || a.state == HCA_QPS_RTS))
		vd_catch_up(d);
	return verbs_qp_modify(&d->verbs, cmd->handle, &a, cmd->mask, &qp);
}

int vd_qp_query(struct vdev *d, const void *in, u32 len, void *out)
{
	struct verbs_qp *qp;
	struct hca_qp_attr a;
	int err;

	vd_catch_up(d); /* the driver awaits by it that posts before RTS are dropped */
	err = verbs_qp_query(&d->verbs, ((const struct muslin_object *)in)->number, &a, &qp);
	if (!err)
		vd_attr_out(&((struct muslin_qp_answer *)out)->attr, &a);
	return err;
}

int vd_qp_destroy(struct vdev *d, const void *in, u32 len, void *out)
{
	struct verbs_qp *qp;
	int err;

	vd_catch_up(d);
	err = verbs_qp_destroy(&d->verbs, ((const struct muslin_object *)in)->number, &qp);
	if (!err)
		verbs_qp_free(qp);
	return err;
}

/* ---- shared receive queues ---- */

static int srq_init(struct verbs_srq *base, u32 max_wr, const void *arg)
{
	struct vd_srq *srq = container_of(base, struct vd_srq, srq);

	vd_events_init(srq->event, VD_SRQ_EVENTS);
	return vd_ring_create(vd_of(base->verbs), &srq->ring, &((const struct muslin_srq_create *)arg)->ring,
			      recv_elem(base->max_sge));
}

static void srq_fini(struct verbs_srq *base)
{
	struct vd_srq *srq = container_of(base, struct vd_srq, srq);

	vd_events_forget(srq->event, VD_SRQ_EVENTS);
	vd_ring_destroy(&srq->ring);
}

int vd_srq_create(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_srq_create *cmd = in;
	struct hca_srq_attr attr = { .max_wr = cmd->max_wr, .max_sge = cmd->max_sge, .limit = cmd->limit };
	struct muslin_number *a = out;
	struct verbs_srq *srq;
	int err = verbs_srq_create(&d->verbs, cmd->pdn, &attr, cmd, &srq);

	if (err)
		return err;
	verbs_srq_set_ring(srq, &container_of(srq, struct vd_srq, srq)->ring.ring);
	a->number = srq->handle;
	a->arg = srq->srqn;
	return 0;
}

/* The SRQ limit does not change; posted entries move. */
int vd_srq_resize(struct vdev *d, const void *in, u32 len, void *out)
{
	const struct muslin_srq_create *cmd = in;
	struct vd_srq *srq = table_get(&d->verbs.srqs, cmd->handle);
	struct vd_ring ring = { 0 };
	int err;

	if (!srq)
		return -EINVAL;
	err = ring_resize(d, &ring, &cmd->ring, recv_elem(srq->srq.max_sge));
	if (err)
		return err;
	if (ring.ring.mask > hca_caps(d->cfg.hca)->max_srq_wr * 2 || verbs_srq_set_ring(&srq->srq, &ring.ring) ||
	    !verbs_ring_move_posted(&ring.ring, &srq->ring.ring)) {
		verbs_srq_set_ring(&srq->srq, &srq->ring.ring);
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

	return verbs_srq_set_limit(&d->verbs, cmd->number, cmd->arg);
}

int vd_srq_query(struct vdev *d, const void *in, u32 len, void *out)
{
	struct hca_srq_attr attr;
	struct verbs_srq *srq;
	int err = verbs_srq_query(&d->verbs, ((const struct muslin_object *)in)->number, &attr, &srq);

	if (!err)
		((struct muslin_number *)out)->number = attr.limit;
	return err;
}

int vd_srq_destroy(struct vdev *d, const void *in, u32 len, void *out)
{
	struct verbs_srq *srq;
	int err = verbs_srq_destroy(&d->verbs, ((const struct muslin_object *)in)->number, &srq);

	if (!err)
		verbs_srq_free(srq);
	return err;
}

const struct verbs_ops vd_verbs_ops = {
	.cq_size = sizeof(struct vd_cq),
	.qp_size = sizeof(struct vd_qp),
	.srq_size = sizeof(struct vd_srq),
	.cq_init = cq_init,
	.cq_fini = cq_fini,
	.qp_init = qp_init,
	.qp_fini = qp_fini,
	.srq_init = srq_init,
	.srq_fini = srq_fini,
	.srq_posted = vd_srq_posted,
	.cq = &vd_cq_ops,
	.qp = &vd_qp_wq_ops,
	.srq = &vd_srq_wq_ops,
	.special = &vd_special_ops,
};

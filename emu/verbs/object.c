// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* CQs, QPs and SRQs of a front end by handle (IBTA 11.2.8, 11.2.5, 11.2.3): checks, creation, destruction. */
#include "emu/verbs/object.h"

#include <errno.h>
#include <stdlib.h>

#include "emu/hca/iw.h"

#define RECV_POLL_NS   NSEC_PER_MSEC /* period of polling receive rings while a QP needs receives */
#define REQUEST_ROUNDS 4             /* send, commit, complete, and one to spare */

void verbs_init(struct verbs *v, const struct verbs_ops *ops, struct hca *hca, u32 first, u32 last)
{
	v->ops = ops;
	v->hca = hca;
	list_init(&v->specials);
	table_init(&v->cqs, first, last);
	table_init(&v->qps, first, last);
	table_init(&v->srqs, first, last);
}

void verbs_fini(struct verbs *v)
{
	void *obj;
	u32 i;

	table_for_each (&v->qps, i, obj)
		verbs_qp_free(obj);
	table_for_each (&v->srqs, i, obj)
		verbs_srq_free(obj);
	table_for_each (&v->cqs, i, obj)
		verbs_cq_free(obj);
	table_fini(&v->cqs);
	table_fini(&v->qps);
	table_fini(&v->srqs);
}

/* ---- completion queues ---- */

int verbs_cq_check(const struct verbs *v, u32 entries)
{
	return entries && entries <= hca_caps(v->hca)->max_cqe ? 0 : -EINVAL;
}

int verbs_cq_create(struct verbs *v, u32 entries, const void *cmd, struct verbs_cq **out)
{
	int err = verbs_cq_check(v, entries);
	struct verbs_cq *cq;

	if (err)
		return err;
	cq = calloc(1, v->ops->cq_size);
	if (!cq)
		return -ENOMEM;
	cq->verbs = v;
	err = v->ops->cq_init(cq, entries, cmd);
	if (!err && table_add(&v->cqs, cq, &cq->handle))
		err = -ENOMEM;
	if (err)
		goto free_cq;
	err = hca_cq_create(v->ctx, v->ops->cq, cq, &cq->cqn);
	if (err)
		goto drop_handle;
	*out = cq;
	return 0;

drop_handle:
	table_remove(&v->cqs, cq->handle);
free_cq:
	v->ops->cq_fini(cq);
	free(cq);
	return err;
}

int verbs_cq_destroy(struct verbs *v, u32 handle, struct verbs_cq **out)
{
	struct verbs_cq *cq = table_get(&v->cqs, handle);

	*out = cq;
	if (!cq)
		return -ENOENT;
	return cq->specials ? -EBUSY : hca_cq_destroy(v->ctx, cq->cqn);
}

void verbs_cq_free(struct verbs_cq *cq)
{
	table_remove(&cq->verbs->cqs, cq->handle);
	cq->verbs->ops->cq_fini(cq);
	free(cq);
}

void verbs_cq_completed(struct verbs_cq *cq, const struct hca_cqe *cqe)
{
	cq->wake = true;
	cq->wake_solicited |= cqe->solicited || cqe->status != HCA_WC_SUCCESS;
}

/* The user arms, then polls; the daemon completes, then reads the arming: so one of them sees the other's store. */
bool verbs_cq_wants_event(const struct verbs_cq *cq, u32 *arm)
{
	u32 want;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	want = __atomic_load_n(arm, __ATOMIC_ACQUIRE);
	if (!cq->wake || !(want == VERBS_ARM_NEXT || (want == VERBS_ARM_SOLICITED && cq->wake_solicited)))
		return false;
	__atomic_store_n(arm, VERBS_ARM_NONE, __ATOMIC_RELEASE);
	return true;
}

/* ---- queue pairs ---- */

static bool is_special(const struct verbs_qp *qp)
{
	return qp->limits.type <= HCA_QPT_GSI;
}

static int qp_check(const struct verbs *v, const struct verbs_qp_queues *q, struct hca_qp_init *init)
{
	const struct hca_caps *caps = hca_caps(v->hca);

	if (!hca_qp_type_valid(init->type) || (init->type <= HCA_QPT_GSI && !v->ops->special) ||
	    (init->type >= HCA_QPT_XRC_INI && !v->ops->xrc))
		return -EOPNOTSUPP;
	if (init->type <= HCA_QPT_GSI && q->has_srq)
		return -EINVAL;
	if (q->has_srq)
		init->max_recv_wr = init->max_recv_sge = 0;
	if (init->max_send_wr > caps->max_qp_wr || init->max_recv_wr > caps->max_qp_wr ||
	    init->max_send_sge > caps->max_sge || init->max_recv_sge > caps->max_sge ||
	    init->max_inline > caps->max_inline)
		return -EINVAL;
	return 0;
}

int verbs_qp_create(struct verbs *v, const struct verbs_qp_queues *q, struct hca_qp_init *init, const void *cmd,
		    struct verbs_qp **out)
{
	struct verbs_cq *scq = table_get(&v->cqs, q->send_cq), *rcq = table_get(&v->cqs, q->recv_cq);
	const struct verbs_srq *srq = q->has_srq ? table_get(&v->srqs, q->srq) : NULL;
	int err = scq && rcq && (srq || !q->has_srq) ? qp_check(v, q, init) : -EINVAL;
	struct verbs_qp *qp;

	if (err)
		return err;
	init->send_cqn = scq->cqn;
	init->recv_cqn = rcq->cqn;
	init->srqn = srq ? srq->srqn : 0;
	qp = calloc(1, v->ops->qp_size);
	if (!qp)
		return -ENOMEM;
	qp->verbs = v;
	qp->limits = (struct wqe_limits){ .type = init->type,
					  .max_sge = init->max_send_sge,
					  .max_inline = init->max_inline };
	qp->max_recv_sge = init->max_recv_sge;
	qp->send_cq = scq;
	qp->recv_cq = rcq;
	err = v->ops->qp_init(qp, init, srq, cmd);
	if (!err && table_add(&v->qps, qp, &qp->handle))
		err = -ENOMEM;
	if (err)
		goto free_qp;
	err = is_special(qp) ? verbs_special_create(qp, init) : hca_qp_create(v->ctx, init, v->ops->qp, qp, &qp->qpn);
	if (err)
		goto drop_handle;
	*out = qp;
	return 0;

drop_handle:
	table_remove(&v->qps, qp->handle);
free_qp:
	v->ops->qp_fini(qp);
	free(qp);
	return err;
}

/*
 * Only an iWARP connection moves a QP to RTS; RTR with the attributes of rdma_cm changes nothing for it, as with siw.
 * SQD succeeds for a QP in ERR: the peer has closed first.
 */
static int modify_iwarp(struct verbs *v, const struct verbs_qp *qp, const struct hca_qp_attr *a, u32 mask)
{
	const u32 rtr = HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS;
	struct hca_qp_attr now;

	if (!(mask & HCA_QP_STATE))
		return 1;
	if (a->state == HCA_QPS_RTS || (a->state == HCA_QPS_RTR && mask & ~rtr))
		return -EINVAL;
	if (a->state == HCA_QPS_SQD && !hca_qp_query(v->ctx, qp->qpn, &now) && now.state == HCA_QPS_ERR)
		return 0;
	return 1;
}

int verbs_qp_modify(struct verbs *v, u32 handle, const struct hca_qp_attr *a, u32 mask, struct verbs_qp **out)
{
	struct verbs_qp *qp = *out = table_get(&v->qps, handle);
	int err;

	if (!qp)
		return -EINVAL;
	if (is_special(qp))
		return verbs_special_modify(qp, a, mask);
	err = hca_iw(v->hca) ? modify_iwarp(v, qp, a, mask) : 1;
	return err > 0 ? hca_qp_modify(v->ctx, qp->qpn, a, mask) : err;
}

int verbs_qp_query(struct verbs *v, u32 handle, struct hca_qp_attr *a, struct verbs_qp **out)
{
	struct verbs_qp *qp = *out = table_get(&v->qps, handle);

	if (!qp)
		return -EINVAL;
	if (!is_special(qp))
		return hca_qp_query(v->ctx, qp->qpn, a);
	verbs_special_query(qp, a);
	return 0;
}

int verbs_qp_destroy(struct verbs *v, u32 handle, struct verbs_qp **out)
{
	struct verbs_qp *qp = *out = table_get(&v->qps, handle);

	if (!qp)
		return -ENOENT;
	if (!is_special(qp))
		return hca_qp_destroy(v->ctx, qp->qpn);
	verbs_special_remove(qp);
	return 0;
}

void verbs_qp_free(struct verbs_qp *qp)
{
	table_remove(&qp->verbs->qps, qp->handle);
	qp->verbs->ops->qp_fini(qp);
	free(qp);
}

void verbs_qp_catastrophic(struct verbs_qp *qp)
{
	if (is_special(qp))
		verbs_special_fail(qp);
	else
		hca_qp_catastrophic(qp->verbs->ctx, qp->qpn);
}

int verbs_qp_mcast(struct verbs *v, u32 handle, const u8 *mgid, u16 mlid,
		   int (*fn)(struct hca_ctx *ctx, u32 qpn, const struct wire_gid *mgid, u16 mlid))
{
	const struct verbs_qp *qp = table_get(&v->qps, handle);
	struct wire_gid gid = wire_gid_from_bytes(mgid);

	return qp ? fn(v->ctx, qp->qpn, &gid, mlid) : -EINVAL;
}

u32 verbs_doorbells(struct verbs *v, u32 *rung, u64 *doorbell, u32 words, void (*fn)(struct verbs_qp *qp))
{
	u32 i, n = 0;

	if (!__atomic_load_n(rung, __ATOMIC_RELAXED))
		return 0;
	/* An exchange, not a store: doorbells must not be read before @rung is cleared,
	 * or one rung between the two is lost. */
	__atomic_exchange_n(rung, 0, __ATOMIC_ACQ_REL);
	for (i = 0; i < words; i++) {
		u64 bits = __atomic_load_n(&doorbell[i], __ATOMIC_RELAXED);

		if (!bits)
			continue;
		bits = __atomic_exchange_n(&doorbell[i], 0, __ATOMIC_ACQ_REL);
		for (; bits; bits &= bits - 1) {
			struct verbs_qp *qp = table_get(&v->qps, i * 64 + (u32)__builtin_ctzll(bits));

			if (!qp)
				continue;
			fn(qp);
			n++;
		}
	}
	return n;
}

u32 verbs_poll_recv(struct verbs *v, struct loop *loop, struct loop_timer *t, struct now now)
{
	u32 n = 0;

	if (hca_ctx_wants_recv(v->ctx))
		n = hca_ctx_poll_recv(v->ctx);
	if (verbs_specials_in_error(v))
		n += verbs_specials_poll(v);
	if ((hca_ctx_wants_recv(v->ctx) || verbs_specials_in_error(v)) && !loop_timer_armed(t))
		loop_timer_set(loop, t, now.ns + RECV_POLL_NS);
	return n;
}

void verbs_requests_run(struct loop *loop)
{
	u32 i;

	for (i = 0; i < REQUEST_ROUNDS && loop_run_tasks(loop); i++)
		;
}

/* ---- shared receive queues ---- */

int verbs_srq_create(struct verbs *v, u32 pdn, const struct hca_srq_attr *attr, const void *cmd, struct verbs_srq **out)
{
	struct verbs_srq *srq;
	int err;

	if (attr->max_wr > hca_caps(v->hca)->max_srq_wr || attr->max_sge > HCA_MAX_SGE)
		return -EINVAL;
	srq = calloc(1, v->ops->srq_size);
	if (!srq)
		return -ENOMEM;
	srq->verbs = v;
	srq->max_sge = attr->max_sge;
	err = v->ops->srq_init(srq, attr->max_wr, cmd);
	if (!err)
		err = hca_srq_create(v->ctx, pdn, attr, v->ops->srq, srq, &srq->srqn);
	if (err)
		goto free_srq;
	srq->handle = srq->srqn;
	if (v->ops->xrc ? table_add_at(&v->srqs, srq, srq->handle) : table_add(&v->srqs, srq, &srq->handle)) {
		err = -ENOMEM;
		goto destroy_srq;
	}
	hca_srq_set_level(v->ctx, srq->srqn, v->ops->srq_posted);
	*out = srq;
	return 0;

destroy_srq:
	hca_srq_destroy(v->ctx, srq->srqn);
free_srq:
	v->ops->srq_fini(srq);
	free(srq);
	return err;
}

int verbs_srq_set_limit(struct verbs *v, u32 handle, u32 limit)
{
	const struct verbs_srq *srq = table_get(&v->srqs, handle);

	return srq ? hca_srq_set_limit(v->ctx, srq->srqn, limit) : -EINVAL;
}

int verbs_srq_set_ring(struct verbs_srq *srq, const struct verbs_ring *ring)
{
	const struct verbs *v = srq->verbs;

	return hca_srq_set_max_wr(v->ctx, srq->srqn, min(ring->mask, hca_caps(v->hca)->max_srq_wr));
}

int verbs_srq_query(struct verbs *v, u32 handle, struct hca_srq_attr *attr, struct verbs_srq **out)
{
	struct verbs_srq *srq = *out = table_get(&v->srqs, handle);

	return srq ? hca_srq_query(v->ctx, srq->srqn, attr) : -EINVAL;
}

int verbs_srq_destroy(struct verbs *v, u32 handle, struct verbs_srq **out)
{
	struct verbs_srq *srq = *out = table_get(&v->srqs, handle);

	return srq ? hca_srq_destroy(v->ctx, srq->srqn) : -ENOENT;
}

void verbs_srq_free(struct verbs_srq *srq)
{
	table_remove(&srq->verbs->srqs, srq->handle);
	srq->verbs->ops->srq_fini(srq);
	free(srq);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Queue pairs (IBTA 10.2.4): creation, lookup, doorbells, destruction. */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/hca_internal.h"

#define POLL_MAX 256 /* queue pairs of a context polled per iteration of the loop */

struct hca_qp *hca_qp_lookup(struct hca *hca, u32 qpn)
{
	return table_get(&hca->qps, qpn);
}

u64 hca_qp_owner(struct hca *hca, u32 qpn)
{
	const struct hca_qp *qp = hca_qp_lookup(hca, qpn);

	return qp ? qp->ctx->serial : 0;
}

struct hca_qp *hca_qp_get(struct hca_ctx *ctx, u32 qpn)
{
	struct hca_qp *qp = table_get(&ctx->hca->qps, qpn);

	return qp && qp->ctx == ctx ? qp : NULL;
}

static bool caps_ok(const struct hca_caps *caps, const struct hca_qp_init *init)
{
	return init->max_send_wr <= caps->max_qp_wr && init->max_send_sge <= caps->max_sge &&
	       init->max_inline <= caps->max_inline &&
	       (init->srqn || (init->max_recv_wr <= caps->max_qp_wr && init->max_recv_sge <= caps->max_sge));
}

/* Resolves the objects that @init names; -EINVAL if the context does not own one. */
static int bind_objects(struct hca_ctx *ctx, const struct hca_qp_init *init, struct hca_qp *qp)
{
	bool special = init->type == HCA_QPT_SMI || init->type == HCA_QPT_GSI;

	if (!hca_qp_type_valid(init->type) || (!ctx->internal && !caps_ok(&ctx->hca->caps, init)))
		return -EINVAL;
	if (special && (init->srqn || !hca_port_valid(ctx->hca, init->port)))
		return -EINVAL;
	qp->pd = hca_pd_get(ctx, init->pdn);
	qp->send_cq = hca_cq_get(ctx, init->send_cqn);
	qp->recv_cq = hca_cq_get(ctx, init->recv_cqn);
	qp->srq = init->srqn ? hca_srq_get(ctx, init->srqn) : NULL;
	qp->xrcd = init->xrcdn ? hca_xrcd_get(ctx, init->xrcdn) : NULL;
	if (!qp->pd || !qp->send_cq || !qp->recv_cq || (init->srqn && !qp->srq))
		return -EINVAL;
	if ((init->type == HCA_QPT_XRC_TGT) != !!qp->xrcd || (init->type >= HCA_QPT_XRC_INI && init->srqn))
		return -EINVAL;
	return 0;
}

static void use_objects(struct hca_qp *qp, int by)
{
	qp->pd->users += by;
	qp->send_cq->users += by;
	qp->recv_cq->users += by;
	if (qp->srq)
		qp->srq->users += by;
	qp->ctx->qps += by;
	hca_count_internal(qp->ctx, HCA_OBJECT_QP, by);
}

/* Enters the QP with the number @wanted; 0: with the next free one after that of the last search. */
static int enter(struct hca *hca, struct hca_qp *qp, u32 wanted)
{
	struct table *t = &hca->qps;
	u32 range = t->last - t->first + 1;
	int err;

	do {
		qp->qpn = wanted ? wanted : t->first + hca->qpn_next++ % range;
		err = table_add_at(t, qp, qp->qpn);
	} while (err == -EEXIST && !wanted);
	return err == -EEXIST ? -EBUSY : err;
}

/* On the wire the special QPs are 0 and 1 (3.9.4). */
static u32 source_number(const struct hca_qp *qp, const struct hca_qp_init *init)
{
	if (init->type == HCA_QPT_SMI)
		return 0;
	if (init->type == HCA_QPT_GSI)
		return 1;
	return init->src_qpn ? init->src_qpn : qp->qpn;
}

int hca_qp_create(struct hca_ctx *ctx, const struct hca_qp_init *init, const struct hca_wq_ops *ops, void *fe, u32 *qpn)
{
	struct hca *hca = ctx->hca;
	struct hca_qp_priv *priv = calloc(1, sizeof(*priv));
	struct hca_qp *qp = &priv->qp;
	int err;

	if (!priv)
		return -ENOMEM;
	list_init(&priv->failing);
	list_init(&priv->flushing);
	list_init(&priv->target);
	list_init(&priv->counted);
	list_init(&priv->side[0].waiting);
	list_init(&priv->side[1].waiting);
	qp->hca = hca;
	qp->ctx = ctx;
	qp->ops = ops;
	qp->fe = fe;
	err = bind_objects(ctx, init, qp);
	if (err)
		goto err_free;
	qp->type = init->type;
	qp->sq_sig_all = init->sq_sig_all;
	qp->rx_csum = init->rx_csum;
	qp->max_send_wr = init->max_send_wr;
	qp->max_recv_wr = init->max_recv_wr;
	qp->max_send_sge = init->max_send_sge;
	qp->max_recv_sge = init->max_recv_sge;
	qp->max_inline = init->max_inline;
	qp->attr.port = init->type <= HCA_QPT_GSI ? init->port : 0;
	qp->state = HCA_QPS_RESET;
	list_init(&qp->in_error);
	err = hca_may_create(ctx, HCA_OBJECT_QP, hca->qps.used, hca->caps.max_qp);
	if (err)
		goto err_free;
	err = enter(hca, qp, init->qpn);
	if (err)
		goto err_free;
	qp->src_qpn = source_number(qp, init);
	err = hca->transport ? hca->transport->create(qp) : 0;
	if (err)
		goto err_number;
	use_objects(qp, 1);
	if (qp->xrcd)
		list_add(&qp->xrcd->targets, &priv->target);
	*qpn = qp->qpn;
	return 0;

err_number:
	table_remove(&hca->qps, qp->qpn);
err_free:
	free(priv);
	return err;
}

int hca_qp_set_source(struct hca_ctx *ctx, u32 qpn, u32 src_qpn)
{
	struct hca_qp *qp = hca_qp_get(ctx, qpn);

	if (!qp || qp->type != HCA_QPT_UD || src_qpn > 0xffffff)
		return -EINVAL;
	if (qp->state != HCA_QPS_RESET)
		return -EBUSY;
	qp->src_qpn = src_qpn ? src_qpn : qp->qpn;
	return 0;
}

/* Frees the QPN first: packets that the transport loops back while destroying the QP must not find it. */
void hca_qp_free(struct hca_qp *qp)
{
	struct hca *hca = qp->hca;

	hca_mcast_forget(qp);
	list_del(&hca_qp_priv(qp)->failing);
	list_del(&hca_qp_priv(qp)->flushing);
	hca_mw_unbind_qp(qp);
	list_del(&qp->in_error);
	table_remove(&hca->qps, qp->qpn);
	if (hca->transport)
		hca->transport->destroy(qp);
	hca_page_faults_forget(qp);
	list_del(&qp->in_error);
	list_del(&hca_qp_priv(qp)->flushing);
	list_del(&hca_qp_priv(qp)->target);
	list_del(&hca_qp_priv(qp)->counted);
	if (qp->xrcd)
		qp->srq = NULL; /* an XRC target has no SRQ of its own */
	use_objects(qp, -1);
	free(hca_qp_priv(qp));
}

int hca_qp_destroy(struct hca_ctx *ctx, u32 qpn)
{
	struct hca_qp *qp = hca_qp_get(ctx, qpn);

	if (!qp)
		return -ENOENT;
	if (hca_qp_priv(qp)->mcast_groups)
		return -EBUSY;
	hca_qp_free(qp);
	return 0;
}

void hca_qp_doorbell(struct hca_ctx *ctx, u32 qpn)
{
	struct hca_qp *qp = hca_qp_get(ctx, qpn);

	if (unlikely(!qp))
		return;
	if (unlikely(qp->state == HCA_QPS_ERR || qp->state == HCA_QPS_SQE))
		hca_qp_flush(qp);
	else if (unlikely(qp->state < HCA_QPS_RTS && qp->ops->refused))
		qp->ops->refused(qp->fe);
	else if (likely(qp->hca->transport && qp->state >= HCA_QPS_RTS))
		qp->hca->transport->doorbell(qp);
}

void hca_qp_recv_doorbell(struct hca_ctx *ctx, u32 qpn)
{
	struct hca_qp *qp = hca_qp_get(ctx, qpn);

	if (qp && unlikely(qp->state == HCA_QPS_ERR))
		hca_qp_flush(qp);
}

bool hca_ctx_wants_recv(const struct hca_ctx *ctx)
{
	return !list_empty(&ctx->in_error);
}

u32 hca_ctx_poll_recv(struct hca_ctx *ctx)
{
	struct list todo;
	u32 found = 0, n;

	if (list_empty(&ctx->in_error))
		return 0;
	list_init(&todo);
	list_splice(&todo, &ctx->in_error);
	for (n = 0; !list_empty(&todo); n++) {
		struct hca_qp *qp = list_first(&todo, struct hca_qp, in_error);

		if (n == POLL_MAX) { /* the remaining ones are first in the next call */
			list_splice(&todo, &ctx->in_error);
			list_splice(&ctx->in_error, &todo);
			break;
		}
		list_del(&qp->in_error);
		list_add(&ctx->in_error, &qp->in_error);
		found += hca_qp_flush(qp);
	}
	return found;
}

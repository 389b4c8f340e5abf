// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* uverbs commands on queue pairs. */
#include <errno.h>
#include <stdlib.h>

#include "emu/host/attr.h"
#include "emu/host/command.h"

int uv_qp_init(struct verbs_qp *base, const struct hca_qp_init *init, bool srq, const void *arg)
{
	struct uv_qp *qp = container_of(base, struct uv_qp, qp);
	struct uverbs *u = uv_of(base->verbs);
	u32 room = max(init->max_inline, init->max_send_sge * (u32)sizeof(struct rxe_sge));
	int err = uv_ring_create(u, &qp->sq, (u32)sizeof(struct rxe_send_wqe) + room, init->max_send_wr);

	qp->user_handle = ((const struct ib_uverbs_ex_create_qp *)arg)->user_handle;
	qp->sq_sig_all = init->sq_sig_all;
	if (!err && !srq)
		err = uv_ring_create(u, &qp->rq,
				     (u32)(sizeof(struct rxe_recv_wqe) + init->max_recv_sge * sizeof(struct rxe_sge)),
				     init->max_recv_wr);
	return err;
}

void uv_qp_fini(struct verbs_qp *base)
{
	struct uv_qp *qp = container_of(base, struct uv_qp, qp);

	uv_ring_destroy(uv_of(base->verbs), &qp->sq);
	uv_ring_destroy(uv_of(base->verbs), &qp->rq);
	free(qp->rejected);
}

static int qp_create(struct uv_call *c, const struct ib_uverbs_ex_create_qp *cmd, struct ib_uverbs_create_qp_resp *resp,
		     struct rxe_create_qp_resp *rxe)
{
	struct verbs_qp_queues queues = { cmd->send_cq_handle, cmd->recv_cq_handle, cmd->srq_handle, cmd->is_srq };
	u32 sges = cmd->max_send_sge * (u32)sizeof(struct rxe_sge); /* inline data may take their place */
	u32 max_inline = max(cmd->max_inline_data, min((u32)HCA_MAX_INLINE, sges));
	struct hca_qp_init init = {
		.type = cmd->qp_type,
		.pdn = cmd->pd_handle,
		.max_send_wr = cmd->max_send_wr,
		.max_recv_wr = cmd->max_recv_wr,
		.max_send_sge = cmd->max_send_sge,
		.max_recv_sge = cmd->max_recv_sge,
		.max_inline = max_inline,
		.sq_sig_all = cmd->sq_sig_all,
		.port = 1,
	};
	struct verbs_qp *base;
	struct uv_qp *qp;
	int err = verbs_qp_create(&c->u->verbs, &queues, &init, cmd, &base);

	if (err)
		return err;
	qp = container_of(base, struct uv_qp, qp);
	uv_qp_ready(qp, false);
	*resp = (struct ib_uverbs_create_qp_resp){
		.qp_handle = base->handle,
		.qpn = base->qpn,
		.max_send_wr = qp->sq.ring.mask,
		.max_recv_wr = qp->rq.ring.mask,
		.max_send_sge = init.max_send_sge,
		.max_recv_sge = init.max_recv_sge,
		.max_inline_data = init.max_inline,
	};
	rxe->sq_mi = uv_ring_info(&qp->sq);
	if (qp->rq.size)
		rxe->rq_mi = uv_ring_info(&qp->rq);
	return 0;
}

int uv_create_qp(struct uv_call *c)
{
	struct ib_uverbs_create_qp cmd;
	struct ib_uverbs_ex_create_qp ex = { 0 };
	struct ib_uverbs_create_qp_resp resp;
	struct rxe_create_qp_resp rxe = { 0 };
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	/* The extended command begins with the same members. */
	memcpy(&ex, &cmd.user_handle, sizeof(cmd) - offsetof(struct ib_uverbs_create_qp, user_handle));
	err = qp_create(c, &ex, &resp, &rxe);
	if (err)
		return err;
	uv_call_out(c, &resp, sizeof(resp));
	uv_call_out_driver(c, sizeof(resp), &rxe, sizeof(rxe));
	return 0;
}

int uv_ex_create_qp(struct uv_call *c)
{
	struct ib_uverbs_ex_create_qp cmd;
	struct ib_uverbs_ex_create_qp_resp resp = { 0 };
	struct rxe_create_qp_resp rxe = { 0 };
	int err;

	uv_call_in_some(c, &cmd, sizeof(cmd));
	if (cmd.create_flags || cmd.comp_mask)
		return -EOPNOTSUPP;
	err = qp_create(c, &cmd, &resp.base, &rxe);
	if (err)
		return err;
	resp.response_length = sizeof(resp);
	uv_call_out(c, &resp, sizeof(resp));
	uv_call_out_driver(c, sizeof(resp.base), &rxe, sizeof(rxe));
	return 0;
}

static int qp_modify(struct uv_call *c, const struct ib_uverbs_modify_qp *cmd)
{
	struct hca_qp_attr a;
	struct verbs_qp *qp;
	int err;

	uv_attr_in(&a, cmd);
	if (cmd->attr_mask & HCA_QP_STATE && verbs_state_ends(a.state) && uv_call_defer(c))
		return 0;
	err = verbs_qp_modify(&c->u->verbs, cmd->qp_handle, &a, cmd->attr_mask, &qp);
	if (err || !(cmd->attr_mask & HCA_QP_STATE))
		return err;
	uv_qp_ready(container_of(qp, struct uv_qp, qp), a.state >= HCA_QPS_RTS);
	if (a.state == HCA_QPS_RESET)
		c->u->file->deferral.until = hca_ctx_writes(c->u->verbs.ctx, 0);
	return 0;
}

int uv_modify_qp(struct uv_call *c)
{
	struct ib_uverbs_modify_qp cmd;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	return err ? err : qp_modify(c, &cmd);
}

int uv_ex_modify_qp(struct uv_call *c)
{
	struct ib_uverbs_ex_modify_qp cmd;

	uv_call_in_some(c, &cmd, sizeof(cmd));
	return qp_modify(c, &cmd.base);
}

int uv_query_qp(struct uv_call *c)
{
	struct ib_uverbs_query_qp cmd;
	struct ib_uverbs_query_qp_resp resp = { 0 };
	const struct uv_qp *qp;
	struct verbs_qp *base;
	struct hca_qp_attr a;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (!err)
		err = verbs_qp_query(&c->u->verbs, cmd.qp_handle, &a, &base);
	if (err)
		return err;
	uv_attr_out(&resp, &a);
	qp = container_of(base, struct uv_qp, qp);
	resp.max_send_wr = qp->sq.ring.mask;
	resp.max_recv_wr = qp->rq.ring.mask;
	resp.max_send_sge = base->limits.max_sge;
	resp.max_recv_sge = base->max_recv_sge;
	resp.max_inline_data = base->limits.max_inline;
	resp.sq_sig_all = qp->sq_sig_all;
	uv_call_out(c, &resp, sizeof(resp));
	return 0;
}

int uv_destroy_qp(struct uv_call *c)
{
	struct ib_uverbs_destroy_qp cmd;
	struct ib_uverbs_destroy_qp_resp resp = { 0 };
	struct verbs_qp *base;
	struct uv_qp *qp;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	if (uv_call_defer(c))
		return 0;
	err = verbs_qp_destroy(&c->u->verbs, cmd.qp_handle, &base);
	if (err)
		return err;
	qp = container_of(base, struct uv_qp, qp);
	c->u->file->deferral.until = hca_ctx_writes(c->u->verbs.ctx, 0);
	resp.events_reported = qp->async_events - uv_events_forget(&c->u->async, qp, qp->user_handle,
								   sizeof(struct ib_uverbs_async_event_desc));
	uv_call_out(c, &resp, sizeof(resp));
	uv_qp_ready(qp, false);
	verbs_qp_free(base);
	return 0;
}

/* A doorbell as a command; the shim uses shared memory instead, except before RTS, where the post is refused. */
int uv_post_send(struct uv_call *c)
{
	struct ib_uverbs_post_send cmd;
	struct verbs_qp *qp;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	qp = table_get(&c->u->verbs.qps, cmd.qp_handle);
	if (!qp || cmd.wr_count || cmd.sge_count)
		return -EINVAL;
	if (!(c->u->shared->ready[qp->handle / 64] & 1ull << qp->handle % 64)) {
		hca_qp_doorbell(c->u->verbs.ctx, qp->qpn);
		return -EINVAL;
	}
	if (c->u->check_posts) {
		struct uv_qp *uq = container_of(qp, struct uv_qp, qp);

		err = hca_qp_post(c->u->verbs.ctx, qp->qpn, uv_sq_posted_opcodes(uq));
		uv_sq_post_result(uq, !err);
	}
	hca_qp_doorbell(c->u->verbs.ctx, qp->qpn);
	return err;
}

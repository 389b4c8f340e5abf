// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Commands on queue pairs. */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/iw.h"
#include "emu/uverbs/command.h"

static int init_of(struct uv_call *c, const struct ib_uverbs_ex_create_qp *cmd, struct hca_qp_init *init)
{
	const struct uv_cq *scq = table_get(&c->u->cqs, cmd->send_cq_handle);
	const struct uv_cq *rcq = table_get(&c->u->cqs, cmd->recv_cq_handle);
	const struct uv_srq *srq = cmd->is_srq ? table_get(&c->u->srqs, cmd->srq_handle) : NULL;

	if (!scq || !rcq || (cmd->is_srq && !srq))
		return -EINVAL;
	if (cmd->qp_type != HCA_QPT_RC && cmd->qp_type != HCA_QPT_UC && cmd->qp_type != HCA_QPT_UD)
		return -EOPNOTSUPP; /* QP0 and QP1 are the daemon's */
	*init = (struct hca_qp_init){
		.type = cmd->qp_type,
		.pdn = cmd->pd_handle,
		.send_cqn = scq->cqn,
		.recv_cqn = rcq->cqn,
		.srqn = srq ? srq->srqn : 0,
		.max_send_wr = cmd->max_send_wr,
		.max_recv_wr = srq ? 0 : cmd->max_recv_wr,
		.max_send_sge = cmd->max_send_sge,
		.max_recv_sge = srq ? 0 : cmd->max_recv_sge,
		.max_inline = cmd->max_inline_data,
		.sq_sig_all = cmd->sq_sig_all,
		.port = 1,
	};
	return 0;
}

/* Inline data may take the place of all SGEs. */
static u32 inline_room(const struct hca_qp_init *init)
{
	return max(init->max_inline, min((u32)HCA_MAX_INLINE, init->max_send_sge * (u32)sizeof(struct rxe_sge)));
}

static int rings_of(struct uverbs *u, struct uv_qp *qp, const struct hca_qp_init *init, bool srq)
{
	u32 room = max(init->max_inline, init->max_send_sge * (u32)sizeof(struct rxe_sge));
	int err = uv_ring_create(u, &qp->sq, (u32)sizeof(struct rxe_send_wqe) + room, init->max_send_wr);

	if (!err && !srq)
		err = uv_ring_create(u, &qp->rq,
				     (u32)(sizeof(struct rxe_recv_wqe) + init->max_recv_sge * sizeof(struct rxe_sge)),
				     init->max_recv_wr);
	return err;
}

static void qp_free(struct uverbs *u, struct uv_qp *qp)
{
	uv_ring_destroy(u, &qp->sq);
	uv_ring_destroy(u, &qp->rq);
	free(qp->refused);
	free(qp);
}

static int qp_create(struct uv_call *c, const struct ib_uverbs_ex_create_qp *cmd, struct ib_uverbs_create_qp_resp *resp,
		     struct rxe_create_qp_resp *rxe)
{
	const struct hca_caps *caps = hca_caps(c->u->file->host->hca);
	struct hca_qp_init init;
	struct uv_qp *qp;
	int err = init_of(c, cmd, &init);

	if (err)
		return err;
	if (init.max_send_wr > caps->max_qp_wr || init.max_recv_wr > caps->max_qp_wr ||
	    init.max_send_sge > caps->max_sge || init.max_recv_sge > caps->max_sge ||
	    init.max_inline > caps->max_inline)
		return -EINVAL;
	init.max_inline = inline_room(&init);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->u = c->u;
	qp->user_handle = cmd->user_handle;
	qp->max_recv_sge = init.max_recv_sge;
	qp->limits =
		(struct wqe_limits){ .type = init.type, .max_sge = init.max_send_sge, .max_inline = init.max_inline };
	err = rings_of(c->u, qp, &init, cmd->is_srq);
	if (!err)
		err = table_add(&c->u->qps, qp, &qp->handle) ? -ENOMEM : 0;
	if (err)
		goto free_qp;
	err = hca_qp_create(c->u->ctx, &init, &uv_qp_wq_ops, qp, &qp->qpn);
	if (err)
		goto drop_handle;
	uv_qp_ready(qp, false);
	*resp = (struct ib_uverbs_create_qp_resp){
		.qp_handle = qp->handle,
		.qpn = qp->qpn,
		.max_send_wr = init.max_send_wr,
		.max_recv_wr = init.max_recv_wr,
		.max_send_sge = init.max_send_sge,
		.max_recv_sge = init.max_recv_sge,
		.max_inline_data = init.max_inline,
	};
	rxe->sq_mi = uv_ring_info(&qp->sq);
	if (qp->rq.buf)
		rxe->rq_mi = uv_ring_info(&qp->rq);
	return 0;

drop_handle:
	table_remove(&c->u->qps, qp->handle);
free_qp:
	qp_free(c->u, qp);
	return err;
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
	return uv_call_out_driver(c, sizeof(resp), &rxe, sizeof(rxe));
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
	return uv_call_out_driver(c, sizeof(resp.base), &rxe, sizeof(rxe));
}

static void dest_in(struct hca_av *av, const struct ib_uverbs_qp_dest *d)
{
	*av = (struct hca_av){
		.dlid = d->dlid,
		.sl = d->sl,
		.src_path_bits = d->src_path_bits,
		.static_rate = d->static_rate,
		.port = d->port_num,
		.grh = d->is_global,
		.sgid_index = d->sgid_index,
		.hop_limit = d->hop_limit,
		.traffic_class = d->traffic_class,
		.flow_label = d->flow_label,
		.dgid = wire_gid_from_bytes(d->dgid),
	};
}

static void dest_out(struct ib_uverbs_qp_dest *d, const struct hca_av *av)
{
	*d = (struct ib_uverbs_qp_dest){
		.flow_label = av->flow_label,
		.dlid = av->dlid,
		.sgid_index = av->sgid_index,
		.hop_limit = av->hop_limit,
		.traffic_class = av->traffic_class,
		.sl = av->sl,
		.src_path_bits = av->src_path_bits,
		.static_rate = av->static_rate,
		.is_global = av->grh,
		.port_num = av->port,
	};
	memcpy(d->dgid, av->dgid.raw, sizeof(d->dgid));
}

/* An iWARP connection that both sides close: the later one has nothing to do. */
static bool is_over(const struct uv_call *c, const struct uv_qp *qp)
{
	struct hca_qp_attr a;

	return !hca_qp_query(c->u->ctx, qp->qpn, &a) && a.state == HCA_QPS_ERR;
}

static int qp_modify(struct uv_call *c, const struct ib_uverbs_modify_qp *cmd)
{
	struct uv_qp *qp = table_get(&c->u->qps, cmd->qp_handle);
	struct hca_qp_attr a = {
		.state = cmd->qp_state,
		.cur_state = cmd->cur_qp_state,
		.path_mtu = cmd->path_mtu,
		.path_mig_state = cmd->path_mig_state,
		.qkey = cmd->qkey,
		.rq_psn = cmd->rq_psn,
		.sq_psn = cmd->sq_psn,
		.dest_qpn = cmd->dest_qp_num,
		.access = cmd->qp_access_flags,
		.pkey_index = cmd->pkey_index,
		.alt_pkey_index = cmd->alt_pkey_index,
		.en_sqd_async_notify = cmd->en_sqd_async_notify,
		.max_rd_atomic = cmd->max_rd_atomic,
		.max_dest_rd_atomic = cmd->max_dest_rd_atomic,
		.min_rnr_timer = cmd->min_rnr_timer,
		.port = cmd->port_num,
		.timeout = cmd->timeout,
		.retry_cnt = cmd->retry_cnt,
		.rnr_retry = cmd->rnr_retry,
		.alt_port = cmd->alt_port_num,
		.alt_timeout = cmd->alt_timeout,
	};
	int err;

	if (!qp)
		return -EINVAL;
	if (hca_iw(c->u->file->host->hca) && cmd->attr_mask & HCA_QP_STATE) {
		if (cmd->qp_state == HCA_QPS_RTR || cmd->qp_state == HCA_QPS_RTS)
			return -EINVAL; /* by a connection only */
		if (cmd->qp_state == HCA_QPS_SQD && is_over(c, qp))
			return 0;
	}
	dest_in(&a.av, &cmd->dest);
	dest_in(&a.alt_av, &cmd->alt_dest);
	err = hca_qp_modify(c->u->ctx, qp->qpn, &a, cmd->attr_mask);
	if (!err && cmd->attr_mask & HCA_QP_STATE)
		uv_qp_ready(qp, cmd->qp_state >= HCA_QPS_RTS);
	return err;
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
	struct hca_qp_attr a;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	qp = table_get(&c->u->qps, cmd.qp_handle);
	err = qp ? hca_qp_query(c->u->ctx, qp->qpn, &a) : -EINVAL;
	if (err)
		return err;
	dest_out(&resp.dest, &a.av);
	dest_out(&resp.alt_dest, &a.alt_av);
	resp.max_send_wr = qp->sq.mask;
	resp.max_recv_wr = qp->rq.mask;
	resp.max_send_sge = qp->limits.max_sge;
	resp.max_recv_sge = qp->max_recv_sge;
	resp.max_inline_data = qp->limits.max_inline;
	resp.qkey = a.qkey;
	resp.rq_psn = a.rq_psn;
	resp.sq_psn = a.sq_psn;
	resp.dest_qp_num = a.dest_qpn;
	resp.qp_access_flags = a.access;
	resp.pkey_index = a.pkey_index;
	resp.alt_pkey_index = a.alt_pkey_index;
	resp.qp_state = a.state;
	resp.cur_qp_state = a.cur_state;
	resp.path_mtu = a.path_mtu;
	resp.path_mig_state = a.path_mig_state;
	resp.sq_draining = a.sq_draining;
	resp.max_rd_atomic = a.max_rd_atomic;
	resp.max_dest_rd_atomic = a.max_dest_rd_atomic;
	resp.min_rnr_timer = a.min_rnr_timer;
	resp.port_num = a.port;
	resp.timeout = a.timeout;
	resp.retry_cnt = a.retry_cnt;
	resp.rnr_retry = a.rnr_retry;
	resp.alt_port_num = a.alt_port;
	resp.alt_timeout = a.alt_timeout;
	uv_call_out(c, &resp, sizeof(resp));
	return 0;
}

int uv_destroy_qp(struct uv_call *c)
{
	struct ib_uverbs_destroy_qp cmd;
	struct ib_uverbs_destroy_qp_resp resp = { 0 };
	struct uv_qp *qp;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	qp = table_get(&c->u->qps, cmd.qp_handle);
	if (!qp)
		return -EINVAL;
	err = hca_qp_destroy(c->u->ctx, qp->qpn);
	if (err)
		return err;
	resp.events_reported = qp->async_events - uv_events_forget(&c->u->async, qp->user_handle,
								   sizeof(struct ib_uverbs_async_event_desc));
	uv_call_out(c, &resp, sizeof(resp));
	uv_qp_ready(qp, false);
	table_remove(&c->u->qps, qp->handle);
	qp_free(c->u, qp);
	return 0;
}

/* A doorbell by command; the shim's are in shared memory. */
int uv_post_send(struct uv_call *c)
{
	struct ib_uverbs_post_send cmd;
	struct uv_qp *qp;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	qp = table_get(&c->u->qps, cmd.qp_handle);
	if (!qp || cmd.wr_count || cmd.sge_count || !(c->u->shared->ready[qp->handle / 64] & 1ull << qp->handle % 64))
		return -EINVAL;
	if (c->u->ask) {
		err = hca_qp_post(c->u->ctx, qp->qpn);
		uv_sq_judge(qp, !err);
	}
	hca_qp_doorbell(c->u->ctx, qp->qpn);
	return err;
}

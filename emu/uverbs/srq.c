// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Commands on shared receive queues. */
#include <errno.h>
#include <stdlib.h>

#include "emu/uverbs/command.h"

#define SRQ_MAX_WR (1 << 0)
#define SRQ_LIMIT  (1 << 1)

static int ring_of(struct uverbs *u, struct uv_ring *r, u32 max_wr, u32 max_sge)
{
	return uv_ring_create(u, r, (u32)(sizeof(struct rxe_recv_wqe) + max_sge * sizeof(struct rxe_sge)), max_wr);
}

static int srq_create(struct uv_call *c, const struct ib_uverbs_create_srq *cmd)
{
	struct ib_uverbs_create_srq_resp resp = { 0 };
	struct rxe_create_srq_resp rxe = { 0 };
	struct hca_srq_attr attr = { .max_wr = cmd->max_wr, .max_sge = cmd->max_sge, .limit = cmd->srq_limit };
	struct uv_srq *srq;
	int err;

	if (cmd->max_wr > hca_caps(c->u->file->host->hca)->max_srq_wr || cmd->max_sge > HCA_MAX_SGE)
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->u = c->u;
	srq->user_handle = cmd->user_handle;
	srq->max_sge = cmd->max_sge;
	err = ring_of(c->u, &srq->ring, cmd->max_wr, cmd->max_sge);
	if (!err)
		err = table_add(&c->u->srqs, srq, &srq->handle) ? -ENOMEM : 0;
	if (err)
		goto free_srq;
	err = hca_srq_create(c->u->ctx, cmd->pd_handle, &attr, &uv_srq_wq_ops, srq, &srq->srqn);
	if (err)
		goto drop_handle;
	hca_srq_set_level(c->u->ctx, srq->srqn, uv_srq_posted);
	resp = (struct ib_uverbs_create_srq_resp){ srq->handle, cmd->max_wr, cmd->max_sge, srq->srqn };
	rxe.mi = uv_ring_info(&srq->ring);
	rxe.srq_num = srq->srqn;
	uv_call_out(c, &resp, sizeof(resp));
	return uv_call_out_driver(c, sizeof(resp), &rxe, sizeof(rxe));

drop_handle:
	table_remove(&c->u->srqs, srq->handle);
free_srq:
	uv_ring_destroy(c->u, &srq->ring);
	free(srq);
	return err;
}

int uv_create_srq(struct uv_call *c)
{
	struct ib_uverbs_create_srq cmd;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	return err ? err : srq_create(c, &cmd);
}

/* The later form, of which the basic type says no more than the older form. */
int uv_create_xsrq(struct uv_call *c)
{
	struct ib_uverbs_create_xsrq cmd;
	struct ib_uverbs_create_srq basic;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	if (cmd.srq_type)
		return -EOPNOTSUPP; /* XRC, tag matching */
	basic = (struct ib_uverbs_create_srq){
		.user_handle = cmd.user_handle,
		.pd_handle = cmd.pd_handle,
		.max_wr = cmd.max_wr,
		.max_sge = cmd.max_sge,
		.srq_limit = cmd.srq_limit,
	};
	return srq_create(c, &basic);
}

/* The application learns of the new ring by a structure in its memory whose address the provider's part names. */
static int srq_resize(struct uv_call *c, struct uv_srq *srq, u32 max_wr)
{
	struct rxe_modify_srq_cmd rxe;
	struct uv_ring ring;
	struct mminfo info;
	struct hca_dma_seg seg;
	int err;

	if (c->in_len < sizeof(struct ib_uverbs_modify_srq) + sizeof(rxe))
		return -EINVAL;
	memcpy(&rxe, c->in + sizeof(struct ib_uverbs_modify_srq), sizeof(rxe));
	if (!max_wr || max_wr > hca_caps(c->u->file->host->hca)->max_srq_wr || max_wr < uv_srq_posted(srq))
		return -EINVAL;
	err = ring_of(c->u, &ring, max_wr, srq->max_sge);
	if (err)
		return err;
	info = uv_ring_info(&ring);
	seg = (struct hca_dma_seg){ .addr = rxe.mmap_info_addr, .len = sizeof(info), .local = &info };
	err = uv_process_dma.write(&c->u->file->process, &seg, 1);
	if (err) {
		uv_ring_destroy(c->u, &ring);
		return err;
	}
	uv_ring_move(&ring, &srq->ring);
	uv_ring_destroy(c->u, &srq->ring);
	srq->ring = ring;
	return 0;
}

int uv_modify_srq(struct uv_call *c)
{
	struct ib_uverbs_modify_srq cmd;
	struct uv_srq *srq;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	srq = table_get(&c->u->srqs, cmd.srq_handle);
	if (!srq)
		return -EINVAL;
	if (cmd.attr_mask & SRQ_MAX_WR)
		err = srq_resize(c, srq, cmd.max_wr);
	if (!err && cmd.attr_mask & SRQ_LIMIT)
		err = hca_srq_set_limit(c->u->ctx, srq->srqn, cmd.srq_limit);
	return err;
}

int uv_query_srq(struct uv_call *c)
{
	struct ib_uverbs_query_srq cmd;
	struct ib_uverbs_query_srq_resp resp = { 0 };
	const struct uv_srq *srq;
	struct hca_srq_attr attr;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	srq = table_get(&c->u->srqs, cmd.srq_handle);
	err = srq ? hca_srq_query(c->u->ctx, srq->srqn, &attr) : -EINVAL;
	if (err)
		return err;
	resp.max_wr = srq->ring.mask;
	resp.max_sge = attr.max_sge;
	resp.srq_limit = attr.limit;
	uv_call_out(c, &resp, sizeof(resp));
	return 0;
}

int uv_destroy_srq(struct uv_call *c)
{
	struct ib_uverbs_destroy_srq cmd;
	struct ib_uverbs_destroy_srq_resp resp = { 0 };
	struct uv_srq *srq;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	srq = table_get(&c->u->srqs, cmd.srq_handle);
	if (!srq)
		return -EINVAL;
	err = hca_srq_destroy(c->u->ctx, srq->srqn);
	if (err)
		return err;
	resp.events_reported = srq->async_events - uv_events_forget(&c->u->async, srq->user_handle,
								    sizeof(struct ib_uverbs_async_event_desc));
	uv_call_out(c, &resp, sizeof(resp));
	table_remove(&c->u->srqs, srq->handle);
	uv_ring_destroy(c->u, &srq->ring);
	free(srq);
	return 0;
}

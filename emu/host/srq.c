// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* uverbs commands on shared receive queues. */
#include <errno.h>

#include "emu/host/command.h"

#define SRQ_MAX_WR (1 << 0)
#define SRQ_LIMIT  (1 << 1)

static int ring_of(struct uverbs *u, struct uv_ring *r, u32 max_wr, u32 max_sge)
{
	return uv_ring_create(u, r, (u32)(sizeof(struct rxe_recv_wqe) + max_sge * sizeof(struct rxe_sge)), max_wr);
}

int uv_srq_init(struct verbs_srq *base, u32 max_wr, const void *arg)
{
	struct uv_srq *srq = container_of(base, struct uv_srq, srq);

	srq->user_handle = ((const struct ib_uverbs_create_srq *)arg)->user_handle;
	return ring_of(uv_of(base->verbs), &srq->ring, max_wr, base->max_sge);
}

void uv_srq_fini(struct verbs_srq *base)
{
	uv_ring_destroy(uv_of(base->verbs), &container_of(base, struct uv_srq, srq)->ring);
}

static int srq_create(struct uv_call *c, const struct ib_uverbs_create_srq *cmd)
{
	struct ib_uverbs_create_srq_resp resp;
	struct rxe_create_srq_resp rxe = { 0 };
	struct hca_srq_attr attr = { .max_wr = cmd->max_wr, .max_sge = cmd->max_sge, .limit = cmd->srq_limit };
	struct verbs_srq *srq;
	int err = verbs_srq_create(&c->u->verbs, cmd->pd_handle, &attr, cmd, &srq);

	if (err)
		return err;
	verbs_srq_set_ring(srq, &container_of(srq, struct uv_srq, srq)->ring.ring);
	verbs_srq_query(srq->verbs, srq->handle, &attr, &srq);
	resp = (struct ib_uverbs_create_srq_resp){ srq->handle, attr.max_wr, cmd->max_sge, srq->srqn };
	rxe.mi = uv_ring_info(&container_of(srq, struct uv_srq, srq)->ring);
	rxe.srq_num = srq->srqn;
	uv_call_out(c, &resp, sizeof(resp));
	uv_call_out_driver(c, sizeof(resp), &rxe, sizeof(rxe));
	return 0;
}

int uv_create_srq(struct uv_call *c)
{
	struct ib_uverbs_create_srq cmd;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	return err ? err : srq_create(c, &cmd);
}

/* The extended form; for the basic type it has the same fields as the older form. */
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

/* The new ring is returned in a structure of the application, at the address in the provider's part. */
static int srq_resize(struct uv_call *c, struct uv_srq *srq, u32 max_wr)
{
	struct rxe_modify_srq_cmd rxe;
	struct uv_ring ring;
	struct mminfo info;
	struct uv_file *f = c->u->file;
	int err;

	if (c->in_len < sizeof(struct ib_uverbs_modify_srq) + sizeof(rxe))
		return -EINVAL;
	memcpy(&rxe, c->in + sizeof(struct ib_uverbs_modify_srq), sizeof(rxe));
	if (!max_wr || max_wr > hca_caps(c->u->file->host->hca)->max_srq_wr || max_wr < uv_srq_posted(srq))
		return -EINVAL;
	err = ring_of(c->u, &ring, max_wr, srq->srq.max_sge);
	if (err)
		return err;
	err = uv_ring_charge(c->u, &ring, max_wr) ?: verbs_srq_set_ring(&srq->srq, &ring.ring);
	if (err)
		goto destroy_ring;
	info = uv_ring_info(&ring);
	err = hca_ctx_write(c->u->verbs.ctx, f->process, rxe.mmap_info_addr, &info, sizeof(info));
	if (err == -EINPROGRESS) {
		f->deferral.until = hca_ctx_moves(c->u->verbs.ctx);
		err = 0;
	}
	if (err)
		goto restore;
	verbs_ring_move_posted(&ring.ring, &srq->ring.ring);
	uv_ring_destroy(c->u, &srq->ring);
	srq->ring = ring;
	return 0;

restore:
	verbs_srq_set_ring(&srq->srq, &srq->ring.ring);
destroy_ring:
	uv_ring_destroy(c->u, &ring);
	return err;
}

int uv_modify_srq(struct uv_call *c)
{
	struct ib_uverbs_modify_srq cmd;
	struct uv_srq *srq;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	srq = table_get(&c->u->verbs.srqs, cmd.srq_handle);
	if (!srq)
		return -EINVAL;
	/* Checked first: the program maps the new ring only if the whole command succeeds. */
	if (cmd.attr_mask & SRQ_MAX_WR && cmd.attr_mask & SRQ_LIMIT && cmd.srq_limit > cmd.max_wr)
		return -EINVAL;
	if (cmd.attr_mask & SRQ_MAX_WR)
		err = srq_resize(c, srq, cmd.max_wr);
	if (!err && cmd.attr_mask & SRQ_LIMIT)
		err = verbs_srq_set_limit(&c->u->verbs, cmd.srq_handle, cmd.srq_limit);
	return err;
}

int uv_query_srq(struct uv_call *c)
{
	struct ib_uverbs_query_srq cmd;
	struct ib_uverbs_query_srq_resp resp = { 0 };
	struct hca_srq_attr attr;
	struct verbs_srq *srq;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (!err)
		err = verbs_srq_query(&c->u->verbs, cmd.srq_handle, &attr, &srq);
	if (err)
		return err;
	resp.max_wr = attr.max_wr;
	resp.max_sge = attr.max_sge;
	resp.srq_limit = attr.limit;
	uv_call_out(c, &resp, sizeof(resp));
	return 0;
}

int uv_destroy_srq(struct uv_call *c)
{
	struct ib_uverbs_destroy_srq cmd;
	struct ib_uverbs_destroy_srq_resp resp = { 0 };
	struct verbs_srq *base;
	struct uv_srq *srq;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (!err)
		err = verbs_srq_destroy(&c->u->verbs, cmd.srq_handle, &base);
	if (err)
		return err;
	srq = container_of(base, struct uv_srq, srq);
	resp.events_reported = srq->async_events - uv_events_forget(&c->u->async, srq, srq->user_handle,
								    sizeof(struct ib_uverbs_async_event_desc));
	uv_call_out(c, &resp, sizeof(resp));
	verbs_srq_free(base);
	return 0;
}

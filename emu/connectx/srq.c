// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Shared receive queues: linked entries in a buffer; each has the index of the next one. A driver creates them by
 * CREATE_SRQ (interface step sequence 0), or by CREATE_RMP (receive memory pool) and, those of XRC, CREATE_XRC_SRQ
 * (interface step sequence 1). Contexts of the three are kept in the format of the first one, which is that of the
 * third one but for the user index.
 */
#include <errno.h>

#include "emu/connectx/connectx_internal.h"

#define ARM_SRQ          1 /* modifier of ARM_RQ, and of ARM_XRC_SRQ */
#define WQ_LINKED        0
#define LOG_ENTRY_LEAST  5 /* a link and an SGE */
#define LOG_ENTRY_MOST   11
#define LOG_ENTRIES_MOST 15
enum rmp_state {
	RMP_READY = 1,
	RMP_ERROR = 3,
};

struct srq_command {
	const struct cx_cmd *c;
	enum cx_srq_kind kind;
	const u8 *ctx;
};

/* NULL: there is none, or it is of another kind. */
static struct cx_srq *srq_get(const struct connectx *d, u32 srqn, enum cx_srq_kind kind)
{
	struct verbs_srq *base = table_get(&d->verbs.srqs, srqn);
	struct cx_srq *srq = base ? container_of(base, struct cx_srq, srq) : NULL;

	return srq && srq->kind == kind ? srq : NULL;
}

static int srq_next(void *fe, struct hca_recv_wr *wr)
{
	struct cx_srq *srq = fe;
	int got = cx_rq_take(cx_of(srq->srq.verbs), &srq->rq, &srq->buf, &srq->record, srq->srq.max_sge, wr);

	if (got == -EFAULT)
		hca_srq_catastrophic(srq->srq.verbs->ctx, srq->srq.srqn);
	return got == -EFAULT || got == -EAGAIN ? 0 : got;
}

/* Whether the limit is reached is unknown without the record. */
u32 cx_srq_posted(void *fe)
{
	struct cx_srq *srq = fe;
	u32 posted;
	int err = cx_record_read(cx_of(srq->srq.verbs), &srq->record, 0, &posted);

	if (err == -EFAULT)
		hca_srq_catastrophic(srq->srq.verbs->ctx, srq->srq.srqn);
	return err ? UINT32_MAX : (u16)(posted - srq->rq.count);
}

const struct hca_wq_ops cx_srq_wq_ops = { .next_recv = srq_next };

/*
 * User index of its completions (CQE version 1); CX_NO_INDEX: completions have the number of the SRQ (version 0). Only
 * those of XRC have one, others use that of the queue pair.
 */
u32 cx_srq_user_index(const struct connectx *d, u32 srqn)
{
	const struct cx_srq *srq = srq_get(d, srqn, CX_SRQ_XRC);

	return srq ? (u32)cx_get(srq->srqc, xrc_srqc, user_index) : CX_NO_INDEX;
}

int cx_srq_init(struct verbs_srq *base, u32 max_wr, const void *arg)
{
	struct cx_srq *srq = container_of(base, struct cx_srq, srq);
	const struct srq_command *cmd = arg;
	const u8 *ctx = cmd->ctx;
	struct cx_pages pages =
		cx_command_pages(cmd->c, CX_AT_create_srq_in_pas / 8, (u32)cx_get(ctx, srqc, log_page_size),
				 (u32)cx_get(ctx, srqc, page_offset));

	cx_events_init(srq->event, CX_SRQ_EVENTS);
	srq->kind = cmd->kind;
	srq->rq = (struct cx_rq){
		.log_size = (u8)cx_get(ctx, srqc, log_srq_size),
		.log_stride = (u8)(4 + cx_get(ctx, srqc, log_rq_stride)),
		.linked = true,
		.signature = cx_get(ctx, srqc, wq_signature),
	};
	srq->record.addr = cx_get(ctx, srqc, dbr_addr);
	memcpy(srq->srqc, ctx, sizeof(srq->srqc));
	return cx_buf_create(cx_of(base->verbs), &srq->buf, &pages, BIT_ULL(srq->rq.log_size + srq->rq.log_stride),
			     false);
}

void cx_srq_fini(struct verbs_srq *base)
{
	struct cx_srq *srq = container_of(base, struct cx_srq, srq);

	cx_events_forget(srq->event, CX_SRQ_EVENTS);
	cx_buf_destroy(cx_of(base->verbs), &srq->buf);
}

/* Every SRQ of CREATE_SRQ has an XRC domain and a CQ; only XRC target queue pairs use them. */
static int srq_create(struct connectx *d, const struct srq_command *cmd, u32 *srqn)
{
	const u8 *ctx = cmd->ctx;
	/* The first 16 bytes of an entry are its link. */
	const struct verbs_cq *cq = table_get(&d->verbs.cqs, (u32)cx_get(ctx, srqc, cqn));
	u32 room = BIT(cx_get(ctx, srqc, log_rq_stride)) - 1, sges = min(room, (u32)HCA_MAX_SGE);
	struct hca_srq_attr attr = {
		.max_wr = BIT(cx_get(ctx, srqc, log_srq_size)),
		.max_sge = sges,
		.limit = (u32)cx_get(ctx, srqc, lwm),
		.xrcdn = (u32)cx_get(ctx, srqc, xrcd),
		.cqn = cq ? cq->cqn : 0,
	};
	struct verbs_srq *srq;
	int err;

	if (!hca_pd_exists(d->verbs.ctx, (u32)cx_get(ctx, srqc, pd)) ||
	    (attr.xrcdn && (!cq || !hca_xrcd_exists(d->verbs.ctx, attr.xrcdn))))
		return CX_BAD_RES;
	err = sges ? verbs_srq_create(&d->verbs, (u32)cx_get(ctx, srqc, pd), &attr, cmd, &srq) : -EINVAL;
	if (!err)
		*srqn = srq->handle;
	return err;
}

static int srq_destroy(struct connectx *d, u32 srqn, enum cx_srq_kind kind)
{
	struct verbs_srq *srq;
	int err;

	if (!srq_get(d, srqn, kind))
		return CX_BAD_RES;
	err = verbs_srq_destroy(&d->verbs, srqn, &srq);
	if (!err) {
		verbs_srq_free(srq);
		cx_page_faults_srq_destroyed(d, srqn);
	}
	return cx_destroyed(err);
}

static int srq_query(struct connectx *d, u32 srqn, enum cx_srq_kind kind, u8 *ctx)
{
	struct hca_srq_attr attr;
	struct verbs_srq *srq;

	if (!srq_get(d, srqn, kind) || verbs_srq_query(&d->verbs, srqn, &attr, &srq))
		return CX_BAD_RES;
	memcpy(ctx, container_of(srq, struct cx_srq, srq)->srqc, CX_BYTES_srqc);
	cx_set(ctx, srqc, state, attr.error);
	cx_set(ctx, srqc, lwm, attr.limit);
	return CX_OK;
}

static int srq_arm(struct connectx *d, u32 srqn, enum cx_srq_kind kind, u32 lwm)
{
	return srq_get(d, srqn, kind) ? verbs_srq_set_limit(&d->verbs, srqn, lwm) : CX_BAD_RES;
}

/* ---- interface step sequence 0 ---- */

int cx_create_srq(struct connectx *d, const struct cx_cmd *c)
{
	const struct srq_command cmd = { c, CX_SRQ_ANY, cx_cptr(c->in, create_srq_in, srq_context_entry) };
	u32 srqn = 0;
	int err = srq_create(d, &cmd, &srqn);

	cx_set(c->out, create_srq_out, srqn, srqn);
	return err;
}

int cx_destroy_srq(struct connectx *d, const struct cx_cmd *c)
{
	return srq_destroy(d, (u32)cx_get(c->in, destroy_srq_in, srqn), CX_SRQ_ANY);
}

int cx_query_srq(struct connectx *d, const struct cx_cmd *c)
{
	return srq_query(d, (u32)cx_get(c->in, query_srq_in, srqn), CX_SRQ_ANY,
			 cx_ptr(c->out, query_srq_out, srq_context_entry));
}

/* Of the other kinds of ARM_RQ's queues, RQs and XRQs, there are none. */
int cx_arm_rq(struct connectx *d, const struct cx_cmd *c)
{
	u32 srqn = (u32)cx_get(c->in, arm_rq_in, srq_number);

	if (srq_get(d, srqn, CX_SRQ_ANY) && c->op_mod != ARM_SRQ)
		return CX_BAD_PARAM;
	return srq_arm(d, srqn, CX_SRQ_ANY, (u32)cx_get(c->in, arm_rq_in, lwm));
}

/* ---- interface step sequence 1: those of XRC ---- */

int cx_create_xrc_srq(struct connectx *d, const struct cx_cmd *c)
{
	const struct srq_command cmd = { c, CX_SRQ_XRC, cx_cptr(c->in, create_xrc_srq_in, xrc_srq_context_entry) };
	u32 srqn = 0;
	int err = cx_get(cmd.ctx, srqc, xrcd) ? srq_create(d, &cmd, &srqn) : CX_BAD_RES;

	cx_set(c->out, create_xrc_srq_out, xrc_srqn, srqn);
	return err;
}

int cx_destroy_xrc_srq(struct connectx *d, const struct cx_cmd *c)
{
	return srq_destroy(d, (u32)cx_get(c->in, destroy_xrc_srq_in, xrc_srqn), CX_SRQ_XRC);
}

int cx_query_xrc_srq(struct connectx *d, const struct cx_cmd *c)
{
	return srq_query(d, (u32)cx_get(c->in, query_xrc_srq_in, xrc_srqn), CX_SRQ_XRC,
			 cx_ptr(c->out, query_xrc_srq_out, xrc_srq_context_entry));
}

int cx_arm_xrc_srq(struct connectx *d, const struct cx_cmd *c)
{
	u32 srqn = (u32)cx_get(c->in, arm_xrc_srq_in, xrc_srqn);

	if (srq_get(d, srqn, CX_SRQ_XRC) && c->op_mod != ARM_SRQ)
		return CX_BAD_PARAM;
	return srq_arm(d, srqn, CX_SRQ_XRC, (u32)cx_get(c->in, arm_xrc_srq_in, lwm));
}

/* ---- interface step sequence 1: others, receive memory pools ---- */

/* False: no SRQ has such entries. */
static bool srqc_from_wq(u8 *ctx, const u8 *wq)
{
	u64 log_stride = cx_get(wq, wq, log_wq_stride), log_size = cx_get(wq, wq, log_wq_sz);

	if (cx_get(wq, wq, wq_type) != WQ_LINKED || log_stride < LOG_ENTRY_LEAST || log_stride > LOG_ENTRY_MOST ||
	    log_size > LOG_ENTRIES_MOST)
		return false;
	cx_set(ctx, srqc, wq_signature, cx_get(wq, wq, wq_signature));
	cx_set(ctx, srqc, log_page_size, cx_get(wq, wq, log_wq_pg_sz));
	cx_set(ctx, srqc, page_offset, cx_get(wq, wq, page_offset));
	cx_set(ctx, srqc, log_rq_stride, log_stride - 4);
	cx_set(ctx, srqc, log_srq_size, log_size);
	cx_set(ctx, srqc, lwm, cx_get(wq, wq, lwm));
	cx_set(ctx, srqc, pd, cx_get(wq, wq, pd));
	cx_set(ctx, srqc, dbr_addr, cx_get(wq, wq, dbr_addr));
	return true;
}

static void srqc_to_wq(const u8 *ctx, u8 *wq)
{
	cx_set(wq, wq, wq_signature, cx_get(ctx, srqc, wq_signature));
	cx_set(wq, wq, log_wq_pg_sz, cx_get(ctx, srqc, log_page_size));
	cx_set(wq, wq, page_offset, cx_get(ctx, srqc, page_offset));
	cx_set(wq, wq, log_wq_stride, cx_get(ctx, srqc, log_rq_stride) + 4);
	cx_set(wq, wq, log_wq_sz, cx_get(ctx, srqc, log_srq_size));
	cx_set(wq, wq, lwm, cx_get(ctx, srqc, lwm));
	cx_set(wq, wq, pd, cx_get(ctx, srqc, pd));
	cx_set(wq, wq, dbr_addr, cx_get(ctx, srqc, dbr_addr));
}

int cx_create_rmp(struct connectx *d, const struct cx_cmd *c)
{
	const u8 *rmpc = cx_cptr(c->in, create_rmp_in, ctx);
	u8 ctx[CX_BYTES_srqc] = { 0 };
	const struct srq_command cmd = { c, CX_SRQ_RMP, ctx };
	u32 srqn = 0;
	int err;

	if (cx_get(rmpc, rmpc, state) != RMP_READY || !srqc_from_wq(ctx, cx_cptr(rmpc, rmpc, wq)))
		return CX_BAD_PARAM;
	err = srq_create(d, &cmd, &srqn);
	cx_set(c->out, create_rmp_out, rmpn, srqn);
	return err;
}

int cx_destroy_rmp(struct connectx *d, const struct cx_cmd *c)
{
	return srq_destroy(d, (u32)cx_get(c->in, destroy_rmp_in, rmpn), CX_SRQ_RMP);
}

int cx_query_rmp(struct connectx *d, const struct cx_cmd *c)
{
	u8 ctx[CX_BYTES_srqc], *rmpc = cx_ptr(c->out, query_rmp_out, rmp_context);
	int err = srq_query(d, (u32)cx_get(c->in, query_rmp_in, rmpn), CX_SRQ_RMP, ctx);

	if (err)
		return err;
	cx_set(rmpc, rmpc, state, cx_get(ctx, srqc, state) ? RMP_ERROR : RMP_READY);
	srqc_to_wq(ctx, cx_ptr(rmpc, rmpc, wq));
	return CX_OK;
}

/* Sets the limit; its state stays. */
int cx_modify_rmp(struct connectx *d, const struct cx_cmd *c)
{
	const u8 *rmpc = cx_cptr(c->in, modify_rmp_in, ctx), *wq = cx_cptr(rmpc, rmpc, wq);
	u32 srqn = (u32)cx_get(c->in, modify_rmp_in, rmpn);

	if (!srq_get(d, srqn, CX_SRQ_RMP))
		return CX_BAD_RES;
	if (cx_get(c->in, modify_rmp_in, rmp_state) != RMP_READY || cx_get(rmpc, rmpc, state) != RMP_READY)
		return CX_BAD_PARAM;
	if (!cx_get(cx_cptr(c->in, modify_rmp_in, bitmask), rmp_bitmask, lwm))
		return CX_OK;
	return srq_arm(d, srqn, CX_SRQ_RMP, (u32)cx_get(wq, wq, lwm));
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shared receive queues: linked entries in a buffer; each has the index of the next one. */
#include <errno.h>

#include "emu/connectx/connectx_internal.h"

#define ARM_SRQ 1 /* modifier of ARM_RQ */

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

int cx_srq_init(struct verbs_srq *base, u32 max_wr, const void *arg)
{
	struct cx_srq *srq = container_of(base, struct cx_srq, srq);
	const struct cx_cmd *c = arg;
	const u8 *ctx = cx_cptr(c->in, create_srq_in, srq_context_entry);
	struct cx_pages pages = cx_command_pages(c, CX_AT_create_srq_in_pas / 8, (u32)cx_get(ctx, srqc, log_page_size),
						 (u32)cx_get(ctx, srqc, page_offset));

	cx_events_init(srq->event, CX_SRQ_EVENTS);
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

/* Every SRQ of the driver has an XRC domain and a CQ; only XRC target queue pairs use them. */
int cx_create_srq(struct connectx *d, const struct cx_cmd *c)
{
	const u8 *ctx = cx_cptr(c->in, create_srq_in, srq_context_entry);
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
	err = sges ? verbs_srq_create(&d->verbs, (u32)cx_get(ctx, srqc, pd), &attr, c, &srq) : -EINVAL;
	if (!err)
		cx_set(c->out, create_srq_out, srqn, srq->handle);
	return err;
}

int cx_destroy_srq(struct connectx *d, const struct cx_cmd *c)
{
	struct verbs_srq *srq;
	int err = verbs_srq_destroy(&d->verbs, (u32)cx_get(c->in, destroy_srq_in, srqn), &srq);

	if (!err)
		verbs_srq_free(srq);
	return cx_destroyed(err);
}

int cx_query_srq(struct connectx *d, const struct cx_cmd *c)
{
	u8 *ctx = cx_ptr(c->out, query_srq_out, srq_context_entry);
	struct hca_srq_attr attr;
	struct verbs_srq *srq;

	if (verbs_srq_query(&d->verbs, (u32)cx_get(c->in, query_srq_in, srqn), &attr, &srq))
		return CX_BAD_RES;
	memcpy(ctx, container_of(srq, struct cx_srq, srq)->srqc, CX_BYTES_srqc);
	cx_set(ctx, srqc, state, attr.error);
	cx_set(ctx, srqc, lwm, attr.limit);
	return CX_OK;
}

/* Of the other kinds of ARM_RQ's queues, RQs and XRQs, there are none. */
int cx_arm_rq(struct connectx *d, const struct cx_cmd *c)
{
	u32 srqn = (u32)cx_get(c->in, arm_rq_in, srq_number);

	if (!table_get(&d->verbs.srqs, srqn))
		return CX_BAD_RES;
	if (c->op_mod != ARM_SRQ)
		return CX_BAD_PARAM;
	return verbs_srq_set_limit(&d->verbs, srqn, (u32)cx_get(c->in, arm_rq_in, lwm));
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Completion queues: entries of 64 bytes (or the second half of 128) with an owner bit, which changes at each wrap;
 * arming by doorbells.
 */
#include <errno.h>

#include "emu/connectx/connectx_internal.h"

#define ENTRY         64u
#define INDEX         0xffffffu
#define ARM_SOLICITED BIT(24)
/* Modifiers of MODIFY_CQ, and of the former the fields that it sets */
#define MODIFY         0
#define RESIZE         1
#define MODIFY_PERIOD  BIT(0)
#define MODIFY_COUNT   BIT(1)
#define MODIFY_OVERRUN BIT(2)
#define L3_OK          BIT(1)
#define L4_OK          BIT(2)
#define FULL_PKEY      0xffff

enum cqe_opcode {
	CQE_REQUEST = 0,
	CQE_RECV_WRITE_IMM = 1,
	CQE_RECV = 2,
	CQE_RECV_IMM = 3,
	CQE_RECV_INVALIDATE = 4,
	CQE_RESIZE = 5,
	CQE_REQUEST_ERROR = 13,
	CQE_RECV_ERROR = 14,
};

struct cqe {
	u8 reserved[17], path_bits, reserved2[4];
	__be16 slid;
	__be32 flags_qpn; /* GRH 29:28, SL 27:24, source QPN */
	u8 checksums, header_type;
	__be16 vlan;
	__be32 index_srqn, imm; /* user index, or SRQ, by the CQE version */
	u8 reserved3[4];
	__be32 bytes;
	union {
		__be64 timestamp;
		struct {
			u8 reserved4[6], vendor, syndrome;
		};
	};
	__be32 opcode_qpn;
	__be16 index;
	u8 signature, opcode_owner;
};
static_assert(sizeof(struct cqe) == ENTRY && offsetof(struct cqe, slid) == 22 && offsetof(struct cqe, bytes) == 44 &&
		      offsetof(struct cqe, syndrome) == 55 && offsetof(struct cqe, index) == 60,
	      "a completion queue entry");

/*
 * Syndromes of errors, and vendor syndromes of requests and of receives, which programs have as vendor_err. Public logs
 * of ConnectX-4 and later adapters tell the latter; 0: none is known.
 */
static const struct {
	u8 syndrome, request, receive;
} errors[HCA_WC_STATUSES] = {
	[HCA_WC_LOC_LEN_ERR] = { 0x01 },
	[HCA_WC_LOC_QP_OP_ERR] = { 0x02, 0x68 },
	[HCA_WC_LOC_EEC_OP_ERR] = { 0x02, 0x68 },
	[HCA_WC_LOC_PROT_ERR] = { 0x04, 0x52, 0x32 },
	[HCA_WC_WR_FLUSH_ERR] = { 0x05, 0xf9, 0xf9 },
	[HCA_WC_MW_BIND_ERR] = { 0x06, 0x78 },
	[HCA_WC_BAD_RESP_ERR] = { 0x10 },
	[HCA_WC_LOC_ACCESS_ERR] = { 0x11 },
	[HCA_WC_REM_INV_REQ_ERR] = { 0x12, 0x8a },
	[HCA_WC_REM_ACCESS_ERR] = { 0x13, 0x88 },
	[HCA_WC_REM_OP_ERR] = { 0x14, 0x89 },
	[HCA_WC_RETRY_EXC_ERR] = { 0x15, 0x81 },
	[HCA_WC_RNR_RETRY_EXC_ERR] = { 0x16 },
	[HCA_WC_REM_ABORT_ERR] = { 0x22 },
};
#define SYNDROME_OTHER 0x1f /* the drivers' general error */

/* A memory key request that fails has its own syndrome: "memory management operation error". */
static void cqe_set_error(struct cqe *e, const struct hca_cqe *c, bool receive)
{
	u8 status = c->status;

	if (status == HCA_WC_LOC_QP_OP_ERR && (c->opcode == HCA_WC_REG_MR || c->opcode == HCA_WC_LOCAL_INV))
		status = HCA_WC_MW_BIND_ERR;
	if (status >= HCA_WC_STATUSES || !errors[status].syndrome) {
		e->syndrome = SYNDROME_OTHER;
		return;
	}
	e->syndrome = errors[status].syndrome;
	e->vendor = receive ? errors[status].receive : errors[status].request;
}

static u32 cq_stride(const struct cx_cq *cq)
{
	return cq->wide ? 2 * ENTRY : ENTRY;
}

/* Syndrome of an error event. */
enum cq_error {
	CQ_OK = 0,
	CQ_OVERRUN = 1,
	CQ_ACCESS_VIOLATION = 2, /* its buffer or its record is not in memory */
};

/* Adds an entry; whether there is room for it is for the driver to know, if it does not count what it consumes. */
static enum cq_error cq_put(struct connectx *d, struct cx_cq *cq, struct cqe *e, enum cqe_opcode opcode)
{
	u64 slot = cq->pi & (BIT(cq->log_size) - 1);
	u8 *p;
	u32 ci;

	if (!cq->ignore_overrun) {
		if (cx_record_read(d, &cq->record, 0, &ci))
			return CQ_ACCESS_VIOLATION;
		if (((cq->pi - ci) & INDEX) >= BIT(cq->log_size))
			return CQ_OVERRUN;
	}
	p = cx_buf_at(d, &cq->buf, slot * cq_stride(cq) + cq_stride(cq) - ENTRY, ENTRY);
	if (!p)
		return CQ_ACCESS_VIOLATION;
	memcpy(p, e, ENTRY - 1);
	__atomic_store_n(p + ENTRY - 1, (u8)(opcode << 4 | (cq->pi >> cq->log_size & 1)), __ATOMIC_RELEASE);
	cq->pi++;
	return CQ_OK;
}

u8 cx_cq_error(struct cx_cq *cq)
{
	if (!cq->error)
		cq->error = CQ_OVERRUN; /* by a fault of the HCA */
	return cq->error;
}

static enum cqe_opcode receive_opcode(const struct hca_cqe *c)
{
	if (c->opcode == HCA_WC_RECV_RDMA_WITH_IMM)
		return CQE_RECV_WRITE_IMM;
	if (c->flags & HCA_WC_WITH_IMM)
		return CQE_RECV_IMM;
	return c->flags & HCA_WC_WITH_INVALIDATE ? CQE_RECV_INVALIDATE : CQE_RECV;
}

/* P_Key of a MAD: completions of QP1 have it instead of immediate data. */
static u32 pkey_of(const struct connectx *d, const struct hca_cqe *c)
{
	const struct wire_port_attr *a = &hca_port(d->cfg.hca, d->cfg.port)->attr;

	return c->pkey_index < WIRE_PORT_PKEYS ? a->pkey[c->pkey_index] : FULL_PKEY;
}

/*
 * By its user index a queue pair, or for XRC an SRQ, has completions of version 1, which have that index instead of the
 * number of the SRQ. So queues of programs and of the kernel differ, whose drivers find the queue by either.
 */
static u32 index_srqn(const struct connectx *d, const struct cx_qp *qp, const struct hca_cqe *c, bool receive)
{
	u32 index = CX_NO_INDEX;

	if (receive && qp && qp->service == CX_QP_XRC)
		index = cx_srq_user_index(d, c->srqn);
	else if (qp)
		index = qp->user_index;
	if (index != CX_NO_INDEX)
		return index;
	return receive ? c->srqn : 0;
}

static int cq_complete(void *fe, const struct hca_cqe *c)
{
	struct cx_cq *cq = fe;
	struct connectx *d = cx_of(cq->cq.verbs);
	const struct cx_qp *qp = cx_qp_get(d, c->qpn);
	bool receive = c->opcode >= HCA_WC_RECV;
	struct cqe e = { .bytes = cpu_to_be32(c->byte_len),
			 .index_srqn = cpu_to_be32(index_srqn(d, qp, c, receive)),
			 .index = cpu_to_be16((u16)c->token) };
	enum cqe_opcode opcode;

	if (!receive) {
		e.opcode_qpn = cpu_to_be32((u32)(c->token >> 16 & 0xff) << 24 | c->qpn);
		opcode = CQE_REQUEST;
	} else {
		e.opcode_qpn = cpu_to_be32(c->qpn);
		e.slid = cpu_to_be16(c->slid);
		e.path_bits = c->dlid_path_bits;
		e.flags_qpn = cpu_to_be32((c->flags & HCA_WC_GRH ? 1u << 28 : 0) | (u32)(c->sl & 0xf) << 24 |
					  (c->src_qp & INDEX));
		e.imm = cpu_to_be32(qp && qp->service == CX_QP_GSI ? pkey_of(d, c) : c->imm);
		if (c->flags & HCA_WC_IP_CSUM_OK)
			e.checksums = L3_OK | L4_OK;
		opcode = receive_opcode(c);
	}
	if (c->status) {
		opcode = receive ? CQE_RECV_ERROR : CQE_REQUEST_ERROR;
		cqe_set_error(&e, c, receive);
	} else {
		e.timestamp = cpu_to_be64(cx_clock());
	}
	cq->error = cq_put(d, cq, &e, opcode);
	if (cq->error)
		return -ENOSPC;
	if (c->solicited || c->status)
		cq->solicited = cq->pi;
	verbs_cq_completed(&cq->cq, c);
	return 0;
}

static void cq_event(struct cx_cq *cq, struct now now)
{
	loop_timer_cancel(&cq->timer);
	cq->arm = VERBS_ARM_NONE;
	cq->event_pi = cq->pi;
	cq->event_at = now.ns;
	cx_event_comp(cx_of(cq->cq.verbs), cq);
}

static void cq_period_ends(struct loop_timer *t, struct now now)
{
	cq_event(container_of(t, struct cx_cq, timer), now);
}

/*
 * The armed CQ has completions for an event. Moderated, it is sent when there are as many as the driver has chosen
 * since the last event, or when that is as long ago as it has chosen (MLX5_CQ_PERIOD_MODE_START_FROM_EQE).
 */
static void cq_notify(struct cx_cq *cq)
{
	struct loop *loop = cx_of(cq->cq.verbs)->loop;
	struct now now = loop_now(loop);
	u64 due = cq->event_at + cq->period;

	if (cq->pi - cq->event_pi >= cq->max_count || now.ns >= due)
		cq_event(cq, now);
	else if (!cq->timer.loop)
		loop_timer_set(loop, &cq->timer, due);
}

static void cq_flush(void *fe)
{
	struct cx_cq *cq = fe;

	if (cq->cq.wake && (cq->arm == VERBS_ARM_NEXT || (cq->arm == VERBS_ARM_SOLICITED && cq->cq.wake_solicited)))
		cq_notify(cq);
	cq->cq.wake = cq->cq.wake_solicited = false;
}

const struct hca_cq_ops cx_cq_ops = { .complete = cq_complete, .flush = cq_flush };

/*
 * Arms the CQ: the driver has polled up to an index, and requests an event for later completions. Arming for solicited
 * completions keeps an earlier arming for the next completion (11.4.2.2). One that ignores overruns may have completed
 * more than it has entries; for others this is no index. The last solicited completion may be before that index.
 *
 * A completion has one event: a driver may arm the CQ before it polls those of the last one, as perftest does with one
 * request at a time, which takes each event for a completion.
 */
void cx_cq_doorbell(struct connectx *d, u32 uar, u32 command, u32 cqn)
{
	struct cx_cq *cq = table_get(&d->verbs.cqs, cqn & INDEX);
	bool solicited = command & ARM_SOLICITED;
	u64 behind, last;

	if (!cq || cq->uar != uar) {
		cx_count(d, CX_CTR_BAD_DOORBELLS);
		return;
	}
	loop_timer_cancel(&cq->timer); /* the driver has polled what it was set for, or it is set again */
	if (!solicited || cq->arm == VERBS_ARM_NONE)
		cq->arm = solicited ? VERBS_ARM_SOLICITED : VERBS_ARM_NEXT;
	behind = (cq->pi - command) & INDEX;
	last = cq->arm == VERBS_ARM_SOLICITED ? cq->solicited : cq->pi;
	if (behind <= (cq->ignore_overrun ? INDEX / 2 : BIT(cq->log_size)) && last > cq->event_pi &&
	    last > cq->pi - behind)
		cq_notify(cq);
}

/* ---- commands ---- */

/*
 * The smallest number of entries for which drivers create a queue of this size: Linux takes the next power of 2 above
 * what a program wants. So a program may have as many as from the HCA itself (max_cqe).
 */
static u32 cq_entries(const u8 *ctx)
{
	return max(BIT(cx_get(ctx, cqc, log_cq_size)) / 2, 1u);
}

static int cq_buffer(struct connectx *d, const struct cx_cmd *c, const u8 *ctx, u32 pas, struct cx_buf *b)
{
	struct cx_pages pages =
		cx_command_pages(c, pas, (u32)cx_get(ctx, cqc, log_page_size), (u32)cx_get(ctx, cqc, page_offset));
	u64 size = (u64)(cx_get(ctx, cqc, cqe_sz) ? 2 * ENTRY : ENTRY) << cx_get(ctx, cqc, log_cq_size);

	return cx_get(ctx, cqc, cqe_sz) > 1 ? -EINVAL : cx_buf_create(d, b, &pages, size, true);
}

static void cq_set_moderation(struct cx_cq *cq)
{
	cq->period = cx_get(cq->cqc, cqc, cq_period) * NSEC_PER_USEC;
	cq->max_count = cq->period ? (u32)cx_get(cq->cqc, cqc, cq_max_count) : 0;
}

int cx_cq_init(struct verbs_cq *base, u32 entries, const void *arg)
{
	struct cx_cq *cq = container_of(base, struct cx_cq, cq);
	struct connectx *d = cx_of(base->verbs);
	const struct cx_cmd *c = arg;
	const u8 *ctx = cx_cptr(c->in, create_cq_in, cq_context);
	u32 uar = (u32)cx_get(ctx, cqc, uar_page);

	cx_events_init(&cq->completion, 1);
	cx_events_init(&cq->failure, 1);
	cq->eqn = (u32)cx_get(ctx, cqc, c_eqn_or_apu_element);
	if (cq->eqn >= CX_EQS || !d->eq[cq->eqn] || !cx_uar_exists(d, uar))
		return -ENOENT;
	cq->uar = uar;
	cx_uar_use(d, uar, 1);
	cq->log_size = (u8)cx_get(ctx, cqc, log_cq_size);
	cq->wide = cx_get(ctx, cqc, cqe_sz);
	cq->ignore_overrun = cx_get(ctx, cqc, oi);
	cq->record.addr = cx_get(ctx, cqc, dbr_addr);
	memcpy(cq->cqc, ctx, sizeof(cq->cqc));
	cq_set_moderation(cq);
	cq->timer.fn = cq_period_ends;
	return cq_buffer(d, c, ctx, CX_AT_create_cq_in_pas / 8, &cq->buf);
}

void cx_cq_fini(struct verbs_cq *base)
{
	struct cx_cq *cq = container_of(base, struct cx_cq, cq);

	if (cq->uar)
		cx_uar_use(cx_of(base->verbs), cq->uar, -1);
	loop_timer_cancel(&cq->timer);
	cx_events_forget(&cq->completion, 1);
	cx_events_forget(&cq->failure, 1);
	cx_buf_destroy(cx_of(base->verbs), &cq->buf);
}

int cx_create_cq(struct connectx *d, const struct cx_cmd *c)
{
	const u8 *ctx = cx_cptr(c->in, create_cq_in, cq_context);
	struct verbs_cq *cq;
	int err = verbs_cq_create(&d->verbs, cq_entries(ctx), c, &cq);

	if (!err)
		cx_set(c->out, create_cq_out, cqn, cq->handle);
	return err;
}

int cx_destroy_cq(struct connectx *d, const struct cx_cmd *c)
{
	struct verbs_cq *cq;
	int err = verbs_cq_destroy(&d->verbs, (u32)cx_get(c->in, destroy_cq_in, cqn), &cq);

	if (!err)
		verbs_cq_free(cq);
	return cx_destroyed(err);
}

int cx_query_cq(struct connectx *d, const struct cx_cmd *c)
{
	static const u8 statuses[] = { [CQ_OK] = 0, [CQ_OVERRUN] = 9, [CQ_ACCESS_VIOLATION] = 0xa };
	static const u8 states[] = { [VERBS_ARM_NONE] = 0xa, [VERBS_ARM_NEXT] = 9, [VERBS_ARM_SOLICITED] = 6 };
	struct cx_cq *cq = table_get(&d->verbs.cqs, (u32)cx_get(c->in, query_cq_in, cqn));
	u8 *ctx = cx_ptr(c->out, query_cq_out, cq_context);
	u32 ci = 0;

	if (!cq)
		return CX_BAD_RES;
	memcpy(ctx, cq->cqc, sizeof(cq->cqc));
	cx_record_read(d, &cq->record, 0, &ci);
	cx_set(ctx, cqc, status, statuses[cq->error]);
	cx_set(ctx, cqc, st, states[cq->arm]);
	cx_set(ctx, cqc, producer_counter, cq->pi);
	cx_set(ctx, cqc, consumer_counter, ci);
	return CX_OK;
}

/*
 * The last entry of the old buffer is a resize CQE: the driver continues in the new buffer, at the next index. Both
 * need room for it, as for a completion; whether they have it, the driver knows alone if it does not count what it
 * consumes.
 */
static int cq_resize(struct connectx *d, struct cx_cq *cq, const struct cx_cmd *c)
{
	const u8 *ctx = cx_cptr(c->in, modify_cq_in, cq_context);
	u32 log_size = (u32)cx_get(ctx, cqc, log_cq_size), ci;
	struct cx_buf buf = { 0 };
	struct cqe e = { 0 };
	int err = verbs_cq_check(&d->verbs, cq_entries(ctx));

	if (!err && !cq->ignore_overrun && !cx_record_read(d, &cq->record, 0, &ci) &&
	    ((cq->pi - ci) & INDEX) >= BIT(log_size))
		err = CX_BAD_SIZE;
	if (!err)
		err = cq_buffer(d, c, ctx, CX_AT_modify_cq_in_pas / 8, &buf);
	if (err)
		return err;
	if (cq->error || cq_put(d, cq, &e, CQE_RESIZE)) {
		cx_buf_destroy(d, &buf);
		return CX_BAD_RES_STATE;
	}
	cx_buf_destroy(d, &cq->buf);
	cq->buf = buf;
	cq->log_size = (u8)log_size;
	cq->wide = cx_get(ctx, cqc, cqe_sz);
	cx_set(cq->cqc, cqc, log_cq_size, log_size);
	cx_set(cq->cqc, cqc, log_page_size, cx_get(ctx, cqc, log_page_size));
	cx_set(cq->cqc, cqc, page_offset, cx_get(ctx, cqc, page_offset));
	cx_set(cq->cqc, cqc, cqe_sz, cq->wide);
	return CX_OK;
}

static int cq_modify_fields(struct cx_cq *cq, const struct cx_cmd *c)
{
	const u8 *ctx = cx_cptr(c->in, modify_cq_in, cq_context);
	u32 fields = (u32)cx_get(c->in, modify_cq_in, modify_field_select_resize_field_select);

	if (fields & ~(MODIFY_PERIOD | MODIFY_COUNT | MODIFY_OVERRUN))
		return CX_BAD_PARAM;
	if (fields & MODIFY_PERIOD)
		cx_set(cq->cqc, cqc, cq_period, cx_get(ctx, cqc, cq_period));
	if (fields & MODIFY_COUNT)
		cx_set(cq->cqc, cqc, cq_max_count, cx_get(ctx, cqc, cq_max_count));
	if (fields & MODIFY_OVERRUN)
		cx_set(cq->cqc, cqc, oi, cx_get(ctx, cqc, oi));
	cq->ignore_overrun = cx_get(cq->cqc, cqc, oi);
	cq_set_moderation(cq);
	if (cq->timer.loop) { /* an event waits by the former values */
		loop_timer_cancel(&cq->timer);
		cq_notify(cq);
	}
	return CX_OK;
}

int cx_modify_cq(struct connectx *d, const struct cx_cmd *c)
{
	struct cx_cq *cq = table_get(&d->verbs.cqs, (u32)cx_get(c->in, modify_cq_in, cqn));

	if (!cq)
		return CX_BAD_RES;
	switch (c->op_mod) {
	case MODIFY:
		return cq_modify_fields(cq, c);
	case RESIZE:
		return cq_resize(d, cq, c);
	default:
		return CX_BAD_PARAM;
	}
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Commands on queue pairs, and their doorbells. */
#include <errno.h>
#include <stdlib.h>

#include "emu/connectx/connectx_internal.h"

#define QPN_TABLE 0x1ffff /* the HCA's QPNs are within a range of this size */

enum {
	RQ_OWN = 0,
	RQ_SHARED = 1,
	RQ_NONE = 3,
};

struct cx_qp *cx_qp_get(const struct connectx *d, u32 qpn)
{
	struct cx_qp *qp;

	if (qpn < CX_OWN_QPNS)
		return d->own[qpn];
	qp = table_get(&d->qpns, qpn & QPN_TABLE);
	return qp && qp->qpn == qpn ? qp : NULL;
}

/*
 * A driver writes the producer index to the doorbell record before it writes the doorbell, which takes QEMU and a
 * socket several microseconds. While the loop is awake, records of queues that are in use are polled, so that their
 * requests are executed meanwhile. A queue gets one doorbell for each value that is found: its requests may be waiting
 * for the peer, and must not keep the loop awake.
 */
static void qp_unpoll(struct connectx *d, struct cx_qp *qp)
{
	if (list_empty(&qp->polled))
		return;
	list_del(&qp->polled);
	d->npolled--;
}

static void qp_poll(struct connectx *d, struct cx_qp *qp)
{
	qp_unpoll(d, qp);
	if (d->npolled == CX_POLLED)
		qp_unpoll(d, list_first(&d->polled, struct cx_qp, polled));
	list_add(&d->polled, &qp->polled);
	d->npolled++;
}

u32 cx_qps_poll(struct connectx *d)
{
	struct cx_qp *qp, *tmp;
	u32 n = 0, producer;

	list_for_each_safe (qp, tmp, &d->polled, polled) {
		if (cx_record_read(d, &qp->record, 1, &producer)) {
			qp_unpoll(d, qp);
			continue;
		}
		if ((u16)producer == qp->sq_polled)
			continue;
		qp->sq_polled = (u16)producer;
		if (qp->sq_polled == qp->sq_next)
			continue;
		hca_qp_doorbell(d->verbs.ctx, qp->qpn);
		n++;
	}
	return n;
}

void cx_qps_unpoll(struct connectx *d)
{
	while (!list_empty(&d->polled))
		qp_unpoll(d, list_first(&d->polled, struct cx_qp, polled));
}

void cx_qp_doorbell(struct connectx *d, u32 uar, u32 qpn)
{
	struct cx_qp *qp = cx_qp_get(d, qpn);

	if (unlikely(!qp || qp->uar != uar)) {
		cx_count(d, CX_CTR_BAD_DOORBELLS);
		return;
	}
	cx_count(d, CX_CTR_DOORBELLS);
	if (qpn < CX_OWN_QPNS) {
		verbs_special_run(&qp->qp);
		return;
	}
	qp_poll(d, qp);
	hca_qp_doorbell(d->verbs.ctx, qpn);
}

/* ---- create, destroy ---- */

static u32 recv_sges(const u8 *qpc)
{
	u32 n = BIT(cx_get(qpc, qpc, log_rq_stride)) - (cx_get(qpc, qpc, wq_signature) ? 1 : 0);

	return min(n, (u32)HCA_MAX_SGE);
}

/* Maps the receive queue and the send queue, which are consecutive in one buffer. */
static int queues_make(struct connectx *d, struct cx_qp *qp, const struct cx_cmd *c)
{
	const u8 *qpc = cx_cptr(c->in, create_qp_in, qpc);
	struct cx_pages pages = cx_command_pages(c, CX_AT_create_qp_in_pas / 8, (u32)cx_get(qpc, qpc, log_page_size),
						 (u32)cx_get(qpc, qpc, page_offset));
	u64 sq;
	u32 i;

	list_init(&qp->lists);
	list_init(&qp->polled);
	cx_events_init(qp->event, CX_QP_EVENTS);
	for (i = 0; i < ARRAY_SIZE(qp->fault); i++)
		cx_events_init(&qp->fault[i].event, 1);
	memcpy(qp->qpc, qpc, sizeof(qp->qpc));
	qp->service = (u32)cx_get(qpc, qpc, st);
	if (!cx_get(qpc, qpc, no_sq)) {
		qp->uar = (u32)cx_get(qpc, qpc, uar_page);
		cx_uar_use(d, qp->uar, 1);
	}
	qp->user_index = (u32)cx_get(qpc, qpc, user_index);
	qp->offload = cx_get(qpc, qpc, ulp_stateless_offload_mode);
	qp->record.addr = cx_get(qpc, qpc, dbr_addr);
	qp->has_rq = cx_get(qpc, qpc, rq_type) == RQ_OWN;
	qp->rq = (struct cx_rq){
		.log_size = (u8)cx_get(qpc, qpc, log_rq_size),
		.log_stride = (u8)(4 + cx_get(qpc, qpc, log_rq_stride)),
		.signature = cx_get(qpc, qpc, wq_signature),
	};
	qp->log_sq = (u8)cx_get(qpc, qpc, log_sq_size);
	qp->sq_offset = qp->has_rq ? BIT_ULL(qp->rq.log_size + qp->rq.log_stride) : 0;
	sq = cx_get(qpc, qpc, no_sq) ? 0 : (u64)CX_WQE_BB << qp->log_sq;
	return qp->sq_offset + sq ? cx_buf_create(d, &qp->buf, &pages, qp->sq_offset + sq, false) : 0;
}

static int qp_init(struct verbs_qp *base, const struct hca_qp_init *init, bool srq, const void *cmd)
{
	return queues_make(cx_of(base->verbs), cx_qp_of(base), cmd);
}

/* Frees its queues, and its number, which it may not have got. */
static void qp_release(struct connectx *d, struct cx_qp *qp)
{
	u32 i;

	if (qp->uar)
		cx_uar_use(d, qp->uar, -1);
	qp_unpoll(d, qp);
	cx_events_forget(qp->event, CX_QP_EVENTS);
	for (i = 0; i < ARRAY_SIZE(qp->fault); i++)
		cx_events_forget(&qp->fault[i].event, 1);
	cx_wq_reset(qp);
	cx_buf_destroy(d, &qp->buf);
	if (cx_qp_get(d, qp->qpn) != qp)
		return;
	if (qp->qpn < CX_OWN_QPNS)
		d->own[qp->qpn] = NULL;
	else
		table_remove(&d->qpns, qp->qpn & QPN_TABLE);
}

static void qp_fini(struct verbs_qp *base)
{
	qp_release(cx_of(base->verbs), cx_qp_of(base));
}

/* Creates a UMR queue pair, which only executes the driver's memory key requests. */
static int umr_qp_create(struct connectx *d, const struct cx_cmd *c, struct cx_qp **out)
{
	const u8 *qpc = cx_cptr(c->in, create_qp_in, qpc);
	struct verbs_cq *cq = table_get(&d->verbs.cqs, (u32)cx_get(qpc, qpc, cqn_snd));
	struct cx_qp *qp;
	u32 n;
	int err;

	for (n = CX_QPN_UMR; n < CX_OWN_QPNS && d->own[n];)
		n++;
	if (n == CX_OWN_QPNS)
		return CX_LIM;
	if (!cq) /* it needs no protection domain, and mlx5 gives it none */
		return CX_BAD_RES;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->qp.verbs = &d->verbs;
	qp->qp.send_cq = qp->qp.recv_cq = cq;
	err = queues_make(d, qp, c);
	if (err) {
		qp_release(d, qp);
		free(qp);
		return err;
	}
	qp->qpn = qp->qp.qpn = n;
	qp->qp.special.port = d->cfg.port;
	verbs_special_add(&qp->qp);
	d->own[n] = qp;
	*out = qp;
	return 0;
}

void cx_umr_qp_destroy(struct connectx *d, struct cx_qp *qp)
{
	verbs_special_remove(&qp->qp);
	qp_release(d, qp);
	free(qp);
}

static int type_of(const u8 *qpc)
{
	switch (cx_get(qpc, qpc, st)) {
	case CX_QP_RC:
		return HCA_QPT_RC;
	case CX_QP_UC:
		return HCA_QPT_UC;
	case CX_QP_UD:
		return HCA_QPT_UD;
	case CX_QP_XRC:
		return cx_get(qpc, qpc, no_sq) ? HCA_QPT_XRC_TGT : HCA_QPT_XRC_INI;
	case CX_QP_SMI:
		return HCA_QPT_SMI;
	case CX_QP_GSI:
		return HCA_QPT_GSI;
	default:
		return -1;
	}
}

static bool objects_exist(const struct verbs *v, const struct verbs_qp_queues *q, const struct hca_qp_init *init)
{
	return hca_pd_exists(v->ctx, init->pdn) && table_get(&v->cqs, q->send_cq) && table_get(&v->cqs, q->recv_cq) &&
	       (!q->has_srq || table_get(&v->srqs, q->srq)) &&
	       (init->type != HCA_QPT_XRC_TGT || hca_xrcd_exists(v->ctx, init->xrcdn));
}

static int verbs_create(struct connectx *d, const struct cx_cmd *c, struct cx_qp **out)
{
	const u8 *qpc = cx_cptr(c->in, create_qp_in, qpc);
	const struct hca_caps *caps = hca_caps(d->cfg.hca);
	u32 rq_type = (u32)cx_get(qpc, qpc, rq_type);
	u32 sends = min(BIT(cx_get(qpc, qpc, log_sq_size)), caps->max_qp_wr);
	u32 recvs = min(BIT(cx_get(qpc, qpc, log_rq_size)), caps->max_qp_wr);
	bool xrc = cx_get(qpc, qpc, st) == CX_QP_XRC;
	int type = type_of(qpc);
	struct verbs_qp_queues queues = {
		.send_cq = (u32)cx_get(qpc, qpc, cqn_snd),
		.recv_cq = (u32)cx_get(qpc, qpc, cqn_rcv),
		.srq = (u32)cx_get(qpc, qpc, srqn_rmpn_xrqn),
		.has_srq = rq_type == RQ_SHARED && !xrc, /* for XRC the field is ignored */
	};
	struct hca_qp_init init = {
		.type = (enum hca_qp_type)type,
		.pdn = (u32)cx_get(qpc, qpc, pd),
		.max_send_wr = cx_get(qpc, qpc, no_sq) ? 0 : sends,
		.max_recv_wr = rq_type == RQ_OWN ? recvs : 0,
		.max_send_sge = HCA_MAX_SGE,
		.max_recv_sge = rq_type == RQ_OWN ? recv_sges(qpc) : 0,
		.max_inline = HCA_MAX_INLINE,
		.rx_csum = cx_get(qpc, qpc, ulp_stateless_offload_mode),
		.port = d->cfg.port,
		.xrcdn = type == HCA_QPT_XRC_TGT ? (u32)cx_get(qpc, qpc, xrcd) : 0,
	};
	struct verbs_qp *qp;
	int err;

	if (type < 0 || rq_type > RQ_NONE || rq_type == 2 || (xrc && rq_type == RQ_OWN))
		return CX_BAD_PARAM;
	if (!objects_exist(&d->verbs, &queues, &init))
		return CX_BAD_RES;
	err = verbs_qp_create(&d->verbs, &queues, &init, c, &qp);
	if (err)
		return err;
	*out = cx_qp_of(qp);
	if (qp->qpn < CX_OWN_QPNS) {
		d->own[qp->qpn] = *out;
	} else if (table_add_at(&d->qpns, *out, qp->qpn & QPN_TABLE)) {
		verbs_qp_destroy(&d->verbs, qp->handle, &qp);
		verbs_qp_free(qp);
		return -ENOMEM;
	}
	(*out)->qpn = qp->qpn;
	return 0;
}

/* One without a send queue has no doorbells, and Linux gives it no UAR. */
int cx_create_qp(struct connectx *d, const struct cx_cmd *c)
{
	const u8 *qpc = cx_cptr(c->in, create_qp_in, qpc);
	struct cx_qp *qp;
	int err;

	if (!cx_get(qpc, qpc, no_sq) && !cx_uar_exists(d, (u32)cx_get(qpc, qpc, uar_page)))
		return CX_BAD_RES;
	err = cx_get(qpc, qpc, st) == CX_QP_UMR ? umr_qp_create(d, c, &qp) : verbs_create(d, c, &qp);

	if (!err)
		cx_set(c->out, create_qp_out, qpn, qp->qpn);
	return err;
}

int cx_destroy_qp(struct connectx *d, const struct cx_cmd *c)
{
	struct verbs_qp *base;
	struct cx_qp *qp;
	int err;

	verbs_requests_run(d->loop); /* as in cx_modify_qp() */
	qp = cx_qp_get(d, (u32)cx_get(c->in, destroy_qp_in, qpn));
	if (!qp)
		return CX_BAD_RES;
	if (qp->service == CX_QP_UMR) {
		cx_umr_qp_destroy(d, qp);
		return CX_OK;
	}
	err = verbs_qp_destroy(&d->verbs, qp->qp.handle, &base);
	if (!err)
		verbs_qp_free(base);
	return cx_destroyed(err);
}

/* ---- modify ---- */

#define CONNECTED (HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RQ_PSN)

#define IN(state) BIT(HCA_QPS_##state)
#define ANY       (BIT(HCA_QPS_ERR + 1) - 1)

/*
 * By command: the states in which the queue pair may be, and the attributes set besides its optional parameters, for RC
 * and XRC, for UC, for the datagram services.
 */
static const struct {
	u16 op;
	u8 from, to;
	bool context; /* the command has a QP context */
	u32 rc, uc, ud;
} transitions[] = {
	{ 0x502, IN(RESET), HCA_QPS_INIT, true, HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS,
	  HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS, HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_QKEY },
	{ 0x50e, IN(INIT), HCA_QPS_INIT, true, 0, 0, 0 },
	{ 0x503, IN(INIT), HCA_QPS_RTR, true,
	  CONNECTED | HCA_QP_MAX_DEST_RD_ATOMIC | HCA_QP_MIN_RNR_TIMER | HCA_QP_ACCESS_FLAGS, CONNECTED, 0 },
	{ 0x504, IN(RTR), HCA_QPS_RTS, true,
	  HCA_QP_TIMEOUT | HCA_QP_RETRY_CNT | HCA_QP_RNR_RETRY | HCA_QP_SQ_PSN | HCA_QP_MAX_QP_RD_ATOMIC, HCA_QP_SQ_PSN,
	  HCA_QP_SQ_PSN },
	{ 0x505, IN(RTS), HCA_QPS_RTS, true, 0, 0, 0 },
	{ 0x506, IN(SQE), HCA_QPS_RTS, true, 0, 0, 0 },
	{ 0x50c, IN(SQD), HCA_QPS_RTS, true, 0, 0, 0 },
	{ 0x507, ANY & ~IN(RESET), HCA_QPS_ERR, false, 0, 0, 0 },
	{ 0x50a, ANY, HCA_QPS_RESET, false, 0, 0, 0 },
};

/* Attributes by bit of the mask of optional parameters. */
static const u32 optional[] = {
	[0] = HCA_QP_ALT_PATH,
	[1] = HCA_QP_ACCESS_FLAGS, /* of these three, each sets its own right alone */
	[2] = HCA_QP_ACCESS_FLAGS,
	[3] = HCA_QP_ACCESS_FLAGS,
	[4] = HCA_QP_PKEY_INDEX,
	[5] = HCA_QP_QKEY,
	[6] = HCA_QP_MIN_RNR_TIMER,
	[7] = HCA_QP_AV,
	[8] = HCA_QP_MAX_QP_RD_ATOMIC,
	[9] = HCA_QP_MAX_DEST_RD_ATOMIC,
	[10] = HCA_QP_PATH_MIG_STATE,
	[12] = HCA_QP_RETRY_CNT,
	[13] = HCA_QP_RNR_RETRY,
	[14] = HCA_QP_TIMEOUT,
	[16] = HCA_QP_PORT,
};
#define OPTIONAL_COUNTER_SET BIT(25)

static u32 optional_mask(u32 bits)
{
	u32 i, mask = 0;

	for (i = 0; i < ARRAY_SIZE(optional); i++)
		mask |= bits & BIT(i) ? optional[i] : 0;
	return mask;
}

static u32 optional_rights(u32 bits)
{
	return (bits & BIT(1) ? HCA_ACCESS_REMOTE_READ : 0) | (bits & BIT(2) ? HCA_ACCESS_REMOTE_ATOMIC : 0) |
	       (bits & BIT(3) ? HCA_ACCESS_REMOTE_WRITE : 0);
}

/* Takes the parameters that only RST2INIT sets. */
static int qp_initialise(struct connectx *d, struct cx_qp *qp, const u8 *qpc)
{
	qp->privileged = cx_get(qpc, qpc, rlky);
	if (cx_get(qpc, qpc, dbr_addr))
		qp->record = (struct cx_record){ .addr = cx_get(qpc, qpc, dbr_addr) };
	if (qp->qpn < CX_OWN_QPNS || !cx_get(qpc, qpc, deth_sqpn))
		return 0;
	return hca_qp_set_source(d->verbs.ctx, qp->qpn, (u32)cx_get(qpc, qpc, deth_sqpn));
}

static struct hca_qp_attr qp_attr(const struct connectx *d, const struct cx_qp *qp)
{
	struct hca_qp_attr a = { .state = qp->qp.special.state };

	if (qp->qpn >= CX_OWN_QPNS)
		hca_qp_query(d->verbs.ctx, qp->qpn, &a);
	return a;
}

/* Those that the HCA does not know have no counters. */
static void qp_use_counter_set(struct connectx *d, struct cx_qp *qp, u32 set)
{
	cx_set(qp->qpc, qpc, counter_set_id, set);
	if (qp->qpn >= CX_OWN_QPNS)
		cx_counter_set_use(d, set, qp->qpn);
}

/*
 * The driver resets a queue pair before it destroys it, and rdma_disconnect() moves it to ERR. Requests with an earlier
 * doorbell, which may have come together with the command, are sent first; the tasks that do so may also stop the
 * adapter, which destroys all objects.
 */
int cx_modify_qp(struct connectx *d, const struct cx_cmd *c)
{
	const u8 *qpc = cx_cptr(c->in, rst2init_qp_in, qpc);
	u32 i = 0, mask = HCA_QP_STATE, bits = (u32)cx_get(c->in, rst2init_qp_in, opt_param_mask), rights;
	struct hca_qp_attr a = { 0 }, old;
	struct verbs_qp *base;
	struct cx_qp *qp;
	bool counted;
	u32 set;
	int err = 0;

	while (transitions[i].op != c->op)
		i++;
	if (verbs_state_ends(transitions[i].to))
		verbs_requests_run(d->loop);
	qp = cx_qp_get(d, (u32)cx_get(c->in, rst2init_qp_in, qpn));
	if (!qp)
		return CX_BAD_RES;
	old = qp_attr(d, qp);
	if (transitions[i].context) {
		cx_attr_in(d, &a, qpc);
		mask |= qp->service == CX_QP_RC || qp->service == CX_QP_XRC ? transitions[i].rc
			: qp->service == CX_QP_UC                           ? transitions[i].uc
									    : transitions[i].ud;
		rights = mask & HCA_QP_ACCESS_FLAGS ? ~0u : optional_rights(bits);
		a.access = (a.access & rights) | (old.access & ~rights);
		mask |= optional_mask(bits);
		if (qp->qpn < CX_OWN_QPNS)
			mask &= ~(u32)HCA_QP_PORT; /* it is the function's */
	}
	a.state = transitions[i].to;
	/* Refused before it changes the doorbell record of a queue pair in use. */
	if (!(BIT(old.state) & transitions[i].from))
		return CX_BAD_QP_STATE;
	set = (u32)cx_get(qpc, qpc, counter_set_id);
	counted = transitions[i].from == IN(RESET) || (transitions[i].context && bits & OPTIONAL_COUNTER_SET);
	if (counted && !cx_counter_set_exists(d, set))
		return CX_BAD_RES;
	if (transitions[i].from == IN(RESET))
		err = qp_initialise(d, qp, qpc);
	if (err)
		return err;
	if (qp->service == CX_QP_UMR)
		err = verbs_special_modify(&qp->qp, &a, mask);
	else
		err = verbs_qp_modify(&d->verbs, qp->qp.handle, &a, mask, &base);
	if (!err && counted)
		qp_use_counter_set(d, qp, set);
	return err;
}

int cx_query_qp(struct connectx *d, const struct cx_cmd *c)
{
	struct cx_qp *qp = cx_qp_get(d, (u32)cx_get(c->in, query_qp_in, qpn));
	u8 *qpc = cx_ptr(c->out, query_qp_out, qpc);
	struct hca_qp_attr a = { 0 };
	struct verbs_qp *base;
	int err = 0;

	if (!qp)
		return CX_BAD_RES;
	if (qp->service == CX_QP_UMR)
		a.state = qp->qp.special.state;
	else
		err = verbs_qp_query(&d->verbs, qp->qp.handle, &a, &base);
	if (err)
		return err;
	memcpy(qpc, qp->qpc, sizeof(qp->qpc));
	cx_attr_out(d, qpc, &a);
	return CX_OK;
}

/* ---- multicast groups ---- */

/* The commands have no MLID: the HCA distinguishes groups by MGID. */
static int mcast(struct connectx *d, const struct cx_cmd *c,
		 int (*fn)(struct hca_ctx *ctx, u32 qpn, const struct wire_gid *mgid, u16 mlid))
{
	struct cx_qp *qp = cx_qp_get(d, (u32)cx_get(c->in, attach_to_mcg_in, qpn));

	if (!qp || qp->qpn < CX_OWN_QPNS)
		return CX_BAD_RES;
	return verbs_qp_mcast(&d->verbs, qp->qp.handle, cx_cptr(c->in, attach_to_mcg_in, multicast_gid), 0, fn);
}

int cx_attach_mcg(struct connectx *d, const struct cx_cmd *c)
{
	return mcast(d, c, hca_mcast_attach);
}

int cx_detach_mcg(struct connectx *d, const struct cx_cmd *c)
{
	verbs_requests_run(d->loop); /* as in cx_modify_qp(): datagrams that it sent to the group itself */
	return mcast(d, c, hca_mcast_detach);
}

const struct verbs_ops cx_verbs_ops = {
	.cq_size = sizeof(struct cx_cq),
	.qp_size = sizeof(struct cx_qp),
	.srq_size = sizeof(struct cx_srq),
	.cq_init = cx_cq_init,
	.cq_fini = cx_cq_fini,
	.qp_init = qp_init,
	.qp_fini = qp_fini,
	.srq_init = cx_srq_init,
	.srq_fini = cx_srq_fini,
	.srq_posted = cx_srq_posted,
	.cq = &cx_cq_ops,
	.qp = &cx_qp_wq_ops,
	.srq = &cx_srq_wq_ops,
	.special = &cx_special_ops,
	.xrc = true,
};

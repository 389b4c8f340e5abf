// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* QP0 and QP1 of a user with a MAD layer of its own: states (IBTA 10.3.1), single MADs, completions. */
#include "emu/verbs/special.h"

#include <errno.h>

#include "emu/mad/mad.h"
#include "emu/packet/roce.h"
#include "emu/verbs/object.h"
#include "emu/wire/hdr.h"
#include "emu/wire/mad.h"

#define GRH_LEN 40

static const struct verbs_special_ops *ops_of(const struct verbs_qp *qp)
{
	return qp->verbs->ops->special;
}

/* ---- completions ---- */

/* A completion that finds no room in the CQ is lost, with the CQ: verbs_specials_cq_failed(). */
static void special_finish(const struct verbs_qp *qp, const struct verbs_cq *cq, struct hca_cqe *cqe)
{
	cqe->qpn = qp->qpn;
	cqe->port = qp->special.port;
	hca_cq_complete(qp->verbs->ctx, cq->cqn, cqe);
}

static void special_flush(const struct verbs_qp *qp)
{
	const struct hca_cq_ops *ops = qp->verbs->ops->cq;

	ops->flush(qp->send_cq);
	if (qp->recv_cq != qp->send_cq)
		ops->flush(qp->recv_cq);
}

void verbs_special_sent(struct verbs_qp *qp, u64 token, u8 status, bool signaled)
{
	struct hca_cqe cqe = { .token = token, .opcode = HCA_WC_SEND, .status = status };
	struct verbs_special *s = &qp->special;

	if (status && s->state == HCA_QPS_RTS)
		s->state = s->mad ? HCA_QPS_SQE : HCA_QPS_ERR;
	if (status || signaled)
		special_finish(qp, qp->send_cq, &cqe);
}

/* ---- requests ---- */

static u64 list_bytes(const struct hca_sge *sge, u32 n)
{
	u64 bytes = 0;

	while (n--)
		bytes += sge++->length;
	return bytes;
}

/* A MAD has 256 bytes (13.4.2). */
static u8 mad_send_wr(struct verbs_qp *qp, const struct hca_send_wr *wr)
{
	struct mad_addr to = {
		.qpn = wr->remote_qpn,
		.qkey = wr->remote_qkey,
		.lid = wr->av.dlid,
		.pkey_index = wr->pkey_index,
		.sl = wr->av.sl,
		.path_bits = wr->av.src_path_bits,
		.grh = wr->av.grh,
		.hop_limit = wr->av.hop_limit,
		.traffic_class = wr->av.traffic_class,
		.gid_index = wr->av.sgid_index,
		.flow_label = wr->av.flow_label,
		.gid = wr->av.dgid,
	};
	u32 head = wr->flags & HCA_SEND_INLINE ? wr->inline_len : 0;
	u8 mad[MAD_SIZE];

	memcpy(to.l2.mac, wr->av.dmac, sizeof(to.l2.mac));
	if (wr->opcode == HCA_WR_NOP)
		return HCA_WC_SUCCESS;
	if (wr->opcode != HCA_WR_SEND || wr->lso_mss)
		return HCA_WC_LOC_QP_OP_ERR;
	if (head + list_bytes(wr->sge, wr->num_sge) != MAD_SIZE)
		return HCA_WC_LOC_LEN_ERR;
	memcpy(mad, wr->inline_data, head);
	if (hca_sge_copy(qp->verbs->ctx, qp->special.pdn, wr->sge, wr->num_sge, 0, mad + head, MAD_SIZE - head, false))
		return HCA_WC_LOC_PROT_ERR;
	ops_of(qp)->count(qp->verbs, VERBS_MAD_OUT);
	return mad_port_send_raw(qp->special.mad, (u8)qp->limits.type, mad, &to) ? HCA_WC_LOC_QP_OP_ERR
										 : HCA_WC_SUCCESS;
}

/* Executes or flushes the next MAD. False: none is left. */
static bool mad_request(struct verbs_qp *qp)
{
	const struct hca_wq_ops *ops = qp->verbs->ops->qp;
	static struct hca_send_wr wr;
	int got = ops->next_send(qp, &wr);
	u8 status;

	if (!got)
		return false;
	qp->special.turn++;
	if (qp->special.state != HCA_QPS_RTS)
		status = HCA_WC_WR_FLUSH_ERR;
	else
		status = got < 0 ? HCA_WC_LOC_QP_OP_ERR : mad_send_wr(qp, &wr);
	ops->send_done(qp);
	verbs_special_sent(qp, wr.token, status, qp->special.sig_all || wr.flags & HCA_SEND_SIGNALED);
	return true;
}

static void recv_done(struct verbs_qp *qp)
{
	const struct hca_wq_ops *ops = qp->verbs->ops->qp;

	if (ops->recv_done)
		ops->recv_done(qp);
}

/* Flushes the next receive. False: none is left. */
static bool recv_flush(struct verbs_qp *qp)
{
	struct hca_cqe cqe = { .opcode = HCA_WC_RECV, .status = HCA_WC_WR_FLUSH_ERR };
	struct hca_recv_wr wr;

	if (!qp->verbs->ops->qp->next_recv(qp, &wr))
		return false;
	recv_done(qp);
	qp->special.turn++;
	cqe.token = wr.token;
	special_finish(qp, qp->recv_cq, &cqe);
	return true;
}

/* In SQD requests stay where they are. */
static bool is_sending(const struct verbs_special *s)
{
	return s->state == HCA_QPS_RTS || s->state == HCA_QPS_SQE || s->state == HCA_QPS_ERR;
}

void verbs_special_run(struct verbs_qp *qp)
{
	bool (*request)(struct verbs_qp * qp) = qp->special.mad ? mad_request : ops_of(qp)->request;
	struct verbs_special *s = &qp->special;

	while (s->turn < VERBS_SPECIAL_TURN && is_sending(s) && request(qp))
		;
	while (s->turn < VERBS_SPECIAL_TURN && s->state == HCA_QPS_ERR && recv_flush(qp))
		;
	special_flush(qp);
	s->more = s->turn >= VERBS_SPECIAL_TURN;
	if (s->more)
		ops_of(qp)->resume(qp->verbs);
}

void verbs_specials_resume(struct verbs *v)
{
	struct verbs_qp *qp;

	list_for_each (qp, &v->specials, special.link) {
		if (!qp->special.more)
			continue;
		qp->special.turn = 0;
		verbs_special_run(qp);
	}
}

bool verbs_specials_in_error(const struct verbs *v)
{
	const struct verbs_qp *qp;

	list_for_each (qp, &v->specials, special.link) {
		if (qp->special.state == HCA_QPS_ERR)
			return true;
	}
	return false;
}

u32 verbs_specials_poll(struct verbs *v)
{
	struct verbs_qp *qp;
	u32 n = 0, before;

	list_for_each (qp, &v->specials, special.link) {
		if (qp->special.state != HCA_QPS_ERR || qp->special.more)
			continue;
		before = qp->special.turn;
		verbs_special_run(qp);
		n += qp->special.turn - before;
	}
	return n;
}

static bool is_alive(const struct verbs_special *s)
{
	return s->state != HCA_QPS_RESET && s->state != HCA_QPS_ERR;
}

static void special_event(struct verbs_qp *qp, enum hca_event_type type)
{
	ops_of(qp)->event(qp->verbs, &(struct hca_event){ .type = type, .number = qp->qpn, .fe = qp });
}

void verbs_special_fail(struct verbs_qp *qp)
{
	if (!is_alive(&qp->special))
		return;
	qp->special.state = HCA_QPS_ERR;
	qp->special.more = true;
	ops_of(qp)->resume(qp->verbs);
	special_event(qp, HCA_EVENT_QP_FATAL);
}

void verbs_specials_cq_failed(struct verbs *v, const struct verbs_cq *cq)
{
	struct verbs_qp *qp;

	list_for_each (qp, &v->specials, special.link) {
		if (qp->send_cq == cq || qp->recv_cq == cq)
			verbs_special_fail(qp);
	}
}

/* ---- MADs from the port ---- */

/* The IPv4 or IPv6 header of RoCE v2, as the 40 bytes before a datagram have it (annex A17). */
static void ip_fill(const struct wire_port *w, u8 *dst, const struct mad_addr *from)
{
	struct wire_roce r = {
		.src = from->gid,
		.dst = w->attr.gid[from->gid_index % WIRE_PORT_GIDS],
		.tos = from->traffic_class,
		.ttl = from->hop_limit,
		.flow = from->flow_label,
	};

	wire_roce_put_network(&r, MAD_PACKET, dst);
}

static int recv_write(const struct verbs_qp *qp, const struct hca_recv_wr *wr, u32 off, const void *data, u32 len)
{
	return hca_sge_copy(qp->verbs->ctx, qp->special.pdn, wr->sge, wr->num_sge, off, (void *)(uintptr_t)data, len,
			    true);
}

/* A MAD for which the daemon has no agent. */
static void special_receive(void *ctx, const u8 *mad, const struct mad_addr *from)
{
	struct verbs_qp *qp = ctx;
	struct verbs_special *s = &qp->special;
	const struct wire_port *w = mad_port_wire(s->mad);
	union {
		struct wire_grh grh;
		u8 bytes[GRH_LEN];
	} net;
	struct hca_recv_wr wr;
	struct hca_cqe cqe = {
		.opcode = HCA_WC_RECV,
		.byte_len = GRH_LEN + MAD_SIZE,
		.src_qp = from->qpn,
		.slid = wire_port_is_ethernet(w) ? from->l2.vlan : from->lid,
		.sl = from->sl,
		.dlid_path_bits = from->path_bits,
		.pkey_index = from->pkey_index,
		.flags = from->grh ? HCA_WC_GRH : 0,
		.solicited = true,
	};
	int got;

	if (s->state < HCA_QPS_RTR || s->state == HCA_QPS_ERR || !(got = qp->verbs->ops->qp->next_recv(qp, &wr))) {
		ops_of(qp)->count(qp->verbs, VERBS_MAD_DROPPED);
		return;
	}
	if (wire_port_is_ethernet(w) && from->l2.version != 1)
		ip_fill(w, net.bytes, from);
	else
		mad_port_grh(s->mad, from, &net.grh);
	cqe.token = wr.token;
	if (got > 0 && list_bytes(wr.sge, wr.num_sge) < GRH_LEN + MAD_SIZE)
		cqe.status = HCA_WC_LOC_LEN_ERR;
	else if (got < 0 || (from->grh && recv_write(qp, &wr, 0, &net, GRH_LEN)) ||
		 recv_write(qp, &wr, GRH_LEN, mad, MAD_SIZE))
		cqe.status = HCA_WC_LOC_PROT_ERR;
	recv_done(qp);
	ops_of(qp)->count(qp->verbs, VERBS_MAD_IN);
	special_finish(qp, qp->recv_cq, &cqe);
	qp->verbs->ops->cq->flush(qp->recv_cq);
}

/* ---- creation, attributes, end ---- */

void verbs_special_add(struct verbs_qp *qp)
{
	list_init(&qp->special.link);
	list_add(&qp->verbs->specials, &qp->special.link);
	qp->send_cq->specials++;
	qp->recv_cq->specials++;
}

int verbs_special_create(struct verbs_qp *qp, const struct hca_qp_init *init)
{
	struct mad_port *mad = ops_of(qp)->mad(qp->verbs, init->port);
	struct mad_raw raw = { .ctx = qp, .recv = special_receive };
	const struct verbs_qp *other;

	if (!mad)
		return -EINVAL;
	list_for_each (other, &qp->verbs->specials, special.link) {
		if (other->special.mad == mad && other->limits.type == qp->limits.type)
			return -EBUSY;
	}
	if (hca_pd_use(qp->verbs->ctx, init->pdn, 1))
		return -EINVAL;
	qp->qpn = ops_of(qp)->qpn + (u32)qp->limits.type;
	qp->special =
		(struct verbs_special){ .mad = mad, .pdn = init->pdn, .port = init->port, .sig_all = init->sq_sig_all };
	verbs_special_add(qp);
	mad_port_set_raw(mad, (u8)qp->limits.type, &raw);
	return 0;
}

void verbs_special_remove(struct verbs_qp *qp)
{
	if (qp->special.mad) {
		mad_port_set_raw(qp->special.mad, (u8)qp->limits.type, NULL);
		hca_pd_use(qp->verbs->ctx, qp->special.pdn, -1);
	}
	list_del(&qp->special.link);
	qp->send_cq->specials--;
	qp->recv_cq->specials--;
}

void verbs_specials_remove(struct verbs *v)
{
	while (!list_empty(&v->specials))
		verbs_special_remove(list_first(&v->specials, struct verbs_qp, special.link));
}

/* No request is in progress after another: the send queue is drained as soon as it is in SQD (10.3.1). */
int verbs_special_modify(struct verbs_qp *qp, const struct hca_qp_attr *a, u32 mask)
{
	struct verbs_special *s = &qp->special;
	u8 to = mask & HCA_QP_STATE ? a->state : s->state;
	bool drained =
		to == HCA_QPS_SQD && s->state != to && mask & HCA_QP_EN_SQD_ASYNC_NOTIFY && a->en_sqd_async_notify;

	if ((mask & HCA_QP_CUR_STATE && a->cur_state != s->state) ||
	    !hca_qp_transition_ok(qp->limits.type, s->state, to, mask) ||
	    (mask & HCA_QP_PKEY_INDEX && a->pkey_index >= WIRE_PORT_PKEYS))
		return -EINVAL;
	if (mask & HCA_QP_QKEY)
		s->qkey = a->qkey;
	if (mask & HCA_QP_PKEY_INDEX)
		s->pkey_index = a->pkey_index;
	s->state = to;
	if (to == HCA_QPS_RESET)
		qp->verbs->ops->qp->reset(qp);
	verbs_special_run(qp);
	if (drained)
		special_event(qp, HCA_EVENT_SQ_DRAINED);
	return 0;
}

void verbs_special_query(const struct verbs_qp *qp, struct hca_qp_attr *a)
{
	const struct verbs_special *s = &qp->special;

	*a = (struct hca_qp_attr){
		.state = s->state,
		.cur_state = s->state,
		.qkey = s->qkey,
		.pkey_index = s->pkey_index,
		.port = s->port,
	};
}

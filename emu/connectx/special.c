// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queue pairs that the HCA does not know. QP0 and QP1: the MAD layer is in the guest's kernel, so these transfer single
 * MADs between its rings and the port; MADs for agents in the daemon are dispatched to them. UMR queue pairs execute
 * memory key requests.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/connectx/connectx_internal.h"
#include "emu/wire/hdr.h"
#include "emu/wire/mad.h"
#include "emu/wire/pma.h"
#include "emu/wire/smp.h"

#define GRH_LEN 40

/* A completion that finds no room in the CQ is lost, with the CQ: cx_special_cq_failed(). */
static void special_finish(const struct verbs_cq *cq, const struct cx_qp *qp, struct hca_cqe *cqe)
{
	struct connectx *d = cx_of(qp->qp.verbs);

	cqe->qpn = qp->qpn;
	cqe->port = d->cfg.port;
	hca_cq_complete(d->verbs.ctx, cq->cqn, cqe);
}

static void special_flush(struct verbs_cq *cq)
{
	cx_cq_ops.flush(container_of(cq, struct cx_cq, cq));
}

static u8 send_mad(struct cx_qp *qp, const struct hca_send_wr *wr)
{
	struct connectx *d = cx_of(qp->qp.verbs);
	u8 qpn = qp->service == CX_QP_SMI ? 0 : 1;
	struct mad_addr to = {
		.qpn = wr->remote_qpn,
		.qkey = wr->remote_qkey,
		.lid = wr->av.dlid,
		.pkey_index = qp->pkey_index,
		.sl = wr->av.sl,
		.path_bits = wr->av.src_path_bits,
		.grh = wr->av.grh,
		.hop_limit = wr->av.hop_limit,
		.traffic_class = wr->av.traffic_class,
		.gid_index = wr->av.sgid_index,
		.flow_label = wr->av.flow_label,
		.gid = wr->av.dgid,
	};
	u8 mad[MAD_SIZE];

	if (wr->flags & HCA_SEND_INLINE || hca_sge_copy(&cx_dma, d, wr->sge, wr->num_sge, 0, mad, sizeof(mad), false))
		return HCA_WC_LOC_PROT_ERR;
	cx_count(d, CX_CTR_MADS_OUT);
	return mad_port_send_raw(d->cfg.mad, qpn, mad, &to) ? HCA_WC_LOC_QP_OP_ERR : HCA_WC_SUCCESS;
}

/* Executes or flushes the next request. False: none left. */
static bool send_next(struct cx_qp *qp)
{
	static u8 wqe[CX_WQE_BB * (CX_WQE_BBS + 1)] __attribute__((aligned(8)));
	static struct hca_send_wr wr;
	struct hca_cqe cqe = { .opcode = HCA_WC_SEND };
	bool signaled = true;
	u16 index = 0;
	int got;

	if (qp->service == CX_QP_UMR) {
		got = cx_sq_take(qp, wqe, &index);
		cqe.token = CX_TOKEN(index, got > 0 ? wqe[3] : 0);
	} else {
		got = cx_send_pull(qp, &wr);
		cqe.token = wr.token;
		signaled = wr.flags & HCA_SEND_SIGNALED;
		qp->done = qp->pulled;
	}
	if (!got)
		return false;
	qp->turn++;
	if (qp->service == CX_QP_UMR && got > 0)
		qp->turn += cx_umr_bytes(cx_of(qp->qp.verbs), wqe, (u32)got) / CX_TURN_UMR;
	if (qp->state != HCA_QPS_RTS)
		cqe.status = HCA_WC_WR_FLUSH_ERR;
	else if (got < 0)
		cqe.status = HCA_WC_LOC_QP_OP_ERR;
	else
		cqe.status =
			qp->service == CX_QP_UMR ? cx_umr_run(cx_of(qp->qp.verbs), wqe, (u32)got) : send_mad(qp, &wr);
	/* As other queue pairs of a datagram service, those for MADs stop sending, until SQERR2RTS (10.3.1). */
	if (cqe.status && qp->state == HCA_QPS_RTS)
		qp->state = qp->service == CX_QP_UMR ? HCA_QPS_ERR : HCA_QPS_SQE;
	if (cqe.status || signaled)
		special_finish(qp->qp.send_cq, qp, &cqe);
	return true;
}

/* Flushes the next receive. False: none left. */
static bool recv_flush(struct cx_qp *qp)
{
	struct hca_cqe cqe = { .opcode = HCA_WC_RECV, .status = HCA_WC_WR_FLUSH_ERR };
	struct hca_recv_wr wr;

	if (!cx_recv_pull(qp, &wr))
		return false;
	qp->turn++;
	cqe.token = wr.token;
	special_finish(qp->qp.recv_cq, qp, &cqe);
	return true;
}

void cx_special_doorbell(struct cx_qp *qp)
{
	while (qp->turn < CX_TURN && qp->state >= HCA_QPS_RTS && send_next(qp))
		;
	while (qp->turn < CX_TURN && qp->state == HCA_QPS_ERR && recv_flush(qp))
		;
	special_flush(qp->qp.send_cq);
	special_flush(qp->qp.recv_cq);
	qp->more = qp->turn >= CX_TURN;
	if (qp->more)
		cx_resume_later(cx_of(qp->qp.verbs));
}

static bool is_alive(const struct cx_qp *qp)
{
	return qp->state != HCA_QPS_RESET && qp->state != HCA_QPS_ERR;
}

/*
 * The special queue pairs of a CQ that has overflowed enter ERR with an event, as those that the HCA knows (11.6.3).
 * Their requests are flushed by the task: one of them may be executing a request now.
 */
void cx_special_cq_failed(struct connectx *d, const struct verbs_cq *cq)
{
	u32 i;

	for (i = 0; i < CX_OWN_QPNS; i++) {
		struct cx_qp *qp = d->own[i];

		if (!qp || (qp->qp.send_cq != cq && qp->qp.recv_cq != cq) || !is_alive(qp))
			continue;
		qp->state = HCA_QPS_ERR;
		qp->more = true;
		cx_resume_later(d);
		cx_event_raise(d, &(struct hca_event){ .type = HCA_EVENT_QP_FATAL, .number = i, .fe = qp });
	}
}

/* A MAD for which the daemon has no agent. */
static void special_receive(void *ctx, const u8 *mad, const struct mad_addr *from)
{
	struct cx_qp *qp = ctx;
	struct connectx *d = cx_of(qp->qp.verbs);
	struct wire_grh grh;
	struct hca_recv_wr wr;
	struct hca_cqe cqe = {
		.opcode = HCA_WC_RECV,
		.byte_len = GRH_LEN + MAD_SIZE,
		.src_qp = from->qpn,
		.slid = from->lid,
		.sl = from->sl,
		.dlid_path_bits = from->path_bits,
		.pkey_index = from->pkey_index,
		.flags = from->grh ? HCA_WC_GRH : 0,
		.solicited = true,
	};
	int got;

	if (qp->state < HCA_QPS_RTR || qp->state == HCA_QPS_ERR || !(got = cx_recv_pull(qp, &wr))) {
		cx_count(d, CX_CTR_MADS_DROPPED);
		return;
	}
	mad_port_grh(d->cfg.mad, from, &grh);
	cqe.token = wr.token;
	if (got < 0 || (from->grh && hca_sge_copy(&cx_dma, d, wr.sge, wr.num_sge, 0, &grh, GRH_LEN, true)) ||
	    hca_sge_copy(&cx_dma, d, wr.sge, wr.num_sge, GRH_LEN, (void *)(uintptr_t)mad, MAD_SIZE, true))
		cqe.status = HCA_WC_LOC_PROT_ERR;
	cx_count(d, CX_CTR_MADS_IN);
	special_finish(qp->qp.recv_cq, qp, &cqe);
	special_flush(qp->qp.recv_cq);
}

static int special_create(struct verbs_qp *base, u8 port)
{
	struct connectx *d = cx_of(base->verbs);
	struct cx_qp *qp = cx_qp_of(base);
	u8 n = qp->service == CX_QP_SMI ? 0 : 1;
	struct mad_raw raw = { .ctx = qp, .recv = special_receive };

	base->qpn = n ? CX_QPN_GSI : CX_QPN_SMI;
	if (d->own[base->qpn])
		return -EBUSY;
	mad_port_set_raw(d->cfg.mad, n, &raw);
	return 0;
}

static void special_destroy(struct verbs_qp *base)
{
	struct connectx *d = cx_of(base->verbs);

	mad_port_set_raw(d->cfg.mad, base->qpn == CX_QPN_SMI ? 0 : 1, NULL);
	d->own[base->qpn] = NULL;
}

/* Destroys a special queue pair, by command or when the driver stops. */
void cx_special_end(struct cx_qp *qp)
{
	struct connectx *d = cx_of(qp->qp.verbs);

	if (qp->service != CX_QP_UMR) {
		special_destroy(&qp->qp);
		return;
	}
	d->own[qp->qpn] = NULL;
	qp->qp.send_cq->specials--;
	cx_qp_release(d, qp);
	free(qp);
}

int cx_special_modify(struct verbs_qp *base, const struct hca_qp_attr *a, u32 mask)
{
	struct cx_qp *qp = cx_qp_of(base);

	if ((mask & HCA_QP_STATE && a->state > HCA_QPS_ERR) ||
	    (mask & HCA_QP_PKEY_INDEX && a->pkey_index >= WIRE_PORT_PKEYS))
		return -EINVAL;
	if (mask & HCA_QP_QKEY)
		qp->qkey = a->qkey;
	if (mask & HCA_QP_PKEY_INDEX)
		qp->pkey_index = a->pkey_index;
	if (!(mask & HCA_QP_STATE))
		return 0;
	qp->state = a->state;
	if (qp->state == HCA_QPS_RESET)
		cx_wq_reset(qp);
	if (qp->state >= HCA_QPS_RTS)
		cx_special_doorbell(qp);
	return 0;
}

static void special_query(const struct verbs_qp *base, struct hca_qp_attr *a)
{
	const struct cx_qp *qp = container_of(base, const struct cx_qp, qp);

	*a = (struct hca_qp_attr){
		.state = qp->state,
		.cur_state = qp->state,
		.qkey = qp->qkey,
		.pkey_index = qp->pkey_index,
		.port = cx_of(base->verbs)->cfg.port,
	};
}

const struct verbs_special_ops cx_special_ops = {
	.create = special_create,
	.destroy = special_destroy,
	.modify = cx_special_modify,
	.query = special_query,
};

/*
 * Translates the port number in a MAD: the function's port is 1, whatever its number at the host, and the driver's MADs
 * and their responses use that. Directed-route SMPs are not translated: their port numbers are the node's.
 */
static void mad_set_port(u8 *mad, u8 from, u8 to)
{
	u8 *data = mad + MAD_GMP_DATA;
	u64 attr = wire_get(mad, MAD_ATTR_ID);

	switch (wire_get(mad, MAD_CLASS)) {
	case MAD_CLASS_SUBN_LID:
		if (attr == SMP_ATTR_PORT_INFO && wire_get(mad, MAD_ATTR_MOD) == from)
			wire_set(mad, MAD_ATTR_MOD, to);
		break;
	case MAD_CLASS_PERF:
		if (attr != PMA_ATTR_CLASS_PORT_INFO && wire_get(data, PMA_PORT_SELECT) == from)
			wire_set(data, PMA_PORT_SELECT, to);
		break;
	default:
		break;
	}
}

/* MAD_IFC: the port's agents process the MAD, as the adapter's firmware does. */
int cx_mad_ifc(struct connectx *d, const struct cx_cmd *c)
{
	u8 *mad = cx_ptr(c->out, mad_ifc_out, response_mad_packet);
	int answers;

	memcpy(mad, cx_cptr(c->in, mad_ifc_in, mad), MAD_SIZE);
	mad_set_port(mad, 1, d->cfg.port);
	answers = d->cfg.local_mad(d->cfg.arg, d->cfg.port, mad);
	mad_set_port(mad, d->cfg.port, 1);
	return answers > 0 ? CX_OK : CX_BAD_PKT;
}

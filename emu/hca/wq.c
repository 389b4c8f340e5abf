// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Work requests: the pull from the front end with the checks that need no transport, and the flush in error states. */
#include <errno.h>

#include "emu/hca/internal.h"

#define RC BIT(HCA_QPT_RC)
#define UC BIT(HCA_QPT_UC)
#define DG (BIT(HCA_QPT_UD) | BIT(HCA_QPT_SMI) | BIT(HCA_QPT_GSI))

/* Which service carries an operation (9.4, table 38), what its completion is called, whether data may be inline. */
static const struct {
	u8 types, completion;
	bool no_inline;
} operations[] = {
	[HCA_WR_RDMA_WRITE] = { RC | UC, HCA_WC_RDMA_WRITE },
	[HCA_WR_RDMA_WRITE_WITH_IMM] = { RC | UC, HCA_WC_RDMA_WRITE },
	[HCA_WR_SEND] = { RC | UC | DG, HCA_WC_SEND },
	[HCA_WR_SEND_WITH_IMM] = { RC | UC | DG, HCA_WC_SEND },
	[HCA_WR_RDMA_READ] = { RC, HCA_WC_RDMA_READ, true },
	[HCA_WR_ATOMIC_CMP_AND_SWP] = { RC, HCA_WC_COMP_SWAP, true },
	[HCA_WR_ATOMIC_FETCH_AND_ADD] = { RC, HCA_WC_FETCH_ADD, true },
	[HCA_WR_LOCAL_INV] = { RC | UC, HCA_WC_LOCAL_INV },
	[HCA_WR_BIND_MW] = { RC | UC, HCA_WC_BIND_MW },
	[HCA_WR_SEND_WITH_INV] = { RC, HCA_WC_SEND },
	[HCA_WR_REG_MR] = { RC | UC, HCA_WC_REG_MR },
	[HCA_WR_NOP] = { RC | UC | DG, HCA_WC_SEND },
};

static bool send_ok(const struct hca_qp *qp, const struct hca_send_wr *wr)
{
	if (wr->opcode >= ARRAY_SIZE(operations) || !(operations[wr->opcode].types & BIT(qp->type)))
		return false;
	if (wr->lso_mss && (wr->lso_hdr_len > HCA_MAX_INLINE || !(DG & BIT(qp->type)) || wr->opcode != HCA_WR_SEND ||
			    wr->flags & HCA_SEND_INLINE))
		return false;
	if (wr->flags & HCA_SEND_INLINE)
		return wr->inline_len <= qp->max_inline && wr->inline_len <= HCA_MAX_INLINE &&
		       !operations[wr->opcode].no_inline;
	return wr->num_sge <= qp->max_send_sge && wr->num_sge <= HCA_MAX_SGE;
}

int hca_next_send(struct hca_qp *qp, struct hca_send_wr *wr)
{
	int n;

	if (unlikely(qp->state != HCA_QPS_RTS))
		return 0;
	if (hca_faulty(qp->hca) && !hca_fault_send(qp))
		return 0;
	n = qp->ops->next_send(qp->fe, wr);
	if (likely(n == 0 || (n > 0 && send_ok(qp, wr))))
		return n;
	hca_count(qp->hca, qp->attr.port, HCA_CNT_WQE_ERR);
	return -EINVAL;
}

void hca_send_done(struct hca_qp *qp)
{
	if (qp->ops->send_done)
		qp->ops->send_done(qp->fe);
}

/* The slot of a shared queue is free as soon as its request was copied: the QPs that share it finish in any order. */
static int next_shared(struct hca_srq *srq, struct hca_recv_wr *wr)
{
	int n = srq->ops->next_recv(srq->fe, wr);

	if (!n)
		return 0;
	if (srq->ops->recv_done)
		srq->ops->recv_done(srq->fe);
	hca_srq_check_limit(srq);
	return n;
}

int hca_next_recv(struct hca_qp *qp, struct hca_recv_wr *wr)
{
	u32 max_sge = qp->srq ? qp->srq->attr.max_sge : qp->max_recv_sge;
	int n;

	if (unlikely(qp->state < HCA_QPS_RTR || qp->state == HCA_QPS_ERR))
		return 0;
	if (hca_faulty(qp->hca) && !hca_fault_recv(qp))
		return 0;
	n = qp->srq ? next_shared(qp->srq, wr) : qp->ops->next_recv(qp->fe, wr);
	if (likely(n == 0 || (n > 0 && wr->num_sge <= max_sge && wr->num_sge <= HCA_MAX_SGE)))
		return n;
	hca_count(qp->hca, qp->attr.port, HCA_CNT_WQE_ERR);
	return -EINVAL;
}

void hca_recv_done(struct hca_qp *qp)
{
	if (!qp->srq && qp->ops->recv_done)
		qp->ops->recv_done(qp->fe);
}

/* A ring in shared memory may be filled as fast as it is emptied: a visit ends after one ring's worth. */
static u32 flush_sends(struct hca_qp *qp)
{
	struct hca_send_wr wr;
	u32 n = 0;

	while (n <= qp->max_send_wr) {
		struct hca_cqe cqe = { .status = HCA_WC_WR_FLUSH_ERR };

		wr.token = 0;
		wr.opcode = HCA_WR_SEND;
		if (!qp->ops->next_send(qp->fe, &wr))
			break;
		cqe.token = wr.token;
		if (wr.opcode < ARRAY_SIZE(operations))
			cqe.opcode = operations[wr.opcode].completion;
		hca_send_done(qp);
		hca_complete_send(qp, &cqe);
		n++;
	}
	return n;
}

/* Receives of an SRQ stay: other QPs may take them. */
static u32 flush_recvs(struct hca_qp *qp)
{
	struct hca_recv_wr wr;
	u32 n = 0;

	while (!qp->srq && n <= qp->max_recv_wr) {
		struct hca_cqe cqe = { .status = HCA_WC_WR_FLUSH_ERR, .opcode = HCA_WC_RECV };

		wr.token = 0;
		if (!qp->ops->next_recv(qp->fe, &wr))
			break;
		cqe.token = wr.token;
		hca_recv_done(qp);
		hca_complete_recv(qp, &cqe);
		n++;
	}
	return n;
}

u32 hca_qp_flush_count(struct hca_qp *qp)
{
	u32 n = 0;

	if (qp->state == HCA_QPS_ERR || qp->state == HCA_QPS_SQE)
		n += flush_sends(qp);
	if (qp->state == HCA_QPS_ERR)
		n += flush_recvs(qp);
	return n;
}

void hca_qp_flush(struct hca_qp *qp)
{
	hca_qp_flush_count(qp);
}

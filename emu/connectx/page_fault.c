// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * On-demand paging: events of page faults, and PAGE_FAULT_RESUME. Of local memory the event names the request in the
 * queue, which the driver reads; of an access by R_Key the key and the address. Its token is the QPN.
 */
#include <errno.h>

#include "emu/connectx/connectx_internal.h"

/* Of the event, and of the command. */
#define TYPE_REQUESTER BIT(0)
#define TYPE_WRITE     BIT(1) /* of a requester: a response is written */
#define TYPE_RDMA      BIT(2)
#define TYPE_SHARED    0u /* receive queues: of an SRQ, of a QP */
#define TYPE_OWN       2u

static const u8 types[] = {
	[HCA_PAGE_FAULT_SEND] = TYPE_REQUESTER,
	[HCA_PAGE_FAULT_RESPONSE] = TYPE_REQUESTER | TYPE_WRITE,
	[HCA_PAGE_FAULT_RECV] = TYPE_OWN,
	[HCA_PAGE_FAULT_READ] = TYPE_RDMA,
	[HCA_PAGE_FAULT_WRITE] = TYPE_RDMA | TYPE_WRITE,
};

int cx_page_fault(void *dma, const struct hca_page_fault *f)
{
	const struct cx_srq *srq = f->srq;
	struct connectx *d = dma;
	struct cx_qp *qp = f->fe;
	struct cx_page_fault *pf = &qp->fault[hca_page_fault_requester(f->kind)];
	u32 length = (u32)min(f->len, (u64)INT32_MAX);

	if (!cx_eq_of_type(d, CX_EVENT_PAGE_FAULT))
		return -EFAULT;
	if (pf->raised) { /* from before a reset */
		pf->stale = true;
		return 0;
	}
	cx_count(d, CX_CTR_PAGE_FAULTS);
	pf->type = srq ? TYPE_SHARED : types[f->kind];
	pf->wq = srq ? srq->srq.handle : qp->qpn;
	memset(pf->data, 0, sizeof(pf->data));
	cx_set(pf->data, page_fault_event, type, pf->type);
	cx_set(pf->data, page_fault_event, number, pf->wq);
	if (pf->type & TYPE_RDMA) {
		cx_set(pf->data, rdma_page_fault_event, r_key, f->key);
		cx_set(pf->data, rdma_page_fault_event, packet_len, min(length, 0xffffu));
		cx_set(pf->data, rdma_page_fault_event, rdma_op_len, length);
		cx_set(pf->data, rdma_page_fault_event, rdma_va, f->va);
	} else {
		cx_set(pf->data, page_fault_event, wqe_token, qp->qpn);
		cx_set(pf->data, wqe_associated_page_fault_event, wqe_index, (u16)f->token);
		cx_set(pf->data, wqe_associated_page_fault_event, len, min(length, 0xffffu));
	}
	pf->raised = true;
	cx_event_page_fault(d, pf, pf->type & TYPE_RDMA ? CX_FAULT_RDMA : CX_FAULT_WQE);
	return 0;
}

/* The driver has answered the event, or will not. If it was stale, the access that waits has its own now. */
static void fault_answered(struct connectx *d, struct cx_qp *qp, u32 side, bool error)
{
	struct cx_page_fault *pf = &qp->fault[side];

	error &= !pf->stale;
	pf->raised = pf->stale = false;
	cx_events_forget(&pf->event, 1);
	hca_page_fault_resume(d->verbs.ctx, qp->qpn, side, error);
}

int cx_page_fault_resume(struct connectx *d, const struct cx_cmd *c)
{
	u8 type = (u8)cx_get(c->in, page_fault_resume_in, type);
	struct cx_qp *qp = cx_qp_get(d, (u32)cx_get(c->in, page_fault_resume_in, token));
	struct cx_page_fault *pf = qp ? &qp->fault[type & TYPE_REQUESTER] : NULL;

	if (!pf)
		return CX_BAD_RES;
	if (!pf->raised)
		return CX_BAD_RES_STATE;
	if (pf->type != type || pf->wq != cx_get(c->in, page_fault_resume_in, wq_number))
		return CX_BAD_PARAM;
	fault_answered(d, qp, type & TYPE_REQUESTER, cx_get(c->in, page_fault_resume_in, error));
	return CX_OK;
}

/* No driver will resume queue pairs: their accesses fail. */
void cx_page_faults_fail(struct connectx *d)
{
	struct cx_qp *qp;
	u32 i, side;

	table_for_each (&d->qpns, i, qp) {
		for (side = 0; side < ARRAY_SIZE(qp->fault); side++) {
			qp->fault[side].stale = false;
			if (qp->fault[side].raised)
				fault_answered(d, qp, side, true);
		}
	}
}

/* The driver does not answer page faults of an SRQ that is gone. */
void cx_page_faults_srq_destroyed(struct connectx *d, u32 srqn)
{
	struct cx_qp *qp;
	u32 i;

	table_for_each (&d->qpns, i, qp) {
		if (qp->fault[0].raised && qp->fault[0].type == TYPE_SHARED && qp->fault[0].wq == srqn)
			fault_answered(d, qp, 0, false);
	}
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Responder errors (IBTA 9.9): response, completion status, counter, and the next state of the queue pair, by error and
 * service.
 */
#include "rxe/respond.h"

enum service {
	SERVICE_RC,
	SERVICE_UC,
	SERVICE_UD,
	SERVICES
};

enum resp_action {
	RESP_RNR,  /* RNR NAK: the requester sends the packet again (9.7.5.2.8) */
	RESP_DROP, /* no answer: UC drops the rest of the message, UD the datagram (9.8) */
	RESP_ERROR /* RC: a NAK, the last response. The QP goes to ERR with the affiliated event (11.6.3) */
};

#define UNCOUNTED -1

/*
 * @nak: syndrome code; @recv: the pulled receive completes with it; SUCCESS: it stays pulled, or is flushed with the
 * QP.
 */
struct resp_answer {
	enum resp_action action;
	int counter;
	u8 nak;
	enum hca_wc_status recv;
	enum hca_event_type event;
};

static const struct resp_answer answers[RXE_RESP_ERRORS][SERVICES] = {
	/* No receive is posted: 9.7.5.2.8, 9.8. */
	[RXE_RESP_NO_RECV] = {
		{ RESP_RNR, HCA_CNT_SEND_RNR_ERR },
		{ RESP_DROP, UNCOUNTED },
		{ RESP_DROP, HCA_CNT_UD_DROPPED },
	},
	/* Opcode sequence, operation not enabled, length of a packet or of an RDMA WRITE, too many READs: 9.7.4.1. */
	[RXE_RESP_INVALID] = {
		{ RESP_ERROR, HCA_CNT_REMOTE_INV_REQ_ERR, WIRE_NAK_INVALID_REQUEST, HCA_WC_LOC_QP_OP_ERR,
		  HCA_EVENT_QP_REQ_ERR },
		{ RESP_DROP, HCA_CNT_REMOTE_INV_REQ_ERR },
	},
	/* R_Key, rights, range: 9.7.4.1. */
	[RXE_RESP_ACCESS] = {
		{ RESP_ERROR, HCA_CNT_REMOTE_ACCESS_ERR, WIRE_NAK_REMOTE_ACCESS, HCA_WC_LOC_ACCESS_ERR,
		  HCA_EVENT_QP_ACCESS_ERR },
		{ RESP_DROP, HCA_CNT_REMOTE_ACCESS_ERR },
	},
	/* The R_Key of a SEND with Invalidate: class J of 9.9.6.3, without a NAK. */
	[RXE_RESP_INVALIDATE] = {
		{ RESP_ERROR, HCA_CNT_REMOTE_ACCESS_ERR, .recv = HCA_WC_LOC_ACCESS_ERR, .event = HCA_EVENT_QP_ACCESS_ERR },
	},
	/* The receive is too short: 11.6.2, local length error. */
	[RXE_RESP_LENGTH] = {
		{ RESP_ERROR, HCA_CNT_REMOTE_INV_REQ_ERR, WIRE_NAK_INVALID_REQUEST, HCA_WC_LOC_LEN_ERR,
		  HCA_EVENT_QP_REQ_ERR },
		{ RESP_DROP, UNCOUNTED, .recv = HCA_WC_LOC_LEN_ERR },
		{ RESP_DROP, UNCOUNTED, .recv = HCA_WC_LOC_LEN_ERR },
	},
	/* An L_Key of the receive: 11.6.2, local protection error. */
	[RXE_RESP_PROTECTION] = {
		{ RESP_ERROR, UNCOUNTED, WIRE_NAK_REMOTE_OP, HCA_WC_LOC_PROT_ERR, HCA_EVENT_QP_FATAL },
		{ RESP_ERROR, UNCOUNTED, .recv = HCA_WC_LOC_PROT_ERR, .event = HCA_EVENT_QP_FATAL },
		{ RESP_DROP, UNCOUNTED, .recv = HCA_WC_LOC_PROT_ERR },
	},
	/* The receive is malformed, and has completed in error: 11.6.2, local QP operation error. */
	[RXE_RESP_RECV] = {
		{ RESP_ERROR, UNCOUNTED, WIRE_NAK_REMOTE_OP, .event = HCA_EVENT_QP_FATAL },
		{ RESP_ERROR, UNCOUNTED, .event = HCA_EVENT_QP_FATAL },
		{ RESP_DROP, HCA_CNT_UD_DROPPED },
	},
	/* The key is valid, but its memory cannot be read or written: 9.7.5.2, remote operational error. */
	[RXE_RESP_MEMORY] = {
		{ RESP_ERROR, UNCOUNTED, WIRE_NAK_REMOTE_OP, .event = HCA_EVENT_QP_FATAL },
		{ RESP_ERROR, UNCOUNTED, .event = HCA_EVENT_QP_FATAL },
		{ RESP_ERROR, UNCOUNTED, .event = HCA_EVENT_QP_FATAL },
	},
};

void rxe_resp_rnr(struct rxe_qp *rq)
{
	rxe_resp_count(rq, HCA_CNT_SEND_RNR_ERR);
	rq->resp.nak = WIRE_AETH_RNR_NAK | rq->qp->attr.min_rnr_timer;
	rq->resp.nak_sent = rq->resp.rnr_sent = true;
	rxe_dirty(rq);
}

/*
 * RESP_ERROR: the QP drops all further requests. It goes to ERR when the responses to earlier requests and the NAK have
 * been sent (9.7.4.1): the requester completes the earlier requests, and fails this one.
 */
void rxe_resp_fail_at(struct rxe_qp *rq, enum rxe_resp_error error, u32 psn)
{
	const struct resp_answer *a = &answers[error][rxe_is_reliable(rq)          ? SERVICE_RC
						      : rq->qp->type == HCA_QPT_UC ? SERVICE_UC
										   : SERVICE_UD];

	if (rq->resp.failing && wire_psn_diff(psn, rq->resp.fail_psn) >= 0)
		return;
	if (a->action == RESP_RNR) {
		rxe_resp_rnr(rq);
		return;
	}
	if (a->counter != UNCOUNTED)
		rxe_resp_count(rq, (enum hca_counter)a->counter);
	if (rq->resp.recv_pulled && a->recv != HCA_WC_SUCCESS) {
		struct hca_cqe cqe = { .status = (u8)a->recv, .opcode = HCA_WC_RECV };

		rxe_recv_complete(rq, &cqe);
	}
	rxe_dirty(rq);
	if (a->action == RESP_DROP) {
		rq->resp.last_op = RXE_LAST_OP_NONE;
		rq->resp.recv_off = 0; /* a receive that stays pulled is that of the next message */
		rq->resp.uc_drop = true;
		return;
	}
	rq->resp.nak = a->nak ? RXE_NAK(a->nak) : 0;
	rq->resp.failing = true;
	rq->resp.fail_psn = psn;
	rq->resp.fail_event = (int)a->event;
	rxe_resource_cancel(rq, psn);
}

void rxe_resp_fail(struct rxe_qp *rq, enum rxe_resp_error error)
{
	rxe_resp_fail_at(rq, error, rq->resp.epsn);
}

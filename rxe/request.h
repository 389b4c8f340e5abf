/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requester (IBTA 9.7.5, 9.8): declarations shared by wqe.c, requester.c, retry.c, response.c, read.c, ud_send.c. */
#ifndef MUSLIN_RXE_REQUEST_H
#define MUSLIN_RXE_REQUEST_H

#include "rxe/rxe_internal.h"

static inline struct rxe_wqe *rxe_wqe_at(const struct rxe_qp *rq, u32 i)
{
	return &((struct rxe_wqe *)rq->req.wq.wqes)[i % HCA_SQ_WQES];
}

static inline u32 rxe_wqe_slot(const struct rxe_qp *rq, const struct rxe_wqe *w)
{
	return (u32)(w - (const struct rxe_wqe *)rq->req.wq.wqes);
}

static inline u32 rxe_req_mtu(const struct rxe_qp *rq)
{
	const struct wire_port *port = hca_port(rq->qp->hca, rq->qp->attr.port);

	return wire_mtu_bytes(rq->qp->type == HCA_QPT_UD ? port->attr.mtu_active : rq->qp->attr.path_mtu);
}

/* wqe.c */
bool rxe_wqes_pull(struct rxe_qp *rq); /* false: none posted */
/* Zero-copy: a pointer to bytes @off.. of the message; NULL: they have to be copied, or the message is short. */
const u8 *rxe_wqe_direct(struct rxe_qp *rq, const struct rxe_wqe *w, u32 off, u32 len);
void rxe_wqes_loaded(struct rxe_qp *rq);                    /* the moves of requests load_first..load_end are done */
void rxe_wqe_release(struct hca_qp *qp, struct hca_wqe *w); /* of struct hca_sq */
/* The oldest request fails with @status; later requests are flushed (10.8.2: RC goes to ERR, UC and UD to SQE). */
void rxe_req_fail(struct rxe_qp *rq, u8 status);

/* requester.c: retransmits a READ for the @n response packets from packet @at on */
void rxe_req_retransmit_read(struct rxe_qp *rq, struct rxe_wqe *w, u32 at, u32 n);

/* response.c */
void rxe_req_progress(struct rxe_qp *rq, u32 una); /* PSNs before @una are acknowledged */
/* PSNs up to @psn are acknowledged. False: a response to an earlier READ or atomic is missing, it is retransmitted. */
bool rxe_req_acked(struct rxe_qp *rq, u32 psn);

/* read.c */
struct rxe_wqe *rxe_read_oldest(const struct rxe_qp *rq); /* the oldest outstanding READ or atomic; NULL: none */
u32 rxe_read_expected(const struct rxe_qp *rq, const struct rxe_wqe *w); /* PSN of the next response */
/* With the expected PSN. */
void rxe_read_response(struct rxe_qp *rq, struct rxe_wqe *w, struct wire_packet *p, const struct wire_opcode *op);
/* A response with another PSN. */
void rxe_read_out_of_order(struct rxe_qp *rq, const struct wire_packet *p, const struct wire_opcode *op, u32 psn);
void rxe_read_done(struct rxe_qp *rq, struct rxe_wqe *w);
/*
 * Advances over responses that were received out of order, up to the next missing one. Call after each expected
 * response.
 */
void rxe_read_advance(struct rxe_qp *rq);
bool rxe_read_retransmit(struct rxe_qp *rq); /* requests the missing responses once more; false: none is missing */
void rxe_read_reset(struct rxe_qp *rq);

/* retry.c */
void rxe_retry_arm(struct rxe_qp *rq); /* the retransmission timer of the oldest packet */
/* Go-back-n: sending continues from @psn, which belongs to an outstanding request or follows the last one. */
void rxe_retry_from(struct rxe_qp *rq, u32 psn);
/* Retransmits the lost packet @psn, or fails the QP when the retry counter is exhausted. */
void rxe_retry(struct rxe_qp *rq, u32 psn);
/* The outstanding SEND or WRITE that @psn belongs to. */
struct rxe_wqe *rxe_retransmit_find(const struct rxe_qp *rq, u32 psn);
/*
 * An ACK or a NAK has advanced rq->req.una: completes a selective retransmission, which shows whether the peer supports
 * it.
 */
void rxe_retransmit_acked(struct rxe_qp *rq, bool nak);

#endif

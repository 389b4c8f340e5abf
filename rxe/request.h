/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the requester share: wqe.c, requester.c, retry.c, response.c, ud_send.c. */
#ifndef MUSLIN_RXE_REQUEST_H
#define MUSLIN_RXE_REQUEST_H

#include "rxe/internal.h"

static inline struct rxe_wqe *rxe_wqe_at(const struct rxe_qp *rq, u32 i)
{
	return &rq->wqes[i % RXE_WQES];
}

static inline bool rxe_wqe_reads(const struct rxe_wqe *w)
{
	return w->opcode >= HCA_WR_RDMA_READ && w->opcode <= HCA_WR_ATOMIC_FETCH_AND_ADD;
}

static inline bool rxe_wqe_local(const struct rxe_wqe *w)
{
	return w->opcode == HCA_WR_LOCAL_INV || w->opcode == HCA_WR_BIND_MW || w->opcode >= HCA_WR_REG_MR;
}

static inline u32 rxe_req_mtu(const struct rxe_qp *rq)
{
	const struct wire_port *port = hca_port(rq->qp->hca, rq->qp->attr.port);

	return wire_mtu_bytes(rq->qp->type == HCA_QPT_UD ? port->attr.mtu_active : rq->qp->attr.path_mtu);
}

/* wqe.c */
bool rxe_wqes_pull(struct rxe_qp *rq); /* false: there is none */
/* Bytes @off.. of the message where they are, of one that is long enough for that; NULL: they have to be read. */
const u8 *rxe_wqe_direct(struct rxe_qp *rq, const struct rxe_wqe *w, u32 off, u32 len);
void rxe_wqe_release(struct rxe_wqe *w);
/* The oldest request fails with @status; what follows is flushed (10.8.2 and table 58: RC errs, UC and UD stop sending). */
void rxe_req_fail(struct rxe_qp *rq, u8 status);

/* retry.c */
void rxe_retry_arm(struct rxe_qp *rq); /* the timer of the oldest packet */
/* Goes on sending from @psn, which lies in an outstanding request or right behind the last one. */
void rxe_retry_from(struct rxe_qp *rq, u32 psn);
/* The same for what is lost, which counts: the QP fails when it has happened too often. */
void rxe_retry(struct rxe_qp *rq, u32 psn);
/* The SEND or WRITE that @psn belongs to, which was sent and is not acknowledged. */
struct rxe_wqe *rxe_retry_find(const struct rxe_qp *rq, u32 psn);
/* Everything before rq->una is acknowledged, by an ACK or a NAK: what does that tell of a packet that was sent again alone? */
void rxe_retry_settle(struct rxe_qp *rq, bool nak);

#endif

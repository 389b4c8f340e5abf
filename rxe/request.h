/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the requester share: wqe.c, requester.c, retry.c, response.c, read.c, ud_send.c. */
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

/* requester.c: asks again for @n packets of a READ, from its packet @at on */
void rxe_req_ask(struct rxe_qp *rq, const struct rxe_wqe *w, u32 at, u32 n);

/* response.c */
void rxe_req_progress(struct rxe_qp *rq, u32 una); /* everything before @una is acknowledged */
/* Everything up to @psn is. False: a READ or atomic below it has no response, and is asked for again. */
bool rxe_req_acked(struct rxe_qp *rq, u32 psn);

/* read.c */
struct rxe_wqe *rxe_read_oldest(const struct rxe_qp *rq); /* READ or atomic that waits for its response; NULL: none */
u32 rxe_read_expected(const struct rxe_qp *rq, const struct rxe_wqe *w);         /* PSN of the response that is next */
void rxe_read_take(struct rxe_qp *rq, struct rxe_wqe *w, struct wire_packet *p); /* it is this one */
/* A response that is not the expected one, while some is. */
void rxe_read_ahead(struct rxe_qp *rq, const struct wire_packet *p, const struct wire_opcode *op, u32 psn);
void rxe_read_done(struct rxe_qp *rq, struct rxe_wqe *w);
bool rxe_read_again(struct rxe_qp *rq); /* asks for the gap once more; false: there is none */
void rxe_read_reset(struct rxe_qp *rq);

/* retry.c */
void rxe_retry_arm(struct rxe_qp *rq); /* the timer of the oldest packet */
/* Goes on sending from @psn, which lies in an outstanding request or right behind the last one. */
void rxe_retry_from(struct rxe_qp *rq, u32 psn);
/* The same for what is lost; the QP fails when that has happened in too many time-outs. */
void rxe_retry(struct rxe_qp *rq, u32 psn);
/* The SEND or WRITE that @psn belongs to, which was sent and is not acknowledged. */
struct rxe_wqe *rxe_retry_find(const struct rxe_qp *rq, u32 psn);
/* Everything before rq->una is acknowledged, by an ACK or a NAK: what does that tell of a packet that was sent again alone? */
void rxe_retry_settle(struct rxe_qp *rq, bool nak);

#endif

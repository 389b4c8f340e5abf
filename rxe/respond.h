/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the responder share: responder.c, resource.c. */
#ifndef MUSLIN_RXE_RESPOND_H
#define MUSLIN_RXE_RESPOND_H

#include "rxe/internal.h"

#define RXE_NAK(code)      (WIRE_AETH_NAK | (code))
#define RXE_ACK_NO_CREDITS 31 /* end-to-end flow control is not used: RNR NAKs pace the requester (9.7.7.2.4) */

static inline u32 rxe_resp_mtu(const struct rxe_qp *rq)
{
	return wire_mtu_bytes(rq->qp->attr.path_mtu);
}

static inline void rxe_resp_count(const struct rxe_qp *rq, enum hca_counter c)
{
	hca_count(rq->qp->hca, rq->qp->attr.port, c);
}

/* responder.c: the QP fails, by a NAK with @syndrome; @event as of hca_qp_fail(), @recv_status of a receive that was pulled, 0: none. */
void rxe_resp_fail(struct rxe_qp *rq, u8 syndrome, int event, u8 recv_status);
void rxe_resp_fail_access(struct rxe_qp *rq);
void rxe_resp_fail_invalid(struct rxe_qp *rq, u8 recv_status);

/* resource.c: the request whose turn it is. False: it was refused, and the QP has failed. */
bool rxe_resource_read(struct rxe_qp *rq, struct wire_packet *p, u32 psn);
bool rxe_resource_atomic(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn);
void rxe_resource_again(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op,
			u32 psn);                /* a duplicate */
bool rxe_resource_owed(const struct rxe_qp *rq); /* responses are to be sent, which go before any ACK */
void rxe_resource_reset(struct rxe_qp *rq);

#endif

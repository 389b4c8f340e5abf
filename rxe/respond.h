/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Responder (IBTA 9.7.4, 9.8): declarations shared by responder.c, resp_error.c, resource.c, ud.c. */
#ifndef MUSLIN_RXE_RESPOND_H
#define MUSLIN_RXE_RESPOND_H

#include "rxe/rxe_internal.h"

#define RXE_NAK(code)      (WIRE_AETH_NAK | (code))
#define RXE_ACK_NO_CREDITS 31 /* end-to-end flow control is not used: RNR NAKs pace the requester (9.7.7) */

static inline u32 rxe_resp_mtu(const struct rxe_qp *rq)
{
	return wire_mtu_bytes(rq->qp->attr.path_mtu);
}

static inline void rxe_resp_count(const struct rxe_qp *rq, enum hca_counter c)
{
	hca_qp_count(rq->qp, c);
}

/* resp_error.c: responder errors by a table of error and transport service. */
enum rxe_resp_error {
	RXE_RESP_NO_RECV = 1, /* no receive is posted */
	RXE_RESP_INVALID,     /* opcode sequence, length, too many READs */
	RXE_RESP_ACCESS,      /* rights, R_Key, range */
	RXE_RESP_INVALIDATE,  /* the R_Key that a SEND invalidates */
	RXE_RESP_LENGTH,      /* a SEND is longer than the receive */
	RXE_RESP_PROTECTION,  /* the L_Key of the receive */
	RXE_RESP_RECV,        /* the receive is malformed, and already completed in error */
	RXE_RESP_MEMORY,      /* the key is valid, but its memory cannot be read or written */
	RXE_RESP_ERRORS
};
void rxe_resp_fail(struct rxe_qp *rq, enum rxe_resp_error error);
void rxe_resp_fail_at(struct rxe_qp *rq, enum rxe_resp_error error, u32 psn); /* of RC: the NAK has @psn */

/* RNR NAK for the expected packet, sent by the commit: the requester retransmits it. */
void rxe_resp_rnr(struct rxe_qp *rq);
/*
 * A duplicate of a request whose moves are pending. Sends that RNR NAK only after the Local CA ACK Delay of this
 * adapter or the local ACK timeout. Before, the ACK is the answer (requesters with an RTT estimate retransmit early):
 * an RNR NAK ends a requester with an RNR retry count of 0, which expects no RNR NAK for WRITEs.
 */
void rxe_resp_late(struct rxe_qp *rq, u32 psn);

/* resource.c: a request with the expected PSN. False: it failed, or is to be retransmitted. */
bool rxe_resource_read(struct rxe_qp *rq, struct wire_packet *p, u32 psn);
bool rxe_resource_atomic(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn);
void rxe_resource_duplicate(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn);
bool rxe_resource_pending(const struct rxe_qp *rq);   /* responses are to be sent, before any ACK */
void rxe_resource_cancel(struct rxe_qp *rq, u32 psn); /* cancels pending responses from @psn on */
void rxe_resource_reset(struct rxe_qp *rq);

#endif

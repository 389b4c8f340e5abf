// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Responder: out-of-order receive buffer of RC queue pairs on Ethernet (IBTA 9.7.5.1.2). The responder keeps packets
 * after a missing PSN until the missing packet arrives, and sends one PSN sequence error NAK for it. A go-back-n
 * requester retransmits all packets from there on; they are acknowledged or are duplicates. After a selective
 * retransmission of the missing packet all buffered packets are acknowledged at once.
 */
#include <stdlib.h>

#include "rxe/rxe_internal.h"

static struct wire_packet **ooo_slot(struct rxe_qp *rq, u32 psn)
{
	return &rq->resp.ooo[psn % RXE_OOO_PACKETS];
}

/* The payload is copied: its receive buffer is longer, and shared with other packets. */
static struct wire_packet *ooo_copy(const struct wire_packet *p)
{
	struct wire_packet *c = wire_packet_clone(p);

	if (!c || !c->len || wire_packet_unshare(c))
		return c;
	wire_packet_free(c);
	return NULL;
}

static struct wire_packet *ooo_remove(struct rxe_qp *rq, u32 psn)
{
	struct wire_packet *p = *ooo_slot(rq, psn);

	*ooo_slot(rq, psn) = NULL;
	if (!p)
		return NULL;
	rq->resp.nooo--;
	rq->rxe->ooo_bytes -= p->len;
	return p;
}

/* A packet that does not fit is dropped: the requester retransmits it after the next NAK. */
void rxe_ooo_insert(struct rxe_qp *rq, const struct wire_packet *p, u32 psn)
{
	if (wire_psn_diff(psn, rq->resp.epsn) >= RXE_OOO_PACKETS || rq->rxe->ooo_bytes + p->len > RXE_OOO_BYTES) {
		hca_qp_count(rq->qp, HCA_CNT_OOO_DISCARDED);
		return;
	}
	if (!rq->resp.ooo)
		rq->resp.ooo = calloc(RXE_OOO_PACKETS, sizeof(struct wire_packet *));
	if (!rq->resp.ooo || *ooo_slot(rq, psn))
		return;
	*ooo_slot(rq, psn) = ooo_copy(p);
	if (!*ooo_slot(rq, psn))
		return;
	rq->resp.nooo++;
	rq->rxe->ooo_bytes += p->len;
}

struct wire_packet *rxe_ooo_next(struct rxe_qp *rq)
{
	return likely(!rq->resp.nooo) ? NULL : ooo_remove(rq, rq->resp.epsn);
}

void rxe_ooo_discard(struct rxe_qp *rq, u32 psn, u32 n)
{
	struct wire_packet *p;

	for (n = min(n, (u32)RXE_OOO_PACKETS); n && rq->resp.nooo; n--, psn = wire_psn_add(psn, 1)) {
		p = ooo_remove(rq, psn);
		if (p)
			wire_packet_free(p);
	}
}

void rxe_ooo_flush(struct rxe_qp *rq)
{
	rxe_ooo_discard(rq, 0, RXE_OOO_PACKETS);
}

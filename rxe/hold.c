// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a responder holds on Ethernet, where packets get lost: those behind a gap, until it is filled. The gap is answered as
 * 9.7.5.1.2 wants it, by one NAK, and a requester that begins again from there (go-back-n) finds its packets acknowledged or
 * duplicates. One that sends the missing packet alone finds all of them acknowledged at once.
 */
#include <stdlib.h>

#include "rxe/internal.h"

static struct wire_packet **slot(struct rxe_qp *rq, u32 psn)
{
	return &rq->held[psn % RXE_HOLD];
}

/* With a payload of its own: the buffer that it lies in is longer, and shared. */
static struct wire_packet *copy(const struct wire_packet *p)
{
	struct wire_packet *c = wire_packet_clone(p);

	if (!c || !c->len || wire_packet_unshare(c))
		return c;
	wire_packet_free(c);
	return NULL;
}

static struct wire_packet *take_out(struct rxe_qp *rq, u32 psn)
{
	struct wire_packet *p = *slot(rq, psn);

	*slot(rq, psn) = NULL;
	if (!p)
		return NULL;
	rq->nheld--;
	rq->rxe->ahead -= p->len;
	return p;
}

/* What is refused comes again: it is asked for when what is missing before it has come. */
void rxe_hold_ahead(struct rxe_qp *rq, const struct wire_packet *p, u32 psn)
{
	if (wire_psn_diff(psn, rq->epsn) >= RXE_HOLD || rq->rxe->ahead + p->len > RXE_HOLD_BYTES) {
		hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_HOLD_REFUSED);
		return;
	}
	if (!rq->held)
		rq->held = calloc(RXE_HOLD, sizeof(struct wire_packet *));
	if (!rq->held || *slot(rq, psn))
		return;
	*slot(rq, psn) = copy(p);
	if (!*slot(rq, psn))
		return;
	rq->nheld++;
	rq->rxe->ahead += p->len;
}

struct wire_packet *rxe_hold_take(struct rxe_qp *rq)
{
	return likely(!rq->nheld) ? NULL : take_out(rq, rq->epsn);
}

void rxe_hold_skip(struct rxe_qp *rq, u32 psn, u32 n)
{
	struct wire_packet *p;

	for (n = min(n, (u32)RXE_HOLD); n && rq->nheld; n--, psn = wire_psn_add(psn, 1)) {
		p = take_out(rq, psn);
		if (p)
			wire_packet_free(p);
	}
}

void rxe_hold_drop(struct rxe_qp *rq)
{
	rxe_hold_skip(rq, 0, RXE_HOLD);
}

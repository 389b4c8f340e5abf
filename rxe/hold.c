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

	if (!c || !c->len)
		return c;
	wire_buf_put(c->buf);
	c->buf = NULL;
	c->flags |= WIRE_PKT_BORROWED;
	if (wire_packet_own(c))
		return c;
	wire_packet_free(c);
	return NULL;
}

void rxe_hold_ahead(struct rxe_qp *rq, const struct wire_packet *p, u32 psn)
{
	if (wire_psn_diff(psn, rq->epsn) >= RXE_HOLD)
		return;
	if (!rq->held)
		rq->held = calloc(RXE_HOLD, sizeof(struct wire_packet *));
	if (!rq->held || *slot(rq, psn))
		return;
	*slot(rq, psn) = copy(p);
	rq->nheld += *slot(rq, psn) != NULL;
}

struct wire_packet *rxe_hold_take(struct rxe_qp *rq)
{
	struct wire_packet *p;

	if (likely(!rq->nheld))
		return NULL;
	p = *slot(rq, rq->epsn);
	*slot(rq, rq->epsn) = NULL;
	rq->nheld -= p != NULL;
	return p;
}

void rxe_hold_skip(struct rxe_qp *rq, u32 psn, u32 n)
{
	for (n = min(n, (u32)RXE_HOLD); n && rq->nheld; n--, psn = wire_psn_add(psn, 1)) {
		if (!*slot(rq, psn))
			continue;
		wire_packet_free(*slot(rq, psn));
		*slot(rq, psn) = NULL;
		rq->nheld--;
	}
}

void rxe_hold_drop(struct rxe_qp *rq)
{
	rxe_hold_skip(rq, 0, RXE_HOLD);
}

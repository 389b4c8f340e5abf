// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What comes back to READs. Their responses need not come in one piece: where packets get lost, those behind a gap are put where they
 * belong, too, and only the gap is asked for again, by a READ of that part (a duplicate may be one of a part, 9.7.5.1.5). One gap at
 * a time, the first: a kernel's rxe takes no duplicate that begins before the latest one.
 */
#include <stdlib.h>

#include "rxe/request.h"

#define AHEAD 32768u /* PSNs behind the expected one that are looked at; a power of two */

struct rxe_wqe *rxe_read_oldest(const struct rxe_qp *rq)
{
	u32 i;

	for (i = rq->wq_tail; i != rq->wq_head; i++) {
		struct rxe_wqe *w = rxe_wqe_at(rq, i);

		if (w->state == WQE_POSTED)
			return NULL;
		if (w->state == WQE_SENT && rxe_wqe_reads(w))
			return w;
	}
	return NULL;
}

/* The READ that has @psn and waits for it. */
static struct rxe_wqe *find(const struct rxe_qp *rq, u32 psn)
{
	u32 i;

	for (i = rq->wq_tail; i != rq->wq_head; i++) {
		struct rxe_wqe *w = rxe_wqe_at(rq, i);
		s32 into = wire_psn_diff(psn, w->first_psn);

		if (w->state == WQE_POSTED || into < 0)
			return NULL;
		if (w->state == WQE_SENT && into < (s32)w->npkts)
			return w->opcode == HCA_WR_RDMA_READ ? w : NULL;
	}
	return NULL;
}

u32 rxe_read_expected(const struct rxe_qp *rq, const struct rxe_wqe *w)
{
	return wire_psn_add(w->first_psn, w->got / rxe_req_mtu(rq));
}

/* Bytes of its packet that begins at @off. */
static u32 length_at(const struct rxe_qp *rq, const struct rxe_wqe *w, u32 off)
{
	return min(rxe_req_mtu(rq), w->length - off);
}

/* Which packets are there */

static u64 *word(const struct rxe_qp *rq, u32 psn)
{
	return &rq->ahead[psn % AHEAD / 64];
}

static bool is_there(const struct rxe_qp *rq, u32 psn)
{
	return rq->nahead && *word(rq, psn) & BIT_ULL(psn % 64);
}

static void forget(struct rxe_qp *rq, u32 psn)
{
	if (!is_there(rq, psn))
		return;
	*word(rq, psn) &= ~BIT_ULL(psn % 64);
	rq->nahead--;
}

void rxe_read_reset(struct rxe_qp *rq)
{
	if (rq->nahead)
		memset(rq->ahead, 0, AHEAD / 8);
	rq->nahead = 0;
	rq->asked = false;
}

/* How many packets from @psn on are missing, of @most. */
static u32 gap(const struct rxe_qp *rq, u32 psn, u32 most)
{
	u32 n = 0;

	while (n < most && !is_there(rq, wire_psn_add(psn, n)))
		n++;
	return n;
}

/* Asking again */

/* For the gap that begins with what is expected. */
static void ask_for_gap(struct rxe_qp *rq, const struct rxe_wqe *w)
{
	u32 at = w->got / rxe_req_mtu(rq), psn = wire_psn_add(w->first_psn, at), n = gap(rq, psn, w->npkts - at);

	rq->asked = true;
	rq->asked_to = wire_psn_add(psn, n);
	rxe_req_ask(rq, w, at, n);
}

/* The same as a retry; if nothing is behind the gap, for all of the rest. */
static void ask(struct rxe_qp *rq, const struct rxe_wqe *w)
{
	if (!rq->nahead || w->opcode != HCA_WR_RDMA_READ || !rq->retries) {
		rxe_retry(rq, rxe_read_expected(rq, w));
		return;
	}
	hca_count(rq->qp->hca, rq->qp->attr.port, HCA_CNT_COMPLETER_RETRY);
	rq->retries--;
	ask_for_gap(rq, w);
}

bool rxe_read_again(struct rxe_qp *rq)
{
	const struct rxe_wqe *w = rxe_read_oldest(rq);

	rq->asked = false;
	if (!rq->nahead || !w || w->opcode != HCA_WR_RDMA_READ || rxe_read_expected(rq, w) != rq->una)
		return false;
	ask_for_gap(rq, w);
	return true;
}

/* Placing */

u32 rxe_req_place(struct rxe_qp *rq, u32 psn, u32 n, u32 len, u8 **at)
{
	const struct rxe_wqe *w = rq->wqes && rq->qp->state >= HCA_QPS_RTS ? rxe_read_oldest(rq) : NULL;

	if (!w || w->opcode != HCA_WR_RDMA_READ || w->length - w->got <= len || psn != rxe_read_expected(rq, w) ||
	    wire_psn_diff(psn, rq->una) < 0)
		return 0;
	n = gap(rq, psn, min(n, (w->length - w->got - 1) / len));
	if (!n)
		return 0;
	*at = rxe_sges_direct(rq, w->sge, w->num_sge, w->got, n * len, HCA_ACCESS_LOCAL_WRITE);
	return *at ? n : 0;
}

static bool in_place(struct rxe_qp *rq, const struct rxe_wqe *w, u32 off, const struct wire_packet *p)
{
	return p->flags & WIRE_PKT_BORROWED &&
	       p->data == rxe_sges_direct(rq, w->sge, w->num_sge, off, p->len, HCA_ACCESS_LOCAL_WRITE);
}

/* The payload to its place, @off of the message. 0, or an hca_key_error. */
static int put(struct rxe_qp *rq, const struct rxe_wqe *w, u32 off, const struct wire_packet *p)
{
	int err;

	if (!p->len || in_place(rq, w, off, p))
		return 0;
	err = rxe_sges_span(rq->qp, w->sge, w->num_sge, off, p->len, HCA_ACCESS_LOCAL_WRITE, (void *)(uintptr_t)p->data,
			    true, rq);
	if (err)
		return err;
	rxe_keep_payload(rq->rxe, p);
	rq->rxe->wr_bytes += p->len;
	rxe_dirty(rq);
	return 0;
}

void rxe_read_done(struct rxe_qp *rq, struct rxe_wqe *w)
{
	w->state = WQE_DONE;
	if (rq->rd_out)
		rq->rd_out--;
	rxe_req_progress(rq, wire_psn_add(w->first_psn, w->npkts));
	rxe_dirty(rq);
	rxe_req_kick(rq);
}

/* The packet that was expected is there. */
static void step(struct rxe_qp *rq, struct rxe_wqe *w)
{
	u32 psn = rxe_read_expected(rq, w);

	forget(rq, psn);
	if (rq->asked && wire_psn_diff(psn, rq->asked_to) >= -1)
		rq->asked = false;
	w->got += length_at(rq, w, w->got);
	if (w->got == w->length) {
		rxe_read_done(rq, w);
		return;
	}
	rxe_req_progress(rq, rxe_read_expected(rq, w));
	rxe_dirty(rq);
}

/* Goes on over what is there already, up to the next gap. */
static void go_on(struct rxe_qp *rq)
{
	struct rxe_wqe *w;
	u32 psn;

	while (rq->nahead && (w = rxe_read_oldest(rq))) {
		psn = rxe_read_expected(rq, w);
		if (!is_there(rq, psn)) {
			if (!rq->asked && rq->psn == rq->max_psn)
				ask(rq, w);
			return;
		}
		if (psn != rq->una && !rxe_req_acked(rq, wire_psn_add(psn, WIRE_PSN_MASK)))
			return;
		step(rq, w);
	}
}

void rxe_read_take(struct rxe_qp *rq, struct rxe_wqe *w, struct wire_packet *p)
{
	if (p->len != length_at(rq, w, w->got)) {
		rxe_req_fail(rq, HCA_WC_BAD_RESP_ERR);
		return;
	}
	if (put(rq, w, w->got, p)) {
		rxe_req_fail(rq, HCA_WC_LOC_PROT_ERR);
		return;
	}
	step(rq, w);
	go_on(rq);
}

/* What is wrong with it is found when it comes in its turn. */
static void put_ahead(struct rxe_qp *rq, const struct wire_packet *p, u32 psn)
{
	struct rxe_wqe *w = find(rq, psn);
	u32 off = w ? (u32)wire_psn_diff(psn, w->first_psn) * rxe_req_mtu(rq) : 0;

	if (!w || is_there(rq, psn) || p->len != length_at(rq, w, off))
		return;
	if (!rq->ahead)
		rq->ahead = calloc(AHEAD / 64, sizeof(u64));
	if (!rq->ahead || put(rq, w, off, p))
		return;
	*word(rq, psn) |= BIT_ULL(psn % 64);
	rq->nahead++;
}

void rxe_read_ahead(struct rxe_qp *rq, const struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	struct rxe_wqe *w = rxe_read_oldest(rq);
	s32 far = wire_psn_diff(psn, rxe_read_expected(rq, w));

	if (far <= 0)
		return;
	if (rq->win.on && far < (s32)AHEAD && op->flags & WIRE_OPF_READ)
		put_ahead(rq, p, psn);
	if (rq->psn != rq->max_psn || rq->win.gap || rq->asked)
		return;
	rq->win.gap = rq->win.on; /* more of the same flight will come */
	rxe_window_lost(rq);
	ask(rq, w);
}

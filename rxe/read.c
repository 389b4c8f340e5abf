// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requester: READ responses (IBTA 9.7.5.1), with out-of-order receive and partial READ retransmission on Ethernet.
 * Responses behind a missing PSN are written to memory, too, and only the missing responses are requested again, by a
 * duplicate READ of that part (9.7.5.1). Only the first missing range is requested at a time: the kernel's rxe ignores
 * a duplicate that begins before the latest.
 */
#include <stdlib.h>

#include "rxe/request.h"

#define READ_OOO_PSNS \
	32768u /* range of PSNs after the expected one in which out-of-order responses are accepted; a power of two */

struct rxe_wqe *rxe_read_oldest(const struct rxe_qp *rq)
{
	u32 i;

	for (i = rq->req.wq.tail; i != rq->req.wq.head; i++) {
		struct rxe_wqe *w = rxe_wqe_at(rq, i);

		if (w->wr.state == HCA_WQE_POSTED)
			return NULL;
		if (w->wr.state == HCA_WQE_SENT && hca_wqe_reads(&w->wr))
			return w;
	}
	return NULL;
}

/* The outstanding READ whose response contains @psn. */
static struct rxe_wqe *read_find(const struct rxe_qp *rq, u32 psn)
{
	u32 i;

	for (i = rq->req.wq.tail; i != rq->req.wq.head; i++) {
		struct rxe_wqe *w = rxe_wqe_at(rq, i);
		s32 into = wire_psn_diff(psn, w->first_psn);

		if (w->wr.state == HCA_WQE_POSTED || into < 0)
			return NULL;
		if (w->wr.state == HCA_WQE_SENT && into < (s32)w->npkts)
			return w->wr.opcode == HCA_WR_RDMA_READ ? w : NULL;
	}
	return NULL;
}

u32 rxe_read_expected(const struct rxe_qp *rq, const struct rxe_wqe *w)
{
	return wire_psn_add(w->first_psn, w->got / rxe_req_mtu(rq));
}

/* Payload length of the response packet at byte @off. */
static u32 read_length_at(const struct rxe_qp *rq, const struct rxe_wqe *w, u32 off)
{
	return min(rxe_req_mtu(rq), w->wr.length - off);
}

/*
 * May packet @at of the response have this opcode and length? FIRST, MIDDLE, LAST in this order, or ONLY (9.7.5.1).
 * Responses to requests of parts begin and end within the message.
 */
static bool read_response_valid(const struct rxe_qp *rq, const struct rxe_wqe *w, u32 at, const struct wire_packet *p,
				const struct wire_opcode *op)
{
	bool first = !at, last = at + 1 == w->npkts, start = op->flags & WIRE_OPF_START, end = op->flags & WIRE_OPF_END;

	return p->len == read_length_at(rq, w, at * rxe_req_mtu(rq)) && (start == first || (!first && w->resent)) &&
	       (end == last || (!last && w->resent));
}

/* Bitmap of out-of-order responses */

static u64 *read_ooo_word(const struct rxe_qp *rq, u32 psn)
{
	return &rq->req.read_ooo[psn % READ_OOO_PSNS / 64];
}

static bool read_ooo_received(const struct rxe_qp *rq, u32 psn)
{
	return rq->req.nread_ooo && *read_ooo_word(rq, psn) & BIT_ULL(psn % 64);
}

static void read_ooo_clear(struct rxe_qp *rq, u32 psn)
{
	if (!read_ooo_received(rq, psn))
		return;
	*read_ooo_word(rq, psn) &= ~BIT_ULL(psn % 64);
	rq->req.nread_ooo--;
}

void rxe_read_reset(struct rxe_qp *rq)
{
	if (rq->req.nread_ooo)
		memset(rq->req.read_ooo, 0, READ_OOO_PSNS / 8);
	rq->req.nread_ooo = 0;
	rq->req.read_retransmit = false;
}

/* How many packets from @psn on are missing, up to @max. */
static u32 read_missing(const struct rxe_qp *rq, u32 psn, u32 max)
{
	u32 n = 0;

	while (n < max && !read_ooo_received(rq, wire_psn_add(psn, n)))
		n++;
	return n;
}

/* Partial READ retransmission */

/* Requests the missing range that begins with the expected response. */
static void read_retransmit_missing(struct rxe_qp *rq, struct rxe_wqe *w)
{
	u32 at = w->got / rxe_req_mtu(rq), psn = wire_psn_add(w->first_psn, at),
	    n = read_missing(rq, psn, w->npkts - at);

	rq->req.read_retransmit = true;
	rq->req.read_retransmit_end = wire_psn_add(psn, n);
	rxe_req_retransmit_read(rq, w, at, n);
}

/* As read_retransmit_missing(), counted as a retry; without out-of-order responses, for the whole rest. */
static void read_retry(struct rxe_qp *rq, struct rxe_wqe *w)
{
	if (!rq->req.nread_ooo || w->wr.opcode != HCA_WR_RDMA_READ || !rq->req.retries) {
		rxe_retry(rq, rxe_read_expected(rq, w));
		return;
	}
	hca_qp_count(rq->qp, HCA_CNT_COMPLETER_RETRY);
	rq->req.retries--;
	read_retransmit_missing(rq, w);
}

bool rxe_read_retransmit(struct rxe_qp *rq)
{
	struct rxe_wqe *w = rxe_read_oldest(rq);

	rq->req.read_retransmit = false;
	if (!rq->req.nread_ooo || !w || w->wr.opcode != HCA_WR_RDMA_READ || rxe_read_expected(rq, w) != rq->req.una)
		return false;
	read_retransmit_missing(rq, w);
	return true;
}

/* Receive */

u32 rxe_req_zcopy(struct rxe_qp *rq, u32 psn, u32 n, u32 len, u8 **at)
{
	const struct rxe_wqe *w = rq->req.wq.wqes && rq->qp->state >= HCA_QPS_RTS ? rxe_read_oldest(rq) : NULL;

	if (!w || w->wr.opcode != HCA_WR_RDMA_READ || w->wr.length - w->got <= len || psn != rxe_read_expected(rq, w) ||
	    wire_psn_diff(psn, rq->req.una) < 0)
		return 0;
	n = read_missing(rq, psn, min(n, (w->wr.length - w->got - 1) / len));
	if (!n)
		return 0;
	*at = rxe_sges_direct(rq, w->wr.sge, w->wr.num_sge, w->got, n * len, HCA_ACCESS_LOCAL_WRITE);
	return *at ? n : 0;
}

/* Writes the payload to byte @off of the message, unless zero-copy receive has done so. 0, or an hca_key_error. */
static int read_payload_write(struct rxe_qp *rq, const struct rxe_wqe *w, u32 off, const struct wire_packet *p)
{
	if (!p->len || (p->flags & WIRE_PKT_ZCOPY &&
			p->data == rxe_sges_direct(rq, w->wr.sge, w->wr.num_sge, off, p->len, HCA_ACCESS_LOCAL_WRITE)))
		return 0;
	rxe_dirty(rq);
	return rxe_response_write(rq, w, off, rxe_bytes_of(p));
}

void rxe_read_done(struct rxe_qp *rq, struct rxe_wqe *w)
{
	w->wr.state = HCA_WQE_DONE;
	if (rq->req.rd_out)
		rq->req.rd_out--;
	rxe_req_progress(rq, wire_psn_add(w->first_psn, w->npkts));
	rxe_dirty(rq);
	rxe_req_kick(rq);
}

/* The expected response was received. */
static void read_step(struct rxe_qp *rq, struct rxe_wqe *w)
{
	u32 psn = rxe_read_expected(rq, w);

	read_ooo_clear(rq, psn);
	if (rq->req.read_retransmit && wire_psn_diff(psn, rq->req.read_retransmit_end) >= -1)
		rq->req.read_retransmit = false;
	w->got += read_length_at(rq, w, w->got);
	if (w->got == w->wr.length) {
		rxe_read_done(rq, w);
		return;
	}
	rxe_req_progress(rq, rxe_read_expected(rq, w));
	rxe_dirty(rq);
}

void rxe_read_advance(struct rxe_qp *rq)
{
	struct rxe_wqe *w;
	u32 psn;

	while (rq->req.nread_ooo && (w = rxe_read_oldest(rq))) {
		psn = rxe_read_expected(rq, w);
		if (!read_ooo_received(rq, psn)) {
			if (!rq->req.read_retransmit && rq->req.psn == rq->req.max_psn)
				read_retry(rq, w);
			return;
		}
		if (psn != rq->req.una && !rxe_req_acked(rq, wire_psn_add(psn, WIRE_PSN_MASK)))
			return;
		read_step(rq, w);
	}
}

void rxe_read_response(struct rxe_qp *rq, struct rxe_wqe *w, struct wire_packet *p, const struct wire_opcode *op)
{
	if (!read_response_valid(rq, w, w->got / rxe_req_mtu(rq), p, op)) {
		rxe_req_fail(rq, HCA_WC_BAD_RESP_ERR);
		return;
	}
	if (read_payload_write(rq, w, w->got, p)) {
		rxe_req_fail(rq, HCA_WC_LOC_PROT_ERR);
		return;
	}
	read_step(rq, w);
	rxe_read_advance(rq);
}

/* Ignores an invalid response: it counts as missing, and the error is found when its retransmission is received. */
static void read_ooo_write(struct rxe_qp *rq, const struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	struct rxe_wqe *w = read_find(rq, psn);
	u32 at = w ? (u32)wire_psn_diff(psn, w->first_psn) : 0;

	if (!w || read_ooo_received(rq, psn) || !read_response_valid(rq, w, at, p, op))
		return;
	if (!rq->req.read_ooo)
		rq->req.read_ooo = calloc(READ_OOO_PSNS / 64, sizeof(u64));
	if (!rq->req.read_ooo || read_payload_write(rq, w, at * rxe_req_mtu(rq), p))
		return;
	*read_ooo_word(rq, psn) |= BIT_ULL(psn % 64);
	rq->req.nread_ooo++;
}

void rxe_read_out_of_order(struct rxe_qp *rq, const struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	struct rxe_wqe *w = rxe_read_oldest(rq);
	s32 distance = wire_psn_diff(psn, rxe_read_expected(rq, w));

	if (distance <= 0)
		return;
	if (rq->req.cwnd.on && distance < (s32)READ_OOO_PSNS && op->flags & WIRE_OPF_READ)
		read_ooo_write(rq, p, op, psn);
	/* The other responses of this flight report the same loss, and count no retry. */
	if (rq->req.psn != rq->req.max_psn || rq->req.read_retransmit || rxe_cwnd_loss_known(rq, psn))
		return;
	rxe_cwnd_lost(rq);
	read_retry(rq, w);
}

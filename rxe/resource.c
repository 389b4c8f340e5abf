// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* READs and atomics of a responder: what it owes, in the order of PSNs, and what it remembers in case it is asked again. */
#include <stdlib.h>

#include "rxe/respond.h"

static struct rxe_resource *res_at(const struct rxe_qp *rq, u32 i)
{
	return &rq->res[i % RXE_RESOURCES];
}

static void forget_owed(struct rxe_qp *rq)
{
	rq->res_head = rq->res_next;
	rq->again_tail = rq->again_head;
}

bool rxe_resource_owed(const struct rxe_qp *rq)
{
	return rq->res_next != rq->res_head || rq->again_tail != rq->again_head;
}

static struct rxe_resource *resource_add(struct rxe_qp *rq, u32 psn, u32 npkts)
{
	struct rxe_resource *r = res_at(rq, rq->res_head);

	if (rq->res_head - rq->res_tail == RXE_RESOURCES) {
		if (rq->res_next == rq->res_tail)
			rq->res_next++;
		rq->res_tail++;
		wire_buf_put(r->chunk);
	}
	rq->res_head++;
	*r = (struct rxe_resource){ .first_psn = psn, .npkts = npkts };
	return r;
}

bool rxe_resource_read(struct rxe_qp *rq, struct wire_packet *p, u32 psn)
{
	const struct wire_reth *h = rxe_eth(p, WIRE_ETH_RETH);
	u64 va = be64_to_cpu(h->va);
	u32 rkey = be32_to_cpu(h->rkey), len = be32_to_cpu(h->dmalen), mtu = rxe_resp_mtu(rq);
	struct rxe_resource *r;

	if (rq->res_head - rq->res_next >= max(rq->qp->attr.max_dest_rd_atomic, (u8)1) || len > 1u << 31) {
		rxe_resp_fail_invalid(rq, 0);
		return false;
	}
	if (!(rq->qp->attr.access & HCA_ACCESS_REMOTE_READ) ||
	    rxe_remote_move(rq, rkey, va, len, HCA_ACCESS_REMOTE_READ, NULL, false)) {
		rxe_resp_fail_access(rq);
		return false;
	}
	r = resource_add(rq, psn, len ? (len + mtu - 1) / mtu : 1);
	r->va = va;
	r->rkey = rkey;
	r->length = len;
	rq->epsn = wire_psn_add(psn, r->npkts);
	if (unlikely(rq->nheld))
		rxe_hold_skip(rq, wire_psn_add(psn, 1), r->npkts - 1);
	rq->msn = (rq->msn + 1) & 0xffffff;
	r->msn = rq->msn;
	rxe_req_kick(rq);
	return true;
}

bool rxe_resource_atomic(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	const struct wire_atomic_eth *h = rxe_eth(p, WIRE_ETH_ATOMIC);
	u64 va = be64_to_cpu(h->va), orig;
	u32 rkey = be32_to_cpu(h->rkey);
	bool swap = op->op == WIRE_RC_CMP_SWAP;
	struct rxe_resource *r;
	struct hca_span span[HCA_MAX_SPANS];

	if ((va & 7) || rq->res_head - rq->res_next >= max(rq->qp->attr.max_dest_rd_atomic, (u8)1)) {
		rxe_resp_fail_invalid(rq, 0);
		return false;
	}
	if (!(rq->qp->attr.access & HCA_ACCESS_REMOTE_ATOMIC) ||
	    hca_key_remote(rq->qp, rkey, va, 8, HCA_ACCESS_REMOTE_ATOMIC, span) < 0) {
		rxe_resp_fail_access(rq);
		return false;
	}
	hca_batch_run(rq->rxe->wr); /* what came before is in memory first */
	if (hca_atomic(span, swap, be64_to_cpu(swap ? h->compare : h->swap_add), be64_to_cpu(h->swap_add), &orig)) {
		rxe_resp_fail(rq, RXE_NAK(WIRE_NAK_REMOTE_OP), HCA_EVENT_QP_FATAL, 0);
		return false;
	}
	r = resource_add(rq, psn, 1);
	r->atomic = true;
	r->orig = orig;
	rq->epsn = wire_psn_add(psn, 1);
	rq->msn = (rq->msn + 1) & 0xffffff;
	r->msn = rq->msn;
	rxe_req_kick(rq);
	return true;
}

static void again_add(struct rxe_qp *rq, u32 index, u32 at, u32 n)
{
	if (!rq->again)
		rq->again = calloc(RXE_RESOURCES, sizeof(*rq->again));
	if (!rq->again || rq->again_head - rq->again_tail == RXE_RESOURCES)
		return; /* as if lost */
	rq->again[rq->again_head++ % RXE_RESOURCES] = (struct rxe_again){ index, at, n };
}

/* The oldest part that is to be answered again; NULL: none. What it is part of may be forgotten since. */
static struct rxe_again *again_next(struct rxe_qp *rq)
{
	for (; rq->again_tail != rq->again_head; rq->again_tail++) {
		struct rxe_again *a = &rq->again[rq->again_tail % RXE_RESOURCES];

		if (a->index - rq->res_tail < rq->res_head - rq->res_tail)
			return a;
	}
	return NULL;
}

/*
 * A READ or atomic that was asked for before: READs are executed again, atomics replayed (9.7.5.1.5). A READ may ask for a part,
 * which its PSN and length tell. What is owed yet is not sent twice: a part that ends with it is where to go on from.
 */
void rxe_resource_again(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	const struct wire_reth *h = op->flags & WIRE_OPF_READ ? rxe_eth(p, WIRE_ETH_RETH) : NULL;
	u32 i, n, at, mtu = rxe_resp_mtu(rq);

	for (i = rq->res_tail; i != rq->res_head; i++) {
		struct rxe_resource *r = res_at(rq, i);
		bool owed = i - rq->res_next < rq->res_head - rq->res_next;

		at = (u32)wire_psn_diff(psn, r->first_psn);
		if (at >= r->npkts || r->atomic != !h)
			continue;
		n = h ? min((max(be32_to_cpu(h->dmalen), 1u) - 1) / mtu + 1, r->npkts - at) : 1;
		if ((h && be32_to_cpu(h->rkey) != r->rkey) || (owed && at >= r->sent))
			return;
		if (owed && at + n == r->npkts)
			r->sent = at;
		else
			again_add(rq, i, at, owed ? min(n, r->sent - at) : n);
		rxe_req_kick(rq);
		return;
	}
}

/* Makes bytes @off.. of the response stand in r->chunk. False: they cannot be read, and the QP has failed or will. */
static bool read_chunk(struct rxe_qp *rq, struct rxe_resource *r, u32 at, u32 off, u32 len)
{
	if (r->chunk && off >= r->chunk_off && off + len <= r->chunk_off + r->chunk->size)
		return true;
	wire_buf_put(r->chunk);
	r->chunk = wire_buf_alloc(min(RXE_CHUNK, r->length - off));
	r->chunk_off = off;
	if (!r->chunk ||
	    rxe_remote_move(rq, r->rkey, r->va + off, r->chunk->size, HCA_ACCESS_REMOTE_READ, r->chunk->data, false)) {
		rq->epsn = wire_psn_add(r->first_psn, at);
		forget_owed(rq); /* it will not come */
		rxe_resp_fail_access(rq);
		return false;
	}
	hca_batch_run(rq->rxe->rd);
	if (rq->dma_failed) {
		rq->epsn = wire_psn_add(r->first_psn, at);
		rxe_dirty(rq);
		return false;
	}
	return true;
}

/* Its packet @at. */
static bool send_read_packet(struct rxe_qp *rq, struct rxe_resource *r, u32 at)
{
	struct hca_qp *qp = rq->qp;
	u32 mtu = rxe_resp_mtu(rq), off = at * mtu, len = min(mtu, r->length - off);
	bool first = !at, last = at + 1 == r->npkts;
	u8 opcode = first && last ? WIRE_RC_READ_RESP_ONLY
		    : first       ? WIRE_RC_READ_RESP_FIRST
		    : last        ? WIRE_RC_READ_RESP_LAST
				  : WIRE_RC_READ_RESP_MIDDLE;
	const u8 *direct;
	struct wire_packet *p;

	hca_batch_run(rq->rxe->wr); /* what was written before is read */
	direct = len ? rxe_remote_direct(rq, r->rkey, r->va + off, len, HCA_ACCESS_REMOTE_READ) : NULL;
	if (len && !direct && !read_chunk(rq, r, at, off, len))
		return false;
	p = rxe_frame(qp, &qp->attr.av, rxe_pkey(qp, qp->attr.pkey_index), opcode, qp->attr.dest_qpn,
		      wire_psn_add(r->first_psn, at), len, false, false);
	if (!p)
		return false;
	if (opcode != WIRE_RC_READ_RESP_MIDDLE)
		wire_aeth_fill(rxe_eth(p, WIRE_ETH_AETH), RXE_ACK_NO_CREDITS, r->msn);
	if (direct)
		rxe_borrow(p, direct, len);
	else if (len)
		rxe_payload(p, r->chunk, off - r->chunk_off, len);
	rxe_pace_sent(rq, qp->attr.av.static_rate, p->hdr_len + p->len);
	rxe_send(rq->rxe, qp->attr.port, p);
	return true;
}

static bool send_atomic_ack(struct rxe_qp *rq, struct rxe_resource *r)
{
	struct hca_qp *qp = rq->qp;
	struct wire_packet *p = rxe_frame(qp, &qp->attr.av, rxe_pkey(qp, qp->attr.pkey_index), WIRE_RC_ATOMIC_ACK,
					  qp->attr.dest_qpn, r->first_psn, 0, false, false);

	if (!p)
		return false;
	wire_aeth_fill(rxe_eth(p, WIRE_ETH_AETH), RXE_ACK_NO_CREDITS, r->msn);
	((struct wire_atomic_ack_eth *)rxe_eth(p, WIRE_ETH_ATOMIC_ACK))->orig = cpu_to_be64(r->orig);
	rxe_send(rq->rxe, qp->attr.port, p);
	return true;
}

static void chunk_drop(struct rxe_resource *r)
{
	wire_buf_put(r->chunk);
	r->chunk = NULL;
}

/* One response is out: of @a, if it is not NULL. */
static void response_out(struct rxe_qp *rq, struct rxe_resource *r, struct rxe_again *a)
{
	if (a) {
		a->at++;
		if (--a->n)
			return;
		rq->again_tail++;
		chunk_drop(r);
	} else if (++r->sent == r->npkts) {
		rq->res_next++;
		chunk_drop(r);
	}
}

bool rxe_resp_run(struct rxe_qp *rq)
{
	u32 n;

	for (n = 0; n < RXE_BUDGET && rxe_resource_owed(rq); n++) {
		struct rxe_again *a = again_next(rq);
		struct rxe_resource *r = res_at(rq, a ? a->index : rq->res_next);

		if (!a && rq->res_next == rq->res_head)
			break;
		if (rq->qp->state < HCA_QPS_RTR || rq->qp->state > HCA_QPS_SQE ||
		    rxe_blocked(rq->rxe, rq->qp->attr.port) || rxe_pace_wait(rq))
			return false;
		if (!(r->atomic ? send_atomic_ack(rq, r) : send_read_packet(rq, r, a ? a->at : r->sent)))
			return false;
		response_out(rq, r, a);
	}
	if (!rxe_resource_owed(rq) && (rq->ack_due || rq->nak))
		rxe_dirty(rq);
	return rxe_resource_owed(rq);
}

void rxe_resource_reset(struct rxe_qp *rq)
{
	for (; rq->res && rq->res_tail != rq->res_head; rq->res_tail++)
		wire_buf_put(res_at(rq, rq->res_tail)->chunk);
	rq->res_head = rq->res_next = rq->res_tail = 0;
	rq->again_head = rq->again_tail = 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Responder resources: responses to READs and atomics, and their replay for duplicate requests (IBTA 9.7.5.1). */
#include <errno.h>
#include <stdlib.h>

#include "emu/lib/poison.h"
#include "rxe/respond.h"

static struct rxe_resource *resource_at(const struct rxe_qp *rq, u32 i)
{
	return &rq->resp.res[i % RXE_RESOURCES];
}

static void resource_release(struct rxe_qp *rq, struct rxe_resource *r)
{
	if (r->due) /* the move of an atomic's original value, or of the chunk */
		hca_moves_forget_local(rq->qp->ctx, r, sizeof(*r));
	rxe_chunk_put(rq, r->chunk);
	poison(r, sizeof(*r));
}

static void resource_drop_newest(struct rxe_qp *rq)
{
	resource_release(rq, resource_at(rq, --rq->resp.res_head));
}

static void resource_drop_oldest(struct rxe_qp *rq)
{
	resource_release(rq, resource_at(rq, rq->resp.res_tail++));
}

void rxe_resource_cancel(struct rxe_qp *rq, u32 psn)
{
	while (rq->resp.res_head != rq->resp.res_next) {
		const struct rxe_resource *r = resource_at(rq, rq->resp.res_head - 1);

		if (wire_psn_diff(wire_psn_add(r->first_psn, r->npkts), psn) <= 0)
			break;
		resource_drop_newest(rq);
	}
}

bool rxe_resource_pending(const struct rxe_qp *rq)
{
	return rq->resp.res_next != rq->resp.res_head || rq->resp.replay_tail != rq->resp.replay_head;
}

static struct rxe_resource *resource_add(struct rxe_qp *rq, u32 psn, u32 npkts)
{
	struct rxe_resource *r = resource_at(rq, rq->resp.res_head);

	if (rq->resp.res_head - rq->resp.res_tail == RXE_RESOURCES) {
		if (rq->resp.res_next == rq->resp.res_tail)
			rq->resp.res_next++;
		resource_drop_oldest(rq);
	}
	unpoison(r, sizeof(*r));
	rq->resp.res_head++;
	*r = (struct rxe_resource){ .first_psn = psn, .npkts = npkts, .srqn = rq->resp.srqn };
	return r;
}

bool rxe_resource_read(struct rxe_qp *rq, struct wire_packet *p, u32 psn)
{
	const struct wire_reth *h = wire_packet_reth(p);
	u64 va = be64_to_cpu(h->va);
	u32 rkey = be32_to_cpu(h->rkey), len = be32_to_cpu(h->dmalen), mtu = rxe_resp_mtu(rq);
	struct rxe_resource *r;

	if (rq->resp.res_head - rq->resp.res_next >= rq->qp->attr.max_dest_rd_atomic || len > HCA_MESSAGE_MAX ||
	    rxe_packets(len, mtu) > RXE_PSNS_MAX) {
		rxe_resp_fail(rq, RXE_RESP_INVALID);
		return false;
	}
	if (rxe_remote_check(rq, rkey, va, len, HCA_ACCESS_REMOTE_READ)) {
		rxe_resp_fail(rq, RXE_RESP_ACCESS);
		return false;
	}
	r = resource_add(rq, psn, rxe_packets(len, mtu));
	r->va = va;
	r->rkey = rkey;
	r->length = len;
	rq->resp.epsn = wire_psn_add(psn, r->npkts);
	if (unlikely(rq->resp.nooo))
		rxe_ooo_discard(rq, wire_psn_add(psn, 1), r->npkts - 1);
	rq->resp.msn = (rq->resp.msn + 1) & 0xffffff;
	r->msn = rq->resp.msn;
	rxe_req_kick(rq);
	return true;
}

bool rxe_resource_atomic(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	const struct wire_atomic_eth *h = wire_packet_atomic_eth(p);
	u64 va = be64_to_cpu(h->va);
	u32 rkey = be32_to_cpu(h->rkey);
	bool swap = (op->op & WIRE_OP_MASK) == WIRE_RC_CMP_SWAP;
	struct rxe_resource *r;
	struct hca_span span[HCA_MAX_SPANS];
	int err;

	if ((va & 7) || rq->resp.res_head - rq->resp.res_next >= rq->qp->attr.max_dest_rd_atomic) {
		rxe_resp_fail(rq, RXE_RESP_INVALID);
		return false;
	}
	if (hca_key_remote(rq->qp, rkey, va, 8, HCA_ACCESS_REMOTE_ATOMIC, span) < 0) {
		rxe_resp_fail(rq, RXE_RESP_ACCESS);
		return false;
	}
	rxe_writes_run(rq->rxe); /* execute earlier writes first */
	if (rq->resp.write_failed)
		return false;
	r = resource_add(rq, psn, 1);
	r->atomic = true;
	if (rxe_writes_done(rq)) /* the response acknowledges the messages before it */
		rxe_resp_complete(rq);
	err = rxe_writes_done(rq) ? rxe_atomic(rq, span, swap, be64_to_cpu(swap ? h->compare : h->swap_add),
					       be64_to_cpu(h->swap_add), &r->orig, psn)
				  : -EBUSY;
	if (err == -EBUSY) { /* earlier writes are pending: the requester shall retransmit it when they are done */
		resource_drop_newest(rq);
		rxe_resp_rnr(rq);
		return false;
	}
	if (err && err != -EINPROGRESS) {
		resource_drop_newest(rq);
		rxe_resp_fail(rq, RXE_RESP_MEMORY);
		return false;
	}
	r->due = err ? hca_ctx_moves(rq->qp->ctx) : 0;
	rq->resp.epsn = wire_psn_add(psn, 1);
	rq->resp.msn = (rq->resp.msn + 1) & 0xffffff;
	r->msn = rq->resp.msn;
	rxe_req_kick(rq);
	return true;
}

static void replay_add(struct rxe_qp *rq, u32 index, u32 at, u32 end, bool whole)
{
	if (!rq->resp.replay)
		rq->resp.replay = calloc(RXE_RESOURCES, sizeof(*rq->resp.replay));
	if (!rq->resp.replay || rq->resp.replay_head - rq->resp.replay_tail == RXE_RESOURCES)
		return; /* handled as a lost packet */
	rq->resp.replay[rq->resp.replay_head++ % RXE_RESOURCES] = (struct rxe_replay){ index, at, at, end, whole };
}

/* The oldest replay; NULL: none. Its resource may have been dropped since. */
static struct rxe_replay *replay_next(struct rxe_qp *rq)
{
	for (; rq->resp.replay_tail != rq->resp.replay_head; rq->resp.replay_tail++) {
		struct rxe_replay *a = &rq->resp.replay[rq->resp.replay_tail % RXE_RESOURCES];

		if (a->index - rq->resp.res_tail < rq->resp.res_head - rq->resp.res_tail)
			return a;
	}
	return NULL;
}

/*
 * A duplicate READ or atomic: READs are executed again, atomics replayed (9.7.5.1). A duplicate READ may request a
 * part, by its PSN and length. Responses that are still pending are not sent twice: a duplicate up to their end moves
 * the position of the pending response back. After PSNs have wrapped, the duplicate is of the newest resource with that
 * PSN.
 */
void rxe_resource_duplicate(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op, u32 psn)
{
	const struct wire_reth *h = op->flags & WIRE_OPF_READ ? wire_packet_reth(p) : NULL;
	u32 mtu = rxe_resp_mtu(rq), i;

	for (i = rq->resp.res_head; i-- != rq->resp.res_tail;) {
		struct rxe_resource *r = resource_at(rq, i);
		bool pending = i - rq->resp.res_next < rq->resp.res_head - rq->resp.res_next;
		u32 at = (u32)wire_psn_diff(psn, r->first_psn), end;

		if (at >= r->npkts)
			continue;
		if ((rxe_pending(rq, r->due) || rxe_writes_late(rq)) && wire_psn_diff(psn, rq->resp.cpsn) <= 0)
			rxe_resp_late(rq, psn);
		if (r->atomic != !h || (h && be32_to_cpu(h->rkey) != r->rkey) || (pending && at >= r->sent))
			return;
		end = h ? (u32)min((u64)at * mtu + be32_to_cpu(h->dmalen), (u64)r->length) : 0;
		if (pending && end == r->length)
			r->sent = r->start = at;
		else
			replay_add(rq, i, at, pending ? min(end, r->sent * mtu) : end,
				   !pending || end <= r->sent * mtu);
		rxe_req_kick(rq);
		return;
	}
}

static void resource_chunk_release(struct rxe_qp *rq, struct rxe_resource *r)
{
	rxe_chunk_put(rq, r->chunk);
	r->chunk = NULL;
}

/* One response packet was sent: of the replay @a, if it is not NULL. */
static void response_sent(struct rxe_qp *rq, struct rxe_resource *r, struct rxe_replay *a)
{
	if (a) {
		if (++a->at * rxe_resp_mtu(rq) < a->end)
			return;
		rq->resp.replay_tail++;
		resource_chunk_release(rq, r);
		return;
	}
	rq->resp.cpsn = wire_psn_add(r->first_psn, ++r->sent);
	if (r->sent == r->npkts) {
		rq->resp.res_next++;
		resource_chunk_release(rq, r);
	}
}

/* Loads bytes @off.. of the response into r->chunk. 0, enum rxe_resp_error, or -EINPROGRESS. */
static int resource_chunk_load(struct rxe_qp *rq, struct rxe_resource *r, u32 off, u32 len)
{
	int err;

	if (r->failed) {
		r->failed = false;
		resource_chunk_release(rq, r);
		return RXE_RESP_MEMORY;
	}
	if (r->chunk && off >= r->chunk_off && off + len <= r->chunk_off + r->chunk->size)
		return 0;
	rxe_chunk_put(rq, r->chunk);
	r->chunk = wire_buf_alloc(min(RXE_CHUNK, r->length - off));
	if (!r->chunk)
		return RXE_RESP_MEMORY;
	r->chunk_off = off;
	err = rxe_resource_load(rq, r, r->va + off, r->chunk->size, r->chunk->data);
	if (!err || err == -EINPROGRESS)
		return err;
	r->failed = false;
	resource_chunk_release(rq, r);
	return err == -EFAULT ? RXE_RESP_MEMORY : RXE_RESP_ACCESS;
}

/* @first, @last: of the response to the request, which may be a duplicate READ of a part. */
static u8 response_opcode(bool first, bool last)
{
	if (first)
		return last ? WIRE_RC_READ_RESP_ONLY : WIRE_RC_READ_RESP_FIRST;
	return last ? WIRE_RC_READ_RESP_LAST : WIRE_RC_READ_RESP_MIDDLE;
}

/* Sends the next packet of @r, or of its replay @a. False: it cannot be sent now. */
static bool send_read_packet(struct rxe_qp *rq, struct rxe_resource *r, struct rxe_replay *a)
{
	struct hca_qp *qp = rq->qp;
	u32 mtu = rxe_resp_mtu(rq), at = a ? a->at : r->sent, off = at * mtu, end = a ? a->end : r->length;
	u32 len = min(mtu, end - off);
	bool last = off + len == end && (!a || a->whole);
	u8 opcode = response_opcode(at == (a ? a->start : r->start), last);
	const u8 *direct;
	struct wire_packet *p;
	int err = 0;

	rxe_writes_run(rq->rxe); /* a READ returns what earlier requests wrote */
	if (rq->resp.write_failed)
		return false;
	if (!rxe_writes_done(rq)) {
		rxe_stall(rq);
		return false;
	}
	rxe_resp_complete(rq); /* the response acknowledges the messages before it */
	if (rq->qp->type == HCA_QPT_XRC_TGT)
		hca_xrc_srq(rq->qp, r->srqn); /* if it was destroyed, no key is valid */
	direct = len ? rxe_remote_direct(rq, r->rkey, r->va + off, len, HCA_ACCESS_REMOTE_READ) : NULL;
	if (len && !direct)
		err = resource_chunk_load(rq, r, off, len);
	if (err == -EINPROGRESS) {
		rxe_stall(rq);
		return false;
	}
	if (err && !a)
		rxe_resp_fail_at(rq, err, wire_psn_add(r->first_psn, at));
	if (err) {
		rq->resp.replay_tail +=
			!!a; /* the first response was sent: the memory may have been deregistered since then */
		return a;
	}
	p = rxe_frame(qp, opcode, wire_psn_add(r->first_psn, at), len);
	if (!p)
		return false;
	if (opcode != WIRE_RC_READ_RESP_MIDDLE)
		wire_aeth_fill(wire_packet_aeth(p), RXE_ACK_NO_CREDITS, r->msn);
	if (direct)
		rxe_payload_zcopy(p, direct, len);
	else if (len)
		rxe_payload(p, r->chunk, off - r->chunk_off, len);
	rxe_pace_sent(rq, qp->attr.av.static_rate, p->hdr_len + p->len);
	rxe_send(rq->rxe, qp->attr.port, p);
	response_sent(rq, r, a);
	return true;
}

static bool send_atomic_ack(struct rxe_qp *rq, struct rxe_resource *r, struct rxe_replay *a)
{
	struct hca_qp *qp = rq->qp;
	struct wire_packet *p;

	if (rq->resp.write_failed) /* possibly of this request: the commit sends a NAK */
		return false;
	p = rxe_frame(qp, WIRE_RC_ATOMIC_ACK, r->first_psn, 0);
	if (!p)
		return false;
	wire_aeth_fill(wire_packet_aeth(p), RXE_ACK_NO_CREDITS, r->msn);
	wire_packet_atomic_ack_eth(p)->orig = cpu_to_be64(r->orig);
	rxe_send(rq->rxe, qp->attr.port, p);
	response_sent(rq, r, a);
	return true;
}

bool rxe_resp_run(struct rxe_qp *rq)
{
	u32 n;

	for (n = 0; n < RXE_BUDGET && rxe_resource_pending(rq); n++) {
		struct rxe_replay *a = replay_next(rq);
		struct rxe_resource *r = resource_at(rq, a ? a->index : rq->resp.res_next);

		if (!a && rq->resp.res_next == rq->resp.res_head)
			break;
		if (rxe_pending(rq, r->due)) {
			rxe_stall(rq);
			return false;
		}
		r->due = 0;
		if (rq->qp->state < HCA_QPS_RTR || rq->qp->state > HCA_QPS_SQE ||
		    rxe_blocked(rq->rxe, rq->qp->attr.port) || rxe_pace_wait(rq))
			return false;
		if (!(r->atomic ? send_atomic_ack(rq, r, a) : send_read_packet(rq, r, a)))
			return false;
	}
	if (!rxe_resource_pending(rq) && (rq->resp.ack_due || rq->resp.nak))
		rxe_dirty(rq);
	return rxe_resource_pending(rq);
}

void rxe_resource_reset(struct rxe_qp *rq)
{
	while (rq->resp.res_tail != rq->resp.res_head)
		resource_drop_oldest(rq);
	rq->resp.res_head = rq->resp.res_next = rq->resp.res_tail = 0;
	rq->resp.replay_head = rq->resp.replay_tail = 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requester: fetching of send requests and their payload; completion and failure of requests (IBTA 10.8, 11.6.2). */
#include "emu/packet/lso.h"
#include "rxe/request.h"

#define PULL_MAX   64
#define PULL_BYTES (256u << 10) /* of payload that is fetched before its first byte is sent */
#define ZCOPY_MIN  1024         /* bytes: a shorter message is copied as fast as its keys are looked up */

void rxe_wqe_release(struct hca_qp *qp, struct hca_wqe *wr)
{
	rxe_chunk_put(qp->transport, container_of(wr, struct rxe_wqe, wr)->chunk);
}

const u8 *rxe_wqe_direct(struct rxe_qp *rq, const struct rxe_wqe *w, u32 off, u32 len)
{
	if (w->chunk || w->wr.head || w->wr.length < ZCOPY_MIN || rq->qp->type == HCA_QPT_UD)
		return NULL;
	return rxe_sges_direct(rq, w->wr.sge, w->wr.num_sge, off, len, HCA_ACCESS_LOCAL_READ);
}

/* Loads the first chunk of the payload, so that many small messages share one batch of reads. */
static void wqe_load(struct rxe_qp *rq, struct rxe_wqe *w, const struct hca_send_wr *wr)
{
	u32 max = rq->qp->type == HCA_QPT_UD ? rxe_req_mtu(rq) : ~0u;
	bool in = wr->flags & HCA_SEND_INLINE && !w->wr.num_sge;
	bool atomic = hca_wqe_reads(&w->wr) && w->wr.opcode != HCA_WR_RDMA_READ, late;

	if (w->wr.length > max || rxe_packets(w->wr.length, rxe_req_mtu(rq)) > RXE_PSNS_MAX ||
	    (atomic && (w->wr.length < 8 || w->wr.remote_addr & 7))) {
		w->wr.status = HCA_WC_LOC_LEN_ERR;
		return;
	}
	if (atomic)
		w->wr.length = 8;
	if (hca_wqe_reads(&w->wr))
		return;
	/* The payload of a fenced request may be the response data of an earlier READ (10.8.3). */
	late = rxe_is_reliable(rq) && w->wr.flags & HCA_SEND_FENCE;
	if (!w->wr.length || (!in && (late || w->wr.length > RXE_CHUNK || rxe_wqe_direct(rq, w, 0, w->wr.length))))
		return;
	w->chunk = wire_buf_alloc(w->wr.length);
	if (!w->chunk)
		w->wr.status = HCA_WC_LOC_QP_OP_ERR;
	else if (in)
		memcpy(w->chunk->data, wr->inline_data, w->wr.length);
	else if (rxe_wqe_read(rq, w, 0, w->wr.length, w->chunk->data))
		w->wr.status = HCA_WC_LOC_PROT_ERR;
}

/* LSO: the headers, then the whole payload. */
static void wqe_load_lso(struct rxe_qp *rq, struct rxe_wqe *w, const struct hca_send_wr *wr)
{
	w->lso_mss = wr->lso_mss;
	w->lso_hdr = wr->lso_hdr_len;
	if (!wire_lso_valid(wr->inline_data, w->lso_hdr))
		w->wr.status = HCA_WC_LOC_QP_OP_ERR;
	else if (w->wr.length > RXE_CHUNK || w->lso_hdr + min(w->wr.length, (u32)w->lso_mss) > rxe_req_mtu(rq))
		w->wr.status = HCA_WC_LOC_LEN_ERR;
	if (w->wr.status)
		return;
	w->chunk = wire_buf_alloc(w->lso_hdr + w->wr.length);
	if (!w->chunk) {
		w->wr.status = HCA_WC_LOC_QP_OP_ERR;
		return;
	}
	memcpy(w->chunk->data, wr->inline_data, w->lso_hdr);
	if (rxe_wqe_read(rq, w, 0, w->wr.length, w->chunk->data + w->lso_hdr))
		w->wr.status = HCA_WC_LOC_PROT_ERR;
}

/*
 * Some requests may be completed already: the ACK of their first transmission arrived while they were loaded for the
 * retransmission.
 */
void rxe_wqes_loaded(struct rxe_qp *rq)
{
	u32 i;

	for (i = rq->req.load_first; i != rq->req.load_end; i++)
		if (i - rq->req.wq.tail < rq->req.wq.head - rq->req.wq.tail && unlikely(rxe_wqe_at(rq, i)->read_failed))
			rxe_wqe_at(rq, i)->wr.status = HCA_WC_LOC_PROT_ERR;
}

/* Stops after a local operation: it may register the memory of the next request, or invalidate its key (10.6.5.1). */
bool rxe_wqes_pull(struct rxe_qp *rq)
{
	static struct hca_send_wr wr;
	u32 first = rq->req.wq.head, n, bytes = 0;

	if (unlikely(hca_qp_full(rq->qp))) {
		rxe_stall(rq);
		return false;
	}

	for (n = 0; n < PULL_MAX && bytes < PULL_BYTES; n++) {
		struct hca_wqe *fetched = hca_sq_fetch(&rq->req.wq, &wr);
		struct rxe_wqe *w;

		if (!fetched)
			break;
		w = container_of(fetched, struct rxe_wqe, wr);
		w->remote_qpn = wr.remote_qpn;
		w->remote_qkey = wr.remote_qkey;
		w->remote_srqn = wr.remote_srqn;
		w->av = wr.av;
		w->lso_mss = w->lso_hdr = 0;
		w->got = w->chunk_off = 0;
		w->chunk = NULL;
		w->read_failed = w->resent = false;
		if (hca_wqe_local(&w->wr))
			break;
		if (w->wr.status)
			continue;
		if (wr.lso_mss)
			wqe_load_lso(rq, w, &wr);
		else
			wqe_load(rq, w, &wr);
		if (w->wr.status)
			hca_qp_count(rq->qp, HCA_CNT_WQE_ERR);
		bytes += w->chunk ? w->wr.length : 0;
	}
	rq->req.load_first = first;
	rq->req.load_end = rq->req.wq.head;
	if (!rxe_reads_run(rq, &rq->req.load_due))
		rxe_wqes_loaded(rq);
	return rq->req.wq.head != first;
}

/* Completing */

void rxe_req_complete_acked(struct rxe_qp *rq)
{
	if (hca_sq_complete(&rq->req.wq, rq->req.next))
		rxe_req_kick(rq);
}

void rxe_req_complete(struct rxe_qp *rq)
{
	rxe_req_complete_acked(rq);
	if (rq->req.wq.tail != rq->req.next && unlikely(rxe_wqe_at(rq, rq->req.wq.tail)->wr.state == HCA_WQE_DONE)) {
		rxe_req_fail(rq, HCA_WC_WR_FLUSH_ERR); /* with its own error */
		return;
	}
	/* Drained: all requests in progress are acknowledged, and no other begins (10.3.1). */
	if (rq->req.sqd && !rq->req.drained &&
	    (rq->req.wq.tail == rq->req.wq.head || rxe_wqe_at(rq, rq->req.wq.tail)->wr.state == HCA_WQE_POSTED)) {
		rq->req.drained = true;
		if (rq->qp->attr.en_sqd_async_notify)
			hca_qp_event(rq->qp, HCA_EVENT_SQ_DRAINED);
	}
}

static void wqes_flush(struct rxe_qp *rq, u8 status)
{
	loop_timer_cancel(&rq->req.timer);
	rq->req.load_due = 0;
	hca_sq_flush(&rq->req.wq, status);
	rq->req.next = rq->req.wq.head;
	rq->req.pkt_next = 0;
	rq->req.rd_out = 0;
	rq->req.rnr_wait = false;
	rxe_read_reset(rq);
}

void rxe_req_flush(struct rxe_qp *rq)
{
	wqes_flush(rq, HCA_WC_WR_FLUSH_ERR);
}

void rxe_req_fail(struct rxe_qp *rq, u8 status)
{
	struct hca_qp *qp = rq->qp;

	rxe_writes_run(rq->rxe);
	if (!rxe_writes_done(rq)) { /* response data of earlier READs */
		if (!rq->fail_due) {
			rq->fail_due = RXE_FAIL_REQUEST;
			rq->fail_status = status;
		}
		loop_timer_cancel(&rq->req.timer);
		rxe_dirty(rq);
		return;
	}
	wqes_flush(rq, status);
	if (rxe_is_reliable(rq))
		rxe_qp_error(rq, -1);
	else
		hca_qp_fail(qp, HCA_QPS_SQE, -1);
}

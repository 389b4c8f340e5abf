// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* UD send (IBTA 9.8): a request is one packet, or several with LSO; it completes when its last packet was sent. */
#include "emu/packet/lso.h"
#include "emu/wire/inet.h"
#include "rxe/request.h"

/* The payload of the next packet; NULL: empty, or out of memory, handled as a lost packet. */
static struct wire_buf *ud_payload(const struct rxe_qp *rq, const struct rxe_wqe *w)
{
	if (w->lso_mss)
		return wire_lso_segment(w->chunk->data, w->lso_hdr, w->wr.length, w->lso_mss, rq->req.pkt_next);
	if (w->chunk && w->wr.flags & HCA_SEND_IP_CSUM)
		wire_inet_fill(w->chunk->data, w->wr.length);
	return w->chunk ? wire_buf_get(w->chunk) : NULL;
}

static void ud_next(struct rxe_qp *rq, struct rxe_wqe *w)
{
	rq->req.psn = wire_psn_add(rq->req.psn, 1);
	rq->req.pkt_next++;
	if (w->lso_mss && rq->req.pkt_next * w->lso_mss < w->wr.length)
		return;
	w->wr.state = HCA_WQE_DONE;
	rq->req.next++;
	rq->req.pkt_next = 0;
	rxe_dirty(rq);
}

static void ud_send(struct rxe_qp *rq, struct rxe_wqe *w)
{
	struct hca_qp *qp = rq->qp;
	bool imm = w->wr.opcode == HCA_WR_SEND_WITH_IMM;
	struct wire_buf *buf = ud_payload(rq, w);
	u32 len = buf ? buf->size : 0;
	struct wire_packet *p;

	w->wr.state = HCA_WQE_SENT;
	p = rxe_frame_to(qp, &w->av, w->remote_qpn, imm ? WIRE_UD_SEND_ONLY_IMM : WIRE_UD_SEND_ONLY, rq->req.psn, len);
	if (p && w->wr.flags & HCA_SEND_SOLICITED)
		wire_bth_set_se(wire_packet_bth(p));
	ud_next(rq, w);
	if (p && len)
		rxe_payload(p, buf, 0, len);
	wire_buf_put(buf);
	if (!p)
		return;
	/* 10.2.5: a controlled Q_Key is replaced by the QP's own */
	wire_deth_fill(wire_packet_deth(p), w->remote_qkey & 0x80000000u ? qp->attr.qkey : w->remote_qkey, qp->src_qpn);
	if (imm)
		wire_packet_immdt(p)->imm = cpu_to_be32(w->wr.imm);
	if (w->remote_qpn == RXE_QPN_MULTICAST)
		rxe_ud_loop_back(rq, p, wire_packet_opcode(p));
	rxe_pace_sent(rq, w->av.static_rate, p->hdr_len + p->len);
	rxe_send(rq->rxe, qp->attr.port, p);
}

bool rxe_ud_run(struct rxe_qp *rq)
{
	u32 n;

	for (n = 0; n < RXE_BUDGET; n++) {
		struct rxe_wqe *w;

		if (rq->qp->state != HCA_QPS_RTS && !(rq->qp->state == HCA_QPS_SQD && rq->req.pkt_next))
			return false;
		if (rxe_blocked(rq->rxe, rq->qp->attr.port) || rxe_pace_wait(rq))
			return false;
		if (rq->fail_due || rxe_req_loading(rq))
			return false;
		if (rq->req.next == rq->req.wq.head && (!rxe_wqes_pull(rq) || rxe_req_loading(rq)))
			return false;
		w = rxe_wqe_at(rq, rq->req.next);
		if (w->wr.status) {
			if (rq->req.wq.tail != rq->req.next)
				rxe_req_complete(rq);
			rxe_req_fail(rq, w->wr.status);
			return false;
		}
		if (hca_wqe_local(&w->wr)) { /* NOP */
			hca_sq_run_local(&rq->req.wq, &w->wr);
			rq->req.next++;
			rxe_dirty(rq);
			continue;
		}
		ud_send(rq, w);
	}
	return true;
}

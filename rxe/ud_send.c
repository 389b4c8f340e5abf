// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Datagrams that are sent: each request is one packet, or one that is cut, and complete when all of it has left (9.8.4). */
#include "emu/wire/inet.h"
#include "emu/wire/lso.h"
#include "rxe/request.h"

static u32 ud_qkey(const struct hca_qp *qp, u32 qkey)
{
	return qkey & 0x80000000u ? qp->attr.qkey : qkey; /* 10.2.5: a controlled Q_Key is the QP's own */
}

/* The payload of the packet at the cursor; NULL: it is empty, or there is no memory and it is as good as lost. */
static struct wire_buf *ud_payload(const struct rxe_qp *rq, const struct rxe_wqe *w)
{
	if (w->lso_mss)
		return wire_lso_segment(w->chunk->data, w->lso_hdr, w->length, w->lso_mss, rq->pkt_next);
	if (w->chunk && w->flags & HCA_SEND_IP_CSUM)
		wire_inet_fill(w->chunk->data, w->length);
	return w->chunk ? wire_buf_get(w->chunk) : NULL;
}

static void ud_next(struct rxe_qp *rq, struct rxe_wqe *w)
{
	rq->psn = wire_psn_add(rq->psn, 1);
	rq->pkt_next++;
	if (w->lso_mss && rq->pkt_next * w->lso_mss < w->length)
		return;
	w->state = WQE_DONE;
	rq->wq_next++;
	rq->pkt_next = 0;
	rxe_dirty(rq);
}

static void ud_send(struct rxe_qp *rq, struct rxe_wqe *w)
{
	struct hca_qp *qp = rq->qp;
	bool imm = w->opcode == HCA_WR_SEND_WITH_IMM;
	struct wire_buf *buf = ud_payload(rq, w);
	u32 len = buf ? buf->size : 0;
	struct wire_packet *p;

	p = rxe_frame(qp, &w->av, rxe_pkey(qp, qp->attr.pkey_index), imm ? WIRE_UD_SEND_ONLY_IMM : WIRE_UD_SEND_ONLY,
		      w->remote_qpn, rq->psn, len, w->flags & HCA_SEND_SOLICITED, false);
	ud_next(rq, w);
	if (p && len)
		rxe_payload(p, buf, 0, len);
	wire_buf_put(buf);
	if (!p)
		return;
	wire_deth_fill(rxe_eth(p, WIRE_ETH_DETH), ud_qkey(qp, w->remote_qkey), qp->src_qpn);
	if (imm)
		((struct wire_immdt *)rxe_eth(p, WIRE_ETH_IMMDT))->imm = cpu_to_be32(w->imm);
	if (w->remote_qpn == RXE_QPN_MULTICAST)
		rxe_ud_loop_back(rq, p, wire_opcode(p->hdr[p->bth_off]));
	rxe_pace_sent(rq, w->av.static_rate, p->hdr_len + p->len);
	rxe_send(rq->rxe, qp->attr.port, p);
}

bool rxe_ud_run(struct rxe_qp *rq)
{
	u32 n;

	for (n = 0; n < RXE_BUDGET; n++) {
		struct rxe_wqe *w;

		if (rq->qp->state != HCA_QPS_RTS && !(rq->qp->state == HCA_QPS_SQD && rq->pkt_next))
			return false;
		if (rxe_blocked(rq->rxe, rq->qp->attr.port) || rxe_pace_wait(rq))
			return false;
		if (rq->wq_next == rq->wq_head && !rxe_wqes_pull(rq))
			return false;
		w = rxe_wqe_at(rq, rq->wq_next);
		if (w->status) {
			if (rq->wq_tail != rq->wq_next)
				rxe_req_complete(rq);
			rxe_req_fail(rq, w->status);
			return false;
		}
		ud_send(rq, w);
	}
	return true;
}

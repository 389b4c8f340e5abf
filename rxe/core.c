// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The engine's entry points: life of its queue pairs, arrival of packets, turns of those that have work. */
#include <errno.h>
#include <stdlib.h>

#include "rxe/internal.h"

static void on_commit(struct loop_task *t, struct now now)
{
	rxe_commit(container_of(t, struct rxe, commit_task));
}

/* What programs lend us they may take back as soon as the loop goes on. */
static void settle(struct rxe *rxe)
{
	u8 i;

	for (i = 1; i <= hca_nports(rxe->hca); i++) {
		struct wire_port *port = hca_port(rxe->hca, i);

		if (port->borrows)
			port->ops->settle(port);
	}
}

/* Each queue pair with work has a turn; the order is that in which they asked. */
static void on_tx(struct loop_task *t, struct now now)
{
	struct rxe *rxe = container_of(t, struct rxe, tx_task);
	struct list turn;

	list_init(&turn);
	list_splice(&turn, &rxe->work);
	while (!list_empty(&turn)) {
		struct rxe_qp *rq = list_first(&turn, struct rxe_qp, work);
		bool more;

		list_del(&rq->work);
		more = rxe_resp_run(rq);
		more |= rq->wqes && (rq->qp->type == HCA_QPT_UD ? rxe_ud_run(rq) : rxe_req_run(rq));
		if (more)
			rxe_req_kick(rq);
		else if (rq->qp->attr.port && rxe_blocked(rxe, rq->qp->attr.port) && list_empty(&rq->work))
			list_add(&rxe->blocked, &rq->work);
	}
	settle(rxe);
}

static int engine_start(struct hca *hca)
{
	struct rxe *rxe = calloc(1, sizeof(*rxe));
	u32 i;

	if (!rxe)
		return -ENOMEM;
	rxe->hca = hca;
	rxe->loop = hca_loop(hca);
	rxe->rd = hca_batch_create();
	rxe->wr = hca_batch_create();
	if (!rxe->rd || !rxe->wr) {
		hca_batch_destroy(rxe->rd);
		hca_batch_destroy(rxe->wr);
		free(rxe);
		return -ENOMEM;
	}
	list_init(&rxe->work);
	list_init(&rxe->blocked);
	list_init(&rxe->dirty);
	for (i = 0; i < RXE_PORTS; i++)
		list_init(&rxe->pending[i]);
	loop_task_init(&rxe->tx_task, on_tx);
	loop_task_init(&rxe->commit_task, on_commit);
	hca_set_transport_data(hca, rxe);
	return 0;
}

static void engine_stop(struct hca *hca)
{
	struct rxe *rxe = hca_transport_data(hca);
	u32 i;

	loop_task_cancel(&rxe->tx_task);
	loop_task_cancel(&rxe->commit_task);
	rxe_commit(rxe);
	for (i = 0; i < RXE_PORTS; i++) {
		while (!list_empty(&rxe->pending[i])) {
			struct wire_packet *p = list_first(&rxe->pending[i], struct wire_packet, link);

			list_del(&p->link);
			wire_packet_free(p);
		}
	}
	hca_batch_destroy(rxe->rd);
	hca_batch_destroy(rxe->wr);
	free(rxe);
}

static int qp_create(struct hca_qp *qp)
{
	struct rxe_qp *rq = calloc(1, sizeof(*rq));

	if (!rq)
		return -ENOMEM;
	rq->qp = qp;
	rq->rxe = hca_transport_data(qp->hca);
	rq->timer.fn = rxe_req_timer;
	list_init(&rq->work);
	list_init(&rq->dirty);
	qp->transport = rq;
	return 0;
}

static void qp_destroy(struct hca_qp *qp)
{
	struct rxe_qp *rq = qp->transport;

	hca_batch_run(rq->rxe->wr); /* nothing in the batch may name it any more */
	rxe_req_reset(rq);
	rxe_resp_reset(rq);
	list_del(&rq->work);
	list_del(&rq->dirty);
	free(rq->held);
	free(rq->ahead);
	free(rq->wqes);
	free(rq->res);
	free(rq->again);
	free(rq->comps);
	free(rq);
}

static bool rings_alloc(struct rxe_qp *rq)
{
	if (!rq->wqes)
		rq->wqes = calloc(RXE_WQES, sizeof(*rq->wqes));
	if (!rq->res && rq->qp->type == HCA_QPT_RC)
		rq->res = calloc(RXE_RESOURCES, sizeof(*rq->res));
	return rq->wqes && (rq->res || rq->qp->type != HCA_QPT_RC);
}

/* In the error state what the responder held is flushed before what was never pulled. */
static void enter_error(struct rxe_qp *rq)
{
	hca_batch_run(rq->rxe->wr);
	rxe_resp_commit(rq);
	if (rq->recv_held) {
		struct hca_cqe cqe = { .status = HCA_WC_WR_FLUSH_ERR, .opcode = HCA_WC_RECV };

		rxe_recv_complete(rq, &cqe);
		rxe_resp_commit(rq);
	}
	rxe_req_flush(rq);
	rxe_hold_drop(rq);
	rq->res_next = rq->res_head;
	rq->again_tail = rq->again_head;
	if (rq->qp->srq)
		hca_qp_event(rq->qp, HCA_EVENT_QP_LAST_WQE_REACHED);
}

void rxe_qp_error(struct rxe_qp *rq, int event)
{
	enter_error(rq);
	hca_qp_fail(rq->qp, HCA_QPS_ERR, event);
}

static void qp_modified(struct hca_qp *qp, enum hca_qp_state from, u32 mask)
{
	struct rxe_qp *rq = qp->transport;

	if (mask & HCA_QP_RQ_PSN)
		rq->epsn = qp->attr.rq_psn;
	if (mask & HCA_QP_SQ_PSN) {
		rq->psn = rq->una = rq->max_psn = qp->attr.sq_psn;
		rxe_window_reset(rq);
	}
	if (mask & HCA_QP_RETRY_CNT)
		rq->retries = qp->attr.retry_cnt;
	if (mask & HCA_QP_RNR_RETRY)
		rq->rnr_retries = qp->attr.rnr_retry;
	if (mask & HCA_QP_PATH_MIG_STATE)
		rq->mig_refused = false;
	if (qp->state == from)
		return;
	if (qp->state == HCA_QPS_RESET) {
		rxe_req_reset(rq);
		rxe_resp_reset(rq);
	} else if (qp->state == HCA_QPS_ERR) {
		enter_error(rq);
	} else if (qp->state == HCA_QPS_SQE) {
		rxe_req_flush(rq);
	} else if (qp->state == HCA_QPS_RTR || qp->state == HCA_QPS_RTS) {
		rq->sqd = rq->drained = false;
		if (!rings_alloc(rq))
			rxe_qp_error(rq, HCA_EVENT_QP_FATAL);
		else
			rxe_req_kick(rq);
	} else if (qp->state == HCA_QPS_SQD) {
		rq->sqd = true;
		rxe_dirty(rq);
	}
}

static void qp_query(struct hca_qp *qp, struct hca_qp_attr *attr)
{
	const struct rxe_qp *rq = qp->transport;

	attr->sq_draining = rq->sqd && !rq->drained;
	if (qp->state >= HCA_QPS_RTR) {
		attr->rq_psn = rq->epsn;
		attr->sq_psn = rq->psn;
	}
}

static void qp_doorbell(struct hca_qp *qp)
{
	struct rxe_qp *rq = qp->transport;

	if (rq->wqes)
		rxe_req_kick(rq);
}

static void qp_recv_doorbell(struct hca_qp *qp) {}

/* 9.6.1: is the packet one that this QP may look at? */
static bool connected_accepts(const struct hca_qp *qp, const struct wire_packet *p, const struct wire_opcode *op,
			      u8 port)
{
	if (op->transport != WIRE_TP_CNP && op->transport != (qp->type == HCA_QPT_RC ? WIRE_TP_RC : WIRE_TP_UC))
		return false;
	return rxe_path_accepts(qp->transport, p, port);
}

static void connected_receive(struct rxe *rxe, u8 port, struct wire_packet *p, const struct wire_opcode *op)
{
	struct hca_qp *qp = hca_qp_lookup(rxe->hca, wire_bth_qpn((struct wire_bth *)(p->hdr + p->bth_off)));
	struct rxe_qp *rq;

	if (!qp || qp->type == HCA_QPT_UD || qp->state < HCA_QPS_RTR || qp->state > HCA_QPS_SQE ||
	    !connected_accepts(qp, p, op, port)) {
		hca_count(rxe->hca, port, HCA_CNT_WRONG_QP);
		return;
	}
	rq = qp->transport;
	if (op->op == WIRE_CNP) {
		rxe_cc_notified(rq);
		return;
	}
	rxe_cc_received(rq, p);
	if (op->flags & WIRE_OPF_RESPONSE)
		rxe_req_response(rq, p, op);
	else
		rxe_resp_request(rq, p, op);
}

static int receive(struct hca *hca, u8 port, struct wire_packet *p)
{
	struct rxe *rxe = hca_transport_data(hca);
	const struct wire_opcode *op = wire_opcode(p->hdr[p->bth_off]);

	hca_count(hca, port, HCA_CNT_RCVD_PKTS);
	if (p->flags & WIRE_PKT_BAD_ICRC) {
		hca_count(hca, port, HCA_CNT_ICRC_ERR);
	} else if (!op || wire_bth_tver((struct wire_bth *)(p->hdr + p->bth_off))) {
		hca_count(hca, port, HCA_CNT_BAD_PACKET);
	} else if (op->transport == WIRE_TP_UD) {
		rxe_ud_receive(rxe, port, p, op);
	} else {
		connected_receive(rxe, port, p, op);
	}
	wire_packet_free(p);
	if (rxe->nkept == RXE_KEPT)
		rxe_commit(rxe);
	return 0;
}

static void port_ready(struct hca *hca, u8 port)
{
	struct rxe *rxe = hca_transport_data(hca);
	struct list *q = &rxe->pending[port - 1];

	while (!list_empty(q)) {
		struct wire_packet *p = list_first(q, struct wire_packet, link);

		list_del(&p->link);
		if (wire_port_send(hca_port(hca, port), p) == 0)
			continue;
		p->link.next = q->next; /* back to the front */
		p->link.prev = q;
		q->next->prev = &p->link;
		q->next = &p->link;
		return;
	}
	list_splice(&rxe->work, &rxe->blocked);
	loop_task_queue(rxe->loop, &rxe->tx_task);
}

const struct hca_transport rxe_transport = {
	.create = qp_create,
	.destroy = qp_destroy,
	.modified = qp_modified,
	.query = qp_query,
	.doorbell = qp_doorbell,
	.recv_doorbell = qp_recv_doorbell,
	.receive = receive,
	.place = rxe_place,
	.port_ready = port_ready,
	.start = engine_start,
	.stop = engine_stop,
};

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The InfiniBand transport's hca_transport operations: creation and states of queue pairs, packet receive, and
 * scheduling of sends.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/lib/poison.h"
#include "rxe/request.h"

static void on_commit(struct loop_task *t, struct now now)
{
	rxe_commit(container_of(t, struct rxe, commit_task));
}

/*
 * Zero-copy packets reference memory of programs, which may be unmapped before the next turn of the loop: the ports
 * flush them now.
 */
static void ports_flush_zcopy(struct rxe *rxe)
{
	u8 i;

	for (i = 1; i <= hca_nports(rxe->hca); i++) {
		struct wire_port *port = hca_port(rxe->hca, i);

		if (port->zcopy)
			port->ops->flush_zcopy(port);
	}
}

/* Round robin over the queue pairs that have work. */
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
		more |= rq->req.wq.wqes && (rq->qp->type == HCA_QPT_UD ? rxe_ud_run(rq) : rxe_req_run(rq));
		if (more)
			rxe_req_kick(rq);
		else if (rq->qp->attr.port && rxe_blocked(rxe, rq->qp->attr.port) && list_empty(&rq->work))
			list_add(&rxe->blocked, &rq->work);
	}
	ports_flush_zcopy(rxe);
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
	list_init(&rxe->commit_wait);
	list_init(&rxe->stalled);
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
	rq->req.timer.fn = rxe_req_timer;
	rq->req.wq = (struct hca_sq){ .qp = qp, .wqe_size = sizeof(struct rxe_wqe), .release = rxe_wqe_release };
	list_init(&rq->work);
	list_init(&rq->dirty);
	list_init(&rq->stalled);
	qp->transport = rq;
	return 0;
}

/* To the state of RESET. Batched and pending writes are executed; they do not refer to the queue pair any more. */
static void qp_reset(struct rxe_qp *rq)
{
	rxe_writes_run(rq->rxe);
	hca_moves_disown(rq->qp->ctx, rq);
	rq->fail_due = RXE_FAIL_NONE;
	rxe_req_reset(rq);
	rxe_resp_reset(rq);
	rq->qp->flush_deferred = rq->wrote = false;
	rq->write_due = 0;
	list_del(&rq->dirty);
	list_del(&rq->stalled);
}

static void qp_destroy(struct hca_qp *qp)
{
	struct rxe_qp *rq = qp->transport;

	qp_reset(rq);
	list_del(&rq->work);
	free(rq->resp.ooo);
	free(rq->req.read_ooo);
	hca_sq_free(&rq->req.wq);
	free(rq->resp.res);
	free(rq->resp.replay);
	free(rq->resp.comps);
	free(rq);
}

static bool qp_rings_alloc(struct rxe_qp *rq)
{
	bool responds = rq->qp->type == HCA_QPT_RC || rq->qp->type == HCA_QPT_XRC_TGT;

	if (rq->qp->type != HCA_QPT_XRC_TGT && hca_sq_alloc(&rq->req.wq))
		return false;
	if (!rq->resp.res && responds) {
		rq->resp.res = calloc(RXE_RESOURCES, sizeof(*rq->resp.res));
		poison(rq->resp.res, rq->resp.res ? RXE_RESOURCES * sizeof(*rq->resp.res) : 0);
	}
	return rq->resp.res || !responds;
}

/* Flushes the requests that the transport has pulled, before those that it has not (hca_qp_flush()). */
static void qp_enter_error(struct rxe_qp *rq)
{
	rxe_writes_run(rq->rxe);
	if (!rxe_writes_done(rq)) { /* received messages complete before the flush */
		rq->fail_due = RXE_FAIL_ERROR;
		rq->qp->flush_deferred = true;
		loop_timer_cancel(&rq->req.timer);
		rxe_dirty(rq);
		return;
	}
	rq->fail_due = RXE_FAIL_NONE;
	rxe_resp_complete(rq);
	if (rq->resp.recv_pulled) {
		struct hca_cqe cqe = { .status = HCA_WC_WR_FLUSH_ERR, .opcode = HCA_WC_RECV };

		rxe_recv_complete(rq, &cqe);
		rxe_resp_complete(rq);
	}
	rq->resp.failing = rq->resp.ack_due = false;
	rq->resp.nak = 0;
	rxe_req_flush(rq);
	rxe_ooo_flush(rq);
	rq->resp.res_next = rq->resp.res_head;
	rq->resp.replay_tail = rq->resp.replay_head;
	if (rq->qp->srq && !rq->qp->xrcd)
		hca_qp_event(rq->qp, HCA_EVENT_QP_LAST_WQE_REACHED);
}

void rxe_qp_flush(struct rxe_qp *rq)
{
	rq->qp->flush_deferred = false;
	qp_enter_error(rq);
	hca_qp_flush(rq->qp);
}

void rxe_qp_error(struct rxe_qp *rq, int event)
{
	qp_enter_error(rq);
	hca_qp_fail(rq->qp, HCA_QPS_ERR, event);
}

static void qp_modified(struct hca_qp *qp, enum hca_qp_state from, u32 mask)
{
	struct rxe_qp *rq = qp->transport;

	if (mask & HCA_QP_RQ_PSN)
		rq->resp.epsn = rq->resp.cpsn = qp->attr.rq_psn;
	if (mask & HCA_QP_SQ_PSN) {
		rq->req.psn = rq->req.una = rq->req.max_psn = qp->attr.sq_psn;
		rxe_cwnd_reset(rq);
	}
	if (mask & (HCA_QP_RETRY_CNT | HCA_QP_PATH_MIG_STATE))
		rq->req.retries = qp->attr.retry_cnt;
	if (mask & HCA_QP_RNR_RETRY)
		rq->req.rnr_retries = qp->attr.rnr_retry;
	if (mask & HCA_QP_PATH_MIG_STATE)
		rq->mig_refused = false;
	if (mask & (HCA_QP_PATH_MIG_STATE | HCA_QP_PORT))
		rxe_req_unblock(rq);
	if (qp->state == from)
		return;
	if (qp->state == HCA_QPS_RESET) {
		qp_reset(rq);
	} else if (qp->state == HCA_QPS_ERR) {
		qp_enter_error(rq);
	} else if (qp->state == HCA_QPS_SQE) {
		rxe_req_flush(rq);
	} else if (qp->state == HCA_QPS_RTR || qp->state == HCA_QPS_RTS) {
		rq->req.sqd = rq->req.drained = false;
		if (!qp_rings_alloc(rq))
			rxe_qp_error(rq, HCA_EVENT_QP_FATAL);
		else
			rxe_req_kick(rq);
	} else if (qp->state == HCA_QPS_SQD) {
		rq->req.sqd = true;
		rxe_dirty(rq);
	}
}

static void qp_query(struct hca_qp *qp, struct hca_qp_attr *attr)
{
	const struct rxe_qp *rq = qp->transport;

	attr->sq_draining = rq->req.sqd && !rq->req.drained;
	if (qp->state >= HCA_QPS_RTR) {
		attr->rq_psn = rq->resp.epsn;
		attr->sq_psn = rq->req.psn;
	}
}

static void qp_doorbell(struct hca_qp *qp)
{
	struct rxe_qp *rq = qp->transport;

	if (rq->req.wq.wqes)
		rxe_req_kick(rq);
}

/*
 * Does this opcode belong to a queue pair of this type (9.6.1.1)? XRC: requests to a target, responses to an initiator.
 */
static bool opcode_fits(const struct hca_qp *qp, const struct wire_opcode *op)
{
	if (qp->type == HCA_QPT_UD || qp->type <= HCA_QPT_GSI)
		return false;
	if (op->op == WIRE_CNP)
		return true;
	return op->transport == rxe_transport_of(qp) && !(op->flags & (qp->type == HCA_QPT_XRC_TGT   ? WIRE_OPF_RESPONSE
								       : qp->type == HCA_QPT_XRC_INI ? WIRE_OPF_REQUEST
												     : 0));
}

static void connected_receive(struct rxe *rxe, u8 port, struct wire_packet *p, const struct wire_opcode *op)
{
	struct hca_qp *qp = hca_qp_lookup(rxe->hca, wire_bth_qpn(wire_packet_bth(p)));
	struct rxe_qp *rq;

	/* transport, path and P_Key checks (9.6.1) */
	if (!qp || qp->state < HCA_QPS_RTR || qp->state > HCA_QPS_SQE || !opcode_fits(qp, op) ||
	    !rxe_path_accepts(qp->transport, p, port)) {
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
	const struct wire_opcode *op = wire_packet_opcode(p);

	hca_count(hca, port, HCA_CNT_RCVD_PKTS);
	if (p->flags & WIRE_PKT_BAD_ICRC) {
		hca_count(hca, port, HCA_CNT_ICRC_ERR);
	} else if (!op || wire_bth_tver(wire_packet_bth(p)) || !rxe_destination_valid(hca_port(hca, port), p)) {
		hca_count(hca, port, HCA_CNT_BAD_PACKET);
	} else if (op->transport == WIRE_TP_UD) {
		rxe_ud_receive(rxe, port, p, op);
	} else {
		connected_receive(rxe, port, p, op);
	}
	wire_packet_free(p);
	if (rxe->nwrite_bufs == RXE_WRITE_BUFS)
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
		if (wire_port_send(hca_port(hca, port), p) == 0) {
			rxe->npending[port - 1]--;
			continue;
		}
		list_add(q->next, &p->link); /* back to the front */
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
	.receive = receive,
	.srq_destroyed = rxe_resp_srq_destroyed,
	.zcopy = rxe_zcopy_receive,
	.port_ready = port_ready,
	.moved = rxe_moved,
	.start = engine_start,
	.stop = engine_stop,
};

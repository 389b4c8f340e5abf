// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Commit: received payload is in memory before its completion is written, and before its ACK is sent (IBTA 9.7.5.1.3,
 * 10.7.3). Runs at the end of a burst of packets for all queue pairs that are dirty; those whose writes to client
 * memory are pending wait for them.
 */
#include "rxe/rxe_internal.h"

void rxe_dirty(struct rxe_qp *rq)
{
	if (!list_empty(&rq->dirty))
		return;
	list_add(&rq->rxe->dirty, &rq->dirty);
	loop_task_queue(rq->rxe->loop, &rq->rxe->commit_task);
}

void rxe_stall(struct rxe_qp *rq)
{
	if (list_empty(&rq->stalled))
		list_add(&rq->rxe->stalled, &rq->stalled);
}

/* Moves of a client are done: retries the commits and kicks the queue pairs that wait for them. */
void rxe_moved(struct hca *hca)
{
	struct rxe *rxe = hca_transport_data(hca);

	if (!list_empty(&rxe->commit_wait)) {
		list_splice(&rxe->dirty, &rxe->commit_wait);
		loop_task_queue(rxe->loop, &rxe->commit_task);
	}
	while (!list_empty(&rxe->stalled)) {
		struct rxe_qp *rq = list_first(&rxe->stalled, struct rxe_qp, stalled);

		list_del(&rq->stalled);
		rxe_req_kick(rq);
	}
}

/* A failure that was deferred until the writes before it were in memory. */
static void fail_deferred(struct rxe_qp *rq)
{
	enum rxe_fail due = rq->fail_due;

	rq->fail_due = RXE_FAIL_NONE;
	if (due == RXE_FAIL_REQUEST)
		rxe_req_fail(rq, rq->fail_status);
	else if (due == RXE_FAIL_ERROR)
		rxe_qp_flush(rq);
}

/* A nested commit (a completion whose consumer posts) finds the dirty list empty. */
void rxe_commit(struct rxe *rxe)
{
	struct list batch;

	rxe_writes_run(rxe);
	list_init(&batch);
	list_splice(&batch, &rxe->dirty);
	while (!list_empty(&batch)) {
		struct rxe_qp *rq = list_first(&batch, struct rxe_qp, dirty);

		list_del(&rq->dirty);
		if (unlikely(!rxe_writes_done(rq))) {
			if (!rq->resp.late_since)
				rq->resp.late_since = loop_now(rxe->loop).ns;
			list_add(&rxe->commit_wait, &rq->dirty);
			continue;
		}
		if (unlikely(rq->fail_due == RXE_FAIL_ERROR)) {
			fail_deferred(rq);
			continue;
		}
		/* First: a message received in the same burst may answer an acknowledged one. */
		rxe_req_complete_acked(rq);
		rxe_resp_commit(rq);
		rxe_req_complete(rq);
		if (unlikely(rq->fail_due))
			fail_deferred(rq);
	}
	hca_flush(rxe->hca);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The iWARP transport's hca_transport operations: creation and states of queue pairs, attaching and closing of TCP
 * streams.
 */
#include <errno.h>
#include <isa-l/crc.h>
#include <stdlib.h>
#include <unistd.h>

#include "siw/siw_internal.h"

const struct siw_options siw_options_default = {
	.revision = 2, .rtr_write = true, .rtr_read = true, .start_ns = 10ull * 1000 * 1000 * 1000
};

const char *siw_counter_name(enum siw_counter c)
{
	static const char *const names[] = { SIW_COUNTERS(COUNTER_NAME) };

	return c < SIW_CTR_NUM ? names[c] : "?";
}

u64 siw_counter(struct hca *hca, enum siw_counter c)
{
	const struct siw *siw = hca_transport_data(hca);

	return c < SIW_CTR_NUM ? siw->counter[c] : 0;
}

__le32 iwarp_crc(const u8 *p, u32 len, bool used)
{
	return (__force __le32)(used ? htole32(~crc32_iscsi((u8 *)(uintptr_t)p, (int)len, ~0u)) : 0);
}

void siw_set_options(struct hca *hca, const struct siw_options *o)
{
	struct siw *siw = hca_transport_data(hca);

	siw->options = *o;
	siw_uring_destroy(siw->uring);
	siw->uring = o->uring == SIW_URING_OFF ? NULL : siw_uring_create(siw);
}

void siw_kick(struct siw_qp *sq)
{
	if (sq->fd.fd < 0)
		return;
	if (sq->siw->uring)
		siw_uring_queue_op(sq, true);
	else
		loop_task_queue(sq->siw->loop, &sq->task);
}

void siw_stall(struct siw_qp *sq)
{
	if (list_empty(&sq->stalled))
		list_add(&sq->siw->stalled, &sq->stalled);
}

void siw_watch(struct siw_qp *sq)
{
	if (sq->fd.loop)
		loop_fd_mod(&sq->fd, (sq->write_due ? 0 : EPOLLIN) | (sq->epollout ? EPOLLOUT : 0));
}

/* False: the queue pair has no stream. */
static bool stream_detach(struct siw_qp *sq)
{
	int fd = sq->fd.fd;

	if (fd < 0)
		return false;
	siw_send_unload(sq);
	siw_fault_forget(sq);
	list_del(&sq->link);
	loop_fd_del(&sq->fd);
	loop_task_cancel(&sq->task);
	siw_uring_remove(sq);
	siw_rtr_stop(sq);
	sq->fd.fd = -1;
	if (sq->reset)
		siw_socket_reset(fd);
	else
		siw_half_close(sq->siw, fd);
	return true;
}

static void owner_notify(struct siw_qp *sq, int err)
{
	siw_closed_fn *closed = sq->closed;

	sq->closed = NULL;
	if (closed)
		closed(sq->closed_ctx, err);
}

/* Completes received messages, flushes the rest, then notifies the owner of the connection. */
static void close_finish(struct siw_qp *sq, int err, int event)
{
	sq->close_due = sq->qp->flush_deferred = false;
	siw_receive_flush(sq);
	siw_send_flush(sq);
	hca_qp_fail(sq->qp, HCA_QPS_ERR, event);
	hca_flush(sq->siw->hca);
	owner_notify(sq, err);
}

void siw_qp_close(struct siw_qp *sq, int err, int event)
{
	if (!stream_detach(sq))
		return;
	if (err)
		siw_count(sq, SIW_CTR_RESET);
	siw_receive_commit(sq);
	if (!siw_send_waits(sq)) {
		close_finish(sq, err, event);
		return;
	}
	siw_stall(sq);
	sq->close_due = sq->qp->flush_deferred = true;
	sq->close_err = err;
	sq->close_event = event;
}

/* Moves are done: completes receives, and continues to receive and send. */
static void resume(struct siw_qp *sq)
{
	bool received = sq->write_due && !siw_pending(sq, sq->write_due);

	if (received)
		siw_receive_commit(sq);
	else if (sq->local_due && !siw_send_waits(sq))
		siw_send_complete(sq);
	if (sq->close_due && !siw_send_waits(sq)) {
		close_finish(sq, sq->close_err, sq->close_event);
	} else if (received && sq->fd.fd >= 0) {
		siw_watch(sq);
		siw_input_bytes(sq);
	}
	if (siw_send_waits(sq) || siw_pending(sq, sq->load_due))
		siw_stall(sq);
	if (sq->fd.fd >= 0)
		siw_kick(sq);
}

static void on_moved(struct loop_task *t, struct now now)
{
	struct siw *siw = container_of(t, struct siw, moved_task);
	struct list batch;

	list_init(&batch);
	list_splice(&batch, &siw->stalled);
	while (!list_empty(&batch)) {
		struct siw_qp *sq = list_first(&batch, struct siw_qp, stalled);

		list_del(&sq->stalled);
		resume(sq);
	}
	hca_flush(siw->hca);
}

static void moved(struct hca *hca)
{
	struct siw *siw = hca_transport_data(hca);

	if (!list_empty(&siw->stalled))
		loop_task_queue(siw->loop, &siw->moved_task);
}

static void on_fd(struct loop_fd *w, u32 events, struct now now)
{
	struct siw_qp *sq = container_of(w, struct siw_qp, fd);

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && sq->siw->uring)
		siw_uring_queue_op(sq, false);
	else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		siw_input_run(sq);
	if (sq->fd.fd >= 0 && events & EPOLLOUT)
		siw_kick(sq);
}

static void on_task(struct loop_task *t, struct now now)
{
	struct siw_qp *sq = container_of(t, struct siw_qp, task);

	if (siw_send_run(sq))
		siw_kick(sq);
	hca_flush(sq->siw->hca);
}

static int engine_start(struct hca *hca)
{
	struct siw *siw = calloc(1, sizeof(*siw));

	if (!siw)
		return -ENOMEM;
	siw->hca = hca;
	siw->loop = hca_loop(hca);
	siw->rd = hca_batch_create();
	siw->wr = hca_batch_create();
	if (!siw->rd || !siw->wr) {
		hca_batch_destroy(siw->rd);
		hca_batch_destroy(siw->wr);
		free(siw);
		return -ENOMEM;
	}
	siw->options = siw_options_default;
	siw->direct_min = SIW_DIRECT;
	list_init(&siw->conns);
	list_init(&siw->listeners);
	list_init(&siw->half_closed);
	list_init(&siw->stalled);
	list_init(&siw->paused);
	list_init(&siw->streams);
	fault_set_init(&siw->faults, &siw_fault_target, siw->loop, hca, 0);
	loop_task_init(&siw->moved_task, on_moved);
	hca_set_transport_data(hca, siw);
	return 0;
}

static void engine_stop(struct hca *hca)
{
	struct siw *siw = hca_transport_data(hca);

	loop_task_cancel(&siw->moved_task);
	fault_set_fini(&siw->faults);
	siw_conns_destroy(siw);
	siw_half_close_destroy(siw);
	siw_uring_destroy(siw->uring);
	hca_batch_destroy(siw->rd);
	hca_batch_destroy(siw->wr);
	free(siw);
}

static int qp_create(struct hca_qp *qp)
{
	struct siw_qp *sq;

	if (qp->type != HCA_QPT_RC)
		return -EOPNOTSUPP;
	sq = calloc(1, sizeof(*sq));
	if (!sq)
		return -ENOMEM;
	sq->qp = qp;
	sq->siw = hca_transport_data(qp->hca);
	sq->wq = (struct hca_sq){ .qp = qp, .wqe_size = sizeof(struct siw_wqe), .keep_inline = true };
	sq->fd = (struct loop_fd){ .fd = -1, .fn = on_fd };
	loop_task_init(&sq->task, on_task);
	list_init(&sq->want_receive);
	list_init(&sq->want_send);
	list_init(&sq->stalled);
	list_init(&sq->pause.link);
	list_init(&sq->link);
	qp->transport = sq;
	return 0;
}

/* Closes the stream without completions. No batch entry or pending move refers to the queue pair afterwards. */
static void stream_drop(struct siw_qp *sq)
{
	hca_batch_run(sq->siw->wr);
	hca_moves_disown(sq->qp->ctx, sq);
	list_del(&sq->stalled);
	sq->load_due = sq->write_due = sq->local_due = 0;
	if (stream_detach(sq) || sq->close_due)
		owner_notify(sq, 0);
	sq->close_due = sq->qp->flush_deferred = false;
}

static void buffers_free(struct siw_qp *sq)
{
	hca_sq_free(&sq->wq);
	free(sq->reads);
	free(sq->out);
	free(sq->in);
	free(sq->comps);
	sq->reads = NULL;
	sq->out = sq->in = NULL;
	sq->comps = NULL;
}

static void qp_destroy(struct hca_qp *qp)
{
	struct siw_qp *sq = qp->transport;

	stream_drop(sq);
	siw_send_reset(sq);
	buffers_free(sq);
	free(sq);
}

/*
 * SQD, which programs use for an orderly close, is CLOSING in iWARP: posted requests are sent as far as TCP accepts
 * them, the rest is flushed, and the stream ends.
 */
void siw_qp_disconnect(struct siw_qp *sq)
{
	siw_receive_commit(sq);
	siw_rtr_flush(sq);
	if (sq->fd.fd >= 0)
		(void)siw_send_run(sq);
	siw_qp_close(sq, 0, -1);
}

static void qp_modified(struct hca_qp *qp, enum hca_qp_state from, u32 mask)
{
	struct siw_qp *sq = qp->transport;

	if (qp->state == from)
		return;
	if (qp->state == HCA_QPS_RESET) {
		stream_drop(sq);
		siw_send_reset(sq);
		sq->recv_pulled = false;
		sq->ncomps = 0;
	} else if (qp->state == HCA_QPS_ERR) {
		siw_qp_close(sq, 0, -1);
	} else if (qp->state == HCA_QPS_SQD) {
		siw_qp_disconnect(sq);
	} else {
		siw_kick(sq);
	}
}

static void qp_query(struct hca_qp *qp, struct hca_qp_attr *attr) {}

static void qp_doorbell(struct hca_qp *qp)
{
	siw_kick(qp->transport);
}

static int receive(struct hca *hca, u8 port, struct wire_packet *p) /* all traffic is received by TCP */
{
	wire_packet_free(p);
	return 0;
}

static void port_ready(struct hca *hca, u8 port) {}

static int buffers_alloc(struct siw_qp *sq)
{
	sq->reads = sq->reads ?: calloc(SIW_READS, sizeof(*sq->reads));
	sq->out = sq->out ?: malloc(SIW_OUT);
	sq->in = sq->in ?: malloc(SIW_IN);
	sq->comps = sq->comps ?: calloc(SIW_COMPS + 1, sizeof(*sq->comps));
	return !hca_sq_alloc(&sq->wq) && sq->reads && sq->out && sq->in && sq->comps ? 0 : -ENOMEM;
}

static void stream_init(struct siw_qp *sq, const struct mpa_terms *terms)
{
	u32 i;

	for (i = 0; i < DDP_QUEUES; i++)
		sq->msn_in[i] = sq->pos.msn[i] = 1;
	sq->terms = *terms;
	sq->in_len = sq->out_at = sq->out_len = sq->rd_head = sq->pos.rd_tail = sq->pos.rd_done = sq->pos.wq_done = 0;
	sq->pos.reads_out = sq->direct = 0;
	sq->fpdu.partial = sq->bulk = sq->one_fpdu = sq->pos.request = false;
	sq->pos.built = sq->sent = sq->received = 0;
	sq->load_due = sq->write_due = sq->local_due = 0;
	sq->local_run = sq->inv_recvd = false;
	sq->epollout = sq->read_failed = sq->write_failed = sq->failed_incomplete = sq->rtr_out = sq->rtr_wait = false;
	sq->wait_first_fpdu = !terms->initiator;
	sq->reset = sq->pause.passed = false;
	sq->cut = SIW_CUT_NONE;
	sq->started = NULL;
	sq->seq = (struct siw_capture_seq){ 0 };
}

int siw_qp_attach(struct hca *hca, u32 qpn, int fd, const struct mpa_terms *terms, const u8 *early, u32 len,
		  siw_closed_fn *closed, void *ctx)
{
	struct hca_qp *qp = hca_qp_lookup(hca, qpn);
	struct siw_qp *sq = qp ? qp->transport : NULL;
	int err = -EINVAL;

	if (!qp || !siw_qp_may_attach(sq) || len > SIW_IN)
		goto err_close;
	err = buffers_alloc(sq);
	if (err)
		goto err_close;
	stream_init(sq, terms);
	sq->closed = closed;
	sq->closed_ctx = ctx;
	sq->fd.fd = fd;
	sq->segment = siw_socket_segment(fd);
	if (siw_fd_add(sq->siw, &sq->fd, EPOLLIN)) {
		err = -errno;
		sq->fd.fd = -1;
		goto err_close;
	}
	list_add(&sq->siw->streams, &sq->link);
	if (qp->state != HCA_QPS_RTS)
		hca_qp_establish(qp, (u8)min(terms->ird, (u16)SIW_READS), (u8)min(terms->ord, (u16)SIW_READS));
	if (len) {
		memcpy(sq->in, early, len);
		sq->in_len = len;
		siw_input_bytes(sq);
	}
	siw_kick(sq);
	return 0;

err_close:
	close(fd);
	return err;
}

const struct hca_transport siw_transport = {
	.create = qp_create,
	.destroy = qp_destroy,
	.modified = qp_modified,
	.query = qp_query,
	.doorbell = qp_doorbell,
	.receive = receive,
	.port_ready = port_ready,
	.moved = moved,
	.start = engine_start,
	.stop = engine_stop,
	.iw = &siw_conn_ops,
};

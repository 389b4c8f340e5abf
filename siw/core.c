// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The engine's entry points: life of its queue pairs, and of the streams that they get. */
#include <errno.h>
#include <isa-l/crc.h>
#include <stdlib.h>
#include <unistd.h>

#include "siw/internal.h"

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
	siw_ring_destroy(siw->ring);
	siw->ring = o->uring == SIW_URING_OFF ? NULL : siw_ring_create(siw);
}

void siw_dma_failed(void *arg)
{
	((struct siw_qp *)arg)->dma_failed = true;
}

void siw_kick(struct siw_qp *sq)
{
	if (sq->fd.fd < 0)
		return;
	if (sq->siw->ring)
		siw_ring_want(sq, true);
	else
		loop_task_queue(sq->siw->loop, &sq->task);
}

/* False: it has none. */
static bool leave_stream(struct siw_qp *sq)
{
	int fd = sq->fd.fd;

	if (fd < 0)
		return false;
	loop_fd_del(&sq->fd);
	loop_task_cancel(&sq->task);
	siw_ring_forget(sq);
	siw_rtr_stop(sq);
	sq->fd.fd = -1;
	siw_linger(sq->siw, fd);
	return true;
}

static void tell_owner(struct siw_qp *sq, int err)
{
	siw_closed_fn *closed = sq->closed;

	sq->closed = NULL;
	if (closed)
		closed(sq->closed_ctx, err);
}

/* Whatever is left is flushed; the owner of the connection is told last. */
void siw_qp_close(struct siw_qp *sq, int err, int event)
{
	if (!leave_stream(sq))
		return;
	if (err)
		siw_count(sq, SIW_CTR_RESET);
	siw_receive_commit(sq);
	siw_receive_flush(sq);
	siw_send_flush(sq);
	hca_qp_fail(sq->qp, HCA_QPS_ERR, event);
	hca_flush(sq->siw->hca);
	tell_owner(sq, err);
}

static void on_fd(struct loop_fd *w, u32 events, struct now now)
{
	struct siw_qp *sq = container_of(w, struct siw_qp, fd);

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && sq->siw->ring)
		siw_ring_want(sq, false);
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
	list_init(&siw->lingering);
	hca_set_transport_data(hca, siw);
	return 0;
}

static void engine_stop(struct hca *hca)
{
	struct siw *siw = hca_transport_data(hca);

	siw_conns_end(siw);
	siw_linger_end(siw);
	siw_ring_destroy(siw->ring);
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
	sq->fd = (struct loop_fd){ .fd = -1, .fn = on_fd };
	loop_task_init(&sq->task, on_task);
	list_init(&sq->want_receive);
	list_init(&sq->want_send);
	qp->transport = sq;
	return 0;
}

/* Without a completion: nobody is there to take it. */
static void drop_stream(struct siw_qp *sq)
{
	if (leave_stream(sq))
		tell_owner(sq, 0);
}

static void buffers_free(struct siw_qp *sq)
{
	free(sq->wqes);
	free(sq->reads);
	free(sq->out);
	free(sq->in);
	free(sq->comps);
	sq->wqes = NULL;
	sq->reads = NULL;
	sq->out = sq->in = NULL;
	sq->comps = NULL;
}

static void qp_destroy(struct hca_qp *qp)
{
	struct siw_qp *sq = qp->transport;

	hca_batch_run(sq->siw->wr); /* nothing in the batch may name it any more */
	drop_stream(sq);
	siw_send_reset(sq);
	buffers_free(sq);
	free(sq);
}

/*
 * The state that programs know as SQD is CLOSING here: what was posted before is given to TCP as far as it takes it, the rest
 * is flushed, and the stream ends.
 */
void siw_qp_end(struct siw_qp *sq)
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
		drop_stream(sq);
		siw_send_reset(sq);
		sq->recv_held = false;
		sq->ncomps = 0;
	} else if (qp->state == HCA_QPS_ERR) {
		siw_qp_close(sq, 0, -1);
	} else if (qp->state == HCA_QPS_SQD) {
		siw_qp_end(sq);
	} else {
		siw_kick(sq);
	}
}

static void qp_query(struct hca_qp *qp, struct hca_qp_attr *attr) {}

static void qp_doorbell(struct hca_qp *qp)
{
	siw_kick(qp->transport);
}

static void qp_recv_doorbell(struct hca_qp *qp) {}

static int receive(struct hca *hca, u8 port, struct wire_packet *p) /* there are none: all comes by TCP */
{
	wire_packet_free(p);
	return 0;
}

static void port_ready(struct hca *hca, u8 port) {}

static int buffers_alloc(struct siw_qp *sq)
{
	sq->wqes = sq->wqes ?: calloc(SIW_WQES, sizeof(*sq->wqes));
	sq->reads = sq->reads ?: calloc(SIW_READS, sizeof(*sq->reads));
	sq->out = sq->out ?: malloc(SIW_OUT);
	sq->in = sq->in ?: malloc(SIW_IN);
	sq->comps = sq->comps ?: calloc(SIW_COMPS, sizeof(*sq->comps));
	return sq->wqes && sq->reads && sq->out && sq->in && sq->comps ? 0 : -ENOMEM;
}

static void stream_init(struct siw_qp *sq, const struct mpa_terms *terms)
{
	u32 i;

	for (i = 0; i < DDP_QUEUES; i++)
		sq->msn_in[i] = sq->pos.msn[i] = 1;
	sq->terms = *terms;
	sq->in_len = sq->out_at = sq->out_len = sq->rd_head = sq->pos.rd_tail = sq->pos.rd_done = sq->pos.wq_done = 0;
	sq->pos.reads_out = sq->direct = 0;
	sq->open.partly = sq->bulk = sq->careful = sq->pos.request = false;
	sq->pos.built = sq->sent = sq->received = 0;
	sq->want_out = sq->dma_failed = sq->rtr_out = sq->hold = false;
	sq->wait_start = !terms->initiator && (terms->rtr_zero || terms->rtr_write || terms->rtr_read);
	sq->started = NULL;
	sq->seq = (struct siw_tap_seq){ 0 };
}

int siw_qp_attach(struct hca *hca, u32 qpn, int fd, const struct mpa_terms *terms, const u8 *early, u32 len,
		  siw_closed_fn *closed, void *ctx)
{
	struct hca_qp *qp = hca_qp_lookup(hca, qpn);
	struct siw_qp *sq = qp ? qp->transport : NULL;
	int err = -EINVAL;

	if (!qp || qp->state < HCA_QPS_INIT || qp->state > HCA_QPS_RTS || sq->fd.fd >= 0 || len > SIW_IN)
		goto err_close;
	err = buffers_alloc(sq);
	if (err)
		goto err_close;
	stream_init(sq, terms);
	sq->closed = closed;
	sq->closed_ctx = ctx;
	sq->fd.fd = fd;
	sq->segment = siw_socket_segment(fd);
	if (loop_fd_add(sq->siw->loop, &sq->fd, EPOLLIN)) {
		err = -errno;
		sq->fd.fd = -1;
		goto err_close;
	}
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
	.recv_doorbell = qp_recv_doorbell,
	.receive = receive,
	.port_ready = port_ready,
	.start = engine_start,
	.stop = engine_stop,
	.iw = &siw_conn_ops,
};

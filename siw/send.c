// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * iWARP send: builds requests and READ responses as FPDUs of a train (train.c). A SEND or WRITE completes when TCP has
 * accepted its last byte (RFC 5040, 5.5), a READ when its data has been written to memory. Completions are in order.
 */
#include <errno.h>
#include <sys/socket.h>

#include "siw/siw_internal.h"

static struct siw_wqe *wqe_at(const struct siw_qp *sq, u32 i)
{
	return container_of(hca_sq_at(&sq->wq, i), struct siw_wqe, wr);
}

static bool is_send(const struct siw_wqe *w)
{
	return w->wr.opcode == HCA_WR_SEND || w->wr.opcode == HCA_WR_SEND_WITH_INV;
}

void siw_send_complete(struct siw_qp *sq)
{
	u32 i;

	for (i = sq->wq.tail; i != sq->pos.wq_next; i++) {
		struct siw_wqe *w = wqe_at(sq, i);

		if (w->wr.state == HCA_WQE_SENT && w->wr.opcode != HCA_WR_RDMA_READ && w->end <= sq->sent)
			w->wr.state = HCA_WQE_DONE;
		if (w->wr.state != HCA_WQE_DONE)
			break;
	}
	if (siw_send_waits(sq)) /* for writes of READ data, or for accesses that a local operation ends */
		siw_stall(sq);
	else
		hca_sq_complete(&sq->wq, sq->pos.wq_next);
}

struct hca_wqe *siw_send_oldest(struct siw_qp *sq)
{
	u32 i;

	siw_send_complete(sq);
	for (i = sq->wq.tail; i != sq->wq.head; i++)
		if (hca_sq_at(&sq->wq, i)->state != HCA_WQE_DONE)
			return hca_sq_at(&sq->wq, i);
	return NULL;
}

void siw_send_flush(struct siw_qp *sq)
{
	u8 status;

	siw_send_complete(sq);
	status = sq->wq.tail != sq->wq.head ? wqe_at(sq, sq->wq.tail)->wr.status : HCA_WC_SUCCESS;
	hca_sq_flush(&sq->wq, status ? status : HCA_WC_WR_FLUSH_ERR);
	sq->pos.wq_next = sq->wq.head;
	sq->pos.wq_done = sq->pos.reads_out = 0;
}

void siw_send_reset(struct siw_qp *sq)
{
	hca_sq_reset(&sq->wq);
	sq->pos.wq_next = sq->pos.wq_done = 0;
}

struct siw_wqe *siw_send_oldest_read(struct siw_qp *sq)
{
	u32 i;

	for (i = sq->wq.tail; i != sq->pos.wq_next; i++)
		if (wqe_at(sq, i)->wr.opcode == HCA_WR_RDMA_READ && wqe_at(sq, i)->wr.state == HCA_WQE_SENT)
			return wqe_at(sq, i);
	return NULL;
}

static bool wqe_fetch(struct siw_qp *sq)
{
	static struct hca_send_wr wr;
	struct hca_wqe *fetched = hca_sq_fetch(&sq->wq, &wr);
	struct siw_wqe *w;

	if (!fetched)
		return false;
	w = container_of(fetched, struct siw_wqe, wr);
	w->end = w->placed = 0;
	return true;
}

/* Building of a train */

/* Room for one more FPDU, and for the rest of one that TCP accepts partly. */
static bool train_has_room(const struct siw_qp *sq, const struct siw_train *t)
{
	return !t->full && SIW_OUT - sq->out_at - sq->out_len >= 2 * SIW_FPDU_OUT &&
	       t->nfpdus < (sq->one_fpdu ? 1 : SIW_TRAIN);
}

/* The start of an FPDU, for its rollback if the payload cannot be read. */
struct fpdu_mark {
	struct siw_pos pos;
	u32 out_len;
};

static struct fpdu_mark fpdu_mark(const struct siw_qp *sq)
{
	return (struct fpdu_mark){ sq->pos, sq->out_len };
}

static void fpdu_rollback(struct siw_qp *sq, const struct fpdu_mark *b)
{
	siw_train_rewind(sq, &b->pos);
	sq->out_len = b->out_len;
}

/* Records the FPDU, which ends at sq->pos. */
static void fpdu_record(struct siw_qp *sq, struct siw_fpdu *f, const struct fpdu_mark *b, struct siw_wqe *w)
{
	f->before = b->pos;
	f->after = sq->pos;
	f->after.request = !w;
	f->wqe = w;
	f->end = f->start + (u32)(sq->pos.built - b->pos.built);
}

/*
 * Payload that is read into the buffer may be pending, and pointers to memory are not kept after this turn: so a train
 * has FPDUs of one kind only. False: this FPDU, with a payload of @pieces in memory or one that has to be read (0),
 * starts the next train.
 */
static bool train_takes(struct siw_qp *sq, struct siw_train *t, int pieces, bool read)
{
	t->full = pieces > 0 ? hca_batch_pending(sq->siw->rd) : read && t->nfpdus;
	return !t->full;
}

/* Builds the next FPDU of a SEND or WRITE. */
static void build_data(struct siw_qp *sq, struct siw_train *t, struct siw_wqe *w)
{
	u32 done = sq->pos.wq_done, len = min(sq->segment, w->wr.length - done);
	bool last = done + len == w->wr.length, send = is_send(w);
	const u8 *whole = w->wr.copy && !w->wr.num_sge ? w->wr.copy->inline_data : NULL;
	const struct hca_mem mem = hca_wqe_payload(sq->qp, &w->wr);
	const struct fpdu_mark b = fpdu_mark(sq);
	int pieces = whole ? 0 : siw_train_gather(sq, t, &mem, done, len), err = min(pieces, 0);
	u8 *at;

	if (!train_takes(sq, t, pieces, !whole && len))
		return;
	at = send ? siw_fpdu_send(sq, w, done, len, last, pieces > 0)
		  : siw_fpdu_tagged(sq, RDMAP_WRITE, w->wr.rkey, w->wr.remote_addr + done, len, last, pieces > 0);

	if (whole)
		memcpy(at, whole + done, len);
	else if (!pieces)
		err = siw_mem_read(sq, &mem, done, len, at);
	if (err) {
		w->wr.status = HCA_WC_LOC_PROT_ERR;
		fpdu_rollback(sq, &b); /* FPDUs of the message that were sent remain, without its last segment */
		return;
	}
	w->wr.state = last ? HCA_WQE_SENT : HCA_WQE_POSTED;
	w->end = sq->pos.built;
	sq->pos.wq_done = last ? 0 : done + len;
	sq->pos.wq_next += last;
	if (pieces)
		fpdu_record(sq,
			    siw_train_add(sq, t, at, send ? sizeof(struct iwarp_untagged) : sizeof(struct iwarp_tagged),
					  pieces),
			    &b, w);
}

static void build_read(struct siw_qp *sq, struct siw_wqe *w)
{
	struct hca_span span[HCA_MAX_SPANS];

	if (w->wr.length && hca_key_local(sq->qp, w->wr.sge[0].lkey, w->wr.sge[0].addr, w->wr.length,
					  HCA_ACCESS_LOCAL_WRITE, span) < 0) {
		w->wr.status = HCA_WC_LOC_PROT_ERR;
		return;
	}
	siw_fpdu_read_request(sq, w);
	sq->pos.reads_out++;
	w->wr.state = HCA_WQE_SENT;
	sq->pos.wq_next++;
}

/* Builds an FPDU, or fails the request. False: nothing can be built. */
static bool build_request(struct siw_qp *sq, struct siw_train *t)
{
	struct siw_wqe *w;

	if (sq->pos.wq_next == sq->wq.head && !wqe_fetch(sq))
		return false;
	w = wqe_at(sq, sq->pos.wq_next);
	if (w->wr.status)
		return true;
	if (sq->wait_first_fpdu && !hca_wqe_local(&w->wr))
		return false;
	/* Its payload may be the data of earlier READs, whose move to memory may be pending, or have failed. */
	if (w->wr.flags & HCA_SEND_FENCE && !sq->pos.wq_done &&
	    (sq->pos.reads_out || sq->write_due || sq->write_failed))
		return false;
	if (w->wr.opcode == HCA_WR_RDMA_READ) {
		if (!sq->terms.ord) /* it can never be sent */
			w->wr.status = HCA_WC_LOC_QP_OP_ERR;
		else if (sq->pos.reads_out >= sq->terms.ord)
			return false;
		else
			build_read(sq, w);
	} else if (!hca_wqe_local(&w->wr)) {
		build_data(sq, t, w);
	} else if (t->nfpdus) { /* it may invalidate a key of FPDUs that may be rolled back */
		return false;
	} else {
		siw_uring_revoke();
		hca_sq_run_local(&sq->wq, &w->wr);
		sq->pos.wq_next += !w->wr.status;
		sq->local_run = true;
	}
	return true;
}

/* Builds the next FPDU of the oldest READ response. False: its memory can no longer be read. */
static bool build_response(struct siw_qp *sq, struct siw_train *t)
{
	const struct siw_read *r = &sq->reads[sq->pos.rd_tail % SIW_READS];
	const struct hca_sge source = { r->source_to, r->length, r->source_stag };
	const struct hca_mem mem = { sq->qp, &source, 1, hca_key_remote, HCA_ACCESS_REMOTE_READ };
	u32 done = sq->pos.rd_done, len = min(sq->segment, r->length - done);
	bool last = done + len == r->length;
	const struct fpdu_mark b = fpdu_mark(sq);
	int pieces = siw_train_gather(sq, t, &mem, done, len);
	u8 *at;

	if (!train_takes(sq, t, pieces, len))
		return true;
	at = siw_fpdu_tagged(sq, RDMAP_READ_RESPONSE, r->sink_stag, r->sink_to + done, len, last, pieces > 0);

	if (pieces < 0 || (!pieces && siw_mem_read(sq, &mem, done, len, at))) {
		fpdu_rollback(sq, &b);
		return false;
	}
	sq->pos.rd_done = last ? 0 : done + len;
	sq->pos.rd_tail += last;
	if (pieces)
		fpdu_record(sq, siw_train_add(sq, t, at, sizeof(struct iwarp_tagged), pieces), &b, NULL);
	return true;
}

/* A batch read failed for an unknown FPDU: discards all FPDUs of this round. */
static void fpdus_discard(struct siw_qp *sq, u32 from)
{
	u32 i, end = sq->pos.wq_next + (sq->pos.wq_done > 0);

	for (i = sq->wq.tail; i != end; i++)
		if (wqe_at(sq, i)->end > sq->sent && !hca_wqe_local(&wqe_at(sq, i)->wr))
			wqe_at(sq, i)->wr.status = HCA_WC_LOC_PROT_ERR;
	sq->out_len = from - sq->out_at;
	siw_terminate(sq, RDMAP_ERR_CATASTROPHIC, NULL, HCA_EVENT_QP_FATAL);
}

/*
 * Builds one FPDU, of responses and requests by turns, or executes a local operation. 0: none; -1: the memory of a
 * response cannot be read.
 */
static int fpdu_build(struct siw_qp *sq, struct siw_train *t)
{
	/* A READ returns what the WRITEs before it wrote. */
	bool respond = sq->pos.rd_tail != sq->rd_head && !sq->write_due;

	if (!respond || sq->pos.request) {
		bool built = build_request(sq, t);

		sq->pos.request = t->full; /* or it is built first in the next train */
		return built || respond;
	}
	if (!build_response(sq, t))
		return -1;
	sq->pos.request = !t->full;
	return 1;
}

/* Fills buffer and train. False: the stream is closed. */
static bool train_build(struct siw_qp *sq, struct siw_train *t)
{
	u32 from = sq->out_at + sq->out_len;
	int more = 1;
	u64 moves;

	while (more > 0 && train_has_room(sq, t) &&
	       (sq->pos.wq_next == sq->wq.head || !wqe_at(sq, sq->pos.wq_next)->wr.status))
		more = fpdu_build(sq, t);
	moves = hca_ctx_moves(sq->qp->ctx);
	hca_batch_run(sq->siw->rd);
	if (sq->local_run) /* they complete when accesses by their keys have ended, also those of other queue pairs */
		sq->local_due = hca_ctx_moves(sq->qp->ctx);
	sq->local_run = false;
	if (hca_ctx_moves(sq->qp->ctx) != moves) {
		sq->load_due = hca_ctx_moves(sq->qp->ctx);
		sq->load_from = from;
		siw_stall(sq);
		return true;
	}
	if (sq->read_failed) {
		fpdus_discard(sq, from);
		return false;
	}
	siw_fpdus_seal(sq, from);
	if (more < 0 && !t->nfpdus) { /* else the FPDUs before it are sent first */
		siw_terminate_read(sq);
		return false;
	}
	return true;
}

/* Has the pending payload been fetched? 1: yes, or none pending; 0: no; -1: the stream is closed. */
static int payload_loaded(struct siw_qp *sq)
{
	if (!sq->load_due)
		return 1;
	if (siw_pending(sq, sq->load_due)) {
		siw_stall(sq);
		return 0;
	}
	sq->load_due = 0;
	if (sq->read_failed) {
		fpdus_discard(sq, sq->load_from);
		return -1;
	}
	siw_fpdus_seal(sq, sq->load_from);
	return 1;
}

void siw_send_unload(struct siw_qp *sq)
{
	if (!sq->load_due)
		return;
	hca_moves_forget_local(sq->qp->ctx, sq->out, SIW_OUT);
	sq->load_due = 0;
	sq->out_len = sq->load_from - sq->out_at;
}

void siw_send_rtr(struct siw_qp *sq)
{
	const struct mpa_terms *t = &sq->terms;
	u32 from = sq->out_at + sq->out_len;

	if (t->rtr_zero) {
		siw_fpdu_send(sq, &(struct siw_wqe){ .wr.opcode = HCA_WR_SEND }, 0, 0, true, false);
	} else if (t->rtr_write) {
		siw_fpdu_tagged(sq, RDMAP_WRITE, 0, 0, 0, true, false);
	} else if (t->rtr_read) {
		siw_fpdu_read_request(sq, &(struct siw_wqe){ .wr.opcode = HCA_WR_RDMA_READ });
		sq->rtr_out = true;
	}
	siw_fpdus_seal(sq, from);
}

/* Arms EPOLLOUT. */
static void epollout_set(struct siw_qp *sq, bool want)
{
	if (sq->epollout == want)
		return;
	sq->epollout = want;
	siw_watch(sq);
}

/* The request that cannot be sent fails, and so the queue pair, when the requests before it have completed. */
static bool head_failed(struct siw_qp *sq)
{
	struct siw_wqe *w = sq->wq.tail != sq->wq.head ? wqe_at(sq, sq->wq.tail) : NULL;

	if (!w || !w->wr.status)
		return false;
	siw_terminate(sq, RDMAP_ERR_CATASTROPHIC, NULL, -1);
	return true;
}

/*
 * The stream ends with a part of an FPDU: after its last byte closes it, by RST or in this direction. As
 * siw_send_prepare().
 */
static int cut_prepare(struct siw_qp *sq, struct siw_train *t)
{
	siw_train_begin(sq, t);
	siw_train_end(sq, t);
	if (t->niov)
		return 1;
	epollout_set(sq, false);
	if (sq->cut == SIW_CUT_RST) {
		sq->reset = true;
		siw_qp_close(sq, -ECONNRESET, -1);
		return -1;
	}
	if (sq->cut == SIW_CUT_FIN)
		shutdown(sq->fd.fd, SHUT_WR);
	sq->cut = SIW_CUT_DONE;
	return 0;
}

int siw_send_prepare(struct siw_qp *sq, struct siw_train *t)
{
	int ready;

	if (sq->fd.fd < 0 || sq->rtr_wait || sq->pause.send || sq->siw->down)
		return 0;
	ready = payload_loaded(sq);
	if (ready <= 0)
		return ready;
	if (unlikely(sq->cut))
		return cut_prepare(sq, t);
	siw_train_begin(sq, t);
	if (!train_build(sq, t))
		return -1;
	if (sq->load_due) {
		epollout_set(sq, false);
		return 0;
	}
	siw_train_end(sq, t);
	if (t->niov)
		return 1;
	epollout_set(sq, false);
	siw_send_complete(sq); /* completes local operations */
	return head_failed(sq) ? -1 : 0;
}

/* EFAULT of a train: finds the FPDU with the bad memory: the only one, else the following trains have one FPDU each. */
static bool efault_fpdu_find(struct siw_qp *sq, const struct siw_train *t)
{
	if (t->nfpdus > 1) {
		sq->one_fpdu = true;
		return true;
	}
	if (t->fpdu[0].wqe) {
		t->fpdu[0].wqe->wr.status = HCA_WC_LOC_PROT_ERR;
		return !head_failed(sq);
	}
	siw_terminate_read(sq);
	return false;
}

bool siw_send_done(struct siw_qp *sq, struct siw_train *t, ssize_t n)
{
	siw_train_sent(sq, t, n > 0 ? (u32)n : 0);
	if (n == -EFAULT && t->nfpdus)
		return efault_fpdu_find(sq, t);
	if (n < 0 && n != -EAGAIN && n != -EINTR) {
		siw_qp_close(sq, (int)n, HCA_EVENT_QP_FATAL);
		return false;
	}
	sq->sent += n > 0 ? (u64)n : 0;
	sq->siw->counter[SIW_CTR_BYTES_SENT] += n > 0 ? (u64)n : 0;
	epollout_set(sq, n != (ssize_t)t->bytes);
	siw_send_complete(sq);
	return !head_failed(sq) && !sq->epollout;
}

bool siw_send_run(struct siw_qp *sq)
{
	static struct siw_train train;
	u32 round;

	for (round = 0; round < SIW_ROUNDS; round++)
		if (siw_send_prepare(sq, &train) <= 0 ||
		    !siw_send_done(sq, &train, siw_socket_send(sq->fd.fd, train.iov, train.niov)))
			return false;
	return true;
}

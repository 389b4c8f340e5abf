// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Application memory: payload goes out of a batch of reads, and into a batch of writes that a commit runs before any
 * completion or acknowledge speaks of it.
 */
#include <errno.h>
#include <stdlib.h>

#include "rxe/internal.h"

#define COMMIT_BYTES (256u << 10)

static void write_failed(void *arg)
{
	((struct rxe_qp *)arg)->dma_failed = true;
}

static void read_failed(void *arg)
{
	((struct rxe_qp *)arg)->read_failed = true;
}

/* Adds the spans to the batch; returns their bytes. */
static u32 spans_move(struct rxe *rxe, const struct hca_span *span, int n, u8 *at, bool write,
		      void (*failed)(void *arg), struct rxe_qp *owner)
{
	u32 done = 0;

	for (; n; n--, span++) {
		if (write)
			hca_batch_write(rxe->wr, span, at + done, failed, owner);
		else
			hca_batch_read(rxe->rd, span, at + done, failed, owner);
		done += span->len;
	}
	return done;
}

static int sge_move(struct hca_qp *qp, u32 lkey, u64 va, u32 len, u32 access, u8 *at, bool write, struct rxe_qp *owner)
{
	struct hca_span span[HCA_MAX_SPANS];
	u32 done = 0;

	while (done < len) {
		int n = hca_key_local(qp, lkey, va + done, len - done, access, span);

		if (n <= 0)
			return n < 0 ? n : HCA_KEY_BOUNDS;
		done += spans_move(owner->rxe, span, n, at + done, write, write ? write_failed : read_failed, owner);
	}
	return 0;
}

/* Moves bytes @off..@off+@len of the list to or from @local. 0, or an hca_key_error; HCA_KEY_BOUNDS: the list is short. */
int rxe_sges_span(struct hca_qp *qp, const struct hca_sge *sge, u16 n, u32 off, u32 len, u32 access, void *local,
		  bool write, struct rxe_qp *owner)
{
	u8 *at = local;

	for (; n && len; n--, sge++) {
		u32 part;
		int err;

		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		part = min(len, sge->length - off);
		err = sge_move(qp, sge->lkey, sge->addr + off, part, access, at, write, owner);
		if (err < 0)
			return err;
		at += part;
		len -= part;
		off = 0;
	}
	return len ? HCA_KEY_BOUNDS : 0;
}

int rxe_remote_move(struct rxe_qp *rq, u32 rkey, u64 va, u32 len, u32 access, void *local, bool write)
{
	struct hca_span span[HCA_MAX_SPANS];
	u32 done = 0;

	while (done < len) {
		int n = hca_key_remote(rq->qp, rkey, va + done, len - done, access, span);

		if (n <= 0)
			return n < 0 ? n : HCA_KEY_BOUNDS;
		if (!local)
			return 0;
		done += spans_move(rq->rxe, span, n, (u8 *)local + done, write, write_failed, rq);
	}
	return 0;
}

static bool port_borrows(const struct rxe_qp *rq)
{
	return hca_port(rq->qp->hca, rq->qp->attr.port)->borrows;
}

static u8 *span_direct(const struct hca_span *span, int n, u32 len, bool write)
{
	return n == 1 && span->len == len ? hca_span_direct(span, write) : NULL;
}

u8 *rxe_sges_direct(struct rxe_qp *rq, const struct hca_sge *sge, u16 n, u32 off, u32 len, u32 access)
{
	struct hca_span span[HCA_MAX_SPANS];
	int got;

	if (!port_borrows(rq))
		return NULL;
	for (; n && off >= sge->length; n--, sge++)
		off -= sge->length;
	if (!n || len > sge->length - off)
		return NULL;
	got = hca_key_local(rq->qp, sge->lkey, sge->addr + off, len, access, span);
	return span_direct(span, got, len, access & HCA_ACCESS_LOCAL_WRITE);
}

u8 *rxe_remote_direct(struct rxe_qp *rq, u32 rkey, u64 va, u32 len, u32 access)
{
	struct hca_span span[HCA_MAX_SPANS];

	if (!port_borrows(rq))
		return NULL;
	return span_direct(span, hca_key_remote(rq->qp, rkey, va, len, access, span), len,
			   access & HCA_ACCESS_REMOTE_WRITE);
}

/* Nothing points into buffers behind that. */
static void write_kept(struct rxe *rxe)
{
	u32 i;

	hca_batch_run(rxe->wr);
	for (i = 0; i < rxe->nkept; i++)
		wire_buf_put(rxe->kept[i]);
	rxe->nkept = 0;
}

void rxe_keep(struct rxe *rxe, struct wire_buf *buf)
{
	if (!buf)
		return;
	if (rxe->nkept && rxe->kept[rxe->nkept - 1] == buf)
		return;
	if (rxe->nkept == RXE_KEPT) /* this one is written, too */
		write_kept(rxe);
	else
		rxe->kept[rxe->nkept++] = wire_buf_get(buf);
}

/* What is borrowed cannot be kept: it is written now. */
void rxe_keep_payload(struct rxe *rxe, const struct wire_packet *p)
{
	if (p->flags & WIRE_PKT_BORROWED)
		hca_batch_run(rxe->wr);
	else
		rxe_keep(rxe, p->buf);
}

void rxe_dirty(struct rxe_qp *rq)
{
	if (!list_empty(&rq->dirty))
		return;
	list_add(&rq->rxe->dirty, &rq->dirty);
	loop_task_queue(rq->rxe->loop, &rq->rxe->commit_task);
}

/* A commit within a commit (a completion that posts) finds nothing left and returns. */
void rxe_commit(struct rxe *rxe)
{
	struct list batch;

	write_kept(rxe);
	list_init(&batch);
	list_splice(&batch, &rxe->dirty);
	while (!list_empty(&batch)) {
		struct rxe_qp *rq = list_first(&batch, struct rxe_qp, dirty);

		list_del(&rq->dirty);
		rxe_resp_commit(rq);
		rxe_req_complete(rq);
	}
	hca_flush(rxe->hca);
}

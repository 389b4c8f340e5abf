// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Payload access (IBTA 9.7.5.1.3, 10.7.3): gathers sent payload in a batch of reads, scatters received payload in a
 * batch of writes. The commit (commit.c) runs the batch of writes before the completions and ACKs of those messages.
 */
#include <errno.h>

#include "rxe/request.h"

#define ZCOPY_PIECES 4 /* spans of memory that one packet's payload is written to without a copy */

/* The tag of a batch entry encodes its struct rxe_write: a failure may be reported long after the batch has run. */
static u64 write_tag(const struct rxe_write *w)
{
	return (u64)w->ncomps << 32 | (u64)w->kind << 24 | w->at;
}

static struct rxe_write tag_write(u64 tag)
{
	return (struct rxe_write){ .kind = (u8)(tag >> 24), .at = tag & 0xffffff, .ncomps = (u32)(tag >> 32) };
}

static void write_failed(void *arg, u64 tag)
{
	struct rxe_write w = tag_write(tag);
	struct rxe_qp *rq = arg;

	if (w.kind == RXE_WRITE_RESPONSE) {
		hca_sq_at(&rq->req.wq, w.at)->status = HCA_WC_LOC_PROT_ERR;
	} else if (!rq->resp.write_failed) {
		rq->resp.write_failed = true;
		rq->resp.failed = w;
	}
	rxe_dirty(rq);
}

static void wqe_read_failed(void *arg, u64 slot)
{
	rxe_wqe_at(arg, (u32)slot)->read_failed = true;
}

static void resource_read_failed(void *arg, u64 slot)
{
	((struct rxe_qp *)arg)->resp.res[slot].failed = true;
}

void rxe_writes_run(struct rxe *rxe)
{
	u32 i;

	hca_batch_run(rxe->wr);
	for (i = 0; i < rxe->nwrite_bufs; i++)
		wire_buf_put(rxe->write_bufs[i]);
	rxe->nwrite_bufs = 0;
	rxe->last_writer = NULL;
}

/* The packets of a message share one struct rxe_write, with the PSN of the first packet since the batch was run. */
static const struct rxe_write *write_owner(struct rxe_qp *rq, enum rxe_write_kind kind, u32 at)
{
	struct rxe *rxe = rq->rxe;
	struct rxe_write *w = &rxe->last_write;

	rq->wrote = true;
	if (rxe->last_writer == rq && w->kind == kind && (kind == RXE_WRITE_RESPONSE ? w->at == at : rq->resp.last_op))
		return w;
	rxe->last_writer = rq;
	*w = (struct rxe_write){ .kind = kind, .at = at, .ncomps = rq->resp.ncomps };
	return w;
}

/* A copy of zero-copy payload, for memory to which each batch of writes is a task of another thread; else NULL. */
static struct wire_buf *payload_copy(const struct hca_mem *m, u32 off, const struct rxe_bytes *from)
{
	struct iovec iov[ZCOPY_PIECES];
	struct wire_buf *copy;

	if (from->buf || !from->len || hca_mem_direct(m, off, from->len, iov, ZCOPY_PIECES))
		return NULL;
	copy = wire_buf_alloc(from->len);
	if (copy)
		memcpy(copy->data, from->data, from->len);
	return copy;
}

/* Entries stay in the batch even if the rest of the range failed: the batch references the buffer in any case. */
static int payload_write(struct rxe_qp *rq, const struct hca_mem *m, u32 off, struct rxe_bytes from,
			 enum rxe_write_kind kind, u32 at)
{
	struct rxe *rxe = rq->rxe;
	struct hca_mem_batch b = { rxe->wr, write_failed, rq, write_tag(write_owner(rq, kind, at)) };
	struct wire_buf *copy = payload_copy(m, off, &from);
	int err;

	if (copy)
		from = rxe_bytes_in(copy);
	err = hca_mem_write(m, off, from.len, from.data, &b);
	if (!from.buf || rxe->nwrite_bufs == RXE_WRITE_BUFS)
		rxe_writes_run(rxe);
	else if (!rxe->nwrite_bufs || rxe->write_bufs[rxe->nwrite_bufs - 1] != from.buf)
		rxe->write_bufs[rxe->nwrite_bufs++] = wire_buf_get(from.buf);
	wire_buf_put(copy);
	return err;
}

int rxe_recv_write(struct rxe_qp *rq, u32 off, struct rxe_bytes from)
{
	const struct hca_mem m = { rq->qp,       rq->resp.recv.sge,      rq->resp.recv.num_sge,
				   hca_key_recv, HCA_ACCESS_LOCAL_WRITE, .token = rq->resp.recv.token };

	return payload_write(rq, &m, off, from, RXE_WRITE_RECV, rq->resp.epsn);
}

int rxe_remote_write(struct rxe_qp *rq, u32 rkey, u64 va, struct rxe_bytes from)
{
	const struct hca_sge sge = { va, from.len, rkey };
	const struct hca_mem m = {
		rq->qp, &sge, 1, hca_key_remote, HCA_ACCESS_REMOTE_WRITE, .token = va + rq->resp.wr_left
	};

	return payload_write(rq, &m, 0, from, RXE_WRITE_REMOTE, rq->resp.epsn);
}

int rxe_response_write(struct rxe_qp *rq, const struct rxe_wqe *w, u32 off, struct rxe_bytes from)
{
	const struct hca_mem m = {
		rq->qp, w->wr.sge, w->wr.num_sge, hca_key_local, HCA_ACCESS_LOCAL_WRITE, .token = w->wr.token
	};

	return payload_write(rq, &m, off, from, RXE_WRITE_RESPONSE, rxe_wqe_slot(rq, w));
}

int rxe_wqe_read(struct rxe_qp *rq, struct rxe_wqe *w, u32 off, u32 len, void *local)
{
	const struct hca_mem m = hca_wqe_payload(rq->qp, &w->wr);
	struct hca_mem_batch b = { rq->rxe->rd, wqe_read_failed, rq, rxe_wqe_slot(rq, w) };

	return hca_mem_read(&m, off, len, local, &b);
}

int rxe_resource_load(struct rxe_qp *rq, struct rxe_resource *r, u64 va, u32 len, void *local)
{
	const struct hca_sge sge = { va, len, r->rkey };
	const struct hca_mem m = {
		rq->qp, &sge, 1, hca_key_remote, HCA_ACCESS_REMOTE_READ, .token = r->va + r->length
	};
	struct hca_mem_batch b = { rq->rxe->rd, resource_read_failed, rq, (u64)(r - rq->resp.res) };
	bool late;
	int err;

	r->failed = false;
	err = hca_mem_read(&m, 0, len, local, &b);
	late = rxe_reads_run(rq, &r->due); /* also entries added before an error */
	if (err)
		r->due = 0;
	return err ? err : late ? -EINPROGRESS : r->failed ? -EFAULT : 0;
}

bool rxe_reads_run(struct rxe_qp *rq, u64 *due)
{
	u64 before = hca_ctx_moves(rq->qp->ctx);

	hca_batch_run(rq->rxe->rd);
	*due = hca_ctx_moves(rq->qp->ctx);
	if (likely(!hca_batch_faulted(rq->rxe->rd) && *due == before))
		*due = 0;
	return *due;
}

bool rxe_writes_done(struct rxe_qp *rq)
{
	if (rq->wrote) {
		rq->write_due = hca_ctx_moves(rq->qp->ctx);
		rq->wrote = false;
	}
	return !rxe_pending(rq, rq->write_due);
}

void rxe_chunk_put(struct rxe_qp *rq, struct wire_buf *chunk)
{
	if (chunk)
		hca_moves_forget_local(rq->qp->ctx, chunk->data, chunk->size);
	wire_buf_put(chunk);
}

int rxe_atomic(struct rxe_qp *rq, const struct hca_span *span, bool swap, u64 compare_add, u64 swap_value, u64 *old,
	       u32 psn)
{
	const struct rxe_write w = { .kind = RXE_WRITE_REMOTE, .at = psn, .ncomps = rq->resp.ncomps };

	rq->wrote = true;
	return hca_atomic(span, swap, compare_add, swap_value, old, write_failed, rq, write_tag(&w));
}

int rxe_remote_check(struct rxe_qp *rq, u32 rkey, u64 va, u32 len, u32 access)
{
	const struct hca_sge sge = { va, len, rkey };
	const struct hca_mem m = { rq->qp, &sge, 1, hca_key_remote, access };

	return hca_mem_check(&m, 0, len);
}

static u8 *mem_direct(const struct hca_mem *m, u32 off, u32 len)
{
	struct wire_port *port = hca_port(m->qp->hca, m->qp->attr.port);
	bool sends = !(m->access & (HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE));
	struct iovec iov;

	if (!port->zcopy && !(sends && port->ops->reads_payload && port->ops->reads_payload(port, m->qp->attr.av.dlid)))
		return NULL;
	return hca_mem_direct(m, off, len, &iov, 1) == 1 ? iov.iov_base : NULL;
}

u8 *rxe_sges_direct(struct rxe_qp *rq, const struct hca_sge *sge, u16 n, u32 off, u32 len, u32 access)
{
	const struct hca_mem m = { rq->qp, sge, n, hca_key_local, access };

	return mem_direct(&m, off, len);
}

u8 *rxe_remote_direct(struct rxe_qp *rq, u32 rkey, u64 va, u32 len, u32 access)
{
	const struct hca_sge sge = { va, len, rkey };
	const struct hca_mem m = { rq->qp, &sge, 1, hca_key_remote, access };

	return mem_direct(&m, 0, len);
}

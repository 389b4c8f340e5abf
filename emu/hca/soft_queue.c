// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Front end of users inside the daemon: queues of canonical work requests in local memory. */
#include <errno.h>
#include <stdlib.h>

#include "emu/hca/soft_queue.h"

struct hca_soft_cq {
	struct hca_ctx *ctx; /* NULL: the context was destroyed */
	u32 cqn, depth, head, count;
	void (*ready)(void *arg);
	void *arg;
	struct hca_cqe cqe[];
};

/* A work request without the unused part of its arrays. */
struct packed_send {
	struct hca_send_wr *wr; /* truncated after the SGEs in use */
	u8 *inline_data;
};

/* Positions are 64-bit counters; an entry's slot is its position modulo the depth. */
struct ring {
	u32 depth;
	u64 posted, pulled, done;
};

struct hca_soft_wq {
	struct hca_ctx *ctx;
	u32 number;
	bool srq;
	u32 max_send_sge, max_recv_sge, max_inline;
	struct ring send, recv;
	struct packed_send *sends;
	struct hca_recv_wr *recvs;
};

static int cq_complete(void *fe, const struct hca_cqe *cqe)
{
	struct hca_soft_cq *cq = fe;

	if (cq->count == cq->depth)
		return -ENOSPC;
	cq->cqe[(cq->head + cq->count++) % cq->depth] = *cqe;
	return 0;
}

static void cq_flush(void *fe)
{
	struct hca_soft_cq *cq = fe;

	if (cq->ready && cq->count)
		cq->ready(cq->arg);
}

static const struct hca_cq_ops cq_ops = { .complete = cq_complete, .flush = cq_flush };

int hca_soft_cq_create(struct hca_ctx *ctx, u32 depth, void (*ready)(void *arg), void *arg, struct hca_soft_cq **out)
{
	struct hca_soft_cq *cq;
	int err;

	if (!depth)
		return -EINVAL;
	cq = calloc(1, sizeof(*cq) + depth * sizeof(cq->cqe[0]));
	if (!cq)
		return -ENOMEM;
	cq->ctx = ctx;
	cq->depth = depth;
	cq->ready = ready;
	cq->arg = arg;
	err = hca_cq_create(ctx, &cq_ops, cq, &cq->cqn);
	if (err)
		free(cq);
	else
		*out = cq;
	return err;
}

int hca_soft_cq_destroy(struct hca_soft_cq *cq)
{
	int err = cq->ctx ? hca_cq_destroy(cq->ctx, cq->cqn) : 0;

	if (!err)
		free(cq);
	return err;
}

void hca_soft_cq_orphan(struct hca_soft_cq *cq)
{
	cq->ctx = NULL;
}

u32 hca_soft_cq_number(const struct hca_soft_cq *cq)
{
	return cq->cqn;
}

u32 hca_soft_cq_poll(struct hca_soft_cq *cq, struct hca_cqe *cqe, u32 n)
{
	u32 i;

	for (i = 0; i < n && cq->count; i++) {
		cqe[i] = cq->cqe[cq->head];
		cq->head = (cq->head + 1) % cq->depth;
		cq->count--;
	}
	return i;
}

static void drop_send(struct packed_send *s)
{
	free(s->wr);
	free(s->inline_data);
	*s = (struct packed_send){ 0 };
}

static int next_send(void *fe, struct hca_send_wr *wr)
{
	struct hca_soft_wq *wq = fe;
	struct packed_send *s;

	if (wq->send.pulled == wq->send.posted)
		return 0;
	s = &wq->sends[wq->send.pulled++ % wq->send.depth];
	memcpy(wr, s->wr, offsetof(struct hca_send_wr, sge) + s->wr->num_sge * sizeof(wr->sge[0]));
	if (s->inline_data)
		memcpy(wr->inline_data, s->inline_data, max(wr->inline_len, (u32)wr->lso_hdr_len));
	return 1;
}

static void send_done(void *fe)
{
	struct hca_soft_wq *wq = fe;

	drop_send(&wq->sends[wq->send.done++ % wq->send.depth]);
}

static int next_recv(void *fe, struct hca_recv_wr *wr)
{
	struct hca_soft_wq *wq = fe;
	const struct hca_recv_wr *r;

	if (wq->recv.pulled == wq->recv.posted)
		return 0;
	r = &wq->recvs[wq->recv.pulled++ % wq->recv.depth];
	memcpy(wr, r, offsetof(struct hca_recv_wr, sge) + r->num_sge * sizeof(r->sge[0]));
	return 1;
}

static void recv_done(void *fe)
{
	((struct hca_soft_wq *)fe)->recv.done++;
}

static void drop_sends(struct hca_soft_wq *wq)
{
	for (; wq->send.done < wq->send.posted; wq->send.done++)
		drop_send(&wq->sends[wq->send.done % wq->send.depth]);
}

static void queue_reset(void *fe)
{
	struct hca_soft_wq *wq = fe;

	drop_sends(wq);
	wq->send.pulled = wq->send.done;
	wq->recv.pulled = wq->recv.done = wq->recv.posted;
}

static u32 recvs_waiting(void *fe)
{
	const struct hca_soft_wq *wq = fe;

	return (u32)(wq->recv.posted - wq->recv.pulled);
}

static const struct hca_wq_ops wq_ops = {
	.next_send = next_send,
	.send_done = send_done,
	.next_recv = next_recv,
	.recv_done = recv_done,
	.reset = queue_reset,
};

static void wq_free(struct hca_soft_wq *wq)
{
	if (wq->sends)
		drop_sends(wq);
	free(wq->sends);
	free(wq->recvs);
	free(wq);
}

static struct hca_soft_wq *wq_alloc(struct hca_ctx *ctx, u32 sends, u32 recvs)
{
	struct hca_soft_wq *wq = calloc(1, sizeof(*wq));

	if (!wq)
		return NULL;
	wq->ctx = ctx;
	wq->send.depth = sends;
	wq->recv.depth = recvs;
	wq->sends = calloc(max(sends, 1u), sizeof(*wq->sends));
	wq->recvs = calloc(max(recvs, 1u), sizeof(*wq->recvs));
	if (wq->sends && wq->recvs)
		return wq;
	wq_free(wq);
	return NULL;
}

int hca_soft_qp_create(struct hca_ctx *ctx, const struct hca_qp_init *init, struct hca_soft_wq **out)
{
	const struct hca_caps *caps = &hca_caps_default;
	struct hca_soft_wq *wq;
	int err;

	if (init->max_send_wr > caps->max_qp_wr || init->max_recv_wr > caps->max_qp_wr)
		return -EINVAL;
	wq = wq_alloc(ctx, init->max_send_wr, init->srqn ? 0 : init->max_recv_wr);
	if (!wq)
		return -ENOMEM;
	wq->max_send_sge = init->max_send_sge;
	wq->max_recv_sge = init->max_recv_sge;
	wq->max_inline = init->max_inline;
	err = hca_qp_create(ctx, init, &wq_ops, wq, &wq->number);
	if (err)
		wq_free(wq);
	else
		*out = wq;
	return err;
}

int hca_soft_srq_create(struct hca_ctx *ctx, u32 pdn, const struct hca_srq_attr *attr, struct hca_soft_wq **out)
{
	struct hca_soft_wq *wq;
	int err;

	if (attr->max_wr > hca_caps_default.max_srq_wr)
		return -EINVAL;
	wq = wq_alloc(ctx, 0, attr->max_wr);
	if (!wq)
		return -ENOMEM;
	wq->srq = true;
	wq->max_recv_sge = attr->max_sge;
	err = hca_srq_create(ctx, pdn, attr, &wq_ops, wq, &wq->number);
	if (err) {
		wq_free(wq);
		return err;
	}
	hca_srq_set_level(ctx, wq->number, recvs_waiting);
	*out = wq;
	return 0;
}

int hca_soft_wq_destroy(struct hca_soft_wq *wq)
{
	int err = 0;

	if (wq->ctx)
		err = wq->srq ? hca_srq_destroy(wq->ctx, wq->number) : hca_qp_destroy(wq->ctx, wq->number);
	if (!err)
		wq_free(wq);
	return err;
}

u32 hca_soft_wq_number(const struct hca_soft_wq *wq)
{
	return wq->number;
}

void hca_soft_wq_orphan(struct hca_soft_wq *wq)
{
	wq->ctx = NULL;
}

/* Copies the part of the request that is in use. */
static int pack(struct packed_send *s, const struct hca_send_wr *wr)
{
	size_t size = offsetof(struct hca_send_wr, sge) + wr->num_sge * sizeof(wr->sge[0]);
	u32 bytes = max(wr->flags & HCA_SEND_INLINE ? wr->inline_len : 0u, (u32)wr->lso_hdr_len);

	s->wr = malloc(size);
	s->inline_data = bytes ? malloc(bytes) : NULL;
	if (!s->wr || (bytes && !s->inline_data)) {
		drop_send(s);
		return -ENOMEM;
	}
	memcpy(s->wr, wr, size);
	if (!(wr->flags & HCA_SEND_INLINE))
		s->wr->inline_len = 0;
	if (bytes)
		memcpy(s->inline_data, wr->inline_data, bytes);
	return 0;
}

int hca_soft_post_send(struct hca_soft_wq *wq, const struct hca_send_wr *wr)
{
	int err;

	if (!wq->ctx || wr->num_sge > wq->max_send_sge || wr->lso_hdr_len > HCA_MAX_INLINE)
		return -EINVAL;
	if ((wr->flags & HCA_SEND_INLINE) && wr->inline_len > wq->max_inline)
		return -EINVAL;
	if (wq->send.posted - wq->send.done >= wq->send.depth)
		return -ENOMEM;
	err = pack(&wq->sends[wq->send.posted % wq->send.depth], wr);
	if (err)
		return err;
	wq->send.posted++;
	hca_qp_doorbell(wq->ctx, wq->number);
	return 0;
}

int hca_soft_post_recv(struct hca_soft_wq *wq, const struct hca_recv_wr *wr)
{
	if (!wq->ctx || wr->num_sge > wq->max_recv_sge)
		return -EINVAL;
	if (wq->recv.posted - wq->recv.done >= wq->recv.depth)
		return -ENOMEM;
	memcpy(&wq->recvs[wq->recv.posted % wq->recv.depth], wr,
	       offsetof(struct hca_recv_wr, sge) + wr->num_sge * sizeof(wr->sge[0]));
	wq->recv.posted++;
	if (!wq->srq)
		hca_qp_recv_doorbell(wq->ctx, wq->number);
	else if (hca_ctx_wants_recv(wq->ctx))
		hca_ctx_poll_recv(wq->ctx);
	return 0;
}

u32 hca_soft_wq_sends(const struct hca_soft_wq *wq)
{
	return (u32)(wq->send.posted - wq->send.done);
}

u32 hca_soft_wq_recvs(const struct hca_soft_wq *wq)
{
	return (u32)(wq->recv.posted - wq->recv.done);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The rings of the rxe user ABI. The application writes them at any time: every entry is copied out once and judged as
 * copied, and indexes are masked by the daemon's own mask.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emu/uverbs/context.h"

#define PAGE       4096u
#define WAKE_LATER 8 /* completions, where as many send requests are still to come */

struct area {
	struct list link;
	u64 offset;
	u32 size;
};

static u32 pow2(u32 v)
{
	u32 p = 1;

	while (p < v)
		p *= 2;
	return p;
}

static bool area_get(struct uverbs *u, u32 size, u64 *offset)
{
	struct area *a;

	list_for_each (a, &u->free_areas, link) {
		if (a->size != size)
			continue;
		*offset = a->offset;
		list_del(&a->link);
		free(a);
		return true;
	}
	if (u->used + size > UV_FILE_SIZE)
		return false;
	*offset = u->used;
	u->used += size;
	return true;
}

int uv_ring_create(struct uverbs *u, struct uv_ring *r, u32 elem, u32 entries)
{
	u32 slots = pow2(entries + 1);
	u64 size;

	elem = pow2(elem);
	size = (sizeof(struct rxe_queue_buf) + (u64)slots * elem + PAGE - 1) & ~(u64)(PAGE - 1);
	if (size > 1u << 30 || !area_get(u, (u32)size, &r->offset))
		return -ENOMEM;
	r->buf = (struct rxe_queue_buf *)(u->base + r->offset);
	r->size = (u32)size;
	r->mask = slots - 1;
	r->elem = elem;
	r->next = r->done = r->stale = 0;
	*r->buf = (struct rxe_queue_buf){ .log2_elem_size = (u32)__builtin_ctz(elem), .index_mask = r->mask };
	return 0;
}

void uv_ring_destroy(struct uverbs *u, struct uv_ring *r)
{
	struct area *a = r->buf ? malloc(sizeof(*a)) : NULL;

	if (!a)
		return;
	*a = (struct area){ .offset = r->offset, .size = r->size };
	fallocate(u->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)r->offset, r->size);
	list_add(&u->free_areas, &a->link);
	r->buf = NULL;
}

void uv_areas_free(struct uverbs *u)
{
	while (!list_empty(&u->free_areas)) {
		struct area *a = list_first(&u->free_areas, struct area, link);

		list_del(&a->link);
		free(a);
	}
}

struct mminfo uv_ring_info(const struct uv_ring *r)
{
	return (struct mminfo){ .offset = r->offset, .size = r->size };
}

void uv_ring_move(struct uv_ring *to, const struct uv_ring *from)
{
	u32 n = (__atomic_load_n(&from->buf->producer_index, __ATOMIC_ACQUIRE) - from->next) & from->mask, i;

	for (i = 0; i < n && i < to->mask; i++)
		memcpy(to->buf->data + (u64)i * to->elem,
		       from->buf->data + (u64)((from->next + i) & from->mask) * from->elem, min(to->elem, from->elem));
	__atomic_store_n(&to->buf->producer_index, i, __ATOMIC_RELEASE);
	to->stale = from->stale + ((from->next - from->done) & from->mask);
}

static u32 ring_posted(const struct uv_ring *r)
{
	return (__atomic_load_n(&r->buf->producer_index, __ATOMIC_ACQUIRE) - r->next) & r->mask;
}

/* Posted, and not given back. */
static u32 ring_taken(const struct uv_ring *r)
{
	return (__atomic_load_n(&r->buf->producer_index, __ATOMIC_ACQUIRE) - r->done) & r->mask;
}

static const void *ring_pull(struct uv_ring *r)
{
	const void *e;

	if (!r->buf || !ring_posted(r))
		return NULL;
	e = r->buf->data + (u64)(r->next & r->mask) * r->elem;
	r->next = (r->next + 1) & r->mask;
	return e;
}

static void ring_done(struct uv_ring *r)
{
	if (r->stale) {
		r->stale--;
		return;
	}
	r->done = (r->done + 1) & r->mask;
	__atomic_store_n(&r->buf->consumer_index, r->done, __ATOMIC_RELEASE);
}

static int decode_send(struct uv_qp *qp, const struct rxe_send_wqe *entry, struct hca_send_wr *out)
{
	const struct rxe_send_wqe w = *(const volatile struct rxe_send_wqe *)entry; /* without data or SGEs */
	int got = wqe_send(out, &w, entry->dma.inline_data, &qp->limits);

	if (got > 0 && qp->limits.type == HCA_QPT_UD && hca_ah_av(qp->u->ctx, qp->qpn, w.wr.wr.ud.ah_num, &out->av))
		return -EINVAL;
	return got;
}

void uv_sq_judge(struct uv_qp *qp, bool ok)
{
	struct uv_ring *r = &qp->sq;
	u32 end = __atomic_load_n(&r->buf->producer_index, __ATOMIC_ACQUIRE) & r->mask;

	if (!ok && !qp->refused)
		qp->refused = calloc(r->mask / 64 + 1, sizeof(*qp->refused));
	for (; qp->judged != end; qp->judged = (qp->judged + 1) & r->mask)
		if (!ok && qp->refused)
			qp->refused[qp->judged / 64] |= BIT_ULL(qp->judged % 64);
}

static bool is_refused(const struct uv_qp *qp, u32 slot)
{
	return qp->refused && qp->refused[slot / 64] & BIT_ULL(slot % 64);
}

/* Slots whose posts were refused are given back, in their turn, as if they had been done. */
static void pass_refused(struct uv_qp *qp)
{
	struct uv_ring *r = &qp->sq;

	while (r->done != r->next && is_refused(qp, r->done)) {
		qp->refused[r->done / 64] &= ~BIT_ULL(r->done % 64);
		ring_done(r);
	}
}

static const struct rxe_send_wqe *pull_send(struct uv_qp *qp)
{
	const struct rxe_send_wqe *w;
	u32 slot;

	do {
		slot = qp->sq.next;
		if (unlikely(qp->u->ask) && slot == qp->judged)
			return NULL; /* it is there, but the call that posts it has not come yet */
		w = ring_pull(&qp->sq);
		if (!w || !is_refused(qp, slot))
			return w;
		pass_refused(qp);
	} while (true);
}

static int next_send(void *fe, struct hca_send_wr *wr)
{
	struct uv_qp *qp = fe;
	const struct rxe_send_wqe *w = pull_send(qp);

	return w ? decode_send(qp, w, wr) : 0;
}

static void send_done(void *fe)
{
	struct uv_qp *qp = fe;

	ring_done(&qp->sq);
	qp->u->more = ring_taken(&qp->sq) >= WAKE_LATER;
	if (qp->refused)
		pass_refused(qp);
}

static int decode_recv(const struct rxe_recv_wqe *entry, struct hca_recv_wr *out, u32 max_sge)
{
	const struct rxe_recv_wqe w = *(const volatile struct rxe_recv_wqe *)entry;

	return wqe_recv(out, &w, entry->dma.sge, max_sge);
}

static int next_recv(void *fe, struct hca_recv_wr *wr)
{
	struct uv_qp *qp = fe;
	const struct rxe_recv_wqe *w = ring_pull(&qp->rq);

	return w ? decode_recv(w, wr, qp->max_recv_sge) : 0;
}

static void recv_done(void *fe)
{
	ring_done(&((struct uv_qp *)fe)->rq);
}

static void ring_reset(struct uv_ring *r)
{
	if (!r->buf)
		return;
	r->next = r->done = __atomic_load_n(&r->buf->producer_index, __ATOMIC_ACQUIRE) & r->mask;
	__atomic_store_n(&r->buf->consumer_index, r->done, __ATOMIC_RELEASE);
}

static void reset(void *fe)
{
	struct uv_qp *qp = fe;

	ring_reset(&qp->sq);
	ring_reset(&qp->rq);
	free(qp->refused);
	qp->refused = NULL;
	qp->judged = qp->sq.next;
}

void uv_qp_ready(struct uv_qp *qp, bool ready)
{
	u64 *word = &qp->u->shared->ready[qp->handle / 64], bit = 1ull << qp->handle % 64;

	if (ready)
		__atomic_fetch_or(word, bit, __ATOMIC_RELEASE);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_RELEASE);
}

static void established(void *fe)
{
	uv_qp_ready(fe, true);
}

const struct hca_wq_ops uv_qp_wq_ops = {
	.next_send = next_send,
	.send_done = send_done,
	.next_recv = next_recv,
	.recv_done = recv_done,
	.reset = reset,
	.established = established,
};

static int srq_next_recv(void *fe, struct hca_recv_wr *wr)
{
	struct uv_srq *srq = fe;
	const struct rxe_recv_wqe *w = ring_pull(&srq->ring);

	return w ? decode_recv(w, wr, srq->max_sge) : 0;
}

static void srq_recv_done(void *fe)
{
	ring_done(&((struct uv_srq *)fe)->ring);
}

u32 uv_srq_posted(void *fe)
{
	return ring_posted(&((struct uv_srq *)fe)->ring);
}

const struct hca_wq_ops uv_srq_wq_ops = { .next_recv = srq_next_recv, .recv_done = srq_recv_done };

/* Completions */

static int complete(void *fe, const struct hca_cqe *cqe)
{
	struct uv_cq *cq = fe;
	struct uv_ring *r = &cq->ring;
	u32 consumer = __atomic_load_n(&r->buf->consumer_index, __ATOMIC_ACQUIRE), next = (r->next + 1) & r->mask;

	if (next == (consumer & r->mask))
		return -ENOSPC;
	*(struct ib_uverbs_wc *)(r->buf->data + (u64)r->next * r->elem) = wqe_completion(cqe);
	r->next = next;
	__atomic_store_n(&r->buf->producer_index, next, __ATOMIC_RELEASE);
	cq->wake = true;
	cq->wake_solicited |= cqe->solicited || cqe->status != HCA_WC_SUCCESS;
	return 0;
}

static void event_send(struct uv_cq *cq)
{
	struct ib_uverbs_comp_event_desc desc = { .cq_handle = cq->user_handle };
	bool sent = uv_events_put(cq->channel, &desc, sizeof(desc));

	cq->comp_events += sent;
	if (cq->unsent == !sent)
		return;
	cq->unsent = !sent;
	cq->u->unsent += sent ? -1u : 1u;
}

void uv_cq_resend(struct uv_cq *cq)
{
	if (cq->unsent)
		event_send(cq);
}

/*
 * A program that polls may sleep, and wakes up by itself before long. Where it has much under way, it is not woken for each
 * completion: that would cost us more than a packet.
 */
static void wake_pollers(struct uverbs *u)
{
	struct uv_shared *s = u->shared;

	__atomic_fetch_add(&s->completions, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&s->waiting, __ATOMIC_SEQ_CST) || (u->more && ++u->unwoken < WAKE_LATER))
		return;
	u->unwoken = 0;
	syscall(SYS_futex, &s->completions, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void flush(void *fe)
{
	struct uv_cq *cq = fe;
	u32 *arm = &cq->u->shared->arm[cq->handle], want;

	/* The application arms and then polls; we complete and then look: one of both sees the other. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	want = __atomic_load_n(arm, __ATOMIC_RELAXED);
	if (cq->channel && cq->wake && (want == UV_ARM_NEXT || (want == UV_ARM_SOLICITED && cq->wake_solicited))) {
		__atomic_store_n(arm, UV_ARM_NONE, __ATOMIC_RELEASE);
		event_send(cq);
	}
	if (cq->wake)
		wake_pollers(cq->u);
	cq->wake = cq->wake_solicited = false;
}

const struct hca_cq_ops uv_cq_ops = { .complete = complete, .flush = flush };

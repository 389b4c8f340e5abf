// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The rings of the rxe user ABI in a file that the program maps: their allocation, rejected posts, and wake-up of
 * polling programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emu/host/context.h"

#define WAKE_LATER 8 /* completions per wake-up, while as many send requests are outstanding */

#define CHARGE_STEP (64u << 10)

/* Free bytes of the file, between rings. Areas are sorted, and none is adjacent to another one or to the end. */
struct area {
	struct list link;
	u64 offset, size;
};

static void area_free(struct area *a)
{
	list_del(&a->link);
	free(a);
}

static bool area_get(struct uverbs *u, u32 size, u64 *offset)
{
	struct area *a;

	list_for_each (a, &u->free_areas, link) {
		if (a->size < size)
			continue;
		*offset = a->offset;
		a->offset += size;
		a->size -= size;
		if (!a->size)
			area_free(a);
		return true;
	}
	if (u->used + size > UV_FILE_SIZE)
		return false;
	*offset = u->used;
	u->used += size;
	return true;
}

/* False: out of memory. */
static bool area_put(struct uverbs *u, u64 offset, u64 size)
{
	struct area *a, *next = NULL, *new = malloc(sizeof(*new));

	if (!new)
		return false;
	*new = (struct area){ .offset = offset, .size = size };
	list_for_each (a, &u->free_areas, link) {
		if (a->offset > offset) {
			next = a;
			break;
		}
	}
	list_add(next ? &next->link : &u->free_areas, &new->link);
	a = list_entry(new->link.prev, struct area, link);
	if (new->link.prev != &u->free_areas && a->offset + a->size == offset) {
		a->size += size;
		area_free(new);
		new = a;
	}
	if (next && new->offset + new->size == next->offset) {
		new->size += next->size;
		area_free(next);
	}
	if (new->offset + new->size == u->used) {
		u->used = new->offset;
		area_free(new);
	}
	return true;
}

/*
 * Pages of the file are allocated when they are first written, and the daemon answers for those that it writes: the
 * first one of each ring, and those of completions.
 */
int uv_ring_charge(struct uverbs *u, struct uv_ring *r, u32 slots)
{
	u64 end = verbs_ring_bytes(slots, r->ring.shift), more;

	if (likely(end <= r->charged))
		return 0;
	more = min((end + CHARGE_STEP - 1) & ~(u64)(CHARGE_STEP - 1), (u64)r->size) - r->charged;
	if (uv_server_rings(u->file) + more > UV_RINGS_MOST)
		return -ENOMEM;
	u->file->ring_bytes += more;
	r->charged += (u32)more;
	return 0;
}

int uv_ring_create(struct uverbs *u, struct uv_ring *r, u32 elem, u32 entries)
{
	const u64 page = (u64)sysconf(_SC_PAGESIZE);
	u32 slots = verbs_ring_slots(entries), shift = verbs_ring_shift(elem);
	u64 size = (verbs_ring_bytes(slots, shift) + page - 1) & ~(page - 1);
	struct rxe_queue_buf *buf;

	if (size > 1u << 30 || uv_server_rings(u->file) + page > UV_RINGS_MOST || !area_get(u, (u32)size, &r->offset))
		return -ENOMEM;
	u->file->ring_bytes += page;
	r->charged = (u32)page;
	r->size = (u32)size;
	r->ring = (struct verbs_ring){
		.base = u->base + r->offset,
		.mask = slots - 1,
		.shift = shift,
		.sparse = true,
		.memfd = u->memfd,
		.offset = r->offset,
		.known = r->offset,
	};
	buf = (struct rxe_queue_buf *)(void *)r->ring.base;
	*buf = (struct rxe_queue_buf){ .log2_elem_size = shift, .index_mask = r->ring.mask };
	return 0;
}

void uv_ring_destroy(struct uverbs *u, struct uv_ring *r)
{
	if (!r->size)
		return;
	fallocate(u->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)r->offset, r->size);
	if (area_put(u, r->offset, r->size))
		u->file->ring_bytes -= r->charged;
	r->size = 0;
	r->ring.base = NULL;
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

u64 uv_sq_posted_opcodes(const struct uv_qp *qp)
{
	struct verbs_ring r = qp->sq.ring;
	u32 end = (r.next + verbs_ring_posted(&r)) & r.mask;
	const volatile struct rxe_send_wqe *w;
	u64 opcodes = 0;
	u32 opcode;

	r.next = qp->posts_checked;
	while (r.next != end && (w = verbs_ring_pull(&r))) {
		opcode = w->wr.opcode;
		opcodes |= opcode < 64 ? BIT_ULL(opcode) : 0;
	}
	return opcodes;
}

void uv_sq_post_result(struct uv_qp *qp, bool ok)
{
	const struct verbs_ring *r = &qp->sq.ring;
	u32 end = (r->next + verbs_ring_posted(r)) & r->mask;

	if (!ok && !qp->rejected)
		qp->rejected = calloc(r->mask / 64 + 1, sizeof(*qp->rejected));
	for (; qp->posts_checked != end; qp->posts_checked = (qp->posts_checked + 1) & r->mask)
		if (!ok && qp->rejected)
			qp->rejected[qp->posts_checked / 64] |= BIT_ULL(qp->posts_checked % 64);
}

static bool sq_is_rejected(const struct uv_qp *qp, u32 slot)
{
	return qp->rejected && qp->rejected[slot / 64] & BIT_ULL(slot % 64);
}

/* Releases slots of rejected posts in order, as if completed. */
static void sq_release_rejected(struct uv_qp *qp)
{
	struct verbs_ring *r = &qp->sq.ring;

	while (r->done != r->next && sq_is_rejected(qp, r->done)) {
		qp->rejected[r->done / 64] &= ~BIT_ULL(r->done % 64);
		verbs_ring_release(r);
	}
}

static int next_send(void *fe, struct hca_send_wr *wr)
{
	struct uv_qp *qp = fe;
	const struct rxe_send_wqe *entry;
	struct rxe_send_wqe w;
	u32 slot;
	int got;

	for (;; sq_release_rejected(qp)) {
		slot = qp->sq.ring.next;
		if (unlikely(uv_of(qp->qp.verbs)->check_posts) && slot == qp->posts_checked)
			return 0; /* written, but not yet posted by a command */
		entry = verbs_ring_pull(&qp->sq.ring);
		if (!entry)
			return 0;
		if (!sq_is_rejected(qp, slot))
			break;
	}
	w = *(const volatile struct rxe_send_wqe *)entry; /* without data or SGEs */
	got = wqe_send(wr, &w, entry->dma.inline_data, &qp->qp.limits);
	if (got > 0 && qp->qp.limits.type == HCA_QPT_UD &&
	    hca_ah_av(qp->qp.verbs->ctx, qp->qp.qpn, w.wr.wr.ud.ah_num, &wr->av))
		return -EINVAL;
	return got;
}

static void send_done(void *fe)
{
	struct uv_qp *qp = fe;

	verbs_ring_release(&qp->sq.ring);
	uv_of(qp->qp.verbs)->more = verbs_ring_unreleased(&qp->sq.ring) >= WAKE_LATER;
	if (qp->rejected)
		sq_release_rejected(qp);
}

static int next_recv(void *fe, struct hca_recv_wr *wr)
{
	struct uv_qp *qp = fe;

	return wqe_next_recv(&qp->rq.ring, wr, qp->qp.max_recv_sge);
}

static void recv_done(void *fe)
{
	verbs_ring_release(&((struct uv_qp *)fe)->rq.ring);
}

/* The library advances the producer index before the call that refuses the post. */
static void rings_refused(void *fe)
{
	struct uv_qp *qp = fe;

	verbs_ring_reset(&qp->sq.ring);
	free(qp->rejected);
	qp->rejected = NULL;
	qp->posts_checked = qp->sq.ring.next;
}

static void rings_reset(void *fe)
{
	rings_refused(fe);
	verbs_ring_reset(&((struct uv_qp *)fe)->rq.ring);
}

void uv_qp_ready(struct uv_qp *qp, bool ready)
{
	u64 *word = &uv_of(qp->qp.verbs)->shared->ready[qp->qp.handle / 64], bit = 1ull << qp->qp.handle % 64;

	if (ready)
		__atomic_fetch_or(word, bit, __ATOMIC_RELEASE);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_RELEASE);
}

static void rings_qp_established(void *fe)
{
	uv_qp_ready(fe, true);
}

const struct hca_wq_ops uv_qp_wq_ops = {
	.next_send = next_send,
	.send_done = send_done,
	.next_recv = next_recv,
	.recv_done = recv_done,
	.reset = rings_reset,
	.refused = rings_refused,
	.established = rings_qp_established,
};

static int srq_next_recv(void *fe, struct hca_recv_wr *wr)
{
	struct uv_srq *srq = fe;

	return wqe_next_recv(&srq->ring.ring, wr, srq->srq.max_sge);
}

static void srq_recv_done(void *fe)
{
	verbs_ring_release(&((struct uv_srq *)fe)->ring.ring);
}

u32 uv_srq_posted(void *fe)
{
	return verbs_ring_posted(&((struct uv_srq *)fe)->ring.ring);
}

const struct hca_wq_ops uv_srq_wq_ops = { .next_recv = srq_next_recv, .recv_done = srq_recv_done };

/* Completions */

static int rings_complete(void *fe, const struct hca_cqe *cqe)
{
	struct uv_cq *cq = fe;
	struct ib_uverbs_wc wc = wqe_completion(cqe);
	int err = uv_ring_charge(uv_of(cq->cq.verbs), &cq->ring, cq->ring.ring.next + 1);

	if (!err)
		err = verbs_ring_put(&cq->ring.ring, &wc, sizeof(wc));
	if (!err)
		verbs_cq_completed(&cq->cq, cqe);
	return err;
}

/*
 * A polling program may sleep for a bounded time. With many outstanding requests it is not woken for each completion,
 * since a wake-up costs more than a packet.
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

static void rings_flush(void *fe)
{
	struct uv_cq *cq = fe;
	struct uverbs *u = uv_of(cq->cq.verbs);
	struct ib_uverbs_comp_event_desc desc = { .cq_handle = cq->user_handle };

	if (cq->channel && verbs_cq_wants_event(&cq->cq, &u->shared->arm[cq->cq.handle]))
		cq->comp_events += uv_events_put(cq->channel, cq, &desc, sizeof(desc));
	if (cq->cq.wake)
		wake_pollers(u);
	cq->cq.wake = cq->cq.wake_solicited = false;
}

const struct hca_cq_ops uv_cq_ops = { .complete = rings_complete, .flush = rings_flush };

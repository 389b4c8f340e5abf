// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Gather and scatter (IBTA 10.6, 10.8): copies between memory named by SGEs and local
 * buffers, and pointers for zero-copy. */
#include <errno.h>

#include "emu/hca/hca_internal.h"

/* A position in the list: byte @off of @sge, @left bytes before the end of the range. */
struct cursor {
	const struct hca_sge *sge, *end;
	u32 off, left;
};

static struct cursor cursor_at(const struct hca_mem *m, u32 off, u32 len)
{
	u32 head = off < m->head_len ? min(m->head_len - off, len) : 0;

	return (struct cursor){ m->sge, m->sge + m->n, off + head - m->head_len, len - head };
}

/* Checks the key of the rest of the SGE, @part. Returns the number of its first spans; 0: the range
 * ends here; or an hca_key_error. */
static int cursor_lookup(struct cursor *c, const struct hca_mem *m, struct hca_span *span, u32 *part)
{
	bool remote = m->key == hca_key_remote;
	int n;

	if (!c->left)
		return 0;
	while (c->sge != c->end && c->off >= c->sge->length)
		c->off -= (c->sge++)->length;
	if (c->sge == c->end)
		return HCA_KEY_BOUNDS;
	*part = min(c->left, c->sge->length - c->off);
	n = m->key(m->qp, c->sge->lkey, c->sge->addr + c->off, *part, m->access, span);
	if (likely(n > 0))
		return n;
	return !n || (n == HCA_KEY_BOUNDS && !remote) ? (remote ? HCA_KEY_BOUNDS : HCA_KEY_INVALID) : n;
}

static void cursor_advance(struct cursor *c, u32 bytes)
{
	c->off += bytes;
	c->left -= bytes;
}

int hca_mem_check(const struct hca_mem *m, u32 off, u32 len)
{
	struct cursor c = cursor_at(m, off, len);
	struct hca_span span[HCA_MAX_SPANS];
	u32 part;
	int n;

	while ((n = cursor_lookup(&c, m, span, &part)) > 0)
		cursor_advance(&c, part);
	return n;
}

static int mem_move(const struct hca_mem *m, u32 off, u32 len, u8 *local, const struct hca_mem_batch *b, bool write)
{
	struct cursor c = cursor_at(m, off, len);
	struct hca_span span[HCA_MAX_SPANS];
	u32 part;
	int n, i;

	while ((n = cursor_lookup(&c, m, span, &part)) > 0) {
		for (i = 0; i < n; i++) {
			if (unlikely(span[i].absent))
				span[i].token = m->token;
			if (write)
				hca_batch_write(b->batch, &span[i], local, b->failed, b->arg, b->tag);
			else
				hca_batch_read(b->batch, &span[i], local, b->failed, b->arg, b->tag);
			local += span[i].len;
			cursor_advance(&c, span[i].len);
		}
	}
	return n;
}

int hca_mem_read(const struct hca_mem *m, u32 off, u32 len, void *local, const struct hca_mem_batch *b)
{
	u32 head = off < m->head_len ? min(m->head_len - off, len) : 0;

	if (unlikely(head))
		memcpy(local, m->head + off, head);
	return mem_move(m, off + head, len - head, (u8 *)local + head, b, false);
}

int hca_mem_write(const struct hca_mem *m, u32 off, u32 len, const void *local, const struct hca_mem_batch *b)
{
	return mem_move(m, off, len, (u8 *)(uintptr_t)local, b, true);
}

int hca_mem_direct(const struct hca_mem *m, u32 off, u32 len, struct iovec *iov, u32 max)
{
	bool write = m->access & (HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE);
	struct cursor c = cursor_at(m, off, len);
	struct hca_span span[HCA_MAX_SPANS];
	u32 pieces = 0, part;
	int n, i;

	if (off < m->head_len)
		return 0;
	while ((n = cursor_lookup(&c, m, span, &part)) > 0) {
		for (i = 0; i < n; i++) {
			void *at = pieces < max ? hca_span_direct(&span[i], write) : NULL;

			if (!at)
				return 0;
			iov[pieces++] = (struct iovec){ at, span[i].len };
			cursor_advance(&c, span[i].len);
		}
	}
	return n ? n : (int)pieces;
}

/* Copies the first part of @len bytes at @va of the key. Returns its length, or -EFAULT. */
static int key_copy(struct hca_ctx *ctx, const struct hca_pd *pd, u32 lkey, u64 va, void *buf, u32 len, bool write)
{
	const struct hca_dma_ops *ops = ctx->dma;
	u32 access = write ? HCA_ACCESS_LOCAL_WRITE : HCA_ACCESS_LOCAL_READ;
	struct hca_dma_seg seg[HCA_MAX_SPANS];
	struct hca_span span[HCA_MAX_SPANS];
	int n = hca_key_of_pd(ctx, pd, lkey, va, len, access, span), i;
	u32 done = 0;

	for (i = 0; i < n; i++) {
		if (span[i].absent)
			return -EFAULT;
		seg[i] = (struct hca_dma_seg){ .addr = span[i].addr, .len = span[i].len, .local = (u8 *)buf + done };
		done += span[i].len;
	}
	if (n <= 0 || (write ? ops->write(ctx->dma_ctx, seg, (u32)n) : ops->read(ctx->dma_ctx, seg, (u32)n)))
		return -EFAULT;
	return (int)done;
}

int hca_sge_copy(struct hca_ctx *ctx, u32 pdn, const struct hca_sge *sge, u32 n, u32 off, void *buf, u32 len,
		 bool write)
{
	const struct hca_pd *pd = hca_pd_get(ctx, pdn);

	while (n && len) {
		int got;

		if (off >= sge->length) {
			off -= sge->length;
			sge++;
			n--;
			continue;
		}
		got = key_copy(ctx, pd, sge->lkey, sge->addr + off, buf, min(sge->length - off, len), write);
		if (got < 0)
			return got;
		buf = (u8 *)buf + got;
		len -= (u32)got;
		off += (u32)got;
	}
	return len ? -EFAULT : 0;
}

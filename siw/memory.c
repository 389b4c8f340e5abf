// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs' memory: payload goes to and from it by a batch, or, where it can be reached, TCP reads and writes it itself. Such pointers
 * are asked for just before each call, with all checks of the key, and none is kept.
 */
#include <sys/uio.h>

#include "siw/internal.h"

/* Goes through the spans of a range; false: it has seen enough. */
typedef bool span_fn(void *arg, const struct hca_span *span);

static int walk_key(struct siw_qp *sq, const struct siw_mem *m, struct hca_sge rest, span_fn *fn, void *arg)
{
	struct hca_span span[HCA_MAX_SPANS];
	int n, i;

	while (rest.length) { /* scattered memory takes more than one look */
		n = (m->remote ? hca_key_remote : hca_key_local)(sq->qp, rest.lkey, rest.addr, rest.length, m->access,
								 span);
		if (n <= 0)
			return n ? n : HCA_KEY_BOUNDS;
		for (i = 0; i < n; i++) {
			if (!fn(arg, &span[i]))
				return 1;
			rest.addr += span[i].len;
			rest.length -= span[i].len;
		}
	}
	return 0;
}

/* 0; 1: @fn has seen enough; an hca_key_error, HCA_KEY_BOUNDS also where the list is too short. */
static int walk(struct siw_qp *sq, const struct siw_mem *m, u32 off, u32 len, span_fn *fn, void *arg)
{
	const struct hca_sge *sge = m->sge;
	u16 n = m->n;

	for (; n && len; n--, sge++) {
		struct hca_sge part = *sge;
		int err;

		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		part.addr += off;
		part.length = min(len, sge->length - off);
		err = walk_key(sq, m, part, fn, arg);
		if (err)
			return err;
		len -= part.length;
		off = 0;
	}
	return len ? HCA_KEY_BOUNDS : 0;
}

struct move {
	struct siw_qp *sq;
	u8 *local;
	bool write;
};

static bool move_span(void *arg, const struct hca_span *span)
{
	struct move *m = arg;

	if (m->write)
		hca_batch_write(m->sq->siw->wr, span, m->local, siw_dma_failed, m->sq);
	else
		hca_batch_read(m->sq->siw->rd, span, m->local, siw_dma_failed, m->sq);
	m->local += span->len;
	return true;
}

int siw_mem_read(struct siw_qp *sq, const struct siw_mem *m, u32 off, u32 len, void *local)
{
	return walk(sq, m, off, len, move_span, &(struct move){ .sq = sq, .local = local });
}

int siw_mem_write(struct siw_qp *sq, const struct siw_mem *m, u32 off, u32 len, const void *local)
{
	return walk(sq, m, off, len, move_span,
		    &(struct move){ .sq = sq, .local = (void *)(uintptr_t)local, .write = true });
}

static bool pass_span(void *arg, const struct hca_span *span)
{
	return true;
}

int siw_mem_check(struct siw_qp *sq, const struct siw_mem *m, u32 off, u32 len)
{
	return walk(sq, m, off, len, pass_span, NULL);
}

struct pieces {
	struct iovec *iov;
	u32 n, max;
	bool write;
};

static bool take_span(void *arg, const struct hca_span *span)
{
	struct pieces *p = arg;
	void *at = p->n < p->max ? hca_span_direct(span, p->write) : NULL;

	if (at)
		p->iov[p->n++] = (struct iovec){ at, span->len };
	return at;
}

int siw_mem_direct(struct siw_qp *sq, const struct siw_mem *m, u32 off, u32 len, struct iovec *iov, u32 max)
{
	struct pieces p = { .iov = iov,
			    .max = max,
			    .write = m->access & (HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE) };
	int err = walk(sq, m, off, len, take_span, &p);

	return err < 0 ? err : err ? 0 : (int)p.n;
}

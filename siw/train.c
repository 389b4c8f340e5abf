// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Zero-copy send: a train is the FPDUs that one call passes to TCP. Headers, and payload that is short or has a CRC,
 * are in the stream's buffer; TCP reads other payload directly from program memory. TCP may accept any part: the rest
 * of a partly sent FPDU is copied to the buffer, and the FPDUs after it are rolled back, to be built again from the
 * position before them. So no pointer to program memory remains after the call.
 */
#include "siw/siw_internal.h"

void siw_train_begin(struct siw_qp *sq, struct siw_train *t)
{
	t->bytes = t->nfpdus = t->niov = 0;
	t->full = false;
	t->tail = sq->out_at;
}

/* Appends the buffer up to @end. */
static void iov_add_buffer(struct siw_qp *sq, struct siw_train *t, u32 end)
{
	if (end != t->tail)
		t->iov[t->niov++] = (struct iovec){ sq->out + t->tail, end - t->tail };
	t->bytes += end - t->tail;
	t->tail = end;
}

/*
 * The pieces are placed after the iovec of the headers, which siw_train_add() fills; one iovec is left for the end of
 * the buffer.
 */
int siw_train_gather(struct siw_qp *sq, struct siw_train *t, const struct hca_mem *m, u32 off, u32 len)
{
	if (len < sq->siw->direct_min || !siw_may_split(sq) || sq->terms.mark_out || t->nfpdus == SIW_TRAIN ||
	    t->niov + 2 >= SIW_PIECES)
		return 0;
	return hca_mem_direct(m, off, len, &t->iov[t->niov + 1], SIW_PIECES - 2 - t->niov);
}

struct siw_fpdu *siw_train_add(struct siw_qp *sq, struct siw_train *t, const u8 *at, u32 hdr, int pieces)
{
	struct siw_fpdu *f = &t->fpdu[t->nfpdus++];

	iov_add_buffer(sq, t, (u32)(at - sq->out));
	f->head = t->tail - hdr;
	f->start = t->bytes - hdr;
	for (; pieces; pieces--)
		t->bytes += (u32)t->iov[t->niov++].iov_len;
	return f;
}

void siw_train_end(struct siw_qp *sq, struct siw_train *t)
{
	iov_add_buffer(sq, t, sq->out_at + sq->out_len);
}

/*
 * Copies the rest of @f to the buffer: to its start if that is free, else after the last header, where room is
 * reserved.
 */
static void fpdu_copy_rest(struct siw_qp *sq, const struct siw_train *t, const struct siw_fpdu *f, u32 from)
{
	u32 left = f->end - from, at = 0;
	u8 *to = f->head >= left ? sq->out : sq->out + sq->out_at + sq->out_len, *p = to;
	const struct iovec *iov = t->iov;

	for (; at < f->end; at += (u32)iov->iov_len, iov++) {
		u32 len = (u32)iov->iov_len, skip = from > at ? min(from - at, len) : 0,
		    keep = min(len, f->end - at) - skip;

		memcpy(p, (u8 *)iov->iov_base + skip, keep);
		p += keep;
	}
	sq->out_at = (u32)(to - sq->out);
	sq->out_len = left;
}

void siw_train_rewind(struct siw_qp *sq, const struct siw_pos *pos)
{
	sq->siw->counter[SIW_CTR_FPDU_SENT] -= sq->pos.fpdus - pos->fpdus;
	sq->pos = *pos;
}

void siw_train_sent(struct siw_qp *sq, struct siw_train *t, u32 bytes)
{
	struct siw_fpdu *f = t->fpdu, *end = t->fpdu + t->nfpdus;

	while (f != end && f->end <= bytes)
		f++;
	if (f == end) { /* the rest is in the buffer */
		sq->out_at += sq->out_len - (t->bytes - bytes);
		sq->out_len = t->bytes - bytes;
	} else if (bytes > f->start) {
		fpdu_copy_rest(sq, t, f, bytes);
		siw_train_rewind(sq, &f->after);
	} else {
		sq->out_at = f->head - (f->start - bytes);
		sq->out_len = f->start - bytes;
		siw_train_rewind(sq, &f->before);
	}
	if (!sq->out_len)
		sq->out_at = 0;
}

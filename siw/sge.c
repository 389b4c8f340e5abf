// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Direct data placement (RFC 5041) to and from program memory: by a batch of moves, or by zero-copy, where TCP reads
 * and writes mapped memory itself. The pointers for zero-copy are looked up before each call, with all key checks, and
 * are not kept.
 */
#include "siw/siw_internal.h"

static void read_failed(void *arg, u64 tag)
{
	((struct siw_qp *)arg)->read_failed = true;
}

static u64 write_tag(const struct siw_write *w)
{
	return (u64)w->kind << 32 | (u64)w->ncomps << 16 | w->slot;
}

static void write_failed(void *arg, u64 tag)
{
	const struct siw_write w = { .kind = (u8)(tag >> 32), .ncomps = (u8)(tag >> 16), .slot = (u16)tag };
	struct siw_qp *sq = arg;

	if (w.kind == SIW_WRITE_READ)
		hca_sq_at(&sq->wq, w.slot)->status = HCA_WC_LOC_PROT_ERR;
	if (sq->write_failed)
		return;
	sq->write_failed = true;
	sq->failed = w;
}

int siw_mem_read(struct siw_qp *sq, const struct hca_mem *m, u32 off, u32 len, void *local)
{
	const struct hca_mem_batch b = { sq->siw->rd, read_failed, sq, 0 };

	return hca_mem_read(m, off, len, local, &b);
}

int siw_mem_write(struct siw_qp *sq, const struct hca_mem *m, u32 off, u32 len, const void *local,
		  const struct siw_write *w)
{
	const struct hca_mem_batch b = { sq->siw->wr, write_failed, sq, write_tag(w) };

	return hca_mem_write(m, off, len, local, &b);
}

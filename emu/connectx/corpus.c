// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* In a build with RECORD=1: records what a guest's driver does as items of the fuzzer's input. */
#include "emu/connectx/connectx_internal.h"

#ifdef CX_RECORD
#include "emu/connectx/fuzz_items.h"
#include "emu/lib/recording.h"

#define ITEM_MAX   2048u /* bytes of a command; the rest of a list of pages is of no interest */
#define BYTES_MAX  1024u /* of a work queue entry */
#define RECORD_LEN 8u    /* of a doorbell record */

static struct recording recording = { .variable = "MUSLIN_CONNECTX_RECORD" };

static void item_write(u8 kind, u8 arg, const void *head, u32 head_len, const void *data, u32 len)
{
	recording_item(&recording, kind, arg, head, head_len, data, len);
}

static void memory_write(u64 addr, const void *data, u32 len)
{
	u8 offset[4];

	wire_store(offset, sizeof(offset), FUZZ_FOLD(addr));
	item_write(FUZZ_MEMORY, 0, offset, sizeof(offset), data, len);
}

static void doorbell_record_write(struct connectx *d, const struct cx_record *r)
{
	u8 bytes[RECORD_LEN];

	if (!vfio_dma_read(d->vfio, r->addr, bytes, sizeof(bytes)))
		memory_write(r->addr, bytes, sizeof(bytes));
}

/* Address of a queue's byte. */
static u64 buf_addr(const struct cx_buf *b, u64 off)
{
	u64 at = off + b->offset;

	return b->page[at >> 12] + (at & 4095);
}

void cx_corpus_command(const u8 *in, u32 in_len, u32 out_len)
{
	item_write(FUZZ_COMMAND, (u8)min(out_len / 64, 255u), NULL, 0, in, min(in_len, ITEM_MAX));
}

void cx_corpus_send(struct cx_qp *qp, const u8 *wqe, u16 index, u32 blocks)
{
	struct connectx *d = cx_of(qp->qp.verbs);
	u32 i, mask = BIT(qp->log_sq) - 1;
	u8 value[8];

	for (i = 0; i < blocks; i++)
		memory_write(buf_addr(&qp->buf, qp->sq_offset + ((index + i) & mask) * CX_WQE_BB), wqe + i * CX_WQE_BB,
			     CX_WQE_BB);
	doorbell_record_write(d, &qp->record);
	wire_store(value, sizeof(value), (u64)index << 40 | qp->qpn << 8);
	item_write(FUZZ_DOORBELL, 4, NULL, 0, value, sizeof(value));
}

void cx_corpus_recv(struct connectx *d, const struct cx_buf *b, const struct cx_record *r, u64 off, const u8 *wqe,
		    u32 len)
{
	memory_write(buf_addr(b, off), wqe, min(len, BYTES_MAX));
	doorbell_record_write(d, r);
}
#endif

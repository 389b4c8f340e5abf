// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A hostile program that writes to its rings. Input, repeated: the ring (9: the memory shared with the shim), the
 * offset in 4-byte words (2 bytes; from 0x8000 on: opcode, and a send entry with valid keys, part of which the input
 * overwrites), the number of bytes, and the bytes.
 */
#include "emu/host/fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* A valid entry that the input modifies, because a fuzzer does not guess keys. Returns
 * the bytes to modify, in units of 16. */
static u8 *entry(struct rxe_queue_buf *q, const struct desk_objects *o, bool ud, u8 opcode, u8 where)
{
	struct rxe_send_wqe *w = (struct rxe_send_wqe *)(q->data + 256 * (where % 16));

	memset(w, 0, sizeof(*w));
	w->wr.opcode = opcode & 15;
	w->wr.send_flags = HCA_SEND_SIGNALED;
	w->wr.wr.rdma.remote_addr = w->dma.sge[0].addr = (u64)(uintptr_t)desk_arena;
	w->wr.wr.rdma.rkey = o->rkey;
	if (ud)
		w->wr.wr.ud = (__typeof__(w->wr.wr.ud)){ .remote_qpn = o->qpn[2], .remote_qkey = 1, .ah_num = o->ah };
	w->dma.length = w->dma.resid = w->dma.sge[0].length = 100;
	w->dma.num_sge = 1;
	w->dma.sge[0].lkey = o->lkey;
	q->producer_index = where % 16 + 1;
	return (u8 *)w + where / 16 * 16;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct desk_objects o;
	struct desk d;
	size_t n;

	for (desk_open(&d), desk_make(&d, &o); size > 4; data += n, size -= n) {
		const struct mminfo *ring = &o.ring[data[0] % 10];
		u8 *to = d.base + ring->offset + (data[1] << 8 | data[2]) * 4ull % (ring->size - 255);
		const u8 *how = data;

		data += 4, size -= 4;
		n = min(size, (size_t)how[3]);
		if (how[1] & 128 && ring->size > 4096)
			to = entry((void *)(d.base + ring->offset), &o, how[0] % 10 == 6, how[1], how[2]);
		memcpy(to, data, n);
		desk_ring(&d, o.qp[how[0] / 10 % 4]);
		desk_run(&d, NSEC_PER_MSEC);
	}
	desk_close(&d);
	return 0;
}

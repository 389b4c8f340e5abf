// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A hostile program at its rings. Input, repeated: which ring (9: what it shares with the shim), where in 4-byte words (2
 * bytes; from 0x8000 on: opcode, and a send entry with valid keys of which the input overwrites a part), how many bytes, these.
 */
#include "emu/host/fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* An entry that would work but for what the input changes: fuzzers do not guess keys. Returns what to change, by 16 bytes. */
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

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* hca_dma_ops for users inside the daemon: a DMA address is a pointer. */
#include "emu/hca/soft_queue.h"

static int local_read(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	for (; n; n--, seg++)
		memcpy(seg->local, (const void *)(uintptr_t)seg->addr, seg->len);
	return 0;
}

static int local_write(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	for (; n; n--, seg++)
		memcpy((void *)(uintptr_t)seg->addr, seg->local, seg->len);
	return 0;
}

static void *local_direct(void *dma, u64 addr, u32 len, bool write)
{
	return (void *)(uintptr_t)addr;
}

const struct hca_dma_ops hca_local_dma = {
	.read = local_read,
	.write = local_write,
	.direct = local_direct,
};

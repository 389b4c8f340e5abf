// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* DMA to and from a guest: guest-physical addresses of mapped memory. */
#include <errno.h>

#include "emu/virtio/virtio_internal.h"

bool vd_pages_left(const struct vdev *d, u64 n)
{
	return d->pages + (d->verbs.ctx ? hca_mr_pages(d->verbs.ctx) : 0) + n <= VDEV_PAGES_MAX;
}

static int guest_dma_move(struct vdev *d, const struct hca_dma_seg *seg, u32 n, bool write)
{
	for (; n; n--, seg++) {
		u32 done = 0;

		if (write)
			hca_dma_order();
		while (done < seg->len) {
			u64 part = seg->len - done;
			void *p = vhost_memory_part(d->vhost, seg->addr + done, &part);

			if (!p) {
				vd_count(d, VDEV_CTR_BAD_ADDRESSES);
				return -EFAULT;
			}
			if (write)
				memcpy(p, (u8 *)seg->local + done, part);
			else
				memcpy((u8 *)seg->local + done, p, part);
			done += (u32)part;
		}
	}
	return 0;
}

static int dma_read(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	return guest_dma_move(dma, seg, n, false);
}

static int dma_write(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	return guest_dma_move(dma, seg, n, true);
}

static void *dma_direct(void *dma, u64 addr, u32 len, bool write)
{
	return vhost_memory(((struct vdev *)dma)->vhost, addr, len);
}

const struct hca_dma_ops vd_dma = { .read = dma_read, .write = dma_write, .direct = dma_direct };

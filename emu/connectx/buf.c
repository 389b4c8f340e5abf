// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Queues and doorbell records in guest memory, and the HCA's DMA to guest memory. */
#include <errno.h>
#include <stdlib.h>

#include "emu/connectx/connectx_internal.h"

#define PAGE_SHIFT     12
#define PAGE_SHIFT_MAX 31

bool cx_pages_left(const struct connectx *d, u64 n)
{
	return d->pages + (d->verbs.ctx ? hca_mr_pages(d->verbs.ctx) : 0) + n <= CX_PAGES_MAX;
}

/* Large pages are split: behind an IOMMU a page that is contiguous for the adapter is not in the daemon's memory. */
int cx_buf_create(struct connectx *d, struct cx_buf *b, const struct cx_pages *p, u64 size, bool write)
{
	u32 more = p->log_page_size, i;
	u64 n, offset, first, address;

	if (PAGE_SHIFT + more > PAGE_SHIFT_MAX)
		return -EINVAL;
	offset = (u64)p->page_offset << (PAGE_SHIFT + more - 6);
	if ((offset + size + BIT_ULL(PAGE_SHIFT + more) - 1) >> (PAGE_SHIFT + more) > p->n)
		return -EINVAL;
	first = offset >> PAGE_SHIFT;
	b->offset = (u32)(offset & (BIT(PAGE_SHIFT) - 1));
	b->end = b->offset + size;
	b->write = write;
	n = (b->end + BIT(PAGE_SHIFT) - 1) >> PAGE_SHIFT;
	if (!cx_pages_left(d, n))
		return -ENOMEM;
	b->page = malloc(n * sizeof(*b->page));
	b->map = calloc(n, sizeof(*b->map));
	if (!b->page || !b->map) {
		cx_buf_destroy(d, b);
		return -ENOMEM;
	}
	b->npages = (u32)n;
	b->epoch = d->map_epoch;
	d->pages += n;
	for (i = 0; i < n; i++) {
		address = wire_load(p->list + ((first + i) >> more) * sizeof(u64), sizeof(u64)) &
			  ~((u64)BIT(PAGE_SHIFT) - 1);
		b->page[i] = address + (((first + i) & (BIT_ULL(more) - 1)) << PAGE_SHIFT);
	}
	return 0;
}

void cx_buf_destroy(struct connectx *d, struct cx_buf *b)
{
	d->pages -= b->npages;
	free(b->page);
	free(b->map);
	*b = (struct cx_buf){ 0 };
}

u8 *cx_buf_at(struct connectx *d, struct cx_buf *b, u64 off, u32 len)
{
	u64 at = off + b->offset, in = at & (BIT(PAGE_SHIFT) - 1), i = at >> PAGE_SHIFT;

	if (unlikely(i >= b->npages || in + len > BIT(PAGE_SHIFT) || at + len > b->end))
		return NULL;
	if (unlikely(b->epoch != d->map_epoch)) {
		memset(b->map, 0, b->npages * sizeof(*b->map));
		b->epoch = d->map_epoch;
	}
	if (unlikely(!b->map[i])) {
		u64 from = i ? 0 : b->offset, to = min(b->end - (i << PAGE_SHIFT), BIT_ULL(PAGE_SHIFT));
		u8 *p = vfio_dma(d->vfio, b->page[i] + from, to - from, b->write);

		if (!p) {
			cx_count(d, CX_CTR_BAD_DMA);
			return NULL;
		}
		b->map[i] = p - from;
	}
	return b->map[i] + in;
}

int cx_buf_read(struct connectx *d, struct cx_buf *b, u64 off, void *dst, u32 len)
{
	while (len) {
		u32 part = min(len, (u32)(BIT(PAGE_SHIFT) - ((off + b->offset) & (BIT(PAGE_SHIFT) - 1))));
		const u8 *p = cx_buf_at(d, b, off, part);

		if (!p)
			return -EFAULT;
		memcpy(dst, p, part);
		dst = (u8 *)dst + part;
		off += part;
		len -= part;
	}
	return 0;
}

int cx_record_read(struct connectx *d, struct cx_record *r, u32 n, u32 *value)
{
	__be32 v;

	if (unlikely(r->epoch != d->map_epoch || !r->map)) {
		r->epoch = d->map_epoch;
		r->map = r->addr % 8 ? NULL : vfio_dma(d->vfio, r->addr, 8, false);
		if (!r->map) {
			cx_count(d, CX_CTR_BAD_DMA);
			return vfio_bus_master(d->vfio) ? -EFAULT : -EAGAIN;
		}
	}
	v = __atomic_load_n((__be32 *)(void *)r->map + n, __ATOMIC_ACQUIRE);
	*value = be32_to_cpu(v);
	return 0;
}

static int guest_move(struct connectx *d, const struct hca_dma_seg *seg, u32 n, bool write)
{
	for (; n; n--, seg++) {
		if (write)
			hca_dma_order();
		if (write ? vfio_dma_write(d->vfio, seg->addr, seg->local, seg->len)
			  : vfio_dma_read(d->vfio, seg->addr, seg->local, seg->len)) {
			cx_count(d, CX_CTR_BAD_DMA);
			return -EFAULT;
		}
	}
	return 0;
}

static int dma_read(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	return guest_move(dma, seg, n, false);
}

static int dma_write(void *dma, const struct hca_dma_seg *seg, u32 n)
{
	return guest_move(dma, seg, n, true);
}

static void *dma_direct(void *dma, u64 addr, u32 len, bool write)
{
	return vfio_dma(((struct connectx *)dma)->vfio, addr, len, write);
}

const struct hca_dma_ops cx_dma = {
	.read = dma_read,
	.write = dma_write,
	.direct = dma_direct,
	.page_fault = cx_page_fault,
};

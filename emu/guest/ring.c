// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rings of rxe's user ABI, shared with the daemon, and with the process that owns them. */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "emu/guest/muslin.h"

struct mu_ring *mu_ring_create(u32 elem, u32 entries)
{
	u32 slots = roundup_pow_of_two(entries + 1);
	struct mu_ring *r;

	elem = roundup_pow_of_two(elem);
	if (elem > MUSLIN_PAGE || slots > MUSLIN_RING_MAX / elem)
		return NULL;
	r = kzalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return NULL;
	r->size = PAGE_ALIGN(sizeof(*r->buf) + (size_t)slots * elem);
	r->mask = slots - 1;
	r->shift = ilog2(elem);
	r->buf = vmalloc_user(r->size);
	if (!r->buf) {
		kfree(r);
		return NULL;
	}
	r->buf->log2_elem_size = r->shift;
	r->buf->index_mask = r->mask;
	return r;
}

static void ring_free(struct mu_ring *r)
{
	vfree(r->buf);
	kfree(r);
}

void mu_mmap_free(struct rdma_user_mmap_entry *entry)
{
	ring_free(container_of(entry, struct mu_ring, entry));
}

void mu_ring_destroy(struct mu_ring *r)
{
	if (!r)
		return;
	if (r->mapped)
		rdma_user_mmap_entry_remove(&r->entry);
	else
		ring_free(r);
}

int mu_ring_share(struct mu_ring *r, struct ib_ucontext *uctx, struct mminfo *mi)
{
	int err = rdma_user_mmap_entry_insert(uctx, &r->entry, r->size);

	if (err)
		return err;
	r->mapped = true;
	mi->offset = rdma_user_mmap_get_offset(&r->entry);
	mi->size = r->size;
	return 0;
}

u64 *mu_ring_describe(const struct mu_ring *r, struct muslin_ring *desc)
{
	size_t bytes = sizeof(*r->buf) + ((size_t)(r->mask + 1) << r->shift);
	u32 n = DIV_ROUND_UP(bytes, MUSLIN_PAGE), i;
	u64 *list = kmalloc_array(n, sizeof(*list), GFP_KERNEL);

	if (!list)
		return NULL;
	for (i = 0; i < n; i++) {
		u8 *at = (u8 *)r->buf + (size_t)i * MUSLIN_PAGE;

		list[i] = page_to_phys(vmalloc_to_page(at)) + offset_in_page(at);
	}
	*desc = (struct muslin_ring){
		.pages = virt_to_phys(list),
		.npages = n,
		.log2_elem = r->shift,
		.slots = r->mask + 1,
	};
	return list;
}

int mu_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry = rdma_user_mmap_entry_get(uctx, vma);
	int err;

	if (!entry)
		return -EINVAL;
	err = remap_vmalloc_range(vma, container_of(entry, struct mu_ring, entry)->buf, 0);
	rdma_user_mmap_entry_put(entry);
	return err;
}

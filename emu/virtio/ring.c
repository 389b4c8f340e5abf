// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rings of rxe's user ABI in guest pages: geometry and mapping. */
#include <errno.h>
#include <stdlib.h>

#include "emu/virtio/virtio_internal.h"

static_assert(MUSLIN_PAGE == VERBS_RING_PAGE, "pieces of a ring");

void vd_ring_remap(struct vdev *d, struct vd_ring *r)
{
	u32 i;

	for (i = 0; i < r->npages; i++)
		r->ring.page[i] = vhost_memory(d->vhost, r->gpa[i], MUSLIN_PAGE);
	for (i = 0; i < r->npages; i++) {
		if (!r->ring.page[i])
			r->ring.page[0] = NULL;
	}
}

static int geometry_ok(const struct muslin_ring *desc, u32 min_elem)
{
	u64 bytes;

	if (desc->log2_elem < 4 || desc->log2_elem > 12 || 1u << desc->log2_elem < min_elem)
		return -EINVAL;
	if (desc->slots < 2 || (desc->slots & (desc->slots - 1)) || desc->slots > MUSLIN_RING_MAX >> desc->log2_elem)
		return -EINVAL;
	bytes = verbs_ring_bytes(desc->slots, desc->log2_elem);
	return desc->npages == (bytes + MUSLIN_PAGE - 1) / MUSLIN_PAGE ? 0 : -EINVAL;
}

int vd_ring_create(struct vdev *d, struct vd_ring *r, const struct muslin_ring *desc, u32 min_elem)
{
	u64 size = (u64)desc->npages * sizeof(u64);
	const void *list;
	u32 i;

	if (geometry_ok(desc, min_elem))
		return -EINVAL;
	list = vhost_memory(d->vhost, desc->pages, size);
	if (!list)
		return -EFAULT;
	if (!vd_pages_left(d, desc->npages))
		return -ENOMEM;
	r->gpa = malloc(size);
	r->ring = (struct verbs_ring){ .mask = desc->slots - 1, .shift = desc->log2_elem };
	r->ring.page = malloc(desc->npages * sizeof(*r->ring.page));
	if (!r->gpa || !r->ring.page) {
		vd_ring_destroy(r);
		return -ENOMEM;
	}
	memcpy(r->gpa, list, size);
	d->bytes += size;
	r->d = d;
	r->npages = desc->npages;
	d->pages += r->npages;
	for (i = 0; i < r->npages; i++) {
		if (r->gpa[i] % MUSLIN_PAGE) {
			vd_ring_destroy(r);
			return -EINVAL;
		}
	}
	vd_ring_remap(d, r);
	if (verbs_ring_mapped(&r->ring))
		return 0;
	vd_ring_destroy(r);
	return -EFAULT;
}

void vd_ring_destroy(struct vd_ring *r)
{
	if (r->npages)
		r->d->pages -= r->npages;
	free(r->gpa);
	free(r->ring.page);
	r->gpa = NULL;
	r->ring.page = NULL;
	r->npages = 0;
}

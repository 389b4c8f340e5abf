// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rings of rxe's user ABI in guest pages. The guest writes them at any time: every entry is copied out once and judged as copied,
 * and indexes are masked by the daemon's own mask.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/vdev/internal.h"

#define HEAD offsetof(struct rxe_queue_buf, data)

static u32 *word_at(const struct vd_ring *r, u32 off)
{
	return (u32 *)(void *)(r->page[off / MUSLIN_PAGE] + off % MUSLIN_PAGE);
}

static u32 *producer(const struct vd_ring *r)
{
	return word_at(r, offsetof(struct rxe_queue_buf, producer_index));
}

static u32 *consumer(const struct vd_ring *r)
{
	return word_at(r, offsetof(struct rxe_queue_buf, consumer_index));
}

static bool alive(const struct vd_ring *r)
{
	return r->page && r->page[0];
}

void vd_ring_remap(struct vdev *d, struct vd_ring *r)
{
	u32 i;

	for (i = 0; i < r->npages; i++)
		r->page[i] = vhost_memory(d->vhost, r->gpa[i], MUSLIN_PAGE);
	for (i = 0; i < r->npages; i++) {
		if (!r->page[i])
			r->page[0] = NULL;
	}
}

static int geometry_ok(const struct muslin_ring *desc, u32 min_elem)
{
	u64 bytes;

	if (desc->log2_elem < 4 || desc->log2_elem > 12 || 1u << desc->log2_elem < min_elem)
		return -EINVAL;
	if (desc->slots < 2 || (desc->slots & (desc->slots - 1)) || desc->slots > MUSLIN_RING_MAX >> desc->log2_elem)
		return -EINVAL;
	bytes = HEAD + ((u64)desc->slots << desc->log2_elem);
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
	r->gpa = malloc(size);
	r->page = malloc(desc->npages * sizeof(*r->page));
	if (!r->gpa || !r->page) {
		vd_ring_destroy(r);
		return -ENOMEM;
	}
	memcpy(r->gpa, list, size);
	r->npages = desc->npages;
	r->mask = desc->slots - 1;
	r->shift = desc->log2_elem;
	r->next = r->done = 0;
	for (i = 0; i < r->npages; i++) {
		if (r->gpa[i] % MUSLIN_PAGE) {
			vd_ring_destroy(r);
			return -EINVAL;
		}
	}
	vd_ring_remap(d, r);
	if (alive(r))
		return 0;
	vd_ring_destroy(r);
	return -EFAULT;
}

void vd_ring_destroy(struct vd_ring *r)
{
	free(r->gpa);
	free(r->page);
	r->gpa = NULL;
	r->page = NULL;
	r->npages = 0;
}

u32 vd_ring_posted(const struct vd_ring *r)
{
	return alive(r) ? (__atomic_load_n(producer(r), __ATOMIC_ACQUIRE) - r->next) & r->mask : 0;
}

static void copy(const struct vd_ring *r, u32 slot, void *buf, u32 len, bool in)
{
	u32 off = (u32)HEAD + (slot << r->shift), done = 0;

	while (done < len) {
		u8 *at = r->page[(off + done) / MUSLIN_PAGE] + (off + done) % MUSLIN_PAGE;
		u32 part = min(len - done, MUSLIN_PAGE - (off + done) % MUSLIN_PAGE);

		if (in)
			memcpy(at, (u8 *)buf + done, part);
		else
			memcpy((u8 *)buf + done, at, part);
		done += part;
	}
}

bool vd_ring_pull(struct vd_ring *r, void *dst, u32 max)
{
	if (!vd_ring_posted(r))
		return false;
	copy(r, r->next, dst, min(max, 1u << r->shift), false);
	r->next = (r->next + 1) & r->mask;
	return true;
}

void vd_ring_done(struct vd_ring *r)
{
	r->done = (r->done + 1) & r->mask;
	if (alive(r))
		__atomic_store_n(consumer(r), r->done, __ATOMIC_RELEASE);
}

void vd_ring_reset(struct vd_ring *r)
{
	if (!alive(r))
		return;
	r->next = r->done = __atomic_load_n(producer(r), __ATOMIC_ACQUIRE) & r->mask;
	__atomic_store_n(consumer(r), r->done, __ATOMIC_RELEASE);
}

int vd_ring_put(struct vd_ring *r, const void *entry, u32 len)
{
	u32 next = (r->next + 1) & r->mask;

	if (!alive(r) || next == (__atomic_load_n(consumer(r), __ATOMIC_ACQUIRE) & r->mask))
		return -ENOSPC;
	copy(r, r->next, (void *)(uintptr_t)entry, len, true);
	r->next = next;
	__atomic_store_n(producer(r), next, __ATOMIC_RELEASE);
	return 0;
}

bool vd_ring_move(struct vd_ring *from, struct vd_ring *to, u32 len)
{
	u8 entry[256];
	u32 at;

	if (!alive(from) || len > sizeof(entry))
		return false;
	at = __atomic_load_n(consumer(from), __ATOMIC_ACQUIRE) & from->mask;
	for (; at != from->next; at = (at + 1) & from->mask) {
		copy(from, at, entry, len, false);
		if (vd_ring_put(to, entry, len))
			return false;
	}
	return true;
}

bool vd_ring_move_posted(const struct vd_ring *from, struct vd_ring *to)
{
	static u8 entry[VDEV_ELEM_MAX];
	u32 n = vd_ring_posted(from), len = 1u << min(from->shift, to->shift), i;

	if (!alive(to) || n > to->mask)
		return false;
	for (i = 0; i < n; i++) {
		copy(from, (from->next + i) & from->mask, entry, len, false);
		copy(to, i, entry, len, true);
	}
	__atomic_store_n(producer(to), n, __ATOMIC_RELEASE);
	return true;
}

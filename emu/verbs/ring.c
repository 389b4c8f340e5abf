// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rings of rxe's user ABI: indexes, entries, and resizing. */
#include "emu/verbs/ring.h"

#include <errno.h>
#include <rdma/rdma_user_rxe.h>
#include <unistd.h>

#define HEAD ((u32)offsetof(struct rxe_queue_buf, data))

u32 verbs_ring_slots(u32 entries)
{
	u32 slots = 1;

	while (slots < entries + 1)
		slots *= 2;
	return slots;
}

u32 verbs_ring_shift(u32 size)
{
	u32 shift = 0;

	while (1u << shift < size)
		shift++;
	return shift;
}

u64 verbs_ring_bytes(u32 slots, u32 shift)
{
	return HEAD + ((u64)slots << shift);
}

bool verbs_ring_mapped(const struct verbs_ring *r)
{
	return r->base || (r->page && r->page[0]);
}

static u8 *ring_at(const struct verbs_ring *r, u32 off)
{
	return likely(r->base) ? r->base + off : r->page[off / VERBS_RING_PAGE] + off % VERBS_RING_PAGE;
}

static u32 *ring_producer(const struct verbs_ring *r)
{
	return (u32 *)(void *)ring_at(r, offsetof(struct rxe_queue_buf, producer_index));
}

static u32 *ring_consumer(const struct verbs_ring *r)
{
	return (u32 *)(void *)ring_at(r, offsetof(struct rxe_queue_buf, consumer_index));
}

static void ring_copy(const struct verbs_ring *r, u32 slot, void *buf, u32 len, bool in)
{
	u32 off = HEAD + (slot << r->shift), done = 0;

	while (done < len) {
		u32 part = r->base ? len : min(len - done, VERBS_RING_PAGE - (off + done) % VERBS_RING_PAGE);

		if (in)
			memcpy(ring_at(r, off + done), (u8 *)buf + done, part);
		else
			memcpy((u8 *)buf + done, ring_at(r, off + done), part);
		done += part;
	}
}

u32 verbs_ring_posted(const struct verbs_ring *r)
{
	return verbs_ring_mapped(r) ? (__atomic_load_n(ring_producer(r), __ATOMIC_ACQUIRE) - r->next) & r->mask : 0;
}

u32 verbs_ring_unreleased(const struct verbs_ring *r)
{
	return verbs_ring_mapped(r) ? (__atomic_load_n(ring_producer(r), __ATOMIC_ACQUIRE) - r->done) & r->mask : 0;
}

/* Whether the owner has written to the pages up to @end. A producer index may be ahead of the written entries. */
static bool ring_written(struct verbs_ring *r, u64 end)
{
	off_t hole;

	if (likely(end <= r->known))
		return true;
	hole = lseek(r->memfd, (off_t)r->known, SEEK_HOLE);
	if (hole > (off_t)r->known)
		r->known = (u64)hole;
	return end <= r->known;
}

const void *verbs_ring_pull(struct verbs_ring *r)
{
	static u8 copy[VERBS_ENTRY_MAX] __attribute__((aligned(8)));
	u32 slot = r->next & r->mask, off = HEAD + (slot << r->shift), size = 1u << r->shift, written;
	u64 at = r->offset + off;

	if (!verbs_ring_posted(r))
		return NULL;
	r->next = (r->next + 1) & r->mask;
	if (r->sparse && unlikely(!ring_written(r, at + size)) && size <= sizeof(copy)) {
		/*
		 * The owner writes to as much of an entry as its request needs; the rest may be in a hole of the file.
		 */
		written = r->known > at ? (u32)(r->known - at) : 0;
		memcpy(copy, r->base + off, written);
		memset(copy + written, 0, size - written);
		return copy;
	}
	if (likely(r->base) || off % VERBS_RING_PAGE + size <= VERBS_RING_PAGE)
		return ring_at(r, off);
	ring_copy(r, slot, copy, size, false);
	return copy;
}

void verbs_ring_release(struct verbs_ring *r)
{
	if (r->stale) {
		r->stale--;
		return;
	}
	r->done = (r->done + 1) & r->mask;
	if (likely(verbs_ring_mapped(r)))
		__atomic_store_n(ring_consumer(r), r->done, __ATOMIC_RELEASE);
}

void verbs_ring_reset(struct verbs_ring *r)
{
	if (!verbs_ring_mapped(r))
		return;
	r->next = r->done = __atomic_load_n(ring_producer(r), __ATOMIC_ACQUIRE) & r->mask;
	__atomic_store_n(ring_consumer(r), r->done, __ATOMIC_RELEASE);
}

int verbs_ring_put(struct verbs_ring *r, const void *entry, u32 len)
{
	u32 next = (r->next + 1) & r->mask;

	if (unlikely(!verbs_ring_mapped(r)) || next == (__atomic_load_n(ring_consumer(r), __ATOMIC_ACQUIRE) & r->mask))
		return -ENOSPC;
	ring_copy(r, r->next, (void *)(uintptr_t)entry, len, true);
	r->next = next;
	__atomic_store_n(ring_producer(r), next, __ATOMIC_RELEASE);
	return 0;
}

/* Copies @n entries from slot @at on to the first slots of @to. */
static bool ring_move(struct verbs_ring *to, const struct verbs_ring *from, u32 at, u32 n, u32 len)
{
	static u8 entry[VERBS_ENTRY_MAX];
	u32 i;

	if (!verbs_ring_mapped(to) || n > to->mask || len > sizeof(entry))
		return false;
	for (i = 0; i < n; i++) {
		ring_copy(from, (at + i) & from->mask, entry, len, false);
		ring_copy(to, i, entry, len, true);
	}
	__atomic_store_n(ring_producer(to), n, __ATOMIC_RELEASE);
	return true;
}

u32 verbs_ring_put_count(const struct verbs_ring *r)
{
	return verbs_ring_mapped(r) ? (r->next - __atomic_load_n(ring_consumer(r), __ATOMIC_ACQUIRE)) & r->mask : 0;
}

bool verbs_ring_move_put(struct verbs_ring *to, const struct verbs_ring *from, u32 len)
{
	u32 n = verbs_ring_put_count(from);

	if (!verbs_ring_mapped(from) || !ring_move(to, from, from->next - n, n, len))
		return false;
	to->next = n;
	return true;
}

bool verbs_ring_move_posted(struct verbs_ring *to, const struct verbs_ring *from)
{
	if (!ring_move(to, from, from->next, verbs_ring_posted(from), 1u << min(to->shift, from->shift)))
		return false;
	to->stale = from->stale + ((from->next - from->done) & from->mask);
	return true;
}

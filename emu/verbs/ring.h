/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A ring of rxe's user ABI (struct rxe_queue_buf) in mapped memory: contiguous for a program, in pages for a guest.
 * Its owner may write to it at any time: the daemon keeps private copies of the sizes and of its own index, and masks
 * every index that it reads.
 */
#ifndef MUSLIN_VERBS_RING_H
#define MUSLIN_VERBS_RING_H

#include "emu/hca/hca.h"

#define VERBS_RING_PAGE 4096u
#define VERBS_ENTRY_MAX 4096u /* bytes */

struct verbs_ring {
	u8 *base;  /* if contiguous */
	u8 **page; /* otherwise pieces of VERBS_RING_PAGE; the first is NULL if the memory is gone */
	u32 mask, shift;
	u32 next;  /* position at which the daemon pulls (send and receive) or puts (CQ) */
	u32 done;  /* sends and receives: released slots */
	u32 stale; /* entries pulled from the ring that this one replaced and not yet released */
	/* the ring is in a sparse file; a read must not allocate its pages: */
	bool sparse;
	int memfd;  /* not owned */
	u64 offset; /* of the ring in the file */
	u64 known;  /* the owner has written all pages of the file from the ring's first one up to this offset */
};

/* Slots of a ring for @entries entries of @size bytes, and log2 of the slot size. */
u32 verbs_ring_slots(u32 entries);
u32 verbs_ring_shift(u32 size);
u64 verbs_ring_bytes(u32 slots, u32 shift);

bool verbs_ring_mapped(const struct verbs_ring *r);
/* Entries that the owner has posted and the daemon has not pulled, and those that the daemon has not released. */
u32 verbs_ring_posted(const struct verbs_ring *r);
u32 verbs_ring_unreleased(const struct verbs_ring *r);
/* The next entry, valid until the next call for any ring, or NULL. The memory is shared: read each field once. */
const void *verbs_ring_pull(struct verbs_ring *r);
/* Releases the oldest entry that was pulled. */
void verbs_ring_release(struct verbs_ring *r);
/* Drops posted entries. */
void verbs_ring_reset(struct verbs_ring *r);
/* Puts an entry. 0, or -ENOSPC. */
int verbs_ring_put(struct verbs_ring *r, const void *entry, u32 len);
/* Entries that were put and not consumed. */
u32 verbs_ring_put_count(const struct verbs_ring *r);
/* Moves to an empty ring the entries put and not consumed (@len bytes each), or those posted and
 * not pulled. False if they do not fit. */
bool verbs_ring_move_put(struct verbs_ring *to, const struct verbs_ring *from, u32 len);
bool verbs_ring_move_posted(struct verbs_ring *to, const struct verbs_ring *from);

#endif

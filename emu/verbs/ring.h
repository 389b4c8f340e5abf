/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A ring of rxe's user ABI (struct rxe_queue_buf) in mapped memory: in one piece, as a program's, or in pages, as a guest's. Its owner may
 * write to it at any time: sizes and the daemon's own index are copies that it cannot reach, and every index read is masked.
 */
#ifndef MUSLIN_VERBS_RING_H
#define MUSLIN_VERBS_RING_H

#include "emu/hca/hca.h"

#define VERBS_RING_PAGE 4096u
#define VERBS_ENTRY_MAX 4096u /* bytes */

struct verbs_ring {
	u8 *base;  /* in one piece */
	u8 **page; /* or in pieces of VERBS_RING_PAGE; the first is NULL where memory is gone */
	u32 mask, shift;
	u32 next;  /* where the daemon pulls (send and receive) or puts (CQ) */
	u32 done;  /* sends and receives: slots released */
	u32 stale; /* entries pulled from a ring that this one has replaced, still to be released */
	/* a sparse file, whose pages are not to be allocated by reading them: */
	bool sparse;
	int memfd;  /* not owned */
	u64 offset; /* of the ring in the file */
	u64 known;  /* the owner has written to all pages of the file from the ring's first one up to here */
};

/* Slots, and log2 of the size, of a ring for @entries entries of @size bytes. */
u32 verbs_ring_slots(u32 entries);
u32 verbs_ring_shift(u32 size);
u64 verbs_ring_bytes(u32 slots, u32 shift);

bool verbs_ring_alive(const struct verbs_ring *r);
/* Entries that the owner has posted and the daemon has not pulled, and those that the daemon has not released. */
u32 verbs_ring_posted(const struct verbs_ring *r);
u32 verbs_ring_unreleased(const struct verbs_ring *r);
/* The next entry, valid until the next call for any ring, or NULL. It is mapped memory, so each field is to be read once. */
const void *verbs_ring_pull(struct verbs_ring *r);
/* Releases the oldest entry that was pulled. */
void verbs_ring_release(struct verbs_ring *r);
/* Drops what is posted. */
void verbs_ring_reset(struct verbs_ring *r);
/* Puts an entry. 0, or -ENOSPC. */
int verbs_ring_put(struct verbs_ring *r, const void *entry, u32 len);
/* Entries that were put and not consumed. */
u32 verbs_ring_put_count(const struct verbs_ring *r);
/* Moves to an empty ring what was put and not consumed (@len bytes of each entry), or what was posted and not pulled. False: it does not fit. */
bool verbs_ring_move_put(struct verbs_ring *to, const struct verbs_ring *from, u32 len);
bool verbs_ring_move_posted(struct verbs_ring *to, const struct verbs_ring *from);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rings of trunks: shared memory for the messages of one direction between two daemons of a machine, instead of their
 * socket.
 *
 * One daemon writes and the other one reads. The writer creates the ring and passes its memfd. The messages are those
 * of the socket, one after the other. A message that does not fit before the end of the ring starts at the ring's
 * start, after a head of type TRUNK_SKIP, or after fewer bytes than a head has. Each daemon trusts its own index only,
 * and reads the other one once.
 *
 * An eventfd, which the writer creates and passes, too, wakes the reader. It is watched for edges, and never read.
 */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu/lib/passed.h"
#include "fabric/trunk/trunk_internal.h"

/* Each daemon writes the members of its own cache lines, and may clear asleep and full. */
struct trunk_ring_shared {
	u64 head;                              /* bytes written since the creation */
	u32 full;                              /* the writer waits for space, and needs a wake-up */
	u64 tail __attribute__((aligned(64))); /* bytes read */
	u32 asleep;                            /* the reader needs a signal of the eventfd */
	u8 data[TRUNK_RING] __attribute__((aligned(64)));
};

int trunk_ring_create(struct trunk_ring *r)
{
	int fd = memfd_create("trunk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int event = fd < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	void *at = MAP_FAILED;

	if (fd < 0)
		return -1;
	if (event >= 0 && !ftruncate(fd, sizeof(*r->shared)) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		at = mmap(NULL, sizeof(*r->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		if (event >= 0)
			close(event);
		close(fd);
		return -1;
	}
	*r = (struct trunk_ring){ .shared = at, .own = true, .event = event };
	return fd;
}

int trunk_ring_map(struct trunk_ring *r, struct shared_owner *owner, int fd, int event)
{
	int err = shared_map_init(&r->map, owner, fd, 0, sizeof(*r->shared), true);

	if (err)
		return err;
	r->shared = (struct trunk_ring_shared *)r->map.ptr;
	r->event = event;
	return 0;
}

void trunk_ring_destroy(struct trunk_ring *r)
{
	if (r->shared)
		close(r->event);
	if (r->own)
		munmap(r->shared, sizeof(*r->shared));
	else if (r->shared)
		shared_map_fini(&r->map);
	r->shared = NULL;
	r->own = false;
}

/* Writer */

/* Bytes that remain unused at the end of the ring if a message of @len bytes would not fit there. */
static u32 ring_skip(const struct trunk_ring *r, u32 len)
{
	u32 left = TRUNK_RING - (u32)(r->at % TRUNK_RING);

	return left < len ? left : 0;
}

/* Is there space for @need bytes? *bad is set if the reader's index is invalid. */
static bool ring_space(struct trunk_ring *r, u32 need, bool *bad)
{
	u64 tail;

	if (r->at + need - r->other <= TRUNK_RING)
		return true;
	tail = __atomic_load_n(&r->shared->tail, __ATOMIC_ACQUIRE);
	*bad = r->at - tail > TRUNK_RING;
	if (*bad || r->at + need - tail > TRUNK_RING)
		return false;
	r->other = tail;
	return true;
}

u8 *trunk_ring_reserve(struct trunk_ring *r, u32 len, bool *bad)
{
	u32 at = (u32)(r->at % TRUNK_RING), skip = ring_skip(r, len);
	struct trunk_head h = { .type = TRUNK_SKIP };

	if (!ring_space(r, skip + len, bad))
		return NULL;
	if (skip >= sizeof(h))
		memcpy(r->shared->data + at, &h, sizeof(h));
	r->at += skip;
	return r->shared->data + r->at % TRUNK_RING;
}

void trunk_ring_write(struct trunk_ring *r, u32 len)
{
	r->at += len;
	__atomic_store_n(&r->shared->head, r->at, __ATOMIC_RELEASE);
}

/*
 * No wake-up is lost: the writer stores head before it loads asleep, and the reader stores asleep before it loads head,
 * each with a full barrier in between, so that one of them gets the other's value. Without a new head, the last call
 * has done all there is to do: if the reader has gone to sleep since, it has seen that head.
 */
bool trunk_ring_wakes_reader(struct trunk_ring *r)
{
	if (r->at == r->announced)
		return false;
	r->announced = r->at;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&r->shared->asleep, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(&r->shared->asleep, 0, __ATOMIC_SEQ_CST);
}

void trunk_ring_signal(struct trunk_ring *r)
{
	passed_signal(r->event);
}

bool trunk_ring_reader_sleeps(const struct trunk_ring *r)
{
	return __atomic_load_n(&r->shared->asleep, __ATOMIC_RELAXED);
}

bool trunk_ring_unread(const struct trunk_ring *r)
{
	return __atomic_load_n(&r->shared->tail, __ATOMIC_RELAXED) != r->at && !trunk_ring_reader_sleeps(r);
}

bool trunk_ring_fits(struct trunk_ring *r, u32 len)
{
	bool bad = false;

	return ring_space(r, ring_skip(r, len) + len, &bad) || bad;
}

bool trunk_ring_wait_space(struct trunk_ring *r, bool wait)
{
	__atomic_store_n(&r->shared->full, wait, __ATOMIC_SEQ_CST);
	return trunk_ring_has_space(r);
}

bool trunk_ring_has_space(const struct trunk_ring *r)
{
	u64 used = r->at - __atomic_load_n(&r->shared->tail, __ATOMIC_SEQ_CST);

	return used > TRUNK_RING || TRUNK_RING - used >= 2 * TRUNK_TAIL_MAX;
}

/* Reader */

const u8 *trunk_ring_next(struct trunk_ring *r, struct trunk_head *h, bool *bad)
{
	u32 at, left, n;
	u64 head;

	for (n = 0;; n++) {
		*bad = n > 2;
		if (*bad)
			return NULL;
		if (r->at == r->other) {
			head = __atomic_load_n(&r->shared->head, __ATOMIC_ACQUIRE);
			*bad = head - r->at > TRUNK_RING;
			if (*bad || head == r->at)
				return NULL;
			r->other = head;
		}
		at = (u32)(r->at % TRUNK_RING);
		left = (u32)min(r->other - r->at, (u64)(TRUNK_RING - at));
		if (left >= sizeof(*h)) {
			memcpy(h, r->shared->data + at, sizeof(*h));
			if (h->type != TRUNK_SKIP)
				break;
		}
		r->at += left; /* to the end of the ring, or of what was written */
	}
	*bad = be16_to_cpu(h->len) > left - sizeof(*h);
	return *bad ? NULL : r->shared->data + at + sizeof(*h);
}

void trunk_ring_read(struct trunk_ring *r, u32 len)
{
	r->at += len;
}

bool trunk_ring_free(struct trunk_ring *r)
{
	__atomic_store_n(&r->shared->tail, r->at, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&r->shared->full, __ATOMIC_SEQ_CST) &&
	       __atomic_exchange_n(&r->shared->full, 0, __ATOMIC_SEQ_CST);
}

bool trunk_ring_sleep(struct trunk_ring *r, bool asleep)
{
	__atomic_store_n(&r->shared->asleep, asleep, __ATOMIC_SEQ_CST);
	return asleep && __atomic_load_n(&r->shared->head, __ATOMIC_SEQ_CST) != r->at;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of ring.c, contiguous and in pages; and replacement of a ring while entries are not released. */
#include "emu/verbs/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_rxe.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/lib/row.h"

#define DATA  ((u32)offsetof(struct rxe_queue_buf, data))
#define SHIFT 9 /* entries cross page boundaries, because the header before them does not fill a page */
#define SLOTS 32
#define PAGES 5

struct memory {
	u8 bytes[PAGES * VERBS_RING_PAGE] __attribute__((aligned(4096)));
};

/* Pages in another order than their addresses. */
static void ring_of(struct verbs_ring *r, struct memory *m, bool pages, u8 **page)
{
	static const u8 order[PAGES] = { 3, 0, 4, 1, 2 };
	u32 i;

	memset(m, 0, sizeof(*m));
	*r = (struct verbs_ring){ .mask = SLOTS - 1, .shift = SHIFT };
	for (i = 0; i < PAGES; i++)
		page[i] = m->bytes + order[i] * VERBS_RING_PAGE;
	if (pages)
		r->page = page;
	else
		r->base = m->bytes;
}

static u8 *at(const struct verbs_ring *r, u32 off)
{
	return r->base ? r->base + off : r->page[off / VERBS_RING_PAGE] + off % VERBS_RING_PAGE;
}

static u32 *producer(const struct verbs_ring *r)
{
	return (u32 *)(void *)at(r, offsetof(struct rxe_queue_buf, producer_index));
}

static u32 *consumer(const struct verbs_ring *r)
{
	return (u32 *)(void *)at(r, offsetof(struct rxe_queue_buf, consumer_index));
}

/* The owner posts entries @first..@last, each filled with its number. */
static void post(const struct verbs_ring *r, u32 first, u32 last)
{
	u32 n, i;

	for (n = first; n <= last; n++) {
		for (i = 0; i < 1u << SHIFT; i++)
			*at(r, DATA + ((n & r->mask) << SHIFT) + i) = (u8)n;
		*producer(r) = (n + 1) & r->mask;
	}
}

static bool pulls(struct verbs_ring *r, u32 n)
{
	const u8 *e = verbs_ring_pull(r);
	u32 i;

	for (i = 0; e && i < 1u << SHIFT; i++)
		if (e[i] != (u8)n)
			return false;
	return e;
}

static void test_pull(bool pages)
{
	static struct memory m;
	u8 *page[PAGES];
	struct verbs_ring r;
	bool all = true;
	u32 n;

	ring_of(&r, &m, pages, page);
	row(1, "nothing posted", !verbs_ring_posted(&r) && !verbs_ring_pull(&r));
	for (n = 0; n < 3 * SLOTS; n++) {
		post(&r, n, n);
		all &= verbs_ring_posted(&r) == 1 && pulls(&r, n) && verbs_ring_unreleased(&r) == 1;
		verbs_ring_release(&r);
		all &= *consumer(&r) == ((n + 1) & r.mask);
	}
	row(2, "each entry, across pages", all && !verbs_ring_pull(&r));
	*producer(&r) = 0xffffff00;
	row(3, "a wild index is masked", verbs_ring_posted(&r) < SLOTS);
	post(&r, 0, 4);
	verbs_ring_reset(&r);
	row(4, "reset drops what is posted", !verbs_ring_posted(&r) && *consumer(&r) == 5);
}

static void test_put(bool pages)
{
	static struct memory m, m2;
	u8 *page[PAGES], *page2[PAGES], entry[1u << SHIFT];
	struct verbs_ring r, to;
	bool all = true;
	u32 n;

	ring_of(&r, &m, pages, page);
	for (n = 0; n < SLOTS - 1; n++) {
		memset(entry, (int)n, sizeof(entry));
		all &= !verbs_ring_put(&r, entry, sizeof(entry));
	}
	row(10, "as many as there is room for", all && verbs_ring_put(&r, entry, sizeof(entry)) == -ENOSPC);
	*consumer(&r) = 29;
	row(11, "what was not consumed", verbs_ring_put_count(&r) == 2);
	ring_of(&to, &m2, !pages, page2);
	to.mask = 1;
	row(12, "does not fit", !verbs_ring_move_put(&to, &r, sizeof(entry)));
	to.mask = 3;
	row(13, "moves", verbs_ring_move_put(&to, &r, sizeof(entry)) && to.next == 2 && *producer(&to) == 2);
	row(14, "whole", *at(&to, DATA) == 29 && *at(&to, DATA + 511) == 29 && *at(&to, DATA + 512) == 30);
}

/* Replaces the ring when entries 0 and 1 are pulled and not released, 2 and 3 posted. */
static void test_replace(bool pages)
{
	static struct memory m, m2;
	u8 *page[PAGES], *page2[PAGES];
	struct verbs_ring r, to;

	ring_of(&r, &m, pages, page);
	ring_of(&to, &m2, !pages, page2);
	post(&r, 0, 3);
	row(20, "two are out", pulls(&r, 0) && pulls(&r, 1));
	row(21, "two move", verbs_ring_move_posted(&to, &r) && verbs_ring_posted(&to) == 2);
	verbs_ring_release(&to);
	verbs_ring_release(&to);
	row(22, "a release of the old ring's entries releases none of the new one", *consumer(&to) == 0);
	row(23, "the entries", pulls(&to, 2) && pulls(&to, 3));
	verbs_ring_release(&to);
	row(24, "their release", *consumer(&to) == 1);
}

static void test_unmapped_ring(void)
{
	static struct memory m;
	u8 *page[PAGES];
	struct verbs_ring r, none = { 0 };

	ring_of(&r, &m, true, page);
	post(&r, 0, 1);
	row(30, "before", pulls(&r, 0));
	page[0] = NULL;
	verbs_ring_release(&r);
	verbs_ring_reset(&r);
	row(31, "memory is unmapped",
	    !verbs_ring_posted(&r) && !verbs_ring_pull(&r) && verbs_ring_put(&r, &m, 8) == -ENOSPC);
	row(32, "no ring", !verbs_ring_pull(&none) && !verbs_ring_mapped(&none));
}

static u64 allocated(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (u64)st.st_blocks * 512;
}

/* A ring in a file with holes: the owner writes to the begin of each entry, or to none. */
static void test_sparse(void)
{
	static const u8 zeros[1024];
	const u32 size = sizeof(zeros), used = 224;
	u64 len = 2 * VERBS_RING_PAGE + verbs_ring_bytes(SLOTS, 10), before;
	int fd = memfd_create("ring", 0);
	struct verbs_ring r = { .mask = SLOTS - 1, .shift = 10, .sparse = true, .memfd = fd };
	u32 i, whole = 0, rest = 0;
	const u8 *e;
	u8 *base;

	if (fd < 0 || ftruncate(fd, (off_t)len))
		exit(1);
	base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		exit(1);
	r.offset = r.known = VERBS_RING_PAGE;
	r.base = base + VERBS_RING_PAGE;
	for (i = 0; i < 3 * SLOTS; i++) {
		memset(at(&r, DATA + (i % SLOTS) * size), (int)(i + 1), used);
		*producer(&r) = (i + 1) % SLOTS;
		e = verbs_ring_pull(&r);
		whole += e && e[0] == (u8)(i + 1) && !memcmp(e, e + 1, used - 1);
		rest += e && !memcmp(e + used, zeros, size - used);
		verbs_ring_release(&r);
	}
	row(40, "entries across a page to which the owner has not written", whole == 3 * SLOTS);
	row(41, "what it has not written is 0", rest == 3 * SLOTS);
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)len))
		exit(1);
	r.known = r.offset;
	r.next = r.done = 0;
	*producer(&r) = SLOTS - 1;
	before = allocated(fd);
	for (i = 0; (e = verbs_ring_pull(&r)); i++)
		rest += !memcmp(e, zeros, size);
	row(42, "a producer index alone allocates no memory",
	    i == SLOTS - 1 && rest == 4 * SLOTS - 1 && allocated(fd) == before);
	munmap(base, len);
	close(fd);
}

int main(void)
{
	int pages;

	for (pages = 0; pages < 2; pages++) {
		test_pull(pages);
		test_put(pages);
		test_replace(pages);
	}
	test_sparse();
	test_unmapped_ring();
	return rows_end();
}

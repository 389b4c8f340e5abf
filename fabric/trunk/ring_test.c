// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rings between two processes: the reader sleeps whenever the ring is empty, and the writer whenever it is full. A
 * wake-up that is lost leaves one of them asleep.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/lib/row.h"
#include "fabric/trunk/trunk_internal.h"

#define MESSAGES  20000u
#define LOST_MS   10000 /* a sleep of so long is one that nobody ended */
#define LONG_MANY 600u  /* bytes of every 8th message */

static int writer_wakes; /* eventfd */

/* Watches an eventfd as the daemon does: for edges, without reading it. */
static int watch(int event)
{
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_ctl(ep, EPOLL_CTL_ADD, event, &(struct epoll_event){ .events = EPOLLIN | EPOLLET }))
		abort();
	return ep;
}

/* False: nobody ended the sleep. */
static bool sleep_in(int ep)
{
	struct epoll_event ev;

	return epoll_wait(ep, &ev, 1, LOST_MS) == 1;
}

static u32 message_len(u32 i)
{
	return (u32)sizeof(struct trunk_head) + (i % 8 ? 0 : LONG_MANY);
}

/* Returns how many messages were received in their order. */
static u32 reader_run(int memfd, int event)
{
	struct shared_owner owner = { .sock = -1 };
	struct trunk_ring r = { 0 };
	int ep = watch(event);
	struct trunk_head h;
	u32 n = 0;
	bool bad;

	if (trunk_ring_map(&r, &owner, memfd, event))
		return 0;
	while (n < MESSAGES) {
		while (trunk_ring_next(&r, &h, &bad)) {
			if (be32_to_cpu(h.link) != n)
				return n;
			trunk_ring_read(&r, message_len(n++));
		}
		if (bad)
			return n;
		if (trunk_ring_free(&r) && write(writer_wakes, &(u64){ 1 }, sizeof(u64)) != sizeof(u64))
			return n;
		if (n < MESSAGES && !trunk_ring_sleep(&r, true) && !sleep_in(ep))
			return n;
		trunk_ring_sleep(&r, false);
	}
	trunk_ring_destroy(&r);
	return n;
}

static bool writer_put(struct trunk_ring *r, int ep, u32 i)
{
	u32 len = message_len(i);
	struct trunk_head h = { .type = TRUNK_PACKET,
				.len = cpu_to_be16((u16)(len - sizeof(h))),
				.link = cpu_to_be32(i) };
	bool bad = false;
	u8 *to;

	while (!(to = trunk_ring_reserve(r, len, &bad))) {
		if (bad || (!trunk_ring_wait_space(r, true) && !sleep_in(ep)))
			return false;
		trunk_ring_wait_space(r, false);
	}
	memcpy(to, &h, sizeof(h));
	trunk_ring_write(r, len);
	return true;
}

/*
 * Checks for a sleeping reader after @burst messages each, or when it is seen to sleep: on a busy machine it may never
 * be. False: the writer's own wake-up was lost, or a check without a new message found a sleeping reader.
 */
static bool writer_run(struct trunk_ring *r, u32 burst)
{
	int ep = watch(writer_wakes);
	u32 i;

	for (i = 0; i < MESSAGES; i++) {
		if (!writer_put(r, ep, i))
			return false;
		if ((i + 1) % burst && i + 1 < MESSAGES && trunk_ring_has_space(r) && !trunk_ring_reader_sleeps(r))
			continue;
		if (trunk_ring_wakes_reader(r))
			trunk_ring_signal(r);
		if (trunk_ring_wakes_reader(r)) /* nothing was written since */
			return false;
	}
	close(ep);
	return true;
}

static void test_sleeps(int n, u32 burst)
{
	struct trunk_ring r = { 0 };
	int memfd = trunk_ring_create(&r), status = -1;
	bool awake;
	pid_t pid;

	writer_wakes = eventfd(0, EFD_CLOEXEC);
	pid = fork();
	if (!pid)
		_exit(reader_run(memfd, r.event) == MESSAGES ? 0 : 1);
	awake = writer_run(&r, burst);
	row(n, "the writer is never asleep for long", awake);
	row(n + 1, "the reader gets all messages", waitpid(pid, &status, 0) == pid && !status);
	trunk_ring_destroy(&r);
	close(memfd);
	close(writer_wakes);
}

static void test_unread(void)
{
	struct shared_owner owner = { .sock = -1 };
	struct trunk_ring tx = { 0 }, rx = { 0 };
	int memfd = trunk_ring_create(&tx);
	struct trunk_head h;
	bool bad, none, some;

	if (trunk_ring_map(&rx, &owner, memfd, dup(tx.event)))
		exit(1);
	none = !trunk_ring_unread(&tx) && writer_put(&tx, -1, 1);
	some = trunk_ring_unread(&tx);
	trunk_ring_sleep(&rx, true);
	row(5, "a message is unread while the reader does not sleep", none && some && !trunk_ring_unread(&tx));
	trunk_ring_sleep(&rx, false);
	some = trunk_ring_unread(&tx) && trunk_ring_next(&rx, &h, &bad);
	trunk_ring_read(&rx, message_len(1));
	trunk_ring_free(&rx);
	row(6, "until the reader frees it", some && !trunk_ring_unread(&tx));
	trunk_ring_destroy(&rx);
	trunk_ring_destroy(&tx);
	close(memfd);
}

int main(void)
{
	test_sleeps(1, 1);
	test_sleeps(3, 7);
	test_unread();
	return rows_end();
}

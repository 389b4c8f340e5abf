/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's single-threaded event loop: descriptors, timers, tasks and pollers. */
#ifndef MUSLIN_LIB_LOOP_H
#define MUSLIN_LIB_LOOP_H

#include <sys/epoll.h>

#include "emu/lib/list.h"
#include "emu/lib/timer.h"

/*
 * A watched descriptor, embedded in its owner. The callback gets EPOLL* bits. It may delete itself or any other
 * watch; an event already harvested for a deleted watch is dropped.
 */
struct loop_fd {
	int fd;
	void (*fn)(struct loop_fd *w, u32 events, struct now now);
	struct loop *loop; /* NULL while not added */
	u32 slot, serial;  /* private */
};

/* Work to be run once, later in this iteration or in the next one; embedded in its owner. */
struct loop_task {
	struct list link;
	void (*fn)(struct loop_task *t, struct now now);
	bool queued;
};

/*
 * Something in shared memory to be looked at in every iteration while the loop is awake. poll() returns how much work
 * it found (0: none). sleep(true) is called before the loop blocks: the owner publishes "write the eventfd from now
 * on", or does what it has put off, and must then return true when there is work, which cancels the sleep; sleep(false) after waking.
 */
struct loop_poller {
	struct list link;
	u32 (*poll)(struct loop_poller *p, struct now now);
	bool (*sleep)(struct loop_poller *p, bool asleep);
	/*
	 * How long the loop goes on polling after work that this one found, and keeps its processor, since who asks does not give
	 * it back; 0: 50 us, in which others may have it.
	 */
	u64 stay_ns;
};

/* Returns NULL with errno. The virtual form has a clock that jumps to the next timer when nothing else is to do. */
struct loop *loop_create(void);
struct loop *loop_create_virtual(void);
bool loop_is_virtual(const struct loop *loop);
void loop_destroy(struct loop *loop); /* watches and timers still added are removed, not freed */

struct now loop_now(const struct loop *loop); /* as read at the last wake-up */

int loop_fd_add(struct loop *loop, struct loop_fd *w, u32 events);
int loop_fd_mod(struct loop_fd *w, u32 events);
void loop_fd_del(struct loop_fd *w); /* does not close w->fd; harmless when not added */

/* Re-arms when armed. Timers of the same time fire in the order in which they were set. */
void loop_timer_set(struct loop *loop, struct loop_timer *t, u64 when_ns);
void loop_timer_cancel(struct loop_timer *t); /* harmless when idle */
static inline bool loop_timer_armed(const struct loop_timer *t)
{
	return t->loop != NULL;
}

void loop_task_init(struct loop_task *t, void (*fn)(struct loop_task *t, struct now now));
void loop_task_queue(struct loop *loop, struct loop_task *t); /* harmless when queued already */
void loop_task_cancel(struct loop_task *t);
/*
 * Runs what is queued now, and returns how many; what these tasks queue waits. The loop does so in each iteration; others may
 * where an answer must tell of all work that came before the question. Not from a task.
 */
u32 loop_run_tasks(struct loop *loop);

void loop_poller_add(struct loop *loop, struct loop_poller *p);
void loop_poller_del(struct loop_poller *p);

/* More will come soon: the loop polls for 50 us from now on, as if a poller had found work. */
void loop_stay_awake(struct loop *loop);

/* Runs until loop_stop(); returns 0, or -errno when epoll itself fails. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/*
 * For tests: runs iterations until nothing is runnable without waiting (tasks, ready descriptors; in a virtual loop
 * also the timers due before @until_ns, advancing the clock). A real loop ignores @until_ns.
 */
void loop_run_idle(struct loop *loop, u64 until_ns);

#endif

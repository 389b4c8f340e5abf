/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's single-threaded event loop: descriptors, timers, tasks and pollers. */
#ifndef MUSLIN_LIB_LOOP_H
#define MUSLIN_LIB_LOOP_H

#include <sys/epoll.h>

#include "emu/lib/list.h"
#include "emu/lib/timer.h"

/*
 * A watched descriptor, embedded in its owner. The callback gets EPOLL* bits. It may delete itself or any other watch;
 * pending events of a deleted watch are dropped.
 */
struct loop_fd {
	int fd;
	void (*fn)(struct loop_fd *w, u32 events, struct now now);
	struct loop *loop; /* NULL if not added */
	u32 slot, serial;  /* private */
};

/* Deferred work, run once in this iteration or the next; embedded in its owner. */
struct loop_task {
	struct list link;
	void (*fn)(struct loop_task *t, struct now now);
	bool queued;
};

/*
 * Shared memory to be polled in every iteration while the loop is awake. poll() returns the amount of work found (0:
 * none). sleep(true) is called before the loop blocks: the owner requests a write to its eventfd from then on, or does
 * deferred work, and then returns true if there is work, which cancels the sleep; sleep(false) is called after waking.
 */
struct loop_poller {
	struct list link;
	u32 (*poll)(struct loop_poller *p, struct now now);
	bool (*sleep)(struct loop_poller *p, bool asleep);
	/*
	 * How long the loop continues polling, without yielding the processor, after this poller has found work,
	 * because the requester does not yield it either; 0: 50 us, with yielding.
	 */
	u64 stay_ns;
};

/*
 * NULL with errno set. The virtual loop's clock jumps to the next timer when there is no other work. The thread that
 * calls loop_create() has timers without slack from then on.
 */
struct loop *loop_create(void);
struct loop *loop_create_virtual(void);
bool loop_is_virtual(const struct loop *loop);
void loop_destroy(struct loop *loop); /* remaining watches and timers are removed, not freed */

struct now loop_now(const struct loop *loop); /* the clock as read at the last wake-up */

int loop_fd_add(struct loop *loop, struct loop_fd *w, u32 events);
int loop_fd_mod(struct loop_fd *w, u32 events);
void loop_fd_del(struct loop_fd *w); /* does not close w->fd; no effect if not added */

/* Sets or resets the timer. Timers of the same time fire in the order in which they were set. */
void loop_timer_set(struct loop *loop, struct loop_timer *t, u64 when_ns);
void loop_timer_cancel(struct loop_timer *t); /* no effect if not set */
static inline bool loop_timer_armed(const struct loop_timer *t)
{
	return t->loop != NULL;
}

void loop_task_init(struct loop_task *t, void (*fn)(struct loop_task *t, struct now now));
void loop_task_queue(struct loop *loop, struct loop_task *t); /* no effect if already queued */
void loop_task_cancel(struct loop_task *t);
/*
 * Runs the tasks queued now, and returns how many; tasks that these queue run later. The loop does so in each
 * iteration; others may, if a response must reflect all earlier work. A task that does so may itself be run again.
 */
u32 loop_run_tasks(struct loop *loop);

void loop_poller_add(struct loop *loop, struct loop_poller *p);
void loop_poller_del(struct loop_poller *p);

/* More work is expected: the loop polls for 50 us from now on, as if a poller had found work. */
void loop_stay_awake(struct loop *loop);

/*
 * Others need the processor: the loop sleeps as soon as it finds no work, until it polls again for the reasons above.
 */
void loop_stop_polling(struct loop *loop);

/* Runs until loop_stop(); returns 0, or -errno if epoll fails. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/*
 * For tests: runs iterations until nothing is runnable without waiting (tasks, ready descriptors; in a virtual loop
 * also the timers due before @until_ns, advancing the clock). A real loop ignores @until_ns.
 */
void loop_run_idle(struct loop *loop, u64 until_ns);

#endif

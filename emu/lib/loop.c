// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Event loop over epoll with timers, a task queue and shared-memory pollers. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emu/lib/clock.h"
#include "emu/lib/log.h"
#include "emu/lib/loop.h"

#define LOOP_EVENTS          64
#define LOOP_STAY_NS         (50 * NSEC_PER_USEC)
#define LOOP_YIELD_NS        (20 * NSEC_PER_USEC)
#define LOOP_SPINS_PER_EPOLL 16 /* iterations without epoll_wait() while pollers find work */
#define SLEEP_MOST           (60 * NSEC_PER_SEC)

struct loop {
	int epfd;
	bool is_virtual, stop;
	struct now now;
	u64 poll_until, keep_until; /* until when the loop polls; and until when it does so without sched_yield() */
	struct loop_fd **fds; /* by slot; epoll data is slot and serial, so a deleted watch is never accessed... */
	u32 serial;           /* ... and a new one in its slot gets none of its events */
	u32 nfds, *free_fds, nfree;
	struct timer_heap timers;
	struct list tasks, pollers;
	struct list *batch; /* tasks that are being run; NULL: none */
};

struct loop *loop_create(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return NULL;
	loop->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epfd < 0) {
		free(loop);
		return NULL;
	}
	list_init(&loop->tasks);
	list_init(&loop->pollers);
	/* By default this thread's timers may be 50 us late, which is more than delays of links may be. */
	prctl(PR_SET_TIMERSLACK, 1ul);
	loop->now.ns = clock_read();
	return loop;
}

struct loop *loop_create_virtual(void)
{
	struct loop *loop = loop_create();

	if (loop) {
		loop->is_virtual = true;
		loop->now.ns = NSEC_PER_SEC;
	}
	return loop;
}

bool loop_is_virtual(const struct loop *loop)
{
	return loop->is_virtual;
}

void loop_destroy(struct loop *loop)
{
	close(loop->epfd);
	free(loop->fds);
	free(loop->free_fds);
	free(loop);
}

struct now loop_now(const struct loop *loop)
{
	return loop->now;
}

static void clock_update(struct loop *loop)
{
	if (!loop->is_virtual)
		loop->now.ns = clock_read();
}

/* Descriptors */

static u64 fd_data(const struct loop_fd *w)
{
	return (u64)w->serial << 32 | w->slot;
}

static int fd_slot(struct loop *loop, u32 *slot)
{
	u32 cap = loop->nfds ? loop->nfds * 2 : 64, i;
	struct loop_fd **fds;
	u32 *fr;

	if (!loop->nfree) {
		fr = realloc(loop->free_fds, cap * sizeof(*fr));
		if (!fr)
			return -ENOMEM;
		loop->free_fds = fr;
		fds = realloc(loop->fds, cap * sizeof(struct loop_fd *));
		if (!fds)
			return -ENOMEM;
		loop->fds = fds;
		for (i = cap; i-- > loop->nfds;) {
			fds[i] = NULL;
			fr[loop->nfree++] = i;
		}
		loop->nfds = cap;
	}
	*slot = loop->free_fds[--loop->nfree];
	return 0;
}

int loop_fd_add(struct loop *loop, struct loop_fd *w, u32 events)
{
	struct epoll_event ev = { .events = events };
	int err = fd_slot(loop, &w->slot);

	if (err)
		return err;
	w->serial = ++loop->serial;
	ev.data.u64 = fd_data(w);
	if (epoll_ctl(loop->epfd, EPOLL_CTL_ADD, w->fd, &ev)) {
		loop->free_fds[loop->nfree++] = w->slot;
		return -errno;
	}
	loop->fds[w->slot] = w;
	w->loop = loop;
	return 0;
}

int loop_fd_mod(struct loop_fd *w, u32 events)
{
	struct epoll_event ev = { .events = events, .data.u64 = fd_data(w) };

	return epoll_ctl(w->loop->epfd, EPOLL_CTL_MOD, w->fd, &ev) ? -errno : 0;
}

void loop_fd_del(struct loop_fd *w)
{
	struct loop *loop = w->loop;

	if (!loop)
		return;
	epoll_ctl(loop->epfd, EPOLL_CTL_DEL, w->fd, NULL);
	loop->fds[w->slot] = NULL;
	loop->free_fds[loop->nfree++] = w->slot;
	w->loop = NULL;
}

/* Timers */

void loop_timer_set(struct loop *loop, struct loop_timer *t, u64 when_ns)
{
	loop_timer_cancel(t);
	t->loop = loop;
	t->when = when_ns;
	timer_heap_add(&loop->timers, t);
}

void loop_timer_cancel(struct loop_timer *t)
{
	if (!t->loop)
		return;
	timer_heap_del(&t->loop->timers, t);
	t->loop = NULL;
}

static u32 run_timers(struct loop *loop)
{
	struct loop_timer *t;
	u32 n = 0;

	while ((t = loop->timers.first) && t->when <= loop->now.ns) {
		loop_timer_cancel(t);
		t->fn(t, loop->now);
		n++;
	}
	return n;
}

/* Tasks */

void loop_task_init(struct loop_task *t, void (*fn)(struct loop_task *t, struct now now))
{
	list_init(&t->link);
	t->fn = fn;
	t->queued = false;
}

void loop_task_queue(struct loop *loop, struct loop_task *t)
{
	if (t->queued)
		return;
	t->queued = true;
	list_add(&loop->tasks, &t->link);
}

void loop_task_cancel(struct loop_task *t)
{
	if (!t->queued)
		return;
	list_del(&t->link);
	t->queued = false;
}

u32 loop_run_tasks(struct loop *loop)
{
	struct list batch, *outer = loop->batch;
	u32 n = 0;

	list_init(&batch);
	if (outer)
		list_splice(&batch, outer);
	list_splice(&batch, &loop->tasks);
	loop->batch = &batch;
	while (!list_empty(&batch)) {
		struct loop_task *t = list_first(&batch, struct loop_task, link);

		loop_task_cancel(t);
		t->fn(t, loop->now);
		n++;
	}
	loop->batch = outer;
	return n;
}

/* Pollers */

void loop_poller_add(struct loop *loop, struct loop_poller *p)
{
	list_add(&loop->pollers, &p->link);
	loop->poll_until = 0;
}

void loop_poller_del(struct loop_poller *p)
{
	list_del(&p->link);
}

static void stay_awake(struct loop *loop, u64 ns)
{
	loop->poll_until = max(loop->poll_until, loop->now.ns + ns);
}

void loop_stay_awake(struct loop *loop)
{
	stay_awake(loop, LOOP_STAY_NS);
}

void loop_stop_polling(struct loop *loop)
{
	loop->poll_until = 0;
}

static u32 run_pollers(struct loop *loop)
{
	struct list batch;
	u32 n = 0;

	list_init(&batch);
	list_splice(&batch, &loop->pollers);
	while (!list_empty(&batch)) { /* its poll() may remove it, and others, which may be freed then */
		struct loop_poller *p = list_first(&batch, struct loop_poller, link);
		u64 stay = p->stay_ns;
		u32 found;

		list_del(&p->link);
		list_add(&loop->pollers, &p->link);
		found = p->poll(p, loop->now);
		if (found)
			stay_awake(loop, stay ? stay : LOOP_STAY_NS);
		if (found && stay)
			loop->keep_until = loop->now.ns + stay;
		n += found;
	}
	return n;
}

static bool pollers_sleep(struct loop *loop, bool asleep)
{
	struct loop_poller *p, *tmp;
	bool busy = false;

	list_for_each_safe (p, tmp, &loop->pollers, link) {
		if (p->sleep && p->sleep(p, asleep))
			busy = true;
	}
	return busy;
}

/* Running */

/* Without the C library, which has it from glibc 2.35 on. */
static int epoll_wait_ns(int epfd, struct epoll_event *ev, const struct timespec *most)
{
#ifdef SYS_epoll_pwait2
	return (int)syscall(SYS_epoll_pwait2, epfd, ev, LOOP_EVENTS, most, NULL, (size_t)0);
#else
	errno = ENOSYS;
	return -1;
#endif
}

/* Waits with nanosecond resolution, if the kernel and the sandbox have epoll_pwait2(); links and
 * pacing wait for less than a millisecond. */
static int wait_fds(struct loop *loop, struct epoll_event *ev, u64 ns)
{
	static bool refused;
	struct timespec ts = { .tv_nsec = (long)ns };
	int got;

	if (ns && ns < NSEC_PER_SEC && !refused) {
		got = epoll_wait_ns(loop->epfd, ev, &ts);
		refused = got < 0 && (errno == ENOSYS || errno == EPERM);
		if (!refused)
			return got;
	}
	ns = min(ns, SLEEP_MOST) + NSEC_PER_MSEC - 1;
	return epoll_wait(loop->epfd, ev, LOOP_EVENTS, (int)(ns / NSEC_PER_MSEC));
}

static int run_fds(struct loop *loop, u64 timeout, u32 *n)
{
	struct epoll_event ev[LOOP_EVENTS];
	int i, got = wait_fds(loop, ev, timeout);

	if (log_limit_pending)
		log_flush();
	if (got < 0)
		return errno == EINTR ? 0 : -errno;
	clock_update(loop);
	for (i = 0; i < got; i++) {
		struct loop_fd *w = loop->fds[(u32)ev[i].data.u64];

		if (w && fd_data(w) == ev[i].data.u64)
			w->fn(w, ev[i].events, loop->now);
	}
	*n += (u32)got;
	return 0;
}

static u64 sleep_time(const struct loop *loop)
{
	const struct loop_timer *t = loop->timers.first;

	u64 most = log_limit_pending ? LOG_SOURCE_PERIOD : SLEEP_MOST;

	if (!t)
		return most;
	return t->when <= loop->now.ns ? 0 : min(t->when - loop->now.ns, most);
}

static int loop_sleep(struct loop *loop)
{
	bool busy = pollers_sleep(loop, true);
	u32 n = 0;
	int err = run_fds(loop, busy ? 0 : sleep_time(loop), &n);

	pollers_sleep(loop, false);
	return err;
}

/*
 * While the loop only polls, the peer may need this processor. If that takes long, the loop sleeps next: a woken task
 * is moved to a free processor, if any, and a yielding task is not.
 */
static int look_and_yield(struct loop *loop)
{
	u32 n = 0;
	int err = run_fds(loop, 0, &n);

	if (n || err || loop->now.ns < loop->keep_until)
		return err;
	sched_yield();
	if (clock_read() - loop->now.ns > LOOP_YIELD_NS)
		loop->poll_until = 0;
	return 0;
}

int loop_run(struct loop *loop)
{
	u32 spins = 0;
	int err = 0;

	loop->stop = false;
	while (!loop->stop && !err) {
		u32 n = run_timers(loop) + loop_run_tasks(loop), polled = run_pollers(loop);

		if ((n || polled) && ++spins < LOOP_SPINS_PER_EPOLL) {
			clock_update(loop);
			continue;
		}
		spins = 0;
		if (n || polled || !list_empty(&loop->tasks))
			err = run_fds(loop, 0, &n);
		else if (loop->now.ns < loop->poll_until)
			err = look_and_yield(loop);
		else
			err = loop_sleep(loop);
	}
	return err;
}

void loop_stop(struct loop *loop)
{
	loop->stop = true;
}

void loop_run_idle(struct loop *loop, u64 until_ns)
{
	for (;;) {
		u32 n = run_timers(loop) + loop_run_tasks(loop) + run_pollers(loop);
		const struct loop_timer *t;

		/* A simulation has no descriptors: saves a system call per advance of the clock. */
		if ((loop->nfree != loop->nfds || log_limit_pending) && run_fds(loop, 0, &n))
			continue;
		if (n || !list_empty(&loop->tasks))
			continue;
		n = pollers_sleep(loop, true);
		pollers_sleep(loop, false);
		if (n)
			continue;
		t = loop->timers.first;
		if (!loop->is_virtual || !t || t->when > until_ns)
			break;
		loop->now.ns = max(loop->now.ns, t->when);
	}
	if (loop->is_virtual && loop->now.ns < until_ns)
		loop->now.ns = until_ns;
}

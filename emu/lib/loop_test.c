// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of loop.c in virtual time: order of timers, tasks and descriptors, and deletion in callbacks. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "emu/lib/loop.h"
#include "emu/lib/row.h"

static struct loop *loop;
static u64 fired[1024];
static u32 nfired;

static void on_timer(struct loop_timer *t, struct now now)
{
	fired[nfired++] = now.ns;
}

static void test_order(void)
{
	static struct loop_timer t[1024];
	u64 start = loop_now(loop).ns;
	bool sorted = true;
	u32 i;

	for (i = 0; i < 1024; i++) {
		t[i].fn = on_timer;
		loop_timer_set(loop, &t[i], start + (i * 7919u) % 100000);
	}
	for (i = 0; i < 1024; i += 2)
		loop_timer_cancel(&t[i]);
	for (i = 1; i < 1024; i += 4)
		loop_timer_set(loop, &t[i], start + (i * 104729u) % 100000);
	loop_run_idle(loop, start + 200000);
	for (i = 1; i < nfired; i++)
		sorted &= fired[i - 1] <= fired[i];
	row(1, "those not cancelled fire once", nfired == 512);
	row(2, "in the order of time", sorted);
	row(3, "the clock has the time that was set", loop_now(loop).ns == start + 200000);
}

static u32 runs;
static struct loop_task again;

static void on_again(struct loop_task *t, struct now now)
{
	if (++runs < 5)
		loop_task_queue(loop, t);
}

static void test_tasks(void)
{
	loop_task_init(&again, on_again);
	loop_task_queue(loop, &again);
	loop_task_queue(loop, &again);
	loop_run_idle(loop, 0);
	row(4, "a task runs once for each queueing", runs == 5);
	loop_task_queue(loop, &again);
	loop_task_cancel(&again);
	loop_run_idle(loop, 0);
	row(5, "a cancelled task does not run", runs == 5);
}

static struct loop_task outer, later;
static u32 later_runs, seen_runs;

static void on_later(struct loop_task *t, struct now now)
{
	later_runs++;
}

static void on_outer(struct loop_task *t, struct now now)
{
	loop_run_tasks(loop);
	seen_runs = later_runs;
}

static void test_nested_tasks(void)
{
	loop_task_init(&outer, on_outer);
	loop_task_init(&later, on_later);
	loop_task_queue(loop, &outer);
	loop_task_queue(loop, &later);
	loop_run_idle(loop, 0);
	row(24, "a task that runs tasks runs those that were queued with it", seen_runs == 1 && later_runs == 1);
}

static struct loop_fd pair[2];
static u32 events;

static void on_fd(struct loop_fd *w, u32 ev, struct now now)
{
	events++;
	loop_fd_del(&pair[0]);
	loop_fd_del(&pair[1]);
}

static void test_fds(void)
{
	int a[2], b[2];

	if (pipe(a) || pipe(b))
		exit(1);
	pair[0] = (struct loop_fd){ .fd = a[0], .fn = on_fd };
	pair[1] = (struct loop_fd){ .fd = b[0], .fn = on_fd };
	row(6, "added", !loop_fd_add(loop, &pair[0], EPOLLIN) && !loop_fd_add(loop, &pair[1], EPOLLIN));
	if (write(a[1], "x", 1) != 1 || write(b[1], "x", 1) != 1)
		exit(1);
	loop_run_idle(loop, 0);
	row(7, "a watch deleted by another's callback is not called", events == 1);
	close(a[0]), close(a[1]), close(b[0]), close(b[1]);
}

static struct loop_fd heir;
static int heir_fd;

static void on_heir(struct loop_fd *w, u32 ev, struct now now)
{
	events++;
}

/* The callback that runs first deletes both watches and adds an idle descriptor in the slot of the other. */
static void on_replace(struct loop_fd *w, u32 ev, struct now now)
{
	struct loop_fd *other = w == &pair[0] ? &pair[1] : &pair[0];

	loop_fd_del(w);
	loop_fd_del(other);
	heir = (struct loop_fd){ .fd = heir_fd, .fn = on_heir };
	row(8, "the slot is taken again", !loop_fd_add(loop, &heir, EPOLLIN) && heir.slot == other->slot);
}

static void test_slots(void)
{
	int a[2], b[2], c[2];

	if (pipe(a) || pipe(b) || pipe(c))
		exit(1);
	heir_fd = c[0];
	events = 0;
	pair[0] = (struct loop_fd){ .fd = a[0], .fn = on_replace };
	pair[1] = (struct loop_fd){ .fd = b[0], .fn = on_replace };
	if (loop_fd_add(loop, &pair[0], EPOLLIN) || loop_fd_add(loop, &pair[1], EPOLLIN) || write(a[1], "x", 1) != 1 ||
	    write(b[1], "x", 1) != 1)
		exit(1);
	loop_run_idle(loop, 0);
	row(9, "a watch in a deleted one's slot gets none of its events", events == 0);
	loop_fd_del(&heir);
	close(a[0]), close(a[1]), close(b[0]), close(b[1]), close(c[0]), close(c[1]);
}

/* A poller that finds work in its first poll. */
static u32 looks;
static u64 found_at, slept_at;

static u32 look(struct loop_poller *p, struct now now)
{
	if (looks++)
		return 0;
	found_at = now.ns;
	return 1;
}

static bool no_sleep(struct loop_poller *p, bool asleep)
{
	if (asleep)
		slept_at = loop_now(loop).ns;
	loop_stop(loop);
	return true;
}

static u32 look_and_stop(struct loop_poller *p, struct now now)
{
	u32 n = look(p, now);

	if (!n)
		loop_stop_polling(loop);
	return n;
}

static void run_poller(u32 (*poll)(struct loop_poller *p, struct now now), u64 stay_ns)
{
	struct loop_poller p = { .poll = poll, .sleep = no_sleep, .stay_ns = stay_ns };

	looks = 0;
	loop_poller_add(loop, &p);
	loop_run(loop);
	loop_poller_del(&p);
}

static void test_pollers(void)
{
	run_poller(look, 1);
	row(10, "a loop that sleeps at the next look", looks == 2);
	run_poller(look, 0);
	row(11, "one that polls for a while, or once more if others need the processor",
	    slept_at - found_at >= 50 * NSEC_PER_USEC || looks > 2);
	run_poller(look, NSEC_PER_MSEC);
	row(12, "and for as long as the poller requests", slept_at - found_at >= NSEC_PER_MSEC);
	run_poller(look_and_stop, NSEC_PER_SEC);
	row(13, "unless the poller stops it: it sleeps after the next look", looks <= 3);
}

/* The first of three removes the second and itself. */
static struct loop_poller three[3];
static u32 polls;

static u32 poll_removing(struct loop_poller *p, struct now now)
{
	loop_poller_del(&three[1]);
	loop_poller_del(p);
	memset(three, 0x55, 2 * sizeof(three[0]));
	return 1;
}

static u32 poll_removed(struct loop_poller *p, struct now now)
{
	row(20, "a poller that another one removed is not called", false);
	exit(rows_end());
}

static u32 poll_last(struct loop_poller *p, struct now now)
{
	polls++;
	return 0;
}

static void test_removed_pollers(void)
{
	three[0].poll = poll_removing;
	three[1].poll = poll_removed;
	three[2].poll = poll_last;
	loop_poller_add(loop, &three[0]);
	loop_poller_add(loop, &three[1]);
	loop_poller_add(loop, &three[2]);
	loop_run_idle(loop, 0);
	row(21, "the one behind it is", polls > 0);
	loop_poller_del(&three[2]);
}

static u64 late; /* ns */

static void on_late(struct loop_timer *t, struct now now)
{
	late = now.ns - t->when;
	loop_stop(loop);
}

/* The minimum of many measurements: other tasks may use the processor. */
static u64 least_late(u64 ns)
{
	struct loop_timer t = { .fn = on_late };
	u64 least = ~0ull;
	u32 i;

	for (i = 0; i < 200 && least > ns; i++) {
		loop_run_idle(loop, 0); /* reads the clock */
		loop_timer_set(loop, &t, loop_now(loop).ns + 300 * NSEC_PER_USEC);
		loop_run(loop);
		least = min(least, late);
	}
	return least;
}

/* Timers that are all due at the same time; @act is the action of each. */
static struct loop_timer due[8];
static char order[64];
static void (*act)(struct loop_timer *t, struct now now);

static void on_due(struct loop_timer *t, struct now now)
{
	size_t n = strlen(order);

	if (n + 1 < sizeof(order))
		order[n] = (char)('0' + (t - due));
	if (act)
		act(t, now);
}

static const char *run_due(void (*does)(struct loop_timer *t, struct now now))
{
	u64 at = loop_now(loop).ns + 100;
	u32 i;

	memset(order, 0, sizeof(order));
	act = does;
	for (i = 0; i < ARRAY_SIZE(due); i++) {
		due[i].fn = on_due;
		loop_timer_set(loop, &due[i], at);
	}
	loop_run_idle(loop, at + 1000);
	return order;
}

static void cancel_next(struct loop_timer *t, struct now now)
{
	if (t != &due[ARRAY_SIZE(due) - 1])
		loop_timer_cancel(t + 1);
}

static void cancel_all(struct loop_timer *t, struct now now)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(due); i++)
		loop_timer_cancel(&due[i]);
}

static void again_once(struct loop_timer *t, struct now now)
{
	if (strlen(order) <= ARRAY_SIZE(due))
		loop_timer_set(loop, t, now.ns + (t == &due[3] ? 0 : 10));
}

static void postpone_next(struct loop_timer *t, struct now now)
{
	if (t == &due[0])
		loop_timer_set(loop, &due[1], now.ns);
}

static void test_due(void)
{
	bool idle = true;
	u32 i;

	row(30, "equal times, in the order set", !strcmp(run_due(NULL), "01234567"));
	row(14, "one that another's callback cancels does not fire", !strcmp(run_due(cancel_next), "0246"));
	row(15, "nor do any when all are cancelled", !strcmp(run_due(cancel_all), "0"));
	row(16, "set again in its own callback, behind its equals", !strcmp(run_due(again_once), "0123456730124567"));
	row(17, "set again while armed, it is after its equals", !strcmp(run_due(postpone_next), "02345671"));
	for (i = 0; i < ARRAY_SIZE(due); i++)
		idle &= !loop_timer_armed(&due[i]);
	row(18, "none is armed then", idle);
}

int main(void)
{
	loop = loop_create_virtual();
	if (!loop)
		return 1;
	test_order();
	test_tasks();
	test_nested_tasks();
	test_fds();
	test_slots();
	test_due();
	test_removed_pollers();
	loop_destroy(loop);
	loop = loop_create();
	if (!loop)
		return 1;
	test_pollers();
	row(31, "timers have no slack", prctl(PR_GET_TIMERSLACK, 0ul, 0ul, 0ul, 0ul) == 1);
	row(19, "a sleep of less than a millisecond is not a whole one",
	    least_late(400 * NSEC_PER_USEC) <= 400 * NSEC_PER_USEC);
	loop_destroy(loop);
	return rows_end();
}

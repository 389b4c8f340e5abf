// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Adaptive busy-waiting of programs that poll CQs. librxe takes a spin lock in each ibv_poll_cq(); the hook of
 * pthread_spin_lock() regularly yields the CPU to the daemon. After a while without completions it sleeps until the
 * next completion, at most SLEEP_NS, since the program may poll other objects, too. A program that does other work
 * between polls, or posts sends, does not sleep.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define LOOKS    8     /* polls per clock reading */
#define LOOKS_NS 20000 /* ns; if LOOKS polls take longer, the program does other work */
#define SPIN_NS  50000 /* ns of busy-waiting before it sleeps */
/* Busy-wait time after SLOW completions in succession that took longer than SPIN_NS ... */
#define BRIEF_NS   5000
#define SLOW       4
#define TRY        16     /* ... except for one in TRY, to detect when completions are faster again */
#define SLEEP_NS   250000 /* ns, at most */
#define UNWATCH_US 50

static struct uv_shared *watched; /* page of the uverbs file, if exactly one is open */
static unsigned int nwatched, posts;
static unsigned int readers;          /* calls of page_get() that have not ended */
static __thread unsigned int reading; /* of this thread: a handler of a signal may poll, too */

void shim_poll_watch(struct uv_shared *s)
{
	watched = ++nwatched == 1 ? s : NULL;
}

/*
 * It is unknown which file of several remains open: none is watched, and polling continues without sleep. The caller
 * unmaps the page: other threads leave it first, after SLEEP_NS at most, however many of them poll: none returns to it.
 */
void shim_poll_unwatch(struct uv_shared *s)
{
	nwatched--;
	__atomic_store_n(&watched, NULL, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&readers, __ATOMIC_SEQ_CST) > reading) /* a handler of a signal may close the file */
		usleep(UNWATCH_US); /* not sched_yield(): this thread may have a higher priority than those */
}

static void page_put(void)
{
	__atomic_fetch_sub(&readers, 1, __ATOMIC_SEQ_CST);
	reading--;
}

/* The page that is watched, which stays mapped until page_put(). NULL: none, without page_put(). */
static struct uv_shared *page_get(void)
{
	struct uv_shared *s;

	if (!__atomic_load_n(&watched, __ATOMIC_RELAXED)) /* does not count: shim_poll_unwatch() may wait */
		return NULL;
	reading++;
	__atomic_fetch_add(&readers, 1, __ATOMIC_SEQ_CST);
	s = __atomic_load_n(&watched, __ATOMIC_SEQ_CST);
	if (!s)
		page_put();
	return s;
}

/* In the child of a fork, which has no thread but the one that forked. */
void shim_poll_child(void)
{
	readers = reading;
}

void shim_poll_posted(void)
{
	__atomic_fetch_add(&posts, 1, __ATOMIC_RELAXED);
}

static unsigned long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000 + (unsigned long long)ts.tv_nsec;
}

static void sleep_until_completion(struct uv_shared *s, unsigned int seen)
{
	struct timespec limit = { .tv_nsec = SLEEP_NS };

	__atomic_fetch_add(&s->waiting, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &s->completions, FUTEX_WAIT, seen, &limit, NULL, 0);
	__atomic_fetch_sub(&s->waiting, 1, __ATOMIC_SEQ_CST);
}

/* Returns the busy-wait time for the next completion; @slept: the last completion took longer than it. */
static unsigned long long next_spin(unsigned long long spin, bool slept)
{
	static __thread unsigned int slow, brief;

	if (spin == SPIN_NS)
		slow = slept ? slow + 1 : 0;
	return slow < SLOW || ++brief % TRY == 0 ? SPIN_NS : BRIEF_NS;
}

/* Called for every LOOKS polls of a thread. */
static void poll_remaining(void)
{
	static __thread unsigned long long since, before, spin = SPIN_NS;
	static __thread unsigned int seen, posted;
	static __thread bool slept;
	struct uv_shared *s = page_get();
	unsigned long long now = now_ns();
	unsigned int come = s ? __atomic_load_n(&s->completions, __ATOMIC_SEQ_CST) : 0, sent = posts;
	bool sleeps;

	if (come != seen) {
		spin = next_spin(spin, slept);
		slept = false;
	}
	if (come != seen || sent != posted || now - before > LOOKS_NS)
		since = now;
	seen = come;
	posted = sent;
	sleeps = s && now - since > spin;
	slept |= sleeps;
	if (sleeps)
		sleep_until_completion(s, seen);
	if (s)
		page_put();
	if (!sleeps)
		sched_yield();
	before = now_ns();
}

int pthread_spin_lock(pthread_spinlock_t *lock)
{
	static __thread unsigned int looks;
	int saved;

	if (++looks % LOOKS == 0) {
		saved = errno;
		poll_remaining();
		errno = saved;
	}
	return REAL(pthread_spin_lock)(lock);
}

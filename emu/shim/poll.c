// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs that poll. librxe takes a lock at every look at a CQ; it is taken here, so that a program that spins leaves the
 * daemon a processor now and then, and sleeps when nothing has come for long: until completions come, or for a moment, since
 * it may be looking at other things, too. Who does other work between two looks, or posts, does not spin.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define LOOKS    8     /* between two times that the clock is read */
#define LOOKS_NS 20000 /* more for so many of them: it does other work */
#define SPIN_NS  50000 /* before it sleeps */
#define BRIEF_NS \
	5000 /* the same, where so many completions in a row took longer than that, as the next one will; ... */
#define SLOW     4
#define TRY      16     /* ... one in so many is waited for in full, to see whether that is still so */
#define SLEEP_NS 250000 /* at most */

static struct uv_shared *watched; /* of the only uverbs file that is open */
static unsigned int nwatched, posts;

void shim_poll_watch(struct uv_shared *s)
{
	watched = ++nwatched == 1 ? s : NULL;
}

/* Among several devices the remaining one is unknown: none is watched, and polling continues without sleep. */
void shim_poll_unwatch(struct uv_shared *s)
{
	nwatched--;
	watched = NULL;
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

/* Adapts the busy-wait time; @slept: the last wait was too short. */
static unsigned long long next_spin(unsigned long long spin, bool slept)
{
	static __thread unsigned int slow, brief;

	if (spin == SPIN_NS)
		slow = slept ? slow + 1 : 0;
	return slow < SLOW || ++brief % TRY == 0 ? SPIN_NS : BRIEF_NS;
}

/* Called now and then by a thread that looks at CQs. */
static void poll_remaining(void)
{
	static __thread unsigned long long since, before, spin = SPIN_NS;
	static __thread unsigned int seen, posted;
	static __thread bool slept;
	struct uv_shared *s = __atomic_load_n(&watched, __ATOMIC_ACQUIRE);
	unsigned long long now = now_ns();
	unsigned int come = s ? __atomic_load_n(&s->completions, __ATOMIC_SEQ_CST) : 0, sent = posts;

	if (come != seen) {
		spin = next_spin(spin, slept);
		slept = false;
	}
	if (come != seen || sent != posted || now - before > LOOKS_NS)
		since = now;
	seen = come;
	posted = sent;
	slept |= s && now - since > spin;
	if (s && now - since > spin)
		sleep_until_completion(s, seen);
	else
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

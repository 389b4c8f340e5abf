// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Locks of the library. A handler of a signal may close() a device file, say, and interrupt a call that has the lock:
 * the thread gets it again. The owner is in the word that threads wait for (futex(2)), so that this holds at each
 * instruction; in a mutex of the C library the owner and the state change one after the other.
 */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define WAITED_FOR 0x80000000u /* beside the owner */

static uint32_t threads;       /* that have taken a lock; no ID of the kernel, which a child of vfork() would change */
static __thread uint32_t self; /* number of this one; 0: none yet */

void shim_futex_wait(const uint32_t *word, uint32_t seen, const struct timespec *until)
{
	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen, until, NULL, FUTEX_BITSET_MATCH_ANY);
}

void shim_futex_wake(const uint32_t *word, int threads)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

static uint32_t own_id(void)
{
	if (!self)
		self = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	return self;
}

bool shim_lock_is_own(const struct shim_lock *l)
{
	return (__atomic_load_n(&l->owner, __ATOMIC_RELAXED) & ~WAITED_FOR) == own_id();
}

bool shim_lock_try(struct shim_lock *l)
{
	uint32_t none = 0;

	return __atomic_compare_exchange_n(&l->owner, &none, own_id(), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void shim_lock(struct shim_lock *l)
{
	uint32_t owner = 0;

	if (shim_lock_try(l))
		return;
	if (shim_lock_is_own(l)) {
		l->again++;
		return;
	}
	/* Others may wait, too: so the lock is marked when this thread gets it. */
	while (!__atomic_compare_exchange_n(&l->owner, &owner, own_id() | WAITED_FOR, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (owner & WAITED_FOR || __atomic_compare_exchange_n(&l->owner, &owner, owner | WAITED_FOR, false,
								      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			shim_futex_wait(&l->owner, owner | WAITED_FOR, NULL);
		owner = 0;
	}
}

void shim_unlock(struct shim_lock *l)
{
	if (l->again)
		l->again--;
	else if (__atomic_exchange_n(&l->owner, 0, __ATOMIC_RELEASE) & WAITED_FOR)
		shim_futex_wake(&l->owner, 1);
}

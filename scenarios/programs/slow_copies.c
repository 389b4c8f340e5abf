// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Preloaded into a program whose memory cannot be read, so that a thread of it copies for the daemon: each copy takes
 * 30 ms longer, and a doorbell 2 ms, as on a machine that is too busy to schedule the thread. So the first of several
 * requests is in progress when the others are posted. The first copy takes SLOW_COPIES_FIRST (an environment variable)
 * seconds more.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define COPY_NS     30000000
#define DOORBELL_NS 2000000

static unsigned copies; /* copies that have started */

unsigned slow_copies(void)
{
	return __atomic_load_n(&copies, __ATOMIC_SEQ_CST);
}

static void delay(long sec, long ns)
{
	nanosleep(&(struct timespec){ .tv_sec = sec, .tv_nsec = ns }, NULL);
}

static void copy_delay(void)
{
	const char *first = getenv("SLOW_COPIES_FIRST");

	delay(!__atomic_fetch_add(&copies, 1, __ATOMIC_SEQ_CST) && first ? atol(first) : 0, COPY_NS);
}

ssize_t pread(int fd, void *buf, size_t n, off_t off)
{
	copy_delay();
	return syscall(SYS_pread64, fd, buf, n, off);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t off)
{
	copy_delay();
	return syscall(SYS_pwrite64, fd, buf, n, off);
}

/* Also delays writes to the eventfd that wakes the daemon. */
ssize_t write(int fd, const void *buf, size_t n)
{
	ssize_t written = syscall(SYS_write, fd, buf, n);

	if (n == sizeof(uint64_t))
		delay(0, DOORBELL_NS);
	return written;
}

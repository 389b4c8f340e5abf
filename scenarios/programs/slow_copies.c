// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * To preload into a program that cannot be read, where a thread of it copies for the daemon: each copy takes 30 ms longer, and a
 * doorbell 2 ms, as on a machine that is too busy to let the thread run. So the first of several requests is under way when the others
 * are posted.
 */
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define COPY_NS     30000000
#define DOORBELL_NS 2000000

static void delay(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

ssize_t pread(int fd, void *buf, size_t n, off_t off)
{
	delay(COPY_NS);
	return syscall(SYS_pread64, fd, buf, n, off);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t off)
{
	delay(COPY_NS);
	return syscall(SYS_pwrite64, fd, buf, n, off);
}

/* To the eventfd that wakes the daemon, too. */
ssize_t write(int fd, const void *buf, size_t n)
{
	ssize_t written = syscall(SYS_write, fd, buf, n);

	if (n == sizeof(uint64_t))
		delay(DOORBELL_NS);
	return written;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reading back from ends that a program's read blocks. The test blocks recv() of descriptors, as a recv() of the
 * program does that copies to late memory.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "emu/host/readback.h"
#include "emu/lib/row.h"

#define ENDS 14

ssize_t __real_recv(int fd, void *buf, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool blocked;
static u32 waiting; /* calls that are blocked */

ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags)
{
	pthread_mutex_lock(&lock);
	waiting++;
	while (blocked)
		pthread_cond_wait(&changed, &lock);
	waiting--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return __real_recv(fd, buf, len, flags);
}

static void block(bool on)
{
	pthread_mutex_lock(&lock);
	blocked = on;
	pthread_cond_broadcast(&changed);
	while (!on && waiting)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

/* Tries again while the thread has not started within the short wait that follows a late read. */
static ssize_t read_tries(int fd, pid_t program, u8 *bytes, int tries)
{
	ssize_t n = -EAGAIN;

	for (; n == -EAGAIN && tries; tries--)
		n = uv_readback(fd, program, bytes);
	return n;
}

static u64 ms_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)((now.tv_sec - t->tv_sec) * 1000 + (now.tv_nsec - t->tv_nsec) / 1000000);
}

int main(void)
{
	static u8 bytes[READBACK_MAX];
	int ends[ENDS][2], i;
	struct timespec t;
	u64 shortest = ~0ull;
	ssize_t n = -EAGAIN;

	for (i = 0; i < ENDS; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) || write(ends[i][0], "abc", 3) != 3)
			return 1;
	block(true);
	for (i = 0; i < 4; i++)
		row(i, "a blocked read", read_tries(ends[i][1], 100, bytes, 1000) == -ETIMEDOUT);
	row(4, "no more of this program", read_tries(ends[4][1], 100, bytes, 100) == -EAGAIN);
	clock_gettime(CLOCK_MONOTONIC, &t);
	row(5, "of another one", uv_readback(ends[5][1], 200, bytes) == -ETIMEDOUT);
	row(6, "for which the loop waits as long as for the first", ms_since(&t) >= 199);
	for (i = 6; i < 12; i++)
		row(7, "more programs", uv_readback(ends[i][1], 300 + i, bytes) == -ETIMEDOUT);
	for (i = 0; i < 3; i++) { /* the shortest, on a busy machine */
		clock_gettime(CLOCK_MONOTONIC, &t);
		n = uv_readback(ends[12][1], 400, bytes);
		shortest = min(shortest, ms_since(&t));
		row(8, "a ninth one", n == -ETIMEDOUT || n == -EAGAIN);
	}
	row(9, "for which all waits are brief", shortest < 199);
	n = -EAGAIN;
	block(false);
	for (i = 0; i < 2000 && n == -EAGAIN; i++, usleep(1000)) /* until a thread has ended */
		n = uv_readback(ends[4][1], 100, bytes);
	row(10, "of this program when its reads have ended", n == 3 && !memcmp(bytes, "abc", 3));
	for (i = 0; i < ENDS; i++) {
		close(ends[i][0]);
		close(ends[i][1]);
	}
	return rows_end();
}

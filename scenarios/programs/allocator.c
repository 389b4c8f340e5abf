// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Preloaded after the library: an allocator with a lock that it takes before fork(), and has while it returns memory to
 * the kernel, as jemalloc does. A thread does that all the time.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
	usleep(1000); /* the other thread comes to madvise() */
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void *purge(void *arg)
{
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (;;) {
		pthread_mutex_lock(&lock);
		madvise(p, BYTES, MADV_DONTNEED);
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

void allocator_start(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, purge, NULL))
		abort();
}

__attribute__((constructor)) static void init(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

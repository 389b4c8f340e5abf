// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads take spin locks as fast as they can, as a library that polls does, while the device is opened and closed: the
 * locks are the program's own, so that no completion queue is used after its device was closed. There are more threads
 * than processors, so that most of them wait for one at any time: those must not delay the close.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define TIMES   60
#define THREADS 64 /* at most */

static atomic_bool stopped;

static void *poll_always(void *arg)
{
	pthread_spinlock_t lock;

	pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
	while (!stopped) {
		pthread_spin_lock(&lock);
		pthread_spin_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;
	long n = 2 * sysconf(_SC_NPROCESSORS_ONLN) + 4, i;
	pthread_t thread[THREADS];

	n = n < THREADS ? n : THREADS;
	if (!list || !list[0])
		return 1;
	for (i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, poll_always, NULL))
			return 1;
	for (i = 0; i < TIMES; i++) {
		context = ibv_open_device(list[0]);
		if (!context || ibv_close_device(context))
			return 1;
	}
	stopped = true;
	printf("opened and closed %ld times\n", i);
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

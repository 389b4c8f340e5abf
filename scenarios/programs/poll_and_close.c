// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A thread takes a spin lock as fast as it can, as a library that polls does, while the device is opened and closed: the
 * lock is the program's own, so that no completion queue is used after its device was closed.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#define TIMES 60

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
	pthread_t thread;
	int i;

	if (!list || !list[0] || pthread_create(&thread, NULL, poll_always, NULL))
		return 1;
	for (i = 0; i < TIMES; i++) {
		context = ibv_open_device(list[0]);
		if (!context || ibv_close_device(context))
			return 1;
	}
	stopped = true;
	pthread_join(thread, NULL);
	printf("opened and closed %d times\n", i);
	return 0;
}

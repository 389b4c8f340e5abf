// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads take spin locks as fast as they can, as a library that polls does, while the device is opened and closed: the
 * locks are the program's own, so that no completion queue is used after its device was closed. There are more threads
 * than processors, so that most of them wait for one at any time: those must not delay the close. With an argument, all
 * share one processor, and the thread that closes has a real-time priority: it must wait for the others by sleeping.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TIMES   60
#define LATE    0.5 /* s; a thread that does not sleep is interrupted by the kernel after 0.95 s (sched(7)) */
#define THREADS 64  /* at most */

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

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The policy of this thread. */
static bool schedule(int policy)
{
	struct sched_param param = { .sched_priority = policy == SCHED_FIFO };

	return !sched_setscheduler(0, policy, &param);
}

static bool use_one_processor(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;
	long n = 2 * sysconf(_SC_NPROCESSORS_ONLN) + 4, i;
	pthread_t thread[THREADS];

	double begun, longest = 0;

	(void)argv;
	if (argc > 1 && (!use_one_processor() || !schedule(SCHED_FIFO) || !schedule(SCHED_OTHER))) {
		puts("not permitted");
		return 0;
	}
	n = n < THREADS ? n : THREADS;
	if (!list || !list[0])
		return 1;
	for (i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, poll_always, NULL))
			return 1;
	for (i = 0; i < TIMES; i++) {
		context = ibv_open_device(list[0]);
		if (!context)
			return 1;
		if (argc > 1) {
			usleep(10000); /* the threads poll */
			schedule(SCHED_FIFO);
		}
		begun = now();
		if (ibv_close_device(context))
			return 1;
		longest = now() - begun > longest ? now() - begun : longest;
		schedule(SCHED_OTHER);
	}
	stopped = true;
	printf("opened and closed %ld times%s\n", i, argc > 1 && longest > LATE ? ", late" : "");
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

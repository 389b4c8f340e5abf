/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads other than the loop's. */
#ifndef MUSLIN_LIB_THREAD_H
#define MUSLIN_LIB_THREAD_H

#include <pthread.h>

/* Starts a detached thread with a small stack and all signals blocked: the loop handles signals. 0 or -errno. */
int thread_detached(void *(*fn)(void *arg), void *arg);
/* Sets CLOCK_MONOTONIC, as of clock_read(), for pthread_cond_timedwait(). */
void thread_cond_init(pthread_cond_t *cond);

#endif

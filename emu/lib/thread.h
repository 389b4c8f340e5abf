/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads beside the loop. */
#ifndef MUSLIN_LIB_THREAD_H
#define MUSLIN_LIB_THREAD_H

#include <pthread.h>

/* Starts a detached thread of a small stack that takes no signals: these are the loop's. 0 or -errno. */
int thread_detached(void *(*fn)(void *arg), void *arg);
/* pthread_cond_timedwait() on it takes times of CLOCK_MONOTONIC, as clock_read() gives them. */
void thread_cond_init(pthread_cond_t *cond);

#endif

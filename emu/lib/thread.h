/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads beside the loop. */
#ifndef MUSLIN_LIB_THREAD_H
#define MUSLIN_LIB_THREAD_H

/* Starts a detached thread of a small stack that takes no signals: these are the loop's. 0 or -errno. */
int thread_detached(void *(*fn)(void *arg), void *arg);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The monotonic clock. Code on the loop uses loop_now() instead, which is virtual in tests. */
#ifndef MUSLIN_LIB_CLOCK_H
#define MUSLIN_LIB_CLOCK_H

#include <time.h>

#include "emu/lib/types.h"

/* CLOCK_MONOTONIC in nanoseconds. */
static inline u64 clock_read(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * NSEC_PER_SEC + (u64)ts.tv_nsec;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads from an application's end of a socket pair what it has not read yet. */
#ifndef MUSLIN_HOST_READBACK_H
#define MUSLIN_HOST_READBACK_H

#include <sys/types.h>

#include "emu/lib/types.h"

#define READBACK_MAX 65536

/*
 * Reads up to READBACK_MAX bytes into @to. How many; -ETIMEDOUT: the application prevents it, and the bytes are lost when it ends that;
 * -EAGAIN: nothing was read. The loop's alone.
 */
ssize_t uv_readback(int app, u8 *to);
/* Bytes that the application has not read. Never blocks. */
u32 uv_unread(int app);

#endif

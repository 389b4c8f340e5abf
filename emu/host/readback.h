/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads back unread bytes from an application's end of a socket pair. */
#ifndef MUSLIN_HOST_READBACK_H
#define MUSLIN_HOST_READBACK_H

#include <sys/types.h>

#include "emu/lib/types.h"

#define READBACK_MAX 65536 /* a multiple of the size of each event */

/*
 * Reads up to READBACK_MAX bytes of @program's end into @to. Returns how many; -ETIMEDOUT: a read of the application
 * blocks it, and the bytes are lost when that ends; -EAGAIN: nothing was read. Called from the loop thread only.
 */
ssize_t uv_readback(int app, pid_t program, u8 *to);
/* Number of bytes that the application has not read. Never blocks. */
u32 uv_unread(int app);

#endif

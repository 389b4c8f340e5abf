/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Access to registered memory in spite of mprotect(2). */
#ifndef MUSLIN_HOST_PROTECTED_H
#define MUSLIN_HOST_PROTECTED_H

#include <sys/types.h>

#include "emu/lib/types.h"

/* @mem: /proc/PID/mem. False: the memory is not there, or not the program's own. May block. */
bool uv_protected_read(int mem, u64 addr, void *to, size_t len);
bool uv_protected_write(int mem, pid_t pid, u64 addr, const void *from, size_t len);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The thread that moves bytes between the daemon and one client process, so that the event loop
 * does not wait for that process. */
#ifndef MUSLIN_HOST_MOVER_H
#define MUSLIN_HOST_MOVER_H

#include "emu/host/server.h"

/* Maximum movers of a process, including those with a blocked thread, and of all processes. */
#define UV_MOVERS_PROCESS 512
#define UV_MOVERS         4096

struct uv_mover;

/* Starts the thread, which takes over the copy socket of @p, if any. NULL: too many movers, or out of memory. */
struct uv_mover *uv_mover_create(struct uv_process *p);
/* Queues @m. When it is done, the loop calls uv_process_moved(), unless uv_mover_wait() has returned true for it. */
void uv_mover_push(struct uv_mover *mv, struct hca_move *m);
/* Waits for the only move until @deadline (CLOCK_MONOTONIC, ns). True: it is done, and the caller owns it. */
bool uv_mover_wait(struct uv_mover *mv, u64 deadline);
/* Abandons outstanding moves. The thread exits when it can and is not joined. */
void uv_mover_destroy(struct uv_mover *mv);

#endif

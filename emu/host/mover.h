/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The thread that moves bytes between the daemon and one client process, so that the event loop never waits for that process. */
#ifndef MUSLIN_HOST_MOVER_H
#define MUSLIN_HOST_MOVER_H

#include "emu/host/server.h"

/* Moves of a process that may use its mover's thread at the same time: of those that have left a stuck one behind, too. */
#define UV_MOVERS_PROCESS 16
#define UV_MOVERS         1024

struct uv_mover;

/* Starts the thread; it takes over the copy socket of @p, if there is one. NULL: there are too many already, or no memory. */
struct uv_mover *uv_mover_create(struct uv_process *p);
/* Queues @m behind the others. When it is done uv_process_moved() is called from the loop, unless uv_mover_wait() has returned it. */
void uv_mover_push(struct uv_mover *mv, struct hca_move *m);
/* Waits for the only move until @deadline (CLOCK_MONOTONIC, ns). True: it is done, and the caller's again. */
bool uv_mover_wait(struct uv_mover *mv, u64 deadline);
/* Abandons outstanding moves. The thread exits when it can and is not joined. */
void uv_mover_destroy(struct uv_mover *mv);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The subnet manager on the management layer of one simulated CA port. */
#ifndef MUSLIN_SMHOST_SM_MAD_H
#define MUSLIN_SMHOST_SM_MAD_H

#include "emu/mad/mad.h"
#include "sm/sm.h"

struct sm_mad;

/* Creates a manager that does not run yet. NULL with a message in @err. @mp must outlive it. */
struct sm_mad *sm_mad_create(struct loop *loop, struct mad_port *mp, const struct sm_config *config, char *err,
			     size_t err_len);
void sm_mad_destroy(struct sm_mad *m); /* NULL is allowed */
/* 0, or -EBUSY if a program has registered for the manager's MADs at this port. */
int sm_mad_start(struct sm_mad *m);
/* Pauses the manager, as by SIGSTOP: received MADs and its own are queued until it continues. */
void sm_mad_pause(struct sm_mad *m, bool paused);
/*
 * Sets a hook for responses of the SA before they are sent, which returns their fate. *delay: ns, for SM_MAD_LATE. @fn
 * NULL: none.
 */
enum sm_mad_fate {
	SM_MAD_GOES,
	SM_MAD_LOST,
	SM_MAD_BUSY, /* replaced by a response with status BUSY (13.4.7) */
	SM_MAD_LATE
};
typedef enum sm_mad_fate sm_mad_answer_fn(void *arg, const u8 *mad, u64 *delay);
void sm_mad_watch(struct sm_mad *m, sm_mad_answer_fn *fn, void *arg);
struct sm *sm_mad_manager(const struct sm_mad *m);
struct mad_port *sm_mad_port(const struct sm_mad *m);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory windows: declarations shared by the rules of binding and of invalidation. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "rules.h"

#define ALL_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

#define REFUSED .state = { 0, AT(ERR) }
#define POSTED  .state = { 0, ANY_STATE } /* the verb itself may fail */
#define DENIED  .req = { ST(REM_ACCESS_ERR) }, .state = { AT(ERR), AT(ERR) }, .event = { 0, EV(QP_ACCESS_ERR) }

struct bind {
	unsigned access; /* default all rights; ZERO: none */
	unsigned off, len;
	struct ibv_mr *mr; /* default the region */
	uint32_t key;      /* type 2: default the next one */
	unsigned flags;
	bool unbind;
};

struct ibv_mw *mw_make(struct scene *s, struct ibv_pd *pd, enum ibv_mw_type type);
/* Posts the binding to the responder's queue pair; returns the window's new R_Key, or 0 if posting failed. */
uint32_t mw_bind(struct scene *s, struct ibv_mw *mw, struct bind b);
/* Status of the @n-th completion of the responder's send queue. */
enum ibv_wc_status mw_bound(struct scene *s, unsigned n);
/* Posts @r at the requester; returns the status of the @n-th completion of its send queue. */
enum ibv_wc_status mw_reach(struct scene *s, unsigned n, struct req r);
int mw_invalidate(struct scene *s, uint32_t key);
/* Discards the completions of binding, which the rule does not list; frees the window. */
void mw_done(struct scene *s, struct ibv_mw *mw);

void invalidation_rules(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory windows: what the rules of binding and of invalidation share. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "rules.h"

#define ALL_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

#define REFUSED .state = { 0, AT(ERR) }
#define POSTED  .state = { 0, ANY_STATE } /* the verb itself may refuse */
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
/* Posts the binding to the responder's queue pair; the window's new R_Key, or 0 where posting is refused. */
uint32_t mw_bind(struct scene *s, struct ibv_mw *mw, struct bind b);
/* The last completion of the responder's send queue, of which @n have come. */
enum ibv_wc_status mw_bound(struct scene *s, unsigned n);
/* That of the requester's, after it has posted @r. */
enum ibv_wc_status mw_reach(struct scene *s, unsigned n, struct req r);
int mw_invalidate(struct scene *s, uint32_t key);
/* Forgets the completions of binding, which the rule's lists do not name; frees the window. */
void mw_done(struct scene *s, struct ibv_mw *mw);

void invalidation_rules(void);

#endif

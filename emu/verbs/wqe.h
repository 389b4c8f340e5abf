/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The entries of rxe's user ABI (rdma_user_rxe.h), whichever memory their rings lie in, and the engine's canonical requests and
 * completions.
 */
#ifndef MUSLIN_VERBS_WQE_H
#define MUSLIN_VERBS_WQE_H

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "emu/hca/hca.h"
#include "emu/verbs/ring.h"

/* What the queue pair allows in one request. */
struct wqe_limits {
	enum hca_qp_type type;
	u32 max_sge, max_inline;
};

/* The token and the flags of a request whose kind is the caller's own; the rest is zero. */
void wqe_head(struct hca_send_wr *out, const struct rxe_send_wqe *w);
/*
 * Decodes a send request. @w is a copy of the entry up to its data; @data is where SGEs or inline bytes stand, perhaps in memory that
 * its owner still writes: each is read once. A datagram's address vector is not touched but zeroed: what its address handle means only
 * the front end knows. 1; -EINVAL with the token set: no such request.
 */
int wqe_send(struct hca_send_wr *out, const struct rxe_send_wqe *w, const volatile void *data,
	     const struct wqe_limits *limits);
/* The same for a receive of up to @max_sge SGEs. */
int wqe_recv(struct hca_recv_wr *out, const struct rxe_recv_wqe *w, const volatile void *data, u32 max_sge);

/* Pulls and decodes the next receive of a ring. 1, 0 (none), -EINVAL as wqe_recv(). */
int wqe_next_recv(struct verbs_ring *r, struct hca_recv_wr *out, u32 max_sge);

/* The completion as a CQ's entry has it, with the flags of libibverbs. */
struct ib_uverbs_wc wqe_completion(const struct hca_cqe *cqe);

#endif

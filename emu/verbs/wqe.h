/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Conversion between entries of rxe's user ABI (rdma_user_rxe.h) in any mapped memory and the engine's canonical
 * requests and completions.
 */
#ifndef MUSLIN_VERBS_WQE_H
#define MUSLIN_VERBS_WQE_H

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "emu/hca/hca.h"
#include "emu/verbs/ring.h"

/* Limits of the queue pair for one request. */
struct wqe_limits {
	enum hca_qp_type type;
	u32 max_sge, max_inline;
};

/* Fills in the token and flags of a request whose opcode the caller sets; the rest is zero. */
void wqe_head(struct hca_send_wr *out, const struct rxe_send_wqe *w);
/*
 * Decodes a send request. @w is a copy of the entry up to its data; @data points to the SGEs or inline bytes, possibly
 * in shared memory: each is read once. The address vector of a datagram is zeroed: the front end resolves the address
 * handle. 1; -EINVAL with the token set: malformed.
 */
int wqe_send(struct hca_send_wr *out, const struct rxe_send_wqe *w, const volatile void *data,
	     const struct wqe_limits *limits);
/* The same for a receive of up to @max_sge SGEs. */
int wqe_recv(struct hca_recv_wr *out, const struct rxe_recv_wqe *w, const volatile void *data, u32 max_sge);

/* Pulls and decodes the next receive of a ring. 1, 0 (none), -EINVAL as wqe_recv(). */
int wqe_next_recv(struct verbs_ring *r, struct hca_recv_wr *out, u32 max_sge);

/* The completion as an entry of a CQ, with the flags of libibverbs. */
struct ib_uverbs_wc wqe_completion(const struct hca_cqe *cqe);

#endif

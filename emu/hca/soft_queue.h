/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A front end for users inside the daemon and for tests: queues of canonical work requests in plain memory. Queue pairs
 * made here are ordinary ones, modified and queried by number with the calls of hca.h. Contexts of such users are made
 * with hca_local_dma, whose addresses are the daemon's own pointers.
 */
#ifndef MUSLIN_HCA_SOFT_QUEUE_H
#define MUSLIN_HCA_SOFT_QUEUE_H

#include "emu/hca/hca.h"

/* DMA to the daemon's own memory. Addresses are trusted: only for users that are part of the daemon. */
extern const struct hca_dma_ops hca_local_dma;

struct hca_soft_cq;
struct hca_soft_wq; /* a QP's queues, or an SRQ's receive queue */

/*
 * A CQ of @depth completions. @ready (may be NULL) is called at the end of each burst that left entries; it may poll
 * and post, and must not destroy queues. Returns 0 or the error of hca_cq_create(). The caller owns *cq.
 */
int hca_soft_cq_create(struct hca_ctx *ctx, u32 depth, void (*ready)(void *arg), void *arg, struct hca_soft_cq **cq);
/* 0, or -EBUSY while QPs use it. */
int hca_soft_cq_destroy(struct hca_soft_cq *cq);
u32 hca_soft_cq_number(const struct hca_soft_cq *cq);
/* Takes up to @n completions in order; returns how many. */
u32 hca_soft_cq_poll(struct hca_soft_cq *cq, struct hca_cqe *cqe, u32 n);

/* A QP with rings of init->max_send_wr and init->max_recv_wr entries. Returns 0 or the error of hca_qp_create(). */
int hca_soft_qp_create(struct hca_ctx *ctx, const struct hca_qp_init *init, struct hca_soft_wq **wq);
int hca_soft_srq_create(struct hca_ctx *ctx, u32 pdn, const struct hca_srq_attr *attr, struct hca_soft_wq **wq);
/* Destroys the QP or SRQ and frees @wq. 0, or -EBUSY without effect. */
int hca_soft_wq_destroy(struct hca_soft_wq *wq);
/* QPN or SRQ number. */
u32 hca_soft_wq_number(const struct hca_soft_wq *wq);
/* The context was destroyed: destroying the queue (or CQ) will not refer to it. */
void hca_soft_wq_orphan(struct hca_soft_wq *wq);
void hca_soft_cq_orphan(struct hca_soft_cq *cq);

/* Posts a copy of @wr and rings the doorbell. -ENOMEM: the ring is full; -EINVAL: too many SGEs or inline bytes. */
int hca_soft_post_send(struct hca_soft_wq *wq, const struct hca_send_wr *wr);
int hca_soft_post_recv(struct hca_soft_wq *wq, const struct hca_recv_wr *wr);
/* Entries posted and not completed. */
u32 hca_soft_wq_sends(const struct hca_soft_wq *wq);
u32 hca_soft_wq_recvs(const struct hca_soft_wq *wq);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A front end's objects that have queues (CQs, QPs, SRQs), by handle: limits, references between them, creation,
 * modification and destruction, with the same checks and errnos for every front end. PDs, AHs, memory regions and
 * windows have no queues: a front end passes their numbers to emu/hca itself.
 *
 * A front end provides a struct verbs_ops. Its own structures begin with the common ones, and emu/hca's callbacks get
 * a pointer to them.
 */
#ifndef MUSLIN_VERBS_OBJECT_H
#define MUSLIN_VERBS_OBJECT_H

#include "emu/hca/hca.h"
#include "emu/lib/table.h"
#include "emu/verbs/special.h"
#include "emu/verbs/wqe.h"

struct verbs;

struct verbs_cq {
	struct verbs *verbs;
	u32 handle, cqn;
	u32 specials;              /* special QPs that use it, which the engine does not count */
	bool wake, wake_solicited; /* completions since the last flush */
};

struct verbs_qp {
	struct verbs *verbs;
	u32 handle, qpn;
	struct wqe_limits limits; /* of the send queue */
	u32 max_recv_sge;
	struct verbs_cq *send_cq, *recv_cq;
	struct verbs_special special;
};

struct verbs_srq {
	struct verbs *verbs;
	u32 handle, srqn, max_sge;
};

struct verbs_ops {
	size_t cq_size, qp_size, srq_size; /* sizes of the front end's structures */
	/*
	 * Create the queues according to the front end's command @cmd; limits have been checked. 0 or -errno. Each
	 * fini() is called once for an object whose init() was called, even if that failed.
	 */
	int (*cq_init)(struct verbs_cq *cq, u32 entries, const void *cmd);
	void (*cq_fini)(struct verbs_cq *cq);
	int (*qp_init)(struct verbs_qp *qp, const struct hca_qp_init *init, bool srq, const void *cmd);
	void (*qp_fini)(struct verbs_qp *qp);
	int (*srq_init)(struct verbs_srq *srq, u32 max_wr, const void *cmd);
	void (*srq_fini)(struct verbs_srq *srq);
	u32 (*srq_posted)(void *srq);
	const struct hca_cq_ops *cq;
	const struct hca_wq_ops *qp, *srq;
	const struct verbs_special_ops *special; /* NULL: users may not create QP0 and QP1 */
	bool xrc; /* users may use XRC. The handles of SRQs are the numbers by which peers name them */
};

/* The objects of one opener. */
struct verbs {
	const struct verbs_ops *ops;
	struct hca *hca;
	struct hca_ctx *ctx; /* created and destroyed by the front end */
	struct table cqs, qps, srqs;
	struct list specials; /* special queue pairs */
};

/* Handles are @first..@last. */
void verbs_init(struct verbs *v, const struct verbs_ops *ops, struct hca *hca, u32 first, u32 last);
/* Frees all objects; the context must have been destroyed. */
void verbs_fini(struct verbs *v);

int verbs_cq_create(struct verbs *v, u32 entries, const void *cmd, struct verbs_cq **cq);
/* Checks the number of entries of a CQ. 0 or -EINVAL. */
int verbs_cq_check(const struct verbs *v, u32 entries);
/* Destroys the engine's CQ; the caller calls verbs_cq_free() afterwards. */
int verbs_cq_destroy(struct verbs *v, u32 handle, struct verbs_cq **cq);
void verbs_cq_free(struct verbs_cq *cq);
/* Records a completion; returns whether @arm (enum verbs_arm, written by the user)
 * requests an event now, and disarms. */
void verbs_cq_completed(struct verbs_cq *cq, const struct hca_cqe *cqe);
bool verbs_cq_wants_event(const struct verbs_cq *cq, u32 *arm);

enum verbs_arm {
	VERBS_ARM_NONE,
	VERBS_ARM_NEXT,
	VERBS_ARM_SOLICITED
};

/* Objects by handle; the numbers of CQs and SRQ in @init are filled in. */
struct verbs_qp_queues {
	u32 send_cq, recv_cq, srq;
	bool has_srq;
};
int verbs_qp_create(struct verbs *v, const struct verbs_qp_queues *q, struct hca_qp_init *init, const void *cmd,
		    struct verbs_qp **qp);
int verbs_qp_modify(struct verbs *v, u32 handle, const struct hca_qp_attr *a, u32 mask, struct verbs_qp **qp);
int verbs_qp_query(struct verbs *v, u32 handle, struct hca_qp_attr *a, struct verbs_qp **qp);
int verbs_qp_destroy(struct verbs *v, u32 handle, struct verbs_qp **qp); /* verbs_qp_free() must follow */
void verbs_qp_free(struct verbs_qp *qp);
/* Its queues cannot be read: hca_qp_catastrophic(), also of a special queue pair. */
void verbs_qp_catastrophic(struct verbs_qp *qp);
/* @fn: hca_mcast_attach() or hca_mcast_detach(). */
int verbs_qp_mcast(struct verbs *v, u32 handle, const u8 *mgid, u16 mlid,
		   int (*fn)(struct hca_ctx *ctx, u32 qpn, const struct wire_gid *mgid, u16 mlid));
/* If @rung is set, takes the bits (one per handle) of @words words of shared memory and calls @fn
 * for each QP. Returns how many. */
u32 verbs_doorbells(struct verbs *v, u32 *rung, u64 *doorbell, u32 words, void (*fn)(struct verbs_qp *qp));
/*
 * Polls receive rings, which have no doorbell, while QPs need receives; @t, whose function is empty, wakes the loop
 * for the next poll. Returns how many were found.
 */
u32 verbs_poll_recv(struct verbs *v, struct loop *loop, struct loop_timer *t, struct now now);
/* Processes the requests of these doorbells, by tasks of the loop, as far as possible without the peer. */
void verbs_requests_run(struct loop *loop);
/*
 * A command for this state ends the sending. What was posted before it is sent first, as by hardware: rdma_disconnect()
 * gives one, and programs post a last message before it.
 */
static inline bool verbs_state_ends(u8 state)
{
	return state == HCA_QPS_ERR || state == HCA_QPS_RESET;
}

int verbs_srq_create(struct verbs *v, u32 pdn, const struct hca_srq_attr *attr, const void *cmd,
		     struct verbs_srq **srq);
int verbs_srq_set_limit(struct verbs *v, u32 handle, u32 limit);
/* @ring has the SRQ's receives from now on: it has room for so many. -EINVAL: fewer than the limit. */
int verbs_srq_set_ring(struct verbs_srq *srq, const struct verbs_ring *ring);
int verbs_srq_query(struct verbs *v, u32 handle, struct hca_srq_attr *attr, struct verbs_srq **srq);
int verbs_srq_destroy(struct verbs *v, u32 handle, struct verbs_srq **srq); /* verbs_srq_free() must follow */
void verbs_srq_free(struct verbs_srq *srq);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* HCA (IBTA chapters 10, 11): private declarations, grouped by the file that implements them. */
#ifndef MUSLIN_HCA_INTERNAL_H
#define MUSLIN_HCA_INTERNAL_H

#include <errno.h>

#include "emu/hca/hca_fault.h"
#include "emu/hca/sq.h"
#include "emu/lib/rng.h"
#include "emu/lib/table.h"

/* key.c: a slot of the key space. Slots are not moved or freed before the HCA is destroyed, so that a stale key
 * finds a slot with another variant. */
enum hca_key_kind {
	HCA_KEY_FREE,
	HCA_KEY_MR,
	HCA_KEY_MW1,
	HCA_KEY_MW2
};

struct hca_key {
	u32 key;          /* 24 bits of index, 8 bits of variant */
	u8 kind;          /* enum hca_key_kind */
	bool valid;       /* a MR that may be used, or a bound window */
	bool fast;        /* a MR for fast registration */
	struct list link; /* the context's keys, or the free list */
	/* The members below are poisoned while the slot is free. */
	u32 access;
	struct hca_ctx *ctx;
	struct hca_pd *pd;
	u64 base; /* address of its first byte, as users of the key give it */
	u64 len;
	u64 va;             /* DMA address of the first byte; a window: its address within @mr */
	void *mem;          /* memory of a process; NULL: the context's */
	struct hca_key *mr; /* of a bound window */
	u32 windows;        /* bound to this MR */
	struct hca_qp *qp;  /* to which a type 2 window is bound */
	u64 *pages;         /* fast registration by pages, else NULL */
	u32 max_pages, npages, page_shift;
	struct hca_range *ranges; /* of other keys, else NULL */
	u32 nranges;
	/* hca_mkey_create() */
	bool mkey, remote_inval, fixed;
	u8 mkey_kind;
	u32 qpn; /* 0: any */
};

/* A part of a key that refers to another key; parts are contiguous. */
struct hca_range {
	u64 end; /* offset of its end in the whole */
	struct hca_sge sge;
};

/* mkey.c: entries of a memory key, by a work request or by the front end. 0, -EINVAL, -ENOMEM. */
int hca_mkey_fill_pages(struct hca_key *k, u32 first, const u64 *pages, u32 n);
int hca_mkey_fill_ranges(struct hca_key *k, u32 first, const struct hca_sge *range, u32 n);
/* Whether the key's ranges allow these rights: 0 or an hca_key_error. */
int hca_mkey_check_ranges(const struct hca_key *k, u32 access);

/*
 * Whether an access through a key of ranges may use @inner. As an L_Key of a scatter/gather list, it needs local read
 * and write for accesses that read and write; remote rights are those of the outer key alone.
 */
static inline bool hca_mkey_inner_permits(const struct hca_key *inner, u32 access)
{
	const u32 writes = HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_ATOMIC | HCA_ACCESS_LOCAL_WRITE;
	const u32 reads = HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_ATOMIC | HCA_ACCESS_LOCAL_READ;
	u32 needed = (access & writes ? HCA_ACCESS_LOCAL_WRITE : 0) | (access & reads ? HCA_ACCESS_LOCAL_READ : 0);

	return !(needed & ~inner->access);
}

struct hca_key_space {
	struct hca_key **slot;
	u32 first, cap, made; /* index of slot[0], slots allocated, slots ever used */
	u32 mrs, mws;
	struct list free;
};

void hca_key_space_init(struct hca_key_space *ks, struct rng *rng);
void hca_key_space_fini(struct hca_key_space *ks);
/* Allocates a slot with a fresh variant, on the context's list. -ENOMEM, or as hca_may_create(). */
int hca_key_alloc(struct hca_ctx *ctx, struct hca_pd *pd, enum hca_key_kind kind, struct hca_key **out);
void hca_key_free(struct hca_key *k);
struct hca_key *hca_key_slot(struct hca *hca, u32 key); /* by index only: the variant may be stale */
struct hca_key *hca_key_find(struct hca *hca, u32 key); /* by index and variant */
/* hca_key_remote() with this PD. */
int hca_key_remote_of(const struct hca_qp *qp, const struct hca_pd *pd, u32 rkey, u64 va, u32 len, u32 access,
		      struct hca_span *span);
/* hca_key_local() of a queue pair of this context and PD. */
int hca_key_of_pd(struct hca_ctx *ctx, const struct hca_pd *pd, u32 lkey, u64 va, u32 len, u32 access,
		  struct hca_span *span);

/* mw.c */
void hca_mw_unbind(struct hca_key *k);
void hca_mw_unbind_qp(struct hca_qp *qp); /* type 2 windows are unbound when their QP disconnects */

/* hca.c */
enum hca_object {
	HCA_OBJECT_PD,
	HCA_OBJECT_MR,
	HCA_OBJECT_MW,
	HCA_OBJECT_CQ,
	HCA_OBJECT_SRQ,
	HCA_OBJECT_QP,
	HCA_OBJECT_AH,
	HCA_OBJECTS
};

struct hca_port_slot {
	struct hca *hca;
	struct wire_port *wire;
	u64 counter[HCA_COUNTERS];
};

struct hca {
	struct loop *loop;
	char name[64];
	u64 node_guid, sys_image_guid;
	u8 nports;
	struct hca_port_slot *port; /* [0] is port 1 */
	struct rng rng;
	const struct hca_transport *transport;
	void *transport_data;
	struct list ctxs;
	u64 ctx_serial; /* of the latest context */
	struct table qps, pds, cqs, srqs, xrcds;
	u32 internal[HCA_OBJECTS]; /* of these and of the keys: the daemon's own */
	u32 qpn_next, qpns;
	struct hca_key_space keys;
	struct list dirty;      /* CQs with completions since the last flush */
	struct list overflowed; /* CQs whose QPs are to be moved to ERR */
	struct loop_task flush_task, overflow_task;
	struct hca_caps caps;
	struct fault_set faults;
	struct list failing; /* QPs that the task moves to ERR */
	struct loop_task fault_task;
	struct list *mcast; /* hash of groups; NULL until the first */
	u32 mcast_groups;   /* with queue pairs of clients */
};

struct hca_ctx {
	struct hca *hca;
	u64 serial;
	struct list link;
	const struct hca_dma_ops *dma;
	void *dma_ctx;
	void (*event)(void *fe, const struct hca_event *ev);
	void (*posts)(void *fe, bool wanted); /* NULL: no fault applies to its posts */
	void *fe;
	struct list pds, keys;
	u64 mr_pages;         /* page addresses that its keys hold, or may hold */
	struct list in_error; /* its QPs in ERR */
	struct table ahs;
	u32 qps;
	bool dying;
	bool internal; /* hca_ctx_set_internal() */
	/* dma.c: where a batch keeps this context's open group */
	struct hca_batch *batch;
	u32 batch_serial, batch_group;
	struct list flushing; /* queue pairs whose flush continues in the next iteration */
	struct loop_task flush_task;
	u64 flush_turn; /* iteration that @flushed refers to */
	u32 flushed;
	struct list moves;  /* pending, by serial number */
	struct list faults; /* accesses of its queue pairs that wait for page faults */
	u64 fault_bytes;    /* that they hold */
	u64 move_serial;    /* of the last one */
	u64 moving;         /* bytes that they hold */
};

static inline const struct wire_port_attr *hca_port_attr(const struct hca *hca, u8 num)
{
	return &hca->port[num - 1].wire->attr;
}

static inline bool hca_port_valid(const struct hca *hca, u8 num)
{
	return num >= 1 && num <= hca->nports;
}

/* pd.c */
struct hca_pd {
	struct hca_ctx *ctx;
	struct list link; /* hca_ctx.pds */
	u32 pdn, users;
};
struct hca_pd *hca_pd_get(struct hca_ctx *ctx, u32 pdn); /* of this context only, or NULL */

/* cq.c */
struct hca_cq {
	struct hca_ctx *ctx;
	const struct hca_cq_ops *ops;
	void *fe;
	u32 cqn, users;
	bool error;        /* overflowed: takes no more completions (11.6.3) */
	struct list dirty; /* on the HCA's list */
	struct list overflowed;
};
struct hca_cq *hca_cq_get(struct hca_ctx *ctx, u32 cqn);
void hca_cq_overflow_run(struct loop_task *t, struct now now);

/* xrcd.c */
struct hca_xrcd {
	struct hca_ctx *ctx;
	u32 xrcdn, srqs;
	struct list targets; /* its XRC_TGT queue pairs */
};
struct hca_xrcd *hca_xrcd_get(struct hca_ctx *ctx, u32 xrcdn);
void hca_xrc_srq_destroyed(struct hca_srq *srq);

/* srq.c */
struct hca_srq {
	struct hca_ctx *ctx;
	struct hca_pd *pd;
	const struct hca_wq_ops *ops;
	void *fe;
	u32 srqn, users;
	struct hca_srq_attr attr;
	struct hca_xrcd *xrcd; /* of an XRC SRQ, as @cq */
	struct hca_cq *cq;
	u32 (*posted)(void *fe);
};
struct hca_srq *hca_srq_get(struct hca_ctx *ctx, u32 srqn);
void hca_srq_check_limit(struct hca_srq *srq);

/* The PD for R_Keys: for XRC, that of the SRQ that the current request names (annex A14). */
static inline const struct hca_pd *hca_qp_pd(const struct hca_qp *qp)
{
	if (likely(qp->type != HCA_QPT_XRC_TGT))
		return qp->pd;
	return qp->srq ? qp->srq->pd : NULL;
}

/* qp.c */
struct hca_qp_priv {
	struct hca_qp qp;
	u32 mcast_groups; /* number attached */
	u32 windows;      /* number of type 2 windows bound */
	struct list failing;
	struct list flushing; /* on the context's list: its flush is not finished */
	struct list target;   /* on the list of its XRC domain */
	struct list counted;  /* on the list of its set of counters */
	bool alt_loaded;      /* an alternate path was given since RESET */
	bool cqe_lost;        /* a completion was lost in a CQ that has overflowed: it goes to ERR */
	/* Page faults of the responder, of the requester: accesses that wait, the oldest first. */
	struct hca_qp_side {
		struct list waiting;
		bool raised; /* the front end knows the first */
	} side[2];
	u64 waiting_bytes; /* that these hold */
};

static inline struct hca_qp_priv *hca_qp_priv(struct hca_qp *qp)
{
	return container_of(qp, struct hca_qp_priv, qp);
}
struct hca_qp *hca_qp_get(struct hca_ctx *ctx, u32 qpn);
void hca_qp_free(struct hca_qp *qp); /* without checks: the context is being destroyed */

/* qp_state.c */
int hca_av_check(const struct hca *hca, const struct hca_av *av, bool multicast_ok);
/* Clears fields of a valid address vector that its port does not have: flow labels have 20 bits
 * (8.3), Ethernet no LIDs (A17). */
void hca_av_normalize(const struct hca *hca, struct hca_av *av);
/* Moves the QP to ERR as a modify would, unless it is in RESET or ERR. */
void hca_qp_force_error(struct hca_qp *qp);

/* sq.c: as hca_wq_ops, with checks of the opcode and transport service. 0 in a state that does not allow requests. */
int hca_next_send(struct hca_qp *qp, struct hca_send_wr *wr);
void hca_send_done(struct hca_qp *qp);

/* wq.c */
void hca_ctx_flush_run(struct loop_task *t, struct now now);

/* hca_fault.c. The hooks are called only while faults are armed. */
enum hca_fault_hook {
	HCA_FAULT_NONE,
	HCA_FAULT_COMPLETE,
	HCA_FAULT_LOSE,
	HCA_FAULT_OVERRUN,
	HCA_FAULT_ERROR,
	HCA_FAULT_STUCK,
	HCA_FAULT_RNR,
	HCA_FAULT_REFUSE,
	HCA_FAULT_POST,
	HCA_FAULT_EVENT,
	HCA_FAULT_FATAL
};
void hca_fault_run(struct loop_task *t, struct now now);
void hca_qp_fail_later(struct hca_qp *qp); /* the task moves it to ERR, with HCA_EVENT_QP_FATAL */
enum hca_fault_cqe {
	HCA_FAULT_CQE_GOES,
	HCA_FAULT_CQE_OVERRUN, /* the CQ is full */
	HCA_FAULT_CQE_LOST,
};
bool hca_fault_stuck(struct hca_qp *qp);                              /* true: the send queue looks empty */
void hca_fault_sent(struct hca_qp *qp, const struct hca_send_wr *wr); /* after a work request was fetched */
bool hca_fault_recv(struct hca_qp *qp);                               /* false: no receive is posted */
/* A completion, which they may change; @opcode: enum hca_wr_opcode. */
enum hca_fault_cqe hca_fault_complete_send(struct hca_qp *qp, struct hca_cqe *cqe, u8 opcode);
enum hca_fault_cqe hca_fault_complete_recv(struct hca_qp *qp, struct hca_cqe *cqe);
int hca_fault_refuse(struct hca *hca, enum hca_object object); /* 0 or -errno */

static inline bool hca_faulty(const struct hca *hca)
{
	return unlikely(!fault_set_empty(&hca->faults));
}

/* Counts the daemon's own objects, which the limits leave out. */
static inline void hca_count_internal(struct hca_ctx *ctx, enum hca_object object, int by)
{
	if (ctx->internal)
		ctx->hca->internal[object] += (u32)by;
}

/*
 * Checks for an injected failure, then the limit: @used exist, of which at most @max are of clients. The daemon's own
 * objects are exempt from both. 0 or -errno.
 */
static inline int hca_may_create(const struct hca_ctx *ctx, enum hca_object object, u32 used, u32 max)
{
	int err;

	if (ctx->internal)
		return 0;
	err = hca_faulty(ctx->hca) ? hca_fault_refuse(ctx->hca, object) : 0;
	return err ? err : used - ctx->hca->internal[object] >= max ? -ENOMEM : 0;
}

/* ah.c */
void hca_ah_fini(struct hca_ctx *ctx);

/* mcast.c */
void hca_mcast_forget(struct hca_qp *qp);
void hca_mcast_fini(struct hca *hca);

/* dma.c */
struct hca_entry {
	struct hca_dma_seg seg;
	void (*failed)(void *arg, u64 tag);
	void *arg;
	u64 tag;
};

/* A pending move of a context: on its list, or, if it waits for a page fault, on that of a side of the queue pair. */
struct hca_pending {
	struct list link;
	struct hca_ctx *ctx;
	struct hca_move *move;
	u64 serial;
	void *mem;
	bool check;          /* of a region's memory, no move of data */
	struct hca_key *key; /* of that region; NULL: it was deregistered meanwhile */
	struct hca_qp *qp;   /* of a page fault, as the members below */
	struct list fault;   /* on the context's list of page faults */
	u8 kind;
	u32 lkey, access, pdn, srqn;
	u64 token;
	u32 n;
	struct hca_entry entry[];
};
/* Allocates a move of @n entries, with a copy of the bytes to be written; does not start it. NULL if out of memory. */
struct hca_pending *hca_pending_new(struct hca_ctx *ctx, void *mem, enum hca_move_op op, const struct hca_entry *e,
				    u32 n);
u64 hca_pending_bytes(const struct hca_pending *p);
/* The move is done: copies its bytes to the entries' buffers, reports failures, and frees it but for the move. */
void hca_pending_finish(struct hca_pending *p, bool failed);
void hca_batches_forget(const struct hca_ctx *ctx); /* of @ctx, in every batch */
void hca_batches_run(void);
void hca_moves_forget(struct hca_ctx *ctx);                              /* disowns pending moves */
void hca_moves_forget_key(struct hca_ctx *ctx, const struct hca_key *k); /* @k is being freed */
/* Checks the region's memory. 0, -EFAULT, or -EINPROGRESS: the region becomes valid or is freed later. */
int hca_mr_check(struct hca_key *k);

/* page_fault.c */
/* Adds the access @e to @span, whose page is absent. 0, or -errno: it fails. */
int hca_page_fault_wait(const struct hca_span *span, enum hca_move_op op, const struct hca_entry *e, u64 compare_add,
			u64 swap);
void hca_page_faults_forget(struct hca_qp *qp); /* drops the accesses that wait: it is reset or destroyed */

/* event.c */
void hca_ctx_event(struct hca_ctx *ctx, enum hca_event_type type, u32 number, void *fe);
void hca_port_event(void *port_slot, enum wire_port_event event);

#endif

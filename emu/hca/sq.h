/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For transports: the send queue of a queue pair (IBTA 10.8), and access to the memory that SGEs and R_Keys name
 * (10.6). A transport extends struct hca_wqe by its protocol state, and sets HCA_WQE_DONE.
 */
#ifndef MUSLIN_HCA_SQ_H
#define MUSLIN_HCA_SQ_H

#include <sys/uio.h>

#include "emu/hca/engine.h"

#define HCA_SQ_WQES     256        /* requests fetched and not completed, per QP */
#define HCA_MESSAGE_MAX (1u << 31) /* bytes, 9.7.1 */

enum hca_wqe_state {
	HCA_WQE_POSTED, /* fetched, not sent or sent in part */
	HCA_WQE_SENT,
	HCA_WQE_DONE
};

/* A send request that was fetched. The transport's own struct begins with it. */
struct hca_wqe {
	u64 token, remote_addr, compare_add, swap;
	u8 opcode, flags;
	u8 state;  /* enum hca_wqe_state */
	u8 status; /* local error with which the request completes, in order */
	bool lso;
	u16 num_sge;
	u32 imm, rkey;
	u32 length;               /* bytes of the message */
	u32 head;                 /* bytes of inline data in @copy, before those of the SGEs */
	struct hca_send_wr *copy; /* of a local operation, and of inline data with hca_sq.keep_inline or SGEs; owned */
	struct hca_sge sge[HCA_MAX_SGE];
};

/* Opcodes of send requests: transport services (9.4; RFC 5040, 4), and completion opcode. */
struct hca_operation {
	u16 services; /* bits of enum hca_qp_type */
	u8 completion;
	bool response; /* READ and atomics: complete with data from the responder; no inline data */
	bool local;    /* executed by the HCA alone */
};
#define HCA_WR_OPCODES (HCA_WR_NOP + 1)
extern const struct hca_operation hca_operations[HCA_WR_OPCODES];

static inline bool hca_wqe_reads(const struct hca_wqe *w)
{
	return hca_operations[w->opcode].response;
}

static inline bool hca_wqe_local(const struct hca_wqe *w)
{
	return hca_operations[w->opcode].local;
}

/* Positions count up and wrap; an entry's slot is its position modulo HCA_SQ_WQES. Free entries are poisoned. */
struct hca_sq {
	struct hca_qp *qp;
	void *wqes; /* HCA_SQ_WQES of @wqe_size bytes; NULL until hca_sq_alloc() */
	u32 wqe_size;
	u32 head, tail;   /* one past the last request fetched; the oldest one not completed */
	bool keep_inline; /* inline data stays in @copy until the completion */
	void (*release)(struct hca_qp *qp, struct hca_wqe *w); /* releases the transport's part; may be NULL */
};

static inline struct hca_wqe *hca_sq_at(const struct hca_sq *sq, u32 i)
{
	return (struct hca_wqe *)((u8 *)sq->wqes + (size_t)(i % HCA_SQ_WQES) * sq->wqe_size);
}

int hca_sq_alloc(struct hca_sq *sq);  /* no effect if the entries exist already; 0 or -ENOMEM */
void hca_sq_reset(struct hca_sq *sq); /* drops all requests without completion */
void hca_sq_free(struct hca_sq *sq);
/*
 * Fetches the next posted request into the entry at head and @wr; NULL: none, or no free entry. w->status is set for a
 * malformed request, one that the transport service does not support, and one that is too long. The transport
 * initializes its own part.
 */
struct hca_wqe *hca_sq_fetch(struct hca_sq *sq, struct hca_send_wr *wr);
/* Executes BIND_MW, LOCAL_INV, REG_MR or NOP: the request is done, or w->status is set. */
void hca_sq_run_local(struct hca_sq *sq, struct hca_wqe *w);
/* Completes requests that are done, in order, before position @end and before the first one that
 * has failed. Returns how many. */
u32 hca_sq_complete(struct hca_sq *sq, u32 end);
/*
 * Completes all requests in order (10.8.2): those done before the first failure; the oldest other one with its own
 * error if it is done, else with @status; all later ones with WR_FLUSH_ERR, even if executed.
 */
void hca_sq_flush(struct hca_sq *sq, u8 status);

/* sge.c: memory named by a list of SGEs with L_Keys, or by one SGE with an R_Key. */
struct hca_mem {
	struct hca_qp *qp;
	const struct hca_sge *sge;
	u32 n;
	int (*key)(struct hca_qp *qp, u32 key, u64 va, u32 len, u32 access,
		   struct hca_span *span); /* hca_key_local(), hca_key_recv(), hca_key_remote() */
	u32 access;
	const u8 *head; /* bytes before those of the list, which are only read; may be NULL */
	u32 head_len;
	u64 token; /* see struct hca_span */
};

/* The batch of a copy; failed(arg, tag) is called for a failure when the batch runs, or later. */
struct hca_mem_batch {
	struct hca_batch *batch;
	void (*failed)(void *arg, u64 tag);
	void *arg;
	u64 tag;
};

/* The payload of a send request. */
static inline struct hca_mem hca_wqe_payload(struct hca_qp *qp, const struct hca_wqe *w)
{
	struct hca_mem m = { qp, w->sge, w->num_sge, hca_key_local, HCA_ACCESS_LOCAL_READ };

	if (unlikely(w->head)) {
		m.head = w->copy->inline_data;
		m.head_len = w->head;
	}
	m.token = w->token;
	return m;
}

/*
 * For @len bytes at @off of the message. 0, or an hca_key_error. HCA_KEY_BOUNDS: the list is too short, or the range
 * exceeds the R_Key's; an L_Key that does not cover its SGE is HCA_KEY_INVALID. Entries added before the error stay in
 * the batch.
 */
int hca_mem_check(const struct hca_mem *m, u32 off, u32 len);
int hca_mem_read(const struct hca_mem *m, u32 off, u32 len, void *local, const struct hca_mem_batch *b);
int hca_mem_write(const struct hca_mem *m, u32 off, u32 len, const void *local, const struct hca_mem_batch *b);
/*
 * Zero-copy: pointers to the bytes, valid until the next return to the loop. Returns how many, or an hca_key_error; 0:
 * not all are mapped, or more than @max pieces are needed.
 */
int hca_mem_direct(const struct hca_mem *m, u32 off, u32 len, struct iovec *iov, u32 max);

#endif

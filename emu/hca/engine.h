/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interface between the HCA and its transport (rxe, siw): queue pairs with their attributes, work requests, keys,
 * memory access, completions, events. Included by emu/hca and by transports only.
 */
#ifndef MUSLIN_HCA_ENGINE_H
#define MUSLIN_HCA_ENGINE_H

#include "emu/hca/iw.h"

struct hca_pd;
struct hca_cq;
struct hca_srq;
struct hca_xrcd;

struct hca_qp {
	struct hca *hca;
	struct hca_ctx *ctx;
	struct hca_pd *pd;
	struct hca_cq *send_cq, *recv_cq;
	struct hca_srq *srq; /* NULL: own receive queue; XRC_TGT: the current request's SRQ, by hca_xrc_srq() */
	struct hca_xrcd *xrcd;
	const struct hca_wq_ops *ops;
	void *fe;
	enum hca_qp_type type;
	u32 qpn, src_qpn;
	bool sq_sig_all, rx_csum;
	bool flush_deferred; /* set by the transport: earlier completions are pending, the flush must wait for them */
	bool suspended[2];   /* the responder, the requester: by a page fault (page_fault.c) */
	u32 max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	enum hca_qp_state state; /* the transport may move it to SQE or ERR by hca_qp_fail() only */
	/* As modified; the transport's query() gives the present values (state, sq_psn, path_mig_state...). */
	struct hca_qp_attr attr;
	struct list in_error;             /* on the context's list while in ERR: receives posted later are flushed */
	struct hca_counter_set *counters; /* NULL: none */
	void *transport;                  /* private to the transport */
};

/* Operations of a transport, which is set once at start. */
struct hca_transport {
	int (*create)(struct hca_qp *qp); /* allocates qp->transport; 0 or -ENOMEM */
	void (*destroy)(struct hca_qp *qp);
	/*
	 * After a valid modify: qp->attr has the new values, @from the old state, @mask the attributes that changed.
	 * RESET: drop all state. ERR: flush (hca_qp_flush() flushes requests not yet pulled). SQD: drain, then raise
	 * SQ_DRAINED.
	 */
	void (*modified)(struct hca_qp *qp, enum hca_qp_state from, u32 mask);
	void (*query)(struct hca_qp *qp, struct hca_qp_attr *attr);
	void (*doorbell)(struct hca_qp *qp); /* the send queue may have new requests */
	/* A packet for QPN >= 2 or multicast, received at a port of this HCA; the transport takes ownership.
	 * -EAGAIN as in emu/port/port.h. */
	int (*receive)(struct hca *hca, u8 port, struct wire_packet *p);
	/* An XRC SRQ is being destroyed: receives that @qp, an XRC_TGT, took from it do not complete, and requests
	 * that name it are invalid. May be NULL. */
	void (*srq_destroyed)(struct hca_qp *qp, u32 srqn);
	/* Zero-copy receive, as wire_port_user.zcopy; may be NULL. */
	u32 (*zcopy)(struct hca *hca, u8 port, const struct wire_packet *head, u32 n, u8 **at);
	void (*port_ready)(struct hca *hca, u8 port); /* send credits are available again */
	void (*moved)(struct hca *hca);               /* moves of a context have completed; may be NULL */
	int (*start)(struct hca *hca);                /* hca_set_transport_data() may be called; 0 or -errno */
	void (*stop)(struct hca *hca);
	const struct hca_iw_ops *iw; /* the transport's own connection management over TCP (iWARP); NULL: none */
};

/* Must be called before the first context. Calls start(). */
int hca_set_transport(struct hca *hca, const struct hca_transport *t);
void hca_set_transport_data(struct hca *hca, void *data);
void *hca_transport_data(const struct hca *hca);
struct loop *hca_loop(const struct hca *hca);

struct hca_qp *hca_qp_lookup(struct hca *hca, u32 qpn); /* O(1); NULL when there is none */
/* Calls fn for each QP attached to @mgid (by GID, 10.5.2) on this HCA and port; returns how many. */
u32 hca_mcast_for_each(struct hca *hca, u8 port, const struct wire_gid *mgid, u16 mlid,
		       void (*fn)(struct hca_qp *qp, void *arg), void *arg);

/* Receive requests. 0 in a state that does not allow them; otherwise as hca_wq_ops. Send requests: sq.h. */
/* Takes the next receive of the QP's own queue or of its SRQ (counted for the limit event). */
int hca_next_recv(struct hca_qp *qp, struct hca_recv_wr *wr);
void hca_recv_done(struct hca_qp *qp);
/*
 * XRC_TGT: selects the SRQ, and its PD, for the following receives and key checks (annex A14). -EINVAL: no such SRQ,
 * or one of another XRC domain; then none is selected.
 */
int hca_xrc_srq(struct hca_qp *qp, u32 srqn);

/*
 * Completions: @cqe's qpn and port are filled in, and srqn except for an XRC_TGT. A full CQ raises CQ_ERR and fails
 * the QPs of the CQ. hca_flush() calls the front end's flush; the transport calls it at the end of a burst (and the
 * HCA before the loop sleeps). @opcode: the work request's, enum hca_wr_opcode; faults distinguish it.
 */
void hca_complete_send(struct hca_qp *qp, struct hca_cqe *cqe, u8 opcode);
void hca_complete_recv(struct hca_qp *qp, struct hca_cqe *cqe);
void hca_flush(struct hca *hca);

/*
 * Moves the QP to ERR (or UD/UC send errors: SQE) after a fatal error; pulls the requests still in its queues and
 * completes them with WR_FLUSH_ERR. The transport must have completed those that it had pulled. @event: the affiliated
 * event, or -1 for none.
 */
void hca_qp_fail(struct hca_qp *qp, enum hca_qp_state to, int event);
/* For a transport that has connected a QP in INIT (or RTR): moves it to RTS with these
 * depths and notifies the front end. */
void hca_qp_establish(struct hca_qp *qp, u8 ird, u8 ord);
/* Makes the alternate path the primary one, in state MIGRATED, and raises PATH_MIG (17.2.8). */
void hca_qp_migrate(struct hca_qp *qp);
/* Flushes requests still in the front end's queues of a QP in ERR (of a QP in SQE: the
 * send queue). Returns how many. */
u32 hca_qp_flush(struct hca_qp *qp);
void hca_qp_event(struct hca_qp *qp, enum hca_event_type type);

/* Keys and memory. */
enum hca_key_error {
	HCA_KEY_OK = 0,
	HCA_KEY_INVALID = -1,
	HCA_KEY_PD = -2,
	HCA_KEY_BOUNDS = -3,
	HCA_KEY_ACCESS = -4
};

/* A span of application memory to which a key gives access: address in the DMA space of @ctx. */
struct hca_span {
	struct hca_ctx *ctx;
	u64 addr;
	u32 len;
	bool on_demand; /* see struct hca_dma_seg */
	void *mem;      /* memory of the process that registered it; NULL: the context's */
	/* A page fault: @addr is an address of @key; the access waits. */
	bool absent;
	u8 kind; /* enum hca_page_fault_kind */
	u32 key, access;
	u64 token; /* of the request; of an access by R_Key: the operation's end address; 0: not known */
	struct hca_qp *qp;
};
/*
 * Checks key, PD, range, state and rights. Returns the number of spans, or an hca_key_error. Up to
 * HCA_MAX_SPANS spans cover the range from its start; when they do not cover all of it, look up the rest again. A zero
 * @len needs no key (9.7.4.1) and has no span; any other has at least one.
 */
#define HCA_MAX_SPANS 4
int hca_key_local(struct hca_qp *qp, u32 lkey, u64 va, u32 len, u32 access, struct hca_span *span);
/* For the memory of a receive: uses the PD of the SRQ, if any, instead of the QP's (10.2.9). */
int hca_key_recv(struct hca_qp *qp, u32 lkey, u64 va, u32 len, u32 access, struct hca_span *span);
int hca_key_remote(struct hca_qp *qp, u32 rkey, u64 va, u32 len, u32 access, struct hca_span *span);

/* SEND_WITH_INV at the responder, LOCAL_INV and BIND_MW / REG_MR at the requester: 0 or an hca_key_error, from which
 * the transport derives the NAK or completion status. */
int hca_key_invalidate(struct hca_qp *qp, u32 key, bool remote);
int hca_mw_bind(struct hca_qp *qp, const struct hca_send_wr *wr);
int hca_mr_fast_reg(struct hca_qp *qp, const struct hca_send_wr *wr);

/*
 * A batch of moves, merged where adjacent and run with as few calls as possible (one process_vm_writev for a burst).
 * hca_batch_run() executes them: it fills @local of reads; @local of writes must stay valid until then, and the run
 * must precede the completions and ACKs of those writes. Errors are reported per owner: on -EFAULT the batch is run
 * again entry by entry and @failed(arg, tag) is called for each entry that failed.
 *
 * Another thread moves the memory of a process that is not mapped here. The run may return before such a move
 * completes: hca_ctx_moves() and hca_ctx_moved() give its progress, and the transport's moved() is called. Read
 * buffers must stay valid until then, or their owner be disowned; bytes to be written were copied. Accesses that wait
 * for a page fault are such moves, too, of their QP alone: hca_qp_moved().
 */
struct hca_batch;
struct hca_batch *hca_batch_create(void);
void hca_batch_destroy(struct hca_batch *b);
void hca_batch_read(struct hca_batch *b, const struct hca_span *span, void *local, void (*failed)(void *arg, u64 tag),
		    void *arg, u64 tag);
void hca_batch_write(struct hca_batch *b, const struct hca_span *span, const void *local,
		     void (*failed)(void *arg, u64 tag), void *arg, u64 tag);
void hca_batch_run(struct hca_batch *b);
u32 hca_batch_pending(const struct hca_batch *b);
/* Whether entries that were added since the last call wait for a page fault. */
bool hca_batch_faulted(struct hca_batch *b);
/* Drops entries whose memory belongs to @ctx, which is being destroyed. */
void hca_batch_forget(struct hca_batch *b, const struct hca_ctx *ctx);
/* A pointer to the span's memory, valid until the next return to the loop; NULL if it is not mapped here. */
void *hca_span_direct(const struct hca_span *span, bool write);
/*
 * 8-byte atomic at one span, in host byte order; *old is the value before. 0 or -EFAULT; -EINPROGRESS: completes
 * later, as a batch; -EBUSY: moves to that memory are pending.
 */
int hca_atomic(const struct hca_span *span, bool swap, u64 compare_add, u64 swap_value, u64 *old,
	       void (*failed)(void *arg, u64 tag), void *arg, u64 tag);
/* As hca_ctx_moved(), and no page fault of the QP from before @serial is pending. */
bool hca_qp_moved(const struct hca_qp *qp, u64 serial);
/* Pending moves of @ctx for the owner @arg will neither fill its buffers nor
 * call it. The batches must have been run. */
void hca_moves_disown(struct hca_ctx *ctx, const void *arg);
/* The same for pending moves that would fill [from, from + len): that buffer is about to be freed. */
void hca_moves_forget_local(struct hca_ctx *ctx, const void *from, u32 len);
/* The pending moves hold so many bytes that requests of this context must wait. */
bool hca_ctx_full(const struct hca_ctx *ctx);
/* The pending moves hold so many bytes that requests of its peers are dropped. */
bool hca_ctx_overfull(const struct hca_ctx *ctx);
/* The same for requests of this QP, or of its peers: also its accesses that wait for page faults hold so many bytes. */
bool hca_page_faults_full(const struct hca_qp *qp, bool overfull);
static inline bool hca_qp_full(const struct hca_qp *qp)
{
	return hca_ctx_full(qp->ctx) ||
	       (unlikely(qp->suspended[0] || qp->suspended[1]) && hca_page_faults_full(qp, false));
}
static inline bool hca_qp_overfull(const struct hca_qp *qp)
{
	return hca_ctx_overfull(qp->ctx) ||
	       (unlikely(qp->suspended[0] || qp->suspended[1]) && hca_page_faults_full(qp, true));
}

/* Counters of the device (sysfs hw_counters); the names are those of rxe's and mlx5's hw_counters. */
enum hca_counter {
	HCA_CNT_SENT_PKTS,
	HCA_CNT_RCVD_PKTS,
	HCA_CNT_DUPLICATE_REQUEST,
	HCA_CNT_OUT_OF_SEQUENCE,
	HCA_CNT_RCVD_RNR_ERR,
	HCA_CNT_SEND_RNR_ERR,
	HCA_CNT_RCVD_SEQ_ERR,
	HCA_CNT_ACK_DEFERRED,
	HCA_CNT_RETRY_EXCEEDED,
	HCA_CNT_RNR_RETRY_EXCEEDED,
	HCA_CNT_LOCAL_ACK_TIMEOUT,
	HCA_CNT_COMPLETER_RETRY,
	HCA_CNT_SEND_ERR,
	HCA_CNT_RDMA_SENDS,
	HCA_CNT_RDMA_RECVS,
	HCA_CNT_WRITE_REQUESTS, /* that the responder has executed, without duplicates; RDMA WRITEs by messages */
	HCA_CNT_READ_REQUESTS,
	HCA_CNT_ATOMIC_REQUESTS,
	HCA_CNT_ICRC_ERR,
	HCA_CNT_BAD_PACKET,
	HCA_CNT_WRONG_QP,
	HCA_CNT_GHOST,         /* an unexpected response: ghost acknowledge, 9.7.5.1 */
	HCA_CNT_OOO_DISCARDED, /* an out-of-order packet, dropped because the out-of-order buffer is full */
	HCA_CNT_REMOTE_ACCESS_ERR,
	HCA_CNT_REMOTE_INV_REQ_ERR,
	HCA_CNT_PKEY_MISMATCH,
	HCA_CNT_QKEY_MISMATCH,
	HCA_CNT_UD_DROPPED,
	HCA_CNT_WQE_ERR,
	HCA_CNT_CQ_OVERFLOW,
	HCA_CNT_CNP_SENT,
	HCA_CNT_CNP_HANDLED,
	HCA_CNT_CNP_IGNORED,
	HCA_CNT_ECN_MARKED,
	HCA_COUNTERS
};
void hca_count(struct hca *hca, u8 port, enum hca_counter c);
/* Counts for the QP's port and for its set (hca_qp_set_counters()). */
void hca_qp_count(const struct hca_qp *qp, enum hca_counter c);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Transport: state of a queue pair and an adapter, and declarations by the file that implements them. */
#ifndef MUSLIN_RXE_INTERNAL_H
#define MUSLIN_RXE_INTERNAL_H

#include "emu/hca/sq.h"
#include "emu/packet/header.h"
#include "rxe/dcqcn.h"
#include "rxe/rxe.h"

#define RXE_PORTS         4
#define RXE_QPN_MULTICAST 0xffffff
#define RXE_CWND_MAX      512         /* packets sent and not acknowledged, per QP */
#define RXE_ACK_EVERY     64          /* AckReq at least every so many packets */
#define RXE_CHUNK         65536u      /* application memory is read in chunks of this size */
#define RXE_OOO_PACKETS   512         /* packets in the responder's out-of-order buffer, per QP */
#define RXE_OOO_BYTES     (32u << 20) /* of payload in the out-of-order buffers of all QPs of an adapter */
#define RXE_RESOURCES     128         /* READs and atomics for which the responder keeps its resources (9.7.5.1) */
#define RXE_WRITE_BUFS    256         /* buffers that the batch of writes points into */
#define RXE_PSNS_MAX      0x7fffffu   /* unacknowledged PSNs: beyond, new packets look like duplicates (9.7.1) */
#define RXE_COMPS         32768u      /* receive completions of a QP that wait for a commit */
#define RXE_BUDGET        60          /* packets that a QP sends before the next QP */
#define RXE_LATE_RNR      20          /* RNR timer of 10.24 ms: how long a peer waits for late client memory */
#define RXE_PENDING       65536u      /* ACKs and other packets of a port that wait for its credits */

/* A send request: its PSNs, and its payload. */
struct rxe_wqe {
	struct hca_wqe wr;
	u32 first_psn, npkts;
	u32 remote_qpn, remote_qkey; /* UD */
	u32 remote_srqn;             /* XRC */
	u16 lso_mss;                 /* UD: bytes a segment; 0: no packet to be cut */
	u16 lso_hdr;                 /* bytes of headers in chunk before the payload */
	bool read_failed;            /* its memory could not be read */
	bool resent;                 /* READ: it was requested again, possibly in part */
	u32 got;                     /* READ: response bytes received in order */
	struct wire_buf *chunk;      /* bytes of the message from chunk_off on */
	u32 chunk_off;
	struct hca_av av;
};

/*
 * Responder resources of a READ or atomic (9.7.5.1): its response is pending or may be replayed. In the order of PSNs.
 */
struct rxe_resource {
	bool atomic;
	u32 first_psn, npkts;
	u32 sent, start; /* responses sent; the first response to the latest request or duplicate */
	u64 va, orig;
	u64 due;     /* the move that fetches the chunk, or an atomic's orig; see hca_qp_moved(); 0: fetched */
	bool failed; /* that move failed */
	u32 rkey, length, msn;
	u32 srqn; /* XRC: the SRQ that the request names, which has the PD of its R_Key */
	struct wire_buf *chunk;
	u32 chunk_off;
};

/* A duplicate READ (possibly of a part) or atomic whose response is retransmitted. */
struct rxe_replay {
	u32 index;     /* of the resource */
	u32 start, at; /* first and next packet */
	u32 end;       /* byte behind the last packet */
	bool whole;    /* the last packet ends the response; else the rest has not been sent yet */
};

static inline u32 rxe_packets(u32 len, u32 mtu)
{
	return len ? (len - 1) / mtu + 1 : 1;
}

struct rxe;

/* The request that a write in the batch belongs to: if the write fails, that request fails. */
enum rxe_write_kind {
	RXE_WRITE_RECV,    /* payload of a SEND, to the receive request */
	RXE_WRITE_REMOTE,  /* payload of an RDMA WRITE, by its R_Key */
	RXE_WRITE_RESPONSE /* response to a READ or atomic */
};
struct rxe_write {
	u8 kind;
	u32 at;     /* PSN; of a response: the slot of its request in wqes[] */
	u32 ncomps; /* receive completions that were queued before it */
};

/* A failure that is deferred until pending writes are done, since earlier requests have to complete first. */
enum rxe_fail {
	RXE_FAIL_NONE,
	RXE_FAIL_REQUEST, /* rxe_req_fail() */
	RXE_FAIL_ERROR,   /* the queue pair is in ERR: only its flush is due */
};

/* Congestion window of a requester on a link without credits (cwnd.c). */
struct rxe_cwnd {
	bool on, sampling;
	bool loss_handled; /* the loss in this flight has been counted, and the retransmission requested */
	bool late;         /* the retransmission time-out ran late, and was armed again */
	u8 backoff;
	u32 size, acked;                  /* packets; acknowledged since the window last grew */
	u32 sample_psn, loss_psn;         /* loss_psn: of the last packet that has reported the handled loss */
	u64 srtt, sample_ns, timer_began; /* ns; begin of the local ACK timeout */
};

/* Does the peer's responder buffer out-of-order packets? If so, one packet can be retransmitted selectively. */
enum rxe_selective {
	RXE_SELECTIVE_UNKNOWN,
	RXE_SELECTIVE_YES,
	RXE_SELECTIVE_NO
};

/* The message that the responder is receiving: the next packet must continue it (9.7.4.1). */
enum rxe_last_op {
	RXE_LAST_OP_NONE,
	RXE_LAST_OP_SEND,
	RXE_LAST_OP_WRITE
};

/* Requester (9.7.5): the send queue, and packets sent and not acknowledged. */
struct rxe_requester {
	struct hca_sq wq; /* of struct rxe_wqe, from RTR on */
	u32 next;         /* position of the request to send next */
	u32 pkt_next;     /* packet of that request to send next */
	u64 load_due;     /* the move that fetches payload of requests load_first..load_end, 0: none pending */
	u32 load_first, load_end;
	u32 psn, una, max_psn; /* next PSN to send, oldest not acknowledged, one past the highest ever sent */
	u32 rd_out;            /* READs and atomics in flight */
	bool drained, sqd;
	struct loop_timer timer; /* local ACK timeout, or the RNR NAK timer */
	u8 retries, rnr_retries;
	bool rnr_wait;
	struct rxe_cwnd cwnd;
	/* READ: out-of-order receive and partial retransmission (read.c) */
	u64 *read_ooo;           /* bitmap by PSN of READ responses that were received out of order, and written */
	u32 nread_ooo;           /* bits set in read_ooo */
	bool read_retransmit;    /* a partial READ requests the missing responses ... */
	u32 read_retransmit_end; /* ... up to that PSN */
	/* selective retransmission (retry.c) */
	enum rxe_selective peer_selective;
	bool retransmit_due, retransmit_out; /* pending, or sent and not acknowledged */
	u32 retransmit_psn;
	u32 seq_naks; /* PSN sequence error NAKs of a peer without an out-of-order buffer */
};

/* Responder (9.7.4, 9.8): packets received, requests executed and responses. */
struct rxe_responder {
	u32 epsn, msn;
	u32 cpsn;       /* committed: PSNs before it are executed, responded to, in memory, and completed */
	u64 late_since; /* ns of the loop's clock since when the request at cpsn waits for moves; 0: it does not wait */
	enum rxe_last_op last_op;
	bool comm_est, uc_drop;
	/* ACK and NAK */
	bool ack_due, nak_sent;
	bool rnr_sent;  /* the NAK sent is an RNR NAK: no sequence error NAK follows before the request */
	u8 nak;         /* syndrome of a NAK that waits for the commit, 0: none */
	bool failing;   /* the QP goes to ERR after that NAK (UC, UD: none) and the pending responses before it */
	u32 fail_psn;   /* of that NAK */
	int fail_event; /* as of hca_qp_fail() */
	/* out-of-order receive (ooo.c) */
	u32 last_ooo_psn;         /* of the last packet that was out of order */
	struct wire_packet **ooo; /* RXE_OOO_PACKETS, by PSN; from the first missing PSN on */
	u32 nooo;
	/* receive queue */
	bool recv_pulled; /* recv is a pulled request */
	struct hca_recv_wr recv;
	u32 recv_off;
	u32 srqn;              /* XRC: the SRQ that the message names; 0: none, or it was destroyed */
	struct hca_cqe *comps; /* completions that wait for the commit; one is reserved for the pulled request */
	u32 ncomps, comps_cap;
	/* RDMA WRITE in progress */
	u64 wr_va; /* address of the next byte; wr_left of wr_len bytes remain */
	u32 wr_rkey, wr_left, wr_len;
	/* READ and atomic responses (resource.c) */
	struct rxe_resource *res; /* RXE_RESOURCES */
	u32 res_head, res_next, res_tail;
	struct rxe_replay *replay; /* RXE_RESOURCES, from the first duplicate on; sent before first-time responses */
	u32 replay_head, replay_tail;
	bool write_failed;
	struct rxe_write failed; /* the first write that failed since the last commit */
};

/* Rate of packets of the requester and the responder: static rate (pace.c) and DCQCN (congestion.c). */
struct rxe_rate {
	struct loop_timer timer; /* kicks the queue pair when its next packet is due */
	u64 until;               /* ns of the loop's clock: when the next packet is due */
	bool armed;              /* the timer was armed a short while ago */
	struct dcqcn *dcqcn;     /* from the first CNP on */
	u64 cnp_after;           /* ns: no CNP is sent before that */
};

struct rxe_qp {
	struct hca_qp *qp;
	struct rxe *rxe;
	struct list work;    /* on rxe->work while it has something to send */
	struct list dirty;   /* on rxe->dirty while a commit is due, on rxe->commit_wait while it waits for writes */
	struct list stalled; /* on rxe->stalled while it waits for moves to or from client memory */
	bool wrote;          /* it has added writes to the batch, or ended access by a key, since write_due was set */
	u64 write_due;       /* the move of its last write, as of hca_qp_moved() */
	enum rxe_fail fail_due;
	u8 fail_status;   /* of the requester's failure */
	bool mig_refused; /* PATH_MIG_ERR was raised for a migration request by a wrong path */
	struct rxe_requester req;
	struct rxe_responder resp;
	struct rxe_rate rate;
};

struct rxe {
	struct hca *hca;
	struct loop *loop;
	struct list work, dirty, blocked; /* blocked: backpressure, their port had no credits */
	struct list commit_wait, stalled; /* wait for moves to or from client memory */
	struct loop_task tx_task, commit_task;
	struct hca_batch *rd, *wr;
	struct wire_buf *write_bufs[RXE_WRITE_BUFS]; /* the batch of writes points into them */
	struct rxe_qp *last_writer;                  /* of the batch's last entry, NULL: the batch is empty */
	struct rxe_write last_write;                 /* of that entry */
	u32 nwrite_bufs;
	u32 ooo_bytes;                  /* payload in the out-of-order buffers of all QPs */
	struct list pending[RXE_PORTS]; /* packets that wait for credits of the port */
	u32 npending[RXE_PORTS];        /* at most RXE_PENDING */
};

/* RC, or XRC, whose ends are each half of an RC queue pair (annex A14). */
static inline bool rxe_is_reliable(const struct rxe_qp *rq)
{
	return rq->qp->type == HCA_QPT_RC || rq->qp->type >= HCA_QPT_XRC_INI;
}

static inline enum wire_transport rxe_transport_of(const struct hca_qp *qp)
{
	return qp->type == HCA_QPT_RC ? WIRE_TP_RC : qp->type == HCA_QPT_UC ? WIRE_TP_UC : WIRE_TP_XRC;
}

static inline bool rxe_is_ethernet(const struct rxe_qp *rq)
{
	return wire_port_is_ethernet(hca_port(rq->qp->hca, rq->qp->attr.port));
}

/* core.c: flushes the work requests that the engine has pulled, and moves the QP to ERR; @event as of hca_qp_fail() */
void rxe_qp_error(struct rxe_qp *rq, int event);
void rxe_qp_flush(struct rxe_qp *rq); /* completes the flush of a QP that entered ERR with writes pending */

/*
 * frame.c. rxe_frame: a packet of a connected queue pair to its peer, for @len bytes of payload; @opcode is the one of
 * RC, to which it adds the transport service. rxe_frame_to: a datagram.
 */
struct wire_packet *rxe_frame(struct hca_qp *qp, u8 opcode, u32 psn, u32 len);
struct wire_packet *rxe_frame_to(struct hca_qp *qp, const struct hca_av *av, u32 dqpn, u8 opcode, u32 psn, u32 len);
void rxe_payload(struct wire_packet *p, struct wire_buf *buf, u32 off, u32 len);
void rxe_payload_zcopy(struct wire_packet *p, const u8 *data, u32 len);
bool rxe_send(struct rxe *rxe, u8 port, struct wire_packet *p); /* false: the port is blocked now */
bool rxe_blocked(const struct rxe *rxe, u8 port);

/* payload.c */
/* Bytes to write, and the buffer that contains them; NULL: zero-copy payload, which is written at once. */
struct rxe_bytes {
	const u8 *data;
	u32 len;
	struct wire_buf *buf;
};
static inline struct rxe_bytes rxe_bytes_of(const struct wire_packet *p)
{
	return (struct rxe_bytes){ p->data, p->len, p->flags & WIRE_PKT_ZCOPY ? NULL : p->buf };
}
static inline struct rxe_bytes rxe_bytes_in(struct wire_buf *buf)
{
	return (struct rxe_bytes){ buf->data, buf->size, buf };
}
/*
 * Add a write to the batch: to the receive request from byte @off on (HCA_KEY_BOUNDS: it is too short); by an R_Key; to
 * the SGEs of a READ or atomic from byte @off on. Returns 0 or an hca_key_error. The batch takes a reference of the
 * buffer in any case.
 */
int rxe_recv_write(struct rxe_qp *rq, u32 off, struct rxe_bytes from);
int rxe_remote_write(struct rxe_qp *rq, u32 rkey, u64 va, struct rxe_bytes from);
int rxe_response_write(struct rxe_qp *rq, const struct rxe_wqe *w, u32 off, struct rxe_bytes from);
void rxe_writes_run(struct rxe *rxe); /* the batch is empty afterwards, and its buffers are released */
/*
 * Adds a read of a request's message to the batch of reads, which sets w->read_failed when it runs. 0, or an
 * hca_key_error.
 */
int rxe_wqe_read(struct rxe_qp *rq, struct rxe_wqe *w, u32 off, u32 len, void *local);
/* Reads memory by an R_Key at once: 0, an hca_key_error, or -EFAULT (the key is valid, the memory is not). */
int rxe_resource_load(struct rxe_qp *rq, struct rxe_resource *r, u64 va, u32 len, void *local);
int rxe_remote_check(struct rxe_qp *rq, u32 rkey, u64 va, u32 len, u32 access); /* 0, or an hca_key_error */
/*
 * Zero-copy: a pointer to those bytes, if they are mapped contiguously and the port of the queue pair supports
 * zero-copy payload, to be sent (@access without writing) or received; else NULL. @access as for hca_key_local() and
 * hca_key_remote().
 */
u8 *rxe_sges_direct(struct rxe_qp *rq, const struct hca_sge *sge, u16 n, u32 off, u32 len, u32 access);
u8 *rxe_remote_direct(struct rxe_qp *rq, u32 rkey, u64 va, u32 len, u32 access);
/*
 * Runs the batch of reads, which all belong to @rq. True: they are pending as move *due; bytes and failures are valid
 * when hca_qp_moved() returns true for that move.
 */
bool rxe_reads_run(struct rxe_qp *rq, u64 *due);
bool rxe_writes_done(struct rxe_qp *rq); /* all writes of the queue pair are in memory; the batch must have been run */
void rxe_chunk_put(struct rxe_qp *rq, struct wire_buf *chunk); /* also while it is being filled */
/* hca_atomic() for the resource's response; a failure found later belongs to the request with @psn. */
int rxe_atomic(struct rxe_qp *rq, const struct hca_span *span, bool swap, u64 compare_add, u64 swap_value, u64 *old,
	       u32 psn);
static inline bool rxe_pending(const struct rxe_qp *rq, u64 due)
{
	return unlikely(due) && !hca_qp_moved(rq->qp, due);
}
/* Are writes pending that a commit has to wait for? Unlike rxe_writes_done(), valid while the batch is not empty. */
static inline bool rxe_writes_late(const struct rxe_qp *rq)
{
	return rxe_pending(rq, rq->write_due);
}

/* commit.c */
void rxe_dirty(struct rxe_qp *rq); /* a commit is due */
void rxe_commit(struct rxe *rxe);
void rxe_stall(struct rxe_qp *rq); /* kicked when moves of a client are done */
void rxe_moved(struct hca *hca);   /* of struct hca_transport: retries commits, and kicks stalled queue pairs */

/* cwnd.c */
void rxe_cwnd_reset(struct rxe_qp *rq);
u32 rxe_cwnd_size(const struct rxe_qp *rq);    /* packets that may be unacknowledged */
bool rxe_cwnd_ackreq(const struct rxe_qp *rq); /* for the packet at the cursor */
void rxe_cwnd_sent(struct rxe_qp *rq, u32 psn);
void rxe_cwnd_timer_begin(struct rxe_qp *rq); /* restarts the local ACK timeout (9.7.6.1.3) */
void rxe_cwnd_acked(struct rxe_qp *rq, u32 una, u32 n);
void rxe_cwnd_lost(struct rxe_qp *rq);
/* Has an earlier packet of the flight reported the loss that the response with @psn reports? Records @psn. */
bool rxe_cwnd_loss_known(struct rxe_qp *rq, u32 psn);
u64 rxe_cwnd_timeout(const struct rxe_qp *rq);
/* The full local ACK timeout has expired: a retry now is counted. */
bool rxe_cwnd_timeout_counts(const struct rxe_qp *rq);
bool rxe_cwnd_timeout_early(struct rxe_qp *rq); /* the expired time-out was an early one: not counted as a retry */
bool rxe_cwnd_timeout_late(struct rxe_qp *rq, u64 late_ns); /* the early time-out ran late, and begins once more */

/* The requester: wqe.c, requester.c, retry.c, response.c, read.c */
void rxe_req_kick(struct rxe_qp *rq);
void rxe_req_unblock(struct rxe_qp *rq); /* its port has changed: the old one may have no credits */
bool rxe_req_run(struct rxe_qp *rq);     /* true: more to do */
/* Completes the oldest requests as long as they are acknowledged without an error. */
void rxe_req_complete_acked(struct rxe_qp *rq);
void rxe_req_complete(struct rxe_qp *rq);
/*
 * Zero-copy receive of READ responses: sets *at to the memory of the response with @psn if that is the expected one.
 * Returns how many packets of @len bytes fit there, without the last one of the message.
 */
u32 rxe_req_zcopy(struct rxe_qp *rq, u32 psn, u32 n, u32 len, u8 **at);
void rxe_req_response(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op);
void rxe_req_reset(struct rxe_qp *rq);
void rxe_req_flush(struct rxe_qp *rq);
void rxe_req_timer(struct loop_timer *t, struct now now);
void rxe_req_fail(struct rxe_qp *rq, u8 status); /* see request.h */
bool rxe_req_loading(struct rxe_qp *rq);         /* payload of its requests is still being fetched */

/* path.c */
bool rxe_destination_valid(const struct wire_port *port, const struct wire_packet *p); /* QPN, DLID and DGID agree */
void rxe_migrate(struct rxe_qp *rq);                                                   /* to the alternate path */
/*
 * Did the packet arrive by a path of this QP, with its P_Key? Arms the alternate path or migrates to it if the packet
 * demands that.
 */
bool rxe_path_accepts(struct rxe_qp *rq, struct wire_packet *p, u8 port);
/* Did it arrive by the primary path? No side effects. */
bool rxe_path_is(const struct rxe_qp *rq, const struct wire_packet *p, u8 port);

/* key_check.c: rxe_*_accepts() report a mismatch as a violation. @index: of the port's P_Key table. */
bool rxe_pkey_matches(const struct hca_qp *qp, const struct wire_packet *p, u8 port, u16 index);
bool rxe_pkey_accepts(const struct hca_qp *qp, struct wire_packet *p, u8 port, u16 index);
bool rxe_qkey_matches(const struct hca_qp *qp, struct wire_packet *p);
bool rxe_qkey_accepts(const struct hca_qp *qp, struct wire_packet *p, u8 port);

/* ooo.c: the responder's out-of-order receive buffer */
void rxe_ooo_insert(struct rxe_qp *rq, const struct wire_packet *p, u32 psn); /* a copy of @p */
struct wire_packet *rxe_ooo_next(struct rxe_qp *rq);     /* removes the packet with the expected PSN; NULL: missing */
void rxe_ooo_discard(struct rxe_qp *rq, u32 psn, u32 n); /* drops packets psn..psn+n */
void rxe_ooo_flush(struct rxe_qp *rq);

/* zcopy.c: of struct hca_transport */
u32 rxe_zcopy_receive(struct hca *hca, u8 port, const struct wire_packet *head, u32 n, u8 **at);

/* pace.c */
u32 rxe_pace_link(const struct rxe_qp *rq); /* Mb/s of the port */
bool rxe_pace_wait(struct rxe_qp *rq);      /* true: too early, the pace timer kicks the queue pair */
/* @bytes were sent to a destination with that static rate (0: any). */
void rxe_pace_sent(struct rxe_qp *rq, u8 static_rate, u32 bytes);

/* congestion.c */
void rxe_cc_set_ect(const struct rxe_qp *rq, struct wire_packet *p); /* sets ECN to ECT: switches may mark the packet */
void rxe_cc_received(struct rxe_qp *rq, struct wire_packet *p);      /* sends a CNP if @p is marked CE */
void rxe_cc_notified(struct rxe_qp *rq);                             /* a CNP arrived */
u64 rxe_cc_rate(struct rxe_qp *rq, u32 bytes);                       /* kb/s after @bytes were sent; 0: not limited */
void rxe_cc_reset(struct rxe_qp *rq);

/* The responder: responder.c, resource.c */
void rxe_resp_request(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op);
u32 rxe_resp_zcopy(struct rxe_qp *rq, u32 psn, u32 n, u32 len, u8 **at); /* as rxe_req_zcopy(), of an RDMA WRITE */
bool rxe_resp_run(struct rxe_qp *rq);      /* sends READ and atomic responses; true: more to do */
void rxe_resp_complete(struct rxe_qp *rq); /* completions, then the ACK or NAK; the batch of writes must have run */
void rxe_resp_commit(struct rxe_qp *rq);   /* the same, and the QP goes to ERR if it has failed */
void rxe_resp_reset(struct rxe_qp *rq);
void rxe_resp_srq_destroyed(struct hca_qp *qp, u32 srqn); /* of struct hca_transport */

/* ud.c */
void rxe_ud_receive(struct rxe *rxe, u8 port, struct wire_packet *p, const struct wire_opcode *op);
bool rxe_ud_run(struct rxe_qp *rq);
/* Multicast loopback: delivers a sent datagram to the group's other members on the same port. */
void rxe_ud_loop_back(struct rxe_qp *rq, struct wire_packet *p, const struct wire_opcode *op);
/* receive side, shared by responder.c and ud.c */
int rxe_recv_get(struct rxe_qp *rq); /* 1, 0 none, -EINVAL completed in error already */
void rxe_recv_complete(struct rxe_qp *rq, struct hca_cqe *cqe);

#endif

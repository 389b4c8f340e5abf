/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* iWARP transport (RFC 5040, 5041, 5044): declarations shared by its files, by the file that implements each part. */
#ifndef MUSLIN_SIW_INTERNAL_H
#define MUSLIN_SIW_INTERNAL_H

#include "emu/fault/fault.h"
#include "emu/hca/sq.h"
#include "emu/port/netdev.h"
#include "siw/iwarp.h"
#include "siw/siw.h"

#define SIW_COMPS   128    /* receive completions that wait for the batch of writes */
#define SIW_READS   128    /* pending inbound READ requests: at most the IRD */
#define SIW_SEGMENT 32752u /* payload of a sent FPDU; more if TCP has long segments: siw_socket_segment() */
#define SIW_FPDU    65544u /* the longest FPDU that a peer may send */
/* The longest FPDU sent, with its markers. */
#define SIW_SEGMENT_MAX 65408u /* with all headers, pad and CRC a packet of 64 KiB */
#define SIW_FPDU_OUT    (SIW_SEGMENT_MAX + sizeof(struct iwarp_read) + 8 + SIW_SEGMENT_MAX / 100)
#define SIW_OUT         (640u << 10)
#define SIW_IN          (192u << 10)
#define SIW_DIRECT      8192u /* shorter payload is copied, longer payload is sent by zero-copy */
#define SIW_TRAIN       16    /* FPDUs with zero-copy payload in a call */
#define SIW_PIECES      128   /* iovecs of program memory in a call */
#define SIW_ROUNDS      8     /* of sending or receiving per turn of a stream */

#define SIW_BACKLOG         128 /* of TCP */
#define SIW_HALF_CLOSED_MAX 256 /* half-closed streams that wait for the peer to close */

struct siw_wqe {
	struct hca_wqe wr;
	u64 end;    /* SENT: position in the stream after its last byte */
	u32 placed; /* bytes of a READ */
};

/* An inbound RDMA READ request (RFC 5040, 5.2). */
struct siw_read {
	u32 sink_stag, source_stag, length;
	u64 sink_to, source_to;
};

/*
 * A position in the stream of built FPDUs: those after it that TCP has not accepted are rolled back, and built again.
 */
struct siw_pos {
	u32 wq_next, wq_done; /* position of the next request, and bytes of it that are built */
	u32 rd_tail, rd_done; /* the next READ to respond to, and bytes of the response that are built */
	u32 reads_out;        /* outstanding outbound READs */
	u32 msn[DDP_QUEUES];
	u32 fpdus;
	bool request; /* a request is built next, also if responses are pending */
	u64 built;    /* bytes of the stream */
};

/* An FPDU with zero-copy payload. */
struct siw_fpdu {
	struct siw_pos before, after;
	struct siw_wqe *wqe;  /* NULL: a READ response */
	u32 start, end, head; /* offsets: start and end in the train, and the headers in the buffer */
};

/* The iovecs of one system call: parts of the buffer, and program memory between them. */
struct siw_train {
	u32 bytes, nfpdus, niov;
	u32 tail;  /* offset in the buffer of bytes that are not in the iovecs yet */
	bool full; /* the next FPDU starts another train */
	struct siw_fpdu fpdu[SIW_TRAIN];
	struct iovec iov[SIW_PIECES];
};

struct siw {
	struct hca *hca;
	struct loop *loop;
	struct hca_batch *rd, *wr;
	u64 counter[SIW_CTR_NUM];
	struct siw_options options;
	struct list conns, listeners, half_closed;
	struct list stalled; /* queue pairs that wait for moves to or from client memory (hca_ctx_moved()) */
	struct loop_task moved_task;
	u32 nhalf_closed;
	u32 direct_min; /* SIW_DIRECT */
	siw_capture_fn *capture;
	void *capture_ctx;
	struct siw_uring_queue *uring; /* NULL: one system call per stream */
	struct fault_set faults;
	struct list paused;   /* streams that a fault has paused */
	struct list streams;  /* all of them */
	bool unplugged, down; /* by siw_set_up(); no stream sends or receives */
	u32 pulled;           /* number of faults that keep the link down */
};

/* TCP sequence numbers of a connection in captures. */
struct siw_capture_seq {
	u32 out, in;
};

/* Length and headers of a DDP segment, as a Terminate returns them. */
struct siw_segment {
	u8 hdr[sizeof(struct iwarp_read)];
	u8 len; /* 0: none */
};

/* The FPDU that is being received. */
struct siw_rx_fpdu {
	struct siw_segment segment;
	bool partial; /* its headers are valid, a part of its payload has not arrived */
	u8 opcode, ddp;
	u32 inv_stag;        /* SEND with Invalidate */
	struct hca_sge sink; /* WRITE: STag, TO */
	u32 payload;         /* bytes */
	u32 buffered;        /* of these in the buffer */
	u32 placed;          /* of these in program memory */
	u32 trailer;         /* pad and CRC */
};

enum siw_write_kind {
	SIW_WRITE_REMOTE, /* RDMA WRITE */
	SIW_WRITE_RECV,   /* SEND */
	SIW_WRITE_READ    /* RDMA READ response */
};

/* The request that a write to memory belongs to: a failure may be reported after the FPDU was released. */
struct siw_write {
	u8 kind;
	u8 ncomps; /* receive completions that were queued before it */
	u16 slot;  /* of a READ, in wq */
};

/* truncate: what follows the part of an FPDU that is the last of the stream. */
enum siw_cut {
	SIW_CUT_NONE,
	SIW_CUT_RST,
	SIW_CUT_FIN,
	SIW_CUT_DONE, /* the FIN has been sent */
};

struct siw_qp {
	struct hca_qp *qp;
	struct siw *siw;
	struct loop_fd fd; /* of the TCP stream; .fd < 0: none */
	struct loop_task task;
	struct list link;                    /* in siw.streams */
	struct list want_receive, want_send; /* on the lists of siw->uring */
	struct list stalled;                 /* on siw->stalled */
	u64 load_due; /* the move that fetches payload into the buffer from load_from on; 0: none pending */
	u32 load_from;
	u64 write_due;  /* the move of the last received payload, before more is received; 0: none pending */
	bool inv_recvd; /* a SEND with Invalidate was received: its completion waits for all moves that began before */
	bool local_run; /* local operations were executed since local_due was set */
	u64 local_due;  /* the last move that began before a local operation, which completes afterwards; 0: none */
	bool close_due; /* the stream is closed; completions, flush and the owner's callback wait for both */
	int close_err, close_event;
	struct mpa_terms terms;
	siw_closed_fn *closed;
	void *closed_ctx;
	void (*started)(void *ctx); /* responder: the initiator's RTR message was received */
	bool wait_first_fpdu;       /* responder: it sends no request before that (RFC 5044, 7.1.2; RFC 6581, 9.2) */
	bool rtr_out;               /* initiator: the zero-length READ of its RTR message is outstanding */
	bool rtr_wait;              /* initiator: the RTR message is delayed */
	u8 rtr_sent;
	struct loop_timer rtr;
	bool epollout;
	bool read_failed; /* payload to be sent could not be read */
	bool one_fpdu;    /* after EFAULT: a train has one FPDU, so that the failed one is identified */
	struct hca_iw_addr local, remote;
	struct siw_capture_seq seq;
	struct siw_pause {
		const struct fault *fault; /* NULL: none; else the stream receives nothing */
		bool send;                 /* and sends nothing */
		bool passed;               /* the next FPDU has been delayed already */
		struct list link;          /* in siw.paused */
		struct loop_timer timer;
	} pause;    /* by a fault */
	bool reset; /* a fault closes the stream by a TCP reset */
	u8 cut;     /* enum siw_cut: no FPDU is built any more */

	/* send */
	struct hca_sq wq;       /* of struct siw_wqe */
	struct siw_read *reads; /* SIW_READS */
	u32 rd_head, segment;
	struct siw_pos pos;
	u8 *out;
	u32 out_at, out_len;
	u64 sent; /* bytes of the stream */

	/* receive */
	u8 *in;
	u32 in_len;
	u64 received; /* bytes of the stream before those in the buffer */
	struct siw_rx_fpdu fpdu;
	bool bulk;  /* long payload follows: only headers are received into the buffer */
	u32 direct; /* bytes of payload that the next call receives by zero-copy */
	u32 msn_in[DDP_QUEUES];
	bool recv_pulled;
	struct hca_recv_wr recv;
	u32 recv_off;
	struct hca_cqe *comps; /* SIW_COMPS */
	u32 ncomps;
	bool write_failed; /* received payload could not be written; @failed is the first such write */
	struct siw_write failed;
	bool failed_incomplete; /* the receive that @failed belongs to was not completed */
};

/* core.c */
void siw_qp_close(struct siw_qp *sq, int err, int event);
/* Moves to or from client memory are pending: the queue pair resumes when they are done. */
void siw_stall(struct siw_qp *sq);
void siw_watch(struct siw_qp *sq); /* sets the epoll events of the stream */
static inline bool siw_pending(const struct siw_qp *sq, u64 due)
{
	return unlikely(due) && !hca_ctx_moved(sq->qp->ctx, due);
}
/* Do send completions wait for moves? */
static inline bool siw_send_waits(const struct siw_qp *sq)
{
	return sq->write_due || siw_pending(sq, sq->local_due);
}
void siw_qp_disconnect(struct siw_qp *sq); /* orderly close, as by SQD */
/* Has it no stream, and also none whose end waits for moves? */
static inline bool siw_qp_may_attach(const struct siw_qp *sq)
{
	return sq->qp->state >= HCA_QPS_INIT && sq->qp->state <= HCA_QPS_RTS && sq->fd.fd < 0 && !sq->close_due;
}
void siw_kick(struct siw_qp *sq);
static inline void siw_count(struct siw_qp *sq, enum siw_counter c)
{
	sq->siw->counter[c]++;
}

/*
 * sge.c: hca_mem_read() and hca_mem_write() in a batch. A failure, also a later one, sets read_failed, or sets
 * write_failed, and failed to @w.
 */
int siw_mem_read(struct siw_qp *sq, const struct hca_mem *m, u32 off, u32 len, void *local);
int siw_mem_write(struct siw_qp *sq, const struct hca_mem *m, u32 off, u32 len, const void *local,
		  const struct siw_write *w);

/*
 * siw_fault.c: applies armed faults to a received FPDU of @len bytes with @ulpdu. 1: process it, 0: not yet, -1: the
 * stream is closed.
 */
int siw_fault_fpdu(struct siw_qp *sq, u8 *p, u32 len, u32 ulpdu);
/*
 * Applies armed faults to an FPDU of @len bytes that is complete; returns how many of them are sent. Less: sq->cut is
 * set.
 */
u32 siw_fault_sent(struct siw_qp *sq, u32 len);
void siw_fault_forget(struct siw_qp *sq);       /* the stream is no longer paused, or is closed */
bool siw_fault_rejects(struct siw *siw);        /* true: reject the received MPA request */
bool siw_fault_corrupts_frame(struct siw *siw); /* true: corrupt the received MPA frame */

/* link.c */
void siw_link_update(struct siw *siw); /* call after a change of unplugged or pulled */
void siw_link_kill(struct siw *siw);   /* resets the connections of the host, as a reboot does */
void siw_stream_resume(struct siw_qp *sq);
/* While the link is down, descriptors are not watched; siw_link_update() adds them when it is up. */
static inline int siw_fd_add(struct siw *siw, struct loop_fd *fd, u32 events)
{
	return siw->down ? 0 : loop_fd_add(siw->loop, fd, events);
}

/* conn.c */
extern const struct hca_iw_ops siw_conn_ops;
/* Descriptors of listeners and of connections that are being established. */
void siw_conns_watch(struct siw *siw, bool on);
void siw_conns_reset(struct siw *siw); /* connections that are being established */
void siw_conns_destroy(struct siw *siw);

/* half_close.c: takes ownership of @fd. */
void siw_half_close(struct siw *siw, int fd);
void siw_half_close_destroy(struct siw *siw);

/* socket.c: a descriptor, or -errno */
int siw_socket_listen(const struct hca_iw_addr *addr);
int siw_socket_connect(struct hca_iw_addr *src, const struct hca_iw_addr *dst); /* completes @src */
int siw_socket_accept(int listener);
void siw_socket_names(int fd, struct hca_iw_addr *local, struct hca_iw_addr *remote); /* @remote may be NULL */
void siw_socket_reset(int fd);                                                        /* closes it by a TCP reset */
/*
 * Sets the stream's socket options. Returns the payload of an FPDU that fills a long segment (MULPDU of RFC 5044); else
 * SIW_SEGMENT.
 */
u32 siw_socket_segment(int fd);
ssize_t siw_socket_send(int fd, struct iovec *iov, u32 n); /* bytes that TCP has accepted, or -errno */

/* capture.c */
void siw_capture_frame(struct siw *siw, const struct hca_iw_addr *from, const struct hca_iw_addr *to,
		       struct siw_capture_seq *seq, const u8 *p, u32 len, bool out);
static inline void siw_capture(struct siw *siw, const struct hca_iw_addr *from, const struct hca_iw_addr *to,
			       struct siw_capture_seq *seq, const u8 *p, u32 len, bool out)
{
	if (unlikely(siw->capture))
		siw_capture_frame(siw, from, to, seq, p, len, out);
}

/* May payload be sent and received by zero-copy: no CRC, no capture, and no fault that counts FPDUs? */
static inline bool siw_may_split(const struct siw_qp *sq)
{
	return !sq->terms.crc && !sq->siw->capture && fault_set_empty(&sq->siw->faults);
}

/*
 * train.c. siw_train_gather: adds @len bytes of payload to the iovecs; siw_train_add: adds their FPDU, whose headers
 * end at @at in the buffer. siw_train_sent: TCP has accepted @bytes; afterwards the train does not refer to program
 * memory.
 */
void siw_train_begin(struct siw_qp *sq, struct siw_train *t);
int siw_train_gather(struct siw_qp *sq, struct siw_train *t, const struct hca_mem *m, u32 off, u32 len);
struct siw_fpdu *siw_train_add(struct siw_qp *sq, struct siw_train *t, const u8 *at, u32 hdr, int pieces);
void siw_train_end(struct siw_qp *sq, struct siw_train *t);
void siw_train_sent(struct siw_qp *sq, struct siw_train *t, u32 bytes);
void siw_train_rewind(struct siw_qp *sq, const struct siw_pos *pos);

/*
 * fpdu.c. siw_fpdu_start: reserves an FPDU of @hdr bytes of headers and @payload bytes; the caller fills both. Room for
 * its markers is reserved before it until siw_fpdus_seal(). @direct: the payload is not copied to the buffer.
 * siw_fpdu_send and siw_fpdu_tagged return where the payload begins. siw_fpdus_seal: the payload of all FPDUs from
 * @from on is complete: inserts their markers and sets their CRCs. A fault may truncate one.
 */
u8 *siw_fpdu_start(struct siw_qp *sq, u8 ddp, u8 opcode, u32 hdr, u32 payload, bool direct);
u8 *siw_fpdu_send(struct siw_qp *sq, const struct siw_wqe *w, u32 mo, u32 len, bool last, bool direct);
u8 *siw_fpdu_tagged(struct siw_qp *sq, u8 opcode, u32 stag, u64 to, u32 len, bool last, bool direct);
void siw_fpdu_read_request(struct siw_qp *sq, const struct siw_wqe *w);
void siw_fpdus_seal(struct siw_qp *sq, u32 from);

/* send.c */
/*
 * Build the next FPDUs: 1: something to send, 0: nothing, -1: the stream is closed. Then report that TCP has accepted
 * @n bytes, or -errno; true: more to send.
 */
int siw_send_prepare(struct siw_qp *sq, struct siw_train *t);
bool siw_send_done(struct siw_qp *sq, struct siw_train *t, ssize_t n);
void siw_send_rtr(struct siw_qp *sq);    /* builds the negotiated RTR message */
bool siw_send_run(struct siw_qp *sq);    /* true: more to do */
void siw_send_unload(struct siw_qp *sq); /* drops FPDUs whose payload has not been fetched */
void siw_send_flush(struct siw_qp *sq);
void siw_send_reset(struct siw_qp *sq);
void siw_send_complete(struct siw_qp *sq);
struct siw_wqe *siw_send_oldest_read(struct siw_qp *sq);
/* The oldest request that has not been sent or, a READ, responded to; NULL: none. Those before it will complete. */
struct hca_wqe *siw_send_oldest(struct siw_qp *sq);

/*
 * terminate.c. siw_terminate: sends a Terminate if the socket accepts it, and closes the stream. @of: the segment in
 * error; NULL: none is. siw_terminate_read: the source of the oldest READ response cannot be read any more: the
 * Terminate has the headers of the READ request.
 */
void siw_terminate(struct siw_qp *sq, enum iwarp_error err, const struct siw_segment *of, int event);
void siw_terminate_read(struct siw_qp *sq);

/* uring.c */
struct siw_uring_queue *siw_uring_create(struct siw *siw); /* NULL: not permitted */
void siw_uring_destroy(struct siw_uring_queue *r);         /* NULL is ignored */
void siw_uring_queue_op(struct siw_qp *sq, bool send);     /* of an adapter with io_uring */
void siw_uring_remove(struct siw_qp *sq);
/*
 * A local operation is about to invalidate a key, and its completion may be seen before the next call: receives and
 * sends by zero-copy that were prepared for that call are prepared again, with all key checks.
 */
void siw_uring_revoke(void);

/* rtr.c */
void siw_rtr_start(struct siw_qp *sq); /* for an initiator that has received the MPA reply */
void siw_rtr_flush(struct siw_qp *sq); /* builds a delayed RTR message now */
void siw_rtr_stop(struct siw_qp *sq);  /* the peer has sent something, or the stream is closed */

/*
 * receive.c. siw_receive_fpdu: checks an FPDU of @len bytes at @p, at @pos of the stream, and places the
 * sq->fpdu.buffered bytes of its payload that follow its headers. The rest is placed by siw_receive_payload(), or by
 * the kernel at siw_receive_sink(), with sq->fpdu.placed updated; siw_receive_finish() ends the FPDU. False: the stream
 * is closed.
 */
bool siw_receive_fpdu(struct siw_qp *sq, u8 *p, u32 len, u64 pos, u32 ulpdu);
bool siw_receive_payload(struct siw_qp *sq, const u8 *p, u32 len);
bool siw_receive_finish(struct siw_qp *sq);
/* iovecs of memory for the rest of the payload; 0: not mapped, -1: the stream is closed. */
int siw_receive_sink(struct siw_qp *sq, struct iovec *iov, u32 max);
/* The sink failed its key check with @err, an hca_key_error: sends a Terminate. Returns false. */
bool siw_receive_key_error(struct siw_qp *sq, int err);
bool siw_receive_fail(struct siw_qp *sq, enum iwarp_error err);
bool siw_receive_write_failed(struct siw_qp *sq); /* received payload could not be written: closes the stream */
void siw_receive_commit(struct siw_qp *sq);
void siw_receive_flush(struct siw_qp *sq);

/*
 * input.c. siw_input_prepare: iovecs for the next bytes of the stream, and their length @room; 0: do not receive now.
 * siw_input_received: @n bytes were received (0: end of the stream, or -errno). True: there may be more.
 */
int siw_input_prepare(struct siw_qp *sq, struct iovec *iov, u32 max, u32 *room);
bool siw_input_received(struct siw_qp *sq, u32 room, ssize_t n);
void siw_input_bytes(struct siw_qp *sq);
void siw_input_run(struct siw_qp *sq);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engine's own state, by the file that implements each part. */
#ifndef MUSLIN_SIW_INTERNAL_H
#define MUSLIN_SIW_INTERNAL_H

#include <sys/uio.h>

#include "emu/wire/netdev.h"
#include "siw/iwarp.h"
#include "siw/siw.h"

#define SIW_WQES  256 /* send requests pulled and not completed */
#define SIW_COMPS 128 /* receive completions that wait for the batch of writes */
#define SIW_READS 128 /* inbound READ requests that wait: no more than the IRD */
#define SIW_SEGMENT \
	32752u          /* payload of an FPDU that we send; more where TCP's segments are long: siw_socket_segment() */
#define SIW_FPDU 65544u /* the longest FPDU that a peer may send */
/* The longest FPDU that we send, with its markers. */
#define SIW_SEGMENT_MAX 65408u /* with all headers, pad and CRC a packet of 64 KiB */
#define SIW_FPDU_OUT    (SIW_SEGMENT_MAX + sizeof(struct iwarp_read) + 8 + SIW_SEGMENT_MAX / 100)
#define SIW_OUT         (640u << 10)
#define SIW_IN          (192u << 10)
#define SIW_DIRECT      8192u /* payload that is worth not to be copied once more */
#define SIW_TRAIN       16    /* FPDUs in a call that have such payload */
#define SIW_PIECES      128   /* of memory in a call */
#define SIW_ROUNDS      8     /* of sending or receiving before others have their turn */

#define SIW_BACKLOG   128 /* of TCP */
#define SIW_LINGERING 256 /* streams that wait for the peer's end */

enum siw_wqe_state {
	SIW_POSTED,
	SIW_SENT, /* all its bytes are built, up to @end of the stream */
	SIW_DONE
};

struct siw_wqe {
	u64 token, remote_addr, end;
	u8 opcode, flags, state, status;
	u16 num_sge;
	u32 imm, rkey, length, placed; /* placed: bytes of a READ */
	struct hca_send_wr *held;      /* inline data and local operations; owned */
	struct hca_sge sge[HCA_MAX_SGE];
};

/* A READ that the peer has asked for. */
struct siw_read {
	u32 sink_stag, source_stag, length;
	u64 sink_to, source_to;
};

/* How far the stream is built; what TCP has not taken may be built once more from there. */
struct siw_pos {
	u32 wq_next, wq_done; /* the next request, and bytes of it that are built */
	u32 rd_tail, rd_done; /* the next READ to be answered */
	u32 reads_out;
	u32 msn[DDP_QUEUES];
	u32 fpdus;
	bool request; /* is next, where there are responses, too */
	u64 built;    /* bytes of the stream */
};

/* An FPDU whose payload TCP takes from where it is. */
struct siw_fpdu {
	struct siw_pos before, after;
	struct siw_wqe *wqe;  /* NULL: a response */
	u32 start, end, head; /* bytes of the train; where it stands in the buffer */
};

/* What goes to TCP in one call: stretches of the buffer, and programs' memory between them. */
struct siw_train {
	u32 bytes, nfpdus, niov;
	u32 tail; /* from here on the buffer is not in the list yet */
	struct siw_fpdu fpdu[SIW_TRAIN];
	struct iovec iov[SIW_PIECES];
};

/* Bytes of memory by their keys: the list's, or what one key of @remote's gives. */
struct siw_mem {
	const struct hca_sge *sge;
	u16 n;
	bool remote;
	u32 access;
};

struct siw {
	struct hca *hca;
	struct loop *loop;
	struct hca_batch *rd, *wr;
	u64 counter[SIW_CTR_NUM];
	struct siw_options options;
	struct list conns, listeners, lingering;
	u32 nlingering;
	u32 direct_min; /* SIW_DIRECT */
	siw_tap_fn *tap;
	void *tap_ctx;
	struct siw_ring *ring; /* NULL: a call for each stream */
};

/* What a capture has seen of a connection, in bytes. */
struct siw_tap_seq {
	u32 out, in;
};

/* The FPDU that is being placed. */
struct siw_open {
	bool partly; /* more of it is to come */
	u8 opcode, ddp;
	u32 inv_stag;        /* of SEND with invalidate */
	struct hca_sge sink; /* of WRITE */
	u32 payload, here;   /* bytes; how many of them are in the buffer */
	u32 placed, trailer; /* of the payload; pad and CRC */
};

struct siw_qp {
	struct hca_qp *qp;
	struct siw *siw;
	struct loop_fd fd; /* .fd < 0: no stream */
	struct loop_task task;
	struct list want_receive, want_send; /* the ring's */
	struct mpa_terms terms;
	siw_closed_fn *closed;
	void *closed_ctx;
	void (*started)(void *ctx); /* a responder's: the peer's first FPDU is there */
	bool wait_start;            /* which it waits for before it sends requests (RFC 6581, 7) */
	bool rtr_out;               /* an initiator's: its zero-length READ is not answered yet */
	bool hold;                  /* an initiator's: its first message waits */
	u8 rtr_said;
	struct loop_timer rtr;
	bool want_out, dma_failed;
	bool careful; /* memory was not there: a train has one FPDU, so that it is known whose */
	struct hca_iw_addr local, remote;
	struct siw_tap_seq seq;

	/* send */
	struct siw_wqe *wqes;
	u32 wq_head, wq_tail;   /* pulled, oldest not completed */
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
	struct siw_open open;
	bool bulk;  /* long payload comes: the buffer takes headers only */
	u32 direct; /* bytes of payload that the next call takes to memory */
	u32 msn_in[DDP_QUEUES];
	bool recv_held;
	struct hca_recv_wr recv;
	u32 recv_off;
	struct hca_cqe *comps; /* SIW_COMPS */
	u32 ncomps;
};

/* core.c */
void siw_qp_close(struct siw_qp *sq, int err, int event);
void siw_qp_end(struct siw_qp *sq); /* in order */
void siw_kick(struct siw_qp *sq);
void siw_dma_failed(void *arg);
static inline void siw_count(struct siw_qp *sq, enum siw_counter c)
{
	sq->siw->counter[c]++;
}

/*
 * memory.c: @len bytes at @off of the memory, in a batch from which they are gone after its run: 0, or an hca_key_error;
 * HCA_KEY_BOUNDS also where the list is too short. siw_mem_direct: pointers to them, which are good until the next return to the
 * loop; 0: there are none, or more than @max.
 */
int siw_mem_check(struct siw_qp *sq, const struct siw_mem *m, u32 off, u32 len);
int siw_mem_read(struct siw_qp *sq, const struct siw_mem *m, u32 off, u32 len, void *local);
int siw_mem_write(struct siw_qp *sq, const struct siw_mem *m, u32 off, u32 len, const void *local);
int siw_mem_direct(struct siw_qp *sq, const struct siw_mem *m, u32 off, u32 len, struct iovec *iov, u32 max);

/* conn.c */
extern const struct hca_iw_ops siw_conn_ops;
void siw_conns_end(struct siw *siw);

/* linger.c: @fd is its from now on. */
void siw_linger(struct siw *siw, int fd);
void siw_linger_end(struct siw *siw);

/* socket.c: a descriptor, or -errno */
int siw_socket_listen(const struct hca_iw_addr *addr);
int siw_socket_connect(struct hca_iw_addr *src, const struct hca_iw_addr *dst); /* @src is completed */
int siw_socket_accept(int listener);
void siw_socket_names(int fd, struct hca_iw_addr *local, struct hca_iw_addr *remote); /* @remote may be NULL */
void siw_socket_reset(int fd);                                                        /* closes it by a TCP reset */
/* Readies TCP for the stream. Payload of an FPDU that fills a segment, where these are long (RFC 5044, 4.1: MULPDU); else SIW_SEGMENT. */
u32 siw_socket_segment(int fd);

/* tap.c */
void siw_tap_frame(struct siw *siw, const struct hca_iw_addr *from, const struct hca_iw_addr *to,
		   struct siw_tap_seq *seq, const u8 *p, u32 len, bool out);
static inline void siw_tap(struct siw *siw, const struct hca_iw_addr *from, const struct hca_iw_addr *to,
			   struct siw_tap_seq *seq, const u8 *p, u32 len, bool out)
{
	if (unlikely(siw->tap))
		siw_tap_frame(siw, from, to, seq, p, len, out);
}

/* Nobody looks at the bytes of an FPDU as a whole, and it has no checksum. */
static inline bool siw_may_split(const struct siw_qp *sq)
{
	return !sq->terms.crc && !sq->siw->tap;
}

/*
 * train.c: payload of @len bytes in memory, behind the header which ends at @at of the buffer once siw_train_reach() has given its
 * pieces; siw_train_taken: TCP has got that many bytes, and none of the rest refers to programs' memory any more.
 */
void siw_train_begin(struct siw_qp *sq, struct siw_train *t);
int siw_train_reach(struct siw_qp *sq, struct siw_train *t, const struct siw_mem *m, u32 off, u32 len);
struct siw_fpdu *siw_train_add(struct siw_qp *sq, struct siw_train *t, const u8 *at, u32 hdr, int pieces);
void siw_train_end(struct siw_qp *sq, struct siw_train *t);
void siw_train_taken(struct siw_qp *sq, struct siw_train *t, u32 bytes);
void siw_train_rewind(struct siw_qp *sq, const struct siw_pos *pos);

/* send.c */
/* What the stream has to say now: 1: something, 0: nothing, -1: it is gone. Then what TCP has taken of it, or -errno; true: more. */
int siw_send_prepare(struct siw_qp *sq, struct siw_train *t);
bool siw_send_taken(struct siw_qp *sq, struct siw_train *t, ssize_t n);
void siw_send_rtr(struct siw_qp *sq); /* builds the initiator's first message, as agreed */
bool siw_send_run(struct siw_qp *sq); /* true: more to do */
void siw_send_flush(struct siw_qp *sq);
void siw_send_reset(struct siw_qp *sq);
void siw_send_complete(struct siw_qp *sq);
struct siw_wqe *siw_send_oldest_read(struct siw_qp *sq);
/* Tells the peer @err, as far as the socket takes it, and closes. */
void siw_terminate(struct siw_qp *sq, enum iwarp_error err, int event);

/* ring.c */
struct siw_ring *siw_ring_create(struct siw *siw); /* NULL: it is not permitted here */
void siw_ring_destroy(struct siw_ring *r);         /* NULL is harmless */
void siw_ring_want(struct siw_qp *sq, bool send);  /* soon; of an adapter that has a ring */
void siw_ring_forget(struct siw_qp *sq);

/* rtr.c */
void siw_rtr_start(struct siw_qp *sq); /* of an initiator's stream that has just begun */
void siw_rtr_flush(struct siw_qp *sq); /* the first message, where it waits, is built now */
void siw_rtr_stop(struct siw_qp *sq);  /* the peer has spoken, or the stream is over */

/*
 * receive.c: siw_receive_fpdu() judges one of @len bytes at @p, at @pos of the stream, of whose payload @sq->open.here bytes follow its
 * headers; what is there is placed, or all of it is refused. The rest comes by siw_receive_place() after that, or goes where
 * siw_receive_sink() says, with @sq->open.placed told; siw_receive_finish() is for its end. False: the stream is gone.
 */
bool siw_receive_fpdu(struct siw_qp *sq, u8 *p, u32 len, u64 pos, u32 ulpdu);
bool siw_receive_place(struct siw_qp *sq, const u8 *p, u32 len);
bool siw_receive_finish(struct siw_qp *sq);
/* Pieces of memory for the payload that is to come; 0: it cannot be reached, -1: the stream is gone. */
int siw_receive_sink(struct siw_qp *sq, struct iovec *iov, u32 max);
/* False: the memory is not what the FPDU takes it for, by an hca_key_error; the FPDU is wrong. */
bool siw_receive_misplaced(struct siw_qp *sq, int err);
bool siw_receive_fail(struct siw_qp *sq, enum iwarp_error err);
void siw_receive_commit(struct siw_qp *sq);
void siw_receive_flush(struct siw_qp *sq);

/*
 * input.c: siw_input_prepare() says where the next bytes of the stream go, 0: the stream is gone, @room: how many at most; then
 * siw_input_taken() looks at the @n that have come (0: the end, or -errno). True: there may be more.
 */
int siw_input_prepare(struct siw_qp *sq, struct iovec *iov, u32 max, u32 *room);
bool siw_input_taken(struct siw_qp *sq, u32 room, ssize_t n);
void siw_input_bytes(struct siw_qp *sq);
void siw_input_run(struct siw_qp *sq);

#endif

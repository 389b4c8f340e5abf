/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engine's own state, by the file that implements each part. */
#ifndef MUSLIN_SIW_INTERNAL_H
#define MUSLIN_SIW_INTERNAL_H

#include "emu/wire/netdev.h"
#include "siw/iwarp.h"
#include "siw/siw.h"

#define SIW_WQES    256    /* send requests pulled and not completed */
#define SIW_READS   128    /* inbound READ requests that wait: no more than the IRD */
#define SIW_SEGMENT 32752u /* payload of an FPDU that we send */
#define SIW_FPDU    65544u /* the longest FPDU that a peer may send */
/* The longest FPDU that we send, with its markers. */
#define SIW_FPDU_OUT (SIW_SEGMENT + sizeof(struct iwarp_read) + 8 + SIW_SEGMENT / 100)
#define SIW_OUT      (512u << 10)
#define SIW_IN       (192u << 10)
#define SIW_ROUNDS   8 /* of sending or receiving before others have their turn */

#define SIW_BACKLOG   128 /* of TCP */
#define SIW_LINGERING 256 /* streams that wait for the peer's end */

enum siw_wqe_state {
	SIW_POSTED,
	SIW_SENDING,
	SIW_SENT, /* all its bytes are built, up to @end of the stream */
	SIW_DONE
};

struct siw_wqe {
	u64 token, remote_addr, end;
	u8 opcode, flags, state, status;
	u16 num_sge;
	u32 imm, rkey, length, done; /* done: bytes built, or of a READ: placed */
	struct hca_send_wr *held;    /* inline data and local operations; owned */
	struct hca_sge sge[HCA_MAX_SGE];
};

/* A READ that the peer has asked for. */
struct siw_read {
	u32 sink_stag, source_stag, length, done;
	u64 sink_to, source_to;
};

struct siw {
	struct hca *hca;
	struct loop *loop;
	struct hca_batch *rd, *wr;
	u64 counter[SIW_CTR_NUM];
	struct siw_options options;
	struct list conns, listeners, lingering;
	u32 nlingering;
	siw_tap_fn *tap;
	void *tap_ctx;
};

/* What a capture has seen of a connection, in bytes. */
struct siw_tap_seq {
	u32 out, in;
};

struct siw_qp {
	struct hca_qp *qp;
	struct siw *siw;
	struct loop_fd fd; /* .fd < 0: no stream */
	struct loop_task task;
	struct mpa_terms terms;
	siw_closed_fn *closed;
	void *closed_ctx;
	void (*started)(void *ctx); /* a responder's: the peer's first FPDU is there */
	bool wait_start;            /* which it waits for before it sends requests (RFC 6581, 7) */
	bool rtr_out;               /* an initiator's: its zero-length READ is not answered yet */
	bool hold;                  /* an initiator's: its first message waits */
	u8 rtr_said;
	struct loop_timer rtr;
	bool want_out, failing, dma_failed;
	struct hca_iw_addr local, remote;
	struct siw_tap_seq seq;

	/* send */
	struct siw_wqe *wqes;
	u32 wq_head, wq_next, wq_tail; /* pulled, next to build, oldest not completed */
	u32 reads_out;
	u32 msn_out[DDP_QUEUES];
	struct siw_read *reads; /* SIW_READS */
	u32 rd_head, rd_tail;
	u8 *out;
	u32 out_at, out_len;
	u64 built, sent; /* bytes of the stream */

	/* receive */
	u8 *in;
	u32 in_len;
	u64 received; /* bytes of the stream before those in the buffer */
	u32 msn_in[DDP_QUEUES];
	bool recv_held;
	struct hca_recv_wr recv;
	u32 recv_off;
	struct hca_cqe *comps;
	u32 ncomps, comps_cap;
};

/* core.c */
void siw_qp_close(struct siw_qp *sq, int err, int event);
void siw_qp_end(struct siw_qp *sq); /* in order */
void siw_kick(struct siw_qp *sq);
/*
 * Moves @len bytes that a key gives, all its spans, to or from @local by a batch. 0, or an hca_key_error. siw_sges_move: bytes @off..
 * of a list; HCA_KEY_BOUNDS: it is too short.
 */
int siw_move(struct siw_qp *sq, const struct hca_sge *at, bool remote, u32 access, void *local, bool write);
int siw_sges_move(struct siw_qp *sq, const struct hca_sge *sge, u16 n, u32 off, u32 len, u32 access, void *local,
		  bool write);
void siw_dma_failed(void *arg);
static inline void siw_count(struct siw_qp *sq, enum siw_counter c)
{
	sq->siw->counter[c]++;
}

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

/* tap.c */
void siw_tap_frame(struct siw *siw, const struct hca_iw_addr *from, const struct hca_iw_addr *to,
		   struct siw_tap_seq *seq, const u8 *p, u32 len, bool out);
static inline void siw_tap(struct siw *siw, const struct hca_iw_addr *from, const struct hca_iw_addr *to,
			   struct siw_tap_seq *seq, const u8 *p, u32 len, bool out)
{
	if (unlikely(siw->tap))
		siw_tap_frame(siw, from, to, seq, p, len, out);
}

/* send.c */
void siw_send_rtr(struct siw_qp *sq); /* builds the initiator's first message, as agreed */
bool siw_send_run(struct siw_qp *sq); /* true: more to do */
void siw_send_flush(struct siw_qp *sq);
void siw_send_reset(struct siw_qp *sq);
void siw_send_complete(struct siw_qp *sq);
struct siw_wqe *siw_send_oldest_read(struct siw_qp *sq);
/* Tells the peer @err, as far as the socket takes it, and closes. */
void siw_terminate(struct siw_qp *sq, enum iwarp_error err, int event);

/* rtr.c */
void siw_rtr_start(struct siw_qp *sq); /* of an initiator's stream that has just begun */
void siw_rtr_flush(struct siw_qp *sq); /* the first message, where it waits, is built now */
void siw_rtr_stop(struct siw_qp *sq);  /* the peer has spoken, or the stream is over */

/* receive.c */
void siw_receive_run(struct siw_qp *sq);
void siw_receive_bytes(struct siw_qp *sq);
void siw_receive_commit(struct siw_qp *sq);
void siw_receive_flush(struct siw_qp *sq);

#endif

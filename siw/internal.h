/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engine's own state, by the file that implements each part. */
#ifndef MUSLIN_SIW_INTERNAL_H
#define MUSLIN_SIW_INTERNAL_H

#include "siw/iwarp.h"
#include "siw/siw.h"

#define SIW_WQES    256    /* send requests pulled and not completed */
#define SIW_READS   128    /* inbound READ requests that wait: no more than the IRD */
#define SIW_SEGMENT 32752u /* payload of an FPDU that we send */
#define SIW_FPDU    65544u /* the longest FPDU that a peer may send */
#define SIW_OUT     (512u << 10)
#define SIW_IN      (192u << 10)
#define SIW_ROUNDS  8 /* of sending or receiving before others have their turn */

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
};

struct siw_qp {
	struct hca_qp *qp;
	struct siw *siw;
	struct loop_fd fd; /* .fd < 0: no stream */
	struct loop_task task;
	struct mpa_terms terms;
	siw_closed_fn *closed;
	void *closed_ctx;
	bool want_out, failing, dma_failed;

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
	u32 msn_in[DDP_QUEUES];
	bool recv_held;
	struct hca_recv_wr recv;
	u32 recv_off;
	struct hca_cqe *comps;
	u32 ncomps, comps_cap;
};

/* core.c */
void siw_qp_close(struct siw_qp *sq, int err, int event);
void siw_kick(struct siw_qp *sq);
/* Moves bytes @off.. of the list to or from @local by a batch. 0, or an hca_key_error; HCA_KEY_BOUNDS: it is too short. */
int siw_sges_move(struct siw_qp *sq, const struct hca_sge *sge, u16 n, u32 off, u32 len, u32 access, void *local,
		  bool write);
void siw_dma_failed(void *arg);
static inline void siw_count(struct siw_qp *sq, enum siw_counter c)
{
	sq->siw->counter[c]++;
}

/* send.c */
bool siw_send_run(struct siw_qp *sq); /* true: more to do */
void siw_send_flush(struct siw_qp *sq);
void siw_send_reset(struct siw_qp *sq);
void siw_send_complete(struct siw_qp *sq);
struct siw_wqe *siw_send_oldest_read(struct siw_qp *sq);
/* Tells the peer @err, as far as the socket takes it, and closes. */
void siw_terminate(struct siw_qp *sq, enum iwarp_error err, int event);

/* receive.c */
void siw_receive_run(struct siw_qp *sq);
void siw_receive_bytes(struct siw_qp *sq);
void siw_receive_commit(struct siw_qp *sq);
void siw_receive_flush(struct siw_qp *sq);

#endif

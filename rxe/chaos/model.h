/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reference model: requests posted on each queue of each connection, and possible failures. Declarations by file. */
#ifndef MUSLIN_RXE_CHAOS_MODEL_H
#define MUSLIN_RXE_CHAOS_MODEL_H

#include "rxe/chaos/chaos_internal.h"

#define CONNS     8
#define DEPTH     16 /* of send and receive queues */
#define SRQ_DEPTH 32
#define RING      64
#define STREAM    256u
#define MAX_SEND  900 /* bytes of a SEND; a valid receive is that long */
#define MAX_RDMA  5000
#define QKEY      0x1234
#define LATENCY   (200 * NSEC_PER_MSEC) /* of a bystander's request */

enum excuse {
	BAD = 1 << 0,      /* an invalid send request */
	BAD_RECV = 1 << 1, /* an invalid receive request */
	STOPPED = 1 << 2,  /* a queue pair was moved to the error state */
	KILLED = 1 << 3,
	OVERRUN = 1 << 4,
	LOST = 1 << 5,     /* the link was down, or drops too many packets for the retries */
	RACE = 1 << 6,     /* a key became invalid while it was in use */
	UNMAPPED = 1 << 7, /* memory that cannot be accessed */
	FAILED = 1 << 8,   /* an earlier failure with an excuse */
};

/* A posted send request. */
struct msg {
	u32 id, len, imm, errs; /* errs: bitmap of statuses that it may have besides those of the connection */
	u8 opcode;
	bool signaled, must_fail, window;
	u32 window_epoch;
	struct chaos_area local, remote;
	u64 posted, expect; /* expect: the operand before a COMPARE_SWAP */
	u8 word;
};

struct recv {
	struct chaos_area area;
	u32 cap, id;
	bool bad, used;
};

/* A message that the peer has to receive. */
struct sent {
	u32 id, len, imm;
	u8 opcode;
};

enum window_state {
	WINDOW_FREE,
	WINDOW_BINDING,
	WINDOW_BOUND,
	WINDOW_INVALIDATING
};

struct shared {
	struct chaos_prog *prog;
	struct hca_soft_wq *wq;
	struct recv recv[RING];
	u32 head;
	u32 lost; /* at most: a queue pair was reset with a receive pulled */
};

struct end {
	struct conn *conn;
	struct end *peer;
	struct chaos_prog *prog;
	struct shared *srq; /* NULL: its own receive queue */
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq; /* NULL: its program was killed */
	u32 qpn, gen;
	struct msg sq[RING];
	u32 sq_head, sq_tail;
	struct recv rq[RING];
	u32 rq_head, rq_tail;
	struct sent stream[STREAM];
	u32 sent, received;         /* received: of the peer's stream */
	struct msg under_way[RING]; /* UC WRITEs that are complete, and may still arrive */
	u32 nunder_way;
	bool failed, recv_failed, died, overrun;
	bool at_once; /* completions are polled in the callback */
	u32 no_poll;
	u64 recv_at; /* time of the last posted receive or received message */
	struct {
		u32 rkey, epoch;
		enum window_state state;
		bool busy, there;
	} window;
	u64 cas; /* the operand of this end's COMPARE_SWAPs, in the peer's memory */
	bool cas_lost;
};

struct conn {
	enum hca_qp_type type;
	struct end end[2];
	u32 index, excuse, bads;
	struct end *bad_end;
	u8 rnr_retry;
	bool connected, disorder, lossy; /* disorder: packets were delayed or repeated */
};

/* State of the model; zeroed by chaos_model_open(). */
struct chaos_model {
	struct conn conn[CONNS];
	struct shared srq;
	u32 ids;
	struct rng rng;   /* of the operation */
	bool in_callback; /* of a CQ: a queue pair that fails may enter the error state after its completions */
};
extern struct chaos_model chaos_model;

static inline u32 draw(u32 n)
{
	return (u32)((rng_next(&chaos_model.rng) >> 16) % n);
}

static inline bool chance(u32 percent)
{
	return draw(100) < percent;
}

static inline bool takes_recv(u8 opcode)
{
	return opcode == HCA_WR_SEND || opcode == HCA_WR_SEND_WITH_IMM || opcode == HCA_WR_SEND_WITH_INV ||
	       opcode == HCA_WR_RDMA_WRITE_WITH_IMM;
}

static inline bool is_atomic(u8 opcode)
{
	return opcode == HCA_WR_ATOMIC_CMP_AND_SWP || opcode == HCA_WR_ATOMIC_FETCH_AND_ADD;
}

#define TOKEN_RECV BIT_ULL(63)

static inline u64 token(const struct end *e, u32 seq)
{
	return (u64)(e->gen & 0xffffff) << 32 | seq;
}

/* model.c */
u8 chaos_end_state(const struct end *e); /* enum hca_qp_state; RESET: it has no queue pair */
/* Reports a failure of the connection, and ends the run. */
void chaos_end_fail(const struct end *e, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));

/* window.c */
bool chaos_window_bound(const struct end *owner, const struct msg *m);
void chaos_window_renew(struct end *e);
void chaos_window_bind(struct end *e);
void chaos_window_invalidate(struct end *e);
void chaos_window_write(struct end *e);

/* completion.c */
void chaos_msg_area_put(const struct msg *m, struct chaos_area *a, bool exact, const char *what);
void chaos_msg_succeeded(struct end *e, struct msg *m);
void chaos_end_poll(struct end *e);
void chaos_end_ready(void *arg);
void chaos_poll_all(bool forced);
void chaos_end_event(struct chaos_prog *p, const struct hca_event *ev);

/* conn.c */
void chaos_end_check_sends(struct end *e);
void chaos_end_check_flushed(struct end *e);
void chaos_conn_disconnect(struct conn *c, bool destroy);
void chaos_conn_connect(struct conn *c);

/* request.c */
u16 chaos_sges_fill(struct hca_sge *sge, const struct chaos_area *a, u32 len);
struct msg *chaos_msg_new(struct end *e, u8 opcode, u32 len);
bool chaos_send_room(const struct end *e);
void chaos_msg_post(struct end *e, struct msg *m, struct hca_send_wr *wr);
void chaos_msg_address(const struct end *e, struct hca_send_wr *wr);
void chaos_send_one(struct end *e);
bool chaos_recv_room(const struct end *e);
void chaos_recv_one(struct end *e, u32 cap, bool bad);

/* hostile.c */
void chaos_bad_mark(struct conn *c, struct end *e);
void chaos_bad_send(struct end *e);

/* program.c */
void chaos_prog_excuse(const struct chaos_prog *p, u32 excuse);
void chaos_srq_open(struct chaos_prog *p);
void chaos_srq_check(void);
void chaos_prog_restart(struct chaos_prog *p);
void chaos_words_check(const struct chaos_prog *p);

#endif

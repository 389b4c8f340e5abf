/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random verbs of many programs against a model of verbs. Each program has a slot in a file that all of them map; two
 * programs share a connection, and an end reads there the expected data: messages sent, data written to its memory, and
 * the excuses for errors, which a program records before it causes them. Without an excuse every request succeeds.
 */
#ifndef CHAOS_H
#define CHAOS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCS     16
#define CONNS     32
#define HOSTS     16
#define GENS      8    /* generations of a connection with recorded excuses */
#define SLOT      4096 /* bytes of a buffer for sends and READs, and of a part of the peer's target */
#define LOCALS    16
#define RECVS     32
#define RECV_SIZE 1024
#define GRH       40
#define TARGETS   8
#define WORDS     2
#define STREAM    128
#define RING      64
#define DEPTH     32
#define INLINE    64
#define QKEY      0x1234u
#define BOUND     40 /* seconds in which a request completes in any case */

#define LOCAL_BYTES  ((size_t)LOCALS * SLOT)
#define RECV_BYTES   ((size_t)RECVS * (RECV_SIZE + GRH))
#define TARGET_BYTES ((size_t)TARGETS * SLOT)
#define END_BYTES    (LOCAL_BYTES + RECV_BYTES + TARGET_BYTES + 4096)

enum conn_type {
	CONN_RC,
	CONN_UC,
	CONN_UD,
	CONN_CM,    /* RC by rdma_cm */
	CONN_IWARP, /* RC by rdma_cm on iWARP */
};

enum excuse {
	BAD = 1 << 0,      /* an invalid send request */
	BAD_RECV = 1 << 1, /* an invalid receive */
	STOPPED = 1 << 2,  /* an end has moved its queue pair to the error state */
	RACE = 1 << 3,     /* a region was deregistered while it was in use */
	KILLED = 1 << 4,
	LOST = 1 << 5, /* a fault on the path */
};

/* ---- the file: written by the scenario ---- */

#define WITHOUT_BAD 1u /* head.without: no invalid requests */

struct proc_head {
	_Atomic uint32_t host, kills, done, ops;
	_Atomic uint32_t posted, completions, errors, opens;
	char ip[64];
};

struct conn_head {
	uint32_t type, proc[2], reserved;
};

struct head {
	uint32_t procs, conns, ops, without;
	uint64_t seed;
	_Atomic uint32_t sm_epoch, stop; /* epochs are odd while a fault is armed */
	_Atomic uint32_t epoch[HOSTS];
	struct proc_head proc[PROCS];
	struct conn_head conn[CONNS];
};

/* ---- the file: written by the programs ---- */

/* A message that consumes a receive. */
struct sent {
	uint32_t id, len, imm, opcode;
	uint32_t off, version; /* of RDMA WRITE WITH IMMEDIATE: offset in the target */
	bool bad, inv;
};

struct end_shared {
	_Atomic uint32_t made, ready, quiet, drained, checked; /* the last generation in that state */
	/* of generation @made */
	uint32_t incarnation, qpn, psn, rkey, tcp_port;
	uint64_t target;
	uint16_t lid;
	union ibv_gid gid;
	_Atomic uint32_t sent, acked, posted, received;
	struct sent stream[STREAM];
	/* Data that this end has written to the peer's target by requests that have succeeded. */
	uint8_t shadow[TARGET_BYTES];
	uint64_t word[WORDS];
	uint32_t unsure, unsure_words; /* bitmaps: requests on these parts have failed */
	_Atomic uint32_t version[TARGETS];
	/* Memory window that the peer may use. */
	_Atomic uint32_t window, window_serial;
};

struct conn_shared {
	_Atomic uint32_t want, closing, excuse[GENS];
	struct end_shared end[2];
};

/* Invalid keys of a program. */
struct proc_shared {
	_Atomic uint32_t incarnation, revoked, other_pd, no_rights;
	uint64_t addr;
};

struct file {
	struct head head;
	struct proc_shared proc[PROCS];
	struct conn_shared conn[CONNS];
};

extern struct file *file;

/* ---- this program ---- */

struct msg {
	uint32_t id, len, slot, off, word, seq;
	uint32_t errs; /* bitmap of statuses that it may have besides those of excuses */
	uint8_t opcode;
	bool signaled, must_fail, stream, in_target, busy_slot;
	uint64_t expect, after, at;
	uint8_t data[SLOT];
};

enum end_state {
	GONE,
	MADE,
	READY,
	OPEN,
	CLOSING,
	QUIET,
	DRAIN,
};

struct end {
	struct conn_shared *conn;
	struct end_shared *mine, *his;
	uint32_t index, side, peer, gen;
	enum conn_type type;
	enum end_state state;
	uint64_t since; /* time of entry to the state */
	uint8_t *mem, *recvs, *target;
	struct ibv_qp *qp;
	uint32_t qpn; /* until its last completion has been polled, after the QP itself is destroyed */
	struct ibv_cq *scq, *rcq;
	bool own_cq, own_rcq, failed, rq_failed, closing_read, armed[2];
	uint32_t abandoned; /* unsignaled requests, up to sq_head, for whose flush it has not waited */
	uint64_t sqd;       /* time of entry to SQD */
	uint64_t armed_at[2];
	struct ibv_srq *srq;
	struct ibv_mr *mr, *target_mr;
	struct ibv_ah *ah;
	struct ibv_mw *mw;
	uint32_t mw_rkey, mw_stale, inv_serial;
	enum {
		MW_IDLE,
		MW_BINDING,
		MW_BOUND
	} mw_state;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	bool established;
	/* epochs at its creation */
	uint32_t epoch[2], sm_epoch;
	struct msg sq[RING];
	uint32_t sq_head, sq_tail, unsignaled;
	uint32_t local_busy;
	struct {
		bool bad;
	} rq[RING];
	uint32_t rq_head, rq_tail, rq_depth;
	uint32_t stream_at; /* position in the peer's stream */
	uint8_t posted[TARGET_BYTES];
	uint64_t posted_word[WORDS];
	uint64_t blocked;
};

struct prog {
	uint32_t index, incarnation, ends;
	uint64_t rng;
	struct ibv_context *ctx;
	struct ibv_pd *pd, *other_pd;
	struct ibv_cq *cq; /* of ends without a CQ of their own */
	struct ibv_comp_channel *channel;
	struct ibv_mr *other_mr, *no_rights;
	uint8_t *spare; /* memory of invalid keys */
	uint32_t revoked_lkey;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct end *end[CONNS];
	bool finishing;
};

extern struct prog prog;

/* main.c */
void wrong(const struct end *e, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
uint32_t draw(uint32_t n);
bool chance(uint32_t per_mille);
uint64_t now_ms(void);
void count_op(void);
bool without(uint32_t kind);

/* conn.c: generations of a connection. */
void end_init(struct end *e, uint32_t conn, uint32_t side);
bool end_step(struct end *e); /* false: nothing to do */
uint32_t end_excuses(const struct end *e);
void end_excuse(struct end *e, uint32_t excuse); /* call before causing the error */
void end_stop(struct end *e);                    /* starts the next generation; the excuse is recorded */
bool end_is_rc(const struct end *e);

/* traffic.c, requests.c, wrong.c, completions.c */
void traffic_reset(struct end *e);
bool traffic_op(struct end *e);
bool traffic_fill(struct end *e); /* posts receives */
bool traffic_poll_all(void);
void traffic_poll(struct end *e); /* until the CQs that it uses are empty */
void traffic_closing_read(struct end *e);
void traffic_check_target(struct end *e);
void traffic_late(struct end *e);
bool traffic_expects(const struct end *e); /* are completions outstanding? */
void traffic_abandon(struct end *e);       /* of requests after the last signaled one, whose success is unknown */

/* objects.c: objects without a connection, and calls that must fail. */
void objects_op(void);
void objects_close(void);
bool objects_is_qp(const struct ibv_qp *qp);

#endif

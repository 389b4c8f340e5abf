/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* iWARP connection establishment (RFC 5044, 7.1; RFC 6581): connections and listeners. */
#ifndef MUSLIN_SIW_CONN_H
#define MUSLIN_SIW_CONN_H

#include "siw/siw_internal.h"

#define SIW_HALF_OPEN    128 /* of a listener: connections whose MPA request is not complete */
#define SIW_HALF_OF_ONE  32  /* of these from one address */
#define SIW_ACCEPTS      16  /* TCP connections accepted per turn of the loop */
#define SIW_LISTEN_ADDRS 8

enum conn_state {
	CONN_CONNECTING,   /* initiator: TCP handshake */
	CONN_AWAIT_MPAREP, /* initiator: the MPA request was sent */
	CONN_AWAIT_MPAREQ, /* responder: no program knows of the connection yet */
	CONN_RECVD_MPAREQ, /* responder: the program accepts or rejects */
	CONN_RDMA_MODE,    /* full operation (RFC 5044, 7): the queue pair has the stream */
	CONN_CLOSED
};

struct hca_iw_conn {
	struct list link; /* siw.conns */
	struct siw *siw;
	enum conn_state state;
	struct hca_iw_listener *listener; /* AWAIT_MPAREQ: half open */
	struct list half;                 /* listener.half */
	struct loop_fd fd;
	struct loop_timer timer;
	struct loop_task task; /* raises ESTABLISHED */
	bool established_due;  /* the task is queued */
	hca_iw_event_fn *fn;
	void *ctx;
	u64 owner; /* of qpn */
	u32 qpn;
	struct siw_qp *sq;                       /* RDMA_MODE */
	struct hca_iw_addr bound, local, remote; /* bound: local as the program has set it, port 0: any */
	struct siw_capture_seq seq;
	struct mpa_frame req, reply;
	struct mpa_terms terms;
	u32 len;
	u8 buf[MPA_FRAME_MAX]; /* the peer's frame */
	u8 data[MPA_PRIVATE_MAX];
};

struct hca_iw_listener {
	struct list link; /* siw.listeners */
	struct siw *siw;
	hca_iw_event_fn *fn;
	void *ctx;
	struct list half; /* the oldest first */
	u32 n, nhalf;
	struct siw_listen_fd {
		struct loop_fd fd;
		struct hca_iw_listener *listener;
	} at[SIW_LISTEN_ADDRS];
};

/* conn.c; @fd is a TCP socket that is connected or connecting */
/* Initiator: takes ownership of @fd. NULL: out of memory. */
struct hca_iw_conn *siw_conn_active_open(struct siw *siw, int fd, const struct hca_iw_param *p, hca_iw_event_fn *fn,
					 void *ctx);
/* NULL: out of memory, and the caller keeps @fd. */
struct hca_iw_conn *siw_conn_create(struct siw *siw, int fd, enum conn_state state);
/* Ends a connection whose queue pair does not have the stream: by a TCP reset if @reset. Its program gets @err. */
void siw_conn_fail(struct hca_iw_conn *c, int err, bool reset);
void siw_conn_set_timer(struct hca_iw_conn *c, u64 ns);

/* listen.c; the first two are members of struct hca_iw_ops */
int siw_listen(struct hca *hca, const struct hca_iw_addr *addr, u32 n, hca_iw_event_fn *fn, void *ctx,
	       struct hca_iw_listener **listener);
void siw_unlisten(struct hca_iw_listener *l);
void siw_listeners_watch(struct siw *siw, bool on); /* stops accepting, or goes on */
/* Responder: takes ownership of the connected socket @fd. */
void siw_conn_passive_open(struct hca_iw_listener *l, int fd);

#endif

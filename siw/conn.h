/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections that start, and who listens for them. */
#ifndef MUSLIN_SIW_CONN_H
#define MUSLIN_SIW_CONN_H

#include "siw/internal.h"

#define SIW_HALF_OPEN    128 /* of a listener: peers whose request has not come in full */
#define SIW_HALF_OF_ONE  32  /* of these from one address */
#define SIW_ACCEPTS      16  /* before others have their turn */
#define SIW_LISTEN_ADDRS 8

enum conn_state {
	CONN_CONNECTING,    /* TCP */
	CONN_AWAIT_REPLY,   /* initiator */
	CONN_AWAIT_REQUEST, /* responder: nobody knows of it yet */
	CONN_ASKED,         /* responder: accept or reject is to come */
	CONN_STREAM,        /* the queue pair has it */
	CONN_DEAD
};

struct hca_iw_conn {
	struct list link; /* siw.conns */
	struct siw *siw;
	enum conn_state state;
	struct hca_iw_listener *listener; /* AWAIT_REQUEST */
	struct list half;                 /* listener.half */
	struct loop_fd fd;
	struct loop_timer timer;
	struct loop_task task; /* tells of ESTABLISHED */
	hca_iw_event_fn *fn;
	void *ctx;
	u32 qpn;
	struct siw_qp *sq;                       /* STREAM */
	struct hca_iw_addr asked, local, remote; /* asked: local, its port 0 where any does */
	struct siw_tap_seq seq;
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

/* A socket whose other end is a peer that wants something, or that is to be asked; @fd is its from now on. NULL: no memory. */
void siw_conn_take(struct hca_iw_listener *l, int fd);
struct hca_iw_conn *siw_conn_ask(struct siw *siw, int fd, const struct hca_iw_param *p, hca_iw_event_fn *fn, void *ctx);

#endif

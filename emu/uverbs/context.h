/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One opened uverbs file: its shared memory, objects and event queues. */
#ifndef MUSLIN_UVERBS_CONTEXT_H
#define MUSLIN_UVERBS_CONTEXT_H

#include "emu/lib/table.h"
#include "emu/uverbs/server.h"
#include "emu/wqe/wqe.h"

/* A stream of fixed-size events to the application: a socket pair of which the daemon keeps both ends, to count what was read. */
struct uv_events {
	struct list link;
	int ours, theirs; /* -1: none */
	u64 inode;        /* of theirs: the application names a channel by its descriptor */
	u32 users;        /* CQs */
	bool closed;      /* the application has no descriptor left */
};

/* A ring in the shared memory. Sizes are the daemon's own copies: what the memory says is not trusted. */
struct uv_ring {
	struct rxe_queue_buf *buf;
	u64 offset;
	u32 size, mask, elem;
	u32 next;  /* where the daemon pulls (send and receive) or puts (CQ) */
	u32 done;  /* sends and receives: slots given back */
	u32 stale; /* entries pulled from a ring that this one has replaced, still to be given back */
};

struct uverbs;

struct uv_cq {
	struct uverbs *u;
	u64 user_handle;
	u32 handle, cqn, async_events, comp_events;
	struct uv_ring ring;
	struct uv_events *channel; /* NULL: none */
	bool wake, wake_solicited; /* a completion has come since the last flush */
	bool unsent;               /* its event did not fit into the channel: it is tried again */
};

struct uv_qp {
	struct uverbs *u;
	u64 user_handle;
	u32 handle, qpn, async_events;
	struct uv_ring sq, rq;
	u64 *refused; /* while posts may fail: a bit for each slot of the send queue that is not to be sent; NULL: none is */
	u32 judged; /* and up to where posts were accepted or refused */
	u32 max_recv_sge;
	struct wqe_limits limits; /* of the send queue */
};

struct uv_srq {
	struct uverbs *u;
	u64 user_handle;
	u32 handle, srqn, async_events, max_sge;
	struct uv_ring ring;
};

struct uverbs {
	struct uv_file *file;
	struct hca_ctx *ctx;
	int memfd, kick;
	struct uv_shared *shared;
	u8 *base;
	u64 used;     /* bytes of the memfd handed out */
	bool ask;     /* posts may fail: each comes as a command */
	bool revoked; /* the device was unplugged: every command fails */
	struct list free_areas;
	struct uv_events async;
	struct list channels;
	u32 nchannels;
	u32 unsent;  /* CQs whose event did not fit into their channel */
	u32 unwoken; /* completions since the program was woken the last time */
	bool more;   /* much is under way in the send queue that completed last */
	struct table cqs, qps, srqs;
	struct loop_poller poller;
	struct loop_fd kicked;
	struct loop_timer poll_timer;
};

/* rings.c */
int uv_ring_create(struct uverbs *u, struct uv_ring *r, u32 elem, u32 entries);
void uv_ring_destroy(struct uverbs *u, struct uv_ring *r);
struct mminfo uv_ring_info(const struct uv_ring *r);
void uv_areas_free(struct uverbs *u);
/* What has been posted since the last call was accepted or, if not @ok, refused: then it will not be sent. */
void uv_sq_judge(struct uv_qp *qp, bool ok);
/* Tells the shim whether sends may be posted (10.8.3): the ring itself takes them in any state. */
void uv_qp_ready(struct uv_qp *qp, bool ready);
extern const struct hca_wq_ops uv_qp_wq_ops, uv_srq_wq_ops;
extern const struct hca_cq_ops uv_cq_ops;
u32 uv_srq_posted(void *fe);
/* Moves what the application has posted and nobody has pulled to @to, an empty ring of the same elements. */
void uv_ring_move(struct uv_ring *to, const struct uv_ring *from);
/* Tries again to send what did not fit. */
void uv_cq_resend(struct uv_cq *cq);

/* events.c */
int uv_events_open(struct uv_events *e);
void uv_events_close(struct uv_events *e);
void uv_events_end(struct uv_events *e); /* no more come: its reader sees the end behind the last */
bool uv_events_put(struct uv_events *e, const void *event, size_t size);
/* Removes events of @size bytes whose first 8 bytes are @key and that the application has not read; how many. */
u32 uv_events_forget(struct uv_events *e, u64 key, size_t size);
void uv_async_event(void *fe, const struct hca_event *ev);

#endif

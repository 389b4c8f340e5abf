/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One opened uverbs file: its shared memory, objects and event queues. */
#ifndef MUSLIN_HOST_CONTEXT_H
#define MUSLIN_HOST_CONTEXT_H

#include "emu/host/server.h"
#include "emu/verbs/object.h"
#include "emu/verbs/ring.h"

/*
 * A stream of fixed-size events to the application: a pair of sockets of type SOCK_SEQPACKET, of which the daemon keeps
 * both ends in order to count unread events. Events that do not fit in the socket are queued, one of a kind per object,
 * until the application has read some.
 */
struct uv_events {
	struct list link;
	struct loop *loop;
	struct loop_fd writable; /* of the daemon's end, while events are queued */
	struct list queued;
	int ours, theirs; /* -1: none */
	pid_t program;    /* which reads theirs */
	bool locked;      /* the application blocks in a read of it: unread events are no longer removed */
	bool ending;      /* the end of the stream follows the queued events */
	u64 inode;        /* of theirs: names a channel in commands */
	u64 socket;       /* passed_socket() of theirs */
	u32 users;        /* CQs */
	bool closed;      /* the application has closed all its descriptors */
};

/* A ring in the shared memory. */
struct uv_ring {
	struct verbs_ring ring;
	u64 offset;  /* in the file */
	u32 size;    /* 0: none */
	u32 charged; /* bytes that count against UV_RINGS_MOST */
};

struct uv_cq {
	struct verbs_cq cq;
	u64 user_handle;
	u32 async_events, comp_events;
	struct uv_ring ring;
	struct uv_events *channel; /* NULL: none */
};

struct uv_qp {
	struct verbs_qp qp;
	u64 user_handle;
	u32 async_events;
	bool sq_sig_all;
	struct uv_ring sq, rq;
	u64 *rejected;     /* with check_posts: a bit for each rejected slot of the send queue; NULL: none */
	u32 posts_checked; /* slot up to which posts were accepted or rejected */
};

struct uv_srq {
	struct verbs_srq srq;
	u64 user_handle;
	u32 async_events;
	struct uv_ring ring;
};

struct uverbs {
	struct uv_file *file;
	struct verbs verbs; /* its context is NULL after the device was unplugged */
	int memfd, kick;
	struct uv_shared *shared;
	u8 *base;
	u64 used;         /* allocated bytes of the memfd */
	bool check_posts; /* each post is a command, which may fail */
	bool revoked;     /* the device was unplugged: every command fails */
	struct list free_areas;
	struct uv_events async;
	struct list channels;
	u32 nchannels;
	u32 unwoken; /* completions since the last wake-up of the program */
	bool more;   /* the send queue that completed last has many outstanding requests */
	struct loop_poller poller;
	struct loop_fd kicked;
	struct loop_timer poll_timer;
};

static inline struct uverbs *uv_of(struct verbs *v)
{
	return container_of(v, struct uverbs, verbs);
}

/* rings.c */
int uv_ring_create(struct uverbs *u, struct uv_ring *r, u32 elem, u32 entries);
void uv_ring_destroy(struct uverbs *u, struct uv_ring *r);
int uv_ring_charge(struct uverbs *u, struct uv_ring *r, u32 slots); /* before the daemon writes these. 0, -ENOMEM */
struct mminfo uv_ring_info(const struct uv_ring *r);
void uv_areas_free(struct uverbs *u);
/* Accepts (@ok) or rejects the work requests posted since the last call; rejected ones are not sent. */
u64 uv_sq_posted_opcodes(const struct uv_qp *qp); /* of posts not accepted or rejected: bits of enum hca_wr_opcode */
void uv_sq_post_result(struct uv_qp *qp, bool ok);
/* Sets in the shared memory whether the QP state permits sends (10.8.3); the ring itself accepts them in any state. */
void uv_qp_ready(struct uv_qp *qp, bool ready);
extern const struct hca_wq_ops uv_qp_wq_ops, uv_srq_wq_ops;
extern const struct hca_cq_ops uv_cq_ops;
u32 uv_srq_posted(void *fe);

/* events.c */
int uv_events_open(struct uv_events *e, struct loop *loop, pid_t program); /* 0 or -errno */
void uv_events_close(struct uv_events *e);
void uv_events_end(struct uv_events *e); /* end of the stream: the reader gets EOF after the last event */
/*
 * Sends or queues the event of @object (NULL: of the device). False: do not count it, because the same event of the
 * object is queued already, or out of memory.
 */
bool uv_events_put(struct uv_events *e, const void *object, const void *event, size_t size);
/* Whether @fd is the application's end. */
bool uv_events_is(const struct uv_events *e, int fd);
/* Removes unread events of @object, of @size bytes, whose first 8 bytes are @key; returns how many. */
u32 uv_events_forget(struct uv_events *e, const void *object, u64 key, size_t size);
void uv_async_event(void *fe, const struct hca_event *ev);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Declarations shared by the files of the rdma_cm device. */
#ifndef MUSLIN_HOST_UCMA_INTERNAL_H
#define MUSLIN_HOST_UCMA_INTERNAL_H

#include <rdma/rdma_user_cm.h>
#include <sys/types.h>

#include "emu/host/server.h"
#include "emu/host/ucma.h"
#include "emu/lib/table.h"

#define UCMA_BACKLOG_MAX 1024
#define UCMA_EVENTS_MAX \
	65536 /* unread events of a file: beyond it requests are rejected, and commands that cause events fail */
#define UCMA_IDS_MAX (1u << 20)

struct ucma_host {
	struct rdma_host *rdma;
	struct table ctxs, mcs; /* by the application's id */
	struct list files;
};

struct ucma_file {
	struct list link; /* ucma_host.files */
	struct ucma_host *host;
	const struct uv_file *uv;
	int app, daemon; /* the two ends; app is the daemon's copy of the application's */
	u64 socket;      /* passed_socket() of the application's end */
	bool locked;     /* the application blocks in a read of its end; the daemon writes to it no more */
	struct list ctxs, events;
	u32 nevents;
};

/*
 * An id of the application, owned by the file. As in the kernel since 5.10, commands find the id of a request before
 * GET_EVENT has delivered its CONNECT_REQUEST event; if that event is dropped, its id is destroyed.
 */
struct ucma_ctx {
	struct list link; /* ucma_file.ctxs */
	struct ucma_file *file;
	struct rdma_id *rdma;
	u32 id;
	u64 uid;                      /* 0: only CONNECT_REQUEST events are reported */
	bool removed;                 /* with its device: only DESTROY_ID finds it */
	struct ucma_event *requested; /* the unread CONNECT_REQUEST that reports it; NULL: none */
	u32 backlog, events_reported;
	struct list events, mcs; /* ucma_event.ctx_link, ucma_mc.link */
};

struct ucma_mc {
	struct list link; /* ucma_ctx.mcs */
	struct ucma_ctx *ctx;
	struct rdma_mcast *rdma;
	u32 id;
	u64 uid;
	u32 events_reported;
};

struct ucma_event {
	struct list link;     /* ucma_file.events */
	struct list ctx_link; /* ucma_ctx.events */
	struct ucma_ctx *ctx;
	struct ucma_mc *mc;       /* MULTICAST_* */
	struct ucma_ctx *request; /* CONNECT_REQUEST: the new id; NULL: the application has destroyed it */
	struct rdma_ucm_event_resp resp;
};

/* A command in execution: @in is the part after the header, @out the response buffer. */
struct ucma_call {
	struct ucma_file *file;
	struct ucma_ctx *ctx; /* the command's id, where ucma_command.find looks it up */
	const u8 *in;
	size_t in_len;
	const u8 *extra; /* bytes after the command */
	size_t extra_len;
	u8 *out; /* zeroed */
	size_t out_room, out_len;
	int fd;
	u32 flags; /* enum uv_write_flag */
};

/* Finds an id of this file: 0, -ENOENT, -EINVAL, or -ENXIO if its device was removed. */
int ucma_ctx_find(const struct ucma_file *f, u32 id, struct ucma_ctx **ctx);
/* A new id of the file. NULL if out of memory or numbers. */
struct ucma_ctx *ucma_ctx_create(struct ucma_file *f);
void ucma_ctx_move(struct ucma_ctx *ctx, struct ucma_file *to); /* without its events */
void ucma_ctx_destroy(struct ucma_ctx *ctx);
/* Reads the command; missing bytes are zero. */
void ucma_in(const struct ucma_call *c, void *cmd, size_t size);
/* Copies the response, truncated to the buffer. */
void ucma_out(struct ucma_call *c, const void *p, size_t len);

/* ucma_event.c */
rdma_event_fn ucma_event;
int ucma_get_event(struct ucma_call *c);

/* Linux 6.17, for older headers: the application queues its own event with @arg. */
#define UCMA_CMD_WRITE_CM_EVENT 24
#define UCMA_EVENT_USER         18
#define UCMA_EVENT_INTERNAL     19

struct ucma_write_event {
	u32 id;
	u32 reserved;
	u32 event;
	u32 status;
	u64 arg;
};

int ucma_write_event(struct ucma_call *c);
bool ucma_mc_has_events(const struct ucma_mc *mc);
void ucma_set_level(struct ucma_file *f);
void ucma_events_drop(struct ucma_ctx *ctx, const struct ucma_mc *mc); /* @mc NULL: all events of the id */
void ucma_events_move(struct ucma_ctx *ctx, struct ucma_file *to);

/* ucma_query.c */
int ucma_query_route(struct ucma_call *c);
int ucma_query(struct ucma_call *c);
int ucma_init_qp_attr(struct ucma_call *c);

/* ucma_option.c */
int ucma_set_option(struct ucma_call *c);

/* ucma_mcast.c */
int ucma_join_ip(struct ucma_call *c);
int ucma_join(struct ucma_call *c);
int ucma_leave(struct ucma_call *c);
void ucma_mc_destroy(struct ucma_mc *mc);

/* Reads an address of @len bytes: 0, or -EINVAL if the length is wrong for its family. */
int ucma_addr_in(union rdma_sockaddr *a, const void *p, size_t len);
/* The same for the older commands, which pass IP addresses as a sockaddr_in6. */
int ucma_addr_in6(union rdma_sockaddr *a, const struct sockaddr_in6 *p);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The uverbs command in execution, and the command handlers. */
#ifndef MUSLIN_HOST_COMMAND_H
#define MUSLIN_HOST_COMMAND_H

#include "emu/host/context.h"

/* @in: the command's structure (plain form: from its response pointer on), then the provider's part. */
struct uv_call {
	struct uverbs *u;
	const u8 *in;
	size_t in_len, in_core; /* in_core: of an extended command, bytes before the provider's part */
	u8 *out;                /* zeroed, out_room bytes: the core's out_core, then the provider's (extended form) */
	size_t out_core, out_room;
	bool ex;
	int fd, out_fd;
};

struct uv_command {
	int (*fn)(struct uv_call *c);
	size_t min_out, driver_out; /* driver_out: bytes of the provider's response */
};

/* Copies the command to @dst, of @size bytes; -EINVAL if the command is shorter. */
int uv_call_in(const struct uv_call *c, void *dst, size_t size);
/* As uv_call_in(), for structures that newer kernels extend: missing bytes are zero. */
void uv_call_in_some(const struct uv_call *c, void *dst, size_t size);
/* Sets the core response, truncated to the caller's buffer. */
void uv_call_out(struct uv_call *c, const void *src, size_t size);
/* Appends the provider's response: @core is the size of the plain form's core response. */
void uv_call_out_driver(struct uv_call *c, size_t core, const void *src, size_t size);

/* uverbs.c: processes the posted requests as far as possible without the peer. */
void uv_catch_up(struct uverbs *u);
/*
 * Processes posted requests before a command that stops sending: hardware would have sent them by then. True: memory
 * moves are pending, perhaps of their payload; the command returns 0 and is executed again when they are done.
 */
bool uv_call_defer(struct uv_call *c);

#define UV_VECTORS 4 /* completion vectors: some programs take the second one unasked */

/* device.c */
int uv_get_context(struct uv_call *c);
int uv_query_device(struct uv_call *c);
int uv_ex_query_device(struct uv_call *c);
int uv_query_port(struct uv_call *c);
bool uv_has_odp(const struct uv_host *h); /* on-demand paging */

/* objects.c */
int uv_alloc_pd(struct uv_call *c);
int uv_dealloc_pd(struct uv_call *c);
int uv_create_ah(struct uv_call *c);
int uv_destroy_ah(struct uv_call *c);
int uv_reg_mr(struct uv_call *c);
int uv_dereg_mr(struct uv_call *c);
int uv_advise_mr(struct uverbs *u, const struct uv_advise *a);
int uv_alloc_mw(struct uv_call *c);
int uv_dealloc_mw(struct uv_call *c);
int uv_attach_mcast(struct uv_call *c);
int uv_detach_mcast(struct uv_call *c);

/* cq.c */
int uv_create_channel(struct uv_call *c);
void uv_channel_free(struct uverbs *u, struct uv_events *e);
int uv_cq_init(struct verbs_cq *base, u32 entries, const void *arg);
void uv_cq_fini(struct verbs_cq *base);
int uv_create_cq(struct uv_call *c);
int uv_ex_create_cq(struct uv_call *c);
int uv_resize_cq(struct uv_call *c);
int uv_destroy_cq(struct uv_call *c);
int uv_req_notify_cq(struct uv_call *c);

/* qp.c */
int uv_qp_init(struct verbs_qp *base, const struct hca_qp_init *init, bool srq, const void *arg);
void uv_qp_fini(struct verbs_qp *base);
int uv_create_qp(struct uv_call *c);
int uv_ex_create_qp(struct uv_call *c);
int uv_query_qp(struct uv_call *c);
int uv_modify_qp(struct uv_call *c);
int uv_ex_modify_qp(struct uv_call *c);
int uv_destroy_qp(struct uv_call *c);
int uv_post_send(struct uv_call *c);

/* srq.c */
int uv_srq_init(struct verbs_srq *base, u32 max_wr, const void *arg);
void uv_srq_fini(struct verbs_srq *base);
int uv_create_srq(struct uv_call *c);
int uv_create_xsrq(struct uv_call *c);
int uv_modify_srq(struct uv_call *c);
int uv_query_srq(struct uv_call *c);
int uv_destroy_srq(struct uv_call *c);

#endif

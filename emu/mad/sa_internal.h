/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Declarations shared by the files of the SA client: queries (sa_query.c) and groups (sa_mcast.c). */
#ifndef MUSLIN_MAD_SA_INTERNAL_H
#define MUSLIN_MAD_SA_INTERNAL_H

#include "emu/mad/sa_query.h"
#include "emu/wire/sa.h"

#define SA_QUERY_MS      2000u
#define SA_QUERY_RETRIES 2

struct sa_client {
	struct loop *loop;
	struct mad_port *mp;
	struct mad_agent *agent;
	struct list queries, groups;
	u32 next_tid;
};

/* One request to the SA. done() gets the response's MAD, or NULL with a -errno; the query has been freed by then. */
struct sa_query {
	struct list link; /* sa_client.queries */
	struct sa_client *client;
	void (*done)(struct sa_query *q, int status, u16 sa_status, const u8 *mad);
	sa_path_fn *path_cb;
	void *ctx;
	struct loop_task refused; /* reports that sending failed */
	int err;
	u8 mad[MAD_SIZE];
};

/* An empty request of this client, to be filled in and sent. NULL if out of memory. */
struct sa_query *sa_query_create(struct sa_client *c, u8 method, u16 attr, u64 comp);
/* Sends it; errors are reported by done() later. @timeout_ms 0: the default. */
void sa_query_send(struct sa_query *q, u32 timeout_ms);
void sa_groups_destroy(struct sa_client *c);
/* Sends a request and ignores the response. */
void sa_query_post(struct sa_query *q);

#endif

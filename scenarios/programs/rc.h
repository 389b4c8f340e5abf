/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A reliable connection between two programs, which is negotiated over a TCP socket: shared by the small programs of
 * the scenarios. Functions end the program on errors other than those that the program tests.
 */
#ifndef PROGRAMS_RC_H
#define PROGRAMS_RC_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

#define RC_DEPTH 64
#define RC_SIZE  4096 /* bytes for each message */

/* Shared by all connections of a program. */
struct rc_device {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char *buf; /* RC_DEPTH messages out, then RC_DEPTH in */
};

/* Path and timers. */
struct rc_options {
	unsigned char port, timeout, retries, rnr_retries; /* codes as in ibv_modify_qp(3) */
};

struct rc {
	struct rc_device *dev;
	struct ibv_qp *qp;
	int sock;
	unsigned short peer_lid[2]; /* of the peer's ports; 0: it has only one */
};

void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

void rc_device_open(struct rc_device *dev);
int rc_listen(const char *port); /* prints "serving" */
int rc_accept(int listener);
int rc_dial(const char *host, const char *port);
/* Creates a queue pair in RTS, with RC_DEPTH receives posted; the peer does the same over its end of @sock. */
void rc_connect(struct rc *rc, struct rc_device *dev, int sock, const struct rc_options *opt);
void rc_close(struct rc *rc);
/* Modifies the queue pair from RESET to INIT, RTR and RTS, with what each needs of @a. 0 or an errno. */
int rc_to_rts(struct ibv_qp *qp, struct ibv_qp_attr *a);
/* For rc_to_rts(): connects to a queue pair of this host's port 1, which may be the same one. */
struct ibv_qp_attr rc_attr_to(const struct ibv_qp *peer);
/* Modifies a datagram queue pair of port 1 from RESET to INIT, RTR and RTS. 0 or an errno. */
int ud_to_rts(struct ibv_qp *qp, unsigned qkey);

void rc_post_recv(struct rc *rc, unsigned slot);
/* 0 or an errno. The completion has @id. */
int rc_post_send(struct rc *rc, unsigned slot, unsigned len, uint64_t id);
/* Polls the next completion of the device's CQ; false: none within @ms. */
bool rc_wait(struct rc_device *dev, struct ibv_wc *wc, unsigned ms);

#endif

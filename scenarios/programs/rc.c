// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A reliable connection between two programs. */
#include "rc.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	exit(2);
}

void rc_device_open(struct rc_device *dev)
{
	struct ibv_device **all = ibv_get_device_list(NULL);

	setvbuf(stdout, NULL, _IOLBF, 0);
	dev->ctx = all && all[0] ? ibv_open_device(all[0]) : NULL;
	if (!dev->ctx)
		die("no RDMA device");
	dev->pd = ibv_alloc_pd(dev->ctx);
	dev->cq = ibv_create_cq(dev->ctx, 4 * RC_DEPTH, NULL, NULL, 0);
	dev->buf = calloc(2 * RC_DEPTH, RC_SIZE);
	dev->mr = dev->pd && dev->buf
			  ? ibv_reg_mr(dev->pd, dev->buf, (size_t)2 * RC_DEPTH * RC_SIZE, IBV_ACCESS_LOCAL_WRITE)
			  : NULL;
	if (!dev->cq || !dev->mr)
		die("no CQ or memory region");
	ibv_free_device_list(all);
}

static struct addrinfo *lookup(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_INET, .ai_flags = host ? 0 : AI_PASSIVE };
	struct addrinfo *ai;

	if (getaddrinfo(host, port, &hints, &ai))
		die("no address %s %s", host ? host : "", port);
	return ai;
}

int rc_listen(const char *port)
{
	struct addrinfo *ai = lookup(NULL, port);
	int sock = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(sock, ai->ai_addr, ai->ai_addrlen) || listen(sock, 4))
		die("port %s: %s", port, strerror(errno));
	freeaddrinfo(ai);
	printf("serving\n");
	return sock;
}

int rc_accept(int listener)
{
	int sock = accept(listener, NULL, NULL);

	if (sock < 0)
		die("accept: %s", strerror(errno));
	return sock;
}

int rc_dial(const char *host, const char *port)
{
	struct addrinfo *ai = lookup(host, port);
	int sock = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(sock, ai->ai_addr, ai->ai_addrlen))
		die("%s port %s: %s", host, port, strerror(errno));
	freeaddrinfo(ai);
	return sock;
}

/* Sent by each side to the other. */
struct introduction {
	unsigned qpn;
	unsigned short lid[2];
};

static struct introduction introduce(struct rc *rc)
{
	struct introduction own = { .qpn = rc->qp->qp_num }, peer;
	struct ibv_port_attr attr;
	int i;

	for (i = 0; i < 2; i++)
		if (!ibv_query_port(rc->dev->ctx, (uint8_t)(i + 1), &attr))
			own.lid[i] = attr.lid;
	if (write(rc->sock, &own, sizeof(own)) != sizeof(own) ||
	    recv(rc->sock, &peer, sizeof(peer), MSG_WAITALL) != sizeof(peer))
		die("the peer has disconnected");
	memcpy(rc->peer_lid, peer.lid, sizeof(peer.lid));
	return peer;
}

int rc_to_rts(struct ibv_qp *qp, struct ibv_qp_attr *a)
{
	int err;

	a->qp_state = IBV_QPS_INIT;
	err = ibv_modify_qp(qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	a->qp_state = IBV_QPS_RTR;
	err = err ? err
		  : ibv_modify_qp(qp, a,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	a->qp_state = IBV_QPS_RTS;
	return err ? err
		   : ibv_modify_qp(qp, a,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC);
}

struct ibv_qp_attr rc_attr_to(const struct ibv_qp *peer)
{
	struct ibv_port_attr port;

	if (ibv_query_port(peer->context, 1, &port))
		die("no port");
	return (struct ibv_qp_attr){ .port_num = 1,
				     .path_mtu = IBV_MTU_1024,
				     .dest_qp_num = peer->qp_num,
				     .max_rd_atomic = 1,
				     .max_dest_rd_atomic = 1,
				     .min_rnr_timer = 12,
				     .ah_attr = { .dlid = port.lid, .port_num = 1 },
				     .timeout = 14,
				     .retry_cnt = 7,
				     .rnr_retry = 7 };
}

int ud_to_rts(struct ibv_qp *qp, unsigned qkey)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey };
	int err = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	a.qp_state = IBV_QPS_RTR;
	err = err ? err : ibv_modify_qp(qp, &a, IBV_QP_STATE);
	a.qp_state = IBV_QPS_RTS;
	return err ? err : ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static void to_rts(struct rc *rc, unsigned dest, const struct rc_options *opt)
{
	struct ibv_qp_attr a = {
		.port_num = opt->port,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .dlid = rc->peer_lid[opt->port - 1], .port_num = opt->port },
		.timeout = opt->timeout,
		.retry_cnt = opt->retries,
		.rnr_retry = opt->rnr_retries,
	};
	int err = rc_to_rts(rc->qp, &a);

	if (err)
		die("modify_qp: %s", strerror(err));
}

/* Barrier of both sides. False: the peer has closed. */
static bool both_meet(const struct rc *rc)
{
	char byte = 0;

	return write(rc->sock, &byte, 1) == 1 && recv(rc->sock, &byte, 1, MSG_WAITALL) == 1;
}

void rc_connect(struct rc *rc, struct rc_device *dev, int sock, const struct rc_options *opt)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = dev->cq,
		.recv_cq = dev->cq,
		.cap = { .max_send_wr = RC_DEPTH, .max_recv_wr = RC_DEPTH, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	unsigned i;

	rc->dev = dev;
	rc->sock = sock;
	rc->qp = ibv_create_qp(dev->pd, &init);
	if (!rc->qp)
		die("create_qp: %s", strerror(errno));
	to_rts(rc, introduce(rc).qpn, opt);
	for (i = 0; i < RC_DEPTH; i++)
		rc_post_recv(rc, i);
	if (!both_meet(rc))
		die("the peer has disconnected");
}

void rc_close(struct rc *rc)
{
	ibv_destroy_qp(rc->qp);
	close(rc->sock);
}

static struct ibv_sge sge_of(const struct rc *rc, unsigned slot, unsigned len)
{
	return (struct ibv_sge){ .addr = (uintptr_t)rc->dev->buf + (size_t)slot * RC_SIZE,
				 .length = len,
				 .lkey = rc->dev->mr->lkey };
}

void rc_post_recv(struct rc *rc, unsigned slot)
{
	struct ibv_sge sge = sge_of(rc, RC_DEPTH + slot, RC_SIZE);
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(rc->qp, &wr, &bad))
		die("post_recv: %s", strerror(errno));
}

int rc_post_send(struct rc *rc, unsigned slot, unsigned len, uint64_t id)
{
	struct ibv_sge sge = sge_of(rc, slot, len);
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = len != 0, .opcode = IBV_WR_SEND }, *bad;

	return ibv_post_send(rc->qp, &wr, &bad);
}

bool rc_wait(struct rc_device *dev, struct ibv_wc *wc, unsigned ms)
{
	struct timespec start, now, nap = { .tv_nsec = 200000 };

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		if (ibv_poll_cq(dev->cq, 1, wc) > 0)
			return true;
		nanosleep(&nap, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < (long)ms);
	return false;
}

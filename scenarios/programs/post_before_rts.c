// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A thread posts sends to a queue pair until a post succeeds, while another one moves it from RTR to RTS: what fails is
 * not sent (IBTA 10.8.2), and what succeeds is.
 *
 *     post_before_rts ROUNDS
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "must.h"

#define QKEY  0x11111111
#define DEPTH 16

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_ah *ah;

struct poster {
	struct ibv_qp *qp;
	atomic_ulong failed; /* posts; the next one has this number */
};

static int post(struct ibv_qp *qp, unsigned long id)
{
	struct ibv_send_wr *bad, wr = { .wr_id = id, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	return ibv_post_send(qp, &wr, &bad);
}

static void *post_until_accepted(void *arg)
{
	struct poster *p = arg;

	while (post(p->qp, p->failed))
		p->failed++;
	return NULL;
}

static struct ibv_qp *qp_make(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = { DEPTH, 1, 1, 1, 0 }
	};
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	must(qp && !ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "INIT");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE), "RTR");
	return qp;
}

static unsigned long completed(void)
{
	struct ibv_wc wc;
	int n = 0;

	while (!n)
		n = ibv_poll_cq(cq, 1, &wc);
	must(n == 1 && wc.status == IBV_WC_SUCCESS, "poll");
	return wc.wr_id;
}

/* The last post is after the first that has succeeded, and shows that nothing else is sent. */
static int round_ok(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS };
	struct poster p = { .qp = qp_make() };
	unsigned long first, second;
	pthread_t thread;

	must(!pthread_create(&thread, NULL, post_until_accepted, &p), "thread");
	while (p.failed < 2 * DEPTH)
		;
	must(!ibv_modify_qp(p.qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
	pthread_join(thread, NULL);
	must(!post(p.qp, p.failed + 1), "post");
	first = completed();
	second = completed();
	must(!ibv_destroy_qp(p.qp), "destroy");
	if (first == p.failed && second == p.failed + 1)
		return 1;
	printf("posts before %lu have failed; sent were %lu and %lu\n", p.failed, first, second);
	return 0;
}

int main(int argc, char **argv)
{
	struct ibv_device **all = ibv_get_device_list(NULL);
	struct ibv_ah_attr to = { .port_num = 1 };
	struct ibv_port_attr port;
	int rounds = argc > 1 ? atoi(argv[1]) : 1, i;

	ctx = all && all[0] ? ibv_open_device(all[0]) : NULL;
	must(ctx && !ibv_query_port(ctx, 1, &port), "device");
	to.dlid = port.lid;
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 4 * DEPTH, NULL, NULL, 0);
	ah = pd ? ibv_create_ah(pd, &to) : NULL;
	must(cq && ah, "objects");
	for (i = 0; i < rounds; i++)
		if (!round_ok())
			return 1;
	printf("%d rounds\n", rounds);
	return 0;
}

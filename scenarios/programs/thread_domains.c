// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads with a queue pair, a completion queue and a thread domain each (ibv_alloc_td(3)), so that the provider takes
 * no locks: each connects its queue pair to itself, and sends and receives messages. Prints "thread domains", or why
 * the first one is refused.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "must.h"
#include "rc.h"

#define THREADS  4
#define MESSAGES 200

static struct rc_device dev;

static struct ibv_qp *self_connected(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .sq_sig_all = 1
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr a;

	must(qp != NULL, "a queue pair");
	a = rc_attr_to(qp);
	must(!rc_to_rts(qp, &a), "RTS");
	return qp;
}

/* One message to the second half of the thread's part of the buffer, and both completions. */
static void send_to_self(struct ibv_qp *qp, char *at, uint32_t number)
{
	struct ibv_sge in = { (uintptr_t)at + RC_SIZE, sizeof(number), dev.mr->lkey };
	struct ibv_sge out = { (uintptr_t)at, sizeof(number), dev.mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &in, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_wc wc[2];
	int done = 0, n;

	memcpy(at, &number, sizeof(number));
	must(!ibv_post_recv(qp, &recv, &bad_recv) && !ibv_post_send(qp, &send, &bad_send), "a message");
	while (done < 2) {
		n = ibv_poll_cq(qp->send_cq, 1, wc);
		must(n >= 0 && (!n || !wc->status), "a completion");
		done += n;
	}
	must(!memcmp(at + RC_SIZE, &number, sizeof(number)), "the message");
}

static void *thread(void *arg)
{
	char *at = dev.buf + (uintptr_t)arg * 2 * RC_SIZE;
	struct ibv_td_init_attr none = { 0 };
	struct ibv_td *td = ibv_alloc_td(dev.ctx, &none);
	struct ibv_parent_domain_init_attr init = { .pd = dev.pd, .td = td };
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint32_t i;

	must(td != NULL, "a thread domain");
	pd = ibv_alloc_parent_domain(dev.ctx, &init);
	cq = ibv_create_cq(dev.ctx, 4, NULL, NULL, 0);
	must(pd && cq, "a parent domain and a CQ");
	qp = self_connected(pd, cq);
	must(ibv_dealloc_td(td) == EBUSY, "a thread domain in use");
	for (i = 0; i < MESSAGES; i++)
		send_to_self(qp, at, i);
	must(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_dealloc_td(td), "the end");
	return NULL;
}

int main(void)
{
	struct ibv_td_init_attr none = { 0 };
	pthread_t threads[THREADS];
	struct ibv_td *td;
	uintptr_t i;

	rc_device_open(&dev);
	td = ibv_alloc_td(dev.ctx, &none);
	if (!td) {
		printf("%s\n", strerror(errno));
		return 0;
	}
	must(!ibv_dealloc_td(td), "a thread domain without users");
	for (i = 0; i < THREADS; i++)
		must(!pthread_create(&threads[i], NULL, thread, (void *)i), "a thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("thread domains\n");
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Posts datagrams to its own QP, ends the sending QP at once, and prints how many were received.
 *
 *     post_and_destroy destroy|error|reset
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "must.h"
#include "rc.h"

#define COUNT 10
#define QKEY  0x11111111
#define SIZE  (40 + 64)

static char mem[COUNT + 1][SIZE];

static struct ibv_qp *qp_make(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = { COUNT, COUNT, 1, 1, 0 }
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	must(qp && !ud_to_rts(qp, QKEY), "a queue pair");
	return qp;
}

static int received(struct ibv_cq *cq)
{
	time_t end = time(NULL) + 5;
	struct ibv_wc wc;
	int n = 0;

	while (n < COUNT && time(NULL) < end)
		if (ibv_poll_cq(cq, 1, &wc) == 1)
			n += wc.opcode == IBV_WC_RECV && wc.status == IBV_WC_SUCCESS;
	return n;
}

static void qp_end(struct ibv_qp *qp, const char *how)
{
	struct ibv_qp_attr a = { .qp_state = strcmp(how, "error") ? IBV_QPS_RESET : IBV_QPS_ERR };

	if (!strcmp(how, "destroy"))
		must(!ibv_destroy_qp(qp), how);
	else
		must(!ibv_modify_qp(qp, &a, IBV_QP_STATE), how);
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_cq *cq = ctx ? ibv_create_cq(ctx, 2 * COUNT, NULL, NULL, 0) : NULL;
	struct ibv_cq *sent = ctx ? ibv_create_cq(ctx, COUNT, NULL, NULL, 0) : NULL;
	struct ibv_port_attr port;
	struct ibv_qp *from, *to;
	struct ibv_ah *ah;
	int i;

	must(argc == 2, "usage");
	must(mr && cq && sent && !ibv_query_port(ctx, 1, &port), "device");
	from = qp_make(pd, sent);
	to = qp_make(pd, cq);
	ah = ibv_create_ah(pd, &(struct ibv_ah_attr){ .dlid = port.lid, .port_num = 1 });
	must(!!ah, "AH");
	for (i = 0; i < COUNT; i++) {
		struct ibv_sge sge = { (uintptr_t)mem[i], SIZE, mr->lkey };
		struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

		must(!ibv_post_recv(to, &wr, &bad), "receive");
	}
	for (i = 0; i < COUNT; i++) {
		struct ibv_sge sge = { (uintptr_t)mem[COUNT], 64, mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND,
					  .wr.ud = { ah, to->qp_num, QKEY } },
				   *bad;

		must(!ibv_post_send(from, &wr, &bad), "send");
	}
	qp_end(from, argv[1]);
	printf("received %d\n", received(cq));
	return 0;
}

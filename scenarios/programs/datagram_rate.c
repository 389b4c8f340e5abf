// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends datagrams of 2 KiB to LID at the static rate RATE (enum ibv_rate), of which the receiver drops all, and prints
 * how many milliseconds 32 MiB take:
 *
 *     datagram_rate LID RATE
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "must.h"
#include "rc.h"

#define BYTES 2048
#define LIST  256
#define LISTS 64

static struct ibv_qp *sender(const struct rc_device *dev)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .send_cq = dev->cq, .recv_cq = dev->cq, .cap = { LIST, 1, 1, 1, 0 }
	};
	struct ibv_qp *qp = ibv_create_qp(dev->pd, &init);

	must(qp && !ud_to_rts(qp, 5), "a queue pair");
	return qp;
}

/* Posts all of them, and waits for the completion of the last one. */
static void list_send(const struct rc_device *dev, struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_sge sge = { (uintptr_t)dev->buf, BYTES, dev->mr->lkey };
	struct ibv_send_wr wr[LIST], *bad;
	struct ibv_wc wc;
	unsigned i;
	int n;

	for (i = 0; i < LIST; i++)
		wr[i] = (struct ibv_send_wr){ .next = i + 1 < LIST ? &wr[i + 1] : NULL,
					      .sg_list = &sge,
					      .num_sge = 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = i + 1 < LIST ? 0 : IBV_SEND_SIGNALED,
					      .wr.ud = { ah, 0xfffffe, 5 } };
	must(!ibv_post_send(qp, wr, &bad), "a list");
	do
		n = ibv_poll_cq(dev->cq, 1, &wc);
	while (!n);
	must(n == 1 && !wc.status, "a completion");
}

static double ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	struct ibv_ah_attr to = { .port_num = 1 };
	struct rc_device dev;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	double began;
	unsigned i;

	if (argc != 3)
		return 2;
	to.dlid = (uint16_t)atoi(argv[1]);
	to.static_rate = (uint8_t)atoi(argv[2]);
	rc_device_open(&dev);
	qp = sender(&dev);
	ah = ibv_create_ah(dev.pd, &to);
	must(ah != NULL, "an address");
	began = ms();
	for (i = 0; i < LISTS; i++)
		list_send(&dev, qp, ah);
	printf("%.1f\n", ms() - began);
	return 0;
}

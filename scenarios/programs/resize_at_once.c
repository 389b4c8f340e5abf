// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Resizes a CQ by two threads at once, and prints how many times it did. The commands are the program's own: the
 * library's lock would have one thread wait for the other.
 */
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <stdio.h>
#include <unistd.h>

#include "rc.h"

#define TIMES 500

static struct rc_device dev;

static void *resize(void *arg)
{
	uint64_t out[(sizeof(struct ib_uverbs_resize_cq_resp) + sizeof(struct rxe_resize_cq_resp)) / 8];
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_resize_cq cmd;
	} in = {
		.hdr = { IB_USER_VERBS_CMD_RESIZE_CQ, sizeof(in) / 4, sizeof(out) / 4 },
		.cmd = { .response = (uintptr_t)out, .cq_handle = dev.cq->handle },
	};
	unsigned *done = arg, i;

	for (i = 0; i < TIMES; i++) {
		in.cmd.cqe = i % 2 ? 16 : 1000;
		*done += write(dev.ctx->cmd_fd, &in, sizeof(in)) == sizeof(in);
	}
	return NULL;
}

int main(void)
{
	unsigned done[2] = { 0, 0 };
	pthread_t other;

	rc_device_open(&dev);
	if (pthread_create(&other, NULL, resize, &done[1]))
		die("no thread");
	resize(&done[0]);
	pthread_join(other, NULL);
	printf("resized %u\n", done[0] + done[1]);
	return 0;
}

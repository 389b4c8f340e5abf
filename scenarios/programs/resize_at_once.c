// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Resizes a CQ by two threads at once, and prints how many times it did. The commands are the program's own: the
 * library's lock would have one thread wait for the other.
 */
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/rdma_user_rxe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

#define TIMES 500
#define SMALL (2 * TIMES + 1) /* on mlx5 each resize takes an entry, which this program does not consume */
#define LARGE 4000
#define ENTRY 64   /* bytes of a completion of mlx5 */
#define RING  4096 /* entries of mlx5 for LARGE */

static struct rc_device dev;

/* The ring of mlx5 is the program's own memory; that of our driver is the kernel's. */
static void *resize(void *arg)
{
	bool mlx5 = !strncmp(ibv_get_device_name(dev.ctx->device), "mlx5", 4);
	void *ring = aligned_alloc(4096, RING * ENTRY);
	uint64_t out[(sizeof(struct ib_uverbs_resize_cq_resp) + sizeof(struct rxe_resize_cq_resp)) / 8];
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_resize_cq cmd;
		struct mlx5_ib_resize_cq mlx5;
	} in = {
		.cmd = { .response = (uintptr_t)out, .cq_handle = dev.cq->handle },
		.mlx5 = { .buf_addr = (uintptr_t)ring, .cqe_size = ENTRY },
	};
	size_t len = mlx5 ? sizeof(in) : offsetof(typeof(in), mlx5);
	unsigned *done = arg, i;

	in.hdr = (struct ib_uverbs_cmd_hdr){ IB_USER_VERBS_CMD_RESIZE_CQ, (uint16_t)(len / 4), sizeof(out) / 4 };
	for (i = 0; i < TIMES; i++) {
		in.cmd.cqe = i % 2 ? SMALL : LARGE;
		*done += write(dev.ctx->cmd_fd, &in, len) == (ssize_t)len;
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

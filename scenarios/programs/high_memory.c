// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program with much memory, all of which it writes:
 *
 *     high_memory GIB
 *
 * Regions of a MiB all over it are registered, each is sent to the next one by RDMA WRITE on a queue pair connected to
 * itself, and what arrives is compared. Prints the highest physical address of a registered page.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rc.h"

#define REGION  (1u << 20)
#define REGIONS 16u

static struct ibv_qp *qp_to_itself(const struct rc_device *dev)
{
	struct ibv_qp_init_attr init = { .send_cq = dev->cq, .recv_cq = dev->cq, .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr a;
	struct ibv_qp *qp;

	init.cap.max_send_wr = init.cap.max_recv_wr = REGIONS;
	init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	qp = ibv_create_qp(dev->pd, &init);
	if (!qp)
		die("no queue pair");
	a = rc_attr_to(qp);
	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	a.path_mtu = IBV_MTU_4096;
	if (rc_to_rts(qp, &a))
		die("the queue pair cannot be connected");
	return qp;
}

static uint64_t physical(const void *at)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = 0;

	if (fd < 0 || pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)at / 4096 * 8)) != sizeof(entry))
		die("no /proc/self/pagemap");
	close(fd);
	return (entry & ((1ull << 55) - 1)) * 4096;
}

static void fill(char *region, unsigned seed)
{
	unsigned i;

	for (i = 0; i < REGION / sizeof(seed); i++)
		((unsigned *)(void *)region)[i] = seed * 2654435761u + i;
}

int main(int argc, char **argv)
{
	size_t size = (size_t)(argc == 2 ? atoi(argv[1]) : 0) << 30;
	struct ibv_mr *mr[REGIONS];
	uint64_t highest = 0;
	struct rc_device dev;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	char *memory, *at;
	unsigned i;

	rc_device_open(&dev);
	qp = qp_to_itself(&dev);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!size || memory == MAP_FAILED)
		die("no memory");
	for (at = memory; at < memory + size; at += 4096)
		*at = 1;
	for (i = 0; i < REGIONS; i++) {
		at = memory + size / REGIONS * i;
		mr[i] = ibv_reg_mr(dev.pd, at, REGION, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		if (!mr[i])
			die("no memory region");
		if (physical(at) > highest)
			highest = physical(at);
	}
	for (i = 0; i + 1 < REGIONS; i++) {
		struct ibv_sge sge = { (uintptr_t)mr[i]->addr, REGION, mr[i]->lkey };
		struct ibv_send_wr *bad, wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED
		};

		wr.wr.rdma.remote_addr = (uintptr_t)mr[i + 1]->addr;
		wr.wr.rdma.rkey = mr[i + 1]->rkey;
		fill(mr[i]->addr, i + 1);
		if (ibv_post_send(qp, &wr, &bad) || !rc_wait(&dev, &wc, 10000) || wc.status != IBV_WC_SUCCESS)
			die("RDMA WRITE %u failed", i);
		if (memcmp(mr[i]->addr, mr[i + 1]->addr, REGION))
			die("RDMA WRITE %u: other bytes have arrived", i);
	}
	printf("%u writes, up to %#llx\n", REGIONS - 1, (unsigned long long)highest);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * On-demand paging of one program with two queue pairs of its own, by LID: the pages of a region come and go between
 * requests, and during them. "paging [whole]": the region is the whole address space. Ends with "paged".
 */
#include "must.h"
#include "rc.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE   4096ul
#define SIZE   (64 * PAGE)
#define ROUNDS 100
#define RIGHTS                                                                                              \
	(IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static struct rc_device dev;
static struct ibv_qp *qp[2];
static struct ibv_mr *mr;
static unsigned char *area, *pinned;
static struct ibv_mr *pinned_mr;
static int stop;

static void connect_to(struct ibv_qp *from, const struct ibv_qp *to)
{
	struct ibv_qp_attr a = rc_attr_to(to);

	a.qp_access_flags = RIGHTS & ~IBV_ACCESS_ON_DEMAND;
	a.path_mtu = IBV_MTU_2048;
	a.max_rd_atomic = a.max_dest_rd_atomic = 4;
	errno = rc_to_rts(from, &a);
	must(!errno, "RTS");
}

static void pair_new(void)
{
	struct ibv_qp_init_attr init = { .send_cq = dev.cq,
					 .recv_cq = dev.cq,
					 .cap = { RC_DEPTH, RC_DEPTH, 2, 2, 0 },
					 .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1 };
	int i;

	for (i = 0; i < 2; i++) {
		if (qp[i])
			ibv_destroy_qp(qp[i]);
		qp[i] = NULL;
	}
	for (i = 0; i < 2; i++)
		must(!!(qp[i] = ibv_create_qp(dev.pd, &init)), "ibv_create_qp");
	connect_to(qp[0], qp[1]);
	connect_to(qp[1], qp[0]);
}

static enum ibv_wc_status wait_status(void)
{
	struct ibv_wc wc;

	must(rc_wait(&dev, &wc, 20000), "no completion");
	return wc.status;
}

static void post(enum ibv_wr_opcode op, uint32_t lkey, void *local, uint32_t len, uint32_t rkey, void *remote)
{
	struct ibv_sge sge = { (uintptr_t)local, len, lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = op }, *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)remote;
		wr.wr.rdma.rkey = rkey;
	}
	must(!(errno = ibv_post_send(qp[0], &wr, &bad)), "ibv_post_send");
}

static void transfer(enum ibv_wr_opcode op, const struct ibv_mr *from, void *local, uint32_t len,
		     const struct ibv_mr *to, void *remote)
{
	enum ibv_wc_status status;

	post(op, from->lkey, local, len, to->rkey, remote);
	status = wait_status();
	if (status)
		die("opcode %d: %s", op, ibv_wc_status_str(status));
}

static void pages_replace(void)
{
	must(mmap(area, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area, "mmap");
}

static int all_are(const unsigned char *at, size_t len, int value)
{
	return *at == value && !memcmp(at, at + 1, len - 1);
}

/* Remote memory, and local memory, whose pages are new in each round. */
static void pages_change(void)
{
	int i;

	for (i = 1; i <= ROUNDS; i++) {
		memset(pinned, i, SIZE);
		transfer(IBV_WR_RDMA_WRITE, pinned_mr, pinned, SIZE, mr, area);
		must(all_are(area, SIZE, i), "an RDMA WRITE");
		if (i & 1)
			pages_replace();
		else
			must(!madvise(area, SIZE, MADV_DONTNEED), "madvise");
		transfer(IBV_WR_RDMA_READ, pinned_mr, pinned, SIZE, mr, area);
		must(all_are(pinned, SIZE, 0), "an RDMA READ of new pages");
		must(!madvise(area, SIZE, MADV_DONTNEED), "madvise");
		memset(pinned, i, SIZE);
		transfer(IBV_WR_RDMA_READ, mr, area, SIZE, pinned_mr, pinned);
		must(all_are(area, SIZE, i), "an RDMA READ into new pages");
		memset(pinned, 0, SIZE);
		madvise(area, SIZE, MADV_PAGEOUT);
		transfer(IBV_WR_RDMA_WRITE, mr, area, SIZE, pinned_mr, pinned);
		must(all_are(pinned, SIZE, i), "an RDMA WRITE of pages that were swapped out");
		must(!madvise(area, SIZE, MADV_DONTNEED), "madvise");
		transfer(IBV_WR_ATOMIC_FETCH_AND_ADD, mr, area + PAGE, 8, mr, area);
		must(*(uint64_t *)(void *)area == 1 && all_are(area + PAGE, 8, 0), "an atomic operation");
	}
}

static void message(void)
{
	struct ibv_sge sge[2] = { { (uintptr_t)area, 3 * PAGE, mr->lkey },
				  { (uintptr_t)area + 8 * PAGE, PAGE, mr->lkey } };
	struct ibv_recv_wr recv = { .sg_list = sge, .num_sge = 2 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND }, *bad;
	int i;

	for (i = 1; i <= ROUNDS; i++) {
		memset(area, i, SIZE);
		must(!madvise(area, 4 * PAGE, MADV_DONTNEED), "madvise");
		sge[0].addr = (uintptr_t)area + 16 * PAGE;
		sge[1].addr = (uintptr_t)area + 32 * PAGE;
		must(!ibv_post_recv(qp[1], &recv, &bad_recv), "ibv_post_recv");
		must(!madvise(area + 16 * PAGE, 3 * PAGE, MADV_DONTNEED), "madvise");
		sge[0].addr = (uintptr_t)area;
		sge[1].addr = (uintptr_t)area + 8 * PAGE;
		must(!(errno = ibv_post_send(qp[0], &send, &bad)), "ibv_post_send");
		must(!wait_status() && !wait_status(), "a SEND and its receive");
		must(all_are(area + 16 * PAGE, 3 * PAGE, 0) && all_are(area + 32 * PAGE, PAGE, i), "what was received");
	}
}

/* After a fork the parent's pages are copied when they are written: the adapter writes to the parent's. */
static void child(void)
{
	int status, pipes[2];
	char c;

	memset(area, 7, SIZE);
	must(!pipe(pipes), "pipe");
	if (!fork()) {
		must(read(pipes[0], &c, 1) == 1, "read");
		_exit(!all_are(area, SIZE, 7));
	}
	memset(pinned, 8, SIZE);
	transfer(IBV_WR_RDMA_WRITE, pinned_mr, pinned, SIZE, mr, area);
	must(all_are(area, SIZE, 8) && write(pipes[1], "", 1) == 1, "the parent's memory");
	must(wait(&status) > 0 && !status, "the child's memory");
}

static void *drops(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		madvise(area, SIZE, MADV_DONTNEED);
	return NULL;
}

/* Each page that is read has either what was written or zeroes, as a new one. */
static void race(void)
{
	pthread_t thread;
	unsigned long n;
	int i;

	must(!pthread_create(&thread, NULL, drops, NULL), "pthread_create");
	for (i = 1; i <= ROUNDS / 2; i++) {
		memset(pinned, i, SIZE);
		transfer(IBV_WR_RDMA_WRITE, pinned_mr, pinned, SIZE, mr, area);
		memset(pinned, 255, SIZE);
		transfer(IBV_WR_RDMA_READ, pinned_mr, pinned, SIZE, mr, area);
		for (n = 0; n < SIZE; n += 64)
			must(all_are(pinned + n, 64, 0) || all_are(pinned + n, 64, i), "a page");
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/*
 * An access to what is not there, or is read-only, fails; a local one as well. The queues of new queue pairs must not
 * be mapped there meanwhile.
 */
static void nothing_there(void)
{
	must(!mprotect(area, SIZE, PROT_READ), "mprotect");
	post(IBV_WR_RDMA_WRITE, pinned_mr->lkey, pinned, 64, mr->rkey, area);
	must(wait_status() == IBV_WC_REM_OP_ERR, "an RDMA WRITE to read-only pages");
	pair_new();
	must(!munmap(area, SIZE), "munmap");
	post(IBV_WR_RDMA_READ, pinned_mr->lkey, pinned, 64, mr->rkey, area);
	must(wait_status() == IBV_WC_REM_OP_ERR, "an RDMA READ of no memory");
	pages_replace();
	pair_new();
	must(!munmap(area, SIZE), "munmap");
	post(IBV_WR_RDMA_WRITE, mr->lkey, area, 64, pinned_mr->rkey, pinned);
	must(wait_status() == IBV_WC_LOC_PROT_ERR, "an RDMA WRITE from no memory");
	pages_replace();
	pair_new();
	transfer(IBV_WR_RDMA_WRITE, pinned_mr, pinned, SIZE, mr, area);
}

/* The program ends while many requests wait for pages. */
static void leave(void)
{
	int i;

	must(!madvise(area, SIZE, MADV_DONTNEED), "madvise");
	for (i = 0; i < 16; i++)
		post(i & 1 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, mr->lkey, area, PAGE, mr->rkey,
		     area + (i + 1) * 2 * PAGE);
	must(write(1, "paged\n", 6) == 6, "write");
	_exit(0);
}

int main(int argc, char **argv)
{
	int whole = argc > 1 && !strcmp(argv[1], "whole");

	rc_device_open(&dev);
	area = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pinned = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mr = whole ? ibv_reg_mr(dev.pd, NULL, SIZE_MAX, RIGHTS) : ibv_reg_mr(dev.pd, area, SIZE, RIGHTS);
	must(!!mr, "ibv_reg_mr");
	pinned_mr = ibv_reg_mr(dev.pd, pinned, SIZE, RIGHTS & ~IBV_ACCESS_ON_DEMAND);
	must(!!pinned_mr, "ibv_reg_mr");
	pair_new();
	pages_change();
	message();
	child();
	race();
	nothing_there();
	leave();
}

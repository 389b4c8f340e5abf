// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Registered memory whose protection the program changes: an adapter has the pages, not the page tables. With an
 * argument the program has a second thread, so that its memory is not shared with the daemon. Prints a line for each
 * case in which the peer's bytes are where they belong.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "must.h"
#include "rc.h"

#define SIZE   65536u
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *from, *to;
static struct ibv_qp *qp; /* connected to itself */

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	must(!!cq, "device");
}

static void connect_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct ibv_qp_attr attr;

	qp = ibv_create_qp(pd, &init);
	must(qp != NULL, "queue pair");
	attr = rc_attr_to(qp);
	attr.qp_access_flags = RIGHTS;
	errno = rc_to_rts(qp, &attr);
	must(!errno, "RTS");
}

/* Transfers a page between the regions, page @page of both. */
static enum ibv_wc_status transfer(enum ibv_wr_opcode opcode, size_t page, size_t size)
{
	size_t at = page * (size_t)sysconf(_SC_PAGESIZE);
	struct ibv_sge sge = { (uintptr_t)from->addr + at, (uint32_t)size, from->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)to->addr + at;
		wr.wr.atomic.rkey = to->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)to->addr + at;
		wr.wr.rdma.rkey = to->rkey;
	}
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	return wc.status;
}

static unsigned char *region(int value, struct ibv_mr **mr)
{
	unsigned char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(p != MAP_FAILED, "mmap");
	memset(p, value, SIZE);
	*mr = ibv_reg_mr(pd, p, SIZE, RIGHTS);
	must(!!*mr, "ibv_reg_mr");
	return p;
}

static void check(const char *what, int ok)
{
	printf("%s%s\n", what, ok ? "" : ": no");
	fflush(stdout);
	if (!ok)
		exit(1);
}

static void *wait_for_ever(void *arg)
{
	while (pause() < 0)
		;
	return arg;
}

int main(int argc, char **argv)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *a, *b, *file;
	enum ibv_wc_status status;
	pthread_t other;
	int fd;

	must(argc < 2 || !pthread_create(&other, NULL, wait_for_ever, NULL), "thread");
	open_device();
	connect_qp();
	a = region(1, &from);
	b = region(2, &to);

	mprotect(b, page, PROT_READ);
	check("RDMA WRITE to pages that are read-only", !transfer(IBV_WR_RDMA_WRITE, 0, page) && b[0] == 1);
	mprotect(b + page, page, PROT_NONE);
	status = transfer(IBV_WR_RDMA_WRITE, 1, page);
	mprotect(b + page, page, PROT_READ);
	check("to pages without access", !status && b[2 * page - 1] == 1);
	mprotect(a + 2 * page, page, PROT_NONE);
	check("from pages without access", !transfer(IBV_WR_RDMA_WRITE, 2, page) && b[2 * page] == 1);
	mprotect(a + 3 * page, page, PROT_READ);
	check("RDMA READ", !transfer(IBV_WR_RDMA_READ, 3, page) && a[3 * page] == 2);
	mprotect(b + 3 * page, page, PROT_READ);
	check("FETCH & ADD", !transfer(IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 8) && b[3 * page] == 3);

	fd = memfd_create("file", MFD_CLOEXEC);
	must(fd >= 0 && !ftruncate(fd, (off_t)page), "memfd");
	file = mmap(b + 4 * page, page, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
	must(file == b + 4 * page, "mmap");
	transfer(IBV_WR_RDMA_WRITE, 4, page);
	check("a file that is mapped there now has no byte of it", !file[0] && !memcmp(file, file + 1, page - 1));
	return 0;
}

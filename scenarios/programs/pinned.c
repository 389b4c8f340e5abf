// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory that is a fixed buffer of io_uring as well as a memory region: the kernel has pinned its pages, and reads a
 * file into them. Argument: whether the buffer is registered "before" or "after" the region. Prints a line when the
 * bytes are there.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "must.h"

#define BYTES 65536

struct uring {
	int fd;
	char *sq;
	const char *cq;
	struct io_uring_sqe *sqe;
	struct io_uring_params at;
};

static void *uring_map(const struct uring *u, size_t len, off_t at)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, at);

	must(p != MAP_FAILED, "the rings of io_uring");
	return p;
}

static void uring_open(struct uring *u)
{
	memset(u, 0, sizeof(*u));
	u->fd = (int)syscall(SYS_io_uring_setup, 1, &u->at);
	must(u->fd >= 0, "io_uring_setup");
	u->sq = uring_map(u, u->at.sq_off.array + u->at.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	u->cq = uring_map(u, u->at.cq_off.cqes + u->at.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	u->sqe = uring_map(u, u->at.sq_entries * sizeof(*u->sqe), IORING_OFF_SQES);
}

static void uring_register(const struct uring *u, void *p)
{
	struct iovec iov = { p, BYTES };

	must(!syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_BUFFERS, &iov, 1), "IORING_REGISTER_BUFFERS");
}

/* Reads @p from the start of the file. Returns the result of the request. */
static int uring_read(const struct uring *u, int file, void *p)
{
	const struct io_uring_cqe *cqe = (const void *)(u->cq + u->at.cq_off.cqes);

	memset(u->sqe, 0, sizeof(*u->sqe));
	u->sqe->opcode = IORING_OP_READ_FIXED;
	u->sqe->fd = file;
	u->sqe->addr = (uintptr_t)p;
	u->sqe->len = BYTES;
	__atomic_store_n((unsigned *)(void *)(u->sq + u->at.sq_off.tail), 1, __ATOMIC_RELEASE);
	must(syscall(SYS_io_uring_enter, u->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1, "io_uring_enter");
	return cqe->res;
}

int main(int argc, char **argv)
{
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(devices[0]);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	int file = memfd_create("file", MFD_CLOEXEC), before = argc > 1 && !strcmp(argv[1], "before");
	static char bytes[BYTES];
	struct uring u;

	memset(bytes, 'f', sizeof(bytes));
	must(write(file, bytes, sizeof(bytes)) == sizeof(bytes), "write");
	memset(p, 'p', BYTES);
	uring_open(&u);
	if (before)
		uring_register(&u, p);
	must(ibv_reg_mr(pd, p, BYTES, IBV_ACCESS_LOCAL_WRITE) != NULL, "ibv_reg_mr");
	if (!before)
		uring_register(&u, p);
	must(uring_read(&u, file, p) == BYTES, "IORING_OP_READ_FIXED");
	puts(memcmp(p, bytes, BYTES) ? "other bytes" : "the file's bytes");
	return 0;
}

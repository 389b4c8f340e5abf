// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program that attacks the daemon and the programs of its host: hostile MODE SEED. Exits with 0 if all invalid
 * requests were rejected, and otherwise prints the first failure.
 */
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "emu/host/proto.h"
#include "emu/lib/rights.h"
#include "emu/lib/rlimit.h"
#include "harness/hostile/draw.h"

#define WILD_NS 1500000000ull

static unsigned int wrong;

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static int device(void)
{
	int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		perror("uverbs0");
		exit(1);
	}
	return fd;
}

/* A uverbs command; @body begins with the response's address if it has a response. Returns the result of write(). */
static ssize_t command(int fd, uint32_t number, void *body, size_t len, void *out, size_t out_len)
{
	uint8_t msg[1024];
	struct ib_uverbs_cmd_hdr hdr = {
		.command = number,
		.in_words = (uint16_t)((sizeof(hdr) + len) / 4),
		.out_words = (uint16_t)(out_len / 4),
	};
	uint64_t to = (uintptr_t)out;

	if (out_len)
		memcpy(body, &to, sizeof(to));
	memcpy(msg, &hdr, sizeof(hdr));
	memcpy(msg + sizeof(hdr), body, len);
	return write(fd, msg, sizeof(hdr) + len);
}

static void refused(ssize_t n, const char *what, uint32_t handle)
{
	if (n < 0)
		return;
	wrong++;
	printf("%s %#x was accepted\n", what, handle);
}

/* Handles and keys that this program does not own, some of another program. */
static void handles(void)
{
	static const struct {
		const char *what;
		uint32_t number;
		size_t len, at, out; /* at: offset of the handle */
	} cmds[] = {
		{ "dealloc_pd", IB_USER_VERBS_CMD_DEALLOC_PD, 4, 0, 0 },
		{ "dereg_mr", IB_USER_VERBS_CMD_DEREG_MR, 4, 0, 0 },
		{ "dealloc_mw", IB_USER_VERBS_CMD_DEALLOC_MW, 4, 0, 0 },
		{ "destroy_ah", IB_USER_VERBS_CMD_DESTROY_AH, 4, 0, 0 },
		{ "destroy_cq", IB_USER_VERBS_CMD_DESTROY_CQ, 16, 8, 8 },
		{ "destroy_qp", IB_USER_VERBS_CMD_DESTROY_QP, 16, 8, 4 },
		{ "destroy_srq", IB_USER_VERBS_CMD_DESTROY_SRQ, 16, 8, 4 },
		{ "modify_qp", IB_USER_VERBS_CMD_MODIFY_QP, sizeof(struct ib_uverbs_modify_qp),
		  offsetof(struct ib_uverbs_modify_qp, qp_handle), 0 },
		{ "attach_mcast", IB_USER_VERBS_CMD_ATTACH_MCAST, 24, 16, 0 },
	};
	uint8_t body[256], out[256];
	uint32_t i, k, handle;
	int fd = device();

	for (i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		for (k = 0; k < 3000; k++) {
			handle = k < 1000 ? k : k < 2000 ? draw() % 64 << 8 | draw() % 256 : draw();
			memset(body, 0, sizeof(body));
			memcpy(body + cmds[i].at, &handle, 4);
			refused(command(fd, cmds[i].number, body, cmds[i].len, out, cmds[i].out), cmds[i].what, handle);
		}
	}
	close(fd);
}

static void must(ssize_t n, const char *what)
{
	if (n >= 0)
		return;
	perror(what);
	exit(1);
}

/* Creates queues, then writes random values to all shared memory. */
static void rings(void)
{
	static uint8_t arena[65536];
	struct ib_uverbs_alloc_pd pd_in = { 0 };
	struct ib_uverbs_alloc_pd_resp pd;
	struct ib_uverbs_create_cq cq_in = { .cqe = 255, .comp_channel = -1 };
	struct ib_uverbs_reg_mr mr_in = { .start = (uintptr_t)arena,
					  .hca_va = (uintptr_t)arena,
					  .length = sizeof(arena) };
	struct ib_uverbs_reg_mr_resp mr;
	struct ib_uverbs_modify_qp m = { .qkey = 1, .port_num = 1 };
	uint8_t cq[256], qp[256];
	uint64_t end = clock_ns() + WILD_NS;
	int fd = device(), i, k;
	struct uv_shared *s;
	uint32_t *words;

	must(command(fd, IB_USER_VERBS_CMD_ALLOC_PD, &pd_in, sizeof(pd_in), &pd, sizeof(pd)), "alloc_pd");
	mr_in.pd_handle = pd.pd_handle;
	mr_in.access_flags = 15;
	must(command(fd, IB_USER_VERBS_CMD_REG_MR, &mr_in, sizeof(mr_in), &mr, sizeof(mr)), "reg_mr");
	must(command(fd, IB_USER_VERBS_CMD_CREATE_CQ, &cq_in, sizeof(cq_in), cq, 64), "create_cq");
	for (i = 0; i < 8; i++) {
		struct ib_uverbs_create_qp qp_in = { .pd_handle = pd.pd_handle,
						     .max_send_wr = 63,
						     .max_recv_wr = 63,
						     .max_send_sge = 4,
						     .max_recv_sge = 4,
						     .qp_type = 4 };

		memcpy(&qp_in.send_cq_handle, cq, 4);
		memcpy(&qp_in.recv_cq_handle, cq, 4);
		must(command(fd, IB_USER_VERBS_CMD_CREATE_QP, &qp_in, sizeof(qp_in), qp, 128), "create_qp");
		memcpy(&m.qp_handle, qp, 4);
		for (k = 0; k < 3; k++) {
			static const uint32_t masks[] = { 0x71, 0x1, 0x10001 };

			m.qp_state = (uint8_t)(k + 1);
			m.attr_mask = masks[k];
			must(command(fd, IB_USER_VERBS_CMD_MODIFY_QP, &m, sizeof(m), NULL, 0), "modify_qp");
		}
	}
	s = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	words = (uint32_t *)s;
	while (clock_ns() < end) {
		for (i = 0; i < 256; i++) {
			uint32_t at = draw() % (1 << 18), v = draw(); /* 1 MiB: shared memory, then the rings */

			words[at] = v & 1 ? v : v & 2 ? mr.lkey : v & 4 ? v % 16 : v % 256;
		}
		memset(s->doorbell, 0xff, sizeof(s->doorbell));
		__atomic_store_n(&s->rung, 1, __ATOMIC_SEQ_CST);
	}
	close(fd);
}

static int reach(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", getenv("MUSLIN_SOCKET"));
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Requests that are truncated, of unknown types, or with unexpected descriptors, and inconsistent data of the host. */
static void truncated(void)
{
	static uint8_t msg[UV_MESSAGE_MAX];
	int i, k, fd, null = open("/dev/null", O_RDWR);

	for (i = 0; i < 600; i++) {
		struct uv_request req = { .op = draw() % 8, .arg = draw() };
		RIGHTS_CONTROL(control, 16) = { 0 };
		struct iovec iov = { msg, draw() % (draw() % 4 ? 256 : sizeof(msg)) };
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
		int fds[16];

		fd = reach();
		if (fd < 0)
			continue;
		for (k = 0; k < (int)iov.iov_len; k++)
			msg[k] = k < 256 ? (uint8_t)draw() : 0;
		memcpy(msg, &req, sizeof(req));
		if (i % 3 == 0 && iov.iov_len > sizeof(req) + sizeof(struct uv_open)) {
			struct uv_open o = { .kind = draw() % UV_KINDS, .unit = draw() % 3 };

			snprintf(o.host, sizeof(o.host), "%s", i % 2 ? getenv("MUSLIN_HOST") : "nobody");
			memcpy(msg + sizeof(req), &o, sizeof(o));
			iov.iov_len = sizeof(req) + sizeof(o);
			memset(msg, 0, 4);
		}
		for (k = 0; k < 16; k++)
			fds[k] = null;
		rights_put(&m, control, fds, 16);
		for (k = 0; k < 3; k++)
			sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
		close(fd);
	}
}

/* Exits while the daemon works for it: after its request, or killed with full queues. */
static void vanishing(void)
{
	int i, status;

	for (i = 0; i < 200; i++) {
		pid_t pid = fork();

		if (!pid) {
			int fd = device();
			struct ib_uverbs_alloc_pd in = { 0 };
			struct ib_uverbs_alloc_pd_resp out;

			if (i % 2)
				kill(getpid(), SIGKILL);
			command(fd, IB_USER_VERBS_CMD_ALLOC_PD, &in, sizeof(in), &out, sizeof(out));
			_exit(0);
		}
		if (i % 5 == 0)
			kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
}

/* Opens more files than the daemon can, and keeps them for a while. */
static void exhaustion(void)
{
	int i, k;
	pid_t pid[8];

	for (i = 0; i < 8; i++) {
		pid[i] = fork();
		if (pid[i])
			continue;
		rlimit_raise_files();
		for (k = 0; k < 1000; k++) {
			if (k % 4)
				reach();
			else
				open("/dev/infiniband/uverbs0", O_RDWR);
		}
		usleep(300000);
		_exit(0);
	}
	for (i = 0; i < 8; i++)
		waitpid(pid[i], NULL, 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} modes[] = { { "handles", handles },
		      { "rings", rings },
		      { "truncated", truncated },
		      { "vanishing", vanishing },
		      { "exhaustion", exhaustion } };
	size_t i;

	state = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	for (i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name))
			continue;
		modes[i].fn();
		printf("%s: done, %u wrong\n", argv[1], wrong);
		return wrong != 0;
	}
	fprintf(stderr, "usage: hostile MODE [SEED]\n");
	return 2;
}

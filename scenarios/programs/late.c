// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Operations of a program on its memory that must not affect other programs. The first argument selects one:
 *
 *   stuck   registers pages that are never provided (userfaultfd), which hangs; before, it prints
 *           "userfaultfd: registering"
 *   child   registers memory in a child, on the device that the parent has opened, and writes to it by RDMA
 *   dereg   deregisters memory while writes to it are in flight, and prints how often it changed afterwards
 *   flush   claims full send queues of many queue pairs in ERR, repeatedly; prints "flushing"
 *   slow    writes to and reads from pages that are provided late, one after the other (userfaultfd), and compares
 *           the bytes, until SIGUSR1
 *   locked  reads from its rdma_cm channel into a page that is never provided, which locks the channel;
 *           prints "reading"
 *   copies  the same as slow where a thread of the program copies for the daemon, slowly (slow_copies.c)
 *   beside  registers memory whose copy never ends, while its other threads and children work; prints each step
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rc.h"

#define SIZE (64u << 10)
#define MANY 100
#define PAGE ((unsigned)sysconf(_SC_PAGESIZE)) /* at most SIZE */
#define SLOW 20000000                          /* ns until a page is provided */
#define FULL IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Memory is not shared with the daemon while a program has threads. */
static void start_thread(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, idle, NULL))
		die("no thread");
}

static void side_open(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	s->ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	s->pd = s->ctx ? ibv_alloc_pd(s->ctx) : NULL;
	s->cq = s->pd ? ibv_create_cq(s->ctx, 4096, NULL, NULL, 0) : NULL;
	if (!s->cq)
		die("no device");
}

static struct ibv_qp *qp_make_type(const struct side *s, unsigned depth, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr a = {
		.send_cq = s->cq, .recv_cq = s->cq, .qp_type = type, .cap = { depth, 1, 1, 1, 0 }
	};
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = FULL };
	struct ibv_qp *qp = ibv_create_qp(s->pd, &a);

	if (!qp || ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("no queue pair");
	return qp;
}

static struct ibv_qp *qp_make(const struct side *s, unsigned depth)
{
	return qp_make_type(s, depth, IBV_QPT_UC);
}

static void qp_connect(const struct side *s, struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 12, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1
	};
	bool rc = qp->qp_type == IBV_QPT_RC;
	struct ibv_port_attr port;
	struct ibv_qp_attr rtr;

	if (ibv_query_port(s->ctx, 1, &port))
		die("no port");
	rtr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = peer->qp_num,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 12,
				    .ah_attr = { .dlid = port.lid, .port_num = 1 } };
	if (ibv_modify_qp(qp, &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) ||
	    ibv_modify_qp(
		    qp, &rts,
		    IBV_QP_STATE | IBV_QP_SQ_PSN |
			    (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)))
		die("not connected");
}

static void post_rdma(struct ibv_qp *qp, enum ibv_wr_opcode opcode, void *from, uint32_t lkey, unsigned len,
		      uint64_t to, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)from, len, lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = opcode,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.rdma = { to, rkey } };

	if (ibv_post_send(qp, &wr, &bad))
		die("not posted");
}

static void post_write(struct ibv_qp *qp, void *from, uint32_t lkey, unsigned len, uint64_t to, uint32_t rkey)
{
	post_rdma(qp, IBV_WR_RDMA_WRITE, from, lkey, len, to, rkey);
}

static void completions_drain(struct ibv_cq *cq, unsigned n)
{
	struct ibv_wc wc;
	int got;

	while (n) {
		got = ibv_poll_cq(cq, 1, &wc);
		if (got > 0 && wc.status)
			die("failed: %s", ibv_wc_status_str(wc.status));
		n -= got > 0;
	}
}

static char *pages(void)
{
	char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("no memory");
	return p;
}

/* From now on an access to these pages blocks until the reader of the returned descriptor provides them. */
static int pages_withhold(char *p)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { (uintptr_t)p, SIZE }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range)) {
		printf("userfaultfd: refused\n");
		exit(0);
	}
	return fd;
}

static void stuck(void)
{
	char *p = pages();
	struct side s;

	pages_withhold(p);
	start_thread();
	side_open(&s);
	printf("userfaultfd: registering\n");
	fflush(stdout);
	ibv_reg_mr(s.pd, p, SIZE, FULL);
	die("registered what is not there");
}

/* Each byte of an unwritten page has the page's number. */
static void *pages_provide(void *arg)
{
	const struct timespec late = { .tv_nsec = SLOW };
	static char page[SIZE];
	struct uffd_msg msg;
	int fd = *(int *)arg;

	while (read(fd, &msg, sizeof(msg)) == sizeof(msg)) {
		struct uffdio_copy c = { .dst = msg.arg.pagefault.address & ~(uint64_t)(PAGE - 1),
					 .src = (uintptr_t)page,
					 .len = PAGE };

		nanosleep(&late, NULL);
		memset(page, (int)(c.dst / PAGE), PAGE);
		ioctl(fd, UFFDIO_COPY, &c);
	}
	return NULL;
}

static unsigned pages_differ(const char *p, const char *late)
{
	unsigned i, n = 0;

	for (i = 0; i < SIZE; i++)
		n += p[i] != (char)((uintptr_t)(late + i) / PAGE);
	return n;
}

static void late_refill(char *late, int fd)
{
	unsigned i;

	if (fd >= 0)
		madvise(late, SIZE, MADV_DONTNEED);
	for (i = 0; fd < 0 && i < SIZE; i++)
		late[i] = (char)((uintptr_t)(late + i) / PAGE);
}

static volatile sig_atomic_t told;

static void end_told(int signal)
{
	told = signal;
}

static void slow(bool copies)
{
	char *late = pages(), *own = pages(), *back = pages();
	struct ibv_mr *late_mr, *own_mr, *back_mr;
	unsigned round, wrong = 0;
	struct ibv_qp *a, *b;
	struct side s;
	pthread_t t;
	int fd = copies ? -1 : pages_withhold(late);

	if (!copies && pthread_create(&t, NULL, pages_provide, &fd))
		die("no thread");
	side_open(&s);
	a = qp_make_type(&s, 4, IBV_QPT_RC);
	b = qp_make_type(&s, 4, IBV_QPT_RC);
	qp_connect(&s, a, b);
	qp_connect(&s, b, a);
	signal(SIGUSR1, end_told);
	printf("slow\n");
	fflush(stdout);
	late_mr = ibv_reg_mr(s.pd, late, SIZE, FULL);
	own_mr = ibv_reg_mr(s.pd, own, SIZE, FULL);
	back_mr = ibv_reg_mr(s.pd, back, SIZE, FULL);
	if (!late_mr || !own_mr || !back_mr)
		die("not registered");
	for (round = 0; copies ? !round : !told; round++) {
		late_refill(late, fd);
		post_rdma(a, IBV_WR_RDMA_READ, back, back_mr->lkey, SIZE, (uintptr_t)late, late_mr->rkey);
		completions_drain(s.cq, 1);
		wrong += pages_differ(back, late);
		late_refill(late, fd);
		memset(own, 'a' + (int)(round % 26), SIZE);
		post_write(a, own, own_mr->lkey, SIZE, (uintptr_t)late, late_mr->rkey);
		completions_drain(s.cq, 1);
		wrong += memcmp(own, late, SIZE) != 0;
		late_refill(late, fd);
		post_write(a, late, late_mr->lkey, SIZE, (uintptr_t)own, own_mr->rkey);
		completions_drain(s.cq, 1);
		wrong += pages_differ(own, late);
	}
	printf("%u bytes wrong\n", wrong);
}

static void *register_late(void *side)
{
	if (!ibv_reg_mr(((struct side *)side)->pd, pages(), SIZE, FULL))
		die("not registered");
	die("registered what is not there");
}

unsigned slow_copies(void) __attribute__((weak)); /* of slow_copies.c */

/* Sends a message from one queue pair of the device to another. */
static void message_send(const struct side *s)
{
	struct ibv_qp *a = qp_make_type(s, 4, IBV_QPT_RC), *b = qp_make_type(s, 4, IBV_QPT_RC);
	char *from = pages(), *to = pages();
	struct ibv_mr *from_mr, *to_mr;

	from_mr = ibv_reg_mr(s->pd, from, SIZE, FULL);
	to_mr = ibv_reg_mr(s->pd, to, SIZE, FULL);
	if (!from_mr || !to_mr)
		die("not registered");
	memset(from, 'm', SIZE);
	qp_connect(s, a, b);
	qp_connect(s, b, a);
	post_write(a, from, from_mr->lkey, SIZE, (uintptr_t)to, to_mr->rkey);
	completions_drain(s->cq, 1);
	if (memcmp(from, to, SIZE) || ibv_destroy_qp(a) || ibv_destroy_qp(b) || ibv_dereg_mr(from_mr) ||
	    ibv_dereg_mr(to_mr))
		die("the message");
}

static void beside(void)
{
	struct side late, other;
	pthread_t t;
	pid_t pid;
	int status = 1;

	side_open(&late);
	if (!slow_copies || pthread_create(&t, NULL, register_late, &late))
		die("no slow copies, or no thread");
	while (!slow_copies())
		sched_yield();
	if (ibv_destroy_qp(qp_make(&late, 4)))
		die("the same context");
	printf("the same context goes on\n");
	side_open(&other);
	message_send(&other);
	printf("another context goes on\n");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		side_open(&other);
		_exit(ibv_destroy_qp(qp_make(&late, 4)) || ibv_destroy_qp(qp_make(&other, 4)));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("the child: %d", status);
	printf("a child goes on\n");
}

static int child_run(const struct side *s, char *p)
{
	struct ibv_qp *a = qp_make(s, 4), *b = qp_make(s, 4);
	struct ibv_mr *mr;

	memset(p, 'c', SIZE);
	memset(p, 'X', 4096);
	mr = ibv_reg_mr(s->pd, p, SIZE, FULL);
	if (!mr)
		die("the child cannot register");
	qp_connect(s, a, b);
	qp_connect(s, b, a);
	post_write(a, p, mr->lkey, 4096, (uintptr_t)p + 8192, mr->rkey);
	completions_drain(s->cq, 1);
	while (*(volatile char *)(p + 8192 + 4095) == 'c')
		;
	printf("the child holds %c\n", p[8192]);
	fflush(stdout);
	return 0;
}

static void child(bool threads)
{
	char *p = pages();
	struct side s;
	pid_t pid;

	side_open(&s);
	memset(p, 'p', SIZE);
	pid = fork();
	if (!pid) {
		if (threads)
			start_thread();
		_exit(child_run(&s, p));
	}
	waitpid(pid, NULL, 0);
	printf("the parent holds %c\n", p[8192]);
}

static void dereg(void)
{
	char *from = pages(), *to = pages();
	unsigned round, n, i, late = 0;
	struct ibv_qp *a, *b;
	struct ibv_mr *mr;
	struct side s;

	start_thread();
	side_open(&s);
	a = qp_make(&s, 64);
	b = qp_make(&s, 64);
	qp_connect(&s, a, b);
	qp_connect(&s, b, a);
	memset(from, 1, SIZE);
	mr = ibv_reg_mr(s.pd, from, SIZE, FULL);
	for (round = 0; round < 2000; round++) {
		struct ibv_mr *sink = ibv_reg_mr(s.pd, to, SIZE, FULL);

		if (!mr || !sink)
			die("not registered");
		n = 1 + round % 8;
		for (i = 0; i < n; i++)
			post_write(a, from, mr->lkey, 1000, (uintptr_t)to + i * 4096, sink->rkey);
		for (i = 0; i < round % 50 * 40; i++)
			__asm__ volatile("");
		ibv_dereg_mr(sink);
		memset(to, 2, SIZE);
		completions_drain(s.cq, n);
		for (i = 0; i < n; i++)
			late += to[i * 4096] != 2;
	}
	printf("%u written late\n", late);
}

/* The producer index is behind the consumer's: queues full of entries that were never written. */
static void flush(void)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge none = { 0 };
	struct ibv_qp *qp[MANY];
	struct side s;
	unsigned i, k;

	side_open(&s);
	for (i = 0; i < MANY; i++) {
		qp[i] = qp_make(&s, 16000);
		ibv_modify_qp(qp[i], &err, IBV_QP_STATE);
	}
	printf("flushing\n");
	fflush(stdout);
	for (;;) {
		for (i = 0; i < MANY; i++) {
			for (k = 0; k < 16000; k++) {
				struct ibv_send_wr *bad, wr = { .sg_list = &none, .opcode = IBV_WR_RDMA_WRITE };

				if (ibv_post_send(qp[i], &wr, &bad))
					break;
			}
		}
	}
}

static struct rdma_event_channel *channel;

static void *channel_read(void *page)
{
	recv(channel->fd, page, 1, 0);
	return NULL;
}

/* The channel has an event. A read of it blocks in the kernel, with a lock that the daemon needs, too. */
static void locked(const char *ip)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct uffd_msg fault;
	struct rdma_cm_id *id;
	struct pollfd p;
	char *page = pages();
	int fd = pages_withhold(page);
	pthread_t t;

	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) || inet_pton(AF_INET, ip, &to.sin_addr) != 1 ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000))
		die("rdma_cm");
	p = (struct pollfd){ .fd = channel->fd, .events = POLLIN };
	if (poll(&p, 1, 10000) != 1 || pthread_create(&t, NULL, channel_read, page) ||
	    read(fd, &fault, sizeof(fault)) != sizeof(fault))
		die("no event, or no fault");
	printf("reading\n");
	fflush(stdout);
	if (rdma_destroy_id(id)) /* which discards the event */
		die("rdma_destroy_id");
	printf("destroyed\n");
	fflush(stdout);
	pause();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "stuck"))
		stuck();
	else if (!strcmp(what, "child"))
		child(argc > 2);
	else if (!strcmp(what, "dereg"))
		dereg();
	else if (!strcmp(what, "flush"))
		flush();
	else if (!strcmp(what, "slow"))
		slow(false);
	else if (!strcmp(what, "copies"))
		slow(true);
	else if (!strcmp(what, "beside"))
		beside();
	else if (!strcmp(what, "locked") && argc > 2)
		locked(argv[2]);
	else
		die("stuck, child, dereg, flush, slow, copies, beside or locked");
	return 0;
}

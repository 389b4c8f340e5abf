// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program with registered memory forks: forks KIND. Prints "KIND: ok" if the child has the memory as of that
 * moment, and neither process sees later writes of the other. Other kinds: "dontfork", where the child does not get
 * the memory at all, as with ibv_fork_init() of libraries without support of copy on fork; "wipe", where it gets
 * zeroes; "threads", where threads of the child use the device of the parent concurrently; "vfork", where the child
 * does; "inherited", where the child registers its own memory on the device of the parent, at an address where the
 * parent has other data, and writes to it; "chroot", the same after chroot() to an empty directory; "linker", where a
 * lock of the dynamic linker is held during fork(), as by another thread, and the child opens a device file;
 * "allocator", with allocator.so, whose lock another thread has while it calls madvise(); "waiting", where a thread of
 * the parent waits for an event of rdma_cm, and the child closes the channel; "numbers", where a thread uses the
 * numbers of the library's descriptors during fork().
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <link.h>
#include <linux/sched.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES   512u /* every second one is read-only: so there are as many mappings */
#define THREADS 16
#define FIRST   512 /* of these numbers are those of the library */
#define LAST    532

static struct ibv_context *context;
static struct ibv_pd *pd;
static volatile unsigned char *memory;
static unsigned page; /* bytes */
static int to_child[2];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		die("no device");
	context = ibv_open_device(list[0]);
	pd = context ? ibv_alloc_pd(context) : NULL;
	if (!pd)
		die("device");
}

/* Is the memory shared with the daemon? Otherwise there is nothing to test. */
static int is_shared(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512];
	int shared = 0;

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= (unsigned long)memory &&
		    (unsigned long)memory < end)
			shared = strstr(line, "muslin-memory") != NULL;
	fclose(f);
	return shared;
}

static void register_memory(void)
{
	void *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	memory = p;
	memset(p, 1, PAGES * page);
	if (!ibv_reg_mr(pd, p, PAGES * page, IBV_ACCESS_LOCAL_WRITE))
		die("ibv_reg_mr");
	if (!is_shared())
		die("the memory is not shared");
}

static void protect(void)
{
	unsigned i;

	for (i = 1; i < PAGES; i += 2)
		if (mprotect((void *)(memory + i * page), page, i % 4 == 1 ? PROT_READ : PROT_NONE))
			die("mprotect");
}

static void unprotect(void)
{
	if (mprotect((void *)memory, PAGES * page, PROT_READ | PROT_WRITE))
		die("mprotect");
}

static int others(unsigned char value)
{
	unsigned i, n = 0;

	for (i = 0; i < PAGES * page; i += page / 2)
		n += memory[i] != value;
	return (int)n;
}

/* Must see no write of the parent, and writes itself. */
static int child(void *arg)
{
	const int *late = arg;
	char byte;
	int wrong;

	if (read(to_child[0], &byte, 1) != 1)
		_exit(2);
	if (*late) /* the first intercepted call */
		close(open("/dev/infiniband/uverbs0", O_RDWR));
	unprotect();
	wrong = *late ? 0 : others(1);
	memset((void *)memory, 3, PAGES * page);
	_exit(wrong || others(3));
}

static void parent(const char *kind, pid_t pid)
{
	unsigned i;
	int status;

	if (pid < 0)
		die(kind);
	for (i = 0; i < PAGES; i += 2)
		memset((void *)(memory + i * page), 2, page);
	if (write(to_child[1], "", 1) != 1 || waitpid(pid, &status, __WALL) != pid)
		die("wait");
	unprotect();
	for (i = 0; i < PAGES * page; i++)
		if (memory[i] != (i / page % 2 ? 1 : 2))
			break;
	printf("%s: %s%s\n", kind, status ? "the child sees what the parent has written " : "",
	       i < PAGES * page ? "the parent sees what the child has written"
	       : status         ? ""
				: "ok");
}

static pid_t raw_fork(void)
{
#ifdef __x86_64__
	long pid;

	__asm__ volatile("syscall" : "=a"(pid) : "a"(SYS_clone), "D"(SIGCHLD), "S"(0), "d"(0) : "rcx", "r11", "memory");
	return (pid_t)pid;
#else
	return fork();
#endif
}

static void snapshot(const char *kind)
{
	static char stack[65536] __attribute__((aligned(64)));
	struct clone_args args = { .exit_signal = SIGCHLD };
	int late = !strcmp(kind, "raw");
	pid_t pid;

	register_memory();
	protect();
	if (!strcmp(kind, "fork"))
		pid = fork();
	else if (!strcmp(kind, "_Fork"))
		pid = _Fork();
	else if (!strcmp(kind, "clone"))
		pid = clone(child, stack + sizeof(stack), SIGCHLD, &late);
	else if (!strcmp(kind, "syscall"))
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	else if (!strcmp(kind, "clone3"))
		pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	else
		pid = raw_fork();
	if (!pid)
		child(&late);
	parent(kind, pid);
}

static void dontfork(void)
{
	unsigned char vec[PAGES];
	int status;
	pid_t pid;

	register_memory();
	if (madvise((void *)memory, PAGES * page, MADV_DONTFORK))
		die("madvise");
	pid = fork();
	if (!pid)
		_exit(mincore((void *)memory, PAGES * page, vec) == 0 || errno != ENOMEM);
	if (waitpid(pid, &status, 0) != pid)
		die("wait");
	printf("dontfork: %s\n", status ? "the child has the memory" : "ok");
}

/* Pages that a child has as zeroes, of the first @n and of all others, which have 1 in the parent. */
static int wiped(unsigned n)
{
	unsigned i, wrong = 0;

	for (i = 0; i < PAGES * page; i += page / 2)
		wrong += memory[i] != (i < n * page ? 0 : 1);
	return !wrong;
}

static int child_has(unsigned n)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (!wiped(n))
			_exit(1);
		memset((void *)memory, 1, PAGES * page);
		pid = fork(); /* it holds in the child, too */
		if (!pid)
			_exit(!wiped(n));
		_exit(waitpid(pid, &status, 0) != pid || status ? 2 : 0);
	}
	return waitpid(pid, &status, 0) == pid && !status && !wiped(1) && wiped(0);
}

static void advise(unsigned first, unsigned n, int advice)
{
	if (madvise((void *)(memory + first * page), n * page, advice))
		die("madvise");
}

/* Before and after the memory is registered, which makes it shared only afterwards. */
static void wipe(void)
{
	const unsigned n = PAGES / 2;
	const char *wrong = NULL;
	void *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	register_memory();
	advise(0, PAGES, MADV_WIPEONFORK);
	if (!child_has(PAGES))
		wrong = "all";
	advise(n, PAGES - n, MADV_KEEPONFORK);
	if (!wrong && !child_has(n))
		wrong = "a part is kept";
	advise(0, PAGES, MADV_KEEPONFORK);
	if (!wrong && !child_has(0))
		wrong = "all is kept";
	advise(1, 1, MADV_DONTFORK); /* several areas: other mappings between the shared ones */
	advise(1, 1, MADV_DOFORK);
	if (mmap((void *)(memory + page), page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		die("mmap");
	memset((void *)(memory + page), 1, page);
	advise(0, n, MADV_WIPEONFORK);
	if (!wrong && !child_has(n))
		wrong = "shared and private";
	if (p == MAP_FAILED)
		die("mmap");
	memory = p;
	memset(p, 1, PAGES * page);
	advise(0, n, MADV_WIPEONFORK);
	if (!ibv_reg_mr(pd, p, PAGES * page, IBV_ACCESS_LOCAL_WRITE))
		die("ibv_reg_mr");
	if (!wrong && !child_has(n))
		wrong = "before the registration";
	printf("wipe: %s\n", wrong ? wrong : "ok");
}

/* Uses the device, and its own descriptors, which no other thread may close. */
static void *use(void *arg)
{
	int i, fd, wrong = 0;
	struct stat before, after;
	struct ibv_pd *own;

	pthread_barrier_wait(arg);
	own = ibv_alloc_pd(context);
	wrong += !own;
	for (i = 0; i < 100; i++) {
		fd = eventfd(0, EFD_CLOEXEC);
		wrong += fd < 0 || fstat(fd, &before);
		sched_yield();
		wrong += fstat(fd, &after) || before.st_ino != after.st_ino || close(fd);
	}
	wrong += own && ibv_dealloc_pd(own);
	return (void *)(long)wrong;
}

static int use_at_once(void)
{
	pthread_barrier_t all;
	pthread_t t[THREADS];
	long wrong = 0;
	void *one;
	int i;

	pthread_barrier_init(&all, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, use, &all);
	for (i = 0; i < THREADS; i++) {
		pthread_join(t[i], &one);
		wrong += (long)one;
	}
	return wrong != 0;
}

static void threads(void)
{
	int i, status, wrong = 0;
	pid_t pid;

	for (i = 0; i < 50; i++) {
		pid = fork();
		if (!pid)
			_exit(use_at_once());
		wrong += waitpid(pid, &status, 0) != pid || status;
	}
	printf("threads: %s\n", wrong ? "children have failed" : "ok");
}

/*
 * A child that shares the parent's memory cannot have a connection of its own: its call fails, and the parent's still
 * work.
 */
static void shared_child(void)
{
	struct ibv_port_attr attr;
	int status, wrong = 0;
	pid_t pid = vfork();

	if (!pid)
		_exit(ibv_query_port(context, 1, &attr) == 0);
	wrong += waitpid(pid, &status, 0) != pid || status;
	wrong += ibv_query_port(context, 1, &attr) || !ibv_alloc_pd(context);
	printf("vfork: %s\n", wrong ? "the device is of no use any more" : "ok");
}

/* A queue pair that is connected to itself. */
static struct ibv_qp *connect_to_itself(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_port_attr port;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	if (!qp || ibv_query_port(context, 1, &port) ||
	    ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("queue pair");
	a.qp_state = IBV_QPS_RTR;
	a.dest_qp_num = qp->qp_num;
	a.ah_attr.dlid = port.lid;
	a.ah_attr.port_num = 1;
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("RTR");
	a.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				  IBV_QP_MAX_QP_RD_ATOMIC))
		die("RTS");
	return qp;
}

/* By RDMA WRITE from the first page to the third one; all of the child's memory is 3 before. */
static int write_own_memory(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, 2, NULL, NULL, 0);
	struct ibv_mr *mr =
		ibv_reg_mr(pd, (void *)memory, PAGES * page, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = page };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n = 0;

	if (!cq || !mr)
		die("child");
	memset((void *)memory, 4, page);
	sge.lkey = mr->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)memory + 2 * page;
	wr.wr.rdma.rkey = mr->rkey;
	if (ibv_post_send(connect_to_itself(cq), &wr, &bad))
		die("post");
	while (!n)
		n = ibv_poll_cq(cq, 1, &wc);
	if (n < 0 || wc.status)
		die(n < 0 ? "poll" : ibv_wc_status_str(wc.status));
	return memory[2 * page] != 4 || memory[3 * page - 1] != 4 || memory[2 * page - 1] != 3 || memory[3 * page] != 3;
}

/* Both without a registration of the parent for the same addresses, and with one. */
static void inherited(void)
{
	int status, registered;
	pid_t pid;

	for (registered = 0; registered < 2; registered++) {
		if (registered)
			register_memory();
		else
			memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			die("mmap");
		memset((void *)memory, 1, PAGES * page);
		pid = fork();
		if (!pid) {
			memset((void *)memory, 3, PAGES * page);
			_exit(write_own_memory());
		}
		if (waitpid(pid, &status, 0) != pid)
			die("wait");
		if (status || others(1)) {
			printf("inherited: %s has not what was written to its memory, registration %d of the parent\n",
			       status ? "the child" : "the parent", registered);
			return;
		}
	}
	printf("inherited: ok\n");
}

/* An unprivileged user does it in a user namespace. It stays accessible to the daemon. False: not permitted. */
static bool leave(void)
{
	char empty[] = "/tmp/chroot-XXXXXX";
	int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool left;

	if (tmp < 0 || !mkdtemp(empty))
		die("mkdtemp");
	left = !chroot(empty) || (!unshare(CLONE_NEWUSER) && !chroot(empty));
	if (unlinkat(tmp, empty + sizeof("/tmp"), AT_REMOVEDIR) || close(tmp))
		die("rmdir");
	if (left && (prctl(PR_SET_DUMPABLE, 1) || chdir("/")))
		die("chdir");
	return left;
}

static void chrooted(void)
{
	int status;
	pid_t pid;

	if (!leave()) {
		printf("chroot: not permitted\n");
		return;
	}
	memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	if (!pid) {
		memset((void *)memory, 3, PAGES * page);
		_exit(write_own_memory() || access("/", F_OK) || !access("/proc", F_OK));
	}
	if (waitpid(pid, &status, 0) != pid)
		die("wait");
	printf("chroot: %s\n", status ? "the child cannot use the device" : "ok");
}

/* A child of it: the lock stays locked there. */
static int fork_in_linker(struct dl_phdr_info *info, size_t size, void *arg)
{
	int status;
	pid_t pid;

	(void)info;
	(void)size;
	pid = fork();
	if (!pid) {
		alarm(20);
		_exit(open("/dev/infiniband/rdma_cm", O_RDWR) < 0);
	}
	*(int *)arg = waitpid(pid, &status, 0) != pid || status;
	return 1;
}

static void linker(void)
{
	int wrong = 1;

	dl_iterate_phdr(fork_in_linker, &wrong);
	printf("linker: %s\n", wrong ? "the child waits for the lock" : "ok");
}

static struct rdma_event_channel *channel;

static void *wait_for_event(void *arg)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(channel, &event);
	return arg;
}

/* Listens on a new channel. */
static int listens(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(7997) };
	struct rdma_cm_id *id;

	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	return !rdma_bind_addr(id, (struct sockaddr *)&any) && !rdma_listen(id, 1);
}

/* When the parent has closed the channel as well, the listener is gone, as at the last close in the kernel. */
static void waiting(void)
{
	int to_parent[2];
	pthread_t thread;
	char byte;
	pid_t pid;

	if (pipe(to_parent) || !listens() || pthread_create(&thread, NULL, wait_for_event, NULL))
		die("listen");
	usleep(100000); /* it waits */
	pid = fork();
	if (!pid) {
		alarm(20);
		close(to_child[1]);
		close(channel->fd);
		_exit(write(to_parent[1], "", 1) != 1 || read(to_child[0], &byte, 1) != 0);
	}
	if (pid < 0 || read(to_parent[0], &byte, 1) != 1)
		die("child");
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	close(channel->fd);
	printf("waiting: %s\n", listens() ? "ok" : "the child has the listener");
}

static volatile int forked;

/* The library moves its descriptors to other numbers. */
static void *use_numbers(void *arg)
{
	int file = memfd_create("file", MFD_CLOEXEC), n;

	while (!forked)
		for (n = FIRST; n < LAST && !forked; n++)
			if (dup2(file, n) != n || close(n))
				die("dup2");
	return arg;
}

/* Every second page is zero: the copy of sparse memory takes many system calls. others() reads a page twice. */
static void numbers(void)
{
	int i, status, wrong = 0;
	pthread_t thread;
	pid_t pid;

	register_memory();
	for (i = 0; i < (int)PAGES; i += 2)
		if (madvise((void *)(memory + (unsigned)i * page), page, MADV_DONTNEED))
			die("madvise");
	if (pthread_create(&thread, NULL, use_numbers, NULL))
		die("thread");
	for (i = 0; i < 200 && !wrong; i++) {
		pid = fork();
		if (!pid)
			_exit(others(1) != PAGES);
		wrong = waitpid(pid, &status, 0) != pid || status;
	}
	forked = 1;
	pthread_join(thread, NULL);
	printf("numbers: %s\n", wrong ? "the child does not have the memory" : "ok");
}

#pragma weak allocator_start
void allocator_start(void);

static void allocator(void)
{
	int i, status, wrong = 0;
	pid_t pid;

	register_memory();
	allocator_start();
	alarm(20);
	for (i = 0; i < 20; i++) {
		pid = fork();
		if (!pid)
			_exit(others(1));
		wrong += waitpid(pid, &status, 0) != pid || status;
	}
	printf("allocator: %s\n", wrong ? "children have failed" : "ok");
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = { { "dontfork", dontfork },  { "wipe", wipe },           { "threads", threads },
	      { "vfork", shared_child }, { "inherited", inherited }, { "chroot", chrooted },
	      { "waiting", waiting },    { "numbers", numbers },     { "allocator", allocator } };

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "fork";
	size_t i;

	page = (unsigned)sysconf(_SC_PAGESIZE);
	if (pipe(to_child))
		die("pipe");
	if (!strcmp(kind, "linker")) {
		linker(); /* before the device's functions are used */
		return 0;
	}
	open_device();
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kind, kinds[i].name))
			continue;
		kinds[i].run();
		return 0;
	}
	snapshot(kind);
	return 0;
}

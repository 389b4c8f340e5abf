// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Late memory and the end of its use: responses of commands, and moves that have not begun, while the thread that
 * executes moves is blocked. The test blocks it in process_vm_readv() or process_vm_writev().
 */
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "emu/hca/soft_queue.h"
#include "emu/host/fixture.h"
#include "emu/host/mover.h"
#include "emu/lib/passed.h"
#include "emu/lib/rights.h"
#include "emu/lib/row.h"

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n, const struct iovec *remote,
				unsigned long m, unsigned long flags);
ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n, const struct iovec *remote,
				 unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n, const struct iovec *remote,
				unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n, const struct iovec *remote,
				 unsigned long m, unsigned long flags);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool blocked, gone; /* gone: the process has no memory, as when it ends */
static u32 waiting;        /* calls that are blocked */
static u32 missed;         /* calls that found no memory */

static void block(bool on)
{
	pthread_mutex_lock(&lock);
	blocked = on;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void memory_take(void)
{
	pthread_mutex_lock(&lock);
	gone = true;
	missed = 0;
	pthread_mutex_unlock(&lock);
}

/* Waits until a call has found no memory. */
static void await_missed(void)
{
	pthread_mutex_lock(&lock);
	while (!missed)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

/* False: there is no memory. */
static bool block_wait(void)
{
	bool memory;

	pthread_mutex_lock(&lock);
	waiting++;
	pthread_cond_broadcast(&changed);
	while (blocked)
		pthread_cond_wait(&changed, &lock);
	waiting--;
	memory = !gone;
	missed += gone;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	errno = ESRCH;
	return memory;
}

/* Waits until the thread is blocked. */
static void await_blocked(void)
{
	pthread_mutex_lock(&lock);
	while (!waiting)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n, const struct iovec *remote,
				unsigned long m, unsigned long flags)
{
	return block_wait() ? __real_process_vm_readv(pid, local, n, remote, m, flags) : -1;
}

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n, const struct iovec *remote,
				 unsigned long m, unsigned long flags)
{
	ssize_t len = block_wait() ? __real_process_vm_writev(pid, local, n, remote, m, flags) : -1;
	int err = errno;

	pthread_mutex_lock(&lock);
	missed += len < 0 && err == EFAULT;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	errno = err;
	return len;
}

/* A byte of the program's memory. */
static u8 program_byte(u32 at)
{
	u8 byte = 0;
	struct iovec local = { &byte, 1 }, remote = { desk_arena + at, 1 };

	return __real_process_vm_readv(desk_program(), &local, 1, &remote, 1, 0) == 1 ? byte : 0xff;
}

static void program_fill(u32 at, u8 value, u32 len)
{
	u8 bytes[512];
	struct iovec local = { bytes, len }, remote = { desk_arena + at, len };

	memset(bytes, value, len);
	if (__real_process_vm_writev(desk_program(), &local, 1, &remote, 1, 0) != (ssize_t)len)
		abort();
}

#define LEN 256

/* Two queue pairs in the context of the program, connected with each other. */
static struct desk d;
static struct hca_ctx *ctx;
static struct hca_soft_cq *cq;
static struct hca_soft_wq *wq[2];
static u32 pdn, lkey, rkey;

static void qp_create(u32 i)
{
	struct hca_qp_init init = { .type = HCA_QPT_RC,
				    .pdn = pdn,
				    .send_cqn = hca_soft_cq_number(cq),
				    .recv_cqn = hca_soft_cq_number(cq),
				    .max_send_wr = 8,
				    .max_recv_wr = 8,
				    .max_send_sge = 1,
				    .max_recv_sge = 1,
				    .max_inline = LEN,
				    .sq_sig_all = true };

	if (hca_soft_qp_create(ctx, &init, &wq[i]))
		abort();
}

static void qp_connect(u32 i)
{
	const struct hca_qp_attr attr = { .path_mtu = WIRE_MTU_1024,
					  .dest_qpn = hca_soft_wq_number(wq[!i]),
					  .access = 0xf,
					  .av = { .dlid = DESK_LID, .port = 1 },
					  .port = 1,
					  .max_rd_atomic = 4,
					  .max_dest_rd_atomic = 4,
					  .retry_cnt = 7,
					  .rnr_retry = 7 };

	if (bring_to(hca_qp_lookup(d.host.hca, hca_soft_wq_number(wq[i])), attr, HCA_QPS_RTS))
		abort();
}

static void start(void)
{
	int err;

	desk_open(&d);
	ctx = ((struct uverbs *)d.file.priv)->verbs.ctx;
	hca_pd_alloc(ctx, &pdn);
	err = hca_mr_reg_of(ctx, &d.process, pdn, (u64)(uintptr_t)desk_arena, (u64)(uintptr_t)desk_arena, DESK_ARENA,
			    0xf | HCA_ACCESS_MW_BIND, &lkey, &rkey);
	desk_complete_moves(&d);
	hca_soft_cq_create(ctx, 64, NULL, NULL, &cq);
	qp_create(0);
	qp_create(1);
	qp_connect(0);
	qp_connect(1);
	row(1, "a region of a program's memory", (!err || err == -EINPROGRESS) && !hca_mr_registered(ctx, lkey));
}

static void stop(void)
{
	hca_soft_wq_destroy(wq[0]);
	hca_soft_wq_destroy(wq[1]);
	hca_soft_cq_destroy(cq);
	desk_close(&d);
}

/* Runs tasks and finished moves, and does not wait for moves. */
static void run(void)
{
	loop_run_idle(d.loop, loop_now(d.loop).ns + NSEC_PER_MSEC);
}

static int next(void)
{
	struct hca_cqe c;

	run();
	return hca_soft_cq_poll(cq, &c, 1) ? c.status : -1;
}

/* An RDMA WRITE of bytes 0x55 from the other queue pair to @at. */
static void write_to(u32 at, u32 key)
{
	struct hca_send_wr wr = { .opcode = HCA_WR_RDMA_WRITE,
				  .flags = HCA_SEND_INLINE,
				  .inline_len = LEN,
				  .remote_addr = (u64)(uintptr_t)desk_arena + at,
				  .rkey = key };

	memset(wr.inline_data, 0x55, LEN);
	hca_soft_post_send(wq[0], &wr);
	run();
}

static void read_from(u32 at, u32 key)
{
	struct hca_send_wr wr = {
		.opcode = HCA_WR_RDMA_READ, .remote_addr = (u64)(uintptr_t)desk_arena + at, .rkey = key, .num_sge = 1
	};

	wr.sge[0] = (struct hca_sge){ (u64)(uintptr_t)desk_arena + DESK_ARENA / 2, LEN, lkey };
	hca_soft_post_send(wq[0], &wr);
	run();
}

/* Executes a command that has a handle. Its result, or -EINPROGRESS: the response is deferred. */
static ssize_t command(u32 number, u32 handle)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		u32 handle;
	} in = { { .command = number, .in_words = sizeof(in) / 4 }, handle };
	size_t out_len = 0;
	u8 out[4];
	int out_fd = -1;
	ssize_t n;

	d.file.deferral = (struct uv_deferral){ 0 };
	n = uverbs_file_ops.command(&d.file, &in, sizeof(in), -1, out, &out_len, &out_fd);
	return n >= 0 && d.file.deferral.until ? -EINPROGRESS : n;
}

/* The result of a deferred response, or -EINPROGRESS. */
static ssize_t deferred(void)
{
	ssize_t result = 0;

	return uverbs_file_ops.ready(&d.file, &d.file.deferral, &result) ? result : -EINPROGRESS;
}

static u32 window_bind(u32 access)
{
	struct hca_send_wr wr = { .opcode = HCA_WR_BIND_MW,
				  .mr_lkey = lkey,
				  .access = access,
				  .bind_addr = (u64)(uintptr_t)desk_arena,
				  .bind_len = LEN };

	if (hca_mw_alloc(ctx, pdn, 1, &wr.mw_rkey))
		abort();
	wr.reg_key = (wr.mw_rkey & ~0xffu) | (u8)(wr.mw_rkey + 1);
	hca_soft_post_send(wq[1], &wr);
	row(2, "a window", next() == 0);
	return wr.reg_key;
}

/* The program may use the memory of a window otherwise when it has the response of its deallocation. */
static void test_window(void)
{
	u32 key;

	start();
	key = window_bind(HCA_ACCESS_REMOTE_WRITE);
	block(true);
	write_to(0, key);
	await_blocked();
	row(10, "the deallocation of a window waits for a WRITE through it",
	    command(IB_USER_VERBS_CMD_DEALLOC_MW, key) == -EINPROGRESS && deferred() == -EINPROGRESS);
	block(false);
	desk_complete_moves(&d);
	row(11, "and ends after it", !deferred() && program_byte(0) == 0x55);
	row(12, "the WRITE completes", next() == 0);

	key = window_bind(HCA_ACCESS_REMOTE_READ);
	block(true);
	read_from(0, key);
	await_blocked();
	row(13, "and it waits for a READ",
	    command(IB_USER_VERBS_CMD_DEALLOC_MW, key) == -EINPROGRESS && deferred() == -EINPROGRESS);
	block(false);
	desk_complete_moves(&d);
	row(14, "and ends after it", !deferred());
	desk_run(&d, NSEC_PER_MSEC);
	row(15, "the READ completes", next() == 0);
	stop();
}

/* The device is unplugged. A move that has begun ends; others do not begin, and commands fail when that has ended. */
static void test_unplug(void)
{
	start();
	program_fill(0, 0x11, LEN);
	program_fill(4096, 0x11, LEN);
	block(true);
	write_to(0, rkey);
	await_blocked();
	write_to(4096, rkey);
	row(20, "two WRITEs are pending", next() == -1);
	hca_soft_wq_orphan(wq[0]);
	hca_soft_wq_orphan(wq[1]);
	hca_soft_cq_orphan(cq);
	uverbs_file_ops.revoke(&d.file);
	row(21, "after the removal of the device a deregistration waits for the first",
	    command(IB_USER_VERBS_CMD_DEREG_MR, lkey) == -EINPROGRESS && deferred() == -EINPROGRESS);
	block(false);
	desk_complete_moves(&d);
	row(22, "and fails then", deferred() == -EIO && command(IB_USER_VERBS_CMD_DEREG_MR, lkey) == -EIO);
	row(23, "the second changes no memory", program_byte(0) == 0x55 && program_byte(4096) == 0x11);
	stop();
}

/*
 * A program ends: its memory is gone before its file is closed. Its peer gets no answer, as from a queue pair that is
 * destroyed, unless another process keeps the file.
 */
static void test_exit(bool kept)
{
	start();
	memory_take();
	write_to(0, rkey);
	await_missed();
	read_from(0, rkey);
	row(30, "no answer from a program that ends", next() == -1);
	if (kept) {
		uv_process_end(&d.process);
		row(31, "an error when it has, and another one keeps its file", next() == HCA_WC_REM_OP_ERR);
	}
	gone = false;
	stop();
}

/* A process that executes another program when a byte is written to *@go. */
static pid_t program_to_exec(int *go)
{
	int end[2];
	pid_t pid;
	u8 byte;

	if (pipe(end))
		abort();
	*go = end[1];
	pid = fork();
	if (pid) {
		close(end[0]);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(end[0], &byte, 1) == 1)
		execl("/bin/sleep", "sleep", "1000", (char *)NULL);
	_exit(1);
}

/* A program executes another one: its memory is gone before its file is closed, as when it ends. */
static void test_exec(void)
{
	struct uv_process p;
	u32 local, remote, i;
	bool silent = true;
	int go;

	start();
	uv_process_init(&p, d.loop, program_to_exec(&go));
	hca_mr_reg_of(ctx, &p, pdn, (u64)(uintptr_t)desk_arena, (u64)(uintptr_t)desk_arena, DESK_ARENA, 0xf, &local,
		      &remote);
	while (p.moves)
		run();
	write_to(0, remote);
	while (p.moves)
		run();
	row(40, "a WRITE to another process", next() == 0);
	missed = 0;
	if (write(go, "", 1) != 1)
		abort();
	for (i = 0; i < 200 && silent; i++) { /* WRITEs before and after it */
		write_to(0, remote);
		usleep(1000);
		silent = next() <= 0;
	}
	await_missed();
	row(41, "no answer after it has executed another program", silent);
	uv_process_end(&p);
	kill(p.pid, SIGKILL);
	close(go);
	hca_mr_dereg(ctx, local);
	uv_process_put(&p);
	stop();
}

/* Threads that copy from and to a process are limited. */
static void test_limit(void)
{
	static struct uv_mover *mv[UV_MOVERS_PROCESS];
	struct rlimit fds;
	struct uv_process p;
	u32 n, k, key[2];

	getrlimit(RLIMIT_NOFILE, &fds);
	fds.rlim_cur = fds.rlim_max;
	setrlimit(RLIMIT_NOFILE, &fds);
	start();
	for (n = 0; n < ARRAY_SIZE(mv); n++) {
		mv[n] = uv_mover_create(&d.process);
		if (!mv[n])
			break;
	}
	uv_process_init(&p, d.loop, desk_program());
	row(50, "with all threads of a process, its memory cannot be registered",
	    n == UV_MOVERS_PROCESS - 1 && hca_mr_reg_of(ctx, &p, pdn, (u64)(uintptr_t)desk_arena, 0, DESK_ARENA, 0,
							&key[0], &key[1]) == -ENOMEM);
	for (k = 0; k < n; k++)
		uv_mover_destroy(mv[k]);
	uv_process_put(&p);
	stop();
}

#define LIMIT 9500 /* of descriptors */

static u32 table_size(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	u32 size = 0;

	while (!size && fgets(line, sizeof(line), status))
		sscanf(line, "FDSize: %u", &size);
	fclose(status);
	return size;
}

/* Passes the maximum number, and takes them. Returns how many. */
static u32 passed_through(const int *s)
{
	int fds[PASSED_MAX] = { 0 };
	RIGHTS_CONTROL(control, PASSED_MAX) = { 0 };
	struct iovec iov = { (char[1]){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	u32 n = 0;

	rights_put(&msg, control, fds, PASSED_MAX);
	return sendmsg(s[1], &msg, 0) == 1 && passed_recv(s[0], &iov, fds, PASSED_MAX, &n) == 1 ? n : 0;
}

/*
 * As many messages with the maximum number of descriptors, less one, as need not look at the table again, then threads,
 * which have two each. Exits with 0 if no descriptor of the last message is truncated.
 */
static void fill(void)
{
	u32 n = (LIMIT - table_size()) / (PASSED_MAX + 16);
	int s[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s))
		_exit(2);
	while (--n)
		if (passed_through(s) != PASSED_MAX)
			_exit(3);
	start();
	while (uv_mover_create(&d.process))
		;
	_exit(passed_through(s) != PASSED_MAX);
}

static void test_messages_between(void)
{
	struct rlimit old, limit;
	int status = 0;
	pid_t pid;

	getrlimit(RLIMIT_NOFILE, &old);
	limit = (struct rlimit){ LIMIT, old.rlim_max };
	if (old.rlim_max >= LIMIT + PASSED_MAX) {
		setrlimit(RLIMIT_NOFILE, &limit);
		pid = fork();
		if (!pid)
			fill();
		waitpid(pid, &status, 0);
		setrlimit(RLIMIT_NOFILE, &old);
	}
	row(51, "no message is truncated since threads have descriptors", !status);
}

int main(void)
{
	test_messages_between();
	test_window();
	test_unplug();
	test_exit(false);
	test_exit(true);
	test_exec();
	test_limit();
	return rows_end();
}

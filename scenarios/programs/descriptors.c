// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * File descriptor numbers that a program opens, duplicates and closes while a device is open. Each line of output names
 * a case after which the device still works and the program's numbers refer to its own files.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rc.h"

#define LAST 1100 /* last number that is tried */
#define FREE 3000 /* an unused number */
#define FEW  64

static struct ibv_context *context;
static int file; /* opened by this program only */

static int works(void)
{
	struct ibv_port_attr attr;
	struct ibv_pd *pd = ibv_alloc_pd(context);
	char *p = pd ? mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
	struct ibv_mr *mr = p != MAP_FAILED ? ibv_reg_mr(pd, p, 65536, IBV_ACCESS_LOCAL_WRITE) : NULL;
	int ok = mr && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_query_port(context, 1, &attr);

	return ok;
}

static void check(const char *what, int ok)
{
	printf("%s%s\n", what, ok ? "" : ": no");
	fflush(stdout);
	if (!ok)
		exit(1);
}

static int is_file(int fd)
{
	struct stat a, b;

	return !fstat(fd, &a) && !fstat(file, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* Uses each number that the program has not opened, including those of the library. */
static int takes_every_number(void)
{
	int n, ok = 1;

	for (n = file + 1; n < LAST; n++) {
		if (n == context->cmd_fd || n == context->async_fd)
			continue;
		ok &= dup2(file, n) == n && is_file(n);
	}
	ok &= works();
	for (n = file + 1; n < LAST; n++)
		if (n != context->cmd_fd && n != context->async_fd)
			ok &= is_file(n) && !close(n);
	return ok;
}

/* Checks that no bytes for the daemon were written to the empty file. */
static int is_empty(void)
{
	struct stat st;

	return !fstat(file, &st) && !st.st_size;
}

/* Each number, with a limit that leaves few of them. */
static void few(void)
{
	int n, ok = 1;

	for (n = STDERR_FILENO + 1; n < FEW; n++)
		if (n != file && n != context->cmd_fd && n != context->async_fd)
			ok &= dup2(file, n) == n && is_file(n) && works() && !close(n);
	check("dup2() to each number below a small limit", ok && is_empty());
}

/* The kernel's file has no write operation; a socket would end the program by SIGPIPE. */
static int channel_refuses_writes(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);

	return channel && write(channel->fd, "12345678", 8) < 0 && errno == EINVAL &&
	       !ibv_destroy_comp_channel(channel) && works();
}

/* An inline system call, which no library sees. */
static void raw_close(int fd)
{
#if defined(__x86_64__)
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(SYS_close), "D"((long)fd) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long number __asm__("x8") = SYS_close, arg __asm__("x0") = fd;

	__asm__ volatile("svc 0" : "+r"(arg) : "r"(number) : "memory");
#else
#error "no inline system call"
#endif
}

/* As programs that become daemons do. */
static int close_others(void (*with)(int fd))
{
	int n;

	for (n = STDERR_FILENO + 1; n < FREE; n++)
		if (n != file && n != context->cmd_fd && n != context->async_fd)
			with(n);
	return 1;
}

static void libc_close(int fd)
{
	syscall(SYS_close, fd);
}

/* Posts sends to a queue pair itself, whether the daemon sleeps or polls. Returns the first error. */
static int post_until_error(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 1000, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = { .max_send_wr = 1000, .max_send_sge = 1 }
	};
	struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
	struct ibv_port_attr port;
	struct ibv_ah_attr to = { .port_num = 1 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .wr.ud.remote_qpn = 1 }, *bad;
	int i, err = 0;

	if (!qp || ibv_query_port(context, 1, &port) || ud_to_rts(qp, 0))
		return -1;
	to.dlid = port.lid;
	wr.wr.ud.ah = ibv_create_ah(pd, &to);
	if (!wr.wr.ud.ah)
		return -1;
	close_others(raw_close);
	for (i = FREE; i > STDERR_FILENO; i--)
		if (fcntl(i, F_GETFD) < 0)
			dup2(file, i);
	for (i = 0; i < 1000 && !err; i++) {
		err = ibv_post_send(qp, &wr, &bad);
		usleep(err ? 0 : 1000);
	}
	return err;
}

/* The numbers of the library's descriptors mean another file. */
static void lost(void)
{
	unsigned char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	int status, i;
	pid_t pid;

	if (p == MAP_FAILED || !pd)
		exit(2);
	memset(p, 1, 65536);
	check("memory", ibv_reg_mr(pd, p, 65536, IBV_ACCESS_LOCAL_WRITE) != NULL);
	check("a post after the library's numbers have been closed", post_until_error() == EBADF);
	check("a command", !ibv_alloc_pd(context) && errno == EIO);
	pid = fork();
	for (i = 0; !pid && i < 65536; i++)
		if (p[i] != 1)
			_exit(1);
	if (!pid)
		_exit(0);
	check("a child has the memory", waitpid(pid, &status, 0) == pid && !status);
	check("nothing is written to the program's file", is_empty());
}

/* With an argument "few", the limit is FEW. */
int main(int argc, char **argv)
{
	int limited = argc > 1 && !strcmp(argv[1], "few");
	struct rlimit files = { limited ? FEW : 4096, limited ? FEW : 4096 };
	struct ibv_device **list = ibv_get_device_list(NULL);
	int other, cmd;

	setrlimit(RLIMIT_NOFILE, &files);
	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	file = memfd_create("file", MFD_CLOEXEC);
	check("opened", context && works());
	if (argc > 1) {
		(limited ? few : lost)();
		return 0;
	}
	cmd = context->cmd_fd;
	check("a dup2() that fails", dup2(LAST + 1, cmd) < 0 && errno == EBADF && works());
	check("a dup3() that fails", dup3(file, cmd, 12345) < 0 && errno == EINVAL && works());
	check("a dup2() to itself", dup2(cmd, cmd) == cmd && works());
	check("a close_range() that fails", close_range(3, 4000, 0x7000) < 0 && errno == EINVAL && works());
	check("dup2() to every number", takes_every_number() && works());
	check("nothing is written there", is_empty());
	other = dup(cmd);
	check("closed, with a duplicate", !close(cmd) && dup2(other, cmd) == cmd && !close(other) && works());
	check("a write to a channel", channel_refuses_writes());
	check("each other number closed by syscall()", close_others(libc_close) && works());
	check("closed by a system call, and the number used again",
	      dup2(cmd, FREE) == FREE && (raw_close(FREE), fcntl(FREE, F_GETFD) < 0) && dup2(file, FREE) == FREE &&
		      is_file(FREE) && works());
	return 0;
}

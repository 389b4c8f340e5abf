// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * File descriptor numbers that a program opens, duplicates and closes while a device is open. Each line of output names
 * a case after which the device still works and the program's numbers refer to its own files.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* With an argument, the limit is FEW. */
int main(int argc, char **argv)
{
	struct rlimit files = { argc > 1 ? FEW : 4096, argc > 1 ? FEW : 4096 };
	struct ibv_device **list = ibv_get_device_list(NULL);
	int other, cmd;

	setrlimit(RLIMIT_NOFILE, &files);
	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	file = memfd_create("file", MFD_CLOEXEC);
	check("opened", context && works());
	if (argc > 1) {
		few();
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
	check("closed by a system call, and the number used again",
	      dup2(cmd, FREE) == FREE && !syscall(SYS_close, FREE) && dup2(file, FREE) == FREE && is_file(FREE) &&
		      works());
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program with few descriptors left: opening a device file or a completion channel fails with EMFILE until there are
 * enough, and then succeeds. Each line of output names what was opened. Channels that could not be opened do not count
 * against the limit of a device file.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIMIT 128
#define MOST  4    /* descriptors that any of the files needs */
#define FAILS 1100 /* more channels than a device file may have */

static int taken[LIMIT];

/* Leaves @n descriptors; returns how many others it has taken. */
static int leave(int n)
{
	int all = 0;

	while (all < LIMIT && (taken[all] = dup(0)) >= 0)
		all++;
	while (n--)
		close(taken[--all]);
	return all;
}

static int file_open(const void *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int channel_open(const void *context)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel((struct ibv_context *)context);

	return channel && !ibv_destroy_comp_channel(channel);
}

static void check(const char *what, int (*try)(const void *arg), const void *arg)
{
	int n, all, ok = 0, err = 0;

	for (n = 0; n <= MOST && !ok; n++) {
		all = leave(n);
		errno = 0;
		ok = try(arg);
		err = errno;
		while (all)
			close(taken[--all]);
		if (!ok && err != EMFILE)
			break;
	}
	printf("%s%s\n", what, ok && n > 1 ? "" : ": no");
	if (ok && n > 1)
		return;
	fprintf(stderr, "%s: %d descriptors left, error %d\n", what, ok ? 0 : n, err);
	exit(1);
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct rlimit limit;
	int n, all;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = LIMIT;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (!context)
		return 1;
	check("uverbs0", file_open, "/dev/infiniband/uverbs0");
	check("umad0", file_open, "/dev/infiniband/umad0");
	check("rdma_cm", file_open, "/dev/infiniband/rdma_cm");
	check("a completion channel", channel_open, context);
	all = leave(0);
	for (n = 0; n < FAILS; n++)
		if (channel_open(context) || errno != EMFILE)
			return 1;
	while (all)
		close(taken[--all]);
	check("a completion channel after others have failed", channel_open, context);
	return 0;
}

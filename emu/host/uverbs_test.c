// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of uverbs.c: opening the device file while the daemon has few descriptors left. */
#include <errno.h>
#include <sys/resource.h>

#include "emu/host/fixture.h"
#include "emu/lib/row.h"

#define LIMIT 256
#define NEEDS 4 /* descriptors of an open file: memory and eventfd, of the daemon and for the program */

static int taken[LIMIT];

/* Uses all descriptors that are free, after the first @n. Returns how many of them are in use then. */
static u32 take_all(u32 n)
{
	while (n < LIMIT && (taken[n] = dup(0)) >= 0)
		n++;
	return n;
}

/* Closes all after the first @n. */
static void release(u32 n, u32 all)
{
	for (; n < all; n++)
		close(taken[n]);
}

static void test_few_descriptors(void)
{
	struct rlimit limit, few;
	int fd = -1, kick = -1, err;
	struct uv_file file;
	struct desk d;
	u32 n, all;

	desk_open(&d);
	getrlimit(RLIMIT_NOFILE, &limit);
	few = (struct rlimit){ LIMIT, limit.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	all = take_all(0);
	for (n = 0; n <= NEEDS; n++) {
		file = (struct uv_file){ .server = d.server, .host = &d.host, .opener = &d.process };
		release(all - n, all);
		err = uverbs_file_ops.open(&file, 0, &fd, &kick);
		if (n == NEEDS)
			break;
		row(1 + (int)n, "too few descriptors: the open fails", err == -EMFILE);
		row(11 + (int)n, "and has closed all that it had opened", take_all(all - n) == all);
	}
	row(20, "it succeeds with one more", !err && fd >= 0 && kick >= 0);
	uverbs_file_ops.close(&file);
	close(fd);
	close(kick);
	release(0, all - NEEDS);
	setrlimit(RLIMIT_NOFILE, &limit);
	desk_close(&d);
}

int main(void)
{
	test_few_descriptors();
	return rows_end();
}

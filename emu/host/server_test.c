// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of the connections of programs: exits of programs with requests that the server has not read. */
#include <linux/rtnetlink.h>
#include <sys/wait.h>

#include "emu/host/program_fixture.h"
#include "emu/lib/row.h"

static struct desk d;

/* A program that sends @n requests after its UV_OPEN, waits for no response, and exits. It remains a zombie. */
static pid_t program_exit(u32 n)
{
	pid_t test = getpid(), pid = fork();
	siginfo_t end;
	int rpc;

	if (!pid) {
		rpc = program_connect(test);
		program_request_open(rpc, UV_NETLINK, NETLINK_ROUTE);
		while (n--)
			program_request(rpc, UV_IOCTL, RTMGRP_LINK, NULL, 0);
		_exit(0);
	}
	waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT);
	return pid;
}

/*
 * The exit is reported while the only connection of the file has unread requests. The server closes the connection, and
 * with it the file, while it still handles the exit.
 */
static void requests_unread(void)
{
	struct program other;
	u32 n;

	for (n = 0; n < 8; n++) {
		pid_t pid = program_exit(n);

		desk_run(&d, NSEC_PER_MSEC);
		waitpid(pid, NULL, 0);
		program_open(&other, &d, UV_NETLINK, NETLINK_ROUTE);
		row(1 + (int)n, "others are served", !program_call(&other, UV_IOCTL, RTMGRP_LINK, NULL, 0));
		program_close(&other);
	}
}

int main(void)
{
	desk_open(&d);
	requests_unread();
	desk_close(&d);
	return rows_end();
}

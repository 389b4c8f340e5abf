// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory of clients whose access raises SIGBUS: because its file was truncated, and for another cause. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/lib/row.h"
#include "emu/lib/shared_map.h"

#define SIZE 8192

/* What the kernel raises on processors that do not access misaligned memory atomically. */
static void raise_misaligned(void *at)
{
	siginfo_t info = { 0 };

	info.si_signo = SIGBUS;
	info.si_code = BUS_ADRALN;
	info.si_addr = at;
	syscall(SYS_rt_sigqueueinfo, getpid(), SIGBUS, &info);
}

/* In a child: the access is repeated after the handler. */
static bool misaligned_ends(struct shared_map *m)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		raise_misaligned(m->ptr + 1);
		if (!m->owner->lost)
			raise_misaligned(m->ptr + 1);
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
}

int main(void)
{
	int fd = memfd_create("client", MFD_CLOEXEC), pair[2];
	struct shared_owner owner = { 0 };
	struct shared_map m;
	u8 end;

	if (fd < 0 || ftruncate(fd, SIZE) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
		row(0, "a file and sockets", false);
		return rows_end();
	}
	owner.sock = pair[0];
	row(1, "a file is mapped", !shared_map_init(&m, &owner, fd, 4096, 4096, true) && owner.mapped == 4096 + 4096);
	m.ptr[0] = 7;
	row(2, "a misaligned access ends the process", misaligned_ends(&m));
	row(3, "the file is truncated: its memory reads as zeroes",
	    m.ptr[0] == 7 && !ftruncate(fd, 0) && *(volatile u8 *)m.ptr == 0);
	row(4, "and its owner has lost it, and the connection", owner.lost && recv(pair[1], &end, 1, 0) == 0);
	shared_map_fini(&m);
	row(5, "nothing is left", !owner.mapped);
	close(fd);
	close(pair[0]);
	close(pair[1]);
	return rows_end();
}

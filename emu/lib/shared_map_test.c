// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory of clients whose access raises SIGBUS: because its file was truncated, and for another cause. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

static bool unmapped(void *at)
{
	return msync(at, 4096, MS_ASYNC) && errno == ENOMEM;
}

/* Less than a page of hugetlbfs, of which the machine may have none: then the access raises SIGBUS likewise. */
static bool huge_page_part(int fd, bool access, const struct shared_owner *whose)
{
	struct shared_owner owner = *whose;
	struct shared_map m;
	struct stat st;
	int status = 0;
	pid_t pid;

	if (fstat(fd, &st) || ftruncate(fd, st.st_blksize))
		return false;
	pid = fork();
	if (!pid) {
		bool ok = !shared_map_init(&m, &owner, fd, 0, SIZE, true);

		if (ok && access)
			ok = !ftruncate(fd, 0) && *(volatile u8 *)(m.ptr + SIZE - 1) == 0 && owner.lost;
		shared_map_fini(&m);
		_exit(ok && unmapped(m.ptr) ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

int main(void)
{
	int fd = memfd_create("client", MFD_CLOEXEC), huge = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB), pair[2];
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
	if (huge >= 0) { /* the kernel has hugetlbfs */
		row(6, "a part of a huge page is unmapped", huge_page_part(huge, false, &owner));
		row(7, "and replaced when it is lost", huge_page_part(huge, true, &owner));
		close(huge);
	}
	close(fd);
	close(pair[0]);
	close(pair[1]);
	return rows_end();
}

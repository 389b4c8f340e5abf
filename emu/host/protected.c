// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Access to registered memory in spite of mprotect(2): an adapter accesses the pages that were pinned at the
 * registration, with the rights of then (IBTA 10.6.3.2), and page tables of processors do not concern it. A program
 * that detects its own accesses by protection (distributed shared memory, garbage collectors) depends on that.
 * process_vm_writev() respects the protection, /proc/PID/mem does not.
 */
#include "emu/host/protected.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool uv_protected_read(int mem, u64 addr, void *to, size_t len)
{
	return pread(mem, to, len, (off_t)addr) == (ssize_t)len;
}

/*
 * Anonymous private memory, in all of the range? What the program has mapped there since it was registered, such as the
 * code of a library, must not change.
 */
static bool memory_is_anonymous(pid_t pid, u64 addr, u64 end)
{
	char path[32], *line = NULL, perms[5];
	size_t size = 0;
	u64 from, to, inode;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (addr < end && getline(&line, &size, f) > 0) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %" SCNu64, &from, &to, perms, &inode) != 4 ||
		    to <= addr)
			continue;
		if (from > addr || inode || perms[3] != 'p')
			break;
		addr = to;
	}
	free(line);
	fclose(f);
	return addr >= end;
}

bool uv_protected_write(int mem, pid_t pid, u64 addr, const void *from, size_t len)
{
	return memory_is_anonymous(pid, addr, addr + len) && pwrite(mem, from, len, (off_t)addr) == (ssize_t)len;
}

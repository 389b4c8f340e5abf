// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Access rights of memory that a program registers (IBTA 10.6.3.2). The kernel pins all pages of a region, for writing
 * if the region's rights permit that; so memory that is not mapped, or read-only, is refused. Here all pages must be
 * mapped, and the first and the last one are accessed as by the kernel, which allocates them and ends their copy on
 * write; the others are not, since a region may be sparse. Linux before 5.14 has no such access without a change of the
 * bytes: there the daemon reads the first and the last byte.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif
#define VECTOR 1024 /* pages of a call of mincore() */

static bool is_mapped(uintptr_t start, uintptr_t end, size_t page)
{
	unsigned char present[VECTOR];
	size_t len;

	for (; start < end; start += len) {
		len = end - start < VECTOR * page ? end - start : VECTOR * page;
		if (mincore((void *)start, len, present) && errno == ENOMEM)
			return false;
	}
	return true;
}

/* Populates them. EINVAL: the mapping does not permit it, or the kernel does not have the advice. */
static bool pages_permit(uintptr_t at, size_t len, bool write)
{
	if (!REAL(madvise)((void *)at, len, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return true;
	if (errno != EINVAL)
		return errno != EFAULT && errno != ENOMEM;
	return !write || REAL(madvise)((void *)at, len, MADV_POPULATE_READ);
}

bool shim_prefetch(uint64_t addr, uint64_t len, bool write)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = addr & -page;
	int saved = errno;
	bool ok = pages_permit(first, addr + len - first, write);

	errno = saved;
	return ok;
}

int shim_access(uint64_t addr, uint64_t len, bool write)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = addr & -page, last = (addr + len - 1) & -page;
	int saved = errno;
	bool ok;

	if (!len || addr + len + page - 1 < addr + len || addr + len < addr) /* the daemon answers */
		return 0;
	ok = pages_permit(first, page, write) && (last == first || pages_permit(last, page, write)) &&
	     (last - first <= page || is_mapped(first, last, page));
	errno = saved;
	return ok ? 0 : -EFAULT;
}

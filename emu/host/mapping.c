// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Mappings: memory of a program in a memfd that is also mapped into the daemon, for access without system calls. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "emu/host/server.h"
#include "emu/lib/passed.h"

#define MAPPING_MAX (1ull << 40)

static void mapping_remove(struct uv_process *p, u32 i)
{
	passed_unmap(p->mapping[i].base, p->mapping[i].len, p->pid);
	p->mapping[i] = p->mapping[--p->nmappings];
	p->last = 0;
}

void uv_mapping_remove(struct uv_process *p, u64 addr, u64 len)
{
	u32 i = 0;

	while (i < p->nmappings) {
		const struct uv_mapping *w = &p->mapping[i];

		if (w->addr < addr + len && addr < w->addr + w->len)
			mapping_remove(p, i);
		else
			i++;
	}
}

/* Access beyond the end of a file, or to unavailable huge pages, raises SIGBUS:
 * the file must be sealed and in tmpfs. */
static bool mapping_is_safe(int fd, u64 offset, u64 len)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC &&
	       !fstat(fd, &st) && offset <= (u64)st.st_size && len <= (u64)st.st_size - offset;
}

int uv_mapping_add(struct uv_process *p, u64 addr, u64 len, int fd, u64 offset)
{
	void *base;

	if (!len || len > MAPPING_MAX || addr + len < addr || !mapping_is_safe(fd, offset, len))
		return -EINVAL;
	if (p->nmappings == UV_MAPPINGS)
		return -ENOSPC;
	base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);
	if (base == MAP_FAILED)
		return -errno;
	p->mapping[p->nmappings++] = (struct uv_mapping){ .addr = addr, .len = len, .base = base };
	return 0;
}

static u8 *mapping_offset(const struct uv_mapping *w, u64 addr, u64 len)
{
	return addr >= w->addr && len <= w->len && addr - w->addr <= w->len - len ? w->base + (addr - w->addr) : NULL;
}

u8 *uv_mapping_at(struct uv_process *p, u64 addr, u64 len)
{
	u8 *at = NULL;
	u32 i;

	if (!p->nmappings)
		return NULL;
	at = mapping_offset(&p->mapping[p->last], addr, len);
	for (i = 0; i < p->nmappings && !at; i++) {
		at = mapping_offset(&p->mapping[i], addr, len);
		if (at)
			p->last = i;
	}
	return at;
}

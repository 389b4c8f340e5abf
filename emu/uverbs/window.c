// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Parts of a program's memory that are memfds and mapped here, too: reached without a system call. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "emu/uverbs/server.h"

#define WINDOW_MAX (1ull << 40)

static void window_remove(struct uv_process *p, u32 i)
{
	munmap(p->window[i].base, p->window[i].len);
	p->window[i] = p->window[--p->nwindows];
	p->last = 0;
}

void uv_window_drop(struct uv_process *p, u64 addr, u64 len)
{
	u32 i = 0;

	while (i < p->nwindows) {
		const struct uv_window *w = &p->window[i];

		if (w->addr < addr + len && addr < w->addr + w->len)
			window_remove(p, i);
		else
			i++;
	}
}

/* A file that its owner can shrink, or huge pages that there may be none of, would end us when we touch what is not there. */
static bool holds(int fd, u64 offset, u64 len)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC &&
	       !fstat(fd, &st) && offset <= (u64)st.st_size && len <= (u64)st.st_size - offset;
}

int uv_window_add(struct uv_process *p, u64 addr, u64 len, int fd, u64 offset)
{
	void *base;

	if (!len || len > WINDOW_MAX || addr + len < addr || !holds(fd, offset, len))
		return -EINVAL;
	if (p->nwindows == UV_WINDOWS)
		return -ENOSPC;
	base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);
	if (base == MAP_FAILED)
		return -errno;
	p->window[p->nwindows++] = (struct uv_window){ .addr = addr, .len = len, .base = base };
	return 0;
}

static u8 *within(const struct uv_window *w, u64 addr, u64 len)
{
	return addr >= w->addr && len <= w->len && addr - w->addr <= w->len - len ? w->base + (addr - w->addr) : NULL;
}

u8 *uv_window_at(struct uv_process *p, u64 addr, u64 len)
{
	u8 *at = NULL;
	u32 i;

	if (!p->nwindows)
		return NULL;
	at = within(&p->window[p->last], addr, len);
	for (i = 0; i < p->nwindows && !at; i++) {
		at = within(&p->window[i], addr, len);
		if (at)
			p->last = i;
	}
	return at;
}

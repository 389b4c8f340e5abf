// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Mapped memory of clients, and the SIGBUS handler for truncated files. */
#include "emu/lib/shared_map.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "emu/lib/passed.h"

#define PAGE_LARGEST (1ull << 30) /* largest page of hugetlbfs: mappings begin at a page of the file */

static struct list maps = { &maps, &maps };

/* Async-signal-safe: mmap and shutdown are bare system calls, and the list does not change while
 * memory of clients is accessed. */
static bool replace_lost(const u8 *at)
{
	struct shared_map *m;

	list_for_each (m, &maps, link) {
		if (at < m->map || at >= m->map + m->map_len)
			continue;
		if (mmap(m->map, m->map_len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
			return false;
		m->owner->lost = true;
		shutdown(m->owner->sock, SHUT_RDWR);
		return true;
	}
	return false;
}

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	/* Not a client's memory, or misaligned, which other memory would be, too: the default action. */
	if (info->si_code == BUS_ADRALN || !replace_lost(info->si_addr))
		signal(sig, SIG_DFL);
	errno = saved;
}

static void handle_bus_errors(void)
{
	struct sigaction sa = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	static bool done;

	if (!done)
		sigaction(SIGBUS, &sa, NULL);
	done = true;
}

/* The file's page, of which munmap() and mmap() accept whole ones only, if it is of hugetlbfs; else 1. */
static u64 huge_page(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && (u32)fs.f_type == HUGETLBFS_MAGIC && fs.f_bsize > 0 ? (u64)fs.f_bsize : 1;
}

int shared_map_init(struct shared_map *m, struct shared_owner *owner, int fd, u64 offset, u64 size, bool write)
{
	struct stat st;
	u64 page;

	if (!size || offset + size < offset)
		return -EINVAL;
	/*
	 * Only files in memory have seals: memfd, tmpfs, hugetlbfs. The pages of other files come from a device, or
	 * from a program (FUSE) that may never provide them, while the loop waits.
	 */
	if (fcntl(fd, F_GET_SEALS) < 0)
		return -EINVAL;
	/* Access beyond the end of the file raises SIGBUS. */
	if (fstat(fd, &st) || (u64)st.st_size < offset + size)
		return -EINVAL;
	handle_bus_errors();
	page = huge_page(fd);
	m->map_len = (offset % PAGE_LARGEST + size + page - 1) / page * page;
	if (m->map_len > SHARED_MAP_MAX - owner->mapped)
		return -ENOSPC;
	m->map = mmap(NULL, m->map_len, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED | MAP_NORESERVE, fd,
		      (off_t)(offset - offset % PAGE_LARGEST));
	if (m->map == MAP_FAILED)
		return -errno;
	madvise(m->map, m->map_len, MADV_DONTDUMP);
	m->ptr = m->map + offset % PAGE_LARGEST;
	m->owner = owner;
	owner->mapped += m->map_len;
	list_add(&maps, &m->link);
	return 0;
}

void shared_map_fini(struct shared_map *m)
{
	list_del(&m->link);
	m->owner->mapped -= m->map_len;
	passed_unmap(m->map, m->map_len, m->owner->pid);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Regions that are registered become memory that the daemon maps, too: their whole pages move into a memfd, which takes
 * their place at the same addresses. The daemon then reaches them without a system call, and the program sees no difference:
 *
 * - It is done only while the process has one thread, so that nobody writes between the copy and the exchange, and only
 *   with anonymous private memory.
 * - A child gets a copy of its own right after fork().
 * - MADV_DONTNEED and MADV_FREE give zeroes there, as allocators expect of anonymous memory.
 * - The memfd's size is beyond what any mremap() makes of the mapping.
 *
 * The daemon is told at each registration what lies there now, since the program may have unmapped what it once shared.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define SHARE_LARGE (64u << 10)  /* half of the files are kept for these */
#define SHARE_MOST  (1ull << 30) /* more may be sparse, and the copy would fill it */
#define FILE_SIZE   (1ull << 42) /* sparse */
#define FILES       64
#define AREAS       64 /* looked at for one registration */
#define LINE        512

/* A part of the address space, as /proc/self/maps has it. */
struct area {
	uintptr_t start, end;
	unsigned long long offset;
	int file;   /* of ours, or -1 */
	bool plain; /* anonymous, private, writable */
};

struct maps {
	int fd;
	size_t at, have;
	char buf[4096];
};

static struct {
	int fd; /* private; -1: free */
	ino_t inode;
	bool seen;
} files[FILES];
static unsigned int nfiles;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* No stdio: it would allocate memory while the map is read. */
static bool line_get(struct maps *m, char *line)
{
	size_t n = 0;

	for (;;) {
		if (m->at == m->have) {
			ssize_t got = REAL(read)(m->fd, m->buf, sizeof(m->buf));

			if (got <= 0)
				return false;
			m->have = (size_t)got;
			m->at = 0;
		}
		if (m->buf[m->at] == '\n')
			break;
		if (n < LINE - 1)
			line[n++] = m->buf[m->at];
		m->at++;
	}
	m->at++;
	line[n] = 0;
	return true;
}

static int file_of(ino_t inode)
{
	int i;

	for (i = 0; i < FILES && inode; i++)
		if (files[i].fd >= 0 && files[i].inode == inode)
			return i;
	return -1;
}

static bool area_get(struct maps *m, struct area *a)
{
	unsigned long long inode;
	char line[LINE], perms[5];
	int name = 0;

	if (!line_get(m, line) ||
	    sscanf(line, "%lx-%lx %4s %llx %*s %llu %n", &a->start, &a->end, perms, &a->offset, &inode, &name) < 5)
		return false;
	a->plain = !strcmp(perms, "rw-p") && !inode && (!line[name] || !strcmp(line + name, "[heap]"));
	a->file = strstr(line + name, "memfd:" SHIM_MEMORY) ? file_of((ino_t)inode) : -1;
	if (a->file >= 0)
		files[a->file].seen = true;
	return true;
}

/*
 * What lies in [start, end) and is ours, or with @plain could be. The whole map is walked, so that it shows which files are
 * mapped at all.
 */
static int areas_find(uintptr_t start, uintptr_t end, bool plain, struct area *areas)
{
	struct maps m = { .fd = -1 };
	struct area a;
	int i, n = 0;

	m.fd = REAL(open)("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (m.fd < 0)
		return 0;
	for (i = 0; i < FILES; i++)
		files[i].seen = false;
	while (area_get(&m, &a)) {
		uintptr_t from = a.start > start ? a.start : start;

		if (a.end <= start || a.start >= end || n == AREAS || !(a.file >= 0 || (plain && a.plain)))
			continue;
		a.offset += from - a.start;
		a.start = from;
		a.end = a.end < end ? a.end : end;
		areas[n++] = a;
	}
	REAL(close)(m.fd);
	return n;
}

static bool one_thread(void)
{
	struct stat st;

	return !REAL(stat)("/proc/self/task", &st) && st.st_nlink == 3;
}

/* Puts a mapping of @fd (or anonymous memory, -1) with the same bytes in the place of the area. */
static bool exchange(const struct area *a, int fd)
{
	size_t len = a->end - a->start;
	void *to = mmap(NULL, len, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	if (to == MAP_FAILED)
		return false;
	memcpy(to, (void *)a->start, len);
	if (mremap(to, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)a->start) != MAP_FAILED)
		return true;
	munmap(to, len);
	return false;
}

static void file_drop(int i)
{
	shim_private_close(files[i].fd);
	files[i].fd = -1;
	nfiles--;
}

void shim_share_in_child(void)
{
	struct area areas[AREAS];
	int i, n;

	pthread_mutex_init(&lock, NULL);
	if (!nfiles)
		return;
	n = areas_find(0, UINTPTR_MAX, false, areas);
	for (i = 0; i < n; i++)
		exchange(&areas[i], -1);
	for (i = 0; i < FILES; i++)
		if (files[i].fd >= 0)
			file_drop(i);
}

static void __attribute__((constructor)) init(void)
{
	int i;

	for (i = 0; i < FILES; i++)
		files[i].fd = -1;
}

/* @file: what lies there, or -1: memory that the daemon has to reach as any other. */
static void tell(int rpc, uintptr_t start, uintptr_t end, int file, unsigned long long offset)
{
	struct uv_share s = { .addr = start, .len = end - start, .offset = offset };

	shim_call(rpc, UV_SHARE, 0, &s, sizeof(s), file < 0 ? -1 : files[file].fd, NULL, NULL, NULL);
}

/* Makes the area memory of a file of ours. */
static bool area_share(struct area *a)
{
	struct stat st;
	int i, fd;

	for (i = 0; i < FILES && files[i].fd >= 0;)
		i++;
	if (i == FILES || a->end - a->start > SHARE_MOST)
		return false;
	if (nfiles >= FILES / 2 && a->end - a->start < SHARE_LARGE)
		return false;
	fd = memfd_create(SHIM_MEMORY, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return false;
	if (ftruncate(fd, FILE_SIZE) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) || REAL(fstat)(fd, &st) ||
	    !exchange(a, fd)) {
		REAL(close)(fd);
		return false;
	}
	files[i].fd = shim_private_add(fd);
	files[i].inode = st.st_ino;
	files[i].seen = true;
	nfiles++;
	a->file = i;
	a->offset = 0;
	return true;
}

/* The area's part in [start, end), made memory of a file of ours. */
static bool part_share(struct area *a, uintptr_t start, uintptr_t end)
{
	a->start = a->start > start ? a->start : start;
	a->end = a->end < end ? a->end : end;
	return a->start < a->end && area_share(a);
}

/* What has the pages that the region touches is told; whole ones of it are shared. */
void shim_share(int rpc, uint64_t addr, uint64_t len)
{
	static bool shared; /* once: the daemon may know something of these pages */
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = addr & -page, last = (addr + len + page - 1) & -page,
		  start = (addr + page - 1) & -page, end = (addr + len) & -page;
	bool may = end > start && one_thread();
	struct area areas[AREAS];
	int i, n;

	if (!len || len > UINTPTR_MAX - addr - page || (!shared && !may))
		return;
	pthread_mutex_lock(&lock);
	n = areas_find(first, last, may, areas);
	tell(rpc, first, last, -1, 0);
	for (i = 0; i < n; i++)
		if (areas[i].file >= 0 || part_share(&areas[i], start, end))
			tell(rpc, areas[i].start, areas[i].end, areas[i].file, areas[i].offset);
	for (i = 0; i < FILES; i++)
		if (files[i].fd >= 0 && !files[i].seen)
			file_drop(i);
	shared |= nfiles > 0;
	pthread_mutex_unlock(&lock);
}

/* What was thrown away reads as zeroes. */
int madvise(void *addr, size_t len, int advice)
{
	int result = REAL(madvise)(addr, len, advice), i, n;
	struct area areas[AREAS];

	if (result || !nfiles || (advice != MADV_DONTNEED && advice != MADV_FREE))
		return result;
	pthread_mutex_lock(&lock);
	n = areas_find((uintptr_t)addr, (uintptr_t)addr + len, false, areas);
	for (i = 0; i < n; i++)
		REAL(madvise)((void *)areas[i].start, areas[i].end - areas[i].start, MADV_REMOVE);
	pthread_mutex_unlock(&lock);
	return result;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sharing of registered memory with the daemon: the whole pages of a region are copied to a memfd, which is then mapped
 * at the same addresses. The daemon maps it, too, and accesses it without system calls. The program sees no difference:
 *
 * - It is done only while the process has one thread, so that no other thread writes during the copy, only for
 *   anonymous private memory, and only while the kernel has pinned no page of the process: it would access the replaced
 *   pages. Fixed buffers of io_uring are pinned; when they are registered afterwards, they are the memfd's pages.
 * - A child gets a snapshot: the parent copies its shared memory just before the fork, and the child maps the copy in
 *   place of the shared memory. Memory that a child does not inherit (MADV_DONTFORK, which ibv_fork_init() sets for all
 *   regions) is not copied.
 * - Of memory that it is to have as zeroes (MADV_WIPEONFORK, which the kernel refuses for shared memory) it gets such;
 *   if that was requested before the registration, the memory is not shared.
 * - MADV_DONTNEED and MADV_FREE make the pages read as zeroes, as allocators expect of anonymous memory. The kernel
 *   refuses MADV_FREE for shared memory, and may discard the pages at once: MADV_DONTNEED takes its place.
 * - The memfd is larger than any mremap() of the mapping.
 *
 * Each registration reports the current mapping to the daemon, since the program may have unmapped shared memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define SHARE_LARGE (64u << 10)  /* bytes; half of the files are reserved for areas of this size */
#define SHARE_MOST  (1ull << 30) /* bytes; a larger area may be sparse, and the copy would allocate all of it */
#define FILE_SIZE   (1ull << 42) /* sparse */
#define FILES       64
#define AREAS       65536 /* a process has fewer, by vm.max_map_count */
#define LINE        512

/* An area of the address space: a line of /proc/self/maps. */
struct area {
	uintptr_t start, end;
	unsigned long long offset;
	int file;   /* index in files; -1: another file */
	int prot;   /* PROT_* */
	bool plain; /* anonymous, private, writable */
	bool dontfork;
	void *copy; /* of the snapshot; NULL: none */
};

struct maps {
	int fd;
	bool flags; /* smaps, with additional lines for each area */
	size_t at, have;
	char buf[4096];
};

static struct {
	int fd; /* private; -1: free */
	ino_t inode;
	bool seen;
} files[FILES];
static unsigned int nfiles;
/*
 * madvise() was called with MADV_DONTFORK, or with MADV_WIPEONFORK for addresses in this range; otherwise nothing reads
 * smaps, which is slow.
 */
static bool dontfork_used;
static uintptr_t wipe_start = UINTPTR_MAX, wipe_end;
static struct shim_lock lock;
static unsigned int within;   /* forks of handlers that have interrupted a call with the lock */
static struct area *snapshot; /* areas with their copies, during a fork */
static int nsnapshot;

/* Reads without stdio, which would allocate memory while the map is read. */
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
	a->prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
		  (perms[2] == 'x' ? PROT_EXEC : 0);
	a->dontfork = false;
	a->copy = NULL;
	a->plain = !strcmp(perms, "rw-p") && !inode && (!line[name] || !strcmp(line + name, "[heap]"));
	a->file = strstr(line + name, "memfd:" SHIM_MEMORY) ? file_of((ino_t)inode) : -1;
	if (a->file >= 0)
		files[a->file].seen = true;
	while (m->flags && line_get(m, line)) {
		if (strncmp(line, "VmFlags:", 8))
			continue;
		a->dontfork = strstr(line, " dc");
		a->plain &= !strstr(line, " wf");
		break;
	}
	return true;
}

/* Allocates outside of the heap, which is in the map, too. Unused pages take no memory. */
static struct area *areas_new(void)
{
	void *p = mmap(NULL, AREAS * sizeof(struct area), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void areas_free(struct area *areas)
{
	if (areas)
		munmap(areas, AREAS * sizeof(struct area));
}

/*
 * Finds the areas in [start, end) that are shared, and with @plain those that can be. Reads the whole map to set @seen
 * of all mapped files.
 */
static int areas_find(uintptr_t start, uintptr_t end, bool plain, struct area *areas)
{
	struct maps m = { .fd = -1, .flags = dontfork_used || (start < wipe_end && end > wipe_start) };
	struct area a;
	int i, n = 0;

	if (areas)
		m.fd = REAL(open)(m.flags ? "/proc/self/smaps" : "/proc/self/maps", O_RDONLY | O_CLOEXEC);
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

	return !shim_fstatat(AT_FDCWD, "/proc/self/task", &st, 0) && st.st_nlink == 3;
}

/* Has the kernel pinned pages of the process, such as fixed buffers of io_uring? */
static bool has_pinned(void)
{
	struct maps m = { .fd = REAL(open)("/proc/self/status", O_RDONLY | O_CLOEXEC) };
	unsigned long pinned = 0;
	char line[LINE];

	if (m.fd < 0)
		return false;
	while (line_get(&m, line) && sscanf(line, "VmPin: %lu", &pinned) != 1)
		;
	REAL(close)(m.fd);
	return pinned;
}

/* Moves the mapping at @from to the address of the area, with the area's protection. */
static bool share_replace(const struct area *a, void *from)
{
	size_t len = a->end - a->start;

	if (mremap(from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)a->start) == MAP_FAILED) {
		munmap(from, len);
		return false;
	}
	if (a->prot != (PROT_READ | PROT_WRITE))
		mprotect((void *)a->start, len, a->prot);
	if (a->dontfork)
		REAL(madvise)((void *)a->start, len, MADV_DONTFORK);
	return true;
}

/* Copies the area without its file, whose descriptor the program has closed by an inline system call. */
static void area_read(const struct area *a, void *to)
{
	size_t len = a->end - a->start;

	if (!(a->prot & PROT_READ))
		mprotect((void *)a->start, len, a->prot | PROT_READ);
	memcpy(to, (void *)a->start, len);
	if (!(a->prot & PROT_READ))
		mprotect((void *)a->start, len, a->prot);
}

/*
 * Returns anonymous memory with the bytes of the area, read from its file, so that the area's protection does not
 * matter. NULL: out of memory.
 */
static void *area_copy(const struct area *a)
{
	off_t at = (off_t)a->offset, end = at + (off_t)(a->end - a->start), hole;
	size_t len = a->end - a->start;
	char *to = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = files[a->file].fd;

	if (to == MAP_FAILED)
		return NULL;
	if (!shim_private_same(fd)) {
		area_read(a, to);
		return to;
	}
	for (;;) {
		at = lseek(fd, at, SEEK_DATA);
		if (at < 0 || at >= end)
			return to;
		hole = lseek(fd, at, SEEK_HOLE);
		hole = hole < 0 || hole > end ? end : hole;
		for (; at < hole;) {
			ssize_t n = pread(fd, to + (at - (off_t)a->offset), (size_t)(hole - at), at);

			if (n <= 0) {
				munmap(to, len);
				return NULL;
			}
			at += n;
		}
	}
}

static void file_drop(int i)
{
	shim_wipe_remove(i, 0, FILE_SIZE);
	shim_private_close(files[i].fd);
	files[i].fd = -1;
	nfiles--;
}

/* @at: the area, or its copy. */
static void area_wipe(const struct area *a, char *at, int advice)
{
	unsigned long long end = a->offset + (a->end - a->start), from, to;
	unsigned int i = 0;

	while (from = a->offset, to = end, shim_wipe_next(&i, a->file, &from, &to))
		REAL(madvise)(at + (from - a->offset), to - from, advice);
}

/* For the child. */
static void area_snapshot(struct area *a)
{
	if (a->copy || a->dontfork)
		return;
	a->copy = area_copy(a);
	if (a->copy)
		area_wipe(a, a->copy, MADV_DONTNEED);
}

static void snapshot_drop(bool unused)
{
	int i;

	for (i = 0; i < nsnapshot; i++)
		if (unused && snapshot[i].copy)
			munmap(snapshot[i].copy, snapshot[i].end - snapshot[i].start);
	areas_free(snapshot);
	snapshot = NULL;
	nsnapshot = 0;
}

bool shim_share_fork(bool wait)
{
	int saved = errno, cancel, i;

	if (shim_lock_is_own(&lock)) {
		within++;
		return true;
	}
	if (!wait && !shim_lock_try(&lock))
		return false;
	if (wait)
		shim_lock(&lock);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (nfiles) {
		snapshot = areas_new();
		nsnapshot = areas_find(0, UINTPTR_MAX, false, snapshot);
	}
	for (i = 0; i < nsnapshot; i++)
		area_snapshot(&snapshot[i]);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return true;
}

void shim_share_forked(void)
{
	int saved = errno;

	if (within) {
		within--;
		return;
	}
	snapshot_drop(true);
	shim_unlock(&lock);
	errno = saved;
}

bool shim_share_lock(void)
{
	if (shim_lock_is_own(&lock))
		return false;
	shim_lock(&lock);
	return true;
}

void shim_share_unlock(void)
{
	shim_unlock(&lock);
}

int shim_share_move(int fd, int to)
{
	int i;

	for (i = 0; i < FILES; i++) {
		if (files[i].fd != fd)
			continue;
		files[i].fd = to;
		return 0;
	}
	return -EBUSY;
}

/* Without a snapshot, copies the memory as it is now. */
void shim_share_child(void)
{
	int i, cancel;

	lock = (struct shim_lock){ 0 };
	within = 0;
	if (!nfiles)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (!snapshot) {
		snapshot = areas_new();
		nsnapshot = areas_find(0, UINTPTR_MAX, false, snapshot);
	}
	for (i = 0; i < nsnapshot; i++) {
		area_snapshot(&snapshot[i]);
		if (snapshot[i].copy && share_replace(&snapshot[i], snapshot[i].copy))
			area_wipe(&snapshot[i], (char *)snapshot[i].start, MADV_WIPEONFORK);
	}
	snapshot_drop(false);
	for (i = 0; i < FILES; i++)
		if (files[i].fd >= 0)
			file_drop(i);
	pthread_setcancelstate(cancel, NULL);
}

static void __attribute__((constructor)) init(void)
{
	int i;

	for (i = 0; i < FILES; i++)
		files[i].fd = -1;
}

/* @file: the mapped file, or -1: not shared. */
static void share_report(struct shim_file *f, uintptr_t start, uintptr_t end, int file, unsigned long long offset)
{
	struct uv_share s = { .addr = start, .len = end - start, .offset = offset };
	int fd = file < 0 ? -1 : files[file].fd;

	shim_call(f, &(struct shim_request){ .op = UV_SHARE, .in = &s, .in_len = sizeof(s), .in_fd = &fd });
}

bool shim_memfd_permitted(unsigned long long size)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= size;
}

/* Replaces the part of the area in [start, end) by a mapping of a new memfd. */
static bool area_share(struct area *a, uintptr_t start, uintptr_t end)
{
	struct stat st;
	void *to = MAP_FAILED;
	size_t len;
	int i, fd;

	a->start = a->start > start ? a->start : start;
	a->end = a->end < end ? a->end : end;
	if (a->start >= a->end)
		return false;
	len = a->end - a->start;
	for (i = 0; i < FILES && files[i].fd >= 0;)
		i++;
	if (i == FILES || len > SHARE_MOST || (nfiles >= FILES / 2 && len < SHARE_LARGE) ||
	    !shim_memfd_permitted(FILE_SIZE))
		return false;
	fd = memfd_create(SHIM_MEMORY, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	fd = fd < 0 ? fd : shim_private_add(fd);
	if (fd < 0)
		return false;
	if (!ftruncate(fd, FILE_SIZE) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) && !shim_fstat(fd, &st))
		to = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (to != MAP_FAILED)
		memcpy(to, (void *)a->start, len);
	if (to == MAP_FAILED) {
		shim_private_close(fd);
		return false;
	}
	files[i].fd = fd; /* before it is mapped: a handler of a signal may fork() */
	files[i].inode = st.st_ino;
	files[i].seen = true;
	nfiles++;
	a->file = i;
	a->offset = 0;
	if (share_replace(a, to))
		return true;
	a->file = -1;
	file_drop(i);
	return false;
}

/* Reports the mapping of the region's pages to the daemon, and shares whole pages if possible. */
void shim_share(struct shim_file *f, uint64_t addr, uint64_t len)
{
	static bool shared; /* memory was shared before: the daemon may have an older mapping of these pages */
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = addr & -page, last = (addr + len + page - 1) & -page,
		  start = (addr + page - 1) & -page, end = (addr + len) & -page;
	bool may = end > start && one_thread() && !has_pinned();
	struct area *areas;
	int i, n;

	if (!len || len > UINTPTR_MAX - addr - page || (!shared && !may))
		return;
	shim_lock(&lock);
	areas = areas_new();
	n = areas_find(first, last, may, areas);
	share_report(f, first, last, -1, 0);
	for (i = 0; i < n; i++)
		if (areas[i].file >= 0 || area_share(&areas[i], start, end))
			share_report(f, areas[i].start, areas[i].end, areas[i].file, areas[i].offset);
	for (i = 0; i < FILES; i++)
		if (files[i].fd >= 0 && !files[i].seen)
			file_drop(i);
	shared |= nfiles > 0;
	areas_free(areas);
	shim_unlock(&lock);
}

/* Discards shared pages, which then read as zeroes. */
static void area_discard(uintptr_t start, size_t len)
{
	struct area *areas;
	int i, n, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	shim_lock(&lock);
	areas = areas_new();
	n = areas_find(start, start + len, false, areas);
	for (i = 0; i < n; i++)
		REAL(madvise)((void *)areas[i].start, areas[i].end - areas[i].start, MADV_REMOVE);
	areas_free(areas);
	shim_unlock(&lock);
	pthread_setcancelstate(cancel, NULL);
}

/* MADV_WIPEONFORK or MADV_KEEPONFORK of what is shared in the range, and of the rest. 0 or -errno. */
static int areas_keep(uintptr_t start, uintptr_t end, int advice, const struct area *areas, int n)
{
	int i, err = 0;

	for (i = 0; i <= n && !err; i++) {
		uintptr_t to = i < n ? areas[i].start : end;
		const struct area *a = &areas[i];

		if (to > start && REAL(madvise)((void *)start, to - start, advice))
			return -errno;
		if (i == n)
			break;
		err = (advice == MADV_WIPEONFORK ? shim_wipe_add : shim_wipe_remove)(a->file, a->offset,
										     a->offset + (a->end - a->start));
		start = a->end;
	}
	return err;
}

/* False: none of the range is shared. */
static bool range_keep(uintptr_t start, size_t len, int advice, int *result)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = (start + len + page - 1) & -page;
	struct area *areas;
	int n, cancel;

	if (start % page || end <= start)
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	shim_lock(&lock);
	areas = areas_new();
	n = areas_find(start, end, false, areas);
	if (n)
		*result = areas_keep(start, end, advice, areas, n);
	areas_free(areas);
	shim_unlock(&lock);
	pthread_setcancelstate(cancel, NULL);
	return n;
}

int madvise(void *addr, size_t len, int advice)
{
	uintptr_t start = (uintptr_t)addr;
	int result = 0;

	if (nfiles && advice == MADV_FREE)
		advice = MADV_DONTNEED;
	if (advice == MADV_WIPEONFORK) {
		wipe_start = start < wipe_start ? start : wipe_start;
		wipe_end = start + len > wipe_end ? start + len : wipe_end;
	}
	if (nfiles && (advice == MADV_WIPEONFORK || advice == MADV_KEEPONFORK) &&
	    range_keep(start, len, advice, &result))
		return shim_result(result);
	result = REAL(madvise)(addr, len, advice);
	if (result)
		return result;
	if (advice == MADV_DONTFORK)
		dontfork_used = true;
	if (nfiles && advice == MADV_DONTNEED)
		area_discard(start, len);
	return 0;
}

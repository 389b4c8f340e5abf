// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stat() and the like: device files and their descriptors appear as character devices. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define UVERBS_MAJOR 231
#define DEVICE_MODE  (S_IFCHR | 0666)

/* Device numbers as in the kernel. */
static dev_t device_number(enum uv_kind kind, unsigned int unit)
{
	switch (kind) {
	case UV_UVERBS:
		return makedev(UVERBS_MAJOR, 192 + unit);
	case UV_ISSM:
		return makedev(UVERBS_MAJOR, 64 + unit);
	case UV_RDMA_CM:
		return makedev(10, 58);
	default:
		return makedev(UVERBS_MAJOR, unit);
	}
}

static bool device_of(int fd, dev_t *number)
{
	struct shim_file *f = shim_file_get(fd);

	bool device = f && f->kind != UV_NETLINK;

	if (device)
		*number = device_number(f->kind, f->unit);
	shim_file_put(f);
	return device;
}

/*
 * The file of a call: the translated path, and whether it is a device file; if @path is empty, the descriptor is meant.
 */
struct subject {
	char buf[SHIM_PATH_MAX];
	const char *to;
	bool device;
	dev_t number;
};

/* @fd: directory of a relative path, or the descriptor if @path is empty. */
static void subject_of(struct subject *s, int fd, const char *path)
{
	enum uv_kind kind;
	unsigned int unit;

	s->to = shim_look_at(fd, path, s->buf, &kind, &unit);
	s->device = kind != UV_KINDS;
	if (s->device)
		s->number = device_number(kind, unit);
	if (path && *path)
		return;
	s->device = device_of(fd, &s->number);
}

/* Uses the system call: the libc of older images has __xstat(), but no stat(). */
int shim_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return (int)REAL(syscall)(SYS_newfstatat, dir, path, st, flags);
}

int shim_fstat(int fd, struct stat *st)
{
	return shim_fstatat(fd, "", st, AT_EMPTY_PATH);
}

static_assert(sizeof(struct stat) == sizeof(struct stat64), "one system call fills both");

/* Defines @name(@params) with @dir and @flags of the call; @empty: the descriptor that an empty path means. */
#define STAT(name, params, dir, flags, empty)                                    \
	int name params;                                                         \
	int name params                                                          \
	{                                                                        \
		struct subject s;                                                \
		int err;                                                         \
                                                                                 \
		subject_of(&s, empty, path);                                     \
		err = shim_fstatat(dir, s.to, (struct stat *)(void *)st, flags); \
		if (!err && s.device) {                                          \
			st->st_mode = DEVICE_MODE;                               \
			st->st_rdev = s.number;                                  \
		}                                                                \
		return err;                                                      \
	}
#define LINK AT_SYMLINK_NOFOLLOW
STAT(stat, (const char *path, struct stat *st), AT_FDCWD, 0, -1)
STAT(lstat, (const char *path, struct stat *st), AT_FDCWD, LINK, -1)
STAT(stat64, (const char *path, struct stat64 *st), AT_FDCWD, 0, -1)
STAT(lstat64, (const char *path, struct stat64 *st), AT_FDCWD, LINK, -1)
STAT(fstatat, (int dir, const char *path, struct stat *st, int flags), dir, flags, dir)
STAT(fstatat64, (int dir, const char *path, struct stat64 *st, int flags), dir, flags, dir)

/* Entry points of an older libc; @ver has only one value on 64-bit machines. */
STAT(__xstat, (int ver, const char *path, struct stat *st), AT_FDCWD, 0, -1)
STAT(__lxstat, (int ver, const char *path, struct stat *st), AT_FDCWD, LINK, -1)
STAT(__xstat64, (int ver, const char *path, struct stat64 *st), AT_FDCWD, 0, -1)
STAT(__lxstat64, (int ver, const char *path, struct stat64 *st), AT_FDCWD, LINK, -1)
STAT(__fxstatat, (int ver, int dir, const char *path, struct stat *st, int flags), dir, flags, dir)
STAT(__fxstatat64, (int ver, int dir, const char *path, struct stat64 *st, int flags), dir, flags, dir)

#define FSTAT(name, params)                                          \
	int name params;                                             \
	int name params                                              \
	{                                                            \
		int err = shim_fstat(fd, (struct stat *)(void *)st); \
		dev_t number;                                        \
                                                                     \
		if (!err && device_of(fd, &number)) {                \
			st->st_mode = DEVICE_MODE;                   \
			st->st_rdev = number;                        \
		}                                                    \
		return err;                                          \
	}
FSTAT(fstat, (int fd, struct stat *st))
FSTAT(fstat64, (int fd, struct stat64 *st))
FSTAT(__fxstat, (int ver, int fd, struct stat *st))
FSTAT(__fxstat64, (int ver, int fd, struct stat64 *st))

int statx(int dir, const char *restrict path, int flags, unsigned int mask, struct statx *restrict st)
{
	struct subject s;
	int err;

	subject_of(&s, dir, path);
	err = REAL(statx)(dir, s.to, flags, mask, st);
	if (!err && s.device) {
		st->stx_mode = DEVICE_MODE;
		st->stx_rdev_major = major(s.number);
		st->stx_rdev_minor = minor(s.number);
	}
	return err;
}

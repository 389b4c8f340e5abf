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

static void stat_as_device(struct stat *st, dev_t number)
{
	st->st_mode = DEVICE_MODE;
	st->st_rdev = number;
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

static ON_LARGE_STACK int stat_translated(int dir, const char *path, struct stat *st, int flags)
{
	char buf[SHIM_PATH_MAX];
	enum uv_kind kind;
	unsigned int unit;
	int err = shim_fstatat(dir, shim_look_at(dir, path, buf, &kind, &unit), st, flags);

	if (!err && kind != UV_KINDS)
		stat_as_device(st, device_number(kind, unit));
	return err;
}

/* @dir: directory of a relative path; if the path is empty, the descriptor that is meant. */
static int stat_path(int dir, const char *path, struct stat *st, int flags)
{
	dev_t number;
	int err;

	if (shim_may_translate(path))
		return stat_translated(dir, path, st, flags);
	err = shim_fstatat(dir, path, st, flags);
	if (!err && (!path || !*path) && device_of(dir, &number))
		stat_as_device(st, number);
	return err;
}

#define STAT(name, params, dir, flags)                                         \
	int name params;                                                       \
	int name params                                                        \
	{                                                                      \
		return stat_path(dir, path, (struct stat *)(void *)st, flags); \
	}
#define LINK AT_SYMLINK_NOFOLLOW
STAT(stat, (const char *path, struct stat *st), AT_FDCWD, 0)
STAT(lstat, (const char *path, struct stat *st), AT_FDCWD, LINK)
STAT(stat64, (const char *path, struct stat64 *st), AT_FDCWD, 0)
STAT(lstat64, (const char *path, struct stat64 *st), AT_FDCWD, LINK)
STAT(fstatat, (int dir, const char *path, struct stat *st, int flags), dir, flags)
STAT(fstatat64, (int dir, const char *path, struct stat64 *st, int flags), dir, flags)

/* Entry points of an older libc; @ver has only one value on 64-bit machines. */
STAT(__xstat, (int ver, const char *path, struct stat *st), AT_FDCWD, 0)
STAT(__lxstat, (int ver, const char *path, struct stat *st), AT_FDCWD, LINK)
STAT(__xstat64, (int ver, const char *path, struct stat64 *st), AT_FDCWD, 0)
STAT(__lxstat64, (int ver, const char *path, struct stat64 *st), AT_FDCWD, LINK)
STAT(__fxstatat, (int ver, int dir, const char *path, struct stat *st, int flags), dir, flags)
STAT(__fxstatat64, (int ver, int dir, const char *path, struct stat64 *st, int flags), dir, flags)

#define FSTAT(name, params)                                                \
	int name params;                                                   \
	int name params                                                    \
	{                                                                  \
		int err = shim_fstat(fd, (struct stat *)(void *)st);       \
		dev_t number;                                              \
                                                                           \
		if (!err && device_of(fd, &number))                        \
			stat_as_device((struct stat *)(void *)st, number); \
		return err;                                                \
	}
FSTAT(fstat, (int fd, struct stat *st))
FSTAT(fstat64, (int fd, struct stat64 *st))
FSTAT(__fxstat, (int ver, int fd, struct stat *st))
FSTAT(__fxstat64, (int ver, int fd, struct stat64 *st))

static void statx_as_device(struct statx *st, dev_t number)
{
	st->stx_mode = DEVICE_MODE;
	st->stx_rdev_major = major(number);
	st->stx_rdev_minor = minor(number);
}

static ON_LARGE_STACK int statx_translated(int dir, const char *path, int flags, unsigned int mask, struct statx *st)
{
	char buf[SHIM_PATH_MAX];
	enum uv_kind kind;
	unsigned int unit;
	int err = REAL(statx)(dir, shim_look_at(dir, path, buf, &kind, &unit), flags, mask, st);

	if (!err && kind != UV_KINDS)
		statx_as_device(st, device_number(kind, unit));
	return err;
}

int statx(int dir, const char *restrict path, int flags, unsigned int mask, struct statx *restrict st)
{
	dev_t number;
	int err;

	if (shim_may_translate(path))
		return statx_translated(dir, path, flags, mask, st);
	err = REAL(statx)(dir, path, flags, mask, st);
	if (!err && !*path && device_of(dir, &number))
		statx_as_device(st, number);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stat and the like: device files and their descriptors are character devices. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define UVERBS_MAJOR 231
#define DEVICE_MODE  (S_IFCHR | 0666)

/* A device file has the kernel's numbers. */
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

/* The device file of a call, by @path, or with an empty one by the descriptor. */
struct subject {
	char buf[SHIM_PATH_MAX];
	const char *to;
	bool device;
	dev_t number;
};

/* @fd: the folder of a relative path, or what an empty one means. */
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

/* @name(@params), by the libc's @real; @dir is what an empty path means. */
#define STAT(name, type, params, real, args, dir)  \
	int name params;                           \
	int name params                            \
	{                                          \
		struct subject s;                  \
		int err;                           \
                                                   \
		subject_of(&s, dir, path);         \
		err = REAL(real) args;             \
		if (!err && s.device) {            \
			st->st_mode = DEVICE_MODE; \
			st->st_rdev = s.number;    \
		}                                  \
		return err;                        \
	}
STAT(stat, stat, (const char *path, struct stat *st), stat, (s.to, st), -1)
STAT(lstat, stat, (const char *path, struct stat *st), lstat, (s.to, st), -1)
STAT(stat64, stat64, (const char *path, struct stat64 *st), stat64, (s.to, st), -1)
STAT(lstat64, stat64, (const char *path, struct stat64 *st), lstat64, (s.to, st), -1)
STAT(fstatat, stat, (int dir, const char *path, struct stat *st, int flags), fstatat, (dir, s.to, st, flags), dir)
STAT(fstatat64, stat64, (int dir, const char *path, struct stat64 *st, int flags), fstatat64, (dir, s.to, st, flags),
     dir)

/* Entry points of an older libc; @ver has one value on 64-bit machines. */
STAT(__xstat, stat, (int ver, const char *path, struct stat *st), stat, (s.to, st), -1)
STAT(__lxstat, stat, (int ver, const char *path, struct stat *st), lstat, (s.to, st), -1)
STAT(__xstat64, stat64, (int ver, const char *path, struct stat64 *st), stat64, (s.to, st), -1)
STAT(__lxstat64, stat64, (int ver, const char *path, struct stat64 *st), lstat64, (s.to, st), -1)
STAT(__fxstatat, stat, (int ver, int dir, const char *path, struct stat *st, int flags), fstatat,
     (dir, s.to, st, flags), dir)
STAT(__fxstatat64, stat64, (int ver, int dir, const char *path, struct stat64 *st, int flags), fstatat64,
     (dir, s.to, st, flags), dir)

#define FSTAT(name, type, params, real)               \
	int name params;                              \
	int name params                               \
	{                                             \
		int err = REAL(real)(fd, st);         \
		dev_t number;                         \
                                                      \
		if (!err && device_of(fd, &number)) { \
			st->st_mode = DEVICE_MODE;    \
			st->st_rdev = number;         \
		}                                     \
		return err;                           \
	}
FSTAT(fstat, stat, (int fd, struct stat *st), fstat)
FSTAT(fstat64, stat64, (int fd, struct stat64 *st), fstat64)
FSTAT(__fxstat, stat, (int ver, int fd, struct stat *st), fstat)
FSTAT(__fxstat64, stat64, (int ver, int fd, struct stat64 *st), fstat64)

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

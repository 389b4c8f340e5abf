// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls that take a path. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define UVERBS_MAJOR 231

/* Counters and states are brought up to date when somebody looks. */
static const char *looked_at(const char *path, char *buf, enum uv_kind *kind, unsigned int *unit)
{
	const char *to = shim_path(path, buf, kind, unit);

	if (to == buf && (!kind || *kind == UV_KINDS))
		shim_refresh();
	return to;
}

static int open_path(int dir, const char *path, int flags, mode_t mode)
{
	char buf[SHIM_PATH_MAX];
	enum uv_kind kind;
	unsigned int unit;
	const char *to = looked_at(path, buf, &kind, &unit);

	if (to == buf && kind != UV_KINDS)
		return shim_open(kind, unit, flags);
	return REAL(openat)(dir, to, flags, mode);
}

static mode_t mode_arg(int flags, va_list ap)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
}

#define OPEN(name)                                             \
	int name(const char *path, int flags, ...)             \
	{                                                      \
		va_list ap;                                    \
		mode_t mode;                                   \
                                                               \
		va_start(ap, flags);                           \
		mode = mode_arg(flags, ap);                    \
		va_end(ap);                                    \
		return open_path(AT_FDCWD, path, flags, mode); \
	}
#define OPENAT(name)                                        \
	int name(int dir, const char *path, int flags, ...) \
	{                                                   \
		va_list ap;                                 \
		mode_t mode;                                \
                                                            \
		va_start(ap, flags);                        \
		mode = mode_arg(flags, ap);                 \
		va_end(ap);                                 \
		return open_path(dir, path, flags, mode);   \
	}
OPEN(open)
OPEN(open64)
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
int __open_2(const char *path, int flags)
{
	return open_path(AT_FDCWD, path, flags, 0);
}
int __open64_2(const char *path, int flags)
{
	return open_path(AT_FDCWD, path, flags, 0);
}
int __openat_2(int dir, const char *path, int flags)
{
	return open_path(dir, path, flags, 0);
}
int __openat64_2(int dir, const char *path, int flags)
{
	return open_path(dir, path, flags, 0);
}

/* openat itself is what open_path() calls: its hook must find the real one, which REAL() does. */
OPENAT(openat)
OPENAT(openat64)

FILE *fopen(const char *path, const char *mode)
{
	char buf[SHIM_PATH_MAX];

	return REAL(fopen)(looked_at(path, buf, NULL, NULL), mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	char buf[SHIM_PATH_MAX];

	return REAL(fopen64)(looked_at(path, buf, NULL, NULL), mode);
}

DIR *opendir(const char *path)
{
	char buf[SHIM_PATH_MAX];

	return REAL(opendir)(looked_at(path, buf, NULL, NULL));
}

int scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
	    int (*cmp)(const struct dirent **, const struct dirent **))
{
	char buf[SHIM_PATH_MAX];

	return REAL(scandir)(looked_at(path, buf, NULL, NULL), list, filter, cmp);
}

int scandir64(const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
	      int (*cmp)(const struct dirent64 **, const struct dirent64 **))
{
	char buf[SHIM_PATH_MAX];

	return REAL(scandir64)(looked_at(path, buf, NULL, NULL), list, filter, cmp);
}

/* A device file is a character device of the kernel's numbers. */
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

#define STAT(name, type)                                                      \
	int name(const char *path, struct type *st)                           \
	{                                                                     \
		char buf[SHIM_PATH_MAX];                                      \
		enum uv_kind kind;                                            \
		unsigned int unit;                                            \
		int err = REAL(name)(looked_at(path, buf, &kind, &unit), st); \
                                                                              \
		if (!err && kind != UV_KINDS) {                               \
			st->st_mode = S_IFCHR | 0666;                         \
			st->st_rdev = device_number(kind, unit);              \
		}                                                             \
		return err;                                                   \
	}
STAT(stat, stat)
STAT(lstat, stat)
STAT(stat64, stat64)
STAT(lstat64, stat64)

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	char buf[SHIM_PATH_MAX];
	enum uv_kind kind;
	unsigned int unit;
	int err = REAL(fstatat)(dir, looked_at(path, buf, &kind, &unit), st, flags);

	if (!err && kind != UV_KINDS) {
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = device_number(kind, unit);
	}
	return err;
}

int fstat(int fd, struct stat *st)
{
	const struct shim_file *f;
	int err = REAL(fstat)(fd, st);

	f = err ? NULL : shim_file_get(fd);
	if (f) {
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = device_number(f->kind, 0);
	}
	return err;
}

int fstat64(int fd, struct stat64 *st)
{
	const struct shim_file *f;
	int err = REAL(fstat64)(fd, st);

	f = err ? NULL : shim_file_get(fd);
	if (f) {
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = device_number(f->kind, 0);
	}
	return err;
}

int access(const char *path, int mode)
{
	char buf[SHIM_PATH_MAX];

	return REAL(access)(looked_at(path, buf, NULL, NULL), mode);
}

ssize_t readlink(const char *path, char *to, size_t len)
{
	char buf[SHIM_PATH_MAX];

	return REAL(readlink)(looked_at(path, buf, NULL, NULL), to, len);
}

char *realpath(const char *path, char *to)
{
	char buf[SHIM_PATH_MAX];

	return REAL(realpath)(looked_at(path, buf, NULL, NULL), to);
}

int glob(const char *pattern, int flags, int (*err)(const char *path, int err), glob_t *g)
{
	char buf[SHIM_PATH_MAX];

	return REAL(glob)(looked_at(pattern, buf, NULL, NULL), flags, err, g);
}

int chdir(const char *path)
{
	char buf[SHIM_PATH_MAX];

	return REAL(chdir)(looked_at(path, buf, NULL, NULL));
}

int faccessat(int dir, const char *path, int mode, int flags)
{
	char buf[SHIM_PATH_MAX];

	return REAL(faccessat)(dir, looked_at(path, buf, NULL, NULL), mode, flags);
}

int eaccess(const char *path, int mode)
{
	char buf[SHIM_PATH_MAX];

	return REAL(eaccess)(looked_at(path, buf, NULL, NULL), mode);
}

int euidaccess(const char *path, int mode)
{
	char buf[SHIM_PATH_MAX];

	return REAL(euidaccess)(looked_at(path, buf, NULL, NULL), mode);
}

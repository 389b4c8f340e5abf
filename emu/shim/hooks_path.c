// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls with a path argument. */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "emu/shim/shim.h"

static ON_LARGE_STACK int open_translated(int dir, const char *path, int flags, mode_t mode)
{
	char buf[SHIM_PATH_MAX];
	enum uv_kind kind;
	unsigned int unit;
	const char *to = shim_look_at(dir, path, buf, &kind, &unit);

	if (to == buf && kind != UV_KINDS)
		return shim_open(kind, unit, flags);
	return REAL(openat)(dir, to, flags, mode);
}

static int open_path(int dir, const char *path, int flags, mode_t mode)
{
	return shim_may_translate(path) ? open_translated(dir, path, flags, mode)
					: REAL(openat)(dir, path, flags, mode);
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

/* open() and openat() in programs that are compiled with _FORTIFY_SOURCE, and creat(). */
#define OPEN_FIXED(name, params, dir, flags, mode)        \
	int name params;                                  \
	int name params                                   \
	{                                                 \
		return open_path(dir, path, flags, mode); \
	}
OPEN_FIXED(__open_2, (const char *path, int flags), AT_FDCWD, flags, 0)
OPEN_FIXED(__open64_2, (const char *path, int flags), AT_FDCWD, flags, 0)
OPEN_FIXED(__openat_2, (int dir, const char *path, int flags), dir, flags, 0)
OPEN_FIXED(__openat64_2, (int dir, const char *path, int flags), dir, flags, 0)
OPEN_FIXED(creat, (const char *path, mode_t mode), AT_FDCWD, O_CREAT | O_WRONLY | O_TRUNC, mode)
OPEN_FIXED(creat64, (const char *path, mode_t mode), AT_FDCWD, O_CREAT | O_WRONLY | O_TRUNC, mode)

/* open_path() calls the libc's openat() through REAL(), not this hook. */
OPENAT(openat)
OPENAT(openat64)

/* Defines @name(@params): calls the libc's function with the translated path @to; @result converts its return value. */
#define ON_PATH_AT(dir, type, name, params, args, result)                                       \
	type name params;                                                                       \
	static ON_LARGE_STACK type name##_translated params                                     \
	{                                                                                       \
		char buf[SHIM_PATH_MAX];                                                        \
		const char *to = shim_look_at(dir, path, buf, NULL, NULL);                      \
                                                                                                \
		return REAL(name) args;                                                         \
	}                                                                                       \
	type name params                                                                        \
	{                                                                                       \
		const char *to = path;                                                          \
                                                                                                \
		return result((shim_may_translate(path) ? name##_translated : REAL(name))args); \
	}
#define ON_PATH(type, name, params, args) ON_PATH_AT(AT_FDCWD, type, name, params, args, )
ON_PATH(FILE *, fopen, (const char *path, const char *mode), (to, mode))
ON_PATH(FILE *, fopen64, (const char *path, const char *mode), (to, mode))
ON_PATH(FILE *, freopen, (const char *path, const char *mode, FILE *f), (to, mode, f))
ON_PATH(DIR *, opendir, (const char *path), (to))
ON_PATH(int, scandir,
	(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
	 int (*cmp)(const struct dirent **, const struct dirent **)),
	(to, list, filter, cmp))
ON_PATH(int, scandir64,
	(const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
	 int (*cmp)(const struct dirent64 **, const struct dirent64 **)),
	(to, list, filter, cmp))
ON_PATH(int, access, (const char *path, int mode), (to, mode))
ON_PATH(int, eaccess, (const char *path, int mode), (to, mode))
ON_PATH(int, euidaccess, (const char *path, int mode), (to, mode))
ON_PATH_AT(dir, int, faccessat, (int dir, const char *path, int mode, int flags), (dir, to, mode, flags), )
ON_PATH(ssize_t, readlink, (const char *path, char *link, size_t len), (to, link, len))
ON_PATH_AT(dir, ssize_t, readlinkat, (int dir, const char *path, char *link, size_t len), (dir, to, link, len), )
ON_PATH(ssize_t, __readlink_chk, (const char *path, char *link, size_t len, size_t room), (to, link, len, room))
ON_PATH_AT(dir, ssize_t, __readlinkat_chk, (int dir, const char *path, char *link, size_t len, size_t room),
	   (dir, to, link, len, room), )
ON_PATH_AT(AT_FDCWD, char *, realpath, (const char *path, char *resolved), (to, resolved), shim_seen)
ON_PATH_AT(AT_FDCWD, char *, __realpath_chk, (const char *path, char *resolved, size_t room), (to, resolved, room),
	   shim_seen)
ON_PATH_AT(AT_FDCWD, char *, canonicalize_file_name, (const char *path), (to), shim_seen)
ON_PATH(int, chdir, (const char *path), (to))
/* Extended attributes: the files of the tree have none, like those of sysfs. */
ON_PATH(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size), (to, name, value, size))
ON_PATH(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size), (to, name, value, size))
ON_PATH(ssize_t, listxattr, (const char *path, char *list, size_t size), (to, list, size))
ON_PATH(ssize_t, llistxattr, (const char *path, char *list, size_t size), (to, list, size))

char *getcwd(char *buf, size_t size)
{
	return shim_seen(REAL(getcwd)(buf, size));
}

char *__getcwd_chk(char *buf, size_t size, size_t room);
char *__getcwd_chk(char *buf, size_t size, size_t room)
{
	return shim_seen(REAL(__getcwd_chk)(buf, size, room));
}

char *get_current_dir_name(void)
{
	return shim_seen(REAL(get_current_dir_name)());
}

#define GLOB(name, type)                                                                                           \
	int name(const char *path, int flags, int (*err)(const char *at, int code), type *g)                       \
	{                                                                                                          \
		char buf[SHIM_PATH_MAX];                                                                           \
		const char *to = shim_look(path, buf, NULL, NULL);                                                 \
		size_t first = flags & GLOB_APPEND ? g->gl_pathc : 0, offs = flags & GLOB_DOOFFS ? g->gl_offs : 0; \
		int result = REAL(name)(to, flags, err, g);                                                        \
                                                                                                                   \
		for (; !result && to == buf && first < g->gl_pathc; first++)                                       \
			shim_seen(g->gl_pathv[offs + first]);                                                      \
		return result;                                                                                     \
	}
GLOB(glob, glob_t)
GLOB(glob64, glob64_t)

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files and links of a host's sysfs tree, with the kernel's modes; only changes are written. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/host/sysfs.h"

#define TREE_PATH 768

/* FNV-1a; never 0, which means unwritten. */
static u64 tree_hash(u64 h, const char *text)
{
	while (*text)
		h = (h ^ (u8)*text++) * 0x100000001b3ull;
	return h | 1;
}

/* False: the entry is unchanged since the previous pass. */
static bool tree_begin(struct uv_tree *t, const char *file, const char *text, char path[TREE_PATH])
{
	u64 h = tree_hash(tree_hash(0xcbf29ce484222325ull, file), text);
	bool same = t->n < t->max && t->written[t->n] == h;

	if (!same && t->n < t->max)
		t->written[t->n] = h;
	t->n++;
	snprintf(path, TREE_PATH, "%s/%s", t->root, file);
	return !same;
}

static void tree_failed(struct uv_tree *t)
{
	t->err = -errno;
	if (t->n <= t->max)
		t->written[t->n - 1] = 0;
}

/*
 * Creates the directories of @path, but none above the tree: who has removed that has removed the fabric's files. Sets
 * the mode explicitly: the daemon's umask may be narrower.
 */
static void make_dirs(const struct uv_tree *t, char *path)
{
	char *p;

	for (p = path + strlen(t->root); (p = strchr(p, '/')); p++) {
		*p = 0;
		if (!mkdir(path, 0755))
			chmod(path, 0755);
		*p = '/';
	}
}

/* Opens the file in spite of a missing directory, a link, or a mode without write permission. */
static int open_to_write(const struct uv_tree *t, char *path)
{
	const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(path, flags, 0600);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		make_dirs(t, path);
	else if (errno == ELOOP)
		unlink(path);
	else if (errno == EACCES)
		chmod(path, 0600);
	else
		return -1;
	return open(path, flags, 0600);
}

void uv_tree_put(struct uv_tree *t, const char *file, u32 mode, const char *fmt, ...)
{
	char path[TREE_PATH], text[512];
	va_list ap;
	int len, fd;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	len = len < (int)sizeof(text) ? len : (int)sizeof(text) - 1;
	if (!tree_begin(t, file, text, path))
		return;
	fd = open_to_write(t, path);
	if (fd < 0 || pwrite(fd, text, (size_t)len, 0) != len || ftruncate(fd, len) || fchmod(fd, mode))
		tree_failed(t);
	if (fd >= 0)
		close(fd);
}

void uv_tree_link(struct uv_tree *t, const char *file, const char *fmt, ...)
{
	char path[TREE_PATH], target[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(target, sizeof(target), fmt, ap);
	va_end(ap);
	if (!tree_begin(t, file, target, path))
		return;
	make_dirs(t, path);
	unlink(path);
	if (symlink(target, path))
		tree_failed(t);
}

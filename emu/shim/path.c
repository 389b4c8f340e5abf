// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Path translation: paths of RDMA devices and network interfaces lead to the host's tree. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/shim/shim.h"

static const char *const prefixes[] = {
	"/sys/class/infiniband", /* and infiniband_verbs, infiniband_mad, infiniband_cm */
	"/sys/class/misc/rdma_cm", ("/sys/devices/" UV_PCI_ROOT),
	"/sys/bus/pci/devices", /* with the machine's functions */
	"/sys/bus/pci/drivers",    "/sys/module/ib_",
	"/sys/module/rdma_",       "/sys/module/iw_cm",
	"/dev/infiniband",
};
/* Network interfaces; a host without interfaces of its own has the machine's. */
static const char *const net_prefixes[] = { "/sys/class/net", "/sys/devices/virtual/net" };

#define INET6 "/proc/net/if_inet6"

static const struct {
	const char *name;
	enum uv_kind kind;
} devices[] = { { "uverbs", UV_UVERBS }, { "umad", UV_UMAD }, { "issm", UV_ISSM }, { "rdma_cm", UV_RDMA_CM } };

bool shim_active(void)
{
	return getenv("MUSLIN_TREE") && getenv("MUSLIN_SOCKET") && getenv("MUSLIN_HOST");
}

static void path_refresh(void)
{
	int fds[2], rpc, cancel, saved = errno;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (!shim_connect(UV_SYSFS, 0, 0, fds, &rpc, NULL)) {
		shim_call_on(rpc, &(struct shim_request){ .op = UV_REFRESH });
		shim_private_close(rpc);
	}
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

/* Builds the path in the host's tree. False: it is too long. */
static bool tree_path(const char *path, char *buf)
{
	return snprintf(buf, SHIM_PATH_MAX, "%s/%s%s", getenv("MUSLIN_TREE"), getenv("MUSLIN_HOST"), path) <
	       SHIM_PATH_MAX;
}

/* Of its name. A program may set MUSLIN_HOST, and use several hosts. */
static unsigned int host_hash(void)
{
	unsigned int hash = 2166136261u;
	const char *s;

	for (s = getenv("MUSLIN_HOST"); s && *s; s++)
		hash = (hash ^ (unsigned char)*s) * 16777619u;
	return hash;
}

/* The daemon creates the tree at the first access: in a container, `muslin run` has not created it. */
static bool netdevs_look(void)
{
	char buf[SHIM_PATH_MAX];

	if (!shim_active() || !tree_path(net_prefixes[0], buf))
		return false;
	if (REAL(access)(buf, F_OK))
		path_refresh();
	return !REAL(access)(buf, F_OK);
}

bool shim_has_netdevs(void)
{
	static unsigned long long known; /* 0: nothing; or 2, whether there are any, and the host's hash above */
	unsigned long long now = __atomic_load_n(&known, __ATOMIC_RELAXED), host = host_hash();
	int saved = errno;

	host = host << 2 | 2;
	if ((now & ~1ull) != host) {
		now = host | netdevs_look();
		__atomic_store_n(&known, now, __ATOMIC_RELAXED);
	}
	errno = saved;
	return now & 1;
}

static bool has_prefix(const char *path)
{
	size_t i, n;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
			return shim_active();
	for (i = 0; i < sizeof(net_prefixes) / sizeof(net_prefixes[0]); i++) {
		n = strlen(net_prefixes[i]);
		if (!strncmp(path, net_prefixes[i], n) && (!path[n] || path[n] == '/'))
			return shim_has_netdevs();
	}
	return false;
}

/* Copies to @buf the path without its empty and "." components, which names the same file (path_resolution(7)). */
static void path_shorten(const char *path, char *buf)
{
	size_t n = 0, part;

	for (; *path; path += part) {
		part = 1 + strcspn(path + 1, "/");
		if (path[1] == '/' || (part == 2 && path[1] == '.' && path[2] == '/'))
			continue;
		if (n + part >= SHIM_PATH_MAX)
			break;
		memcpy(buf + n, path, part);
		n += part;
	}
	buf[n] = '\0';
}

static bool is_short(const char *path)
{
	return !strstr(path, "//") && !strstr(path, "/./");
}

static void device_of(const char *path, enum uv_kind *kind, unsigned int *unit)
{
	size_t i, n;

	if (strncmp(path, "/dev/infiniband/", 16))
		return;
	for (i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		n = strlen(devices[i].name);
		if (strncmp(path + 16, devices[i].name, n))
			continue;
		*kind = devices[i].kind;
		*unit = (unsigned int)atoi(path + 16 + n);
	}
}

/* Returns @buf, or NULL: nothing is to be translated. */
static const char *path_translate(const char *path, char *buf, enum uv_kind *dev, unsigned int *unit)
{
	if (!strcmp(path, INET6) && shim_has_netdevs())
		return shim_netdev_inet6(buf) ? buf : NULL;
	if (!has_prefix(path))
		return NULL;
	if (dev)
		device_of(path, dev, unit);
	return tree_path(path, buf) ? buf : NULL;
}

static ON_LARGE_STACK const char *path_translate_long(const char *path, char *buf, enum uv_kind *dev,
						      unsigned int *unit)
{
	char room[SHIM_PATH_MAX];

	path_shorten(path, room);
	return path_translate(room, buf, dev, unit);
}

static const char *shim_path(const char *path, char *buf, enum uv_kind *dev, unsigned int *unit)
{
	const char *to = NULL;

	if (dev) {
		*dev = UV_KINDS;
		*unit = 0;
	}
	if (path && path[0] == '/')
		to = is_short(path) ? path_translate(path, buf, dev, unit) : path_translate_long(path, buf, dev, unit);
	return to ? to : path;
}

/* Is it such a path if it is relative to the root? */
static bool is_below_root(const char *path)
{
	return !strncmp(path, "sys/", 4) || !strncmp(path, "dev/", 4);
}

bool shim_may_translate(const char *path)
{
	if (!path)
		return false;
	if (path[0] != '/')
		return is_below_root(path);
	return !is_short(path) || !strncmp(path, "/sys/", 5) || !strncmp(path, "/dev/infiniband", 15) ||
	       !strcmp(path, INET6);
}

/* The daemon updates counters and states when sysfs is read; it creates the tree at the first access. */
const char *shim_look(const char *path, char *buf, enum uv_kind *dev, unsigned int *unit)
{
	static unsigned int made; /* hash of the host whose tree exists */
	const char *to = shim_path(path, buf, dev, unit);
	unsigned int host;

	if (to != buf)
		return to;
	host = host_hash();
	if (__atomic_load_n(&made, __ATOMIC_RELAXED) != host || !dev || *dev == UV_KINDS) {
		path_refresh();
		__atomic_store_n(&made, host, __ATOMIC_RELAXED);
	}
	return to;
}

/* Is @dir open on the root of the file system? */
static bool is_root(int dir)
{
	struct stat at, root;

	return dir != AT_FDCWD && !shim_fstat(dir, &at) && !shim_fstatat(AT_FDCWD, "/", &root, 0) &&
	       at.st_ino == root.st_ino && at.st_dev == root.st_dev;
}

static ON_LARGE_STACK const char *look_from_root(const char *path, char *buf, enum uv_kind *dev, unsigned int *unit)
{
	char absolute[SHIM_PATH_MAX];
	const char *to = NULL;

	if (snprintf(absolute, sizeof(absolute), "/%s", path) < (int)sizeof(absolute))
		to = shim_look(absolute, buf, dev, unit);
	return to == buf ? to : path;
}

const char *shim_look_at(int dir, const char *path, char *buf, enum uv_kind *dev, unsigned int *unit)
{
	if (path && is_below_root(path) && is_root(dir))
		return look_from_root(path, buf, dev, unit);
	return shim_look(path, buf, dev, unit);
}

static bool strip(char *path, const char *root)
{
	size_t n = strlen(root);

	if (strncmp(path, root, n) || path[n] != '/')
		return false;
	memmove(path, path + n, strlen(path + n) + 1);
	return true;
}

char *shim_seen(char *path)
{
	char root[SHIM_PATH_MAX], real[SHIM_PATH_MAX];
	int saved = errno;

	if (path && shim_active() && tree_path("", root) && !strip(path, root) && REAL(realpath)(root, real))
		strip(path, real);
	errno = saved;
	return path;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which paths are ours: those of RDMA devices, which lead into the host's tree. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/shim/shim.h"

static const char *const prefixes[] = {
	"/sys/class/infiniband", /* and infiniband_verbs, infiniband_mad, infiniband_cm */
	"/sys/class/misc/rdma_cm",
	"/dev/infiniband",
};

static const struct {
	const char *name;
	enum uv_kind kind;
} devices[] = { { "uverbs", UV_UVERBS }, { "umad", UV_UMAD }, { "issm", UV_ISSM }, { "rdma_cm", UV_RDMA_CM } };

void *shim_real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

bool shim_active(void)
{
	return getenv("MUSLIN_TREE") && getenv("MUSLIN_SOCKET") && getenv("MUSLIN_HOST");
}

static void path_refresh(void)
{
	int fds[2], rpc, saved = errno;

	if (!shim_connect(UV_SYSFS, 0, 0, fds, &rpc, NULL)) {
		shim_call(rpc, UV_REFRESH, 0, NULL, 0, -1, NULL, NULL, NULL);
		shim_private_close(rpc);
	}
	errno = saved;
}

static bool has_prefix(const char *path)
{
	size_t i;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	return false;
}

static void device_of(const char *path, enum uv_kind *kind, unsigned int *unit)
{
	size_t i, n;

	*kind = UV_KINDS;
	*unit = 0;
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

const char *shim_path(const char *path, char *buf, enum uv_kind *dev, unsigned int *unit)
{
	enum uv_kind kind;
	unsigned int n;

	if (dev)
		*dev = UV_KINDS;
	if (!path || path[0] != '/' || !has_prefix(path) || !shim_active())
		return path;
	device_of(path, &kind, &n);
	if (dev) {
		*dev = kind;
		*unit = n;
	}
	if (snprintf(buf, SHIM_PATH_MAX, "%s/%s%s", getenv("MUSLIN_TREE"), getenv("MUSLIN_HOST"), path) >=
	    SHIM_PATH_MAX)
		return path;
	return buf;
}

/* The daemon updates counters and states when sysfs is read; it creates the tree at the first access. */
const char *shim_look(const char *path, char *buf, enum uv_kind *dev, unsigned int *unit)
{
	static bool made;
	const char *to = shim_path(path, buf, dev, unit);

	if (to == buf && (!made || !dev || *dev == UV_KINDS)) {
		path_refresh();
		made = true;
	}
	return to;
}

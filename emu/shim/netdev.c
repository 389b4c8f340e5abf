// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Network interfaces of the host: IPoIB, or those of its Ethernet port. They are read from /sys/class/net of the host's
 * tree, so that all calls return the same names and indexes. The machine does not have these interfaces; the host has
 * none of the machine's, except lo.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/shim/shim.h"

#define LOWER_UP (1u << 16) /* IFF_LOWER_UP, which net/if.h does not have */

static bool read_leaf(int dir, const char *name, const char *leaf, char text[64])
{
	char path[IF_NAMESIZE + 16];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", name, leaf);
	fd = REAL(openat)(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = REAL(read)(fd, text, 63);
		REAL(close)(fd);
	}
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

static unsigned int read_number(int dir, const char *name, const char *leaf)
{
	char text[64];

	return read_leaf(dir, name, leaf, text) ? (unsigned int)strtoul(text, NULL, 0) : 0;
}

/* Reads an address such as "00:11:22". Returns its length in bytes. */
static unsigned int read_address(int dir, const char *name, const char *leaf, unsigned char addr[20])
{
	char text[64], *at = text;
	unsigned int n = 0;

	if (!read_leaf(dir, name, leaf, text))
		return 0;
	while (n < 20 && *at && *at != '\n') {
		addr[n++] = (unsigned char)strtoul(at, &at, 16);
		at += *at == ':';
	}
	return n;
}

static void netdev_read(int dir, const char *name, struct shim_netdev *d)
{
	*d = (struct shim_netdev){ .index = read_number(dir, name, "ifindex"),
				   .flags = read_number(dir, name, "flags"),
				   .mtu = read_number(dir, name, "mtu"),
				   .type = read_number(dir, name, "type") };
	snprintf(d->name, sizeof(d->name), "%.15s", name);
	d->len = read_address(dir, name, "address", d->addr);
	read_address(dir, name, "broadcast", d->broadcast);
	if (read_number(dir, name, "carrier"))
		d->flags |= IFF_RUNNING | LOWER_UP;
}

static int by_index(const void *a, const void *b)
{
	const struct shim_netdev *x = a, *y = b;

	return (int)x->index - (int)y->index;
}

size_t shim_netdev_list(struct shim_netdev list[SHIM_NETDEVS])
{
	DIR *dir = opendir("/sys/class/net"); /* the hook, which updates the tree */
	const struct dirent *e;
	int saved = errno;
	size_t n = 0;

	while (dir && n < SHIM_NETDEVS && (e = readdir(dir)))
		if (*e->d_name != '.' && strcmp(e->d_name, "lo"))
			netdev_read(dirfd(dir), e->d_name, &list[n++]);
	if (dir)
		closedir(dir);
	qsort(list, n, sizeof(*list), by_index);
	errno = saved;
	return n;
}

bool shim_netdev_find(const char *name, unsigned int index, struct shim_netdev *dev)
{
	struct shim_netdev list[SHIM_NETDEVS];
	size_t n = shim_netdev_list(list);

	while (n--) {
		if (name ? strcmp(list[n].name, name) : list[n].index != index)
			continue;
		*dev = list[n];
		return true;
	}
	return false;
}

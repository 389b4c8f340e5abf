/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Declarations shared by the files that create the sysfs tree of a host. */
#ifndef MUSLIN_HOST_SYSFS_H
#define MUSLIN_HOST_SYSFS_H

#include "emu/host/server.h"

/* A pass over the tree. Entries unchanged since the previous pass are skipped. */
struct uv_tree {
	char root[512];
	int err;
	u64 *written; /* hashes of path and contents, by entry number: the order rarely changes */
	u32 n, max;
};

#define SYSFS_READ  0444
#define SYSFS_WRITE 0644 /* for device files, too */

#define SYSFS_PCI "sys/devices/" UV_PCI_ROOT "/" UV_PCI_SLOT /* of the adapter */

/* sysfs.c: the port's rate in Gb/s, times ten; *lanes and *name: the lanes and the speed that it is made of. */
u32 uv_sysfs_rate(const struct wire_port_attr *a, u32 *lanes, const char **name);

/* sysfs_tree.c */
/* Writes the formatted text to the file if it differs; in place, because a reader may have it open. */
void uv_tree_put(struct uv_tree *t, const char *file, u32 mode, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void uv_tree_link(struct uv_tree *t, const char *file, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* sysfs_pci.c */
/* Lists the machine's PCI functions and drivers, once: the directories are replaced by those with the adapter. */
void uv_sysfs_put_bus(struct uv_tree *t);
/* The kernel modules that a program looks for. */
void uv_sysfs_put_modules(struct uv_tree *t, const struct uv_host *h);
void uv_sysfs_put_pci(struct uv_tree *t, const struct uv_host *h);
/* Links of a device of that class on the PCI function. */
void uv_sysfs_put_member(struct uv_tree *t, const char *class, const char *name);
void uv_sysfs_put_netdevs(struct uv_tree *t, struct uv_host *h);

#endif

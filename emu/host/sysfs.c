// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The files that programs of a host see as /sys/class/infiniband and /dev/infiniband; rewritten on changes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "emu/hca/iw.h"
#include "emu/host/interface.h"
#include "emu/host/sysfs.h"

static void put_guid(struct uv_tree *t, const char *file, u64 guid)
{
	uv_tree_put(t, file, SYSFS_READ, "%04x:%04x:%04x:%04x\n", (u32)(guid >> 48), (u32)(guid >> 32) & 0xffff,
		    (u32)(guid >> 16) & 0xffff, (u32)guid & 0xffff);
}

static const char *const port_states[] = { "0: NOP", "1: DOWN", "2: INIT", "3: ARMED", "4: ACTIVE" };
static const char *const phys_states[] = {
	"0: <unknown>",         "1: Sleep",   "2: Polling", "3: Disabled", "4: PortConfigurationTraining", "5: LinkUp",
	"6: LinkErrorRecovery", "7: Phy Test"
};

struct speed {
	u8 ext, speed;
	const char *name;
	u32 tenths; /* Gb/s per lane, times ten */
};
static const struct speed speeds[] = {
	{ 32, 0, "XDR", 2000 }, { 8, 0, "NDR", 1000 }, { 4, 0, "HDR", 500 }, { 2, 0, "EDR", 250 },
	{ 1, 0, "FDR", 140 },   { 0, 4, "QDR", 100 },  { 0, 2, "DDR", 50 },  { 0, 1, "SDR", 25 },
};

u32 uv_sysfs_rate(const struct wire_port_attr *a, u32 *lanes, const char **name)
{
	static const u8 widths[] = { [1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2 };
	const struct speed *s = &speeds[ARRAY_SIZE(speeds) - 1];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(speeds); i++) {
		if ((speeds[i].ext && a->speed_ext_active & speeds[i].ext) ||
		    (speeds[i].speed && !a->speed_ext_active && a->speed_active & speeds[i].speed)) {
			s = &speeds[i];
			break;
		}
	}
	*lanes = a->width_active < ARRAY_SIZE(widths) && widths[a->width_active] ? widths[a->width_active] : 1;
	*name = a->fdr10_active ? "FDR10" : s->name;
	return s->tenths * *lanes;
}

static void put_rate(struct uv_tree *t, const char *dir, const struct wire_port_attr *a)
{
	const char *name;
	u32 n, rate = uv_sysfs_rate(a, &n, &name);
	char file[192];

	snprintf(file, sizeof(file), "%s/rate", dir);
	if (rate % 10)
		uv_tree_put(t, file, SYSFS_READ, "%u.%u Gb/sec (%uX %s)\n", rate / 10, rate % 10, n, name);
	else
		uv_tree_put(t, file, SYSFS_READ, "%u Gb/sec (%uX %s)\n", rate / 10, n, name);
}

/*
 * Creates a file whose reads fail with EINVAL, as those of the kernel do for an empty entry or one without a network
 * interface. A regular file cannot fail; the speed of the loopback interface does.
 */
static void put_invalid(struct uv_tree *t, const char *file)
{
	uv_tree_link(t, file, "/sys/class/net/lo/speed");
}

static void put_gid_attrs(struct uv_tree *t, const char *dir, const struct uv_host *h, const struct wire_port_attr *a,
			  u32 i)
{
	bool ethernet = a->link_layer == WIRE_LINK_ETHERNET, empty = wire_gid_is_zero(&a->gid[i]);
	bool v2 = ethernet && !hca_iw(h->hca) && a->gid_l2[i].version != 1;
	char file[192];

	snprintf(file, sizeof(file), "%s/gid_attrs/types/%u", dir, i);
	if (empty)
		put_invalid(t, file);
	else
		uv_tree_put(t, file, SYSFS_READ, v2 ? "RoCE v2\n" : "IB/RoCE v1\n");
	snprintf(file, sizeof(file), "%s/gid_attrs/ndevs/%u", dir, i);
	if (empty || !ethernet || !h->gid_netdev)
		put_invalid(t, file);
	else
		uv_tree_put(t, file, SYSFS_READ, "%s\n", h->gid_netdev(h, i));
}

static void put_gids(struct uv_tree *t, const char *dir, const struct wire_port_attr *a, const struct uv_host *h)
{
	char file[192];
	u32 i, j;

	for (i = 0; i < max((u32)a->gids, 1u); i++) {
		const u8 *g = a->gid[i].raw;
		char text[48];
		int n = 0;

		for (j = 0; j < 16; j += 2)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%02x%02x", j ? ":" : "", g[j], g[j + 1]);
		snprintf(file, sizeof(file), "%s/gids/%u", dir, i);
		uv_tree_put(t, file, SYSFS_READ, "%s\n", text);
		put_gid_attrs(t, dir, h, a, i);
	}
	for (i = 0; i < max((u32)a->pkeys, 1u); i++) {
		snprintf(file, sizeof(file), "%s/pkeys/%u", dir, i);
		uv_tree_put(t, file, SYSFS_READ, "0x%04x\n", a->pkey[i]);
	}
}

static void put_counters(struct uv_tree *t, const char *dir, struct uv_host *h, u8 port)
{
	const char *name;
	char file[224];
	u64 v;
	u32 n;

	for (n = 0; h->counter && (name = h->counter(h, port, n, &v)); n++) {
		snprintf(file, sizeof(file), "%s/counters/%s", dir, name);
		uv_tree_put(t, file, SYSFS_READ, "%llu\n", (unsigned long long)v);
	}
	for (n = 0; (name = hca_counter_name(n)); n++) {
		snprintf(file, sizeof(file), "%s/hw_counters/%s", dir, name);
		uv_tree_put(t, file, SYSFS_READ, "%llu\n", (unsigned long long)hca_counter(h->hca, port, n));
	}
}

static void put_port(struct uv_tree *t, struct uv_host *h, u8 num)
{
	const struct wire_port_attr *a = &h->port[num - 1]->attr;
	char dir[160], file[192];

	snprintf(dir, sizeof(dir), SYSFS_PCI "/infiniband/%s/ports/%u", h->device, num);
#define PUT(name, ...) (snprintf(file, sizeof(file), "%s/" name, dir), uv_tree_put(t, file, SYSFS_READ, __VA_ARGS__))
	PUT("state", "%s\n", port_states[a->state < ARRAY_SIZE(port_states) ? a->state : 0]);
	PUT("phys_state", "%s\n", phys_states[a->phys_state < ARRAY_SIZE(phys_states) ? a->phys_state : 0]);
	PUT("lid", "0x%x\n", a->lid);
	PUT("sm_lid", "0x%x\n", a->sm_lid);
	PUT("sm_sl", "%u\n", a->sm_sl);
	PUT("lid_mask_count", "%u\n", a->lmc);
	PUT("cap_mask", "0x%08x\n", a->cap_mask);
	PUT("link_layer", "%s\n", a->link_layer == WIRE_LINK_ETHERNET ? "Ethernet" : "InfiniBand");
#undef PUT
	put_rate(t, dir, a);
	put_gids(t, dir, a, h);
	put_counters(t, dir, h, num);
}

/* Entries of /sys and /dev that exist even without a device. */
static void put_classes(struct uv_tree *t, const struct uv_host *h)
{
	uv_tree_put(t, "sys/class/infiniband_verbs/abi_version", SYSFS_READ, "6\n");
	uv_tree_put(t, "sys/class/infiniband_mad/abi_version", SYSFS_READ, "5\n");
	uv_tree_put(t, "sys/class/misc/rdma_cm/abi_version", SYSFS_READ, "4\n");
	uv_tree_put(t, "sys/class/misc/rdma_cm/dev", SYSFS_READ, "10:58\n");
	uv_tree_put(t, "dev/infiniband/rdma_cm", SYSFS_WRITE, "%s", "");
	uv_sysfs_put_bus(t);
	uv_sysfs_put_modules(t, h);
	if (!uv_interfaces_own(h))
		return;
	uv_tree_link(t, "sys/class/net/lo", "../../devices/virtual/net/lo");
	uv_tree_link(t, "sys/devices/virtual/net/lo", "/sys/devices/virtual/net/lo");
}

static void put_device(struct uv_tree *t, struct uv_host *h)
{
	char dir[128], file[160];

	snprintf(dir, sizeof(dir), SYSFS_PCI "/infiniband/%s", h->device);
#define PATH(name) (snprintf(file, sizeof(file), "%s/" name, dir), file)
	uv_tree_put(t, PATH("node_type"), SYSFS_READ, hca_iw(h->hca) ? "4: RNIC\n" : "1: CA\n");
	put_guid(t, PATH("node_guid"), hca_node_guid(h->hca));
	put_guid(t, PATH("sys_image_guid"), hca_sys_image_guid(h->hca));
	uv_tree_put(t, PATH("node_desc"), SYSFS_WRITE, "%s\n", h->name);
	uv_tree_put(t, PATH("fw_ver"), SYSFS_READ, uv_host_is_soft(h) ? "\n" : UV_FW_VERSION "\n");
	if (!uv_host_is_soft(h)) {
		uv_tree_put(t, PATH("hw_rev"), SYSFS_READ, "0\n");
		uv_tree_put(t, PATH("hca_type"), SYSFS_READ, "muslin\n");
		uv_tree_put(t, PATH("board_id"), SYSFS_READ, "muslin\n");
	}
#undef PATH
	uv_sysfs_put_member(t, "infiniband", h->device);
	put_classes(t, h);
#define UVERBS SYSFS_PCI "/infiniband_verbs/uverbs0/"
	uv_tree_put(t, UVERBS "ibdev", SYSFS_READ, "%s\n", h->device);
	uv_tree_put(t, UVERBS "dev", SYSFS_READ, "231:192\n");
	uv_tree_put(t, UVERBS "abi_version", SYSFS_READ, "1\n");
#undef UVERBS
	uv_sysfs_put_member(t, "infiniband_verbs", "uverbs0");
	uv_tree_put(t, "dev/infiniband/uverbs0", SYSFS_WRITE, "%s", "");
}

static void put_umad(struct uv_tree *t, const struct uv_host *h, u8 num)
{
	static const struct {
		const char *name;
		u32 minor;
	} kinds[] = { { "umad", 0 }, { "issm", 64 } };
	char name[16], file[128];
	u32 k;

	for (k = 0; k < 2; k++) {
		snprintf(name, sizeof(name), "%s%u", kinds[k].name, num - 1u);
#define PATH(leaf) (snprintf(file, sizeof(file), SYSFS_PCI "/infiniband_mad/%s/" leaf, name), file)
		uv_tree_put(t, PATH("ibdev"), SYSFS_READ, "%s\n", h->device);
		uv_tree_put(t, PATH("port"), SYSFS_READ, "%u\n", num);
		uv_tree_put(t, PATH("dev"), SYSFS_READ, "231:%u\n", kinds[k].minor + num - 1u);
#undef PATH
		uv_sysfs_put_member(t, "infiniband_mad", name);
		snprintf(file, sizeof(file), "dev/infiniband/%s", name);
		uv_tree_put(t, file, SYSFS_WRITE, "%s", "");
	}
}

int uv_sysfs_exchange(const struct uv_host *h, const char *tree)
{
	u64 written[64] = { 0 };
	struct uv_tree t = { .written = written, .max = ARRAY_SIZE(written) };
	char here[512];

	snprintf(here, sizeof(here), "%s/%s", tree, h->name);
	snprintf(t.root, sizeof(t.root), "%s/.%s", tree, h->name);
	if (access(t.root, F_OK))
		put_classes(&t, h);
	if (t.err)
		return t.err;
	return renameat2(AT_FDCWD, here, AT_FDCWD, t.root, RENAME_EXCHANGE) && errno != ENOENT ? -errno : 0;
}

int uv_sysfs_refresh(struct uv_host *h, const char *tree)
{
	struct uv_tree t = { .written = h->written, .max = UV_TREE_FILES };
	u8 i;

	if (h->removed)
		return 0;
	snprintf(t.root, sizeof(t.root), "%s/%s", tree, h->name);
	put_device(&t, h);
	uv_sysfs_put_pci(&t, h);
	uv_sysfs_put_netdevs(&t, h);
	for (i = 1; i <= h->nports; i++) {
		put_port(&t, h, i);
		if (h->umad[i - 1])
			put_umad(&t, h, i);
	}
	return t.err;
}

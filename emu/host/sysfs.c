// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The tree that programs of a host see as /sys/class/infiniband and /dev/infiniband; files are rewritten on changes. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/hca/iw.h"
#include "emu/host/server.h"

struct tree {
	char root[512];
	int err;
	u64 *written; /* by number of the file: the order is always the same */
	u32 n;
};

/* FNV-1a; never 0, which means unwritten. */
static u64 sysfs_hash(const char *text, size_t len)
{
	u64 h = 0xcbf29ce484222325ull;

	while (len--)
		h = (h ^ (u8)*text++) * 0x100000001b3ull;
	return h | 1;
}

static void make_dirs(char *path)
{
	char *p;

	for (p = path + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0755);
		*p = '/';
	}
}

static int open_to_write(char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	make_dirs(path);
	return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
}

/* Writes the formatted text to the file if it differs; in place, since a reader may have it open. */
static void sysfs_put(struct tree *t, const char *file, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void sysfs_put(struct tree *t, const char *file, const char *fmt, ...)
{
	char path[768], text[512];
	va_list ap;
	int len, fd;
	u64 h;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	len = min(len, (int)sizeof(text) - 1);
	h = sysfs_hash(text, (size_t)len);
	if (t->n < UV_TREE_FILES && t->written[t->n] == h) {
		t->n++;
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", t->root, file);
	fd = open_to_write(path);
	if (fd < 0 || pwrite(fd, text, (size_t)len, 0) != len || ftruncate(fd, len)) {
		t->err = -errno;
		h = 0;
	}
	if (fd >= 0)
		close(fd);
	if (t->n < UV_TREE_FILES)
		t->written[t->n++] = h;
}

static void put_guid(struct tree *t, const char *file, u64 guid)
{
	sysfs_put(t, file, "%04x:%04x:%04x:%04x\n", (u32)(guid >> 48), (u32)(guid >> 32) & 0xffff,
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
	u32 tenths; /* Gb/s of a lane, times ten */
};
static const struct speed speeds[] = {
	{ 8, 0, "NDR", 1000 }, { 4, 0, "HDR", 500 }, { 2, 0, "EDR", 250 }, { 1, 0, "FDR", 140 },
	{ 0, 4, "QDR", 100 },  { 0, 2, "DDR", 50 },  { 0, 1, "SDR", 25 },
};

static void put_rate(struct tree *t, const char *dir, const struct wire_port_attr *a)
{
	static const u8 lanes[] = { [1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2 };
	u32 n = a->width_active < ARRAY_SIZE(lanes) && lanes[a->width_active] ? lanes[a->width_active] : 1, i, rate;
	const struct speed *s = &speeds[ARRAY_SIZE(speeds) - 1];
	char file[128];

	for (i = 0; i < ARRAY_SIZE(speeds); i++) {
		if ((speeds[i].ext && a->speed_ext_active & speeds[i].ext) ||
		    (speeds[i].speed && !a->speed_ext_active && a->speed_active & speeds[i].speed)) {
			s = &speeds[i];
			break;
		}
	}
	rate = s->tenths * n;
	snprintf(file, sizeof(file), "%s/rate", dir);
	if (rate % 10)
		sysfs_put(t, file, "%u.%u Gb/sec (%uX %s)\n", rate / 10, rate % 10, n, s->name);
	else
		sysfs_put(t, file, "%u Gb/sec (%uX %s)\n", rate / 10, n, s->name);
}

static void put_gids(struct tree *t, const char *dir, const struct wire_port_attr *a, const struct uv_host *h)
{
	bool roce = a->link_layer == WIRE_LINK_ETHERNET && !hca_iw(h->hca);
	char file[128];
	u32 i, j;

	for (i = 0; i < max((u32)a->gids, 1u); i++) {
		const u8 *g = a->gid[i].raw;
		char text[48];
		int n = 0;

		for (j = 0; j < 16; j += 2)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%02x%02x", j ? ":" : "", g[j], g[j + 1]);
		snprintf(file, sizeof(file), "%s/gids/%u", dir, i);
		sysfs_put(t, file, "%s\n", text);
		snprintf(file, sizeof(file), "%s/gid_attrs/types/%u", dir, i);
		sysfs_put(t, file, roce && a->gid_l2[i].version != 1 ? "RoCE v2\n" : "IB/RoCE v1\n");
		if (!h->gid_netdev || a->link_layer != WIRE_LINK_ETHERNET)
			continue;
		snprintf(file, sizeof(file), "%s/gid_attrs/ndevs/%u", dir, i);
		sysfs_put(t, file, "%s\n", h->gid_netdev(h, i));
	}
	for (i = 0; i < max((u32)a->pkeys, 1u); i++) {
		snprintf(file, sizeof(file), "%s/pkeys/%u", dir, i);
		sysfs_put(t, file, "0x%04x\n", a->pkey[i]);
	}
}

static void put_counters(struct tree *t, const char *dir, struct uv_host *h, u8 port)
{
	const char *name;
	char file[192];
	u64 v;
	u32 n;

	for (n = 0; h->counter && (name = h->counter(h, port, n, &v)); n++) {
		snprintf(file, sizeof(file), "%s/counters/%s", dir, name);
		sysfs_put(t, file, "%llu\n", (unsigned long long)v);
	}
	for (n = 0; (name = hca_counter_name(n)); n++) {
		snprintf(file, sizeof(file), "%s/hw_counters/%s", dir, name);
		sysfs_put(t, file, "%llu\n", (unsigned long long)hca_counter(h->hca, port, n));
	}
}

static void put_port(struct tree *t, struct uv_host *h, u8 num)
{
	const struct wire_port_attr *a = &h->port[num - 1]->attr;
	char dir[96], file[128];

	snprintf(dir, sizeof(dir), "sys/class/infiniband/%s/ports/%u", h->device, num);
#define PUT(name, ...) (snprintf(file, sizeof(file), "%s/" name, dir), sysfs_put(t, file, __VA_ARGS__))
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

/* Entries of /sys and /dev that exist without a device. */
static void put_classes(struct tree *t)
{
	sysfs_put(t, "sys/class/infiniband_verbs/abi_version", "6\n");
	sysfs_put(t, "sys/class/infiniband_mad/abi_version", "5\n");
	sysfs_put(t, "sys/class/misc/rdma_cm/abi_version", "4\n");
	sysfs_put(t, "sys/class/misc/rdma_cm/dev", "10:58\n");
	sysfs_put(t, "dev/infiniband/rdma_cm", "%s", "");
}

static void put_device(struct tree *t, struct uv_host *h)
{
	char dir[64], file[128];

	snprintf(dir, sizeof(dir), "sys/class/infiniband/%s", h->device);
#define PATH(name) (snprintf(file, sizeof(file), "%s/" name, dir), file)
	sysfs_put(t, PATH("node_type"), hca_iw(h->hca) ? "4: RNIC\n" : "1: CA\n");
	put_guid(t, PATH("node_guid"), hca_node_guid(h->hca));
	put_guid(t, PATH("sys_image_guid"), hca_sys_image_guid(h->hca));
	sysfs_put(t, PATH("node_desc"), "%s\n", h->name);
	sysfs_put(t, PATH("fw_ver"), uv_host_is_soft(h) ? "\n" : "1.0.0\n");
	if (!uv_host_is_soft(h)) {
		sysfs_put(t, PATH("hw_rev"), "0\n");
		sysfs_put(t, PATH("hca_type"), "muslin\n");
		sysfs_put(t, PATH("board_id"), "muslin\n");
	}
	sysfs_put(t, PATH("device/modalias"), "rdma_device:Nrxe\n");
#undef PATH
	put_classes(t);
	sysfs_put(t, "sys/class/infiniband_verbs/uverbs0/ibdev", "%s\n", h->device);
	sysfs_put(t, "sys/class/infiniband_verbs/uverbs0/dev", "231:192\n");
	sysfs_put(t, "sys/class/infiniband_verbs/uverbs0/abi_version", "1\n");
	sysfs_put(t, "sys/class/infiniband_verbs/uverbs0/device/modalias", "rdma_device:Nrxe\n");
	sysfs_put(t, "dev/infiniband/uverbs0", "%s", "");
}

static void put_umad(struct tree *t, const struct uv_host *h, u8 num)
{
	static const char *const kinds[] = { "umad", "issm" };
	char dir[64], file[96];
	u32 k;

	for (k = 0; k < 2; k++) {
		snprintf(dir, sizeof(dir), "sys/class/infiniband_mad/%s%u", kinds[k], num - 1u);
		snprintf(file, sizeof(file), "%s/ibdev", dir);
		sysfs_put(t, file, "%s\n", h->device);
		snprintf(file, sizeof(file), "%s/port", dir);
		sysfs_put(t, file, "%u\n", num);
		snprintf(file, sizeof(file), "dev/infiniband/%s%u", kinds[k], num - 1u);
		sysfs_put(t, file, "%s", "");
	}
	snprintf(file, sizeof(file), "sys/class/infiniband_mad/umad%u/dev", num - 1u);
	sysfs_put(t, file, "231:%u\n", num - 1u);
}

int uv_sysfs_exchange(const char *name, const char *tree)
{
	u64 written[8] = { 0 };
	struct tree t = { .written = written };
	char here[512];

	snprintf(here, sizeof(here), "%s/%s", tree, name);
	snprintf(t.root, sizeof(t.root), "%s/.%s", tree, name);
	if (access(t.root, F_OK))
		put_classes(&t);
	if (t.err)
		return t.err;
	return renameat2(AT_FDCWD, here, AT_FDCWD, t.root, RENAME_EXCHANGE) && errno != ENOENT ? -errno : 0;
}

int uv_sysfs_refresh(struct uv_host *h, const char *tree)
{
	struct tree t = { .written = h->written };
	u8 i;

	if (h->gone)
		return 0;
	snprintf(t.root, sizeof(t.root), "%s/%s", tree, h->name);
	put_device(&t, h);
	for (i = 1; i <= h->nports; i++) {
		put_port(&t, h, i);
		if (h->umad[i - 1])
			put_umad(&t, h, i);
	}
	return t.err;
}

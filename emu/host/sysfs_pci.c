// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sysfs of the PCI function of a host's adapter and of its ports' network interfaces, where programs look up the
 * adapter's bus address, locality and interfaces.
 */
#include <dirent.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "emu/host/interface.h"
#include "emu/host/sysfs.h"

#define PCI_VENDOR "1234" /* not an adapter vendor's: a vendor's ID would select its provider */
#define PCI_DEVICE "11e5"
#define LINK_SPEED "32.0 GT/s PCIe"
#define LINK_WIDTH "16"
#define CPUS_MAX   1024
#define DRIVER     "muslin"
#define RESOURCE   "0x0000000000000000 0x0000000000000000 0x0000000000000000\n" /* unused BAR, or ROM */

/* The machine's CPUs as a mask of words in the kernel's format; the function is local to all of them. */
static void put_cpus(struct uv_tree *t)
{
	u32 n = (u32)min(sysconf(_SC_NPROCESSORS_CONF), (long)CPUS_MAX), word = (n - 1) / 32, len;
	char text[CPUS_MAX / 32 * 9 + 1];

	len = (u32)snprintf(text, sizeof(text), "%x", ~0u >> (31 - (n - 1) % 32));
	while (word--)
		len += (u32)snprintf(text + len, sizeof(text) - len, ",ffffffff");
	uv_tree_put(t, SYSFS_PCI "/local_cpus", SYSFS_READ, "%s\n", text);
	uv_tree_put(t, SYSFS_PCI "/local_cpulist", SYSFS_READ, n > 1 ? "0-%u\n" : "%u\n", n - 1);
}

/* The modalias of the kernel's rdma_rxe, by which libibverbs finds the provider if it does not query by netlink. */
void uv_sysfs_put_pci(struct uv_tree *t, const struct uv_host *h)
{
	const char *class = wire_port_is_ethernet(h->port[0]) ? "020000" : "020700";
	static const struct {
		const char *name, *text;
		u32 mode;
	} files[] = {
		{ SYSFS_PCI "/vendor", "0x" PCI_VENDOR, SYSFS_READ },
		{ SYSFS_PCI "/device", "0x" PCI_DEVICE, SYSFS_READ },
		{ SYSFS_PCI "/subsystem_vendor", "0x" PCI_VENDOR, SYSFS_READ },
		{ SYSFS_PCI "/subsystem_device", "0x" PCI_DEVICE, SYSFS_READ },
		{ SYSFS_PCI "/revision", "0x00", SYSFS_READ },
		{ SYSFS_PCI "/irq", "0", SYSFS_READ },
		{ SYSFS_PCI "/enable", "1", SYSFS_WRITE },
		{ SYSFS_PCI "/numa_node", "0", SYSFS_WRITE },
		{ SYSFS_PCI "/current_link_speed", LINK_SPEED, SYSFS_READ },
		{ SYSFS_PCI "/current_link_width", LINK_WIDTH, SYSFS_READ },
		{ SYSFS_PCI "/max_link_speed", LINK_SPEED, SYSFS_READ },
		{ SYSFS_PCI "/max_link_width", LINK_WIDTH, SYSFS_READ },
		{ SYSFS_PCI "/modalias", "rdma_device:Nrxe", SYSFS_READ },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		uv_tree_put(t, files[i].name, files[i].mode, "%s\n", files[i].text);
	uv_tree_put(t, SYSFS_PCI "/resource", SYSFS_READ, "%s",
		    RESOURCE RESOURCE RESOURCE RESOURCE RESOURCE RESOURCE RESOURCE);
	uv_tree_put(t, SYSFS_PCI "/class", SYSFS_READ, "0x%s\n", class);
	uv_tree_put(t, SYSFS_PCI "/uevent", SYSFS_WRITE,
		    "DRIVER=" DRIVER "\nPCI_CLASS=%s\nPCI_ID=" PCI_VENDOR ":" PCI_DEVICE "\nPCI_SUBSYS_ID=" PCI_VENDOR
		    ":" PCI_DEVICE "\nPCI_SLOT_NAME=" UV_PCI_SLOT "\n",
		    class + 1);
	put_cpus(t);
	uv_tree_link(t, SYSFS_PCI "/subsystem", "../../../bus/pci");
	uv_tree_link(t, "sys/bus/pci/devices/" UV_PCI_SLOT, "../../../devices/" UV_PCI_ROOT "/" UV_PCI_SLOT);
	uv_tree_link(t, SYSFS_PCI "/driver", "../../../bus/pci/drivers/" DRIVER);
	uv_tree_link(t, "sys/bus/pci/drivers/" DRIVER "/" UV_PCI_SLOT,
		     "../../../../devices/" UV_PCI_ROOT "/" UV_PCI_SLOT);
	uv_tree_link(t, "sys/bus/pci/drivers/" DRIVER "/module", "../../../../module/ib_core");
}

/* @dir: of sysfs. The links lead to where the machine's lead, so that the resolved paths are the machine's. */
static void bus_copy(struct uv_tree *t, const char *dir)
{
	struct uv_tree once = { .err = 0 }; /* these entries are not written again: they need no hash */
	char path[512], target[PATH_MAX];
	struct dirent *e;
	DIR *d;

	snprintf(once.root, sizeof(once.root), "%s", t->root);
	snprintf(path, sizeof(path), "/%s", dir);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/%.64s/%.200s", dir, e->d_name);
		if (e->d_name[0] != '.' && realpath(path, target))
			uv_tree_link(&once, path + 1, "%s", target);
	}
	if (d)
		closedir(d);
	t->err = once.err ? once.err : t->err;
}

void uv_sysfs_put_bus(struct uv_tree *t)
{
	char done[600];

	snprintf(done, sizeof(done), "%s/sys/bus/pci/drivers/" DRIVER, t->root);
	if (!access(done, F_OK))
		return;
	bus_copy(t, "sys/bus/pci/devices");
	bus_copy(t, "sys/bus/pci/drivers");
	uv_tree_put(t, "sys/bus/pci/drivers/" DRIVER "/uevent", SYSFS_WRITE, "%s", "");
}

void uv_sysfs_put_modules(struct uv_tree *t, const struct uv_host *h)
{
	static const char *const modules[] = { "ib_core", "ib_uverbs", "ib_umad",  "ib_cm",
					       "iw_cm",   "rdma_cm",   "rdma_ucm", "ib_ipoib" };
	u32 n = ARRAY_SIZE(modules) - wire_port_is_ethernet(h->port[0]), i;
	char file[64];

	for (i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "sys/module/%s/initstate", modules[i]);
		uv_tree_put(t, file, SYSFS_READ, "live\n");
		snprintf(file, sizeof(file), "sys/module/%s/refcnt", modules[i]);
		uv_tree_put(t, file, SYSFS_READ, "1\n");
	}
}

void uv_sysfs_put_member(struct uv_tree *t, const char *class, const char *name)
{
	char file[160];

	snprintf(file, sizeof(file), "sys/class/%s/%s", class, name);
	uv_tree_link(t, file, "../../devices/" UV_PCI_ROOT "/" UV_PCI_SLOT "/%s/%s", class, name);
	snprintf(file, sizeof(file), SYSFS_PCI "/%s/%s/device", class, name);
	uv_tree_link(t, file, "../../../" UV_PCI_SLOT);
	snprintf(file, sizeof(file), SYSFS_PCI "/%s/%s/subsystem", class, name);
	uv_tree_link(t, file, "../../../../../class/%s", class);
}

static void put_address(struct uv_tree *t, const char *file, const u8 *addr, u32 len)
{
	char text[64] = "";
	u32 i;

	for (i = 0; i < len; i++)
		sprintf(text + 3 * i, "%02x%c", addr[i], i + 1 < len ? ':' : '\n');
	uv_tree_put(t, file, SYSFS_READ, "%s", text);
}

static u64 port_counter(struct uv_host *h, const struct wire_port *p, const char *counter)
{
	const char *name;
	u64 v = 0;
	u32 n;

	for (n = 0; counter && h->counter && (name = h->counter(h, p->num, n, &v)); n++)
		if (!strcmp(name, counter))
			return v;
	return 0;
}

/* Those of the port, all of whose traffic counts; a VLAN's are not counted apart. */
static void put_statistics(struct uv_tree *t, struct uv_host *h, const struct uv_interface *d)
{
	static const struct {
		const char *name, *counter; /* NULL: never happens here */
		u32 unit;
	} statistics[] = {
		{ "rx_bytes", "port_rcv_data", 4 },
		{ "tx_bytes", "port_xmit_data", 4 },
		{ "rx_packets", "port_rcv_packets", 1 },
		{ "tx_packets", "port_xmit_packets", 1 },
		{ "rx_errors", "port_rcv_errors", 1 },
		{ "tx_dropped", "port_xmit_discards", 1 },
		{ "multicast", "multicast_rcv_packets", 1 },
		{ "tx_errors", NULL, 0 },
		{ "rx_dropped", NULL, 0 },
		{ "collisions", NULL, 0 },
	};
	char file[160];
	u64 v;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(statistics); i++) {
		v = d->vlan ? 0 : statistics[i].unit * port_counter(h, d->port, statistics[i].counter);
		snprintf(file, sizeof(file), SYSFS_PCI "/net/%.15s/statistics/%s", d->name, statistics[i].name);
		uv_tree_put(t, file, SYSFS_READ, "%llu\n", (unsigned long long)v);
	}
}

/* speed: in Mb/s, -1 while the link is down. */
static void put_link(struct uv_tree *t, const struct uv_interface *d)
{
	const struct wire_port_attr *a = &d->port->attr;
	const char *name;
	char file[160];
	u32 lanes;

#define PATH(leaf) (snprintf(file, sizeof(file), SYSFS_PCI "/net/%.15s/" leaf, d->name), file)
	uv_tree_put(t, PATH("speed"), SYSFS_READ, "%d\n",
		    uv_interface_up(d) ? (int)(100 * uv_sysfs_rate(a, &lanes, &name)) : -1);
	if (wire_port_is_ethernet(d->port)) {
		uv_tree_put(t, PATH("duplex"), SYSFS_READ, "full\n");
		return;
	}
	uv_tree_put(t, PATH("mode"), SYSFS_WRITE, "datagram\n");
	uv_tree_put(t, PATH("pkey"), SYSFS_READ, "0x%04x\n", a->pkey[0]);
	uv_tree_put(t, PATH("umcast"), SYSFS_WRITE, "0\n");
#undef PATH
}

static void put_interface(struct uv_tree *t, struct uv_host *h, const struct uv_interface *d)
{
	u32 port = d->port->num - 1u, up = uv_interface_up(d);
	u32 flags = IFF_UP | IFF_BROADCAST | IFF_MULTICAST;
	char file[160];

#define PATH(leaf) (snprintf(file, sizeof(file), SYSFS_PCI "/net/%.15s/" leaf, d->name), file)
	uv_tree_put(t, PATH("ifindex"), SYSFS_READ, "%u\n", d->index);
	uv_tree_put(t, PATH("iflink"), SYSFS_READ, "%u\n", d->link);
	uv_tree_put(t, PATH("type"), SYSFS_READ, "%u\n", d->type);
	uv_tree_put(t, PATH("mtu"), SYSFS_WRITE, "%u\n", d->mtu);
	uv_tree_put(t, PATH("flags"), SYSFS_WRITE, "0x%x\n", flags);
	uv_tree_put(t, PATH("addr_len"), SYSFS_READ, "%u\n", d->len);
	put_address(t, PATH("address"), d->addr, d->len);
	put_address(t, PATH("broadcast"), d->broadcast, d->len);
	uv_tree_put(t, PATH("dev_id"), SYSFS_READ, "0x%x\n", wire_port_is_ethernet(d->port) ? 0 : port);
	uv_tree_put(t, PATH("dev_port"), SYSFS_READ, "%u\n", port);
	uv_tree_put(t, PATH("operstate"), SYSFS_READ, up ? "up\n" : "down\n");
	uv_tree_put(t, PATH("carrier"), SYSFS_WRITE, "%u\n", up);
#undef PATH
	put_link(t, d);
	put_statistics(t, h, d);
	uv_sysfs_put_member(t, "net", d->name);
}

static void put_machines_netdev(struct uv_tree *t, const char *name)
{
	char file[128];

	snprintf(file, sizeof(file), SYSFS_PCI "/net/%s", name);
	uv_tree_link(t, file, "/sys/class/net/%s", name);
}

/* Whether an earlier GID of the port has the same interface. */
static bool is_repeated(const struct uv_host *h, u32 gid)
{
	char name[IF_NAMESIZE];
	u32 i;

	snprintf(name, sizeof(name), "%s", h->gid_netdev(h, gid));
	for (i = 0; i < gid; i++)
		if (!strcmp(h->gid_netdev(h, i), name))
			return true;
	return false;
}

void uv_sysfs_put_netdevs(struct uv_tree *t, struct uv_host *h)
{
	struct uv_interface list[UV_INTERFACES];
	u32 n = uv_interfaces(h, list), i;

	for (i = 0; i < n; i++)
		put_interface(t, h, &list[i]);
	for (i = 0; !uv_interfaces_own(h) && h->gid_netdev && i < h->port[0]->attr.gids; i++)
		if (!is_repeated(h, i))
			put_machines_netdev(t, h->gid_netdev(h, i));
}

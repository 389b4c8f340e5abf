// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The PCI function that a host's adapter is on, and the network interfaces of its ports, as sysfs shows them. Programs look for the
 * bus address, the locality and the interfaces of an adapter there.
 */
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <unistd.h>

#include "emu/host/sysfs.h"
#include "emu/wire/smp.h"

#define PCI_VENDOR "1234" /* of no maker of adapters: programs would use their maker's calls */
#define PCI_DEVICE "11e5"
#define LINK_SPEED "32.0 GT/s PCIe"
#define LINK_WIDTH "16"
#define CPUS_MAX   1024

/* The processors of the machine as a mask of words, as the kernel prints it; the function is local to all of them. */
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

/* The alias is that of the kernel's rdma_rxe, by which libibverbs finds the provider where it does not ask by netlink. */
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
	uv_tree_put(t, SYSFS_PCI "/class", SYSFS_READ, "0x%s\n", class);
	uv_tree_put(t, SYSFS_PCI "/uevent", SYSFS_WRITE,
		    "PCI_CLASS=%s\nPCI_ID=" PCI_VENDOR ":" PCI_DEVICE "\nPCI_SUBSYS_ID=" PCI_VENDOR ":" PCI_DEVICE
		    "\nPCI_SLOT_NAME=" UV_PCI_SLOT "\n",
		    class + 1);
	put_cpus(t);
	uv_tree_link(t, SYSFS_PCI "/subsystem", "../../../bus/pci");
	uv_tree_link(t, "sys/bus/pci/devices/" UV_PCI_SLOT, "../../../devices/" UV_PCI_ROOT "/" UV_PCI_SLOT);
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

struct netdev {
	char name[IF_NAMESIZE];
	u32 mtu, type, len;
	u8 addr[IPIF_HW_SIZE], broadcast[IPIF_HW_SIZE];
};

static void put_address(struct uv_tree *t, const char *file, const u8 *addr, u32 len)
{
	char text[64] = "";
	u32 i;

	for (i = 0; i < len; i++)
		sprintf(text + 3 * i, "%02x%c", addr[i], i + 1 < len ? ':' : '\n');
	uv_tree_put(t, file, SYSFS_READ, "%s", text);
}

static void put_netdev(struct uv_tree *t, const struct wire_port *p, u32 index, const struct netdev *d)
{
	u32 port = p->num - 1u, up = p->attr.state == PORT_STATE_ACTIVE;
	u32 flags = IFF_UP | IFF_BROADCAST | IFF_MULTICAST;
	char file[160];

#define PATH(leaf) (snprintf(file, sizeof(file), SYSFS_PCI "/net/%s/" leaf, d->name), file)
	uv_tree_put(t, PATH("ifindex"), SYSFS_READ, "%u\n", index);
	uv_tree_put(t, PATH("iflink"), SYSFS_READ, "%u\n", index);
	uv_tree_put(t, PATH("type"), SYSFS_READ, "%u\n", d->type);
	uv_tree_put(t, PATH("mtu"), SYSFS_WRITE, "%u\n", d->mtu);
	uv_tree_put(t, PATH("flags"), SYSFS_WRITE, "0x%x\n", flags);
	uv_tree_put(t, PATH("addr_len"), SYSFS_READ, "%u\n", d->len);
	put_address(t, PATH("address"), d->addr, d->len);
	put_address(t, PATH("broadcast"), d->broadcast, d->len);
	uv_tree_put(t, PATH("dev_id"), SYSFS_READ, "0x%x\n", d->type == ARPHRD_INFINIBAND ? port : 0);
	uv_tree_put(t, PATH("dev_port"), SYSFS_READ, "%u\n", port);
	uv_tree_put(t, PATH("operstate"), SYSFS_READ, up ? "up\n" : "down\n");
	uv_tree_put(t, PATH("carrier"), SYSFS_WRITE, "%u\n", up);
#undef PATH
	uv_sysfs_put_member(t, "net", d->name);
}

static struct netdev netdev_ipoib(const struct uv_host *h, u8 port)
{
	const struct sa_mcmember *broadcast = ipif_broadcast(h->ipif[port]);
	const struct ip_addr all = ip_addr_v4(~0u);
	struct netdev d = { .type = ARPHRD_INFINIBAND, .len = IPIF_HW_SIZE, .broadcast = { 0, 0xff, 0xff, 0xff } };
	struct wire_gid mgid = ipif_mgid(h->ipif[port], &all);

	snprintf(d.name, sizeof(d.name), "ib%u", port);
	ipif_hw_address(h->ipif[port], d.addr);
	memcpy(d.broadcast + 4, mgid.raw, sizeof(mgid.raw));
	d.mtu = wire_mtu_bytes(broadcast ? broadcast->mtu : WIRE_MTU_2048) - IPIF_HEADER;
	return d;
}

/* A simulated port has a GID for each address, and an interface for each VLAN of these. */
static struct netdev netdev_ethernet(const struct uv_host *h, u8 port, u32 gid)
{
	const struct wire_port_attr *a = &h->port[port]->attr;
	struct netdev d = { .type = ARPHRD_ETHER, .len = 6, .mtu = a->netdev_mtu };

	snprintf(d.name, sizeof(d.name), "%s", h->gid_netdev(h, gid));
	memcpy(d.addr, a->mac, sizeof(a->mac));
	memset(d.broadcast, 0xff, sizeof(a->mac));
	return d;
}

static bool is_machines(const struct wire_port *p)
{
	static const u8 none[6];

	return wire_port_is_ethernet(p) && !memcmp(p->attr.mac, none, sizeof(none));
}

bool uv_sysfs_has_netdevs(const struct uv_host *h)
{
	return !is_machines(h->port[0]);
}

static void put_machines_netdev(struct uv_tree *t, const char *name)
{
	char file[128];

	snprintf(file, sizeof(file), SYSFS_PCI "/net/%s", name);
	uv_tree_link(t, file, "/sys/class/net/%s", name);
}

/* An interface that an earlier GID of the port has, too. */
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

void uv_sysfs_put_netdevs(struct uv_tree *t, const struct uv_host *h)
{
	u32 index = UV_NETDEV_FIRST, i;
	struct netdev d;
	u8 port;

	for (port = 0; port < h->nports; port++) {
		const struct wire_port *p = h->port[port];

		if (!wire_port_is_ethernet(p) && h->ipif[port]) {
			d = netdev_ipoib(h, port);
			put_netdev(t, p, index++, &d);
		}
		for (i = 0; wire_port_is_ethernet(p) && h->gid_netdev && i < p->attr.gids; i++) {
			if (is_repeated(h, i))
				continue;
			if (is_machines(p)) {
				put_machines_netdev(t, h->gid_netdev(h, i));
				continue;
			}
			d = netdev_ethernet(h, port, i);
			put_netdev(t, p, index++, &d);
		}
	}
}

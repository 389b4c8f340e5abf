// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Network interfaces of a host, as sysfs and rtnetlink show them. */
#include "emu/host/interface.h"

#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/wire/smp.h"

static struct uv_interface interface_ipoib(const struct uv_host *h, u8 port)
{
	const struct sa_mcmember *broadcast = ipif_broadcast(h->ipif[port]);
	const struct ip_addr all = ip_addr_v4(~0u);
	struct uv_interface d = { .type = ARPHRD_INFINIBAND,
				  .len = IPIF_HW_SIZE,
				  .broadcast = { 0, 0xff, 0xff, 0xff } };
	struct wire_gid mgid = ipif_mgid(h->ipif[port], &all);

	snprintf(d.name, sizeof(d.name), "ib%u", port);
	ipif_hw_address(h->ipif[port], d.addr);
	memcpy(d.broadcast + 4, mgid.raw, sizeof(mgid.raw));
	d.mtu = wire_mtu_bytes(broadcast ? broadcast->mtu : WIRE_MTU_2048) - IPIF_HEADER;
	return d;
}

/* A simulated port has a GID for each address, and an interface for each VLAN of these: eth0, eth0.10. */
static struct uv_interface interface_ethernet(const struct uv_host *h, u8 port, u32 gid)
{
	const struct wire_port_attr *a = &h->port[port]->attr;
	struct uv_interface d = { .type = ARPHRD_ETHER, .len = 6, .mtu = a->netdev_mtu };
	const char *dot;

	snprintf(d.name, sizeof(d.name), "%s", h->gid_netdev(h, gid));
	dot = strchr(d.name, '.');
	d.vlan = dot ? (u16)strtoul(dot + 1, NULL, 10) : 0;
	memcpy(d.addr, a->mac, sizeof(a->mac));
	memset(d.broadcast, 0xff, sizeof(a->mac));
	return d;
}

static bool is_machines(const struct wire_port *p)
{
	static const u8 none[6];

	return wire_port_is_ethernet(p) && !memcmp(p->attr.mac, none, sizeof(none));
}

bool uv_interfaces_own(const struct uv_host *h)
{
	return !is_machines(h->port[0]);
}

bool uv_interface_up(const struct uv_interface *i)
{
	return i->port->attr.state == PORT_STATE_ACTIVE;
}

static bool has_name(const struct uv_interface *list, u32 n, const char *name)
{
	while (n--)
		if (!strcmp(list[n].name, name))
			return true;
	return false;
}

/* The interface of a VLAN is on the port's own, where that is one of the host's. */
static u32 link_of(const struct uv_interface *list, u32 n, const struct uv_interface *d)
{
	size_t len = strcspn(d->name, ".");
	u32 i;

	for (i = 0; d->vlan && i < n; i++)
		if (strlen(list[i].name) == len && !memcmp(list[i].name, d->name, len))
			return list[i].index;
	return d->index;
}

u32 uv_interfaces(const struct uv_host *h, struct uv_interface *list)
{
	u32 n = 0, i;
	u8 port;

	for (port = 0; port < h->nports && !h->removed; port++) {
		const struct wire_port *p = h->port[port];
		u32 first = n;

		if (!wire_port_is_ethernet(p) && h->ipif[port] && n < UV_INTERFACES)
			list[n++] = interface_ipoib(h, port);
		for (i = 0; wire_port_is_ethernet(p) && !is_machines(p) && h->gid_netdev && i < p->attr.gids; i++)
			if (n < UV_INTERFACES && !has_name(list + first, n - first, h->gid_netdev(h, i)))
				list[n++] = interface_ethernet(h, port, i);
		for (i = first; i < n; i++) {
			list[i].port = p;
			list[i].index = UV_INTERFACE_FIRST + i;
		}
	}
	for (i = 0; i < n; i++)
		list[i].link = link_of(list, n, &list[i]);
	return n;
}

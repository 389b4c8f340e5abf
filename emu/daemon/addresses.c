// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Maps the hosts' IP addresses to loopback addresses for the shim, in a network selected by the fabric's name, so that
 * parallel fabrics rarely share one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/daemon/daemon.h"
#include "emu/wire/smp.h"

#define NETWORK_FIRST 64u /* 127.64.0.0 */
#define NETWORK_COUNT 190u

/*
 * An IPv6 address has a loopback address of its own, so that listeners of both families may have the same port. In
 * fabrics with very many ports it has the one of the port's IPv4 address.
 */
struct loopback {
	u32 next;      /* before the address of the next host's first port */
	u32 v6_offset; /* of the addresses for IPv6 ones */
};

/* A network of 24 bits for up to 127 ports, so that there are many networks, else one of 16. */
static struct loopback loopback_of(const struct daemon *d, u32 ports)
{
	u32 bits = ports < 0x80 ? 8 : 16, spread = 16 - bits, h = 2166136261u ^ getuid();
	const char *s;

	for (s = d->opt.name; *s; s++)
		h = (h ^ (u8)*s) * 16777619u;
	h = (NETWORK_FIRST << spread) + h % (NETWORK_COUNT << spread);
	return (struct loopback){ .next = 127u << 24 | h << bits,
				  .v6_offset = ports < 1u << (bits - 1) ? 1u << (bits - 1) : 0 };
}

/* A loopback address is its own. */
static void write_one(FILE *f, const char *host, const struct uv_address *a, const struct loopback *lo)
{
	bool is_loopback = ip_addr_is_loopback(&a->ip), v6 = !ip_addr_is_v4(&a->ip);
	struct in_addr at = { htonl(is_loopback ? ip_addr_get_v4(&a->ip)
						: lo->next + a->port + (v6 ? lo->v6_offset : 0)) };
	char text[IP_ADDR_STRLEN];

	fprintf(f, "%s %s %s %u %s\n", host, ip_addr_str(&a->ip, text), inet_ntoa(at), a->len, a->netdev);
}

/* The nth address of a port of the fabric. */
static bool port_address(const struct fabric_ip *ip, u8 port, u32 n, struct uv_address *a)
{
	bool v4 = ip->v4 && !n;

	*a = (struct uv_address){ .port = port, .len = v4 ? ip->v4_len : ip->v6_len };
	snprintf(a->netdev, sizeof(a->netdev), "ib%u", port - 1u);
	if (v4)
		a->ip = ip_addr_v4(ip->v4);
	else
		memcpy(a->ip.raw, ip->v6, sizeof(ip->v6));
	return v4 || (n == (ip->v4 ? 1u : 0u) && !ip_addr_is_any(&a->ip));
}

/* A station may have more of them than a port of the fabric. */
static bool station_address(const struct fabric_ether_station *s, u32 n, struct uv_address *a)
{
	if (n >= s->naddr)
		return false;
	*a = (struct uv_address){ .ip = s->addr[n], .len = s->len[n], .port = 1 };
	snprintf(a->netdev, sizeof(a->netdev), s->vlan[n] ? "eth0.%u" : "eth0", s->vlan[n]);
	return true;
}

/* The nth address of a host on sockets, if its interface is its own. */
static bool bound_address(const char *binding, u32 n, struct uv_address *a)
{
	struct ip_addr addr[ROCE_ADDRS];

	if (n >= daemon_binding_own(binding, addr))
		return false;
	*a = (struct uv_address){ .ip = addr[n], .len = 8, .port = 1, .netdev = DAEMON_BINDING_NETDEV };
	return true;
}

/*
 * The nth address of a node that has interfaces of its own. On a host of the fabric with a network card, which is its
 * guest's, the card's addresses follow those of the ports.
 */
static bool node_address(const struct fabric_node *node, const struct ether_station *st, u32 n, struct uv_address *a)
{
	const char *binding = fabric_node_binding(node);
	u32 i;
	u8 p;

	if (binding && !st)
		return bound_address(binding, n, a);
	for (p = 1; !binding && p <= fabric_node_ports(node); p++) {
		for (i = 0; fabric_ca_ip(node, p) && port_address(fabric_ca_ip(node, p), p, i, a); i++)
			if (!n--)
				return true;
	}
	return st && station_address(&st->cfg, n, a);
}

bool daemon_address(const struct uv_host *uv, u32 n, struct uv_address *a)
{
	const struct host *h = container_of(uv, struct host, uv);

	return node_address(h->node, h->station, n, a);
}

/* Writes the hosts of all shards: every shard has the same loopback addresses. */
static void write_whole(FILE *f, const struct daemon *d)
{
	const struct fabric_topology *t = d->whole;
	struct loopback lo;
	struct uv_address a;
	u32 i, j, ports = 0;
	u8 p;

	for (i = 0; i < t->nnodes; i++)
		ports += t->nodes[i].ip ? t->nodes[i].nports : 0;
	lo = loopback_of(d, ports);
	for (i = 0; i < t->nnodes; i++) {
		for (j = 0; t->nodes[i].binding && bound_address(t->nodes[i].binding, j, &a); j++)
			write_one(f, t->nodes[i].name, &a, &lo);
		if (!t->nodes[i].ip || t->nodes[i].binding)
			continue;
		for (p = 1; p <= t->nodes[i].nports; p++)
			for (j = 0; port_address(&t->nodes[i].ip[p], p, j, &a); j++)
				write_one(f, t->nodes[i].name, &a, &lo);
		lo.next += t->nodes[i].nports;
	}
}

/* Writes the hosts of the daemon, which has the whole topology. */
static void write_own(FILE *f, const struct daemon *d)
{
	struct loopback lo;
	struct uv_address a;
	u32 i, j, ports = 0;

	for (i = 0; i < fabric_node_count(d->fabric); i++)
		if (fabric_node_type(fabric_node(d->fabric, i)) == NODE_TYPE_CA)
			ports += fabric_node_ports(fabric_node(d->fabric, i));
	lo = loopback_of(d, ports);
	for (i = 0; i < fabric_node_count(d->fabric); i++) {
		const struct fabric_node *n = fabric_node(d->fabric, i);
		const struct ether_station *st = daemon_ether_station(d, n);

		if (fabric_node_type(n) != NODE_TYPE_CA)
			continue;
		for (j = 0; node_address(n, st, j, &a); j++)
			write_one(f, fabric_node_name(n), &a, &lo);
		lo.next += fabric_node_binding(n) ? st != NULL : fabric_node_ports(n);
	}
}

int daemon_addresses_write(struct daemon *d)
{
	char tree[RUNDIR_PATH_MAX], path[RUNDIR_PATH_MAX];
	FILE *f;

	mkdir(rundir_path(&d->run, RUNDIR_TREE, tree), 0700);
	f = fopen(rundir_path(&d->run, RUNDIR_TREE "/addresses", path), "we");
	if (!f)
		return -errno;
	if (d->whole)
		write_whole(f, d);
	else
		write_own(f, d);
	return fclose(f) ? -errno : 0;
}

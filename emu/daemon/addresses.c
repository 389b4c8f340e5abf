// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Map of the hosts' IP addresses to loopback addresses for the shim, in a network chosen by the fabric's name, so that
 * parallel fabrics seldom share one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/daemon/daemon.h"
#include "emu/wire/smp.h"

#define NETWORK_FIRST 64u
#define NETWORK_COUNT 190u

static u32 network_of(const struct daemon *d)
{
	u32 h = 2166136261u ^ getuid();
	const char *s;

	for (s = d->opt.name; *s; s++)
		h = (h ^ (u8)*s) * 16777619u;
	return (127u << 24) | (NETWORK_FIRST + h % NETWORK_COUNT) << 16;
}

/* @len: bits of the address that are its network's. */
static void write_one(FILE *f, const char *host, const struct ip_addr *addr, u32 len, u32 loopback, const char *netdev)
{
	struct in_addr lo = { htonl(loopback) };
	char text[IP_ADDR_STRLEN];

	fprintf(f, "%s %s %s %u %s\n", host, ip_addr_str(addr, text), inet_ntoa(lo), len, netdev);
}

static void write_port(FILE *f, const char *host, u8 num, const struct fabric_ip *ip, u32 loopback)
{
	struct ip_addr v4 = ip_addr_v4(ip->v4), v6 = { 0 };
	char netdev[16];

	memcpy(v6.raw, ip->v6, sizeof(v6.raw));
	snprintf(netdev, sizeof(netdev), "ib%u", num - 1u);
	if (ip->v4)
		write_one(f, host, &v4, ip->v4_len, loopback, netdev);
	if (!ip_addr_is_any(&v6))
		write_one(f, host, &v6, ip->v6_len, loopback, netdev);
}

static void write_node(FILE *f, const struct fabric_node *n, u32 *loopback)
{
	u8 i;

	for (i = 1; i <= fabric_node_ports(n); i++, ++*loopback)
		if (fabric_ca_ip(n, i))
			write_port(f, fabric_node_name(n), i, fabric_ca_ip(n, i), *loopback + 1);
}

/* The hosts of all shards: the same loopback addresses in each. */
static void write_whole(FILE *f, const struct fabric_topology *t, u32 loopback)
{
	u32 i;
	u8 p;

	for (i = 0; i < t->nnodes; i++)
		for (p = 1; t->nodes[i].ip && !t->nodes[i].binding && p <= t->nodes[i].nports; p++)
			write_port(f, t->nodes[i].name, p, &t->nodes[i].ip[p], ++loopback);
}

/* A station may have more of them than a port of the fabric. */
static void write_station(FILE *f, const struct ether_station *st, u32 loopback)
{
	const struct fabric_ether_station *s = &st->cfg;
	char netdev[16];
	u32 i;

	for (i = 0; i < s->naddr; i++) {
		snprintf(netdev, sizeof(netdev), s->vlan[i] ? "eth0.%u" : "eth0", s->vlan[i]);
		write_one(f, s->name, &s->addr[i], s->len[i], loopback, netdev);
	}
}

int daemon_addresses_write(struct daemon *d)
{
	char tree[RUNDIR_PATH_MAX], path[RUNDIR_PATH_MAX];
	u32 loopback = network_of(d), i;
	FILE *f;

	mkdir(rundir_path(&d->run, RUNDIR_TREE, tree), 0700);
	f = fopen(rundir_path(&d->run, RUNDIR_TREE "/addresses", path), "we");
	if (!f)
		return -errno;
	if (d->whole)
		write_whole(f, d->whole, loopback);
	for (i = 0; !d->whole && i < fabric_node_count(d->fabric); i++) {
		const struct fabric_node *n = fabric_node(d->fabric, i);
		const struct ether_station *st = daemon_ether_station(d, n);

		if (fabric_node_type(n) != NODE_TYPE_CA)
			continue;
		if (!fabric_node_binding(n))
			write_node(f, n, &loopback);
		else if (st) /* others have addresses of the machine */
			write_station(f, st, ++loopback);
	}
	return fclose(f) ? -errno : 0;
}

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

	for (s = d->run.name; *s; s++)
		h = (h ^ (u8)*s) * 16777619u;
	return (127u << 24) | (NETWORK_FIRST + h % NETWORK_COUNT) << 16;
}

static void write_one(FILE *f, const char *host, int family, const void *addr, u32 loopback)
{
	char text[INET6_ADDRSTRLEN], loop[INET_ADDRSTRLEN];
	struct in_addr lo = { htonl(loopback) };

	fprintf(f, "%s %s %s\n", host, inet_ntop(family, addr, text, sizeof(text)),
		inet_ntop(AF_INET, &lo, loop, sizeof(loop)));
}

static void write_node(FILE *f, const struct fabric_node *n, u32 *loopback)
{
	static const u8 none[16];
	u8 i;

	for (i = 1; i <= fabric_node_ports(n); i++) {
		const struct fabric_ip *ip = fabric_ca_ip(n, i);
		struct in_addr v4 = { ip ? htonl(ip->v4) : 0 };

		++*loopback;
		if (v4.s_addr)
			write_one(f, fabric_node_name(n), AF_INET, &v4, *loopback);
		if (ip && memcmp(ip->v6, none, sizeof(none)))
			write_one(f, fabric_node_name(n), AF_INET6, ip->v6, *loopback);
	}
}

/* A station may have more of them than a port of the fabric. */
static void write_station(FILE *f, const struct ether_station *st, u32 loopback)
{
	const struct fabric_ether_station *s = &st->cfg;
	u32 i;

	for (i = 0; i < s->naddr; i++) {
		bool v4 = ip_addr_is_v4(&s->addr[i]);

		write_one(f, s->name, v4 ? AF_INET : AF_INET6, s->addr[i].raw + (v4 ? 12 : 0), loopback);
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
	for (i = 0; i < fabric_node_count(d->fabric); i++) {
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

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Addresses and interfaces of a host that is not on the fabric, from its topology line. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "emu/daemon/daemon.h"
#include "emu/packet/roce.h"
#include "emu/port/netdev.h"
#include "rxe/roce/roce.h"

/* Parses an address, or all addresses of an interface; @addr has room for @max. Returns how many, or -errno. */
static int binding_parse_word(const char *word, struct wire_gid *addr, u32 max)
{
	struct ip_addr own[ROCE_ADDRS];
	struct in_addr v4;
	struct in6_addr v6;
	int n, i;

	if (inet_pton(AF_INET, word, &v4) == 1) {
		*addr = wire_gid_from_v4(ntohl(v4.s_addr));
		return 1;
	}
	if (inet_pton(AF_INET6, word, &v6) == 1) {
		*addr = wire_gid_from_bytes(&v6);
		return 1;
	}
	n = netdev_addrs(word, own, max);
	for (i = 0; i < n; i++)
		addr[i] = wire_gid_from_bytes(own[i].raw);
	return n;
}

/*
 * Hosts on addresses of the loopback network share the interface lo, which programs do not take for that of an adapter.
 * Their addresses, except 127.0.0.1, which the machine itself uses, are on an interface of their own instead.
 */
u32 daemon_binding_own(const char *binding, struct ip_addr addr[ROCE_ADDRS])
{
	char text[256], *save, *word;
	struct in_addr v4;
	u32 n = 0;

	snprintf(text, sizeof(text), "%s", strchr(binding, ' ') + 1);
	for (word = strtok_r(text, " ", &save); word && n < ROCE_ADDRS; word = strtok_r(NULL, " ", &save)) {
		if (inet_pton(AF_INET, word, &v4) == 1) {
			addr[n] = ip_addr_v4(ntohl(v4.s_addr));
			if (!ip_addr_is_loopback(&addr[n]) || ip_addr_get_v4(&addr[n]) == INADDR_LOOPBACK)
				return 0;
			n++;
		} else if (strchr(word, ':') || if_nametoindex(word)) {
			return 0;
		}
	}
	return n;
}

void daemon_binding_interface(const struct fabric_node *node, char netdev[IF_NAMESIZE], struct wire_port_attr *a)
{
	struct ip_addr addr[ROCE_ADDRS];
	u32 v4;

	if (!daemon_binding_own(fabric_node_binding(node), addr))
		return;
	snprintf(netdev, IF_NAMESIZE, DAEMON_BINDING_NETDEV);
	v4 = htonl(ip_addr_get_v4(&addr[0]));
	a->mac[0] = 0x02; /* locally administered */
	a->mac[1] = 0x6d;
	memcpy(a->mac + 2, &v4, sizeof(v4));
	a->netdev_mtu = netdev_mtu("lo");
}

int daemon_binding_read(const struct fabric_node *node, struct wire_gid *addr,
			int (*option)(void *arg, const char *word), void *arg)
{
	char text[256], *save, *word;
	int n = 0, got;

	snprintf(text, sizeof(text), "%s", strchr(fabric_node_binding(node), ' ') + 1);
	for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		got = option(arg, word);
		if (!got && n < ROCE_ADDRS) {
			got = binding_parse_word(word, addr + n, (u32)(ROCE_ADDRS - n));
			n += max(got, 0);
		}
		if (got < 0)
			return got;
	}
	return n ? n : -EADDRNOTAVAIL;
}

/* Sets the port's addresses for rdma_cm and `muslin show`. */
struct fabric_ip daemon_binding_ip(const struct wire_gid *addr, u32 n)
{
	struct fabric_ip ip = { .v4 = 0 };

	while (n--) { /* the first of each family */
		if (wire_gid_is_v4(&addr[n])) {
			ip.v4 = wire_gid_v4(&addr[n]);
			ip.v4_len = 32;
		} else {
			memcpy(ip.v6, addr[n].raw, sizeof(ip.v6));
			ip.v6_len = 128;
		}
	}
	return ip;
}

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
	struct fabric_ip ip = { .fixed = true };

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

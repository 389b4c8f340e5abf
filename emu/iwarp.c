// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Hosts whose port is iWARP, over the machine's TCP: what their line of the topology says. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/daemon.h"
#include "emu/wire/roce.h"
#include "rxe/roce.h"
#include "siw/siw.h"

#define WORDS 256

static const char *counter(struct uv_host *uv, u8 port, u32 n, u64 *value)
{
	if (n >= SIW_CTR_NUM)
		return NULL;
	*value = siw_counter(uv->hca, (enum siw_counter)n);
	return siw_counter_name((enum siw_counter)n);
}

/* The topology has checked the words. */
static void set_option(struct siw_options *o, const char *word)
{
	if (!strncmp(word, "mpa=", 4)) {
		o->revision = word[4] == '1' ? 1 : 2;
	} else if (!strncmp(word, "crc=", 4)) {
		o->crc = !strcmp(word + 4, "on");
	} else if (!strncmp(word, "markers=", 8)) {
		o->markers = !strcmp(word + 8, "on");
	} else if (!strncmp(word, "rtr=", 4)) {
		o->rtr_zero = !strcmp(word + 4, "zero");
		o->rtr_write = !strcmp(word + 4, "write");
		o->rtr_read = !strcmp(word + 4, "read");
	} else if (!strncmp(word, "start=", 6)) {
		o->start_ns = strtoull(word + 6, NULL, 10) * 1000 * 1000;
	}
}

/* Parts the words of a binding into options, which have a "=", and the others. */
static void options_of(const char *words, struct siw_options *o, char *addrs)
{
	char text[WORDS], *save, *word;
	size_t at = 0;

	*o = siw_options_default;
	addrs[0] = 0;
	snprintf(text, sizeof(text), "%s", words);
	for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (strchr(word, '='))
			set_option(o, word);
		else
			at += (size_t)snprintf(addrs + at, WORDS - at, "%s ", word);
	}
}

static bool has_addr(const struct ifaddrs *i, const struct wire_gid *addr)
{
	const struct sockaddr *sa = i->ifa_addr;

	if (!sa)
		return false;
	if (sa->sa_family == AF_INET6)
		return !memcmp(&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, addr->raw, 16);
	if (sa->sa_family != AF_INET || !wire_gid_is_v4(addr))
		return false;
	return ntohl(((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr) == wire_gid_v4(addr);
}

/* The interface that has the address; all of 127/8 is the loopback's. */
static void find_netdev(const struct wire_gid *addr, char *name)
{
	struct ifaddrs *all, *i;

	snprintf(name, IF_NAMESIZE, "lo");
	if (getifaddrs(&all))
		return;
	for (i = all; i; i = i->ifa_next)
		if (has_addr(i, addr)) {
			snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
			break;
		}
	freeifaddrs(all);
}

static u32 mtu_of(const char *netdev)
{
	char path[64];
	u32 mtu = 1500;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", netdev);
	f = fopen(path, "re");
	if (!f)
		return mtu;
	if (fscanf(f, "%u", &mtu) != 1)
		mtu = 1500;
	fclose(f);
	return mtu;
}

static const char *gid_netdev(const struct uv_host *uv, u32 gid)
{
	return container_of(uv, struct host, uv)->netdev;
}

int daemon_iwarp_bind(struct daemon *d, struct host *h)
{
	struct wire_gid addr[ROCE_ADDRS];
	struct fabric_ip ip;
	char words[WORDS];
	int n;
	u64 guid;

	options_of(strchr(fabric_node_binding(h->node), ' ') + 1, &h->iwarp, words);
	n = daemon_binding_addrs(words, addr);
	if (n < 0)
		return n;
	find_netdev(&addr[0], h->netdev);
	guid = roce_guid(&addr[0]);
	h->siw = siw_port_create(h->uv.name, guid, mtu_of(h->netdev));
	if (!h->siw)
		return -ENOMEM;
	ip = daemon_binding_ip(addr, (u32)n);
	fabric_node_bind(h->node, guid, &ip);
	h->uv.device = "siw0";
	h->uv.gid_netdev = gid_netdev;
	h->uv.counter = counter;
	return 0;
}

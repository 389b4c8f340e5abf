// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Hosts with an iWARP port on the machine's TCP: options of their topology line. */
#include <errno.h>
#include <stdlib.h>

#include "emu/daemon/daemon.h"
#include "emu/port/netdev.h"
#include "rxe/roce/roce.h"
#include "siw/siw.h"

static const char *counter(struct uv_host *uv, u8 port, u32 n, u64 *value)
{
	if (n >= SIW_CTR_NUM)
		return NULL;
	*value = siw_counter(uv->hca, (enum siw_counter)n);
	return siw_counter_name((enum siw_counter)n);
}

/* The words have been checked with the topology. */
static int set_option(void *arg, const char *word)
{
	struct siw_options *o = arg;

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
	} else if (!strncmp(word, "uring=", 6)) {
		o->uring = !strcmp(word + 6, "auto") ? SIW_URING_AUTO
			   : !strcmp(word + 6, "on") ? SIW_URING_ON
						     : SIW_URING_OFF;
	} else if (!strncmp(word, "start=", 6)) {
		o->start_ns = strtoull(word + 6, NULL, 10) * 1000 * 1000;
	}
	return strchr(word, '=') != NULL;
}

static const char *gid_netdev(const struct uv_host *uv, u32 gid)
{
	return container_of(uv, struct host, uv)->netdev;
}

/* Does another host have one of the addresses? It may have got it by the name of an interface. */
static bool address_is_taken(const struct daemon *d, const struct fabric_ip *ip)
{
	u32 i;

	for (i = 0; i < fabric_node_count(d->fabric); i++) {
		const struct host *h = d->hosts[i];
		const struct fabric_ip *other = h && h->siw ? fabric_ca_ip(h->node, 1) : NULL;

		if (other && ((ip->v4_len && other->v4_len && ip->v4 == other->v4) ||
			      (ip->v6_len && other->v6_len && !memcmp(ip->v6, other->v6, sizeof(ip->v6)))))
			return true;
	}
	return false;
}

int daemon_iwarp_bind(struct daemon *d, struct host *h)
{
	struct wire_gid addr[ROCE_ADDRS];
	struct fabric_ip ip;
	struct ip_addr first;
	int n;
	u64 guid;

	h->iwarp = siw_options_default;
	n = daemon_binding_read(h->node, addr, set_option, &h->iwarp);
	if (n < 0)
		return n;
	ip = daemon_binding_ip(addr, (u32)n);
	if (address_is_taken(d, &ip))
		return -EADDRINUSE;
	first = ip_addr_of_gid(&addr[0]);
	netdev_find(&first, h->netdev);
	guid = roce_guid(&addr[0]);
	h->siw = siw_port_create(h->uv.name, guid, netdev_mtu(h->netdev));
	if (!h->siw)
		return -ENOMEM;
	daemon_binding_interface(h->node, h->netdev, &h->siw->attr);
	fabric_node_bind(h->node, guid, &ip);
	h->uv.device = "siw0";
	h->uv.gid_netdev = gid_netdev;
	h->uv.counter = counter;
	return 0;
}

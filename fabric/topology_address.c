// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * IP addresses of hosts: those that the topology does not give, and one of two hosts on one network (RFC 5227), which
 * is an error, as is an interface of two hosts.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdlib.h>

#include "fabric/build.h"
#include "fabric/topology_ether.h"

#define NETWORK_MACHINE (~0u)

/*
 * One address of a port, or an interface of the machine with all of its addresses. Its network is a set of cabled
 * InfiniBand nodes, a VLAN of cabled Ethernet switches, or the machine's.
 */
struct address {
	struct ip_addr ip;
	char netdev[IF_NAMESIZE]; /* the interface; "": an address */
	const char *host;
	u32 shard;   /* of the host: that of another one may be on another machine, with an interface of that name */
	u32 network; /* the first node of the set; nnodes + the switch; NETWORK_MACHINE */
	u32 line;    /* that gives it; 0: by default */
	u16 vlan;
	u8 port;
};

struct addresses {
	struct address *list;
	u32 n;
};

/* Assigns addresses to the ports without configured ones: 10.0.0.1 (@next) on, and the same number under fd00::. */
static void assign_ips(struct fabric_topology *t, u32 next)
{
	u32 i, p;

	for (i = 0; i < t->nnodes; i++) {
		struct fabric_topology_node *n = &t->nodes[i];

		if (n->binding)
			continue;
		for (p = 1; n->ip && p <= n->nports; p++, next++) {
			struct fabric_ip *ip = &n->ip[p];
			u32 host = next + next / 255; /* skips 10.x.y.0 */

			if (!ip->v4) {
				ip->v4 = 0x0a000000u + host;
				ip->v4_len = 8;
			}
			if (!ip->v6_len) {
				ip->v6[0] = 0xfd;
				ip->v6[12] = host >> 24;
				ip->v6[13] = host >> 16;
				ip->v6[14] = host >> 8;
				ip->v6[15] = host;
				ip->v6_len = 64;
			}
		}
	}
}

static int address_add(struct addresses *as, const struct address *a)
{
	struct address *new = fabric_build_append(&as->list, &as->n, sizeof(*new));

	if (!new)
		return -1;
	*new = *a;
	return 0;
}

static u32 set_first(u32 *set, u32 node)
{
	while (set[node] != node)
		node = set[node] = set[set[node]];
	return node;
}

/* The ports of InfiniBand hosts. */
static int add_ports(struct addresses *as, const struct fabric_topology *t)
{
	u32 *set = calloc(t->nnodes, sizeof(*set)), i, p;
	int err = set ? 0 : -1;

	for (i = 0; set && i < t->nnodes; i++)
		set[i] = i;
	for (i = 0; set && i < t->nnodes; i++)
		for (p = 1; p <= t->nodes[i].nports; p++)
			if (t->nodes[i].ports[p].peer != FABRIC_NO_PEER)
				set[set_first(set, i)] = set_first(set, t->nodes[i].ports[p].peer);
	for (i = 0; !err && i < t->nnodes; i++) {
		const struct fabric_topology_node *n = &t->nodes[i];
		struct address a = { .host = n->name };

		for (p = 1; !err && n->ip && !n->binding && p <= n->nports; p++) {
			a.network = set_first(set, i);
			a.port = (u8)p;
			a.line = n->ip[p].v4_line;
			a.ip = ip_addr_v4(n->ip[p].v4);
			err = address_add(as, &a);
			a.line = n->ip[p].v6_line;
			memcpy(a.ip.raw, n->ip[p].v6, sizeof(a.ip.raw));
			err = err ? err : address_add(as, &a);
		}
	}
	free(set);
	return err;
}

/* The addresses and interfaces of the machine that a host has, if it is such a host. */
static int add_bound(struct addresses *as, const struct fabric_topology_node *n)
{
	const char *binding = n->binding ? n->binding : "";
	char text[256], *save, *word;
	struct in_addr v4;
	int err = 0;

	if (strncmp(binding, "roce ", 5) && strncmp(binding, "iwarp ", 6))
		return 0;
	snprintf(text, sizeof(text), "%s", strchr(binding, ' ') + 1);
	for (word = strtok_r(text, " ", &save); !err && word; word = strtok_r(NULL, " ", &save)) {
		struct address a = { .host = n->name, .shard = n->shard, .network = NETWORK_MACHINE, .line = n->line };

		if (inet_pton(AF_INET, word, &v4) == 1)
			a.ip = ip_addr_v4(ntohl(v4.s_addr));
		else if (strchr(word, '=') || !strcmp(word, "dcqcn")) /* an option */
			continue;
		else if (inet_pton(AF_INET6, word, a.ip.raw) != 1)
			snprintf(a.netdev, sizeof(a.netdev), "%s", word);
		err = address_add(as, &a);
	}
	return err;
}

static int add_stations(struct addresses *as, const struct fabric_topology *t)
{
	const struct fabric_ether *e = t->ether;
	u32 i, k;
	int err = 0;

	for (i = 0; !err && e && i < e->nstations; i++) {
		const struct fabric_ether_station *s = &e->station[i];
		struct address a = { .host = s->name, .network = t->nnodes + s->sw, .line = s->line };

		for (k = 0; !err && k < s->naddr; k++) {
			a.ip = s->addr[k];
			a.vlan = s->vlan[k] ? s->vlan[k] : fabric_ether_vlan(&s->link);
			err = address_add(as, &a);
		}
	}
	return err;
}

/* Whether cables connect the switches @from and @to in @vlan. */
static bool switches_connected(const struct fabric_ether *e, u32 from, u32 to, u16 vlan)
{
	bool *reached = calloc(e->nsw, sizeof(*reached)), more = reached, yes;
	u32 i;

	if (reached)
		reached[from] = true;
	while (more) {
		more = false;
		for (i = 0; i < e->ncables; i++) {
			const struct fabric_ether_cable *c = &e->cable[i];

			if (reached[c->a] == reached[c->b] || !fabric_ether_carries(&c->link, vlan))
				continue;
			more = reached[c->a] = reached[c->b] = true;
		}
	}
	yes = reached && reached[to];
	free(reached);
	return yes;
}

static bool same_network(const struct fabric_topology *t, const struct address *a, const struct address *b)
{
	if (a->vlan != b->vlan || (*a->netdev && a->shard != b->shard))
		return false;
	return a->network == b->network ||
	       (a->vlan && switches_connected(t->ether, a->network - t->nnodes, b->network - t->nnodes, a->vlan));
}

static bool same_address(const struct address *a, const struct address *b)
{
	return ip_addr_equal(&a->ip, &b->ip) && !strcmp(a->netdev, b->netdev);
}

static int address_compare(const void *x, const void *y)
{
	const struct address *a = x, *b = y;
	int order = memcmp(a->ip.raw, b->ip.raw, sizeof(a->ip.raw));

	order = order ? order : strcmp(a->netdev, b->netdev);
	if (order)
		return order;
	return a->line != b->line ? (a->line > b->line) - (a->line < b->line) : a->port - b->port;
}

static const char *address_owner(const struct address *a, char *buf, size_t len)
{
	snprintf(buf, len, a->port ? "%s:%u" : "%s", a->host, a->port);
	return buf;
}

/* @b is of the later line. */
static int report_conflict(struct fabric_build *b, const struct address *first, const struct address *later)
{
	char ip[IP_ADDR_STRLEN], x[FABRIC_NAME_MAX + 8], y[FABRIC_NAME_MAX + 8];

	ip_addr_str(&later->ip, ip);
	address_owner(first, x, sizeof(x));
	address_owner(later, y, sizeof(y));
	b->line = later->line;
	if (*later->netdev)
		return fabric_build_error(b, "the interface %s of %s is that of %s (line %u)", later->netdev, y, x,
					  first->line);
	if (first->line)
		return fabric_build_error(b, "%s of %s is the address of %s on the same network (line %u)", ip, y, x,
					  first->line);
	return fabric_build_error(b, "%s of %s is the address that %s on the same network has by default", ip, y, x);
}

static int check_addresses(struct fabric_build *b, const struct addresses *as)
{
	u32 i, k;

	if (as->n)
		qsort(as->list, as->n, sizeof(*as->list), address_compare);
	for (i = 1; i < as->n; i++)
		for (k = i; k-- && same_address(&as->list[k], &as->list[i]);)
			if (same_network(b->t, &as->list[k], &as->list[i]))
				return report_conflict(b, &as->list[k], &as->list[i]);
	return 0;
}

int fabric_build_addresses(struct fabric_build *b)
{
	const struct fabric_topology *t = b->t;
	struct addresses as = { .n = 0 };
	u32 i;
	int err;

	assign_ips(b->t, b->first + 1);
	err = add_ports(&as, t);
	for (i = 0; !err && i < t->nnodes; i++)
		err = add_bound(&as, &t->nodes[i]);
	err = err ? err : add_stations(&as, t);
	err = err ? fabric_build_error(b, "out of memory") : check_addresses(b, &as);
	free(as.list);
	return err;
}

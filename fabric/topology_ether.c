// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ethernet lines of the short form: parser of switches, inter-switch links, stations. */
#include "fabric/topology_ether.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>

#include "emu/lib/spec.h"
#include "fabric/build.h"

#define SWITCHES_MAX 256

/* Targets of the options of a line. */
struct words {
	struct eth_link_config *link;
	u64 *age_ns;                          /* NULL: not valid on this line */
	struct fabric_ether_station *station; /* NULL: not valid on this line */
};

static bool parse_size(const char *text, u32 *size)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);
	u32 shift = *end == 'k' || *end == 'K' ? 10 : *end == 'm' || *end == 'M' ? 20 : 0;

	if (end[shift != 0] || n > 1u << 30 || !n || (u64)n << shift > 1u << 30)
		return false;
	*size = (u32)n << shift;
	return true;
}

/* "100M", "2.5G", "10G": bit/s. */
static bool parse_rate(const char *text, u64 *rate)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || v <= 0)
		return false;
	v *= *end == 'G' ? 1e9 : *end == 'M' ? 1e6 : *end == 'k' ? 1e3 : 1;
	if ((*end && (!strchr("GMk", *end) || end[1])) || v < 1e4 || v > 1e13)
		return false;
	*rate = (u64)v;
	return true;
}

/* Parses numbers separated by commas, and calls @take for each. */
static bool parse_list(const char *text, u32 max, bool (*take)(struct eth_link_config *c, u32 n),
		       struct eth_link_config *c)
{
	unsigned long n;
	char *end;

	do {
		n = strtoul(text, &end, 10);
		if (end == text || n > max || !take(c, (u32)n))
			return false;
		text = end + 1;
	} while (*end == ',');
	return !*end;
}

static bool take_priority(struct eth_link_config *c, u32 n)
{
	c->pfc |= BIT(n);
	return true;
}

static bool take_trunk(struct eth_link_config *c, u32 n)
{
	u32 i;

	for (i = 0; i < c->ntrunk; i++)
		if (c->trunk[i] == n)
			return true;
	if (!n || c->ntrunk == ETH_TRUNK_MAX)
		return false;
	c->trunk[c->ntrunk++] = (u16)n;
	return true;
}

static bool parse_mac(const char *text, u8 *mac)
{
	u32 b[ETHER_ALEN], i;
	char rest;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%c", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &rest) != ETHER_ALEN)
		return false;
	for (i = 0; i < ETHER_ALEN; i++)
		mac[i] = (u8)b[i];
	return !ether_is_multicast(mac) && !ether_is_zero(mac);
}

/* ADDRESS[/LENGTH][@VLAN] */
static bool parse_addr(struct fabric_ether_station *s, char *text)
{
	char *at = strchr(text, '@'), *slash;
	u64 vlan = 0, len = 0;
	struct in_addr v4;
	u8 n = (u8)s->naddr;

	if (at) {
		*at = 0;
		if (!spec_number(at + 1, ETH_VLANS - 1, &vlan) || !take_trunk(&s->link, (u32)vlan))
			return false;
	}
	slash = strchr(text, '/');
	if (slash) {
		*slash = 0;
		if (!spec_number(slash + 1, 128, &len) || !len)
			return false;
	}
	if (n == FABRIC_ETHER_ADDRS)
		return false;
	if (inet_pton(AF_INET, text, &v4) == 1)
		s->addr[n] = ip_addr_v4(ntohl(v4.s_addr));
	else if (inet_pton(AF_INET6, text, s->addr[n].raw) != 1 || ip_addr_is_v4(&s->addr[n]))
		return false;
	if ((len > 32 && ip_addr_is_v4(&s->addr[n])) || !ip_addr_is_host(&s->addr[n]))
		return false;
	s->len[n] = (u8)(len ? len : ip_addr_is_v4(&s->addr[n]) ? 24 : 64);
	s->vlan[n] = (u16)vlan;
	s->naddr++;
	return true;
}

/* One option. 1: valid, 0: unknown, -1: invalid value. */
static int topology_ether_flag(const struct words *w, const char *word)
{
	if (!strcmp(word, "pause"))
		w->link->pause = true;
	else if (w->station && w->station->kind == FABRIC_ETHER_ROCE && !strcmp(word, "mode=v1"))
		w->station->v1 = true;
	else if (w->station && w->station->kind == FABRIC_ETHER_ROCE && !strcmp(word, "dcqcn"))
		w->station->dcqcn = true;
	else if (w->station && w->station->kind == FABRIC_ETHER_NIC && !strcmp(word, "roce"))
		w->station->roce = true;
	else
		return 0;
	return 1;
}

static int topology_ether_option(const struct words *w, const char *word, char *val)
{
	struct eth_link_config *c = w->link;
	u64 n;

	if (!strcmp(word, "rate"))
		return parse_rate(val, &c->rate) ? 1 : -1;
	if (!strcmp(word, "queue"))
		return parse_size(val, &c->queue) ? 1 : -1;
	if (!strcmp(word, "ecn"))
		return parse_size(val, &c->ecn) ? 1 : -1;
	if (!strcmp(word, "pfc"))
		return parse_list(val, ETH_CLASSES - 1, take_priority, c) ? 1 : -1;
	if (!strcmp(word, "trunk")) {
		c->all = !strcmp(val, "all");
		return c->all || parse_list(val, ETH_VLANS - 1, take_trunk, c) ? 1 : -1;
	}
	if (!strcmp(word, "mtu")) {
		if (!spec_number(val, ETHER_MTU_MAX, &n) || n < 576)
			return -1;
		c->mtu = (u32)n;
		return 1;
	}
	if (!strcmp(word, "vlan")) {
		if (!spec_number(val, ETH_VLANS - 1, &n) || !n)
			return -1;
		c->vlan = (u16)n;
		return 1;
	}
	if (w->age_ns && !strcmp(word, "age")) {
		if (!spec_number(val, 1000000, &n) || !n)
			return -1;
		*w->age_ns = n * NSEC_PER_SEC;
		return 1;
	}
	if (w->station && !strcmp(word, "mac"))
		return parse_mac(val, w->station->mac) ? 1 : -1;
	return 0;
}

/* What the value of an option is, for messages. */
static const char *option_values(const char *word)
{
	static const char *const values[][2] = {
		{ "rate", "bit/s such as 100M or 2.5G, from 10k to 10000G" },
		{ "queue", "bytes such as 64k or 1m, up to 1024m" },
		{ "ecn", "bytes such as 64k or 1m, up to 1024m" },
		{ "pfc", "priorities from 0 to 7, with commas" },
		{ "trunk", "up to 32 VLANs from 1 to 4094, with commas, or all" },
		{ "mtu", "bytes from 576 to 65000" },
		{ "vlan", "from 1 to 4094" },
		{ "age", "seconds from 1 to 1000000" },
		{ "mac", "the address of one station, such as 02:00:00:00:00:01" },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(values) && strcmp(values[i][0], word) != 0;)
		i++;
	return i < ARRAY_SIZE(values) ? values[i][1] : "another one";
}

/* A queue grows beyond its size only with frames of links that have flow control. Cables may have another queue. */
static int read_options_check(struct fabric_build *b, const struct words *w)
{
	const struct eth_link_config *c = w->link;
	u32 queue = c->queue ? c->queue : ETH_QUEUE;

	if (c->ecn <= queue || c->pause || c->pfc || (w->age_ns && !c->queue))
		return 0;
	return fabric_build_error(b, "ecn %u is more than the queue of %u bytes, so that no frame would be marked",
				  c->ecn, queue);
}

static int read_options(struct fabric_build *b, struct fabric_line *l, const struct words *w)
{
	char word[80], val[160];
	bool addrs = false;
	int got;

	while (fabric_line_word(l, word, sizeof(word)) && word[0] != '#') {
		if (w->station && !strcmp(word, "ip")) {
			addrs = true;
			continue;
		}
		if (addrs && strpbrk(word, ".:") && strcmp(word, "mac")) {
			snprintf(val, sizeof(val), "%s", word);
			if (!parse_addr(w->station, word))
				return fabric_build_error(
					b, "\"%.60s\" is not an address, or exceeds the number of addresses", val);
			continue;
		}
		addrs = false;
		if (topology_ether_flag(w, word))
			continue;
		snprintf(val, sizeof(val), "?");
		got = fabric_line_word(l, val, sizeof(val)) ? topology_ether_option(w, word, val) : 0;
		if (got < 0)
			return fabric_build_error(b, "%s: \"%.60s\" is not a valid value; expected %s", word, val,
						  option_values(word));
		if (!got)
			return fabric_build_error(b, "\"%.60s\" is not known here, or needs a value", word);
	}
	return read_options_check(b, w);
}

static struct fabric_ether *ether_of(struct fabric_build *b)
{
	if (!b->t->ether)
		b->t->ether = calloc(1, sizeof(*b->t->ether));
	return b->t->ether;
}

static s64 find_switch(const struct fabric_ether *e, const char *name)
{
	u32 i;

	for (i = 0; e && i < e->nsw; i++)
		if (!strcmp(e->sw[i].name, name))
			return i;
	return -1;
}

static int add_cable(struct fabric_build *b, u32 x, u32 y, struct fabric_line *l)
{
	struct fabric_ether *e = b->t->ether;
	struct fabric_ether_cable *c = fabric_build_append(&e->cable, &e->ncables, sizeof(*c));
	struct words w = { .link = c ? &c->link : NULL };

	if (!c)
		return fabric_build_error(b, "out of memory");
	if (x == y)
		return fabric_build_error(b, "a cable from \"%.60s\" to itself", e->sw[x].name);
	c->line = b->line;
	c->a = x;
	c->b = y;
	c->link = e->sw[x].link;
	c->link.all = !c->link.ntrunk;
	return read_options(b, l, &w);
}

/* ethernet NAME [OPTION...], or ethernet NAME NAME [OPTION...] for a cable. */
int fabric_build_ethernet(struct fabric_build *b, struct fabric_line *l)
{
	char name[FABRIC_NAME_MAX + 8], other[FABRIC_NAME_MAX + 8] = "";
	struct fabric_ether *e = ether_of(b);
	struct fabric_ether_switch *sw;
	struct fabric_line rest;
	struct words w = { .link = NULL };
	s64 x, y;

	if (!e)
		return fabric_build_error(b, "out of memory");
	if (!fabric_line_word(l, name, sizeof(name)) || name[0] == '#' || strchr(name, ':'))
		return fabric_build_error(b, "expected ethernet NAME, or ethernet NAME NAME for a cable");
	rest = *l;
	x = find_switch(e, name);
	y = x >= 0 && fabric_line_word(&rest, other, sizeof(other)) ? find_switch(e, other) : -1;
	if (y >= 0)
		return add_cable(b, (u32)x, (u32)y, &rest);
	if (x >= 0 && *other && *other != '#')
		return fabric_build_error(b,
					  "Ethernet switch \"%.60s\" exists already, and \"%.60s\", for a cable, is "
					  "none of the lines above",
					  name, other);
	if (x >= 0)
		return fabric_build_error(b, "Ethernet switch \"%.60s\" exists already", name);
	if (fabric_build_name_check(b, name, false))
		return -EINVAL;
	if (fabric_build_find_name(b, name) >= 0)
		return fabric_build_error(b, "node \"%.60s\" exists already", name);
	sw = e->nsw < SWITCHES_MAX ? fabric_build_append(&e->sw, &e->nsw, sizeof(*sw)) : NULL;
	if (!sw)
		return fabric_build_error(b, "too many Ethernet switches");
	snprintf(sw->name, sizeof(sw->name), "%.*s", (int)sizeof(sw->name) - 1, name);
	w.link = &sw->link;
	w.age_ns = &sw->age_ns;
	return read_options(b, l, &w);
}

/* A host on the fabric may have a network card, too. */
static int station_node(struct fabric_build *b, struct fabric_ether_station *s, const char *kind, const char *sw)
{
	s64 n = fabric_build_find_name(b, s->name);
	char text[FABRIC_NAME_MAX + 16];

	s->node = ~0u;
	if (s->kind == FABRIC_ETHER_TAP)
		return n < 0 ? 0 : fabric_build_error(b, "node \"%.60s\" exists already", s->name);
	if (n >= 0 && s->kind == FABRIC_ETHER_NIC && b->t->nodes[n].ip && !b->t->nodes[n].binding) {
		s->node = (u32)n;
		if (s->roce && b->t->nodes[n].nports > 1)
			return fabric_build_error(b, "%.60s has two ports on the fabric already", s->name);
		return 0;
	}
	snprintf(text, sizeof(text), "%s %s", kind, sw);
	n = fabric_build_bound_node(b, s->name, text);
	s->node = (u32)n;
	return n < 0 ? (int)n : 0;
}

/* Sets the addresses for `muslin show` and rdma_cm: the first of each family. */
static void node_addresses(struct fabric_build *b, const struct fabric_ether_station *s)
{
	struct fabric_ip *ip;
	u32 i = s->naddr;

	if (s->node == ~0u || !b->t->nodes[s->node].binding)
		return;
	ip = &b->t->nodes[s->node].ip[1];
	while (i--) {
		if (ip_addr_is_v4(&s->addr[i])) {
			ip->v4 = ip_addr_get_v4(&s->addr[i]);
			ip->v4_len = s->len[i];
		} else {
			memcpy(ip->v6, s->addr[i].raw, sizeof(ip->v6));
			ip->v6_len = s->len[i];
		}
	}
}

int fabric_build_station(struct fabric_build *b, const char *name, const char *kind, struct fabric_line *l)
{
	static const char *const kinds[] = {
		[FABRIC_ETHER_ROCE] = "ether", [FABRIC_ETHER_NIC] = "nic", [FABRIC_ETHER_TAP] = "tap"
	};
	struct fabric_ether *e = ether_of(b);
	struct fabric_ether_station *s = e ? fabric_build_append(&e->station, &e->nstations, sizeof(*s)) : NULL;
	struct words w = { .link = s ? &s->link : NULL, .station = s };
	char sw[FABRIC_NAME_MAX + 8] = "", device[IF_NAMESIZE + 1] = "";
	s64 at;
	int err;

	if (!s)
		return fabric_build_error(b, "out of memory");
	while (strcmp(kinds[s->kind], kind))
		s->kind++;
	at = fabric_line_word(l, sw, sizeof(sw)) ? find_switch(e, sw) : -1;
	if (at < 0)
		return fabric_build_error(b, "\"%.60s\" is not an Ethernet switch of the lines above", sw);
	if (fabric_build_name_check(b, name, s->kind != FABRIC_ETHER_TAP))
		return -EINVAL;
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->sw = (u32)at;
	s->line = b->line;
	s->link = e->sw[at].link;
	wire_store(s->mac, 3, 0x026d75); /* locally administered */
	wire_store(s->mac + 3, 3, e->nstations);
	if (s->kind == FABRIC_ETHER_TAP &&
	    (!fabric_line_word(l, device, sizeof(device)) || strlen(device) >= IF_NAMESIZE))
		return fabric_build_error(b, "tap needs the name of an interface, of up to %d characters",
					  IF_NAMESIZE - 1);
	memcpy(s->device, device, sizeof(s->device));
	err = read_options(b, l, &w);
	err = err ? err : station_node(b, s, kind, sw);
	if (err)
		return err;
	if (s->kind == FABRIC_ETHER_ROCE && !s->naddr)
		return fabric_build_error(b, "a RoCE host needs an address: ip ADDRESS");
	node_addresses(b, s);
	return 0;
}

u16 fabric_ether_vlan(const struct eth_link_config *c)
{
	return c->vlan ? c->vlan : 1;
}

bool fabric_ether_carries(const struct eth_link_config *c, u16 vlan)
{
	u32 i;

	for (i = 0; i < c->ntrunk; i++)
		if (c->trunk[i] == vlan)
			return true;
	return c->all || vlan == fabric_ether_vlan(c);
}

/* Marks the VLANs that @c names. */
static void link_vlans(const struct eth_link_config *c, bool *named)
{
	u32 i;

	named[fabric_ether_vlan(c)] = true;
	for (i = 0; i < c->ntrunk; i++)
		named[c->trunk[i]] = true;
}

static u32 root_of(u32 *root, u32 sw)
{
	while (root[sw] != sw)
		sw = root[sw] = root[root[sw]];
	return sw;
}

/* A cable that closes a loop of @vlan, in which a broadcast would circulate for ever. NULL: none. */
static const struct fabric_ether_cable *find_loop(const struct fabric_ether *e, u16 vlan, u32 *root)
{
	u32 i, x, y;

	for (i = 0; i < e->nsw; i++)
		root[i] = i;
	for (i = 0; i < e->ncables; i++) {
		if (!fabric_ether_carries(&e->cable[i].link, vlan))
			continue;
		x = root_of(root, e->cable[i].a);
		y = root_of(root, e->cable[i].b);
		if (x == y)
			return &e->cable[i];
		root[x] = y;
	}
	return NULL;
}

/* Loops: of each VLAN that a line names, and of one of the others, which are all alike. */
static int check_loops(struct fabric_build *b)
{
	const struct fabric_ether *e = b->t->ether;
	u32 *root = calloc(e->nsw + 1, sizeof(*root)), i;
	const struct fabric_ether_cable *c = NULL;
	bool named[ETH_VLANS] = { [0] = true }, other = true;

	if (!root)
		return fabric_build_error(b, "out of memory");
	for (i = 0; i < e->ncables; i++)
		link_vlans(&e->cable[i].link, named);
	for (i = 1; !c && i < ETH_VLANS; i++) {
		if (!named[i] && !other)
			continue;
		other &= named[i];
		c = find_loop(e, (u16)i, root);
	}
	free(root);
	if (!c)
		return 0;
	b->line = c->line;
	return fabric_build_error(b, "this cable closes a loop in VLAN %u: the switches have no spanning tree", i - 1);
}

static int check_macs(struct fabric_build *b)
{
	const struct fabric_ether *e = b->t->ether;
	u32 i, k;

	for (i = 1; i < e->nstations; i++) {
		for (k = 0; k < i; k++) {
			if (e->station[i].kind == FABRIC_ETHER_TAP || e->station[k].kind == FABRIC_ETHER_TAP ||
			    memcmp(e->station[i].mac, e->station[k].mac, ETHER_ALEN) != 0)
				continue;
			b->line = e->station[i].line;
			return fabric_build_error(b, "the MAC address of %.60s is that of %.60s (line %u)",
						  e->station[i].name, e->station[k].name, e->station[k].line);
		}
	}
	return 0;
}

int fabric_build_ether_check(struct fabric_build *b)
{
	int err = b->t->ether ? check_loops(b) : 0;

	return err || !b->t->ether ? err : check_macs(b);
}

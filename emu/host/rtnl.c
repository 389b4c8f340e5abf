// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * NETLINK_ROUTE: requests that read links, addresses, routes, rules and neighbours, as the kernel's rtnetlink answers
 * them, about lo and the host's own interfaces. There are routes to the networks of its addresses alone. What would
 * change something needs CAP_NET_ADMIN, which no program has here.
 */
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stddef.h>

#include "emu/host/interface.h"
#include "emu/host/netlink.h"
#include "emu/wire/ether.h"

#define LO             1 /* its number */
#define LO_MTU         65536
#define ENTRY_MAX      320      /* bytes of a message */
#define NEIGHBOURS_MAX 1024     /* of an answer: the kernel's gc_thresh3 */
#define METRIC         256      /* of IPv6 routes that addresses bring */
#define FLAG_RUNNING   0x10040u /* IFF_RUNNING, IFF_LOWER_UP */
#define FLAGS          0x1003u  /* IFF_UP, IFF_BROADCAST, IFF_MULTICAST */
#define LO_FLAGS       0x10049u /* IFF_UP, IFF_LOOPBACK, IFF_RUNNING, IFF_LOWER_UP */
#define OPER_DOWN      2
#define OPER_UP        6
#define OPER_UNKNOWN   0
#define MODE_DATAGRAM  0
#define KIND_GET       2 /* of requests: the low bits of their type */

/* What the host has. */
struct view {
	struct nl_call *c;
	struct uv_interface dev[UV_INTERFACES];
	u32 ndev;
	/* Of the request: behind its header of @header bytes. */
	const u8 *body;
	u32 len;
};

/* An address of lo or of @dev. */
struct own {
	const struct uv_interface *dev; /* NULL: lo */
	struct ip_addr ip;
	u32 len;
};

static u32 dev_index(const struct uv_interface *d)
{
	return d ? d->index : LO;
}

static u8 family_of(const struct ip_addr *a)
{
	return ip_addr_is_v4(a) ? AF_INET : AF_INET6;
}

/* The bytes of an address in its family. */
static const u8 *bytes_of(const struct ip_addr *a)
{
	return ip_addr_is_v4(a) ? a->raw + 12 : a->raw;
}

static u32 size_of(u8 family)
{
	return family == AF_INET ? 4 : 16;
}

static bool address_get(const struct nlattr *a, u8 family, struct ip_addr *ip)
{
	struct in_addr v4;

	if (!a || nl_len(a) < size_of(family))
		return false;
	if (family == AF_INET) {
		memcpy(&v4, nl_data(a), sizeof(v4));
		*ip = ip_addr_v4(ntohl(v4.s_addr));
	} else {
		memcpy(ip->raw, nl_data(a), sizeof(ip->raw));
	}
	return true;
}

static void put_address(struct nl_call *c, u16 type, const struct ip_addr *a)
{
	nl_put(c, type, bytes_of(a), size_of(family_of(a)));
}

/* The network of an address (@ones false), or its last address, which in IPv4 is for broadcasts. */
static struct ip_addr network_of(const struct ip_addr *a, u32 len, bool ones)
{
	u32 i, skip = ip_addr_is_v4(a) ? 96 : 0;
	struct ip_addr to = *a;

	for (i = skip + len; i < 128; i++) {
		u8 bit = (u8)(0x80 >> i % 8);

		to.raw[i / 8] = (u8)((to.raw[i / 8] & ~bit) | (ones ? bit : 0));
	}
	return to;
}

/* The nth address, lo's first; false past the end. */
static bool own_get(const struct view *v, u32 n, struct own *o)
{
	static const struct ip_addr v6 = { { [15] = 1 } };
	const struct uv_host *h = v->c->host;
	struct uv_address a;
	u32 i;

	if (n < 2) {
		*o = (struct own){ .ip = n ? v6 : ip_addr_v4(INADDR_LOOPBACK), .len = n ? 128 : 8 };
		return true;
	}
	if (!h->address || h->removed || !h->address(h, n - 2, &a))
		return false;
	*o = (struct own){ .ip = a.ip, .len = a.len };
	for (i = 0; i < v->ndev; i++)
		if (!strcmp(v->dev[i].name, a.netdev))
			o->dev = &v->dev[i];
	return true;
}

static bool own_is_lo(const struct own *o)
{
	return !o->dev && ip_addr_is_loopback(&o->ip);
}

/* An address of an interface that is not there, or not yet. */
static bool own_is_lost(const struct own *o)
{
	return !o->dev && !own_is_lo(o);
}

/* The next message of a dump goes to a datagram of its own where this one has no room. */
static void entry_begin(struct nl_call *c, u16 type)
{
	if (!nl_has_room(c, ENTRY_MAX))
		nl_send(c);
	nl_begin(c, type);
}

/* What the request has of its header, the rest is 0. */
static void body_get(const struct view *v, void *to, u32 size)
{
	memset(to, 0, size);
	memcpy(to, v->body, min(size, v->len));
}

/* Links */

static void put_kind(struct nl_call *c, const struct uv_interface *d)
{
	u32 at, data;

	if (d->type != ARPHRD_INFINIBAND && !d->vlan)
		return;
	at = nl_nest_begin(c, IFLA_LINKINFO);
	nl_put_string(c, IFLA_INFO_KIND, d->vlan ? "vlan" : "ipoib");
	data = nl_nest_begin(c, IFLA_INFO_DATA);
	if (d->vlan) {
		__be16 protocol = cpu_to_be16(ETHERTYPE_VLAN);

		nl_put_u16(c, IFLA_VLAN_ID, d->vlan);
		nl_put(c, IFLA_VLAN_PROTOCOL, &protocol, sizeof(protocol));
	} else {
		nl_put_u16(c, IFLA_IPOIB_PKEY, ipif_pkey(c->host->ipif[d->port->num - 1]));
		nl_put_u16(c, IFLA_IPOIB_MODE, MODE_DATAGRAM);
		nl_put_u16(c, IFLA_IPOIB_UMCAST, 0);
	}
	nl_nest_end(c, data);
	nl_nest_end(c, at);
}

/* @type: RTM_NEWLINK or RTM_DELLINK. */
static void put_link(struct nl_call *c, u16 type, const struct uv_interface *d)
{
	static const struct uv_interface lo = {
		.name = "lo", .index = LO, .link = LO, .mtu = LO_MTU, .type = ARPHRD_LOOPBACK, .len = 6
	};
	bool up = !d || uv_interface_up(d);
	struct ifinfomsg m = { .ifi_flags = d ? FLAGS | (up ? FLAG_RUNNING : 0) : LO_FLAGS };

	entry_begin(c, type);
	m.ifi_type = (unsigned short)(d ? d->type : lo.type);
	m.ifi_index = (int)dev_index(d);
	nl_raw(c, &m, sizeof(m));
	nl_put_string(c, IFLA_IFNAME, d ? d->name : lo.name);
	nl_put_u32(c, IFLA_TXQLEN, d && d->type == ARPHRD_INFINIBAND ? 256 : 1000);
	nl_put_u8(c, IFLA_OPERSTATE, d ? (up ? OPER_UP : OPER_DOWN) : OPER_UNKNOWN);
	nl_put_u8(c, IFLA_LINKMODE, 0);
	nl_put_u32(c, IFLA_MTU, d ? d->mtu : lo.mtu);
	nl_put_u32(c, IFLA_GROUP, 0);
	nl_put_u32(c, IFLA_PROMISCUITY, 0);
	nl_put_u32(c, IFLA_NUM_TX_QUEUES, 1);
	nl_put_u32(c, IFLA_NUM_RX_QUEUES, 1);
	nl_put_u8(c, IFLA_CARRIER, up);
	nl_put_string(c, IFLA_QDISC, d && !d->vlan ? "pfifo_fast" : "noqueue");
	nl_put(c, IFLA_ADDRESS, d ? d->addr : lo.addr, d ? d->len : lo.len);
	nl_put(c, IFLA_BROADCAST, d ? d->broadcast : lo.broadcast, d ? d->len : lo.len);
	if (d && d->link != d->index)
		nl_put_u32(c, IFLA_LINK, d->link);
	if (d)
		put_kind(c, d);
}

static int get_link(struct view *v)
{
	const struct nlattr *attr[IFLA_MAX + 1], *name;
	struct ifinfomsg m;
	u32 i;

	body_get(v, &m, sizeof(m));
	if (v->c->dump) {
		if (m.ifi_family == AF_BRIDGE) /* of which no interface is a port */
			return 0;
		put_link(v->c, RTM_NEWLINK, NULL);
		for (i = 0; i < v->ndev; i++)
			put_link(v->c, RTM_NEWLINK, &v->dev[i]);
		return 0;
	}
	if (v->len < sizeof(m))
		return -EINVAL;
	nl_attrs(v->c, sizeof(m), attr, ARRAY_SIZE(attr));
	name = attr[IFLA_IFNAME] ? attr[IFLA_IFNAME] : attr[IFLA_ALT_IFNAME];
	if (m.ifi_index <= 0 && !name)
		return -EINVAL;
	if (m.ifi_index > 0 ? m.ifi_index == LO : nl_is(name, "lo")) {
		put_link(v->c, RTM_NEWLINK, NULL);
		return 0;
	}
	for (i = 0; i < v->ndev; i++) {
		if (m.ifi_index > 0 ? m.ifi_index != (int)v->dev[i].index : !nl_is(name, v->dev[i].name))
			continue;
		put_link(v->c, RTM_NEWLINK, &v->dev[i]);
		return 0;
	}
	return -ENODEV;
}

/* Addresses */

/* @type: RTM_NEWADDR or RTM_DELADDR. */
static void put_own(struct nl_call *c, u16 type, const struct own *o)
{
	static const struct ifa_cacheinfo forever = { .ifa_prefered = ~0u, .ifa_valid = ~0u };
	struct ip_addr broadcast = network_of(&o->ip, o->len, true);
	u8 family = family_of(&o->ip);
	struct ifaddrmsg m = { .ifa_family = family,
			       .ifa_prefixlen = (u8)o->len,
			       .ifa_flags = IFA_F_PERMANENT,
			       .ifa_scope = own_is_lo(o)                    ? RT_SCOPE_HOST
					    : ip_addr_is_link_local(&o->ip) ? RT_SCOPE_LINK
									    : RT_SCOPE_UNIVERSE,
			       .ifa_index = dev_index(o->dev) };

	entry_begin(c, type);
	nl_raw(c, &m, sizeof(m));
	put_address(c, IFA_ADDRESS, &o->ip);
	if (family == AF_INET) {
		put_address(c, IFA_LOCAL, &o->ip);
		if (o->dev)
			put_address(c, IFA_BROADCAST, &broadcast);
		nl_put_string(c, IFA_LABEL, o->dev ? o->dev->name : "lo");
	}
	nl_put_u32(c, IFA_FLAGS, IFA_F_PERMANENT);
	nl_put(c, IFA_CACHEINFO, &forever, sizeof(forever));
}

static int get_address(struct view *v)
{
	static const u8 families[] = { AF_INET, AF_INET6 };
	struct ifaddrmsg m;
	struct own o;
	u32 f, i;

	if (!v->c->dump)
		return -EOPNOTSUPP;
	body_get(v, &m, sizeof(m));
	for (f = 0; f < ARRAY_SIZE(families); f++) {
		if (m.ifa_family && m.ifa_family != families[f])
			continue;
		for (i = 0; own_get(v, i, &o); i++)
			if (family_of(&o.ip) == families[f] && !own_is_lost(&o) &&
			    (!m.ifa_index || m.ifa_index == dev_index(o.dev)))
				put_own(v->c, RTM_NEWADDR, &o);
	}
	return 0;
}

/* Routes */

struct route {
	u8 family, type, table, scope;
	struct ip_addr dst, src; /* src: all zero: none */
	u32 len, metric;
	const struct uv_interface *dev;
	u32 flags;
};

/* Which of them a dump is to have. 0: any. */
struct route_filter {
	u8 family, type;
	u32 table, oif;
};

static void put_route(struct nl_call *c, const struct route *r)
{
	struct rtmsg m = { .rtm_family = r->family,
			   .rtm_dst_len = (u8)r->len,
			   .rtm_table = r->table,
			   .rtm_protocol = r->flags & RTM_F_CLONED ? RTPROT_UNSPEC : RTPROT_KERNEL,
			   .rtm_scope = r->scope,
			   .rtm_type = r->type,
			   .rtm_flags = r->flags };

	if (r->dev && !uv_interface_up(r->dev))
		m.rtm_flags |= RTNH_F_LINKDOWN;
	entry_begin(c, RTM_NEWROUTE);
	nl_raw(c, &m, sizeof(m));
	nl_put_u32(c, RTA_TABLE, r->table);
	put_address(c, RTA_DST, &r->dst);
	if (r->metric)
		nl_put_u32(c, RTA_PRIORITY, r->metric);
	if (!ip_addr_is_any(&r->src))
		put_address(c, RTA_PREFSRC, &r->src);
	nl_put_u32(c, RTA_OIF, dev_index(r->dev));
}

static void dump_route(struct nl_call *c, const struct route_filter *f, struct route r)
{
	if ((f->family && f->family != r.family) || (f->type && f->type != r.type) ||
	    (f->table && f->table != r.table) || (f->oif && f->oif != dev_index(r.dev)))
		return;
	put_route(c, &r);
}

static void dump_routes_v4(struct nl_call *c, const struct route_filter *f, const struct own *o)
{
	struct route r = { .family = AF_INET, .dev = o->dev, .src = o->ip };

	r.dst = o->ip;
	r.len = 32;
	r.table = RT_TABLE_LOCAL;
	r.type = RTN_LOCAL;
	r.scope = RT_SCOPE_HOST;
	dump_route(c, f, r);
	r.dst = network_of(&o->ip, o->len, false);
	r.len = o->len;
	if (own_is_lo(o)) {
		dump_route(c, f, r);
	} else if (o->len < 32) {
		r.table = RT_TABLE_MAIN;
		r.type = RTN_UNICAST;
		r.scope = RT_SCOPE_LINK;
		dump_route(c, f, r);
	}
	if (o->len > 30)
		return;
	r.dst = network_of(&o->ip, o->len, true);
	r.len = 32;
	r.table = RT_TABLE_LOCAL;
	r.type = RTN_BROADCAST;
	r.scope = RT_SCOPE_LINK;
	dump_route(c, f, r);
}

static void dump_routes_v6(struct nl_call *c, const struct route_filter *f, const struct own *o)
{
	static const struct ip_addr multicast = { { 0xff } };
	struct route r = { .family = AF_INET6, .dev = o->dev, .metric = METRIC };

	r.dst = network_of(&o->ip, o->len, false);
	r.len = o->len;
	r.table = RT_TABLE_MAIN;
	r.type = RTN_UNICAST;
	dump_route(c, f, r);
	r.dst = o->ip;
	r.len = 128;
	r.table = RT_TABLE_LOCAL;
	r.type = RTN_LOCAL;
	r.metric = 0;
	dump_route(c, f, r);
	if (own_is_lo(o))
		return;
	r.dst = multicast;
	r.len = 8;
	r.type = RTN_MULTICAST;
	r.metric = METRIC;
	dump_route(c, f, r);
}

static void dump_routes(struct view *v, const struct rtmsg *m, const struct nlattr *const *attr)
{
	const struct route_filter f = { .family = m->rtm_family,
					.type = m->rtm_type,
					.table = nl_u32(attr[RTA_TABLE], m->rtm_table),
					.oif = nl_u32(attr[RTA_OIF], 0) };
	struct own o;
	u32 i;

	if (m->rtm_flags & RTM_F_CLONED || (m->rtm_protocol && m->rtm_protocol != RTPROT_KERNEL))
		return;
	for (i = 0; own_get(v, i, &o); i++) {
		if (own_is_lost(&o))
			continue;
		if (family_of(&o.ip) == AF_INET)
			dump_routes_v4(v->c, &f, &o);
		else
			dump_routes_v6(v->c, &f, &o);
	}
}

/*
 * How well the address @o is for what is sent to @dst: bits of the network that both are on, more than all for an own
 * address; 0: not.
 */
static u32 own_matches(const struct own *o, const struct ip_addr *dst)
{
	if (family_of(&o->ip) != family_of(dst) || own_is_lost(o))
		return 0;
	if (ip_addr_equal(&o->ip, dst))
		return 256;
	if (own_is_lo(o) && family_of(dst) == AF_INET)
		return ip_addr_is_loopback(dst); /* an interface of the host may be on that network, too */
	return o->len && ip_addr_same_network(dst, &o->ip, o->len) ? o->len : 0;
}

/*
 * The address by which @dst is reached, of the interface @oif and the address @src where they are given: without them
 * no IPv4 multicast group is.
 */
static bool own_for(const struct view *v, const struct ip_addr *dst, const struct ip_addr *src, u32 oif,
		    struct own *best)
{
	bool multicast = ip_addr_is_multicast(dst);
	u32 i, matches, most = 0;
	struct own o;

	for (i = 0; own_get(v, i, &o); i++) {
		matches = own_matches(&o, dst);
		if (multicast && o.dev && family_of(&o.ip) == family_of(dst) && (src || oif || !ip_addr_is_v4(dst)))
			matches = 1;
		if (matches < 255 && !own_is_lo(&o) &&
		    ((src && !ip_addr_equal(src, &o.ip)) || (oif && oif != dev_index(o.dev))))
			continue;
		if (matches <= most)
			continue;
		most = matches;
		*best = o;
	}
	return most;
}

/* Is @src an address of the host, or none at all? */
static bool source_check(const struct view *v, const struct ip_addr *src)
{
	struct own o;
	u32 i;

	for (i = 0; src && own_get(v, i, &o); i++)
		if (ip_addr_equal(&o.ip, src))
			return true;
	return !src;
}

/* As of fib_lookup() for what a program sends. */
static int find_route(struct view *v, const struct rtmsg *m, const struct nlattr *const *attr)
{
	struct ip_addr dst, from, last, *src = NULL;
	struct own o;
	struct route r;

	if (m->rtm_family != AF_INET && m->rtm_family != AF_INET6)
		return m->rtm_family ? -EOPNOTSUPP : -EINVAL;
	if (!address_get(attr[RTA_DST], m->rtm_family, &dst))
		return -EINVAL;
	if (attr[RTA_IIF]) /* nothing is forwarded */
		return -ENETUNREACH;
	if (address_get(attr[RTA_SRC], m->rtm_family, &from) && !ip_addr_is_any(&from))
		src = &from;
	if (!source_check(v, src))
		return -EINVAL;
	if (!own_for(v, &dst, src, nl_u32(attr[RTA_OIF], 0), &o))
		return -ENETUNREACH;
	r = (struct route){ .family = m->rtm_family,
			    .type = RTN_UNICAST,
			    .table = RT_TABLE_MAIN,
			    .dst = dst,
			    .src = src ? *src : o.ip,
			    .len = m->rtm_family == AF_INET ? 32 : 128,
			    .dev = o.dev,
			    .flags = m->rtm_family == AF_INET ? RTM_F_CLONED : 0 };
	if (own_matches(&o, &dst) >= 255 || own_is_lo(&o)) {
		r.type = RTN_LOCAL;
		r.table = RT_TABLE_LOCAL;
		r.src = src ? *src : dst;
		r.dev = NULL;
	} else if (ip_addr_is_multicast(&dst)) {
		r.type = RTN_MULTICAST;
	} else if (m->rtm_family == AF_INET && o.len < 31) {
		last = network_of(&o.ip, o.len, true);
		r.type = ip_addr_equal(&last, &dst) ? RTN_BROADCAST : RTN_UNICAST;
	}
	if (m->rtm_family == AF_INET6 && r.type != RTN_LOCAL)
		r.metric = METRIC;
	put_route(v->c, &r);
	return 0;
}

static int get_route(struct view *v)
{
	const struct nlattr *attr[RTA_MAX + 1];
	struct rtmsg m;

	body_get(v, &m, sizeof(m));
	if (!v->c->dump && v->len < sizeof(m))
		return -EINVAL;
	nl_attrs(v->c, sizeof(m), attr, ARRAY_SIZE(attr));
	if (!v->c->dump)
		return find_route(v, &m, attr);
	dump_routes(v, &m, attr);
	return 0;
}

/* The rules that a kernel begins with. */
static int get_rule(struct view *v)
{
	static const struct {
		u32 priority;
		u8 table;
		bool v6;
	} rules[] = { { 0, RT_TABLE_LOCAL, true }, { 32766, RT_TABLE_MAIN, true }, { 32767, RT_TABLE_DEFAULT, false } };
	struct fib_rule_hdr m;
	u32 f, i;

	if (!v->c->dump)
		return -EOPNOTSUPP;
	body_get(v, &m, sizeof(m));
	for (f = 0; f < 2; f++) {
		u8 family = f ? AF_INET6 : AF_INET;

		for (i = 0; i < ARRAY_SIZE(rules); i++) {
			struct fib_rule_hdr h = { .family = family, .table = rules[i].table, .action = FR_ACT_TO_TBL };

			if ((m.family && m.family != family) || (f && !rules[i].v6))
				continue;
			entry_begin(v->c, RTM_NEWRULE);
			nl_raw(v->c, &h, sizeof(h));
			nl_put_u32(v->c, FRA_TABLE, rules[i].table);
			nl_put_u32(v->c, FRA_SUPPRESS_PREFIXLEN, ~0u);
			nl_put_u8(v->c, FRA_PROTOCOL, RTPROT_KERNEL);
			if (rules[i].priority)
				nl_put_u32(v->c, FRA_PRIORITY, rules[i].priority);
		}
	}
	return 0;
}

/* Neighbours that the port has resolved for rdma_cm and RoCE */

struct neighbour_list {
	struct view *v;
	const struct wire_port *port;
	u8 family;
	u32 index;                 /* 0: of every interface */
	const struct ip_addr *one; /* NULL: all */
	u32 n;
};

static void put_neighbour(void *arg, const struct ip_addr *a, u16 vlan, const u8 *hw, u32 len)
{
	struct neighbour_list *l = arg;
	const struct uv_interface *d = NULL;
	struct ndmsg m = { .ndm_family = family_of(a), .ndm_state = NUD_REACHABLE, .ndm_type = RTN_UNICAST };
	u32 i;

	for (i = 0; i < l->v->ndev && !d; i++)
		if (l->v->dev[i].port == l->port && l->v->dev[i].vlan == vlan)
			d = &l->v->dev[i];
	if (!d || l->n >= NEIGHBOURS_MAX || (l->family && l->family != m.ndm_family) ||
	    (l->index && l->index != d->index) || (l->one && !ip_addr_equal(l->one, a)))
		return;
	l->n++;
	m.ndm_ifindex = (int)d->index;
	entry_begin(l->v->c, RTM_NEWNEIGH);
	nl_raw(l->v->c, &m, sizeof(m));
	put_address(l->v->c, NDA_DST, a);
	nl_put(l->v->c, NDA_LLADDR, hw, len);
}

static int get_neighbour(struct view *v)
{
	const struct uv_host *h = v->c->host;
	struct neighbour_list l = { .v = v };
	const struct nlattr *attr[NDA_MAX + 1];
	struct ip_addr one;
	struct ndmsg m;
	u8 port;

	body_get(v, &m, sizeof(m));
	if (!v->c->dump && v->len < sizeof(m))
		return -EINVAL;
	nl_attrs(v->c, sizeof(m), attr, ARRAY_SIZE(attr));
	l.family = m.ndm_family;
	l.index = v->c->dump ? nl_u32(attr[NDA_IFINDEX], 0) : (u32)m.ndm_ifindex;
	if (!v->c->dump) {
		if (m.ndm_family != AF_INET && m.ndm_family != AF_INET6)
			return -EINVAL;
		if (!l.index || !address_get(attr[NDA_DST], m.ndm_family, &one))
			return -EINVAL;
		l.one = &one;
	} else if (l.family == AF_BRIDGE || m.ndm_flags & NTF_PROXY) {
		return 0;
	}
	for (port = 0; port < h->nports && !h->removed && h->neighbours; port++) {
		l.port = h->port[port];
		h->neighbours(h, port, put_neighbour, &l);
	}
	return l.n || v->c->dump ? 0 : -ENOENT;
}

/* Requests */

/* Lists of the kernel's of which a host has none, or no element that would tell anything. */
static bool is_empty_list(u32 type)
{
	static const u16 empty[] = { RTM_GETQDISC, RTM_GETNEIGHTBL, RTM_GETNETCONF, RTM_GETNSID, RTM_GETNEXTHOP };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(empty) && empty[i] != type;)
		i++;
	return i < ARRAY_SIZE(empty);
}

int rtnl_answer(struct nl_call *c)
{
	static int (*const get[])(struct view * v) = {
		[RTM_GETLINK - RTM_BASE] = get_link,   [RTM_GETADDR - RTM_BASE] = get_address,
		[RTM_GETROUTE - RTM_BASE] = get_route, [RTM_GETNEIGH - RTM_BASE] = get_neighbour,
		[RTM_GETRULE - RTM_BASE] = get_rule,
	};
	u32 type = c->req->nlmsg_type, kind = (type - RTM_BASE) & 3;
	struct view v = { .c = c };

	c->dump = c->dump && kind == KIND_GET;
	if (type > RTM_MAX)
		return -EOPNOTSUPP;
	v.body = (const u8 *)c->req + NLMSG_HDRLEN;
	v.len = c->req->nlmsg_len - NLMSG_HDRLEN;
	if (!v.len) { /* not even a family: as in the kernel there is no answer */
		c->dump = false;
		return 0;
	}
	if (kind != KIND_GET)
		return -EPERM;
	if (c->dump && is_empty_list(type))
		return 0;
	if (type - RTM_BASE >= ARRAY_SIZE(get) || !get[type - RTM_BASE])
		return -EOPNOTSUPP;
	v.ndev = uv_interfaces(c->host, v.dev);
	return get[type - RTM_BASE](&v);
}

/* Events */

static void events_of_addresses(struct view *v, u32 groups, const struct wire_port *port, bool removed)
{
	struct own o;
	u32 i;

	for (i = 0; own_get(v, i, &o); i++) {
		if (!o.dev || o.dev->port != port ||
		    !(groups & (family_of(&o.ip) == AF_INET ? RTMGRP_IPV4_IFADDR : RTMGRP_IPV6_IFADDR)))
			continue;
		put_own(v->c, removed ? RTM_DELADDR : RTM_NEWADDR, &o);
		nl_send(v->c);
	}
}

void rtnl_events(struct nl_call *c, u32 groups, const struct wire_port *port, bool addresses, bool removed)
{
	struct view v = { .c = c };
	u32 i;

	if (!groups)
		return;
	v.ndev = uv_interfaces(c->host, v.dev);
	if (addresses && removed)
		events_of_addresses(&v, groups, port, removed);
	for (i = 0; i < v.ndev && groups & RTMGRP_LINK; i++) {
		if (v.dev[i].port != port)
			continue;
		put_link(c, removed ? RTM_DELLINK : RTM_NEWLINK, &v.dev[i]);
		nl_send(c);
	}
	if (addresses && !removed)
		events_of_addresses(&v, groups, port, removed);
}

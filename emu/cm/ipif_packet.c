// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Packets that an IPoIB endpoint answers and sends: ARP, neighbour discovery, and echo. RFC 826, 4391, 4861, 792, 4443. */
#include "emu/cm/ipif_internal.h"
#include "emu/wire/inet.h"

/* ARP on InfiniBand. RFC 4391, section 9.1. */
#define ARP_SIZE    56
#define ARP_HTYPE   WIRE_FIELD(0, 16)
#define ARP_PTYPE   WIRE_FIELD(16, 16)
#define ARP_HLEN    WIRE_FIELD(32, 8)
#define ARP_PLEN    WIRE_FIELD(40, 8)
#define ARP_OP      WIRE_FIELD(48, 16)
#define ARP_SHA     8
#define ARP_SPA     WIRE_FIELD(28 * 8, 32)
#define ARP_THA     32
#define ARP_TPA     WIRE_FIELD(52 * 8, 32)
#define HTYPE_IB    32
#define ARP_REQUEST 1
#define ARP_REPLY   2

#define HW_QPN WIRE_FIELD(8, 24)
#define HW_GID 4

#define IP4_SIZE     20
#define IP4_PROTO    9
#define IP4_SRC      12
#define IP4_DST      16
#define PROTO_ICMP   1
#define ICMP_REQUEST 8

#define IP6_SIZE      40
#define IP6_PAYLOAD   WIRE_FIELD(32, 16)
#define IP6_NEXT      6
#define IP6_HOPS      7
#define IP6_SRC       8
#define IP6_DST       24
#define PROTO_ICMP6   58
#define ICMP6_REQUEST 128
#define ICMP6_REPLY   129
#define ND_SOLICIT    135
#define ND_ADVERT     136
#define ND_SIZE       24 /* header, flags, target */
#define ND_TARGET     8
#define ND_OPT_SOURCE 1
#define ND_OPT_TARGET 2
#define ND_OPT_WORDS  3 /* of 8 bytes: type, length, two bytes of padding, the hardware address */
#define ND_OPT_SIZE   24
#define ND_OPT_HW     4
#define ND_SOLICITED  0x40
#define ND_OVERRIDE   0x20

static void hw_put(u8 *p, u32 qpn, const struct wire_gid *gid)
{
	memset(p, 0, IPIF_HW_SIZE);
	wire_set(p, HW_QPN, qpn);
	memcpy(p + HW_GID, gid->raw, sizeof(gid->raw));
}

static struct ipif_hw hw_get(const u8 *p)
{
	return (struct ipif_hw){ .qpn = (u32)wire_get(p, HW_QPN), .gid = wire_gid_from_bytes(p + HW_GID) };
}

/* The way back to who sent a packet: paths of a subnet are reversible for IPoIB's purposes. */
static struct hca_av av_back(const struct ipif *ip, const struct hca_cqe *from)
{
	return (struct hca_av){
		.dlid = from->slid, .sl = from->sl, .src_path_bits = from->dlid_path_bits, .port = ip->port->num
	};
}

/* ---- ARP ---- */

static void arp_put(const struct ipif *ip, u8 *p, u16 op, u32 to, const u8 *to_hw)
{
	memset(p, 0, ARP_SIZE);
	wire_set(p, ARP_HTYPE, HTYPE_IB);
	wire_set(p, ARP_PTYPE, ETHERTYPE_IP4);
	wire_set(p, ARP_HLEN, IPIF_HW_SIZE);
	wire_set(p, ARP_PLEN, 4);
	wire_set(p, ARP_OP, op);
	hw_put(p + ARP_SHA, ip->qpn, &ip->port->attr.gid[0]);
	wire_set(p, ARP_SPA, ip_addr_get_v4(&ip->cfg.v4));
	wire_set(p, ARP_TPA, to);
	if (to_hw)
		memcpy(p + ARP_THA, to_hw, IPIF_HW_SIZE);
}

void ipif_ask_arp(struct ipif *ip, const struct ip_addr *who)
{
	const struct sa_mcmember *broadcast = ipif_broadcast(ip);
	u8 p[ARP_SIZE];

	if (!broadcast)
		return;
	arp_put(ip, p, ARP_REQUEST, ip_addr_get_v4(who), NULL);
	(void)ipif_send_group(ip, broadcast, ETHERTYPE_ARP, p, sizeof(p));
}

static void arp_answer(struct ipif *ip, const u8 *p, const struct hca_cqe *from)
{
	struct ipif_hw hw = hw_get(p + ARP_SHA);
	struct hca_av av = av_back(ip, from);
	u8 reply[ARP_SIZE];

	arp_put(ip, reply, ARP_REPLY, wire_get(p, ARP_SPA), p + ARP_SHA);
	ip->arp_answered++;
	(void)ipif_send_to(ip, &av, hw.qpn, ETHERTYPE_ARP, reply, sizeof(reply));
}

static void on_arp(struct ipif *ip, const u8 *p, u32 len, const struct hca_cqe *from)
{
	struct ip_addr sender, target;
	struct ipif_hw hw;

	if (len < ARP_SIZE || wire_get(p, ARP_HTYPE) != HTYPE_IB || wire_get(p, ARP_PTYPE) != ETHERTYPE_IP4 ||
	    wire_get(p, ARP_HLEN) != IPIF_HW_SIZE || wire_get(p, ARP_PLEN) != 4) {
		ip->malformed++;
		return;
	}
	sender = ip_addr_v4(wire_get(p, ARP_SPA));
	target = ip_addr_v4(wire_get(p, ARP_TPA));
	hw = hw_get(p + ARP_SHA);
	ipif_learn(ip, &sender, &hw, false);
	if (wire_get(p, ARP_OP) == ARP_REQUEST && ip_addr_equal(&target, &ip->cfg.v4))
		arp_answer(ip, p, from);
}

/* ---- checksums ---- */

/* Of an ICMPv6 message, with the pseudo-header. RFC 4443, section 2.3. */
static u16 icmp6_sum(const u8 *ip6, const u8 *p, u32 len)
{
	return wire_inet_fold(wire_inet_sum(wire_inet_sum(len + PROTO_ICMP6, ip6 + IP6_SRC, 32), p, len));
}

/* ---- neighbour discovery ---- */

struct ip_addr ipif_solicited_node(const struct ip_addr *a)
{
	struct ip_addr node = { { 0xff, 2, [11] = 1, [12] = 0xff } };

	memcpy(node.raw + 13, a->raw + 13, 3);
	return node;
}

struct nd {
	u8 ip6[IP6_SIZE], icmp[ND_SIZE], opt[ND_OPT_SIZE];
};
static_assert(sizeof(struct nd) == IP6_SIZE + ND_SIZE + ND_OPT_SIZE, "no padding");

static void nd_put(const struct ipif *ip, struct nd *nd, u8 type, u8 flags, const struct ip_addr *src,
		   const struct ip_addr *dst, const struct ip_addr *target)
{
	u32 len = ND_SIZE + ND_OPT_SIZE;

	memset(nd, 0, sizeof(*nd));
	nd->ip6[0] = 0x60;
	wire_set(nd->ip6, IP6_PAYLOAD, len);
	nd->ip6[IP6_NEXT] = PROTO_ICMP6;
	nd->ip6[IP6_HOPS] = 255;
	memcpy(nd->ip6 + IP6_SRC, src->raw, 16);
	memcpy(nd->ip6 + IP6_DST, dst->raw, 16);
	nd->icmp[0] = type;
	nd->icmp[4] = flags;
	memcpy(nd->icmp + ND_TARGET, target->raw, 16);
	nd->opt[0] = type == ND_SOLICIT ? ND_OPT_SOURCE : ND_OPT_TARGET;
	nd->opt[1] = ND_OPT_WORDS;
	hw_put(nd->opt + ND_OPT_HW, ip->qpn, &ip->port->attr.gid[0]);
	wire_store(nd->icmp + 2, 2, icmp6_sum(nd->ip6, nd->icmp, len));
}

void ipif_ask_nd(struct ipif *ip, const struct ip_addr *who, const struct sa_mcmember *group)
{
	struct ip_addr dst = ipif_solicited_node(who);
	const struct ip_addr *src = ipif_source(ip, who);
	struct nd nd;

	nd_put(ip, &nd, ND_SOLICIT, 0, src ? src : &ip->link_local, &dst, who);
	(void)ipif_send_group(ip, group, ETHERTYPE_IP6, (const u8 *)&nd, sizeof(nd));
}

/* The hardware address option of that type; NULL. */
static const u8 *nd_option(const u8 *p, u32 len, u8 type)
{
	u32 at, words;

	for (at = ND_SIZE; at + 8 <= len; at += words * 8) {
		words = p[at + 1];
		if (!words || at + words * 8 > len)
			return NULL;
		if (p[at] == type && words == ND_OPT_WORDS)
			return p + at + ND_OPT_HW;
	}
	return NULL;
}

static void on_solicit(struct ipif *ip, const u8 *ip6, const u8 *p, u32 len, const struct hca_cqe *from)
{
	const u8 *opt = nd_option(p, len, ND_OPT_SOURCE);
	struct ip_addr target, src;
	struct hca_av av = av_back(ip, from);
	struct ipif_hw hw;
	struct nd nd;

	memcpy(target.raw, p + ND_TARGET, 16);
	memcpy(src.raw, ip6 + IP6_SRC, 16);
	if (!opt || !ipif_has(ip, &target))
		return;
	hw = hw_get(opt);
	ipif_learn(ip, &src, &hw, false);
	nd_put(ip, &nd, ND_ADVERT, ND_SOLICITED | ND_OVERRIDE, &target, &src, &target);
	ip->nd_answered++;
	(void)ipif_send_to(ip, &av, hw.qpn, ETHERTYPE_IP6, (const u8 *)&nd, sizeof(nd));
}

static void on_advert(struct ipif *ip, const u8 *p, u32 len)
{
	const u8 *opt = nd_option(p, len, ND_OPT_TARGET);
	struct ip_addr target;
	struct ipif_hw hw;

	if (!opt)
		return;
	memcpy(target.raw, p + ND_TARGET, 16);
	hw = hw_get(opt);
	ipif_learn(ip, &target, &hw, false);
}

/* ---- echo ---- */

static void swap(u8 *a, u8 *b, u32 len)
{
	u8 tmp[16];

	memcpy(tmp, a, len);
	memcpy(a, b, len);
	memcpy(b, tmp, len);
}

static void echo6(struct ipif *ip, const u8 *p, u32 len, const struct hca_cqe *from)
{
	struct hca_av av = av_back(ip, from);
	u8 reply[IPIF_BUF];

	memcpy(reply, p, len);
	swap(reply + IP6_SRC, reply + IP6_DST, 16);
	reply[IP6_HOPS] = 64;
	reply[IP6_SIZE] = ICMP6_REPLY;
	wire_store(reply + IP6_SIZE + 2, 2, 0);
	wire_store(reply + IP6_SIZE + 2, 2, icmp6_sum(reply, reply + IP6_SIZE, len - IP6_SIZE));
	ip->echo_answered++;
	(void)ipif_send_to(ip, &av, from->src_qp, ETHERTYPE_IP6, reply, len);
}

static void on_ip6(struct ipif *ip, const u8 *p, u32 len, const struct hca_cqe *from)
{
	const u8 *icmp = p + IP6_SIZE;
	struct ip_addr dst;
	u32 payload;

	if (len < IP6_SIZE + 8 || p[0] >> 4 != 6 || p[IP6_NEXT] != PROTO_ICMP6)
		return;
	payload = (u32)wire_get(p, IP6_PAYLOAD);
	if (payload > len - IP6_SIZE || payload < 8 || icmp6_sum(p, icmp, payload) != 0) {
		ip->malformed++;
		return;
	}
	memcpy(dst.raw, p + IP6_DST, 16);
	if (icmp[0] == ICMP6_REQUEST && ipif_has(ip, &dst) && IP6_SIZE + payload <= IPIF_BUF)
		echo6(ip, p, IP6_SIZE + payload, from);
	else if (icmp[0] == ND_SOLICIT && payload >= ND_SIZE && p[IP6_HOPS] == 255)
		on_solicit(ip, p, icmp, payload, from);
	else if (icmp[0] == ND_ADVERT && payload >= ND_SIZE && p[IP6_HOPS] == 255)
		on_advert(ip, icmp, payload);
}

static void on_ip4(struct ipif *ip, const u8 *p, u32 len, const struct hca_cqe *from)
{
	struct hca_av av = av_back(ip, from);
	u32 header, total;
	u8 reply[IPIF_BUF];

	if (len < IP4_SIZE + 8 || p[0] >> 4 != 4 || p[IP4_PROTO] != PROTO_ICMP)
		return;
	header = (p[0] & 15) * 4u;
	total = (u32)wire_load(p + 2, 2);
	if (header < IP4_SIZE || total > len || total < header + 8 || total > IPIF_BUF ||
	    wire_inet_fold(wire_inet_sum(0, p, header)) != 0) {
		ip->malformed++;
		return;
	}
	/* fragments are not put together */
	if (p[header] != ICMP_REQUEST || wire_load(p + 6, 2) & 0x3fff ||
	    wire_load(p + IP4_DST, 4) != ip_addr_get_v4(&ip->cfg.v4))
		return;
	memcpy(reply, p, total);
	swap(reply + IP4_SRC, reply + IP4_DST, 4);
	reply[8] = 64;
	wire_store(reply + 10, 2, 0);
	wire_store(reply + 10, 2, wire_inet_fold(wire_inet_sum(0, reply, header)));
	reply[header] = 0;
	wire_store(reply + header + 2, 2, 0);
	wire_store(reply + header + 2, 2, wire_inet_fold(wire_inet_sum(0, reply + header, total - header)));
	ip->echo_answered++;
	(void)ipif_send_to(ip, &av, from->src_qp, ETHERTYPE_IP4, reply, total);
}

void ipif_packet(struct ipif *ip, u16 ethertype, const u8 *p, u32 len, const struct hca_cqe *from)
{
	switch (ethertype) {
	case ETHERTYPE_ARP:
		on_arp(ip, p, len, from);
		break;
	case ETHERTYPE_IP4:
		on_ip4(ip, p, len, from);
		break;
	case ETHERTYPE_IP6:
		on_ip6(ip, p, len, from);
		break;
	default:
		break; /* another protocol on the same link */
	}
}

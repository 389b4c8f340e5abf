// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Packets of an IPoIB endpoint: ARP, neighbour discovery, and echo. RFC 4391. */
#include "emu/ipoib/ipif_internal.h"
#include "emu/wire/neigh.h"

#define HTYPE_IB 32
#define HW_QPN   WIRE_FIELD(8, 24)
#define HW_GID   4

static const struct wire_hw infiniband = { .type = HTYPE_IB, .len = IPIF_HW_SIZE };

const u8 *ipif_hw_put(const struct ipif_hw *hw, u8 *p)
{
	memset(p, 0, IPIF_HW_SIZE);
	wire_set(p, HW_QPN, hw->qpn);
	memcpy(p + HW_GID, hw->gid.raw, sizeof(hw->gid));
	return p;
}

const u8 *ipif_hw_address(const struct ipif *ip, u8 *p)
{
	const struct ipif_hw hw = { .qpn = ip->qpn, .gid = ip->port->attr.gid[0] };

	return ipif_hw_put(&hw, p);
}

static struct ipif_hw hw_get(const u8 *p)
{
	return (struct ipif_hw){ .qpn = (u32)wire_get(p, HW_QPN), .gid = wire_gid_from_bytes(p + HW_GID) };
}

/* The return path to the sender of a packet: IPoIB requires reversible paths. */
static struct hca_av av_back(const struct ipif *ip, const struct hca_cqe *from)
{
	return (struct hca_av){
		.dlid = from->slid, .sl = from->sl, .src_path_bits = from->dlid_path_bits, .port = ip->port->num
	};
}

/* ---- ARP ---- */

void ipif_request_arp(struct ipif *ip, const struct ip_addr *who)
{
	const struct sa_mcmember *broadcast = ipif_broadcast(ip);
	u8 p[WIRE_ARP_MAX], own[IPIF_HW_SIZE];
	struct wire_arp a = {
		.op = WIRE_ARP_REQUEST, .src = ip->cfg.v4, .dst = *who, .src_hw = ipif_hw_address(ip, own)
	};

	if (broadcast)
		(void)ipif_send_group(ip, broadcast, ETHERTYPE_ARP, p, wire_arp_put(p, &infiniband, &a));
}

static void arp_answer(struct ipif *ip, const struct wire_arp *from, u32 qpn, const struct hca_cqe *cqe)
{
	struct hca_av av = av_back(ip, cqe);
	u8 p[WIRE_ARP_MAX], own[IPIF_HW_SIZE];
	struct wire_arp a = { .op = WIRE_ARP_REPLY,
			      .src = ip->cfg.v4,
			      .dst = from->src,
			      .src_hw = ipif_hw_address(ip, own),
			      .dst_hw = from->src_hw };

	ip->arp_answered++;
	(void)ipif_send_to(ip, &av, qpn, ETHERTYPE_ARP, p, wire_arp_put(p, &infiniband, &a));
}

static void on_arp(struct ipif *ip, const u8 *p, u32 len, const struct hca_cqe *from)
{
	struct wire_arp a;
	struct ipif_hw hw;

	if (!wire_arp_get(p, len, &infiniband, &a)) {
		ip->malformed++;
		return;
	}
	hw = hw_get(a.src_hw);
	ipif_learn(ip, &a.src, &hw);
	if (a.op == WIRE_ARP_REQUEST && ip_addr_equal(&a.dst, &ip->cfg.v4))
		arp_answer(ip, &a, hw.qpn, from);
}

/* ---- neighbour discovery ---- */

void ipif_solicit(struct ipif *ip, const struct ip_addr *who, const struct sa_mcmember *group)
{
	const struct ip_addr *src = ipif_source(ip, who);
	u8 p[WIRE_ND_MAX], own[IPIF_HW_SIZE];
	struct wire_nd nd = { .type = WIRE_ND_SOLICIT,
			      .src = src ? *src : ip->link_local,
			      .dst = wire_nd_group(who),
			      .target = *who,
			      .hw = ipif_hw_address(ip, own) };

	(void)ipif_send_group(ip, group, WIRE_INET_IP6, p, wire_nd_put(p, &infiniband, &nd));
}

static void on_solicit(struct ipif *ip, const struct wire_nd *from, const struct hca_cqe *cqe)
{
	struct hca_av av = av_back(ip, cqe);
	u8 p[WIRE_ND_MAX], own[IPIF_HW_SIZE];
	struct wire_nd nd = { .type = WIRE_ND_ADVERT,
			      .flags = WIRE_ND_SOLICITED | WIRE_ND_OVERRIDE,
			      .src = from->target,
			      .dst = from->src,
			      .target = from->target,
			      .hw = ipif_hw_address(ip, own) };
	struct ipif_hw hw;

	if (!from->hw || !ipif_has(ip, &from->target))
		return;
	hw = hw_get(from->hw);
	ipif_learn(ip, &from->src, &hw);
	(void)ipif_send_to(ip, &av, hw.qpn, WIRE_INET_IP6, p, wire_nd_put(p, &infiniband, &nd));
}

/* ---- echo ---- */

static void packet_echo(struct ipif *ip, u16 ethertype, const u8 *reply, int len, const struct hca_cqe *from)
{
	struct hca_av av = av_back(ip, from);

	if (len < 0)
		ip->malformed++;
	if (len <= 0)
		return;
	(void)ipif_send_to(ip, &av, from->src_qp, ethertype, reply, (u32)len);
}

static void on_ip6(struct ipif *ip, const u8 *p, u32 len, const struct hca_cqe *from)
{
	u8 reply[IPIF_BUF];
	struct ip_addr dst;
	struct wire_nd nd;
	struct ipif_hw hw;
	int got = wire_nd_get(p, len, &infiniband, &nd);

	if (got < 0)
		ip->malformed++;
	if (got > 0 && nd.type == WIRE_ND_SOLICIT) {
		on_solicit(ip, &nd, from);
	} else if (got > 0 && nd.hw) { /* an advertisement */
		hw = hw_get(nd.hw);
		ipif_learn(ip, &nd.target, &hw);
	}
	if (got || len < IP6_SIZE)
		return;
	memcpy(dst.raw, p + IP6_DST, 16);
	if (ipif_has(ip, &dst))
		packet_echo(ip, WIRE_INET_IP6, reply, wire_echo6(p, len, reply, sizeof(reply)), from);
}

static void on_ip4(struct ipif *ip, const u8 *p, u32 len, const struct hca_cqe *from)
{
	u8 reply[IPIF_BUF];

	if (len >= IP4_SIZE && wire_load(p + IP4_DST, 4) == ip_addr_get_v4(&ip->cfg.v4))
		packet_echo(ip, WIRE_INET_IP4, reply, wire_echo4(p, len, reply, sizeof(reply)), from);
}

void ipif_packet(struct ipif *ip, u16 ethertype, const u8 *p, u32 len, const struct hca_cqe *from)
{
	switch (ethertype) {
	case ETHERTYPE_ARP:
		on_arp(ip, p, len, from);
		break;
	case WIRE_INET_IP4:
		on_ip4(ip, p, len, from);
		break;
	case WIRE_INET_IP6:
		on_ip6(ip, p, len, from);
		break;
	default:
		break; /* another protocol on the same link */
	}
}

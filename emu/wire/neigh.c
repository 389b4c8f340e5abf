// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ARP and neighbour discovery: formatting and parsing. RFC 826, 4861; on InfiniBand RFC 4391. */
#include "emu/wire/neigh.h"

#include <errno.h>

#define ARP_HTYPE WIRE_FIELD(0, 16)
#define ARP_PTYPE WIRE_FIELD(16, 16)
#define ARP_HLEN  WIRE_FIELD(32, 8)
#define ARP_PLEN  WIRE_FIELD(40, 8)
#define ARP_OP    WIRE_FIELD(48, 16)
#define ARP_HEAD  8

#define ND_SIZE       24 /* header, flags, target */
#define ND_FLAGS      4
#define ND_TARGET     8
#define ND_OPT_SOURCE 1
#define ND_OPT_TARGET 2
#define ND_HOPS       255

static u32 arp_size(const struct wire_hw *hw)
{
	return ARP_HEAD + 2 * (hw->len + 4u);
}

u32 wire_arp_put(u8 *p, const struct wire_hw *hw, const struct wire_arp *a)
{
	u8 *at = p + ARP_HEAD;

	memset(p, 0, arp_size(hw));
	wire_set(p, ARP_HTYPE, hw->type);
	wire_set(p, ARP_PTYPE, WIRE_INET_IP4);
	wire_set(p, ARP_HLEN, hw->len);
	wire_set(p, ARP_PLEN, 4);
	wire_set(p, ARP_OP, a->op);
	memcpy(at, a->src_hw, hw->len);
	wire_store(at + hw->len, 4, ip_addr_get_v4(&a->src));
	at += hw->len + 4;
	if (a->dst_hw)
		memcpy(at, a->dst_hw, hw->len);
	wire_store(at + hw->len, 4, ip_addr_get_v4(&a->dst));
	return arp_size(hw);
}

bool wire_arp_get(const u8 *p, u32 len, const struct wire_hw *hw, struct wire_arp *a)
{
	if (len < arp_size(hw) || wire_get(p, ARP_HTYPE) != hw->type || wire_get(p, ARP_PTYPE) != WIRE_INET_IP4 ||
	    wire_get(p, ARP_HLEN) != hw->len || wire_get(p, ARP_PLEN) != 4)
		return false;
	a->op = (u16)wire_get(p, ARP_OP);
	a->src_hw = p + ARP_HEAD;
	a->src = ip_addr_v4((u32)wire_load(a->src_hw + hw->len, 4));
	a->dst_hw = a->src_hw + hw->len + 4;
	a->dst = ip_addr_v4((u32)wire_load(a->dst_hw + hw->len, 4));
	return true;
}

/* Length of an address option in units of 8 bytes, with the address at its end. RFC 4391, section 9.3. */
static u32 option_words(const struct wire_hw *hw)
{
	return (2u + hw->len + 7) / 8;
}

static u8 option_type(u8 type)
{
	return type == WIRE_ND_SOLICIT ? ND_OPT_SOURCE : ND_OPT_TARGET;
}

u32 wire_nd_put(u8 *p, const struct wire_hw *hw, const struct wire_nd *nd)
{
	u32 words = option_words(hw), len = ND_SIZE + words * 8;
	u8 *icmp = p + IP6_SIZE, *opt = icmp + ND_SIZE;

	memset(p, 0, IP6_SIZE + len);
	p[0] = 0x60;
	wire_set(p, IP6_PAYLOAD_LEN, len);
	p[IP6_NEXT] = IP_PROTO_ICMP6;
	p[IP6_HOPS] = ND_HOPS;
	memcpy(p + IP6_SRC, nd->src.raw, 16);
	memcpy(p + IP6_DST, nd->dst.raw, 16);
	icmp[0] = nd->type;
	icmp[ND_FLAGS] = nd->flags;
	memcpy(icmp + ND_TARGET, nd->target.raw, 16);
	opt[0] = option_type(nd->type);
	opt[1] = (u8)words;
	memcpy(opt + words * 8 - hw->len, nd->hw, hw->len);
	wire_store(icmp + 2, 2, wire_ip6_sum(p, IP_PROTO_ICMP6, icmp, len));
	return IP6_SIZE + len;
}

/* The hardware address in the option of that type; NULL: none. */
static const u8 *find_option(const u8 *icmp, u32 len, const struct wire_hw *hw, u8 type)
{
	u32 at, words;

	for (at = ND_SIZE; at + 8 <= len; at += words * 8) {
		words = icmp[at + 1];
		if (!words || at + words * 8 > len)
			return NULL;
		if (icmp[at] == type && words == option_words(hw))
			return icmp + at + words * 8 - hw->len;
	}
	return NULL;
}

int wire_nd_get(const u8 *p, u32 len, const struct wire_hw *hw, struct wire_nd *nd)
{
	const u8 *icmp = p + IP6_SIZE;
	u32 payload;

	if (len < IP6_SIZE + 8 || p[0] >> 4 != 6 || p[IP6_NEXT] != IP_PROTO_ICMP6 ||
	    (icmp[0] != WIRE_ND_SOLICIT && icmp[0] != WIRE_ND_ADVERT))
		return 0;
	payload = (u32)wire_get(p, IP6_PAYLOAD_LEN);
	if (payload > len - IP6_SIZE || payload < ND_SIZE || p[IP6_HOPS] != ND_HOPS ||
	    wire_ip6_sum(p, IP_PROTO_ICMP6, icmp, payload) != 0)
		return -EBADMSG;
	nd->type = icmp[0];
	nd->flags = icmp[ND_FLAGS];
	memcpy(nd->src.raw, p + IP6_SRC, 16);
	memcpy(nd->dst.raw, p + IP6_DST, 16);
	memcpy(nd->target.raw, icmp + ND_TARGET, 16);
	nd->hw = find_option(icmp, payload, hw, option_type(nd->type));
	return 1;
}

struct ip_addr wire_nd_group(const struct ip_addr *a)
{
	struct ip_addr node = { { 0xff, 2, [11] = 1, [12] = 0xff } };

	memcpy(node.raw + 13, a->raw + 13, 3);
	return node;
}

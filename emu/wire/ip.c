// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* IP addresses, ECN marking, and echo. RFC 791, 792, 3168, 4443. */
#include "emu/wire/ip.h"

#include <arpa/inet.h>
#include <errno.h>

#define ICMP_REQUEST  8
#define ICMP6_REQUEST 128
#define ICMP6_REPLY   129
#define ICMP_SIZE     8
#define ECHO_TTL      64

static const u8 v4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

struct ip_addr ip_addr_v4(u32 host_order)
{
	struct ip_addr a;

	memcpy(a.raw, v4_prefix, sizeof(v4_prefix));
	wire_store(a.raw + 12, 4, host_order);
	return a;
}

bool ip_addr_is_v4(const struct ip_addr *a)
{
	return memcmp(a->raw, v4_prefix, sizeof(v4_prefix)) == 0;
}

u32 ip_addr_get_v4(const struct ip_addr *a)
{
	return (u32)wire_load(a->raw + 12, 4);
}

bool ip_addr_is_any(const struct ip_addr *a)
{
	static const struct ip_addr none;

	return ip_addr_is_v4(a) ? ip_addr_get_v4(a) == 0 : ip_addr_equal(a, &none);
}

bool ip_addr_is_loopback(const struct ip_addr *a)
{
	static const struct ip_addr one = { { [15] = 1 } };

	return ip_addr_is_v4(a) ? a->raw[12] == 127 : ip_addr_equal(a, &one);
}

bool ip_addr_is_multicast(const struct ip_addr *a)
{
	return ip_addr_is_v4(a) ? (a->raw[12] & 0xf0) == 0xe0 : a->raw[0] == 0xff;
}

bool ip_addr_is_host(const struct ip_addr *a)
{
	return !ip_addr_is_any(a) && !ip_addr_is_loopback(a) && !ip_addr_is_multicast(a) &&
	       !(ip_addr_is_v4(a) && ip_addr_get_v4(a) == 0xffffffff);
}

bool ip_addr_is_link_local(const struct ip_addr *a)
{
	return a->raw[0] == 0xfe && (a->raw[1] & 0xc0) == 0x80;
}

bool ip_addr_same_network(const struct ip_addr *a, const struct ip_addr *b, u32 bits)
{
	u32 whole, rest;

	if (ip_addr_is_v4(a) != ip_addr_is_v4(b))
		return false;
	bits += ip_addr_is_v4(a) ? 96 : 0;
	whole = bits / 8;
	rest = bits % 8;
	return memcmp(a->raw, b->raw, whole) == 0 && (!rest || (a->raw[whole] ^ b->raw[whole]) >> (8 - rest) == 0);
}

const char *ip_addr_str(const struct ip_addr *a, char *buf)
{
	bool v4 = ip_addr_is_v4(a);

	return inet_ntop(v4 ? AF_INET : AF_INET6, a->raw + (v4 ? 12 : 0), buf, IP_ADDR_STRLEN);
}

u16 wire_ip6_sum(const u8 *ip6, u8 proto, const u8 *p, u32 len)
{
	return wire_inet_fold(wire_inet_sum(wire_inet_sum(len + proto, ip6 + IP6_SRC, 32), p, len));
}

static u8 tos_of(const u8 *p, u16 type)
{
	return type == WIRE_INET_IP4 ? p[IP4_TOS] : (u8)wire_get(p, IP6_TCLASS);
}

bool wire_ip_may_mark(const u8 *p, u32 len, u16 type)
{
	u8 ecn;

	if (!(type == WIRE_INET_IP4 && len >= IP4_SIZE) && !(type == WIRE_INET_IP6 && len >= IP6_SIZE))
		return false;
	ecn = tos_of(p, type) & WIRE_ECN_MASK;
	return ecn && ecn != WIRE_ECN_CE;
}

void wire_ip_mark(u8 *p, u16 type)
{
	u8 tos = tos_of(p, type);
	u32 sum;

	if (type == WIRE_INET_IP6) {
		wire_set(p, IP6_TCLASS, tos | WIRE_ECN_CE);
		return;
	}
	/* Incremental update, so that a wrong checksum stays wrong. RFC 1624, equation 3 */
	sum = (u16)~wire_get(p, IP4_CHECK) + (u16)((tos | WIRE_ECN_CE) - tos);
	p[IP4_TOS] = tos | WIRE_ECN_CE;
	wire_set(p, IP4_CHECK, (u16) ~((sum & 0xffff) + (sum >> 16)));
}

static void swap(u8 *a, u8 *b, u32 len)
{
	u8 tmp[16];

	memcpy(tmp, a, len);
	memcpy(a, b, len);
	memcpy(b, tmp, len);
}

int wire_echo4(const u8 *p, u32 len, u8 *reply, u32 size)
{
	u32 header, total;

	if (len < IP4_SIZE + ICMP_SIZE || p[0] >> 4 != 4 || p[IP4_PROTO] != IP_PROTO_ICMP)
		return 0;
	header = (p[0] & 15) * 4u;
	total = (u32)wire_get(p, IP4_TOTAL);
	if (header < IP4_SIZE || total > len || total < header + ICMP_SIZE || total > size ||
	    wire_inet_fold(wire_inet_sum(0, p, header)) != 0)
		return -EBADMSG;
	if (p[header] != ICMP_REQUEST || wire_get(p, IP4_FRAGMENT)) /* fragments are not reassembled */
		return 0;
	memcpy(reply, p, total);
	swap(reply + IP4_SRC, reply + IP4_DST, 4);
	reply[IP4_TTL] = ECHO_TTL;
	wire_store(reply + 10, 2, 0);
	wire_store(reply + 10, 2, wire_inet_fold(wire_inet_sum(0, reply, header)));
	reply[header] = 0;
	wire_store(reply + header + 2, 2, 0);
	wire_store(reply + header + 2, 2, wire_inet_fold(wire_inet_sum(0, reply + header, total - header)));
	return (int)total;
}

int wire_echo6(const u8 *p, u32 len, u8 *reply, u32 size)
{
	u32 payload;

	if (len < IP6_SIZE + ICMP_SIZE || p[0] >> 4 != 6 || p[IP6_NEXT] != IP_PROTO_ICMP6 ||
	    p[IP6_SIZE] != ICMP6_REQUEST)
		return 0;
	payload = (u32)wire_get(p, IP6_PAYLOAD_LEN);
	if (payload > len - IP6_SIZE || payload < ICMP_SIZE || IP6_SIZE + payload > size ||
	    wire_ip6_sum(p, IP_PROTO_ICMP6, p + IP6_SIZE, payload) != 0)
		return -EBADMSG;
	memcpy(reply, p, IP6_SIZE + payload);
	swap(reply + IP6_SRC, reply + IP6_DST, 16);
	reply[IP6_HOPS] = ECHO_TTL;
	reply[IP6_SIZE] = ICMP6_REPLY;
	wire_store(reply + IP6_SIZE + 2, 2, 0);
	wire_store(reply + IP6_SIZE + 2, 2, wire_ip6_sum(reply, IP_PROTO_ICMP6, reply + IP6_SIZE, payload));
	return (int)(IP6_SIZE + payload);
}

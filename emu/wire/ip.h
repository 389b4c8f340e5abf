/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* IP addresses, headers and checksums, for links on which the port itself responds: IPoIB and Ethernet. */
#ifndef MUSLIN_WIRE_IP_H
#define MUSLIN_WIRE_IP_H

#include "emu/wire/gid.h"
#include "emu/wire/inet.h"

#define ETHERTYPE_ARP 0x0806

/* IPv4, RFC 791. */
#define IP4_SIZE  20
#define IP4_TOS   1
#define IP4_TTL   8
#define IP4_PROTO 9
#define IP4_SRC   12
#define IP4_DST   16

/* IPv6, RFC 8200. */
#define IP6_SIZE   40
#define IP6_TCLASS WIRE_FIELD(4, 8)
#define IP6_FLOW   WIRE_FIELD(12, 20)
#define IP6_NEXT   6
#define IP6_HOPS   7
#define IP6_SRC    8
#define IP6_DST    24

/* The last two bits of the type of service and the traffic class. RFC 3168, section 5. */
#define WIRE_ECN_MASK 3
#define WIRE_ECN_ECT  2 /* ECN-capable */
#define WIRE_ECN_CE   3 /* congestion experienced */

#define IP_PROTO_ICMP  1
#define IP_PROTO_ICMP6 58

/* An IP address; IPv4 ones are mapped (::ffff:a.b.c.d). */
struct ip_addr {
	u8 raw[16];
};

struct ip_addr ip_addr_v4(u32 host_order);
bool ip_addr_is_v4(const struct ip_addr *a);
u32 ip_addr_get_v4(const struct ip_addr *a); /* host order */
static inline bool ip_addr_equal(const struct ip_addr *a, const struct ip_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}
/* A GID of RoCEv2 is an IP address, annex A17.4.1. */
static inline struct ip_addr ip_addr_of_gid(const struct wire_gid *gid)
{
	struct ip_addr a;

	memcpy(a.raw, gid->raw, sizeof(a.raw));
	return a;
}
bool ip_addr_is_any(const struct ip_addr *a);      /* 0.0.0.0 or :: */
bool ip_addr_is_loopback(const struct ip_addr *a); /* 127/8 or ::1 */
bool ip_addr_is_multicast(const struct ip_addr *a);
bool ip_addr_is_host(const struct ip_addr *a);       /* none of these three, and not 255.255.255.255 */
bool ip_addr_is_link_local(const struct ip_addr *a); /* fe80::/10 */
/* Compares the first @bits bits of the addresses, counted in the family of @a. */
bool ip_addr_same_network(const struct ip_addr *a, const struct ip_addr *b, u32 bits);
#define IP_ADDR_STRLEN 46
const char *ip_addr_str(const struct ip_addr *a, char *buf); /* of IP_ADDR_STRLEN bytes; returns it */

/* The checksum of the @len bytes at @p with the pseudo-header of the IPv6 header @ip6; 0 if the stored one is valid. */
u16 wire_ip6_sum(const u8 *ip6, u8 proto, const u8 *p, u32 len);
/* Whether the packet of @len bytes with ethertype @type is ECN-capable and not yet marked as CE. */
bool wire_ip_may_mark(const u8 *p, u32 len, u16 type);
void wire_ip_mark(u8 *p, u16 type); /* requires wire_ip_may_mark() */
/*
 * Echo: writes the response to a request of @len bytes, IP header first, to @reply of @size bytes. Returns its length;
 * 0: not an echo request, or a fragment; -EBADMSG. The caller checks the destination address.
 */
int wire_echo4(const u8 *p, u32 len, u8 *reply, u32 size);
int wire_echo6(const u8 *p, u32 len, u8 *reply, u32 size);

#endif

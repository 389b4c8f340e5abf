// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* IP packets with IPoIB encapsulation: parsing as far as checksums need it, and the checksums. */
#include "emu/wire/inet.h"

#include <errno.h>

#define IP4_MIN   20u
#define IP4_PROTO 9
#define IP4_ADDRS 12 /* source and destination */
#define IP6_SIZE  40u
#define IP6_NEXT  6
#define IP6_ADDRS 8
#define TCP_MIN   20u
#define UDP_SIZE  8u
#define UDP_LEN   WIRE_FIELD(32, 16)
#define UDP_CHECK WIRE_FIELD(48, 16)
#define IP6_HOP   0 /* extension headers that do not change the pseudo-header */
#define IP6_DEST  60
#define UNKNOWN   255

u32 wire_inet_sum(u32 sum, const void *p, u32 len)
{
	const u8 *at = p;
	u64 s = 0;
	u32 w;

	for (; len >= 4; at += 4, len -= 4) {
		memcpy(&w, at, 4);
		s += w;
	}
	w = 0;
	memcpy(&w, at, len);
	s += w;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return sum +
	       be16_to_cpu((__force __be16)s); /* the sum does not depend on byte order. RFC 1071, section 2 (B) */
}

u16 wire_inet_fold(u32 sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (u16)~sum;
}

static int parse4(struct wire_inet *in, const u8 *p, u32 len)
{
	const u8 *ip = p + in->ip;
	u32 header;

	if (len < in->ip + IP4_MIN || ip[0] >> 4 != 4)
		return -EPROTO;
	header = (ip[0] & 15) * 4u;
	if (header < IP4_MIN || len < in->ip + header)
		return -EPROTO;
	in->l4 = (u16)(in->ip + header);
	in->proto = wire_get(ip, IP4_FRAGMENT) ? UNKNOWN : ip[IP4_PROTO];
	return 0;
}

static int parse6(struct wire_inet *in, const u8 *p, u32 len)
{
	u32 at = in->ip + IP6_SIZE;
	u8 next;

	if (len < at || p[in->ip] >> 4 != 6)
		return -EPROTO;
	next = p[in->ip + IP6_NEXT];
	while (next == IP6_HOP || next == IP6_DEST) {
		if (len < at + 8 || len < at + (p[at + 1] + 1) * 8u)
			return -EPROTO;
		next = p[at];
		at += (p[at + 1] + 1) * 8u;
	}
	in->l4 = (u16)at;
	in->proto = next;
	return 0;
}

int wire_inet_parse(struct wire_inet *in, const u8 *p, u32 len)
{
	u32 type = len < WIRE_INET_ENCAP ? 0 : (u32)wire_load(p, 2), need;
	int err;

	if (type != WIRE_INET_IP4 && type != WIRE_INET_IP6)
		return -EPROTO;
	len = min(len, 0xffffu);
	in->ip = WIRE_INET_ENCAP;
	in->v6 = type == WIRE_INET_IP6;
	err = in->v6 ? parse6(in, p, len) : parse4(in, p, len);
	if (err)
		return err;
	need = in->proto == WIRE_INET_TCP ? TCP_MIN : in->proto == WIRE_INET_UDP ? UDP_SIZE : 0;
	return len < in->l4 + need ? -EPROTO : 0;
}

u32 wire_inet_total(const struct wire_inet *in, const u8 *p)
{
	if (in->v6)
		return in->ip + IP6_SIZE + (u32)wire_get(p + in->ip, IP6_PAYLOAD_LEN);
	return in->ip + (u32)wire_get(p + in->ip, IP4_TOTAL);
}

/* Checksum of the transport header and the data up to @end, with the pseudo-header. RFC 9293,
 * section 3.1; RFC 8200, section 8.1. */
static u16 sum_l4(const struct wire_inet *in, const u8 *p, u32 end)
{
	u32 s = end - in->l4 + in->proto;

	s = in->v6 ? wire_inet_sum(s, p + in->ip + IP6_ADDRS, 32) : wire_inet_sum(s, p + in->ip + IP4_ADDRS, 8);
	return wire_inet_fold(wire_inet_sum(s, p + in->l4, end - in->l4));
}

static bool known(const struct wire_inet *in)
{
	return in->proto == WIRE_INET_TCP || in->proto == WIRE_INET_UDP;
}

/* Parses a complete packet; 0 or -EPROTO. */
static int parse_whole(struct wire_inet *in, const u8 *p, u32 len, u32 *end)
{
	if (wire_inet_parse(in, p, len))
		return -EPROTO;
	*end = wire_inet_total(in, p);
	return *end > len || *end < in->l4 || (known(in) && *end < in->l4 + UDP_SIZE) ||
			       (in->proto == WIRE_INET_TCP && *end < in->l4 + TCP_MIN)
		       ? -EPROTO
		       : 0;
}

void wire_inet_fill(u8 *p, u32 len)
{
	struct wire_inet in;
	u32 end;
	u16 sum;

	if (parse_whole(&in, p, len, &end))
		return;
	if (!in.v6) {
		wire_set(p + in.ip, IP4_CHECK, 0);
		wire_set(p + in.ip, IP4_CHECK, wire_inet_fold(wire_inet_sum(0, p + in.ip, in.l4 - in.ip)));
	}
	if (in.proto == WIRE_INET_TCP) {
		wire_set(p + in.l4, TCP_CHECK, 0);
		wire_set(p + in.l4, TCP_CHECK, sum_l4(&in, p, end));
	} else if (in.proto == WIRE_INET_UDP) {
		wire_set(p + in.l4, UDP_CHECK, 0);
		sum = sum_l4(&in, p, end);
		wire_set(p + in.l4, UDP_CHECK, sum ? sum : 0xffff); /* 0 means no checksum. RFC 768 */
	}
}

bool wire_inet_ok(const u8 *p, u32 len)
{
	struct wire_inet in;
	u32 end;

	if (parse_whole(&in, p, len, &end) || !known(&in))
		return false;
	if (!in.v6 && wire_inet_fold(wire_inet_sum(0, p + in.ip, in.l4 - in.ip)))
		return false;
	if (in.proto == WIRE_INET_UDP &&
	    (!wire_get(p + in.l4, UDP_CHECK) || wire_get(p + in.l4, UDP_LEN) != end - in.l4))
		return false;
	return !sum_l4(&in, p, end);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* IP packets with IPoIB encapsulation: a row per shape, compared with a plain sum of 16-bit words. */
#include "emu/lib/row.h"
#include "emu/wire/ip.h"

/* Plain sum of words in big-endian order. */
static u32 plain(u32 s, const u8 *p, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		s += i & 1 ? p[i] : (u32)p[i] << 8;
	return s;
}

static void test_sums(void)
{
	u8 data[4096];
	u32 len, i, bad = 0;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (u8)(i * 89 + i / 7);
	for (len = 0; len < sizeof(data) - 3; len += len < 40 ? 1 : 131)
		for (i = 0; i < 4; i++)
			bad += wire_inet_fold(wire_inet_sum(len, data + i, len)) !=
			       wire_inet_fold(plain(len, data + i, len));
	row(1, "sums of every length and place", !bad);
	row(2, "a carry wraps", wire_inet_fold(0x1ffff) == 0xfffe && wire_inet_fold(0) == 0xffff);
}

struct shape {
	int n;
	const char *what;
	bool v6;
	u8 proto, options; /* words of IPv4 options, or 8-byte units of an extension header */
	u16 payload, fragment;
	bool l4; /* the packet has a transport checksum */
};

static const struct shape shapes[] = {
	{ 10, "TCP", false, WIRE_INET_TCP, 0, 100, 0, true },
	{ 11, "TCP without payload", false, WIRE_INET_TCP, 0, 0, 0, true },
	{ 12, "TCP of an odd length", false, WIRE_INET_TCP, 0, 1461, 0, true },
	{ 13, "TCP behind options", false, WIRE_INET_TCP, 10, 77, 0, true },
	{ 14, "UDP", false, WIRE_INET_UDP, 0, 512, 0, true },
	{ 15, "UDP of a byte", false, WIRE_INET_UDP, 1, 1, 0, true },
	{ 16, "ICMP without ports", false, 1, 0, 64, 0, false },
	{ 17, "a first fragment", false, WIRE_INET_UDP, 0, 512, 0x2000, false },
	{ 18, "a last fragment", false, WIRE_INET_TCP, 0, 512, 0x0010, false },
	{ 19, "one that must not be one", false, WIRE_INET_TCP, 0, 512, 0x4000, true },
	{ 20, "TCP over IPv6", true, WIRE_INET_TCP, 0, 1000, 0, true },
	{ 21, "UDP over IPv6, odd", true, WIRE_INET_UDP, 0, 33, 0, true },
	{ 22, "TCP behind an extension header", true, WIRE_INET_TCP, 3, 33, 0, true },
	{ 23, "ICMPv6 without ports", true, 58, 0, 33, 0, false },
	{ 24, "a routing header, which hides what follows", true, 43, 0, 33, 0, false },
};

/* Returns the length; *l4: offset of the transport header. */
static u32 build(const struct shape *s, u8 *p, u32 *l4)
{
	u32 head = s->proto == WIRE_INET_TCP ? 20 : 8, i, len;

	memset(p, 0xee, 2048);
	wire_store(p, 4, (u32)(s->v6 ? WIRE_INET_IP6 : WIRE_INET_IP4) << 16);
	for (i = 4; i < 48; i++)
		p[i] = (u8)(i * 3);
	*l4 = s->v6 ? 44 + s->options * 8u : 24 + s->options * 4u;
	len = *l4 + head + s->payload;
	if (s->v6) {
		p[4] = 0x60;
		wire_store(p + 8, 2, len - 44);
		p[10] = s->options ? 0 : s->proto;
		p[44] = s->options ? s->proto : p[44];
		p[45] = s->options ? s->options - 1 : p[45];
	} else {
		p[4] = (u8)(0x45 + s->options);
		wire_store(p + 6, 2, len - 4);
		wire_store(p + 10, 2, s->fragment);
		p[13] = s->proto;
	}
	if (s->proto == WIRE_INET_UDP)
		wire_store(p + *l4 + 4, 2, head + s->payload);
	return len;
}

/* Both checksums, computed by the definition (RFC 1071). */
static bool right(const struct shape *s, const u8 *p, u32 len, u32 l4)
{
	u32 sum = plain(len - l4 + s->proto, s->v6 ? p + 12 : p + 16, s->v6 ? 32 : 8);

	if (!s->v6 && wire_inet_fold(plain(0, p + 4, l4 - 4)))
		return false;
	return !s->l4 || !wire_inet_fold(plain(sum, p + l4, len - l4));
}

static void test_shapes(void)
{
	static u8 p[2048], before[2048];
	u32 i, len, l4;

	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		const struct shape *s = &shapes[i];
		bool ok;

		len = build(s, p, &l4);
		ok = !wire_inet_ok(p, len);
		memcpy(before, p, sizeof(p));
		wire_inet_fill(p, len);
		ok &= right(s, p, len, l4) && wire_inet_ok(p, len) == s->l4;
		ok &= s->l4 || !memcmp(p + l4, before + l4, len - l4);
		ok &= !s->l4 || wire_inet_ok(p, len + 7); /* the link's padding is not covered */
		p[len - 1] ^= 4;
		row(s->n, s->what, ok && !wire_inet_ok(p, len));
	}
}

static const struct {
	int n;
	const char *what;
	u32 at, len; /* sets a byte to @value; truncates the packet to @len (0: no) */
	u8 value;
} wrongs[] = {
	{ 40, "another ethertype", 1, 0, 6 },
	{ 41, "version 5", 4, 0, 0x55 },
	{ 42, "a header of four words", 4, 0, 0x44 },
	{ 43, "a header of fifteen words that are not there", 4, 50, 0x4f },
	{ 44, "a total length beyond the packet", 6, 0, 0x7f },
	{ 45, "a total length that ends in the header", 7, 0, 30 },
	{ 46, "cut in the encapsulation", 100, 3, 0 },
	{ 47, "cut in the IP header", 100, 20, 0 },
	{ 48, "cut in the TCP header", 100, 43, 0 },
	{ 49, "nothing", 100, 0, 1 },
};

static void test_wrongs(void)
{
	static u8 p[2048], before[2048];
	u32 i, len, l4;

	for (i = 0; i < ARRAY_SIZE(wrongs); i++) {
		len = build(&shapes[0], p, &l4);
		wire_inet_fill(p, len);
		p[wrongs[i].at] = wrongs[i].value;
		len = wrongs[i].len ? wrongs[i].len : len;
		if (wrongs[i].n == 49)
			len = 0;
		memcpy(before, p, sizeof(p));
		wire_inet_fill(p, len);
		row(wrongs[i].n, wrongs[i].what, !wire_inet_ok(p, len) && !memcmp(p, before, sizeof(p)));
	}
}

static void test_udp(void)
{
	static u8 p[2048];
	u32 len, l4, i;

	len = build(&shapes[4], p, &l4);
	for (i = 0; i < 0x10000; i++) { /* one of them gives a sum of zero */
		wire_store(p + l4 + 8, 2, i);
		wire_inet_fill(p, len);
		if (!wire_load(p + l4 + 6, 2) || !wire_inet_ok(p, len))
			break;
	}
	row(60, "a UDP checksum of zero is sent as all ones", i == 0x10000);
	wire_store(p + l4 + 6, 2, 0);
	row(61, "one that is not there is not right", !wire_inet_ok(p, len));
	len = build(&shapes[4], p, &l4);
	wire_store(p + l4 + 4, 2, 519);
	wire_inet_fill(p, len);
	row(62, "a UDP length that is another one", !wire_inet_ok(p, len));
}

/* For all first words and all types of service. */
static void test_marks(void)
{
	u8 p[IP6_SIZE] = { 0x45 }, v6[IP6_SIZE] = { 0x60 };
	u32 tos, first, may = 0, wrong = 0, other = 0;

	for (tos = 0; tos < 256; tos++)
		for (first = 0; first < 0x10000; first += 0xff) {
			p[IP4_TOS] = (u8)tos;
			wire_store(p + 2, 2, first); /* varies the checksum */
			wire_set(p, IP4_CHECK, 0);
			wire_set(p, IP4_CHECK, wire_inet_fold(wire_inet_sum(0, p, IP4_SIZE)));
			if (!wire_ip_may_mark(p, IP4_SIZE, WIRE_INET_IP4))
				continue;
			may += first == 0;
			wire_ip_mark(p, WIRE_INET_IP4);
			wrong += wire_inet_fold(wire_inet_sum(0, p, IP4_SIZE)) != 0;
			other += p[IP4_TOS] != (tos | WIRE_ECN_CE);
		}
	row(70, "half of all senders permit that their packets are marked", may == 128);
	row(71, "the mark, and no other bit of the byte", !other);
	row(72, "a checksum that was right is right", !wrong);
	wire_set(v6, IP6_TCLASS, 0x69);
	row(73, "an IPv6 packet", wire_ip_may_mark(v6, IP6_SIZE, WIRE_INET_IP6));
	wire_ip_mark(v6, WIRE_INET_IP6);
	row(74, "is marked, once",
	    wire_get(v6, IP6_TCLASS) == 0x6b && v6[0] == 0x66 && v6[1] == 0xb0 &&
		    !wire_ip_may_mark(v6, IP6_SIZE, WIRE_INET_IP6));
	row(75, "what is cut short, and what is no IP, cannot be",
	    !wire_ip_may_mark(p, IP4_SIZE - 1, WIRE_INET_IP4) && !wire_ip_may_mark(v6, IP6_SIZE - 1, WIRE_INET_IP6) &&
		    !wire_ip_may_mark(p, IP6_SIZE, 0x8915));
}

int main(void)
{
	test_marks();
	test_sums();
	test_shapes();
	test_wrongs();
	test_udp();
	return rows_end();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Conversion between packets and RoCEv2 UDP datagrams. IBTA annex A17. */
#include <errno.h>
#include <isa-l/crc.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>

#include "emu/packet/header.h"
#include "emu/packet/roce.h"
#include "emu/wire/ether.h"
#include "emu/wire/inet.h"
#include "emu/wire/ip.h"

#define LRH_LEN   8
#define GRH_LEN   40
#define UDP_LEN   8
#define IP4_LEN   20
#define IP6_LEN   40
#define IP_MAX    (IP6_LEN + UDP_LEN)
#define DUMMY_LRH 8 /* bytes of ones in place of the LRH, for the ICRC */
#define FLAGS_AT  6 /* in the IPv4 header: the byte with DF */
#define FLAG_DF   0x40
#define CRC_POLY  0xedb88320u /* IEEE 802.3, least significant bit first */

static u32 crc_table[256];
static u8 crc_reverse[256]; /* index into the table by an entry's top byte, which is unique */

static __attribute__((constructor)) void crc_init(void)
{
	u32 i, bit, v;

	for (i = 0; i < 256; i++) {
		for (v = i, bit = 0; bit < 8; bit++)
			v = v & 1 ? v >> 1 ^ CRC_POLY : v >> 1;
		crc_table[i] = v;
		crc_reverse[v >> 24] = (u8)i;
	}
}

static u32 put_ip4(const struct wire_roce *r, u32 udp_len, u8 *dst)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = IP4_LEN / 4,
		.tos = r->tos,
		.tot_len = htons((u16)(udp_len + IP4_LEN)),
		.id = htons(r->id),
		.frag_off = htons(IP_DF),
		.ttl = r->ttl,
		.protocol = IPPROTO_UDP,
		.saddr = htonl(wire_gid_v4(&r->src)),
		.daddr = htonl(wire_gid_v4(&r->dst)),
	};

	memcpy(dst, &ip, sizeof(ip));
	return IP4_LEN;
}

/* Computed last: the ICRC does not cover the checksum. */
static void sum_ip4(u8 *ip)
{
	wire_set(ip, IP4_CHECK, wire_inet_fold(wire_inet_sum(0, ip, IP4_LEN)));
}

static u32 put_ip6(const struct wire_roce *r, u32 udp_len, u8 *dst)
{
	struct ip6_hdr ip = { .ip6_flow = htonl(6u << 28 | (u32)r->tos << 20 | (r->flow & 0xfffff)),
			      .ip6_plen = htons((u16)udp_len),
			      .ip6_nxt = IPPROTO_UDP,
			      .ip6_hlim = r->ttl };

	memcpy(&ip.ip6_src, r->src.raw, 16);
	memcpy(&ip.ip6_dst, r->dst.raw, 16);
	memcpy(dst, &ip, sizeof(ip));
	return IP6_LEN;
}

static u32 put_grh(const struct wire_roce *r, u32 len, u8 *dst)
{
	struct wire_grh *grh = (struct wire_grh *)dst;

	wire_grh_set_ver_tc_flow(grh, r->tos, r->flow);
	grh->paylen = cpu_to_be16((u16)len);
	grh->nxthdr = WIRE_GRH_NXTHDR_IBA;
	grh->hoplmt = r->ttl;
	grh->sgid = r->src;
	grh->dgid = r->dst;
	return GRH_LEN;
}

/* Writes IP and UDP headers without checksums, or the GRH, for a datagram of @len bytes; returns their length. */
static u32 put_headers(const struct wire_roce *r, u32 len, u8 *dst)
{
	if (wire_roce_is_v1(r))
		return put_grh(r, len, dst);
	struct udphdr udp = { .uh_sport = htons(r->sport),
			      .uh_dport = htons(WIRE_ROCE_PORT),
			      .uh_ulen = htons((u16)(len + UDP_LEN)) };
	u32 n = wire_gid_is_v4(&r->dst) ? put_ip4(r, len + UDP_LEN, dst) : put_ip6(r, len + UDP_LEN, dst);

	memcpy(dst + n, &udp, sizeof(udp));
	return n + UDP_LEN;
}

static void mask_headers(u8 *ip, const struct wire_roce *r)
{
	bool v4 = !wire_roce_is_v1(r) && wire_gid_is_v4(&r->dst);

	if (v4) {
		ip[1] = 0xff;                   /* type of service */
		ip[8] = ip[10] = ip[11] = 0xff; /* time to live, checksum */
		ip[IP4_LEN + 6] = ip[IP4_LEN + 7] = 0xff;
		return;
	}
	ip[0] |= 0x0f; /* traffic class, flow label */
	ip[1] = ip[2] = ip[3] = 0xff;
	ip[7] = 0xff; /* hop limit */
	if (wire_roce_is_v1(r))
		return;
	ip[IP6_LEN + 6] = ip[IP6_LEN + 7] = 0xff;
}

/* ICRC of @p when sent with the headers @r and the bytes of @pad. Fields that routers change are ones. A17.3.3. */
static u32 icrc(const struct wire_packet *p, const struct wire_roce *r, const u8 *pad)
{
	u8 head[DUMMY_LRH + IP_MAX + WIRE_HDR_MAX];
	u32 at = DUMMY_LRH, crc;

	memset(head, 0xff, DUMMY_LRH);
	at += put_headers(r, wire_roce_len(p), head + at);
	mask_headers(head + DUMMY_LRH, r);
	memcpy(head + at, p->hdr + p->bth_off, p->hdr_len - p->bth_off);
	head[at + 4] = 0xff; /* FECN, BECN and the reserved bits */
	crc = crc32_gzip_refl(0, head, at + p->hdr_len - p->bth_off);
	if (p->len)
		crc = crc32_gzip_refl(crc, p->data, p->len);
	return crc32_gzip_refl(crc, pad, -p->len & 3);
}

/* The CRC's state before byte @b, from the state after it. */
static u32 crc_back(u32 state, u8 b)
{
	u8 i = crc_reverse[state >> 24];

	return (state ^ crc_table[i]) << 8 | (i ^ b);
}

/* Whether two bytes can lead from the state zero to @state. */
static bool from_two_bytes(u32 state)
{
	u32 rest = state ^ crc_table[crc_reverse[state >> 24]];

	return crc_table[crc_reverse[rest >> 16]] >> 8 == rest;
}

/*
 * CRCs are linear: the difference @diff of two CRCs depends only on the difference of the bytes. Whether other values
 * of identification and DF can cause it, @after bytes before the end of the byte with DF.
 */
static bool explained_by_id(u32 diff, u32 after)
{
	while (after--)
		diff = crc_back(diff, 0);
	return from_two_bytes(crc_back(diff, 0)) || from_two_bytes(crc_back(diff, FLAG_DF));
}

/* @tail: pad and ICRC as received. */
static bool icrc_ok(const struct wire_packet *p, const struct wire_roce *r, const u8 *tail)
{
	u32 got, diff;

	memcpy(&got, tail + (-p->len & 3), WIRE_ICRC_LEN);
	diff = le32toh(got) ^ icrc(p, r, tail);

	if (likely(!diff))
		return true;
	return wire_gid_is_v4(&r->dst) && !wire_roce_is_v1(r) &&
	       explained_by_id(diff, IP4_LEN - FLAGS_AT - 1 + UDP_LEN + wire_roce_len(p) - WIRE_ICRC_LEN);
}

u32 wire_roce_tail(const struct wire_packet *p, const struct wire_roce *r, u8 tail[WIRE_ROCE_TAIL_MAX])
{
	u32 pad = -p->len & 3, crc;

	memset(tail, 0, pad);
	crc = htole32(icrc(p, r, tail) ^ (p->flags & WIRE_PKT_BAD_ICRC ? 1 : 0));
	memcpy(tail + pad, &crc, WIRE_ICRC_LEN);
	return pad + WIRE_ICRC_LEN;
}

bool wire_roce_peek(struct wire_packet *p, const u8 *src, u32 have, u32 len, const struct wire_roce *r)
{
	memset(p, 0, offsetof(struct wire_packet, hdr));
	p->grh_off = LRH_LEN;
	if (have < sizeof(struct wire_bth) || len & 3 ||
	    !wire_packet_parse_bth(p, src, LRH_LEN + GRH_LEN, len, WIRE_ICRC_LEN) ||
	    (u32)(p->hdr_len - p->bth_off) > have)
		return false;
	memcpy(p->hdr + p->bth_off, src, p->hdr_len - p->bth_off);
	wire_lrh_fill(wire_packet_lrh(p), 0, 0, WIRE_LNH_GRH, 0, 0, wire_packet_link_len(p) / 4);
	put_grh(r, wire_roce_len(p), p->hdr + LRH_LEN);
	p->l2 = r->l2;
	return true;
}

/* @data NULL: payload and tail follow the headers. */
static struct wire_packet *datagram_parse(const u8 *src, const u8 *data, const u8 *tail, u32 len,
					  const struct wire_roce *r)
{
	struct wire_packet *p = wire_packet_alloc();

	if (!p) {
		errno = ENOMEM;
		return NULL;
	}
	if (!wire_roce_peek(p, src, len, len, r)) {
		wire_packet_free(p);
		errno = EBADMSG;
		return NULL;
	}
	list_init(&p->link);
	p->data = data ? data : src + p->hdr_len - p->bth_off;
	if (icrc_ok(p, r, tail ? tail : p->data + p->len))
		return p;
	wire_packet_free(p);
	errno = EILSEQ;
	return NULL;
}

struct wire_packet *wire_roce_parse(struct wire_buf *buf, u32 off, u32 len, const struct wire_roce *r)
{
	struct wire_packet *p = datagram_parse(buf->data + off, NULL, NULL, len, r);

	if (p && p->len)
		p->buf = wire_buf_get(buf);
	return p;
}

struct wire_packet *wire_roce_parse_pieces(const u8 *head, u8 *data, const u8 *tail, u32 len, const struct wire_roce *r)
{
	struct wire_packet *p = datagram_parse(head, data, tail, len, r);

	if (p)
		p->flags |= WIRE_PKT_ZCOPY;
	return p;
}

/* A locally administered address derived from the GID. */
static void put_mac(u8 *dst, const struct wire_gid *gid)
{
	dst[0] = 0x02;
	dst[1] = 0x00;
	memcpy(dst + 2, gid->raw + 12, 4);
}

u16 wire_roce_ethertype(const struct wire_roce *r)
{
	return wire_roce_is_v1(r) ? ETHERTYPE_ROCE : wire_gid_is_v4(&r->dst) ? WIRE_INET_IP4 : WIRE_INET_IP6;
}

u32 wire_roce_size(const struct wire_packet *p, const struct wire_roce *r)
{
	u32 head = wire_roce_is_v1(r) ? GRH_LEN : UDP_LEN + (wire_gid_is_v4(&r->dst) ? IP4_LEN : IP6_LEN);

	return head + wire_roce_len(p);
}

void wire_roce_put(const struct wire_packet *p, const struct wire_roce *r, u8 *dst)
{
	u32 at = put_headers(r, wire_roce_len(p), dst), n = p->hdr_len - p->bth_off;

	if (!wire_roce_is_v1(r) && wire_gid_is_v4(&r->dst))
		sum_ip4(dst);
	memcpy(dst + at, p->hdr + p->bth_off, n);
	at += n;
	if (p->len)
		memcpy(dst + at, p->data, p->len);
	wire_roce_tail(p, r, dst + at + p->len);
}

int wire_roce_frame(const struct wire_packet *p, const struct wire_roce *r, u8 *dst, u32 size)
{
	struct ether_header h = { .type = wire_roce_ethertype(r) };
	u32 len = wire_roce_size(p, r);

	if (size < ETHER_SIZE + len)
		return -ENOSPC;
	put_mac(h.dst, &r->dst);
	put_mac(h.src, &r->src);
	wire_roce_put(p, r, dst + ether_header_put(&h, dst));
	return (int)(ETHER_SIZE + len);
}

/* ---- headers of frames ---- */

static int get_udp(const u8 *udp, u32 len, u32 head, struct wire_roce *r, u32 *body)
{
	u32 total;

	if (len < UDP_LEN)
		return -EBADMSG;
	if (wire_load(udp + 2, 2) != WIRE_ROCE_PORT)
		return 0;
	total = (u32)wire_load(udp + 4, 2);
	if (total < UDP_LEN || total > len)
		return -EBADMSG;
	r->sport = (u16)wire_load(udp, 2);
	*body = total - UDP_LEN;
	return (int)(head + UDP_LEN);
}

/* Rejects options and fragments, which RoCE packets do not have. A17.3.1.2. */
static int get_ip4(const u8 *p, u32 len, struct wire_roce *r, u32 *body)
{
	u32 total;

	if (len < IP4_LEN || p[0] >> 4 != 4)
		return -EBADMSG;
	if (p[IP4_PROTO] != IPPROTO_UDP || wire_get(p, IP4_FRAGMENT) || p[0] != 0x45)
		return 0;
	total = (u32)wire_get(p, IP4_TOTAL);
	if (total < IP4_LEN || total > len || wire_inet_fold(wire_inet_sum(0, p, IP4_LEN)))
		return -EBADMSG;
	r->src = wire_gid_from_v4((u32)wire_load(p + IP4_SRC, 4));
	r->dst = wire_gid_from_v4((u32)wire_load(p + IP4_DST, 4));
	r->tos = p[IP4_TOS];
	r->ttl = p[IP4_TTL];
	r->id = (u16)wire_get(p, IP4_ID);
	return get_udp(p + IP4_LEN, total - IP4_LEN, IP4_LEN, r, body);
}

/* Fields common to the IPv6 header and the GRH. Returns the bytes that follow, or -EBADMSG. */
static int get_ip6(const u8 *p, u32 len, struct wire_roce *r)
{
	u32 payload;

	if (len < IP6_LEN || p[0] >> 4 != 6)
		return -EBADMSG;
	payload = (u32)wire_get(p, IP6_PAYLOAD_LEN);
	if (payload > len - IP6_LEN)
		return -EBADMSG;
	r->src = wire_gid_from_bytes(p + IP6_SRC);
	r->dst = wire_gid_from_bytes(p + IP6_DST);
	r->tos = (u8)wire_get(p, IP6_TCLASS);
	r->flow = (u32)wire_get(p, IP6_FLOW);
	r->ttl = p[IP6_HOPS];
	return (int)payload;
}

int wire_roce_head(const u8 *src, u32 len, u16 ethertype, struct wire_roce *r, u32 *body)
{
	int n;

	r->l2.version = ethertype == ETHERTYPE_ROCE ? 1 : 2;
	if (ethertype == WIRE_INET_IP4)
		return get_ip4(src, len, r, body);
	if (ethertype != WIRE_INET_IP6 && ethertype != ETHERTYPE_ROCE)
		return 0;
	n = get_ip6(src, len, r);
	if (n < 0)
		return n;
	if (ethertype == WIRE_INET_IP6)
		return src[IP6_NEXT] == IPPROTO_UDP ? get_udp(src + IP6_LEN, (u32)n, IP6_LEN, r, body) : 0;
	*body = (u32)n;
	return src[IP6_NEXT] == WIRE_GRH_NXTHDR_IBA ? GRH_LEN : -EBADMSG;
}

void wire_roce_from_grh(const struct wire_packet *p, struct wire_roce *r)
{
	const struct wire_grh *grh = wire_packet_grh(p);

	*r = (struct wire_roce){ .src = grh->sgid,
				 .dst = grh->dgid,
				 .tos = wire_grh_tclass(grh),
				 .ttl = grh->hoplmt,
				 .flow = wire_grh_flow(grh),
				 .l2 = p->l2 };
}

void wire_roce_put_network(const struct wire_roce *r, u32 len, u8 grh[40])
{
	if (wire_gid_is_v4(&r->dst)) {
		memset(grh, 0, GRH_LEN - IP4_LEN);
		put_ip4(r, len + UDP_LEN, grh + GRH_LEN - IP4_LEN);
		sum_ip4(grh + GRH_LEN - IP4_LEN);
	} else {
		put_ip6(r, len + UDP_LEN, grh);
	}
}

void wire_roce_put_grh(const struct wire_packet *p, u8 grh[40])
{
	struct wire_roce r;

	if (p->l2.version == 1) {
		memcpy(grh, p->hdr + p->grh_off, GRH_LEN);
		return;
	}
	wire_roce_from_grh(p, &r);
	wire_roce_put_network(&r, wire_roce_len(p), grh);
}

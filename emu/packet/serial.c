// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Conversion between packets and the bytes of an InfiniBand link, with both CRCs. IBTA 7.7, 7.8. */
#include <errno.h>
#include <isa-l/crc.h>

#include "emu/packet/packet.h"
#include "emu/wire/hdr.h"

#define TAIL_LEN (WIRE_ICRC_LEN + WIRE_VCRC_LEN)

/* Replaces fields that switches or routers may change by ones. IBTA 7.8.1. */
static void mask_variant(const struct wire_packet *p, u8 *hdr)
{
	memcpy(hdr, p->hdr, p->hdr_len);
	hdr[0] |= 0xf0; /* VL */
	if (p->grh_off) {
		u8 *grh = hdr + p->grh_off;

		memset(hdr, 0xff, sizeof(struct wire_lrh)); /* routers change it */
		grh[0] |= 0x0f;                             /* TClass, FlowLabel */
		grh[1] = grh[2] = grh[3] = 0xff;
		grh[7] = 0xff; /* HopLmt */
	}
	hdr[p->bth_off + 4] = 0xff; /* FECN, BECN and the reserved bits */
}

u32 wire_packet_icrc(const struct wire_packet *p)
{
	static const u8 zero[3];
	u8 hdr[WIRE_HDR_MAX];
	u32 crc;

	mask_variant(p, hdr);
	crc = crc32_gzip_refl(0, hdr, p->hdr_len);
	if (p->len)
		crc = crc32_gzip_refl(crc, p->data, p->len);
	return crc32_gzip_refl(crc, zero, -p->len & 3);
}

int wire_packet_serialize(const struct wire_packet *p, u8 *dst, u32 size)
{
	u32 len = wire_packet_link_len(p), pad = -p->len & 3, at = p->hdr_len, crc;
	u16 v;

	if (size < len + WIRE_VCRC_LEN)
		return -ENOSPC;
	memcpy(dst, p->hdr, at);
	if (p->len)
		memcpy(dst + at, p->data, p->len);
	memset(dst + at + p->len, 0, pad);
	at += p->len + pad;
	crc = wire_packet_icrc(p) ^ (p->flags & WIRE_PKT_BAD_ICRC ? 1 : 0);
	crc = htole32(crc);
	memcpy(dst + at, &crc, WIRE_ICRC_LEN);
	at += WIRE_ICRC_LEN;
	v = wire_vcrc(dst, at) ^ (p->flags & (WIRE_PKT_BAD_VCRC | WIRE_PKT_EBP) ? 1 : 0);
	v = htole16(v);
	memcpy(dst + at, &v, WIRE_VCRC_LEN);
	return (int)(at + WIRE_VCRC_LEN);
}

void wire_packet_serialize_start(const struct wire_packet *p, u8 *dst, u32 n)
{
	u32 headers = min(n, (u32)p->hdr_len);
	u8 bytes[WIRE_PACKET_MAX];

	if (n > p->hdr_len + p->len) {
		wire_packet_serialize(p, bytes, sizeof(bytes));
		memcpy(dst, bytes, n);
		return;
	}
	memcpy(dst, p->hdr, headers);
	if (n > headers)
		memcpy(dst + headers, p->data, n - headers);
}

/* Offsets and lengths of the headers. False: malformed. */
static bool parse_headers(struct wire_packet *p, const u8 *src, u32 len)
{
	const struct wire_lrh *lrh = (const struct wire_lrh *)src;
	const struct wire_grh *grh;
	u32 at = sizeof(*lrh);

	if (len < sizeof(*lrh) + sizeof(struct wire_bth) + TAIL_LEN || wire_lrh_lver(lrh) ||
	    wire_lrh_words(lrh) * 4 + WIRE_VCRC_LEN != len || wire_lrh_lnh(lrh) < WIRE_LNH_BTH)
		return false;
	if (wire_lrh_lnh(lrh) == WIRE_LNH_GRH) {
		grh = (const struct wire_grh *)(src + at);
		if (len < at + sizeof(*grh) + sizeof(struct wire_bth) + TAIL_LEN ||
		    wire_grh_ipver(grh) != WIRE_GRH_IPVER || grh->nxthdr != WIRE_GRH_NXTHDR_IBA ||
		    be16_to_cpu(grh->paylen) != len - at - sizeof(*grh) - WIRE_VCRC_LEN)
			return false;
		p->grh_off = at;
		at += sizeof(*grh);
	}
	p->vl = wire_lrh_vl(lrh);
	return wire_packet_parse_bth(p, src + at, at, len - at, TAIL_LEN);
}

static bool check_crcs(const struct wire_packet *p, const u8 *src, u32 len)
{
	u32 icrc;
	u16 v;

	memcpy(&icrc, src + len - TAIL_LEN, WIRE_ICRC_LEN);
	memcpy(&v, src + len - WIRE_VCRC_LEN, WIRE_VCRC_LEN);
	return le16toh(v) == wire_vcrc(src, len - WIRE_VCRC_LEN) && le32toh(icrc) == wire_packet_icrc(p);
}

static struct wire_packet *parse_failed(struct wire_packet *p, int error)
{
	if (p)
		wire_packet_free(p);
	errno = error;
	return NULL;
}

struct wire_packet *wire_packet_parse_shared(const u8 *hdr, const u8 *src, u32 len)
{
	struct wire_packet *p = wire_packet_alloc();

	if (!p)
		return parse_failed(p, ENOMEM);
	if (!parse_headers(p, hdr, len))
		return parse_failed(p, EBADMSG);
	memcpy(p->hdr, hdr, p->hdr_len);
	if (p->len) {
		p->data = src + p->hdr_len;
		p->flags = WIRE_PKT_ZCOPY;
	}
	return p;
}

struct wire_packet *wire_packet_parse(const u8 *src, u32 len, bool check_crc)
{
	struct wire_packet *p = wire_packet_parse_shared(src, src, len);

	if (!p)
		return NULL;
	if (!wire_packet_own(p))
		return parse_failed(p, ENOMEM);
	return !check_crc || check_crcs(p, src, len) ? p : parse_failed(p, EBADMSG);
}

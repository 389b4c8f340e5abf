// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packet capture of iWARP streams: each FPDU as an Ethernet frame with IP and TCP headers. The segments and sequence
 * numbers of the machine's TCP are unknown: the captured sequence numbers start at 1, and each segment acknowledges all
 * bytes before it.
 */
#include "emu/wire/inet.h"
#include "siw/siw_internal.h"

#define ETH_SIZE 14
#define TCP_SIZE 20
#define SEGMENT  60000u

#define TCP_ACK_PSH 0x18

static u8 *put16(u8 *p, u32 v)
{
	p[0] = (u8)(v >> 8);
	p[1] = (u8)v;
	return p + 2;
}

static u8 *put32(u8 *p, u32 v)
{
	return put16(put16(p, v >> 16), v);
}

/* Writes the IP and TCP headers; returns the address after them. */
static u8 *put_headers(u8 *at, const struct hca_iw_addr *from, const struct hca_iw_addr *to, u32 seq, u32 ack, u32 len)
{
	if (ip_addr_is_v4(&from->ip)) {
		at = put32(at, 0x45000000 | (20 + TCP_SIZE + len));
		at = put32(at, 0x4000); /* do not fragment */
		at = put32(at, 64u << 24 | WIRE_INET_TCP << 16);
		at = put32(at, ip_addr_get_v4(&from->ip));
		at = put32(at, ip_addr_get_v4(&to->ip));
	} else {
		at = put32(at, 6u << 28);
		at = put32(at, (TCP_SIZE + len) << 16 | WIRE_INET_TCP << 8 | 64);
		memcpy(at, from->ip.raw, 16);
		memcpy(at + 16, to->ip.raw, 16);
		at += 32;
	}
	at = put16(put16(at, from->port), to->port);
	at = put32(put32(at, seq), ack);
	at = put32(at, (TCP_SIZE / 4u) << 28 | TCP_ACK_PSH << 16 | 0xffff);
	return put32(at, 0);
}

void siw_capture_frame(struct siw *siw, const struct hca_iw_addr *from, const struct hca_iw_addr *to,
		       struct siw_capture_seq *seq, const u8 *p, u32 len, bool out)
{
	static u8 buf[2 + 128 + SEGMENT]; /* two bytes more align the IP header for wire_inet_fill() */
	u32 type = ip_addr_is_v4(&from->ip) ? WIRE_INET_IP4 : WIRE_INET_IP6;
	u32 *own = out ? &seq->out : &seq->in, *other = out ? &seq->in : &seq->out;
	u8 *frame = buf + 2, *ip = frame + ETH_SIZE, *at;

	while (len) {
		u32 part = min(len, SEGMENT);

		at = put_headers(ip, from, to, 1 + *own, 1 + *other, part);
		memcpy(at, p, part);
		put16(put16(ip - WIRE_INET_ENCAP, type), 0);
		wire_inet_fill(ip - WIRE_INET_ENCAP, (u32)(at + part - ip) + WIRE_INET_ENCAP);
		memset(frame, 0, ETH_SIZE);
		put16(ip - 2, type);
		siw->capture(siw->capture_ctx, frame, (u32)(at + part - frame), out);
		*own += part;
		p += part;
		len -= part;
	}
}

void siw_set_capture(struct hca *hca, siw_capture_fn *capture, void *ctx)
{
	struct siw *siw = hca_transport_data(hca);

	siw->capture = capture;
	siw->capture_ctx = ctx;
}

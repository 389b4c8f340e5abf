// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Large send offload: segments a TCP packet with IPoIB encapsulation that exceeds the path's MTU, as its sender would
 * have done. Each segment gets the packet's headers with its own lengths, IPv4 identification and sequence number; the
 * last segment has FIN and PSH, the first CWR (RFC 3168 section 6.1.2).
 */
#include "emu/packet/lso.h"
#include "emu/wire/inet.h"

bool wire_lso_valid(const u8 *hdr, u32 hdr_len)
{
	struct wire_inet in;

	if (wire_inet_parse(&in, hdr, hdr_len) || in.proto != WIRE_INET_TCP)
		return false;
	return hdr_len == in.l4 + (u32)wire_get(hdr + in.l4, TCP_OFFSET) * 4;
}

static void headers_fill(u8 *p, u32 size, u32 n, u32 sent, bool last)
{
	struct wire_inet in;
	u8 *ip, *tcp, flags;

	wire_inet_parse(&in, p, size);
	ip = p + in.ip;
	tcp = p + in.l4;
	if (in.v6) {
		wire_set(ip, IP6_PAYLOAD_LEN, size - in.ip - 40);
	} else {
		wire_set(ip, IP4_TOTAL, size - in.ip);
		wire_set(ip, IP4_ID, wire_get(ip, IP4_ID) + n);
	}
	flags = (u8)wire_get(tcp, TCP_FLAGS);
	if (!last)
		flags &= (u8) ~(TCP_FIN | TCP_PSH);
	if (n)
		flags &= (u8)~TCP_CWR;
	wire_set(tcp, TCP_FLAGS, flags);
	wire_set(tcp, TCP_SEQ, wire_get(tcp, TCP_SEQ) + sent);
	wire_inet_fill(p, size);
}

struct wire_buf *wire_lso_segment(const u8 *src, u32 hdr_len, u32 len, u32 mss, u32 n)
{
	u32 at = n * mss, part = min(len - at, mss);
	struct wire_buf *buf = wire_buf_alloc(hdr_len + part);

	if (!buf)
		return NULL;
	memcpy(buf->data, src, hdr_len);
	memcpy(buf->data + hdr_len, src + hdr_len + at, part);
	headers_fill(buf->data, hdr_len + part, n, at, at + part == len);
	return buf;
}

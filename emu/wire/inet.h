/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* IP packets in IPoIB datagrams: header offsets and checksums. RFC 1071, 4391, 791, 8200, 9293. */
#ifndef MUSLIN_WIRE_INET_H
#define MUSLIN_WIRE_INET_H

#include "emu/wire/field.h"

#define WIRE_INET_ENCAP 4 /* the ethertype and two reserved bytes before the IP header. RFC 4391, section 6 */
#define WIRE_INET_TCP   6
#define WIRE_INET_UDP   17

#define WIRE_INET_IP4   0x0800
#define WIRE_INET_IP6   0x86dd
#define IP4_TOTAL       WIRE_FIELD(16, 16)
#define IP4_ID          WIRE_FIELD(32, 16)
#define IP4_FRAGMENT    WIRE_FIELD(50, 14) /* more fragments, and the offset: 0 if not a fragment */
#define IP4_CHECK       WIRE_FIELD(80, 16)
#define IP6_PAYLOAD_LEN WIRE_FIELD(32, 16)
#define TCP_SEQ         WIRE_FIELD(32, 32)
#define TCP_OFFSET      WIRE_FIELD(96, 4) /* header length in words */
#define TCP_FLAGS       WIRE_FIELD(104, 8)
#define TCP_CHECK       WIRE_FIELD(128, 16)
#define TCP_FIN         0x01
#define TCP_PSH         0x08
#define TCP_CWR         0x80

/* Offsets count from the encapsulation. */
struct wire_inet {
	u16 ip, l4; /* start of the IP and of the transport header */
	u8 proto;   /* WIRE_INET_*; for other values the rest is not parsed */
	bool v6;
};

/* Adds the sum of @len bytes to @sum, for wire_inet_fold(); only the last part may have an odd length. RFC 1071. */
u32 wire_inet_sum(u32 sum, const void *p, u32 len);
u16 wire_inet_fold(u32 sum);

/* Finds the headers in the first @len bytes of a packet. 0, or -EPROTO: not IP, or truncated. */
int wire_inet_parse(struct wire_inet *in, const u8 *p, u32 len);
/* Length of the whole packet according to its IP header. */
u32 wire_inet_total(const struct wire_inet *in, const u8 *p);
/* Fills in the checksums of a complete packet of @len bytes: IPv4, TCP, UDP, as present. */
void wire_inet_fill(u8 *p, u32 len);
/* Whether the packet has a TCP or UDP checksum and all checksums are valid. */
bool wire_inet_ok(const u8 *p, u32 len);

#endif

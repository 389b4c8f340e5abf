/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* IP packets as IPoIB carries them in datagrams: where their parts lie, and their checksums. RFC 1071, 4391, 791, 8200, 9293. */
#ifndef MUSLIN_WIRE_INET_H
#define MUSLIN_WIRE_INET_H

#include "emu/wire/field.h"

#define WIRE_INET_ENCAP 4 /* the ethertype and two bytes of nothing before the IP header. RFC 4391, section 6 */
#define WIRE_INET_TCP   6
#define WIRE_INET_UDP   17

#define WIRE_INET_IP4   0x0800
#define WIRE_INET_IP6   0x86dd
#define IP4_TOTAL       WIRE_FIELD(16, 16)
#define IP4_ID          WIRE_FIELD(32, 16)
#define IP4_FRAGMENT    WIRE_FIELD(50, 14) /* more fragments, and the offset: 0 where it is none */
#define IP4_CHECK       WIRE_FIELD(80, 16)
#define IP6_PAYLOAD_LEN WIRE_FIELD(32, 16)
#define TCP_SEQ         WIRE_FIELD(32, 32)
#define TCP_OFFSET      WIRE_FIELD(96, 4) /* words of the header */
#define TCP_FLAGS       WIRE_FIELD(104, 8)
#define TCP_CHECK       WIRE_FIELD(128, 16)
#define TCP_FIN         0x01
#define TCP_PSH         0x08
#define TCP_CWR         0x80

/* Offsets count from the encapsulation. */
struct wire_inet {
	u16 ip, l4; /* where the IP and the transport header begin */
	u8 proto;   /* WIRE_INET_*, or another one: nothing behind the IP header is known then */
	bool v6;
};

/* The sum of @len bytes on top of @sum, for wire_inet_fold(); only the last part may have an odd length. RFC 1071. */
u32 wire_inet_sum(u32 sum, const void *p, u32 len);
u16 wire_inet_fold(u32 sum);

/* Finds the headers in the first @len bytes of a packet, of which more may follow. 0, or -EPROTO: no IP, or cut short. */
int wire_inet_parse(struct wire_inet *in, const u8 *p, u32 len);
/* Length of the whole packet, by its own IP header. */
u32 wire_inet_total(const struct wire_inet *in, const u8 *p);
/* Puts checksums into the whole packet of @len bytes: IPv4's, TCP's, UDP's, as far as it has them. */
void wire_inet_fill(u8 *p, u32 len);
/* The packet has a checksum of TCP or UDP, and each checksum is right. */
bool wire_inet_ok(const u8 *p, u32 len);

#endif

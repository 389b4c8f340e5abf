/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Large send offload: TCP packets that are cut on behalf of their sender. */
#ifndef MUSLIN_PACKET_LSO_H
#define MUSLIN_PACKET_LSO_H

#include "emu/packet/packet.h"

/* Are these @hdr_len bytes the headers of a TCP packet in IPoIB's encapsulation, which segments can be given? */
bool wire_lso_valid(const u8 *hdr, u32 hdr_len);
/*
 * The nth segment of the packet of @hdr_len bytes of headers and @len bytes of payload at @src, @mss bytes of payload in each,
 * with its lengths, numbers, flags and checksums. NULL without memory.
 */
struct wire_buf *wire_lso_segment(const u8 *src, u32 hdr_len, u32 len, u32 mss, u32 n);

#endif

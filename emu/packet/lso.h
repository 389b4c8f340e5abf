/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Large send offload: segmentation of TCP packets on behalf of their sender. */
#ifndef MUSLIN_PACKET_LSO_H
#define MUSLIN_PACKET_LSO_H

#include "emu/packet/packet.h"

/* Whether @hdr_len bytes at @hdr are headers of a TCP packet with IPoIB encapsulation that can be segmented. */
bool wire_lso_valid(const u8 *hdr, u32 hdr_len);
/*
 * The nth segment of the packet with @hdr_len bytes of headers and @len bytes of payload at @src, with @mss bytes of
 * payload per segment; fills in lengths, numbers, flags and checksums. NULL if out of memory.
 */
struct wire_buf *wire_lso_segment(const u8 *src, u32 hdr_len, u32 len, u32 mss, u32 n);

#endif

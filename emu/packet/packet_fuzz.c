// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as a link packet: an accepted packet must serialize to the same bytes. */
#include <stdlib.h>

#include "emu/packet/packet.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 out[WIRE_HDR_MAX + WIRE_MTU_MAX + 16];
	struct wire_packet *p;
	int n;

	if (size > sizeof(out))
		return 0;
	p = wire_packet_parse(data, (u32)size, size & 1);
	if (!p)
		return 0;
	n = wire_packet_serialize(p, out, sizeof(out));
	if (n > 0 && ((p->len + 3) & ~3u) + p->hdr_len + 6u == size && (u32)n != size)
		abort();
	wire_packet_free(p);
	return 0;
}

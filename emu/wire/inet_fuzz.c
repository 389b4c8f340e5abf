// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as an IP packet with IPoIB encapsulation: its checksums are filled in
 * correctly, and nothing else changes. */
#include <stdlib.h>

#include "emu/wire/inet.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct wire_inet in;
	u8 *p = malloc(size ? size : 1);
	bool whole, was = wire_inet_ok(data, (u32)size);

	memcpy(p, data, size);
	whole = !wire_inet_parse(&in, data, (u32)size) && wire_inet_total(&in, data) <= size;
	wire_inet_fill(p, (u32)size);
	if (was && !wire_inet_ok(p, (u32)size))
		abort();
	if (whole && in.proto == WIRE_INET_TCP && wire_inet_total(&in, data) >= in.l4 + 20u &&
	    !wire_inet_ok(p, (u32)size))
		abort();
	free(p);
	return 0;
}

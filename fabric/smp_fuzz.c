// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzz: a sequence of MADs from one host: a byte selects DLID and QP, then 256 bytes each (the last one padded with
 * zeros).
 */
#include "fabric/fabric_fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const u16 lids[] = { WIRE_LID_PERMISSIVE, 100, 2, 1 };
	u32 live = wire_packet_live(), n = 0;
	struct test_host h1, h2;
	u8 mad[MAD_SIZE];

	test_start("leafs 1 hosts 2\n");
	test_attach(&h1, "h1");
	test_attach(&h2, "h2");
	test_bring_up(&h1, 2);
	while (size > 1 && n++ < 16) {
		u8 how = *data++;
		size_t len = min(--size, (size_t)MAD_SIZE);

		memset(mad, 0, sizeof(mad));
		memcpy(mad, data, len);
		test_send_mad(&h1, mad, lids[how & 3], how >> 2 & 1);
		data += len;
		size -= len;
	}
	test_run(NSEC_PER_SEC);
	test_stop();
	if (wire_packet_live() != live)
		abort();
	return 0;
}

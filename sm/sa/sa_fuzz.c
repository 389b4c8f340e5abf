// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzz: MADs for subnet administration and traps, of any length, as after RMPP. Input: sender, length (2 bytes), MAD;
 * repeated.
 */
#include "sm/sm_fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const u16 attrs[] = { 0x11, 0x12, 0x13, 0x14, 0x15, 0x17, 0x18, 0x20, 0x30,
				     0x31, 0x33, 0x35, 0x36, 0x38, 0x3a, 3,    0xf3 };
	static const u8 methods[] = { 1, 2, 0x12, 0x14, 0x15, 5, 7, 0x81 };
	struct mad_addr from = { .qpn = 1 };
	struct fake f;
	u8 *mad;
	size_t n;

	fake_open(&f, NULL);
	for (; size > 4; data += n, size -= n) {
		u8 who = data[0], what = data[1], len = data[2];

		data += 3, size -= 3;
		n = min(size, (size_t)len * 8);
		mad = calloc(1,
			     who & 0x80 ? MAD_SIZE : max(n, (size_t)MAD_HDR_SIZE)); /* not longer, for the sanitizer */
		memcpy(mad, data, who & 0x80 ? min(n, (size_t)MAD_SIZE) : n);
		wire_set(mad, MAD_BASE_VERSION, 1);
		wire_set(mad, MAD_CLASS, who & 0x80 ? MAD_CLASS_SUBN_LID : MAD_CLASS_SUBN_ADM);
		wire_set(mad, MAD_CLASS_VERSION, who & 0x80 ? 1 : 2);
		wire_set(mad, MAD_METHOD, methods[what & 7]);
		wire_set(mad, MAD_ATTR_ID, who & 0x80 ? (what & 8 ? 2 : 0x20) : attrs[(what >> 3) % ARRAY_SIZE(attrs)]);
		if (n >= SA_DATA || who & 0x80)
			wire_set(mad, SA_SM_KEY, who & 0x40 ? 1 : 0);
		from.lid = who & 0x3f;
		sm_receive(f.sm, mad, who & 0x80 ? MAD_SIZE : (u32)n, &from, NULL);
		free(mad);
		fake_run(&f, what & 1);
	}
	fake_run(&f, 20000);
	fake_close(&f);
	return 0;
}

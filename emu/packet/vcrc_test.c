// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of vcrc.c: every implementation agrees with the bitwise definition of IBTA 7.8.2. */
#include "emu/lib/row.h"
#include "emu/packet/packet.h"

static u16 by_bits(const u8 *data, u32 len)
{
	u16 crc = 0xffff;
	u32 bit;

	for (; len; data++, len--) {
		crc ^= *data;
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xd008 : crc >> 1; /* x^16 + x^12 + x^3 + x + 1 */
	}
	return ~crc;
}

int main(void)
{
	static u8 data[4400];
	u32 i, seed = 1, from, wrong = 0;

	for (i = 0; i < sizeof(data); i++) {
		seed = seed * 1664525 + 1013904223;
		data[i] = (u8)(seed >> 24);
	}
	for (i = 0; i < 700; i++)
		for (from = 0; from < 3; from++)
			wrong += wire_vcrc(data + from, i) != by_bits(data + from, i);
	row(1, "all lengths to 700, at three addresses", !wrong);
	for (i = 4000; i < sizeof(data); i += 7)
		wrong += wire_vcrc(data, i) != by_bits(data, i);
	row(2, "packets of the largest MTU", !wrong);
	return rows_end();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Variant CRC of InfiniBand packets (IBTA 7.8.2): CRC-16 of polynomial 0x100b, least significant bit first. Captures
 * compute it for every byte: by tables for 8 bytes at a time, or by carry-less multiplication for 64 bytes at a time,
 * if the processor has it.
 */
#include "emu/packet/packet.h"

#define VCRC_POLY 0xd008 /* 0x100b, least significant bit first */

static u16 table[8][256]; /* [n]: for a byte followed by n bytes */

static u16 vcrc_tables(u16 crc, const u8 *data, u32 len)
{
	for (; len >= 8; data += 8, len -= 8)
		crc = table[7][data[0] ^ (crc & 0xff)] ^ table[6][data[1] ^ crc >> 8] ^ table[5][data[2]] ^
		      table[4][data[3]] ^ table[3][data[4]] ^ table[2][data[5]] ^ table[1][data[6]] ^ table[0][data[7]];
	for (; len; data++, len--)
		crc = crc >> 8 ^ table[0][(crc ^ *data) & 0xff];
	return crc;
}

#ifdef __x86_64__
#include <immintrin.h>

/*
 * Folding: 16 bytes represent a polynomial A of degree 127, whose upper half is in the first 8 bytes. A * x^d modulo
 * the polynomial is the sum of the products of both halves with constants, which is xored to the 16 bytes that follow
 * d bits later. In reflected order a product is one bit short, so the constants are of x^(d+63) and x^(d-1).
 */
static u64 fold[2][2]; /* by 512 and by 128 bits: for the first and the second half */
static bool fast;

/* x^n modulo the polynomial, the coefficient of x^63 in bit 0. */
static u64 vcrc_power(u32 n)
{
	u16 v = 0x8000; /* x^0 */
	u64 out = 0;

	while (n--)
		v = v & 1 ? v >> 1 ^ VCRC_POLY : v >> 1;
	out = v;
	return out << 48;
}

__attribute__((target("pclmul,sse2"))) static __m128i vcrc_step(__m128i a, __m128i k, const u8 *next)
{
	__m128i product = _mm_xor_si128(_mm_clmulepi64_si128(a, k, 0x00), _mm_clmulepi64_si128(a, k, 0x11));

	return _mm_xor_si128(product, _mm_loadu_si128((const __m128i *)(const void *)next));
}

__attribute__((target("pclmul,sse2"))) static u16 vcrc_folded(u16 crc, const u8 *data, u32 len)
{
	__m128i far = _mm_set_epi64x((long long)fold[0][1], (long long)fold[0][0]);
	__m128i near = _mm_set_epi64x((long long)fold[1][1], (long long)fold[1][0]);
	__m128i a[4];
	u8 rest[16];
	u32 i;

	for (i = 0; i < 4; i++)
		a[i] = _mm_loadu_si128((const __m128i *)(const void *)(data + 16 * i));
	a[0] = _mm_xor_si128(a[0], _mm_cvtsi32_si128(crc));
	for (data += 64, len -= 64; len >= 64; data += 64, len -= 64)
		for (i = 0; i < 4; i++)
			a[i] = vcrc_step(a[i], far, data + 16 * i);
	for (i = 1; i < 4; i++) {
		_mm_storeu_si128((__m128i *)(void *)rest, a[i]);
		a[0] = vcrc_step(a[0], near, rest);
	}
	for (; len >= 16; data += 16, len -= 16)
		a[0] = vcrc_step(a[0], near, data);
	_mm_storeu_si128((__m128i *)(void *)rest, a[0]);
	return vcrc_tables(vcrc_tables(0, rest, sizeof(rest)), data, len);
}

static void vcrc_init_folding(void)
{
	static const u32 bits[] = { 512, 128 };
	u32 i;

	for (i = 0; i < 2; i++) {
		fold[i][0] = vcrc_power(bits[i] + 63);
		fold[i][1] = vcrc_power(bits[i] - 1);
	}
	__builtin_cpu_init();
	fast = __builtin_cpu_supports("pclmul");
}
#else
#define fast false
static u16 vcrc_folded(u16 crc, const u8 *data, u32 len)
{
	return vcrc_tables(crc, data, len);
}
static void vcrc_init_folding(void) {}
#endif

static __attribute__((constructor)) void vcrc_init(void)
{
	u32 i, bit, n;

	for (i = 0; i < 256; i++) {
		u16 v = (u16)i;

		for (bit = 0; bit < 8; bit++)
			v = v & 1 ? v >> 1 ^ VCRC_POLY : v >> 1;
		table[0][i] = v;
	}
	for (n = 1; n < 8; n++)
		for (i = 0; i < 256; i++)
			table[n][i] = table[n - 1][i] >> 8 ^ table[0][table[n - 1][i] & 0xff];
	vcrc_init_folding();
}

u16 wire_vcrc(const u8 *data, u32 len)
{
	return ~(fast && len >= 64 ? vcrc_folded(0xffff, data, len) : vcrc_tables(0xffff, data, len));
}

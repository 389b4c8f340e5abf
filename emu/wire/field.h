/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bit fields of big-endian IBTA formats: one line describes a field's position, for one getter and one setter. */
#ifndef MUSLIN_WIRE_FIELD_H
#define MUSLIN_WIRE_FIELD_H

#include "emu/lib/types.h"

/* Bits count as in the IBTA tables: bit 0 is the most significant bit of byte 0. */
struct wire_field {
	u16 bit, width;
};

#define WIRE_FIELD(bit, width) ((struct wire_field){ (bit), (width) })

/* Field F of an attribute at offset BYTE. */
#define WIRE_AT(byte, f) WIRE_FIELD((byte)*8 + (f).bit, (f).width)

#define wire_inline static inline __attribute__((always_inline))

wire_inline u64 wire_load(const u8 *p, unsigned int bytes)
{
	__be16 b16;
	__be32 b32;
	__be64 b64;

	switch (bytes) {
	case 1:
		return p[0];
	case 2:
		memcpy(&b16, p, 2);
		return be16_to_cpu(b16);
	case 3:
		return (u64)p[0] << 16 | (u64)p[1] << 8 | p[2];
	case 4:
		memcpy(&b32, p, 4);
		return be32_to_cpu(b32);
	case 5:
	case 6:
	case 7:
		memcpy(&b32, p, 4);
		return (u64)be32_to_cpu(b32) << (8 * (bytes - 4)) |
		       (bytes == 5   ? p[4]
			: bytes == 6 ? (u64)p[4] << 8 | p[5]
				     : (u64)p[4] << 16 | (u64)p[5] << 8 | p[6]);
	default:
		memcpy(&b64, p, 8);
		return be64_to_cpu(b64);
	}
}

wire_inline void wire_store(u8 *p, unsigned int bytes, u64 v)
{
	__be16 b16;
	__be32 b32;
	__be64 b64;

	switch (bytes) {
	case 1:
		p[0] = v;
		return;
	case 2:
		b16 = cpu_to_be16(v);
		memcpy(p, &b16, 2);
		return;
	case 3:
		p[0] = v >> 16;
		p[1] = v >> 8;
		p[2] = v;
		return;
	case 4:
		b32 = cpu_to_be32(v);
		memcpy(p, &b32, 4);
		return;
	case 7:
		p[bytes - 3] = v >> 16;
		/* fallthrough */
	case 6:
		p[bytes - 2] = v >> 8;
		/* fallthrough */
	case 5:
		p[bytes - 1] = v;
		b32 = cpu_to_be32(v >> (8 * (bytes - 4)));
		memcpy(p, &b32, 4);
		return;
	default:
		b64 = cpu_to_be64(v);
		memcpy(p, &b64, 8);
	}
}

/* The value of a field of 1 to 64 bits; reads only the field's bytes. */
wire_inline u64 wire_get(const void *base, struct wire_field f)
{
	const u8 *p = (const u8 *)base + f.bit / 8;
	unsigned int end = f.bit % 8u + f.width;
	u64 v;

	if (end > 64)
		v = wire_load(p, 8) << (end - 64) | (u64)(p[8] >> (72 - end));
	else
		v = wire_load(p, (end + 7) / 8) >> (-end % 8u);
	return f.width == 64 ? v : v & ((1ull << f.width) - 1);
}

/* Stores the low bits of V in a field of 1 to 64 bits; neighbouring bits are unchanged. */
wire_inline void wire_set(void *base, struct wire_field f, u64 v)
{
	u8 *p = (u8 *)base + f.bit / 8;
	unsigned int end = f.bit % 8u + f.width;
	u64 mask = f.width == 64 ? ~0ull : (1ull << f.width) - 1;
	unsigned int bytes = (end + 7) / 8, shift = -end % 8u;

	v &= mask;
	if (end > 64) {
		unsigned int low = end - 64;

		wire_store(p, 8, (wire_load(p, 8) & ~(mask >> low)) | v >> low);
		p[8] = (p[8] & (0xff >> low)) | (u8)(v << (8 - low));
	} else if (shift == 0 && f.width == bytes * 8) {
		wire_store(p, bytes, v);
	} else {
		wire_store(p, bytes, (wire_load(p, bytes) & ~(mask << shift)) | v << shift);
	}
}

/* Loads a structure member of 1, 2 or 4 bytes in host order. */
static inline u32 wire_member_load(const void *member, u32 size)
{
	u16 v16;
	u32 v;

	if (size == 1)
		return *(const u8 *)member;
	if (size == 2) {
		memcpy(&v16, member, sizeof(v16));
		return v16;
	}
	memcpy(&v, member, sizeof(v));
	return v;
}

static inline void wire_member_store(void *member, u32 size, u32 v)
{
	u16 v16 = (u16)v;

	if (size == 1)
		*(u8 *)member = (u8)v;
	else
		memcpy(member, size == 2 ? (void *)&v16 : (void *)&v, size == 2 ? sizeof(v16) : sizeof(v));
}

/* Pointer to a byte-aligned field: a string, GID or blob. */
wire_inline void *wire_bytes(void *base, struct wire_field f)
{
	return (u8 *)base + f.bit / 8;
}

wire_inline const void *wire_cbytes(const void *base, struct wire_field f)
{
	return (const u8 *)base + f.bit / 8;
}

wire_inline void wire_copy_in(void *base, struct wire_field f, const void *src)
{
	memcpy(wire_bytes(base, f), src, f.width / 8);
}

wire_inline void wire_copy_out(const void *base, struct wire_field f, void *dst)
{
	memcpy(dst, wire_cbytes(base, f), f.width / 8);
}

#endif

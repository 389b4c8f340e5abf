/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Integer types, big-endian types for sparse, and common macros. */
#ifndef MUSLIN_LIB_TYPES_H
#define MUSLIN_LIB_TYPES_H

#include <assert.h>
#include <endian.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#ifdef __CHECKER__
#define __force __attribute__((force))
#else
#define __force
#endif

static inline u16 be16_to_cpu(__be16 v)
{
	return be16toh((__force u16)v);
}
static inline u32 be32_to_cpu(__be32 v)
{
	return be32toh((__force u32)v);
}
static inline u64 be64_to_cpu(__be64 v)
{
	return be64toh((__force u64)v);
}
static inline __be16 cpu_to_be16(u16 v)
{
	return (__force __be16)htobe16(v);
}
static inline __be32 cpu_to_be32(u32 v)
{
	return (__force __be32)htobe32(v);
}
static inline __be64 cpu_to_be64(u64 v)
{
	return (__force __be64)htobe64(v);
}

static inline u16 le16_to_cpu(__le16 v)
{
	return le16toh((__force u16)v);
}
static inline u32 le32_to_cpu(__le32 v)
{
	return le32toh((__force u32)v);
}
static inline u64 le64_to_cpu(__le64 v)
{
	return le64toh((__force u64)v);
}
static inline __le16 cpu_to_le16(u16 v)
{
	return (__force __le16)htole16(v);
}
static inline __le32 cpu_to_le32(u32 v)
{
	return (__force __le32)htole32(v);
}
static inline __le64 cpu_to_le64(u64 v)
{
	return (__force __le64)htole64(v);
}

/* Time since an arbitrary start, read once per wake-up of the loop and passed down. */
struct now {
	u64 ns;
};

#define NSEC_PER_USEC 1000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_SEC  1000000000ull

#define ARRAY_SIZE(a)                   (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define min(a, b)                       \
	({                              \
		__typeof__(a) _a = (a); \
		__typeof__(b) _b = (b); \
		_a < _b ? _a : _b;      \
	})
#define max(a, b)                       \
	({                              \
		__typeof__(a) _a = (a); \
		__typeof__(b) _b = (b); \
		_a > _b ? _a : _b;      \
	})
#define BIT(n)      (1u << (n))
#define BIT_ULL(n)  (1ull << (n))
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The noun of a count in a message: plural(n, "switch", "switches"). */
#define plural(n, one, more) ((n) == 1 ? (one) : (more))

/* The names of a module's counters, from its list of C(NUMBER, "name") in the order of their numbers. */
#define COUNTER_NAME(number, name) name,

#endif

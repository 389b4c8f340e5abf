/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Recycled memory under AddressSanitizer: free entries of rings and tables are poisoned, and pools keep nothing. */
#ifndef MUSLIN_LIB_POISON_H
#define MUSLIN_LIB_POISON_H

#include "emu/lib/types.h"

#if defined(__SANITIZE_ADDRESS__)
#define POISON_ENABLED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON_ENABLED 1
#endif
#endif

#ifdef POISON_ENABLED
#include <sanitizer/asan_interface.h>

/* A pool that frees instead of keeping leaves its memory to the sanitizer's quarantine, which records who freed it. */
#define POOLS_KEEP 0
static inline void poison(const void *p, size_t len)
{
	ASAN_POISON_MEMORY_REGION(p, len);
}
static inline void unpoison(const void *p, size_t len)
{
	ASAN_UNPOISON_MEMORY_REGION(p, len);
}
#else
#define POOLS_KEEP 1
static inline void poison(const void *p, size_t len) {}
static inline void unpoison(const void *p, size_t len) {}
#endif

/* From member @first to the end of *@p. */
#define POISON_FROM(p, first)   poison(&(p)->first, sizeof(*(p)) - offsetof(__typeof__(*(p)), first))
#define UNPOISON_FROM(p, first) unpoison(&(p)->first, sizeof(*(p)) - offsetof(__typeof__(*(p)), first))

#endif

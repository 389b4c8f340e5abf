/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Items of the fuzzer's input, which a daemon built with RECORD=1 writes, too: one byte kind, one argument, two length
 * (little endian), then the data. A guest's addresses below 4 GiB are folded into the fuzzer's memory.
 */
#ifndef MUSLIN_CONNECTX_FUZZ_ITEMS_H
#define MUSLIN_CONNECTX_FUZZ_ITEMS_H

#include "emu/lib/types.h"

enum {
	FUZZ_COMMAND,
	FUZZ_DOORBELL, /* argument: bit 2 send, otherwise the offset in the UAR in units of 32 bytes */
	FUZZ_BAR,
	FUZZ_MEMORY, /* data: four bytes offset, then what is written there */
	FUZZ_ENTRY,  /* raw entry of the command queue */
	FUZZ_UNMAP,
	FUZZ_RESET,
	FUZZ_ITEMS
};

#define FUZZ_MEM        0xf0000u /* bytes of memory that items write to */
#define FUZZ_GUEST_END  (1ull << 32)
#define FUZZ_FOLD(addr) ((u32)((addr) % FUZZ_MEM))

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Input of a fuzzer, recorded from a real client in a build with RECORD=1: items in files of limited size, prefix.0,
 * prefix.1 and so on, each of which the fuzzer runs by itself. The prefix is in an environment variable.
 */
#ifndef MUSLIN_LIB_RECORDING_H
#define MUSLIN_LIB_RECORDING_H

#include <stdio.h>

#include "emu/lib/types.h"

struct recording {
	const char *variable; /* of the environment; nothing is written where it is not set */
	FILE *file;
	u32 number, size;
};

/* Writes an item: @kind, @arg, the length of both parts (little endian), and these; @head may be NULL. */
void recording_item(struct recording *r, u8 kind, u8 arg, const void *head, u32 head_len, const void *data, u32 len);

#endif

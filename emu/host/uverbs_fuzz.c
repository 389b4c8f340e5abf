// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A hostile user of a uverbs file. Input, repeated: a command number (64: the extended form, 128: the input includes
 * the header), the command's length in words, words of an extended command's provider part (of a REG_MR: 1 names
 * existing memory), then the bytes.
 */
#include "emu/host/fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define ROOM 256 /* bytes for the response, and for the provider's part */
static size_t head(u8 *in, const u8 *how, size_t body)
{
	struct ib_uverbs_cmd_hdr hdr = { .command = how[0] & 63,
					 .in_words = (u16)((sizeof(hdr) + body) / 4),
					 .out_words = ROOM / 4 };
	struct ib_uverbs_ex_cmd_hdr ex = { .provider_in_words = how[2] / 8, .provider_out_words = ROOM / 8 };

	if (how[0] & 64) {
		hdr.command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
		hdr.in_words = (u16)(body / 8 - min(body / 8, (size_t)ex.provider_in_words));
		hdr.out_words = ROOM / 8;
		memcpy(in + sizeof(hdr), &ex, sizeof(ex));
	}
	memcpy(in, &hdr, sizeof(hdr));
	return how[0] & 64 ? sizeof(hdr) + sizeof(ex) : sizeof(hdr);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 in[2048], out[4096];
	struct desk d;
	size_t n, at;

	desk_open(&d);
	for (; size > 3; data += n, size -= n) {
		const u8 *how = data;

		data += 3, size -= 3;
		n = min(size, (size_t)how[1] * 4);
		at = how[0] & 128 ? 0 : head(in, how, n);
		memcpy(in + at, data, n);
		if (how[0] == IB_USER_VERBS_CMD_REG_MR && how[2] == 1)
			memcpy(in + at + 8, (u64[]){ (u64)(uintptr_t)desk_arena, (u64)(uintptr_t)desk_arena }, 16);
		desk_write(&d, in, at + n, out, sizeof(out));
		desk_run(&d, NSEC_PER_MSEC);
	}
	desk_close(&d);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files of fuzzers' items. */
#include "emu/lib/recording.h"

#include <stdlib.h>

#define FILE_MAX (12u << 10)

static void recording_open(struct recording *r)
{
	const char *prefix = getenv(r->variable);
	char path[256];

	if (r->file && r->size > FILE_MAX) {
		fclose(r->file);
		r->file = NULL;
	}
	if (r->file || !prefix)
		return;
	snprintf(path, sizeof(path), "%s.%u", prefix, r->number++);
	r->file = fopen(path, "we");
	r->size = 0;
}

void recording_item(struct recording *r, u8 kind, u8 arg, const void *head, u32 head_len, const void *data, u32 len)
{
	u8 h[4] = { kind, arg, (u8)(head_len + len), (u8)((head_len + len) >> 8) };

	recording_open(r);
	if (!r->file)
		return;
	r->size += (u32)fwrite(h, 1, sizeof(h), r->file);
	if (head_len)
		r->size += (u32)fwrite(head, 1, head_len, r->file);
	if (len)
		r->size += (u32)fwrite(data, 1, len, r->file);
	fflush(r->file); /* the daemon may be killed */
}

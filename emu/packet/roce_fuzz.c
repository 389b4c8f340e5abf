// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as a RoCEv2 datagram, with a valid ICRC appended: an accepted packet must serialize to the same bytes. */
#include <stdlib.h>

#include "emu/packet/roce.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static const struct wire_roce path = { .sport = 0xc000, .ttl = 64 };

static void same(const struct wire_packet *p, const u8 *data, u32 size)
{
	u8 out[WIRE_ROCE_FRAME];
	int n = wire_roce_frame(p, &path, out, sizeof(out));
	u32 body = p->hdr_len - p->bth_off + p->len;

	if (n < 0 || body > size || memcmp(out + n - wire_roce_len(p), data, body))
		abort();
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct wire_packet *p, draft = { 0 };
	struct wire_buf *buf;
	u8 tail[WIRE_ROCE_TAIL_MAX];

	if (size > WIRE_MTU_MAX + 64 || size < 16)
		return 0;
	buf = wire_buf_alloc((u32)size);
	memcpy(buf->data, data, size);
	draft.hdr_len = 0;
	draft.data = data;
	draft.len = (u32)size - 4;
	if (!(size & 3) && (data[0] & 0xe0) < 0xa0) { /* the ICRC of all bytes as payload, except the BTH's fifth */
		buf->data[4] = 0xff;
		draft.data = buf->data;
		wire_roce_tail(&draft, &path, tail);
		memcpy(buf->data + size - 4, tail, 4);
	}
	p = wire_roce_parse(buf, 0, (u32)size, &path);
	if (p) {
		same(p, buf->data, (u32)size);
		wire_packet_free(p);
	}
	wire_buf_put(buf);
	return 0;
}

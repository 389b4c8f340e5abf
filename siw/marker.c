// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * MPA markers (RFC 5044, 4.3): four bytes before each byte of the stream whose number is a multiple of 512, counted
 * from the first byte of the first FPDU; each is the distance back to the start of its FPDU.
 */
#include "siw/iwarp.h"

#define INTERVAL 512u
#define CONTENT  (INTERVAL - SIW_MARKER_SIZE)

/* Bytes from @pos to the next marker. */
static u32 marker_distance(u64 pos)
{
	return (u32)(-pos & (INTERVAL - 1));
}

u32 siw_marker_lead(u64 pos)
{
	return marker_distance(pos) ? 0 : SIW_MARKER_SIZE;
}

u32 siw_marker_bytes(u64 pos, u32 len)
{
	u32 distance = marker_distance(pos);

	return len > distance ? ((len - distance - 1) / CONTENT + 1) * SIW_MARKER_SIZE : 0;
}

/*
 * Pointer of a marker @at bytes after the start of the FPDU: distance to its length field; 0 for a marker before that
 * field.
 */
static u16 pointer(u64 pos, u32 at)
{
	return (u16)(at ? at - siw_marker_lead(pos) : 0);
}

void siw_marker_insert(u8 *p, u64 pos, u32 len)
{
	u32 from = siw_marker_bytes(pos, len), to = 0, distance = marker_distance(pos);

	while (from != to) {
		u16 ptr = pointer(pos, to + distance);

		memmove(p + to, p + from, distance);
		to += distance;
		from += distance;
		p[to] = p[to + 1] = 0;
		p[to + 2] = (u8)(ptr >> 8);
		p[to + 3] = (u8)ptr;
		to += SIW_MARKER_SIZE;
		distance = CONTENT;
	}
}

bool siw_marker_remove(u8 *p, u64 pos, u32 len)
{
	u32 from = 0, to = 0, distance = marker_distance(pos), whole = len + siw_marker_bytes(pos, len);
	bool right = true;

	while (whole - from > distance) {
		memmove(p + to, p + from, distance);
		to += distance;
		from += distance;
		right &= (((u32)p[from + 2] << 8 | p[from + 3]) & ~3u) == pointer(pos, from);
		from += SIW_MARKER_SIZE;
		distance = CONTENT;
	}
	memmove(p + to, p + from, whole - from);
	return right;
}

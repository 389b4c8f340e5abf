// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Markers of MPA: four bytes in front of each byte of the stream whose number is a multiple of 512, from the first FPDU's
 * first byte on; they say how far back the FPDU begins. RFC 5044, 4.3.
 */
#include "siw/iwarp.h"

#define INTERVAL 512u
#define CONTENT  (INTERVAL - SIW_MARKER_SIZE)

/* Bytes from @pos to the next marker. */
static u32 gap_of(u64 pos)
{
	return (u32)(-pos & (INTERVAL - 1));
}

u32 siw_marker_lead(u64 pos)
{
	return gap_of(pos) ? 0 : SIW_MARKER_SIZE;
}

u32 siw_marker_bytes(u64 pos, u32 len)
{
	u32 gap = gap_of(pos);

	return len > gap ? ((len - gap - 1) / CONTENT + 1) * SIW_MARKER_SIZE : 0;
}

/* What a marker @at bytes behind the FPDU's beginning says: the distance to its length field, 0 where it stands before that. */
static u16 pointer(u64 pos, u32 at)
{
	return (u16)(at ? at - siw_marker_lead(pos) : 0);
}

void siw_marker_insert(u8 *p, u64 pos, u32 len)
{
	u32 from = siw_marker_bytes(pos, len), to = 0, gap = gap_of(pos);

	while (from != to) {
		u16 ptr = pointer(pos, to + gap);

		memmove(p + to, p + from, gap);
		to += gap;
		from += gap;
		p[to] = p[to + 1] = 0;
		p[to + 2] = (u8)(ptr >> 8);
		p[to + 3] = (u8)ptr;
		to += SIW_MARKER_SIZE;
		gap = CONTENT;
	}
}

bool siw_marker_remove(u8 *p, u64 pos, u32 len)
{
	u32 from = 0, to = 0, gap = gap_of(pos), whole = len + siw_marker_bytes(pos, len);
	bool right = true;

	while (whole - from > gap) {
		memmove(p + to, p + from, gap);
		to += gap;
		from += gap;
		right &= (((u32)p[from + 2] << 8 | p[from + 3]) & ~3u) == pointer(pos, from);
		from += SIW_MARKER_SIZE;
		gap = CONTENT;
	}
	memmove(p + to, p + from, whole - from);
	return right;
}

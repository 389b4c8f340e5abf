// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* MPA markers (RFC 5044, 4.3), compared with a stream that is built byte by byte. */
#include <stdio.h>

#include "siw/iwarp.h"

#define STREAM (1u << 20)

static u32 passed, failed;

static void row(int n, const char *what, bool ok)
{
	if (ok) {
		passed++;
	} else {
		failed++;
		printf("row %d: %s\n", n, what);
	}
}

static u8 plain[70000], stream[STREAM];
static u64 end;

/* Appends an FPDU byte by byte, as RFC 5044, 4.3, describes. Returns the position of its start. */
static u64 say(u32 len)
{
	u64 begin = end, field = 0;
	u32 i;

	for (i = 0; i < len; i++) {
		if (end % 512 == 0) {
			u64 back = i ? end - field : 0;

			stream[end++] = 0;
			stream[end++] = 0;
			stream[end++] = (u8)(back >> 8);
			stream[end++] = (u8)back;
		}
		if (!i)
			field = end;
		stream[end++] = plain[i];
	}
	return begin;
}

static void test_all(void)
{
	static const u32 lens[] = { 20,    508,   512, 24,  4,   1016, 480, 8,   504,
				    32800, 65544, 28,  508, 508, 484,  24,  508, 1024 };
	static u8 p[70000];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		u32 len = lens[i];
		u64 pos = say(len);
		u32 markers = siw_marker_bytes(pos, len);

		row(10 + (int)i, "length of markers", len + markers == (u32)(end - pos));
		memcpy(p + markers, plain, len);
		siw_marker_insert(p, pos, len);
		row(40 + (int)i, "positions and values of markers", !memcmp(p, stream + pos, len + markers));
		row(70 + (int)i, "markers removed", siw_marker_remove(p, pos, len) && !memcmp(p, plain, len));
	}
}

static void test_wrong(void)
{
	static const struct {
		const char *what;
		u32 at;
		u8 flip;
		bool right;
	} rows[] = {
		{ "a marker in front that points back", 3, 4, false },
		{ "a marker that points elsewhere", 512 + 3, 8, false },
		{ "the last one", 1024 + 2, 1, false },
		{ "the lowest bits are ignored", 512 + 3, 3, true },
		{ "nor does what is reserved", 512, 0xff, true },
	};
	u8 p[1400];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		u32 markers = siw_marker_bytes(0, 1200);

		memcpy(p + markers, plain, 1200);
		siw_marker_insert(p, 0, 1200);
		p[rows[i].at] ^= rows[i].flip;
		row(100 + (int)i, rows[i].what, siw_marker_remove(p, 0, 1200) == rows[i].right);
	}
	row(110, "marker before the first FPDU", siw_marker_lead(0) == 4 && siw_marker_lead(512) == 4);
	row(111, "no marker before another FPDU", !siw_marker_lead(20) && !siw_marker_lead(508));
}

int main(void)
{
	u32 i;

	for (i = 0; i < sizeof(plain); i++)
		plain[i] = (u8)(i * 11 + (i >> 8) + 1);
	test_all();
	test_wrong();
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The IBTA code tables of rates (15.2.5.16), speeds (14.2.5.6) and RNR timers (9.7.5.2.8). */
#include <strings.h>

#include "emu/wire/gid.h"

static const struct {
	const char *name;
	u32 mbps;
} rates[] = {
	[WIRE_RATE_2_5] = { "2.5", 2500 },      [WIRE_RATE_10] = { "10", 10000 },
	[WIRE_RATE_30] = { "30", 30000 },       [WIRE_RATE_5] = { "5", 5000 },
	[WIRE_RATE_20] = { "20", 20000 },       [WIRE_RATE_40] = { "40", 40000 },
	[WIRE_RATE_60] = { "60", 60000 },       [WIRE_RATE_80] = { "80", 80000 },
	[WIRE_RATE_120] = { "120", 120000 },    [WIRE_RATE_14] = { "14", 14062 },
	[WIRE_RATE_56] = { "56", 56250 },       [WIRE_RATE_112] = { "112", 112500 },
	[WIRE_RATE_168] = { "168", 168750 },    [WIRE_RATE_25] = { "25", 25781 },
	[WIRE_RATE_100] = { "100", 103125 },    [WIRE_RATE_200] = { "200", 206250 },
	[WIRE_RATE_300] = { "300", 309375 },    [WIRE_RATE_28] = { "28", 28125 },
	[WIRE_RATE_50] = { "50", 53125 },       [WIRE_RATE_400] = { "400", 425000 },
	[WIRE_RATE_600] = { "600", 637500 },    [WIRE_RATE_800] = { "800", 850000 },
	[WIRE_RATE_1200] = { "1200", 1275000 },
};
static_assert(ARRAY_SIZE(rates) == WIRE_RATE_NUM, "one row for each rate");

u32 wire_rate_mbps(u8 code)
{
	return code < WIRE_RATE_NUM ? rates[code].mbps : 0;
}

const char *wire_rate_name(u8 code)
{
	return code < WIRE_RATE_NUM && rates[code].name ? rates[code].name : "?";
}

unsigned int wire_width_lanes(u8 width)
{
	switch (width) {
	case 1:
		return 1;
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	}
	return 0;
}

enum {
	LANES_1,
	LANES_2,
	LANES_4,
	LANES_8,
	LANES_12,
	LANES_NUM
};

static const struct {
	const char *name;
	u32 data_kbps; /* per lane */
	u8 rate[LANES_NUM];
} speeds[] = {
	[WIRE_SPEED_NONE] = { "none", 0, {} },
	[WIRE_SPEED_SDR] = { "SDR", 2000000, { WIRE_RATE_2_5, WIRE_RATE_5, WIRE_RATE_10, WIRE_RATE_20, WIRE_RATE_30 } },
	[WIRE_SPEED_DDR] = { "DDR", 4000000, { WIRE_RATE_5, WIRE_RATE_10, WIRE_RATE_20, WIRE_RATE_40, WIRE_RATE_60 } },
	[WIRE_SPEED_QDR] = { "QDR",
			     8000000,
			     { WIRE_RATE_10, WIRE_RATE_20, WIRE_RATE_40, WIRE_RATE_80, WIRE_RATE_120 } },
	[WIRE_SPEED_FDR10] = { "FDR10",
			       10000000,
			       { WIRE_RATE_10, WIRE_RATE_20, WIRE_RATE_40, WIRE_RATE_80, WIRE_RATE_120 } },
	[WIRE_SPEED_FDR] = { "FDR",
			     13636364,
			     { WIRE_RATE_14, WIRE_RATE_28, WIRE_RATE_56, WIRE_RATE_112, WIRE_RATE_168 } },
	[WIRE_SPEED_EDR] = { "EDR",
			     25000000,
			     { WIRE_RATE_25, WIRE_RATE_50, WIRE_RATE_100, WIRE_RATE_200, WIRE_RATE_300 } },
	[WIRE_SPEED_HDR] = { "HDR",
			     50000000,
			     { WIRE_RATE_50, WIRE_RATE_100, WIRE_RATE_200, WIRE_RATE_400, WIRE_RATE_600 } },
	[WIRE_SPEED_NDR] = { "NDR",
			     100000000,
			     { WIRE_RATE_100, WIRE_RATE_200, WIRE_RATE_400, WIRE_RATE_800, WIRE_RATE_1200 } },
	[WIRE_SPEED_XDR] = { "XDR", 200000000, { WIRE_RATE_200, WIRE_RATE_400, WIRE_RATE_800, 0, 0 } },
};
static_assert(ARRAY_SIZE(speeds) == WIRE_SPEED_NUM, "one row for each speed");

const char *wire_speed_name(enum wire_speed speed)
{
	return speed < WIRE_SPEED_NUM ? speeds[speed].name : "?";
}

enum wire_speed wire_speed_from_name(const char *name)
{
	for (enum wire_speed s = WIRE_SPEED_SDR; s < WIRE_SPEED_NUM; s++)
		if (strcasecmp(name, speeds[s].name) == 0)
			return s;
	return WIRE_SPEED_NONE;
}

enum wire_speed wire_speed_active(u8 link_speed, u8 link_speed_ext)
{
	switch (link_speed_ext) {
	case 1:
		return WIRE_SPEED_FDR;
	case 2:
		return WIRE_SPEED_EDR;
	case 4:
		return WIRE_SPEED_HDR;
	case 8:
		return WIRE_SPEED_NDR;
	case 32:
		return WIRE_SPEED_XDR;
	}
	switch (link_speed) {
	case 1:
		return WIRE_SPEED_SDR;
	case 2:
		return WIRE_SPEED_DDR;
	case 4:
		return WIRE_SPEED_QDR;
	}
	return WIRE_SPEED_NONE;
}

u8 wire_link_rate(enum wire_speed speed, unsigned int lanes)
{
	static const u8 column[] = {
		[1] = LANES_1 + 1, [2] = LANES_2 + 1, [4] = LANES_4 + 1, [8] = LANES_8 + 1, [12] = LANES_12 + 1,
	};

	if (speed >= WIRE_SPEED_NUM || lanes >= ARRAY_SIZE(column) || !column[lanes])
		return 0;
	return speeds[speed].rate[column[lanes] - 1];
}

u64 wire_link_data_kbps(enum wire_speed speed, unsigned int lanes)
{
	return speed < WIRE_SPEED_NUM ? (u64)speeds[speed].data_kbps * lanes : 0;
}

/* In microseconds. */
static const u32 rnr_timers[32] = {
	655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,    320,
	480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
	20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

u64 wire_rnr_timer_ns(u8 code)
{
	return rnr_timers[code & 31] * NSEC_PER_USEC;
}

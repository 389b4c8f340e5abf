/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Every offset and width of a bit field compared with a bit-by-bit model, and the code tables of gid.h. */
#include "emu/lib/rng.h"
#include "emu/lib/row.h"
#include "emu/wire/field.h"
#include "emu/wire/gid.h"
#include "emu/wire/smp.h"

static u64 model_get(const u8 *p, unsigned int bit, unsigned int width)
{
	u64 v = 0;

	for (unsigned int i = bit; i < bit + width; i++)
		v = v << 1 | (p[i / 8] >> (7 - i % 8) & 1);
	return v;
}

static void model_set(u8 *p, unsigned int bit, unsigned int width, u64 v)
{
	for (unsigned int i = 0; i < width; i++) {
		unsigned int at = bit + width - 1 - i;
		u8 mask = 0x80 >> at % 8;

		p[at / 8] = (p[at / 8] & ~mask) | (v >> i & 1 ? mask : 0);
	}
}

/* The buffer ends with the field's last byte, so that a sanitizer detects any access beyond it. */
static bool one_field(unsigned int bit, unsigned int width, struct rng *rng)
{
	unsigned int len = (bit + width + 7) / 8;
	u8 got[len], want[len];
	u64 v = rng_next(rng);
	bool ok = true;

	for (unsigned int i = 0; i < len; i++)
		got[i] = want[i] = rng_next(rng);
	ok &= wire_get(got, WIRE_FIELD(bit, width)) == model_get(want, bit, width);
	wire_set(got, WIRE_FIELD(bit, width), v);
	model_set(want, bit, width, v);
	ok &= memcmp(got, want, len) == 0;
	ok &= wire_get(got, WIRE_FIELD(bit, width)) == (width == 64 ? v : v & ((1ull << width) - 1));
	return ok;
}

static void test_fields(void)
{
	struct rng rng = { 1 };

	for (unsigned int bit = 0; bit < 80; bit++)
		for (unsigned int width = 1; width <= 64; width++)
			row(bit * 100 + width, "field", one_field(bit, width, &rng));
}

static void test_constants(void)
{
	static const struct {
		struct wire_field f;
		u64 value;
		u8 at, byte;
	} rows[] = {
		{ PORTINFO_STATE, 4, 32, 0x04 },
		{ PORTINFO_PHYS_STATE, 5, 33, 0x50 },
		{ PORTINFO_LMC, 7, 34, 0x07 },
		{ PORTINFO_LID, 0x1234, 17, 0x34 },
		{ NODEINFO_VENDOR_ID, 0xabcdef, 37, 0xab },
		{ SMP_D, 1, 4, 0x80 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		u8 buf[256] = {};

		wire_set(buf, rows[i].f, rows[i].value);
		row(i, "constant", buf[rows[i].at] == rows[i].byte);
	}
}

static void test_bytes(void)
{
	struct wire_gid gid = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, 0x0002c90300001234ull), back;
	u8 buf[64] = {};

	wire_copy_in(buf, WIRE_FIELD(128, 128), &gid);
	row(0, "copy in", buf[16] == 0xfe && buf[31] == 0x34);
	wire_copy_out(buf, WIRE_FIELD(128, 128), &back);
	row(0, "copy out", wire_gid_equal(&gid, &back));
	row(0, "bytes", wire_bytes(buf, WIRE_FIELD(128, 128)) == buf + 16);
	row(0, "at", wire_get(buf, WIRE_AT(16, WIRE_FIELD(64, 64))) == 0x0002c90300001234ull);
}

static void test_gid(void)
{
	struct wire_gid gid = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, 0x0002c90300001234ull);
	struct wire_gid mgid = wire_gid_make(0xff12401bffff0000ull, 1);

	row(0, "gid prefix", wire_gid_prefix(&gid) == WIRE_GID_PREFIX_DEFAULT);
	row(0, "gid guid", wire_gid_guid(&gid) == 0x0002c90300001234ull);
	row(0, "gid multicast", !wire_gid_is_multicast(&gid) && wire_gid_is_multicast(&mgid));
	row(0, "mgid scope", wire_mgid_scope(&mgid) == 2 && wire_mgid_flags(&mgid) == 1);
	row(0, "gid order", wire_gid_cmp(&gid, &mgid) < 0);
}

static void test_pkeys(void)
{
	static const struct {
		u16 a, b;
		bool match;
	} rows[] = {
		{ 0xffff, 0xffff, true },  { 0xffff, 0x7fff, true },  { 0x7fff, 0x7fff, false },
		{ 0x8001, 0x0001, true },  { 0x8001, 0x8002, false }, { 0x8000, 0x8000, false },
		{ 0x0000, 0x8000, false }, { 0, 0, false },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++)
		row(i, "pkey", wire_pkey_match(rows[i].a, rows[i].b) == rows[i].match);
}

static void test_codes(void)
{
	static const struct {
		enum wire_speed speed;
		u8 lanes, rate;
	} links[] = {
		{ WIRE_SPEED_SDR, 1, WIRE_RATE_2_5 },
		{ WIRE_SPEED_SDR, 4, WIRE_RATE_10 },
		{ WIRE_SPEED_DDR, 12, WIRE_RATE_60 },
		{ WIRE_SPEED_QDR, 4, WIRE_RATE_40 },
		{ WIRE_SPEED_FDR, 4, WIRE_RATE_56 },
		{ WIRE_SPEED_EDR, 4, WIRE_RATE_100 },
		{ WIRE_SPEED_HDR, 2, WIRE_RATE_100 },
		{ WIRE_SPEED_HDR, 4, WIRE_RATE_200 },
		{ WIRE_SPEED_NDR, 4, WIRE_RATE_400 },
		{ WIRE_SPEED_FDR10, 4, WIRE_RATE_40 },
		{ WIRE_SPEED_XDR, 4, WIRE_RATE_800 },
		{ WIRE_SPEED_SDR, 3, 0 },
		{ WIRE_SPEED_NONE, 4, 0 },
	};
	static const u32 lane_mbps[] = {
		/* signalling */
		[WIRE_SPEED_SDR] = 2500,    [WIRE_SPEED_DDR] = 5000,   [WIRE_SPEED_QDR] = 10000,
		[WIRE_SPEED_FDR10] = 10312, [WIRE_SPEED_FDR] = 14062,  [WIRE_SPEED_EDR] = 25781,
		[WIRE_SPEED_HDR] = 53125,   [WIRE_SPEED_NDR] = 106250, [WIRE_SPEED_XDR] = 212500
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(links); i++)
		row(i, "link rate", wire_link_rate(links[i].speed, links[i].lanes) == links[i].rate);
	for (u8 lanes = 1; lanes <= 12; lanes++)
		for (enum wire_speed s = WIRE_SPEED_SDR; s < WIRE_SPEED_NUM; s++) {
			u8 code = wire_link_rate(s, lanes);
			u32 link = lane_mbps[s] * lanes, rate = wire_rate_mbps(code);

			/* The rate code uses 25.78 Gb/s per lane for EDR, 53.125 from HDR
			 * on: rates agree approximately. */
			row(s * 100 + lanes, "rate of link", !code || (rate > link * 0.96 && rate < link * 1.04));
		}
	row(0, "speed name", wire_speed_from_name("edr") == WIRE_SPEED_EDR);
	row(1, "speed name", wire_speed_from_name("x") == WIRE_SPEED_NONE);
	row(0, "speed active", wire_speed_active(LINK_SPEED_QDR, 0) == WIRE_SPEED_QDR);
	row(110, "speed active", wire_speed_active(0, LINK_SPEED_EXT_HDR) == WIRE_SPEED_HDR);
	row(2, "speed active", wire_speed_active(0, LINK_SPEED_EXT_XDR) == WIRE_SPEED_XDR);
	row(0, "data rate", wire_link_data_kbps(WIRE_SPEED_QDR, 4) == 32000000);
	row(111, "data rate", wire_link_data_kbps(WIRE_SPEED_XDR, 4) == 800000000);
	row(0, "width", wire_width_lanes(LINK_WIDTH_4X) == 4 && wire_width_lanes(LINK_WIDTH_2X) == 2);
	row(112, "width", wire_width_lanes(LINK_WIDTH_1X | LINK_WIDTH_4X) == 0);
	row(0, "mtu", wire_mtu_bytes(WIRE_MTU_256) == 256 && wire_mtu_bytes(WIRE_MTU_4096) == 4096);
	row(113, "mtu", wire_mtu_bytes(0) == 0 && wire_mtu_bytes(6) == 0);
	row(114, "mtu", wire_mtu_code(2048) == WIRE_MTU_2048 && wire_mtu_code(1500) == WIRE_MTU_1024);
	row(3, "mtu", wire_mtu_code(255) == 0);
	row(0, "timeout", wire_timeout_ns(14) == 67108864);
	for (u8 i = 0; i < 32; i++) {
		/* Ascending from code 1 on; code 0 is the longest. */
		row(i, "rnr", i < 2 || wire_rnr_timer_ns(i) > wire_rnr_timer_ns(i - 1));
		row(i, "rnr longest", !i || wire_rnr_timer_ns(i) < wire_rnr_timer_ns(0));
	}
	row(100, "rnr", wire_rnr_timer_ns(12) == 640000 && wire_rnr_timer_ns(0) == 655360000);
	row(0, "vl count", wire_vl_count(5) == 15 && wire_vl_count(3) == 4 && wire_vl_count(6) == 0);
	row(0, "state name", strcmp(wire_port_state_name(PORT_STATE_INIT), "Initialize") == 0);
	row(115, "state name", strcmp(wire_phys_state_name(200), "?") == 0);
	row(0, "attr name", strcmp(wire_smp_attr_name(SMP_ATTR_PORT_INFO), "PortInfo") == 0);
}

int main(void)
{
	test_fields();
	test_constants();
	test_bytes();
	test_gid();
	test_pkeys();
	test_codes();
	return rows_end();
}

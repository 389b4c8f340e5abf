// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fault target: InfiniBand links and nodes; its table of keys and kinds. */
#include "fabric/fault_internal.h"

static bool parse_speed(void *to, const char *value)
{
	enum wire_speed speed = wire_speed_from_name(value);

	*(u8 *)to = (u8)speed;
	return speed != WIRE_SPEED_NONE;
}

static bool parse_lanes(void *to, const char *value)
{
	u64 n;

	if (!spec_number(value, 12, &n) || !(BIT((u32)n) & (BIT(1) | BIT(2) | BIT(4) | BIT(8) | BIT(12))))
		return false;
	*(u8 *)to = (u8)n;
	return true;
}

static bool parse_mtu(void *to, const char *value)
{
	u64 n;

	*(u8 *)to = spec_number(value, WIRE_MTU_MAX, &n) ? wire_mtu_code((u32)n) : 0;
	return *(u8 *)to && wire_mtu_bytes(*(u8 *)to) == n;
}

#define KEY(name, type, member, ...) SPEC_FIELD(name, type, fabric_fault, member, ##__VA_ARGS__)
#define BY(fn, text)                 .parse = fn, .wants = text
#define OWN(key)                     [FAULT_##key - FAULT_OWN]
#define SPEEDS                       "SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR"
static const struct spec_field keys[] = {
	OWN(WHAT) = KEY("what", SPEC_NAME, ft.what, .names = "payload|header|icrc|vcrc",
			.wants = "payload, header, icrc or vcrc"),
	OWN(LANES) = KEY("lanes", SPEC_OTHER, lanes, BY(parse_lanes, "1, 2, 4, 8 or 12")),
	OWN(SPEED) = KEY("speed", SPEC_OTHER, speed, BY(parse_speed, SPEEDS)),
	OWN(WITH) = KEY("with", SPEC_TEXT, with),
	OWN(LID) = KEY("lid", SPEC_U32, lid, .max = 0xffff),
	OWN(PORT) = KEY("port", SPEC_U32, num, .max = 255),
	OWN(OFF) = KEY("off", SPEC_FLAG, off),
	OWN(INDEX) = KEY("index", SPEC_U32, index, .max = WIRE_PORT_PKEYS - 1),
	OWN(PKEY) = KEY("pkey", SPEC_U32, pkey, .max = 0xffff),
	OWN(LANE) = KEY("lane", SPEC_U8, lane, .max = 14),
	OWN(MTU) = KEY("mtu", SPEC_OTHER, mtu, BY(parse_mtu, "256, 512, 1024, 2048 or 4096")),
};
static_assert(ARRAY_SIZE(keys) == FAULT_END - FAULT_OWN, "one row for each key");

static const struct fault_kind *const kinds[] = { fault_packet_kinds, fault_state_kinds, fault_table_kinds, NULL };
const struct fault_target fabric_fault_target = {
	.of = "",
	.kinds = kinds,
	.keys = keys,
	.nkeys = ARRAY_SIZE(keys),
	.size = sizeof(struct fabric_fault),
	.any = FAULT_PACKET_KEYS,
	.trigger = FAULT_MATCH_KEYS | FAULT_PICK_KEYS,
	.mtu = WIRE_MTU_MAX,
	.place = fault_place,
	.attach = fault_attach_place,
	.link = fault_set_link,
	.packets = &fault_packet_ops,
};

struct fault_set *fabric_faults(struct fabric *f)
{
	return &f->faults;
}

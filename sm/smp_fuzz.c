// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzz: nodes whose responses to SMPs are wrong, in sweep after sweep, beside another subnet manager. Input: the
 * configuration; then, repeated: the node, the attribute and a count of matching responses before this one, then the
 * offset in its data, a length, and the bytes; a length above 63 loses the response; an offset above 63 sends
 * SubnSet(SMInfo) before it.
 */
#include "sm/sm_fixture.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static const u8 *input;
static size_t left;
static u32 passed;

static void next_wrong(void)
{
	size_t n = left < 5 ? left : min(left, 5 + (size_t)(input[4] & 63));

	input += n;
	left -= n;
	passed = 0;
}

/* The next wrong response of the input is one to @mad of @node. */
static bool is_wrong(int node, const u8 *mad)
{
	static const u16 attrs[] = { SMP_ATTR_NODE_INFO, SMP_ATTR_PORT_INFO, SMP_ATTR_SWITCH_INFO, SMP_ATTR_NODE_DESC,
				     SMP_ATTR_SM_INFO,   SMP_ATTR_VL_ARB,    SMP_ATTR_PKEY_TABLE,  0 };
	u16 attr = left < 5 ? 0 : attrs[input[1] & 7];

	return left >= 5 && (input[0] & 7) == node && (!attr || attr == wire_get(mad, MAD_ATTR_ID)) &&
	       passed++ >= input[2] % 16;
}

static bool lose(struct fake *f, int node, const u8 *mad)
{
	if (left < 5 || input[4] <= 63 || !is_wrong(node, mad))
		return false;
	next_wrong();
	return true;
}

/* SubnSet(SMInfo) of the other manager, with the SM_Key. */
static void set_sminfo(struct fake *f, u32 mod, u8 state)
{
	u8 mad[MAD_SIZE] = { 1, MAD_CLASS_SUBN_LID, 1, MAD_METHOD_SET };
	struct mad_addr from = { .lid = fake_lid(f, FAKE_CA(2)) };

	wire_set(mad, MAD_ATTR_ID, SMP_ATTR_SM_INFO);
	wire_set(mad, MAD_ATTR_MOD, mod);
	memcpy(mad + SMP_DATA, f->rival, SMINFO_SIZE);
	wire_set(mad + SMP_DATA, SMINFO_SM_KEY, 1);
	wire_set(mad + SMP_DATA, SMINFO_STATE, state);
	sm_receive(f->sm, mad, MAD_SIZE, &from, NULL);
}

static void alter(struct fake *f, int node, u8 *mad)
{
	u32 at;

	if (left < 5 || input[4] > 63 || !is_wrong(node, mad))
		return;
	if (input[3] >= SMP_DATA_SIZE) {
		set_sminfo(f, input[3] % 6, input[2] >> 4 & 3);
		wire_set(f->rival, SMINFO_STATE, input[2] >> 6);
	}
	at = SMP_DATA + input[3] % SMP_DATA_SIZE;
	memcpy(mad + at, input + 5, min(min(left - 5, (size_t)input[4]), (size_t)(SMP_DATA + SMP_DATA_SIZE - at)));
	next_wrong();
}

static void request(struct fake *f, int node, u16 attr, u8 method, u64 comp, const u8 *data)
{
	struct mad_addr from = { .qpn = 1, .lid = fake_lid(f, node) };
	u8 mad[MAD_SIZE] = { 0 };

	wire_set(mad, MAD_BASE_VERSION, 1);
	wire_set(mad, MAD_CLASS, MAD_CLASS_SUBN_ADM);
	wire_set(mad, MAD_CLASS_VERSION, 2);
	wire_set(mad, MAD_METHOD, method);
	wire_set(mad, MAD_ATTR_ID, attr);
	wire_set(mad, SA_COMP_MASK, comp);
	wire_set(mad, SA_SM_KEY, 1);
	memcpy(mad + SA_DATA, data, MAD_SIZE - SA_DATA);
	sm_receive(f->sm, mad, MAD_SIZE, &from, NULL);
}

/* Each channel adapter joins a group, subscribes to all notices, and asks for its path to each LID. */
static void request_all(struct fake *f, int node)
{
	struct wire_gid mgid = { { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 1 } };
	struct wire_gid gid = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, FAKE_GUID(node) + 1);
	u8 data[MAD_SIZE] = { 0 };
	u16 lid;

	for (lid = 1; lid < 12; lid++) {
		wire_set(data, PATHREC_SLID, fake_lid(f, node));
		wire_set(data, PATHREC_DLID, lid);
		request(f, node, SA_ATTR_PATH_RECORD, MAD_METHOD_GET,
			SA_COMP(PATHREC_COMP_SLID) | SA_COMP(PATHREC_COMP_DLID), data);
	}
	memset(data, 0, sizeof(data));
	wire_copy_in(data, MCMEMBER_MGID, mgid.raw);
	wire_copy_in(data, MCMEMBER_PORT_GID, gid.raw);
	wire_set(data, MCMEMBER_JOIN_STATE, 1);
	wire_set(data, MCMEMBER_PKEY, WIRE_PKEY_DEFAULT_FULL);
	request(f, node, SA_ATTR_MCMEMBER_RECORD, MAD_METHOD_SET,
		SA_COMP(MCMEMBER_COMP_MGID) | SA_COMP(MCMEMBER_COMP_PORT_GID) | SA_COMP(MCMEMBER_COMP_JOIN_STATE) |
			SA_COMP(MCMEMBER_COMP_QKEY) | SA_COMP(MCMEMBER_COMP_PKEY) | SA_COMP(MCMEMBER_COMP_SL) |
			SA_COMP(MCMEMBER_COMP_FLOW_LABEL) | SA_COMP(MCMEMBER_COMP_TCLASS),
		data);
	memset(data, 0, sizeof(data));
	wire_set(data, INFORMINFO_LID_BEGIN, INFORMINFO_ALL_LIDS);
	wire_set(data, INFORMINFO_IS_GENERIC, 1);
	wire_set(data, INFORMINFO_SUBSCRIBE, 1);
	wire_set(data, INFORMINFO_TYPE, INFORMINFO_ALL_TYPES);
	wire_set(data, INFORMINFO_TRAP_NUMBER, INFORMINFO_ALL_TRAPS);
	wire_set(data, INFORMINFO_PRODUCER_TYPE, INFORMINFO_ALL_PRODUCERS);
	request(f, node, SA_ATTR_INFORM_INFO, MAD_METHOD_SET, 0, data);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const u16 tables[] = { SA_ATTR_NODE_RECORD, SA_ATTR_PORT_INFO_RECORD, SA_ATTR_LINK_RECORD,
				      SA_ATTR_MCMEMBER_RECORD, SA_ATTR_PKEY_TABLE_RECORD };
	struct sm_config cfg = { .sweep_ms = 1000, .timeout_ms = 1, .retries = 1, .poll_ms = 20 };
	static const u8 none[MAD_SIZE];
	struct fake f;
	u32 i, k;

	if (!size)
		return 0;
	cfg.qos = data[0] & 1;
	cfg.routing = data[0] & 2 ? "updn" : "auto";
	cfg.lmc = data[0] >> 2 & 1;
	fake_open(&f, &cfg);
	if (data[0] & 8)
		fake_rival(&f, data[0] >> 4);
	f.lose = lose;
	f.alter = alter;
	input = data + 1;
	left = size - 1;
	passed = 0;
	for (i = 0; i < 8; i++) {
		for (k = 0; k < 4; k++)
			request_all(&f, FAKE_CA(k));
		for (k = 0; k < ARRAY_SIZE(tables); k++)
			request(&f, FAKE_CA(0), tables[k], SA_METHOD_GET_TABLE, 0, none);
		sm_sweep(f.sm);
		fake_run(&f, 100);
	}
	fake_run(&f, 3000);
	fake_close(&f);
	return 0;
}

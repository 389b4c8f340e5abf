// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Component masks (IBTA 15.4.4): a table has the records that match all requested components, a row per component. */
#include "emu/lib/row.h"
#include "sm/sa/sa_fixture.h"

/* A field of the attribute that a record contains: its component mask is that of the field. */
#define FIELD(record, prefix, name)                                                                         \
	"SA " #record ": " #name, SA_ATTR_##record##_RECORD, prefix##REC_COMP_##name, prefix##REC_##record, \
		prefix##_##name

static const struct {
	const char *name;
	u16 attr;
	u8 comp, at;
	struct wire_field field;
} components[] = {
	{ FIELD(PORT_INFO, PORTINFO, MKEY) },
	{ FIELD(PORT_INFO, PORTINFO, GID_PREFIX) },
	{ FIELD(PORT_INFO, PORTINFO, SM_LID) },
	{ FIELD(PORT_INFO, PORTINFO, MKEY_LEASE) },
	{ FIELD(PORT_INFO, PORTINFO, LOCAL_PORT) },
	{ FIELD(PORT_INFO, PORTINFO, LMC) },
	{ FIELD(PORT_INFO, PORTINFO, INIT_TYPE) },
	{ FIELD(PORT_INFO, PORTINFO, INIT_TYPE_REPLY) },
	{ FIELD(PORT_INFO, PORTINFO, MTU_CAP) },
	{ FIELD(PORT_INFO, PORTINFO, VL_CAP) },
	{ FIELD(PORT_INFO, PORTINFO, HOQ_LIFE) },
	{ FIELD(PORT_INFO, PORTINFO, FILTER_RAW_IN) },
	{ FIELD(PORT_INFO, PORTINFO, FILTER_RAW_OUT) },
	{ FIELD(PORT_INFO, PORTINFO, MKEY_VIOLATIONS) },
	{ FIELD(PORT_INFO, PORTINFO, PKEY_VIOLATIONS) },
	{ FIELD(PORT_INFO, PORTINFO, QKEY_VIOLATIONS) },
	{ FIELD(PORT_INFO, PORTINFO, GUID_CAP) },
	{ FIELD(PORT_INFO, PORTINFO, CLIENT_REREGISTER) },
	{ FIELD(PORT_INFO, PORTINFO, RESP_TIME) },
	{ FIELD(PORT_INFO, PORTINFO, MAX_CREDIT_HINT) },
	{ FIELD(PORT_INFO, PORTINFO, LINK_ROUND_TRIP) },
	{ FIELD(PORT_INFO, PORTINFO, CAP_MASK2) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, LFT_CAP) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, RFT_CAP) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, MFT_CAP) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, LFT_TOP) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, DEFAULT_PORT) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, DEFAULT_MC_PRIMARY) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, DEFAULT_MC_NOT_PRIMARY) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, LIFE_TIME) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, PORT_STATE_CHANGE) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, LIDS_PER_PORT) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, PART_ENFORCE_CAP) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, INBOUND_ENFORCE_CAP) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, OUTBOUND_ENFORCE_CAP) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, FILTER_RAW_IN_CAP) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, FILTER_RAW_OUT_CAP) },
	{ FIELD(SWITCH_INFO, SWITCHINFO, ENHANCED_PORT0) },
	{ FIELD(SM_INFO, SMINFO, GUID) },
	{ FIELD(SM_INFO, SMINFO, SM_KEY) },
	{ FIELD(SM_INFO, SMINFO, ACT_COUNT) },
	{ FIELD(SM_INFO, SMINFO, PRIORITY) },
	{ FIELD(SM_INFO, SMINFO, STATE) },
	{ FIELD(INFORM_INFO, INFORMINFO, LID_BEGIN) },
	{ FIELD(INFORM_INFO, INFORMINFO, IS_GENERIC) },
	{ FIELD(INFORM_INFO, INFORMINFO, SUBSCRIBE) },
	{ FIELD(INFORM_INFO, INFORMINFO, TYPE) },
	{ FIELD(INFORM_INFO, INFORMINFO, TRAP_NUMBER) },
	{ FIELD(INFORM_INFO, INFORMINFO, QPN) },
	{ FIELD(INFORM_INFO, INFORMINFO, RESP_TIME) },
	{ FIELD(INFORM_INFO, INFORMINFO, PRODUCER_TYPE) },
	{ "MCMEMBER_RECORD: PROXY_JOIN", SA_ATTR_MCMEMBER_RECORD, MCMEMBER_COMP_PROXY_JOIN, 0, MCMEMBER_PROXY_JOIN },
	{ "GUID_INFO_RECORD: GUID 0", SA_ATTR_GUID_INFO_RECORD, GUIDINFOREC_COMP_GUID0 + 0, GUIDINFOREC_GUID_INFO,
	  GUIDINFO_GUID(0) },
	{ "GUID_INFO_RECORD: GUID 7", SA_ATTR_GUID_INFO_RECORD, GUIDINFOREC_COMP_GUID0 + 7, GUIDINFOREC_GUID_INFO,
	  GUIDINFO_GUID(7) },
};

/* Requests the records with @value in the field. How many are there? ~0: one of them has another value. */
static u32 records_with(struct fake *f, u32 i, u64 value)
{
	struct wire_field field = WIRE_AT(components[i].at, components[i].field);
	struct query a = query_of(SA_METHOD_GET_TABLE, components[i].attr, SA_COMP(components[i].comp));
	u32 n;

	a.key = 1;
	wire_set(a.data, field, value);
	if (request(f, &a, FAKE_CA(1)))
		return ~0u;
	for (n = 0; n < records(f); n++)
		if (wire_get(record(f, n), field) != value)
			return ~0u;
	return n;
}

/* Each component selects records: those that have the first record's value, and those with a value that it has not. */
static void test_components(struct fake *f)
{
	struct query a = inform_query(1, TRAP_MCAST_CREATED);
	u32 i, same, other;
	u64 value;

	row(0, "a subscription", request(f, &a, FAKE_CA(1)) == 0);
	for (i = 0; i < ARRAY_SIZE(components); i++) {
		a = query_of(SA_METHOD_GET_TABLE, components[i].attr, 0);
		a.key = 1;
		row(0, components[i].name, request(f, &a, FAKE_CA(1)) == 0 && records(f));
		value = wire_get(record(f, 0), WIRE_AT(components[i].at, components[i].field));
		same = records_with(f, i, value);
		other = records_with(f, i, value ^ 1);
		row(0, components[i].name, same && same != ~0u && other != ~0u);
	}
}

int main(void)
{
	struct fake f;

	fake_open(&f, NULL);
	test_components(&f);
	fake_close(&f);
	return rows_end();
}

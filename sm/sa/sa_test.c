// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Subnet administration: requests by MADs, and their responses, on the subnet of sm_fixture.h. */
#include "emu/lib/row.h"
#include "sm/sa/sa_fixture.h"

/* ---- checks of requests ---- */

static const struct {
	const char *name;
	u8 method;
	u16 attr;
	u64 key;
	int status;
} checks[] = {
	{ "ClassPortInfo", MAD_METHOD_GET, SA_ATTR_CLASS_PORT_INFO, 0, 0 },
	{ "no such method", 0x1f, SA_ATTR_NODE_RECORD, 0, MAD_STATUS_BAD_METHOD },
	{ "no such attribute", MAD_METHOD_GET, 0x99, 0, MAD_STATUS_BAD_METHOD_ATTR },
	{ "a method that the attribute has not", MAD_METHOD_SET, SA_ATTR_NODE_RECORD, 0, MAD_STATUS_BAD_METHOD_ATTR },
	{ "a wrong SM_Key", MAD_METHOD_GET, SA_ATTR_CLASS_PORT_INFO, 42, -1 },
	{ "Get of many", MAD_METHOD_GET, SA_ATTR_NODE_RECORD, 0, SA_STATUS_TOO_MANY_RECORDS },
	{ "P_Key tables need trust", SA_METHOD_GET_TABLE, SA_ATTR_PKEY_TABLE_RECORD, 0, SA_STATUS_DENIED },
	{ "P_Key tables for who is trusted", SA_METHOD_GET_TABLE, SA_ATTR_PKEY_TABLE_RECORD, 1, 0 },
	{ "MultiPath without GIDs", SA_METHOD_GET_MULTI, SA_ATTR_MULTI_PATH_RECORD, 0,
	  SA_STATUS_INSUFFICIENT_COMPONENTS },
	{ "joining without a group", MAD_METHOD_SET, SA_ATTR_MCMEMBER_RECORD, 0, SA_STATUS_INSUFFICIENT_COMPONENTS },
	{ "leaving without a group", SA_METHOD_DELETE, SA_ATTR_MCMEMBER_RECORD, 0, SA_STATUS_INSUFFICIENT_COMPONENTS },
	{ "a service without ID", MAD_METHOD_SET, SA_ATTR_SERVICE_RECORD, 0, SA_STATUS_INSUFFICIENT_COMPONENTS },
	{ "unsubscribing what is not", MAD_METHOD_SET, SA_ATTR_INFORM_INFO, 0, SA_STATUS_REQ_INVALID },
};

static void test_checks(struct fake *f)
{
	struct query a;
	size_t i;
	int s;

	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		a = query_of(checks[i].method, checks[i].attr, 0);
		a.key = checks[i].key;
		s = request(f, &a, FAKE_CA(1));
		if (s != checks[i].status)
			printf("%s: 0x%04x\n", checks[i].name, (unsigned int)s);
		row(0, checks[i].name,
		    s == checks[i].status && (s < 0 || wire_get(f->sent, MAD_TID) == 77) &&
			    (wire_get(f->sent, MAD_METHOD) & 0x80));
	}
}

/* ---- tables ---- */

static const struct {
	const char *name;
	u16 attr;
	u32 records;
} tables[] = {
	{ "NodeRecord", SA_ATTR_NODE_RECORD, 8 },
	{ "PortInfoRecord", SA_ATTR_PORT_INFO_RECORD, 4 + 4 * 5 },
	{ "SwitchInfoRecord", SA_ATTR_SWITCH_INFO_RECORD, 4 },
	{ "LinkRecord", SA_ATTR_LINK_RECORD, 16 },
	{ "SMInfoRecord", SA_ATTR_SM_INFO_RECORD, 1 },
	{ "GUIDInfoRecord", SA_ATTR_GUID_INFO_RECORD, 8 },
	{ "LFT", SA_ATTR_LFT_RECORD, 4 },
	{ "MFT", SA_ATTR_MFT_RECORD, 4 },
	{ "P_KeyTableRecord", SA_ATTR_PKEY_TABLE_RECORD, 8 },
	{ "SLtoVL", SA_ATTR_SL_TO_VL_RECORD, 4 + 4 * 5 * 5 },
	{ "VLArb", SA_ATTR_VL_ARB_RECORD, 4 * (4 + 4 * 5) },
	{ "PathRecord, all pairs", SA_ATTR_PATH_RECORD, 64 },
	{ "groups", SA_ATTR_MCMEMBER_RECORD, 1 },
	{ "no services", SA_ATTR_SERVICE_RECORD, 0 },
	{ "no subscriptions", SA_ATTR_INFORM_INFO_RECORD, 0 },
};

static void test_tables(struct fake *f)
{
	struct query a;
	size_t i;
	int s;

	for (i = 0; i < ARRAY_SIZE(tables); i++) {
		a = query_of(SA_METHOD_GET_TABLE, tables[i].attr, 0);
		a.key = 1;
		s = request(f, &a, FAKE_CA(1));
		if (s || records(f) != tables[i].records)
			printf("%s: status 0x%x, %u records\n", tables[i].name, (unsigned int)s, records(f));
		row(0, tables[i].name,
		    s == 0 && records(f) == tables[i].records && (wire_get(f->sent, RMPP_FLAGS) & RMPP_FLAG_ACTIVE) &&
			    f->sent_retries == 3);
	}
}

static u64 record_sm_key(const struct fake *f)
{
	return wire_get(record(f, 0), WIRE_AT(SMINFOREC_SM_INFO, SMINFO_SM_KEY));
}

static void test_selection(struct fake *f)
{
	struct query a = query_of(MAD_METHOD_GET, SA_ATTR_NODE_RECORD, SA_COMP(NODEREC_COMP_LID));

	wire_set(a.data, NODEREC_LID, fake_lid(f, FAKE_CA(2)));
	row(0, "a node by LID",
	    request(f, &a, FAKE_CA(1)) == 0 &&
		    wire_get(record(f, 0), WIRE_AT(NODEREC_NODE_INFO, NODEINFO_NODE_GUID)) == FAKE_GUID(6) &&
		    !strcmp((const char *)record(f, 0) + NODEREC_NODE_DESC, "h2"));
	wire_set(a.data, NODEREC_LID, 4000);
	row(0, "an unassigned LID", request(f, &a, FAKE_CA(1)) == SA_STATUS_NO_RECORDS);
	a = query_of(SA_METHOD_GET_TABLE, SA_ATTR_NODE_RECORD, SA_COMP(NODEREC_COMP_NODE_TYPE));
	wire_set(a.data, WIRE_AT(NODEREC_NODE_INFO, NODEINFO_NODE_TYPE), NODE_TYPE_SWITCH);
	row(0, "nodes by type", request(f, &a, FAKE_CA(1)) == 0 && records(f) == 4);
	row(0, "a switch's port is 0, not that of the SMP which has found it",
	    !wire_get(record(f, 0), WIRE_AT(NODEREC_NODE_INFO, NODEINFO_LOCAL_PORT)) &&
		    !wire_get(record(f, 3), WIRE_AT(NODEREC_NODE_INFO, NODEINFO_LOCAL_PORT)));
	a = query_of(SA_METHOD_GET_TABLE, SA_ATTR_PORT_INFO_RECORD, SA_COMP(PORTINFOREC_COMP_STATE));
	wire_set(a.data, WIRE_AT(PORTINFOREC_PORT_INFO, PORTINFO_STATE), PORT_STATE_ACTIVE);
	row(0, "ports by state", request(f, &a, FAKE_CA(1)) == 0 && records(f) == 4 + 16);
	a = query_of(MAD_METHOD_GET, SA_ATTR_SM_INFO_RECORD, 0);
	row(0, "the SM_Key is not reported", request(f, &a, FAKE_CA(1)) == 0 && record_sm_key(f) == 0);
	a.key = 1;
	row(0, "except to a requester that has it", request(f, &a, FAKE_CA(1)) == 0 && record_sm_key(f) == 1);
}

/* ---- paths ---- */

static struct query path_query(int from, int to)
{
	struct query a =
		query_of(MAD_METHOD_GET, SA_ATTR_PATH_RECORD,
			 SA_COMP(PATHREC_COMP_SGID) | SA_COMP(PATHREC_COMP_DGID) | SA_COMP(PATHREC_COMP_NUM_PATH));
	struct wire_gid s = gid_of(from), d = gid_of(to);

	wire_copy_in(a.data, PATHREC_SGID, s.raw);
	wire_copy_in(a.data, PATHREC_DGID, d.raw);
	wire_set(a.data, PATHREC_NUM_PATH, 1);
	return a;
}

static const struct path_row {
	const char *name;
	u8 comp_sel, comp;
	struct wire_field sel, value;
	u8 sel_v, value_v;
	int status;
	struct wire_field check;
	u8 want;
} path_rows[] = {
#define MTU_ROW(name, sel, v, status, want)                                                                           \
	{                                                                                                             \
		name, PATHREC_COMP_MTU_SELECTOR, PATHREC_COMP_MTU, PATHREC_MTU_SELECTOR, PATHREC_MTU, sel, v, status, \
			PATHREC_MTU, want                                                                             \
	}
#define RATE_ROW(name, sel, v, status, want)                                                                      \
	{                                                                                                         \
		name, PATHREC_COMP_RATE_SELECTOR, PATHREC_COMP_RATE, PATHREC_RATE_SELECTOR, PATHREC_RATE, sel, v, \
			status, PATHREC_RATE, want                                                                \
	}
#define LIFE_ROW(name, sel, v, status, want)                                                                      \
	{                                                                                                         \
		name, PATHREC_COMP_LIFE_SELECTOR, PATHREC_COMP_LIFE, PATHREC_LIFE_SELECTOR, PATHREC_LIFE, sel, v, \
			status, PATHREC_LIFE, want                                                                \
	}
	MTU_ROW("MTU over 2048", SA_SELECT_GREATER, WIRE_MTU_2048, 0, WIRE_MTU_4096),
	MTU_ROW("MTU over 4096", SA_SELECT_GREATER, WIRE_MTU_4096, SA_STATUS_NO_RECORDS, 0),
	MTU_ROW("MTU under 2048", SA_SELECT_LESS, WIRE_MTU_2048, 0, WIRE_MTU_1024),
	MTU_ROW("MTU under 256", SA_SELECT_LESS, WIRE_MTU_256, SA_STATUS_NO_RECORDS, 0),
	MTU_ROW("MTU 1024", SA_SELECT_EXACTLY, WIRE_MTU_1024, 0, WIRE_MTU_1024),
	MTU_ROW("the largest MTU", SA_SELECT_LARGEST, WIRE_MTU_256, 0, WIRE_MTU_4096),
	MTU_ROW("the largest MTU: the code is ignored", SA_SELECT_LARGEST, 0, 0, WIRE_MTU_4096),
	MTU_ROW("MTU code 0", SA_SELECT_EXACTLY, 0, SA_STATUS_REQ_INVALID, 0),
	MTU_ROW("MTU code 6", SA_SELECT_LESS, 6, SA_STATUS_REQ_INVALID, 0),
	MTU_ROW("over MTU code 0", SA_SELECT_GREATER, 0, SA_STATUS_REQ_INVALID, 0),
	RATE_ROW("the largest rate: the code is ignored", SA_SELECT_LARGEST, 0, 0, WIRE_RATE_40),
	RATE_ROW("rate code 0", SA_SELECT_EXACTLY, 0, SA_STATUS_REQ_INVALID, 0),
	RATE_ROW("rate code 63", SA_SELECT_EXACTLY, 63, SA_STATUS_REQ_INVALID, 0),
	RATE_ROW("over rate code 1", SA_SELECT_GREATER, 1, SA_STATUS_REQ_INVALID, 0),
	RATE_ROW("rate 10", SA_SELECT_EXACTLY, WIRE_RATE_10, 0, WIRE_RATE_10),
	RATE_ROW("rate 100", SA_SELECT_EXACTLY, WIRE_RATE_100, SA_STATUS_NO_RECORDS, 0),
	RATE_ROW("rate under 40", SA_SELECT_LESS, WIRE_RATE_40, 0, WIRE_RATE_30),
	RATE_ROW("rate over 30", SA_SELECT_GREATER, WIRE_RATE_30, 0, WIRE_RATE_40),
	RATE_ROW("rate over 40", SA_SELECT_GREATER, WIRE_RATE_40, SA_STATUS_NO_RECORDS, 0),
	LIFE_ROW("life over 20", SA_SELECT_GREATER, 20, 0, 21),
	LIFE_ROW("life over 62", SA_SELECT_GREATER, 62, 0, 63),
	LIFE_ROW("life over 63", SA_SELECT_GREATER, 63, SA_STATUS_NO_RECORDS, 0),
	LIFE_ROW("life under 18", SA_SELECT_LESS, 18, SA_STATUS_NO_RECORDS, 0),
	LIFE_ROW("life 19", SA_SELECT_EXACTLY, 19, 0, 19),
};

static void test_paths(struct fake *f)
{
	struct query a = path_query(FAKE_CA(0), FAKE_CA(3));
	const struct path_row *r;
	size_t i;
	int s;

	row(0, "a path",
	    request(f, &a, FAKE_CA(0)) == 0 && wire_get(record(f, 0), PATHREC_DLID) == fake_lid(f, FAKE_CA(3)) &&
		    wire_get(record(f, 0), PATHREC_SLID) == fake_lid(f, FAKE_CA(0)) &&
		    wire_get(record(f, 0), PATHREC_PKEY) == 0xffff &&
		    wire_get(record(f, 0), PATHREC_RATE) == WIRE_RATE_40);
	for (i = 0; i < ARRAY_SIZE(path_rows); i++) {
		r = &path_rows[i];
		a = path_query(FAKE_CA(0), FAKE_CA(3));
		a.comp |= SA_COMP(r->comp_sel) | SA_COMP(r->comp);
		wire_set(a.data, r->sel, r->sel_v);
		wire_set(a.data, r->value, r->value_v);
		s = request(f, &a, FAKE_CA(0));
		row(0, r->name, s == r->status && (s || wire_get(record(f, 0), r->check) == r->want));
	}
	a = path_query(FAKE_CA(0), FAKE_CA(0));
	row(0, "to itself", request(f, &a, FAKE_CA(0)) == 0);
	a = path_query(FAKE_CA(0), 2);
	row(0, "to a switch",
	    request(f, &a, FAKE_CA(0)) == 0 && wire_get(record(f, 0), PATHREC_DLID) == fake_lid(f, 2));
	a = path_query(FAKE_CA(0), 40);
	row(0, "to an unknown GID", request(f, &a, FAKE_CA(0)) == SA_STATUS_INVALID_GID);
	a = path_query(FAKE_CA(0), FAKE_CA(1));
	a.comp |= SA_COMP(PATHREC_COMP_PKEY);
	wire_set(a.data, PATHREC_PKEY, 0x8001);
	row(0, "in a partition that is not theirs", request(f, &a, FAKE_CA(0)) == SA_STATUS_NO_RECORDS);
	a = query_of(SA_METHOD_GET_TABLE, SA_ATTR_PATH_RECORD,
		     SA_COMP(PATHREC_COMP_SLID) | SA_COMP(PATHREC_COMP_NUM_PATH));
	wire_set(a.data, PATHREC_SLID, fake_lid(f, FAKE_CA(1)));
	wire_set(a.data, PATHREC_NUM_PATH, 1);
	row(0, "from one to all", request(f, &a, FAKE_CA(1)) == 0 && records(f) == 8);
}

/* Paths of one pair, by LIDs, of ports with @lmc. */
static u32 paths_between(struct fake *f, u64 comp, int from, int to)
{
	struct query a = path_query(from, to);

	a.method = SA_METHOD_GET_TABLE;
	a.comp = comp;
	wire_set(a.data, PATHREC_SLID, fake_lid(f, from));
	wire_set(a.data, PATHREC_DLID, fake_lid(f, to) + 1);
	return request(f, &a, from) ? ~0u : records(f);
}

static void test_lmc_paths(struct fake *f)
{
	u64 gids = SA_COMP(PATHREC_COMP_SGID) | SA_COMP(PATHREC_COMP_DGID);
	u64 slid = SA_COMP(PATHREC_COMP_SLID), dlid = SA_COMP(PATHREC_COMP_DLID);

	row(0, "LMC 1: two paths of a pair", paths_between(f, gids, FAKE_CA(0), FAKE_CA(3)) == 2);
	row(0, "from one LID to one LID is one path", paths_between(f, slid | dlid, FAKE_CA(0), FAKE_CA(3)) == 1);
	row(0, "from one LID to a GID: one for each of its LIDs",
	    paths_between(f, gids | slid, FAKE_CA(0), FAKE_CA(3)) == 2);
	row(0, "from a GID to one LID: one for each of its LIDs",
	    paths_between(f, gids | dlid, FAKE_CA(0), FAKE_CA(3)) == 2);
	row(0, "from a switch, which has one LID, to one LID", paths_between(f, gids | dlid, 2, FAKE_CA(3)) == 1);
}

/* A spine forwards to h3, but nothing forwards to h0. */
static void test_irreversible(struct fake *f)
{
	struct query a = path_query(FAKE_CA(0), FAKE_CA(3));
	struct sm_node *leaf = f->sm->by_lid[fake_lid(f, 1)]->node;

	leaf->lft[fake_lid(f, FAKE_CA(0))] = LFT_PORT_NONE;
	row(0, "a path whose reverse does not exist is not reversible",
	    request(f, &a, FAKE_CA(0)) == 0 && !wire_get(record(f, 0), PATHREC_REVERSIBLE));
	a.comp |= SA_COMP(PATHREC_COMP_REVERSIBLE);
	wire_set(a.data, PATHREC_REVERSIBLE, 1);
	row(0, "a reversible one does not exist", request(f, &a, FAKE_CA(0)) == SA_STATUS_NO_RECORDS);
	a = path_query(FAKE_CA(0), FAKE_CA(1));
	row(0, "another path is reversible",
	    request(f, &a, FAKE_CA(0)) == 0 && wire_get(record(f, 0), PATHREC_REVERSIBLE));
}

static void test_multi_path(struct fake *f)
{
	struct query a = query_of(SA_METHOD_GET_MULTI, SA_ATTR_MULTI_PATH_RECORD,
				  SA_COMP(MULTIPATHREC_COMP_SGID_COUNT) | SA_COMP(MULTIPATHREC_COMP_DGID_COUNT));
	struct wire_gid gids[] = { gid_of(FAKE_CA(0)), gid_of(FAKE_CA(1)), gid_of(FAKE_CA(3)) };
	u32 i;

	wire_set(a.data, MULTIPATHREC_SGID_COUNT, 2);
	wire_set(a.data, MULTIPATHREC_DGID_COUNT, 1);
	for (i = 0; i < ARRAY_SIZE(gids); i++)
		wire_copy_in(a.data, MULTIPATHREC_GID(i), gids[i].raw);
	row(0, "MultiPath: a path from each of two", request(f, &a, FAKE_CA(0)) == 0 && records(f) == 2);
	gids[2] = wire_gid_make(0x2001000000000000ull, wire_gid_guid(&gids[2]));
	wire_copy_in(a.data, MULTIPATHREC_GID(2), gids[2].raw);
	row(0, "MultiPath: a GID of another subnet", request(f, &a, FAKE_CA(0)) == SA_STATUS_INVALID_GID);
}

/* ---- groups ---- */

#define JOIN (SA_COMP(MCMEMBER_COMP_MGID) | SA_COMP(MCMEMBER_COMP_PORT_GID) | SA_COMP(MCMEMBER_COMP_JOIN_STATE))
#define CREATE                                                                                          \
	(JOIN | SA_COMP(MCMEMBER_COMP_QKEY) | SA_COMP(MCMEMBER_COMP_PKEY) | SA_COMP(MCMEMBER_COMP_SL) | \
	 SA_COMP(MCMEMBER_COMP_FLOW_LABEL) | SA_COMP(MCMEMBER_COMP_TCLASS))

static struct query group_query(u8 method, int member, u8 state, u64 comp, u8 last)
{
	struct query a = query_of(method, SA_ATTR_MCMEMBER_RECORD, comp);
	struct wire_gid mgid = { { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = last } }, port = gid_of(member);

	wire_copy_in(a.data, MCMEMBER_MGID, mgid.raw);
	wire_copy_in(a.data, MCMEMBER_PORT_GID, port.raw);
	wire_set(a.data, MCMEMBER_JOIN_STATE, state);
	wire_set(a.data, MCMEMBER_PKEY, 0xffff);
	wire_set(a.data, MCMEMBER_QKEY, 0x1234);
	return a;
}

/* Does the switch forward the group to that port? */
static bool forwards(const struct fake *f, int sw, u16 mlid, u8 port)
{
	return f->node[sw].mft[mlid - WIRE_LID_MULTICAST_MIN] >> port & 1;
}

static void test_groups(struct fake *f)
{
	struct query a = group_query(MAD_METHOD_SET, FAKE_CA(0), JOIN_FULL, JOIN, 1);
	u16 mlid;

	row(0, "a nonexistent group, missing components",
	    request(f, &a, FAKE_CA(0)) == SA_STATUS_INSUFFICIENT_COMPONENTS);
	a = group_query(MAD_METHOD_SET, FAKE_CA(0), JOIN_NON, CREATE, 1);
	row(0, "no full member can create one", request(f, &a, FAKE_CA(0)) == SA_STATUS_REQ_INVALID);
	a = group_query(MAD_METHOD_SET, FAKE_CA(0), JOIN_FULL, CREATE, 1);
	row(0, "created", request(f, &a, FAKE_CA(0)) == 0);
	mlid = (u16)wire_get(record(f, 0), MCMEMBER_MLID);
	row(0, "its leaf forwards it before the response", forwards(f, 0, mlid, 1));
	row(0, "another's own membership is not to be changed", request(f, &a, FAKE_CA(1)) == SA_STATUS_REQ_INVALID);
	a = group_query(MAD_METHOD_SET, FAKE_CA(3), JOIN_FULL, JOIN, 1);
	row(0, "joined",
	    request(f, &a, FAKE_CA(3)) == 0 && wire_get(record(f, 0), MCMEMBER_QKEY) == 0x1234 &&
		    wire_get(record(f, 0), MCMEMBER_MLID) == mlid);
	row(0, "a tree",
	    forwards(f, 1, mlid, 2) && (forwards(f, 0, mlid, 3) || forwards(f, 0, mlid, 4)) &&
		    (forwards(f, 2, mlid, 1) != forwards(f, 3, mlid, 1)));
	a = group_query(MAD_METHOD_SET, FAKE_CA(2), JOIN_SEND_ONLY_NON, JOIN, 1);
	row(0, "send only", request(f, &a, FAKE_CA(2)) == 0 && !forwards(f, 1, mlid, 1));
	a = group_query(MAD_METHOD_SET, FAKE_CA(1), JOIN_FULL, JOIN | SA_COMP(MCMEMBER_COMP_QKEY), 1);
	wire_set(a.data, MCMEMBER_QKEY, 9);
	row(0, "another Q_Key", request(f, &a, FAKE_CA(1)) == SA_STATUS_REQ_INVALID);
	a = group_query(SA_METHOD_DELETE, FAKE_CA(0), JOIN_NON, JOIN, 1);
	row(0, "leaving what it is not", request(f, &a, FAKE_CA(0)) == SA_STATUS_REQ_INVALID);
	a = group_query(SA_METHOD_DELETE, FAKE_CA(0), JOIN_FULL, JOIN, 1);
	row(0, "left", request(f, &a, FAKE_CA(0)) == 0);
	fake_run(f, 100);
	row(0, "its leaf has forgotten", !forwards(f, 0, mlid, 1));
	a = group_query(SA_METHOD_DELETE, FAKE_CA(3), JOIN_FULL, JOIN, 1);
	row(0, "the last full member leaves", request(f, &a, FAKE_CA(3)) == 0);
	a = group_query(MAD_METHOD_GET, FAKE_CA(3), 0, SA_COMP(MCMEMBER_COMP_MGID), 1);
	row(0, "the group is deleted", request(f, &a, FAKE_CA(3)) == SA_STATUS_NO_RECORDS);
	a = group_query(MAD_METHOD_SET, FAKE_CA(2), JOIN_SEND_ONLY_FULL, CREATE, 2);
	row(0, "a send-only full member can create one", request(f, &a, FAKE_CA(2)) == 0);
	mlid = (u16)wire_get(record(f, 0), MCMEMBER_MLID);
	a = group_query(MAD_METHOD_SET, FAKE_CA(0), JOIN_FULL, JOIN, 2);
	row(0, "another joins it",
	    request(f, &a, FAKE_CA(0)) == 0 && forwards(f, 0, mlid, 1) && !forwards(f, 1, mlid, 1));
	a = group_query(SA_METHOD_DELETE, FAKE_CA(0), JOIN_FULL, JOIN, 2);
	row(0, "and leaves", request(f, &a, FAKE_CA(0)) == 0);
	a = group_query(MAD_METHOD_GET, FAKE_CA(3), 0, SA_COMP(MCMEMBER_COMP_MGID), 2);
	row(0, "the group remains", request(f, &a, FAKE_CA(3)) == 0);
	a = group_query(SA_METHOD_DELETE, FAKE_CA(2), JOIN_SEND_ONLY_FULL, JOIN, 2);
	row(0, "its last member leaves", request(f, &a, FAKE_CA(2)) == 0);
	a = group_query(MAD_METHOD_GET, FAKE_CA(3), 0, SA_COMP(MCMEMBER_COMP_MGID), 2);
	row(0, "now it is deleted", request(f, &a, FAKE_CA(3)) == SA_STATUS_NO_RECORDS);
	a = group_query(MAD_METHOD_SET, FAKE_CA(0), JOIN_FULL, CREATE, 0);
	memset(wire_bytes(a.data, MCMEMBER_MGID), 0, 16);
	row(0, "an MGID of the SA's choice", request(f, &a, FAKE_CA(0)) == 0 && record(f, 0)[0] == 0xff);
}

/* Sends a request without running the loop: in the middle of a sweep. */
static void submit(struct fake *f, const struct query *a, int from)
{
	struct mad_addr addr = { .lid = fake_lid(f, from), .qpn = 1 };
	u8 mad[MAD_SIZE] = { 0 };

	query_put(a, mad);
	sm_receive(f->sm, mad, MAD_SIZE, &addr, NULL);
}

/* A join that arrives while SMPs with @at are sent, and the responses sent when its leaf's table is set. */
static struct {
	u16 at;
	u32 sent;
} late;

static bool join_late(struct fake *f, int node, const u8 *mad)
{
	const struct query a = group_query(MAD_METHOD_SET, FAKE_CA(3), JOIN_FULL, JOIN, 1);
	u16 attr = wire_get(mad, MAD_ATTR_ID);

	if (wire_get(mad, MAD_METHOD) != MAD_METHOD_SET)
		return false;
	if (attr == late.at) {
		late.at = 0;
		submit(f, &a, FAKE_CA(3));
	} else if (attr == SMP_ATTR_MFT && node == 1) {
		late.sent = f->nsent;
	}
	return false;
}

static void test_late_join(struct fake *f)
{
	static const struct {
		const char *name;
		u16 at;
	} rows[] = {
		{ "a join in a sweep, after the trees have been computed", SMP_ATTR_PKEY_TABLE },
		{ "a join while multicast tables are set", SMP_ATTR_MFT },
	};
	struct query a;
	char what[100];
	u32 before;
	u16 mlid;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		a = group_query(MAD_METHOD_SET, FAKE_CA(0), JOIN_FULL, CREATE, 1);
		row(0, "created", request(f, &a, FAKE_CA(0)) == 0);
		mlid = (u16)wire_get(record(f, 0), MCMEMBER_MLID);
		before = f->nsent;
		late.at = rows[i].at;
		late.sent = ~0u;
		f->lose = join_late;
		f->sm->by_lid[fake_lid(f, FAKE_CA(1))]->pkeys_sent = 0;
		f->sm->by_lid[fake_lid(f, 0)]->node->mft_unknown = true;
		sm_sweep(f->sm);
		fake_run(f, 1000);
		f->lose = NULL;
		row(0, rows[i].name, !late.at && forwards(f, 1, mlid, 2) && f->nsent == before + 1);
		snprintf(what, sizeof(what), "%s: its response follows its leaf's table", rows[i].name);
		row(0, what, late.sent == before);
		a = group_query(SA_METHOD_DELETE, FAKE_CA(0), JOIN_FULL, JOIN, 1);
		(void)request(f, &a, FAKE_CA(0));
		a = group_query(SA_METHOD_DELETE, FAKE_CA(3), JOIN_FULL, JOIN, 1);
		(void)request(f, &a, FAKE_CA(3));
		fake_run(f, 100);
	}
}

/* A requester repeats its join when it has no response: the tables may still not be set. */
static void test_repeated_join(struct fake *f)
{
	struct query a = group_query(MAD_METHOD_SET, FAKE_CA(0), JOIN_FULL, CREATE, 1);
	u32 before;
	u16 mlid;

	row(0, "a group", request(f, &a, FAKE_CA(0)) == 0);
	mlid = (u16)wire_get(record(f, 0), MCMEMBER_MLID);
	a = group_query(MAD_METHOD_SET, FAKE_CA(3), JOIN_FULL, JOIN, 1);
	before = f->nsent;
	submit(f, &a, FAKE_CA(3));
	while (f->sm->phase != SM_MCAST && loop_run_tasks(f->loop))
		;
	submit(f, &a, FAKE_CA(3));
	row(0, "a repeated join waits for the tables, too",
	    f->sm->phase == SM_MCAST && !forwards(f, 1, mlid, 2) && f->nsent == before && f->sm->ndeferred == 2);
	fake_run(f, 100);
	row(0, "both have responses", forwards(f, 1, mlid, 2) && f->nsent == before + 2 && !f->sm->ndeferred);
	submit(f, &a, FAKE_CA(3));
	row(0, "later, a third one has a response at once", f->nsent == before + 3);
}

/* The manager becomes a standby while a join waits for the tables. */
static void test_join_at_resignation(void)
{
	struct sm_status st;
	struct query a;
	struct fake f;
	u32 before;

	fake_open(&f, NULL);
	a = group_query(MAD_METHOD_SET, FAKE_CA(0), JOIN_FULL, CREATE, 1);
	row(0, "a group of a master", request(&f, &a, FAKE_CA(0)) == 0);
	a = group_query(MAD_METHOD_SET, FAKE_CA(3), JOIN_FULL, JOIN, 1);
	submit(&f, &a, FAKE_CA(3));
	while (f.sm->phase != SM_MCAST && loop_run_tasks(f.loop))
		;
	before = f.nsent;
	row(0, "a join waits for the tables", f.sm->phase == SM_MCAST && f.sm->ndeferred == 1);
	sm_set_state(f.sm, SM_STATE_STANDBY);
	fake_run(&f, 100);
	sm_status(f.sm, &st);
	row(0, "a standby does not respond to it", f.nsent == before);
	row(0, "and keeps no response", !f.sm->ndeferred && st.sa_deferred_dropped == 1);
	fake_close(&f);
}

/* Packet lifetimes of new groups. The manager's own code is 18. */
static void test_group_life(struct fake *f)
{
	static const struct {
		const char *name;
		u8 sel, life;
		int status;
		u8 want;
	} rows[] = {
		{ "group life 5", SA_SELECT_EXACTLY, 5, 0, 5 },
		{ "group life over 17", SA_SELECT_GREATER, 17, 0, 18 },
		{ "group life over 18", SA_SELECT_GREATER, 18, 0, 19 },
		{ "group life over 63", SA_SELECT_GREATER, 63, SA_STATUS_REQ_INVALID, 0 },
		{ "group life under 19", SA_SELECT_LESS, 19, 0, 18 },
		{ "group life under 10", SA_SELECT_LESS, 10, 0, 9 },
		{ "group life under 0", SA_SELECT_LESS, 0, SA_STATUS_REQ_INVALID, 0 },
		{ "the smallest group life", SA_SELECT_LARGEST, 63, 0, 18 },
	};
	struct query a;
	size_t i;
	int s;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		a = group_query(MAD_METHOD_SET, FAKE_CA(0), JOIN_FULL,
				CREATE | SA_COMP(MCMEMBER_COMP_LIFE_SELECTOR) | SA_COMP(MCMEMBER_COMP_LIFE),
				(u8)(20 + i));
		wire_set(a.data, MCMEMBER_LIFE_SELECTOR, rows[i].sel);
		wire_set(a.data, MCMEMBER_LIFE, rows[i].life);
		s = request(f, &a, FAKE_CA(0));
		row(0, rows[i].name,
		    s == rows[i].status && (s || wire_get(record(f, 0), MCMEMBER_LIFE) == rows[i].want));
	}
}

/* ---- subscriptions and services ---- */

static void test_subscriptions(struct fake *f)
{
	struct query a = inform_query(1, TRAP_MCAST_CREATED), g;
	u32 before;

	row(0, "subscribe", request(f, &a, FAKE_CA(1)) == 0);
	row(0, "subscribe again is one subscription", request(f, &a, FAKE_CA(1)) == 0 && f->sm->nsubscribers == 1);
	before = f->reports;
	g = group_query(MAD_METHOD_SET, FAKE_CA(0), JOIN_FULL, CREATE, 7);
	row(0, "a new group is reported", request(f, &g, FAKE_CA(0)) == 0 && f->reports == before + 1);
	g = group_query(SA_METHOD_DELETE, FAKE_CA(0), JOIN_FULL, JOIN, 7);
	row(0, "its end is not requested", request(f, &g, FAKE_CA(0)) == 0 && f->reports == before + 1);
	a = inform_query(0, TRAP_MCAST_CREATED);
	row(0, "unsubscribe", request(f, &a, FAKE_CA(1)) == 0 && f->sm->nsubscribers == 0);
}

/* Was the last report a notice about that node's GID? */
static bool reported(const struct fake *f, u16 trap, int node)
{
	struct wire_gid gid = gid_of(node);
	const u8 *notice = f->sent + SA_DATA;

	return wire_get(f->sent, MAD_METHOD) == MAD_METHOD_REPORT && wire_get(notice, NOTICE_TRAP_NUMBER) == trap &&
	       !memcmp(wire_cbytes(notice, NOTICE_64_GID), gid.raw, sizeof(gid.raw));
}

/*
 * A member that is unplugged goes out of service, and the group of which it was the last member is deleted; then it
 * comes back.
 */
static void test_unplugged(struct fake *f)
{
	struct query out = inform_query(1, TRAP_GID_OUT_OF_SERVICE), in = inform_query(1, TRAP_GID_IN_SERVICE);
	struct query g = group_query(MAD_METHOD_SET, FAKE_CA(3), JOIN_FULL, CREATE, 9);
	struct query q = group_query(MAD_METHOD_GET, FAKE_CA(1), 0, SA_COMP(MCMEMBER_COMP_MGID), 9);
	struct query own = inform_query(1, INFORMINFO_ALL_TRAPS);
	struct query name = query_of(MAD_METHOD_GET, SA_ATTR_NODE_RECORD, SA_COMP(NODEREC_COMP_LID));
	u32 before;

	wire_set(name.data, NODEREC_LID, fake_lid(f, FAKE_CA(3)));
	row(0, "before",
	    !request(f, &out, FAKE_CA(1)) && !request(f, &in, FAKE_CA(1)) && !request(f, &g, FAKE_CA(3)) &&
		    !request(f, &own, FAKE_CA(3)) && f->sm->nsubscribers == 3);
	before = f->reports;
	fake_uncable(f, FAKE_CA(3), 1);
	fake_run(f, 30000);
	row(0, "a port out of service is reported once",
	    f->reports == before + 1 && reported(f, TRAP_GID_OUT_OF_SERVICE, FAKE_CA(3)));
	row(0, "its subscription is removed", f->sm->nsubscribers == 2);
	row(0, "its group is deleted", request(f, &q, FAKE_CA(1)) == SA_STATUS_NO_RECORDS);
	row(0, "its record is removed", request(f, &name, FAKE_CA(1)) == SA_STATUS_NO_RECORDS);
	fake_cable(f, FAKE_CA(3), 1, 1, 2);
	wire_set(f->node[1].swinfo, SWITCHINFO_PORT_STATE_CHANGE, 1);
	fake_run(f, 30000);
	row(0, "one back in service too", f->reports == before + 2 && reported(f, TRAP_GID_IN_SERVICE, FAKE_CA(3)));
	row(0, "its record is back", request(f, &name, FAKE_CA(1)) == 0);
}

static u64 altered_guid;

/* The last host's NodeInfo has another PortGUID. */
static void alter_guid(struct fake *f, int node, u8 *mad)
{
	if (node == FAKE_CA(3) && wire_get(mad, MAD_ATTR_ID) == SMP_ATTR_NODE_INFO)
		wire_set(mad + SMP_DATA, NODEINFO_PORT_GUID, altered_guid);
}

/* A port with another GUID than before is another port; without a GUID it is none that subnet administration knows. */
static void test_other_guid(struct fake *f)
{
	static const struct {
		const char *what;
		u64 guid;
	} rows[] = {
		{ "no GUID", 0 },
		{ "another GUID", 0x7777 },
		{ "the GUID of another port", FAKE_GUID(FAKE_CA(2)) + 1 },
	};
	struct query out = inform_query(1, TRAP_GID_OUT_OF_SERVICE), own = inform_query(1, INFORMINFO_ALL_TRAPS);
	struct query g = group_query(MAD_METHOD_SET, FAKE_CA(3), JOIN_FULL, CREATE, 9);
	struct query q = group_query(MAD_METHOD_GET, FAKE_CA(1), 0, SA_COMP(MCMEMBER_COMP_MGID), 9);
	u32 i, before;
	u16 lid;

	row(0, "a subscriber", !request(f, &out, FAKE_CA(1)));
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		row((int)i, rows[i].what, !request(f, &g, FAKE_CA(3)) && !request(f, &own, FAKE_CA(3)));
		lid = fake_lid(f, FAKE_CA(3));
		before = f->reports;
		altered_guid = rows[i].guid;
		f->alter = alter_guid;
		sm_sweep(f->sm);
		fake_run(f, 1000);
		row((int)i, "it has left",
		    f->reports == before + 1 && reported(f, TRAP_GID_OUT_OF_SERVICE, FAKE_CA(3)));
		row((int)i, "with its subscription", f->sm->nsubscribers == 1);
		row((int)i, "and its group", request(f, &q, FAKE_CA(1)) == SA_STATUS_NO_RECORDS);
		fake_uncable(f, FAKE_CA(3), 1);
		sm_sweep(f->sm);
		fake_run(f, 1000);
		row((int)i, "its LID is free", !sm_port_by_lid(f->sm, lid));
		f->alter = NULL;
		fake_cable(f, FAKE_CA(3), 1, 1, 2);
		sm_sweep(f->sm);
		fake_run(f, 1000);
	}
}

/* The node of a member is replaced by one with the same GUID and more ports. */
static void test_member_replaced(struct fake *f)
{
	struct query out = inform_query(1, TRAP_GID_OUT_OF_SERVICE);
	struct query g = group_query(MAD_METHOD_SET, FAKE_CA(3), JOIN_FULL, CREATE, 9);
	u32 before;

	row(0, "a member and a subscriber", !request(f, &out, FAKE_CA(1)) && !request(f, &g, FAKE_CA(3)));
	before = f->reports;
	f->node[FAKE_CA(3)].nports = 2;
	sm_sweep(f->sm);
	fake_run(f, 1000);
	row(0, "it is reported out of service",
	    f->reports == before + 1 && reported(f, TRAP_GID_OUT_OF_SERVICE, FAKE_CA(3)));
}

static void test_services(struct fake *f)
{
	struct query a = query_of(MAD_METHOD_SET, SA_ATTR_SERVICE_RECORD,
				  SA_COMP(SERVICEREC_COMP_ID) | SA_COMP(SERVICEREC_COMP_GID) |
					  SA_COMP(SERVICEREC_COMP_LEASE)),
		     q = query_of(SA_METHOD_GET_TABLE, SA_ATTR_SERVICE_RECORD, SA_COMP(SERVICEREC_COMP_ID));

	wire_set(a.data, SERVICEREC_ID, 5);
	wire_set(a.data, SERVICEREC_LEASE, 3);
	wire_set(a.data, WIRE_FIELD(SERVICEREC_KEY.bit, 64), 1);
	wire_set(q.data, SERVICEREC_ID, 5);
	row(0, "a service", request(f, &a, FAKE_CA(1)) == 0);
	row(0, "is found", request(f, &q, FAKE_CA(2)) == 0 && records(f) == 1);
	wire_set(a.data, WIRE_FIELD(SERVICEREC_KEY.bit, 64), 2);
	row(0, "with another key it is not theirs", request(f, &a, FAKE_CA(2)) == SA_STATUS_REQ_INVALID);
	fake_run(f, 4000);
	row(0, "its lease ends", request(f, &q, FAKE_CA(2)) == 0 && records(f) == 0);
	wire_set(a.data, SERVICEREC_PKEY, 0x8005); /* without its component */
	row(0, "a service of no partition", request(f, &a, FAKE_CA(1)) == 0);
	row(0, "is found by all", request(f, &q, FAKE_CA(2)) == 0 && records(f) == 1);
	wire_set(a.data, SERVICEREC_PKEY, 0);
	row(0, "is registered once", request(f, &a, FAKE_CA(1)) == 0 && f->sm->nservices == 1);
}

/* ---- other subnet managers ---- */

static u32 managers;

/* Requests the subnet managers while the node of one of them is discovered. */
static bool query_managers(struct fake *f, int node, const u8 *mad)
{
	struct query a = query_of(SA_METHOD_GET_TABLE, SA_ATTR_SM_INFO_RECORD, 0);

	a.key = 1;
	if (node == FAKE_CA(2) && wire_get(mad, MAD_ATTR_ID) == SMP_ATTR_PORT_INFO) {
		f->lose = NULL;
		submit(f, &a, FAKE_CA(1));
		managers = records(f);
	}
	return false;
}

/* The node of another manager is replaced by one with the same GUID and more ports. */
static void test_manager_replaced(struct fake *f)
{
	struct query a = query_of(SA_METHOD_GET_TABLE, SA_ATTR_SM_INFO_RECORD, 0);

	a.key = 1;
	fake_rival(f, 0);
	sm_sweep(f->sm);
	fake_run(f, 1000);
	row(0, "two managers", request(f, &a, FAKE_CA(1)) == 0 && records(f) == 2);
	f->node[FAKE_CA(2)].nports = 2;
	f->lose = query_managers;
	sm_sweep(f->sm);
	fake_run(f, 1000);
	row(0, "one while the other's node is discovered again", managers == 1);
	row(0, "and two afterwards", request(f, &a, FAKE_CA(1)) == 0 && records(f) == 2);
}

/*
 * Another manager was the master for a while: what ports have left and unsubscribed there must not be in the way
 * afterwards (14.4.11).
 */
static void test_master_again(struct fake *f)
{
	struct query join = group_query(MAD_METHOD_SET, FAKE_CA(3), JOIN_FULL, CREATE, 7), in = inform_query(1, 77);
	struct query service = query_of(MAD_METHOD_SET, SA_ATTR_SERVICE_RECORD,
					SA_COMP(SERVICEREC_COMP_ID) | SA_COMP(SERVICEREC_COMP_GID));
	struct query members = query_of(SA_METHOD_GET_TABLE, SA_ATTR_MCMEMBER_RECORD, 0);
	u32 groups = f->sm->st.groups;
	u16 mlid;

	members.key = 1;
	row(0, "a group", request(f, &join, FAKE_CA(3)) == 0);
	mlid = (u16)wire_get(record(f, 0), MCMEMBER_MLID);
	row(0, "its table entry", forwards(f, 1, mlid, 2));
	row(0, "a subscription and a service",
	    !request(f, &in, FAKE_CA(1)) && !request(f, &service, FAKE_CA(1)) && f->sm->nsubscribers &&
		    f->sm->nservices);
	sm_set_state(f->sm, SM_STATE_STANDBY);
	fake_run(f, 100);
	sm_set_state(f->sm, SM_STATE_MASTER);
	sm_sweep(f->sm);
	fake_run(f, 1000);
	row(0, "master again, it has none of them",
	    f->sm->st.subnet_up && !f->sm->nsubscribers && !f->sm->nservices && !request(f, &members, FAKE_CA(1)) &&
		    records(f) == groups);
	row(0, "and no table entry of the group", !forwards(f, 1, mlid, 2));
	wire_set(join.data, MCMEMBER_QKEY, 0x4321);
	row(0, "the group is created with other attributes",
	    !request(f, &join, FAKE_CA(3)) && wire_get(record(f, 0), MCMEMBER_QKEY) == 0x4321 &&
		    forwards(f, 1, (u16)wire_get(record(f, 0), MCMEMBER_MLID), 2));
}

/* ---- partitions ---- */

static void test_limited(struct fake *f)
{
	struct query a = path_query(FAKE_CA(1), FAKE_CA(2));

	row(0, "two limited members have no path", request(f, &a, FAKE_CA(1)) == SA_STATUS_NO_RECORDS);
	a = path_query(FAKE_CA(1), FAKE_CA(0));
	row(0, "a limited and a full one have",
	    request(f, &a, FAKE_CA(1)) == 0 && wire_get(record(f, 0), PATHREC_PKEY) == 0x7fff);
	a = query_of(SA_METHOD_GET_TABLE, SA_ATTR_NODE_RECORD, SA_COMP(NODEREC_COMP_NODE_TYPE));
	wire_set(a.data, WIRE_AT(NODEREC_NODE_INFO, NODEINFO_NODE_TYPE), NODE_TYPE_CA);
	row(0, "a limited member reaches itself and the full one", request(f, &a, FAKE_CA(1)) == 0 && records(f) == 2);
	a.key = 1;
	row(0, "a requester with the SM_Key reaches all", request(f, &a, FAKE_CA(1)) == 0 && records(f) == 4);
}

/* Sends trap 144 of a node about itself. Returns the number of reports. */
static u32 reports_of(struct fake *f, int node)
{
	struct mad_addr from = { .lid = fake_lid(f, node) };
	u8 mad[MAD_SIZE] = { 1, MAD_CLASS_SUBN_LID, 1, MAD_METHOD_TRAP };
	u32 before = f->reports;

	wire_set(mad, MAD_ATTR_ID, SMP_ATTR_NOTICE);
	wire_set(mad + SMP_DATA, NOTICE_IS_GENERIC, 1);
	wire_set(mad + SMP_DATA, NOTICE_TRAP_NUMBER, TRAP_LOCAL_CHANGES);
	wire_set(mad + SMP_DATA, NOTICE_ISSUER_LID, from.lid);
	wire_set(mad + SMP_DATA, NOTICE_144_LID, from.lid);
	sm_receive(f->sm, mad, MAD_SIZE, &from, NULL);
	return f->reports - before;
}

/* Creates a group of the partition with @pkey. Returns the number of reports. */
static u32 reports_of_group(struct fake *f, int node, u16 pkey, u8 last)
{
	struct query a = group_query(MAD_METHOD_SET, node, JOIN_FULL, CREATE, last);
	u32 before = f->reports;

	wire_set(a.data, MCMEMBER_PKEY, pkey);
	return request(f, &a, node) ? ~0u : f->reports - before;
}

static void test_limited_reports(struct fake *f)
{
	struct query a = inform_query(1, TRAP_LOCAL_CHANGES);

	row(0, "a limited member subscribes", request(f, &a, FAKE_CA(1)) == 0);
	row(0, "a trap of the full one is reported", reports_of(f, FAKE_CA(0)) == 1);
	row(0, "its own, too", reports_of(f, FAKE_CA(1)) == 1);
	row(0, "that of another limited one is not", reports_of(f, FAKE_CA(2)) == 0);
	a = inform_query(1, TRAP_MCAST_CREATED);
	row(0, "it subscribes to new groups", request(f, &a, FAKE_CA(1)) == 0);
	row(0, "a group of its partition is reported", reports_of_group(f, FAKE_CA(0), 0xffff, 30) == 1);
	row(0, "one of another partition is not", reports_of_group(f, FAKE_CA(2), 0x8001, 31) == 0);
}

int main(void)
{
	static const struct sm_config limited = {
		.partitions = "Default=0x7fff : ALL=limited, ALL_SWITCHES=full, SELF=full ;\n"
			      "blue=0x0001 : 0x1061=full ;\n"
	};
	static const struct sm_config lmc = { .lmc = 1 };
	static void (*const tests[])(struct fake * f) = {
		test_checks,     test_tables,          test_selection,        test_paths,        test_irreversible,
		test_multi_path, test_groups,          test_late_join,        test_group_life,   test_subscriptions,
		test_unplugged,  test_services,        test_manager_replaced, test_master_again, test_repeated_join,
		test_other_guid, test_member_replaced,
	};
	struct fake f;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		fake_open(&f, NULL);
		tests[i](&f);
		fake_close(&f);
	}
	fake_open(&f, &lmc);
	test_lmc_paths(&f);
	fake_close(&f);
	fake_open(&f, &limited);
	test_limited(&f);
	test_limited_reports(&f);
	fake_close(&f);
	test_join_at_resignation();
	return rows_end();
}

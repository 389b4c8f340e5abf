// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SMA and PMA, requests as of a subnet manager:  h1 - leaf1 - h2 */
#include "fabric/fabric_fixture.h"

static struct test_host h1, h2;

static const struct {
	const char *what;
	u8 method, base, class_version;
	u16 attr;
	u32 mod;
	const char *path;
	int status; /* -1: no response */
} rows[] = {
	{ "NodeInfo", 1, 1, 1, SMP_ATTR_NODE_INFO, 0, "\1", 0 },
	{ "NodeInfo of the own CA", 1, 1, 1, SMP_ATTR_NODE_INFO, 0, "", 0 },
	{ "a wrong base version", 1, 2, 1, SMP_ATTR_NODE_INFO, 0, "\1", MAD_STATUS_BAD_VERSION },
	{ "a wrong class version", 1, 1, 2, SMP_ATTR_NODE_INFO, 0, "\1", MAD_STATUS_BAD_VERSION },
	{ "Set of NodeInfo", 2, 1, 1, SMP_ATTR_NODE_INFO, 0, "\1", MAD_STATUS_BAD_METHOD_ATTR },
	{ "an attribute that is not there", 1, 1, 1, 0x44, 0, "\1", MAD_STATUS_BAD_METHOD_ATTR },
	{ "SwitchInfo of a CA", 1, 1, 1, SMP_ATTR_SWITCH_INFO, 0, "", MAD_STATUS_BAD_METHOD_ATTR },
	{ "SwitchInfo", 1, 1, 1, SMP_ATTR_SWITCH_INFO, 0, "\1", 0 },
	{ "NodeDescription", 1, 1, 1, SMP_ATTR_NODE_DESC, 0, "\1\2", 0 },
	{ "PortInfo of port 9 of 2", 1, 1, 1, SMP_ATTR_PORT_INFO, 9, "\1", MAD_STATUS_BAD_VALUE },
	{ "PortInfo of port 0", 1, 1, 1, SMP_ATTR_PORT_INFO, 0, "\1", 0 },
	{ "GUIDInfo block 0", 1, 1, 1, SMP_ATTR_GUID_INFO, 0, "\1\2", 0 },
	{ "GUIDInfo block 99", 1, 1, 1, SMP_ATTR_GUID_INFO, 99, "\1\2", MAD_STATUS_BAD_VALUE },
	{ "P_KeyTable of a switch's port", 1, 1, 1, SMP_ATTR_PKEY_TABLE, 2 << 16, "\1", 0 },
	{ "P_KeyTable block 7", 1, 1, 1, SMP_ATTR_PKEY_TABLE, 7, "\1\2", MAD_STATUS_BAD_VALUE },
	{ "SLtoVL", 1, 1, 1, SMP_ATTR_SL_TO_VL, 1 << 8 | 2, "\1", 0 },
	{ "SLtoVL of port 77", 1, 1, 1, SMP_ATTR_SL_TO_VL, 77, "\1", MAD_STATUS_BAD_VALUE },
	{ "VLArb low", 1, 1, 1, SMP_ATTR_VL_ARB, 1 << 16 | 1, "\1", 0 },
	{ "VLArb block 5", 1, 1, 1, SMP_ATTR_VL_ARB, 5 << 16 | 1, "\1", MAD_STATUS_BAD_VALUE },
	{ "LFT", 1, 1, 1, SMP_ATTR_LFT, 767, "\1", 0 },
	{ "LFT block 768", 1, 1, 1, SMP_ATTR_LFT, 768, "\1", MAD_STATUS_BAD_VALUE },
	{ "LFT of a CA", 1, 1, 1, SMP_ATTR_LFT, 0, "", MAD_STATUS_BAD_METHOD_ATTR },
	{ "MFT", 1, 1, 1, SMP_ATTR_MFT, 0, "\1", 0 },
	{ "MFT position 9", 1, 1, 1, SMP_ATTR_MFT, 9u << 28, "\1", MAD_STATUS_BAD_VALUE },
	{ "LedInfo", 1, 1, 1, SMP_ATTR_LED_INFO, 1, "\1", 0 },
	{ "Notice", 1, 1, 1, SMP_ATTR_NOTICE, 0, "\1", 0 },
	{ "SMInfo where there is no SM", 1, 1, 1, SMP_ATTR_SM_INFO, 0, "\1", MAD_STATUS_BAD_METHOD_ATTR },
	{ "a path by port 9", 1, 1, 1, SMP_ATTR_NODE_INFO, 0, "\1\11", -1 },
	{ "a path through a CA", 1, 1, 1, SMP_ATTR_NODE_INFO, 0, "\1\2\1", -1 },
	{ "a path out of a wrong port of the CA", 1, 1, 1, SMP_ATTR_NODE_INFO, 0, "\2", -1 },
};

static void test_rows(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		u8 hops = (u8)strlen(rows[i].path);
		u64 before = h1.mads;
		struct wire_mad m;
		int got;

		test_smp_init(&m, MAD_CLASS_SUBN_DIRECTED, rows[i].method, rows[i].attr, rows[i].mod);
		wire_set(m.raw, MAD_BASE_VERSION, rows[i].base);
		wire_set(m.raw, MAD_CLASS_VERSION, rows[i].class_version);
		wire_set(m.raw, SMP_HOP_CNT, hops);
		memcpy(m.raw + SMP_INITIAL_PATH + 1, rows[i].path, hops);
		test_send_mad(&h1, m.raw, WIRE_LID_PERMISSIVE, MAD_QPN_SMI);
		got = h1.mads == before ? -1 : (int)wire_get(h1.last.raw, SMP_DR_STATUS);
		row(1 + (int)i, rows[i].what,
		    got == rows[i].status &&
			    (got < 0 || (wire_get(h1.last.raw, MAD_METHOD) == MAD_METHOD_GET_RESP &&
					 wire_get(h1.last.raw, SMP_D) && wire_get(h1.last.raw, MAD_TID) == 0x1234)));
	}
}

/* Legal and illegal changes of state, from Init on. */
static const struct {
	const char *what;
	u8 state, phys;
	int status;
	u8 after;
} states[] = {
	{ "Init to Active is refused", PORT_STATE_ACTIVE, 0, MAD_STATUS_BAD_VALUE, PORT_STATE_INIT },
	{ "Init cannot be requested", PORT_STATE_INIT, 0, MAD_STATUS_BAD_VALUE, PORT_STATE_INIT },
	{ "Init to Armed", PORT_STATE_ARMED, 0, 0, PORT_STATE_ARMED },
	{ "Armed to Armed", PORT_STATE_ARMED, 0, 0, PORT_STATE_ARMED },
	{ "Armed with a physical state", PORT_STATE_ACTIVE, PHYS_STATE_POLLING, MAD_STATUS_BAD_VALUE,
	  PORT_STATE_ARMED },
	{ "Armed to Active", PORT_STATE_ACTIVE, 0, 0, PORT_STATE_ACTIVE },
	{ "Active to Armed is refused", PORT_STATE_ARMED, 0, MAD_STATUS_BAD_VALUE, PORT_STATE_ACTIVE },
	{ "no change", PORT_STATE_NOP, 0, 0, PORT_STATE_ACTIVE },
	{ "LinkUp cannot be requested", PORT_STATE_NOP, PHYS_STATE_LINK_UP, MAD_STATUS_BAD_VALUE, PORT_STATE_ACTIVE },
	{ "Down trains again", PORT_STATE_DOWN, 0, 0, PORT_STATE_INIT },
	{ "Disabled stays down", PORT_STATE_DOWN, PHYS_STATE_DISABLED, 0, PORT_STATE_DOWN },
	{ "Polling trains the link", PORT_STATE_NOP, PHYS_STATE_POLLING, 0, PORT_STATE_INIT },
};

static void test_states(void)
{
	u8 d[SMP_DATA_SIZE];
	u32 i;
	int rc;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		test_get(&h1, "\1", SMP_ATTR_PORT_INFO, 2);
		memcpy(d, h1.last.raw + SMP_DATA, sizeof(d));
		wire_set(d, PORTINFO_STATE, states[i].state);
		wire_set(d, PORTINFO_PHYS_STATE, states[i].phys);
		rc = test_smp(&h1, "\1", MAD_METHOD_SET, SMP_ATTR_PORT_INFO, 2, d);
		test_get(&h1, "\1", SMP_ATTR_PORT_INFO, 2);
		row(100 + (int)i, states[i].what,
		    rc == states[i].status && wire_get(h1.last.raw + SMP_DATA, PORTINFO_STATE) == states[i].after);
	}
	row(119, "an unknown method",
	    test_smp(&h1, "\1", 0x0b, SMP_ATTR_NODE_INFO, 0, NULL) == MAD_STATUS_BAD_METHOD &&
		    wire_get(h1.last.raw, MAD_METHOD) == (0x0b | MAD_METHOD_RESP));
	test_get(&h1, "\1", SMP_ATTR_SWITCH_INFO, 0);
	row(120, "PortStateChange is set", wire_get(h1.last.raw + SMP_DATA, SWITCHINFO_PORT_STATE_CHANGE) == 1);
}

static int smp_key(struct test_host *h, const char *path, u8 method, u64 key, const u8 *data)
{
	return test_smp_key(h, path, method, SMP_ATTR_PORT_INFO, 0, key, data);
}

static void repress(u64 mkey)
{
	struct wire_mad m = h1.trap;
	u16 lid = wire_get(m.raw + SMP_DATA, NOTICE_ISSUER_LID);

	wire_set(m.raw, MAD_METHOD, MAD_METHOD_TRAP_REPRESS);
	wire_set(m.raw, SMP_MKEY, mkey);
	test_send_mad(&h1, m.raw, lid, MAD_QPN_SMI);
}

/* Whether a Get(PortInfo) of h2's driver, with the M_Key 7, has a response that shows the port's M_Key. */
static bool local_get(bool ignore_mkey)
{
	struct wire_mad m;

	test_smp_init(&m, MAD_CLASS_SUBN_LID, MAD_METHOD_GET, SMP_ATTR_PORT_INFO, 1);
	wire_set(m.raw, SMP_MKEY, 7);
	return fabric_ca_mad(fabric_node_find(test_fabric, "h2"), 1, m.raw, ignore_mkey) == 1 &&
	       wire_get(m.raw + SMP_DATA, PORTINFO_MKEY) == 0x1122;
}

static void test_mkey(void)
{
	u8 d[SMP_DATA_SIZE];
	u64 tid;

	test_bring_up(&h1, 2);
	test_get(&h1, "\1\2", SMP_ATTR_PORT_INFO, 0);
	memcpy(d, h1.last.raw + SMP_DATA, sizeof(d));
	wire_set(d, PORTINFO_STATE, 0);
	wire_set(d, PORTINFO_PHYS_STATE, 0);
	wire_set(d, PORTINFO_MKEY, 0x1122);
	wire_set(d, PORTINFO_MKEY_PROTECT, MKEY_PROTECT_HIDE);
	wire_set(d, PORTINFO_MKEY_LEASE, 2);
	row(130, "an M_Key is set", smp_key(&h1, "\1\2", MAD_METHOD_SET, 0, d) == 0);
	row(131, "Get without it hides it",
	    smp_key(&h1, "\1\2", MAD_METHOD_GET, 0, NULL) == 0 && !wire_get(h1.last.raw + SMP_DATA, PORTINFO_MKEY));
	row(132, "Get with it shows it",
	    smp_key(&h1, "\1\2", MAD_METHOD_GET, 0x1122, NULL) == 0 &&
		    wire_get(h1.last.raw + SMP_DATA, PORTINFO_MKEY) == 0x1122);
	row(133, "Set without it has no response", smp_key(&h1, "\1\2", MAD_METHOD_SET, 7, d) == -1);
	row(134, "and makes trap 256",
	    h1.traps && wire_get(h1.trap.raw + SMP_DATA, NOTICE_TRAP_NUMBER) == TRAP_BAD_MKEY &&
		    wire_get(h1.trap.raw + SMP_DATA, NOTICE_256_MKEY) == 7);
	row(135, "is counted", h2.port->attr.mkey_violations == 1);
	row(139, "which does not contain the M_Key", wire_get(h1.trap.raw, SMP_MKEY) == 0);
	tid = wire_get(h1.trap.raw, MAD_TID);
	repress(7);
	row(140, "a TrapRepress with a wrong M_Key is counted", h2.port->attr.mkey_violations == 2);
	repress(0x1122); /* of the trap that this caused */
	test_run(NSEC_PER_SEC);
	row(141, "and does not end the trap", wire_get(h1.trap.raw, MAD_TID) == tid);
	repress(0x1122);
	wire_set(d, PORTINFO_MKEY_PROTECT, MKEY_PROTECT_GET);
	row(136, "protect bits 2", smp_key(&h1, "\1\2", MAD_METHOD_SET, 0x1122, d) == 0);
	row(137, "Get without it has no response", smp_key(&h1, "\1\2", MAD_METHOD_GET, 7, NULL) == -1);
	row(142, "not even its driver's", !local_get(false));
	row(143, "unless that is to ignore the M_Key", local_get(true));
	test_run(3 * NSEC_PER_SEC);
	row(138, "after the lease Get shows it",
	    smp_key(&h1, "\1\2", MAD_METHOD_GET, 7, NULL) == 0 &&
		    wire_get(h1.last.raw + SMP_DATA, PORTINFO_MKEY) == 0x1122);
	wire_set(d, PORTINFO_MKEY, 0);
	wire_set(d, PORTINFO_MKEY_PROTECT, 0);
	smp_key(&h1, "\1\2", MAD_METHOD_SET, 0x1122, d);
}

static void test_traps(void)
{
	u64 n;

	repress(0); /* of 256 */
	h1.traps = 0;
	fabric_link_unplug(fabric_node_port(fabric_node_find(test_fabric, "leaf1"), 2));
	test_run(0);
	row(150, "a lost link makes trap 128",
	    h1.traps >= 1 && wire_get(h1.trap.raw + SMP_DATA, NOTICE_TRAP_NUMBER) == TRAP_LINK_STATE_CHANGE &&
		    wire_get(h1.trap.raw + SMP_DATA, NOTICE_128_LID) == 100);
	n = h1.traps;
	test_run(2 * NSEC_PER_SEC);
	row(151, "which is repeated", h1.traps > n);
	repress(0);
	n = h1.traps;
	test_run(100 * NSEC_PER_SEC);
	row(152, "until it is repressed", h1.traps == n);
	row(153, "LinkDowned", test_counter("leaf1", 2, FABRIC_CTR_LINK_DOWNED) >= 1);
	row(154, "the host's port is Down", h2.port->attr.state == PORT_STATE_DOWN && (h2.events & BIT(WIRE_PORT_ERR)));
	fabric_link_plug(fabric_node_port(fabric_node_find(test_fabric, "leaf1"), 2));
	test_run(0);
	row(155, "it returns to Init, and its users are told",
	    h2.port->attr.state == PORT_STATE_INIT && h1.traps > n && (h2.events & BIT(WIRE_PORT_INIT)));
	repress(0);
	test_bring_up(&h1, 2);
	n = h1.traps;
	h2.port->ops->set_cap(h2.port, PORT_CAP_SM, 0);
	test_run(0);
	row(156, "IsSM makes trap 144",
	    h1.traps > n && wire_get(h1.trap.raw + SMP_DATA, NOTICE_TRAP_NUMBER) == TRAP_LOCAL_CHANGES &&
		    (wire_get(h1.trap.raw + SMP_DATA, NOTICE_144_CAP_MASK) & PORT_CAP_SM));
	repress(0);
	h2.mads = 0;
	test_get(&h1, "\1\2", SMP_ATTR_SM_INFO, 0);
	row(157, "SMInfo is passed to the SM", h2.mads == 1);
	h2.port->ops->violation(h2.port, &(struct wire_port_violation){ .qkey = true, .key = 5, .slid = 1, .dlid = 2 });
	test_run(0);
	row(158, "a Q_Key violation makes trap 258",
	    wire_get(h1.trap.raw + SMP_DATA, NOTICE_TRAP_NUMBER) == TRAP_BAD_QKEY &&
		    h2.port->attr.qkey_violations == 1);
	repress(0);
}

static void test_events(void)
{
	u8 d[SMP_DATA_SIZE];

	h2.events = 0;
	test_get(&h1, "\1\2", SMP_ATTR_PORT_INFO, 0);
	memcpy(d, h1.last.raw + SMP_DATA, sizeof(d));
	wire_set(d, PORTINFO_STATE, 0);
	wire_set(d, PORTINFO_PHYS_STATE, 0);
	wire_set(d, PORTINFO_LID, 20);
	wire_set(d, PORTINFO_SM_LID, 3);
	wire_set(d, PORTINFO_CLIENT_REREGISTER, 1);
	test_smp(&h1, "\1\2", MAD_METHOD_SET, SMP_ATTR_PORT_INFO, 0, d);
	row(170, "LID, SM and reregistration events",
	    (h2.events & (BIT(WIRE_PORT_LID_CHANGE) | BIT(WIRE_PORT_SM_CHANGE) | BIT(WIRE_PORT_CLIENT_REREGISTER))) ==
		    (BIT(WIRE_PORT_LID_CHANGE) | BIT(WIRE_PORT_SM_CHANGE) | BIT(WIRE_PORT_CLIENT_REREGISTER)));
	row(171, "the attributes follow", h2.port->attr.lid == 20 && h2.port->attr.sm_lid == 3);
	memset(d, 0, sizeof(d));
	wire_set(d, PKEYTABLE_PKEY(0), 0xffff);
	wire_set(d, PKEYTABLE_PKEY(1), 0x8001);
	test_smp(&h1, "\1\2", MAD_METHOD_SET, SMP_ATTR_PKEY_TABLE, 0, d);
	row(172, "P_Keys", h2.port->attr.pkey[1] == 0x8001 && (h2.events & BIT(WIRE_PORT_PKEY_CHANGE)));
	memset(d, 0, sizeof(d));
	memcpy(d, "renamed", 7);
	test_smp(&h1, "\1", MAD_METHOD_SET, SMP_ATTR_NODE_DESC, 0, d);
	test_get(&h1, "\1", SMP_ATTR_NODE_DESC, 0);
	row(173, "NodeDescription is settable", !strcmp((char *)h1.last.raw + SMP_DATA, "renamed"));
	test_port_set(&h1, "\1\2", 0, 2, 0);
}

static int pma(u16 dlid, u8 method, u16 attr, u8 port, u16 select)
{
	u64 before = h1.mads;
	struct wire_mad m;

	test_smp_init(&m, MAD_CLASS_PERF, method, attr, 0);
	memset(m.raw + 24, 0, MAD_SIZE - 24);
	wire_set(m.raw + PMA_DATA, PMA_PORT_SELECT, port);
	wire_set(m.raw + PMA_DATA, PMA_COUNTER_SELECT, select);
	test_send_mad(&h1, m.raw, dlid, MAD_QPN_GSI);
	return h1.mads == before ? -1 : (int)wire_get(h1.last.raw, MAD_STATUS);
}

/* A switch without an entry for a multicast LID forwards its packets to DefaultMulticastPrimaryPort. */
static void test_gmp_to_a_group(void)
{
	struct fabric_node *leaf = fabric_node_find(test_fabric, "leaf1");
	u64 dropped = test_counter("h2", 1, FABRIC_CTR_QP1_DROPPED);

	leaf->sw->mc_primary = 2;
	row(201, "a GMP to a multicast LID is dropped",
	    pma(0xc123, MAD_METHOD_GET, PMA_ATTR_PORT_COUNTERS, 1, 0) == -1 &&
		    test_counter("h2", 1, FABRIC_CTR_QP1_DROPPED) == dropped + 1);
	leaf->sw->mc_primary = 0;
}

static void test_pma(void)
{
	u64 words;
	u32 i;

	row(180, "ClassPortInfo",
	    pma(100, MAD_METHOD_GET, PMA_ATTR_CLASS_PORT_INFO, 0, 0) == 0 &&
		    (wire_get(h1.last.raw + PMA_DATA, CPI_CAP_MASK) & PMA_CAP_ALL_PORT_SELECT));
	row(181, "counters are cleared",
	    pma(100, MAD_METHOD_SET, PMA_ATTR_PORT_COUNTERS, 2, 0xffff) == 0 &&
		    !wire_get(h1.last.raw + PMA_DATA, PORTCOUNTERS_XMIT_DATA));
	for (i = 0; i < 10; i++)
		test_send(&h1, 2, 0, 100, i);
	test_run(0);
	words = 10 * (8 + 12 + 100 + 4) / 4;
	row(182, "words and packets that have passed",
	    pma(100, MAD_METHOD_GET, PMA_ATTR_PORT_COUNTERS, 2, 0) == 0 &&
		    wire_get(h1.last.raw + PMA_DATA, PORTCOUNTERS_XMIT_DATA) == words &&
		    wire_get(h1.last.raw + PMA_DATA, PORTCOUNTERS_XMIT_PKTS) == 10);
	row(183, "the extended ones are cleared apart",
	    pma(100, MAD_METHOD_GET, PMA_ATTR_PORT_COUNTERS_EXT, 2, 0) == 0 &&
		    wire_get(h1.last.raw + PMA_DATA, PORTCOUNTERSEXT_XMIT_PKTS) >= 10 &&
		    pma(100, MAD_METHOD_SET, PMA_ATTR_PORT_COUNTERS_EXT, 2, 0xffff) == 0 &&
		    !wire_get(h1.last.raw + PMA_DATA, PORTCOUNTERSEXT_XMIT_PKTS) &&
		    pma(100, MAD_METHOD_GET, PMA_ATTR_PORT_COUNTERS, 2, 0) == 0 &&
		    wire_get(h1.last.raw + PMA_DATA, PORTCOUNTERS_XMIT_PKTS) == 10);
	row(184, "all ports of a switch",
	    pma(100, MAD_METHOD_GET, PMA_ATTR_PORT_COUNTERS, 255, 0) == 0 &&
		    wire_get(h1.last.raw + PMA_DATA, PORTCOUNTERS_XMIT_PKTS) > 10);
	row(185, "a port that is not there",
	    pma(100, MAD_METHOD_GET, PMA_ATTR_PORT_COUNTERS, 9, 0) == MAD_STATUS_BAD_VALUE);
	row(186, "an attribute that is not there", pma(100, MAD_METHOD_GET, 0x77, 1, 0) == MAD_STATUS_BAD_METHOD_ATTR);
	row(187, "a CA's own PMA, by the network",
	    pma(2, MAD_METHOD_GET, PMA_ATTR_PORT_COUNTERS, 1, 0) == 0 &&
		    wire_get(h1.last.raw + PMA_DATA, PORTCOUNTERS_RCV_PKTS) >= 10);
	row(188, "the own PMA, by loopback", pma(1, MAD_METHOD_GET, PMA_ATTR_PORT_COUNTERS, 1, 0) == 0);
	row(189, "VL counters",
	    pma(100, MAD_METHOD_GET, PMA_ATTR_PORT_VL_OP_PACKETS, 1, 0) == 0 &&
		    wire_get(h1.last.raw + PMA_DATA, PORTVLOPPKTS_VL(0)) >= 10 &&
		    wire_get(h1.last.raw + PMA_DATA, PORTVLOPPKTS_VL(15)) &&
		    pma(100, MAD_METHOD_GET, PMA_ATTR_PORT_VL_OP_DATA, 1, 0) == 0 &&
		    wire_get(h1.last.raw + PMA_DATA, PORTVLOPDATA_VL(0)) >= words);
	row(200, "one of them is cleared",
	    pma(100, MAD_METHOD_SET, PMA_ATTR_PORT_VL_OP_PACKETS, 1, 1) == 0 &&
		    !wire_get(h1.last.raw + PMA_DATA, PORTVLOPPKTS_VL(0)) &&
		    wire_get(h1.last.raw + PMA_DATA, PORTVLOPPKTS_VL(15)));
}

/* Valid QP, VL and keys of a MAD. An invalid one gets no response, and is counted. */
static const struct {
	int n;
	const char *what;
	u16 dlid;
	u8 class;
	u32 qpn, qkey;
	u16 pkey;
	u8 vl;
	bool answered;
	enum fabric_counter counter;
	u16 qkeys, pkeys; /* violations */
} checks[] = {
	{ 190, "an SMP", 2, MAD_CLASS_SUBN_LID, 0, 0, 0xffff, 15, true, 0, 0, 0 },
	{ 191, "on a data VL", 2, MAD_CLASS_SUBN_LID, 0, 0, 0xffff, 0, false, FABRIC_CTR_RCV_QP0_VL, 0, 0 },
	{ 192, "on a data VL, to a switch", 100, MAD_CLASS_SUBN_LID, 0, 0, 0xffff, 0, false, FABRIC_CTR_RCV_QP0_VL, 0,
	  0 },
	{ 193, "on a data VL, to oneself", 1, MAD_CLASS_SUBN_LID, 0, 0, 0xffff, 0, false, FABRIC_CTR_RCV_QP0_VL, 0, 0 },
	{ 194, "a directed one on a data VL", 2, MAD_CLASS_SUBN_DIRECTED, 0, 0, 0xffff, 0, false, FABRIC_CTR_RCV_QP0_VL,
	  0, 0 },
	{ 195, "a GMP on VL15", 2, MAD_CLASS_PERF, 1, MAD_QKEY_WELL_KNOWN, 0xffff, 15, false, FABRIC_CTR_RCV_VL15_QP, 0,
	  0 },
	{ 196, "data on VL15", 2, MAD_CLASS_PERF, 77, 1, 0xffff, 15, false, FABRIC_CTR_RCV_VL15_QP, 0, 0 },
	{ 197, "a GMP", 2, MAD_CLASS_PERF, 1, MAD_QKEY_WELL_KNOWN, 0xffff, 0, true, 0, 0, 0 },
	{ 198, "with a wrong Q_Key", 2, MAD_CLASS_PERF, 1, 0x11111111, 0xffff, 0, false, 0, 1, 0 },
	{ 199, "with a wrong Q_Key, to a switch", 100, MAD_CLASS_PERF, 1, 0, 0xffff, 0, false, 0, 1, 0 },
	{ 200, "with a P_Key that the port has not", 2, MAD_CLASS_PERF, 1, MAD_QKEY_WELL_KNOWN, 0x8123, 0, false, 0, 0,
	  1 },
};

static void test_checks(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		struct fabric_node *n = fabric_node_find(test_fabric, checks[i].dlid == 100 ? "leaf1"
								      : checks[i].dlid == 1 ? "h1"
											    : "h2");
		struct fabric_port *at = fabric_node_port(n, checks[i].dlid != 100);
		struct wire_packet *p = fabric_mad_packet(1, checks[i].dlid, 0, checks[i].qpn);
		u64 before = h1.mads, counted = at->ctr[checks[i].counter], lost;
		u16 qkeys = at->info->qkey_violations, pkeys = at->info->pkey_violations;
		struct wire_mad m;

		test_smp_init(&m, checks[i].class, MAD_METHOD_GET,
			      checks[i].class == MAD_CLASS_PERF ? PMA_ATTR_CLASS_PORT_INFO : SMP_ATTR_NODE_INFO, 0);
		memcpy(p->buf->data, m.raw, MAD_SIZE);
		p->vl = checks[i].vl;
		wire_lrh_set_vl(wire_packet_lrh(p), p->vl);
		wire_packet_bth(p)->pkey = cpu_to_be16(checks[i].pkey);
		wire_deth_fill((struct wire_deth *)(wire_packet_bth(p) + 1), checks[i].qkey, checks[i].qpn != 0);
		if (wire_port_send(h1.port, p))
			wire_packet_free(p);
		test_run(0);
		lost = at->ctr[checks[i].counter] - counted;
		row(checks[i].n, checks[i].what,
		    h1.mads - before == checks[i].answered && (!checks[i].counter || lost == 1) &&
			    at->info->qkey_violations - qkeys == checks[i].qkeys &&
			    at->info->pkey_violations - pkeys == checks[i].pkeys);
	}
}

/* A GMP with a GRH and a wrong Q_Key, to a PMA: the trap has the GIDs of both ends (14.2.5.1). */
static void test_violation_gids(void)
{
	const struct wire_gid from = wire_gid_make(1, 11), to = wire_gid_make(2, 22);
	struct wire_packet *p = fabric_mad_packet(1, 2, 0, MAD_QPN_GSI);
	const u8 *notice = h1.trap.raw + SMP_DATA;
	struct wire_grh *grh;
	struct wire_mad m;

	test_smp_init(&m, MAD_CLASS_PERF, MAD_METHOD_GET, PMA_ATTR_CLASS_PORT_INFO, 0);
	memcpy(p->buf->data, m.raw, MAD_SIZE);
	wire_packet_deth(p)->qkey = 0;
	memmove(p->hdr + p->bth_off + sizeof(*grh), p->hdr + p->bth_off, p->hdr_len - p->bth_off);
	p->grh_off = p->bth_off;
	p->bth_off += sizeof(*grh);
	p->hdr_len += sizeof(*grh);
	wire_lrh_fill(wire_packet_lrh(p), 0, 0, WIRE_LNH_GRH, 2, 1, wire_packet_link_len(p) / 4);
	grh = wire_packet_grh(p);
	wire_grh_set_ver_tc_flow(grh, 0, 0);
	grh->paylen = cpu_to_be16((u16)(wire_packet_link_len(p) - p->bth_off));
	grh->nxthdr = WIRE_GRH_NXTHDR_IBA;
	grh->sgid = from;
	grh->dgid = to;
	if (wire_port_send(h1.port, p))
		wire_packet_free(p);
	test_run(0);
	row(205, "the trap of a Q_Key violation has the GIDs of the GRH",
	    wire_get(notice, NOTICE_TRAP_NUMBER) == TRAP_BAD_QKEY &&
		    !memcmp(wire_cbytes(notice, NOTICE_257_GID1), &from, sizeof(from)) &&
		    !memcmp(wire_cbytes(notice, NOTICE_257_GID2), &to, sizeof(to)));
	repress(0);
}

/* By LID to the switch, by directed route from there. */
static void test_mixed(void)
{
	struct wire_mad m;
	u64 before = h1.mads;

	test_smp_init(&m, MAD_CLASS_SUBN_DIRECTED, MAD_METHOD_GET, SMP_ATTR_NODE_INFO, 0);
	wire_set(m.raw, SMP_HOP_CNT, 1);
	wire_set(m.raw, SMP_DR_SLID, 1);
	m.raw[SMP_INITIAL_PATH + 1] = 2;
	test_send_mad(&h1, m.raw, 100, MAD_QPN_SMI);
	row(210, "LID, then directed route",
	    h1.mads == before + 1 && wire_get(h1.last.raw + SMP_DATA, NODEINFO_PORT_GUID) == h2.port->port_guid);
	row(213, "a host is a ConnectX-4, as its PCI function is in a guest",
	    wire_get(h1.last.raw + SMP_DATA, NODEINFO_VENDOR_ID) == 0x2c9 &&
		    wire_get(h1.last.raw + SMP_DATA, NODEINFO_DEVICE_ID) == 0x1013);
	test_smp_init(&m, MAD_CLASS_SUBN_DIRECTED, MAD_METHOD_GET, SMP_ATTR_NODE_INFO, 0);
	wire_set(m.raw, SMP_HOP_CNT, 1);
	wire_set(m.raw, SMP_DR_DLID, 2);
	m.raw[SMP_INITIAL_PATH + 1] = 1;
	before = h1.mads;
	test_send_mad(&h1, m.raw, WIRE_LID_PERMISSIVE, MAD_QPN_SMI);
	row(211, "directed route, then LID",
	    h1.mads == before + 1 && wire_get(h1.last.raw + SMP_DATA, NODEINFO_PORT_GUID) == h2.port->port_guid);
	test_smp_init(&m, MAD_CLASS_SUBN_LID, MAD_METHOD_GET, SMP_ATTR_NODE_INFO, 0);
	before = h1.mads;
	test_send_mad(&h1, m.raw, 2, MAD_QPN_SMI);
	row(212, "by LID alone", h1.mads == before + 1 && wire_get(h1.last.raw, MAD_STATUS) == 0);
}

static void forward(u16 lid, u8 port)
{
	struct wire_mad m;

	test_smp_init(&m, MAD_CLASS_SUBN_LID, MAD_METHOD_GET, SMP_ATTR_LFT, lid / LFT_PER_BLOCK);
	test_send_mad(&h1, m.raw, 100, MAD_QPN_SMI);
	memcpy(m.raw + SMP_DATA, h1.last.raw + SMP_DATA, LFT_SIZE);
	wire_set(m.raw, MAD_METHOD, MAD_METHOD_SET);
	m.raw[SMP_DATA + lid % LFT_PER_BLOCK] = port;
	test_send_mad(&h1, m.raw, 100, MAD_QPN_SMI);
}

/* Packets with a DLID that is not one of the port's, and is not of their VL. */
static void test_dlids(void)
{
	u64 mads = h1.mads, relay = test_counter("leaf1", 1, FABRIC_CTR_RCV_SWITCH_RELAY_ERRORS), errors;
	struct wire_mad m;

	test_smp_init(&m, MAD_CLASS_PERF, MAD_METHOD_GET, PMA_ATTR_CLASS_PORT_INFO, 0);
	test_send_mad(&h1, m.raw, WIRE_LID_PERMISSIVE, MAD_QPN_GSI);
	row(220, "a switch drops a permissive DLID on a data VL, and counts it",
	    h1.mads == mads && test_counter("leaf1", 1, FABRIC_CTR_RCV_SWITCH_RELAY_ERRORS) == relay + 1);
	errors = test_counter("h2", 1, FABRIC_CTR_RCV_ERRORS);
	fabric_flight_push(test_fabric, fabric_node_port(fabric_node_find(test_fabric, "h2"), 1),
			   fabric_mad_packet(1, WIRE_LID_PERMISSIVE, 0, MAD_QPN_GSI));
	test_run(0);
	row(221, "so does an adapter", test_counter("h2", 1, FABRIC_CTR_RCV_ERRORS) == errors + 1);
	forward(77, 2);
	test_smp_init(&m, MAD_CLASS_SUBN_LID, MAD_METHOD_GET, SMP_ATTR_NODE_INFO, 0);
	mads = h1.mads;
	test_send_mad(&h1, m.raw, 77, MAD_QPN_SMI);
	row(222, "it has no SMA at the LID of another port",
	    h1.mads == mads && test_counter("h2", 1, FABRIC_CTR_RCV_ERRORS) == errors + 2);
	forward(77, 0);
	mads = h1.mads;
	errors = test_counter("leaf1", 0, FABRIC_CTR_RCV_ERRORS);
	test_send_mad(&h1, m.raw, 77, MAD_QPN_SMI);
	test_smp_init(&m, MAD_CLASS_PERF, MAD_METHOD_GET, PMA_ATTR_CLASS_PORT_INFO, 0);
	test_send_mad(&h1, m.raw, 77, MAD_QPN_GSI);
	row(223, "nor has a switch, or a PMA",
	    h1.mads == mads && test_counter("leaf1", 0, FABRIC_CTR_RCV_ERRORS) == errors + 2);
}

int main(void)
{
	u32 live = wire_packet_live();

	test_start("leafs 1 hosts 2\n");
	test_attach(&h1, "h1");
	test_attach(&h2, "h2");
	test_rows();
	test_states();
	test_mkey();
	test_traps();
	test_events();
	test_pma();
	test_gmp_to_a_group();
	test_checks();
	test_violation_gids();
	test_mixed();
	test_dlids();
	test_stop();
	row(230, "no packet leaks", wire_packet_live() == live);
	return rows_end();
}

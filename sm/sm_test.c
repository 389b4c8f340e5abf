// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Subnet manager: bring-up, sweeps and handover, on the subnet of sm_fixture.h. */
#include "emu/lib/row.h"
#include "sm/sm_fixture.h"

/* ---- checks of a configured subnet ---- */

static bool all_active(const struct fake *f)
{
	bool ok = true;
	int i, p;

	for (i = 0; i < FAKE_NODES; i++)
		for (p = 1; p <= f->node[i].nports; p++)
			if (f->node[i].peer[p].node >= 0)
				ok &= wire_get(f->node[i].info[p], PORTINFO_STATE) == PORT_STATE_ACTIVE;
	return ok;
}

static bool lids_unique(const struct fake *f, u8 lmc)
{
	int i, j;

	for (i = 0; i < FAKE_NODES; i++) {
		if (!fake_lid(f, i))
			return false;
		for (j = 0; j < i; j++)
			if (fake_lid(f, i) >> lmc == fake_lid(f, j) >> lmc && (i >= 4 || j >= 4))
				return false;
	}
	return true;
}

/* Follows the switches' tables. */
static bool arrives(const struct fake *f, int from, int to, u16 lid)
{
	bool host = f->node[from].type == NODE_TYPE_CA;
	int at = host ? f->node[from].peer[1].node : from, hops;
	u8 out;

	for (hops = 0; hops < 8 && at >= 0; hops++) {
		if (at == to)
			return true;
		if (at >= 4)
			return false;
		out = f->node[at].lft[lid];
		if (!out || out > FAKE_PORTS)
			return false;
		at = f->node[at].peer[out].node;
	}
	return false;
}

static bool all_arrive(const struct fake *f)
{
	bool ok = true;
	int i, j;

	for (i = 0; i < FAKE_NODES; i++)
		for (j = 0; j < FAKE_NODES; j++)
			ok &= arrives(f, i, j, fake_lid(f, j));
	return ok;
}

static void test_up(void)
{
	struct sm_status st;
	struct fake f;

	fake_open(&f, NULL);
	sm_status(f.sm, &st);
	row(0, "master", st.state == SM_STATE_MASTER && f.is_sm);
	row(0, "every port is Active", all_active(&f) && st.subnet_up && f.events[SM_EVENT_SUBNET_UP] >= 1);
	row(0, "the stages of its sweep", st.stage == SM_STAGE_ACTIVATION && !(f.events[SM_EVENT_STAGE] % SM_STAGES));
	row(0, "every end port has a LID of its own", lids_unique(&f, 0));
	row(0, "every LID is reached from everywhere", all_arrive(&f));
	row(0, "what it counts", st.nodes == 8 && st.switches == 4 && st.ports_active == 16 && !st.sweep_errors);
	fake_close(&f);
}

/* ---- changes ---- */

static void test_link_lost(void)
{
	u16 lids[FAKE_NODES];
	bool same = true;
	struct fake f;
	int i;

	fake_open(&f, NULL);
	for (i = 0; i < FAKE_NODES; i++)
		lids[i] = fake_lid(&f, i);
	fake_uncable(&f, 0, 3);
	fake_run(&f, 30000); /* until a light sweep */
	row(0, "around a lost link", all_arrive(&f) && all_active(&f));
	for (i = 0; i < FAKE_NODES; i++)
		same &= lids[i] == fake_lid(&f, i);
	row(0, "the LIDs are what they were", same);
	fake_close(&f);
}

static void test_trap(void)
{
	struct mad_addr from = { 0 };
	struct sm_status a, b;
	u8 mad[MAD_SIZE] = { 1, MAD_CLASS_SUBN_LID, 1, MAD_METHOD_TRAP };
	struct fake f;

	fake_open(&f, NULL);
	sm_status(f.sm, &a);
	wire_set(mad, MAD_ATTR_ID, SMP_ATTR_NOTICE);
	wire_set(mad + SMP_DATA, NOTICE_IS_GENERIC, 1);
	wire_set(mad + SMP_DATA, NOTICE_TRAP_NUMBER, TRAP_LINK_STATE_CHANGE);
	from.lid = fake_lid(&f, 1);
	wire_set(mad + SMP_DATA, NOTICE_ISSUER_LID, from.lid);
	wire_set(mad + SMP_DATA, NOTICE_128_LID, from.lid);
	sm_receive(f.sm, mad, MAD_SIZE, &from, NULL);
	row(0, "TrapRepress", wire_get(f.sent, MAD_METHOD) == MAD_METHOD_TRAP_REPRESS);
	fake_run(&f, 500);
	sm_status(f.sm, &b);
	row(0, "a trap lets it sweep", b.heavy_sweeps == a.heavy_sweeps + 1 && b.traps == 1);
	fake_close(&f);
}

static bool cabled;

/* The last host's cable is plugged while the subnet is configured. */
static bool plug_late(struct fake *f, int node, const u8 *mad)
{
	if (cabled || wire_get(mad, MAD_METHOD) != MAD_METHOD_SET || wire_get(mad, MAD_ATTR_ID) != SMP_ATTR_PORT_INFO)
		return false;
	cabled = true;
	fake_cable(f, FAKE_CA(3), 1, 1, 2);
	wire_set(f->node[1].swinfo, SWITCHINFO_PORT_STATE_CHANGE, 1);
	return false;
}

/* A link comes up before its switch knows the LID to which it would send a trap. */
static void test_no_trap(void)
{
	struct sm_status st;
	struct fake f;
	int i;

	fake_open(&f, NULL);
	fake_uncable(&f, FAKE_CA(3), 1);
	for (i = 0; i < 4; i++)
		wire_set(f.node[i].info[0], PORTINFO_SM_LID, 0);
	f.lose = plug_late;
	sm_sweep(f.sm);
	fake_run(&f, 100);
	sm_status(f.sm, &st);
	row(0, "a link that comes up while its switch is configured is found at once",
	    cabled && st.traps == 0 && all_active(&f) && st.light_sweeps >= 1);
	fake_close(&f);
}

/* Sends @times traps from @from_lid with issuer LID @issuer about LID @about. Returns the heavy sweeps that follow. */
static u64 sweeps_for(struct fake *f, u16 trap, u16 from_lid, u16 issuer, u16 about, u32 times, u32 ms)
{
	struct mad_addr from = { .lid = from_lid };
	u8 mad[MAD_SIZE] = { 1, MAD_CLASS_SUBN_LID, 1, MAD_METHOD_TRAP };
	struct sm_status a, b;
	u32 i;

	wire_set(mad, MAD_ATTR_ID, SMP_ATTR_NOTICE);
	wire_set(mad + SMP_DATA, NOTICE_IS_GENERIC, 1);
	wire_set(mad + SMP_DATA, NOTICE_TRAP_NUMBER, trap);
	wire_set(mad + SMP_DATA, NOTICE_ISSUER_LID, issuer);
	wire_set(mad + SMP_DATA, NOTICE_128_LID, about); /* 144 and 145 have it at another offset */
	if (trap != TRAP_LINK_STATE_CHANGE)
		wire_set(mad + SMP_DATA, NOTICE_144_LID, about);
	sm_status(f->sm, &a);
	for (i = 0; i < times; i++) {
		sm_receive(f->sm, mad, MAD_SIZE, &from, NULL);
		fake_run(f, ms);
	}
	sm_status(f->sm, &b);
	return b.heavy_sweeps - a.heavy_sweeps;
}

static void test_trap_flood(void)
{
	struct sm_status st;
	struct fake f;
	u16 sw, ca;
	u64 n;

	fake_open(&f, &(struct sm_config){ .sweep_ms = 1000000 });
	sw = fake_lid(&f, 1);
	ca = fake_lid(&f, FAKE_CA(2));
	row(0, "128 of a CA", sweeps_for(&f, TRAP_LINK_STATE_CHANGE, ca, ca, ca, 1, 100) == 0);
	row(0, "128 of a CA that reports to be a switch",
	    sweeps_for(&f, TRAP_LINK_STATE_CHANGE, ca, sw, sw, 1, 100) == 0);
	row(0, "128 of a CA about a switch", sweeps_for(&f, TRAP_LINK_STATE_CHANGE, ca, ca, sw, 1, 100) == 0);
	row(0, "128 of an unknown node", sweeps_for(&f, TRAP_LINK_STATE_CHANGE, 0x777, 0x777, 0x777, 1, 100) == 0);
	row(0, "144 about another port", sweeps_for(&f, TRAP_LOCAL_CHANGES, ca, ca, sw, 1, 100) == 0);
	sm_status(f.sm, &st);
	row(0, "all are counted", st.bad_traps == 5 && st.traps == 5);
	row(0, "144 of the port itself", sweeps_for(&f, TRAP_LOCAL_CHANGES, ca, ca, ca, 1, 100) == 1);
	fake_run(&f, 60000);
	n = sweeps_for(&f, TRAP_LOCAL_CHANGES, ca, ca, ca, 10000, 1); /* in ten seconds */
	row(0, "ten seconds of traps: a burst, and one sweep a second", n >= 10 && n <= 19);
	n = sweeps_for(&f, TRAP_LINK_STATE_CHANGE, sw, sw, sw, 1, 1500);
	row(0, "another's is not lost in them", n == 1);
	fake_close(&f);
}

/* ---- lost responses ---- */

static int lost_node;
static u16 lost_attr;
static u32 lost_times;

static bool lose(struct fake *f, int node, const u8 *mad)
{
	if (node != lost_node || (lost_attr && wire_get(mad, MAD_ATTR_ID) != lost_attr) || !lost_times)
		return false;
	lost_times--;
	return true;
}

static const struct {
	const char *name;
	int node;
	u16 attr;
	u32 times;
} losses[] = {
	{ "a spine's NodeInfo is lost", 2, SMP_ATTR_NODE_INFO, 1 },
	{ "a leaf's SwitchInfo is lost", 1, SMP_ATTR_SWITCH_INFO, 1 },
	{ "a host's PortInfo is lost", FAKE_CA(2), SMP_ATTR_PORT_INFO, 2 },
	{ "forwarding tables are lost", 0, SMP_ATTR_LFT, 3 },
	{ "a P_Key table is lost", FAKE_CA(1), SMP_ATTR_PKEY_TABLE, 1 },
	{ "multicast tables are lost", 3, SMP_ATTR_MFT, 1 },
	{ "a spine does not respond for a while", 3, 0, 6 },
};

static void test_losses(void)
{
	struct sm_status st;
	struct fake f;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(losses); i++) {
		lost_times = 0;
		fake_open(&f, NULL);
		lost_node = losses[i].node;
		lost_attr = losses[i].attr;
		lost_times = losses[i].times;
		f.lose = lose;
		memset(f.node[0].lft, 255, sizeof(f.node[0].lft));
		sm_route_reset(f.sm->by_lid[fake_lid(&f, 0)]->node);
		for (u32 n = 0; n < FAKE_NODES; n++) /* every SMP is retransmitted */
			f.sm->by_lid[fake_lid(&f, (int)n)]->pkeys_sent = 0;
		f.sm->by_lid[fake_lid(&f, 3)]->node->mft_unknown = true;
		sm_sweep(f.sm);
		fake_run(&f, 60000);
		sm_status(f.sm, &st);
		row(0, losses[i].name, !lost_times && st.subnet_up && all_arrive(&f) && all_active(&f));
		fake_close(&f);
	}
}

/* ---- LIDs and partitions ---- */

static void test_lids(void)
{
	static const struct sm_config lmc = { .lmc = 2 };
	struct fake f;

	fake_open(&f, &lmc);
	row(0, "LMC 2",
	    lids_unique(&f, 2) && fake_lid(&f, FAKE_CA(1)) % 4 == 0 &&
		    wire_get(f.node[FAKE_CA(1)].info[1], PORTINFO_LMC) == 2);
	row(0, "every LID of a port is reached", arrives(&f, FAKE_CA(0), FAKE_CA(3), fake_lid(&f, FAKE_CA(3)) + 3));
	fake_close(&f);
}

/* LIDs assigned by another manager are kept, unless two ports have the same one. */
static void test_lids_found(void)
{
	struct fake f;

	fake_open(&f, NULL);
	sm_destroy(f.sm);
	wire_set(f.node[FAKE_CA(3)].info[1], PORTINFO_LID, 77);
	wire_set(f.node[FAKE_CA(1)].info[1], PORTINFO_LID, 78);
	wire_set(f.node[FAKE_CA(2)].info[1], PORTINFO_LID, 78);
	f.sm = sm_create(f.loop, &fake_ops, &f, &(struct sm_config){ .sa = &sm_sa }, (char[8]){ 0 }, 8);
	sm_start(f.sm);
	fake_run(&f, 1000);
	row(0, "a LID that is found is kept", fake_lid(&f, FAKE_CA(3)) == 77);
	row(0, "one that is found twice is not kept twice", lids_unique(&f, 0) && all_arrive(&f));
	fake_close(&f);
}

static void test_partitions(void)
{
	static const struct sm_config cfg = { .partitions = "Default=0x7fff, ipoib : ALL=full ;\n"
							    "blue=0x0001 : 0x1051=full, 0x1061=limited ;\n" };
	struct fake f;

	fake_open(&f, &cfg);
	row(0, "everybody is in the default partition", f.node[FAKE_CA(0)].pkey[1][0] == 0xffff);
	row(0, "a full member", f.node[FAKE_CA(1)].pkey[1][1] == 0x8001);
	row(0, "a limited one", f.node[FAKE_CA(2)].pkey[1][1] == 0x0001);
	row(0, "no other port", f.node[FAKE_CA(3)].pkey[1][1] == 0);
	row(0, "the switch port before it has the same table",
	    f.node[1].pkey[1][1] == 0x0001 && wire_get(f.node[1].info[1], PORTINFO_PART_ENFORCE_IN));
	fake_close(&f);
}

static int change(struct fake *f, const char *text)
{
	char err[256];
	int got = sm_set_partitions(f->sm, text, "p", err, sizeof(err));

	fake_run(f, 1000);
	return got;
}

static void test_partitions_change(void)
{
	static const struct sm_config cfg = { .partitions = "Default=0x7fff, ipoib : ALL=full ;\n"
							    "red=0x0001, ipoib : 0x1051=full ;\n"
							    "blue=0x0002, ipoib : 0x1051=full, 0x1061=limited ;\n" };
	struct sm_status before, after;
	struct fake f;
	const u16 *k;

	fake_open(&f, &cfg);
	k = f.node[FAKE_CA(1)].pkey[1];
	sm_status(f.sm, &before);
	row(0, "wrong partitions have no effect", change(&f, "red=0x0001 :") && k[1] == 0x8001 && k[2] == 0x8002);
	row(0, "a partition is removed: its entry is empty",
	    !change(&f, "Default=0x7fff, ipoib : ALL=full ;\nblue=0x0002, ipoib : ALL=limited ;\n") && k[0] == 0xffff &&
		    k[1] == 0 && k[2] == 0x0002);
	sm_status(f.sm, &after);
	row(0, "its group is removed, too", after.groups == before.groups - 1 && after.partitions == 2);
	row(0, "another membership keeps its index", f.node[FAKE_CA(2)].pkey[1][1] == 0x0002);
	row(0, "a new one uses the empty entry",
	    !change(&f, "Default=0x7fff, ipoib : ALL=full ;\ngreen=0x0003 : ALL=full "
			";\nblue=0x0002, ipoib : ALL=full ;\n") &&
		    k[1] == 0x8003 && k[2] == 0x8002);
	row(0, "the switch ports follow", f.node[0].pkey[2][1] == 0x8003 && f.node[1].pkey[1][2] == 0x8003);
	row(0, "back to one",
	    !change(&f, "Default=0x7fff, ipoib : ALL=full ;\n") && !k[1] && !k[2] &&
		    !wire_get(f.node[1].info[1], PORTINFO_PART_ENFORCE_IN));
	sm_status(f.sm, &after);
	row(0, "and every port stays Active", all_active(&f) && !after.sweep_errors);
	fake_close(&f);
}

/* A leaf whose P_Key tables are too short for a host's does not enforce them: without a table it would drop all. */
static void test_partitions_too_many(void)
{
	struct fake f;

	fake_open(&f, NULL);
	wire_set(f.node[1].swinfo, SWITCHINFO_PART_ENFORCE_CAP, 1);
	row(0, "two partitions",
	    !change(&f, "Default=0x7fff, ipoib : ALL=full ;\nblue=0x0001 : 0x1051=full, 0x1061=full ;\n") &&
		    f.node[FAKE_CA(2)].pkey[1][1] == 0x8001);
	row(0, "a switch enforces them",
	    wire_get(f.node[0].info[2], PORTINFO_PART_ENFORCE_IN) &&
		    wire_get(f.node[0].info[2], PORTINFO_PART_ENFORCE_OUT) && f.node[0].pkey[2][1] == 0x8001);
	row(0, "one with too short a table does not",
	    !wire_get(f.node[1].info[1], PORTINFO_PART_ENFORCE_IN) &&
		    !wire_get(f.node[1].info[1], PORTINFO_PART_ENFORCE_OUT));
	row(0, "where the table suffices, it does", wire_get(f.node[1].info[2], PORTINFO_PART_ENFORCE_IN));
	fake_close(&f);
}

/* ---- SMInfo state machine ---- */

/* State after each SubnSet(SMInfo), by state; no row: it is rejected. */
static const struct {
	u8 from, mod, to;
} sminfo[] = {
	{ SM_STATE_STANDBY, SMINFO_MOD_HANDOVER, SM_STATE_MASTER },
	{ SM_STATE_STANDBY, SMINFO_MOD_DISABLE, SM_STATE_NOT_ACTIVE },
	{ SM_STATE_STANDBY, SMINFO_MOD_DISCOVER, SM_STATE_DISCOVERING },
	{ SM_STATE_NOT_ACTIVE, SMINFO_MOD_STANDBY, SM_STATE_STANDBY },
	{ SM_STATE_MASTER, SMINFO_MOD_HANDOVER, SM_STATE_MASTER },
};

static const u8 sm_states[] = { SM_STATE_NOT_ACTIVE, SM_STATE_DISCOVERING, SM_STATE_STANDBY, SM_STATE_MASTER };

/* SubnSet(SMInfo) from the manager on a CA. */
static void tell_from(struct fake *f, int ca, u8 mod, u64 key)
{
	struct mad_addr from = { .lid = fake_lid(f, FAKE_CA(ca)) };
	u8 mad[MAD_SIZE] = { 1, MAD_CLASS_SUBN_LID, 1, MAD_METHOD_SET };

	wire_set(mad, MAD_ATTR_ID, SMP_ATTR_SM_INFO);
	wire_set(mad, MAD_ATTR_MOD, mod);
	wire_set(mad + SMP_DATA, SMINFO_GUID, FAKE_GUID(FAKE_CA(ca)) + 1);
	wire_set(mad + SMP_DATA, SMINFO_STATE, SM_STATE_MASTER);
	wire_set(mad + SMP_DATA, SMINFO_SM_KEY, key);
	sm_receive(f->sm, mad, MAD_SIZE, &from, NULL);
}

static void tell(struct fake *f, u8 mod)
{
	tell_from(f, 2, mod, 1);
}

static bool answered(const struct fake *f, u16 status, u8 state)
{
	return wire_get(f->sent, MAD_ATTR_ID) == SMP_ATTR_SM_INFO && wire_get(f->sent, MAD_STATUS) == status &&
	       f->sm->state == state;
}

static bool sminfo_ok(struct fake *f, u8 from, u8 mod, u64 key)
{
	struct sm_status st;
	u8 to = from;
	bool refused = true;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sminfo) && key == 1; i++)
		if (sminfo[i].from == from && sminfo[i].mod == mod) {
			to = sminfo[i].to;
			refused = false;
		}
	fake_open(f, NULL);
	sm_set_state(f->sm, from);
	f->nsent = 0;
	tell_from(f, 2, mod, key);
	sm_status(f->sm, &st);
	/* a new master sends ACKNOWLEDGE: it is the last MAD sent */
	return st.sminfo_refused == refused && f->sm->state == to &&
	       (mod == SMINFO_MOD_HANDOVER && !refused ? f->nsent == 1
						       : answered(f, refused ? MAD_STATUS_BAD_VALUE : 0, to));
}

static void test_sminfo(void)
{
	static const u64 keys[] = { 1, 0, 2 };
	char what[100];
	struct fake f;
	size_t i, k;
	u8 mod;

	for (i = 0; i < ARRAY_SIZE(sm_states); i++)
		for (mod = 0; mod <= SMINFO_MOD_DISCOVER + 1; mod++)
			for (k = 0; k < ARRAY_SIZE(keys); k++) {
				snprintf(what, sizeof(what), "SubnSet(SMInfo) %u at %s with SM_Key %u", mod,
					 wire_sm_state_name(sm_states[i]), (unsigned int)keys[k]);
				row(0, what, sminfo_ok(&f, sm_states[i], mod, keys[k]));
				fake_close(&f);
			}
}

/* To a manager with a higher priority, which acknowledges. */
static void test_handover(void)
{
	struct fake f;

	fake_open(&f, NULL);
	fake_rival(&f, 5);
	sm_sweep(f.sm);
	fake_run(&f, 100);
	row(0, "after the handover it is in STANDBY", f.handovers == 1 && f.sm->state == SM_STATE_STANDBY);
	wire_set(f.rival, SMINFO_STATE, SM_STATE_MASTER);
	tell_from(&f, 1, SMINFO_MOD_ACKNOWLEDGE, 1);
	row(0, "another's ACKNOWLEDGE is refused", answered(&f, MAD_STATUS_BAD_VALUE, SM_STATE_STANDBY));
	tell(&f, SMINFO_MOD_ACKNOWLEDGE);
	row(0, "the successor's is taken", answered(&f, 0, SM_STATE_STANDBY));
	tell(&f, SMINFO_MOD_ACKNOWLEDGE);
	row(0, "once", answered(&f, MAD_STATUS_BAD_VALUE, SM_STATE_STANDBY));
	fake_run(&f, 5000);
	row(0, "and is in STANDBY then", f.handovers == 1 && f.sm->state == SM_STATE_STANDBY);
	fake_close(&f);
}

/* A master that does not show its SM_Key to a standby. */
static void test_handover_without_key(void)
{
	struct fake f;

	fake_open(&f, NULL);
	sm_set_state(f.sm, SM_STATE_STANDBY);
	f.sm->master_guid = FAKE_GUID(FAKE_CA(1)) + 1;
	f.sm->master_lid = fake_lid(&f, FAKE_CA(1));
	tell_from(&f, 2, SMINFO_MOD_HANDOVER, 0);
	row(0, "HANDOVER without a key of one that is not the master",
	    answered(&f, MAD_STATUS_BAD_VALUE, SM_STATE_STANDBY));
	tell_from(&f, 1, SMINFO_MOD_DISABLE, 0);
	row(0, "no other record without a key", answered(&f, MAD_STATUS_BAD_VALUE, SM_STATE_STANDBY));
	tell_from(&f, 1, SMINFO_MOD_HANDOVER, 0);
	row(0, "HANDOVER without a key of the master", f.sm->state == SM_STATE_MASTER);
	fake_close(&f);
}

/* A manager that takes over sets all blocks of the VL arbitration tables that the port has. */
static void test_vlarb(void)
{
	struct sm_config cfg = { .qos = true };
	struct fake f;
	u8(*table)[VLARB_SIZE];

	fake_open(&f, &cfg);
	table = f.node[FAKE_CA(1)].vlarb;
	row(0, "VL arbitration: weights of the first blocks",
	    wire_get(table[VLARB_LOW_LO], VLARB_WEIGHT(7)) && wire_get(table[VLARB_HIGH_LO], VLARB_WEIGHT(7)));
	sm_set_state(f.sm, SM_STATE_STANDBY);
	memset(table, 0x55, sizeof(f.node[0].vlarb));
	tell_from(&f, 2, SMINFO_MOD_HANDOVER, 1);
	fake_run(&f, 500);
	row(0, "VL arbitration: the second block of another manager is cleared",
	    f.sm->state == SM_STATE_MASTER && !wire_get(table[VLARB_LOW_HI], VLARB_WEIGHT(0)) &&
		    !wire_get(table[VLARB_LOW_HI], VLARB_WEIGHT(31)));
	row(0, "VL arbitration: a block that the port has not is not set",
	    wire_get(table[VLARB_HIGH_HI], VLARB_WEIGHT(0)) == 0x55);
	fake_close(&f);
}

/* ACKNOWLEDGE comes before the response to the handover. */
static void test_early_acknowledge(void)
{
	struct fake f;

	fake_open(&f, NULL);
	fake_rival(&f, 5);
	sm_sweep(f.sm);
	while (!f.sm->handing_over && loop_run_tasks(f.loop))
		;
	tell_from(&f, 1, SMINFO_MOD_ACKNOWLEDGE, 1);
	row(0, "another's ACKNOWLEDGE ends no master", answered(&f, MAD_STATUS_BAD_VALUE, SM_STATE_MASTER));
	tell_from(&f, 2, SMINFO_MOD_ACKNOWLEDGE, 2);
	row(0, "nor does one without the SM_Key", answered(&f, MAD_STATUS_BAD_VALUE, SM_STATE_MASTER));
	tell(&f, SMINFO_MOD_ACKNOWLEDGE);
	row(0, "the successor's does", answered(&f, 0, SM_STATE_STANDBY));
	fake_run(&f, 100);
	row(0, "and it stays a standby", f.sm->state == SM_STATE_STANDBY);
	fake_close(&f);
}

int main(void)
{
	test_up();
	test_link_lost();
	test_trap();
	test_no_trap();
	test_trap_flood();
	test_losses();
	test_lids();
	test_lids_found();
	test_partitions();
	test_partitions_change();
	test_partitions_too_many();
	test_sminfo();
	test_early_acknowledge();
	test_handover_without_key();
	test_handover();
	test_vlarb();
	return rows_end();
}

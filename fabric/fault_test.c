// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Faults of InfiniBand links and nodes: errors of the parser, the packets received of eight and their order, and the
 * effects on links and tables.
 *
 *     h1, h2, h3, h4 - leaf1
 */
#include "fabric/fault.h"

#include "fabric/fabric_fixture.h"

static struct test_host h[5];
static char order[400]; /* PSNs in the order in which h3 receives them */

static int record(void *ctx, struct wire_packet *p)
{
	size_t at = strlen(order);

	snprintf(order + at, sizeof(order) - at, "%s%u%s%s", at ? " " : "", wire_bth_psn(wire_packet_bth(p)),
		 p->flags & WIRE_PKT_BAD_ICRC ? "!" : "", wire_bth_fecn(wire_packet_bth(p)) ? "e" : "");
	if (p->len != 64)
		snprintf(order + strlen(order), sizeof(order) - strlen(order), "(%u)", p->len);
	return test_receive(ctx, p);
}

static void start(void)
{
	test_start_leaf(h);
	h[3].port->data.receive = record;
	order[0] = 0;
}

static struct fault *arm(const char *text)
{
	char err[300] = "";
	struct fault *ft = fault_add(fabric_faults(test_fabric), text, err, sizeof(err));

	if (!ft)
		printf("%s: %s\n", text, err);
	return ft;
}

static struct fabric_port *leaf_port(u32 num)
{
	return fabric_node_port(fabric_node_find(test_fabric, "leaf1"), num);
}

static u32 credits_in_use(void)
{
	return leaf_port(1)->rx_blocks[0] + fabric_node_port(fabric_node_find(test_fabric, "h3"), 1)->rx_blocks[0];
}

static const struct {
	const char *line, *err;
} refused[] = {
	{ "", ": a fault is a place, an action, and keys" },
	{ "h1", "h1: a fault is a place, an action, and keys" },
	{ "h1 drp", "drp: there is no such fault; there are drop " },
	{ "h9 drop", "h9: there is no such node" },
	{ "h9:1 drop", "h9:1: there is no such node" },
	{ "leaf1:99 drop", "leaf1:99: the ports of leaf1 are 1 to " },
	{ "leaf1:x drop", "leaf1:x: the ports of leaf1 are 1 to " },
	{ "leaf1:5 drop", "leaf1:5: the ports of leaf1 are 1 to 4" },
	{ "h1 drop opcod=ack", "opcod=ack: there is no \"opcod\"" },
	{ "h1 drop opcode=acks", "opcode=acks: opcode takes names such as RC_SEND_ONLY" },
	{ "h1 drop opcode=ack,", "opcode=ack,: opcode takes" },
	{ "h1 drop qpn=0x1000000", "qpn=0x1000000: qpn takes a number" },
	{ "h1 drop psn=9-5", "psn=9-5: psn takes" },
	{ "h1 drop class=Foo", "class=Foo: class takes a MAD class" },
	{ "h1 drop attr=?", "attr=?: attr takes" },
	{ "h1 drop sgid=12", "sgid=12: sgid takes a GID" },
	{ "h1 drop time=5ms", "time=5ms: there is no \"time\"; there are: dir= opcode=" },
	{ "h1 rate", "rate: it needs bps=" },
	{ "h1 corrupt what=lrh", "what=lrh" },
	{ "h1 corrupt what=all", "what=all: what takes payload, header, icrc or vcrc" },
	{ "h1 corrupt what=vcrc silent", "silent: a damaged CRC" },
	{ "h1 alter offset=3", "alter: it needs to=HEX or status=" },
	{ "h1 alter to=0g", "to=0g: to takes bytes" },
	{ "all drop dir=in", "dir: the place all has no direction" },
	{ "h1 down dir=in", "dir: no packets are matched" },
	{ "h1 degrade", "degrade: it needs lanes=, speed=, mtu=" },
	{ "h1 degrade lanes=3", "lanes=3: lanes takes 1, 2, 4, 8 or 12" },
	{ "leaf1 swap with=h1", "swap: it needs one port" },
	{ "h1 swap with=h1", "with=h1: the same port" },
	{ "h1 swap with=leaf1", "leaf1: which port?" },
	{ "leaf1:1 kill", "kill: it needs a node" },
	{ "h1 lft lid=1 port=1", "lft: h1 is not a switch" },
	{ "leaf1 lft lid=1", "lft: it needs either port= or off" },
	{ "leaf1 lft lid=9999 port=1", "lid=9999: leaf1 has no such entry" },
	{ "leaf1 lft lid=1 port=200", "port=200: the ports of leaf1 are 0 to" },
	{ "leaf1 mft lid=0xc000 port=1", "lid=49152: leaf1 has no such entry" },
	{ "h1 guid with=leaf1", "with=leaf1: one is a switch, the other is not" },
	{ "h1 lid lid=0xc000", "lid=49152: not a unicast LID" },
	{ "leaf1:1 pkey index=0 pkey=1", "pkey: leaf1 is a switch" },
	{ "h1 drop pcap='host foo'", "pcap=host foo: only link[...]" },
	{ "h1 drop pcap='link[0'", "pcap=link[0: " },
	{ "h1 drop pcap='len > 100 or 3ab'", "pcap=len > 100 or 3ab: only link[...]" },
	{ "h1 drop pcap='ether host 2:0:0:0:0:a'", "pcap=ether host 2:0:0:0:0:a: only link[...]" },
};

static void test_refused(void)
{
	char err[300];
	u32 i, k;

	start();
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		bool armed = false;
		struct fault *ft;

		err[0] = 0;
		ft = fault_add(fabric_faults(test_fabric), refused[i].line, err, sizeof(err));
		for (k = 1; k <= 4; k++)
			armed |= leaf_port(k)->hooks.n || leaf_port(k)->peer->hooks.n || leaf_port(k)->pulled;
		if (ft || strncmp(err, refused[i].err, strlen(refused[i].err)))
			printf("%s: %s\n", refused[i].line, err);
		row((int)i, refused[i].line,
		    !ft && !strncmp(err, refused[i].err, strlen(refused[i].err)) && !armed &&
			    fault_set_empty(fabric_faults(test_fabric)));
	}
	test_stop();
}

/* h1 sends PSN 1 to 8 of 64 bytes at once to h3. */
static const struct {
	const char *fault, *fault2, *come; /* received at once */
	const char *after;                 /* received within 20 ms; NULL: the same */
	u32 hits;
} packets[] = {
	{ "h3 drop", NULL, "", NULL, 8 },
	{ "h3 drop dir=in nth=3", NULL, "1 2 4 5 6 7 8", NULL, 1 },
	{ "h3 drop dir=out", NULL, "1 2 3 4 5 6 7 8", NULL, 0 },
	{ "leaf1:3 drop dir=out first=2", NULL, "3 4 5 6 7 8", NULL, 2 },
	{ "leaf1:1 drop dir=in every=4", NULL, "1 2 3 5 6 7", NULL, 2 },
	{ "h1 drop dir=out after=6", NULL, "1 2 3 4 5 6", NULL, 2 },
	{ "all drop psn=4-6", NULL, "1 2 3 7 8", NULL, 3 },
	{ "leaf1 drop psn=4-6 count=1", NULL, "1 2 3 5 6 7 8", NULL, 1 },
	{ "h2 drop", NULL, "1 2 3 4 5 6 7 8", NULL, 0 },
	{ "h3 drop opcode=UC_SEND_ONLY psn=2", NULL, "1 3 4 5 6 7 8", NULL, 1 },
	{ "h3 drop opcode=uc,0x11 psn=2", NULL, "1 3 4 5 6 7 8", NULL, 1 },
	{ "h3 drop opcode=ack", NULL, "1 2 3 4 5 6 7 8", NULL, 0 },
	{ "h3 drop qpn=17 psn=2", NULL, "1 3 4 5 6 7 8", NULL, 1 },
	{ "h3 drop qpn=18", NULL, "1 2 3 4 5 6 7 8", NULL, 0 },
	{ "h3 drop slid=1 dlid=3 psn=1", NULL, "2 3 4 5 6 7 8", NULL, 1 },
	{ "h3 drop slid=2", NULL, "1 2 3 4 5 6 7 8", NULL, 0 },
	{ "h3 drop sl=0 vl=0 len=64 psn=8", NULL, "1 2 3 4 5 6 7", NULL, 1 },
	{ "h3 drop len=65-4096", NULL, "1 2 3 4 5 6 7 8", NULL, 0 },
	{ "h3 drop pcap='link[19] == 5'", NULL, "1 2 3 4 6 7 8", NULL, 1 },
	{ "h3 drop pcap='len > 100'", NULL, "1 2 3 4 5 6 7 8", NULL, 0 },
	{ "h3 drop pcap='len == 90'", NULL, "", NULL, 8 },
	{ "h3 drop pcap='link[86:4] != 5'", NULL, "", NULL, 8 }, /* the last bytes, which are CRCs */
	{ "h3 drop pcap='link[87:4] != 5'", NULL, "1 2 3 4 5 6 7 8", NULL, 0 },
	{ "h3 drop pcap='link[link[19]] == 0x24'", NULL, "1 2 3 4 5 6 7", NULL, 1 }, /* the opcode, at 8 */
	{ "h3 drop class=SA", NULL, "1 2 3 4 5 6 7 8", NULL, 0 },
	{ "h3 duplicate nth=2", NULL, "1 2 2 3 4 5 6 7 8", NULL, 1 },
	{ "h3 duplicate nth=8 copies=3", NULL, "1 2 3 4 5 6 7 8 8 8 8", NULL, 1 },
	{ "h3 reorder nth=2 depth=3", NULL, "1 3 4 5 2 6 7 8", NULL, 1 },
	{ "h3 reorder nth=7 depth=3", NULL, "1 2 3 4 5 6 8", "1 2 3 4 5 6 8 7", 1 },
	{ "h3 delay time=10ms", NULL, "", "1 2 3 4 5 6 7 8", 8 },
	{ "h3 delay time=10ms psn=1-2", NULL, "3 4 5 6 7 8", "3 4 5 6 7 8 1 2", 2 },
	{ "h3 delay jitter=10ms", NULL, "", "1 2 3 4 5 6 7 8", 8 },
	{ "h3 delay time=30ms", NULL, "", NULL, 8 },
	{ "h3 rate bps=100k", NULL, "", "1 2", 8 },
	{ "h3 stall nth=5", NULL, "1 2 3 4", NULL, 1 },
	{ "h3 stall nth=5 for=10ms", NULL, "1 2 3 4", "1 2 3 4 5 6 7 8", 1 },
	{ "h3 corrupt what=payload nth=4", NULL, "1 2 3 4! 5 6 7 8", NULL, 1 },
	{ "h3 corrupt what=payload silent nth=4", NULL, "1 2 3 4 5 6 7 8", NULL, 1 },
	{ "h3 corrupt what=icrc nth=4", NULL, "1 2 3 4! 5 6 7 8", NULL, 1 },
	{ "h3 corrupt what=vcrc nth=4", NULL, "1 2 3 5 6 7 8", NULL, 1 },
	{ "h3 corrupt what=header offset=19 silent nth=8 seed=1", NULL, "1 2 3 4 5 6 7 9", NULL, 1 },
	{ "h3 truncate bytes=10 nth=2", NULL, "1 3 4 5 6 7 8", NULL, 1 },
	{ "h3 truncate bytes=10 silent nth=2", NULL, "1 2(10) 3 4 5 6 7 8", NULL, 1 },
	{ "h3 ecn every=4", NULL, "1 2 3 4e 5 6 7 8e", NULL, 2 },
	{ "h3 alter offset=0 to=00", NULL, "1 2 3 4 5 6 7 8", NULL, 8 },
	{ "h3 alter offset=64 to=00", NULL, "1 2 3 4 5 6 7 8", NULL, 0 },
	{ "h3 symbol times=5 nth=1", NULL, "1 2 3 4 5 6 7 8", NULL, 1 },
	{ "h3 drop psn=2", "h3 duplicate psn=2-3 dir=in", "1 3 3 4 5 6 7 8", NULL, 1 },
	{ "h3 duplicate psn=2 dir=in", "h3 drop psn=2 nth=2", "1 2 3 4 5 6 7 8", NULL, 1 },
	{ "h3 delay time=5ms dir=in", "h3 drop psn=4", "", "1 2 3 5 6 7 8", 8 },
};

static void send_eight(void)
{
	u32 i;

	for (i = 1; i <= 8; i++)
		test_send(&h[1], 3, 0, 64, i);
	test_run(0);
}

static bool packets_ok(u32 i)
{
	struct fault *a = arm(packets[i].fault), *b = packets[i].fault2 ? arm(packets[i].fault2) : NULL;
	const char *after = packets[i].after ? packets[i].after : packets[i].come;
	bool ok = a && (b || !packets[i].fault2);

	if (!ok)
		return false;
	send_eight();
	ok = !strcmp(order, packets[i].come);
	test_run(20 * NSEC_PER_MSEC);
	ok = ok && !strcmp(order, after);
	if (!ok)
		printf("%s: %s\n", packets[i].fault, order);
	if (a->pick.hits != packets[i].hits)
		printf("%s: %llu hits\n", packets[i].fault, (unsigned long long)a->pick.hits);
	ok = ok && a->pick.hits == packets[i].hits;
	fault_remove(a);
	if (b)
		fault_remove(b);
	test_run(0);
	/* Clearing the fault releases the packets that it holds, and all credits are returned. */
	return ok && !credits_in_use() && !leaf_port(3)->peer->hooks.n && test_send(&h[1], 3, 0, 64, 9) == 0;
}

/* PSN 1 to 4 have reached the faults at h3, and 5 to 8 are in flight, when the first fault is removed. */
static const struct {
	const char *fault, *fault2, *come;
	const char *after; /* received when the second one is removed, too */
} removals[] = {
	{ "h3 delay time=1s dir=in", NULL, "1 2 3 4 5 6 7 8", NULL },
	{ "h3 delay jitter=1s dir=in", NULL, "1 2 3 4 5 6 7 8", NULL },
	{ "h3 rate bps=1k dir=in", NULL, "1 2 3 4 5 6 7 8", NULL },
	{ "h3 stall dir=in", NULL, "1 2 3 4 5 6 7 8", NULL },
	{ "h3 reorder depth=1000 time=1s dir=in", NULL, "1 2 3 4 5 6 7 8", NULL },
	{ "h3 delay time=1s dir=in psn=2", NULL, "1 3 4 2 5 6 7 8", NULL },
	{ "h3 delay time=1s dir=in", "h3 drop psn=2-6 dir=in", "1 7 8", NULL },
	{ "h3 delay time=1s dir=in", "h3 rate bps=1k dir=in", "", "1 2 3 4 5 6 7 8" },
	{ "h3 drop psn=2 dir=in", "h3 delay time=1s dir=in", "", "1 3 4 5 6 7 8" },
	{ "h3 drop nth=9", NULL, "1 2 3 4 5 6 7 8", NULL },
};

static bool removals_ok(u32 i)
{
	struct fault *a = arm(removals[i].fault), *b = removals[i].fault2 ? arm(removals[i].fault2) : NULL;
	u64 before = test_counter("h3", 1, FABRIC_CTR_RCV_PKTS);
	bool ok;
	u32 psn;

	for (psn = 1; psn <= 8; psn++) {
		test_send(&h[1], 3, 0, 64, psn);
		if (psn == 4)
			test_run(0);
	}
	fault_remove(a);
	test_run(0);
	ok = !strcmp(order, removals[i].come);
	if (!ok)
		printf("%s: %s\n", removals[i].fault, order);
	if (!b)
		return ok && test_counter("h3", 1, FABRIC_CTR_RCV_PKTS) == before + 8;
	fault_remove(b);
	test_run(0);
	if (removals[i].after && strcmp(order, removals[i].after)) {
		printf("%s: then %s\n", removals[i].fault, order);
		return false;
	}
	return ok && !credits_in_use();
}

static u64 received_by_leaf(void)
{
	return test_counter("leaf1", 1, FABRIC_CTR_RCV_PKTS);
}

/* Packets in flight when a fault is armed or removed are received once. */
static void test_counted_once(void)
{
	u64 before;
	struct fault *ft;
	u32 i;

	start();
	before = received_by_leaf();
	for (i = 1; i <= 4; i++)
		test_send(&h[1], 3, 0, 64, i);
	ft = arm("h1 drop psn=3 dir=out");
	test_run(0);
	row(301, "a fault that is armed behind them", !strcmp(order, "1 2 4") && received_by_leaf() == before + 4);
	for (i = 5; i <= 8; i++)
		test_send(&h[1], 3, 0, 64, i);
	fault_remove(ft);
	test_run(0);
	row(302, "a fault that is removed before they arrive",
	    !strcmp(order, "1 2 4 5 6 7 8") && received_by_leaf() == before + 8);
	test_stop();
}

/* Packets that a fault holds when the link goes down are lost, and their credits are returned. */
static void test_link_loses_held_packets(void)
{
	static const char *const kinds[] = { "h3 delay time=1ms dir=in", "h3 rate bps=1k dir=in",
					     "h3 stall for=1ms dir=in", "h3 reorder depth=1000 time=1ms dir=in" };
	struct fault *ft;
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		start();
		ft = arm(kinds[i]);
		for (k = 1; k <= 4; k++)
			test_send(&h[1], 3, 0, 64, k);
		test_run(0);
		fabric_link_disconnect(leaf_port(3));
		fabric_link_update(leaf_port(3));
		fabric_link_state(leaf_port(3), PORT_STATE_ACTIVE);
		fabric_link_state(leaf_port(3)->peer, PORT_STATE_ACTIVE);
		test_run(10 * NSEC_PER_MSEC);
		row(330 + (int)i, kinds[i], ft->pick.hits && !*order && !credits_in_use());
		fault_remove(ft);
		test_send(&h[1], 3, 0, 64, 5);
		test_run(0);
		row(340 + (int)i, "and the link works", !strcmp(order, "5") && !credits_in_use());
		test_stop();
	}
}

static void test_packets(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(packets); i++) {
		start();
		row(100 + (int)i, packets[i].fault, packets_ok(i));
		test_stop();
	}
	for (i = 0; i < ARRAY_SIZE(removals); i++) {
		start();
		row(310 + (int)i, removals[i].fault, removals_ok(i));
		test_stop();
	}
}

/* A stall blocks the sender by credits; a delay does not. */
static void test_credits(void)
{
	u32 i, sent = 0;

	start();
	arm("h3 stall dir=in");
	for (i = 1; i < 2000 && !test_send(&h[1], 3, 0, 2048, i); i++) {
		sent++;
		test_run(0);
	}
	row(200, "a stalled link uses up credits", sent > 100 && sent < 1000);
	test_stop();
	start();
	arm("h3 delay time=1s dir=in");
	for (i = 1, sent = 0; i < 2000 && !test_send(&h[1], 3, 0, 2048, i); i++) {
		sent++;
		test_run(0);
	}
	row(201, "a long one does not", sent == 1999);
	test_run(2 * NSEC_PER_SEC);
	row(202, "and all arrive", h[3].packets == 1999 && !h[3].order_errors);
	test_stop();
}

static u8 state(const char *node, u32 port)
{
	return fabric_node_port(fabric_node_find(test_fabric, node), port)->info->state;
}

static void test_links(void)
{
	struct fault *ft;
	struct fabric_port_info info;

	start();
	ft = arm("h3 down for=5ms");
	row(210, "down", state("h3", 1) == PORT_STATE_DOWN && state("leaf1", 3) == PORT_STATE_DOWN);
	test_run(10 * NSEC_PER_MSEC);
	row(211, "is restored after its time", state("h3", 1) == PORT_STATE_INIT);
	fault_remove(ft);
	row(212, "and stays", state("h3", 1) == PORT_STATE_INIT);
	ft = arm("h2 down");
	fabric_link_unplug(leaf_port(2));
	fault_remove(ft);
	row(213, "a cable that was pulled by hand, too", state("h2", 1) == PORT_STATE_DOWN);
	fabric_link_plug(leaf_port(2));
	row(214, "is put back by hand", state("h2", 1) == PORT_STATE_INIT);
	test_stop();

	start();
	ft = arm("h3 flap down=1ms up=2ms times=2");
	test_run(NSEC_PER_MSEC / 2);
	row(215, "flap: down", state("h3", 1) == PORT_STATE_DOWN);
	test_run(2 * NSEC_PER_MSEC);
	row(216, "up", state("h3", 1) == PORT_STATE_INIT);
	test_run(NSEC_PER_MSEC);
	row(217, "down", state("h3", 1) == PORT_STATE_DOWN);
	test_run(50 * NSEC_PER_MSEC);
	row(218, "up permanently",
	    state("h3", 1) == PORT_STATE_INIT && test_counter("h3", 1, FABRIC_CTR_LINK_DOWNED) == 2);
	fault_remove(ft);
	test_stop();

	start();
	ft = arm("h3 down psn=4");
	send_eight();
	row(219, "down at a packet", state("h3", 1) == PORT_STATE_DOWN && h[3].packets >= 4);
	fault_remove(ft);
	row(220, "cleared", state("h3", 1) == PORT_STATE_INIT);
	ft = arm("h2 degrade lanes=1 speed=SDR");
	fabric_port_info(leaf_port(2), &info);
	row(221, "degraded", info.lanes == 1 && info.speed == WIRE_SPEED_SDR);
	fault_remove(ft);
	fabric_port_info(leaf_port(2), &info);
	row(222, "and restored", info.lanes == 4 && info.speed == WIRE_SPEED_HDR);
	test_stop();
}

static void test_nodes(void)
{
	char err[300];
	struct fault *ft, *drop;

	start();
	drop = arm("leaf1:3 drop dir=out");
	ft = arm("leaf1:3 swap with=leaf1:4");
	row(230, "swapped", !strcmp(leaf_port(3)->peer->node->name, "h4") && leaf_port(4)->peer->peer == leaf_port(4));
	row(231, "the hooks were moved", leaf_port(3)->peer->hooks.n && !leaf_port(4)->peer->hooks.n);
	row(280, "not twice",
	    !fault_add(fabric_faults(test_fabric), "h4 swap with=h1", err, sizeof(err)) &&
		    strstr(err, "swapped already"));
	fault_remove(ft);
	row(232, "swapped back", !strcmp(leaf_port(3)->peer->node->name, "h3") && state("h3", 1) == PORT_STATE_INIT);
	fault_remove(drop);
	test_stop();

	start();
	ft = arm("leaf1 kill");
	row(233, "a killed switch", state("h1", 1) == PORT_STATE_DOWN && state("h4", 1) == PORT_STATE_DOWN);
	fault_remove(ft);
	row(234, "after its reboot its tables are empty",
	    state("h1", 1) == PORT_STATE_INIT && !leaf_port(0)->info->lid && !leaf_port(1)->node->sw->lft);
	test_bring_up(&h[1], 4);
	send_eight();
	row(235, "and can be brought up again", h[3].packets == 8);
	test_stop();

	start();
	leaf_port(3)->peer->ca->wire.attr.pkey[1] = 0x8001;
	send_eight();
	ft = arm("h3 kill");
	fault_remove(ft);
	row(350, "after the reboot of a CA its P_Key table is that of power-on",
	    h[3].port->attr.pkey[0] == WIRE_PKEY_DEFAULT_FULL && !h[3].port->attr.pkey[1] &&
		    h[3].events & BIT_ULL(WIRE_PORT_PKEY_CHANGE));
	row(351, "its counters are 0", h[3].packets == 8 && !test_counter("h3", 1, FABRIC_CTR_RCV_PKTS));
	test_stop();

	start();
	ft = arm("leaf1 lft lid=3 port=2");
	send_eight();
	row(236, "a wrong entry", !h[3].packets && test_counter("h2", 1, FABRIC_CTR_RCV_ERRORS) == 8);
	fault_remove(ft);
	ft = arm("leaf1 lft lid=3 off");
	send_eight();
	row(237, "no entry", !h[3].packets && test_counter("leaf1", 1, FABRIC_CTR_RCV_DLID_MAPPING) == 8);
	fault_remove(ft);
	send_eight();
	row(238, "restored", h[3].packets == 8);
	ft = arm("h3 lid lid=9");
	row(239, "LID and its event", h[3].port->attr.lid == 9 && h[3].events & BIT_ULL(WIRE_PORT_LID_CHANGE));
	fault_remove(ft);
	row(240, "restored", h[3].port->attr.lid == 3);
	ft = arm("h3 pkey index=0 pkey=0x1234");
	row(241, "P_Key and its event",
	    h[3].port->attr.pkey[0] == 0x1234 && h[3].events & BIT_ULL(WIRE_PORT_PKEY_CHANGE));
	fault_remove(ft);
	row(242, "restored", h[3].port->attr.pkey[0] == 0xffff);
	ft = arm("h3 guid with=h4");
	row(243, "a duplicate GUID",
	    fabric_node_guid(fabric_node_find(test_fabric, "h3")) ==
			    fabric_node_guid(fabric_node_find(test_fabric, "h4")) &&
		    state("h3", 1) == PORT_STATE_INIT);
	fault_remove(ft);
	row(244, "restored",
	    fabric_node_guid(fabric_node_find(test_fabric, "h3")) !=
		    fabric_node_guid(fabric_node_find(test_fabric, "h4")));
	test_stop();
}

/* guid: of a node that another daemon has. */
static void test_guid_of_another_daemon(void)
{
	static const char shape[] = "leafs 1 hosts 4 first 101";
	char text[300];
	struct fabric_topology *others = fabric_topology_parse(shape, strlen(shape), "test", text, sizeof(text));
	const struct fabric_topology_node *h102;
	struct fault *ft;

	start();
	fabric_set_whole(test_fabric, others, 1);
	h102 = fabric_whole_find(test_fabric, "h102");
	ft = arm("h3 guid with=h102");
	row(270, "GUIDs of a node of another daemon",
	    fabric_node_guid(fabric_node_find(test_fabric, "h3")) == h102->guid &&
		    wire_gid_guid(&h[3].port->attr.gid[0]) == fabric_topology_port_guid(h102, 1) &&
		    state("h3", 1) == PORT_STATE_INIT);
	fault_remove(ft);
	snprintf(text, sizeof(text), "h3 guid with=0x%llx", (unsigned long long)fabric_topology_port_guid(h102, 1));
	ft = arm(text);
	row(271, "named by the GUID of its port", fabric_node_guid(fabric_node_find(test_fabric, "h3")) == h102->guid);
	fault_remove(ft);
	row(272, "no such node",
	    !fault_add(fabric_faults(test_fabric), "h3 guid with=h199", text, sizeof(text)) &&
		    strstr(text, "there is no such node"));
	row(273, "of another type",
	    !fault_add(fabric_faults(test_fabric), "h3 guid with=leaf101", text, sizeof(text)) &&
		    strstr(text, "one is a switch"));
	test_stop();
	fabric_topology_destroy(others);
}

/* MADs by class, method and attribute: a directed-route Get from h1 to the switch. */
static void test_mads(void)
{
	struct fault *ft;

	start();
	ft = arm("h1 drop class=SubnDR method=Get attr=NodeInfo count=1");
	row(250, "lost", test_get(&h[1], "\1", SMP_ATTR_NODE_INFO, 0) == -1);
	row(251, "once", test_get(&h[1], "\1", SMP_ATTR_NODE_INFO, 0) == 0);
	fault_remove(ft);
	ft = arm("h1 drop class=0x81 method=GetResp attr=0x11");
	row(252, "the response is lost", test_get(&h[1], "\1", SMP_ATTR_NODE_INFO, 0) == -1);
	row(253, "another attribute's is not", test_get(&h[1], "\1", SMP_ATTR_NODE_DESC, 0) == 0);
	fault_remove(ft);
	ft = arm("h1 alter dir=in method=GetResp status=1");
	row(254, "the response is BUSY", test_get(&h[1], "\1", SMP_ATTR_NODE_INFO, 0) == MAD_STATUS_BUSY);
	fault_remove(ft);
	ft = arm("h1 delay class=SubnDR time=5ms dir=in");
	row(255, "late", test_get(&h[1], "\1", SMP_ATTR_NODE_INFO, 0) == -1);
	h[1].mads = 0;
	test_run(10 * NSEC_PER_MSEC);
	row(256, "but not lost", h[1].mads == 1);
	fault_remove(ft);
	ft = arm("h1 corrupt what=payload class=SubnDR");
	row(257, "a damaged SMP is discarded", test_get(&h[1], "\1", SMP_ATTR_NODE_INFO, 0) == -1);
	fault_remove(ft);
	test_stop();
}

/* Random faults: the same order of packets with the same seed, another one with another seed. */
static void run_seeded(const char *fault, char *came)
{
	u32 i;

	start();
	arm(fault);
	for (i = 0; i < 12; i++)
		send_eight();
	test_run(NSEC_PER_SEC);
	strcpy(came, order);
	test_stop();
}

static void test_determinism(void)
{
	static char a[sizeof(order)], b[sizeof(order)], c[sizeof(order)];

	run_seeded("h3 drop prob=20% seed=5", a);
	run_seeded("h3 drop prob=20% seed=5", b);
	run_seeded("h3 drop prob=20% seed=6", c);
	row(260, "the same seed, the same losses", !strcmp(a, b));
	row(261, "another seed, other packets", strcmp(a, c) != 0);
	run_seeded("h3 reorder prob=20% depth=2", a);
	run_seeded("h3 reorder prob=20% depth=2", b);
	row(262, "the fabric's seed does as well", !strcmp(a, b) && strstr(a, "1 3 4 2 5"));
}

int main(void)
{
	u32 live = wire_packet_live();

	test_refused();
	test_packets();
	test_link_loses_held_packets();
	test_counted_once();
	test_credits();
	test_links();
	test_nodes();
	test_guid_of_another_daemon();
	test_mads();
	test_determinism();
	row(299, "no packet leaks", wire_packet_live() == live);
	return rows_end();
}

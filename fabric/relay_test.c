// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Data path: forwarding, credits, multicast groups, partitions, arbitration, lifetimes.
 *
 *     h1, h2, h3, h4 - leaf1
 */
#include "fabric/fabric_fixture.h"

static struct test_host h[5];

static struct fabric_port *leaf_port(u32 num)
{
	return fabric_node_port(fabric_node_find(test_fabric, "leaf1"), num);
}

static void test_forward(void)
{
	u32 i;

	test_start_leaf(h);
	for (i = 0; i < 100; i++)
		test_send(&h[1], 3, 0, 256, i + 1);
	test_run(0);
	row(1, "all arrive, in order", h[3].packets == 100 && !h[3].order_errors && !h[2].packets);
	test_send(&h[1], 77, 0, 10, 1);
	test_run(0);
	row(2, "a LID without a port", test_counter("leaf1", 1, FABRIC_CTR_RCV_SWITCH_RELAY_ERRORS) == 1);
	test_send(&h[1], 1, 0, 10, 1);
	test_run(0);
	row(3, "loopback to the own LID", h[1].packets == 1);
	test_send(&h[1], 3, 0, 2049, 200);
	test_run(0);
	row(4, "longer than the MTU", h[3].packets == 100 && test_counter("h1", 1, FABRIC_CTR_XMIT_DISCARDS) == 1);
	test_send(&h[1], 3, 2, 10, 300);
	test_run(0);
	row(5, "SL 2 uses VL 2", h[3].packets == 101 && h[3].last_vl == 2);
	fabric_link_unplug(leaf_port(3));
	test_send(&h[1], 3, 0, 10, 400);
	test_run(0);
	row(6, "to a port that is down",
	    h[3].packets == 101 && test_counter("leaf1", 3, FABRIC_CTR_XMIT_DISCARDS) == 1);
	row(7, "a host that is down drops what it sends", !test_send(&h[3], 1, 0, 10, 1));
	test_stop();
}

/* h3 stalls: the buffers on the path fill and h1 gets -EAGAIN; no packet is lost, and other hosts continue. */
static void test_backpressure(void)
{
	u32 sent = 0, i;
	bool refused = false;

	test_start_leaf(h);
	h[3].stalled = true;
	for (i = 0; i < 2000 && !refused; i++) {
		refused = test_send(&h[1], 3, 0, 1024, sent + 1) == -EAGAIN;
		sent += !refused;
		if (i % 16 == 0)
			test_run(0);
	}
	row(20, "the sender is refused at last", refused && sent > 100);
	row(21, "no buffer is overrun",
	    leaf_port(1)->rx_blocks[0] <= FABRIC_VL_BLOCKS && leaf_port(3)->peer->rx_blocks[0] <= FABRIC_VL_BLOCKS);
	row(22, "no sender was resumed yet", !h[1].ready);
	row(23, "other VLs go on", !test_send(&h[1], 2, 1, 100, 1));
	test_send(&h[2], 4, 0, 100, 1);
	test_run(0);
	row(24, "others continue", h[2].packets == 1 && h[4].packets == 1);
	row(29, "still refused", test_send(&h[1], 3, 0, 1024, sent + 1) == -EAGAIN);
	test_run(64 * 1000);
	row(30, "XmitWait counts at the host that waits for credits",
	    test_counter("h1", 1, FABRIC_CTR_XMIT_WAIT) == 1000 && !test_counter("h2", 1, FABRIC_CTR_XMIT_WAIT));
	h[1].ready = 0;
	h[3].stalled = false;
	h[3].port->resume(h[3].port);
	test_run(64 * 1000);
	row(31, "until it has them, and for its VL",
	    test_counter("h1", 1, FABRIC_CTR_XMIT_WAIT) == 1000 &&
		    fabric_port_vl_counter(leaf_port(1)->peer, 0, FABRIC_VL_WAIT) == 1000);
	row(25, "all arrive after resume, in order", h[3].packets == sent && !h[3].order_errors);
	row(26, "the sender is resumed", h[1].ready == 1);
	row(27, "credits are back", !leaf_port(1)->rx_blocks[0] && !leaf_port(3)->peer->rx_blocks[0]);
	row(28, "XmitWait counts at the switch if packets waited", leaf_port(3)->vls != NULL);
	test_stop();
}

/* The output of each switch for LID 77: the port to the next one, so that there is no end; or none. */
static void set_ring_outputs(bool loops)
{
	u32 i, k;

	for (i = 0; i < 3; i++) {
		struct fabric_node *n, *next;
		char name[8];

		snprintf(name, sizeof(name), "sw%u", i + 1);
		n = fabric_node_find(test_fabric, name);
		snprintf(name, sizeof(name), "sw%u", (i + 1) % 3 + 1);
		next = fabric_node_find(test_fabric, name);
		if (!n->sw->lft_len) {
			n->sw->lft_top = 127;
			n->sw->lft_len = 128;
			n->sw->lft = malloc(n->sw->lft_len);
			memset(n->sw->lft, LFT_PORT_NONE, n->sw->lft_len);
		}
		for (k = 1; k <= n->nports; k++) {
			struct fabric_port *p = &n->ports[k];

			if (!p->peer)
				continue;
			fabric_link_state(p, PORT_STATE_ACTIVE);
			fabric_link_state(p->peer, PORT_STATE_ACTIVE);
			if (p->peer->node == next)
				n->sw->lft[77] = loops ? (u8)k : LFT_PORT_NONE;
		}
	}
}

/* Forwarding tables with a loop, which any sender of SMPs can make, and a subnet manager makes in passing. */
static void test_loop_of_switches(void)
{
	u32 i, ran = 0;

	test_start("ring 3 hosts 1\n");
	test_attach(&h[1], "h1");
	test_attach(&h[2], "h2");
	set_ring_outputs(true);
	row(8, "a packet goes round", !test_send(&h[1], 77, 0, 256, 1));
	for (i = 0; i < 100; i++)
		ran += loop_run_tasks(test_loop);
	row(9, "and other work is done", ran == i);
	set_ring_outputs(false);
	test_run(0);
	row(10, "until the tables are right", !test_fabric->flight.n);
	test_stop();
}

static void set_mft(u32 lid_index, u16 mask)
{
	u8 d[SMP_DATA_SIZE] = { 0 };

	wire_set(d, MFT_PORT_MASK(lid_index), mask);
	test_smp(&h[1], "\1", MAD_METHOD_SET, SMP_ATTR_MFT, 0, d);
}

static void test_multicast(void)
{
	test_start_leaf(h);
	set_mft(1, BIT(1) | BIT(2) | BIT(3));
	test_send(&h[1], 0xc001, 0, 100, 1);
	test_run(0);
	row(40, "members but the sender", h[2].packets == 1 && h[3].packets == 1 && !h[1].packets && !h[4].packets);
	test_send(&h[4], 0xc001, 0, 100, 1);
	test_run(0);
	row(41, "a sender that is no member", h[1].packets == 1 && h[2].packets == 2 && h[3].packets == 2);
	test_send(&h[4], 0xc002, 0, 100, 2);
	test_run(0);
	row(42, "a group without members", test_counter("leaf1", 4, FABRIC_CTR_RCV_SWITCH_RELAY_ERRORS) == 1);
	row(43, "multicast is counted as such", test_counter("leaf1", 2, FABRIC_CTR_MC_XMIT_PKTS) == 2);
	h[2].stalled = true;
	test_send(&h[4], 0xc001, 0, 100, 3);
	test_run(0);
	h[2].stalled = false;
	h[2].port->resume(h[2].port);
	test_run(0);
	row(44, "one that stalls gets its copy later", h[2].packets == 3 && h[3].packets == 3);
	row(45, "all credits are back", !leaf_port(4)->rx_blocks[0]);
	test_stop();
}

static void send_pkey(u32 from, u16 dlid, u16 pkey)
{
	struct wire_packet *p = test_packet(h[from].port->attr.lid, dlid, 0, 10, 1, pkey);

	if (wire_port_send(h[from].port, p))
		wire_packet_free(p);
	test_run(0);
}

static void enforce(u32 port, bool in, bool out)
{
	u8 d[SMP_DATA_SIZE] = { 0 };

	wire_set(d, PKEYTABLE_PKEY(0), 0x7fff);
	wire_set(d, PKEYTABLE_PKEY(1), 0x8005);
	test_smp(&h[1], "\1", MAD_METHOD_SET, SMP_ATTR_PKEY_TABLE, port << 16, d);
	test_get(&h[1], "\1", SMP_ATTR_PORT_INFO, port);
	memcpy(d, h[1].last.raw + SMP_DATA, sizeof(d));
	wire_set(d, PORTINFO_PART_ENFORCE_IN, in);
	wire_set(d, PORTINFO_PART_ENFORCE_OUT, out);
	wire_set(d, PORTINFO_STATE, 0);
	wire_set(d, PORTINFO_PHYS_STATE, 0);
	test_smp(&h[1], "\1", MAD_METHOD_SET, SMP_ATTR_PORT_INFO, port, d);
}

static void test_partitions(void)
{
	test_start_leaf(h);
	enforce(2, true, true);
	send_pkey(1, 2, 0xffff);
	row(60, "a full member passes a limited entry", h[2].packets == 1);
	send_pkey(1, 2, 0x7fff);
	row(61, "limited to limited does not",
	    h[2].packets == 1 && test_counter("leaf1", 2, FABRIC_CTR_XMIT_CONSTRAINT_ERRORS) == 1);
	row(62, "trap 259 reports it",
	    h[1].traps >= 1 && wire_get(h[1].trap.raw + SMP_DATA, NOTICE_TRAP_NUMBER) == TRAP_BAD_PKEY_SWITCH &&
		    wire_get(h[1].trap.raw + SMP_DATA, NOTICE_259_PORT) == 2 &&
		    wire_get(h[1].trap.raw + SMP_DATA, NOTICE_259_PKEY) == 0x7fff);
	send_pkey(2, 1, 0x8006);
	row(63, "a packet of another partition is dropped",
	    !h[1].packets && test_counter("leaf1", 2, FABRIC_CTR_RCV_CONSTRAINT_ERRORS) == 1);
	send_pkey(2, 1, 0x8005);
	row(64, "the own one does", h[1].packets == 1);
	send_pkey(2, 1, 0x7fff);
	row(66, "a limited member may send", h[1].packets == 2);
	send_pkey(2, 1, 0xffff);
	row(67, "but not as a full one",
	    h[1].packets == 2 && test_counter("leaf1", 2, FABRIC_CTR_RCV_CONSTRAINT_ERRORS) == 2);
	send_pkey(2, 1, 0);
	row(68, "nor with a key that is none",
	    h[1].packets == 2 && test_counter("leaf1", 2, FABRIC_CTR_RCV_CONSTRAINT_ERRORS) == 3);
	row(65, "management passes", !test_get(&h[1], "\1\2", SMP_ATTR_NODE_INFO, 0));
	test_stop();
}

static void set_port(u32 port, struct wire_field f, u32 value)
{
	u8 d[SMP_DATA_SIZE];

	test_get(&h[1], "\1", SMP_ATTR_PORT_INFO, port);
	memcpy(d, h[1].last.raw + SMP_DATA, sizeof(d));
	wire_set(d, f, value);
	wire_set(d, PORTINFO_STATE, 0);
	wire_set(d, PORTINFO_PHYS_STATE, 0);
	test_smp(&h[1], "\1", MAD_METHOD_SET, SMP_ATTR_PORT_INFO, port, d);
}

/* Fills the host's buffer, so that later packets are queued in the switch. */
static u32 fill(u32 from, u32 to, u8 sl)
{
	u32 n = 0;

	while (leaf_port(to)->peer->rx_blocks[sl] + 17 <= FABRIC_VL_BLOCKS && n < 1000) {
		test_send(&h[from], (u16)to, sl, 1000, ++n);
		test_run(0);
	}
	return n;
}

static void test_timers(void)
{
	u32 n;

	test_start_leaf(h);
	set_port(3, PORTINFO_HOQ_LIFE, 10); /* 4.2 ms */
	set_port(3, PORTINFO_VL_STALL_COUNT, 2);
	h[3].stalled = true;
	n = fill(1, 3, 0);
	test_send(&h[1], 3, 0, 1000, n + 1);
	test_run(NSEC_PER_MSEC);
	row(80, "what waits is not yet dropped", leaf_port(3)->vls && leaf_port(3)->vls->queued[0] == 1);
	test_run(5 * NSEC_PER_MSEC);
	row(81, "HOQLife is over", !leaf_port(3)->vls->queued[0] && test_counter("leaf1", 3, FABRIC_CTR_XMIT_HOQ) == 1);
	test_send(&h[1], 3, 0, 1000, n + 2);
	test_run(5 * NSEC_PER_MSEC);
	row(82, "the VL stalls after VLStallCount", leaf_port(3)->vls->stalled == 1);
	test_send(&h[1], 3, 0, 1000, n + 3);
	test_run(0);
	row(83, "and drops at once", test_counter("leaf1", 3, FABRIC_CTR_XMIT_HOQ) == 3);
	test_run(40 * NSEC_PER_MSEC);
	h[3].stalled = false;
	h[3].port->resume(h[3].port);
	test_run(0);
	test_send(&h[1], 3, 0, 1000, n + 4);
	test_run(0);
	row(84, "until 8 HOQLives are over", h[3].packets == n + 1);
	row(85, "no credits are lost", !leaf_port(1)->rx_blocks[0] && !leaf_port(3)->peer->rx_blocks[0]);
	row(86, "XmitWait", test_counter("leaf1", 3, FABRIC_CTR_XMIT_WAIT) > 1000);
	test_stop();
	test_start_leaf(h);
	h[3].stalled = true;
	n = fill(1, 3, 0);
	test_send(&h[1], 3, 0, 1000, n + 1);
	test_run(2 * NSEC_PER_SEC); /* SwitchInfo:LifeTimeValue 18: 1.07 s; no HOQLife */
	row(87, "the switch lifetime is over", test_counter("leaf1", 3, FABRIC_CTR_XMIT_LIFETIME) == 1);
	test_stop();
}

static void set_arb(u32 port, u32 block, const u8 (*entries)[2], u32 n)
{
	u8 d[SMP_DATA_SIZE] = { 0 };
	u32 i;

	for (i = 0; i < n; i++) {
		wire_set(d, VLARB_VL(i), entries[i][0]);
		wire_set(d, VLARB_WEIGHT(i), entries[i][1]);
	}
	test_smp(&h[1], "\1", MAD_METHOD_SET, SMP_ATTR_VL_ARB, block << 16 | port, d);
}

static u8 order[1024];
static u32 norder;

static int record(void *ctx, struct wire_packet *p)
{
	struct test_host *host = ctx;

	if (host->stalled)
		return -EAGAIN;
	if (norder < sizeof(order))
		order[norder++] = p->vl;
	wire_packet_free(p);
	return 0;
}

/*
 * VL 0 from h1 and VL 1 from h2 are queued in the switch for h3; then the output becomes free, and all packets leave by
 * arbitration.
 */
static void contend(const u8 (*low)[2], u32 nlow, const u8 (*high)[2], u32 nhigh, u8 limit)
{
	struct fabric_port *out;
	u32 i, held;

	test_start_leaf(h);
	out = leaf_port(3);
	set_arb(3, VLARB_LOW_LO, low, nlow);
	set_arb(3, VLARB_HIGH_LO, high, nhigh);
	set_port(3, PORTINFO_VL_HIGH_LIMIT, limit);
	h[3].port->data.receive = record;
	h[3].stalled = true;
	held = fill(1, 3, 0) + fill(2, 3, 1);
	for (i = 0; i < 100; i++) {
		test_send(&h[1], 3, 0, 1000, 5000 + i);
		test_send(&h[2], 3, 1, 1000, 5000 + i);
	}
	test_run(0);
	row(100, "both wait", out->vls->queued[0] == 100 && out->vls->queued[1] == 100);
	norder = 0;
	memset(out->peer->rx_blocks, 0, sizeof(out->peer->rx_blocks)); /* a large buffer, so that one run sends all */
	fabric_arb_run(out);
	h[3].stalled = false;
	h[3].port->resume(h[3].port);
	test_run(0);
	norder -= min(norder, held); /* these were in the host's buffer before */
	memmove(order, order + held, norder);
	row(101, "all leave", norder == 200);
}

static u32 share(u8 vl, u32 first)
{
	u32 i, n = 0;

	for (i = 0; i < first; i++)
		n += order[i] == vl;
	return n;
}

static void test_arbitration(void)
{
	static const u8 both[][2] = { { 0, 64 }, { 1, 16 } }, zero[][2] = { { 0, 64 } }, one[][2] = { { 1, 34 } };

	contend(both, 2, NULL, 0, 0);
	row(102, "weights 64 and 16 share about 4 to 1", share(0, 100) > 70 && share(0, 100) < 90);
	test_stop();
	contend(zero, 1, one, 1, 255);
	row(103, "high priority without a limit is sent first", share(1, 100) == 100);
	test_stop();
	contend(zero, 1, one, 1, 1);
	row(104, "with a limit of 4096 bytes the low one gets its turns", share(0, 60) > 5 && share(1, 60) > 30);
	test_stop();
	contend(NULL, 0, NULL, 0, 0);
	row(105, "empty tables: round robin", share(0, 100) == 50);
	test_stop();
}

static void test_damage(void)
{
	struct wire_packet *p;
	u32 i;

	test_start_leaf(h);
	set_port(1, PORTINFO_LOCAL_PHY_ERRORS, 2);
	for (i = 0; i < 3; i++) {
		p = test_packet(1, 3, 0, 10, i, 0xffff);
		p->flags = WIRE_PKT_BAD_VCRC;
		if (wire_port_send(h[1].port, p))
			wire_packet_free(p);
	}
	test_run(0);
	row(120, "a damaged packet is not forwarded",
	    !h[3].packets && test_counter("leaf1", 1, FABRIC_CTR_RCV_ERRORS) == 3);
	row(121, "too many are trap 129",
	    test_counter("leaf1", 1, FABRIC_CTR_LINK_INTEGRITY_ERRORS) == 1 &&
		    wire_get(h[1].trap.raw + SMP_DATA, NOTICE_TRAP_NUMBER) == TRAP_LINK_INTEGRITY);
	test_stop();
}

int main(void)
{
	u32 live = wire_packet_live();

	test_forward();
	test_loop_of_switches();
	test_backpressure();
	test_multicast();
	test_partitions();
	test_timers();
	test_arbitration();
	test_damage();
	row(199, "no packet leaks", wire_packet_live() == live);
	return rows_end();
}

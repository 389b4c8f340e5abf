// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two switches and four stations in virtual time: forwarding of frames.
 *
 *     a (VLAN 1; 5 tagged)   b (VLAN 1)          c (VLAN 1)   d (VLAN 5)
 *            2 ---- sw1 ---- 3                     2 --- sw2 --- 3
 *                    1 -------- all VLANs ---------- 1
 */
#include <errno.h>

#include "emu/lib/row.h"
#include "emu/wire/ip.h"
#include "fabric/eth/eth_internal.h"

enum {
	A,
	B,
	C,
	D,
	STATIONS
};

struct station {
	struct eth_end *end;
	struct ether_port *port;
	u32 got, ready;
	struct wire_buf *last;
	bool full, up;
};

static struct loop *loop;
static struct eth *net;
static struct station st[STATIONS];

static int receive(void *ctx, struct wire_buf *frame)
{
	struct station *s = ctx;

	if (s->full)
		return -EAGAIN;
	s->got++;
	wire_buf_put(s->last);
	s->last = wire_buf_get(frame);
	return 1;
}

static void ready(void *ctx)
{
	((struct station *)ctx)->ready++;
}

static void link_changed(void *ctx, bool up)
{
	((struct station *)ctx)->up = up;
}

static void add(int i, struct eth_switch *sw, const char *name, const struct eth_link_config *cfg)
{
	u8 mac[ETHER_ALEN] = { 2, 0, 0, 0, 0, (u8)(i + 1) };

	st[i] = (struct station){ .end = eth_station_add(sw, name, mac, cfg), .up = true };
	st[i].port = eth_station_port(st[i].end);
	st[i].port->nic =
		(struct ether_user){ .ctx = &st[i], .receive = receive, .ready = ready, .link = link_changed };
}

static void build(const struct eth_link_config *link)
{
	struct eth_link_config cable = *link, a = *link, d = *link;
	struct eth_switch *sw1, *sw2;

	loop = loop_create_virtual();
	net = eth_create(loop, 1);
	sw1 = eth_switch_add(net, "sw1", 10 * NSEC_PER_SEC);
	sw2 = eth_switch_add(net, "sw2", 0);
	cable.all = true;
	a.trunk[0] = 5;
	a.ntrunk = 1;
	d.vlan = 5;
	eth_cable_add(sw1, sw2, &cable);
	add(A, sw1, "a", &a);
	add(B, sw1, "b", link);
	add(C, sw2, "c", link);
	add(D, sw2, "d", &d);
}

static void clear(void)
{
	u32 i;

	for (i = 0; i < STATIONS; i++)
		st[i].got = st[i].ready = 0;
}

static void finish(void)
{
	u32 i;

	eth_destroy(net);
	loop_destroy(loop);
	for (i = 0; i < STATIONS; i++)
		wire_buf_put(st[i].last);
}

/* Runs for @ms of simulated time. */
static void run(u32 ms)
{
	loop_run_idle(loop, loop_now(loop).ns + ms * NSEC_PER_MSEC);
}

static const u8 broadcast[ETHER_ALEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

/* Sends without waiting; @to less than 0: broadcast. @tci: 0 without a tag. */
static int put(int from, int to, u16 tci, u32 len)
{
	struct ether_header h = { .tagged = tci, .tci = tci, .type = 0x88b5 };
	struct wire_buf *buf = wire_buf_alloc(len);
	int err;

	memset(buf->data, 0x55, len);
	memcpy(h.dst, to < 0 ? broadcast : st[to].port->mac, ETHER_ALEN);
	memcpy(h.src, st[from].port->mac, ETHER_ALEN);
	ether_header_put(&h, buf->data);
	err = ether_port_send(st[from].port, buf);
	if (err)
		wire_buf_put(buf);
	return err;
}

static void say(int from, int to, u16 tci, u32 len)
{
	put(from, to, tci, len);
	run(1);
}

static bool got(u32 a, u32 b, u32 c, u32 d)
{
	bool ok = st[A].got == a && st[B].got == b && st[C].got == c && st[D].got == d;

	clear();
	return ok;
}

static u64 count(const char *place, enum eth_counter c)
{
	return eth_end_counter(eth_find(net, place), c);
}

static void test_learning(void)
{
	static const struct eth_link_config plain;

	build(&plain);
	say(A, -1, 0, 60);
	row(1, "a broadcast reaches the VLAN on both switches", got(0, 1, 1, 0));
	say(B, A, 0, 60);
	row(2, "a learned station is found", got(1, 0, 0, 0));
	say(A, C, 0, 60);
	row(3, "an unknown one is flooded", got(0, 1, 1, 0));
	say(C, A, 0, 60);
	say(A, C, 0, 60);
	row(4, "and then learned", got(1, 0, 1, 0));
	row(5, "frames are counted at both ends", count("sw2:2", ETH_CTR_TX_FRAMES) == count("c", ETH_CTR_RX_FRAMES));
	run(25000);
	say(B, A, 0, 60);
	row(6, "a silent station is aged out, by the switch whose time has passed",
	    got(1, 0, 0, 0) && count("sw1:3", ETH_CTR_FLOODED) == 1);
	finish();
}

static void test_vlans(void)
{
	static const struct eth_link_config plain;

	build(&plain);
	say(A, -1, 5 | 3 << 13, 64);
	row(10, "a tagged broadcast stays in its VLAN", got(0, 0, 0, 1));
	row(11, "and loses its tag where the port has that VLAN untagged",
	    st[D].last->size == 60 && ether_type(st[D].last->data) == 0x88b5);
	say(D, A, 0, 60);
	row(12, "a response has the tag again",
	    st[A].last->size == 64 && ether_type(st[A].last->data) == ETHERTYPE_VLAN &&
		    wire_load(st[A].last->data + ETHER_TCI, 2) == 5 && got(1, 0, 0, 0));
	say(B, -1, 5, 64);
	row(13, "a tag that the port does not have is filtered",
	    got(0, 0, 0, 0) && count("sw1:3", ETH_CTR_RX_FILTERED) == 1);
	say(B, -1, 6 << 13, 64);
	row(14, "a tag of VLAN 0 is a priority alone", got(1, 0, 1, 0));
	finish();
}

static void test_links(void)
{
	static const struct eth_link_config slow = { .rate = 100000000, .queue = 4000 };
	u32 n = 0;

	build(&slow);
	say(B, A, 0, 60);
	clear();
	while (n < 100 && put(A, B, 0, 1000) == 0)
		n++;
	row(20, "a full queue is reported, without loss", n == 4 && count("a", ETH_CTR_TX_DROPPED) == 0);
	loop_run_idle(loop, loop_now(loop).ns + 150 * NSEC_PER_USEC);
	row(21, "a frame takes its time: 1024 bytes at 100 Mb/s", st[B].got == 2);
	run(1);
	row(22, "all arrive, and there is room again", st[B].got == 4 && st[A].ready == 1);
	clear();
	say(A, B, 0, 1600);
	row(23, "a frame longer than the MTU is none", got(0, 0, 0, 0) && count("a", ETH_CTR_TX_DROPPED) == 1);
	eth_end_set_up(eth_find(net, "sw1:3"), false);
	row(24, "both ends report a link that is down", !st[B].up && !st[B].port->up);
	say(A, B, 0, 100);
	row(25, "no frame passes it", st[B].got == 0);
	eth_end_set_up(st[B].end, true);
	clear();
	say(A, B, 0, 100);
	row(26, "it comes up again", st[B].up && st[B].got == 1);
	finish();
}

/* Frames that a station has sent of ten with 1024 bytes, at 100 Mb/s, when its timer is late by @late_us. */
static u64 left_after(u32 late_us)
{
	u32 i;

	for (i = 0; i < 10; i++)
		put(A, B, 0, 1000);
	loop_run_idle(loop, loop_now(loop).ns);
	loop_timer_set(loop, &st[A].end->timer, loop_now(loop).ns + late_us * NSEC_PER_USEC);
	loop_run_idle(loop, loop_now(loop).ns + late_us * NSEC_PER_USEC);
	return count("a", ETH_CTR_TX_FRAMES);
}

static void test_late_timers(void)
{
	static const struct eth_link_config slow = { .rate = 100000000 };
	u64 before;

	build(&slow);
	say(B, A, 0, 60);
	before = count("a", ETH_CTR_TX_FRAMES);
	row(27, "a late timer does not make the link slower", left_after(500) - before == 7);
	loop_run_idle(loop, loop_now(loop).ns + 100 * NSEC_PER_USEC);
	row(28, "nor faster", count("a", ETH_CTR_TX_FRAMES) - before == 8);
	run(1);
	before = count("a", ETH_CTR_TX_FRAMES);
	row(29, "an idle link gains no credit", left_after(1) - before == 1);
	finish();
}

static void test_pause(const struct eth_link_config *link, u16 tci, int n)
{
	bool lossless = link->pause || link->pfc & BIT(tci >> 13);
	u32 i, sent = 0;

	build(link);
	say(B, A, tci, 64);
	clear();
	st[B].full = true;
	for (i = 0; i < 200; i++) {
		sent += put(A, B, tci, 1000) == 0;
		run(1);
	}
	row(n, "a station without room stops the other end, or loses",
	    (count("b", ETH_CTR_RX_DROPPED) == 0) == lossless);
	row(n + 1, "by pause frames", (count("sw1:3", ETH_CTR_RX_PAUSE) > 0) == lossless);
	row(n + 2, "the sender is stopped in the end", (sent < 200) == lossless);
	st[B].full = false;
	st[B].port->ops->resume(st[B].port);
	run(2000);
	row(n + 3, "then the rest arrives", !lossless || st[B].got == sent);
	finish();
}

/* Sends an IPv4 packet; @tos: ECN-capable or not. */
static void put_ip(int from, int to, u8 tos)
{
	struct ether_header h = { .type = WIRE_INET_IP4 };
	struct wire_buf *buf = wire_buf_alloc(1000);
	u8 *ip = buf->data + ETHER_SIZE;

	memset(buf->data, 0, buf->size);
	memcpy(h.dst, st[to].port->mac, ETHER_ALEN);
	memcpy(h.src, st[from].port->mac, ETHER_ALEN);
	ether_header_put(&h, buf->data);
	ip[0] = 0x45;
	ip[IP4_TOS] = tos;
	wire_set(ip, IP4_CHECK, wire_inet_fold(wire_inet_sum(0, ip, IP4_SIZE)));
	if (ether_port_send(st[from].port, buf))
		wire_buf_put(buf);
}

/* The last packet received by B is valid, with @tos. */
static bool came(u8 tos)
{
	const u8 *ip = st[B].last->data + ETHER_SIZE;

	return ip[IP4_TOS] == tos && !wire_inet_fold(wire_inet_sum(0, ip, IP4_SIZE));
}

/* Two stations fill the queue for the link of a third. Returns how many received frames are marked CE. */
static u64 marked(u8 tos, u8 amidst)
{
	u32 i;
	bool right;

	for (i = 0; i < 20; i++) {
		put_ip(A, B, tos);
		put_ip(C, B, tos);
	}
	run(2);
	right = came(amidst);
	run(3);
	return right && came(tos) && got(0, 40, 0, 0) ? count("sw1:3", ETH_CTR_TX_MARKED) : ~0ull;
}

static void test_marking(void)
{
	static const struct eth_link_config slow = { .rate = 100000000, .ecn = 3000 };
	u64 n;

	build(&slow);
	say(B, -1, 0, 60);
	clear();
	row(60, "who does not permit it is not marked", marked(0, 0) == 0);
	n = marked(0x6a, 0x6a | WIRE_ECN_CE);
	row(61, "what leaves while so many bytes wait is, and whole; the last ones are not", n > 20 && n < 40);
	finish();
}

static bool arm(const char *text, struct fault **ft)
{
	char err[200];

	*ft = fault_add(eth_faults(net), text, err, sizeof(err));
	return *ft;
}

static void start_faults(void)
{
	static const struct eth_link_config plain;

	build(&plain);
	say(B, A, 0, 60);
	clear();
}

static void test_fault_lines(void)
{
	static const char *const wrong[] = { "",
					     "b",
					     "b melt",
					     "x drop",
					     "b drop melt=1",
					     "b drop pcap=(((",
					     "b drop pcap='host localhost'",
					     "b drop pcap=3ab",
					     "b drop pcap='host 10-4'",
					     "b drop pcap='len-4 > 100'",
					     "b drop pcap='host ab:cd'",
					     "b drop pcap='port http'",
					     "b drop pcap='ether proto \\\\ip'",
					     "b storm class=8",
					     "b storm",
					     "sw1:9 drop",
					     "sw1:0 drop",
					     "b drop time=5ms",
					     "b storm nth=1",
					     "sw1:1 kill",
					     "b rate",
					     "b rate bps=1M nth=1",
					     "b down dir=in",
					     "b swap",
					     "sw1 swap with=a",
					     "b swap with=b",
					     "b swap with=sw1",
					     "b swap with=sw1:2",
					     "sw1:1 swap with=sw2:2",
					     "sw1:3 swap with=sw2:1" };
	static const char *const right[] = {
		"b drop pcap='host 10.0.0.1 or ether host 02:00:5e:00:00:0a or ip6 host fe80::a'",
		"b drop pcap='net 10.0.0.0/8 and not vlan 5 and udp port 4791'",
		"b drop pcap='ether[12:2]=0x8915 or udp[8] & 0x3f > 5 and len - 4 > 100'",
	};
	struct fault *ft;
	u32 i;

	start_faults();
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		row(60 + (int)i, wrong[i], !arm(wrong[i], &ft));
	for (i = 0; i < ARRAY_SIZE(right); i++) {
		bool armed = arm(right[i], &ft);

		row(80 + (int)i, right[i], armed);
		if (armed)
			fault_remove(ft);
	}
	arm("all drop", &ft); /* an invalid place: not armed */
	finish();
}

static void test_faults(void)
{
	struct fault *ft;
	u32 i;

	start_faults();
	row(40, "drop: the second one", arm("b drop dir=in nth=2", &ft));
	for (i = 0; i < 3; i++)
		say(A, B, 0, 60);
	row(41, "one is dropped, and counted", got(0, 2, 0, 0) && ft->pick.hits == 1);
	fault_remove(ft);
	arm("b duplicate dir=in copies=2 nth=1", &ft);
	say(A, B, 0, 60);
	row(42, "three of one", got(0, 3, 0, 0));
	fault_remove(ft);
	arm("b delay dir=in time=5ms", &ft);
	say(A, B, 0, 60);
	row(43, "not yet", got(0, 0, 0, 0) && fault_held(ft) == 1);
	run(5);
	row(44, "after the time", got(0, 1, 0, 0));
	fault_remove(ft);
	arm("b reorder dir=in nth=1 time=1s", &ft);
	say(A, B, 0, 60);
	say(A, B, 0, 61);
	row(45, "the first arrives last", st[B].last->size == 60 && got(0, 2, 0, 0));
	fault_remove(ft);
	arm("b corrupt dir=in nth=1 fcs", &ft);
	say(A, B, 0, 60);
	row(46, "a bad FCS is dropped", got(0, 0, 0, 0) && count("b", ETH_CTR_RX_FCS) == 1);
	fault_remove(ft);
	arm("b corrupt dir=in nth=1 offset=20", &ft);
	say(A, B, 0, 60);
	row(47, "one byte is another", got(0, 1, 0, 0) && st[B].last->data[20] != 0x55 && st[B].last->data[21] == 0x55);
	fault_remove(ft);
	arm("b drop dir=in pcap=\"greater 100\"", &ft);
	say(A, B, 0, 60);
	say(A, B, 0, 160);
	row(48, "only what the filter matches", got(0, 1, 0, 0));
	fault_remove(ft);
	finish();
}

static void test_fault_ecn(void)
{
	struct fault *ft;

	start_faults();
	arm("b ecn dir=in nth=1", &ft);
	put_ip(A, B, 0x68);
	run(1);
	row(49, "a frame that is not ECN-capable is not marked", came(0x68) && !ft->pick.seen);
	put_ip(A, B, 0x6a);
	run(1);
	row(50, "one that is, is marked, with a valid checksum", came(0x6b) && ft->pick.hits == 1);
	put_ip(A, B, 0x6a);
	run(1);
	row(51, "the next one is not selected", came(0x6a) && ft->pick.seen == 2);
	fault_remove(ft);
	finish();
}

static void test_fault_truncate(void)
{
	struct fault *ft;

	start_faults();
	arm("b truncate dir=in bytes=40 nth=1", &ft);
	say(A, B, 0, 60);
	row(52, "a frame that ends early", got(0, 1, 0, 0) && st[B].last->size == 40);
	fault_remove(ft);
	arm("b truncate dir=in bytes=0", &ft);
	say(A, B, 0, 60);
	row(53, "one without addresses is dropped, and counted",
	    got(0, 0, 0, 0) && count("b", ETH_CTR_RX_SHORT) == 1 && ft->pick.hits == 1);
	fault_remove(ft);
	arm("b truncate dir=in bytes=40 fcs", &ft);
	say(A, B, 0, 40);
	say(A, B, 0, 60);
	row(54, "a bad FCS; a frame of that length does not match",
	    got(0, 1, 0, 0) && count("b", ETH_CTR_RX_FCS) == 1 && ft->pick.seen == 1);
	fault_remove(ft);
	arm("b drop", &ft);
	finish(); /* with a fault armed */
}

static u32 changes;

static void on_change(void *ctx, const struct eth_end *end)
{
	changes++;
}

/* Frames that a fault holds when the link goes down do not arrive when it is up again. */
static void test_link_loses_held_frames(void)
{
	static const struct eth_link_config plain;
	static const char *const kinds[] = { "b delay time=5ms", "b stall for=5ms", "b reorder depth=9 time=5ms" };
	struct fault *ft;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		build(&plain);
		say(B, A, 0, 60);
		clear();
		arm(kinds[i], &ft);
		say(A, B, 0, 60);
		eth_end_set_up(st[B].end, false);
		eth_end_set_up(st[B].end, true);
		run(20);
		row(130 + (int)i, kinds[i], ft->pick.hits == 1 && got(0, 0, 0, 0));
		fault_remove(ft);
		say(A, B, 0, 60);
		row(140 + (int)i, "and the link works", st[B].got == 1);
		finish();
	}
}

/* Faults of links, of switches and of stations. */
static void test_link_faults(void)
{
	static const struct eth_link_config plain, fast = { .rate = 1000000000 };
	struct fault *ft, *other;

	build(&plain);
	say(B, A, 0, 60);
	clear();
	eth_watch(net, on_change, NULL);
	arm("b down for=5ms", &ft);
	say(A, B, 0, 60);
	row(80, "down: no frame passes, and both ends are notified", !st[B].up && got(0, 0, 0, 0) && changes == 2);
	eth_end_set_up(st[B].end, false);
	run(6);
	row(81, "a link set down by command remains down", !st[B].up);
	eth_end_set_up(st[B].end, true);
	row(82, "and up", st[B].up && changes == 4);
	fault_remove(ft);
	arm("b down nth=2", &ft);
	say(A, B, 0, 60);
	row(83, "not by the first frame", st[B].up);
	say(A, B, 0, 60);
	row(84, "but by the second", !st[B].up && ft->pick.hits == 1);
	arm("b down", &other);
	fault_remove(ft);
	row(85, "two faults: down until both have ended", !st[B].up);
	fault_remove(other);
	row(86, "then up", st[B].up);
	changes = 0;
	arm("b flap down=1ms up=1ms times=3", &ft);
	run(20);
	row(87, "flap: three times", st[B].up && changes == 12 && !ft->applied);
	fault_remove(ft);
	arm("sw1 kill", &ft);
	row(88, "a switch that is killed: all its links", !st[A].up && !st[B].up);
	fault_remove(ft);
	row(89, "up again", st[A].up && st[B].up);
	clear();
	say(A, B, 0, 60);
	row(90, "its forwarding table is empty: the frame is flooded", st[B].got == 1 && st[2].got == 1);
	say(B, A, 0, 60);
	clear();
	arm("sw1 drop nth=3", &ft);
	say(A, B, 0, 60);
	say(A, B, 0, 60);
	row(91, "of a switch: frames in and out, on all its ports", got(0, 1, 0, 0) && ft->pick.seen == 3);
	fault_remove(ft);
	clear();
	arm("b stall dir=in nth=1", &ft);
	say(A, B, 0, 60);
	say(A, B, 0, 60);
	row(92, "a stall delays following frames", got(0, 0, 0, 0) && fault_held(ft) == 2);
	fault_remove(ft);
	row(93, "until it is cleared", got(0, 2, 0, 0));
	finish();

	build(&fast);
	arm("b rate bps=100M", &ft);
	arm("sw1 rate bps=500M dir=out", &other);
	row(94, "the lowest rate of cable and faults",
	    eth_end_rate(st[B].end) == 100000000 && eth_end_rate(st[A].end) == 1000000000);
	fault_remove(ft);
	row(95, "of those that remain",
	    eth_end_rate(st[B].end) == 1000000000 && eth_end_rate(eth_end_peer(st[B].end)) == 500000000);
	fault_remove(other);
	row(96, "and of the cable", eth_end_rate(eth_end_peer(st[B].end)) == 1000000000);
	finish();
}

static bool at_port(int i, const char *name)
{
	return eth_end_peer(st[i].end) == eth_find(net, name) && eth_end_peer(eth_find(net, name)) == st[i].end;
}

/* Cables of stations exchanged. */
static void test_swapped_cables(void)
{
	static const struct eth_link_config plain, fast = { .rate = 1000000000 };
	struct fault *ft, *drop;

	build(&plain);
	say(C, B, 0, 60);
	say(A, C, 0, 60);
	clear();
	eth_watch(net, on_change, NULL);
	changes = 0;
	arm("c drop dir=in nth=2", &drop);
	arm("c swap with=d", &ft);
	row(110, "swap: both links go down and up", at_port(C, "sw2:3") && at_port(D, "sw2:2") && changes == 8);
	say(A, C, 0, 60);
	row(111, "the VLAN is that of the switch's port", got(0, 0, 0, 1));
	say(A, C, 5, 60);
	say(A, C, 5, 60);
	row(112, "another fault of a station stays with it", st[C].got == 1 && drop->pick.hits == 1);
	fault_remove(ft);
	clear();
	say(A, C, 0, 60);
	row(113, "swapped back", at_port(C, "sw2:2") && at_port(D, "sw2:3") && got(0, 0, 1, 0));
	fault_remove(drop);
	eth_end_set_up(st[A].end, false);
	arm("sw1:2 swap with=sw2:2 for=5ms", &ft);
	row(114, "ports of switches: a link that is down is the port's",
	    at_port(A, "sw2:2") && at_port(C, "sw1:2") && st[A].up && !st[C].up);
	run(6);
	row(115, "for a time", at_port(A, "sw1:2") && at_port(C, "sw2:2") && !st[A].up && st[C].up);
	finish();

	build(&fast);
	arm("b rate bps=100M", &drop);
	arm("b swap with=c", &ft);
	row(116, "a rate limits both directions of the station's new link",
	    eth_end_rate(eth_find(net, "sw2:2")) == 100000000 && eth_end_rate(eth_find(net, "sw1:3")) == 1000000000);
	finish();
}

int main(void)
{
	static const struct eth_link_config with_pause = { .pause = true, .queue = 16000 },
					    with_pfc = { .pfc = BIT(3), .queue = 16000, .all = true },
					    without = { .queue = 16000 };

	test_learning();
	test_vlans();
	test_links();
	test_late_timers();
	test_pause(&with_pause, 0, 30);
	test_pause(&with_pfc, 3 << 13 | 5, 34);
	test_pause(&without, 0, 50);
	test_fault_lines();
	test_faults();
	test_fault_ecn();
	test_fault_truncate();
	test_link_faults();
	test_link_loses_held_frames();
	test_swapped_cables();
	test_marking();
	return rows_end();
}

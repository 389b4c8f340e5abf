// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of trunks between two fabrics: link, data, faults, death of a daemon and cables; also within TLS. */
#include <pthread.h>

#include "emu/lib/rng.h"
#include "fabric/fault.h"
#include "fabric/trunk/pair_fixture.h"

static void test_link(void)
{
	trunk_start("", "");
	row(1, "the link trains", at(PORT_STATE_INIT));
	row(2, "the peer's name", !strcmp(side_port(&a)->peer->node->name, "leaf101") && side_port(&a)->peer->num == 9);
	row(3, "width and speed",
	    side_port(&a)->info->speed_ext_active && side_port(&b)->info->width_active == LINK_WIDTH_4X);
	row(4, "NodeInfo across the trunk",
	    !test_get(&h1, "\1\11", SMP_ATTR_NODE_INFO, 0) &&
		    wire_get(h1.last.raw + SMP_DATA, NODEINFO_NODE_GUID) == PEER_GUID &&
		    wire_get(h1.last.raw + SMP_DATA, NODEINFO_LOCAL_PORT) == 9);
	row(5, "a switch behind it reports the link", side_port(&b)->node->sw->state_change);

	fabric_link_unplug(side_port(&a));
	test_run(0);
	row(6, "pulled here: down at both", at(PORT_STATE_DOWN) && side_port(&b)->unplugged);
	fabric_link_plug(side_port(&b));
	test_run(0);
	row(7, "plugged there: up at both", at(PORT_STATE_INIT) && !side_port(&a)->unplugged);
	side_port(&b)->pulled++;
	fabric_link_disconnect(side_port(&b));
	test_run(0);
	row(8, "a fault keeps it down", at(PORT_STATE_DOWN));
	side_port(&b)->pulled--;
	side_port(&b)->speed_limit = WIRE_SPEED_DDR;
	side_port(&a)->lanes_limit = 1;
	fabric_link_update(side_port(&b));
	test_run(0);
	row(9, "limits of both ends count at both",
	    at(PORT_STATE_INIT) && side_port(&a)->info->speed_active == LINK_SPEED_DDR &&
		    !side_port(&a)->info->speed_ext_active && side_port(&b)->info->speed_active == LINK_SPEED_DDR &&
		    side_port(&b)->info->width_active == LINK_WIDTH_1X);
	side_port(&a)->info->phys_state = PHYS_STATE_DISABLED;
	fabric_link_disconnect(side_port(&a));
	side_port(&a)->info->phys_state = PHYS_STATE_DISABLED;
	test_run(0);
	row(10, "disabled: down at both", at(PORT_STATE_DOWN));
	side_port(&a)->info->phys_state = PHYS_STATE_POLLING;
	side_port(&b)->info->phys_state = PHYS_STATE_SLEEP;
	fabric_link_update(side_port(&a));
	test_run(0);
	row(11, "the other one sleeps", at(PORT_STATE_DOWN));
	fabric_link_wake(side_port(&a)->peer);
	test_run(0);
	row(12, "polling wakes it", at(PORT_STATE_INIT));
	fabric_link_update(side_port(&a));
	test_run(0);
	row(13, "no change takes no link down",
	    at(PORT_STATE_INIT) && test_counter("leaf1", 9, FABRIC_CTR_LINK_DOWNED) == 2);
	side_port(&b)->speed_limit = WIRE_SPEED_XDR;
	fabric_link_disconnect(side_port(&b));
	fabric_link_update(side_port(&b));
	test_run(0);
	row(14, "a limit of XDR", at(PORT_STATE_INIT) && !side_counter(&a, TRUNK_CTR_VIOLATIONS));
	trunk_stop();
}

/* A cable of FDR10, which MLNXExtendedPortInfo has instead of PortInfo. */
static void test_fdr10(void)
{
	side_start(&a, "leafs 1 hosts 2 speed 4xFDR10", "leaf1", "listen", "");
	side_start(&b, "leafs 1 hosts 2 first 101 speed 4xFDR10", "leaf101", "to", "");
	test_run(NSEC_PER_SEC);
	row(15, "it comes up with FDR10",
	    at(PORT_STATE_INIT) && side_port(&a)->info->fdr10_active && side_port(&b)->info->fdr10_active);
	side_port(&b)->info->fdr10_enabled = 0;
	fabric_link_disconnect(side_port(&b));
	fabric_link_update(side_port(&b));
	test_run(0);
	row(16, "one end disables it: QDR at both",
	    at(PORT_STATE_INIT) && !side_port(&a)->info->fdr10_active && !side_port(&b)->info->fdr10_active &&
		    side_port(&a)->info->speed_active == LINK_SPEED_QDR &&
		    side_port(&b)->info->speed_active == LINK_SPEED_QDR);
	trunk_stop();
}

static void test_data(void)
{
	u32 n, vl;

	trunk_start("", "");
	bring_up();
	row(20, "active", at(PORT_STATE_ACTIVE));
	n = send_many(&h1, 3, 0, 2048, 50);
	test_run(0);
	row(21, "packets arrive in order",
	    n == 50 && h101.packets == 50 && !h101.order_errors && h101.bytes == 50 * 2048);
	send_padded(&h101, 2, 13);
	row(22, "and the other way, with pad bytes",
	    send_many(&h101, 2, 3, 516, 8) == 8 && (test_run(0), h2.packets == 9) && h2.last_vl == 3 &&
		    h2.bytes == 8 * 516 + 13);
	send_padded(&h101, 2, 2047);
	test_run(0);
	row(23, "and without copy", h2.bytes == 8 * 516 + 13 + 2047);
	for (vl = 0; vl < TRUNK_DATA_VLS; vl++) {
		u64 before = h101.packets;

		n = 0;
		while (n < 3000) { /* more than the buffer of a VL has room for */
			u32 got = send_many(&h1, 3, (u8)vl, 4096, 40);

			test_run(0);
			n += got ? got : 1000;
		}
		row(30 + (int)vl, "credits come back on every VL", n == 3000 && h101.packets == before + n);
	}
	row(45, "none is lost", no_credits_in_use());

	h101.stalled = true;
	for (n = 0, vl = 0; vl < 40; vl++) {
		n += send_many(&h1, 3, 0, 4096, 40);
		test_run(0);
	}
	row(46, "a receiver that accepts nothing stops the sender",
	    n < 1000 && n > 200 && side_port(&b)->rx_blocks[0] <= FABRIC_REMOTE_BLOCKS &&
		    side_port(&a)->peer->rx_blocks[0] <= FABRIC_VL_BLOCKS);
	row(47, "another VL goes on", send_many(&h1, 2, 1, 4096, 4) == 4);
	test_run(0);
	h101.stalled = false;
	h101.port->resume(h101.port);
	test_run(0);
	row(48, "nothing was lost", h101.packets == 50 + 15 * 3000 + n);
	row(49, "no error was counted",
	    !test_counter("leaf1", 9, FABRIC_CTR_XMIT_DISCARDS) && !side_counter(&b, TRUNK_CTR_VIOLATIONS) &&
		    !side_counter(&a, TRUNK_CTR_VIOLATIONS));

	h101.stalled = true;
	send_many(&h1, 3, 0, 4096, 40);
	fabric_link_unplug(side_port(&a));
	test_run(0);
	fabric_link_plug(side_port(&a));
	h101.stalled = false;
	h101.port->resume(h101.port);
	test_run(0);
	bring_up();
	n = (u32)h101.packets;
	row(50, "after a flap", send_many(&h1, 3, 0, 4096, 20) == 20 && (test_run(0), h101.packets == n + 20));
	row(51, "credits survive it", no_credits_in_use());
	trunk_stop();
}

/* Counts packets whose payload is not that of send_filled(). */
static u32 wrong_payloads;

static int receive_filled(void *ctx, struct wire_packet *p)
{
	u8 want = (u8)wire_bth_psn(wire_packet_bth(p));
	u32 i;

	for (i = 0; !h101.stalled && i < p->len; i++)
		if (p->data[i] != want) {
			wrong_payloads++;
			break;
		}
	return test_receive(ctx, p);
}

/* Sends packets to a queue pair, whose payload is their PSN. */
static u32 send_filled(u32 qpn, u32 len, u32 psn, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct wire_packet *p = test_packet(1, 3, 0, len, psn + i, 0xffff);

		memset(p->buf->data, (u8)(psn + i), len);
		wire_bth_fill(wire_packet_bth(p), WIRE_UC_SEND_ONLY, false, 0, 0xffff, qpn, false, psn + i);
		if (!wire_port_send(h1.port, p))
			continue;
		wire_packet_free(p);
		break;
	}
	test_run(0);
	return i;
}

/* Packets of a ring are delivered without a copy; what keeps them copies their payload. */
static void test_payload(void)
{
	struct fault *ft;
	char err[200];
	u32 n, i, psn;

	trunk_start("", "");
	bring_up();
	h101.port->data.receive = receive_filled;
	for (psn = i = 0; i < 8; i++)
		psn += send_filled(17, 4096, psn, 20);
	row(300, "delivered at once", h101.packets == 160 && !wrong_payloads && b.set->trunks[0].conn->rx.shared);
	h101.stalled = true;
	for (n = 0; n < 500 && (i = send_filled(17, 4096, psn, 20)); n += i)
		psn += i;
	row(301, "a receiver that accepts nothing: more than the ring has is queued", n * 4096 > 2 * TRUNK_RING);
	h101.stalled = false;
	h101.port->resume(h101.port);
	test_run(0);
	row(302, "their payload is that which was sent", h101.packets == 160 + n && !wrong_payloads);
	ft = fault_add(fabric_faults(b.f), "leaf101:9 delay time=10ms dir=in opcode=UC_SEND_ONLY", err, sizeof(err));
	if (!ft) {
		printf("%s\n", err);
		exit(1);
	}
	for (n = 0; n < 100; n += 20)
		psn += send_filled(17, 4096, psn, 20);
	row(303, "a fault delays them", h101.packets == psn - 100);
	test_run(NSEC_PER_SEC);
	row(304, "likewise", h101.packets == psn && !wrong_payloads && ft->pick.hits == 100);
	fault_remove(ft);
	send_filled(MAD_QPN_GSI, MAD_SIZE, psn, 20);
	row(305, "no MAD: they are not of QP1", h101.packets == psn && at(PORT_STATE_ACTIVE));
	trunk_stop();
}

/* More VL15 packets, which need no credits, than are processed in a turn: several connections may bring them. */
static void test_smps(void)
{
	u32 sent = 0, before;

	trunk_start("", "");
	for (; sent < 20000; sent++)
		fabric_remote_receive(fabric_remote(a.f, 0),
				      fabric_mad_packet(WIRE_LID_PERMISSIVE, WIRE_LID_PERMISSIVE, 0, MAD_QPN_SMI));
	before = a.f->flight.n;
	row(306, "a limited number waits", before >= 1000 && before < 10000);
	row(307, "the others are dropped", test_counter("leaf1", 9, FABRIC_CTR_VL15_DROPPED) == sent - before);
	test_run(0);
	row(308, "then there is room again",
	    !a.f->flight.n && !test_get(&h1, "\1\11", SMP_ATTR_NODE_INFO, 0) && at(PORT_STATE_INIT));
	trunk_stop();
}

static void test_death(void)
{
	u32 n, i;

	trunk_start("", "");
	bring_up();
	h101.stalled = true;
	for (n = i = 0; i < 5; i++) {
		n += send_many(&h1, 3, 0, 4096, 40);
		test_run(0);
	}
	trunk_set_destroy(b.set);
	test_run(0);
	row(60, "the peer has gone: down",
	    n && side_state(&a) == PORT_STATE_DOWN && side_counter(&a, TRUNK_CTR_LOST) == 1);
	row(61, "a switch reports it", side_port(&a)->node->sw->state_change);
	row(62, "packets to it are dropped",
	    !test_send(&h1, 3, 0, 64, 1) && (test_run(0), test_counter("leaf1", 9, FABRIC_CTR_XMIT_DISCARDS)));
	row(63, "its credits are free", !side_port(&a)->peer->rx_blocks[0]);
	side_connect(&b);
	test_run(10 * NSEC_PER_MSEC); /* less than the lifetime of packets */
	row(64, "it is back", at(PORT_STATE_INIT) && side_counter(&a, TRUNK_CTR_CONNECTED) == 2);
	row(65, "what it still holds counts",
	    fabric_remote(a.f, 0)->beyond[0] == side_port(&b)->rx_blocks[0] && side_port(&b)->rx_blocks[0]);
	h101.stalled = false;
	h101.port->resume(h101.port);
	bring_up();
	test_run(0);
	n = (u32)h101.packets;
	row(66, "packets flow", send_many(&h1, 3, 0, 4096, 20) == 20 && (test_run(0), h101.packets == n + 20));
	test_run(60 * NSEC_PER_SEC);
	row(67, "an idle trunk stays", at(PORT_STATE_ACTIVE));
	trunk_stop();
}

/* The cable is plugged or pulled while there is no connection. */
static void test_cable(void)
{
	trunk_start("", "");
	fabric_link_unplug(side_port(&b));
	test_run(0);
	trunk_set_destroy(b.set);
	test_run(0);
	fabric_link_plug(side_port(&a));
	side_connect(&b);
	test_run(NSEC_PER_SEC);
	row(75, "plugged meanwhile", at(PORT_STATE_INIT) && !side_port(&b)->unplugged);
	trunk_set_destroy(b.set);
	fabric_link_unplug(side_port(&b));
	side_connect(&b);
	test_run(NSEC_PER_SEC);
	row(76, "pulled meanwhile", at(PORT_STATE_DOWN) && side_port(&a)->unplugged);
	trunk_stop();

	trunk_start("", "");
	fabric_link_plug(side_port(&a)); /* as it was */
	test_run(0);
	trunk_conn_end(a.set->trunks[0].conn);
	test_run(0);
	fabric_link_unplug(side_port(&b));
	test_run(NSEC_PER_SEC);
	row(74, "what changed nothing counts no longer",
	    at(PORT_STATE_DOWN) && side_port(&a)->unplugged && side_port(&b)->unplugged);
	trunk_stop();
}

/* Both ends have the cable in, or out; it is in: they are up. */
static bool cables_agree(void)
{
	return side_port(&a)->unplugged == side_port(&b)->unplugged &&
	       at(side_port(&a)->unplugged ? PORT_STATE_DOWN : PORT_STATE_INIT);
}

static void cable_change(struct side *s, bool plug)
{
	if (plug)
		fabric_link_plug(side_port(s));
	else
		fabric_link_unplug(side_port(s));
}

/* Changes of both ends cross. */
static void test_cables_cross(void)
{
	u32 i, k, agree = 0;
	struct rng r = { 1 };

	trunk_start("", "");
	cable_change(&a, false);
	test_run(0);
	cable_change(&a, true);
	cable_change(&b, false);
	test_run(0);
	row(84, "plugged here and pulled there: it is out at both", cables_agree() && side_port(&a)->unplugged);
	cable_change(&a, false);
	cable_change(&b, true);
	test_run(0);
	row(85, "likewise", cables_agree() && side_port(&a)->unplugged);
	cable_change(&b, true);
	test_run(0);
	row(86, "a later change plugs it", cables_agree() && !side_port(&a)->unplugged);
	cable_change(&a, false);
	test_run(0);
	cable_change(&a, true);
	loop_run_tasks(test_loop); /* sends it */
	trunk_conn_end(b.set->trunks[0].conn);
	test_run(NSEC_PER_SEC);
	row(87, "a change that is lost with the connection is sent on the next one",
	    cables_agree() && !side_port(&b)->unplugged);
	cable_change(&a, false);
	test_run(0);
	trunk_conn_end(a.set->trunks[0].conn);
	test_run(0);
	cable_change(&a, true);
	cable_change(&b, false);
	test_run(NSEC_PER_SEC);
	row(88, "both have changed it without a connection", cables_agree() && side_port(&a)->unplugged);

	for (i = 0; i < 500; i++) {
		for (k = 0; k < 6; k++) {
			cable_change(rng_next(&r) % 2 ? &a : &b, rng_next(&r) % 2);
			if (rng_next(&r) % 2)
				loop_run_tasks(test_loop);
			if (!(rng_next(&r) % 20) && a.set->trunks[0].conn)
				trunk_conn_end(a.set->trunks[0].conn);
			if (!(rng_next(&r) % 4))
				test_run(0);
		}
		test_run(NSEC_PER_SEC);
		agree += cables_agree();
	}
	row(89, "any changes at any time", agree == i);
	trunk_stop();
}

/* Both ends flap faster than a peer may: no link of the connection is lost. */
static void test_fast_flaps(void)
{
	static const char *const ends[] = { "leaf1:9", "leaf101:9" };
	struct fault *ft[2];
	char line[80], err[200];
	u32 i;

	trunk_start("", "");
	for (i = 0; i < 2; i++) {
		snprintf(line, sizeof(line), "%s flap up=%ums down=1ms", ends[i], i + 1);
		ft[i] = fault_add(fabric_faults(i ? b.f : a.f), line, err, sizeof(err));
		row(94, ft[i] ? line : err, ft[i]);
		test_run(5 * NSEC_PER_SEC);
	}
	row(95, "the connection stays",
	    side_counter(&a, TRUNK_CTR_CONNECTED) == 1 && !side_counter(&a, TRUNK_CTR_VIOLATIONS) &&
		    !side_counter(&b, TRUNK_CTR_VIOLATIONS));
	fault_remove(ft[0]);
	fault_remove(ft[1]);
	test_run(NSEC_PER_SEC);
	row(96, "afterwards the link is up", at(PORT_STATE_INIT));
	trunk_stop();
}

static struct {
	pthread_t thread;
	u32 refused;
	bool ending, stop; /* the listener ends */
} visitor;

static int visit(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", test_path);
	err = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) ? errno : 0;
	close(fd);
	return err;
}

/*
 * Connects to the listener's path all the time. A listener may end while connect() has looked up its path: then there
 * is none the second time.
 */
static void *visitor_run(void *arg)
{
	while (!__atomic_load_n(&visitor.stop, __ATOMIC_SEQ_CST)) {
		bool ending = __atomic_load_n(&visitor.ending, __ATOMIC_SEQ_CST);
		bool refused = visit() == ECONNREFUSED && visit() == ECONNREFUSED;

		if (ending && __atomic_load_n(&visitor.ending, __ATOMIC_SEQ_CST))
			visitor.refused += refused;
	}
	return NULL;
}

/* The listener's path is never one that another daemon would replace; and never removes that of another daemon. */
static void test_path_of_listener(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	u32 i;

	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	pthread_create(&visitor.thread, NULL, visitor_run, NULL);
	for (i = 0; i < 2000; i++) {
		__atomic_store_n(&visitor.ending, true, __ATOMIC_SEQ_CST);
		trunk_set_destroy(a.set);
		__atomic_store_n(&visitor.ending, false, __ATOMIC_SEQ_CST);
		side_connect(&a);
	}
	visitor.stop = true;
	pthread_join(visitor.thread, NULL);
	row(90, "a listener that ends refuses nobody", !visitor.refused);

	unlink(test_path);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", test_path);
	row(91, "another one replaces it", !bind(other, (struct sockaddr *)&sa, sizeof(sa)));
	side_stop(&a);
	row(92, "and keeps its path", !access(test_path, F_OK));
	close(other);
	unlink(test_path);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* Returns the digest of the decisions of a random fault at a trunk's port for packets of one direction. */
static u64 fault_digest(const char *fault)
{
	struct fault *ft;
	char err[200];
	u64 digest;

	trunk_start("", "");
	bring_up();
	ft = fault_add(fabric_faults(a.f), fault, err, sizeof(err));
	if (!ft) {
		printf("%s\n", err);
		exit(1);
	}
	send_many(&h101, 1, 0, 64, 100);
	send_many(&h1, 3, 0, 64, 50);
	test_run(0);
	row(77, "it fires, and not always",
	    ft->pick.hits > 5 && ft->pick.hits < 95 && h1.packets + h101.packets == 150 - ft->pick.hits);
	digest = ft->pick.digest;
	trunk_stop();
	return digest;
}

static void test_seed(void)
{
	static const char in[] = "leaf1:9 drop prob=0.3 dir=in opcode=UC_SEND_ONLY",
			  out[] = "leaf1:9 drop prob=0.3 dir=out opcode=UC_SEND_ONLY";

	row(78, "the same seed, the same decisions",
	    fault_digest(in) == fault_digest(in) && fault_digest(out) == fault_digest(out));
	row(79, "each direction has its own", fault_digest(in) != fault_digest(out));
}

/* The same within TLS. */
static void test_within_tls(void)
{
	char path[64];

	tls_begin(path, sizeof(path));
	test_link();
	test_data();
	test_death();
	test_cable();
	tls_end(path);
}

int main(void)
{
	u32 live = wire_packet_live();

	log_level = LOG_ERROR;
	test_link();
	test_fdr10();
	test_data();
	test_payload();
	test_smps();
	test_death();
	test_cable();
	test_cables_cross();
	test_fast_flaps();
	test_path_of_listener();
	test_seed();
	if (trunk_tls_in_build())
		test_within_tls();
	row(240, "no packet is left", wire_packet_live() == live);
	return rows_end();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of two fabrics with trunks between them, and of wrong and hostile peers. */
#include <dirent.h>
#include <fcntl.h>

#include "fabric/fault.h"
#include "fabric/trunk/trunk_fixture.h"

static struct side a, b;
static struct test_host h1, h2, h101;

static bool at(u8 state)
{
	return side_state(&a) == state && side_state(&b) == state;
}

static void trunk_start(const char *options_a, const char *options_b)
{
	side_start(&a, "leafs 1 hosts 2 vls 15", "leaf1", "listen", options_a);
	side_start(&b, "leafs 1 hosts 2 vls 15 first 101", "leaf101", "to", options_b);
	test_fabric = b.f;
	test_attach(&h101, "h101");
	test_fabric = a.f;
	test_attach(&h1, "h1");
	test_attach(&h2, "h2");
	test_run(NSEC_PER_SEC);
}

static void trunk_stop(void)
{
	side_stop(&b);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* LIDs: 1 and 2 are h1 and h2, 3 is h101; 100 and 101 the switches. Configured by SMPs from h1 across the trunk. */
static void bring_up(void)
{
	static const struct {
		const char *path;
		u32 port;
		u16 lid;
	} ports[] = { { "", 1, 1 },   { "\1", 1, 0 },    { "\1\2", 1, 2 },    { "\1", 2, 0 },
		      { "\1", 9, 0 }, { "\1\11", 9, 0 }, { "\1\11\1", 1, 3 }, { "\1\11", 1, 0 } };
	static const char *const sw[] = { "\1", "\1\11" };
	static const u8 lft[2][4] = { { LFT_PORT_NONE, 1, 2, 9 }, { LFT_PORT_NONE, 9, 9, 1 } };
	u8 d[SMP_DATA_SIZE];
	u32 i, s;

	for (i = 0; i < 2; i++) {
		test_port_set(&h1, sw[i], 0, (u16)(100 + i), 0);
		memset(d, 0, sizeof(d));
		wire_set(d, SWITCHINFO_LFT_TOP, 127);
		wire_set(d, SWITCHINFO_LIFE_TIME, 18);
		test_smp(&h1, sw[i], MAD_METHOD_SET, SMP_ATTR_SWITCH_INFO, 0, d);
		memset(d, LFT_PORT_NONE, sizeof(d));
		memcpy(d, lft[i], sizeof(lft[i]));
		test_smp(&h1, sw[i], MAD_METHOD_SET, SMP_ATTR_LFT, 0, d);
	}
	for (s = PORT_STATE_ARMED; s <= PORT_STATE_ACTIVE; s++)
		for (i = 0; i < ARRAY_SIZE(ports); i++)
			test_port_set(&h1, ports[i].path, ports[i].port, ports[i].lid, (u8)s);
}

static bool no_credits_in_use(void)
{
	u32 used = 0, vl;

	for (vl = 0; vl < TRUNK_DATA_VLS; vl++)
		used += side_port(&a)->rx_blocks[vl] + side_port(&b)->rx_blocks[vl] +
			side_port(&a)->peer->rx_blocks[vl] + side_port(&b)->peer->rx_blocks[vl];
	/* Credits of up to half a buffer are not sent while the sender has enough. */
	return used < TRUNK_FLOW_STEP * 2 * TRUNK_DATA_VLS;
}

static u32 send_many(struct test_host *from, u16 dlid, u8 sl, u32 len, u32 n)
{
	u32 i, sent = 0;

	for (i = 0; i < n; i++)
		sent += !test_send(from, dlid, sl, len, i);
	return sent;
}

/* Sends a packet whose payload is not a multiple of 4. */
static void send_padded(struct test_host *from, u16 dlid, u32 len)
{
	struct wire_packet *p = test_packet(from->port->attr.lid, dlid, 0, (len + 3) & ~3u, 1, 0xffff);

	wire_packet_truncate(p, len);
	row(19, "it is sent", !wire_port_send(from->port, p));
}

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

static void test_key(void)
{
	char one[64], other[64], with[80], with_other[80];

	key_file(one, sizeof(one), "a key of both sides\n");
	key_file(other, sizeof(other), "a key that one side has\n");
	snprintf(with, sizeof(with), "key %s", one);
	snprintf(with_other, sizeof(with_other), "key %s", other);
	trunk_start(with, with);
	row(70, "the same key", at(PORT_STATE_INIT));
	trunk_stop();
	trunk_start(with, with_other);
	row(71, "another key", at(PORT_STATE_DOWN) && side_counter(&a, TRUNK_CTR_REFUSED_KEY));
	trunk_stop();
	trunk_start(with, "");
	row(72, "the peer has none", at(PORT_STATE_DOWN) && side_counter(&a, TRUNK_CTR_REFUSED_KEY));
	trunk_stop();
	trunk_start("", with);
	row(73, "the peer has one", at(PORT_STATE_DOWN) && side_counter(&b, TRUNK_CTR_REFUSED_KEY));
	trunk_stop();
	unlink(one);
	unlink(other);
}

/* A peer that does not prove the key keeps nobody out who does. */
static void test_unproved(void)
{
	struct trunk_hello h = stranger_hello();
	char path[64], options[80];
	int fd[3];
	u32 i;

	key_file(path, sizeof(path), "a key of both sides\n");
	snprintf(options, sizeof(options), "key %s", path);
	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", options);
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = stranger_connect();
		stranger_send(fd[i], TRUNK_HELLO, 0, &h, sizeof(h));
	}
	row(310, "those before the last one are refused",
	    a.set->trunks[0].s.state == TRUNK_WAITS_AUTH && side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == 2);
	stranger_send(fd[2], TRUNK_HELLO, 0, &h, sizeof(h));
	row(311, "a second hello for its link number is one of them",
	    !a.set->trunks[0].conn && side_counter(&a, TRUNK_CTR_REFUSED_KEY) == 1);
	close(fd[2]);
	fd[2] = stranger_connect();
	stranger_send(fd[2], TRUNK_HELLO, 7, &h, sizeof(h));
	side_start(&b, "leafs 1 hosts 2 first 101", "leaf101", "to", options);
	test_run(NSEC_PER_SEC);
	row(312, "the peer that proves it is let in",
	    at(PORT_STATE_INIT) && side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == 3 &&
		    side_counter(&b, TRUNK_CTR_CONNECTED) == 1);
	close(fd[0]);
	fd[0] = stranger_connect();
	stranger_send(fd[0], TRUNK_HELLO, 0, &h, sizeof(h));
	row(313, "and stays", at(PORT_STATE_INIT) && side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == 4);
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	trunk_stop();
	unlink(path);
}

static void test_peer(void)
{
	trunk_start("peer 0002c90406400010:9", "peer 0002c90400000010:9");
	row(80, "the peers that are named", at(PORT_STATE_INIT));
	trunk_stop();
	trunk_start("peer 0002c90406400011", "");
	row(81, "another GUID",
	    at(PORT_STATE_DOWN) && side_counter(&a, TRUNK_CTR_REFUSED_PORT) &&
		    side_counter(&b, TRUNK_CTR_REFUSED_BY_PEER));
	trunk_stop();
	trunk_start("", "peer 0002c90400000010:8");
	row(82, "another port", at(PORT_STATE_DOWN) && side_counter(&a, TRUNK_CTR_REFUSED_PORT));
	trunk_stop();
}

/* A stranger listens, and responds with a hello of port 0. */
static void test_listener_hello(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fd;
	struct trunk_hello h = stranger_hello();

	snprintf(sa.sun_path, sizeof(sa.sun_path), "/tmp/muslin-trunk-%d", getpid());
	if (bind(l, (struct sockaddr *)&sa, sizeof(sa)) || listen(l, 1))
		perror(sa.sun_path);
	side_start(&b, "leafs 1 hosts 2 first 101", "leaf101", "to", "");
	test_run(NSEC_PER_SEC);
	fd = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	h.guid = cpu_to_be64(OWN_GUID);
	h.port = 0;
	stranger_send(fd, TRUNK_HELLO, 0, &h, sizeof(h));
	row(292, "a listener with port 0",
	    side_counter(&b, TRUNK_CTR_REFUSED_HELLO) == 1 && !side_counter(&b, TRUNK_CTR_CONNECTED));
	close(fd);
	close(l);
	unlink(sa.sun_path);
	side_stop(&b);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* A stranger listens, accepts a trunk, and closes its connection at once. */
static void test_listener_closes(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fd;
	struct trunk_hello h = stranger_hello();
	u32 i, n;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "/tmp/muslin-trunk-%d", getpid());
	if (bind(l, (struct sockaddr *)&sa, sizeof(sa)) || listen(l, 1))
		perror(sa.sun_path);
	side_start(&b, "leafs 1 hosts 2 first 101", "leaf101", "to", "");
	h.guid = cpu_to_be64(OWN_GUID);
	for (n = i = 0; i < 10000; i++) {
		test_run(NSEC_PER_MSEC);
		fd = accept4(l, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		stranger_send(fd, TRUNK_HELLO, 0, &h, sizeof(h));
		close(fd);
		n++;
	}
	row(320, "it is not tried again at once",
	    n > 10 && n < 30 && side_counter(&b, TRUNK_CTR_CONNECTED) == n &&
		    side_counter(&b, TRUNK_CTR_LOST) >= n - 1);
	close(l);
	unlink(sa.sun_path);
	side_stop(&b);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* A stranger trains the link, and connects again and again. */
static void test_connects_again(void)
{
	u64 *downs, before;
	u32 i;

	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	downs = &side_port(&a)->ctr[FABRIC_CTR_LINK_DOWNED];
	for (i = 0; i < 2 * TRUNK_CHANGES; i++)
		close(stranger_train());
	test_run(0);
	row(321, "the link changes a limited number of times",
	    side_counter(&a, TRUNK_CTR_CONNECTED) >= TRUNK_CHANGES / 2 &&
		    side_counter(&a, TRUNK_CTR_CONNECTED) <= TRUNK_CHANGES && *downs <= TRUNK_CHANGES &&
		    side_counter(&a, TRUNK_CTR_REFUSED_BUSY) > TRUNK_CHANGES / 2);
	before = side_counter(&a, TRUNK_CTR_CONNECTED);
	test_run(NSEC_PER_SEC);
	i = (u32)stranger_train();
	row(322, "and again in the next second",
	    side_state(&a) == PORT_STATE_INIT && side_counter(&a, TRUNK_CTR_CONNECTED) == before + 1);
	close((int)i);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* Hostile peers: the first message, and the counter that it increments. */
static void test_hello(void)
{
	static const struct {
		int n;
		const char *what;
		u8 type;
		u16 len, at; /* byte at is changed to value */
		u8 value;
		enum trunk_counter counts;
	} rows[] = {
		{ 100, "another magic", TRUNK_HELLO, 112, 0, 'M', TRUNK_CTR_REFUSED_HELLO },
		{ 101, "another version", TRUNK_HELLO, 112, 9, 77, TRUNK_CTR_REFUSED_VERSION },
		{ 102, "a short hello", TRUNK_HELLO, 111, 0, 'm', TRUNK_CTR_REFUSED_HELLO },
		{ 103, "a long hello", TRUNK_HELLO, 113, 0, 'm', TRUNK_CTR_REFUSED_HELLO },
		{ 104, "no hello at first", TRUNK_LINK, 16, 0, 0, TRUNK_CTR_REFUSED_HELLO },
		{ 105, "a packet at first", TRUNK_PACKET, 112, 0, 0, TRUNK_CTR_REFUSED_HELLO },
		{ 106, "a type that there is not", 99, 4, 0, 0, TRUNK_CTR_REFUSED_HELLO },
		{ 107, "a wanted port that there is not", TRUNK_HELLO, 112, 11, 3, TRUNK_CTR_REFUSED_PORT },
		{ 108, "a wanted GUID that there is not", TRUNK_HELLO, 112, 24, 3, TRUNK_CTR_REFUSED_PORT },
		{ 109, "longer than any message", TRUNK_HELLO, 60000, 0, 'm', TRUNK_CTR_REFUSED_HELLO },
		{ 116, "port 0", TRUNK_HELLO, 112, 10, 0, TRUNK_CTR_REFUSED_HELLO },
		{ 117, "port 255", TRUNK_HELLO, 112, 10, 255, TRUNK_CTR_REFUSED_HELLO },
		{ 118, "no node type", TRUNK_HELLO, 112, 12, 0, TRUNK_CTR_REFUSED_HELLO },
		{ 290, "a node type that there is not", TRUNK_HELLO, 112, 12, 4, TRUNK_CTR_REFUSED_HELLO },
	};
	struct trunk_hello h;
	static u8 m[60000];
	int fd[TRUNK_UNKNOWN_LOCAL + 4];
	u64 before;
	char c;
	u32 i;

	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		int f = stranger_connect();

		before = side_counter(&a, rows[i].counts);
		h = stranger_hello();
		memcpy(m, &h, sizeof(h));
		m[rows[i].at] = rows[i].value;
		stranger_send(f, rows[i].type, 0, m, rows[i].len);
		test_run(0);
		row(rows[i].n, rows[i].what,
		    side_counter(&a, rows[i].counts) == before + 1 && side_state(&a) == PORT_STATE_DOWN);
		close(f);
	}
	h = stranger_hello();
	h.guid = cpu_to_be64(0x0002c90300000020ull); /* of h1 */
	fd[0] = stranger_connect();
	stranger_send(fd[0], TRUNK_HELLO, 0, &h, sizeof(h));
	row(110, "a GUID that a node here has", side_counter(&a, TRUNK_CTR_REFUSED_PORT) == 3);
	close(fd[0]);
	before = side_counter(&a, TRUNK_CTR_REFUSED_HELLO);
	h.guid = 0;
	fd[0] = stranger_connect();
	stranger_send(fd[0], TRUNK_HELLO, 0, &h, sizeof(h));
	row(291, "no GUID", side_counter(&a, TRUNK_CTR_REFUSED_HELLO) == before + 1);
	close(fd[0]);
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = stranger_connect();
		test_run(0);
	}
	row(111, "silent ones replace each other",
	    recv(fd[3], &c, 1, MSG_DONTWAIT) == 0 && recv(fd[4], &c, 1, MSG_DONTWAIT) < 0);
	test_run(TRUNK_HELLO_TIME + NSEC_PER_SEC);
	row(112, "and have to go", recv(fd[4], &c, 1, MSG_DONTWAIT) == 0);
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	fd[0] = stranger_train();
	row(113, "a right one is let in after them", side_state(&a) == PORT_STATE_INIT);
	fd[1] = stranger_train();
	row(114, "a second one is not",
	    side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == 1 && side_state(&a) == PORT_STATE_INIT);
	test_run(TRUNK_SILENCE + 2 * NSEC_PER_SEC);
	row(115, "one that falls silent is gone",
	    side_counter(&a, TRUNK_CTR_TIMEOUTS) == 1 && side_state(&a) == PORT_STATE_DOWN);
	close(fd[0]);
	close(fd[1]);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

static void stranger_flow(int fd, u8 vl, u16 free, u32 abr)
{
	struct trunk_flow m = { .vl = vl, .free = cpu_to_be16(free), .abr = cpu_to_be32(abr) };

	stranger_send(fd, TRUNK_FLOW, 0, &m, sizeof(m));
}

/* Sends @n packets of one block each in one call, before the daemon can send credits. */
static void stranger_packets(int fd, u8 vl, u32 n)
{
	struct wire_packet *p = test_packet(3, 1, 0, 0, 1, 0xffff);
	struct trunk_head h = { .type = TRUNK_PACKET, .len = cpu_to_be16(p->hdr_len) };
	static u8 bytes[200000];
	size_t len = 0;

	wire_lrh_set_vl(wire_packet_lrh(p), vl);
	while (n--) {
		memcpy(bytes + len, &h, sizeof(h));
		memcpy(bytes + len + sizeof(h), p->hdr, p->hdr_len);
		len += sizeof(h) + p->hdr_len;
	}
	row(119, "they are sent", send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
	wire_packet_free(p);
	test_run(0);
}

/* Violations by a connected peer take the link down, and have no other effect. */
static void test_violations(void)
{
	struct trunk_link l = { .epoch = 0 };
	u8 bytes[300] = { 0 };
	u32 i, k;

	for (i = 0; i < 13; i++) {
		bool ends = i != 6 && i != 7;
		int fd;

		side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
		fd = stranger_train();
		row(120 + (int)i, "it trains first", side_state(&a) == PORT_STATE_INIT);
		switch (i) {
		case 0:
			stranger_flow(fd, 15, 4096, 0);
			break;
		case 1:
			stranger_flow(fd, 0, FABRIC_REMOTE_BLOCKS + 1, 0);
			break;
		case 2:
			stranger_flow(fd, 0, 4096, 1);
			break; /* nothing was sent */
		case 3:
			stranger_send(fd, TRUNK_FLOW, 0, bytes, 12);
			break;
		case 4:
			stranger_send(fd, TRUNK_LINK, 0, &l, sizeof(l));
			break;
		case 5:
			a.set->trunks[0].s.fccl[3] = 100; /* as if the peer had no more credits */
			stranger_packets(fd, 3, 101);
			break;
		case 6:
			stranger_send(fd, TRUNK_PACKET, 0, bytes, 8);
			break; /* malformed, which a link may do */
		case 7:
			stranger_send(fd, TRUNK_PACKET, WIRE_PKT_EBP, bytes, 300);
			break;
		case 8:
			stranger_send(fd, TRUNK_HELLO, 0, bytes, sizeof(struct trunk_hello));
			break;
		case 9:
			stranger_send(fd, 0, 0, bytes, 0);
			break;
		case 10:
			stranger_send(fd, TRUNK_PACKET, 0, bytes, 0);
			break;
		case 11:
			stranger_send(fd, TRUNK_AUTH, 0, bytes, TRUNK_MAC_SIZE);
			break;
		case 12:
			l = (struct trunk_link){ .epoch = cpu_to_be32(1), .flags = TRUNK_LINK_CABLE };
			for (k = 0; k <= TRUNK_CHANGES; k++)
				stranger_send(fd, TRUNK_LINK, 0, &l, sizeof(l));
			break;
		}
		test_run(0);
		row(140 + (int)i, "it is disconnected when it has to be",
		    side_state(&a) == (ends ? PORT_STATE_DOWN : PORT_STATE_INIT) &&
			    side_counter(&a, TRUNK_CTR_VIOLATIONS) == ends &&
			    side_counter(&a, TRUNK_CTR_MALFORMED) == !ends);
		close(fd);
		test_run(0);
		if (i == 12)
			test_run(NSEC_PER_SEC);
		row(160 + (int)i, "the next one is welcome",
		    (fd = stranger_train(), side_state(&a) == PORT_STATE_INIT));
		if (i == 5)
			row(180, "the overrun is counted",
			    fabric_port_counter(side_port(&a), FABRIC_CTR_OVERRUN_ERRORS) == 1);
		close(fd);
		side_stop(&a);
		loop_destroy(test_loop);
		test_loop = NULL;
	}
}

/* Ring */

static void ring_violation(int i, int fd, struct trunk_ring *r)
{
	static u8 bytes[sizeof(struct wire_lrh) + 4];
	u64 *head = (u64 *)r->shared;
	struct trunk_ring other;

	switch (i) {
	case 0:
		*head = TRUNK_RING + 1;
		break;
	case 1:
		*head = (u64)-4;
		break;
	case 2: /* longer than what is there */
		stranger_put(r, TRUNK_KEEPALIVE, 0, bytes, 0);
		((struct trunk_head *)(void *)(trunk_ring_reserve(r, 4, &(bool){ false }) - sizeof(struct trunk_head)))
			->len = cpu_to_be16(8);
		break;
	case 3:
		stranger_put(r, TRUNK_HELLO, 0, bytes, 8);
		break;
	case 4: /* a ring in a ring */
		stranger_put(r, TRUNK_RING_OPEN, 0, &(__be32){ cpu_to_be32(TRUNK_RING) }, 4);
		break;
	case 5: /* a second ring */
		stranger_ring(fd, &other, TRUNK_RING);
		trunk_ring_destroy(&other);
		break;
	case 6: /* beside the ring */
		stranger_send(fd, TRUNK_KEEPALIVE, 0, bytes, 0);
		break;
	case 7: /* nothing but what is to be skipped: zeros */
		*head = TRUNK_RING;
		break;
	}
	test_run(0);
}

static void test_ring_violations(void)
{
	struct trunk_ring r;
	int i, fd;

	for (i = 0; i < 8; i++) {
		bool ends = i != 7;

		side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
		fd = stranger_train();
		stranger_ring(fd, &r, TRUNK_RING);
		row(200 + i, "it has a ring",
		    side_state(&a) == PORT_STATE_INIT && side_counter(&a, TRUNK_CTR_RINGS) == 1);
		ring_violation(i, fd, &r);
		row(210 + i, "it is disconnected when it has to be",
		    side_state(&a) == (ends ? PORT_STATE_DOWN : PORT_STATE_INIT) &&
			    side_counter(&a, TRUNK_CTR_VIOLATIONS) == ends);
		close(fd);
		trunk_ring_destroy(&r);
		test_run(0);
		fd = stranger_train();
		stranger_ring(fd, &r, i % 2 ? TRUNK_RING : 2 * TRUNK_RING);
		row(220 + i, "the next one is welcome, with a ring of the right size",
		    side_state(&a) == (i % 2 ? PORT_STATE_INIT : PORT_STATE_DOWN));
		trunk_ring_destroy(&r);
		close(fd);
		side_stop(&a);
		loop_destroy(test_loop);
		test_loop = NULL;
	}
}

/* Open descriptors of the kinds that are passed for rings; those of sockets are closed by a thread, some time later. */
static u32 ring_descriptors(void)
{
	char path[300], name[32];
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	u32 n = 0;

	while ((e = readdir(d))) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		len = readlink(path, name, sizeof(name) - 1);
		name[max(len, (ssize_t)0)] = 0;
		n += !strncmp(name, "/memfd:trunk", 12) || !strncmp(name, "anon_inode:[eventfd]", 20) ||
		     !strncmp(name, "pipe:", 5);
	}
	closedir(d);
	return n;
}

/* Wrong descriptors of a ring. */
static void test_ring_descriptors(void)
{
	static const struct {
		int n;
		const char *what;
		char kinds[4]; /* of the descriptors: memfd, eventfd, pipe */
	} rows[] = {
		{ 360, "none", "" },
		{ 361, "the memfd alone", "m" },
		{ 362, "the eventfd alone", "e" },
		{ 363, "their order", "em" },
		{ 364, "a pipe to wake it", "mp" },
		{ 365, "no memory", "pe" },
		{ 366, "one more, which is closed", "mep" },
	};
	struct trunk_ring r;
	int p[2], fds[3], fd;
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		bool ends = strcmp(rows[i].kinds, "mep");
		int memfd = trunk_ring_create(&r);
		u32 before;

		side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
		fd = stranger_train();
		if (pipe2(p, O_CLOEXEC))
			abort();
		before = ring_descriptors();
		for (n = 0; rows[i].kinds[n]; n++)
			fds[n] = rows[i].kinds[n] == 'm' ? memfd : rows[i].kinds[n] == 'e' ? r.event : p[0];
		stranger_ring_open(fd, TRUNK_RING, fds, n);
		row(rows[i].n, rows[i].what,
		    side_counter(&a, TRUNK_CTR_VIOLATIONS) == ends && side_counter(&a, TRUNK_CTR_RINGS) == !ends);
		close(fd);
		test_run(0);
		row(367, "none is left open", ring_descriptors() == before);
		close(memfd);
		close(p[0]);
		close(p[1]);
		trunk_ring_destroy(&r);
		side_stop(&a);
		loop_destroy(test_loop);
		test_loop = NULL;
	}
}

/* The peer wakes the daemon all the time. */
static void test_ring_wakes(void)
{
	struct trunk_ring r;
	u32 i, more = 0;
	int fd;

	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	fd = stranger_train();
	stranger_ring(fd, &r, TRUNK_RING);
	for (i = 0; i < 1000; i++) {
		trunk_ring_signal(&r);
		test_run(0);
	}
	row(241, "1,000 wake-ups without a message", side_state(&a) == PORT_STATE_INIT);
	row(242, "its counter is full, and does not block: the next one is lost to the peer alone",
	    write(r.event, &(u64){ ~0ull - 1001 }, sizeof(u64)) == sizeof(u64) && (trunk_ring_signal(&r), true));
	test_run(0);
	for (i = 0; i < 2 * TRUNK_SILENCE / NSEC_PER_SEC; i++) {
		read(r.event, &(u64){ 0 }, sizeof(u64));
		trunk_ring_signal(&r);
		test_run(NSEC_PER_SEC);
		more += side_state(&a) == PORT_STATE_INIT;
	}
	row(243, "they do not show that it is alive",
	    more >= TRUNK_SILENCE / NSEC_PER_SEC - 1 && more <= TRUNK_SILENCE / NSEC_PER_SEC &&
		    side_counter(&a, TRUNK_CTR_TIMEOUTS) == 1);
	trunk_ring_destroy(&r);
	close(fd);
	test_run(NSEC_PER_SEC);
	fd = stranger_train();
	stranger_ring(fd, &r, TRUNK_RING);
	trunk_ring_signal(&r);
	row(245, "another one", side_state(&a) == PORT_STATE_INIT);
	close(fd);
	test_run(0);
	row(244, "whose end is seen at once", side_state(&a) == PORT_STATE_DOWN);
	trunk_ring_destroy(&r);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* The shared member of the reader of @r: it sleeps, and needs a wake-up. */
static u32 *ring_asleep(struct trunk_ring *r)
{
	return (u32 *)((u64 *)r->shared + 9);
}

/* Signals to the reader of @r since the last call; the daemon never reads the eventfd. */
static u64 ring_signals(struct trunk_ring *r)
{
	u64 n = 0;

	return read(r->event, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

/* Two daemons with a ring in each direction, and addresses. */
static void rings_start(void)
{
	u32 i;

	trunk_start("", "");
	bring_up();
	for (i = 0; i < 2; i++) {
		send_many(&h1, 3, 0, 64, TRUNK_RING_AFTER);
		send_many(&h101, 1, 0, 64, TRUNK_RING_AFTER);
		test_run(0);
	}
	row(329, "there are rings", a.set->trunks[0].conn->tx.shared && b.set->trunks[0].conn->tx.shared);
}

/* A flush wakes a sleeping reader if, and only if, something was written since the last one. */
static void test_ring_announced(void)
{
	struct trunk_conn *c;
	u32 *asleep;

	rings_start();
	c = a.set->trunks[0].conn;
	asleep = ring_asleep(&c->tx);
	ring_signals(&c->tx);
	*asleep = 1;
	trunk_conn_flush_later(c);
	loop_run_tasks(test_loop);
	row(330, "nothing was written: the reader sleeps on", *asleep && !ring_signals(&c->tx));
	c->send_alive = true;
	trunk_conn_flush_later(c);
	loop_run_tasks(test_loop);
	row(331, "a message wakes it", !*asleep && ring_signals(&c->tx) == 1);
	*asleep = 1;
	trunk_conn_flush_later(c);
	loop_run_tasks(test_loop);
	row(332, "and does so once", *asleep == 1 && !ring_signals(&c->tx));
	trunk_stop();
}

/* Packets from h1 to h101, which the other daemon reads from its ring. True: it has something to send then. */
static bool reader_responds(u32 len, u32 n)
{
	struct trunk_conn *c = b.set->trunks[0].conn;

	send_many(&h1, 3, 0, len, n);
	while (loop_run_tasks(test_loop))
		; /* the poller reads */
	trunk_conn_poll(&b.set->poller, loop_now(test_loop));
	return c->flush.queued;
}

/* Credits are sent in steps: a short packet queues no task. */
static void test_credit_steps(void)
{
	struct trunk_session *s;
	u32 before, i;
	bool none = true;

	rings_start();
	s = &b.set->trunks[0].s;
	test_run(NSEC_PER_SEC / 2);
	before = s->fccl[0];
	i = (TRUNK_FLOW_STEP - (s->abr[0] + FABRIC_REMOTE_BLOCKS - before)) / 2; /* of two blocks, with headers */
	while (--i)
		none = none && !reader_responds(64, 1);
	row(333, "a short packet queues no credits",
	    none && s->fccl[0] == before && h101.packets > TRUNK_FLOW_STEP / 3);
	row(334, "a step of them is sent", reader_responds(64, 3) && s->send_flow);
	test_run(0);
	row(335, "they are sent once",
	    s->fccl[0] == s->abr[0] + FABRIC_REMOTE_BLOCKS && !s->send_flow && no_credits_in_use());
	row(336, "one long train likewise", reader_responds(4096, 10));
	trunk_stop();
}

static const u8 positive = WIRE_AETH_ACK, nak = WIRE_AETH_NAK | WIRE_NAK_PSN_SEQ;

/*
 * The peer sleeps, and a packet is written for it: an acknowledgement with @syndrome, or (NULL) a request. True: it
 * sleeps on.
 */
static bool sleeps_on(const u8 *syndrome)
{
	struct trunk_conn *c = a.set->trunks[0].conn;
	struct wire_packet *p = test_packet(1, 3, 0, 0, 1, 0xffff);
	u64 before = c->tx.at;

	if (syndrome) {
		p->hdr_len += sizeof(struct wire_aeth);
		wire_bth_fill(wire_packet_bth(p), WIRE_RC_ACK, false, 0, 0xffff, 17, false, 1);
		wire_aeth_fill(wire_packet_aeth(p), *syndrome, 1);
	}
	*ring_asleep(&c->tx) = 1;
	if (wire_port_send(h1.port, p))
		wire_packet_free(p);
	while (loop_run_tasks(test_loop))
		;
	row(337, "it is in the ring", c->tx.at > before);
	return *ring_asleep(&c->tx);
}

/* The daemon polls after @ns: does the peer sleep on? */
static bool sleeps_after(u64 ns)
{
	struct trunk_conn *c = a.set->trunks[0].conn;

	trunk_conn_poll(&a.set->poller, (struct now){ loop_now(test_loop).ns + ns });
	return *ring_asleep(&c->tx);
}

/* The peer sleeps on for acknowledgements alone, but not for long. */
static void test_ring_acks(void)
{
	struct trunk_conn *c;
	u64 until;
	u32 i;

	rings_start();
	c = a.set->trunks[0].conn;
	row(340, "a request wakes it", !sleeps_on(NULL));
	row(341, "a NAK likewise", !sleeps_on(&nak));
	row(342, "an ACK does not", sleeps_on(&positive) && sleeps_after(2 * NSEC_PER_USEC));
	until = c->ack_until;
	row(343, "nor does a second one, which delays the first one no further",
	    sleeps_on(&positive) && c->ack_until == until && sleeps_after(2 * NSEC_PER_USEC));
	row(344, "the request behind them wakes it", !sleeps_on(NULL) && !c->ack_until);
	row(345, "without a request, time does", sleeps_on(&positive) && !sleeps_after(5 * NSEC_PER_USEC));
	sleeps_on(&positive);
	trunk_conn_sleep(&a.set->poller, true);
	row(346, "or the sleep of this daemon", !*ring_asleep(&c->tx) && !c->ack_until);
	trunk_conn_sleep(&a.set->poller, false);
	c->send_alive = true;
	sleeps_on(&positive);
	trunk_conn_flush_later(c);
	loop_run_tasks(test_loop);
	row(347, "or a message other than a packet", !*ring_asleep(&c->tx));
	sleeps_on(NULL);
	for (i = 0; i < ACK_DELAY_UNPAIRED; i++) {
		sleeps_on(&positive);
		sleeps_after(5 * NSEC_PER_USEC);
	}
	row(348, "where no requests follow, an ACK wakes it at once", !sleeps_on(&positive));
	for (i = 1; i < ACK_DELAY_RETRY && !sleeps_on(&positive); i++)
		;
	row(349, "except one now and then", i == ACK_DELAY_RETRY - 1 && !sleeps_after(5 * NSEC_PER_USEC));
	row(350, "after a request it sleeps on again", !sleeps_on(NULL) && sleeps_on(&positive));
	*ring_asleep(&c->tx) = 0;
	row(351, "one that is awake has it at once, and nobody is woken later",
	    trunk_conn_poll(&b.set->poller, loop_now(test_loop)) && !sleeps_after(5 * NSEC_PER_USEC) && !c->ack_until);
	trunk_stop();
}

/* A packet wakes a peer that sleeps already, before the flush; a flush finds one that has gone to sleep since. */
static void test_ring_early(void)
{
	struct trunk_conn *c;
	u64 before;

	rings_start();
	c = a.set->trunks[0].conn;
	before = c->tx.at;
	*ring_asleep(&c->tx) = 1;
	send_many(&h1, 3, 0, 64, 1);
	while (c->tx.at == before && loop_run_tasks(test_loop))
		;
	row(353, "a packet wakes it at once", c->tx.at > before && !*ring_asleep(&c->tx) && !c->flush.queued);
	before = c->tx.at;
	send_many(&h1, 3, 0, 64, 1);
	while (c->tx.at == before && loop_run_tasks(test_loop))
		;
	*ring_asleep(&c->tx) = 1;
	row(354, "one that goes to sleep now", c->tx.at > before && c->flush.queued);
	loop_run_tasks(test_loop);
	row(355, "is woken by the flush", !*ring_asleep(&c->tx));
	trunk_stop();
}

/* A reader that does not read, and then has an invalid index. */
static void test_ring_reader(void)
{
	u64 *tail;

	trunk_start("", "");
	bring_up();
	send_many(&h1, 3, 0, 4096, 40);
	test_run(0);
	send_many(&h1, 3, 0, 4096, 40);
	test_run(0);
	row(230, "packets go by a ring in each direction",
	    a.set->trunks[0].conn->tx.shared && b.set->trunks[0].conn->rx.shared &&
		    side_counter(&a, TRUNK_CTR_RINGS) == 2 && h101.packets == 80);
	tail = (u64 *)a.set->trunks[0].conn->tx.shared + 8;
	row(231, "the index of the reader", *tail == a.set->trunks[0].conn->tx.at);
	list_del(&b.set->trunks[0].conn->rings); /* it does not read any more */
	send_many(&h1, 3, 0, 4096, 40);
	test_run(0);
	send_many(&h1, 3, 0, 4096, 40);
	test_run(0);
	row(234, "the ring is full, and packets wait",
	    !list_empty(&a.set->trunks[0].s.packets) && h101.packets == 80 && !side_counter(&a, TRUNK_CTR_VIOLATIONS));
	*tail += 2 * TRUNK_RING;
	test_run(0);
	row(232, "it is disconnected", side_counter(&a, TRUNK_CTR_VIOLATIONS) == 1);
	test_run(NSEC_PER_SEC);
	row(233, "and trains again", at(PORT_STATE_INIT) && !b.set->trunks[0].conn->rx.shared);
	trunk_stop();
}

/* Connections that several trunks share */

#define MORE_MAX 300

/* Options of a trunk at port 9, and the line of another trunk at port 10, with @options. */
static const char *with_another(char *more, const char *leaf, const char *how, const char *peer, const char *options)
{
	snprintf(more, MORE_MAX, "peer %s:9\ntrunk %s:10 %s /tmp/muslin-trunk-%d peer %s:10 %s", peer, leaf, how,
		 getpid(), peer, options);
	return more;
}

static void two_trunks_start(const char *options_a, const char *options_b)
{
	char more_a[MORE_MAX], more_b[MORE_MAX];

	trunk_start(with_another(more_a, "leaf1", "listen", "0002c90406400010", options_a),
		    with_another(more_b, "leaf101", "to", "0002c90400000010", options_b));
}

static bool link_is_up(u32 index)
{
	return fabric_remote_is_up(fabric_remote(a.f, index)) && fabric_remote_is_up(fabric_remote(b.f, index));
}

static void test_shared(void)
{
	u32 i;

	two_trunks_start("", "");
	row(250, "two trunks to one address share a connection",
	    link_is_up(0) && link_is_up(1) && b.set->nconnectors == 1 && a.set->trunks[0].conn &&
		    a.set->trunks[0].conn == a.set->trunks[1].conn && a.set->trunks[0].conn->nopen == 2);
	row(251, "each has the peer's port",
	    fabric_remote_local(fabric_remote(a.f, 1))->peer->num == 10 && side_port(&a)->peer->num == 9);
	fabric_link_unplug(fabric_remote_local(fabric_remote(a.f, 1)));
	test_run(0);
	row(252, "one is unplugged, the other one stays up", link_is_up(0) && !link_is_up(1));
	fabric_link_plug(fabric_remote_local(fabric_remote(b.f, 1)));
	test_run(0);
	bring_up();
	for (i = 0; i < 20; i++) {
		send_many(&h1, 3, 0, 4096, 40);
		test_run(0);
	}
	row(253, "packets go by its ring", a.set->trunks[1].conn->tx.shared && h101.packets == 800 && link_is_up(1));
	trunk_set_destroy(b.set);
	test_run(0);
	row(254, "the loss of the connection takes both down",
	    !link_is_up(0) && !link_is_up(1) && trunk_counter(a.set, 0, TRUNK_CTR_LOST) == 1 &&
		    trunk_counter(a.set, 1, TRUNK_CTR_LOST) == 1);
	side_connect(&b);
	test_run(NSEC_PER_SEC);
	row(255, "and both come back", link_is_up(0) && link_is_up(1));
	trunk_stop();
}

/* One of two trunks is refused; the other one is not affected. */
static void test_shared_refused(void)
{
	char one[100], other[100], options_a[120], options_b[120];

	key_file(one, sizeof(one), "a key that all know\n");
	key_file(other, sizeof(other), "a key that nobody knows\n");
	snprintf(options_a, sizeof(options_a), "key %s", one);
	snprintf(options_b, sizeof(options_b), "key %s", other);
	two_trunks_start(options_a, options_a);
	row(256, "one has a key", link_is_up(0) && link_is_up(1));
	trunk_stop();
	two_trunks_start(options_a, options_b);
	row(257, "another key: it is refused alone",
	    link_is_up(0) && !link_is_up(1) && trunk_counter(a.set, 1, TRUNK_CTR_REFUSED_KEY) == 1 &&
		    trunk_counter(b.set, 1, TRUNK_CTR_REFUSED_BY_PEER) == 1);
	test_run(2 * TRUNK_REFUSED_WAIT);
	row(258, "it tries again on the same connection",
	    link_is_up(0) && trunk_counter(a.set, 1, TRUNK_CTR_REFUSED_KEY) > 1 &&
		    trunk_counter(a.set, 0, TRUNK_CTR_CONNECTED) == 1 && !side_counter(&a, TRUNK_CTR_VIOLATIONS));
	trunk_stop();
	two_trunks_start("", options_b); /* the connecting daemon refuses */
	test_run(2 * TRUNK_REFUSED_WAIT);
	row(259, "no key at the listener",
	    link_is_up(0) && !link_is_up(1) && a.set->trunks[0].ctr[TRUNK_CTR_CONNECTED] == 1);
	trunk_stop();
	unlink(one);
	unlink(other);
}

static void stranger_send_link(int fd, u8 type, u32 number, const void *body, u32 len)
{
	struct trunk_head h = { .type = type, .len = cpu_to_be16((u16)len), .link = cpu_to_be32(number) };
	u8 m[sizeof(h) + TRUNK_MSG_MAX];

	memcpy(m, &h, sizeof(h));
	memcpy(m + sizeof(h), body, len);
	if (send(fd, m, sizeof(h) + len, MSG_NOSIGNAL) > 0)
		test_run(0);
}

/* Link numbers of a stranger who has trained link 0. */
static void test_link_numbers(void)
{
	static const struct {
		int n;
		const char *what;
		u8 type;
		u32 number;
		u16 len;
		enum trunk_counter counts;
		bool ends;
	} rows[] = {
		{ 260, "a second hello for the port", TRUNK_HELLO, 1, 112, TRUNK_CTR_REFUSED_BUSY, false },
		{ 261, "a hello with a large number", TRUNK_HELLO, ~0u, 112, TRUNK_CTR_REFUSED_BUSY, false },
		{ 262, "a packet of a link that was not opened", TRUNK_PACKET, 1, 64, TRUNK_CTR_VIOLATIONS, true },
		{ 263, "credits of one", TRUNK_FLOW, ~0u, 8, TRUNK_CTR_VIOLATIONS, true },
		{ 264, "a MAC of one", TRUNK_AUTH, 1, 32, TRUNK_CTR_VIOLATIONS, true },
	};
	struct trunk_hello h = stranger_hello();
	u32 i, k;
	int fd;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
		fd = stranger_train();
		stranger_send_link(fd, rows[i].type, rows[i].number, &h, rows[i].len);
		row(rows[i].n, rows[i].what,
		    side_counter(&a, rows[i].counts) == 1 &&
			    side_state(&a) == (rows[i].ends ? PORT_STATE_DOWN : PORT_STATE_INIT));
		close(fd);
		side_stop(&a);
		loop_destroy(test_loop);
		test_loop = NULL;
	}
	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	fd = stranger_connect();
	stranger_send_link(fd, TRUNK_HELLO, TRUNK_LINKS, &h, sizeof(h));
	row(265, "a number out of range", side_counter(&a, TRUNK_CTR_REFUSED_HELLO) == 1 && !a.set->trunks[0].conn);
	close(fd);
	fd = stranger_train();
	for (k = 0; k < 2 * TRUNK_TAIL_MAX / (sizeof(struct trunk_head) + sizeof(struct trunk_refuse)); k++)
		stranger_send_link(fd, TRUNK_HELLO, k + 1, &h, sizeof(h));
	row(266, "many refused hellos",
	    side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == k && side_state(&a) == PORT_STATE_INIT);
	h.peer_port = 3;
	close(fd);
	fd = stranger_connect();
	stranger_send_link(fd, TRUNK_HELLO, 0, &h, sizeof(h));
	test_run(TRUNK_REFUSED_TIME + NSEC_PER_SEC / 2);
	h.peer_port = 0;
	stranger_send_link(fd, TRUNK_HELLO, 0, &h, sizeof(h));
	row(267, "a connection without a trunk is closed soon",
	    side_state(&a) == PORT_STATE_DOWN && !a.set->listeners[0].nunknown);
	close(fd);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/*
 * Messages longer than any on a connection that a refusal has not ended: the first one is for a trunk whose hello was
 * refused, the second one for a trunk that waits for its HMAC.
 */
static void test_too_long(void)
{
	struct trunk_hello h = stranger_hello();
	static u8 m[60000];
	char path[100], options[120];
	int fd, i;

	key_file(path, sizeof(path), "a key of both sides\n");
	snprintf(options, sizeof(options), "key %s", path);
	for (i = 0; i < 2; i++) {
		side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", i ? options : "");
		h.peer_port = i ? 0 : 3;
		fd = stranger_connect();
		stranger_send(fd, TRUNK_HELLO, 0, &h, sizeof(h));
		row(280 + i, "the connection is open", a.set->listeners[0].nunknown == !i);
		stranger_send(fd, TRUNK_PACKET, 0, m, sizeof(m));
		row(282 + i, "too long a message ends it", !a.set->listeners[0].nunknown && !a.set->trunks[0].conn);
		close(fd);
		side_stop(&a);
		loop_destroy(test_loop);
		test_loop = NULL;
	}
	unlink(path);
}

/* Two trunks; either the listener or the connecting daemon uses TLS. */
static void one_end_uses_tls(const char *options, bool listener)
{
	char more[MORE_MAX];

	test_tls = listener;
	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen",
		   with_another(more, "leaf1", "listen", "0002c90406400010", options));
	test_tls = !listener;
	side_start(&b, "leafs 1 hosts 2 first 101", "leaf101", "to",
		   with_another(more, "leaf101", "to", "0002c90400000010", options));
	test_run(NSEC_PER_SEC);
}

static void two_sides_stop(void)
{
	side_stop(&b);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* Trunks of one address share a connection with TLS if they have the same key. */
static void test_shared_tls(const char *path)
{
	char other[100], options[120], options_other[120];

	key_file(other, sizeof(other), "another key of both sides\n");
	snprintf(options, sizeof(options), "key %s", path);
	snprintf(options_other, sizeof(options_other), "key %s", other);
	two_trunks_start(options, options);
	row(270, "the same key: one connection",
	    link_is_up(0) && link_is_up(1) && b.set->nconnectors == 1 && a.set->trunks[0].conn &&
		    a.set->trunks[0].conn == a.set->trunks[1].conn && a.set->trunks[0].conn->tls);
	trunk_set_destroy(b.set);
	test_run(0);
	row(271, "it ends with close_notify",
	    !link_is_up(0) && !link_is_up(1) && !side_counter(&a, TRUNK_CTR_TRUNCATED) &&
		    trunk_counter(a.set, 1, TRUNK_CTR_LOST) == 1);
	side_connect(&b);
	test_run(NSEC_PER_SEC);
	row(272, "and comes back", link_is_up(0) && link_is_up(1));
	trunk_stop();
	two_trunks_start(options_other, options_other);
	row(273, "two keys: two connections",
	    link_is_up(0) && link_is_up(1) && b.set->nconnectors == 2 && a.set->trunks[0].conn->tls &&
		    a.set->trunks[1].conn->tls && a.set->trunks[0].conn != a.set->trunks[1].conn);
	trunk_stop();
	two_trunks_start(options, options_other);
	row(274, "a key that is not of the peer's trunk",
	    link_is_up(0) && !link_is_up(1) && trunk_set_counter(a.set, TRUNK_CTR_REFUSED_KEY) == 1 &&
		    trunk_counter(b.set, 1, TRUNK_CTR_REFUSED_BY_PEER) == 1);
	trunk_stop();
	unlink(other);

	/* The connecting daemon without TLS, then the listening one. */
	one_end_uses_tls(options, true);
	row(275, "without TLS: both trunks are refused, not at once again",
	    !link_is_up(0) && !link_is_up(1) && trunk_set_counter(a.set, TRUNK_CTR_REFUSED_TLS) == 1 &&
		    trunk_counter(b.set, 0, TRUNK_CTR_REFUSED_BY_PEER) == 1 &&
		    trunk_counter(b.set, 1, TRUNK_CTR_REFUSED_BY_PEER) == 1);
	test_run(TRUNK_REFUSED_WAIT);
	row(276, "they try again", trunk_set_counter(a.set, TRUNK_CTR_REFUSED_TLS) == 2);
	two_sides_stop();
	one_end_uses_tls(options, false);
	row(277, "a listener without TLS",
	    !link_is_up(0) && !link_is_up(1) && trunk_set_counter(a.set, TRUNK_CTR_REFUSED_TLS) == 1 &&
		    trunk_counter(b.set, 0, TRUNK_CTR_REFUSED_TLS) == 1 &&
		    trunk_counter(b.set, 1, TRUNK_CTR_REFUSED_TLS) == 1);
	two_sides_stop();
	test_tls = true;
}

/* The same within TLS. */
static void test_within_tls(void)
{
	char path[64];

	key_file(path, sizeof(path), "a key of both sides\n");
	snprintf(test_options, sizeof(test_options), "key %s", path);
	test_tls = true;
	test_link();
	test_data();
	test_death();
	test_cable();
	test_shared_tls(path);
	test_tls = false;
	test_options[0] = 0;
	unlink(path);
}

int main(void)
{
	u32 live = wire_packet_live();

	log_level = LOG_ERROR;
	test_link();
	test_fdr10();
	test_data();
	test_payload();
	test_death();
	test_cable();
	test_seed();
	test_key();
	test_unproved();
	test_peer();
	test_hello();
	test_listener_hello();
	test_listener_closes();
	test_connects_again();
	test_violations();
	test_ring_violations();
	test_ring_descriptors();
	test_ring_wakes();
	test_ring_announced();
	test_credit_steps();
	test_ring_acks();
	test_ring_early();
	test_ring_reader();
	test_shared();
	test_shared_refused();
	test_link_numbers();
	test_too_long();
	if (trunk_tls_in_build())
		test_within_tls();
	row(240, "no packet is left", wire_packet_live() == live);
	return rows_end();
}

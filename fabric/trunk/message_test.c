// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of messages: keys, and wrong and hostile peers. */
#include <arpa/inet.h>
#include <nettle/hmac.h>
#include <nettle/version.h>

#include "emu/lib/rlimit.h"
#include "fabric/trunk/pair_fixture.h"

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

/* Sends a hello, whose connection stays open. */
static int raw_peer_greet(const struct trunk_hello *h)
{
	int fd = raw_peer_connect();

	raw_peer_send(fd, TRUNK_HELLO, 0, h, sizeof(*h));
	return fd;
}

/* Has the peer that closed @fd sent this refusal as its last message? */
static bool raw_peer_was_refused(int fd, enum trunk_refusal why)
{
	struct {
		struct trunk_head head;
		struct trunk_refuse body;
	} m;
	u8 hello[sizeof(struct trunk_head) + sizeof(struct trunk_hello)], c;
	ssize_t n;

	do
		n = recv(fd, &m, sizeof(m), MSG_DONTWAIT | MSG_PEEK);
	while (n == sizeof(m) && m.head.type == TRUNK_HELLO && recv(fd, hello, sizeof(hello), MSG_DONTWAIT) > 0);
	return n == sizeof(m) && recv(fd, &m, sizeof(m), MSG_DONTWAIT) == sizeof(m) && m.head.type == TRUNK_REFUSE &&
	       m.body.why == why && !recv(fd, &c, 1, MSG_DONTWAIT);
}

/* Proves the key by the HMAC of @h and the listener's hello. False: there was none. */
static bool raw_peer_prove(int fd, const struct trunk_hello *h, const char *key)
{
	u8 m[sizeof(struct trunk_head) + sizeof(struct trunk_hello)], mac[TRUNK_MAC_SIZE];
	struct hmac_sha256_ctx ctx;

	if (recv(fd, m, sizeof(m), MSG_DONTWAIT) != sizeof(m) || m[0] != TRUNK_HELLO)
		return false;
	hmac_sha256_set_key(&ctx, strlen(key), (const u8 *)key);
	hmac_sha256_update(&ctx, 1, (const u8 *)"C");
	hmac_sha256_update(&ctx, sizeof(*h), (const u8 *)h);
	hmac_sha256_update(&ctx, sizeof(*h), m + sizeof(struct trunk_head));
#if NETTLE_VERSION_MAJOR >= 4
	hmac_sha256_digest(&ctx, mac);
#else
	hmac_sha256_digest(&ctx, sizeof(mac), mac);
#endif
	raw_peer_send(fd, TRUNK_AUTH, 0, mac, sizeof(mac));
	return true;
}

/* The peer's machine has vanished without an end of its connection @fd[0]; both of @fd are replaced. */
static void test_comes_back(int fd[2], const char *key)
{
	u64 busy = side_counter(&a, TRUNK_CTR_REFUSED_BUSY), refused = side_counter(&a, TRUNK_CTR_REFUSED_KEY);
	struct trunk_hello h = raw_peer_hello(), other = h;
	struct trunk_conn *old = a.set->trunks[0].conn;
	u8 wrong[TRUNK_MAC_SIZE] = { 0 };
	int late, f;

	f = raw_peer_connect();
	other.guid = cpu_to_be64(PEER_GUID + 0x1000);
	raw_peer_send(f, TRUNK_HELLO, 0, &other, sizeof(other));
	close(f);
	row(318, "another peer is refused at once", side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == busy + 1);
	f = raw_peer_greet(&h);
	raw_peer_send(f, TRUNK_AUTH, 0, wrong, sizeof(wrong));
	close(f);
	row(319, "with a wrong key it has no effect",
	    side_counter(&a, TRUNK_CTR_REFUSED_KEY) == refused + 1 && a.set->trunks[0].conn == old &&
		    !side_counter(&a, TRUNK_CTR_LOST));
	close(fd[1]);
	fd[1] = raw_peer_greet(&h);
	late = raw_peer_greet(&h);
	row(320, "its hello alone neither", a.set->trunks[0].conn == old && !side_counter(&a, TRUNK_CTR_LOST));
	row(321, "the first one with the key replaces the silent one",
	    raw_peer_prove(fd[1], &h, key) && a.set->trunks[0].conn && a.set->trunks[0].conn != old &&
		    side_counter(&a, TRUNK_CTR_CONNECTED) == 2 && side_counter(&a, TRUNK_CTR_LOST) == 1);
	row(322, "a second one comes too late",
	    raw_peer_prove(late, &h, key) && side_counter(&a, TRUNK_CTR_CONNECTED) == 2 &&
		    side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == busy + 2);
	close(late);
	late = raw_peer_greet(&h);
	row(323, "and so does another hello while the new one is heard",
	    side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == busy + 3 && side_counter(&a, TRUNK_CTR_LOST) == 1);
	close(late);
	close(fd[0]);
	fd[0] = fd[1];
	fd[1] = raw_peer_connect();
}

/* Peers that do not prove the key keep nobody out who does. */
static void test_unproved(void)
{
	static const char key[] = "a key of both sides";
	struct trunk_hello h = raw_peer_hello();
	char path[64], options[80], rest[400];
	u8 wrong[TRUNK_MAC_SIZE] = { 0 };
	int fd[64], right[2];
	u32 i;

	key_file(path, sizeof(path), key);
	snprintf(options, sizeof(options), "key %s", path);
	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", options);
	for (i = 0; i < 2; i++)
		right[i] = raw_peer_greet(&h);
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = raw_peer_greet(&h);
	row(310, "none of them has the trunk",
	    !a.set->trunks[0].conn && !side_counter(&a, TRUNK_CTR_REFUSED_BUSY) &&
		    a.set->listeners[0].nunknown == ARRAY_SIZE(fd) + 2);
	raw_peer_send(fd[2], TRUNK_HELLO, 0, &h, sizeof(h));
	row(311, "a second hello for a link number is refused",
	    !a.set->trunks[0].conn && side_counter(&a, TRUNK_CTR_REFUSED_KEY) == 1);
	for (i = 3; i < 10; i++)
		raw_peer_send(fd[i], TRUNK_AUTH, 0, wrong, sizeof(wrong));
	row(312, "so are wrong keys", side_counter(&a, TRUNK_CTR_REFUSED_KEY) == 8);
	row(313, "the one with the key gets it, whose hello was the first of all",
	    raw_peer_prove(right[0], &h, key) && side_counter(&a, TRUNK_CTR_CONNECTED) == 1 && a.set->trunks[0].conn);
	row(314, "a second one comes too late",
	    raw_peer_prove(right[1], &h, key) && side_counter(&a, TRUNK_CTR_CONNECTED) == 1 &&
		    side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == 1);
	close(fd[0]);
	fd[0] = raw_peer_greet(&h);
	row(315, "another hello does not disturb it",
	    a.set->trunks[0].conn && !side_counter(&a, TRUNK_CTR_LOST) &&
		    side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == 2);
	test_run(TRUNK_HELLO_TIME + NSEC_PER_SEC);
	row(316, "those that prove nothing have to go",
	    !a.set->listeners[0].nunknown && list_empty(&a.set->trunks[0].requests) &&
		    side_counter(&a, TRUNK_CTR_REFUSED_KEY) == 8 + ARRAY_SIZE(fd) - 9);
	row(324, "with an answer", raw_peer_was_refused(fd[20], TRUNK_BAD_KEY));
	test_comes_back(right, key);
	close(right[0]);
	for (i = 0; i < ARRAY_SIZE(fd) / 2; i++) {
		close(fd[i]);
		fd[i] = raw_peer_greet(&h);
	}
	side_start(&b, "leafs 1 hosts 2 first 101", "leaf101", "to", options);
	test_run(NSEC_PER_SEC);
	row(317, "a daemon with the key is let in", at(PORT_STATE_INIT) && side_counter(&b, TRUNK_CTR_CONNECTED) == 1);
	while (recv(right[1], rest, sizeof(rest), MSG_DONTWAIT) > 0)
		;
	close(right[1]);
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	trunk_stop();
	unlink(path);
}

/* Connects by TCP from an address of the loopback interface. */
static int tcp_connect(const char *from, const char *to)
{
	struct sockaddr_in sa = { .sin_family = AF_INET }, peer = { .sin_family = AF_INET, .sin_port = htons(4000) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	inet_pton(AF_INET, from, &sa.sin_addr);
	inet_pton(AF_INET, to, &peer.sin_addr);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) ||
	    (connect(fd, (struct sockaddr *)&peer, sizeof(peer)) && errno != EINPROGRESS))
		perror(from);
	test_run(0);
	return fd;
}

/* More connections of one source than a listener has without a trunk: they replace each other. */
static void test_sources(void)
{
	struct trunk_hello h = raw_peer_hello();
	static int fd[2 * TRUNK_UNKNOWN];
	char to[32], address[40];
	int quiet;
	u32 i;

	snprintf(to, sizeof(to), "127.8.%u.%u", (u32)getpid() / 254 % 254 + 1, (u32)getpid() % 254 + 1);
	snprintf(address, sizeof(address), "%s:4000", to);
	side_start_at(&a, "leafs 1 hosts 2", "leaf1", "listen", address, "");
	quiet = tcp_connect("127.0.0.2", to);
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = tcp_connect("127.0.0.3", to);
	row(325, "they replace each other", a.set->listeners[0].nunknown == TRUNK_UNKNOWN);
	raw_peer_send(quiet, TRUNK_HELLO, 0, &h, sizeof(h));
	row(326, "and not that of another source", side_counter(&a, TRUNK_CTR_CONNECTED) == 1);
	close(quiet);
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
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

/* A raw peer listens, and responds with a hello of port 0. */
static void test_listener_hello(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fd;
	struct trunk_hello h = raw_peer_hello();

	snprintf(sa.sun_path, sizeof(sa.sun_path), "/tmp/muslin-trunk-%d", getpid());
	if (bind(l, (struct sockaddr *)&sa, sizeof(sa)) || listen(l, 1))
		perror(sa.sun_path);
	side_start(&b, "leafs 1 hosts 2 first 101", "leaf101", "to", "");
	test_run(NSEC_PER_SEC);
	fd = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	h.guid = cpu_to_be64(OWN_GUID);
	h.port = 0;
	raw_peer_send(fd, TRUNK_HELLO, 0, &h, sizeof(h));
	row(292, "a listener with port 0",
	    side_counter(&b, TRUNK_CTR_REFUSED_HELLO) == 1 && !side_counter(&b, TRUNK_CTR_CONNECTED));
	close(fd);
	close(l);
	unlink(sa.sun_path);
	side_stop(&b);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* A raw peer listens, accepts a trunk, and closes its connection at once. */
static void test_listener_closes(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fd;
	struct trunk_hello h = raw_peer_hello();
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
		raw_peer_send(fd, TRUNK_HELLO, 0, &h, sizeof(h));
		close(fd);
		n++;
	}
	row(330, "it is not tried again at once",
	    n > 10 && n < 30 && side_counter(&b, TRUNK_CTR_CONNECTED) == n &&
		    side_counter(&b, TRUNK_CTR_LOST) >= n - 1);
	close(l);
	unlink(sa.sun_path);
	side_stop(&b);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* The kernel completes the connection, and nobody accepts it: that is no refused peer either. */
static void test_listener_silent(u32 number, const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	u64 refused = 0;
	u32 i;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "/tmp/muslin-trunk-%d", getpid());
	if (bind(l, (struct sockaddr *)&sa, sizeof(sa)) || listen(l, 1))
		perror(sa.sun_path);
	side_start(&b, "leafs 1 hosts 2 first 101", "leaf101", "to", "");
	test_run(TRUNK_HELLO_TIME + NSEC_PER_SEC / 2);
	for (i = TRUNK_CTR_REFUSED_HELLO; i <= TRUNK_CTR_REFUSED_BY_PEER; i++)
		refused += side_counter(&b, (enum trunk_counter)i);
	row(number, name, side_counter(&b, TRUNK_CTR_UNANSWERED) == 1 && !refused);
	side_stop(&b);
	loop_destroy(test_loop);
	test_loop = NULL;
	close(l);
	unlink(sa.sun_path);
}

/* Nobody responds at the address, where the queue of connections is full: that is no refusal. */
static void test_connect_expires(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd[4];
	socklen_t len = sizeof(sa);
	char address[40];
	u32 i;

	if (bind(l, (struct sockaddr *)&sa, len) || listen(l, 0) || getsockname(l, (struct sockaddr *)&sa, &len))
		abort();
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (connect(fd[i], (struct sockaddr *)&sa, len) && errno != EINPROGRESS)
			abort();
	}
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(sa.sin_port));
	side_start_at(&b, "leafs 1 hosts 2 first 101", "leaf101", "to", address, "");
	test_run(NSEC_PER_MSEC);
	row(340, "it connects", b.set->trunks[0].connector->conn && b.set->trunks[0].connector->conn->connecting);
	test_run(2 * TRUNK_HELLO_TIME);
	row(341, "a connection that is not established is no refused one",
	    !side_counter(&b, TRUNK_CTR_REFUSED_HELLO) && b.set->trunks[0].connector->conn);
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	close(l);
	side_stop(&b);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* A raw peer trains the link, and connects again and again. */
static void test_connects_again(void)
{
	u64 *downs, before;
	u32 i;

	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	downs = &side_port(&a)->ctr[FABRIC_CTR_LINK_DOWNED];
	for (i = 0; i < 2 * TRUNK_CHANGES; i++)
		close(raw_peer_train());
	test_run(0);
	row(350, "the link changes a limited number of times",
	    side_counter(&a, TRUNK_CTR_CONNECTED) >= TRUNK_CHANGES / 2 &&
		    side_counter(&a, TRUNK_CTR_CONNECTED) <= TRUNK_CHANGES && *downs <= TRUNK_CHANGES &&
		    side_counter(&a, TRUNK_CTR_REFUSED_BUSY) > TRUNK_CHANGES / 2);
	before = side_counter(&a, TRUNK_CTR_CONNECTED);
	test_run(NSEC_PER_SEC);
	i = (u32)raw_peer_train();
	row(351, "and again in the next second",
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
		int f = raw_peer_connect();

		before = side_counter(&a, rows[i].counts);
		h = raw_peer_hello();
		memcpy(m, &h, sizeof(h));
		m[rows[i].at] = rows[i].value;
		raw_peer_send(f, rows[i].type, 0, m, rows[i].len);
		test_run(0);
		row(rows[i].n, rows[i].what,
		    side_counter(&a, rows[i].counts) == before + 1 && side_state(&a) == PORT_STATE_DOWN);
		close(f);
	}
	h = raw_peer_hello();
	h.guid = cpu_to_be64(0x0002c90300000020ull); /* of h1 */
	fd[0] = raw_peer_connect();
	raw_peer_send(fd[0], TRUNK_HELLO, 0, &h, sizeof(h));
	row(110, "a GUID that a node here has", side_counter(&a, TRUNK_CTR_REFUSED_PORT) == 3);
	close(fd[0]);
	before = side_counter(&a, TRUNK_CTR_REFUSED_HELLO);
	h.guid = 0;
	fd[0] = raw_peer_connect();
	raw_peer_send(fd[0], TRUNK_HELLO, 0, &h, sizeof(h));
	row(291, "no GUID", side_counter(&a, TRUNK_CTR_REFUSED_HELLO) == before + 1);
	close(fd[0]);
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = raw_peer_connect();
		test_run(0);
	}
	row(111, "silent ones replace each other",
	    recv(fd[3], &c, 1, MSG_DONTWAIT) == 0 && recv(fd[4], &c, 1, MSG_DONTWAIT) < 0);
	test_run(TRUNK_HELLO_TIME + NSEC_PER_SEC);
	row(112, "and have to go, with an answer", raw_peer_was_refused(fd[4], TRUNK_BAD_HELLO));
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	fd[0] = raw_peer_train();
	row(113, "a right one is let in after them", side_state(&a) == PORT_STATE_INIT);
	fd[1] = raw_peer_train();
	row(114, "a second one is not",
	    side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == 1 && side_state(&a) == PORT_STATE_INIT);
	a.set->trunks[0].conn->heard -= 2 * TRUNK_SILENCE;
	test_run_late(&a.set->trunks[0].conn->timer);
	row(116, "if this daemon was stopped, the peer was not silent",
	    !side_counter(&a, TRUNK_CTR_TIMEOUTS) && side_state(&a) == PORT_STATE_INIT);
	test_run(TRUNK_SILENCE + 2 * NSEC_PER_SEC);
	row(115, "one that falls silent is gone",
	    side_counter(&a, TRUNK_CTR_TIMEOUTS) == 1 && side_state(&a) == PORT_STATE_DOWN);
	close(fd[0]);
	close(fd[1]);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

static void raw_peer_flow(int fd, u8 vl, u16 free, u32 abr)
{
	struct trunk_flow m = { .vl = vl, .free = cpu_to_be16(free), .abr = cpu_to_be32(abr) };

	raw_peer_send(fd, TRUNK_FLOW, 0, &m, sizeof(m));
}

/* Sends @n packets of one block each in one call, before the daemon can send credits. */
static void raw_peer_packets(int fd, u8 vl, u32 n)
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
		fd = raw_peer_train();
		row(120 + (int)i, "it trains first", side_state(&a) == PORT_STATE_INIT);
		switch (i) {
		case 0:
			raw_peer_flow(fd, 15, 4096, 0);
			break;
		case 1:
			raw_peer_flow(fd, 0, FABRIC_REMOTE_BLOCKS + 1, 0);
			break;
		case 2:
			raw_peer_flow(fd, 0, 4096, 1);
			break; /* nothing was sent */
		case 3:
			raw_peer_send(fd, TRUNK_FLOW, 0, bytes, 12);
			break;
		case 4:
			raw_peer_send(fd, TRUNK_LINK, 0, &l, sizeof(l));
			break;
		case 5:
			a.set->trunks[0].s.fccl[3] = 100; /* as if the peer had no more credits */
			raw_peer_packets(fd, 3, 101);
			break;
		case 6:
			raw_peer_send(fd, TRUNK_PACKET, 0, bytes, 8);
			break; /* malformed, which a link may do */
		case 7:
			raw_peer_send(fd, TRUNK_PACKET, WIRE_PKT_EBP, bytes, 300);
			break;
		case 8:
			raw_peer_send(fd, TRUNK_HELLO, 0, bytes, sizeof(struct trunk_hello));
			break;
		case 9:
			raw_peer_send(fd, 0, 0, bytes, 0);
			break;
		case 10:
			raw_peer_send(fd, TRUNK_PACKET, 0, bytes, 0);
			break;
		case 11:
			raw_peer_send(fd, TRUNK_AUTH, 0, bytes, TRUNK_MAC_SIZE);
			break;
		case 12:
			l = (struct trunk_link){ .epoch = cpu_to_be32(1), .flags = TRUNK_LINK_CABLE };
			for (k = 0; k <= TRUNK_CHANGES; k++)
				raw_peer_send(fd, TRUNK_LINK, 0, &l, sizeof(l));
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
		    (fd = raw_peer_train(), side_state(&a) == PORT_STATE_INIT));
		if (i == 5)
			row(180, "the overrun is counted",
			    fabric_port_counter(side_port(&a), FABRIC_CTR_OVERRUN_ERRORS) == 1);
		close(fd);
		side_stop(&a);
		loop_destroy(test_loop);
		test_loop = NULL;
	}
}

static void test_too_long(void)
{
	struct trunk_hello h = raw_peer_hello();
	static u8 m[60000];
	char path[100], options[120];
	int fd, i;

	key_file(path, sizeof(path), "a key of both sides\n");
	snprintf(options, sizeof(options), "key %s", path);
	for (i = 0; i < 2; i++) {
		side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", i ? options : "");
		h.peer_port = i ? 0 : 3;
		fd = raw_peer_connect();
		raw_peer_send(fd, TRUNK_HELLO, 0, &h, sizeof(h));
		row(280 + i, "the connection is open", a.set->listeners[0].nunknown == 1);
		raw_peer_send(fd, TRUNK_PACKET, 0, m, sizeof(m));
		row(282 + i, "too long a message ends it", !a.set->listeners[0].nunknown && !a.set->trunks[0].conn);
		close(fd);
		side_stop(&a);
		loop_destroy(test_loop);
		test_loop = NULL;
	}
	unlink(path);
}

int main(void)
{
	u32 live = wire_packet_live();
	char key[64];

	log_level = LOG_ERROR;
	rlimit_raise_files(); /* two for each of TRUNK_UNKNOWN_LOCAL connections */
	test_key();
	test_unproved();
	test_sources();
	test_peer();
	test_hello();
	test_listener_hello();
	test_listener_closes();
	test_connect_expires();
	test_listener_silent(342, "a silent listener");
	if (trunk_tls_in_build()) {
		tls_begin(key, sizeof(key));
		test_listener_silent(343, "a silent listener, with TLS");
		tls_end(key);
	}
	test_connects_again();
	test_violations();
	test_too_long();
	row(240, "no packet is left", wire_packet_live() == live);
	return rows_end();
}

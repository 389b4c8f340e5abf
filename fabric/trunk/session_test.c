// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of sessions: trunks that share a connection, without TLS and with it. */
#include "fabric/trunk/pair_fixture.h"

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
	    link_is_up(0) && link_is_up(1) && connectors(b.set) == 1 && a.set->trunks[0].conn &&
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

#define MANY_MAX 7000

/*
 * Options of a trunk at port 9, and lines of @n more, each with the same port of the node @peer, or (NULL) any peer.
 * The last one has the options @last, the others @all.
 */
static const char *with_many(char *more, const char *leaf, const char *how, const char *peer, u32 n, const char *all,
			     const char *last)
{
	char of_peer[40] = "";
	size_t len = 0;
	u32 i;

	for (i = 0; i <= n; i++) {
		if (peer)
			snprintf(of_peer, sizeof(of_peer), "peer %s:%u", peer, 9 + i);
		if (i)
			len += (size_t)snprintf(more + len, MANY_MAX - len, "\ntrunk %s:%u %s /tmp/muslin-trunk-%d ",
						leaf, 9 + i, how, getpid());
		len += (size_t)snprintf(more + len, MANY_MAX - len, "%s %s", of_peer, i < n ? all : last);
	}
	return more;
}

/* More trunks than a listener has requests of a connection, and more of them with another key. */
static void test_shared_many(void)
{
	const u32 n = 2 * TRUNK_REQUESTS + 4;
	char one[64], other[64], with_one[80], with_other[80];
	static char more_a[MANY_MAX], more_b[MANY_MAX];
	u32 i, wrong;

	key_file(one, sizeof(one), "a key that all know\n");
	key_file(other, sizeof(other), "a key that nobody knows\n");
	snprintf(with_one, sizeof(with_one), "key %s", one);
	snprintf(with_other, sizeof(with_other), "key %s", other);
	for (wrong = 0; wrong < 2; wrong++) {
		trunk_start(with_many(more_a, "leaf1", "listen", "0002c90406400010", n, with_one, with_one),
			    with_many(more_b, "leaf101", "to", "0002c90400000010", n, wrong ? with_other : with_one,
				      with_one));
		for (i = 0; i <= n && (wrong && i < n ? !link_is_up(i) : link_is_up(i)); i++)
			;
		row(246 + (int)wrong, "those with the key come up, on one connection",
		    i == n + 1 && connectors(b.set) == 1 && a.set->trunks[n].conn &&
			    a.set->trunks[n].conn->nopen == (wrong ? 1 : n + 1) &&
			    !trunk_set_counter(a.set, TRUNK_CTR_REFUSED_BUSY) &&
			    trunk_counter(a.set, n, TRUNK_CTR_CONNECTED) == 1);
		trunk_stop();
	}
	unlink(one);
	unlink(other);
}

static void raw_peer_send_link(int fd, u8 type, u32 number, const void *body, u32 len)
{
	struct trunk_head h = { .type = type, .len = cpu_to_be16((u16)len), .link = cpu_to_be32(number) };
	u8 m[sizeof(h) + TRUNK_MSG_MAX];

	memcpy(m, &h, sizeof(h));
	memcpy(m + sizeof(h), body, len);
	if (send(fd, m, sizeof(h) + len, MSG_NOSIGNAL) > 0)
		test_run(0);
}

/* A raw peer asks for all trunks of a listener, and for more. */
static void test_requests(void)
{
	const u32 n = TRUNK_REQUESTS + 4;
	struct trunk_hello h = raw_peer_hello();
	static char more[MANY_MAX];
	char key[64], options[80];
	struct trunk_conn *c;
	u32 i;
	int fd;

	key_file(key, sizeof(key), "a key that all know\n");
	snprintf(options, sizeof(options), "key %s", key);
	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen",
		   with_many(more, "leaf1", "listen", NULL, n, options, options));
	fd = raw_peer_connect();
	raw_peer_send_link(fd, TRUNK_HELLO, TRUNK_LINKS - 1, &h, sizeof(h));
	c = list_first(&a.set->listeners[0].unknown, struct trunk_conn, link);
	row(290, "memory for one link number, however large",
	    a.set->listeners[0].nunknown == 1 && c->nlinks == 1 && c->links_max == 1);
	for (i = 0; i < n; i++)
		raw_peer_send_link(fd, TRUNK_HELLO, i, &h, sizeof(h));
	row(291, "a limited number of requests",
	    c->nlinks == TRUNK_REQUESTS && side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == n + 1 - TRUNK_REQUESTS);
	for (i = 0; i <= n; i++)
		row(292, "one for each trunk",
		    a.set->trunks[i].requests.next->next == &a.set->trunks[i].requests && !a.set->trunks[i].conn);
	close(fd);
	test_run(0);
	for (i = 0; i <= n; i++)
		row(293, "none is left", list_empty(&a.set->trunks[i].requests));
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
	unlink(key);

	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	fd = raw_peer_connect();
	raw_peer_send_link(fd, TRUNK_HELLO, TRUNK_LINKS - 1, &h, sizeof(h));
	row(294, "the same without a key", a.set->trunks[0].conn && a.set->trunks[0].conn->links_max == 1);
	close(fd);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* Link numbers of a raw peer that has trained link 0. */
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
	struct trunk_hello h = raw_peer_hello();
	u32 i, k;
	int fd;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
		fd = raw_peer_train();
		raw_peer_send_link(fd, rows[i].type, rows[i].number, &h, rows[i].len);
		row(rows[i].n, rows[i].what,
		    side_counter(&a, rows[i].counts) == 1 &&
			    side_state(&a) == (rows[i].ends ? PORT_STATE_DOWN : PORT_STATE_INIT));
		close(fd);
		side_stop(&a);
		loop_destroy(test_loop);
		test_loop = NULL;
	}
	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	fd = raw_peer_connect();
	raw_peer_send_link(fd, TRUNK_HELLO, TRUNK_LINKS, &h, sizeof(h));
	row(265, "a number out of range", side_counter(&a, TRUNK_CTR_REFUSED_HELLO) == 1 && !a.set->trunks[0].conn);
	close(fd);
	fd = raw_peer_train();
	for (k = 0; k < 2 * TRUNK_TAIL_MAX / (sizeof(struct trunk_head) + sizeof(struct trunk_refuse)); k++)
		raw_peer_send_link(fd, TRUNK_HELLO, k + 1, &h, sizeof(h));
	row(266, "many refused hellos",
	    side_counter(&a, TRUNK_CTR_REFUSED_BUSY) == k && side_state(&a) == PORT_STATE_INIT);
	h.peer_port = 3;
	close(fd);
	fd = raw_peer_connect();
	raw_peer_send_link(fd, TRUNK_HELLO, 0, &h, sizeof(h));
	test_run(TRUNK_REFUSED_TIME + NSEC_PER_SEC / 2);
	h.peer_port = 0;
	raw_peer_send_link(fd, TRUNK_HELLO, 0, &h, sizeof(h));
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
	    link_is_up(0) && link_is_up(1) && connectors(b.set) == 1 && a.set->trunks[0].conn &&
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
	    link_is_up(0) && link_is_up(1) && connectors(b.set) == 2 && a.set->trunks[0].conn->tls &&
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

static void test_within_tls(void)
{
	char path[64];

	tls_begin(path, sizeof(path));
	test_shared_tls(path);
	tls_end(path);
}

int main(void)
{
	u32 live = wire_packet_live();

	log_level = LOG_ERROR;
	test_shared();
	test_shared_refused();
	test_shared_many();
	test_link_numbers();
	test_requests();
	if (trunk_tls_in_build())
		test_within_tls();
	row(240, "no packet is left", wire_packet_live() == live);
	return rows_end();
}

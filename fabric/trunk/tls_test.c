// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* TLS of trunks: keys that differ, ends without TLS, and hostile peers before and after the handshake. */
#include "fabric/trunk/trunk_fixture.h"

static char key[64], other[64];
static char address[32]; /* of loopback, and of this process alone */

/* Without TLS in the build, or with a key file that others may access, no fabric starts. */
static bool starts(const char *options, const char *part)
{
	char text[300], err[300] = "";
	struct side s;
	bool ok;

	snprintf(text, sizeof(text), "leafs 1 hosts 2\ntrunk leaf1:9 listen %s %s\n", address, options);
	test_loop = loop_create_virtual();
	s.topo = fabric_topology_parse(text, strlen(text), "test", err, sizeof(err));
	s.f = fabric_create(test_loop, s.topo, 1);
	s.set = trunk_set_create(test_loop, s.f, s.topo, err, sizeof(err));
	ok = s.set != NULL;
	if (!ok && !strstr(err, part))
		printf("%s\n", err);
	row_of(options, part, ok || strstr(err, part));
	side_stop(&s);
	loop_destroy(test_loop);
	test_loop = NULL;
	return ok;
}

static void test_files(void)
{
	char options[260];

	snprintf(options, sizeof(options), "key %s tls on", key);
	row(1, "TLS where the build has it", starts(options, "made without GnuTLS") == trunk_tls_in_build());
	snprintf(options, sizeof(options), "key %s", key);
	row(2, "none on loopback by default", starts(options, "?"));
	chmod(key, 0640);
	row(3, "a key that the group may read", !starts(options, "has mode 0640"));
	chmod(key, 0602);
	row(4, "a key that all may write", !starts(options, "has mode 0602"));
	chmod(key, 0400);
	row(5, "a key that is the user's", starts(options, "?"));
	chmod(key, 0600);
	snprintf(options, sizeof(options), "key %s tls on\ntrunk leaf1:10 listen %s key %s", key, address, key);
	row(6, "both at one address", !starts(options, trunk_tls_in_build() ? "use TLS, or none" : "GnuTLS"));
}

#ifdef MUSLIN_GNUTLS
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

static struct side a, b;

static bool at(u8 state)
{
	return side_state(&a) == state && side_state(&b) == state;
}

static void both_start(bool tls_a, const char *key_a, bool tls_b, const char *key_b)
{
	char options[80];

	snprintf(options, sizeof(options), "key %s", key_a);
	test_tls = tls_a;
	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", options);
	snprintf(options, sizeof(options), "key %s", key_b);
	test_tls = tls_b;
	side_start(&b, "leafs 1 hosts 2 first 101", "leaf101", "to", options);
	test_run(NSEC_PER_SEC);
}

static void both_stop(void)
{
	side_stop(&b);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

static u64 refused(struct side *s)
{
	u64 sum = 0;
	u32 i;

	for (i = TRUNK_CTR_REFUSED_HELLO; i <= TRUNK_CTR_REFUSED_BUSY; i++)
		sum += side_counter(s, (enum trunk_counter)i);
	return sum;
}

static void test_keys(void)
{
	both_start(true, key, true, key);
	row(10, "the same key", at(PORT_STATE_INIT) && !refused(&a) && !refused(&b));
	row(11, "the HMAC of the hello follows within TLS", trunk_tls_in_build() && a.set->trunks[0].conn->tls);
	trunk_set_destroy(b.set);
	test_run(0);
	row(12, "a peer that ends sends close_notify",
	    side_state(&a) == PORT_STATE_DOWN && !side_counter(&a, TRUNK_CTR_TRUNCATED) &&
		    side_counter(&a, TRUNK_CTR_LOST) == 1);
	side_connect(&b);
	test_run(NSEC_PER_SEC);
	row(13, "it comes back", at(PORT_STATE_INIT));
	both_stop();

	both_start(true, key, true, other);
	row(20, "another key: refused, and counted",
	    at(PORT_STATE_DOWN) && side_counter(&a, TRUNK_CTR_REFUSED_KEY) == 1 && refused(&a) == 1 &&
		    side_counter(&b, TRUNK_CTR_REFUSED_BY_PEER) == 1);
	test_run(10 * NSEC_PER_SEC);
	row(21, "it is tried again, but not at once",
	    at(PORT_STATE_DOWN) && side_counter(&a, TRUNK_CTR_REFUSED_KEY) == 3);
	both_stop();

	both_start(true, key, false, key);
	row(22, "the connecting end has no TLS",
	    at(PORT_STATE_DOWN) && side_counter(&a, TRUNK_CTR_REFUSED_TLS) == 1 && refused(&a) == 1 &&
		    side_counter(&b, TRUNK_CTR_REFUSED_BY_PEER) == 1);
	both_stop();

	both_start(false, key, true, key);
	row(23, "the listening end has none",
	    at(PORT_STATE_DOWN) && side_counter(&a, TRUNK_CTR_REFUSED_TLS) == 1 && refused(&a) == 1 &&
		    side_counter(&b, TRUNK_CTR_REFUSED_TLS) == 1);
	both_stop();
}

/* A peer's own TLS, with @psk as the key of @identity. */
struct raw_peer {
	gnutls_session_t session;
	gnutls_psk_client_credentials_t psk;
	int fd;
};

#define TLS13 "NONE:+VERS-TLS1.3:+AEAD:+AES-128-GCM:+GROUP-X25519:+SIGN-ALL:+COMP-NULL:"

static struct raw_peer raw_peer_create(const char *priority, const char *identity, const u8 psk[TRUNK_TLS_PSK])
{
	struct raw_peer s = { .fd = raw_peer_connect() };
	gnutls_datum_t raw = { (u8 *)psk, TRUNK_TLS_PSK };

	gnutls_init(&s.session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
	row(90, priority, !gnutls_priority_set_direct(s.session, priority, NULL));
	gnutls_psk_allocate_client_credentials(&s.psk);
	gnutls_psk_set_client_credentials(s.psk, identity, &raw, GNUTLS_PSK_KEY_RAW);
	gnutls_credentials_set(s.session, GNUTLS_CRD_PSK, s.psk);
	gnutls_transport_set_int(s.session, s.fd);
	return s;
}

static void raw_peer_destroy(struct raw_peer *s)
{
	gnutls_deinit(s->session);
	gnutls_psk_free_client_credentials(s->psk);
	if (s->fd >= 0)
		close(s->fd);
	test_run(0);
}

static bool raw_peer_handshake(struct raw_peer *s)
{
	int error = GNUTLS_E_AGAIN, i;

	for (i = 0; i < 20 && error && !gnutls_error_is_fatal(error); i++) {
		error = gnutls_handshake(s->session);
		test_run(0);
	}
	return !error;
}

static void raw_peer_write(struct raw_peer *s, u8 type, const void *body, u32 len)
{
	struct trunk_head h = { .type = type, .len = cpu_to_be16((u16)len) };
	u8 m[sizeof(h) + 512];

	memcpy(m, &h, sizeof(h));
	memcpy(m + sizeof(h), body, len);
	gnutls_record_send(s->session, m, sizeof(h) + len);
	test_run(0);
}

/* The listener's trunk has the key; it is that of the fabric's own trunk. */
static struct raw_peer raw_peer_right(const char *priority)
{
	const struct trunk_tls_key *k = &a.set->trunks[0].tls_key;

	return raw_peer_create(priority, k->identity, k->psk);
}

static void test_handshakes(void)
{
	static const struct {
		int n;
		const char *what, *priority;
		bool right_identity, right_psk, accepted;
		enum trunk_counter counts;
	} rows[] = {
		{ 30, "PSK with ECDHE", TLS13 "+ECDHE-PSK", true, true, true, TRUNK_CTR_REFUSED_TLS },
		{ 31, "the right identity alone", TLS13 "+ECDHE-PSK", true, false, false, TRUNK_CTR_REFUSED_TLS },
		{ 32, "the right key of another identity", TLS13 "+ECDHE-PSK", false, true, false,
		  TRUNK_CTR_REFUSED_KEY },
		{ 33, "PSK without ECDHE", TLS13 "+PSK", true, true, false, TRUNK_CTR_REFUSED_TLS },
		{ 34, "no PSK", TLS13 "+ECDHE-ECDSA:+ECDHE-RSA", true, true, false, TRUNK_CTR_REFUSED_TLS },
		{ 35, "TLS 1.2", "NORMAL:-VERS-ALL:+VERS-TLS1.2:+ECDHE-PSK", true, true, false, TRUNK_CTR_REFUSED_TLS },
		{ 36, "TLS 1.3 or 1.2", "NORMAL:-KX-ALL:+ECDHE-PSK", true, true, true, TRUNK_CTR_REFUSED_TLS },
	};
	u8 psk[TRUNK_TLS_PSK] = { 1, 2, 3 };
	u32 i;

	test_tls = true;
	snprintf(test_options, sizeof(test_options), "key %s", key);
	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct trunk_tls_key *k = &a.set->trunks[0].tls_key;
		u64 before = refused(&a), counted = side_counter(&a, rows[i].counts);
		struct raw_peer s = raw_peer_create(rows[i].priority, rows[i].right_identity ? k->identity : "nobody",
						    rows[i].right_psk ? k->psk : psk);
		bool done = raw_peer_handshake(&s);

		row(rows[i].n, rows[i].what,
		    rows[i].accepted ? done && refused(&a) == before
				     : refused(&a) == before + 1 && side_counter(&a, rows[i].counts) == counted + 1);
		row(rows[i].n + 10, "TLS 1.3, whatever is offered",
		    !done || gnutls_protocol_get_version(s.session) == GNUTLS_TLS1_3);
		raw_peer_destroy(&s);
	}
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* A server that does not know the key: the trunk that connects there sends it nothing. */
static void test_server(void)
{
	static const struct {
		int n;
		const char *what, *bytes;
		size_t len;
		enum trunk_counter counts;
	} rows[] = {
		{ 50, "garbage", "HTTP/1.1 400 Bad Request\r\n\r\n", 28, TRUNK_CTR_REFUSED_TLS },
		{ 51, "an alert", "\25\3\3\0\2\2\50", 7, TRUNK_CTR_REFUSED_BY_PEER },
		{ 52, "a record of an unknown type", "\31\3\3\0\2\2\50", 7, TRUNK_CTR_REFUSED_TLS },
		{ 53, "data before the handshake", "\27\3\3\0\2\2\50", 7, TRUNK_CTR_REFUSED_TLS },
		{ 54, "an alert that there is not", "\25\3\3\0\2\2\310", 7, TRUNK_CTR_REFUSED_BY_PEER },
	};
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	u8 got[2000];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fd;
		ssize_t n;

		test_tls = true;
		side_start(&b, "leafs 1 hosts 2 first 101", "leaf101", "to", "");
		snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", test_path);
		if (bind(l, (struct sockaddr *)&sa, sizeof(sa)) || listen(l, 5))
			perror(test_path);
		test_run(NSEC_PER_SEC / 10);
		fd = accept(l, NULL, NULL);
		n = recv(fd, got, sizeof(got), MSG_DONTWAIT);
		row(rows[i].n, rows[i].what,
		    n > 100 && got[0] == TRUNK_TLS_CLIENT && !memmem(got, (size_t)n, "muslinTK", 8));
		send(fd, rows[i].bytes, rows[i].len, MSG_NOSIGNAL);
		test_run(0);
		row(rows[i].n + 10, "it is counted", side_counter(&b, rows[i].counts) == 1);
		while ((n = recv(fd, got, sizeof(got), MSG_DONTWAIT)) > 0)
			row(rows[i].n + 20, "only an alert, or a refusal, follows", n < 20);
		row(rows[i].n + 30, "and the end", !n);
		close(fd);
		close(l);
		unlink(test_path);
		side_stop(&b);
		loop_destroy(test_loop);
		test_loop = NULL;
	}
}

static gnutls_certificate_credentials_t certificate(void)
{
	gnutls_certificate_credentials_t c;
	time_t now = time(NULL);
	gnutls_x509_privkey_t k;
	gnutls_x509_crt_t crt;

	gnutls_x509_privkey_init(&k);
	gnutls_x509_privkey_generate(k, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	gnutls_x509_crt_init(&crt);
	gnutls_x509_crt_set_version(crt, 3);
	gnutls_x509_crt_set_serial(crt, "1", 1);
	gnutls_x509_crt_set_activation_time(crt, now - 60);
	gnutls_x509_crt_set_expiration_time(crt, now + 3600);
	gnutls_x509_crt_set_key(crt, k);
	row(160, "a certificate", !gnutls_x509_crt_sign2(crt, crt, k, GNUTLS_DIG_SHA256, 0));
	gnutls_certificate_allocate_credentials(&c);
	row(161, "its credentials", !gnutls_certificate_set_x509_key(c, &crt, 1, k));
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(k);
	return c;
}

static int psk_of_its_own(gnutls_session_t s, const char *identity, gnutls_datum_t *psk)
{
	psk->data = gnutls_calloc(1, TRUNK_TLS_PSK);
	psk->size = TRUNK_TLS_PSK;
	return 0;
}

/* A server with a certificate instead of the key, or with another key of the same identity, gets no hello. */
static void test_impostor(void)
{
	static const char *const priority[] = { "NORMAL:-VERS-ALL:+VERS-TLS1.3",
						"NORMAL:+ECDHE-PSK:-VERS-ALL:+VERS-TLS1.3",
						"NORMAL:-VERS-ALL:+VERS-TLS1.2" };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	gnutls_certificate_credentials_t cert = certificate();
	gnutls_psk_server_credentials_t psk;
	u32 i, k;

	gnutls_psk_allocate_server_credentials(&psk);
	gnutls_psk_set_server_credentials_function(psk, psk_of_its_own);
	for (i = 0; i < ARRAY_SIZE(priority); i++) {
		int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fd;
		int done = GNUTLS_E_AGAIN;
		gnutls_session_t s;
		char got[200];

		test_tls = true;
		side_start(&b, "leafs 1 hosts 2 first 101", "leaf101", "to", "");
		snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", test_path);
		if (bind(l, (struct sockaddr *)&sa, sizeof(sa)) || listen(l, 5))
			perror(test_path);
		test_run(NSEC_PER_SEC / 10);
		fd = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		gnutls_init(&s, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
		row(162, priority[i], !gnutls_priority_set_direct(s, priority[i], NULL));
		gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, cert);
		if (i == 1)
			gnutls_credentials_set(s, GNUTLS_CRD_PSK, psk);
		gnutls_transport_set_int(s, fd);
		for (k = 0; k < 20 && done && !gnutls_error_is_fatal(done); k++) {
			done = gnutls_handshake(s);
			test_run(0);
		}
		gnutls_alert_send_appropriate(s, done);
		test_run(0);
		row(170 + (int)i, "no handshake with it, and no data",
		    done && gnutls_record_recv(s, got, sizeof(got)) < 0 &&
			    side_counter(&b, TRUNK_CTR_REFUSED_TLS) + side_counter(&b, TRUNK_CTR_REFUSED_BY_PEER) == 1);
		gnutls_deinit(s);
		close(fd);
		close(l);
		unlink(test_path);
		side_stop(&b);
		loop_destroy(test_loop);
		test_loop = NULL;
	}
	gnutls_certificate_free_credentials(cert);
	gnutls_psk_free_server_credentials(psk);
}

/* Bytes of a peer instead of a handshake. */
static void test_hostile(void)
{
	static u8 many[TRUNK_TLS_HANDSHAKE + 1000] = { TRUNK_TLS_CLIENT, 3, 1, 0x40, 0 };
	static const u8 stall[] = { TRUNK_TLS_CLIENT, 3, 1, 2, 0, 1, 0, 1 };
	struct trunk_conn *c;
	struct raw_peer s;
	int fd, idle;

	test_tls = true;
	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	close(raw_peer_connect());
	test_run(0);
	row(100, "one that only connects is not counted", !refused(&a));
	idle = raw_peer_connect();
	fd = raw_peer_connect();
	send(fd, stall, sizeof(stall), MSG_NOSIGNAL);
	test_run(TRUNK_HELLO_TIME - NSEC_PER_SEC);
	row(101, "a handshake may take its time", !refused(&a));
	test_run(2 * NSEC_PER_SEC);
	row(102, "but not more", side_counter(&a, TRUNK_CTR_REFUSED_TLS) == 2 && refused(&a) == 2);
	close(fd);
	close(idle);
	fd = raw_peer_connect();
	send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
	test_run(0);
	row(103, "no TLS", side_counter(&a, TRUNK_CTR_REFUSED_TLS) == 3 && refused(&a) == 3);
	close(fd);
	many[5] = 1; /* ClientHello, of 16380 bytes, which do not come */
	many[7] = 0x3f;
	many[8] = 0xfc;
	fd = raw_peer_connect();
	send(fd, many, sizeof(many), MSG_NOSIGNAL);
	test_run(0);
	row(104, "too many bytes", side_counter(&a, TRUNK_CTR_REFUSED_TLS) == 4 && refused(&a) == 4);
	close(fd);
	s = raw_peer_right(TLS13 "+ECDHE-PSK");
	gnutls_handshake(s.session);
	shutdown(s.fd, SHUT_RDWR);
	test_run(0);
	row(108, "one that closed before it was read is not counted: the listener was too slow", refused(&a) == 4);
	raw_peer_destroy(&s);
	s = raw_peer_right(TLS13 "+ECDHE-PSK");
	gnutls_handshake(s.session);
	test_run(0);
	shutdown(s.fd, SHUT_RDWR);
	test_run(0);
	row(105, "one that closes within the handshake", side_counter(&a, TRUNK_CTR_REFUSED_TLS) == 5);
	raw_peer_destroy(&s);
	s = raw_peer_right(TLS13 "+ECDHE-PSK");
	gnutls_handshake(s.session);
	test_run(0);
	c = list_first(&a.set->listeners[0].unknown, struct trunk_conn, link);
	test_run_late(&c->timer);
	row(109, "a listener that was stopped meanwhile waits for the rest",
	    raw_peer_handshake(&s) && side_counter(&a, TRUNK_CTR_REFUSED_TLS) == 5);
	raw_peer_destroy(&s);
	test_run(0);
	s = raw_peer_right(TLS13 "+ECDHE-PSK");
	row(106, "the right one is let in after them", raw_peer_handshake(&s));
	test_run(TRUNK_HELLO_TIME + NSEC_PER_SEC);
	row(107, "it has to say hello in time", side_counter(&a, TRUNK_CTR_REFUSED_HELLO) == 1 && refused(&a) == 6);
	raw_peer_destroy(&s);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}

/* After the handshake and the hello of a trunk, whose HMAC is wrong, or whose listener has no other. */
static struct raw_peer raw_peer_hellos(void)
{
	struct raw_peer s = raw_peer_right(TLS13 "+ECDHE-PSK");
	struct trunk_hello h = raw_peer_hello();

	row(110, "handshake", raw_peer_handshake(&s));
	raw_peer_write(&s, TRUNK_HELLO, &h, sizeof(h));
	return s;
}

static void test_established(void)
{
	struct trunk_link l = { .epoch = cpu_to_be32(1),
				.ack = cpu_to_be32(1),
				.flags = TRUNK_LINK_TRAINS,
				.width = LINK_WIDTH_4X,
				.speed = LINK_SPEED_QDR,
				.speed_ext = LINK_SPEED_EXT_DISABLE };
	u8 mac[TRUNK_MAC_SIZE] = { 0 }, got[1000];
	struct raw_peer s;
	int i, n, keys = 0;

	test_tls = true;
	side_start(&a, "leafs 1 hosts 2", "leaf1", "listen", "");
	s = raw_peer_hellos();
	raw_peer_write(&s, TRUNK_AUTH, mac, sizeof(mac));
	row(111, "the key of TLS does not replace the HMAC",
	    side_counter(&a, TRUNK_CTR_REFUSED_KEY) == 1 && refused(&a) == 1);
	test_run(2 * TRUNK_REFUSED_TIME); /* until the listener closes the connection */
	raw_peer_destroy(&s);
	free(a.set->trunks[0].key);
	a.set->trunks[0].key = NULL; /* from now on it does */

	s = raw_peer_hellos();
	raw_peer_write(&s, TRUNK_LINK, &l, sizeof(l));
	row(112, "it trains", side_state(&a) == PORT_STATE_INIT);
	for (i = 0; i < 3; i++) { /* GnuTLS accepts 8 in a second */
		keys += !gnutls_session_key_update(s.session, GNUTLS_KU_PEER);
		raw_peer_write(&s, TRUNK_KEEPALIVE, "", 0);
	}
	fabric_link_unplug(side_port(&a));
	test_run(0);
	fabric_link_plug(side_port(&a));
	test_run(0);
	for (i = n = 0; i < 10; i++)
		n += max((int)gnutls_record_recv(s.session, got, sizeof(got)), 0);
	row(113, "new keys, both ways", keys == 3 && n > 200 && a.set->trunks[0].conn);
	close(s.fd);
	s.fd = -1;
	test_run(0);
	row(114, "without close_notify: counted",
	    side_state(&a) == PORT_STATE_DOWN && side_counter(&a, TRUNK_CTR_TRUNCATED) == 1 &&
		    side_counter(&a, TRUNK_CTR_LOST) == 1);
	raw_peer_destroy(&s);

	s = raw_peer_hellos();
	raw_peer_write(&s, TRUNK_LINK, &l, sizeof(l));
	gnutls_bye(s.session, GNUTLS_SHUT_WR);
	test_run(0);
	row(115, "with it: only lost",
	    !a.set->trunks[0].conn && side_counter(&a, TRUNK_CTR_TRUNCATED) == 1 &&
		    side_counter(&a, TRUNK_CTR_LOST) == 2);
	raw_peer_destroy(&s);

	s = raw_peer_hellos();
	raw_peer_write(&s, TRUNK_LINK, &l, sizeof(l));
	send(s.fd, "\27\3\3\0\40abcdefghijklmnopqrstuvwxyz012345", 37, MSG_NOSIGNAL);
	test_run(0);
	row(116, "a record that was changed on its way",
	    !a.set->trunks[0].conn && side_counter(&a, TRUNK_CTR_VIOLATIONS) == 1 &&
		    side_counter(&a, TRUNK_CTR_LOST) == 3);
	raw_peer_destroy(&s);

	s = raw_peer_hellos();
	raw_peer_send(s.fd, TRUNK_KEEPALIVE, 0, "", 0);
	raw_peer_send(s.fd, TRUNK_KEEPALIVE, 0, "", 0);
	row(117, "a message without TLS after it",
	    !a.set->trunks[0].conn && side_counter(&a, TRUNK_CTR_VIOLATIONS) == 2);
	raw_peer_destroy(&s);

	s = raw_peer_hellos();
	send(s.fd, "\27\3\3\0\40abc", 8, MSG_NOSIGNAL);
	test_run(TRUNK_SILENCE + TRUNK_PING);
	row(118, "a record without its end", !a.set->trunks[0].conn && side_counter(&a, TRUNK_CTR_TIMEOUTS) == 1);
	raw_peer_destroy(&s);

	s = raw_peer_hellos();
	raw_peer_write(&s, TRUNK_LINK, &l, sizeof(l));
	row(119, "the next one is welcome", side_state(&a) == PORT_STATE_INIT);
	raw_peer_destroy(&s);
	side_stop(&a);
	loop_destroy(test_loop);
	test_loop = NULL;
}
#endif

int main(void)
{
	u32 live = wire_packet_live();

	log_level = LOG_WARN; /* the lines of refused peers are formatted, too */
	snprintf(address, sizeof(address), "127.9.%u.%u:4000", (u32)getpid() / 254 % 254 + 1, (u32)getpid() % 254 + 1);
	key_file(key, sizeof(key), "a key of both sides\n");
	key_file(other, sizeof(other), "a key that one side has\n");
	test_files();
#ifdef MUSLIN_GNUTLS
	test_keys();
	test_handshakes();
	test_server();
	test_impostor();
	test_hostile();
	test_established();
#endif
	unlink(key);
	unlink(other);
	row(240, "no packet is left", wire_packet_live() == live);
	return rows_end();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TLS 1.3 of connections on TCP, by GnuTLS: external PSK with ECDHE (RFC 8446 4.2.9, 4.2.11), without certificates,
 * tickets and early data.
 *
 * GnuTLS reads from and writes to buffers of this file, never the socket: one read of the socket is decrypted
 * completely, up to the incomplete record at its end, which GnuTLS keeps; so nothing waits in a buffer for which the
 * loop has no event. What a call encrypts is sent at once; the connection keeps what the socket does not accept, and
 * encrypts no more until that is sent.
 *
 * The listener selects the key by the PSK identity. The hellos of all trunks follow within TLS, with their HMACs: these
 * prove the key of the trunk, since the trunks of one listener may have several.
 */
#include <errno.h>
#include <nettle/hmac.h>
#include <nettle/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "emu/lib/log.h"
#include "fabric/trunk/trunk_internal.h"

static void tls_hmac(const u8 *key, size_t len, const char *label, u8 mac[TRUNK_MAC_SIZE])
{
	struct hmac_sha256_ctx h;

	hmac_sha256_set_key(&h, len, key);
	hmac_sha256_update(&h, strlen(label), (const u8 *)label);
#if NETTLE_VERSION_MAJOR >= 4
	hmac_sha256_digest(&h, mac);
#else
	hmac_sha256_digest(&h, TRUNK_MAC_SIZE, mac);
#endif
}

void trunk_tls_derive(struct trunk_tls_key *k, const u8 *key, size_t len)
{
	u8 mac[TRUNK_MAC_SIZE];
	u32 i;

	static_assert(sizeof(k->psk) == TRUNK_MAC_SIZE, "a PSK is one output of HMAC-SHA-256");
	tls_hmac(key, len, "muslin trunk: PSK of TLS 1.3", k->psk);
	tls_hmac(key, len, "muslin trunk: PSK identity of TLS 1.3", mac);
	for (i = 0; i < sizeof(k->identity) / 2; i++)
		snprintf(k->identity + 2 * (size_t)i, 3, "%02x", mac[i]);
}

#ifdef MUSLIN_GNUTLS
#include <gnutls/gnutls.h>

/* External PSKs have the hash SHA-256 (4.2.11), and so have their cipher suites. */
#define TLS_PRIORITY                                                                                          \
	"NONE:+VERS-TLS1.3:+AEAD:+AES-128-GCM:+CHACHA20-POLY1305:+ECDHE-PSK:+GROUP-X25519:+GROUP-SECP256R1:+" \
	"SIGN-ALL:+COMP-NULL"
#define TLS_RECORD      16384                  /* of plaintext, at most */
#define TLS_RECORD_WIRE (5 + TLS_RECORD + 256) /* 5.2 */
#define TLS_OUTPUT      (128u << 10)           /* records of one batch */
#define TLS_STUCK       16                     /* calls that read nothing and do not fail, while there is input */

struct trunk_tls {
	gnutls_session_t session;
	gnutls_psk_client_credentials_t client;
	bool established, closed, failed;
	bool unknown_key; /* the peer's PSK identity */
	bool is_record;   /* the first byte is one of TLS */
	u32 received;     /* until the handshake is complete */
	u8 *rest;         /* encrypted bytes that the socket did not take */
	u32 rest_len;
};

/* Of the call that is in progress */
static struct {
	const u8 *data;
	u32 len;
	bool end;
} input;
static struct {
	u8 data[TLS_OUTPUT];
	u32 len;
} output;

static gnutls_priority_t priority;
static gnutls_psk_server_credentials_t server;

bool trunk_tls_in_build(void)
{
	return true;
}

bool trunk_tls_handshakes(const struct trunk_conn *c)
{
	return c->tls && !c->tls->established;
}

static ssize_t tls_pull(gnutls_transport_ptr_t ptr, void *to, size_t size)
{
	struct trunk_conn *c = ptr;
	size_t n = min(size, (size_t)input.len);

	if (!n && !input.end) {
		gnutls_transport_set_errno(c->tls->session, EAGAIN);
		return -1;
	}
	memcpy(to, input.data, n);
	input.data += n;
	input.len -= (u32)n;
	return (ssize_t)n;
}

static ssize_t tls_push(gnutls_transport_ptr_t ptr, const void *data, size_t len)
{
	struct trunk_conn *c = ptr;

	if (len > sizeof(output.data) - output.len) {
		gnutls_transport_set_errno(c->tls->session, EIO);
		return -1;
	}
	memcpy(output.data + output.len, data, len);
	output.len += (u32)len;
	return (ssize_t)len;
}

/* Sends what the last calls have encrypted, and keeps what the socket does not take. 0 or -errno. */
static int tls_output(struct trunk_conn *c)
{
	struct trunk_tls *t = c->tls;
	u32 len = output.len, sent = 0;
	ssize_t n;
	u8 *more;

	output.len = 0;
	if (len && !t->rest_len) {
		n = send(c->w.fd, output.data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		sent = n > 0 ? (u32)n : 0;
	}
	if (sent == len)
		return 0;
	if (t->rest_len + len - sent > 2 * TLS_OUTPUT) /* answers to a peer that does not read */
		return -ENOBUFS;
	more = realloc(t->rest, t->rest_len + len - sent);
	if (!more)
		return -ENOMEM;
	memcpy(more + t->rest_len, output.data + sent, len - sent);
	t->rest = more;
	t->rest_len += len - sent;
	trunk_conn_flush_later(c);
	return 0;
}

static int tls_flush_rest(struct trunk_conn *c)
{
	struct trunk_tls *t = c->tls;
	ssize_t n;

	if (!t->rest_len)
		return 0;
	n = send(c->w.fd, t->rest, t->rest_len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	t->rest_len -= (u32)n;
	memmove(t->rest, t->rest + n, t->rest_len);
	if (t->rest_len)
		return -EAGAIN;
	free(t->rest);
	t->rest = NULL;
	return 0;
}

/* Handshake */

/* A peer without TLS learns why it is refused. */
static void tls_refuse_plainly(struct trunk_conn *c)
{
	struct {
		struct trunk_head head;
		struct trunk_refuse body;
	} m = { { .type = TRUNK_REFUSE, .len = cpu_to_be16(sizeof(m.body)) },
		{ .why = TRUNK_BAD_TLS, .version = cpu_to_be16(TRUNK_VERSION) } };

	send(c->w.fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void tls_refuse(struct trunk_conn *c, int error)
{
	struct trunk_tls *t = c->tls;
	gnutls_alert_description_t got = gnutls_alert_get(t->session);
	const char *alert =
		got == GNUTLS_A_UNKNOWN_PSK_IDENTITY ? "the peer has another key" : gnutls_alert_get_name(got);
	enum trunk_counter ctr = t->unknown_key ? TRUNK_CTR_REFUSED_KEY : TRUNK_CTR_REFUSED_TLS;
	const char *why = t->unknown_key                            ? "another key"
			  : t->received && !t->is_record            ? "the peer does not use TLS"
			  : error == GNUTLS_E_PREMATURE_TERMINATION ? "the peer has closed the connection"
			  : error == GNUTLS_E_HANDSHAKE_TOO_LARGE   ? "too many bytes"
			  : error == GNUTLS_E_NO_CIPHER_SUITES      ? "the peer has not proved the key"
			  : error == GNUTLS_E_FATAL_ALERT_RECEIVED  ? alert ? alert : "an unknown alert"
								    : gnutls_strerror(error);

	if (!c->listener && error == GNUTLS_E_FATAL_ALERT_RECEIVED)
		ctr = TRUNK_CTR_REFUSED_BY_PEER;
	t->failed = true;
	trunk_conn_count(c, ctr);
	log_at(LOG_WARN, "trunk", "%s: the TLS handshake has failed (%s): %s", trunk_conn_name(c),
	       trunk_counter_name(ctr), why);
	if (!c->listener && error != GNUTLS_E_PREMATURE_TERMINATION)
		c->connector->wait = TRUNK_REFUSED_WAIT;
	if (t->received && !t->is_record)
		tls_refuse_plainly(c);
	else if (t->unknown_key)
		gnutls_alert_send(t->session, GNUTLS_AL_FATAL, GNUTLS_A_UNKNOWN_PSK_IDENTITY);
	else if (error != GNUTLS_E_FATAL_ALERT_RECEIVED && error != GNUTLS_E_PREMATURE_TERMINATION)
		gnutls_alert_send_appropriate(t->session, error);
}

/* Both sides have proved that they know the PSK: no other way is offered, and none is accepted. */
static bool tls_is_right(gnutls_session_t s)
{
	return gnutls_protocol_get_version(s) == GNUTLS_TLS1_3 && gnutls_auth_get_type(s) == GNUTLS_CRD_PSK &&
	       gnutls_kx_get(s) == GNUTLS_KX_ECDHE_PSK;
}

/* False: it has failed. */
static bool tls_handshake(struct trunk_conn *c)
{
	struct trunk_tls *t = c->tls;
	int error = gnutls_handshake(t->session);

	if (!error && tls_is_right(t->session)) {
		t->established = true;
		trunk_conn_flush_later(c);
		return true;
	}
	if (error && !gnutls_error_is_fatal(error))
		return true;
	tls_refuse(c, error ? error : GNUTLS_E_NO_CIPHER_SUITES);
	return false;
}

/* The PSK of the trunk whose key has that identity, of those that listen at this address. */
static int tls_find_key(gnutls_session_t session, const char *identity, gnutls_datum_t *psk)
{
	const struct trunk_conn *c = gnutls_session_get_ptr(session);
	const struct trunk_set *s = c->set;
	u32 i;

	for (i = 0; i < s->nby_port; i++) {
		const struct trunk *t = s->by_port[i];

		if (t->listener != c->listener || strcmp(t->tls_key.identity, identity))
			continue;
		psk->data = gnutls_malloc(sizeof(t->tls_key.psk));
		if (!psk->data)
			return -1;
		psk->size = sizeof(t->tls_key.psk);
		memcpy(psk->data, t->tls_key.psk, psk->size);
		return 0;
	}
	c->tls->unknown_key = true;
	return -1;
}

static int tls_globals(void)
{
	if (!priority && gnutls_priority_init(&priority, TLS_PRIORITY, NULL))
		return -ENOTSUP; /* a policy of the system may forbid it */
	if (!server) {
		if (gnutls_psk_allocate_server_credentials(&server))
			return -ENOMEM;
		gnutls_psk_set_server_credentials_function(server, tls_find_key);
	}
	return 0;
}

static int tls_credentials(struct trunk_conn *c)
{
	struct trunk_tls *t = c->tls;
	const struct trunk_tls_key *k;
	gnutls_datum_t psk;

	if (c->listener)
		return gnutls_credentials_set(t->session, GNUTLS_CRD_PSK, server);
	k = &c->connector->tls_key;
	psk = (gnutls_datum_t){ (u8 *)(uintptr_t)k->psk, sizeof(k->psk) };
	if (gnutls_psk_allocate_client_credentials(&t->client) ||
	    gnutls_psk_set_client_credentials(t->client, k->identity, &psk, GNUTLS_PSK_KEY_RAW))
		return -1;
	return gnutls_credentials_set(t->session, GNUTLS_CRD_PSK, t->client);
}

int trunk_tls_start(struct trunk_conn *c)
{
	unsigned flags = GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS | GNUTLS_NO_AUTO_SEND_TICKET;
	struct trunk_tls *t = calloc(1, sizeof(*t));
	int err = t ? tls_globals() : -ENOMEM;

	if (!err && gnutls_init(&t->session, flags | (c->listener ? GNUTLS_SERVER : GNUTLS_CLIENT)))
		err = -ENOMEM;
	if (err) {
		free(t);
		return err;
	}
	c->tls = t;
	gnutls_session_set_ptr(t->session, c);
	gnutls_transport_set_ptr(t->session, c);
	gnutls_transport_set_pull_function(t->session, tls_pull);
	gnutls_transport_set_push_function(t->session, tls_push);
	gnutls_handshake_set_max_packet_length(t->session, TRUNK_TLS_HANDSHAKE);
	if (gnutls_priority_set(t->session, priority) || tls_credentials(c)) {
		t->failed = true;
		trunk_tls_end(c);
		return -ENOMEM;
	}
	return 0;
}

void trunk_tls_end(struct trunk_conn *c)
{
	struct trunk_tls *t = c->tls;

	if (!t)
		return;
	if (t->established && !t->failed && !tls_flush_rest(c)) {
		gnutls_bye(t->session, GNUTLS_SHUT_WR);
		tls_output(c);
	}
	gnutls_deinit(t->session);
	if (t->client)
		gnutls_psk_free_client_credentials(t->client);
	free(t->rest);
	free(t);
	c->tls = NULL;
}

/* Sending */

int trunk_tls_flush(struct trunk_conn *c)
{
	struct trunk_tls *t = c->tls;
	bool ok = !t->failed;
	int err;

	if (ok && !t->established)
		ok = tls_handshake(c);
	err = tls_output(c);
	if (!ok)
		return -EPROTO;
	err = err ? err : tls_flush_rest(c);
	return err ? err : t->established ? 0 : -EINPROGRESS;
}

/* The records of @len bytes; false: the session has failed. */
static bool tls_encrypt(struct trunk_tls *t, const u8 *data, size_t len)
{
	u32 tries = 0;

	while (len) {
		ssize_t n = gnutls_record_send(t->session, data, len);

		if (n < 0 && (gnutls_error_is_fatal((int)n) || ++tries > TLS_STUCK))
			return false;
		data += max(n, (ssize_t)0);
		len -= (size_t)max(n, (ssize_t)0);
	}
	return true;
}

ssize_t trunk_tls_send(struct trunk_conn *c, const struct iovec *iov, size_t n)
{
	static u8 record[TLS_RECORD];
	struct trunk_tls *t = c->tls;
	size_t len = 0, total = 0, i;
	bool ok = true;
	int err;

	for (i = 0; i < n && ok; i++) {
		const u8 *from = iov[i].iov_base;
		size_t left = iov[i].iov_len, part;

		for (; left && ok; left -= part, from += part) {
			part = min(left, sizeof(record) - len);
			memcpy(record + len, from, part);
			len += part;
			total += part;
			if (len == sizeof(record)) {
				ok = tls_encrypt(t, record, len);
				len = 0;
			}
		}
	}
	ok = ok && tls_encrypt(t, record, len);
	err = tls_output(c);
	if (ok && !err)
		return (ssize_t)total;
	t->failed = true;
	errno = ok ? -err : EPROTO;
	return -1;
}

/* Receiving */

/* After the handshake. */
static void tls_disconnect(struct trunk_conn *c, int error)
{
	c->tls->failed = true;
	if (error != GNUTLS_E_PREMATURE_TERMINATION) {
		trunk_message_violation(c, gnutls_strerror(error));
		gnutls_alert_send_appropriate(c->tls->session, error);
		return;
	}
	trunk_conn_count(c, TRUNK_CTR_TRUNCATED);
	log_at(LOG_WARN, "trunk", "%s: the connection has ended without close_notify of TLS", trunk_conn_name(c));
}

/* Decrypts the input. Bytes, or -1: the session has failed. */
static ssize_t tls_decrypt(struct trunk_conn *c, u8 *to, size_t size)
{
	struct trunk_tls *t = c->tls;
	u32 stuck = 0, before;
	size_t got = 0;
	ssize_t n;

	do {
		before = input.len;
		if (!t->established) {
			if (!tls_handshake(c))
				return -1;
			n = t->established ? 1 : 0;
		} else {
			n = gnutls_record_recv(t->session, to + got, size - got);
			if (!n)
				t->closed = true;
			if (n < 0 && gnutls_error_is_fatal((int)n)) {
				tls_disconnect(c, (int)n);
				return -1;
			}
			got += (size_t)max(n, (ssize_t)0);
		}
		/* GNUTLS_E_AGAIN also follows a message of the handshake or a KeyUpdate. */
		stuck = input.len == before ? stuck + 1 : 0;
	} while (!t->closed && (n > 0 || (input.len && stuck < TLS_STUCK)));
	return (ssize_t)got;
}

/*
 * Has the peer closed the connection, since it waited for an answer too long, before this daemon reads its first bytes?
 */
static bool tls_is_abandoned(const struct trunk_conn *c)
{
	u8 next;

	return c->listener && !c->tls->received && !recv(c->w.fd, &next, sizeof(next), MSG_PEEK | MSG_DONTWAIT);
}

ssize_t trunk_tls_recv(struct trunk_conn *c, u8 *to, size_t size)
{
	static u8 raw[TRUNK_READ - TLS_RECORD_WIRE];
	struct trunk_tls *t = c->tls;
	ssize_t n, got;
	int err;

	if (t->closed)
		return 0;
	n = t->failed ? -1 : recv(c->w.fd, raw, sizeof(raw), MSG_DONTWAIT);
	if (t->failed || (n <= 0 && !t->established && !t->received) ||
	    (n < 0 && (errno == EAGAIN || errno == EINTR))) {
		errno = t->failed ? EPROTO : errno;
		return n;
	}
	if (tls_is_abandoned(c))
		return 0;
	input.data = raw;
	input.len = (u32)max(n, (ssize_t)0);
	input.end = n <= 0; /* also when the peer has reset the connection */
	if (!t->received && n > 0)
		t->is_record = raw[0] >= 20 && raw[0] <= 23; /* enum ContentType */
	t->received += t->established ? 0 : input.len;
	if (!t->established && t->received > TRUNK_TLS_HANDSHAKE) {
		tls_refuse(c, GNUTLS_E_HANDSHAKE_TOO_LARGE);
		got = -1;
	} else {
		got = tls_decrypt(c, to, size);
	}
	err = tls_output(c);
	if (got >= 0 && !t->closed && (err || input.len)) {
		if (!t->established)
			tls_refuse(c, GNUTLS_E_PREMATURE_TERMINATION);
		t->failed = true;
		got = -1;
	}
	input.len = 0;
	input.end = false;
	errno = got < 0 ? EPROTO : EAGAIN;
	return got > 0 || t->closed ? got : -1;
}

#else

bool trunk_tls_in_build(void)
{
	return false;
}

bool trunk_tls_handshakes(const struct trunk_conn *c)
{
	return false;
}

int trunk_tls_start(struct trunk_conn *c)
{
	return -ENOTSUP;
}

void trunk_tls_end(struct trunk_conn *c) {}

int trunk_tls_flush(struct trunk_conn *c)
{
	return -ENOTSUP;
}

ssize_t trunk_tls_send(struct trunk_conn *c, const struct iovec *iov, size_t n)
{
	errno = ENOTSUP;
	return -1;
}

ssize_t trunk_tls_recv(struct trunk_conn *c, u8 *to, size_t size)
{
	errno = ENOTSUP;
	return -1;
}
#endif

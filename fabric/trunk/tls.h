/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TLS 1.3 of trunks on TCP (RFC 8446), with an external pre-shared key derived from the trunk's key. */
#ifndef MUSLIN_TRUNK_TLS_H
#define MUSLIN_TRUNK_TLS_H

#include <sys/uio.h>

#include "emu/lib/types.h"

#define TRUNK_TLS_IDENTITY 33 /* hexadecimal digits and a NUL */
#define TRUNK_TLS_PSK      32
/* Received before the handshake is complete. A ClientHello is about 400 bytes, a flight of a server about 300. */
#define TRUNK_TLS_HANDSHAKE 16384

/* ContentType, the first byte of a peer that uses TLS */
#define TRUNK_TLS_ALERT  21
#define TRUNK_TLS_CLIENT 22

struct trunk_conn;
struct trunk_tls;

/* Derived from the bytes of a key file, so that TLS and the HMAC of the hello share no key. */
struct trunk_tls_key {
	char identity[TRUNK_TLS_IDENTITY];
	u8 psk[TRUNK_TLS_PSK];
};

bool trunk_tls_in_build(void);
void trunk_tls_derive(struct trunk_tls_key *k, const u8 *key, size_t len);

/* All that follows on @c is TLS. Its listener or connector is set. 0 or -errno. */
int trunk_tls_start(struct trunk_conn *c);
/* Sends close_notify if the socket takes it, and frees the session; NULL in c->tls is harmless. */
void trunk_tls_end(struct trunk_conn *c);
bool trunk_tls_handshakes(const struct trunk_conn *c);

/*
 * Whether trunk_tls_send() may be called: 0, -EAGAIN: encrypted bytes wait for the socket, -EINPROGRESS: the handshake
 * is not complete; trunk_conn_flush_later() follows when it is. Another -errno: the connection has to end.
 */
int trunk_tls_flush(struct trunk_conn *c);
/* All bytes of @iov, of which the session keeps what the socket does not take. Their number, or -1 and errno. */
ssize_t trunk_tls_send(struct trunk_conn *c, const struct iovec *iov, size_t n);
/*
 * As recv() without blocking, also during the handshake. @size: TRUNK_READ. 0: the peer's close_notify. Counts and logs
 * why a peer is refused or disconnected.
 */
ssize_t trunk_tls_recv(struct trunk_conn *c, u8 *to, size_t size);

#endif

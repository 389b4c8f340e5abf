/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Trunks: links of a fabric whose other ends are in other daemons, over Unix stream sockets and TCP. */
#ifndef MUSLIN_TRUNK_H
#define MUSLIN_TRUNK_H

#include "fabric/fabric.h"

#define TRUNK_COUNTERS(C)                                                                                    \
	C(CONNECTED, "connections")                                                                          \
	C(LOST, "lost")                       /* connections that ended, by the peer or by an error of it */ \
	C(REFUSED_HELLO, "refused_hello")     /* no hello in time, or no valid one */                        \
	C(REFUSED_VERSION, "refused_version") /* of another version of the protocol */                       \
	C(REFUSED_KEY, "refused_key")         /* does not know the key */                                    \
	C(REFUSED_PORT, "refused_port")       /* GUIDs or port numbers that do not fit */                    \
	C(REFUSED_TLS, "refused_tls")         /* no TLS, or a handshake that failed or was not in time */    \
	C(REFUSED_BUSY, "refused_busy")       /* the port is connected already */                            \
	C(REFUSED_BY_PEER, "refused_by_peer")                                                                \
	C(VIOLATIONS, "violations")   /* messages or credits against the protocol */                         \
	C(TRUNCATED, "tls_truncated") /* ended without close_notify */                                       \
	C(TIMEOUTS, "timeouts")       /* nothing heard for TRUNK_SILENCE */                                  \
	C(RINGS, "rings")             /* shared memory for a direction of a connection */                    \
	C(XMIT_PKTS, "xmit_packets")                                                                         \
	C(RCV_PKTS, "rcv_packets")                                                                           \
	C(MALFORMED, "rcv_malformed")                                                                        \
	C(XMIT_BYTES, "xmit_bytes")                                                                          \
	C(RCV_BYTES, "rcv_bytes")
#define TRUNK_COUNTER_ENUM(number, name) TRUNK_CTR_##number,
enum trunk_counter {
	TRUNK_COUNTERS(TRUNK_COUNTER_ENUM) TRUNK_CTR_NUM
};
#undef TRUNK_COUNTER_ENUM

struct trunk_set;

/*
 * The trunks of @f, which @topo describes; those that listen do so from now on. NULL and a line in @err. Keys are read from their
 * files, and names are resolved, which may block. Destroy it before the fabric.
 */
struct trunk_set *trunk_set_create(struct loop *loop, struct fabric *f, const struct fabric_topology *topo, char *err,
				   size_t err_len);
void trunk_set_destroy(struct trunk_set *s); /* NULL is harmless */
bool trunk_set_has_tcp(const struct trunk_set *s);
u32 trunk_set_links_down(const struct trunk_set *s); /* of how many trunks the link is not up */

struct trunk_info {
	const struct fabric_port *port; /* the port here */
	const char *address;
	bool listens, connected, tls;
};
/* False: there are no more than @index. */
bool trunk_info(const struct trunk_set *s, u32 index, struct trunk_info *info);
u64 trunk_counter(const struct trunk_set *s, u32 index, enum trunk_counter c);
/* Of connections that were refused before they were those of a trunk. */
u64 trunk_set_counter(const struct trunk_set *s, enum trunk_counter c);
const char *trunk_counter_name(enum trunk_counter c);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Trunks: links of a fabric whose other ends are in other daemons, over Unix stream sockets and TCP. */
#ifndef MUSLIN_TRUNK_H
#define MUSLIN_TRUNK_H

#include "fabric/fabric.h"

#define TRUNK_COUNTERS(C)                                                                               \
	C(CONNECTED, "connections")                                                                     \
	C(LOST, "lost")                       /* connections that the peer, or an error, has ended */   \
	C(UNANSWERED, "unanswered")           /* connections whose listener has not answered in time */ \
	C(REFUSED_HELLO, "refused_hello")     /* no hello in time, or no valid one */                   \
	C(REFUSED_VERSION, "refused_version") /* of another version of the protocol */                  \
	C(REFUSED_KEY, "refused_key")         /* with a wrong key */                                    \
	C(REFUSED_PORT, "refused_port")       /* with GUIDs or port numbers that do not match */        \
	C(REFUSED_TLS, "refused_tls")         /* no TLS handshake, or none in time */                   \
	C(REFUSED_BUSY, "refused_busy")       /* the port is connected already */                       \
	C(REFUSED_BY_PEER, "refused_by_peer")                                                           \
	C(VIOLATIONS, "violations")   /* of the protocol by the peer's messages or credits */           \
	C(TRUNCATED, "tls_truncated") /* ended without close_notify */                                  \
	C(TIMEOUTS, "timeouts")       /* nothing received for TRUNK_SILENCE */                          \
	C(RINGS, "rings")             /* shared memory for a direction of a connection */               \
	C(XMIT_PKTS, "xmit_packets")                                                                    \
	C(RCV_PKTS, "rcv_packets")                                                                      \
	C(MALFORMED, "rcv_malformed")                                                                   \
	C(XMIT_BYTES, "xmit_bytes")                                                                     \
	C(RCV_BYTES, "rcv_bytes")
#define TRUNK_COUNTER_ENUM(number, name) TRUNK_CTR_##number,
enum trunk_counter {
	TRUNK_COUNTERS(TRUNK_COUNTER_ENUM) TRUNK_CTR_NUM
};
#undef TRUNK_COUNTER_ENUM

struct trunk_set;

/*
 * Creates the trunks of @f, which @topo describes, and starts to listen and to connect. NULL with a line in @err. Reads
 * keys from their files and resolves names to listen at, which may block. Destroy it before the fabric.
 */
struct trunk_set *trunk_set_create(struct loop *loop, struct fabric *f, const struct fabric_topology *topo, char *err,
				   size_t err_len);
void trunk_set_destroy(struct trunk_set *s); /* NULL is harmless */

/*
 * For faults that swap cables: adds a suspended trunk at the local port of @r, whose node has @guid in the topology; of
 * @tt address, listen and peer are used. 0, or -errno and a line in @err. Indices below are those of the topology's
 * trunks, then of these.
 */
int trunk_set_add(struct trunk_set *s, struct fabric_remote *r, u64 guid, const struct fabric_topology_trunk *tt,
		  char *err, size_t err_len);
void trunk_set_remove(struct trunk_set *s, struct fabric_remote *r);
/* A suspended trunk ends its session, and has none until it is resumed. */
void trunk_set_suspend(struct trunk_set *s, struct fabric_remote *r, bool suspended);

bool trunk_set_has_tcp(const struct trunk_set *s);
u32 trunk_set_links_down(const struct trunk_set *s); /* trunks whose links are not up */

struct trunk_info {
	const struct fabric_port *port; /* the port here */
	const struct fabric_node *peer; /* a node of another daemon */
	u8 num, peer_port;              /* numbers of both ports */
	const char *address;
	bool listens, connected, tls;
};
/* False: @index is out of range. */
bool trunk_info(const struct trunk_set *s, u32 index, struct trunk_info *info);
u64 trunk_counter(const struct trunk_set *s, u32 index, enum trunk_counter c);
/* Of connections and hellos that were refused before they belonged to a trunk. */
u64 trunk_set_counter(const struct trunk_set *s, enum trunk_counter c);
const char *trunk_counter_name(enum trunk_counter c);

#endif

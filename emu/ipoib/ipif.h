/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A minimal IPoIB endpoint of a CA port: answers ARP, neighbour discovery and echo requests for the port's IP
 * addresses, and resolves the GIDs of others. RFC 4391, 4392. It interoperates with any IPoIB endpoint of the
 * partition.
 */
#ifndef MUSLIN_IPOIB_IPIF_H
#define MUSLIN_IPOIB_IPIF_H

#include "emu/hca/hca.h"
#include "emu/mad/sa_query.h"
#include "emu/wire/ip.h"

#define IPIF_HEADER  4  /* the encapsulation header, RFC 4391, section 6 */
#define IPIF_HW_SIZE 20 /* a hardware address, section 9.1.1 */

struct ipif;
struct ipif_query;

struct ipif_config {
	struct loop *loop;
	struct hca *hca;
	struct mad_port *mp;
	struct sa_client *sa;
	struct ip_addr v4, v6; /* all zero: none */
	u8 v4_len, v6_len;     /* prefix lengths */
};

/* Everything that @cfg names must outlive it. It starts when the port has an SM, and restarts after
 * changes. NULL if out of memory. */
struct ipif *ipif_create(const struct ipif_config *cfg);
void ipif_destroy(struct ipif *ip); /* queries end without callback; NULL is allowed */
/* A muted endpoint sends no replies and learns no neighbours: the guest on the host has an IPoIB
 * interface with the same addresses. */
void ipif_mute(struct ipif *ip, bool muted);
void ipif_event(struct ipif *ip, enum wire_port_event event);

const u8 *ipif_hw_address(const struct ipif *ip, u8 *hw); /* writes IPIF_HW_SIZE bytes, and returns them */
/* Whether @a is an address of this port, including the link-local one of its GID. */
bool ipif_has(const struct ipif *ip, const struct ip_addr *a);
/* Whether @a is on the port's network. */
bool ipif_reaches(const struct ipif *ip, const struct ip_addr *a);
/* The port's source address for the destination @to; NULL if it has none of that family. */
const struct ip_addr *ipif_source(const struct ipif *ip, const struct ip_addr *to);
u16 ipif_pkey(const struct ipif *ip);
/* Received packets without a header, or with malformed ARP, neighbour discovery or echo. */
u64 ipif_malformed(const struct ipif *ip);
/* The broadcast group as joined; NULL if not joined. */
const struct sa_mcmember *ipif_broadcast(const struct ipif *ip);
/* The MGID of an IP multicast group on this link. RFC 4391, section 4. */
struct wire_gid ipif_mgid(const struct ipif *ip, const struct ip_addr *group);

/* Each neighbour that is resolved, and its hardware address of @len bytes; @vlan is 0. */
void ipif_neighbours(const struct ipif *ip,
		     void (*fn)(void *arg, const struct ip_addr *a, u16 vlan, const u8 *hw, u32 len), void *arg);

/* @status 0: @gid is the port that has the address; -ETIMEDOUT. The query is freed. Never called before the return. */
typedef void ipif_fn(void *ctx, int status, const struct wire_gid *gid);
/* Repeats the request every second for @timeout_ms. NULL if out of memory. */
struct ipif_query *ipif_resolve(struct ipif *ip, const struct ip_addr *to, u32 timeout_ms, ipif_fn *fn, void *ctx);
void ipif_query_cancel(struct ipif_query *q);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small IPoIB endpoint of a CA port: it answers ARP, neighbour discovery and echo requests for the port's IP addresses,
 * and finds the GIDs of others. RFC 4391, 4392. It interoperates with any IPoIB endpoint of the partition.
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

/* All that @cfg names must outlive it. It comes up when the port has an SM, and again after changes. NULL: no memory. */
struct ipif *ipif_create(const struct ipif_config *cfg);
void ipif_destroy(struct ipif *ip); /* queries end without callback; NULL is harmless */
/* A muted endpoint sends no replies and learns no neighbours: the guest on the host has an IPoIB interface with the same addresses. */
void ipif_mute(struct ipif *ip, bool muted);
void ipif_event(struct ipif *ip, enum wire_port_event event);

const u8 *ipif_hw_address(const struct ipif *ip, u8 *hw); /* writes IPIF_HW_SIZE bytes, and returns them */
/* Is @a an address of this port (the link-local one of its GID included)? */
bool ipif_has(const struct ipif *ip, const struct ip_addr *a);
/* Is @a on the port's network? */
bool ipif_reaches(const struct ipif *ip, const struct ip_addr *a);
/* The address of the port to be used towards @to; NULL when it has none of that family. */
const struct ip_addr *ipif_source(const struct ipif *ip, const struct ip_addr *to);
u16 ipif_pkey(const struct ipif *ip);
/* The broadcast group as joined; NULL while it is not. */
const struct sa_mcmember *ipif_broadcast(const struct ipif *ip);
/* The MGID of an IP multicast group on this link. RFC 4391, section 4. */
struct wire_gid ipif_mgid(const struct ipif *ip, const struct ip_addr *group);

/* @status 0: @gid is the port that has the address; -ETIMEDOUT. The query is freed. Never called before the return. */
typedef void ipif_fn(void *ctx, int status, const struct wire_gid *gid);
/* Asks again every second until @timeout_ms are over. NULL without memory. */
struct ipif_query *ipif_resolve(struct ipif *ip, const struct ip_addr *to, u32 timeout_ms, ipif_fn *fn, void *ctx);
void ipif_query_cancel(struct ipif_query *q);

#endif

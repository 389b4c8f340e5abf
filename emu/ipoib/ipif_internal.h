/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Declarations shared by the files of the IPoIB endpoint. */
#ifndef MUSLIN_IPOIB_IPIF_INTERNAL_H
#define MUSLIN_IPOIB_IPIF_INTERNAL_H

#include "emu/hca/soft_queue.h"
#include "emu/ipoib/ipif.h"
#include "emu/wire/sa.h"

#define IPIF_RECVS  32
#define IPIF_SENDS  32
#define IPIF_GRH    40
#define IPIF_BUF    4096
#define IPIF_GROUPS 3 /* broadcast, and solicited-node groups of two IPv6 addresses */

/* A group of which the endpoint is a member. */
struct ipif_group {
	struct ipif *ip;
	struct wire_gid mgid;
	struct sa_mcast *mcast;
	bool joined, attached;
	u16 mlid; /* as attached */
	u64 retry_ns;
	struct loop_timer retry;
};

struct ipif {
	struct ipif_config cfg;
	struct wire_port *port;
	struct ip_addr link_local;
	u16 pkey; /* with the membership bit, as in MGIDs */
	struct ipif_group group[IPIF_GROUPS];
	struct hca_ctx *ctx;
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	u32 pdn, lkey, qpn;
	u32 qkey;
	u8 *buf; /* IPIF_RECVS receive buffers, then IPIF_SENDS send buffers */
	u32 send_next;
	struct loop_timer recover; /* the queue pair is in an error state, or ... */
	bool cq_failed;            /* ... its CQ has overflowed and takes no more completions */
	struct loop_timer reattach;
	u32 reattaches;
	struct list neighbours;
	u32 nneighbours;
	bool muted;
	u64 arp_answered, malformed;
};

/* A hardware address. RFC 4391, section 9.1.1. */
struct ipif_hw {
	u32 qpn;
	struct wire_gid gid;
};

/* ipif.c: @payload of @len bytes after the encapsulation header. -ENOMEM: dropped. */
int ipif_send_to(struct ipif *ip, const struct hca_av *av, u32 qpn, u16 ethertype, const u8 *payload, u32 len);
int ipif_send_group(struct ipif *ip, const struct sa_mcmember *group, u16 ethertype, const u8 *payload, u32 len);

/* neighbour.c */
void ipif_learn(struct ipif *ip, const struct ip_addr *a, const struct ipif_hw *hw);
void ipif_neighbours_destroy(struct ipif *ip);

/* ipif_packet.c */
const u8 *ipif_hw_put(const struct ipif_hw *hw, u8 *p); /* writes IPIF_HW_SIZE bytes, and returns them */
/* A packet for the endpoint, after the encapsulation header. @from: who sent it. */
void ipif_packet(struct ipif *ip, u16 ethertype, const u8 *p, u32 len, const struct hca_cqe *from);
void ipif_request_arp(struct ipif *ip, const struct ip_addr *who);
void ipif_solicit(struct ipif *ip, const struct ip_addr *who, const struct sa_mcmember *group);

#endif

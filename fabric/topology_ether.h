/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ethernet part of a topology: switches, inter-switch links, stations. */
#ifndef MUSLIN_FABRIC_TOPOLOGY_ETHER_H
#define MUSLIN_FABRIC_TOPOLOGY_ETHER_H

#include <net/if.h>

#include "emu/wire/ip.h"
#include "fabric/eth/eth.h"

#define FABRIC_ETHER_ADDRS 8

struct fabric_ether_switch {
	char name[ETH_NAME_MAX];
	u64 age_ns;                  /* 0: the default */
	struct eth_link_config link; /* default of its links */
};

struct fabric_ether_cable {
	u32 a, b; /* switches */
	u32 line;
	struct eth_link_config link;
};

enum fabric_ether_kind {
	FABRIC_ETHER_ROCE, /* a RoCE adapter */
	FABRIC_ETHER_NIC,  /* a guest's network card */
	FABRIC_ETHER_TAP,  /* an interface of the machine */
};

struct fabric_ether_station {
	enum fabric_ether_kind kind;
	u32 node, sw; /* node: ~0 for a TAP */
	u32 line;
	char name[ETH_NAME_MAX];
	char device[IF_NAMESIZE]; /* of a TAP */
	struct eth_link_config link;
	u8 mac[ETHER_ALEN];
	struct ip_addr addr[FABRIC_ETHER_ADDRS];
	u8 len[FABRIC_ETHER_ADDRS];
	u16 vlan[FABRIC_ETHER_ADDRS]; /* VID of the tag; 0: untagged */
	u32 naddr;
	bool v1;    /* RoCE v1 is the default */
	bool dcqcn; /* DCQCN congestion control */
	bool roce;  /* of a NIC: the guest has a RoCE adapter on it, too */
};

struct fabric_ether {
	struct fabric_ether_switch *sw;
	struct fabric_ether_cable *cable;
	struct fabric_ether_station *station;
	u32 nsw, ncables, nstations;
};

u16 fabric_ether_vlan(const struct eth_link_config *c); /* of untagged frames */
bool fabric_ether_carries(const struct eth_link_config *c, u16 vlan);

#endif

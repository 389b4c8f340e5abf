/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A RoCE port: an adapter's port whose link is UDP sockets on addresses of the machine, or a station on an Ethernet. */
#ifndef MUSLIN_RXE_ROCE_ROCE_H
#define MUSLIN_RXE_ROCE_ROCE_H

#include "emu/fault/fault.h"
#include "emu/lib/loop.h"
#include "emu/port/ether_port.h"
#include "emu/port/port.h"

#define ROCE_ADDRS 8

struct roce_port;

struct roce_config {
	struct loop *loop;
	const char *name; /* for messages; copied */
	u64 node_guid, port_guid;
	u8 num;                           /* of the adapter's ports; 0: its only one */
	struct wire_gid addr[ROCE_ADDRS]; /* local addresses, IPv4 mapped: GIDs 0.. of the port */
	u32 naddr;
	u64 seed;
	/*
	 * A station, which must outlive the port: instead of sockets. Each address is a GID of RoCE v2 and one of v1, and has a
	 * VLAN; without addresses the manager of the station's addresses fills the GID table.
	 */
	struct ether_port *ether;
	u16 vlan[ROCE_ADDRS]; /* 0: untagged */
	u8 net[ROCE_ADDRS];   /* bits of the address that are its network's */
	bool v1;              /* the GIDs of v1 come first, and so are the default */
};

/* What happened at this port beside the counters of the transport. */
#define ROCE_COUNTERS(C)                                                                   \
	C(SENT, "roce_sent")                                                               \
	C(RECEIVED, "roce_received")                                                       \
	C(SENT_BYTES, "roce_sent_bytes") /* with sockets: of UDP */                        \
	C(RECEIVED_BYTES, "roce_received_bytes")                                           \
	C(PLACED, "roce_placed") /* of those received, by zero-copy */                     \
	C(ICRC, "roce_icrc_errors")                                                        \
	C(MALFORMED, "roce_malformed")                                                     \
	C(REFUSED, "roce_not_taken")   /* QP0, or nobody takes packets */                  \
	C(UNROUTED, "roce_unroutable") /* no GRH, a GID that is no address, no own one */  \
	C(SEND_ERROR, "roce_send_errors")                                                  \
	C(ECN, "roce_ecn_marked")                                                          \
	C(MARKED, "roce_marked")          /* on purpose */                                 \
	C(NEIGHBOUR, "roce_no_neighbour") /* nobody has said that the address is theirs */ \
	C(FAULTS, "roce_faults")          /* dropped or damaged on purpose */
#define ROCE_COUNTER_ENUM(name, str) ROCE_CTR_##name,
enum roce_counter {
	ROCE_COUNTERS(ROCE_COUNTER_ENUM) ROCE_CTR_NUM
};
#undef ROCE_COUNTER_ENUM

/*
 * Binds port 4791 of each address. NULL with errno: EADDRINUSE when something else has it, EADDRNOTAVAIL when the machine has
 * no such address. The MTU is that of the interface with the lowest.
 */
struct roce_port *roce_port_create(const struct roce_config *cfg);
void roce_port_destroy(struct roce_port *rp); /* NULL is harmless */
struct wire_port *roce_port_wire(struct roce_port *rp);
const char *roce_port_device(const struct roce_port *rp, u32 gid); /* network interface of the GID with that index */
u64 roce_port_counter(const struct roce_port *rp, enum roce_counter c);
const char *roce_counter_name(enum roce_counter c);
/*
 * @tap sees each packet that leaves or comes as an Ethernet frame, which is valid during the call. NULL: nobody looks.
 */
void roce_port_set_tap(struct roce_port *rp, void (*tap)(void *ctx, const u8 *frame, u32 len, bool out), void *ctx);
bool roce_port_tapped(const struct roce_port *rp);
/* Drops sent packets with @probability (0: none), by the port's seed. */
void roce_port_set_loss(struct roce_port *rp, double probability);
/* Marks sent packets that may be marked as having met congestion, with @probability, as a switch with a queue would. */
void roce_port_set_marking(struct roce_port *rp, double probability);
void roce_port_set_dcqcn(struct roce_port *rp, bool on);
/*
 * The version of RoCE, 1 or 2, that connections are made by where nobody says which: what the kernel calls the default RoCE mode.
 * Existing ones keep theirs. 0; -EPROTONOSUPPORT: UDP sockets carry no v1; -EPERM: the manager of the addresses decides.
 */
int roce_port_set_version(struct roce_port *rp, u8 version);

/* The link of a port on sockets goes down, and no packet passes, or up. */
void roce_port_set_up(struct roce_port *rp, bool up);

/* Faults of a port on sockets, a target of the fault engine. They must be removed before the port. */
extern const struct fault_target roce_fault_target;
struct fault_set *roce_port_faults(struct roce_port *rp);

/* A GUID that two machines with different addresses do not share: that of a station address made of it. */
u64 roce_guid(const struct wire_gid *addr);

#endif

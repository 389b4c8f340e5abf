/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RoCE port (IBTA annexes A16, A17): an adapter's port whose link is UDP sockets on addresses of the machine, or a
 * station on an Ethernet.
 */
#ifndef MUSLIN_RXE_ROCE_ROCE_H
#define MUSLIN_RXE_ROCE_ROCE_H

#include "emu/fault/fault.h"
#include "emu/lib/loop.h"
#include "emu/port/ether_port.h"
#include "emu/port/port.h"
#include "emu/wire/ip.h"

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
	 * A station, which must outlive the port, instead of sockets. Each address has a GID of RoCE v2 and one of v1,
	 * and a VLAN. Without addresses the manager of the station's addresses fills the GID table.
	 */
	struct ether_port *ether;
	u16 vlan[ROCE_ADDRS]; /* 0: untagged */
	u8 net[ROCE_ADDRS];   /* prefix length of the address, in bits */
	bool v1;              /* the v1 GIDs are first, and so are the default */
};

/* Counters of the port, besides those of the transport. */
#define ROCE_COUNTERS(C)                                                                                            \
	C(SENT, "roce_sent")                                                                                        \
	C(RECEIVED, "roce_received")                                                                                \
	C(SENT_BYTES, "roce_sent_bytes") /* with sockets: of UDP */                                                 \
	C(RECEIVED_BYTES, "roce_received_bytes")                                                                    \
	C(PLACED, "roce_placed") /* of those received, by zero-copy */                                              \
	C(ICRC, "roce_icrc_errors")                                                                                 \
	C(MALFORMED, "roce_malformed")                                                                              \
	C(REFUSED, "roce_not_taken")   /* of QP0, or refused by the user of the port */                             \
	C(UNROUTED, "roce_unroutable") /* no GRH, a DGID that is no address, or an SGID that is not of this port */ \
	C(SEND_ERROR, "roce_send_errors")                                                                           \
	C(ECN, "roce_ecn_marked")                                                                                   \
	C(MARKED, "roce_marked")          /* CE set by fault injection */                                           \
	C(NEIGHBOUR, "roce_no_neighbour") /* address resolution failed */                                           \
	C(FAULTS, "roce_faults")          /* dropped or corrupted by fault injection */
#define ROCE_COUNTER_ENUM(name, str) ROCE_CTR_##name,
enum roce_counter {
	ROCE_COUNTERS(ROCE_COUNTER_ENUM) ROCE_CTR_NUM
};
#undef ROCE_COUNTER_ENUM

/*
 * Binds UDP port 4791 of each address. NULL with errno: EADDRINUSE when another socket has it, EADDRNOTAVAIL when the
 * machine has no such address. The MTU is the lowest of the interfaces'.
 */
struct roce_port *roce_port_create(const struct roce_config *cfg);
void roce_port_destroy(struct roce_port *rp); /* NULL is ignored */
struct wire_port *roce_port_wire(struct roce_port *rp);
const char *roce_port_device(const struct roce_port *rp, u32 gid); /* network interface of the GID with that index */
/* Each neighbour that is resolved: a port on sockets leaves that to the machine. */
void roce_port_neighbours(const struct roce_port *rp,
			  void (*fn)(void *arg, const struct ip_addr *a, u16 vlan, const u8 *hw, u32 len), void *arg);
u64 roce_port_counter(const struct roce_port *rp, enum roce_counter c);
const char *roce_counter_name(enum roce_counter c);
/*
 * Calls @tap with each packet sent or received, as an Ethernet frame that is valid during the call. NULL: no capture.
 */
void roce_port_set_tap(struct roce_port *rp, void (*tap)(void *ctx, const u8 *frame, u32 len, bool out), void *ctx);
/* Drops sent packets with @probability (0: none), drawn by the port's seed. */
void roce_port_set_loss(struct roce_port *rp, double probability);
/* Sets CE in sent ECN-capable packets with @probability, as a congested switch does. */
void roce_port_set_marking(struct roce_port *rp, double probability);
void roce_port_set_dcqcn(struct roce_port *rp, bool on);
/*
 * Sets the RoCE version, 1 or 2, of new connections that do not select one (the kernel's default RoCE mode). Returns 0;
 * -EPROTONOSUPPORT: UDP sockets carry no v1; -EPERM: the manager of the addresses selects it.
 */
int roce_port_set_version(struct roce_port *rp, u8 version);

/* Sets the link of a socket port down (no packet passes) or up. */
void roce_port_set_up(struct roce_port *rp, bool up);

/* Faults of a port on sockets, a target of the fault engine. Remove them before the port. */
extern const struct fault_target roce_fault_target;
struct fault_set *roce_port_faults(struct roce_port *rp);

/* A GUID made of a station address of @addr: different for two machines with different addresses. */
u64 roce_guid(const struct wire_gid *addr);

#endif

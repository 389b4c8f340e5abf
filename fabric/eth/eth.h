/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Simulated Ethernet: switches that learn, with VLANs; links with bounded queues, a rate, PAUSE and priority flow control; and
 * stations, each at a switch. IEEE 802.1Q, 802.3 annex 31B.
 */
#ifndef MUSLIN_FABRIC_ETH_ETH_H
#define MUSLIN_FABRIC_ETH_ETH_H

#include "emu/fault/fault.h"
#include "emu/lib/loop.h"
#include "emu/port/ether_port.h"

#define ETH_CLASSES   8 /* priorities */
#define ETH_VLANS     4095
#define ETH_TRUNK_MAX 32
#define ETH_PORTS_MAX 255
#define ETH_NAME_MAX  64
#define ETH_QUEUE     (1u << 20)           /* bytes, default queue length */
#define ETH_AGE_NS    (300 * NSEC_PER_SEC) /* 802.1Q, table 8-6 */

/* A link, alike in both directions. All zero is a link of ETHER_MTU in VLAN 1 that takes no time. */
struct eth_link_config {
	u64 rate;                 /* bit/s; 0: frames take no time */
	u32 mtu;                  /* 0: ETHER_MTU */
	u32 queue;                /* bytes that wait for the link; 0: ETH_QUEUE */
	u32 ecn;                  /* queue length in bytes from which a switch marks ECT frames CE; 0: never */
	bool pause;               /* 802.3x: PAUSE frames */
	u8 pfc;                   /* 802.1Qbb: priorities with PFC, a bit each */
	u16 vlan;                 /* of untagged frames; 0: 1 */
	bool all;                 /* every VLAN passes, tagged */
	u16 trunk[ETH_TRUNK_MAX]; /* those that pass tagged */
	u32 ntrunk;
};

struct eth;
struct eth_switch;
struct eth_end; /* one end of a link: a switch's port, or a station */

/* NULL without memory. @loop must outlive it. What is random takes @seed. */
struct eth *eth_create(struct loop *loop, u64 seed);
void eth_destroy(struct eth *e); /* does not call the users of stations; NULL is allowed */

/* A switch that forgets stations after @age_ns of silence; 0: ETH_AGE_NS. NULL without memory. */
struct eth_switch *eth_switch_add(struct eth *e, const char *name, u64 age_ns);
struct eth_switch *eth_switch_find(const struct eth *e, const char *name);
/* A link between two switches, at the next free port of each. 0, -ENOMEM or -ENOSPC. */
int eth_cable_add(struct eth_switch *a, struct eth_switch *b, const struct eth_link_config *cfg);
/* A station at the next free port. NULL with errno. */
struct eth_end *eth_station_add(struct eth_switch *sw, const char *name, const u8 mac[ETHER_ALEN],
				const struct eth_link_config *cfg);
struct ether_port *eth_station_port(struct eth_end *end);
/* "r1", "r1:1", "sw1:3"; a switch without a port gives its first. NULL: there is none. */
struct eth_end *eth_find(const struct eth *e, const char *place);

/* Iteration over all nodes. Ports of a switch count from 1. */
u32 eth_switch_count(const struct eth *e);
struct eth_switch *eth_switch_at(const struct eth *e, u32 i);
const char *eth_switch_name(const struct eth_switch *sw);
u32 eth_switch_ports(const struct eth_switch *sw);
struct eth_end *eth_switch_port(const struct eth_switch *sw, u32 num); /* NULL out of range */
const char *eth_end_name(const struct eth_end *end);                   /* of the station or the switch */
u32 eth_end_num(const struct eth_end *end);                            /* 1 for a station */
struct eth_end *eth_end_peer(const struct eth_end *end);
bool eth_end_up(const struct eth_end *end);
/* Disconnects or reconnects the link's cable. */
void eth_end_set_up(struct eth_end *end, bool up);
/* @fn is called for each end whose link has gone up or down. NULL: none. */
void eth_watch(struct eth *e, void (*fn)(void *ctx, const struct eth_end *end), void *ctx);
u64 eth_end_rate(const struct eth_end *end); /* of sending, bit/s; 0: no limit */
u32 eth_end_mtu(const struct eth_end *end);

#define ETH_COUNTERS(C)                                                               \
	C(RX_FRAMES, "rx_frames")                                                     \
	C(RX_BYTES, "rx_bytes")                                                       \
	C(TX_FRAMES, "tx_frames")                                                     \
	C(TX_BYTES, "tx_bytes")                                                       \
	C(RX_MULTICAST, "rx_multicast")                                               \
	C(RX_DROPPED, "rx_dropped")     /* a station that had no room for too long */ \
	C(RX_FCS, "rx_fcs_errors")      /* damaged on the way, and noticed */         \
	C(RX_SHORT, "rx_length_errors") /* no frame, or longer than the MTU */        \
	C(RX_FILTERED, "rx_filtered")   /* of a VLAN that the port is not in */       \
	C(TX_DROPPED, "tx_dropped")     /* the queue was full */                      \
	C(TX_MARKED, "tx_ecn_marked")   /* as having met congestion */                \
	C(TX_DOWN, "tx_link_down")                                                    \
	C(RX_PAUSE, "rx_pause")                                                       \
	C(TX_PAUSE, "tx_pause")                                                       \
	C(PAUSED_US, "tx_paused_us") /* some priority was paused   */                 \
	C(FLOODED, "flooded")        /* frames for a station that nobody knew */      \
	C(FAULTS, "faults")          /* frames that a fault has touched */
#define ETH_COUNTER_ENUM(name, str) ETH_CTR_##name,
enum eth_counter {
	ETH_COUNTERS(ETH_COUNTER_ENUM) ETH_CTR_NUM
};
#undef ETH_COUNTER_ENUM
const char *eth_counter_name(enum eth_counter c);
u64 eth_end_counter(const struct eth_end *end, enum eth_counter c);

/* @capture is called for each frame sent or received at this end; the frame is valid during the call. NULL: no capture. */
void eth_end_set_capture(struct eth_end *end, void (*capture)(void *ctx, const u8 *frame, u32 len, bool out),
			 void *ctx);
bool eth_end_captured(const struct eth_end *end);

/*
 * Connects @station to the TAP interface @name of the machine, and creates it if needed. NULL with errno: EPERM without CAP_NET_ADMIN,
 * EBUSY when another program uses it. The station and @loop must outlive it.
 */
struct eth_tap_device;
struct eth_tap_device *eth_tap_open(struct loop *loop, const char *name, struct ether_port *station);
void eth_tap_close(struct eth_tap_device *t); /* NULL is harmless */

/* Faults of its links, a target of the fault engine. The network frees those that remain. */
extern const struct fault_target eth_fault_target;
struct fault_set *eth_faults(struct eth *e);

#endif

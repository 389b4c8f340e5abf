/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Simulated Ethernet (IEEE 802.1Q, 802.3 annex 31B): learning switches with VLANs; links with bounded queues, a rate,
 * PAUSE and priority flow control; and stations, each at a switch.
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

/* A link, with the same attributes in both directions. Zeroed: ETHER_MTU, VLAN 1, no transmission time. */
struct eth_link_config {
	u64 rate;                 /* bit/s; 0: no transmission time */
	u32 mtu;                  /* 0: ETHER_MTU */
	u32 queue;                /* bytes of the transmit queue; 0: ETH_QUEUE */
	u32 ecn;                  /* queue length in bytes from which a switch marks ECT frames CE; 0: never */
	bool pause;               /* 802.3x: PAUSE frames */
	u8 pfc;                   /* 802.1Qbb: bitmap of priorities with PFC */
	u16 vlan;                 /* of untagged frames; 0: 1 */
	bool all;                 /* member of every VLAN, tagged */
	u16 trunk[ETH_TRUNK_MAX]; /* VLANs that are tagged */
	u32 ntrunk;
};

struct eth;
struct eth_switch;
struct eth_end; /* one end of a link: a port of a switch, or a station */

/* NULL: out of memory. @loop must outlive it. @seed of random decisions. */
struct eth *eth_create(struct loop *loop, u64 seed);
void eth_destroy(struct eth *e); /* does not call the users of stations; NULL is ignored */

/* Adds a switch whose learned addresses expire after @age_ns without frames; 0: ETH_AGE_NS. NULL: out of memory. */
struct eth_switch *eth_switch_add(struct eth *e, const char *name, u64 age_ns);
struct eth_switch *eth_switch_find(const struct eth *e, const char *name);
/* Links the next free ports of two switches. 0, -ENOMEM or -ENOSPC. */
int eth_cable_add(struct eth_switch *a, struct eth_switch *b, const struct eth_link_config *cfg);
/* Links a station to the next free port. NULL with errno. */
struct eth_end *eth_station_add(struct eth_switch *sw, const char *name, const u8 mac[ETHER_ALEN],
				const struct eth_link_config *cfg);
struct ether_port *eth_station_port(struct eth_end *end);
/* "r1", "r1:1", "sw1:3"; a switch without a port selects its first. NULL: none. */
struct eth_end *eth_find(const struct eth *e, const char *place);
/* @fn finds a station by another name than its own, such as a GUID, for eth_find() and faults; NULL: by none. */
void eth_set_names(struct eth *e, struct eth_end *(*fn)(void *ctx, const char *name), void *ctx);

/* Iteration over all nodes. Ports of a switch count from 1. */
u32 eth_switch_count(const struct eth *e);
struct eth_switch *eth_switch_at(const struct eth *e, u32 i);
const char *eth_switch_name(const struct eth_switch *sw);
u32 eth_switch_ports(const struct eth_switch *sw);
struct eth_end *eth_switch_port(const struct eth_switch *sw, u32 num); /* NULL: out of range */
const char *eth_end_name(const struct eth_end *end);                   /* of the station or the switch */
u32 eth_end_num(const struct eth_end *end);                            /* 1 for a station */
struct eth_end *eth_end_peer(const struct eth_end *end);
bool eth_end_up(const struct eth_end *end);
/* Disconnects or reconnects the link's cable. */
void eth_end_set_up(struct eth_end *end, bool up);
/* @fn is called for each end whose link goes up or down. NULL: none. */
void eth_watch(struct eth *e, void (*fn)(void *ctx, const struct eth_end *end), void *ctx);
u64 eth_end_rate(const struct eth_end *end); /* transmit rate, bit/s; 0: no limit */
u32 eth_end_mtu(const struct eth_end *end);

#define ETH_COUNTERS(C)                                                                 \
	C(RX_FRAMES, "rx_frames")                                                       \
	C(RX_BYTES, "rx_bytes")                                                         \
	C(TX_FRAMES, "tx_frames")                                                       \
	C(TX_BYTES, "tx_bytes")                                                         \
	C(RX_MULTICAST, "rx_multicast")                                                 \
	C(RX_DROPPED, "rx_dropped")     /* the receive backlog of a station was full */ \
	C(RX_FCS, "rx_fcs_errors")      /* corrupted, with a wrong FCS */               \
	C(RX_SHORT, "rx_length_errors") /* too short, or longer than the MTU */         \
	C(RX_FILTERED, "rx_filtered")   /* of a VLAN of which the port is no member */  \
	C(TX_DROPPED, "tx_dropped")     /* the queue was full */                        \
	C(TX_MARKED, "tx_ecn_marked")   /* CE set by ECN */                             \
	C(TX_DOWN, "tx_link_down")                                                      \
	C(RX_PAUSE, "rx_pause")                                                         \
	C(TX_PAUSE, "tx_pause")                                                         \
	C(PAUSED_US, "tx_paused_us") /* time in which some priority was paused */       \
	C(FLOODED, "flooded")        /* frames to unknown stations */                   \
	C(FAULTS, "faults")          /* frames on which a fault acted */
#define ETH_COUNTER_ENUM(name, str) ETH_CTR_##name,
enum eth_counter {
	ETH_COUNTERS(ETH_COUNTER_ENUM) ETH_CTR_NUM
};
#undef ETH_COUNTER_ENUM
const char *eth_counter_name(enum eth_counter c);
u64 eth_end_counter(const struct eth_end *end, enum eth_counter c);

/*
 * @capture is called for each frame sent or received at this end; the frame is valid during the call. NULL: no capture.
 */
void eth_end_set_capture(struct eth_end *end, void (*capture)(void *ctx, const u8 *frame, u32 len, bool out),
			 void *ctx);

/*
 * Connects @station to the TAP interface @name of the machine, which is created if needed. NULL with errno: EPERM
 * without CAP_NET_ADMIN, EBUSY when another program uses it. The station and @loop must outlive it.
 */
struct eth_tap_device;
struct eth_tap_device *eth_tap_open(struct loop *loop, const char *name, struct ether_port *station);
void eth_tap_close(struct eth_tap_device *t); /* NULL is ignored */

/* Faults of its links, a target of the fault engine. eth_destroy() frees those that remain. */
extern const struct fault_target eth_fault_target;
struct fault_set *eth_faults(struct eth *e);

#endif

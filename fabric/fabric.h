/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The simulated fabric: nodes, links, their accessors and events. */
#ifndef MUSLIN_FABRIC_H
#define MUSLIN_FABRIC_H

#include "emu/lib/loop.h"
#include "emu/port/port.h"
#include "fabric/topology.h"

struct fabric;
struct fabric_node;
struct fabric_port;
struct fabric_capture;

/* Counters of a port, 64 bits each (IBTA 16.1.3.5, 16.1.4). */
#define FABRIC_COUNTERS(C)                                             \
	C(XMIT_DATA, "port_xmit_data") /* 4-byte words, LRH to ICRC */ \
	C(RCV_DATA, "port_rcv_data")                                   \
	C(XMIT_PKTS, "port_xmit_packets")                              \
	C(RCV_PKTS, "port_rcv_packets")                                \
	C(UC_XMIT_PKTS, "unicast_xmit_packets")                        \
	C(UC_RCV_PKTS, "unicast_rcv_packets")                          \
	C(MC_XMIT_PKTS, "multicast_xmit_packets")                      \
	C(MC_RCV_PKTS, "multicast_rcv_packets")                        \
	C(SYMBOL_ERRORS, "symbol_error")                               \
	C(LINK_RECOVERIES, "link_error_recovery")                      \
	C(LINK_DOWNED, "link_downed")                                  \
	C(RCV_ERRORS, "port_rcv_errors")                               \
	C(RCV_REMOTE_PHYS_ERRORS, "port_rcv_remote_physical_errors")   \
	C(RCV_SWITCH_RELAY_ERRORS, "port_rcv_switch_relay_errors")     \
	C(XMIT_DISCARDS, "port_xmit_discards")                         \
	C(XMIT_CONSTRAINT_ERRORS, "port_xmit_constraint_errors")       \
	C(RCV_CONSTRAINT_ERRORS, "port_rcv_constraint_errors")         \
	C(LINK_INTEGRITY_ERRORS, "local_link_integrity_errors")        \
	C(OVERRUN_ERRORS, "excessive_buffer_overrun_errors")           \
	C(VL15_DROPPED, "VL15_dropped")                                \
	C(XMIT_WAIT, "port_xmit_wait")                                 \
	C(QP1_DROPPED, "qp1_dropped")                                  \
	C(RCV_QP0_VL, "rcv_qp0_not_vl15")                              \
	C(RCV_VL15_QP, "rcv_vl15_not_qp0")                             \
	C(RCV_MALFORMED, "rcv_malformed")                              \
	C(RCV_DLID_MAPPING, "rcv_dlid_mapping")                        \
	C(RCV_VL_MAPPING, "rcv_vl_mapping")                            \
	C(RCV_LOOPING, "rcv_looping")                                  \
	C(XMIT_INACTIVE, "xmit_inactive")                              \
	C(XMIT_NEIGHBOR_MTU, "xmit_neighbor_mtu")                      \
	C(XMIT_LIFETIME, "xmit_sw_lifetime")                           \
	C(XMIT_HOQ, "xmit_sw_hoq")
#define FABRIC_COUNTER_ENUM(name, str) FABRIC_CTR_##name,
enum fabric_counter {
	FABRIC_COUNTERS(FABRIC_COUNTER_ENUM) FABRIC_CTR_NUM
};
#undef FABRIC_COUNTER_ENUM

const char *fabric_counter_name(enum fabric_counter c); /* name in sysfs, if it has one */

/*
 * Builds the fabric; links between ports come up to Init at once. Copies from @topo, which may then be destroyed. NULL:
 * out of memory (errno set). @loop must outlive the fabric.
 */
struct fabric *fabric_create(struct loop *loop, const struct fabric_topology *topo, u64 seed);
void fabric_destroy(struct fabric *f);

u32 fabric_node_count(const struct fabric *f);
struct fabric_node *fabric_node(const struct fabric *f, u32 index); /* in the order of the file; NULL: out of range */
/*
 * Finds a node by its name; by a GUID, "0x...", "H-..." or "S-..."; by its description, or the first word of that, if
 * only one node has it. NULL: none, or more than one.
 */
struct fabric_node *fabric_node_find(const struct fabric *f, const char *name);
/*
 * Finds nodes with the description, or its first word, @name. Returns their number; up to @max of them are in @match.
 */
u32 fabric_node_matches(const struct fabric *f, const char *name, const struct fabric_node **match, u32 max);
/* The node of "NODE" or "NODE:PORT"; *port points after the colon, or is NULL. NULL: no such node. */
struct fabric_node *fabric_place_find(const struct fabric *f, const char *place, const char **port);
struct fabric_port *fabric_node_port(const struct fabric_node *n, u32 num); /* 0: port 0 of a switch; NULL: none */

const char *fabric_node_name(const struct fabric_node *n);
void fabric_node_desc(const struct fabric_node *n, char desc[65]); /* NodeDescription, NUL-terminated */
u8 fabric_node_type(const struct fabric_node *n);                  /* enum wire_node_type */
u8 fabric_node_ports(const struct fabric_node *n);                 /* numbered 1..n */
u64 fabric_node_guid(const struct fabric_node *n);
u64 fabric_node_sysguid(const struct fabric_node *n);
u32 fabric_node_vendor(const struct fabric_node *n);
u16 fabric_node_device(const struct fabric_node *n);
bool fabric_node_enhanced_port0(const struct fabric_node *n); /* of a switch */

struct fabric_port_info {
	u8 num;
	u64 guid;
	u16 lid, sm_lid; /* of port 0 for an external port of a switch */
	u8 lmc;
	u8 state, phys_state; /* enum wire_port_state, wire_phys_state */
	u8 lanes;             /* active ones; 0 while down */
	enum wire_speed speed;
	u8 mtu_cap, mtu; /* codes; NeighborMTU */
	u32 cap_mask;
	bool unplugged;
	bool disabled;                  /* PortPhysicalState of one end of the cable */
	const struct fabric_node *peer; /* NULL: not wired */
	u8 peer_port;
	bool trunk; /* the peer is in another daemon */
};
void fabric_port_info(const struct fabric_port *p, struct fabric_port_info *info);
u64 fabric_port_counter(const struct fabric_port *p, enum fabric_counter c);
enum fabric_vl_counter {
	FABRIC_VL_PKTS,  /* received */
	FABRIC_VL_WORDS, /* received */
	FABRIC_VL_WAIT   /* PortVLXmitWait */
};
u64 fabric_port_vl_counter(struct fabric_port *p, u8 vl, enum fabric_vl_counter c);
/* The number of events on links with rates. */
u64 fabric_events(const struct fabric *f);

/* The wire_port of a CA port, owned by the fabric; NULL: @n is no CA or has no such port. */
struct wire_port *fabric_ca_port(const struct fabric_node *n, u32 num);
/* The link of a host that is not on the fabric ("roce ADDRESS..."); NULL: any other node. */
const char *fabric_node_binding(const struct fabric_node *n);
/* Sets GUID and addresses of such a host. */
void fabric_node_bind(struct fabric_node *n, u64 guid, const struct fabric_ip *ip);
/*
 * Processes @mad (256 bytes, reply in place) by the agents of a CA port (SMA, PMA), as a driver's process_mad does. 1:
 * reply; 0: not for them (SMInfo of a port with a subnet manager, other classes, no Get or Set), or its M_Key is wrong.
 */
int fabric_ca_mad(const struct fabric_node *n, u32 num, u8 *mad, bool ignore_mkey);
/* IP addresses of a CA's port; NULL as fabric_ca_port(). */
const struct fabric_ip *fabric_ca_ip(const struct fabric_node *n, u32 num);

const struct fabric_node *fabric_port_node(const struct fabric_port *p);

enum fabric_event_type {
	FABRIC_EVENT_PORT, /* the port state has changed */
	FABRIC_EVENT_SM,   /* a subnet manager opens or closes the port (IsSM) */
};
struct fabric_event {
	enum fabric_event_type type;
	const struct fabric_port *port;
	const char *text;
};
/* Sets the watcher: @fn is called for each event and must not change the fabric. NULL: none. */
void fabric_watch(struct fabric *f, void (*fn)(void *ctx, const struct fabric_event *ev), void *ctx);

/*
 * The topology of all daemons that share this one, for faults that concern nodes of several; fabric_topology_node.shard
 * says who has a node, @shard what this one has. @whole must outlive the fabric.
 */
void fabric_set_whole(struct fabric *f, const struct fabric_topology *whole, u32 shard);

/* A port of the topology of all daemons. */
struct fabric_end {
	const struct fabric_topology_node *node;
	u8 num;
	struct fabric_port *port; /* NULL: in another daemon */
};

/* Nodes of the topology of all daemons, by name or GUID; NULL: no such node, or no other daemon. */
const struct fabric_topology_node *fabric_whole_find(const struct fabric *f, const char *name);
/*
 * The ends of the cables at two places: @a, the other end of its cable, @b, and the other end of that. 0, or -EINVAL
 * and a line in @err, -ENOENT if there are no other daemons.
 */
int fabric_whole_cables(const struct fabric *f, const char *a, const char *b, struct fabric_end end[4], char *err,
			size_t err_len);

/* Disconnects or reconnects the port's cable. 0, or -ENOLINK without a cable. */
int fabric_link_unplug(struct fabric_port *p);
int fabric_link_plug(struct fabric_port *p);

/*
 * The end of a trunk, which is a link to a port of another daemon. The fabric has a stand-in for that port; the carrier
 * of the link attaches to it, and applies at this end the changes that the other daemon reports.
 */
struct fabric_remote;

enum fabric_remote_change {
	FABRIC_REMOTE_LINK,   /* the values of fabric_remote_link() have changed, or the link has gone down */
	FABRIC_REMOTE_PLUG,   /* the same, and the cable was plugged here, ... */
	FABRIC_REMOTE_UNPLUG, /* ... or pulled */
	FABRIC_REMOTE_WAKE    /* the same, and the port polls, which wakes a sleeping one (IBTA 5.6.4) */
};

/* What a carrier does with the payload of a data packet that is sent now. */
enum fabric_remote_payload {
	FABRIC_REMOTE_KEEPS, /* refers to it later */
	FABRIC_REMOTE_READS, /* reads it before send() returns */
	FABRIC_REMOTE_WAITS  /* the same when fabric_remote_ready() has been called, which follows soon */
};

/* Implemented by the carrier; these functions must not call the fabric. */
struct fabric_remote_ops {
	void (*send)(void *ctx, struct wire_packet *p); /* takes ownership of the packet */
	void (*credits)(void *ctx, u8 vl);              /* blocks of the local port's input buffer were freed */
	void (*change)(void *ctx, enum fabric_remote_change what);
	/* @wait: the caller waits if the return value is FABRIC_REMOTE_WAITS */
	enum fabric_remote_payload (*payload)(void *ctx, bool wait);
};

/* Values that an end of a link needs of the other end to train (IBTA 5.6.4). */
struct fabric_remote_link {
	bool trains;    /* polls or is up */
	bool unplugged; /* the cable is out */
	bool pulled;    /* a fault keeps the link down */
	u8 width_enabled, speed_enabled, speed_ext_enabled, fdr10_enabled;
	u8 lanes_limit, speed_limit; /* of a fault; 0: none */
};

u32 fabric_remote_count(const struct fabric *f);
/* In the order of the topology's trunks; NULL out of range. */
struct fabric_remote *fabric_remote(const struct fabric *f, u32 index);
struct fabric_port *fabric_remote_local(const struct fabric_remote *r);
const struct fabric_node *fabric_remote_node(const struct fabric_remote *r); /* that of the other daemon */
void fabric_remote_attach(struct fabric_remote *r, const struct fabric_remote_ops *ops, void *ctx); /* NULL: detaches */
/* Identity of the other end. Copies the printable part of @name. */
void fabric_remote_name(struct fabric_remote *r, u8 type, u64 guid, u8 port, const char *name);
/* Values of the local end, for the other daemon. The link comes up with these values only. */
struct fabric_remote_link fabric_remote_link(struct fabric_remote *r);
/*
 * The other end trains with these values and knows those of this end: the link comes up if this end trains. False: the
 * values of this end have changed, and have to be sent again.
 */
bool fabric_remote_up(struct fabric_remote *r, const struct fabric_remote_link *peer);
void fabric_remote_down(struct fabric_remote *r, const struct fabric_remote_link *peer); /* @peer NULL: disconnected */
bool fabric_remote_is_up(const struct fabric_remote *r);
void fabric_remote_ready(struct fabric *f); /* for senders that wait because of fabric_remote_ops.payload() */
void fabric_remote_cable(struct fabric_remote *r, bool unplugged); /* plugged or pulled at the other end */
void fabric_remote_wake(struct fabric_remote *r);
/* Receives a packet, and takes ownership; the caller has checked the credits. A link that is down drops it. */
void fabric_remote_receive(struct fabric_remote *r, struct wire_packet *p);
/* Counts a malformed packet. @ebp: it ended with EBP. */
void fabric_remote_malformed(struct fabric_remote *r, bool ebp);
void fabric_remote_overrun(struct fabric_remote *r);                     /* counts one received without credits */
void fabric_remote_drop(struct fabric_remote *r, struct wire_packet *p); /* drops a packet to send */
u32 fabric_remote_free(const struct fabric_remote *r, u8 vl);            /* blocks of the local input buffer */
/* A packet was sent: it uses @blocks at the other end. */
void fabric_remote_sent(struct fabric_remote *r, u8 vl, u32 blocks);
/* The other daemon reports the blocks in use at the other end, or in flight to it. */
void fabric_remote_credits(struct fabric_remote *r, u8 vl, u32 in_use);

/*
 * Trunks for a swap of cables of several daemons, implemented by who knows their addresses. A suspended trunk has no
 * connection.
 */
struct fabric_cable_ops {
	/* Adds a suspended trunk from port @own to @peer, whose stand-in is @r. 0, or -errno and a line in @err. */
	int (*add)(void *ctx, struct fabric_remote *r, const struct fabric_end *own, const struct fabric_end *peer,
		   char *err, size_t err_len);
	void (*remove)(void *ctx, struct fabric_remote *r);
	void (*suspend)(void *ctx, struct fabric_remote *r, bool suspended); /* also of one of the topology */
};
void fabric_set_cables(struct fabric *f, const struct fabric_cable_ops *ops, void *ctx);
/* The other daemon no longer has its part of the swap that has added or suspended the trunk: ends that of this one. */
void fabric_swap_end(struct fabric *f, const struct fabric_remote *r);

#define FABRIC_VL_BLOCKS     4096  /* 64-byte blocks of input buffer behind each data VL of a port */
#define FABRIC_REMOTE_BLOCKS 16384 /* of a port with a trunk, which has a longer latency */

/*
 * Captures the packets of the port, both directions, as pcapng to @fd (owned by the caller; made non-blocking). Packets
 * that @fd does not accept in time are dropped and counted. More ports may be added to the same capture. A negative
 * errno when @fd fails: -errno in *err. @done (may be NULL) is called once when @fd has failed (reader closed), or
 * all has been written after fabric_capture_end(); stop the capture then.
 */
struct fabric_capture *fabric_capture_start(struct fabric *f, int fd, void (*done)(void *ctx), void *ctx);
enum fabric_capture_of {
	FABRIC_CAPTURE_PACKETS, /* of InfiniBand */
	FABRIC_CAPTURE_ROCE,    /* Ethernet frames, some of which have RoCE packets */
	FABRIC_CAPTURE_TCP      /* Ethernet frames of iWARP */
};
/*
 * Call before ports are added: captures at most @snap bytes of a packet (0: all), and only packets that the keys @words
 * of muslin-fault(5) select (NULL: all). 0, or -EINVAL and a line in @err.
 */
int fabric_capture_select(struct fabric_capture *c, u32 snap, const char *words, enum fabric_capture_of of, char *err,
			  size_t err_len);
/* 0, -ENOMEM, -EBUSY (in this capture already) */
int fabric_capture_add(struct fabric_capture *c, struct fabric_port *p);
/*
 * Adds an Ethernet interface "NODE:NUM", whose frames the caller passes to fabric_capture_frame(). Returns its number,
 * or -ENOMEM.
 */
int fabric_capture_add_frames(struct fabric_capture *c, const char *node, u32 num);
void fabric_capture_frame(struct fabric_capture *c, u32 interface, const u8 *frame, u32 len, bool out);
struct fabric_capture_stats {
	u64 packets, dropped;
};
void fabric_capture_stats(const struct fabric_capture *c, struct fabric_capture_stats *st);
/* Captures no more packets; the caller passes no more frames. What has been captured is written as @fd accepts it. */
void fabric_capture_end(struct fabric_capture *c);
void fabric_capture_stop(struct fabric_capture *c); /* flushes as far as possible, and frees */

#endif

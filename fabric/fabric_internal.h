/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* InfiniBand fabric: nodes, ports and queues, and declarations by the file that implements them. */
#ifndef MUSLIN_FABRIC_INTERNAL_H
#define MUSLIN_FABRIC_INTERNAL_H

#include "emu/fault/fault.h"
#include "emu/lib/rng.h"
#include "emu/packet/header.h"
#include "emu/wire/smp.h"
#include "fabric/fabric.h"

#define FABRIC_PKEYS           32     /* PartitionEnforcementCap of a switch's external port */
#define FABRIC_MFT_LIDS        1024   /* MulticastFDBCap */
#define FABRIC_LFT_LIDS        0xc000 /* LinearFDBCap */
#define FABRIC_VLARB_ENTRIES   64     /* of each priority table, at most */
#define FABRIC_RX_BACKLOG_SMPS 256    /* VL15 packets that wait for a CA's MAD layer */
#define FABRIC_NO_LIMIT        19     /* LifeTimeValue and HOQLife above this: unlimited */

/* Queues of an output port: allocated when a port first has to queue or to wait. */
struct fabric_vls {
	struct list q[16]; /* packets queued at this output, by output VL */
	u32 queued[16];
	u16 active;       /* VLs with packets */
	u16 blocked;      /* VLs for whose credits the users of a CA port wait */
	u16 stalled;      /* VLs in VLStalled */
	u8 hoq_drops[16]; /* consecutive ones */
	u64 stall_until[16];
	u64 wait_since; /* 0: nothing waits */
	u8 turn[2];     /* position in the arbitration tables */
	s32 weight[2];  /* remaining weight of the entry, in 64-byte units */
	s32 high_left;  /* remaining LimitOfHighPriority, in bytes; see arb.c */
	u8 rr;          /* round robin over VLs in no table */
	u64 xmit_wait[16];
};

struct fabric_vlarb {
	u8 vl[2][FABRIC_VLARB_ENTRIES], weight[2][FABRIC_VLARB_ENTRIES]; /* [0] low, [1] high */
};

struct fabric_rx_backlog {
	struct list q;
	u32 n;
};

/* Members of a CA port. */
struct fabric_ca {
	struct wire_port wire;
	struct fabric_port *port;
	struct fabric_rx_backlog backlog[2]; /* packets that the user did not accept (-EAGAIN): data, mad */
	bool want_ready;                     /* a send returned -EAGAIN */
	struct list direct;                  /* in fabric.direct */
	struct fabric_ip ip;
};

struct fabric_port {
	struct fabric_node *node;
	struct fabric_port *peer; /* at the other end of the cable; NULL: no cable */
	struct fabric_vls *vls;
	struct fabric_vlarb *arb;
	struct fabric_ca *ca;
	struct fabric_remote *remote;          /* the port is in another daemon; NULL: in this one */
	struct fabric_capture_point *captures; /* list; NULL: it is not captured */
	struct fault_point hooks;              /* packet faults of the receive direction */
	u8 (*sl2vl)[8];                        /* by input port, 16 nibbles; NULL: SL modulo VLs */
	u16 *pkeys;       /* FABRIC_PKEYS entries; NULL: only 0xffff. Those of a CA are in wire.attr */
	struct list kick; /* in fabric.kicked: credits were returned */
	struct list wait; /* in fabric.waiting: packets are queued */
	struct list down; /* in fabric.downs: goes down after the response has left */
	u8 down_phys;
	u32 rx_blocks[16]; /* credits in use of this port's input buffers */
	struct fabric_vl_rx {
		u64 pkts, words; /* received */
	} vl_rx[16];
	u64 ctr[FABRIC_CTR_NUM];
	u64 ctr_base[FABRIC_CTR_NUM]; /* base of PortCounters, which is cleared separately from the extended counters */
	u64 guid;
	u8 num;
	bool unplugged;
	bool swapped;                /* by a swap fault, here or at the other end */
	u8 lanes_limit, speed_limit; /* limits of a degrade fault; 0: none */
	u16 starved;                 /* VLs that a starve fault excludes from arbitration */
	u32 pulled;                  /* number of faults that keep the link down */
	/*
	 * PortInfo: the part that users of a CA's port read, too (then in ca->wire.attr; a switch has its own), and the
	 * rest
	 */
	struct wire_portinfo *info;
	u8 down_default; /* 1 Sleep, 2 Polling */
	u8 oper_vls;     /* code of OperationalVLs */
	u8 nvls;         /* number of VLs for that code */
	u8 vl_high_limit, hoq_life, vl_stall_count;
	u8 enforce_in : 1, enforce_out : 1, filter_in : 1, filter_out : 1;
	u8 mkey_protect, phy_err_thr, phy_errors, overrun_thr, mc_trap_suppress, led, init_type;
	u16 mkey_lease;
	u64 mkey, prefix;
	u64 lease_end; /* 0: the lease timer is not running */
	/* timing.c, in ps */
	u64 delay_ps, busy_until, busy_ps; /* propagation; end of the current transmission; sum of all */
	u64 byte_time;                     /* time of a byte at the rate rate_of */
	u32 rate_of;
};

#define SWITCH_LIFE_TIME 18 /* LifeTimeValue after power-on */

struct fabric_switch {
	struct wire_portinfo *info; /* of its ports */
	u8 *lft;
	u32 lft_len; /* LIDs, a multiple of LFT_PER_BLOCK */
	u16 *mft;    /* [lid - 0xc000][position] */
	u32 mft_len; /* LIDs */
	u8 positions;
	u16 lft_top, mft_top;
	u8 life_time, default_port, mc_primary, mc_not_primary, state_change;
};

struct fabric_trap;

struct fabric_node {
	char *binding; /* link of a host that is not on the fabric; NULL */
	struct fabric *f;
	u8 type, nports;
	u16 devid;
	bool enhanced_port0; /* of a switch */
	u32 vendid;
	u64 guid, sysguid;
	struct fabric_port *ports; /* [0..nports] */
	struct fabric_switch *sw;
	struct list traps;
	/* Node of another daemon: the port at the end of the trunk; NULL: a node of this one. */
	struct fabric_port *only;
	char name[FABRIC_NAME_MAX];
	char desc[NODEDESC_SIZE];
};

/* The stand-in for a port of another daemon at the end of a trunk, and for its node. */
struct fabric_remote {
	struct fabric_node node;
	struct fabric_port port;
	struct wire_portinfo info;
	struct fabric_port *local; /* the port at this end */
	const struct fabric_remote_ops *ops;
	void *ctx;
	struct list extra;              /* in fabric.extra */
	bool taken;                     /* of fabric.extra: used by a fault */
	struct fabric_remote_link sent; /* values of the local port as last sent */
	u32 beyond[16];                 /* blocks in use at the other daemon, or in flight to it */
};

/* A packet in flight: transmitted on a link, not yet received by the port at its end. */
struct fabric_flight {
	struct wire_packet *p;
	struct fabric_port *to;
	u32 after; /* number of the receiver's fault that has passed it on; 0: none */
};

struct fabric_flights {
	struct fabric_flight *ring; /* a power of two */
	u32 cap, head, n;
};

/*
 * A packet arrives, or, without one, @port has finished a transmission and the packet leaves the buffer of @in (NULL:
 * none).
 */
struct fabric_due {
	struct fabric_port *port, *in;
	struct wire_packet *p;
	u16 blocks;
	u8 vl;
	u32 next_free; /* slot plus one of the next unused one; 0: none */
};

/* Time and order of an event: the four children in the heap are in one cache line. */
struct fabric_due_key {
	u64 when; /* ps of the loop's clock */
	u32 serial, slot;
};

struct fabric_timing {
	bool on, running;
	struct fabric_due_key *keys; /* allocated; the heap is a part of it */
	struct fabric_due_key *heap;
	struct fabric_due *due; /* by slot */
	u32 n, cap, serial;
	u32 free, slots; /* first unused slot plus one, 0: none; slots that were used */
	u64 now;         /* time of the current event; 0: none */
	u64 switch_ps, events;
	u64 ahead_ps; /* lead time with which CAs may pass packets to a busy port */
	struct loop_timer timer;
};

struct fabric {
	struct loop *loop;
	struct rng rng;
	struct fabric_node *nodes;
	u32 nnodes;
	struct fabric_port *port_pool;
	struct fabric_remote *remotes;
	u32 nremotes;
	struct fabric_flights flight, released; /* released by faults: before those on their links that are in flight */
	struct list kicked, waiting, downs;
	struct list direct; /* CA ports whose zero-copy send waits for a trunk */
	bool zcopy; /* direct.c takes the packet that is pushed out of the ring at once: it may reference memory */
	struct loop_task task;
	struct loop_timer timer; /* HOQLife and lifetime */
	struct fault_set faults;
	struct fabric_timing timing;
	void (*watch)(void *ctx, const struct fabric_event *ev);
	void *watch_ctx;
	bool closing;
	u8 mtu_cap, vl_cap; /* codes */
	bool xdr;           /* some links have XDR: LinkSpeedExt2 is supported */
	u64 next_tid;
	const struct fabric_topology *whole; /* of all daemons; NULL: no other daemon has a part of it */
	u32 shard;                           /* this one's part of it */
	const struct fabric_cable_ops *cables;
	void *cables_ctx;
	struct list extra; /* stand-ins of swap faults */
};

static inline u32 fabric_blocks(const struct wire_packet *p)
{
	return (wire_packet_link_len(p) + 2 + 63) / 64;
}

/* flight.c: packets on links */
/* Queues @p as in flight to @to. Port 0 of a switch: the switch sends it. */
void fabric_flight_push(struct fabric *f, struct fabric_port *to, struct wire_packet *p);
/*
 * Queues @p, which fault number @after of @to has passed on, before those in flight: a link does not reorder packets.
 */
void fabric_flight_push_released(struct fabric *f, struct fabric_port *to, struct wire_packet *p, u32 after);
bool fabric_flight_pop(struct fabric_flights *q, struct fabric_flight *fl); /* false: there is none */
static inline u32 fabric_in_flight(const struct fabric *f)
{
	return f->flight.n + f->released.n;
}
/* Transmits @p on @out's link; the caller has checked VL, credits and port state. Returns the receiving port. */
struct fabric_port *fabric_flight_transmit(struct fabric_port *out, struct wire_packet *p, u8 vl);
/* Counts and captures a packet at the receiving port. */
void fabric_flight_count(struct fabric_port *to, const struct wire_packet *p, u32 words, bool multicast);
/* Sends @p to @self itself on @vl; it is delivered from the ring, not within the caller's call. */
void fabric_flight_loopback(struct fabric_port *self, struct wire_packet *p, u8 vl);
/* Returns @blocks credits of @in's input buffer. */
void fabric_flight_release(struct fabric_port *in, u8 vl, u32 blocks);
void fabric_flight_drop(struct fabric_port *in, struct wire_packet *p);
/* Blocks of @in's input buffer of a data VL were freed: its peer may transmit, or reports them to the other daemon. */
void fabric_flight_freed(struct fabric_port *in, u8 vl);
void fabric_flight_kick(struct fabric_port *out); /* credits were returned: runs its queues, signals users */
u8 fabric_flight_vl(const struct fabric_port *in, const struct fabric_port *out, u8 sl); /* SL2VL */

/* timing.c: links with rates */
void fabric_timing_init(struct fabric *f, const struct fabric_topology *t);
void fabric_timing_fini(struct fabric *f);
bool fabric_timing_busy(const struct fabric_port *out);
/*
 * fabric_transmit() on links with rates. VL15 may be transmitted while the port is busy: it is delayed until the port
 * is free.
 */
void fabric_timing_transmit(struct fabric_port *out, struct wire_packet *p, u8 vl, struct fabric_port *in);
bool fabric_timing_full(const struct fabric_port *out); /* the queue is full: VL15, which has no credits, is dropped */
/* The next due event; call fabric_timing_done() after the last one. */
bool fabric_timing_pop(struct fabric *f, u64 now_ns, struct fabric_due *e);
void fabric_timing_done(struct fabric *f);

static inline bool fabric_timed_busy(const struct fabric_port *out)
{
	return unlikely(out->node->f->timing.on) && fabric_timing_busy(out);
}

/*
 * Transmits @p on @out's link, with a delay where links have rates. @in: the port whose buffer it leaves; NULL: none.
 */
static inline void fabric_transmit(struct fabric_port *out, struct wire_packet *p, u8 vl, struct fabric_port *in)
{
	struct fabric *f = out->node->f;
	u32 blocks = fabric_blocks(p);
	u8 in_vl = p->vl;

	if (unlikely(f->timing.on)) {
		fabric_timing_transmit(out, p, vl, in);
		return;
	}
	fabric_flight_push(f, fabric_flight_transmit(out, p, vl), p);
	if (in)
		fabric_flight_release(in, in_vl, blocks);
}

/* relay.c: forwarding in a switch */
/*
 * Forwards a packet with ingress port @in (0: the switch itself). Returns the port at which it arrives next; port 0 of
 * the switch: it is for its management port; NULL: it was queued or dropped.
 */
struct fabric_port *fabric_relay_data(struct fabric_node *sw, struct fabric_port *in, struct wire_packet *p);
struct fabric_port *fabric_relay_vl15(struct fabric_node *sw, struct fabric_port *in, struct wire_packet *p);
/* The output port of a unicast DLID by the linear forwarding table; NULL without an entry. IBTA 18.2.4.3. */
struct fabric_port *fabric_relay_lookup(const struct fabric_node *sw, u16 dlid);
u16 *fabric_relay_pkeys(struct fabric_port *p, u32 *n); /* the P_Key table of a port, @n entries */

/* node.c */
/* "0x2c90300000050", or "H-..." and "S-..." as in ibnetdiscover; 0: no GUID. */
u64 fabric_node_guid_of(const char *name);
/* What a subnet manager sets, and the counters, as after power-on. The link is down. */
void fabric_port_reset(struct fabric_port *p);

/* receive.c */
void fabric_receive_run(struct loop_task *t, struct now now);
void fabric_receive_events(struct loop_timer *t, struct now now); /* of timing.c */
/* Forwards the only packet in flight through switches, to a trunk or until it is queued, without a copy of it. */
void fabric_receive_direct(struct fabric *f);

/* direct.c */
void fabric_direct_init(struct fabric *f); /* of a fabric with trunks: zero-copy sends of its CA ports */

static inline bool fabric_credit(const struct fabric_port *out, u8 vl, const struct wire_packet *p)
{
	return out->peer->rx_blocks[vl] + fabric_blocks(p) <= FABRIC_VL_BLOCKS && likely(!(out->starved & BIT(vl)));
}

/* arb.c: output queues */
/* Queues @p at @out on @vl; it keeps the credits of @p->in_port's buffer of @p->vl. */
void fabric_arb_queue(struct fabric_port *out, struct wire_packet *p, u8 vl);
/* Transmits queued packets while there are credits. */
void fabric_arb_run(struct fabric_port *out);
u64 fabric_arb_wait_ticks(const struct fabric_port *out); /* PortXmitWait ticks not yet added to the counter */
void fabric_arb_update_wait(struct fabric_port *out);     /* adds them */
void fabric_arb_block(struct fabric_port *out, u8 vl);    /* a user of a CA port waits for credits */
void fabric_arb_unblock(struct fabric_port *out, u16 vls);
void fabric_arb_flush(struct fabric_port *out, enum fabric_counter why);
void fabric_arb_timer(struct loop_timer *t, struct now now);

/* ca.c */
/* As in wire_port_ops */
int fabric_ca_send(struct wire_port *w, struct wire_packet *p);
void fabric_ca_set_cap(struct wire_port *w, u32 set, u32 clear);
void fabric_ca_violation(struct wire_port *w, const struct wire_port_violation *v);
void fabric_ca_reset(struct fabric_port *p); /* the tables of a CA's port */
int fabric_ca_init(struct fabric_port *p, const struct fabric_topology *t, const struct fabric_topology_node *n);
void fabric_ca_fini(struct fabric_port *p);
/* Delivers the receive backlog, and signals users that wait for credits. */
void fabric_ca_ready(struct fabric_port *p);
void fabric_ca_event(struct fabric_port *p, enum wire_port_event e);
/* Passes a packet to the transport or the MAD layer. @credits_held: it holds credits of the port's input buffer. */
void fabric_ca_deliver_data(struct fabric_port *p, struct wire_packet *pkt);
void fabric_ca_deliver_mad(struct fabric_port *p, struct wire_packet *pkt, bool credits_held);

/* link.c */
/* The peer of @p, which may be NULL, polls: wakes a sleeping port (5.6.4). */
void fabric_link_wake(struct fabric_port *p);
void fabric_link_update(struct fabric_port *p);     /* trains the link when both ends permit it */
void fabric_link_disconnect(struct fabric_port *p); /* both ends go Down */
void fabric_link_state(struct fabric_port *p, u8 state);
void fabric_link_train(struct fabric_port *p, struct fabric_port *q); /* both ends go to Initialize */
bool fabric_link_trains(const struct fabric_port *p);                 /* does this end permit it? */
/* Sets LinkWidthActive and LinkSpeedActive. */
void fabric_link_set_active(struct wire_portinfo *info, u8 lanes, u8 speed); /* @speed: enum wire_speed */
void fabric_link_set_supported(struct fabric_port *p, u8 speed);             /* @speed and those below */
void fabric_link_enable_all(struct wire_portinfo *info);                     /* all supported widths and speeds */
u8 fabric_link_width(u8 lanes);                                              /* the bit of LinkWidth */

/* remote.c: ports of other daemons */
int fabric_remote_init(struct fabric *f, const struct fabric_topology *t);
void fabric_remote_fini(struct fabric *f);
/* A stand-in for @peer, which is not yet the peer of @local. NULL: no memory. */
struct fabric_remote *fabric_remote_take(struct fabric_port *local, const struct fabric_end *peer);
void fabric_remote_give_back(struct fabric_remote *r); /* packets to it may be in flight */
/* A packet has arrived at @at, which is in another daemon. Consumes it. */
void fabric_remote_send(struct fabric_port *at, struct wire_packet *p);

/* mad.c: MADs sent by agents of a node, and VL15 */
u8 *fabric_mad_data(struct wire_packet *p); /* the MAD, writable; NULL: none, or out of memory */
struct wire_packet *fabric_mad_packet(u16 slid, u16 dlid, u8 sl, u32 qpn); /* with an empty MAD */
/* Transmits a VL15 packet, or drops it when the link is down. Consumes the packet. */
void fabric_mad_vl15(struct fabric_port *out, struct wire_packet *p);
/* Sends a LID-routed SMP or GMP from management port @p. Consumes the packet. */
void fabric_mad_send(struct fabric_port *p, struct wire_packet *pkt);

/*
 * smi.c: processes a directed-route SMP at this node (IBTA 14.2.2). True: it is for this node; else the packet was
 * consumed.
 */
bool fabric_smi_step(struct fabric_node *n, struct fabric_port *in, struct wire_packet *pkt);

/* mgmt.c: a packet for QP0/QP1 of the node's management port @p (switch: port 0) with ingress port @in. Consumes it. */
void fabric_mgmt_receive(struct fabric_port *p, struct fabric_port *in, struct wire_packet *pkt, bool credits_held);

/* sma.c, sma_port.c, sma_table.c */
/* Applies PortState=Down of Set(PortInfo), deferred until the response has left. */
void fabric_sma_run_downs(struct fabric *f);
struct fabric_sma {
	struct fabric_node *n;
	struct fabric_port *in;   /* ingress port: LocalPortNum */
	struct fabric_port *self; /* management port (LID, M_Key): port 0 of a switch, the CA's port */
	u8 *mad, *data;
	bool set, mkey_ok;
	u32 mod;
	u16 trap_flags; /* of trap 144, if the Set causes one */
	bool trap;
};
/* Processes the request in place. False: there is no response. */
bool fabric_sma_request(struct fabric_port *self, struct fabric_port *in, u8 *mad, u16 slid, bool ignore_mkey);
/* Removes the trap that the TrapRepress identifies, if its M_Key is valid. False: the node has sent no such trap. */
bool fabric_sma_trap_repress(struct fabric_node *n, u8 *mad, u16 slid);
u16 fabric_sma_port_info(struct fabric_sma *s);
u16 fabric_sma_mlnx_ext_port_info(struct fabric_sma *s);
u16 fabric_sma_pkey_table(struct fabric_sma *s);
u16 fabric_sma_sl2vl(struct fabric_sma *s);
u16 fabric_sma_vlarb(struct fabric_sma *s);
u16 fabric_sma_lft(struct fabric_sma *s);
u16 fabric_sma_mft(struct fabric_sma *s);
u16 fabric_sma_guid_info(struct fabric_sma *s);
struct fabric_port *fabric_sma_port(struct fabric_sma *s, u32 num);

/* trap.c */
void fabric_trap_link_state(struct fabric_node *sw);
void fabric_trap_local_changes(struct fabric_port *self, u16 flags);
void fabric_trap_mkey(struct fabric_port *self, const u8 *mad, u16 slid);
/* Counts a P_Key or Q_Key violation, and sends trap 257 or 258. */
void fabric_trap_key(struct fabric_port *self, const struct wire_port_violation *v);
void fabric_trap_switch_pkey(struct fabric_port *at, const struct wire_packet *p);
void fabric_trap_port(struct fabric_port *p, u16 trap); /* 129 - 131 */
/* The sender of a trap that is not repressed; NULL: none. */
struct fabric_port *fabric_trap_sender(struct fabric_node *n, u64 tid);
void fabric_trap_end(struct fabric_node *n, u64 tid);
void fabric_trap_fini(struct fabric_node *n);

/* node.c: a counter of a VL; NULL: it is 0 */
u64 *fabric_vl_counter(struct fabric_port *p, u32 vl, enum fabric_vl_counter c);

/* pma.c */
bool fabric_pma_request(struct fabric_port *self, u8 *mad);

/* capture.c */
void fabric_capture_packet(const struct fabric_port *at, const struct wire_packet *p, bool out);
void fabric_capture_forget(struct fabric_port *p);

static inline void fabric_count(struct fabric_port *p, enum fabric_counter c)
{
	p->ctr[c]++;
}

/* Counts a packet that is discarded at an output port. */
static inline void fabric_count_discard(struct fabric_port *out, enum fabric_counter why)
{
	fabric_count(out, FABRIC_CTR_XMIT_DISCARDS);
	fabric_count(out, why);
}

/* Reports an event to the watcher. */
static inline void fabric_notify(struct fabric *f, enum fabric_event_type type, const struct fabric_port *p,
				 const char *text)
{
	struct fabric_event ev = { .type = type, .port = p, .text = text };

	if (f->watch && !f->closing)
		f->watch(f->watch_ctx, &ev);
}

/* Devices of Mellanox, and those of Bull with its chips, support MLNXExtendedPortInfo. */
static inline bool fabric_is_mlnx(const struct fabric_node *n)
{
	return n->vendid == 0x0002c9 || n->vendid == 0x00119f;
}

static inline struct fabric_port *fabric_self(struct fabric_port *in)
{
	return in->node->sw ? &in->node->ports[0] : in;
}

/* Is @lid a LID of the port? */
static inline bool fabric_has_lid(const struct fabric_port *p, u16 lid)
{
	return p->info->lid && lid >= p->info->lid && lid < p->info->lid + BIT(p->info->lmc);
}

#endif

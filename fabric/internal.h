/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the fabric room: nodes, ports and queues, grouped by the file that implements each part. */
#ifndef MUSLIN_FABRIC_INTERNAL_H
#define MUSLIN_FABRIC_INTERNAL_H

#include "emu/lib/rng.h"
#include "emu/wire/hdr.h"
#include "emu/wire/smp.h"
#include "fabric/fabric.h"

#define FABRIC_VL_BLOCKS     4096   /* 64-byte blocks of buffer behind each data VL of a port */
#define FABRIC_PKEYS         32     /* PartitionEnforcementCap of a switch's external port */
#define FABRIC_MFT_LIDS      1024   /* MulticastFDBCap */
#define FABRIC_LFT_LIDS      0xc000 /* LinearFDBCap */
#define FABRIC_VLARB_ENTRIES 64     /* of each priority, at most */
#define FABRIC_HOLD_SMPS     256    /* VL15 packets that wait for a CA's MAD layer */
#define FABRIC_NO_LIMIT      19     /* LifeTimeValue and HOQLife over this: for ever */

/* Queues of an output port and per-VL counts: allocated when a port first carries data. */
struct fabric_vls {
	struct list q[16]; /* packets that wait for this output, by output VL */
	u32 queued[16];
	u16 active;       /* VLs with packets */
	u16 stalled;      /* VLs in VLStalled */
	u8 hoq_drops[16]; /* consecutive ones */
	u64 stall_until[16];
	u64 wait_since; /* 0: nothing waits */
	u8 turn[2];     /* place in the arbitration tables */
	s32 weight[2];  /* what is left of the entry, in 64-byte units */
	s32 high_left;  /* what is left of LimitOfHighPriority, in bytes; see arb.c */
	u8 rr;          /* round robin over VLs in no table */
	u64 rx_pkts[16], rx_words[16], xmit_wait[16];
};

struct fabric_vlarb {
	u8 vl[2][FABRIC_VLARB_ENTRIES], weight[2][FABRIC_VLARB_ENTRIES]; /* [0] low, [1] high */
};

struct fabric_hold {
	struct list q;
	u32 n;
};

/* A CA port's own part. */
struct fabric_ca {
	struct wire_port wire;
	struct fabric_port *port;
	struct fabric_hold hold[2]; /* packets that the user refused: data, mad */
	bool want_ready;            /* a send met -EAGAIN */
	struct fabric_ip ip;
};

struct fabric_taps;

struct fabric_port {
	struct fabric_node *node;
	struct fabric_port *peer; /* at the other end of the cable; NULL: no cable */
	struct fabric_vls *vls;
	struct fabric_vlarb *arb;
	struct fabric_ca *ca;
	struct fabric_capture *capture;
	struct fabric_taps *taps; /* faults that look at what arrives here; NULL: none */
	u8 (*sl2vl)[8];           /* by input port, 16 nibbles; NULL: SL modulo VLs */
	u16 *pkeys;               /* FABRIC_PKEYS of them; NULL: 0xffff alone. A CA's are in wire.attr */
	struct list kick;         /* in fabric.kicked: credits have come back */
	struct list wait;         /* in fabric.waiting: packets are queued */
	struct list down;         /* in fabric.downs: goes down once the answer has left */
	u8 down_phys;
	u32 rx_blocks[16]; /* of this port's input buffers, taken */
	u64 ctr[FABRIC_CTR_NUM];
	u64 ctr_base[FABRIC_CTR_NUM]; /* what PortCounters counts from: it is cleared apart from the extended ones */
	u64 guid;
	u8 num;
	bool unplugged;
	u8 lanes_limit, speed_limit; /* what a fault leaves of the link; 0: all */
	u8 mtu_limit;                /* and of the port: IBTA code */
	u16 starved;                 /* VLs that arbitration never serves */
	u32 pulled;                  /* faults that hold the cable out */
	/* PortInfo */
	u8 state, phys;
	u8 down_default;         /* 1 Sleep, 2 Polling */
	u8 lanes_cap, speed_cap; /* lanes; enum wire_speed */
	u8 width_enabled, speed_enabled, speed_ext_enabled;
	u8 lanes, speed; /* active */
	u8 mtu;          /* NeighborMTU */
	u8 oper_vls;     /* code */
	u8 nvls;         /* count for the code */
	u8 vl_high_limit, hoq_life, vl_stall_count;
	u8 enforce_in : 1, enforce_out : 1, filter_in : 1, filter_out : 1;
	u8 mkey_protect, lmc, sm_sl, subnet_timeout, phy_err_thr, phy_errors, overrun_thr, mc_trap_suppress, led,
		init_type;
	u16 lid, sm_lid, mkey_lease, mkey_viol, pkey_viol, qkey_viol;
	u32 cap_mask;
	u64 mkey, prefix;
	u64 lease_end; /* 0: no lease runs */
};

struct fabric_switch {
	u8 *lft;
	u32 lft_len; /* LIDs, a multiple of LFT_PER_BLOCK */
	u16 *mft;    /* [lid - 0xc000][position] */
	u32 mft_len; /* LIDs */
	u8 positions;
	u16 lft_top, mft_top;
	u8 life_time, default_port, mc_primary, mc_not_primary, state_change, opt_sl2vl;
};

struct fabric_trap;

struct fabric_node {
	char *binding; /* a host beside the fabric; NULL */
	struct fabric *f;
	u32 index;
	u8 type, nports;
	u16 devid;
	u32 vendid;
	u64 guid, sysguid;
	struct fabric_port *ports; /* [0..nports] */
	struct fabric_switch *sw;
	struct list traps;
	char name[FABRIC_NAME_MAX];
	char desc[NODEDESC_SIZE];
};

/* A packet that has been put on a link and not yet been looked at by the port at its end. */
struct fabric_flight {
	struct wire_packet *p;
	struct fabric_port *to;
	u32 tap; /* faults there that have seen it already; not 0: nothing there has counted it */
};

struct fabric {
	struct loop *loop;
	struct rng rng;
	struct fabric_node *nodes;
	u32 nnodes;
	struct fabric_port *port_pool;
	struct now now;
	struct fabric_flight *flight; /* ring, a power of two */
	u32 flight_cap, flight_head, flight_n;
	struct list kicked, waiting, downs;
	struct loop_task task;
	struct loop_timer timer; /* HOQLife and lifetime */
	struct list faults, faults_due;
	struct loop_task fault_task;
	u64 faults_armed, seed;
	void (*watch)(void *ctx, const struct fabric_event *ev);
	void *watch_ctx;
	bool closing;
	u8 mtu_cap, vl_cap; /* codes */
	u64 next_tid;
};

/* fabric.c: tells whoever watches */
void fabric_tell(struct fabric *f, enum fabric_event_type type, const struct fabric_port *p,
		 const struct fabric_fault *ft, const char *text);

/* relay.c: packets through links and switches */
/* @p arrives at @to; of its faults @tap have seen it already. */
void fabric_flight_push(struct fabric *f, struct fabric_port *to, struct wire_packet *p, u32 tap);
void fabric_relay_run(struct loop_task *t, struct now now);
/* Puts @p on @out's link; VL, credits and state have been seen to. Returns the port where it arrives. */
struct fabric_port *fabric_relay_transmit(struct fabric_port *out, struct wire_packet *p, u8 vl);
/* Gives a VL15 packet to @out's link, or drops it when the link is down. Takes the packet. */
void fabric_relay_send_vl15(struct fabric_port *out, struct wire_packet *p);
/* Forwards a packet by its DLID, as if it had come in by @in (a switch's port, 0: its own). Takes the packet. */
void fabric_relay_route(struct fabric_node *sw, struct fabric_port *in, struct wire_packet *p);
/* Takes @p off the books of the input buffer that holds it. */
void fabric_relay_release(struct fabric_port *in, u8 vl, const struct wire_packet *p);
void fabric_relay_drop(struct fabric_port *in, struct wire_packet *p);
u8 fabric_relay_vl(const struct fabric_port *in, const struct fabric_port *out, u8 sl);
u16 *fabric_relay_pkeys(struct fabric_port *p, u32 *n);

static inline u32 fabric_blocks(const struct wire_packet *p)
{
	return (wire_packet_link_len(p) + 2 + 63) / 64;
}

static inline bool fabric_credit(const struct fabric_port *out, u8 vl, const struct wire_packet *p)
{
	return out->peer->rx_blocks[vl] + fabric_blocks(p) <= FABRIC_VL_BLOCKS && likely(!(out->starved & BIT(vl)));
}

/* arb.c: output queues */
int fabric_arb_vls(struct fabric_port *p); /* allocates p->vls; 0 or -ENOMEM */
/* Queues @p at @out on @vl; it stays on @p->in_port's and @p->vl's books. */
void fabric_arb_queue(struct fabric_port *out, struct wire_packet *p, u8 vl, struct now now);
/* Transmits what credits permit. */
void fabric_arb_run(struct fabric_port *out);
void fabric_arb_kick(struct fabric_port *out);
u64 fabric_arb_waited(const struct fabric_port *out); /* ticks of PortXmitWait that are not counted yet */
void fabric_arb_account(struct fabric_port *out);     /* counts them */
void fabric_arb_flush(struct fabric_port *out, enum fabric_counter why);
void fabric_arb_timer(struct loop_timer *t, struct now now);

/* ca.c */
int fabric_ca_init(struct fabric_port *p, const struct fabric_topology *t, const struct fabric_topology_node *n);
void fabric_ca_fini(struct fabric_port *p);
/* A packet has arrived at a CA port by its link (or by loopback, in which case it is on nobody's books). */
void fabric_ca_receive(struct fabric_port *p, struct wire_packet *pkt, bool charged);
void fabric_ca_run_held(struct fabric_port *p);
void fabric_ca_sync(struct fabric_port *p); /* copies PortInfo into wire.attr */
void fabric_ca_event(struct fabric_port *p, enum wire_port_event e);
void fabric_ca_deliver_mad(struct fabric_port *p, struct wire_packet *pkt, bool charged);

/* link.c */
void fabric_link_update(struct fabric_port *p); /* brings up what both ends permit */
void fabric_link_lose(struct fabric_port *p);   /* the link is no more; both ends go Down */
void fabric_link_state(struct fabric_port *p, u8 state);

/* mgmt.c: MADs that arrive at a node; smi.c: the directed route */
u8 *fabric_mad_data(struct wire_packet *p); /* the MAD, writable; NULL when it is none or memory is short */
/* A packet for QP0/QP1 at the node's own port @p (switch: port 0), having come in by @in. Takes the packet. */
void fabric_mgmt_receive(struct fabric_port *p, struct fabric_port *in, struct wire_packet *pkt, bool charged);
/* An SMP that has reached the node: to its SMA, or to the MAD layer of a CA. Takes the packet. */
void fabric_smp_deliver(struct fabric_port *self, struct fabric_port *in, struct wire_packet *p, u8 *mad);
/* The next step of a directed-route SMP at this node. Takes the packet. */
void fabric_smi_step(struct fabric_node *n, struct fabric_port *in, struct wire_packet *pkt);
/* Sends an SMP or GMP of the node: by its own port's LID routing. Takes the packet. */
void fabric_mgmt_send(struct fabric_port *p, struct wire_packet *pkt);
struct wire_packet *fabric_mgmt_packet(u16 slid, u16 dlid, u8 sl, u32 qpn); /* with an empty MAD */

/* sma.c, sma_port.c, sma_table.c */
void fabric_sma_run_downs(struct fabric *f); /* takes ports down that a Set has asked for */
struct fabric_sma {
	struct fabric_node *n;
	struct fabric_port *in;   /* by which the SMP came; what LocalPort says */
	struct fabric_port *self; /* whose LID and M_Key count: port 0 of a switch, the CA's port */
	u8 *mad, *data;
	bool set, mkey_ok;
	u32 mod;
	u16 trap_flags; /* of trap 144, when the Set calls for one */
	bool trap;
};
/* Answers the request in place. False: no answer is due. */
bool fabric_sma_request(struct fabric_port *self, struct fabric_port *in, u8 *mad, u16 slid);
u16 fabric_sma_port_info(struct fabric_sma *s);
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
void fabric_trap_key(struct fabric_port *self, const struct wire_port_violation *v);
void fabric_trap_switch_pkey(struct fabric_port *at, const struct wire_packet *p);
void fabric_trap_port(struct fabric_port *p, u16 trap);         /* 129 - 131 */
bool fabric_trap_repress(struct fabric_node *n, const u8 *mad); /* false: of none that the node has sent */
void fabric_trap_fini(struct fabric_node *n);

/* pma.c */
bool fabric_pma_request(struct fabric_port *self, u8 *mad);

/* fault*.c; the rest is in tap.h. False: a fault has taken the packet, which had been seen by @first of them. */
bool fabric_fault_pass(struct fabric_port *in, struct wire_packet *p, u32 first);
void fabric_fault_run(struct loop_task *t, struct now now);
void fabric_fault_fini(struct fabric *f);

/* capture.c */
void fabric_capture_packet(struct fabric_port *at, const struct wire_packet *p, bool out);
void fabric_capture_forget(struct fabric_port *p);

static inline void fabric_count(struct fabric_port *p, enum fabric_counter c)
{
	p->ctr[c]++;
}

static inline struct wire_lrh *fabric_lrh(const struct wire_packet *p)
{
	return (struct wire_lrh *)p->hdr;
}

static inline struct wire_bth *fabric_bth(const struct wire_packet *p)
{
	return (struct wire_bth *)(p->hdr + p->bth_off);
}

static inline struct fabric_port *fabric_self(struct fabric_port *in)
{
	return in->node->sw ? &in->node->ports[0] : in;
}

#endif

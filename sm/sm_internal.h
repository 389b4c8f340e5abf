/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Subnet manager: state, and declarations by the file that implements them. */
#ifndef MUSLIN_SM_INTERNAL_H
#define MUSLIN_SM_INTERNAL_H

#include "emu/lib/list.h"
#include "emu/lib/log.h"
#include "emu/lib/loop.h"
#include "emu/lib/rng.h"
#include "emu/wire/gid.h"
#include "emu/wire/mad.h"
#include "emu/wire/sa.h"
#include "emu/wire/smp.h"
#include "sm/partition.h"
#include "sm/sm.h"

#define SM_LIDS        0xc000 /* LIDs below the multicast range */
#define SM_MLIDS_MAX   0x3fff
#define SM_PORT_GROUPS 4096 /* of which one port may be a member, so that no host can take all MLIDs */
#define SM_NONE        (~0u)
#define SM_PKEYS_MAX   256 /* P_Keys of one port */
#define SM_LFT_UNKNOWN 254 /* in lft_set: entry of the switch is unknown */

struct sm_node;

/* A port: of a CA or router, or external port n or management port 0 of a switch. */
struct sm_port {
	struct sm_node *node;
	struct sm_port *peer;  /* by the last complete discovery */
	struct sm_port *found; /* by the current discovery */
	u64 guid;              /* of end ports */
	u16 lid;               /* of end ports; 0 while it has none */
	u8 lmc;
	u16 groups; /* multicast groups of which it is a member */
	u8 num;
	bool trap64_sent; /* reported by trap 64 */
	bool has_info;
	u8 pkeys_sent; /* blocks of the P_Key table known to be set */
	bool qos_sent;
	u16 npkeys;
	u16 *pkeys; /* of end ports */
	u32 seen;   /* sweep that got its PortInfo */
	u8 info[PORTINFO_SIZE];
};

struct sm_node {
	struct list link; /* sm.nodes */
	struct sm_node *hash_next;
	u64 guid;
	u8 type, nports, hops;
	bool has_desc, desc_stale;
	u32 seen; /* sweep that saw it */
	u32 sw;   /* index among the switches of the last routing; SM_NONE: none */
	u8 path[SMP_PATH_SIZE];
	u8 info[NODEINFO_SIZE];
	u8 desc[NODEDESC_SIZE];
	struct sm_port *ports; /* [0..nports] */
	/* switches */
	u8 swinfo[SWITCHINFO_SIZE];
	u8 *lft, *lft_set; /* wanted, and as last set; sm.lft_len bytes */
	u32 lft_len;
	u16 *mft, *mft_set; /* [mlid index * positions + position] */
	u32 mft_len;        /* multicast LIDs */
	bool mft_unknown;
};

static inline bool sm_node_is_switch(const struct sm_node *n)
{
	return n->type == NODE_TYPE_SWITCH;
}

static inline u8 sm_port_state(const struct sm_port *p)
{
	return wire_get(p->info, PORTINFO_STATE);
}

/* An end port: of a CA or router, or port 0 of a switch. */
static inline bool sm_port_is_end(const struct sm_port *p)
{
	return !sm_node_is_switch(p->node) || !p->num;
}

/* smp.c: SMP requests and responses, with a limit of outstanding ones */
struct sm_smp {
	struct list link;
	struct sm_node *node; /* destination: its directed route is used */
	struct sm_port *port; /* for fn */
	u8 hop;               /* one more port at the end of the path; 0: none */
	u8 method;
	u16 attr;
	u16 lid; /* != 0: LID routed instead */
	u32 mod;
	u32 arg; /* for fn */
	/* @mad NULL: timeout. Its data starts at SMP_DATA. */
	void (*fn)(struct sm *sm, struct sm_smp *smp, const u8 *mad);
	u8 data[SMP_DATA_SIZE];
};
/* A zeroed Get of @attr at @node; NULL: out of memory (counted as an error of the sweep). */
struct sm_smp *sm_smp_new(struct sm *sm, struct sm_node *node, u16 attr, u32 mod,
			  void (*fn)(struct sm *sm, struct sm_smp *smp, const u8 *mad));
void sm_smp_queue(struct sm *sm, struct sm_smp *smp);
/*
 * Runs a phase: @next is called while SMPs may be sent, queues at most a few and returns false after the last;
 * @done is called after all responses. @next may be NULL.
 */
void sm_smp_phase(struct sm *sm, bool (*next)(struct sm *sm), void (*done)(struct sm *sm));
/* A phase over every port: @fn may queue SMPs. */
void sm_smp_visit(struct sm *sm, void (*fn)(struct sm *sm, struct sm_port *p), void (*done)(struct sm *sm));
/*
 * For @next: calls @fn for the ports of one node per call, from the first node of the phase on; false after the last.
 */
bool sm_smp_each_node(struct sm *sm, void (*fn)(struct sm *sm, struct sm_port *p));
void sm_smp_rewind(struct sm *sm); /* to the first node */
void sm_smp_answer(struct sm *sm, struct sm_smp *smp, const u8 *mad);
void sm_smp_send_plain(struct sm *sm, const u8 *mad, const struct mad_addr *to);
void sm_smp_init(struct sm *sm);
void sm_smp_forget(struct sm *sm);
void sm_smp_fini(struct sm *sm);
u16 sm_smp_status(const u8 *mad);

/* subnet.c: nodes and ports, lookup by GUID and LID, and what a port can do */
struct sm_node *sm_node_find(const struct sm *sm, u64 guid);
struct sm_node *sm_node_add(struct sm *sm, const u8 *info);
void sm_node_remove(struct sm *sm, struct sm_node *n);
struct sm_port *sm_port_by_guid(const struct sm *sm, u64 guid);
struct sm_port *sm_port_by_lid(const struct sm *sm, u32 lid);
/* With another GUID than before it is another port. 0, or the GUID of another port: it has none. */
void sm_port_set_guid(struct sm *sm, struct sm_port *p, u64 guid);
void sm_port_leave(struct sm *sm, struct sm_port *p); /* it loses LID, memberships and subscriptions; trap 65 */
const char *sm_node_name(const struct sm_node *n);    /* a static buffer */
void sm_subnet_fini(struct sm *sm);
void sm_subnet_invalidate(struct sm *sm); /* another SM may have been master: tables and PortInfo are to be set again */
/* The port of a switch to which @p is cabled, or NULL; for port 0 of a switch, that port. */
struct sm_port *sm_port_switch(const struct sm_port *p);
/* Effective MTU and rate of an end port: enum wire_mtu, enum wire_rate. */
u8 sm_port_mtu(const struct sm_port *p);
u8 sm_port_rate(const struct sm_port *p);

/* discovery.c */
void sm_discovery_start(struct sm *sm, void (*done)(struct sm *sm));

/* sweep.c */
void sm_sweep_request(struct sm *sm); /* heavy sweep after the current activity */
/* As sm_sweep_request(), for a trap and rate limited: after a burst at most one sweep a second. */
void sm_sweep_for_trap(struct sm *sm);
void sm_sweep_mcast(struct sm *sm); /* schedules an update of the MFTs */
void sm_sweep_stage(struct sm *sm, enum sm_stage stage);
void sm_sweep_error(struct sm *sm, const struct sm_smp *smp, const char *what);
void sm_sweep_init(struct sm *sm);
void sm_sweep_fini(struct sm *sm);

/* lid.c */
void sm_lid_assign(struct sm *sm);
void sm_lid_release(struct sm *sm, struct sm_port *p);

/* bringup.c */
void sm_bringup_start(struct sm *sm, void (*done)(struct sm *sm)); /* configure and arm, then activate */

/* route.c */
struct sm_edge {
	u32 from, to; /* switches */
	u8 port, to_port;
};
struct sm_graph {
	u32 n, nedges;
	struct sm_node **node; /* [n] */
	struct sm_edge *edge;  /* sorted by from, then port */
	u32 *first;            /* [n + 1] edges of each switch */
	u32 *hosts;            /* [n] end ports of CAs at the switch */
	u16 *rank;             /* [n] up/down: distance from the roots */
	u64 *far;              /* [n] sum of distances to all hosts */
};
/* Result of an engine for one destination switch: each candidate edge leads to a switch of smaller dist. */
struct sm_route {
	struct sm_graph *g;
	u16 *dist;  /* [n]; 0xffff: unreachable */
	u8 *cand;   /* [nedges] */
	u32 *order; /* [n] reached switches by ascending dist */
	u32 reached;
	u16 *tmp;
	u32 *queue;
};
struct sm_engine {
	const char *name;
	int (*setup)(struct sm_graph *g); /* may be NULL */
	void (*prepare)(struct sm_route *r, u32 to);
};
extern const struct sm_engine sm_route_minhop, sm_route_updn;
int sm_graph_build(struct sm *sm, struct sm_graph *g);
int sm_graph_alloc(struct sm_graph *g, u32 n, u32 nedges);
void sm_graph_index(struct sm_graph *g); /* fills first[] from edge[] */
void sm_graph_fini(struct sm_graph *g);
void sm_route_bfs(struct sm_route *r, u32 to); /* dist and order by hops */
int sm_route_init(struct sm_route *r, struct sm_graph *g);
void sm_route_fini(struct sm_route *r);
/* A destination: LIDs of the ports at switch @sw leave it by @port (0: the switch itself). */
struct sm_dest {
	u32 sw;
	u16 lid;
	u8 port;
};
/*
 * Fills @lft[sw][lid] for all @dests (sorted by sw). With @deps the possible channel dependencies are collected.
 * 0, -ENOMEM.
 */
struct sm_deps;
int sm_route_fill(struct sm_graph *g, const struct sm_engine *e, const struct sm_dest *dests, u32 ndests, u8 **lft,
		  struct sm_deps *deps);
void sm_route_all(struct sm *sm);
bool sm_route_push(struct sm *sm); /* queues changed blocks; false after the last one */
void sm_route_reset(struct sm_node *n);
/* Grows *@table from @old to @len bytes, filled with @fill; false: out of memory. */
bool sm_route_grow(void *table, size_t old, size_t len, u8 fill);
/* Output port of @lid at @sw; 255: none. */
u8 sm_route_port(const struct sm_node *sw, u16 lid);

/* route_file.c */
struct sm_lfts *sm_lfts_parse(const char *text, const char *file, char *err, size_t err_len);
void sm_lfts_destroy(struct sm_lfts *l);                             /* NULL is ignored */
int sm_lfts_apply(struct sm *sm, const struct sm_lfts *l, u8 **lft); /* overrides entries of an engine; 0, -ENOMEM */

/* route_cycle.c */
struct sm_deps *sm_deps_create(const struct sm_graph *g);
void sm_deps_destroy(struct sm_deps *d);
void sm_deps_add(struct sm_deps *d, const struct sm_route *r, const u8 *active);
bool sm_deps_cyclic(const struct sm_deps *d);

/* pkey.c */
void sm_pkey_assign(struct sm *sm);
void sm_pkey_push(struct sm *sm, struct sm_port *p);                            /* queues blocks of its table */
bool sm_pkey_has(const struct sm_port *p, u16 pkey);                            /* by its low 15 bits */
bool sm_pkey_match(const struct sm_port *a, const struct sm_port *b, u16 pkey); /* may they communicate? */
u16 sm_pkey_common(const struct sm_port *a, const struct sm_port *b);           /* first one they may use; 0: none */
bool sm_pkey_enforced_at(const struct sm *sm, const struct sm_port *p); /* at the switch port of a CA or router */

/* qos.c */
void sm_qos_push(struct sm *sm, struct sm_port *p); /* queues its tables */
void sm_qos_sl2vl(const struct sm *sm, const struct sm_port *out, u8 *table);
void sm_qos_vlarb(const struct sm *sm, const struct sm_port *p, u8 block, u8 *table);
u8 sm_qos_oper_vls(const struct sm_port *p);

/* mcast.c */
struct sm_member {
	struct list link;
	struct sm_port *port;
	u8 join_state;
	bool proxy;
};
struct sm_group {
	struct list link; /* sm.groups, by MLID */
	struct list members;
	struct wire_gid mgid;
	u16 mlid;
	u32 qkey;
	u8 mtu, rate, life, sl, tclass, hop_limit, scope;
	u16 pkey;
	u32 flow;
	bool well_known; /* kept without members */
	bool dirty;
	u32 computed; /* sm.mcast_computed when its tree was computed last */
};
struct sm_group *sm_group_find(const struct sm *sm, const struct wire_gid *mgid);
struct sm_group *sm_group_by_mlid(const struct sm *sm, u16 mlid);
struct sm_group *sm_group_create(struct sm *sm, const struct wire_gid *mgid); /* NULL: no MLID or memory */
struct sm_member *sm_group_member(const struct sm_group *g, const struct sm_port *p);
struct sm_member *sm_group_join(struct sm *sm, struct sm_group *g, struct sm_port *p, u8 join_state);
void sm_group_leave(struct sm *sm, struct sm_group *g, struct sm_member *m, u8 join_state);
/* Deletes a group without full members, unless it belongs to a partition (15.2.5.17). */
void sm_group_reap(struct sm *sm, struct sm_group *g);
void sm_mcast_init(struct sm *sm); /* the groups of the partitions */
void sm_mcast_fini(struct sm *sm);
void sm_mcast_resign(struct sm *sm); /* no longer the master: its ports join at the next one */
void sm_mcast_forget_port(struct sm *sm, struct sm_port *p);

/* mcast_route.c */
/* Computes the trees of all groups, or of those that have changed. A later change sets sm.want_mcast again. */
void sm_mcast_route(struct sm *sm, bool all);
void sm_mcast_push(struct sm *sm, struct sm_port *p); /* queues changed blocks of a switch */
void sm_mcast_pushed(struct sm *sm);                  /* all blocks are set: sends the responses that wait for them */

/* sminfo.c */
struct sm_other { /* another subnet manager */
	u64 guid;
	struct sm_port *port; /* NULL: its node was removed after the survey */
	u16 lid;
	u8 priority, state;
	u32 act_count;
};
void sm_sminfo_receive(struct sm *sm, const u8 *mad, const struct mad_addr *from);
void sm_sminfo_survey(struct sm *sm, void (*done)(struct sm *sm)); /* Get(SMInfo) from every port with IsSM */
bool sm_sminfo_elect(struct sm *sm); /* master election after the survey: true when this SM is or becomes master */
void sm_sminfo_forget_node(struct sm *sm, const struct sm_node *n); /* it is removed: no other SM is at its ports */
void sm_sminfo_init(struct sm *sm);
void sm_sminfo_stop(struct sm *sm);
void sm_sminfo_fill(const struct sm *sm, u8 *info);

/* trap.c */
void sm_trap_receive(struct sm *sm, const u8 *mad, const struct mad_addr *from);
void sm_trap_port(struct sm *sm, u16 trap, const struct sm_port *p);   /* 64, 65 */
void sm_trap_group(struct sm *sm, u16 trap, const struct sm_group *g); /* 66, 67 */

enum sm_phase {
	SM_IDLE,
	SM_HEAVY,
	SM_LIGHT,
	SM_MCAST
};

struct sm {
	struct loop *loop;
	const struct sm_transport_ops *ops;
	void *transport;
	struct sm_config cfg;
	char name[32];
	struct rng rng;
	bool running;

	/* subnet.c */
	struct list nodes;
	u32 nnodes, nhash;
	struct sm_node **hash;
	struct sm_port **guid_hash; /* open addressing by port GUID */
	u32 guid_cap, guid_used;
	struct sm_port *by_lid[SM_LIDS];
	struct sm_port *self;
	u16 max_lid;

	/* smp.c */
	struct list smp_queue, smp_sent, smp_free;
	u32 outstanding;
	u64 tid;
	struct loop_task pump;
	bool (*next)(struct sm *sm);
	void (*visit)(struct sm *sm, struct sm_port *p);
	void (*phase_done)(struct sm *sm);

	/* sweep.c */
	enum sm_phase phase;
	void (*discovered)(struct sm *sm);
	void (*brought_up)(struct sm *sm);
	u32 sweep; /* number of the current discovery */
	bool want_heavy, want_mcast, changed;
	bool look_soon; /* switches have got its LID in this sweep: before, none sent a trap to it */
	u32 errors, retry_wait;
	u64 sweep_start, smps_start;
	struct loop_timer timer;
	struct loop_timer trap_timer; /* delays the sweep of a trap (rate limit) */
	u64 trap_credit_at;           /* when the token bucket of trap sweeps is full again */
	struct loop_task kick;
	struct sm_status st;

	/* iterators of the phases */
	struct sm_node *it_node;
	u32 it_block, step;
	u32 lft_len;
	const struct sm_engine *engine;
	struct sm_graph graph;

	struct sm_lfts *lfts;                     /* static ones; NULL: none */
	struct sm_partitions *parts, *next_parts; /* next: used from the next heavy sweep on; NULL: unchanged */
	bool parts_checked;                       /* for members by the GUID of a node */

	/* mcast.c */
	struct list groups;
	struct sm_group *by_mlid[SM_MLIDS_MAX + 1];
	u32 mlid_top;             /* one past the highest index ever in use */
	bool mcast_group_deleted; /* a group was deleted since the last MFT update */
	u32 mcast_computed;       /* how often the trees were computed, and the last of them whose MFTs were set */
	u32 mcast_set;

	/* sminfo.c */
	u8 state;
	u32 act_count;
	struct sm_other *others;
	u32 nothers, others_cap;
	u64 master_guid;
	u16 master_lid;
	u32 poll_misses;
	bool handing_over, poll_out, reregister;
	bool ack_due; /* the handover was accepted, ACKNOWLEDGE may still arrive */
	struct loop_timer poll;
	u64 handover_to, refused_by;
	u16 handover_lid;

	/* sa/ */
	struct list subscribers, services, deferred, reports;
	u32 nsubscribers, nservices, nreports, ndeferred;
	u32 service_id;
	struct loop_timer lease;
};

static inline bool sm_is_master(const struct sm *sm)
{
	return sm->state == SM_STATE_MASTER;
}

void sm_set_state(struct sm *sm, u8 state);

#define sm_log(sm, level, ...) log_at(level, (sm)->name, __VA_ARGS__)
/* Log lines caused by a peer: rate limited by its LID. */
#define sm_log_peer(sm, level, lid, ...) log_from(level, (sm)->name, lid, __VA_ARGS__)

#endif

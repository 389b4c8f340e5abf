/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Subnet manager and subnet administration of one port (IBTA 14, 15). */
#ifndef MUSLIN_SM_H
#define MUSLIN_SM_H

#include "emu/lib/loop.h"
#include "sm/transport.h"

enum sm_event {
	SM_EVENT_STATE,     /* the SMInfo state has changed */
	SM_EVENT_SUBNET_UP, /* a heavy sweep ended, and every port with a link is Active */
	SM_EVENT_SWEEP,     /* a sweep ended with missing responses; another one follows */
	SM_EVENT_STAGE,     /* a heavy sweep has come to another stage */
};

/*
 * Stages of a heavy sweep. Those after the routes queue their SMPs one after the other, without waiting for the last
 * responses of the stage before; activation waits for all.
 */
#define SM_STAGE_LIST(S)          \
	S(DISCOVERY, "discovery") \
	S(ROUTES, "routes")       \
	S(SWITCHES, "switches")   \
	S(LFTS, "LFTs")           \
	S(MFTS, "MFTs")           \
	S(PORTS, "ports")         \
	S(ACTIVATION, "activation")
#define SM_STAGE_ENUM(stage, name) SM_STAGE_##stage,
enum sm_stage {
	SM_STAGE_LIST(SM_STAGE_ENUM) SM_STAGES
};
#undef SM_STAGE_ENUM
const char *sm_stage_name(enum sm_stage stage);

struct sm_status {
	u8 state; /* enum wire_sm_state */
	u8 priority;
	u64 guid;
	u16 lid, master_lid; /* of the own port and of the master */
	enum sm_stage stage; /* of the last heavy sweep */
	u32 heavy_sweeps, light_sweeps;
	u64 sweep_ns; /* time of the last heavy sweep */
	u32 sweep_smps, sweep_errors;
	u32 nodes, switches, cas, ports_active;
	u32 groups, subscribers, services, partitions;
	u64 smps, sa_requests, sa_errors, traps;
	u64 bad_traps;           /* of these, notices not about their sender, which are ignored */
	u64 traps_coalesced;     /* of these, traps for which a sweep was pending already */
	u64 sminfo_refused;      /* SubnSet(SMInfo) without the SM_Key, or not allowed in the state */
	u64 sa_key_errors;       /* requests with a wrong SM_Key, which are discarded */
	u64 sa_deferred_dropped; /* join responses: too many waited for the MFTs, or the SM is not master any more */
	const char *routing;     /* engine of the last sweep */
	bool subnet_up, sweeping;
};

struct sm_port;
struct sm_group;
struct mad_addr;

/* Operations of subnet administration. The SM calls init() first and fini() last. */
struct sm_sa_ops {
	void (*init)(struct sm *sm);
	void (*fini)(struct sm *sm);
	/* A request of class SubnAdm, after RMPP reassembly. */
	void (*receive)(struct sm *sm, const u8 *data, u32 len, const struct mad_addr *from);
	void (*flush)(struct sm *sm); /* the MFTs are set: sends the join responses that wait for them */
	/*
	 * No longer the master: drops these, since the next master has no such member, and subscriptions and services,
	 * which are repeated at the next master after its client reregistration.
	 */
	void (*resign)(struct sm *sm);
	void (*forget_port)(struct sm *sm,
			    struct sm_port *p); /* removes the event subscriptions of a port that left the subnet */
	/*
	 * Forwards @notice of NOTICE_SIZE bytes to the subscribers that share a partition with its subject: a port, or,
	 * if that is NULL, a multicast group (IBTA 13.4.11).
	 */
	void (*report)(struct sm *sm, const u8 *notice, const struct sm_port *port, const struct sm_group *group);
	/* A Report was answered or not sent. False: @cookie is not that of a Report. */
	bool (*report_sent)(struct sm *sm, void *cookie);
};

/* Zero selects the default given here. sm_create() copies the strings. */
struct sm_config {
	const char *name;            /* prefix of log lines; "sm" */
	u8 priority;                 /* 0 - 15 */
	u64 sm_key;                  /* of SMInfo; 1, as in OpenSM */
	u64 sa_key;                  /* SM_Key of trusted SA requests; 1, as in OpenSM and saquery */
	u64 mkey;                    /* M_Key to set and to send; 0 */
	u64 subnet_prefix;           /* fe80::/64 */
	const char *partitions;      /* text in the format of OpenSM's partitions.conf; NULL: all ports full members */
	const char *partitions_file; /* its name in errors */
	const char *routing;         /* "minhop", "updn", "auto" (min-hop unless it could deadlock) */
	const char *lfts;            /* text of static forwarding tables, as dump_fts prints them; NULL: none */
	const char *lfts_file;       /* its name in errors */
	u8 lmc;                      /* of CA ports, 0 - 7 */
	u8 packet_life;              /* code of PacketLifeTime in paths and groups: 4.096 us * 2^n; 18, 1 s */
	u32 sweep_ms;                /* from one light sweep to the next; 10000 */
	u32 poll_ms;                 /* polling interval of a standby; 1000 */
	u32 timeout_ms, retries;     /* of an SMP; 200, 3 */
	u32 window;                  /* limit of outstanding SMPs; 256 */
	u8 hoq_life; /* code of a switch port's HOQLife and of packets' lifetime in switches; 0x12, 1 s; 20: for ever */
	bool alone;  /* fault: ignores other subnet managers */
	bool qos;    /* program SL-to-VL and VL arbitration */
	const struct sm_sa_ops *sa;                    /* sm_sa of sm/sa/sa.h */
	u64 seed;                                      /* of random numbers */
	void (*event)(void *ctx, enum sm_event event); /* may call sm_status(), no other function of the SM */
	void *ctx;
};

/*
 * @loop and @transport must outlive it. NULL on failure, with one line in @err (of @err_len bytes): "file:line: ..."
 * for invalid partitions or forwarding tables.
 */
struct sm *sm_create(struct loop *loop, const struct sm_transport_ops *ops, void *transport,
		     const struct sm_config *config, char *err, size_t err_len);
void sm_destroy(struct sm *sm); /* NULL is ignored */
void sm_start(struct sm *sm);   /* sets IsSM and starts discovery */
void sm_stop(struct sm *sm);    /* clears IsSM; later responses are ignored */
void sm_sweep(struct sm *sm);   /* a heavy sweep now, if master */
/*
 * The link of the own port has trained: a master sweeps. No trap tells it of another cable, since switches send theirs
 * by the old one.
 */
void sm_link_trained(struct sm *sm);
/*
 * Replaces the partitions, in the same format; @file is the name of the text in errors. A heavy sweep sets them at the
 * ports. Returns 0, or -EINVAL with one line in @err and no change.
 */
int sm_set_partitions(struct sm *sm, const char *text, const char *file, char *err, size_t err_len);
void sm_status(const struct sm *sm, struct sm_status *st);

#endif

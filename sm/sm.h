/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The subnet manager and subnet administration of one port. */
#ifndef MUSLIN_SM_SM_H
#define MUSLIN_SM_SM_H

#include "emu/lib/loop.h"
#include "sm/transport.h"

enum sm_event {
	SM_EVENT_STATE,     /* the SMInfo state has changed */
	SM_EVENT_SUBNET_UP, /* a heavy sweep ended and every port that has a link was made ACTIVE */
	SM_EVENT_SWEEP,     /* a sweep ended with something that did not answer; another one follows */
};

struct sm_status {
	u8 state; /* enum wire_sm_state */
	u8 priority;
	u64 guid;
	u16 lid, master_lid; /* of the own port and of who is master */
	u32 heavy_sweeps, light_sweeps;
	u64 sweep_ns; /* time of the last heavy sweep */
	u32 sweep_smps, sweep_errors;
	u32 nodes, switches, cas, ports_active;
	u32 groups, subscribers, services, partitions;
	u64 smps, sa_requests, sa_errors, traps;
	const char *routing; /* engine of the last sweep */
	bool subnet_up, sweeping;
};

/* Zero means the default given here. Strings are copied by sm_create(). */
struct sm_config {
	const char *name;            /* speaker of log lines; "sm" */
	u8 priority;                 /* 0 - 15 */
	u64 sm_key;                  /* of SMInfo; 1, as OpenSM has it */
	u64 sa_key;                  /* SM_Key of trusted SA requests; 1, as OpenSM and saquery have it */
	u64 mkey;                    /* M_Key to set and to send; 0 */
	u64 subnet_prefix;           /* fe80::/64 */
	const char *partitions;      /* text in the format of OpenSM's partitions.conf; NULL: everybody full member */
	const char *partitions_file; /* what error lines call it */
	const char *routing;         /* "minhop", "updn", "auto" (min-hop unless it could deadlock) */
	u8 lmc;                      /* of CA ports, 0 - 7 */
	u32 sweep_ms;                /* from one light sweep to the next; 10000 */
	u32 poll_ms;                 /* of a standby's questions to the master; 1000 */
	u32 timeout_ms, retries;     /* of an SMP; 200, 3 */
	u32 window;                  /* SMPs under way; 256 */
	u8 hoq_life; /* code of a switch port's HOQLife and of packets' lifetime in switches; 0x12, 1 s; 20: for ever */
	bool alone;  /* takes no notice of other subnet managers: a fault */
	bool qos;    /* program SL-to-VL and VL arbitration */
	u64 seed;    /* of all that is chosen freely */
	void (*event)(void *ctx, enum sm_event event); /* may call sm_status(), nothing else of the SM */
	void *ctx;
};

/*
 * @loop and @transport must outlive it. NULL on failure, with one line in @err (of @err_len bytes): "file:line: ..." for
 * wrong partitions.
 */
struct sm *sm_create(struct loop *loop, const struct sm_transport_ops *ops, void *transport,
		     const struct sm_config *config, char *err, size_t err_len);
void sm_destroy(struct sm *sm); /* NULL is harmless */
void sm_start(struct sm *sm);   /* sets IsSM and starts to discover */
void sm_stop(struct sm *sm);    /* clears IsSM; what is under way is ignored when it comes */
void sm_sweep(struct sm *sm);   /* a heavy sweep now, when master */
/*
 * Other partitions than those of the configuration, in the same format; @file is what error lines call the text. A heavy sweep
 * brings them to the ports. 0; -EINVAL with one line in @err, and nothing has changed.
 */
int sm_set_partitions(struct sm *sm, const char *text, const char *file, char *err, size_t err_len);
void sm_status(const struct sm *sm, struct sm_status *st);

#endif

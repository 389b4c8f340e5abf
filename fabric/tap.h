/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the fabric room: what a fault is made of. */
#ifndef MUSLIN_FABRIC_TAP_H
#define MUSLIN_FABRIC_TAP_H

#include <errno.h>

#include "emu/lib/spec.h"
#include "emu/wire/match.h"
#include "fabric/fault.h"
#include "fabric/internal.h"

#define FAULT_ALTER_MAX 64

/* The keys, in the order of the table in fault.c. */
enum fault_field {
	FAULT_DIR,
	/* which packets */
	FAULT_MATCH,
	/* which of them */
	FAULT_PICK = FAULT_MATCH + WIRE_MATCH_FIELDS,
	/* what is done */
	FAULT_TIME = FAULT_PICK + PICK_FIELDS,
	FAULT_JITTER,
	FAULT_COPIES,
	FAULT_DEPTH,
	FAULT_WHAT,
	FAULT_OFFSET,
	FAULT_SILENT,
	FAULT_BYTES,
	FAULT_STATUS,
	FAULT_TO,
	FAULT_RATE,
	FAULT_FOR,
	FAULT_UP,
	FAULT_DOWN,
	FAULT_TIMES,
	FAULT_LANES,
	FAULT_SPEED,
	FAULT_WITH,
	FAULT_LID,
	FAULT_PORT,
	FAULT_OFF,
	FAULT_INDEX,
	FAULT_PKEY,
	FAULT_LANE,
	FAULT_MTU,
	FAULT_FIELDS
};
static_assert(FAULT_FIELDS <= 64, "one bit for each key");

#define FAULT_MATCH_KEYS WIRE_MATCH_KEYS(FAULT_MATCH)
#define FAULT_PICK_KEYS  PICK_KEYS(FAULT_PICK)

enum fault_what { /* as the names of what= stand */
	FAULT_PAYLOAD,
	FAULT_HEADER,
	FAULT_ICRC,
	FAULT_VCRC
};

struct fault_bytes {
	u8 n, data[FAULT_ALTER_MAX];
};

struct fabric_fault_spec {
	u64 given;
	u8 dir;
	struct wire_match match;
	struct pick pick;
	u64 seed, time, jitter, rate, lasts, up, down;
	u32 copies, depth, times, offset, bytes, lid, port, index, pkey;
	u8 what, lanes, speed, lane, mtu;
	bool silent, off;
	u16 status;
	struct fault_bytes alter;
	char with[SPEC_TEXT_MAX];
};

/* Where a fault looks at packets: at the end of one direction of a link. */
struct fabric_tap {
	struct fabric_fault *fault;
	struct fabric_port *in; /* the port that receives */
	struct list link;       /* fault's taps */
	struct list held;       /* packets, ->queued is when they go on */
	u32 nheld;
	u64 busy_until; /* rate, and delay that keeps the order */
	u64 passed;     /* packets that went by, for reorder */
	struct loop_timer timer;
};

#define FAULT_FLOWS      64 /* a power of two */
#define FAULT_CANDIDATES 15

/* Packets that agree in all but PSN and payload, and the taps that may want some of them. */
struct fault_flow {
	u64 key[2];
	bool valid, many; /* many: more than are listed here */
	u8 n;
	u16 tap[FAULT_CANDIDATES];
};

/* A port's taps in the order of arming, and what is known of the flows that have passed lately. */
struct fabric_taps {
	u32 n;
	struct fault_flow flow[FAULT_FLOWS];
	struct fabric_tap *tap[];
};

enum fault_verdict {
	FAULT_PASS,
	FAULT_TAKEN /* dropped or held */
};

struct fault_action {
	const char *name;
	u64 allowed, required; /* keys beyond those of matching and picking */
	bool all_packets;      /* looks also at packets that do not match */
	enum fault_verdict (*packet)(struct fabric_tap *tap, struct wire_packet *p, u32 next);
	int (*check)(struct fabric_fault *ft, char *err, size_t err_len);
	void (*apply)(struct fabric_fault *ft); /* to links, nodes or tables */
	void (*undo)(struct fabric_fault *ft);
};

struct fabric_fault {
	struct fabric *f;
	const struct fault_action *action;
	struct fabric_fault_spec s;
	struct list link;         /* fabric's faults */
	struct fabric_node *node; /* NULL: every link */
	struct fabric_port *port; /* NULL: every port of the node */
	struct list taps;
	struct rng rng; /* of what is not a decision: offsets, jitter */
	/* of those that alter links, nodes or tables */
	bool packets, applied, pending, down_now;
	struct list due; /* fabric's task */
	struct loop_timer timer;
	u32 cycles;
	struct fabric_port *other; /* swap, lid, guid: with= */
	u64 old, old_port_guid;    /* what stood there before */
};

/* fault.c */
/* The port that "h1", "leaf1:5" names; NULL and a line in @err. */
struct fabric_port *fault_find_port(struct fabric *f, const char *place, char *err, size_t err_len);
extern const struct fault_action fault_packet_actions[], fault_state_actions[],
	fault_table_actions[]; /* end with a NULL name */

/* fault_tap.c */
int fault_taps_attach(struct fabric_fault *ft); /* 0, or -ENOMEM: some may be attached */
void fault_taps_detach(struct fabric_fault *ft);
void fault_taps_rewire(struct fabric *f); /* cables have moved: the taps go with their ports */

/* fault_packet.c */
void fault_tap_release(struct fabric_tap *t); /* lets go what it holds */
void fault_tap_timer(struct loop_timer *timer, struct now now);

/* fault_state.c */
void fault_state_timer(struct loop_timer *timer, struct now now);
void fault_state_trigger(struct fabric_fault *ft); /* a packet has set it off */
void fault_retrain(struct fabric_port *p);
/* What a place must be: 0, or -EINVAL with the error said. */
int fault_one_port(struct fabric_fault *ft, char *err, size_t err_len);
int fault_whole_node(struct fabric_fault *ft, char *err, size_t err_len);

#endif

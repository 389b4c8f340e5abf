/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fault engine. A fault is one line, PLACE ACTION [key=value...], of muslin-fault(5). The engine parses and checks
 * the line, arms the fault, counts matches and hits, applies and ends it, and removes it. It drops, duplicates,
 * delays, reorders and corrupts packets.
 *
 * A target (InfiniBand links, Ethernet, a RoCE port, an HCA, a subnet manager) is a table of fault kinds, the keys
 * that only it has, and functions for its packets (struct fault_packet_ops). Faults at one place act in the order in
 * which they were armed.
 */
#ifndef MUSLIN_FAULT_FAULT_H
#define MUSLIN_FAULT_FAULT_H

#include "emu/fault/pick.h"
#include "emu/lib/list.h"
#include "emu/lib/loop.h"
#include "emu/packet/match.h"

/* The keys common to several targets, as bits of fault.given, and of allowed and required keys. */
enum fault_key {
	FAULT_DIR,
	FAULT_MATCH,                                  /* selects packets */
	FAULT_PICK = FAULT_MATCH + WIRE_MATCH_FIELDS, /* selects among the matches */
	FAULT_TIME = FAULT_PICK + PICK_FIELDS,
	FAULT_JITTER,
	FAULT_COPIES,
	FAULT_DEPTH,
	FAULT_OFFSET,
	FAULT_SILENT,
	FAULT_BYTES,
	FAULT_FOR,
	FAULT_RATE,
	FAULT_UP,
	FAULT_DOWN,
	FAULT_TIMES,
	FAULT_TO,
	FAULT_STATUS,
	FAULT_OWN, /* the first key of the target's own table */
};
#define FAULT_MATCH_KEY(key) BIT_ULL(FAULT_MATCH + WIRE_MATCH_##key)
#define FAULT_MATCH_KEYS     WIRE_MATCH_KEYS(FAULT_MATCH)
#define FAULT_PICK_KEYS      PICK_KEYS(FAULT_PICK)
#define FAULT_PACKET_KEYS    (BIT_ULL(FAULT_DIR) | FAULT_MATCH_KEYS | FAULT_PICK_KEYS)

enum fault_what { /* in the order of the names of what= */
	FAULT_PAYLOAD,
	FAULT_HEADER,
	FAULT_ICRC,
	FAULT_VCRC
};

/* The value of to=. */
#define FAULT_BYTES_MAX 64
struct fault_bytes {
	u8 n, data[FAULT_BYTES_MAX];
};

#define FAULT_PLACE_ALL "all" /* all links */

#define FAULT_NEVER ~0ull /* ns: a packet held until the fault is cleared */

enum fault_verdict {
	FAULT_PASS,
	FAULT_TAKEN /* dropped or held */
};

struct fault;
struct fault_hook;
struct fault_set;

/* A kind of fault: a row of a target's table, which a row without name terminates. */
struct fault_kind {
	const char *name;
	u64 allowed, required; /* keys, besides the target's .any */
	/* Packet faults: called for each packet that passes the place and, unless .all_packets, may match. */
	enum fault_verdict (*packet)(struct fault_hook *h, void *packet);
	bool all_packets;
	bool keeps_credits; /* a held packet keeps the credits of the receiver's buffer */
	u8 at;              /* other faults: the number of the target's function that calls fault_at(); 0: none */
	/* Checks conditions beyond the keys, and acquires resources; nothing fails after
	 * it. 0, or -EINVAL with a message. */
	int (*prepare)(struct fault *ft, char *err, size_t err_len);
	/* State faults: called at arming, or by a packet if one of the .trigger keys is given. With .at and pick
	 * keys only fault_at() applies it. */
	void (*apply)(struct fault *ft);
	void (*undo)(struct fault *ft); /* after for=, or at removal */
	void (*step)(struct fault *ft); /* on expiry of the fault's timer; NULL: the fault ends */
};

/* A target's functions for its packets. */
struct fault_packet_ops {
	bool (*match)(const struct fault *ft, const void *packet);
	/* Passes the packet to the hooks of h->point that were armed after number @after, and then to the receiver,
	 * before all packets that have not passed this hook. Takes ownership. */
	void (*forward)(struct fault_hook *h, void *packet, u32 after);
	void (*drop)(struct fault_hook *h, void *packet);
	void *(*clone)(struct fault_hook *h, void *packet); /* NULL if out of memory */
	/* The bytes of a packet that corrupt may modify, from *from to *len, according to ft->what; NULL: none. */
	u8 *(*bytes)(struct fault_hook *h, void *packet, u32 *from, u32 *len);
	enum fault_verdict (*corrupted)(struct fault_hook *h, void *packet);
	u32 (*size)(const void *packet); /* bytes on the link, for rate */
	/* The rest may be NULL. */
	void (*hit)(struct fault_hook *h);                             /* counts it */
	bool (*hold)(struct fault_hook *h, void *packet, u64 when);    /* before it is held; false: drop it */
	void (*release)(struct fault_hook *h, void *packet);           /* before it is passed on */
	void (*flow)(const void *packet, u64 key[2]);                  /* key of the packet's flow, for .may_match */
	bool (*may_match)(const struct fault *ft, const void *packet); /* whether packets of this flow can match */
	bool queues; /* forward() only queues: packets that a fault passes on follow the current packet */
};

struct fault_target {
	const char *of;                        /* phrase in messages, as "of toys "; "": packets, links and nodes */
	const struct fault_kind *const *kinds; /* tables, terminated by NULL */
	const struct spec_field *keys;         /* its own keys, from FAULT_OWN on */
	u32 nkeys;
	size_t size;   /* of its struct, which begins with struct fault */
	u64 any;       /* keys allowed for every kind */
	u64 trigger;   /* with one of these keys a matching packet applies a state fault without .at */
	u32 mtu;       /* maximum of keys that count bytes */
	bool ethernet; /* pcap= applies to Ethernet frames */
	/* Resolves PLACE; NULL: the caller has done it. 0, or -EINVAL with a message. */
	int (*place)(struct fault *ft, const char *place, char *err, size_t err_len);
	/* Attaches packet hooks: fault_attach() at each point. 0 or -ENOMEM. NULL: the target calls fault_trigger(). */
	int (*attach)(struct fault *ft);
	void (*changed)(struct fault_set *set); /* faults were added or removed; may be NULL */
	/* down and flap: sets the links of the place down or up; they stay down until each such fault has ended. */
	void (*link)(struct fault *ft, bool up);
	const struct fault_packet_ops *packets;
};

/* A place on the path of packets, in one direction: its hooks in the order of arming. Zeroed memory is an empty one. */
struct fault_point {
	u32 n;
	struct fault_hook **hook;
	struct fault_flow *flow; /* cache of the hooks that may match a flow; NULL if packet_ops.flow is */
};

/* A packet fault at one point. */
struct fault_hook {
	struct fault *fault;
	struct fault_point *point;
	void *at;         /* of the target: port, end of a link, direction */
	struct list link; /* in fault.hooks */
	struct list held; /* packets in the order of release */
	u32 nheld;
	u64 busy_until; /* for delay, which keeps the order, and rate */
	u64 passed;     /* packets since arming, for reorder */
	struct loop_timer timer;
};

/* The faults of one fabric, port, adapter or subnet manager. */
struct fault_set {
	const struct fault_target *target;
	struct loop *loop;
	void *owner; /* the fabric, port, ... */
	u64 seed;    /* for the next fault without seed= */
	u32 armed;   /* number of the last fault */
	struct list faults, due;
	struct loop_task task; /* applies faults that a packet has triggered */
	/* Called when a fault hits (packet faults: the first hits only), begins or ends. May be NULL. */
	void (*notify)(void *ctx, const struct fault *ft, const char *what);
	void *notify_ctx;
};

struct fault {
	struct fault_set *set;
	const struct fault_kind *kind;
	u32 number;       /* in the order of arming, from 1 on */
	struct list link; /* in fault_set.faults */
	struct list due;  /* in fault_set.due */
	struct list hooks;
	struct loop_timer timer; /* for=, and kind.step */
	struct rng rng;          /* for offsets and jitter; decisions use pick */
	bool applied;            /* the state is changed, or fault_at() returns it */
	struct pick pick;        /* matches, hits, selection, and the digest of all decisions */
	/* values of the keys */
	u64 given;
	struct wire_match match;
	u64 seed, time, jitter, lasts, rate, up, down;
	u32 copies, depth, offset, bytes, times;
	u8 dir, what;
	bool silent;
	u16 status;
	struct fault_bytes to;
	/* flap */
	bool down_now;
	u32 cycles;
};

/* fault.c */
void fault_set_init(struct fault_set *set, const struct fault_target *target, struct loop *loop, void *owner, u64 seed);
void fault_set_fini(struct fault_set *set); /* frees armed faults; held packets are released, changed state remains */
static inline bool fault_set_empty(const struct fault_set *set)
{
	return list_empty(&set->faults);
}
/*
 * Parses and arms the fault @text. On error returns NULL with a message in @err that names the invalid word; nothing
 * is armed. Random numbers derive from set->seed, or from the key seed.
 */
struct fault *fault_add(struct fault_set *set, const char *text, char *err, size_t err_len);
void fault_end(struct fault *ft);       /* undoes its changes, as after for= */
void fault_remove(struct fault *ft);    /* undoes its changes, releases held packets, and frees the fault */
u32 fault_held(const struct fault *ft); /* number of held packets */
const struct fault_kind *fault_kind(const struct fault_target *t, const char *name); /* NULL: unknown */
void fault_names(const struct fault_target *t, char *text, size_t len);              /* of all kinds, as text */
#define FAULT_AT_ANY 0
/* The first fault at the target's function number @at, or at any, that concerns @ctx and is picked;
 * NULL: none. @concerns NULL: all. */
struct fault *fault_at(struct fault_set *set, u8 at, bool (*concerns)(const struct fault *ft, const void *ctx),
		       const void *ctx);

static inline bool fault_given(const struct fault *ft, u32 key)
{
	return ft->given & BIT_ULL(key);
}

/* Whether packets trigger it or are affected by it. */
static inline bool fault_sees_packets(const struct fault *ft)
{
	return ft->kind->packet || (!ft->kind->at && ft->given & ft->set->target->trigger);
}
/* Counts a match of a state fault with a .trigger key; one that is selected is applied by a task. */
void fault_match(struct fault *ft);
/* Matches an event that is no packet with all state faults of the set that have a .trigger key and concern @ctx. */
void fault_trigger(struct fault_set *set, bool (*concerns)(const struct fault *ft, const void *ctx), const void *ctx);

/* fault_hook.c */
int fault_attach(struct fault *ft, struct fault_point *point, void *at); /* 0 or -ENOMEM */
void fault_detach(struct fault *ft);                                     /* all hooks, which release their packets */
/* The link is down: packets that faults hold at its end are lost with it. */
void fault_lose_held(struct fault_point *point);
/*
 * Runs the hooks of @point of faults that were armed after number @after; 0: of all. False: a fault has dropped or held
 * the packet.
 */
bool fault_pass(struct fault_point *point, void *packet, u32 after);
/* For kinds: counts the packet if it matches. True: the fault acts on it. */
bool fault_hit(struct fault_hook *h, const void *packet);
enum fault_verdict fault_discard(struct fault_hook *h, void *packet);
/* Holds the packet until @when (ns). */
enum fault_verdict fault_hold(struct fault_hook *h, void *packet, u64 when);
u64 fault_now(const struct fault_hook *h); /* ns */

/* The kinds of packet faults common to all targets. */
enum fault_verdict fault_drop(struct fault_hook *h, void *packet);
enum fault_verdict fault_duplicate(struct fault_hook *h, void *packet);
enum fault_verdict fault_delay(struct fault_hook *h, void *packet);
enum fault_verdict fault_reorder(struct fault_hook *h, void *packet);
enum fault_verdict fault_corrupt(struct fault_hook *h, void *packet);
enum fault_verdict fault_rate(struct fault_hook *h, void *packet);
enum fault_verdict fault_stall(struct fault_hook *h, void *packet);
u64 fault_delay_time(struct fault *ft); /* ns: of time= and jitter=, the latter random each time */
int fault_check_delay(struct fault *ft, char *err, size_t err_len);
int fault_check_corrupt(struct fault *ft, char *err, size_t err_len);

/* @keys: the match keys of the target's packets. */
#define FAULT_KIND_DROP(keys) .name = "drop", .packet = fault_drop, .allowed = (keys)
#define FAULT_KIND_DUPLICATE(keys) \
	.name = "duplicate", .packet = fault_duplicate, .allowed = (keys) | BIT_ULL(FAULT_COPIES)
#define FAULT_KIND_DELAY(keys)                                                \
	.name = "delay", .packet = fault_delay, .prepare = fault_check_delay, \
	.allowed = (keys) | BIT_ULL(FAULT_TIME) | BIT_ULL(FAULT_JITTER)
#define FAULT_KIND_REORDER .name = "reorder", .packet = fault_reorder, .all_packets = true
#define FAULT_KIND_CORRUPT .name = "corrupt", .packet = fault_corrupt, .prepare = fault_check_corrupt
#define FAULT_KIND_RATE(keys) \
	.name = "rate", .packet = fault_rate, .keeps_credits = true, .allowed = (keys), .required = BIT_ULL(FAULT_RATE)
#define FAULT_KIND_STALL(keys) \
	.name = "stall", .packet = fault_stall, .keeps_credits = true, .allowed = (keys) | BIT_ULL(FAULT_FOR)

/* fault_alter.c: replaces payload of a struct wire_packet, or the status of a MAD. */
bool fault_parse_bytes(void *to, const char *value);
enum fault_verdict fault_alter(struct fault_hook *h, void *packet);
int fault_check_alter(struct fault *ft, char *err, size_t err_len);
#define FAULT_KIND_ALTER                                                      \
	.name = "alter", .packet = fault_alter, .prepare = fault_check_alter, \
	.allowed = BIT_ULL(FAULT_OFFSET) | BIT_ULL(FAULT_TO) | BIT_ULL(FAULT_STATUS)

/* fault_link.c: kinds of link faults for all targets with .link. @keys: those of .trigger. */
void fault_down_apply(struct fault *ft);
void fault_down_undo(struct fault *ft);
void fault_flap_apply(struct fault *ft);
void fault_flap_undo(struct fault *ft);
void fault_flap_step(struct fault *ft);
#define FAULT_KIND_DOWN(keys) \
	.name = "down", .apply = fault_down_apply, .undo = fault_down_undo, .allowed = (keys) | BIT_ULL(FAULT_FOR)
#define FAULT_KIND_FLAP(keys)                                                                        \
	.name = "flap", .apply = fault_flap_apply, .undo = fault_flap_undo, .step = fault_flap_step, \
	.allowed = (keys) | BIT_ULL(FAULT_UP) | BIT_ULL(FAULT_DOWN) | BIT_ULL(FAULT_TIMES)

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fault engine. A fault is one line, PLACE ACTION [key=value...], of muslin-fault(5). The engine parses and checks the line, arms
 * the fault, counts matches and hits, applies and ends it, and removes it. It drops, duplicates, delays, reorders and corrupts packets.
 *
 * A target (InfiniBand links, Ethernet, a RoCE port, an HCA, a subnet manager) is a table of kinds of faults, the keys that it alone
 * has, and functions on its packets (struct fault_packet_ops). Faults at one place act in the order in which they were armed.
 */
#ifndef MUSLIN_FAULT_FAULT_H
#define MUSLIN_FAULT_FAULT_H

#include "emu/fault/pick.h"
#include "emu/lib/list.h"
#include "emu/lib/loop.h"
#include "emu/packet/match.h"

/* The keys that more than one target has, as bits of fault.given, and of allowed and required keys. */
enum fault_key {
	FAULT_DIR,
	FAULT_MATCH,                                  /* which packets */
	FAULT_PICK = FAULT_MATCH + WIRE_MATCH_FIELDS, /* which of them */
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
	FAULT_OWN, /* the first key of the target's table */
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

#define FAULT_NEVER ~0ull /* ns: a packet that is held until the fault is cleared */

enum fault_verdict {
	FAULT_PASS,
	FAULT_TAKEN /* dropped or held */
};

struct fault;
struct fault_hook;
struct fault_set;

/* A kind of fault: a row of a target's table, which a row without a name ends. */
struct fault_kind {
	const char *name;
	u64 allowed, required; /* keys, besides the target's .any */
	/* Of packets: called for each packet that passes the place and, unless .all_packets, may match. */
	enum fault_verdict (*packet)(struct fault_hook *h, void *packet);
	bool all_packets;
	bool keeps_credits; /* a packet that is held keeps the credits of the receiver's buffer */
	u8 at;              /* of other faults: the number of the target's function that asks fault_at(); 0: none */
	/* Checks what keys alone do not tell, and acquires what the fault needs; nothing fails after it. 0 or -EINVAL with a line. */
	int (*prepare)(struct fault *ft, char *err, size_t err_len);
	/* Of state: at arming, or by a packet with the keys of .trigger. With .at and keys of pick, only fault_at() applies it. */
	void (*apply)(struct fault *ft);
	void (*undo)(struct fault *ft); /* after for=, or when it is removed */
	void (*step)(struct fault *ft); /* the fault's timer has expired; NULL: it ends the fault */
};

/* What a target does with its packets. */
struct fault_packet_ops {
	bool (*match)(const struct fault *ft, const void *packet);
	/* Passes it on to the hooks of h->point from number @next on, and to the receiver. Takes it. */
	void (*forward)(struct fault_hook *h, void *packet, u32 next);
	void (*drop)(struct fault_hook *h, void *packet);
	void *(*clone)(struct fault_hook *h, void *packet); /* NULL without memory */
	/* The bytes of a packet that corrupt may write, from *from to *len, by ft->what; NULL: none. */
	u8 *(*bytes)(struct fault_hook *h, void *packet, u32 *from, u32 *len);
	enum fault_verdict (*corrupted)(struct fault_hook *h, void *packet);
	u32 (*size)(const void *packet); /* bytes on the link, of rate */
	/* The rest may be NULL. */
	void (*hit)(struct fault_hook *h);                             /* counts it */
	bool (*hold)(struct fault_hook *h, void *packet, u64 when);    /* before it is held; false: it is dropped */
	void (*release)(struct fault_hook *h, void *packet);           /* before it is passed on */
	void (*flow)(const void *packet, u64 key[2]);                  /* what packets have in common for .may_match */
	bool (*may_match)(const struct fault *ft, const void *packet); /* can packets of this flow match? */
	bool queues; /* forward() only queues: what a fault passes on comes after the packet that passes now */
};

struct fault_target {
	const char *of; /* in messages: whose faults these are, with a blank; "": those of packets, links and nodes */
	const struct fault_kind *const *kinds; /* tables, ended by NULL */
	const struct spec_field *keys;         /* its own, FAULT_OWN and following */
	u32 nkeys;
	size_t size;   /* of its struct, which begins with struct fault */
	u64 any;       /* keys that every kind takes */
	u64 trigger;   /* with one of these keys a fault of state is applied by a packet that matches */
	u32 mtu;       /* the greatest value of keys that count bytes */
	bool ethernet; /* pcap= is about Ethernet frames */
	/* Resolves PLACE; NULL: the caller has done it. 0 or -EINVAL with a line. */
	int (*place)(struct fault *ft, const char *place, char *err, size_t err_len);
	int (*attach)(struct fault *ft);        /* hooks for packets: fault_attach() at each point. 0 or -ENOMEM */
	void (*changed)(struct fault_set *set); /* faults were added or removed; may be NULL */
	/* Of down and flap: the links of the place go down (they stay so until each fault that wants it has ended) and up. */
	void (*link)(struct fault *ft, bool up);
	const struct fault_packet_ops *packets;
};

/* Where packets of one direction pass: the hooks in the order of arming. Zeroed memory is an empty one. */
struct fault_point {
	u32 n;
	struct fault_hook **hook;
	struct fault_flow *flow; /* cache of the hooks that may match a flow; NULL: packet_ops.flow is */
};

/* A packet fault at one point. */
struct fault_hook {
	struct fault *fault;
	struct fault_point *point;
	void *at;         /* the target's: port, end of a link, direction */
	struct list link; /* in fault.hooks */
	struct list held; /* packets in the order of release */
	u32 nheld;
	u64 busy_until; /* of delay, which keeps the order, and rate */
	u64 passed;     /* packets since arming, for reorder */
	struct loop_timer timer;
};

/* The faults of one fabric, port, adapter or manager. */
struct fault_set {
	const struct fault_target *target;
	struct loop *loop;
	void *owner; /* the fabric, port, ... */
	u64 seed;    /* of the next fault that is armed and has no seed= */
	struct list faults, due;
	struct loop_task task; /* applies those that a packet has triggered */
	/* A fault fires (packets: the first hits), begins or ends. NULL: nobody listens. */
	void (*notify)(void *ctx, const struct fault *ft, const char *what);
	void *notify_ctx;
};

struct fault {
	struct fault_set *set;
	const struct fault_kind *kind;
	struct list link; /* in fault_set.faults */
	struct list due;  /* in fault_set.due */
	struct list hooks;
	struct loop_timer timer; /* for=, and kind.step */
	struct rng rng;          /* for offsets and jitter; decisions use pick */
	bool applied;            /* the state is altered, or fault_at() finds it */
	struct pick pick;        /* matches, hits, which ones, and the digest of all decisions */
	/* The values of keys */
	u64 given;
	struct wire_match match;
	u64 seed, time, jitter, lasts, rate, up, down;
	u32 copies, depth, offset, bytes, times;
	u8 dir, what;
	bool silent;
	/* flap */
	bool down_now;
	u32 cycles;
};

/* fault.c */
void fault_set_init(struct fault_set *set, const struct fault_target *target, struct loop *loop, void *owner, u64 seed);
void fault_set_fini(struct fault_set *set); /* frees what is armed; held packets are released, state stays as it is */
static inline bool fault_set_empty(const struct fault_set *set)
{
	return list_empty(&set->faults);
}
/*
 * Parses and arms the fault @text. On an error returns NULL with one line in @err that names the invalid word; nothing is
 * armed. Random numbers derive from set->seed, or from the key seed.
 */
struct fault *fault_add(struct fault_set *set, const char *text, char *err, size_t err_len);
void fault_end(struct fault *ft);       /* undoes what is applied, as after for= */
void fault_remove(struct fault *ft);    /* undoes what is applied, releases the held packets, and frees the fault */
u32 fault_held(const struct fault *ft); /* packets held now */
const struct fault_kind *fault_kind(const struct fault_target *t, const char *name); /* NULL: there is none */
void fault_names(const struct fault_target *t, char *text, size_t len);              /* of all kinds */
#define FAULT_AT_ANY 0
/* The first fault at the target's function number @at, or at any, that concerns @ctx and picks it; NULL: none. @concerns may be NULL: all. */
struct fault *fault_at(struct fault_set *set, u8 at, bool (*concerns)(const struct fault *ft, const void *ctx),
		       const void *ctx);

static inline bool fault_given(const struct fault *ft, u32 key)
{
	return ft->given & BIT_ULL(key);
}

/* Does it look at packets? */
static inline bool fault_sees_packets(const struct fault *ft)
{
	return ft->kind->packet || ft->given & ft->set->target->trigger;
}

/* fault_hook.c */
int fault_attach(struct fault *ft, struct fault_point *point, void *at); /* 0 or -ENOMEM */
void fault_detach(struct fault *ft);                                     /* all hooks, which release their packets */
/* Runs the hooks of @point from number @first on. False: a fault has dropped or holds the packet. */
bool fault_pass(struct fault_point *point, void *packet, u32 first);
/* For kinds: counts the packet when it matches. True: the fault acts on it. */
bool fault_hit(struct fault_hook *h, const void *packet);
enum fault_verdict fault_discard(struct fault_hook *h, void *packet);
/* Holds the packet until @when (ns). */
enum fault_verdict fault_hold(struct fault_hook *h, void *packet, u64 when);
u64 fault_now(const struct fault_hook *h); /* ns */

/* The kinds of packet faults that all targets have. */
enum fault_verdict fault_drop(struct fault_hook *h, void *packet);
enum fault_verdict fault_duplicate(struct fault_hook *h, void *packet);
enum fault_verdict fault_delay(struct fault_hook *h, void *packet);
enum fault_verdict fault_reorder(struct fault_hook *h, void *packet);
enum fault_verdict fault_corrupt(struct fault_hook *h, void *packet);
enum fault_verdict fault_rate(struct fault_hook *h, void *packet);
enum fault_verdict fault_stall(struct fault_hook *h, void *packet);
int fault_check_delay(struct fault *ft, char *err, size_t err_len);
int fault_check_corrupt(struct fault *ft, char *err, size_t err_len);

/* @keys: those by which the target's packets match. */
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

/* fault_link.c: the kinds of faults of links that all targets with .link have. @keys: those of .trigger. */
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random test of the transport in virtual time: programs on two adapters, a wire with faults, and a reference model of
 * verbs. Declarations by file.
 */
#ifndef MUSLIN_RXE_CHAOS_INTERNAL_H
#define MUSLIN_RXE_CHAOS_INTERNAL_H

#include "emu/hca/soft_queue.h"
#include "emu/lib/rng.h"

/* ops.c: list of operations; it can be saved to a file and replayed. */
enum chaos_kind {
	CHAOS_SEND, /* valid requests of all kinds */
	CHAOS_RECV,
	CHAOS_RUN,
	CHAOS_BAD_SEND,
	CHAOS_BAD_RECV,
	CHAOS_ERR,
	CHAOS_RECONNECT,
	CHAOS_REBUILD,
	CHAOS_SQD,
	CHAOS_RTS,
	CHAOS_DEREG,
	CHAOS_REG,
	CHAOS_BIND,
	CHAOS_INVALIDATE,
	CHAOS_WINDOW_WRITE,
	CHAOS_KILL,
	CHAOS_WIRE,
	CHAOS_DOWN,
	CHAOS_BUSY,
	CHAOS_NO_POLL,
	CHAOS_UNMAP,
	CHAOS_CHECK,
	CHAOS_KINDS
};

struct chaos_op {
	u8 kind;
	u8 conn; /* modulo the number of connections */
	u64 r;   /* seed of the operation's random numbers */
};

struct chaos_list {
	u64 seed; /* seed of the link layer and the attributes */
	u32 n;
	struct chaos_op *op; /* owned */
};

void chaos_list_make(struct chaos_list *l, u64 seed, u32 n);
int chaos_list_save(const struct chaos_list *l, const char *path); /* 0 or -errno */
int chaos_list_load(struct chaos_list *l, const char *path);       /* 0 or -errno; -EINVAL: no such list */
void chaos_list_free(struct chaos_list *l);
const char *chaos_kind_name(enum chaos_kind k);
int chaos_kind_without(const char *name); /* created lists have none of that kind; -EINVAL: no such kind */

/* world.c: adapters, the wire, programs and their memory. */
#define CHAOS_UNIT  1024u
#define CHAOS_UNITS 256u
#define CHAOS_ARENA (CHAOS_UNIT * CHAOS_UNITS)
#define CHAOS_PROGS 3 /* on each host; the first of each is a bystander */

#define CHAOS_WORDS       512u  /* at the start of an arena: operands of atomics */
#define CHAOS_WINDOW      8192u /* offset of the memory windows */
#define CHAOS_WINDOW_SIZE 1024u
#define CHAOS_FIRST_UNIT  24 /* first unit of the allocator */
#define CHAOS_HALF        (CHAOS_ARENA / 2)

struct chaos_mr {
	u32 lkey, rkey, epoch; /* the epoch counts registrations and deregistrations */
	u32 base, len;
	bool live;
};

struct chaos_prog {
	struct chaos_host *host;
	u32 index, gen; /* gen: number of starts */
	struct hca_ctx *ctx;
	u32 pdn, other_pdn, other_rkey;
	u64 va; /* address of the arena in the program's address space */
	u8 *mem, *shadow;
	u8 taken[CHAOS_UNITS];
	struct chaos_mr mr[2];      /* of the lower and the upper half */
	u32 unmapped, unmapped_len; /* bytes that cannot be accessed; length 0: none */
	struct {
		u64 first;
		u32 done, failed;
	} word[4]; /* FETCH_ADD by one */
};

struct chaos_host {
	struct wire_port port;
	struct hca *hca;
	struct chaos_prog prog[CHAOS_PROGS];
	struct loop_timer busy;
	bool is_busy;
};

/* Probabilities, in thousandths. */
struct chaos_wire {
	u16 lose, repeat, damage, late;
};

struct chaos_world {
	struct loop *loop;
	struct chaos_host host[2];
	struct chaos_wire wire;
	struct rng rng; /* of the wire */
	struct list flights;
	struct loop_timer arrival;
	u64 down_until;
	bool ethernet, verbose;
	bool (*spared)(u32 qpn, u32 host); /* packets to these queue pairs meet no fault */
	void (*event)(struct chaos_prog *p, const struct hca_event *ev);
};

extern struct chaos_world chaos;

void chaos_world_open(u64 seed);
void chaos_world_close(void);
void chaos_wire_forget(const struct chaos_host *to, u32 qpn); /* drops packets in flight to it */
void chaos_wire_down(u64 ns);
void chaos_wire_busy(struct chaos_host *h, u64 ns);
u64 chaos_now(void);
void chaos_run(u64 ns);

void chaos_prog_start(struct chaos_prog *p);
void chaos_prog_kill(struct chaos_prog *p);
bool chaos_mr_reg(struct chaos_prog *p, u32 half);
void chaos_mr_dereg(struct chaos_prog *p, u32 half);
void chaos_prog_check(struct chaos_prog *p); /* only bytes in use have changed */

/* A part of an arena that requests use. */
struct chaos_area {
	struct chaos_prog *prog; /* NULL: none */
	u32 gen, unit, units, off, len;
	u32 mr, epoch;
};

bool chaos_area_get(struct chaos_prog *p, u32 len, u64 r, struct chaos_area *a);
u64 chaos_area_va(const struct chaos_area *a);
u8 *chaos_area_mem(const struct chaos_area *a);        /* NULL: the program has ended */
bool chaos_area_key_valid(const struct chaos_area *a); /* its region was registered without interruption */
void chaos_area_fill(const struct chaos_area *a, u32 id);
/*
 * Frees the area after a check: the first @len bytes are those of message @id (@exact) or, byte by byte, those or the
 * previous ones; @any: not checked. Bytes around the area are unchanged.
 */
void chaos_area_put(struct chaos_area *a, u32 id, u32 len, bool exact, bool any, const char *what);
u8 chaos_byte(u32 id, u32 i);

/* model.c: queue pairs and what is expected of them. */
void chaos_model_open(u64 seed);
void chaos_model_run(const struct chaos_op *op);
void chaos_model_close(void);

struct chaos_stats {
	u64 requests, receives, completions, errors, kills, sequences, ops;
};
extern struct chaos_stats *chaos_stats;

/* chaos_test.c: reports the failure and ends the run. */
void chaos_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif

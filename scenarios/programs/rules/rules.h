/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Conformance rules of the IBTA's verbs and transport, as tables. A rule names its clause, the setup of requester and
 * responder, the posted request, and the expected results of both sides: completions in order, QP states, asynchronous
 * events, counters and memory. Both are queue pairs of this process: the requester's context uses port 1 of the HCA and
 * the responder's port 2, so that packets pass the switch between them.
 */
#ifndef RULES_H
#define RULES_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define REGION  65536u /* bytes of the registered part of each side's memory */
#define MARGIN  65536u /* mapped bytes before and after it */
#define MEMORY  (REGION + 2 * MARGIN)
#define INBOX   32768u /* offset in the region for receives and the data of READs */
#define SLOT    4096u  /* of a receive there */
#define MTU     1024u
#define QKEY    0x11111111u
#define ZERO    0xfffffffeu /* a knob with the value 0, since 0 selects the default */
#define PSN_DEF 0x123456u
#define LISTED  12
#define COUNTED 4

/* Statuses, states and events in a rule count from 1, since 0 means none, or the default. */
#define ST(x)     (IBV_WC_##x + 1)
#define OK        ST(SUCCESS)
#define FLUSHED   ST(WR_FLUSH_ERR)
#define AT(x)     (IBV_QPS_##x + 1)
#define ANY_STATE 0xff
#define GONE      0xfe /* the rule's action destroys the queue pair */
#define EV(x)     (IBV_EVENT_##x + 1)

enum side {
	REQ,
	RESP
};

/* Error of the memory of a work request. */
enum ref {
	REF_OK,
	REF_NO_KEY,    /* a key that was never allocated */
	REF_STALE,     /* a key with another consumer-owned part */
	REF_DEREGD,    /* of a region that was deregistered */
	REF_OTHER_PD,  /* of a region of another protection domain */
	REF_NO_RIGHT,  /* of a region without the access right */
	REF_BELOW,     /* begins before the region */
	REF_BEYOND,    /* ends after the region */
	REF_OUTSIDE,   /* begins after the region */
	REF_WRAPS,     /* wraps around the end of the address space */
	REF_UNALIGNED, /* by one byte */
};

struct knobs {
	unsigned access;    /* of the QP; ZERO: none; default: all remote ones */
	unsigned mr_access; /* of the region; ZERO: none; default: all and MW_BIND */
	unsigned rd_atomic, dest_rd_atomic, timeout, retry, rnr_retry, min_rnr_timer, psn, qkey;
	unsigned send_wr, recv_wr, send_sge, recv_sge, max_inline, cqe;
	unsigned upto;  /* AT(state) at which the setup stops; default RTS */
	unsigned sig;   /* 1: sq_sig_all */
	unsigned srq;   /* number of entries */
	unsigned grh;   /* 1: the path has a GRH */
	unsigned event; /* 1: completion channels */
};

struct req {
	enum ibv_wr_opcode op;
	unsigned len, flags; /* SIGNALED unless UNSIGNALED */
	enum ref local, remote;
	uint64_t id;
	unsigned nsge;  /* number of SGEs; 0: one, or none of an empty message */
	unsigned off;   /* in both regions */
	uint32_t rkey;  /* 0: the region's */
	uint64_t raddr; /* 0: the region's */
	uint64_t add, swap;
	struct ibv_ah *ah; /* UD: default the other side's */
	uint32_t qpn, qkey;
};

#define UNSIGNALED (1u << 30)

struct recv {
	enum ref ref;
	unsigned len; /* default 4096; ZERO: 0 */
	unsigned nsge;
	uint64_t id;
};

struct counted {
	unsigned char side;
	const char *name;
	unsigned delta;
};

struct scene;

/* A row of a table begins with the name and the clause; the rest has designators. */
struct rule {
	const char *name, *clause;
	const char *cannot;    /* reason why it cannot be tested here: reported, not run */
	enum ibv_qp_type type; /* default RC */
	struct knobs knob[2];
	struct req send;
	unsigned recvs; /* receives that the responder posts first */
	struct recv recv;
	void (*action)(struct scene *s); /* default: posts @send */
	void (*check)(struct scene *s);  /* called last */
	long arg, arg2;
	int err;                                 /* expected from posting @send */
	unsigned char req[LISTED], resp[LISTED]; /* completions in order */
	unsigned char state[2], event[2];
	unsigned char may_event[2]; /* optional events by the standard */
	struct counted counted[COUNTED];
	bool bare;     /* no queue pairs: the action creates all objects */
	bool data_any; /* memory is not compared */
};

/* One side of a rule while it runs. */
struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd, *other_pd;
	uint8_t port;
	struct ibv_port_attr attr;
	union ibv_gid gid;
	uint8_t *mem; /* MARGIN, REGION, MARGIN bytes */
	/* of the rule */
	struct ibv_comp_channel *chan;
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr, *extra[LISTED];
	struct ibv_ah *ah; /* UD: to the other side */
	uint32_t qpn;
	unsigned extras, got_send, got_recv;
	struct ibv_wc swc[64], rwc[64];
	struct ibv_async_event ev[16];
	unsigned events;
};

struct scene {
	struct end end[2];
	const struct rule *rule;
	char why[2048];
	void *user;
};

struct subject {
	const char *name;
	void (*rules)(void);
};

/* main.c: adds a copy of @rule to the subject's table; formats its name. */
void rule_add(struct rule rule, const char *name, ...) __attribute__((format(printf, 2, 3)));

/* scene.c */
void scene_init(struct scene *s);
void scene_run(struct scene *s, const struct rule *rule);
void wrong(struct scene *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint8_t *region(struct end *e);
struct ibv_mr *extra_mr(struct scene *s, struct end *e, struct ibv_pd *pd, void *at, size_t len, unsigned access);
int post(struct scene *s, enum side from, struct req r);
void post_ok(struct scene *s, enum side from, struct req r); /* posting must succeed */
int post_recv(struct scene *s, enum side at, struct recv r);
void post_recvs(struct scene *s, enum side at, unsigned n, struct recv r);
bool wait_send(struct scene *s, enum side at, unsigned n); /* for @n completions since the rule started */
bool wait_recv(struct scene *s, enum side at, unsigned n);
bool wait_event(struct scene *s, enum side at, enum ibv_event_type type);
/* As wait_event(), without polling the CQs meanwhile. */
bool wait_event_unpolled(struct scene *s, enum side at, enum ibv_event_type type);
bool wait_state(struct ibv_qp *qp, enum ibv_qp_state state);
void wait_delivered(struct scene *s); /* all packets in flight in either direction have arrived */
enum ibv_qp_state state_of(struct ibv_qp *qp);
struct ibv_qp *qp_make(struct scene *s, enum side at, enum ibv_qp_type type, const struct knobs *k);
int qp_modify(struct scene *s, enum side at, struct ibv_qp *qp, enum ibv_qp_state to, const struct knobs *k,
	      uint32_t dest_qpn);
void qp_connect(struct scene *s, enum side at, struct ibv_qp *qp, uint32_t dest_qpn, unsigned upto,
		const struct knobs *k); /* to @upto, an ibv_qp_state */
void qp_attr(struct scene *s, enum side at, struct ibv_qp_attr *a, const struct knobs *k, uint32_t dest_qpn);
int required(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to);
unsigned long counter(struct scene *s, enum side at, const char *name);
struct ibv_ah *ah_to(struct scene *s, enum side from, struct ibv_pd *pd);
unsigned drained(struct ibv_cq *cq); /* polls all completions */
const char *state_name(unsigned state);
const char *type_name(enum ibv_qp_type type);
const char *op_name(enum ibv_wr_opcode op);

#define EXPECT(s, cond) ((cond) ? (void)0 : wrong(s, "not so: %s", #cond))

/* compare.c: with what the rule expects */
void compare_begin(struct scene *s); /* before the request: keeps the memory of both sides */
void compare_states(struct scene *s);
void compare(struct scene *s, const unsigned long *before); /* all the rest; @before: the counters of the rule */

/* Subjects */
void states_rules(void);
void requests_rules(void);
void order_rules(void);
void datagrams_rules(void);
void srq_rules(void);
void windows_rules(void);
void cq_rules(void);
void objects_rules(void);
void paging_rules(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the ConnectX device, by implementing file. */
#ifndef MUSLIN_CONNECTX_INTERNAL_H
#define MUSLIN_CONNECTX_INTERNAL_H

#include <errno.h>

#include "emu/connectx/connectx.h"
#include "emu/connectx/format.h"
#include "emu/verbs/object.h"
#include "emu/vfio/vfio.h"

#define CX_VECTORS   32
#define CX_EQS       33         /* numbers of event queues, of which 0 is none */
#define CX_PAGES_MAX (1u << 25) /* page addresses kept for a guest, of queues and memory keys */
/* QPNs below this are not allocated by the HCA: QP0, QP1, and queue pairs for memory key requests (UMR). */
#define CX_OWN_QPNS    0x40
#define CX_COMMANDS    4            /* per turn */
#define CX_TURN_BYTES  (256u << 10) /* of input of a command, which count as a command */
#define CX_TURN_UMR    (16u << 10)  /* of entries of a memory key request, which count as a request */
#define CX_SLOTS       32           /* entries of the command queue */
#define CX_REG_ENTRIES 512u         /* pages or ranges of a fast registration */
#define CX_BAR_SIZE    (1u << 25)
#define CX_UARS_AT     0x100000u /* in the BAR */
#define CX_UAR_SHIFT   12
#define CX_POLLED      8u /* send queues whose doorbell records are polled */
#define CX_HALVES      16u
#define CX_WQE_BB      64u
#define CX_WQE_BBS     16u
#define CX_ANY_QPN     0xffffffu
#define CX_NO_INDEX    0xffffffu /* the user index of queues with completions of version 0 */

/*
 * Status of a command. BAD_RES: it names an object that does not exist, to act on or to use ("not existing CQ when
 * creating QP"). BAD_RES_STATE: the object to destroy is in use ("DEALLOC_PD ... bad resource state" of mlx5), or in
 * another state than the command needs.
 */
enum cx_status {
	CX_OK = 0,
	CX_INT_ERR = 1,
	CX_BAD_OP = 2,
	CX_BAD_PARAM = 3,
	CX_BAD_SYS_STATE = 4,
	CX_BAD_RES = 5,
	CX_RES_BUSY = 6,
	CX_LIM = 8,
	CX_BAD_RES_STATE = 9,
	CX_NO_RES = 0xf,
	CX_BAD_QP_STATE = 0x10,
	CX_BAD_PKT = 0x30,
	CX_BAD_SIZE = 0x40, /* more completions in the CQ than the new size has room for */
	CX_BAD_INP_LEN = 0x50,
	CX_BAD_OUTP_LEN = 0x51,
};

/* The device's own counters. */
#define CX_COUNTERS(C)                                                    \
	C(COMMANDS, "commands")                                           \
	C(BAD_COMMANDS, "bad_commands")                                   \
	C(UNKNOWN_COMMANDS, "unknown_commands")                           \
	C(UNDELIVERED, "undelivered_commands") /* invalid entry or box */ \
	C(DOORBELLS, "doorbells")                                         \
	C(BAD_DOORBELLS, "bad_doorbells")                                 \
	C(COMP_EVENTS, "completion_events")                               \
	C(EVENTS_LOST, "events_lost")                                     \
	C(PAGE_FAULTS, "page_faults")                                     \
	C(BAD_WQES, "bad_wqes")                                           \
	C(KEY_REQUESTS, "memory_key_requests")                            \
	C(BAD_KEY_REQUESTS, "bad_memory_key_requests")                    \
	C(BAD_DMA, "bad_dma_addresses")                                   \
	C(MADS_OUT, "mads_out")                                           \
	C(MADS_IN, "mads_in")                                             \
	C(MADS_DROPPED, "mads_dropped")
#define CX_COUNTER_ENUM(name, str) CX_CTR_##name,
enum cx_counter {
	CX_COUNTERS(CX_COUNTER_ENUM) CX_CTR_NUM
};
#undef CX_COUNTER_ENUM

/* A queue in guest pages of 4 KiB. */
struct cx_buf {
	u64 *page;
	u8 **map; /* cached pointers to the pages, valid in this epoch of the DMA map */
	u32 npages;
	u32 offset; /* start of the queue in the first page */
	u64 end;    /* end of the queue, from the start of the first page */
	u64 epoch;
	bool write;
};

/* A doorbell record: two counters in guest memory. */
struct cx_record {
	u64 addr;
	u8 *map;
	u64 epoch;
};

struct cx_uar {
	u32 users;        /* queues with doorbells in it */
	bool deallocated; /* but its number is not free while it has users */
};

/*
 * An event. Each object has one for each type that it may have, so that no event is lost however many wait for room in
 * an event queue; one that occurs again while it waits is reported once, in the order of the last times.
 */
struct cx_event {
	struct list link; /* in the list of its event queue while it waits */
	u8 type;
	u8 code;    /* of a port: its change; of a CQ's error: the syndrome */
	u32 number; /* of the object; of a command's completion: bits of the commands */
};
#define CX_FAULT_DATA 28u /* bytes of an entry */
/* The page fault of a side of a queue pair. */
struct cx_page_fault {
	struct cx_event event;
	bool raised; /* the driver has not answered the event */
	bool stale;  /* the queue pair was reset since then, and has had another page fault */
	u32 wq;      /* number of the queue pair or SRQ with the request */
	u8 type;
	u8 data[CX_FAULT_DATA];
};
enum {
	CX_FAULT_WQE = 0,
	CX_FAULT_RDMA = 1,
};
#define CX_QP_EVENTS   8 /* by the lowest bits of their types of the HCA, which differ, as those of an SRQ do */
#define CX_SRQ_EVENTS  2
#define CX_PORT_EVENTS 10 /* by change */

struct cx_eq {
	u32 eqn, vector, uar;
	u8 log_size;
	u64 mask; /* bits of event types */
	struct cx_buf buf;
	u32 pi, ci;
	bool armed;
	u32 due_commands; /* bits of commands whose completion event waits for room */
	struct list due;  /* other events that wait for it */
	u8 eqc[CX_BYTES_eqc];
};

struct cx_cq {
	struct verbs_cq cq;
	u32 eqn, uar; /* uar 0: it has none yet */
	u8 log_size;
	bool wide;           /* entries of 128 bytes */
	bool ignore_overrun; /* the driver does not update the consumer index */
	u8 error;            /* syndrome of its error event; 0: none */
	u64 pi;              /* completions; indices are its lowest bits */
	u64 solicited;       /* index after the last solicited completion */
	enum verbs_arm arm;
	/*
	 * Event moderation: an event waits for @max_count completions since the last one, @period at most. 0: it does
	 * not
	 */
	u32 max_count;
	u64 period;              /* ns */
	u64 event_pi;            /* index at the last event */
	u64 event_at;            /* time of the last event, loop clock, ns */
	struct loop_timer timer; /* of an event that waits */
	struct cx_event completion, failure;
	struct cx_buf buf;
	struct cx_record record;
	u8 cqc[CX_BYTES_cqc];
};

/* A receive queue, of a QP or SRQ. */
struct cx_rq {
	u8 log_size, log_stride;
	bool linked;    /* an SRQ: each entry has the index of the next one */
	bool signature; /* entries begin with a signature segment */
	u16 count;      /* entries consumed */
	u16 next;       /* index of the next entry, if linked */
};

/* The page or range list of a registration. */
struct cx_list {
	struct list link;
	u64 request; /* number of the request, from 0 on */
	u64 pages;   /* page addresses that count towards CX_PAGES_MAX */
	u64 data[];
};

struct cx_qp {
	struct verbs_qp qp;
	u32 qpn;          /* number that the driver uses */
	u32 user_index;   /* of completions of version 1; CX_NO_INDEX: they are of version 0 */
	u32 uar, service; /* uar 0: it has no send queue */
	bool privileged;  /* of the guest's kernel: may register physical pages */
	bool offload;     /* with LSO and checksum offload */
	bool has_rq;
	u8 log_sq;
	u64 sq_offset; /* start of the send queue in the buffer */
	u16 sq_next;   /* index of the next WQE basic block */
	u16 sq_polled; /* producer index that the last poll found */
	struct list polled;
	struct cx_rq rq;
	struct cx_buf buf;
	struct cx_record record;
	struct list lists; /* of requests that have not completed, oldest first */
	u64 pulled, done;  /* requests; more may be in between than the queue has blocks */
	struct cx_event event[CX_QP_EVENTS];
	struct cx_page_fault fault[2]; /* of the responder, of the requester */
	u8 qpc[CX_BYTES_qpc];
	u8 src_qpn;
};

/* By what command it was created: any SRQ; those of XRC; others. */
enum cx_srq_kind {
	CX_SRQ_ANY,
	CX_SRQ_XRC,
	CX_SRQ_RMP,
};

struct cx_srq {
	struct verbs_srq srq;
	enum cx_srq_kind kind;
	struct cx_rq rq;
	struct cx_buf buf;
	struct cx_record record;
	struct cx_event event[CX_SRQ_EVENTS];
	u8 srqc[CX_BYTES_srqc];
};

struct connectx {
	struct loop *loop;
	struct vfio_server *vfio;
	struct connectx_config cfg;
	struct verbs verbs; /* its context is NULL while no driver is active */
	u64 map_epoch;      /* changes with every unmapping; never repeats */
	u64 pages;          /* page addresses of queues and of lists of registrations */
	u64 command_queue;
	u32 interface;
	bool enabled; /* ENABLE_HCA was executed */
	u8 issi;      /* interface step sequence since then */
	u32 caps_set; /* capability mask bits that the driver has set */
	u8 fatal;     /* syndrome of an internal error (enum cx_syndrome); 0: none */
	/* Of UARs: the driver's choice for INIT_HCA (log2 of 4,096 bytes), and log2 of their size since then. */
	u8 log_uar_page, uar_shift;
	/*
	 * Doorbells that are written as two 32-bit halves, of which the second is missing: a processor of the guest
	 * may write one while another writes to another UAR.
	 */
	struct cx_half {
		u64 at; /* 0: none */
		u8 bytes[4];
	} half[CX_HALVES];
	u32 next_half;
	struct cx_eq *eq[CX_EQS];
	struct cx_event fatal_event, port_event[CX_PORT_EVENTS];
	struct table qpns, uars, counter_sets, flow_counters;
	struct cx_qp *own[CX_OWN_QPNS];
	struct loop_poller poller;
	struct loop_timer poll_timer;
	struct loop_task resume_task, stop_task;
	u32 due;    /* entries of the command queue with a doorbell */
	u32 turn;   /* commands since the last turn began */
	u32 late;   /* entries that a fault delays, until @late_until (loop clock, ns) */
	u32 waited; /* entries whose delay has expired */
	u64 late_until[CX_SLOTS];
	struct loop_timer late_timer;
	u32 found;          /* doorbells since the last poll */
	struct list polled; /* queue pairs with a doorbell since the loop slept, the oldest first */
	u32 npolled;
	u64 counter[CX_CTR_NUM];
	u64 *command_count; /* by row of the command table */
};

static inline struct connectx *cx_of(const struct verbs *v)
{
	return container_of(v, struct connectx, verbs);
}

static inline struct cx_qp *cx_qp_of(struct verbs_qp *qp)
{
	return container_of(qp, struct cx_qp, qp);
}

static inline void cx_count(struct connectx *d, enum cx_counter c)
{
	d->counter[c]++;
}

/* buf.c */
/* Pages of a queue: the list at the end of the command, and parameters from the context. */
struct cx_pages {
	const u8 *list;
	u32 n;
	u32 log_page_size; /* in units of 4096 bytes */
	u32 page_offset;   /* in units of 1/64 page */
};
int cx_buf_create(struct connectx *d, struct cx_buf *b, const struct cx_pages *p, u64 size, bool write);
void cx_buf_destroy(struct connectx *d, struct cx_buf *b);
/* Returns @len bytes at @off, within one page; NULL: beyond the queue, or not mapped. */
u8 *cx_buf_at(struct connectx *d, struct cx_buf *b, u64 off, u32 len);
int cx_buf_read(struct connectx *d, struct cx_buf *b, u64 off, void *dst, u32 len);
/*
 * Reads counter @n of a doorbell record. 0; -EFAULT: it is not in memory, which is an error of its queue, since nobody
 * would learn that requests are not executed; -EAGAIN: without Bus Master Enable the adapter reads nothing.
 */
int cx_record_read(struct connectx *d, struct cx_record *r, u32 n, u32 *value);
bool cx_pages_left(const struct connectx *d, u64 n);
extern const struct hca_dma_ops cx_dma;

/* command.c */
struct cx_cmd {
	u16 op, op_mod;
	const u8 *in; /* followed by CX_IN_SLACK zeroes */
	u8 *out;      /* zeroed, followed by the same */
	u32 in_len, out_len;
};
#define CX_IN_SLACK 1024u
/* The answer to a command that destroys an object. */
static inline int cx_destroyed(int err)
{
	return err == -EBUSY ? CX_BAD_RES_STATE : err;
}
/* Returns 0, -errno or an enum cx_status. */
typedef int cx_command(struct connectx *d, const struct cx_cmd *c);
void cx_commands(struct connectx *d); /* executes commands with a doorbell; not called while it does so */
bool cx_commands_serving(void);       /* for any guest: the caller is a task that a command runs */
void cx_commands_late(struct loop_timer *t, struct now now);
void cx_commands_forget(struct connectx *d);
u16 cx_command_op(const char *name); /* 0: unknown */
const char *cx_command_name(u32 n);  /* of the nth row of the table; NULL past the end */
u32 cx_command_total(void);
/* Returns the page list at the end of a command. */
struct cx_pages cx_command_pages(const struct cx_cmd *c, u32 at, u32 log_page_size, u32 page_offset);

/* uar.c */
cx_command cx_alloc_uar, cx_dealloc_uar;
void cx_uars_init(struct connectx *d);
void cx_uars_fini(struct connectx *d);
bool cx_uar_exists(const struct connectx *d, u32 uar);
/* Counts one more (1) or one less (-1) queue with doorbells in the UAR. One more: it exists. */
void cx_uar_use(struct connectx *d, u32 uar, int n);
void cx_uar_write(struct connectx *d, u64 at, const u8 *buf, u32 len);

/* q_counter.c */
cx_command cx_alloc_q_counter, cx_dealloc_q_counter, cx_query_q_counter;
void cx_counter_sets_destroy(struct connectx *d);
bool cx_counter_set_exists(const struct connectx *d, u32 id); /* or it is 0: none */
/* The set has the counters of the HCA's QP @qpn from now on. */
void cx_counter_set_use(struct connectx *d, u32 id, u32 qpn);

/* flow_counter.c */
#define CX_FLOW_COUNTERS 255
cx_command cx_alloc_flow_counter, cx_dealloc_flow_counter, cx_query_flow_counter;

/* fault.c */
enum cx_fate {
	CX_FATE_GOES,
	CX_FATE_FAILS, /* fails with a status */
	CX_FATE_LATE,  /* is delayed, in ns */
	CX_FATE_LOST,
};
enum cx_fate cx_fault_command(struct connectx *d, u16 op, u8 *status, u64 *delay);
/* Contents of the health buffer; @now is the time for its counter. */
struct cx_health {
	u8 syndrome;
	bool rfr; /* request for a reset by the driver (RFR) */
	u64 now;
};
struct cx_health cx_fault_health(const struct connectx *d);
void cx_fault_reset(struct connectx *d); /* ends the requests for a reset */

/* device.c */
#define CX_FW_MAJOR    12u
#define CX_FW_MINOR    28u
#define CX_FW_SUBMINOR 2302u
#define CX_FW_VERSION  (CX_FW_MAJOR << 24 | CX_FW_MINOR << 16 | CX_FW_SUBMINOR)
enum cx_syndrome {
	CX_SYNDROME_INTERNAL = 0x1,
	CX_SYNDROME_EQ_ERR = 0xd,
};
u64 cx_clock(void);
void cx_fatal(struct connectx *d, enum cx_syndrome syndrome);
int cx_start(struct connectx *d);
void cx_stop(struct connectx *d);
void cx_resume_later(struct connectx *d);

/* caps.c */
cx_command cx_query_hca_cap, cx_set_hca_cap, cx_query_adapter, cx_query_issi, cx_set_issi, cx_query_vport;
cx_command cx_special_contexts;

/* register.c */
cx_command cx_access_reg;

/* eq.c */
cx_command cx_create_eq, cx_destroy_eq, cx_query_eq;
void cx_eq_doorbell(struct connectx *d, u32 uar, u32 value, bool arm);
void cx_eq_destroy_all(struct connectx *d);
void cx_event_comp(struct connectx *d, struct cx_cq *cq);
void cx_event_command(struct connectx *d, struct cx_eq *eq, u32 vector);
struct cx_eq *cx_eq_of_type(struct connectx *d, u32 type);
void cx_event_raise(void *fe, const struct hca_event *ev);
void cx_event_page_fault(struct connectx *d, struct cx_page_fault *pf, u8 subtype);
void cx_events_init(struct cx_event *e, u32 n);
void cx_events_forget(struct cx_event *e, u32 n); /* those that wait */

/* cq.c */
cx_command cx_create_cq, cx_destroy_cq, cx_query_cq, cx_modify_cq;
u8 cx_cq_error(struct cx_cq *cq); /* the syndrome for its error event */
void cx_cq_doorbell(struct connectx *d, u32 uar, u32 command, u32 cqn);
int cx_cq_init(struct verbs_cq *cq, u32 entries, const void *cmd);
void cx_cq_fini(struct verbs_cq *cq);
extern const struct hca_cq_ops cx_cq_ops;

/* qp.c, srq.c */
cx_command cx_create_qp, cx_destroy_qp, cx_modify_qp, cx_query_qp, cx_attach_mcg, cx_detach_mcg;
cx_command cx_create_srq, cx_destroy_srq, cx_query_srq, cx_arm_rq;
cx_command cx_create_xrc_srq, cx_destroy_xrc_srq, cx_query_xrc_srq, cx_arm_xrc_srq;
cx_command cx_create_rmp, cx_destroy_rmp, cx_query_rmp, cx_modify_rmp;
extern const struct verbs_ops cx_verbs_ops;
struct cx_qp *cx_qp_get(const struct connectx *d, u32 qpn);
void cx_qp_doorbell(struct connectx *d, u32 uar, u32 qpn);
u32 cx_qps_poll(struct connectx *d); /* returns in how many of d->polled requests were found */
void cx_qps_unpoll(struct connectx *d);
void cx_umr_qp_destroy(struct connectx *d, struct cx_qp *qp);
int cx_srq_init(struct verbs_srq *srq, u32 max_wr, const void *cmd);
void cx_srq_fini(struct verbs_srq *srq);
u32 cx_srq_posted(void *fe);
u32 cx_srq_user_index(const struct connectx *d, u32 srqn);
extern const struct hca_wq_ops cx_srq_wq_ops;

/* attr.c: QP contexts and address vectors */
#define CX_STATIC_RATES 0xfffeu /* bits of the codes of static rates */
u8 cx_static_rate(u32 code);    /* as IBTA has it, of one of 16 codes */
void cx_attr_in(const struct connectx *d, struct hca_qp_attr *a, const u8 *qpc);
void cx_attr_out(const struct connectx *d, u8 *qpc, const struct hca_qp_attr *a);

/* wqe.c */
extern const struct hca_wq_ops cx_qp_wq_ops;
/* Token of a send request: its index and opcode. */
#define CX_TOKEN(index, opcode) ((u64)(u8)(opcode) << 16 | (u16)(index))
/*
 * Copies the next request of the send queue to @wqe (CX_WQE_BB * CX_WQE_BBS bytes). Returns its length; 0: none,
 * -EINVAL: malformed.
 */
int cx_sq_take(struct cx_qp *qp, u8 *wqe, u16 *index);
/* As hca_wq_ops, or the error of cx_record_read(). */
int cx_rq_take(struct connectx *d, struct cx_rq *rq, struct cx_buf *b, struct cx_record *r, u32 max_sge,
	       struct hca_recv_wr *wr);
void cx_wq_reset(void *fe);
/*
 * Allocates memory for the last request pulled, until its completion; NULL: out of memory, or the guest's limit is
 * reached.
 */
void *cx_list_alloc(struct cx_qp *qp, u32 bytes);

/* corpus.c: what the driver does, for the fuzzer's corpus, in a build with RECORD=1 */
#ifdef CX_RECORD
void cx_corpus_command(const u8 *in, u32 in_len, u32 out_len);
void cx_corpus_send(struct cx_qp *qp, const u8 *wqe, u16 index, u32 blocks);
void cx_corpus_recv(struct connectx *d, const struct cx_buf *b, const struct cx_record *r, u64 off, const u8 *wqe,
		    u32 len);
#else
static inline void cx_corpus_command(const u8 *in, u32 in_len, u32 out_len) {}
static inline void cx_corpus_send(struct cx_qp *qp, const u8 *wqe, u16 index, u32 blocks) {}
static inline void cx_corpus_recv(struct connectx *d, const struct cx_buf *b, const struct cx_record *r, u64 off,
				  const u8 *wqe, u32 len)
{
}
#endif

/* mkey.c */
cx_command cx_create_mkey, cx_destroy_mkey, cx_query_mkey;
/* Decodes a memory key request of a normal queue pair. 1, or -EINVAL. */
int cx_umr_decode(struct cx_qp *qp, const u8 *wqe, u32 len, struct hca_send_wr *wr);
/* Bytes of the entries that a memory key request takes or checks. */
u32 cx_umr_bytes(struct connectx *d, const u8 *wqe, u32 len);
/* Executes a memory key request of a UMR queue pair. Returns an enum hca_wc_status. */
u8 cx_umr_run(struct connectx *d, const u8 *wqe, u32 len);

/* page_fault.c */
#define CX_NULL_MKEY 0x80u /* of parts of a key that have no pages; keys have an index from 1 on */
cx_command cx_page_fault_resume;
int cx_page_fault(void *dma, const struct hca_page_fault *f); /* of struct hca_dma_ops */
void cx_page_faults_fail(struct connectx *d);
void cx_page_faults_srq_destroyed(struct connectx *d, u32 srqn);

/* special.c: queue pairs that the HCA does not know */
extern const struct verbs_special_ops cx_special_ops;
cx_command cx_mad_ifc;

#endif

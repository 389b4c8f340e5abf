/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verbs objects of a software HCA as a front end (host mode's uverbs, a virtio device, an emulated adapter) uses
 * them. The engine pulls work requests from the front end's queues and returns completions; rings are the front end's.
 * Enumerations have the values of the kernel's ib_verbs.h, so that front ends pass them through. Host byte order.
 *
 * Objects belong to a context (one opener) and are named by number. Every call checks that a number belongs to the
 * calling context: -EINVAL if not, as for an unknown number. -EBUSY: still in use. -ENOMEM: over the limit, or out of
 * memory. -EOPNOTSUPP.
 */
#ifndef MUSLIN_HCA_H
#define MUSLIN_HCA_H

#include "emu/lib/loop.h"
#include "emu/port/port.h"

struct hca;
struct hca_ctx;

#define HCA_MAX_SGE    32
#define HCA_MAX_INLINE 1024

enum hca_qp_type {
	HCA_QPT_SMI,
	HCA_QPT_GSI,
	HCA_QPT_RC,
	HCA_QPT_UC,
	HCA_QPT_UD,
	HCA_QPT_XRC_INI = 9, /* XRC (annex A14): requester only */
	HCA_QPT_XRC_TGT,     /* responder only: each request names an SRQ of its XRC domain */
};
static inline bool hca_qp_type_valid(enum hca_qp_type type)
{
	return (u32)type <= HCA_QPT_UD || type == HCA_QPT_XRC_INI || type == HCA_QPT_XRC_TGT;
}

enum hca_qp_state {
	HCA_QPS_RESET,
	HCA_QPS_INIT,
	HCA_QPS_RTR,
	HCA_QPS_RTS,
	HCA_QPS_SQD,
	HCA_QPS_SQE,
	HCA_QPS_ERR
};
enum hca_mig_state {
	HCA_MIG_MIGRATED,
	HCA_MIG_REARM,
	HCA_MIG_ARMED
};

enum hca_access {
	HCA_ACCESS_LOCAL_WRITE = 1 << 0,
	HCA_ACCESS_REMOTE_WRITE = 1 << 1,
	HCA_ACCESS_REMOTE_READ = 1 << 2,
	HCA_ACCESS_REMOTE_ATOMIC = 1 << 3,
	HCA_ACCESS_MW_BIND = 1 << 4,
	HCA_ACCESS_ZERO_BASED = 1 << 5,
	HCA_ACCESS_ON_DEMAND = 1 << 6,
	HCA_ACCESS_HUGETLB = 1 << 7,
	HCA_ACCESS_FLUSH_GLOBAL = 1 << 8,
	HCA_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	HCA_ACCESS_RELAXED_ORDERING = 1 << 20, /* bits 20-29 are optional hints: accepted and ignored */
	HCA_ACCESS_LOCAL_READ = 1 << 30,       /* implied (10.6.3.1); a memory key of a front end may be without it */
};

/* IB_WR_* */
enum hca_wr_opcode {
	HCA_WR_RDMA_WRITE,
	HCA_WR_RDMA_WRITE_WITH_IMM,
	HCA_WR_SEND,
	HCA_WR_SEND_WITH_IMM,
	HCA_WR_RDMA_READ,
	HCA_WR_ATOMIC_CMP_AND_SWP,
	HCA_WR_ATOMIC_FETCH_AND_ADD,
	HCA_WR_LOCAL_INV = 7 /* user ABI value, see rxe */,
	HCA_WR_BIND_MW = 8,
	HCA_WR_SEND_WITH_INV = 9,
	HCA_WR_REG_MR = 32,
	HCA_WR_NOP = 33, /* muslin's own value: kernel users only */
};
enum hca_send_flags {
	HCA_SEND_FENCE = 1,
	HCA_SEND_SIGNALED = 2,
	HCA_SEND_SOLICITED = 4,
	HCA_SEND_INLINE = 8,
	HCA_SEND_IP_CSUM = 16
};
/* IB_WC_* status */
enum hca_wc_status {
	HCA_WC_SUCCESS,
	HCA_WC_LOC_LEN_ERR,
	HCA_WC_LOC_QP_OP_ERR,
	HCA_WC_LOC_EEC_OP_ERR,
	HCA_WC_LOC_PROT_ERR,
	HCA_WC_WR_FLUSH_ERR,
	HCA_WC_MW_BIND_ERR,
	HCA_WC_BAD_RESP_ERR,
	HCA_WC_LOC_ACCESS_ERR,
	HCA_WC_REM_INV_REQ_ERR,
	HCA_WC_REM_ACCESS_ERR,
	HCA_WC_REM_OP_ERR,
	HCA_WC_RETRY_EXC_ERR,
	HCA_WC_RNR_RETRY_EXC_ERR,
	HCA_WC_LOC_RDD_VIOL_ERR,
	HCA_WC_REM_INV_RD_REQ_ERR,
	HCA_WC_REM_ABORT_ERR,
	HCA_WC_INV_EECN_ERR,
	HCA_WC_INV_EEC_STATE_ERR,
	HCA_WC_FATAL_ERR,
	HCA_WC_RESP_TIMEOUT_ERR,
	HCA_WC_GENERAL_ERR,
	HCA_WC_STATUSES
};
/* IB_WC_* opcode (user ABI values) */
enum hca_wc_opcode {
	HCA_WC_SEND,
	HCA_WC_RDMA_WRITE,
	HCA_WC_RDMA_READ,
	HCA_WC_COMP_SWAP,
	HCA_WC_FETCH_ADD,
	HCA_WC_BIND_MW,
	HCA_WC_LOCAL_INV,
	HCA_WC_LSO,
	HCA_WC_REG_MR = 32, /* muslin's own value: kernel users only */
	HCA_WC_RECV = 128,
	HCA_WC_RECV_RDMA_WITH_IMM = 129,
};
enum hca_wc_flags {
	HCA_WC_GRH = 1,
	HCA_WC_WITH_IMM = 2,
	HCA_WC_WITH_INVALIDATE = 4,
	HCA_WC_IP_CSUM_OK = 8
};

/* Address vector: the attributes of an address handle or of a connected QP's path. */
struct hca_av {
	u16 dlid;
	u8 sl, src_path_bits, static_rate, port;
	bool grh;
	u8 sgid_index, hop_limit, traffic_class;
	u32 flow_label;
	struct wire_gid dgid;
	u8 dmac[6]; /* on Ethernet; zero: resolved by the port */
};

struct hca_sge {
	u64 addr;
	u32 length, lkey;
};

/* A canonical send work request, decoded by the front end into memory of the engine. */
struct hca_send_wr {
	u64 token;      /* returned in the completion (the application's wr_id) */
	u8 opcode;      /* enum hca_wr_opcode */
	u8 flags;       /* enum hca_send_flags */
	u8 mw_type_reg; /* REG_MR: 0: page list; 1: list of keys and ranges, in sge[], or npages of them at @ranges */
	bool reg_free;  /* REG_MR of such a list: fails if the key is valid */
	bool reg_inval; /* REG_MR of a key that a front end defines: peers may invalidate it */
	u32 imm;        /* immediate as a host-order number of the wire's 4 bytes, or the R_Key to invalidate */
	u64 remote_addr;
	u32 rkey;
	u64 compare_add, swap;
	/* UD */
	struct hca_av av;
	u32 remote_qpn, remote_qkey;
	u16 pkey_index;
	u32 remote_srqn; /* XRC */
	/*
	 * UD SEND of a TCP packet to be segmented (large send offload): inline_data has its headers with the IPoIB
	 * encapsulation, the SGEs the payload; mss 0: none.
	 */
	u16 lso_mss, lso_hdr_len;
	/* BIND_MW, LOCAL_INV (rkey), REG_MR */
	/* BIND_MW: mw_rkey is the window's present R_Key; the low byte of reg_key becomes its new one's. REG_MR:
	 * reg_key is the region's new key; access, bind_addr (iova) and bind_len are its new attributes. */
	u32 mw_rkey, mr_lkey, access;
	u64 bind_addr, bind_len;
	u32 reg_key;
	const u64 *pages;
	const struct hca_sge *ranges; /* NULL: sge[] */
	u32 npages, page_shift;
	/* data */
	u16 num_sge;
	u32 inline_len; /* with HCA_SEND_INLINE: bytes in inline_data, before those of the SGEs if there are any */
	struct hca_sge sge[HCA_MAX_SGE];
	u8 inline_data[HCA_MAX_INLINE];
};

struct hca_recv_wr {
	u64 token;
	u16 num_sge;
	struct hca_sge sge[HCA_MAX_SGE];
};

struct hca_cqe {
	u64 token;
	u8 status, opcode; /* enum hca_wc_status, hca_wc_opcode */
	u16 vendor_err;
	u32 byte_len;
	u32 imm; /* immediate (host-order number), or invalidated R_Key, by flags */
	u32 qpn, src_qp;
	u32 srqn; /* of a receive: its SRQ; 0: none */
	u8 flags; /* enum hca_wc_flags */
	u8 sl, dlid_path_bits, port;
	u16 pkey_index, slid;
	bool solicited;
};

/*
 * The front end's queues. @fe is the argument given at creation of the QP or SRQ. next_*() fill @wr and return 1; 0:
 * nothing posted; -EINVAL: the entry is malformed (wr->token is set: the engine completes it with LOC_QP_OP_ERR, or
 * for a receive with LOC_PROT_ERR, and the QP goes to the error state). An entry is pulled once; *_done() is called
 * once for each pulled entry in order, when its slot may be reused. reset(), on the transition to RESET, drops all
 * posted entries.
 */
struct hca_wq_ops {
	int (*next_send)(void *fe, struct hca_send_wr *wr);
	void (*send_done)(void *fe);
	int (*next_recv)(void *fe, struct hca_recv_wr *wr);
	void (*recv_done)(void *fe);
	void (*reset)(void *fe);
	void (*refused)(void *fe); /* a doorbell before RTS: its post has failed, the sends are dropped; may be NULL */
	void (*established)(void *fe); /* the transport has moved the QP to RTS; may be NULL */
};

/* complete(): 0, or -ENOSPC: the ring is full (CQ overflow: the engine raises the error events). The front end owns
 * the ring, arming and completion events. flush(): end of a burst of completions: sends the event of an armed CQ. */
struct hca_cq_ops {
	int (*complete)(void *fe, const struct hca_cqe *cqe);
	void (*flush)(void *fe);
};

enum hca_event_type { /* IB_EVENT_* */
	HCA_EVENT_CQ_ERR,
	HCA_EVENT_QP_FATAL,
	HCA_EVENT_QP_REQ_ERR,
	HCA_EVENT_QP_ACCESS_ERR,
	HCA_EVENT_COMM_EST,
	HCA_EVENT_SQ_DRAINED,
	HCA_EVENT_PATH_MIG,
	HCA_EVENT_PATH_MIG_ERR,
	HCA_EVENT_DEVICE_FATAL,
	HCA_EVENT_PORT_ACTIVE,
	HCA_EVENT_PORT_ERR,
	HCA_EVENT_LID_CHANGE,
	HCA_EVENT_PKEY_CHANGE,
	HCA_EVENT_SM_CHANGE,
	HCA_EVENT_SRQ_ERR,
	HCA_EVENT_SRQ_LIMIT_REACHED,
	HCA_EVENT_QP_LAST_WQE_REACHED,
	HCA_EVENT_CLIENT_REREGISTER,
	HCA_EVENT_GID_CHANGE,
};

/* @fe: of the QP, CQ or SRQ concerned; NULL for port and device events, where @number is the port. */
struct hca_event {
	enum hca_event_type type;
	u32 number;
	void *fe;
};

/*
 * Memory of a context, or of the process that registered a region. Addresses are the application's (or the guest's).
 * read and write move @n segments between application memory and the linear @local buffers in as few calls as
 * possible. They return 0; -EFAULT, after which any part may have been moved; or -EAGAIN: this memory cannot be
 * reached without waiting, use start(). direct() may return a pointer that is valid until the next return to the loop,
 * or NULL. Segments are written in order, see hca_dma_order().
 * @on_demand: of a region whose pages may come and go (ODP): its memory is that of the addresses now.
 */
struct hca_move;
struct hca_page_fault;
struct hca_dma_seg {
	u64 addr;
	u32 len;
	bool on_demand;
	void *local;
};
struct hca_dma_ops {
	int (*read)(void *dma, const struct hca_dma_seg *seg, u32 n);
	int (*write)(void *dma, const struct hca_dma_seg *seg, u32 n);
	void *(*direct)(void *dma, u64 addr, u32 len, bool write); /* may be NULL */
	int (*check)(void *dma, u64 addr, u64 len, bool write);    /* at registration: -EFAULT, -EAGAIN; may be NULL */
	/*
	 * Starts a move after those started before it. 0: done; -EINPROGRESS: hca_move_done() follows, from the loop.
	 * Nothing was moved: -EFAULT, -ENOMEM, -EBUSY (an atomic operation that must wait for earlier moves). NULL if
	 * read(), write() and check() never return -EAGAIN.
	 */
	int (*start)(void *dma, struct hca_move *m);
	void (*use)(void *dma, int by); /* adds @by (1 or -1) to the number of regions of this memory; may be NULL */
	bool on_demand;                 /* regions may have HCA_ACCESS_ON_DEMAND */
	/*
	 * An access needs a page that a memory key lacks (HCA_PAGE_NO_READ). 0: hca_page_fault_resume() follows, if the
	 * QP is neither reset nor destroyed. -errno: the access fails. NULL: all fail.
	 */
	int (*page_fault)(void *dma, const struct hca_page_fault *f);
};
/*
 * Before each segment that is stored to an application's memory: it becomes visible after those before it, also on a
 * machine with weakly ordered memory. The application may poll for a later RDMA WRITE instead of a completion
 * (10.8.3.3: WRITEs are executed in order).
 */
static inline void hca_dma_order(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}
/*
 * Copies @len bytes at @off of the list's memory from or to @buf, for a front end's own queue pair of the PD: its
 * L_Keys are checked. The context's hca_dma_ops must never return -EAGAIN. 0, or -EFAULT: a key does not permit it, the
 * memory cannot be reached, or the list is shorter.
 */
int hca_sge_copy(struct hca_ctx *ctx, u32 pdn, const struct hca_sge *sge, u32 n, u32 off, void *buf, u32 len,
		 bool write);

/*
 * A move that may take long, between segments of application memory and @data, where the bytes of all segments are
 * contiguous. It refers to nothing else, so that another thread can execute it, and free it by free() if the context
 * is destroyed meanwhile.
 */
enum hca_move_op {
	HCA_MOVE_READ,
	HCA_MOVE_WRITE,
	HCA_MOVE_FETCH_ADD, /* one segment of 8 bytes: @data receives the value before */
	HCA_MOVE_CMP_SWAP,
};
struct hca_move_seg {
	u64 addr;
	u32 len;
	bool on_demand;
	bool failed;
};
struct hca_move {
	struct list link;            /* for the thread that executes it */
	struct hca_pending *pending; /* private to dma.c; NULL: abandoned */
	enum hca_move_op op;
	u64 compare_add, swap;
	u32 n, bytes;
	u8 *data;
	struct hca_move_seg seg[];
};
/* The value that an atomic operation stores in place of @value. */
u64 hca_atomic_value(bool swap, u64 value, u64 compare_add, u64 swap_value);
/* The context was destroyed: a move that has not begun must not begin. May be called from any thread. */
static inline bool hca_move_abandoned(const struct hca_move *m)
{
	return !__atomic_load_n(&m->pending, __ATOMIC_RELAXED);
}
/* Completes the move: its segments say which of them failed. Frees it. */
void hca_move_done(struct hca_move *m);
/* Completes the move with all segments failed; the thread that executes @m frees it. */
void hca_move_abandon(struct hca_move *m);

struct hca_caps {
	u32 max_qp, max_qp_wr, max_sge, max_cq, max_cqe, max_mr, max_pd, max_srq, max_srq_wr, max_srq_sge, max_mw,
		max_ah, max_xrcd;
	u32 max_mcast_grp, max_mcast_qp_attach;
	u8 max_qp_rd_atom, max_qp_init_rd_atom, local_ca_ack_delay;
	u32 max_inline;
	u64 max_mr_size;
};

struct hca_config {
	const char *name; /* for messages; copied */
	u64 node_guid, sys_image_guid;
	u8 nports;
	struct wire_port **ports; /* the HCA uses the data member of each */
	u64 seed;                 /* initial keys and QPNs derive from it; PSNs do not */
};

/* Default capabilities (caps.c). */
extern const struct hca_caps hca_caps_default;

struct hca *hca_create(struct loop *loop, const struct hca_config *cfg); /* NULL with errno set */
void hca_destroy(struct hca *hca);                                       /* all contexts must have been destroyed */
struct wire_port *hca_port(struct hca *hca, u8 num);                     /* NULL: no such port */
const struct hca_caps *hca_caps(const struct hca *hca);
u64 hca_node_guid(const struct hca *hca);
u64 hca_sys_image_guid(const struct hca *hca);
u8 hca_nports(const struct hca *hca);
/* Named counters for sysfs hw_counters: name of the nth (NULL past the end) and its value for a port. */
const char *hca_counter_name(u32 n);
u64 hca_counter(const struct hca *hca, u8 port, u32 n);
/*
 * A set of these counters for some QPs of a port, of one context: what concerns such a QP is counted by the set, too.
 * hca_counter_set_destroy() leaves its QPs without a set; it may be called after the context was destroyed.
 */
struct hca_counter_set;
struct hca_counter_set *hca_counter_set_create(void); /* NULL: out of memory */
void hca_counter_set_destroy(struct hca_counter_set *s);
u64 hca_counter_set_value(const struct hca_counter_set *s, u32 n);
/* Current number of objects of all contexts: name of the nth kind (NULL past the end) and how many there are. */
const char *hca_object_name(u32 n);
u32 hca_object_count(const struct hca *hca, u32 n);

struct hca_ctx *hca_ctx_create(struct hca *hca, const struct hca_dma_ops *dma, void *dma_ctx,
			       void (*event)(void *fe, const struct hca_event *ev), void *fe);
/* The context's number, never 0 and never reused: identifies the owner of a queue pair where a pointer could dangle. */
u64 hca_ctx_serial(const struct hca_ctx *ctx);
/* Moves have serial numbers: that of the last one started, and whether all up to @serial have completed. */
u64 hca_ctx_moves(const struct hca_ctx *ctx);
bool hca_ctx_moved(const struct hca_ctx *ctx, u64 serial);
/* The last pending move of data, as opposed to a check of a region's memory at registration; 0: none. */
u64 hca_ctx_transfers(const struct hca_ctx *ctx);
/* Writes to the memory @dma of a process. 0, -EFAULT, or -EINPROGRESS: the write is pending. @local was copied. */
int hca_ctx_write(struct hca_ctx *ctx, void *dma, u64 addr, const void *local, u32 len);
/*
 * The last pending write to the region, or to that of the window, with @key (0: to any memory); 0: none. Starts writes
 * that are still in batches.
 */
u64 hca_ctx_writes(struct hca_ctx *ctx, u32 key);
/* As hca_ctx_writes(), for reads of that memory, too. */
u64 hca_ctx_accesses(struct hca_ctx *ctx, u32 key);
/* The context's objects are the daemon's own: no limit applies, and only the faults that name its queue pairs. */
void hca_ctx_set_internal(struct hca_ctx *ctx);
/* Destroys every object of the context; peers see the errors of IBTA. No callback follows its return. */
void hca_ctx_destroy(struct hca_ctx *ctx);
/*
 * Calls @fn now and at each change of @wanted: whether calls that post sends must call hca_qp_post() first, because a
 * fault lets some of them fail.
 */
void hca_ctx_watch_posts(struct hca_ctx *ctx, void (*fn)(void *fe, bool wanted));
/*
 * 0, or the -errno of a call that posts to the send queue: the requests that it posted, of @opcodes (bits of enum
 * hca_wr_opcode), must not be sent.
 */
int hca_qp_post(struct hca_ctx *ctx, u32 qpn, u64 opcodes);

int hca_pd_alloc(struct hca_ctx *ctx, u32 *pdn);
int hca_pd_free(struct hca_ctx *ctx, u32 pdn);
bool hca_pd_exists(struct hca_ctx *ctx, u32 pdn);
/* Adds @by (1 or -1) to the number of the front end's own queue pairs that use it. -EINVAL: it does not exist. */
int hca_pd_use(struct hca_ctx *ctx, u32 pdn, int by);

/* Attributes of an object for rdma(8) (resource.c). Numbers are the adapter's; 0 and no users: no such object. */
struct hca_resource {
	u32 num, pdn, users;
	u64 len; /* of a region */
};
/* Calls @fn for each object of the context until it returns false, and returns what it returned last. */
typedef bool hca_resource_fn(void *arg, const struct hca_resource *r);
bool hca_pd_each(const struct hca_ctx *ctx, hca_resource_fn *fn, void *arg);
bool hca_mr_each(const struct hca_ctx *ctx, hca_resource_fn *fn, void *arg);
struct hca_resource hca_cq_resource(struct hca_ctx *ctx, u32 cqn);
struct hca_resource hca_srq_resource(struct hca_ctx *ctx, u32 srqn);
u32 hca_qp_srqn(struct hca_ctx *ctx, u32 qpn); /* of the queue pair's SRQ, 0: it has none */
/* XRC domains (annex A14). */
int hca_xrcd_alloc(struct hca_ctx *ctx, u32 *xrcdn);
int hca_xrcd_free(struct hca_ctx *ctx, u32 xrcdn);
bool hca_xrcd_exists(struct hca_ctx *ctx, u32 xrcdn);

/* @va: application address; @iova: address that work requests and remote peers use. rkey equals lkey or 0. */
int hca_mr_reg(struct hca_ctx *ctx, u32 pdn, u64 va, u64 iova, u64 len, u32 access, u32 *lkey, u32 *rkey);
/*
 * As hca_mr_reg(), for the memory @dma of the calling process. -EINPROGRESS: the region exists, but is not valid until
 * its memory has been checked; when hca_ctx_moved() is true, hca_mr_registered() returns 0 or -EFAULT, and then the
 * region has been freed.
 */
int hca_mr_reg_of(struct hca_ctx *ctx, void *dma, u32 pdn, u64 va, u64 iova, u64 len, u32 access, u32 *lkey, u32 *rkey);
int hca_mr_registered(struct hca_ctx *ctx, u32 lkey);
/* May these bytes of a region with on-demand paging be prefetched? 0, -EINVAL (of the PD), or -EFAULT. */
int hca_mr_prefetch_check(struct hca_ctx *ctx, u32 pdn, u32 lkey, u64 va, u32 len, bool write);
/* A region of pages of 1 << @page_shift bytes, which begins at @iova's offset in the first. */
struct hca_mr_init {
	u32 pdn, access;
	u64 iova, len;
	const u64 *pages; /* their addresses in the DMA space: copied, and checked at each access */
	u32 npages, page_shift;
};
int hca_mr_reg_pages(struct hca_ctx *ctx, const struct hca_mr_init *init, u32 *lkey, u32 *rkey);
/* A region for REG_MR work requests of up to @max_pages pages; unusable before the first. */
int hca_mr_alloc(struct hca_ctx *ctx, u32 pdn, u32 max_pages, u32 *lkey);
/* Number of page addresses that the regions of @ctx hold, or may hold after a fast registration. */
u64 hca_mr_pages(const struct hca_ctx *ctx);
int hca_mr_dereg(struct hca_ctx *ctx, u32 lkey);                    /* -EBUSY while windows are bound to it */
int hca_mw_alloc(struct hca_ctx *ctx, u32 pdn, u8 type, u32 *rkey); /* type 1 or 2 */
int hca_mw_free(struct hca_ctx *ctx, u32 rkey); /* by the handle part (upper 24 bits) of its R_Key */

/*
 * A memory key whose attributes the front end sets and changes, as an adapter's driver does: a region, a region for
 * REG_MR, or a memory window. Named by its index, the upper 24 bits; the front end chooses the variant. hca_mr_dereg()
 * destroys it.
 */
enum hca_mkey_kind {
	HCA_MKEY_LINEAR, /* addresses in the DMA space */
	HCA_MKEY_PAGES,
	HCA_MKEY_RANGES, /* of other keys of its PD that are linear, or of pages or blocks */
	HCA_MKEY_BLOCKS, /* as ranges, but each of 1 << page_shift bytes, of keys that are linear or of pages */
};
struct hca_mkey {
	enum hca_mkey_kind kind; /* fixed at creation, as @entries */
	u32 entries;             /* capacity, in pages or ranges */
	u32 pdn, qpn;            /* @qpn: only peers of this QP may use it; 0: any of the PD */
	u8 variant;
	bool valid, remote_inval;
	bool fixed; /* for the front end: memory key requests do not change it */
	u32 access; /* enum hca_access; remote rights without local ones are possible */
	u64 base, len;
	u32 page_shift;
	u32 allocated; /* by hca_mkey_query(): entries for which it has memory, as counted by hca_mr_pages() */
};
int hca_mkey_create(struct hca_ctx *ctx, const struct hca_mkey *m, u32 *key);
int hca_mkey_query(struct hca_ctx *ctx, u32 key, struct hca_mkey *m);
/* -EINVAL also when a valid one would exceed its pages or ranges, or have more rights than the keys of its ranges. */
int hca_mkey_set(struct hca_ctx *ctx, u32 key, const struct hca_mkey *m);
/*
 * Sets entries from @first on. Addresses of pages are checked at each access; these bits of them mean that a page is
 * absent for reads, or for writes. A range of key HCA_RANGE_ABSENT is absent as a whole. An access is a page fault
 * then.
 */
#define HCA_PAGE_NO_READ  1ull
#define HCA_PAGE_NO_WRITE 2ull
#define HCA_RANGE_ABSENT  0u
int hca_mkey_set_pages(struct hca_ctx *ctx, u32 key, u32 first, const u64 *pages, u32 n);
int hca_mkey_set_ranges(struct hca_ctx *ctx, u32 key, u32 first, const struct hca_sge *range, u32 n);
/* Copies up to @n ranges or blocks from the first on, and returns how many; 0 also of other keys. */
u32 hca_mkey_ranges(struct hca_ctx *ctx, u32 key, struct hca_sge *range, u32 n);
/* Bytes of the ranges before number @first, as far as they are set. */
u64 hca_mkey_extent(struct hca_ctx *ctx, u32 key, u32 first);

/*
 * Page faults (on-demand paging). The side of the QP whose access needs an absent page is suspended: that access and
 * the later ones of the side wait, and their requests neither complete nor are acknowledged. The front end knows of one
 * fault of a side at a time. When it has set the pages, it resumes the side.
 */
enum hca_page_fault_kind {
	HCA_PAGE_FAULT_SEND,     /* requester: payload of a send request */
	HCA_PAGE_FAULT_RESPONSE, /* requester: memory for the response to a READ or atomic */
	HCA_PAGE_FAULT_RECV,     /* responder: memory of a receive request */
	HCA_PAGE_FAULT_READ,     /* responder: by an R_Key, an RDMA READ */
	HCA_PAGE_FAULT_WRITE,    /* responder: an RDMA WRITE or atomic */
};
static inline bool hca_page_fault_requester(enum hca_page_fault_kind kind)
{
	return kind <= HCA_PAGE_FAULT_RESPONSE;
}
struct hca_page_fault {
	enum hca_page_fault_kind kind;
	void *fe;  /* of the QP */
	void *srq; /* RECV: of its SRQ; NULL: of the QP's own queue */
	u64 token; /* of the send or receive request */
	u32 key;   /* by R_Key: the access, and how long the operation is from @va on */
	u64 va, len;
};
/* @failed: the pages cannot be set: the waiting accesses of the side fail. -ENOENT: no fault of this side is known. */
int hca_page_fault_resume(struct hca_ctx *ctx, u32 qpn, bool requester, bool failed);

int hca_cq_create(struct hca_ctx *ctx, const struct hca_cq_ops *ops, void *fe, u32 *cqn);
int hca_cq_destroy(struct hca_ctx *ctx, u32 cqn);
/*
 * Adds the completion of a front end's own queue pair, of cqe->port. -ENOSPC: the CQ has overflowed, now or before; the
 * front end moves its own queue pairs to ERR at HCA_EVENT_CQ_ERR.
 */
int hca_cq_complete(struct hca_ctx *ctx, u32 cqn, const struct hca_cqe *cqe);

struct hca_srq_attr {
	u32 max_wr, max_sge, limit;
	u32 xrcdn, cqn; /* of an XRC SRQ: its domain, and the CQ of its receives; 0: no XRC SRQ */
	bool error;     /* by hca_srq_query(): hca_srq_catastrophic() */
};
int hca_srq_create(struct hca_ctx *ctx, u32 pdn, const struct hca_srq_attr *attr, const struct hca_wq_ops *ops,
		   void *fe, u32 *srqn);
/* Arms the limit event, for which the function of hca_srq_set_level() counts the posted receives. */
int hca_srq_set_limit(struct hca_ctx *ctx, u32 srqn, u32 limit);
/* What the front end's queue has room for; -EINVAL: less than the limit. */
int hca_srq_set_max_wr(struct hca_ctx *ctx, u32 srqn, u32 max_wr);
int hca_srq_query(struct hca_ctx *ctx, u32 srqn, struct hca_srq_attr *attr);
/* Sets the front end's function that returns how many receives are posted. */
void hca_srq_set_level(struct hca_ctx *ctx, u32 srqn, u32 (*posted)(void *fe));
/*
 * The front end cannot read the SRQ's queue: HCA_EVENT_SRQ_ERR, once, and each QP that needs one of its receives from
 * now on fails as by hca_qp_catastrophic().
 */
void hca_srq_catastrophic(struct hca_ctx *ctx, u32 srqn);
int hca_srq_destroy(struct hca_ctx *ctx, u32 srqn);

struct hca_qp_init {
	enum hca_qp_type type;
	u32 pdn, send_cqn, recv_cqn;
	u32 srqn;  /* 0: none */
	u32 xrcdn; /* XRC_TGT */
	u32 max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	bool sq_sig_all;
	bool rx_csum; /* UD: set HCA_WC_IP_CSUM_OK for a received IP packet with valid checksums */
	u8 port;      /* special QPs */
	u32 qpn;      /* 0: the engine chooses */
	u32 src_qpn;  /* QPN in the DETH of sent packets; 0: own number */
};
int hca_qp_create(struct hca_ctx *ctx, const struct hca_qp_init *init, const struct hca_wq_ops *ops, void *fe,
		  u32 *qpn);

/* Bits of the mask of hca_qp_modify(): IB_QP_*. */
enum hca_qp_attr_mask {
	HCA_QP_STATE = 1 << 0,
	HCA_QP_CUR_STATE = 1 << 1,
	HCA_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	HCA_QP_ACCESS_FLAGS = 1 << 3,
	HCA_QP_PKEY_INDEX = 1 << 4,
	HCA_QP_PORT = 1 << 5,
	HCA_QP_QKEY = 1 << 6,
	HCA_QP_AV = 1 << 7,
	HCA_QP_PATH_MTU = 1 << 8,
	HCA_QP_TIMEOUT = 1 << 9,
	HCA_QP_RETRY_CNT = 1 << 10,
	HCA_QP_RNR_RETRY = 1 << 11,
	HCA_QP_RQ_PSN = 1 << 12,
	HCA_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	HCA_QP_ALT_PATH = 1 << 14,
	HCA_QP_MIN_RNR_TIMER = 1 << 15,
	HCA_QP_SQ_PSN = 1 << 16,
	HCA_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	HCA_QP_PATH_MIG_STATE = 1 << 18,
	HCA_QP_CAP = 1 << 19,
	HCA_QP_DEST_QPN = 1 << 20,
	HCA_QP_RATE_LIMIT = 1 << 25,
};

struct hca_qp_attr {
	u8 state, cur_state, path_mtu, path_mig_state; /* path_mtu: IBTA code */
	u32 qkey, rq_psn, sq_psn, dest_qpn, access;
	struct hca_av av, alt_av;
	u16 pkey_index, alt_pkey_index;
	bool en_sqd_async_notify, sq_draining;
	u8 max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port, timeout, retry_cnt, rnr_retry, alt_port, alt_timeout;
};
/* -EINVAL if the [from][to] table of required and optional attributes does not allow @mask, or a value is invalid. */
int hca_qp_modify(struct hca_ctx *ctx, u32 qpn, const struct hca_qp_attr *attr, u32 mask);
/* Whether the table of hca_qp_modify() allows the transition, with the attributes of @mask. */
bool hca_qp_transition_ok(enum hca_qp_type type, u8 from, u8 to, u32 mask);
/* The serial number of the QP's context; 0: no such QP. */
u64 hca_qp_owner(struct hca *hca, u32 qpn);
/*
 * For the communication manager: loads the alternate path of a LAP or APR, and rearms. As hca_qp_modify(), and -EINVAL
 * if @owner is not the QP's.
 */
int hca_qp_load_alternate(struct hca *hca, u64 owner, u32 qpn, const struct hca_av *av, u16 pkey_index, u8 timeout);
int hca_qp_query(struct hca_ctx *ctx, u32 qpn, struct hca_qp_attr *attr);
/* Sets hca_qp_init.src_qpn after creation, before the QP is in INIT. -EBUSY: it is already. */
int hca_qp_set_source(struct hca_ctx *ctx, u32 qpn, u32 src_qpn);
/* The set that counts for the QP from now on, instead of the one before; NULL: none. */
int hca_qp_set_counters(struct hca_ctx *ctx, u32 qpn, struct hca_counter_set *set);
int hca_qp_destroy(struct hca_ctx *ctx, u32 qpn); /* -EBUSY while attached to multicast groups */
/* The send queue may have new requests. Idempotent; an unknown number is ignored. */
void hca_qp_doorbell(struct hca_ctx *ctx, u32 qpn);
/*
 * The front end cannot read the QP's queues or doorbell records, now or at later attempts: a task moves it to ERR, with
 * HCA_EVENT_QP_FATAL (local work queue catastrophic error, 11.6.3). No effect in RESET and ERR.
 */
void hca_qp_catastrophic(struct hca_ctx *ctx, u32 qpn);
/*
 * Receives may have been posted: those of a QP in ERR are flushed. A front end whose rings have no receive doorbell
 * calls hca_ctx_poll_recv() while hca_ctx_wants_recv() is true: a QP of the context is in ERR then.
 */
void hca_qp_recv_doorbell(struct hca_ctx *ctx, u32 qpn);
bool hca_ctx_wants_recv(const struct hca_ctx *ctx);
/* Flushes requests posted to QPs of the context in ERR; returns how many. */
u32 hca_ctx_poll_recv(struct hca_ctx *ctx);

/* Address handles: a front end resolves the number in a UD work request by hca_ah_av(). */
int hca_ah_create(struct hca_ctx *ctx, u32 pdn, const struct hca_av *av, u32 *ahn);
int hca_ah_destroy(struct hca_ctx *ctx, u32 ahn);
/* 0; -EINVAL: unknown, or of another PD than the QP's. Called per UD send. */
int hca_ah_av(struct hca_ctx *ctx, u32 qpn, u32 ahn, struct hca_av *av);

int hca_mcast_attach(struct hca_ctx *ctx, u32 qpn, const struct wire_gid *mgid, u16 mlid);
int hca_mcast_detach(struct hca_ctx *ctx, u32 qpn, const struct wire_gid *mgid, u16 mlid);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ABI between the guest's driver and the daemon, included by both.
 *
 * The device is a virtio device with the block device ID, whose config space no block driver accepts: the capacity is
 * a magic number and the block size 1. Its queues: commands (request, then room for the response, in one chain),
 * asynchronous events, a doorbell queue that is only kicked, and a queue of completion events per vector. Work and
 * completion queues are rings of rxe's user ABI in guest memory, so that the guest's stock rdma-core drives them;
 * kernel users store additional fields as struct muslin_wr_reg and struct muslin_wr_ud.
 *
 * Numbers are in host byte order, which is little-endian on both sides. Addresses are guest-physical.
 */
#ifndef MUSLIN_ABI_H
#define MUSLIN_ABI_H

#include <linux/types.h>

#define MUSLIN_VIRTIO_ID    2                     /* block */
#define MUSLIN_CONFIG_MAGIC 0x31306e696c73756dULL /* "muslin01", as the capacity */
#define MUSLIN_ABI_VERSION  4

enum muslin_queue {
	MUSLIN_VQ_COMMAND,
	MUSLIN_VQ_EVENT,
	MUSLIN_VQ_DOORBELL,
	MUSLIN_VQ_COMP, /* the queue of the first vector */
};
#define MUSLIN_VECTORS 4
#define MUSLIN_VQS     (MUSLIN_VQ_COMP + MUSLIN_VECTORS)

#define MUSLIN_HANDLES    4096 /* queue pairs, completion queues, shared receive queues: each from 1 on */
#define MUSLIN_PORTS_MAX  2
#define MUSLIN_GIDS       16
#define MUSLIN_PKEYS      64
#define MUSLIN_SGES       32
#define MUSLIN_INLINE     1024
#define MUSLIN_LSO_HEADER 256 /* bytes of headers of a packet to be segmented */
#define MUSLIN_REG_PAGES  512 /* of a fast registration: one page of addresses */
#define MUSLIN_RING_MAX   (64u << 20)
#define MUSLIN_LISTS_MAX  2048 /* pages of addresses per registration */
#define MUSLIN_LIST_ADDRS 512
#define MUSLIN_PAGE       4096

/*
 * Memory that both sides poll: doorbells and arming without a call. The driver zeroes it and passes its address in
 * HELLO.
 */
struct muslin_shared {
	__u32 asleep;                        /* the daemon sleeps: kick the doorbell queue */
	__u32 rung;                          /* a doorbell bit was set */
	__u64 doorbell[MUSLIN_HANDLES / 64]; /* by handle of the queue pair */
	__u32 arm[MUSLIN_HANDLES];           /* by handle of the completion queue: enum muslin_arm */
};
enum muslin_arm {
	MUSLIN_ARM_NONE,
	MUSLIN_ARM_NEXT,
	MUSLIN_ARM_SOLICITED
};

/* Header of each command; the response has its own structure, with a status first: 0 or -errno. */
struct muslin_cmd {
	__u32 op; /* enum muslin_op */
	__u32 reserved;
};
struct muslin_answer {
	__s32 status;
	__u32 reserved;
};

enum muslin_op {
	MUSLIN_HELLO = 1, /* must be first; destroys all objects of the guest */
	MUSLIN_QUERY_PORT,
	MUSLIN_SET_CAP,
	MUSLIN_MAD,
	MUSLIN_PD_ALLOC,
	MUSLIN_PD_FREE,
	MUSLIN_CQ_CREATE,
	MUSLIN_CQ_RESIZE,
	MUSLIN_CQ_DESTROY,
	MUSLIN_QP_CREATE,
	MUSLIN_QP_MODIFY,
	MUSLIN_QP_QUERY, /* takes the doorbells before it first */
	MUSLIN_QP_DESTROY,
	MUSLIN_SRQ_CREATE,
	MUSLIN_SRQ_SET_LIMIT,
	MUSLIN_SRQ_QUERY,
	MUSLIN_SRQ_DESTROY,
	MUSLIN_AH_CREATE,
	MUSLIN_AH_DESTROY,
	MUSLIN_MR_REG,
	MUSLIN_MR_DMA,
	MUSLIN_MR_ALLOC,
	MUSLIN_MR_FREE,
	MUSLIN_MW_ALLOC,
	MUSLIN_MW_FREE,
	MUSLIN_MCAST_ATTACH,
	MUSLIN_MCAST_DETACH,
	MUSLIN_SRQ_RESIZE,
	MUSLIN_GID_ADD, /* the guest's kernel manages the GID table of an Ethernet port */
	MUSLIN_GID_DEL,
	MUSLIN_OPS
};

/* A ring: struct rxe_queue_buf, in pages of MUSLIN_PAGE whose addresses are in an array at @pages. */
struct muslin_ring {
	__u64 pages;
	__u32 npages;    /* 0: no ring */
	__u32 log2_elem; /* size of an entry */
	__u32 slots;     /* a power of two */
	__u32 reserved;
};

/* Features for datagrams, in the response to HELLO. */
enum muslin_feature {
	MUSLIN_FEATURE_UD_CSUM = 1 << 0, /* IB_SEND_IP_CSUM, IB_WC_IP_CSUM_OK */
	MUSLIN_FEATURE_UD_LSO = 1 << 1,  /* opcode IB_WR_LSO of kernel users */
};

struct muslin_av {
	__u16 dlid;
	__u8 sl, path_bits, static_rate, port;
	__u8 grh, sgid_index;
	__u8 hop_limit, traffic_class;
	__u8 dmac[6]; /* on an Ethernet port */
	__u32 flow_label;
	__u8 dgid[16];
};

/*
 * A datagram of a kernel user, in place of wr.ud.av; ah_num is 0. A packet to be segmented has opcode IB_WR_LSO, and
 * its @hdr_len bytes of headers follow the request's SGEs.
 */
struct muslin_wr_ud {
	struct muslin_av av;
	__u16 mss, hdr_len;
};

/* A fast registration, in place of the union wr of struct rxe_send_wr; opcode IB_WR_REG_MR. */
struct muslin_wr_reg {
	__u64 iova, length;
	__u64 list; /* npages addresses */
	__u32 npages, page_shift;
	__u32 key, access;
};

/* For commands on one object: the handle of a QP, CQ or SRQ, or the number or key of any other. */
struct muslin_object {
	struct muslin_cmd cmd;
	__u32 number;
	__u32 arg;
};
struct muslin_number {
	struct muslin_answer a;
	__u32 number;
	__u32 arg;
};

struct muslin_hello {
	struct muslin_cmd cmd;
	__u64 magic;
	__u32 version;
	__u32 reserved;
	__u64 shared; /* struct muslin_shared */
};
struct muslin_hello_answer {
	struct muslin_answer a;
	__u32 version, ports;
	__u64 node_guid, sys_image_guid;
	__u64 max_mr_size;
	__u32 max_qp, max_qp_wr, max_sge, max_cq, max_cqe, max_mr, max_pd, max_srq, max_srq_wr, max_srq_sge, max_mw,
		max_ah;
	__u32 max_mcast_grp, max_mcast_qp_attach, max_inline;
	__u32 max_rd_atom, local_ca_ack_delay;
	__u32 features; /* enum muslin_feature */
	__u32 epoch;    /* of the device; after a change all objects are gone */
	__u32 reserved;
	char name[64]; /* of the host in its fabric */
};

struct muslin_port_answer {
	struct muslin_answer a;
	__u64 guid;
	__u16 lid, sm_lid;
	__u8 lmc, sm_sl, state, phys_state;
	__u8 mtu_cap, mtu_active, max_vl, width_active;
	__u8 speed; /* the kernel's ib_port_speed; at most 8 bits */
	__u8 subnet_timeout, init_type_reply, gids;
	__u32 cap_mask;
	__u16 pkeys, pkey_violations, qkey_violations, reserved;
	__u8 gid[MUSLIN_GIDS][16]; /* of an InfiniBand port */
	__u16 pkey[MUSLIN_PKEYS];
	__u8 ethernet; /* link layer; the guest's interface with the permanent address @mac is the port's */
	__u8 mac[6], reserved2;
};

/*
 * A GID from an address of the port's network interface, or of a VLAN on it, with the source MAC address of its
 * packets. GID_DEL is a muslin_object: port and index.
 */
struct muslin_gid {
	struct muslin_cmd cmd;
	__u8 port, index;
	__u8 version; /* of RoCE: 1 or 2 */
	__u8 mac[6], reserved;
	__u16 vlan; /* 0: untagged */
	__u32 reserved2;
	__u8 gid[16];
};

struct muslin_set_cap {
	struct muslin_cmd cmd;
	__u32 port, set, clear, reserved;
};

/* A MAD for the port's own management agents. */
struct muslin_mad {
	struct muslin_cmd cmd;
	__u32 port, reserved;
	__u8 mad[256];
};
struct muslin_mad_answer {
	struct muslin_answer a;
	__u32 replied, reserved; /* 0: no agent */
	__u8 mad[256];
};

enum muslin_cq_flags {
	MUSLIN_CQ_KERNEL = 1 << 0, /* flags of completions are the kernel's, not libibverbs's */
};
/* The opcode of a completed registration, which the user ABI does not have. */
#define MUSLIN_WC_REG_MR 32

struct muslin_cq_create { /* also to resize; answer: muslin_number */
	struct muslin_cmd cmd;
	__u32 handle; /* to resize */
	__u32 vector;
	__u32 flags;
	__u32 reserved;
	struct muslin_ring ring;
};

enum muslin_qp_flags {
	MUSLIN_QP_SIG_ALL = 1 << 0,
	MUSLIN_QP_KERNEL = 1 << 1, /* work requests contain address vectors, and may register memory */
	MUSLIN_QP_LSO = 1 << 2,    /* entries of the send queue have MUSLIN_LSO_HEADER bytes more */
};

struct muslin_qp_create { /* answer: handle and QPN in number and arg */
	struct muslin_cmd cmd;
	__u32 type;                              /* IB_QPT_* */
	__u32 flags, pdn, send_cq, recv_cq, srq; /* handles */
	__u32 port;                              /* of a special QP */
	__u32 max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	struct muslin_ring sq, rq;
};

struct muslin_qp_attr {
	__u8 state, cur_state, path_mtu, path_mig_state;
	__u32 qkey, rq_psn, sq_psn, dest_qpn, access;
	__u16 pkey_index, alt_pkey_index;
	__u8 en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic;
	__u8 min_rnr_timer, port, timeout, retry_cnt;
	__u8 rnr_retry, alt_port, alt_timeout, reserved;
	struct muslin_av av, alt_av;
};
struct muslin_qp_modify {
	struct muslin_cmd cmd;
	__u32 handle, mask; /* IB_QP_* */
	struct muslin_qp_attr attr;
};
struct muslin_qp_answer {
	struct muslin_answer a;
	struct muslin_qp_attr attr;
};

struct muslin_srq_create { /* also to resize: then only handle is used */
	struct muslin_cmd cmd;
	__u32 pdn, max_wr, max_sge, limit;
	__u32 handle, reserved;
	struct muslin_ring ring;
};

struct muslin_ah_create {
	struct muslin_cmd cmd;
	__u32 pdn, reserved;
	struct muslin_av av;
};

struct muslin_mr_reg { /* answer: lkey and rkey */
	struct muslin_cmd cmd;
	__u32 pdn, access;
	__u64 iova, length;
	__u32 npages, page_shift;
	__u64 list[]; /* pages of MUSLIN_LIST_ADDRS addresses each */
};

struct muslin_mcast {
	struct muslin_cmd cmd;
	__u32 handle;
	__u16 mlid, reserved;
	__u8 mgid[16];
};

/*
 * A completion of QP1 of an Ethernet port has the packet's VLAN tag (802.1Q; 0: none) in slid, and the 40 bytes before
 * the MAD have the network header in the format of wire_roce_put_network().
 */

/*
 * Events: @number is the handle of the object, or the port. MUSLIN_EVENT_EPOCH, with the epoch, is sent whenever the
 * queue starts: a driver whose HELLO had another epoch, from a daemon that has died or a connection that broke, has
 * lost all objects and must start again.
 */
#define MUSLIN_EVENT_EPOCH 0x10000
struct muslin_event {
	__u32 type; /* IB_EVENT_*, or MUSLIN_EVENT_EPOCH */
	__u32 number;
};
/* Completion events: the handle of an armed CQ with new completions. */
struct muslin_comp {
	__u32 handle;
};

#endif

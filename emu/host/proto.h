/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protocol between the shim and the daemon. SOCK_SEQPACKET connections for each opened device file; one lives as long
 * as any process holds the file, so that the daemon sees the last close. Each request is a struct uv_request and its
 * bytes, each response a struct uv_answer and its bytes, with descriptors as SCM_RIGHTS. A child that inherited a file
 * attaches to it by its own connection, so that its requests do not mix with its parent's; a process attaches by one
 * more while all of its connections wait for responses.
 */
#ifndef MUSLIN_HOST_PROTO_H
#define MUSLIN_HOST_PROTO_H

#include <stdbool.h>
#include <stdint.h>

#define UV_MESSAGE_MAX 65536 /* bytes of a request or answer, with its header */

/* The adapter's PCI address as programs see it. Few machines have this bus; if one has, it is hidden. */
#define UV_PCI_ROOT "pci0000:ef"
#define UV_PCI_SLOT "0000:ef:00.0"

enum uv_kind {
	UV_SYSFS,
	UV_UVERBS,
	UV_UMAD,
	UV_ISSM,
	UV_RDMA_CM,
	UV_NETLINK, /* a socket; unit: protocol; a write is its struct sockaddr_nl and its messages */
	UV_KINDS
};

enum uv_op {
	UV_OPEN,    /* first of a connection: data is a struct uv_open; the answer's a struct uv_opened */
	UV_WRITE,   /* data: bytes written to the file; arg: enum uv_write_flag */
	UV_IOCTL,   /* arg: the request, or a netlink socket's groups; data: the argument, as in each response */
	UV_REFRESH, /* a UV_SYSFS connection: update the tree */
	UV_CLOSED,  /* data: a u64, the inode of a completion channel whose descriptors are all closed */
	UV_COPY,    /* uses this connection for copies: the daemon sends struct uv_copy */
	UV_SHARE,   /* data: a struct uv_share; with a descriptor: the mapped file; without: not shareable */
};

struct uv_request {
	uint32_t op, arg;
};

enum uv_write_flag {
	UV_KEEP_EVENTS = 1 /* DESTROY_ID and LEAVE_MCAST return -EAGAIN while the id or the group has unread events */
};

struct uv_open {
	uint32_t kind, unit; /* the number in the name of the file */
	char host[64];
	uint64_t attach; /* the cookie of an open file; 0: a new file */
};

struct uv_opened {
	uint64_t cookie;
	uint32_t copy; /* the daemon may not access the program's memory: offer UV_COPY */
	uint32_t reserved;
};

/*
 * If process_vm_readv() is denied, a thread of the program copies the bytes, through a memfd that the response to
 * UV_COPY has passed and in which the segments are contiguous. The thread responds to each struct uv_copy with the
 * result as an int32_t.
 */
#define UV_COPY_SEGS 1024
#define UV_COPY_SIZE (1u << 20)
struct uv_copy {
	uint32_t write, n; /* write: into the program */
	struct uv_copy_seg {
		uint64_t addr, len;
	} seg[UV_COPY_SEGS];
};

/* A range of the program's memory in a memfd, sealed against shrinking, from @offset on. */
struct uv_share {
	uint64_t addr, len, offset;
};

struct uv_answer {
	int32_t result; /* 0 or more: result of the system call; less: -errno */
	uint32_t fds;   /* number of passed descriptors */
};

/* UV_IOCTL of RDMA_VERBS_IOCTL: ibv_advise_mr() */
#define UV_ADVISE_MAX 64
struct uv_advise {
	uint32_t pd, advice, flags, n; /* IB_UVERBS_ADVISE_MR_*; ranges */
	struct {
		uint64_t addr;
		uint32_t length, lkey;
	} sge[UV_ADVISE_MAX];
};

/*
 * A uverbs file is a memfd from which the application maps its rings, at the offsets in the responses. The shim and
 * the daemon use its first bytes for doorbells and arming, so that the data path needs no requests.
 */
#define UV_HANDLES     4096         /* QPs, and CQs, of a context */
#define UV_FILE_SIZE   (1ull << 32) /* of the memfd: sparse, sealed */
#define UV_SHARED_SIZE 65536
struct uv_shared {
	uint32_t asleep;      /* set by the daemon before it sleeps: ring the eventfd */
	uint32_t rung;        /* set by the shim after a doorbell */
	uint32_t check_posts; /* set by the daemon: a post may fail, so each is a command */
	uint64_t doorbell[UV_HANDLES / 64];
	uint64_t ready[UV_HANDLES / 64]; /* set by the daemon: the QP accepts sends */
	uint32_t arm[UV_HANDLES];        /* of a CQ: enum uv_arm */
	uint32_t completions;            /* a futex: changes after completions */
	uint32_t waiting;                /* a thread of the program waits on it */
};
enum uv_arm {
	UV_ARM_NONE,
	UV_ARM_NEXT,
	UV_ARM_SOLICITED
};

/* Arming for solicited completions keeps an earlier arming for the next completion (11.4.2.2). */
static inline void uv_arm(uint32_t *arm, bool solicited)
{
	uint32_t none = UV_ARM_NONE;

	if (solicited)
		__atomic_compare_exchange_n(arm, &none, UV_ARM_SOLICITED, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(arm, UV_ARM_NEXT, __ATOMIC_SEQ_CST);
}

#endif

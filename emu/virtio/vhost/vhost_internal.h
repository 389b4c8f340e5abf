/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private state of the back end, and the protocol's messages. */
#ifndef MUSLIN_VHOST_INTERNAL_H
#define MUSLIN_VHOST_INTERNAL_H

#include "emu/lib/client_socket.h"
#include "emu/virtio/vhost/vhost.h"

#define VHOST_REGIONS_MAX 8
#define VHOST_PAGE        4096 /* the smallest of a guest */
#define VHOST_FDS_MAX     8
#define VHOST_NUM_MAX     32768 /* entries per queue */
#define VHOST_DESCS_MAX   1024  /* descriptors per chain, including empty ones */
#define VHOST_TURN        64    /* messages of a front end per turn */

#define VIRTIO_RING_INDIRECT 28
#define VIRTIO_VERSION_1     32
#define VHOST_F_PROTOCOL     30
#define VHOST_PF_MQ          0
#define VHOST_PF_REPLY_ACK   3
#define VHOST_PF_BACKEND_REQ 5
#define VHOST_PF_CONFIG      9
#define VHOST_PF_BACKEND_FD  10
#define VHOST_PROTOCOL_FEATURES                                                               \
	(BIT_ULL(VHOST_PF_MQ) | BIT_ULL(VHOST_PF_REPLY_ACK) | BIT_ULL(VHOST_PF_BACKEND_REQ) | \
	 BIT_ULL(VHOST_PF_CONFIG) | BIT_ULL(VHOST_PF_BACKEND_FD))

enum vhost_request {
	VHOST_GET_FEATURES = 1,
	VHOST_SET_FEATURES = 2,
	VHOST_SET_OWNER = 3,
	VHOST_RESET_OWNER = 4,
	VHOST_SET_MEM_TABLE = 5,
	VHOST_SET_VRING_NUM = 8,
	VHOST_SET_VRING_ADDR = 9,
	VHOST_SET_VRING_BASE = 10,
	VHOST_GET_VRING_BASE = 11,
	VHOST_SET_VRING_KICK = 12,
	VHOST_SET_VRING_CALL = 13,
	VHOST_SET_VRING_ERR = 14,
	VHOST_GET_PROTOCOL_FEATURES = 15,
	VHOST_SET_PROTOCOL_FEATURES = 16,
	VHOST_GET_QUEUE_NUM = 17,
	VHOST_SET_VRING_ENABLE = 18,
	VHOST_SET_BACKEND_REQ_FD = 21,
	VHOST_GET_CONFIG = 24,
	VHOST_SET_CONFIG = 25,
	VHOST_REQUESTS
};

#define VHOST_MSG_VERSION      1u
#define VHOST_MSG_VERSION_MASK 3u
#define VHOST_MSG_REPLY        (1u << 2)
#define VHOST_MSG_NEED_REPLY   (1u << 3)

struct vhost_hdr {
	u32 request, flags, size;
};

struct vhost_mem_region {
	u64 gpa, size, user, offset;
};

union vhost_payload {
	u64 num;
	struct {
		u32 index, num;
	} state;
	struct {
		u32 index, flags;
		u64 desc, used, avail, log;
	} addr;
	struct {
		u32 n, padding;
		struct vhost_mem_region region[VHOST_REGIONS_MAX];
	} mem;
	struct {
		u32 offset, size, flags;
		u8 data[VHOST_CONFIG_MAX];
	} config;
};

struct vhost_region {
	u64 gpa, size, user;
	struct shared_map map;
};

struct vring_desc_le {
	__le64 addr;
	__le32 len;
	__le16 flags, next;
};
struct vring_avail_le {
	__le16 flags, idx, ring[];
};
struct vring_used_elem_le {
	__le32 id, len;
};
struct vring_used_le {
	__le16 flags, idx;
	struct vring_used_elem_le ring[];
};

struct vhost_queue {
	struct vhost *v;
	u32 index;
	bool running, broken, enabled, no_kicks, unsignalled;
	u32 num;
	bool addressed;                       /* SET_VRING_ADDR was received; any value is an address, even 0 */
	u64 desc_user, avail_user, used_user; /* addresses in QEMU */
	/* All NULL unless the three rings are mapped. Required while the queue runs. */
	struct vring_desc_le *desc;
	struct vring_avail_le *avail;
	struct vring_used_le *used;
	u16 last_avail, used_idx;
	struct loop_fd kick;
	int call;
};

struct vhost {
	struct loop *loop;
	const struct vhost_ops *ops;
	void *ctx;
	struct client_socket client; /* the front end */
	u64 features, protocol;
	int req_fd;
	struct vhost_region region[VHOST_REGIONS_MAX];
	u32 nregions;
	struct vhost_queue q[VHOST_QUEUES_MAX];
	struct vhost_stats stats;
	struct vhost_queue_stats queue_stats[VHOST_QUEUES_MAX]; /* outlive connections */
	/* the incoming message */
	struct vhost_hdr hdr;
	u32 got; /* bytes of header and payload so far */
	union vhost_payload in;
	int fds[VHOST_FDS_MAX];
	u32 nfds;
};

/* mem_table.c */
int vhost_memory_set(struct vhost *v, const struct vhost_mem_region *r, u32 n, int *fds, u32 nfds);
void vhost_memory_clear(struct vhost *v);
void *vhost_memory_user(const struct vhost *v, u64 user, u64 len);

/* queue.c */
void vhost_queue_init(struct vhost *v, u32 index);
void vhost_queue_set_num(struct vhost_queue *q, u32 num); /* of a stopped queue */
int vhost_queue_set_addr(struct vhost_queue *q, u64 desc, u64 avail, u64 used);
void vhost_queue_set_kick(struct vhost_queue *q, int fd);
void vhost_queue_set_call(struct vhost_queue *q, int fd);
void vhost_queue_enable(struct vhost_queue *q, bool enable);
void vhost_queue_stop(struct vhost_queue *q);
void vhost_queue_reset(struct vhost_queue *q);
/* Remaps the rings of every queue after a change of the memory table. */
void vhost_queues_remap(struct vhost *v);

/* message.c: handles v->hdr with v->in. 0, or -errno: close the connection. Takes the descriptors that it keeps. */
int vhost_message(struct vhost *v);

#endif

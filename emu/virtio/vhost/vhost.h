/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The back end of a vhost-user device: the socket that QEMU connects to, the guest's memory, and split virtqueues. The
 * device implements its function by callbacks. One front end at a time; further connections are rejected until it
 * disconnects.
 */
#ifndef MUSLIN_VHOST_H
#define MUSLIN_VHOST_H

#include "emu/lib/loop.h"

#define VHOST_QUEUES_MAX 16
#define VHOST_SEGS_MAX   64
#define VHOST_CONFIG_MAX 256

struct vhost;

struct vhost_ops {
	u32 queues;   /* 1 to VHOST_QUEUES_MAX */
	u64 features; /* the device's own bits; those of the transport are added */
	/* Fills the config space of VHOST_CONFIG_MAX zeroed bytes. NULL: QEMU provides it. */
	void (*config)(void *ctx, u8 *config);
	/* The driver, or QEMU on its behalf, has kicked: process the queue. */
	void (*kick)(void *ctx, u32 queue);
	/* A queue starts or stops. It must not be accessed after stop, which is also called for each queue
	 * when the front end disconnects. */
	void (*start)(void *ctx, u32 queue);
	void (*stop)(void *ctx, u32 queue);
	/* The memory table has changed: pointers from vhost_memory() are invalid. */
	void (*memory)(void *ctx);
};

/* A piece of guest memory that a descriptor names. Valid until the next return to the loop. */
struct vhost_seg {
	void *ptr;
	u32 len;
};

/* A descriptor chain: first the bytes of the driver, then room for the device. */
struct vhost_chain {
	u16 head;
	u16 nout, nin;
	u32 out_len, in_len;
	struct vhost_seg seg[VHOST_SEGS_MAX];
};

/* Listens at @path. NULL with errno set. @ops and @ctx must outlive it. vhost_destroy() removes the path. */
struct vhost *vhost_create(struct loop *loop, const char *path, const struct vhost_ops *ops, void *ctx);
void vhost_destroy(struct vhost *v);
bool vhost_connected(const struct vhost *v);
bool vhost_has_feature(const struct vhost *v, u32 bit); /* the driver has accepted it */
const char *vhost_path(const struct vhost *v);

/* Guest memory at @gpa; NULL unless all @len bytes are in one region. */
void *vhost_memory(const struct vhost *v, u64 gpa, u64 len);
/* The same for the part that is in one region: *len is reduced. NULL: unmapped. */
void *vhost_memory_part(const struct vhost *v, u64 gpa, u64 *len);

/* Takes the next chain: 1; 0: none, or the queue is stopped; -EBADMSG: the ring is
 * invalid, the queue has been stopped. */
int vhost_pop(struct vhost *v, u32 queue, struct vhost_chain *c);
/* Returns the chain with @head as used, @written bytes of it filled. vhost_signal() notifies the driver. */
void vhost_push(struct vhost *v, u32 queue, u16 head, u32 written);
/* Interrupt for used chains, unless the driver has disabled it. */
void vhost_signal(struct vhost *v, u32 queue);
/* Whether the driver should kick for new chains: false for a queue whose chains the device only needs later. */
void vhost_want_kicks(struct vhost *v, u32 queue, bool want);

/* Copies from the driver's bytes, or to the device's room, at @off; returns the bytes copied (truncated at the end). */
u32 vhost_chain_read(const struct vhost_chain *c, u32 off, void *dst, u32 len);
u32 vhost_chain_write(const struct vhost_chain *c, u32 off, const void *src, u32 len);

struct vhost_stats {
	u64 messages, bad_messages, refused_connections;
	u64 broken_queues;   /* stopped because of an invalid ring */
	u64 unmapped_queues; /* not started, or stopped, because their rings were not in guest memory */
	u64 lost_memory;
};
void vhost_stats(const struct vhost *v, struct vhost_stats *st);

/* Counters of a queue since the start: kicks by the driver (or QEMU on its behalf),
 * interrupts, and suppressed interrupts. */
struct vhost_queue_stats {
	u64 kicks, signals, suppressed;
};
void vhost_queue_stats(const struct vhost *v, u32 queue, struct vhost_queue_stats *st);

#endif

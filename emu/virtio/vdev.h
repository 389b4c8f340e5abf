/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A guest's HCA: the device of emu/abi over vhost-user, implemented by the verbs objects of an HCA. */
#ifndef MUSLIN_VIRTIO_VDEV_H
#define MUSLIN_VIRTIO_VDEV_H

#include "emu/hca/hca.h"
#include "emu/mad/mad.h"

#define VDEV_QUEUES 7 /* required from the front end */

struct vdev;

struct vdev_config {
	const char *name; /* of the host, for messages; must outlive the device */
	struct hca *hca;
	u32 nports;
	struct mad_port *mad[2];
	/* The port's agents process @mad; the reply replaces it. 1: reply, 0: no agent. */
	int (*local_mad)(void *arg, u8 port, u8 *mad, bool ignore_mkey);
	/* A guest's driver starts or stops using the ports. May be NULL. */
	void (*present)(void *arg, bool here);
	void *arg;
};

/* Listens at @path for a front end. NULL with errno set. The HCA and the MAD ports must outlive it. */
struct vdev *vdev_create(struct loop *loop, const char *path, const struct vdev_config *cfg);
void vdev_destroy(struct vdev *d);
const char *vdev_path(const struct vdev *d);
/* Whether a guest's driver is active. */
bool vdev_in_use(const struct vdev *d);
/* Whether a front end is connected, whose guest may still boot. */
bool vdev_connected(const struct vdev *d);

/* First the exits of the guest: its kicks and interrupts, in total and those of messages.
 * Then errors of the front end. */
#define VDEV_COUNTERS(C)                            \
	C(KICKS, "kicks")                           \
	C(INTERRUPTS, "interrupts")                 \
	C(DOORBELL_KICKS, "doorbell_kicks")         \
	C(COMP_INTERRUPTS, "completion_interrupts") \
	C(BAD_MESSAGES, "vhost_bad_messages")       \
	C(BROKEN_QUEUES, "vhost_broken_queues")     \
	C(UNMAPPED_QUEUES, "vhost_unmapped_queues") \
	C(LOST_MEMORY, "vhost_lost_memory")         \
	C(REFUSED, "vhost_refused_connections")     \
	C(COMMANDS, "commands")                     \
	C(BAD_COMMANDS, "bad_commands")             \
	C(TURNS_OVER, "turns_over_budget")          \
	C(DOORBELLS, "doorbells")                   \
	C(COMP_EVENTS, "completion_events")         \
	C(BAD_WQES, "bad_wqes")                     \
	C(BAD_ADDRESSES, "bad_addresses")           \
	C(MADS_OUT, "mads_out")                     \
	C(MADS_IN, "mads_in")                       \
	C(MADS_DROPPED, "mads_dropped")
#define VDEV_COUNTER_ENUM(name, str) VDEV_CTR_##name,
enum vdev_counter {
	VDEV_COUNTERS(VDEV_COUNTER_ENUM) VDEV_CTR_NUM
};
#undef VDEV_COUNTER_ENUM
const char *vdev_counter_name(enum vdev_counter c);
u64 vdev_counter(const struct vdev *d, enum vdev_counter c);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the HCA device of a guest, grouped by implementing file. */
#ifndef MUSLIN_VIRTIO_INTERNAL_H
#define MUSLIN_VIRTIO_INTERNAL_H

#include "emu/abi/muslin_abi.h"
#include "emu/verbs/object.h"
#include "emu/verbs/ring.h"
#include "emu/virtio/vdev.h"
#include "emu/virtio/vhost/vhost.h"

#define VDEV_COMMANDS_TURN 8            /* per turn */
#define VDEV_TURN_BYTES    (256u << 10) /* that a command copies, which count as a command */
#define VDEV_PAGES_MAX     (1u << 25)   /* page addresses kept for a guest, of rings and memory regions */

/*
 * An asynchronous event. Each object has one for each type that it may have, so that no event is lost however many wait
 * for buffers of the guest; one that occurs again while it waits is reported once, in the order of the last times.
 */
struct vd_event {
	struct list link; /* in the device's list while it needs a buffer */
	struct muslin_event ev;
};
#define VD_QP_EVENTS  8 /* by the lowest bits of their types, which differ, as those of an SRQ do */
#define VD_SRQ_EVENTS 2

/* A ring in guest pages. */
struct vd_ring {
	struct verbs_ring ring; /* its first page is NULL if the guest's memory was removed */
	struct vdev *d;
	u64 *gpa;
	u32 npages; /* 0: none */
};

struct vd_cq {
	struct verbs_cq cq;
	u32 vector;
	struct vd_ring ring;
	bool kernel;
	struct list due; /* on the vector's list while it needs a buffer of the guest */
	struct vd_event event;
};

struct vd_qp {
	struct verbs_qp qp;
	struct vd_ring sq, rq;
	bool kernel, lso;
	u64 **reg; /* by slot of the send queue: page list of a pending registration */
	struct vd_event event[VD_QP_EVENTS];
};

struct vd_srq {
	struct verbs_srq srq;
	struct vd_ring ring;
	struct vd_event event[VD_SRQ_EVENTS];
};

struct vdev {
	struct loop *loop;
	struct vhost *vhost;
	struct vdev_config cfg;
	struct verbs verbs; /* its context is NULL before HELLO */
	u32 epoch;          /* changes whenever all objects are destroyed; differs from those of earlier daemons */
	u64 shared_gpa;
	struct muslin_shared *shared;
	struct list comp_due[MUSLIN_VECTORS], events_due;
	struct vd_event epoch_event, fatal_event, port_event[MUSLIN_PORTS_MAX][HCA_EVENT_GID_CHANGE + 1];
	struct loop_task comp_task;     /* reports the CQs on comp_due to the driver */
	struct loop_task resume_task;   /* continues work beyond a turn's budget */
	u64 pages;                      /* page addresses in rings and lists of fast registrations */
	u64 bytes;                      /* that the present command copies */
	u32 caps_set[MUSLIN_PORTS_MAX]; /* capability mask bits that the driver has set */
	struct loop_poller poller;
	struct loop_timer poll_timer;
	struct loop_timer hello_timer; /* from the start of the command queue to the first command */
	u64 counter[VDEV_CTR_NUM];
};

static inline void vd_count(struct vdev *d, enum vdev_counter c)
{
	d->counter[c]++;
}

/* guest_dma.c: whether the guest may have @n more page addresses. */
bool vd_pages_left(const struct vdev *d, u64 n);

static inline struct vdev *vd_of(struct verbs *v)
{
	return container_of(v, struct vdev, verbs);
}

static inline struct vd_qp *vd_qp_of(struct verbs_qp *qp)
{
	return container_of(qp, struct vd_qp, qp);
}

/* ring.c */
int vd_ring_create(struct vdev *d, struct vd_ring *r, const struct muslin_ring *desc, u32 min_elem);
void vd_ring_destroy(struct vd_ring *r);
void vd_ring_remap(struct vdev *d, struct vd_ring *r);

/* queue.c: the work and completion queues */
extern const struct hca_wq_ops vd_qp_wq_ops, vd_srq_wq_ops;
extern const struct hca_cq_ops vd_cq_ops;
u32 vd_srq_posted(void *fe);

/* attr.c */
void vd_attr_in(struct hca_qp_attr *a, const struct muslin_qp_attr *m);
void vd_attr_out(struct muslin_qp_attr *m, const struct hca_qp_attr *a);
void vd_av_in(struct hca_av *av, const struct muslin_av *a);

/* object.c */
extern const struct verbs_ops vd_verbs_ops;

/* guest_dma.c */
extern const struct hca_dma_ops vd_dma;

/* event.c */
void vd_events_init(struct vd_event *e, u32 n);
void vd_events_forget(struct vd_event *e, u32 n);
void vd_event_raise(void *fe, const struct hca_event *ev);
void vd_event_put(struct vdev *d, struct vd_event *e, u32 type, u32 number);
void vd_event_flush(struct vdev *d);
void vd_comp_raise(struct vd_cq *cq);
void vd_comp_run(struct loop_task *t, struct now now);
void vd_comp_flush(struct vdev *d, u32 vector);
void vd_events_drop(struct vdev *d);

/* command.c */
void vd_commands(struct vdev *d);
bool vd_commands_serving(void); /* for any guest: the caller is a task that a command runs */
int vd_hello(struct vdev *d, u64 shared);
/* Processes posted requests before a command that stops sending. */
void vd_catch_up(struct vdev *d);

/* vdev.c: the turn's budget is used up; the loop continues in its next iteration. */
void vd_resume_later(struct vdev *d);
extern const struct verbs_special_ops vd_special_ops;

#endif

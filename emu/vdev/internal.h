/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The device's own state, by the file that implements each part. */
#ifndef MUSLIN_VDEV_INTERNAL_H
#define MUSLIN_VDEV_INTERNAL_H

#include "emu/abi/muslin_abi.h"
#include "emu/lib/table.h"
#include "emu/vdev/vdev.h"
#include "emu/vhost/vhost.h"
#include "emu/wqe/wqe.h"

#define VDEV_ELEM_MAX 4096

/* A ring in guest pages. Sizes are the daemon's own copies: what the memory says is not trusted. */
struct vd_ring {
	u64 *gpa;
	u8 **page; /* NULL: the guest's memory has gone */
	u32 npages, mask, shift;
	u32 next; /* where the daemon pulls (send and receive) or puts (CQ) */
	u32 done;
};

struct vd_cq {
	struct vdev *d;
	u32 handle, cqn, vector;
	struct vd_ring ring;
	bool kernel;
	u32 specials; /* special QPs that use it: the engine does not know of them */
	bool wake, wake_solicited;
	struct list due; /* on the vector's list while it waits for a buffer of the guest */
};

struct vd_qp {
	struct vdev *d;
	u32 handle, qpn;
	struct wqe_limits limits; /* of the send queue */
	struct vd_ring sq, rq;
	u32 max_recv_sge;
	bool kernel, sig_all, lso;
	u64 **reg; /* by slot of the send queue: the page list of a registration under way */
	/* special QPs live here alone */
	u8 port;
	u8 state;
	u32 qkey;
	u16 pkey_index;
	struct vd_cq *send_cq, *recv_cq;
};

struct vd_srq {
	struct vdev *d;
	u32 handle, srqn, max_sge;
	struct vd_ring ring;
};

struct vd_event {
	struct list link;
	struct muslin_event ev;
};

struct vdev {
	struct loop *loop;
	struct vhost *vhost;
	struct vdev_config cfg;
	struct hca_ctx *ctx; /* NULL: no driver has said hello */
	u32 epoch;           /* another one after each end of all objects, of this daemon and of any before it */
	u64 shared_gpa;
	struct muslin_shared *shared;
	struct table cqs, qps, srqs;
	struct list comp_due[MUSLIN_VECTORS], events_due;
	struct loop_task comp_task; /* tells the driver of what is on comp_due */
	u32 nevents;
	struct vd_qp *special[MUSLIN_PORTS_MAX][2];
	struct loop_poller poller;
	struct loop_timer poll_timer;
	u64 counter[VDEV_CTR_NUM];
};

static inline void vd_count(struct vdev *d, enum vdev_counter c)
{
	d->counter[c]++;
}

/* ring.c */
int vd_ring_create(struct vdev *d, struct vd_ring *r, const struct muslin_ring *desc, u32 min_elem);
void vd_ring_destroy(struct vd_ring *r);
void vd_ring_remap(struct vdev *d, struct vd_ring *r);
u32 vd_ring_posted(const struct vd_ring *r);
/* Copies the next entry, up to @max bytes of it, to @dst. False: none. */
bool vd_ring_pull(struct vd_ring *r, void *dst, u32 max);
void vd_ring_done(struct vd_ring *r);
void vd_ring_reset(struct vd_ring *r);
/* 0, or -ENOSPC. */
int vd_ring_put(struct vd_ring *r, const void *entry, u32 len);
/* Moves what has not been consumed to @to; false: it does not fit. */
bool vd_ring_move(struct vd_ring *from, struct vd_ring *to, u32 len);
/* The same for what the guest has posted and the daemon has not pulled. */
bool vd_ring_move_posted(const struct vd_ring *from, struct vd_ring *to);

/* queue.c: the work and completion queues */
extern const struct hca_wq_ops vd_qp_wq_ops, vd_srq_wq_ops;
extern const struct hca_cq_ops vd_cq_ops;
u32 vd_srq_posted(void *fe);
int vd_send_pull(struct vd_qp *qp, struct hca_send_wr *wr);
int vd_recv_pull(struct vd_qp *qp, struct hca_recv_wr *wr);
void vd_av_in(struct hca_av *av, const struct muslin_av *a);
void vd_av_out(struct muslin_av *a, const struct hca_av *av);
void vd_qp_free(struct vd_qp *qp);

/* memory.c */
extern const struct hca_dma_ops vd_dma;

/* event.c */
void vd_event_raise(void *fe, const struct hca_event *ev);
void vd_event_put(struct vdev *d, u32 type, u32 number);
void vd_event_flush(struct vdev *d);
void vd_comp_raise(struct vd_cq *cq);
void vd_comp_run(struct loop_task *t, struct now now);
void vd_comp_flush(struct vdev *d, u32 vector);
void vd_events_drop(struct vdev *d);

/* special.c: QP0 and QP1 */
int vd_special_create(struct vdev *d, struct vd_qp *qp, u8 port);
void vd_special_destroy(struct vd_qp *qp);
int vd_special_modify(struct vd_qp *qp, const struct hca_qp_attr *a, u32 mask);
void vd_special_query(const struct vd_qp *qp, struct hca_qp_attr *a);
void vd_special_doorbell(struct vd_qp *qp);

/* command.c */
void vd_commands(struct vdev *d);
int vd_hello(struct vdev *d, u64 shared);
void vd_reset(struct vdev *d);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The guest's driver: its device and objects, by the file that implements each part. */
#ifndef MUSLIN_GUEST_MUSLIN_H
#define MUSLIN_GUEST_MUSLIN_H

#include <linux/if_ether.h>
#include <linux/notifier.h>
#include <linux/virtio.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "emu/abi/muslin_abi.h"

#define MU_BUFFERS 256 /* posted on each queue of events */

struct mu_vector {
	struct mu_dev *dev;
	struct virtqueue *vq;
	spinlock_t lock;
	struct muslin_comp *buf;
};

/* What an Ethernet port is tied to. */
struct mu_eth {
	bool here; /* the port's link layer is Ethernet */
	bool up;   /* as events have told */
	u8 mac[ETH_ALEN];
	struct net_device __rcu *netdev; /* NULL: it has not come, or is gone */
};

struct mu_dev {
	struct ib_device ib; /* first */
	struct virtio_device *vdev;
	struct virtqueue *cmd_vq, *event_vq, *doorbell_vq;
	struct mu_vector vector[MUSLIN_VECTORS];
	spinlock_t cmd_lock;
	struct work_struct event_work;
	struct muslin_event *event_buf;
	struct muslin_shared *shared;
	struct muslin_hello_answer hello;
	bool gone;                    /* the daemon, or all that it had of ours */
	struct work_struct flush;     /* of what is posted to a device that is gone */
	struct xarray cqs, qps, srqs; /* by handle */
	struct xarray qpns;           /* kernel QPs by number, for completions */
	struct mu_qp *special[MUSLIN_PORTS_MAX][2];
	struct mu_eth eth[MUSLIN_PORTS_MAX];
	struct notifier_block netdev_nb;
	struct work_struct rescan;
};

/* A ring in pages of its own. One that user space maps goes when its last mapping does. */
struct mu_ring {
	struct rdma_user_mmap_entry entry;
	struct rxe_queue_buf *buf;
	size_t size;
	u32 mask, shift;
	bool mapped; /* the entry is inserted */
};

/* An object that events name: found under the lock of its table, and kept until the handler has returned. */
struct mu_ref {
	refcount_t refs;
	struct completion gone;
};

struct mu_pd {
	struct ib_pd ib;
	u32 pdn;
};

struct mu_ah {
	struct ib_ah ib;
	u32 number; /* of a user's: 0 otherwise */
	struct muslin_av av;
};

struct mu_cq {
	struct ib_cq ib;
	struct mu_ref ref;
	spinlock_t lock;
	u32 handle;
	bool user;
	struct mu_ring *ring;
};

struct mu_srq {
	struct ib_srq ib;
	struct mu_ref ref;
	spinlock_t lock;
	u32 handle, max_wr, max_sge;
	struct mu_ring *ring;
};

struct mu_qp {
	struct ib_qp ib;
	struct mu_ref ref;
	spinlock_t sq_lock, rq_lock;
	u32 handle;
	bool user, lso, last_wqe; /* the last: IB_EVENT_QP_LAST_WQE_REACHED was told for a device that is gone */
	enum ib_qp_state state;   /* as modified */
	struct ib_qp_cap cap;
	enum ib_sig_type sig_type;
	struct mu_ring *sq, *rq;
};

struct mu_mr {
	struct ib_mr ib;
	struct ib_umem *umem;
	u64 *list; /* of a fast registration */
	u32 npages, max_pages;
};

struct mu_mw {
	struct ib_mw ib;
};

struct mu_ucontext {
	struct ib_ucontext ib;
};

#define MU_TO(name, base)                                                  \
	static inline struct mu_##name *to_mu_##name(struct ib_##base *ib) \
	{                                                                  \
		return container_of(ib, struct mu_##name, ib);             \
	}
MU_TO(dev, device)
MU_TO(pd, pd)
MU_TO(ah, ah)
MU_TO(cq, cq)
MU_TO(srq, srq)
MU_TO(qp, qp)
MU_TO(mr, mr)
#undef MU_TO

/* command.c: @in and @out are copied, so that they may be on the stack. The answer's status, or -errno. May sleep. */
int mu_command(struct mu_dev *dev, u32 op, void *in, size_t in_len, void *out, size_t out_len);
/* A command on one object; @number and @arg (may be NULL) get the answer's. */
int mu_object(struct mu_dev *dev, u32 op, u32 number, u32 arg, u32 *out_number, u32 *out_arg);
void mu_command_done(struct virtqueue *vq);

/* main.c */
void mu_doorbell(struct mu_dev *dev, u32 handle);
struct mu_qp *mu_qp_find(struct mu_dev *dev, u32 handle); /* with a reference; NULL: none */

/* gone.c: a device of which the daemon knows nothing any more */
int mu_gone_init(void);
void mu_gone_exit(void);
void mu_gone_flush(struct work_struct *work);
/* Everything is answered and completed here from now on. In any context. */
void mu_gone(struct mu_dev *dev);
/* The same, and the device is put together anew. In any context. */
void mu_gone_restart(struct mu_dev *dev);
/* What a command to it comes to: what is destroyed is destroyed already. 0 or -errno. */
int mu_gone_answer(u32 op, const void *in);

/* ring.c */
struct mu_ring *mu_ring_create(u32 elem, u32 entries);
void mu_ring_destroy(struct mu_ring *r);
/* Makes the ring known to the user of @udata and fills @mi; NULL udata: nothing. */
int mu_ring_share(struct mu_ring *r, struct ib_ucontext *uctx, struct mminfo *mi);
/* The addresses of the ring's pages in memory that the caller frees by kfree(); NULL without memory. */
u64 *mu_ring_describe(const struct mu_ring *r, struct muslin_ring *desc);
int mu_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void mu_mmap_free(struct rdma_user_mmap_entry *entry);

static inline void *mu_ring_at(const struct mu_ring *r, u32 index)
{
	return r->buf->data + ((size_t)(index & r->mask) << r->shift);
}

/* object.c */
void mu_ref_init(struct mu_ref *ref);
void mu_ref_put(struct mu_ref *ref);
void mu_ref_end(struct mu_ref *ref); /* drops the owner's and waits */
void mu_av_fill(struct muslin_av *av, const struct rdma_ah_attr *attr);
void mu_av_read(struct rdma_ah_attr *attr, const struct muslin_av *av, struct ib_device *dev);
int mu_alloc_pd(struct ib_pd *pd, struct ib_udata *udata);
int mu_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata);
int mu_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int mu_create_user_ah(struct ib_ah *ah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int mu_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr);
int mu_destroy_ah(struct ib_ah *ah, u32 flags);
int mu_attach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid);
int mu_detach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid);
int mu_create_srq(struct ib_srq *srq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int mu_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata);
int mu_query_srq(struct ib_srq *srq, struct ib_srq_attr *attr);
int mu_destroy_srq(struct ib_srq *srq, struct ib_udata *udata);

/* memory.c */
struct ib_mr *mu_get_dma_mr(struct ib_pd *pd, int access);
extern const struct ib_device_ops mu_mr_ops;
struct ib_mr *mu_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_sg);
int mu_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nents, unsigned int *offset);
int mu_dereg_mr(struct ib_mr *mr, struct ib_udata *udata);
int mu_alloc_mw(struct ib_mw *mw, struct ib_udata *udata);
int mu_dealloc_mw(struct ib_mw *mw);

/* qp.c */
int mu_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int mu_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int mu_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init);
int mu_destroy_qp(struct ib_qp *qp, struct ib_udata *udata);

/* cq.c */
extern const struct ib_device_ops mu_cq_ops;
int mu_destroy_cq(struct ib_cq *cq, struct ib_udata *udata);
int mu_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc);
int mu_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags);

/* post.c */
int mu_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
int mu_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
int mu_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);

/* mad.c */
int mu_process_mad(struct ib_device *dev, int flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
		   const struct ib_mad *in, struct ib_mad *out, size_t *out_len, u16 *pkey_index);

/* netdev.c: the interfaces of Ethernet ports, which are looked for from start to stop while the device is registered */
extern const struct ib_device_ops mu_netdev_ops;
void mu_netdev_port(struct mu_dev *dev, u32 port, struct ib_port_attr *a);
int mu_netdev_start(struct mu_dev *dev);
void mu_netdev_stop(struct mu_dev *dev);

/* device.c */
int mu_register(struct mu_dev *dev);
void mu_unregister(struct mu_dev *dev);

#endif

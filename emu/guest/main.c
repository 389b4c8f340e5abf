// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The virtio side of the driver: probe and removal, doorbells, and events. */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>

#include "emu/guest/compat.h"
#include "emu/guest/muslin.h"

/*
 * The first doorbell since the daemon's last poll wakes it: a CPU that finds the flag set knows that another one has
 * kicked. The producer index must be visible before the doorbell: the daemon may be reading the doorbells because of
 * another CPU's, and clears this one when it reads the queue.
 */
void mu_doorbell(struct mu_dev *dev, u32 handle)
{
	if (READ_ONCE(dev->lost)) {
		schedule_work(&dev->flush);
		return;
	}
	smp_mb__before_atomic(); /* set_bit() orders nothing itself */
	set_bit(handle, (unsigned long *)dev->shared->doorbell);
	if (!xchg(&dev->shared->rung, 1) && READ_ONCE(dev->shared->asleep))
		virtqueue_notify(dev->doorbell_vq);
}

/* Events */

struct mu_qp *mu_qp_find(struct mu_dev *dev, u32 handle)
{
	struct mu_qp *qp;
	unsigned long flags;

	xa_lock_irqsave(&dev->qps, flags);
	qp = xa_load(&dev->qps, handle);
	if (qp)
		refcount_inc(&qp->ref.refs);
	xa_unlock_irqrestore(&dev->qps, flags);
	return qp;
}

static struct mu_cq *find_cq(struct mu_dev *dev, u32 handle)
{
	struct mu_cq *cq;
	unsigned long flags;

	xa_lock_irqsave(&dev->cqs, flags);
	cq = xa_load(&dev->cqs, handle);
	if (cq)
		refcount_inc(&cq->ref.refs);
	xa_unlock_irqrestore(&dev->cqs, flags);
	return cq;
}

static struct mu_srq *find_srq(struct mu_dev *dev, u32 handle)
{
	struct mu_srq *srq;
	unsigned long flags;

	xa_lock_irqsave(&dev->srqs, flags);
	srq = xa_load(&dev->srqs, handle);
	if (srq)
		refcount_inc(&srq->ref.refs);
	xa_unlock_irqrestore(&dev->srqs, flags);
	return srq;
}

static void qp_event(struct mu_dev *dev, struct ib_event *ev, u32 handle)
{
	struct mu_qp *qp = mu_qp_find(dev, handle);

	if (!qp)
		return;
	ev->element.qp = &qp->ib;
	if (qp->ib.event_handler)
		qp->ib.event_handler(ev, qp->ib.qp_context);
	mu_ref_put(&qp->ref);
}

static void cq_event(struct mu_dev *dev, struct ib_event *ev, u32 handle)
{
	struct mu_cq *cq = find_cq(dev, handle);

	if (!cq)
		return;
	ev->element.cq = &cq->ib;
	if (cq->ib.event_handler)
		cq->ib.event_handler(ev, cq->ib.cq_context);
	mu_ref_put(&cq->ref);
}

static void srq_event(struct mu_dev *dev, struct ib_event *ev, u32 handle)
{
	struct mu_srq *srq = find_srq(dev, handle);

	if (!srq)
		return;
	ev->element.srq = &srq->ib;
	if (srq->ib.event_handler)
		srq->ib.event_handler(ev, srq->ib.srq_context);
	mu_ref_put(&srq->ref);
}

/* The network interface determines the state of an Ethernet port. */
static bool port_event_counts(const struct mu_dev *dev, const struct muslin_event *e)
{
	if (e->number < 1 || e->number > dev->hello.ports)
		return false;
	return !dev->eth[e->number - 1].here || (e->type != IB_EVENT_PORT_ACTIVE && e->type != IB_EVENT_PORT_ERR);
}

/* Until the device is registered, ib_core lacks the memory of its ports that an event's handling accesses. */
static void port_event(struct mu_dev *dev, const struct muslin_event *e)
{
	struct ib_event ev = { .device = &dev->ib, .event = e->type, .element.port_num = e->number };
	unsigned long *early;

	if (!port_event_counts(dev, e))
		return;
	if (READ_ONCE(dev->registered)) {
		ib_dispatch_event(&ev);
		return;
	}
	early = &dev->early[e->number - 1];
	if (e->type == IB_EVENT_PORT_ACTIVE || e->type == IB_EVENT_PORT_ERR)
		*early &= ~(BIT(IB_EVENT_PORT_ACTIVE) | BIT(IB_EVENT_PORT_ERR)); /* the last one counts */
	if (e->type < BITS_PER_LONG)
		*early |= BIT(e->type);
}

static void early_events(struct mu_dev *dev)
{
	struct muslin_event e;
	unsigned long types;
	u32 i;

	for (i = 0; READ_ONCE(dev->registered) && i < MUSLIN_PORTS_MAX; i++) {
		types = dev->early[i];
		dev->early[i] = 0;
		for (; types; types &= types - 1) {
			e = (struct muslin_event){ .type = __ffs(types), .number = i + 1 };
			port_event(dev, &e);
		}
	}
}

static void dispatch(struct mu_dev *dev, const struct muslin_event *e)
{
	struct ib_event ev = { .device = &dev->ib, .event = e->type };

	switch (e->type) {
	case MUSLIN_EVENT_EPOCH:
		if (dev->hello.epoch && e->number != dev->hello.epoch)
			mu_lost_restart(dev);
		break;
	case IB_EVENT_CQ_ERR:
		cq_event(dev, &ev, e->number);
		break;
	case IB_EVENT_SRQ_ERR:
	case IB_EVENT_SRQ_LIMIT_REACHED:
		srq_event(dev, &ev, e->number);
		break;
	case IB_EVENT_DEVICE_FATAL:
		if (READ_ONCE(dev->registered))
			ib_dispatch_event(&ev);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
	case IB_EVENT_COMM_EST:
	case IB_EVENT_SQ_DRAINED:
	case IB_EVENT_PATH_MIG:
	case IB_EVENT_PATH_MIG_ERR:
	case IB_EVENT_QP_LAST_WQE_REACHED:
		qp_event(dev, &ev, e->number);
		break;
	default:
		port_event(dev, e);
	}
}

static int post_buffer(struct virtqueue *vq, void *buf, unsigned int len)
{
	struct scatterlist sg;

	sg_init_one(&sg, buf, len);
	return virtqueue_add_inbuf(vq, &sg, 1, buf, GFP_ATOMIC);
}

/*
 * In process context: consumers of a queue pair's events take locks that an interrupt must not take (NFS:
 * svc_xprt_enqueue).
 */
static void event_work(struct work_struct *work)
{
	struct mu_dev *dev = container_of(work, struct mu_dev, event_work);
	struct muslin_event *e, copy;
	unsigned int len;

	early_events(dev);
	while ((e = virtqueue_get_buf(dev->event_vq, &len))) {
		copy = *e;
		post_buffer(dev->event_vq, e, sizeof(*e));
		if (len >= sizeof(copy))
			dispatch(dev, &copy);
	}
	virtqueue_kick(dev->event_vq);
}

static void event_done(struct virtqueue *vq)
{
	struct mu_dev *dev = vq->vdev->priv;

	schedule_work(&dev->event_work);
}

static void complete_cq(struct mu_dev *dev, u32 handle)
{
	struct mu_cq *cq = find_cq(dev, handle);

	if (!cq)
		return;
	if (cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
	mu_ref_put(&cq->ref);
}

static void vector_drain(struct mu_vector *v, unsigned long *flags)
{
	struct muslin_comp *c;
	unsigned int len;
	u32 handle;

	while ((c = virtqueue_get_buf(v->vq, &len))) {
		handle = c->handle;
		post_buffer(v->vq, c, sizeof(*c));
		spin_unlock_irqrestore(&v->lock, *flags);
		complete_cq(v->dev, handle);
		spin_lock_irqsave(&v->lock, *flags);
	}
}

static void vector_done(struct virtqueue *vq)
{
	struct mu_dev *dev = vq->vdev->priv;
	struct mu_vector *v = &dev->vector[vq->index - MUSLIN_VQ_COMP];
	unsigned long flags;

	spin_lock_irqsave(&v->lock, flags);
	do {
		virtqueue_disable_cb(vq);
		vector_drain(v, &flags);
	} while (!virtqueue_enable_cb(vq));
	virtqueue_kick(vq);
	spin_unlock_irqrestore(&v->lock, flags);
}

/* Probe and removal */

static int find_queues(struct mu_dev *dev)
{
	static const char *const names[MUSLIN_VQS] = { "command", "event", "doorbell", "comp0",
						       "comp1",   "comp2", "comp3" };
	vq_callback_t *callbacks[MUSLIN_VQS] = { mu_command_done, event_done, NULL };
	struct virtqueue *vqs[MUSLIN_VQS];
	int i, err;

	for (i = 0; i < MUSLIN_VECTORS; i++)
		callbacks[MUSLIN_VQ_COMP + i] = vector_done;
	err = mu_find_vqs(dev->vdev, MUSLIN_VQS, vqs, callbacks, names);
	if (err)
		return err;
	dev->cmd_vq = vqs[MUSLIN_VQ_COMMAND];
	dev->event_vq = vqs[MUSLIN_VQ_EVENT];
	dev->doorbell_vq = vqs[MUSLIN_VQ_DOORBELL];
	for (i = 0; i < MUSLIN_VECTORS; i++)
		dev->vector[i].vq = vqs[MUSLIN_VQ_COMP + i];
	return 0;
}

static int fill_queues(struct mu_dev *dev)
{
	int i, n;

	dev->event_buf = kcalloc(MU_BUFFERS, sizeof(*dev->event_buf), GFP_KERNEL);
	if (!dev->event_buf)
		return -ENOMEM;
	for (n = 0; n < MU_BUFFERS && dev->event_vq->num_free; n++)
		post_buffer(dev->event_vq, &dev->event_buf[n], sizeof(*dev->event_buf));
	for (i = 0; i < MUSLIN_VECTORS; i++) {
		struct mu_vector *v = &dev->vector[i];

		v->buf = kcalloc(MU_BUFFERS, sizeof(*v->buf), GFP_KERNEL);
		if (!v->buf)
			return -ENOMEM;
		for (n = 0; n < MU_BUFFERS && v->vq->num_free; n++)
			post_buffer(v->vq, &v->buf[n], sizeof(*v->buf));
	}
	return 0;
}

static void free_buffers(struct mu_dev *dev)
{
	int i;

	for (i = 0; i < MUSLIN_VECTORS; i++)
		kfree(dev->vector[i].buf);
	kfree(dev->event_buf);
	if (dev->shared)
		free_pages_exact(dev->shared, sizeof(*dev->shared));
}

static int say_hello(struct mu_dev *dev)
{
	struct muslin_hello hello = {
		.magic = MUSLIN_CONFIG_MAGIC,
		.version = MUSLIN_ABI_VERSION,
		.shared = virt_to_phys(dev->shared),
	};
	int err = mu_command(dev, MUSLIN_HELLO, &hello, sizeof(hello), &dev->hello, sizeof(dev->hello));

	if (err == -ETIMEDOUT)
		dev_err(&dev->vdev->dev, "the daemon does not respond: is the guest's memory shared (share=on)?\n");
	else if (err)
		dev_err(&dev->vdev->dev, "the daemon refuses this driver: %d\n", err);
	else if (!dev->hello.ports || dev->hello.ports > MUSLIN_PORTS_MAX)
		err = -EPROTO;
	return err;
}

/* A driver that tried before has left FAILED in the status: restarts negotiation. */
static int renegotiate(struct virtio_device *vdev)
{
	int err;

	virtio_reset_device(vdev);
	virtio_add_status(vdev, VIRTIO_CONFIG_S_ACKNOWLEDGE);
	virtio_add_status(vdev, VIRTIO_CONFIG_S_DRIVER);
	err = vdev->config->finalize_features(vdev);
	if (err)
		return err;
	virtio_add_status(vdev, VIRTIO_CONFIG_S_FEATURES_OK);
	return vdev->config->get_status(vdev) & VIRTIO_CONFIG_S_FEATURES_OK ? 0 : -ENODEV;
}

static void init(struct mu_dev *dev, struct virtio_device *vdev)
{
	int i;

	dev->vdev = vdev;
	vdev->priv = dev;
	spin_lock_init(&dev->cmd_lock);
	INIT_WORK(&dev->event_work, event_work);
	for (i = 0; i < MUSLIN_VECTORS; i++) {
		dev->vector[i].dev = dev;
		spin_lock_init(&dev->vector[i].lock);
	}
	INIT_WORK(&dev->flush, mu_lost_flush);
	xa_init_flags(&dev->cqs, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->qps, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->srqs, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->qpns, XA_FLAGS_LOCK_IRQ);
}

/* After that neither the device nor work accesses what the driver has. */
static void stop(struct mu_dev *dev)
{
	virtio_reset_device(dev->vdev);
	cancel_work_sync(&dev->event_work);
	cancel_work_sync(&dev->flush); /* an event may have queued it */
	mu_command_end(dev);
	dev->vdev->config->del_vqs(dev->vdev);
}

/*
 * Addresses that ib_core maps for the device must be guest-physical ones. Those of an IOMMU that translates are not,
 * nor those of bounce buffers, from and to which nobody copies when a work request uses them.
 */
static int check_dma(struct mu_dev *dev)
{
	struct device *dma = dev->vdev->dev.parent;
	dma_addr_t addr = dma_map_single(dma, dev->shared, sizeof(*dev->shared), DMA_BIDIRECTIONAL);

	if (!dma_mapping_error(dma, addr)) {
		dma_unmap_single(dma, addr, sizeof(*dev->shared), DMA_BIDIRECTIONAL);
		if (addr == virt_to_phys(dev->shared))
			return 0;
	}
	dev_err(&dev->vdev->dev,
		"the device needs guest-physical addresses: no IOMMU without iommu=pt, no swiotlb=force\n");
	return -EOPNOTSUPP;
}

static int probe(struct virtio_device *vdev)
{
	struct mu_dev *dev;
	u64 magic;
	int err;

	virtio_cread(vdev, struct virtio_blk_config, capacity, &magic);
	if (magic != MUSLIN_CONFIG_MAGIC)
		return -ENODEV; /* a real disk */
	err = renegotiate(vdev);
	if (err)
		return err;
	dev = ib_alloc_device(mu_dev, ib);
	if (!dev)
		return -ENOMEM;
	init(dev, vdev);
	dev->shared = alloc_pages_exact(sizeof(*dev->shared), GFP_KERNEL | __GFP_ZERO);
	err = dev->shared ? check_dma(dev) : -ENOMEM;
	if (!err)
		err = find_queues(dev);
	if (err)
		goto free_dev;
	err = fill_queues(dev);
	if (err)
		goto del_vqs;
	virtio_device_ready(vdev);
	schedule_work(&dev->event_work);
	err = say_hello(dev);
	if (!err)
		err = mu_register(dev);
	if (err)
		goto del_vqs;
	WRITE_ONCE(dev->registered, true);
	schedule_work(&dev->event_work);
	return 0;

del_vqs:
	stop(dev);
free_dev:
	free_buffers(dev);
	vdev->priv = NULL;
	ib_dealloc_device(&dev->ib);
	return err;
}

static void remove(struct virtio_device *vdev)
{
	struct mu_dev *dev = vdev->priv;

	if (!dev)
		return; /* restore() has failed */
	if (READ_ONCE(dev->lost))
		flush_work(&dev->flush); /* before the objects are freed, which it accesses */
	WRITE_ONCE(dev->registered, false);
	flush_work(&dev->event_work); /* ib_core handles earlier events of ports before it frees theirs */
	mu_unregister(dev);
	stop(dev);
	free_buffers(dev);
	vdev->priv = NULL;
	ib_dealloc_device(&dev->ib);
}

/*
 * Suspend and hibernation reset the device, and with it all objects: as with mlx5, users see it removed, and another
 * one added at wake-up.
 */
static int freeze(struct virtio_device *vdev)
{
	flush_workqueue(mu_queue); /* a restart, which removes the device, too */
	remove(vdev);
	return 0;
}

static const struct virtio_device_id ids[] = {
	{ MUSLIN_VIRTIO_ID, VIRTIO_DEV_ANY_ID },
	{},
};
MODULE_DEVICE_TABLE(virtio, ids);

static struct virtio_driver muslin_driver = {
	.driver.name = "muslin",
	.driver.owner = THIS_MODULE,
	.id_table = ids,
	.probe = probe,
	.remove = remove,
#ifdef CONFIG_PM_SLEEP
	.freeze = freeze,
	.restore = probe,
#endif
};

struct workqueue_struct *mu_queue;

static int __init muslin_init(void)
{
	int err;

	mu_queue = alloc_workqueue("muslin", WQ_UNBOUND, 0);
	if (!mu_queue)
		return -ENOMEM;
	err = register_virtio_driver(&muslin_driver);
	if (err)
		destroy_workqueue(mu_queue);
	return err;
}
module_init(muslin_init);

static void __exit muslin_exit(void)
{
	unregister_virtio_driver(&muslin_driver);
	destroy_workqueue(mu_queue);
}
module_exit(muslin_exit);

MODULE_DESCRIPTION("muslin: an InfiniBand HCA of a simulated fabric");
MODULE_LICENSE("Dual BSD/GPL");

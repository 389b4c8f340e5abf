// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Asynchronous and completion events to the driver's event buffers; events without a buffer are queued. */
#include "emu/virtio/virtio_internal.h"

void vd_events_init(struct vd_event *e, u32 n)
{
	while (n--)
		list_init(&e[n].link);
}

void vd_events_forget(struct vd_event *e, u32 n)
{
	while (n--)
		list_del(&e[n].link);
}

static bool event_post(struct vdev *d, u32 queue, const void *event, u32 len)
{
	struct vhost_chain c;

	if (vhost_pop(d->vhost, queue, &c) <= 0)
		return false;
	vhost_push(d->vhost, queue, c.head, vhost_chain_write(&c, 0, event, len));
	return true;
}

void vd_event_flush(struct vdev *d)
{
	while (!list_empty(&d->events_due)) {
		struct vd_event *e = list_first(&d->events_due, struct vd_event, link);

		if (!event_post(d, MUSLIN_VQ_EVENT, &e->ev, sizeof(e->ev)))
			break;
		list_del(&e->link);
	}
	vhost_signal(d->vhost, MUSLIN_VQ_EVENT);
}

void vd_event_put(struct vdev *d, struct vd_event *e, u32 type, u32 number)
{
	e->ev = (struct muslin_event){ .type = type, .number = number };
	list_del(&e->link);
	list_add(&d->events_due, &e->link);
	vd_event_flush(d);
}

static_assert(!(HCA_EVENT_QP_LAST_WQE_REACHED % VD_QP_EVENTS) && HCA_EVENT_QP_FATAL &&
		      (int)HCA_EVENT_PATH_MIG_ERR < VD_QP_EVENTS,
	      "events of queue pairs");

void vd_event_raise(void *fe, const struct hca_event *ev)
{
	struct vdev *d = fe;
	struct vd_srq *srq;
	struct vd_qp *qp;
	struct vd_cq *cq;

	switch (ev->type) {
	case HCA_EVENT_CQ_ERR:
		cq = ev->fe;
		vd_event_put(d, &cq->event, ev->type, cq->cq.handle);
		verbs_specials_cq_failed(&d->verbs, ev->fe);
		return;
	case HCA_EVENT_SRQ_ERR:
	case HCA_EVENT_SRQ_LIMIT_REACHED:
		srq = ev->fe;
		vd_event_put(d, &srq->event[ev->type % VD_SRQ_EVENTS], ev->type, srq->srq.handle);
		return;
	case HCA_EVENT_DEVICE_FATAL:
		vd_event_put(d, &d->fatal_event, ev->type, ev->number);
		return;
	default:
		break;
	}
	qp = ev->fe;
	if (qp)
		vd_event_put(d, &qp->event[ev->type % VD_QP_EVENTS], ev->type, qp->qp.handle);
	else if (ev->number && ev->number <= d->cfg.nports)
		vd_event_put(d, &d->port_event[ev->number - 1][ev->type], ev->type, ev->number);
}

/* The driver is asked to kick for new buffers only while events are queued. */
void vd_comp_flush(struct vdev *d, u32 vector)
{
	struct list *due = &d->comp_due[vector];
	u32 queue = MUSLIN_VQ_COMP + vector, tries;

	for (tries = 0; tries < 2; tries++) {
		while (!list_empty(due)) {
			struct vd_cq *cq = list_first(due, struct vd_cq, due);
			struct muslin_comp comp = { .handle = cq->cq.handle };

			if (!event_post(d, queue, &comp, sizeof(comp)))
				break;
			list_del(&cq->due);
			vd_count(d, VDEV_CTR_COMP_EVENTS);
		}
		if (!tries)
			vhost_want_kicks(d->vhost, queue, !list_empty(due));
		if (list_empty(due))
			break;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
	vhost_signal(d->vhost, queue);
}

void vd_comp_raise(struct vd_cq *cq)
{
	struct vdev *d = vd_of(cq->cq.verbs);

	if (list_empty(&cq->due))
		list_add(&d->comp_due[cq->vector], &cq->due);
	loop_task_queue(d->loop, &d->comp_task);
}

/* Interrupt coalescing: one interrupt per vector for a burst of completions. */
void vd_comp_run(struct loop_task *t, struct now now)
{
	struct vdev *d = container_of(t, struct vdev, comp_task);
	u32 i;

	for (i = 0; i < MUSLIN_VECTORS; i++) {
		if (!list_empty(&d->comp_due[i]))
			vd_comp_flush(d, i);
	}
}

void vd_events_drop(struct vdev *d)
{
	while (!list_empty(&d->events_due))
		list_del(d->events_due.next);
}

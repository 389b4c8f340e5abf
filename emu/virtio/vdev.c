// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The HCA device of a guest: virtqueues, doorbells, reset.
 *
 * A driver is active from HELLO until the command queue is stopped, which happens on a reset, a reboot and the end of
 * the guest. Then all objects are destroyed, so that no writes reach memory that the guest reuses.
 */
#include "emu/virtio/vdev.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "emu/lib/log.h"
#include "emu/virtio/virtio_internal.h"

/*
 * The cost of a kick. A polling guest uses a whole processor; if no other is free, the daemon's polling takes it from
 * the guest whose response it waits for. Measured with two emulated guests on two processors and datagrams of 64
 * bytes: 2 us cause forty times the kicks and halve the messages, 50 us halve the kicks without more messages.
 */
#define STAY_NS       (10 * NSEC_PER_USEC)
#define HELLO_NS      (5 * NSEC_PER_SEC)
#define BLK_SIZE      BIT_ULL(6)
#define BLK_MQ        BIT_ULL(12)
#define BLK_SIZE_AT   20
#define BLK_QUEUES_AT 34

const char *vdev_counter_name(enum vdev_counter c)
{
	static const char *const names[] = { VDEV_COUNTERS(COUNTER_NAME) };

	return c < VDEV_CTR_NUM ? names[c] : NULL;
}

static bool is_comp(u32 queue)
{
	return queue >= MUSLIN_VQ_COMP;
}

/* Counters of the vhost-user transport, some per queue. */
static u64 transport_counter(const struct vdev *d, enum vdev_counter c)
{
	struct vhost_queue_stats st;
	struct vhost_stats all;
	u64 sum = 0;
	u32 q;

	vhost_stats(d->vhost, &all);
	switch (c) {
	case VDEV_CTR_BAD_MESSAGES:
		return all.bad_messages;
	case VDEV_CTR_BROKEN_QUEUES:
		return all.broken_queues;
	case VDEV_CTR_UNMAPPED_QUEUES:
		return all.unmapped_queues;
	case VDEV_CTR_LOST_MEMORY:
		return all.lost_memory;
	case VDEV_CTR_REFUSED:
		return all.refused_connections;
	default:
		break;
	}
	for (q = 0; q < MUSLIN_VQS; q++) {
		vhost_queue_stats(d->vhost, q, &st);
		if (c == VDEV_CTR_KICKS || (c == VDEV_CTR_DOORBELL_KICKS && q == MUSLIN_VQ_DOORBELL))
			sum += st.kicks;
		if (c == VDEV_CTR_INTERRUPTS || (c == VDEV_CTR_COMP_INTERRUPTS && is_comp(q)))
			sum += st.signals;
	}
	return sum;
}

u64 vdev_counter(const struct vdev *d, enum vdev_counter c)
{
	if (c < VDEV_CTR_COMMANDS)
		return transport_counter(d, c);
	return c < VDEV_CTR_NUM ? d->counter[c] : 0;
}

static_assert(VDEV_QUEUES == MUSLIN_VQS, "as the contract has it");

/* Doorbells */

static void ring_one(struct verbs_qp *qp)
{
	vd_count(vd_of(qp->verbs), VDEV_CTR_DOORBELLS);
	if (qp->limits.type <= HCA_QPT_GSI)
		verbs_special_run(qp);
	else
		hca_qp_doorbell(qp->verbs->ctx, qp->qpn);
}

static u32 take_doorbells(struct vdev *d)
{
	return verbs_doorbells(&d->verbs, &d->shared->rung, (u64 *)d->shared->doorbell, MUSLIN_HANDLES / 64, ring_one);
}

void vd_catch_up(struct vdev *d)
{
	if (d->shared)
		take_doorbells(d);
	verbs_requests_run(d->loop);
}

static u32 on_poll(struct loop_poller *p, struct now now)
{
	struct vdev *d = container_of(p, struct vdev, poller);
	u32 n;

	if (!d->shared)
		return 0;
	n = take_doorbells(d);
	return n + verbs_poll_recv(&d->verbs, d->loop, &d->poll_timer, now);
}

static bool on_sleep(struct loop_poller *p, bool asleep)
{
	struct vdev *d = container_of(p, struct vdev, poller);

	if (!d->shared)
		return false;
	__atomic_store_n(&d->shared->asleep, asleep, __ATOMIC_SEQ_CST);
	return asleep && __atomic_load_n(&d->shared->rung, __ATOMIC_SEQ_CST);
}

static void on_poll_timer(struct loop_timer *t, struct now now) {}

static void on_resume(struct loop_task *t, struct now now)
{
	struct vdev *d = container_of(t, struct vdev, resume_task);

	/* A command runs tasks: turns of this and other guests begin after it. */
	if (vd_commands_serving()) {
		vd_resume_later(d);
		return;
	}
	vd_commands(d);
	verbs_specials_resume(&d->verbs);
}

void vd_resume_later(struct vdev *d)
{
	vd_count(d, VDEV_CTR_TURNS_OVER);
	loop_task_queue(d->loop, &d->resume_task);
}

/* QP0 and QP1 */

static struct mad_port *special_mad(const struct verbs *v, u8 port)
{
	const struct vdev *d = container_of(v, const struct vdev, verbs);

	return port && port <= d->cfg.nports ? d->cfg.mad[port - 1] : NULL;
}

static void special_count(struct verbs *v, enum verbs_mad_count c)
{
	static const enum vdev_counter counters[] = { [VERBS_MAD_OUT] = VDEV_CTR_MADS_OUT,
						      [VERBS_MAD_IN] = VDEV_CTR_MADS_IN,
						      [VERBS_MAD_DROPPED] = VDEV_CTR_MADS_DROPPED };

	vd_count(vd_of(v), counters[c]);
}

static void special_event(struct verbs *v, const struct hca_event *ev)
{
	vd_event_raise(vd_of(v), ev);
}

static void special_resume(struct verbs *v)
{
	vd_resume_later(vd_of(v));
}

const struct verbs_special_ops vd_special_ops = {
	.mad = special_mad, .count = special_count, .event = special_event, .resume = special_resume
};

/* Start and stop of the driver */

static void init_verbs(struct vdev *d)
{
	verbs_init(&d->verbs, &vd_verbs_ops, d->cfg.hca, 1, MUSLIN_HANDLES - 1);
}

/* Clears the GIDs and capabilities set by the guest's kernel. */
static void clear_ports(struct vdev *d)
{
	static const struct wire_gid none;
	static const struct wire_l2 no_l2;
	u32 port, i;

	for (port = 1; port <= d->cfg.nports; port++) {
		struct wire_port *w = hca_port(d->cfg.hca, (u8)port);

		for (i = 0; w->ops->set_gid && i < MUSLIN_GIDS; i++)
			w->ops->set_gid(w, (u8)i, &none, &no_l2);
		if (d->caps_set[port - 1])
			w->ops->set_cap(w, 0, d->caps_set[port - 1]);
		d->caps_set[port - 1] = 0;
	}
}

static void device_reset(struct vdev *d)
{
	u32 i;

	d->shared = NULL;
	d->shared_gpa = 0;
	loop_timer_cancel(&d->hello_timer);
	if (!d->verbs.ctx)
		return;
	loop_poller_del(&d->poller);
	loop_timer_cancel(&d->poll_timer);
	loop_task_cancel(&d->comp_task);
	loop_task_cancel(&d->resume_task);
	verbs_specials_remove(&d->verbs);
	hca_ctx_destroy(d->verbs.ctx);
	d->verbs.ctx = NULL;
	d->epoch++;
	vd_events_drop(d);
	clear_ports(d);
	verbs_fini(&d->verbs);
	init_verbs(d);
	if (d->cfg.present)
		d->cfg.present(d->cfg.arg, false);
	log_at(LOG_INFO, d->cfg.name, "the guest's driver has stopped");
	for (i = 0; i < VDEV_CTR_NUM; i++)
		log_at(LOG_DEBUG, d->cfg.name, "%s %llu", vdev_counter_name((enum vdev_counter)i),
		       (unsigned long long)vdev_counter(d, (enum vdev_counter)i));
}

int vd_hello(struct vdev *d, u64 shared)
{
	device_reset(d);
	if (shared % sizeof(u64) || !vhost_memory(d->vhost, shared, sizeof(struct muslin_shared)))
		return -EFAULT;
	d->verbs.ctx = hca_ctx_create(d->cfg.hca, &vd_dma, d, vd_event_raise, d);
	if (!d->verbs.ctx)
		return -ENOMEM;
	d->shared_gpa = shared;
	d->shared = vhost_memory(d->vhost, shared, sizeof(*d->shared));
	loop_poller_add(d->loop, &d->poller);
	if (d->cfg.present)
		d->cfg.present(d->cfg.arg, true);
	log_at(LOG_INFO, d->cfg.name, "the guest's driver has started");
	return 0;
}

/* The virtio side */

static void on_config(void *ctx, u8 *config)
{
	__le64 magic = cpu_to_le64(MUSLIN_CONFIG_MAGIC);
	__le32 blk_size = cpu_to_le32(1);
	__le16 queues = cpu_to_le16(MUSLIN_VQS);

	memcpy(config, &magic, sizeof(magic));
	memcpy(config + BLK_SIZE_AT, &blk_size, sizeof(blk_size));
	memcpy(config + BLK_QUEUES_AT, &queues, sizeof(queues));
}

/* A kick of the doorbell queue only wakes the loop. */
static void on_kick(void *ctx, u32 queue)
{
	struct vdev *d = ctx;

	if (queue == MUSLIN_VQ_COMMAND)
		vd_commands(d);
	else if (queue == MUSLIN_VQ_EVENT)
		vd_event_flush(d);
	else if (is_comp(queue))
		vd_comp_flush(d, queue - MUSLIN_VQ_COMP);
}

/*
 * A driver sends HELLO at once. Without share=on its queues stay empty for the daemon: QEMU passes a file of which the
 * guest has a private copy.
 */
static void on_hello_timer(struct loop_timer *t, struct now now)
{
	const struct vdev *d = container_of(t, const struct vdev, hello_timer);

	log_at(LOG_WARN, d->cfg.name, "the guest's driver sends no commands: does QEMU share its memory (share=on)?");
}

/* Also after a reconnect of QEMU, whose driver did not notice the disconnect. */
static void on_start(void *ctx, u32 queue)
{
	struct vdev *d = ctx;

	if (queue == MUSLIN_VQ_COMMAND && !d->verbs.ctx)
		loop_timer_set(d->loop, &d->hello_timer, loop_now(d->loop).ns + HELLO_NS);
	if (queue != MUSLIN_VQ_EVENT)
		return;
	if (!d->verbs.ctx)
		vd_events_drop(d); /* from before this start */
	vd_event_put(d, &d->epoch_event, MUSLIN_EVENT_EPOCH, d->epoch);
}

static void on_stop(void *ctx, u32 queue)
{
	if (queue == MUSLIN_VQ_COMMAND)
		device_reset(ctx);
}

/*
 * Queues that are not in memory any more report it at their next use. Without the shared page there are no doorbells.
 */
static void on_memory(void *ctx)
{
	static const struct hca_event fatal = { .type = HCA_EVENT_DEVICE_FATAL };
	struct vdev *d = ctx;
	struct vd_cq *cq;
	struct vd_qp *qp;
	struct vd_srq *srq;
	u32 i;

	table_for_each (&d->verbs.cqs, i, cq)
		vd_ring_remap(d, &cq->ring);
	table_for_each (&d->verbs.srqs, i, srq)
		vd_ring_remap(d, &srq->ring);
	table_for_each (&d->verbs.qps, i, qp) {
		vd_ring_remap(d, &qp->sq);
		vd_ring_remap(d, &qp->rq);
	}
	if (!d->verbs.ctx)
		return;
	d->shared = vhost_memory(d->vhost, d->shared_gpa, sizeof(*d->shared));
	if (!d->shared)
		vd_event_raise(d, &fatal);
}

static const struct vhost_ops ops = {
	.queues = MUSLIN_VQS,
	.features = BLK_SIZE | BLK_MQ,
	.config = on_config,
	.kick = on_kick,
	.start = on_start,
	.stop = on_stop,
	.memory = on_memory,
};

/* Different from the epochs of earlier daemons: microseconds, of which far more pass in a
 * daemon's lifetime than it has epochs. */
static u32 first_epoch(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (u32)((u64)ts.tv_sec * 1000000 + (u64)ts.tv_nsec / 1000);
}

struct vdev *vdev_create(struct loop *loop, const char *path, const struct vdev_config *cfg)
{
	struct vdev *d = calloc(1, sizeof(*d));
	u32 i;

	if (!d)
		return NULL;
	d->loop = loop;
	d->epoch = first_epoch();
	d->cfg = *cfg;
	d->cfg.nports = min(cfg->nports, (u32)MUSLIN_PORTS_MAX);
	init_verbs(d);
	list_init(&d->events_due);
	vd_events_init(&d->epoch_event, 1);
	vd_events_init(&d->fatal_event, 1);
	vd_events_init(d->port_event[0], sizeof(d->port_event) / sizeof(struct vd_event));
	for (i = 0; i < MUSLIN_VECTORS; i++)
		list_init(&d->comp_due[i]);
	d->poller = (struct loop_poller){ .poll = on_poll, .sleep = on_sleep, .stay_ns = STAY_NS };
	list_init(&d->poller.link);
	loop_task_init(&d->comp_task, vd_comp_run);
	loop_task_init(&d->resume_task, on_resume);
	d->poll_timer.fn = on_poll_timer;
	d->hello_timer.fn = on_hello_timer;
	d->vhost = vhost_create(loop, path, &ops, d);
	if (!d->vhost) {
		int err = errno;

		free(d);
		errno = err;
		return NULL;
	}
	for (i = 0; i < MUSLIN_VECTORS; i++)
		vhost_want_kicks(d->vhost, MUSLIN_VQ_COMP + i, false);
	return d;
}

void vdev_destroy(struct vdev *d)
{
	if (!d)
		return;
	device_reset(d);
	vhost_destroy(d->vhost);
	loop_task_cancel(&d->resume_task); /* also of a guest without a driver, as its events */
	vd_events_drop(d);
	verbs_fini(&d->verbs);
	free(d);
}

const char *vdev_path(const struct vdev *d)
{
	return vhost_path(d->vhost);
}

bool vdev_connected(const struct vdev *d)
{
	return vhost_connected(d->vhost);
}

bool vdev_in_use(const struct vdev *d)
{
	return d->verbs.ctx != NULL;
}

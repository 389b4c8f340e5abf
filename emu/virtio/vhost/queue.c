// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Split virtqueues (virtio 1.2, 2.7). The driver may write the rings at any time: each index is read once and
 * validated. A queue with an invalid ring is stopped until it is started again.
 */
#include <errno.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/lib/passed.h"
#include "emu/virtio/vhost/vhost_internal.h"

#define DESC_NEXT          1
#define DESC_WRITE         2
#define DESC_INDIRECT      4
#define AVAIL_NO_INTERRUPT 1
#define USED_NO_NOTIFY     1

static u16 queue_load16(const __le16 *p)
{
	return le16_to_cpu((__force __le16)__atomic_load_n((const u16 *)(const void *)p, __ATOMIC_ACQUIRE));
}

static void queue_store16(__le16 *p, u16 v)
{
	__atomic_store_n((u16 *)(void *)p, (__force u16)cpu_to_le16(v), __ATOMIC_RELEASE);
}

static void on_kick(struct loop_fd *w, u32 events, struct now now)
{
	struct vhost_queue *q = container_of(w, struct vhost_queue, kick);
	u64 n = 0;
	int err = passed_take(w->fd, &n);

	if (err) {
		if (err != -EAGAIN && err != -EINTR)
			loop_fd_del(w); /* not an eventfd, or closed */
		return;
	}
	q->v->queue_stats[q->index].kicks += n;
	if (q->running)
		q->v->ops->kick(q->v->ctx, q->index);
}

void vhost_queue_init(struct vhost *v, u32 index)
{
	struct vhost_queue *q = &v->q[index];

	memset(q, 0, sizeof(*q));
	q->v = v;
	q->index = index;
	q->enabled = true;
	q->kick.fd = q->call = -1;
	q->kick.fn = on_kick;
}

/*
 * The only translation of the front end's ring addresses to pointers. False: the rings are not in memory that the front
 * end shares; the caller stops the queue if it runs.
 */
static bool queue_map(struct vhost_queue *q)
{
	const struct vhost *v = q->v;

	q->desc = vhost_memory_user(v, q->desc_user, (u64)q->num * sizeof(*q->desc));
	q->avail = vhost_memory_user(v, q->avail_user, sizeof(*q->avail) + 2 * (u64)q->num + 2);
	q->used = vhost_memory_user(v, q->used_user, sizeof(*q->used) + (u64)q->num * sizeof(q->used->ring[0]) + 2);
	if (q->num && q->desc && q->avail && q->used && !((uintptr_t)q->desc & 7) && !((uintptr_t)q->avail & 1) &&
	    !((uintptr_t)q->used & 3))
		return true;
	q->desc = NULL;
	q->avail = NULL;
	q->used = NULL;
	q->v->stats.unmapped_queues++;
	return false;
}

void vhost_queue_set_num(struct vhost_queue *q, u32 num)
{
	q->num = num;
	if (q->addressed)
		queue_map(q); /* the length of the rings has changed */
}

int vhost_queue_set_addr(struct vhost_queue *q, u64 desc, u64 avail, u64 used)
{
	q->addressed = true;
	q->desc_user = desc;
	q->avail_user = avail;
	q->used_user = used;
	if (queue_map(q))
		return 0;
	vhost_queue_stop(q);
	return -EINVAL;
}

/*
 * The device may use queues when the memory changes or one of them stops, and its state in guest memory when one stops:
 * no queue has a pointer to the former memory any more, then neither has the device.
 */
void vhost_queues_remap(struct vhost *v)
{
	u32 i, lost = 0;

	for (i = 0; i < v->ops->queues; i++) {
		struct vhost_queue *q = &v->q[i];

		if (!q->addressed || queue_map(q) || !q->running)
			continue;
		loop_fd_del(&q->kick);
		q->running = false;
		lost |= BIT(i);
	}
	v->ops->memory(v->ctx);
	for (i = 0; i < v->ops->queues; i++) {
		if (lost & BIT(i))
			v->ops->stop(v->ctx, i);
	}
}

static void try_start(struct vhost_queue *q)
{
	if (q->running || !q->desc || q->kick.fd < 0 || !q->enabled)
		return;
	q->running = true;
	q->broken = false;
	q->used_idx = queue_load16(&q->used->idx);
	q->unsignalled = q->used_idx != 0; /* a back end before this one may have ended before it signalled them */
	queue_store16(&q->used->flags, q->no_kicks ? USED_NO_NOTIFY : 0);
	loop_fd_add(q->v->loop, &q->kick, EPOLLIN);
	q->v->ops->start(q->v->ctx, q->index);
	q->v->ops->kick(q->v->ctx, q->index);
	vhost_signal(q->v, q->index);
}

void vhost_queue_stop(struct vhost_queue *q)
{
	loop_fd_del(&q->kick);
	if (!q->running)
		return;
	q->running = false;
	q->v->ops->stop(q->v->ctx, q->index);
}

void vhost_queue_set_kick(struct vhost_queue *q, int fd)
{
	loop_fd_del(&q->kick);
	if (q->kick.fd >= 0)
		close(q->kick.fd);
	q->kick.fd = fd;
	if (q->running && fd >= 0)
		loop_fd_add(q->v->loop, &q->kick, EPOLLIN);
	try_start(q);
}

void vhost_queue_set_call(struct vhost_queue *q, int fd)
{
	if (q->call >= 0)
		close(q->call);
	q->call = fd;
	if (q->unsignalled && q->running)
		vhost_signal(q->v, q->index);
}

void vhost_queue_enable(struct vhost_queue *q, bool enable)
{
	q->enabled = enable;
	if (enable)
		try_start(q);
	else
		vhost_queue_stop(q);
}

void vhost_queue_reset(struct vhost_queue *q)
{
	struct vhost *v = q->v;
	bool no_kicks = q->no_kicks;
	u32 index = q->index;

	vhost_queue_stop(q);
	if (q->kick.fd >= 0)
		close(q->kick.fd);
	if (q->call >= 0)
		close(q->call);
	vhost_queue_init(v, index);
	q->no_kicks = no_kicks;
}

/* Adds one descriptor to the chain; 0, or -EBADMSG. Device-writable ones must be last (2.7.4.2). */
static int add_desc(struct vhost *v, struct vhost_chain *c, const struct vring_desc_le *d)
{
	u64 addr = le64_to_cpu(d->addr), left = le32_to_cpu(d->len);
	bool in = le16_to_cpu(d->flags) & DESC_WRITE;

	if (!in && c->nin)
		return -EBADMSG;
	while (left) {
		u64 part = left;
		void *p = vhost_memory_part(v, addr, &part);
		u32 n = c->nout + c->nin;

		if (!p || n == VHOST_SEGS_MAX || c->out_len + c->in_len + part > 1u << 30)
			return -EBADMSG;
		c->seg[n] = (struct vhost_seg){ p, (u32)part };
		*(in ? &c->nin : &c->nout) += 1;
		*(in ? &c->in_len : &c->out_len) += (u32)part;
		addr += part;
		left -= part;
	}
	return 0;
}

/* Walks a table of @num descriptors from @i; for an indirect one it returns 1. */
static int queue_walk(struct vhost *v, struct vhost_chain *c, const struct vring_desc_le *table, u32 num, u32 i,
		      struct vring_desc_le *indirect)
{
	u32 n;

	for (n = 0; n < min(num, (u32)VHOST_DESCS_MAX); n++) {
		struct vring_desc_le d;
		u16 flags;

		if (i >= num)
			return -EBADMSG;
		memcpy(&d, &table[i], sizeof(d));
		flags = le16_to_cpu(d.flags);
		if (flags & DESC_INDIRECT) {
			*indirect = d;
			return n || !indirect || flags & DESC_NEXT ? -EBADMSG : 1;
		}
		if (add_desc(v, c, &d))
			return -EBADMSG;
		if (!(flags & DESC_NEXT))
			return 0;
		i = le16_to_cpu(d.next);
	}
	return -EBADMSG; /* a loop, or longer than drivers use */
}

static int queue_collect(struct vhost_queue *q, struct vhost_chain *c, u16 head)
{
	struct vring_desc_le ind, none;
	const struct vring_desc_le *table;
	u32 len;
	int err = queue_walk(q->v, c, q->desc, q->num, head, &ind);

	if (err <= 0)
		return err;
	len = le32_to_cpu(ind.len);
	table = vhost_memory(q->v, le64_to_cpu(ind.addr), len);
	if (!table || !len || len % sizeof(*table) || len / sizeof(*table) > VHOST_NUM_MAX)
		return -EBADMSG;
	err = queue_walk(q->v, c, table, len / sizeof(*table), 0, &none);
	return err ? -EBADMSG : 0;
}

static int break_queue(struct vhost_queue *q)
{
	q->broken = true;
	q->v->stats.broken_queues++;
	log_at(LOG_WARN, q->v->client.path, "queue %u has an invalid ring and is stopped", q->index);
	return -EBADMSG;
}

int vhost_pop(struct vhost *v, u32 queue, struct vhost_chain *c)
{
	struct vhost_queue *q = &v->q[queue];
	u16 idx, waiting, head;

	if (!q->running || q->broken)
		return 0;
	idx = queue_load16(&q->avail->idx);
	waiting = (u16)(idx - q->last_avail);
	if (!waiting)
		return 0;
	if (waiting > q->num)
		return break_queue(q);
	head = queue_load16(&q->avail->ring[q->last_avail % q->num]);
	c->head = head;
	c->nout = c->nin = 0;
	c->out_len = c->in_len = 0;
	if (head >= q->num || queue_collect(q, c, head))
		return break_queue(q);
	q->last_avail++;
	return 1;
}

void vhost_push(struct vhost *v, u32 queue, u16 head, u32 written)
{
	struct vhost_queue *q = &v->q[queue];
	struct vring_used_elem_le *e;

	if (!q->running)
		return;
	e = &q->used->ring[q->used_idx % q->num];
	e->id = cpu_to_le32(head);
	e->len = cpu_to_le32(written);
	queue_store16(&q->used->idx, ++q->used_idx);
	q->unsignalled = true;
}

void vhost_signal(struct vhost *v, u32 queue)
{
	struct vhost_queue *q = &v->q[queue];

	if (!q->running || !q->unsignalled || q->call < 0)
		return;
	q->unsignalled = false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (queue_load16(&q->avail->flags) & AVAIL_NO_INTERRUPT) {
		v->queue_stats[queue].suppressed++;
		return;
	}
	v->queue_stats[queue].signals++;
	passed_signal(q->call);
}

void vhost_want_kicks(struct vhost *v, u32 queue, bool want)
{
	struct vhost_queue *q = &v->q[queue];

	q->no_kicks = !want;
	if (q->running)
		queue_store16(&q->used->flags, want ? 0 : USED_NO_NOTIFY);
}

/* Copies from @off of these segments to @to, or, if that is NULL, there from @from. */
static u32 segs_copy(const struct vhost_seg *s, u32 n, u32 off, u8 *to, const u8 *from, u32 len)
{
	u32 part, done = 0;

	for (; n-- && done < len; s++) {
		if (off >= s->len) {
			off -= s->len;
			continue;
		}
		part = min(s->len - off, len - done);
		if (to)
			memcpy(to + done, (const u8 *)s->ptr + off, part);
		else
			memcpy((u8 *)s->ptr + off, from + done, part);
		done += part;
		off = 0;
	}
	return done;
}

u32 vhost_chain_read(const struct vhost_chain *c, u32 off, void *dst, u32 len)
{
	return segs_copy(c->seg, c->nout, off, dst, NULL, len);
}

u32 vhost_chain_write(const struct vhost_chain *c, u32 off, const void *src, u32 len)
{
	return segs_copy(c->seg + c->nout, c->nin, off, NULL, src, len);
}

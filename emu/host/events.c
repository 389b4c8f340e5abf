// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* uverbs completion channels and the asynchronous event file. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/host/channel.h"
#include "emu/host/context.h"
#include "emu/host/readback.h"
#include "emu/lib/passed.h"

#define EVENT_MAX 16

struct queued_event {
	struct list link;
	const void *object;
	u8 event[EVENT_MAX];
	u8 size;
};

static bool send_now(struct uv_events *e, const void *event, size_t size)
{
	return send(e->ours, event, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

static void queued_free(struct queued_event *q)
{
	list_del(&q->link);
	free(q);
}

static void close_ours(struct uv_events *e)
{
	loop_fd_del(&e->writable);
	if (e->ours >= 0)
		uv_channel_close(e->ours);
	e->ours = -1;
}

static void on_writable(struct loop_fd *w, u32 events, struct now now)
{
	struct uv_events *e = container_of(w, struct uv_events, writable);
	struct queued_event *q, *tmp;

	list_for_each_safe (q, tmp, &e->queued, link) {
		if (!send_now(e, q->event, q->size))
			return;
		queued_free(q);
	}
	loop_fd_del(w);
	if (e->ending)
		close_ours(e);
}

int uv_events_open(struct uv_events *e, struct loop *loop, pid_t program)
{
	struct stat st;
	int err = uv_channel_create(&e->ours, &e->theirs);

	if (err)
		return err;
	e->loop = loop;
	e->program = program;
	e->writable = (struct loop_fd){ .fd = e->ours, .fn = on_writable };
	e->ending = e->locked = false;
	list_init(&e->link);
	list_init(&e->queued);
	if (fstat(e->theirs, &st)) {
		err = -errno;
		uv_events_close(e);
		return err;
	}
	e->inode = st.st_ino;
	e->socket = passed_socket(e->theirs);
	return 0;
}

bool uv_events_is(const struct uv_events *e, int fd)
{
	return e->socket && passed_socket(fd) == e->socket;
}

void uv_events_close(struct uv_events *e)
{
	struct queued_event *q, *tmp;

	if (e->theirs < 0)
		return;
	list_for_each_safe (q, tmp, &e->queued, link)
		queued_free(q);
	close_ours(e);
	close(e->theirs);
	e->theirs = -1;
}

void uv_events_end(struct uv_events *e)
{
	if (e->theirs < 0)
		return;
	e->ending = true;
	if (list_empty(&e->queued))
		close_ours(e);
}

bool uv_events_put(struct uv_events *e, const void *object, const void *event, size_t size)
{
	struct queued_event *q;

	if (e->ours < 0 || e->ending)
		return false;
	if (list_empty(&e->queued) && send_now(e, event, size))
		return true;
	list_for_each (q, &e->queued, link)
		if (q->object == object && !memcmp(q->event, event, size))
			return false;
	q = calloc(1, sizeof(*q));
	if (!q)
		return false;
	q->object = object;
	q->size = (u8)size;
	memcpy(q->event, event, size);
	if (list_empty(&e->queued) && loop_fd_add(e->loop, &e->writable, EPOLLOUT)) {
		free(q);
		return false;
	}
	list_add(&e->queued, &q->link);
	return true;
}

u32 uv_events_forget(struct uv_events *e, const void *object, u64 key, size_t size)
{
	struct queued_event *q, *tmp;
	static u8 unread[READBACK_MAX];
	ssize_t len, at;
	u32 n = 0;

	if (e->ours < 0)
		return 0;
	len = e->locked || !uv_unread(e->theirs) ? 0 : uv_readback(e->theirs, e->program, unread);
	e->locked |= len == -ETIMEDOUT;
	for (at = 0; at + (ssize_t)size <= len; at += (ssize_t)size) {
		if (!memcmp(unread + at, &key, sizeof(key)))
			n++;
		else
			send_now(e, unread + at, size);
	}
	list_for_each_safe (q, tmp, &e->queued, link) {
		if (q->object != object)
			continue;
		queued_free(q);
		n++;
	}
	return n;
}

/* The event names the object by the application's handle, and the object counts its events. */
void uv_async_event(void *fe, const struct hca_event *ev)
{
	struct ib_uverbs_async_event_desc desc = { .element = ev->number, .event_type = ev->type };
	struct uverbs *u = fe;
	u32 *count = NULL;

	switch (ev->type) {
	case HCA_EVENT_CQ_ERR:
		count = &((struct uv_cq *)ev->fe)->async_events;
		desc.element = ((struct uv_cq *)ev->fe)->user_handle;
		break;
	case HCA_EVENT_SRQ_ERR:
	case HCA_EVENT_SRQ_LIMIT_REACHED:
		count = &((struct uv_srq *)ev->fe)->async_events;
		desc.element = ((struct uv_srq *)ev->fe)->user_handle;
		break;
	default:
		if (!ev->fe)
			break;
		count = &((struct uv_qp *)ev->fe)->async_events;
		desc.element = ((struct uv_qp *)ev->fe)->user_handle;
	}
	if (uv_events_put(&u->async, ev->fe, &desc, sizeof(desc)) && count)
		(*count)++;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Completion channels and the asynchronous event file. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/uverbs/context.h"

#define EVENT_MAX 16

int uv_events_open(struct uv_events *e)
{
	struct stat st;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -errno;
	e->ours = fds[0];
	e->theirs = fds[1];
	list_init(&e->link);
	if (fstat(e->theirs, &st)) {
		uv_events_close(e);
		return -errno;
	}
	e->inode = st.st_ino;
	return 0;
}

void uv_events_close(struct uv_events *e)
{
	if (e->ours >= 0)
		close(e->ours);
	if (e->theirs >= 0)
		close(e->theirs);
	e->ours = e->theirs = -1;
}

void uv_events_end(struct uv_events *e)
{
	if (e->ours >= 0)
		close(e->ours);
	e->ours = -1;
}

bool uv_events_put(struct uv_events *e, const void *event, size_t size)
{
	return send(e->ours, event, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

u32 uv_events_forget(struct uv_events *e, u64 key, size_t size)
{
	u8 event[EVENT_MAX];
	u32 n = 0, kept = 0, i;
	static u8 keep[65536];

	while (recv(e->theirs, event, size, MSG_DONTWAIT) == (ssize_t)size) {
		if (!memcmp(event, &key, sizeof(key)))
			n++;
		else if ((kept + 1) * size <= sizeof(keep))
			memcpy(keep + kept++ * size, event, size);
	}
	for (i = 0; i < kept; i++)
		uv_events_put(e, keep + i * size, size);
	return n;
}

static u64 element_of(const struct hca_event *ev, u32 **count)
{
	switch (ev->type) {
	case HCA_EVENT_CQ_ERR:
		*count = &((struct uv_cq *)ev->fe)->async_events;
		return ((struct uv_cq *)ev->fe)->user_handle;
	case HCA_EVENT_SRQ_ERR:
	case HCA_EVENT_SRQ_LIMIT_REACHED:
		*count = &((struct uv_srq *)ev->fe)->async_events;
		return ((struct uv_srq *)ev->fe)->user_handle;
	default:
		if (!ev->fe)
			return ev->number;
		*count = &((struct uv_qp *)ev->fe)->async_events;
		return ((struct uv_qp *)ev->fe)->user_handle;
	}
}

void uv_async_event(void *fe, const struct hca_event *ev)
{
	struct uverbs *u = fe;
	u32 *count = NULL;
	struct ib_uverbs_async_event_desc desc = { .element = element_of(ev, &count), .event_type = ev->type };

	if (uv_events_put(&u->async, &desc, sizeof(desc)) && count)
		(*count)++;
}

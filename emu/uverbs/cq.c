// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Commands on completion channels and completion queues. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "emu/uverbs/command.h"

#define MAX_CHANNELS 1024 /* of a context: each holds two descriptors */

void uv_channel_free(struct uverbs *u, struct uv_events *e)
{
	list_del(&e->link);
	u->nchannels--;
	uv_events_close(e);
	free(e);
}

int uv_create_channel(struct uv_call *c)
{
	struct ib_uverbs_create_comp_channel_resp resp = { 0 };
	struct uv_events *e;
	int err;

	if (c->u->nchannels == MAX_CHANNELS)
		return -EMFILE;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	err = uv_events_open(e);
	if (err) {
		free(e);
		return err;
	}
	list_add(&c->u->channels, &e->link);
	c->u->nchannels++;
	c->out_fd = fcntl(e->theirs, F_DUPFD_CLOEXEC, 0);
	uv_call_out(c, &resp, sizeof(resp));
	return 0;
}

/* The channel whose descriptor came along. 0 and NULL: none was meant. */
static int channel_find(struct uv_call *c, s32 meant, struct uv_events **channel)
{
	struct uv_events *e;
	struct stat st;

	*channel = NULL;
	if (meant < 0)
		return 0;
	if (c->fd < 0 || fstat(c->fd, &st))
		return -EBADF;
	list_for_each (e, &c->u->channels, link) {
		if (e->inode == st.st_ino) {
			*channel = e;
			return 0;
		}
	}
	return -EINVAL;
}

static int cq_create(struct uv_call *c, u64 user_handle, u32 cqe, u32 vector, s32 channel,
		     struct ib_uverbs_create_cq_resp *resp, struct rxe_create_cq_resp *rxe)
{
	struct uv_events *events;
	struct uv_cq *cq;
	int err = channel_find(c, channel, &events);

	if (err)
		return err;
	if (vector || !cqe || cqe > hca_caps(c->u->file->host->hca)->max_cqe)
		return -EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->u = c->u;
	cq->user_handle = user_handle;
	cq->channel = events;
	err = uv_ring_create(c->u, &cq->ring, 64, cqe);
	if (!err)
		err = table_add(&c->u->cqs, cq, &cq->handle) ? -ENOMEM : 0;
	if (!err) {
		err = hca_cq_create(c->u->ctx, &uv_cq_ops, cq, &cq->cqn);
		if (err)
			table_remove(&c->u->cqs, cq->handle);
	}
	if (err) {
		uv_ring_destroy(c->u, &cq->ring);
		free(cq);
		return err;
	}
	if (events)
		events->users++;
	c->u->shared->arm[cq->handle] = UV_ARM_NONE;
	resp->cq_handle = cq->handle;
	resp->cqe = cq->ring.mask;
	rxe->mi = uv_ring_info(&cq->ring);
	return 0;
}

int uv_create_cq(struct uv_call *c)
{
	struct ib_uverbs_create_cq cmd;
	struct ib_uverbs_create_cq_resp resp = { 0 };
	struct rxe_create_cq_resp rxe;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (!err)
		err = cq_create(c, cmd.user_handle, cmd.cqe, cmd.comp_vector, cmd.comp_channel, &resp, &rxe);
	if (err)
		return err;
	uv_call_out(c, &resp, sizeof(resp));
	return uv_call_out_driver(c, sizeof(resp), &rxe, sizeof(rxe));
}

int uv_ex_create_cq(struct uv_call *c)
{
	struct ib_uverbs_ex_create_cq cmd;
	struct ib_uverbs_ex_create_cq_resp resp = { 0 };
	struct rxe_create_cq_resp rxe;
	int err;

	uv_call_in_some(c, &cmd, sizeof(cmd));
	if (cmd.flags || cmd.comp_mask)
		return -EOPNOTSUPP;
	err = cq_create(c, cmd.user_handle, cmd.cqe, cmd.comp_vector, cmd.comp_channel, &resp.base, &rxe);
	if (err)
		return err;
	resp.response_length = sizeof(resp);
	uv_call_out(c, &resp, sizeof(resp));
	return uv_call_out_driver(c, sizeof(resp), &rxe, sizeof(rxe));
}

/* What has not been polled moves to the new ring. */
int uv_resize_cq(struct uv_call *c)
{
	struct ib_uverbs_resize_cq cmd;
	struct ib_uverbs_resize_cq_resp resp = { 0 };
	struct rxe_resize_cq_resp rxe;
	struct uv_ring ring, *old;
	struct uv_cq *cq;
	u32 consumer, n, i;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	cq = table_get(&c->u->cqs, cmd.cq_handle);
	if (!cq || !cmd.cqe || cmd.cqe > hca_caps(c->u->file->host->hca)->max_cqe)
		return -EINVAL;
	uv_catch_up(c->u);
	old = &cq->ring;
	consumer = __atomic_load_n(&old->buf->consumer_index, __ATOMIC_ACQUIRE) & old->mask;
	n = (old->next - consumer) & old->mask;
	if (cmd.cqe < n)
		return -EINVAL;
	err = uv_ring_create(c->u, &ring, 64, cmd.cqe);
	if (err)
		return err;
	for (i = 0; i < n; i++)
		memcpy(ring.buf->data + (u64)i * 64, old->buf->data + (u64)((consumer + i) & old->mask) * 64, 64);
	ring.next = n;
	ring.buf->producer_index = n;
	uv_ring_destroy(c->u, old);
	cq->ring = ring;
	resp.cqe = ring.mask;
	rxe.mi = uv_ring_info(&ring);
	uv_call_out(c, &resp, sizeof(resp));
	return uv_call_out_driver(c, sizeof(resp), &rxe, sizeof(rxe));
}

static void channel_leave(struct uv_cq *cq)
{
	struct uv_events *e = cq->channel;

	if (cq->unsent)
		cq->u->unsent--;
	if (e && !--e->users && e->closed)
		uv_channel_free(cq->u, e);
}

int uv_destroy_cq(struct uv_call *c)
{
	struct ib_uverbs_destroy_cq cmd;
	struct ib_uverbs_destroy_cq_resp resp = { 0 };
	struct uv_cq *cq;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	cq = table_get(&c->u->cqs, cmd.cq_handle);
	if (!cq)
		return -EINVAL;
	err = hca_cq_destroy(c->u->ctx, cq->cqn);
	if (err)
		return err;
	resp.comp_events_reported = cq->comp_events;
	if (cq->channel)
		resp.comp_events_reported -=
			uv_events_forget(cq->channel, cq->user_handle, sizeof(struct ib_uverbs_comp_event_desc));
	resp.async_events_reported = cq->async_events - uv_events_forget(&c->u->async, cq->user_handle,
									 sizeof(struct ib_uverbs_async_event_desc));
	uv_call_out(c, &resp, sizeof(resp));
	channel_leave(cq);
	table_remove(&c->u->cqs, cq->handle);
	uv_ring_destroy(c->u, &cq->ring);
	free(cq);
	return 0;
}

/* The shim arms in shared memory; this is for whoever asks by command. */
int uv_req_notify_cq(struct uv_call *c)
{
	struct ib_uverbs_req_notify_cq cmd;
	const struct uv_cq *cq;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	cq = table_get(&c->u->cqs, cmd.cq_handle);
	if (!cq)
		return -EINVAL;
	c->u->shared->arm[cq->handle] = cmd.solicited_only ? UV_ARM_SOLICITED : UV_ARM_NEXT;
	return 0;
}

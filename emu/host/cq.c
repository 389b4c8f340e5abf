// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* uverbs commands on completion channels and completion queues. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "emu/host/command.h"

#define MAX_CHANNELS 1024 /* per context: each holds two descriptors */
#define ENTRY        sizeof(struct ib_uverbs_wc)

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
	err = uv_events_open(e, uv_server_loop(c->u->file->server), c->u->file->opener->pid);
	if (err) {
		free(e);
		return err;
	}
	c->out_fd = fcntl(e->theirs, F_DUPFD_CLOEXEC, 0);
	if (c->out_fd < 0) {
		err = -errno;
		uv_events_close(e);
		free(e);
		return err;
	}
	list_add(&c->u->channels, &e->link);
	c->u->nchannels++;
	resp.fd = (u32)e->inode; /* by which the shim closes a channel whose descriptor did not arrive */
	uv_call_out(c, &resp, sizeof(resp));
	return 0;
}

/* Finds the channel of the passed descriptor. 0 with NULL: no channel. */
static int channel_find(struct uv_call *c, s32 meant, struct uv_events **channel)
{
	struct uv_events *e;

	*channel = NULL;
	if (meant < 0)
		return 0;
	if (c->fd < 0)
		return -EBADF;
	list_for_each (e, &c->u->channels, link) {
		if (uv_events_is(e, c->fd)) {
			*channel = e;
			return 0;
		}
	}
	return -EINVAL;
}

struct cq_cmd {
	u64 user_handle;
	struct uv_events *channel;
};

int uv_cq_init(struct verbs_cq *base, u32 entries, const void *arg)
{
	struct uv_cq *cq = container_of(base, struct uv_cq, cq);
	const struct cq_cmd *cmd = arg;

	cq->user_handle = cmd->user_handle;
	cq->channel = cmd->channel;
	if (cq->channel)
		cq->channel->users++;
	return uv_ring_create(uv_of(base->verbs), &cq->ring, ENTRY, entries);
}

void uv_cq_fini(struct verbs_cq *base)
{
	struct uv_cq *cq = container_of(base, struct uv_cq, cq);
	struct uv_events *e = cq->channel;

	uv_ring_destroy(uv_of(base->verbs), &cq->ring);
	if (e && !--e->users && e->closed)
		uv_channel_free(uv_of(base->verbs), e);
}

static int cq_create(struct uv_call *c, u64 user_handle, u32 cqe, u32 vector, s32 channel,
		     struct ib_uverbs_create_cq_resp *resp, struct rxe_create_cq_resp *rxe)
{
	struct cq_cmd cmd = { .user_handle = user_handle };
	struct verbs_cq *cq;
	int err = channel_find(c, channel, &cmd.channel);

	if (!err && vector >= UV_VECTORS)
		err = -EINVAL;
	if (!err)
		err = verbs_cq_create(&c->u->verbs, cqe, &cmd, &cq);
	if (err)
		return err;
	c->u->shared->arm[cq->handle] = UV_ARM_NONE;
	resp->cq_handle = cq->handle;
	resp->cqe = container_of(cq, struct uv_cq, cq)->ring.ring.mask;
	rxe->mi = uv_ring_info(&container_of(cq, struct uv_cq, cq)->ring);
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
	uv_call_out_driver(c, sizeof(resp), &rxe, sizeof(rxe));
	return 0;
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
	uv_call_out_driver(c, sizeof(resp), &rxe, sizeof(rxe));
	return 0;
}

/* Unpolled completions move to the new ring. */
int uv_resize_cq(struct uv_call *c)
{
	struct ib_uverbs_resize_cq cmd;
	struct ib_uverbs_resize_cq_resp resp = { 0 };
	struct rxe_resize_cq_resp rxe;
	struct uv_ring ring;
	struct uv_cq *cq;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	cq = table_get(&c->u->verbs.cqs, cmd.cq_handle);
	err = cq ? verbs_cq_check(&c->u->verbs, cmd.cqe) : -EINVAL;
	if (err)
		return err;
	uv_catch_up(c->u);
	if (cmd.cqe < verbs_ring_put_count(&cq->ring.ring))
		return -EINVAL;
	err = uv_ring_create(c->u, &ring, ENTRY, cmd.cqe);
	if (err)
		return err;
	err = verbs_ring_move_put(&ring.ring, &cq->ring.ring, ENTRY) ? uv_ring_charge(c->u, &ring, ring.ring.next)
								     : -EINVAL;
	if (err) {
		uv_ring_destroy(c->u, &ring);
		return err;
	}
	uv_ring_destroy(c->u, &cq->ring);
	cq->ring = ring;
	resp.cqe = ring.ring.mask;
	rxe.mi = uv_ring_info(&ring);
	uv_call_out(c, &resp, sizeof(resp));
	uv_call_out_driver(c, sizeof(resp), &rxe, sizeof(rxe));
	return 0;
}

int uv_destroy_cq(struct uv_call *c)
{
	struct ib_uverbs_destroy_cq cmd;
	struct ib_uverbs_destroy_cq_resp resp = { 0 };
	struct verbs_cq *base;
	struct uv_cq *cq;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (!err)
		err = verbs_cq_destroy(&c->u->verbs, cmd.cq_handle, &base);
	if (err)
		return err;
	cq = container_of(base, struct uv_cq, cq);
	resp.comp_events_reported = cq->comp_events;
	if (cq->channel)
		resp.comp_events_reported -=
			uv_events_forget(cq->channel, cq, cq->user_handle, sizeof(struct ib_uverbs_comp_event_desc));
	resp.async_events_reported = cq->async_events - uv_events_forget(&c->u->async, cq, cq->user_handle,
									 sizeof(struct ib_uverbs_async_event_desc));
	uv_call_out(c, &resp, sizeof(resp));
	verbs_cq_free(base);
	return 0;
}

/* REQ_NOTIFY_CQ as a command; the shim arms in shared memory instead. */
int uv_req_notify_cq(struct uv_call *c)
{
	struct ib_uverbs_req_notify_cq cmd;
	const struct verbs_cq *cq;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	cq = table_get(&c->u->verbs.cqs, cmd.cq_handle);
	if (!cq)
		return -EINVAL;
	uv_arm(&c->u->shared->arm[cq->handle], cmd.solicited_only);
	return 0;
}

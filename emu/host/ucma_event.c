// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Event queue of the rdma_cm device file; the descriptor is readable while GET_EVENT has events. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "emu/host/attr.h"
#include "emu/host/readback.h"
#include "emu/host/ucma_internal.h"

/* Fails if the application has closed its end, or has many bytes there. */
static void put_byte(struct ucma_file *f)
{
	(void)!send(f->daemon, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/*
 * The socket has bytes while events are queued. Each event brings one, for edge-triggered epoll(7); the application
 * takes all with each event that it reads, and one is put back if more events are queued.
 */
void ucma_set_level(struct ucma_file *f)
{
	static u8 unread[READBACK_MAX];

	if (f->locked || !!f->nevents == !!uv_unread(f->app))
		return;
	if (f->nevents)
		put_byte(f);
	else
		f->locked = uv_readback(f->app, f->uv->opener->pid, unread) == -ETIMEDOUT;
}

static void fill_ud(struct rdma_ucm_ud_param *p, const struct rdma_event *ev)
{
	p->qp_num = ev->conn.qpn;
	p->qkey = ev->conn.qkey;
	uv_av_out(&p->ah_attr, &ev->av);
	p->private_data_len = ev->conn.data_len;
	if (ev->conn.data_len)
		memcpy(p->private_data, ev->conn.data, ev->conn.data_len);
}

static void fill_conn(struct rdma_ucm_conn_param *p, const struct rdma_event *ev)
{
	p->qp_num = ev->conn.qpn;
	p->responder_resources = ev->conn.responder_resources;
	p->initiator_depth = ev->conn.initiator_depth;
	p->flow_control = ev->conn.flow_control;
	p->retry_count = ev->conn.retry_count;
	p->rnr_retry_count = ev->conn.rnr_retry_count;
	p->srq = ev->conn.srq;
	p->private_data_len = ev->conn.data_len;
	if (ev->conn.data_len)
		memcpy(p->private_data, ev->conn.data, ev->conn.data_len);
}

/* The new id takes over @id; events of @id name the new one from then on. */
static int request_create(struct ucma_event *e, struct rdma_id *id)
{
	struct ucma_ctx *listener = e->ctx;

	if (!listener->backlog || listener->file->nevents >= UCMA_EVENTS_MAX)
		return -ENOMEM;
	e->request = ucma_ctx_create(listener->file);
	if (!e->request)
		return -ENOMEM;
	listener->backlog--;
	e->request->rdma = id;
	e->request->requested = e;
	rdma_id_set_ctx(id, e->request);
	e->resp.id = e->request->id;
	return 0;
}

static struct ucma_event *event_create(struct ucma_ctx *ctx, u32 type, u32 status)
{
	struct ucma_event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->ctx = ctx;
	e->resp.uid = ctx->uid;
	e->resp.id = ctx->id;
	e->resp.event = type;
	e->resp.status = status;
	return e;
}

static void event_queue(struct ucma_event *e)
{
	struct ucma_ctx *ctx = e->ctx;

	list_add(&ctx->file->events, &e->link);
	list_add(&ctx->events, &e->ctx_link);
	ctx->file->nevents++;
	if (!ctx->file->locked)
		put_byte(ctx->file);
}

/*
 * As in the kernel's ucma, events of an id with uid 0 are not reported: the application has not accepted this request,
 * and its accept will fail. A CONNECT_REQUEST is always reported, because its event reports the new id.
 */
int ucma_event(void *arg, struct rdma_id *id, const struct rdma_event *ev)
{
	struct ucma_ctx *ctx = arg;
	struct ucma_event *e;

	ctx->removed |= ev->type == RDMA_EVENT_DEVICE_REMOVAL;
	if (!ctx->uid && !ev->request)
		return 0;
	e = event_create(ctx, ev->type, (u32)ev->status);
	if (!e)
		return -ENOMEM;
	if (ev->mcast) {
		e->mc = rdma_mcast_ctx(ev->mcast);
		e->resp.uid = e->mc->uid;
		e->resp.id = e->mc->id;
	}
	if (rdma_id_qp_type(id) == HCA_QPT_UD)
		fill_ud(&e->resp.param.ud, ev);
	else
		fill_conn(&e->resp.param.conn, ev);
	if (ev->request && request_create(e, ev->request)) {
		free(e);
		return -ENOMEM;
	}
	event_queue(e);
	return 0;
}

int ucma_write_event(struct ucma_call *c)
{
	struct ucma_write_event cmd;
	struct ucma_event *e;
	struct ucma_ctx *ctx;
	int err;

	ucma_in(c, &cmd, sizeof(cmd));
	if (cmd.event != UCMA_EVENT_USER && cmd.event != UCMA_EVENT_INTERNAL)
		return -EINVAL;
	err = ucma_ctx_find(c->file, cmd.id, &ctx);
	if (err)
		return err;
	e = event_create(ctx, cmd.event, cmd.status);
	if (!e)
		return -ENOMEM;
	memcpy(&e->resp.param, &cmd.arg, sizeof(cmd.arg));
	event_queue(e);
	return 0;
}

/* Frees the event only; the caller owns its objects. */
static void event_free(struct ucma_file *f, struct ucma_event *e)
{
	list_del(&e->link);
	list_del(&e->ctx_link);
	if (e->request)
		e->request->requested = NULL;
	f->nevents--;
	free(e);
}

int ucma_get_event(struct ucma_call *c)
{
	struct ucma_file *f = c->file;
	struct ucma_event *e;

	if (list_empty(&f->events))
		return -EAGAIN;
	e = list_first(&f->events, struct ucma_event, link);
	ucma_out(c, &e->resp, sizeof(e->resp));
	e->ctx->events_reported++;
	if (e->mc)
		e->mc->events_reported++;
	if (e->resp.event == RDMA_EVENT_CONNECT_REQUEST)
		e->ctx->backlog++;
	event_free(f, e);
	return 0;
}

bool ucma_mc_has_events(const struct ucma_mc *mc)
{
	const struct ucma_event *e;

	list_for_each (e, &mc->ctx->events, ctx_link)
		if (e->mc == mc)
			return true;
	return false;
}

void ucma_events_drop(struct ucma_ctx *ctx, const struct ucma_mc *mc)
{
	struct ucma_file *f = ctx->file;
	struct ucma_event *e, *tmp;
	struct ucma_ctx *request;

	list_for_each_safe (e, tmp, &ctx->events, ctx_link) {
		if (mc && e->mc != mc)
			continue;
		request = e->request;
		event_free(f, e);
		if (request)
			ucma_ctx_destroy(request);
	}
	ucma_set_level(f);
}

void ucma_events_move(struct ucma_ctx *ctx, struct ucma_file *to)
{
	struct ucma_file *from = ctx->file;
	struct ucma_event *e;

	list_for_each (e, &ctx->events, ctx_link) {
		list_del(&e->link);
		from->nevents--;
		list_add(&to->events, &e->link);
		to->nevents++;
		if (e->request && e->request->file == from)
			ucma_ctx_move(e->request, to);
	}
	ucma_set_level(from);
	ucma_set_level(to);
}

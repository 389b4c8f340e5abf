// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Events of the rdma_cm device file: queued until GET_EVENT takes them; the descriptor is readable meanwhile. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "emu/uverbs/ucma_internal.h"

/* One byte lies in the socket while events wait. The application may have taken it: then it is put there again. */
static void set_level(struct ucma_file *f)
{
	char byte = 0;
	ssize_t n;

	if (f->nevents)
		n = recv(f->app, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1
			    ? 1
			    : send(f->daemon, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		n = recv(f->app, &byte, 1, MSG_DONTWAIT);
	(void)n; /* what the application did to its socket is its own loss */
}

void ucma_av_out(struct ib_uverbs_ah_attr *a, const struct hca_av *av)
{
	memcpy(a->grh.dgid, av->dgid.raw, sizeof(a->grh.dgid));
	a->grh.flow_label = av->flow_label;
	a->grh.sgid_index = av->sgid_index;
	a->grh.hop_limit = av->hop_limit;
	a->grh.traffic_class = av->traffic_class;
	a->dlid = av->dlid;
	a->sl = av->sl;
	a->src_path_bits = av->src_path_bits;
	a->static_rate = av->static_rate;
	a->is_global = av->grh;
	a->port_num = av->port;
}

static void fill_ud(struct rdma_ucm_ud_param *p, const struct rdma_event *ev)
{
	p->qp_num = ev->conn.qpn;
	p->qkey = ev->conn.qkey;
	ucma_av_out(&p->ah_attr, &ev->av);
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

/* The id of a request lives in the listener's file until the application has accepted it. */
static int take_request(struct ucma_ctx *listener, struct ucma_event *e, struct rdma_id *id)
{
	if (!listener->backlog)
		return -ENOMEM;
	e->request = ucma_ctx_create(listener->file);
	if (!e->request)
		return -ENOMEM;
	listener->backlog--;
	e->request->rdma = id;
	rdma_id_set_ctx(id, e->request);
	e->resp.id = e->request->id;
	return 0;
}

int ucma_event(void *arg, struct rdma_id *id, const struct rdma_event *ev)
{
	struct ucma_ctx *ctx = arg;
	struct ucma_event *e;

	/* before the application knows the id; its accept will fail */
	if (!ctx->uid)
		return 0;
	e = ctx->file->nevents < UCMA_EVENTS_MAX ? calloc(1, sizeof(*e)) : NULL;
	if (!e)
		return -ENOMEM;
	e->ctx = ctx;
	e->resp.uid = ctx->uid;
	e->resp.id = ctx->id;
	e->resp.event = ev->type;
	e->resp.status = (u32)ev->status;
	if (ev->mcast) {
		e->mc = rdma_mcast_ctx(ev->mcast);
		e->resp.uid = e->mc->uid;
		e->resp.id = e->mc->id;
	}
	if (rdma_id_qp_type(id) == HCA_QPT_UD)
		fill_ud(&e->resp.param.ud, ev);
	else
		fill_conn(&e->resp.param.conn, ev);
	if (ev->request && take_request(ctx, e, ev->request)) {
		free(e);
		return -ENOMEM;
	}
	list_add(&ctx->file->events, &e->link);
	ctx->file->nevents++;
	set_level(ctx->file);
	return 0;
}

static void forget(struct ucma_file *f, struct ucma_event *e)
{
	list_del(&e->link);
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
	if (e->request)
		e->ctx->backlog++;
	forget(f, e);
	set_level(f);
	return 0;
}

void ucma_events_drop(struct ucma_ctx *ctx, const struct ucma_mc *mc)
{
	struct ucma_file *f = ctx->file;
	struct ucma_event *e, *tmp;
	struct ucma_ctx *request;

	list_for_each_safe (e, tmp, &f->events, link) {
		if (e->ctx != ctx || (mc && e->mc != mc))
			continue;
		request = e->request;
		forget(f, e);
		/* has no uid, so no events of its own are in the queue */
		if (request)
			ucma_ctx_destroy(request);
	}
	set_level(f);
}

void ucma_events_move(struct ucma_ctx *ctx, struct ucma_file *to)
{
	struct ucma_file *from = ctx->file;
	struct ucma_event *e, *tmp;

	list_for_each_safe (e, tmp, &from->events, link) {
		if (e->ctx != ctx)
			continue;
		list_del(&e->link);
		from->nevents--;
		list_add(&to->events, &e->link);
		to->nevents++;
		if (e->request) {
			list_del(&e->request->link);
			list_add(&to->ctxs, &e->request->link);
			e->request->file = to;
		}
	}
	set_level(from);
	set_level(to);
}

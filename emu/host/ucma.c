// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The rdma_cm device file: open and commands. Errors are those of the kernel's ucma.c. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/host/channel.h"
#include "emu/host/ucma_internal.h"
#include "emu/lib/passed.h"

u32 ucma_host_ids(const struct ucma_host *h)
{
	return h->ctxs.used;
}

void ucma_host_each(const struct ucma_host *h, u32 first, ucma_id_fn *fn, void *arg)
{
	const struct ucma_ctx *ctx;
	u32 i;

	for (i = max(first, h->ctxs.first); i - h->ctxs.first < h->ctxs.cap; i++) {
		ctx = table_get(&h->ctxs, i);
		if (ctx && ctx->rdma && !fn(arg, ctx->rdma, i, ctx->file->uv->opener->pid))
			return;
	}
}

struct ucma_host *ucma_host_create(struct rdma_host *rdma)
{
	struct ucma_host *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->rdma = rdma;
	table_init(&h->ctxs, 1, UCMA_IDS_MAX);
	table_init(&h->mcs, 1, UCMA_IDS_MAX);
	list_init(&h->files);
	return h;
}

void ucma_host_destroy(struct ucma_host *h)
{
	if (!h)
		return;
	table_fini(&h->ctxs);
	table_fini(&h->mcs);
	free(h);
}

/* ---- ids ---- */

int ucma_ctx_find(const struct ucma_file *f, u32 id, struct ucma_ctx **ctx)
{
	*ctx = table_get(&f->host->ctxs, id);
	if (!*ctx)
		return -ENOENT;
	if ((*ctx)->file != f)
		return -EINVAL;
	return (*ctx)->removed ? -ENXIO : 0;
}

static int find_bound(const struct ucma_file *f, u32 id, struct ucma_ctx **ctx)
{
	int err = ucma_ctx_find(f, id, ctx);

	return err ? err : rdma_id_port((*ctx)->rdma) ? 0 : -EINVAL;
}

struct ucma_ctx *ucma_ctx_create(struct ucma_file *f)
{
	struct ucma_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->file = f;
	list_init(&ctx->link);
	list_init(&ctx->events);
	list_init(&ctx->mcs);
	if (table_add(&f->host->ctxs, ctx, &ctx->id)) {
		free(ctx);
		return NULL;
	}
	list_add(&f->ctxs, &ctx->link);
	return ctx;
}

void ucma_ctx_move(struct ucma_ctx *ctx, struct ucma_file *to)
{
	ctx->file = to;
	list_del(&ctx->link);
	list_add(&to->ctxs, &ctx->link);
}

void ucma_ctx_destroy(struct ucma_ctx *ctx)
{
	ucma_events_drop(ctx, NULL);
	if (ctx->requested)
		ctx->requested->request = NULL;
	while (!list_empty(&ctx->mcs))
		ucma_mc_destroy(list_first(&ctx->mcs, struct ucma_mc, link));
	if (ctx->rdma)
		rdma_id_destroy(ctx->rdma);
	table_remove(&ctx->file->host->ctxs, ctx->id);
	list_del(&ctx->link);
	free(ctx);
}

/* ---- the file ---- */

static int on_open(struct uv_file *uv, u32 unit, int *fd, int *extra)
{
	struct ucma_file *f;
	int app, err;

	if (!uv->host->cm)
		return -ENXIO;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	err = uv_channel_create(&f->daemon, &app);
	if (err) {
		free(f);
		return err;
	}
	f->host = uv->host->cm;
	f->uv = uv;
	f->app = dup(app);
	if (f->app < 0) {
		close(app);
		uv_channel_close(f->daemon);
		free(f);
		return -EMFILE;
	}
	f->socket = passed_socket(f->app);
	list_init(&f->ctxs);
	list_init(&f->events);
	list_add(&f->host->files, &f->link);
	uv->priv = f;
	*fd = app;
	return 0;
}

static void on_close(struct uv_file *uv)
{
	struct ucma_file *f = uv->priv;

	while (!list_empty(&f->ctxs))
		ucma_ctx_destroy(list_first(&f->ctxs, struct ucma_ctx, link));
	list_del(&f->link);
	close(f->app);
	uv_channel_close(f->daemon);
	free(f);
}

/* ---- commands ---- */

void ucma_out(struct ucma_call *c, const void *p, size_t len)
{
	c->out_len = min(len, c->out_room);
	memcpy(c->out, p, c->out_len);
}

void ucma_in(const struct ucma_call *c, void *cmd, size_t size)
{
	memset(cmd, 0, size);
	memcpy(cmd, c->in, min(size, c->in_len));
}

int ucma_addr_in(union rdma_sockaddr *a, const void *p, size_t len)
{
	memset(a, 0, sizeof(*a));
	memcpy(a, p, min(len, sizeof(*a)));
	return len && len == rdma_sockaddr_len(a) ? 0 : -EINVAL;
}

int ucma_addr_in6(union rdma_sockaddr *a, const struct sockaddr_in6 *p)
{
	memset(a, 0, sizeof(*a));
	memcpy(a, p, sizeof(*p));
	return rdma_sockaddr_len(a) && rdma_sockaddr_len(a) <= sizeof(*p) ? 0 : -EINVAL;
}

static int type_of(const struct rdma_ucm_create_id *cmd, enum hca_qp_type *type)
{
	switch (cmd->ps) {
	case RDMA_PS_TCP:
		*type = HCA_QPT_RC;
		return 0;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		*type = HCA_QPT_UD;
		return 0;
	case RDMA_PS_IB:
		*type = (enum hca_qp_type)cmd->qp_type;
		return *type == HCA_QPT_RC || *type == HCA_QPT_UC || *type == HCA_QPT_UD ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

static int create_id(struct ucma_call *c)
{
	struct rdma_ucm_create_id cmd;
	struct ucma_ctx *ctx;
	enum hca_qp_type type;
	int err;

	ucma_in(c, &cmd, sizeof(cmd));
	err = type_of(&cmd, &type);
	if (err)
		return err;
	ctx = ucma_ctx_create(c->file);
	if (!ctx)
		return -ENOMEM;
	ctx->uid = cmd.uid;
	ctx->rdma = rdma_id_create(c->file->host->rdma, (enum rdma_space)cmd.ps, type, ucma_event, ctx);
	if (!ctx->rdma) {
		ucma_ctx_destroy(ctx);
		return -ENOMEM;
	}
	ucma_out(c, &(struct rdma_ucm_create_id_resp){ .id = ctx->id }, sizeof(struct rdma_ucm_create_id_resp));
	return 0;
}

static int destroy_id(struct ucma_call *c)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id cmd;
	struct ucma_ctx *ctx;
	int err;

	ucma_in(c, &cmd, sizeof(cmd));
	err = ucma_ctx_find(c->file, cmd.id, &ctx);
	if (err && err != -ENXIO)
		return err;
	if (c->flags & UV_KEEP_EVENTS && !list_empty(&ctx->events))
		return -EAGAIN;
	resp.events_reported = ctx->events_reported;
	ucma_ctx_destroy(ctx);
	ucma_out(c, &resp, sizeof(resp));
	return 0;
}

static int bind_to(struct ucma_call *c, u32 id, const union rdma_sockaddr *a)
{
	struct ucma_ctx *ctx;
	int err = ucma_ctx_find(c->file, id, &ctx);

	return err ? err : rdma_id_bind(ctx->rdma, a);
}

static int bind_ip(struct ucma_call *c)
{
	struct rdma_ucm_bind_ip cmd;
	union rdma_sockaddr a;
	int err;

	ucma_in(c, &cmd, sizeof(cmd));
	err = ucma_addr_in6(&a, &cmd.addr);
	return err ? err : bind_to(c, cmd.id, &a);
}

static int bind_any(struct ucma_call *c)
{
	struct rdma_ucm_bind cmd;
	union rdma_sockaddr a;
	int err;

	ucma_in(c, &cmd, sizeof(cmd));
	err = cmd.reserved || cmd.addr_size > sizeof(cmd.addr) ? -EINVAL : ucma_addr_in(&a, &cmd.addr, cmd.addr_size);
	return err ? err : bind_to(c, cmd.id, &a);
}

static int ucma_resolve(struct ucma_call *c, u32 id, const union rdma_sockaddr *src, const union rdma_sockaddr *dst,
			u32 timeout_ms)
{
	struct ucma_ctx *ctx;
	int err = ucma_ctx_find(c->file, id, &ctx);

	return err ? err : rdma_id_resolve_addr(ctx->rdma, src, dst, timeout_ms);
}

static int resolve_ip(struct ucma_call *c)
{
	struct rdma_ucm_resolve_ip cmd;
	union rdma_sockaddr src, dst;

	ucma_in(c, &cmd, sizeof(cmd));
	if (ucma_addr_in6(&dst, &cmd.dst_addr) || (cmd.src_addr.sin6_family && ucma_addr_in6(&src, &cmd.src_addr)))
		return -EINVAL;
	return ucma_resolve(c, cmd.id, cmd.src_addr.sin6_family ? &src : NULL, &dst, cmd.timeout_ms);
}

static int resolve_addr(struct ucma_call *c)
{
	struct rdma_ucm_resolve_addr cmd;
	union rdma_sockaddr src, dst;

	ucma_in(c, &cmd, sizeof(cmd));
	if (cmd.reserved || cmd.src_size > sizeof(cmd.src_addr) || cmd.dst_size > sizeof(cmd.dst_addr) ||
	    (cmd.src_size && ucma_addr_in(&src, &cmd.src_addr, cmd.src_size)) ||
	    ucma_addr_in(&dst, &cmd.dst_addr, cmd.dst_size))
		return -EINVAL;
	return ucma_resolve(c, cmd.id, cmd.src_size ? &src : NULL, &dst, cmd.timeout_ms);
}

static int resolve_route(struct ucma_call *c)
{
	struct rdma_ucm_resolve_route cmd;

	ucma_in(c, &cmd, sizeof(cmd));
	return rdma_id_resolve_route(c->ctx->rdma, cmd.timeout_ms);
}

/* Messages may carry any QPN; received messages change only queue pairs of the application. */
static struct rdma_conn conn_in(const struct ucma_file *f, const struct rdma_id *id,
				const struct rdma_ucm_conn_param *p)
{
	u32 qpn = p->qp_num & WIRE_QPN_MASK;
	u64 owner = hca_qp_owner(f->uv->host->hca, qpn);

	return (struct rdma_conn){
		.owner = uv_file_shares_process(f->uv, owner) ? owner : 0,
		.qpn = qpn,
		.qkey = rdma_id_src(id)->sa.sa_family == AF_IB ? p->qkey : 0, /* others use that of the port space */
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.retry_count = p->retry_count,
		.rnr_retry_count = p->rnr_retry_count,
		.flow_control = p->flow_control,
		.srq = p->srq,
		.data = p->private_data,
		.data_len = p->private_data_len,
	};
}

static int connect_id(struct ucma_call *c)
{
	struct rdma_ucm_connect cmd;
	struct rdma_conn conn;
	struct ucma_ctx *ctx;
	int err;

	ucma_in(c, &cmd, sizeof(cmd));
	err = cmd.conn_param.valid ? find_bound(c->file, cmd.id, &ctx) : -EINVAL;
	if (err)
		return err;
	conn = conn_in(c->file, ctx->rdma, &cmd.conn_param);
	return rdma_id_connect(ctx->rdma, &conn);
}

static int listen_id(struct ucma_call *c)
{
	struct rdma_ucm_listen cmd;

	ucma_in(c, &cmd, sizeof(cmd));
	c->ctx->backlog = cmd.backlog && cmd.backlog < UCMA_BACKLOG_MAX ? cmd.backlog : UCMA_BACKLOG_MAX;
	return rdma_id_listen(c->ctx->rdma);
}

static int accept_id(struct ucma_call *c)
{
	struct rdma_ucm_accept cmd;
	struct rdma_conn conn;
	int err;

	ucma_in(c, &cmd, sizeof(cmd));
	if (!cmd.conn_param.valid)
		return rdma_id_accept(c->ctx->rdma, NULL);
	conn = conn_in(c->file, c->ctx->rdma, &cmd.conn_param);
	err = rdma_id_accept(c->ctx->rdma, &conn);
	if (!err)
		c->ctx->uid = cmd.uid;
	return err;
}

static int reject_id(struct ucma_call *c)
{
	struct rdma_ucm_reject cmd;
	struct ucma_ctx *ctx;
	int err;

	ucma_in(c, &cmd, sizeof(cmd));
	if (!cmd.reason)
		cmd.reason = CM_REJ_CONSUMER;
	if (cmd.reason != CM_REJ_CONSUMER && cmd.reason != CM_REJ_VENDOR_OPTION)
		return -EINVAL;
	err = find_bound(c->file, cmd.id, &ctx);
	return err ? err : rdma_id_reject(ctx->rdma, cmd.reason, cmd.private_data, cmd.private_data_len);
}

static int disconnect_id(struct ucma_call *c)
{
	return rdma_id_disconnect(c->ctx->rdma);
}

static int ucma_notify(struct ucma_call *c)
{
	struct rdma_ucm_notify cmd;

	ucma_in(c, &cmd, sizeof(cmd));
	return rdma_id_event(c->ctx->rdma, (enum hca_event_type)cmd.event);
}

static struct ucma_file *file_of(const struct ucma_host *h, int fd)
{
	u64 socket = passed_socket(fd);
	struct ucma_file *f;

	list_for_each (f, &h->files, link)
		if (socket && f->socket == socket)
			return f;
	return NULL;
}

static int migrate_id(struct ucma_call *c)
{
	struct ucma_file *from = file_of(c->file->host, c->fd);
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id cmd;
	struct ucma_ctx *ctx;
	int err;

	ucma_in(c, &cmd, sizeof(cmd));
	if (!from)
		return c->fd < 0 ? -ENOENT : -EINVAL;
	err = ucma_ctx_find(from, cmd.id, &ctx);
	if (err)
		return err;
	if (from != c->file) {
		ucma_events_move(ctx, c->file);
		ucma_ctx_move(ctx, c->file);
	}
	resp.events_reported = ctx->events_reported;
	ucma_out(c, &resp, sizeof(resp));
	return 0;
}

#define UP_TO(type, member) (offsetof(struct type, member) + sizeof(((struct type *)0)->member))
#define ID(type)            .find = ucma_ctx_find, .id = offsetof(struct type, id)
#define BOUND_ID(type)      .find = find_bound, .id = offsetof(struct type, id)

static const struct ucma_command {
	int (*fn)(struct ucma_call *c);
	size_t in, out; /* minimum sizes */
	bool reports;   /* the result comes as an event */
	/*
	 * Finds ucma_call.ctx by the id at this offset. NULL: fn() does it, after the checks that the kernel makes
	 * first.
	 */
	int (*find)(const struct ucma_file *f, u32 id, struct ucma_ctx **ctx);
	size_t id;
} commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = { create_id, UP_TO(rdma_ucm_create_id, qp_type),
					 sizeof(struct rdma_ucm_create_id_resp) },
	[RDMA_USER_CM_CMD_DESTROY_ID] = { destroy_id, UP_TO(rdma_ucm_destroy_id, id),
					  sizeof(struct rdma_ucm_destroy_id_resp) },
	[RDMA_USER_CM_CMD_BIND_IP] = { bind_ip, UP_TO(rdma_ucm_bind_ip, id), 0 },
	[RDMA_USER_CM_CMD_RESOLVE_IP] = { resolve_ip, sizeof(struct rdma_ucm_resolve_ip), 0, true },
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = { resolve_route, sizeof(struct rdma_ucm_resolve_route), 0, true,
					     BOUND_ID(rdma_ucm_resolve_route) },
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = { ucma_query_route, UP_TO(rdma_ucm_query, id),
					   UP_TO(rdma_ucm_query_route_resp, reserved), ID(rdma_ucm_query) },
	[RDMA_USER_CM_CMD_CONNECT] = { connect_id, UP_TO(rdma_ucm_connect, reserved), 0, true },
	[RDMA_USER_CM_CMD_LISTEN] = { listen_id, sizeof(struct rdma_ucm_listen), 0, ID(rdma_ucm_listen) },
	[RDMA_USER_CM_CMD_ACCEPT] = { accept_id, UP_TO(rdma_ucm_accept, reserved), 0, true, BOUND_ID(rdma_ucm_accept) },
	[RDMA_USER_CM_CMD_REJECT] = { reject_id, sizeof(struct rdma_ucm_reject), 0 },
	[RDMA_USER_CM_CMD_DISCONNECT] = { disconnect_id, sizeof(struct rdma_ucm_disconnect), 0,
					  BOUND_ID(rdma_ucm_disconnect) },
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = { ucma_init_qp_attr, sizeof(struct rdma_ucm_init_qp_attr),
					    sizeof(struct ib_uverbs_qp_attr) },
	[RDMA_USER_CM_CMD_GET_EVENT] = { ucma_get_event, sizeof(struct rdma_ucm_get_event),
					 UP_TO(rdma_ucm_event_resp, reserved) - sizeof(u32) },
	[RDMA_USER_CM_CMD_SET_OPTION] = { ucma_set_option, sizeof(struct rdma_ucm_set_option), 0, true,
					  ID(rdma_ucm_set_option) },
	[RDMA_USER_CM_CMD_NOTIFY] = { ucma_notify, sizeof(struct rdma_ucm_notify), 0, ID(rdma_ucm_notify) },
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = { ucma_join_ip, UP_TO(rdma_ucm_join_ip_mcast, id),
					     sizeof(struct rdma_ucm_create_id_resp), true },
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = { ucma_leave, UP_TO(rdma_ucm_destroy_id, id),
					   sizeof(struct rdma_ucm_destroy_id_resp) },
	[RDMA_USER_CM_CMD_MIGRATE_ID] = { migrate_id, sizeof(struct rdma_ucm_migrate_id),
					  sizeof(struct rdma_ucm_migrate_resp) },
	[RDMA_USER_CM_CMD_QUERY] = { ucma_query, sizeof(struct rdma_ucm_query), 0, ID(rdma_ucm_query) },
	[RDMA_USER_CM_CMD_BIND] = { bind_any, sizeof(struct rdma_ucm_bind), 0 },
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = { resolve_addr, sizeof(struct rdma_ucm_resolve_addr), 0, true },
	[RDMA_USER_CM_CMD_JOIN_MCAST] = { ucma_join, sizeof(struct rdma_ucm_join_mcast),
					  sizeof(struct rdma_ucm_create_id_resp), true },
	[UCMA_CMD_WRITE_CM_EVENT] = { ucma_write_event, sizeof(struct ucma_write_event), 0, true },
};

static ssize_t command_run(struct uv_file *uv, const void *buf, size_t len, int fd, void *out, size_t *out_len)
{
	struct ucma_call c = { .file = uv->priv, .fd = fd, .flags = uv->flags, .out = out };
	const struct ucma_command *cmd;
	struct rdma_ucm_cmd_hdr hdr;
	size_t room = *out_len;
	u32 id;
	int err;

	*out_len = 0;
	if (len < sizeof(hdr))
		return -EINVAL;
	memcpy(&hdr, buf, sizeof(hdr));
	if (hdr.cmd >= ARRAY_SIZE(commands) || hdr.in + sizeof(hdr) > len)
		return -EINVAL;
	cmd = &commands[hdr.cmd];
	if (!cmd->fn)
		return -ENOSYS;
	if (hdr.in < cmd->in)
		return -EINVAL;
	if (hdr.out < cmd->out || room < cmd->out)
		return -ENOSPC;
	if (cmd->reports && c.file->nevents >= UCMA_EVENTS_MAX)
		return -ENOMEM;
	c.in = (const u8 *)buf + sizeof(hdr);
	c.in_len = hdr.in;
	c.extra = c.in + hdr.in;
	c.extra_len = len - sizeof(hdr) - hdr.in;
	c.out_room = min(room, (size_t)hdr.out);
	memset(out, 0, c.out_room);
	memcpy(&id, c.in + cmd->id, sizeof(id));
	err = cmd->find ? cmd->find(c.file, id, &c.ctx) : 0;
	err = err ? err : cmd->fn(&c);
	*out_len = err ? 0 : c.out_len;
	return err ? err : (ssize_t)(sizeof(hdr) + hdr.in);
}

/* The program takes the byte of its events before GET_EVENT, which may fail. */
static ssize_t on_command(struct uv_file *uv, const void *buf, size_t len, int fd, void *out, size_t *out_len,
			  int *out_fd)
{
	ssize_t n = command_run(uv, buf, len, fd, out, out_len);

	ucma_set_level(uv->priv);
	return n;
}

const struct uv_file_ops ucma_file_ops = { .open = on_open, .command = on_command, .close = on_close };

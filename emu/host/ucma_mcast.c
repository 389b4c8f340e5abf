// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rdma_cm multicast: JOIN_MCAST and LEAVE_MCAST. */
#include <errno.h>
#include <stdlib.h>

#include "emu/host/ucma_internal.h"

void ucma_mc_destroy(struct ucma_mc *mc)
{
	ucma_events_drop(mc->ctx, mc);
	if (mc->rdma)
		rdma_mcast_leave(mc->rdma);
	table_remove(&mc->ctx->file->host->mcs, mc->id);
	list_del(&mc->link);
	free(mc);
}

static int ucma_mcast_join(struct ucma_call *c, u32 id, u64 uid, const union rdma_sockaddr *a, bool send_only)
{
	struct rdma_ucm_create_id_resp resp;
	struct ucma_ctx *ctx;
	struct ucma_mc *mc;
	int err = ucma_ctx_find(c->file, id, &ctx);

	if (err)
		return err;
	mc = calloc(1, sizeof(*mc));
	if (!mc)
		return -ENOMEM;
	mc->ctx = ctx;
	mc->uid = uid;
	if (table_add(&c->file->host->mcs, mc, &mc->id)) {
		free(mc);
		return -ENOMEM;
	}
	list_add(&ctx->mcs, &mc->link);
	mc->rdma = rdma_mcast_join(ctx->rdma, a, send_only, mc, &err);
	if (!mc->rdma) {
		ucma_mc_destroy(mc);
		return err;
	}
	resp.id = mc->id;
	ucma_out(c, &resp, sizeof(resp));
	return 0;
}

int ucma_join_ip(struct ucma_call *c)
{
	struct rdma_ucm_join_ip_mcast cmd;
	union rdma_sockaddr a;

	ucma_in(c, &cmd, sizeof(cmd));
	return ucma_addr_in6(&a, &cmd.addr) ? -EINVAL : ucma_mcast_join(c, cmd.id, cmd.uid, &a, false);
}

int ucma_join(struct ucma_call *c)
{
	struct rdma_ucm_join_mcast cmd;
	union rdma_sockaddr a;

	ucma_in(c, &cmd, sizeof(cmd));
	if (cmd.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED || cmd.addr_size > sizeof(cmd.addr) ||
	    ucma_addr_in(&a, &cmd.addr, cmd.addr_size))
		return -EINVAL;
	return ucma_mcast_join(c, cmd.id, cmd.uid, &a, cmd.join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
}

int ucma_leave(struct ucma_call *c)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id cmd;
	struct ucma_mc *mc;

	ucma_in(c, &cmd, sizeof(cmd));
	mc = table_get(&c->file->host->mcs, cmd.id);
	if (!mc)
		return -ENOENT;
	if (mc->ctx->file != c->file)
		return -EINVAL;
	if (mc->ctx->removed)
		return -ENXIO;
	if (c->flags & UV_KEEP_EVENTS && ucma_mc_has_events(mc))
		return -EAGAIN;
	resp.events_reported = mc->events_reported;
	ucma_mc_destroy(mc);
	ucma_out(c, &resp, sizeof(resp));
	return 0;
}

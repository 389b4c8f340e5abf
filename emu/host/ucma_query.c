// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rdma_cm queries: addresses, paths, GIDs, and QP attributes of an id. */
#include <errno.h>
#include <stddef.h>

#include "emu/host/attr.h"
#include "emu/host/ucma_internal.h"
#include "emu/wire/sa.h"

#define PATH_FLAGS (IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL)

/* In network byte order, as in sysfs. */
static u64 node_guid(const struct ucma_ctx *ctx)
{
	return (__force u64)cpu_to_be64(rdma_host_node_guid(ctx->file->host->rdma));
}

static void put_path(struct ib_user_path_rec *u, const struct sa_path *p)
{
	memcpy(u->dgid, p->dgid.raw, sizeof(u->dgid));
	memcpy(u->sgid, p->sgid.raw, sizeof(u->sgid));
	u->dlid = (__force __typeof__(u->dlid))cpu_to_be16(p->dlid);
	u->slid = (__force __typeof__(u->slid))cpu_to_be16(p->slid);
	u->flow_label = (__force __typeof__(u->flow_label))cpu_to_be32(p->flow_label);
	u->reversible = p->reversible;
	u->mtu = p->mtu;
	u->pkey = (__force __typeof__(u->pkey))cpu_to_be16(p->pkey);
	u->hop_limit = p->hop_limit;
	u->traffic_class = p->traffic_class;
	u->numb_path = 1;
	u->sl = p->sl;
	u->mtu_selector = u->rate_selector = u->packet_life_time_selector = SA_SELECT_EXACTLY;
	u->rate = p->rate;
	u->packet_life_time = p->packet_life;
}

int ucma_query_route(struct ucma_call *c)
{
	struct rdma_ucm_query_route_resp resp = { 0 };
	const struct ucma_ctx *ctx = c->ctx;
	const struct sa_path *path;
	struct wire_gid sgid, dgid;

	memcpy(&resp.src_addr, rdma_id_src(ctx->rdma), sizeof(resp.src_addr));
	memcpy(&resp.dst_addr, rdma_id_dst(ctx->rdma), sizeof(resp.dst_addr));
	resp.port_num = rdma_id_port(ctx->rdma);
	if (resp.port_num) {
		resp.node_guid = node_guid(ctx);
		path = rdma_id_path(ctx->rdma);
		rdma_id_gids(ctx->rdma, &sgid, &dgid);
		/* known before the route is resolved */
		memcpy(resp.ib_route[0].sgid, sgid.raw, sizeof(sgid.raw));
		memcpy(resp.ib_route[0].dgid, dgid.raw, sizeof(dgid.raw));
		resp.ib_route[0].pkey = (__force __typeof__(resp.ib_route[0].pkey))cpu_to_be16(rdma_id_pkey(ctx->rdma));
		resp.num_paths = path ? 1 : 0;
		if (path)
			put_path(&resp.ib_route[0], path);
	}
	ucma_out(c, &resp, sizeof(resp));
	return 0;
}

static void put_device(struct rdma_ucm_query_addr_resp *resp, const struct ucma_ctx *ctx)
{
	resp->port_num = rdma_id_port(ctx->rdma);
	if (!resp->port_num)
		return;
	resp->node_guid = node_guid(ctx);
	resp->pkey = (__force u16)cpu_to_be16(rdma_id_pkey(ctx->rdma));
}

static int query_addr(struct ucma_call *c, const struct ucma_ctx *ctx)
{
	struct rdma_ucm_query_addr_resp resp = { 0 };
	const union rdma_sockaddr *src = rdma_id_src(ctx->rdma), *dst = rdma_id_dst(ctx->rdma);

	if (c->out_room < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	resp.src_size = rdma_sockaddr_len(src);
	resp.dst_size = rdma_sockaddr_len(dst);
	memcpy(&resp.src_addr, src, resp.src_size);
	memcpy(&resp.dst_addr, dst, resp.dst_size);
	put_device(&resp, ctx);
	ucma_out(c, &resp, sizeof(resp));
	return 0;
}

static void put_gid(struct __kernel_sockaddr_storage *to, u16 *size, const struct ucma_ctx *ctx,
		    const struct wire_gid *gid, const union rdma_sockaddr *known)
{
	struct sockaddr_ib ib = { .sib_family = AF_IB };

	if (known->sa.sa_family == AF_IB)
		ib = known->ib;
	memcpy(ib.sib_addr.sib_raw, gid->raw, sizeof(gid->raw));
	ib.sib_pkey = (__force __typeof__(ib.sib_pkey))cpu_to_be16(rdma_id_pkey(ctx->rdma));
	if (known->sa.sa_family != AF_IB) {
		ib.sib_sid = (__force __typeof__(ib.sib_sid))cpu_to_be64(rdma_id_service(ctx->rdma, known));
		ib.sib_sid_mask = (__force __typeof__(ib.sib_sid_mask))cpu_to_be64(~0ull);
	}
	memcpy(to, &ib, sizeof(ib));
	*size = sizeof(ib);
}

static int query_gid(struct ucma_call *c, const struct ucma_ctx *ctx)
{
	struct rdma_ucm_query_addr_resp resp = { 0 };
	struct wire_gid sgid, dgid;

	if (c->out_room < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	rdma_id_gids(ctx->rdma, &sgid, &dgid);
	put_device(&resp, ctx);
	put_gid(&resp.src_addr, &resp.src_size, ctx, &sgid, rdma_id_src(ctx->rdma));
	put_gid(&resp.dst_addr, &resp.dst_size, ctx, &dgid, rdma_id_dst(ctx->rdma));
	ucma_out(c, &resp, sizeof(resp));
	return 0;
}

static int query_path(struct ucma_call *c, const struct ucma_ctx *ctx)
{
	struct {
		struct rdma_ucm_query_path_resp hdr;
		struct ib_path_rec_data path;
	} resp = { 0 };
	const struct sa_path *path = rdma_id_path(ctx->rdma);
	size_t len = sizeof(resp.hdr);

	if (c->out_room < sizeof(resp.hdr))
		return -ENOSPC;
	resp.hdr.num_paths = path ? 1 : 0;
	if (path && c->out_room >= sizeof(resp)) {
		resp.path.flags = PATH_FLAGS;
		sa_path_put_record(path, (u8 *)resp.path.path_rec);
		len = sizeof(resp);
	}
	ucma_out(c, &resp, len);
	return 0;
}

int ucma_query(struct ucma_call *c)
{
	struct rdma_ucm_query cmd;

	ucma_in(c, &cmd, sizeof(cmd));
	switch (cmd.option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return query_addr(c, c->ctx);
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(c, c->ctx);
	case RDMA_USER_CM_QUERY_GID:
		return query_gid(c, c->ctx);
	default:
		return -ENOSYS;
	}
}

int ucma_init_qp_attr(struct ucma_call *c)
{
	struct ib_uverbs_qp_attr resp = { 0 };
	struct rdma_ucm_init_qp_attr cmd;
	struct hca_qp_attr a;
	struct ucma_ctx *ctx;
	u32 mask;
	int err;

	ucma_in(c, &cmd, sizeof(cmd));
	err = cmd.qp_state > HCA_QPS_ERR ? -EINVAL : ucma_ctx_find(c->file, cmd.id, &ctx);
	err = err ? err : rdma_id_qp_attr(ctx->rdma, (enum hca_qp_state)cmd.qp_state, &a, &mask);
	if (err)
		return err;
	resp.qp_attr_mask = mask;
	uv_attr_out_cm(&resp, &a);
	ucma_out(c, &resp, sizeof(resp));
	return 0;
}

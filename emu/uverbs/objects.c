// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Commands on PDs, AHs, memory regions and windows, and multicast: their handles are the HCA's own numbers. */
#include <errno.h>

#include "emu/uverbs/command.h"

int uv_alloc_pd(struct uv_call *c)
{
	struct ib_uverbs_alloc_pd_resp resp;
	int err = hca_pd_alloc(c->u->ctx, &resp.pd_handle);

	if (!err)
		uv_call_out(c, &resp, sizeof(resp));
	return err;
}

int uv_dealloc_pd(struct uv_call *c)
{
	struct ib_uverbs_dealloc_pd cmd;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	return err ? err : hca_pd_free(c->u->ctx, cmd.pd_handle);
}

void uv_av_in(struct hca_av *av, const struct ib_uverbs_ah_attr *a)
{
	*av = (struct hca_av){
		.dlid = a->dlid,
		.sl = a->sl,
		.src_path_bits = a->src_path_bits,
		.static_rate = a->static_rate,
		.port = a->port_num,
		.grh = a->is_global,
		.sgid_index = a->grh.sgid_index,
		.hop_limit = a->grh.hop_limit,
		.traffic_class = a->grh.traffic_class,
		.flow_label = a->grh.flow_label,
		.dgid = wire_gid_from_bytes(a->grh.dgid),
	};
}

int uv_create_ah(struct uv_call *c)
{
	struct ib_uverbs_create_ah cmd;
	struct ib_uverbs_create_ah_resp resp;
	struct rxe_create_ah_resp rxe = { 0 };
	struct hca_av av;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	uv_av_in(&av, &cmd.attr);
	err = hca_ah_create(c->u->ctx, cmd.pd_handle, &av, &rxe.ah_num);
	if (err)
		return err;
	resp.ah_handle = rxe.ah_num;
	uv_call_out(c, &resp, sizeof(resp));
	err = uv_call_out_driver(c, sizeof(resp), &rxe, sizeof(rxe));
	if (err)
		hca_ah_destroy(c->u->ctx, rxe.ah_num);
	return err;
}

int uv_destroy_ah(struct uv_call *c)
{
	struct ib_uverbs_destroy_ah cmd;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	return err ? err : hca_ah_destroy(c->u->ctx, cmd.ah_handle);
}

int uv_reg_mr(struct uv_call *c)
{
	struct ib_uverbs_reg_mr cmd;
	struct ib_uverbs_reg_mr_resp resp;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	if ((cmd.start & 0xfff) != (cmd.hca_va & 0xfff) && !(cmd.access_flags & HCA_ACCESS_ZERO_BASED))
		return -EINVAL;
	err = hca_mr_reg(c->u->ctx, cmd.pd_handle, cmd.start, cmd.hca_va, cmd.length, cmd.access_flags, &resp.lkey,
			 &resp.rkey);
	resp.mr_handle = resp.lkey;
	if (!err)
		uv_call_out(c, &resp, sizeof(resp));
	return err;
}

int uv_dereg_mr(struct uv_call *c)
{
	struct ib_uverbs_dereg_mr cmd;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	return err ? err : hca_mr_dereg(c->u->ctx, cmd.mr_handle);
}

int uv_alloc_mw(struct uv_call *c)
{
	struct ib_uverbs_alloc_mw cmd;
	struct ib_uverbs_alloc_mw_resp resp;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (!err)
		err = hca_mw_alloc(c->u->ctx, cmd.pd_handle, cmd.mw_type, &resp.rkey);
	resp.mw_handle = resp.rkey;
	if (!err)
		uv_call_out(c, &resp, sizeof(resp));
	return err;
}

int uv_dealloc_mw(struct uv_call *c)
{
	struct ib_uverbs_dealloc_mw cmd;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	return err ? err : hca_mw_free(c->u->ctx, cmd.mw_handle);
}

/* Attach and detach have one form. */
static int mcast(struct uv_call *c, int (*fn)(struct hca_ctx *ctx, u32 qpn, const struct wire_gid *mgid, u16 mlid))
{
	struct ib_uverbs_attach_mcast cmd;
	const struct uv_qp *qp;
	struct wire_gid gid;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	qp = table_get(&c->u->qps, cmd.qp_handle);
	gid = wire_gid_from_bytes(cmd.gid);
	return qp ? fn(c->u->ctx, qp->qpn, &gid, cmd.mlid) : -EINVAL;
}

int uv_attach_mcast(struct uv_call *c)
{
	return mcast(c, hca_mcast_attach);
}

int uv_detach_mcast(struct uv_call *c)
{
	return mcast(c, hca_mcast_detach);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* uverbs commands on PDs, AHs, memory regions and windows, and multicast: handles are the HCA's numbers. */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <unistd.h>

#include "emu/hca/iw.h"
#include "emu/host/attr.h"
#include "emu/host/command.h"

int uv_alloc_pd(struct uv_call *c)
{
	struct ib_uverbs_alloc_pd_resp resp;
	int err = hca_pd_alloc(c->u->verbs.ctx, &resp.pd_handle);

	if (!err)
		uv_call_out(c, &resp, sizeof(resp));
	return err;
}

int uv_dealloc_pd(struct uv_call *c)
{
	struct ib_uverbs_dealloc_pd cmd;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	return err ? err : hca_pd_free(c->u->verbs.ctx, cmd.pd_handle);
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
	err = hca_ah_create(c->u->verbs.ctx, cmd.pd_handle, &av, &rxe.ah_num);
	if (err)
		return err;
	resp.ah_handle = rxe.ah_num;
	uv_call_out(c, &resp, sizeof(resp));
	uv_call_out_driver(c, sizeof(resp), &rxe, sizeof(rxe));
	return 0;
}

int uv_destroy_ah(struct uv_call *c)
{
	struct ib_uverbs_destroy_ah cmd;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	return err ? err : hca_ah_destroy(c->u->verbs.ctx, cmd.ah_handle);
}

int uv_reg_mr(struct uv_call *c)
{
	const u64 in_page = (u64)sysconf(_SC_PAGESIZE) - 1;
	struct ib_uverbs_reg_mr cmd;
	struct ib_uverbs_reg_mr_resp resp;
	struct uv_file *f = c->u->file;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (err)
		return err;
	if (cmd.access_flags & HCA_ACCESS_ON_DEMAND && !uv_has_odp(f->host))
		return -EINVAL;
	if ((cmd.start ^ cmd.hca_va) & in_page && !(cmd.access_flags & HCA_ACCESS_ZERO_BASED))
		return -EINVAL;
	err = hca_mr_reg_of(c->u->verbs.ctx, f->process, cmd.pd_handle, cmd.start, cmd.hca_va, cmd.length,
			    cmd.access_flags, &resp.lkey, &resp.rkey);
	if (err == -EINPROGRESS) {
		f->deferral = (struct uv_deferral){ hca_ctx_moves(c->u->verbs.ctx), resp.lkey };
		err = 0;
	}
	resp.mr_handle = resp.lkey;
	if (!err)
		uv_call_out(c, &resp, sizeof(resp));
	return err;
}

/* DEREG_MR and DEALLOC_MW have the same structure: the handle is the key. */
static int objects_free_key(struct uv_call *c, int (*fn)(struct hca_ctx *ctx, u32 key))
{
	struct ib_uverbs_dereg_mr cmd;
	int err = uv_call_in(c, &cmd, sizeof(cmd));
	u64 accesses;

	if (err)
		return err;
	accesses = hca_ctx_accesses(c->u->verbs.ctx, cmd.mr_handle);
	err = fn(c->u->verbs.ctx, cmd.mr_handle);
	if (!err) /* the program may reuse its memory once it has the response */
		c->u->file->deferral.until = accesses;
	return err;
}

int uv_dereg_mr(struct uv_call *c)
{
	return objects_free_key(c, hca_mr_dereg);
}

int uv_advise_mr(struct uverbs *u, const struct uv_advise *a)
{
	bool write = a->advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	u32 i;
	int err = 0;

	if (a->advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	if (a->flags & ~IB_UVERBS_ADVISE_MR_FLAG_FLUSH)
		return -EINVAL;
	for (i = 0; i < a->n && !err; i++)
		err = hca_mr_prefetch_check(u->verbs.ctx, a->pd, a->sge[i].lkey, a->sge[i].addr, a->sge[i].length,
					    write);
	return err;
}

int uv_alloc_mw(struct uv_call *c)
{
	struct ib_uverbs_alloc_mw cmd;
	struct ib_uverbs_alloc_mw_resp resp;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (!err)
		err = hca_mw_alloc(c->u->verbs.ctx, cmd.pd_handle, cmd.mw_type, &resp.rkey);
	resp.mw_handle = resp.rkey;
	if (!err)
		uv_call_out(c, &resp, sizeof(resp));
	return err;
}

int uv_dealloc_mw(struct uv_call *c)
{
	return objects_free_key(c, hca_mw_free);
}

/* ATTACH_MCAST and DETACH_MCAST have the same structure. As ib_core: an MLID on InfiniBand, ignored on Ethernet. */
static int objects_mcast(struct uv_call *c,
			 int (*fn)(struct hca_ctx *ctx, u32 qpn, const struct wire_gid *mgid, u16 mlid))
{
	bool ethernet = wire_port_is_ethernet(hca_port(c->u->verbs.hca, 1));
	struct ib_uverbs_attach_mcast cmd;
	int err = uv_call_in(c, &cmd, sizeof(cmd));

	if (!err && !ethernet && !wire_lid_is_multicast(cmd.mlid))
		err = -EINVAL;
	return err ? err : verbs_qp_mcast(&c->u->verbs, cmd.qp_handle, cmd.gid, ethernet ? 0 : cmd.mlid, fn);
}

int uv_attach_mcast(struct uv_call *c)
{
	return objects_mcast(c, hca_mcast_attach);
}

/*
 * The program leaves the group afterwards, and the subnet manager may then remove the sender's switch from the group's
 * routes.
 */
int uv_detach_mcast(struct uv_call *c)
{
	return uv_call_defer(c) ? 0 : objects_mcast(c, hca_mcast_detach);
}

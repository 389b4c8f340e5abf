// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory windows of type 1 and 2B, their binding, and the invalidation of keys (10.6.7). */
#include <errno.h>

#include "emu/hca/hca_internal.h"

#define WINDOW_ACCESS \
	(HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_ATOMIC | HCA_ACCESS_ZERO_BASED)

static bool is_window(const struct hca_key *k)
{
	return k->kind == HCA_KEY_MW1 || k->kind == HCA_KEY_MW2;
}

int hca_mw_alloc(struct hca_ctx *ctx, u32 pdn, u8 type, u32 *rkey)
{
	struct hca_pd *pd = hca_pd_get(ctx, pdn);
	struct hca_key *k;
	int err;

	if (!pd || (type != 1 && type != 2))
		return -EINVAL;
	err = hca_key_alloc(ctx, pd, type == 1 ? HCA_KEY_MW1 : HCA_KEY_MW2, &k);
	if (err)
		return err;
	*rkey = k->key;
	return 0;
}

int hca_mw_free(struct hca_ctx *ctx, u32 rkey)
{
	struct hca_key *k = hca_key_slot(ctx->hca, rkey);

	if (!k || !is_window(k) || k->ctx != ctx)
		return -ENOENT;
	hca_batches_run(); /* deferred writes must not happen afterwards, as in hca_mr_dereg() */
	hca_key_free(k);
	return 0;
}

void hca_mw_unbind(struct hca_key *k)
{
	if (!k->mr)
		return;
	k->mr->windows--;
	k->mr = NULL;
	k->valid = false;
	if (k->qp)
		hca_qp_priv(k->qp)->windows--;
	k->qp = NULL;
}

void hca_mw_unbind_qp(struct hca_qp *qp)
{
	struct hca_key *k;

	if (!hca_qp_priv(qp)->windows)
		return;
	list_for_each (k, &qp->ctx->keys, link)
		if (k->qp == qp)
			hca_mw_unbind(k);
}

static int check_window(const struct hca_qp *qp, const struct hca_key *mw, const struct hca_send_wr *wr)
{
	if (!mw || !is_window(mw) || mw->ctx != qp->ctx)
		return HCA_KEY_INVALID;
	if (mw->pd != qp->pd)
		return HCA_KEY_PD;
	if (mw->kind == HCA_KEY_MW2 && (mw->valid || !wr->bind_len))
		return HCA_KEY_INVALID;
	if (mw->kind == HCA_KEY_MW1 && wr->access & HCA_ACCESS_ZERO_BASED) /* o10-36.2.2 */
		return HCA_KEY_ACCESS;
	return 0;
}

/* Checks the region: a window has no more rights than it (10.6.7). */
static int check_region(const struct hca_key *mw, const struct hca_key *mr, const struct hca_send_wr *wr)
{
	u64 off;

	if (!mr || !mr->valid || mr->kind != HCA_KEY_MR)
		return HCA_KEY_INVALID;
	if (mr->pd != mw->pd)
		return HCA_KEY_PD;
	if (!(mr->access & HCA_ACCESS_MW_BIND) || (wr->access & ~WINDOW_ACCESS))
		return HCA_KEY_ACCESS;
	if ((wr->access & (HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_ATOMIC)) &&
	    !(mr->access & HCA_ACCESS_LOCAL_WRITE))
		return HCA_KEY_ACCESS;
	off = wr->bind_addr - mr->base;
	if (wr->bind_addr < mr->base || off > mr->len || wr->bind_len > mr->len - off)
		return HCA_KEY_BOUNDS;
	return 0;
}

/* Rebinds a type 1 window, or unbinds it if the length is zero; a type 2 window must be unbound (10.6.7). */
int hca_mw_bind(struct hca_qp *qp, const struct hca_send_wr *wr)
{
	struct hca_key *mw = hca_key_find(qp->hca, wr->mw_rkey), *mr = NULL;
	int err = check_window(qp, mw, wr);

	if (!err && wr->bind_len) {
		mr = hca_key_find(qp->hca, wr->mr_lkey);
		err = check_region(mw, mr, wr);
	}
	if (err)
		return err;
	hca_mw_unbind(mw);
	mw->key = (mw->key & ~0xffu) | (u8)wr->reg_key; /* the consumer owns the low byte alone (10.6.7.2) */
	if (!mr)
		return 0;
	mw->mr = mr;
	mr->windows++;
	mw->access = wr->access;
	mw->base = wr->access & HCA_ACCESS_ZERO_BASED ? 0 : wr->bind_addr;
	mw->va = wr->bind_addr;
	mw->len = wr->bind_len;
	mw->valid = true;
	if (mw->kind == HCA_KEY_MW2) {
		mw->qp = qp;
		hca_qp_priv(qp)->windows++;
	}
	return 0;
}

/* Invalidates a type 2 window through its QP, or a region for fast registration (10.6.5). */
int hca_key_invalidate(struct hca_qp *qp, u32 key, bool remote)
{
	const u32 rights = HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_ATOMIC;
	struct hca_key *k = hca_key_find(qp->hca, key);

	if (!k || !k->valid || k->ctx != qp->ctx)
		return HCA_KEY_INVALID;
	if (k->pd != hca_qp_pd(qp) || (k->kind == HCA_KEY_MW2 && k->qp != qp) || (k->qpn && k->qpn != qp->qpn))
		return HCA_KEY_PD;
	if (k->kind == HCA_KEY_MW2) {
		hca_mw_unbind(k);
		return 0;
	}
	if (k->kind != HCA_KEY_MR || !k->fast || k->windows)
		return HCA_KEY_INVALID;
	if (remote && (!(k->access & rights) || (k->mkey && !k->remote_inval)))
		return HCA_KEY_ACCESS;
	k->valid = false;
	return 0;
}

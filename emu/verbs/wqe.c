// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Work queue entries of rxe's user ABI: decoding of requests, encoding of completions. */
#include <errno.h>

#include "emu/verbs/wqe.h"

#define WR_ATOMIC_WRITE 15 /* IBV_WR_ATOMIC_WRITE */

static int sges(struct hca_sge *dst, u16 *num, const volatile struct rxe_sge *src, u32 n, u32 max)
{
	u32 i;

	*num = 0;
	if (n > max || n > HCA_MAX_SGE)
		return -EINVAL;
	for (i = 0; i < n; i++)
		dst[i] = (struct hca_sge){ .addr = src[i].addr, .length = src[i].length, .lkey = src[i].lkey };
	*num = (u16)n;
	return 1;
}

static int inline_bytes(struct hca_send_wr *out, const volatile u8 *data, u32 len)
{
	out->inline_len = len;
	memcpy(out->inline_data, (const void *)data, len);
	return 1;
}

static void kind(const struct rxe_send_wr *wr, struct hca_send_wr *out)
{
	switch (out->opcode) {
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_RDMA_WRITE_WITH_IMM:
	case HCA_WR_RDMA_READ:
		out->remote_addr = wr->wr.rdma.remote_addr;
		out->rkey = wr->wr.rdma.rkey;
		break;
	case HCA_WR_ATOMIC_CMP_AND_SWP:
	case HCA_WR_ATOMIC_FETCH_AND_ADD:
		out->remote_addr = wr->wr.atomic.remote_addr;
		out->rkey = wr->wr.atomic.rkey;
		out->compare_add = wr->wr.atomic.compare_add;
		out->swap = wr->wr.atomic.swap;
		break;
	case HCA_WR_BIND_MW:
		out->bind_addr = wr->wr.mw.addr;
		out->bind_len = wr->wr.mw.length;
		out->mr_lkey = wr->wr.mw.mr_lkey;
		out->mw_rkey = wr->wr.mw.mw_rkey;
		out->reg_key = wr->wr.mw.rkey;
		out->access = wr->wr.mw.access & ~(u32)HCA_ACCESS_LOCAL_WRITE; /* has no meaning for a window */
		break;
	case HCA_WR_LOCAL_INV:
		out->rkey = wr->ex.invalidate_rkey;
		break;
	default:
		break;
	}
}

/* 8 aligned bytes, which an RDMA write moves as one. */
static int atomic_write(const struct rxe_send_wr *wr, const volatile u8 *data, struct hca_send_wr *out)
{
	out->opcode = HCA_WR_RDMA_WRITE;
	out->flags |= HCA_SEND_INLINE;
	out->remote_addr = wr->wr.rdma.remote_addr;
	out->rkey = wr->wr.rdma.rkey;
	return out->remote_addr % 8 ? -EINVAL : inline_bytes(out, data, 8);
}

void wqe_head(struct hca_send_wr *out, const struct rxe_send_wqe *w)
{
	memset(out, 0, offsetof(struct hca_send_wr, sge));
	out->token = w->wr.wr_id;
	out->flags = w->wr.send_flags & (HCA_SEND_FENCE | HCA_SEND_SIGNALED | HCA_SEND_SOLICITED | HCA_SEND_INLINE);
}

int wqe_send(struct hca_send_wr *out, const struct rxe_send_wqe *w, const volatile void *data,
	     const struct wqe_limits *limits)
{
	u32 op = w->wr.opcode, len = w->dma.length;
	bool imm = op == HCA_WR_SEND_WITH_IMM || op == HCA_WR_RDMA_WRITE_WITH_IMM;

	wqe_head(out, w);
	if (op == WR_ATOMIC_WRITE && limits->type == HCA_QPT_RC)
		return atomic_write(&w->wr, data, out);
	if (op > HCA_WR_SEND_WITH_INV)
		return -EINVAL;
	out->opcode = (u8)op;
	out->imm = imm ? be32_to_cpu(w->wr.ex.imm_data) : w->wr.ex.invalidate_rkey;
	if (limits->type == HCA_QPT_RC || limits->type == HCA_QPT_UC) {
		kind(&w->wr, out);
	} else {
		out->remote_qpn = w->wr.wr.ud.remote_qpn & 0xffffff;
		out->remote_qkey = w->wr.wr.ud.remote_qkey;
		out->pkey_index = w->wr.wr.ud.pkey_index;
	}
	if (!(out->flags & HCA_SEND_INLINE))
		return sges(out->sge, &out->num_sge, data, w->dma.num_sge, limits->max_sge);
	return len > limits->max_inline || len > HCA_MAX_INLINE ? -EINVAL : inline_bytes(out, data, len);
}

int wqe_recv(struct hca_recv_wr *out, const struct rxe_recv_wqe *w, const volatile void *data, u32 max_sge)
{
	out->token = w->wr_id;
	return sges(out->sge, &out->num_sge, data, w->dma.num_sge, max_sge);
}

int wqe_next_recv(struct verbs_ring *r, struct hca_recv_wr *out, u32 max_sge)
{
	const struct rxe_recv_wqe *entry = verbs_ring_pull(r);
	struct rxe_recv_wqe w;

	if (!entry)
		return 0;
	w = *(const volatile struct rxe_recv_wqe *)entry;
	return wqe_recv(out, &w, entry->dma.sge, max_sge);
}

/* The kernel and libibverbs differ in two flags: libibverbs has 8 for an invalidated key and 4 for a valid checksum. */
static u32 user_flags(u8 flags)
{
	u32 same = flags & (HCA_WC_GRH | HCA_WC_WITH_IMM);

	return same | (flags & HCA_WC_WITH_INVALIDATE ? 8 : 0) | (flags & HCA_WC_IP_CSUM_OK ? 4 : 0);
}

struct ib_uverbs_wc wqe_completion(const struct hca_cqe *cqe)
{
	struct ib_uverbs_wc wc = {
		.wr_id = cqe->token,
		.status = cqe->status,
		.opcode = cqe->opcode,
		.vendor_err = cqe->vendor_err,
		.byte_len = cqe->byte_len,
		.qp_num = cqe->qpn,
		.src_qp = cqe->src_qp,
		.wc_flags = user_flags(cqe->flags),
		.pkey_index = cqe->pkey_index,
		.slid = cqe->slid,
		.sl = cqe->sl,
		.dlid_path_bits = cqe->dlid_path_bits,
		.port_num = cqe->port,
	};

	if (cqe->flags & HCA_WC_WITH_IMM)
		wc.ex.imm_data = cpu_to_be32(cqe->imm);
	else
		wc.ex.invalidate_rkey = cqe->imm;
	return wc;
}

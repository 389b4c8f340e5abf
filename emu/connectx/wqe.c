// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Work queue entries. A send request has blocks of 64 bytes: a control segment, then segments by opcode and service. A
 * receive request is a list of data segments. Each is copied once before it is parsed.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/connectx/connectx_internal.h"

#define DS           16u /* bytes: unit of a request's size */
#define INVALID_LKEY 0x100u
#define INLINE       BIT(31)
#define INLINE_MASK  0x3ffu
#define EXTENDED_AV  BIT(31)
#define AV_GRH       BIT(30)

struct control_seg {
	__be32 opcode_index; /* modifier 31:24, index 23:8, operation 7:0 */
	__be32 qpn_size;     /* size 5:0 */
	u8 signature, reserved[2], flags;
	__be32 imm; /* or key, by opcode */
};
static_assert(sizeof(struct control_seg) == DS, "a control segment");

/* Flags of a control segment. */
#define SOLICITED   BIT(1)
#define COMPLETE    BIT(3) /* 2 and 3 of bits 3:2 */
#define FENCE_SHIFT 5
#define FENCE       2
#define FENCE_BOTH  4

struct xrc_seg {
	__be32 srqn, reserved[3];
};
struct remote_seg {
	__be64 addr;
	__be32 rkey, reserved;
};
struct atomic_seg {
	__be64 swap_add, compare;
};
struct data_seg {
	__be32 bytes, lkey;
	__be64 addr;
};
struct datagram_seg {
	__be32 qkey, reserved, qpn;
	u8 rate_sl, path_bits;
	__be16 dlid;
	u8 reserved2[10], traffic_class, hop_limit;
	__be32 grh; /* present 30, GID index 27:20, flow label 19:0 */
	u8 dgid[16];
};
static_assert(sizeof(struct datagram_seg) == 48, "an address vector");
/* With offloads, the address vector is followed by padding, then this segment. */
struct offload_seg {
	u8 reserved[4], checksums, reserved2;
	__be16 mss;
	u8 reserved3[4];
	__be16 header_len;
	u8 header[2]; /* its first two bytes */
};
static_assert(sizeof(struct offload_seg) == DS, "an Ethernet segment");
#define CHECKSUMS (BIT(6) | BIT(7))

/* Work requests of the HCA by opcode of the adapter. */
static const struct {
	u8 opcode;
	bool valid, imm, remote, atomic;
} operations[256] = {
	[CX_OP_NOP] = { HCA_WR_NOP, true },
	[CX_OP_SEND_INVAL] = { HCA_WR_SEND_WITH_INV, true, .imm = true },
	[CX_OP_WRITE] = { HCA_WR_RDMA_WRITE, true, .remote = true },
	[CX_OP_WRITE_IMM] = { HCA_WR_RDMA_WRITE_WITH_IMM, true, .imm = true, .remote = true },
	[CX_OP_SEND] = { HCA_WR_SEND, true },
	[CX_OP_SEND_IMM] = { HCA_WR_SEND_WITH_IMM, true, .imm = true },
	[CX_OP_LSO] = { HCA_WR_SEND, true },
	[CX_OP_READ] = { HCA_WR_RDMA_READ, true, .remote = true },
	[CX_OP_CMP_SWAP] = { HCA_WR_ATOMIC_CMP_AND_SWP, true, .remote = true, .atomic = true },
	[CX_OP_FETCH_ADD] = { HCA_WR_ATOMIC_FETCH_AND_ADD, true, .remote = true, .atomic = true },
	[CX_OP_UMR] = { HCA_WR_REG_MR, true },
};

/* Position in a copied request. */
struct cursor {
	const u8 *at;
	u32 left;
};

static const void *cursor_take(struct cursor *c, u32 n)
{
	const void *p = c->at;

	if (c->left < n)
		return NULL;
	c->at += n;
	c->left -= n;
	return p;
}

int cx_sq_take(struct cx_qp *qp, u8 *wqe, u16 *index)
{
	struct connectx *d = cx_of(qp->qp.verbs);
	u32 blocks, mask = BIT(qp->log_sq) - 1, i, producer, size;
	u16 posted;
	int err;

	if (!qp->uar || !qp->buf.npages)
		return 0;
	err = cx_record_read(d, &qp->record, 1, &producer);
	if (err == -EFAULT)
		verbs_qp_catastrophic(&qp->qp);
	if (err)
		return 0;
	posted = (u16)((u16)producer - qp->sq_next);
	if (!posted)
		return 0;
	*index = qp->sq_next;
	if (posted > mask + 1 ||
	    cx_buf_read(d, &qp->buf, qp->sq_offset + (qp->sq_next & mask) * CX_WQE_BB, wqe, CX_WQE_BB)) {
		qp->sq_next = (u16)producer; /* the requests up to there cannot be separated */
		return -EINVAL;
	}
	size = (wqe[7] & 0x3fu) * DS;
	blocks = max((size + CX_WQE_BB - 1) / CX_WQE_BB, 1u);
	if (size < DS || blocks > posted) {
		qp->sq_next = (u16)producer;
		return -EINVAL;
	}
	for (i = 1; i < blocks; i++) {
		u32 slot = (qp->sq_next + i) & mask;

		if (cx_buf_read(d, &qp->buf, qp->sq_offset + slot * CX_WQE_BB, wqe + i * CX_WQE_BB, CX_WQE_BB)) {
			qp->sq_next = (u16)producer;
			return -EINVAL;
		}
	}
	cx_corpus_send(qp, wqe, qp->sq_next, blocks);
	qp->sq_next = (u16)(qp->sq_next + blocks);
	return (int)size;
}

/*
 * libmlx5 writes the adapter's code. mlx5_ib of Linux 6.1 writes 4 bits of IBTA's, with which IPoIB would have 2.5
 * instead of 40 Gb/s: the rate of the kernel's queue pairs, which have no user index, is ignored.
 */
static u8 datagram_rate(const struct cx_qp *qp, u32 code)
{
	return qp->user_index == CX_NO_INDEX ? WIRE_RATE_PORT : cx_static_rate(code);
}

static int decode_datagram(const struct cx_qp *qp, struct cursor *c, struct hca_send_wr *wr)
{
	const struct connectx *d = cx_of(qp->qp.verbs);
	const struct datagram_seg *s = cursor_take(c, sizeof(*s));
	u32 grh;

	if (!s || !(be32_to_cpu(s->qpn) & EXTENDED_AV))
		return -EINVAL;
	grh = be32_to_cpu(s->grh);
	wr->remote_qpn = be32_to_cpu(s->qpn) & CX_ANY_QPN;
	wr->remote_qkey = be32_to_cpu(s->qkey);
	wr->pkey_index = qp->qp.special.pkey_index;
	wr->av = (struct hca_av){
		.dlid = be16_to_cpu(s->dlid),
		.sl = s->rate_sl & 0xf,
		.src_path_bits = s->path_bits & 0x7f,
		.static_rate = datagram_rate(qp, s->rate_sl >> 4),
		.port = d->cfg.port,
		.grh = grh & AV_GRH,
		.sgid_index = (u8)(grh >> 20),
		.hop_limit = s->hop_limit,
		.traffic_class = s->traffic_class,
		.flow_label = grh & 0xfffff,
		.dgid = wire_gid_from_bytes(s->dgid),
	};
	return wr->av.sgid_index < WIRE_PORT_GIDS ? 0 : -EINVAL;
}

static int decode_offload(const struct cx_qp *qp, struct cursor *c, u8 op, struct hca_send_wr *wr)
{
	const struct offload_seg *s;
	u32 len, rest;

	if (!qp->offload)
		return op == CX_OP_LSO ? -EINVAL : 0;
	if (!cursor_take(c, DS) || !(s = cursor_take(c, sizeof(*s))))
		return -EINVAL;
	if ((s->checksums & CHECKSUMS) == CHECKSUMS)
		wr->flags |= HCA_SEND_IP_CSUM;
	if (op != CX_OP_LSO)
		return 0;
	len = be16_to_cpu(s->header_len);
	rest = len > sizeof(s->header) ? (len - (u32)sizeof(s->header) + DS - 1) / DS * DS : 0;
	if (len < sizeof(s->header) || len > HCA_MAX_INLINE || rest > c->left || !s->mss)
		return -EINVAL;
	memcpy(wr->inline_data, s->header, len); /* they continue after the segment */
	cursor_take(c, rest);
	wr->lso_mss = be16_to_cpu(s->mss);
	wr->lso_hdr_len = (u16)len;
	return 0;
}

/* Inline bytes, then data segments. */
static int decode_data(struct cursor *c, struct hca_send_wr *wr)
{
	while (c->left >= DS) {
		struct data_seg s;
		u32 bytes;

		memcpy(&s, c->at, sizeof(s));
		bytes = be32_to_cpu(s.bytes);
		if (bytes & INLINE) {
			u32 n = bytes & INLINE_MASK, whole = (n + 4 + DS - 1) / DS * DS;

			if (wr->num_sge || wr->lso_mss || whole > c->left || n > HCA_MAX_INLINE - wr->inline_len)
				return -EINVAL;
			memcpy(wr->inline_data + wr->inline_len, c->at + 4, n);
			wr->inline_len += n;
			wr->flags |= HCA_SEND_INLINE;
			cursor_take(c, whole);
			continue;
		}
		cursor_take(c, DS);
		if (!bytes)
			continue;
		if (wr->num_sge == HCA_MAX_SGE)
			return -EINVAL;
		wr->sge[wr->num_sge++] = (struct hca_sge){ be64_to_cpu(s.addr), bytes, be32_to_cpu(s.lkey) };
	}
	return 0;
}

static int decode_remote(struct cursor *c, bool atomic, u8 opcode, struct hca_send_wr *wr)
{
	const struct remote_seg *r = cursor_take(c, sizeof(*r));
	const struct atomic_seg *a;

	if (!r)
		return -EINVAL;
	wr->remote_addr = be64_to_cpu(r->addr);
	wr->rkey = be32_to_cpu(r->rkey);
	if (!atomic)
		return 0;
	a = cursor_take(c, sizeof(*a));
	if (!a)
		return -EINVAL;
	if (opcode == HCA_WR_ATOMIC_CMP_AND_SWP) {
		wr->compare_add = be64_to_cpu(a->compare);
		wr->swap = be64_to_cpu(a->swap_add);
	} else {
		wr->compare_add = be64_to_cpu(a->swap_add);
	}
	return 0;
}

static int decode_xrc(struct cursor *c, struct hca_send_wr *wr)
{
	const struct xrc_seg *s = cursor_take(c, sizeof(*s));

	if (!s)
		return -EINVAL;
	wr->remote_srqn = be32_to_cpu(s->srqn) & CX_ANY_QPN;
	return 0;
}

static int decode_send(struct cx_qp *qp, const u8 *wqe, u32 size, struct hca_send_wr *wr)
{
	bool datagram = qp->service != CX_QP_RC && qp->service != CX_QP_UC && qp->service != CX_QP_XRC;
	struct cursor c = { wqe + DS, size - DS };
	struct control_seg ctrl;
	u8 op, fence;
	int err = 0;

	memcpy(&ctrl, wqe, sizeof(ctrl));
	op = (u8)be32_to_cpu(ctrl.opcode_index);
	fence = ctrl.flags >> FENCE_SHIFT;
	if (!operations[op].valid || (op == CX_OP_LSO && !datagram) || (op == CX_OP_UMR && datagram))
		return -EINVAL;
	wr->opcode = operations[op].opcode;
	wr->flags = (ctrl.flags & COMPLETE ? HCA_SEND_SIGNALED : 0) |
		    (ctrl.flags & SOLICITED ? HCA_SEND_SOLICITED : 0) |
		    (fence >= FENCE && fence <= FENCE_BOTH ? HCA_SEND_FENCE : 0);
	if (op == CX_OP_NOP)
		return 1;
	if (op == CX_OP_UMR)
		return cx_umr_decode(qp, wqe, size, wr);
	if (operations[op].imm)
		wr->imm = be32_to_cpu(ctrl.imm);
	if (datagram)
		err = decode_datagram(qp, &c, wr) ?: decode_offload(qp, &c, op, wr);
	else if (qp->service == CX_QP_XRC)
		err = decode_xrc(&c, wr);
	if (!err && operations[op].remote)
		err = decode_remote(&c, operations[op].atomic, wr->opcode, wr);
	if (!err)
		err = decode_data(&c, wr);
	return err ? err : 1;
}

static void wr_clear(struct hca_send_wr *wr)
{
	memset(wr, 0, offsetof(struct hca_send_wr, sge));
}

static int send_pull(void *fe, struct hca_send_wr *wr)
{
	static u8 wqe[CX_WQE_BB * CX_WQE_BBS + CX_WQE_BB] __attribute__((aligned(8)));
	struct cx_qp *qp = fe;
	u16 index;
	int got;

	wr_clear(wr);
	got = cx_sq_take(qp, wqe, &index);
	if (!got)
		return 0;
	qp->pulled++;
	wr->token = CX_TOKEN(index, 0);
	if (got > 0) {
		wr->token = CX_TOKEN(index, wqe[3]);
		got = decode_send(qp, wqe, (u32)got, wr);
	}
	if (got < 0)
		cx_count(cx_of(qp->qp.verbs), CX_CTR_BAD_WQES);
	return got;
}

void *cx_list_alloc(struct cx_qp *qp, u32 bytes)
{
	struct connectx *d = cx_of(qp->qp.verbs);
	u64 pages = bytes / sizeof(u64) + 1;
	struct cx_list *list;

	list = cx_pages_left(d, pages) ? malloc(sizeof(*list) + pages * sizeof(u64)) : NULL;
	if (!list)
		return NULL;
	list->request = qp->pulled - 1;
	list->pages = pages;
	d->pages += pages;
	list_init(&list->link);
	list_add(&qp->lists, &list->link);
	return list->data;
}

/* Frees the lists of the requests before number @end. */
static void lists_drop(struct cx_qp *qp, u64 end)
{
	while (!list_empty(&qp->lists)) {
		struct cx_list *list = list_first(&qp->lists, struct cx_list, link);

		if (list->request >= end)
			return;
		cx_of(qp->qp.verbs)->pages -= list->pages;
		list_del(&list->link);
		free(list);
	}
}

static void send_done(void *fe)
{
	struct cx_qp *qp = fe;

	lists_drop(qp, ++qp->done);
}

int cx_rq_take(struct connectx *d, struct cx_rq *rq, struct cx_buf *b, struct cx_record *r, u32 max_sge,
	       struct hca_recv_wr *wr)
{
	u32 mask = BIT(rq->log_size) - 1, size = BIT(rq->log_stride), at, posted;
	u8 wqe[(HCA_MAX_SGE + 2) * DS] __attribute__((aligned(8)));
	int err;

	wr->num_sge = 0;
	if (!b->npages)
		return 0;
	err = cx_record_read(d, r, 0, &posted);
	if (err)
		return err;
	if ((u16)posted == rq->count)
		return 0;
	size = min(size, (u32)sizeof(wqe));
	wr->token = rq->linked ? rq->next & mask : rq->count;
	if ((u16)(posted - rq->count) > mask + 1 ||
	    cx_buf_read(d, b, (u64)((rq->linked ? rq->next : rq->count) & mask) << rq->log_stride, wqe, size)) {
		rq->count = (u16)posted;
		cx_count(d, CX_CTR_BAD_WQES);
		return -EINVAL;
	}
	cx_corpus_recv(d, b, r, (u64)((rq->linked ? rq->next : rq->count) & mask) << rq->log_stride, wqe, size);
	rq->count++;
	if (rq->linked)
		rq->next = (u16)wire_load(wqe + 2, 2);
	for (at = rq->linked || rq->signature ? DS : 0; at + DS <= size && wr->num_sge < max_sge; at += DS) {
		struct data_seg s;

		memcpy(&s, wqe + at, sizeof(s));
		if (be32_to_cpu(s.lkey) == INVALID_LKEY)
			break;
		if (!s.bytes)
			continue;
		wr->sge[wr->num_sge++] =
			(struct hca_sge){ be64_to_cpu(s.addr), be32_to_cpu(s.bytes), be32_to_cpu(s.lkey) };
	}
	return 1;
}

static int recv_pull(void *fe, struct hca_recv_wr *wr)
{
	struct cx_qp *qp = fe;
	int got;

	if (!qp->has_rq)
		return 0;
	got = cx_rq_take(cx_of(qp->qp.verbs), &qp->rq, &qp->buf, &qp->record, qp->qp.max_recv_sge, wr);
	if (got == -EFAULT)
		verbs_qp_catastrophic(&qp->qp);
	return got == -EFAULT || got == -EAGAIN ? 0 : got;
}

void cx_wq_reset(void *fe)
{
	struct cx_qp *qp = fe;

	lists_drop(qp, qp->pulled);
	qp->done = qp->pulled = 0;
	qp->sq_next = qp->rq.count = qp->rq.next = 0;
}

const struct hca_wq_ops cx_qp_wq_ops = {
	.next_send = send_pull,
	.send_done = send_done,
	.next_recv = recv_pull,
	.reset = cx_wq_reset,
};

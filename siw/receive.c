// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Receiving: FPDUs, each checked by MPA, then DDP, then RDMAP, and its payload placed. A wrong one ends the connection by a
 * Terminate that names layer and error (RFC 5040, 7), and touches no other. An FPDU without CRC and markers may be judged
 * by its headers while its payload still comes: all of that is for one place, whose key is looked at again for each part.
 */
#include <errno.h>
#include <stdlib.h>

#include "siw/internal.h"

/* Who is to blame, for the counter. */
static enum siw_counter counter_of(enum iwarp_error err)
{
	switch (err >> 8) {
	case 0x11:
		return SIW_CTR_DDP_TAGGED;
	case 0x12:
		return SIW_CTR_DDP_UNTAGGED;
	case 0x20:
		return err == MPA_ERR_CRC ? SIW_CTR_CRC : SIW_CTR_LENGTH;
	default:
		return SIW_CTR_RDMAP;
	}
}

/* @status: of the receive request that is held, 0: none is to be failed. */
static bool fail(struct siw_qp *sq, enum iwarp_error err, u8 status, int event)
{
	siw_count(sq, counter_of(err));
	siw_receive_commit(sq);
	if (sq->fd.fd < 0)
		return false;
	if (sq->recv_held && status) {
		struct hca_cqe cqe = { .token = sq->recv.token, .status = status, .opcode = HCA_WC_RECV };

		sq->recv_held = false;
		hca_recv_done(sq->qp);
		hca_complete_recv(sq->qp, &cqe);
	}
	siw_terminate(sq, err, event);
	return false;
}

bool siw_receive_fail(struct siw_qp *sq, enum iwarp_error err)
{
	return fail(sq, err, 0, HCA_EVENT_QP_FATAL);
}

void siw_receive_commit(struct siw_qp *sq)
{
	u32 i, n = sq->ncomps;

	hca_batch_run(sq->siw->wr);
	sq->ncomps = 0;
	for (i = 0; i < n; i++) {
		if (sq->dma_failed)
			sq->comps[i].status = HCA_WC_LOC_PROT_ERR;
		hca_recv_done(sq->qp);
		hca_complete_recv(sq->qp, &sq->comps[i]);
	}
	if (sq->wqes)
		siw_send_complete(sq);
}

void siw_receive_flush(struct siw_qp *sq)
{
	struct hca_cqe cqe = { .token = sq->recv.token, .status = HCA_WC_WR_FLUSH_ERR, .opcode = HCA_WC_RECV };

	if (!sq->recv_held)
		return;
	sq->recv_held = false;
	hca_recv_done(sq->qp);
	hca_complete_recv(sq->qp, &cqe);
}

/* SEND */

static bool take_recv(struct siw_qp *sq)
{
	int got;

	if (sq->recv_held)
		return true;
	got = hca_next_recv(sq->qp, &sq->recv);
	if (got <= 0)
		return false;
	sq->recv_held = true;
	sq->recv_off = 0;
	return true;
}

static bool finish_send(struct siw_qp *sq)
{
	u8 opcode = sq->open.opcode;
	bool inv = opcode == RDMAP_SEND_INV || opcode == RDMAP_SEND_SE_INV;
	struct hca_cqe cqe = { .token = sq->recv.token,
			       .opcode = HCA_WC_RECV,
			       .byte_len = sq->recv_off,
			       .solicited = opcode == RDMAP_SEND_SE || opcode == RDMAP_SEND_SE_INV };

	if (inv) {
		cqe.flags = HCA_WC_WITH_INVALIDATE;
		cqe.imm = sq->open.inv_stag;
		if (hca_key_invalidate(sq->qp, cqe.imm, true))
			return fail(sq, RDMAP_ERR_CANNOT_INVALIDATE, HCA_WC_LOC_ACCESS_ERR, HCA_EVENT_QP_ACCESS_ERR);
	}
	sq->msn_in[DDP_QN_SEND]++;
	sq->recv_held = false;
	hca_count(sq->qp->hca, sq->qp->attr.port, HCA_CNT_RDMA_RECVS);
	sq->comps[sq->ncomps++] = cqe; /* which waits until the data is in memory; siw_input_bytes() sees to the room */
	return true;
}

/* Placing */

/* Where the payload of the FPDU goes, and how far into that. */
static struct siw_mem sink_of(struct siw_qp *sq, u32 *off)
{
	const struct siw_wqe *w;

	*off = 0;
	if (sq->open.opcode == RDMAP_WRITE)
		return (struct siw_mem){ &sq->open.sink, 1, true, HCA_ACCESS_REMOTE_WRITE };
	if (sq->open.opcode != RDMAP_READ_RESPONSE) {
		*off = sq->recv_off;
		return (struct siw_mem){ sq->recv.sge, sq->recv.num_sge, false, HCA_ACCESS_LOCAL_WRITE };
	}
	w = siw_send_oldest_read(sq);
	*off = w->placed;
	return (struct siw_mem){ w->sge, w->num_sge, false, HCA_ACCESS_LOCAL_WRITE };
}

bool siw_receive_misplaced(struct siw_qp *sq, int err)
{
	if (sq->open.opcode == RDMAP_READ_RESPONSE) {
		siw_send_oldest_read(sq)->status = HCA_WC_LOC_PROT_ERR;
		return fail(sq, DDP_ERR_T_STAG, 0, HCA_EVENT_QP_FATAL);
	}
	if (sq->open.opcode != RDMAP_WRITE)
		return err == HCA_KEY_BOUNDS
			       ? fail(sq, DDP_ERR_U_TOO_LONG, HCA_WC_LOC_LEN_ERR, HCA_EVENT_QP_REQ_ERR)
			       : fail(sq, RDMAP_ERR_CATASTROPHIC, HCA_WC_LOC_PROT_ERR, HCA_EVENT_QP_FATAL);
	hca_count(sq->qp->hca, sq->qp->attr.port, HCA_CNT_REMOTE_ACCESS_ERR);
	return fail(sq,
		    err == HCA_KEY_ACCESS   ? RDMAP_ERR_ACCESS
		    : err == HCA_KEY_BOUNDS ? DDP_ERR_T_BOUNDS
		    : err == HCA_KEY_PD     ? DDP_ERR_T_STAG_STREAM
					    : DDP_ERR_T_STAG,
		    0, HCA_EVENT_QP_ACCESS_ERR);
}

static bool is_denied(const struct siw_qp *sq)
{
	return sq->open.opcode == RDMAP_WRITE && !(sq->qp->attr.access & HCA_ACCESS_REMOTE_WRITE);
}

bool siw_receive_place(struct siw_qp *sq, const u8 *p, u32 len)
{
	u32 off;
	struct siw_mem mem = sink_of(sq, &off);
	int err = is_denied(sq) ? HCA_KEY_ACCESS : siw_mem_write(sq, &mem, off + sq->open.placed, len, p);

	if (err)
		return siw_receive_misplaced(sq, err);
	sq->open.placed += len;
	return true;
}

int siw_receive_sink(struct siw_qp *sq, struct iovec *iov, u32 max)
{
	u32 off;
	struct siw_mem mem = sink_of(sq, &off);
	int n = is_denied(sq)
			? HCA_KEY_ACCESS
			: siw_mem_direct(sq, &mem, off + sq->open.placed, sq->open.payload - sq->open.placed, iov, max);

	return n < 0 ? (int)siw_receive_misplaced(sq, n) - 1 : n;
}

/* READ responses come in order, each FPDU where the last one ended. */
static void finish_read(struct siw_qp *sq)
{
	struct siw_wqe *w = siw_send_oldest_read(sq);

	w->placed += sq->open.payload;
	if (!(sq->open.ddp & DDP_LAST))
		return;
	w->state = SIW_DONE;
	sq->pos.reads_out--;
	siw_kick(sq); /* a fence, or one more READ, may go on */
}

bool siw_receive_finish(struct siw_qp *sq)
{
	sq->open.partly = false;
	if (sq->open.opcode == RDMAP_WRITE)
		return true;
	if (sq->open.opcode == RDMAP_READ_RESPONSE) {
		finish_read(sq);
		return true;
	}
	sq->recv_off += sq->open.payload;
	return sq->open.ddp & DDP_LAST ? finish_send(sq) : true;
}

/* The headers are right, @p is what there is of the payload. */
static bool begin(struct siw_qp *sq, const u8 *p, u32 payload)
{
	struct siw_open *o = &sq->open;
	u32 off;
	struct siw_mem mem;
	int err;

	o->payload = payload;
	o->placed = 0;
	if (!payload)
		return siw_receive_finish(sq);
	if (o->here >= payload)
		return siw_receive_place(sq, p, payload) && siw_receive_finish(sq);
	mem = sink_of(sq, &off);
	err = is_denied(sq) ? HCA_KEY_ACCESS : siw_mem_check(sq, &mem, off, payload);
	if (err)
		return siw_receive_misplaced(sq, err);
	o->partly = true;
	return !o->here || siw_receive_place(sq, p, o->here);
}

static bool on_send(struct siw_qp *sq, const u8 *p, u32 len)
{
	const struct iwarp_untagged *u = (const struct iwarp_untagged *)p;

	if (!take_recv(sq))
		return fail(sq, DDP_ERR_U_NO_BUFFER, 0, HCA_EVENT_QP_FATAL);
	if (be32_to_cpu(u->mo) != sq->recv_off)
		return fail(sq, DDP_ERR_U_MO, HCA_WC_LOC_QP_OP_ERR, HCA_EVENT_QP_FATAL);
	sq->open.inv_stag = be32_to_cpu(u->inv_stag);
	return begin(sq, p + sizeof(*u), len - sizeof(*u));
}

/* Of a READ's source. RFC 5040, 4.8: remote protection errors. */
static enum iwarp_error protection_error(int err)
{
	switch (err) {
	case HCA_KEY_BOUNDS:
		return RDMAP_ERR_BOUNDS;
	case HCA_KEY_ACCESS:
		return RDMAP_ERR_ACCESS;
	case HCA_KEY_PD:
		return RDMAP_ERR_STAG_STREAM;
	default:
		return RDMAP_ERR_STAG;
	}
}

static int check_source(struct siw_qp *sq, const struct siw_read *r)
{
	struct hca_span span[HCA_MAX_SPANS];

	if (!r->length)
		return 0;
	if (!(sq->qp->attr.access & HCA_ACCESS_REMOTE_READ))
		return HCA_KEY_ACCESS;
	return min(hca_key_remote(sq->qp, r->source_stag, r->source_to, r->length, HCA_ACCESS_REMOTE_READ, span), 0);
}

/* READ request: answered when its turn comes. */
static bool on_read_request(struct siw_qp *sq, const u8 *p, u32 len)
{
	const struct iwarp_read *r = (const struct iwarp_read *)p;
	struct siw_read *read;
	int err;

	if (len != sizeof(*r) || !(r->u.c.ddp & DDP_LAST) || r->u.mo)
		return fail(sq, DDP_ERR_U_MO, 0, HCA_EVENT_QP_REQ_ERR);
	if (sq->rd_head - sq->pos.rd_tail >= min(max((u32)sq->terms.ird, 1u), (u32)SIW_READS))
		return fail(sq, DDP_ERR_U_NO_BUFFER, 0, HCA_EVENT_QP_REQ_ERR);
	read = &sq->reads[sq->rd_head % SIW_READS];
	*read = (struct siw_read){ .sink_stag = be32_to_cpu(r->sink_stag),
				   .source_stag = be32_to_cpu(r->source_stag),
				   .length = be32_to_cpu(r->size),
				   .sink_to = be64_to_cpu(r->sink_to),
				   .source_to = be64_to_cpu(r->source_to) };
	err = check_source(sq, read);
	if (err) {
		hca_count(sq->qp->hca, sq->qp->attr.port, HCA_CNT_REMOTE_ACCESS_ERR);
		return fail(sq, protection_error(err), 0, HCA_EVENT_QP_ACCESS_ERR);
	}
	sq->msn_in[DDP_QN_READ]++;
	sq->rd_head++;
	siw_kick(sq);
	return true;
}

static const struct {
	u8 layer_type, status;
} terminate_status[] = {
	{ RDMAP_ERR_STAG >> 8, HCA_WC_REM_ACCESS_ERR },
	{ RDMAP_ERR_VERSION >> 8, HCA_WC_REM_OP_ERR },
	{ DDP_ERR_T_STAG >> 8, HCA_WC_REM_ACCESS_ERR },
	{ DDP_ERR_U_QN >> 8, HCA_WC_REM_INV_REQ_ERR },
};

/* The peer says what was wrong: the oldest request gets it, the others are flushed. */
static bool on_terminate(struct siw_qp *sq, const u8 *p, u32 len)
{
	const struct iwarp_terminate *t = (const struct iwarp_terminate *)p;
	u8 status = HCA_WC_REM_OP_ERR;
	u32 i;

	siw_count(sq, SIW_CTR_TERMINATE_RECEIVED);
	if (len < sizeof(*t)) {
		siw_qp_close(sq, -EPROTO, HCA_EVENT_QP_FATAL);
		return false;
	}
	for (i = 0; i < ARRAY_SIZE(terminate_status); i++)
		if (terminate_status[i].layer_type == t->layer_type)
			status = terminate_status[i].status;
	siw_receive_commit(sq);
	if (sq->wq_tail != sq->wq_head)
		sq->wqes[sq->wq_tail % SIW_WQES].status = status;
	siw_qp_close(sq, -ECONNABORTED, HCA_EVENT_QP_FATAL);
	return false;
}

static bool on_untagged(struct siw_qp *sq, const u8 *p, u32 len)
{
	static const u8 queues[RDMAP_OPCODES] = {
		[RDMAP_READ_REQUEST] = DDP_QN_READ, [RDMAP_TERMINATE] = DDP_QN_TERMINATE
	};
	const struct iwarp_untagged *u = (const struct iwarp_untagged *)p;
	u8 opcode = u->c.rdmap & RDMAP_OPCODE_MASK;
	u32 qn;

	if (len < sizeof(*u))
		return fail(sq, MPA_ERR_LENGTH, 0, HCA_EVENT_QP_FATAL);
	if ((u->c.ddp & DDP_VERSION_MASK) != DDP_VERSION)
		return fail(sq, DDP_ERR_U_VERSION, 0, HCA_EVENT_QP_FATAL);
	qn = be32_to_cpu(u->qn);
	if (qn >= DDP_QUEUES)
		return fail(sq, DDP_ERR_U_QN, 0, HCA_EVENT_QP_FATAL);
	if (be32_to_cpu(u->msn) != sq->msn_in[qn])
		return fail(sq, DDP_ERR_U_MSN, 0, HCA_EVENT_QP_FATAL);
	if (opcode < RDMAP_READ_REQUEST || opcode == RDMAP_READ_RESPONSE || opcode > RDMAP_TERMINATE ||
	    queues[opcode] != qn)
		return fail(sq, RDMAP_ERR_OPCODE, 0, HCA_EVENT_QP_FATAL);
	if (qn == DDP_QN_READ)
		return on_read_request(sq, p, len);
	return qn == DDP_QN_SEND ? on_send(sq, p, len) : on_terminate(sq, p, len);
}

static bool on_write(struct siw_qp *sq, const u8 *p, u32 payload)
{
	const struct iwarp_tagged *t = (const struct iwarp_tagged *)p;

	sq->open.sink = (struct hca_sge){ be64_to_cpu(t->to), payload, be32_to_cpu(t->stag) };
	return begin(sq, p + sizeof(*t), payload);
}

static bool on_read_response(struct siw_qp *sq, const u8 *p, u32 payload)
{
	const struct iwarp_tagged *t = (const struct iwarp_tagged *)p;
	struct siw_wqe *w = siw_send_oldest_read(sq);
	bool last = t->c.ddp & DDP_LAST;

	if (sq->rtr_out && !payload && last) {
		sq->rtr_out = false;
		return true;
	}
	if (!w || sq->rtr_out)
		return fail(sq, RDMAP_ERR_OPCODE, 0, HCA_EVENT_QP_FATAL);
	if (w->num_sge && be32_to_cpu(t->stag) != w->sge[0].lkey)
		return fail(sq, DDP_ERR_T_STAG, 0, HCA_EVENT_QP_FATAL);
	if (payload > w->length - w->placed || last != (w->placed + payload == w->length) ||
	    (w->num_sge && be64_to_cpu(t->to) != w->sge[0].addr + w->placed))
		return fail(sq, DDP_ERR_T_BOUNDS, 0, HCA_EVENT_QP_FATAL);
	return begin(sq, p + sizeof(*t), payload);
}

static bool on_tagged(struct siw_qp *sq, const u8 *p, u32 len)
{
	const struct iwarp_tagged *t = (const struct iwarp_tagged *)p;
	u8 opcode = t->c.rdmap & RDMAP_OPCODE_MASK;

	if (len < sizeof(*t))
		return fail(sq, MPA_ERR_LENGTH, 0, HCA_EVENT_QP_FATAL);
	if ((t->c.ddp & DDP_VERSION_MASK) != DDP_VERSION)
		return fail(sq, DDP_ERR_T_VERSION, 0, HCA_EVENT_QP_FATAL);
	if (opcode == RDMAP_WRITE)
		return on_write(sq, p, len - sizeof(*t));
	if (opcode == RDMAP_READ_RESPONSE)
		return on_read_response(sq, p, len - sizeof(*t));
	return fail(sq, RDMAP_ERR_OPCODE, 0, HCA_EVENT_QP_FATAL);
}

/* An initiator's empty SEND takes no receive, and one without any header is as good. */
static bool is_rtr_zero(struct siw_qp *sq, const u8 *p, u32 ulpdu)
{
	const struct iwarp_untagged *u = (const struct iwarp_untagged *)p;
	bool first = sq->terms.rtr_zero && !sq->terms.initiator && sq->msn_in[DDP_QN_SEND] == 1;

	if (!ulpdu)
		return first;
	if (!first || ulpdu + IWARP_LEN_SIZE != sizeof(*u) || u->c.ddp != (DDP_LAST | DDP_VERSION) ||
	    u->c.rdmap != (RDMAP_VERSION | RDMAP_SEND) || u->qn || be32_to_cpu(u->msn) != 1 || u->mo)
		return false;
	sq->msn_in[DDP_QN_SEND]++;
	return true;
}

/* The peer has sent its first FPDU. True: there is no more to it. */
static bool on_first(struct siw_qp *sq, const u8 *p, u32 ulpdu)
{
	sq->wait_start = false;
	siw_kick(sq);
	if (sq->started)
		sq->started(sq->closed_ctx);
	return is_rtr_zero(sq, p, ulpdu);
}

bool siw_receive_fpdu(struct siw_qp *sq, u8 *p, u32 len, u64 pos, u32 ulpdu)
{
	const struct iwarp_ctrl *c = (const struct iwarp_ctrl *)p;
	u32 body = len - IWARP_CRC_SIZE;

	siw_count(sq, SIW_CTR_FPDU_RECEIVED);
	siw_tap(sq->siw, &sq->remote, &sq->local, &sq->seq, p, len, false);
	if (sq->terms.crc) {
		__le32 crc = iwarp_crc(p, body, true);

		if (memcmp(&crc, p + body, sizeof(crc)))
			return fail(sq, MPA_ERR_CRC, 0, HCA_EVENT_QP_FATAL);
	}
	if (sq->terms.mark_in && !siw_marker_remove(p, pos, iwarp_fpdu_len(ulpdu)))
		return fail(sq, MPA_ERR_LENGTH, 0, HCA_EVENT_QP_FATAL);
	if (sq->wait_start && on_first(sq, p, ulpdu))
		return true;
	if ((c->rdmap & RDMAP_VERSION_MASK) != RDMAP_VERSION)
		return fail(sq, RDMAP_ERR_VERSION, 0, HCA_EVENT_QP_FATAL);
	sq->open.opcode = c->rdmap & RDMAP_OPCODE_MASK;
	sq->open.ddp = c->ddp;
	return c->ddp & DDP_TAGGED ? on_tagged(sq, p, ulpdu + IWARP_LEN_SIZE)
				   : on_untagged(sq, p, ulpdu + IWARP_LEN_SIZE);
}

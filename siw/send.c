// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sending: requests and READ responses become FPDUs in the stream's buffer, into which the payload is read at once; a SEND or
 * WRITE is complete when TCP has taken its last byte (RFC 5040, 5.5), a READ when its data is in place. Completions come in order.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "siw/internal.h"

static struct siw_wqe *wqe_at(const struct siw_qp *sq, u32 i)
{
	return &sq->wqes[i % SIW_WQES];
}

static bool is_local(const struct siw_wqe *w)
{
	return w->opcode == HCA_WR_LOCAL_INV || w->opcode == HCA_WR_BIND_MW || w->opcode >= HCA_WR_REG_MR;
}

static bool is_send(const struct siw_wqe *w)
{
	return w->opcode == HCA_WR_SEND || w->opcode == HCA_WR_SEND_WITH_INV;
}

/* Completing */

static const u8 wc_opcodes[] = {
	[HCA_WR_RDMA_WRITE] = HCA_WC_RDMA_WRITE, [HCA_WR_SEND] = HCA_WC_SEND,
	[HCA_WR_RDMA_READ] = HCA_WC_RDMA_READ,   [HCA_WR_LOCAL_INV] = HCA_WC_LOCAL_INV,
	[HCA_WR_BIND_MW] = HCA_WC_BIND_MW,       [HCA_WR_SEND_WITH_INV] = HCA_WC_SEND,
	[HCA_WR_REG_MR] = HCA_WC_REG_MR,         [HCA_WR_NOP] = HCA_WC_SEND,
};

static void complete(struct siw_qp *sq, struct siw_wqe *w, u8 status)
{
	struct hca_cqe cqe = { .token = w->token, .status = status };
	bool tell = status != HCA_WC_SUCCESS || sq->qp->sq_sig_all || w->flags & HCA_SEND_SIGNALED;

	if (w->opcode < ARRAY_SIZE(wc_opcodes))
		cqe.opcode = wc_opcodes[w->opcode];
	if (w->opcode == HCA_WR_RDMA_READ)
		cqe.byte_len = w->length;
	free(w->held);
	w->held = NULL;
	sq->wq_tail++;
	hca_count(sq->qp->hca, sq->qp->attr.port, status == HCA_WC_SUCCESS ? HCA_CNT_RDMA_SENDS : HCA_CNT_SEND_ERR);
	hca_send_done(sq->qp);
	if (tell)
		hca_complete_send(sq->qp, &cqe);
}

void siw_send_complete(struct siw_qp *sq)
{
	while (sq->wq_tail != sq->wq_next) {
		struct siw_wqe *w = wqe_at(sq, sq->wq_tail);

		if (w->state == SIW_SENT && w->opcode != HCA_WR_RDMA_READ && w->end <= sq->sent)
			w->state = SIW_DONE;
		if (w->state != SIW_DONE)
			break;
		complete(sq, w, HCA_WC_SUCCESS);
	}
}

void siw_send_flush(struct siw_qp *sq)
{
	if (!sq->wqes)
		return;
	siw_send_complete(sq);
	while (sq->wq_tail != sq->wq_head) {
		struct siw_wqe *w = wqe_at(sq, sq->wq_tail);

		complete(sq, w, w->status ? w->status : HCA_WC_WR_FLUSH_ERR);
	}
	sq->wq_next = sq->wq_head;
	sq->reads_out = 0;
}

void siw_send_reset(struct siw_qp *sq)
{
	for (; sq->wqes && sq->wq_tail != sq->wq_head; sq->wq_tail++) {
		free(wqe_at(sq, sq->wq_tail)->held);
		wqe_at(sq, sq->wq_tail)->held = NULL;
	}
	sq->wq_tail = sq->wq_next = sq->wq_head = 0;
}

struct siw_wqe *siw_send_oldest_read(struct siw_qp *sq)
{
	u32 i;

	for (i = sq->wq_tail; i != sq->wq_next; i++)
		if (wqe_at(sq, i)->opcode == HCA_WR_RDMA_READ && wqe_at(sq, i)->state == SIW_SENT)
			return wqe_at(sq, i);
	return NULL;
}

/* Pulling */

static u8 check(const struct siw_wqe *w, const struct hca_send_wr *wr)
{
	u64 sum = 0;
	u32 i;

	if (w->opcode == HCA_WR_RDMA_WRITE_WITH_IMM || w->opcode == HCA_WR_SEND_WITH_IMM ||
	    w->opcode == HCA_WR_ATOMIC_CMP_AND_SWP || w->opcode == HCA_WR_ATOMIC_FETCH_AND_ADD)
		return HCA_WC_LOC_QP_OP_ERR; /* RDMAP has none of these */
	if (w->opcode == HCA_WR_RDMA_READ && w->num_sge > 1)
		return HCA_WC_LOC_QP_OP_ERR; /* one sink (RFC 5040, 4.4): max_sge_rd is 1 */
	for (i = 0; i < w->num_sge; i++)
		sum += w->sge[i].length;
	return sum > 1u << 31 ? HCA_WC_LOC_LEN_ERR : HCA_WC_SUCCESS;
}

static void wqe_fill(struct siw_wqe *w, const struct hca_send_wr *wr)
{
	u32 i;

	*w = (struct siw_wqe){ .token = wr->token,
			       .remote_addr = wr->remote_addr,
			       .opcode = wr->opcode,
			       .flags = wr->flags,
			       .imm = wr->imm,
			       .rkey = wr->rkey,
			       .num_sge = wr->flags & HCA_SEND_INLINE ? 0 : wr->num_sge };
	memcpy(w->sge, wr->sge, w->num_sge * sizeof(w->sge[0]));
	w->status = check(w, wr);
	for (i = 0; !w->status && i < w->num_sge; i++)
		w->length += w->sge[i].length;
	if (wr->flags & HCA_SEND_INLINE)
		w->length = wr->inline_len;
	if (w->status || !(is_local(w) || wr->flags & HCA_SEND_INLINE))
		return;
	w->held = malloc(sizeof(*w->held));
	if (w->held)
		*w->held = *wr;
	else
		w->status = HCA_WC_LOC_QP_OP_ERR;
}

static bool pull(struct siw_qp *sq)
{
	static struct hca_send_wr wr;
	struct siw_wqe *w;
	int got;

	if (sq->wq_head - sq->wq_tail == SIW_WQES)
		return false;
	got = hca_next_send(sq->qp, &wr);
	if (!got)
		return false;
	w = wqe_at(sq, sq->wq_head++);
	if (got < 0)
		*w = (struct siw_wqe){ .token = wr.token, .opcode = HCA_WR_SEND, .status = HCA_WC_LOC_QP_OP_ERR };
	else
		wqe_fill(w, &wr);
	return true;
}

/* Building */

static bool has_room(const struct siw_qp *sq)
{
	return SIW_OUT - sq->out_at - sq->out_len >= SIW_FPDU_OUT;
}

/*
 * Room for an FPDU of @hdr bytes of headers and @payload more; the caller fills both. Its markers' room is in front until
 * it is sealed, and begins with the length, too.
 */
static u8 *fpdu_start(struct siw_qp *sq, u8 ddp, u8 opcode, u32 hdr, u32 payload)
{
	u32 ulpdu = hdr - IWARP_LEN_SIZE + payload, len = iwarp_fpdu_len(ulpdu),
	    markers = sq->terms.mark_out ? siw_marker_bytes(sq->built, len) : 0;
	u8 *room = sq->out + sq->out_at + sq->out_len, *at = room + markers;
	struct iwarp_ctrl *c = (struct iwarp_ctrl *)at;

	memset(at, 0, hdr);
	memset(at + hdr + payload, 0, iwarp_pad(ulpdu));
	c->len = cpu_to_be16((u16)ulpdu);
	c->ddp = ddp | DDP_VERSION;
	c->rdmap = RDMAP_VERSION | opcode;
	((struct iwarp_ctrl *)room)->len = c->len;
	sq->out_len += len + markers;
	sq->built += len + markers;
	siw_count(sq, SIW_CTR_FPDU_SENT);
	return at;
}

/* The payload is there: markers into all FPDUs from @from on, and CRCs over both. */
static void seal(struct siw_qp *sq, u32 from)
{
	u8 *p = sq->out + from, *end = sq->out + sq->out_at + sq->out_len;

	while (p < end) {
		u32 len = iwarp_fpdu_len(be16_to_cpu(((struct iwarp_ctrl *)p)->len)), body;
		u64 pos = sq->built - (u64)(end - p);
		__le32 crc;

		if (sq->terms.mark_out) {
			siw_marker_insert(p, pos, len);
			len += siw_marker_bytes(pos, len);
		}
		body = len - IWARP_CRC_SIZE;
		crc = iwarp_crc(p, body, sq->terms.crc);
		memcpy(p + body, &crc, sizeof(crc));
		siw_tap(sq->siw, &sq->local, &sq->remote, &sq->seq, p, len, true);
		p += len;
	}
}

static u8 send_opcode(const struct siw_wqe *w)
{
	bool se = w->flags & HCA_SEND_SOLICITED;

	if (w->opcode == HCA_WR_SEND_WITH_INV)
		return se ? RDMAP_SEND_SE_INV : RDMAP_SEND_INV;
	return se ? RDMAP_SEND_SE : RDMAP_SEND;
}

static u8 *put_send(struct siw_qp *sq, const struct siw_wqe *w, u32 len, bool last)
{
	u8 *at = fpdu_start(sq, last ? DDP_LAST : 0, send_opcode(w), sizeof(struct iwarp_untagged), len);
	struct iwarp_untagged *u = (struct iwarp_untagged *)at;

	u->inv_stag = cpu_to_be32(w->opcode == HCA_WR_SEND_WITH_INV ? w->imm : 0);
	u->qn = cpu_to_be32(DDP_QN_SEND);
	u->msn = cpu_to_be32(sq->msn_out[DDP_QN_SEND]);
	u->mo = cpu_to_be32(w->done);
	if (last)
		sq->msn_out[DDP_QN_SEND]++;
	return at + sizeof(*u);
}

static u8 *put_tagged(struct siw_qp *sq, u8 opcode, u32 stag, u64 to, u32 len, bool last)
{
	u8 *at = fpdu_start(sq, DDP_TAGGED | (last ? DDP_LAST : 0), opcode, sizeof(struct iwarp_tagged), len);
	struct iwarp_tagged *t = (struct iwarp_tagged *)at;

	t->stag = cpu_to_be32(stag);
	t->to = cpu_to_be64(to);
	return at + sizeof(*t);
}

static void put_read(struct siw_qp *sq, const struct siw_wqe *w)
{
	struct iwarp_read *r =
		(struct iwarp_read *)fpdu_start(sq, DDP_LAST, RDMAP_READ_REQUEST, sizeof(struct iwarp_read), 0);

	r->u.qn = cpu_to_be32(DDP_QN_READ);
	r->u.msn = cpu_to_be32(sq->msn_out[DDP_QN_READ]++);
	r->sink_stag = cpu_to_be32(w->num_sge ? w->sge[0].lkey : 0);
	r->sink_to = cpu_to_be64(w->num_sge ? w->sge[0].addr : 0);
	r->size = cpu_to_be32(w->length);
	r->source_stag = cpu_to_be32(w->rkey);
	r->source_to = cpu_to_be64(w->remote_addr);
}

/* The next FPDU of a SEND or WRITE. */
static void build_data(struct siw_qp *sq, struct siw_wqe *w)
{
	u32 len = min(SIW_SEGMENT, w->length - w->done);
	bool last = w->done + len == w->length;
	u32 out_len = sq->out_len;
	u64 built = sq->built;
	u8 *at = is_send(w) ? put_send(sq, w, len, last)
			    : put_tagged(sq, RDMAP_WRITE, w->rkey, w->remote_addr + w->done, len, last);

	if (w->held) {
		memcpy(at, w->held->inline_data + w->done, len);
	} else if (siw_sges_move(sq, w->sge, w->num_sge, w->done, len, 0, at, false)) {
		w->status = HCA_WC_LOC_PROT_ERR;
		sq->out_len = out_len; /* what was sent of it stays a message without an end */
		sq->built = built;
		return;
	}
	w->done += len;
	w->state = last ? SIW_SENT : SIW_SENDING;
	w->end = sq->built;
	sq->wq_next += last;
}

static void build_read(struct siw_qp *sq, struct siw_wqe *w)
{
	struct hca_span span[HCA_MAX_SPANS];

	if (w->length &&
	    hca_key_local(sq->qp, w->sge[0].lkey, w->sge[0].addr, w->length, HCA_ACCESS_LOCAL_WRITE, span) < 0) {
		w->status = HCA_WC_LOC_PROT_ERR;
		return;
	}
	put_read(sq, w);
	sq->reads_out++;
	w->state = SIW_SENT;
	sq->wq_next++;
}

static void run_local(struct siw_qp *sq, struct siw_wqe *w)
{
	int err = 0;

	if (w->opcode == HCA_WR_LOCAL_INV)
		err = hca_key_invalidate(sq->qp, w->held->rkey, false);
	else if (w->opcode == HCA_WR_BIND_MW)
		err = hca_mw_bind(sq->qp, w->held);
	else if (w->opcode == HCA_WR_REG_MR)
		err = hca_mr_fast_reg(sq->qp, w->held);
	if (err) {
		w->status = w->opcode == HCA_WR_BIND_MW ? HCA_WC_MW_BIND_ERR : HCA_WC_LOC_QP_OP_ERR;
		return;
	}
	w->state = SIW_DONE;
	sq->wq_next++;
}

/* True: something was built, or failed by its status. */
static bool build_request(struct siw_qp *sq)
{
	struct siw_wqe *w;

	if (sq->wait_start || (sq->wq_next == sq->wq_head && !pull(sq)))
		return false;
	w = wqe_at(sq, sq->wq_next);
	if (w->status)
		return true;
	if (w->flags & HCA_SEND_FENCE && !w->done && sq->reads_out)
		return false;
	if (w->opcode == HCA_WR_RDMA_READ) {
		if (sq->reads_out >= max(sq->terms.ord, (u16)1))
			return false;
		build_read(sq, w);
	} else if (is_local(w)) {
		run_local(sq, w);
	} else {
		build_data(sq, w);
	}
	return true;
}

/* The next FPDU of the READ that the peer asked for first. False: the memory is not there any more. */
static bool build_response(struct siw_qp *sq)
{
	struct siw_read *r = &sq->reads[sq->rd_tail % SIW_READS];
	u32 len = min(SIW_SEGMENT, r->length - r->done);
	bool last = r->done + len == r->length;
	struct hca_sge source = { r->source_to + r->done, len, r->source_stag };
	u32 out_len = sq->out_len;
	u64 built = sq->built;
	u8 *at = put_tagged(sq, RDMAP_READ_RESPONSE, r->sink_stag, r->sink_to + r->done, len, last);

	if (siw_move(sq, &source, true, HCA_ACCESS_REMOTE_READ, at, false)) {
		sq->out_len = out_len;
		sq->built = built;
		return false;
	}
	r->done += len;
	sq->rd_tail += last;
	return true;
}

/* Fills the buffer. False: the stream is gone. */
static bool build(struct siw_qp *sq)
{
	u32 from = sq->out_at + sq->out_len;
	bool more = true, gone = false;

	while (more && !gone && has_room(sq)) {
		more = false;
		if (sq->rd_tail != sq->rd_head) {
			more = build_response(sq);
			gone = !more;
		}
		if (!gone && has_room(sq) && build_request(sq)) {
			more = true;
			if (sq->wq_next != sq->wq_head && wqe_at(sq, sq->wq_next)->status)
				break;
		}
	}
	hca_batch_run(sq->siw->rd);
	if (gone) {
		siw_terminate(sq, RDMAP_ERR_STAG, HCA_EVENT_QP_ACCESS_ERR);
		return false;
	}
	if (sq->dma_failed) { /* of whom is not known: none of this round leaves */
		u32 i;

		for (i = sq->wq_tail; i != sq->wq_next; i++)
			if (wqe_at(sq, i)->end > sq->sent && !is_local(wqe_at(sq, i)))
				wqe_at(sq, i)->status = HCA_WC_LOC_PROT_ERR;
		sq->out_len = from - sq->out_at;
		siw_terminate(sq, RDMAP_ERR_CATASTROPHIC, HCA_EVENT_QP_FATAL);
		return false;
	}
	seal(sq, from);
	return true;
}

void siw_send_rtr(struct siw_qp *sq)
{
	const struct mpa_terms *t = &sq->terms;
	u32 from = sq->out_at + sq->out_len;

	if (t->rtr_zero) {
		put_send(sq, &(struct siw_wqe){ .opcode = HCA_WR_SEND }, 0, true);
	} else if (t->rtr_write) {
		put_tagged(sq, RDMAP_WRITE, 0, 0, 0, true);
	} else if (t->rtr_read) {
		put_read(sq, &(struct siw_wqe){ .opcode = HCA_WR_RDMA_READ });
		sq->rtr_out = true;
	}
	seal(sq, from);
}

/* Gives TCP what it takes. False: the stream is gone. */
static bool push(struct siw_qp *sq)
{
	while (sq->out_len) {
		ssize_t n = send(sq->fd.fd, sq->out + sq->out_at, sq->out_len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			siw_qp_close(sq, -errno, HCA_EVENT_QP_FATAL);
			return false;
		}
		sq->out_at += (u32)n;
		sq->out_len -= (u32)n;
		sq->sent += (u64)n;
	}
	if (!sq->out_len)
		sq->out_at = 0;
	if (sq->want_out != (sq->out_len > 0)) {
		sq->want_out = sq->out_len > 0;
		loop_fd_mod(&sq->fd, EPOLLIN | (sq->want_out ? EPOLLOUT : 0));
	}
	return true;
}

/* The request that cannot be sent fails when those before it are done, and with it the queue pair. */
static bool head_failed(struct siw_qp *sq)
{
	struct siw_wqe *w = sq->wq_tail != sq->wq_head ? wqe_at(sq, sq->wq_tail) : NULL;

	if (!w || !w->status)
		return false;
	siw_terminate(sq, RDMAP_ERR_CATASTROPHIC, -1);
	return true;
}

bool siw_send_run(struct siw_qp *sq)
{
	u32 round;

	for (round = 0; round < SIW_ROUNDS && !sq->hold; round++) {
		u64 built = sq->built, sent = sq->sent;

		if (sq->fd.fd < 0 || !build(sq) || !push(sq))
			return false;
		siw_send_complete(sq);
		if (head_failed(sq))
			return false;
		if (sq->want_out || (built == sq->built && sent == sq->sent))
			return false;
	}
	return !sq->hold;
}

void siw_terminate(struct siw_qp *sq, enum iwarp_error err, int event)
{
	if (sq->fd.fd >= 0 && push(sq) && !sq->out_len) { /* else it would stand in the middle of another FPDU */
		struct iwarp_terminate *t =
			(struct iwarp_terminate *)fpdu_start(sq, DDP_LAST, RDMAP_TERMINATE, sizeof(*t), 0);

		t->u.qn = cpu_to_be32(DDP_QN_TERMINATE);
		t->u.msn = cpu_to_be32(sq->msn_out[DDP_QN_TERMINATE]);
		t->layer_type = (u8)(err >> 8);
		t->code = (u8)err;
		seal(sq, sq->out_at);
		if (push(sq) && !sq->out_len)
			siw_count(sq, SIW_CTR_TERMINATE_SENT);
	}
	siw_qp_close(sq, -EPROTO, event);
}

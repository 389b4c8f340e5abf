// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * iWARP receive and direct data placement: checks each FPDU by MPA, DDP and RDMAP (RFC 5044, 5041, 5040), then writes
 * its payload to memory. For an invalid FPDU it sends a Terminate with layer and error (RFC 5040, 7), and closes this
 * connection only. An FPDU without CRC and markers may be checked by its headers while its payload is still arriving:
 * it has one sink, whose key is checked again for each part.
 */
#include <errno.h>

#include "siw/siw_internal.h"

/* Error counter of the layer. */
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

/* @status: of the pulled receive request; 0: it does not fail. */
static bool stream_fail(struct siw_qp *sq, enum iwarp_error err, u8 status, int event)
{
	siw_count(sq, counter_of(err));
	siw_receive_commit(sq);
	if (sq->fd.fd < 0)
		return false;
	if (sq->recv_pulled && status) {
		struct hca_cqe cqe = { .token = sq->recv.token, .status = status, .opcode = HCA_WC_RECV };

		sq->recv_pulled = false;
		sq->comps[sq->ncomps++] = cqe; /* there is room for one more than SIW_COMPS */
		siw_receive_commit(sq);
	}
	siw_terminate(sq, err, &sq->fpdu.segment, event);
	return false;
}

bool siw_receive_fail(struct siw_qp *sq, enum iwarp_error err)
{
	return stream_fail(sq, err, 0, HCA_EVENT_QP_FATAL);
}

bool siw_receive_write_failed(struct siw_qp *sq)
{
	/* its receive, if that has not been completed: then no later completion is queued */
	bool held = sq->failed.kind == SIW_WRITE_RECV && sq->failed_incomplete;

	return stream_fail(sq, RDMAP_ERR_CATASTROPHIC, held ? HCA_WC_LOC_PROT_ERR : 0, HCA_EVENT_QP_FATAL);
}

void siw_receive_commit(struct siw_qp *sq)
{
	u64 moves = hca_ctx_moves(sq->qp->ctx);
	u32 i, n = sq->ncomps;

	hca_batch_run(sq->siw->wr);
	if (hca_ctx_moves(sq->qp->ctx) != moves ||
	    (unlikely(sq->inv_recvd) && siw_pending(sq, hca_ctx_moves(sq->qp->ctx)))) {
		sq->write_due = hca_ctx_moves(sq->qp->ctx);
		siw_watch(sq);
	}
	sq->inv_recvd = false;
	if (siw_pending(sq, sq->write_due)) {
		siw_stall(sq);
		return;
	}
	sq->write_due = 0;
	sq->ncomps = 0;
	sq->failed_incomplete |= sq->write_failed && sq->failed.ncomps == n;
	for (i = 0; i < n; i++) {
		if (unlikely(sq->write_failed) && i >= sq->failed.ncomps)
			sq->comps[i].status = i == sq->failed.ncomps && sq->failed.kind == SIW_WRITE_RECV
						      ? HCA_WC_LOC_PROT_ERR
						      : HCA_WC_WR_FLUSH_ERR;
		hca_recv_done(sq->qp);
		hca_complete_recv(sq->qp, &sq->comps[i]);
	}
	if (sq->wq.wqes)
		siw_send_complete(sq);
}

void siw_receive_flush(struct siw_qp *sq)
{
	struct hca_cqe cqe = { .token = sq->recv.token, .status = HCA_WC_WR_FLUSH_ERR, .opcode = HCA_WC_RECV };

	if (!sq->recv_pulled)
		return;
	sq->recv_pulled = false;
	hca_recv_done(sq->qp);
	hca_complete_recv(sq->qp, &cqe);
}

/* SEND */

/* False: none is posted, or the pulled one is malformed. */
static bool recv_pull(struct siw_qp *sq)
{
	int got;

	if (sq->recv_pulled)
		return true;
	got = hca_next_recv(sq->qp, &sq->recv);
	sq->recv_pulled = got;
	sq->recv_off = 0;
	return got > 0;
}

static bool send_finish(struct siw_qp *sq)
{
	u8 opcode = sq->fpdu.opcode;
	bool inv = opcode == RDMAP_SEND_INV || opcode == RDMAP_SEND_SE_INV;
	struct hca_cqe cqe = { .token = sq->recv.token,
			       .opcode = HCA_WC_RECV,
			       .byte_len = sq->recv_off,
			       .solicited = opcode == RDMAP_SEND_SE || opcode == RDMAP_SEND_SE_INV };

	if (inv) {
		cqe.flags = HCA_WC_WITH_INVALIDATE;
		cqe.imm = sq->fpdu.inv_stag;
		if (hca_key_invalidate(sq->qp, cqe.imm, true))
			return stream_fail(sq, RDMAP_ERR_CANNOT_INVALIDATE, HCA_WC_LOC_ACCESS_ERR,
					   HCA_EVENT_QP_ACCESS_ERR);
		sq->inv_recvd = true;
	}
	sq->msn_in[DDP_QN_SEND]++;
	sq->recv_pulled = false;
	hca_qp_count(sq->qp, HCA_CNT_RDMA_RECVS);
	sq->comps[sq->ncomps++] = cqe; /* waits until the data is in memory; siw_input_bytes() ensures room */
	return true;
}

/* Direct data placement */

/* The sink of the FPDU's payload, and the offset in it. */
static struct hca_mem payload_sink(struct siw_qp *sq, u32 *off)
{
	const struct siw_wqe *w;

	*off = 0;
	if (sq->fpdu.opcode == RDMAP_WRITE)
		return (struct hca_mem){ sq->qp, &sq->fpdu.sink, 1, hca_key_remote, HCA_ACCESS_REMOTE_WRITE };
	if (sq->fpdu.opcode != RDMAP_READ_RESPONSE) {
		*off = sq->recv_off;
		return (struct hca_mem){ sq->qp, sq->recv.sge, sq->recv.num_sge, hca_key_recv, HCA_ACCESS_LOCAL_WRITE };
	}
	w = siw_send_oldest_read(sq);
	*off = w->placed;
	return (struct hca_mem){ sq->qp, w->wr.sge, w->wr.num_sge, hca_key_local, HCA_ACCESS_LOCAL_WRITE };
}

bool siw_receive_key_error(struct siw_qp *sq, int err)
{
	if (sq->fpdu.opcode == RDMAP_READ_RESPONSE) {
		siw_send_oldest_read(sq)->wr.status = HCA_WC_LOC_PROT_ERR;
		return stream_fail(sq, DDP_ERR_T_STAG, 0, HCA_EVENT_QP_FATAL);
	}
	if (sq->fpdu.opcode != RDMAP_WRITE)
		return err == HCA_KEY_BOUNDS
			       ? stream_fail(sq, DDP_ERR_U_TOO_LONG, HCA_WC_LOC_LEN_ERR, HCA_EVENT_QP_REQ_ERR)
			       : stream_fail(sq, RDMAP_ERR_CATASTROPHIC, HCA_WC_LOC_PROT_ERR, HCA_EVENT_QP_FATAL);
	hca_qp_count(sq->qp, HCA_CNT_REMOTE_ACCESS_ERR);
	return stream_fail(sq,
			   err == HCA_KEY_ACCESS   ? RDMAP_ERR_ACCESS
			   : err == HCA_KEY_BOUNDS ? DDP_ERR_T_BOUNDS
			   : err == HCA_KEY_PD     ? DDP_ERR_T_STAG_STREAM
						   : DDP_ERR_T_STAG,
			   0, HCA_EVENT_QP_ACCESS_ERR);
}

static bool payload_discarded(const struct siw_qp *sq)
{
	return sq->fpdu.opcode == RDMAP_WRITE && !(sq->qp->attr.access & HCA_ACCESS_REMOTE_WRITE);
}

bool siw_receive_payload(struct siw_qp *sq, const u8 *p, u32 len)
{
	u32 off;
	struct hca_mem mem = payload_sink(sq, &off);
	struct siw_write w = { .kind = SIW_WRITE_REMOTE, .ncomps = (u8)sq->ncomps };
	int err;

	if (sq->fpdu.opcode == RDMAP_READ_RESPONSE) {
		w.kind = SIW_WRITE_READ;
		w.slot = (u16)(siw_send_oldest_read(sq) - (struct siw_wqe *)sq->wq.wqes);
	} else if (sq->fpdu.opcode != RDMAP_WRITE) {
		w.kind = SIW_WRITE_RECV;
	}
	err = payload_discarded(sq) ? HCA_KEY_ACCESS : siw_mem_write(sq, &mem, off + sq->fpdu.placed, len, p, &w);

	if (err)
		return siw_receive_key_error(sq, err);
	sq->fpdu.placed += len;
	return true;
}

int siw_receive_sink(struct siw_qp *sq, struct iovec *iov, u32 max)
{
	u32 off;
	struct hca_mem mem = payload_sink(sq, &off);
	int n = payload_discarded(sq)
			? HCA_KEY_ACCESS
			: hca_mem_direct(&mem, off + sq->fpdu.placed, sq->fpdu.payload - sq->fpdu.placed, iov, max);

	return n < 0 ? (int)siw_receive_key_error(sq, n) - 1 : n;
}

/* READ responses arrive in order, each FPDU at the end of the one before. */
static void read_response_finish(struct siw_qp *sq)
{
	struct siw_wqe *w = siw_send_oldest_read(sq);

	w->placed += sq->fpdu.payload;
	if (!(sq->fpdu.ddp & DDP_LAST))
		return;
	w->wr.state = HCA_WQE_DONE;
	sq->pos.reads_out--;
	siw_kick(sq); /* a fence, or one more READ, may be allowed now */
}

bool siw_receive_finish(struct siw_qp *sq)
{
	sq->fpdu.partial = false;
	if (sq->fpdu.opcode == RDMAP_WRITE) {
		if (sq->fpdu.ddp & DDP_LAST)
			hca_qp_count(sq->qp, HCA_CNT_WRITE_REQUESTS);
		return true;
	}
	if (sq->fpdu.opcode == RDMAP_READ_RESPONSE) {
		read_response_finish(sq);
		return true;
	}
	sq->recv_off += sq->fpdu.payload;
	return sq->fpdu.ddp & DDP_LAST ? send_finish(sq) : true;
}

/* The headers are valid, @p is the part of the payload received so far. */
static bool payload_begin(struct siw_qp *sq, const u8 *p, u32 payload)
{
	struct siw_rx_fpdu *o = &sq->fpdu;
	u32 off;
	struct hca_mem mem;
	int err;

	o->payload = payload;
	o->placed = 0;
	if (!payload)
		return siw_receive_finish(sq);
	if (o->buffered >= payload)
		return siw_receive_payload(sq, p, payload) && siw_receive_finish(sq);
	mem = payload_sink(sq, &off);
	err = payload_discarded(sq) ? HCA_KEY_ACCESS : hca_mem_check(&mem, off, payload);
	if (err)
		return siw_receive_key_error(sq, err);
	o->partial = true;
	return !o->buffered || siw_receive_payload(sq, p, o->buffered);
}

static bool send_receive(struct siw_qp *sq, const u8 *p, u32 len)
{
	const struct iwarp_untagged *u = &iwarp_hdr(p)->untagged;

	if (!recv_pull(sq))
		return stream_fail(sq, sq->recv_pulled ? RDMAP_ERR_CATASTROPHIC : DDP_ERR_U_NO_BUFFER,
				   HCA_WC_LOC_QP_OP_ERR, HCA_EVENT_QP_FATAL);
	if (be32_to_cpu(u->mo) != sq->recv_off)
		return stream_fail(sq, DDP_ERR_U_MO, HCA_WC_LOC_QP_OP_ERR, HCA_EVENT_QP_FATAL);
	sq->fpdu.inv_stag = be32_to_cpu(u->inv_stag);
	return payload_begin(sq, p + sizeof(*u), len - sizeof(*u));
}

/* Remote protection errors of a READ's source (RFC 5040, 4.8). */
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

static int read_source_check(struct siw_qp *sq, const struct siw_read *r)
{
	struct hca_span span[HCA_MAX_SPANS];

	if (!r->length)
		return 0;
	if (!(sq->qp->attr.access & HCA_ACCESS_REMOTE_READ))
		return HCA_KEY_ACCESS;
	return min(hca_key_remote(sq->qp, r->source_stag, r->source_to, r->length, HCA_ACCESS_REMOTE_READ, span), 0);
}

/* READ request: responses are sent in order. */
static bool read_request_receive(struct siw_qp *sq, const u8 *p, u32 len)
{
	const struct iwarp_read *r = &iwarp_hdr(p)->read;
	struct siw_read *read;
	int err;

	if (len != sizeof(*r) || !(r->u.c.ddp & DDP_LAST) || r->u.mo)
		return stream_fail(sq, DDP_ERR_U_MO, 0, HCA_EVENT_QP_REQ_ERR);
	if (sq->rd_head - sq->pos.rd_tail >= min(max((u32)sq->terms.ird, (u32)sq->terms.rtr_read), (u32)SIW_READS))
		return stream_fail(sq, DDP_ERR_U_NO_BUFFER, 0, HCA_EVENT_QP_REQ_ERR);
	read = &sq->reads[sq->rd_head % SIW_READS];
	*read = (struct siw_read){ .sink_stag = be32_to_cpu(r->sink_stag),
				   .source_stag = be32_to_cpu(r->source_stag),
				   .length = be32_to_cpu(r->size),
				   .sink_to = be64_to_cpu(r->sink_to),
				   .source_to = be64_to_cpu(r->source_to) };
	err = read_source_check(sq, read);
	if (err) {
		hca_qp_count(sq->qp, HCA_CNT_REMOTE_ACCESS_ERR);
		return stream_fail(sq, protection_error(err), 0, HCA_EVENT_QP_ACCESS_ERR);
	}
	hca_qp_count(sq->qp, HCA_CNT_READ_REQUESTS);
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

/* Terminate: the oldest unfinished request fails with the received error, the others are flushed. */
static bool terminate_receive(struct siw_qp *sq, const u8 *p, u32 len)
{
	const struct iwarp_terminate *t = &iwarp_hdr(p)->terminate;
	u8 status = HCA_WC_REM_OP_ERR;
	struct hca_wqe *w;
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
	w = siw_send_oldest(sq);
	if (w)
		w->status = status;
	siw_qp_close(sq, -ECONNABORTED, HCA_EVENT_QP_FATAL);
	return false;
}

static bool untagged_receive(struct siw_qp *sq, const u8 *p, u32 len)
{
	static const u8 queues[RDMAP_OPCODES] = {
		[RDMAP_READ_REQUEST] = DDP_QN_READ, [RDMAP_TERMINATE] = DDP_QN_TERMINATE
	};
	const struct iwarp_untagged *u = &iwarp_hdr(p)->untagged;
	u8 opcode = u->c.rdmap & RDMAP_OPCODE_MASK;
	u32 qn;

	if (len < sizeof(*u))
		return stream_fail(sq, MPA_ERR_LENGTH, 0, HCA_EVENT_QP_FATAL);
	if ((u->c.ddp & DDP_VERSION_MASK) != DDP_VERSION)
		return stream_fail(sq, DDP_ERR_U_VERSION, 0, HCA_EVENT_QP_FATAL);
	qn = be32_to_cpu(u->qn);
	if (qn >= DDP_QUEUES)
		return stream_fail(sq, DDP_ERR_U_QN, 0, HCA_EVENT_QP_FATAL);
	if (be32_to_cpu(u->msn) != sq->msn_in[qn])
		return stream_fail(sq, DDP_ERR_U_MSN, 0, HCA_EVENT_QP_FATAL);
	if (opcode < RDMAP_READ_REQUEST || opcode == RDMAP_READ_RESPONSE || opcode > RDMAP_TERMINATE ||
	    queues[opcode] != qn)
		return stream_fail(sq, RDMAP_ERR_OPCODE, 0, HCA_EVENT_QP_FATAL);
	if (qn == DDP_QN_READ)
		return read_request_receive(sq, p, len);
	return qn == DDP_QN_SEND ? send_receive(sq, p, len) : terminate_receive(sq, p, len);
}

static bool read_response_receive(struct siw_qp *sq, const u8 *p, u32 payload)
{
	const struct iwarp_tagged *t = &iwarp_hdr(p)->tagged;
	struct siw_wqe *w = siw_send_oldest_read(sq);
	bool last = t->c.ddp & DDP_LAST;

	if (sq->rtr_out && !payload && last) {
		sq->rtr_out = false;
		return true;
	}
	if (!w || sq->rtr_out)
		return stream_fail(sq, RDMAP_ERR_OPCODE, 0, HCA_EVENT_QP_FATAL);
	if (w->wr.num_sge && be32_to_cpu(t->stag) != w->wr.sge[0].lkey)
		return stream_fail(sq, DDP_ERR_T_STAG, 0, HCA_EVENT_QP_FATAL);
	if (payload > w->wr.length - w->placed || last != (w->placed + payload == w->wr.length) ||
	    (w->wr.num_sge && be64_to_cpu(t->to) != w->wr.sge[0].addr + w->placed))
		return stream_fail(sq, DDP_ERR_T_BOUNDS, 0, HCA_EVENT_QP_FATAL);
	return payload_begin(sq, p + sizeof(*t), payload);
}

static bool tagged_receive(struct siw_qp *sq, const u8 *p, u32 len)
{
	const struct iwarp_tagged *t = &iwarp_hdr(p)->tagged;
	u8 opcode = t->c.rdmap & RDMAP_OPCODE_MASK;

	if (len < sizeof(*t))
		return stream_fail(sq, MPA_ERR_LENGTH, 0, HCA_EVENT_QP_FATAL);
	if ((t->c.ddp & DDP_VERSION_MASK) != DDP_VERSION)
		return stream_fail(sq, DDP_ERR_T_VERSION, 0, HCA_EVENT_QP_FATAL);
	if (opcode == RDMAP_WRITE) {
		sq->fpdu.sink = (struct hca_sge){ be64_to_cpu(t->to), len - sizeof(*t), be32_to_cpu(t->stag) };
		return payload_begin(sq, p + sizeof(*t), len - sizeof(*t));
	}
	if (opcode == RDMAP_READ_RESPONSE)
		return read_response_receive(sq, p, len - sizeof(*t));
	return stream_fail(sq, RDMAP_ERR_OPCODE, 0, HCA_EVENT_QP_FATAL);
}

/* RTR: an initiator's zero-length SEND consumes no receive; a zero-length FPDU is accepted, too. */
static bool is_rtr_zero(struct siw_qp *sq, const u8 *p, u32 ulpdu)
{
	const struct iwarp_untagged *u = &iwarp_hdr(p)->untagged;
	bool first = sq->terms.rtr_zero && !sq->terms.initiator && sq->msn_in[DDP_QN_SEND] == 1;

	if (!ulpdu)
		return first;
	if (!first || ulpdu + IWARP_LEN_SIZE != sizeof(*u) || u->c.ddp != (DDP_LAST | DDP_VERSION) ||
	    u->c.rdmap != (RDMAP_VERSION | RDMAP_SEND) || u->qn || be32_to_cpu(u->msn) != 1 || u->mo)
		return false;
	sq->msn_in[DDP_QN_SEND]++;
	return true;
}

/* The first FPDU of the peer. True: it was an RTR message, and needs no further processing. */
static bool first_fpdu_receive(struct siw_qp *sq, const u8 *p, u32 ulpdu)
{
	sq->wait_first_fpdu = false;
	siw_kick(sq);
	if (sq->started)
		sq->started(sq->closed_ctx);
	return is_rtr_zero(sq, p, ulpdu);
}

/* @len: bytes of length field and ULPDU. Headers that are not complete are none. */
static void segment_keep(struct siw_segment *s, const u8 *p, u32 len)
{
	const struct iwarp_ctrl *c = &iwarp_hdr(p)->ctrl;
	bool read = (c->rdmap & RDMAP_OPCODE_MASK) == RDMAP_READ_REQUEST && len >= sizeof(struct iwarp_read);
	u32 hdr = c->ddp & DDP_TAGGED ? sizeof(struct iwarp_tagged)
		  : read              ? sizeof(struct iwarp_read)
				      : sizeof(struct iwarp_untagged);

	s->len = len < hdr ? 0 : (u8)hdr;
	memcpy(s->hdr, p, s->len);
}

bool siw_receive_fpdu(struct siw_qp *sq, u8 *p, u32 len, u64 pos, u32 ulpdu)
{
	const struct iwarp_ctrl *c = &iwarp_hdr(p)->ctrl;
	u32 body = len - IWARP_CRC_SIZE;

	sq->fpdu.segment.len = 0;
	siw_count(sq, SIW_CTR_FPDU_RECEIVED);
	siw_capture(sq->siw, &sq->remote, &sq->local, &sq->seq, p, len, false);
	if (sq->terms.crc) {
		__le32 crc = iwarp_crc(p, body, true);

		if (memcmp(&crc, p + body, sizeof(crc)))
			return stream_fail(sq, MPA_ERR_CRC, 0, HCA_EVENT_QP_FATAL);
	}
	if (sq->terms.mark_in && !siw_marker_remove(p, pos, iwarp_fpdu_len(ulpdu)))
		return stream_fail(sq, MPA_ERR_LENGTH, 0, HCA_EVENT_QP_FATAL);
	if (sq->wait_first_fpdu && first_fpdu_receive(sq, p, ulpdu))
		return true;
	segment_keep(&sq->fpdu.segment, p, ulpdu + IWARP_LEN_SIZE);
	if ((c->rdmap & RDMAP_VERSION_MASK) != RDMAP_VERSION)
		return stream_fail(sq, RDMAP_ERR_VERSION, 0, HCA_EVENT_QP_FATAL);
	sq->fpdu.opcode = c->rdmap & RDMAP_OPCODE_MASK;
	sq->fpdu.ddp = c->ddp;
	return c->ddp & DDP_TAGGED ? tagged_receive(sq, p, ulpdu + IWARP_LEN_SIZE)
				   : untagged_receive(sq, p, ulpdu + IWARP_LEN_SIZE);
}

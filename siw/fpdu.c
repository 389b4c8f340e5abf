// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sent FPDUs (RFC 5044) with their DDP segments and RDMAP messages (RFC 5041, 5040), in the buffer of the stream. */
#include "siw/siw_internal.h"

u8 *siw_fpdu_start(struct siw_qp *sq, u8 ddp, u8 opcode, u32 hdr, u32 payload, bool direct)
{
	u32 ulpdu = hdr - IWARP_LEN_SIZE + payload, len = iwarp_fpdu_len(ulpdu), here = direct ? 0 : payload,
	    markers = sq->terms.mark_out ? siw_marker_bytes(sq->pos.built, len) : 0;
	u8 *room = sq->out + sq->out_at + sq->out_len, *at = room + markers;
	struct iwarp_ctrl *c = &iwarp_hdr(at)->ctrl;

	memset(at, 0, hdr);
	memset(at + hdr + here, 0, iwarp_pad(ulpdu) + IWARP_CRC_SIZE);
	c->len = cpu_to_be16((u16)ulpdu);
	c->ddp = ddp | DDP_VERSION;
	c->rdmap = RDMAP_VERSION | opcode;
	iwarp_hdr(room)->ctrl.len = c->len;
	sq->out_len += len - payload + here + markers;
	sq->pos.built += len + markers;
	sq->pos.fpdus++;
	siw_count(sq, SIW_CTR_FPDU_SENT);
	return at;
}

void siw_fpdus_seal(struct siw_qp *sq, u32 from)
{
	u8 *p = sq->out + from, *end = sq->out + sq->out_at + sq->out_len;

	if (siw_may_split(sq) && !sq->terms.mark_out)
		return;
	while (p < end) {
		u32 len = iwarp_fpdu_len(be16_to_cpu(iwarp_hdr(p)->ctrl.len)), body;
		u64 pos = sq->pos.built - (u64)(end - p);
		__le32 crc;

		if (sq->terms.mark_out) {
			siw_marker_insert(p, pos, len);
			len += siw_marker_bytes(pos, len);
		}
		body = len - IWARP_CRC_SIZE;
		crc = iwarp_crc(p, body, sq->terms.crc);
		memcpy(p + body, &crc, sizeof(crc));
		if (unlikely(!fault_set_empty(&sq->siw->faults)))
			len = siw_fault_sent(sq, len);
		siw_capture(sq->siw, &sq->local, &sq->remote, &sq->seq, p, len, true);
		p += len;
		if (unlikely(sq->cut)) {
			sq->out_len = (u32)(p - sq->out) - sq->out_at;
			return;
		}
	}
}

static u8 send_opcode(const struct siw_wqe *w)
{
	bool se = w->wr.flags & HCA_SEND_SOLICITED;

	if (w->wr.opcode == HCA_WR_SEND_WITH_INV)
		return se ? RDMAP_SEND_SE_INV : RDMAP_SEND_INV;
	return se ? RDMAP_SEND_SE : RDMAP_SEND;
}

u8 *siw_fpdu_send(struct siw_qp *sq, const struct siw_wqe *w, u32 mo, u32 len, bool last, bool direct)
{
	u8 *at = siw_fpdu_start(sq, last ? DDP_LAST : 0, send_opcode(w), sizeof(struct iwarp_untagged), len, direct);
	struct iwarp_untagged *u = &iwarp_hdr(at)->untagged;

	u->inv_stag = cpu_to_be32(w->wr.opcode == HCA_WR_SEND_WITH_INV ? w->wr.imm : 0);
	u->qn = cpu_to_be32(DDP_QN_SEND);
	u->msn = cpu_to_be32(sq->pos.msn[DDP_QN_SEND]);
	u->mo = cpu_to_be32(mo);
	if (last)
		sq->pos.msn[DDP_QN_SEND]++;
	return at + sizeof(*u);
}

u8 *siw_fpdu_tagged(struct siw_qp *sq, u8 opcode, u32 stag, u64 to, u32 len, bool last, bool direct)
{
	u8 *at = siw_fpdu_start(sq, DDP_TAGGED | (last ? DDP_LAST : 0), opcode, sizeof(struct iwarp_tagged), len,
				direct);
	struct iwarp_tagged *t = &iwarp_hdr(at)->tagged;

	t->stag = cpu_to_be32(stag);
	t->to = cpu_to_be64(to);
	return at + sizeof(*t);
}

void siw_fpdu_read_request(struct siw_qp *sq, const struct siw_wqe *w)
{
	struct iwarp_read *r =
		&iwarp_hdr(siw_fpdu_start(sq, DDP_LAST, RDMAP_READ_REQUEST, sizeof(struct iwarp_read), 0, false))->read;

	r->u.qn = cpu_to_be32(DDP_QN_READ);
	r->u.msn = cpu_to_be32(sq->pos.msn[DDP_QN_READ]++);
	r->sink_stag = cpu_to_be32(w->wr.num_sge ? w->wr.sge[0].lkey : 0);
	r->sink_to = cpu_to_be64(w->wr.num_sge ? w->wr.sge[0].addr : 0);
	r->size = cpu_to_be32(w->wr.length);
	r->source_stag = cpu_to_be32(w->wr.rkey);
	r->source_to = cpu_to_be64(w->wr.remote_addr);
}

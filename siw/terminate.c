// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Terminate messages (RFC 5040, 4.8 and 7): sent to the peer of a stream that an error ends. */
#include <errno.h>

#include "siw/siw_internal.h"

/* Sends the buffer until the socket is full. */
static void out_flush(struct siw_qp *sq)
{
	struct iovec iov = { sq->out + sq->out_at, sq->out_len };
	ssize_t n = sq->out_len ? siw_socket_send(sq->fd.fd, &iov, 1) : 0;

	n = max(n, (ssize_t)0);
	sq->sent += (u64)n;
	sq->siw->counter[SIW_CTR_BYTES_SENT] += (u64)n;
	sq->out_at += (u32)n;
	sq->out_len -= (u32)n;
}

/* HdrCt (RFC 5040, 4.8): headers of an unknown layout are not returned, nor those of errors without a segment. */
static u8 terminate_headers(enum iwarp_error err, const struct siw_segment *of)
{
	u8 layer = (u8)(err >> 12);

	if (!of->len || layer > 1 || err == RDMAP_ERR_CATASTROPHIC || err == RDMAP_ERR_VERSION ||
	    err == RDMAP_ERR_OPCODE || err == DDP_ERR_T_VERSION || err == DDP_ERR_U_VERSION)
		return 0;
	return TERM_LENGTH | TERM_DDP | (!layer && of->len == sizeof(struct iwarp_read) ? TERM_RDMAP : 0);
}

void siw_terminate(struct siw_qp *sq, enum iwarp_error err, const struct siw_segment *of, int event)
{
	static const struct siw_segment none;
	const struct siw_segment *segment = of ? of : &none;
	u8 headers = terminate_headers(err, segment);
	u32 more = !headers               ? 0
		   : headers & TERM_RDMAP ? segment->len
					  : min((u32)segment->len, (u32)sizeof(struct iwarp_untagged));

	siw_send_unload(sq);
	if (sq->fd.fd >= 0)
		out_flush(sq);
	if (sq->fd.fd >= 0 && !sq->out_len && !sq->cut) { /* else the Terminate would be inside another FPDU */
		struct iwarp_terminate *t =
			&iwarp_hdr(siw_fpdu_start(sq, DDP_LAST, RDMAP_TERMINATE, sizeof(*t), more, false))->terminate;

		t->u.qn = cpu_to_be32(DDP_QN_TERMINATE);
		t->u.msn = cpu_to_be32(sq->pos.msn[DDP_QN_TERMINATE]);
		t->layer_type = (u8)(err >> 8);
		t->code = (u8)err;
		t->headers = headers;
		if (more)
			memcpy(t + 1, segment->hdr, more);
		siw_fpdus_seal(sq, sq->out_at);
		out_flush(sq);
		if (!sq->out_len)
			siw_count(sq, SIW_CTR_TERMINATE_SENT);
	}
	siw_qp_close(sq, -EPROTO, event);
}

void siw_terminate_read(struct siw_qp *sq)
{
	const struct siw_read *r = &sq->reads[sq->pos.rd_tail % SIW_READS];
	const struct iwarp_read request = {
		.u = { .c = { .len = cpu_to_be16(sizeof(request) - IWARP_LEN_SIZE),
			      .ddp = DDP_LAST | DDP_VERSION,
			      .rdmap = RDMAP_VERSION | RDMAP_READ_REQUEST },
		       .qn = cpu_to_be32(DDP_QN_READ),
		       .msn = cpu_to_be32(sq->pos.rd_tail + 1) },
		.sink_stag = cpu_to_be32(r->sink_stag),
		.sink_to = cpu_to_be64(r->sink_to),
		.size = cpu_to_be32(r->length),
		.source_stag = cpu_to_be32(r->source_stag),
		.source_to = cpu_to_be64(r->source_to),
	};
	struct siw_segment of = { .len = sizeof(request) };

	memcpy(of.hdr, &request, sizeof(request));
	siw_terminate(sq, RDMAP_ERR_STAG, &of, HCA_EVENT_QP_ACCESS_ERR);
}

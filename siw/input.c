// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * MPA framing (RFC 5044, 4): splits the TCP stream into FPDUs. An FPDU is received into a buffer, and checked when it
 * is complete. Without CRC, markers and capture a long FPDU is checked by its headers, and the rest of its payload is
 * received by zero-copy directly to program memory, together with the headers of the next FPDU.
 */
#include <errno.h>
#include <sys/socket.h>

#include "siw/siw_internal.h"

static bool may_split(const struct siw_qp *sq)
{
	return siw_may_split(sq) && !sq->terms.mark_in;
}

/* Bytes of the FPDU at @at of the buffer; 0: incomplete, -EPROTO: invalid length. */
static int fpdu_length(const struct siw_qp *sq, u32 at, u32 *ulpdu)
{
	u64 pos = sq->received + at;
	u32 lead = sq->terms.mark_in ? siw_marker_lead(pos) : 0, len;

	if (sq->in_len - at < lead + IWARP_LEN_SIZE)
		return 0;
	*ulpdu = be16_to_cpu(iwarp_hdr(sq->in + at + lead)->ctrl.len);
	if (*ulpdu < sizeof(struct iwarp_ctrl) - IWARP_LEN_SIZE &&
	    (*ulpdu || !sq->wait_first_fpdu || !sq->terms.rtr_zero))
		return -EPROTO;
	len = iwarp_fpdu_len(*ulpdu);
	if (sq->terms.mark_in)
		len += siw_marker_bytes(pos, len);
	return sq->in_len - at < len ? 0 : (int)len;
}

/* Header length of an FPDU with payload for a program; 0: another FPDU, or headers are incomplete. */
static u32 data_header(const struct siw_qp *sq, u32 at)
{
	const struct iwarp_ctrl *c = &iwarp_hdr(sq->in + at)->ctrl;
	u32 here = sq->in_len - at, hdr;
	u8 opcode;

	if (here < sizeof(*c))
		return 0;
	hdr = c->ddp & DDP_TAGGED ? sizeof(struct iwarp_tagged) : sizeof(struct iwarp_untagged);
	opcode = c->rdmap & RDMAP_OPCODE_MASK;
	if (opcode == RDMAP_READ_REQUEST || opcode >= RDMAP_TERMINATE)
		return 0;
	return here < hdr ? 0 : hdr;
}

/*
 * Starts an FPDU whose payload is received by zero-copy. Returns bytes consumed; 0: too short for that, -1: the stream
 * is closed.
 */
static int zcopy_begin(struct siw_qp *sq, u32 at, u32 ulpdu)
{
	u32 hdr = may_split(sq) ? data_header(sq, at) : 0, here = sq->in_len - at - hdr,
	    payload = ulpdu + IWARP_LEN_SIZE - hdr;

	if (!hdr || ulpdu + IWARP_LEN_SIZE < hdr || payload < here + sq->siw->direct_min)
		return 0;
	sq->fpdu.buffered = here;
	sq->fpdu.trailer = iwarp_pad(ulpdu) + IWARP_CRC_SIZE;
	if (!siw_receive_fpdu(sq, sq->in + at, 0, 0, ulpdu))
		return -1;
	sq->bulk = true;
	return (int)(hdr + here);
}

/* Continues the partly received FPDU. Returns bytes consumed; -1: the stream is closed. */
static int zcopy_continue(struct siw_qp *sq, u32 at)
{
	struct siw_rx_fpdu *o = &sq->fpdu;
	u32 here = sq->in_len - at, part = min(here, o->payload - o->placed);

	if (part && !siw_receive_payload(sq, sq->in + at, part))
		return -1;
	if (o->placed < o->payload || here - part < o->trailer)
		return (int)part;
	return siw_receive_finish(sq) ? (int)(part + o->trailer) : -1;
}

/* Handles the bytes at @at. Returns bytes consumed; 0: incomplete, -1: the stream is closed. */
static int fpdu_receive(struct siw_qp *sq, u32 at)
{
	u32 ulpdu = 0;
	int len;

	if (sq->fpdu.partial)
		return zcopy_continue(sq, at);
	len = fpdu_length(sq, at, &ulpdu);
	if (len < 0)
		return (int)siw_receive_fail(sq, MPA_ERR_LENGTH) - 1;
	if (!len)
		return sq->in_len - at < IWARP_LEN_SIZE ? 0 : zcopy_begin(sq, at, ulpdu);
	if (unlikely(!fault_set_empty(&sq->siw->faults))) {
		int go = siw_fault_fpdu(sq, sq->in + at, (u32)len, ulpdu);

		if (go <= 0)
			return go;
	}
	sq->bulk = ulpdu >= sq->siw->direct_min && may_split(sq);
	sq->fpdu.buffered = (u32)len;
	return siw_receive_fpdu(sq, sq->in + at, (u32)len, sq->received + at, ulpdu) ? len : -1;
}

void siw_input_bytes(struct siw_qp *sq)
{
	u32 at = 0;
	int len;

	if (sq->pause.fault) /* completes moves to memory while the next FPDU waits */
		return;
	if (sq->write_failed && !sq->write_due) { /* a move has failed: no FPDU after it is processed */
		siw_receive_write_failed(sq);
		return;
	}
	do {
		while ((len = fpdu_receive(sq, at)) > 0 && sq->ncomps < SIW_COMPS)
			at += (u32)len;
		if (len < 0)
			return;
		at += (u32)len;
		siw_receive_commit(sq); /* the batch points into the buffer */
		if (sq->write_failed && !sq->write_due) {
			siw_receive_write_failed(sq);
			return;
		}
	} while (len && sq->fd.fd >= 0 && !sq->write_due);
	sq->in_len -= at;
	sq->received += at;
	if (at && sq->in_len)
		memmove(sq->in, sq->in + at, sq->in_len);
}

/* Bytes from the end of this payload to the next one: they are received together with the payload. */
static u32 headers_length(const struct siw_qp *sq)
{
	u32 hdr = sq->fpdu.ddp & DDP_TAGGED ? sizeof(struct iwarp_tagged) : sizeof(struct iwarp_untagged);

	return hdr + (sq->fpdu.partial ? sq->fpdu.trailer : 0);
}

int siw_input_prepare(struct siw_qp *sq, struct iovec *iov, u32 max, u32 *room)
{
	struct siw_rx_fpdu *o = &sq->fpdu;
	u32 left = o->partial ? o->payload - o->placed : 0, space;
	int n = 0;

	if (sq->write_due || sq->pause.fault ||
	    sq->siw->down) /* backpressure by TCP until writes to client memory are done */
		return 0;
	if (left && sq->bulk) {
		n = siw_receive_sink(sq, iov, max - 1);
		if (n < 0)
			return 0;
		sq->bulk = n > 0;
	}
	sq->direct = n ? left : 0;
	space = sq->bulk && sq->in_len < headers_length(sq) ? headers_length(sq) - sq->in_len : SIW_IN - sq->in_len;
	iov[n++] = (struct iovec){ sq->in + sq->in_len, space };
	*room = sq->direct + space;
	return n;
}

bool siw_input_received(struct siw_qp *sq, u32 room, ssize_t n)
{
	u32 direct;

	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n == -EFAULT && sq->direct)
		return siw_receive_key_error(sq, HCA_KEY_INVALID);
	if (n <= 0) {
		/* an end of the stream inside an FPDU is not orderly */
		siw_qp_close(sq, n ? (int)n : sq->in_len || sq->fpdu.partial ? -ECONNRESET : 0, -1);
		return false;
	}
	if (!sq->rtr_wait)
		siw_rtr_stop(sq);
	sq->siw->counter[SIW_CTR_BYTES_RECEIVED] += (u64)n;
	direct = min((u32)n, sq->direct);
	sq->fpdu.placed += direct;
	sq->received += direct;
	sq->in_len += (u32)n - direct;
	siw_input_bytes(sq);
	return (u32)n == room && sq->fd.fd >= 0;
}

void siw_input_run(struct siw_qp *sq)
{
	struct iovec iov[SIW_PIECES];
	u32 round, room;

	for (round = 0; round < SIW_ROUNDS && sq->fd.fd >= 0; round++) {
		int niov = siw_input_prepare(sq, iov, SIW_PIECES, &room);
		struct msghdr m = { .msg_iov = iov, .msg_iovlen = (u32)niov };
		ssize_t n = niov ? recvmsg(sq->fd.fd, &m, MSG_DONTWAIT) : 0;

		if (!niov || !siw_input_received(sq, room, n < 0 ? -errno : n))
			break;
	}
	hca_flush(sq->siw->hca);
}

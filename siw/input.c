// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The stream's bytes to FPDUs. They come into a buffer, and are judged when they are whole. Where nothing stands against it (CRC,
 * markers, a capture), a long one is judged by its headers, and the rest of its payload comes to where it belongs, with
 * as much of the next FPDU's headers behind it that the next payload may do so, too.
 */
#include <errno.h>
#include <sys/socket.h>

#include "siw/internal.h"

static bool may_split(const struct siw_qp *sq)
{
	return siw_may_split(sq) && !sq->terms.mark_in;
}

/* Bytes of the FPDU at @at of the buffer; 0: it has not all come, -EPROTO: its length is wrong. */
static int fpdu_length(const struct siw_qp *sq, u32 at, u32 *ulpdu)
{
	u64 pos = sq->received + at;
	u32 lead = sq->terms.mark_in ? siw_marker_lead(pos) : 0, len;

	if (sq->in_len - at < lead + IWARP_LEN_SIZE)
		return 0;
	*ulpdu = be16_to_cpu(((const struct iwarp_ctrl *)(sq->in + at + lead))->len);
	if (*ulpdu < sizeof(struct iwarp_ctrl) - IWARP_LEN_SIZE && (*ulpdu || !sq->wait_start || !sq->terms.rtr_zero))
		return -EPROTO;
	len = iwarp_fpdu_len(*ulpdu);
	if (sq->terms.mark_in)
		len += siw_marker_bytes(pos, len);
	return sq->in_len - at < len ? 0 : (int)len;
}

/* Headers of an FPDU that has data for a program; 0: of others, or that they have not come. */
static u32 data_header(const struct siw_qp *sq, u32 at)
{
	const struct iwarp_ctrl *c = (const struct iwarp_ctrl *)(sq->in + at);
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

/* Begins with one of which a good part is still to come. Returns the bytes that are done with; 0: not worth it, -1: the stream is gone. */
static int begin(struct siw_qp *sq, u32 at, u32 ulpdu)
{
	u32 hdr = may_split(sq) ? data_header(sq, at) : 0, here = sq->in_len - at - hdr,
	    payload = ulpdu + IWARP_LEN_SIZE - hdr;

	if (!hdr || ulpdu + IWARP_LEN_SIZE < hdr || payload < here + sq->siw->direct_min)
		return 0;
	sq->open.here = here;
	sq->open.trailer = iwarp_pad(ulpdu) + IWARP_CRC_SIZE;
	if (!siw_receive_fpdu(sq, sq->in + at, 0, 0, ulpdu))
		return -1;
	sq->bulk = true;
	return (int)(hdr + here);
}

/* Goes on with the one that has been begun. Returns the bytes that are done with; -1: the stream is gone. */
static int go_on(struct siw_qp *sq, u32 at)
{
	struct siw_open *o = &sq->open;
	u32 here = sq->in_len - at, part = min(here, o->payload - o->placed);

	if (part && !siw_receive_place(sq, sq->in + at, part))
		return -1;
	if (o->placed < o->payload || here - part < o->trailer)
		return (int)part;
	return siw_receive_finish(sq) ? (int)(part + o->trailer) : -1;
}

/* The next step with what is at @at. Returns the bytes that are done with; 0: more must come, -1: the stream is gone. */
static int step(struct siw_qp *sq, u32 at)
{
	u32 ulpdu = 0;
	int len;

	if (sq->open.partly)
		return go_on(sq, at);
	len = fpdu_length(sq, at, &ulpdu);
	if (len < 0)
		return (int)siw_receive_fail(sq, MPA_ERR_LENGTH) - 1;
	if (!len)
		return sq->in_len - at < IWARP_LEN_SIZE ? 0 : begin(sq, at, ulpdu);
	sq->bulk = ulpdu >= sq->siw->direct_min && may_split(sq);
	sq->open.here = (u32)len;
	return siw_receive_fpdu(sq, sq->in + at, (u32)len, sq->received + at, ulpdu) ? len : -1;
}

void siw_input_bytes(struct siw_qp *sq)
{
	u32 at = 0;
	int len;

	do {
		while ((len = step(sq, at)) > 0 && sq->ncomps < SIW_COMPS)
			at += (u32)len;
		if (len < 0)
			return;
		at += (u32)len;
		siw_receive_commit(sq); /* the batch points into the buffer */
		if (sq->dma_failed) {
			siw_receive_fail(sq, RDMAP_ERR_CATASTROPHIC);
			return;
		}
	} while (len && sq->fd.fd >= 0);
	sq->in_len -= at;
	sq->received += at;
	if (at && sq->in_len)
		memmove(sq->in, sq->in + at, sq->in_len);
}

/* Bytes to the end of what may stand before the next long payload: they are worth a call of their own. */
static u32 headers(const struct siw_qp *sq)
{
	u32 hdr = sq->open.ddp & DDP_TAGGED ? sizeof(struct iwarp_tagged) : sizeof(struct iwarp_untagged);

	return hdr + (sq->open.partly ? sq->open.trailer : 0);
}

int siw_input_prepare(struct siw_qp *sq, struct iovec *iov, u32 max, u32 *room)
{
	struct siw_open *o = &sq->open;
	u32 left = o->partly ? o->payload - o->placed : 0, space;
	int n = 0;

	if (left && sq->bulk) {
		n = siw_receive_sink(sq, iov, max - 1);
		if (n < 0)
			return 0;
		sq->bulk = n > 0;
	}
	sq->direct = n ? left : 0;
	space = sq->bulk && sq->in_len < headers(sq) ? headers(sq) - sq->in_len : SIW_IN - sq->in_len;
	iov[n++] = (struct iovec){ sq->in + sq->in_len, space };
	*room = sq->direct + space;
	return n;
}

/* The end of the stream: in the middle of an FPDU it is no orderly one. */
static void end(struct siw_qp *sq, int err)
{
	siw_qp_close(sq, err ? err : sq->in_len || sq->open.partly ? -ECONNRESET : 0, -1);
}

bool siw_input_taken(struct siw_qp *sq, u32 room, ssize_t n)
{
	u32 direct;

	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n == -EFAULT && sq->direct)
		return siw_receive_misplaced(sq, HCA_KEY_INVALID);
	if (n <= 0) {
		end(sq, (int)n);
		return false;
	}
	if (!sq->hold)
		siw_rtr_stop(sq);
	direct = min((u32)n, sq->direct);
	sq->open.placed += direct;
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

		if (!niov || !siw_input_taken(sq, room, n < 0 ? -errno : n))
			break;
	}
	hca_flush(sq->siw->hca);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sending: requests and READ responses become FPDUs of a train (train.c); a SEND or WRITE is complete when TCP has taken its last
 * byte (RFC 5040, 5.5), a READ when its data is in place. Completions come in order.
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
	while (sq->wq_tail != sq->pos.wq_next) {
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
	sq->pos.wq_next = sq->wq_head;
	sq->pos.wq_done = sq->pos.reads_out = 0;
}

void siw_send_reset(struct siw_qp *sq)
{
	for (; sq->wqes && sq->wq_tail != sq->wq_head; sq->wq_tail++) {
		free(wqe_at(sq, sq->wq_tail)->held);
		wqe_at(sq, sq->wq_tail)->held = NULL;
	}
	sq->wq_tail = sq->pos.wq_next = sq->pos.wq_done = sq->wq_head = 0;
}

struct siw_wqe *siw_send_oldest_read(struct siw_qp *sq)
{
	u32 i;

	for (i = sq->wq_tail; i != sq->pos.wq_next; i++)
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

/* For one more, and to settle one that TCP takes in part. */
static bool has_room(const struct siw_qp *sq, const struct siw_train *t)
{
	return SIW_OUT - sq->out_at - sq->out_len >= 2 * SIW_FPDU_OUT && t->nfpdus < (sq->careful ? 1 : SIW_TRAIN);
}

/*
 * Room for an FPDU of @hdr bytes of headers and @payload more; the caller fills both. Its markers' room is in front until
 * it is sealed, and begins with the length, too. @direct: the payload is not to be there.
 */
static u8 *fpdu_start(struct siw_qp *sq, u8 ddp, u8 opcode, u32 hdr, u32 payload, bool direct)
{
	u32 ulpdu = hdr - IWARP_LEN_SIZE + payload, len = iwarp_fpdu_len(ulpdu), here = direct ? 0 : payload,
	    markers = sq->terms.mark_out ? siw_marker_bytes(sq->pos.built, len) : 0;
	u8 *room = sq->out + sq->out_at + sq->out_len, *at = room + markers;
	struct iwarp_ctrl *c = (struct iwarp_ctrl *)at;

	memset(at, 0, hdr);
	memset(at + hdr + here, 0, iwarp_pad(ulpdu) + IWARP_CRC_SIZE);
	c->len = cpu_to_be16((u16)ulpdu);
	c->ddp = ddp | DDP_VERSION;
	c->rdmap = RDMAP_VERSION | opcode;
	((struct iwarp_ctrl *)room)->len = c->len;
	sq->out_len += len - payload + here + markers;
	sq->pos.built += len + markers;
	sq->pos.fpdus++;
	siw_count(sq, SIW_CTR_FPDU_SENT);
	return at;
}

/* The payload is there: markers into all FPDUs from @from on, and CRCs over both. */
static void seal(struct siw_qp *sq, u32 from)
{
	u8 *p = sq->out + from, *end = sq->out + sq->out_at + sq->out_len;

	if (siw_may_split(sq) && !sq->terms.mark_out)
		return;
	while (p < end) {
		u32 len = iwarp_fpdu_len(be16_to_cpu(((struct iwarp_ctrl *)p)->len)), body;
		u64 pos = sq->pos.built - (u64)(end - p);
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

static u8 *put_send(struct siw_qp *sq, const struct siw_wqe *w, u32 mo, u32 len, bool last, bool direct)
{
	u8 *at = fpdu_start(sq, last ? DDP_LAST : 0, send_opcode(w), sizeof(struct iwarp_untagged), len, direct);
	struct iwarp_untagged *u = (struct iwarp_untagged *)at;

	u->inv_stag = cpu_to_be32(w->opcode == HCA_WR_SEND_WITH_INV ? w->imm : 0);
	u->qn = cpu_to_be32(DDP_QN_SEND);
	u->msn = cpu_to_be32(sq->pos.msn[DDP_QN_SEND]);
	u->mo = cpu_to_be32(mo);
	if (last)
		sq->pos.msn[DDP_QN_SEND]++;
	return at + sizeof(*u);
}

static u8 *put_tagged(struct siw_qp *sq, u8 opcode, u32 stag, u64 to, u32 len, bool last, bool direct)
{
	u8 *at = fpdu_start(sq, DDP_TAGGED | (last ? DDP_LAST : 0), opcode, sizeof(struct iwarp_tagged), len, direct);
	struct iwarp_tagged *t = (struct iwarp_tagged *)at;

	t->stag = cpu_to_be32(stag);
	t->to = cpu_to_be64(to);
	return at + sizeof(*t);
}

static void put_read(struct siw_qp *sq, const struct siw_wqe *w)
{
	struct iwarp_read *r =
		(struct iwarp_read *)fpdu_start(sq, DDP_LAST, RDMAP_READ_REQUEST, sizeof(struct iwarp_read), 0, false);

	r->u.qn = cpu_to_be32(DDP_QN_READ);
	r->u.msn = cpu_to_be32(sq->pos.msn[DDP_QN_READ]++);
	r->sink_stag = cpu_to_be32(w->num_sge ? w->sge[0].lkey : 0);
	r->sink_to = cpu_to_be64(w->num_sge ? w->sge[0].addr : 0);
	r->size = cpu_to_be32(w->length);
	r->source_stag = cpu_to_be32(w->rkey);
	r->source_to = cpu_to_be64(w->remote_addr);
}

/* Where an FPDU begins; one whose payload cannot be read is taken back. */
struct begin {
	struct siw_pos pos;
	u32 out_len;
};

static struct begin begin(const struct siw_qp *sq)
{
	return (struct begin){ sq->pos, sq->out_len };
}

static void take_back(struct siw_qp *sq, const struct begin *b)
{
	siw_train_rewind(sq, &b->pos);
	sq->out_len = b->out_len;
}

/* The FPDU is built, @pos behind it. */
static void record(struct siw_qp *sq, struct siw_fpdu *f, const struct begin *b, struct siw_wqe *w)
{
	f->before = b->pos;
	f->after = sq->pos;
	f->after.request = !w;
	f->wqe = w;
	f->end = f->start + (u32)(sq->pos.built - b->pos.built);
}

/* The next FPDU of a SEND or WRITE. */
static void build_data(struct siw_qp *sq, struct siw_train *t, struct siw_wqe *w)
{
	u32 done = sq->pos.wq_done, len = min(sq->segment, w->length - done);
	bool last = done + len == w->length, send = is_send(w);
	const struct siw_mem mem = { .sge = w->sge, .n = w->num_sge };
	const struct begin b = begin(sq);
	int pieces = w->held ? 0 : siw_train_reach(sq, t, &mem, done, len), err = min(pieces, 0);
	u8 *at = send ? put_send(sq, w, done, len, last, pieces > 0)
		      : put_tagged(sq, RDMAP_WRITE, w->rkey, w->remote_addr + done, len, last, pieces > 0);

	if (w->held)
		memcpy(at, w->held->inline_data + done, len);
	else if (!pieces)
		err = siw_mem_read(sq, &mem, done, len, at);
	if (err) {
		w->status = HCA_WC_LOC_PROT_ERR;
		take_back(sq, &b); /* what was sent of it stays a message without an end */
		return;
	}
	w->state = last ? SIW_SENT : SIW_POSTED;
	w->end = sq->pos.built;
	sq->pos.wq_done = last ? 0 : done + len;
	sq->pos.wq_next += last;
	if (pieces)
		record(sq,
		       siw_train_add(sq, t, at, send ? sizeof(struct iwarp_untagged) : sizeof(struct iwarp_tagged),
				     pieces),
		       &b, w);
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
	sq->pos.reads_out++;
	w->state = SIW_SENT;
	sq->pos.wq_next++;
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
	sq->pos.wq_next++;
}

/* True: something was built, or failed by its status. */
static bool build_request(struct siw_qp *sq, struct siw_train *t)
{
	struct siw_wqe *w;

	if (sq->wait_start || (sq->pos.wq_next == sq->wq_head && !pull(sq)))
		return false;
	w = wqe_at(sq, sq->pos.wq_next);
	if (w->status)
		return true;
	if (w->flags & HCA_SEND_FENCE && !sq->pos.wq_done && sq->pos.reads_out)
		return false;
	if (w->opcode == HCA_WR_RDMA_READ) {
		if (sq->pos.reads_out >= max(sq->terms.ord, (u16)1))
			return false;
		build_read(sq, w);
	} else if (!is_local(w)) {
		build_data(sq, t, w);
	} else if (t->nfpdus) { /* it may take a key from what may have to be built again */
		return false;
	} else {
		run_local(sq, w);
	}
	return true;
}

/* The next FPDU of the READ that the peer asked for first. False: the memory is not there any more. */
static bool build_response(struct siw_qp *sq, struct siw_train *t)
{
	const struct siw_read *r = &sq->reads[sq->pos.rd_tail % SIW_READS];
	const struct hca_sge source = { r->source_to, r->length, r->source_stag };
	const struct siw_mem mem = { .sge = &source, .n = 1, .remote = true, .access = HCA_ACCESS_REMOTE_READ };
	u32 done = sq->pos.rd_done, len = min(sq->segment, r->length - done);
	bool last = done + len == r->length;
	const struct begin b = begin(sq);
	int pieces = siw_train_reach(sq, t, &mem, done, len);
	u8 *at = put_tagged(sq, RDMAP_READ_RESPONSE, r->sink_stag, r->sink_to + done, len, last, pieces > 0);

	if (pieces < 0 || (!pieces && siw_mem_read(sq, &mem, done, len, at))) {
		take_back(sq, &b);
		return false;
	}
	sq->pos.rd_done = last ? 0 : done + len;
	sq->pos.rd_tail += last;
	if (pieces)
		record(sq, siw_train_add(sq, t, at, sizeof(struct iwarp_tagged), pieces), &b, NULL);
	return true;
}

/* Of a payload it is not known whose it was: none of this round leaves. */
static void give_up(struct siw_qp *sq, u32 from)
{
	u32 i, end = sq->pos.wq_next + (sq->pos.wq_done > 0);

	for (i = sq->wq_tail; i != end; i++)
		if (wqe_at(sq, i)->end > sq->sent && !is_local(wqe_at(sq, i)))
			wqe_at(sq, i)->status = HCA_WC_LOC_PROT_ERR;
	sq->out_len = from - sq->out_at;
	siw_terminate(sq, RDMAP_ERR_CATASTROPHIC, HCA_EVENT_QP_FATAL);
}

/* One FPDU, of responses and requests by turns, or a local operation. 0: there is none, -1: a response has no memory any more. */
static int build_one(struct siw_qp *sq, struct siw_train *t)
{
	bool respond = sq->pos.rd_tail != sq->rd_head;

	if (!respond || sq->pos.request) {
		bool built = build_request(sq, t);

		sq->pos.request = false;
		return built || respond;
	}
	if (!build_response(sq, t))
		return -1;
	sq->pos.request = true;
	return 1;
}

static bool next_failed(const struct siw_qp *sq)
{
	return sq->pos.wq_next != sq->wq_head && wqe_at(sq, sq->pos.wq_next)->status;
}

/* Fills buffer and train. False: the stream is gone. */
static bool build(struct siw_qp *sq, struct siw_train *t)
{
	u32 from = sq->out_at + sq->out_len;
	int more = 1;

	while (more > 0 && has_room(sq, t) && !next_failed(sq))
		more = build_one(sq, t);
	hca_batch_run(sq->siw->rd);
	if (sq->dma_failed) {
		give_up(sq, from);
		return false;
	}
	seal(sq, from);
	if (more < 0 && !t->nfpdus) { /* else those before it leave first */
		siw_terminate(sq, RDMAP_ERR_STAG, HCA_EVENT_QP_ACCESS_ERR);
		return false;
	}
	return true;
}

void siw_send_rtr(struct siw_qp *sq)
{
	const struct mpa_terms *t = &sq->terms;
	u32 from = sq->out_at + sq->out_len;

	if (t->rtr_zero) {
		put_send(sq, &(struct siw_wqe){ .opcode = HCA_WR_SEND }, 0, 0, true, false);
	} else if (t->rtr_write) {
		put_tagged(sq, RDMAP_WRITE, 0, 0, 0, true, false);
	} else if (t->rtr_read) {
		put_read(sq, &(struct siw_wqe){ .opcode = HCA_WR_RDMA_READ });
		sq->rtr_out = true;
	}
	seal(sq, from);
}

/* The socket is to tell when it takes more. */
static void watch(struct siw_qp *sq, bool want)
{
	if (sq->want_out == want)
		return;
	sq->want_out = want;
	loop_fd_mod(&sq->fd, EPOLLIN | (want ? EPOLLOUT : 0));
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

int siw_send_prepare(struct siw_qp *sq, struct siw_train *t)
{
	if (sq->fd.fd < 0 || sq->hold)
		return 0;
	siw_train_begin(sq, t);
	if (!build(sq, t))
		return -1;
	siw_train_end(sq, t);
	if (t->niov)
		return 1;
	watch(sq, false);
	siw_send_complete(sq); /* what is done here alone */
	return head_failed(sq) ? -1 : 0;
}

/* Some payload is no memory: it is the first one's where there is no other. */
static bool unreadable(struct siw_qp *sq, const struct siw_train *t)
{
	if (t->nfpdus > 1) {
		sq->careful = true;
		return true;
	}
	if (t->fpdu[0].wqe) {
		t->fpdu[0].wqe->status = HCA_WC_LOC_PROT_ERR;
		return !head_failed(sq);
	}
	siw_terminate(sq, RDMAP_ERR_STAG, HCA_EVENT_QP_ACCESS_ERR);
	return false;
}

bool siw_send_taken(struct siw_qp *sq, struct siw_train *t, ssize_t n)
{
	siw_train_taken(sq, t, n > 0 ? (u32)n : 0);
	if (n == -EFAULT && t->nfpdus)
		return unreadable(sq, t);
	if (n < 0 && n != -EAGAIN && n != -EINTR) {
		siw_qp_close(sq, (int)n, HCA_EVENT_QP_FATAL);
		return false;
	}
	sq->sent += n > 0 ? (u64)n : 0;
	watch(sq, n != (ssize_t)t->bytes);
	siw_send_complete(sq);
	return !head_failed(sq) && !sq->want_out;
}

/* One call, as far as TCP takes it. */
static ssize_t give(int fd, struct iovec *iov, u32 n)
{
	const struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t took;

	do
		took = sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (took < 0 && errno == EINTR);
	return took < 0 ? -errno : took;
}

bool siw_send_run(struct siw_qp *sq)
{
	static struct siw_train train;
	u32 round;

	for (round = 0; round < SIW_ROUNDS; round++)
		if (siw_send_prepare(sq, &train) <= 0 ||
		    !siw_send_taken(sq, &train, give(sq->fd.fd, train.iov, train.niov)))
			return false;
	return true;
}

/* What is in the buffer, as far as the socket takes it. */
static void push(struct siw_qp *sq)
{
	struct iovec iov = { sq->out + sq->out_at, sq->out_len };
	ssize_t n = sq->out_len ? give(sq->fd.fd, &iov, 1) : 0;

	n = max(n, (ssize_t)0);
	sq->sent += (u64)n;
	sq->out_at += (u32)n;
	sq->out_len -= (u32)n;
}

void siw_terminate(struct siw_qp *sq, enum iwarp_error err, int event)
{
	if (sq->fd.fd >= 0)
		push(sq);
	if (sq->fd.fd >= 0 && !sq->out_len) { /* else it would stand in the middle of another FPDU */
		struct iwarp_terminate *t =
			(struct iwarp_terminate *)fpdu_start(sq, DDP_LAST, RDMAP_TERMINATE, sizeof(*t), 0, false);

		t->u.qn = cpu_to_be32(DDP_QN_TERMINATE);
		t->u.msn = cpu_to_be32(sq->pos.msn[DDP_QN_TERMINATE]);
		t->layer_type = (u8)(err >> 8);
		t->code = (u8)err;
		seal(sq, sq->out_at);
		push(sq);
		if (!sq->out_len)
			siw_count(sq, SIW_CTR_TERMINATE_SENT);
	}
	siw_qp_close(sq, -EPROTO, event);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Receives and completions. A request that succeeds has moved exactly its bytes, signaled requests complete once and in
 * order, messages arrive once and in order, and the status of a failed request is one of its own statuses, or of the
 * connection's excuses.
 */
#include "traffic.h"

#include <string.h>

#define ANY_REMOTE (BIT(IBV_WC_REM_ACCESS_ERR) | BIT(IBV_WC_REM_OP_ERR) | BIT(IBV_WC_REM_INV_REQ_ERR))

/* The first byte that differs, or @len. */
static uint32_t pattern_differs(const uint8_t *at, uint32_t id, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len && at[i] == pattern(id, i); i++)
		;
	return i;
}

/* ---- receives ---- */

static uint8_t *recv_buffer(const struct end *e, uint32_t seq)
{
	return e->recvs + (size_t)(seq % RECVS) * (RECV_SIZE + GRH);
}

bool traffic_fill(struct end *e)
{
	uint32_t seq = e->rq_head, len = RECV_SIZE + (e->type == CONN_UD ? GRH : 0),
		 part = chance(200) ? 40 + draw(100) : 0;
	uint8_t *buf = recv_buffer(e, seq);
	struct ibv_sge sge[2] = { { (uintptr_t)buf, len, e->mr->lkey } };
	struct ibv_recv_wr wr = { .wr_id = wr_id(e, true, seq), .sg_list = sge, .num_sge = 1 }, *bad;
	int err;

	if (!e->qp || seq - e->rq_tail >= e->rq_depth)
		return false;
	e->rq[seq % RING].bad = false;
	if (e->state == OPEN && chance(1) && chance(400) && !without(WITHOUT_BAD)) {
		end_excuse(e, BAD_RECV);
		e->rq[seq % RING].bad = true;
		if (chance(500))
			sge[0].lkey = prog.revoked_lkey;
		else
			sge[0].length = e->type == CONN_UD ? GRH + 2 : 2;
	} else if (part) {
		sge[1] = (struct ibv_sge){ (uintptr_t)buf + part, len - part, e->mr->lkey };
		sge[0].length = part;
		wr.num_sge = 2;
	}
	memset(buf, 0xa5, len);
	err = e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad);
	if (err && !end_excuses(e))
		wrong(e, "post_recv: %s", strerror(err));
	if (err)
		return false;
	e->rq_head++;
	e->mine->posted++;
	count_op();
	return true;
}

/* The received message of the peer's stream. */
static bool is_message(const struct end *e, const struct sent *s, const struct ibv_wc *wc, const uint8_t *data)
{
	uint32_t grh = e->type == CONN_UD ? GRH : 0;
	bool imm = s->opcode == IBV_WR_SEND_WITH_IMM || s->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (s->bad || wc->byte_len != s->len + grh || imm != !!(wc->wc_flags & IBV_WC_WITH_IMM) ||
	    (imm && wc->imm_data != s->imm) || s->inv != !!(wc->wc_flags & IBV_WC_WITH_INV))
		return false;
	if (s->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		return wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	return wc->opcode == IBV_WC_RECV && pattern_differs(data + grh, s->id, s->len) == s->len;
}

bool end_may_lose(const struct end *e)
{
	return !end_is_rc(e) && (prog.port.link_layer == IBV_LINK_LAYER_ETHERNET || end_excuses(e));
}

static void message_check(struct end *e, const struct sent *s, const struct ibv_wc *wc)
{
	uint32_t part = s->off / SLOT, i;

	if (s->inv && (wc->invalidated_rkey != e->mw_rkey || e->mw_state != MW_BOUND))
		wrong(e, "SEND WITH INVALIDATE of key %#x; the window's is %#x", wc->invalidated_rkey, e->mw_rkey);
	if (s->inv)
		e->mw_state = MW_IDLE;
	if (s->opcode != IBV_WR_RDMA_WRITE_WITH_IMM || e->his->version[part] != s->version || end_may_lose(e))
		return;
	i = pattern_differs(e->target + s->off, s->id, s->len);
	if (i < s->len && e->his->version[part] == s->version)
		wrong(e, "byte %u of %u of an RDMA WRITE WITH IMMEDIATE is wrong", i, s->len);
}

static void message_received(struct end *e, const struct ibv_wc *wc, uint32_t seq)
{
	const uint8_t *data = recv_buffer(e, seq);
	uint32_t at = e->stream_at, end = e->his->sent;
	const struct sent *s = &e->his->stream[at % STREAM];

	if (e->rq[seq % RING].bad && wc->opcode == IBV_WC_RECV && (!e->type || e->type == CONN_UC) && wc->byte_len > 2)
		wrong(e, "a receive with a wrong buffer has succeeded");
	if (e->type == CONN_UD && wc->src_qp != e->his->qpn)
		wrong(e, "a datagram of QP %#x", wc->src_qp);
	/*
	 * A fault may repeat messages and change their order; on UC, too, a first or only packet begins a message with
	 * any PSN (9.8).
	 */
	if (!end_is_rc(e) && end_excuses(e) & LOST) {
		at = end > STREAM ? end - STREAM : 0;
		s = &e->his->stream[at % STREAM];
	}
	for (; at != end && !is_message(e, s, wc, data); s = &e->his->stream[++at % STREAM])
		if (!s->bad && !end_may_lose(e))
			break;
	if (at == end || !is_message(e, s, wc, data))
		wrong(e,
		      "message %u of %u is not what was sent: opcode %u, %u bytes, flags %#x; wanted (first) %u, %u "
		      "bytes, differs at %u",
		      e->stream_at, end, wc->opcode, wc->byte_len, wc->wc_flags,
		      e->his->stream[e->stream_at % STREAM].opcode, e->his->stream[e->stream_at % STREAM].len,
		      pattern_differs(data + (e->type == CONN_UD ? GRH : 0), e->his->stream[e->stream_at % STREAM].id,
				      e->his->stream[e->stream_at % STREAM].len));
	message_check(e, s, wc);
	if (at + 1 > e->stream_at)
		e->stream_at = at + 1;
	e->mine->received = e->stream_at;
}

static uint32_t recv_statuses(const struct end *e, bool bad, uint32_t ex)
{
	uint32_t may = ex ? BIT(IBV_WC_WR_FLUSH_ERR) : 0;

	if (ex & (BAD | BAD_RECV))
		may |= BIT(IBV_WC_LOC_LEN_ERR);
	if (bad)
		may |= BIT(IBV_WC_LOC_PROT_ERR);
	if (ex & (BAD | RACE))
		may |= BIT(IBV_WC_LOC_ACCESS_ERR);
	return may;
}

static void on_recv(struct end *e, const struct ibv_wc *wc, uint32_t seq)
{
	uint32_t ex = end_excuses(e);

	if ((seq ^ e->rq_tail) & 0x7fffffff)
		wrong(e, "receive %u completes (status %u), %u is the next of %u", seq, wc->status, e->rq_tail,
		      e->rq_head);
	if (e->rq_tail == e->rq_head)
		wrong(e, "receive %u completes twice", seq);
	e->rq_tail++;
	if (wc->status == IBV_WC_SUCCESS) {
		if (e->rq_failed && e->type != CONN_UD) /* a datagram's error affects only itself */
			wrong(e, "a receive succeeds behind one that has failed");
		message_received(e, wc, seq);
		return;
	}
	file->head.proc[prog.index].errors++;
	if (!(recv_statuses(e, e->rq[seq % RING].bad, ex) & BIT(wc->status)))
		wrong(e, "receive %u: %s", seq, ibv_wc_status_str(wc->status));
	e->rq_failed |=
		wc->status != IBV_WC_LOC_LEN_ERR || end_is_rc(e); /* a short receive ends a message only on UC */
	end_stop(e);
}

/* ---- completions of sends ---- */

static enum ibv_wc_opcode wc_opcode(uint8_t opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	default:
		return IBV_WC_SEND;
	}
}

static void msg_succeeded(struct end *e, struct msg *m)
{
	uint8_t *at = msg_local(e, m);
	uint32_t i;
	uint64_t got;

	if (m->must_fail)
		wrong(e, "request %u (opcode %u), which is wrong, has succeeded", m->seq, m->opcode);
	if (m->stream)
		e->mine->acked++;
	if (m->in_target && end_is_rc(e))
		pattern_fill(e->mine->shadow + m->off, m->id, m->len);
	if (m->opcode == IBV_WR_RDMA_READ) {
		for (i = 0; i < m->len && at[i] == m->data[i]; i++)
			;
		if (i < m->len)
			wrong(e, "byte %u of %u of a READ from offset %u is %#x, not %#x", i, m->len, m->off, at[i],
			      m->data[i]);
		for (i = m->len; i < SLOT && i < m->len + 64; i++)
			if (at[i] != 0xa5)
				wrong(e, "a READ of %u bytes has written byte %u", m->len, i);
	}
	if (is_atomic(m->opcode)) {
		memcpy(&got, at, sizeof(got));
		if (got != m->expect)
			wrong(e, "an atomic (opcode %u) returns %#llx, not %#llx", m->opcode, (unsigned long long)got,
			      (unsigned long long)m->expect);
		e->mine->word[m->word] = m->after;
	}
	if (m->opcode == IBV_WR_BIND_MW) {
		e->mw_rkey = e->mw->rkey = m->id; /* the library leaves that to its caller */
		e->mw_state = MW_BOUND;
		e->mine->window = m->id;
		e->mine->window_serial++;
	}
}

static uint32_t send_statuses(const struct end *e, const struct msg *m, uint32_t ex)
{
	bool consumes = m->stream;
	uint32_t may = m->errs;

	if (!ex)
		return may;
	may |= BIT(IBV_WC_WR_FLUSH_ERR);
	if (e->type == CONN_IWARP)
		return may | (ex & (BAD | BAD_RECV | RACE | KILLED) ? ANY_REMOTE : 0);
	if (end_is_rc(e))
		may |= BIT(IBV_WC_RETRY_EXC_ERR);
	if (ex & RACE && (!consumes || m->in_target))
		may |= BIT(IBV_WC_REM_ACCESS_ERR);
	if (ex & KILLED) /* its memory or regions may be released before its queue pair */
		may |= BIT(IBV_WC_REM_OP_ERR) | BIT(IBV_WC_REM_ACCESS_ERR);
	if (ex & BAD_RECV && consumes)
		may |= BIT(IBV_WC_REM_INV_REQ_ERR) | BIT(IBV_WC_REM_OP_ERR);
	return may;
}

void msg_unsure(struct end *e, const struct msg *m)
{
	if (m->in_target)
		e->mine->unsure |= BIT(m->off / SLOT);
	if (is_atomic(m->opcode))
		e->mine->unsure_words |= BIT(m->word);
}

static void msg_failed(struct end *e, struct msg *m, const struct ibv_wc *wc)
{
	uint32_t ex = end_excuses(e);

	file->head.proc[prog.index].errors++;
	if (e->failed && wc->status != IBV_WC_WR_FLUSH_ERR)
		wrong(e, "request %u behind one that has failed: %s", m->seq, ibv_wc_status_str(wc->status));
	if (!e->failed && !(send_statuses(e, m, ex) & BIT(wc->status)))
		wrong(e, "request %u, opcode %u, of %u bytes%s: %s", m->seq, m->opcode, m->len,
		      m->must_fail ? ", which is wrong" : "", ibv_wc_status_str(wc->status));
	msg_unsure(e, m);
	e->failed = true;
	end_stop(e);
}

bool traffic_expects(const struct end *e)
{
	uint32_t i;

	for (i = e->sq_tail; i != e->sq_head; i++)
		if (e->sq[i % RING].signaled || e->failed)
			return true;
	return false;
}

void traffic_abandon(struct end *e)
{
	e->abandoned = e->sq_head - e->sq_tail;
	for (; e->sq_tail != e->sq_head; e->sq_tail++)
		msg_unsure(e, &e->sq[e->sq_tail % RING]);
}

static void msg_done(struct end *e, struct msg *m)
{
	if (m->busy_slot)
		e->local_busy &= ~BIT(m->slot);
	e->sq_tail++;
}

static void on_send(struct end *e, const struct ibv_wc *wc, uint32_t seq)
{
	uint32_t left = (e->sq_head - seq) & 0x7fffffff;
	struct msg *m;

	/* They may be flushed some time after the QP enters the error state, each once and in order. */
	if (wc->status == IBV_WC_WR_FLUSH_ERR && left && left <= e->abandoned) {
		e->abandoned = left - 1;
		return;
	}
	while (1) {
		m = &e->sq[e->sq_tail % RING];
		if (e->sq_tail == e->sq_head)
			wrong(e, "request %u completes (status %u), which is not posted, or completes twice", seq,
			      wc->status);
		if (!((e->sq_tail ^ seq) & 0x7fffffff))
			break;
		if (m->signaled || e->failed)
			wrong(e, "request %u completes (status %u), but not %u before it", seq, wc->status, e->sq_tail);
		msg_succeeded(e, m);
		msg_done(e, m);
	}
	if (wc->status == IBV_WC_SUCCESS) {
		if (e->failed)
			wrong(e, "request %u succeeds behind one that has failed", seq);
		if (!m->signaled)
			wrong(e, "request %u, which is not signaled, has a completion", seq);
		if (wc->opcode != wc_opcode(m->opcode))
			wrong(e, "request %u, opcode %u, completes as %u", seq, m->opcode, wc->opcode);
		msg_succeeded(e, m);
	} else {
		msg_failed(e, m, wc);
	}
	msg_done(e, m);
}

static struct end *end_of(uint64_t id)
{
	uint32_t i;

	for (i = 0; i < prog.ends; i++)
		if (prog.end[i]->index == (id >> 48 & 0xff) && prog.end[i]->side == id >> 56)
			return prog.end[i];
	wrong(NULL, "a completion has wr_id %#llx", (unsigned long long)id);
}

static bool cq_poll(struct ibv_cq *cq)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, 16, wc), i;

	if (n < 0)
		wrong(NULL, "poll_cq: %d", n);
	for (i = 0; i < n; i++) {
		struct end *e = end_of(wc[i].wr_id);

		if ((wc[i].wr_id >> 32 & 0xffff) != (e->gen & 0xffff) || !e->qpn)
			continue; /* of a destroyed SRQ */
		file->head.proc[prog.index].completions++;
		if (wc[i].qp_num != e->qpn)
			wrong(e, "a completion of QP %#x", wc[i].qp_num);
		if (wc[i].wr_id & 1u << 31)
			on_recv(e, &wc[i], wc[i].wr_id & 0x7fffffff);
		else
			on_send(e, &wc[i], wc[i].wr_id & 0x7fffffff);
	}
	return n > 0;
}

static bool own_poll(struct end *e, struct ibv_cq *cq, uint32_t queue)
{
	bool got = cq_poll(cq);

	if (got && e->armed[queue] && !e->armed_at[queue])
		e->armed_at[queue] = now_ms();
	return got;
}

void traffic_poll(struct end *e)
{
	while (cq_poll(prog.cq) || (e->own_cq && own_poll(e, e->scq, 0)) || (e->own_rcq && own_poll(e, e->rcq, 1)))
		;
}

static bool channel_event(void)
{
	struct ibv_cq *cq;
	struct end *e;
	void *ctx;

	if (ibv_get_cq_event(prog.channel, &cq, &ctx))
		return false;
	e = ctx;
	ibv_ack_cq_events(cq, 1);
	if (cq != e->scq && cq != e->rcq)
		wrong(e, "an event of a completion queue that is gone");
	if (!e->armed[cq != e->scq])
		wrong(e, "an event of a completion queue that is not armed");
	e->armed[cq != e->scq] = false;
	e->armed_at[cq != e->scq] = 0;
	return true;
}

bool traffic_poll_all(void)
{
	bool busy = cq_poll(prog.cq);
	uint32_t i;

	while (channel_event())
		busy = true;
	for (i = 0; i < prog.ends; i++) {
		struct end *e = prog.end[i];

		if (e->own_cq)
			busy |= own_poll(e, e->scq, 0);
		if (e->own_rcq)
			busy |= own_poll(e, e->rcq, 1);
	}
	return busy;
}

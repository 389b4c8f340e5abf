// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests and completions. A request that succeeds has moved exactly its bytes, signaled requests complete once and in order, messages
 * come once and in order, and the status of a request that fails is one that it was posted for, or one of the connection's excuses.
 */
#include "chaos.h"

#include <errno.h>
#include <string.h>

#define BIT(n)     (1u << (n))
#define ANY_REMOTE (BIT(IBV_WC_REM_ACCESS_ERR) | BIT(IBV_WC_REM_OP_ERR) | BIT(IBV_WC_REM_INV_REQ_ERR))
#define ALL_PARTS  ((1u << TARGETS) - 1)

uint8_t pattern(uint32_t id, uint32_t i)
{
	return (uint8_t)((id + (i >> 2) * 0x85ebca6bu) * 0x9e3779b1u >> (i & 3) * 8);
}

static void pattern_fill(uint8_t *at, uint32_t id, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		at[i] = pattern(id, i);
}

/* The first byte that differs, or @len. */
static uint32_t pattern_differs(const uint8_t *at, uint32_t id, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len && at[i] == pattern(id, i); i++)
		;
	return i;
}

static uint64_t wr_id(const struct end *e, bool recv, uint32_t seq)
{
	return (uint64_t)e->index << 48 | (uint64_t)e->side << 56 | (uint64_t)(e->gen & 0xffff) << 32 |
	       (uint64_t)recv << 31 | (seq & 0x7fffffff);
}

void traffic_reset(struct end *e)
{
	struct end_shared *m = e->mine;

	e->sq_head = e->sq_tail = e->unsignaled = e->local_busy = 0;
	e->rq_head = e->rq_tail = e->stream_at = 0;
	e->rq_failed = false;
	e->rq_depth = 4 + draw(RECVS - 3);
	e->inv_serial = 0;
	memset(e->posted, 0, sizeof(e->posted));
	memset(e->posted_word, 0, sizeof(e->posted_word));
	memset(e->target, 0, TARGET_BYTES + WORDS * 8);
	memset(m->shadow, 0, sizeof(m->shadow));
	memset(m->word, 0, sizeof(m->word));
	m->unsure = e->type == CONN_UC || e->type == CONN_UD ? ALL_PARTS : 0;
	m->unsure_words = 0;
	m->sent = m->acked = m->posted = m->received = 0;
	m->window = m->window_serial = 0;
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

/* The message of the peer's stream that has come. */
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

static bool may_lose(const struct end *e)
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
	if (s->opcode != IBV_WR_RDMA_WRITE_WITH_IMM || e->his->version[part] != s->version || may_lose(e))
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
	/* A fault may repeat them and change their order; on UC, too, a first or only packet begins a message whatever its PSN is (9.8.2.2). */
	if (!end_is_rc(e) && end_excuses(e) & LOST) {
		at = end > STREAM ? end - STREAM : 0;
		s = &e->his->stream[at % STREAM];
	}
	for (; at != end && !is_message(e, s, wc, data); s = &e->his->stream[++at % STREAM])
		if (!s->bad && !may_lose(e))
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
		if (e->rq_failed && e->type != CONN_UD) /* a datagram's error is its own */
			wrong(e, "a receive succeeds behind one that has failed");
		message_received(e, wc, seq);
		return;
	}
	file->head.proc[prog.index].errors++;
	if (!(recv_statuses(e, e->rq[seq % RING].bad, ex) & BIT(wc->status)))
		wrong(e, "receive %u: %s", seq, ibv_wc_status_str(wc->status));
	e->rq_failed |=
		wc->status != IBV_WC_LOC_LEN_ERR || end_is_rc(e); /* too short a receive ends a message of UC alone */
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

static bool is_atomic(uint8_t opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static uint8_t *local(const struct end *e, const struct msg *m)
{
	return e->mem + (size_t)m->slot * SLOT;
}

static void msg_succeeded(struct end *e, struct msg *m)
{
	uint8_t *at = local(e, m);
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
	if (ex & KILLED) /* its memory, or its regions, may be gone before its queue pair is */
		may |= BIT(IBV_WC_REM_OP_ERR) | BIT(IBV_WC_REM_ACCESS_ERR);
	if (ex & BAD_RECV && consumes)
		may |= BIT(IBV_WC_REM_INV_REQ_ERR) | BIT(IBV_WC_REM_OP_ERR);
	return may;
}

static void msg_unsure(struct end *e, const struct msg *m)
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
	struct msg *m;

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
			continue; /* of an SRQ that is gone */
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

/* ---- requests ---- */

static bool has_slot(const struct end *e)
{
	return e->local_busy != (1u << LOCALS) - 1;
}

static uint32_t slot_get(struct end *e)
{
	uint32_t i = draw(LOCALS);

	while (e->local_busy & BIT(i))
		i = (i + 1) % LOCALS;
	e->local_busy |= BIT(i);
	return i;
}

static struct msg *msg_new(struct end *e, uint8_t opcode)
{
	struct msg *m = &e->sq[e->sq_head % RING];

	m->seq = e->sq_head;
	m->id = e->index << 26 ^ e->side << 25 ^ e->gen << 16 ^ e->sq_head;
	m->opcode = opcode;
	m->errs = m->len = m->off = m->word = 0;
	m->must_fail = m->stream = m->in_target = false;
	m->busy_slot = true;
	m->slot = slot_get(e);
	m->signaled = e->type == CONN_UD || e->unsignaled >= 6 || chance(700);
	e->unsignaled = m->signaled ? 0 : e->unsignaled + 1;
	return m;
}

/* One to three parts of the local buffer. */
static int sges(const struct end *e, const struct msg *m, struct ibv_sge *sge, bool one)
{
	uint32_t at = 0, n = one || m->len < 8 ? 1 : 1 + draw(3), i;

	for (i = 0; i < n; i++) {
		uint32_t len = i + 1 == n ? m->len - at : draw(m->len - at + 1);

		sge[i] = (struct ibv_sge){ (uintptr_t)local(e, m) + at, len, e->mr->lkey };
		at += len;
	}
	return m->len || chance(500) ? (int)n : 0;
}

static void msg_post(struct end *e, struct msg *m, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err;

	wr->opcode = m->opcode;
	wr->wr_id = wr_id(e, false, m->seq);
	wr->send_flags |= (m->signaled ? IBV_SEND_SIGNALED : 0) | (chance(100) ? IBV_SEND_SOLICITED : 0);
	if (end_is_rc(e) && chance(20))
		wr->send_flags |= IBV_SEND_FENCE;
	m->at = now_ms();
	e->sq_head++;
	err = ibv_post_send(e->qp, wr, &bad);
	if (err && !end_excuses(e))
		wrong(e, "post_send of opcode %u, %u bytes: %s", m->opcode, m->len, strerror(err));
	if (err) { /* it is as if it had not been there */
		e->sq_head--;
		if (m->busy_slot)
			e->local_busy &= ~BIT(m->slot);
		msg_unsure(e, m);
		end_stop(e);
	}
	count_op();
	file->head.proc[prog.index].posted++;
}

static uint32_t length(uint32_t max)
{
	return chance(400) ? 1 + draw(64) : 1 + draw(max);
}

static bool may_send(const struct end *e)
{
	uint32_t sent = e->mine->sent, more = e->type == CONN_RC || e->type == CONN_CM ? 2 : 0;

	if (e->type == CONN_IWARP && !e->side && !e->stream_at)
		return false; /* the initiator of MPA sends first */
	return sent - e->his->received < STREAM - 8 && (int32_t)(sent - e->his->posted) < (int32_t)more;
}

static void stream_add(struct end *e, struct msg *m, const struct sent *s)
{
	e->mine->stream[e->mine->sent % STREAM] = *s;
	e->mine->sent++;
	m->stream = true;
}

/* A window of the peer's that this end has not invalidated. */
static uint32_t window_of(const struct end *e)
{
	uint32_t serial = e->his->window_serial;

	return serial && serial != e->inv_serial && e->type != CONN_IWARP ? e->his->window : 0;
}

/* Is a READ under way from one of these parts of the target? */
static bool is_read(const struct end *e, uint32_t parts)
{
	uint32_t i;

	for (i = e->sq_tail; i != e->sq_head; i++)
		if (e->sq[i % RING].opcode == IBV_WR_RDMA_READ && BIT(e->sq[i % RING].off / SLOT) & parts)
			return true;
	return false;
}

static bool op_send(struct end *e)
{
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = { .sg_list = sge };
	struct sent s = { 0 };
	struct msg *m;
	uint32_t window = window_of(e);

	if (!may_send(e))
		return false;
	m = msg_new(e, e->type != CONN_IWARP && chance(250) ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND);
	m->len = length(RECV_SIZE);
	if (window && chance(150)) {
		m->opcode = IBV_WR_SEND_WITH_INV;
		wr.invalidate_rkey = window;
		e->inv_serial = e->his->window_serial;
		e->mw_stale = window;
		s.inv = true;
		if (is_read(e, ALL_PARTS))
			wr.send_flags |= IBV_SEND_FENCE;
	}
	s.id = m->id;
	s.len = m->len;
	s.opcode = m->opcode;
	s.imm = m->id * 7;
	pattern_fill(local(e, m), m->id, m->len);
	wr.num_sge = sges(e, m, sge, false);
	if (m->opcode == IBV_WR_SEND_WITH_IMM)
		wr.imm_data = s.imm;
	if (m->len <= INLINE && e->type != CONN_IWARP && chance(300))
		wr.send_flags |= IBV_SEND_INLINE;
	if (e->type == CONN_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->his->qpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	stream_add(e, m, &s);
	msg_post(e, m, &wr);
	return true;
}

static uint32_t key_of(const struct end *e)
{
	uint32_t window = window_of(e);

	return window && chance(600) ? window : e->his->rkey;
}

static bool op_write(struct end *e)
{
	bool imm = e->type != CONN_IWARP && chance(250);
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = { .sg_list = sge };
	struct msg *m;
	uint32_t part = draw(TARGETS);

	if (e->type == CONN_UD || (imm && !may_send(e)) || (e->type == CONN_IWARP && !e->side && !e->stream_at))
		return false;
	m = msg_new(e, imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE);
	m->len = chance(20) ? 0 : length(SLOT);
	m->off = part * SLOT + draw(SLOT - m->len + 1);
	m->in_target = true;
	pattern_fill(local(e, m), m->id, m->len);
	pattern_fill(e->posted + m->off, m->id, m->len);
	wr.num_sge = sges(e, m, sge, false);
	if (is_read(e, BIT(part))) /* which a WRITE may overtake (IBTA 10.8.3.3) */
		wr.send_flags |= IBV_SEND_FENCE;
	if (m->len <= INLINE && e->type != CONN_IWARP && chance(300))
		wr.send_flags |= IBV_SEND_INLINE;
	wr.wr.rdma.remote_addr = e->his->target + m->off;
	wr.wr.rdma.rkey = key_of(e);
	e->mine->version[part]++;
	if (imm) {
		struct sent s = { .id = m->id,
				  .len = m->len,
				  .imm = m->id * 7,
				  .opcode = m->opcode,
				  .off = m->off,
				  .version = e->mine->version[part] };

		wr.imm_data = s.imm;
		stream_add(e, m, &s);
	}
	msg_post(e, m, &wr);
	return true;
}

static void read_post(struct end *e, uint32_t off, uint32_t len)
{
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = { .sg_list = sge };
	struct msg *m = msg_new(e, IBV_WR_RDMA_READ);

	m->len = len;
	m->off = off;
	if (e->state == CLOSING)
		m->signaled = true;
	memcpy(m->data, e->posted + m->off, m->len);
	memset(local(e, m), 0xa5, SLOT);
	wr.num_sge = sges(e, m, sge, e->type == CONN_IWARP);
	wr.wr.rdma.remote_addr = e->his->target + m->off;
	wr.wr.rdma.rkey = e->state == CLOSING ? e->his->rkey : key_of(e);
	msg_post(e, m, &wr);
}

static bool op_read(struct end *e)
{
	uint32_t len = length(SLOT), off = draw(TARGETS) * SLOT + draw(SLOT - len + 1);

	if (!end_is_rc(e) || (e->type == CONN_IWARP && !e->side && !e->stream_at))
		return false;
	read_post(e, off, len);
	return true;
}

static bool op_atomic(struct end *e)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct msg *m;
	uint32_t word = draw(WORDS);

	if (e->type != CONN_RC && e->type != CONN_CM)
		return false;
	m = msg_new(e, chance(500) ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP);
	m->word = word;
	m->expect = m->after = e->posted_word[word];
	sge = (struct ibv_sge){ (uintptr_t)local(e, m), 8, e->mr->lkey };
	wr.wr.atomic.remote_addr = e->his->target + TARGET_BYTES + word * 8;
	wr.wr.atomic.rkey = e->his->rkey;
	wr.wr.atomic.swap = m->id;
	wr.wr.atomic.compare_add = m->id;
	if (m->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		m->after = m->expect + m->id;
	else if (chance(700)) {
		wr.wr.atomic.compare_add = m->expect;
		m->after = m->id;
	} else if (m->expect == m->id) {
		m->after = m->id;
	}
	e->posted_word[word] = m->after;
	msg_post(e, m, &wr);
	return true;
}

static bool op_bind(struct end *e)
{
	struct ibv_send_wr wr = { 0 };
	struct msg *m;

	if (!e->mw || e->mw_state != MW_IDLE || !e->target_mr)
		return false;
	m = msg_new(e, IBV_WR_BIND_MW);
	e->local_busy &= ~BIT(m->slot);
	m->busy_slot = false;
	m->signaled = true;
	m->id = ibv_inc_rkey(e->mw_rkey);
	wr.bind_mw.mw = e->mw;
	wr.bind_mw.rkey = m->id;
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){ .mr = e->target_mr,
					   .addr = (uintptr_t)e->target,
					   .length = TARGET_BYTES,
					   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	e->mw_state = MW_BINDING;
	msg_post(e, m, &wr);
	return true;
}

/* ---- wrong requests ---- */

static uint32_t bad_lkey(const struct end *e)
{
	switch (draw(3)) {
	case 0:
		return prog.revoked_lkey;
	case 1:
		return prog.other_mr->lkey;
	default:
		return e->mr->lkey ^ (1 + draw(255));
	}
}

/* A key of the peer's that does not work, and its address. */
static void bad_rkey(const struct end *e, struct ibv_send_wr *wr)
{
	struct proc_shared *ps = &file->proc[e->peer];

	wr->wr.rdma.remote_addr = ps->addr;
	switch (draw(5)) {
	case 0:
		wr->wr.rdma.rkey = ps->revoked;
		return;
	case 1:
		wr->wr.rdma.rkey = ps->other_pd;
		return;
	case 2:
		wr->wr.rdma.rkey = ps->no_rights;
		return;
	case 3:
		wr->wr.rdma.remote_addr = e->his->target + TARGET_BYTES + WORDS * 8 - draw(8);
		wr->wr.rdma.rkey = e->his->rkey;
		return;
	default:
		wr->wr.rdma.remote_addr = e->his->target;
		wr->wr.rdma.rkey =
			e->mw_stale && e->inv_serial == e->his->window_serial ? e->mw_stale : e->his->rkey ^ 0x5a;
	}
}

static bool bad_request(struct end *e, uint8_t opcode, bool rkey, uint32_t len, uint32_t errs)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct sent s = { .bad = true };
	struct msg *m;

	if (opcode == IBV_WR_SEND && !may_send(e))
		return false;
	end_excuse(e, BAD);
	m = msg_new(e, opcode);
	m->len = len;
	m->errs = errs;
	m->must_fail = e->type != CONN_IWARP || opcode == IBV_WR_RDMA_READ || errs == BIT(IBV_WC_LOC_PROT_ERR);
	if (opcode == IBV_WR_RDMA_READ)
		memcpy(m->data, e->posted, len);
	sge = (struct ibv_sge){ (uintptr_t)local(e, m), len,
				rkey || errs != BIT(IBV_WC_LOC_PROT_ERR) ? e->mr->lkey : bad_lkey(e) };
	wr.wr.rdma.remote_addr = e->his->target;
	wr.wr.rdma.rkey = e->his->rkey;
	if (opcode == IBV_WR_RDMA_WRITE) { /* a part of it may be there when it fails */
		m->in_target = true;
		e->mine->version[0]++;
	}
	if (rkey)
		bad_rkey(e, &wr);
	if (e->type == CONN_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->his->qpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	if (opcode == IBV_WR_SEND)
		stream_add(e, m, &s);
	msg_post(e, m, &wr);
	return true;
}

static bool bad_atomic(struct end *e)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct msg *m;

	if (e->type != CONN_RC && e->type != CONN_CM)
		return false;
	end_excuse(e, BAD);
	m = msg_new(e, IBV_WR_ATOMIC_FETCH_AND_ADD);
	m->errs = BIT(IBV_WC_REM_INV_REQ_ERR);
	m->must_fail = true;
	sge = (struct ibv_sge){ (uintptr_t)local(e, m), 8, e->mr->lkey };
	wr.wr.atomic.remote_addr = e->his->target + TARGET_BYTES + 1 + draw(7);
	wr.wr.atomic.rkey = e->his->rkey;
	msg_post(e, m, &wr);
	return true;
}

/* Datagrams to a QP that is not there, or with a Q_Key that is not its own: they vanish. */
static bool vanishing(struct end *e)
{
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = { .sg_list = sge };
	struct msg *m = msg_new(e, IBV_WR_SEND);

	m->len = length(RECV_SIZE);
	wr.num_sge = sges(e, m, sge, false);
	wr.wr.ud.ah = e->ah;
	wr.wr.ud.remote_qpn = chance(500) ? e->his->qpn : 0xfffff0;
	wr.wr.ud.remote_qkey = QKEY ^ 0x77;
	msg_post(e, m, &wr);
	return true;
}

static bool op_bad(struct end *e)
{
	if (without(WITHOUT_BAD) || (e->type == CONN_IWARP && !e->side && !e->stream_at))
		return false;
	switch (draw(end_is_rc(e) ? 7 : e->type == CONN_UC ? 2 : 1)) {
	case 0:
		return e->type == CONN_UD && chance(900)
			       ? vanishing(e)
			       : bad_request(e, IBV_WR_SEND, false, length(RECV_SIZE), BIT(IBV_WC_LOC_PROT_ERR));
	case 1:
		return bad_request(e, IBV_WR_RDMA_WRITE, false, length(SLOT), BIT(IBV_WC_LOC_PROT_ERR));
	case 2:
		return bad_request(e, IBV_WR_RDMA_READ, true, 8 + draw(SLOT - 8), BIT(IBV_WC_REM_ACCESS_ERR));
	case 3:
		return bad_request(e, IBV_WR_RDMA_WRITE, true, 8 + draw(SLOT - 8), BIT(IBV_WC_REM_ACCESS_ERR));
	case 4:
		return bad_request(e, IBV_WR_SEND, false, RECV_SIZE + 1 + draw(SLOT - RECV_SIZE - 1),
				   BIT(IBV_WC_REM_INV_REQ_ERR));
	case 5:
		return bad_atomic(e);
	default:
		return bad_request(e, IBV_WR_RDMA_READ, false, 8 + draw(SLOT - 8), BIT(IBV_WC_LOC_PROT_ERR));
	}
}

/* ---- operations on the queue pair ---- */

static bool op_stop(struct end *e)
{
	end_excuse(e, STOPPED);
	end_stop(e); /* end_step() takes it to the error state */
	count_op();
	return true;
}

static bool op_close(struct end *e)
{
	e->conn->closing = e->gen; /* end_step() goes on */
	count_op();
	return true;
}

static bool op_race(struct end *e)
{
	int err;

	if (e->mw_state != MW_IDLE || !e->target_mr || without(WITHOUT_BAD))
		return false;
	end_excuse(e, RACE);
	err = ibv_dereg_mr(e->target_mr);
	if (err)
		wrong(e, "dereg_mr: %s", strerror(err));
	e->target_mr = NULL;
	count_op();
	return true;
}

static void to_state(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };
	int err = ibv_modify_qp(e->qp, &a, IBV_QP_STATE);

	if (err && !end_excuses(e))
		wrong(e, "modify_qp to %u: %s", state, strerror(err));
	count_op();
}

static bool op_sqd(struct end *e)
{
	if (e->type != CONN_RC && e->type != CONN_UC && e->type != CONN_UD)
		return false;
	to_state(e, IBV_QPS_SQD);
	e->sqd = now_ms();
	return true;
}

static void resume(struct end *e)
{
	if (e->sqd)
		to_state(e, IBV_QPS_RTS);
	e->sqd = 0;
}

static bool op_query(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	int err = ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init);

	if (err)
		wrong(e, "query_qp: %s", strerror(err));
	if (a.qp_state != (e->sqd ? IBV_QPS_SQD : IBV_QPS_RTS) && !end_excuses(e))
		wrong(e, "the queue pair is in state %u", a.qp_state);
	count_op();
	return true;
}

static bool op_notify(struct end *e)
{
	uint32_t queue = e->own_rcq && chance(500);
	int err;

	if (!(queue ? e->own_rcq : e->own_cq) || e->armed[queue])
		return false;
	err = ibv_req_notify_cq(queue ? e->rcq : e->scq, 0);
	if (err)
		wrong(e, "req_notify_cq: %s", strerror(err));
	e->armed[queue] = true;
	count_op();
	return true;
}

static bool op_resize(struct end *e)
{
	int err = e->own_cq ? ibv_resize_cq(e->scq, 2 * RING + (int)draw(200)) : 0;

	if (err)
		wrong(e, "resize_cq: %s", strerror(err));
	count_op();
	return true;
}

static const struct {
	uint32_t weight;
	bool (*op)(struct end *e);
} ops[] = {
	{ 1500, op_send }, { 800, op_write },  { 640, op_read }, { 360, op_atomic }, { 60, op_bind },
	{ 10, op_query },  { 100, op_notify }, { 4, op_resize }, { 4, op_sqd },      { 3, op_bad },
	{ 3, op_close },   { 1, op_stop },     { 1, op_race },
};

bool traffic_op(struct end *e)
{
	uint32_t sum = 0, i, at;

	if (e->failed || e->rq_failed || e->conn->want != e->gen || e->sq_head - e->sq_tail >= DEPTH - 2 ||
	    !has_slot(e))
		return false;
	for (i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		sum += ops[i].weight;
	if (e->type == CONN_IWARP && e->side && !e->sq_head)
		return op_send(e);
	at = draw(sum);
	for (i = 0; at >= ops[i].weight; i++)
		at -= ops[i].weight;
	if (ops[i].op(e))
		e->blocked = 0;
	else if (ops[i].op == op_send && !e->blocked)
		e->blocked = now_ms();
	else if (ops[i].op == op_send && now_ms() - e->blocked > 3000 && may_lose(e))
		e->conn->closing = e->gen; /* what is lost gives no credit back */
	else
		return false;
	return true;
}

/* The last request: all before it is there when it has completed. */
void traffic_closing_read(struct end *e)
{
	resume(e);
	if (e->sq_head - e->sq_tail >= DEPTH || !has_slot(e) || e->failed)
		return;
	e->closing_read = true;
	if (e->type == CONN_UD || (e->type == CONN_IWARP && !e->side && !e->stream_at))
		return;
	if (end_is_rc(e)) {
		read_post(e, draw(TARGET_BYTES), 1);
	} else {
		struct msg *m = msg_new(e, IBV_WR_RDMA_WRITE);
		struct ibv_send_wr wr = { .wr.rdma = { e->his->target, e->his->rkey } };

		m->signaled = true;
		msg_post(e, m, &wr);
	}
}

/* What both ends have drained: the peer's requests that succeeded are in the target, and the messages that it knows of have come. */
void traffic_check_target(struct end *e)
{
	const struct end_shared *h = e->his;
	const uint64_t *word = (const uint64_t *)(e->target + TARGET_BYTES);
	uint32_t part, i;

	if (!end_is_rc(e) || end_excuses(e) & KILLED)
		return;
	if (e->type == CONN_IWARP && (h->quiet < e->gen || e->mine->quiet < e->gen))
		return; /* a request of iWARP succeeds when it is sent */
	if (h->acked > e->mine->received)
		wrong(e, "%u messages of the peer's succeeded, %u came", h->acked, e->mine->received);
	for (part = 0; part < TARGETS; part++)
		for (i = part * SLOT; i < (part + 1) * SLOT && !(h->unsure & BIT(part)); i++)
			if (e->target[i] != h->shadow[i])
				wrong(e, "byte %u of the target is %#x, not %#x", i, e->target[i], h->shadow[i]);
	for (i = 0; i < WORDS; i++)
		if (!(h->unsure_words & BIT(i)) && word[i] != h->word[i])
			wrong(e, "word %u is %#llx, not %#llx", i, (unsigned long long)word[i],
			      (unsigned long long)h->word[i]);
}

void traffic_late(struct end *e)
{
	uint64_t now = now_ms();
	uint32_t i;

	if (e->state == GONE || e->state == DRAIN)
		return;
	if (e->sqd && now - e->sqd > 5)
		resume(e);
	for (i = e->sq_tail; i != e->sq_head && !e->sq[i % RING].signaled; i++)
		;
	if (i != e->sq_head && now - e->sq[i % RING].at > BOUND * 1000)
		wrong(e,
		      "request %u, opcode %u, has not completed for %u s; the peer has posted %u receives and got %u "
		      "of %u",
		      i, e->sq[i % RING].opcode, BOUND, e->his->posted, e->his->received, e->mine->sent);
	for (i = 0; i < 2; i++)
		if (e->armed_at[i] && now - e->armed_at[i] > BOUND * 1000)
			wrong(e, "no event of an armed completion queue for %u s", BOUND);
}

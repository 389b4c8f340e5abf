// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Completions and events, checked against the posted requests: order, status, bytes, and an excuse for each error. */
#include <stdio.h>
#include <string.h>

#include "rxe/chaos/model.h"

static bool serves(const struct end *e)
{
	u8 s = chaos_end_state(e);

	return s >= HCA_QPS_RTR && s <= HCA_QPS_SQE;
}

/* Send completions */

void chaos_msg_area_put(const struct msg *m, struct chaos_area *a, bool exact, const char *what)
{
	struct chaos_prog *p = a->prog;
	u32 unit = a->unit;
	bool there = chaos_area_mem(a);

	chaos_area_put(a, m->id, m->len, exact, false, what);
	if (m->window && there)
		p->taken[unit] = 1;
}

static void fetch_add_done(struct end *e, const struct msg *m, u64 old)
{
	struct chaos_prog *p = e->peer->prog;

	if (!chaos_area_mem(&m->remote))
		return;
	p->word[m->word].done++;
	if (old >= (u64)p->word[m->word].done + p->word[m->word].failed + RING * CONNS)
		chaos_end_fail(e, "a FETCH_ADD returns %llu, which nobody has added", (unsigned long long)old);
}

static void atomic_done(struct end *e, struct msg *m)
{
	u8 *at = chaos_area_mem(&m->local);
	u64 old;

	memcpy(&old, at, 8);
	if (m->opcode == HCA_WR_ATOMIC_FETCH_AND_ADD)
		fetch_add_done(e, m, old);
	else if (!e->cas_lost && old != m->expect)
		chaos_end_fail(e, "a COMPARE_SWAP returns %#llx instead of %#llx", (unsigned long long)old,
			       (unsigned long long)m->expect);
	chaos_area_put(&m->local, 0, 8, false, true, "the result of an atomic");
	m->remote.prog = NULL;
}

void chaos_msg_succeeded(struct end *e, struct msg *m)
{
	if (m->must_fail)
		chaos_end_fail(e, "message %u succeeded, which is wrong (opcode %u)", m->id, m->opcode);
	if (is_atomic(m->opcode)) {
		atomic_done(e, m);
		return;
	}
	if (m->opcode == HCA_WR_BIND_MW && e->window.state == WINDOW_BINDING) {
		e->window.state = WINDOW_BOUND;
		e->window.epoch++;
	} else if (m->opcode == HCA_WR_LOCAL_INV) {
		e->window.state = WINDOW_FREE;
	} else if (m->opcode == HCA_WR_SEND_WITH_INV) {
		e->peer->window.state = WINDOW_FREE;
	}
	if (m->local.prog)
		chaos_msg_area_put(m, &m->local, m->opcode == HCA_WR_RDMA_READ, "the local buffer");
	if (m->remote.prog && e->conn->type == HCA_QPT_RC) {
		chaos_msg_area_put(m, &m->remote, true, "the remote buffer");
	} else if (m->remote.prog) {
		e->under_way[e->nunder_way++] = *m;
		m->remote.prog = NULL;
	}
	if (m->window)
		e->peer->window.busy = false;
}

/* Its NAK is not lost: only this request fails, with its own status. */
static bool only_bad(const struct conn *c, const struct end *e)
{
	return !c->lossy && c->excuse == BAD && c->bads == 1 && c->bad_end == e;
}

/* It has waited for a receive until its RNR retries are exhausted, on a wire that duplicates no RNR NAK. */
static bool rnr_waited(const struct end *e)
{
	return chaos_now() - e->peer->recv_at >= e->conn->rnr_retry * 10000ull;
}

static bool error_excused(const struct end *e, const struct msg *m, u8 status)
{
	u32 excuse = e->conn->excuse;
	bool consumes = takes_recv(m->opcode), key = chaos_area_key_valid(&m->local);

	if (m->errs & BIT(status))
		return true;
	switch (status) {
	/*
	 * An RNR NAK is no progress: while a receive is missing, each lost one counts as a retry. A duplicate READ
	 * whose memory is no longer registered is dropped.
	 */
	case HCA_WC_RETRY_EXC_ERR:
		return e->conn->type == HCA_QPT_RC &&
		       (excuse & LOST || (e->conn->lossy && (consumes || excuse & (RACE | UNMAPPED))) ||
			(excuse && !only_bad(e->conn, e) && (e->peer->died || !serves(e->peer))));
	case HCA_WC_RNR_RETRY_EXC_ERR:
		return consumes && e->conn->rnr_retry != 7 && (e->conn->disorder || rnr_waited(e));
	case HCA_WC_REM_INV_REQ_ERR:
		return consumes && excuse & BAD_RECV;
	case HCA_WC_REM_OP_ERR:
		return excuse & UNMAPPED || (consumes && excuse & (BAD_RECV | RACE));
	case HCA_WC_LOC_PROT_ERR:
		return excuse & UNMAPPED || !key;
	case HCA_WC_REM_ACCESS_ERR:
		return !chaos_area_key_valid(&m->remote) || (m->window && !chaos_window_bound(e->peer, m)) ||
		       (m->opcode == HCA_WR_SEND_WITH_INV && excuse & RACE);
	}
	return false;
}

static void msg_failed(struct end *e, struct msg *m, u8 status)
{
	u8 s = chaos_end_state(e);

	chaos_stats->errors++;
	if (status == HCA_WC_WR_FLUSH_ERR ? !e->conn->excuse : e->failed || !error_excused(e, m, status))
		chaos_end_fail(e, "message %u (opcode %u, %u bytes) has status %u, expected 0%s%s", m->id, m->opcode,
			       m->len, status, m->errs ? " or its own" : "", e->failed ? " (after an error: 5)" : "");
	if (!chaos_model.in_callback && s != HCA_QPS_ERR && (e->conn->type == HCA_QPT_RC || s != HCA_QPS_SQE))
		chaos_end_fail(e, "message %u has status %u, and the queue pair goes on", m->id, status);
	e->failed = true;
	e->conn->excuse |= FAILED;
	if (m->opcode == HCA_WR_ATOMIC_FETCH_AND_ADD && chaos_area_mem(&m->remote))
		e->peer->prog->word[m->word].failed++;
	if (m->opcode == HCA_WR_ATOMIC_CMP_AND_SWP)
		e->cas_lost = true;
}

static void on_sent(struct end *e, const struct hca_cqe *cqe)
{
	u32 seq = (u32)cqe->token;

	if (seq - e->sq_tail >= e->sq_head - e->sq_tail)
		chaos_end_fail(e, "a completion of send request %u with status %u; those from %u to %u are out", seq,
			       cqe->status, e->sq_tail, e->sq_head);
	for (; e->sq_tail != seq; e->sq_tail++) {
		struct msg *m = &e->sq[e->sq_tail % RING];

		if ((m->signaled || e->failed) && !e->overrun)
			chaos_end_fail(e, "message %u has no completion", m->id);
		chaos_msg_succeeded(e, m);
	}
	if (!cqe->status) {
		struct msg *m = &e->sq[seq % RING];

		if (e->failed)
			chaos_end_fail(e, "message %u succeeds after an error", m->id);
		if (!m->signaled)
			chaos_end_fail(e, "message %u is not signaled, and completes", m->id);
		if (!e->conn->index && chaos_now() - m->posted > LATENCY)
			chaos_end_fail(e, "a bystander's message took %llu us",
				       (unsigned long long)(chaos_now() - m->posted) / 1000);
		chaos_msg_succeeded(e, m);
		e->sq_tail++;
	} else {
		/* its memory may still change: keep its areas until the connection is destroyed */
		msg_failed(e, &e->sq[seq % RING], cqe->status);
		e->sq_tail++;
	}
}

/* Receive completions */

static bool bytes_are(const u8 *at, u32 id, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		if (at[i] != chaos_byte(id, i))
			return false;
	return true;
}

static bool sent_is(const struct end *e, const struct sent *s, const struct recv *r, const struct hca_cqe *cqe)
{
	u32 grh = e->conn->type == HCA_QPT_UD ? 40 : 0;
	bool write = s->opcode == HCA_WR_RDMA_WRITE_WITH_IMM, imm = write || s->opcode == HCA_WR_SEND_WITH_IMM;
	bool inv = s->opcode == HCA_WR_SEND_WITH_INV;

	if (cqe->opcode != (write ? HCA_WC_RECV_RDMA_WITH_IMM : HCA_WC_RECV) || cqe->byte_len != s->len + grh)
		return false;
	if (!!(cqe->flags & HCA_WC_WITH_IMM) != imm || !!(cqe->flags & HCA_WC_WITH_INVALIDATE) != inv)
		return false;
	if ((imm || inv) && cqe->imm != s->imm)
		return false;
	return write || bytes_are(chaos_area_mem(&r->area) + grh, s->id, s->len);
}

/* The sent message that the completion belongs to; NULL: none. */
static const struct sent *sent_find(struct end *e, const struct recv *r, const struct hca_cqe *cqe)
{
	const struct end *from = e->peer;
	u32 i;

	if (e->conn->type == HCA_QPT_RC) {
		const struct sent *s = &from->stream[e->received % STREAM];

		if (e->received == from->sent || !sent_is(e, s, r, cqe))
			return NULL;
		e->received++;
		return s;
	}
	for (i = e->conn->disorder ? from->sent - min(from->sent, STREAM) : e->received; i != from->sent; i++)
		if (sent_is(e, &from->stream[i % STREAM], r, cqe)) {
			e->received = i + 1;
			return &from->stream[i % STREAM];
		}
	return NULL;
}

static void recv_succeeded(struct end *e, struct recv *r, const struct hca_cqe *cqe)
{
	const struct sent *s = sent_find(e, r, cqe);
	bool write = cqe->opcode == HCA_WC_RECV_RDMA_WITH_IMM;

	if (!s && e->conn->type == HCA_QPT_RC && e->received != e->peer->sent) {
		const struct sent *want = &e->peer->stream[e->received % STREAM];

		chaos_end_fail(
			e, "receive %u holds %u bytes, opcode %u, imm %#x; message %u has %u, opcode %u, imm %#x%s",
			r->id, cqe->byte_len, cqe->opcode, cqe->imm, want->id, want->len, want->opcode, want->imm,
			bytes_are(chaos_area_mem(&r->area), want->id, min(want->len, r->cap))
				? ""
				: ", and its bytes are others");
	}
	if (!s)
		chaos_end_fail(e, "receive %u holds %u bytes that nobody has sent (opcode %u)", r->id, cqe->byte_len,
			       cqe->opcode);
	if (e->conn->type == HCA_QPT_RC) /* RC: the rest of the buffer is unchanged */
		chaos_area_put(&r->area, s->id, write ? 0 : s->len, true, false, "the receive buffer");
	else
		chaos_area_put(&r->area, 0, r->cap, false, true, "the receive buffer");
	if (e->at_once)
		e->recv_at = chaos_now();
}

static bool recv_excused(const struct end *e, const struct recv *r, u8 status)
{
	u32 excuse = e->conn->excuse;

	switch (status) {
	case HCA_WC_WR_FLUSH_ERR:
		return excuse && (chaos_model.in_callback || chaos_end_state(e) == HCA_QPS_ERR);
	case HCA_WC_LOC_LEN_ERR:
		return r->cap < MAX_SEND;
	case HCA_WC_LOC_PROT_ERR:
		return r->bad || excuse & UNMAPPED || !chaos_area_key_valid(&r->area);
	case HCA_WC_LOC_ACCESS_ERR:
	case HCA_WC_LOC_QP_OP_ERR:
		return excuse & (BAD | RACE | UNMAPPED);
	}
	return false;
}

static void recv_failed(struct end *e, struct recv *r, u8 status)
{
	chaos_stats->errors++;
	if (!recv_excused(e, r, status) ||
	    (e->recv_failed && status != HCA_WC_WR_FLUSH_ERR && e->conn->type == HCA_QPT_RC))
		chaos_end_fail(e, "receive %u of %u bytes has status %u", r->id, r->cap, status);
	e->recv_failed = true;
	e->conn->excuse |= FAILED;
	chaos_area_put(&r->area, 0, r->area.len, false, true, "a receive buffer");
}

static struct recv *recv_of(struct end *e, u32 seq)
{
	if (e->srq) {
		struct recv *r = &e->srq->recv[seq % RING];

		if (e->srq->head - seq - 1 >= RING || !r->used)
			chaos_end_fail(e, "a completion of shared receive %u, which is not out", seq);
		r->used = false;
		return r;
	}
	if (seq != e->rq_tail || seq == e->rq_head)
		chaos_end_fail(e, "a completion of receive request %u; those from %u to %u are out", seq, e->rq_tail,
			       e->rq_head);
	e->rq_tail++;
	return &e->rq[seq % RING];
}

static void on_received(struct end *e, const struct hca_cqe *cqe)
{
	struct recv *r = recv_of(e, (u32)cqe->token);

	if (cqe->status) {
		recv_failed(e, r, cqe->status);
		return;
	}
	if (e->recv_failed && e->conn->type == HCA_QPT_RC)
		chaos_end_fail(e, "receive %u succeeds after an error", r->id);
	recv_succeeded(e, r, cqe);
}

void chaos_end_poll(struct end *e)
{
	static struct end *first;
	struct hca_cqe cqe;

	if (!first && e->peer->wq && chaos_end_state(e->peer) == HCA_QPS_ERR) {
		first = e;
		chaos_end_poll(e->peer); /* its error may be the cause of this end's error */
		first = NULL;
	}
	while (e->cq && hca_soft_cq_poll(e->cq, &cqe, 1)) {
		bool recv = cqe.token & TOKEN_RECV;

		if (chaos.verbose)
			fprintf(stderr, "%llu: conn %u end %d %s %u status %u opcode %u\n",
				(unsigned long long)chaos_now(), e->conn->index, (int)(e - e->conn->end),
				recv ? "recv" : "send", (u32)cqe.token, cqe.status, cqe.opcode);
		chaos_stats->completions++;
		if (cqe.qpn != e->qpn || cqe.status >= HCA_WC_STATUSES)
			chaos_end_fail(e, "a completion of queue pair %#x with status %u", cqe.qpn, cqe.status);
		if ((!recv || !e->srq) && (u32)(cqe.token >> 32 & 0xffffff) != (e->gen & 0xffffff))
			chaos_end_fail(e, "a completion of a request from before the reset");
		if (!cqe.status && recv != !!(cqe.opcode & 128))
			chaos_end_fail(e, "a completion with opcode %u of a %s", cqe.opcode, recv ? "receive" : "send");
		if (recv)
			on_received(e, &cqe);
		else
			on_sent(e, &cqe);
	}
	if (e->wq && chaos_end_state(e) == HCA_QPS_ERR) {
		e->died = true;
		if (!e->conn->excuse)
			chaos_end_fail(e, "the queue pair is in the error state for no reason");
	}
}

void chaos_end_ready(void *arg)
{
	struct end *e = arg;

	if (!e->at_once || e->no_poll)
		return;
	chaos_model.in_callback = true;
	chaos_end_poll(e);
	chaos_model.in_callback = false;
}

void chaos_poll_all(bool forced)
{
	u32 i;

	for (i = 0; i < 2 * CONNS; i++) {
		struct end *e = &chaos_model.conn[i / 2].end[i % 2];

		if (forced || !e->no_poll)
			chaos_end_poll(e);
	}
}

void chaos_end_event(struct chaos_prog *p, const struct hca_event *ev)
{
	u32 i;

	for (i = 0; i < 2 * CONNS; i++) {
		struct end *e = &chaos_model.conn[i / 2].end[i % 2];

		if (e->prog != p)
			continue;
		if (ev->type == HCA_EVENT_CQ_ERR && e->cq && hca_soft_cq_number(e->cq) == ev->number) {
			if (!e->no_poll)
				chaos_end_fail(e, "the CQ is said to have overrun");
			e->overrun = true;
			e->conn->excuse |= OVERRUN;
		}
		if (e->wq && e->qpn == ev->number &&
		    (ev->type == HCA_EVENT_QP_FATAL || ev->type == HCA_EVENT_QP_REQ_ERR ||
		     ev->type == HCA_EVENT_QP_ACCESS_ERR) &&
		    !e->conn->excuse)
			chaos_end_fail(e, "event %u for no reason", ev->type);
	}
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Traffic of an end: random requests and operations on its queue pair by weight, final checks, and late completions. */
#include "traffic.h"

#include <string.h>

void traffic_reset(struct end *e)
{
	struct end_shared *m = e->mine;

	e->sq_head = e->sq_tail = e->unsignaled = e->local_busy = 0;
	e->rq_head = e->rq_tail = e->stream_at = 0;
	e->abandoned = 0;
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

/* ---- operations on the queue pair ---- */

static bool op_stop(struct end *e)
{
	end_excuse(e, STOPPED);
	end_stop(e); /* end_step() moves it to the error state */
	count_op();
	return true;
}

static bool op_close(struct end *e)
{
	e->conn->closing = e->gen; /* end_step() continues */
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
	    !end_has_slot(e))
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
	else if (ops[i].op == op_send && now_ms() - e->blocked > 3000 && end_may_lose(e))
		e->conn->closing = e->gen; /* lost messages return no credit */
	else
		return false;
	return true;
}

/* The last request: its completion shows that all requests before it are in memory. */
void traffic_closing_read(struct end *e)
{
	resume(e);
	if (e->sq_head - e->sq_tail >= DEPTH || !end_has_slot(e) || e->failed)
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

/*
 * Checks when both ends have drained: the peer's requests that succeeded are in the target, and its messages were
 * received.
 */
void traffic_check_target(struct end *e)
{
	const struct end_shared *h = e->his;
	const uint64_t *word = (const uint64_t *)(e->target + TARGET_BYTES);
	uint32_t part, i;

	if (!end_is_rc(e) || end_excuses(e) & KILLED || h->made < e->gen)
		return; /* made < gen: a peer that has started again goes on with a later generation */
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

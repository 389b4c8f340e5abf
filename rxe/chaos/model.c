// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reference model: connections between programs, the requests posted on each queue, and the rules of verbs for them.
 *
 * Requests of a queue complete in order and once. Possible failures are known when a request is posted: an invalid
 * request has the statuses of the standard, and an event that may break a connection (a killed peer, a lost link, a
 * deregistered region) is added to its excuses before it happens. Without an excuse each request succeeds. A request
 * that succeeded has moved exactly its bytes.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rxe/chaos/model.h"

static const struct {
	enum hca_qp_type type;
	u8 host[2], prog[2];
	bool srq; /* of the second end */
} layout[CONNS] = {
	{ HCA_QPT_RC, { 0, 1 }, { 0, 0 }, false }, /* the bystanders */
	{ HCA_QPT_RC, { 0, 1 }, { 1, 1 }, false }, { HCA_QPT_RC, { 0, 1 }, { 2, 1 }, false },
	{ HCA_QPT_RC, { 0, 0 }, { 1, 2 }, false }, { HCA_QPT_UC, { 0, 1 }, { 1, 2 }, false },
	{ HCA_QPT_UD, { 0, 1 }, { 2, 2 }, false }, { HCA_QPT_RC, { 0, 1 }, { 1, 2 }, true },
	{ HCA_QPT_RC, { 0, 1 }, { 2, 2 }, true },
};

struct chaos_model chaos_model;

u8 chaos_end_state(const struct end *e)
{
	struct hca_qp_attr at;

	return !e->wq || hca_qp_query(e->prog->ctx, e->qpn, &at) ? HCA_QPS_RESET : at.state;
}

void chaos_end_fail(const struct end *e, const char *fmt, ...)
{
	static const char *const types[] = { "SMI", "GSI", "RC", "UC", "UD" };
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	chaos_fail("connection %u (%s%s) end %ld, excuses %#x, states %u and %u: %s", e->conn->index,
		   types[e->conn->type], e->srq ? ", SRQ" : "", (long)(e - e->conn->end), e->conn->excuse,
		   chaos_end_state(e), chaos_end_state(e->peer), text);
}

static bool is_spared(u32 qpn, u32 host)
{
	return chaos_model.conn[0].connected && chaos_model.conn[0].end[host].qpn == qpn;
}

static void wire_faults_set(void)
{
	static const struct chaos_wire wires[] = {
		{ 0, 0, 0, 0 },   { 0, 0, 0, 0 },   { 20, 0, 0, 0 },     { 10, 20, 10, 20 },
		{ 40, 0, 20, 0 }, { 0, 50, 0, 50 }, { 200, 20, 50, 50 },
	};
	u32 i;

	chaos.wire = wires[draw(ARRAY_SIZE(wires))];
	for (i = 1; i < CONNS; i++) {
		chaos_model.conn[i].disorder |= chaos.wire.late || chaos.wire.repeat;
		chaos_model.conn[i].lossy |= chaos.wire.lose || chaos.wire.damage;
		if (chaos.wire.lose > 100)
			chaos_model.conn[i].excuse |= LOST;
	}
}

static void unmapped_set(struct chaos_prog *p)
{
	if (p->unmapped_len) {
		p->unmapped_len = 0;
		return;
	}
	chaos_prog_excuse(p, UNMAPPED);
	p->unmapped = CHAOS_FIRST_UNIT * CHAOS_UNIT + draw(CHAOS_ARENA - CHAOS_FIRST_UNIT * CHAOS_UNIT - 4096);
	p->unmapped_len = 1 + draw(4096);
}

static void check_all(void)
{
	u32 i;

	for (i = 0; i < 2 * CHAOS_PROGS; i++)
		chaos_prog_check(&chaos.host[i / CHAOS_PROGS].prog[i % CHAOS_PROGS]);
}

static void move(struct end *e, u8 to, u8 from)
{
	struct hca_qp_attr at = { .state = to };

	if (!e->wq || (from && chaos_end_state(e) != from))
		return;
	if (hca_qp_modify(e->prog->ctx, e->qpn, &at, HCA_QP_STATE))
		chaos_end_fail(e, "the queue pair does not come from %u to %u", from, to);
}

static void repair(struct conn *c)
{
	u32 i;

	for (i = 0; i < 2 && c->type != HCA_QPT_RC; i++)
		if (chaos_end_state(&c->end[i]) == HCA_QPS_SQE) {
			chaos_end_poll(&c->end[i]);
			move(&c->end[i], HCA_QPS_RTS, HCA_QPS_SQE);
			c->end[i].failed = false;
		}
}

/* Operations on an end of a connection; @n: how often */

static void run_send(struct conn *c, struct end *e, u32 n)
{
	while (n--)
		chaos_send_one(e);
}

static void run_recv(struct conn *c, struct end *e, u32 n)
{
	while (n--)
		chaos_recv_one(e, MAX_SEND, false);
}

static void run_time(struct conn *c, struct end *e, u32 n)
{
	chaos_run(chance(50) ? draw(20000) : draw(3000000));
}

static void run_check(struct conn *c, struct end *e, u32 n)
{
	check_all();
}

static void run_wire(struct conn *c, struct end *e, u32 n)
{
	wire_faults_set();
}

static void run_busy(struct conn *c, struct end *e, u32 n)
{
	chaos_wire_busy(&chaos.host[draw(2)], draw(200000));
}

static void run_bind(struct conn *c, struct end *e, u32 n)
{
	chaos_window_bind(e);
}

static void run_window_write(struct conn *c, struct end *e, u32 n)
{
	chaos_window_write(e);
}

static void run_sqd(struct conn *c, struct end *e, u32 n)
{
	if (c->type == HCA_QPT_RC)
		move(e, HCA_QPS_SQD, HCA_QPS_RTS);
}

static void run_rts(struct conn *c, struct end *e, u32 n)
{
	move(&c->end[0], HCA_QPS_RTS, HCA_QPS_SQD);
	move(&c->end[1], HCA_QPS_RTS, HCA_QPS_SQD);
	repair(c);
}

static void run_bad_send(struct conn *c, struct end *e, u32 n)
{
	chaos_bad_send(e);
}

static void run_bad_recv(struct conn *c, struct end *e, u32 n)
{
	c->excuse |= BAD_RECV;
	if (e->srq) {
		chaos_model.conn[6].excuse |= BAD_RECV;
		chaos_model.conn[7].excuse |= BAD_RECV;
	}
	chaos_recv_one(e, chance(50) ? draw(100) : MAX_SEND, chance(50));
}

static void run_err(struct conn *c, struct end *e, u32 n)
{
	c->excuse |= STOPPED;
	move(e, HCA_QPS_ERR, chaos_end_state(e));
}

static void run_reconnect(struct conn *c, struct end *e, u32 n)
{
	chaos_conn_disconnect(c, false);
	chaos_conn_connect(c);
}

static void run_rebuild(struct conn *c, struct end *e, u32 n)
{
	chaos_conn_disconnect(c, true);
	chaos_conn_connect(c);
}

static void run_dereg(struct conn *c, struct end *e, u32 n)
{
	if (!e->prog->mr[1].live)
		return;
	chaos_prog_excuse(e->prog, RACE);
	chaos_mr_dereg(e->prog, 1);
}

static void run_reg(struct conn *c, struct end *e, u32 n)
{
	chaos_mr_reg(e->prog, 1);
}

static void run_invalidate(struct conn *c, struct end *e, u32 n)
{
	chaos_window_invalidate(e);
}

static void run_kill(struct conn *c, struct end *e, u32 n)
{
	chaos_prog_restart(e->prog);
}

static void run_down(struct conn *c, struct end *e, u32 n)
{
	u32 i;

	chaos_wire_down(draw(20000000));
	for (i = 1; i < CONNS; i++)
		chaos_model.conn[i].excuse |= LOST;
}

static void run_no_poll(struct conn *c, struct end *e, u32 n)
{
	e->no_poll = 1 + draw(40);
}

static void run_unmap(struct conn *c, struct end *e, u32 n)
{
	unmapped_set(e->prog);
}

/* Connection 0 is a bystander, which no operation may disturb. */
static const struct {
	void (*run)(struct conn *c, struct end *e, u32 n);
	bool disturbs;
} ops[CHAOS_KINDS] = {
	[CHAOS_SEND] = { run_send },
	[CHAOS_RECV] = { run_recv },
	[CHAOS_RUN] = { run_time },
	[CHAOS_BAD_SEND] = { run_bad_send, true },
	[CHAOS_BAD_RECV] = { run_bad_recv, true },
	[CHAOS_ERR] = { run_err, true },
	[CHAOS_RECONNECT] = { run_reconnect, true },
	[CHAOS_REBUILD] = { run_rebuild, true },
	[CHAOS_SQD] = { run_sqd, true },
	[CHAOS_RTS] = { run_rts },
	[CHAOS_DEREG] = { run_dereg, true },
	[CHAOS_REG] = { run_reg, true },
	[CHAOS_BIND] = { run_bind },
	[CHAOS_INVALIDATE] = { run_invalidate, true },
	[CHAOS_WINDOW_WRITE] = { run_window_write },
	[CHAOS_KILL] = { run_kill, true },
	[CHAOS_WIRE] = { run_wire },
	[CHAOS_DOWN] = { run_down, true },
	[CHAOS_BUSY] = { run_busy },
	[CHAOS_NO_POLL] = { run_no_poll, true },
	[CHAOS_UNMAP] = { run_unmap, true },
	[CHAOS_CHECK] = { run_check },
};

static void run_op(const struct chaos_op *op)
{
	struct conn *c = &chaos_model.conn[op->conn % CONNS];
	struct end *e = &c->end[draw(2)];
	u32 n = 1 + draw(chance(20) ? DEPTH : 3);

	if (ops[op->kind].run && (c->index || !ops[op->kind].disturbs))
		ops[op->kind].run(c, e, n);
}

void chaos_model_run(const struct chaos_op *op)
{
	u32 i;

	chaos_model.rng.state = op->r;
	chaos.rng.state = op->r ^ 0x77697265;
	chaos_stats->ops++;
	if (chaos.verbose)
		fprintf(stderr, "%llu: %s %d\n", (unsigned long long)chaos_now(), chaos_kind_name(op->kind),
			op->conn % CONNS);
	run_op(op);
	if (chance(60))
		chaos_run(chance(80) ? 0 : draw(5000));
	chaos_poll_all(false);
	for (i = 0; i < 2 * CONNS; i++) {
		struct end *e = &chaos_model.conn[i / 2].end[i % 2];

		e->no_poll -= !!e->no_poll;
	}
}

void chaos_model_open(u64 seed)
{
	u32 i, k;

	memset(&chaos_model, 0, sizeof(chaos_model));
	chaos_model.rng.state = seed;
	chaos.spared = is_spared;
	chaos.event = chaos_end_event;
	chaos_srq_open(&chaos.host[1].prog[2]);
	for (i = 0; i < CONNS; i++) {
		struct conn *c = &chaos_model.conn[i];

		c->type = layout[i].type;
		c->index = i;
		for (k = 0; k < 2; k++) {
			struct end *e = &c->end[k];

			e->conn = c;
			e->peer = &c->end[!k];
			e->prog = &chaos.host[layout[i].host[k]].prog[layout[i].prog[k]];
			e->srq = k && layout[i].srq ? &chaos_model.srq : NULL;
		}
		chaos_conn_connect(c);
	}
}

/* All faults are removed: requests that can complete do so. */
static void quiesce(void)
{
	u32 i, round;

	chaos.wire = (struct chaos_wire){ 0 };
	chaos.down_until = 0;
	for (i = 0; i < 2 * CONNS; i++) {
		chaos_model.conn[i / 2].end[i % 2].no_poll = 0;
		move(&chaos_model.conn[i / 2].end[i % 2], HCA_QPS_RTS, HCA_QPS_SQD);
	}
	for (round = 0; round < 8; round++) {
		for (i = 0; i < 2 * CONNS; i++)
			while (chaos_recv_room(&chaos_model.conn[i / 2].end[i % 2])) {
				u32 before = hca_soft_wq_recvs(chaos_model.conn[i / 2].end[i % 2].wq);

				chaos_recv_one(&chaos_model.conn[i / 2].end[i % 2], MAX_SEND, false);
				if (hca_soft_wq_recvs(chaos_model.conn[i / 2].end[i % 2].wq) == before)
					break;
			}
		chaos_run(20 * NSEC_PER_MSEC);
		chaos_poll_all(true);
	}
}

/*
 * Or it cannot complete for another reason. There may be no memory left for receives, since failed requests keep their
 * areas.
 */
static bool waits_for_recv(const struct end *e)
{
	const struct end *to = e->peer;

	if (!e->wq || chaos_end_state(e) != HCA_QPS_RTS || e->overrun)
		return true;
	return e->sq_tail != e->sq_head && to->wq && !hca_soft_wq_recvs(to->srq ? to->srq->wq : to->wq);
}

void chaos_model_close(void)
{
	u32 i;

	quiesce();
	for (i = 0; i < 2 * CONNS; i++)
		if (!waits_for_recv(&chaos_model.conn[i / 2].end[i % 2]))
			chaos_end_check_sends(&chaos_model.conn[i / 2].end[i % 2]);
	for (i = 0; i < 2 * CHAOS_PROGS; i++)
		chaos_words_check(&chaos.host[i / CHAOS_PROGS].prog[i % CHAOS_PROGS]);
	chaos_srq_check();
	for (i = 0; i < 2 * CONNS; i++) {
		chaos_model.conn[i / 2].excuse |= STOPPED;
		move(&chaos_model.conn[i / 2].end[i % 2], HCA_QPS_ERR,
		     chaos_end_state(&chaos_model.conn[i / 2].end[i % 2]));
	}
	chaos_run(NSEC_PER_MSEC);
	chaos_poll_all(true);
	for (i = 0; i < 2 * CONNS; i++)
		chaos_end_check_flushed(&chaos_model.conn[i / 2].end[i % 2]);
	for (i = 0; i < CONNS; i++) {
		chaos_conn_disconnect(&chaos_model.conn[i], true);
		if (chaos_model.conn[i].end[0].window.there)
			hca_mw_free(chaos_model.conn[i].end[0].prog->ctx, chaos_model.conn[i].end[0].window.rkey);
		if (chaos_model.conn[i].end[1].window.there)
			hca_mw_free(chaos_model.conn[i].end[1].prog->ctx, chaos_model.conn[i].end[1].window.rkey);
	}
	if (hca_soft_wq_destroy(chaos_model.srq.wq))
		chaos_fail("the shared receive queue cannot be destroyed");
	for (i = 0; i < RING; i++)
		if (chaos_model.srq.recv[i].area.prog)
			chaos_area_put(&chaos_model.srq.recv[i].area, 0, chaos_model.srq.recv[i].area.len, false, true,
				       "a shared receive buffer");
	check_all();
}

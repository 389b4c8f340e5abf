// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Connections: their queue pairs are created, connected with attributes drawn at random, reset and destroyed. */
#include <string.h>

#include "emu/hca/bring.h"
#include "rxe/chaos/model.h"

static void end_create(struct end *e)
{
	struct hca_qp_init init = { .type = e->conn->type,
				    .pdn = e->prog->pdn,
				    .max_send_wr = DEPTH,
				    .max_recv_wr = DEPTH,
				    .max_send_sge = 4,
				    .max_recv_sge = 4,
				    .max_inline = 64 };

	if (!e->cq && hca_soft_cq_create(e->prog->ctx, e->srq ? 64 : 40, chaos_end_ready, e, &e->cq))
		chaos_end_fail(e, "a CQ cannot be created");
	init.send_cqn = init.recv_cqn = hca_soft_cq_number(e->cq);
	init.srqn = e->srq ? hca_soft_wq_number(e->srq->wq) : 0;
	if (hca_soft_qp_create(e->prog->ctx, &init, &e->wq))
		chaos_end_fail(e, "a queue pair cannot be created");
	e->qpn = hca_soft_wq_number(e->wq);
}

static void end_destroy(struct end *e)
{
	if (e->wq && hca_soft_wq_destroy(e->wq))
		chaos_end_fail(e, "the queue pair cannot be destroyed");
	if (e->cq && hca_soft_cq_destroy(e->cq))
		chaos_end_fail(e, "the CQ cannot be destroyed");
	e->wq = NULL;
	e->cq = NULL;
}

/* The send queue is empty: requests without a completion have succeeded, and were not signaled. */
void chaos_end_check_sends(struct end *e)
{
	if (hca_soft_wq_sends(e->wq))
		chaos_end_fail(e, "%u requests do not come to an end; the first one is message %u, opcode %u",
			       hca_soft_wq_sends(e->wq), e->sq[e->sq_tail % RING].id, e->sq[e->sq_tail % RING].opcode);
	for (; e->sq_tail != e->sq_head; e->sq_tail++) {
		if (e->sq[e->sq_tail % RING].signaled || e->failed)
			chaos_end_fail(e, "message %u has no completion", e->sq[e->sq_tail % RING].id);
		chaos_msg_succeeded(e, &e->sq[e->sq_tail % RING]);
	}
}

/* In the error state each request has completed (10.3.1.7). */
void chaos_end_check_flushed(struct end *e)
{
	if (!e->wq || chaos_end_state(e) != HCA_QPS_ERR || e->overrun)
		return;
	chaos_end_check_sends(e);
	if (!e->srq && (hca_soft_wq_recvs(e->wq) || e->rq_tail != e->rq_head))
		chaos_end_fail(e, "%u receive requests are not flushed", e->rq_head - e->rq_tail);
}

/* Frees the areas of an end's requests; no packet of the connection is in flight. */
static void end_release(struct end *e)
{
	u32 i;

	for (i = 0; i < RING; i++) {
		struct msg *m = &e->sq[i];
		struct recv *r = &e->rq[i];

		if (is_atomic(m->opcode) && m->local.prog) {
			if (m->opcode == HCA_WR_ATOMIC_FETCH_AND_ADD && m->remote.prog && chaos_area_mem(&m->remote) &&
			    i - e->sq_tail % RING < e->sq_head - e->sq_tail)
				e->peer->prog->word[m->word].failed++;
			chaos_area_put(&m->local, 0, 8, false, true, "the result of an atomic");
		} else if (m->local.prog) {
			chaos_msg_area_put(m, &m->local, false, "a local buffer of what failed");
		}
		if (m->remote.prog && !is_atomic(m->opcode))
			chaos_msg_area_put(m, &m->remote, false, "a remote buffer of what failed");
		m->remote.prog = NULL;
		if (r->area.prog)
			chaos_area_put(&r->area, 0, r->area.len, false, true, "a receive buffer");
	}
	for (i = 0; i < e->nunder_way; i++)
		chaos_msg_area_put(&e->under_way[i], &e->under_way[i].remote, false, "what a WRITE of UC writes");
	e->nunder_way = 0;
	e->sq_tail = e->sq_head = e->rq_tail = e->rq_head = e->sent = e->received = 0;
	e->failed = e->recv_failed = e->died = e->overrun = false;
	e->no_poll = 0;
	e->gen++;
}

void chaos_conn_disconnect(struct conn *c, bool destroy)
{
	struct hca_qp_attr at = { .state = HCA_QPS_RESET };
	u32 i;

	chaos_run(c->excuse ? NSEC_PER_MSEC : 0);
	chaos_poll_all(false);
	for (i = 0; i < 2; i++) {
		chaos_end_poll(&c->end[i]);
		chaos_end_check_flushed(&c->end[i]);
	}
	for (i = 0; i < 2; i++) {
		struct end *e = &c->end[i];

		if (e->srq && e->wq && chaos_end_state(e) != HCA_QPS_ERR)
			e->srq->lost++;
		if (destroy || e->overrun)
			end_destroy(e);
		else if (e->wq && hca_qp_modify(e->prog->ctx, e->qpn, &at, HCA_QP_STATE))
			chaos_end_fail(e, "the queue pair cannot be reset");
	}
	while (chaos.host[0].is_busy || chaos.host[1].is_busy)
		chaos_run(NSEC_PER_MSEC); /* packets queued at a port leave before PSNs start again */
	for (i = 0; i < 2; i++)
		chaos_wire_forget(c->end[i].prog->host, c->end[i].qpn);
	for (i = 0; i < 2; i++)
		end_release(&c->end[i]);
	c->excuse = c->bads = 0;
	c->connected = c->disorder = false;
}

static void end_connect(struct end *e, u8 mtu, const u32 psn[2], u8 depth)
{
	u32 own = (u32)(e - e->conn->end);
	struct chaos_host *to = e->peer->prog->host;
	struct hca_qp_attr at = {
		.path_mtu = mtu,
		.qkey = QKEY,
		.rq_psn = psn[!own],
		.sq_psn = psn[own],
		.dest_qpn = e->peer->qpn,
		.access = 0xf,
		.av = { .dlid = to->port.attr.lid, .port = 1, .grh = chaos.ethernet, .dgid = to->port.attr.gid[0] },
		.port = 1,
		.max_rd_atomic = depth,
		.max_dest_rd_atomic = depth,
		.min_rnr_timer = 1,
		.timeout = 8,
		.retry_cnt = 7,
		.rnr_retry = e->conn->rnr_retry
	};
	int err = bring_to(hca_qp_lookup(e->prog->host->hca, e->qpn), at, HCA_QPS_RTS);

	if (err)
		chaos_end_fail(e, "the queue pair does not come to RTS: %d", err);
	chaos_window_renew(e);
	e->recv_at = chaos_now();
}

static void words_read(struct end *e)
{
	memcpy(&e->cas, e->peer->prog->mem + 64 + 8 * (2 * e->conn->index + (u32)(e - e->conn->end)), 8);
	e->cas_lost = false;
}

/* Receives posted by other queue pairs may be invalid, or their memory unmapped. */
static u32 shared_excuse(const struct shared *s)
{
	u32 i, excuse = 0;

	for (i = 0; i < RING; i++) {
		const struct recv *r = &s->recv[i];

		if (r->used && (r->bad || r->cap < MAX_SEND))
			excuse |= BAD_RECV;
		if (r->used && !chaos_area_key_valid(&r->area))
			excuse |= RACE;
	}
	return excuse;
}

void chaos_conn_connect(struct conn *c)
{
	const u32 psn[2] = { draw(3) ? draw(0xffffff) : 0xfffff0 + draw(16), draw(0xffffff) };
	u8 mtu = (u8)(1 + draw(3)), depth = (u8)(1 + draw(4));
	u32 i, at_once = draw(4);

	c->rnr_retry = c->index && chance(25) ? 2 : 7;
	for (i = 0; i < 2; i++)
		if (!c->end[i].wq)
			end_create(&c->end[i]);
	for (i = 0; i < 2; i++)
		c->end[i].at_once = !!(at_once & BIT(i));
	for (i = 0; i < 2; i++)
		end_connect(&c->end[i], mtu, psn, depth);
	for (i = 0; i < 2; i++)
		words_read(&c->end[i]);
	c->connected = true;
	for (i = 0; i < 2; i++)
		c->excuse |= (c->end[i].prog->unmapped_len ? UNMAPPED : 0) |
			     (c->end[i].srq ? shared_excuse(c->end[i].srq) : 0);
	c->disorder = chaos.wire.late || chaos.wire.repeat;
	c->lossy = chaos.wire.lose || chaos.wire.damage;
	if (c->index && (chaos_now() < chaos.down_until || chaos.wire.lose > 100))
		c->excuse |= LOST;
}

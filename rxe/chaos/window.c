// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory windows of type 2: bound, invalidated by either side, and written to while that is not permitted (IBTA
 * 10.6.7).
 */

#include "rxe/chaos/model.h"

bool chaos_window_bound(const struct end *owner, const struct msg *m)
{
	return owner->window.epoch == m->window_epoch && owner->window.state == WINDOW_BOUND;
}

void chaos_window_renew(struct end *e)
{
	if (e->window.there)
		hca_mw_free(e->prog->ctx, e->window.rkey);
	e->window.there = !hca_mw_alloc(e->prog->ctx, e->prog->pdn, 2, &e->window.rkey);
	if (!e->window.there)
		chaos_end_fail(e, "a window cannot be allocated");
	e->window.state = WINDOW_FREE;
	e->window.epoch++;
	e->window.busy = false;
}

static bool window_writes_out(const struct end *e)
{
	u32 i;

	for (i = e->sq_tail; i != e->sq_head; i++)
		if (e->sq[i % RING].window)
			return true;
	return false;
}

void chaos_window_bind(struct end *e)
{
	struct hca_send_wr wr = { .mw_rkey = e->window.rkey,
				  .mr_lkey = e->prog->mr[0].lkey,
				  .access = HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ,
				  .bind_addr = e->prog->va + CHAOS_WINDOW + e->conn->index * CHAOS_WINDOW_SIZE,
				  .bind_len = CHAOS_WINDOW_SIZE };
	struct msg *m;

	if (e->conn->type == HCA_QPT_UD || !chaos_send_room(e) || e->window.state != WINDOW_FREE)
		return;
	m = chaos_msg_new(e, HCA_WR_BIND_MW, 0);
	if (!m)
		return;
	wr.reg_key = (e->window.rkey & ~0xffu) | (u8)(e->window.rkey + 1 + draw(200));
	if (window_writes_out(e->peer))
		e->conn->excuse |= RACE;
	e->window.rkey = wr.reg_key;
	e->window.state = WINDOW_BINDING;
	e->window.epoch++;
	m->signaled = true;
	chaos_msg_post(e, m, &wr);
}

void chaos_window_invalidate(struct end *e)
{
	bool remote = e->conn->type == HCA_QPT_RC && chance(50);
	struct end *by = remote ? e->peer : e;
	struct hca_send_wr wr = { .imm = e->window.rkey, .rkey = e->window.rkey };
	struct msg *m;

	if (e->conn->type == HCA_QPT_UD || !chaos_send_room(by) || e->window.state != WINDOW_BOUND)
		return;
	m = chaos_msg_new(by, remote ? HCA_WR_SEND_WITH_INV : HCA_WR_LOCAL_INV, 0);
	if (!m)
		return;
	if (window_writes_out(e->peer) && !remote)
		e->conn->excuse |= RACE;
	e->window.state = WINDOW_INVALIDATING;
	e->window.epoch++;
	m->signaled = true;
	chaos_msg_post(by, m, &wr);
}

/* @e writes to its peer's window. */
void chaos_window_write(struct end *e)
{
	struct end *to = e->peer;
	u32 base = CHAOS_WINDOW + e->conn->index * CHAOS_WINDOW_SIZE, len = 1 + draw(700);
	struct hca_send_wr wr = { .rkey = to->window.rkey };
	struct msg *m;

	if (e->conn->type != HCA_QPT_RC || !chaos_send_room(e) || to->window.busy || !to->wq)
		return;
	if (!e->conn->index && to->window.state != WINDOW_BOUND)
		return;
	m = chaos_msg_new(e, HCA_WR_RDMA_WRITE, len);
	if (!m || !chaos_area_get(e->prog, len, rng_next(&chaos_model.rng), &m->local))
		return;
	chaos_area_fill(&m->local, m->id);
	m->window = true;
	m->window_epoch = to->window.epoch;
	m->remote = (struct chaos_area){ .prog = to->prog,
					 .gen = to->prog->gen,
					 .unit = base / CHAOS_UNIT,
					 .units = 1,
					 .off = base + draw(CHAOS_WINDOW_SIZE - len),
					 .len = len,
					 .epoch = to->prog->mr[0].epoch };
	if (to->window.state == WINDOW_FREE) {
		m->must_fail = true;
		m->errs = BIT(HCA_WC_REM_ACCESS_ERR);
		chaos_bad_mark(e->conn, e);
	} else if (to->window.state != WINDOW_BOUND) {
		e->conn->excuse |= RACE;
		m->errs = BIT(HCA_WC_REM_ACCESS_ERR);
	}
	to->window.busy = true;
	wr.num_sge = chaos_sges_fill(wr.sge, &m->local, len);
	wr.remote_addr = to->prog->va + m->remote.off;
	chaos_msg_post(e, m, &wr);
}

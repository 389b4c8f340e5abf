// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests: SEND, RDMA WRITE and READ, atomics, binding of memory windows. */
#include "traffic.h"

#include <string.h>

bool end_has_slot(const struct end *e)
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

struct msg *msg_new(struct end *e, uint8_t opcode)
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

/* Splits the local buffer into one to three SGEs. */
int msg_sges(const struct end *e, const struct msg *m, struct ibv_sge *sge, bool one)
{
	uint32_t at = 0, n = one || m->len < 8 ? 1 : 1 + draw(3), i;

	for (i = 0; i < n; i++) {
		uint32_t len = i + 1 == n ? m->len - at : draw(m->len - at + 1);

		sge[i] = (struct ibv_sge){ (uintptr_t)msg_local(e, m) + at, len, e->mr->lkey };
		at += len;
	}
	return m->len || chance(500) ? (int)n : 0;
}

void msg_post(struct end *e, struct msg *m, struct ibv_send_wr *wr)
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
	if (err) { /* the request was not posted */
		e->sq_head--;
		if (m->busy_slot)
			e->local_busy &= ~BIT(m->slot);
		msg_unsure(e, m);
		end_stop(e);
	}
	count_op();
	file->head.proc[prog.index].posted++;
}

uint32_t msg_length(uint32_t max)
{
	return chance(400) ? 1 + draw(64) : 1 + draw(max);
}

bool end_may_send(const struct end *e)
{
	uint32_t sent = e->mine->sent, more = e->type == CONN_RC || e->type == CONN_CM ? 2 : 0;

	if (e->type == CONN_IWARP && !e->side && !e->stream_at)
		return false; /* the initiator of MPA sends first */
	return sent - e->his->received < STREAM - 8 && (int32_t)(sent - e->his->posted) < (int32_t)more;
}

void end_stream_add(struct end *e, struct msg *m, const struct sent *s)
{
	e->mine->stream[e->mine->sent % STREAM] = *s;
	e->mine->sent++;
	m->stream = true;
}

/* The R_Key of a peer's window that this end has not invalidated. */
static uint32_t window_of(const struct end *e)
{
	uint32_t serial = e->his->window_serial;

	return serial && serial != e->inv_serial && e->type != CONN_IWARP ? e->his->window : 0;
}

/* Is a READ outstanding from one of these parts of the target? */
static bool is_read(const struct end *e, uint32_t parts)
{
	uint32_t i;

	for (i = e->sq_tail; i != e->sq_head; i++)
		if (e->sq[i % RING].opcode == IBV_WR_RDMA_READ && BIT(e->sq[i % RING].off / SLOT) & parts)
			return true;
	return false;
}

bool op_send(struct end *e)
{
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = { .sg_list = sge };
	struct sent s = { 0 };
	struct msg *m;
	uint32_t window = window_of(e);

	if (!end_may_send(e))
		return false;
	m = msg_new(e, e->type != CONN_IWARP && chance(250) ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND);
	m->len = msg_length(RECV_SIZE);
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
	pattern_fill(msg_local(e, m), m->id, m->len);
	wr.num_sge = msg_sges(e, m, sge, false);
	if (m->opcode == IBV_WR_SEND_WITH_IMM)
		wr.imm_data = s.imm;
	if (m->len <= INLINE && e->type != CONN_IWARP && chance(300))
		wr.send_flags |= IBV_SEND_INLINE;
	if (e->type == CONN_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->his->qpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	end_stream_add(e, m, &s);
	msg_post(e, m, &wr);
	return true;
}

static uint32_t key_of(const struct end *e)
{
	uint32_t window = window_of(e);

	return window && chance(600) ? window : e->his->rkey;
}

bool op_write(struct end *e)
{
	bool imm = e->type != CONN_IWARP && chance(250);
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = { .sg_list = sge };
	struct msg *m;
	uint32_t part = draw(TARGETS);

	if (e->type == CONN_UD || (imm && !end_may_send(e)) || (e->type == CONN_IWARP && !e->side && !e->stream_at))
		return false;
	m = msg_new(e, imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE);
	m->len = chance(20) ? 0 : msg_length(SLOT);
	m->off = part * SLOT + draw(SLOT - m->len + 1);
	m->in_target = true;
	pattern_fill(msg_local(e, m), m->id, m->len);
	pattern_fill(e->posted + m->off, m->id, m->len);
	wr.num_sge = msg_sges(e, m, sge, false);
	if (is_read(e, BIT(part))) /* a WRITE may overtake it (IBTA 10.8.3.3) */
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
		end_stream_add(e, m, &s);
	}
	msg_post(e, m, &wr);
	return true;
}

void read_post(struct end *e, uint32_t off, uint32_t len)
{
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = { .sg_list = sge };
	struct msg *m = msg_new(e, IBV_WR_RDMA_READ);

	m->len = len;
	m->off = off;
	if (e->state == CLOSING)
		m->signaled = true;
	memcpy(m->data, e->posted + m->off, m->len);
	memset(msg_local(e, m), 0xa5, SLOT);
	wr.num_sge = msg_sges(e, m, sge, e->type == CONN_IWARP);
	wr.wr.rdma.remote_addr = e->his->target + m->off;
	wr.wr.rdma.rkey = e->state == CLOSING ? e->his->rkey : key_of(e);
	msg_post(e, m, &wr);
}

bool op_read(struct end *e)
{
	uint32_t len = msg_length(SLOT), off = draw(TARGETS) * SLOT + draw(SLOT - len + 1);

	if (!end_is_rc(e) || (e->type == CONN_IWARP && !e->side && !e->stream_at))
		return false;
	read_post(e, off, len);
	return true;
}

bool op_atomic(struct end *e)
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
	sge = (struct ibv_sge){ (uintptr_t)msg_local(e, m), 8, e->mr->lkey };
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

bool op_bind(struct end *e)
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

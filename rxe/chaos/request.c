// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Valid requests: messages, RDMA, atomics, and receives. */

#include "rxe/chaos/model.h"

static u32 message_length(u32 most)
{
	static const u16 edges[] = { 0, 1, 8, 255, 256, 257, 512, 899, 900 };

	if (chance(15))
		return min((u32)edges[draw(ARRAY_SIZE(edges))], most);
	return chance(60) ? draw(64) : chance(80) ? draw(min(most, 900u)) : draw(most);
}

/* Splits a buffer into up to four SGEs, some of them empty. */
u16 chaos_sges_fill(struct hca_sge *sge, const struct chaos_area *a, u32 len)
{
	u64 va = chaos_area_va(a);
	u16 n = (u16)(1 + draw(4)), i;

	if (chance(50))
		n = 1;
	for (i = 0; i < n; i++) {
		u32 part = i + 1 == n ? len : draw(len + 1);

		sge[i] = (struct hca_sge){ va, part, a->prog->mr[a->mr].lkey };
		va += part;
		len -= part;
	}
	return n;
}

struct msg *chaos_msg_new(struct end *e, u8 opcode, u32 len)
{
	struct msg *m = &e->sq[e->sq_head % RING];

	if (m->local.prog || m->remote.prog) /* areas of a failed request are kept until the connection is destroyed */
		return NULL;
	*m = (struct msg){ .id = ++chaos_model.ids, .len = len, .opcode = opcode, .posted = chaos_now() };
	m->signaled = e->sq_head - e->sq_tail > DEPTH || chance(70);
	return m;
}

bool chaos_send_room(const struct end *e)
{
	return e->wq && e->conn->connected && chaos_end_state(e) >= HCA_QPS_RTS && hca_soft_wq_sends(e->wq) < DEPTH &&
	       e->sq_head - e->sq_tail < RING / 2;
}

void chaos_msg_post(struct end *e, struct msg *m, struct hca_send_wr *wr)
{
	int err;

	wr->token = token(e, e->sq_head);
	wr->opcode = m->opcode;
	wr->flags |= m->signaled ? HCA_SEND_SIGNALED : 0;
	if (takes_recv(m->opcode) && !m->must_fail)
		e->stream[e->sent++ % STREAM] = (struct sent){ m->id, m->len, wr->imm, m->opcode };
	e->sq_head++;
	chaos_stats->requests++;
	err = hca_soft_post_send(e->wq, wr);
	if (err)
		chaos_end_fail(e, "a request cannot be posted: %d", err);
}

void chaos_msg_address(const struct end *e, struct hca_send_wr *wr)
{
	const struct chaos_host *to = e->peer->prog->host;

	wr->remote_qpn = e->peer->qpn;
	wr->remote_qkey = QKEY;
	wr->av = (struct hca_av){
		.dlid = to->port.attr.lid, .port = 1, .grh = chaos.ethernet, .dgid = to->port.attr.gid[0]
	};
}

static void post_atomic(struct end *e, u8 opcode)
{
	struct hca_send_wr wr = { .rkey = e->peer->prog->mr[0].rkey, .num_sge = 1 };
	struct msg *m = chaos_msg_new(e, opcode, 8);
	u32 at;

	if (!m || !chaos_area_get(e->prog, 8, rng_next(&chaos_model.rng), &m->local))
		return;
	m->remote = (struct chaos_area){
		.prog = e->peer->prog, .gen = e->peer->prog->gen, .mr = 0, .epoch = e->peer->prog->mr[0].epoch
	};
	chaos_sges_fill(wr.sge, &m->local, 8);
	wr.sge[0] = (struct hca_sge){ chaos_area_va(&m->local), 8, e->prog->mr[m->local.mr].lkey };
	if (opcode == HCA_WR_ATOMIC_FETCH_AND_ADD) {
		m->word = (u8)draw(4);
		at = 8 * m->word;
		wr.compare_add = 1;
	} else {
		at = 64 + 8 * (2 * e->conn->index + (u32)(e - e->conn->end));
		m->expect = e->cas;
		wr.compare_add = chance(70) ? e->cas : e->cas + 1;
		wr.swap = rng_next(&chaos_model.rng);
		if (wr.compare_add == e->cas)
			e->cas = wr.swap;
	}
	wr.remote_addr = e->peer->prog->va + at;
	chaos_msg_post(e, m, &wr);
}

static void post_rdma(struct end *e, u8 opcode)
{
	bool read = opcode == HCA_WR_RDMA_READ;
	struct msg *m = chaos_msg_new(e, opcode, message_length(MAX_RDMA));
	struct hca_send_wr wr = { .imm = draw(0xffffffff), .flags = chance(20) ? HCA_SEND_FENCE : 0 };

	if (!m || e->nunder_way > RING - DEPTH ||
	    !chaos_area_get(e->prog, m->len, rng_next(&chaos_model.rng), &m->local))
		return;
	if (!chaos_area_get(e->peer->prog, m->len, rng_next(&chaos_model.rng), &m->remote)) {
		chaos_area_put(&m->local, 0, 0, true, false, "unused");
		return;
	}
	chaos_area_fill(read ? &m->remote : &m->local, m->id);
	wr.num_sge = chaos_sges_fill(wr.sge, &m->local, m->len);
	wr.remote_addr = chaos_area_va(&m->remote);
	wr.rkey = e->peer->prog->mr[m->remote.mr].rkey;
	chaos_msg_post(e, m, &wr);
}

static void post_message(struct end *e, u8 opcode)
{
	u32 most = e->conn->type == HCA_QPT_UD ? 256 : MAX_SEND;
	struct msg *m = chaos_msg_new(e, opcode, message_length(most));
	struct hca_send_wr wr = { .imm = draw(0xffffffff) };
	u32 i;

	if (!m)
		return;
	if (m->len <= 64 && chance(30)) {
		wr.flags = HCA_SEND_INLINE;
		wr.inline_len = m->len;
		for (i = 0; i < m->len; i++)
			wr.inline_data[i] = chaos_byte(m->id, i);
	} else {
		if (!chaos_area_get(e->prog, m->len, rng_next(&chaos_model.rng), &m->local))
			return;
		chaos_area_fill(&m->local, m->id);
		wr.num_sge = chaos_sges_fill(wr.sge, &m->local, m->len);
	}
	wr.flags |= chance(20) ? HCA_SEND_SOLICITED : 0;
	chaos_msg_address(e, &wr);
	chaos_msg_post(e, m, &wr);
}

void chaos_send_one(struct end *e)
{
	static const u8 rc[] = { HCA_WR_SEND,
				 HCA_WR_SEND,
				 HCA_WR_SEND_WITH_IMM,
				 HCA_WR_RDMA_WRITE,
				 HCA_WR_RDMA_WRITE,
				 HCA_WR_RDMA_WRITE_WITH_IMM,
				 HCA_WR_RDMA_READ,
				 HCA_WR_RDMA_READ,
				 HCA_WR_ATOMIC_FETCH_AND_ADD,
				 HCA_WR_ATOMIC_CMP_AND_SWP };
	static const u8 uc[] = { HCA_WR_SEND, HCA_WR_SEND_WITH_IMM, HCA_WR_RDMA_WRITE, HCA_WR_RDMA_WRITE_WITH_IMM };
	u8 opcode = e->conn->type == HCA_QPT_RC   ? rc[draw(ARRAY_SIZE(rc))]
		    : e->conn->type == HCA_QPT_UC ? uc[draw(ARRAY_SIZE(uc))]
						  : uc[draw(2)];

	if (!chaos_send_room(e))
		return;
	if (is_atomic(opcode))
		post_atomic(e, opcode);
	else if (opcode == HCA_WR_SEND || opcode == HCA_WR_SEND_WITH_IMM)
		post_message(e, opcode);
	else
		post_rdma(e, opcode);
}

bool chaos_recv_room(const struct end *e)
{
	return e->wq && e->conn->connected &&
	       (e->srq ? hca_soft_wq_recvs(e->srq->wq) < SRQ_DEPTH && !e->srq->recv[e->srq->head % RING].used
		       : hca_soft_wq_recvs(e->wq) < DEPTH && e->rq_head - e->rq_tail < RING / 2);
}

void chaos_recv_one(struct end *e, u32 cap, bool bad)
{
	u32 *head = e->srq ? &e->srq->head : &e->rq_head;
	struct recv *r = &(e->srq ? e->srq->recv : e->rq)[*head % RING];
	struct hca_recv_wr wr = { .token = TOKEN_RECV | token(e, *head) };
	u32 room = cap + (e->conn->type == HCA_QPT_UD ? 40 : 0);
	int err;

	if (!chaos_recv_room(e) || r->area.prog || !chaos_area_get(e->prog, room, rng_next(&chaos_model.rng), &r->area))
		return;
	r->cap = room;
	r->bad = bad;
	r->used = true;
	r->id = *head;
	wr.num_sge = chaos_sges_fill(wr.sge, &r->area, room);
	if (bad)
		wr.sge[wr.num_sge - 1].lkey ^= 0x4400;
	++*head;
	chaos_stats->receives++;
	if (!e->srq) /* shared ones may be consumed by other queue pairs */
		e->recv_at = chaos_now();
	err = hca_soft_post_recv(e->srq ? e->srq->wq : e->wq, &wr);
	if (err)
		chaos_end_fail(e, "a receive cannot be posted: %d", err);
}

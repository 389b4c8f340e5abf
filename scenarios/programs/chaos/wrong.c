// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Invalid requests, each with its possible statuses. */
#include "traffic.h"

#include <string.h>

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

/* An invalid key of the peer, and its address. */
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

	if (opcode == IBV_WR_SEND && !end_may_send(e))
		return false;
	end_excuse(e, BAD);
	m = msg_new(e, opcode);
	m->len = len;
	m->errs = errs;
	m->must_fail = e->type != CONN_IWARP || opcode == IBV_WR_RDMA_READ || errs == BIT(IBV_WC_LOC_PROT_ERR);
	if (opcode == IBV_WR_RDMA_READ)
		memcpy(m->data, e->posted, len);
	sge = (struct ibv_sge){ (uintptr_t)msg_local(e, m), len,
				rkey || errs != BIT(IBV_WC_LOC_PROT_ERR) ? e->mr->lkey : bad_lkey(e) };
	wr.wr.rdma.remote_addr = e->his->target;
	wr.wr.rdma.rkey = e->his->rkey;
	if (opcode == IBV_WR_RDMA_WRITE) { /* a part of it may be in memory when it fails */
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
		end_stream_add(e, m, &s);
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
	sge = (struct ibv_sge){ (uintptr_t)msg_local(e, m), 8, e->mr->lkey };
	wr.wr.atomic.remote_addr = e->his->target + TARGET_BYTES + 1 + draw(7);
	wr.wr.atomic.rkey = e->his->rkey;
	msg_post(e, m, &wr);
	return true;
}

/* Datagrams to a QP that does not exist, or with a wrong Q_Key: they are dropped. */
static bool vanishing(struct end *e)
{
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = { .sg_list = sge };
	struct msg *m = msg_new(e, IBV_WR_SEND);

	m->len = msg_length(RECV_SIZE);
	wr.num_sge = msg_sges(e, m, sge, false);
	wr.wr.ud.ah = e->ah;
	wr.wr.ud.remote_qpn = chance(500) ? e->his->qpn : 0xfffff0;
	wr.wr.ud.remote_qkey = QKEY ^ 0x77;
	msg_post(e, m, &wr);
	return true;
}

bool op_bad(struct end *e)
{
	if (without(WITHOUT_BAD) || (e->type == CONN_IWARP && !e->side && !e->stream_at))
		return false;
	switch (draw(end_is_rc(e) ? 7 : e->type == CONN_UC ? 2 : 1)) {
	case 0:
		return e->type == CONN_UD && chance(900)
			       ? vanishing(e)
			       : bad_request(e, IBV_WR_SEND, false, msg_length(RECV_SIZE), BIT(IBV_WC_LOC_PROT_ERR));
	case 1:
		return bad_request(e, IBV_WR_RDMA_WRITE, false, msg_length(SLOT), BIT(IBV_WC_LOC_PROT_ERR));
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

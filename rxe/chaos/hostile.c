// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Invalid requests, with the completion statuses of each (IBTA 11.6.2). */

#include "rxe/chaos/model.h"

void chaos_bad_mark(struct conn *c, struct end *e)
{
	c->excuse |= BAD;
	c->bads++;
	c->bad_end = e;
}

void chaos_bad_send(struct end *e)
{
	static const u8 ops[] = { HCA_WR_RDMA_WRITE, HCA_WR_RDMA_READ, HCA_WR_RDMA_WRITE_WITH_IMM };
	bool rc = e->conn->type == HCA_QPT_RC, ud = e->conn->type == HCA_QPT_UD;
	u32 kind = draw(8), len = 1 + draw(kind > 5 ? 600 : 3000);
	struct chaos_prog *to = e->peer->prog;
	struct hca_send_wr wr = { .remote_addr = to->va + CHAOS_HALF - 4096, .rkey = to->mr[0].rkey };
	struct msg *m;

	if (!chaos_send_room(e) || ((ud || !rc) && kind < 3))
		return;
	m = chaos_msg_new(e, ud ? HCA_WR_SEND : ops[draw(rc ? 3 : 1)], len);
	if (!m || !chaos_area_get(e->prog, len, rng_next(&chaos_model.rng), &m->local))
		return;
	m->must_fail = true;
	wr.num_sge = chaos_sges_fill(wr.sge, &m->local, len);
	chaos_msg_address(e, &wr);
	if (kind < 3)
		m->errs = BIT(HCA_WC_REM_ACCESS_ERR);
	switch (kind) {
	case 0:
		wr.rkey ^= 0x5500;
		break;
	case 1:
		wr.remote_addr = to->va + CHAOS_HALF - draw(len);
		break;
	case 2:
		wr.rkey = to->other_rkey;
		break;
	case 3:
	case 4:
		wr.num_sge = 1;
		wr.sge[0] = (struct hca_sge){ chaos_area_va(&m->local), len, e->prog->mr[m->local.mr].lkey ^ 0x4400 };
		m->errs = BIT(HCA_WC_LOC_PROT_ERR);
		if (ud)
			m->errs |= BIT(HCA_WC_LOC_LEN_ERR);
		break;
	case 5:
		wr.num_sge = 2;
		wr.sge[0] = (struct hca_sge){ chaos_area_va(&m->local), 0x60000000, e->prog->mr[m->local.mr].lkey };
		wr.sge[1] = wr.sge[0];
		m->errs = BIT(HCA_WC_LOC_LEN_ERR);
		break;
	case 6:
		m->opcode = rc ? HCA_WR_ATOMIC_FETCH_AND_ADD : HCA_WR_RDMA_READ;
		wr.remote_addr += 3;
		m->errs = BIT(HCA_WC_LOC_LEN_ERR) | BIT(HCA_WC_REM_INV_REQ_ERR) | BIT(HCA_WC_LOC_QP_OP_ERR);
		m->len = 0;
		break;
	default:
		m->opcode = (u8)(40 + draw(200));
		m->errs = BIT(HCA_WC_LOC_QP_OP_ERR);
		m->len = 0;
		break;
	}
	if (is_atomic(m->opcode))
		m->opcode = HCA_WR_ATOMIC_CMP_AND_SWP, e->cas_lost = true;
	chaos_bad_mark(e->conn, e);
	chaos_msg_post(e, m, &wr);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Objects without a connection: created, used by each other, and destroyed; and calls that must fail. */
#include "chaos.h"

#include <errno.h>
#include <string.h>

#define SETS 4

/* A protection domain and its objects; NULL: not created. */
static struct set {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
} sets[SETS];

static uint8_t memory[65536];

static bool is_iwarp(void)
{
	return prog.ctx->device->transport_type == IBV_TRANSPORT_IWARP;
}

static void must(bool ok, const char *what)
{
	if (!ok)
		wrong(NULL, "%s: %s", what, strerror(errno));
}

static void must_fail(bool failed, const char *what)
{
	if (!failed)
		wrong(NULL, "%s has succeeded", what);
}

bool objects_is_qp(const struct ibv_qp *qp)
{
	uint32_t i;

	for (i = 0; i < SETS; i++)
		if (sets[i].qp == qp)
			return true;
	return false;
}

static struct ibv_qp *qp_make(const struct set *s)
{
	struct ibv_qp_init_attr init = { .send_cq = s->cq,
					 .recv_cq = s->cq,
					 .srq = chance(500) ? s->srq : NULL,
					 .qp_type = is_iwarp() ? IBV_QPT_RC : IBV_QPT_RC + draw(2),
					 .cap = { 1 + draw(64), 1 + draw(64), 1 + draw(4), 1 + draw(4), 0 } };

	if (!is_iwarp() && chance(300))
		init.qp_type = IBV_QPT_UD;
	if (init.qp_type == IBV_QPT_UC)
		init.srq = NULL;
	return ibv_create_qp(s->pd, &init);
}

/* Creates one more object of a set. */
static void set_grow(struct set *s)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1 + draw(100), .max_sge = 1 + draw(3) } };
	struct ibv_ah_attr ah = { .dlid = prog.port.lid, .port_num = 1 };
	uint32_t at = draw(sizeof(memory) - 1);

	if (!s->pd) {
		s->pd = ibv_alloc_pd(prog.ctx);
		must(s->pd, "alloc_pd");
	} else if (!s->cq) {
		s->cq = ibv_create_cq(prog.ctx, 1 + (int)draw(300), NULL, chance(500) ? prog.channel : NULL, 0);
		must(s->cq, "create_cq");
	} else if (!s->mr) {
		s->mr = ibv_reg_mr(s->pd, memory + at, sizeof(memory) - at,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
		must(s->mr, "reg_mr");
	} else if (!s->srq) {
		s->srq = ibv_create_srq(s->pd, &srq);
		must(s->srq, "create_srq");
	} else if (!s->qp) {
		s->qp = qp_make(s);
		must(s->qp, "create_qp");
	} else if (!s->mw && !is_iwarp()) {
		s->mw = ibv_alloc_mw(s->pd, chance(500) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		must(s->mw, "alloc_mw");
	} else if (!s->ah && prog.port.lid) {
		s->ah = ibv_create_ah(s->pd, &ah);
		must(s->ah, "create_ah");
	}
}

/* Objects in use cannot be destroyed. */
static void set_in_use(struct set *s)
{
	if (s->mr || s->srq || s->qp || s->mw || s->ah)
		must_fail(s->pd && ibv_dealloc_pd(s->pd), "dealloc_pd of one in use");
	if (s->qp)
		must_fail(ibv_destroy_cq(s->cq), "destroy_cq of one in use");
	if (s->qp && s->qp->srq)
		must_fail(ibv_destroy_srq(s->srq), "destroy_srq of one in use");
}

static void set_destroy(struct set *s)
{
	if (s->ah)
		must(!ibv_destroy_ah(s->ah), "destroy_ah");
	if (s->mw)
		must(!ibv_dealloc_mw(s->mw), "dealloc_mw");
	if (s->qp)
		must(!ibv_destroy_qp(s->qp), "destroy_qp");
	if (s->srq)
		must(!ibv_destroy_srq(s->srq), "destroy_srq");
	if (s->mr)
		must(!ibv_dereg_mr(s->mr), "dereg_mr");
	if (s->cq)
		must(!ibv_destroy_cq(s->cq), "destroy_cq");
	if (s->pd)
		must(!ibv_dealloc_pd(s->pd), "dealloc_pd");
	*s = (struct set){ 0 };
}

static void posts_wrong(const struct set *s)
{
	struct ibv_sge sge[100] = { { (uintptr_t)memory, 8, s->mr ? s->mr->lkey : 0 } };
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr recv = { .sg_list = sge, .num_sge = 100 }, *bad_recv;

	if (s->qp->qp_type == IBV_QPT_UD && !s->ah)
		return; /* the library reads it */
	wr.wr.ud.ah = s->ah;
	must_fail(ibv_post_send(s->qp, &wr, &bad), "post_send in RESET");
	wr.num_sge = 100;
	must_fail(ibv_post_send(s->qp, &wr, &bad), "post_send of 100 parts");
	if (!s->qp->srq)
		must_fail(ibv_post_recv(s->qp, &recv, &bad_recv), "post_recv of 100 parts");
}

static void modifies_wrong(const struct set *s)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS };

	must_fail(ibv_modify_qp(s->qp, &a, IBV_QP_STATE), "modify_qp from RESET to RTS");
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 99 };
	if (!is_iwarp())
		must_fail(
			ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
			"modify_qp to INIT at port 99");
}

static void creates_wrong(const struct set *s)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq, .recv_cq = s->cq, .qp_type = IBV_QPT_RC, .cap = { 1u << 30, 1, 1, 1, 0 }
	};
	void *unmapped = (void *)4096; /* below the lowest address that can be mapped */

	must_fail(!ibv_create_cq(prog.ctx, 0, NULL, NULL, 0), "create_cq of no entries");
	must_fail(!ibv_create_cq(prog.ctx, 1 << 30, NULL, NULL, 0), "create_cq of 2^30 entries");
	must_fail(!ibv_reg_mr(s->pd, memory, 4096, IBV_ACCESS_REMOTE_WRITE), "reg_mr with remote write alone");
	must_fail(!ibv_create_qp(s->pd, &init), "create_qp of 2^30 requests");
	must_fail(!ibv_reg_mr(s->pd, unmapped, 4096, IBV_ACCESS_LOCAL_WRITE), "reg_mr of what is not mapped");
}

void objects_op(void)
{
	struct set *s = &sets[draw(SETS)];

	count_op();
	if (s->qp && chance(150))
		posts_wrong(s);
	else if (s->qp && chance(150))
		modifies_wrong(s);
	else if (s->cq && chance(60))
		creates_wrong(s);
	else if (chance(80))
		set_in_use(s);
	else if (chance(150))
		set_destroy(s);
	else
		set_grow(s);
}

void objects_close(void)
{
	uint32_t i;

	for (i = 0; i < SETS; i++)
		set_destroy(&sets[i]);
}

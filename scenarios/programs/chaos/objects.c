// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Objects without a connection: created, used by each other, and destroyed; and calls that must fail. */
#include "chaos.h"

#include <errno.h>
#include <string.h>

#define SETS   4
#define GROUPS 4 /* multicast groups that all programs use */

/* A protection domain and its objects; NULL: not created. */
static struct set {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	enum ibv_qp_state state;
	uint32_t max_recv;        /* of the QP's own receive queue */
	uint32_t posted;          /* receives in it */
	uint32_t flushed, polled; /* completions that the CQ has got, and of these those polled */
	uint32_t max_srq, srq_posted;
	int group; /* that the QP is attached to; -1: none */
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

static void qp_make(struct set *s)
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
	s->qp = ibv_create_qp(s->pd, &init);
	must(s->qp, "create_qp");
	s->state = IBV_QPS_RESET;
	s->max_recv = init.cap.max_recv_wr;
	s->group = -1;
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
		s->max_srq = srq.attr.max_wr;
	} else if (!s->qp) {
		qp_make(s);
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
	if (s->qp && s->group >= 0)
		must_fail(ibv_destroy_qp(s->qp), "destroy_qp of one in a multicast group");
}

/* ---- queues ---- */

static void set_state(struct set *s, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state, .port_num = 1, .qkey = QKEY };
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			(s->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	must(!ibv_modify_qp(s->qp, &a, mask), "modify_qp to RESET, INIT or ERR");
	s->state = state;
	if (state == IBV_QPS_ERR)
		s->flushed += s->posted;
	s->posted = 0;
}

static void set_query(const struct set *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	must(!ibv_query_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_CAP, &init), "query_qp");
	if (a.qp_state != s->state || a.cap.max_recv_wr < s->max_recv)
		wrong(NULL, "query_qp returns state %d instead of %d, and %u receives instead of %u", a.qp_state,
		      s->state, a.cap.max_recv_wr, s->max_recv);
}

/* A receive in INIT; its ID is the position of its completion. */
static void set_receive(struct set *s)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, s->mr ? s->mr->lkey : 0 };
	struct ibv_recv_wr recv = { .wr_id = s->flushed + s->posted, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (s->posted == s->max_recv || s->flushed - s->polled + s->posted == (uint32_t)s->cq->cqe)
		return;
	must(!ibv_post_recv(s->qp, &recv, &bad), "post_recv in INIT");
	s->posted++;
}

static void set_poll(struct set *s, uint32_t n)
{
	uint64_t end = now_ms() + 1000 * BOUND;
	struct ibv_wc wc;
	int got;

	while (n) {
		got = ibv_poll_cq(s->cq, 1, &wc);
		if (got < 0 || (!got && now_ms() > end))
			wrong(NULL, "%u of %u flushed receives complete", s->polled, s->flushed);
		if (got && (wc.status != IBV_WC_WR_FLUSH_ERR || wc.wr_id != s->polled))
			wrong(NULL, "flushed receive %u completes as %llu: %s", s->polled, (unsigned long long)wc.wr_id,
			      ibv_wc_status_str(wc.status));
		s->polled += (uint32_t)got;
		n -= (uint32_t)got;
	}
}

/* It keeps the completions that are not polled. */
static void set_resize(struct set *s)
{
	uint32_t n = s->flushed - s->polled + s->posted + 1 + draw(300);

	must(!ibv_resize_cq(s->cq, (int)n), "resize_cq");
	if (s->cq->cqe < (int)n)
		wrong(NULL, "a CQ has %d entries instead of %u", s->cq->cqe, n);
}

/* Another state of the queue pair, or a receive, or a poll. */
static void set_run(struct set *s)
{
	if (s->flushed != s->polled && chance(300))
		set_poll(s, 1 + draw(s->flushed - s->polled));
	else if (chance(150))
		set_resize(s);
	else if (chance(100))
		set_query(s);
	else if (s->state == IBV_QPS_RESET)
		set_state(s, IBV_QPS_INIT);
	else if (s->state == IBV_QPS_ERR)
		set_state(s, chance(300) ? IBV_QPS_RESET : IBV_QPS_ERR);
	else if (chance(50))
		set_state(s, chance(300) ? IBV_QPS_RESET : IBV_QPS_ERR);
	else if (!s->qp->srq)
		set_receive(s);
}

static void srq_receive(struct set *s)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, s->mr ? s->mr->lkey : 0 };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (s->srq_posted < s->max_srq) {
		must(!ibv_post_srq_recv(s->srq, &recv, &bad), "post_srq_recv");
		s->srq_posted++;
	} else {
		must_fail(ibv_post_srq_recv(s->srq, &recv, &bad), "post_srq_recv to a full SRQ");
	}
}

/* The limit event is sent, and the limit then 0, if there are fewer receives already. */
static void srq_resize(struct set *s)
{
	struct ibv_srq_attr a = { .max_wr = s->srq_posted + 1 + draw(100) }, got;
	uint32_t limit;

	a.srq_limit = draw(a.max_wr);
	limit = a.srq_limit > s->srq_posted ? 0 : a.srq_limit;
	must(!ibv_modify_srq(s->srq, &a, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) && !ibv_query_srq(s->srq, &got), "modify_srq");
	if (got.max_wr < a.max_wr || got.srq_limit != limit)
		wrong(NULL, "an SRQ has %u receives and limit %u instead of %u and %u", got.max_wr, got.srq_limit,
		      a.max_wr, limit);
	s->max_srq = got.max_wr;
}

static void group_change(struct set *s)
{
	union ibv_gid gid = { .raw = { 0xff, 0x12, [15] = (uint8_t)(s->group >= 0 ? s->group : (int)draw(GROUPS)) } };

	if (s->group >= 0)
		must(!ibv_detach_mcast(s->qp, &gid, 0xc100), "detach_mcast");
	else
		must(!ibv_attach_mcast(s->qp, &gid, 0xc100), "attach_mcast");
	s->group = s->group >= 0 ? -1 : gid.raw[15];
}

static void set_destroy(struct set *s)
{
	if (s->qp && s->group >= 0)
		group_change(s);
	set_poll(s, s->flushed - s->polled);
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
	if (s->state == IBV_QPS_RESET)
		must_fail(ibv_post_send(s->qp, &wr, &bad), "post_send in RESET");
	wr.num_sge = 100;
	must_fail(ibv_post_send(s->qp, &wr, &bad), "post_send of 100 parts");
	if (!s->qp->srq)
		must_fail(ibv_post_recv(s->qp, &recv, &bad_recv), "post_recv of 100 parts");
}

static void modifies_wrong(const struct set *s)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS };

	must_fail(ibv_modify_qp(s->qp, &a, IBV_QP_STATE), "modify_qp from RESET, INIT or ERR to RTS");
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
	else if (s->qp && !is_iwarp() && chance(500))
		set_run(s);
	else if (s->srq && !is_iwarp() && chance(300))
		chance(200) ? srq_resize(s) : srq_receive(s);
	else if (s->qp && s->qp->qp_type == IBV_QPT_UD && prog.port.lid && chance(300))
		group_change(s);
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

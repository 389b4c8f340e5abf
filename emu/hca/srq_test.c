// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of srq.c: sharing, the limit event, ownership. */
#include "emu/hca/fixture.h"

static int post(struct hca_soft_wq *srq, u64 token, u16 num_sge)
{
	struct hca_recv_wr wr = { .token = token, .num_sge = num_sge };

	return hca_soft_post_recv(srq, &wr);
}

static const struct {
	int n;
	struct hca_srq_attr attr;
	int err;
} creations[] = {
	{ 1, { 8, 1, 0 }, 0 },           { 2, { 0, 1, 0 }, -EINVAL },
	{ 3, { 1 << 15, 1, 0 }, 0 },     { 4, { (1 << 15) + 1, 1, 0 }, -EINVAL },
	{ 5, { 8, HCA_MAX_SGE, 0 }, 0 }, { 6, { 8, HCA_MAX_SGE + 1, 0 }, -EINVAL },
	{ 7, { 8, 1, 8 }, 0 },           { 8, { 8, 1, 9 }, -EINVAL },
};

static void check_creations(struct fixture *f)
{
	struct hca_soft_wq *srq;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(creations); i++) {
		int err = hca_soft_srq_create(f->ctx, f->pdn, &creations[i].attr, &srq);

		row(creations[i].n, "creation", err == creations[i].err);
		if (!err)
			row(creations[i].n, "destruction", !hca_soft_wq_destroy(srq));
	}
}

static void check_limit(struct fixture *f, struct hca_soft_wq *srq, struct hca_qp *a, struct hca_qp *b)
{
	u32 srqn = hca_soft_wq_number(srq), *events = &f->events[HCA_EVENT_SRQ_LIMIT_REACHED], i;
	struct hca_srq_attr attr;
	struct hca_recv_wr wr;

	for (i = 0; i < 6; i++)
		post(srq, i, 1);
	row(20, "armed", !hca_srq_set_limit(f->ctx, srqn, 4) && *events == 0);
	row(21, "first to one QP", hca_next_recv(a, &wr) == 1 && wr.token == 0);
	row(22, "second to another", hca_next_recv(b, &wr) == 1 && wr.token == 1);
	row(23, "slots are free when pulled", hca_soft_wq_recvs(srq) == 4);
	row(24, "at the limit no event", *events == 0);
	hca_next_recv(a, &wr);
	row(25, "below it one event", *events == 1 && f->last.number == srqn && f->last.fe == srq);
	hca_next_recv(a, &wr);
	row(26, "one only", *events == 1);
	row(27, "disarmed", !hca_srq_query(f->ctx, srqn, &attr) && attr.limit == 0 && attr.max_wr == 8);
	row(28, "armed above the level: at once", !hca_srq_set_limit(f->ctx, srqn, 3) && *events == 2);
	row(29, "limit above the size", hca_srq_set_limit(f->ctx, srqn, 9) == -EINVAL);
	post(srq, 9, 1);
	hca_next_recv(a, &wr);
	hca_next_recv(a, &wr);
	row(30, "the last", hca_next_recv(a, &wr) == 1 && wr.token == 9);
	row(31, "empty", hca_next_recv(a, &wr) == 0);
	post(srq, 1, 2);
	row(32, "SGEs of the SRQ, not of the QP", hca_next_recv(b, &wr) == 1);
	row(33, "more SGEs than it was made with", post(srq, 1, 5) == -EINVAL);
}

static void check_error(struct fixture *f, struct hca_soft_wq *srq, struct hca_qp *a, struct hca_soft_cq *cq)
{
	struct hca_recv_wr wr;
	struct hca_cqe cqe;

	post(srq, 40, 1);
	hca_qp_fail(a, HCA_QPS_ERR, -1);
	row(40, "a QP in error does not consume them",
	    hca_soft_cq_poll(cq, &cqe, 1) == 0 && hca_soft_wq_recvs(srq) == 1);
	row(41, "and takes none", hca_next_recv(a, &wr) == 0);
}

int main(void)
{
	struct hca_srq_attr attr = { .max_wr = 8, .max_sge = 4 };
	struct hca_soft_wq *srq, *wa, *wb;
	struct hca_soft_cq *cq;
	struct hca_qp *a, *b;
	struct fixture f;

	fixture_init(&f);
	check_creations(&f);
	hca_soft_cq_create(f.ctx, 16, NULL, NULL, &cq);
	row(10, "no such PD", hca_soft_srq_create(f.ctx, 999, &attr, &srq) == -EINVAL);
	hca_soft_srq_create(f.ctx, f.pdn, &attr, &srq);
	wa = fixture_qp(&f, HCA_QPT_RC, cq, hca_soft_wq_number(srq));
	wb = fixture_qp(&f, HCA_QPT_UD, cq, hca_soft_wq_number(srq));
	a = hca_qp_lookup(f.hca, hca_soft_wq_number(wa));
	b = hca_qp_lookup(f.hca, hca_soft_wq_number(wb));
	fixture_move(&f, wa, HCA_QPS_RTR);
	fixture_move(&f, wb, HCA_QPS_RTR);
	row(11, "busy", hca_soft_wq_destroy(srq) == -EBUSY);
	check_limit(&f, srq, a, b);
	check_error(&f, srq, a, cq);
	hca_soft_wq_destroy(wa);
	hca_soft_wq_destroy(wb);
	row(50, "free", !hca_soft_wq_destroy(srq));
	hca_soft_cq_destroy(cq);
	fixture_fini(&f);
	return rows_end();
}

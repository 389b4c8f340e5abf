// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory windows of type 1 and 2B (10.6.7). The responder binds, the requester accesses. */
#include "windows.h"

#include <errno.h>
#include <string.h>

#define SPAN    8192u /* length of a window from the region's start on */
#define NEXT(k) (((k) & ~0xffu) | (((k) + 1) & 0xff))

struct ibv_mw *mw_make(struct scene *s, struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, type);

	if (!mw)
		wrong(s, "ibv_alloc_mw: %s", strerror(errno));
	return mw;
}

/* Posts the binding to the responder's queue pair @qp; returns the window's new R_Key, or 0 if posting failed. */
static uint32_t mw_bind_on(struct scene *s, struct ibv_qp *qp, struct ibv_mw *mw, struct bind b)
{
	struct end *e = &s->end[RESP];
	struct ibv_mw_bind_info info = {
		.mr = b.mr ? b.mr : e->mr,
		.addr = (uintptr_t)region(e) + b.off,
		.length = b.unbind ? 0
			  : b.len  ? b.len
				   : SPAN,
		.mw_access_flags = b.access == ZERO ? 0
				   : b.access       ? b.access
						    : ALL_RIGHTS,
	};

	if (mw->type == IBV_MW_TYPE_1) {
		struct ibv_mw_bind mb = { .wr_id = 0xb1, .send_flags = IBV_SEND_SIGNALED | b.flags, .bind_info = info };

		return ibv_bind_mw(qp, mw, &mb) ? 0 : mw->rkey;
	} else {
		struct ibv_send_wr wr = { .wr_id = 0xb2,
					  .opcode = IBV_WR_BIND_MW,
					  .send_flags = IBV_SEND_SIGNALED | b.flags,
					  .bind_mw = { .mw = mw,
						       .rkey = b.key ? b.key : NEXT(mw->rkey),
						       .bind_info = info } },
				   *bad;

		return ibv_post_send(qp, &wr, &bad) ? 0 : wr.bind_mw.rkey;
	}
}

uint32_t mw_bind(struct scene *s, struct ibv_mw *mw, struct bind b)
{
	return mw_bind_on(s, s->end[RESP].qp, mw, b);
}

enum ibv_wc_status mw_bound(struct scene *s, unsigned n)
{
	return wait_send(s, RESP, n) ? s->end[RESP].swc[n - 1].status : IBV_WC_GENERAL_ERR;
}

enum ibv_wc_status mw_reach(struct scene *s, unsigned n, struct req r)
{
	post_ok(s, REQ, r);
	return wait_send(s, REQ, n) ? s->end[REQ].swc[n - 1].status : IBV_WC_GENERAL_ERR;
}

static enum ibv_mw_type type_of(struct scene *s)
{
	return s->rule->arg & 2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1;
}

int mw_invalidate(struct scene *s, uint32_t key)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = key },
			   *bad;

	return ibv_post_send(s->end[RESP].qp, &wr, &bad);
}

void mw_done(struct scene *s, struct ibv_mw *mw)
{
	wait_delivered(s);
	s->end[RESP].got_send = 0;
	if (mw)
		EXPECT(s, !ibv_dealloc_mw(mw));
}

/* Access through the window: the requester posts @send, at an offset from the window's start. */

static void through(struct scene *s)
{
	const struct rule *r = s->rule;
	struct end *b = &s->end[RESP];
	struct ibv_mw *mw = mw_make(s, b->pd, type_of(s));
	struct req q = r->send;
	struct bind bd = { .access = (unsigned)r->arg2 };

	q.rkey = mw_bind(s, mw, bd);
	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS);
	post_ok(s, REQ, q);
	wait_send(s, REQ, 1);
	mw_done(s, mw);
}

static void access_rules(void)
{
	static const struct {
		const char *name;
		unsigned have;
		enum ibv_wr_opcode op;
		unsigned off, len;
		bool ok;
	} cases[] = {
		{ "a WRITE within a window with remote write", IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, 8, 3000,
		  true },
		{ "a WRITE of all of a window", IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, 0, SPAN, true },
		{ "a READ within a window with remote read", IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, 8, 3000, true },
		{ "a READ of all of a window", IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, 0, SPAN, true },
		{ "a fetch and add in a window with remote atomic", IBV_ACCESS_REMOTE_ATOMIC,
		  IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, true },
		{ "a compare and swap in a window with remote atomic", IBV_ACCESS_REMOTE_ATOMIC,
		  IBV_WR_ATOMIC_CMP_AND_SWP, 8, 8, true },
		{ "a WRITE through a window with remote read", IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE, 8, 64,
		  false },
		{ "a READ through a window with remote write", IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, 8, 64,
		  false },
		{ "a fetch and add through a window with remote write", IBV_ACCESS_REMOTE_WRITE,
		  IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, false },
		{ "a compare and swap through a window with remote read", IBV_ACCESS_REMOTE_READ,
		  IBV_WR_ATOMIC_CMP_AND_SWP, 8, 8, false },
		{ "a WRITE across a window's end", ALL_RIGHTS, IBV_WR_RDMA_WRITE, SPAN - 8, 16, false },
		{ "a READ across a window's end", ALL_RIGHTS, IBV_WR_RDMA_READ, SPAN - 8, 16, false },
		{ "a WRITE behind a window, within its region", ALL_RIGHTS, IBV_WR_RDMA_WRITE, SPAN, 8, false },
		{ "a READ behind a window, within its region", ALL_RIGHTS, IBV_WR_RDMA_READ, SPAN, 8, false },
		{ "a fetch and add behind a window, within its region", ALL_RIGHTS, IBV_WR_ATOMIC_FETCH_AND_ADD, SPAN,
		  8, false },
	};
	unsigned t, c;

	for (t = 1; t <= 2; t++)
		for (c = 0; c < ARRAY_LEN(cases); c++) {
			bool ok = cases[c].ok;
			struct rule r = { .clause = ok ? "10.6.7.2: a window gives its rights to its range"
						       : "10.6.7.2, 9.7.4.1.5: rights and range are the window's",
					  .send = { .op = cases[c].op, .off = cases[c].off, .len = cases[c].len },
					  .action = through,
					  .arg = t,
					  .arg2 = cases[c].have,
					  .req = { ok ? OK : ST(REM_ACCESS_ERR) },
					  .state = { ok ? 0 : AT(ERR), ok ? 0 : AT(ERR) },
					  .event = { 0, ok ? 0 : EV(QP_ACCESS_ERR) } };

			rule_add(r, "type %u: %s %s", t, cases[c].name, ok ? "is carried out" : "is refused");
		}
}

/* Invalid bindings. @arg: the type of the window. */

static void refused(struct scene *s, struct ibv_mw *mw, uint32_t key)
{
	if (key) /* else posting failed, which is permitted, too */
		EXPECT(s, mw_bound(s, 1) == IBV_WC_MW_BIND_ERR && wait_state(s->end[RESP].qp, IBV_QPS_ERR));
	mw_done(s, mw);
}

static void bind_no_right(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mr *mr = extra_mr(s, b, b->pd, region(b), REGION, IBV_ACCESS_LOCAL_WRITE | ALL_RIGHTS);
	struct ibv_mw *mw = mw_make(s, b->pd, type_of(s));

	refused(s, mw, mw_bind(s, mw, (struct bind){ .mr = mr }));
}

static void bind_other_pd(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mr *mr = extra_mr(s, b, b->other_pd, region(b), REGION, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = mw_make(s, b->pd, type_of(s));

	refused(s, mw, mw_bind(s, mw, (struct bind){ .mr = mr, .access = IBV_ACCESS_REMOTE_READ }));
}

static void bind_window_of_other_pd(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mr *mr = extra_mr(s, b, b->other_pd, region(b), REGION, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = mw_make(s, b->other_pd, type_of(s));

	refused(s, mw, mw_bind(s, mw, (struct bind){ .mr = mr, .access = IBV_ACCESS_REMOTE_READ }));
}

static void bind_beyond(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, type_of(s));

	refused(s, mw, mw_bind(s, mw, (struct bind){ .off = REGION - 100, .len = 101 }));
}

static void bind_before(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, type_of(s));

	refused(s, mw, mw_bind(s, mw, (struct bind){ .off = -8u, .len = 64 }));
}

static void bind_write_of_readonly(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mr *mr = extra_mr(s, b, b->pd, region(b), REGION, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = mw_make(s, b->pd, type_of(s));

	refused(s, mw, mw_bind(s, mw, (struct bind){ .mr = mr, .access = (unsigned)s->rule->arg2 }));
}

static void bind_read_of_readonly(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mr *mr = extra_mr(s, b, b->pd, region(b), REGION, IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = mw_make(s, b->pd, type_of(s));
	uint32_t key = mw_bind(s, mw, (struct bind){ .mr = mr, .access = IBV_ACCESS_REMOTE_READ });

	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_READ, .len = 64, .rkey = key }) == IBV_WC_SUCCESS);
	mw_done(s, mw);
}

static void bind_deregd(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mr *mr = ibv_reg_mr(b->pd, region(b), REGION, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND), copy;
	struct ibv_mw *mw = mw_make(s, b->pd, type_of(s));

	copy = *mr;
	EXPECT(s, !ibv_dereg_mr(mr));
	refused(s, mw, mw_bind(s, mw, (struct bind){ .mr = &copy }));
}

static void bind_freed(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, type_of(s)), copy = *mw;

	EXPECT(s, !ibv_dealloc_mw(mw));
	refused(s, NULL, mw_bind(s, &copy, (struct bind){ 0 }));
}

static void bind_bound(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, IBV_MW_TYPE_2), again;
	uint32_t key = mw_bind(s, mw, (struct bind){ 0 });

	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS);
	again = *mw;
	again.rkey = key;
	EXPECT(s, mw_bind(s, &again, (struct bind){ 0 }));
	EXPECT(s, mw_bound(s, 2) == IBV_WC_MW_BIND_ERR);
	mw_done(s, mw);
}

static void bind_nothing(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, IBV_MW_TYPE_2);

	refused(s, mw, mw_bind(s, mw, (struct bind){ .unbind = true }));
}

static void bind_other_index(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, IBV_MW_TYPE_2);

	EXPECT(s, mw_bind(s, mw, (struct bind){ .key = mw->rkey ^ 0x1ff }) && mw_bound(s, 1) == IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_READ, .len = 64, .rkey = mw->rkey ^ 0xff }) ==
			  IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 2, (struct req){ .op = IBV_WR_RDMA_READ, .len = 64, .rkey = mw->rkey ^ 0x1ff }) ==
			  IBV_WC_REM_ACCESS_ERR);
	mw_done(s, mw);
}

static void bind_same_key(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, IBV_MW_TYPE_2);

	EXPECT(s, mw_bind(s, mw, (struct bind){ .key = mw->rkey }) && mw_bound(s, 1) == IBV_WC_SUCCESS);
	EXPECT(s,
	       mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_READ, .len = 64, .rkey = mw->rkey }) == IBV_WC_SUCCESS);
	mw_done(s, mw);
}

static void bind_zero_based1(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, IBV_MW_TYPE_1);

	refused(s, mw, mw_bind(s, mw, (struct bind){ .access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED }));
}

static void bind_unknown_right(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, type_of(s));

	refused(s, mw, mw_bind(s, mw, (struct bind){ .access = IBV_ACCESS_MW_BIND }));
}

static void type1_by_post(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mw *mw = mw_make(s, b->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind mb = { .send_flags = IBV_SEND_SIGNALED,
				  .bind_info = { b->mr, (uintptr_t)region(b), SPAN, ALL_RIGHTS } };

	EXPECT(s, ibv_bind_mw(b->qp, mw, &mb) == EINVAL);
	mw_done(s, mw);
}

static void bind_on_ud(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, IBV_MW_TYPE_2);

	EXPECT(s, !mw_bind(s, mw, (struct bind){ 0 }));
	mw_done(s, mw);
}

static void bind_on_uc(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, type_of(s));
	uint32_t key = mw_bind(s, mw, (struct bind){ .access = IBV_ACCESS_REMOTE_WRITE });

	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 64, .rkey = key }) == IBV_WC_SUCCESS);
	wait_delivered(s);
	EXPECT(s, !memcmp(region(&s->end[REQ]), region(&s->end[RESP]), 64));
	mw_done(s, mw);
}

/* Life of a binding. */

static void zero_based(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mw *mw = mw_make(s, b->pd, type_of(s));
	uint32_t key =
		mw_bind(s, mw, (struct bind){ .off = 4096, .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED });

	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 64, .rkey = key, .raddr = 128 }) ==
			  IBV_WC_SUCCESS);
	EXPECT(s, !memcmp(region(b) + 4096 + 128, region(&s->end[REQ]), 64));
	mw_done(s, mw);
}

static void zero_based_beyond(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, type_of(s));
	uint32_t key =
		mw_bind(s, mw, (struct bind){ .off = 4096, .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED });

	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 64, .rkey = key, .raddr = SPAN - 32 }) ==
			  IBV_WC_REM_ACCESS_ERR);
	mw_done(s, mw);
}

static void never_bound(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, type_of(s));

	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .rkey = mw->rkey }) ==
			  IBV_WC_REM_ACCESS_ERR);
	mw_done(s, mw);
}

static void after_free(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, type_of(s));
	uint32_t key = mw_bind(s, mw, (struct bind){ 0 });

	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS && !ibv_dealloc_mw(mw));
	EXPECT(s,
	       mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .rkey = key }) == IBV_WC_REM_ACCESS_ERR);
	mw_done(s, NULL);
}

static void dereg_bound(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mw *mw = mw_make(s, b->pd, type_of(s));

	mw_bind(s, mw, (struct bind){ 0 });
	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS);
	EXPECT(s, ibv_dereg_mr(b->mr) == EBUSY);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8 }) == IBV_WC_SUCCESS);
	mw_done(s, mw);
}

static void rebind1(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, IBV_MW_TYPE_1);
	uint32_t first = mw_bind(s, mw, (struct bind){ 0 }), second = mw_bind(s, mw, (struct bind){ .off = SPAN });

	EXPECT(s, mw_bound(s, 2) == IBV_WC_SUCCESS && first != second);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .off = SPAN, .rkey = second }) ==
			  IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 2, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .rkey = first }) ==
			  IBV_WC_REM_ACCESS_ERR);
	mw_done(s, mw);
}

static void unbind1(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, IBV_MW_TYPE_1);
	uint32_t first = mw_bind(s, mw, (struct bind){ 0 });

	EXPECT(s, first && mw_bind(s, mw, (struct bind){ .unbind = true }));
	EXPECT(s, mw_bound(s, 2) == IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_READ, .len = 8, .rkey = first }) ==
			  IBV_WC_REM_ACCESS_ERR);
	mw_done(s, mw);
}

/* A second connection of the same PDs: may it use windows bound by the first one's queue pair? */
static void other_qp(struct scene *s)
{
	struct end *a = &s->end[REQ], *b = &s->end[RESP];
	struct ibv_qp *own = a->qp, *made[2];
	struct ibv_mw *mw = mw_make(s, b->pd, type_of(s));
	uint32_t key = mw_bind(s, mw, (struct bind){ 0 });
	bool shared = type_of(s) == IBV_MW_TYPE_1;
	int i;

	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS);
	for (i = 0; i < 2; i++)
		made[i] = qp_make(s, i, IBV_QPT_RC, &s->rule->knob[i]);
	for (i = 0; i < 2; i++)
		qp_connect(s, i, made[i], made[!i]->qp_num, IBV_QPS_RTS, &s->rule->knob[i]);
	a->qp = made[REQ];
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .rkey = key }) ==
			  (shared ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR));
	a->qp = own;
	if (!shared)
		EXPECT(s, wait_event(s, RESP, IBV_EVENT_QP_ACCESS_ERR));
	b->events = 0;
	EXPECT(s, mw_reach(s, 2, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .rkey = key }) == IBV_WC_SUCCESS);
	for (i = 0; i < 2; i++)
		EXPECT(s, !ibv_destroy_qp(made[i]));
	mw_done(s, mw);
}

static void destroy_unbinds(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mw *mw = mw_make(s, b->pd, type_of(s));
	bool two = type_of(s) == IBV_MW_TYPE_2;

	mw_bind(s, mw, (struct bind){ 0 });
	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS);
	if (s->rule->arg2)
		EXPECT(s, !qp_modify(s, RESP, b->qp, IBV_QPS_RESET, &s->rule->knob[RESP], 0));
	else {
		EXPECT(s, !ibv_destroy_qp(b->qp));
		b->qp = NULL;
	}
	if (two) {
		EXPECT(s, !ibv_dereg_mr(b->mr));
		b->mr = NULL;
	} else {
		EXPECT(s, ibv_dereg_mr(b->mr) == EBUSY);
	}
	mw_done(s, mw);
}

static void bind_then_send(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mw *mw = mw_make(s, b->pd, IBV_MW_TYPE_2);
	uint32_t key;

	post_recvs(s, REQ, 1, (struct recv){ 0 });
	key = mw_bind(s, mw, (struct bind){ .flags = 0 });
	memcpy(region(b) + INBOX, &key, 4);
	post_ok(s, RESP, (struct req){ .op = IBV_WR_SEND, .len = 4, .off = INBOX });
	EXPECT(s, wait_recv(s, REQ, 1));
	memcpy(&key, region(&s->end[REQ]) + INBOX, 4);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .rkey = key }) == IBV_WC_SUCCESS);
	EXPECT(s, mw_bound(s, 2) == IBV_WC_SUCCESS);
	mw_done(s, mw);
}

static void bind_in_order(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mw *mw = mw_make(s, b->pd, IBV_MW_TYPE_2);
	uint32_t key;

	post_ok(s, RESP, (struct req){ .op = IBV_WR_RDMA_READ, .len = 8000, .id = 1 });
	key = mw_bind(s, mw, (struct bind){ .flags = s->rule->arg2 ? IBV_SEND_FENCE : 0 });
	post_ok(s, RESP, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .id = 3 });
	mw_invalidate(s, key);
	EXPECT(s, mw_bound(s, 4) == IBV_WC_SUCCESS);
	EXPECT(s, b->swc[0].opcode == IBV_WC_RDMA_READ && b->swc[1].opcode == IBV_WC_BIND_MW &&
			  b->swc[2].opcode == IBV_WC_RDMA_WRITE && b->swc[3].opcode == IBV_WC_LOCAL_INV);
	mw_done(s, mw);
}

static void lkey_of_window(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mw *mw = mw_make(s, b->pd, type_of(s));
	struct ibv_sge sge = { (uintptr_t)region(b), 8, mw_bind(s, mw, (struct bind){ 0 }) };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	EXPECT(s, !ibv_post_send(b->qp, &wr, &bad) && mw_bound(s, 2) == IBV_WC_LOC_PROT_ERR);
	mw_done(s, mw);
}

static void over_window(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mw *one = mw_make(s, b->pd, IBV_MW_TYPE_2), *two = mw_make(s, b->pd, IBV_MW_TYPE_2);
	uint32_t first = mw_bind(s, one, (struct bind){ 0 }),
		 second = mw_bind(s, two, (struct bind){ .off = SPAN / 2 });

	EXPECT(s, mw_bound(s, 2) == IBV_WC_SUCCESS && !mw_invalidate(s, first) && mw_bound(s, 3) == IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .off = SPAN / 2, .rkey = second }) ==
			  IBV_WC_SUCCESS);
	EXPECT(s, !ibv_dealloc_mw(one));
	mw_done(s, two);
}

static void mr_key_beside(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, IBV_MW_TYPE_2);
	uint32_t key = mw_bind(s, mw, (struct bind){ .access = IBV_ACCESS_REMOTE_READ });

	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS && key);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8 }) == IBV_WC_SUCCESS);
	mw_done(s, mw);
}

static void pd_with_window(struct scene *s)
{
	struct ibv_pd *pd = ibv_alloc_pd(s->end[RESP].ctx);
	struct ibv_mw *mw = mw_make(s, pd, type_of(s));

	EXPECT(s, ibv_dealloc_pd(pd) == EBUSY);
	EXPECT(s, !ibv_dealloc_mw(mw) && !ibv_dealloc_pd(pd));
}

static const struct rule both_rows[] = {
	{ "binding to a region without bind access is refused", "C10-73: the region permits windows",
	  .action = bind_no_right, POSTED },
	{ "binding to a region of another PD is refused", "10.6.7.2: window and region share a PD",
	  .action = bind_other_pd, POSTED },
	{ "binding a window of another PD is refused", "C10-72: window and queue pair share a PD",
	  .action = bind_window_of_other_pd, POSTED },
	{ "binding beyond the region is refused", "C10-75: within the region", .action = bind_beyond, POSTED },
	{ "binding before the region is refused", "C10-75: within the region", .action = bind_before, POSTED },
	{ "binding remote write to a region without local write is refused", "C10-74: the region's rights",
	  .action = bind_write_of_readonly, .arg2 = IBV_ACCESS_REMOTE_WRITE, POSTED },
	{ "binding remote atomic to a region without local write is refused", "C10-74: the region's rights",
	  .action = bind_write_of_readonly, .arg2 = IBV_ACCESS_REMOTE_ATOMIC, POSTED },
	{ "binding remote read needs no right of the region but bind", "C10-74: the region's rights",
	  .action = bind_read_of_readonly, .req = { OK } },
	{ "binding to a deregistered region is refused", "10.6.7.2: a valid L_Key", .action = bind_deregd, POSTED },
	{ "binding a window that was freed is refused", "10.6.7.2: a valid R_Key", .action = bind_freed, POSTED },
	{ "binding a right that windows do not have is refused", "11.2.8.11: access rights",
	  .action = bind_unknown_right, POSTED },
	{ "UC binds and its peer writes", "9.4: bind on UC", .type = IBV_QPT_UC, .action = bind_on_uc, .req = { OK } },
	{ "a window that was never bound gives no access", "10.6.7.2: unbound", .action = never_bound, DENIED },
	{ "a window that was freed gives no access", "11.2.8.12: deallocate", .action = after_free, DENIED },
	{ "a region with a window bound to it is not deregistered", "10.6.7.2.6, 11.2.8.5: windows still bound",
	  .action = dereg_bound, .req = { OK } },
	{ "another queue pair of the PD", "10.6.7.2: type 1 is checked by PD, type 2B by PD and queue pair",
	  .action = other_qp, .req = { OK, OK } },
	{ "destruction of the queue pair that bound it", "10.6.7.2: type 2B ends with its queue pair, type 1 does not",
	  .action = destroy_unbinds, .state = { 0, GONE } },
	{ "RESET of the queue pair that bound it", "10.6.7.2: type 2B ends with its queue pair, type 1 does not",
	  .action = destroy_unbinds, .arg2 = 1, .state = { 0, AT(RESET) } },
	{ "a window's key names no local memory", "10.6.7.1: an R_Key alone", .action = lkey_of_window, REFUSED },
	{ "a PD with a window is not freed", "11.2.1.6: in use", .action = pd_with_window },
};

static void both_types(void)
{
	unsigned t, i;

	for (t = 1; t <= 2; t++)
		for (i = 0; i < ARRAY_LEN(both_rows); i++) {
			struct rule r = both_rows[i];

			r.arg = t;
			if (r.action == other_qp && t == 2)
				r.req[0] = ST(REM_ACCESS_ERR);
			rule_add(r, "type %u: %s", t, both_rows[i].name);
		}
}

static const struct rule rows[] = {
	{ "type 2: binding a bound window is refused", "o10-37.2.30: a window of type 2 is free to be bound",
	  .action = bind_bound, REFUSED },
	{ "type 2: binding to no byte is refused", "o10-37.2.40: type 2 is unbound by invalidation",
	  .action = bind_nothing, REFUSED },
	{ "type 2: binding takes the low byte of the new key, and no index",
	  "10.6.7.2: the consumer owns the low byte alone", .action = bind_other_index,
	  .req = { OK, ST(REM_ACCESS_ERR) }, .state = { AT(ERR), AT(ERR) }, .event = { 0, EV(QP_ACCESS_ERR) } },
	{ "type 2: a free window may be bound under the key that it has", "10.6.7.2: the consumer owns the low byte",
	  .action = bind_same_key, .req = { OK } },
	{ "type 1: binding zero based is refused", "o10-36.2.2: zero based windows are of type 2",
	  .action = bind_zero_based1, .arg = 1, POSTED },
	{ "type 2: a zero based window counts from its start", "10.6.2.1, 10.6.7: zero based virtual addresses",
	  .action = zero_based, .arg = 2, .req = { OK } },
	{ "type 2: a zero based window ends at its length", "10.6.2.1, 10.6.7: zero based virtual addresses",
	  .action = zero_based_beyond, .arg = 2, DENIED },
	{ "type 2: the verb of type 1 is refused", "11.2.8.11: bind by work request", .action = type1_by_post },
	{ "UD does not bind", "9.4: no bind on UD", .type = IBV_QPT_UD, .action = bind_on_ud },
	{ "type 1: binding anew ends the old key", "10.6.7.2: a new R_Key with each bind", .action = rebind1,
	  .req = { OK, ST(REM_ACCESS_ERR) }, .state = { AT(ERR), AT(ERR) }, .event = { 0, EV(QP_ACCESS_ERR) } },
	{ "type 1: binding no byte unbinds", "10.6.7.2: zero length unbinds", .action = unbind1, DENIED },
	{ "a window is bound when the SEND behind the binding arrives", "10.6.7.2, 10.8.3.3: in order",
	  .action = bind_then_send, .req = { OK } },
	{ "binding, requests and invalidation complete in order", "10.8.3.3: in order", .action = bind_in_order },
	{ "a fenced binding behind a READ completes in order", "10.8.3.3: fence", .action = bind_in_order, .arg2 = 1 },
	{ "windows over one range are independent", "10.6.7.2", .action = over_window, .req = { OK } },
	{ "the region's own key is not narrowed by a window", "10.6.7.1: a region beside its windows",
	  .action = mr_key_beside, .req = { OK } },
};

void windows_rules(void)
{
	unsigned i;

	access_rules();
	both_types();
	for (i = 0; i < ARRAY_LEN(rows); i++)
		rule_add(rows[i], "%s", rows[i].name);
	invalidation_rules();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Invalidation of memory windows by either side (10.6.5). */
#include "windows.h"

#include <errno.h>

#define UNANSWERED .req = { ST(RETRY_EXC_ERR) }, .state = { AT(ERR), AT(ERR) }, .event = { 0, EV(QP_ACCESS_ERR) }

static void local_inv(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, IBV_MW_TYPE_2), copy;
	uint32_t key = mw_bind(s, mw, (struct bind){ 0 });

	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS && !mw_invalidate(s, key));
	EXPECT(s, mw_bound(s, 2) == IBV_WC_SUCCESS && s->end[RESP].swc[1].opcode == IBV_WC_LOCAL_INV);
	copy = *mw;
	copy.rkey = key;
	key = mw_bind(s, &copy, (struct bind){ 0 }); /* can be bound again */
	EXPECT(s, mw_bound(s, 3) == IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .rkey = key }) == IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 2, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .rkey = copy.rkey }) ==
			  IBV_WC_REM_ACCESS_ERR);
	mw_done(s, mw);
}

static void local_inv_then_access(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, IBV_MW_TYPE_2);
	uint32_t key = mw_bind(s, mw, (struct bind){ 0 });

	EXPECT(s, !mw_invalidate(s, key) && mw_bound(s, 2) == IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = (enum ibv_wr_opcode)s->rule->arg2, .len = 8, .rkey = key }) ==
			  IBV_WC_REM_ACCESS_ERR);
	mw_done(s, mw);
}

static void local_inv_wrong(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mw *mw = mw_make(s, b->pd, s->rule->arg2 == 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	uint32_t key = 0xdead00;

	if (s->rule->arg2 == 1)
		key = mw->rkey; /* not bound */
	if (s->rule->arg2 == 2)
		key = mw_bind(s, mw, (struct bind){ 0 });
	if (s->rule->arg2 == 3)
		key = b->mr->rkey;
	EXPECT(s, !mw_invalidate(s, key));
	EXPECT(s, mw_bound(s, s->rule->arg2 == 2 ? 2 : 1) != IBV_WC_SUCCESS);
	EXPECT(s, wait_state(b->qp, IBV_QPS_ERR));
	mw_done(s, mw);
}

static void remote_inv(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mw *mw = mw_make(s, b->pd, IBV_MW_TYPE_2);
	uint32_t key = mw_bind(s, mw, (struct bind){ 0 });

	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 1,
			   (struct req){ .op = IBV_WR_SEND_WITH_INV, .len = (unsigned)s->rule->arg2, .rkey = key }) ==
			  IBV_WC_SUCCESS);
	EXPECT(s, wait_recv(s, RESP, 1) && b->rwc[0].wc_flags & IBV_WC_WITH_INV && b->rwc[0].invalidated_rkey == key);
	EXPECT(s, !ibv_dereg_mr(b->mr)); /* no window is bound to it now */
	b->mr = NULL;
	b->mr = ibv_reg_mr(b->pd, region(b), REGION, IBV_ACCESS_LOCAL_WRITE | ALL_RIGHTS);
	EXPECT(s,
	       mw_reach(s, 2, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .rkey = key }) == IBV_WC_REM_ACCESS_ERR);
	mw_done(s, mw);
}

static void remote_inv_wrong(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mw *mw = mw_make(s, b->pd, s->rule->arg2 == 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	uint32_t key = 0xdead00;

	if (s->rule->arg2 == 1)
		key = mw->rkey;
	if (s->rule->arg2 == 2) {
		key = mw_bind(s, mw, (struct bind){ 0 });
		EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS);
	}
	if (s->rule->arg2 == 3)
		key = b->mr->rkey;
	post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND_WITH_INV, .len = 8, .rkey = key });
	EXPECT(s, wait_send(s, REQ, 1) && wait_recv(s, RESP, 1));
	EXPECT(s, b->rwc[0].status != IBV_WC_SUCCESS);
	b->got_recv = 0;
	mw_done(s, mw);
}

static void inv_rnr(struct scene *s)
{
	struct ibv_mw *mw = mw_make(s, s->end[RESP].pd, IBV_MW_TYPE_2);
	uint32_t key = mw_bind(s, mw, (struct bind){ 0 });

	EXPECT(s, mw_bound(s, 1) == IBV_WC_SUCCESS);
	EXPECT(s, mw_reach(s, 1, (struct req){ .op = IBV_WR_SEND_WITH_INV, .len = 8, .rkey = key }) ==
			  IBV_WC_RNR_RETRY_EXC_ERR);
	EXPECT(s, ibv_dereg_mr(s->end[RESP].mr) == EBUSY); /* a window is still bound */
	mw_done(s, mw);
}

static const struct rule rows[] = {
	{ "local invalidation frees the window for another binding", "10.6.5: local invalidate", .action = local_inv,
	  .req = { OK, ST(REM_ACCESS_ERR) }, .state = { AT(ERR), AT(ERR) }, .event = { 0, EV(QP_ACCESS_ERR) } },
	{ "a WRITE after local invalidation is refused", "10.6.5: local invalidate", .action = local_inv_then_access,
	  .arg2 = IBV_WR_RDMA_WRITE, DENIED },
	{ "a READ after local invalidation is refused", "10.6.5: local invalidate", .action = local_inv_then_access,
	  .arg2 = IBV_WR_RDMA_READ, DENIED },
	{ "an atomic after local invalidation is refused", "10.6.5: local invalidate", .action = local_inv_then_access,
	  .arg2 = IBV_WR_ATOMIC_FETCH_AND_ADD, DENIED },
	{ "local invalidation of a key that was never given fails", "10.6.5, 11.6.2: invalid key",
	  .action = local_inv_wrong, REFUSED },
	{ "local invalidation of a window that is not bound fails", "10.6.5, 11.6.2: not valid",
	  .action = local_inv_wrong, .arg2 = 1, REFUSED },
	{ "local invalidation of a window of type 1 fails", "10.6.5: type 2 alone", .action = local_inv_wrong,
	  .arg2 = 2, REFUSED },
	{ "local invalidation of a registered region fails", "10.6.5: regions for fast registration alone",
	  .action = local_inv_wrong, .arg2 = 3, REFUSED },
	{ "SEND with invalidate unbinds, and the completion has the key", "9.4.1.1, 10.6.5: remote invalidate",
	  .recvs = 1, .action = remote_inv, .arg2 = 100, .req = { OK, ST(REM_ACCESS_ERR) }, .resp = { OK },
	  .state = { AT(ERR), AT(ERR) }, .event = { 0, EV(QP_ACCESS_ERR) } },
	{ "SEND with invalidate of several packets unbinds at its end", "9.4.1.1: IETH in the last packet", .recvs = 1,
	  .action = remote_inv, .arg2 = 3000, .req = { OK, ST(REM_ACCESS_ERR) }, .resp = { OK },
	  .state = { AT(ERR), AT(ERR) }, .event = { 0, EV(QP_ACCESS_ERR) } },
	{ "SEND with invalidate of no byte unbinds", "9.4.1.1: zero length", .recvs = 1, .action = remote_inv,
	  .arg2 = 0, .req = { OK, ST(REM_ACCESS_ERR) }, .resp = { OK }, .state = { AT(ERR), AT(ERR) },
	  .event = { 0, EV(QP_ACCESS_ERR) } },
	{ "SEND with invalidate of a key that was never given is refused", "9.9.6.3: class J, no NAK", .recvs = 1,
	  .action = remote_inv_wrong, UNANSWERED },
	{ "SEND with invalidate of a window that is not bound is refused", "9.9.6.3: class J, no NAK", .recvs = 1,
	  .action = remote_inv_wrong, .arg2 = 1, UNANSWERED },
	{ "SEND with invalidate of a window of type 1 is refused", "9.9.6.3: class J, no NAK; 10.6.5: type 2 alone",
	  .recvs = 1, .action = remote_inv_wrong, .arg2 = 2, UNANSWERED },
	{ "SEND with invalidate of a registered region is refused",
	  "9.9.6.3: class J, no NAK; 10.6.5: regions for fast registration alone", .recvs = 1,
	  .action = remote_inv_wrong, .arg2 = 3, UNANSWERED },
	{ "SEND with invalidate without a posted receive has no effect",
	  "9.7.4.1.4, 10.6.5: after the message is accepted", .knob[REQ].rnr_retry = ZERO, .action = inv_rnr,
	  .req = { ST(RNR_RETRY_EXC_ERR) }, .state = { AT(ERR) } },
	{ "UC has no SEND with invalidate", "9.4", .type = IBV_QPT_UC,
	  .send = { .op = IBV_WR_SEND_WITH_INV, .len = 8, .rkey = 1 }, .req = { ST(LOC_QP_OP_ERR) },
	  .state = { AT(SQE) } },
	{ "UD has no SEND with invalidate", "9.4", .type = IBV_QPT_UD,
	  .send = { .op = IBV_WR_SEND_WITH_INV, .len = 8, .rkey = 1 }, .req = { ST(LOC_QP_OP_ERR) },
	  .state = { AT(SQE) } },
	{ "UD has no local invalidate", "9.4", .type = IBV_QPT_UD, .send = { .op = IBV_WR_LOCAL_INV, .rkey = 1 },
	  .req = { ST(LOC_QP_OP_ERR) }, .state = { AT(SQE) } },
};

void invalidation_rules(void)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		rule_add(rows[i], "%s", rows[i].name);
}

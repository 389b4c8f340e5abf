// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Verbs objects: permitted combinations, use counts, and requests whose objects are destroyed. */
#include "rules.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static void pd_of_mr(struct scene *s)
{
	struct end *e = &s->end[REQ];
	struct ibv_pd *pd = ibv_alloc_pd(e->ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, region(e), 64, 0);

	EXPECT(s, ibv_dealloc_pd(pd) == EBUSY);
	EXPECT(s, !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
}

static void pd_of_ah(struct scene *s)
{
	struct ibv_pd *pd = ibv_alloc_pd(s->end[REQ].ctx);
	struct ibv_ah *ah = ah_to(s, REQ, pd);

	EXPECT(s, ibv_dealloc_pd(pd) == EBUSY);
	EXPECT(s, !ibv_destroy_ah(ah) && !ibv_dealloc_pd(pd));
}

static void pd_of_srq(struct scene *s)
{
	struct ibv_pd *pd = ibv_alloc_pd(s->end[REQ].ctx);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	EXPECT(s, ibv_dealloc_pd(pd) == EBUSY);
	EXPECT(s, !ibv_destroy_srq(srq) && !ibv_dealloc_pd(pd));
}

#define UNKNOWN(s, object, destroy)                   \
	do {                                          \
		(object)->handle ^= 0xdead0000;       \
		EXPECT(s, destroy(object) == ENOENT); \
		(object)->handle ^= 0xdead0000;       \
		EXPECT(s, !destroy(object));          \
	} while (0)

static void unknown_handles(struct scene *s)
{
	struct end *e = &s->end[REQ];
	struct ibv_pd *pd = ibv_alloc_pd(e->ctx);
	struct ibv_cq *cq = ibv_create_cq(e->ctx, 8, NULL, NULL, 0);
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &shared);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_mr *mr = ibv_reg_mr(pd, region(e), 64, 0);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);

	UNKNOWN(s, qp, ibv_destroy_qp);
	UNKNOWN(s, srq, ibv_destroy_srq);
	UNKNOWN(s, cq, ibv_destroy_cq);
	UNKNOWN(s, mr, ibv_dereg_mr);
	if (mw)
		UNKNOWN(s, mw, ibv_dealloc_mw);
	UNKNOWN(s, pd, ibv_dealloc_pd);
}

static void pd_of_qp(struct scene *s)
{
	struct end *e = &s->end[REQ];
	struct ibv_pd *pd = ibv_alloc_pd(e->ctx);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = e->scq, .recv_cq = e->rcq, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	EXPECT(s, ibv_dealloc_pd(pd) == EBUSY);
	EXPECT(s, !ibv_destroy_qp(qp) && !ibv_dealloc_pd(pd));
}

static void cq_in_use(struct scene *s)
{
	EXPECT(s, ibv_destroy_cq(s->end[REQ].scq) == EBUSY && ibv_destroy_cq(s->end[REQ].rcq) == EBUSY);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8 });
}

static void reg_access(struct scene *s)
{
	struct end *e = &s->end[REQ];
	struct ibv_mr *mr = ibv_reg_mr(e->pd, region(e), 64, (int)s->rule->arg);

	EXPECT(s, !mr && errno == EINVAL);
	if (mr)
		ibv_dereg_mr(mr);
}

static void reg_unmapped(struct scene *s)
{
	struct end *e = &s->end[REQ];
	size_t hole = 64u << 20; /* other mappings do not reach its lower end */
	char *page = mmap(NULL, hole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_mr *mr;

	munmap(page, hole);
	mr = ibv_reg_mr(e->pd, page, 8192, IBV_ACCESS_LOCAL_WRITE);
	EXPECT(s, !mr && errno == EFAULT);
	if (mr)
		ibv_dereg_mr(mr);
}

static void reg_hole(struct scene *s)
{
	struct end *e = &s->end[REQ];
	size_t len = 64u << 20, hole = 4096;
	char *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_mr *mr;

	munmap(page + len / 2, hole);
	mr = ibv_reg_mr(e->pd, page, len, IBV_ACCESS_LOCAL_WRITE);
	EXPECT(s, !mr && errno == EFAULT);
	if (mr)
		ibv_dereg_mr(mr);
	munmap(page, len);
}

static void reg_readonly(struct scene *s)
{
	struct end *e = &s->end[REQ];
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, page, 4096, (int)s->rule->arg2);

	EXPECT(s, s->rule->arg ? mr != NULL : !mr && errno == EFAULT);
	if (mr)
		ibv_dereg_mr(mr);
	munmap(page, 4096);
}

static void reg_many(struct scene *s)
{
	struct end *e = &s->end[REQ];
	struct ibv_mr *mr[64];
	unsigned i, j;

	for (i = 0; i < 64; i++) {
		mr[i] = ibv_reg_mr(e->pd, region(e), 64 + i, RIGHTS);
		for (j = 0; mr[i] && j < i; j++)
			EXPECT(s, mr[i]->lkey != mr[j]->lkey && mr[i]->rkey != mr[j]->rkey);
	}
	for (i = 0; i < 64; i++)
		EXPECT(s, mr[i] && !ibv_dereg_mr(mr[i]));
}

static void key_is_new(struct scene *s)
{
	struct end *e = &s->end[REQ];
	uint32_t last = 0;
	unsigned i;

	for (i = 0; i < 40; i++) {
		struct ibv_mr *mr = ibv_reg_mr(e->pd, region(e), 64, RIGHTS);

		EXPECT(s, mr && mr->lkey != last);
		last = mr->lkey;
		ibv_dereg_mr(mr);
	}
}

static void overlapping(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mr *one = ibv_reg_mr(b->pd, region(b), 4096, RIGHTS),
		      *two = extra_mr(s, b, b->pd, region(b) + 2048, 4096, RIGHTS);

	EXPECT(s, one && !ibv_dereg_mr(one));
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 64, .off = 2048, .rkey = two->rkey });
}

static void dereg_while_read(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mr *mr = ibv_reg_mr(b->pd, region(b), REGION, RIGHTS);
	uint32_t key = mr->rkey;
	unsigned i;

	for (i = 0; i < 8; i++)
		post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_READ, .len = 32768 - 64, .rkey = key, .id = i });
	EXPECT(s, !ibv_dereg_mr(mr));
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_READ, .len = 64, .rkey = key, .id = 8 });
	EXPECT(s, wait_send(s, REQ, 9));
	for (i = 0; i < s->end[REQ].got_send; i++)
		EXPECT(s, s->end[REQ].swc[i].wr_id == i && (s->end[REQ].swc[i].status == IBV_WC_SUCCESS ||
							    s->end[REQ].swc[i].status == IBV_WC_REM_ACCESS_ERR ||
							    s->end[REQ].swc[i].status == IBV_WC_WR_FLUSH_ERR));
	EXPECT(s, s->end[REQ].swc[8].status != IBV_WC_SUCCESS);
	s->end[REQ].got_send = 0;
}

static void dereg_own(struct scene *s)
{
	struct end *a = &s->end[REQ];
	struct ibv_mr *mr = ibv_reg_mr(a->pd, region(a), REGION, RIGHTS);
	struct ibv_sge sge = { (uintptr_t)region(a), 64, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	EXPECT(s, !ibv_dereg_mr(mr) && !ibv_post_send(a->qp, &wr, &bad));
}

static void qp_caps(struct scene *s)
{
	static const struct ibv_qp_cap bad[] = {
		{ 1u << 30, 1, 1, 1, 0 }, { 1, 1u << 30, 1, 1, 0 }, { 1, 1, 1000, 1, 0 },
		{ 1, 1, 1, 1000, 0 },     { 1, 1, 1, 1, 1u << 20 },
	};
	struct end *e = &s->end[REQ];
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = e->scq, .recv_cq = e->rcq, .cap = bad[s->rule->arg]
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	EXPECT(s, !qp && errno == EINVAL);
	if (qp)
		ibv_destroy_qp(qp);
}

static void qp_caps_given(struct scene *s)
{
	struct end *e = &s->end[REQ];
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .send_cq = e->scq,
					 .recv_cq = e->rcq,
					 .cap = { 10, 11, 3, 2, 50 } },
				q;
	struct ibv_qp_attr a;
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	EXPECT(s, qp && init.cap.max_send_wr >= 10 && init.cap.max_recv_wr >= 11 && init.cap.max_send_sge >= 3 &&
			  init.cap.max_recv_sge >= 2 && init.cap.max_inline_data >= 50);
	EXPECT(s, !ibv_query_qp(qp, &a, IBV_QP_CAP, &q) && !memcmp(&q.cap.max_send_sge, &init.cap.max_send_sge, 12));
	EXPECT(s, q.cap.max_send_wr >= 10 && q.cap.max_recv_wr >= 11);
	EXPECT(s, !ibv_destroy_qp(qp));
}

static void qp_type_unknown(struct scene *s)
{
	struct end *e = &s->end[REQ];
	struct ibv_qp_init_attr init = { .qp_type = (enum ibv_qp_type)s->rule->arg,
					 .send_cq = e->scq,
					 .recv_cq = e->rcq,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	EXPECT(s, !qp && (errno == EOPNOTSUPP || errno == EINVAL));
	if (qp)
		ibv_destroy_qp(qp);
}

static void qp_numbers(struct scene *s)
{
	struct ibv_qp *qp[32];
	unsigned i, j;

	for (i = 0; i < 32; i++) {
		qp[i] = qp_make(s, REQ, IBV_QPT_RC, &s->rule->knob[REQ]);
		EXPECT(s, qp[i] && qp[i]->qp_num > 1 && qp[i]->qp_num < 0xffffff);
		for (j = 0; qp[i] && j < i; j++)
			EXPECT(s, qp[i]->qp_num != qp[j]->qp_num);
	}
	for (i = 0; i < 32; i++)
		ibv_destroy_qp(qp[i]);
}

static void query_tells(struct scene *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	EXPECT(s, !ibv_query_qp(s->end[REQ].qp, &a, IBV_QP_STATE, &init));
	EXPECT(s, a.qp_state == IBV_QPS_RTS && a.cur_qp_state == IBV_QPS_RTS && a.port_num == s->end[REQ].port);
	EXPECT(s, a.dest_qp_num == s->end[RESP].qpn && a.ah_attr.dlid == s->end[RESP].attr.lid &&
			  a.path_mtu == IBV_MTU_1024);
	EXPECT(s, a.timeout == 13 && a.retry_cnt == 5 && a.rnr_retry == 4 && a.max_rd_atomic == 3);
	EXPECT(s, a.max_dest_rd_atomic == 2 && a.min_rnr_timer == 17 && a.pkey_index == 0);
	EXPECT(s, a.qp_access_flags == IBV_ACCESS_REMOTE_READ && a.sq_psn == 0x777);
}

/* The attributes that creation has set. */
static void query_tells_creation(struct scene *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	EXPECT(s, !ibv_query_qp(s->end[REQ].qp, &a, IBV_QP_STATE, &init));
	EXPECT(s, init.qp_type == IBV_QPT_RC && init.send_cq == s->end[REQ].scq && init.recv_cq == s->end[REQ].rcq);
	EXPECT(s, !init.srq && init.sq_sig_all == (int)s->rule->arg);
}

static void reset_forgets(struct scene *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	EXPECT(s, !qp_modify(s, REQ, s->end[REQ].qp, IBV_QPS_RESET, &s->rule->knob[REQ], 0));
	EXPECT(s, !ibv_query_qp(s->end[REQ].qp, &a, IBV_QP_STATE, &init) && a.qp_state == IBV_QPS_RESET && !a.timeout &&
			  !a.dest_qp_num);
}

static void ah_values(struct scene *s)
{
	struct end *e = &s->end[REQ];
	struct ibv_ah_attr a = { .dlid = s->end[RESP].attr.lid, .port_num = e->port };
	struct ibv_ah *ah;

	switch (s->rule->arg) {
	case 0:
		a.port_num = 0;
		break;
	case 1:
		a.port_num = 3;
		break;
	case 2:
		a.sl = 16;
		break;
	case 3:
		a.static_rate = 1;
		break;
	case 4:
		a.is_global = 1;
		a.grh.sgid_index = 200;
		break;
	default:
		a.src_path_bits = 128;
		break;
	}
	ah = ibv_create_ah(e->pd, &a);
	EXPECT(s, !ah && errno == EINVAL);
	if (ah)
		ibv_destroy_ah(ah);
}

static void flow_label(struct scene *s)
{
	struct end *e = &s->end[REQ];
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = s->end[RESP].qpn,
		.ah_attr = { .dlid = s->end[RESP].attr.lid,
			     .port_num = e->port,
			     .is_global = 1,
			     .grh = { .flow_label = ~0u, .hop_limit = 1 } },
	};
	struct ibv_ah *ah = ibv_create_ah(e->pd, &a.ah_attr);

	EXPECT(s, ah);
	if (ah)
		ibv_destroy_ah(ah);
	EXPECT(s, !qp_modify(s, REQ, e->qp, IBV_QPS_INIT, &s->rule->knob[REQ], 0));
	EXPECT(s, !ibv_modify_qp(e->qp, &a,
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	EXPECT(s, !ibv_query_qp(e->qp, &a, IBV_QP_AV, &init) && a.ah_attr.grh.flow_label == 0xfffff);
}

static void ah_destroyed(struct scene *s)
{
	struct end *a = &s->end[REQ];
	struct ibv_ah *ah = ah_to(s, REQ, a->pd);
	unsigned i;

	for (i = 0; i < 4; i++)
		post_ok(s, REQ, (struct req){ .op = IBV_WR_SEND, .len = 8, .ah = ah, .id = i });
	EXPECT(s, wait_send(s, REQ, 4) && !ibv_destroy_ah(ah)); /* its requests are complete */
}

static void destroy_busy(struct scene *s)
{
	struct end *a = &s->end[REQ];
	unsigned i;

	for (i = 0; i < 16; i++)
		post_ok(s, REQ,
			(struct req){ .op = i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, .len = 32000, .id = i });
	EXPECT(s, !ibv_destroy_qp(a->qp));
	a->qp = NULL;
	wait_delivered(s);
	a->got_send = 0;
}

static void destroy_busy_responder(struct scene *s)
{
	struct end *a = &s->end[REQ], *b = &s->end[RESP];
	unsigned i, failed = 0;

	for (i = 0; i < 8; i++)
		post_ok(s, REQ,
			(struct req){ .op = i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, .len = 32000, .id = i });
	EXPECT(s, !ibv_destroy_qp(b->qp));
	b->qp = NULL;
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .id = 8 });
	EXPECT(s, wait_send(s, REQ, 9));
	for (i = 0; i < a->got_send; i++) {
		enum ibv_wc_status want = failed == 0 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR;

		EXPECT(s, a->swc[i].wr_id == i);
		if (a->swc[i].status == IBV_WC_SUCCESS && !failed)
			continue;
		EXPECT(s, a->swc[i].status == want);
		failed++;
	}
	EXPECT(s, failed);
	a->got_send = 0;
}

static void contexts_apart(struct scene *s)
{
	struct end *a = &s->end[REQ];
	struct ibv_sge sge = { (uintptr_t)region(&s->end[RESP]), 64, s->end[RESP].mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	EXPECT(s, !ibv_post_send(a->qp, &wr, &bad)); /* a key of another context's region */
}

/* librxe has no reregistration: libibverbs checks the input, and reports that the command is not supported. */
static void rereg(struct scene *s)
{
	struct ibv_mr *mr = s->end[REQ].mr;
	struct ibv_pd *pd = s->end[REQ].pd;
	void *addr = region(&s->end[REQ]);

	EXPECT(s, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) ==
				  IBV_REREG_MR_ERR_CMD &&
			  errno == EOPNOTSUPP);
	EXPECT(s,
	       ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) == IBV_REREG_MR_ERR_CMD && errno == EOPNOTSUPP);
	EXPECT(s, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, addr, 64, 0) == IBV_REREG_MR_ERR_CMD &&
			  errno == EOPNOTSUPP);
	EXPECT(s, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 64, 0) == IBV_REREG_MR_ERR_INPUT &&
			  errno == EINVAL);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8 });
}

static void zero_based_region(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mr *mr = extra_mr(s, b, b->pd, region(b), 4096, RIGHTS | IBV_ACCESS_ZERO_BASED);

	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 64, .raddr = 128, .rkey = mr->rkey });
	EXPECT(s, wait_send(s, REQ, 1) && !memcmp(region(b) + 128, region(&s->end[REQ]), 64));
}

static void iova_region(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_mr *mr = ibv_reg_mr_iova(b->pd, region(b), 4096, 0x10000000ull, RIGHTS);

	EXPECT(s, mr);
	if (!mr)
		return;
	post_ok(s, REQ,
		(struct req){ .op = IBV_WR_RDMA_WRITE, .len = 64, .raddr = 0x10000000ull + 128, .rkey = mr->rkey });
	EXPECT(s, wait_send(s, REQ, 1) && !memcmp(region(b) + 128, region(&s->end[REQ]), 64));
	EXPECT(s, !ibv_dereg_mr(mr));
}

#define BARE .bare = true

static const struct rule rows[] = {
	{ "a PD with a region is not freed", "11.2.1.6: in use", BARE, .action = pd_of_mr },
	{ "a PD with an address handle is not freed", "11.2.1.6: in use", BARE, .action = pd_of_ah },
	{ "a PD with an SRQ is not freed", "11.2.1.6: in use", BARE, .action = pd_of_srq },
	{ "a PD with a queue pair is not freed", "11.2.1.6: in use", BARE, .action = pd_of_qp },
	{ "destroying an object that does not exist ends with ENOENT", "11.2: invalid handle", BARE,
	  .action = unknown_handles },
	{ "a CQ with a queue pair is not destroyed, and works", "11.2.6.4: in use", .action = cq_in_use,
	  .req = { OK } },
	{ "remote write without local write is not registered", "10.6.3.2, 11.2.8.2: access rights", BARE,
	  .action = reg_access, .arg = IBV_ACCESS_REMOTE_WRITE },
	{ "remote atomic without local write is not registered", "10.6.3.2, 11.2.8.2: access rights", BARE,
	  .action = reg_access, .arg = IBV_ACCESS_REMOTE_ATOMIC },
	{ "an unknown access right is not registered", "11.2.8.2: access rights", BARE, .action = reg_access,
	  .arg = 1 << 19 },
	{ "memory that is not mapped is not registered", "11.2.8.2: invalid address", BARE, .action = reg_unmapped },
	{ "memory with a hole is not registered", "11.2.8.2: invalid address", BARE, .action = reg_hole },
	{ "memory that cannot be written is not registered for writing", "10.6.3.2, 11.2.8.2", BARE,
	  .action = reg_readonly, .arg2 = IBV_ACCESS_LOCAL_WRITE },
	{ "memory that cannot be written is registered for reading", "10.6.3.2, 11.2.8.2", BARE, .action = reg_readonly,
	  .arg = 1, .arg2 = IBV_ACCESS_REMOTE_READ },
	{ "each region has keys of its own", "10.6.3: L_Keys and R_Keys", BARE, .action = reg_many },
	{ "a key is not given again at once", "10.6.3, 11.2.8.5", BARE, .action = key_is_new },
	{ "regions overlap, and the end of one leaves the other", "10.6.3: overlapping regions", .action = overlapping,
	  .req = { OK } },
	{ "a region is deregistered during READs: each is complete or refused", "11.2.8.5: deregistration",
	  .action = dereg_while_read, .state = { AT(ERR), AT(ERR) }, .event = { 0, EV(QP_ACCESS_ERR) } },
	{ "a deregistered key is a local protection error at once", "11.2.8.5, 11.6.2", .action = dereg_own, .recvs = 1,
	  .req = { ST(LOC_PROT_ERR) }, .state = { AT(ERR) } },
	{ "a queue pair with more sends than the HCA has is refused", "11.2.5.1: too many work requests", BARE,
	  .action = qp_caps, .arg = 0 },
	{ "a queue pair with more receives than the HCA has is refused", "11.2.5.1: too many work requests", BARE,
	  .action = qp_caps, .arg = 1 },
	{ "a queue pair with more parts of a send than the HCA has is refused", "11.2.5.1: too many entries", BARE,
	  .action = qp_caps, .arg = 2 },
	{ "a queue pair with more parts of a receive than the HCA has is refused", "11.2.5.1: too many entries", BARE,
	  .action = qp_caps, .arg = 3 },
	{ "a queue pair with more inline data than the HCA has is refused", "11.2.5.1: limits", BARE, .action = qp_caps,
	  .arg = 4 },
	{ "a queue pair has at least the requested sizes, and reports them", "11.2.5.1: actual limits", BARE,
	  .action = qp_caps_given },
	{ "a raw queue pair is refused", "11.2.5.1: type not supported", BARE, .action = qp_type_unknown,
	  .arg = IBV_QPT_RAW_PACKET },
	{ "an XRC queue pair without its domain is refused", "A14.4: type not supported", BARE,
	  .action = qp_type_unknown, .arg = IBV_QPT_XRC_SEND },
	{ "queue pair numbers are unique, and none is special", "3.9.4, 11.2.5.1: QPNs", BARE, .action = qp_numbers },
	{ "query returns what modify has set", "11.2.5.3: query", .action = query_tells,
	  .knob[REQ] = { .timeout = 13,
			 .retry = 5,
			 .rnr_retry = 4,
			 .rd_atomic = 3,
			 .dest_rd_atomic = 2,
			 .min_rnr_timer = 17,
			 .access = IBV_ACCESS_REMOTE_READ,
			 .psn = 0x777 } },
	{ "query returns whether every send request is signaled", "11.2.5.3: query", .action = query_tells_creation,
	  .arg = 1, .knob[REQ].sig = 1 },
	{ "query returns whether send requests are signaled one by one", "11.2.5.3: query",
	  .action = query_tells_creation },
	{ "RESET forgets attributes", "10.3.1.1: attributes are those of creation", .action = reset_forgets,
	  .state = { AT(RESET) } },
	{ "an address handle on port 0 is refused", "11.2.2.1: port", BARE, .action = ah_values, .arg = 0 },
	{ "an address handle on a port that the HCA has not is refused", "11.2.2.1: port", BARE, .action = ah_values,
	  .arg = 1 },
	{ "an address handle of SL 16 is refused", "11.2.2.1: SL", BARE, .action = ah_values, .arg = 2 },
	{ "an address handle of a reserved rate is refused", "11.2.2.1: static rate", BARE, .action = ah_values,
	  .arg = 3 },
	{ "an address handle of a GID index behind the table is refused", "11.2.2.1: source GID index", BARE,
	  .action = ah_values, .arg = 4 },
	{ "an address handle of path bits above 127 is refused", "11.2.2.1: source path bits", BARE,
	  .action = ah_values, .arg = 5 },
	{ "a flow label is taken by its 20 bits, by queue pairs and address handles",
	  "8.3.5, 11.2.2.1, 11.2.5.2: flow label; ib_core does not check it",
	  .knob = { { .upto = AT(RESET) }, { .upto = AT(RESET) } }, .action = flow_label, .state = { ANY_STATE } },
	{ "an address handle is destroyed when its requests are complete", "11.2.2.4: destroy", .type = IBV_QPT_UD,
	  .recvs = 4, .action = ah_destroyed, .req = { OK, OK, OK, OK }, .resp = { OK, OK, OK, OK } },
	{ "a requester is destroyed with all that it has under way", "11.2.5.4: destroy", .action = destroy_busy,
	  .state = { GONE } },
	{ "a responder is destroyed under requests: those behind fail in order", "11.2.5.4, 9.9.2, 10.8.3: in order",
	  .action = destroy_busy_responder, .knob[REQ] = { .timeout = 10, .retry = 1 }, .state = { AT(ERR), GONE } },
	{ "a key of another context's region is a local protection error", "10.2.3, 10.6.3: PDs of another open HCA",
	  .recvs = 1, .action = contexts_apart, .req = { ST(LOC_PROT_ERR) }, .state = { AT(ERR) } },
	{ "a region that is not reregistered is unchanged", "11.2.8.6: reregister", .action = rereg, .req = { OK } },
	{ "a zero based region counts from its start", "10.6.2.1: zero based virtual addresses",
	  .action = zero_based_region, .req = { OK } },
	{ "a region is reached by the address that was requested", "10.6.3: I/O virtual addresses",
	  .action = iova_region, .req = { OK } },
};

void objects_rules(void)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		rule_add(rows[i], "%s", rows[i].name);
}

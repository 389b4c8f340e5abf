// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of hca_fault.c: rejected specifications and their messages, and the effect of each
 * fault on queues, objects and limits. */
#include "emu/hca/hca_fault.h"

#include "emu/hca/fixture.h"

static const struct {
	const char *line, *err;
} refused[] = {
	{ "", "h1: a fault is a place, an action, and keys" },
	{ "rn", "rn: there is no such fault" },
	{ "complete", "complete: it needs status=" },
	{ "complete status=GOOD", "status=GOOD: status takes a completion status" },
	{ "complete status=FATAL_ERR object=mr", "object=mr: there is no \"object\"; there are: qpn=" },
	{ "refuse", "refuse: it needs object=" },
	{ "refuse object=x", "object=x: object takes pd, mr" },
	{ "refuse object=mr errno=EFOO", "errno=EFOO: errno takes ENOMEM" },
	{ "rnr qpn=0x1000000", "qpn=0x1000000: qpn takes" },
	{ "complete status=FATAL_ERR opcode=move", "opcode=move: opcode takes send, send_imm, send_inv, write" },
	{ "stuck opcode=write", "opcode=write: there is no \"opcode\"" },
	{ "event name=PORT_ERR opcode=write", "event: which work request?" },
	{ "event name=QP_FATAL", "event: an event of a queue pair needs nth=" },
	{ "event name=FOO", "name=FOO: name takes an event" },
	{ "event name=PORT_ERR port=3", "port=3: the ports are 1 to 2" },
	{ "caps", "caps: it needs profile= or at least one of" },
	{ "caps max_qp=100000", "max_qp=100000: max_qp takes a number up to 65536" },
	{ "caps profile=poor", "profile=poor: profile takes no-srq, one-read" },
	{ "post errno=ENOENT", "errno=ENOENT: errno takes" },
	{ "unplug for=1s", "for=1s: there is no \"for\"" },
	{ "fatal nth=1", "nth=1: there is no \"nth\"; there are no keys" },
};

static void check_refused(struct fixture *f)
{
	char err[300], line[200];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		err[0] = 0;
		snprintf(line, sizeof(line), "h1 %s", refused[i].line);
		row((int)i, refused[i].line,
		    !fault_add(hca_faults(f->hca), line, err, sizeof(err)) &&
			    !strncmp(err, refused[i].err, strlen(refused[i].err)) &&
			    fault_set_empty(hca_faults(f->hca)));
	}
}

static struct fault *arm(struct fixture *f, const char *text)
{
	char err[200] = "", line[200];
	struct fault *ft;

	snprintf(line, sizeof(line), "h1 %s", text);
	ft = fault_add(hca_faults(f->hca), line, err, sizeof(err));

	if (!ft)
		printf("%s: %s\n", text, err);
	return ft;
}

struct pair {
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	struct hca_qp *qp;
};

static struct pair make(struct fixture *f)
{
	struct pair p = { NULL, NULL, NULL };

	hca_soft_cq_create(f->ctx, 8, NULL, NULL, &p.cq);
	p.wq = fixture_qp(f, HCA_QPT_RC, p.cq, 0);
	p.qp = hca_qp_lookup(f->hca, hca_soft_wq_number(p.wq));
	fixture_move(f, p.wq, HCA_QPS_RTS);
	return p;
}

static void unmake(struct pair *p)
{
	hca_soft_wq_destroy(p->wq);
	hca_soft_cq_destroy(p->cq);
}

static void check_completions(struct fixture *f)
{
	struct hca_cqe out = { .opcode = HCA_WC_SEND }, cqe[8];
	struct fault *ft = arm(f, "complete status=REM_ACCESS_ERR nth=2 queue=send");
	struct pair p = make(f);
	u32 i;

	out.opcode = HCA_WC_RECV;
	hca_complete_recv(p.qp, &out);
	for (i = 0; i < 2; i++) {
		out = (struct hca_cqe){ .opcode = HCA_WC_SEND };
		hca_complete_send(p.qp, &out, HCA_WR_SEND);
	}
	row(20, "three completions", hca_soft_cq_poll(p.cq, cqe, 8) == 3);
	row(21, "the second send has the status",
	    !cqe[0].status && !cqe[1].status && cqe[2].status == HCA_WC_REM_ACCESS_ERR);
	row(22, "the QP does not fail before its end", p.qp->state == HCA_QPS_RTS);
	loop_run_idle(f->loop, 0);
	row(23, "but after it, with its event",
	    p.qp->state == HCA_QPS_ERR && f->events[HCA_EVENT_QP_FATAL] == 1 && ft->pick.hits == 1);
	fault_remove(ft);
	unmake(&p);

	ft = arm(f, "overrun nth=1");
	p = make(f);
	out = (struct hca_cqe){ .opcode = HCA_WC_SEND };
	hca_complete_send(p.qp, &out, HCA_WR_SEND);
	loop_run_idle(f->loop, 0);
	row(24, "an overrun: its event, and the QP fails",
	    f->events[HCA_EVENT_CQ_ERR] == 1 && p.qp->state == HCA_QPS_ERR);
	fault_remove(ft);
	unmake(&p);
}

/* A completion: of a receive, or of a send by its work request. */
struct done {
	u8 completion, request;
};

static void complete_one(struct pair *p, const struct done *d)
{
	struct hca_cqe out = { .opcode = d->completion };

	if (d->completion & HCA_WC_RECV)
		hca_complete_recv(p->qp, &out);
	else
		hca_complete_send(p->qp, &out, d->request);
}

/* Faults by opcode: of completions, of work requests, and of posts. */
static void check_opcodes(struct fixture *f)
{
	static const struct done order[] = {
		{ HCA_WC_SEND, HCA_WR_SEND },
		{ HCA_WC_RDMA_WRITE, HCA_WR_RDMA_WRITE },
		{ HCA_WC_RDMA_READ, HCA_WR_RDMA_READ },
		{ HCA_WC_FETCH_ADD, HCA_WR_ATOMIC_FETCH_AND_ADD },
		{ HCA_WC_RDMA_WRITE, HCA_WR_RDMA_WRITE_WITH_IMM },
		{ HCA_WC_RECV, 0 },
	};
	struct fault *ft = arm(f, "complete opcode=write nth=2 status=REM_OP_ERR"), *unplugged;
	struct hca_send_wr send = { .opcode = HCA_WR_RDMA_WRITE };
	struct pair p = make(f);
	struct hca_cqe cqe[8];
	u32 i, pdn, fatal = f->events[HCA_EVENT_QP_FATAL], errs = f->events[HCA_EVENT_PORT_ERR];

	for (i = 0; i < ARRAY_SIZE(order); i++)
		complete_one(&p, &order[i]);
	hca_soft_cq_poll(p.cq, cqe, 8);
	row(60, "the second write", cqe[4].status == HCA_WC_REM_OP_ERR && !cqe[1].status && !cqe[5].status);
	row(61, "other opcodes do not match", ft->pick.seen == 2 && ft->pick.hits == 1);
	loop_run_idle(f->loop, 0);
	fault_remove(ft);
	unmake(&p);

	ft = arm(f, "lose opcode=atomic,recv");
	p = make(f);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		complete_one(&p, &order[i]);
	row(62, "two completions are lost", hca_soft_cq_poll(p.cq, cqe, 8) == 4 && ft->pick.hits == 2);
	fault_remove(ft);

	ft = arm(f, "event name=QP_FATAL opcode=write nth=1");
	f->events[HCA_EVENT_QP_FATAL] = fatal;
	send.opcode = HCA_WR_SEND;
	hca_soft_post_send(p.wq, &send);
	hca_next_send(p.qp, &send);
	row(63, "no event by a send", f->events[HCA_EVENT_QP_FATAL] == fatal);
	send.opcode = HCA_WR_RDMA_WRITE;
	hca_soft_post_send(p.wq, &send);
	hca_next_send(p.qp, &send);
	row(64, "but by a write", f->events[HCA_EVENT_QP_FATAL] == fatal + 1);
	fault_remove(ft);

	ft = arm(f, "event name=PORT_ERR nth=1");
	send.opcode = HCA_WR_SEND;
	hca_soft_post_send(p.wq, &send);
	row(65, "not when it is armed", f->events[HCA_EVENT_PORT_ERR] == errs);
	hca_next_send(p.qp, &send);
	row(66, "an event of the port of the queue pair", f->events[HCA_EVENT_PORT_ERR] == errs + 1);
	fault_remove(ft);

	ft = arm(f, "post opcode=read errno=EIO");
	row(67, "a post without a read", !hca_qp_post(f->ctx, p.qp->qpn, BIT(HCA_WR_SEND) | BIT(HCA_WR_RDMA_WRITE)));
	row(68, "a post with one", hca_qp_post(f->ctx, p.qp->qpn, BIT(HCA_WR_SEND) | BIT(HCA_WR_RDMA_READ)) == -EIO);
	fault_remove(ft);

	ft = arm(f, "rnr");
	hca_soft_post_recv(p.wq, &(struct hca_recv_wr){ .token = 1 });
	hca_ctx_set_internal(f->ctx);
	row(69, "the daemon's own queue pairs are exempt",
	    hca_next_recv(p.qp, &(struct hca_recv_wr){ .token = 0 }) == 1 && !ft->pick.seen);
	fault_remove(ft);
	ft = arm(f, "refuse object=pd nth=1");
	unplugged = arm(f, "unplug");
	row(70, "and its objects", !hca_pd_alloc(f->ctx, &pdn) && !hca_pd_free(f->ctx, pdn) && !ft->pick.seen);
	fault_remove(unplugged);
	f->ctx->internal = false;
	row(71, "a program's are not", hca_pd_alloc(f->ctx, &pdn) == -ENOMEM);
	fault_remove(ft);
	unmake(&p);
}

/* Work requests that complete alike; receives; and opcodes that could never match. */
static void check_request_opcodes(struct fixture *f)
{
	static const struct done writes[] = { { HCA_WC_RDMA_WRITE, HCA_WR_RDMA_WRITE },
					      { HCA_WC_RDMA_WRITE, HCA_WR_RDMA_WRITE_WITH_IMM } },
				 sends[] = { { HCA_WC_SEND, HCA_WR_SEND },
					     { HCA_WC_SEND, HCA_WR_SEND_WITH_IMM },
					     { HCA_WC_SEND, HCA_WR_SEND_WITH_INV } },
				 recvs[] = { { HCA_WC_RECV_RDMA_WITH_IMM, 0 }, { HCA_WC_RECV, 0 } };
	static const char *const wrong[] = {
		"post opcode=recv",
		"post opcode=send,recv",
		"lose opcode=recv queue=send",
		"complete opcode=write queue=recv status=GENERAL_ERR",
		"error opcode=write",
	};
	struct fault *ft = arm(f, "complete opcode=write_imm nth=2 status=REM_OP_ERR");
	u32 i, fatal = f->events[HCA_EVENT_QP_FATAL];
	struct pair p = make(f);
	struct hca_cqe cqe[8];
	char err[200];

	for (i = 0; i < 4; i++)
		complete_one(&p, &writes[i % 2]);
	hca_soft_cq_poll(p.cq, cqe, 8);
	row(80, "the second write with immediate data",
	    !cqe[1].status && !cqe[2].status && cqe[3].status == HCA_WC_REM_OP_ERR && ft->pick.seen == 2);
	loop_run_idle(f->loop, 0);
	fault_remove(ft);
	unmake(&p);

	p = make(f);
	ft = arm(f, "lose opcode=send_inv,send_imm");
	for (i = 0; i < ARRAY_SIZE(sends); i++)
		complete_one(&p, &sends[i]);
	row(81, "only the plain send completes", hca_soft_cq_poll(p.cq, cqe, 8) == 1 && ft->pick.hits == 2);
	fault_remove(ft);
	ft = arm(f, "lose opcode=send");
	for (i = 0; i < ARRAY_SIZE(sends); i++)
		complete_one(&p, &sends[i]);
	row(82, "send means all of them", !hca_soft_cq_poll(p.cq, cqe, 8) && ft->pick.hits == 3);
	fault_remove(ft);

	ft = arm(f, "event name=QP_FATAL opcode=recv nth=1");
	f->events[HCA_EVENT_QP_FATAL] = fatal;
	complete_one(&p, &sends[0]);
	complete_one(&p, &recvs[0]);
	row(83, "no event by a send, nor by the receive of a write", f->events[HCA_EVENT_QP_FATAL] == fatal);
	complete_one(&p, &recvs[1]);
	row(84, "but by a receive", f->events[HCA_EVENT_QP_FATAL] == fatal + 1 && ft->pick.hits == 1);
	fault_remove(ft);
	ft = arm(f, "error opcode=recv_imm nth=1");
	complete_one(&p, &recvs[1]);
	complete_one(&p, &recvs[0]);
	loop_run_idle(f->loop, 0);
	row(85, "an error by a receive of immediate data", p.qp->state == HCA_QPS_ERR && ft->pick.seen == 1);
	fault_remove(ft);
	unmake(&p);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		char line[100];

		snprintf(line, sizeof(line), "h1 %s", wrong[i]);
		row(86 + (int)i, wrong[i], !fault_add(hca_faults(f->hca), line, err, sizeof(err)));
	}
}

static void check_queues(struct fixture *f)
{
	static struct hca_send_wr send;
	struct hca_recv_wr recv = { .token = 1 };
	struct fault *ft = arm(f, "rnr first=2");
	struct pair p = make(f);

	hca_soft_post_recv(p.wq, &recv);
	row(30, "no receive, twice", !hca_next_recv(p.qp, &recv) && !hca_next_recv(p.qp, &recv));
	row(31, "then there is one", hca_next_recv(p.qp, &recv) == 1);
	fault_remove(ft);
	ft = arm(f, "stuck");
	hca_soft_post_send(p.wq, &send);
	row(32, "a stuck queue", !hca_next_send(p.qp, &send) && hca_soft_wq_sends(p.wq) == 1);
	fault_remove(ft);
	row(33, "that continues", hca_next_send(p.qp, &send) == 1);
	ft = arm(f, "error nth=1 qpn=1");
	hca_soft_post_send(p.wq, &send);
	hca_next_send(p.qp, &send);
	loop_run_idle(f->loop, 0);
	row(34, "another QP's", p.qp->state == HCA_QPS_RTS && !ft->pick.seen);
	fault_remove(ft);
	ft = arm(f, "error");
	loop_run_idle(f->loop, 0);
	row(35, "into the error state at once", p.qp->state == HCA_QPS_ERR);
	fault_remove(ft);
	unmake(&p);
}

static void check_objects(struct fixture *f)
{
	struct fault *ft = arm(f, "refuse object=mr after=1 errno=EFAULT"), *caps;
	u32 lkey[3], rkey, pdn, fatal = f->events[HCA_EVENT_DEVICE_FATAL];
	struct hca_soft_cq *cq = NULL;
	const u64 page = 0x1000;
	const struct hca_mr_init pages = {
		.pdn = f->pdn, .iova = 0x1000, .len = 64, .pages = &page, .npages = 1, .page_shift = 12
	};

	row(40, "one region", !hca_mr_reg(f->ctx, f->pdn, 0x1000, 0x1000, 64, 0, &lkey[0], &rkey));
	row(41, "and no more", hca_mr_reg(f->ctx, f->pdn, 0x1000, 0x1000, 64, 0, &lkey[1], &rkey) == -EFAULT);
	fault_remove(ft);
	caps = arm(f, "caps max_mr=1 max_cq=0");
	row(42, "caps are reported",
	    hca_caps(f->hca)->max_mr == 1 && hca_caps(f->hca)->max_qp == hca_caps_default.max_qp);
	row(43, "and apply to a guest's regions, too",
	    hca_mr_reg(f->ctx, f->pdn, 0x1000, 0x1000, 64, 0, &lkey[1], &rkey) == -ENOMEM &&
		    hca_mr_reg_pages(f->ctx, &pages, &lkey[1], &rkey) == -ENOMEM &&
		    hca_soft_cq_create(f->ctx, 8, NULL, NULL, &cq) == -ENOMEM);
	fault_remove(caps);
	row(44, "until they are cleared", !hca_mr_reg(f->ctx, f->pdn, 0x1000, 0x1000, 64, 0, &lkey[1], &rkey));
	ft = arm(f, "fatal");
	row(45, "fatal: its event, and no object can be created",
	    f->events[HCA_EVENT_DEVICE_FATAL] == fatal + 1 && hca_pd_alloc(f->ctx, &pdn) == -EIO);
	fault_remove(ft);
	row(46, "until it is cleared", !hca_pd_alloc(f->ctx, &pdn));
	ft = arm(f, "event name=PORT_ERR port=2");
	row(47, "an event of a port", f->last.type == HCA_EVENT_PORT_ERR && f->last.number == 2);
	fault_remove(ft);
	caps = arm(f, "caps profile=plain max_sge=2");
	row(48, "a profile, and a key besides it",
	    !hca_caps(f->hca)->max_srq && hca_caps(f->hca)->max_qp_rd_atom == 1 && hca_caps(f->hca)->max_sge == 2);
	fault_remove(caps);
}

static bool wanted;

static void on_posts(void *fe, bool want)
{
	wanted = want;
}

static void check_posts(struct fixture *f)
{
	struct pair p = make(f);
	struct fault *ft;

	hca_ctx_watch_posts(f->ctx, on_posts);
	row(50, "posts are not checked", !wanted && !hca_qp_post(f->ctx, p.qp->qpn, BIT(HCA_WR_SEND)));
	ft = arm(f, "post nth=2 errno=EBUSY");
	row(51, "now they are checked", wanted);
	row(52, "and the second fails",
	    !hca_qp_post(f->ctx, p.qp->qpn, BIT(HCA_WR_SEND)) &&
		    hca_qp_post(f->ctx, p.qp->qpn, BIT(HCA_WR_SEND)) == -EBUSY &&
		    !hca_qp_post(f->ctx, p.qp->qpn, BIT(HCA_WR_SEND)));
	fault_remove(ft);
	row(53, "no more", !wanted);
	unmake(&p);
}

int main(void)
{
	struct fixture f;

	fixture_init(&f);
	check_refused(&f);
	check_completions(&f);
	check_queues(&f);
	check_request_opcodes(&f);
	check_opcodes(&f);
	check_objects(&f);
	check_posts(&f);
	fixture_fini(&f);
	return rows_end();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of cq.c and wq.c: completions, bursts, overflow, states and the flush. */
#include "emu/hca/fixture.h"

static u32 readies;
static bool repost;
static struct hca_soft_wq *reposted;

static void ready(void *arg)
{
	struct hca_recv_wr wr = { .token = 99 };

	readies++;
	if (repost)
		hca_soft_post_recv(reposted, &wr);
}

static int post_send(struct hca_soft_wq *wq, u64 token, u8 opcode, u8 flags, u16 num_sge, u32 inline_len)
{
	static struct hca_send_wr wr;

	memset(&wr, 0, sizeof(wr));
	wr.token = token;
	wr.opcode = opcode;
	wr.flags = flags;
	wr.num_sge = num_sge;
	wr.inline_len = inline_len;
	wr.av.port = 1;
	return hca_soft_post_send(wq, &wr);
}

static int post_recv(struct hca_soft_wq *wq, u64 token, u16 num_sge)
{
	struct hca_recv_wr wr = { .token = token, .num_sge = num_sge };

	return hca_soft_post_recv(wq, &wr);
}

static void check_bursts(struct fixture *f)
{
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	struct hca_cqe cqe[8], out = { .token = 5, .status = HCA_WC_SUCCESS };
	struct hca_qp *qp;

	hca_soft_cq_create(f->ctx, 4, ready, NULL, &cq);
	wq = fixture_qp(f, HCA_QPT_RC, cq, 0);
	qp = hca_qp_lookup(f->hca, hca_soft_wq_number(wq));
	fixture_move(f, wq, HCA_QPS_RTS);
	hca_complete_send(qp, &out, HCA_WR_SEND);
	hca_complete_recv(qp, &out);
	row(1, "no event within a burst", readies == 0);
	hca_flush(f->hca);
	row(2, "one wake-up for a burst", readies == 1);
	hca_flush(f->hca);
	row(3, "none without completions", readies == 1);
	row(4, "QP and port are filled in",
	    hca_soft_cq_poll(cq, cqe, 8) == 2 && cqe[0].qpn == qp->qpn && cqe[0].port == 1 && cqe[0].token == 5);
	hca_complete_send(qp, &out, HCA_WR_SEND);
	loop_run_idle(f->loop, 0);
	row(5, "the loop flushes what the transport did not", readies == 2);
	row(6, "in use", hca_soft_cq_destroy(cq) == -EBUSY);
	hca_soft_wq_destroy(wq);
	row(7, "free", !hca_soft_cq_destroy(cq));
}

static void check_overflow(struct fixture *f)
{
	struct hca_soft_cq *cq, *other;
	struct hca_soft_wq *wq[3];
	struct hca_cqe cqe[8], out = { .token = 1 };
	struct hca_qp *qp[3];
	u32 i;

	hca_soft_cq_create(f->ctx, 2, NULL, NULL, &cq);
	hca_soft_cq_create(f->ctx, 2, NULL, NULL, &other);
	for (i = 0; i < 3; i++) {
		wq[i] = fixture_qp(f, HCA_QPT_RC, i < 2 ? cq : other, 0);
		qp[i] = hca_qp_lookup(f->hca, hca_soft_wq_number(wq[i]));
		fixture_move(f, wq[i], HCA_QPS_RTS);
	}
	memset(f->events, 0, sizeof(f->events));
	for (i = 0; i < 4; i++)
		hca_complete_send(qp[0], &out, HCA_WR_SEND);
	row(20, "one event", f->events[HCA_EVENT_CQ_ERR] == 1 && f->last.number == hca_soft_cq_number(cq));
	row(21, "QPs fail later, not under the transport's feet", qp[0]->state == HCA_QPS_RTS);
	loop_run_idle(f->loop, 0);
	row(22, "the QPs of the CQ are in error", qp[0]->state == HCA_QPS_ERR && qp[1]->state == HCA_QPS_ERR);
	row(23, "with an event", f->events[HCA_EVENT_QP_FATAL] == 2);
	row(24, "others continue", qp[2]->state == HCA_QPS_RTS);
	row(25, "counted", hca_counter(f->hca, 1, HCA_CNT_CQ_OVERFLOW) == 2);
	row(26, "what was complete stays", hca_soft_cq_poll(cq, cqe, 8) == 2);
	hca_complete_send(qp[0], &out, HCA_WR_SEND);
	row(27, "the CQ accepts no more", hca_soft_cq_poll(cq, cqe, 8) == 0);
	hca_soft_wq_destroy(wq[0]);
	wq[0] = fixture_qp(f, HCA_QPT_RC, cq, 0);
	qp[0] = hca_qp_lookup(f->hca, hca_soft_wq_number(wq[0]));
	fixture_move(f, wq[0], HCA_QPS_RTS);
	loop_run_idle(f->loop, 0);
	row(28, "a QP is created with it", qp[0]->state == HCA_QPS_RTS);
	hca_complete_recv(qp[0], &out);
	loop_run_idle(f->loop, 0);
	row(29, "and fails with its first completion",
	    qp[0]->state == HCA_QPS_ERR && f->events[HCA_EVENT_QP_FATAL] == 3 && f->events[HCA_EVENT_CQ_ERR] == 1);
	for (i = 0; i < 3; i++)
		hca_soft_wq_destroy(wq[i]);
	hca_soft_cq_destroy(cq);
	hca_soft_cq_destroy(other);
}

/* Completions of a queue pair that only the front end knows. */
static void check_own_queue_pair(struct fixture *f)
{
	struct hca_cqe cqe[8], out = { .token = 3, .qpn = 2, .port = 1 };
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	struct hca_qp *qp;
	u32 i, cqn, full = 0;

	hca_soft_cq_create(f->ctx, 2, NULL, NULL, &cq);
	wq = fixture_qp(f, HCA_QPT_RC, cq, 0);
	qp = hca_qp_lookup(f->hca, hca_soft_wq_number(wq));
	fixture_move(f, wq, HCA_QPS_RTS);
	cqn = hca_soft_cq_number(cq);
	memset(f->events, 0, sizeof(f->events));
	for (i = 0; i < 4; i++)
		full += hca_cq_complete(f->ctx, cqn, &out) == -ENOSPC;
	row(40, "two of four find no room, with one event", full == 2 && f->events[HCA_EVENT_CQ_ERR] == 1);
	loop_run_idle(f->loop, 0);
	row(41, "the queue pair that shares the CQ is in error", qp->state == HCA_QPS_ERR);
	row(42, "the others are as they were given",
	    hca_soft_cq_poll(cq, cqe, 8) == 2 && cqe[1].token == 3 && cqe[1].qpn == 2);
	hca_soft_wq_destroy(wq);
	hca_soft_cq_destroy(cq);
	row(43, "a CQ that does not exist", hca_cq_complete(f->ctx, cqn, &out) == -ENOSPC);
}

/* Two CQs overflow at once. The flush of a queue pair of the first overflows a third one, of an earlier queue pair. */
static void check_overflows(struct fixture *f)
{
	struct hca_soft_cq *cq[4];
	struct hca_soft_wq *wq[5];
	struct hca_cqe out = { .token = 1 };
	struct hca_qp *qp[5];
	u32 i;

	for (i = 0; i < 4; i++)
		hca_soft_cq_create(f->ctx, 2, NULL, NULL, &cq[i]);
	wq[0] = fixture_qp(f, HCA_QPT_RC, cq[2], 0);
	wq[1] = fixture_qp(f, HCA_QPT_RC, cq[0], 0);
	wq[2] = fixture_qp(f, HCA_QPT_RC, cq[1], 0);
	wq[3] = fixture_qp(f, HCA_QPT_RC, cq[3], 0);
	wq[4] = fixture_qp_of(f, HCA_QPT_RC, cq[0], cq[2], 0);
	row(30, "queues of two CQs", wq[4] != NULL);
	for (i = 0; i < 5; i++) {
		qp[i] = hca_qp_lookup(f->hca, hca_soft_wq_number(wq[i]));
		fixture_move(f, wq[i], HCA_QPS_RTS);
	}
	for (i = 0; i < 3; i++)
		post_recv(wq[4], i, 1);
	memset(f->events, 0, sizeof(f->events));
	for (i = 0; i < 3; i++) {
		hca_complete_send(qp[1], &out, HCA_WR_SEND);
		hca_complete_send(qp[2], &out, HCA_WR_SEND);
	}
	row(31, "an event each", f->events[HCA_EVENT_CQ_ERR] == 2);
	loop_run_idle(f->loop, 0);
	row(32, "their queue pairs are in error",
	    qp[1]->state == HCA_QPS_ERR && qp[2]->state == HCA_QPS_ERR && qp[4]->state == HCA_QPS_ERR);
	row(33, "and that of the third", qp[0]->state == HCA_QPS_ERR && f->events[HCA_EVENT_CQ_ERR] == 3);
	row(34, "each has one event, and others have none",
	    f->events[HCA_EVENT_QP_FATAL] == 4 && qp[3]->state == HCA_QPS_RTS);
	for (i = 0; i < 5; i++)
		hca_soft_wq_destroy(wq[i]);
	for (i = 0; i < 4; i++)
		row(35, "the CQs are free", !hca_soft_cq_destroy(cq[i]));
}

/* The states in which send and receive requests are fetched. */
static void check_states(struct fixture *f)
{
	static const struct {
		enum hca_qp_state state;
		int send, recv;
	} states[] = {
		{ HCA_QPS_INIT, 0, 0 },
		{ HCA_QPS_RTR, 0, 1 },
		{ HCA_QPS_RTS, 1, 1 },
		{ HCA_QPS_SQD, 0, 1 },
	};
	struct hca_soft_cq *cq;
	struct hca_send_wr swr;
	struct hca_recv_wr rwr;
	u32 i;

	hca_soft_cq_create(f->ctx, 64, NULL, NULL, &cq);
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		struct hca_soft_wq *wq = fixture_qp(f, HCA_QPT_UD, cq, 0);
		struct hca_qp *qp = hca_qp_lookup(f->hca, hca_soft_wq_number(wq));

		fixture_move(f, wq, states[i].state);
		post_send(wq, 1, HCA_WR_SEND, 0, 0, 0);
		post_recv(wq, 2, 1);
		row(60 + (int)i, "send", hca_next_send(qp, &swr) == states[i].send);
		row(60 + (int)i, "receive", hca_next_recv(qp, &rwr) == states[i].recv);
		hca_soft_wq_destroy(wq);
	}
	hca_soft_cq_destroy(cq);
}

static void check_flush(struct fixture *f)
{
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	struct hca_cqe cqe[16];
	struct hca_qp *qp;
	u32 i, n, ok = 0;

	hca_soft_cq_create(f->ctx, 64, NULL, NULL, &cq);
	wq = fixture_qp(f, HCA_QPT_UD, cq, 0);
	qp = hca_qp_lookup(f->hca, hca_soft_wq_number(wq));
	fixture_move(f, wq, HCA_QPS_RTS);
	for (i = 0; i < 8; i++) {
		post_send(wq, i, HCA_WR_SEND, 0, 0, 0);
		post_recv(wq, 100 + i, 1);
	}
	row(70, "full", post_send(wq, 9, HCA_WR_SEND, 0, 0, 0) == -ENOMEM && post_recv(wq, 9, 0) == -ENOMEM);
	hca_qp_fail(qp, HCA_QPS_SQE, -1);
	n = hca_soft_cq_poll(cq, cqe, 16);
	for (i = 0; i < n; i++)
		ok += cqe[i].status == HCA_WC_WR_FLUSH_ERR && cqe[i].token == i;
	row(71, "SQE flushes sends in order, and sends only", n == 8 && ok == 8);
	post_send(wq, 50, HCA_WR_SEND, 0, 0, 0);
	row(72, "a later one, too", hca_soft_cq_poll(cq, cqe, 16) == 1 && cqe[0].token == 50);
	hca_qp_fail(qp, HCA_QPS_ERR, HCA_EVENT_QP_FATAL);
	n = hca_soft_cq_poll(cq, cqe, 16);
	row(73, "ERR flushes receives",
	    n == 8 && cqe[0].token == 100 && cqe[7].token == 107 && cqe[0].opcode == HCA_WC_RECV);
	row(74, "the event names the QP",
	    f->last.type == HCA_EVENT_QP_FATAL && f->last.number == qp->qpn && f->last.fe == wq);
	row(75, "the context polls for receives while a QP is in ERR", hca_ctx_wants_recv(f->ctx));
	post_recv(wq, 60, 0);
	row(77, "a later receive", hca_soft_cq_poll(cq, cqe, 16) == 1 && cqe[0].token == 60);
	fixture_move(f, wq, HCA_QPS_RTS);
	row(78, "no more polling for receives after ERR", !hca_ctx_wants_recv(f->ctx));
	for (i = 0; i < 3; i++)
		post_send(wq, i, HCA_WR_SEND, 0, 0, 0);
	fixture_move(f, wq, HCA_QPS_RESET);
	row(79, "RESET drops in silence", hca_soft_wq_sends(wq) == 0 && hca_soft_cq_poll(cq, cqe, 16) == 0);
	row(80, "a fault in RESET has no effect", (hca_qp_fail(qp, HCA_QPS_ERR, -1), qp->state == HCA_QPS_RESET));
	hca_soft_wq_destroy(wq);
	hca_soft_cq_destroy(cq);
}

/* A user that posts again from its completion handler does not block the loop. */
static void check_repost(struct fixture *f)
{
	struct hca_soft_cq *cq;
	struct hca_soft_wq *wq;
	u32 before;

	hca_soft_cq_create(f->ctx, 64, ready, NULL, &cq);
	wq = fixture_qp(f, HCA_QPT_RC, cq, 0);
	fixture_move(f, wq, HCA_QPS_RTS);
	reposted = wq;
	repost = true;
	hca_qp_fail(hca_qp_lookup(f->hca, hca_soft_wq_number(wq)), HCA_QPS_ERR, -1);
	post_recv(wq, 1, 0);
	before = readies;
	hca_flush(f->hca);
	row(90, "one wake-up in a flush", readies == before + 1);
	repost = false;
	loop_run_idle(f->loop, 0);
	row(91, "the next by the loop", readies == before + 2);
	hca_soft_wq_destroy(wq);
	hca_soft_cq_destroy(cq);
}

int main(void)
{
	struct fixture f;

	fixture_init(&f);
	check_bursts(&f);
	check_overflow(&f);
	check_overflows(&f);
	check_own_queue_pair(&f);
	check_states(&f);
	check_flush(&f);
	check_repost(&f);
	fixture_fini(&f);
	return rows_end();
}

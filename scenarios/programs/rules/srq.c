// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shared receive queues (10.2.9): order of receives, the limit, and isolation of errors of one queue pair. */
#include "rules.h"

#include <errno.h>
#include <string.h>

#define SEND .op = IBV_WR_SEND

/* A second pair of queue pairs of the rule's service; the responder's shares the SRQ. */
struct second {
	struct ibv_qp *own[2], *made[2];
};

static void second_open(struct scene *s, struct second *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		p->own[i] = s->end[i].qp;
		p->made[i] = qp_make(s, i, s->rule->type, &s->rule->knob[i]);
	}
	for (i = 0; i < 2; i++)
		qp_connect(s, i, p->made[i], p->made[!i]->qp_num, IBV_QPS_RTS, &s->rule->knob[i]);
}

static void second_close(struct scene *s, struct second *p)
{
	wait_delivered(s);
	ibv_destroy_qp(p->made[REQ]);
	ibv_destroy_qp(p->made[RESP]);
}

/* Posts from the second requester; a datagram goes to the second responder. */
static void second_post(struct scene *s, struct second *p, struct req r)
{
	s->end[REQ].qp = p->made[REQ];
	r.qpn = p->made[RESP]->qp_num;
	post_ok(s, REQ, r);
	s->end[REQ].qp = p->own[REQ];
}

static void shared_in_order(struct scene *s)
{
	struct second p;
	struct end *b = &s->end[RESP];
	unsigned i;

	second_open(s, &p);
	for (i = 0; i < 6; i++) {
		if (i % 2)
			second_post(s, &p, (struct req){ SEND, .len = 100 + i, .id = i });
		else
			post_ok(s, REQ, (struct req){ SEND, .len = 100 + i, .id = i });
		EXPECT(s, wait_recv(s, RESP, i + 1));
		EXPECT(s, b->rwc[i].wr_id == i && b->rwc[i].qp_num == (i % 2 ? p.made[RESP] : b->qp)->qp_num);
	}
	EXPECT(s, wait_send(s, REQ, 6));
	second_close(s, &p);
}

static void one_fails(struct scene *s)
{
	struct second p;
	struct end *b = &s->end[RESP];

	second_open(s, &p);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .remote = REF_NO_KEY });
	EXPECT(s, wait_send(s, REQ, 1) && wait_event(s, RESP, IBV_EVENT_QP_ACCESS_ERR) &&
			  wait_event(s, RESP, IBV_EVENT_QP_LAST_WQE_REACHED));
	wait_delivered(s);
	EXPECT(s, !b->got_recv);
	second_post(s, &p, (struct req){ SEND, .len = 9 });
	EXPECT(s, wait_recv(s, RESP, 1) && b->rwc[0].wr_id == 0 && b->rwc[0].byte_len == 9);
	EXPECT(s, wait_send(s, REQ, 2));
	b->events = 0;
	second_close(s, &p);
}

static void bad_entry(struct scene *s)
{
	struct second p;
	struct end *b = &s->end[RESP];

	post_recvs(s, RESP, 1, (struct recv){ .id = 0, .ref = REF_STALE });
	post_recvs(s, RESP, 1, (struct recv){ .id = 1 });
	second_open(s, &p);
	post_ok(s, REQ, (struct req){ SEND, .len = 8 });
	EXPECT(s, wait_send(s, REQ, 1) && wait_recv(s, RESP, 1) && b->rwc[0].status == IBV_WC_LOC_PROT_ERR);
	EXPECT(s, wait_event(s, RESP, IBV_EVENT_QP_LAST_WQE_REACHED));
	second_post(s, &p, (struct req){ SEND, .len = 9 });
	EXPECT(s, wait_recv(s, RESP, 2) && b->rwc[1].wr_id == 1 && !b->rwc[1].status);
	EXPECT(s, wait_send(s, REQ, 2));
	b->events = 0;
	second_close(s, &p);
}

static int set_limit(struct scene *s, unsigned limit)
{
	struct ibv_srq_attr a = { .srq_limit = limit };

	return ibv_modify_srq(s->end[RESP].srq, &a, IBV_SRQ_LIMIT);
}

static unsigned limit_now(struct scene *s)
{
	struct ibv_srq_attr a = { .srq_limit = 999 };

	EXPECT(s, !ibv_query_srq(s->end[RESP].srq, &a));
	return a.srq_limit;
}

static void send_n(struct scene *s, unsigned n)
{
	unsigned got = s->end[RESP].got_recv;

	for (; n; n--, got++) {
		post_ok(s, REQ, (struct req){ SEND, .len = 8, .id = got });
		EXPECT(s, wait_recv(s, RESP, got + 1));
	}
}

static void no_event(struct scene *s)
{
	wait_delivered(s);
	EXPECT(s, !s->end[RESP].events);
}

static void limit_fires(struct scene *s)
{
	EXPECT(s, !set_limit(s, 2) && limit_now(s) == 2);
	send_n(s, 2); /* four were posted: two are left, which is not below two */
	no_event(s);
	send_n(s, 1);
	EXPECT(s, wait_event(s, RESP, IBV_EVENT_SRQ_LIMIT_REACHED));
	EXPECT(s, s->end[RESP].ev[0].element.srq == s->end[RESP].srq);
	EXPECT(s, !limit_now(s));
	send_n(s, 1);
}

static void limit_again(struct scene *s)
{
	EXPECT(s, !set_limit(s, 4));
	send_n(s, 1);
	EXPECT(s, wait_event(s, RESP, IBV_EVENT_SRQ_LIMIT_REACHED));
	s->end[RESP].events = 0;
	EXPECT(s, !set_limit(s, 3));
	no_event(s);
	send_n(s, 1);
}

static void limit_at_once(struct scene *s)
{
	EXPECT(s, !set_limit(s, 5));
}

static void limit_off(struct scene *s)
{
	EXPECT(s, !set_limit(s, 3) && !set_limit(s, 0) && !limit_now(s));
	send_n(s, 4);
	no_event(s);
}

static void limit_too_high(struct scene *s)
{
	struct ibv_srq_attr a;

	EXPECT(s, !ibv_query_srq(s->end[RESP].srq, &a));
	EXPECT(s, set_limit(s, a.max_wr + 1) == EINVAL);
	no_event(s);
}

static void limit_none(struct scene *s)
{
	send_n(s, 4);
	no_event(s);
}

static void post_to_qp(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_sge sge = { (uintptr_t)region(b), 64, b->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	EXPECT(s, ibv_post_recv(b->qp, &wr, &bad));
}

static void fill(struct scene *s)
{
	struct ibv_srq_attr a;
	unsigned n = 0;
	int err = 0;

	EXPECT(s, !ibv_query_srq(s->end[RESP].srq, &a));
	while (n < 1000 && !(err = post_recv(s, RESP, (struct recv){ .id = n })))
		n++;
	EXPECT(s, err == ENOMEM);
	EXPECT(s, n == a.max_wr && n >= 8);
}

static void too_many_sges(struct scene *s)
{
	EXPECT(s, post_recv(s, RESP, (struct recv){ .len = 100, .nsge = 5 }) == EINVAL);
}

static void destroy_used(struct scene *s)
{
	EXPECT(s, ibv_destroy_srq(s->end[RESP].srq) == EBUSY);
	post_ok(s, REQ, (struct req){ SEND, .len = 8 });
}

static void resize(struct scene *s)
{
	struct ibv_srq_attr a = { .max_wr = 100 };
	unsigned i;

	send_n(s, 1);
	EXPECT(s, !ibv_modify_srq(s->end[RESP].srq, &a, IBV_SRQ_MAX_WR));
	EXPECT(s, !ibv_query_srq(s->end[RESP].srq, &a) && a.max_wr >= 100);
	send_n(s, 3);
	for (i = 0; i < 4; i++)
		EXPECT(s, s->end[RESP].rwc[i].wr_id == i);
}

/* Fewer receives than the limit are posted: the event follows at once. */
static void resize_limit(struct scene *s)
{
	struct ibv_srq_attr a = { .max_wr = 100 };

	EXPECT(s, set_limit(s, 50) == EINVAL);
	EXPECT(s, !ibv_modify_srq(s->end[RESP].srq, &a, IBV_SRQ_MAX_WR) && !set_limit(s, 50));
	EXPECT(s, wait_event(s, RESP, IBV_EVENT_SRQ_LIMIT_REACHED));
	send_n(s, 4);
}

static void returned_size(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 5, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(b->pd, &init);
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_srq_attr a = { 0 };
	unsigned i;

	EXPECT(s, init.attr.max_wr >= 5 && !ibv_query_srq(srq, &a) && a.max_wr == init.attr.max_wr);
	for (i = 0; i < init.attr.max_wr; i++)
		EXPECT(s, !ibv_post_srq_recv(srq, &wr, &bad));
	EXPECT(s, ibv_post_srq_recv(srq, &wr, &bad) == ENOMEM);
	EXPECT(s, !ibv_destroy_srq(srq));
}

static void resize_below(struct scene *s)
{
	struct ibv_srq_attr a = { .max_wr = 2 };

	EXPECT(s, ibv_modify_srq(s->end[RESP].srq, &a, IBV_SRQ_MAX_WR) == EINVAL);
	send_n(s, 4);
}

/* A limit that the new size does not permit: the SRQ is as before, and takes receives. */
static void resize_refused(struct scene *s)
{
	struct ibv_srq_attr a = { .max_wr = 100, .srq_limit = 101 }, before, after;

	EXPECT(s, !ibv_query_srq(s->end[RESP].srq, &before));
	EXPECT(s, ibv_modify_srq(s->end[RESP].srq, &a, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == EINVAL);
	EXPECT(s, !ibv_query_srq(s->end[RESP].srq, &after) && after.max_wr == before.max_wr && !after.srq_limit);
	post_recvs(s, RESP, 2, (struct recv){ .id = 4 });
	send_n(s, 6);
}

/* Both at once: fewer receives than the limit are posted. */
static void resize_with_limit(struct scene *s)
{
	struct ibv_srq_attr a = { .max_wr = 100, .srq_limit = 100 };

	EXPECT(s, !ibv_modify_srq(s->end[RESP].srq, &a, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	EXPECT(s, wait_event(s, RESP, IBV_EVENT_SRQ_LIMIT_REACHED));
	send_n(s, 4);
}

/* A queue pair of one PD with an SRQ of another: the receives use the SRQ's PD. */
static void other_pd(struct scene *s)
{
	struct end *b = &s->end[RESP];
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(b->other_pd, &init);
	struct ibv_qp *own = b->qp;
	struct ibv_qp_init_attr qi = {
		.qp_type = IBV_QPT_RC, .send_cq = b->scq, .recv_cq = b->rcq, .srq = srq, .cap = { 4, 0, 1, 0, 0 }
	};
	struct ibv_mr *mr =
		extra_mr(s, b, s->rule->arg ? b->pd : b->other_pd, region(b), REGION, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { (uintptr_t)region(b), 64, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	b->qp = ibv_create_qp(b->pd, &qi);
	EXPECT(s, b->qp && srq && !ibv_post_srq_recv(srq, &wr, &bad));
	if (!b->qp || !srq)
		return;
	qp_connect(s, RESP, b->qp, s->end[REQ].qpn, IBV_QPS_RTS, &s->rule->knob[RESP]);
	EXPECT(s, !qp_modify(s, REQ, s->end[REQ].qp, IBV_QPS_RESET, &s->rule->knob[REQ], 0));
	qp_connect(s, REQ, s->end[REQ].qp, b->qp->qp_num, IBV_QPS_RTS, &s->rule->knob[REQ]);
	post_ok(s, REQ, (struct req){ SEND, .len = 8 });
	EXPECT(s, wait_send(s, REQ, 1) && wait_recv(s, RESP, 1));
	wait_delivered(s);
	b->events = 0;
	EXPECT(s, !ibv_destroy_qp(b->qp));
	b->qp = own;
	EXPECT(s, !ibv_destroy_srq(srq));
}

static void err_event(struct scene *s)
{
	struct end *b = &s->end[RESP];

	EXPECT(s, !qp_modify(s, RESP, b->qp, IBV_QPS_ERR, &s->rule->knob[RESP], 0));
	EXPECT(s, wait_event(s, RESP, IBV_EVENT_QP_LAST_WQE_REACHED));
	EXPECT(s, b->ev[0].element.qp == b->qp);
}

static void err_then_other(struct scene *s)
{
	struct second p;

	second_open(s, &p);
	err_event(s);
	second_post(s, &p, (struct req){ SEND, .len = 8 });
	EXPECT(s, wait_recv(s, RESP, 1) && !s->end[RESP].rwc[0].wr_id);
	EXPECT(s, wait_send(s, REQ, 1));
	second_close(s, &p);
}

static void reset_keeps(struct scene *s)
{
	struct end *b = &s->end[RESP];

	EXPECT(s, !qp_modify(s, RESP, b->qp, IBV_QPS_RESET, &s->rule->knob[RESP], 0));
	qp_connect(s, RESP, b->qp, s->end[REQ].qpn, IBV_QPS_RTS, &s->rule->knob[RESP]);
	send_n(s, 2);
	EXPECT(s, b->rwc[0].wr_id == 0 && b->rwc[1].wr_id == 1);
}

static void empty_then_posted(struct scene *s)
{
	post_ok(s, REQ, (struct req){ SEND, .len = 8 });
	while (!counter(s, RESP, "send_rnr_err") && !s->why[0])
		;
	post_recvs(s, RESP, 1, (struct recv){ .id = 5 });
	EXPECT(s, wait_recv(s, RESP, 1) && s->end[RESP].rwc[0].wr_id == 5);
}

static void create_values(struct scene *s)
{
	struct end *b = &s->end[RESP];
	static const struct ibv_srq_attr bad[] = { { 0, 1, 0 }, { 1u << 30, 1, 0 }, { 8, 10000, 0 }, { 8, 1, 9 } };
	struct ibv_srq_init_attr init = { .attr = bad[s->rule->arg] };
	struct ibv_srq *srq = ibv_create_srq(b->pd, &init);

	EXPECT(s, !srq && errno == EINVAL);
	if (srq)
		ibv_destroy_srq(srq);
}

#define FOUR .knob[RESP].srq = 8, .recvs = 4

static const struct rule rows[] = {
	{ "two queue pairs take receives in the order of posting", "10.2.9: receives are taken in order",
	  .knob[RESP].srq = 8, .recvs = 6, .action = shared_in_order, .req = { OK, OK, OK, OK, OK, OK },
	  .resp = { OK, OK, OK, OK, OK, OK } },
	{ "UD: two queue pairs take receives in the order of posting", "10.2.9: receives are taken in order",
	  .type = IBV_QPT_UD, .knob[RESP].srq = 8, .recvs = 6, .action = NULL, .send = { SEND, .len = 8 },
	  .req = { OK }, .resp = { OK } },
	{ "UC: two queue pairs take receives in the order of posting", "10.2.9: receives are taken in order",
	  .type = IBV_QPT_UC, .knob[RESP].srq = 8, .recvs = 6, .action = shared_in_order,
	  .req = { OK, OK, OK, OK, OK, OK }, .resp = { OK, OK, OK, OK, OK, OK } },
	{ "a WRITE with immediate takes a receive of the SRQ", "10.2.9, 9.4.3", .knob[RESP].srq = 8, .recvs = 1,
	  .send = { .op = IBV_WR_RDMA_WRITE_WITH_IMM, .len = 2000 }, .req = { OK }, .resp = { OK } },
	{ "an empty SRQ is receiver not ready", "9.7.5.2.8, 10.2.9: RNR NAK",
	  .knob = { [REQ].rnr_retry = ZERO, [RESP].srq = 8 }, .send = { SEND, .len = 8 },
	  .req = { ST(RNR_RETRY_EXC_ERR) }, .state = { AT(ERR) }, .counted = { { RESP, "send_rnr_err", 1 } } },
	{ "a receive posted to an empty SRQ ends the waiting", "9.7.5.2.8, 10.2.9",
	  .knob = { [REQ].rnr_retry = 7, [RESP].srq = 8 }, .action = empty_then_posted, .req = { OK }, .resp = { OK } },
	{ "the limit event is raised once, below the limit", "10.2.9: SRQ limit reached", FOUR, .action = limit_fires,
	  .req = { OK, OK, OK, OK }, .resp = { OK, OK, OK, OK }, .event = { 0, EV(SRQ_LIMIT_REACHED) } },
	{ "the limit is armed again", "10.2.9: the event disarms the limit", FOUR, .action = limit_again,
	  .req = { OK, OK }, .resp = { OK, OK }, .event = { 0, EV(SRQ_LIMIT_REACHED) } },
	{ "a limit above the number of posted receives is reached at once", "10.2.9: SRQ limit reached", FOUR,
	  .action = limit_at_once, .event = { 0, EV(SRQ_LIMIT_REACHED) } },
	{ "limit 0 is none", "10.2.9: disarmed", FOUR, .action = limit_off, .req = { OK, OK, OK, OK },
	  .resp = { OK, OK, OK, OK } },
	{ "an SRQ has no limit at first", "10.2.9, 11.2.3.1: disarmed at creation", FOUR, .action = limit_none,
	  .req = { OK, OK, OK, OK }, .resp = { OK, OK, OK, OK } },
	{ "a limit above the SRQ's size is refused", "11.2.3.3: limit exceeds the size", FOUR,
	  .action = limit_too_high },
	{ "a queue pair with an SRQ has no receive queue", "10.2.9, 11.4.1.2: immediate error", .knob[RESP].srq = 8,
	  .action = post_to_qp },
	{ "a full SRQ refuses with an immediate error", "11.4.1.2: too many work requests", .knob[RESP].srq = 8,
	  .action = fill },
	{ "more parts than the SRQ has are an immediate error", "11.4.1.2: scatter list too long", .knob[RESP].srq = 8,
	  .action = too_many_sges },
	{ "an SRQ in use cannot be destroyed", "11.2.3.4: queue pairs still use it", FOUR, .action = destroy_used,
	  .req = { OK }, .resp = { OK } },
	{ "a larger SRQ keeps posted receives, in order", "11.2.3.3: resize", FOUR, .action = resize,
	  .req = { OK, OK, OK, OK }, .resp = { OK, OK, OK, OK } },
	{ "a larger SRQ takes a limit of its new size", "11.2.3.3: resize", FOUR, .action = resize_limit,
	  .req = { OK, OK, OK, OK }, .resp = { OK, OK, OK, OK }, .event = { 0, EV(SRQ_LIMIT_REACHED) } },
	{ "a resize with a limit above the new size changes nothing", "11.2.3.3: limit exceeds the size", FOUR,
	  .action = resize_refused, .req = { OK, OK, OK, OK, OK, OK }, .resp = { OK, OK, OK, OK, OK, OK } },
	{ "a resize sets a limit of the new size", "11.2.3.3: resize", FOUR, .action = resize_with_limit,
	  .req = { OK, OK, OK, OK }, .resp = { OK, OK, OK, OK }, .event = { 0, EV(SRQ_LIMIT_REACHED) } },
	{ "an SRQ has room for as many receives as its creation returned",
	  "11.2.3.1: the maximum number of outstanding WRs is an output modifier", .action = returned_size },
	{ "an SRQ does not become smaller than its posted receives", "11.2.3.3: resize", FOUR, .action = resize_below,
	  .req = { OK, OK, OK, OK }, .resp = { OK, OK, OK, OK } },
	{ "receives of an SRQ use the SRQ's PD for a queue pair of another PD", "10.2.9: the SRQ's PD counts",
	  .action = other_pd, .req = { OK }, .resp = { OK } },
	{ "receives of an SRQ of another PD do not use the queue pair's PD", "10.2.9: the SRQ's PD counts",
	  .action = other_pd, .arg = 1, .req = { ST(REM_OP_ERR) }, .resp = { ST(LOC_PROT_ERR) }, .state = { AT(ERR) } },
	{ "an error leaves the receives to the other queue pairs", "10.2.9: receives of an SRQ are not flushed", FOUR,
	  .action = one_fails, .req = { ST(REM_ACCESS_ERR), OK }, .resp = { OK }, .state = { AT(ERR), AT(ERR) } },
	{ "a wrong entry of the SRQ fails the queue pair that takes it alone", "10.2.9, 9.9.3", .knob[RESP].srq = 8,
	  .action = bad_entry, .req = { ST(REM_OP_ERR), OK }, .resp = { ST(LOC_PROT_ERR), OK },
	  .state = { AT(ERR), AT(ERR) } },
	{ "a queue pair in ERR reports its last WQE", "10.2.9, 11.6.3: last WQE reached", FOUR, .action = err_event,
	  .state = { 0, AT(ERR) }, .event = { 0, EV(QP_LAST_WQE_REACHED) } },
	{ "UC: a queue pair in ERR reports its last WQE", "10.2.9, 11.6.3: last WQE reached", FOUR, .type = IBV_QPT_UC,
	  .action = err_event, .state = { 0, AT(ERR) }, .event = { 0, EV(QP_LAST_WQE_REACHED) } },
	{ "UD: a queue pair in ERR reports its last WQE", "10.2.9, 11.6.3: last WQE reached", FOUR, .type = IBV_QPT_UD,
	  .action = err_event, .state = { 0, AT(ERR) }, .event = { 0, EV(QP_LAST_WQE_REACHED) } },
	{ "another queue pair uses the receives that one in ERR has not used",
	  "10.2.9: receives of an SRQ are not flushed", FOUR, .action = err_then_other, .req = { OK }, .resp = { OK },
	  .state = { 0, AT(ERR) }, .event = { 0, EV(QP_LAST_WQE_REACHED) } },
	{ "RESET of a queue pair leaves the SRQ alone", "10.2.9, 10.3.1.1", FOUR, .action = reset_keeps,
	  .req = { OK, OK }, .resp = { OK, OK } },
	{ "an SRQ without an entry is refused", "11.2.3.1: size", .action = create_values, .arg = 0 },
	{ "an SRQ with more entries than the HCA has is refused", "11.2.3.1: size", .action = create_values, .arg = 1 },
	{ "an SRQ with more parts than the HCA has is refused", "11.2.3.1: scatter entries", .action = create_values,
	  .arg = 2 },
	{ "an SRQ whose limit exceeds its size is refused", "11.2.3.1: limit", .action = create_values, .arg = 3,
	  .cannot = "ibv_create_srq(3) ignores the limit that the attributes give" },
};

void srq_rules(void)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		rule_add(rows[i], "%s", rows[i].name);
}

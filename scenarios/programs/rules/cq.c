// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Completion queues: notification, solicited events, overflow, resizing. */
#include "rules.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define SEND .op = IBV_WR_SEND

/* Number of received completion events; each is acknowledged. */
static unsigned events(struct scene *s, enum side at, struct ibv_cq *of)
{
	struct ibv_cq *cq;
	void *arg;
	unsigned n = 0;

	while (!ibv_get_cq_event(s->end[at].chan, &cq, &arg)) {
		ibv_ack_cq_events(cq, 1);
		if (cq != of)
			wrong(s, "an event of another CQ");
		n++;
	}
	return n;
}

static bool wait_cq_event(struct scene *s, enum side at, struct ibv_cq *of)
{
	struct pollfd p = { .fd = s->end[at].chan->fd, .events = POLLIN };

	return poll(&p, 1, 3000) == 1 && events(s, at, of) == 1;
}

static void send_one(struct scene *s, unsigned flags)
{
	unsigned n = s->end[RESP].got_recv;

	post_ok(s, REQ, (struct req){ SEND, .len = 8, .id = n, .flags = flags });
	EXPECT(s, wait_recv(s, RESP, n + 1));
	wait_delivered(s);
}

static void armed(struct scene *s)
{
	struct ibv_cq *cq = s->end[RESP].rcq;

	send_one(s, 0);
	EXPECT(s, !events(s, RESP, cq)); /* not armed */
	EXPECT(s, !ibv_req_notify_cq(cq, 0));
	wait_delivered(s);
	EXPECT(s, !events(s, RESP, cq)); /* earlier completions raise no event */
	send_one(s, 0);
	EXPECT(s, wait_cq_event(s, RESP, cq));
	send_one(s, 0);
	EXPECT(s, !events(s, RESP, cq)); /* one event for each request */
}

static void armed_twice(struct scene *s)
{
	struct ibv_cq *cq = s->end[RESP].rcq;

	EXPECT(s, !ibv_req_notify_cq(cq, 0) && !ibv_req_notify_cq(cq, 0));
	send_one(s, 0);
	EXPECT(s, wait_cq_event(s, RESP, cq));
	send_one(s, 0);
	EXPECT(s, !events(s, RESP, cq));
}

static void solicited(struct scene *s)
{
	struct ibv_cq *cq = s->end[RESP].rcq;

	EXPECT(s, !ibv_req_notify_cq(cq, 1));
	send_one(s, 0);
	EXPECT(s, !events(s, RESP, cq));
	send_one(s, IBV_SEND_SOLICITED);
	EXPECT(s, wait_cq_event(s, RESP, cq));
}

static void solicited_then_any(struct scene *s)
{
	struct ibv_cq *cq = s->end[RESP].rcq;

	EXPECT(s, !ibv_req_notify_cq(cq, 1) && !ibv_req_notify_cq(cq, 0));
	send_one(s, 0);
	EXPECT(s, wait_cq_event(s, RESP, cq));
}

static void any_then_solicited(struct scene *s)
{
	struct ibv_cq *cq = s->end[RESP].rcq;

	EXPECT(s, !ibv_req_notify_cq(cq, 0) && !ibv_req_notify_cq(cq, 1));
	send_one(s, 0);
	EXPECT(s, wait_cq_event(s, RESP, cq));
}

static void error_is_solicited(struct scene *s)
{
	struct ibv_cq *cq = s->end[RESP].rcq;

	EXPECT(s, !ibv_req_notify_cq(cq, 1));
	EXPECT(s, !qp_modify(s, RESP, s->end[RESP].qp, IBV_QPS_ERR, &s->rule->knob[RESP], 0));
	EXPECT(s, wait_recv(s, RESP, 1));
	EXPECT(s, wait_cq_event(s, RESP, cq));
}

static void send_error_is_solicited(struct scene *s)
{
	struct ibv_cq *cq = s->end[REQ].scq;

	EXPECT(s, !ibv_req_notify_cq(cq, 1));
	post_ok(s, REQ, (struct req){ SEND, .len = 8, .local = REF_NO_KEY });
	EXPECT(s, wait_cq_event(s, REQ, cq));
}

static void send_not_solicited(struct scene *s)
{
	struct ibv_cq *cq = s->end[REQ].scq;

	EXPECT(s, !ibv_req_notify_cq(cq, 1));
	post_ok(s, REQ, (struct req){ SEND, .len = 8, .flags = IBV_SEND_SOLICITED });
	EXPECT(s, wait_send(s, REQ, 1));
	wait_delivered(s);
	EXPECT(s, !events(s, REQ, cq));
}

static void send_armed(struct scene *s)
{
	struct ibv_cq *cq = s->end[REQ].scq;

	EXPECT(s, !ibv_req_notify_cq(cq, 0));
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8 });
	EXPECT(s, wait_cq_event(s, REQ, cq));
}

static void unsignalled(struct scene *s)
{
	struct ibv_cq *cq = s->end[REQ].scq;

	EXPECT(s, !ibv_req_notify_cq(cq, 0));
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .flags = UNSIGNALED });
	wait_delivered(s);
	EXPECT(s, !events(s, REQ, cq));
}

/* The SE bit of an operation without a completion at the responder raises no event. */
static void solicited_op(struct scene *s)
{
	struct ibv_cq *cq = s->end[RESP].rcq;
	bool consumes = s->rule->recvs;

	EXPECT(s, !ibv_req_notify_cq(cq, 1));
	post_ok(s, REQ,
		(struct req){ .op = (enum ibv_wr_opcode)s->rule->arg, .len = 3000, .flags = IBV_SEND_SOLICITED });
	EXPECT(s, wait_send(s, REQ, 1));
	if (consumes) {
		EXPECT(s, wait_cq_event(s, RESP, cq));
		return;
	}
	wait_delivered(s);
	EXPECT(s, !events(s, RESP, cq));
}

static void overflow(struct scene *s)
{
	struct end *a = &s->end[REQ];
	unsigned i, room = (unsigned)a->scq->cqe;

	for (i = 0; i < room + 4; i++)
		while (post(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .id = i }) == ENOMEM &&
		       !a->events) {
			struct ibv_async_event ev;

			if (ibv_get_async_event(a->ctx, &ev))
				continue;
			a->ev[a->events++] = ev;
			ibv_ack_async_event(&ev);
		}
	/* a CQ that is polled meanwhile need not overflow */
	EXPECT(s, wait_event_unpolled(s, REQ, IBV_EVENT_CQ_ERR) && wait_event(s, REQ, IBV_EVENT_QP_FATAL));
	for (i = 0; i < a->events; i++)
		EXPECT(s, a->ev[i].event_type != IBV_EVENT_CQ_ERR || a->ev[i].element.cq == a->scq);
	wait_delivered(s);
	for (i = 0; i < a->got_send; i++)
		EXPECT(s, a->swc[i].wr_id == i && !a->swc[i].status);
	EXPECT(s, a->got_send >= room);
	a->got_send = 0;
}

static void resize_keeps(struct scene *s)
{
	struct end *a = &s->end[REQ];
	unsigned i;

	for (i = 0; i < 4; i++)
		post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .id = i });
	EXPECT(s, !ibv_resize_cq(a->scq, 200) && a->scq->cqe >= 200);
	EXPECT(s, wait_send(s, REQ, 4));
	for (i = 0; i < 4; i++)
		EXPECT(s, a->swc[i].wr_id == i);
}

static void resize_values(struct scene *s)
{
	EXPECT(s, ibv_resize_cq(s->end[REQ].scq, s->rule->arg) == EINVAL);
	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8 });
}

static void create_values(struct scene *s)
{
	struct ibv_cq *cq;

	errno = 0;
	cq = ibv_create_cq(s->end[REQ].ctx, (int)s->rule->arg, NULL, NULL, (int)s->rule->arg2);
	EXPECT(s, !cq && errno == EINVAL);
	if (cq)
		ibv_destroy_cq(cq);
}

static void one_for_both(struct scene *s)
{
	struct end *a = &s->end[REQ];
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = a->scq, .recv_cq = a->scq, .cap = { 8, 8, 1, 1, 0 }
	};
	struct ibv_qp *own = a->qp, *qp = ibv_create_qp(a->pd, &init);
	unsigned sent = 0, received = 0, i;

	qp_connect(s, REQ, qp, qp->qp_num, IBV_QPS_RESET, &s->rule->knob[REQ]);
	{ /* to itself */
		struct ibv_qp_attr attr;
		enum ibv_qp_state to;

		for (to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
			qp_attr(s, REQ, &attr, &s->rule->knob[REQ], qp->qp_num);
			attr.ah_attr.dlid = a->attr.lid;
			attr.qp_state = to;
			EXPECT(s, !ibv_modify_qp(qp, &attr, required(IBV_QPT_RC, to - 1, to)));
		}
	}
	a->qp = qp;
	post_recvs(s, REQ, 3, (struct recv){ .id = 0 });
	for (i = 0; i < 3; i++)
		post_ok(s, REQ, (struct req){ SEND, .len = 8, .id = 10 + i });
	a->qp = own;
	EXPECT(s, wait_send(s, REQ, 6));
	for (i = 0; i < a->got_send; i++)
		if (a->swc[i].opcode == IBV_WC_RECV)
			EXPECT(s, a->swc[i].wr_id == received++);
		else
			EXPECT(s, a->swc[i].wr_id == 10 + sent++);
	EXPECT(s, sent == 3 && received == 3);
	ibv_destroy_qp(qp);
}

static void after_destroy(struct scene *s)
{
	struct end *a = &s->end[REQ];

	post_ok(s, REQ, (struct req){ .op = IBV_WR_RDMA_WRITE, .len = 8, .id = 1 });
	wait_delivered(s);
	EXPECT(s, a->got_send == 1);
	EXPECT(s, !ibv_destroy_qp(a->qp));
	a->qp = NULL;
	wait_delivered(s);
	EXPECT(s, a->got_send == 1);
}

#define EVENTS .knob = { { .event = 1 }, { .event = 1 } }

static const struct rule rows[] = {
	{ "an event is raised for the next completion, once", "11.4.2.2: request completion notification", EVENTS,
	  .recvs = 3, .action = armed, .req = { OK, OK, OK }, .resp = { OK, OK, OK } },
	{ "two requests for an event are one", "11.4.2.2: request completion notification", EVENTS, .recvs = 2,
	  .action = armed_twice, .req = { OK, OK }, .resp = { OK, OK } },
	{ "arming for solicited completions ignores others", "11.4.2.2: solicited completions", EVENTS, .recvs = 2,
	  .action = solicited, .req = { OK, OK }, .resp = { OK, OK } },
	{ "any completion after solicited ones were requested: the wider request counts",
	  "11.4.2.2: the next completion takes precedence", EVENTS, .recvs = 1, .action = solicited_then_any,
	  .req = { OK }, .resp = { OK } },
	{ "solicited completions after any was requested: the wider request stays",
	  "11.4.2.2: the next completion takes precedence", EVENTS, .recvs = 1, .action = any_then_solicited,
	  .req = { OK }, .resp = { OK } },
	{ "a receive's error counts as solicited", "11.4.2.2: unsuccessful completions", EVENTS, .recvs = 1,
	  .action = error_is_solicited, .resp = { FLUSHED }, .state = { 0, AT(ERR) } },
	{ "a send's error counts as solicited", "11.4.2.2: unsuccessful completions", EVENTS,
	  .action = send_error_is_solicited, .req = { ST(LOC_PROT_ERR) }, .state = { AT(ERR) } },
	{ "a send's success is not solicited", "11.4.2.2: solicited are receives", EVENTS, .recvs = 1,
	  .action = send_not_solicited, .req = { OK }, .resp = { OK } },
	{ "a send's completion is an event where any was requested", "11.4.2.2: request completion notification",
	  EVENTS, .action = send_armed, .req = { OK } },
	{ "an unsignalled request is no event", "10.7.3.1, 11.4.2.2", EVENTS, .action = unsignalled },
	{ "a solicited SEND of several packets is an event", "9.2.3: SE in the last packet", EVENTS, .recvs = 1,
	  .action = solicited_op, .arg = IBV_WR_SEND, .req = { OK }, .resp = { OK } },
	{ "a solicited SEND with immediate is an event", "9.2.3: SE in the last packet", EVENTS, .recvs = 1,
	  .action = solicited_op, .arg = IBV_WR_SEND_WITH_IMM, .req = { OK }, .resp = { OK } },
	{ "a solicited WRITE with immediate is an event", "9.2.3: SE in the last packet", EVENTS, .recvs = 1,
	  .action = solicited_op, .arg = IBV_WR_RDMA_WRITE_WITH_IMM, .req = { OK }, .resp = { OK } },
	{ "a solicited WRITE is none", "9.2.3: SE has no effect without a completion", EVENTS, .action = solicited_op,
	  .arg = IBV_WR_RDMA_WRITE, .req = { OK } },
	{ "UC: a solicited SEND of several packets is an event", "9.2.3: SE in the last packet", .type = IBV_QPT_UC,
	  EVENTS, .recvs = 1, .action = solicited_op, .arg = IBV_WR_SEND, .req = { OK }, .resp = { OK } },
	{ "an overflow is an event, and ends the queue pairs of the CQ", "11.6.3.2: CQ error", .knob[REQ].cqe = 4,
	  .action = overflow, .state = { AT(ERR) }, .event = { EV(CQ_ERR) }, .may_event = { EV(QP_FATAL) },
	  .counted = { { RESP, "cq_overflow", 0 } } },
	{ "a larger CQ keeps its completions, in order", "11.2.6.3: resize", .action = resize_keeps,
	  .req = { OK, OK, OK, OK } },
	{ "a CQ is not resized to 0 entries", "11.2.6.3: resize", .action = resize_values, .arg = 0, .req = { OK } },
	{ "a CQ is not resized beyond the HCA's limit", "11.2.6.3: resize", .action = resize_values, .arg = 1 << 30,
	  .req = { OK } },
	{ "a CQ of no entry is refused", "11.2.6.1: size", .action = create_values, .arg = 0 },
	{ "a CQ beyond the HCA's limit is refused", "11.2.6.1: size", .action = create_values, .arg = 1 << 30 },
	{ "a CQ on a nonexistent vector is refused", "11.2.6.1, 11.5.1: completion event handler",
	  .action = create_values, .arg = 8, .arg2 = 9999 },
	{ "one CQ for both queues, each in order", "9.5, 10.8.3: order within each queue", .action = one_for_both,
	  .req = { OK, OK, OK, OK, OK, OK } },
	{ "a queue pair that is destroyed adds no completion", "11.2.5.4: no completions after destroy",
	  .action = after_destroy, .req = { OK }, .state = { GONE } },
};

void cq_rules(void)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		rule_add(rows[i], "%s", rows[i].name);
}

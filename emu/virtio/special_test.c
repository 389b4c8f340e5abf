// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* QP0 and QP1 of a guest: states, MADs, completions. */
#include "emu/lib/row.h"
#include "emu/virtio/fixture.h"

static int qp_state(struct guest *g, u32 qp)
{
	const struct muslin_qp_answer *a = (const void *)(g->f.mem + GUEST_OUT);

	return guest_object(g, MUSLIN_QP_QUERY, qp, 0) ?: (int)a->attr.state;
}

static void post_recv(struct guest *g)
{
	struct rxe_queue_buf *rq = (void *)(g->f.mem + 0x30000);

	rq->producer_index = (rq->producer_index + 1) & 3;
}

static void test_special(struct guest *g)
{
	struct muslin_shared *sh = (void *)(g->f.mem + GUEST_SHARED);
	u32 pd, cq, qp;

	pd = guest_make_pd(g);
	cq = guest_make_cq(g);
	qp = guest_make_qp(g, HCA_QPT_GSI, pd, cq, 1);
	row(60, "QP1", qp && guest_number(g)->arg == 1);
	row(61, "only one", guest_make_qp(g, HCA_QPT_GSI, pd, cq, 1) == 0);
	row(62, "its CQ is in use", guest_object(g, MUSLIN_CQ_DESTROY, cq, 0) == -EBUSY);
	row(63, "no such state", guest_move_qp(g, qp, 9, 0) == -EINVAL);
	row(130, "nor one of these transitions",
	    guest_move_qp(g, qp, HCA_QPS_RTS, HCA_QP_SQ_PSN) == -EINVAL &&
		    guest_move_qp(g, qp, HCA_QPS_INIT, 0) == -EINVAL);
	row(64, "to RTS", !guest_start_special(g, qp));
	row(65, "a MAD", guest_send_one(g, qp, HCA_WR_SEND, 1, FRONT_DATA) == HCA_WC_SUCCESS);
	row(66, "from unmapped memory", guest_send_one(g, qp, HCA_WR_SEND, 1, FRONT_MEM) == HCA_WC_LOC_PROT_ERR);
	row(131, "stops the send queue", qp_state(g, qp) == HCA_QPS_SQE);
	row(132, "the next one is flushed", guest_send_one(g, qp, HCA_WR_SEND, 1, FRONT_DATA) == HCA_WC_WR_FLUSH_ERR);
	row(133, "until the driver starts it again",
	    !guest_move_qp(g, qp, HCA_QPS_RTS, 0) &&
		    guest_send_one(g, qp, HCA_WR_SEND, 1, FRONT_DATA) == HCA_WC_SUCCESS);
	row(67, "with too many SGEs",
	    guest_send_one(g, qp, HCA_WR_SEND, ~0u, FRONT_DATA) == HCA_WC_LOC_QP_OP_ERR &&
		    !guest_move_qp(g, qp, HCA_QPS_RTS, 0));
	row(68, "of an unknown opcode",
	    guest_send_one(g, qp, 77, 1, FRONT_DATA) == HCA_WC_LOC_QP_OP_ERR && !guest_move_qp(g, qp, HCA_QPS_RTS, 0));
	row(134, "of one that no MAD has",
	    guest_send_one(g, qp, HCA_WR_RDMA_WRITE, 1, FRONT_DATA) == HCA_WC_LOC_QP_OP_ERR &&
		    !guest_move_qp(g, qp, HCA_QPS_RTS, 0));
	post_recv(g);
	row(135, "one in SQD is not sent",
	    !guest_move_qp(g, qp, HCA_QPS_SQD, 0) && guest_send_one(g, qp, HCA_WR_SEND, 1, FRONT_DATA) == -1);
	row(136, "but when it is in RTS again",
	    !guest_move_qp(g, qp, HCA_QPS_RTS, 0) && guest_completed(g) == HCA_WC_SUCCESS);
	row(137, "ERR flushes receives",
	    !guest_move_qp(g, qp, HCA_QPS_ERR, 0) && guest_completed(g) == HCA_WC_WR_FLUSH_ERR &&
		    guest_completed(g) == -1);
	post_recv(g);
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	row(138, "later ones, too, which have no doorbell", guest_completed(g) == HCA_WC_WR_FLUSH_ERR);
	memset(sh->doorbell, 0xff, sizeof(sh->doorbell));
	sh->rung = 1;
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	row(69, "every doorbell at once", vdev_in_use(g->dev) && !sh->doorbell[0]);
	row(70, "and destroyed",
	    !guest_object(g, MUSLIN_QP_DESTROY, qp, 0) && !guest_object(g, MUSLIN_CQ_DESTROY, cq, 0) &&
		    !guest_free_pd(g, pd));
}

/* Whether the guest has had this event, in one of @n buffers of 64 bytes. */
static bool has_event(const struct guest *g, u32 type, u32 number, u32 n)
{
	const struct muslin_event *ev;
	u32 i;

	for (i = 0; i < n; i++) {
		ev = (const void *)(g->f.mem + FRONT_DATA + 1024 + 64 * i);
		if (ev->type == type && ev->number == number)
			return true;
	}
	return false;
}

/* Gives the device buffers for eight events. */
static void events_offer(struct guest *g)
{
	u32 i;

	for (i = 0; i < 8; i++) {
		front_fill(front_desc(&g->f, MUSLIN_VQ_EVENT, i), FRONT_DATA + 1024 + 64 * i,
			   sizeof(struct muslin_event), 2, 0);
		front_offer(&g->f, MUSLIN_VQ_EVENT, (u16)i);
	}
}

/* L_Keys of MADs: of the queue pair's PD, within their bounds, with the right (10.6). */
static void test_special_keys(struct guest *g)
{
	static const struct muslin_av av = { .dlid = 9, .port = 1 };
	u32 other, other_key, pd, cqn, qp, key, i;

	other = guest_make_pd(g);
	other_key = g->lkey;
	pd = guest_make_pd(g);
	key = g->lkey;
	cqn = guest_make_cq(g);
	row(170, "QP1 of no PD", guest_make_qp(g, HCA_QPT_GSI, 12345, cqn, 1) == 0);
	qp = guest_make_qp(g, HCA_QPT_GSI, pd, cqn, 1);
	row(171, "of a PD", !guest_start_special(g, qp));
	row(172, "which is in use",
	    !guest_object(g, MUSLIN_MR_FREE, key, 0) && guest_object(g, MUSLIN_PD_FREE, pd, 0) == -EBUSY);
	for (i = 0; i < 3; i++) {
		g->lkey = i == 1 ? other_key : i == 2 ? 0 : key;
		row(173, "a MAD by the key of a region that has ended, of another PD, and no key",
		    guest_send_to(g, qp, HCA_WR_SEND, 1, FRONT_DATA, &av) == HCA_WC_LOC_PROT_ERR &&
			    !guest_move_qp(g, qp, HCA_QPS_RTS, 0));
	}
	guest_object(g, MUSLIN_MR_DMA, pd, 0);
	g->lkey = guest_number(g)->number;
	row(174, "by a region of the PD", guest_send_to(g, qp, HCA_WR_SEND, 1, FRONT_DATA, &av) == HCA_WC_SUCCESS);
	row(175, "behind its end", guest_send_to(g, qp, HCA_WR_SEND, 1, 1ull << 60, &av) == HCA_WC_LOC_PROT_ERR);
	guest_object(g, MUSLIN_QP_DESTROY, qp, 0);
	guest_object(g, MUSLIN_CQ_DESTROY, cqn, 0);
	row(176, "the PD is free when the queue pair is destroyed", !guest_free_pd(g, pd));
	g->lkey = other_key;
	guest_free_pd(g, other);
}

/* A CQ with room for three completions gets a fourth, of QP1; QP0 has it, too. */
static void test_special_overrun(struct guest *g)
{
	struct rxe_queue_buf *cq = (void *)(g->f.mem + 0x20000);
	u32 pd, cqn, qp[2], i;

	pd = guest_make_pd(g);
	cqn = guest_make_cq(g);
	for (i = 0; i < 2; i++) {
		qp[i] = guest_make_qp(g, i ? HCA_QPT_GSI : HCA_QPT_SMI, pd, cqn, 1);
		guest_start_special(g, qp[i]);
	}
	memset(g->f.mem + FRONT_DATA + 1024, 0, 512);
	events_offer(g);
	for (i = 0; i < 4; i++) {
		guest_send_one(g, qp[1], HCA_WR_SEND, 1, FRONT_DATA);
		cq->consumer_index = 0;
	}
	row(140, "an error of the CQ", cq->producer_index == 3 && has_event(g, HCA_EVENT_CQ_ERR, cqn, 8));
	for (i = 0; i < 2; i++)
		row(141, "and of each of its queue pairs",
		    has_event(g, HCA_EVENT_QP_FATAL, qp[i], 8) && qp_state(g, qp[i]) == HCA_QPS_ERR);
	cq->consumer_index = 3;
	guest_send_one(g, qp[1], HCA_WR_SEND, 1, FRONT_DATA);
	row(142, "it takes no more", cq->producer_index == 3);
	for (i = 0; i < 2; i++)
		guest_object(g, MUSLIN_QP_DESTROY, qp[i], 0);
	guest_object(g, MUSLIN_CQ_DESTROY, cqn, 0);
	guest_free_pd(g, pd);
}

static int drain(struct guest *g, u32 qp, u32 mask, bool notify)
{
	struct muslin_qp_modify m = { .cmd = { .op = MUSLIN_QP_MODIFY }, .handle = qp, .mask = HCA_QP_STATE | mask };

	memset(g->f.mem + FRONT_DATA + 1024, 0, 512);
	m.attr.state = HCA_QPS_SQD;
	m.attr.en_sqd_async_notify = notify;
	return guest_command(g, &m, sizeof(m));
}

/* SQD: an event if the driver requests it (10.3.1, 11.6.3). */
static void test_special_drained(struct guest *g)
{
	u32 pd, cqn, qp;

	pd = guest_make_pd(g);
	cqn = guest_make_cq(g);
	qp = guest_make_qp(g, HCA_QPT_GSI, pd, cqn, 1);
	row(150, "QP1 in RTS", !guest_start_special(g, qp));
	events_offer(g);
	row(151, "SQD without a notification",
	    !drain(g, qp, 0, true) && !has_event(g, HCA_EVENT_SQ_DRAINED, qp, 8) &&
		    !guest_move_qp(g, qp, HCA_QPS_RTS, 0));
	row(152, "with one that is disabled",
	    !drain(g, qp, HCA_QP_EN_SQD_ASYNC_NOTIFY, false) && !has_event(g, HCA_EVENT_SQ_DRAINED, qp, 8) &&
		    !guest_move_qp(g, qp, HCA_QPS_RTS, 0));
	row(153, "with one",
	    !drain(g, qp, HCA_QP_EN_SQD_ASYNC_NOTIFY, true) && has_event(g, HCA_EVENT_SQ_DRAINED, qp, 8));
	row(154, "once", !drain(g, qp, HCA_QP_QKEY, true) && !has_event(g, HCA_EVENT_SQ_DRAINED, qp, 8));
	guest_object(g, MUSLIN_QP_DESTROY, qp, 0);
	guest_object(g, MUSLIN_CQ_DESTROY, cqn, 0);
	guest_free_pd(g, pd);
}

/* ERR flushes more receives than a turn has requests. */
static void test_special_turns(struct guest *g)
{
	struct muslin_qp_modify m = { .cmd = { .op = MUSLIN_QP_MODIFY }, .mask = HCA_QP_STATE };
	struct rxe_queue_buf *cq = (void *)(g->f.mem + 0x20000), *rq = (void *)(g->f.mem + 0x30000);
	struct muslin_cq_create c = guest_cq(g, 0x20000);
	struct muslin_qp_create q = guest_qp(g, HCA_QPT_GSI, 0, 0, 0x28000, 0x30000);
	u32 n = 2 * VERBS_SPECIAL_TURN;

	c.ring = guest_ring_of(g, 0x20000, 6, 256);
	q.rq = guest_ring_of(g, 0x30000, 7, 256);
	q.port = 1;
	q.max_recv_wr = 128;
	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	q.pdn = guest_number(g)->number;
	guest_command(g, &c, sizeof(c));
	q.send_cq = q.recv_cq = guest_number(g)->number;
	row(143, "a queue pair with receives", !guest_command(g, &q, sizeof(q)));
	m.handle = guest_number(g)->number;
	guest_start_special(g, m.handle);
	rq->producer_index = n;
	m.attr.state = HCA_QPS_ERR;
	g->f.loop = NULL;
	memcpy(g->f.mem + GUEST_IN, &m, sizeof(m));
	front_post(&g->f, MUSLIN_VQ_COMMAND, GUEST_IN, sizeof(m), GUEST_OUT, 2048);
	vd_commands(g->dev);
	g->f.loop = g->loop;
	row(144, "ERR flushes no more of them than a turn has requests", cq->producer_index == VERBS_SPECIAL_TURN);
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	row(145, "the others follow", cq->producer_index == n);
	guest_object(g, MUSLIN_QP_DESTROY, m.handle, 0);
	guest_object(g, MUSLIN_CQ_DESTROY, q.send_cq, 0);
	guest_object(g, MUSLIN_PD_FREE, q.pdn, 0);
}

int main(void)
{
	struct guest g;

	if (guest_create(&g) || guest_attach(&g) || guest_hello(&g)) {
		row(0, "no device", false);
		return rows_end();
	}
	test_special(&g);
	test_special_keys(&g);
	test_special_drained(&g);
	test_special_overrun(&g);
	test_special_turns(&g);
	front_close(&g.f);
	guest_destroy(&g);
	return rows_end();
}

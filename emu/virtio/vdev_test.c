// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The device with a conforming driver and with a misbehaving one. */
#include "emu/lib/row.h"
#include "emu/virtio/fixture.h"
#include "emu/wire/hdr.h"
#include "emu/wire/mad.h"
#include "emu/wire/opcode.h"

static void test_hello(struct guest *g)
{
	struct muslin_hello bad = {
		.cmd = { .op = MUSLIN_HELLO }, .magic = 1, .version = MUSLIN_ABI_VERSION, .shared = GUEST_SHARED
	};
	const struct muslin_port_answer *p = (const void *)(g->f.mem + GUEST_OUT);

	row(1, "no command before hello", guest_object(g, MUSLIN_PD_ALLOC, 0, 0) == -ENODEV);
	row(2, "a wrong magic", guest_command(g, &bad, sizeof(bad)) == -EPROTO && !vdev_in_use(g->dev));
	bad.magic = MUSLIN_CONFIG_MAGIC;
	bad.shared = FRONT_MEM - 8;
	row(3, "shared memory that is not there", guest_command(g, &bad, sizeof(bad)) == -EFAULT);
	bad.shared = GUEST_SHARED + 4;
	row(4, "shared memory askew", guest_command(g, &bad, sizeof(bad)) == -EFAULT);
	row(5, "hello", guest_hello(g) == 0 && vdev_in_use(g->dev));
	row(6, "a port", guest_object(g, MUSLIN_QUERY_PORT, 1, 0) == 0 && p->lid == 1 && p->pkey[0] == 0xffff);
	row(7, "no such port",
	    guest_object(g, MUSLIN_QUERY_PORT, 3, 0) == -EINVAL &&
		    guest_object(g, MUSLIN_QUERY_PORT, 0x101, 0) == -EINVAL);
	row(8, "no such command",
	    guest_object(g, MUSLIN_OPS, 0, 0) == -EOPNOTSUPP && guest_object(g, 0, 0, 0) == -EOPNOTSUPP &&
		    guest_object(g, ~0u, 0, 0) == -EOPNOTSUPP);
}

/* Each command, one byte short and one too long. */
static void test_lengths(struct guest *g)
{
	u8 in[2048] = { 0 };
	bool all = true;
	u32 op, len;

	for (op = MUSLIN_HELLO; op < MUSLIN_OPS; op++) {
		memcpy(in, &op, sizeof(op));
		for (len = 0; len < 12; len++)
			all &= guest_command(g, in, len) < 0;
		if (op != MUSLIN_MR_REG)
			all &= guest_command(g, in, sizeof(in)) == -EINVAL;
	}
	row(20, "wrong lengths", all && vdev_in_use(g->dev));
}

static void test_foreign(struct guest *g)
{
	static const u32 ops[] = { MUSLIN_PD_FREE,       MUSLIN_CQ_DESTROY, MUSLIN_QP_QUERY,    MUSLIN_QP_DESTROY,
				   MUSLIN_SRQ_SET_LIMIT, MUSLIN_SRQ_QUERY,  MUSLIN_SRQ_DESTROY, MUSLIN_AH_DESTROY,
				   MUSLIN_MR_DMA,        MUSLIN_MR_ALLOC,   MUSLIN_MR_FREE,     MUSLIN_MW_ALLOC,
				   MUSLIN_MW_FREE };
	static const u32 numbers[] = { 0, 1, 0xffff, MUSLIN_HANDLES - 1, MUSLIN_HANDLES, ~0u };
	bool all = true;
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		for (j = 0; j < ARRAY_SIZE(numbers); j++)
			all &= guest_object(g, ops[i], numbers[j], 1) < 0;
	row(30, "numbers of no object", all);
}

static void test_rings(struct guest *g)
{
	struct muslin_cq_create cq = guest_cq(g, 0x20000);
	struct muslin_ring good = cq.ring;
	static const struct {
		int n;
		const char *what;
		struct muslin_ring r;
	} rows[] = {
		{ 40, "no pages", { 0, 0, 6, 4, 0 } },
		{ 41, "a list in nowhere", { FRONT_MEM, 1, 6, 4, 0 } },
		{ 42, "too few pages", { 0x21000, 1, 6, 64, 0 } },
		{ 43, "slots that are no power of two", { 0x21000, 1, 6, 5, 0 } },
		{ 44, "entries too small", { 0x21000, 1, 5, 4, 0 } },
		{ 45, "entries of two gigabytes", { 0x21000, 1, 31, 4, 0 } },
		{ 46, "a shift of all ones", { 0x21000, 1, ~0u, 4, 0 } },
		{ 47, "slots for ever", { 0x21000, ~0u, 12, 1u << 31, 0 } },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		cq.ring = rows[i].r;
		row(rows[i].n, rows[i].what, guest_command(g, &cq, sizeof(cq)) < 0);
	}
	cq.ring = good;
	*(u64 *)(void *)(g->f.mem + good.pages) = FRONT_MEM;
	row(48, "a page in nowhere", guest_command(g, &cq, sizeof(cq)) == -EFAULT);
	*(u64 *)(void *)(g->f.mem + good.pages) = 0x20008;
	row(49, "a page askew", guest_command(g, &cq, sizeof(cq)) == -EINVAL);
	*(u64 *)(void *)(g->f.mem + good.pages) = 0x20000;
	cq.vector = MUSLIN_VECTORS;
	row(50, "no such vector", guest_command(g, &cq, sizeof(cq)) == -EINVAL);
	cq.vector = 1;
	row(51, "a good one", guest_command(g, &cq, sizeof(cq)) == 0);
	row(52, "and its end", guest_object(g, MUSLIN_CQ_DESTROY, guest_number(g)->number, 0) == 0);
}

static u32 make_cq(struct guest *g)
{
	struct muslin_cq_create cq = guest_cq(g, 0x20000);

	return guest_command(g, &cq, sizeof(cq)) ? 0 : guest_number(g)->number;
}

static u32 make_qp(struct guest *g, u32 type, u32 pdn, u32 cq, u32 port)
{
	struct muslin_qp_create qp = guest_qp(g, type, pdn, cq, 0x28000, 0x30000);

	qp.port = port;
	return guest_command(g, &qp, sizeof(qp)) ? 0 : guest_number(g)->number;
}

static int move_qp(struct guest *g, u32 qp, u8 state, u32 mask)
{
	struct muslin_qp_modify m = { .cmd = { .op = MUSLIN_QP_MODIFY }, .handle = qp, .mask = HCA_QP_STATE | mask };

	m.attr.state = state;
	m.attr.port = 1;
	m.attr.qkey = 0x80010000;
	return guest_command(g, &m, sizeof(m));
}

static int start_special(struct guest *g, u32 qp)
{
	return move_qp(g, qp, HCA_QPS_INIT, HCA_QP_PKEY_INDEX | HCA_QP_QKEY) ?: move_qp(g, qp, HCA_QPS_RTR, 0)
		       ?: move_qp(g, qp, HCA_QPS_RTS, HCA_QP_SQ_PSN);
}

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

/* The status of the next completion; -1: none. */
static int completed(struct guest *g)
{
	struct rxe_queue_buf *cq = (void *)(g->f.mem + 0x20000);
	u32 at = cq->consumer_index & 3;

	if ((cq->producer_index & 3) == at)
		return -1;
	cq->consumer_index = (at + 1) & 3;
	return (int)((struct ib_uverbs_wc *)(void *)(cq->data + at * 64))->status;
}

/* Posts a send request in slot 0 and rings; returns the status of the completion. */
static int send_to(struct guest *g, u32 qp, u32 opcode, u32 num_sge, u64 addr, const struct muslin_av *av)
{
	struct muslin_shared *sh = (void *)(g->f.mem + GUEST_SHARED);
	struct rxe_queue_buf *sq = (void *)(g->f.mem + 0x28000);
	u32 at = sq->producer_index & 3;
	struct rxe_send_wqe *w = (void *)(sq->data + at * 512);

	memset(w, 0, 512);
	w->wr.opcode = opcode;
	w->wr.wr.ud.remote_qpn = 1;
	w->wr.wr.ud.remote_qkey = 0x80010000;
	memcpy(&w->wr.wr.ud.av, av, sizeof(*av));
	w->dma.num_sge = num_sge;
	w->dma.sge[0] = (struct rxe_sge){ .addr = addr, .length = 256 };
	sq->producer_index = (at + 1) & 3;
	sh->doorbell[qp / 64] |= 1ull << (qp % 64);
	sh->rung = 1;
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	return completed(g);
}

static int send_one(struct guest *g, u32 qp, u32 opcode, u32 num_sge, u64 addr)
{
	static const struct muslin_av av = { .dlid = 9, .port = 1 };

	return send_to(g, qp, opcode, num_sge, addr, &av);
}

static void test_special(struct guest *g)
{
	struct muslin_shared *sh = (void *)(g->f.mem + GUEST_SHARED);
	u32 pd, cq, qp;

	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	pd = guest_number(g)->number;
	cq = make_cq(g);
	qp = make_qp(g, HCA_QPT_GSI, pd, cq, 1);
	row(60, "QP1", qp && guest_number(g)->arg == 1);
	row(61, "only one", make_qp(g, HCA_QPT_GSI, pd, cq, 1) == 0);
	row(62, "its CQ is in use", guest_object(g, MUSLIN_CQ_DESTROY, cq, 0) == -EBUSY);
	row(63, "no such state", move_qp(g, qp, 9, 0) == -EINVAL);
	row(130, "nor one of these transitions",
	    move_qp(g, qp, HCA_QPS_RTS, HCA_QP_SQ_PSN) == -EINVAL && move_qp(g, qp, HCA_QPS_INIT, 0) == -EINVAL);
	row(64, "to RTS", !start_special(g, qp));
	row(65, "a MAD", send_one(g, qp, HCA_WR_SEND, 1, FRONT_DATA) == HCA_WC_SUCCESS);
	row(66, "from unmapped memory", send_one(g, qp, HCA_WR_SEND, 1, FRONT_MEM) == HCA_WC_LOC_PROT_ERR);
	row(131, "stops the send queue", qp_state(g, qp) == HCA_QPS_SQE);
	row(132, "the next one is flushed", send_one(g, qp, HCA_WR_SEND, 1, FRONT_DATA) == HCA_WC_WR_FLUSH_ERR);
	row(133, "until the driver starts it again",
	    !move_qp(g, qp, HCA_QPS_RTS, 0) && send_one(g, qp, HCA_WR_SEND, 1, FRONT_DATA) == HCA_WC_SUCCESS);
	row(67, "with too many SGEs",
	    send_one(g, qp, HCA_WR_SEND, ~0u, FRONT_DATA) == HCA_WC_LOC_QP_OP_ERR && !move_qp(g, qp, HCA_QPS_RTS, 0));
	row(68, "of an unknown opcode",
	    send_one(g, qp, 77, 1, FRONT_DATA) == HCA_WC_LOC_QP_OP_ERR && !move_qp(g, qp, HCA_QPS_RTS, 0));
	row(134, "of one that no MAD has",
	    send_one(g, qp, HCA_WR_RDMA_WRITE, 1, FRONT_DATA) == HCA_WC_LOC_QP_OP_ERR &&
		    !move_qp(g, qp, HCA_QPS_RTS, 0));
	post_recv(g);
	row(135, "one in SQD is not sent",
	    !move_qp(g, qp, HCA_QPS_SQD, 0) && send_one(g, qp, HCA_WR_SEND, 1, FRONT_DATA) == -1);
	row(136, "but when it is in RTS again", !move_qp(g, qp, HCA_QPS_RTS, 0) && completed(g) == HCA_WC_SUCCESS);
	row(137, "ERR flushes receives",
	    !move_qp(g, qp, HCA_QPS_ERR, 0) && completed(g) == HCA_WC_WR_FLUSH_ERR && completed(g) == -1);
	post_recv(g);
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	row(138, "later ones, too, which have no doorbell", completed(g) == HCA_WC_WR_FLUSH_ERR);
	memset(sh->doorbell, 0xff, sizeof(sh->doorbell));
	sh->rung = 1;
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	row(69, "every doorbell at once", vdev_in_use(g->dev) && !sh->doorbell[0]);
	row(70, "and destroyed",
	    !guest_object(g, MUSLIN_QP_DESTROY, qp, 0) && !guest_object(g, MUSLIN_CQ_DESTROY, cq, 0) &&
		    !guest_object(g, MUSLIN_PD_FREE, pd, 0));
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

/* A CQ with room for three completions gets a fourth, of QP1; QP0 has it, too. */
static void test_special_overrun(struct guest *g)
{
	struct rxe_queue_buf *cq = (void *)(g->f.mem + 0x20000);
	u32 pd, cqn, qp[2], i;

	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	pd = guest_number(g)->number;
	cqn = make_cq(g);
	for (i = 0; i < 2; i++) {
		qp[i] = make_qp(g, i ? HCA_QPT_GSI : HCA_QPT_SMI, pd, cqn, 1);
		start_special(g, qp[i]);
	}
	memset(g->f.mem + FRONT_DATA + 1024, 0, 512);
	for (i = 0; i < 8; i++) {
		front_fill(front_desc(&g->f, MUSLIN_VQ_EVENT, i), FRONT_DATA + 1024 + 64 * i,
			   sizeof(struct muslin_event), 2, 0);
		front_offer(&g->f, MUSLIN_VQ_EVENT, (u16)i);
	}
	for (i = 0; i < 4; i++) {
		send_one(g, qp[1], HCA_WR_SEND, 1, FRONT_DATA);
		cq->consumer_index = 0;
	}
	row(140, "an error of the CQ", cq->producer_index == 3 && has_event(g, HCA_EVENT_CQ_ERR, cqn, 8));
	for (i = 0; i < 2; i++)
		row(141, "and of each of its queue pairs",
		    has_event(g, HCA_EVENT_QP_FATAL, qp[i], 8) && qp_state(g, qp[i]) == HCA_QPS_ERR);
	cq->consumer_index = 3;
	send_one(g, qp[1], HCA_WR_SEND, 1, FRONT_DATA);
	row(142, "it takes no more", cq->producer_index == 3);
	for (i = 0; i < 2; i++)
		guest_object(g, MUSLIN_QP_DESTROY, qp[i], 0);
	guest_object(g, MUSLIN_CQ_DESTROY, cqn, 0);
	guest_object(g, MUSLIN_PD_FREE, pd, 0);
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
	start_special(g, m.handle);
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

/* The cost of a message is counted per queue. */
static void test_exits(struct guest *g)
{
	u64 kicks = vdev_counter(g->dev, VDEV_CTR_KICKS), rung = vdev_counter(g->dev, VDEV_CTR_DOORBELL_KICKS);
	u64 interrupts = vdev_counter(g->dev, VDEV_CTR_INTERRUPTS);

	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	row(80, "a kick of the doorbell", vdev_counter(g->dev, VDEV_CTR_DOORBELL_KICKS) == rung + 1);
	guest_object(g, MUSLIN_QUERY_PORT, 1, 0);
	row(81, "one of another queue",
	    vdev_counter(g->dev, VDEV_CTR_DOORBELL_KICKS) == rung + 1 &&
		    vdev_counter(g->dev, VDEV_CTR_KICKS) == kicks + 2);
	row(82, "its interrupt is not a message's",
	    vdev_counter(g->dev, VDEV_CTR_INTERRUPTS) == interrupts + 1 &&
		    !vdev_counter(g->dev, VDEV_CTR_COMP_INTERRUPTS));
	row(83, "no such counter", !vdev_counter(g->dev, VDEV_CTR_NUM) && !vdev_counter_name(VDEV_CTR_NUM));
}

/* Two QPs, each with an armed CQ, send the same request, with one doorbell. */
static void test_coalescing(struct guest *g)
{
	struct muslin_shared *sh = (void *)(g->f.mem + GUEST_SHARED);
	static const struct muslin_av av = { .dlid = 9, .port = 1 };
	u64 interrupts = vdev_counter(g->dev, VDEV_CTR_COMP_INTERRUPTS), events;
	u32 pd, cq[2], qp[2], i;

	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	pd = guest_number(g)->number;
	for (i = 0; i < 2; i++) {
		front_fill(front_desc(&g->f, MUSLIN_VQ_COMP, i), FRONT_DATA + 512 * i, sizeof(struct muslin_comp), 2,
			   0);
		front_offer(&g->f, MUSLIN_VQ_COMP, (u16)i);
		cq[i] = make_cq(g);
		qp[i] = make_qp(g, i ? HCA_QPT_GSI : HCA_QPT_SMI, pd, cq[i], 1);
		start_special(g, qp[i]);
		sh->arm[cq[i]] = MUSLIN_ARM_NEXT;
		sh->doorbell[0] |= 1ull << qp[i];
	}
	events = vdev_counter(g->dev, VDEV_CTR_COMP_EVENTS);
	row(84, "sent", send_to(g, qp[0], HCA_WR_SEND, 1, FRONT_DATA, &av) == HCA_WC_SUCCESS);
	row(85, "two events", vdev_counter(g->dev, VDEV_CTR_COMP_EVENTS) == events + 2);
	row(86, "and one interrupt", vdev_counter(g->dev, VDEV_CTR_COMP_INTERRUPTS) == interrupts + 1);
	for (i = 0; i < 2; i++) {
		guest_object(g, MUSLIN_QP_DESTROY, qp[i], 0);
		guest_object(g, MUSLIN_CQ_DESTROY, cq[i], 0);
	}
	guest_object(g, MUSLIN_PD_FREE, pd, 0);
}

/* The doorbell and the command arrive while the loop is busy. */
static void test_destroy_at_once(struct guest *g)
{
	struct muslin_object destroy = { .cmd = { .op = MUSLIN_QP_DESTROY } };
	u32 pd, cq, sent;

	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	pd = guest_number(g)->number;
	cq = make_cq(g);
	destroy.number = make_qp(g, HCA_QPT_UD, pd, cq, 0);
	move_qp(g, destroy.number, HCA_QPS_INIT, HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_QKEY);
	move_qp(g, destroy.number, HCA_QPS_RTR, 0);
	row(56, "a QP", !move_qp(g, destroy.number, HCA_QPS_RTS, HCA_QP_SQ_PSN));
	sent = g->nsent;
	g->f.loop = NULL;
	send_one(g, destroy.number, HCA_WR_SEND, 0, 0);
	memcpy(g->f.mem + GUEST_IN, &destroy, sizeof(destroy));
	front_post(&g->f, MUSLIN_VQ_COMMAND, GUEST_IN, sizeof(destroy), GUEST_OUT, 2048);
	vd_commands(g->dev);
	g->f.loop = g->loop;
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	row(57, "what was posted before its end is sent", g->nsent == sent + 1);
	row(58, "and destroyed",
	    !*(s32 *)(void *)(g->f.mem + GUEST_OUT) && !guest_object(g, MUSLIN_CQ_DESTROY, cq, 0) &&
		    !guest_object(g, MUSLIN_PD_FREE, pd, 0));
}

/* The nth command of those that are posted together. */
static void post_destroy(struct guest *g, u32 handle, u16 n)
{
	struct muslin_object destroy = { .cmd = { .op = MUSLIN_QP_DESTROY }, .number = handle };
	u32 at = 64 * n;

	memcpy(g->f.mem + GUEST_IN + at, &destroy, sizeof(destroy));
	memset(g->f.mem + GUEST_OUT + at, 0xff, 64);
	front_fill(front_desc(&g->f, MUSLIN_VQ_COMMAND, 2 * n), GUEST_IN + at, sizeof(destroy), 1, 2 * n + 1);
	front_fill(front_desc(&g->f, MUSLIN_VQ_COMMAND, 2 * n + 1), GUEST_OUT + at, 64, 2, 0);
	front_offer(&g->f, MUSLIN_VQ_COMMAND, 2 * n);
}

/* A turn of commands is continued by a task, which is queued when the next commands arrive. */
static void test_destroy_in_turns(struct guest *g)
{
	const struct verbs_qp *qp;
	u32 pd, cq, handle[3], i, sent;

	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	pd = guest_number(g)->number;
	cq = make_cq(g);
	for (i = 0; i < 3; i++) {
		handle[i] = make_qp(g, HCA_QPT_UD, pd, cq, 0);
		move_qp(g, handle[i], HCA_QPS_INIT, HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_QKEY);
		move_qp(g, handle[i], HCA_QPS_RTR, 0);
		move_qp(g, handle[i], HCA_QPS_RTS, HCA_QP_SQ_PSN);
	}
	g->f.loop = NULL;
	vd_resume_later(g->dev);
	post_destroy(g, handle[0], 0);
	post_destroy(g, handle[1], 1);
	vd_commands(g->dev);
	g->f.loop = g->loop;
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	row(59, "both QPs are destroyed",
	    !*(s32 *)(void *)(g->f.mem + GUEST_OUT) && !*(s32 *)(void *)(g->f.mem + GUEST_OUT + 64) &&
		    !table_get(&g->dev->verbs.qps, handle[0]) && !table_get(&g->dev->verbs.qps, handle[1]));

	sent = g->nsent;
	g->f.loop = NULL;
	vd_resume_later(g->dev);
	send_one(g, handle[2], HCA_WR_SEND, 0, 0);
	qp = table_get(&g->dev->verbs.qps, handle[2]);
	hca_qp_doorbell(g->dev->verbs.ctx, qp->qpn);
	post_destroy(g, handle[2], 0);
	loop_run_tasks(g->loop);
	g->f.loop = g->loop;
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	row(87, "what was posted before its end is sent",
	    !*(s32 *)(void *)(g->f.mem + GUEST_OUT) && g->nsent == sent + 1);
	row(88, "all are destroyed",
	    !guest_object(g, MUSLIN_CQ_DESTROY, cq, 0) && !guest_object(g, MUSLIN_PD_FREE, pd, 0));
}

/* A UD QP with LSO has larger entries. */
static void test_lso(struct guest *g)
{
	struct muslin_qp_create qp = guest_qp(g, HCA_QPT_UD, 0, 0, 0x28000, 0x30000);

	qp.flags |= MUSLIN_QP_LSO;
	qp.max_send_sge = 4;
	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	qp.pdn = guest_number(g)->number;
	qp.send_cq = qp.recv_cq = make_cq(g);
	row(71, "entries with no room for headers", guest_command(g, &qp, sizeof(qp)) == -EINVAL);
	qp.sq = guest_ring(g, 0x28000, 10);
	qp.flags = MUSLIN_QP_SIG_ALL | MUSLIN_QP_LSO;
	row(72, "a user's packets are not cut", guest_command(g, &qp, sizeof(qp)) == -EINVAL);
	qp.flags |= MUSLIN_QP_KERNEL;
	qp.type = HCA_QPT_RC;
	row(73, "nor those of a connection", guest_command(g, &qp, sizeof(qp)) == -EINVAL);
	qp.type = HCA_QPT_UD;
	row(74, "a datagram's are", guest_command(g, &qp, sizeof(qp)) == 0);
	row(75, "and destroyed",
	    !guest_object(g, MUSLIN_QP_DESTROY, guest_number(g)->number, 0) &&
		    !guest_object(g, MUSLIN_CQ_DESTROY, qp.send_cq, 0) && !guest_object(g, MUSLIN_PD_FREE, qp.pdn, 0));
}

static struct muslin_gid gid_add(u8 index, u8 version, u16 vlan)
{
	return (struct muslin_gid){
		.cmd = { .op = MUSLIN_GID_ADD },
		.port = 2,
		.index = index,
		.version = version,
		.mac = { 2, 0, 0, 0, 0, 9 },
		.vlan = vlan,
		.gid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
	};
}

static void test_gids(struct guest *g)
{
	const struct muslin_port_answer *p = (const void *)(g->f.mem + GUEST_OUT);
	static const struct wire_gid none;
	struct muslin_gid add = gid_add(3, 2, 7);
	const struct wire_port_attr *a = &g->port[1].attr;

	row(100, "an Ethernet port",
	    guest_object(g, MUSLIN_QUERY_PORT, 2, 0) == 0 && p->ethernet && !memcmp(p->mac, add.mac, 6));
	row(101, "a GID", guest_command(g, &add, sizeof(add)) == 0 && !memcmp(a->gid[3].raw, add.gid, 16));
	row(102, "on its VLAN",
	    a->gid_l2[3].vlan == 7 && a->gid_l2[3].version == 2 && !memcmp(a->gid_l2[3].mac, add.mac, 6));
	row(103, "that is deleted",
	    guest_object(g, MUSLIN_GID_DEL, 2, 3) == 0 && wire_gid_equal(&a->gid[3], &none) && !a->gid_l2[3].vlan);
	add.port = 1;
	row(104, "not on InfiniBand", guest_command(g, &add, sizeof(add)) == -EOPNOTSUPP);
	row(105, "nor taken from it", guest_object(g, MUSLIN_GID_DEL, 1, 0) == -EOPNOTSUPP);
	add.port = 3;
	row(106, "no such port", guest_command(g, &add, sizeof(add)) == -EINVAL);
	add = gid_add(MUSLIN_GIDS, 2, 0);
	row(107, "no such index",
	    guest_command(g, &add, sizeof(add)) == -EINVAL &&
		    guest_object(g, MUSLIN_GID_DEL, 2, MUSLIN_GIDS) == -EINVAL);
	add = gid_add(0, 3, 0);
	row(108, "no such version", guest_command(g, &add, sizeof(add)) == -EINVAL);
	add = gid_add(0, 2, 4095);
	row(109, "no such VLAN", guest_command(g, &add, sizeof(add)) == -EINVAL);
	add = gid_add(0, 2, 0);
	add.mac[0] = 1;
	row(110, "a group's address", guest_command(g, &add, sizeof(add)) == -EINVAL);
	add = gid_add(0, 2, 0);
	memset(add.gid, 0, sizeof(add.gid));
	row(111, "no GID at all", guest_command(g, &add, sizeof(add)) == -EINVAL);
}

/* A MAD from 10.0.0.2 to QP1 of the Ethernet port. */
static void receive_mad(struct guest *g, u8 version, u16 vlan)
{
	struct rxe_queue_buf *rq = (void *)(g->f.mem + 0x30000);
	struct rxe_recv_wqe *w = (void *)(rq->data + (rq->producer_index & 3) * 128);
	struct wire_packet *p = wire_packet_alloc();
	struct wire_grh *grh = (void *)(p->hdr + 8);
	struct wire_bth *bth = (void *)(p->hdr + 48);

	w->dma.num_sge = 1;
	w->dma.sge[0] = (struct rxe_sge){ .addr = FRONT_DATA, .length = 512 };
	rq->producer_index = (rq->producer_index + 1) & 3;
	memset(p->hdr, 0, sizeof(p->hdr));
	p->has_lrh = 1;
	p->grh_off = 8;
	p->bth_off = 48;
	p->hdr_len = 48 + sizeof(*bth) + sizeof(struct wire_deth);
	p->buf = wire_buf_alloc(256);
	memset(p->buf->data, 0, 256);
	p->buf->data[0] = 1;
	p->buf->data[1] = MAD_CLASS_PERF;
	p->data = p->buf->data;
	p->len = 256;
	p->l2 = (struct wire_l2){ .mac = { 2, 0, 0, 0, 0, 8 }, .vlan = vlan, .version = version };
	wire_grh_set_ver_tc_flow(grh, 0, 0);
	grh->sgid = wire_gid_make(0, 0xffff0a000002ull);
	grh->dgid = wire_gid_make(0, 0xffff0a000001ull);
	wire_bth_fill(bth, WIRE_UD_SEND_ONLY, false, 0, 0xffff, 1, false, 0);
	wire_deth_fill((struct wire_deth *)(bth + 1), 0x80010000, 1);
	g->port[1].mad.receive(g->port[1].mad.ctx, p);
}

/* Whether the completion is as expected, and the 40 bytes before the MAD have @first at @off. */
static bool received(struct guest *g, u16 tag, u32 off, u8 first)
{
	struct rxe_queue_buf *cq = (void *)(g->f.mem + 0x20000);
	struct ib_uverbs_wc *wc = (void *)(cq->data + (cq->consumer_index & 3) * 64);
	bool ok =
		cq->producer_index != cq->consumer_index && !wc->status && wc->wc_flags & HCA_WC_GRH && wc->slid == tag;

	cq->consumer_index = cq->producer_index;
	return ok && g->f.mem[FRONT_DATA + off] == first && g->f.mem[FRONT_DATA + 40] == 1;
}

/* Capabilities that software sets are the guest's: IsSM, CommunicationManagement. Another user of the port has set one. */
static void test_caps(struct guest *g)
{
	struct muslin_set_cap set = { .cmd = { .op = MUSLIN_SET_CAP }, .port = 1, .set = 1 << 1 | 1 << 16 };
	u32 *mask = &g->port[0].attr.cap_mask;

	*mask = 1 << 16;
	row(150, "capabilities", !guest_command(g, &set, sizeof(set)) && *mask == (1 << 1 | 1 << 16));
	guest_hello(g);
	row(151, "the guest's go with it", *mask == 1 << 16);
	set.set = 0;
	set.clear = 1 << 16;
	guest_command(g, &set, sizeof(set));
	*mask = 1 << 16;
	guest_hello(g);
	row(152, "those that it has cleared are no longer its own", *mask == 1 << 16);
	set.set = 1 << 3;
	row(153, "one of the hardware", guest_command(g, &set, sizeof(set)) == -EINVAL);
	set.port = 0;
	row(154, "no port", guest_command(g, &set, sizeof(set)) == -EINVAL);
}

static void test_ethernet(struct guest *g)
{
	static const struct muslin_av av = {
		.port = 2, .grh = 1, .sgid_index = 4, .sl = 5, .dmac = { 2, 0, 0, 0, 0, 8 }, .dgid = { [15] = 1 }
	};
	struct muslin_gid add[] = { gid_add(2, 1, 0), gid_add(3, 2, 0), gid_add(4, 2, 7) };
	u32 pd, cq, qp, i;

	for (i = 0; i < ARRAY_SIZE(add); i++)
		guest_command(g, &add[i], sizeof(add[i]));
	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	pd = guest_number(g)->number;
	cq = make_cq(g);
	qp = make_qp(g, HCA_QPT_GSI, pd, cq, 2);
	start_special(g, qp);
	row(120, "a MAD out", send_to(g, qp, HCA_WR_SEND, 1, FRONT_DATA, &av) == HCA_WC_SUCCESS);
	row(121, "on the GID's VLAN", g->sent.version == 2 && g->sent.vlan == (5 << WIRE_VLAN_PRIO_SHIFT | 7));
	row(122, "to the station", !memcmp(g->sent.mac, av.dmac, 6));
	receive_mad(g, 2, 0);
	row(123, "a MAD in has the IPv4 header", received(g, 0, 20, 0x45));
	receive_mad(g, 2, 3 << WIRE_VLAN_PRIO_SHIFT | 7);
	row(124, "one from a VLAN has its tag", received(g, 3 << WIRE_VLAN_PRIO_SHIFT | 7, 20, 0x45));
	receive_mad(g, 1, 0);
	row(125, "RoCE v1 has a GRH", received(g, 0, 0, 0x60));
	guest_object(g, MUSLIN_QP_DESTROY, qp, 0);
	guest_object(g, MUSLIN_CQ_DESTROY, cq, 0);
	guest_object(g, MUSLIN_PD_FREE, pd, 0);
	guest_hello(g);
	row(126, "GIDs go with the guest", wire_gid_is_zero(&g->port[1].attr.gid[3]));
}

/* Posted entries move to the new ring, if they fit. */
static void test_srq_resize(struct guest *g)
{
	struct muslin_srq_create srq = {
		.cmd = { .op = MUSLIN_SRQ_CREATE }, .max_wr = 3, .max_sge = 1, .ring = guest_ring(g, 0x28000, 6)
	};
	struct rxe_queue_buf *old = (void *)(g->f.mem + 0x28000), *new = (void *)(g->f.mem + 0x30000);
	u32 i;

	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	srq.pdn = guest_number(g)->number;
	row(76, "an SRQ", guest_command(g, &srq, sizeof(srq)) == 0);
	srq.handle = guest_number(g)->number;
	for (i = 0; i < 3; i++)
		((struct rxe_recv_wqe *)(void *)(old->data + i * 64))->wr_id = 70 + i;
	old->producer_index = 3;
	srq.cmd.op = MUSLIN_SRQ_RESIZE;
	srq.ring = guest_ring(g, 0x30000, 6);
	srq.ring.slots = 2;
	row(77, "a ring that is too small", guest_command(g, &srq, sizeof(srq)) == -EINVAL);
	srq.ring.slots = 4;
	row(78, "one that is not",
	    guest_command(g, &srq, sizeof(srq)) == 0 && new->producer_index == 3 &&
		    ((struct rxe_recv_wqe *)(void *)(new->data + 128))->wr_id == 72);
	i = srq.handle;
	srq.handle = 99;
	row(79, "nobody's",
	    guest_command(g, &srq, sizeof(srq)) == -EINVAL && !guest_object(g, MUSLIN_SRQ_DESTROY, i, 0) &&
		    !guest_object(g, MUSLIN_PD_FREE, srq.pdn, 0));
}

static void test_memory(struct guest *g)
{
	struct {
		struct muslin_mr_reg r;
		u64 list[1];
	} reg = { .r = { .cmd = { .op = MUSLIN_MR_REG }, .length = 8192, .npages = 2, .page_shift = 12 },
		  .list = { 0x50000 } };

	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	reg.r.pdn = guest_number(g)->number;
	row(80, "a region", guest_command(g, &reg, sizeof(reg)) == 0);
	row(81, "and its end", guest_object(g, MUSLIN_MR_FREE, guest_number(g)->number, 0) == 0);
	reg.r.npages = 600;
	row(82, "more pages than lists", guest_command(g, &reg, sizeof(reg)) == -EINVAL);
	reg.r.npages = ~0u;
	row(83, "pages without end", guest_command(g, &reg, sizeof(reg)) == -EINVAL);
	reg.r.npages = 2;
	reg.r.length = 8193;
	row(84, "longer than its pages", guest_command(g, &reg, sizeof(reg)) == -EINVAL);
	reg.r.length = 8192;
	reg.r.page_shift = 63;
	row(85, "pages of any size", guest_command(g, &reg, sizeof(reg)) == -EINVAL);
	reg.r.page_shift = 12;
	reg.list[0] = FRONT_MEM;
	row(86, "a list in nowhere", guest_command(g, &reg, sizeof(reg)) == -EFAULT);
}

/* The epoch that the event queue reports in a buffer posted now; 0: none. */
static u32 event_epoch(struct guest *g)
{
	struct muslin_event *ev = (void *)(g->f.mem + FRONT_DATA + 1024);

	memset(ev, 0, sizeof(*ev));
	front_fill(front_desc(&g->f, MUSLIN_VQ_EVENT, 0), FRONT_DATA + 1024, sizeof(*ev), 2, 0);
	front_offer(&g->f, MUSLIN_VQ_EVENT, 0);
	return ev->type == MUSLIN_EVENT_EPOCH ? ev->number : 0;
}

static u32 hello_epoch(struct guest *g)
{
	const struct muslin_hello_answer *a = (const void *)(g->f.mem + GUEST_OUT);

	return guest_hello(g) ? 0 : a->epoch;
}

/* A driver can detect that the device is no longer the one of its HELLO. */
static void test_epochs(struct guest *g)
{
	u32 first, second, told;

	guest_attach(g);
	told = event_epoch(g);
	first = hello_epoch(g);
	row(94, "the epoch of hello", told && first == told);
	row(95, "is reported once", !event_epoch(g));
	front_close(&g->f);
	guest_attach(g);
	second = event_epoch(g);
	row(96, "a broken connection changes it", second && second != first);
	row(97, "with all commands but hello",
	    guest_object(g, MUSLIN_PD_ALLOC, 0, 0) == -ENODEV && hello_epoch(g) == second);
	row(98, "as another hello does", hello_epoch(g) != second);
	front_close(&g->f);
}

static struct guest *other_guest;
static u64 seen_commands;

static void on_other(struct loop_fd *w, u32 events, struct now now)
{
	seen_commands = vdev_counter(other_guest->dev, VDEV_CTR_COMMANDS);
	loop_fd_del(w);
}

/* A driver that fills the command queue must not starve others. */
static void test_budget(struct guest *g)
{
	struct muslin_object in = { .cmd = { .op = MUSLIN_QUERY_PORT }, .number = 1 };
	struct vring_avail_le *a = (struct vring_avail_le *)(void *)(front_ring(&g->f, MUSLIN_VQ_COMMAND) + 1024);
	u16 used = front_used(&g->f, MUSLIN_VQ_COMMAND), *avail = &g->f.avail[MUSLIN_VQ_COMMAND];
	struct loop_fd other = { .fd = eventfd(0, EFD_CLOEXEC), .fn = on_other };
	u64 before = vdev_counter(g->dev, VDEV_CTR_COMMANDS), one = 1;
	u32 i;

	static_assert(FRONT_NUM > VDEV_COMMANDS_TURN, "the queue holds more than a turn's commands");
	memcpy(g->f.mem + GUEST_IN, &in, sizeof(in));
	front_fill(front_desc(&g->f, MUSLIN_VQ_COMMAND, 0), GUEST_IN, sizeof(in), 1, 1);
	front_fill(front_desc(&g->f, MUSLIN_VQ_COMMAND, 1), GUEST_OUT, 2048, 2, 0);
	for (i = 0; i < FRONT_NUM; i++)
		a->ring[(*avail)++ % FRONT_NUM] = 0;
	a->idx = cpu_to_le16(*avail);
	other_guest = g;
	loop_fd_add(g->loop, &other, EPOLLIN);
	row(94, "a full queue", write(g->f.kick[MUSLIN_VQ_COMMAND], &one, 8) == 8 && write(other.fd, &one, 8) == 8);
	loop_run_idle(g->loop, 0);
	row(95, "others are not starved", seen_commands - before <= VDEV_COMMANDS_TURN);
	row(96, "and all commands are executed",
	    vdev_counter(g->dev, VDEV_CTR_COMMANDS) == before + FRONT_NUM &&
		    front_used(&g->f, MUSLIN_VQ_COMMAND) == (u16)(used + FRONT_NUM));
	close(other.fd);
}

/* A ring of 64 MiB, all of whose pages are the one at @page; @list has their addresses. */
static struct muslin_ring large_ring(struct guest *g, u32 list, u32 page)
{
	struct muslin_ring r = { .pages = list, .log2_elem = 12, .slots = 8192 };
	u32 i;

	r.npages = (u32)(verbs_ring_bytes(r.slots, r.log2_elem) + 4095) / 4096;
	for (i = 0; i < r.npages; i++)
		*(u64 *)(void *)(g->f.mem + list + i * 8) = page;
	memset(g->f.mem + page, 0, 4096);
	return r;
}

/* The nth of those that are posted together. */
static void post_command(struct guest *g, const void *cmd, u32 len, u16 n)
{
	u32 at = 512 * n;

	memcpy(g->f.mem + GUEST_IN + at, cmd, len);
	memset(g->f.mem + GUEST_OUT + at, 0xff, 64);
	front_fill(front_desc(&g->f, MUSLIN_VQ_COMMAND, 2 * n), GUEST_IN + at, len, 1, 2 * n + 1);
	front_fill(front_desc(&g->f, MUSLIN_VQ_COMMAND, 2 * n + 1), GUEST_OUT + at, 64, 2, 0);
	front_offer(&g->f, MUSLIN_VQ_COMMAND, 2 * n);
}

/* Entries that a resize moves, and page addresses, count towards the turn. */
static void test_large_commands(struct guest *g)
{
	struct muslin_srq_create srq = { .cmd = { .op = MUSLIN_SRQ_CREATE }, .max_wr = 4096, .max_sge = 1 };
	static struct {
		struct muslin_mr_reg r;
		u64 list[1024];
	} reg = { .r = { .cmd = { .op = MUSLIN_MR_REG }, .length = 4096, .npages = 1024 * 512, .page_shift = 12 } };
	u64 before;
	u32 i;

	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	srq.pdn = guest_number(g)->number;
	srq.ring = large_ring(g, 0x80000, 0x30000);
	row(157, "a large SRQ", !guest_command(g, &srq, sizeof(srq)));
	srq.handle = guest_number(g)->number;
	srq.cmd.op = MUSLIN_SRQ_RESIZE;
	before = vdev_counter(g->dev, VDEV_CTR_COMMANDS);
	((struct rxe_queue_buf *)(void *)(g->f.mem + 0x30000))->producer_index = 8191;
	g->f.loop = NULL;
	for (i = 0; i < 4; i++)
		post_command(g, &srq, sizeof(srq), (u16)i);
	vd_commands(g->dev);
	row(158, "a resize to 32 MiB is a turn's work", vdev_counter(g->dev, VDEV_CTR_COMMANDS) == before + 1);
	g->f.loop = g->loop;
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	row(159, "the others follow",
	    vdev_counter(g->dev, VDEV_CTR_COMMANDS) == before + 4 && !*(s32 *)(void *)(g->f.mem + GUEST_OUT + 3 * 512));
	reg.r.pdn = srq.pdn;
	for (i = 0; i < ARRAY_SIZE(reg.list); i++)
		reg.list[i] = 0x80000;
	g->f.loop = NULL;
	memcpy(g->f.mem + GUEST_IN, &reg, sizeof(reg));
	for (i = 0; i < 2; i++)
		front_post(&g->f, MUSLIN_VQ_COMMAND, GUEST_IN, sizeof(reg), GUEST_OUT, 2048);
	before = vdev_counter(g->dev, VDEV_CTR_COMMANDS);
	vd_commands(g->dev);
	row(160, "nor are two registrations of 2 GiB in one",
	    vdev_counter(g->dev, VDEV_CTR_COMMANDS) == before + 1 && !*(s32 *)(void *)(g->f.mem + GUEST_OUT));
	g->f.loop = g->loop;
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	guest_hello(g);
}

/* Many regions of the same page: the daemon's memory for their page lists is limited. */
static void test_pages(struct guest *g)
{
	static struct {
		struct muslin_mr_reg reg;
		u64 list[MUSLIN_LISTS_MAX];
	} in;
	u32 npages = MUSLIN_LISTS_MAX * MUSLIN_LIST_ADDRS, made = 0, last = 0, pdn, i;
	int err;

	in.reg.cmd.op = MUSLIN_MR_REG;
	row(83, "a PD", guest_object(g, MUSLIN_PD_ALLOC, 0, 0) == 0);
	in.reg.pdn = pdn = guest_number(g)->number;
	in.reg.npages = npages;
	in.reg.page_shift = 12;
	in.reg.length = 4096;
	for (i = 0; i < MUSLIN_LISTS_MAX; i++)
		in.list[i] = 0x20000;
	for (err = 0; !err && made * (u64)npages <= VDEV_PAGES_MAX;) {
		err = guest_command(g, &in, sizeof(in));
		if (!err) {
			made++;
			last = guest_number(g)->number;
		}
	}
	row(84, "regions have a limit of pages",
	    err == -ENOMEM && made * (u64)npages <= VDEV_PAGES_MAX && (made + 2) * (u64)npages > VDEV_PAGES_MAX);
	row(85, "what is freed can be had again",
	    guest_object(g, MUSLIN_MR_FREE, last, 0) == 0 && guest_command(g, &in, sizeof(in)) == 0 &&
		    guest_command(g, &in, sizeof(in)) == -ENOMEM);
	for (i = 0, err = 0; !err && i < 2 * npages / MUSLIN_REG_PAGES; i++)
		err = guest_object(g, MUSLIN_MR_ALLOC, pdn, MUSLIN_REG_PAGES);
	row(86, "and so have fast registrations", err == -ENOMEM);
}

/* A device ends whose guest has no driver, but commands for another turn and an event. */
static void test_destroy_without_driver(void)
{
	struct guest g;
	u32 i;

	row(155, "a device without a driver", !guest_create(&g) && !guest_attach(&g));
	g.f.loop = NULL;
	for (i = 0; i <= VDEV_COMMANDS_TURN; i++)
		post_destroy(&g, 1, 0);
	vd_commands(g.dev);
	vdev_destroy(g.dev);
	g.dev = NULL;
	row(156, "leaves no task", !loop_run_tasks(g.loop));
	front_close(&g.f);
	guest_destroy(&g);
}

static void test_life(struct guest *g)
{
	u32 state[2] = { MUSLIN_VQ_COMMAND, 0 };

	make_cq(g);
	front_send(&g->f, VHOST_GET_VRING_BASE, 0, state, sizeof(state), -1);
	front_reply(&g->f, state, sizeof(state));
	row(90, "a stop ends all", !vdev_in_use(g->dev));
	front_queue(&g->f, MUSLIN_VQ_COMMAND);
	row(91, "and hello starts again", guest_hello(g) == 0 && make_cq(g));
	front_close(&g->f);
	row(92, "a guest has disconnected", !vdev_in_use(g->dev));
	row(93, "and connects again", !guest_attach(g) && guest_hello(g) == 0);
	front_close(&g->f);
}

int main(void)
{
	struct guest g;

	if (guest_create(&g) || guest_attach(&g)) {
		row(0, "no device", false);
		return rows_end();
	}
	test_hello(&g);
	test_lengths(&g);
	test_foreign(&g);
	test_rings(&g);
	test_special(&g);
	test_special_overrun(&g);
	test_special_turns(&g);
	test_exits(&g);
	test_coalescing(&g);
	test_destroy_in_turns(&g);
	test_destroy_at_once(&g);
	test_lso(&g);
	test_srq_resize(&g);
	test_gids(&g);
	test_ethernet(&g);
	test_caps(&g);
	test_memory(&g);
	test_budget(&g);
	test_large_commands(&g);
	test_pages(&g);
	test_life(&g);
	test_epochs(&g);
	guest_destroy(&g);
	test_destroy_without_driver();
	return rows_end();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The device with a conforming driver and with a misbehaving one. */
#include "emu/lib/row.h"
#include "emu/virtio/fixture.h"

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

	pd = guest_make_pd(g);
	for (i = 0; i < 2; i++) {
		front_fill(front_desc(&g->f, MUSLIN_VQ_COMP, i), FRONT_DATA + 512 * i, sizeof(struct muslin_comp), 2,
			   0);
		front_offer(&g->f, MUSLIN_VQ_COMP, (u16)i);
		cq[i] = guest_make_cq(g);
		qp[i] = guest_make_qp(g, i ? HCA_QPT_GSI : HCA_QPT_SMI, pd, cq[i], 1);
		guest_start_special(g, qp[i]);
		sh->arm[cq[i]] = MUSLIN_ARM_NEXT;
		sh->doorbell[0] |= 1ull << qp[i];
	}
	events = vdev_counter(g->dev, VDEV_CTR_COMP_EVENTS);
	row(84, "sent", guest_send_to(g, qp[0], HCA_WR_SEND, 1, FRONT_DATA, &av) == HCA_WC_SUCCESS);
	row(85, "two events", vdev_counter(g->dev, VDEV_CTR_COMP_EVENTS) == events + 2);
	row(86, "and one interrupt", vdev_counter(g->dev, VDEV_CTR_COMP_INTERRUPTS) == interrupts + 1);
	for (i = 0; i < 2; i++) {
		guest_object(g, MUSLIN_QP_DESTROY, qp[i], 0);
		guest_object(g, MUSLIN_CQ_DESTROY, cq[i], 0);
	}
	guest_free_pd(g, pd);
}

/* The doorbell and the command arrive while the loop is busy. */
static void test_destroy_at_once(struct guest *g)
{
	struct muslin_object destroy = { .cmd = { .op = MUSLIN_QP_DESTROY } };
	u32 pd, cq, sent;

	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	pd = guest_number(g)->number;
	cq = guest_make_cq(g);
	destroy.number = guest_make_ud(g, pd, cq);
	row(56, "a QP", destroy.number != 0);
	sent = g->nsent;
	g->f.loop = NULL;
	guest_send_one(g, destroy.number, HCA_WR_SEND, 0, 0);
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

/* The same of a command by which the QP enters the error state: rdma_disconnect() gives one. */
static void test_error_at_once(struct guest *g)
{
	struct muslin_qp_modify error = { .cmd = { .op = MUSLIN_QP_MODIFY },
					  .mask = HCA_QP_STATE,
					  .attr = { .state = HCA_QPS_ERR } };
	u32 pd, cq, sent;

	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	pd = guest_number(g)->number;
	cq = guest_make_cq(g);
	error.handle = guest_make_ud(g, pd, cq);
	sent = g->nsent;
	g->f.loop = NULL;
	guest_send_one(g, error.handle, HCA_WR_SEND, 0, 0);
	memcpy(g->f.mem + GUEST_IN, &error, sizeof(error));
	front_post(&g->f, MUSLIN_VQ_COMMAND, GUEST_IN, sizeof(error), GUEST_OUT, 2048);
	vd_commands(g->dev);
	g->f.loop = g->loop;
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
	row(195, "what was posted before the error state is sent",
	    !*(s32 *)(void *)(g->f.mem + GUEST_OUT) && g->nsent == sent + 1);
	guest_object(g, MUSLIN_QP_DESTROY, error.handle, 0);
	guest_object(g, MUSLIN_CQ_DESTROY, cq, 0);
	guest_free_pd(g, pd);
}

/* A library posts to the ring; the driver refuses the post before RTS, and rings so that the device drops it. */
static void test_refused(struct guest *g)
{
	u32 pd, cq, qp, sent = g->nsent;

	guest_object(g, MUSLIN_PD_ALLOC, 0, 0);
	pd = guest_number(g)->number;
	cq = guest_make_cq(g);
	qp = guest_make_qp(g, HCA_QPT_UD, pd, cq, 0);
	row(196, "a send in RESET", guest_send_one(g, qp, HCA_WR_SEND, 0, 0) == -1);
	g->f.loop = NULL;
	guest_send_one(g, qp, HCA_WR_SEND, 0, 0);
	g->f.loop = g->loop;
	row(197, "in RTS none of them is sent",
	    !guest_start_qp(g, qp, HCA_QP_PORT) && guest_completed(g) == -1 && g->nsent == sent);
	row(198, "only the next", guest_send_one(g, qp, HCA_WR_SEND, 0, 0) == HCA_WC_SUCCESS && g->nsent == sent + 1);
	guest_object(g, MUSLIN_QP_DESTROY, qp, 0);
	guest_object(g, MUSLIN_CQ_DESTROY, cq, 0);
	guest_free_pd(g, pd);
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
	cq = guest_make_cq(g);
	for (i = 0; i < 3; i++)
		handle[i] = guest_make_ud(g, pd, cq);
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
	guest_send_one(g, handle[2], HCA_WR_SEND, 0, 0);
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
	qp.send_cq = qp.recv_cq = guest_make_cq(g);
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
	row(180, "a region", guest_command(g, &reg, sizeof(reg)) == 0);
	row(181, "and its end", guest_object(g, MUSLIN_MR_FREE, guest_number(g)->number, 0) == 0);
	reg.r.npages = 600;
	row(182, "more pages than lists", guest_command(g, &reg, sizeof(reg)) == -EINVAL);
	reg.r.npages = ~0u;
	row(183, "pages without end", guest_command(g, &reg, sizeof(reg)) == -EINVAL);
	reg.r.npages = 2;
	reg.r.length = 8193;
	row(184, "longer than its pages", guest_command(g, &reg, sizeof(reg)) == -EINVAL);
	reg.r.length = 8192;
	reg.r.page_shift = 63;
	row(185, "pages of any size", guest_command(g, &reg, sizeof(reg)) == -EINVAL);
	reg.r.page_shift = 12;
	reg.list[0] = FRONT_MEM;
	row(186, "a list in nowhere", guest_command(g, &reg, sizeof(reg)) == -EFAULT);
}

/* What the event queue reports in a buffer posted now. All bits set: nothing. */
static const struct muslin_event *event_next(struct guest *g)
{
	struct muslin_event *ev = (void *)(g->f.mem + FRONT_DATA + 1024);

	memset(ev, 0xff, sizeof(*ev));
	front_fill(front_desc(&g->f, MUSLIN_VQ_EVENT, 0), FRONT_DATA + 1024, sizeof(*ev), 2, 0);
	front_offer(&g->f, MUSLIN_VQ_EVENT, 0);
	return ev;
}

/* The epoch that it reports; 0: none. */
static u32 event_epoch(struct guest *g)
{
	const struct muslin_event *ev = event_next(g);

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

/* Events of more CQs than a queue of messages would have room for wait for buffers of the guest. */
static void test_waiting_events(struct guest *g)
{
	enum {
		CQS = 2000
	};
	static const u32 port[] = { HCA_EVENT_PORT_ERR, HCA_EVENT_PORT_ACTIVE, HCA_EVENT_PORT_ERR };
	const struct muslin_event *ev;
	static bool seen[1 << 16];
	u32 cqn[CQS], i, n = 0;

	guest_attach(g);
	row(160, "a driver", event_epoch(g) && !guest_hello(g));
	for (i = 0; i < CQS; i++) {
		cqn[i] = guest_make_cq(g);
		vd_event_raise(g->dev, &(struct hca_event){ .fe = table_get(&g->dev->verbs.cqs, cqn[i]) });
	}
	for (i = 0; i < ARRAY_SIZE(port); i++)
		vd_event_raise(g->dev, &(struct hca_event){ .type = port[i], .number = 1 });
	guest_object(g, MUSLIN_CQ_DESTROY, cqn[CQS - 1], 0);
	for (i = 0; i < CQS - 1; i++) {
		ev = event_next(g);
		n += ev->type == HCA_EVENT_CQ_ERR && !seen[ev->number & 0xffff];
		seen[ev->number & 0xffff] = true;
	}
	row(161, "the events of all CQs are reported, except for one that is destroyed",
	    n == CQS - 1 && !seen[cqn[CQS - 1]]);
	row(162, "events of a port in the order of their last times", event_next(g)->type == HCA_EVENT_PORT_ACTIVE);
	row(163, "so that the last one is its state", event_next(g)->type == HCA_EVENT_PORT_ERR);
	row(164, "once", event_next(g)->type == ~0u);
	front_close(&g->f);
}

static void ring_doorbell(struct guest *g, u32 qp)
{
	struct muslin_shared *sh = (void *)(g->f.mem + GUEST_SHARED);

	sh->doorbell[qp / 64] |= 1ull << (qp % 64);
	sh->rung = 1;
	front_kick(&g->f, MUSLIN_VQ_DOORBELL);
}

/* QEMU removes the memory of work queues, or of the shared page: the guest gets an event of each. */
static void test_lost_memory(struct guest *g)
{
	static const u32 types[] = { HCA_QPT_UD, HCA_QPT_GSI };
	struct muslin_srq_create srq = { .cmd = { .op = MUSLIN_SRQ_CREATE }, .max_wr = 3, .max_sge = 1 };
	struct muslin_object limit = { .cmd = { .op = MUSLIN_SRQ_SET_LIMIT }, .arg = 2 };
	struct muslin_qp_create create;
	const struct muslin_event *ev;
	u32 i, pd, qp;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		guest_attach(g);
		row(170, "a driver", event_epoch(g) && !guest_hello(g));
		pd = guest_make_pd(g);
		create = guest_qp(g, types[i], pd, guest_make_cq(g), 0x80000, 0x88000);
		create.port = 1;
		row(171, "a queue pair", !guest_command(g, &create, sizeof(create)));
		qp = guest_number(g)->number;
		row(172, "in RTS",
		    !guest_move_qp(g, qp, HCA_QPS_INIT, HCA_QP_PKEY_INDEX | HCA_QP_QKEY | (i ? 0 : (u32)HCA_QP_PORT)) &&
			    !guest_move_qp(g, qp, HCA_QPS_RTR, 0) && !guest_move_qp(g, qp, HCA_QPS_RTS, HCA_QP_SQ_PSN));
		front_memory(&g->f, 0x80000);
		ring_doorbell(g, qp);
		ev = event_next(g);
		row(173, "a doorbell without a send queue", ev->type == HCA_EVENT_QP_FATAL && ev->number == qp);
		ring_doorbell(g, qp);
		row(174, "once", event_next(g)->type == ~0u);
		front_close(&g->f);
	}
	guest_attach(g);
	row(175, "a driver", event_epoch(g) && !guest_hello(g));
	srq.pdn = guest_make_pd(g);
	srq.ring = guest_ring(g, 0x80000, 6);
	row(176, "an SRQ", !guest_command(g, &srq, sizeof(srq)));
	limit.number = guest_number(g)->number;
	front_memory(&g->f, 0x80000);
	guest_command(g, &limit, sizeof(limit));
	ev = event_next(g);
	row(177, "whose limit is unknown without its ring",
	    ev->type == HCA_EVENT_SRQ_ERR && ev->number == limit.number);
	ev = event_next(g);
	row(178, "and is not reached", ev->type == ~0u);
	front_memory(&g->f, GUEST_SHARED);
	row(179, "no shared page", ev->type == HCA_EVENT_DEVICE_FATAL);
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
	row(190, "a full queue", write(g->f.kick[MUSLIN_VQ_COMMAND], &one, 8) == 8 && write(other.fd, &one, 8) == 8);
	loop_run_idle(g->loop, 0);
	row(191, "others are not starved", seen_commands - before <= VDEV_COMMANDS_TURN);
	row(192, "and all commands are executed",
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
	row(200, "nor are two registrations of 2 GiB in one",
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
	row(210, "a PD", guest_object(g, MUSLIN_PD_ALLOC, 0, 0) == 0);
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
	row(211, "regions have a limit of pages",
	    err == -ENOMEM && made * (u64)npages <= VDEV_PAGES_MAX && (made + 2) * (u64)npages > VDEV_PAGES_MAX);
	row(212, "what is freed can be had again",
	    guest_object(g, MUSLIN_MR_FREE, last, 0) == 0 && guest_command(g, &in, sizeof(in)) == 0 &&
		    guest_command(g, &in, sizeof(in)) == -ENOMEM);
	for (i = 0, err = 0; !err && i < 2 * npages / MUSLIN_REG_PAGES; i++)
		err = guest_object(g, MUSLIN_MR_ALLOC, pdn, MUSLIN_REG_PAGES);
	row(213, "and so have fast registrations", err == -ENOMEM);
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

	guest_make_cq(g);
	front_send(&g->f, VHOST_GET_VRING_BASE, 0, state, sizeof(state), -1);
	front_reply(&g->f, state, sizeof(state));
	row(90, "a stop ends all", !vdev_in_use(g->dev));
	front_queue(&g->f, MUSLIN_VQ_COMMAND);
	row(91, "and hello starts again", guest_hello(g) == 0 && guest_make_cq(g));
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
	test_exits(&g);
	test_coalescing(&g);
	test_destroy_in_turns(&g);
	test_destroy_at_once(&g);
	test_error_at_once(&g);
	test_refused(&g);
	test_lso(&g);
	test_srq_resize(&g);
	test_memory(&g);
	test_budget(&g);
	test_large_commands(&g);
	test_pages(&g);
	test_life(&g);
	test_epochs(&g);
	test_waiting_events(&g);
	test_lost_memory(&g);
	guest_destroy(&g);
	test_destroy_without_driver();
	return rows_end();
}

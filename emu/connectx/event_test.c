// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Events: those that wait for room in their event queue, those that are lost with its memory, and the arming of CQs. */
#include "emu/connectx/frame.h"

/* More than the event queue has room for. */
#define CQS 1100u

/* Creates CQs with a completion in each, and arms them: each has an event. */
static bool cqs_arm(void)
{
	u32 i, cqn;

	for (i = 0; i < CQS; i++) {
		if (driver_cq(&d, LOG_CQ, &cqn))
			return false;
		((struct cx_cq *)table_get(&d.dev->verbs.cqs, cqn))->pi = 1;
		driver_poke64(&d, d.uar * 4096ull + 0x20, cqn);
	}
	return true;
}

/* Consumes events, and arms the event queue after each. Returns how many CQs have had one. */
static u32 cqs_notified(void)
{
	static u8 seen[1 << 16];
	const u8 *e;
	u32 n = 0;

	while ((e = driver_event(&d))) {
		u32 cqn = (u32)wire_load(e + 32 + 24, 4) & 0xffff;

		n += e[1] == CX_EVENT_COMP && !seen[cqn];
		seen[cqn] = 1;
		driver_arm_eq(&d);
	}
	return n;
}

static void full_event_queue(void)
{
	row(1, "more armed CQs than the event queue has room for", !driver_start(&d) && cqs_arm());
	row(2, "all of them have an event", cqs_notified() == CQS && !driver_counter(&d, "events_lost"));
}

/* CQs and their event queue are destroyed while events wait. */
static void destroyed(void)
{
	struct cx_cq *first, *waits;
	const u8 *e;
	u32 i, cqn;

	row(3, "events that wait", !driver_start(&d) && cqs_arm());
	first = list_first(&d.dev->eq[d.eqn]->due, struct cx_cq, completion.link);
	waits = list_entry(first->completion.link.next, struct cx_cq, completion.link);
	cqn = waits->cq.handle;
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, destroy_cq_in, cqn, first->cq.handle);
	row(4, "a CQ ends", !driver_command(&d, 0x401, 0, 16, 16));
	for (i = 0; i < 1u << LOG_EQ; i++)
		driver_event(&d);
	driver_arm_eq(&d);
	e = driver_event(&d);
	row(5, "without its event", e && wire_load(e + 32 + 24, 4) == cqn);
	memset(d.in, 0, sizeof(d.in));
	row(6, "the adapter stops", !driver_command(&d, 0x103, 0, 16, 16) && !driver_objects(&d));
}

/* Posts NOP @index of the queue pair in page 0, whose completion is unsolicited. Returns whether it causes an event. */
static bool nop_notifies(u32 qpn, u32 index)
{
	driver_control(driver_wqe(&d, 0, index), qpn, index, CX_OP_NOP, 16);
	driver_posted(&d, 0, qpn, index + 1);
	return driver_poll(&d) && driver_event(&d);
}

static void arming(void)
{
	struct cx_cq *cq;
	u32 qpn = 0;

	row(10, "a queue pair",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn) && !driver_connect(&d, qpn, qpn));
	row(11, "a completion of a CQ that is not armed", !nop_notifies(qpn, 0));
	driver_arm_cq(&d, true);
	row(12, "an unsolicited one, where it is armed for solicited ones", !nop_notifies(qpn, 1));
	driver_arm_cq(&d, false);
	row(13, "armed for the next one after that", nop_notifies(qpn, 2));
	driver_arm_cq(&d, false);
	driver_arm_cq(&d, true);
	row(14, "armed for solicited ones after that", nop_notifies(qpn, 3));
	row(15, "once", !nop_notifies(qpn, 4));
	cq = table_get(&d.dev->verbs.cqs, d.cqn);
	cq->max_count = 100;
	cq->period = 100 * NSEC_PER_SEC;
	driver_arm_cq(&d, false);
	driver_control(driver_wqe(&d, 0, 5), qpn, 5, CX_OP_NOP, 16);
	driver_posted(&d, 0, qpn, 6);
	row(16, "a moderated event", !driver_event(&d) && loop_timer_armed(&cq->timer));
	driver_arm_cq(&d, true);
	row(17, "armed for solicited ones after that", loop_timer_armed(&cq->timer));
}

/* Processors of a 32-bit guest write doorbells in halves, each to its UAR. */
static void halves(void)
{
	u64 mine = d.uar * 4096ull + 0x20, other = (d.uar + 1) * 4096ull + 0x20;
	struct cx_cq *cq = table_get(&d.dev->verbs.cqs, d.cqn);

	cq->period = cq->max_count = 0;
	driver_poke(&d, mine, d.cqe - 1);
	driver_poke(&d, other, 0);
	row(18, "no doorbell yet", !driver_event(&d));
	driver_poke(&d, mine + 4, d.cqn);
	row(19, "one of two halves, with one of another UAR in between", driver_event(&d));
	driver_poke(&d, mine + 4, d.cqn);
	row(20, "a second half alone", !driver_event(&d));
	driver_poke(&d, other, d.cqe);
	driver_poke(&d, other + 4, d.cqn);
	row(21, "of another UAR than the CQ's", !driver_event(&d));
}

/* More completions than the CQ has entries, none of which the driver has polled, before it arms the CQ. */
static void arming_late(void)
{
	u32 qpn = 0, i;

	row(22, "a queue pair",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn) && !driver_connect(&d, qpn, qpn));
	((struct cx_cq *)table_get(&d.dev->verbs.cqs, d.cqn))->ignore_overrun = true;
	for (i = 0; i < 20; i++) {
		driver_control(driver_wqe(&d, 0, i), qpn, i, CX_OP_NOP, 16);
		driver_posted(&d, 0, qpn, i + 1);
	}
	row(23, "no event of a CQ that ignores overruns, and is not armed", !driver_event(&d));
	driver_arm_cq(&d, false);
	row(24, "there is one as soon as it is", driver_event(&d));
	d.cqe = 20;
	driver_arm_cq(&d, true);
	row(25, "none when it is armed for solicited completions, of which there was none", !driver_event(&d));
}

/* Armed at an event, before the driver polls its completion. */
static void arming_early(void)
{
	struct cx_cq *cq;
	u32 qpn = 0;

	row(50, "a queue pair",
	    !driver_start(&d) && !driver_qp(&d, CX_QP_RC, 0, 0, &qpn) && !driver_connect(&d, qpn, qpn));
	driver_arm_cq(&d, false);
	driver_control(driver_wqe(&d, 0, 0), qpn, 0, CX_OP_NOP, 16);
	driver_posted(&d, 0, qpn, 1);
	row(51, "the event of a completion", driver_event(&d));
	driver_arm_cq(&d, false);
	row(52, "is not sent again", !driver_event(&d) && driver_poll(&d));
	row(53, "that of the next completion is", nop_notifies(qpn, 1));
	row(54, "two completions without an event", !nop_notifies(qpn, 2) && !nop_notifies(qpn, 3));
	d.cqe -= 2;
	driver_arm_cq(&d, false);
	row(55, "have one", driver_event(&d));
	cq = table_get(&d.dev->verbs.cqs, d.cqn);
	cq->pi += 1ull << 40; /* as if so many had completed since, which the driver has polled, without events */
	d.cqe += 1;
	driver_arm_cq(&d, false);
	row(56, "a completion after many without an event has one", driver_event(&d));
}

static void raise_event(enum hca_event_type type, u32 number, void *fe)
{
	cx_event_raise(d.dev, &(struct hca_event){ .type = type, .number = number, .fe = fe });
}

/* Consumes an event, and arms the event queue, which may reuse the entry. */
static const u8 *event_next(void)
{
	static u8 copy[64];
	const u8 *e = driver_event(&d);

	if (e)
		memcpy(copy, e, sizeof(copy));
	driver_arm_eq(&d);
	return e ? copy : NULL;
}

static bool is_port_change(const u8 *e, u8 change)
{
	return e && e[1] == CX_EVENT_PORT_CHANGE && e[3] == change && e[32 + 8] == 1 << 4;
}

/* The driver does not consume its events, many more than the event queue has room for. */
static void waiting(void)
{
	static bool seen[1 << 16];
	u32 i, n = 0, cqn = 0;
	const u8 *e = NULL;

	row(30, "an event queue of all types", !driver_start(&d));
	for (i = 0; i < CQS && !driver_cq(&d, LOG_CQ, &cqn); i++)
		raise_event(HCA_EVENT_CQ_ERR, 0, table_get(&d.dev->verbs.cqs, cqn));
	raise_event(HCA_EVENT_PORT_ERR, 1, NULL);
	raise_event(HCA_EVENT_PORT_ACTIVE, 1, NULL);
	raise_event(HCA_EVENT_PORT_ERR, 1, NULL);
	raise_event(HCA_EVENT_PORT_ERR, 2, NULL);
	d.dev->eq[d.eqn]->mask |= BIT_ULL(CX_EVENT_COMMAND);
	row(31, "commands complete", !driver_nop(&d) && !driver_nop(&d));
	memset(d.in, 0, sizeof(d.in));
	cx_set(d.in, destroy_cq_in, cqn, cqn);
	row(32, "one of the objects is destroyed", !driver_command(&d, 0x401, 0, 16, 16));
	for (i = 0; i < 1u << LOG_EQ && (e = driver_event(&d)); i++)
		seen[wire_load(e + 32, 4) & 0xffff] = e[1] == CX_EVENT_CQ_ERROR && e[32 + 11] == 1;
	driver_arm_eq(&d);
	e = event_next();
	row(33, "commands have an event as soon as there is room",
	    e && e[1] == CX_EVENT_COMMAND && wire_load(e + 32, 4) == 1);
	for (i = 1u << LOG_EQ; i < CQS - 1 && (e = event_next()) && e[1] == CX_EVENT_CQ_ERROR; i++)
		seen[wire_load(e + 32, 4) & 0xffff] = e[32 + 11] == 1;
	for (i = 0; i < ARRAY_SIZE(seen); i++)
		n += seen[i];
	row(34, "all objects follow, except for that one", n == CQS - 1 && !seen[cqn]);
	row(35, "events of the port in the order of their last times", is_port_change(event_next(), 4));
	row(36, "so that the last one is its state", is_port_change(event_next(), 1));
	row(37, "each once", !driver_event(&d) && !driver_counter(&d, "events_lost") && !driver_peek(&d, 0x23c));
}

/* Whether the adapter has stopped with this syndrome. Makes the driver start again. */
static bool has_failed(u32 syndrome)
{
	bool failed = driver_peek(&d, 0x23c) == syndrome << 16 && !connectx_in_use(d.dev) && !driver_objects(&d);

	driver_poke(&d, 0x14, (u32)driver_addr(AT_QUEUE));
	return failed && !driver_start(&d) && !driver_peek(&d, 0x23c);
}

static void port_events(u32 n)
{
	while (n--)
		raise_event(HCA_EVENT_PKEY_CHANGE, 1, NULL);
	loop_run_idle(d.loop, 0);
}

/* The memory of the event queue is no more. */
static struct cx_eq *eq_unmap(void)
{
	struct cx_eq *eq = d.dev->eq[d.eqn];

	eq->buf.page[0] = CLIENT_IOVA + CLIENT_MEM;
	eq->buf.map[0] = NULL;
	return eq;
}

/* An event that is not written is lost, as one that finds no room. */
static void unmapped(void)
{
	u32 qpn = 0, i;

	eq_unmap();
	port_events(1);
	row(40, "an asynchronous event", has_failed(0xd));
	row(41, "a queue pair", !driver_qp(&d, CX_QP_RC, 0, 0, &qpn) && !driver_connect(&d, qpn, qpn));
	driver_arm_cq(&d, false);
	eq_unmap();
	driver_control(driver_wqe(&d, 0, 0), qpn, 0, CX_OP_NOP, 16);
	driver_posted(&d, 0, qpn, 1);
	row(42, "a completion event", has_failed(0xd));
	eq_unmap()->mask |= BIT_ULL(CX_EVENT_COMMAND);
	row(43, "that of a command, which completes", !driver_nop(&d) && has_failed(0xd));
	port_events((1u << LOG_EQ) + 2);
	for (i = 0; i < 1u << LOG_EQ; i++)
		driver_event(&d);
	eq_unmap();
	driver_arm_eq(&d);
	row(44, "those that have waited for room", has_failed(0xd));
}

PARTS(full_event_queue, destroyed, arming, halves, arming_late, arming_early, waiting, unmapped)

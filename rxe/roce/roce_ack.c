// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Delayed ACK with piggybacking on a RoCEv2 socket port. A program often responds to a received message at once; an ACK
 * that is sent in the same GSO train as that response saves each side a system call, which is most of the cost of short
 * messages. Without a response the ACK is sent after DELAYED_ACK_NS.
 */
#include "rxe/roce/roce_internal.h"

#define DELAYED_ACK_NS (12 * NSEC_PER_USEC)

static void ack_queue(struct roce_port *rp)
{
	list_add(&rp->tx, &rp->ack.p->link);
	rp->ntx++;
	rp->ack.p = NULL;
	loop_task_queue(rp->loop, &rp->task);
}

bool roce_ack_delay(struct roce_port *rp, struct wire_packet *p)
{
	struct roce_ack *a = &rp->ack;

	if (!rp->ack.poller.poll || a->p || !list_empty(&rp->tx) || !ack_delay_permits(p) ||
	    !ack_delay_begin(&a->delay))
		return false;
	a->p = p;
	a->until = loop_now(rp->loop).ns + DELAYED_ACK_NS;
	return true;
}

void roce_ack_piggyback(struct roce_port *rp, struct wire_packet *p)
{
	struct roce_ack *a = &rp->ack;
	const struct wire_opcode *op = wire_packet_opcode(p);
	bool answer = op && op->flags & WIRE_OPF_REQUEST;

	if (answer)
		ack_delay_paired(&a->delay);
	if (!answer && a->p)
		ack_queue(rp);
	list_add(&rp->tx, &p->link);
	rp->ntx++;
	if (answer && a->p)
		ack_queue(rp);
}

/* No request to piggyback on: the ACK is sent in a datagram of its own. */
static void ack_timeout(struct roce_port *rp)
{
	ack_delay_unpaired(&rp->ack.delay);
	ack_queue(rp);
}

static u32 on_poll(struct loop_poller *poller, struct now now)
{
	struct roce_port *rp = container_of(poller, struct roce_port, ack.poller);

	if (rp->ack.p && now.ns >= rp->ack.until)
		ack_timeout(rp);
	return 0;
}

static bool on_sleep(struct loop_poller *poller, bool asleep)
{
	struct roce_port *rp = container_of(poller, struct roce_port, ack.poller);

	if (!asleep || !rp->ack.p)
		return false;
	ack_timeout(rp);
	return true;
}

void roce_ack_open(struct roce_port *rp)
{
	rp->ack.poller = (struct loop_poller){ .poll = on_poll, .sleep = on_sleep };
	loop_poller_add(rp->loop, &rp->ack.poller);
}

void roce_ack_close(struct roce_port *rp)
{
	if (rp->ack.poller.poll)
		loop_poller_del(&rp->ack.poller);
	if (rp->ack.p)
		wire_packet_free(rp->ack.p);
	rp->ack.p = NULL;
	rp->ack.poller.poll = NULL;
}

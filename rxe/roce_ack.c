// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An acknowledgement that waits for company. Who gets a message often answers at once, and an acknowledgement that leaves in the
 * answer's train costs neither side a system call of its own, which for short messages is most of what they cost. Where
 * nobody answers it leaves after a moment, and those that follow are not made to wait but now and then.
 */
#include "emu/wire/hdr.h"
#include "emu/wire/opcode.h"
#include "rxe/roce_internal.h"

#define WAIT_NS   (12 * NSEC_PER_USEC)
#define LONELY    4  /* so many in a row without company, and... */
#define NEXT_TRY  64 /* ... the next one that waits comes after so many */
#define AETH_LAST (sizeof(struct wire_bth) + sizeof(struct wire_aeth))

/* Only what says nothing but that all is well. */
static bool is_plain(const struct wire_packet *p)
{
	const u8 *bth = p->hdr + p->bth_off;
	const struct wire_aeth *aeth = (const struct wire_aeth *)(bth + sizeof(struct wire_bth));

	return bth[0] == WIRE_RC_ACK && (size_t)(p->hdr_len - p->bth_off) >= AETH_LAST &&
	       wire_aeth_type(wire_aeth_syndrome(aeth)) == WIRE_AETH_ACK;
}

static void go(struct roce_port *rp)
{
	list_add(&rp->tx, &rp->ack.p->link);
	rp->ntx++;
	rp->ack.p = NULL;
	loop_task_queue(rp->loop, &rp->task);
}

bool roce_ack_wait(struct roce_port *rp, struct wire_packet *p)
{
	struct roce_ack *a = &rp->ack;

	if (!rp->ack.poller.poll || a->p || !list_empty(&rp->tx) || !is_plain(p))
		return false;
	if (a->lonely >= LONELY && ++a->passed < NEXT_TRY)
		return false;
	a->passed = 0;
	a->p = p;
	a->until = loop_now(rp->loop).ns + WAIT_NS;
	return true;
}

void roce_ack_join(struct roce_port *rp, struct wire_packet *p)
{
	struct roce_ack *a = &rp->ack;
	const struct wire_opcode *op = wire_opcode(p->hdr[p->bth_off]);
	bool answer = op && op->flags & WIRE_OPF_REQUEST;

	if (answer)
		a->lonely = 0;
	if (!answer && a->p)
		go(rp);
	list_add(&rp->tx, &p->link);
	rp->ntx++;
	if (answer && a->p)
		go(rp);
}

/* Nobody came: it leaves alone. */
static void leave(struct roce_port *rp)
{
	rp->ack.lonely += rp->ack.lonely < LONELY;
	go(rp);
}

static u32 on_poll(struct loop_poller *poller, struct now now)
{
	struct roce_port *rp = container_of(poller, struct roce_port, ack.poller);

	if (rp->ack.p && now.ns >= rp->ack.until)
		leave(rp);
	return 0;
}

static bool on_sleep(struct loop_poller *poller, bool asleep)
{
	struct roce_port *rp = container_of(poller, struct roce_port, ack.poller);

	if (!asleep || !rp->ack.p)
		return false;
	leave(rp);
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

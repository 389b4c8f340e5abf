// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packets in flight on links, with credit-based flow control (IBTA 7.9).
 *
 * A link has no latency unless a fault or the topology (timing.c) adds it. A transmitted packet is put into the ring of
 * packets in flight, from which receive.c takes it; one that a fault of the receiving port has held, or has made, into
 * another, which comes first. Each port has an input buffer for each data VL. A port transmits a
 * packet only when the input buffer of its peer has credits for it. The packet holds these credits until it has left on
 * the next link or the CA's user has accepted it; returned credits schedule the port at the other end of the cable.
 * VL15 has no flow control: a VL15 packet that cannot be transmitted is dropped.
 */
#include <stdlib.h>

#include "fabric/fabric_internal.h"

static bool flights_grow(struct fabric_flights *q)
{
	u32 cap = q->cap ? q->cap * 2 : 1024, i;
	struct fabric_flight *ring = malloc(cap * sizeof(*ring));

	if (!ring)
		return false;
	for (i = 0; i < q->n; i++)
		ring[i] = q->ring[(q->head + i) & (q->cap - 1)];
	free(q->ring);
	q->ring = ring;
	q->cap = cap;
	q->head = 0;
	return true;
}

static void flights_push(struct fabric *f, struct fabric_flights *q, struct fabric_flight fl)
{
	if ((!f->zcopy && !wire_packet_own(fl.p)) || (q->n == q->cap && !flights_grow(q))) {
		wire_packet_free(fl.p);
		return;
	}
	q->ring[(q->head + q->n++) & (q->cap - 1)] = fl;
	loop_task_queue(f->loop, &f->task);
}

void fabric_flight_push(struct fabric *f, struct fabric_port *to, struct wire_packet *p)
{
	flights_push(f, &f->flight, (struct fabric_flight){ p, to, 0 });
}

void fabric_flight_push_released(struct fabric *f, struct fabric_port *to, struct wire_packet *p, u32 after)
{
	flights_push(f, &f->released, (struct fabric_flight){ p, to, after });
}

bool fabric_flight_pop(struct fabric_flights *q, struct fabric_flight *fl)
{
	if (!q->n)
		return false;
	*fl = q->ring[q->head];
	q->head = (q->head + 1) & (q->cap - 1);
	q->n--;
	return true;
}

/* A loopback packet is in flight to port 0, which a CA does not have. */
void fabric_flight_loopback(struct fabric_port *self, struct wire_packet *p, u8 vl)
{
	p->vl = vl;
	wire_lrh_set_vl(wire_packet_lrh(p), vl);
	p->in_port = self->num;
	if (vl != WIRE_VL_MGMT)
		self->rx_blocks[vl] += fabric_blocks(p);
	fabric_flight_push(self->node->f, &self->node->ports[0], p);
}

void fabric_flight_kick(struct fabric_port *out)
{
	struct fabric *f = out->node->f;

	if (!((out->vls && out->vls->active) || (out->ca && out->ca->want_ready)) || !list_empty(&out->kick))
		return;
	list_add(&f->kicked, &out->kick);
	loop_task_queue(f->loop, &f->task);
}

void fabric_flight_freed(struct fabric_port *in, u8 vl)
{
	const struct fabric_remote *r = in->peer ? in->peer->remote : NULL;

	if (unlikely(r) && r->ops)
		r->ops->credits(r->ctx, vl);
	else if (in->peer)
		fabric_flight_kick(in->peer);
}

void fabric_flight_release(struct fabric_port *in, u8 vl, u32 blocks)
{
	if (vl == WIRE_VL_MGMT)
		return;
	in->rx_blocks[vl] -= min(blocks, in->rx_blocks[vl]);
	fabric_flight_freed(in, vl);
	if (in->ca)
		fabric_flight_kick(in); /* a loopback sender waits for credits of its own buffer */
}

void fabric_flight_drop(struct fabric_port *in, struct wire_packet *p)
{
	if (in->num)
		fabric_flight_release(in, p->vl, fabric_blocks(p));
	wire_packet_free(p);
}

void fabric_flight_count(struct fabric_port *to, const struct wire_packet *p, u32 words, bool multicast)
{
	to->ctr[FABRIC_CTR_RCV_DATA] += words;
	to->ctr[FABRIC_CTR_RCV_PKTS]++;
	to->ctr[multicast ? FABRIC_CTR_MC_RCV_PKTS : FABRIC_CTR_UC_RCV_PKTS]++;
	to->vl_rx[p->vl].pkts++;
	to->vl_rx[p->vl].words += words;
	if (unlikely(to->captures))
		fabric_capture_packet(to, p, false);
}

struct fabric_port *fabric_flight_transmit(struct fabric_port *out, struct wire_packet *p, u8 vl)
{
	struct fabric_port *to = out->peer;
	struct wire_lrh *lrh = wire_packet_lrh(p);
	u32 len = wire_packet_link_len(p), words = len / 4;
	bool multicast = wire_lid_is_multicast(wire_lrh_dlid(lrh));

	p->vl = vl;
	wire_lrh_set_vl(lrh, vl);
	out->ctr[FABRIC_CTR_XMIT_DATA] += words;
	out->ctr[FABRIC_CTR_XMIT_PKTS]++;
	out->ctr[multicast ? FABRIC_CTR_MC_XMIT_PKTS : FABRIC_CTR_UC_XMIT_PKTS]++;
	if (vl != WIRE_VL_MGMT)
		to->rx_blocks[vl] += (len + 2 + 63) / 64;
	if (unlikely(out->captures))
		fabric_capture_packet(out, p, true);
	if (likely(!to->hooks.n))
		fabric_flight_count(to, p, words, multicast);
	else
		p->flags |= WIRE_PKT_UNCOUNTED;
	return to;
}

u8 fabric_flight_vl(const struct fabric_port *in, const struct fabric_port *out, u8 sl)
{
	if (out->sl2vl) {
		u8 b = out->sl2vl[in->node->sw ? in->num : 0][sl / 2];

		return sl % 2 ? b & 15 : b >> 4;
	}
	return sl % out->nvls;
}

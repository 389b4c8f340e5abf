// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Zero-copy sends across trunks: the payload is copied once, from the memory of the sender's program into the carrier.
 *
 * A packet that refers to memory of a program must not stay in a queue. If its way by the forwarding tables leads
 * through switches to a trunk whose carrier reads payload at once, it is forwarded within the sender's call. Without
 * space in the carrier the sender waits, as it does without credits. If other packets are in flight, which it must not
 * overtake, or a queue is on its way, it is copied as any other packet is.
 */
#include <errno.h>

#include "fabric/fabric_internal.h"

#define HOPS_MAX 16

/* The trunk on the way to @dlid, if no hooks are on the way; NULL: none. */
static struct fabric_remote *direct_remote(const struct fabric_port *p, u16 dlid)
{
	const struct fabric_port *in = p->peer;
	u32 hops;

	if (p->node->f->timing.on || dlid >= WIRE_LID_MULTICAST_MIN || fabric_has_lid(p, dlid))
		return NULL;
	for (hops = 0; in && !in->hooks.n && hops < HOPS_MAX; hops++) {
		const struct fabric_port *out;

		if (in->remote)
			return in->remote->ops && fabric_remote_is_up(in->remote) ? in->remote : NULL;
		out = in->node->sw ? fabric_relay_lookup(in->node, dlid) : NULL;
		if (!out || !out->num)
			return NULL;
		in = out->peer;
	}
	return NULL;
}

static enum fabric_remote_payload direct_payload(const struct fabric_remote *r, bool wait)
{
	return r && r->ops->payload ? r->ops->payload(r->ctx, wait) : FABRIC_REMOTE_KEEPS;
}

static bool direct_reads_payload(struct wire_port *w, u16 dlid)
{
	const struct fabric_port *p = container_of(w, struct fabric_ca, wire)->port;

	return direct_payload(direct_remote(p, dlid), false) != FABRIC_REMOTE_KEEPS;
}

static int direct_send(struct wire_port *w, struct wire_packet *pkt)
{
	struct fabric_ca *ca = container_of(w, struct fabric_ca, wire);
	struct fabric *f = ca->port->node->f;
	enum fabric_remote_payload payload = FABRIC_REMOTE_KEEPS;
	int err;

	if (pkt->flags & WIRE_PKT_ZCOPY && !fabric_in_flight(f))
		payload = direct_payload(direct_remote(ca->port, wire_lrh_dlid(wire_packet_lrh(pkt))), true);
	if (payload == FABRIC_REMOTE_KEEPS)
		return fabric_ca_send(w, pkt);
	if (payload == FABRIC_REMOTE_WAITS) {
		ca->want_ready = true;
		if (list_empty(&ca->direct))
			list_add(&f->direct, &ca->direct);
		return -EAGAIN;
	}
	f->zcopy = true;
	err = fabric_ca_send(w, pkt);
	f->zcopy = false;
	if (!err)
		fabric_receive_direct(f);
	return err;
}

static const struct wire_port_ops ops = { .send = direct_send,
					  .reads_payload = direct_reads_payload,
					  .set_cap = fabric_ca_set_cap,
					  .violation = fabric_ca_violation };

void fabric_direct_init(struct fabric *f)
{
	u32 i, p;

	for (i = 0; i < f->nnodes && f->nremotes; i++)
		for (p = 1; p <= f->nodes[i].nports; p++)
			if (f->nodes[i].ports[p].ca)
				f->nodes[i].ports[p].ca->wire.ops = &ops;
}

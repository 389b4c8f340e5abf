// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Link layer receive (IBTA 7.2.4, 7.12.2): faults, counters, packet checks, and dispatch to the switch's relay, to QP0
 * and QP1 of the node, or to the transport. The task takes each packet from the ring of packets in flight and forwards
 * it from port to port in one loop while the outputs have credits, so that the depth of the stack does not depend on
 * the number of switches.
 */
#include "fabric/fabric_internal.h"

#define RUN_BUDGET 8192 /* packets in one run of the task */
#define HOPS_MAX   64   /* ports at which a packet arrives before others have their turn */

/*
 * Is it for this port? The permissive DLID is of VL15 alone, multicast DLIDs are of the other VLs. Else drops it. @in:
 * where it has arrived.
 */
static bool receive_dlid_ok(struct fabric_port *p, struct fabric_port *in, struct wire_packet *pkt)
{
	u16 dlid = wire_lrh_dlid(wire_packet_lrh(pkt));

	if (likely(fabric_has_lid(p, dlid)) ||
	    (pkt->vl == WIRE_VL_MGMT ? dlid == WIRE_LID_PERMISSIVE : wire_lid_is_multicast(dlid)))
		return true;
	fabric_count(p, FABRIC_CTR_RCV_ERRORS);
	fabric_flight_drop(in, pkt);
	return false;
}

/* Passes a packet at a CA's port to management or the transport. It holds credits of the input buffer. */
static void receive_ca(struct fabric_port *p, struct wire_packet *pkt)
{
	u32 qpn = pkt->bth_off + sizeof(struct wire_bth) <= pkt->hdr_len ? wire_bth_qpn(wire_packet_bth(pkt)) : ~0u;

	if (unlikely(!receive_dlid_ok(p, p, pkt)))
		return;
	if (unlikely(pkt->vl == WIRE_VL_MGMT)) {
		fabric_mgmt_receive(p, p, pkt, false);
		return;
	}
	if (unlikely(qpn <= MAD_QPN_GSI || qpn == ~0u)) {
		fabric_mgmt_receive(p, p, pkt, true);
		return;
	}
	fabric_ca_deliver_data(p, pkt);
}

/* Does the port state permit this packet? A data packet moves an Armed port to Active. IBTA 7.2.4. */
static bool receive_check(struct fabric_port *in, const struct wire_packet *p)
{
	if (likely(in->info->state == PORT_STATE_ACTIVE))
		return true;
	if (p->vl == WIRE_VL_MGMT)
		return in->info->state >= PORT_STATE_INIT;
	if (in->info->state != PORT_STATE_ARMED)
		return false;
	fabric_link_state(in, PORT_STATE_ACTIVE);
	return true;
}

/* Counts a packet with a bad VCRC or EBP; above the threshold a LocalLinkIntegrityError (IBTA 7.12.2). */
static void receive_vcrc_error(struct fabric_port *in, const struct wire_packet *p)
{
	if (p->flags & WIRE_PKT_EBP) {
		fabric_count(in, FABRIC_CTR_RCV_REMOTE_PHYS_ERRORS);
		return;
	}
	fabric_count(in, FABRIC_CTR_RCV_ERRORS);
	if (!in->phy_err_thr || ++in->phy_errors <= in->phy_err_thr)
		return;
	in->phy_errors = 0;
	fabric_count(in, FABRIC_CTR_LINK_INTEGRITY_ERRORS);
	fabric_trap_port(in, TRAP_LINK_INTEGRITY);
}

/* Returns the port at which the packet arrives next; NULL: it has been delivered, queued or dropped. */
static struct fabric_port *receive_packet(struct fabric_port *in, struct wire_packet *p, u32 after)
{
	struct fabric_node *n = in->node;
	struct fabric_port *to;
	bool vl15;

	if (unlikely(in->hooks.n)) {
		if (!wire_packet_own(p)) {
			fabric_flight_drop(in, p);
			return NULL;
		}
		if (!fault_pass(&in->hooks, p, after))
			return NULL; /* a fault has dropped or holds the packet */
	}
	if (unlikely(p->flags & WIRE_PKT_UNCOUNTED)) {
		p->flags &= (u8)~WIRE_PKT_UNCOUNTED;
		fabric_flight_count(in, p, wire_packet_link_len(p) / 4,
				    wire_lid_is_multicast(wire_lrh_dlid(wire_packet_lrh(p))));
	}
	if (unlikely(in->remote)) {
		fabric_remote_send(in, p);
		return NULL;
	}
	if (unlikely(!n->sw && !in->num)) { /* loopback of a CA port */
		in = &n->ports[p->in_port];
		if (p->vl == WIRE_VL_MGMT)
			fabric_mgmt_receive(in, in, p, false);
		else
			receive_ca(in, p);
		return NULL;
	}
	if (unlikely(!receive_check(in, p))) {
		fabric_flight_drop(in, p);
		return NULL;
	}
	if (unlikely(p->flags & (WIRE_PKT_BAD_VCRC | WIRE_PKT_EBP))) {
		receive_vcrc_error(in, p);
		fabric_flight_drop(in, p);
		return NULL;
	}
	if (!n->sw) {
		receive_ca(in, p);
		return NULL;
	}
	vl15 = p->vl == WIRE_VL_MGMT;
	to = unlikely(vl15) ? fabric_relay_vl15(n, in, p) : fabric_relay_data(n, in, p);
	if (likely(to != &n->ports[0]))
		return to;
	if (receive_dlid_ok(to, in, p))
		fabric_mgmt_receive(to, in, p, in->num && !vl15);
	return NULL;
}

/*
 * Forwards a packet from port to port while the outputs have credits. Forwarding tables may have a loop, in which a
 * packet goes round until they change (IBTA has no limit of hops within a subnet): after HOPS_MAX ports it is in flight
 * behind the others. Returns what it costs of a budget of packets.
 */
static u32 receive_forward(struct fabric *f, struct fabric_port *to, struct wire_packet *p, u32 after)
{
	u32 hops;

	for (hops = 0; to && hops < HOPS_MAX; hops++) {
		to = receive_packet(to, p, after);
		after = 0;
	}
	if (likely(!to))
		return 1;
	fabric_flight_push(f, to, p);
	return HOPS_MAX;
}

/*
 * The payload may be in memory shared with the other daemon, where the packet must not stay: it is delivered at once
 * without a copy, unless others are before it, links have rates, or its payload is read more than once (MADs and
 * datagrams), which the other daemon may change meanwhile.
 */
void fabric_remote_receive(struct fabric_remote *r, struct wire_packet *p)
{
	const struct wire_opcode *op = wire_packet_opcode(p);
	struct fabric *f = r->node.f;
	struct fabric_port *to;

	if (!fabric_remote_is_up(r)) {
		wire_packet_free(p);
		return;
	}
	if (p->vl == WIRE_VL_MGMT && f->flight.n >= RUN_BUDGET) { /* it has no credits that would limit it */
		fabric_count(r->local, FABRIC_CTR_VL15_DROPPED);
		wire_packet_free(p);
		return;
	}
	to = fabric_flight_transmit(&r->port, p, p->vl);
	if (fabric_in_flight(f) || f->timing.on || p->vl == WIRE_VL_MGMT || op->transport == WIRE_TP_UD) {
		fabric_flight_push(f, to, p);
		return;
	}
	receive_forward(f, to, p, 0);
}

void fabric_receive_direct(struct fabric *f)
{
	struct fabric_flight fl;

	if (!fabric_flight_pop(&f->flight, &fl))
		return; /* it was dropped */
	while (fl.to && (fl.to->remote || fl.to->node->sw))
		fl.to = receive_packet(fl.to, fl.p, 0);
	if (fl.to)
		fabric_flight_push(f, fl.to, fl.p);
}

void fabric_receive_run(struct loop_task *t, struct now now)
{
	struct fabric *f = container_of(t, struct fabric, task);
	u32 budget = RUN_BUDGET;
	struct fabric_flight fl;

	while (budget) {
		if (fabric_flight_pop(&f->released, &fl) || fabric_flight_pop(&f->flight, &fl)) {
			budget -= min(budget, receive_forward(f, fl.to, fl.p, fl.after));
		} else if (!list_empty(&f->kicked)) {
			struct fabric_port *p = list_first(&f->kicked, struct fabric_port, kick);

			list_del(&p->kick);
			budget--;
			fabric_arb_run(p);
			if (p->ca)
				fabric_ca_ready(p);
		} else if (!list_empty(&f->downs)) {
			fabric_sma_run_downs(f);
		} else {
			return;
		}
	}
	loop_task_queue(f->loop, &f->task);
}

static void receive_event(struct fabric *f, const struct fabric_due *e)
{
	if (e->p) {
		receive_forward(f, e->port, e->p, 0);
		return;
	}
	if (e->in)
		fabric_flight_release(e->in, e->vl, e->blocks);
	if (fabric_timing_busy(e->port))
		return; /* a VL15 packet follows it */
	fabric_arb_run(e->port);
	if (e->port->ca)
		fabric_ca_ready(e->port);
}

/* Links with rates: handles due events, in the order of time. What faults release precedes what arrives. */
void fabric_receive_events(struct loop_timer *t, struct now now)
{
	struct fabric *f = container_of(t, struct fabric, timing.timer);
	u32 budget = RUN_BUDGET;
	struct fabric_flight fl;
	struct fabric_due e;

	while (budget--) {
		if (fabric_flight_pop(&f->released, &fl))
			receive_forward(f, fl.to, fl.p, fl.after);
		else if (fabric_timing_pop(f, now.ns, &e))
			receive_event(f, &e);
		else
			break;
	}
	fabric_timing_done(f);
}

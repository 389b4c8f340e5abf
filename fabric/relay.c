// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Switch forwarding (IBTA 18.2.4): output port by LFT or MFT, the checks at it, and P_Key enforcement. A packet without
 * credits waits in the output queue (arb.c).
 */
#include "fabric/fabric_internal.h"

u16 *fabric_relay_pkeys(struct fabric_port *p, u32 *n)
{
	static u16 dflt[1] = { WIRE_PKEY_DEFAULT_FULL };

	if (p->ca) {
		*n = p->ca->wire.attr.pkeys;
		return p->ca->wire.attr.pkey;
	}
	*n = p->pkeys ? FABRIC_PKEYS : 1;
	return p->pkeys ? p->pkeys : dflt;
}

/*
 * Does the P_Key table of the switch port, which lists the P_Keys of the attached node, allow the packet's P_Key?
 * Outbound, it must match an entry (10.9.3). Inbound, it must be an entry: a limited member may send the limited P_Key
 * only. IBTA 18.2.4.2.
 */
static bool pkey_is_allowed(struct fabric_port *at, const struct wire_packet *p, bool out)
{
	u16 key = wire_bth_pkey(wire_packet_bth(p));
	u32 n, i;
	const u16 *keys = fabric_relay_pkeys(at, &n);

	for (i = 0; wire_pkey_is_valid(key) && i < n; i++)
		if (out ? wire_pkey_match(keys[i], key) : keys[i] == key || keys[i] == (key | WIRE_PKEY_FULL))
			return true;
	return false;
}

/* Raw packet filter and P_Key enforcement of a switch port; @out: outbound. False: drop. IBTA 18.2.4.2. */
static bool pkey_enforce(struct fabric_port *at, const struct wire_packet *p, bool out)
{
	bool raw = wire_lrh_lnh(wire_packet_lrh(p)) < WIRE_LNH_BTH;

	if (raw ? (out ? at->filter_out : at->filter_in) : (out ? at->enforce_out : at->enforce_in)) {
		if (!raw && pkey_is_allowed(at, p, out))
			return true;
		fabric_count(at, out ? FABRIC_CTR_XMIT_CONSTRAINT_ERRORS : FABRIC_CTR_RCV_CONSTRAINT_ERRORS);
		if (!raw) {
			if (at->info->pkey_violations != 0xffff)
				at->info->pkey_violations++;
			fabric_trap_switch_pkey(at, p);
		}
		return false;
	}
	return true;
}

struct fabric_port *fabric_relay_lookup(const struct fabric_node *sw, u16 dlid)
{
	const struct fabric_switch *s = sw->sw;
	u8 port;

	if (unlikely(dlid >= s->lft_len || dlid > s->lft_top))
		return NULL;
	port = s->lft[dlid];
	return likely(port <= sw->nports) ? &sw->ports[port] : NULL;
}

static void relay_error(struct fabric_port *in, enum fabric_counter why)
{
	fabric_count(in, FABRIC_CTR_RCV_SWITCH_RELAY_ERRORS);
	fabric_count(in, why);
}

/*
 * Checks, and transmits or queues one data packet at one output port. Returns the receiving port; NULL: queued or
 * dropped.
 */
static struct fabric_port *relay_output(struct fabric_port *in, struct fabric_port *out, struct wire_packet *p)
{
	u8 vl, in_vl = p->vl;

	if (unlikely(!out->peer || out->info->state != PORT_STATE_ACTIVE)) {
		fabric_count_discard(out, FABRIC_CTR_XMIT_INACTIVE);
		goto drop;
	}
	vl = fabric_flight_vl(in, out, wire_lrh_sl(wire_packet_lrh(p)));
	if (unlikely(vl >= out->nvls)) {
		relay_error(in, FABRIC_CTR_RCV_VL_MAPPING);
		goto drop;
	}
	if (unlikely(p->len > wire_mtu_bytes(out->info->mtu_active))) {
		fabric_count_discard(out, FABRIC_CTR_XMIT_NEIGHBOR_MTU);
		goto drop;
	}
	if (unlikely((out->enforce_out || out->filter_out) && !pkey_enforce(out, p, true)))
		goto drop;
	p->in_port = in->num;
	if (likely((!out->vls || !(out->vls->active & BIT(vl))) && fabric_credit(out, vl, p) &&
		   !fabric_timed_busy(out))) {
		struct fabric_port *to;

		if (unlikely(out->node->f->timing.on)) {
			fabric_transmit(out, p, vl, in->num ? in : NULL);
			return NULL;
		}
		to = fabric_flight_transmit(out, p, vl);
		if (in->num)
			fabric_flight_release(in, in_vl, fabric_blocks(p));
		return to;
	}
	fabric_arb_queue(out, p, vl);
	return NULL;
drop:
	fabric_flight_drop(in, p);
	return NULL;
}

/* Replicates a multicast packet to the ports of its forwarding entry except the ingress port. IBTA 18.2.4.3.3. */
static void relay_multicast(struct fabric_node *sw, struct fabric_port *in, struct wire_packet *p)
{
	const struct fabric_switch *s = sw->sw;
	u32 lid = wire_lrh_dlid(wire_packet_lrh(p)) - WIRE_LID_MULTICAST_MIN, port;
	u8 dflt = in->num == s->mc_primary ? s->mc_not_primary : s->mc_primary;
	const u16 *mask = NULL;
	bool any = false;

	if (!wire_packet_own(p)) {
		fabric_flight_drop(in, p);
		return;
	}
	if (lid < s->mft_len)
		mask = &s->mft[lid * s->positions];
	for (port = 0; port <= sw->nports; port++) {
		struct fabric_port *to;
		struct wire_packet *c;

		if (!mask || !(mask[port / 16] & BIT(port % 16)))
			continue;
		any = true;
		if (port == in->num || !port)
			continue;
		c = wire_packet_clone(p);
		if (!c)
			break;
		if (in->num)
			in->rx_blocks[c->vl] += fabric_blocks(c);
		to = relay_output(in, &sw->ports[port], c);
		if (to)
			fabric_flight_push(sw->f, to, c);
	}
	if (!any && dflt && dflt <= sw->nports && dflt != in->num) {
		struct fabric_port *to = relay_output(in, &sw->ports[dflt], p);

		if (to)
			fabric_flight_push(sw->f, to, p);
		return;
	}
	if (!any)
		relay_error(in, FABRIC_CTR_RCV_DLID_MAPPING);
	fabric_flight_drop(in, p);
}

struct fabric_port *fabric_relay_data(struct fabric_node *sw, struct fabric_port *in, struct wire_packet *p)
{
	u16 dlid = wire_lrh_dlid(wire_packet_lrh(p));
	struct fabric_port *out;

	if (unlikely(in->num && (in->enforce_in || in->filter_in) && !pkey_enforce(in, p, false))) {
		fabric_flight_drop(in, p);
		return NULL;
	}
	if (unlikely(wire_lid_is_multicast(dlid))) {
		relay_multicast(sw, in, p);
		return NULL;
	}
	out = fabric_relay_lookup(sw, dlid); /* none for the permissive DLID, which is of VL15 */
	if (unlikely(!out)) {
		relay_error(in, FABRIC_CTR_RCV_DLID_MAPPING);
		fabric_flight_drop(in, p);
		return NULL;
	}
	if (unlikely(!out->num))
		return out;
	if (unlikely(out == in)) {
		relay_error(in, FABRIC_CTR_RCV_LOOPING);
		fabric_flight_drop(in, p);
		return NULL;
	}
	return relay_output(in, out, p);
}

/* A VL15 packet in a switch: directed route, the switch's own SMA, or LID routed by the LFT. */
struct fabric_port *fabric_relay_vl15(struct fabric_node *sw, struct fabric_port *in, struct wire_packet *p)
{
	u16 dlid = wire_lrh_dlid(wire_packet_lrh(p));
	struct fabric_port *out;

	if (dlid == WIRE_LID_PERMISSIVE)
		return &sw->ports[0];
	out = fabric_relay_lookup(sw, dlid);
	if (dlid == sw->ports[0].info->lid && dlid)
		out = &sw->ports[0];
	if (!out || out == in) {
		relay_error(in, out ? FABRIC_CTR_RCV_LOOPING : FABRIC_CTR_RCV_DLID_MAPPING);
		wire_packet_free(p);
	} else if (!out->num) {
		return out;
	} else {
		fabric_mad_vl15(out, p);
	}
	return NULL;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packets through links and switches.
 *
 * A link takes no time, unless a fault makes it. What a CA or a node's management sends goes into the ring of flights; the relay's task takes
 * each from there and carries it from port to port in one loop for as long as outputs are free, so that neither the
 * stack nor the number of switches matters. Each port has a buffer behind each data VL. A packet is put on a link only
 * when the buffer at its end has room; it stays on the books of that buffer until it has left on the next link, or
 * has been taken by a CA's user. What cannot go on stands in the output's queue (arb.c), and room that comes back
 * kicks the port at the other end of the cable. VL15 has no flow control: where it cannot pass it is dropped.
 */
#include <errno.h>
#include <stdlib.h>

#include "fabric/internal.h"

#define RUN_BUDGET 8192 /* packets in one run of the task */

void fabric_flight_push(struct fabric *f, struct fabric_port *to, struct wire_packet *p, u32 tap)
{
	if (f->flight_n == f->flight_cap) {
		u32 cap = f->flight_cap ? f->flight_cap * 2 : 1024, i;
		struct fabric_flight *ring = malloc(cap * sizeof(*ring));

		if (!ring) {
			wire_packet_free(p);
			return;
		}
		for (i = 0; i < f->flight_n; i++)
			ring[i] = f->flight[(f->flight_head + i) & (f->flight_cap - 1)];
		free(f->flight);
		f->flight = ring;
		f->flight_cap = cap;
		f->flight_head = 0;
	}
	f->flight[(f->flight_head + f->flight_n++) & (f->flight_cap - 1)] = (struct fabric_flight){ p, to, tap };
	loop_task_queue(f->loop, &f->task);
}

void fabric_relay_release(struct fabric_port *in, u8 vl, const struct wire_packet *p)
{
	if (vl == WIRE_VL_MGMT)
		return;
	in->rx_blocks[vl] -= min(fabric_blocks(p), in->rx_blocks[vl]);
	if (in->peer)
		fabric_arb_kick(in->peer);
	if (in->ca)
		fabric_arb_kick(in); /* who sends to itself waits for its own buffer */
}

void fabric_relay_drop(struct fabric_port *in, struct wire_packet *p)
{
	if (in->num)
		fabric_relay_release(in, p->vl, p);
	wire_packet_free(p);
}

/* What the port at the end counts and captures. */
static void received(struct fabric_port *to, const struct wire_packet *p, u32 words, bool multicast)
{
	to->ctr[FABRIC_CTR_RCV_DATA] += words;
	to->ctr[FABRIC_CTR_RCV_PKTS]++;
	to->ctr[multicast ? FABRIC_CTR_MC_RCV_PKTS : FABRIC_CTR_UC_RCV_PKTS]++;
	if (to->vls) {
		to->vls->rx_pkts[p->vl]++;
		to->vls->rx_words[p->vl] += words;
	}
	if (unlikely(to->capture))
		fabric_capture_packet(to, p, false);
}

struct fabric_port *fabric_relay_transmit(struct fabric_port *out, struct wire_packet *p, u8 vl)
{
	struct fabric_port *to = out->peer;
	struct wire_lrh *lrh = fabric_lrh(p);
	u32 len = wire_packet_link_len(p), words = len / 4;
	bool multicast = wire_lid_is_multicast(wire_lrh_dlid(lrh));

	p->vl = vl;
	wire_lrh_set_vl(lrh, vl);
	out->ctr[FABRIC_CTR_XMIT_DATA] += words;
	out->ctr[FABRIC_CTR_XMIT_PKTS]++;
	out->ctr[multicast ? FABRIC_CTR_MC_XMIT_PKTS : FABRIC_CTR_UC_XMIT_PKTS]++;
	if (vl != WIRE_VL_MGMT)
		to->rx_blocks[vl] += (len + 2 + 63) / 64;
	if (unlikely(out->capture))
		fabric_capture_packet(out, p, true);
	if (likely(!to->taps)) /* otherwise it is not there yet */
		received(to, p, words, multicast);
	return to;
}

u8 fabric_relay_vl(const struct fabric_port *in, const struct fabric_port *out, u8 sl)
{
	if (out->sl2vl) {
		u8 b = out->sl2vl[in->node->sw ? in->num : 0][sl / 2];

		return sl % 2 ? b & 15 : b >> 4;
	}
	return sl % out->nvls;
}

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
 * Does the switch port's table, which holds the keys of the node behind it, admit the packet's P_Key? What goes to that node must match
 * (10.9.3). What comes from it must be a key that it has: a limited member sends a limited key, and no full one. 18.2.4.2.
 */
static bool pkey_admits(struct fabric_port *at, const struct wire_packet *p, bool out)
{
	u16 key = wire_bth_pkey(fabric_bth(p));
	u32 n, i;
	const u16 *keys = fabric_relay_pkeys(at, &n);

	for (i = 0; wire_pkey_is_valid(key) && i < n; i++)
		if (out ? wire_pkey_match(keys[i], key) : keys[i] == key || keys[i] == (key | WIRE_PKEY_FULL))
			return true;
	return false;
}

/* Raw packets and foreign partitions. @out: at the output. False: drop. */
static bool enforce(struct fabric_port *at, const struct wire_packet *p, bool out)
{
	bool raw = wire_lrh_lnh(fabric_lrh(p)) < WIRE_LNH_BTH;

	if (raw ? (out ? at->filter_out : at->filter_in) : (out ? at->enforce_out : at->enforce_in)) {
		if (!raw && pkey_admits(at, p, out))
			return true;
		fabric_count(at, out ? FABRIC_CTR_XMIT_CONSTRAINT_ERRORS : FABRIC_CTR_RCV_CONSTRAINT_ERRORS);
		if (!raw) {
			if (at->pkey_viol != 0xffff)
				at->pkey_viol++;
			fabric_trap_switch_pkey(at, p);
		}
		return false;
	}
	return true;
}

/* The output for a unicast DLID; NULL when the switch has none. */
static struct fabric_port *lookup(const struct fabric_node *sw, u16 dlid)
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

static void discard(struct fabric_port *out, enum fabric_counter why)
{
	fabric_count(out, FABRIC_CTR_XMIT_DISCARDS);
	fabric_count(out, why);
}

/* Everything that may stand between a data packet and @out but for credits. The VL, or negative: drop. */
static int output_check(struct fabric_port *in, struct fabric_port *out, const struct wire_packet *p)
{
	u8 vl;

	if (unlikely(!out->peer || out->state != PORT_STATE_ACTIVE)) {
		discard(out, FABRIC_CTR_XMIT_INACTIVE);
		return -1;
	}
	vl = fabric_relay_vl(in, out, wire_lrh_sl(fabric_lrh(p)));
	if (unlikely(vl >= out->nvls)) {
		relay_error(in, FABRIC_CTR_RCV_VL_MAPPING);
		return -1;
	}
	if (unlikely(p->len > wire_mtu_bytes(out->mtu))) {
		discard(out, FABRIC_CTR_XMIT_NEIGHBOR_MTU);
		return -1;
	}
	if (unlikely((out->enforce_out || out->filter_out) && !enforce(out, p, true)))
		return -1;
	return vl;
}

/* One data packet to one output. Returns where it arrives, or NULL when it is queued or gone. */
static struct fabric_port *output(struct fabric_port *in, struct fabric_port *out, struct wire_packet *p)
{
	int vl = output_check(in, out, p);
	u8 in_vl = p->vl;

	if (unlikely(vl < 0)) {
		fabric_relay_drop(in, p);
		return NULL;
	}
	p->in_port = in->num;
	if (likely((!out->vls || !(out->vls->active & BIT(vl))) && fabric_credit(out, (u8)vl, p))) {
		struct fabric_port *to = fabric_relay_transmit(out, p, (u8)vl);

		if (in->num)
			fabric_relay_release(in, in_vl, p);
		return to;
	}
	fabric_arb_queue(out, p, (u8)vl, in->node->f->now);
	return NULL;
}

void fabric_relay_send_vl15(struct fabric_port *out, struct wire_packet *p)
{
	if (!out->peer || out->state < PORT_STATE_INIT) {
		discard(out, FABRIC_CTR_XMIT_INACTIVE);
		wire_packet_free(p);
		return;
	}
	fabric_flight_push(out->node->f, fabric_relay_transmit(out, p, WIRE_VL_MGMT), p, 0);
}

/* Copies for the members of a group but the port of entry. IBTA 18.2.4.3.3. */
static void multicast(struct fabric_node *sw, struct fabric_port *in, struct wire_packet *p)
{
	const struct fabric_switch *s = sw->sw;
	u32 lid = wire_lrh_dlid(fabric_lrh(p)) - WIRE_LID_MULTICAST_MIN, port;
	u8 dflt = in->num == s->mc_primary ? s->mc_not_primary : s->mc_primary;
	const u16 *mask = NULL;
	bool any = false;

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
		to = output(in, &sw->ports[port], c);
		if (to)
			fabric_flight_push(sw->f, to, c, 0);
	}
	if (!any && dflt && dflt <= sw->nports && dflt != in->num) {
		struct fabric_port *to = output(in, &sw->ports[dflt], p);

		if (to)
			fabric_flight_push(sw->f, to, p, 0);
		return;
	}
	if (!any)
		relay_error(in, FABRIC_CTR_RCV_DLID_MAPPING);
	fabric_relay_drop(in, p);
}

/* A data packet in a switch. Returns where it arrives next. */
static struct fabric_port *relay_data(struct fabric_node *sw, struct fabric_port *in, struct wire_packet *p)
{
	u16 dlid = wire_lrh_dlid(fabric_lrh(p));
	struct fabric_port *out;

	if (unlikely(in->num && (in->enforce_in || in->filter_in) && !enforce(in, p, false))) {
		fabric_relay_drop(in, p);
		return NULL;
	}
	if (unlikely(dlid >= WIRE_LID_MULTICAST_MIN)) {
		if (dlid == WIRE_LID_PERMISSIVE)
			fabric_mgmt_receive(&sw->ports[0], in, p, in->num != 0);
		else
			multicast(sw, in, p);
		return NULL;
	}
	out = lookup(sw, dlid);
	if (unlikely(!out)) {
		relay_error(in, FABRIC_CTR_RCV_DLID_MAPPING);
		fabric_relay_drop(in, p);
		return NULL;
	}
	if (unlikely(!out->num)) {
		fabric_mgmt_receive(out, in, p, in->num != 0);
		return NULL;
	}
	if (unlikely(out == in)) {
		relay_error(in, FABRIC_CTR_RCV_LOOPING);
		fabric_relay_drop(in, p);
		return NULL;
	}
	return output(in, out, p);
}

/* VL15 in a switch: a directed route, the switch itself, or on by the LFT. */
static void relay_vl15(struct fabric_node *sw, struct fabric_port *in, struct wire_packet *p)
{
	u16 dlid = wire_lrh_dlid(fabric_lrh(p));
	struct fabric_port *out;

	if (dlid == WIRE_LID_PERMISSIVE) {
		fabric_mgmt_receive(&sw->ports[0], in, p, false);
		return;
	}
	out = lookup(sw, dlid);
	if (dlid == sw->ports[0].lid && dlid)
		out = &sw->ports[0];
	if (!out || out == in) {
		relay_error(in, out ? FABRIC_CTR_RCV_LOOPING : FABRIC_CTR_RCV_DLID_MAPPING);
		wire_packet_free(p);
	} else if (!out->num) {
		fabric_mgmt_receive(out, in, p, false);
	} else {
		fabric_relay_send_vl15(out, p);
	}
}

/* May the port receive this now? A data packet takes an Armed port to Active. IBTA 7.2.4. */
static bool receive_check(struct fabric_port *in, const struct wire_packet *p)
{
	if (likely(in->state == PORT_STATE_ACTIVE))
		return true;
	if (p->vl == WIRE_VL_MGMT)
		return in->state >= PORT_STATE_INIT;
	if (in->state != PORT_STATE_ARMED)
		return false;
	fabric_link_state(in, PORT_STATE_ACTIVE);
	return true;
}

/* Counts a packet whose VCRC is wrong; too many in a row are a matter of link integrity. IBTA 7.12.2. */
static void damaged(struct fabric_port *in, const struct wire_packet *p)
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

/* Past the faults at the end of the link. False: one of them has the packet. */
static bool past_faults(struct fabric_port *in, struct wire_packet *p, u32 tap)
{
	if (in->taps && !fabric_fault_pass(in, p, tap))
		return false;
	received(in, p, wire_packet_link_len(p) / 4, wire_lid_is_multicast(wire_lrh_dlid(fabric_lrh(p))));
	return true;
}

static struct fabric_port *arrive(struct fabric_port *in, struct wire_packet *p, u32 tap)
{
	struct fabric_node *n = in->node;

	if (unlikely(in->taps || tap) && !past_faults(in, p, tap))
		return NULL;
	if (unlikely(!n->sw && !in->num)) { /* sent by one of the CA's ports to itself */
		in = &n->ports[p->in_port];
		if (p->vl == WIRE_VL_MGMT)
			fabric_mgmt_receive(in, in, p, false);
		else
			fabric_ca_receive(in, p, true);
		return NULL;
	}
	if (unlikely(!receive_check(in, p))) {
		fabric_relay_drop(in, p);
		return NULL;
	}
	if (unlikely(p->flags & (WIRE_PKT_BAD_VCRC | WIRE_PKT_EBP))) {
		damaged(in, p);
		fabric_relay_drop(in, p);
		return NULL;
	}
	if (!n->sw) {
		fabric_ca_receive(in, p, true);
		return NULL;
	}
	if (unlikely(p->vl == WIRE_VL_MGMT)) {
		relay_vl15(n, in, p);
		return NULL;
	}
	return relay_data(n, in, p);
}

void fabric_relay_route(struct fabric_node *sw, struct fabric_port *in, struct wire_packet *p)
{
	struct fabric_port *to;

	if (p->vl == WIRE_VL_MGMT) {
		relay_vl15(sw, in, p);
		return;
	}
	to = relay_data(sw, in, p);
	if (to)
		fabric_flight_push(sw->f, to, p, 0);
}

void fabric_relay_run(struct loop_task *t, struct now now)
{
	struct fabric *f = container_of(t, struct fabric, task);
	u32 budget = RUN_BUDGET;

	f->now = now;
	while (budget) {
		if (f->flight_n) {
			struct fabric_flight fl = f->flight[f->flight_head];

			f->flight_head = (f->flight_head + 1) & (f->flight_cap - 1);
			f->flight_n--;
			budget--;
			for (; fl.to; fl.tap = 0)
				fl.to = arrive(fl.to, fl.p, fl.tap);
		} else if (!list_empty(&f->kicked)) {
			struct fabric_port *p = list_first(&f->kicked, struct fabric_port, kick);

			list_del(&p->kick);
			budget--;
			fabric_arb_run(p);
		} else if (!list_empty(&f->downs)) {
			fabric_sma_run_downs(f);
		} else {
			return;
		}
	}
	loop_task_queue(f->loop, &f->task);
}

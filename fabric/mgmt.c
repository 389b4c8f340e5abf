// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* QP0 and QP1 of a node (IBTA 13.5, 14.2): dispatch of SMPs and GMPs to SMA, PMA or MAD layer, and their responses. */
#include "fabric/fabric_internal.h"

/* Makes the packet a response: swaps source and destination addresses and QPs (IBTA 13.5.4). */
static void mgmt_swap_addresses(struct fabric_port *self, struct wire_packet *p)
{
	struct wire_lrh *lrh = wire_packet_lrh(p);
	u16 slid = wire_lrh_slid(lrh);
	bool permissive = wire_lrh_dlid(lrh) == WIRE_LID_PERMISSIVE;
	u32 src_qp = wire_deth_src_qp(wire_packet_deth(p)), dst_qp = wire_bth_qpn(wire_packet_bth(p));

	lrh->slid = permissive || wire_lid_is_multicast(wire_lrh_dlid(lrh))
			    ? cpu_to_be16(permissive ? WIRE_LID_PERMISSIVE : self->info->lid)
			    : lrh->dlid;
	lrh->dlid = cpu_to_be16(slid);
	wire_packet_bth(p)->ecn_qpn = cpu_to_be32(src_qp);
	wire_deth_fill(wire_packet_deth(p), dst_qp == MAD_QPN_SMI ? 0 : MAD_QKEY_WELL_KNOWN, dst_qp);
	if (p->grh_off) {
		struct wire_grh *grh = wire_packet_grh(p);
		struct wire_gid gid = grh->sgid;

		grh->sgid = grh->dgid;
		grh->dgid = gid;
		grh->hoplmt = 255;
	}
	list_init(&p->link);
	p->flags = 0;
}

static void mgmt_receive_directed(struct fabric_port *self, struct fabric_port *in, struct wire_packet *p);

static void mgmt_respond(struct fabric_port *self, struct fabric_port *in, struct wire_packet *p, const u8 *mad)
{
	bool directed = wire_get(mad, MAD_CLASS) == MAD_CLASS_SUBN_DIRECTED;

	mgmt_swap_addresses(self, p);
	if (directed && wire_get(mad, SMP_DR_DLID) == WIRE_LID_PERMISSIVE)
		mgmt_receive_directed(self, in, p);
	else
		fabric_mad_send(self, p);
}

static void mgmt_drop(struct fabric_port *in, struct wire_packet *p, bool credits_held)
{
	if (credits_held)
		fabric_flight_drop(in, p);
	else
		wire_packet_free(p);
}

/* Is the SMP for a subnet manager on the host, not for the SMA? SMInfo is, if IsSM is set (IBTA 14.2.3, 14.4.1). */
static bool for_sm(const struct fabric_port *self, const u8 *mad)
{
	u8 method = wire_get(mad, MAD_METHOD);

	switch (method) {
	case MAD_METHOD_GET:
	case MAD_METHOD_SET:
		return wire_get(mad, MAD_ATTR_ID) == SMP_ATTR_SM_INFO && self->ca &&
		       (self->info->cap_mask & PORT_CAP_SM);
	case MAD_METHOD_SEND:
	case MAD_METHOD_TRAP:
	case MAD_METHOD_REPORT:
		return true;
	default:
		return method & MAD_METHOD_RESP;
	}
}

/* Dispatches an SMP to the node's SMA or to the MAD layer of a CA. */
static void mgmt_deliver_smp(struct fabric_port *self, struct fabric_port *in, struct wire_packet *p, u8 *mad)
{
	u8 method = wire_get(mad, MAD_METHOD);

	if (for_sm(self, mad)) {
		if (self->ca)
			fabric_ca_deliver_mad(self, p, false);
		else
			wire_packet_free(p);
	} else if (method == MAD_METHOD_TRAP_REPRESS) {
		/* A subnet manager on the host may have sent the trap. */
		if (!fabric_sma_trap_repress(self->node, mad, wire_lrh_slid(wire_packet_lrh(p))) && self->ca)
			fabric_ca_deliver_mad(self, p, false);
		else
			wire_packet_free(p);
	} else if (fabric_sma_request(self, in, mad, wire_lrh_slid(wire_packet_lrh(p)), false)) {
		mgmt_respond(self, in, p, mad);
	} else {
		wire_packet_free(p);
	}
}

static void mgmt_receive_directed(struct fabric_port *self, struct fabric_port *in, struct wire_packet *p)
{
	if (fabric_smi_step(self->node, in, p))
		mgmt_deliver_smp(self, in, p, fabric_mad_data(p));
}

int fabric_ca_mad(const struct fabric_node *n, u32 num, u8 *mad, bool ignore_mkey)
{
	struct fabric_port *p = fabric_node_port(n, num);
	u8 class = (u8)wire_get(mad, MAD_CLASS);

	if (!p || !p->ca || wire_mad_is_response((u8)wire_get(mad, MAD_METHOD)))
		return 0;
	if (class == MAD_CLASS_PERF)
		return fabric_pma_request(p, mad);
	if (!wire_mad_is_smp_class(class) || for_sm(p, mad) || wire_get(mad, MAD_METHOD) == MAD_METHOD_TRAP_REPRESS)
		return 0;
	return fabric_sma_request(fabric_self(p), p, mad, p->info->lid, ignore_mkey);
}

static void mgmt_violation(struct fabric_port *self, const struct wire_packet *p, bool qkey, u32 key)
{
	struct wire_port_violation v = wire_port_violation_of(p, qkey, key);

	fabric_trap_key(self, &v);
}

/* Checks of QP1 for agents of the node: Q_Key, and a P_Key of the CA's table (10.9.8). */
static bool gmp_keys_ok(struct fabric_port *self, const struct wire_packet *p)
{
	u16 pkey = wire_bth_pkey(wire_packet_bth(p));
	u32 qkey = wire_deth_qkey(wire_packet_deth(p));
	bool allowed = !self->ca || wire_port_pkey_match(&self->ca->wire, pkey) >= 0;

	if (!allowed)
		mgmt_violation(self, p, false, pkey);
	else if (qkey != MAD_QKEY_WELL_KNOWN)
		mgmt_violation(self, p, true, qkey);
	return allowed && qkey == MAD_QKEY_WELL_KNOWN;
}

static void mgmt_receive_gmp(struct fabric_port *self, struct fabric_port *in, struct wire_packet *p, bool credits_held)
{
	u8 *mad = fabric_mad_data(p);
	u8 method = mad ? wire_get(mad, MAD_METHOD) : 0;
	bool request = mad && !wire_mad_is_response(method), answer = false;

	if (request && wire_get(mad, MAD_CLASS) == MAD_CLASS_PERF)
		answer = gmp_keys_ok(self, p) && fabric_pma_request(self, mad);
	else if (self->ca) {
		fabric_ca_deliver_mad(self, p, credits_held);
		return;
	} else if (method == MAD_METHOD_GET || method == MAD_METHOD_SET) { /* a class without an agent on a switch */
		wire_set(mad, MAD_METHOD, MAD_METHOD_GET_RESP);
		wire_set(mad, MAD_STATUS, MAD_STATUS_BAD_VERSION);
		answer = true;
	}
	if (!answer) {
		mgmt_drop(in, p, credits_held);
		return;
	}
	if (credits_held)
		fabric_flight_release(in, p->vl, fabric_blocks(p));
	mgmt_respond(self, in, p, mad);
}

void fabric_mgmt_receive(struct fabric_port *p, struct fabric_port *in, struct wire_packet *pkt, bool credits_held)
{
	u8 *mad, class;
	u32 qpn;

	if (!wire_packet_own(pkt)) {
		mgmt_drop(in, pkt, credits_held);
		return;
	}
	if (pkt->flags & WIRE_PKT_BAD_ICRC) {
		fabric_count(p, FABRIC_CTR_RCV_ERRORS);
		mgmt_drop(in, pkt, credits_held);
		return;
	}
	if (pkt->bth_off + sizeof(struct wire_bth) > pkt->hdr_len ||
	    wire_lrh_lnh(wire_packet_lrh(pkt)) < WIRE_LNH_BTH) {
		mgmt_drop(in, pkt, credits_held);
		return;
	}
	qpn = wire_bth_qpn(wire_packet_bth(pkt));
	if ((qpn == MAD_QPN_SMI) != (pkt->vl == WIRE_VL_MGMT)) { /* 9.2.3.2, 9.9 */
		fabric_count(p, qpn == MAD_QPN_SMI ? FABRIC_CTR_RCV_QP0_VL : FABRIC_CTR_RCV_VL15_QP);
		mgmt_drop(in, pkt, credits_held);
	} else if (qpn == MAD_QPN_SMI) {
		mad = fabric_mad_data(pkt);
		class = mad ? wire_get(mad, MAD_CLASS) : 0;
		if (class == MAD_CLASS_SUBN_DIRECTED)
			mgmt_receive_directed(p, in, pkt);
		else if (class == MAD_CLASS_SUBN_LID)
			mgmt_deliver_smp(p, in, pkt, mad);
		else
			mgmt_drop(in, pkt, credits_held);
	} else if (wire_lid_is_multicast(wire_lrh_dlid(wire_packet_lrh(pkt)))) { /* a group has QP 0xffffff (9.6.1) */
		fabric_count(p, FABRIC_CTR_QP1_DROPPED);
		mgmt_drop(in, pkt, credits_held);
	} else if (qpn == MAD_QPN_GSI || p->ca) {
		mgmt_receive_gmp(p, in, pkt, credits_held);
	} else {
		mgmt_drop(in, pkt, credits_held);
	}
}

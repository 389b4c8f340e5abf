// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Directed routes: the steps of the subnet management interface, outbound (IBTA 14.2.2.2) and returning (14.2.2.4),
 * with parts that are routed by LID at either end.
 */
#include "fabric/internal.h"

static void set_lids(struct wire_packet *p, u16 slid, u16 dlid)
{
	fabric_lrh(p)->slid = cpu_to_be16(slid);
	fabric_lrh(p)->dlid = cpu_to_be16(dlid);
}

static void leave(struct fabric_node *n, u8 port, struct wire_packet *p)
{
	if (!port || port > n->nports) {
		wire_packet_free(p);
		return;
	}
	set_lids(p, WIRE_LID_PERMISSIVE, WIRE_LID_PERMISSIVE);
	fabric_relay_send_vl15(&n->ports[port], p);
}

/* The end of the directed part: here, or on by LID. */
static void arrive(struct fabric_port *in, struct wire_packet *p, u8 *mad, u16 on)
{
	struct fabric_port *self = fabric_self(in);

	if (on == WIRE_LID_PERMISSIVE) {
		fabric_smp_deliver(self, in, p, mad);
		return;
	}
	set_lids(p, self->lid, on);
	fabric_mgmt_send(self, p);
}

static void outbound(struct fabric_node *n, struct fabric_port *in, struct wire_packet *p, u8 *mad, u8 ptr, u8 cnt)
{
	if (ptr < cnt) {
		if (ptr && !n->sw) { /* only switches pass on */
			wire_packet_free(p);
			return;
		}
		if (ptr)
			mad[SMP_RETURN_PATH + ptr] = in->num;
		mad[6] = ++ptr;
		leave(n, mad[SMP_INITIAL_PATH + ptr], p);
	} else if (ptr == cnt) {
		if (cnt)
			mad[SMP_RETURN_PATH + ptr] = in->num;
		mad[6] = ptr + 1;
		arrive(in, p, mad, wire_get(mad, SMP_DR_DLID));
	} else if (ptr == cnt + 1) {
		fabric_smp_deliver(fabric_self(in), in, p, mad);
	} else {
		wire_packet_free(p);
	}
}

static void returning(struct fabric_node *n, struct fabric_port *in, struct wire_packet *p, u8 *mad, u8 ptr, u8 cnt)
{
	if (ptr >= 2 && ptr <= cnt + 1) {
		if (ptr <= cnt && !n->sw) {
			wire_packet_free(p);
			return;
		}
		mad[6] = --ptr;
		leave(n, mad[SMP_RETURN_PATH + ptr], p);
	} else if (ptr == 1) {
		mad[6] = 0;
		arrive(in, p, mad, wire_get(mad, SMP_DR_SLID));
	} else if (!ptr) {
		fabric_smp_deliver(fabric_self(in), in, p, mad);
	} else {
		wire_packet_free(p);
	}
}

void fabric_smi_step(struct fabric_node *n, struct fabric_port *in, struct wire_packet *p)
{
	u8 *mad = fabric_mad_data(p);
	u8 ptr, cnt;

	if (!mad || mad[7] > SMP_HOPS_MAX) {
		wire_packet_free(p);
		return;
	}
	ptr = mad[6]; /* HopPointer */
	cnt = mad[7]; /* HopCount */
	if (wire_get(mad, SMP_D))
		returning(n, in, p, mad, ptr, cnt);
	else
		outbound(n, in, p, mad, ptr, cnt);
}

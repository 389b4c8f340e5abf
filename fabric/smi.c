// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * SMI: directed-route SMP forwarding, outbound (IBTA 14.2.2.2) and returning (14.2.2.4), with LID-routed parts at
 * either end.
 */
#include "fabric/fabric_internal.h"

static void set_lids(struct wire_packet *p, u16 slid, u16 dlid)
{
	wire_packet_lrh(p)->slid = cpu_to_be16(slid);
	wire_packet_lrh(p)->dlid = cpu_to_be16(dlid);
}

/* Sends the SMP from a port of the path. */
static bool smi_leave(struct fabric_node *n, u8 port, struct wire_packet *p)
{
	if (!port || port > n->nports) {
		wire_packet_free(p);
		return false;
	}
	set_lids(p, WIRE_LID_PERMISSIVE, WIRE_LID_PERMISSIVE);
	fabric_mad_vl15(&n->ports[port], p);
	return false;
}

/* End of the directed route: the SMP is for this node, or forwarded by LID. */
static bool smi_arrive(struct fabric_port *in, struct wire_packet *p, u16 on)
{
	struct fabric_port *self = fabric_self(in);

	if (on == WIRE_LID_PERMISSIVE)
		return true;
	set_lids(p, self->info->lid, on);
	fabric_mad_send(self, p);
	return false;
}

static bool smi_outbound(struct fabric_node *n, struct fabric_port *in, struct wire_packet *p, u8 *mad, u8 ptr, u8 cnt)
{
	if (ptr > cnt + 1 || (ptr && ptr < cnt && !n->sw)) { /* only switches forward */
		wire_packet_free(p);
		return false;
	}
	if (ptr == cnt + 1)
		return true;
	if (ptr)
		wire_set(mad, SMP_RETURN_PATH_PORT(ptr), in->num);
	wire_set(mad, SMP_HOP_PTR, ptr + 1);
	if (ptr < cnt)
		return smi_leave(n, (u8)wire_get(mad, SMP_INITIAL_PATH_PORT(ptr + 1)), p);
	return smi_arrive(in, p, wire_get(mad, SMP_DR_DLID));
}

static bool smi_returning(struct fabric_node *n, struct fabric_port *in, struct wire_packet *p, u8 *mad, u8 ptr, u8 cnt)
{
	if (ptr > cnt + 1 || (ptr > 1 && ptr <= cnt && !n->sw)) {
		wire_packet_free(p);
		return false;
	}
	if (!ptr)
		return true;
	wire_set(mad, SMP_HOP_PTR, ptr - 1);
	if (ptr > 1)
		return smi_leave(n, (u8)wire_get(mad, SMP_RETURN_PATH_PORT(ptr - 1)), p);
	return smi_arrive(in, p, wire_get(mad, SMP_DR_SLID));
}

bool fabric_smi_step(struct fabric_node *n, struct fabric_port *in, struct wire_packet *p)
{
	u8 *mad = fabric_mad_data(p);
	u8 ptr, cnt;

	if (!mad || wire_get(mad, SMP_HOP_CNT) > SMP_HOPS_MAX) {
		wire_packet_free(p);
		return false;
	}
	ptr = (u8)wire_get(mad, SMP_HOP_PTR);
	cnt = (u8)wire_get(mad, SMP_HOP_CNT);
	return wire_get(mad, SMP_D) ? smi_returning(n, in, p, mad, ptr, cnt) : smi_outbound(n, in, p, mad, ptr, cnt);
}

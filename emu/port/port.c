// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* P_Key and Q_Key violations of received packets, for the link layer's counters and traps (IBTA 10.2.4, 10.9.4). */
#include "emu/port/port.h"
#include "emu/packet/header.h"

struct wire_port_violation wire_port_violation_of(const struct wire_packet *p, bool qkey, u32 key)
{
	const struct wire_lrh *lrh = wire_packet_lrh(p);
	struct wire_port_violation v = {
		.qkey = qkey,
		.key = key,
		.sl = wire_lrh_sl(lrh),
		.slid = wire_lrh_slid(lrh),
		.dlid = wire_lrh_dlid(lrh),
		.dqp = wire_bth_qpn(wire_packet_bth(p)),
	};

	if (p->grh_off) {
		const struct wire_grh *grh = wire_packet_grh(p);

		v.sgid = grh->sgid;
		v.dgid = grh->dgid;
	}
	if (wire_packet_opcode(p)->offset[WIRE_ETH_DETH])
		v.sqp = wire_deth_src_qp(wire_packet_deth(p));
	return v;
}

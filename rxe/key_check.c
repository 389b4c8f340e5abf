// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* P_Key and Q_Key checks of received packets, and reports of violations (IBTA 10.2.4, 10.9.4). */
#include "rxe/rxe_internal.h"

/*
 * Reports the violation; the caller drops the packet. The link layer counts it in PortInfo and sends trap 257 or 258
 * (10.9.4, 14.2.5.1).
 */
static void violation(const struct hca_qp *qp, struct wire_packet *p, u8 port, bool qkey, u32 key)
{
	struct wire_port *wp = hca_port(qp->hca, port);
	struct wire_port_violation v = wire_port_violation_of(p, qkey, key);

	hca_count(qp->hca, port, qkey ? HCA_CNT_QKEY_MISMATCH : HCA_CNT_PKEY_MISMATCH);
	v.dqp = qp->qpn;
	if (qp->type != HCA_QPT_UD)
		v.sqp = qp->attr.dest_qpn;
	wp->ops->violation(wp, &v);
}

bool rxe_pkey_matches(const struct hca_qp *qp, const struct wire_packet *p, u8 port, u16 index)
{
	const struct wire_port *wp = hca_port(qp->hca, port);

	return index < WIRE_PORT_PKEYS && wire_pkey_match(wp->attr.pkey[index], wire_bth_pkey(wire_packet_bth(p)));
}

bool rxe_pkey_accepts(const struct hca_qp *qp, struct wire_packet *p, u8 port, u16 index)
{
	if (likely(rxe_pkey_matches(qp, p, port, index)))
		return true;
	violation(qp, p, port, false, wire_bth_pkey(wire_packet_bth(p)));
	return false;
}

bool rxe_qkey_matches(const struct hca_qp *qp, struct wire_packet *p)
{
	return wire_deth_qkey(wire_packet_deth(p)) == qp->attr.qkey;
}

bool rxe_qkey_accepts(const struct hca_qp *qp, struct wire_packet *p, u8 port)
{
	if (likely(rxe_qkey_matches(qp, p)))
		return true;
	violation(qp, p, port, true, wire_deth_qkey(wire_packet_deth(p)));
	return false;
}

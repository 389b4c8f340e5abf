// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Address and path checks of received packets (IBTA 9.6.1), and automatic path migration (17.2.8). The consumer loads
 * an alternate path and sets REARM. A packet of the peer without MigReq means that the peer has an alternate path, too:
 * ARMED. The side that migrates sends MigReq on the alternate path, and its peer migrates when it receives that.
 */
#include "emu/packet/roce.h"
#include "rxe/rxe_internal.h"

void rxe_migrate(struct rxe_qp *rq)
{
	rq->req.retries = rq->qp->attr.retry_cnt;
	hca_qp_migrate(rq->qp);
	rxe_req_unblock(rq);
}

/* On InfiniBand the default prefix is valid beside that of the subnet (4.1.1). */
static bool gid_matches(const struct wire_gid *gid, const struct wire_gid *want, bool ethernet)
{
	return wire_gid_guid(gid) == wire_gid_guid(want) &&
	       (wire_gid_prefix(gid) == wire_gid_prefix(want) ||
		(!ethernet && wire_gid_prefix(gid) == WIRE_GID_PREFIX_DEFAULT));
}

/* A packet has a GRH if, and only if, the address vector has one, and the GIDs are those of the path (9.6.1.2). */
static bool path_grh_matches(const struct wire_port *port, const struct wire_packet *p, const struct hca_av *av)
{
	const struct wire_gid *gids = port->attr.gid;
	bool ethernet = wire_port_is_ethernet(port);

	if (!av->grh || !p->grh_off)
		return !av->grh && !p->grh_off;
	return gid_matches(&wire_packet_grh(p)->sgid, &av->dgid, ethernet) &&
	       gid_matches(&wire_packet_grh(p)->dgid, &gids[av->sgid_index % WIRE_PORT_GIDS], ethernet);
}

/* SLID and GIDs. RoCE packets are addressed by GIDs only (A17.4.3). */
static bool path_matches(const struct hca_qp *qp, const struct wire_packet *p, u8 port, const struct hca_av *av,
			 u8 av_port)
{
	const struct wire_port *wp = hca_port(qp->hca, port);

	return port == av_port && (wire_port_is_ethernet(wp) || wire_lrh_slid(wire_packet_lrh(p)) == av->dlid) &&
	       path_grh_matches(wp, p, av);
}

/*
 * A packet to a group has destination QP 0xffffff, a multicast DLID (InfiniBand), and a GRH with a multicast GID; a
 * packet to a queue pair has none of them (9.6.1, 10.5.2).
 */
bool rxe_destination_valid(const struct wire_port *port, const struct wire_packet *p)
{
	bool ethernet = wire_port_is_ethernet(port), group = p->grh_off && wire_gid_is_group(&wire_packet_grh(p)->dgid);

	return group == (wire_bth_qpn(wire_packet_bth(p)) == RXE_QPN_MULTICAST) &&
	       (ethernet || group == wire_lid_is_multicast(wire_lrh_dlid(wire_packet_lrh(p))));
}

bool rxe_path_is(const struct rxe_qp *rq, const struct wire_packet *p, u8 port)
{
	return path_matches(rq->qp, p, port, &rq->qp->attr.av, rq->qp->attr.port);
}

/* MigReq by a path that is not the alternate path: 17.2.8.1.2. */
static bool migration_reject(struct rxe_qp *rq)
{
	if (!rq->mig_refused)
		hca_qp_event(rq->qp, HCA_EVENT_PATH_MIG_ERR);
	rq->mig_refused = true;
	return false;
}

bool rxe_path_accepts(struct rxe_qp *rq, struct wire_packet *p, u8 port)
{
	const struct hca_qp *qp = rq->qp;
	struct hca_qp_attr *a = &rq->qp->attr;
	bool request = wire_bth_migreq(wire_packet_bth(p));
	bool armed = a->path_mig_state == HCA_MIG_ARMED;

	if (armed && request && path_matches(qp, p, port, &a->alt_av, a->alt_port)) {
		if (!rxe_pkey_accepts(qp, p, port, a->alt_pkey_index))
			return false;
		rxe_migrate(rq);
		return true;
	}
	if (!path_matches(qp, p, port, &a->av, a->port))
		return armed && request ? migration_reject(rq) : false;
	if (!rxe_pkey_accepts(qp, p, port, a->pkey_index))
		return false;
	if (a->path_mig_state == HCA_MIG_REARM && !request)
		a->path_mig_state = HCA_MIG_ARMED;
	return true;
}
